/* gguf_read.c - the header of a .gguf file, read in one pass with every size checked. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/float16.h"
#include "core/try.h"
#include "files/file.h"
#include "files/gguf.h"

enum { MOST_NAME = 65535 };

struct tune_gguf {
    char path[TUNE_PATH_MAX];
    struct tune_mapping map;
    struct tune_gguf_key *keys;
    struct tune_gguf_tensor *tensors;
    int64_t key_count, tensor_count;
    size_t at; /* bytes read */
    uint64_t alignment;
};

static int cut_short(const struct tune_gguf *g)
{
    return tune_error_set("%s: the header ends too early, or has a size that is too large; the "
                          "file is cut short or no GGUF",
                          g->path);
}

static bool has(const struct tune_gguf *g, uint64_t bytes)
{
    return bytes <= g->map.size - g->at;
}

static int take(struct tune_gguf *g, int bytes, uint64_t *value)
{
    *value = 0;
    if (!has(g, (uint64_t)bytes))
        return cut_short(g);
    for (int i = 0; i < bytes; i++)
        *value |= (uint64_t)(uint8_t)g->map.data[g->at + (size_t)i] << (8 * i);
    g->at += (size_t)bytes;
    return 0;
}

static int take_text(struct tune_gguf *g, struct tune_text *text)
{
    uint64_t size;
    TRY(take(g, 8, &size));
    if (!has(g, size))
        return cut_short(g);
    *text = (struct tune_text){g->map.data + g->at, (size_t)size};
    g->at += (size_t)size;
    return 0;
}

static int take_name(struct tune_gguf *g, struct tune_text *name)
{
    TRY(take_text(g, name));
    if (name->size > 0 && name->size <= MOST_NAME && tune_utf8_valid(name->data, name->size, NULL))
        return 0;
    return tune_error_set("%s: a name of %zu bytes; expected 1 to %d bytes of UTF-8", g->path,
                          name->size, MOST_NAME);
}

static int pass_values(struct tune_gguf *g, const struct tune_gguf_key *k)
{
    struct tune_text text;
    uint64_t bytes;
    if (k->type == TUNE_GGUF_STRING) {
        for (uint64_t i = 0; i < k->count; i++)
            TRY(take_text(g, &text));
        return 0;
    }
    if (__builtin_mul_overflow(k->count, (uint64_t)tune_gguf_type_bytes(k->type), &bytes) ||
        !has(g, bytes))
        return cut_short(g);
    g->at += (size_t)bytes;
    return 0;
}

static int read_key(struct tune_gguf *g, struct tune_gguf_key *k)
{
    uint64_t type;
    TRY(take_name(g, &k->name));
    TRY(take(g, 4, &type));
    k->count = 1;
    k->array = type == TUNE_GGUF_ARRAY;
    if (k->array) {
        TRY(take(g, 4, &type));
        TRY(take(g, 8, &k->count));
    }
    if (type >= TUNE_GGUF_TYPES || type == TUNE_GGUF_ARRAY)
        return tune_error_set("%s: key %.*s has type %" PRIu64 ", which is not known here", g->path,
                              (int)k->name.size, k->name.data, type);
    k->type = (enum tune_gguf_type)type;
    k->values = g->map.data + g->at;
    return pass_values(g, k);
}

static int find_block(uint32_t id)
{
    for (int i = 0; i < TUNE_GGUF_BLOCKS; i++)
        if (tune_gguf_format((enum tune_gguf_block)i)->id == id)
            return i;
    return -1;
}

