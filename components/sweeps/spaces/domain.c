/* domain.c - values of a domain by index and back, draws, and whether one domain contains another.
 *
 * Steps of floats are ado's, which are numpy's: low + i*interval, rounded to 10 decimals by
 * scaling. There is no fused multiply-add, because the last bit is part of an entity's id. */
#include "sweeps/spaces/domain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- ranges in steps ---- */

static bool is_whole(const struct tune_value *v)
{
    return v->type == TUNE_VALUE_INT;
}

static double number(const struct tune_value *v)
{
    double n = 0;
    tune_value_number(v, &n);
    return n;
}

/* Value i of a range that is not all integers, before and after rounding. */
static double exact_step(const struct tune_domain *d, double i)
{
    volatile double up = i * number(&d->interval); /* volatile, so that it is not fused with the
                                                    * sum */
    return number(&d->low) + up;
}

static double step_at(const struct tune_domain *d, double i)
{
    return rint(exact_step(d, i) * 1e10) / 1e10;
}

static tune_index count_steps(const struct tune_domain *d)
{
    if (is_whole(&d->low) && is_whole(&d->high) && is_whole(&d->interval))
        return ((uint64_t)d->high.integer - (uint64_t)d->low.integer - 1) / (uint64_t)d->interval.integer + 1;
    double high = number(&d->high), count = floor((high - number(&d->low)) / number(&d->interval)) + 1;
    /* The quotient was rounded, so check the last values: neither the end nor a value rounded to it
     * belongs to the range. */
    while (count > 1 && (step_at(d, count - 1) >= high || exact_step(d, count - 1) == high))
        count--;
    return (tune_index)count;
}

static struct tune_value step_value(const struct tune_domain *d, tune_index i)
{
    if (is_whole(&d->low) && is_whole(&d->interval)) /* integers also if only the end is a float */
        return tune_value_int((int64_t)((uint64_t)d->low.integer + (uint64_t)i * (uint64_t)d->interval.integer));
    return tune_value_float(step_at(d, (double)i));
}

static int find_step(const struct tune_domain *d, const struct tune_value *value, tune_index *i)
{
    double n, at;
    if (!tune_value_number(value, &n) || !isfinite(n))
        return 0;
    if (is_whole(&d->low) && is_whole(&d->interval)) {
        int64_t whole = value->type == TUNE_VALUE_INT ? value->integer : fabs(n) < 0x1p63 ? (int64_t)n : INT64_MIN;
        at = 0;
        *i = whole < d->low.integer ? TUNE_INDEX_MAX : ((uint64_t)whole - (uint64_t)d->low.integer) / (uint64_t)d->interval.integer;
    } else {
        at = rint((n - number(&d->low)) / number(&d->interval)) - 1; /* or a neighbour, because
                                                                      * values are rounded */
        *i = at >= 0 && at < 0x1p53 ? (tune_index)at : 0;
        at = 2;
    }
    for (tune_index last = *i + (tune_index)at, count = count_steps(d); *i <= last && *i < count; ++*i) {
        struct tune_value there = step_value(d, *i);
        if (tune_value_equal(&there, value))
            return 1;
    }
    return 0;
}

/* ---- counting ---- */

tune_index tune_domain_size(const struct tune_domain *domain)
{
    switch (domain->type) {
    case TUNE_BINARY:
        return 2;
    case TUNE_DISCRETE:
        return domain->count ? (tune_index)domain->count : domain->has_range ? count_steps(domain) : 0;
    case TUNE_CATEGORICAL:
        return (tune_index)domain->count;
    default:
        return 0;
    }
}

const char *tune_index_text(tune_index i, char text[48])
{
    char *at = text + 47;
    *at = 0;
    do
        *--at = (char)('0' + (int)(i % 10));
    while ((i /= 10) > 0);
    return memmove(text, at, (size_t)(text + 48 - at));
}

void tune_domain_value(const struct tune_domain *domain, tune_index i, struct tune_value *value)
{
    *value = domain->type == TUNE_BINARY ? tune_value_bool(i > 0) : domain->count ? domain->values[i] : step_value(domain, i);
}

int tune_domain_find(const struct tune_domain *domain, const struct tune_value *value, tune_index *i)
{
    const struct tune_value binary[] = {tune_value_bool(false), tune_value_bool(true)};
    const struct tune_value *values = domain->type == TUNE_BINARY ? binary : domain->values;
    int count = domain->type == TUNE_BINARY ? 2 : domain->count;
    if (tune_domain_size(domain) == 0)
        return 0;
    if (count == 0)
        return find_step(domain, value, i);
    for (int k = 0; k < count; k++)
        if (tune_value_equal(&values[k], value)) {
            *i = (tune_index)k;
            return 1;
        }
    return 0;
}

