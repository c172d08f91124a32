/* kept.c - group, sort and choose among rows that are kept. */
#include "kept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/decimal.h"
#include "core/pool.h"

enum { MOST_NAMES = 256 };

int kept_begin(struct kept *k, const struct samples_column *columns, int count)
{
    *k = (struct kept){.count = count};
    if (!(k->columns = calloc((size_t)count + 1, sizeof *columns)))
        return samples_no_memory();
    for (int i = 0; i < count; i++) {
        k->columns[i] = columns[i];
        if (!(k->columns[i].heading = tune_pool_text(&k->memory, columns[i].heading, strlen(columns[i].heading))))
            return samples_no_memory();
    }
    return 0;
}

int kept_add(struct kept *k, const struct kept_cell *cell)
{
    if (!tune_array_fit(&k->cells, k->used, sizeof *k->cells))
        return samples_no_memory();
    struct kept_cell *c = &k->cells[k->used];
    *c = *cell;
    if (cell->text && !(c->text = tune_pool_text(&k->memory, cell->text, strlen(cell->text))))
        return samples_no_memory();
    if (cell->count > 0) {
        double *values = tune_pool_take(&k->memory, (size_t)cell->count * sizeof *values);
        if (!values)
            return samples_no_memory();
        c->values = memcpy(values, cell->values, (size_t)cell->count * sizeof *values);
    }
    k->used++;
    return 0;
}

void kept_free(struct kept *k)
{
    free(k->columns);
    free(k->cells);
    free(k->order);
    free(k->shown);
    tune_pool_free(k->memory);
    *k = (struct kept){0};
}

static const struct kept_cell *at(const struct kept *k, int64_t row, int column)
{
    return &k->cells[row * k->count + column];
}

static const char *statistic(void)
{
    return my.aggregate ? my.aggregate : "mean";
}

/* ---- names of columns ---- */

static bool ends_so(const char *heading, const char *name)
{
    size_t n = strlen(heading), length = strlen(name);
    return n > length && heading[n - length - 1] == '-' && !strcmp(heading + n - length, name);
}

int kept_find(const struct samples_column *columns, int count, const char *name, int *places)
{
    char longer[512];
    const char *names[] = {name, longer};
    int found = 0;
    snprintf(longer, sizeof longer, "%s-%s", name, statistic());
    for (int n = 0; n < 2 && found == 0; n++) {
        for (int i = 0; i < count && found == 0; i++)
            if (!strcmp(columns[i].heading, names[n]))
                places[found++] = i;
        for (int i = 0, exact = found; i < count && !exact; i++)
            if (ends_so(columns[i].heading, names[n]))
                places[found++] = i;
    }
    if (found > 0)
        return found;
    const char **headings = calloc((size_t)count + 1, sizeof *headings);
    if (!headings)
        return samples_no_memory();
    for (int i = 0; i < count; i++)
        headings[i] = columns[i].heading;
    samples_no_such("column", name, headings, count);
    free(headings);
    return -1;
}

/* The columns that the flag names. Returns their number, or -1. */
static int find_all(const struct kept *k, const char *flag, const char *text, int **places)
{
    const char *names[MOST_NAMES];
    int n = samples_split(text, names, MOST_NAMES), count = 0;
    TRY(n);
    if (!(*places = calloc((size_t)n * (size_t)k->count + 1, sizeof **places)))
        return samples_no_memory();
    for (int i = 0; i < n; i++) {
        int more = kept_find(k->columns, k->count, names[i], *places + count);
        TRY(more);
        if (more > 1 && strcmp(flag, "columns"))
            return tune_error_usage("--%s %s: there are %d such columns, %s and %s among them; give one of these names",
                                    flag, names[i], more, k->columns[(*places)[count]].heading,
                                    k->columns[(*places)[count + 1]].heading);
        count += more;
    }
    return count;
}

/* ---- sorting ---- */

struct order {
    const struct kept *k;
    const int *columns;
    const bool *down;
    int count;
};

static int compare_cells(const struct kept_cell *x, const struct kept_cell *y)
{
    if (x->number != y->number && !isnan(x->number) && !isnan(y->number))
        return x->number < y->number ? -1 : 1;
    if (isnan(x->number) != isnan(y->number))
        return isnan(x->number) ? 1 : -1;
    return strcmp(x->text ? x->text : "", y->text ? y->text : "");
}

