/* safetensors_writer.c - the writer. The header is complete before the first byte of data, so no
 * data is buffered. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "files/file.h"
#include "files/json.h"
#include "files/safetensors.h"
#include "core/try.h"

#define HEADER_MAX 100000000 /* bytes; readers refuse more */

struct tune_safetensors_writer {
    struct tune_file_writer to;
    /* The two parts of the header as JSON text, in memory streams. */
    FILE *metadata, *entries;
    char *metadata_text, *entries_text;
    size_t metadata_size, entries_size;
    char **names, **keys; /* declared names, to detect duplicates */
    size_t count, key_count;
    int64_t declared, written; /* bytes of tensor data */
    bool begun, failed;
};

static int out_of_memory(const struct tune_safetensors_writer *w)
{
    return tune_error_no_memory("the header of %s", w->to.path);
}

/* Write a JSON string like the reference writer, which escapes only what must be escaped. */
static void quote(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 32)
            fprintf(to, "\\u%04x", c);
        else
            putc(c, to);
    }
    putc('"', to);
}

static int utf8(const struct tune_safetensors_writer *w, const char *text)
{
    size_t bad;
    if (tune_utf8_valid(text, strlen(text), &bad))
        return 0;
    return tune_error_set("%s: a name or metadata text to be written is no UTF-8 at its byte %zu", w->to.path, bad);
}

