/* scale.c - ranges, round ticks, smoothing. */
#include "views/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

int tune_width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

double tune_scale_place(const struct tune_scale *s, double value)
{
    if (s->logarithmic)
        return (log10(value) - log10(s->low)) / (log10(s->high) - log10(s->low));
    return (value - s->low) / (s->high - s->low);
}

static void add_tick(struct tune_scale *s, double value)
{
    if (s->ticks < (int)(sizeof s->tick / sizeof *s->tick))
        s->tick[s->ticks++] = value;
}

/* Multiples of 1, 2 or 5 times a power of ten: the least of these steps that gives no more than `most`. */
static double linear_ticks(struct tune_scale *s, int most)
{
    double span = s->high - s->low, power = pow(10, floor(log10(span)) - 2), step = power;
    for (int i = 0; span / step > most - 0.5 && i < 12; i++)
        step = power * pow(10, (i + 1) / 3) * ((i + 1) % 3 == 0 ? 1 : (i + 1) % 3 == 1 ? 2 : 5);
    double first = ceil(s->low / step - 1e-9);
    for (int i = 0; (first + i) * step <= s->high + 1e-9 * step && i < 16; i++)
        add_tick(s, (first + i) * step);
    return step;
}

/* Powers of ten, and 2 and 5 times them where there are few. */
static void logarithmic_ticks(struct tune_scale *s, int most)
{
    int from = (int)floor(log10(s->low)), to = (int)ceil(log10(s->high)), each = 1 + (to - from) / most;
    bool many = (to - from) * 3 <= most + 3;
    for (int e = from; e <= to; e += each)
        for (int k = 0; k < (many ? 3 : 1); k++) {
            double v = pow(10, e) * (k == 0 ? 1 : k == 1 ? 2 : 5);
            if (v >= s->low * (1 - 1e-9) && v <= s->high * (1 + 1e-9))
                add_tick(s, v);
        }
}

/* Digits that tell neighbours apart, and a suffix that keeps labels short. */
static void spell(struct tune_scale *s, double step)
{
    static const struct {
        double from, unit;
        const char *suffix;
    } units[] = {{1e13, 0, ""}, {1e10, 1e9, "G"}, {1e7, 1e6, "M"}, {1e4, 1e3, "k"}, {1e-3, 1, ""}, {0, 0, ""}};
    double most = fabs(s->low) > fabs(s->high) ? fabs(s->low) : fabs(s->high);
    int i = 0;
    while (most < units[i].from)
        i++;
    s->unit = units[i].unit;
    s->suffix = units[i].suffix;
    if (s->unit == 0) {
        int e = most > 0 ? (int)floor(log10(most)) : 0;
        s->unit = pow(10, e);
        snprintf(s->exponent, sizeof s->exponent, "e%d", e);
        s->suffix = NULL; /* the exponent: a copy of the scale must not point into this one */
    }
    double digits = -floor(log10(step / s->unit) + 1e-9);
    s->decimals = digits > 0 ? (int)digits : 0;
}

void tune_scale_ticks(struct tune_scale *s, int most)
{
    s->ticks = 0;
    if (s->logarithmic) {
        logarithmic_ticks(s, most);
        if (s->ticks >= 2)
            return;
        s->ticks = 0; /* less than a decade: round values, unevenly spaced */
    }
    spell(s, linear_ticks(s, most));
}

const char *tune_scale_label(const struct tune_scale *s, int i, char text[32])
{
    double v = s->tick[i];
    if (s->unit == 0)
        snprintf(text, 32, "%g", v);
    else if (fabs(v) < 1e-9 * (s->high - s->low))
        snprintf(text, 32, "0");
    else
        snprintf(text, 32, "%.*f%s", s->decimals, v / s->unit, s->suffix ? s->suffix : s->exponent);
    return text;
}

bool tune_plot_drawn(const struct tune_plot *plot, double x, double y)
{
    const double most = 1e300; /* the extent of an axis is a number too */
    return fabs(x) < most && fabs(y) < most && (!plot->logarithmic || y > 0);
}

