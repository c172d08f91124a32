/* rows.c - walk from row to row, to build the index and to find a row from it. */
#include "datasets/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/rows_walk.h"

enum { ROWS_APART = 16 };
#define WINDOW ((size_t)16 << 20) /* bytes scanned before their pages are given back */

bool tune_rows_are_csv(const struct tune_rows *rows)
{
    return rows->format == TUNE_DATASET_CSV || rows->format == TUNE_DATASET_TSV;
}

int tune_rows_too_long(const struct tune_rows *rows, const struct tune_file_row *row)
{
    return tune_error_set("%s:%lld: the row has %zu bytes, at most %zu are read%s", rows->path,
                          (long long)row->line, row->size, TUNE_ROW_LIMIT,
                          rows->format == TUNE_DATASET_TEXT
                          ? "; part the text into paragraphs by empty lines" : "");
}

const char *tune_rows_end(const struct tune_rows *rows)
{
    return rows->file.data + (rows->list_end ? rows->list_end : rows->file.size);
}

void tune_rows_release(const struct tune_rows *rows)
{
    if (rows->file.size > 0)
        tune_file_release(rows->file.data, tune_rows_end(rows));
}

const char *tune_rows_find(const char *p, const char *end, char c)
{
    while (p < end) {
        size_t n = (size_t)(end - p) < WINDOW ? (size_t)(end - p) : WINDOW;
        const char *found = memchr(p, c, n);
        if (found)
            return found;
        if (n == WINDOW)
            tune_file_release(p, p + n);
        p += n;
    }
    return end;
}

int64_t tune_rows_lines(const char *p, const char *end)
{
    int64_t lines = 0;
    while (p < end) { /* in pieces, so that the inner count fits a small type and vectorizes well */
        const char *stop = end - p > 4096 ? p + 4096 : end;
        unsigned n = 0;
        for (; p < stop; p++)
            n += *p == '\n';
        lines += n;
    }
    return lines;
}

static bool blank(const char *p, const char *end)
{
    return tune_rows_skip(p, end) == end;
}

struct tune_row_place tune_rows_place(const struct tune_rows *rows, const char *p, int64_t line)
{
    return (struct tune_row_place){(uint64_t)(p - rows->file.data), line};
}

int tune_rows_fail(const struct tune_rows *rows, const struct tune_row_place *from, const char *p, const char *what)
{
    int64_t line = from->line + tune_rows_lines(rows->file.data + from->offset, p);
    return tune_error_set("%s:%lld: %s", rows->path, (long long)line, what);
}

/* The walks over lines and paragraphs (rows_walk.h). */

static int next_line(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *p = rows->file.data + at->offset, *end = tune_rows_end(rows);
    int64_t line = at->line;
    for (; p < end; line++) {
        const char *stop = tune_rows_find(p, end, '\n'), *after = stop < end ? stop + 1 : end;
        if (!blank(p, stop)) {
            *row = (struct tune_file_row){p, (size_t)(stop - p), line};
            *at = tune_rows_place(rows, after, line + 1);
            return 1;
        }
        p = after;
    }
    *at = tune_rows_place(rows, end, line);
    return 0;
}

/* True if the line is the mark, perhaps with spaces around it. */
static bool is_mark(const char *p, const char *end, const char *mark, size_t size)
{
    while (p < end && tune_rows_space(*p))
        p++;
    while (end > p && tune_rows_space(end[-1]))
        end--;
    return (size_t)(end - p) == size && memcmp(p, mark, size) == 0;
}

/* The lines up to the next mark, without blank ones at both ends. */
static int next_document(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *p = rows->file.data + at->offset, *end = tune_rows_end(rows), *last = NULL;
    size_t size = strlen(rows->mark);
    int64_t line = at->line;
    for (; p < end; line++) {
        const char *stop = tune_rows_find(p, end, '\n'), *after = stop < end ? stop + 1 : end;
        bool mark = is_mark(p, stop, rows->mark, size);
        if (!mark && !blank(p, stop)) {
            if (!last)
                *row = (struct tune_file_row){p, 0, line};
            last = stop;
        }
        p = after;
        if (mark && last) {
            line++;
            break;
        }
    }
    *at = tune_rows_place(rows, p, line);
    if (!last)
        return 0;
    while (last > row->text && tune_rows_space(last[-1]))
        last--;
    row->size = (size_t)(last - row->text);
    return 1;
}

/* Set the mark to the first of the candidates that is a line of the file. */
static void find_mark(struct tune_rows *rows, const char *end_token)
{
    const char *marks[] = {end_token, "<|endoftext|>"}, *end = tune_rows_end(rows);
    for (int i = 0; i < 2 && !rows->mark[0]; i++) {
        size_t size = marks[i] ? strlen(marks[i]) : 0;
        if (size == 0 || size >= sizeof rows->mark)
            continue;
        for (const char *p = rows->file.data; p < end;) {
            const char *stop = tune_rows_find(p, end, '\n');
            if (is_mark(p, stop, marks[i], size)) {
                memcpy(rows->mark, marks[i], size + 1);
                break;
            }
            p = stop < end ? stop + 1 : end;
        }
    }
}

