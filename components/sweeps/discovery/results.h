/* results.h - write the result of a job into the store: rows, requests, and the record of the
 * operation. */
#ifndef TUNE_DISCOVERY_RESULTS_H
#define TUNE_DISCOVERY_RESULTS_H

#include "machine/host.h"
#include "sweeps/discovery/jobs.h"
#include "sweeps/stores/claim.h"

#define TUNE_OPERATION_CLAIM "sweep-" /* prefix of claims by processes that work at an operation */

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* The operation that the results belong to. Texts are borrowed. */
struct tune_results {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    const char *operation, *space_id, *generator, *host;
};

/* tune_results_announce - announce the tables of the protocols' experiments, before the first row.
 * tune_results_fit - whether the store takes a row of this job: 0, or -1 with an error: something
 * is too long. Ask before measuring.
 * tune_results_measured - append a row of the job and, for its last attempt, its request; its uid
 * into uid. 0: both are on the disk.
 * tune_results_refused - the same for a job that cannot run: is_valid 0.
 * tune_results_replayed - append a request for each known row of the job. */
int tune_results_announce(const struct tune_results *r);
int tune_results_fit(const struct tune_results *r, const struct tune_job *job);
int tune_results_measured(const struct tune_results *r, const struct tune_job *job,
                          const struct tune_result *result, bool last,
                          uint8_t uid[16]);
int tune_results_refused(const struct tune_results *r, const struct tune_job *job, uint8_t uid[16]);
int tune_results_replayed(const struct tune_results *r, const struct tune_job *job);

/* The record of an operation, <store>/operations/<id>.json: its options, so that it can resume, and
 * how far it came. */
struct tune_operation_record {
    char id[128], space[32];      /* "space-1a2b3c"; the space is recorded in spaces/ */
    /* recorded are order, selector, filter, memoize, repeat and accept */
    struct tune_jobs_options options;
    const char **grouping;        /* grouping of the order; belongs to the record */
    int retries;
    double until_stable;
    /* --where, --entity and --set as they were given; NULL: not given. Borrowed from json or the
     * caller. */
    const char *where, *entity, *set;
    /* The same for the order halving: the property, one of both NULL, and "max_steps=1..16". */
    const char *minimize, *maximize, *budget;
    /* The same for --stop-when. */
    const char *stop_when;
    /* The same for --launcher and --slurm, with --points-per-job and --max-jobs. */
    const char *launcher, *slurm;
    const char *launcher_mark; /* of who gave them (tools/sweep/trust.c); NULL: none */
    int points_per_job, max_jobs;
    /* The same for the actuator configuration that was used, its folders as absolute paths. */
    const char *actuator, *data_directory, *hf_home;
    double factor; /* of halving */
    /* "running", "finished", "stopped" or "failed"; read also "dead": running without a process */
    char status[16];
    double started_s, ended_s;    /* since 1970; 0: not yet */
    int64_t planned, replayed, refused;
    int64_t replayed_invalid;     /* known ones that are not valid, among the replayed ones */
    int64_t measured, failed, invalid; /* failed and invalid count among the measured ones */
    struct cJSON *json;           /* the record as it was read; NULL: new */
};

/* tune_operation_begin - claim the operation, so that others see that this process works at it.
 * Call it before its record is written, and renew the claim.
 * tune_operation_record_write - write the record, replacing it.
 * tune_operation_record_read - read it. -1 with an error: absent (it names those there are), or
 * bad.
 * tune_operation_record_free - free what read took. */
int tune_operation_begin(struct tune_store *s, const char *id, struct tune_claim *claim);
int tune_operation_record_write(struct tune_store *s, const struct tune_operation_record *record);
int tune_operation_record_read(struct tune_store *s, const char *id,
                               struct tune_operation_record *record);
void tune_operation_record_free(struct tune_operation_record *record);

#ifdef __cplusplus
}
#endif
#endif
