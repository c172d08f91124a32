/* check.h - whether a merged folder holds base plus adapter, weight by weight. */
#ifndef TUNE_TOOLS_MERGE_CHECK_H
#define TUNE_TOOLS_MERGE_CHECK_H

#include "adapters/adapter_file.h"
#include "models/weights.h"

/* The contents that a merged folder must have. All pointers are borrowed. */
struct merge_check {
    const struct tune_parameters *table; /* of the merged model */
    const struct tune_adapter_file *adapter;
    bool tied;                       /* the base's embedding is its output projection */
    struct tune_weights_source base; /* the base's numbers, as the adapter was trained on them */
    const char *name;                /* of the merged folder, for messages */
};

/* merge_check - read the folder and compute each weight again in float64: W + s B A. DoRA scales it
 * to its magnitude. A module that is trained whole must be the adapter's. A difference is relative
 * to |W| + s |B| |A|. One rounding to the folder's dtype is allowed, and those of float32 sums.
 * Prints the largest difference and its limit. -1 with an error: a weight differs by more, or the
 * folder is no such model. */
int merge_check(const struct merge_check *c, const char *folder);

#endif
