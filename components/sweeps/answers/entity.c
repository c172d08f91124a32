/* entity.c - show one entity: its inputs and all its measurements, for any space.
 *
 * An identifier such as "a.1-b.2" is ambiguous, because a value may contain '-'. Rows with that
 * identifier have the inputs. So the identifier is matched with "name.value" of the inputs, in any
 * order. With these inputs, rows of other spaces are found, even if they list the inputs in another
 * order. An experiment that lacks some inputs measures several entities at once. Its rows are found
 * through requests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "core/nearest.h"
#include "core/statistics.h"
#include "sweeps/discovery/uids.h"
#include "sweeps/answers/pass.h"

enum { MOST_PARTS = TUNE_SPACE_DIMENSIONS };

/* An input of the entity. */
struct part {
    char *name, *value;
};

/* The values of one target under one experiment. */
struct observed {
    char *experiment, *target;
    bool whole;
    double *values;
    int count;
};

/* An experiment that measured the entity, and the build whose results are shown. */
struct measured {
    const char *name, *build;
    double started;         /* start of the build's last measurement */
};

struct page {
    struct tune_subject *s;
    const char *id;
    struct part parts[MOST_PARTS];
    int part_count;
    struct tune_uids asked; /* uids of results of requests for this entity */
    char *generator;
    struct observed *observed;
    int observed_count;
    struct measured *experiments; /* [experiment_count] experiments with rows of the entity */
    int experiment_count;
    int64_t left_out;       /* number of rows of other builds */
    int64_t texts;          /* number of results that are texts */
};

/* ---- the identifier ---- */

/* Match the cell, spelled as in an identifier, at the start of text. It must be followed by '-' or
 * the end. Returns the number of bytes, or 0 if there is no match. A number may be 512 or 512.0. */
static size_t spelled_at(const char *text, const struct tune_column *column, const struct tune_cell *cell)
{
    char number[TUNE_DECIMAL_SIZE], whole[32] = "";
    const char *spellings[] = {cell->text, NULL};
    if (!cell->text) {
        tune_decimal_python(number, cell->number);
        if (column->type == TUNE_CELL_WHOLE)
            snprintf(whole, sizeof whole, "%lld", (long long)cell->whole);
        else if (cell->number == floor(cell->number) && fabs(cell->number) < 1e18)
            snprintf(whole, sizeof whole, "%lld", (long long)cell->number);
        spellings[0] = number;
        spellings[1] = whole;
    }
    for (int i = 0; i < 2; i++) {
        size_t n = spellings[i] ? strlen(spellings[i]) : 0;
        if (n > 0 && !strncmp(text, spellings[i], n) && (!text[n] || text[n] == '-'))
            return n;
    }
    return 0;
}

static int add_part(struct page *p, const char *name, const char *value, size_t length)
{
    if (p->part_count == MOST_PARTS)
        return tune_error_set("%.100s...: more than the %d properties that one answer can show",
                              p->id, MOST_PARTS);
    struct part *part = &p->parts[p->part_count++];
    part->name = tune_answer_copy(p->s->a, name);
    part->value = tune_answer_copy(p->s->a, value);
    TRY(part->name && part->value ? 0 : -1);
    part->value[length] = 0;
    return 0;
}

/* Match "name.value" of one of the row's inputs at the start of text. Returns the number of bytes,
 * and sets *input. 0: no match. */
static size_t part_at(const struct tune_pass *t, const struct tune_cell *cells, const char *text, int *input)
{
    for (int i = 0; i < t->count; i++) {
        size_t n = strlen(t->columns[i].name), value;
        if (t->columns[i].role == TUNE_COLUMN_INPUT && !strncmp(text, t->columns[i].name, n) && text[n] == '.' &&
            (value = spelled_at(text + n + 1, &t->columns[i], &cells[i]))) {
            *input = i;
            return n + 1 + value;
        }
    }
    return 0;
}

/* Take all inputs of the row. Used if the identifier has no inputs, such as "CCO" from another
 * program. */
static int take_inputs(struct page *p, const struct tune_pass *t, const struct tune_cell *cells)
{
    char number[TUNE_DECIMAL_SIZE];
    for (int i = 0; i < t->count; i++)
        if (t->columns[i].role == TUNE_COLUMN_INPUT && !cells[i].absent) {
            const char *text = cells[i].text ? cells[i].text : number;
            if (t->columns[i].type == TUNE_CELL_WHOLE)
                snprintf(number, sizeof number, "%lld", (long long)cells[i].whole);
            else
                tune_decimal_python(number, cells[i].number);
            TRY(add_part(p, t->columns[i].name, text, strlen(text)));
        }
    return 0;
}

