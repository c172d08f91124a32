/* csv.c - read rows of CSV. All fields of a row are in one buffer. */
#include "files/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "files/json.h"
#include "core/try.h"

struct tune_csv {
    FILE *file;
    bool own, begun;
    char separator;
    char *name;
    int64_t line, row_line; /* the current line; the line on which the row began */
    char *bytes;            /* the row, with a NUL after each field */
    size_t used, capacity;
    size_t *begins;         /* [count] offsets of the fields in bytes */
    const char **fields;
    int count;
};

static int fail(const struct tune_csv *csv, int64_t line, const char *what)
{
    return tune_error_set("%s:%lld: %s", csv->name, (long long)line, what);
}

static struct tune_csv *new_csv(FILE *file, const char *name, bool own)
{
    struct tune_csv *csv = calloc(1, sizeof *csv);
    if (csv && (csv->name = strdup(name))) {
        csv->file = file;
        csv->own = own;
        csv->separator = ',';
        csv->line = 1;
        return csv;
    }
    free(csv);
    tune_error_no_memory("a row of CSV");
    return NULL;
}

const char *tune_csv_separator_name(char separator)
{
    return separator == ',' ? "a comma" : separator == ';' ? "a semicolon" : separator == '\t' ? "a tab" : "a bar (|)";
}

struct tune_csv *tune_csv_from(FILE *stream, const char *name)
{
    return new_csv(stream, name, false);
}

struct tune_csv *tune_csv_from_text(const char *text, size_t size, const char *name, int64_t first_line, char separator)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, size, "r"); /* read-only, so the cast is safe */
    struct tune_csv *csv = file ? new_csv(file, name, true) : NULL;
    if (!file)
        tune_error_no_memory("a row of CSV");
    if (!csv) {
        if (file)
            fclose(file);
        return NULL;
    }
    csv->begun = true;
    csv->line = first_line;
    csv->separator = separator;
    return csv;
}

struct tune_csv *tune_csv_open(const char *path)
{
    FILE *file = fopen(path, "re");
    int c = file ? getc(file) : EOF;
    if (!file || (c == EOF && ferror(file))) { /* opening a folder succeeds, but reading it fails */
        tune_error_set("%s: cannot be read: %s", path, strerror(errno));
        if (file)
            fclose(file);
        return NULL;
    }
    ungetc(c, file);
    struct tune_csv *csv = new_csv(file, path, true);
    if (!csv)
        fclose(file);
    return csv;
}

void tune_csv_free(struct tune_csv *csv)
{
    if (!csv)
        return;
    if (csv->own)
        fclose(csv->file);
    free(csv->name);
    free(csv->bytes);
    free(csv->begins);
    free(csv->fields);
    free(csv);
}

int tune_csv_rewind(struct tune_csv *csv)
{
    csv->line = 1;
    csv->begun = false;
    if (fseek(csv->file, 0, SEEK_SET) == 0)
        return 0;
    return tune_error_set("%s: it cannot be read from the begin again (%s); expected a file", csv->name, strerror(errno));
}

int64_t tune_csv_line(const struct tune_csv *csv)
{
    return csv->row_line;
}

/* ---- one row ---- */

static int put_byte(struct tune_csv *csv, int c)
{
    if (csv->used >= TUNE_CSV_ROW_BYTES)
        return fail(csv, csv->row_line, "a row that is too long: no closing quote?");
    if (csv->used == csv->capacity)
        TRY(tune_array_reserve(&csv->bytes, &csv->capacity, csv->used + 1, 1, "a row of CSV"));
    csv->bytes[csv->used++] = (char)c;
    return 0;
}

static int begin_field(struct tune_csv *csv)
{
    size_t count = (size_t)csv->count;
    if (count >= TUNE_CSV_FIELDS)
        return fail(csv, csv->row_line, "a row of too many fields");
    if (!tune_array_fit(&csv->begins, count, sizeof *csv->begins) ||
        !tune_array_fit(&csv->fields, count, sizeof *csv->fields))
        return tune_error_no_memory("a row of CSV");
    csv->begins[csv->count++] = csv->used;
    return 0;
}

