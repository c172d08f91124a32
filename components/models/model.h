/* model.h - a llama-style transformer on a device: weights, forward and hand-written backward.
 *
 *     x = scale E[ids]                                                       [N,C]
 *     each layer:   x = x + r (attention(rope(norm1(x) Wqkv^T + b)) Wo^T + bo)
 *                   x = x + r (swiglu(norm2(x) Wgu^T + b) Wd^T + bd)
 *     hidden = norm(x)                     the loss projects it on the vocabulary
 *
 * A model needs no flags. A training loop of your own looks like this:
 *
 *     struct tune_model *m = tune_model_load("models/SmolLM2-135M", dev, TUNE_F32);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);
 *     tune_model_zero_grad(m, record);
 *     tune_model_forward(m, &batch, &hidden);
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);
 *     tune_model_backward(m, &batch, dhidden);
 *
 * Sizes: B rows, T positions, N = B T, C width, V vocabulary. Functions that return int give 0, or
 * -1 with an error. */
#ifndef TUNE_MODEL_H
#define TUNE_MODEL_H

#include "core/batch.h"
#include "devices/record.h"
#include "models/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_model;
struct tune_flags;
struct tune_tokenizer;

/* tune_model_load - load a Hugging Face folder onto dev: config.json, and model.safetensors or
 * shards with an index. activations: F32 or BF16, the dtype of stored activations. Weights are F32.
 * NULL with an error that names file and tensor.
 *
 * tune_model_new - a model of this shape with all weights 0 and norms 1.
 *
 * tune_model_free - free the model and its device memory. */
struct tune_model *tune_model_load(const char *folder, struct tune_device *dev,
                                   enum tune_dtype activations);
struct tune_model *tune_model_new(const struct tune_model_config *config, struct tune_device *dev,
                                  enum tune_dtype activations);
void tune_model_free(struct tune_model *m);

/* tune_model_load_frozen - tune_model_load with all parameters frozen, as the base of adapters
 * (models/lora.h). Matrices are stored in storage (see tune_parameters_freeze), vectors in F32.
 * Weights are converted piece by piece, so the file is never held whole. */
struct tune_model *tune_model_load_frozen(const char *folder, struct tune_device *dev,
                                          enum tune_dtype activations, enum tune_dtype storage);

/* tune_model_reserve - allocate all buffers for batches of up to B rows of up to T positions. Call
 * it once. Nothing is allocated afterwards.
 *
 * what: TUNE_FOR_TRAINING keeps the activations for backward. With TUNE_CHECKPOINTING, only the
 * input of each layer is kept and the rest is recomputed.
 *
 * -1: no memory (then a smaller size may be tried); B T above 2^31 - 1; T above the model's
 * context; B or T below 1. */
enum { TUNE_FOR_TRAINING = 1, TUNE_CHECKPOINTING = 2 };
int tune_model_reserve(struct tune_model *m, int B, int T, int what);

/* tune_model_bytes - compute the memory of a model before it is allocated, with the code that
 * allocates it. B, T and what: as for tune_model_reserve. adapted: the adapters, or NULL for full
 * fine-tuning. -1: no memory for the parameter table, or an error of tune_lora_add. */
struct tune_model_bytes {
    /* gradients: if all is trainable; working: of device threads */
    int64_t weights, gradients, activations, working;
    /* host memory of libraries, not counted by the device (device.h); an estimate */
    int64_t library;
    int64_t files; /* about the size of the base's weight files */
    /* tune_model_infer_merged with adapters: a tile on the device; on the host also the buffers
     * that merge and compare an adapter (lora.h) */
    int64_t merged, merged_host;
};
struct tune_lora_options;
struct tune_model_adapted { /* the settings of a model with adapters */
    const struct tune_lora_options *lora;
    enum tune_dtype storage; /* dtype of the frozen matrices */
};
int tune_model_bytes(struct tune_model_bytes *bytes, const struct tune_model_config *config,
                     struct tune_device *dev, enum tune_dtype activations,
                     const struct tune_model_adapted *adapted, int B, int T, int what);

const struct tune_model_config *tune_model_config(const struct tune_model *m);

/* tune_model_flops - model FLOPs to train on one token in rows of T tokens:
 * tune_model_config_flops. With adapters, each frozen matrix weight counts 4 and each adapter
 * weight 6. */
