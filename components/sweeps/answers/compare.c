/* compare.c - compare two sides, entity by entity: configurations, builds, hosts, operations, or
 * stores.
 *
 * Two rows belong to one entity if their experiment and all inputs are equal. Their space does not
 * matter. Inputs that a configuration names are not compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/statistics.h"
#include "sweeps/answers/pass.h"
#include "sweeps/answers/regression.h"
#include "sweeps/discovery/uids.h"

enum { MOST_NAMES = 16, PROPERTIES = 4096 };

/* One of the two sides. */
struct side {
    const char *text;
    struct tune_store *store;     /* the question's store, or the named one */
    bool own_store;               /* the store was opened here */
    enum { STORE, OPERATION, HOST, BUILD, CONFIGURATION } kind;
    const char *wanted;           /* the name of a host, or the beginning of a build id */
    const char *operation;
    struct tune_uids uids;        /* uids of the operation's results */
    const char *names[MOST_NAMES], *values[MOST_NAMES]; /* [count] inputs of a configuration */
    int count;
    const char *build;            /* build or configuration: the beginning of the build id in the
                                   * current table. NULL: any; "none": no build matches */
    char host[512], first_build[128]; /* host class of the first row; build of the current table's first row */
    int table, tables;            /* tables: number of experiments with rows; each has its own
                                   * build */
    bool hosts_mixed, builds_mixed;
    int64_t rows;
};

/* A row of one side. */
struct row {
    uint64_t key[2];
    int side, table;
    int64_t number;               /* index in reading order */
    struct tune_row_position position;
};

/* The result for one property. */
struct summary {
    const char *table;            /* the experiment: two may have a property with the same name */
    const char *property;
    double *logs;                 /* [count] logarithms of ratios, one per entity */
    int count, different, repeated;
    int left_out;                 /* entities without a finite ratio above 0 */
};

struct compare {
    struct tune_subject *s;
    struct side sides[2];
    const char **tables;          /* [table_count] names of the tables of both stores */
    int table_count;
    struct row *rows;             /* [count] */
    int64_t count, shared, other_builds; /* shared: rows on both sides; other_builds: left out */
    int asked, lacking;           /* asked: tables that were read; lacking: those that lack a name
                                   * of an expression */
    struct tune_pass *passes[2];  /* [table_count] passes to read rows again, opened when needed */
    struct summary *summaries;    /* [summary_count] */
    int summary_count;
    const char *properties[TUNE_REGRESSION_PROPERTIES];
    int property_count;
    double *values[2];            /* the figures of one entity */
    bool median;
    struct tune_regression regression;
};

/* ---- sides ---- */

/* Read a configuration, such as "batch_size=2,lr=0.1". */
static int read_configuration(struct compare *c, struct side *side)
{
    const char *parts[MOST_NAMES];
    int count = tune_subject_list(c->s, side->text, parts, MOST_NAMES);
    TRY(count);
    for (int i = 0; i < count; i++) {
        char *equals = strchr(parts[i], '=');
        if (!equals || equals == parts[i])
            return tune_error_usage("compare: \"%s\" in %s is not NAME=VALUE", parts[i],
                                    side->text);
        *equals = 0;
        side->names[i] = parts[i];
        side->values[i] = equals + 1;
    }
    side->count = count;
    side->kind = CONFIGURATION;
    return 0;
}

static int open_side(struct compare *c, struct side *side, const char *text)
{
    const char *equals = strchr(text, '=');
    side->text = text;
    side->store = c->s->q->store;
    side->table = -1;
    if (tune_file_is_folder(text)) {
        side->kind = STORE;
        side->own_store = true;
        return (side->store = tune_store_open(text, false)) ? 0 : -1;
    }
    if (!equals && strchr(text, '/'))
        return tune_error_usage("compare: there is no folder %s; expected a configuration "
                                "(NAME=VALUE,...), the folder of a store, an operation, host=TEXT, "
                                "build=ID, build=last or build=previous", text);
    if (!side->store)
        return tune_error_usage("compare: %s needs a store; name its folder with `store`", text);
    side->wanted = equals ? equals + 1 : NULL;
    bool operation = equals && !strncmp(text, "operation=", 10);
    if (!equals || operation) {
        side->kind = OPERATION;
        side->operation = operation ? side->wanted : text;
        return tune_operation_uids(side->store, side->operation, &side->uids);
    }
    side->kind = !strncmp(text, "host=", 5) ? HOST : BUILD;
    return side->kind == HOST || !strncmp(text, "build=", 6) ? 0 : read_configuration(c, side);
}

