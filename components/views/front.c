/* front.c - the Pareto front of points: those that no other point beats. */
#include <stdlib.h>

#include "core/error.h"
#include "views/scale.h"

struct candidate {
    double x, y; /* more is better */
    int64_t at;
};

static int best_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->x != b->x ? (a->x < b->x) - (a->x > b->x) : (a->y < b->y) - (a->y > b->y);
}

int tune_plot_front(const double *x, const double *y, int64_t count, int x_best, int y_best, bool *front)
{
    struct candidate *c = malloc((size_t)(count + 1) * sizeof *c);
    int64_t n = 0;
    if (!c)
        return tune_error_cannot("no memory for the Pareto front of %lld points", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        front[i] = false;
        if (tune_drawable(x[i]) && tune_drawable(y[i]))
            c[n++] = (struct candidate){x_best * x[i], y_best * y[i], i};
    }
    qsort(c, (size_t)n, sizeof *c, best_first);
    for (int64_t i = 0, last = -1; i < n; i++) /* last: the point of the front with the best y so far */
        if (last < 0 || c[i].y > c[last].y || (c[i].y == c[last].y && c[i].x == c[last].x)) {
            front[c[i].at] = true;
            last = i;
        }
    free(c);
    return 0;
}
