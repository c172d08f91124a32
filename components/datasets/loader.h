/* loader.h - the next rows as padded or packed micro-batches. A helper thread tokenizes, at most
 * two steps ahead.
 *
 *     while ((micros = tune_loader_more(load, &at)) > 0)     one optimizer step
 *         while (micros-- > 0)
 *             tune_loader_next(load, &batch);        one micro-batch, borrowed until the next call
 *
 * Steps do not cross epochs. The last step of an epoch may have fewer micro-batches, and its last
 * micro-batch fewer rows. The order is a function of (seed, epoch), so there is nothing to store.
 *
 * Rows without a label and bad rows that are skipped are left out. A step takes the next rows in
 * their place. So a step's rows are consecutive in the epoch's order, and the plan may become
 * shorter as such rows are met.
 *
 * With packing, a micro-batch has up to batch_size packs. A pack is several whole rows in
 * max_length tokens. A step takes rows in the epoch's order, by best fit, until one does not fit;
 * that row begins the next step (packs.h says why). Only one row beyond the step is looked at.
 * Labels and attention do not cross rows, and positions restart. The number of steps is an estimate
 * if it follows from epochs.
 *
 * The helper thread starts at the first tune_loader_more and takes no signals. If it fails at a
 * row, the tune_loader_more of the step with that row returns the error. A loader belongs to one
 * thread.
 *
 * With several ranks, a step has batch_size * accumulate rows of each. Micro-batch k of a step is
 * that of rank k % ranks. So one rank with more micro-batches makes the same ones of the same rows.
 * Each rank gets as many as the others. One that has none left gets an empty one, which must go the
 * same way (tune_batch.empty). Counts are those of all ranks. All end at the same step.
 *
 * With mix, rows of several joined sets come in given shares. An epoch has the most rows that keep
 * the shares while no row comes twice. The next epoch goes on where the larger sets stopped.
 *
 * A row may have several labelled sequences. A batch holds all sequences of a row, one after the
 * other (tune_batch.label_of). Labelled sequences cannot be packed. */
#ifndef TUNE_LOADER_H
#define TUNE_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/progress.h"
#include "datasets/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_loader;
struct tune_dataset;
struct tune_flags;

/* tune_loader_new - a loader over d, which must outlive it. Buffers for batch_size * max_length
 * tokens are made here. Rows of the steps ahead take 5 bytes per token. NULL with an error: the
 * part is empty, or bad options.
 * tune_loader_free - stop the helper thread and free it; NULL is fine. */
struct tune_loader *tune_loader_new(struct tune_dataset *d,
                                    const struct tune_loader_options *options);
void tune_loader_free(struct tune_loader *load);

/* tune_loader_order - take these rows of the set, in this order, in each epoch. It replaces the
 * shuffled order. The order may leave rows out, and may name a row several times; an epoch has
 * count rows then. Everything else stays: the split, packing, progress, resuming. rows are copied.
 * Call it before tune_logger_run, so that its plan is of these rows, and with the same rows when a
 * run is resumed. -1 with an error: a row that is not in the loader's part, a mix, or the first
 * step began.
 *     int64_t rows[n];      for example short ones first: tune_dataset_lengths
 *     MUST(tune_loader_order(load, rows, n));
 * tune_loader_ordered - whether it has such an order. */
int tune_loader_order(struct tune_loader *load, const int64_t *rows, int64_t count);
bool tune_loader_ordered(const struct tune_loader *load);

/* tune_loader_micro_batches - micro-batches of a full step of all ranks.
 * tune_loader_sequences - sequences of a full micro-batch: batch_size times those of a row.
 * tune_loader_bytes - host memory of such a loader over rows rows of full length. */
int64_t tune_loader_micro_batches(const struct tune_loader_options *options);
int tune_loader_sequences(const struct tune_loader_options *options);
int64_t tune_loader_bytes(const struct tune_loader_options *options, int64_t rows);

