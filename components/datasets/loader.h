/* loader.h - the order of rows, and padded or packed micro-batches. A helper thread tokenizes at
 * most two steps ahead.
 *
 *     while ((micros = tune_loader_more(load, &at)) > 0)       one optimizer step
 *         while (micros-- > 0)
 *             tune_loader_next(load, &batch);                  one micro-batch
 *
 * Steps do not cross epochs. The last step of an epoch may have fewer micro-batches, and its last
 * micro-batch fewer rows. The order is a function of (seed, epoch), so there is no state to save.
 *
 * Left out are rows without a label (also if the cut removed all labels) and bad rows that are
 * skipped. A step takes further rows instead. So a step's rows are consecutive in the epoch's
 * order. If epochs limit the run, the number of planned steps may shrink as such rows are found.
 *
 * Packing. A micro-batch has up to batch_size packs, and a pack holds several whole rows in
 * max_length tokens. A step takes rows in the epoch's order until one does not fit; that row begins
 * the next step (packs.h). No label crosses from row to row, positions restart, and no row attends
 * to another. The number of rows in a step is known when the step is made. If epochs limit the run,
 * the number of steps is an estimate.
 *
 * The helper thread starts at the first tune_loader_more and sleeps while it is two steps ahead. It
 * receives no signals. If it fails, the tune_loader_more of the step that needs the row reports the
 * error. Use a loader from one thread only. */
#ifndef TUNE_LOADER_H
#define TUNE_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_loader;
struct tune_dataset;
struct tune_flags;

enum tune_part { TUNE_TRAIN, TUNE_HELD_OUT, TUNE_ALL };

/* Options. There are no defaults: max_steps 0 means no step at all. */
struct tune_loader_options {
    enum tune_part part;
    /* share of rows to train on, (0,1]; see tune_dataset_held_out. Not used with TUNE_ALL */
    double train_split;
    uint64_t seed;
    bool shuffle;              /* a new order in each epoch */
    int batch_size, accumulate;
    int max_length;            /* tokens of the longest row, for the buffers; as for the dataset */
    double epochs;             /* above 0; planned rows = ceil(rows * epochs) */
    /* -1: epochs decide; else exactly this many steps, over as many epochs as needed */
    int64_t max_steps;
    double stop_after_seconds; /* stop at the first step boundary this long after the first tune_loader_more began,
                                  after one step at least; -1: never */
    const bool *stable;        /* NULL, or where the logger notes that --until-stable is reached: stop there */
    int64_t stop_at_step;      /* stop when at->step is there, as if by a signal; 0: never */
    volatile int *starting;    /* NULL, or what the first tune_loader_more sets to 0: from then on there is work to save */
    const volatile int *stop_signal; /* NULL, or where the program's handler notes the signal it caught. Write it with an
                                        atomic store: with ahead another thread reads it. */
    bool packing;              /* several rows to a row of the batch, see above */
    bool ahead;                /* tokenise in a helper thread; otherwise in the calls themselves */
};

/* tune_loader_new - make a loader. d must outlive it. It allocates buffers for batch_size *
 * max_length tokens. The rows of the steps ahead take 5 bytes for each token (with packing, for
 * each token a pack can hold). NULL with an error: an empty part, invalid options, no memory. */
struct tune_loader *tune_loader_new(struct tune_dataset *d,
                                    const struct tune_loader_options *options);
void tune_loader_free(struct tune_loader *load);

/* tune_loader_bytes - host memory of a loader over this many rows of full length, in bytes. */
int64_t tune_loader_bytes(const struct tune_loader_options *options, int64_t rows);

/* tune_loader_rows - rows of its part of the dataset.
 *
 * tune_loader_planned_rows - planned rows over all epochs; 2^63 - 1 if max_steps decides.
 *
 * tune_loader_planned_steps - planned steps over all epochs. With packing limited by epochs, it is
 * estimated from the rows of the steps so far. Before the first step, it is the largest possible
 * number. */
int64_t tune_loader_rows(const struct tune_loader *load);
int64_t tune_loader_planned_rows(const struct tune_loader *load);
int64_t tune_loader_planned_steps(const struct tune_loader *load);

/* tune_loader_more - the number of micro-batches in the next step; 0 to stop.
 *
 * It sets at->planned_steps. At 0, at->finished is set at the planned end or after at->early_stop;
 * otherwise at->stopped (and at->signal) is set. Rows at the end of an epoch that are all left out
 * make no step. They are added to at->rows and at->epoch.
 *
 * -1 with an error: a bad row, a row longer than max_length, or an epoch without any label. If less
 * than one epoch is planned, its rows count as the epoch. */
int tune_loader_more(struct tune_loader *load, struct tune_progress *at);

/* tune_loader_next - the next micro-batch, valid until the next call. Every row has a label, so T
 * is at least 2. -1 with an error: the step has no more micro-batches. */
int tune_loader_next(struct tune_loader *load, struct tune_batch *batch);

/* tune_progress_step - advance at by the rows of the step that was just done. Call it once a
 * step. */
void tune_progress_step(struct tune_progress *at, const struct tune_loader *load);

/* tune_loader_waited_s - total time the caller waited for rows, in seconds. */
double tune_loader_waited_s(const struct tune_loader *load);

/* tune_loader_seek - continue after at->step steps and at->rows rows. The size of a step may differ
 * from before; it then continues at that row. Time limits start again. -1 with an error: the plan
 * has fewer rows. */
int tune_loader_seek(struct tune_loader *load, const struct tune_progress *at);

/* tune_loader_rows_hash - compute at->rows_hash after this many rows from the present data file. It
 * reads these rows again. -1 with an error: the file was truncated. */
int tune_loader_rows_hash(struct tune_loader *load, int64_t rows, uint64_t *hash);

/* tune_loader_bad_row - true if an unreadable row ended the steps. Lack of memory and a truncated
 * file are other errors. */
bool tune_loader_bad_row(struct tune_loader *load);

/* tune_loader_rewind - start again at the first row of epoch 0, for evaluation. 0, or -1 with an
 * error. */
int tune_loader_rewind(struct tune_loader *load);

/* tune_get_loader - the loader of the training rows of data. It reads --train-split, --batch-size,
 * --accumulate, --shuffle, --seed, --epochs, --max-steps, --stop-at-step, --stop-after-seconds,
 * --until-stable and --packing. It stops at the signal noted in *flags->stop_signal.
 *
 * tune_get_loader_options - the options it passes to tune_loader_new. */
struct tune_loader_options tune_get_loader_options(const struct tune_flags *flags);
struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
