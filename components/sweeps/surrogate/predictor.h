/* predictor.h - what a model of measured entities says of other entities of the space. Where it
 * knows nothing, it says why.
 *
 *     struct tune_predictor *p = tune_predictor_new(space);
 *     for each measured entity
 *         tune_predictor_add(p, entity, values, count);       count 0: it could not be measured
 *     if (tune_predictor_fit(p, "speed") == 0)
 *         tune_predictor_at(p, entities, 1, &predicted);
 *     tune_predictor_free(p);
 *
 * If all values are above 0, their logarithms are modelled. Then `mean` is the median, and the
 * interval is not symmetric. */
#ifndef TUNE_SURROGATE_PREDICTOR_H
#define TUNE_SURROGATE_PREDICTOR_H

#include "sweeps/surrogate/axes.h"
#include "sweeps/surrogate/surrogate.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_PREDICTOR_WHY = 256 };

struct tune_predicted {
    double mean, low, high;   /* low, high: 95 % interval of a new measurement */
    double middle, deviation; /* of the modelled value, without noise */
    double unsure;            /* share of the deviation that is left by the measurements: 0 to 1 */
    double valid;             /* probability that it can be measured */
    int nearest;              /* the measured entity that says most about it, in order of _add */
    bool measured;            /* it is that entity */
    bool invalid;             /* it was tried, and has no value */
    char why[TUNE_PREDICTOR_WHY]; /* why nothing can be said of it; "": the above is set */
};

struct tune_predictor;

/* tune_predictor_new - begin a model of entities of a borrowed space. NULL with an error: a
 * dimension that has no model (axes.h).
 * tune_predictor_free - free it; NULL is fine.
 * tune_predictor_add - add a measured entity with its finite results, which are copied. -1 with an
 * error: no memory. An entity outside the space is left out: 0; else 1.
 * tune_predictor_fit - fit the model. property: its name, for messages. -1 with an error: fewer
 * than two entities with values, or all values are equal.
 * tune_predictor_at - write into predicted[count] what is known of entities[count], each with
 * space->count values. They need not be in the space: a number between measured ones is fine. */
struct tune_predictor *tune_predictor_new(const struct tune_space *space);
void tune_predictor_free(struct tune_predictor *p);
int tune_predictor_add(struct tune_predictor *p, const struct tune_value *entity,
                       const double *values, int count);
int tune_predictor_fit(struct tune_predictor *p, const char *property);
int tune_predictor_at(const struct tune_predictor *p, const struct tune_value *const *entities,
                      int count, struct tune_predicted *predicted);

/* tune_predictor_gain - by how much a measurement of the entity is expected to improve the best
 * value, in the property's unit. The best is that of the measured entities as the model sees them.
 * The gain is multiplied by the probability that the entity can be measured.
 *
 * tune_predictor_axes - the dimensions of the model.
 * tune_predictor_best - the highest value that the model gives a measured entity, else the lowest.
 * tune_predictor_model - the model itself.
 * tune_predictor_logarithm - whether it is one of logarithms.
 * tune_predictor_place - a place on axis `axis` of the model for share u of its measured range, 0
 * to 1. Each value between the lowest and the highest measured one is as likely as the others; of
 * categories, each that was measured.
 * tune_predictor_places - those values as places, *count of them; 0: they cannot be listed.
 *
 * Measured entities, in the order of _add:
 * tune_predictor_count - how many have values; tune_predictor_invalid - how many have none.
 * tune_predictor_entity - the values of entity i.
 * tune_predictor_measured - its mean, and *count of results. */
double tune_predictor_gain(const struct tune_predictor *p, const struct tune_predicted *at,
                           bool maximize);
double tune_predictor_best(const struct tune_predictor *p, bool maximize);
const struct tune_axes *tune_predictor_axes(const struct tune_predictor *p);
const struct tune_surrogate *tune_predictor_model(const struct tune_predictor *p);
bool tune_predictor_logarithm(const struct tune_predictor *p);
double tune_predictor_place(const struct tune_predictor *p, int axis, double u);
const double *tune_predictor_places(const struct tune_predictor *p, int axis, int *count);
int tune_predictor_count(const struct tune_predictor *p);
int tune_predictor_invalid(const struct tune_predictor *p);
const struct tune_value *tune_predictor_entity(const struct tune_predictor *p, int i);
double tune_predictor_measured(const struct tune_predictor *p, int i, int *count);

#ifdef __cplusplus
}
#endif
#endif
