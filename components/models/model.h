/* model.h - a transformer of the llama kind on a device: weights, forward, hand-written backward.
 *
 *     x = scale E[ids]                                                       [N,C]
 *     each layer:   x = x + r (attention(rope(norm1(x) Wqkv^T + b)) Wo^T + bo)
 *                   x = x + r (swiglu(norm2(x) Wgu^T + b) Wd^T + bd)
 *     hidden = norm(x)                     what the loss projects on the vocabulary
 *
 * The model needs no flags and no files to be used in a loop of one's own:
 *
 *     struct tune_model *m = tune_model_load("models/SmolLM2-135M", dev, TUNE_F32);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);
 *     tune_model_zero_grad(m, record);
 *     tune_model_forward(m, &batch, &hidden);
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);
 *     tune_model_backward(m, &batch, dhidden);
 *
 * B rows, T positions, N = B T, C width, V vocabulary. */
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

/* tune_model_load - read a Hugging Face folder (config.json, model.safetensors or shards with an index) onto dev.
 * activations: F32 or BF16, how values between operations are kept; weights are F32. NULL with an error naming file and
 * tensor. tune_model_new - the same shape with all weights 0 and norms 1. tune_model_free frees what lies on the device. */
struct tune_model *tune_model_load(const char *folder, struct tune_device *dev, enum tune_dtype activations);
struct tune_model *tune_model_new(const struct tune_model_config *config, struct tune_device *dev,
                                  enum tune_dtype activations);
void tune_model_free(struct tune_model *m);

/* tune_model_load_frozen - the same with nothing trainable, matrices kept in storage (tune_parameters_freeze), vectors in F32:
 * what adapters (models/lora.h) stand on. Tensor by tensor: a file's numbers are held a piece at a time. */
struct tune_model *tune_model_load_frozen(const char *folder, struct tune_device *dev, enum tune_dtype activations,
                                          enum tune_dtype storage);

/* tune_model_reserve - allocate all that batches of up to B rows of up to T positions need; nothing grows afterwards.
 * Once per model. FOR_TRAINING: keep what backward needs; with CHECKPOINTING: each layer's input only, the rest is
 * computed again. -1: no memory (a smaller one may be tried then), B T above 2^31 - 1; T above the model's context; B or T
 * below 1. */
enum { TUNE_FOR_TRAINING = 1, TUNE_CHECKPOINTING = 2 };
int tune_model_reserve(struct tune_model *m, int B, int T, int what);

/* tune_model_bytes - what a model of this shape takes of dev in all, from the very code that allocates it, before any of it is
 * there: B, T and what as for tune_model_reserve; adapted NULL: none, all is trained. 0, or -1: no memory for the table of
 * parameters, or what tune_lora_add would refuse. */
struct tune_model_bytes {
    int64_t weights, gradients, activations, working; /* gradients: with everything trainable; working: the device's threads' */
    int64_t library;                                  /* outside of the device's count, see devices/device.h; an estimate */
    int64_t files;                                    /* about what the base's weight files have */
    int64_t merged, merged_host;                      /* of tune_model_infer_merged with adapters: a tile on the device; the host's,
                                                         with what an adapter is merged from and compared by (lora.h) */
};
struct tune_lora_options;
struct tune_model_adapted { /* what a model with adapters is made by */
    const struct tune_lora_options *lora;
    enum tune_dtype storage; /* of the frozen matrices */
};
int tune_model_bytes(struct tune_model_bytes *bytes, const struct tune_model_config *config, struct tune_device *dev,
                     enum tune_dtype activations, const struct tune_model_adapted *adapted, int B, int T, int what);

const struct tune_model_config *tune_model_config(const struct tune_model *m);

/* tune_model_flops - model FLOPs of training on one token in rows of T: tune_model_config_flops, where with adapters a frozen
 * matrix counts 4 for each weight, an adapter's 6. */
