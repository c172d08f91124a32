/* shares.h - which share of a property's variance each dimension explains, by a model of the
 * results. Private to answers/. */
#ifndef TUNE_ANSWERS_SHARES_H
#define TUNE_ANSWERS_SHARES_H

#include "sweeps/answers/model.h"
#include "sweeps/surrogate/indices.h"

/* tune_shares_find - find the shares of a property under each experiment, from the results that q
 * selects: shares[reference_count], each [space->count] or NULL. A dimension without a share has
 * NAN. Notes list them, or say why there are none. -1 with an error: the store cannot be read, or
 * no memory.
 * tune_shares_least - the number of measured entities that are enough for a model with as many
 * dimensions as have more than one measured value. They are *varying.
 * tune_shares_spread - the spread of a model's axes over the measured range. */
int tune_shares_find(struct tune_subject *s, const char *property, struct tune_indices **shares);
int tune_shares_least(const struct tune_predictor *model, int *varying);
struct tune_spread_of_axes tune_shares_spread(const struct tune_predictor *model);

#endif
