/* show.c - the rows of a space as ado shows them: CSV with pandas' blank first heading and row
 * index, JSON records, or a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "samples.h"

/* A column after the constitutive ones: a target of one protocol; in target format, of any
 * protocol. */
struct shown {
    char *heading;
    int column;   /* of the view */
    int protocol; /* -1: the protocol of the row */
    int prefix;   /* bytes of the heading before the target's name */
    bool whole;
};

static struct {
    struct tune_view *view;
    const char **columns;        /* columns of the view: the generator, then targets */
    int column_count;
    struct shown *shown;
    int shown_count;
    bool target_format, results; /* true: the view has results */
    double *values;              /* [column_count][room] values of the current group */
    int *counts, room;           /* [column_count] */
    char *text;                  /* of a cell */
    size_t size;
} show;

/* ---- columns ---- */

static const char *parts[256];
static int part_count;

/* True if a target is shown: by default those that the experiment declares for these parameters;
 * --property and --all-properties select others, and --columns and the like add some. */
static bool is_shown(int protocol, const struct tune_target *t)
{
    return samples_mentions(t->name) ||
           ((part_count == 0 || tune_name_find(parts, part_count, t->name) >= 0) &&
            (my.properties || my.all_properties || tune_protocol_shows(&samples.protocols[protocol], t)));
}

static int view_column(const char *name)
{
    int known = tune_name_find(show.columns, show.column_count, name);
    if (known >= 0)
        return known;
    show.columns[show.column_count] = name;
    return show.column_count++;
}

/* True if the results of an entity become one number. With --group-by, those of the group do. */
static bool aggregated(void)
{
    return my.aggregate && !my.group_by;
}

static int add_shown(int protocol, const struct tune_target *t)
{
    struct shown *s = &show.shown[show.shown_count];
    s->column = view_column(t->name);
    s->whole = t->whole;
    s->protocol = show.target_format ? -1 : protocol;
    for (int i = 0; show.target_format && i < show.shown_count; i++)
        if (show.shown[i].column == s->column) {
            show.shown[i].whole = show.shown[i].whole && t->whole;
            return 0;
        }
    const char *identifier = show.target_format ? "" : samples.protocols[protocol].identifier;
    s->prefix = (int)strlen(identifier) + !show.target_format;
    if (asprintf(&s->heading, "%s%s%s%s%s", identifier, show.target_format ? "" : "-", t->name, aggregated() ? "-" : "",
                 aggregated() ? my.aggregate : "") < 0)
        return samples_no_memory();
    show.shown_count++;
    return 0;
}

static int choose_columns(void)
{
    int most = 1;
    for (int p = 0; p < samples.space->reference_count; p++)
        most += samples.protocols[p].experiment->target_count + samples.derived_count;
    if (!(show.columns = calloc((size_t)most, sizeof *show.columns)) || !(show.shown = calloc((size_t)most, sizeof *show.shown)) ||
        !(show.counts = calloc((size_t)most, sizeof *show.counts)))
        return samples_no_memory();
    TRY(part_count = samples_split(my.properties, parts, 256));
    TRY(samples_check_properties(parts, part_count));
    view_column(tune_key_column(TUNE_KEY_GENERATOR)->name);
    for (int p = 0; p < samples.space->reference_count; p++) {
        const struct tune_experiment *e = samples.protocols[p].experiment;
        for (int i = 0; i < e->target_count; i++)
            if (is_shown(p, &e->targets[i]))
                TRY(add_shown(p, &e->targets[i]));
        for (int d = 0; d < samples.derived_count; d++)
            TRY(add_shown(p, samples_derived(samples.derived[d].name)));
    }
    return 0;
}

/* Keep only columns with a value in some row, and those that the flags name. */
static void drop_empty_columns(void)
{
    int kept = 0;
    for (int i = 0; i < show.shown_count; i++)
        if (tune_view_present(show.view, show.shown[i].protocol, show.shown[i].column) ||
            samples_mentions(show.shown[i].heading + show.shown[i].prefix))
            show.shown[kept++] = show.shown[i];
        else
            free(show.shown[i].heading);
    show.shown_count = kept;
}

/* ---- rows ---- */

static int room(size_t size)
{
    if (size <= show.size)
        return 0;
    char *grown = realloc(show.text, size);
    if (!grown)
        return samples_no_memory();
    show.text = grown;
    show.size = size;
    return 0;
}

/* Read the group's numbers into show.values, and the generator of its first result into
 * show.text. */
static int read_group(const struct tune_view_group *g)
{
    if (g->results > show.room) {
        double *grown = realloc(show.values, (size_t)g->results * (size_t)show.column_count * sizeof *grown);
        if (!grown)
            return samples_no_memory();
        show.values = grown;
        show.room = g->results;
    }
    memset(show.counts, 0, (size_t)show.column_count * sizeof *show.counts);
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(show.view, k);
        if (!cells)
            return -1;
        if (k == 0) {
            TRY(room(strlen(cells[0].text) + 1));
            strcpy(show.text, cells[0].text);
        }
        for (int c = 1; c < show.column_count; c++)
            if (!cells[c].absent && !cells[c].text)
                show.values[(size_t)c * (size_t)show.room + (size_t)show.counts[c]++] = cells[c].number;
    }
    return 0;
}

