/* predictor.c - a model of measured entities, and where it knows nothing. */
#include "sweeps/surrogate/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"

static const double ROUNDED = 1e-10; /* values that differ by less have no digits left for a model */

enum { STARTS = 4, STEPS = 50, FIT_ROWS = 200, MOST_ROWS = 1000, MOST_PLACES = 4096 };

/* A measured entity. */
struct known_entity {
    struct tune_value *values;
    double mean;
    int count; /* of results */
};

struct tune_predictor {
    const struct tune_space *space;
    struct tune_axes axes;
    struct known_entity *known; /* [known_count] with values */
    int known_count, invalid_count;
    double *points;             /* [known_count][axes.count] */
    double *invalid;            /* [invalid_count][axes.count] */
    double *x, *y;              /* [row_count][axes.count], [row_count] each result */
    int row_count;
    double *least, *most;       /* [axes.count] measured range of the points */
    bool **seen;                /* [axes.count][size] of a category: it was measured */
    double **places;            /* [axes.count][place_count] the values within the measured range */
    int *place_count;           /* 0: too many to list */
    struct tune_surrogate *model, *validity; /* validity NULL: all are valid */
    bool logarithm;
    double best[2];             /* lowest and highest middle of the measured entities */
};

static int no_memory(void)
{
    return tune_error_no_memory("a model of the measurements");
}

struct tune_predictor *tune_predictor_new(const struct tune_space *space)
{
    struct tune_predictor *p = calloc(1, sizeof *p);
    if (!p) {
        no_memory();
        return NULL;
    }
    p->space = space;
    if (tune_axes_read(&p->axes, space) < 0) {
        free(p);
        return NULL;
    }
    if (p->axes.count > TUNE_SURROGATE_DIMENSIONS) {
        tune_error_usage("a model of the measurements has at most %d dimensions, but %d of this space vary", TUNE_SURROGATE_DIMENSIONS,
                         p->axes.count);
        tune_predictor_free(p);
        return NULL;
    }
    return p;
}

void tune_predictor_free(struct tune_predictor *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->known_count; i++)
        free(p->known[i].values);
    for (int k = 0; p->seen && k < p->axes.count; k++)
        free(p->seen[k]);
    for (int k = 0; p->places && k < p->axes.count; k++)
        free(p->places[k]);
    free(p->places);
    free(p->place_count);
    free(p->known);
    free(p->points);
    free(p->invalid);
    free(p->x);
    free(p->y);
    free(p->least);
    free(p->most);
    free(p->seen);
    tune_surrogate_free(p->model);
    tune_surrogate_free(p->validity);
    tune_axes_free(&p->axes);
    free(p);
}

/* ---- rows ---- */

/* Append a point to points[count][axes.count]. */
static int append_point(const struct tune_predictor *p, double **points, int count, const double *point)
{
    size_t wide = (size_t)p->axes.count;
    for (size_t k = 0; k < wide; k++) {
        if (!tune_array_fit(points, (size_t)count * wide + k, sizeof **points))
            return no_memory();
        (*points)[(size_t)count * wide + k] = point[k];
    }
    return 0;
}

int tune_predictor_add(struct tune_predictor *p, const struct tune_value *entity, const double *values, int count)
{
    double coordinates[TUNE_SURROGATE_DIMENSIONS], point[TUNE_SURROGATE_DIMENSIONS], sum = 0;
    int n = p->space->count;
    if (tune_axes_find(&p->axes, entity, coordinates) < 0) {
        tune_error_clear();
        return 0;
    }
    tune_axes_point(&p->axes, coordinates, point);
    if (count == 0) {
        TRY(append_point(p, &p->invalid, p->invalid_count, point));
        p->invalid_count++;
        return 1;
    }
    for (int i = 0; i < count; i++) {
        TRY(append_point(p, &p->x, p->row_count, point));
        if (!tune_array_fit(&p->y, (size_t)p->row_count, sizeof *p->y))
            return no_memory();
        p->y[p->row_count++] = values[i];
        sum += values[i];
    }
    TRY(append_point(p, &p->points, p->known_count, point));
    if (!tune_array_fit(&p->known, (size_t)p->known_count, sizeof *p->known))
        return no_memory();
    struct tune_value *copy = tune_values_copy(malloc(tune_values_size(entity, n) + 1), entity, n);
    if (!copy)
        return no_memory();
    p->known[p->known_count++] = (struct known_entity){copy, sum / count, count};
    return 1;
}

