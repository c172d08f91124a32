/* points.c - read the figures of entities for plot. */
#include "core/array.h"
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

static const struct tune_target *target_of(int protocol, const char *name)
{
    const struct tune_experiment *e = samples.protocols[protocol].experiment;
    for (int i = 0; i < e->target_count; i++)
        if (!strcmp(e->targets[i].name, name))
            return &e->targets[i];
    return samples_derived(name);
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

/* Append a value without a comparison; items of lists are copied. Returns its number, or -1. */
static int add_level(struct levels *l, const struct tune_value *v)
{
    if (!tune_array_fit(&l->values, (size_t)l->count, sizeof *l->values))
        return samples_no_memory();
    l->values[l->count] = *v;
    if (v->type == TUNE_VALUE_LIST) {
        struct tune_value *items = malloc(((size_t)v->list.count + 1) * sizeof *items);
        if (!items)
            return samples_no_memory();
        memcpy(items, v->list.items, (size_t)v->list.count * sizeof *items);
        l->values[l->count].list.items = items;
    }
    return l->count++;
}

static void drop_level(struct tune_value *v)
{
    if (v->type == TUNE_VALUE_LIST)
        free((void *)(uintptr_t)v->list.items);
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

static int spell_levels(struct levels *l)
{
    l->texts = calloc((size_t)l->count + 1, sizeof *l->texts);
    l->numbers = calloc((size_t)l->count + 1, sizeof *l->numbers);
    if (!l->texts || !l->numbers)
        return samples_no_memory();
    l->numeric = true;
    for (int i = 0; i < l->count; i++) {
        int length = tune_value_id(&l->values[i], NULL, 0);
        if (!(l->texts[i] = malloc((size_t)length + 1)))
            return samples_no_memory();
        tune_value_id(&l->values[i], l->texts[i], (size_t)length + 1);
        l->numeric = l->numeric && l->values[i].type != TUNE_VALUE_BOOL && tune_value_number(&l->values[i], &l->numbers[i]) &&
                     isfinite(l->numbers[i]);
    }
    for (int i = 0; i < l->count && !l->numeric; i++)
        l->numbers[i] = i;
    return 0;
}

/* Sort values and remove duplicates; place[i] is the new index of value i. */
static int sort_levels(struct levels *l, const struct tune_domain *domain, int *place)
{
    struct tune_value **order = calloc((size_t)l->count + 1, sizeof *order), *sorted = calloc((size_t)l->count + 1, sizeof *sorted);
    int n = 0, code = order && sorted ? 0 : samples_no_memory();
    for (int i = 0; i < l->count && code == 0; i++)
        order[i] = &l->values[i];
    if (code == 0 && l->count > 0)
        qsort_r(order, (size_t)l->count, sizeof *order, compare_levels, (void *)(uintptr_t)domain);
    for (int i = 0; i < l->count && code == 0; i++) {
        if (n > 0 && tune_value_equal(&sorted[n - 1], order[i]))
            drop_level(order[i]);
        else
            sorted[n++] = *order[i];
        place[order[i] - l->values] = n - 1;
    }
    free(order);
    if (code < 0) {
        free(sorted);
        return -1;
    }
    free(l->values);
    l->values = sorted;
    l->count = n;
    return spell_levels(l);
}

static int order_levels(struct points *p)
{
    for (int d = 0; d < samples.space->count; d++) {
        struct levels *l = &p->levels[d];
        int *place = calloc((size_t)l->count + 1, sizeof *place);
        int code = place ? sort_levels(l, &samples.space->dimensions[d].domain, place) : samples_no_memory();
        for (int64_t i = 0; i < p->count && code == 0; i++)
            p->all[i].at[d] = place[p->all[i].at[d]];
        free(place);
        TRY(code);
        if (l->count > 1)
            p->varying[p->varying_count++] = d;
    }
    return 0;
}

/* ---- reading ---- */

static int add_point(struct points *p, int property, const struct tune_view_group *g, double *values, int count, double x)
{
    if (!tune_array_fit(&p->all, (size_t)p->count, sizeof *p->all))
        return samples_no_memory();
    struct point *at = &p->all[p->count];
    *at = (struct point){property, g->protocol, tune_spread_of(values, count), x, malloc((size_t)samples.space->count * sizeof(int))};
    if (!at->at)
        return samples_no_memory();
    p->count++;
    p->repeated = p->repeated || count > 1;
    for (int d = 0; d < samples.space->count; d++)
        TRY(at->at[d] = add_level(&p->levels[d], &g->entity[d]));
    return 0;
}

/* Read the group's figures of each property. */
static int read_group(struct points *p, struct tune_view *v, const struct tune_view_group *g)
{
    int columns = p->property_count + (p->x >= 0);
    double *values = malloc(((size_t)g->results * (size_t)columns + 1) * sizeof *values), x = NAN;
    int counts[64] = {0}, code = values ? 0 : samples_no_memory();
    for (int k = 0; k < g->results && code == 0; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        code = cells ? 0 : -1;
        for (int i = 0; i < columns && code == 0; i++)
            if (!cells[i].absent && !cells[i].text && isfinite(cells[i].number))
                values[(size_t)i * (size_t)g->results + (size_t)counts[i]++] = cells[i].number;
    }
    if (code == 0 && p->x >= 0 && counts[p->x] > 0) {
        struct tune_spread spread = tune_spread_of(values + (size_t)p->x * (size_t)g->results, counts[p->x]);
        x = samples_middle(&spread);
    }
    for (int i = 0; i < p->property_count && code == 0; i++)
        if (counts[i] > 0 && (p->x < 0 || !isnan(x)))
            code = add_point(p, i, g, values + (size_t)i * (size_t)g->results, counts[i], x);
        else
            p->without_x += counts[i] > 0;
    free(values);
    return code;
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
    TRY(samples_say_mixed(v));
    return order_levels(p);
}

int points_read(struct points *p)
{
    *p = (struct points){0};
    TRY(check_properties(p));
    if (!strcmp(my.include, "missing") || !strncmp(my.include, "un", 2))
        return tune_error_usage("--include %s: nothing is known of these", my.include);
    p->levels = calloc((size_t)samples.space->count + 1, sizeof *p->levels);
    p->varying = calloc((size_t)samples.space->count + 1, sizeof *p->varying);
    if (!p->levels || !p->varying)
        return samples_no_memory();
    struct tune_view *v = samples_open_view(p->properties, p->property_count + (p->x >= 0), SAMPLES_VALID);
    int code = v ? read_points(p, v) : -1;
    /* texts of levels belong to the space, or to the view if the space does not list them */
    for (int d = 0; d < samples.space->count && code == 0; d++)
        for (int i = 0; i < p->levels[d].count; i++)
            if (p->levels[d].values[i].type == TUNE_VALUE_TEXT)
                p->levels[d].values[i].text = p->levels[d].texts[i];
    tune_view_free(v);
    return code;
}

void points_free(struct points *p)
{
    for (int d = 0; p->levels && d < samples.space->count; d++) {
        struct levels *l = &p->levels[d];
        for (int i = 0; i < l->count; i++) {
            drop_level(&l->values[i]);
            if (l->texts)
                free(l->texts[i]);
        }
        free(l->values);
        free(l->texts);
        free(l->numbers);
    }
    for (int64_t i = 0; i < p->count; i++)
        free(p->all[i].at);
    free(p->all);
    free(p->levels);
    free(p->varying);
}

double points_value(const struct point *p)
{
    return samples_middle(&p->spread);
}

const char *points_unit(const struct points *p, const struct point *at)
{
    const struct tune_target *t = target_of(at->protocol, p->properties[at->property]);
    return t ? t->unit : "";
}
