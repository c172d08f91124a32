/* safetensors.c - the reader. Nothing in the header is used until all of it is checked:
 *
 *     parse every entry  ->  sort by range: no gaps, no overlap, the last ends with the file
 *                        ->  sort by name: no duplicates
 *
 * This takes two sorts and one pass, so a hostile header cannot cost more. Decoded strings are
 * never longer than their spelling, so one arena of the header's size holds all names and never
 * moves. */
#include "files/safetensors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"
#include "files/file.h"
#include "files/folder.h"
#include "files/json.h"
#include "core/try.h"

struct entry {
    struct tune_array tensor;
    const char *name;    /* in the arena */
    uint64_t begin, end; /* range in the data */
};

struct pair {
    const char *key, *value; /* in the arena */
};

struct tune_safetensors {
    struct tune_mapping map;
    uint64_t header; /* bytes */
    char *arena; /* strings, each with a NUL */
    size_t arena_used;
    struct entry *entries; /* in file order */
    struct entry **by_name;
    size_t count;
    struct pair *metadata; /* sorted by key */
    size_t pairs;
    bool has_metadata;
};

/* The start of an untrusted name, safe for a terminal. */
static const char *shown(char out[104], const char *name)
{
    size_t n = strlen(name), i;
    for (i = 0; i < n && i < 96; i++)
        out[i] = (unsigned char)name[i] < 32 || name[i] == 127 ? '?' : name[i];
    /* do not cut inside a character */
    while (i < n && i > 0 && ((unsigned char)name[i] & 0xC0) == 0x80)
        i--;
    strcpy(out + i, i < n ? "..." : "");
    return out;
}

/* Copy text to the arena. NULL if it contains a NUL. */
static const char *copy_text(struct tune_safetensors *f, struct tune_text text)
{
    if (memchr(text.data, 0, text.size))
        return NULL;
    char *to = f->arena + f->arena_used;
    memcpy(to, text.data, text.size);
    to[text.size] = 0;
    f->arena_used += text.size + 1;
    return to;
}

/* Make room for one more element in an array. */
static int grow_array(void *array, size_t count, size_t size)
{
    return tune_array_fit(array, count, size)
               ? 0
               : tune_error_no_memory("the header of a safetensors file: %zu entries", count);
}

static int read_metadata(struct tune_safetensors *f, struct tune_json *j)
{
    struct tune_text text;
    int more;
    if (f->has_metadata)
        return tune_json_fail(j, "__metadata__ twice");
    f->has_metadata = true;
    if (tune_json_peek(j) == TUNE_JSON_NULL)
        return tune_json_null(j);
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &text)) == 1) {
        TRY(grow_array(&f->metadata, f->pairs, sizeof *f->metadata));
        struct pair *p = &f->metadata[f->pairs];
        if (!(p->key = copy_text(f, text)))
            return tune_json_fail(j, "a key of __metadata__ holds a NUL character");
        TRY(tune_json_string(j, &text));
        if (!(p->value = copy_text(f, text)))
            return tune_json_fail(j, "a value of __metadata__ holds a NUL character");
        f->pairs++;
    }
    return more;
}

static int read_dtype(struct tune_json *j, struct tune_array *t)
{
    struct tune_text text;
    TRY(tune_json_string(j, &text));
    int dtype = tune_dtype_from(text.data);
    /* Accept only the format's own names; tune_dtype_from also knows PyTorch's. */
    if (dtype < 0 || !tune_text_equal(text, tune_dtype_name(dtype))) {
        char name[104];
        return tune_json_fail(j, "unknown dtype \"%s\"; expected F32, BF16, F16 or another of the format's names",
                              shown(name, text.data));
    }
    t->dtype = dtype;
    return 0;
}

static int read_shape(struct tune_json *j, struct tune_array *t)
{
    int more;
    t->ndim = 0;
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        uint64_t n;
        if (t->ndim == TUNE_MAX_DIMS)
            return tune_json_fail(j, "a shape of more than %d dimensions", TUNE_MAX_DIMS);
        TRY(tune_json_u64(j, &n));
        if (n > INT64_MAX)
            return tune_json_fail(j, "dimension %" PRIu64 " is too large", n);
        t->shape[t->ndim++] = (int64_t)n;
    }
    return more;
}

static int read_offsets(struct tune_json *j, struct entry *e)
{
    uint64_t *offsets[2] = {&e->begin, &e->end};
    int n = 0, more;
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        if (n == 2)
            return tune_json_fail(j, "data_offsets has more than two numbers");
        TRY(tune_json_u64(j, offsets[n++]));
    }
    if (more == 0 && n != 2)
        return tune_json_fail(j, "data_offsets has %d numbers, expected two: begin and end", n);
    return more;
}

/* Bytes of a tensor. Overflow of each product is checked, in the shape's order, as the format
 * requires. */
