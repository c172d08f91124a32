/* expected.c - the unmeasured entities that are worth measuring: those from which a model of the
 * results expects most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweeps/answers/model.h"

#define BEYOND "a sweep with `order` model tries such entities, too"
enum { MOST_ENTITIES = 20000, MOST_SHOWN = 5, BLOCK = 256 };

/* An entity that was not tried. */
struct hope {
    const struct tune_value *entity;
    struct tune_predicted at;
    double gain;
    int binding;
};

struct expected {
    struct tune_subject *s;
    const char *property;
    bool maximize;
    struct tune_predictor **models; /* [reference_count] */
    struct tune_entities entities;
    struct hope *best;              /* [count] the highest gain first */
    int count, most;
    int64_t refused;                /* entities of which nothing is known */
    char first[TUNE_PREDICTOR_WHY];
    bool uncertain;                 /* some entities were invalid, so each has a chance */
};

/* ---- the choice ---- */

/* If gains are equal, as 0 and 0, the better predicted one comes first. */
static bool is_better(const struct expected *x, const struct hope *a, const struct hope *b)
{
    return a->gain != b->gain ? a->gain > b->gain : x->maximize ? a->at.mean > b->at.mean : a->at.mean < b->at.mean;
}

/* Keep an entity if it is among the best. Earlier ones come first among equals. */
static void consider(struct expected *x, const struct hope *hope)
{
    int at = x->count < x->most ? x->count++ : x->most;
    for (; at > 0 && is_better(x, hope, &x->best[at - 1]); at--)
        if (at < x->most)
            x->best[at] = x->best[at - 1];
    if (at < x->most)
        x->best[at] = *hope;
}

static int consider_all(struct expected *x, int binding)
{
    struct tune_predicted *predicted;
    TAKE(predicted, x->s->a, BLOCK);
    for (int first = 0; first < x->entities.count; first += BLOCK) {
        int count = x->entities.count - first < BLOCK ? x->entities.count - first : BLOCK;
        TRY(tune_predictor_at(x->models[binding], (const struct tune_value *const *)x->entities.at + first, count, predicted));
        for (int i = 0; i < count; i++) {
            struct hope hope = {x->entities.at[first + i], predicted[i], 0, binding};
            if (*hope.at.why && x->refused++ == 0)
                memcpy(x->first, hope.at.why, sizeof x->first);
            if (*hope.at.why || hope.at.measured || hope.at.invalid)
                continue;
            hope.gain = tune_predictor_gain(x->models[binding], &hope.at, x->maximize);
            consider(x, &hope);
        }
    }
    return 0;
}

/* ---- the table ---- */

static void add_columns(struct expected *x)
{
    static const char *const names[] = {"expected_gain", "predicted", "low", "high", "unsure_percent", "valid_percent"};
    struct tune_answer_table *a = x->s->a;
    const char *unit = tune_subject_target(x->s, -1, x->property)->unit;
    tune_answer_column(a, "rank");
    for (int i = 0; i < (x->uncertain ? 6 : 5); i++) {
        struct tune_answer_column *c = tune_answer_column(a, names[i]);
        c->unit = i < 4 ? unit : "%";
        c->digits = i == 0 || i == 4 ? 2 : i == 5 ? 3 : 4;
        c->measured = true;
    }
    if (x->s->space->reference_count > 1)
        tune_answer_column(a, "experiment");
    for (int d = 0; d < x->s->space->count; d++) {
        struct tune_answer_column *c = tune_answer_column(a, x->s->space->names[d]);
        c->dimension = true;
        c->digits = 15;
    }
    tune_answer_column(a, "identifier")->hidden = true;
}

static int add_row(struct expected *x, int rank)
{
    struct tune_answer_table *a = x->s->a;
    const struct hope *hope = &x->best[rank];
    tune_answer_whole(a, rank + 1);
    tune_answer_figure(a, hope->gain, false);
    tune_answer_figure(a, hope->at.mean, false);
    tune_answer_figure(a, hope->at.low, false);
    tune_answer_figure(a, hope->at.high, false);
    tune_answer_figure(a, 100 * hope->at.unsure, false);
    if (x->uncertain)
        tune_answer_figure(a, 100 * hope->at.valid, false);
    if (x->s->space->reference_count > 1)
        tune_answer_text(a, x->s->bindings[hope->binding].identifier);
    for (int d = 0; d < x->s->space->count; d++)
        tune_answer_space_value(a, &hope->entity[d]);
    TRY(tune_answer_identifier(a, x->s->space, hope->entity));
    return tune_answer_end_row(a);
}

