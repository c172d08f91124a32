/* predict.c - what a model of the results says of entities, measured or not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "files/csv.h"
#include "sweeps/answers/model.h"

enum { MOST_ENTITIES = 1000, BLOCK = 256 };

struct predict {
    struct tune_subject *s;
    const char *property;
    struct tune_predictor **models; /* [reference_count] */
    struct tune_entities entities;
    bool uncertain;                 /* some entities were invalid, so each has a chance */
    int64_t refused;
    char first[TUNE_PREDICTOR_WHY];
};

/* ---- points ---- */

/* Set values[space->count] to those of dimensions with one value; NONE marks the others. */
static void set_fixed(const struct tune_space *space, struct tune_value *values, bool *given)
{
    for (int d = 0; d < space->count; d++) {
        given[d] = tune_domain_size(&space->dimensions[d].domain) == 1;
        if (given[d])
            tune_domain_value(&space->dimensions[d].domain, 0, &values[d]);
    }
}

/* Read "a=1,b=text". */
static int read_point(struct predict *p)
{
    const struct tune_space *space = p->s->space;
    const char *parts[TUNE_SPACE_DIMENSIONS];
    int count = tune_subject_list(p->s, p->s->q->point, parts, TUNE_SPACE_DIMENSIONS);
    struct tune_value *values;
    bool *given, *twice;
    TRY(count);
    TAKE(values, p->s->a, space->count);
    TAKE(given, p->s->a, space->count);
    TAKE(twice, p->s->a, space->count);
    set_fixed(space, values, given);
    for (int i = 0; i < count; i++) {
        char *equals = strchr(parts[i], '=');
        if (!equals || equals == parts[i])
            return tune_error_usage("`point`: \"%s\" is not NAME=VALUE", parts[i]);
        *equals++ = 0;
        int d = tune_subject_dimension(p->s, parts[i]);
        TRY(d);
        if (twice[d])
            return tune_error_usage("`point` names %s twice", parts[i]);
        twice[d] = given[d] = true;
        tune_domain_parse(&space->dimensions[d].domain, equals, &values[d]);
    }
    for (int d = 0; d < space->count; d++)
        if (!given[d])
            return tune_error_usage("`point` does not name %s; for all values of a dimension, use `where` in place of `point`", space->names[d]);
    return tune_entities_add(p->s, &p->entities, values);
}

/* Find the column of each dimension. Other columns are left out, and a note says so. */
static int read_heading(struct predict *p, const char *const *fields, int width, int *columns)
{
    const struct tune_space *space = p->s->space;
    int others = 0;
    for (int d = 0; d < space->count; d++)
        columns[d] = -1;
    for (int i = 0; i < width; i++) {
        int d = tune_name_find(space->names, space->count, fields[i]);
        others += d < 0;
        if (d >= 0 && columns[d] >= 0)
            return tune_error_usage("%s:1: two columns have the name %s", p->s->q->points, fields[i]);
        if (d >= 0)
            columns[d] = i;
    }
    for (int d = 0; d < space->count; d++)
        if (columns[d] < 0 && tune_domain_size(&space->dimensions[d].domain) != 1)
            return tune_error_usage("%s:1: the dimension %s of the space has no column", p->s->q->points, space->names[d]);
    if (others > 0)
        tune_answer_add_note(p->s->a, TUNE_NOTE_WARNING, "%s: %d column%s no dimension, and left out", p->s->q->points, others,
                             others == 1 ? " is" : "s are");
    return 0;
}

static int read_row(struct predict *p, const struct tune_csv *csv, const char *const *fields, const int *columns, struct tune_value *values)
{
    const struct tune_space *space = p->s->space;
    for (int d = 0; d < space->count; d++) {
        const struct tune_domain *domain = &space->dimensions[d].domain;
        if (columns[d] < 0) {
            tune_domain_value(domain, 0, &values[d]);
            continue;
        }
        if (!tune_domain_parse(domain, fields[columns[d]], &values[d]) && !*fields[columns[d]])
            return tune_error_usage("%s:%lld: %s is empty", p->s->q->points, (long long)tune_csv_line(csv), space->names[d]);
    }
    return tune_entities_add(p->s, &p->entities, values);
}

