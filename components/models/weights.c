/* weights.c - opening, checking and writing the weight files of a folder. */
#include "models/weights.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "files/json.h"
#include "files/safetensors.h"
#include "core/array.h"
#include "core/try.h"

/* Known models have fewer than 200 shards and an index below 10 MB. */
enum { MAX_SHARDS = 1024, MAX_INDEX = 32 << 20 };

static const char single[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

/* A tensor and the shard that holds it. */
struct named {
    const char *name;
    const struct tune_array *tensor;
    int shard;
};

struct tune_weights {
    char folder[TUNE_PATH_MAX];
    int shards;
    char (*name)[256]; /* [shards] */
    struct tune_safetensors **shard;
    int64_t header;    /* bytes of all headers together */
    struct named *named; /* sorted by name */
    int64_t count;
};

void tune_weights_close(struct tune_weights *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->shards; i++)
        tune_safetensors_close(w->shard[i]);
    free(w->name);
    free(w->shard);
    free(w->named);
    free(w);
}

/* Open the shard of that file name, unless it is open. Returns its number, or -1. */
static int open_shard(struct tune_weights *w, const char *name)
{
    for (int i = w->shards - 1; i >= 0; i--) /* neighbours in the index usually share a file */
        if (strcmp(w->name[i], name) == 0)
            return i;
    if (w->shards == MAX_SHARDS)
        return tune_error_set("%s/%s names more than %d files", w->folder, index_name, MAX_SHARDS);
    void *names = realloc(w->name, sizeof *w->name * (size_t)(w->shards + 1));
    if (names)
        w->name = names;
    void *shards = realloc(w->shard, sizeof *w->shard * (size_t)(w->shards + 1));
    if (shards)
        w->shard = shards;
    if (!names || !shards)
        return tune_error_no_memory("opening %s/%s", w->folder, name);
    struct tune_safetensors *f = tune_safetensors_open_in(w->folder, name);
    if (!f)
        return -1;
    snprintf(w->name[w->shards], sizeof *w->name, "%s", name);
    w->shard[w->shards++] = f;
    w->header += tune_safetensors_header_size(f);
    /* files that link to one another would multiply memory */
    if (w->header > TUNE_SAFETENSORS_HEADER)
        return tune_error_set("%s: the headers of the weight files have more than %d bytes together", w->folder,
                              TUNE_SAFETENSORS_HEADER);
    return w->shards - 1;
}

/* Read an entry of weight_map. It must name a file in this folder that holds the tensor. */
static int read_entry(struct tune_weights *w, struct tune_json *j, struct tune_text key)
{
    struct tune_text file;
    TRY(tune_json_string(j, &file));
    if (file.size == 0 || file.size > 255 || memchr(file.data, 0, file.size) || memchr(file.data, '/', file.size) ||
        memchr(file.data, '\\', file.size) || tune_text_equal(file, "..") || tune_text_equal(file, "."))
        return tune_json_fail(j, "\"%.60s\" is not the name of a file in this folder", file.data);
    int shard = open_shard(w, file.data);
    TRY(shard);
    if (!tune_safetensors_find(w->shard[shard], key.data))
        return tune_json_fail(j, "tensor \"%.90s\" is not in %.200s", key.data, file.data);
    return 0;
}

static int read_index(struct tune_weights *w, struct tune_json *j)
{
    struct tune_text key;
    bool found = false;
    int got;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        if (!tune_text_equal(key, "weight_map")) {
            TRY(tune_json_skip(j));
            continue;
        }
        found = true;
        TRY(tune_json_object(j));
        while ((got = tune_json_key(j, &key)) == 1)
            TRY(read_entry(w, j, key));
        TRY(got);
    }
    TRY(got);
    TRY(tune_json_end(j));
    return found && w->shards > 0 ? 0 : tune_json_fail(j, "no \"weight_map\" with files in it");
}

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->shard - y->shard;
}

/* List the tensors of all files by name. A tensor in two files is an error. */
static int index_tensors(struct tune_weights *w)
{
    int64_t n = 0;
    for (int i = 0; i < w->shards; i++)
        n += tune_safetensors_count(w->shard[i]);
    w->named = tune_zeroed((size_t)n + 1, sizeof *w->named, "the names of %s", w->folder);
    if (!w->named)
        return -1;
    for (int i = 0; i < w->shards; i++)
        for (int64_t t = 0; t < tune_safetensors_count(w->shard[i]); t++)
            w->named[w->count++] = (struct named){tune_safetensors_name(w->shard[i], t), tune_safetensors_at(w->shard[i], t), i};
    qsort(w->named, (size_t)n, sizeof *w->named, by_name);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(w->named[i - 1].name, w->named[i].name) == 0)
            return tune_error_set("%s: tensor \"%.90s\" is in %s and in %s; remove one", w->folder, w->named[i].name,
                                  w->name[w->named[i - 1].shard], w->name[w->named[i].shard]);
    return 0;
}

