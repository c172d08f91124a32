/* acquisition.c - models of the targets and of validity, and the expected improvement. */
#include "sweeps/surrogate/acquisition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/try.h"

enum {
    STARTS = 2, STEPS = 30, /* of a fit: the models are fitted anew for each point */
    DRAWS = 32,             /* for the condition */
    JOINT_DRAWS = 1000, JOINT_POINTS = 256, JOINT_ROWS = 64, /* for the chance */
};

static int no_memory(void)
{
    return tune_error_no_memory("a search");
}

static bool has_values(enum tune_search_state state)
{
    return state == TUNE_SEARCH_VALID || state == TUNE_SEARCH_OUTSIDE;
}

/* ---- models ---- */

/* Rows of a model, with room for all rows of the search. */
struct model_rows {
    double *x, *y;
    int count;
};

static struct tune_surrogate *fit_rows(const struct tune_search_options *o, const struct tune_search_rows *rows,
                                       const struct model_rows *m, bool logarithm, const double *parameters)
{
    struct tune_surrogate_options fit = {.dimensions = rows->dimensions, .categories = rows->categories,
                                         .logarithm = logarithm, .priors = true, .starts = STARTS, .steps = STEPS,
                                         .seed = o->seed, .parameters = parameters};
    return tune_surrogate_fit(&fit, m->x, m->y, m->count);
}

static void add_row(const struct tune_search_rows *rows, struct model_rows *m, int row, double y)
{
    memcpy(m->x + (long)m->count * rows->dimensions, rows->points + (long)row * rows->dimensions,
           (size_t)rows->dimensions * sizeof *m->x);
    m->y[m->count++] = y;
}

/* Add pending rows with the values that the model expects, and make the model again with the same
 * parameters. */
static int imagine(const struct tune_search_options *o, const struct tune_search_rows *rows, struct model_rows *m,
                   bool logarithm, struct tune_surrogate **model)
{
    int before = m->count;
    for (int i = 0; i < rows->count; i++) {
        struct tune_prediction p;
        if (rows->states[i] != TUNE_SEARCH_PENDING)
            continue;
        TRY(tune_surrogate_predict(*model, rows->points + (long)i * rows->dimensions, 1, &p));
        double value = logarithm ? exp(p.mean) : p.mean;
        if (isfinite(value) && (!logarithm || value > 0))
            add_row(rows, m, i, value);
    }
    if (m->count == before)
        return 0;
    struct tune_surrogate *more = fit_rows(o, rows, m, logarithm, tune_surrogate_parameters(*model));
    if (!more)
        return -1;
    tune_surrogate_free(*model);
    *model = more;
    return 0;
}

/* True if the row counts as valid for the model of validity. */
static bool counts_as_valid(const struct tune_search_options *o, enum tune_search_state state)
{
    return state == TUNE_SEARCH_VALID || (state == TUNE_SEARCH_OUTSIDE && o->within);
}

/* Fit the model of a value; of -1: of validity, which is 1 or 0. */
static int fit_target(const struct tune_search_options *o, const struct tune_search_rows *rows, int target,
                      struct model_rows *m, struct tune_surrogate **model, bool *logarithm)
{
    *logarithm = target >= 0;
    m->count = 0;
    for (int i = 0; i < rows->count; i++) {
        double value = target < 0 ? counts_as_valid(o, rows->states[i]) : rows->values[i * TUNE_SEARCH_VALUES + target];
        if (rows->states[i] == TUNE_SEARCH_PENDING || (target >= 0 && !has_values(rows->states[i])))
            continue;
        *logarithm = *logarithm && value > 0;
        add_row(rows, m, i, value);
    }
    if (!(*model = fit_rows(o, rows, m, *logarithm, NULL)))
        return -1;
    return rows->measured_only ? 0 : imagine(o, rows, m, *logarithm, model);
}

/* ---- what is best so far ---- */