static int read_rows(struct predict *p, struct tune_csv *csv)
{
    const char *const *fields, *path = p->s->q->points;
    int width, count, *columns, more = tune_csv_row(csv, &fields, &width);
    struct tune_value *values;
    TRY(more);
    TAKE(columns, p->s->a, p->s->space->count);
    TAKE(values, p->s->a, p->s->space->count);
    if (more == 0)
        return tune_error_usage("%s: the file is empty; expected a heading with the names of the dimensions, and points", path);
    TRY(read_heading(p, fields, width, columns));
    while ((more = tune_csv_row(csv, &fields, &count)) == 1) {
        if (count != width)
            return tune_error_usage("%s:%lld: the row has %d fields, but the heading has %d", path, (long long)tune_csv_line(csv), count, width);
        TRY(read_row(p, csv, fields, columns, values));
    }
    if (more == 0 && p->entities.count == 0)
        return tune_error_usage("%s: there is no point below the heading", path);
    return more;
}

static int read_file(struct predict *p)
{
    struct tune_csv *csv = tune_csv_open(p->s->q->points);
    int code = csv ? read_rows(p, csv) : -1;
    tune_csv_free(csv);
    return code;
}

static int read_entities(struct predict *p)
{
    const struct tune_question *q = p->s->q;
    if (!!q->point + !!q->points + !!q->where > 1)
        return tune_error_usage("give predict only one of `point`, `points` and `where`");
    if (q->entities > 0 && (q->point || q->points))
        return tune_error_usage("`entities` is for the points of the space, not for given ones");
    return q->point ? read_point(p) : q->points ? read_file(p) : tune_entities_list(p->s, q->entities > 0 ? q->entities : MOST_ENTITIES, &p->entities);
}

/* ---- the table ---- */

static void add_figure(struct predict *p, const char *name, const char *unit, int digits)
{
    struct tune_answer_column *c = tune_answer_column(p->s->a, name);
    c->unit = unit;
    c->digits = digits;
    c->measured = true;
}

static void add_columns(struct predict *p)
{
    struct tune_subject *s = p->s;
    const char *unit = tune_subject_target(s, -1, p->property)->unit;
    if (s->space->reference_count > 1)
        tune_answer_column(s->a, "experiment");
    for (int d = 0; d < s->space->count; d++) {
        struct tune_answer_column *c = tune_answer_column(s->a, s->space->names[d]);
        c->dimension = true;
        c->digits = 6;
    }
    add_figure(p, "predicted", unit, 4);
    add_figure(p, "low", unit, 4);
    add_figure(p, "high", unit, 4);
    add_figure(p, "measured", unit, 5);
    add_figure(p, "results", "", 0);
    add_figure(p, "unsure_percent", "%", 2);
    if (p->uncertain)
        add_figure(p, "valid_percent", "%", 3);
    tune_answer_column(s->a, "nearest");
    tune_answer_column(s->a, "why");
}

static int add_row(struct predict *p, int binding, const struct tune_value *entity, const struct tune_predicted *at)
{
    struct tune_answer_table *a = p->s->a;
    const struct tune_predictor *model = p->models[binding];
    bool known = !*at->why, measured = known && at->measured;
    char nearest[512] = "";
    int count = 0;
    if (p->s->space->reference_count > 1)
        tune_answer_text(a, p->s->bindings[binding].identifier);
    for (int d = 0; d < p->s->space->count; d++)
        tune_answer_space_value(a, &entity[d]);
    tune_answer_figure(a, known ? at->mean : NAN, false);
    tune_answer_figure(a, known ? at->low : NAN, false);
    tune_answer_figure(a, known ? at->high : NAN, false);
    tune_answer_figure(a, measured ? tune_predictor_measured(model, at->nearest, &count) : NAN, false);
    tune_answer_figure(a, measured ? count : NAN, true);
    tune_answer_figure(a, known ? 100 * at->unsure : NAN, false);
    if (p->uncertain)
        tune_answer_figure(a, known ? 100 * at->valid : NAN, false);
    if (known && !measured)
        tune_difference_text(p->s->space, tune_predictor_entity(model, at->nearest), entity, nearest, sizeof nearest);
    tune_answer_text(a, *nearest ? nearest : NULL);
    tune_answer_text(a, known ? NULL : at->why);
    if (!known && p->refused++ == 0)
        snprintf(p->first, sizeof p->first, "%s", at->why);
    return tune_answer_end_row(a);
}