static int open_index(struct tune_weights *w)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    struct tune_json j;
    TRY(tune_path(path, "%s/%s", w->folder, index_name));
    TRY(tune_folder_read(w->folder, index_name, MAX_INDEX, &text, &size));
    tune_json_start(&j, path, text, size, 1);
    int status = read_index(w, &j);
    tune_json_free(&j);
    free(text);
    return status;
}

struct tune_weights *tune_weights_open(const char *folder)
{
    struct tune_weights *w = tune_zeroed(1, sizeof *w, "the weights of %s", folder);
    if (!w)
        return NULL;
    if (tune_path(w->folder, "%s", folder) < 0)
        goto fail;
    if (tune_folder_has(folder, single)) {
        if (open_shard(w, single) < 0 || index_tensors(w) < 0)
            goto fail;
        return w;
    }
    if (!tune_folder_has(folder, index_name)) {
        tune_error_set("%s: no weights: neither %s nor %s%s", folder, single, index_name,
                       tune_folder_has(folder, "pytorch_model.bin")
                           ? "; pytorch_model.bin is not read, convert it to safetensors"
                           : "");
        goto fail;
    }
    if (open_index(w) < 0 || index_tensors(w) < 0)
        goto fail;
    return w;
fail:
    tune_weights_close(w);
    return NULL;
}

static int named_as(const void *name, const void *element)
{
    return strcmp(name, ((const struct named *)element)->name);
}

const struct tune_array *tune_weights_find(const struct tune_weights *w, const char *name)
{
    const struct named *found = bsearch(name, w->named, (size_t)w->count, sizeof *w->named, named_as);
    return found ? found->tensor : NULL;
}

