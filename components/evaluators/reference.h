/* reference.h - log-probabilities of answers by a frozen reference model, for losses of
 * preferences.
 *
 * The reference is the model as it was before its first step. There are two ways to get its
 * log-probabilities without a second model in memory:
 * - A model with new adapters on it is its own reference when the adapters are left out. Each batch
 *   is computed when it comes.
 * - Otherwise all rows are computed before the first step, and the numbers are kept in a file. A
 *   resumed run reads them from there; so may other runs with the same model.
 *
 * The file finds a row's number by a hash of its tokens and labels. So it does not matter in which
 * order rows come, or in which data set they are. Example:
 *
 *     struct tune_reference *r = tune_reference_new(m, loss, TUNE_REFERENCE_FILE);
 *     tune_reference_open(r, "runs/a/reference.safetensors", identity);
 *     while (...) { tune_loader_next(load, &batch); tune_reference_compute(r, &batch); }
 *     tune_reference_save(r);
 *     tune_reference_log_probs(r, &batch, sums); */
#ifndef TUNE_REFERENCE_H
#define TUNE_REFERENCE_H

#include <stdint.h>

#include "core/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_evaluator;
struct tune_flags;
struct tune_loader;
struct tune_logger;
struct tune_comm;
struct tune_loss;
struct tune_model;
struct tune_reference;

enum tune_reference_kind {
    TUNE_REFERENCE_NONE, /* the loss needs none: all numbers are 0 */
    TUNE_REFERENCE_BASE, /* the model without its adapters, for each batch */
    TUNE_REFERENCE_FILE  /* numbers that were computed before */
};

/* tune_reference_new - a reference. m and loss must outlive it.
 * tune_reference_free - free it; NULL is fine. */
struct tune_reference *tune_reference_new(struct tune_model *m, struct tune_loss *loss,
                                          enum tune_reference_kind kind);
void tune_reference_free(struct tune_reference *r);

/* tune_reference_open - the file to keep the numbers in. If it is there, its numbers are read. made
 * says what they depend on besides the rows, such as the hash of the weights. NULL: what the file
 * itself says, which must be there. Returns 1 for a file of an older version, without a checksum,
 * if made is given. Nothing was read then, and the next save replaces it. -1 with an error: the
 * file is damaged, or another model made it.
 * tune_reference_lacks - the number of the batch's rows that have no number yet.
 * tune_reference_compute - add the batch's rows that have no number yet, by the model as it is now.
 * The number of rows that were added, or -1.
 * tune_reference_save - write the file, if rows were added.
 * tune_reference_ranks - share the work with other ranks, of which rank 0 writes the file; comm
 * NULL: alone.
 * tune_reference_share - get the rows that the other ranks have computed. */
int tune_reference_open(struct tune_reference *r, const char *path, const char *made);
int tune_reference_lacks(const struct tune_reference *r, const struct tune_batch *batch);
int tune_reference_compute(struct tune_reference *r, const struct tune_batch *batch);
int tune_reference_save(struct tune_reference *r);
void tune_reference_ranks(struct tune_reference *r, struct tune_comm *comm);
int tune_reference_share(struct tune_reference *r);

/* tune_reference_log_probs - sums [B] on the host: log p of each row's labels, as
 * tune_loss_row_log_probs. It uses the model for TUNE_REFERENCE_BASE, so call it before the batch's
 * forward. -1 with an error: a row has no number. */
int tune_reference_log_probs(struct tune_reference *r, const struct tune_batch *batch,
                             double *sums);

/* tune_reference_mismatch - estimate kl, too. tune_reference_compute and _lacks then take the
 * batch's mismatched answers (tune_batch_mismatched) for rows, too. multiple: batches of them are
 * padded to a multiple of it.
 * tune_reference_kl - how far the model is from the reference: the mean of log p of the model - log
 * p of the reference, at least 0. It is over the batch's mismatched answers, and 0 without
 * tune_reference_mismatch. It runs the model, so call it before the batch's forward. */
void tune_reference_mismatch(struct tune_reference *r, int multiple);
int tune_reference_kl(struct tune_reference *r, const struct tune_batch *batch, double *kl);

/* tune_get_reference - the reference that the loss needs. It computes now what a file lacks: the
 * rows of the first epoch of data that the run plans, and those of eval. With kl, or with a mix, it
 * is the rows of all epochs, since each has others. Call it before tune_checkpoint_resume, which
 * brings other weights. A signal ends it early, and so does load's stop_after_seconds, which counts
 * from here on. Then tune_loader_more ends the run before its first step. */
struct tune_reference *tune_get_reference(const struct tune_flags *flags,
                                          struct tune_model *m, struct tune_loss *loss,
                                          struct tune_loader *load, struct tune_evaluator *eval,
                                          struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