/* True if the cell has the value of the text. */
static bool is_value(const struct tune_pass *t, int i, const struct tune_cell *cell, const char *text)
{
    struct tune_value value = tune_pass_value(t, i, cell), read;
    char spelled[TUNE_STORE_TEXT_MAX + 1];
    tune_value_str(&value, spelled, sizeof spelled);
    return !strcmp(spelled, text) || (tune_value_read_as(text, &read) && tune_value_equal(&value, &read));
}

/* True if the row has the inputs of the configuration. */
static bool has_configuration(const struct side *side, const struct tune_pass *t, const struct tune_cell *cells)
{
    for (int i = 0; i < side->count; i++) {
        int c = tune_name_find(t->names, t->stored, side->names[i]);
        if (c < 0 || t->columns[c].role != TUNE_COLUMN_INPUT || !is_value(t, c, &cells[c], side->values[i]))
            return false;
    }
    return true;
}

static bool is_of(const struct side *side, const struct tune_pass *t, const struct tune_cell *cells)
{
    uint8_t uid[16];
    switch (side->kind) {
    case HOST:
        return strstr(cells[TUNE_KEY_HOST_CLASS].text, side->wanted) || !strcmp(cells[TUNE_KEY_HOST].text, side->wanted);
    case OPERATION:
        tune_uid_read(uid, cells[TUNE_KEY_UID].text);
        return tune_uids_has(&side->uids, uid);
    case CONFIGURATION:
        return has_configuration(side, t, cells);
    default:
        return true;
    }
}

static bool is_of_build(const struct side *side, const struct tune_cell *cells)
{
    return !side->build || (*side->build ? !strncmp(cells[TUNE_KEY_BUILD].text, side->build, strlen(side->build)) : !*cells[TUNE_KEY_BUILD].text);
}

static void add_provenance(struct side *side, int table, const struct tune_cell *cells)
{
    const char *host = cells[TUNE_KEY_HOST_CLASS].text, *build = cells[TUNE_KEY_BUILD].text;
    if (side->tables == 0)
        snprintf(side->host, sizeof side->host, "%s", host);
    if (side->tables == 0 || side->table != table) {
        snprintf(side->first_build, sizeof side->first_build, "%s", build);
        side->table = table;
        side->tables++;
    }
    side->hosts_mixed = side->hosts_mixed || strcmp(side->host, host);
    side->builds_mixed = side->builds_mixed || strcmp(side->first_build, build);
}

/* ---- builds ---- */

/* A build in a table, and its last start. */
struct build {
    const char *id;
    double started;
};

static int latest_first(const void *a, const void *b)
{
    const struct build *x = a, *y = b;
    return (x->started < y->started) - (x->started > y->started);
}

/* List the builds of a table's valid rows in *builds, the latest first. Returns their number, or
 * -1. */
static int list_builds(struct compare *c, struct tune_store *store, const char *table, struct build **builds)
{
    const struct tune_cell *cells;
    int more, count = 0;
    struct tune_scan *scan = TUNE_SCAN(store, table, TUNE_KEY_BUILD, TUNE_KEY_STARTED, TUNE_KEY_STATUS);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        int i = 0;
        if (strcmp(cells[2].text, "valid"))
            continue;
        while (i < count && strcmp((*builds)[i].id, cells[0].text))
            i++;
        if (i == count) {
            if (!tune_array_fit(builds, (size_t)count, sizeof **builds)) {
                more = tune_answer_no_memory();
                break;
            }
            (*builds)[count++] = (struct build){tune_answer_copy(c->s->a, cells[0].text), 0};
        }
        (*builds)[i].started = fmax((*builds)[i].started, cells[1].number);
    }
    tune_scan_free(scan);
    TRY(more);
    if (count > 0)
        qsort(*builds, (size_t)count, sizeof **builds, latest_first);
    return count;
}

