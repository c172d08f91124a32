/* weights.c - opening, checking and reading the weight files of a folder. */
#include "models/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "files/folder.h"
#include "files/json.h"
#include "files/safetensors.h"
#include "core/array.h"
#include "core/print.h"
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
    bool embedding_is_head; /* tied, and stored as lm_head.weight alone */
    char left_out[400];
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

/* Read an entry of weight_map. It must name a file in this folder. Which file holds the tensor is looked up in the files,
 * as in transformers: an entry may be wrong. */
static int read_entry(struct tune_weights *w, struct tune_json *j)
{
    struct tune_text file;
    TRY(tune_json_string(j, &file));
    if (file.size == 0 || file.size > 255 || memchr(file.data, 0, file.size) || memchr(file.data, '/', file.size) ||
        memchr(file.data, '\\', file.size) || tune_text_equal(file, "..") || tune_text_equal(file, "."))
        return tune_json_fail(j, "\"%.60s\" is not the name of a file in this folder", file.data);
    return open_shard(w, file.data) < 0 ? -1 : 0;
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
            TRY(read_entry(w, j));
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

static bool same_shape(const struct tune_array *a, const struct tune_array *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim) == 0;
}

static bool same_values(const struct tune_array *a, const struct tune_array *b)
{
    return a->dtype == b->dtype && same_shape(a, b) && memcmp(a->data, b->data, (size_t)tune_array_bytes(a)) == 0;
}

