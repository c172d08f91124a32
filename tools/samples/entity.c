/* entity.c - one entity: its inputs, and all its measurements, for any space.
 *
 * An identifier alone is ambiguous: in "a.1-b.2" a value may contain '-'. But rows with that
 * identifier have the inputs. So the text is matched with inputs spelled "name.value", in any
 * order. With these inputs, rows of other spaces are found that spell the entity in another order.
 * An experiment without some of the inputs measures several entities at once. Requests lead to its
 * rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "samples.h"

enum { MOST_PARTS = TUNE_SPACE_DIMENSIONS };

/* One constitutive property. */
struct part {
    char *name, *value;
};

/* Values of one target under one experiment. */
struct observed {
    char *experiment, *target;
    bool whole;
    double *values;
    int count;
};

static struct {
    const char *id;
    struct part parts[MOST_PARTS];
    int part_count;
    struct tune_uids asked; /* uids of rows that answered requests for this entity */
    char *generator;
    struct observed *observed;
    int observed_count;
    char **experiments; /* associated */
    int experiment_count;
} page;

/* ---- the identifier ---- */

/* The number of bytes of text, up to '-' or its end, that spell the cell as in an identifier; 0:
 * none. A number may be 512 or 512.0. */
static size_t spelled_at(const char *text, const struct tune_cell *cell)
{
    char number[TUNE_DECIMAL_SIZE], whole[32] = "";
    const char *spellings[] = {cell->text, NULL};
    if (!cell->text) {
        tune_decimal_python(number, cell->number);
        if (cell->number == floor(cell->number) && fabs(cell->number) < 1e18)
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

static int add_part(const char *name, const char *value, size_t length)
{
    if (page.part_count == MOST_PARTS)
        return tune_error_set("%.100s...: more than %d properties", page.id, MOST_PARTS);
    struct part *p = &page.parts[page.part_count++];
    p->name = samples_copy(name);
    p->value = samples_copy(value);
    p->value[length] = 0;
    return 0;
}

/* Match "name.value" of one of the row's inputs at the start of text. Returns its bytes and the
 * input; 0: no match. */
static size_t part_at(const struct samples_table *t, const struct tune_cell *cells, const char *text, int *input)
{
    for (int i = 0; i < t->count; i++) {
        size_t n = strlen(t->columns[i].name), value;
        if (t->columns[i].role == TUNE_COLUMN_INPUT && !strncmp(text, t->columns[i].name, n) && text[n] == '.' &&
            (value = spelled_at(text + n + 1, &cells[i]))) {
            *input = i;
            return n + 1 + value;
        }
    }
    return 0;
}

/* An identifier from another program ("CCO") names no inputs. Then take all inputs of its row. */
static int take_inputs(const struct samples_table *t, const struct tune_cell *cells)
{
    char number[TUNE_DECIMAL_SIZE];
    for (int i = 0; i < t->count; i++)
        if (t->columns[i].role == TUNE_COLUMN_INPUT && !cells[i].absent) {
            const char *text = cells[i].text ? cells[i].text : number;
            if (t->columns[i].type == TUNE_CELL_WHOLE)
                snprintf(number, sizeof number, "%lld", (long long)cells[i].whole);
            else
                tune_decimal_python(number, cells[i].number);
            TRY(add_part(t->columns[i].name, text, strlen(text)));
        }
    return 0;
}

/* Find the inputs in the identifier, and their order. */
static int take_apart(const struct samples_table *t, const struct tune_cell *cells)
{
    int input;
    for (const char *at = page.id; *at; at += *at == '-') {
        size_t used = part_at(t, cells, at, &input);
        if (!used) {
            page.part_count = 0;
            return take_inputs(t, cells);
        }
        size_t name = strlen(t->columns[input].name) + 1;
        TRY(add_part(t->columns[input].name, at + name, used - name));
        at += used;
    }
    return 0;
}

/* Use the first row with this key: 1; 0: there is none; -1 with an error. */
static int find_parts(const char *const *tables, int count, enum tune_key key, const char *text)
{
    int found = 0;
    for (int k = 0; k < count && !found; k++) {
        struct samples_table t;
        const struct tune_cell *cells;
        int more = samples_table_open(&t, samples.store, tables[k], false);
        while (more >= 0 && !found && (more = samples_table_next(&t, &cells)) == 1) {
            if (strcmp(cells[key].text, text))
                continue;
            found = 1;
            more = take_apart(&t, cells);
        }
        samples_table_free(&t);
        TRY(more);
    }
    return found;
}

/* The same for an identifier that is only in requests, which rows of another space answered. */
static int find_requested(const char *const *tables, int count)
{
    const struct tune_cell *cells;
    int more;
    char uid[64];
    struct tune_scan *scan = TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, page.id)) {
            snprintf(uid, sizeof uid, "%s", cells[1].text);
            if ((more = find_parts(tables, count, TUNE_KEY_UID, uid)) != 0)
                break;
        }
    tune_scan_free(scan);
    return more;
}

