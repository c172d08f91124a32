/* lookup.c - read a lookup table for expressions, and find rows by their keys. */
#include "sweeps/spaces/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/try.h"
#include "files/csv.h"
#include "files/file.h"

struct table {
    struct tune_lookup own;       /* must be first */
    const char *path;
    const char **names;           /* the new names */
    int *from, *key_from;         /* [count], [keys] columns of names and of keys */
    int *key_input;               /* [keys] index of the input of each key column */
    int keys, rows;
    bool fits;                    /* has keys and new names */
    struct tune_value **cells;    /* [rows][columns] */
    struct tune_map at;           /* from keys to the row's index + 1 */
    struct tune_map missed;       /* keys without a row */
    int64_t missed_count;
    char first[256];              /* description of the first missed keys */
    struct tune_pool *memory;
};

static void *allocate(struct table *t, size_t size)
{
    void *memory = tune_pool_take(&t->memory, size);
    if (!memory)
        tune_error_no_memory("%s", t->path);
    return memory;
}

/* Hash a key. Cells that are equal in Python have equal hashes: numbers are hashed by value,
 * regardless of type. */
static void hash_key(const struct tune_value *v, uint64_t key[2])
{
    char text[1024];
    double number;
    bool is_number = tune_value_number(v, &number);
    if (is_number)
        number += 0.0; /* -0 is 0 */
    size_t size = is_number ? sizeof number : (size_t)tune_value_repr(v, text, sizeof text);
    size = size < sizeof text ? size : sizeof text;
    for (int k = 0; k < 2; k++)
        key[k] = tune_hash64(is_number ? (const void *)&number : text, size, key[k] + (uint64_t)is_number);
}

static struct tune_value read_cell(struct table *t, const char *text)
{
    struct tune_value value = tune_value_none();
    if (!*text || tune_value_read_as(text, &value))
        return value;
    return tune_value_text(tune_pool_text(&t->memory, text, strlen(text)));
}

static int read_heading(struct table *t, const char *const *fields, int columns, const char *const *inputs, int input_count)
{
    if (!(t->names = allocate(t, (size_t)columns * sizeof *t->names)) || !(t->from = allocate(t, (size_t)columns * sizeof *t->from)) ||
        !(t->key_from = allocate(t, (size_t)columns * sizeof *t->key_from)) ||
        !(t->key_input = allocate(t, (size_t)columns * sizeof *t->key_input)))
        return -1;
    for (int i = 0; i < columns; i++) {
        for (int k = 0; k < i; k++)
            if (!strcmp(fields[i], fields[k]))
                return tune_error_usage("%s:1: two columns have the name \"%s\"", t->path,
                                        fields[i]);
        int input = tune_name_find(inputs, input_count, fields[i]);
        if (input >= 0) {
            t->key_from[t->keys] = i;
            t->key_input[t->keys++] = input;
            continue;
        }
        t->from[t->own.count] = i;
        if (!(t->names[t->own.count++] = tune_pool_text(&t->memory, fields[i], strlen(fields[i]))))
            return tune_error_no_memory("%s", t->path);
    }
    char hint[TUNE_HINT];
    t->fits = t->keys > 0 && t->own.count > 0;
    if (t->keys == 0)
        return tune_error_usage("%s:1: no column has the name of an input, so its rows cannot be "
                                "assigned to entities%s", t->path,
                                tune_nearest_hint(fields[0], inputs, input_count, hint));
    t->own.names = t->names;
    return t->own.count > 0 ? 0 : tune_error_usage("%s:1: every column is an input; expected at "
                                                   "least one other column, such as a price",
                                                   t->path);
}

