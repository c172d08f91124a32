/* kept.c - group, sort and choose among rows that are kept. */
#include "kept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"

enum { MOST_NAMES = 256 };

struct samples_column *kept_column(struct kept *k, const char *heading)
{
    samples_fit(&k->columns, k->count, sizeof *k->columns);
    k->columns[k->count] = (struct samples_column){.heading = samples_copy(heading)};
    return &k->columns[k->count++];
}

void kept_add(struct kept *k, const struct kept_cell *cell)
{
    samples_fit(&k->cells, k->used, sizeof *k->cells);
    struct kept_cell *c = &k->cells[k->used++];
    *c = *cell;
    c->text = cell->text ? samples_copy(cell->text) : NULL;
    if (cell->count > 0)
        c->values = memcpy(samples_take(cell->count, sizeof *c->values), cell->values, (size_t)cell->count * sizeof *c->values);
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

/* The columns that the name means: the one of that heading, else those that end with "-name", or
 * with --aggregate's "-mean" behind. Returns their number, or -1 with an error. */
static int find(const struct kept *k, const char *name, int *places)
{
    char longer[512];
    const char *names[] = {name, longer};
    int found = 0;
    snprintf(longer, sizeof longer, "%s-%s", name, statistic());
    for (int n = 0; n < 2 && found == 0; n++) {
        for (int i = 0; i < k->count && found == 0; i++)
            if (!strcmp(k->columns[i].heading, names[n]))
                places[found++] = i;
        for (int i = 0, exact = found; i < k->count && !exact; i++)
            if (ends_so(k->columns[i].heading, names[n]))
                places[found++] = i;
    }
    if (found > 0)
        return found;
    const char **headings = samples_take(k->count, sizeof *headings);
    for (int i = 0; i < k->count; i++)
        headings[i] = k->columns[i].heading;
    return samples_no_such("column", name, headings, k->count);
}

/* The columns that the flag names. Returns their number, or -1. */
static int find_all(const struct kept *k, const char *flag, const char *text, int **places)
{
    const char *names[MOST_NAMES];
    int n = samples_split(text, names, MOST_NAMES), count = 0;
    TRY(n);
    *places = samples_take((int64_t)n * k->count, sizeof **places);
    for (int i = 0; i < n; i++) {
        int more = find(k, names[i], *places + count);
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
    int *columns, count;
    bool down[MOST_NAMES];
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
            return o->down[i] ? -sign : sign;
    }
    return (x > y) - (x < y);
}

/* Sort the rows by the columns that the flag names. */
static int sort(struct kept *k, const char *flag, const char *text, struct order *o)
{
    o->k = k;
    TRY(o->count = find_all(k, flag, text, &o->columns));
    if (k->rows > 0)
        qsort_r(k->order, (size_t)k->rows, sizeof *k->order, in_order, o);
    return 0;
}

static int sort_by_flag(struct kept *k)
{
    struct order o = {0};
    int n = 0;
    if (!my.sort)
        return 0;
    char *text = samples_copy(my.sort), *to = text;
    for (const char *from = my.sort; *from; from++) { /* leave out the minus before a name */
        if (n == MOST_NAMES)
            return tune_error_usage("--sort takes at most %d columns", MOST_NAMES);
        bool begins = to == text || to[-1] == ',';
        if (*from == '-' && begins)
            o.down[n] = true;
        else if (*from != ',' || !begins)
            *to++ = *from;
        n += *from == ',' && !begins;
    }
    *to = 0;
    return sort(k, "sort", text, &o);
}

/* ---- groups ---- */

static void put_order(struct kept *k)
{
    k->rows = k->count > 0 ? k->used / k->count : 0;
    k->order = samples_take(k->rows, sizeof *k->order);
    for (int64_t i = 0; i < k->rows; i++)
        k->order[i] = i;
}

/* Add a cell with this number; NAN: none. */
static void add_number(struct kept *to, double number, bool whole, int digits)
{
    char text[TUNE_DECIMAL_SIZE];
    struct kept_cell cell = {.number = number, .whole = whole, .right = true, .digits = (unsigned char)digits};
    if (!isnan(number)) {
        to->spell(text, &cell);
        cell.text = text;
        cell.values = &number;
        cell.count = 1;
    }
    kept_add(to, &cell);
}

/* The rows order[0..count) are one group: the column's statistic over all their numbers. */
static void add_statistic(struct kept *to, const struct kept *k, const int64_t *order, int64_t count, int column)
{
    static double *values;
    bool whole = false;
    int n = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct kept_cell *c = at(k, order[i], column);
        whole = whole || c->whole;
        for (int v = 0; v < c->count; v++) {
            samples_fit(&values, n, sizeof *values);
            values[n++] = c->values[v];
        }
    }
    add_number(to, n > 0 ? tune_statistic(values, n, statistic()) : NAN, whole, 5);
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
static void begin_groups(struct kept *to, const struct kept *k, const struct order *by)
{
    char name[TUNE_STORE_TEXT_MAX + TUNE_STORE_NAME_MAX];
    for (int i = 0; i < by->count; i++)
        *kept_column(to, "") = k->columns[by->columns[i]];
    kept_column(to, "count");
    for (int c = 0; c < k->count; c++)
        if (k->columns[c].measured) {
            snprintf(name, sizeof name, "%s-%s", k->columns[c].heading, statistic());
            struct samples_column *column = kept_column(to, name);
            column->measured = true;
            column->prefix = k->columns[c].prefix;
        }
}

static int by_first(const void *a, const void *b, void *context)
{
    const int64_t *order = context, x = order[**(const int64_t *const *)a], y = order[**(const int64_t *const *)b];
    return (x > y) - (x < y);
}

static void add_group(struct kept *to, const struct kept *k, const struct order *by, int64_t from, int64_t count)
{
    for (int i = 0; i < by->count; i++)
        kept_add(to, at(k, k->order[from], by->columns[i]));
    add_number(to, (double)count, true, 15);
    for (int c = 0; c < k->count; c++)
        if (k->columns[c].measured)
            add_statistic(to, k, k->order + from, count, c);
}

static bool same_group(const struct kept *k, const struct order *by, int64_t i, int64_t j)
{
    for (int c = 0; c < by->count; c++) {
        const struct kept_cell *x = at(k, k->order[i], by->columns[c]), *y = at(k, k->order[j], by->columns[c]);
        if (!x->text != !y->text || compare_cells(x, y) != 0)
            return false;
    }
    return true;
}

/* Rows with equal cells become one. Groups are in the order of their first rows. */
static int group(struct kept *k)
{
    struct kept to = {.spell = k->spell};
    struct order by = {0};
    int64_t n = 0;
    if (!my.group_by)
        return 0;
    TRY(sort(k, "group-by", my.group_by, &by));
    int64_t *starts = samples_take(k->rows + 1, sizeof *starts), **groups = samples_take(k->rows, sizeof *groups);
    drop_empty(k);
    begin_groups(&to, k, &by);
    for (int64_t i = 0; i < k->rows; i++)
        if (i == 0 || !same_group(k, &by, i - 1, i)) {
            starts[n] = i;
            groups[n] = &starts[n];
            n++;
        }
    starts[n] = k->rows;
    qsort_r(groups, (size_t)n, sizeof *groups, by_first, k->order);
    for (int64_t g = 0; g < n; g++)
        add_group(&to, k, &by, *groups[g], groups[g][1] - *groups[g]);
    free(k->cells);
    free(k->columns);
    *k = to;
    put_order(k);
    return 0;
}

/* ---- the whole ---- */

int kept_arrange(struct kept *k)
{
    put_order(k);
    TRY(group(k));
    TRY(sort_by_flag(k));
    if (my.columns) {
        TRY(k->shown_count = find_all(k, "columns", my.columns, &k->shown));
    } else {
        k->shown = samples_take(k->count, sizeof *k->shown);
        for (int c = 0; c < k->count; c++)
            if (!k->columns[c].hidden)
                k->shown[k->shown_count++] = c;
    }
    if (my.limit > 0 && k->rows > my.limit)
        k->rows = my.limit;
    return 0;
}
