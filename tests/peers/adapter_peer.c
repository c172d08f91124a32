/* adapter_peer.c - what we make of an adapter folder, for adapter_peer.py, which has the real PEFT.
 *
 *     adapter_peer MODEL ADAPTER OUTPUT    a line for each module with an adapter: name, rank, scale; its config is written
 *                                          again, to the folder OUTPUT
 *     adapter_peer MODEL                   a request a line on standard input: ADAPTER, a tab, OUTPUT; after each answer "."
 *
 * An adapter that is refused gives a line "refused" and the message. */
#include <stdio.h>
#include <string.h>

#include "models/adapter_file.h"
#include "core/error.h"

static int show(const struct tune_parameters *table, const char *adapter, const char *output)
{
    struct tune_adapter_config c;
    if (tune_adapter_config_read(&c, adapter) < 0)
        return -1;
    for (int i = 0; i < table->count; i++) {
        char module[sizeof table->at->name];
        size_t n = strlen(table->at[i].name);
        if (table->at[i].ndim != 2 || n < 8)
            continue;
        snprintf(module, sizeof module, "%.*s", (int)(n - strlen(".weight")), table->at[i].name);
        int rank = tune_lora_rank(&c.lora, module);
        if (rank > 0)
            printf("%s %d %.17g\n", module, rank, tune_lora_scale(&c.lora, module));
    }
    int status = tune_adapter_config_write(output, &c.lora, c.base);
    tune_adapter_config_free(&c);
    return status;
}

static void answer(const struct tune_parameters *table, const char *adapter, const char *output)
{
    if (show(table, adapter, output) < 0)
        printf("refused %s\n", tune_error_message());
    printf(".\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct tune_model_config config;
    struct tune_parameters table;
    char line[8192];
    if (argc < 2 || tune_model_config_read(&config, argv[1]) < 0 || tune_parameters_new(&table, &config) < 0) {
        fprintf(stderr, "adapter_peer: %s\n", argc < 2 ? "which model?" : tune_error_message());
        return 1;
    }
    if (argc == 4)
        answer(&table, argv[2], argv[3]);
    while (argc == 2 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *tab = strchr(line, '\t');
        if (tab)
            *tab = 0;
        answer(&table, line, tab ? tab + 1 : "");
    }
    tune_parameters_free(&table);
    return 0;
}
