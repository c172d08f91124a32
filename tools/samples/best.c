/* best.c - the entities with the best figure, by how much and how surely; of two or three figures,
 * the Pareto front. Both also for each value of a dimension. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

enum { MOST_GOALS = 3, MOST_PARTS = 1000 };

/* A property that shall be high, or low. */
struct goal {
    const char *property;
    const struct tune_target *target; /* of the first experiment that has it */
    bool highest;
    char deviation[TUNE_STORE_NAME_MAX + 16]; /* heading of its deviation */
};

/* An entity with a value of each goal, under one experiment. */
struct candidate {
    struct tune_spread spread[MOST_GOALS];
    double value[MOST_GOALS];
    int part;                  /* index in best.parts */
    int group;                 /* index in the view's order */
};

/* One of the best entities, to be shown. */
struct winner {
    const struct candidate *candidate;
    int rank, protocol;        /* rank: in its part, from 1 */
    struct tune_value *entity; /* a copy, with its items after it */
};

static struct {
    struct tune_view *view;
    struct goal goals[MOST_GOALS];
    int goal_count;
    const char *per[TUNE_SPACE_DIMENSIONS]; /* [per_count] dimensions of --per */
    int per_at[TUNE_SPACE_DIMENSIONS], per_count;
    struct tune_value *parts[MOST_PARTS];   /* [part_count] an entity of each, a copy */
    int part_count;
    struct candidate *all;
    int count, skipped;                     /* skipped: number of groups without a value */
    struct winner *winners;
    int winner_count;
    struct samples_figures figures;
} best;

/* ---- candidates ---- */

/* Compare two entities by the dimensions of --per, in the order of their domains. */
static int compare_parts(const struct tune_value *a, const struct tune_value *b)
{
    for (int i = 0; i < best.per_count; i++) {
        int d = best.per_at[i], order = points_compare(&samples.space->dimensions[d].domain, &a[d], &b[d]);
        if (order)
            return order;
    }
    return 0;
}

static struct tune_value *copy_entity(const struct tune_value *entity)
{
    int count = samples.space->count;
    return tune_values_copy(samples_take(1, tune_values_size(entity, count)), entity, count);
}

static int find_part(const struct tune_value *entity)
{
    int i = 0;
    while (i < best.part_count && compare_parts(best.parts[i], entity))
        i++;
    if (i < best.part_count)
        return i;
    if (i == MOST_PARTS)
        return tune_error_usage("--per %s: it has more than %d values; choose another dimension", my.per, MOST_PARTS);
    best.parts[i] = copy_entity(entity);
    return best.part_count++;
}

static int add_candidate(const struct tune_view_group *g, int group)
{
    for (int i = 0; i < best.goal_count; i++)
        if (best.figures.count[i] == 0) {
            best.skipped++;
            return 0;
        }
    samples_fit(&best.all, best.count, sizeof *best.all);
    struct candidate *c = &best.all[best.count];
    c->group = group;
    for (int i = 0; i < best.goal_count; i++) {
        c->spread[i] = tune_spread_of(samples_figures_of(&best.figures, i), best.figures.count[i]);
        c->value[i] = samples_middle(&c->spread[i]);
    }
    TRY(c->part = find_part(g->entity));
    best.count++;
    return 0;
}

static int read_candidates(void)
{
    struct tune_view_group g;
    int more;
    best.figures.columns = best.goal_count;
    for (int group = 0; (more = tune_view_next(best.view, &g)) == 1; group++) {
        TRY(samples_read_figures(&best.figures, best.view, g.results, false));
        TRY(add_candidate(&g, group));
    }
    return more;
}

/* ---- winners ---- */

/* Above 0 if a is the worse one in this goal. */
static int worse(const struct candidate *a, const struct candidate *b, int goal)
{
    double x = a->value[goal], y = b->value[goal];
    return best.goals[goal].highest ? (x < y) - (x > y) : (x > y) - (x < y);
}

