/* scale.c - ranges, round ticks, smoothing. */
#include "views/scale.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

bool tune_drawable(double value)
{
    return fabs(value) < 1e300;
}

int tune_levels(const double *values, int64_t count, double level[TUNE_TICKS], int n)
{
    for (int64_t i = 0; i < count && n >= 0; i++) {
        int at = n;
        if (!tune_drawable(values[i]))
            continue;
        while (at > 0 && level[at - 1] >= values[i])
            at--;
        if (at < n && level[at] == values[i])
            continue;
        if (n == TUNE_TICKS)
            return -1;
        memmove(level + at + 1, level + at, (size_t)(n++ - at) * sizeof *level);
        level[at] = values[i];
    }
    return n;
}

const char *tune_level_text(double value, char text[32])
{
    snprintf(text, 32, fabs(value) < 1e7 && value == rint(value) ? "%.0f" : "%.6g", value == 0 ? 0 : value);
    return text;
}

/* Returns 2 or 10 if each value is the one before it times a power of that number. Else returns 0,
 * or 10 to keep small values apart. */
static int suited_base(const double *level, int n)
{
    bool twos = true, tens = true;
    if (n < 3 || level[0] <= 0)
        return 0;
    for (int i = 1; i < n; i++) {
        double two = log2(level[i] / level[i - 1]), ten = log10(level[i] / level[i - 1]);
        twos &= fabs(two - rint(two)) < 1e-9;
        tens &= fabs(ten - rint(ten)) < 1e-9;
    }
    if (tens || twos)
        return tens ? 10 : 2;
    double middle = (level[n / 2] - level[0]) / (level[n - 1] - level[0]), extent = level[n - 1] / level[0];
    return middle > 0.25 || extent < 16 ? 0 : extent < 1000 ? 2 : 10;
}

double tune_scale_position(const struct tune_scale *s, double value)
{
    if (s->logarithmic)
        return (log10(value) - log10(s->low)) / (log10(s->high) - log10(s->low));
    return (value - s->low) / (s->high - s->low);
}

static void add_tick(struct tune_scale *s, double value)
{
    if (s->ticks < TUNE_TICKS)
        s->tick[s->ticks++] = value;
}

/* Choose ticks at multiples of 1, 2 or 5 times a power of ten, with the smallest step that gives at
 * most `most` ticks. */
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

static void powers_of_two(struct tune_scale *s, int most)
{
    int from = (int)ceil(log2(s->low) - 1e-9), to = (int)floor(log2(s->high) + 1e-9), each = 1 + (to - from) / most;
    for (int e = from; e <= to; e += each)
        add_tick(s, ldexp(1, e));
}

/* Choose ticks at powers of ten, and at 2 and 5 times them if there are few. */
static void logarithmic_ticks(struct tune_scale *s, int most)
{
    if (s->base == 2) {
        powers_of_two(s, most);
        return;
    }
    int from = (int)floor(log10(s->low)), to = (int)ceil(log10(s->high)), each = 1 + (to - from) / most;
    bool many = (to - from) * 3 <= most + 3;
    for (int e = from; e <= to; e += each)
        for (int k = 0; k < (many ? 3 : 1); k++) {
            double v = pow(10, e) * (k == 0 ? 1 : k == 1 ? 2 : 5);
            if (v >= s->low * (1 - 1e-9) && v <= s->high * (1 + 1e-9))
                add_tick(s, v);
        }
}

/* Choose the digits that tell neighbours apart, and a suffix that keeps labels short. */
void tune_scale_to_string(struct tune_scale *s, double step)
{
    static const struct {
        double from, unit;
        const char *suffix;
    } units[] = {{1e15, 0, ""}, {1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"},
                 {1e4, 1e3, "k"}, {1e-3, 1, ""}, {0, 0, ""}};
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
        s->suffix = NULL; /* write the exponent: a copy of the scale must not point into this one */
    }
    double digits = -floor(log10(step / s->unit) + 1e-9);
    s->decimals = digits > 0 ? (int)digits : 0;
}

void tune_scale_ticks(struct tune_scale *s, int most)
{
    s->ticks = 0;
    s->unit = 0;
    if (s->names) {
        int count = (int)(s->high - s->low + 0.5), each = 1 + (count - 1) / TUNE_TICKS;
        for (int i = 0; i < count; i += each)
            add_tick(s, i);
        return;
    }
    if (s->logarithmic) {
        logarithmic_ticks(s, most);
        if (s->ticks >= 2)
            return;
        s->ticks = 0; /* less than a decade: round values with unequal distances */
    }
    tune_scale_to_string(s, linear_ticks(s, most));
}

const char *tune_scale_text(const struct tune_scale *s, double value, char text[32])
{
    if (s->unit == 0)
        return tune_level_text(value, text);
    if (fabs(value) < 1e-9 * (s->high - s->low))
        snprintf(text, 32, "0");
    else if (fabs(value / s->unit) < 0.5 * pow(10, -s->decimals)) /* "25" is clearer than "0.0k" */
        snprintf(text, 32, "%.2g", value);
    else
        snprintf(text, 32, "%.*f%s", s->decimals, value / s->unit, s->suffix ? s->suffix : s->exponent);
    return text;
}