static int sized(struct tune_json *j, const struct entry *e, uint64_t *bytes)
{
    const struct tune_array *t = &e->tensor;
    int64_t n = 1;
    bool over = false;
    char text[104];
    for (int i = 0; i < t->ndim; i++)
        over |= __builtin_mul_overflow(n, t->shape[i], &n);
    over |= __builtin_mul_overflow(n, (int64_t)tune_dtype_bits(t->dtype), &n);
    if (over)
        return tune_json_fail(j, "tensor %s: the size of its shape overflows", shown(text, e->name));
    if (n % 8)
        return tune_json_fail(j, "tensor %s: its %s elements do not fill whole bytes", shown(text, e->name),
                              tune_dtype_name(t->dtype));
    *bytes = (uint64_t)n / 8;
    return 0;
}

static int read_entry(struct tune_safetensors *f, struct tune_json *j, struct tune_text key)
{
    TRY(grow_array(&f->entries, f->count, sizeof *f->entries));
    struct entry *e = &f->entries[f->count++];
    *e = (struct entry){.name = copy_text(f, key)};
    if (!e->name)
        return tune_json_fail(j, "a tensor's name holds a NUL character");
    bool dtype = false, shape = false, offsets = false;
    char text[104];
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        bool *seen = tune_text_equal(key, "dtype") ? &dtype
                   : tune_text_equal(key, "shape") ? &shape
                   : tune_text_equal(key, "data_offsets") ? &offsets : NULL;
        if (!seen) {
            TRY(tune_json_skip(j));
            continue;
        }
        if (*seen)
            return tune_json_fail(j, "tensor %s: key \"%s\" twice", shown(text, e->name), key.data);
        *seen = true;
        TRY(seen == &dtype ? read_dtype(j, &e->tensor) : seen == &shape ? read_shape(j, &e->tensor) : read_offsets(j, e));
    }
    TRY(more);
    if (!dtype || !shape || !offsets)
        return tune_json_fail(j, "tensor %s: no \"%s\"", shown(text, e->name),
                              !dtype ? "dtype" : !shape ? "shape" : "data_offsets");
    uint64_t bytes = 0;
    TRY(sized(j, e, &bytes));
    if (e->end < e->begin)
        return tune_json_fail(j, "tensor %s: data_offsets end at %" PRIu64 ", before they begin at %" PRIu64,
                              shown(text, e->name), e->end, e->begin);
    if (e->end - e->begin != bytes) {
        char dims[128];
        return tune_json_fail(j, "tensor %s: data_offsets hold %" PRIu64 " bytes, but %s%s needs %" PRIu64,
                              shown(text, e->name), e->end - e->begin, tune_dtype_name(e->tensor.dtype),
                              tune_shape_text(e->tensor.ndim, e->tensor.shape, dims, sizeof dims), bytes);
    }
    return 0;
}

static int read_header(struct tune_safetensors *f, struct tune_json *j)
{
    struct tune_text key;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1)
        TRY(tune_text_equal(key, "__metadata__") ? read_metadata(f, j) : read_entry(f, j, key));
    TRY(more);
    return tune_json_end(j);
}