/* ---- the fit ---- */

/* Find the measured values of each dimension. */
static int find_ranges(struct tune_predictor *p)
{
    size_t wide = (size_t)p->axes.count;
    p->least = malloc(wide * sizeof *p->least);
    p->most = malloc(wide * sizeof *p->most);
    p->seen = calloc(wide, sizeof *p->seen);
    if (!p->least || !p->most || !p->seen)
        return no_memory();
    for (int k = 0; k < p->axes.count; k++) {
        int categories = p->axes.categories[k];
        p->least[k] = INFINITY;
        p->most[k] = -INFINITY;
        if (categories > 0 && !(p->seen[k] = calloc((size_t)categories, sizeof **p->seen)))
            return no_memory();
        for (int i = 0; i < p->known_count; i++) {
            double at = p->points[(size_t)i * wide + (size_t)k];
            p->least[k] = fmin(p->least[k], at);
            p->most[k] = fmax(p->most[k], at);
            if (categories > 0)
                p->seen[k][(int)at] = true;
        }
    }
    return 0;
}

/* List the values of an axis that lie within the measured ones. */
static int list_places(struct tune_predictor *p, int k)
{
    const struct tune_surrogate_axis *axis = &p->axes.axes[k];
    double coordinates[TUNE_SURROGATE_DIMENSIONS] = {0}, point[TUNE_SURROGATE_DIMENSIONS];
    if (axis->size == 0 || axis->size > MOST_PLACES)
        return 0;
    if (!(p->places[k] = malloc((size_t)axis->size * sizeof **p->places)))
        return no_memory();
    for (coordinates[k] = 0; coordinates[k] < axis->size; coordinates[k]++) {
        tune_axes_point(&p->axes, coordinates, point);
        bool within = p->seen[k] ? p->seen[k][(int)point[k]] : point[k] >= p->least[k] && point[k] <= p->most[k];
        if (within)
            p->places[k][p->place_count[k]++] = point[k];
    }
    return 0;
}

static int list_all_places(struct tune_predictor *p)
{
    p->places = calloc((size_t)p->axes.count, sizeof *p->places);
    p->place_count = calloc((size_t)p->axes.count, sizeof *p->place_count);
    if (!p->places || !p->place_count)
        return no_memory();
    for (int k = 0; k < p->axes.count; k++)
        TRY(list_places(p, k));
    return 0;
}

static struct tune_surrogate *fit_rows(const struct tune_predictor *p, const double *x, const double *y, int rows, bool logarithm)
{
    const struct tune_surrogate_options o = {.dimensions = p->axes.count, .categories = p->axes.categories, .logarithm = logarithm,
                                             .priors = true, .starts = STARTS, .steps = STEPS, .fit_rows = FIT_ROWS, .most_rows = MOST_ROWS};
    return tune_surrogate_fit(&o, x, y, rows);
}

/* Fit the model of validity: 1 for entities with values, 0 for the others. */
static int fit_validity(struct tune_predictor *p)
{
    size_t wide = (size_t)p->axes.count, known = (size_t)p->known_count, all = known + (size_t)p->invalid_count;
    double *x = malloc(all * wide * sizeof *x), *y = malloc(all * sizeof *y);
    if (x && y) {
        memcpy(x, p->points, known * wide * sizeof *x);
        memcpy(x + known * wide, p->invalid, (all - known) * wide * sizeof *x);
        for (size_t i = 0; i < all; i++)
            y[i] = i < known;
        p->validity = fit_rows(p, x, y, (int)all, false);
    } else {
        no_memory();
    }
    free(x);
    free(y);
    return p->validity ? 0 : -1;
}

