/* minimize.c - L-BFGS with projection on the box. A variable at its bound whose gradient points
 * outwards is held for the step. */
#include "sweeps/surrogate/minimize.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 8 };

struct history {
    double *step, *change; /* [PAIRS][n] differences of x, and of the gradient */
    double curvature[PAIRS];
    int count, n;
};

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* direction = - (approximate inverse Hessian) * gradient: the two loops of algorithm 7.4. */
static void find_direction(const struct history *h, const double *gradient, const bool *held,
                           double *direction)
{
    double weight[PAIRS];
    int n = h->n, first = h->count > PAIRS ? h->count - PAIRS : 0;
    for (int i = 0; i < n; i++)
        direction[i] = held[i] ? 0 : -gradient[i];
    for (int k = h->count - 1; k >= first; k--) {
        const double *s = h->step + k % PAIRS * n, *y = h->change + k % PAIRS * n;
        weight[k % PAIRS] = dot(s, direction, n) / h->curvature[k % PAIRS];
        for (int i = 0; i < n; i++)
            direction[i] -= weight[k % PAIRS] * y[i];
    }
    if (h->count > 0) {
        const double *y = h->change + (h->count - 1) % PAIRS * n;
        double scale = h->curvature[(h->count - 1) % PAIRS] / dot(y, y, n);
        for (int i = 0; i < n; i++)
            direction[i] *= scale;
    }
    for (int k = first; k < h->count; k++) {
        const double *s = h->step + k % PAIRS * n, *y = h->change + k % PAIRS * n;
        double back = dot(y, direction, n) / h->curvature[k % PAIRS];
        for (int i = 0; i < n; i++)
            direction[i] += (weight[k % PAIRS] - back) * s[i];
    }
    for (int i = 0; i < n; i++)
        if (held[i])
            direction[i] = 0;
}

static void remember(struct history *h, const double *from, const double *to, const double *before,
                     const double *after)
{
    double *s = h->step + h->count % PAIRS * h->n, *y = h->change + h->count % PAIRS * h->n;
    for (int i = 0; i < h->n; i++) {
        s[i] = to[i] - from[i];
        y[i] = after[i] - before[i];
    }
    double curvature = dot(s, y, h->n);
    if (curvature > 1e-10 * dot(y, y, h->n))
        h->curvature[h->count++ % PAIRS] = curvature;
}

/* Hold the variables that would leave the box. Returns the largest slope of the others. */
static double hold(const double *x, const double *gradient, const double *low, const double *high,
                   int n, bool *held)
{
    double most = 0;
    for (int i = 0; i < n; i++) {
        held[i] = (x[i] <= low[i] && gradient[i] > 0) || (x[i] >= high[i] && gradient[i] < 0);
        if (!held[i])
            most = fmax(most, fabs(gradient[i]));
    }
    return most;
}

double tune_minimize(double (*value)(void *context, const double *x, double *gradient),
                     void *context, double *x, const double *low, const double *high, int n,
                     int steps)
{
    double gradient[TUNE_MINIMIZE_MOST], next[TUNE_MINIMIZE_MOST], after[TUNE_MINIMIZE_MOST],
        direction[TUNE_MINIMIZE_MOST];
    bool held[TUNE_MINIMIZE_MOST];
    double *pairs = calloc((size_t)n * PAIRS * 2, sizeof *pairs);
    struct history h = {.step = pairs, .change = pairs ? pairs + n * PAIRS : NULL, .n = n};
    double best = value(context, x, gradient);
    for (int k = 0; pairs && k < steps && isfinite(best); k++) {
        if (hold(x, gradient, low, high, n, held) < 1e-6)
            break;
        find_direction(&h, gradient, held, direction);
        double slope = dot(gradient, direction, n), length = sqrt(dot(direction, direction, n));
        if (!(slope < 0)) { /* the history misleads: take the gradient */
            h.count = 0;
            find_direction(&h, gradient, held, direction);
            slope = dot(gradient, direction, n);
            length = sqrt(dot(direction, direction, n));
        }
        /* the variables are logarithms: a longer first step is a jump */
        double size = h.count == 0 ? fmin(1, 1 / length) : fmin(1, 4 / length), found = INFINITY;
        int tries = 0;
        for (; tries < 30; tries++, size /= 3) {
            for (int i = 0; i < n; i++)
                next[i] = fmin(fmax(x[i] + size * direction[i], low[i]), high[i]);
            found = value(context, next, after);
            if (isfinite(found) && found <= best + 1e-4 * size * slope)
                break;
        }
        if (tries == 30)
            break;
        double gained = best - found;
        remember(&h, x, next, gradient, after);
        memcpy(x, next, (size_t)n * sizeof *x);
        memcpy(gradient, after, (size_t)n * sizeof *x);
        best = found;
        if (gained < 1e-9 * (1 + fabs(best)))
            break;
    }
    free(pairs);
    return best;
}