static bool is_number(const struct tune_value *value)
{
    double n;
    return tune_value_number(value, &n) && !isnan(n);
}

bool tune_domain_has(const struct tune_domain *domain, const struct tune_value *value)
{
    tune_index i;
    if (tune_domain_size(domain))
        return tune_domain_find(domain, value, &i);
    switch (domain->type) {
    case TUNE_CONTINUOUS:
        return is_number(value) && (!domain->has_range ||
                                    (tune_value_compare(value, &domain->low) >= 0 && tune_value_compare(value, &domain->high) < 0));
    case TUNE_DISCRETE: /* an interval without a range has no first value */
        return is_number(value);
    default:
        return true;
    }
}

/* ---- drawing ---- */

/* The share of a normal distribution above z. */
static double above(double z)
{
    return 0.5 * erfc(z * 0.70710678118654752);
}

/* Find z in [a, b]: the fraction u of the probability in [a, b] is below z. Bisect 60 times. */
static double normal_between(double a, double b, double u)
{
    if (a + b < 0) /* mirror it, so that the upper tail loses no digits */
        return -normal_between(-b, -a, 1 - u);
    double from = above(a), wanted = from - u * (from - above(b));
    double low = fmax(a, -40), high = fmin(b, 40);
    for (int i = 0; i < 60; i++) {
        double middle = low + (high - low) / 2;
        if (above(middle) > wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Report a distribution whose values are all 30 or more deviations from its mean. Their weights
 * would be 0. */
static int refuse_far(const struct tune_domain *d)
{
    return tune_error_usage("normal of mean %g and std %g has nothing in its domain; change mean "
                            "or std, or the range", d->mean, d->deviation);
}

/* Draw from a long range whose step is far smaller than the deviation: the step with the same share
 * of the density below it. */
static int draw_dense(const struct tune_domain *d, double u, tune_index size, tune_index *i)
{
    double half = number(&d->interval) / d->deviation / 2, low = (number(&d->low) - d->mean) / d->deviation - half;
    double high = low + 2 * half * (double)size;
    if (low > 30 || high < -30)
        return refuse_far(d);
    double at = floor((normal_between(low, high, u) - low) / (2 * half));
    *i = at < 0 ? 0 : at >= (double)size ? size - 1 : (tune_index)at;
    return 0;
}

/* Choose the values of a grid that can have weight: all of a short grid, those near the mean of a
 * long one. False: there are too many. */
static bool find_weighty(const struct tune_domain *d, tune_index size, tune_index *from, tune_index *to)
{
    enum { LONG = 4096 };
    *from = 0;
    *to = size;
    if (d->count || size <= LONG)
        return true;
    double step = number(&d->interval), middle = (d->mean - number(&d->low)) / step, far = 38 * d->deviation / step;
    if (step < d->deviation / 10)
        return false;
    *to = middle + far < 0 ? 0 : middle + far + 1 < (double)size ? (tune_index)(middle + far) + 1 : size;
    *from = middle - far >= (double)size ? *to : middle > far ? (tune_index)(middle - far) : 0;
    return true;
}

int tune_domain_weigh(struct tune_domain *domain, struct tune_document *document)
{
    tune_index size = tune_domain_size(domain), from, to;
    struct tune_value value;
    double sum = 0, *sums;
    if (domain->probability != TUNE_NORMAL || size == 0 || !find_weighty(domain, size, &from, &to))
        return 0;
    if (!(sums = tune_document_take(document, (size_t)(to - from) * sizeof *sums)))
        return -1;
    for (tune_index k = from; k < to; k++) {
        tune_domain_value(domain, k, &value);
        double z = (number(&value) - domain->mean) / domain->deviation;
        sums[k - from] = sum += exp(-0.5 * z * z);
    }
    domain->sums = sums;
    domain->first = from;
    domain->summed = (int)(to - from);
    return 0;
}

/* Draw from a grid, weighted by the density at each value. */
static int draw_normal(const struct tune_domain *d, double u, tune_index size, tune_index *i)
{
    if (!d->sums)
        return draw_dense(d, u, size, i);
    if (d->summed == 0 || d->sums[d->summed - 1] < 1e-196) /* smallest density: smallest density:
                                                            * exp(-30^2/2) */
        return refuse_far(d);
    int low = 0, high = d->summed - 1;
    while (low < high) { /* the first value with a running sum above the number drawn */
        int middle = low + (high - low) / 2;
        if (d->sums[middle] > u * d->sums[d->summed - 1])
            high = middle;
        else
            low = middle + 1;
    }
    *i = d->first + (tune_index)low;
    return 0;
}

static int draw_continuous(const struct tune_domain *d, double u, struct tune_value *value)
{
    double low = d->has_range ? number(&d->low) : -INFINITY, high = d->has_range ? number(&d->high) : INFINITY, x;
    if (d->probability == TUNE_NORMAL) {
        double a = (low - d->mean) / d->deviation, b = (high - d->mean) / d->deviation;
        if (a > 30 || b < -30)
            return refuse_far(d);
        x = d->mean + d->deviation * normal_between(a, b, u);
    } else {
        if (!isfinite(low) || !isfinite(high))
            return tune_error_usage("a value cannot be drawn from a domain without two finite "
                                    "ends: give it a domainRange");
        x = low * (1 - u) + high * u;
    }
    x = fmax(x, low);
    *value = tune_value_float(x < high ? x : nextafter(high, -INFINITY));
    return 0;
}

int tune_domain_draw(const struct tune_domain *domain, double u, struct tune_value *value)
{
    tune_index size = tune_domain_size(domain), i;
    if (domain->type == TUNE_CONTINUOUS)
        return draw_continuous(domain, u, value);
    if (size == 0)
        return tune_error_usage("no value can be listed or drawn: the domain, of %s, names none; give "
                                "it values", tune_variable_name(domain));
    i = (tune_index)(u * (double)size);
    if (domain->probability == TUNE_NORMAL && draw_normal(domain, u, size, &i) < 0)
        return -1;
    tune_domain_value(domain, i < size ? i : size - 1, value);
    return 0;
}

/* ---- one domain in another ---- */

/* With more values than this, only the ends and the step are compared, if they decide it. */
enum { LOOKED_AT = 1000000 };

static int refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return 0;
}

static int refuse_value(char *why, size_t size, const struct tune_value *value)
{
    char text[128];
    tune_value_repr(value, text, sizeof text);
    snprintf(why, size, "%s is none of its values", text);
    return 0;
}

/* Check every value of a finite child. */
static int all_in(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    tune_index count = tune_domain_size(child), most = tune_domain_size(parent);
    struct tune_value value;
    int within = 1;
    if (count == 0)
        return refuse(why, size, "it has no finite number of values");
    if (most && count > most)
        return refuse(why, size, "it has more values");
    for (tune_index i = 0; i < count && within; i++) {
        if (i == LOOKED_AT && child->count == 0)
            i = count - 1; /* in a range, the first million values and the last one decide for
                            * all */
        tune_domain_value(child, i, &value);
        if (!tune_domain_has(parent, &value))
            within = refuse_value(why, size, &value);
    }
    return within;
}

static int in_continuous(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    const struct tune_value zero = tune_value_int(0), one = tune_value_int(1);
    if (child->type != TUNE_CONTINUOUS && child->type != TUNE_DISCRETE && child->type != TUNE_BINARY)
        return refuse(why, size, "it is not a domain of numbers");
    if (!parent->has_range)
        return 1;
    if (child->type == TUNE_DISCRETE)
        return all_in(child, parent, why, size);
    if (child->type == TUNE_BINARY)
        return tune_domain_has(parent, &zero) && tune_domain_has(parent, &one)
                   ? 1
                   : refuse(why, size, "0 and 1 are not both in its range");
    if (!child->has_range || tune_value_compare(&child->low, &parent->low) < 0 ||
        tune_value_compare(&child->high, &parent->high) > 0)
        return refuse(why, size, "its range is not within the other");
    return 1;
}

static int in_discrete(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    if (child->type != TUNE_DISCRETE && child->type != TUNE_BINARY)
        return refuse(why, size, "it is not a discrete domain");
    if (tune_domain_size(parent) || !child->has_interval)
        return all_in(child, parent, why, size);
    double step = number(&parent->interval); /* such a parent has no other condition */
    return fabs(remainder(number(&child->interval), step)) <= 1e-9 * step
               ? 1
               : refuse(why, size, "its interval is no multiple of the other");
}

int tune_domain_within(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    bool finite = tune_domain_size(child) > 0;
    switch (parent->type) {
    case TUNE_UNKNOWN:
        return 1;
    case TUNE_CONTINUOUS:
        return in_continuous(child, parent, why, size);
    case TUNE_DISCRETE:
        return in_discrete(child, parent, why, size);
    case TUNE_CATEGORICAL:
    case TUNE_BINARY:
        return finite ? all_in(child, parent, why, size) : refuse(why, size, "it does not name its values");
    case TUNE_OPEN_CATEGORICAL:
        return finite || child->type == TUNE_OPEN_CATEGORICAL ? 1 : refuse(why, size, "it does not name its values");
    }
    return 0;
}
