/* regression.c - decide whether b is worse than a by more than a share. */
#include "sweeps/answers/regression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/statistics.h"

static const char *const answers[] = {"no", "yes", "cannot tell yet"};

/* ---- properties ---- */

static int read_share(struct tune_regression *r)
{
    char *end;
    r->share = strtod(r->s->q->regression, &end) / 100;
    end += *end == '%';
    if (end != r->s->q->regression && !*end && r->share >= 0 && r->share < 1)
        return 0;
    return tune_error_usage("`regression` %s: expected a share of 0 to below 100, such as 5%%", r->s->q->regression);
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* 1: more is better; 0: less is better; -1: unit and name do not tell. */
static int direction_of(const char *name, const char *unit)
{
    if (ends(name, "half_width"))
        return -1;
    if (ends(unit, "/s"))
        return 1;
    return !strcmp(unit, "s") || !strcmp(unit, "bytes") || !strcmp(unit, "W") || ends(name, "loss") || ends(name, "perplexity") ? 0 : -1;
}

static int add_property(struct tune_regression *r, const char *name, int highest)
{
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->all[i].name, name))
            return 0;
    if (highest < 0)
        return tune_error_usage("unknown whether high or low values of %s are better; give "
                                "`maximize` %s or `minimize` %s", name, name, name);
    if (r->count == TUNE_REGRESSION_PROPERTIES)
        return tune_error_usage("`regression` takes at most %d properties",
                                TUNE_REGRESSION_PROPERTIES);
    r->all[r->count++] =
        (struct tune_judged){.name = name, .highest = highest, .limit = tune_gain_limit(r->share, highest)};
    return 0;
}

int tune_regression_read(struct tune_regression *r, const char *const *names, const char *const *units, int count, const char **wanted)
{
    const struct tune_question *q = r->s->q;
    const char *const given[] = {q->maximize, q->minimize};
    const char *listed[TUNE_REGRESSION_PROPERTIES];
    int more = tune_subject_list(r->s, q->properties, listed, TUNE_REGRESSION_PROPERTIES);
    TRY(more);
    TRY(read_share(r));
    for (int i = 0; i < 2 + more; i++) {
        const char *name = i < 2 ? given[i] : listed[i - 2];
        int at = name ? tune_name_find(names, count, name) : 0;
        if (at < 0)
            return tune_answer_no_such("property", name, names, count);
        if (name)
            TRY(add_property(r, name, i == 0 ? 1 : i == 1 ? 0 : direction_of(name, units[at])));
    }
    if (r->count == 0)
        return tune_error_usage("`regression` needs a property: give `maximize` PROPERTY, "
                                "`minimize` PROPERTY, or `property` PROPERTY if its unit is enough "
                                "to know which values are better");
    for (int i = 0; i < r->count; i++)
        wanted[i] = r->all[i].name;
    return r->count;
}

/* ---- rows ---- */

void tune_regression_columns(struct tune_regression *r)
{
    static const char *const headings[] = {"experiment", "entity", "property", "a", "b", "b/a", "pairs", "worse_probability",
                                           "regression", "more_pairs"};
    static const int digits[] = {0, 0, 0, 6, 6, 4, 0, 3, 0, 7};
    for (int i = 0; i < 10; i++)
        tune_answer_column(r->s->a, headings[i])->digits = digits[i];
}

/* Add a row. Returns the answer: 0: no; 1: yes; 2: undecided. */
static int add_row(struct tune_regression *r, const char *experiment, const char *entity, struct tune_judged *j, const double figures[2],
                   struct tune_spread gains)
{
    struct tune_answer_table *a = r->s->a;
    int told = tune_told(&gains, j->limit), needed = told < 0 ? tune_pairs_needed(&gains, j->limit) : 0;
    int answer = told < 0 ? 2 : told;
    tune_answer_text(a, experiment);
    tune_answer_text(a, entity);
    tune_answer_text(a, j->name);
    tune_answer_figure(a, figures[0], false);
    tune_answer_figure(a, figures[1], false);
    tune_answer_figure(a, gains.count > 0 ? exp(j->highest ? gains.mean : -gains.mean) : NAN, false);
    tune_answer_whole(a, gains.count);
    tune_answer_figure(a, tune_below(&gains, j->limit), false);
    tune_answer_text(a, answers[answer]);
    tune_answer_figure(a, needed > 0 ? needed - gains.count : NAN, true);
    if (told < 0 && j->most_needed >= 0)
        j->most_needed = needed == 0 ? -1 : needed - gains.count > j->most_needed ? needed - gains.count : j->most_needed;
    return tune_answer_end_row(a) < 0 ? -1 : answer;
}

