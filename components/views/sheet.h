/* sheet.h - rows of many columns, laid out for people. Columns that are equal in all rows stand
 * above the table. Empty ones are left out. The others fit the width.
 *
 *     struct tune_sheet s = {.columns = columns, .column_count = 2, .cells = cells, .rows = 3};
 *     tune_sheet_print(&s, stdout); */
#ifndef TUNE_VIEWS_SHEET_H
#define TUNE_VIEWS_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_sheet_column {
    const char *heading;
    bool right;                /* align its cells on the right */
    bool stays;                /* it is a column even if all its cells are equal */
};

struct tune_sheet {
    const struct tune_sheet_column *columns; /* [column_count] */
    int column_count;
    const char *const *cells;  /* [rows][column_count]; NULL: empty */
    int64_t rows;
    int width;                 /* columns of the terminal; 0: no limit, nothing is cut */
    bool unicode;
    const char *advice;        /* how to see columns that were left out: "--columns chooses" */
};

/* tune_sheet_print - print it. A single row is printed as a list of names and values. If the
 * columns are too wide, headings are broken, then long texts cut, then the last columns left out
 * and named below. 0, or -1 with an error: no memory. */
int tune_sheet_print(const struct tune_sheet *s, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
