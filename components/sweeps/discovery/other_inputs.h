/* other_inputs.h - results of a space's entities that were measured with other parameters. Nobody
 * sees them in that space, so the user should know. */
#ifndef TUNE_DISCOVERY_OTHER_INPUTS_H
#define TUNE_DISCOVERY_OTHER_INPUTS_H

#include "sweeps/discovery/rows.h"

enum { TUNE_OTHER_VALUES = 256 };

/* Results with other values of some inputs. */
struct tune_other {
    const struct tune_experiment *e;
    const char *names;          /* of the inputs: "steps,how" */
    int64_t rows;
    int values;                 /* number of different values, or combinations of them; at most
                                 * TUNE_OTHER_VALUES are counted */
    const char *inputs;         /* those of most rows: "steps=20,how=fast", as `set` takes them */
    bool settable;              /* false: `set` cannot give them */
    int64_t most;               /* number of rows with these */
};
typedef void tune_other_tell(const struct tune_other *other);

/* tune_other_inputs - call tell once for each set of inputs with other values, at most 16, in the
 * order of the store. Results that belong to the space under any of its experiments are not among
 * them. -1 with an error. */
int tune_other_inputs(struct tune_store *s, const struct tune_space *space,
                      const struct tune_protocol *protocols, tune_other_tell *tell);

#endif