static int put_identifier(const struct tune_value *entity)
{
    static char *text;
    static size_t size;
    TRY(tune_entity_spell(samples.space->names, entity, samples.space->count, &text, &size));
    samples_text(text);
    return 0;
}

static int put_entity(const struct tune_view_group *g)
{
    TRY(put_identifier(g->entity));
    if (show.results)
        samples_text(show.text);
    if (show.results && show.target_format)
        samples_text(samples.protocols[g->protocol].full_identifier);
    for (int d = 0; d < samples.space->count; d++)
        samples_value(&g->entity[d]);
    return 0;
}

static void put_target(const struct shown *s)
{
    double *values = show.values + (size_t)s->column * (size_t)show.room;
    int count = show.counts[s->column];
    if (aggregated() && count > 0)
        samples_number(tune_statistic(values, count, my.aggregate), s->whole, 5);
    else
        samples_numbers(values, count, s->whole, false, 5);
}

static void put_blanks(int from, int to)
{
    for (int i = from; i < to; i++)
        samples_number(NAN, false, 5);
}

/* Fill the cells of one group; in observed format a row has all groups of an entity. Returns the
 * number of columns that are filled. */
static int put_observed(const struct tune_view_group *g, int filled)
{
    int from = filled;
    while (from < show.shown_count && show.shown[from].protocol < g->protocol)
        from++;
    put_blanks(filled, from);
    for (; from < show.shown_count && show.shown[from].protocol == g->protocol; from++)
        put_target(&show.shown[from]);
    return from;
}

static int close_row(int filled)
{
    put_blanks(filled, show.shown_count);
    return samples_end_row();
}

static int put_rows(void)
{
    struct tune_view_group g;
    int more, filled = -1; /* no row was begun */
    while ((more = tune_view_next(show.view, &g)) == 1) {
        bool goes_on = g.goes_on && !show.target_format;
        if (filled >= 0 && !goes_on) {
            TRY(close_row(filled));
            filled = -1;
        }
        if (!goes_on && samples_full())
            return 0;
        if (show.results)
            TRY(read_group(&g));
        if (!goes_on) {
            TRY(put_entity(&g));
            filled = 0;
        }
        if (!show.results) {
            filled = show.shown_count;
        } else if (show.target_format) {
            for (; filled < show.shown_count; filled++)
                put_target(&show.shown[filled]);
        } else {
            filled = put_observed(&g, filled);
        }
    }
    TRY(more);
    return filled >= 0 ? close_row(filled) : 0;
}

/* ---- the whole ---- */

/* People see the dimensions in place of the identifier, unless they ask for it. */
static int begin(void)
{
    struct samples_column *all = calloc((size_t)(3 + samples.space->count + show.shown_count), sizeof *all);
    int n = 0;
    if (!all)
        return samples_no_memory();
    all[n++] = (struct samples_column){.heading = "identifier", .hidden = samples_people()};
    if (show.results)
        all[n++].heading = "generatorid";
    if (show.results && show.target_format)
        all[n++].heading = "experiment_id";
    for (int d = 0; d < samples.space->count; d++)
        all[n++].heading = samples.space->names[d];
    for (int i = 0; show.results && i < show.shown_count; i++)
        all[n++] = (struct samples_column){show.shown[i].heading, .measured = true, .prefix = show.shown[i].prefix};
    int code = samples_begin(SAMPLES_FRAME, all, n);
    free(all);
    return code;
}

static int put_all(void)
{
    TRY(begin());
    TRY(put_rows());
    return samples_end();
}

int samples_show(void)
{
    TRY(samples_open_space(samples_word(0)));
    show.target_format = my.property_format ? !strcmp(my.property_format, "target") : samples_people();
    show.results = !strstr(my.include, "miss") && strncmp(my.include, "un", 2);
    if (!show.results && my.derive)
        return tune_error_usage("--include %s: these entities have no results, so --derive is not for them", my.include);
    TRY(choose_columns());
    if (!(show.view = samples_open_view(show.columns, show.column_count, SAMPLES_RESULTS)))
        return -1;
    if (show.results && !samples_people()) /* people are told which ones are empty */
        drop_empty_columns();
    int code = put_all();
    if (code == 0 && show.results)
        code = samples_say_mixed(show.view);
    if (code == 0)
        code = samples_say_matching(show.view);
    for (int i = 0; i < show.shown_count; i++)
        free(show.shown[i].heading);
    free(show.shown);
    free(show.columns);
    free(show.counts);
    free(show.values);
    free(show.text);
    tune_view_free(show.view);
    return code;
}
