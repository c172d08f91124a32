/* show.c - list the results of a space as ado does: a row per entity and experiment. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/statistics.h"
#include "sweeps/answers/pass.h"

/* A column for a target. */
struct shown {
    const char *name, *unit;
    int column; /* of the view */
    bool whole, text, seen; /* seen: at least one row has a value */
};

struct show {
    struct tune_subject *s;
    struct tune_view *view;
    const char **columns; /* [column_count] the view's columns: the generator, then targets */
    int column_count;
    struct shown *shown;  /* [shown_count] */
    int shown_count;
    const char *parts[256]; /* [part_count] the requested properties */
    int part_count;
    struct tune_figures figures;
};

/* ---- columns ---- */

/* True if a target is shown. By default, the experiment decides for its parameters. The question's
 * properties replace this selection, and its arrangement adds to it. */
static bool is_shown(const struct show *w, int binding, const struct tune_target *t)
{
    const struct tune_question *q = w->s->q;
    return tune_arrangement_mentions(&q->arrange, t->name) ||
           ((w->part_count == 0 || tune_name_find(w->parts, w->part_count, t->name) >= 0) &&
            (q->properties || q->all_properties || tune_binding_shows(&w->s->bindings[binding], t)));
}

static int view_column(struct show *w, const char *name)
{
    int known = tune_name_find(w->columns, w->column_count, name);
    if (known >= 0)
        return known;
    w->columns[w->column_count] = name;
    return w->column_count++;
}

/* True if the results of an entity are aggregated here. When grouping, arrange.c aggregates them. */
static bool is_aggregated(const struct show *w)
{
    return w->s->q->aggregate && !w->s->q->arrange.group_by;
}

static int add_shown(struct show *w, const struct tune_target *t)
{
    char name[TUNE_STORE_TEXT_MAX + TUNE_STORE_NAME_MAX];
    struct shown *shown = &w->shown[w->shown_count];
    int column = view_column(w, t->name);
    for (int i = 0; i < w->shown_count; i++)
        if (w->shown[i].column == column) {
            w->shown[i].whole = w->shown[i].whole && t->whole;
            return 0;
        }
    bool aggregated = is_aggregated(w) && !t->text;
    snprintf(name, sizeof name, "%s%s%s", t->name, aggregated ? "-" : "", aggregated ? w->s->q->aggregate : "");
    *shown = (struct shown){.name = tune_answer_copy(w->s->a, name), .unit = t->unit, .column = column, .whole = t->whole, .text = t->text};
    w->shown_count++;
    return shown->name ? 0 : -1;
}

static int choose_columns(struct show *w)
{
    struct tune_subject *s = w->s;
    int most = 1;
    for (int p = 0; p < s->space->reference_count; p++)
        most += s->bindings[p].experiment->target_count + s->derived_count;
    TAKE(w->columns, s->a, most);
    TAKE(w->shown, s->a, most);
    TRY(w->part_count = tune_subject_properties(s, s->q->properties, w->parts, 256));
    view_column(w, tune_key_column(TUNE_KEY_GENERATOR)->name);
    for (int p = 0; p < s->space->reference_count; p++) {
        const struct tune_experiment *e = s->bindings[p].experiment;
        for (int i = 0; i < e->target_count; i++)
            if (is_shown(w, p, &e->targets[i]))
                TRY(add_shown(w, &e->targets[i]));
        for (int d = 0; d < s->derived_count; d++)
            TRY(add_shown(w, tune_subject_target(s, p, s->derived[d].name)));
    }
    w->figures.columns = w->column_count;
    return 0;
}

/* Remove columns without any value, except those that the question names. */
static int remove_empty_columns(struct show *w)
{
    struct tune_view_group g;
    int more, left = 0;
    while ((more = tune_view_next(w->view, &g)) == 1)
        for (int k = 0; k < g.results; k++) {
            const struct tune_cell *cells = tune_view_cells(w->view, k);
            TRY(cells ? 0 : -1);
            for (int i = 0; i < w->shown_count; i++)
                w->shown[i].seen = w->shown[i].seen || !cells[w->shown[i].column].absent;
        }
    TRY(more);
    tune_view_rewind(w->view);
    for (int i = 0; i < w->shown_count; i++)
        if (w->shown[i].seen || tune_arrangement_mentions(&w->s->q->arrange, w->shown[i].name))
            w->shown[left++] = w->shown[i];
    w->shown_count = left;
    return 0;
}

static void add_columns(struct show *w)
{
    struct tune_answer_table *a = w->s->a;
    a->numbered = true;
    tune_answer_column(a, "identifier")->hidden = true; /* text output shows the dimensions instead */
    tune_answer_column(a, "generatorid");
    tune_answer_column(a, "experiment_id");
    for (int d = 0; d < w->s->space->count; d++) {
        struct tune_answer_column *c = tune_answer_column(a, w->s->space->names[d]);
        c->dimension = true;
        c->digits = 15;
    }
    for (int i = 0; i < w->shown_count; i++) {
        struct tune_answer_column *c = tune_answer_column(a, w->shown[i].name);
        c->unit = w->shown[i].unit;
        c->measured = !w->shown[i].text;
    }
}

/* ---- rows ---- */

static int add_entity(struct show *w, const struct tune_view_group *g)
{
    struct tune_answer_table *a = w->s->a;
    const struct tune_cell *cells = tune_view_cells(w->view, 0);
    TRY(cells ? 0 : -1);
    TRY(tune_answer_identifier(a, w->s->space, g->entity));
    tune_answer_text(a, cells[0].absent ? NULL : cells[0].text);
    tune_answer_text(a, w->s->bindings[g->binding].full_identifier);
    for (int d = 0; d < w->s->space->count; d++)
        tune_answer_space_value(a, &g->entity[d]);
    return 0;
}

