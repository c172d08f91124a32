/* nf4.h - 4-bit NormalFloat, the storage of frozen weights in QLoRA: 4.13 bits per number.
 *
 *     numbers     in blocks of 64: the nearest of 16 levels, times the block's largest magnitude
 *     magnitudes  in blocks of 256, less the mean of all: the nearest of 256 levels, times that
 *                 block's largest magnitude
 *
 * Source: Dettmers et al. 2023, section 3 (double quantization). Codes, scales and values are bit
 * for bit those of the authors' library, for a last block that is not full too. One thing differs:
 * their mean is a float32 sum whose order depends on the machine, ours is a float64 sum. The caller
 * owns the memory:
 *
 *     struct tune_nf4_writer w;
 *     tune_nf4_begin(&w, "q_proj.weight", memory, n);   tune_nf4_bytes(n), 64-byte aligned
 *     tune_nf4_write(&w, numbers, some);                any number of times
 *     tune_nf4_finish(&w, &q);
 *     tune_nf4_read(&q, 0, n, numbers); */
#ifndef TUNE_CORE_NF4_H
#define TUNE_CORE_NF4_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_NF4_BLOCK = 64, TUNE_NF4_BLOCKS = 256 }; /* numbers in a block; magnitudes in a block */

/* A quantized tensor on the host. A matrix may consist of several, one below the other, each
 * quantized by itself. The q, k and v matrices of a layer do so. Each has whole rows; below points
 * to the next one. */
struct tune_nf4 {
    const uint8_t *codes;         /* two numbers per byte, the first in the high half */
    const uint8_t *absmax;        /* for each block, the level of its magnitude */
    const float *absmax2;         /* for each 256 blocks, their largest magnitude */
    float offset;                 /* mean of the magnitudes */
    int64_t count;                /* numbers */
    const struct tune_nf4 *below; /* NULL: this is the last one */
};

/* The same on a device: one allocation with the layout of tune_nf4_begin. */
struct tune_nf4_part {
    tune_address memory;
    float offset;
    int64_t count;
    const struct tune_nf4_part *below;
};
enum { TUNE_NF4_PARTS = 8 }; /* parts of one matrix, at most */

struct tune_nf4_writer {
    const char *name; /* for messages; must stay valid until finish */
    uint8_t *codes, *absmax;
    float *absmax2, *magnitudes;
    int64_t count, at, held;     /* at: first number of the current block */
    float block[TUNE_NF4_BLOCK]; /* the current block; held of its numbers are there */
};

/* tune_nf4_bytes - bytes that count numbers take, a multiple of 64. -1 with an error: too many. */
int64_t tune_nf4_bytes(int64_t count);

/* tune_nf4_layout - byte offsets of the three pieces in that memory. */
struct tune_nf4_layout {
    int64_t codes, absmax, absmax2;
};
struct tune_nf4_layout tune_nf4_layout(int64_t count);

/* tune_nf4_at - a view of a quantized tensor of count numbers in such memory. below is NULL. */
struct tune_nf4 tune_nf4_at(const void *memory, int64_t count, float offset);

/* tune_nf4_begin - start to write count numbers to memory, which has tune_nf4_bytes(count) bytes.
 * Until finish, the writer also holds 4 bytes for each block.
 * tune_nf4_write - quantize the next n numbers. -1 with an error that names the tensor: a number is
 * not finite, or there are too many. The writer is then done.
 * tune_nf4_finish - quantize the scales. *q views the memory, with below NULL. -1 with an error:
 * numbers are missing.
 * tune_nf4_abandon - free the writer without finishing. After finish, or for a zeroed writer, it
 * does nothing. */
int tune_nf4_begin(struct tune_nf4_writer *w, const char *name, void *memory, int64_t count);
int tune_nf4_write(struct tune_nf4_writer *w, const float *from, int64_t n);
int tune_nf4_finish(struct tune_nf4_writer *w, struct tune_nf4 *q);
void tune_nf4_abandon(struct tune_nf4_writer *w);

/* tune_nf4_read - dequantize numbers [at, at + n) into out. Numbers after the end of q come from
 * q->below. -1 with an error if fewer are there; out then has those. */
int tune_nf4_read(const struct tune_nf4 *q, int64_t at, int64_t n, float *out);

/* tune_nf4_matrix - a tensor [rows, columns] over first and the parts below it. *first must outlive
 * the tensor.
 * tune_nf4_is_matrix - whether t is a 2-d NF4 tensor of at most TUNE_NF4_PARTS parts, each with
 * whole rows, that together have its shape. */
struct tune_tensor tune_nf4_matrix(const struct tune_nf4_part *first, int64_t rows,
                                   int64_t columns);
bool tune_nf4_is_matrix(const struct tune_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
