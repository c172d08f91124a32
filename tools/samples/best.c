/* best.c - the entities with the best figure, by how much, how surely, and the distribution of the
 * others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "samples.h"

/* An entity with a value of the property, under one experiment. */
struct candidate {
    struct tune_spread spread;
    double value;
    int group;           /* index in the view's order */
};

/* One of the best entities, to be shown. */
struct winner {
    const struct candidate *candidate;
    int protocol;
    struct tune_value *entity; /* a copy, with its items after it */
};

static struct {
    struct tune_view *view;
    struct candidate *all;
    int count, skipped; /* number of groups without a value */
    const char *property;
    const struct tune_target *target; /* of the first experiment that has it */
    bool highest;
} best;

/* ---- candidates ---- */

static int add_candidate(double *values, int count, int group)
{
    if (!tune_array_fit(&best.all, (size_t)best.count, sizeof *best.all))
        return samples_no_memory();
    struct candidate *c = &best.all[best.count++];
    c->spread = tune_spread_of(values, count);
    c->value = samples_middle(&c->spread);
    c->group = group;
    return 0;
}

/* Read the property's values of the current group into *values [room]. Returns their number, or
 * -1. */
static int read_values(const struct tune_view_group *g, double **values, int *room)
{
    int n = 0;
    if (g->results > *room) {
        double *grown = realloc(*values, (size_t)g->results * sizeof *grown);
        if (!grown)
            return samples_no_memory();
        *values = grown;
        *room = g->results;
    }
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(best.view, k);
        TRY(cells ? 0 : -1);
        if (!cells[0].absent && !cells[0].text)
            (*values)[n++] = cells[0].number;
    }
    return n;
}

static int read_candidates(void)
{
    struct tune_view_group g;
    double *values = NULL;
    int more, room = 0, code = 0;
    for (int group = 0; code == 0 && (more = tune_view_next(best.view, &g)) == 1; group++) {
        int n = read_values(&g, &values, &room);
        best.skipped += n == 0;
        code = n > 0 ? add_candidate(values, n, group) : n;
    }
    free(values);
    return code < 0 || more < 0 ? -1 : 0;
}

static int best_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = (x->value > y->value) - (x->value < y->value);
    return order ? (best.highest ? -order : order) : (x->group > y->group) - (x->group < y->group);
}

/* ---- winners ---- */

/* Find the winners' entities in a second pass over the groups. */
static int name_winners(struct winner *winners, int count)
{
    struct tune_view_group g;
    int more = -1, *place = calloc((size_t)best.count + (size_t)best.skipped + 1, sizeof *place); /* index + 1 of the group's
                                                                                                   * winner */
    if (!place)
        return samples_no_memory();
    for (int i = 0; i < count; i++)
        place[winners[i].candidate->group] = i + 1;
    tune_view_rewind(best.view);
    for (int group = 0; (more = tune_view_next(best.view, &g)) == 1; group++) {
        struct winner *w = place[group] ? &winners[place[group] - 1] : NULL;
        if (!w)
            continue;
        w->protocol = g.protocol;
        w->entity = malloc(tune_values_size(g.entity, samples.space->count));
        if (!tune_values_copy(w->entity, g.entity, samples.space->count)) {
            more = samples_no_memory();
            break;
        }
    }
    free(place);
    return more;
}

/* How much better the value is than the next one, in percent; NaN: there is none, or it is 0. */
static double margin(const struct candidate *c)
{
    const struct candidate *next = c + 1;
    if (next == best.all + best.count || next->value == 0)
        return NAN;
    return 100 * (best.highest ? c->value - next->value : next->value - c->value) / fabs(next->value);
}

/* True if the repeats show that it is better than the next one. */
static const char *verdict(const struct candidate *c)
{
    double p = c + 1 < best.all + best.count ? tune_welch(&c->spread, &c[1].spread) : NAN;
    return isnan(p) ? "" : p < 0.05 ? "yes" : "no";
}

/* True for dimensions with one value, which come after the others. */
static bool fixed(int dimension)
{
    return tune_domain_size(&samples.space->dimensions[dimension].domain) == 1;
}

static int put_winner(const struct winner *w, int rank)
{
    const struct candidate *c = w->candidate;
    char *identifier = NULL;
    TRY(tune_entity_spell(samples.space->names, w->entity, samples.space->count, &identifier, &(size_t){0}));
    samples_number(rank, true, 6);
    samples_number(c->value, best.target->whole, 6);
    samples_number(c->spread.deviation, false, 3);
    samples_number(c->spread.count, true, 6);
    samples_number(margin(c), false, 3);
    samples_text(verdict(c));
    if (samples.space->reference_count > 1)
        samples_text(samples.protocols[w->protocol].identifier);
    for (int last = 0; last < 2; last++)
        for (int d = 0; d < samples.space->count; d++)
            if (fixed(d) == last)
                samples_value(&w->entity[d]);
    samples_text(identifier);
    free(identifier);
    return samples_end_row();
}

