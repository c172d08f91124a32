/* nf4.h - 4-bit NormalFloat: what frozen weights are kept in, half a byte a number and an eighth of a bit for scales.
 *
 *     numbers     64 a block, along the flattened tensor; each the nearest of 16 levels, times the block's largest magnitude
 *     magnitudes  256 a block, less the mean of all; each the nearest of 256 levels, times that block's largest magnitude
 *
 * Source: Dettmers et al. 2023, section 3 (double quantisation); the levels are those its authors publish, and codes, scales
 * and values are theirs bit for bit, of a last block that is not full too. (But for the mean: theirs is summed in float32, in an
 * order that depends on the machine; ours in float64.) The memory is the caller's:
 *
 *     struct tune_nf4_writer w;
 *     tune_nf4_begin(&w, "q_proj.weight", memory, n);      tune_nf4_bytes(n) of them, 64-byte aligned
 *     tune_nf4_write(&w, numbers, some);                   as often as there are pieces
 *     tune_nf4_finish(&w, &q);
 *     tune_nf4_read(&q, 0, n, numbers); */
#ifndef TUNE_CORE_NF4_H
#define TUNE_CORE_NF4_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_NF4_BLOCK = 64, TUNE_NF4_BLOCKS = 256 }; /* numbers a block; magnitudes a block */

/* A quantised tensor on the host. A matrix may be several, one under another, each quantised by itself (q, k and v of a layer):
 * below says which comes next, and each has whole rows. */
struct tune_nf4 {
    const uint8_t *codes;         /* two numbers a byte, the first in the high half */
    const uint8_t *absmax;        /* of each block, a level */
    const float *absmax2;         /* of each 256 of those */
    float offset;                 /* the magnitudes' mean */
    int64_t count;                /* numbers */
    const struct tune_nf4 *below; /* NULL: the last */
};

/* The same on a device: one block of memory, as tune_nf4_begin lays it out. */
struct tune_nf4_part {
    tune_address memory;
    float offset;
    int64_t count;
    const struct tune_nf4_part *below;
};
enum { TUNE_NF4_PARTS = 8 }; /* of one matrix at most */

struct tune_nf4_writer {
    const char *name; /* for messages; the caller's until finish */
    uint8_t *codes, *absmax;
    float *absmax2, *magnitudes;
    int64_t count, at, held;     /* at: begin of the next block */
    float block[TUNE_NF4_BLOCK]; /* its numbers that have come, held of them */
};

/* tune_nf4_bytes - what count numbers take, a multiple of 64; -1 with an error: more than can be. */
int64_t tune_nf4_bytes(int64_t count);

/* Where its three pieces begin in that memory, bytes. */
struct tune_nf4_layout {
    int64_t codes, absmax, absmax2;
};
struct tune_nf4_layout tune_nf4_layout(int64_t count);

/* tune_nf4_at - the view of a quantised tensor of count numbers in such memory; below NULL. */
struct tune_nf4 tune_nf4_at(const void *memory, int64_t count, float offset);

/* tune_nf4_begin - write count numbers to memory of tune_nf4_bytes(count). It holds 4 bytes a block until finish.
 * tune_nf4_write - the next n of them. 0, or -1 with an error that names the tensor: not a finite number, or too many; the writer
 * is then done.
 * tune_nf4_finish - scales are quantised; *q views the memory, below NULL. -1 with an error: numbers are missing.
 * tune_nf4_abandon - instead of finish; also after it, or of a zeroed one: nothing happens. */
int tune_nf4_begin(struct tune_nf4_writer *w, const char *name, void *memory, int64_t count);
int tune_nf4_write(struct tune_nf4_writer *w, const float *from, int64_t n);
int tune_nf4_finish(struct tune_nf4_writer *w, struct tune_nf4 *q);
void tune_nf4_abandon(struct tune_nf4_writer *w);

/* tune_nf4_read - numbers [at, at + n) of q and what is below, which go on where q ends. -1 with an error where not all are there;
 * out then has those that are. */
int tune_nf4_read(const struct tune_nf4 *q, int64_t at, int64_t n, float *out);

/* tune_nf4_matrix - the tensor [rows, columns] of first and what is below; first stays where it is as long as the tensor is used.
 * tune_nf4_is_matrix - a 2-d NF4 tensor whose parts have whole rows, make up its shape, and are at most TUNE_NF4_PARTS. */
struct tune_tensor tune_nf4_matrix(const struct tune_nf4_part *first, int64_t rows, int64_t columns);
bool tune_nf4_is_matrix(const struct tune_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