/* A range that has an extent, with a margin so that no curve runs along the frame. */
static void widen(struct tune_scale *s, double margin)
{
    if (s->logarithmic) {
        double factor = s->high > s->low ? pow(s->high / s->low, margin) : 1.5;
        s->low /= factor;
        s->high *= factor;
        return;
    }
    double span = s->high - s->low;
    if (!(span > 1e-12 * fabs(s->high)))
        margin = 1, span = s->high == 0 ? 1 : 0.1 * fabs(s->high);
    s->low -= margin * span;
    s->high += margin * span;
}

int tune_plot_scales(const struct tune_plot *plot, struct tune_scale *x, struct tune_scale *y)
{
    *x = (struct tune_scale){.low = INFINITY, .high = -INFINITY};
    *y = (struct tune_scale){.low = INFINITY, .high = -INFINITY, .logarithmic = plot->logarithmic};
    for (int k = 0; k < plot->count; k++)
        for (int64_t i = 0; i < plot->curves[k].count; i++) {
            double at = plot->curves[k].x[i], v = plot->curves[k].y[i];
            if (!tune_plot_drawn(plot, at, v))
                continue;
            x->low = fmin(x->low, at), x->high = fmax(x->high, at);
            y->low = fmin(y->low, v), y->high = fmax(y->high, v);
        }
    if (!(x->low <= x->high)) {
        tune_error_set("\"%s\": there is not one point to draw%s", plot->title,
                       plot->logarithmic ? " (a logarithmic axis has none at or below 0)" : "");
        return -1;
    }
    widen(x, x->high > x->low ? 0 : 1);
    widen(y, 0.04);
    return 0;
}

/* How far a curve goes up and down, in units of its range: 1 falls steadily, noise goes back and forth. */
static bool is_noisy(const struct tune_curve *c)
{
    double way = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < c->count; i++) {
        low = fmin(low, c->y[i]), high = fmax(high, c->y[i]);
        way += i > 0 ? fabs(c->y[i] - c->y[i - 1]) : 0;
    }
    return c->count >= 30 && way > 4 * (high - low);
}

/* The mean of up to n neighbours on either side, as many on one as on the other, so that a slope is not bent; towards the ends
 * of the curve there are fewer, down to a third of n on the one side, or its last point would be drawn as it is. */
static void average(const double *from, double *to, int64_t count, int64_t n)
{
    double sum = 0;
    int64_t low = 0, high = 0; /* sum is of [low, high) */
    for (int64_t i = 0; i < count; i++) {
        int64_t after = count - 1 - i, reach = i < after ? i : after;
        reach = reach > n ? n : reach < n / 3 ? n / 3 : reach;
        for (; high < count && high <= i + reach; high++)
            sum += from[high];
        for (; high > i + reach + 1; high--)
            sum -= from[high - 1];
        for (; low < i - reach; low++)
            sum -= from[low];
        to[i] = sum / (double)(high - low);
    }
}

int tune_plot_smooth(const struct tune_plot *plot, const struct tune_curve *c, double **smooth)
{
    double n = plot->smooth;
    *smooth = NULL;
    for (int64_t i = 0; i < c->count; i++)
        if (!tune_plot_drawn(plot, c->x[i], c->y[i]))
            return 0; /* with holes: as it is */
    if (n == 0 || c->dotted || c->count < 3 || (n < 0 && !is_noisy(c)))
        return 0;
    int64_t reach = n < 0 ? c->count / 40 : n >= (double)c->count ? c->count - 1 : (int64_t)n;
    double *a = malloc((size_t)c->count * sizeof *a), *b = malloc((size_t)c->count * sizeof *b);
    if (!a || !b) {
        free(a);
        free(b);
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory to smooth \"%s\"", c->label);
        return -1;
    }
    average(c->y, a, c->count, reach < 1 ? 1 : reach); /* twice: a triangle, which leaves no steps where a jump enters */
    average(a, b, c->count, reach < 1 ? 1 : reach);
    free(a);
    *smooth = b;
    return 0;
}
