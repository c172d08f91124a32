/* config.c - a model folder: config.json, and the index of its weight files. The first byte says which the rest is. */
#include "files/file.h"
#include "files/safetensors.h"
#include "fuzz.h"
#include "models/config.h"
#include "models/parameters.h"
#include "models/weights.h"

static struct fuzz_file config, index_file;

/* Beside config.json and the index lie two shards of one tensor each. */
static void make_folder(void)
{
    char path[TUNE_PATH_MAX];
    config = fuzz_file_in_folder("config.json");
    index_file = fuzz_file_in_folder("model.safetensors.index.json");
    for (int i = 0; i < 2; i++) {
        HOLDS(tune_path(path, "%s/%c.safetensors", fuzz_folder(), 'a' + i) == 0);
        struct tune_safetensors_writer *w = tune_safetensors_writer_new(path);
        HOLDS(w && tune_safetensors_writer_declare(w, i ? "y" : "x", TUNE_F32, 1, (int64_t[]){1}) == 0 &&
              tune_safetensors_writer_write(w, "\0\0\0\0", 4) == 0 && tune_safetensors_writer_finish(w) == 0);
        tune_safetensors_writer_free(w);
    }
}

static void check_config(void)
{
    struct tune_model_config c;
    struct tune_parameters p;
    if (tune_model_config_read(&c, fuzz_folder()) < 0) {
        fuzz_refused();
        return;
    }
    HOLDS(c.layers >= 1 && c.layers <= TUNE_MAX_LAYERS && c.heads % c.kv_heads == 0 && c.head_dim % 2 == 0);
    HOLDS(c.norm_eps >= 0 && c.rotary[0].theta >= 1 && c.vocabulary > 0 && memchr(c.family, 0, sizeof c.family));
    for (int i = 0; i <= c.layers + 1; i++) {
        struct tune_layer l;
        tune_layer_make(&l, &c, i);
        HOLDS(l.window >= 0 && l.count > 0 && l.count <= TUNE_LAYER_MODULES);
    }
    HOLDS(tune_model_config_flops(&c, 512) > 0);
    float *table = malloc(sizeof *table * (size_t)tune_rope_count(&c, 4));
    HOLDS(table);
    tune_rope_table(&c, 4, table);
    free(table);
    HOLDS(tune_parameters_new(&p, &c) == 0);
    tune_parameters_set_offsets(&p);
    HOLDS(p.count > 0 && tune_parameters_total(&p) > 0 && tune_parameters_trainable(&p) == tune_parameters_total(&p));
    HOLDS(p.weights >= 4 * tune_parameters_total(&p));
    tune_parameters_free(&p);
}

static void check_index(void)
{
    struct tune_weights *w = tune_weights_open(fuzz_folder());
    if (!w) {
        fuzz_refused();
        return;
    }
    HOLDS(tune_weights_find(w, "x") || tune_weights_find(w, "y"));
    HOLDS(!tune_weights_find(w, "z"));
    tune_weights_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!config.path[0])
        make_folder();
    if (size < 1)
        return 0;
    fuzz_set(data[0] & 1 ? &index_file : &config, data + 1, size - 1);
    if (data[0] & 1)
        check_index();
    else
        check_config();
    return 0;
}
