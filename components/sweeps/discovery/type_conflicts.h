/* type_conflicts.h - find inputs that have a number in one space and the same number as a text in
 * another.
 *
 * An input that takes any text is stored as text, and a program gets both in the same form. So rows
 * of one space count for the other. This is correct, but the user should know it. */
#ifndef TUNE_DISCOVERY_TYPE_CONFLICTS_H
#define TUNE_DISCOVERY_TYPE_CONFLICTS_H

#include "sweeps/discovery/rows.h"

/* The type of a callback. sentence: the input, the other space, and the first pair of values that
 * conflict. */
typedef void tune_type_conflict_report(void *context, const char *sentence);

/* tune_type_conflicts_find - call report for each such input of each other space in the store.
 * Records that are damaged or have unknown experiments are skipped. -1 with an error: no memory, or
 * the records cannot be listed. */
int tune_type_conflicts_find(struct tune_store *s, const struct tune_space *space,
                       const struct tune_binding *bindings,
                       const struct tune_catalog *catalog, tune_type_conflict_report *report,
                       void *context);

#endif