/* Set the build that a side needs in a table. A configuration uses the question's build, or else
 * the last one. */
static int choose_build(struct compare *c, struct side *side, const char *table)
{
    const char *wanted = side->kind == BUILD ? side->wanted : side->kind == CONFIGURATION ? c->s->q->build ? c->s->q->build : "last" : "all";
    struct build *builds = NULL;
    int nth = !strcmp(wanted, "last") ? 0 : !strcmp(wanted, "previous") ? 1 : -1;
    side->build = nth >= 0 || strcmp(wanted, "all") ? wanted : NULL;
    if (nth < 0)
        return 0;
    int count = list_builds(c, side->store, table, &builds);
    side->build = nth < count ? builds[nth].id : "none";
    free(builds);
    return count < 0 ? -1 : 0;
}

/* ---- rows ---- */

/* True if a configuration names the input. */
static bool is_named(const struct compare *c, const char *input)
{
    return tune_name_find(c->sides[0].names, c->sides[0].count, input) >= 0 || tune_name_find(c->sides[1].names, c->sides[1].count, input) >= 0;
}

/* Hash the experiment and the inputs that have a value. The hashes of the inputs are added, because
 * two stores may order inputs differently. */
static void make_key(const struct compare *c, const struct tune_pass *t, const struct tune_cell *cells, uint64_t key[2])
{
    const char *experiment = cells[TUNE_KEY_EXPERIMENT].text;
    for (int k = 0; k < 2; k++)
        key[k] = tune_hash64(t->name, strlen(t->name), tune_hash64(experiment, strcspn(experiment, "."), (uint64_t)k));
    for (int i = 0; i < t->count; i++) {
        double number = cells[i].number == 0 ? 0 : cells[i].number;
        if (t->columns[i].role != TUNE_COLUMN_INPUT || cells[i].absent || is_named(c, t->names[i]))
            continue;
        for (int k = 0; k < 2; k++) {
            uint64_t name = tune_hash64(t->names[i], strlen(t->names[i]), (uint64_t)k + 7);
            if (cells[i].text)
                key[k] += tune_hash64(cells[i].text, strlen(cells[i].text), name);
            else if (t->columns[i].type == TUNE_CELL_WHOLE && (fabs(number) >= 0x1p63 || (int64_t)number != cells[i].whole)) /* above 2^53 */
                key[k] += tune_hash64(&cells[i].whole, sizeof cells[i].whole, ~name);
            else
                key[k] += tune_hash64(&number, sizeof number, ~name);
        }
    }
}

/* Add a valid row to each side that it belongs to. */
static int take_row(struct compare *c, int from, int to, int table, const struct tune_pass *t, const struct tune_cell *cells)
{
    int sides = 0, left = 0;
    for (int k = from; k < to; k++) {
        struct side *side = &c->sides[k];
        if (!is_of(side, t, cells))
            continue;
        if (!is_of_build(side, cells)) {
            left += side->kind == CONFIGURATION;
            continue;
        }
        FIT(c->rows, c->count);
        struct row *r = &c->rows[c->count];
        *r = (struct row){.side = k, .table = table, .number = c->count, .position = tune_scan_position(t->scan)};
        make_key(c, t, cells, r->key);
        add_provenance(side, table, cells);
        c->count++;
        side->rows++;
        sides++;
    }
    c->shared += sides == 2;
    c->other_builds += left > 0;
    return 0;
}