static int by_range(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_key(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Check that every byte of the data belongs to exactly one tensor, then set the views. */
static int set_views(struct tune_safetensors *f, const char *path, const char *data, uint64_t size)
{
    char text[104];
    uint64_t at = 0;
    if (f->count)
        qsort(f->entries, f->count, sizeof *f->entries, by_range);
    for (size_t i = 0; i < f->count; i++) {
        struct entry *e = &f->entries[i];
        if (e->begin != at)
            return tune_error_set("%s: tensor %s begins at byte %" PRIu64 " of the data, where %" PRIu64
                                  " was expected: %s; the file is damaged, get it again",
                                  path, shown(text, e->name), e->begin, at,
                                  e->begin < at ? "tensors overlap" : "bytes that belong to no tensor");
        at = e->end;
        if (at > size)
            break; /* so no later offset can overflow */
        e->tensor.data = (void *)(data + e->begin);
    }
    if (at != size)
        return tune_error_set("%s: the header describes %s%" PRIu64 " bytes of data, the file has %" PRIu64 ": %s", path,
                              at > size ? "at least " : "", at, size,
                              at > size ? "it was cut short, get it again" : "unknown bytes follow the last tensor");
    return 0;
}

static int index_names(struct tune_safetensors *f, const char *path)
{
    char text[104];
    f->by_name = tune_zeroed(f->count + 1, sizeof *f->by_name, "%zu tensor names of %s", f->count, path);
    if (!f->by_name)
        return -1;
    for (size_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->entries[i];
    qsort(f->by_name, f->count, sizeof *f->by_name, by_name);
    for (size_t i = 1; i < f->count; i++)
        if (strcmp(f->by_name[i - 1]->name, f->by_name[i]->name) == 0)
            return tune_error_set("%s: tensor %s twice", path, shown(text, f->by_name[i]->name));
    if (f->pairs)
        qsort(f->metadata, f->pairs, sizeof *f->metadata, by_key);
    for (size_t i = 1; i < f->pairs; i++)
        if (strcmp(f->metadata[i - 1].key, f->metadata[i].key) == 0)
            return tune_error_set("%s: key %s of __metadata__ twice", path, shown(text, f->metadata[i].key));
    return 0;
}

/* Read the header's length from the start of the file. */
static int read_length(struct tune_safetensors *f, int fd, const char *path, size_t size)
{
    unsigned char field[8];
    uint64_t n = 0;
    if (size < 8)
        return tune_error_set("%s: %zu bytes are too short for a safetensors file", path, size);
    TRY(tune_file_read_at(fd, path, 0, field, 8));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | field[i];
    if (n > TUNE_SAFETENSORS_HEADER)
        return tune_error_set("%s: a header of %" PRIu64 " bytes, more than the format's %d; is it a safetensors file?",
                              path, n, TUNE_SAFETENSORS_HEADER);
    if (n > size - 8)
        return tune_error_set("%s: a header of %" PRIu64
                              " bytes in a file of %zu: it was cut short, or is no safetensors file",
                              path, n, size);
    f->header = n;
    return 0;
}

/* Read the header. It is not mapped, so that truncation is an error and not a signal. */
static int read_text(struct tune_safetensors *f, int fd, const char *path)
{
    struct tune_json j;
    char *text = tune_zeroed(f->header + 1, 1, "the header of %s, %" PRIu64 " bytes", path, f->header);
    f->arena = text ? tune_zeroed(f->header + 1, 1, "the names in the header of %s", path) : NULL;
    int status = f->arena ? tune_file_read_at(fd, path, 8, text, f->header) : -1;
    tune_json_start(&j, path, text, f->header, 1);
    if (status == 0)
        status = read_header(f, &j);
    tune_json_free(&j);
    free(text);
    return status;
}

static int read_file(struct tune_safetensors *f, int fd, const char *path, size_t size)
{
    TRY(read_length(f, fd, path, size));
    TRY(read_text(f, fd, path));
    TRY(tune_file_map_open(&f->map, fd, path, size));
    TRY(set_views(f, path, f->map.data + 8 + f->header, size - 8 - f->header));
    return index_names(f, path);
}

/* Open from fd, a file of size bytes, and close fd. fd -1: opening it failed. */
static struct tune_safetensors *open_at(int fd, const char *path, size_t size)
{
    struct tune_safetensors *f = fd < 0 ? NULL : tune_zeroed(1, sizeof *f, "the header of %s", path);
    int status = !f ? -1 : read_file(f, fd, path, size);
    if (fd >= 0)
        close(fd);
    if (status == 0)
        return f;
    tune_safetensors_close(f);
    return NULL;
}

struct tune_safetensors *tune_safetensors_open(const char *path)
{
    size_t size = 0;
    int fd = tune_file_open(path, &size);
    return open_at(fd, path, size);
}

struct tune_safetensors *tune_safetensors_open_in(const char *folder, const char *name)
{
    struct tune_folder_file file;
    return tune_folder_open(&file, folder, name) < 0 ? NULL : open_at(file.fd, file.path, file.size);
}

void tune_safetensors_close(struct tune_safetensors *f)
{
    if (!f)
        return;
    tune_file_unmap(&f->map);
    free(f->arena);
    free(f->entries);
    free(f->by_name);
    free(f->metadata);
    free(f);
}

int64_t tune_safetensors_header_size(const struct tune_safetensors *f)
{
    return (int64_t)f->header;
}

int64_t tune_safetensors_count(const struct tune_safetensors *f)
{
    return (int64_t)f->count;
}

const struct tune_array *tune_safetensors_at(const struct tune_safetensors *f, int64_t i)
{
    return i >= 0 && (uint64_t)i < f->count ? &f->entries[i].tensor : NULL;
}

const char *tune_safetensors_name(const struct tune_safetensors *f, int64_t i)
{
    return i >= 0 && (uint64_t)i < f->count ? f->entries[i].name : NULL;
}

const struct tune_array *tune_safetensors_find(const struct tune_safetensors *f, const char *name)
{
    struct entry wanted = {.name = name}, *key = &wanted;
    struct entry **found = bsearch(&key, f->by_name, f->count, sizeof *f->by_name, by_name);
    return found ? &(*found)->tensor : NULL;
}

const char *tune_safetensors_metadata(const struct tune_safetensors *f, const char *key)
{
    struct pair wanted = {.key = key};
    const struct pair *found = f->pairs ? bsearch(&wanted, f->metadata, f->pairs, sizeof *f->metadata, by_key) : NULL;
    return found ? found->value : NULL;
}