static int compare_first(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Reduce points[count][2], where larger is better, to the front. The corner is below it by a tenth
 * of the points' range. */
static void find_front(struct tune_acquisition *a, int count)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, most = -INFINITY;
    qsort(a->front, (size_t)count, 2 * sizeof *a->front, compare_first);
    for (int i = 0; i < count; i++)
        for (int t = 0; t < 2; t++) {
            low[t] = fmin(low[t], a->front[i * 2 + t]);
            high[t] = fmax(high[t], a->front[i * 2 + t]);
        }
    int left = count; /* the front gathers at the end of the array */
    for (int i = count - 1; i >= 0; i--)
        if (a->front[i * 2 + 1] > most) {
            most = a->front[i * 2 + 1];
            left--;
            memmove(a->front + left * 2, a->front + i * 2, 2 * sizeof *a->front);
        }
    a->front_count = count - left;
    memmove(a->front, a->front + left * 2, (size_t)a->front_count * 2 * sizeof *a->front);
    a->worst[0] = a->front[0] - (high[0] - low[0]) / 10;
    a->worst[1] = a->front[a->front_count * 2 - 1] - (high[1] - low[1]) / 10;
}

static double sign_of(const struct tune_search_options *o, int target)
{
    return o->maximize[target] ? 1 : -1;
}

/* Find the best value or the front, as the models see the valid rows. */
static int find_best(struct tune_acquisition *a, const struct tune_search_rows *rows)
{
    int count = 0;
    if (!(a->front = malloc(((size_t)rows->count + 1) * 2 * sizeof *a->front)))
        return no_memory();
    a->best = -INFINITY;
    for (int i = 0; i < rows->count; i++) {
        struct tune_prediction p;
        if (rows->states[i] != TUNE_SEARCH_VALID)
            continue;
        for (int t = 0; t < a->options->targets; t++) {
            TRY(tune_surrogate_predict(a->targets[t], rows->points + (long)i * rows->dimensions, 1, &p));
            a->front[count * 2 + t] = sign_of(a->options, t) * p.mean;
        }
        a->best = fmax(a->best, a->front[count * 2]);
        count++;
    }
    if (a->options->targets == 2 && count > 0)
        find_front(a, count);
    return 0;
}

int tune_acquisition_make(struct tune_acquisition *a, const struct tune_search_options *options,
                          const struct tune_search_rows *rows)
{
    size_t n = (size_t)rows->count + 1;
    struct model_rows m = {malloc(n * (size_t)rows->dimensions * sizeof *m.x), malloc(n * sizeof *m.y), 0};
    int code = m.x && m.y ? 0 : no_memory();
    bool all_valid = true, plain;
    *a = (struct tune_acquisition){.options = options};
    for (int i = 0; i < rows->count; i++)
        all_valid = all_valid && (counts_as_valid(options, rows->states[i]) || rows->states[i] == TUNE_SEARCH_PENDING);
    for (int t = 0; t < options->targets + options->others && code == 0; t++)
        code = fit_target(options, rows, t, &m, &a->targets[t], &a->logarithm[t]);
    if (code == 0 && !all_valid)
        code = fit_target(options, rows, -1, &m, &a->valid, &plain);
    free(m.x);
    free(m.y);
    return code < 0 ? -1 : find_best(a, rows);
}

void tune_acquisition_free(struct tune_acquisition *a)
{
    for (int t = 0; t < TUNE_SEARCH_VALUES; t++)
        tune_surrogate_free(a->targets[t]);
    tune_surrogate_free(a->valid);
    free(a->front);
    *a = (struct tune_acquisition){0};
}

/* ---- scores ---- */

static double density(double z)
{
    return exp(-z * z / 2) / 2.50662827463100050242;
}

static double below(double z)
{
    return erfc(-z / 1.41421356237309504880) / 2;
}

/* Expected gain over a limit, in units of the deviation: z is the distance of the mean above it. */
static double gain(double z)
{
    return density(z) + z * below(z);
}

/* Its logarithm. Far below the limit the two terms cancel, and it is close to density / z^2. */
static double log_gain(double z)
{
    return z > -5 ? log(gain(z)) : -z * z / 2 - 0.91893853320467274178 - 2 * log(-z);
}

/* Expected growth of the area above the front, for independent normal targets. */
static double growth(const struct tune_acquisition *a, const double *mean, const double *deviation)
{
    double sum = 0, x = a->worst[0], above = deviation[0] * gain((mean[0] - x) / deviation[0]);
    for (int i = 0; i <= a->front_count; i++) {
        bool last = i == a->front_count;
        double height = last ? a->worst[1] : a->front[i * 2 + 1], next = 0;
        if (!last)
            next = deviation[0] * gain((mean[0] - a->front[i * 2]) / deviation[0]);
        sum += (above - next) * deviation[1] * gain((mean[1] - height) / deviation[1]);
        above = next;
    }
    return sum;
}