static bool ignored(const char *name, bool tied)
{
    const char *tail = ".rotary_emb.inv_freq";
    size_t n = strlen(name), k = strlen(tail);
    return (n > k && strcmp(name + n - k, tail) == 0) || (tied && strcmp(name, "lm_head.weight") == 0);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuse a tensor without a place in the model: leaving it out would change the numbers. */
static int check_no_strangers(const struct tune_weights *w, const struct tune_parameters *p, bool tied)
{
    const char **names = tune_zeroed((size_t)p->base, sizeof *names, "checking %s", w->folder);
    int status = 0;
    if (!names)
        return -1;
    for (int i = 0; i < p->base; i++)
        names[i] = p->at[i].name;
    qsort(names, (size_t)p->base, sizeof *names, compare_names);
    for (int64_t i = 0; i < w->count && status == 0; i++) {
        const char *name = w->named[i].name;
        if (ignored(name, tied) || bsearch(&name, names, (size_t)p->base, sizeof *names, compare_names))
            continue;
        status = tune_error_set("%s/%s: tensor \"%.90s\" has no place in the model that config.json describes", w->folder,
                                w->name[w->named[i].shard], name);
    }
    free(names);
    return status;
}

int tune_weights_check(const struct tune_weights *w, struct tune_parameters *p, bool tied)
{
    for (int i = 0; i < p->base; i++) {
        struct tune_parameter *r = &p->at[i];
        const struct tune_array *t = tune_weights_find(w, r->name);
        char have[64], want[64];
        if (!t)
            return tune_error_set("%s: no tensor \"%s\"; config.json asks for it%s", w->folder, r->name,
                                  strcmp(r->name, "lm_head.weight") == 0 ? " because \"tie_word_embeddings\" is not true"
                                                                         : "");
        if (t->dtype != TUNE_F32 && t->dtype != TUNE_F16 && t->dtype != TUNE_BF16)
            return tune_error_set("%s: tensor \"%s\" is %s; supported: F32, F16, BF16", w->folder, r->name,
                                  tune_dtype_name(t->dtype));
        if (t->ndim != r->ndim || t->shape[0] != r->shape[0] || (r->ndim == 2 && t->shape[1] != r->shape[1]))
            return tune_error_set("%s: tensor \"%s\" is %s, config.json says %s", w->folder, r->name,
                                  tune_shape_text(t->ndim, t->shape, have, sizeof have),
                                  tune_shape_text(r->ndim, r->shape, want, sizeof want));
        r->read_dtype = t->dtype;
    }
    return check_no_strangers(w, p, tied);
}

/* --- writing --- */

static enum tune_dtype dtype_of(const struct tune_parameter *p, enum tune_dtype as)
{
    return as == TUNE_DTYPES ? p->read_dtype : as;
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

int tune_weights_each(const struct tune_weights_source *source, const struct tune_parameter *p, float *room,
                      int (*put)(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x), void *context)
{
    for (int64_t at = 0; at < p->count; at += TUNE_PIECE) {
        int64_t n = p->count - at < TUNE_PIECE ? p->count - at : TUNE_PIECE;
        TRY(source->read(source->context, p, at, n, room));
        TRY(put(context, p, at, n, room));
    }
    return 0;
}

static int put_nf4(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x)
{
    (void)p;
    (void)at;
    return tune_nf4_write(context, x, n);
}

int tune_weights_nf4(const struct tune_weights_source *source, const struct tune_parameter *p, float *room, void *memory,
                     struct tune_nf4 *q)
{
    struct tune_nf4_writer w = {0};
    int status = tune_nf4_begin(&w, p->name, memory, p->count);
    if (status == 0)
        status = tune_weights_each(source, p, room, put_nf4, &w);
    if (status == 0)
        status = tune_nf4_finish(&w, q);
    tune_nf4_abandon(&w);
    return status;
}

static int read_file(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    const struct tune_array *t = tune_weights_find(context, p->name);
    return tune_convert(out, TUNE_F32, (const char *)t->data + at * tune_dtype_bits(t->dtype) / 8, t->dtype, count);
}

struct tune_weights_source tune_weights_files(const struct tune_weights *w)
{
    return (struct tune_weights_source){read_file, (void *)(uintptr_t)w};
}

struct tune_weights_grown {
    struct tune_weights_source base;
    int64_t rows, columns;
    const struct tune_parameter *of; /* whose mean it is; NULL: nobody's yet */
    float *mean;                     /* [columns] */
};

struct tune_weights_grown *tune_weights_grow(const struct tune_weights_source *base, int64_t rows, int64_t columns)
{
    struct tune_weights_grown *g = tune_zeroed(1, sizeof *g, "more rows of the vocabulary");
    if (g)
        *g = (struct tune_weights_grown){*base, rows, columns, NULL, tune_zeroed((size_t)columns, sizeof *g->mean, "a mean row")};
    if (g && g->mean)
        return g;
    free(g);
    return NULL;
}

void tune_weights_grown_free(struct tune_weights_grown *g)
{
    if (g)
        free(g->mean);
    free(g);
}

/* Compute the mean of the rows that there are, summed in double. */
static int take_mean(struct tune_weights_grown *g, const struct tune_parameter *p)
{
    double *sum = tune_zeroed((size_t)g->columns, sizeof *sum, "the mean of %s", p->name);
    int status = sum ? 0 : -1;
    for (int64_t i = 0; i < g->rows && status == 0; i++) {
        status = g->base.read(g->base.context, p, i * g->columns, g->columns, g->mean);
        for (int64_t k = 0; k < g->columns && status == 0; k++)
            sum[k] += (double)g->mean[k];
    }
    for (int64_t k = 0; k < g->columns && status == 0; k++)
        g->mean[k] = (float)(sum[k] / (double)g->rows);
    g->of = status == 0 ? p : NULL;
    free(sum);
    return status;
}

static int read_grown(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    struct tune_weights_grown *g = context;
    int64_t there = g->rows * g->columns;
    if ((p->role != TUNE_EMBEDDING && p->role != TUNE_OUTPUT) || at + count <= there)
        return g->base.read(g->base.context, p, at, count, out);
    int64_t old = at < there ? there - at : 0;
    TRY(g->of == p ? 0 : take_mean(g, p));
    TRY(old ? g->base.read(g->base.context, p, at, old, out) : 0);
    for (int64_t i = old; i < count; i++)
        out[i] = g->mean[(at + i) % g->columns];
    return 0;
}

struct tune_weights_source tune_weights_grown(struct tune_weights_grown *g)
{
    return (struct tune_weights_source){read_grown, g};
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
                      const struct tune_weights_source *source, float *room)
{
    struct tune_safetensors_writer *f = tune_safetensors_writer_new(path);
    int status = f ? 0 : -1;
    for (int i = 0; i < count && status == 0; i++)
        status = tune_safetensors_writer_declare(f, items[i].p->name, dtype_of(items[i].p, as), items[i].p->ndim,
                                                 items[i].p->shape);
    struct output to = {f, as, room + TUNE_PIECE};
    for (int i = 0; i < count && status == 0; i++)
        status = tune_weights_each(source, items[i].p, room, put, &to);
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
    float *room = items ? tune_zeroed(2 * TUNE_PIECE, sizeof *room, "writing %s", folder) : NULL;
    int status = room ? 0 : -1;
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
            status = write_file(path, items + first, n, as, source, room);
        first += n;
    }
    if (status == 0 && shards > 1)
        status = write_index(folder, items, p->base, shards, total);
    free(items);
    free(room);
    return status;
}

int tune_weights_kept(const char *folder, enum tune_dtype *dtype)
{
    struct tune_model_config config;
    struct tune_parameters table;
    TRY(tune_model_config_read(&config, folder));
    struct tune_weights *w = tune_weights_open(folder);
    TRY(w ? tune_parameters_new(&table, &config) : -1);
    int status = tune_weights_check(w, &table, config.tied);
    *dtype = TUNE_BF16;
    for (int i = 0; i < table.count && status == 0; i++)
        if (table.at[i].ndim == 2 && table.at[i].read_dtype != TUNE_BF16)
            *dtype = TUNE_F32;
    tune_parameters_free(&table);
    tune_weights_close(w);
    return status;
}
