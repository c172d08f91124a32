/* task_result.c - values and standard errors of a task and of a group.
 *
 * The error of a mean is s / sqrt(n), s with n - 1. Other errors are the deviation of bootstrap
 * draws, which are lm-eval's own: draw number i of a thousand is Python's random.choices. A group's
 * value is the mean of its tasks' values. by_size: weighted by their rows; its error then is
 * sqrt(sum((n - 1) n e^2) / (sum(n) - tasks) / sum(n)), else sqrt(sum(e^2)) / tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "metrics/scores.h"

enum { CHUNK = 1000 };

static double value_of(const struct task_metric *m, const double *sums, int64_t n)
{
    switch (m->kind) {
    case TASK_PERPLEXITY: return exp(-sums[0] / (double)n);
    case TASK_F1: return sums[0] > 0 ? 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]) : 0;
    case TASK_BLEU: case TASK_CHRF: return tune_score_value(tune_score_find(tune_task_metrics[m->kind].name), sums, 0);
    default: return sums[0] / (double)n;
    }
}

static int width_of(const struct task_metric *m)
{
    bool corpus = m->kind == TASK_BLEU || m->kind == TASK_CHRF;
    return corpus ? tune_score_width(tune_score_find(tune_task_metrics[m->kind].name), 0) : m->kind == TASK_F1 ? 3 : 1;
}

/* The deviation (n - 1) of numbers. */
static double deviation(const double *x, int64_t n)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1));
}

/* rows [n][width] */
static int bootstrap(const struct task_metric *m, const double *rows, int64_t n, int width, double *error)
{
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
        values[d] = value_of(m, sums, n);
    }
    *error = deviation(values, draws);
    free(values);
    return 0;
}

static int sum_up(struct task *t, int f, int at)
{
    const struct task_metric *m = &t->metrics[at];
    int width = width_of(m);
    double sums[TASK_SUMS] = {0}, *rows = tune_zeroed((size_t)t->count * (size_t)width, sizeof *rows, "scores");
    int status = 0;
    TRY(rows ? 0 : -1);
    for (int64_t i = 0; i < t->count; i++)
        for (int k = 0; k < width; k++) {
            rows[i * width + k] = t->questions[i].scores[(f * t->metric_count + at) * TASK_SUMS + k];
            sums[k] += rows[i * width + k];
        }
    t->values[f][at] = value_of(m, sums, t->count);
    t->errors[f][at] = NAN;
    if (t->count > 1 && tune_task_metrics[m->kind].drawn)
        status = bootstrap(m, rows, t->count, width, &t->errors[f][at]);
    else if (t->count > 1)
        t->errors[f][at] = deviation(rows, t->count) / sqrt((double)t->count);
    free(rows);
    return status;
}

int tune_task_sum_up(struct task *t)
{
    for (int f = 0; f < t->filter_count; f++)
        for (int m = 0; m < t->metric_count; m++)
            TRY(sum_up(t, f, m));
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

bool tune_task_group_mean(const struct tune_tasks *all, int group, int mean, const char *filter, double *value, double *error, int64_t *rows)
{
    bool by_size = all->groups[group].means[mean].by_size;
    double weights = 0, sum = 0, squares = 0;
    int tasks = 0, f, m;
    *rows = 0;
    for (int i = 0; i < all->count; i++) {
        const struct task *t = &all->tasks[i];
        if (!tune_task_group_has(all, group, i) || !place_in(t, all->groups[group].means[mean].kind, filter, &f, &m))
            continue;
        double n = (double)t->count, e = t->errors[f][m];
        sum += t->values[f][m] * (by_size ? n : 1);
        weights += by_size ? n : 1;
        squares += by_size ? (n - 1) * e * e * n : e * e;
        *rows += t->count;
        tasks++;
    }
    *value = sum / weights;
    *error = by_size ? sqrt(squares / ((double)*rows - tasks) / (double)*rows) : sqrt(squares) / tasks;
    return tasks > 0;
}
