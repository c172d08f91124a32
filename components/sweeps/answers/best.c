/* best.c - find the entities with the best figure, their margin and its significance. For two or
 * three figures, find the Pareto front. Both also work for each value of a dimension. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweeps/answers/entity_figures.h"
#include "sweeps/answers/model.h"

enum { MOST_GOALS = 3, MOST_PARTS = 1000, MOST_SHOWN = 5 };

/* A property to maximize or minimize. */
struct goal {
    const char *property;
    const struct tune_target *target; /* the target of the first experiment that has it */
    bool highest;
    char deviation[TUNE_STORE_NAME_MAX + 16]; /* heading of the deviation column */
};

/* An entity under one experiment, with a value for each goal. */
struct candidate {
    struct tune_spread spread[MOST_GOALS];
    double value[MOST_GOALS];
    int part;                  /* index in parts */
    int group;                 /* index in the view's order */
};

/* One of the best entities, for output. */
struct winner {
    const struct candidate *candidate;
    int rank, binding;        /* rank: within its part, from 1 */
    struct tune_value *entity; /* a copy; items of lists follow it in memory */
};

struct best {
    struct tune_subject *s;
    struct tune_view *view;
    struct goal goals[MOST_GOALS];
    int goal_count;
    const char *per[TUNE_SPACE_DIMENSIONS]; /* [per_count] names of the dimensions of `per` */
    int per_at[TUNE_SPACE_DIMENSIONS], per_count;
    struct tune_value *parts[MOST_PARTS];   /* [part_count] a copy of one entity of each part */
    int part_count;
    struct candidate *all;
    int count, skipped;                     /* skipped: number of groups without a value */
    struct winner *winners;
    int winner_count, front;                /* front: number of winners before the limit of `count` */
    struct tune_figures figures;
    bool median;
};

/* ---- candidates ---- */

/* Compare two entities by the dimensions of `per`, in the order of their domains. */
static int compare_parts(const struct best *b, const struct tune_value *x, const struct tune_value *y)
{
    for (int i = 0; i < b->per_count; i++) {
        int d = b->per_at[i], order = tune_level_compare(&b->s->space->dimensions[d].domain, &x[d], &y[d]);
        if (order)
            return order;
    }
    return 0;
}

static struct tune_value *copy_entity(const struct best *b, const struct tune_value *entity)
{
    int count = b->s->space->count;
    void *copy = tune_answer_take(b->s->a, 1, tune_values_size(entity, count));
    return copy ? tune_values_copy(copy, entity, count) : NULL;
}

static int find_part(struct best *b, const struct tune_value *entity)
{
    int i = 0;
    while (i < b->part_count && compare_parts(b, b->parts[i], entity))
        i++;
    if (i < b->part_count)
        return i;
    if (i == MOST_PARTS)
        return tune_error_usage("`per` %s: it has more than %d values; choose another dimension", b->s->q->per, MOST_PARTS);
    TRY((b->parts[i] = copy_entity(b, entity)) ? 0 : -1);
    return b->part_count++;
}

static int add_candidate(struct best *b, const struct tune_view_group *g, int group)
{
    for (int i = 0; i < b->goal_count; i++)
        if (b->figures.count[i] == 0) {
            b->skipped++;
            return 0;
        }
    FIT(b->all, b->count);
    struct candidate *c = &b->all[b->count];
    *c = (struct candidate){.group = group};
    for (int i = 0; i < b->goal_count; i++) {
        c->spread[i] = tune_spread_of(tune_figures_of(&b->figures, i), b->figures.count[i]);
        c->value[i] = b->median ? c->spread[i].median : c->spread[i].mean;
    }
    TRY(c->part = find_part(b, g->entity));
    b->count++;
    return 0;
}