/* Rows in the order of the columns, then as they came. Empty cells are last, either way. */
static int in_order(const void *a, const void *b, void *context)
{
    const struct order *o = context;
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    for (int i = 0; i < o->count; i++) {
        const struct kept_cell *p = at(o->k, x, o->columns[i]), *q = at(o->k, y, o->columns[i]);
        if (!p->text != !q->text)
            return p->text ? -1 : 1;
        int sign = compare_cells(p, q);
        if (sign)
            return o->down && o->down[i] ? -sign : sign;
    }
    return (x > y) - (x < y);
}

static int sort(struct kept *k)
{
    char *text = my.sort ? strdup(my.sort) : NULL;
    bool down[MOST_NAMES] = {false};
    int *columns = NULL, n = 0;
    if (!text)
        return my.sort ? samples_no_memory() : 0;
    char *to = text;
    for (const char *from = my.sort; *from; from++) { /* leave out the minus before a name */
        if (n == MOST_NAMES) {
            free(text);
            return tune_error_usage("--sort takes at most %d columns", MOST_NAMES);
        }
        bool begins = to == text || to[-1] == ',';
        if (*from == '-' && begins)
            down[n] = true;
        else if (*from != ',' || !begins)
            *to++ = *from;
        n += *from == ',' && !begins;
    }
    *to = 0;
    struct order o = {k, NULL, down, find_all(k, "sort", text, &columns)};
    o.columns = columns;
    if (o.count >= 0 && k->rows > 0)
        qsort_r(k->order, (size_t)k->rows, sizeof *k->order, in_order, &o);
    free(columns);
    free(text);
    return o.count < 0 ? -1 : 0;
}

/* ---- groups ---- */

static int put_order(struct kept *k)
{
    k->rows = k->count > 0 ? (int64_t)(k->used / (size_t)k->count) : 0;
    free(k->order);
    if (!(k->order = calloc((size_t)k->rows + 1, sizeof *k->order)))
        return samples_no_memory();
    for (int64_t i = 0; i < k->rows; i++)
        k->order[i] = i;
    return 0;
}

/* The rows order[0..count) are one group: the column's statistic over all their numbers. */
static int add_statistic(struct kept *to, const struct kept *k, const int64_t *order, int64_t count, int column,
                         int (*spell)(char *text, const struct kept_cell *cell))
{
    struct kept_cell cell = {.number = NAN, .right = true, .digits = 5};
    char text[TUNE_DECIMAL_SIZE];
    size_t most = 1, n = 0;
    for (int64_t i = 0; i < count; i++)
        most += (size_t)at(k, order[i], column)->count;
    double *values = malloc(most * sizeof *values);
    if (!values)
        return samples_no_memory();
    for (int64_t i = 0; i < count; i++) {
        const struct kept_cell *c = at(k, order[i], column);
        for (int v = 0; v < c->count; v++)
            values[n++] = c->values[v];
        cell.whole = cell.whole || c->whole;
    }
    if (n > 0) {
        cell.number = tune_statistic(values, (int)n, statistic());
        spell(text, &cell);
        cell.text = text;
        cell.values = &cell.number;
        cell.count = 1;
    }
    free(values);
    return kept_add(to, &cell);
}

static int add_count(struct kept *to, int64_t count, int (*spell)(char *text, const struct kept_cell *cell))
{
    char text[TUNE_DECIMAL_SIZE];
    struct kept_cell cell = {.text = text, .number = (double)count, .whole = true, .right = true, .digits = 15};
    spell(text, &cell);
    cell.values = &cell.number;
    cell.count = 1;
    return kept_add(to, &cell);
}

/* Take columns without a number for columns that are not measured. */
static void drop_empty(struct kept *k)
{
    for (int c = 0; c < k->count; c++) {
        int64_t row = 0;
        while (row < k->rows && at(k, row, c)->count == 0)
            row++;
        k->columns[c].measured = k->columns[c].measured && row < k->rows;
    }
}

