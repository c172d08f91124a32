/* nf4.h - 4-bit NormalFloat (NF4), the storage of frozen weights: 4 bits for each weight and 1/8
 * bit for scales.
 *
 *     weights     blocks of 64 along the flattened tensor: the nearest of 16 levels,
 *                 times the block's largest magnitude (absmax)
 *     absmax      blocks of 256, minus the mean of all: the nearest of 256 levels,
 *                 times that block's largest magnitude
 *
 * Source: Dettmers et al. 2023, section 3 (double quantization), with the levels that its authors
 * publish. Codes, scales and values equal those of bitsandbytes bit for bit, also in a last block
 * that is not full. One difference: the mean is summed in float64 here. Theirs is summed in
 * float32, in an order that depends on the machine.
 *
 * The caller provides the memory:
 *
 *     struct tune_nf4_writer w;
 *     tune_nf4_begin(&w, "q_proj.weight", memory, n);      tune_nf4_bytes(n) bytes, aligned to 64
 *     tune_nf4_write(&w, numbers, some);                   once for each piece
 *     tune_nf4_finish(&w, &q);
 *     tune_nf4_read(&q, 0, n, numbers); */
#ifndef TUNE_CORE_NF4_H
#define TUNE_CORE_NF4_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* weights in a block; absmax values in a block */
enum { TUNE_NF4_BLOCK = 64, TUNE_NF4_BLOCKS = 256 };

/* A quantized tensor on the host. A matrix may consist of several parts, such as q, k and v of a
 * layer. Each part is quantized by itself and has whole rows. `below` is the next part. */
struct tune_nf4 {
    const uint8_t *codes;         /* two weights in a byte, the first in the high half */
    const uint8_t *absmax;        /* quantized absmax of each block of weights */
    const float *absmax2;         /* absmax of each 256 of those */
    float offset;                 /* mean that was subtracted from absmax */
    int64_t count;                /* number of weights */
    const struct tune_nf4 *below; /* NULL: the last part */
};

/* The same on a device: one block of memory, with the layout of tune_nf4_begin. */
struct tune_nf4_part {
    tune_address memory;
    float offset;
    int64_t count;
    const struct tune_nf4_part *below;
};
enum { TUNE_NF4_PARTS = 8 }; /* most parts of a matrix */

struct tune_nf4_writer {
    const char *name; /* for messages; borrowed until finish */
    uint8_t *codes, *absmax;
    float *absmax2, *magnitudes;
    int64_t count, at, held;     /* at: start of the next block */
    float block[TUNE_NF4_BLOCK]; /* weights of the block so far; `held` of them */
};

/* tune_nf4_bytes - bytes for count weights, a multiple of 64. -1 with an error: too many. */
int64_t tune_nf4_bytes(int64_t count);

/* Offsets of the three arrays in that memory, in bytes. */
struct tune_nf4_layout {
    int64_t codes, absmax, absmax2;
};
struct tune_nf4_layout tune_nf4_layout(int64_t count);

/* tune_nf4_at - the view of a quantized tensor of count weights in such memory. below is NULL. */
struct tune_nf4 tune_nf4_at(const void *memory, int64_t count, float offset);

/* tune_nf4_begin - start to quantize count weights into memory. It allocates 4 bytes for each block
 * until finish.
 * tune_nf4_write - add the next n weights. -1 with an error that names the tensor: a value is not
 * finite, or there are too many. The writer is then finished.
 * tune_nf4_finish - quantize the scales. *q is a view of the memory, with below NULL. -1 with an
 * error: weights are missing.
 * tune_nf4_abandon - free the writer instead of finishing. It may also follow finish, or take a
 * zeroed writer. */
int tune_nf4_begin(struct tune_nf4_writer *w, const char *name, void *memory, int64_t count);
int tune_nf4_write(struct tune_nf4_writer *w, const float *from, int64_t n);
int tune_nf4_finish(struct tune_nf4_writer *w, struct tune_nf4 *q);
void tune_nf4_abandon(struct tune_nf4_writer *w);

/* tune_nf4_read - dequantize weights [at, at + n) of q and the parts below it to out. 0, or -1 with
 * an error if some do not exist; out then has those that do. */
int tune_nf4_read(const struct tune_nf4 *q, int64_t at, int64_t n, float *out);

/* tune_nf4_matrix - the tensor [rows, columns] of first and the parts below it. first must outlive
 * the tensor.
 *
 * tune_nf4_is_matrix - true for a 2-d NF4 tensor with at most TUNE_NF4_PARTS parts of whole rows
 * that add up to its shape. */
struct tune_tensor tune_nf4_matrix(const struct tune_nf4_part *first, int64_t rows,
                                   int64_t columns);
bool tune_nf4_is_matrix(const struct tune_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
