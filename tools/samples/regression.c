/* regression.c - is b worse than a by more than a share? Student's posterior over pairs of repeats.
 *
 * The k-th result of an entity on side a and its k-th on side b are a pair. A pair has a gain: the
 * logarithm of how many times better b is. */
#include "regression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"

/* A property to look at, and the answers about it. */
struct judged {
    const char *name;
    bool highest;             /* more of it is better */
    double limit;             /* of the mean gain */
    int answers[3];           /* entities: no, yes, cannot tell */
    int most_needed;          /* pairs that an entity lacks; -1: more than a million */
    /* Gains of all entities of one experiment. */
    const char *experiment;
    double *gains;
    int gain_count, entities;
    bool all_worse;           /* all entities together are */
};

static struct {
    double share;
    struct judged all[REGRESSION_PROPERTIES];
    int count;
} regression;

static const char *const answers[] = {"no", "yes", "cannot tell yet"};

/* ---- what to look at ---- */

static int read_share(void)
{
    char *end;
    regression.share = strtod(my.regression, &end) / 100;
    end += *end == '%';
    if (end != my.regression && !*end && regression.share >= 0 && regression.share < 1)
        return 0;
    return tune_error_usage("--regression %s: expected a share of 0 to below 100, such as 5%%", my.regression);
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* 1: more is better; 0: less is; -1: its unit and name do not say. */
static int direction_of(const char *name, const char *unit)
{
    if (ends(name, "half_width"))
        return -1;
    if (ends(unit, "/s"))
        return 1;
    return !strcmp(unit, "s") || !strcmp(unit, "bytes") || !strcmp(unit, "W") || ends(name, "loss") || ends(name, "perplexity") ? 0 : -1;
}

static int add_property(const char *name, int highest)
{
    for (int i = 0; i < regression.count; i++)
        if (!strcmp(regression.all[i].name, name))
            return 0;
    if (highest < 0)
        return tune_error_usage("is more of %s better, or less? Say --maximize %s or --minimize %s", name, name, name);
    if (regression.count == REGRESSION_PROPERTIES)
        return tune_error_usage("--regression looks at %d properties at most", REGRESSION_PROPERTIES);
    regression.all[regression.count++] =
        (struct judged){.name = name, .highest = highest, .limit = tune_gain_limit(regression.share, highest)};
    return 0;
}

int regression_read(const char *const *names, const char *const *units, int count, const char **wanted)
{
    const char *const given[] = {my.maximize, my.minimize};
    const char *listed[REGRESSION_PROPERTIES];
    int more = samples_split(my.properties, listed, REGRESSION_PROPERTIES);
    TRY(more);
    TRY(read_share());
    for (int i = 0; i < 2 + more; i++) {
        const char *name = i < 2 ? given[i] : listed[i - 2];
        int at = name ? tune_name_find(names, count, name) : 0;
        if (at < 0)
            return samples_no_such("property", name, names, count);
        if (name)
            TRY(add_property(name, i == 0 ? 1 : i == 1 ? 0 : direction_of(name, units[at])));
    }
    if (regression.count == 0)
        return tune_error_usage("--regression of what? --maximize PROPERTY, --minimize PROPERTY, or --property PROPERTY if its unit "
                                "says which is better");
    for (int i = 0; i < regression.count; i++)
        wanted[i] = regression.all[i].name;
    return regression.count;
}

/* ---- rows ---- */

void regression_columns(void)
{
    static const char *const headings[] = {"experiment", "entity", "property", "a", "b", "b/a", "pairs", "worse_probability",
                                           "regression", "more_pairs"};
    samples_columns(headings, 10);
}

/* Print a row, and return the answer: 0: no, 1: yes, 2: it cannot be told. a, b: NAN: none. */
static int put_row(const char *experiment, const char *entity, struct judged *j, double a, double b, struct tune_spread gains,
                   int *answer)
{
    int told = tune_told(&gains, j->limit), needed = told < 0 ? tune_pairs_needed(&gains, j->limit) : 0;
    double ratio = gains.count > 0 ? exp(j->highest ? gains.mean : -gains.mean) : NAN;
    *answer = told < 0 ? 2 : told;
    samples_text(experiment);
    samples_text(entity);
    samples_text(j->name);
    samples_number(a, false, 6);
    samples_number(b, false, 6);
    samples_number(ratio, false, 4);
    samples_number(gains.count, true, 6);
    samples_number(tune_below(&gains, j->limit), false, 3);
    samples_text(answers[*answer]);
    samples_number(needed > 0 ? needed - gains.count : NAN, true, 7);
    if (told < 0 && j->most_needed >= 0)
        j->most_needed = needed == 0 ? -1 : needed - gains.count > j->most_needed ? needed - gains.count : j->most_needed;
    return samples_end_row();
}

/* The row for all entities of an experiment, if they are several. */
static int put_all(struct judged *j)
{
    int answer = 0, code = 0, most = j->most_needed;
    if (j->entities > 1)
        code = put_row(j->experiment, "(all)", j, NAN, NAN, tune_spread_of(j->gains, j->gain_count), &answer);
    j->most_needed = most;
    j->all_worse = j->all_worse || answer == 1;
    j->gain_count = j->entities = 0;
    return code;
}

int regression_put(const char *experiment, const char *entity, const char *property, double *const sides[2], const int counts[2])
{
    struct judged *j = regression.all;
    int pairs = counts[0] < counts[1] ? counts[0] : counts[1], n = 0, answer;
    while (strcmp(j->name, property))
        j++;
    if (j->entities > 0 && j->experiment != experiment)
        TRY(put_all(j));
    for (int i = 0; i < pairs; i++) {
        double gain = tune_gain(sides[0][i], sides[1][i], j->highest);
        if (isnan(gain))
            continue;
        samples_fit(&j->gains, j->gain_count, sizeof *j->gains);
        j->gains[j->gain_count++] = gain;
        n++;
    }
    j->experiment = experiment;
    j->entities++;
    struct tune_spread a = tune_spread_of(sides[0], counts[0]), b = tune_spread_of(sides[1], counts[1]);
    struct tune_spread gains = tune_spread_of(j->gains + j->gain_count - n, n);
    TRY(put_row(experiment, entity, j, samples_middle(&a), samples_middle(&b), gains, &answer));
    j->answers[answer]++;
    return 0;
}

int regression_end(void)
{
    for (int i = 0; i < regression.count; i++)
        TRY(put_all(&regression.all[i]));
    return 0;
}

/* ---- the answer ---- */

void regression_tell(void)
{
    for (int i = 0; i < regression.count; i++) {
        const struct judged *j = &regression.all[i];
        fprintf(samples.out, "# %s of b worse by more than %g %%: %d yes, %d no, %d cannot tell yet%s\n", j->name,
                100 * regression.share, j->answers[1], j->answers[0], j->answers[2],
                j->all_worse ? "; all entities together: yes" : "");
        if (j->answers[2] > 0 && j->most_needed > 0)
            fprintf(samples.out, "# more_pairs: so many more repeats on both sides would tell, if they vary as these do (at most "
                                 "%d)\n", j->most_needed);
        else if (j->answers[2] > 0)
            fprintf(samples.out, "# no number of repeats would tell: b is worse by just about that much\n");
    }
    fprintf(samples.out, "# yes, no: with at least 95 %% probability, by Student's t over pairs of repeats (at least %d)\n", TUNE_PAIRS);
}

int regression_code(void)
{
    int untold = 0;
    for (int i = 0; i < regression.count; i++) {
        const struct judged *j = &regression.all[i];
        if (j->answers[1] > 0 || j->all_worse)
            return 1;
        untold += j->answers[2] + (j->answers[0] + j->answers[2] == 0); /* nothing to compare */
    }
    return untold == 0 ? 0 : CANNOT_TELL;
}
