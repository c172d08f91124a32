/* margins.c - lines of a plot, by a model of the results. Other dimensions count as in the shares of
 * `effect`: each value within the measured range is as likely as the others. */
#include "sweeps/answers/margins.h"

#include <math.h>

#include "core/nearest.h"
#include "sweeps/answers/shares.h"

enum { SEED = 1, MOST_PLACES = 49, FEWEST_PLACES = 17, ALL_PLACES = 400, MOST_LINES = 64 };

/* The dimensions of a plot. */
struct layout {
    int x[2], x_count;  /* dimensions that are an x axis */
    int series, facet;  /* -1: none */
};

/* A property under an experiment, and its model. */
struct line_maker {
    struct points *p;
    const struct layout *layout;
    int property, binding;
    const struct tune_predictor *model;
    char text[256];
    int most;      /* places of a line; fewer if there are many lines */
    double fixed[TUNE_SURROGATE_DIMENSIONS]; /* places of axes with one value; NAN: all values */
};

/* ---- the layout ---- */

static int find_dimension(const struct points *p, const char *name)
{
    return name ? tune_name_find(p->s->space->names, p->s->space->count, name) : -1;
}

/* Choose the x axes as the picture does. */
static struct layout choose_layout(const struct points *p)
{
    const struct tune_question *q = p->s->q;
    struct layout l = {.series = find_dimension(p, q->series), .facet = find_dimension(p, q->facet)};
    int x = p->x < 0 ? find_dimension(p, q->x) : -1;
    if (q->x) {
        l.x[0] = x;
        l.x_count = x >= 0;
        return l;
    }
    for (int i = 0; i < p->varying_count; i++) {
        int d = p->varying[i];
        if (d == l.series || d == l.facet)
            continue;
        if (l.x_count == (l.series >= 0 ? 1 : 2))
            return (struct layout){.x_count = 0};
        l.x[l.x_count++] = d;
    }
    return l;
}

/* True if the points are less than half of the grid of their values. */
static bool is_sampled(const struct points *p, const struct layout *l)
{
    double cells = 1;
    int properties = 0;
    for (int i = 0; i < p->varying_count; i++)
        cells *= p->varying[i] == l->facet ? 1 : p->levels[p->varying[i]].count;
    for (int k = 0; k < p->property_count; k++) {
        int64_t i = 0;
        while (i < p->count && p->all[i].property != k)
            i++;
        properties += i < p->count;
    }
    return cells * properties > 2.0 * (double)p->count;
}

bool tune_margins_wanted(const struct points *p)
{
    const struct layout l = choose_layout(p);
    return l.x_count > 0 && is_sampled(p, &l);
}

/* ---- places ---- */

/* Take an axis at its one value, else at any. */
static double place(const void *maker, int axis, double u)
{
    const struct line_maker *m = maker;
    return isnan(m->fixed[axis]) ? tune_predictor_place(m->model, axis, u) : m->fixed[axis];
}

static bool is_listed(const double *places, int count, double at)
{
    int i = 0;
    while (i < count && places[i] != at)
        i++;
    return i < count;
}

/* Write the values of a countable axis that the line goes through. Returns their number. */
static int list_values(const struct line_maker *m, int axis, struct tune_margin *margins, struct tune_value *values)
{
    const struct tune_axes *axes = tune_predictor_axes(m->model);
    const struct tune_surrogate_axis *on = &axes->axes[axis];
    double coordinates[TUNE_SURROGATE_DIMENSIONS] = {0}, point[TUNE_SURROGATE_DIMENSIONS];
    int all, count = 0, seen = 0;
    const double *places = tune_predictor_places(m->model, axis, &all);
    for (double i = 0; i < on->size && count < m->most; i++) {
        coordinates[axis] = i;
        tune_axes_point(axes, coordinates, point);
        if (!is_listed(places, all, point[axis]))
            continue;
        bool taken = all <= MOST_PLACES || seen * (m->most - 1) >= count * (all - 1);
        seen++;
        if (!taken)
            continue;
        margins[count].place = point[axis];
        tune_domain_value(on->domain, (tune_index)i, &values[count++]);
    }
    return count;
}

