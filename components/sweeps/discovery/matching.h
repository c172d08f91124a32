/* matching.h - the entities of a space that a store has rows of, whoever measured them, and the
 * places of those rows.
 *
 * An experiment may take only some of the space's dimensions. Its row then belongs to every entity
 * with these values. In a space that can be counted these are all such entities, up to
 * TUNE_MATCHING_SHARED per row. Otherwise they are those that other rows name. */
#ifndef TUNE_DISCOVERY_MATCHING_H
#define TUNE_DISCOVERY_MATCHING_H

#include "sweeps/discovery/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_MATCHING_SHARED 65536

struct tune_matching_entity {
    tune_index index;            /* index in the grid; 0 if the space cannot be counted */
    /* [space->count] values, if the space cannot be counted; else NULL */
    struct tune_value *values;
    uint64_t measured;           /* bit p: protocol p has a result (valid or not) */
};

/* A row of the store that belongs to one of them. */
struct tune_matching_row {
    int entity;
    /* protocol whose other inputs (parameters, defaults) equal the row's; -1: none */
    int16_t protocol;
    uint8_t status;              /* enum tune_status */
    /* its experiment takes only some dimensions, so it may belong to more entities */
    bool shared;
    int origin;                  /* index into origins */
    struct tune_place place;
    uint8_t uid[16];
};

struct tune_matching {
    const struct tune_space *space;
    struct tune_matching_entity *entities; /* [count], first seen first */
    int count;
    /* [row_count], experiment by experiment, in the order they were measured */
    struct tune_matching_row *rows;
    int row_count;
    struct tune_origin *origins;           /* [origin_count] */
    int origin_count;
    /* rows that name no experiment of their table, or have no uid */
    int64_t strays;
    struct tune_pool *memory;
};

/* tune_matching_read - find the rows of the protocols' experiments whose entity is in the space. At
 * most 64 protocols. The space is borrowed. -1 with an error.
 * tune_matching_values - the values of entity i, into values[space->count].
 * tune_matching_free - free what read took. */
int tune_matching_read(struct tune_matching *m, struct tune_store *s,
                       const struct tune_space *space,
                       const struct tune_protocol *protocols, int count);
void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values);
void tune_matching_free(struct tune_matching *m);

#ifdef __cplusplus
}
#endif
#endif
