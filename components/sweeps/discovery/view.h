/* view.h - the results of a store that belong to a space. As in ado, there are two views:
 *
 *     measured     requested by operations on this space (ado's documents: sampled)
 *     matching     in the store and in the space, whoever measured it
 *
 * Results come in groups. A group has all results of one entity under one experiment (repeats,
 * other hosts). Groups are sorted by entity, first measured first, then by the space's order of
 * experiments. Reading in that order needs one pass over the files. Example:
 *
 *     struct tune_view_options o = {.include = TUNE_VIEW_MATCHING, ...};
 *     struct tune_view *v = tune_view_open(store, space, bindings, &o);
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

enum tune_view_include { TUNE_VIEW_MEASURED, TUNE_VIEW_MATCHING };

struct tune_view_options {
    enum tune_view_include include;
    /* Expression that selects results; NULL: all. It may use inputs, dimensions, targets, new
     * columns, and facts such as build, host and started (facts.h). A result does not match if its
     * experiment lacks one of the names. */
    const char *where;
    /* The builds that count. "last": for each experiment, the build that measured last. "previous":
     * the one before. "all" or NULL: any. Else: the beginning of a build id. If `where` uses build
     * or build_id, last and previous mean any. */
    const char *build;
    const char *table;              /* file of a lookup table (spaces/lookup.h); NULL: none */
    const struct tune_derived *derived; /* [derived_count] new columns, computed for each result */
    int derived_count;
    const char *operation;          /* measured: only this operation; NULL: all */
    bool failed;                    /* count failed rows, which have no values, as results */
    bool valid;                     /* count valid rows only */
    /* [column_count] columns for tune_view_cells, stored or new */
    const char *const *columns;
    int column_count;
};

struct tune_view_group {
    const struct tune_value *entity; /* [space->count] */
    int binding;
    int results;
};

/* Provenances of a view's rows. If a number is above 1, figures are mixed. Entities may have their
 * own weights or data, so these are mixed only if the results of one entity differ. */
struct tune_view_provenances {
    int host_classes, builds;
    bool weights, data;
};

/* The build whose results are shown for an experiment, and the results of other builds. */
struct tune_view_build {
    char id[TUNE_BUILD_ID_SIZE]; /* "" : unknown, or several */
    int builds;                  /* builds with results here */
    int chosen;                  /* number of builds whose results are shown */
    int64_t results, left_out;   /* numbers of results shown, and of others */
    double started_s, others_s;  /* last start of each; 0: none */
};

/* Numbers of entities, regardless of `where` and `include`. Failed rows are not results. */
struct tune_view_counts {
    /* with results of operations on this space: in total, for all experiments, for some only */
    int64_t measured, measured_all, measured_partly;
    /* in the store: in total, with a result, with results of all experiments */
    int64_t matching, matching_results, matching_all;
};

struct tune_view;

/* tune_view_open - open a view. NULL with an error of kind USAGE: a bad expression, or no build
 * with that id.
 * tune_view_free - close it; NULL is fine.
 * tune_view_next - 1 and the next group, valid until the next call; 0 at the end; -1 with an error.
 * tune_view_rewind - start again.
 * tune_view_cells - the requested columns of result k of the current group, valid until the next
 * call. A cell is absent if the experiment or the file lacks the column. NULL with an error.
 * tune_view_build_of - the build that is shown under binding p. All zero if none was chosen.
 * tune_view_mixed - the maximum numbers of host classes and of builds under one experiment, and
 * whether weights or data are mixed.
 * tune_view_missed - describe in text[size] the keys that the lookup table lacked so far, and the
 * experiments that it does not fit; "": none. Returns text.
 * tune_view_counted - count entities.
 * tune_view_strays - the number of rows without an experiment or uid. The view leaves them out. */
struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space,
                                 const struct tune_binding *bindings,
                                 const struct tune_view_options *options);
int tune_view_next(struct tune_view *v, struct tune_view_group *group);
void tune_view_rewind(struct tune_view *v);
const struct tune_cell *tune_view_cells(struct tune_view *v, int k);
const struct tune_view_build *tune_view_build_of(const struct tune_view *v, int p);
int tune_view_mixed(const struct tune_view *v, struct tune_view_provenances *provenances);
const char *tune_view_missed(const struct tune_view *v, char *text, size_t size);
int tune_view_counted(struct tune_view *v, struct tune_view_counts *counts);
int64_t tune_view_strays(const struct tune_view *v);
void tune_view_free(struct tune_view *v);

/* tune_view_operations - the sorted ids of this space's operations with a record in the store,
 * *count of them. Bad records are left out. Free with tune_store_records_free. */
char **tune_view_operations(struct tune_store *s, const struct tune_space *space, int *count);

#ifdef __cplusplus
}
#endif
#endif
