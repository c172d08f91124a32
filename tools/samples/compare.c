/* compare.c - compare two operations, machines, builds or stores. Each entity that was measured on
 * both gets its figures side by side, and their ratio.
 *
 * Two rows belong to one entity if experiment and all inputs are equal, whatever space asked for
 * them. */
#include <math.h>
#include <stdlib.h>

#include "core/nearest.h"
#include "core/print.h"
#include "sweeps/discovery/uids.h"
#include "regression.h"
#include "samples.h"

/* One of the two sides: rows of a store, of an operation, of host classes or of builds. */
struct side {
    const char *text;
    struct tune_store *store;     /* the store of --store, or a store that was named */
    enum { STORE, OPERATION, HOST, BUILD } kind;
    const char *wanted;           /* text of a host or build */
    struct tune_uids uids;        /* of an operation */
    char host[512], build[128];   /* host class of its first row; build of the first row of the
                                   * current experiment */
    int table, tables;            /* number of experiments with rows; each has its own build */
    bool hosts_mixed, builds_mixed;
};

/* A row of one side. */
struct row {
    uint64_t key[2];
    int side, table;
    int64_t number;               /* index in the order of reading */
    struct tune_place place;
};

/* The result for one property. */
struct summary {
    const char *table;            /* two experiments may have a property of the same name */
    char *property;
    double logs, low, high;       /* of the ratios */
    int64_t count, different, repeated;
};

static struct {
    struct side sides[2];
    const char **tables;          /* [table_count] tables of either store */
    int table_count;
    struct row *rows;
    int64_t count, shared;  /* shared: number of rows on both sides */
    struct samples_table *passes[2]; /* [table_count] scans to read rows again, opened when
                                      * needed */
    struct summary *summaries;
    int summary_count;
    const char *properties[REGRESSION_PROPERTIES];
    int property_count;
} compare;

/* ---- sides ---- */

static int read_operation(struct side *s)
{
    struct tune_operation_record record;
    const struct tune_cell *cells;
    int more;
    TRY(tune_operation_record_read(s->store, s->text, &record));
    tune_operation_record_free(&record);
    struct tune_scan *scan = TUNE_SCAN(s->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, s->text) && !cells[1].absent && (more = tune_uids_add_text(&s->uids, cells[1].text)) < 0)
            break;
    tune_scan_free(scan);
    tune_uids_sort(&s->uids);
    return more;
}

static int open_side(struct side *s, const char *text)
{
    s->text = text;
    s->wanted = strchr(text, '=') ? strchr(text, '=') + 1 : NULL;
    s->kind = s->wanted && !strncmp(text, "host=", 5)    ? HOST
              : s->wanted && !strncmp(text, "build=", 6) ? BUILD
              : tune_file_is_folder(text)                ? STORE
                                                         : OPERATION;
    if (s->kind == OPERATION && strchr(text, '/'))
        return tune_error_usage("compare: there is no folder %s; each side is a store's folder, an operation, "
                            "host=TEXT or build=TEXT (entities are set side by side by best and plot)", text);
    if (s->kind == STORE)
        return (s->store = tune_store_open(text, false)) ? 0 : -1;
    if (!samples.store && !(samples.store = tune_store_open(my.store, false)))
        return -1;
    s->store = samples.store;
    return s->kind == OPERATION ? read_operation(s) : 0;
}

static bool is_of(const struct side *s, const struct tune_cell *cells)
{
    uint8_t uid[16];
    switch (s->kind) {
    case HOST:
        return strstr(cells[TUNE_KEY_HOST_CLASS].text, s->wanted) || !strcmp(cells[TUNE_KEY_HOST].text, s->wanted);
    case BUILD:
        return !strncmp(cells[TUNE_KEY_BUILD].text, s->wanted, strlen(s->wanted));
    case OPERATION:
        tune_uid_read(uid, cells[TUNE_KEY_UID].text);
        return tune_uids_has(&s->uids, uid);
    default:
        return true;
    }
}

static void note_origin(struct side *s, int table, const struct tune_cell *cells)
{
    const char *host = cells[TUNE_KEY_HOST_CLASS].text, *build = cells[TUNE_KEY_BUILD].text;
    if (s->tables == 0)
        snprintf(s->host, sizeof s->host, "%s", host);
    if (s->tables == 0 || s->table != table) {
        snprintf(s->build, sizeof s->build, "%s", build);
        s->table = table;
        s->tables++;
    }
    s->hosts_mixed = s->hosts_mixed || strcmp(s->host, host);
    s->builds_mixed = s->builds_mixed || strcmp(s->build, build);
}