/* Find the inputs of the identifier, in their order. */
static int take_apart(struct page *p, const struct tune_pass *t, const struct tune_cell *cells)
{
    int input;
    for (const char *at = p->id; *at; at += *at == '-') {
        size_t used = part_at(t, cells, at, &input);
        if (!used) {
            p->part_count = 0;
            return take_inputs(p, t, cells);
        }
        size_t name = strlen(t->columns[input].name) + 1;
        TRY(add_part(p, t->columns[input].name, at + name, used - name));
        at += used;
    }
    return 0;
}

/* Find the inputs in the first row with this key. 1: found; 0: there is no row; -1 with an
 * error. */
static int find_parts(struct page *p, const char *const *tables, int count, enum tune_key key, const char *text)
{
    int found = 0;
    for (int k = 0; k < count && !found; k++) {
        struct tune_pass t;
        const struct tune_cell *cells;
        int more = tune_pass_open(&t, p->s, p->s->q->store, tables[k], false);
        while (more >= 0 && !found && (more = tune_pass_next(&t, &cells)) == 1) {
            if (strcmp(cells[key].text, text))
                continue;
            found = 1;
            more = take_apart(p, &t, cells);
        }
        tune_pass_free(&t);
        TRY(more);
    }
    return found;
}

/* The same for an identifier that only requests have. Their results are rows of another space. */
static int find_requested(struct page *p, const char *const *tables, int count)
{
    const struct tune_cell *cells;
    int more;
    char uid[64];
    struct tune_scan *scan = TUNE_SCAN(p->s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, p->id)) {
            snprintf(uid, sizeof uid, "%s", cells[1].text);
            if ((more = find_parts(p, tables, count, TUNE_KEY_UID, uid)) != 0)
                break;
        }
    tune_scan_free(scan);
    return more;
}

/* True if the text consists of exactly the page's properties, in any order. */
static bool is_rearranged(const struct page *p, const char *text)
{
    bool used[MOST_PARTS] = {false};
    for (int n = 0; n < p->part_count; n++) {
        int i = 0;
        size_t name = 0, value = 0;
        for (; i < p->part_count; i++) {
            const struct part *part = &p->parts[i];
            name = strlen(part->name);
            value = strlen(part->value);
            if (!used[i] && !strncmp(text, part->name, name) && text[name] == '.' && !strncmp(text + name + 1, part->value, value) &&
                text[name + 1 + value] == (n + 1 < p->part_count ? '-' : 0))
                break;
        }
        if (i == p->part_count)
            return false;
        used[i] = true;
        text += name + 1 + value + (n + 1 < p->part_count);
    }
    return p->part_count > 0;
}

static int read_asked(struct page *p)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(p->s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!cells[1].absent && (!strcmp(cells[0].text, p->id) || is_rearranged(p, cells[0].text)) &&
            (more = tune_uids_add_text(&p->asked, cells[1].text)) < 0)
            break;
    tune_scan_free(scan);
    tune_uids_sort(&p->asked);
    return more;
}

/* True if the row was requested for this entity, or its identifier has exactly the page's
 * properties, in any order. */
static bool is_same(const struct page *p, const struct tune_pass *t, const struct tune_cell *cells)
{
    const char *entity = cells[TUNE_KEY_ENTITY].text;
    int parts = 0, input;
    uint8_t uid[16];
    tune_uid_read(uid, cells[TUNE_KEY_UID].text);
    if (!strcmp(entity, p->id) || tune_uids_has(&p->asked, uid))
        return true;
    for (const char *at = entity; *at; at += *at == '-', parts++) {
        size_t used = part_at(t, cells, at, &input);
        int k = 0;
        while (used && k < p->part_count && strcmp(p->parts[k].name, t->columns[input].name))
            k++;
        if (!used || k == p->part_count || spelled_at(p->parts[k].value, &t->columns[input], &cells[input]) != strlen(p->parts[k].value))
            return false;
        at += used;
    }
    return parts == p->part_count;
}

/* ---- rows of the entity ---- */

static struct observed *find_observed(struct page *p, const char *experiment, const struct tune_column *target)
{
    for (int i = 0; i < p->observed_count; i++)
        if (!strcmp(p->observed[i].experiment, experiment) && !strcmp(p->observed[i].target, target->name))
            return &p->observed[i];
    if (!tune_array_fit(&p->observed, (size_t)p->observed_count, sizeof *p->observed)) {
        tune_answer_no_memory();
        return NULL;
    }
    struct observed *o = &p->observed[p->observed_count];
    *o = (struct observed){.experiment = tune_answer_copy(p->s->a, experiment), .target = tune_answer_copy(p->s->a, target->name),
                           .whole = target->whole};
    p->observed_count++;
    return o->experiment && o->target ? o : NULL;
}