/* offset: of the data, from the beginning of all data. */
static int read_tensor(struct tune_gguf *g, struct tune_gguf_tensor *t, uint64_t *offset)
{
    uint64_t ndim, size, id;
    TRY(take_name(g, &t->name));
    TRY(take(g, 4, &ndim));
    if (ndim < 1 || ndim > TUNE_GGUF_DIMS)
        return tune_error_set("%s: tensor %.*s has %" PRIu64 " dimensions; expected 1 to %d",
                              g->path, (int)t->name.size, t->name.data, ndim, TUNE_GGUF_DIMS);
    t->ndim = (int)ndim;
    for (int i = t->ndim - 1; i >= 0; i--) {
        TRY(take(g, 8, &size));
        t->shape[i] = (int64_t)size;
    }
    TRY(take(g, 4, &id));
    TRY(take(g, 8, offset));
    t->id = (uint32_t)id;
    t->block = find_block(t->id);
    bool over = false;
    t->bytes = t->block < 0
                   ? 0
                   : tune_gguf_row_bytes((enum tune_gguf_block)t->block, t->shape[t->ndim - 1]);
    for (int i = 0; i < t->ndim; i++)
        over = over || t->shape[i] < 0 ||
               (i < t->ndim - 1 && __builtin_mul_overflow(t->bytes, t->shape[i], &t->bytes));
    if (over || t->bytes < 0)
        return tune_error_set("%s: tensor %.*s has a shape that its type cannot have", g->path,
                              (int)t->name.size, t->name.data);
    return 0;
}