/* Find the best values as the model sees the measured entities. */
static int find_best(struct tune_predictor *p)
{
    struct tune_prediction *at = malloc((size_t)p->known_count * sizeof *at);
    int code = at ? tune_surrogate_predict(p->model, p->points, p->known_count, at) : no_memory();
    p->best[0] = INFINITY;
    p->best[1] = -INFINITY;
    for (int i = 0; i < p->known_count && code == 0; i++) {
        p->best[0] = fmin(p->best[0], at[i].mean);
        p->best[1] = fmax(p->best[1], at[i].mean);
    }
    free(at);
    return code;
}

int tune_predictor_fit(struct tune_predictor *p, const char *property)
{
    double low = INFINITY, high = -INFINITY;
    if (p->known_count == 0)
        return tune_error_set("nothing is known of %s: no entity of this space has a value", property);
    if (p->known_count == 1)
        return tune_error_set("only one entity has a value of %s, which says nothing of others; measure at least two", property);
    p->logarithm = true;
    for (int i = 0; i < p->row_count; i++) {
        low = fmin(low, p->y[i]);
        high = fmax(high, p->y[i]);
        p->logarithm = p->logarithm && p->y[i] > 0;
    }
    if (low == high)
        return tune_error_set("all %d values of %s are %.6g, so there is nothing to model", p->row_count, property, low);
    if (high / 2 - low / 2 <= ROUNDED * fmax(fabs(low), fabs(high)) / 2) /* halves, which do not overflow */
        return tune_error_set("all %d values of %s are %.6g to ten digits, so there is nothing to model", p->row_count, property, low);
    TRY(find_ranges(p));
    TRY(list_all_places(p));
    if (!(p->model = fit_rows(p, p->x, p->y, p->row_count, p->logarithm)))
        return -1;
    TRY(find_best(p));
    return p->invalid_count > 0 ? fit_validity(p) : 0;
}

/* ---- points ---- */

static void text_of(const struct tune_value *v, char text[80])
{
    if (tune_value_id(v, text, 80) >= 80)
        memcpy(text + 76, "...", 4);
}

/* The number that a place on the axis stands for. */
static double number_of(const struct tune_surrogate_axis *axis, double at)
{
    struct tune_value v;
    double number = 0;
    if (axis->scale == TUNE_AXIS_INDEX) {
        tune_domain_value(axis->domain, (tune_index)rint(at * axis->high), &v);
        tune_value_number(&v, &number);
        return number;
    }
    number = axis->low + at * (axis->high - axis->low);
    return axis->scale == TUNE_AXIS_LOG ? exp(number) : number;
}

/* Find the point of a value on an axis. Else say in why that it has none. */
static bool find_place(const struct tune_surrogate_axis *axis, const char *name, const struct tune_value *v, double *at, char *why)
{
    char text[80];
    double number;
    tune_index i;
    bool listed = axis->size > 0 && tune_domain_find(axis->domain, v, &i), numeric = tune_value_number(v, &number) && isfinite(number);
    text_of(v, text);
    if (axis->scale == TUNE_AXIS_CATEGORY || axis->scale == TUNE_AXIS_INDEX) {
        *at = listed ? axis->scale == TUNE_AXIS_INDEX ? (double)i / axis->high : (double)i : 0;
        if (!listed)
            snprintf(why, TUNE_PREDICTOR_WHY, "%.60s %s is not a value of the space", name, text);
        return listed;
    }
    if (!numeric || (axis->scale == TUNE_AXIS_LOG && number <= 0)) {
        snprintf(why, TUNE_PREDICTOR_WHY, "%.60s %s is not a number%s", name, text, numeric ? " above 0" : "");
        return false;
    }
    double scaled = axis->scale == TUNE_AXIS_LOG ? log(number) : number;
    *at = axis->high > axis->low ? (scaled - axis->low) / (axis->high - axis->low) : 0;
    return true;
}

