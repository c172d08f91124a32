/* columns.h - the columns of a data file, and their values in one row.
 *
 * A column is a key of a row's JSON object, or a field named in the first record of a CSV or TSV
 * file. Private to datasets: rows.h finds rows, this file reads their columns, format.h gives them
 * a meaning. */
#ifndef TUNE_DATASETS_COLUMNS_H
#define TUNE_DATASETS_COLUMNS_H

#include "files/json.h"
#include "templates/prompt_template.h"
#include "datasets/rows.h"

/* Column names. For JSON: those of all of the first rows. A zeroed one may be freed. */
struct tune_columns {
    char **names;
    int count;
};

/* tune_columns_find - read the header, or the first rows (at most 100). Unreadable rows are skipped
 * if skip_bad is set or an earlier row was readable. 0, or an error as -1: no row is readable, or
 * the header is no record or repeats a name.
 *
 * tune_columns_has - true if the name is a column, or a path into one: "instances.0.output" is the
 * member output of the first item of instances.
 *
 * tune_columns_list - write "a, b, c" to text for messages, cut to size, without control
 * characters. Returns text. */
int tune_columns_find(struct tune_columns *c, const struct tune_rows *rows, bool skip_bad);
bool tune_columns_has(const struct tune_columns *c, const char *name);
const char *tune_columns_list(const struct tune_columns *c, char *text, size_t size);
void tune_columns_free(struct tune_columns *c);

struct tune_field {
    int type; /* enum tune_json_type; -1: the row lacks the column. Always a string in CSV */
    struct tune_text text; /* the characters of a string; other types as spelled in the row */
    size_t offset;         /* position of a string's bytes while the row is read */
};

/* Buffers to read a row. Values are valid until the next read. A zeroed one may be freed. */
struct tune_row_values {
    struct tune_field at[TUNE_PROMPT_SLOTS];
    /* reader of the row's JSON; to read an array, set json.at to the value's text */
    struct tune_json json;
    struct tune_csv *csv;
    char *bytes;
    size_t used, room;
};

/* tune_row_values_read - read the values of count columns (at most TUNE_PROMPT_SLOTS) of a row. The
 * whole row is checked. 0, or -1 with an error: a bad row. */
int tune_row_values_read(struct tune_row_values *v, const struct tune_rows *rows,
                     const struct tune_columns *columns, const struct tune_file_row *row,
                     const char *const *names, int count);
void tune_row_values_free(struct tune_row_values *v);

/* tune_field_number - the value as a number: a JSON number or bool, or a text that is a number as a
 * whole. false: it is none. */
bool tune_field_number(const struct tune_field *f, double *value);

#endif
