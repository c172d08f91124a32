/* weights.h - the weight files of a Hugging Face folder: one model.safetensors, or shards with an
 * index. */
#ifndef TUNE_WEIGHTS_H
#define TUNE_WEIGHTS_H

#include "core/nf4.h"
#include "core/tensor.h"
#include "models/parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_weights;

/* tune_weights_open - map the folder's files and check every header. NULL with an error: no weights
 * (it names what it looked for), or an index that names a file outside the folder. Also a tensor
 * that is in two files with other numbers.
 * tune_weights_close - unmap them; NULL is fine. */
struct tune_weights *tune_weights_open(const char *folder);
void tune_weights_close(struct tune_weights *w);

/* tune_weights_find - the tensor with that name; NULL if there is none. A file may have the names
 * without "model." before them, or "model.lm_head.weight". A view, valid until close. */
const struct tune_array *tune_weights_find(const struct tune_weights *w, const char *name);

/* tune_weights_check - check that the files hold the base's tensors, in their shapes, as F32, F16,
 * BF16 or F64. Sets read_dtype of each row. rotary_emb.inv_freq and a tied model's lm_head.weight
 * are ignored. A tied model may be stored as lm_head.weight alone. -1 with an error that names the
 * tensor; also if a part of the model has a tensor that the base has not.
 * tune_weights_remark - after it, add to the config's remarks which other tensors are not read,
 * such as a classifier's.
 * tune_weights_remarks - read a folder's config with all its remarks.
 * tune_weights_own_head - true if the folder has an embedding and an output projection, and their
 * numbers differ. */
int tune_weights_check(struct tune_weights *w, struct tune_parameters *p, bool tied);
void tune_weights_remark(const struct tune_weights *w, struct tune_model_config *c);
int tune_weights_remarks(const char *folder, struct tune_model_config *c);
bool tune_weights_own_head(const char *folder);

/* tune_weights_kept - the smallest storage that keeps every number of the folder's matrices: BF16
 * if all are BF16, else F32. It reads headers only. -1 with an error. */
int tune_weights_kept(const char *folder, enum tune_dtype *dtype);

/* A source of a parameter's numbers: read writes count of them, from element at, as float32 into
 * out. 0, or -1 with an error. */
struct tune_weights_source {
    int (*read)(void *context, const struct tune_parameter *p, int64_t at, int64_t count,
                float *out);
    void *context;
};

/* tune_weights_each - read all numbers of p in order, in pieces, and hand each piece to put. buffer
 * holds min(TUNE_PIECE, p->count) numbers. -1 if read or put fail. */
enum { TUNE_PIECE = 1 << 20 };
int tune_weights_each(const struct tune_weights_source *source, const struct tune_parameter *p,
                      float *buffer,
                      int (*put)(void *context, const struct tune_parameter *p, int64_t at,
                                 int64_t n, const float *x), void *context);

/* tune_weights_nf4 - quantize all numbers of p into memory of tune_nf4_bytes(p->count) bytes; *q
 * views it. buffer as above. */
int tune_weights_nf4(const struct tune_weights_source *source, const struct tune_parameter *p,
                     float *buffer, void *memory,
                     struct tune_nf4 *q);

/* tune_weights_files - a source that reads the files of w, which must stay open. */
struct tune_weights_source tune_weights_files(const struct tune_weights *w);

/* More rows of the vocabulary than base has. In the embedding and the output projection, row number
 * rows and those after it are the mean of the rows before.
 *     struct tune_weights_grown g = {tune_weights_files(w), rows, columns, .host_mean = room};
 *
 * tune_weights_grown - the source that reads them. g and its members must stay. */
struct tune_weights_grown {
    struct tune_weights_source base;
    int64_t rows, columns;           /* that base has */
    float *host_mean;                /* [columns] working memory */
    const struct tune_parameter *of; /* whose mean it is; NULL: nobody's yet */
};
struct tune_weights_source tune_weights_grown(struct tune_weights_grown *g);

/* tune_weights_write - write the base's weights into a folder, without adapters: one
 * model.safetensors, or shards of at most shard_bytes (0: 5 GB) with an index. Tensors have the
 * order of transformers. dtype of a row: as, or its read_dtype if as is TUNE_AS_READ. */
int tune_weights_write(const char *folder, const struct tune_parameters *p, enum tune_dtype as,
                       int64_t shard_bytes,
                       const struct tune_weights_source *source);

#ifdef __cplusplus
}
#endif
#endif