double tune_model_flops(const struct tune_model *m, double T);
struct tune_device *tune_model_device(const struct tune_model *m);
int64_t tune_model_vocabulary(const struct tune_model *m);
enum tune_dtype tune_model_dtype(const struct tune_model *m); /* of activations */
int64_t tune_model_max_tokens(const struct tune_model *m);    /* B*T that was reserved */
int tune_model_max_length(const struct tune_model *m);        /* T of that */

/* tune_model_parameters - the table; freeze rows (trainable = false) before the first zero_grad or optimizer.
 * tune_model_tensor - a parameter's numbers on the device: its weight in the dtype it is kept in, or other values (see below) as
 * F32; address 0 where it has none.
 * tune_model_output_weight - the matrix [V,C] that projects on the vocabulary, and its gradient (NULL data: frozen). */
struct tune_parameters *tune_model_parameters(struct tune_model *m);
struct tune_tensor tune_model_tensor(struct tune_model *m, const struct tune_parameter *p, int which);
void tune_model_output_weight(struct tune_model *m, struct tune_tensor *w, struct tune_tensor *dw);

/* The numbers that a model has for a parameter. A trainable one may have them all, a frozen one has its weight. All but
 * weights are F32, one buffer of each kind, and lie at the gradients' offsets. TUNE_EXTRA + i: what tune_model_extra made. */
enum { TUNE_EXTRAS = 4 };
enum tune_values { TUNE_WEIGHT, TUNE_GRADIENT, TUNE_MOMENT_1, TUNE_MOMENT_2, TUNE_EXTRA, TUNE_VALUES = TUNE_EXTRA + TUNE_EXTRAS };

/* tune_model_extra - tensors of your own, under a name: for each trainable parameter one of its shape, F32, zeros. Checkpoints
 * save them, and tune_checkpoint_resume restores them if they were made before it. Returns which they are; the same name gives
 * the same ones. -1: not a name of 1 to 31 letters, digits and _; TUNE_EXTRAS are there already; no memory.
 *     int ema = tune_model_extra(model, "ema");
 *     struct tune_tensor w = tune_model_tensor(model, p, TUNE_WEIGHT), e = tune_model_tensor(model, p, ema);
 *     tune_axpby(dev, &e, &w, 0.01f, 0.99f);
 * tune_model_extra_name - the name of which; NULL: there are none such. */
int tune_model_extra(struct tune_model *m, const char *name);
const char *tune_model_extra_name(const struct tune_model *m, int which);

/* tune_model_has - whether p has such numbers now.
 * tune_model_read - n of them, from element at, as float32 into out, whatever they are kept in. Waits for the device.
 * tune_model_write - the other way; in has been read when it returns. They are rounded to what p is kept in. A weight in NF4
 * is written whole: at 0, n is p->count. Both -1: p has no such numbers, or not that many.
 * tune_model_fill - a whole weight from source, a piece at a time. tune_model_source - the source that reads m's weights. */
struct tune_weights_source;
bool tune_model_has(const struct tune_model *m, const struct tune_parameter *p, int which);
int tune_model_read(struct tune_model *m, const struct tune_parameter *p, int which, int64_t at, int64_t n, float *out);
int tune_model_write(struct tune_model *m, const struct tune_parameter *p, int which, int64_t at, int64_t n, const float *in);
int tune_model_fill(struct tune_model *m, const struct tune_parameter *p, const struct tune_weights_source *source);
struct tune_weights_source tune_model_source(struct tune_model *m);

/* tune_model_keep - make the buffer of that kind, zeroed, for what is trainable, and the gradients before it if there are none
 * yet; again is fine, and zeroes nothing. tune_model_drop - free it.
 * tune_model_kept - it as one vector on the device, with padding between parameters; 0 elements: there is none. */
int tune_model_keep(struct tune_model *m, int which, const char *what);
void tune_model_drop(struct tune_model *m, int which);
struct tune_tensor tune_model_kept(struct tune_model *m, int which);

