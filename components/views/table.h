/* table.h - rows of texts and numbers for people (aligned), for spreadsheets (CSV) and for programs (JSON).
 *
 *     const char *columns[] = {"name", "loss"};
 *     struct tune_table *t = tune_table_new(columns, 2);
 *     tune_table_text(t, "first");
 *     tune_table_number(t, 1.84321, "%.2f");       aligned: 1.84; CSV and JSON: 1.84321
 *     tune_table_print(t, "table", 0, "", stdout);
 *     tune_table_free(t);
 *
 * Cells are added row by row. What cannot be added for want of memory is told when the table is printed. */
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

/* tune_table_text - the next cell; NULL: none. tune_table_number - the next cell; not finite: none. format is for the aligned
 * table; CSV and JSON have every digit. tune_table_shown - a number that people are shown as this text ("3 min"). */
void tune_table_text(struct tune_table *t, const char *text);
void tune_table_number(struct tune_table *t, double value, const char *format);
void tune_table_shown(struct tune_table *t, double value, const char *shown);

/* tune_table_rows - how many. tune_table_cell - what people are shown there; "" for an empty one. */
int tune_table_rows(const struct tune_table *t);
const char *tune_table_cell(const struct tune_table *t, int row, int column);

/* tune_table_print - format "table": numbers to the right, texts to the left, lines cut to width columns (0: not) with
 * cut_mark at their end; "csv": RFC 4180 with a heading; "json": an array of objects, empty cells null. 0, or -1: no memory. */
int tune_table_print(struct tune_table *t, const char *format, int width, const char *cut_mark, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
