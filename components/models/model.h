/* model.h - a llama-like transformer on a device: weights, forward, and a backward written by hand.
 *
 *     x = scale E[ids]                                                       [N,C]
 *     each layer:   x = x + r (attention(rope(norm1(x) Wqkv^T + b)) Wo^T + bo)
 *                   x = x + r (swiglu(norm2(x) Wgu^T + b) Wd^T + bd)
 *     hidden = norm(x)                     the loss projects it on the vocabulary
 *
 * A loop of your own needs neither flags nor a run folder:
 *
 *     struct tune_model *m = tune_model_load("models/SmolLM2-135M", dev, TUNE_F32);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);
 *     tune_model_zero_grad(m, record);
 *     tune_model_forward(m, &batch, &hidden);
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);
 *     tune_model_backward(m, &batch, dhidden);
 *
 * Below: B rows, T positions, N = B*T, C width, V vocabulary. */
#ifndef TUNE_MODEL_H
#define TUNE_MODEL_H

#include "core/batch.h"
#include "devices/record.h"
#include "models/options.h"
#include "models/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_comm;
struct tune_model;
struct tune_flags;
struct tune_tokenizer;

/* tune_model_load - read a Hugging Face folder onto dev: config.json, and model.safetensors or
 * shards with an index. activations: F32 or BF16, the dtype between operations. Weights are F32.
 * NULL with an error that names file and tensor.
 * tune_model_new - a model of that shape with all weights 0 and norms 1.
 * tune_model_new_frozen - the same as a base for adapters (tune_model_load_frozen).
 * tune_model_free - free it and its memory on the device; NULL is fine. */
struct tune_model *tune_model_load(const char *folder, struct tune_device *dev,
                                   enum tune_dtype activations);
struct tune_model *tune_model_new(const struct tune_model_config *config, struct tune_device *dev,
                                  enum tune_dtype activations);
struct tune_model *tune_model_new_frozen(const struct tune_model_config *config,
                                         struct tune_device *dev, enum tune_dtype activations,
                                         enum tune_dtype storage);
void tune_model_free(struct tune_model *m);

/* tune_model_load_frozen - read a folder as a base for adapters (models/lora.h). Nothing is
 * trainable. Matrices are kept in the dtype storage (tune_parameters_freeze), vectors in F32. It
 * reads one tensor at a time, in pieces. */
struct tune_model *tune_model_load_frozen(const char *folder, struct tune_device *dev,
                                          enum tune_dtype activations,
                                          enum tune_dtype storage);

/* tune_model_load_grown - read a folder with at least that many rows of the vocabulary. A row that
 * the files do not have is the mean of those that they have. So it is in the embedding, and in an
 * output projection that is not tied. storage is that of tune_model_load_frozen. TUNE_TRAINED:
 * everything is trained, as tune_model_load does. */
struct tune_model *tune_model_load_grown(const char *folder, struct tune_device *dev,
                                         enum tune_dtype activations, enum tune_dtype storage,
                                         int vocabulary);

/* tune_model_load_shared - tune_model_load_grown for one of several ranks, with tune_model_ranks
 * and tune_model_shard. With TUNE_FSDP a rank keeps its share of the weights alone, from the
 * reading on. comm NULL, or of one rank: everything. */
struct tune_model *tune_model_load_shared(const char *folder, struct tune_device *dev,
                                          enum tune_dtype activations, enum tune_dtype storage,
                                          int vocabulary, struct tune_comm *comm,
                                          enum tune_shard shard);

/* tune_model_reserve - allocate everything for batches of up to B rows of up to T positions.
 * Nothing grows later. Call it once per model. FOR_TRAINING keeps what backward needs.
 * CHECKPOINTING keeps only each layer's input and computes the rest again in backward. -1 with an
 * error: B*T above 2^31 - 1, T above the model's context, B or T below 1, or no memory. You may
 * then try a smaller size. */
enum { TUNE_FOR_TRAINING = 1, TUNE_CHECKPOINTING = 2 };
int tune_model_reserve(struct tune_model *m, int B, int T, int what);

/* tune_model_bytes - what such a model would take of dev, before any of it is allocated. The
 * allocating code itself adds it up. B, T and what are those of tune_model_reserve. adapted NULL:
 * no adapters, everything is trained. -1 with an error: no memory for the parameter table, or
 * adapters that tune_lora_add would refuse. */