const char *tune_scale_label(const struct tune_scale *s, int i, char text[32])
{
    return s->names ? s->names[(int)s->tick[i]] : tune_scale_text(s, s->tick[i], text);
}

bool tune_scale_at_levels(struct tune_scale *s, const double *levels, int count, int most)
{
    char text[32];
    double before = -1;
    if (count < 1 || count > most)
        return false;
    for (int i = 0; i < count; i++) {
        double place = tune_scale_position(s, levels[i]);
        if (!(place > -1e-9 && place < 1 + 1e-9) || strlen(tune_level_text(levels[i], text)) > 8 || place - before < 0.6 / most)
            return false;
        before = place;
    }
    s->ticks = 0;
    s->unit = 0;
    for (int i = 0; i < count; i++)
        add_tick(s, levels[i]);
    return true;
}

bool tune_plot_drawn(const struct tune_plot *plot, double x, double y)
{
    if (plot->x_names ? !(x >= 0 && x <= plot->x_count - 1) : plot->x_base > 0 && !(x > 0))
        return false;
    return tune_drawable(x) && tune_drawable(y) && (!plot->logarithmic || y > 0);
}

/* Make the range wider than 0, with a margin so that no curve touches the frame. */
static void widen(struct tune_scale *s, double margin)
{
    if (s->logarithmic) {
        double decades = log10(s->high) - log10(s->low), factor = decades > 1e-9 ? pow(10, decades * margin) : 1.5;
        s->low = fmax(s->low / factor, DBL_TRUE_MIN);
        s->high = fmin(s->high * factor, DBL_MAX);
        return;
    }
    double span = s->high - s->low;
    if (!(span > fmax(1e-12 * fabs(s->high), 1e-300)))
        margin = 1, span = s->high == 0 ? 1 : fmax(0.1 * fabs(s->high), 1e-300);
    s->low -= margin * span;
    s->high += margin * span;
}

/* Returns 10 if most numbers would crowd at the low end of a linear axis. */
static int suited_to_many(const double *values, int64_t count)
{
    double low = INFINITY, high = -INFINITY;
    int64_t n = 0, crowd = 0;
    for (int64_t i = 0; i < count; i++)
        if (tune_drawable(values[i]))
            low = fmin(low, values[i]), high = fmax(high, values[i]);
    for (int64_t i = 0; i < count; i++)
        if (tune_drawable(values[i])) {
            n++;
            crowd += values[i] - low < 0.25 * (high - low);
        }
    return low > 0 && high / low >= 50 && 2 * crowd > n ? 10 : 0;
}

bool tune_scale_over(struct tune_scale *s, const double *values, int64_t count, int base, double margin)
{
    *s = (struct tune_scale){.low = INFINITY, .high = -INFINITY};
    if (base < 0) {
        double level[TUNE_TICKS];
        int n = tune_levels(values, count, level, 0);
        base = n < 0 ? suited_to_many(values, count) : suited_base(level, n);
    }
    s->base = base;
    s->logarithmic = base > 0;
    for (int64_t i = 0; i < count; i++)
        if (tune_drawable(values[i]) && (!s->logarithmic || values[i] > 0))
            s->low = fmin(s->low, values[i]), s->high = fmax(s->high, values[i]);
    bool any = s->low <= s->high;
    if (!any)
        s->low = s->logarithmic ? 0.1 : 0, s->high = 1;
    else
        widen(s, s->high > s->low ? margin : 1);
    return any;
}

void tune_scale_names(struct tune_scale *s, const char *const *names, int count)
{
    *s = (struct tune_scale){.low = -0.5, .high = count - 0.5, .names = names};
}

bool tune_plot_spread(const struct tune_plot *plot, const struct tune_curve *c, int64_t i, double *low, double *high)
{
    if (!c->low || !c->high || !tune_drawable(c->low[i]) || !tune_drawable(c->high[i]))
        return false;
    *low = fmin(c->low[i], c->y[i]);
    *high = fmax(c->high[i], c->y[i]);
    if (plot->logarithmic && *low <= 0)
        *low = c->y[i];
    return true;
}

double tune_plot_aside(const struct tune_plot *plot, const struct tune_curve *c)
{
    int count = 0, before = 0; /* a band has the place of its points */
    for (int k = 0; k < plot->count && plot->x_names; k++) {
        count += plot->curves[k].band == c->band;
        before += plot->curves[k].band == c->band && &plot->curves[k] < c;
    }
    double each = fmin(0.7 / fmax(count, 1), 0.2);
    return plot->x_names ? each * (before - (count - 1) / 2.0) : 0;
}

static void stretch(struct tune_scale *s, double value)
{
    s->low = fmin(s->low, value);
    s->high = fmax(s->high, value);
}

void tune_scale_hold(struct tune_scale *s, const double *values)
{
    for (int i = 0; i < 2 && values; i++)
        if (!s->logarithmic || values[i] > 0)
            stretch(s, values[i]);
}

static bool all_marked(const struct tune_plot *plot)
{
    bool marked = true;
    for (int k = 0; k < plot->count; k++)
        marked &= plot->curves[k].marked || plot->curves[k].band;
    return marked;
}