static int read_candidates(struct best *b)
{
    struct tune_view_group g;
    int more;
    b->figures.columns = b->goal_count;
    for (int group = 0; (more = tune_view_next(b->view, &g)) == 1; group++) {
        TRY(tune_figures_read(b->s, &b->figures, b->view, g.results, false));
        TRY(add_candidate(b, &g, group));
    }
    return more;
}

/* ---- winners ---- */

/* Above 0 if x is worse than y in this goal. */
static int worse(const struct best *b, const struct candidate *x, const struct candidate *y, int goal)
{
    double p = x->value[goal], q = y->value[goal];
    return b->goals[goal].highest ? (p < q) - (p > q) : (p > q) - (p < q);
}

/* Sort by part, then the best first. An entity comes after all that dominate it. */
static int best_first(const void *p, const void *q, void *context)
{
    const struct best *b = context;
    const struct candidate *x = p, *y = q;
    int order = x->part == y->part ? 0 : compare_parts(b, b->parts[x->part], b->parts[y->part]);
    for (int i = 0; i < b->goal_count && order == 0; i++)
        order = worse(b, x, y, i);
    return order ? order : (x->group > y->group) - (x->group < y->group);
}

/* True if x is as good as y in every goal, and better in one. */
static bool dominates(const struct best *b, const struct candidate *x, const struct candidate *y)
{
    bool better = false;
    for (int i = 0; i < b->goal_count; i++) {
        if (worse(b, x, y, i) > 0)
            return false;
        better = better || worse(b, x, y, i) < 0;
    }
    return better;
}

/* True if one of the last `rank` winners dominates the candidate. */
static bool is_dominated(const struct best *b, const struct candidate *c, int rank)
{
    for (int i = b->winner_count - rank; i < b->winner_count; i++)
        if (dominates(b, b->winners[i].candidate, c))
            return true;
    return false;
}

/* Choose `most` candidates of each part (0: all): the first ones or, for several goals, those on
 * the front. */
static int choose_winners(struct best *b, int most)
{
    if (b->count > 0)
        qsort_r(b->all, (size_t)b->count, sizeof *b->all, best_first, b);
    TAKE(b->winners, b->s->a, b->count);
    for (int i = 0, rank = 0; i < b->count; i++) {
        const struct candidate *c = &b->all[i];
        rank = i > 0 && c->part == c[-1].part ? rank : 0;
        if (b->goal_count > 1 ? is_dominated(b, c, rank) : most > 0 && rank == most)
            continue;
        b->winners[b->winner_count++] = (struct winner){.candidate = c, .rank = ++rank};
    }
    b->front = b->winner_count;
    b->winner_count = 0;
    for (int i = 0; i < b->front; i++)
        if (most == 0 || b->winners[i].rank <= most)
            b->winners[b->winner_count++] = b->winners[i];
    return 0;
}

/* Copy the winners' entities, in a second pass over the groups. */
static int name_winners(struct best *b)
{
    struct tune_view_group g;
    int more, *winner; /* index of the group's winner + 1 */
    TAKE(winner, b->s->a, b->count + b->skipped);
    for (int i = 0; i < b->winner_count; i++)
        winner[b->winners[i].candidate->group] = i + 1;
    tune_view_rewind(b->view);
    for (int group = 0; (more = tune_view_next(b->view, &g)) == 1; group++)
        if (winner[group]) {
            struct winner *w = &b->winners[winner[group] - 1];
            w->binding = g.binding;
            TRY((w->entity = copy_entity(b, g.entity)) ? 0 : -1);
        }
    return more;
}

/* The next candidate in the same part; NULL: none. */
static const struct candidate *next_of(const struct best *b, const struct candidate *c)
{
    return c + 1 < b->all + b->count && c[1].part == c->part ? c + 1 : NULL;
}

/* How much better the value is than the next one, in percent. NaN: there is no next one, or it is
 * 0. */
static double margin(const struct best *b, const struct candidate *c)
{
    const struct candidate *next = next_of(b, c);
    double difference = next ? c->value[0] - next->value[0] : NAN;
    if (!next || next->value[0] == 0)
        return NAN;
    return difference == 0 ? 0 : 100 * (b->goals[0].highest ? difference : -difference) / fabs(next->value[0]);
}