struct tune_model_bytes {
    /* gradients: everything trainable; working: the device's own */
    int64_t weights, gradients, activations, working;
    /* held by libraries, see devices/device.h; an estimate */
    int64_t library;
    /* about the size of the base's weight files */
    int64_t files;
    /* the largest tune_muon_bytes of what is trained */
    int64_t muon;
    struct tune_max_sizes max_sizes; /* what `working` is for */
};
struct tune_lora_options;
struct tune_model_adapted { /* the adapters of a model to plan for */
    const struct tune_lora_options *lora;
    enum tune_dtype storage; /* dtype of the frozen matrices */
};
int tune_model_bytes(struct tune_model_bytes *bytes, const struct tune_model_config *config,
                     struct tune_device *dev,
                     enum tune_dtype activations, const struct tune_model_adapted *adapted, int B,
                     int T, int what);

/* tune_model_logit_rows - the positions, of N, whose logits exist at a time. They take about
 * dev->logits_bytes: enough for a fast product, and little beside the activations. It is a multiple
 * of 64, or N: so products have few shapes, and a GPU chooses an algorithm for them by timing. */
int64_t tune_model_logit_rows(const struct tune_device *dev,
                              const struct tune_model_config *config, int64_t N);

/* tune_model_flops - FLOPs of training on one token in rows of T positions. A trained weight counts
 * 6, a frozen matrix under adapters 4. Recomputation does not count.
 * tune_model_config - the model's shape.
 * tune_model_device - the device that it is on.
 * tune_model_vocabulary - V.
 * tune_model_dtype - dtype of the activations.
 * tune_model_max_tokens - the reserved B*T.
 * tune_model_max_length - the reserved T. */
double tune_model_flops(const struct tune_model *m, double T);
const struct tune_model_config *tune_model_config(const struct tune_model *m);
struct tune_device *tune_model_device(const struct tune_model *m);
int64_t tune_model_vocabulary(const struct tune_model *m);
enum tune_dtype tune_model_dtype(const struct tune_model *m);
int64_t tune_model_max_tokens(const struct tune_model *m);
int tune_model_max_length(const struct tune_model *m);

/* tune_model_parameters - the parameter table. To freeze a parameter, set trainable = false before
 * the optimizer and the first zero_grad.
 * tune_model_tensor - a parameter's numbers on the device. The weight has its own dtype, all others
 * are F32. Address 0: it has none, or it is a weight whose unit is not taken.
 * tune_model_output_weight - the matrix [V,C] of the output projection, and its gradient. The
 * gradient has address 0 if it is frozen.
 * tune_model_output_unit - the unit of that matrix, to be taken before. */
struct tune_parameters *tune_model_parameters(struct tune_model *m);
struct tune_tensor tune_model_tensor(struct tune_model *m, const struct tune_parameter *p,
                                     int kind);
void tune_model_output_weight(struct tune_model *m, struct tune_tensor *w, struct tune_tensor *dw);
int tune_model_output_unit(const struct tune_model *m);

/* A unit's weights have an address only from take to release. Unit 0 is the embedding, 1..L the
 * layers, L+1 the final norm and an untied output projection. Adapters are in the unit of what they
 * adapt. Operations that use an address must be queued before the release. Gradients and moments
 * are always there.
 *     tune_unit_take(model, p->unit);
 *     struct tune_tensor w = tune_model_tensor(model, p, TUNE_WEIGHT);
 *     int status = tune_axpby(dev, &e, &w, 0.01f, 0.99f);
 *     return tune_unit_done(model, p->unit, status);
 *
 * tune_unit_take - a unit may be taken several times; it stays until the last release. -1 with an
 * error: there is no such unit.
 * tune_unit_release - -1 with an error: it was not taken.
 * tune_unit_done - release after operations that returned status. Returns status, or -1 if the
 * release failed.
 * tune_unit_taken - whether it is taken now. No unit may be when tune_model_run or
 * tune_model_backward begins. */
int tune_unit_take(struct tune_model *m, int unit);
int tune_unit_release(struct tune_model *m, int unit);
int tune_unit_done(struct tune_model *m, int unit, int status);
bool tune_unit_taken(const struct tune_model *m, int unit);

/* tune_unit_take_own - before operations on what this rank owns of a unit (tune_model_owned) and on
 * nothing else. With TUNE_FSDP no weights come for it; else it is tune_unit_take.
 * tune_unit_done_own - after these operations, which returned status, like tune_unit_done. */
int tune_unit_take_own(struct tune_model *m, int unit);
int tune_unit_done_own(struct tune_model *m, int unit, int status);

/* Kinds of tensors that a parameter can have. A trainable one may have all of them, a frozen one
 * has its weight. All but weights are F32. Each kind is one buffer, with the offsets of the
 * gradients. TUNE_EXTRA + i: see tune_model_extra. */
