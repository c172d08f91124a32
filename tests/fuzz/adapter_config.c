/* adapter_config.c - adapter_config.json: what is read is in range, and what is written of it reads the same. */
#include "adapters/adapter_config.h"
#include "files/file.h"
#include "fuzz.h"

static char written[TUNE_PATH_MAX];
static struct fuzz_file file;

/* What is written goes to a folder beside adapter_config.json. */
static void make_folder(void)
{
    file = fuzz_file_in_folder("adapter_config.json");
    HOLDS(tune_path(written, "%s/written", fuzz_folder()) == 0 && tune_file_make_folder(written) == 0);
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tune_adapter_config c, d;
    if (!file.path[0])
        make_folder();
    fuzz_set(&file, data, size);
    if (tune_adapter_config_read(&c, fuzz_folder()) < 0) {
        fuzz_refused();
        return 0;
    }
    HOLDS(c.lora.r >= 1 && c.lora.r <= TUNE_LORA_MAX_RANK && c.lora.dropout >= 0 && c.lora.dropout < 1 && tune_lora_check(&c.lora) == 0);
    HOLDS(c.lora.targets && c.lora.targets[0]);
    HOLDS(tune_adapter_config_write(written, &c.lora, c.base) == 0);
    HOLDS(tune_adapter_config_read(&d, written) == 0 && !d.unknown);
    HOLDS(c.lora.r == d.lora.r && c.lora.alpha == d.lora.alpha && c.lora.dropout == d.lora.dropout);
    HOLDS(c.lora.rslora == d.lora.rslora && c.lora.dora == d.lora.dora);
    HOLDS(same(c.lora.layers, d.lora.layers) && same(c.base, d.base));
    HOLDS(same(c.lora.rank_pattern, d.lora.rank_pattern) && same(c.lora.alpha_pattern, d.lora.alpha_pattern));
    tune_adapter_config_free(&c);
    tune_adapter_config_free(&d);
    return 0;
}
