/* weights_write.c - writing the weight files of a folder. */
#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/safetensors.h"
#include "models/weights.h"

static const char single[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

static enum tune_dtype dtype_of(const struct tune_parameter *p, enum tune_dtype as)
{
    return as == TUNE_AS_READ ? p->read_dtype : as;
}

static int64_t bytes_of(const struct tune_parameter *p, enum tune_dtype as)
{
    return p->count * tune_dtype_bits(dtype_of(p, as)) / 8;
}

struct item {
    const struct tune_parameter *p;
    int bits, shard;
};

/* Wider dtypes first, for alignment; then by name. */
static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard - y->shard;
    if (x->bits != y->bits)
        return y->bits - x->bits;
    return strcmp(x->p->name, y->p->name);
}

/* Check that finite weights stay finite in the narrower dtype. */
static int check_fits(const struct tune_parameter *p, enum tune_dtype dtype, const float *x, int64_t n)
{
    /* smallest value that rounds to infinity */
    float limit = dtype == TUNE_F16 ? 65520.0f : 0x1.ffp127f, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        largest = size > largest && size <= FLT_MAX ? size : largest;
    }
    if (largest < limit)
        return 0;
    return tune_error_set("tensor \"%s\" holds %g, which does not fit %s; save with `save_dtype` float32", p->name,
                          (double)largest, dtype == TUNE_F16 ? "float16 (at most 65504)" : "bfloat16 (at most 3.39e38)");
}

/* An output file, its dtype, and a buffer for a piece. */
struct output {
    struct tune_safetensors_writer *file;
    enum tune_dtype as;
    float *narrow;
};

static int put(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x)
{
    const struct output *o = context;
    enum tune_dtype dtype = dtype_of(p, o->as);
    (void)at;
    if (dtype == TUNE_F32)
        return tune_safetensors_writer_write(o->file, x, n * 4);
    TRY(check_fits(p, dtype, x, n));
    TRY(tune_convert(o->narrow, dtype, x, TUNE_F32, n));
    return tune_safetensors_writer_write(o->file, o->narrow, n * tune_dtype_bits(dtype) / 8);
}

static int write_file(const char *path, const struct item *items, int count, enum tune_dtype as,
                      const struct tune_weights_source *source, float *buffer)
{
    struct tune_safetensors_writer *f = tune_safetensors_writer_new(path);
    int status = f ? 0 : -1;
    for (int i = 0; i < count && status == 0; i++)
        status = tune_safetensors_writer_declare(f, items[i].p->name, dtype_of(items[i].p, as), items[i].p->ndim,
                                                 items[i].p->shape);
    struct output to = {f, as, buffer + TUNE_PIECE};
    for (int i = 0; i < count && status == 0; i++)
        status = tune_weights_each(source, items[i].p, buffer, put, &to);
    if (status == 0)
        status = tune_safetensors_writer_finish(f);
    tune_safetensors_writer_free(f);
    return status;
}

static void shard_file(char *name, size_t size, int shard, int shards)
{
    snprintf(name, size, "model-%05d-of-%05d.safetensors", shard + 1, shards);
}

static int write_index(const char *folder, const struct item *items, int count, int shards, int64_t bytes)
{
    char name[64];
    cJSON *root = cJSON_CreateObject(), *metadata = cJSON_AddObjectToObject(root, "metadata");
    bool good = tune_cjson_put_whole(metadata, "total_size", bytes);
    cJSON *map = cJSON_AddObjectToObject(root, "weight_map");
    for (int i = 0; i < count && good; i++) {
        shard_file(name, sizeof name, items[i].shard, shards);
        good = cJSON_AddStringToObject(map, items[i].p->name, name);
    }
    int status = tune_cjson_write(folder, index_name, root, good);
    cJSON_Delete(root);
    return status;
}

int tune_weights_write(const char *folder, const struct tune_parameters *p, enum tune_dtype as, int64_t shard_bytes,
                       const struct tune_weights_source *source)
{
    char path[TUNE_PATH_MAX], name[64];
    int64_t total = 0, in_shard = 0, limit = shard_bytes > 0 ? shard_bytes : 5000000000;
    int shards = 1;
    struct item *items = tune_zeroed((size_t)p->base, sizeof *items, "writing %s", folder);
    float *buffer = items ? tune_zeroed(2 * TUNE_PIECE, sizeof *buffer, "writing %s", folder) : NULL;
    int status = buffer ? 0 : -1;
    /* greedy, in the model's order, as transformers splits */
    for (int i = 0; i < p->base && status == 0; i++) {
        int64_t bytes = bytes_of(&p->at[i], as);
        if (in_shard > 0 && in_shard + bytes > limit) {
            shards++;
            in_shard = 0;
        }
        in_shard += bytes;
        total += bytes;
        items[i] = (struct item){&p->at[i], tune_dtype_bits(dtype_of(&p->at[i], as)), shards - 1};
    }
    if (status == 0)
        qsort(items, (size_t)p->base, sizeof *items, compare_items);
    for (int i = 0, first = 0; i < shards && status == 0; i++) {
        int n = 0;
        while (first + n < p->base && items[first + n].shard == i)
            n++;
        shard_file(name, sizeof name, i, shards);
        status = tune_path(path, "%s/%s", folder, shards == 1 ? single : name);
        if (status == 0)
            status = write_file(path, items + first, n, as, source, buffer);
        first += n;
    }
    if (status == 0 && shards > 1)
        status = write_index(folder, items, p->base, shards, total);
    free(items);
    free(buffer);
    return status;
}
