/* model.c - fit models to the results of a space, and list entities to ask them about. */
#include "sweeps/answers/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweeps/discovery/where.h"
#include "sweeps/spaces/order.h"
#include "sweeps/spaces/sobol.h"

enum { MOST_TRIED = 1000000 }; /* entities looked at for those that meet `where` */

/* ---- models ---- */

struct model_reader {
    struct tune_subject *s;
    struct tune_predictor **models;
    double *values;       /* of the current group */
    int64_t infinite, strays;
};

/* Add the group to the model of its experiment. */
static int add_group(struct model_reader *r, struct tune_view *v, const struct tune_view_group *g)
{
    struct tune_predictor **model = &r->models[g->binding];
    int count = 0;
    free(r->values);
    if (!(r->values = malloc(((size_t)g->results + 1) * sizeof *r->values)))
        return tune_answer_no_memory();
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        if (strcmp(cells[1].text, "valid") || cells[0].absent || cells[0].text || isnan(cells[0].number))
            continue;
        r->infinite += isinf(cells[0].number);
        if (isfinite(cells[0].number))
            r->values[count++] = cells[0].number;
    }
    if (!*model && !(*model = tune_predictor_new(r->s->space)))
        return -1;
    int added = tune_predictor_add(*model, g->entity, r->values, count);
    TRY(added);
    r->strays += !added;
    return 0;
}

static int read_results(struct model_reader *r, const char *property, bool selected)
{
    const char *columns[] = {property, "status"};
    struct tune_question question = *r->s->q;
    const struct tune_question *asked = r->s->q;
    struct tune_view_group g;
    int more = -1;
    question.build = question.build ? question.build : "last"; /* else tried entities of all builds would count */
    question.where = selected ? question.where : NULL;
    r->s->q = &question;
    struct tune_view *v = tune_subject_view(r->s, columns, 2, TUNE_ALL_RESULTS);
    while (v && (more = tune_view_next(v, &g)) == 1)
        if (tune_subject_target(r->s, g.binding, property) && (more = add_group(r, v, &g)) < 0)
            break;
    if (more == 0 && v)
        more = tune_subject_add_notes(r->s, v);
    tune_view_free(v);
    r->s->q = asked;
    return more;
}

/* Fit each model. Those that cannot be are left out, and why is noted. */
static int fit_models(struct model_reader *r, const char *property, int noted)
{
    struct tune_subject *s = r->s;
    char first[1024] = "";
    int fitted = 0;
    for (int p = 0; p < s->space->reference_count; p++) {
        if (!r->models[p])
            continue;
        if (tune_predictor_fit(r->models[p], property) == 0) {
            fitted++;
            continue;
        }
        if (!*first)
            snprintf(first, sizeof first, "%s", tune_error_message());
        else
            tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s: %s", s->bindings[p].identifier, tune_error_message());
        tune_error_clear();
        tune_predictor_free(r->models[p]);
        r->models[p] = NULL;
    }
    if (fitted > 0 && *first)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "an experiment is left out: %s", first);
    if (fitted > 0)
        return 0;
    if (!*first)
        snprintf(first, sizeof first, "nothing is known of %s: no entity of this space has a valid result%s%s", property,
                 s->a->note_count > noted ? "; " : "", s->a->note_count > noted ? s->a->notes[s->a->note_count - 1].text : "");
    return tune_error_set("%s", first);
}

int tune_models_read(struct tune_subject *s, const char *property, bool selected, struct tune_predictor **models)
{
    struct model_reader r = {.s = s, .models = models};
    int noted = s->a->note_count, code = read_results(&r, property, selected);
    free(r.values);
    TRY(code);
    if (r.infinite > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld infinite value%s left out", (long long)r.infinite, r.infinite == 1 ? " is" : "s are");
    if (r.strays > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld measured entit%s of this space, and left out", (long long)r.strays,
                             r.strays == 1 ? "y is none" : "ies are none");
    return fit_models(&r, property, noted);
}

void tune_models_free(struct tune_subject *s, struct tune_predictor **models)
{
    for (int p = 0; models && s->space && p < s->space->reference_count; p++)
        tune_predictor_free(models[p]);
}

void tune_models_note(struct tune_subject *s, struct tune_predictor *const *models, const char *property)
{
    for (int p = 0; p < s->space->reference_count; p++) {
        int results = 0, count;
        if (!models[p])
            continue;
        for (int i = 0; i < tune_predictor_count(models[p]); i++, results += count)
            tune_predictor_measured(models[p], i, &count);
        int used = tune_surrogate_rows(tune_predictor_model(models[p])), invalid = tune_predictor_invalid(models[p]);
        char left[64] = "", without[80] = "";
        if (used < results)
            snprintf(left, sizeof left, ", %d of them drawn by chance", used);
        if (invalid > 0)
            snprintf(without, sizeof without, "; %d more were tried, but have no valid result", invalid);
        tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "model of %s%s%s%s: from %d results of %d entities%s%s",
                             tune_predictor_logarithm(models[p]) ? "the logarithm of " : "", property,
                             s->space->reference_count > 1 ? " under " : "", s->space->reference_count > 1 ? s->bindings[p].identifier : "",
                             results, tune_predictor_count(models[p]), left, without);
    }
}

