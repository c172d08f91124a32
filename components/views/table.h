/* table.h - rows of texts and numbers, for people (aligned), spreadsheets (CSV) and programs
 * (JSON).
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

/* tune_table_new - a table with these columns; the names are copied.
 * tune_table_free - free it; NULL is fine. */
struct tune_table *tune_table_new(const char *const *columns, int count);
void tune_table_free(struct tune_table *t);

/* tune_table_text - add a cell of text; NULL: empty.
 * tune_table_number - add a number; not finite: empty. format is for the aligned table; CSV and
 * JSON have all digits.
 * tune_table_shown - add a number that people see as this text ("3 min"). */
void tune_table_text(struct tune_table *t, const char *text);
void tune_table_number(struct tune_table *t, double value, const char *format);
void tune_table_shown(struct tune_table *t, double value, const char *shown);

/* tune_table_keys - the first `count` columns name a row. If the table is too wide for one block,
 * every block begins with them, whole if a block has room for one more column. Without this call it
 * is the first column, which may be shortened.
 * tune_table_below - this column may stand below its row, on lines of its own, if the table is too
 * wide. Of several (at most 8), the one given last moves first. */
void tune_table_keys(struct tune_table *t, int count);
void tune_table_below(struct tune_table *t, int column);

/* tune_table_rows - number of rows.
 * tune_table_cell - the text that people see in a cell; "" if empty. */
int tune_table_rows(const struct tune_table *t);
const char *tune_table_cell(const struct tune_table *t, int row, int column);

/* tune_table_print - print the table. "csv" is RFC 4180 with a heading. "json" is an array of
 * objects, with null for empty cells. "table" is aligned, in lines of at most width columns (0:
 * any). A wider table first moves columns below their rows (tune_table_below). Then it shortens
 * texts in the middle, with mark in place of what is left out. At last it prints its columns in
 * several blocks. Numbers are always whole, so a line with one wide number may be longer. -1 with
 * an error: no memory. */
int tune_table_print(struct tune_table *t, const char *format, int width, const char *mark,
                     FILE *out);

#ifdef __cplusplus
}
#endif
#endif