static int add_rows(struct predict *p, int binding, struct tune_predicted *predicted)
{
    for (int first = 0; first < p->entities.count; first += BLOCK) {
        int count = p->entities.count - first < BLOCK ? p->entities.count - first : BLOCK;
        TRY(tune_predictor_at(p->models[binding], (const struct tune_value *const *)p->entities.at + first, count, predicted));
        for (int i = 0; i < count; i++)
            TRY(add_row(p, binding, p->entities.at[first + i], &predicted[i]));
    }
    return 0;
}

static void add_notes(struct predict *p)
{
    struct tune_answer_table *a = p->s->a;
    tune_models_note(p->s, p->models, p->property);
    tune_answer_add_note(a, TUNE_NOTE_BELOW, "low, high: a new measurement is between them in 95 of 100 cases; unsure_percent: 100 where the "
                                             "measurements say nothing, 0 where the value is certain");
    tune_answer_add_note(a, TUNE_NOTE_BELOW, "nearest: the measured entity that says most, by the values that differ%s",
                         p->uncertain ? "; valid_percent: the chance that a measurement is valid" : "");
    if (p->refused > 0)
        tune_answer_add_note(a, TUNE_NOTE_WARNING, "of %lld of %lld points nothing is known; the column why says the reason", (long long)p->refused,
                             (long long)a->rows);
}

static int add_all(struct predict *p)
{
    struct tune_answer_table *a = p->s->a;
    struct tune_predicted *predicted;
    TAKE(predicted, a, BLOCK);
    for (int b = 0; b < p->s->space->reference_count; b++)
        p->uncertain = p->uncertain || (p->models[b] && tune_predictor_invalid(p->models[b]) > 0);
    add_columns(p);
    for (int b = 0; b < p->s->space->reference_count; b++)
        if (p->models[b])
            TRY(add_rows(p, b, predicted));
    if (a->rows > 0 && p->refused == a->rows)
        return tune_error_set("nothing is known of %s: %s", a->rows == 1 ? "this point" : "these points", p->first);
    if (a->rows > 0)
        add_notes(p);
    a->none = tune_answer_copy(a, "no entity of the space meets `where`");
    return a->none ? 0 : -1;
}

/* ---- the entry point ---- */

/* Find the one property that is asked for. */
static int choose_property(struct predict *p)
{
    const char *names[2];
    int count = tune_subject_numbers(p->s, p->s->q->properties, names, 2);
    TRY(count);
    if (count != 1)
        return tune_error_usage("predict needs one property: give `property` PROPERTY");
    p->property = names[0];
    return 0;
}

static int predict_all(struct predict *p)
{
    TRY(tune_subject_space(p->s));
    TRY(choose_property(p));
    TAKE(p->models, p->s->a, p->s->space->reference_count);
    TRY(read_entities(p));
    TRY(tune_models_read(p->s, p->property, false, p->models));
    return add_all(p);
}

static int predict(struct tune_subject *s)
{
    struct predict p = {.s = s};
    int code = predict_all(&p);
    tune_models_free(s, p.models);
    tune_entities_free(&p.entities);
    return code;
}

struct tune_answer_table *tune_ask_predict(const struct tune_question *q)
{
    return tune_subject_answer(q, "predict", predict);
}
