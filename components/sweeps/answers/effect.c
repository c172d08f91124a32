/* effect.c - the effect of a dimension, all else equal. Two entities are a pair if they differ only
 * in this dimension. The ratios of all pairs give the size of the effect and its significance. A
 * model of the results gives the share of the variance that each dimension explains. It needs no
 * pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweeps/answers/entity_figures.h"
#include "sweeps/answers/shares.h"

enum { MOST_VALUES = 1000 };

struct effect {
    struct points p;
    int dimension;
    struct point **order;  /* [p.count] sorted: points that differ only in the dimension are
                            * adjacent */
    double *ratios;        /* [p.count] ratios of the current value */
    struct tune_indices **shares; /* [property_count][reference_count] each [space->count]; NULL: unknown */
};

/* Compare two points by everything except the dimension. */
static int compare_rest(const struct effect *e, const struct point *a, const struct point *b)
{
    if (a->property != b->property || a->binding != b->binding)
        return a->property != b->property ? a->property - b->property : a->binding - b->binding;
    for (int d = 0; d < e->p.s->space->count; d++)
        if (d != e->dimension && a->at[d] != b->at[d])
            return a->at[d] - b->at[d];
    return 0;
}

static int by_rest(const void *a, const void *b, void *context)
{
    const struct effect *e = context;
    const struct point *x = *(struct point *const *)a, *y = *(struct point *const *)b;
    int order = compare_rest(e, x, y);
    return order ? order : x->at[e->dimension] - y->at[e->dimension];
}

/* Collect the ratios of value `to` to value `from`. Returns their number. *left counts pairs
 * without a ratio. */
static int collect(struct effect *e, int property, int binding, int from, int to, int *left)
{
    int count = 0;
    const struct point *first = NULL, *base = NULL;
    *left = 0;
    for (int64_t i = 0; i < e->p.count; i++) {
        const struct point *at = e->order[i];
        if (at->property != property || at->binding != binding)
            continue;
        if (!first || compare_rest(e, first, at)) {
            first = at;
            base = NULL;
        }
        base = at->at[e->dimension] == from ? at : base;
        if (!base || at->at[e->dimension] != to)
            continue;
        if (base->value > 0 && at->value > 0)
            e->ratios[count++] = at->value / base->value;
        else
            ++*left;
    }
    return count;
}

/* The p-value of a paired t test on the logarithms of the ratios. Null hypothesis: they are 1 on
 * average. NaN: fewer than two ratios. */
static double probability(const double *ratios, int count, double *middle)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < count; i++)
        mean += log(ratios[i]) / count;
    for (int i = 0; i < count; i++)
        squares += (log(ratios[i]) - mean) * (log(ratios[i]) - mean);
    *middle = exp(mean);
    double error = sqrt(squares / (count - 1) / count);
    return count < 2 ? NAN : error > 0 ? tune_student_tail(mean / error, count - 1) : mean == 0 ? 1 : 0;
}

/* The shares of the dimension; NULL: unknown. */
static const struct tune_indices *shares_of(const struct effect *e, int property, int binding)
{
    const struct tune_indices *all = e->shares[property * e->p.s->space->reference_count + binding];
    return all && !isnan(all[e->dimension].total.value) ? &all[e->dimension] : NULL;
}

static int end_row(struct effect *e, int property, int binding)
{
    struct tune_answer_table *a = e->p.s->a;
    const struct tune_indices *shares = shares_of(e, property, binding);
    const struct tune_index_share *both[] = {shares ? &shares->total : NULL, shares ? &shares->first : NULL};
    for (int i = 0; i < 2; i++) {
        tune_answer_figure(a, both[i] ? both[i]->value : NAN, false);
        tune_answer_figure(a, both[i] ? both[i]->low : NAN, false);
        tune_answer_figure(a, both[i] ? both[i]->high : NAN, false);
    }
    return tune_answer_end_row(a);
}