/* Read the rest of a quoted field. */
static int read_quoted(struct tune_csv *csv)
{
    for (int c;;) {
        if ((c = getc_unlocked(csv->file)) == EOF)
            return fail(csv, csv->row_line, "a quote that is not closed by the end of the file");
        if (c == '"') {
            if ((c = getc_unlocked(csv->file)) != '"') {
                ungetc(c, csv->file);
                return 0;
            }
        } else if (c == '\n') {
            csv->line++;
        } else if (c == 0) {
            return fail(csv, csv->line, "a NUL byte");
        }
        TRY(put_byte(csv, c));
    }
}

/* Read the LF of a CR LF. A CR alone is an error. */
static int read_return(struct tune_csv *csv)
{
    int c = getc_unlocked(csv->file);
    return c == '\n' ? 0 : fail(csv, csv->line, "a carriage return that ends no line");
}

/* Read a field. 1: another follows; 0: it was the last; -1: error. */
static int read_field(struct tune_csv *csv)
{
    TRY(begin_field(csv));
    int c = getc_unlocked(csv->file);
    bool quoted = c == '"';
    if (quoted) {
        TRY(read_quoted(csv));
        c = getc_unlocked(csv->file);
        if (c != csv->separator && c != '\n' && c != '\r' && c != EOF)
            return tune_error_set("%s:%lld: something behind a closing quote; expected %s or the line's end", csv->name,
                                  (long long)csv->line, tune_csv_separator_name(csv->separator));
    }
    for (; c != csv->separator && c != '\n' && c != '\r' && c != EOF; c = getc_unlocked(csv->file)) {
        if (c == 0)
            return fail(csv, csv->line, "a NUL byte");
        TRY(put_byte(csv, c));
    }
    if (c == EOF && ferror(csv->file))
        return fail(csv, csv->line, strerror(errno));
    if (c == '\r')
        TRY(read_return(csv));
    csv->line += c == '\n' || c == '\r';
    TRY(put_byte(csv, 0));
    return c == csv->separator;
}

/* Skip a byte order mark at the start of the file. */
static int skip_mark(struct tune_csv *csv)
{
    char mark[3];
    if (fread(mark, 1, sizeof mark, csv->file) != sizeof mark || memcmp(mark, "\xef\xbb\xbf", sizeof mark))
        TRY(tune_csv_rewind(csv));
    csv->begun = true;
    return 0;
}

/* Read a row after empty lines. 1: a row; 0: the end; -1: error. */
static int read_row(struct tune_csv *csv)
{
    for (;;) {
        int c = getc_unlocked(csv->file), more;
        if (c == EOF)
            return ferror(csv->file) ? fail(csv, csv->line, strerror(errno)) : 0;
        if (c == '\n' || c == '\r') {
            if (c == '\r')
                TRY(read_return(csv));
            csv->line++;
            continue;
        }
        ungetc(c, csv->file);
        csv->row_line = csv->line;
        csv->used = 0;
        csv->count = 0;
        while ((more = read_field(csv)) == 1)
            ;
        return more < 0 ? -1 : 1;
    }
}

int tune_csv_row(struct tune_csv *csv, const char *const **fields, int *count)
{
    if (!csv->begun)
        TRY(skip_mark(csv));
    int more = read_row(csv);
    if (more <= 0)
        return more;
    for (int i = 0; i < csv->count; i++) {
        csv->fields[i] = csv->bytes + csv->begins[i];
        if (!tune_utf8_valid(csv->fields[i], strlen(csv->fields[i]), NULL))
            return tune_error_set("%s:%lld: no UTF-8%s", csv->name, (long long)csv->row_line,
                                  tune_utf8_advice(csv->fields[i], strlen(csv->fields[i])));
    }
    *fields = csv->fields;
    *count = csv->count;
    return 1;
}

void tune_csv_put(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs_unlocked(text, out);
        return;
    }
    putc_unlocked('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc_unlocked('"', out);
        putc_unlocked(*text, out);
    }
    putc_unlocked('"', out);
}