/* "yes" if the candidate is significantly better than the next one, by its repeats. */
static const char *verdict(const struct best *b, const struct candidate *c)
{
    double p = next_of(b, c) ? tune_welch(&c->spread[0], &next_of(b, c)->spread[0]) : NAN;
    return isnan(p) ? NULL : p < 0.05 ? "yes" : "no";
}

/* ---- the table ---- */

/* Sort key for the column of a dimension. 0: a dimension of `per`; 1: several values; 2: a single
 * value. */
static int order_of(const struct best *b, int dimension)
{
    for (int i = 0; i < b->per_count; i++)
        if (b->per_at[i] == dimension)
            return 0;
    return tune_domain_size(&b->s->space->dimensions[dimension].domain) == 1 ? 2 : 1;
}

static void add_values(struct best *b, const struct winner *w, int order)
{
    for (int d = 0; d < b->s->space->count; d++)
        if (order_of(b, d) == order)
            tune_answer_space_value(b->s->a, &w->entity[d]);
}

static int add_winner(struct best *b, const struct winner *w)
{
    struct tune_answer_table *a = b->s->a;
    const struct candidate *c = w->candidate;
    add_values(b, w, 0);
    if (b->goal_count == 1)
        tune_answer_whole(a, w->rank);
    for (int i = 0; i < b->goal_count; i++) {
        tune_answer_figure(a, c->value[i], b->goals[i].target->whole);
        tune_answer_figure(a, c->spread[i].deviation, false);
    }
    tune_answer_whole(a, c->spread[0].count);
    if (b->goal_count == 1) {
        tune_answer_figure(a, margin(b, c), false);
        tune_answer_text(a, verdict(b, c));
    }
    if (b->s->space->reference_count > 1)
        tune_answer_text(a, b->s->bindings[w->binding].identifier);
    add_values(b, w, 1);
    add_values(b, w, 2);
    TRY(tune_answer_identifier(a, b->s->space, w->entity));
    return tune_answer_end_row(a);
}

static void add_dimensions(struct best *b, int order)
{
    for (int d = 0; d < b->s->space->count; d++)
        if (order_of(b, d) == order) {
            struct tune_answer_column *c = tune_answer_column(b->s->a, b->s->space->names[d]);
            c->dimension = true;
            c->digits = 15;
        }
}

static void add_figure(struct best *b, const char *name, const char *unit, int digits)
{
    struct tune_answer_column *c = tune_answer_column(b->s->a, name);
    c->unit = unit;
    c->digits = digits;
    c->measured = true;
}

static void add_columns(struct best *b)
{
    add_dimensions(b, 0);
    if (b->goal_count == 1)
        tune_answer_column(b->s->a, "rank");
    for (int i = 0; i < b->goal_count; i++) {
        add_figure(b, b->goals[i].property, b->goals[i].target->unit, 6);
        add_figure(b, b->goals[i].deviation, b->goals[i].target->unit, 3);
    }
    add_figure(b, "results", "", 6);
    if (b->goal_count == 1) {
        add_figure(b, "margin_percent", "%", 3);
        tune_answer_column(b->s->a, "better");
    }
    if (b->s->space->reference_count > 1)
        tune_answer_column(b->s->a, "experiment");
    add_dimensions(b, 1);
    add_dimensions(b, 2);
    tune_answer_column(b->s->a, "identifier")->hidden = true;
}

/* ---- notes for people ---- */

/* A quantile of the values, by linear interpolation. */
static double quantile(const struct best *b, double share)
{
    bool highest = b->goals[0].highest;
    double at = share * (b->count - 1);
    int below = (int)at, i = highest ? b->count - 1 - below : below, k = highest ? i - 1 : i + 1;
    if (at == below)
        return b->all[i].value[0];
    return b->all[i].value[0] + (at - below) * (b->all[k].value[0] - b->all[i].value[0]);
}