/* Add a row for a dimension without pairs, if the model tells its shares. */
static int add_shares(struct effect *e, int property, int binding)
{
    struct tune_subject *s = e->p.s;
    if (!shares_of(e, property, binding))
        return 0;
    tune_answer_text(s->a, s->space->names[e->dimension]);
    tune_answer_text(s->a, NULL);
    tune_answer_text(s->a, NULL);
    tune_answer_text(s->a, e->p.properties[property]);
    if (s->space->reference_count > 1)
        tune_answer_text(s->a, s->bindings[binding].identifier);
    for (int i = 0; i < 3; i++)
        tune_answer_figure(s->a, NAN, false);
    tune_answer_whole(s->a, 0);
    tune_answer_figure(s->a, NAN, false);
    tune_answer_text(s->a, NULL);
    return end_row(e, property, binding);
}

/* Add a row for value `to`, if it has pairs. Returns their number, or -1. */
static int add_value(struct effect *e, int property, int binding, int from, int to, int *left)
{
    struct tune_subject *s = e->p.s;
    const struct levels *l = &e->p.levels[e->dimension];
    int lost, count = collect(e, property, binding, from, to, &lost);
    double middle, p;
    *left += lost;
    if (count == 0)
        return 0;
    struct tune_spread spread = tune_spread_of(e->ratios, count);
    p = probability(e->ratios, count, &middle);
    tune_answer_text(s->a, s->space->names[e->dimension]);
    tune_answer_space_value(s->a, &l->values[from]);
    tune_answer_space_value(s->a, &l->values[to]);
    tune_answer_text(s->a, e->p.properties[property]);
    if (s->space->reference_count > 1)
        tune_answer_text(s->a, s->bindings[binding].identifier);
    tune_answer_figure(s->a, middle, false);
    tune_answer_figure(s->a, spread.low, false);
    tune_answer_figure(s->a, spread.high, false);
    tune_answer_whole(s->a, count);
    tune_answer_figure(s->a, p, false);
    tune_answer_text(s->a, isnan(p) ? NULL : p < 0.05 ? "yes" : "no");
    TRY(end_row(e, property, binding));
    return count;
}

/* Compare each value of the dimension with the first value that it has pairs with. Returns the
 * number of pairs, or -1. */
static int64_t add_values(struct effect *e, int property, int binding, int *left)
{
    int64_t pairs = 0;
    for (int to = 1; to < e->p.levels[e->dimension].count; to++) {
        int count = 0;
        for (int from = 0; from < to && count == 0; from++)
            TRY(count = add_value(e, property, binding, from, to, left));
        pairs += count;
    }
    return pairs;
}

/* Add a note if the dimension has few pairs and no shares, because the result is then weak. */
static void report_pairs(struct effect *e, int64_t pairs, bool shared)
{
    struct tune_subject *s = e->p.s;
    const char *name = s->space->names[e->dimension];
    int64_t complete = e->p.count - e->p.count / e->p.levels[e->dimension].count;
    if (shared)
        return;
    if (pairs == 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "the effect of %s is unknown: no two entities "
                                                      "with a result differ in this dimension alone; "
                                                      "measure more of the grid", name);
    else if (2 * pairs < complete)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "the effect of %s comes from %lld "
                                                      "pair%s only; a full grid of these %lld results "
                                                      "would have %lld pairs", name,
                             (long long)pairs, pairs == 1 ? "" : "s", (long long)e->p.count, (long long)complete);
}

static int add_dimension(struct effect *e, int dimension, int *left)
{
    struct tune_subject *s = e->p.s;
    int64_t pairs = 0;
    bool shared = true;
    if (e->p.levels[dimension].count > MOST_VALUES) {
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s has more than %d values and is left out", s->space->names[dimension], MOST_VALUES);
        return 0;
    }
    e->dimension = dimension;
    qsort_r(e->order, (size_t)e->p.count, sizeof *e->order, by_rest, e);
    for (int property = 0; property < e->p.property_count; property++)
        for (int binding = 0; binding < s->space->reference_count; binding++) {
            int64_t more = add_values(e, property, binding, left);
            TRY(more);
            pairs += more;
            shared = shared && (shares_of(e, property, binding) || !tune_subject_target(s, binding, e->p.properties[property]));
            TRY(more == 0 ? add_shares(e, property, binding) : 0);
        }
    report_pairs(e, pairs, shared);
    return 0;
}