static void add_notes(struct expected *x)
{
    struct tune_answer_table *a = x->s->a;
    for (int p = 0; p < x->s->space->reference_count; p++) {
        double best = NAN;
        int results;
        for (int i = 0; x->models[p] && i < tune_predictor_count(x->models[p]); i++) {
            double value = tune_predictor_measured(x->models[p], i, &results);
            best = isnan(best) || (x->maximize ? value > best : value < best) ? value : best;
        }
        if (!isnan(best))
            tune_answer_add_note(a, TUNE_NOTE_BELOW, "not measured yet; the best measured mean of %s%s%s is %.6g", x->property,
                                 x->s->space->reference_count > 1 ? " under " : "",
                                 x->s->space->reference_count > 1 ? x->s->bindings[p].identifier : "", best);
    }
    tune_answer_add_note(a, TUNE_NOTE_BELOW, "expected_gain: by how much a measurement is expected to beat the best, with 0 for those that do "
                                             "not%s; low, high: a new measurement is between them in 95 of 100 cases",
                         x->uncertain ? ", times the chance that it is valid" : "");
    tune_models_note(x->s, x->models, x->property);
    if (x->best->gain < 1e-4 * fabs(tune_predictor_best(x->models[x->best->binding], x->maximize)))
        tune_answer_add_note(a, TUNE_NOTE_BELOW, "none of them is expected to beat the best by 0.01 %%");
    if (x->refused > 0)
        tune_answer_add_note(a, TUNE_NOTE_WARNING, "of %lld entities nothing is known, so they are left out; the first: %s; " BEYOND,
                             (long long)x->refused, x->first);
}

/* ---- the entry point ---- */

static int choose_property(struct expected *x)
{
    const struct tune_question *q = x->s->q;
    const char *names[2];
    if (q->per || q->aggregate)
        return tune_error_usage("best `predicted` takes no `%s`", q->per ? "per" : "aggregate");
    int count = tune_subject_numbers(x->s, q->maximize ? q->maximize : q->minimize, names, 2);
    TRY(count);
    if (count != 1 || (q->maximize && q->minimize))
        return tune_error_usage("best `predicted` takes one property: `maximize` PROPERTY or `minimize` PROPERTY");
    x->property = names[0];
    x->maximize = q->maximize;
    return 0;
}

static int find_best(struct expected *x, bool command)
{
    const struct tune_question *q = x->s->q;
    TRY(tune_subject_space(x->s));
    TRY(choose_property(x));
    x->most = command ? 1 : q->most > 0 ? q->most : MOST_SHOWN;
    TAKE(x->best, x->s->a, x->most);
    TAKE(x->models, x->s->a, x->s->space->reference_count);
    TRY(tune_entities_list(x->s, q->entities > 0 ? q->entities : MOST_ENTITIES, &x->entities));
    TRY(tune_models_read(x->s, x->property, false, x->models));
    for (int p = 0; p < x->s->space->reference_count; p++) {
        x->uncertain = x->uncertain || (x->models[p] && tune_predictor_invalid(x->models[p]) > 0);
        TRY(x->models[p] ? consider_all(x, p) : 0);
    }
    if (x->count == 0 && x->refused > 0)
        return tune_error_set("nothing is known of the entities that were not measured: %s; " BEYOND, x->first);
    return 0;
}

static int add_all(struct expected *x)
{
    add_columns(x);
    for (int i = 0; i < x->count; i++)
        TRY(add_row(x, i));
    if (x->count > 0)
        add_notes(x);
    x->s->a->none = tune_answer_copy(x->s->a, x->entities.count == 0 ? "no entity of the space meets `where`" : "each entity that was looked at is measured");
    return x->s->a->none ? 0 : -1;
}

static int add_command(struct expected *x)
{
    tune_answer_column(x->s->a, "command");
    return x->count > 0 ? tune_subject_command(x->s, x->best->binding, x->best->entity)
           : x->entities.count == 0 ? tune_error_set("no entity of the space meets `where`, so there is no command to print")
                                    : tune_error_set("each entity that was looked at is measured, so there is no command to print");
}

int tune_best_expected(struct tune_subject *s, bool command)
{
    struct expected x = {.s = s};
    int code = find_best(&x, command);
    if (code == 0)
        code = command ? add_command(&x) : add_all(&x);
    tune_models_free(s, x.models);
    tune_entities_free(&x.entities);
    return code;
}