/* Write evenly spaced values of an axis of numbers. Returns their number. */
static int space_values(const struct line_maker *m, int axis, struct tune_margin *margins, struct tune_value *values)
{
    const struct tune_surrogate_axis *on = &tune_predictor_axes(m->model)->axes[axis];
    for (int i = 0; i < m->most; i++) {
        double at = margins[i].place = tune_predictor_place(m->model, axis, (double)i / (m->most - 1));
        double number = on->low + at * (on->high - on->low);
        values[i] = tune_value_float(on->scale == TUNE_AXIS_LOG ? exp(number) : number);
    }
    return m->most;
}

/* ---- rows ---- */

static void add_dimensions(const struct line_maker *m, const struct point *of, int x, const struct tune_value *value)
{
    struct tune_subject *s = m->p->s;
    for (int d = 0; d < s->space->count; d++)
        if (d == x)
            tune_answer_space_value(s->a, value);
        else if (d == m->layout->series || d == m->layout->facet)
            tune_answer_space_value(s->a, &m->p->levels[d].values[of->at[d]]);
        else
            tune_answer_text(s->a, NULL);
}

static int add_row(const struct line_maker *m, const struct point *of, int x, const struct tune_value *value, const struct tune_margin *at)
{
    struct tune_subject *s = m->p->s;
    const struct tune_target *t = tune_subject_target(s, m->binding, m->p->properties[m->property]);
    bool logarithm = tune_predictor_logarithm(m->model);
    const double figures[] = {at->mean, at->low, at->high};
    tune_answer_text(s->a, m->p->properties[m->property]);
    tune_answer_text(s->a, t ? t->unit : "");
    tune_answer_text(s->a, s->bindings[m->binding].identifier);
    add_dimensions(m, of, x, value);
    for (int i = 0; i < 3; i++)
        tune_answer_figure(s->a, logarithm ? exp(figures[i]) : figures[i], false);
    tune_answer_whole(s->a, tune_surrogate_rows(tune_predictor_model(m->model)));
    tune_answer_text(s->a, s->space->names[x]);
    tune_answer_text(s->a, m->text);
    return tune_answer_end_row(s->a);
}

static void write_text(struct line_maker *m, int axis)
{
    const struct tune_axes *axes = tune_predictor_axes(m->model);
    bool logarithm = tune_predictor_logarithm(m->model);
    int others = 0, results = 0, count, used = tune_surrogate_rows(tune_predictor_model(m->model));
    char all[32] = "";
    for (int k = 0; k < axes->count; k++)
        others += k != axis && isnan(m->fixed[k]);
    for (int i = 0; i < tune_predictor_count(m->model); i++, results += count)
        tune_predictor_measured(m->model, i, &count);
    if (used < results)
        snprintf(all, sizeof all, " of %d", results);
    snprintf(m->text, sizeof m->text, "%s, by a model of %d%s results of %d entities",
             others == 0 ? "expected value" : logarithm ? "geometric mean over the other dimensions" : "mean over the other dimensions",
             used, all, tune_predictor_count(m->model));
}