/* Part by part, the best first. An entity stands behind all that dominate it. */
static int best_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = x->part == y->part ? 0 : compare_parts(best.parts[x->part], best.parts[y->part]);
    for (int i = 0; i < best.goal_count && order == 0; i++)
        order = worse(x, y, i);
    return order ? order : (x->group > y->group) - (x->group < y->group);
}

/* True if a is as good as b in every goal, and better in one. */
static bool dominates(const struct candidate *a, const struct candidate *b)
{
    bool better = false;
    for (int i = 0; i < best.goal_count; i++) {
        if (worse(a, b, i) > 0)
            return false;
        better = better || worse(a, b, i) < 0;
    }
    return better;
}

/* True if an earlier winner, of the last `rank` ones, dominates the candidate. */
static bool is_dominated(const struct candidate *c, int rank)
{
    for (int i = best.winner_count - rank; i < best.winner_count; i++)
        if (dominates(best.winners[i].candidate, c))
            return true;
    return false;
}

/* Choose `most` of each part (0: all): the first ones, or of several goals those of the front. */
static void choose_winners(int most)
{
    if (best.count > 0)
        qsort(best.all, (size_t)best.count, sizeof *best.all, best_first);
    best.winners = samples_take(best.count, sizeof *best.winners);
    for (int i = 0, rank = 0; i < best.count; i++) {
        const struct candidate *c = &best.all[i];
        rank = i > 0 && c->part == c[-1].part ? rank : 0;
        if ((most > 0 && rank == most) || (best.goal_count > 1 && is_dominated(c, rank)))
            continue;
        best.winners[best.winner_count++] = (struct winner){.candidate = c, .rank = ++rank};
    }
}

/* Find the winners' entities in a second pass over the groups. */
static int name_winners(void)
{
    struct tune_view_group g;
    int more, *place = samples_take(best.count + best.skipped, sizeof *place); /* the group's winner + 1 */
    for (int i = 0; i < best.winner_count; i++)
        place[best.winners[i].candidate->group] = i + 1;
    tune_view_rewind(best.view);
    for (int group = 0; (more = tune_view_next(best.view, &g)) == 1; group++)
        if (place[group]) {
            best.winners[place[group] - 1].protocol = g.protocol;
            best.winners[place[group] - 1].entity = copy_entity(g.entity);
        }
    return more;
}

/* The next one in the same part; NULL: none. */
static const struct candidate *next_of(const struct candidate *c)
{
    return c + 1 < best.all + best.count && c[1].part == c->part ? c + 1 : NULL;
}

/* How much better the value is than the next one, in percent; NaN: there is none, or it is 0. */
static double margin(const struct candidate *c)
{
    const struct candidate *next = next_of(c);
    double difference = next ? c->value[0] - next->value[0] : NAN;
    return next && next->value[0] != 0 ? 100 * (best.goals[0].highest ? difference : -difference) / fabs(next->value[0]) : NAN;
}

/* True if the repeats show that it is better than the next one. */
static const char *verdict(const struct candidate *c)
{
    double p = next_of(c) ? tune_welch(&c->spread[0], &next_of(c)->spread[0]) : NAN;
    return isnan(p) ? "" : p < 0.05 ? "yes" : "no";
}

/* ---- output ---- */

/* 0: a dimension of --per; 1: one of several values; 2: one of a single value. They are shown in this order. */
static int order_of(int dimension)
{
    for (int i = 0; i < best.per_count; i++)
        if (best.per_at[i] == dimension)
            return 0;
    return tune_domain_size(&samples.space->dimensions[dimension].domain) == 1 ? 2 : 1;
}

static void put_dimensions(const struct winner *w, int order)
{
    for (int d = 0; d < samples.space->count; d++)
        if (order_of(d) == order)
            samples_value(&w->entity[d]);
}