static int next_paragraph(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *p, *end = tune_rows_end(rows), *last;
    struct tune_file_row line;
    if (next_line(rows, at, row) == 0)
        return 0;
    last = row->text + row->size;
    for (p = rows->file.data + at->offset; p < end; p = rows->file.data + at->offset) {
        const char *stop = tune_rows_find(p, end, '\n');
        if (blank(p, stop))
            break;
        next_line(rows, at, &line);
        last = line.text + line.size;
    }
    while (last > row->text && tune_rows_space(last[-1]))
        last--;
    row->size = (size_t)(last - row->text);
    return 1;
}

static int next_row(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    switch (rows->format) {
    case TUNE_DATASET_JSON: return tune_rows_next_element(rows, at, row);
    case TUNE_DATASET_TEXT: return rows->mark[0] ? next_document(rows, at, row) : next_paragraph(rows, at, row);
    case TUNE_DATASET_CSV:
    case TUNE_DATASET_TSV: return tune_rows_next_record(rows, at, row);
    default: return rows->objects ? tune_rows_next_object(rows, at, row) : next_line(rows, at, row);
    }
}

/* Choose the format by the name's ending. A .json file that begins with '{' is taken as JSONL,
 * because many are. So is a file whose ending is unknown (my-rows, /dev/stdin, rows.jsonl.1). */
static int settle_format(struct tune_rows *rows, const char *first)
{
    static const char *const unread[] = {".arrow", ".gz", ".zst", ".zip", ".bz2", ".xz"};
    const char *name = strrchr(rows->path, '/'), *ending = strrchr(name ? name : rows->path, '.');
    if (rows->format != TUNE_DATASET_BY_NAME)
        return 0;
    bool object = first < tune_rows_end(rows) && *first == '{';
    rows->format = object && (!ending || strcasecmp(ending, ".txt") != 0) ? TUNE_DATASET_JSONL : TUNE_DATASET_TEXT;
    if (!ending)
        return 0;
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        if (strcasecmp(ending, unread[i]) != 0)
            continue;
        return tune_error_set("%s: %s files are not read; expected .jsonl (one object a line), "
                              ".json (an array of objects), .csv or .tsv (a first line of column "
                              "names), .txt (paragraphs) or .parquet", rows->path, ending);
    }
    if (strcasecmp(ending, ".jsonl") == 0 || strcasecmp(ending, ".ndjson") == 0)
        rows->format = TUNE_DATASET_JSONL;
    else if (strcasecmp(ending, ".json") == 0)
        rows->format = object ? TUNE_DATASET_JSONL : TUNE_DATASET_JSON;
    else if (strcasecmp(ending, ".csv") == 0)
        rows->format = TUNE_DATASET_CSV;
    else if (strcasecmp(ending, ".tsv") == 0)
        rows->format = TUNE_DATASET_TSV;
    return 0;
}

static bool is_ascii(char c)
{
    return c && !(c & 0x80);
}

/* True if the first bytes are those of UTF-16: a byte order mark, or two letters beside zeros. */
static bool is_utf16(const char *p, size_t size)
{
    if (size >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0))
        return true;
    return size >= 4 && ((!p[0] && is_ascii(p[1]) && !p[2] && is_ascii(p[3])) || (is_ascii(p[0]) && !p[1] && is_ascii(p[2]) && !p[3]));
}

