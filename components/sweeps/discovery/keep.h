/* keep.h - what a store keeps of what it measured, so that nothing else is needed to read it and to
 * go on with its operations.
 *
 *     experiments/<actuator>.<name>.json           the experiment's file, as it was
 *     experiments/<actuator>.<name>.json.folder    the folder that its program is relative to
 *     experiments/<actuator>.<name>.json.marks     who gave it (tools/sweep/trust.c)
 *     data/<hash of the path>.json                 a data file's path and hash
 */
#ifndef TUNE_DISCOVERY_KEEP_H
#define TUNE_DISCOVERY_KEEP_H

#include "sweeps/spaces/experiment.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_keep_experiments - copy the files of the protocols' experiments into the store. A copy that
 * differs is replaced. -1 with an error.
 * tune_kept_name - the name of the copy of an experiment's file, or of the file if it is a copy.
 * tune_is_kept - whether it is such a copy.
 * tune_keep_data - note the hash of the data at this path. A note that says the same stays.
 * tune_kept_data - the noted hash: 1; 0: there is none; -1 with an error. */
enum { TUNE_KEPT_NAME = 2 * TUNE_STORE_NAME_MAX + 32 };
int tune_keep_experiments(struct tune_store *s, const struct tune_protocol *protocols, int count);
void tune_kept_name(const struct tune_store *s, const struct tune_experiment *e,
                    char name[TUNE_KEPT_NAME]);
bool tune_is_kept(const struct tune_store *s, const struct tune_experiment *e);
int tune_keep_data(struct tune_store *s, const char *path, const char *hash);
int tune_kept_data(const struct tune_store *s, const char *path, char hash[33]);

#ifdef __cplusplus
}
#endif
#endif