static int put_winners(const struct winner *winners, int count)
{
    const char **headings = calloc((size_t)samples.space->count + 8, sizeof *headings);
    int n = 0, code;
    if (!headings)
        return samples_no_memory();
    headings[n++] = "rank";
    headings[n++] = best.property;
    headings[n++] = "deviation";
    headings[n++] = "results";
    headings[n++] = "margin_percent";
    headings[n++] = "better";
    if (samples.space->reference_count > 1)
        headings[n++] = "experiment";
    for (int last = 0; last < 2; last++)
        for (int d = 0; d < samples.space->count; d++)
            if (fixed(d) == last)
                headings[n++] = samples.space->names[d];
    headings[n++] = "identifier";
    code = samples_begin_table(headings, n);
    free(headings);
    for (int i = 0; i < count && code == 0; i++)
        code = put_winner(&winners[i], i + 1);
    return code == 0 ? samples_end() : -1;
}

/* ---- the others ---- */

/* The quantile, by linear interpolation. */
static double quantile(double share)
{
    double at = share * (best.count - 1);
    int below = (int)at, i = best.highest ? best.count - 1 - below : below, k = best.highest ? i - 1 : i + 1;
    if (below == best.count - 1)
        return best.all[i].value;
    return best.all[i].value + (at - below) * (best.all[k].value - best.all[i].value);
}

/* For people: print the distribution of all values, and the meaning of the columns. */
static void tell_others(void)
{
    bool repeated = false;
    for (int i = 0; i < best.count; i++)
        repeated = repeated || best.all[i].spread.count > 1;
    const char *unit = best.target->unit;
    fprintf(samples.out, "# %s%s%s%s of %d: %.6g lowest, %.6g, %.6g, %.6g at the quarters, %.6g highest\n", best.property,
            *unit ? " (" : "",
            unit, *unit ? ")" : "", best.count, quantile(0), quantile(0.25), quantile(0.5), quantile(0.75), quantile(1));
    if (repeated)
        fprintf(samples.out,
                "# each the %s of its results, with their standard deviation; better: than the next by more than the repeats "
                "spread (Welch's t test, 5 %%)\n", samples_median() ? "median" : "mean");
    if (best.skipped > 0)
        fprintf(samples.out, "# %d more are measured and have no %s\n", best.skipped, best.property);
}

static const struct tune_target *target_of(const char *property)
{
    for (int p = 0; p < samples.space->reference_count; p++)
        for (int i = 0; i < samples.protocols[p].experiment->target_count; i++)
            if (!strcmp(samples.protocols[p].experiment->targets[i].name, property))
                return &samples.protocols[p].experiment->targets[i];
    return samples_derived(property);
}

static int check(void)
{
    if (!my.maximize == !my.minimize)
        return tune_error_usage("best of what? --maximize PROPERTY or --minimize PROPERTY");
    TRY(samples_check_aggregate());
    if (strcmp(my.include, "measured") && strcmp(my.include, "sampled") && strcmp(my.include, "matching"))
        return tune_error_usage("--include %s: nothing is known of these", my.include);
    best.highest = my.maximize != NULL;
    best.property = best.highest ? my.maximize : my.minimize;
    TRY(samples_open_space(samples_word(0)));
    TRY(samples_check_properties(&best.property, 1));
    best.target = target_of(best.property);
    return 0;
}

static int put_all(void)
{
    int count = my.count < best.count ? my.count : best.count;
    struct winner *winners = calloc((size_t)count + 1, sizeof *winners);
    if (!winners)
        return samples_no_memory();
    if (best.count > 0)
        qsort(best.all, (size_t)best.count, sizeof *best.all, best_first);
    for (int i = 0; i < count; i++)
        winners[i].candidate = &best.all[i];
    int code = name_winners(winners, count);
    if (code == 0)
        code = put_winners(winners, count);
    if (code == 0 && samples_people() && best.count > 0)
        tell_others();
    for (int i = 0; i < count; i++)
        free(winners[i].entity);
    free(winners);
    return code;
}

int samples_best(void)
{
    TRY(check());
    if (!(best.view = samples_open_view(&best.property, 1, true)))
        return -1;
    int code = read_candidates();
    if (code == 0)
        code = put_all();
    if (code == 0)
        code = samples_say_mixed(best.view);
    if (code == 0)
        code = samples_say_matching(best.view);
    free(best.all);
    tune_view_free(best.view);
    return code;
}
