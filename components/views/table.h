/* table.h - a table of text and numbers, printed aligned, as CSV or as JSON.
 *
 *     const char *columns[] = {"name", "loss"};
 *     struct tune_table *t = tune_table_new(columns, 2);
 *     tune_table_text(t, "first");
 *     tune_table_number(t, 1.84321, "%.2f");       aligned: 1.84; CSV and JSON: 1.84321
 *     tune_table_print(t, "table", 0, "", stdout);
 *     tune_table_free(t);
 *
 * Cells are added row by row. If memory runs out, tune_table_print reports it. */
#ifndef TUNE_TABLE_H
#define TUNE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_table;

struct tune_table *tune_table_new(const char *const *columns, int count);
void tune_table_free(struct tune_table *t);

/* tune_table_text - add a cell with text; NULL: an empty cell.
 * tune_table_number - add a cell with a number; not finite: an empty cell. format is for the
 * aligned table only; CSV and JSON have all digits.
 * tune_table_shown - add a number that the aligned table shows as the text `shown`, such as "3
 * min". */
void tune_table_text(struct tune_table *t, const char *text);
void tune_table_number(struct tune_table *t, double value, const char *format);
void tune_table_shown(struct tune_table *t, double value, const char *shown);

/* tune_table_rows - number of rows.
 *
 * tune_table_cell - a cell's text in the aligned table; "" if empty. */
int tune_table_rows(const struct tune_table *t);
const char *tune_table_cell(const struct tune_table *t, int row, int column);

/* tune_table_print - print the table. format "table": numbers right-aligned, text left-aligned.
 * Lines are cut to width columns (0: not cut), with cut_mark at the end. "csv": RFC 4180 with a
 * header. "json": an array of objects; empty cells are null. 0, or -1 with an error: no memory. */
int tune_table_print(struct tune_table *t, const char *format, int width, const char *cut_mark,
                     FILE *out);

#ifdef __cplusplus
}
#endif
#endif