/* Add the row for all entities of an experiment, if there are several. */
static int add_all(struct tune_regression *r, struct tune_judged *j)
{
    static const double none[2] = {NAN, NAN};
    int answer = 0, most = j->most_needed;
    if (j->entities > 1)
        TRY(answer = add_row(r, j->experiment, "(all)", j, none, tune_spread_of(j->gains, j->gain_count)));
    j->most_needed = most;
    j->all_worse = j->all_worse || answer == 1;
    j->gain_count = j->entities = 0;
    return 0;
}

int tune_regression_add(struct tune_regression *r, const char *experiment, const char *entity, const char *property,
                        double *const sides[2], const int counts[2])
{
    struct tune_judged *j = r->all;
    int pairs = counts[0] < counts[1] ? counts[0] : counts[1], n = 0, answer;
    double figures[2];
    while (strcmp(j->name, property))
        j++;
    if (j->entities > 0 && j->experiment != experiment)
        TRY(add_all(r, j));
    for (int i = 0; i < pairs; i++) {
        double gain = tune_gain(sides[0][i], sides[1][i], j->highest);
        if (isnan(gain))
            continue;
        FIT(j->gains, j->gain_count);
        j->gains[j->gain_count++] = gain;
        n++;
    }
    j->experiment = experiment;
    j->entities++;
    for (int i = 0; i < 2; i++) {
        struct tune_spread spread = tune_spread_of(sides[i], counts[i]);
        figures[i] = r->median ? spread.median : spread.mean;
    }
    TRY(answer = add_row(r, experiment, entity, j, figures, tune_spread_of(j->gains + j->gain_count - n, n)));
    j->answers[answer]++;
    return 0;
}

/* ---- the answer ---- */

static void report_property(struct tune_regression *r, const struct tune_judged *j)
{
    struct tune_answer_table *a = r->s->a;
    tune_answer_add_note(a, TUNE_NOTE_BELOW, "%s: is b worse by more than %g %%? entities: %d yes, %d "
                                             "no, %d cannot tell yet%s", j->name, 100 * r->share,
                         j->answers[1], j->answers[0], j->answers[2], j->all_worse ? "; over all "
                                                                                     "entities "
                                                                                     "together: "
                                                                                     "yes" : "");
    if (j->answers[2] > 0 && j->most_needed > 0)
        tune_answer_add_note(a, TUNE_NOTE_BELOW, "more_pairs: estimated number of further repeats on "
                                                 "each side until the answer is yes or no (at most %d)",
                             j->most_needed);
    else if (j->answers[2] > 0)
        tune_answer_add_note(a, TUNE_NOTE_BELOW, "more repeats would not decide: b is worse by almost "
                                                 "exactly this share");
}

int tune_regression_end(struct tune_regression *r)
{
    int untold = 0;
    bool worse = false;
    for (int i = 0; i < r->count; i++)
        TRY(add_all(r, &r->all[i]));
    for (int i = 0; i < r->count; i++) {
        const struct tune_judged *j = &r->all[i];
        report_property(r, j);
        worse = worse || j->answers[1] > 0 || j->all_worse;
        untold += j->answers[2] + (j->answers[0] + j->answers[2] == 0); /* no entity could be compared */
    }
    tune_answer_add_note(r->s->a, TUNE_NOTE_BELOW, "yes and no are wrong in at most 5 %% of cases, "
                                                   "even if you ask again after each pair of repeats "
                                                   "(Student's t, at least %d pairs)",
                         TUNE_PAIRS);
    r->s->a->verdict = worse ? 1 : untold == 0 ? 0 : TUNE_CANNOT_TELL;
    return 0;
}

void tune_regression_free(struct tune_regression *r)
{
    for (int i = 0; i < r->count; i++)
        free(r->all[i].gains);
}
