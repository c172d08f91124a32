/* trend.c - the smoothed loss, its lowest value, and whether it rose above that. */
#include "loggers/trend.h"

#include <math.h>

static const double rise = 1.5, far_rise = 4;
static const double apart = 6, far_apart = 2.5; /* standard errors */
static const double exact_rise = 3, exact_apart = 4, exact_far_apart = 1.5;
static const double guess = 12, guess_apart = 1.5; /* nats; standard errors */
enum { LEAST = 10 };                            /* steps of a mean to compare with */

/* The last n losses. */
static struct tune_trend_mean last_of(const struct tune_trend *t, int n)
{
    struct tune_trend_mean m = {.count = n};
    double sum = 0, squares = 0;
    for (int i = 1; i <= n; i++)
        sum += t->last[(t->count - i) % TUNE_TREND_STEPS];
    m.mean = sum / n;
    for (int i = 1; i <= n; i++) {
        double d = t->last[(t->count - i) % TUNE_TREND_STEPS] - m.mean;
        squares += d * d;
    }
    m.variance = n > 1 ? squares / (n - 1) : 0;
    return m;
}

static int fewer(int64_t n)
{
    return n < TUNE_TREND_STEPS ? (int)n : TUNE_TREND_STEPS;
}

/* True if two means differ by more than the steps vary. */
static bool are_apart(const struct tune_trend *t, struct tune_trend_mean a, struct tune_trend_mean b)
{
    double of_b = b.count > 1 ? b.variance / b.count : a.variance; /* of one step it is not known */
    double more = t->count > 10 * LEAST ? 2 * sqrt(log((double)t->count / LEAST)) - 3 : 0;
    return a.mean - b.mean > (apart + (more > 0 ? more : 0)) * sqrt(a.variance / a.count + of_b);
}

/* True if the smoothed loss is far above the start. */
static bool is_far(const struct tune_trend *t)
{
    const struct tune_trend_mean *a = &t->now, *b = &t->first;
    double start = b->mean > t->one ? b->mean : t->one;
    double errors = a->mean > guess ? guess_apart : far_apart;
    return t->count >= LEAST && a->mean > far_rise * start &&
           a->mean - b->mean > errors * sqrt(a->variance / a->count + b->variance / b->count);
}

/* True if every step since step 1 is far above it, and worse than a guess. */
static bool all_far(const struct tune_trend *t, int n)
{
    for (int i = 1; i <= n; i++) {
        double loss = t->last[(t->count - i) % TUNE_TREND_STEPS];
        if (loss <= guess || loss <= far_rise * t->one)
            return false;
    }
    return true;
}

/* True if the mean is above an exactly known start. */
static bool above_exact(const struct tune_trend *t, struct tune_trend_mean a)
{
    double errors = (a.mean - t->one) / sqrt(a.variance / a.count + 1e-30);
    return t->exact && t->count >= LEAST &&
           ((a.mean > rise * t->one && errors > exact_apart) || (a.mean > exact_rise * t->one && errors > exact_far_apart));
}

/* Look at the losses: whether one of the rules holds. */
static bool look(struct tune_trend *t)
{
    int since = fewer(t->count - 1);
    struct tune_trend_mean one = {t->one, 0, 1}, after = last_of(t, since);
    bool above = t->now.mean > rise * t->lowest.mean, above_one = after.mean > rise * t->one;
    t->calm = above ? t->calm : t->count;
    t->calm_one = above_one ? t->calm_one : t->count;
    t->by_one = false;
    if ((above && t->now.mean > t->first.mean && are_apart(t, t->now, t->lowest)) || is_far(t))
        return true;
    t->by_one = (above_one && t->count >= LEAST && are_apart(t, after, one)) || all_far(t, since) || above_exact(t, after);
    return t->by_one;
}

int tune_trend_add(struct tune_trend *t, double loss)
{
    t->one = t->count == 0 ? loss : t->one;
    t->own = t->own || loss < 0;
    t->last[t->count++ % TUNE_TREND_STEPS] = loss;
    t->now = last_of(t, fewer(t->count));
    if (t->count <= TUNE_TREND_FIRST) {
        t->first = t->lowest = t->now;
        t->lowest_at = t->calm = t->calm_one = t->count;
        return 0;
    }
    bool by_one = t->by_one, rose = look(t) && !t->own;
    int change = 0;
    if (!t->rose && rose) {
        t->rose = true;
        t->was = t->by_one ? t->one : t->lowest.mean;
        t->was_at = t->by_one ? 1 : t->lowest_at;
        t->back = t->by_one ? rise * t->one : t->first.mean;
        change = 1;
    } else if (t->rose) {
        t->rose = !t->own && (rose || t->now.mean > t->back);
        t->by_one = by_one;
        change = t->rose ? 0 : -1;
    }
    if (t->count >= LEAST && t->now.mean < t->lowest.mean) {
        t->lowest = t->now;
        t->lowest_at = t->count;
    }
    return change;
}

int64_t tune_trend_good(const struct tune_trend *t)
{
    bool one = t->rose && t->by_one;
    /* the last calm mean may have losses that rose already */
    int64_t calm = (one ? t->calm_one : t->calm) - TUNE_TREND_STEPS, least = one ? 1 : t->lowest_at;
    return calm > least ? calm : least;
}
