/* task_result.c - values and standard errors of a task and of a group.
 *
 * The error of a mean is s / sqrt(n), s with n - 1. Other errors are the deviation of bootstrap
 * draws, which are lm-eval's own: draw number i of a thousand is Python's random.choices. A group's
 * value is the mean of its tasks' values. by_size: weighted by their rows; its error then is
 * sqrt(sum((n - 1) n e^2) / (sum(n) - tasks) / sum(n)), else sqrt(sum(e^2)) / tasks. A group's
 * intervals are 1.96 errors on either side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "metrics/estimates.h"

enum { CHUNK = 1000 };
static const double NORMAL = 1.959963984540054; /* quantile of 0.975 */

/* The deviation (n - 1) of n numbers, each so many behind the one before. */
static double deviation(const double *x, int64_t n, int stride)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i * stride];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i * stride] - mean) * (x[i * stride] - mean);
    return sqrt(squares / (double)(n - 1));
}

/* rows [n][width] */
static int bootstrap(const struct task_metric *m, const double *rows, int64_t n, int width, double *error)
{
    const struct tune_score *score = tune_task_score_of(m->kind);
    int draws = tune_task_metrics[m->kind].draws, chunk = draws < CHUNK ? draws : CHUNK;
    double *values = tune_zeroed((size_t)draws, sizeof *values, "bootstrap draws");
    struct python_random r;
    TRY(values ? 0 : -1);
    for (int d = 0; d < draws; d++) {
        double sums[TASK_SUMS] = {0};
        if (d % chunk == 0)
            tune_python_random_seed(&r, (uint64_t)(d / chunk));
        for (int64_t i = 0; i < n; i++) {
            const double *row = rows + (int64_t)(tune_python_random_uniform(&r) * (double)n) * width;
            for (int k = 0; k < width; k++)
                sums[k] += row[k];
        }
        values[d] = score->value(sums, 0);
    }
    *error = deviation(values, draws, 1);
    free(values);
    return 0;
}

/* Value, interval and lm-eval's error on one side. rows [n][width] are its sums. */
static int sum_side(const struct task *t, const struct task_metric *m, const double *rows, uint64_t seed, struct tune_estimate *e)
{
    const struct tune_score *score = tune_task_score_of(m->kind);
    int width = tune_score_width(score, 0);
    TRY(tune_score_estimate(score, rows, t->count, 0, seed, e));
    e->error = NAN;
    if (t->count > 1 && tune_task_metrics[m->kind].plain)
        e->error = deviation(rows, t->count, width) / sqrt((double)t->count);
    return t->count > 1 && tune_task_metrics[m->kind].draws ? bootstrap(m, rows, t->count, width, &e->error) : 0;
}

static int sum_up(struct task *t, int f, int at, int sides, uint64_t seed)
{
    const struct task_metric *m = &t->metrics[at];
    const struct tune_score *score = tune_task_score_of(m->kind);
    struct task_result *result = &t->results[f * t->metric_count + at];
    int width = tune_score_width(score, 0), status = 0;
    double *rows[TASK_SIDES] = {NULL};
    for (int side = 0; side < sides && status == 0; side++) {
        rows[side] = tune_zeroed((size_t)t->count * (size_t)width, sizeof **rows, "scores");
        status = rows[side] ? 0 : -1;
        for (int64_t i = 0; i < t->count && status == 0; i++)
            memcpy(rows[side] + i * width, t->questions[i].scores[side] + (f * t->metric_count + at) * TASK_SUMS, (size_t)width * sizeof **rows);
        status = status == 0 ? sum_side(t, m, rows[side], seed, &result->side[side]) : -1;
    }
    if (sides > 1 && status == 0)
        status = tune_score_compare(score, rows[1], rows[0], t->count, 0, seed, &result->compared);
    free(rows[0]);
    free(rows[1]);
    return status;
}

int tune_task_sum_up(struct task *t, int sides, uint64_t seed)
{
    t->results = tune_task_take(t, (size_t)t->filter_count * (size_t)t->metric_count * sizeof *t->results);
    TRY(t->results ? 0 : -1);
    for (int f = 0; f < t->filter_count; f++)
        for (int m = 0; m < t->metric_count; m++)
            TRY(sum_up(t, f, m, sides, seed));
    return 0;
}

/* ---- groups ---- */
bool tune_task_group_has(const struct tune_tasks *all, int group, int task)
{
    for (int g = all->tasks[task].group; g >= 0; g = all->groups[g].parent)
        if (g == group)
            return true;
    return false;
}

/* The place of a filter and metric in a task; false: it has none. */
static bool place_in(const struct task *t, enum task_metric_kind kind, const char *filter, int *f, int *m)
{
    for (*f = 0; *f < t->filter_count; (*f)++)
        for (*m = 0; *m < t->metric_count; (*m)++)
            if (t->metrics[*m].kind == kind && !strcmp(t->filters[*f].name, filter))
                return true;
    return false;
}

/* Tasks of a group are independent: the squares of their errors add up. */
static void add_difference(struct tune_comparison *c, const struct tune_comparison *of, double share)
{
    double error = share * of->difference.error;
    c->difference.error += error * error;
    c->wins += of->wins;
    c->losses += of->losses;
    c->ties += of->ties;
    c->mcnemar = of->mcnemar;
}

static void set_interval(struct tune_estimate *e)
{
    e->low = e->value - NORMAL * e->error;
    e->high = e->value + NORMAL * e->error;
}

static void compare_means(struct task_result *r)
{
    struct tune_comparison *c = &r->compared;
    c->difference.value = r->side[0].value - r->side[1].value;
    c->difference.error = sqrt(c->difference.error);
    set_interval(&c->difference);
    c->p = c->mcnemar ? tune_mcnemar(c->losses, c->wins) : erfc(fabs(c->difference.value) / c->difference.error / sqrt(2));
}

bool tune_task_group_mean(const struct tune_tasks *all, int group, int mean, const char *filter, struct task_result *result, int64_t *rows)
{
    bool by_size = all->groups[group].means[mean].by_size;
    int tasks = 0, f, m;
    *rows = 0;
    *result = (struct task_result){0};
    for (int pass = 0; pass < 2; pass++) /* first their number and rows, then their shares */
        for (int i = 0; i < all->count; i++) {
            const struct task *t = &all->tasks[i];
            if (!tune_task_group_has(all, group, i) || !place_in(t, all->groups[group].means[mean].kind, filter, &f, &m))
                continue;
            const struct task_result *of = &t->results[f * t->metric_count + m];
            double n = (double)t->count;
            if (pass == 0) {
                *rows += t->count;
                tasks++;
            } else
                add_difference(&result->compared, &of->compared, by_size ? n / (double)*rows : 1. / tasks);
            for (int side = 0; side < all->sides && pass == 1; side++) {
                double e = of->side[side].error;
                result->side[side].value += of->side[side].value * (by_size ? n : 1);
                result->side[side].error += by_size ? (n - 1) * e * e * n : e * e;
            }
        }
    for (int side = 0; side < all->sides && tasks > 0; side++) {
        struct tune_estimate *e = &result->side[side];
        e->value /= by_size ? (double)*rows : tasks;
        e->error = by_size ? sqrt(e->error / ((double)*rows - tasks) / (double)*rows) : sqrt(e->error) / tasks;
        set_interval(e);
    }
    if (tasks > 0 && all->sides > 1)
        compare_means(result);
    return tasks > 0;
}