/* The property with its unit: "speed (1/s)". */
static const char *with_unit(const struct goal *goal, char text[512])
{
    const char *unit = goal->target->unit;
    snprintf(text, 512, "%s%s%s%s", goal->property, *unit ? " (" : "", unit, *unit ? ")" : "");
    return text;
}

static void report_distribution(struct best *b)
{
    char name[512];
    tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "%s of all %d: lowest %.6g, quartiles %.6g, %.6g "
                                                   "and %.6g, highest %.6g",
                         with_unit(&b->goals[0], name),
                         b->count, quantile(b, 0), quantile(b, 0.25), quantile(b, 0.5), quantile(b, 0.75), quantile(b, 1));
}

static void report_front(struct best *b)
{
    char goals[2048] = "", name[512], front[80] = "the one shown";
    if (b->front > b->winner_count)
        snprintf(front, sizeof front, "one of %d, of which `count` shows %d", b->front, b->winner_count);
    else if (b->front > 1)
        snprintf(front, sizeof front, "one of the %d shown", b->front);
    tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "these rows are the Pareto front: each of the other "
                                                   "%d is in no property better than %s%s",
                         b->count - b->front,
                         front, b->per_count > 0 ? ", with the same `per`" : "");
    for (int i = 0; i < b->goal_count; i++)
        tune_append(goals, sizeof goals, "%s%s: the %s", i ? "; " : "", with_unit(&b->goals[i], name), b->goals[i].highest ? "highest" : "lowest");
    tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "%s", goals);
}

/* Add a note with the values of the dimension of `per` that have no winner. */
static void report_lost(struct best *b)
{
    const struct tune_domain *domain = &b->s->space->dimensions[b->per_at[0]].domain;
    tune_index size = tune_domain_size(domain);
    char lost[2048] = "";
    struct tune_value value;
    for (tune_index i = 0; b->per_count == 1 && i < size && size <= MOST_PARTS; i++) {
        bool there = false;
        tune_domain_value(domain, i, &value);
        for (int k = 0; k < b->part_count && !there; k++)
            there = tune_value_equal(&b->parts[k][b->per_at[0]], &value);
        char *text = there ? NULL : tune_value_to_string(&value);
        if (text)
            tune_append_item(lost, sizeof lost, "%s", text);
        free(text);
    }
    if (*lost)
        tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "without a valid result that fits: %s", lost);
}

static void report_others(struct best *b)
{
    bool repeated = false;
    for (int i = 0; i < b->count; i++)
        repeated = repeated || b->all[i].spread[0].count > 1;
    if (b->goal_count > 1)
        report_front(b);
    else if (b->per_count == 0)
        report_distribution(b);
    if (repeated)
        tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "each figure is the %s of the results of its "
                                                       "entity, with their standard deviation%s",
                             b->median ? "median" : "mean",
                             b->goal_count > 1 ? "" : "; better: yes if the entity beats the next one "
                                                      "by more than the spread of the repeats (Welch's "
                                                      "t test, 5 %)");
    if (b->skipped > 0)
        tune_answer_add_note(b->s->a, TUNE_NOTE_BELOW, "%d more were measured, but have no %s",
                             b->skipped,
                             b->goal_count > 1 ? "value of each property" : b->goals[0].property);
}

/* Set the text in place of a table: entities are measured, but none has the figure. */
static int report_skipped(struct best *b)
{
    char text[TUNE_STORE_NAME_MAX + 100];
    snprintf(text, sizeof text, "no rows: %d were measured, but none has %s", b->skipped,
             b->goal_count > 1 ? "a value of each property" : b->goals[0].property);
    return (b->s->a->none = tune_answer_copy(b->s->a, text)) ? 0 : -1;
}

/* ---- the entry point ---- */

