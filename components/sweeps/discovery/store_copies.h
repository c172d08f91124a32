/* store_copies.h - store copies of experiments and hashes of data in a store, so that it is
 * self-contained. Operations can be resumed with the store alone.
 *
 *     experiments/<actuator>.<name>.json           the experiment's file, as it was
 *     experiments/<actuator>.<name>.json.folder    the folder that its program is relative to
 *     experiments/<actuator>.<name>.json.marks     who gave it (tools/sweep/trust.c)
 *     data/<hash of the path>.json                 a data file's path and hash
 */
#ifndef TUNE_DISCOVERY_STORE_COPIES_H
#define TUNE_DISCOVERY_STORE_COPIES_H

#include "sweeps/spaces/experiment.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_copy_experiments - copy the files of the bindings' experiments into the store. A copy that
 * differs is replaced. -1 with an error.
 * tune_experiment_copy_name - the name of the copy of an experiment's file. If the file is a copy
 * itself, its own name.
 * tune_experiment_is_copy - true if the experiment's file is such a copy.
 * tune_data_hash_save - store the hash of the data at this path, unless it is stored already.
 * tune_data_hash_read - read the stored hash. 1; 0: there is none; -1 with an error. */
enum { TUNE_COPY_NAME = 2 * TUNE_STORE_NAME_MAX + 32 };
int tune_copy_experiments(struct tune_store *s, const struct tune_binding *bindings, int count);
void tune_experiment_copy_name(const struct tune_store *s, const struct tune_experiment *e,
                    char name[TUNE_COPY_NAME]);
bool tune_experiment_is_copy(const struct tune_store *s, const struct tune_experiment *e);
int tune_data_hash_save(struct tune_store *s, const char *path, const char *hash);
int tune_data_hash_read(const struct tune_store *s, const char *path, char hash[33]);

#ifdef __cplusplus
}
#endif
#endif