double tune_model_flops(const struct tune_model *m, double T);
struct tune_device *tune_model_device(const struct tune_model *m);
int64_t tune_model_vocabulary(const struct tune_model *m);
enum tune_dtype tune_model_dtype(const struct tune_model *m); /* dtype of activations */
int64_t tune_model_max_tokens(const struct tune_model *m);    /* B*T that was reserved */
int tune_model_max_length(const struct tune_model *m);        /* T that was reserved */

/* tune_model_parameters - the model's parameter table. To freeze a row, set trainable = false
 * before the first tune_model_zero_grad and before making the optimizer.
 *
 * tune_model_tensor - a parameter's values on the device. Its weight has its storage dtype; other
 * values (enum tune_values) are F32. Address 0: it has no such values.
 *
 * tune_model_output_weight - the output projection [V,C] and its gradient (address 0: frozen). */
struct tune_parameters *tune_model_parameters(struct tune_model *m);
struct tune_tensor tune_model_tensor(struct tune_model *m, const struct tune_parameter *p,
                                     int which);
void tune_model_output_weight(struct tune_model *m, struct tune_tensor *w, struct tune_tensor *dw);

/* The kinds of values a parameter can have. A frozen parameter has only its weight. The other kinds
 * are F32, each in one buffer, at the same offsets as the gradients. TUNE_EXTRA + i: see
 * tune_model_extra. */
enum { TUNE_EXTRAS = 4 };
enum tune_values { TUNE_WEIGHT, TUNE_GRADIENT, TUNE_MOMENT_1, TUNE_MOMENT_2, TUNE_EXTRA,
    TUNE_VALUES = TUNE_EXTRA + TUNE_EXTRAS };

/* tune_model_extra - add tensors of your own under a name: for each trainable parameter one of its
 * shape, F32, zeroed. Checkpoints save them. tune_checkpoint_resume restores those that were made
 * before it.
 *
 * Returns their kind (enum tune_values). The same name returns the same kind. -1 with an error:
 * TUNE_EXTRAS exist already, no memory, or a name that is not 1 to 31 letters, digits and _.
 *
 *     int ema = tune_model_extra(model, "ema");
 *     struct tune_tensor w = tune_model_tensor(model, p, TUNE_WEIGHT);
 *     struct tune_tensor e = tune_model_tensor(model, p, ema);
 *     tune_axpby(dev, &e, &w, 0.01f, 0.99f);
 *
 * tune_model_extra_name - the name of kind `which`; NULL: there is none. */
int tune_model_extra(struct tune_model *m, const char *name);
const char *tune_model_extra_name(const struct tune_model *m, int which);

/* tune_model_has - whether p has values of this kind now.
 *
 * tune_model_read - copy n values from element at to out as float32, whatever their dtype. Waits
 * for the device.
 *
 * tune_model_write - the reverse; values are rounded to p's dtype. in may change after the call. An
 * NF4 weight must be written whole: at 0, n = p->count. Both return -1 if p lacks such values or so
 * many.
 *
 * tune_model_fill - fill a whole weight from source, piece by piece.
 *
 * tune_model_source - a source that reads m's weights. m must outlive it. */
struct tune_weights_source;
bool tune_model_has(const struct tune_model *m, const struct tune_parameter *p, int which);
int tune_model_read(struct tune_model *m, const struct tune_parameter *p, int which, int64_t at,
                    int64_t n, float *out);
int tune_model_write(struct tune_model *m, const struct tune_parameter *p, int which, int64_t at,
                     int64_t n, const float *in);
int tune_model_fill(struct tune_model *m, const struct tune_parameter *p,
                    const struct tune_weights_source *source);
struct tune_weights_source tune_model_source(struct tune_model *m);

/* tune_model_keep - allocate the buffer of a kind, zeroed, for all trainable parameters. It also
 * allocates the gradients if there are none. A second call does nothing. what names the buffer in
 * an error.
 *
 * tune_model_drop - free that buffer.
 *
 * tune_model_kept - that buffer as one vector on the device, with padding between parameters; 0
 * elements: not allocated. */
int tune_model_keep(struct tune_model *m, int which, const char *what);
void tune_model_drop(struct tune_model *m, int which);
struct tune_tensor tune_model_kept(struct tune_model *m, int which);

/* tune_model_gradients - allocate the gradients of all trainable parameters. A second call does
 * nothing. */
int tune_model_gradients(struct tune_model *m);