/* Say in why that the place on axis k is not within the measured ones. */
static bool check_place(const struct tune_predictor *p, int k, const struct tune_value *v, double at, char *why)
{
    const struct tune_surrogate_axis *axis = &p->axes.axes[k];
    const char *name = p->space->names[axis->dimension];
    char text[80];
    text_of(v, text);
    if (p->seen[k] && !p->seen[k][(int)at])
        snprintf(why, TUNE_PREDICTOR_WHY, "%.60s %s was never measured", name, text);
    else if (!p->seen[k] && p->least[k] == p->most[k] && fabs(at - p->least[k]) > 1e-9)
        snprintf(why, TUNE_PREDICTOR_WHY, "%.60s was only measured at %.6g", name, number_of(axis, p->least[k]));
    else if (!p->seen[k] && (at < p->least[k] - 1e-9 || at > p->most[k] + 1e-9))
        snprintf(why, TUNE_PREDICTOR_WHY, "%.60s %s is outside the measured %.6g to %.6g", name, text, number_of(axis, p->least[k]),
                 number_of(axis, p->most[k]));
    return !*why;
}

/* Find the point of an entity. Else say in why that nothing is known there. */
static bool find_point(const struct tune_predictor *p, const struct tune_value *entity, double *point, char *why)
{
    *why = 0;
    for (int d = 0; d < p->space->count; d++) {
        struct tune_value only;
        char text[80], other[80];
        if (tune_domain_size(&p->space->dimensions[d].domain) != 1)
            continue;
        tune_domain_value(&p->space->dimensions[d].domain, 0, &only);
        if (tune_value_equal(&only, &entity[d]))
            continue;
        text_of(&entity[d], text);
        text_of(&only, other);
        snprintf(why, TUNE_PREDICTOR_WHY, "%.60s %s was never measured: it is always %s", p->space->names[d], text, other);
        return false;
    }
    for (int k = 0; k < p->axes.count; k++) {
        const struct tune_surrogate_axis *axis = &p->axes.axes[k];
        const struct tune_value *v = &entity[axis->dimension];
        if (!find_place(axis, p->space->names[axis->dimension], v, &point[k], why) || !check_place(p, k, v, point[k], why))
            return false;
    }
    return true;
}

/* The measured entity that is nearest in the model's own lengths. *distance is 0 if it is the same. */
static int find_nearest(const struct tune_predictor *p, const double *point, double *distance)
{
    const double *lengths = tune_surrogate_parameters(p->model) + 2;
    int nearest = 0;
    *distance = INFINITY;
    for (int i = 0; i < p->known_count; i++) {
        const double *at = p->points + (long)i * p->axes.count;
        double squares = 0, apart = 0;
        for (int k = 0; k < p->axes.count; k++)
            if (p->axes.categories[k] == 0)
                squares += pow((point[k] - at[k]) / lengths[k], 2);
            else if (point[k] != at[k])
                apart += 1 / lengths[k];
        double away = 2.23606797749978969641 * sqrt(squares) + apart;
        if (away < *distance) {
            *distance = away;
            nearest = i;
        }
    }
    return nearest;
}

static bool is_invalid(const struct tune_predictor *p, const double *point)
{
    for (int i = 0; i < p->invalid_count; i++) {
        int k = 0;
        while (k < p->axes.count && fabs(point[k] - p->invalid[(long)i * p->axes.count + k]) < 1e-9)
            k++;
        if (k == p->axes.count)
            return true;
    }
    return false;
}

/* The probability that a value of the model of validity is above one half. n results cannot make it
 * surer than 1 / (n + 2) from 0 or 1 (Laplace's rule of succession). */
static double chance(const struct tune_predictor *p, const struct tune_prediction *at)
{
    double noise = tune_surrogate_noise(p->validity), least = 1.0 / (tune_predictor_count(p) + p->invalid_count + 2);
    double deviation = sqrt(at->deviation * at->deviation + noise * noise + 1e-6);
    double above = erfc((0.5 - at->mean) / deviation / 1.41421356237309504880) / 2;
    return fmin(fmax(above, least), 1 - least);
}

