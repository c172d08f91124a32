/* curves.h - whole metrics of runs, kept while somebody looks at them. */
#ifndef TUNE_STUDIO_CURVES_H
#define TUNE_STUDIO_CURVES_H

#include "runs/run.h"

/* A run to read: its folder, the root that its files must lie in, and its version in the index. */
struct studio_curve_run {
    const char *folder, *root;
    uint64_t version;
};

/* studio_curves_lock - the runs with these metrics (names with commas) in runs[count]. Of
 * others, only the last value is kept. What was read before is kept for a while; a run that goes
 * on is only updated. They are valid until studio_curves_unlock, which forgets the oldest above the
 * limit of memory. 0, or -1 with an error, and then nothing is locked. No folder may be asked for
 * twice.
 * studio_curves_forget - forget the runs that were not asked for in the last seconds.
 * studio_curves_limit - set the limit of memory; it is 256 MB of values. The last run that is kept
 * may exceed it. */
int studio_curves_lock(const struct studio_curve_run *asked, int count, const char *metrics,
                       struct tune_run **runs);
void studio_curves_unlock(void);
void studio_curves_forget(double seconds);
void studio_curves_limit(int64_t bytes);

#endif
