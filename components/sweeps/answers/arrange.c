/* arrange.c - group, sort and choose among the rows and columns of an answer. */
#include "sweeps/answers/arrange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/statistics.h"
#include "files/file.h"
#include "sweeps/answers/answer_parts.h"

enum { MOST_NAMES = 256 };

/* Rows of an answer, sorted by some columns. */
struct order {
    const struct tune_answer_table *a;
    int *columns, count; /* the columns to sort by */
    bool down[MOST_NAMES];
    int64_t *rows;       /* [a->rows] */
};

/* ---- names of columns ---- */

int tune_answer_no_such(const char *what, const char *name, const char *const *names, int count)
{
    char others[1024] = "", hint[TUNE_HINT];
    for (int i = 0; i < count; i++)
        if (tune_name_find(names, i, names[i]) < 0) {
            if (strlen(others) + strlen(names[i]) + 8 >= sizeof others) {
                tune_append_item(others, sizeof others, "...");
                break;
            }
            tune_append_item(others, sizeof others, "%s", names[i]);
        }
    return tune_error_usage("there is no %s %s%s; there are: %s", what, name, tune_nearest_hint(name, names, count, hint),
                            *others ? others : "none");
}

bool tune_arrangement_mentions(const struct tune_arrangement *how, const char *name)
{
    const char *const lists[] = {how->columns, how->sort, how->group_by};
    size_t n = strlen(name);
    for (int i = 0; i < 3; i++)
        for (const char *at = lists[i]; at && (at = strstr(at, name)); at++)
            if ((at == lists[i] || strchr(",-", at[-1])) && (!at[n] || strchr(",-", at[n])))
                return true;
    return false;
}

/* Find the column for a name: the one with that name, else with "-mean" appended to it. Returns its
 * index, or -1 with an error. */
static int find_column(const struct tune_answer_table *a, const char *name, const char *aggregate)
{
    char longer[512];
    int found = tune_answer_find(a, name);
    snprintf(longer, sizeof longer, "%s-%s", name, aggregate);
    if (found < 0)
        found = tune_answer_find(a, longer);
    if (found >= 0)
        return found;
    const char **names = calloc((size_t)a->count + 1, sizeof *names);
    for (int i = 0; names && i < a->count; i++)
        names[i] = a->columns[i].name;
    if (names)
        tune_answer_no_such("column", name, names, a->count);
    free(names);
    return names ? -1 : tune_answer_no_memory();
}

/* Find the columns for a list of names. Returns their number, or -1. */
static int find_all(struct tune_answer_table *a, const char *list, const char *aggregate, int **indexes)
{
    const char *names[MOST_NAMES];
    char *copy = tune_answer_copy(a, list);
    int n = copy ? tune_name_split(copy, names, MOST_NAMES) : -1;
    TRY(n);
    TAKE(*indexes, a, n);
    for (int i = 0; i < n; i++)
        TRY((*indexes)[i] = find_column(a, names[i], aggregate));
    return n;
}

/* ---- sorting ---- */

/* The cell's number: exact for whole numbers, whose doubles may be equal though they differ. */
static struct tune_value number_of(const struct tune_answer_cell *cell)
{
    if (cell->type == TUNE_ANSWER_VALUE)
        return *cell->value;
    return cell->type == TUNE_ANSWER_WHOLE ? tune_value_int(cell->whole) : tune_value_float(tune_answer_number(cell));
}

static int compare_cells(const struct tune_answer_cell *x, const struct tune_answer_cell *y)
{
    double p = tune_answer_number(x), q = tune_answer_number(y);
    if (p != q && !isnan(p) && !isnan(q))
        return p < q ? -1 : 1;
    if (isnan(p) != isnan(q))
        return isnan(p) ? 1 : -1;
    if (!isnan(p)) {
        struct tune_value a = number_of(x), b = number_of(y);
        return tune_value_compare(&a, &b);
    }
    if (x->type == TUNE_ANSWER_TEXT && y->type == TUNE_ANSWER_TEXT)
        return strcmp(x->text, y->text);
    if (x->type == TUNE_ANSWER_VALUE && y->type == TUNE_ANSWER_VALUE)
        return tune_value_compare(x->value, y->value);
    return (int)x->type - (int)y->type;
}