/* Collect the different x values of all curves. Returns their number, or -1. */
static int x_levels(const struct tune_plot *plot, double level[TUNE_TICKS])
{
    int n = 0;
    for (int k = 0; k < plot->count; k++)
        n = plot->curves[k].band ? n : tune_levels(plot->curves[k].x, plot->curves[k].count, level, n);
    return n;
}

int tune_plot_scales(const struct tune_plot *plot, struct tune_scale *x, struct tune_scale *y)
{
    double level[TUNE_TICKS], low, high;
    int base = plot->x_base < 0 ? suited_base(level, x_levels(plot, level)) : plot->x_base;
    *x = (struct tune_scale){.low = INFINITY, .high = -INFINITY, .logarithmic = base > 0 && !plot->x_names, .base = base};
    *y = (struct tune_scale){.low = INFINITY, .high = -INFINITY, .logarithmic = plot->logarithmic};
    for (int k = 0; k < plot->count; k++)
        for (int64_t i = 0; i < plot->curves[k].count; i++) {
            const struct tune_curve *c = &plot->curves[k];
            if (!tune_plot_drawn(plot, c->x[i], c->y[i]))
                continue;
            stretch(x, c->x[i]);
            stretch(y, c->y[i]);
            if (tune_plot_spread(plot, c, i, &low, &high)) {
                stretch(y, low);
                stretch(y, high);
            }
        }
    bool empty = !(x->low <= x->high);
    tune_scale_hold(x, plot->x_holds);
    tune_scale_hold(y, plot->y_holds);
    if (empty) {
        tune_error_set("\"%s\": there is not one point to draw%s", plot->title,
                       plot->logarithmic ? " (a logarithmic axis has none at or below 0)" : "; those above 1e300 are left out");
        return -1;
    }
    if (plot->x_names)
        tune_scale_names(x, plot->x_names, plot->x_count);
    else
        widen(x, x->high > x->low ? (all_marked(plot) ? 0.04 : 0) : 1);
    widen(y, 0.04);
    return 0;
}

void tune_plot_x_ticks(const struct tune_plot *plot, struct tune_scale *x, int most)
{
    double level[TUNE_TICKS];
    bool apart = plot->count > 0 && plot->curves[plot->count - 1].apart;
    if (plot->x_names || apart || !all_marked(plot) || !tune_scale_at_levels(x, level, x_levels(plot, level), most))
        tune_scale_ticks(x, most);
}

/* The sum of a curve's ups and downs divided by its range: 1 for a steady fall, more for noise. */
static bool is_noisy(const struct tune_curve *c)
{
    double way = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < c->count; i++) {
        low = fmin(low, c->y[i]), high = fmax(high, c->y[i]);
        way += i > 0 ? fabs(c->y[i] - c->y[i - 1]) : 0;
    }
    return c->count >= 30 && way > 4 * (high - low);
}

/* The mean over up to n neighbours on each side. Both sides have the same number, so that a slope
 * stays straight. Near the ends one side may have as few as n/3; otherwise the last point would not
 * be smoothed. */
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

bool tune_plot_crowded(const struct tune_plot *plot, const struct tune_curve *c)
{
    return c->marked && c->count > TUNE_PLOT_MARKS && !plot->x_names;
}

bool tune_plot_pointed(const struct tune_plot *plot, const struct tune_curve *c)
{
    return plot->x_names || c->apart || (c->marked && !tune_plot_crowded(plot, c));
}

bool tune_plot_above(const struct tune_plot *plot, const struct tune_curve *c)
{
    bool many = false;
    for (int k = 0; k < plot->count; k++)
        many = many || (plot->curves[k].apart && plot->curves[k].count > TUNE_PLOT_MARKS);
    return c->band && many && !plot->x_names;
}

bool tune_plot_ringed(const struct tune_plot *plot, const struct tune_curve *c, int64_t i)
{
    return plot->front && c->front && c->front[i];
}

int tune_plot_smooth(const struct tune_plot *plot, const struct tune_curve *c, double **smooth)
{
    double n = plot->smooth;
    *smooth = NULL;
    if (c->band)
        return 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!tune_plot_drawn(plot, c->x[i], c->y[i]))
            return 0; /* a curve with holes is not smoothed */
    if (n == 0 || c->dotted || tune_plot_pointed(plot, c) || c->count < 3 || (n < 0 && !is_noisy(c)))
        return 0;
    int64_t reach = n < 0 ? c->count / 40 : n >= (double)c->count ? c->count - 1 : (int64_t)n;
    double *a = malloc((size_t)c->count * sizeof *a), *b = malloc((size_t)c->count * sizeof *b);
    if (!a || !b) {
        free(a);
        free(b);
        return tune_error_cannot("no memory to smooth \"%s\"", c->label);
    }
    average(c->y, a, c->count, reach < 1 ? 1 : reach); /* smooth twice: the window becomes a
                                                        * triangle, so a jump makes no steps */
    average(a, b, c->count, reach < 1 ? 1 : reach);
    free(a);
    *smooth = b;
    return 0;
}
