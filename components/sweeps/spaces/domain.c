/* domain.c - convert between values and indexes of a domain, draw values, and check if one domain
 * contains another.
 *
 * Steps of floats are the same as in ado and numpy: low + i*interval, rounded to 10 decimals by
 * scaling. Fused multiply-add is avoided, because the last bit is part of an entity's id. */
#include "sweeps/spaces/domain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Value i of a range of floats, before and after rounding. */
static double exact_step(const struct tune_domain *d, double i)
{
    volatile double up = i * number(&d->interval); /* volatile prevents fused multiply-add */
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
    /* The quotient was rounded, so check the last values. The end is excluded, and so are values
     * that round to it. */
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
        at = rint((n - number(&d->low)) / number(&d->interval)) - 1; /* or a neighbour, because of rounding */
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

int tune_index_compare(const void *a, const void *b)
{
    tune_index x = *(const tune_index *)a, y = *(const tune_index *)b;
    return (x > y) - (x < y);
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

static int by_value(const void *a, const void *b)
{
    return tune_value_compare(a, b);
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
    const struct tune_value *found = domain->ascending ? bsearch(value, values, (size_t)count, sizeof *values, by_value) : NULL;
    for (int k = 0; k < count && !domain->ascending && !found; k++)
        if (tune_value_equal(&values[k], value))
            found = &values[k];
    if (!found || !tune_value_equal(found, value)) /* NaN compares equal to itself */
        return 0;
    *i = (tune_index)(found - values);
    return 1;
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

bool tune_value_means(const struct tune_value *v, const char *text)
{
    int (*const to_string[])(const struct tune_value *, char *, size_t) = {tune_value_str, tune_value_id, tune_value_json};
    char spelled[1024];
    for (int i = 0; i < (v->type == TUNE_VALUE_TEXT ? 2 : 3); i++)
        if (to_string[i](v, spelled, sizeof spelled) < (int)sizeof spelled && !strcmp(spelled, text))
            return true;
    return false;
}

bool tune_domain_parse(const struct tune_domain *domain, const char *text, struct tune_value *value)
{
    tune_index i;
    bool any = domain->type == TUNE_UNKNOWN || domain->type == TUNE_OPEN_CATEGORICAL;
    if (domain->type == TUNE_DISCRETE && domain->count && tune_value_read_as(text, value) && tune_domain_find(domain, value, &i) &&
        tune_value_means(&domain->values[i], text)) { /* the usual case, found faster than below */
        *value = domain->values[i];
        return true;
    }
    for (int texts = 1; texts >= 0; texts--) /* texts first, so that "null" is preferred to None */
        for (int k = 0; k < domain->count; k++)
            if ((domain->values[k].type == TUNE_VALUE_TEXT) == texts && tune_value_means(&domain->values[k], text)) {
                *value = domain->values[k];
                return true;
            }
    if (any || !tune_value_read_as(text, value))
        *value = *text ? tune_value_text(text) : tune_value_none();
    if (any)
        return true;
    if (tune_domain_find(domain, value, &i)) /* the domain's own form: 1 for 1.0 */
        tune_domain_value(domain, i, value);
    return tune_domain_has(domain, value);
}

/* ---- drawing ---- */

/* The share of a normal distribution above z. */
static double above(double z)
{
    return 0.5 * erfc(z * 0.70710678118654752);
}

/* Find z such that the fraction u of the probability in [a, b] is below z. Bisects 60 times. */
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

/* Refuse a distribution if all values are 30 or more deviations from its mean, because their
 * weights would be 0. */
static int refuse_far(const struct tune_domain *d)
{
    return tune_error_usage("a normal distribution of mean %g and std %g has no weight in this "
                            "domain; change mean, std or the range", d->mean, d->deviation);
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
            return tune_error_usage("no value can be drawn from a domain without two finite ends: "
                                    "give it a domainRange");
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
        return tune_error_usage("no value can be listed or drawn, because the domain of type %s "
                                "has no values; give it values", tune_variable_name(domain));
    i = (tune_index)(u * (double)size);
    tune_domain_value(domain, i < size ? i : size - 1, value);
    return 0;
}

/* ---- containment of domains ---- */

/* Ranges with more values than this are only compared by their ends and steps, if that is
 * sufficient. */
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
    snprintf(why, size, "%s is not one of the allowed values", text);
    return 0;
}

/* Check every value of a finite child. */
static int all_in(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    tune_index count = tune_domain_size(child), most = tune_domain_size(parent);
    struct tune_value value;
    int within = 1;
    if (count == 0)
        return refuse(why, size, "the number of its values is not finite");
    if (most && count > most)
        return refuse(why, size, "it has more values than are allowed");
    for (tune_index i = 0; i < count && within; i++) {
        if (i == LOOKED_AT && child->count == 0)
            i = count - 1; /* in a range, the first million values and the last one are
                            * sufficient */
        tune_domain_value(child, i, &value);
        if (!tune_domain_has(parent, &value))
            within = refuse_value(why, size, &value);
    }
    return within;
}

/* Set the reason: the first value that is not a number, or else `what`. */
static int refuse_texts(char *why, size_t size, const struct tune_domain *child, const char *what)
{
    char text[128];
    double n;
    for (int i = 0; i < child->count; i++)
        if (!tune_value_number(&child->values[i], &n)) {
            tune_value_repr(&child->values[i], text, sizeof text);
            snprintf(why, size, "%s is not a number", text);
            return 0;
        }
    return refuse(why, size, what);
}

static int in_continuous(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    const struct tune_value zero = tune_value_int(0), one = tune_value_int(1);
    if (child->type != TUNE_CONTINUOUS && child->type != TUNE_DISCRETE && child->type != TUNE_BINARY)
        return refuse_texts(why, size, child, "its values must be numbers");
    if (!parent->has_range)
        return 1;
    if (child->type == TUNE_DISCRETE)
        return all_in(child, parent, why, size);
    if (child->type == TUNE_BINARY)
        return tune_domain_has(parent, &zero) && tune_domain_has(parent, &one)
                   ? 1
                   : refuse(why, size, "0 and 1 are not both in the allowed range");
    if (!child->has_range || tune_value_compare(&child->low, &parent->low) < 0 ||
        tune_value_compare(&child->high, &parent->high) > 0)
        return refuse(why, size, "its range is not within the allowed range");
    return 1;
}

static int in_discrete(const struct tune_domain *child, const struct tune_domain *parent, char *why, size_t size)
{
    if (child->type != TUNE_DISCRETE && child->type != TUNE_BINARY)
        return refuse_texts(why, size, child, "it is not a discrete domain");
    if (tune_domain_size(parent) || !child->has_interval)
        return all_in(child, parent, why, size);
    double step = number(&parent->interval); /* the parent has no other condition */
    return fabs(remainder(number(&child->interval), step)) <= 1e-9 * step
               ? 1
               : refuse(why, size, "its interval is not a multiple of the allowed interval");
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
        return finite ? all_in(child, parent, why, size) : refuse(why, size, "its values are not "
                                                                             "listed");
    case TUNE_OPEN_CATEGORICAL:
        return finite || child->type == TUNE_OPEN_CATEGORICAL ? 1 : refuse(why, size, "its values "
                                                                                      "are not "
                                                                                      "listed");
    }
    return 0;
}