/* ---- rows ---- */

/* Hash the experiment and the inputs that have a value. Two stores may order the inputs
 * differently. The sum of the inputs' hashes does not depend on the order. */
static void make_key(const struct samples_table *t, const struct tune_cell *cells, uint64_t key[2])
{
    const char *experiment = cells[TUNE_KEY_EXPERIMENT].text;
    for (int k = 0; k < 2; k++)
        key[k] = tune_hash64(t->name, strlen(t->name), tune_hash64(experiment, strcspn(experiment, "."), (uint64_t)k));
    for (int i = 0; i < t->count; i++) {
        double number = cells[i].number == 0 ? 0 : cells[i].number;
        if (t->columns[i].role != TUNE_COLUMN_INPUT || cells[i].absent)
            continue;
        for (int k = 0; k < 2; k++) {
            uint64_t name = tune_hash64(t->names[i], strlen(t->names[i]), (uint64_t)k + 7);
            key[k] += cells[i].text ? tune_hash64(cells[i].text, strlen(cells[i].text), name)
                                    : tune_hash64(&number, sizeof number, ~name);
        }
    }
}

static void add_row(int side, int table, const struct samples_table *t, const struct tune_cell *cells)
{
    samples_fit(&compare.rows, compare.count, sizeof *compare.rows);
    struct row *r = &compare.rows[compare.count];
    *r = (struct row){.side = side, .table = table, .number = compare.count, .place = tune_scan_place(t->scan)};
    make_key(t, cells, r->key);
    compare.count++;
}

/* Rows of the table that are of either side; of one store both are looked for in one pass. */
static int read_table(int from, int to, int table)
{
    struct samples_table t;
    const struct tune_cell *cells;
    struct tune_store *store = compare.sides[from].store;
    if (!tune_store_has(store, compare.tables[table]))
        return 0;
    int more = samples_table_open(&t, store, compare.tables[table], true);
    while (more >= 0 && (more = samples_table_next(&t, &cells)) == 1) {
        int sides = 0;
        if (strcmp(cells[TUNE_KEY_STATUS].text, "valid"))
            continue;
        for (int s = from; s < to; s++)
            if (is_of(&compare.sides[s], cells)) {
                note_origin(&compare.sides[s], table, cells);
                add_row(s, table, &t, cells);
                sides++;
            }
        compare.shared += sides == 2;
    }
    samples_table_free(&t);
    return more;
}

static int read_rows(void)
{
    bool same = compare.sides[0].store == compare.sides[1].store;
    int counts[2];
    for (int s = 0; s < 2; s++)
        if (!tune_store_tables(compare.sides[s].store, &counts[s]))
            return -1;
    compare.tables = samples_take(counts[0] + counts[1], sizeof *compare.tables);
    for (int s = 0; s < 2; s++) {
        const char *const *names = tune_store_tables(compare.sides[s].store, &counts[s]);
        for (int i = 0; i < counts[s]; i++)
            if (s == 0 || !tune_store_has(compare.sides[0].store, names[i]))
                compare.tables[compare.table_count++] = names[i];
    }
    for (int t = 0; t < compare.table_count; t++) {
        TRY(read_table(0, same ? 2 : 1, t));
        if (!same)
            TRY(read_table(1, 2, t));
    }
    return 0;
}

/* ---- groups ---- */

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] < y->key[k] ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Groups are shown in the order of their first rows. */
static int by_first(const void *a, const void *b)
{
    const int64_t x = compare.rows[*(const int64_t *)a].number, y = compare.rows[*(const int64_t *)b].number;
    return (x > y) - (x < y);
}

static struct summary *summary_of(const char *table, const char *property)
{
    for (int i = 0; i < compare.summary_count; i++)
        if (compare.summaries[i].table == table && !strcmp(compare.summaries[i].property, property))
            return &compare.summaries[i];
    samples_fit(&compare.summaries, compare.summary_count, sizeof *compare.summaries);
    struct summary *s = &compare.summaries[compare.summary_count++];
    *s = (struct summary){.table = table, .property = samples_copy(property), .low = INFINITY, .high = -INFINITY};
    return s;
}

static bool is_asked_for(const char *property)
{
    return compare.property_count == 0 || tune_name_find(compare.properties, compare.property_count, property) >= 0;
}