static int in_order(const void *p, const void *q, void *context)
{
    const struct order *o = context;
    int64_t x = *(const int64_t *)p, y = *(const int64_t *)q;
    for (int i = 0; i < o->count; i++) {
        const struct tune_answer_cell *a = tune_answer_at(o->a, x, o->columns[i]), *b = tune_answer_at(o->a, y, o->columns[i]);
        if ((a->type == TUNE_ANSWER_NONE) != (b->type == TUNE_ANSWER_NONE))
            return a->type == TUNE_ANSWER_NONE ? 1 : -1;
        int sign = compare_cells(a, b);
        if (sign)
            return o->down[i] ? -sign : sign;
    }
    return (x > y) - (x < y);
}

/* Sort the rows by the columns in the list. */
static int sort_rows(struct tune_answer_table *a, const char *list, const char *aggregate, struct order *o)
{
    o->a = a;
    TRY(o->count = find_all(a, list, aggregate, &o->columns));
    TAKE(o->rows, a, a->rows);
    for (int64_t i = 0; i < a->rows; i++)
        o->rows[i] = i;
    if (a->rows > 0)
        qsort_r(o->rows, (size_t)a->rows, sizeof *o->rows, in_order, o);
    return 0;
}

/* Remove the minus signs from the names in the list, and store them in down. */
static int read_signs(char *list, bool down[MOST_NAMES])
{
    char *to = list;
    int n = 0;
    for (const char *from = list; *from; from++) {
        bool begins = to == list || to[-1] == ',';
        if (n == MOST_NAMES)
            return tune_error_usage("`sort` takes at most %d columns", MOST_NAMES);
        if (*from == '-' && begins)
            down[n] = true;
        else if (*from != ',' || !begins)
            *to++ = *from;
        n += *from == ',' && !begins;
    }
    *to = 0;
    return 0;
}

/* Replace the cells and the number of rows. */
static void replace_cells(struct tune_answer_table *a, struct tune_answer_cell *cells, int64_t rows)
{
    free(a->cells);
    a->cells = cells;
    a->rows = rows;
    a->filled = rows * a->count;
}

static int sort_answer(struct tune_answer_table *a, const struct tune_arrangement *how)
{
    struct order o = {0};
    char *list = tune_answer_copy(a, how->sort);
    TRY(list ? read_signs(list, o.down) : -1);
    TRY(sort_rows(a, list, how->aggregate ? how->aggregate : "mean", &o));
    struct tune_answer_cell *cells = malloc((size_t)(a->filled + 1) * sizeof *cells);
    if (!cells)
        return tune_answer_no_memory();
    for (int64_t i = 0; i < a->rows; i++)
        memcpy(cells + i * a->count, a->cells + o.rows[i] * a->count, (size_t)a->count * sizeof *cells);
    replace_cells(a, cells, a->rows);
    return 0;
}

/* ---- groups ---- */

/* A growing list of numbers. */
struct numbers {
    double *at;
    int count;
};

static int add_numbers(struct numbers *n, const struct tune_answer_cell *cell)
{
    const double single = tune_answer_number(cell);
    int count = cell->type == TUNE_ANSWER_LIST ? cell->numbers->count : !isnan(single);
    for (int i = 0; i < count; i++) {
        FIT(n->at, n->count);
        n->at[n->count++] = cell->type == TUNE_ANSWER_LIST ? cell->numbers->at[i] : single;
    }
    return 0;
}

