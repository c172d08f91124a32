/* matching.h - the entities of a space that a store has rows of, whoever measured them, and where
 * those rows lie.
 *
 * An experiment may take only some of the space's dimensions. Its row then is of every entity that
 * agrees in those: of a space that can be counted all of them, up to TUNE_MATCHING_SHARED of one
 * row; else those that other rows are of. */
#ifndef TUNE_DISCOVERY_MATCHING_H
#define TUNE_DISCOVERY_MATCHING_H

#include "sweeps/discovery/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_MATCHING_SHARED 65536

struct tune_matching_entity {
    tune_index index;            /* in the grid; of a space that cannot be counted, 0 */
    /* [space->count] of such a one, the matching's; else NULL: they follow from the index */
    struct tune_value *values;
    uint64_t measured;           /* bit p: protocol p has a result (valid or not) */
};

/* A row of the store that is of one of them. */
struct tune_matching_row {
    int entity;
    /* whose other inputs (parameters, defaults) are the row's; -1: none's */
    int16_t protocol;
    uint8_t status;              /* enum tune_status */
    /* its experiment takes only some of the dimensions: it may be of other entities, too */
    bool shared;
    int origin;                  /* its number among origins */
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
    /* [row_count][words], a bit for each column asked about: the row has a value in it */
    uint64_t *present;
    int words;
    /* rows that name no experiment as its table does, or no uid: of nothing */
    int64_t strays;
    void *memory;
};

/* tune_matching_read - of the rows of the protocols' experiments, those whose entity is in the
 * space; and which of columns[] each has a value in. At most 64 protocols. The space is borrowed.
 * -1 with an error.
 * tune_matching_values - of entity i, into values[space->count]. */
int tune_matching_read(struct tune_matching *m, struct tune_store *s,
                       const struct tune_space *space,
                       const struct tune_protocol *protocols, int count, const char *const *columns, int column_count);
void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values);
void tune_matching_free(struct tune_matching *m);

#ifdef __cplusplus
}
#endif
#endif