static void add_columns(struct tune_subject *s)
{
    static const char *const before[] = {"dimension", "from", "to", "property"};
    static const char *const after[] = {"ratio", "lowest", "highest", "pairs", "p", "differs"};
    static const char *const shares[] = {"total", "total_low", "total_high", "first_order", "first_order_low", "first_order_high"};
    tune_answer_columns(s->a, before, 4);
    if (s->space->reference_count > 1)
        tune_answer_column(s->a, "experiment");
    for (int i = 0; i < 6; i++) {
        struct tune_answer_column *c = tune_answer_column(s->a, after[i]);
        c->measured = i < 4;
        c->digits = i == 4 ? 2 : 4;
    }
    for (int i = 0; i < 6; i++) {
        struct tune_answer_column *c = tune_answer_column(s->a, shares[i]);
        c->measured = true;
        c->hidden = i % 3 > 0;
        c->digits = 2;
    }
}

static int add_all(struct effect *e, int dimension)
{
    struct tune_subject *s = e->p.s;
    int left = 0;
    TAKE(e->order, s->a, e->p.count);
    TAKE(e->ratios, s->a, e->p.count);
    for (int64_t i = 0; i < e->p.count; i++)
        e->order[i] = &e->p.all[i];
    if (dimension >= 0 && e->p.levels[dimension].count < 2)
        return tune_error_set("%s has only one value in these results, so there is nothing to "
                              "compare", s->space->names[dimension]);
    TAKE(e->shares, s->a, e->p.property_count * s->space->reference_count);
    for (int i = 0; i < e->p.property_count; i++)
        TRY(tune_shares_find(s, e->p.properties[i], e->shares + (size_t)i * (size_t)s->space->reference_count));
    add_columns(s);
    for (int i = 0; i < e->p.varying_count; i++)
        if (dimension < 0 || e->p.varying[i] == dimension)
            TRY(add_dimension(e, e->p.varying[i], &left));
    if (s->a->rows == 0 && left > 0)
        return tune_error_set("%d pair%s in one dimension alone, but a value of 0 or below has no ratio, so there is nothing to compare", left,
                              left == 1 ? " differs" : "s differ");
    if (s->a->rows == 0)
        return tune_error_set("the effect of a dimension is unknown: no two entities with a valid "
                              "result differ in one dimension alone");
    tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "ratio: the geometric mean over the pairs of entities "
                                                "that differ in this dimension alone; lowest, highest: "
                                                "the extreme ratios of these pairs");
    tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "differs: yes if p is below 5 %% (paired t test of the "
                                                "logarithms)");
    if (left > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%d pair%s left out: a value of 0 or below has no ratio", left, left == 1 ? " is" : "s are");
    return 0;
}

static int effect(struct tune_subject *s)
{
    struct effect e = {0};
    if (!!s->q->properties + !!s->q->maximize + !!s->q->minimize > 1)
        return tune_error_usage("give effect only one of `property`, `maximize` and `minimize`; "
                                "for several properties: `property`, with commas");
    int code = tune_entity_figures_read(&e.p, s, false), dimension = code == 0 && s->q->x ? tune_subject_dimension(s, s->q->x) : -1;
    if (code == 0)
        code = s->q->x && dimension < 0 ? -1 : add_all(&e, dimension);
    tune_entity_figures_free(&e.p);
    return code;
}

struct tune_answer_table *tune_ask_effect(const struct tune_question *q)
{
    return tune_subject_answer(q, "effect", effect);
}
