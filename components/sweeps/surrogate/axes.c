/* axes.c - choose a scale for each dimension, and convert values to numbers and back. */
#include "sweeps/surrogate/axes.h"

#include <math.h>
#include <stdlib.h>

#include "core/try.h"
#include "sweeps/surrogate/surrogate.h"

enum { TABLE = 4096, SPAN = 8, UNEVEN = 4 };

static int refuse(const struct tune_space *s, int dimension, const char *why)
{
    return tune_error_usage("%s: a model of the measurements cannot have this dimension: %s", s->names[dimension], why);
}

/* ---- scales ---- */

/* The number of a value, at an index of a finite domain or a place of a continuous one. */
static double number_at(const struct tune_domain *d, double size, double at, bool *is_number)
{
    struct tune_value v;
    double number = 0;
    if (size > 0)
        tune_domain_value(d, (tune_index)at, &v);
    else
        v = at > 0 ? d->high : d->low;
    *is_number = tune_value_number(&v, &number);
    return number;
}

/* Choose the scale of a list of numbers by its steps. */
static void choose_scale(struct tune_surrogate_axis *axis)
{
    double least = INFINITY, most = -INFINITY, narrow = INFINITY, wide = 0, before = 0;
    int n = axis->size > 0 && axis->size <= TABLE ? (int)axis->size : 2;
    bool is_number, ascending = true;
    for (int i = 0; i < n; i++) {
        double at = n == axis->size ? i : i == 0 ? 0 : axis->size > 0 ? axis->size - 1 : 1;
        double value = number_at(axis->domain, axis->size, at, &is_number);
        if (!is_number || !isfinite(value)) {
            axis->scale = TUNE_AXIS_CATEGORY;
            return;
        }
        if (i > 0) {
            double step = value - before;
            ascending = ascending && step > 0;
            narrow = fmin(narrow, fabs(step));
            wide = fmax(wide, fabs(step));
        }
        least = fmin(least, value);
        most = fmax(most, value);
        before = value;
    }
    axis->scale = least > 0 && most >= SPAN * least        ? TUNE_AXIS_LOG
                  : n > 2 && ascending && wide > UNEVEN * narrow ? TUNE_AXIS_INDEX
                                                           : TUNE_AXIS_LINEAR;
    axis->low = axis->scale == TUNE_AXIS_LOG ? log(least) : axis->scale == TUNE_AXIS_INDEX ? 0 : least;
    axis->high = axis->scale == TUNE_AXIS_LOG ? log(most) : axis->scale == TUNE_AXIS_INDEX ? axis->size - 1 : most;
}

static int read_axis(const struct tune_space *s, int k, struct tune_surrogate_axis *axis)
{
    const struct tune_domain *d = &s->dimensions[k].domain;
    struct tune_value v;
    tune_index size = tune_domain_size(d);
    *axis = (struct tune_surrogate_axis){.dimension = k, .domain = d, .size = (double)size};
    if (tune_domain_draw(d, 0.5, &v) < 0)
        return tune_error_prefix("%s: ", s->names[k]);
    if (size > (tune_index)1 << 52)
        return refuse(s, k, "it has more than 2^52 values");
    if (d->given && d->type == TUNE_CATEGORICAL)
        axis->scale = TUNE_AXIS_CATEGORY;
    else
        choose_scale(axis);
    if (axis->scale == TUNE_AXIS_CATEGORY && !(size > 0 && size <= TABLE))
        return refuse(s, k, "its values are no numbers, and too many");
    return 0;
}

int tune_axes_read(struct tune_axes *a, const struct tune_space *space)
{
    *a = (struct tune_axes){.space = space, .axes = calloc((size_t)space->count + 1, sizeof *a->axes),
                            .categories = calloc((size_t)space->count + 1, sizeof *a->categories)};
    if (!a->axes || !a->categories) {
        tune_axes_free(a);
        return tune_error_no_memory("a model of the measurements");
    }
    for (int k = 0; k < space->count; k++) {
        struct tune_surrogate_axis *axis = &a->axes[a->count];
        if (tune_domain_size(&space->dimensions[k].domain) == 1)
            continue;
        if (read_axis(space, k, axis) < 0) {
            tune_axes_free(a);
            return -1;
        }
        a->categories[a->count++] = axis->scale == TUNE_AXIS_CATEGORY ? (int)axis->size : 0;
    }
    if (a->count > 0)
        return 0;
    tune_axes_free(a);
    return tune_error_usage("no dimension of this space has more than one value, so there is nothing to model");
}

void tune_axes_free(struct tune_axes *a)
{
    free(a->axes);
    free(a->categories);
    *a = (struct tune_axes){0};
}

/* ---- conversions ---- */

static double scaled(const struct tune_surrogate_axis *axis, double value)
{
    double at = axis->scale == TUNE_AXIS_LOG ? log(value) : value;
    return axis->high > axis->low ? (at - axis->low) / (axis->high - axis->low) : 0;
}

int tune_axes_find(const struct tune_axes *a, const struct tune_value *values, double *coordinates)
{
    for (int k = 0; k < a->count; k++) {
        const struct tune_surrogate_axis *axis = &a->axes[k];
        const struct tune_value *v = &values[axis->dimension];
        tune_index i;
        double number;
        if (axis->size > 0 && tune_domain_find(axis->domain, v, &i))
            coordinates[k] = (double)i;
        else if (axis->size == 0 && tune_value_number(v, &number) && isfinite(number))
            coordinates[k] = fmin(fmax(scaled(axis, number), 0), 1);
        else
            return tune_error_set("a value of %s is not in its domain", a->space->names[axis->dimension]);
    }
    return 0;
}

/* The value at a place of a continuous axis: within its range, whose upper end is excluded. */
static double continuous_value(const struct tune_surrogate_axis *axis, double place)
{
    double at = axis->low + place * (axis->high - axis->low), low, high;
    tune_value_number(&axis->domain->low, &low);
    tune_value_number(&axis->domain->high, &high);
    return fmin(fmax(axis->scale == TUNE_AXIS_LOG ? exp(at) : at, low), nextafter(high, low));
}

void tune_axes_entity(const struct tune_axes *a, const double *coordinates, struct tune_value *values)
{
    for (int k = 0; k < a->space->count; k++)
        if (tune_domain_size(&a->space->dimensions[k].domain) == 1)
            tune_domain_value(&a->space->dimensions[k].domain, 0, &values[k]);
    for (int k = 0; k < a->count; k++) {
        const struct tune_surrogate_axis *axis = &a->axes[k];
        if (axis->size > 0) {
            tune_domain_value(axis->domain, (tune_index)coordinates[k], &values[axis->dimension]);
            continue;
        }
        values[axis->dimension] = tune_value_float(continuous_value(axis, coordinates[k]));
    }
}

void tune_axes_point(const struct tune_axes *a, const double *coordinates, double *point)
{
    for (int k = 0; k < a->count; k++) {
        const struct tune_surrogate_axis *axis = &a->axes[k];
        bool is_number;
        if (axis->size == 0 || axis->scale == TUNE_AXIS_CATEGORY)
            point[k] = coordinates[k];
        else if (axis->scale == TUNE_AXIS_INDEX)
            point[k] = coordinates[k] / axis->high;
        else
            point[k] = scaled(axis, number_at(axis->domain, axis->size, coordinates[k], &is_number));
    }
}