/* Read all cells of a row. */
static const struct tune_cell *cells_of(const struct row *r, const struct samples_table **table)
{
    const struct tune_cell *cells;
    struct samples_table *t = &compare.passes[r->side][r->table];
    if (!t->scan && samples_table_open(t, compare.sides[r->side].store, compare.tables[r->table], false) < 0)
        return NULL;
    *table = t;
    return tune_scan_at(t->scan, r->place, &cells) == 0 ? cells : NULL;
}

static int put_pair(const char *entity, const struct row *r, const char *property, double *const values[2], const int counts[2])
{
    const struct tune_spread spread[2] = {tune_spread_of(values[0], counts[0]), tune_spread_of(values[1], counts[1])};
    double a = samples_middle(&spread[0]), b = samples_middle(&spread[1]);
    double ratio = a != 0 ? b / a : NAN, p = tune_welch(&spread[0], &spread[1]);
    struct summary *s = summary_of(compare.tables[r->table], property);
    if (ratio > 0 && isfinite(ratio)) {
        s->logs += log(ratio);
        s->low = fmin(s->low, ratio);
        s->high = fmax(s->high, ratio);
        s->count++;
        s->repeated += !isnan(p);
        s->different += p < 0.05;
    }
    samples_text(compare.tables[r->table]);
    samples_text(entity);
    samples_text(property);
    samples_number(a, false, 6);
    samples_number(b, false, 6);
    samples_number(ratio, false, 4);
    samples_number(spread[0].count, true, 6);
    samples_number(spread[1].count, true, 6);
    samples_number(p, false, 2);
    samples_text(isnan(p) ? "" : p < 0.05 ? "yes" : "no");
    return samples_end_row();
}

/* Compare one entity under one experiment, rows first to first + count - 1, in all properties that
 * both sides have. */
static int put_group(const struct row *first, int64_t count)
{
    static double *values[2];
    const struct samples_table *t;
    const struct tune_cell *cells = cells_of(first, &t);
    TRY(cells ? 0 : -1);
    const char *entity = samples_copy(cells[TUNE_KEY_ENTITY].text);
    const struct tune_column *columns = t->columns;
    for (int i = 0, all = t->count; i < all; i++) {
        int n[2] = {0, 0};
        if (columns[i].role != TUNE_COLUMN_TARGET || columns[i].type == TUNE_CELL_TEXT || !is_asked_for(columns[i].name))
            continue;
        for (int64_t k = 0; k < count; k++) {
            int side = first[k].side;
            TRY((cells = cells_of(&first[k], &t)) ? 0 : -1);
            /* the other store may have its columns in another order */
            int c = tune_name_find(t->names, t->count, columns[i].name);
            if (c < 0 || cells[c].absent || cells[c].text)
                continue;
            samples_fit(&values[side], n[side], sizeof *values[side]);
            values[side][n[side]++] = cells[c].number;
        }
        if (n[0] > 0 && n[1] > 0)
            TRY(my.regression ? regression_put(compare.tables[first->table], entity, columns[i].name, values, n)
                              : put_pair(entity, first, columns[i].name, values, n));
    }
    return 0;
}

/* True if the group has both sides. */
static bool is_common(const struct row *first, int64_t count)
{
    int64_t a = 0;
    for (int64_t i = 0; i < count; i++)
        a += first[i].side == 0;
    return a > 0 && a < count;
}

static int64_t group_length(int64_t first)
{
    int64_t n = 1;
    const struct row *rows = compare.rows;
    while (first + n < compare.count && !memcmp(rows[first].key, rows[first + n].key, sizeof rows[first].key))
        n++;
    return n;
}

static int put_groups(int64_t *common)
{
    static const char *const headings[] = {"experiment", "entity", "property", "a", "b", "b/a", "results_a", "results_b", "p",
                                           "differs"};
    int64_t *firsts = samples_take(compare.count, sizeof *firsts);
    if (my.regression)
        regression_columns();
    else
        samples_columns(headings, 10);
    samples_begin(false);
    *common = 0;
    if (compare.count > 0)
        qsort(compare.rows, (size_t)compare.count, sizeof *compare.rows, by_key);
    for (int64_t i = 0, n; i < compare.count; i += n)
        if (is_common(&compare.rows[i], n = group_length(i)))
            firsts[(*common)++] = i;
    qsort(firsts, (size_t)*common, sizeof *firsts, by_first);
    for (int64_t i = 0; i < *common; i++)
        TRY(put_group(&compare.rows[firsts[i]], group_length(firsts[i])));
    TRY(my.regression ? regression_end() : 0);
    return samples_end();
}