/* Add the line over dimension x with the values of `series` and `facet` that a point has. */
static int add_line(struct line_maker *m, const struct point *of, int x)
{
    const struct tune_axes *axes = tune_predictor_axes(m->model);
    const struct tune_spread_of_axes spread = {place, m};
    struct tune_margin margins[MOST_PLACES];
    struct tune_value values[MOST_PLACES], *entity;
    double coordinates[TUNE_SURROGATE_DIMENSIONS], point[TUNE_SURROGATE_DIMENSIONS];
    int axis = -1, listed;
    TAKE(entity, m->p->s->a, m->p->s->space->count);
    for (int d = 0; d < m->p->s->space->count; d++)
        entity[d] = m->p->levels[d].values[of->at[d]];
    if (tune_axes_find(axes, entity, coordinates) < 0) {
        tune_error_clear(); /* the point is not of this space */
        return 0;
    }
    tune_axes_point(axes, coordinates, point);
    for (int k = 0; k < axes->count; k++) {
        int d = axes->axes[k].dimension;
        m->fixed[k] = d == m->layout->series || d == m->layout->facet ? point[k] : NAN;
        axis = d == x ? k : axis;
    }
    if (axis < 0)
        return 0;
    write_text(m, axis);
    tune_predictor_places(m->model, axis, &listed);
    int count = listed > 0 ? list_values(m, axis, margins, values) : space_values(m, axis, margins, values);
    TRY(tune_margins_find(tune_predictor_model(m->model), &spread, SEED, axis, margins, count));
    for (int i = 0; i < count; i++)
        TRY(add_row(m, of, x, &values[i], &margins[i]));
    return 0;
}

/* True if two points are on the same line. */
static bool is_same_line(const struct layout *l, const struct point *a, const struct point *b)
{
    return (l->series < 0 || a->at[l->series] == b->at[l->series]) && (l->facet < 0 || a->at[l->facet] == b->at[l->facet]);
}

static int add_lines(struct line_maker *m)
{
    const struct point *firsts[MOST_LINES];
    int count = 0;
    for (int64_t i = 0; i < m->p->count; i++) {
        const struct point *at = &m->p->all[i];
        int k = 0;
        if (at->property != m->property || at->binding != m->binding)
            continue;
        while (k < count && !is_same_line(m->layout, firsts[k], at))
            k++;
        if (k < count)
            continue;
        if (count == MOST_LINES) {
            tune_answer_add_note(m->p->s->a, TUNE_NOTE_WARNING, "no line: there would be more than %d, one for each curve of each drawing", MOST_LINES);
            return 0;
        }
        firsts[count++] = at;
    }
    int each = ALL_PLACES / (count > 0 ? count : 1);
    m->most = each < FEWEST_PLACES ? FEWEST_PLACES : each < MOST_PLACES ? each : MOST_PLACES;
    for (int i = 0; i < count; i++)
        for (int x = 0; x < m->layout->x_count; x++)
            TRY(add_line(m, firsts[i], m->layout->x[x]));
    return 0;
}

/* Add the lines of a property whose models are fitted. */
static int add_property(struct points *p, const struct layout *l, int property, struct tune_predictor *const *models)
{
    struct tune_subject *s = p->s;
    for (int b = 0; b < s->space->reference_count; b++) {
        struct line_maker m = {.p = p, .layout = l, .property = property, .binding = b, .model = models[b]};
        int varying, least = models[b] ? tune_shares_least(models[b], &varying) : 0;
        if (models[b] && tune_predictor_count(models[b]) < least)
            tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "no line: %d measured entities are too few for a model of %d dimensions; %d are enough",
                                 tune_predictor_count(models[b]), varying, least);
        else if (models[b])
            TRY(add_lines(&m));
    }
    return 0;
}

int tune_margins_add(struct points *p)
{
    const struct layout l = choose_layout(p);
    struct tune_subject *s = p->s;
    struct tune_predictor **models;
    for (int k = 0; k < p->property_count; k++) {
        TAKE(models, s->a, s->space->reference_count);
        int code = tune_models_read(s, p->properties[k], true, models);
        if (code == 0)
            code = add_property(p, &l, k, models);
        else if (tune_error_kind() != TUNE_ERROR_CANNOT) {
            tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "no line: %s", tune_error_message());
            tune_error_clear();
            code = 0;
        }
        tune_models_free(s, models);
        TRY(code);
    }
    return 0;
}