/* Print the texts of a target in the current group as "a, b". Equal ones in a row are one. Returns
 * how many were printed, or -1. */
static int print_texts(struct show *w, int column, int results, FILE *out)
{
    const char *last = NULL;
    int texts = 0;
    for (int k = 0; k < results; k++) {
        const struct tune_cell *cells = tune_view_cells(w->view, k);
        TRY(cells ? 0 : -1);
        if (cells[column].absent || !cells[column].text || (last && !strcmp(last, cells[column].text)))
            continue;
        TRY((last = tune_answer_copy(w->s->a, cells[column].text)) ? 0 : -1);
        fprintf(out, "%s%s", texts++ ? ", " : "", last);
    }
    return texts;
}

/* Add the texts of a target in the current group: one, or "[a, b]" if the results differ. */
static int add_texts(struct show *w, int column, int results)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return tune_error_no_memory("the texts of a result");
    fputc('[', out);
    int texts = print_texts(w, column, results, out);
    fputc(']', out);
    int code = fclose(out) == 0 ? 0 : tune_error_no_memory("the texts of a result");
    if (code == 0 && texts == 1)
        text[size - 1] = 0; /* without brackets */
    if (code == 0 && texts >= 0)
        tune_answer_text(w->s->a, texts == 0 ? NULL : texts == 1 ? text + 1 : text);
    free(text);
    return texts < 0 ? -1 : code;
}

static int add_target(struct show *w, const struct shown *shown, int results)
{
    double *values = tune_figures_of(&w->figures, shown->column);
    int count = w->figures.count[shown->column];
    if (count == 0)
        return add_texts(w, shown->column, results);
    if (is_aggregated(w))
        tune_answer_figure(w->s->a, tune_statistic(values, count, w->s->q->aggregate), shown->whole);
    else
        tune_answer_figures(w->s->a, values, count, shown->whole);
    return 0;
}

static int add_rows(struct show *w)
{
    struct tune_view_group g;
    const struct tune_arrangement *arrange = &w->s->q->arrange;
    int more;
    while ((more = tune_view_next(w->view, &g)) == 1) {
        if (tune_answer_full(w->s->a, arrange->sort || arrange->group_by ? 0 : arrange->limit))
            return 0;
        TRY(add_entity(w, &g));
        TRY(tune_figures_read(w->s, &w->figures, w->view, g.results, false));
        for (int i = 0; i < w->shown_count; i++)
            TRY(add_target(w, &w->shown[i], g.results));
        TRY(tune_answer_end_row(w->s->a));
    }
    return more;
}

static int show_view(struct show *w)
{
    if (!w->s->q->brief) /* for people, a note lists empty columns */
        TRY(remove_empty_columns(w));
    add_columns(w);
    TRY(add_rows(w));
    return tune_subject_add_notes(w->s, w->view);
}

static int show_space(struct tune_subject *s)
{
    struct show w = {.s = s};
    TRY(tune_subject_space(s));
    TRY(choose_columns(&w));
    if (!(w.view = tune_subject_view(s, w.columns, w.column_count, TUNE_RESULTS)))
        return -1;
    int code = show_view(&w);
    tune_view_free(w.view);
    return code;
}

/* Refuse options that have no effect on rows, requests and figures. */
static int check_options(const struct tune_subject *s)
{
    const struct tune_question *q = s->q;
    bool entity = s->kind == TUNE_ABOUT_ENTITY && !q->point, rows = s->kind == TUNE_ABOUT_EXPERIMENT && !q->point;
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"operation", q->operation && s->kind != TUNE_ABOUT_OPERATION}, {"build", q->build && !entity}, {"include", q->matching},
        {"property", q->properties}, {"all_properties", q->all_properties},
        {"aggregate", q->aggregate && !q->arrange.group_by}, {"table", q->table && !q->point && !rows}};
    if (q->point && q->about)
        return tune_error_usage("show `point` searches all experiments, so do not name %s; choose "
                                "rows with `where`", q->about);
    for (size_t i = 0; i < sizeof options / sizeof *options && (q->point || s->kind != TUNE_ABOUT_SPACE); i++)
        if (options[i].given)
            return tune_error_usage("show of %s takes no `%s`, which is for a space; choose rows "
                                    "with `where`, and columns with `columns`",
                                    q->point ? "a point" : s->name, options[i].name);
    return 0;
}

static int show(struct tune_subject *s)
{
    TRY(check_options(s));
    bool listed = !s->q->point && (s->kind == TUNE_ABOUT_OPERATION || s->kind == TUNE_ABOUT_ENTITY);
    if (s->derived_count > 0 && (s->q->point || listed))
        return tune_error_usage("show takes `derive` only for a space or an experiment, not for %s",
                                s->q->point ? "a point" : s->name);
    if (s->q->point)
        return tune_show_point(s);
    return s->kind == TUNE_ABOUT_SPACE ? show_space(s)
           : s->kind == TUNE_ABOUT_EXPERIMENT ? tune_show_rows(s)
           : s->kind == TUNE_ABOUT_OPERATION ? tune_show_requests(s)
                                             : tune_show_entity(s);
}

struct tune_answer_table *tune_ask_show(const struct tune_question *q)
{
    return tune_subject_answer(q, "show", show);
}
