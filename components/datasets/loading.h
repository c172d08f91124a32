/* loading.h - what the files of the loader share. Inside this folder only.
 *
 *     loader.c    the plan (which rows make which step, in which order), steps, progress
 *     ahead.c     the helper thread that tokenises, and packs, at most two steps ahead
 *     batches.c   from a step's rows or packs to micro-batches
 *     packs.c     several rows to a pack
 *
 * Two walks go over the same plan, the caller's and the helper's; all they share is a count of rows
 * made, the caller's step, and an error. */
#ifndef TUNE_DATASETS_LOADING_H
#define TUNE_DATASETS_LOADING_H

#include <pthread.h>

#include "core/error.h"
#include "datasets/loader.h"
#include "datasets/packs.h"

enum { TUNE_SEGMENTS = 3 }; /* steps in memory: the caller's and two ahead, used in turn */

/* Where one stands in the plan: at the begin of a step. */
struct tune_walk {
    /* offset: rows of this epoch before it; used: of all epochs */
    int64_t step, epoch, offset, used;
};

/* A step that was made: a run of the epoch's order. Rows without a label are left out of its
 * batches. */
struct tune_made {
    int64_t rows, kept;           /* rows it takes; of them in its batches */
    /* left out: cannot be read, have no label, lost all labels to max_length */
    int64_t bad, unlabelled, cut;
    uint64_t hash;                /* sum of the hashes of all its rows */
};

struct tune_loader {
    struct tune_dataset *data;
    struct tune_loader_options o;
    int64_t rows;         /* of the part */
    int64_t step_rows;    /* of a full step */
    int64_t total;        /* rows over all epochs; INT64_MAX where steps decide */
    int64_t planned;      /* steps */
    /* [k]: rows of the part below row k * COUNTED; NULL: the part is everything */
    int64_t *before;
    int64_t counted;      /* entries of before */
    int32_t *ids, *labels, *lengths; /* the batch */
    int64_t *batch_rows;
    /* [TUNE_SEGMENTS][step_rows]; with packing one, of the row that is to be packed */
    struct tune_example *examples;
    /* [TUNE_SEGMENTS][step_rows]: which row of its step an example is; NULL with packing */
    int64_t *places;
    struct tune_made steps[TUNE_SEGMENTS];
    int32_t *positions, *starts;     /* of the batch, with packing; else NULL */
    struct tune_packs packs[TUNE_SEGMENTS];
    bool held;            /* the helper's side: the example is the next step's first row */
    /* the caller's side */
    struct tune_walk at;       /* its step */
    bool in_step;
    int64_t now, given;   /* rows of this step; of them behind the micro-batches given out */
    int64_t count, put;   /* kept rows, or packs, of this step; of them given out */
    int64_t skipped;      /* steps left out: none of their rows was kept */
    struct tune_made out; /* rows left out since the start, the step's own included */
    /* steps behind which this loader began; steps begun since the run began */
    int64_t first, done;
    int64_t tokens, label_count, padded; /* of this step */
    double waited_s;      /* see tune_loader_waited_s */
    double began_s;       /* monotonic clock at the first tune_loader_more; < 0: not yet */
    /* the helper's side */
    struct tune_walk ahead;
    pthread_t thread;
    bool running;
    /* shared */
    pthread_mutex_t lock;
    pthread_cond_t wake_caller, wake_helper;
    int64_t made;         /* steps made */
    int64_t wanted;       /* the caller sleeps until so many are */
    int64_t may;          /* the last step the helper may make */
    bool quit, failed;    /* failed: error holds what step number made met */
    bool interrupted;     /* a signal was noted while a step was made */
    struct tune_error error;
};

static inline int64_t tune_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows from w to the end of its epoch, or of all; 0 behind the last. */
static inline int64_t tune_left_at(const struct tune_loader *load, const struct tune_walk *w)
{
    return tune_smaller(load->rows - w->offset, load->total - w->used);
}

static inline struct tune_packs *tune_packs_at(struct tune_loader *load, const struct tune_walk *w)
{
    return &load->packs[w->step % TUNE_SEGMENTS];
}

/* The step at w, which is made. */
static inline struct tune_made *tune_made_at(struct tune_loader *load, const struct tune_walk *w)
{
    return &load->steps[w->step % TUNE_SEGMENTS];
}

static inline struct tune_example *tune_loader_example(const struct tune_loader *load,
                                                       int64_t step, int64_t i)
{
    return &load->examples[step % TUNE_SEGMENTS * load->step_rows + i];
}

/* The place of kept row i among all rows of the step. */
static inline int64_t *tune_loader_place(const struct tune_loader *load, int64_t step, int64_t i)
{
    return &load->places[step % TUNE_SEGMENTS * load->step_rows + i];
}

/* tune_loader_order - the row that stands at this place of this epoch.  tune_loader_step_on - w to
 * the next step.
 * tune_loader_too_long - the error of a row of so many tokens; -1. */
int64_t tune_loader_order(const struct tune_loader *load, int64_t epoch, int64_t place);
void tune_loader_step_on(struct tune_loader *load, struct tune_walk *w);
int tune_loader_too_long(const struct tune_loader *load, int64_t row, int64_t tokens);

/* tune_ahead_start - the helper, unless it runs.  tune_ahead_stop - waits for its end.
 * tune_ahead_again - where a signal ended the helper, a new one may begin.
 * tune_ahead_allow - it may work up to two steps beyond the caller's, not beyond the last one
 * wanted.
 * tune_ahead_ensure - the caller's step is made: 0. 1: a signal was noted before that. -1: what the
 * helper (or we) met. */
int tune_ahead_start(struct tune_loader *load);
void tune_ahead_stop(struct tune_loader *load);
void tune_ahead_again(struct tune_loader *load);
void tune_ahead_allow(struct tune_loader *load);
int tune_ahead_ensure(struct tune_loader *load);

#endif
