/* jobs.h - list the jobs of an operation. A job is one measurement of an entity under an
 * experiment; it may be repeated. For each job, this code decides whether it must be measured, is
 * known, is refused or is done. It measures nothing itself. */
#ifndef TUNE_DISCOVERY_JOBS_H
#define TUNE_DISCOVERY_JOBS_H

#include "sweeps/discovery/rows.h"
#include "sweeps/discovery/where.h"
#include "sweeps/spaces/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_job_kind {
    TUNE_JOB_RUN,      /* measure it */
    TUNE_JOB_REPLAY,   /* known: rows[] are its results */
    /* refused by a rule: write a row without a run, is_valid 0; why: the reason */
    TUNE_JOB_REFUSED,
    TUNE_JOB_ANSWERED, /* this operation has already done it */
    TUNE_JOB_LATER,    /* there is a result, but an earlier waiting repeat may use it */
    TUNE_JOB_UNMEASURABLE, /* it is not known, and it cannot run here; why: the reason */
};

struct tune_job {
    enum tune_job_kind kind;
    int64_t index;                      /* index of the entity in the operation */
    uint64_t hash;                      /* hash of its identifier, which identifies requests */
    int binding, repeat;
    /* Numbers of earlier repeats that run in this process, and that wait for another process. The
     * caller sets them before tune_jobs_decide. */
    int running, waiting;
    /* copies, freed by tune_job_free; their texts are the space's */
    struct tune_value *entity, *inputs;
    struct tune_provenance provenance;
    struct tune_cached_row *rows;       /* [row_count] results of a REPLAY */
    int row_count;
    char why[512];
};

struct tune_jobs_options {
    const struct tune_space *space;
    /* [first + count] entities are measured under the last count of them */
    const struct tune_binding *bindings;
    int first, count;
    struct tune_result_cache *cache;
    /* The limit counts entities that pass the filter. For a space that cannot be counted, it counts
     * those drawn. */
    struct tune_order_options order;
    /* Take entities from the store instead of the grid, in the given order. */
    bool selector;
    /* The filter of entities. Those that the operation has requested always pass, so that a resumed
     * one continues with them. */
    enum tune_filter filter;
    /* Measure an entity only under the experiments where it meets the expression; NULL: all. */
    const struct tune_where *where;
    const uint64_t *only; /* [only_count] hashes of the entities to take; 0: all */
    int only_count;
    /* [given_count] a list of entities, used instead of the order; NULL: none. `before` is the
     * index of the first one. */
    const struct tune_value *const *given;
    int given_count;
    int64_t before;
    /* Choose the next entity when it is needed, used instead of the order; NULL: the order. 1 and
     * *values, valid until the next call; 0: there are no more; -1 with an error. */
    int (*choose)(void *context, const struct tune_value **values);
    bool memoize;
    int repeat, accept;
    /* Find the provenance of a job's figures. -1 with an error ends the operation, for example
     * because the model is missing. */
    int (*provenance)(void *context, const struct tune_binding *p, const struct tune_value *inputs,
                      struct tune_provenance *provenance);
    /* 1 and the reason in why: this machine lacks what a measurement needs, such as a GPU. 0: it
     * does not. -1 with an error. NULL: it lacks nothing. */
    int (*lacks)(void *context, const struct tune_binding *p, const struct tune_value *inputs,
                 char *why, size_t size);
    /* Decide before each repeat except the first. 1: the entity needs no more repeats under the
     * binding; 0: it does; -1 with an error. NULL: all repeats are needed. */
    int (*stop_rule)(void *context, int binding, const struct tune_value *entity, uint64_t hash);
    /* Decide before each entity that this operation has not requested yet. 1: no more entities are
     * needed; 0: they are; -1 with an error. NULL: all are needed. */
    int (*enough)(void *context);
    void *context;
};

struct tune_jobs;

/* Maximum number of entities without a limit. More of them, at 10 ms each, would take months. A
 * larger grid is fine if constraints leave fewer. */
#define TUNE_JOBS_ALL 1000000000

/* tune_jobs_new - begin the jobs of an operation. The options' pointers are borrowed. NULL with
 * kind USAGE: an error of tune_order_new, or no limit for more than TUNE_JOBS_ALL entities. Also a
 * selector without a store, or with an order that draws.
 * tune_jobs_free - free it; NULL is fine.
 * tune_jobs_next - get the next job. 1 and *job, which the caller frees; 0: there are no more; -1
 * with an error.
 * tune_job_free - free the memory of a job.
 * tune_jobs_decide - decide kind, rows and why of a job again, after waiting for another process.
 * tune_jobs_count - number of jobs; 0: unknown. */
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
