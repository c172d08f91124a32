/* view_parts.h - types shared by view.c and view_select.c. Private to them. */
#ifndef TUNE_DISCOVERY_VIEW_PARTS_H
#define TUNE_DISCOVERY_VIEW_PARTS_H

#include "sweeps/discovery/facts.h"
#include "sweeps/discovery/uids.h"
#include "sweeps/discovery/view.h"
#include "sweeps/spaces/lookup.h"

struct group {
    int first, count; /* its rows in order[] */
};

struct tune_view {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_binding *bindings;
    struct tune_view_options o;
    struct tune_matching m;
    struct tune_uids asked;          /* uids of results of this space's operations, with hashes of
                                      * entities */
    bool asked_known;
    struct tune_select **select;     /* [reference_count] `where` and new columns; NULL: neither */
    unsigned *facts;                 /* [reference_count] bit i is set if expressions may use fact
                                      * i */
    struct tune_lookup **lookups;    /* [reference_count] lookup table for the binding, or NULL */
    const char **columns;            /* [column_count] names of stored columns to read */
    int column_count;
    int *from;                       /* [o.column_count] index in columns; for new column d: -1 -
                                      * d */
    struct tune_cell *cells;         /* [o.column_count] */
    struct tune_scan **scans;        /* [reference_count] scans of columns, opened when needed */
    int *order, order_count;         /* indexes of rows of m, sorted */
    struct group *groups;
    int group_count, at;             /* index of the next group */
    struct tune_view_build *builds;  /* [reference_count] the chosen build */
    char time[TUNE_FACT_TIME];       /* scratch for the start of a result */
    struct tune_value *values, *inputs;
    char *text;                      /* scratch for an identifier */
    size_t text_size;
};

/* tune_view_choose - compile `where` and the new columns, and choose the columns to read. names:
 * scratch for all names of an experiment.
 * tune_view_read - read the stored columns of a row. NULL with an error.
 * tune_view_meets - check if the entity in v->values, or its result with these cells, is wanted
 * under binding p. 1, 0, or -1 with an error.
 * tune_view_row - read the requested columns of a row. Its entity is in v->values. */
int tune_view_no_memory(void);
int tune_view_choose(struct tune_view *v, const char **names, int targets);
const struct tune_cell *tune_view_read(struct tune_view *v, const struct tune_matching_row *row);
int tune_view_meets(struct tune_view *v, int p, const struct tune_cell *cells);
const struct tune_cell *tune_view_row(struct tune_view *v, const struct tune_matching_row *row);

#endif
