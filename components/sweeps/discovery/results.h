/* results.h - what came of a job, written into the store: rows, requests, and the record of the
 * operation beside them. */
#ifndef TUNE_DISCOVERY_RESULTS_H
#define TUNE_DISCOVERY_RESULTS_H

#include "machine/host.h"
#include "sweeps/discovery/jobs.h"
#include "sweeps/stores/claim.h"

#define TUNE_OPERATION_CLAIM "sweep-" /* begins the claims of processes that work at an operation */

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* Whose results these are. Texts are borrowed. */
struct tune_results {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    const char *operation, *space_id, *generator, *host;
};

/* tune_results_announce - the tables of the protocols' experiments, before the first row.
 * tune_results_fit - 0: the store takes a row of this job; -1: something of it is too long. For
 * before it is measured.
 * tune_results_measured - a row of the job and, where it is the job's last attempt, its request;
 * its uid into uid. When it returns 0 both are on the disk.
 * tune_results_refused - likewise, of a job that is not run: is_valid 0.
 * tune_results_replayed - a request for each of the job's known rows. */
int tune_results_announce(const struct tune_results *r);
int tune_results_fit(const struct tune_results *r, const struct tune_job *job);
int tune_results_measured(const struct tune_results *r, const struct tune_job *job,
                          const struct tune_result *result, bool last,
                          uint8_t uid[16]);
int tune_results_refused(const struct tune_results *r, const struct tune_job *job, uint8_t uid[16]);
int tune_results_replayed(const struct tune_results *r, const struct tune_job *job);

/* The record of an operation: <store>/operations/<id>.json. What it was asked, so that it can go
 * on; how far it came. */
struct tune_operation_record {
    char id[128], space[32];      /* "space-1a2b3c", the file spaces/<it>.yaml or .json beside */
    /* order, selector, filter, memoize, repeat, accept are recorded */
    struct tune_jobs_options options;
    const char **grouping;        /* of the order; the record's */
    int retries;
    double until_stable;
    /* "running", "finished", "stopped", "failed"; read: "dead", for "running" without a process */
    char status[16];
    double started_s, ended_s;    /* since 1970; 0: not yet */
    int64_t planned, replayed, refused;
    int64_t measured, failed, invalid; /* failed and invalid are of those that were measured */
    struct cJSON *json;           /* as it was read; NULL: new */
};

/* tune_operation_begin - let others see that this process works at the operation, until it ends;
 * the claim is to be renewed. Before its record is written.
 * tune_operation_record_write - replace the file. tune_operation_record_read - -1: not there (names
 * those that are), or it makes no sense.
 * tune_operation_record_free - what read took. */
int tune_operation_begin(struct tune_store *s, const char *id, struct tune_claim *claim);
int tune_operation_record_write(struct tune_store *s, const struct tune_operation_record *record);
int tune_operation_record_read(struct tune_store *s, const char *id,
                               struct tune_operation_record *record);
void tune_operation_record_free(struct tune_operation_record *record);

#ifdef __cplusplus
}
#endif
#endif