static int put_winner(const struct winner *w)
{
    const struct candidate *c = w->candidate;
    put_dimensions(w, 0);
    if (best.goal_count == 1)
        samples_number(w->rank, true, 6);
    for (int i = 0; i < best.goal_count; i++) {
        samples_number(c->value[i], best.goals[i].target->whole, 6);
        samples_number(c->spread[i].deviation, false, 3);
    }
    samples_number(c->spread[0].count, true, 6);
    if (best.goal_count == 1) {
        samples_number(margin(c), false, 3);
        samples_text(verdict(c));
    }
    if (samples.space->reference_count > 1)
        samples_text(samples.protocols[w->protocol].identifier);
    put_dimensions(w, 1);
    put_dimensions(w, 2);
    TRY(samples_identifier(w->entity));
    return samples_end_row();
}

static void add_dimensions(int order)
{
    for (int d = 0; d < samples.space->count; d++)
        if (order_of(d) == order)
            samples_column(samples.space->names[d]);
}

static void begin(void)
{
    add_dimensions(0);
    if (best.goal_count == 1)
        samples_column("rank");
    for (int i = 0; i < best.goal_count; i++) {
        samples_column(best.goals[i].property);
        samples_column(best.goals[i].deviation);
    }
    samples_column("results");
    if (best.goal_count == 1) {
        samples_column("margin_percent");
        samples_column("better");
    }
    if (samples.space->reference_count > 1)
        samples_column("experiment");
    add_dimensions(1);
    add_dimensions(2);
    samples_column("identifier")->hidden = samples_people();
    samples_begin(false);
}

/* ---- notes for people ---- */

/* The quantile, by linear interpolation. */
static double quantile(double share)
{
    bool highest = best.goals[0].highest;
    double at = share * (best.count - 1);
    int below = (int)at, i = highest ? best.count - 1 - below : below, k = highest ? i - 1 : i + 1;
    if (below == best.count - 1)
        return best.all[i].value[0];
    return best.all[i].value[0] + (at - below) * (best.all[k].value[0] - best.all[i].value[0]);
}

static void tell_distribution(void)
{
    const char *unit = best.goals[0].target->unit;
    fprintf(samples.out, "# %s%s%s%s of %d: %.6g lowest, %.6g, %.6g, %.6g at the quarters, %.6g highest\n", best.goals[0].property,
            *unit ? " (" : "", unit, *unit ? ")" : "", best.count, quantile(0), quantile(0.25), quantile(0.5), quantile(0.75),
            quantile(1));
}

static void tell_front(void)
{
    fprintf(samples.out, "# the Pareto front: each of the other %d is no better in anything than one of these %d%s\n#  ",
            best.count - best.winner_count, best.winner_count, best.per_count > 0 ? ", with the same --per" : "");
    for (int i = 0; i < best.goal_count; i++) {
        const char *unit = best.goals[i].target->unit;
        fprintf(samples.out, "%s%s%s%s%s: the %s", i ? "; " : " ", best.goals[i].property, *unit ? " (" : "", unit,
                *unit ? ")" : "", best.goals[i].highest ? "highest" : "lowest");
    }
    fputc('\n', samples.out);
}

/* Name the values of --per's dimension that have no winner. */
static void tell_lost(void)
{
    const struct tune_domain *domain = &samples.space->dimensions[best.per_at[0]].domain;
    tune_index size = tune_domain_size(domain);
    int lost = 0;
    struct tune_value value;
    for (tune_index i = 0; best.per_count == 1 && i < size && size <= MOST_PARTS; i++) {
        bool there = false;
        tune_domain_value(domain, i, &value);
        for (int k = 0; k < best.part_count && !there; k++)
            there = tune_value_equal(&best.parts[k][best.per_at[0]], &value);
        char *text = there ? NULL : tune_value_spell(&value);
        if (text)
            fprintf(samples.out, "%s%s", lost++ ? ", " : "# no valid result that fits: ", text);
        free(text);
    }
    if (lost > 0)
        fputc('\n', samples.out);
}