/* Read the table's rows of either side. If both sides are in one store, one pass suffices. */
static int read_table(struct compare *c, int from, int to, int table)
{
    struct tune_pass t;
    const struct tune_cell *cells;
    struct tune_store *store = c->sides[from].store;
    if (!tune_store_has(store, c->tables[table]))
        return 0;
    for (int k = from; k < to; k++)
        TRY(choose_build(c, &c->sides[k], c->tables[table]));
    int more = tune_pass_open(&t, c->s, store, c->tables[table], true);
    c->asked++;
    if (more < 0 && tune_error_kind() == TUNE_ERROR_USAGE) {
        tune_pass_free(&t);
        c->lacking++;
        return 0;
    }
    while (more >= 0 && (more = tune_pass_next(&t, &cells)) == 1)
        if (!strcmp(cells[TUNE_KEY_STATUS].text, "valid") && take_row(c, from, to, table, &t, cells) < 0)
            more = -1;
    tune_pass_free(&t);
    return more;
}

static int read_rows(struct compare *c)
{
    bool same = c->sides[0].store == c->sides[1].store;
    int counts[2];
    for (int k = 0; k < 2; k++)
        TRY(tune_store_tables(c->sides[k].store, &counts[k]) ? 0 : -1);
    TAKE(c->tables, c->s->a, counts[0] + counts[1]);
    for (int k = 0; k < 2; k++) {
        const char *const *names = tune_store_tables(c->sides[k].store, &counts[k]);
        for (int i = 0; i < counts[k]; i++)
            if (k == 0 || !tune_store_has(c->sides[0].store, names[i]))
                c->tables[c->table_count++] = names[i];
    }
    for (int t = 0; t < c->table_count; t++) {
        TRY(read_table(c, 0, same ? 2 : 1, t));
        if (!same)
            TRY(read_table(c, 1, 2, t));
    }
    if (c->asked > 0 && c->lacking == c->asked)
        return -1; /* keep the error of the last table */
    if (c->lacking > 0)
        tune_answer_add_note(c->s->a, TUNE_NOTE_WARNING, "%d of %d experiments have no column of a "
                                                         "name used in `where` or `derive`, so their "
                                                         "rows are not compared",
                             c->lacking, c->asked);
    tune_error_clear();
    return 0;
}

/* ---- entities ---- */

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] < y->key[k] ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sort entities by their first rows. */
static int by_first(const void *a, const void *b, void *context)
{
    const struct compare *c = context;
    const int64_t x = c->rows[*(const int64_t *)a].number, y = c->rows[*(const int64_t *)b].number;
    return (x > y) - (x < y);
}

static struct summary *summary_of(struct compare *c, const char *table, const char *property)
{
    for (int i = 0; i < c->summary_count; i++)
        if (c->summaries[i].table == table && !strcmp(c->summaries[i].property, property))
            return &c->summaries[i];
    const char *copy = tune_answer_copy(c->s->a, property);
    if (!copy || !tune_array_fit(&c->summaries, (size_t)c->summary_count, sizeof *c->summaries))
        return NULL;
    c->summaries[c->summary_count] = (struct summary){.table = table, .property = copy};
    return &c->summaries[c->summary_count++];
}

/* Read all cells of a row. */
static const struct tune_cell *cells_of(struct compare *c, const struct row *r, const struct tune_pass **pass)
{
    const struct tune_cell *cells;
    struct tune_pass *t = &c->passes[r->side][r->table];
    if (!t->scan && tune_pass_open(t, c->s, c->sides[r->side].store, c->tables[r->table], c->s->derived_count > 0) < 0)
        return NULL;
    *pass = t;
    return tune_pass_at(t, r->position, &cells) == 0 ? cells : NULL;
}

/* Compute the 95 % interval of b/a from the repeats, by Welch's method on logarithms. NaN: there is
 * none. */