/* Skip the byte order mark and, in a JSON file, the opening bracket. */
static int begin(struct tune_rows *rows, struct tune_row_place *at)
{
    const char *p = rows->file.data, *end = tune_rows_end(rows), *list = NULL;
    if (is_utf16(p, rows->file.size))
        return tune_error_set("%s: is UTF-16 by its first bytes, expected UTF-8; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)",
                              rows->path);
    if (rows->file.size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    *at = tune_rows_place(rows, p, 1);
    p = tune_rows_skip(p, end);
    TRY(settle_format(rows, p));
    if (rows->format == TUNE_DATASET_JSONL && p < end && *p == '{' && !rows->copied && (list = tune_rows_settle_object(rows, p))) {
        rows->format = TUNE_DATASET_JSON;
        end = tune_rows_end(rows);
        p = list;
    }
    if (rows->format != TUNE_DATASET_JSON || p == end)
        return 0;
    if (*p != '[')
        return tune_rows_fail(rows, at, p, "expected '[': a .json file holds an array of objects (one object a line is .jsonl)");
    p = tune_rows_skip(p + 1, end);
    if (p == end)
        return tune_rows_fail(rows, at, p, "the file ends inside its array: no closing bracket");
    if (*p == ']' && blank(p + 1, end))
        p = end; /* an empty array has no rows */
    *at = tune_rows_place(rows, p, 1 + tune_rows_lines(rows->file.data, p));
    return 0;
}

static int index_rows(struct tune_rows *rows, const char *end_token)
{
    struct tune_row_place at, here;
    struct tune_file_row row;
    int got;
    uint64_t released = 0;
    TRY(begin(rows, &at));
    if (rows->format == TUNE_DATASET_TEXT)
        find_mark(rows, end_token);
    if (tune_rows_are_csv(rows)) {
        tune_rows_settle_separator(rows, &at);
        TRY(tune_rows_next_record(rows, &at, &rows->header));
    }
    while (here = at, (got = next_row(rows, &at, &row)) == 1) {
        if (rows->count % ROWS_APART == 0) {
            size_t place = (size_t)(rows->count / ROWS_APART);
            if (!tune_array_fit(&rows->places, place, sizeof *rows->places))
                return tune_error_no_memory("the index of the rows of %s", rows->path);
            rows->places[place] = here;
        }
        rows->count++;
        if (row.size > rows->longest && row.size <= TUNE_ROW_LIMIT)
            rows->longest = row.size;
        if (at.offset - released > WINDOW) {
            tune_file_release(rows->file.data + released, rows->file.data + at.offset);
            released = at.offset;
        }
    }
    TRY(got);
    if (rows->count > 0)
        return 0;
    if (rows->copied)
        return tune_error_set("%s: has no rows, expected at least one", rows->path);
    return tune_error_set("%s: has no rows (%zu bytes), expected at least one", rows->path,
                          rows->file.size);
}

/* Map the file, or a copy of its rows. */
static int map_rows(struct tune_rows *rows, double expansion)
{
    TRY(tune_shards_find(&rows->files, rows->name));
    TRY(tune_path(rows->path, "%s", rows->files.count == 1 ? rows->files.paths[0] : rows->name));
    TRY(tune_shards_stamp(&rows->files, &rows->stamp));
    rows->copied = rows->format == TUNE_DATASET_BY_NAME && tune_rows_are_parquet(rows->files.paths[0]);
    if (!rows->copied)
        return tune_file_map(&rows->file, rows->path);
    rows->format = TUNE_DATASET_JSONL;
    return tune_rows_copy_parquet(&rows->files, (int64_t)rows->stamp.size, expansion, &rows->file);
}

int tune_rows_open(struct tune_rows *rows, const char *path, const struct tune_dataset_options *options)
{
    memset(rows, 0, sizeof *rows);
    rows->format = options->format;
    if (tune_path(rows->name, "%s", path) < 0 || map_rows(rows, options->expansion) < 0 || index_rows(rows, options->end_token) < 0) {
        tune_rows_close(rows);
        return -1;
    }
    return 0;
}

/* A file in memory, because pages of a mapping may be given back at any time. */
static int map_text(struct tune_mapping *m, const char *name, const char *text, size_t size)
{
    int fd = memfd_create("rows", MFD_CLOEXEC);
    if (fd < 0)
        return tune_error_cannot("%s: no file in memory for its rows: %s", name, strerror(errno));
    int status = write(fd, text, size) == (ssize_t)size
                     ? tune_file_map_open(m, fd, name, size)
                     : tune_error_cannot("%s: no memory for its rows: %s", name, strerror(errno));
    close(fd);
    return status;
}

int tune_rows_open_text(struct tune_rows *rows, const char *name, const char *text, size_t size)
{
    *rows = (struct tune_rows){.format = TUNE_DATASET_JSONL, .copied = true};
    if (tune_path(rows->name, "%s", name) == 0 && tune_path(rows->path, "%s", name) == 0 &&
        map_text(&rows->file, name, text, size) == 0 && index_rows(rows, NULL) == 0)
        return 0;
    tune_rows_close(rows);
    return -1;
}

void tune_rows_close(struct tune_rows *rows)
{
    free(rows->places);
    tune_shards_free(&rows->files);
    tune_file_unmap(&rows->file);
    memset(rows, 0, sizeof *rows);
}

int tune_rows_uncut(const struct tune_rows *rows)
{
    struct stat st;
    if (rows->copied || stat(rows->path, &st) < 0 || (size_t)st.st_size >= rows->file.size)
        return 0; /* removed or replaced whole: the mapping keeps the old file */
    return tune_error_set("%s was cut from %zu to %lld bytes while it was being read; put the "
                          "whole file back", rows->path, rows->file.size, (long long)st.st_size);
}

void tune_rows_next(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    next_row(rows, at, row); /* cannot fail: each was found when opening */
}

void tune_rows_seek(const struct tune_rows *rows, int64_t i, struct tune_row_place *at)
{
    struct tune_file_row row;
    *at = rows->places[i / ROWS_APART];
    for (int64_t k = i - i % ROWS_APART; k < i; k++)
        tune_rows_next(rows, at, &row);
}

struct tune_file_row tune_rows_get(const struct tune_rows *rows, int64_t i)
{
    struct tune_file_row row = {0};
    struct tune_row_place at;
    tune_rows_seek(rows, i, &at);
    tune_rows_next(rows, &at, &row);
    return row;
}