static void write_predicted(const struct tune_predictor *p, const double *point, const struct tune_prediction *at,
                            const struct tune_prediction *valid, struct tune_predicted *to)
{
    double distance;
    to->middle = at->mean;
    to->mean = p->logarithm ? exp(at->mean) : at->mean;
    to->low = at->low;
    to->high = at->high;
    to->deviation = at->deviation;
    to->unsure = fmin(at->deviation / tune_surrogate_prior(p->model), 1);
    to->valid = p->validity ? chance(p, valid) : 1;
    to->nearest = find_nearest(p, point, &distance);
    to->measured = distance < 1e-9;
    to->invalid = !to->measured && is_invalid(p, point);
}

int tune_predictor_at(const struct tune_predictor *p, const struct tune_value *const *entities, int count,
                      struct tune_predicted *predicted)
{
    size_t n = (size_t)count + 1, wide = (size_t)p->axes.count;
    double *points = malloc(n * wide * sizeof *points);
    struct tune_prediction *at = malloc(2 * n * sizeof *at);
    int known = 0, code = points && at ? 0 : no_memory();
    for (int i = 0; i < count && code == 0; i++)
        known += find_point(p, entities[i], points + (size_t)known * wide, predicted[i].why);
    if (code == 0)
        code = tune_surrogate_predict(p->model, points, known, at);
    if (code == 0 && p->validity)
        code = tune_surrogate_predict(p->validity, points, known, at + known);
    for (int i = 0, k = 0; i < count && code == 0; i++)
        if (!*predicted[i].why) {
            write_predicted(p, points + (size_t)k * wide, at + k, at + known + k, &predicted[i]);
            k++;
        }
    free(points);
    free(at);
    return code;
}

/* ---- what is known ---- */

static double below(double z)
{
    return erfc(-z / 1.41421356237309504880) / 2;
}

/* Let x be normal with mean m and deviation s, and z = (m - b) / s. Then E max(0, x - b) is
 * s phi(z) + (m - b) Phi(z). And E max(0, exp(x) - exp(b)) is
 * exp(m + s^2 / 2) Phi(z + s) - exp(b) Phi(z). For a minimum the signs change. */
double tune_predictor_gain(const struct tune_predictor *p, const struct tune_predicted *at, bool maximize)
{
    double s = fmax(at->deviation, 1e-12), b = p->best[maximize], sign = maximize ? 1 : -1, z = sign * (at->middle - b) / s, gain;
    if (p->logarithm)
        gain = sign * (exp(at->middle + s * s / 2) * below(z + sign * s) - exp(b) * below(z));
    else
        gain = s * exp(-z * z / 2) / 2.50662827463100050242 + sign * (at->middle - b) * below(z);
    return fmax(gain, 0) * at->valid;
}

double tune_predictor_best(const struct tune_predictor *p, bool maximize)
{
    return p->logarithm ? exp(p->best[maximize]) : p->best[maximize];
}

const struct tune_axes *tune_predictor_axes(const struct tune_predictor *p)
{
    return &p->axes;
}

const struct tune_surrogate *tune_predictor_model(const struct tune_predictor *p)
{
    return p->model;
}

bool tune_predictor_logarithm(const struct tune_predictor *p)
{
    return p->logarithm;
}

double tune_predictor_place(const struct tune_predictor *p, int axis, double u)
{
    int count = p->place_count[axis];
    u = fmin(fmax(u, 0), 1 - 1e-12);
    return count > 0 ? p->places[axis][(int)(u * count)] : p->least[axis] + u * (p->most[axis] - p->least[axis]);
}

const double *tune_predictor_places(const struct tune_predictor *p, int axis, int *count)
{
    *count = p->place_count[axis];
    return p->places[axis];
}

int tune_predictor_count(const struct tune_predictor *p)
{
    return p->known_count;
}

int tune_predictor_invalid(const struct tune_predictor *p)
{
    return p->invalid_count;
}

const struct tune_value *tune_predictor_entity(const struct tune_predictor *p, int i)
{
    return p->known[i].values;
}

double tune_predictor_measured(const struct tune_predictor *p, int i, int *count)
{
    *count = p->known[i].count;
    return p->known[i].mean;
}