/* Append a string to a list. Its capacity is a power of two. */
static int append(struct tune_safetensors_writer *w, char ***list, size_t *count, const char *text)
{
    if (!tune_array_fit(list, *count, sizeof **list) || !((*list)[*count] = strdup(text)))
        return out_of_memory(w);
    ++*count;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Refuse duplicates in a list. This sorts it. */
static int all_different(const struct tune_safetensors_writer *w, char **list, size_t count, const char *what)
{
    if (count)
        qsort(list, count, sizeof *list, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(list[i - 1], list[i]) == 0)
            return tune_error_set("%s: %s %.200s was declared twice", w->to.path, what, list[i]);
    return 0;
}

struct tune_safetensors_writer *tune_safetensors_writer_new(const char *path)
{
    struct tune_safetensors_writer *w = tune_zeroed(1, sizeof *w, "the header of %s", path);
    if (!w)
        return NULL;
    if (tune_file_begin(&w->to, path) < 0)
        goto fail;
    w->metadata = open_memstream(&w->metadata_text, &w->metadata_size);
    w->entries = open_memstream(&w->entries_text, &w->entries_size);
    if (!w->metadata || !w->entries) {
        out_of_memory(w);
        goto fail;
    }
    if (tune_safetensors_writer_metadata(w, "format", "pt") < 0)
        goto fail;
    return w;
fail:
    tune_safetensors_writer_free(w);
    return NULL;
}

int tune_safetensors_writer_metadata(struct tune_safetensors_writer *w, const char *key, const char *value)
{
    if (w->begun)
        return tune_error_set("%s: metadata %.200s comes after data was written", w->to.path, key);
    TRY(utf8(w, key));
    TRY(utf8(w, value));
    TRY(append(w, &w->keys, &w->key_count, key));
    fputs(w->key_count > 1 ? "," : "", w->metadata);
    quote(w->metadata, key);
    putc(':', w->metadata);
    quote(w->metadata, value);
    return 0;
}

int tune_safetensors_writer_declare(struct tune_safetensors_writer *w, const char *name, enum tune_dtype dtype,
                                    int ndim, const int64_t *shape)
{
    int64_t bits = 1, end;
    bool over = ndim < 0 || ndim > TUNE_MAX_DIMS;
    for (int i = 0; i < ndim && !over; i++)
        over = shape[i] < 0 || __builtin_mul_overflow(bits, shape[i], &bits);
    over = over || __builtin_mul_overflow(bits, (int64_t)tune_dtype_bits(dtype), &bits) || bits % 8 ||
           __builtin_add_overflow(w->declared, bits / 8, &end);
    if (over || w->begun || dtype >= TUNE_NF4 || strcmp(name, "__metadata__") == 0)
        return tune_error_set("%s: tensor %.200s %s", w->to.path, name,
                              w->begun ? "was declared after data was written"
                              : over   ? "has a shape that no file can hold"
                              : dtype >= TUNE_NF4 ? "has a dtype that no file holds: write it as BF16 or F32"
                                       : "has the name of the format's own entry");
    TRY(utf8(w, name));
    TRY(append(w, &w->names, &w->count, name));
    fputs(w->count > 1 ? "," : "", w->entries);
    quote(w->entries, name);
    fprintf(w->entries, ":{\"dtype\":\"%s\",\"shape\":[", tune_dtype_name(dtype));
    for (int i = 0; i < ndim; i++)
        fprintf(w->entries, "%s%" PRId64, i ? "," : "", shape[i]);
    fprintf(w->entries, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", w->declared, end);
    w->declared = end;
    return 0;
}

static int write_header(struct tune_safetensors_writer *w)
{
    static const char head[] = "{\"__metadata__\":{", middle[] = "}", tail[] = "}";
    w->begun = true;
    TRY(all_different(w, w->names, w->count, "tensor"));
    TRY(all_different(w, w->keys, w->key_count, "metadata key"));
    if (fflush(w->metadata) || ferror(w->metadata) || fflush(w->entries) || ferror(w->entries))
        return out_of_memory(w);
    uint64_t used = sizeof head - 1 + w->metadata_size + sizeof middle - 1 + (w->count > 0) + w->entries_size + sizeof tail - 1;
    uint64_t size = (used + 7) / 8 * 8; /* spaces after the header align the data to 8 bytes */
    if (size > HEADER_MAX)
        return tune_error_set("%s: %zu tensors need a header of %" PRIu64
                              " bytes, readers take at most %d; write more files",
                              w->to.path, w->count, size, HEADER_MAX);
    for (int i = 0; i < 8; i++)
        putc((int)(size >> (8 * i) & 255), w->to.file);
    fprintf(w->to.file, "%s%s%s%s%s%s%*s", head, w->metadata_text, middle, w->count ? "," : "", w->entries_text, tail,
            (int)(size - used), "");
    return 0;
}

int tune_safetensors_writer_write(struct tune_safetensors_writer *w, const void *data, int64_t bytes)
{
    if (w->failed) /* the first error gave the reason */
        return -1;
    w->failed = true;
    if (!w->begun)
        TRY(write_header(w));
    if (bytes < 0 || bytes > w->declared - w->written)
        return tune_error_set("%s: more bytes than the %" PRId64 " that were declared", w->to.path, w->declared);
    if (bytes && fwrite(data, 1, (size_t)bytes, w->to.file) != (size_t)bytes)
        return tune_error_set("%s: cannot write: %s", w->to.path, strerror(errno));
    w->written += bytes;
    w->failed = false;
    return 0;
}

int tune_safetensors_writer_finish(struct tune_safetensors_writer *w)
{
    TRY(tune_safetensors_writer_write(w, NULL, 0)); /* writes the header if there is no data */
    if (w->written != w->declared)
        return tune_error_set("%s: %" PRId64 " of %" PRId64 " declared bytes were written", w->to.path, w->written,
                              w->declared);
    w->failed = true; /* nothing may be written after this */
    return tune_file_commit(&w->to);
}

void tune_safetensors_writer_free(struct tune_safetensors_writer *w)
{
    if (!w)
        return;
    tune_file_cancel(&w->to);
    if (w->metadata)
        fclose(w->metadata);
    if (w->entries)
        fclose(w->entries);
    free(w->metadata_text);
    free(w->entries_text);
    for (size_t i = 0; i < w->count; i++)
        free(w->names[i]);
    for (size_t i = 0; i < w->key_count; i++)
        free(w->keys[i]);
    free(w->names);
    free(w->keys);
    free(w);
}
