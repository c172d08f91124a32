/* dataset_columns.c - columns of a row that are not trained on: numbers and texts for a recipe. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/dataset_state.h"
#include "datasets/look.h"

/* Report that the first rows have no such column. 0: some have it. */
static int missing(const struct tune_dataset *d, const char *column)
{
    struct tune_columns have;
    char list[512];
    int status = 0;
    if (tune_columns_find(&have, &d->rows, true) < 0)
        status = -1;
    else if (!tune_columns_has(&have, column))
        status = tune_error_usage("%s: its first rows have no column \"%.200s\"; they have: %s", d->rows.path, column,
                                  tune_columns_list(&have, list, sizeof list));
    tune_columns_free(&have);
    return status;
}

/* Read the column's value in a row into v->at[0]. 1; 0: the row has none, or null; -1 with an
 * error. *line: of the row. */
static int read_value(const struct tune_dataset *d, int64_t row, const char *column, struct tune_row_values *v, int64_t *line)
{
    TRY(tune_rows_uncut(&d->rows));
    int side;
    struct tune_file_row at = tune_rows_get(&d->rows, tune_dataset_file_row(d, row, &side));
    *line = at.line;
    if (at.size > TUNE_ROW_LIMIT)
        return tune_rows_too_long(&d->rows, &at);
    TRY(tune_row_values_read(v, &d->rows, &d->columns, &at, &column, 1));
    if (v->at[0].type == TUNE_JSON_NULL || (v->at[0].text.size == 0 && tune_rows_are_csv(&d->rows) && v->at[0].type >= 0))
        return 0;
    return v->at[0].type < 0 ? missing(d, column) : 1;
}

/* The set and its row that hold row; NULL with an error: there is none, or it has no columns. */
static const struct tune_dataset *holder(const struct tune_dataset *d, int64_t *row, const char *column)
{
    const char *why = NULL;
    if (*row < 0 || *row >= d->count) {
        tune_error_set("column \"%.200s\" of row %lld: the set has %lld rows, and padding and batches of the program's own ids have none",
                       column, (long long)*row, (long long)d->count);
        return NULL;
    }
    if (d->sets)
        d = d->sets[tune_dataset_set_of(d, *row, row)];
    if (d->get)
        why = "rows of a callback have no columns; keep their numbers where the callback makes them";
    else if (d->rows.format == TUNE_DATASET_TEXT)
        why = "plain text has no columns";
    if (!why)
        return d;
    tune_error_usage("column \"%.200s\": %s", column, why);
    return NULL;
}

int tune_dataset_number(const struct tune_dataset *d, int64_t row, const char *column, double *value)
{
    struct tune_row_values v = {0};
    int64_t line;
    if (!(d = holder(d, &row, column)))
        return -1;
    int status = read_value(d, row, column, &v, &line);
    if (status == 1 && !tune_field_number(&v.at[0], value))
        status = tune_error_set("%s:%lld: column \"%.200s\" is %.*s, expected a number", d->rows.path, (long long)line, column,
                                v.at[0].text.size < 60 ? (int)v.at[0].text.size : 60, v.at[0].text.data);
    tune_row_values_free(&v);
    return status;
}

int tune_dataset_text(const struct tune_dataset *d, int64_t row, const char *column, char **text)
{
    struct tune_row_values v = {0};
    int64_t line;
    *text = NULL;
    if (!(d = holder(d, &row, column)))
        return -1;
    int status = read_value(d, row, column, &v, &line);
    if (status == 1 && !(*text = strndup(v.at[0].text.data, v.at[0].text.size)))
        status = tune_error_no_memory("a text of column \"%.200s\"", column);
    tune_row_values_free(&v);
    return status;
}

int tune_dataset_lengths(struct tune_dataset *d, int32_t *lengths)
{
    struct tune_dataset_counts before = tune_dataset_counts(d);
    struct tune_example x = {0};
    int status = 0;
    for (int64_t i = 0; i < d->count && status == 0; i++)
        if ((status = tune_dataset_get(d, i, &x)) == 0)
            lengths[i] = (int32_t)x.count;
    tune_example_free(&x);
    tune_dataset_restore(d, before);
    return status;
}