static void score_targets(const struct tune_acquisition *a, const struct tune_prediction *const *p, int count, double *scores)
{
    for (int i = 0; i < count; i++) {
        double mean[TUNE_SEARCH_TARGETS], deviation[TUNE_SEARCH_TARGETS];
        for (int t = 0; t < a->options->targets; t++) {
            mean[t] = sign_of(a->options, t) * p[t][i].mean;
            deviation[t] = fmax(p[t][i].deviation, 1e-12);
        }
        scores[i] = a->options->targets == 2 ? log(fmax(growth(a, mean, deviation), 1e-300))
                                             : log(deviation[0]) + log_gain((mean[0] - a->best) / deviation[0]);
    }
}

/* Add the logarithm of the share of draws that meet the condition. The draws are the same for all
 * points, and independent in the values. */
static int score_condition(const struct tune_acquisition *a, const struct tune_prediction *const *p, int count, double *scores)
{
    const struct tune_search_options *o = a->options;
    int width = o->targets + o->others;
    double noise[TUNE_SEARCH_VALUES], values[TUNE_SEARCH_VALUES];
    for (int t = 0; t < width; t++)
        noise[t] = tune_surrogate_noise(a->targets[t]);
    for (int i = 0; i < count; i++) {
        int met = 0;
        for (int k = 0; k < DRAWS; k++) {
            for (int t = 0; t < width; t++) {
                double deviation = sqrt(p[t][i].deviation * p[t][i].deviation + noise[t] * noise[t]);
                values[t] = p[t][i].mean + deviation * tune_random_normal(o->seed, (uint64_t)t, (uint64_t)k);
                values[t] = a->logarithm[t] ? exp(values[t]) : values[t];
            }
            int holds = o->within(o->context, values);
            TRY(holds);
            met += holds;
        }
        scores[i] += log(fmax((double)met / DRAWS, 1e-12));
    }
    return 0;
}

/* Add the logarithm of the probability that each point is valid. */
static void score_validity(const struct tune_acquisition *a, const struct tune_prediction *p, int count, double *scores)
{
    double noise = tune_surrogate_noise(a->valid);
    for (int i = 0; i < count; i++) {
        double deviation = sqrt(p[i].deviation * p[i].deviation + noise * noise + 1e-6);
        scores[i] += log(fmax(below((p[i].mean - 0.5) / deviation), 1e-12));
    }
}

int tune_acquisition_score(const struct tune_acquisition *a, const double *points, int count, double *scores)
{
    struct tune_prediction *all = malloc(((size_t)count + 1) * TUNE_SEARCH_VALUES * sizeof *all);
    const struct tune_prediction *each[TUNE_SEARCH_VALUES];
    int code = all ? 0 : no_memory();
    for (int t = 0; t < a->options->targets + a->options->others && code == 0; t++) {
        each[t] = all + (long)t * count;
        code = tune_surrogate_predict(a->targets[t], points, count, all + (long)t * count);
    }
    if (code == 0)
        score_targets(a, each, count, scores);
    if (code == 0 && a->options->within)
        code = score_condition(a, each, count, scores);
    if (code == 0 && a->valid)
        code = tune_surrogate_predict(a->valid, points, count, all);
    if (code == 0 && a->valid)
        score_validity(a, all, count, scores);
    free(all);
    return code;
}

/* ---- the chance of something better ---- */

/* A point or row, and how good it is. */
struct ranked_point {
    const double *x;
    double score;
};

static int higher_first(const void *a, const void *b)
{
    const struct ranked_point *p = a, *q = b;
    return p->score != q->score ? (p->score < q->score) - (p->score > q->score) : (p->x > q->x) - (p->x < q->x);
}

/* Points to draw at: rows first, then others. */
struct joint {
    double *x;                           /* [rows + count][dimensions] */
    int rows, count;
    double *values[TUNE_SEARCH_VALUES];  /* [JOINT_DRAWS][rows + count] */
    double *valid;                       /* the same; NULL: all are */
};

/* Copy the best of the ranked points. Returns their number. */
static int take_best(struct ranked_point *ranked, int count, int most, double *x, int dimensions)
{
    qsort(ranked, (size_t)count, sizeof *ranked, higher_first);
    count = count < most ? count : most;
    for (int i = 0; i < count; i++)
        memcpy(x + (long)i * dimensions, ranked[i].x, (size_t)dimensions * sizeof *x);
    return count;
}