static void find_interval(double *const values[2], const int counts[2], double interval[2])
{
    struct tune_spread side[2];
    interval[0] = interval[1] = NAN;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < counts[k]; i++) {
            if (!(values[k][i] > 0))
                return;
            values[k][i] = log(values[k][i]);
        }
        side[k] = tune_spread_of(values[k], counts[k]);
    }
    if (counts[0] < 2 || counts[1] < 2)
        return;
    double x = side[0].deviation * side[0].deviation / counts[0], y = side[1].deviation * side[1].deviation / counts[1];
    double freedom = x + y > 0 ? (x + y) * (x + y) / (x * x / (counts[0] - 1) + y * y / (counts[1] - 1)) : 1;
    double half = x + y > 0 ? tune_student_t(0.05, freedom) * sqrt(x + y) : 0, middle = side[1].mean - side[0].mean;
    interval[0] = exp(middle - half);
    interval[1] = exp(middle + half);
}

static int add_pair(struct compare *c, const char *entity, const struct row *r, const char *property, const int counts[2])
{
    struct tune_answer_table *answer = c->s->a;
    const struct tune_spread spread[2] = {tune_spread_of(c->values[0], counts[0]), tune_spread_of(c->values[1], counts[1])};
    double a = c->median ? spread[0].median : spread[0].mean, b = c->median ? spread[1].median : spread[1].mean, interval[2];
    double ratio = a != 0 ? b / a : NAN, p = tune_welch(&spread[0], &spread[1]);
    struct summary *s = summary_of(c, c->tables[r->table], property);
    if (!s)
        return tune_answer_no_memory();
    find_interval(c->values, counts, interval);
    if (ratio > 0 && isfinite(ratio)) {
        FIT(s->logs, s->count);
        s->logs[s->count++] = log(ratio);
        s->repeated += !isnan(p);
        s->different += p < 0.05;
    } else
        s->left_out++;
    tune_answer_text(answer, c->tables[r->table]);
    tune_answer_text(answer, entity);
    tune_answer_text(answer, property);
    tune_answer_figure(answer, a, false);
    tune_answer_figure(answer, b, false);
    tune_answer_figure(answer, ratio, false);
    tune_answer_figure(answer, interval[0], false);
    tune_answer_figure(answer, interval[1], false);
    tune_answer_whole(answer, counts[0]);
    tune_answer_whole(answer, counts[1]);
    tune_answer_figure(answer, p, false);
    tune_answer_text(answer, isnan(p) ? NULL : p < 0.05 ? "yes" : "no");
    return tune_answer_end_row(answer);
}

/* Write the inputs that both sides share. The identifier would contain those of one side. */
static const char *shared_to_string(struct compare *c, const struct tune_pass *t, const struct tune_cell *cells)
{
    const char *entity = cells[TUNE_KEY_ENTITY].text;
    char text[TUNE_STORE_TEXT_MAX + 1] = "";
    if (c->sides[0].count == 0 && c->sides[1].count == 0)
        return tune_answer_copy(c->s->a, entity);
    for (int i = 0; i < t->stored; i++) {
        char value[1024], part[1400];
        struct tune_value v = tune_pass_value(t, i, &cells[i]);
        if (t->columns[i].role != TUNE_COLUMN_INPUT || is_named(c, t->names[i]))
            continue;
        tune_value_id(&v, value, sizeof value);
        snprintf(part, sizeof part, "%s.%s", t->names[i], value);
        if (strstr(entity, part)) /* only dimensions of its space; other inputs are equal in all rows */
            tune_append(text, sizeof text, "%s%s", *text ? "-" : "", part);
    }
    return tune_answer_copy(c->s->a, *text ? text : entity);
}

/* Collect the figures of a property in the rows first[count], by side. */
static int collect(struct compare *c, const struct row *first, int64_t count, const char *property, int counts[2])
{
    const struct tune_pass *t;
    counts[0] = counts[1] = 0;
    for (int64_t k = 0; k < count; k++) {
        int side = first[k].side;
        const struct tune_cell *cells = cells_of(c, &first[k], &t);
        TRY(cells ? 0 : -1);
        int at = 0; /* stores may order columns differently */
        while (at < t->count && strcmp(t->columns[at].name, property))
            at++;
        if (at == t->count || cells[at].absent || cells[at].text)
            continue;
        FIT(c->values[side], counts[side]);
        c->values[side][counts[side]++] = cells[at].number;
    }
    return 0;
}

