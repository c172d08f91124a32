/* entity_figures.c - read the figures of entities. */
#include "sweeps/answers/entity_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"

static int choose_properties(struct points *p, bool x)
{
    const struct tune_question *q = p->s->q;
    const char *asked = q->properties ? q->properties : q->maximize ? q->maximize : q->minimize;
    if (x && !q->properties && q->x && q->minimize && asked && !strcmp(asked, q->x))
        asked = q->minimize; /* if both are given, one is on the x axis */
    TRY(p->property_count = tune_subject_numbers(p->s, asked, p->properties, 63));
    if (p->property_count == 0)
        return tune_error_usage("%s needs a property: give `property` PROPERTY%s", p->s->question,
                                x ? " (or `maximize` or `minimize` PROPERTY, to mark the best "
                                    "value)" : "");
    p->x = -1;
    if (!x || !q->x || tune_name_find(p->s->space->names, p->s->space->count, q->x) >= 0)
        return 0;
    if (tune_subject_numbers(p->s, q->x, &p->properties[p->property_count], 1) < 0)
        return strstr(tune_error_message(), "is a text") ? -1 : tune_subject_dimension(p->s, q->x);
    p->x = p->property_count;
    return p->properties[p->x] ? 0 : tune_error_usage("`x` is empty; expected a dimension or a "
                                                      "property");
}

/* ---- levels ---- */

/* Append a copy of a value, even if it is a duplicate. Returns its index, or -1. */
static int add_level(struct points *p, struct levels *l, const struct tune_value *v)
{
    void *copy = tune_answer_take(p->s->a, 1, tune_values_size(v, 1));
    TRY(copy ? 0 : -1);
    FIT(l->values, l->count);
    l->values[l->count] = *tune_values_copy(copy, v, 1);
    return l->count++;
}

int tune_level_compare(const struct tune_domain *domain, const struct tune_value *x, const struct tune_value *y)
{
    tune_index i, k;
    double number;
    bool numbers = tune_value_number(x, &number) && tune_value_number(y, &number);
    if (!numbers && tune_domain_find(domain, x, &i) && tune_domain_find(domain, y, &k))
        return (i > k) - (i < k);
    return tune_value_compare(x, y);
}

static int compare_levels(const void *a, const void *b, void *domain)
{
    return tune_level_compare(domain, *(const struct tune_value *const *)a, *(const struct tune_value *const *)b);
}

/* Sort the values and remove duplicates. indexes[i] is the new index of value i. */
static int sort_levels(struct points *p, struct levels *l, const struct tune_domain *domain, int *indexes)
{
    struct tune_value **order, *sorted;
    int n = 0;
    TAKE(order, p->s->a, l->count);
    TAKE(sorted, p->s->a, l->count);
    for (int i = 0; i < l->count; i++)
        order[i] = &l->values[i];
    qsort_r(order, (size_t)l->count, sizeof *order, compare_levels, (void *)(uintptr_t)domain);
    for (int i = 0; i < l->count; i++) {
        if (n == 0 || !tune_value_equal(&sorted[n - 1], order[i]))
            sorted[n++] = *order[i];
        indexes[order[i] - l->values] = n - 1;
    }
    memcpy(l->values, sorted, (size_t)n * sizeof *sorted);
    l->count = n;
    return 0;
}

static int order_levels(struct points *p)
{
    for (int d = 0; d < p->s->space->count; d++) {
        struct levels *l = &p->levels[d];
        int *indexes;
        TAKE(indexes, p->s->a, l->count);
        TRY(sort_levels(p, l, &p->s->space->dimensions[d].domain, indexes));
        for (int64_t i = 0; i < p->count; i++)
            p->all[i].at[d] = indexes[p->all[i].at[d]];
        if (l->count > 1)
            p->varying[p->varying_count++] = d;
    }
    return 0;
}

/* ---- reading ---- */

static double middle(const struct points *p, const struct tune_spread *spread)
{
    return p->median ? spread->median : spread->mean;
}

static int add_point(struct points *p, int property, const struct tune_view_group *g, double x)
{
    struct tune_spread spread = tune_spread_of(tune_figures_of(&p->figures, property), p->figures.count[property]);
    FIT(p->all, p->count);
    struct point *at = &p->all[p->count];
    *at = (struct point){.property = property, .binding = g->binding, .spread = spread, .value = middle(p, &spread), .x = x};
    TAKE(at->at, p->s->a, p->s->space->count);
    p->count++;
    p->repeated = p->repeated || spread.count > 1;
    for (int d = 0; d < p->s->space->count; d++)
        TRY(at->at[d] = add_level(p, &p->levels[d], &g->entity[d]));
    return 0;
}

/* Read the figures of each property in the group. */
static int read_group(struct points *p, struct tune_view *v, const struct tune_view_group *g)
{
    struct tune_figures *f = &p->figures;
    double x = NAN;
    TRY(tune_figures_read(p->s, f, v, g->results, true));
    if (p->x >= 0 && f->count[p->x] > 0) {
        struct tune_spread spread = tune_spread_of(tune_figures_of(f, p->x), f->count[p->x]);
        x = middle(p, &spread);
    }
    for (int i = 0; i < p->property_count; i++)
        if (f->count[i] > 0 && (p->x < 0 || !isnan(x)))
            TRY(add_point(p, i, g, x));
        else
            p->without_x += f->count[i] > 0;
    return 0;
}

static int read_points(struct points *p, struct tune_view *v)
{
    struct tune_view_group g;
    int more;
    while ((more = tune_view_next(v, &g)) == 1)
        TRY(read_group(p, v, &g));
    TRY(more);
    if (p->count > 0)
        return order_levels(p);
    if (p->figures.infinite > 0)
        return tune_error_set("there is nothing to %s: all values of %s are infinite", !strcmp(p->s->question, "plot") ? "draw" : "compare", p->properties[0]);
    tune_subject_add_notes(p->s, v); /* the last note may give the reason */
    return tune_error_set("there is nothing to %s: no valid result has %s%s%s", !strcmp(p->s->question, "plot") ? "draw" : "compare",
                          p->properties[0], p->s->a->note_count > 0 ? "; " : "",
                          p->s->a->note_count > 0 ? p->s->a->notes[p->s->a->note_count - 1].text : "");
}

int tune_entity_figures_read(struct points *p, struct tune_subject *s, bool x)
{
    *p = (struct points){.s = s};
    int median = tune_subject_median(s);
    TRY(median);
    TRY(tune_subject_space(s));
    p->median = median;
    TRY(choose_properties(p, x));
    TAKE(p->levels, s->a, s->space->count);
    TAKE(p->varying, s->a, s->space->count);
    p->figures.columns = p->property_count + (p->x >= 0);
    struct tune_view *v = tune_subject_view(s, p->properties, p->figures.columns, TUNE_VALID_RESULTS);
    int code = v ? read_points(p, v) : -1;
    if (code == 0)
        code = tune_subject_add_notes(s, v);
    if (code == 0 && p->figures.infinite > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld infinite value%s left out", (long long)p->figures.infinite, p->figures.infinite == 1 ? " is" : "s are");
    tune_view_free(v);
    return code;
}

void tune_entity_figures_free(struct points *p)
{
    for (int d = 0; p->levels && d < p->s->space->count; d++)
        free(p->levels[d].values);
    free(p->all);
}