/* True if the text is made of the page's properties, in any order. */
static bool is_rearranged(const char *text)
{
    bool used[MOST_PARTS] = {false};
    for (int n = 0; n < page.part_count; n++) {
        int i = 0;
        size_t name = 0, value = 0;
        for (; i < page.part_count; i++) {
            const struct part *p = &page.parts[i];
            name = strlen(p->name);
            value = strlen(p->value);
            if (!used[i] && !strncmp(text, p->name, name) && text[name] == '.' && !strncmp(text + name + 1, p->value, value) &&
                text[name + 1 + value] == (n + 1 < page.part_count ? '-' : 0))
                break;
        }
        if (i == page.part_count)
            return false;
        used[i] = true;
        text += name + 1 + value + (n + 1 < page.part_count);
    }
    return page.part_count > 0;
}

static int read_asked(void)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!cells[1].absent && (!strcmp(cells[0].text, page.id) || is_rearranged(cells[0].text)) &&
            (more = tune_uids_add_text(&page.asked, cells[1].text)) < 0)
            break;
    tune_scan_free(scan);
    tune_uids_sort(&page.asked);
    return more;
}

/* True if the row was requested for this entity, or its identifier has exactly the page's
 * properties, in any order. */
static bool is_same(const struct samples_table *t, const struct tune_cell *cells)
{
    const char *entity = cells[TUNE_KEY_ENTITY].text;
    int parts = 0, input;
    uint8_t uid[16];
    tune_uid_read(uid, cells[TUNE_KEY_UID].text);
    if (!strcmp(entity, page.id) || tune_uids_has(&page.asked, uid))
        return true;
    for (const char *at = entity; *at; at += *at == '-', parts++) {
        size_t used = part_at(t, cells, at, &input);
        int p = 0;
        while (used && p < page.part_count && strcmp(page.parts[p].name, t->columns[input].name))
            p++;
        if (!used || p == page.part_count || spelled_at(page.parts[p].value, &cells[input]) != strlen(page.parts[p].value))
            return false;
        at += used;
    }
    return parts == page.part_count;
}

/* ---- what was measured ---- */

static struct observed *find_observed(const char *experiment, const struct tune_column *target)
{
    for (int i = 0; i < page.observed_count; i++)
        if (!strcmp(page.observed[i].experiment, experiment) && !strcmp(page.observed[i].target, target->name))
            return &page.observed[i];
    samples_fit(&page.observed, page.observed_count, sizeof *page.observed);
    struct observed *o = &page.observed[page.observed_count++];
    *o = (struct observed){.experiment = samples_copy(experiment), .target = samples_copy(target->name), .whole = target->whole};
    return o;
}

static void add_value(const char *experiment, const struct tune_column *target, double value)
{
    struct observed *o = find_observed(experiment, target);
    samples_fit(&o->values, o->count, sizeof *o->values);
    o->values[o->count++] = value;
}

static void add_row(const struct samples_table *t, const struct tune_cell *cells)
{
    const char *experiment = cells[TUNE_KEY_EXPERIMENT].text;
    if (!page.generator)
        page.generator = samples_copy(cells[TUNE_KEY_GENERATOR].text);
    if (tune_name_find((const char *const *)page.experiments, page.experiment_count, experiment) < 0) {
        samples_fit(&page.experiments, page.experiment_count, sizeof *page.experiments);
        page.experiments[page.experiment_count++] = samples_copy(experiment);
    }
    for (int i = 0; i < t->count && strcmp(cells[TUNE_KEY_STATUS].text, "failed"); i++)
        if (t->columns[i].role == TUNE_COLUMN_TARGET && !cells[i].absent && !cells[i].text)
            add_value(experiment, &t->columns[i], cells[i].number);
}

static int read_rows(const char *const *tables, int count)
{
    for (int k = 0; k < count; k++) {
        struct samples_table t;
        const struct tune_cell *cells;
        int more = samples_table_open(&t, samples.store, tables[k], false);
        while (more >= 0 && (more = samples_table_next(&t, &cells)) == 1)
            if (is_same(&t, cells))
                add_row(&t, cells);
        samples_table_free(&t);
        TRY(more);
    }
    return 0;
}

