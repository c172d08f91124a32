/* effect.c - what a dimension does, all else equal. Two entities make a pair if they differ in this
 * dimension alone. The ratios of all pairs say how much a value changes, and how surely. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

enum { MOST_VALUES = 1000 };

static struct {
    struct points p;
    int dimension;
    struct point **order;  /* [p.count] sorted: points that differ in the dimension alone are neighbours */
    double *ratios;        /* [p.count] of the current value */
    bool began;
} effect;

/* Compare all but the dimension. */
static int compare_rest(const struct point *a, const struct point *b)
{
    if (a->property != b->property || a->protocol != b->protocol)
        return a->property != b->property ? a->property - b->property : a->protocol - b->protocol;
    for (int d = 0; d < samples.space->count; d++)
        if (d != effect.dimension && a->at[d] != b->at[d])
            return a->at[d] - b->at[d];
    return 0;
}

static int by_rest(const void *a, const void *b)
{
    const struct point *x = *(struct point *const *)a, *y = *(struct point *const *)b;
    int order = compare_rest(x, y);
    return order ? order : x->at[effect.dimension] - y->at[effect.dimension];
}

/* Collect the ratios of value `to` to the first value. Returns their number. *left: pairs without
 * a ratio. */
static int collect(int property, int protocol, int to, int *left)
{
    int count = 0;
    const struct point *first = NULL;
    *left = 0;
    for (int64_t i = 0; i < effect.p.count; i++) {
        const struct point *at = effect.order[i];
        if (at->property != property || at->protocol != protocol)
            continue;
        if (!first || compare_rest(first, at))
            first = at;
        if (first->at[effect.dimension] != 0 || at->at[effect.dimension] != to)
            continue;
        if (points_value(first) > 0 && points_value(at) > 0)
            effect.ratios[count++] = points_value(at) / points_value(first);
        else
            ++*left;
    }
    return count;
}

/* The probability of such ratios if they are 1 on average: a paired t test of their logarithms.
 * NaN: of fewer than two. */
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

static void begin(void)
{
    static const char *const before[] = {"dimension", "from", "to", "property"};
    static const char *const after[] = {"ratio", "lowest", "highest", "pairs", "p", "differs"};
    samples_columns(before, 4);
    if (samples.space->reference_count > 1)
        samples_column("experiment");
    for (int i = 0; i < 6; i++)
        samples_column(after[i])->measured = i < 4;
    samples_begin(false);
}

static int put_value(int property, int protocol, int to, int *left)
{
    const struct levels *l = &effect.p.levels[effect.dimension];
    int lost, count = collect(property, protocol, to, &lost);
    double middle, p;
    *left += lost;
    if (count == 0)
        return 0;
    if (!effect.began)
        begin();
    effect.began = true;
    struct tune_spread s = tune_spread_of(effect.ratios, count);
    p = probability(effect.ratios, count, &middle);
    samples_text(samples.space->names[effect.dimension]);
    samples_value(&l->values[0]);
    samples_value(&l->values[to]);
    samples_text(effect.p.properties[property]);
    if (samples.space->reference_count > 1)
        samples_text(samples.protocols[protocol].identifier);
    samples_number(middle, false, 4);
    samples_number(s.low, false, 4);
    samples_number(s.high, false, 4);
    samples_number(count, true, 6);
    samples_number(p, false, 2);
    samples_text(isnan(p) ? "" : p < 0.05 ? "yes" : "no");
    return samples_end_row();
}

static int put_dimension(int dimension, int *left)
{
    if (effect.p.levels[dimension].count > MOST_VALUES) {
        fprintf(stderr, "samples: %s has more than %d values and is left out\n", samples.space->names[dimension], MOST_VALUES);
        return 0;
    }
    effect.dimension = dimension;
    qsort(effect.order, (size_t)effect.p.count, sizeof *effect.order, by_rest);
    for (int property = 0; property < effect.p.property_count; property++)
        for (int protocol = 0; protocol < samples.space->reference_count; protocol++)
            for (int to = 1; to < effect.p.levels[dimension].count; to++)
                TRY(put_value(property, protocol, to, left));
    return 0;
}

static int put_all(int dimension)
{
    int left = 0;
    effect.order = samples_take(effect.p.count, sizeof *effect.order);
    effect.ratios = samples_take(effect.p.count, sizeof *effect.ratios);
    for (int64_t i = 0; i < effect.p.count; i++)
        effect.order[i] = &effect.p.all[i];
    if (dimension >= 0 && effect.p.levels[dimension].count < 2)
        return tune_error_set("%s has one value in these results, so there is nothing to compare", samples.space->names[dimension]);
    for (int i = 0; i < effect.p.varying_count; i++)
        if (dimension < 0 || effect.p.varying[i] == dimension)
            TRY(put_dimension(effect.p.varying[i], &left));
    if (!effect.began)
        return tune_error_set("no two entities with a valid result differ in one dimension alone");
    TRY(samples_end());
    if (samples_people())
        fprintf(samples.out, "# ratio: the geometric mean over pairs that differ in this dimension alone; lowest, highest: of them\n"
                             "# differs: p, by a paired t test of their logarithms, is below 5 %%\n");
    if (left > 0)
        fprintf(stderr, "samples: %d pairs are left out: a value of 0 or below has no ratio\n", left);
    return 0;
}

int samples_effect(void)
{
    TRY(samples_check_aggregate());
    TRY(samples_open_space(samples_word(0)));
    int dimension = my.x ? points_dimension(my.x) : -1;
    if (my.x && dimension < 0)
        return -1;
    TRY(points_read(&effect.p));
    return put_all(dimension);
}
