/* gguf.c - the writer. Keys and entries are kept in memory until the first byte of data, which
 * comes to a few megabytes of vocabulary. */
#include "files/gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/float16.h"
#include "core/try.h"
#include "files/file.h"

enum { VERSION = 3, ALIGNMENT = 32, HEAD = 24 };

struct entry {
    char name[TUNE_GGUF_NAME];
    int64_t begin, end; /* bytes from the beginning of the data */
};

struct tune_gguf_writer {
    struct tune_file_writer to;
    FILE *keys, *entries; /* memory streams */
    char *keys_text, *entries_text;
    size_t keys_size, entries_size;
    uint64_t key_count;
    char **names; /* of the keys */
    struct entry *tensors;
    size_t count;
    int64_t written; /* bytes of data, gaps included */
    size_t at;       /* the tensor that is being written */
    bool begun, failed;
};

static int out_of_memory(const struct tune_gguf_writer *w)
{
    return tune_error_no_memory("the header of %s", w->to.path);
}

static int64_t aligned(int64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int tune_gguf_type_bytes(enum tune_gguf_type type)
{
    static const int bytes[TUNE_GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return bytes[type];
}

static void put_number(FILE *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(value >> (8 * i) & 255), to);
}

static void put_string(FILE *to, struct tune_text text)
{
    put_number(to, text.size, 8);
    fwrite(text.data, 1, text.size, to);
}

/* Write one number of the host as little-endian bytes. */
static void put_scalar(FILE *to, enum tune_gguf_type type, const void *value)
{
    union {
        uint8_t one;
        uint16_t two;
        uint32_t four;
        uint64_t eight;
    } number;
    int bytes = tune_gguf_type_bytes(type);
    memcpy(&number, value, (size_t)bytes);
    put_number(to,
               bytes == 1   ? number.one
               : bytes == 2 ? number.two
               : bytes == 4 ? number.four
                            : number.eight,
               bytes);
}

struct tune_gguf_writer *tune_gguf_writer_new(const char *path)
{
    struct tune_gguf_writer *w = tune_zeroed(1, sizeof *w, "the header of %s", path);
    if (!w)
        return NULL;
    if (tune_file_begin(&w->to, path) < 0)
        goto fail;
    w->keys = open_memstream(&w->keys_text, &w->keys_size);
    w->entries = open_memstream(&w->entries_text, &w->entries_size);
    if (w->keys && w->entries)
        return w;
    out_of_memory(w);
fail:
    tune_gguf_writer_free(w);
    return NULL;
}

static int begin_key(struct tune_gguf_writer *w, const char *key)
{
    if (w->begun)
        return tune_error_set("%s: key %.200s comes after data was written", w->to.path, key);
    for (uint64_t i = 0; i < w->key_count; i++)
        if (strcmp(w->names[i], key) == 0)
            return tune_error_set("%s: key %.200s was put twice", w->to.path, key);
    if (!tune_array_fit(&w->names, w->key_count, sizeof *w->names) ||
        !(w->names[w->key_count] = strdup(key)))
        return out_of_memory(w);
    w->key_count++;
    put_string(w->keys, (struct tune_text){key, strlen(key)});
    return 0;
}

static int put_value(struct tune_gguf_writer *w, const char *key, enum tune_gguf_type type,
                     const void *value)
{
    const struct tune_text *text = value;
    if (type != TUNE_GGUF_STRING) {
        put_scalar(w->keys, type, value);
        return 0;
    }
    size_t bad;
    if (!tune_utf8_valid(text->data, text->size, &bad))
        return tune_error_set("%s: a text of key %.200s is no UTF-8 at its byte %zu", w->to.path,
                              key, bad);
    put_string(w->keys, *text);
    return 0;
}

int tune_gguf_put(struct tune_gguf_writer *w, const char *key, enum tune_gguf_type type,
                  const void *value)
{
    TRY(begin_key(w, key));
    put_number(w->keys, type, 4);
    return put_value(w, key, type, value);
}

int tune_gguf_put_array(struct tune_gguf_writer *w, const char *key, enum tune_gguf_type type,
                        uint64_t count, const void *values)
{
    size_t step =
        type == TUNE_GGUF_STRING ? sizeof(struct tune_text) : (size_t)tune_gguf_type_bytes(type);
    TRY(begin_key(w, key));
    put_number(w->keys, TUNE_GGUF_ARRAY, 4);
    put_number(w->keys, type, 4);
    put_number(w->keys, count, 8);
    for (uint64_t i = 0; i < count; i++)
        TRY(put_value(w, key, type, (const char *)values + i * step));
    return 0;
}

int tune_gguf_put_u32(struct tune_gguf_writer *w, const char *key, uint32_t value)
{
    return tune_gguf_put(w, key, TUNE_GGUF_U32, &value);
}

int tune_gguf_put_float(struct tune_gguf_writer *w, const char *key, double value)
{
    float number = (float)value;
    return tune_gguf_put(w, key, TUNE_GGUF_FLOAT, &number);
}

int tune_gguf_put_bool(struct tune_gguf_writer *w, const char *key, bool value)
{
    uint8_t byte = value;
    return tune_gguf_put(w, key, TUNE_GGUF_BOOL, &byte);
}

int tune_gguf_put_text(struct tune_gguf_writer *w, const char *key, const char *value)
{
    struct tune_text text = {value, strlen(value)};
    return tune_gguf_put(w, key, TUNE_GGUF_STRING, &text);
}

/* Bytes of a tensor's data. -1 with an error. */
static int64_t data_bytes(const struct tune_gguf_writer *w, const char *name,
                          enum tune_gguf_block block, int ndim, const int64_t *shape)
{
    const struct tune_gguf_format *f = tune_gguf_format(block);
    bool over = ndim < 1 || ndim > TUNE_GGUF_DIMS;
    for (int i = 0; i < ndim && !over; i++)
        over = shape[i] < 1;
    int64_t bytes = over ? 0 : tune_gguf_row_bytes(block, shape[ndim - 1]);
    if (bytes < 0)
        return tune_error_set("%s: rows of tensor %.200s have %" PRId64
                              " numbers, which blocks of %d (%s) do not divide",
                              w->to.path, name, shape[ndim - 1], f->numbers, f->name);
    for (int i = 0; i < ndim - 1 && !over; i++)
        over = __builtin_mul_overflow(bytes, shape[i], &bytes);
    if (over || bytes > INT64_MAX / 4)
        return tune_error_set("%s: tensor %.200s has a shape that no file can hold", w->to.path,
                              name);
    return bytes;
}

int tune_gguf_declare(struct tune_gguf_writer *w, const char *name, enum tune_gguf_block block,
                      int ndim, const int64_t *shape)
{
    int64_t begin = w->count ? aligned(w->tensors[w->count - 1].end) : 0,
            bytes = data_bytes(w, name, block, ndim, shape);
    TRY(bytes);
    if (w->begun)
        return tune_error_set("%s: tensor %.200s was declared after data was written", w->to.path,
                              name);
    if (strlen(name) >= TUNE_GGUF_NAME)
        return tune_error_set("%s: the name %.200s is too long for llama.cpp; expected less than "
                              "%d bytes",
                              w->to.path, name, TUNE_GGUF_NAME);
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->tensors[i].name, name) == 0)
            return tune_error_set("%s: tensor %.200s was declared twice", w->to.path, name);
    if (!tune_array_fit(&w->tensors, w->count, sizeof *w->tensors))
        return out_of_memory(w);
    struct entry *e = &w->tensors[w->count++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->begin = begin;
    e->end = begin + bytes;
    put_string(w->entries, (struct tune_text){name, strlen(name)});
    put_number(w->entries, (uint64_t)ndim, 4);
    for (int i = ndim - 1; i >= 0; i--)
        put_number(w->entries, (uint64_t)shape[i], 8);
    put_number(w->entries, tune_gguf_format(block)->id, 4);
    put_number(w->entries, (uint64_t)begin, 8);
    return 0;
}

