/* results.h - write the result of a job into the store: rows, requests, and the record of the
 * operation. */
#ifndef TUNE_DISCOVERY_RESULTS_H
#define TUNE_DISCOVERY_RESULTS_H

#include "machine/host.h"
#include "sweeps/discovery/jobs.h"
#include "sweeps/stores/lease.h"

#define TUNE_OPERATION_LEASE "sweep-" /* prefix of leases by processes that work at an operation */

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* The operation that the results belong to. Texts are borrowed. */
struct tune_results {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_binding *bindings;
    const char *operation, *space_id, *generator, *host;
};

/* tune_results_announce - declare the tables of the bindings' experiments, before the first row.
 * tune_results_fit - check before measuring that the store accepts a row of this job. 0, or -1 with
 * an error: something is too long.
 * tune_results_measured - append a row of the job and, for its last attempt, its request. uid
 * receives the row's uid. 0: both are on the disk.
 * tune_results_refused - the same for a refused job: is_valid 0.
 * tune_results_replayed - append a request for each cached row of the job. */
int tune_results_announce(const struct tune_results *r);
int tune_results_fit(const struct tune_results *r, const struct tune_job *job);
int tune_results_measured(const struct tune_results *r, const struct tune_job *job,
                          const struct tune_result *result, bool last,
                          uint8_t uid[16]);
int tune_results_refused(const struct tune_results *r, const struct tune_job *job, uint8_t uid[16]);
int tune_results_replayed(const struct tune_results *r, const struct tune_job *job);

/* The record of an operation, <store>/operations/<id>.json: its options, for resuming, and its
 * progress. */
struct tune_operation_record {
    char id[128], space[32];      /* "space-1a2b3c"; the space is recorded in spaces/ */
    /* only order, selector, filter, memoize, repeat and accept are recorded */
    struct tune_jobs_options options;
    const char **grouping;        /* names of the order's grouping; owned by the record */
    int retries;
    double until_stable;
    /* --where, --entity and --set as given; NULL: not given. Borrowed from json or the caller. */
    const char *where, *entity, *set;
    /* The same for --order halving: the property, in minimize or maximize, and
     * "max_steps=1..16". For --order model: the properties, with commas, and --where-target. */
    const char *minimize, *maximize, *budget, *where_target;
    /* The same for --stop-when. */
    const char *stop_when;
    /* The same for --launcher and --slurm, with --points-per-job and --max-jobs. */
    const char *launcher, *slurm;
    const char *launcher_mark; /* mark of the user who gave them (tools/sweep/trust.c); NULL:
                                * none */
    int points_per_job, max_jobs;
    /* The same for the actuator configuration. Its folders are absolute paths. */
    const char *actuator, *data_directory, *hf_home;
    double factor; /* of --order halving: 2; older versions had others */
    /* "running", "finished", "stopped" or "failed". When read, also "dead": running, but without a
     * process */
    char status[16];
    double started_s, ended_s;    /* since 1970; 0: not yet */
    int64_t planned, replayed, refused;
    int64_t replayed_invalid;     /* number of replayed results that are not valid */
    int64_t measured, failed, invalid; /* failed and invalid ones are also in measured */
    struct cJSON *json;           /* the parsed file; NULL: a new record */
};

/* tune_operation_begin - lease the operation, so that others see that this process works on it.
 * Call it before the record is written, and renew the lease.
 * tune_operation_record_write - write or replace the record.
 * tune_operation_record_read - read the record. -1 with an error: it is absent or bad. If it is
 * absent, the error lists the others.
 * tune_operation_record_free - free the memory of r.
 * tune_operation_uids - add the uids of all results that the operation measured or replayed, also
 * of forgotten ones, and sort them. -1 with an error: there is no such operation. */
int tune_operation_begin(struct tune_store *s, const char *id, struct tune_lease *lease);
int tune_operation_record_write(struct tune_store *s, const struct tune_operation_record *record);
int tune_operation_record_read(struct tune_store *s, const char *id,
                               struct tune_operation_record *record);
void tune_operation_record_free(struct tune_operation_record *record);
struct tune_uids;
int tune_operation_uids(struct tune_store *s, const char *id, struct tune_uids *uids);

#ifdef __cplusplus
}
#endif
#endif