/* Choose where to draw. */
static int choose_joint(const struct tune_acquisition *a, const struct tune_search_rows *rows, const double *points,
                        const double *scores, int count, struct joint *j)
{
    int d = rows->dimensions, n = 0;
    struct ranked_point *ranked = malloc(((size_t)count + (size_t)rows->count + 1) * sizeof *ranked);
    j->x = malloc((size_t)(JOINT_ROWS + JOINT_POINTS) * (size_t)d * sizeof *j->x);
    int code = ranked && j->x ? 0 : no_memory();
    for (int i = 0; i < rows->count && code == 0; i++) {
        struct tune_prediction p;
        if (rows->states[i] != TUNE_SEARCH_VALID)
            continue;
        code = tune_surrogate_predict(a->targets[0], rows->points + (long)i * d, 1, &p);
        ranked[n++] = (struct ranked_point){rows->points + (long)i * d, sign_of(a->options, 0) * p.mean};
    }
    if (code == 0) {
        j->rows = take_best(ranked, n, JOINT_ROWS, j->x, d);
        for (int i = 0; i < count; i++)
            ranked[i] = (struct ranked_point){points + (long)i * d, scores[i]};
        j->count = take_best(ranked, count, JOINT_POINTS, j->x + (long)j->rows * d, d);
    }
    free(ranked);
    return code;
}

static int draw_joint(const struct tune_acquisition *a, struct joint *j)
{
    const struct tune_search_options *o = a->options;
    int width = o->within ? o->targets + o->others : 1, all = j->rows + j->count;
    size_t size = (size_t)JOINT_DRAWS * (size_t)all * sizeof(double);
    for (int t = 0; t < width; t++) {
        if (!(j->values[t] = malloc(size)))
            return no_memory();
        TRY(tune_surrogate_draw(a->targets[t], j->x, all, o->seed, 64 + (uint64_t)t, JOINT_DRAWS, j->values[t]));
    }
    if (!a->valid)
        return 0;
    if (!(j->valid = malloc(size)))
        return no_memory();
    return tune_surrogate_draw(a->valid, j->x, all, o->seed, 63, JOINT_DRAWS, j->valid);
}

/* 1: in this draw the point is valid and meets the condition; 0; -1 with an error. at: its index in the
 * draws. */
static int is_wanted(const struct tune_acquisition *a, const struct joint *j, long at)
{
    const struct tune_search_options *o = a->options;
    double values[TUNE_SEARCH_VALUES];
    if (j->valid && j->valid[at] < 0.5)
        return 0;
    if (!o->within)
        return 1;
    for (int t = 0; t < o->targets + o->others; t++)
        values[t] = a->logarithm[t] ? exp(j->values[t][at]) : j->values[t][at];
    return o->within(o->context, values);
}

/* The value that is better than this one by the share. Both are as the model sees them. */
static double raise_by(const struct tune_acquisition *a, double value, double share)
{
    if (!a->logarithm[0])
        return value + share * fabs(value);
    return value + (a->options->maximize[0] ? log1p(share) : -log1p(-share));
}

/* 1: in draw d, a point is better than all rows by more than the share; 0; -1 with an error. */
static int is_passed(const struct tune_acquisition *a, const struct joint *j, int d, double share)
{
    double sign = sign_of(a->options, 0), best = -INFINITY;
    long first = (long)d * (j->rows + j->count);
    for (int i = 0; i < j->rows; i++)
        best = fmax(best, sign * j->values[0][first + i]);
    best = raise_by(a, best, share);
    for (long at = first + j->rows; at < first + j->rows + j->count; at++) {
        int wanted = sign * j->values[0][at] > best ? is_wanted(a, j, at) : 0;
        if (wanted)
            return wanted;
    }
    return 0;
}

int tune_acquisition_chance(const struct tune_acquisition *a, const struct tune_search_rows *rows, const double *points,
                            const double *scores, int count, double share, double *chance)
{
    struct joint j = {0};
    int code = choose_joint(a, rows, points, scores, count, &j), passed = 0;
    if (code == 0)
        code = draw_joint(a, &j);
    for (int d = 0; d < JOINT_DRAWS && code == 0; d++) {
        int found = is_passed(a, &j, d, share);
        code = found < 0 ? -1 : 0;
        passed += found > 0;
    }
    *chance = (double)passed / JOINT_DRAWS;
    free(j.x);
    free(j.valid);
    for (int t = 0; t < TUNE_SEARCH_VALUES; t++)
        free(j.values[t]);
    return code;
}