static void tell_others(void)
{
    bool repeated = false;
    for (int i = 0; i < best.count; i++)
        repeated = repeated || best.all[i].spread[0].count > 1;
    if (best.goal_count > 1)
        tell_front();
    else if (best.per_count == 0)
        tell_distribution();
    if (repeated)
        fprintf(samples.out, "# each the %s of its results, with their standard deviation%s\n", samples_median() ? "median" : "mean",
                best.goal_count > 1 ? "" : "; better: than the next by more than the repeats spread (Welch's t test, 5 %)");
    if (best.skipped > 0)
        fprintf(samples.out, "# %d more are measured and have no %s\n", best.skipped,
                best.goal_count > 1 ? "value of each" : best.goals[0].property);
}

/* ---- the whole ---- */

static int add_goals(const char *text, bool highest)
{
    const char *names[16];
    int count = samples_split(text, names, 16);
    TRY(count);
    TRY(samples_check_properties(names, count));
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < best.goal_count; k++)
            if (!strcmp(best.goals[k].property, names[i]))
                return tune_error_usage("%s is asked for twice", names[i]);
        if (best.goal_count == MOST_GOALS)
            return tune_error_usage("more than %d properties; nearly every entity would be on the Pareto front", MOST_GOALS);
        best.goals[best.goal_count++] = (struct goal){names[i], samples_target(-1, names[i]), highest, "deviation"};
    }
    for (int i = 0; i < best.goal_count && best.goal_count > 1; i++)
        snprintf(best.goals[i].deviation, sizeof best.goals[i].deviation, "%s_deviation", best.goals[i].property);
    return 0;
}

static int check(void)
{
    if (!my.maximize && !my.minimize)
        return tune_error_usage("best of what? --maximize PROPERTY or --minimize PROPERTY; two or three give the Pareto front");
    TRY(samples_check_aggregate());
    if (strcmp(my.include, "measured") && strcmp(my.include, "sampled") && strcmp(my.include, "matching"))
        return tune_error_usage("--include %s: nothing is known of these", my.include);
    TRY(samples_open_space(samples_word(0)));
    TRY(add_goals(my.maximize, true));
    TRY(add_goals(my.minimize, false));
    TRY(best.per_count = samples_split(my.per, best.per, TUNE_SPACE_DIMENSIONS));
    for (int i = 0; i < best.per_count; i++)
        TRY(best.per_at[i] = points_dimension(best.per[i]));
    return 0;
}

static int put_all(void)
{
    bool given = tune_flags_given(&my.tune, "count"), one = best.per_count > 0 || my.print_command;
    choose_winners(given ? my.count : best.goal_count > 1 ? 0 : one ? 1 : my.count);
    TRY(name_winners());
    if (my.print_command && best.winner_count == 0)
        return tune_error_set("no valid result fits, so there is no command");
    for (int i = 0; i < best.winner_count && my.print_command; i++)
        TRY(samples_put_command(best.winners[i].protocol, best.winners[i].entity));
    if (my.print_command)
        return 0;
    begin();
    for (int i = 0; i < best.winner_count; i++)
        TRY(put_winner(&best.winners[i]));
    TRY(samples_end());
    if (samples_people() && best.count > 0)
        tell_others();
    if (samples_people() && best.per_count > 0)
        tell_lost();
    return 0;
}

int samples_best(void)
{
    TRY(check());
    const char *columns[MOST_GOALS];
    for (int i = 0; i < best.goal_count; i++)
        columns[i] = best.goals[i].property;
    if (!(best.view = samples_open_view(columns, best.goal_count, SAMPLES_VALID)))
        return -1;
    TRY(read_candidates());
    TRY(put_all());
    TRY(samples_say_mixed(best.view));
    TRY(samples_say_matching(best.view));
    tune_view_free(best.view);
    return 0;
}