/* tune_model_gradients - allocate the gradient buffer for what is trainable now; again is fine. */
int tune_model_gradients(struct tune_model *m);

/* tune_model_zero_grad - gradients to 0, and a new step begins in record (NULL: none is kept). Dropout counts by the record's steps. */
int tune_model_zero_grad(struct tune_model *m, struct tune_record *record);

/* The labelled positions of the batch last put through the model, on the device. */
struct tune_model_labels {
    struct tune_tensor rows;   /* [n] I32: positions, 0..N-1, in order */
    struct tune_tensor labels; /* [n] I32 */
    const int32_t *host_rows, *host_labels; /* the same on the host, until the model's next forward */
    int64_t forward;           /* the model's forward passes so far: another one means another batch */
};

/* tune_model_labels - those of batch. -1: it is not the one last put through forward or infer. */
int tune_model_labels(const struct tune_model *m, const struct tune_batch *batch, struct tune_model_labels *labels);

/* tune_model_same_labels - those of other, which must have been given the same labels as m last. -1: it was not. */
int tune_model_same_labels(const struct tune_model *other, const struct tune_model *m, struct tune_model_labels *labels);

/* tune_model_forward - *hidden [N,C]: the final norm's output, the model's until the next forward.
 * The batch is
 * copied: its arrays may change afterwards. -1: an id or label outside the vocabulary (row, position), a batch larger than
 * reserved, positions or starts that are none. */
int tune_model_forward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden);

/* tune_model_infer - the same, and adapters drop nothing: for evaluation, logits, proofs. No backward follows it.
 * tune_model_set_step - steps done so far, of a run that goes on: what adapters drop is a function of their seed, the step that
 * tune_model_zero_grad began, the forward pass in it, layer, product, row and channel. */
int tune_model_infer(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden);
void tune_model_set_step(struct tune_model *m, int64_t step);

/* tune_model_infer_merged - tune_model_infer without adapters: the matrices that have one are what merged gives (weights.h), of
 * which some rows at a time are on the device. */
int tune_model_infer_merged(struct tune_model *m, const struct tune_batch *batch, const struct tune_weights_source *merged,
                            struct tune_tensor **hidden);

/* tune_model_backward - add the gradients of the batch last put through forward; dhidden [N,C] is overwritten. */
int tune_model_backward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor *dhidden);

/* tune_model_logits - logits [rows,V] F32 of the given rows (0..N-1) of hidden, to host memory. For generation, tests and
 * people's own losses; training never makes them all. */
int tune_model_logits(struct tune_model *m, const struct tune_tensor *hidden, const int32_t *rows, int count,
                      float *logits);

/* tune_model_load_seconds - what reading the folder took. */
double tune_model_load_seconds(const struct tune_model *m);

/* Getters of other components ask these too.
 * tune_get_model_config - find the folder that --model names (into folder, TUNE_PATH_MAX bytes) and read its config.json. -1 also
 * where --max-length is above the model's context.
 * tune_get_model_folder - find the folder, and check that its config.json fits tok: cheap, before the weights are read.
 * tune_get_model_use - what tune_model_reserve shall reserve (--activation-checkpointing). */
int tune_get_model_folder(const struct tune_flags *flags, const struct tune_tokenizer *tok, char *folder);
int tune_get_model_config(const struct tune_flags *flags, char *folder, struct tune_model_config *config);
int tune_get_model_use(const struct tune_flags *flags);

/* tune_get_model - by --model, --dtype, --batch-size, --max-length, --activation-checkpointing; ready to train. tok's ids must
 * all be in its vocabulary. */
struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok);

/* tune_get_second_model - another model for the same batches (a teacher, a reference): frozen, for tune_model_infer only. model:
 * as --model's value. The memory plan does not count it. */
struct tune_model *tune_get_second_model(const struct tune_flags *flags, const char *model, struct tune_device *dev,
                                         const struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