static int place_data(struct tune_gguf *g, const uint64_t *offsets)
{
    uint64_t begin = (g->at + g->alignment - 1) / g->alignment * g->alignment;
    for (int64_t i = 0; i < g->tensor_count; i++) {
        struct tune_gguf_tensor *t = &g->tensors[i];
        uint64_t end, room = g->map.size >= begin ? g->map.size - begin : 0;
        if (offsets[i] % g->alignment != 0 ||
            __builtin_add_overflow(offsets[i], (uint64_t)t->bytes, &end) || end > room)
            return tune_error_set("%s: the data of tensor %.*s are not all in the file, or not "
                                  "aligned to %" PRIu64 " bytes; the file is cut "
                                  "short",
                                  g->path, (int)t->name.size, t->name.data, g->alignment);
        t->offset = (int64_t)(begin + offsets[i]);
        t->data = g->map.data + t->offset;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct tune_text *x = *(const struct tune_text *const *)a,
                           *y = *(const struct tune_text *const *)b;
    int order = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Refuse a name that occurs twice among count elements of `step` bytes, which begin with it. */
static int all_different(const struct tune_gguf *g, const void *elements, int64_t count,
                         size_t step)
{
    const struct tune_text **names =
        tune_zeroed((size_t)count + 1, sizeof *names, "the names of %s", g->path);
    int status = names ? 0 : -1;
    for (int64_t i = 0; i < count && names; i++)
        names[i] = (const void *)((const char *)elements + (size_t)i * step);
    if (names)
        qsort(names, (size_t)count, sizeof *names, by_name);
    for (int64_t i = 1; i < count && status == 0; i++)
        if (by_name(&names[i - 1], &names[i]) == 0)
            status = tune_error_set("%s: %.*s occurs twice", g->path, (int)names[i]->size,
                                    names[i]->data);
    free(names);
    return status;
}

static int read_counts(struct tune_gguf *g)
{
    uint64_t version, tensors, keys;
    if (g->map.size < 4 || memcmp(g->map.data, "GGUF", 4) != 0)
        return tune_error_set("%s: no GGUF file: it does not begin with \"GGUF\"", g->path);
    g->at = 4;
    TRY(take(g, 4, &version));
    if (version != 3)
        return tune_error_set("%s: GGUF version %" PRIu64 "; expected 3", g->path, version);
    TRY(take(g, 8, &tensors));
    TRY(take(g, 8, &keys));
    if (tensors > g->map.size / 32 || keys > g->map.size / 13) /* their smallest sizes */
        return cut_short(g);
    g->tensor_count = (int64_t)tensors;
    g->key_count = (int64_t)keys;
    return 0;
}

static int read_header(struct tune_gguf *g, uint64_t **offsets)
{
    TRY(read_counts(g));
    g->keys = tune_zeroed((size_t)g->key_count + 1, sizeof *g->keys, "the keys of %s", g->path);
    g->tensors =
        tune_zeroed((size_t)g->tensor_count + 1, sizeof *g->tensors, "the tensors of %s", g->path);
    *offsets =
        tune_zeroed((size_t)g->tensor_count + 1, sizeof **offsets, "the tensors of %s", g->path);
    if (!g->keys || !g->tensors || !*offsets)
        return -1;
    for (int64_t i = 0; i < g->key_count; i++)
        TRY(read_key(g, &g->keys[i]));
    for (int64_t i = 0; i < g->tensor_count; i++)
        TRY(read_tensor(g, &g->tensors[i], &(*offsets)[i]));
    TRY(all_different(g, g->keys, g->key_count, sizeof *g->keys));
    TRY(all_different(g, g->tensors, g->tensor_count, sizeof *g->tensors));
    const struct tune_gguf_key *a = tune_gguf_find_key(g, "general.alignment");
    double alignment = a ? tune_gguf_number(a, 0) : 32;
    if (!(alignment >= 8 && alignment <= 1 << 20) || (int64_t)alignment % 8 != 0)
        return tune_error_set("%s: general.alignment is not a multiple of 8", g->path);
    g->alignment = (uint64_t)alignment;
    return place_data(g, *offsets);
}

struct tune_gguf *tune_gguf_open(const char *path)
{
    struct tune_gguf *g = tune_zeroed(1, sizeof *g, "the header of %s", path);
    uint64_t *offsets = NULL;
    if (!g)
        return NULL;
    int status = tune_path(g->path, "%s", path) == 0 && tune_file_map(&g->map, path) == 0
                     ? read_header(g, &offsets)
                     : -1;
    free(offsets);
    if (status == 0)
        return g;
    tune_gguf_close(g);
    return NULL;
}

void tune_gguf_close(struct tune_gguf *g)
{
    if (!g)
        return;
    tune_file_unmap(&g->map);
    free(g->keys);
    free(g->tensors);
    free(g);
}

int64_t tune_gguf_keys(const struct tune_gguf *g)
{
    return g->key_count;
}

int64_t tune_gguf_tensors(const struct tune_gguf *g)
{
    return g->tensor_count;
}

const struct tune_gguf_key *tune_gguf_key(const struct tune_gguf *g, int64_t i)
{
    return &g->keys[i];
}

const struct tune_gguf_tensor *tune_gguf_tensor(const struct tune_gguf *g, int64_t i)
{
    return &g->tensors[i];
}

static bool is_named(struct tune_text have, const char *name)
{
    return have.size == strlen(name) && memcmp(have.data, name, have.size) == 0;
}

const struct tune_gguf_key *tune_gguf_find_key(const struct tune_gguf *g, const char *name)
{
    for (int64_t i = 0; i < g->key_count; i++)
        if (is_named(g->keys[i].name, name))
            return &g->keys[i];
    return NULL;
}

const struct tune_gguf_tensor *tune_gguf_find_tensor(const struct tune_gguf *g, const char *name)
{
    for (int64_t i = 0; i < g->tensor_count; i++)
        if (is_named(g->tensors[i].name, name))
            return &g->tensors[i];
    return NULL;
}

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t bits = 0;
    for (int n = 0; n < bytes; n++)
        bits |= (uint64_t)at[n] << (8 * n);
    return bits;
}

double tune_gguf_number(const struct tune_gguf_key *k, uint64_t i)
{
    int bytes = tune_gguf_type_bytes(k->type);
    if (i >= k->count || bytes == 0)
        return NAN;
    uint64_t bits = number_at((const uint8_t *)k->values + i * (uint64_t)bytes, bytes);
    double number;
    switch (k->type) {
    case TUNE_GGUF_I8: return (int8_t)bits;
    case TUNE_GGUF_I16: return (int16_t)bits;
    case TUNE_GGUF_I32: return (int32_t)bits;
    case TUNE_GGUF_I64: return (double)(int64_t)bits;
    case TUNE_GGUF_FLOAT: return (double)tune_float_from_bits((uint32_t)bits);
    case TUNE_GGUF_DOUBLE: memcpy(&number, &bits, 8); return number;
    default: return (double)bits;
    }
}

struct tune_text tune_gguf_string(const struct tune_gguf_key *k, uint64_t i)
{
    const uint8_t *at = k->values;
    if (i >= k->count || k->type != TUNE_GGUF_STRING)
        return (struct tune_text){NULL, 0};
    for (uint64_t n = 0; n < i; n++)
        at += 8 + number_at(at, 8);
    return (struct tune_text){(const char *)at + 8, (size_t)number_at(at, 8)};
}