/* Add rows for one entity under one experiment, one for each property of both sides. */
static int add_entity(struct compare *c, const struct row *first, int64_t count)
{
    const struct tune_pass *t;
    const struct tune_cell *cells = cells_of(c, first, &t);
    const char *entity = cells ? shared_to_string(c, t, cells) : NULL;
    TRY(entity ? 0 : -1);
    const struct tune_column *columns = t->columns;
    for (int i = 0, all = t->count; i < all; i++) {
        int counts[2];
        bool asked = c->property_count == 0 || tune_name_find(c->properties, c->property_count, columns[i].name) >= 0;
        if (columns[i].role != TUNE_COLUMN_TARGET || columns[i].type == TUNE_CELL_TEXT || !asked)
            continue;
        TRY(collect(c, first, count, columns[i].name, counts));
        if (counts[0] > 0 && counts[1] > 0)
            TRY(c->s->q->regression ? tune_regression_add(&c->regression, c->tables[first->table], entity, columns[i].name, c->values, counts)
                                    : add_pair(c, entity, first, columns[i].name, counts));
    }
    return 0;
}

/* True if the rows belong to both sides. */
static bool is_common(const struct row *first, int64_t count)
{
    int64_t a = 0;
    for (int64_t i = 0; i < count; i++)
        a += first[i].side == 0;
    return a > 0 && a < count;
}

static int64_t entity_length(const struct compare *c, int64_t first)
{
    int64_t n = 1;
    while (first + n < c->count && !memcmp(c->rows[first].key, c->rows[first + n].key, sizeof c->rows[first].key))
        n++;
    return n;
}

static int add_entities(struct compare *c, int64_t *common)
{
    static const char *const headings[] = {"experiment", "entity", "property", "a", "b", "b/a", "lowest", "highest", "results_a", "results_b",
                                           "p", "differs"};
    static const int digits[] = {0, 0, 0, 6, 6, 4, 4, 4, 0, 0, 2, 0};
    int64_t *firsts;
    TAKE(firsts, c->s->a, c->count);
    if (c->s->q->regression)
        tune_regression_columns(&c->regression);
    for (int i = 0; i < 12 && !c->s->q->regression; i++) {
        struct tune_answer_column *column = tune_answer_column(c->s->a, headings[i]);
        column->digits = digits[i];
        column->measured = i >= 3 && i <= 5;
    }
    *common = 0;
    if (c->count > 0)
        qsort(c->rows, (size_t)c->count, sizeof *c->rows, by_key);
    for (int64_t i = 0, n; i < c->count; i += n)
        if (is_common(&c->rows[i], n = entity_length(c, i)))
            firsts[(*common)++] = i;
    qsort_r(firsts, (size_t)*common, sizeof *firsts, by_first, c);
    for (int64_t i = 0; i < *common; i++)
        TRY(add_entity(c, &c->rows[firsts[i]], entity_length(c, firsts[i])));
    return c->s->q->regression ? tune_regression_end(&c->regression) : 0;
}

/* ---- notes beside the rows ---- */

static void report_side(struct compare *c, char name, const struct side *side)
{
    const char *build = side->builds_mixed ? "several builds"
                        : side->tables > 1 ? "one build of each experiment"
                        : *side->first_build ? "build "
                                             : "unknown build";
    tune_answer_add_note(c->s->a, TUNE_NOTE_ABOVE, "%c: %s, %s, %s%.16s", name, side->text,
                         side->hosts_mixed ? "several host classes" : *side->host ? side->host : "unknown host class", build,
                         side->builds_mixed || side->tables > 1 ? "" : side->first_build);
}