static int add_value(struct page *p, const char *experiment, const struct tune_column *target, double value)
{
    struct observed *o = find_observed(p, experiment, target);
    TRY(o ? 0 : -1);
    FIT(o->values, o->count);
    o->values[o->count++] = value;
    return 0;
}

static struct measured *find_measured(struct page *p, const char *experiment)
{
    for (int i = 0; i < p->experiment_count; i++)
        if (!strcmp(p->experiments[i].name, experiment))
            return &p->experiments[i];
    if (!tune_array_fit(&p->experiments, (size_t)p->experiment_count, sizeof *p->experiments)) {
        tune_answer_no_memory();
        return NULL;
    }
    p->experiments[p->experiment_count] = (struct measured){.name = tune_answer_copy(p->s->a, experiment), .started = -1};
    return p->experiments[p->experiment_count].name ? &p->experiments[p->experiment_count++] : NULL;
}

/* Update the build that measured last. */
static int update_build(struct page *p, const struct tune_cell *cells)
{
    struct measured *o = find_measured(p, cells[TUNE_KEY_EXPERIMENT].text);
    TRY(o ? 0 : -1);
    if (!p->generator)
        TRY((p->generator = tune_answer_copy(p->s->a, cells[TUNE_KEY_GENERATOR].text)) ? 0 : -1);
    if (!strcmp(cells[TUNE_KEY_STATUS].text, "failed") || cells[TUNE_KEY_STARTED].number <= o->started)
        return 0;
    o->started = cells[TUNE_KEY_STARTED].number;
    return (o->build = tune_answer_copy(p->s->a, cells[TUNE_KEY_BUILD].text)) ? 0 : -1;
}

static bool is_of_build(struct page *p, const struct tune_cell *cells)
{
    const char *wanted = p->s->q->build ? p->s->q->build : "last", *build = cells[TUNE_KEY_BUILD].text;
    const struct measured *o = find_measured(p, cells[TUNE_KEY_EXPERIMENT].text);
    if (!strcmp(wanted, "all"))
        return true;
    return strcmp(wanted, "last") ? !strncmp(build, wanted, strlen(wanted)) : !o || !o->build || !strcmp(build, o->build);
}

static int add_row(struct page *p, const struct tune_pass *t, const struct tune_cell *cells)
{
    const char *experiment = cells[TUNE_KEY_EXPERIMENT].text;
    if (!is_of_build(p, cells)) {
        p->left_out++;
        return 0;
    }
    for (int i = 0; i < t->count && strcmp(cells[TUNE_KEY_STATUS].text, "failed"); i++)
        if (t->columns[i].role == TUNE_COLUMN_TARGET && !cells[i].absent && cells[i].text)
            p->texts++;
        else if (t->columns[i].role == TUNE_COLUMN_TARGET && !cells[i].absent)
            TRY(add_value(p, experiment, &t->columns[i], cells[i].number));
    return 0;
}

/* Read the entity's rows twice: first for the builds, then for the figures. */
static int read_rows(struct page *p, const char *const *tables, int count)
{
    for (int pass = 0; pass < 2 * count; pass++) {
        int k = pass % count;
        struct tune_pass t;
        const struct tune_cell *cells;
        int more = tune_pass_open(&t, p->s, p->s->q->store, tables[k], false);
        while (more >= 0 && (more = tune_pass_next(&t, &cells)) == 1)
            if (is_same(p, &t, cells) && (more = pass < count ? update_build(p, cells) : add_row(p, &t, cells)) < 0)
                break;
        tune_pass_free(&t);
        TRY(more);
    }
    return 0;
}

/* ---- output ---- */

enum { NAME, EXPERIMENT, PROPERTY, VALUES, COLUMNS };
static const char *const headings[COLUMNS] = {"name", "experiment", "target-property", "values"};

static void add_columns(struct page *p)
{
    struct tune_answer_table *a = p->s->a;
    tune_answer_column(a, headings[NAME])->hidden = true; /* text output shows the entity's inputs instead */
    tune_answer_columns(a, headings + EXPERIMENT, 2);
    tune_answer_column(a, headings[VALUES])->measured = true;
    tune_answer_column(a, "identifier");
    tune_answer_column(a, "generatorid");
    for (int i = 0; i < p->part_count; i++)
        tune_answer_column(a, p->parts[i].name)->dimension = true;
}