static int read_row(struct table *t, const char *const *fields, int columns, int64_t line)
{
    uint64_t key[2] = {0, 0};
    struct tune_value *row = allocate(t, (size_t)columns * sizeof *row);
    if (!row || !tune_array_fit(&t->cells, (size_t)t->rows, sizeof *t->cells))
        return row ? tune_error_no_memory("%s", t->path) : -1;
    for (int i = 0; i < columns; i++) {
        row[i] = read_cell(t, fields[i]);
        if (row[i].type == TUNE_VALUE_TEXT && !row[i].text)
            return tune_error_no_memory("%s", t->path);
    }
    for (int k = 0; k < t->keys; k++)
        hash_key(&row[t->key_from[k]], key);
    int64_t *at = tune_map_add(&t->at, key);
    if (!at)
        return tune_error_no_memory("%s", t->path);
    if (*at)
        return tune_error_usage("%s:%lld: this is the second row for %s \"%s\"; keep one of them",
                                t->path, (long long)line,
                                t->keys > 1 ? "the keys" : "the key", fields[t->key_from[0]]);
    *at = t->rows + 1;
    t->cells[t->rows++] = row;
    return 0;
}

static int read_table(struct table *t, struct tune_csv *csv, const char *const *inputs, int input_count)
{
    const char *const *fields;
    int columns, count, more = tune_csv_row(csv, &fields, &columns);
    TRY(more);
    if (more == 0)
        return tune_error_usage("%s: the file is empty; expected a heading and rows", t->path);
    TRY(read_heading(t, fields, columns, inputs, input_count));
    while ((more = tune_csv_row(csv, &fields, &count)) == 1) {
        if (count != columns)
            return tune_error_usage("%s:%lld: the row has %d fields, but the heading has %d",
                                    t->path, (long long)tune_csv_line(csv), count, columns);
        TRY(read_row(t, fields, columns, tune_csv_line(csv)));
    }
    return more;
}

struct tune_lookup *tune_lookup_read(const char *path, const char *const *inputs, int input_count, bool *fits)
{
    struct table *t = tune_zeroed(1, sizeof *t, "%s", path);
    struct tune_csv *csv = t ? tune_csv_open(path) : NULL;
    int code = -1;
    *fits = true;
    if (csv && (t->path = tune_pool_text(&t->memory, path, strlen(path)))) {
        t->fits = true;
        code = read_table(t, csv, inputs, input_count);
        *fits = t->fits;
    }
    tune_csv_free(csv);
    if (code == 0)
        return &t->own;
    tune_lookup_free(t ? &t->own : NULL);
    return NULL;
}

void tune_lookup_free(struct tune_lookup *lookup)
{
    struct table *t = (struct table *)lookup;
    if (!t)
        return;
    tune_map_free(&t->at);
    tune_map_free(&t->missed);
    tune_pool_free(t->memory);
    free(t->cells);
    free(t);
}

static void count_missed(struct table *t, const uint64_t key[2], const struct tune_value *inputs)
{
    int64_t *times = tune_map_add(&t->missed, key);
    if (!times || (*times)++ > 0)
        return;
    if (t->missed_count++ > 0)
        return;
    size_t used = 0;
    for (int k = 0; k < t->keys && used + 64 < sizeof t->first; k++) {
        char text[100];
        tune_value_repr(&inputs[t->key_input[k]], text, sizeof text);
        used += (size_t)snprintf(t->first + used, sizeof t->first - used, "%s%s", k ? ", " : "", text);
    }
}

bool tune_lookup_values(struct tune_lookup *lookup, const struct tune_value *inputs, struct tune_value *to)
{
    struct table *t = (struct table *)lookup;
    uint64_t key[2] = {0, 0};
    for (int k = 0; k < t->keys; k++)
        hash_key(&inputs[t->key_input[k]], key);
    int64_t row = tune_map_get(&t->at, key);
    for (int i = 0; i < t->own.count; i++)
        to[i] = row ? t->cells[row - 1][t->from[i]] : tune_value_none();
    if (!row)
        count_missed(t, key, inputs);
    return row > 0;
}

const char *tune_lookup_missed(const struct tune_lookup *lookup, char *text, size_t size)
{
    const struct table *t = (const struct table *)lookup;
    *text = 0;
    if (t->missed_count > 0)
        snprintf(text, size, "%s has no row for %lld key%s (%s%s), so %s%s None for them", t->path,
                 (long long)t->missed_count,
                 t->missed_count == 1 ? "" : "s", t->first, t->missed_count > 1 ? ", ..." : "", t->names[0],
                 t->own.count > 1 ? " and the other columns are" : " is");
    return text;
}