/* Add the statistic of a column over the rows o->rows[from..from + count). */
static int add_statistic(struct tune_answer_table *to, const struct order *o, int64_t from, int64_t count, int column, const char *aggregate)
{
    struct numbers n = {0};
    bool whole = true;
    int code = 0;
    for (int64_t i = from; i < from + count && code == 0; i++) {
        const struct tune_answer_cell *cell = tune_answer_at(o->a, o->rows[i], column);
        whole = whole && cell->type != TUNE_ANSWER_NUMBER && !(cell->type == TUNE_ANSWER_LIST && !cell->numbers->whole);
        code = add_numbers(&n, cell);
    }
    if (code == 0)
        tune_answer_figure(to, n.count > 0 ? tune_statistic(n.at, n.count, aggregate) : NAN, whole);
    free(n.at);
    return code;
}

/* Unmark measured columns without a number, because they have no statistic. */
static void unmark_texts(struct tune_answer_table *a)
{
    for (int c = 0; c < a->count; c++) {
        int64_t row = 0;
        while (row < a->rows && isnan(tune_answer_number(tune_answer_at(a, row, c))))
            row++;
        a->columns[c].measured = a->columns[c].measured && row < a->rows;
    }
}

static void begin_groups(struct tune_answer_table *to, const struct tune_answer_table *a, const struct order *by, const char *aggregate)
{
    char name[1024];
    for (int i = 0; i < by->count; i++) {
        const struct tune_answer_column *from = &a->columns[by->columns[i]];
        *tune_answer_column(to, from->name) = (struct tune_answer_column){.name = from->name, .unit = from->unit, .dimension = true, .stays = true,
                                                                          .digits = from->digits};
    }
    tune_answer_column(to, "count");
    for (int c = 0; c < a->count; c++)
        if (a->columns[c].measured) {
            snprintf(name, sizeof name, "%s-%s", a->columns[c].name, aggregate);
            struct tune_answer_column *column = tune_answer_column(to, name);
            column->unit = a->columns[c].unit;
            column->measured = true;
        }
}

static bool is_same_group(const struct order *by, int64_t i, int64_t j)
{
    for (int c = 0; c < by->count; c++) {
        const struct tune_answer_cell *x = tune_answer_at(by->a, by->rows[i], by->columns[c]);
        const struct tune_answer_cell *y = tune_answer_at(by->a, by->rows[j], by->columns[c]);
        if ((x->type == TUNE_ANSWER_NONE) != (y->type == TUNE_ANSWER_NONE) || compare_cells(x, y) != 0)
            return false;
    }
    return true;
}

static int by_first(const void *a, const void *b, void *context)
{
    const int64_t *rows = context, x = rows[**(const int64_t *const *)a], y = rows[**(const int64_t *const *)b];
    return (x > y) - (x < y);
}

/* A hash of the row's dimensions that are not grouped by. */
static uint64_t hash_rest(const struct order *by, int64_t row)
{
    uint64_t hash = 0;
    char text[512];
    for (int c = 0; c < by->a->count; c++) {
        bool grouped = !by->a->columns[c].dimension;
        for (int i = 0; i < by->count && !grouped; i++)
            grouped = by->columns[i] == c;
        if (grouped)
            continue;
        tune_answer_to_string(tune_answer_at(by->a, row, c), text, sizeof text);
        hash = tune_hash64(text, strlen(text) + 1, hash + (uint64_t)c);
    }
    return hash;
}

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sum the distinct hashes of a group's rows. Groups with the same values of the other dimensions
 * have the same sum. */
static uint64_t sum_rest(const struct order *by, int64_t from, int64_t to, uint64_t *hashes)
{
    uint64_t sum = 0;
    for (int64_t i = from; i < to; i++)
        hashes[i - from] = hash_rest(by, by->rows[i]);
    qsort(hashes, (size_t)(to - from), sizeof *hashes, compare_hashes);
    for (int64_t i = 0; i < to - from; i++)
        sum += i > 0 && hashes[i] == hashes[i - 1] ? 0 : hashes[i];
    return sum;
}

/* Add a warning if groups have different values of the other dimensions, because their statistics
 * are not comparable. */