/* tune_model_zero_grad - set gradients to 0 and begin a new step in record. record may be NULL.
 * Dropout counts the record's steps. */
int tune_model_zero_grad(struct tune_model *m, struct tune_record *record);

/* The labelled positions of the last batch given to forward or infer, on the device. */
struct tune_model_labels {
    struct tune_tensor rows;   /* [n] I32: positions 0..N-1, ascending */
    struct tune_tensor labels; /* [n] I32: token ids */
    /* the same on the host, valid until the model's next forward */
    const int32_t *host_rows, *host_labels;
    int64_t forward; /* number of the model's forward pass; another number means another batch */
};

/* tune_model_labels - the labels of batch. -1: batch is not the last one given to forward or
 * infer. */
int tune_model_labels(const struct tune_model *m, const struct tune_batch *batch,
                      struct tune_model_labels *labels);

/* tune_model_same_labels - the labels of `other`. -1: the last batches of other and m had different
 * labels. */
int tune_model_same_labels(const struct tune_model *other, const struct tune_model *m,
                           struct tune_model_labels *labels);

/* tune_model_forward - compute *hidden [N,C], the final norm's output. The model owns it; it is
 * valid until the next forward. The batch is copied, so its arrays may change.
 *
 * -1: an id or label outside the vocabulary (names row and position), a batch larger than reserved,
 * invalid positions or starts. */
int tune_model_forward(struct tune_model *m, const struct tune_batch *batch,
                       struct tune_tensor **hidden);

/* tune_model_infer - forward without dropout, for evaluation and logits. It cannot be followed by
 * backward.
 *
 * tune_model_set_step - set the steps done before this process, for a resumed run. Dropout masks
 * are a function of seed, step, forward pass in the step, layer, product, row and channel. */
int tune_model_infer(struct tune_model *m, const struct tune_batch *batch,
                     struct tune_tensor **hidden);
void tune_model_set_step(struct tune_model *m, int64_t step);

/* tune_model_infer_merged - tune_model_infer with merged weights instead of adapters. `merged`
 * (weights.h) gives the matrices that have adapters. A few rows of them at a time are on the
 * device. */
int tune_model_infer_merged(struct tune_model *m, const struct tune_batch *batch,
                            const struct tune_weights_source *merged, struct tune_tensor **hidden);

/* tune_model_backward - add the gradients of the last batch given to forward. dhidden [N,C] is
 * overwritten. */
int tune_model_backward(struct tune_model *m, const struct tune_batch *batch,
                        struct tune_tensor *dhidden);

/* tune_model_logits - copy logits [rows,V] F32 to host memory, for the given rows (0..N-1) of
 * hidden. For generation, tests and your own losses; training never computes all logits. */
int tune_model_logits(struct tune_model *m, const struct tune_tensor *hidden, const int32_t *rows,
                      int count, float *logits);

/* tune_model_load_seconds - time spent reading the folder, in seconds. */
double tune_model_load_seconds(const struct tune_model *m);

/* Other components' getters use these too.
 *
 * tune_get_model_folder - find the folder of --model and check that its config.json fits tok. This
 * is fast, because it does not read the weights.
 * tune_get_model_config - find the folder of --model (into folder, TUNE_PATH_MAX bytes) and read
 * its config.json. -1 also if --max-length is above the model's context.
 * tune_get_model_dtype - dtype of activations (--dtype).
 * tune_get_model_use - the `what` for tune_model_reserve (--activation-checkpointing). */
int tune_get_model_folder(const struct tune_flags *flags, const struct tune_tokenizer *tok,
                          char *folder);
int tune_get_model_config(const struct tune_flags *flags, char *folder,
                          struct tune_model_config *config);
enum tune_dtype tune_get_model_dtype(const struct tune_flags *flags);
int tune_get_model_use(const struct tune_flags *flags);

/* tune_get_model - load the model of --model, ready to train. It reads --dtype, --batch-size,
 * --max-length and --activation-checkpointing. All ids of tok must be in its vocabulary. NULL with
 * an error. */
struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev,
                                  const struct tune_tokenizer *tok);

/* tune_get_second_model - load another model for the same batches, such as a teacher or a
 * reference. It is frozen and for tune_model_infer only. model: as the value of --model. The memory
 * plan does not count it. */
struct tune_model *tune_get_second_model(const struct tune_flags *flags, const char *model,
                                         struct tune_device *dev, const struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