/* Add a note with the geometric mean of b/a over the entities, and its interval. */
static void report_summary(struct compare *c, const struct summary *s)
{
    char interval[128] = "", repeated[128] = "";
    struct tune_spread spread = tune_spread_of(s->logs, s->count);
    if (s->count > 1) {
        double half = tune_student_t(0.05, s->count - 1) * spread.deviation / sqrt(s->count);
        snprintf(interval, sizeof interval, ", 95 %% interval %.4g to %.4g", exp(spread.mean - half), exp(spread.mean + half));
    }
    if (s->repeated > 0)
        snprintf(repeated, sizeof repeated, "; of the entities measured more than once, %d of %d "
                                            "differ significantly", s->different,
                 s->repeated);
    tune_answer_add_note(c->s->a, TUNE_NOTE_BELOW, "b/a of %s%s%s: %.4g (geometric mean; entities: %d, "
                                                   "lowest %.4g, highest %.4g)%s%s",
                         c->table_count > 1 ? s->table : "",
                         c->table_count > 1 ? " " : "", s->property, exp(spread.mean), s->count, exp(spread.low), exp(spread.high), interval, repeated);
}

static void report_summaries(struct compare *c)
{
    for (int i = 0; i < c->summary_count; i++) {
        const struct summary *s = &c->summaries[i];
        if (s->count > 0)
            report_summary(c, s);
        if (s->left_out > 0)
            tune_answer_add_note(c->s->a, TUNE_NOTE_BELOW, "left out of the mean: %d more, because b/a "
                                                           "of %s is not a finite number above 0",
                                 s->left_out, s->property);
    }
    tune_answer_add_note(c->s->a, TUNE_NOTE_BELOW, "lowest, highest: the 95 %% interval of b/a, from "
                                                   "the repeats of each entity; differs: yes if p is "
                                                   "below 5 %% (Welch's t test of the repeats)");
}

/* ---- the entry point ---- */

static bool is_text(struct compare *c, const char *property)
{
    for (int t = 0; t < c->table_count; t++)
        for (int k = 0; k < 2; k++) {
            int n = 0;
            bool there = tune_store_has(c->sides[k].store, c->tables[t]);
            const struct tune_column *columns = there ? tune_store_columns(c->sides[k].store, c->tables[t], &n) : NULL;
            for (int i = 0; columns && i < n; i++)
                if (columns[i].role == TUNE_COLUMN_TARGET && columns[i].type == TUNE_CELL_TEXT && !strcmp(columns[i].name, property))
                    return true;
        }
    return false;
}

/* Check that every requested property is a target of some table, or a new column. */
static int check_properties(struct compare *c)
{
    const char **names, **units;
    int count = 0;
    TAKE(names, c->s->a, PROPERTIES);
    TAKE(units, c->s->a, PROPERTIES);
    for (int t = 0; t < c->table_count; t++)
        for (int k = 0; k < 2; k++) {
            int n = 0;
            bool there = tune_store_has(c->sides[k].store, c->tables[t]);
            const struct tune_column *columns = there ? tune_store_columns(c->sides[k].store, c->tables[t], &n) : NULL;
            for (int i = 0; columns && i < n && count < PROPERTIES; i++)
                if (columns[i].role == TUNE_COLUMN_TARGET && columns[i].type != TUNE_CELL_TEXT) {
                    units[count] = columns[i].unit;
                    names[count++] = columns[i].name;
                }
        }
    for (int d = 0; d < c->s->derived_count && count < PROPERTIES; d++) {
        units[count] = "";
        names[count++] = c->s->derived[d].name;
    }
    if (c->s->q->regression)
        return (c->property_count = tune_regression_read(&c->regression, names, units, count, c->properties)) < 0 ? -1 : 0;
    TRY(c->property_count = tune_subject_list(c->s, c->s->q->properties, c->properties, TUNE_REGRESSION_PROPERTIES));
    for (int i = 0; i < c->property_count; i++)
        if (is_text(c, c->properties[i]))
            return tune_error_usage("compare works on numbers, and %s is a text; use show to print "
                                    "texts", c->properties[i]);
        else if (tune_name_find(names, count, c->properties[i]) < 0)
            return tune_answer_no_such("property", c->properties[i], names, count);
    return 0;
}

