/* view.h - what is "in" a space: ado's four views of it over a store.
 *
 *   measured     asked for by operations on this very space (sampled, in ado's documents)
 *   matching     in the store and in the space, whoever measured it
 *   missing      entities of the grid without a result in the store
 *   unmeasured   entities of the grid that no operation on this space has a result of (unsampled)
 *
 * The first two are groups of results: one entity under one experiment, with all its results (repeats, other hosts). The
 * others are entities alone. Groups come entity by entity, first measured first, experiments in the space's order;
 * reading them in that order goes through the files once. Example:
 *
 *     struct tune_view *v = tune_view_open(store, space, protocols, &(struct tune_view_options){.include = TUNE_VIEW_MATCHING,
 * ...});
 *     while ((more = tune_view_next(v, &group)) == 1)
 *         for (int k = 0; k < group.results && (cells = tune_view_cells(v, k)); k++)
 *             ... group.entity[d], cells[i].number */
#ifndef TUNE_DISCOVERY_VIEW_H
#define TUNE_DISCOVERY_VIEW_H

#include "sweeps/discovery/matching.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_view_include { TUNE_VIEW_MEASURED, TUNE_VIEW_MATCHING, TUNE_VIEW_MISSING, TUNE_VIEW_UNMEASURED };

struct tune_view_options {
    enum tune_view_include include;
    const char *where;              /* an expression over the experiments' inputs and the dimensions; NULL: all. Rows of an
                                       experiment without one of the inputs that it names do not meet it */
    const char *operation;          /* measured: of this operation only; NULL: of all */
    bool failed;                    /* rows that failed are results, too (without values) */
    bool valid;                     /* only rows that are valid are */
    const char *const *columns;     /* [column_count] what tune_view_cells gives: keys, inputs, targets; nothing else is read */
    int column_count;
};

struct tune_view_group {
    const struct tune_value *entity; /* [space->count] */
    bool goes_on;                    /* the entity is that of the group before this one, under another experiment */
    int protocol;                    /* -1 in missing and unmeasured */
    int results;
};

/* Origins of a view's rows. More than one of a kind means that figures are mixed. Entities may have
 * their own weights or data, so these are mixed only if results of one entity differ in them. */
struct tune_view_origins {
    int host_classes, builds;
    bool weights, data;
};

/* How many entities, whatever `where` and `include` say. Results: of the space's experiments with its parameters; failed
 * ones are none. */
struct tune_view_counts {
    int64_t measured, measured_all, measured_partly; /* entities with results that operations on this space asked for; of all its
                                                        experiments; of some */
    int64_t matching, matching_results, matching_all; /* entities in the store; with a result; with one of every experiment */
};

struct tune_view;

/* tune_view_open - NULL with an error: missing or unmeasured of a space that cannot be counted; a bad expression (kind
 * USAGE).
 * tune_view_next - 1 and the next group (valid until the next call), 0: the end, -1. tune_view_rewind - begin again.
 * tune_view_cells - of the present group's result k, the options' columns; valid until the next call of it. A column
 * that the experiment or a file does not have is absent. NULL with an error.
 * tune_view_present - some result of the view under protocol p (-1: any) has a value in column i.
 * tune_view_mixed - how many host classes and builds there are under one experiment, of the one that has most; and whether weights
 * or data are mixed under any.
 * tune_view_counted - the counts.
 * tune_view_strays - rows of the experiments' tables that name no experiment, or have no uid: the view leaves them out. */
struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                                 const struct tune_view_options *options);
int tune_view_next(struct tune_view *v, struct tune_view_group *group);
void tune_view_rewind(struct tune_view *v);
const struct tune_cell *tune_view_cells(struct tune_view *v, int k);
bool tune_view_present(const struct tune_view *v, int protocol, int i);
int tune_view_mixed(const struct tune_view *v, struct tune_view_origins *origins);
int tune_view_counted(struct tune_view *v, struct tune_view_counts *counts);
int64_t tune_view_strays(const struct tune_view *v);
void tune_view_free(struct tune_view *v);

/* tune_view_operations - ids of the operations on this space that the store has records of, sorted; *count; freed by
 * tune_store_records_free. A record that makes no sense is of none. */
char **tune_view_operations(struct tune_store *s, const struct tune_space *space, int *count);

#ifdef __cplusplus
}
#endif
#endif
