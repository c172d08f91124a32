/* other_inputs.h - find results of a space's entities that were measured with other parameters. The
 * space does not show them, so the user should know. */
#ifndef TUNE_DISCOVERY_OTHER_INPUTS_H
#define TUNE_DISCOVERY_OTHER_INPUTS_H

#include "sweeps/discovery/rows.h"

enum { TUNE_OTHER_VALUES = 256 };

/* Results that differ from the space in the same inputs. */
struct tune_other {
    const struct tune_experiment *e;
    const char *names;          /* the inputs: "steps,how" */
    int64_t rows;
    int values;                 /* number of different combinations of values, up to
                                 * TUNE_OTHER_VALUES */
    const char *inputs;         /* the most frequent values, "steps=20,how=fast" */
    bool settable;              /* true if --set accepts `inputs` */
    int64_t most;               /* number of rows with `inputs` */
};
typedef void tune_other_report(void *context, const struct tune_other *other);

/* tune_other_inputs - call report for each set of inputs with other values, at most 16, in the
 * order of the store. Results that belong to the space under any of its experiments are left out.
 * -1 with an error. */
int tune_other_inputs(struct tune_store *s, const struct tune_space *space,
                      const struct tune_binding *bindings, tune_other_report *report,
                      void *context);

#endif