/* Check that both configurations name the same inputs. Otherwise, paired rows could differ in an
 * input. */
static int check_configurations(const struct compare *c)
{
    if (c->sides[0].kind != CONFIGURATION || c->sides[1].kind != CONFIGURATION)
        return 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < c->sides[k].count; i++)
            if (tune_name_find(c->sides[!k].names, c->sides[!k].count, c->sides[k].names[i]) < 0)
                return tune_error_usage("compare: %s is only in \"%s\"; give it a value on both "
                                        "sides, so that the pairs differ in nothing else",
                                        c->sides[k].names[i], c->sides[k].text);
    return 0;
}

static int run(struct compare *c)
{
    int64_t common;
    for (int k = 0; k < 2; k++)
        TRY(open_side(c, &c->sides[k], c->s->q->sides[k]));
    TRY(check_configurations(c));
    if (c->s->q->build && c->sides[0].kind != CONFIGURATION && c->sides[1].kind != CONFIGURATION)
        return tune_error_usage("compare takes `build` for configurations only; to compare a "
                                "build, give build=%s as one of the two sides", c->s->q->build);
    TRY(read_rows(c));
    TRY(check_properties(c));
    for (int k = 0; k < 2; k++) {
        if (c->sides[k].rows == 0)
            return tune_error_set("%s has no valid rows", c->sides[k].text);
        TAKE(c->passes[k], c->s->a, c->table_count);
    }
    for (int k = 0; k < 2; k++)
        report_side(c, k ? 'b' : 'a', &c->sides[k]);
    TRY(add_entities(c, &common));
    if (!c->s->q->regression && common > 0)
        report_summaries(c);
    if (c->shared > 0)
        tune_answer_add_note(c->s->a, TUNE_NOTE_WARNING, "%lld rows belong to both sides",
                             (long long)c->shared);
    if (c->other_builds > 0)
        tune_answer_add_note(c->s->a, TUNE_NOTE_WARNING, "%lld rows of other builds are left out: to "
                                                         "see them, give `build` all, previous or ID",
                             (long long)c->other_builds);
    if (common == 0)
        tune_answer_add_note(c->s->a, TUNE_NOTE_WARNING, "no entity was measured on both sides with the same inputs");
    return 0;
}

static void free_compare(struct compare *c)
{
    for (int k = 0; k < 2; k++) {
        for (int t = 0; c->passes[k] && t < c->table_count; t++)
            tune_pass_free(&c->passes[k][t]);
        if (c->sides[k].own_store)
            tune_store_free(c->sides[k].store);
        tune_uids_free(&c->sides[k].uids);
        free(c->values[k]);
    }
    for (int i = 0; i < c->summary_count; i++)
        free(c->summaries[i].logs);
    free(c->summaries);
    free(c->rows);
    tune_regression_free(&c->regression);
}

static int compare(struct tune_subject *s)
{
    const struct tune_question *q = s->q;
    struct compare *c;
    int median = tune_subject_median(s);
    if (!q->sides[0] || !q->sides[1])
        return tune_error_usage("compare needs two sides; each is a configuration "
                                "(NAME=VALUE,...), the folder of a store, an operation, host=TEXT, "
                                "build=ID, build=last or build=previous");
    if (!q->regression && (q->maximize || q->minimize))
        return tune_error_usage("compare takes `maximize` and `minimize` only with `regression`; "
                                "choose properties with `property`");
    TRY(median);
    TAKE(c, s->a, 1);
    c->s = c->regression.s = s;
    c->median = c->regression.median = median;
    int code = run(c);
    free_compare(c);
    return code;
}

struct tune_answer_table *tune_ask_compare(const struct tune_question *q)
{
    return tune_subject_answer(q, "compare", compare);
}
