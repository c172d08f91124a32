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
 *     struct tune_view *v = tune_view_open(store, space, protocols, &(struct tune_view_options){.include = TUNE_VIEW_MATCHING});
 *     while ((more = tune_view_next(v, &group)) == 1)
 *         ... group.entity[d], group.results, tune_view_number(v, k, target) */
#ifndef TUNE_DISCOVERY_VIEW_H
#define TUNE_DISCOVERY_VIEW_H

#include "discovery/matching.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_view_include { TUNE_VIEW_MEASURED, TUNE_VIEW_MATCHING, TUNE_VIEW_MISSING, TUNE_VIEW_UNMEASURED };

struct tune_view_options {
    enum tune_view_include include;
    const char *where;              /* an expression over the experiments' inputs; NULL: all */
    const char *operation;          /* measured: of this operation only; NULL: of all */
    bool failed;                    /* rows that failed are results, too (without values) */
    const char *const *columns;     /* [column_count] what tune_view_cell gives: keys, inputs, targets; nothing else is read */
    int column_count;
};

struct tune_view_group {
    const struct tune_value *entity; /* [space->count] */
    int protocol;                    /* -1 in missing and unmeasured */
    int results;
};

/* Where the rows of a view come from: more than one of a kind means that figures are mixed. */
struct tune_view_origins {
    int host_classes, builds, weights, data;
};

struct tune_view;

/* tune_view_open - NULL with an error: missing or unmeasured of a space that cannot be counted; a bad expression (kind
 * USAGE).
 * tune_view_next - 1 and the next group (valid until the next call), 0: the end, -1. tune_view_rewind - begin again.
 * tune_view_count - groups of the first two views.
 * tune_view_cell - of the present group's result k, the options' column i; valid until the next call of it. A column
 * that the experiment or a file does not have is absent. NULL with an error.
 * tune_view_present - some result of the view under protocol p (-1: any) has a value in column i: 1, 0, -1.
 * tune_view_mixed - how many origins there are. */
struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                                 const struct tune_view_options *options);
int tune_view_next(struct tune_view *v, struct tune_view_group *group);
void tune_view_rewind(struct tune_view *v);
int tune_view_count(const struct tune_view *v);
const struct tune_cell *tune_view_cell(struct tune_view *v, int k, int i);
int tune_view_present(struct tune_view *v, int protocol, int i);
int tune_view_mixed(struct tune_view *v, struct tune_view_origins *origins);
void tune_view_free(struct tune_view *v);

#ifdef __cplusplus
}
#endif
#endif