enum { TUNE_EXTRAS = 4 };
enum tune_tensor_kind {
    TUNE_WEIGHT, TUNE_GRADIENT, TUNE_MOMENT_1, TUNE_MOMENT_2, TUNE_EXTRA,
    TUNE_TENSOR_KINDS = TUNE_EXTRA + TUNE_EXTRAS
};

/* tune_model_extra - make named tensors of your own: for each trainable parameter one of its shape,
 * F32, zeroed. Returns their kind; the same name gives the same kind. Checkpoints save them.
 * tune_checkpoint_resume restores them if they were made before it. -1 with an error: a name that
 * is not 1 to 31 letters, digits and _; more than TUNE_EXTRAS names; no memory.
 *     int slow = tune_model_extra(model, "slow");
 *     struct tune_tensor e = tune_model_tensor(model, p, slow);
 * tune_model_extra_name - the name of a kind; NULL: no such kind. */
int tune_model_extra(struct tune_model *m, const char *name);
const char *tune_model_extra_name(const struct tune_model *m, int kind);

/* tune_model_averages - keep averages of the weights in the extra tensors "ema". Returns their
 * kind. The optimizer calls it, and updates them (options.ema).
 * tune_model_begin_averages - before the first update: set the averages to the weights. Averages
 * that were written, as in a resumed run, stay.
 * tune_model_exchange - weights and averages change places, on the device. Evaluations and saves
 * call it before and after. Without averages, or before the first update, it does nothing.
 * tune_model_averages_kind - their kind; 0: the model has none. */
int tune_model_averages(struct tune_model *m);
int tune_model_begin_averages(struct tune_model *m);
int tune_model_exchange(struct tune_model *m);
int tune_model_averages_kind(const struct tune_model *m);

/* tune_model_has - whether p has numbers of that kind now.
 * tune_model_read - copy n numbers from element at into out as float32, whatever their dtype. Waits
 * for the device.
 * tune_model_write - set n numbers from element at, rounded to their dtype. in has been read when
 * it returns. An NF4 weight is written whole: at 0, n = p->count. Both return -1 with an error if p
 * has no such numbers.
 * tune_model_compare - check that a whole weight, rounded to the dtype of t, has the bits of t, an
 * array of its shape. -1 with an error that names p.
 * tune_model_fill - set a whole weight from source, in pieces.
 * tune_model_source - a source that reads m's weights. */
struct tune_weights_source;
bool tune_model_has(const struct tune_model *m, const struct tune_parameter *p, int kind);
int tune_model_read(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at,
                    int64_t n, float *out);
int tune_model_write(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at,
                     int64_t n, const float *in);
int tune_model_compare(struct tune_model *m, const struct tune_parameter *p,
                       const struct tune_array *t);
int tune_model_fill(struct tune_model *m, const struct tune_parameter *p,
                    const struct tune_weights_source *source);
struct tune_weights_source tune_model_source(struct tune_model *m);

/* tune_model_allocate_state - allocate a kind for everything trainable, zeroed. Allocates the
 * gradients first. A second call does nothing.
 * tune_model_release_state - free a kind.
 * tune_model_state - a kind as one vector on the device, with padding between parameters. 0
 * elements: there is none. */
int tune_model_allocate_state(struct tune_model *m, int kind, const char *what);
void tune_model_release_state(struct tune_model *m, int kind);
struct tune_tensor tune_model_state(struct tune_model *m, int kind);

/* tune_model_gradients - allocate the gradients for everything trainable. A second call does
 * nothing. */
int tune_model_gradients(struct tune_model *m);

/* tune_model_zero_grad - set gradients to 0 and begin a step in record. NULL: no record is kept.
 * Dropout counts by the record's steps. */
int tune_model_zero_grad(struct tune_model *m, struct tune_record *record);

/* tune_model_ranks - train m together with the models of other ranks; NULL: alone.
 * tune_model_reduce - behind the last micro-batch of a step: gradients become their sums over the
 * ranks. So do the record's loss_sum, labels, divisor and counts; NULL: no record. Each rank gets
 * the same bits. One rank: nothing to do. On the CPU, the backward of a batch with `last` has begun
 * to send the gradients of layers: leave them alone until tune_model_reduce has returned.
 * tune_model_is_apart - whether there are several ranks, and this step's gradients are our own. */
void tune_model_ranks(struct tune_model *m, struct tune_comm *comm);
int tune_model_reduce(struct tune_model *m, struct tune_record *record);
bool tune_model_is_apart(const struct tune_model *m);

