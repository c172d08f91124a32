/* chosen.h - select rows from all tables of a store: by an expression, an operation, or uids. It is
 * used to forget or copy rows.
 *
 *     struct tune_chosen_options o = {.where = "build_id == 'c0ffee'", .operation = "grid-1"};
 *     struct tune_chosen *c = tune_chosen_new(store, &catalog, &o);
 *     rows = tune_chosen_collect(c);
 *     tune_store_forget(store, tune_chosen_uids(c), rows, "a bad evening", id);
 *     tune_chosen_free(c); */
#ifndef TUNE_DISCOVERY_CHOSEN_H
#define TUNE_DISCOVERY_CHOSEN_H

#include "sweeps/spaces/experiment.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Conditions for a row. It must meet all that are given. */
struct tune_chosen_options {
    const char *where;        /* over keys, inputs and targets; NULL: any row */
    /* rows that it measured or replayed; NULL: any row */
    const char *operation;
    const char *const *uids;  /* [uid_count]; 0: any row */
    int uid_count;
};

/* Chosen rows of one experiment that one operation measured. */
struct tune_chosen_group {
    char *experiment, *operation;
    int64_t rows;
};

struct tune_chosen;

/* tune_chosen_new - prepare the choice, which is valid until the store's next refresh. The domains
 * of the experiments in catalog, which may be NULL, turn texts into values. NULL with an error of
 * kind USAGE: `where` fits no table, the operation is unknown, or a uid is malformed.
 * tune_chosen_free - free it; NULL is fine.
 * tune_chosen_row - 1 if the row is chosen, 0 if not, -1 with an error. It can be `wanted` of
 * struct tune_merge, with the choice as context.
 * tune_chosen_lacks - the tables that lack a name in `where`, separated by commas; "": none. None
 * of their rows is chosen.
 * tune_chosen_collect - read all rows that are not forgotten. Returns the number of chosen ones. -1
 * with an error: a uid is not found (kind USAGE), or the store cannot be read.
 * tune_chosen_uids - the uids of the chosen rows.
 * tune_chosen_groups - the chosen rows by experiment and operation, *count groups. */
struct tune_chosen *tune_chosen_new(struct tune_store *s, const struct tune_catalog *catalog,
                                    const struct tune_chosen_options *o);
void tune_chosen_free(struct tune_chosen *c);
int tune_chosen_row(void *chosen, const char *experiment, const struct tune_column *columns,
                    int count, const struct tune_cell *cells);
const char *tune_chosen_lacks(const struct tune_chosen *c);
int64_t tune_chosen_collect(struct tune_chosen *c);
const char *const *tune_chosen_uids(const struct tune_chosen *c);
const struct tune_chosen_group *tune_chosen_groups(const struct tune_chosen *c, int *count);

#ifdef __cplusplus
}
#endif
#endif
