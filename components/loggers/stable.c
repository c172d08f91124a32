/* stable.c - find the end of the warm-up, and a confidence interval for the steps after it. */
#include "loggers/stable.h"

#include <math.h>

#include "core/statistics.h"

void tune_stable_add(struct tune_stable *s, double tokens, double seconds)
{
    if (!(tokens > 0 && seconds > 0))
        return;
    s->steps_each = s->steps_each < 1 ? 1 : s->steps_each;
    if (s->count == TUNE_STABLE_ROOM) {
        for (int i = 0; i < s->count / 2; i++) {
            s->tokens[i] = s->tokens[2 * i] + s->tokens[2 * i + 1];
            s->seconds[i] = s->seconds[2 * i] + s->seconds[2 * i + 1];
        }
        s->count /= 2;
        s->steps_each *= 2;
    }
    s->tokens[s->count] = tokens + (s->partial > 0 ? s->tokens[s->count] : 0);
    s->seconds[s->count] = seconds + (s->partial > 0 ? s->seconds[s->count] : 0);
    if (++s->partial == s->steps_each) {
        s->count++;
        s->partial = 0;
    }
}

/* MSER: the number d of entries to leave out that gives the least sum (x - mean)^2 / (n - d)^2 over
 * the others. -1: the sum still falls at the last d that is allowed. */
static int warm_up(const struct tune_stable *s)
{
    int n = s->count, best = -1, most = n / 2 < n - TUNE_STABLE_LEAST ? n / 2 : n - TUNE_STABLE_LEAST;
    double shift = s->tokens[n - 1] / s->seconds[n - 1], sum = 0, squares = 0, least = INFINITY; /* subtract it, to keep
                                                                                                  * digits */
    for (int d = n - 1; d >= 0; d--) {
        double x = s->tokens[d] / s->seconds[d] - shift, m = n - d;
        sum += x;
        squares += x * x;
        double z = fmax(squares - sum * sum / m, 0) / (m * m);
        if (d <= most && z <= least) { /* if equal, leave out fewer */
            least = z;
            best = d;
        }
    }
    return best == most && most > 0 ? -1 : best;
}

struct tune_stable_speed tune_stable_speed(const struct tune_stable *s)
{
    struct tune_stable_speed v = {0, 0, 0, 0};
    int n = s->count, from = n < TUNE_STABLE_LEAST ? -1 : warm_up(s);
    double tokens = 0, seconds = 0, squares = 0, products = 0, before = 0, m = n - from;
    if (from < 0)
        return v;
    for (int i = from; i < n; i++) {
        tokens += s->tokens[i];
        seconds += s->seconds[i];
    }
    v.mean = tokens / seconds;
    for (int i = from; i < n; i++) { /* each entry's deviation, and its product with the one
                                      * before */
        double excess = s->tokens[i] - v.mean * s->seconds[i];
        squares += excess * excess;
        products += excess * before;
        before = excess;
    }
    double alike = squares > 0 ? fmin(fmax(products / squares, 0), .99) : 0;
    double effective = fmax(m * (1 - alike) / (1 + alike), 2);
    double error = sqrt(squares / (m - 1) / effective) / (seconds / m);
    v.half_width = tune_student_t(.05, (int)effective - 1) * error;
    v.warm_up = (int64_t)from * s->steps_each;
    v.steps = (int64_t)(n - from) * s->steps_each;
    return v;
}