/* Shards (models/options.h). Each rank owns a part of every stretch of trained parameters that lie
 * side by side in a unit: its tune_comm_share. Moments and averages exist for that part alone.
 * Gradients are added up there alone, and tune_model_reduce leaves the rest as it is. One rank owns
 * all. tune_model_read and tune_model_write then work for whole parameters as ever, where all ranks
 * call them with the same arguments. tune_model_tensor gives no address for such a kind.
 *
 * TUNE_FSDP shares out the weights of each unit, frozen ones too, and the gradients. tune_unit_take
 * gathers a unit: all ranks take the same units in the same order, and run as many passes. A pass
 * gathers the next unit while one is used. What an operation writes to a taken weight is lost: use
 * tune_model_write, or tune_model_owned. Backward adds up a unit's gradients when they are made, in
 * each micro-batch. So tune_model_tensor gives no address for them.
 *
 * tune_model_shard - share out, from before there are gradients on, and behind tune_model_ranks.
 * TUNE_FSDP: see tune_model_load_shared. -1 with an error, of kind USAGE if it is not built for
 * that device.
 * tune_model_is_sharded - whether something is shared out: not with one rank.
 * tune_model_gathers - whether it is shared out by TUNE_FSDP, so that all ranks must run as many
 * passes.
 * tune_model_own - reduce [*first, *first + *count) of the gradient buffer to what this rank owns
 * of it; perhaps nothing. It lies within one unit, and in rows without a frozen one between them.
 * tune_model_owned - the numbers of a kind of such a part, which this rank owns. A weight has an
 * address while its unit is taken, or its own part is. Address 0: there are none.
 * tune_model_share_unit - after a change of what we own of a unit's weights: begin to send it to
 * the other ranks, and to get theirs. Without shards it does nothing, nor does the next.
 * tune_model_shared - wait until all have come.
 * tune_model_sum_squares - tune_sum_squares of all gradients: of each rank's part, then added in
 * the order of the ranks. */
int tune_model_shard(struct tune_model *m, enum tune_shard shard);
bool tune_model_is_sharded(const struct tune_model *m);
bool tune_model_gathers(const struct tune_model *m);
void tune_model_own(const struct tune_model *m, int64_t *first, int64_t *count);
struct tune_tensor tune_model_owned(struct tune_model *m, int kind, int64_t first,
                                    int64_t count);
int tune_model_share_unit(struct tune_model *m, int unit);
int tune_model_shared(struct tune_model *m);
int tune_model_sum_squares(struct tune_model *m, tune_address step);

/* Work that rank 0 does alone, such as a save. It may need what the other ranks own, so they serve
 * it meanwhile.
 *     if (rank == 0) {
 *         tune_model_alone(m);
 *         ... tune_model_read, tune_model_exchange ...
 *     }
 *     return tune_model_together(m, comm, "the checkpoint of rank 0");
 *
 * tune_model_alone - rank 0 begins. If its work fails, it must end the program or its comm.
 * tune_model_together - all ranks call it. It returns when rank 0 calls it, however long that
 * takes, as long as its process is alive and not stopped. -1 with an error: a rank has ended, or
 * what rank 0 asked for failed. comm NULL: one rank. */
void tune_model_alone(struct tune_model *m);
int tune_model_together(struct tune_model *m, struct tune_comm *comm, const char *what);

/* Bytes that a rank keeps. */
struct tune_model_shares {
    int64_t weights, gradients;
    int64_t owned;    /* float32, one for each trained parameter: its moments, or its averages */
    int64_t gathered; /* units that are whole for a while: their weights and gradients; 0 without
                       * TUNE_FSDP */
    int64_t reduced;  /* most elements whose sums over the ranks are made at a time */
    int64_t copied;   /* most bytes that ranks send each other at a time. The host has a copy of
                       * them if only the device can read them */
};

/* tune_model_shares - shard TUNE_DDP or one rank: everything. adapted as for tune_model_bytes. -1
 * with an error. */
int tune_model_shares(struct tune_model_shares *bytes, const struct tune_model_config *config,
                      const struct tune_model_adapted *adapted, enum tune_shard shard, int rank,
                      int ranks);

/* The labelled positions of the last batch, on the device. */
struct tune_model_labels {
    struct tune_tensor rows;   /* [n] I32; positions 0..N-1, ascending */
    struct tune_tensor labels; /* [n] I32 */
    const int32_t *host_rows, *host_labels; /* host copies, valid until the model's next forward */
    /* forward passes of the model so far; a new number means a new batch */
    int64_t forward;
};

