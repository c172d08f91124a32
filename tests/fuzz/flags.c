/* flags.c - a file for --config and, after its last NUL byte, words of a command line parted by line ends. */
#include <cjson/cJSON.h>

#include "flags/flags.h"
#include "fuzz.h"

/* No input is served. The library's own services need the devices, and this build leaves those out. */
const struct tune_service tune_show_tokens, tune_plan_memory;

static struct tune_flags flags;
static double noise;
static const char *folder;
static const struct tune_option options[] = {
    TUNE_TRAINING_OPTIONS(flags),
    {"grad-noise", TUNE_DOUBLE, &noise, "0", "[0,1]", "", "noise on the gradient"},
    {"<folder>", TUNE_STRING, &folder, "none", "", "", "where to"},
    {0},
};
static const struct tune_property properties[] = {TUNE_TRAINING_PROPERTIES, {0}};

static void ask(void)
{
    char command[4096];
    const char *text;
    HOLDS(flags.loader.batch_size >= 1 && flags.loader.batch_size <= 4096 && flags.loader.train_split > 0 && flags.loader.train_split <= 1);
    HOLDS(flags.schedule.lr >= 0 && flags.schedule.lr <= 1000 && noise >= 0 && noise <= 1 && flags.optimizer.kind <= TUNE_MUON);
    for (int i = 0; tune_flags_each(&flags, i, &text); i++)
        ;
    HOLDS(tune_flags_command(&flags, command, sizeof command)[0]);
    struct cJSON *made[] = {tune_flags_json(&flags), tune_flags_sources_json(&flags), tune_flags_describe(&flags)};
    for (int i = 0; i < 3; i++) {
        HOLDS(made[i]);
        cJSON_Delete(made[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file;
    if (!file.path[0])
        file = fuzz_file();
    const uint8_t *nul = size > 0 ? memrchr(data, 0, size) : NULL;
    size_t length = nul ? (size_t)(nul - data) : size, rest = size - length - !!nul;
    char *words = malloc(rest + 1), *argv[40] = {"fuzz", "--config", file.path};
    int argc = 3;
    HOLDS(words);
    if (rest > 0)
        memcpy(words, nul + 1, rest);
    words[rest] = 0;
    for (char *w = words, *end; rest > 0 && argc < 39; w = end + 1) {
        argv[argc++] = w;
        end = strchr(w, '\n');
        if (!end)
            break;
        *end = 0;
    }
    fuzz_hold_libyaml();
    fuzz_set(&file, data, length);
    memset(&flags, 0, sizeof flags);
    if (tune_flags_parse(&flags, argc, argv, options, properties) == 0)
        ask();
    else
        fuzz_refused();
    tune_flags_free(&flags);
    free(words);
    return 0;
}
