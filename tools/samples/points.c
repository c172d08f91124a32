/* points.c - read the figures of entities for plot. */
#include "core/nearest.h"
#include "points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int points_dimension(const char *name)
{
    int d = tune_name_find(samples.space->names, samples.space->count, name);
    return d >= 0 ? d : samples_no_such("dimension", name, samples.space->names, samples.space->count);
}

static int check_properties(struct points *p)
{
    const char *asked = my.properties ? my.properties : my.maximize ? my.maximize : my.minimize;
    TRY(p->property_count = samples_split(asked, p->properties, 63));
    if (p->property_count == 0)
        return tune_error_usage("%s what? --property PROPERTY%s", my.command,
                                !strcmp(my.command, "plot") ? " (or --maximize or --minimize PROPERTY, which marks the best)" : "");
    TRY(samples_check_properties(p->properties, p->property_count));
    p->x = -1;
    if (strcmp(my.command, "plot") || !my.x || tune_name_find(samples.space->names, samples.space->count, my.x) >= 0 ||
        samples_check_properties(&my.x, 1) < 0) {
        tune_error_clear(); /* then it is said that there is no such dimension */
        return 0;
    }
    p->x = p->property_count;
    p->properties[p->x] = my.x;
    return 0;
}

/* ---- levels ---- */

/* Append a value without a comparison; items of lists are copied. Returns its number. */
static int add_level(struct levels *l, const struct tune_value *v)
{
    samples_fit(&l->values, l->count, sizeof *l->values);
    l->values[l->count] = v->type == TUNE_VALUE_LIST ? *tune_values_copy(samples_take(1, tune_values_size(v, 1)), v, 1) : *v;
    return l->count++;
}

int points_compare(const struct tune_domain *domain, const struct tune_value *x, const struct tune_value *y)
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
    return points_compare(domain, *(const struct tune_value *const *)a, *(const struct tune_value *const *)b);
}

static void spell_levels(struct levels *l)
{
    l->texts = samples_take(l->count, sizeof *l->texts);
    l->numbers = samples_take(l->count, sizeof *l->numbers);
    l->numeric = true;
    for (int i = 0; i < l->count; i++) {
        size_t size = (size_t)tune_value_id(&l->values[i], NULL, 0) + 1;
        tune_value_id(&l->values[i], l->texts[i] = samples_take(1, size), size);
        l->numeric = l->numeric && l->values[i].type != TUNE_VALUE_BOOL && tune_value_number(&l->values[i], &l->numbers[i]) &&
                     isfinite(l->numbers[i]);
    }
    for (int i = 0; i < l->count && !l->numeric; i++)
        l->numbers[i] = i;
}

/* Sort values and remove duplicates; place[i] is the new index of value i. */
static void sort_levels(struct levels *l, const struct tune_domain *domain, int *place)
{
    struct tune_value **order = samples_take(l->count, sizeof *order), *sorted = samples_take(l->count, sizeof *sorted);
    int n = 0;
    for (int i = 0; i < l->count; i++)
        order[i] = &l->values[i];
    qsort_r(order, (size_t)l->count, sizeof *order, compare_levels, (void *)(uintptr_t)domain);
    for (int i = 0; i < l->count; i++) {
        if (n == 0 || !tune_value_equal(&sorted[n - 1], order[i]))
            sorted[n++] = *order[i];
        place[order[i] - l->values] = n - 1;
    }
    free(l->values);
    l->values = sorted;
    l->count = n;
    spell_levels(l);
}

static void order_levels(struct points *p)
{
    for (int d = 0; d < samples.space->count; d++) {
        struct levels *l = &p->levels[d];
        int *place = samples_take(l->count, sizeof *place);
        sort_levels(l, &samples.space->dimensions[d].domain, place);
        for (int64_t i = 0; i < p->count; i++)
            p->all[i].at[d] = place[p->all[i].at[d]];
        if (l->count > 1)
            p->varying[p->varying_count++] = d;
    }
}

/* ---- reading ---- */

static void add_point(struct points *p, int property, const struct tune_view_group *g, double *values, int count, double x)
{
    samples_fit(&p->all, p->count, sizeof *p->all);
    struct point *at = &p->all[p->count++];
    *at = (struct point){property, g->protocol, tune_spread_of(values, count), x, samples_take(samples.space->count, sizeof(int))};
    p->repeated = p->repeated || count > 1;
    for (int d = 0; d < samples.space->count; d++)
        at->at[d] = add_level(&p->levels[d], &g->entity[d]);
}

/* Read the group's figures of each property. */
static int read_group(struct points *p, struct tune_view *v, const struct tune_view_group *g)
{
    struct samples_figures *f = &p->figures;
    double x = NAN;
    TRY(samples_read_figures(f, v, g->results, true));
    if (p->x >= 0 && f->count[p->x] > 0) {
        struct tune_spread spread = tune_spread_of(samples_figures_of(f, p->x), f->count[p->x]);
        x = samples_middle(&spread);
    }
    for (int i = 0; i < p->property_count; i++)
        if (f->count[i] > 0 && (p->x < 0 || !isnan(x)))
            add_point(p, i, g, samples_figures_of(f, i), f->count[i], x);
        else
            p->without_x += f->count[i] > 0;
    return 0;
}

static int read_points(struct points *p, struct tune_view *v)
{
    struct tune_view_group g;
    struct tune_view_origins origins;
    int more;
    while ((more = tune_view_next(v, &g)) == 1)
        TRY(read_group(p, v, &g));
    TRY(more);
    TRY(tune_view_mixed(v, &origins));
    p->host_classes = origins.host_classes;
    p->builds = origins.builds;
    if (p->count == 0) {
        TRY(samples_say_matching(v));
        return tune_error_set("there is nothing to %s: no valid result has %s", strcmp(my.command, "plot") ? "compare" : "draw", p->properties[0]);
    }
    order_levels(p);
    return samples_say_mixed(v);
}

int points_read(struct points *p)
{
    *p = (struct points){0};
    TRY(check_properties(p));
    if (!strcmp(my.include, "missing") || !strncmp(my.include, "un", 2))
        return tune_error_usage("--include %s: nothing is known of these", my.include);
    p->levels = samples_take(samples.space->count, sizeof *p->levels);
    p->varying = samples_take(samples.space->count, sizeof *p->varying);
    p->figures.columns = p->property_count + (p->x >= 0);
    struct tune_view *v = samples_open_view(p->properties, p->figures.columns, SAMPLES_VALID);
    int code = v ? read_points(p, v) : -1;
    /* texts of levels belong to the space, or to the view if the space does not list them */
    for (int d = 0; d < samples.space->count && code == 0; d++)
        for (int i = 0; i < p->levels[d].count; i++)
            if (p->levels[d].values[i].type == TUNE_VALUE_TEXT)
                p->levels[d].values[i].text = p->levels[d].texts[i];
    tune_view_free(v);
    return code;
}

double points_value(const struct point *p)
{
    return samples_middle(&p->spread);
}

const char *points_unit(const struct points *p, const struct point *at)
{
    const struct tune_target *t = samples_target(at->protocol, p->properties[at->property]);
    return t ? t->unit : "";
}