/* Add a row for observed values, or for an experiment without values (o NULL). */
static int put_row(struct page *p, struct tune_select *select, const char *experiment, const struct observed *o)
{
    struct tune_answer_table *a = p->s->a;
    const char *dot = strchr(experiment, '.');
    char name[TUNE_STORE_TEXT_MAX + TUNE_STORE_NAME_MAX + 2];
    snprintf(name, sizeof name, "%s-%s", dot ? dot + 1 : experiment, o ? o->target : "");
    struct tune_cell cells[COLUMNS] = {tune_cell_text(name), tune_cell_text(experiment), tune_cell_text(o ? o->target : ""),
                                       tune_cell_number(o ? tune_spread_of(o->values, o->count).mean : NAN)};
    int wanted = tune_pass_meets(select, cells, COLUMNS);
    if (wanted <= 0)
        return wanted;
    tune_answer_text(a, o ? name : NULL);
    tune_answer_text(a, experiment);
    tune_answer_text(a, o ? o->target : NULL);
    tune_answer_figures(a, o ? o->values : NULL, o ? o->count : 0, o && o->whole);
    tune_answer_text(a, p->id);
    tune_answer_text(a, p->generator && *p->generator ? p->generator : "unk");
    for (int i = 0; i < p->part_count; i++)
        tune_answer_text(a, p->parts[i].value);
    return tune_answer_end_row(a);
}

static int put_rows(struct page *p)
{
    struct tune_select *select = tune_select_new(headings, COLUMNS, VALUES, p->s->q->where, NULL, 0);
    int code = select && tune_select_compiled(select, -1) ? 0 : -1;
    add_columns(p);
    for (int i = 0; i < p->observed_count && code == 0; i++)
        code = put_row(p, select, p->observed[i].experiment, &p->observed[i]);
    for (int e = 0; e < p->experiment_count && code == 0; e++) {
        int i = 0;
        while (i < p->observed_count && strcmp(p->observed[i].experiment, p->experiments[e].name))
            i++;
        if (i == p->observed_count)
            code = put_row(p, select, p->experiments[e].name, NULL);
    }
    tune_select_free(select);
    if (p->left_out > 0)
        tune_answer_add_note(p->s->a, TUNE_NOTE_WARNING, "the build that measured last is shown; %lld "
                                                         "rows of other builds are left out: to see "
                                                         "them, give `build` all or ID",
                             (long long)p->left_out);
    if (p->texts > 0)
        tune_answer_add_note(p->s->a, TUNE_NOTE_WARNING, "%lld result%s a text, which is not listed here: show of the experiment lists texts",
                             (long long)p->texts, p->texts == 1 ? " is" : "s are");
    return code;
}

bool tune_entity_nearest(struct tune_subject *s, const char *identifier, char nearest[TUNE_STORE_TEXT_MAX + 1])
{
    int count, best = tune_nearest_limit(identifier) + 1;
    const char *const *tables = tune_store_tables(s->q->store, &count);
    *nearest = 0;
    for (int k = 0; tables && k < count; k++) {
        const struct tune_cell *cells;
        struct tune_scan *scan = TUNE_SCAN(s->q->store, tables[k], TUNE_KEY_ENTITY);
        for (int rows = 0; rows < 10000 && tune_scan_next(scan, &cells) == 1; rows++) {
            int distance = best;
            if (cells[0].absent || !strcmp(cells[0].text, nearest))
                continue;
            tune_nearest(identifier, &cells[0].text, 1, &distance);
            if (distance < best) {
                best = distance;
                snprintf(nearest, TUNE_STORE_TEXT_MAX + 1, "%s", cells[0].text);
            }
        }
        tune_scan_free(scan);
    }
    return *nearest;
}

/* Find the entity p->id. 1: found; 0: not found; -1 with an error. */
static int find_entity(struct page *p)
{
    int count;
    const char *const *tables = tune_store_tables(p->s->q->store, &count);
    TRY(tables ? 0 : -1);
    int found = find_parts(p, tables, count, TUNE_KEY_ENTITY, p->id);
    return found ? found : find_requested(p, tables, count);
}

int tune_entity_known(struct tune_subject *s, const char *identifier)
{
    struct page p = {.s = s, .id = identifier};
    return find_entity(&p);
}

int tune_show_entity(struct tune_subject *s)
{
    struct page p = {.s = s, .id = s->name};
    if (s->q->build && !strcmp(s->q->build, "previous"))
        return tune_error_usage("show of an entity does not take `build` previous; expected last, "
                                "all or an id");
    int count, code = find_entity(&p);
    const char *const *tables = tune_store_tables(s->q->store, &count);
    if (code >= 0)
        code = read_asked(&p);
    if (code == 0)
        code = read_rows(&p, tables, count);
    if (code == 0)
        code = put_rows(&p);
    for (int i = 0; i < p.observed_count; i++)
        free(p.observed[i].values);
    free(p.observed);
    free(p.experiments);
    tune_uids_free(&p.asked);
    return code;
}