static int64_t header_size(struct tune_gguf_writer *w)
{
    if (fflush(w->keys) || ferror(w->keys) || fflush(w->entries) || ferror(w->entries))
        return out_of_memory(w);
    return aligned(HEAD + (int64_t)(w->keys_size + w->entries_size));
}

int64_t tune_gguf_size(struct tune_gguf_writer *w)
{
    int64_t header = header_size(w);
    return header < 0 ? -1 : header + (w->count ? aligned(w->tensors[w->count - 1].end) : 0);
}

static int raw(struct tune_gguf_writer *w, const void *data, int64_t bytes)
{
    if (bytes == 0 || fwrite(data, 1, (size_t)bytes, w->to.file) == (size_t)bytes)
        return 0;
    return tune_error_set("%s: cannot write: %s", w->to.path, strerror(errno));
}

static int zeros(struct tune_gguf_writer *w, int64_t bytes)
{
    static const char zero[ALIGNMENT];
    return raw(w, zero, bytes);
}

static int write_header(struct tune_gguf_writer *w)
{
    int64_t size = header_size(w);
    TRY(size);
    w->begun = true;
    fputs("GGUF", w->to.file);
    put_number(w->to.file, VERSION, 4);
    put_number(w->to.file, w->count, 8);
    put_number(w->to.file, w->key_count, 8);
    TRY(raw(w, w->keys_text, (int64_t)w->keys_size));
    TRY(raw(w, w->entries_text, (int64_t)w->entries_size));
    return zeros(w, size - HEAD - (int64_t)(w->keys_size + w->entries_size));
}

/* Go on to the next tensor at the end of one, and fill the gap between them. */
static int pass_end(struct tune_gguf_writer *w)
{
    while (w->at < w->count && w->written == w->tensors[w->at].end) {
        int64_t gap = aligned(w->written) - w->written;
        TRY(zeros(w, gap));
        w->written += gap;
        w->at++;
    }
    return 0;
}

int tune_gguf_write(struct tune_gguf_writer *w, const void *data, int64_t bytes)
{
    if (w->failed) /* the first error gave the reason */
        return -1;
    w->failed = true;
    if (!w->begun)
        TRY(write_header(w));
    const char *from = data;
    while (bytes > 0) {
        if (w->at == w->count)
            return tune_error_set("%s: more bytes than the %zu tensors that were declared have",
                                  w->to.path, w->count);
        int64_t left = w->tensors[w->at].end - w->written, n = bytes < left ? bytes : left;
        TRY(raw(w, from, n));
        from += n;
        bytes -= n;
        w->written += n;
        TRY(pass_end(w));
    }
    w->failed = false;
    return 0;
}

int tune_gguf_finish(struct tune_gguf_writer *w)
{
    TRY(tune_gguf_write(w, NULL, 0)); /* writes the header if there is no data */
    w->failed = true;                 /* nothing may be written after this */
    if (w->at < w->count)
        return tune_error_set("%s: bytes of tensor %s are missing", w->to.path,
                              w->tensors[w->at].name);
    return tune_file_commit(&w->to);
}

void tune_gguf_writer_free(struct tune_gguf_writer *w)
{
    if (!w)
        return;
    tune_file_cancel(&w->to);
    if (w->keys)
        fclose(w->keys);
    if (w->entries)
        fclose(w->entries);
    free(w->keys_text);
    free(w->entries_text);
    for (uint64_t i = 0; i < w->key_count; i++)
        free(w->names[i]);
    free(w->names);
    free(w->tensors);
    free(w);
}
