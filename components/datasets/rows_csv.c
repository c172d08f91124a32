/* rows_csv.c - the walk over records of CSV and TSV, and the character that parts their fields. */
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "datasets/rows_walk.h"

enum { FIRST_RECORDS = 20 };

/* The end of the quoted field that begins before p, after its closing quote. NULL: it has none. */
static const char *skip_field(const char *p, const char *end)
{
    while ((p = tune_rows_find(p, end, '"')) < end) {
        if (p + 1 == end || p[1] != '"')
            return p + 1;
        p += 2;
    }
    return NULL;
}

/* A quote counts only at the start of a field, as in files/csv.h. */
int tune_rows_next_record(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *p = rows->file.data + at->offset, *end = tune_rows_end(rows);
    int64_t line = at->line;
    for (; p < end && (*p == '\n' || (*p == '\r' && (p + 1 == end || p[1] == '\n'))); line++)
        p += *p == '\n' || p + 1 == end ? 1 : 2;
    if (p == end) {
        *at = tune_rows_place(rows, end, line);
        return 0;
    }
    const char *stop = tune_rows_find(p, end, '\n'), *quote = tune_rows_find(p, stop, '"');
    while (quote < stop) {
        const char *next = quote + 1;
        if (quote == p || quote[-1] == rows->separator) {
            if (!(next = skip_field(quote + 1, end)))
                return tune_rows_fail(rows, at, quote, "a quote that is not closed by the end of the file");
            if (next > stop)
                stop = tune_rows_find(next, end, '\n');
        }
        quote = tune_rows_find(next, stop, '"');
    }
    *row = (struct tune_file_row){p, (size_t)(stop - p) - (stop[-1] == '\r'), line};
    *at = tune_rows_place(rows, stop < end ? stop + 1 : end, line + tune_rows_lines(p, stop < end ? stop + 1 : end));
    return 1;
}

/* ---- the separator ---- */

static int count_fields(const struct tune_file_row *row, char separator)
{
    const char *p = row->text, *end = p + row->size;
    for (int count = 1;; count++) {
        if (p < end && *p == '"' && !(p = skip_field(p + 1, end)))
            return 0;
        while (p < end && *p != separator)
            p++;
        if (p == end)
            return count;
        p++;
    }
}

/* How the first records part by a separator. */
struct parting {
    int columns;       /* fields of the first record, the heading */
    int records, same; /* records after it, and those with as many fields */
};

static struct parting part(struct tune_rows *rows, struct tune_row_place at, char separator)
{
    struct parting parts = {0};
    struct tune_file_row row;
    rows->separator = separator;
    for (int i = 0, more; i <= FIRST_RECORDS && (more = tune_rows_next_record(rows, &at, &row)) != 0; i++) {
        int fields = more < 0 ? 0 : count_fields(&row, separator);
        if (i == 0) {
            parts.columns = fields;
        } else {
            parts.records++;
            parts.same += fields == parts.columns;
        }
        if (more < 0)
            break;
    }
    tune_error_clear(); /* met again when the rows are read */
    return parts;
}

void tune_rows_settle_separator(struct tune_rows *rows, struct tune_row_place *at)
{
    const char usual = rows->format == TUNE_DATASET_TSV ? '\t' : ',';
    struct tune_row_place first = *at;
    struct tune_file_row row;
    rows->separator = usual;
    if (tune_rows_next_record(rows, &first, &row) == 1 && row.size == 5 && strncasecmp(row.text, "sep=", 4) == 0 &&
        row.text[4] && strchr(TUNE_SEPARATORS, row.text[4])) {
        rows->separator = row.text[4];
        *at = first;
        return;
    }
    struct parting now = part(rows, *at, usual);
    char best = usual;
    bool fits = now.columns > 1 && now.same == now.records;
    int most = 0;
    for (const char *c = TUNE_SEPARATORS; *c && !fits; c++) {
        struct parting other = part(rows, *at, *c);
        /* A heading that parts by the usual one gives way only to one that parts all records. */
        bool better = other.columns > 1 && other.same > most && (now.columns < 2 || other.same == other.records);
        if (*c != usual && better) {
            best = *c;
            most = other.same;
        }
    }
    rows->separator = best;
}
