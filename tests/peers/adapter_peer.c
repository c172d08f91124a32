/* adapter_peer.c - what we make of an adapter folder, for adapter_peer.py, which has the real PEFT.
 *
 *     adapter_peer MODEL ADAPTER OUTPUT    a line for each module with an adapter: name, rank, scale; its config is written
 *                                          again, to the folder OUTPUT
 *     adapter_peer logits MODEL ADAPTER OUTPUT ID...    what base and adapter compute for a row of ids, [ids,vocabulary] float32
 *     adapter_peer MODEL                   a request a line on standard input: ADAPTER, a tab, OUTPUT; after each answer "."
 *
 * An adapter that is refused gives a line "refused" and the message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "core/error.h"
#include "files/file.h"
#include "core/try.h"
#include "../logits.h"
#include "models/lora.h"

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

static int write_logits(struct tune_model *m, const char *adapter, const char *output, char **id, int count)
{
    int32_t *ids = malloc(sizeof *ids * (size_t)count);
    float *logits = malloc(sizeof *logits * (size_t)count * (size_t)tune_model_vocabulary(m));
    struct tune_adapter_config c;
    struct tune_tensor *hidden;
    if (!ids || !logits)
        return -1;
    for (int i = 0; i < count; i++)
        ids[i] = (int32_t)atoi(id[i]);
    struct tune_batch batch = {.B = 1, .T = count, .ids = ids, .labels = ids, .lengths = &(int32_t){count}, .tokens = count};
    TRY(tune_adapter_config_read(&c, adapter));
    TRY(tune_lora_add(m, &c.lora, 1));
    TRY(tune_model_reserve(m, 1, count, 0));
    TRY(tune_adapter_read(m, adapter));
    TRY(tune_model_infer(m, &batch, &hidden));
    TRY(model_logits(m, hidden, 0, count, logits));
    TRY(tune_file_write(output, (char *)logits, sizeof *logits * (size_t)count * (size_t)tune_model_vocabulary(m)));
    tune_adapter_config_free(&c);
    free(ids);
    free(logits);
    return 0;
}

static int compute(const char *folder, const char *adapter, const char *output, char **id, int count)
{
    struct tune_device *dev = tune_device_open("cpu", 1);
    struct tune_model *m = dev ? tune_model_load_frozen(folder, dev, TUNE_F32, TUNE_F32) : NULL;
    int status = m ? write_logits(m, adapter, output, id, count) : -1;
    if (status < 0)
        fprintf(stderr, "adapter_peer: %s\n", tune_error_message());
    tune_model_free(m);
    tune_device_close(dev);
    return status < 0;
}

int main(int argc, char **argv)
{
    struct tune_model_config config;
    struct tune_parameters table;
    char line[8192];
    if (argc > 5 && !strcmp(argv[1], "logits"))
        return compute(argv[2], argv[3], argv[4], argv + 5, argc - 5);
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
