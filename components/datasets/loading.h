/* loading.h - declarations shared by the files of the loader. Private to this folder.
 *
 *     loader.c    the plan (the rows of each step and their order), steps, progress
 *     prefetch.c  the helper thread that tokenizes, and packs, at most two steps ahead
 *     batches.c   micro-batches of a step's rows or packs
 *     packs.c     several rows in a pack
 *
 * The caller and the helper thread each walk through the same plan. They share only a count of made
 * steps, the caller's step, and an error. */
#ifndef TUNE_DATASETS_LOADING_H
#define TUNE_DATASETS_LOADING_H

#include <pthread.h>

#include "comm/comm.h"
#include "core/error.h"
#include "datasets/loader.h"
#include "datasets/mix.h"
#include "datasets/packs.h"
#include "files/file.h"

enum { TUNE_SEGMENTS = 3 }; /* steps in memory, used in turn: the caller's and two ahead */

/* A position in the plan: the beginning of a step. */
struct tune_plan_at {
    /* offset: rows of this epoch before it; used: rows of all epochs before it */
    int64_t step, epoch, offset, used;
};

/* A step that was made from consecutive rows. Rows without a label are left out of its batches. */
struct tune_made {
    int64_t rows, kept;           /* rows consumed; rows in its batches */
    int64_t bad, unlabelled, cut; /* left out: unreadable, without a label, all labels cut away */
    uint64_t hash;                /* sum of tune_hash_in_place over all consumed rows */
};

struct tune_loader {
    struct tune_dataset *data;
    struct tune_loader_options o;
    int64_t rows;         /* rows of an epoch: those of the part, or of the mix */
    int64_t of_set[TUNE_DATASET_SETS]; /* rows of the part in each joined set */
    struct tune_mix mix;  /* count 0: an epoch has each row of the part once */
    int64_t step_rows;    /* rows of a full step */
    int64_t total;        /* rows over all epochs; INT64_MAX if max_steps decides */
    int64_t planned;      /* planned steps */
    uint64_t *in_part;    /* a bit for each row: it is in the part; NULL: all rows are */
    int64_t *before;      /* [k]: rows of the part before row k * COUNTED */
    int64_t counted;      /* entries of before */
    int64_t *order;       /* [rows] of tune_loader_order; NULL: none */
    int64_t ordered[TUNE_DATASET_SETS]; /* rows of the order in each joined set */
    int32_t *ids, *labels, *lengths; /* arrays of the batch */
    int64_t *batch_rows;             /* row_of of the batch; with packing its row_at */
    double *label_of;                /* of the batch; NULL: sequences have no labels */
    int32_t *prompts;                /* of the batch, beside label_of */
    /* [TUNE_SEGMENTS][step_rows]; with packing only the row to be packed */
    struct tune_example *examples;
    /* [TUNE_SEGMENTS][step_rows] an example's place among its step's rows; NULL with packing */
    int64_t *places;
    struct tune_made steps[TUNE_SEGMENTS];
    int32_t *positions, *starts;     /* arrays of the batch with packing; else NULL */
    struct tune_packs packs[TUNE_SEGMENTS];
    bool held;            /* helper: the example is the first row of the next step */
    /* used by the caller only */
    struct tune_plan_at at;       /* its step */
    bool in_step;
    int64_t now, given;   /* rows of this step; rows up to the last micro-batch handed out */
    int64_t count, put;   /* kept rows, or packs, of this step; number handed out */
    int64_t skipped;      /* steps left out, because none of their rows was kept */
    struct tune_made out; /* rows left out since the start, with this step */
    int64_t first, done;  /* steps before this loader began; steps begun since the run began */
    int64_t tokens, label_count, padded; /* sums of this step */
    double waited_s;      /* see tune_loader_waited_s */
    double began_s;       /* monotonic clock at the first tune_loader_more; < 0: not yet */
    double early_s;       /* the same at tune_loader_begin */
    bool over;            /* tune_loader_time_is_up returned true */
    /* used by the helper thread only */
    struct tune_plan_at prefetch;
    pthread_t thread;
    bool running;
    /* shared, protected by lock */
    pthread_mutex_t lock;
    pthread_cond_t wake_caller, wake_helper;
    int64_t made;         /* number of steps made */
    int64_t wanted;       /* the caller sleeps until this many are made */
    int64_t may;          /* the last step the helper may make */
    bool quit, failed;    /* failed: error holds the error of step `made` */
    bool interrupted;     /* a signal came while a step was made */
    struct tune_error error;
};

/* Sequences of a row in the batch. */
static inline int tune_sequences_of(const struct tune_loader_options *o)
{
    return o->sequences > 0 ? o->sequences : 1;
}

static inline int tune_ranks_of(const struct tune_loader_options *o)
{
    return o->comm ? tune_comm_size(o->comm) : 1;
}

static inline int64_t tune_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows from w to the end of its epoch or of the plan; 0 after the last. */
static inline int64_t tune_left_at(const struct tune_loader *load, const struct tune_plan_at *w)
{
    return tune_smaller(load->rows - w->offset, load->total - w->used);
}

static inline struct tune_packs *tune_packs_at(struct tune_loader *load,
                                               const struct tune_plan_at *w)
{
    return &load->packs[w->step % TUNE_SEGMENTS];
}

/* The step at w, which must be made. */
static inline struct tune_made *tune_made_at(struct tune_loader *load, const struct tune_plan_at *w)
{
    return &load->steps[w->step % TUNE_SEGMENTS];
}

static inline struct tune_example *tune_loader_example(const struct tune_loader *load, int64_t step,
                                                       int64_t i)
{
    return &load->examples[step % TUNE_SEGMENTS * load->step_rows + i];
}

/* The place of kept row i among all rows of the step. */
static inline int64_t *tune_loader_place(const struct tune_loader *load, int64_t step, int64_t i)
{
    return &load->places[step % TUNE_SEGMENTS * load->step_rows + i];
}

/* The share of a row in at->rows_hash: its content and its number, so that rows in another order
 * give another sum. 0 for callbacks. */
static inline uint64_t tune_hash_in_place(uint64_t content, int64_t row)
{
    return content ? tune_hash64(&content, sizeof content, (uint64_t)row) : 0;
}

/* tune_loader_row - the row at this place of this epoch.
 * tune_loader_step_on - move w to the next step.
 * tune_loader_fits - 0, or -1 with an error: the row is too long for the loader, or the loader was
 * made for another number of `sequences`. */
int64_t tune_loader_row(const struct tune_loader *load, int64_t epoch, int64_t place);
void tune_loader_step_on(struct tune_loader *load, struct tune_plan_at *w);
int tune_loader_fits(const struct tune_loader *load, int64_t row, const struct tune_example *x);

/* tune_prefetch_start - start the helper thread, unless it runs.
 * tune_prefetch_stop - wait for its end.
 * tune_prefetch_again - start it again if a signal ended it.
 * tune_prefetch_allow - let it work up to two steps ahead of the caller, within the plan.
 * tune_prefetch_ensure - wait until the caller's step is made, or make it. 1: a signal came before
 * that. -1 with an error. */
int tune_prefetch_start(struct tune_loader *load);
void tune_prefetch_stop(struct tune_loader *load);
void tune_prefetch_again(struct tune_loader *load);
void tune_prefetch_allow(struct tune_loader *load);
int tune_prefetch_ensure(struct tune_loader *load);

#endif