/* ---- notes beside the rows ---- */

static void tell_side(char name, const struct side *s)
{
    const char *build = s->builds_mixed ? "several builds"
                        : s->tables > 1 ? "one build of each experiment"
                        : *s->build     ? "build "
                                        : "unknown build";
    fprintf(samples.out, "# %c: ", name);
    tune_print_line_of(samples.out, s->text);
    fprintf(samples.out, ", %s, %s%.16s\n", s->hosts_mixed ? "several host classes" : *s->host ? s->host : "unknown host class",
            build, s->builds_mixed || s->tables > 1 ? "" : s->build);
}

static void tell_summaries(void)
{
    for (int i = 0; i < compare.summary_count; i++) {
        const struct summary *s = &compare.summaries[i];
        if (s->count == 0)
            continue;
        fprintf(samples.out, "# b/a of %s%s%s: %.4g, the geometric mean of %lld (%.4g to %.4g)",
                compare.table_count > 1 ? s->table : "", compare.table_count > 1 ? " " : "", s->property,
                exp(s->logs / (double)s->count), (long long)s->count, s->low, s->high);
        if (s->repeated > 0)
            fprintf(samples.out, "; %lld of %lld repeated ones differ by more than their spread", (long long)s->different,
                    (long long)s->repeated);
        fputc('\n', samples.out);
    }
    fprintf(samples.out, "# differs: p, by Welch's t test of the repeats, is below 5 %%\n");
}

/* Check that every requested property is a target of some table. */
static int check_properties(void)
{
    const char *names[4096], *units[4096];
    int count = 0;
    TRY(compare.property_count = my.regression ? 0 : samples_split(my.properties, compare.properties, REGRESSION_PROPERTIES));
    for (int t = 0; t < compare.table_count; t++)
        for (int s = 0; s < 2; s++) {
            int n = 0;
            bool there = tune_store_has(compare.sides[s].store, compare.tables[t]);
            const struct tune_column *c = there ? tune_store_columns(compare.sides[s].store, compare.tables[t], &n) : NULL;
            for (int i = 0; c && i < n && count < 4096; i++)
                if (c[i].role == TUNE_COLUMN_TARGET) {
                    units[count] = c[i].unit;
                    names[count++] = c[i].name;
                }
        }
    if (my.regression)
        return (compare.property_count = regression_read(names, units, count, compare.properties)) < 0 ? -1 : 0;
    for (int i = 0; i < compare.property_count; i++)
        if (tune_name_find(names, count, compare.properties[i]) < 0)
            return samples_no_such("property", compare.properties[i], names, count);
    return 0;
}

static int run(void)
{
    int64_t common;
    for (int s = 0; s < 2; s++)
        TRY(open_side(&compare.sides[s], samples_word(s)));
    TRY(read_rows());
    TRY(check_properties());
    for (int s = 0; s < 2; s++) {
        int64_t rows = 0;
        for (int64_t i = 0; i < compare.count; i++)
            rows += compare.rows[i].side == s;
        if (rows == 0)
            return tune_error_set("%s has no valid rows", compare.sides[s].text);
        compare.passes[s] = samples_take(compare.table_count, sizeof *compare.passes[s]);
    }
    if (samples_people())
        for (int s = 0; s < 2; s++)
            tell_side(s ? 'b' : 'a', &compare.sides[s]);
    TRY(put_groups(&common));
    if (samples_people() && my.regression)
        regression_tell();
    else if (samples_people() && common > 0)
        tell_summaries();
    if (compare.shared > 0)
        fprintf(stderr, "samples: %lld rows are on both sides\n", (long long)compare.shared);
    if (common == 0)
        fprintf(stderr, "samples: no entity was measured on both sides with the same inputs\n");
    return my.regression ? regression_code() : 0;
}

int samples_compare(void)
{
    if (samples_words() != 2)
        return tune_error_usage("compare what? Two of: a store's folder, an operation, host=TEXT, build=TEXT");
    if (!my.regression && (my.maximize || my.minimize))
        return tune_error_usage("compare takes --maximize and --minimize with --regression only; --property chooses properties");
    TRY(samples_check_aggregate());
    int code = run();
    for (int s = 0; s < 2; s++) {
        for (int t = 0; compare.passes[s] && t < compare.table_count; t++)
            samples_table_free(&compare.passes[s][t]);
        if (compare.sides[s].store != samples.store)
            tune_store_free(compare.sides[s].store);
    }
    return code;
}
