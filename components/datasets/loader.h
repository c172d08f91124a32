/* loader.h - which rows come next, as padded or packed micro-batches; tokenised by a helper thread at most two steps ahead.
 *
 *     while ((micros = tune_loader_more(load, &at)) > 0)       one optimizer step
 *         while (micros-- > 0)
 *             tune_loader_next(load, &batch);                  one micro-batch, borrowed until the next call
 *
 * Steps do not cross epochs; the last step of an epoch may have fewer micro-batches and its
 * last micro-batch fewer rows. Order is a function of (seed, epoch): nothing to store.
 *
 * Rows without a label (none in them, or all cut away) and bad rows that are skipped are left out: a step takes further rows in
 * their place. So a step's rows are a run of the epoch's order, and by epochs the plan may get shorter as such rows are met.
 *
 * With packing, a micro-batch is up to batch_size packs, each several whole rows in max_length tokens: as many rows as fit
 * into the step's packs, in the epoch's order, by best fit; the first that does not begins the next step (packs.h: why). It
 * streams, one row looked at beyond the step. No label crosses from row to row, positions restart, no row sees another. How
 * many rows a step takes is known when it is made: by epochs, the number of steps is an estimate.
 *
 * The helper thread starts at the first tune_loader_more, sleeps while it is two steps ahead, takes no signals, and what
 * it fails at is handed over at the tune_loader_more of the step that needs that row. A loader belongs to one thread. */
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

/* tune_loader_new - d is borrowed until free. Buffers for batch_size * max_length tokens are made here; the rows of the
 * steps ahead take as many bytes as they have tokens (or, packed, room for tokens), times 5. NULL with an error: the part is
 * empty, nonsense options. */
struct tune_loader *tune_loader_new(struct tune_dataset *d, const struct tune_loader_options *options);
void tune_loader_free(struct tune_loader *load);

/* tune_loader_bytes - host memory it takes over a set of that many rows, examples of full length included. */
int64_t tune_loader_bytes(const struct tune_loader_options *options, int64_t rows);

/* tune_loader_rows - rows of its part; planned_rows, planned_steps - over all epochs (rows: 2^63 - 1 where max_steps decides).
 * With packing and by epochs the steps are estimated from the rows that steps had so far; before the first, the most it can be. */
int64_t tune_loader_rows(const struct tune_loader *load);
int64_t tune_loader_planned_rows(const struct tune_loader *load);
int64_t tune_loader_planned_steps(const struct tune_loader *load);

/* tune_loader_more - micro-batches of the next step; 0 to stop; -1: a bad row, a row longer than
 * max_length, or an epoch (or all of less than one) in which no row has a label. Sets
 * at->planned_steps; at->finished at the planned end and after at->early_stop, else at->stopped
 * (and at->signal) where it stops before. Rows at the end of an epoch that are all left out make
 * no step: they are added to at->rows and at->epoch. */
int tune_loader_more(struct tune_loader *load, struct tune_progress *at);

/* tune_loader_next - the next micro-batch into *batch, borrowed until the next call. Every row has
 * a label, so T is at least 2. -1: the step has no more of them. */
int tune_loader_next(struct tune_loader *load, struct tune_batch *batch);

/* tune_progress_step - a step is done: advance at by what the loader handed out for it. Once a step. */
void tune_progress_step(struct tune_progress *at, const struct tune_loader *load);

/* tune_loader_waited_s - how long the caller has waited for rows to be read and tokenised, in all. */
double tune_loader_waited_s(const struct tune_loader *load);

/* tune_loader_seek - go on behind at->step steps and at->rows rows, as the loader did that counted them; also with another
 * size of a step, from that row on. -1: the plan does not have so many rows. Limits of time begin anew. */
int tune_loader_seek(struct tune_loader *load, const struct tune_progress *at);

/* tune_loader_rows_hash - what at->rows_hash is behind so many rows, by the data file as it is
 * now: these rows are read once more. -1: the file was cut short. */
int tune_loader_rows_hash(struct tune_loader *load, int64_t rows, uint64_t *hash);

/* tune_loader_bad_row - whether the steps ended at a row that cannot be read. Want of memory and a
 * file that was cut short are other errors. */
bool tune_loader_bad_row(struct tune_loader *load);

/* tune_loader_rewind - begin again at the first row of epoch 0 (evaluation). */
int tune_loader_rewind(struct tune_loader *load);

/* tune_get_loader - the training rows of data by --train-split, --batch-size, --accumulate, --shuffle, --seed, --epochs,
 * --max-steps, --stop-at-step, --stop-after-seconds, --until-stable, --packing; stops at the signal noted in *flags->stop_signal.
 * tune_get_loader_options - what it passes to tune_loader_new. */
struct tune_loader_options tune_get_loader_options(const struct tune_flags *flags);
struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
