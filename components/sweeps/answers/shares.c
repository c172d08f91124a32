/* shares.c - Sobol's indices of the dimensions, from models of the results. */
#include "sweeps/answers/shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"

enum { SEED = 1, FEW = 3 }; /* a model needs that many entities more than it has dimensions */

static double place(const void *model, int axis, double u)
{
    return tune_predictor_place(model, axis, u);
}

struct tune_spread_of_axes tune_shares_spread(const struct tune_predictor *model)
{
    return (struct tune_spread_of_axes){place, model};
}

/* True if an axis has more than one measured value. */
static bool varies(const struct tune_predictor *model, int axis)
{
    int count;
    const double *places = tune_predictor_places(model, axis, &count);
    return places ? count > 1 : tune_predictor_place(model, axis, 0) < tune_predictor_place(model, axis, 1);
}

int tune_shares_least(const struct tune_predictor *model, int *varying)
{
    *varying = 0;
    for (int k = 0; k < tune_predictor_axes(model)->count; k++)
        *varying += varies(model, k);
    return *varying + FEW;
}

static int highest_first(const void *a, const void *b, void *shares)
{
    const struct tune_indices *s = shares;
    double x = s[*(const int *)a].total.value, y = s[*(const int *)b].total.value;
    return x != y ? (x < y) - (x > y) : *(const int *)a - *(const int *)b;
}

/* Note the shares, the highest first: "lr 62 % (58 to 66), alone 60 %". */
static int report(struct tune_subject *s, const char *property, int binding, const struct tune_predictor *model,
                  struct tune_indices *shares)
{
    char text[4096] = "";
    int *order, count = 0;
    TAKE(order, s->a, s->space->count);
    for (int d = 0; d < s->space->count; d++)
        if (!isnan(shares[d].total.value))
            order[count++] = d;
    qsort_r(order, (size_t)count, sizeof *order, highest_first, shares);
    for (int i = 0; i < count; i++) {
        const struct tune_indices *at = &shares[order[i]];
        tune_append(text, sizeof text, "%s%s %.0f %% (%.0f to %.0f), alone %.0f %% (%.0f to %.0f)", i > 0 ? "; " : "", s->space->names[order[i]],
                    100 * at->total.value, 100 * at->total.low, 100 * at->total.high, 100 * at->first.value, 100 * at->first.low,
                    100 * at->first.high);
    }
    tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "share of the variance of %s%s%s%s by dimension, with others and alone: %s",
                         tune_predictor_logarithm(model) ? "the logarithm of " : "", property, s->space->reference_count > 1 ? " under " : "",
                         s->space->reference_count > 1 ? s->bindings[binding].identifier : "", text);
    return 0;
}

static int find(struct tune_subject *s, const char *property, int binding, const struct tune_predictor *model, struct tune_indices **shares)
{
    const struct tune_axes *axes = tune_predictor_axes(model);
    const struct tune_spread_of_axes spread = tune_shares_spread(model);
    struct tune_indices *found;
    int varying, least = tune_shares_least(model, &varying);
    if (tune_predictor_count(model) < least) {
        tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "%d entities are too few for the share of each of %d dimensions; %d are enough",
                             tune_predictor_count(model), varying, least);
        return 0;
    }
    TAKE(found, s->a, axes->count);
    if (tune_indices_find(tune_predictor_model(model), &spread, SEED, found) < 0) {
        if (tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
        tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "no share of each dimension: %s", tune_error_message());
        tune_error_clear();
        return 0;
    }
    TAKE(shares[binding], s->a, s->space->count);
    for (int d = 0; d < s->space->count; d++)
        shares[binding][d].first.value = shares[binding][d].total.value = NAN;
    for (int k = 0; k < axes->count; k++)
        if (varies(model, k))
            shares[binding][axes->axes[k].dimension] = found[k];
    return report(s, property, binding, model, shares[binding]);
}

int tune_shares_find(struct tune_subject *s, const char *property, struct tune_indices **shares)
{
    struct tune_predictor **models;
    TAKE(models, s->a, s->space->reference_count);
    int code = tune_models_read(s, property, true, models);
    if (code < 0 && tune_error_kind() != TUNE_ERROR_CANNOT) {
        tune_answer_add_note(s->a, TUNE_NOTE_BELOW, "no share of each dimension: %s", tune_error_message());
        tune_error_clear();
        code = 0;
    }
    for (int p = 0; p < s->space->reference_count && code == 0; p++)
        if (models[p])
            code = find(s, property, p, models[p], shares);
    tune_models_free(s, models);
    return code;
}