/* List the tensors of all files by name. A tensor in two files is an error, unless both hold the same numbers. */
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
        if (strcmp(w->named[i - 1].name, w->named[i].name) == 0 && !same_values(w->named[i - 1].tensor, w->named[i].tensor))
            return tune_error_set("%s: tensor \"%.90s\" is in %s and in %s, with other numbers; remove one", w->folder, w->named[i].name,
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

static const struct tune_array *find(const struct tune_weights *w, const char *name)
{
    const struct named *found = bsearch(name, w->named, (size_t)w->count, sizeof *w->named, named_as);
    return found ? found->tensor : NULL;
}

static const char prefix[] = "model.", head[] = "lm_head.weight", embedding[] = "model.embed_tokens.weight";
enum { PREFIX = sizeof prefix - 1, NAME = 200 };

/* The name without "model." before it. */
static const char *short_name(const char *name)
{
    return strncmp(name, prefix, PREFIX) == 0 ? name + PREFIX : name;
}

/* The name that transformers reads in place of this one: without "model." before it, or with it. */
static const char *other_name(const char *name, char other[NAME])
{
    const char *without = short_name(name);
    snprintf(other, NAME, "%s%s", without == name ? prefix : "", without);
    return other;
}

const struct tune_array *tune_weights_find(const struct tune_weights *w, const char *name)
{
    char other[NAME];
    name = w->embedding_is_head && strcmp(name, embedding) == 0 ? head : name;
    const struct tune_array *t = find(w, name);
    return t ? t : find(w, other_name(name, other));
}

/* True if two tensors of floats have the same shape and numbers, in whatever dtypes. */
static bool same_numbers(const struct tune_array *a, const struct tune_array *b)
{
    enum { PIECE = 1024 };
    float x[PIECE], y[PIECE];
    int64_t n = tune_array_elements(a);
    bool same = same_shape(a, b);
    if (same_values(a, b))
        return true;
    for (int64_t at = 0; at < n && same; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        same = tune_convert(x, TUNE_F32, (const char *)a->data + at * tune_dtype_bits(a->dtype) / 8, a->dtype, count) == 0 &&
               tune_convert(y, TUNE_F32, (const char *)b->data + at * tune_dtype_bits(b->dtype) / 8, b->dtype, count) == 0;
        for (int64_t i = 0; i < count && same; i++)
            same = x[i] == y[i];
    }
    return same;
}

bool tune_weights_own_head(const char *folder)
{
    struct tune_error why;
    bool own = false;
    if (!tune_folder_has(folder, single) && !tune_folder_has(folder, index_name))
        return false;
    tune_error_save(&why);
    struct tune_weights *w = tune_weights_open(folder);
    const struct tune_array *a = w ? tune_weights_find(w, embedding) : NULL, *b = w ? tune_weights_find(w, head) : NULL;
    if (a && b)
        own = !same_numbers(a, b);
    tune_weights_close(w);
    tune_error_restore(&why); /* whoever reads the weights reports what is wrong with them */
    return own;
}

static bool ignored(const char *name, bool tied)
{
    const char *tail = ".rotary_emb.inv_freq";
    size_t n = strlen(name), k = strlen(tail);
    return (n > k && strcmp(name + n - k, tail) == 0) || (tied && strcmp(short_name(name), head) == 0);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* True if the base has a row of this name, or of the name that is read in its place. */
static bool has_row(const char *const *names, int count, const char *name)
{
    char other[NAME];
    const char *second = other_name(name, other);
    return bsearch(&name, names, (size_t)count, sizeof *names, compare_names) ||
           bsearch(&second, names, (size_t)count, sizeof *names, compare_names);
}

/* True if a tensor is named as a part of a language model is. */
static bool is_of_model(const char *name)
{
    static const char *const parts[] = {"layers.", "embed_tokens.", "norm.", "lm_head."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strncmp(short_name(name), parts[i], strlen(parts[i])) == 0)
            return true;
    return false;
}

/* Report a tensor of a part of the model that config.json does not ask for. Leaving it out would change the numbers. */
static int not_in_model(const struct tune_weights *w, const struct named *n)
{
    return tune_error_set("%s/%s: tensor \"%.90s\" has no place in the model that config.json describes; correct config.json, or "
                          "take the tensor out of the file", w->folder, w->name[n->shard], n->name);
}

/* Check what the files hold beside the base's rows. Other parts, such as a classifier, are left out, as in transformers,
 * and listed. */
static int check_strangers(struct tune_weights *w, const struct tune_parameters *p, bool tied)
{
    const char **names = tune_zeroed((size_t)p->base, sizeof *names, "checking %s", w->folder);
    int status = 0, count = 0;
    if (!names)
        return -1;
    for (int i = 0; i < p->base; i++)
        names[i] = p->at[i].name;
    qsort(names, (size_t)p->base, sizeof *names, compare_names);
    w->left_out[0] = 0;
    for (int64_t i = 0; i < w->count && status == 0; i++) {
        const char *name = w->named[i].name;
        if (ignored(name, tied) || has_row(names, p->base, name) || (w->embedding_is_head && strcmp(name, head) == 0))
            continue;
        if (is_of_model(name))
            status = not_in_model(w, &w->named[i]);
        else if (++count <= 3)
            tune_append_item(w->left_out, sizeof w->left_out, "%.90s", name);
    }
    if (count > 3)
        tune_append(w->left_out, sizeof w->left_out, " and %d more", count - 3);
    free(names);
    return status;
}

/* Report a missing tensor. If the file has it behind another prefix, say so. */
static int missing(const struct tune_weights *w, const char *name)
{
    char other[NAME];
    size_t k = strlen(name);
    for (int64_t i = 0; i < w->count; i++) {
        const char *have = w->named[i].name;
        size_t n = strlen(have), before = n > k ? n - k : 0;
        if (before && strcmp(have + before, name) == 0 && have[before - 1] == '.')
            return tune_error_set("%s: no tensor \"%s\"; the file has it as \"%.90s\": take \"%.*s\" away before the names of all "
                                  "tensors, or save the language model alone", w->folder, name, have, (int)before, have);
    }
    if (strcmp(name, head) == 0)
        return tune_error_set("%s: no tensor \"%s\"; config.json asks for it because \"tie_word_embeddings\" is not true",
                              w->folder, name);
    return tune_error_set("%s: no tensor \"%s\" nor \"%s\"; config.json asks for it", w->folder, name, other_name(name, other));
}

/* Check that a row is not stored under both its names, with other numbers. */
static int check_once(const struct tune_weights *w, const char *name)
{
    char other[NAME];
    const struct tune_array *a = find(w, name), *b = find(w, other_name(name, other));
    if (!a || !b || same_values(a, b))
        return 0;
    return tune_error_set("%s: tensors \"%s\" and \"%s\" are one, and differ; remove one", w->folder, name, other);
}

int tune_weights_check(struct tune_weights *w, struct tune_parameters *p, bool tied)
{
    w->embedding_is_head = false;
    w->embedding_is_head = tied && !tune_weights_find(w, embedding) && tune_weights_find(w, head);
    for (int i = 0; i < p->base; i++) {
        struct tune_parameter *r = &p->at[i];
        const struct tune_array *t = tune_weights_find(w, r->name);
        char have[64], want[64];
        if (!t)
            return missing(w, r->name);
        TRY(check_once(w, r->name));
        if (t->dtype > TUNE_F64)
            return tune_error_set("%s: tensor \"%s\" is %s; supported: F32, F16, BF16, F64", w->folder, r->name,
                                  tune_dtype_name(t->dtype));
        if (t->ndim != r->ndim || t->shape[0] != r->shape[0] || (r->ndim == 2 && t->shape[1] != r->shape[1]))
            return tune_error_set("%s: tensor \"%s\" is %s, config.json says %s", w->folder, r->name,
                                  tune_shape_text(t->ndim, t->shape, have, sizeof have),
                                  tune_shape_text(r->ndim, r->shape, want, sizeof want));
        r->read_dtype = t->dtype == TUNE_F64 ? TUNE_F32 : t->dtype; /* what it is saved as, if as it is read */
    }
    return check_strangers(w, p, tied);
}

int tune_weights_each(const struct tune_weights_source *source, const struct tune_parameter *p, float *buffer,
                      int (*put)(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x), void *context)
{
    for (int64_t at = 0; at < p->count; at += TUNE_PIECE) {
        int64_t n = p->count - at < TUNE_PIECE ? p->count - at : TUNE_PIECE;
        TRY(source->read(source->context, p, at, n, buffer));
        TRY(put(context, p, at, n, buffer));
    }
    return 0;
}

static int put_nf4(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x)
{
    (void)p;
    (void)at;
    return tune_nf4_write(context, x, n);
}

int tune_weights_nf4(const struct tune_weights_source *source, const struct tune_parameter *p, float *buffer, void *memory,
                     struct tune_nf4 *q)
{
    struct tune_nf4_writer w = {0};
    int status = tune_nf4_begin(&w, p->name, memory, p->count);
    if (status == 0)
        status = tune_weights_each(source, p, buffer, put_nf4, &w);
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

/* Compute the mean of the rows that there are, summed in double. */
static int take_mean(struct tune_weights_grown *g, const struct tune_parameter *p)
{
    double *sum = tune_zeroed((size_t)g->columns, sizeof *sum, "the mean of %s", p->name);
    int status = sum ? 0 : -1;
    for (int64_t i = 0; i < g->rows && status == 0; i++) {
        status = g->base.read(g->base.context, p, i * g->columns, g->columns, g->host_mean);
        for (int64_t k = 0; k < g->columns && status == 0; k++)
            sum[k] += (double)g->host_mean[k];
    }
    for (int64_t k = 0; k < g->columns && status == 0; k++)
        g->host_mean[k] = (float)(sum[k] / (double)g->rows);
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
        out[i] = g->host_mean[(at + i) % g->columns];
    return 0;
}

struct tune_weights_source tune_weights_grown(struct tune_weights_grown *g)
{
    return (struct tune_weights_source){read_grown, g};
}

void tune_weights_remark(const struct tune_weights *w, struct tune_model_config *c)
{
    char text[sizeof w->left_out + 100];
    snprintf(text, sizeof text, "tensors that have no place in a language model are not read, and not saved again: %s", w->left_out);
    tune_blank_controls(text);
    if (w->left_out[0])
        tune_model_config_remark(c, text);
}

/* Read a folder's config with all its remarks, and the table of its checked tensors, which the caller frees. */
static int read_table(const char *folder, struct tune_model_config *c, struct tune_parameters *table)
{
    *table = (struct tune_parameters){0};
    TRY(tune_model_config_read(c, folder));
    struct tune_weights *w = tune_weights_open(folder);
    int status = w && tune_parameters_new(table, c) == 0 ? tune_weights_check(w, table, c->tied) : -1;
    if (status == 0)
        tune_weights_remark(w, c);
    tune_weights_close(w);
    return status;
}

int tune_weights_remarks(const char *folder, struct tune_model_config *c)
{
    struct tune_parameters table;
    int status = read_table(folder, c, &table);
    tune_parameters_free(&table);
    return status;
}

int tune_weights_kept(const char *folder, enum tune_dtype *dtype)
{
    struct tune_model_config config;
    struct tune_parameters table;
    int status = read_table(folder, &config, &table);
    *dtype = TUNE_BF16;
    for (int i = 0; i < table.count && status == 0; i++)
        if (table.at[i].ndim == 2 && table.at[i].read_dtype != TUNE_BF16)
            *dtype = TUNE_F32;
    tune_parameters_free(&table);
    return status;
}
