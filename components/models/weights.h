/* weights.h - the weight files of a Hugging Face folder: one model.safetensors, or shards with an index. */
#ifndef TUNE_WEIGHTS_H
#define TUNE_WEIGHTS_H

#include "core/nf4.h"
#include "core/tensor.h"
#include "models/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_weights;

/* tune_weights_open - map the folder's files and check every header. NULL with an error: no weights (names what was
 * looked for), an index that names a file outside the folder, a tensor that its file does not hold or two files do. */
struct tune_weights *tune_weights_open(const char *folder);
void tune_weights_close(struct tune_weights *w);

/* tune_weights_find - the tensor of that name, NULL if there is none; a view until close. */
const struct tune_array *tune_weights_find(const struct tune_weights *w, const char *name);

/* tune_weights_check - the files hold exactly the base's tensors in their shapes, as F32, F16 or BF16; sets each row's
 * read_dtype. Ignored: rotary_emb.inv_freq, and lm_head.weight of a tied model. -1 names the tensor. */
int tune_weights_check(const struct tune_weights *w, struct tune_parameters *p, bool tied);

/* Where a parameter's numbers come from: count of them, from element at, as float32 into out. 0, or -1 with an error. */
struct tune_weights_source {
    int (*read)(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out);
    void *context;
};

/* tune_weights_each - all numbers of p in order, in pieces: put gets n of them, from element at. room holds the smaller of
 * TUNE_PIECE and p->count. -1 as soon as read or put say so. */
enum { TUNE_PIECE = 1 << 20 };
int tune_weights_each(const struct tune_weights_source *source, const struct tune_parameter *p, float *room,
                      int (*put)(void *context, const struct tune_parameter *p, int64_t at, int64_t n, const float *x), void *context);

/* tune_weights_nf4 - all numbers of p in NF4 into memory, tune_nf4_bytes(p->count) of it; *q views them. room as above. */
int tune_weights_nf4(const struct tune_weights_source *source, const struct tune_parameter *p, float *room, void *memory,
                     struct tune_nf4 *q);

/* tune_weights_files - the source that reads the files of w, which stays open. */
struct tune_weights_source tune_weights_files(const struct tune_weights *w);

/* tune_weights_write - a folder's weights (the base's, no adapters): one model.safetensors, or shards of at most shard_bytes
 * with an index (0: 5 GB). Tensors lie in the order transformers gives them. dtype of a row: as, or its read_dtype where as is
 * TUNE_DTYPES. */
int tune_weights_write(const char *folder, const struct tune_parameters *p, enum tune_dtype as, int64_t shard_bytes,
                       const struct tune_weights_source *source);

#ifdef __cplusplus
}
#endif
#endif
