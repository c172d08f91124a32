/* other_inputs.h - results of a space's entities that were measured with other parameters. Nobody
 * sees them in that space, so the user should know. */
#ifndef TUNE_DISCOVERY_OTHER_INPUTS_H
#define TUNE_DISCOVERY_OTHER_INPUTS_H

#include "sweeps/discovery/rows.h"

/* A function that gets the number of such results, and the inputs that differ, such as
 * "steps=20,mode=fast". */
typedef void tune_other_tell(const struct tune_experiment *e, int64_t rows, const char *inputs);

/* tune_other_inputs - call tell for each set of other values, at most 16, in the order of the
 * store. Results that belong to the space under any of its experiments are not among them. -1 with
 * an error. */
int tune_other_inputs(struct tune_store *s, const struct tune_space *space,
                      const struct tune_protocol *protocols, tune_other_tell *tell);

#endif