/* ---- output ---- */

enum { NAME, EXPERIMENT, PROPERTY, VALUES, COLUMNS };
static const char *const headings[COLUMNS] = {"name", "experiment", "target-property", "values"};

/* The columns for programs; people see the entity's inputs in place of the long names. */
static void begin(void)
{
    samples_column(headings[NAME])->hidden = samples_people();
    samples_columns(headings + EXPERIMENT, 2);
    samples_column(headings[VALUES])->measured = true;
    samples_column("identifier")->hidden = !samples_people();
    samples_column("generatorid")->hidden = !samples_people();
    for (int i = 0; i < page.part_count; i++)
        samples_column(page.parts[i].name)->hidden = !samples_people();
    samples_begin(false);
}

/* A row: what was observed, or an experiment without a value (o NULL). The name has no actuator. */
static int put_row(struct tune_select *select, const char *experiment, const struct observed *o)
{
    const char *dot = strchr(experiment, '.');
    char name[TUNE_STORE_TEXT_MAX + TUNE_STORE_NAME_MAX + 2];
    snprintf(name, sizeof name, "%s-%s", dot ? dot + 1 : experiment, o ? o->target : "");
    struct tune_cell cells[COLUMNS] = {tune_cell_text(name), tune_cell_text(experiment), tune_cell_text(o ? o->target : ""),
                                       tune_cell_number(o ? tune_statistic(o->values, o->count, "mean") : NAN)};
    int wanted = samples_meets(select, cells, COLUMNS);
    if (wanted <= 0)
        return wanted;
    samples_text(o ? name : NULL);
    samples_text(experiment);
    samples_text(o ? o->target : NULL);
    samples_numbers(o ? o->values : NULL, o ? o->count : 0, o && o->whole, !samples_people(), 5);
    samples_text(page.id);
    samples_text(page.generator && *page.generator ? page.generator : "unk");
    for (int i = 0; i < page.part_count; i++)
        samples_text(page.parts[i].value);
    return samples_end_row();
}

static int put_rows(void)
{
    struct tune_select *select = tune_select_new(headings, COLUMNS, VALUES, my.where, NULL, 0);
    int code = select && tune_select_compiled(select, -1) ? 0 : -1;
    if (code == 0)
        begin();
    for (int i = 0; i < page.observed_count && code == 0 && !samples_full(); i++)
        code = put_row(select, page.observed[i].experiment, &page.observed[i]);
    for (int e = 0; e < page.experiment_count && code == 0 && !samples_full(); e++) {
        int i = 0;
        while (i < page.observed_count && strcmp(page.observed[i].experiment, page.experiments[e]))
            i++;
        if (i == page.observed_count)
            code = put_row(select, page.experiments[e], NULL);
    }
    tune_select_free(select);
    return code < 0 ? -1 : samples_end();
}

/* Report that no row has this entity, with the nearest identifier. */
static int no_such_entity(const char *const *tables, int count)
{
    char nearest[TUNE_STORE_TEXT_MAX + 1] = "";
    int best = 1 << 30;
    for (int k = 0; k < count; k++) {
        const struct tune_cell *cells;
        struct tune_scan *scan = TUNE_SCAN(samples.store, tables[k], TUNE_KEY_ENTITY);
        for (int rows = 0; rows < 10000 && tune_scan_next(scan, &cells) == 1; rows++) {
            int distance = best;
            if (cells[0].absent || !strcmp(cells[0].text, nearest))
                continue;
            tune_nearest(page.id, &cells[0].text, 1, &distance);
            if (distance < best) {
                best = distance;
                snprintf(nearest, sizeof nearest, "%s", cells[0].text);
            }
        }
        tune_scan_free(scan);
    }
    bool near = *nearest && best <= tune_nearest_limit(page.id);
    return tune_error_usage("%s has no row of entity %s%s%s", my.store, page.id, near ? "; the nearest is " : "",
                            near ? nearest : "");
}

int samples_entity(void)
{
    int count;
    page.id = samples_word(0);
    if (!page.id || !*page.id)
        return tune_error_usage("which entity? Its identifier, as show and trace have it");
    const char *const *tables = tune_store_tables(samples.store, &count);
    TRY(tables ? 0 : -1);
    int found = find_parts(tables, count, TUNE_KEY_ENTITY, page.id);
    if (found == 0)
        found = find_requested(tables, count);
    TRY(found);
    if (!found)
        return no_such_entity(tables, count);
    TRY(read_asked());
    TRY(read_rows(tables, count));
    return put_rows();
}
