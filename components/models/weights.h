/* weights.h - weight files of a Hugging Face folder: model.safetensors, or shards with an index. */
#ifndef TUNE_WEIGHTS_H
#define TUNE_WEIGHTS_H

#include "core/nf4.h"
#include "core/tensor.h"
#include "models/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_weights;

/* tune_weights_open - map the folder's files and check every header. NULL with an error: no weight
 * files (names those it looked for). NULL also if the index names a file outside the folder, or if
 * a tensor is missing from its file or occurs in two files. */
struct tune_weights *tune_weights_open(const char *folder);
void tune_weights_close(struct tune_weights *w);

/* tune_weights_find - the tensor of that name, or NULL. It is a view, valid until
 * tune_weights_close. */
const struct tune_array *tune_weights_find(const struct tune_weights *w, const char *name);

/* tune_weights_check - check that the files hold exactly the base's tensors, in their shapes, as
 * F32, F16 or BF16. Sets each row's read_dtype. It ignores rotary_emb.inv_freq, and lm_head.weight
 * of a tied model. -1 with an error that names the tensor. */
int tune_weights_check(const struct tune_weights *w, struct tune_parameters *p, bool tied);

/* A source of parameter values. read copies count values from element at to out, as float32. 0, or
 * -1 with an error. */
struct tune_weights_source {
    int (*read)(void *context, const struct tune_parameter *p, int64_t at, int64_t count,
                float *out);
    void *context;
};

/* tune_weights_each - read all values of p in order, in pieces. put receives n values from element
 * at. room holds min(TUNE_PIECE, p->count) floats. -1 as soon as read or put fails. */
enum { TUNE_PIECE = 1 << 20 };
int tune_weights_each(const struct tune_weights_source *source, const struct tune_parameter *p,
    float *room, int (*put)(void *context, const struct tune_parameter *p, int64_t at, int64_t n,
    const float *x), void *context);

/* tune_weights_nf4 - quantize all values of p to NF4 into memory (tune_nf4_bytes(p->count) bytes).
 * *q is a view of it. room as for tune_weights_each. */
int tune_weights_nf4(const struct tune_weights_source *source, const struct tune_parameter *p,
                     float *room, void *memory, struct tune_nf4 *q);

/* tune_weights_files - a source that reads the files of w. w must stay open. */
struct tune_weights_source tune_weights_files(const struct tune_weights *w);

/* tune_weights_write - write a folder's base weights, without adapters: one model.safetensors, or
 * shards of at most shard_bytes (0: 5 GB) with an index. Tensors are in the order of transformers.
 * as: dtype of all tensors, or TUNE_DTYPES for each row's read_dtype. 0, or -1 with an error. */
int tune_weights_write(const char *folder, const struct tune_parameters *p, enum tune_dtype as,
                       int64_t shard_bytes, const struct tune_weights_source *source);

#ifdef __cplusplus
}
#endif
#endif
