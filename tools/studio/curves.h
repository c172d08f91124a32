/* curves.h - whole metrics of runs, kept while somebody looks at them. */
#ifndef TUNE_STUDIO_CURVES_H
#define TUNE_STUDIO_CURVES_H

#include "runs/run.h"

/* studio_curves_lock - the runs in these folders with all their metrics, in runs[count]; those that
 * were read before are only updated. They are valid until studio_curves_unlock, which also forgets
 * the oldest above the limit of memory. 0, or -1 with an error, and then nothing is locked. */
int studio_curves_lock(const char *const *folders, int count, struct tune_run **runs);
void studio_curves_unlock(void);

#endif