/* The columns of the groups: the equal ones, count, a statistic of what is measured. */
static int begin_groups(struct kept *to, const struct kept *k, const struct order *by)
{
    struct samples_column *columns = calloc((size_t)(by->count + k->count) + 1, sizeof *columns);
    char **names = calloc((size_t)k->count + 1, sizeof *names);
    int n = 0, code = columns && names ? 0 : samples_no_memory();
    for (int i = 0; code == 0 && i < by->count; i++)
        columns[n++] = k->columns[by->columns[i]];
    if (code == 0)
        columns[n++] = (struct samples_column){.heading = "count"};
    for (int c = 0; code == 0 && c < k->count; c++)
        if (k->columns[c].measured) {
            columns[n] = k->columns[c];
            if (asprintf(&names[c], "%s-%s", k->columns[c].heading, statistic()) < 0)
                code = samples_no_memory();
            columns[n++].heading = names[c];
        }
    if (code == 0)
        code = kept_begin(to, columns, n);
    for (int c = 0; names && c < k->count; c++)
        free(names[c]);
    free(names);
    free(columns);
    return code;
}

static int by_first(const void *a, const void *b, void *context)
{
    const int64_t *order = context, x = order[**(const int64_t *const *)a], y = order[**(const int64_t *const *)b];
    return (x > y) - (x < y);
}

static int add_group(struct kept *to, const struct kept *k, const struct order *by, int64_t from, int64_t count,
                     int (*spell)(char *text, const struct kept_cell *cell))
{
    for (int i = 0; i < by->count; i++)
        TRY(kept_add(to, at(k, k->order[from], by->columns[i])));
    TRY(add_count(to, count, spell));
    for (int c = 0; c < k->count; c++)
        if (k->columns[c].measured)
            TRY(add_statistic(to, k, k->order + from, count, c, spell));
    return 0;
}

/* Rows with equal cells become one. Groups are in the order of their first rows. */
static int make_groups(struct kept *k, const struct order *by, int (*spell)(char *text, const struct kept_cell *cell))
{
    struct kept to = {0};
    int64_t *starts = calloc((size_t)k->rows + 1, sizeof *starts), **groups = calloc((size_t)k->rows + 1, sizeof *groups), n = 0;
    drop_empty(k);
    int code = starts && groups ? begin_groups(&to, k, by) : samples_no_memory();
    for (int64_t i = 0; code == 0 && i < k->rows; i++) {
        bool same = i > 0;
        for (int c = 0; c < by->count && same; c++) {
            const struct kept_cell *x = at(k, k->order[i - 1], by->columns[c]), *y = at(k, k->order[i], by->columns[c]);
            same = !x->text == !y->text && compare_cells(x, y) == 0;
        }
        if (!same) {
            starts[n] = i;
            groups[n] = &starts[n];
            n++;
        }
    }
    if (code == 0) {
        starts[n] = k->rows;
        qsort_r(groups, (size_t)n, sizeof *groups, by_first, k->order);
        for (int64_t g = 0; g < n && code == 0; g++)
            code = add_group(&to, k, by, *groups[g], groups[g][1] - *groups[g], spell);
        kept_free(k);
        *k = to;
    }
    free(starts);
    free(groups);
    return code < 0 ? -1 : put_order(k);
}

static int group(struct kept *k, int (*spell)(char *text, const struct kept_cell *cell))
{
    int *columns = NULL;
    if (!my.group_by)
        return 0;
    struct order by = {k, NULL, NULL, find_all(k, "group-by", my.group_by, &columns)};
    by.columns = columns;
    int code = by.count < 0 ? -1 : 0;
    if (code == 0 && k->rows > 0)
        qsort_r(k->order, (size_t)k->rows, sizeof *k->order, in_order, &by);
    if (code == 0)
        code = make_groups(k, &by, spell);
    free(columns);
    return code;
}

/* ---- the whole ---- */

int kept_arrange(struct kept *k, int (*spell)(char *text, const struct kept_cell *cell))
{
    TRY(put_order(k));
    TRY(group(k, spell));
    TRY(sort(k));
    if (my.columns) {
        TRY(k->shown_count = find_all(k, "columns", my.columns, &k->shown));
    } else if (!(k->shown = calloc((size_t)k->count + 1, sizeof *k->shown))) {
        return samples_no_memory();
    }
    for (int c = 0; !my.columns && c < k->count; c++)
        if (!k->columns[c].hidden)
            k->shown[k->shown_count++] = c;
    if (my.limit > 0 && k->rows > my.limit)
        k->rows = my.limit;
    return 0;
}
