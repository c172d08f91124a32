/* view_parts.h - shared by view.c and view_select.c. Private to them. */
#ifndef TUNE_DISCOVERY_VIEW_PARTS_H
#define TUNE_DISCOVERY_VIEW_PARTS_H

#include "sweeps/discovery/uids.h"
#include "sweeps/discovery/view.h"

struct group {
    int first, count; /* its rows in order[] */
};

struct tune_view {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    struct tune_view_options o;
    struct tune_matching m;
    struct tune_uids asked;          /* uids that operations on this space requested, with the hash
                                      * of the entity */
    bool asked_known;
    struct tune_select **select;     /* [reference_count] `where` and new columns; NULL: neither */
    const char **columns;            /* [column_count] stored columns that are read */
    int column_count;
    int *from;                       /* [o.column_count] place in columns, or -1 - a new column */
    struct tune_cell *cells;         /* [o.column_count] */
    struct tune_scan **scans;        /* [reference_count] scans of columns, opened when needed */
    int *order, order_count;         /* indexes of rows of m, sorted */
    struct group *groups;
    int group_count, at;             /* index of the next group */
    tune_index *excluded;            /* sorted entities, for views of entities without results */
    int excluded_count, excluded_at;
    tune_index next;
    struct tune_value *values, *inputs;
    char *text;                      /* scratch for an identifier */
    size_t text_size;
};

/* tune_view_of_entities - whether the view lists entities without results.
 * tune_view_choose - compile `where` and the new columns, and choose the columns to read. names:
 * scratch for all names of an experiment.
 * tune_view_read - the read columns of a row; NULL with an error.
 * tune_view_meets - whether the entity in v->values, or its result with these cells, is wanted
 * under protocol p.
 * tune_view_row - the options' columns of a row of the entity in v->values. */
int tune_view_no_memory(void);
bool tune_view_of_entities(const struct tune_view *v);
int tune_view_choose(struct tune_view *v, const char **names, int targets);
const struct tune_cell *tune_view_read(struct tune_view *v, const struct tune_matching_row *row);
int tune_view_meets(struct tune_view *v, int p, const struct tune_cell *cells);
const struct tune_cell *tune_view_row(struct tune_view *v, const struct tune_matching_row *row);

#endif
