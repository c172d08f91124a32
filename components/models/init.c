/* init.c - write random weights, piece by piece. */
#include "models/init.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "files/cjson.h"
#include "machine/cpus.h"
#include "files/file.h"
#include "core/random.h"
#include "core/try.h"
#include "models/weights.h"

struct source {
    uint64_t seed;
    double range;
    float norm; /* first value of norms' weights */
    int threads;
    int64_t done, total;
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
};

/* A parameter's random stream is the hash of its name. Other parameters do not affect its
 * values. */
static int draw(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    struct source *s = context;
    uint64_t stream = tune_hash64(p->name, strlen(p->name), 0);
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t i = 0; i < count; i++)
        out[i] = tune_parameter_is_norm(p) ? s->norm : p->ndim == 1 ? 0.0f : (float)(s->range * tune_random_normal(s->seed, stream, (uint64_t)(at + i)));
    s->done += count;
    if (s->progress)
        s->progress(s->context, s->done, s->total);
    return 0;
}

static int write_texts(const char *folder, const cJSON *config, const char *name, uint64_t seed, enum tune_dtype dtype)
{
    const char *key = cJSON_HasObjectItem(config, "torch_dtype") ? "torch_dtype" : "dtype";
    const char *spelled = dtype == TUNE_BF16 ? "bfloat16" : dtype == TUNE_F16 ? "float16" : "float32";
    cJSON *copy = cJSON_Duplicate(config, true), *random = cJSON_CreateObject();
    bool good = tune_cjson_put_text(copy, key, spelled);
    int status = tune_cjson_write(folder, "config.json", copy, good);
    good = tune_cjson_put_text(random, "weights", "random") && tune_cjson_put_whole(random, "seed", (int64_t)seed) &&
           tune_cjson_put_text(random, "like", name);
    if (status == 0)
        status = tune_cjson_write(folder, "tune_weights.json", random, good);
    cJSON_Delete(copy);
    cJSON_Delete(random);
    return status;
}

int tune_model_init(const char *folder, const struct cJSON *config, const char *name, uint64_t seed, enum tune_dtype dtype,
                    void (*progress)(void *context, int64_t done, int64_t total), void *context)
{
    struct tune_model_config c;
    struct tune_parameters table;
    int threads = tune_cpus_threads(0);
    TRY(threads);
    TRY(tune_model_config_parse(&c, config, name));
    TRY(tune_file_make_folder(folder));
    TRY(write_texts(folder, config, name, seed, dtype));
    TRY(tune_parameters_new(&table, &c));
    struct source s = {seed, c.initializer_range, 1 - c.norm_plus, threads, 0, tune_parameters_total(&table), progress, context};
    struct tune_weights_source source = {draw, &s};
    int status = tune_weights_write(folder, &table, dtype, 0, &source);
    tune_parameters_free(&table);
    return status;
}
