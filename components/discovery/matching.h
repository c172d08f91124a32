/* matching.h - the entities of a space that a store has rows of, whoever measured them. */
#ifndef TUNE_DISCOVERY_MATCHING_H
#define TUNE_DISCOVERY_MATCHING_H

#include "discovery/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_matching_entity {
    tune_index index;            /* in the grid; of a space that cannot be counted, 0 */
    struct tune_value *values;   /* [space->count] of such a one, the matching's; else NULL: they follow from the index */
    uint64_t measured;           /* bit p: protocol p has a result (valid or not) */
};

/* A row of the store that is of one of them. */
struct tune_matching_row {
    int entity;
    int protocol;                /* whose other inputs (parameters, defaults) are the row's; -1: none's */
    enum tune_status status;
    struct tune_place place;
    uint8_t uid[16];
};

struct tune_matching {
    const struct tune_space *space;
    struct tune_matching_entity *entities; /* [count], first seen first */
    int count;
    struct tune_matching_row *rows;        /* [row_count], experiment by experiment, in the order they were measured */
    int row_count;
    void *memory;
};

/* tune_matching_read - of the rows of the protocols' experiments, those whose entity is in the space. At most 64
 * protocols. The space is borrowed. -1 with an error.
 * tune_matching_values - of entity i, into values[space->count] and items[space->items]. */
int tune_matching_read(struct tune_matching *m, struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                       int count);
void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values, struct tune_value *items);
void tune_matching_free(struct tune_matching *m);

#ifdef __cplusplus
}
#endif
#endif
