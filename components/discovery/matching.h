/* matching.h - the entities of a space that a store has rows of, whoever measured them. */
#ifndef TUNE_DISCOVERY_MATCHING_H
#define TUNE_DISCOVERY_MATCHING_H

#include "discovery/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_matching_entity {
    tune_index index;            /* in the grid; of a space that cannot be counted, 0 */
    struct tune_value *values;   /* [space->count]; texts are the matching's or the space's */
    uint64_t measured;           /* bit p: protocol p has a result (valid or not) */
};

struct tune_matching {
    struct tune_matching_entity *entities; /* [count], first seen first */
    int count;
    void *memory;
};

/* tune_matching_read - of the rows of the protocols' experiments, those whose entity is in the space; a protocol counts
 * as having a result where the row's other inputs are its own (its parameters and defaults), and the status is valid or
 * invalid. At most 64 protocols. -1 with an error. */
int tune_matching_read(struct tune_matching *m, struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                       int count);
void tune_matching_free(struct tune_matching *m);

#ifdef __cplusplus
}
#endif
#endif