static int warn_unlike(struct tune_answer_table *a, const struct order *by, const int64_t *starts, int64_t groups)
{
    uint64_t *hashes, first = 0;
    bool unlike = false;
    TAKE(hashes, a, a->rows);
    for (int64_t g = 0; g < groups && !unlike; g++) {
        uint64_t sum = sum_rest(by, starts[g], starts[g + 1], hashes);
        first = g == 0 ? sum : first;
        unlike = sum != first;
    }
    if (unlike)
        tune_answer_add_note(a, TUNE_NOTE_WARNING, "the groups also differ in other "
                                                   "dimensions, so a difference between groups can "
                                                   "come from those; samples effect compares only "
                                                   "entities that differ in one dimension");
    return 0;
}

/* Merge rows that are equal in the columns of how->group_by. Groups are in the order of their first
 * rows. */
static int group_rows(struct tune_answer_table *a, const struct tune_arrangement *how)
{
    const char *aggregate = how->aggregate ? how->aggregate : "mean";
    struct order by = {0};
    int64_t *starts, **groups, count = 0;
    TRY(sort_rows(a, how->group_by, aggregate, &by));
    TAKE(starts, a, a->rows + 1);
    TAKE(groups, a, a->rows);
    for (int64_t i = 0; i < a->rows; i++)
        if (i == 0 || !is_same_group(&by, i - 1, i)) {
            starts[count] = i;
            groups[count] = &starts[count];
            count++;
        }
    starts[count] = a->rows;
    TRY(warn_unlike(a, &by, starts, count));
    qsort_r(groups, (size_t)count, sizeof *groups, by_first, by.rows);
    unmark_texts(a);
    struct tune_answer_table to = *a; /* keeps memory and notes; gets new columns and cells */
    to.columns = NULL;
    to.cells = NULL;
    to.count = 0;
    to.rows = to.filled = 0;
    to.numbered = false;
    begin_groups(&to, a, &by, aggregate);
    int code = 0;
    for (int64_t g = 0; g < count && code == 0; g++) {
        int64_t from = *groups[g], n = groups[g][1] - from;
        for (int i = 0; i < by.count; i++)
            tune_answer_cell(&to, tune_answer_at(a, by.rows[from], by.columns[i]));
        tune_answer_whole(&to, n);
        for (int c = 0; c < a->count && code == 0; c++)
            if (a->columns[c].measured)
                code = add_statistic(&to, &by, from, n, c, aggregate);
        code = code < 0 ? -1 : tune_answer_end_row(&to);
    }
    free(a->columns);
    free(a->cells);
    *a = to;
    return code;
}

/* ---- columns ---- */

static int choose_columns(struct tune_answer_table *a, const struct tune_arrangement *how)
{
    int *indexes, count;
    TRY(count = find_all(a, how->columns, how->aggregate ? how->aggregate : "mean", &indexes));
    struct tune_answer_column *columns = calloc((size_t)count + 1, sizeof *columns);
    struct tune_answer_cell *cells = malloc((size_t)(a->rows * count + 1) * sizeof *cells);
    if (!columns || !cells) {
        free(columns);
        free(cells);
        return tune_answer_no_memory();
    }
    for (int i = 0; i < count; i++) {
        columns[i] = a->columns[indexes[i]];
        columns[i].hidden = false;
        columns[i].stays = true;
        for (int64_t row = 0; row < a->rows; row++)
            cells[row * count + i] = *tune_answer_at(a, row, indexes[i]);
    }
    free(a->columns);
    a->columns = columns;
    a->count = count;
    a->numbered = false;
    replace_cells(a, cells, a->rows);
    return 0;
}

int tune_answer_arrange(struct tune_answer_table *a, const struct tune_arrangement *how)
{
    TRY(how->group_by ? group_rows(a, how) : 0);
    TRY(how->sort ? sort_answer(a, how) : 0);
    TRY(how->columns ? choose_columns(a, how) : 0);
    if (how->limit > 0 && a->rows > how->limit) {
        a->rows = how->limit;
        a->filled = a->rows * a->count;
    }
    return 0;
}
