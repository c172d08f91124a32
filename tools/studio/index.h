/* index.h - the runs below the root, in memory. A thread reads their folders; it rests when nobody
 * has asked for half a minute.
 *
 *     struct tune_run **runs;
 *     int n = studio_index_lock(s, &runs);
 *     ... runs[0..n-1], in order of folder ...
 *     studio_index_unlock(s);
 *
 * Of a run that has ended, the last value of each metric and its options are kept. curves.h reads
 * whole metrics. */
#ifndef TUNE_STUDIO_INDEX_H
#define TUNE_STUDIO_INDEX_H

#include <stdint.h>

#include "runs/run.h"
#include "studio.h"

/* The facts that are known besides the runs. */
struct studio_index_state {
    bool complete;      /* the first scan is over */
    int folders;        /* that the last scan looked into */
    int too_deep;       /* folders that it left out because they lie too deep */
    int links;          /* links to folders, which are not followed */
    int odd_names;      /* folders whose names are not UTF-8 */
    uint64_t version;   /* grows with every change */
};

/* studio_index_start - make the index and its thread. studio_index_stop - end both.
 * studio_index_lock - lock it, and give the runs; those of a command line are read first (s->once).
 * They stay valid until studio_index_unlock. The array is a copy, which may be put into another
 * order. Returns their number, or -1 with an error; then nothing is locked.
 * studio_index_lock_fresh - the same. It looks for new runs first, unless it did so just now.
 * studio_index_state - what else is known; while it is locked.
 * studio_index_find - the run of that folder, relative to the root; NULL: none; while it is locked.
 * studio_index_version - the version of the run's last change; while it is locked.
 * studio_index_removed - call take with each folder that was removed since that version; while it
 * is locked. false: too long ago to know, so all may have changed. */
int studio_index_start(struct studio *s);
void studio_index_stop(struct studio *s);
int studio_index_lock(struct studio *s, struct tune_run ***runs);
int studio_index_lock_fresh(struct studio *s, struct tune_run ***runs);
void studio_index_unlock(struct studio *s, struct tune_run **runs);
struct studio_index_state studio_index_state(const struct studio *s);
struct tune_run *studio_index_find(const struct studio *s, const char *folder);
uint64_t studio_index_version(const struct studio *s, const struct tune_run *r);
bool studio_index_removed(const struct studio *s, uint64_t since,
                          void (*take)(void *context, const char *folder), void *context);

#endif