/* tune_loader_dataset - the set it was made of.
 * tune_loader_rows - rows of an epoch: those of its part, or of the mix.
 * tune_loader_set_rows - rows of the part in joined set k, and in *epoch_rows how many of them an
 * epoch takes.
 * tune_loader_has - whether a row of the set is in the loader's part.
 * tune_loader_epoch_steps - steps of an epoch, if no row is left out; with packing, the most there
 * can be.
 * tune_loader_planned_rows - rows over all epochs; 2^63 - 1 if max_steps decides.
 * tune_loader_planned_steps - steps over all epochs. With packing and by epochs, it is an estimate
 * from the steps so far; before the first one, the most there can be. */
struct tune_dataset *tune_loader_dataset(const struct tune_loader *load);
int64_t tune_loader_rows(const struct tune_loader *load);
int64_t tune_loader_set_rows(const struct tune_loader *load, int k, int64_t *epoch_rows);
bool tune_loader_has(const struct tune_loader *load, int64_t row);
int64_t tune_loader_epoch_steps(const struct tune_loader *load);
int64_t tune_loader_planned_rows(const struct tune_loader *load);
int64_t tune_loader_planned_steps(const struct tune_loader *load);

/* tune_loader_more - the number of micro-batches of the next step; 0: stop. -1 with an error: a bad
 * row, a row longer than max_length, or an epoch without any label. It sets at->planned_steps. At
 * the end it sets at->finished if the plan is done or after at->early_stop, else at->stopped and
 * at->signal. at->rows and at->epoch also count the rows that are left out at an epoch's end. */
int tune_loader_more(struct tune_loader *load, struct tune_progress *at);

/* A phase before the first step obeys options.stop_after_seconds by these two.
 * tune_loader_begin - start the clock now, not at the first tune_loader_more.
 * tune_loader_time_is_up - whether the time is over since then. Once it is, tune_loader_more stops
 * the run, also before its first step. Ask only while the phase has something left to do. */
void tune_loader_begin(struct tune_loader *load);
bool tune_loader_time_is_up(struct tune_loader *load);

/* tune_loader_next - the next micro-batch, borrowed until the next call. Every row has a label, so
 * T is at least 2. -1 with an error: the step has no more. */
int tune_loader_next(struct tune_loader *load, struct tune_batch *batch);

/* tune_progress_step - advance at by the step that the loader just handed out. Call it once per
 * step. */
void tune_progress_step(struct tune_progress *at, const struct tune_loader *load);

/* tune_loader_waited_s - seconds that the caller has waited for rows so far. */
double tune_loader_waited_s(const struct tune_loader *load);

/* tune_loader_seek - continue after at->step steps and at->rows rows, as the loader that counted
 * them did. The size of a step may differ. Time limits start anew. -1 with an error: the plan has
 * fewer rows. */
int tune_loader_seek(struct tune_loader *load, const struct tune_progress *at);

/* tune_loader_rows_hash - the value of at->rows_hash after so many rows, from the data file as it
 * is now. It reads these rows. -1 with an error: the file was cut short. */
int tune_loader_rows_hash(struct tune_loader *load, int64_t rows, uint64_t *hash);

/* tune_loader_bad_row - whether the last error was a row that cannot be read. No memory, or a file
 * cut short, are other errors. */
bool tune_loader_bad_row(struct tune_loader *load);

/* tune_loader_rewind - go back to the first row of epoch 0, for an evaluation. */
int tune_loader_rewind(struct tune_loader *load);

/* tune_get_loader - the loader of the training rows that the options describe. It stops at the
 * signal in *flags->stop_signal.
 * tune_get_loader_options - the options that it passes to tune_loader_new.
 * tune_get_sequences - labelled sequences of a row: those of the recipe (data.sequences), but one
 * where the loss is of single answers (--loss kto). */
int tune_get_sequences(const struct tune_flags *flags);
struct tune_loader_options tune_get_loader_options(const struct tune_flags *flags);
struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
