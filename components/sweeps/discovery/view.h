/* view.h - the entities "in" a space: ado's four views of it over a store.
 *
 *     measured     requested by operations on this space (ado's documents: sampled)
 *     matching     in the store and in the space, whoever measured it
 *     missing      entities of the grid without a result in the store
 *     unmeasured   entities of the grid without a result of an operation on this space (unsampled)
 *
 * The first two give groups of results: one entity under one experiment with all its results
 * (repeats, other hosts). The others give entities alone. Groups come entity by entity, first
 * measured first, and experiments in the space's order. Reading in that order goes through the
 * files once. Example:
 *
 *     struct tune_view_options o = {.include = TUNE_VIEW_MATCHING, ...};
 *     struct tune_view *v = tune_view_open(store, space, protocols, &o);
 *     while ((more = tune_view_next(v, &group)) == 1)
 *         for (int k = 0; k < group.results && (cells = tune_view_cells(v, k)); k++)
 *             ... group.entity[d], cells[i].number */
#ifndef TUNE_DISCOVERY_VIEW_H
#define TUNE_DISCOVERY_VIEW_H

#include "sweeps/discovery/matching.h"
#include "sweeps/discovery/select.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_view_include {
    TUNE_VIEW_MEASURED, TUNE_VIEW_MATCHING, TUNE_VIEW_MISSING, TUNE_VIEW_UNMEASURED
};

struct tune_view_options {
    enum tune_view_include include;
    /* Expression over the experiments' inputs, the dimensions, the targets and the new columns;
     * NULL: all. It chooses results. Those whose experiment lacks a name in it do not match.
     * missing, unmeasured: over inputs and dimensions only. */
    const char *where;
    const struct tune_derived *derived; /* [derived_count] new columns, computed for each result */
    int derived_count;
    const char *operation;          /* measured: only of this operation; NULL: of all */
    bool failed;                    /* count failed rows as results too (they have no values) */
    bool valid;                     /* count valid rows only */
    /* [column_count] the columns that tune_view_cells gives, stored or new */
    const char *const *columns;
    int column_count;
};

struct tune_view_group {
    const struct tune_value *entity; /* [space->count] */
    /* the entity is that of the previous group, under another experiment */
    bool goes_on;
    int protocol;                    /* -1 for missing and unmeasured */
    int results;
};

/* Origins of a view's rows. Above 1, figures are mixed. Entities may have weights or data of their
 * own, so those are mixed only if the results of one entity differ. */
struct tune_view_origins {
    int host_classes, builds;
    bool weights, data;
};

/* Numbers of entities, whatever `where` and `include` say. Failed rows are no results. */
struct tune_view_counts {
    /* numbers of entities with results of operations on this space: in total; for all experiments;
     * for some only */
    int64_t measured, measured_all, measured_partly;
    /* numbers of entities in the store: in total; with a result; with results of all experiments */
    int64_t matching, matching_results, matching_all;
};

struct tune_view;

/* tune_view_open - open a view. NULL with an error: missing or unmeasured of a space that cannot be
 * counted, or a bad expression (kind USAGE).
 * tune_view_free - close it; NULL is fine.
 * tune_view_next - 1 and the next group, valid until the next call; 0 at the end; -1 with an error.
 * tune_view_rewind - start again.
 * tune_view_cells - the options' columns of result k of the current group, valid until the next
 * call. A column that the experiment or a file lacks is absent. NULL with an error.
 * tune_view_mixed - the most host classes and builds under one experiment; and whether weights or
 * data are mixed.
 * tune_view_counted - the numbers of entities.
 * tune_view_strays - rows that name no experiment or have no uid; the view leaves them out. */
struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space,
                                 const struct tune_protocol *protocols,
                                 const struct tune_view_options *options);
int tune_view_next(struct tune_view *v, struct tune_view_group *group);
void tune_view_rewind(struct tune_view *v);
const struct tune_cell *tune_view_cells(struct tune_view *v, int k);
int tune_view_mixed(const struct tune_view *v, struct tune_view_origins *origins);
int tune_view_counted(struct tune_view *v, struct tune_view_counts *counts);
int64_t tune_view_strays(const struct tune_view *v);
void tune_view_free(struct tune_view *v);

/* tune_view_operations - the sorted ids of this space's operations that have a record in the store.
 * *count is set to their number. Free with tune_store_records_free. A bad record belongs to no
 * space. */
char **tune_view_operations(struct tune_store *s, const struct tune_space *space, int *count);

#ifdef __cplusplus
}
#endif
#endif