static int add_goals(struct best *b, const char *text, bool highest)
{
    const char *names[16];
    int count = tune_subject_numbers(b->s, text, names, 16);
    TRY(count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < b->goal_count; k++)
            if (!strcmp(b->goals[k].property, names[i]))
                return tune_error_usage("property %s is given twice", names[i]);
        if (b->goal_count == MOST_GOALS)
            return tune_error_usage("more than %d properties: nearly every entity would be on the "
                                    "Pareto front; give fewer", MOST_GOALS);
        b->goals[b->goal_count++] = (struct goal){names[i], tune_subject_target(b->s, -1, names[i]), highest, "deviation"};
    }
    for (int i = 0; i < b->goal_count && b->goal_count > 1; i++)
        snprintf(b->goals[i].deviation, sizeof b->goals[i].deviation, "%s_deviation", b->goals[i].property);
    return 0;
}

/* Find the winners. command: only the best one. */
static int find_winners(struct best *b, bool command)
{
    const struct tune_question *q = b->s->q;
    const char *columns[MOST_GOALS];
    int median = tune_subject_median(b->s);
    if (!q->maximize && !q->minimize)
        return tune_error_usage("best needs a property: give `maximize` PROPERTY or `minimize` "
                                "PROPERTY; with two or three properties it shows the Pareto front");
    TRY(median);
    b->median = median;
    TRY(tune_subject_space(b->s));
    TRY(add_goals(b, q->maximize, true));
    TRY(add_goals(b, q->minimize, false));
    if (b->goal_count == 0)
        return tune_error_usage("`maximize` or `minimize` names no property");
    TRY(b->per_count = tune_subject_list(b->s, q->per, b->per, TUNE_SPACE_DIMENSIONS));
    for (int i = 0; i < b->per_count; i++)
        TRY(b->per_at[i] = tune_subject_dimension(b->s, b->per[i]));
    for (int i = 0; i < b->goal_count; i++)
        columns[i] = b->goals[i].property;
    if (!(b->view = tune_subject_view(b->s, columns, b->goal_count, TUNE_VALID_RESULTS)))
        return -1;
    TRY(read_candidates(b));
    bool one = b->per_count > 0 || command;
    TRY(choose_winners(b, q->most > 0 ? q->most : b->goal_count > 1 ? 0 : one ? 1 : MOST_SHOWN));
    return name_winners(b);
}

static int add_all(struct best *b)
{
    add_columns(b);
    for (int i = 0; i < b->winner_count; i++)
        TRY(add_winner(b, &b->winners[i]));
    if (b->count > 0)
        report_others(b);
    else if (b->skipped > 0)
        TRY(report_skipped(b));
    if (b->per_count > 0)
        report_lost(b);
    return tune_subject_add_notes(b->s, b->view);
}

static int add_commands(struct best *b)
{
    tune_answer_column(b->s->a, "command");
    if (b->winner_count == 0)
        return tune_error_set("no valid result fits, so there is no command to print");
    for (int i = 0; i < b->winner_count; i++)
        TRY(tune_subject_command(b->s, b->winners[i].binding, b->winners[i].entity));
    return 0;
}

static int answer(struct tune_subject *s, bool command)
{
    struct best *b;
    if (s->q->predicted)
        return tune_best_expected(s, command);
    TAKE(b, s->a, 1);
    b->s = s;
    int code = find_winners(b, command);
    if (code == 0)
        code = command ? add_commands(b) : add_all(b);
    free(b->all);
    tune_view_free(b->view);
    return code;
}

static int best(struct tune_subject *s)
{
    return answer(s, false);
}

static int best_command(struct tune_subject *s)
{
    return answer(s, true);
}

struct tune_answer_table *tune_ask_best(const struct tune_question *q)
{
    return tune_subject_answer(q, "best", best);
}

struct tune_answer_table *tune_ask_command(const struct tune_question *q)
{
    return q->entity ? tune_ask_entity_command(q) : tune_subject_answer(q, "best", best_command);
}