/* ---- entities ---- */

int tune_entities_add(struct tune_subject *s, struct tune_entities *e, const struct tune_value *values)
{
    int n = s->space->count;
    void *copy = tune_answer_take(s->a, 1, tune_values_size(values, n) + 1);
    TRY(copy ? 0 : -1);
    FIT(e->at, e->count);
    e->at[e->count++] = tune_values_copy(copy, values, n);
    return 0;
}

void tune_entities_free(struct tune_entities *e)
{
    free(e->at);
    *e = (struct tune_entities){0};
}

/* True if an entity meets the condition under any experiment. */
static int meets(const struct tune_subject *s, const struct tune_where *where, const struct tune_value *entity)
{
    int found = 0;
    for (int p = 0; p < s->space->reference_count && found == 0; p++)
        found = tune_where_meets(where, p, entity);
    return found;
}

/* Add up to `most` + 1 entities in an order. */
static int add_in_order(struct tune_subject *s, const struct tune_order_options *o, const struct tune_where *where, int most,
                        struct tune_entities *e)
{
    struct tune_order *order = tune_order_new(s->space, o);
    const struct tune_value *entity;
    int more = order ? 1 : -1;
    while (more > 0 && e->count < most && (more = tune_order_next(order, &entity)) == 1) {
        int wanted = meets(s, where, entity);
        more = wanted < 0 || (wanted && tune_entities_add(s, e, entity) < 0) ? -1 : 1;
    }
    tune_order_free(order);
    return more < 0 ? -1 : 0;
}

static int list_where(struct tune_subject *s, const struct tune_where *where, int most, struct tune_entities *e)
{
    const struct tune_space *space = s->space;
    struct tune_order_options o = {.mode = TUNE_ORDER_SEQUENTIAL, .limit = -1};
    bool countable = space->size > 0 && space->size <= MOST_TRIED;
    int varying = 0;
    if (countable) {
        TRY(add_in_order(s, &o, where, most + 1, e));
        if (e->count <= most)
            return 0;
        tune_entities_free(e);
    }
    for (int d = 0; d < space->count; d++)
        varying += tune_domain_size(&space->dimensions[d].domain) != 1;
    o.mode = varying <= TUNE_SOBOL_AXES ? TUNE_ORDER_SOBOL : TUNE_ORDER_RANDOM;
    o.limit = countable ? -1 : MOST_TRIED;
    TRY(add_in_order(s, &o, where, most, e));
    if (e->count == 0)
        return tune_error_set("none of %d entities of the space, chosen %s, meets `where`; others may", MOST_TRIED,
                              o.mode == TUNE_ORDER_SOBOL ? "evenly by a Sobol sequence" : "at random");
    tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "the space has %s entities%s: %d are looked at, chosen %s; `entities` changes how many",
                         space->size > 0 ? "more" : "countless", s->q->where ? " that meet `where`" : "", e->count,
                         o.mode == TUNE_ORDER_SOBOL ? "evenly by a Sobol sequence" : "at random");
    return 0;
}

int tune_entities_list(struct tune_subject *s, int most, struct tune_entities *e)
{
    struct tune_where *where = NULL;
    if (s->q->where && !(where = tune_where_new(s->q->where, s->space, s->bindings)))
        return -1;
    int code = list_where(s, where, most, e);
    tune_where_free(where);
    return code;
}

void tune_difference_text(const struct tune_space *space, const struct tune_value *entity, const struct tune_value *other, char *text,
                          size_t size)
{
    *text = 0;
    for (int d = 0; d < space->count; d++) {
        char value[80];
        if (tune_value_equal(&entity[d], &other[d]))
            continue;
        if (tune_value_id(&entity[d], value, sizeof value) >= (int)sizeof value)
            memcpy(value + sizeof value - 4, "...", 4);
        tune_append_item(text, size, "%s %s", space->names[d], value);
    }
}
