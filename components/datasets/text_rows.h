/* text_rows.h - rows that are one text each: a field of a JSON object, a column of CSV, a
 * paragraph. Internal to datasets. */
#ifndef TUNE_DATASETS_TEXT_ROWS_H
#define TUNE_DATASETS_TEXT_ROWS_H

#include "datasets/columns.h"
#include "datasets/rows.h"

struct tune_text_rows {
    const struct tune_rows *rows;
    const struct tune_columns *columns; /* of CSV and TSV */
    char *field;                        /* malloc'd; NULL: paragraphs */
};

/* What reading one row needs; of the call, so that any number of threads may read. Zeroed, it may
 * be freed. */
struct tune_text_row {
    struct tune_json json;
    char *plain; /* a paragraph with CRLF made LF */
    struct tune_values values;
};
void tune_text_row_free(struct tune_text_row *s);

/* tune_text_rows_check - 0, or -1: the row is longer than rows may be.
 * tune_text_rows_get - the text, borrowed from the file or from *s until it is freed. -1: a bad
 * row.
 * tune_text_rows_choose - with no field named: which one this row of JSON offers: "text", else
 * "output", "content", else its only string.
 * tune_text_rows_choose_column - the same of CSV, where a field that is named must be a column. */
int tune_text_rows_check(const struct tune_text_rows *t, const struct tune_row *row);
int tune_text_rows_get(const struct tune_text_rows *t, const struct tune_row *row,
                       struct tune_text_row *s, struct tune_text *text);
int tune_text_rows_choose(struct tune_text_rows *t, const struct tune_row *row);
int tune_text_rows_choose_column(struct tune_text_rows *t);

#endif