/* tune_model_labels - the labelled positions of batch. -1 with an error: it is not the batch last
 * given to forward or infer. */
int tune_model_labels(const struct tune_model *m, const struct tune_batch *batch,
                      struct tune_model_labels *labels);

/* tune_model_same_labels - the labelled positions of other, which must have been given the same
 * labels as m. -1 with an error: it was not. */
int tune_model_same_labels(const struct tune_model *other, const struct tune_model *m,
                           struct tune_model_labels *labels);

/* A way through the model. All zero: inference with the adapters. */
struct tune_model_pass {
    bool training;       /* tune_model_backward may follow */
    bool dropout, noise; /* of adapters; NEFTune's */
    bool base;           /* without adapters: the frozen model as it was read */
    const struct tune_cached *cache;          /* set by tune_cache_forward (models/cache.h) */
};

/* tune_model_run - run a batch. Passes of one model may alternate, such as training and generation:
 * each begins anew, and what it is lies in its argument alone. They share buffers, so hidden, a
 * loss and a backward belong to the last pass: finish a step before the next pass. The functions
 * below are the usual passes. 1: the cache's stop signal came between two layers. */
int tune_model_run(struct tune_model *m, const struct tune_model_pass *pass,
                   const struct tune_batch *batch, struct tune_tensor **hidden);

/* tune_model_forward - run the model; *hidden [N,C] is the output of the final norm. It belongs to
 * the model and is valid until the next forward. The batch is copied. -1 with an error: an id or
 * label outside the vocabulary (with row and position), a batch larger than reserved, or bad
 * positions or starts. */
int tune_model_forward(struct tune_model *m, const struct tune_batch *batch,
                       struct tune_tensor **hidden);

/* tune_model_no_batch - where other ranks run a pass, and this one has no batch for it: take its
 * part in what they gather. Without TUNE_FSDP it does nothing. */
int tune_model_no_batch(struct tune_model *m);

/* tune_model_noise - NEFTune: tune_model_forward adds noise to the embedded tokens, evenly from
 * [-a, a) with a = alpha / sqrt(T C). alpha 0: none. Source: Jain et al. 2023; T is the length of
 * the padded batch, as in transformers.
 * tune_model_infer - the same without dropout and noise, for evaluation. No backward may follow.
 * tune_model_set_step - tell the number of steps done before, in a resumed run. Dropout of adapters
 * is a function of seed, step, forward pass in the step, layer, product, row and column. */
int tune_model_infer(struct tune_model *m, const struct tune_batch *batch,
                     struct tune_tensor **hidden);
void tune_model_noise(struct tune_model *m, double alpha, uint64_t seed);
void tune_model_set_step(struct tune_model *m, int64_t step);

/* tune_model_infer_base - tune_model_infer without adapters: the frozen model as it was read. Until
 * the next forward, tune_model_output_weight is the base's too. */
int tune_model_infer_base(struct tune_model *m, const struct tune_batch *batch,
                          struct tune_tensor **hidden);

/* tune_model_backward - add the gradients of the batch last given to forward. dhidden [N,C] is
 * overwritten. */
int tune_model_backward(struct tune_model *m, const struct tune_batch *batch,
                        struct tune_tensor *dhidden);

/* tune_model_load_seconds - time that reading the folder took, seconds. */
double tune_model_load_seconds(const struct tune_model *m);

/* Getters of other components use these too.
 * tune_get_model_folder - find the model's folder and check that its config.json fits tok. It is
 * cheap; no weights are read. folder: TUNE_PATH_MAX bytes.
 * tune_get_model_config - find the folder and read its config.json. -1 with an error also if the
 * maximum length is above the model's context.
 * tune_get_model_use - the flags for tune_model_reserve. */
int tune_get_model_folder(const struct tune_flags *flags, const struct tune_tokenizer *tok,
                          char *folder);
int tune_get_model_config(const struct tune_flags *flags, char *folder,
                          struct tune_model_config *config);
int tune_get_model_use(const struct tune_flags *flags);

/* tune_get_model - load and reserve the model that the options name, ready to train. -1 with an
 * error also if an id of tok is outside its vocabulary. */
struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev,
                                  const struct tune_tokenizer *tok);

/* tune_get_second_model - load another model for the same batches, frozen, for tune_model_infer: a
 * teacher or a reference. model: a folder, known name or Hub id. The memory plan does not count
 * it. */
struct tune_model *tune_get_second_model(const struct tune_flags *flags, const char *model,
                                         struct tune_device *dev,
                                         const struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
