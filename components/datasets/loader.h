/* loader.h - which rows come next, as padded micro-batches; tokenised by a helper thread at most two steps ahead.
 *
 *     while ((micros = tune_loader_more(load, &at)) > 0)       one optimizer step
 *         while (micros-- > 0)
 *             tune_loader_next(load, &batch);                  one micro-batch, borrowed until the next call
 *
 * Steps do not cross epochs; the last step of an epoch may have fewer micro-batches and its
 * last micro-batch fewer rows. Order is a function of (seed, epoch): nothing to store. */
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

struct tune_loader_options {
    enum tune_part part;
    double train_split;  /* share trained on; see tune_dataset_held_out */
    uint64_t seed;
    bool shuffle;
    int batch_size, accumulate, max_length; /* max_length: longest row, for the buffers */
    double epochs;       /* planned rows = ceil(rows * epochs) */
    int64_t max_steps;   /* -1: by epochs; else exactly that many, over as many epochs as it takes */
    double stop_after_seconds; /* -1: never */
    const volatile int *stop_signal; /* NULL, or where the program's handler notes the signal it caught */
    bool ahead;          /* tokenise in a helper thread; otherwise in tune_loader_next */
};

/* tune_loader_new - d is borrowed until free. NULL with an error: the part is empty, nonsense options. */
struct tune_loader *tune_loader_new(struct tune_dataset *d, const struct tune_loader_options *options);
void tune_loader_free(struct tune_loader *load);

/* tune_loader_rows - rows of its part; planned_steps - over all epochs. */
int64_t tune_loader_rows(const struct tune_loader *load);
int64_t tune_loader_planned_steps(const struct tune_loader *load);

/* tune_loader_more - micro-batches of the next step; 0 to stop (planned end, time, signal: says which in at); -1.
 * Sets at->planned_steps; at->finished at the planned end, at->signal after a signal. */
int tune_loader_more(struct tune_loader *load, struct tune_progress *at);

/* tune_loader_next - the next micro-batch into *batch, borrowed until the next call. -1: a bad row, or a whole step
 * without a label (said at its last micro-batch, naming the rows). */
int tune_loader_next(struct tune_loader *load, struct tune_batch *batch);

/* tune_progress_step - a step is done: advance at by what the loader handed out for it. */
void tune_progress_step(struct tune_progress *at, const struct tune_loader *load);

/* tune_loader_rewind - begin again at the first row of epoch 0 (evaluation). */
int tune_loader_rewind(struct tune_loader *load);

/* tune_get_loader - the training rows of data by --train-split, --batch-size, --accumulate, --shuffle, --seed, --epochs,
 * --max-steps, --stop-after-seconds; stops at the signal noted in *flags->stop_signal. */
struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
