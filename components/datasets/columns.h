/* columns.h - the columns of a data file: which there are, and the values of some of them in one
 * row.
 *
 * A column is a key of a row's JSON object, or a field under a name in the first record of a CSV or
 * TSV file. Internal to datasets: rows.h knows where rows lie, this what stands in them, format.h
 * what it means. */
#ifndef TUNE_DATASETS_COLUMNS_H
#define TUNE_DATASETS_COLUMNS_H

#include "files/json.h"
#include "templates/prompt_template.h"
#include "datasets/rows.h"

/* The names: of JSON those of the first rows together. Zeroed, it may be freed. */
struct tune_columns {
    char **names;
    int count, room;
};

/* tune_columns_find - look at the header, or at the first rows (at most 100). Rows that cannot be
 * read are passed over if skip_bad, or if an earlier one can; -1: the header is no record or has a
 * name twice, no row can be read.
 * tune_columns_has - whether it is one of them.
 * tune_columns_list - "a, b, c" for messages, cut to size, without control characters; returns
 * text. */
int tune_columns_find(struct tune_columns *c, const struct tune_rows *rows, bool skip_bad);
bool tune_columns_has(const struct tune_columns *c, const char *name);
const char *tune_columns_list(const struct tune_columns *c, char *text, size_t size);
void tune_columns_free(struct tune_columns *c);

struct tune_value {
    /* enum tune_json_type; -1: the row has no such column. Of CSV always a string */
    int type;
    struct tune_text text; /* of a string its characters, of others their spelling in the row */
    size_t offset;         /* of a string, while it is read */
};

/* What reading a row needs; values are borrowed from it until the next read. Zeroed, it may be
 * freed. */
struct tune_values {
    struct tune_value at[TUNE_PROMPT_SLOTS];
    /* stands on the row's JSON: whoever reads an array on sets json.at to its text */
    struct tune_json json;
    struct tune_csv *csv;
    char *bytes;
    size_t used, room;
};

/* tune_values_read - the values of count columns (at most TUNE_PROMPT_SLOTS) of a row. The whole
 * row is checked. */
int tune_values_read(struct tune_values *v, const struct tune_rows *rows,
                     const struct tune_columns *columns,
                     const struct tune_row *row, const char *const *names, int count);
void tune_values_free(struct tune_values *v);

#endif
