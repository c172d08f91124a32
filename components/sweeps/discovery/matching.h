/* matching.h - find the entities of a space that have rows in a store, and the positions of these
 * rows. Rows of any operation count.
 *
 * An experiment may use only some of the space's dimensions. Its row then belongs to every entity
 * with these values. If the space can be counted, these are all such entities, up to
 * TUNE_MATCHING_SHARED per row. Otherwise they are the entities of other rows. */
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
    uint64_t measured;           /* bit p: binding p has a result (valid or not) */
};

/* A row of the store that belongs to an entity. */
struct tune_matching_row {
    int entity;
    /* binding whose other inputs (parameters, defaults) equal the row's; -1: none */
    int16_t binding;
    uint8_t status;              /* enum tune_status */
    /* its experiment uses only some dimensions, so it may belong to several entities */
    bool shared;
    int provenance;              /* index into provenances */
    struct tune_row_position position;
    uint8_t uid[16];
};

struct tune_matching {
    const struct tune_space *space;
    struct tune_matching_entity *entities; /* [count], first seen first */
    int count;
    /* [row_count], experiment by experiment, in the order they were measured */
    struct tune_matching_row *rows;
    int row_count;
    struct tune_provenance *provenances; /* [provenance_count] */
    int provenance_count;
    double *provenance_started; /* [provenance_count] last start of each provenance */
    /* number of rows without a uid, or without an experiment of their table */
    int64_t strays;
    struct tune_pool *memory;
};

/* tune_matching_read - find the rows of the bindings' experiments whose entity is in the space. At
 * most 64 bindings. The space is borrowed. -1 with an error.
 * tune_matching_values - the values of entity i, into values[space->count].
 * tune_matching_free - free the memory of m. */
int tune_matching_read(struct tune_matching *m, struct tune_store *s,
                       const struct tune_space *space,
                       const struct tune_binding *bindings, int count);
void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values);
void tune_matching_free(struct tune_matching *m);

#ifdef __cplusplus
}
#endif
#endif
