/* jobs.h - what an operation has to do, one measurement after the other: entities in their order,
 * each under every experiment, each as often as asked; and what of it is known, refused or answered
 * already. Decides, does nothing. */
#ifndef TUNE_DISCOVERY_JOBS_H
#define TUNE_DISCOVERY_JOBS_H

#include "sweeps/discovery/rows.h"
#include "sweeps/spaces/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_job_kind {
    TUNE_JOB_RUN,      /* to be measured */
    TUNE_JOB_REPLAY,   /* known: rows[] are its results */
    TUNE_JOB_REFUSED,  /* cannot be measured, why says so: a row without a run, is_valid 0 */
    TUNE_JOB_ANSWERED, /* this operation has done it before */
};

struct tune_job {
    enum tune_job_kind kind;
    int64_t index;                      /* of the entity among those taken */
    uint64_t hash;                      /* of its identifier: requests go by it */
    int protocol, repeat;
    /* copies, freed by tune_job_free; their texts are the space's */
    struct tune_value *entity, *inputs;
    struct tune_origin origin;
    struct tune_known_row *rows;        /* [row_count] of a REPLAY */
    int row_count;
    char why[512];
};

struct tune_jobs_options {
    const struct tune_space *space;
    const struct tune_protocol *protocols; /* [count] */
    int count;
    struct tune_known *known;
    /* its limit counts entities that pass the filter; of lhs, and of a space that cannot be
     * counted, those that are drawn */
    struct tune_order_options order;
    /* entities that the store has instead of the grid's: as they were first measured, at random, or
     * in groups */
    bool selector;
    /* what the operation asked for before passes: one that goes on goes on with the same */
    enum tune_filter filter;
    bool memoize;
    int repeat, accept;
    /* where the figures of this job would come from. -1 with an error: it cannot be told (no such
     * model): the operation ends. */
    int (*origin)(void *context, const struct tune_protocol *p, const struct tune_value *inputs,
                  struct tune_origin *origin);
    void *context;
};

struct tune_jobs;

/* All of a larger grid, at 10 ms each, takes months: it is not meant. What constraints leave of one
 * may be few. */
#define TUNE_JOBS_ALL 1000000000

/* tune_jobs_new - NULL with an error (kind USAGE: see tune_order_new; all of more than
 * TUNE_JOBS_ALL entities; a selector without a store, or in an order that draws). The options'
 * pointers are borrowed.
 * tune_jobs_next - 1 and *job, the caller's; 0: there are no more; -1.
 * tune_jobs_decide - kind, rows and why of a job anew, with what is known now: after waiting for
 * another process.
 * tune_jobs_count - how many there will be; 0: unknown. */
struct tune_jobs *tune_jobs_new(const struct tune_jobs_options *options);
int tune_jobs_next(struct tune_jobs *j, struct tune_job *job);
int tune_jobs_decide(struct tune_jobs *j, struct tune_job *job);
int64_t tune_jobs_count(const struct tune_jobs *j);
void tune_jobs_free(struct tune_jobs *j);
void tune_job_free(struct tune_job *job);

#ifdef __cplusplus
}
#endif
#endif
