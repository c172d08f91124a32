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
    bool whole, seen; /* seen: some row has a value */
};

static struct {
    struct tune_view *view;
    const char **columns;        /* columns of the view: the generator, then targets */
    int column_count;
    struct shown *shown;
    int shown_count;
    bool target_format, results; /* true: the view has results */
    struct samples_figures figures;
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

static void add_shown(int protocol, const struct tune_target *t)
{
    char heading[TUNE_STORE_TEXT_MAX + TUNE_STORE_NAME_MAX];
    struct shown *s = &show.shown[show.shown_count];
    s->column = view_column(t->name);
    s->whole = t->whole;
    s->protocol = show.target_format ? -1 : protocol;
    for (int i = 0; show.target_format && i < show.shown_count; i++)
        if (show.shown[i].column == s->column) {
            show.shown[i].whole = show.shown[i].whole && t->whole;
            return;
        }
    const char *identifier = show.target_format ? "" : samples.protocols[protocol].identifier;
    s->prefix = (int)strlen(identifier) + !show.target_format;
    snprintf(heading, sizeof heading, "%s%s%s%s%s", identifier, show.target_format ? "" : "-", t->name, aggregated() ? "-" : "",
             aggregated() ? my.aggregate : "");
    s->heading = samples_copy(heading);
    show.shown_count++;
}

static int choose_columns(void)
{
    int most = 1;
    for (int p = 0; p < samples.space->reference_count; p++)
        most += samples.protocols[p].experiment->target_count + samples.derived_count;
    show.columns = samples_take(most, sizeof *show.columns);
    show.shown = samples_take(most, sizeof *show.shown);
    TRY(part_count = samples_split(my.properties, parts, 256));
    TRY(samples_check_properties(parts, part_count));
    view_column(tune_key_column(TUNE_KEY_GENERATOR)->name);
    for (int p = 0; p < samples.space->reference_count; p++) {
        const struct tune_experiment *e = samples.protocols[p].experiment;
        for (int i = 0; i < e->target_count; i++)
            if (is_shown(p, &e->targets[i]))
                add_shown(p, &e->targets[i]);
        for (int d = 0; d < samples.derived_count; d++)
            add_shown(p, samples_derived(samples.derived[d].name));
    }
    show.figures.columns = show.column_count;
    return 0;
}

/* Keep only columns with a value in some row, and those that the flags name. */
static int drop_empty_columns(void)
{
    struct tune_view_group g;
    int more, kept = 0;
    while ((more = tune_view_next(show.view, &g)) == 1) {
        TRY(samples_read_figures(&show.figures, show.view, g.results, false));
        for (int i = 0; i < show.shown_count; i++) {
            struct shown *s = &show.shown[i];
            s->seen = s->seen || ((s->protocol < 0 || s->protocol == g.protocol) && show.figures.count[s->column] > 0);
        }
    }
    TRY(more);
    tune_view_rewind(show.view);
    for (int i = 0; i < show.shown_count; i++)
        if (show.shown[i].seen || samples_mentions(show.shown[i].heading + show.shown[i].prefix))
            show.shown[kept++] = show.shown[i];
    show.shown_count = kept;
    return 0;
}

/* ---- rows ---- */

static int put_entity(const struct tune_view_group *g)
{
    const struct tune_cell *cells = show.results ? tune_view_cells(show.view, 0) : NULL;
    if (show.results && !cells)
        return -1;
    TRY(samples_identifier(g->entity));
    if (cells)
        samples_text(cells[0].text);
    if (cells && show.target_format)
        samples_text(samples.protocols[g->protocol].full_identifier);
    for (int d = 0; d < samples.space->count; d++)
        samples_value(&g->entity[d]);
    return 0;
}

static void put_target(const struct shown *s)
{
    double *values = samples_figures_of(&show.figures, s->column);
    int count = show.figures.count[s->column];
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
        if (!goes_on) {
            TRY(put_entity(&g));
            filled = 0;
        }
        if (show.results)
            TRY(samples_read_figures(&show.figures, show.view, g.results, false));
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
static void begin(void)
{
    samples_column("identifier")->hidden = samples_people();
    if (show.results)
        samples_column("generatorid");
    if (show.results && show.target_format)
        samples_column("experiment_id");
    samples_columns(samples.space->names, samples.space->count);
    for (int i = 0; show.results && i < show.shown_count; i++) {
        struct samples_column *c = samples_column(show.shown[i].heading);
        c->measured = true;
        c->prefix = show.shown[i].prefix;
    }
    samples_begin(true);
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
        TRY(drop_empty_columns());
    begin();
    TRY(put_rows());
    TRY(samples_end());
    TRY(show.results ? samples_say_mixed(show.view) : 0);
    TRY(samples_say_matching(show.view));
    tune_view_free(show.view);
    return 0;
}
