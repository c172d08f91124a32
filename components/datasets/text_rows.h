/* text_rows.h - rows that are one text: a field of a JSON object, a column of CSV, a paragraph.
 * Private to datasets. */
#ifndef TUNE_DATASETS_TEXT_ROWS_H
#define TUNE_DATASETS_TEXT_ROWS_H

#include "datasets/columns.h"
#include "datasets/rows.h"

struct tune_text_rows {
    const struct tune_rows *rows;
    const struct tune_columns *columns; /* for CSV and TSV */
    char *field;                        /* allocated; NULL: paragraphs */
};

/* Buffers to read one row, one set for each thread. A zeroed one may be freed. */
struct tune_text_row {
    struct tune_json json;
    char *plain; /* a paragraph with CRLF replaced by LF */
    struct tune_row_values values;
};
void tune_text_row_free(struct tune_text_row *s);

/* tune_text_rows_check - 0, or -1 with an error: the row is too long.
 * tune_text_rows_get - the text, borrowed from the file, or from *s until it is freed. -1: a bad
 * row.
 * tune_text_rows_choose - choose the field from a JSON row: "text", else "output", "content", else
 * its only string. -1 with an error.
 * tune_text_rows_choose_column - the same for CSV. A named field must be a column. */
int tune_text_rows_check(const struct tune_text_rows *t, const struct tune_file_row *row);
int tune_text_rows_get(const struct tune_text_rows *t, const struct tune_file_row *row,
                       struct tune_text_row *s, struct tune_text *text);
int tune_text_rows_choose(struct tune_text_rows *t, const struct tune_file_row *row);
int tune_text_rows_choose_column(struct tune_text_rows *t);

#endif
