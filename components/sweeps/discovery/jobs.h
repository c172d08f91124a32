/* jobs.h - the jobs of an operation, one measurement after the other. Entities come in their order,
 * each under every experiment, each as often as asked. A job is to be measured, known, refused or
 * done. This code decides; it measures nothing. */
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
    /* a rule forbids it: a row without a run, is_valid 0; why says the reason */
    TUNE_JOB_REFUSED,
    TUNE_JOB_ANSWERED, /* this operation has done it */
    TUNE_JOB_LATER,    /* there is a result, but an earlier repeat that waits may take it */
    TUNE_JOB_HOPELESS, /* it is not known, and no program of its experiment is here */
};

struct tune_job {
    enum tune_job_kind kind;
    int64_t index;                      /* index of the entity among those taken */
    uint64_t hash;                      /* hash of its identifier; requests go by it */
    int protocol, repeat;
    /* Earlier repeats of the same measurement: how many run in this process, and how many wait for
     * another process. The caller counts them before it asks tune_jobs_decide. */
    int running, waiting;
    /* copies, freed by tune_job_free; their texts are the space's */
    struct tune_value *entity, *inputs;
    struct tune_origin origin;
    struct tune_known_row *rows;        /* [row_count] of a REPLAY */
    int row_count;
    char why[512];
};

struct tune_jobs_options {
    const struct tune_space *space;
    /* [first + count]; entities are measured under count of them, from first on */
    const struct tune_protocol *protocols;
    int first, count;
    struct tune_known *known;
    /* The limit counts entities that pass the filter. For lhs, and for a space that cannot be
     * counted, it counts those drawn. */
    struct tune_order_options order;
    /* Take entities from the store instead of the grid: as first measured, at random, or in
     * groups. */
    bool selector;
    /* Take what the operation requested before. A resumed operation continues with the same
     * entities. */
    enum tune_filter filter;
    /* Measure an entity only under the experiments where it meets the expression; NULL: all. */
    const struct tune_where *where;
    const uint64_t *only; /* [only_count] hashes of the entities to take; 0: all */
    int only_count;
    /* [given_count] the entities themselves, in place of an order; NULL: by the order. `before` is
     * the index of the first one. */
    const struct tune_value *const *given;
    int given_count;
    int64_t before;
    bool memoize;
    int repeat, accept;
    /* The origin of the figures of this job. -1 with an error ends the operation: it cannot be
     * told, for example because there is no such model. */
    int (*origin)(void *context, const struct tune_protocol *p, const struct tune_value *inputs,
                  struct tune_origin *origin);
    /* The entity of that hash needs no more repeats under the protocol: 1; 0: it does; -1 with an
     * error. NULL: it needs all. It is asked before each repeat but the first. */
    int (*enough)(void *context, int protocol, const struct tune_value *entity, uint64_t hash);
    void *context;
};

struct tune_jobs;

/* The most entities that "all" may mean. More of them, at 10 ms each, would take months.
 * Constraints may leave few of a larger grid. */
#define TUNE_JOBS_ALL 1000000000

/* tune_jobs_new - the jobs of an operation. The options' pointers are borrowed. NULL with kind
 * USAGE: what tune_order_new refuses; all of more than TUNE_JOBS_ALL entities; a selector without a
 * store; a selector in an order that draws.
 * tune_jobs_free - free it; NULL is fine.
 * tune_jobs_next - 1 and *job, which the caller frees; 0: there are no more; -1 with an error.
 * tune_job_free - free what a job holds.
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
