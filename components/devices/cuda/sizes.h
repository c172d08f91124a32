/* sizes.h - the memory that the CUDA device takes beside tensors. The device takes it by these
 * functions, and the plan of a run where no GPU is counts by them (plan.c). */
#ifndef TUNE_CUDA_SIZES_H
#define TUNE_CUDA_SIZES_H

#include "devices/device.h"

/* Bytes that cuBLASLt may use; more does not help on any GPU so far. */
static const int64_t TUNE_CUDA_WORKSPACE = (int64_t)32 << 20;

static const int TUNE_CUDA_DECODE_QUERIES = 8; /* most queries of a row whose keys are split */
static const int TUNE_CUDA_PIECES = 32;     /* most pieces of a row's keys; */
static const int TUNE_CUDA_PIECE = 64;      /* ... fewest keys of a piece that is not the last */

/* Blocks of a sum over rows (columns.h), and of the squares of all gradients (step.cu). */
static const int64_t TUNE_CUDA_COLUMN_BLOCKS = 512;
static const int TUNE_CUDA_PARTS = 1024;

static inline int64_t tune_cuda_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Sums of a head's queries, up to those of the next head: whole tiles of columns. */
#define TUNE_CUDA_SUMS_STRIDE(T) (((T) + 63) / 64 * 64)

/* tune_cuda_pieces - pieces of so many keys.
 * tune_cuda_found_floats - what these pieces of all queries find (decode_attention.cu).
 * tune_cuda_attention_floats - the floats of scratch that attentions up to this size take: B rows
 * of T keys. queries: the most queries of a row. training: backward runs too.
 * tune_cuda_column_most - sums over rows of so many columns, at most (columns.h). */
static inline int64_t tune_cuda_pieces(int64_t keys)
{
    int64_t pieces = (keys + TUNE_CUDA_PIECE - 1) / TUNE_CUDA_PIECE;
    return pieces < 1 ? 1 : pieces < TUNE_CUDA_PIECES ? pieces : TUNE_CUDA_PIECES;
}

static inline int64_t tune_cuda_found_floats(int64_t B, int64_t T, int64_t keys, int64_t H,
                                             int64_t D)
{
    return B * T * H * tune_cuda_pieces(keys) * (D + 2);
}

static inline int64_t tune_cuda_attention_floats(int64_t B, int64_t queries, int64_t T, int64_t H,
                                                 int64_t D, bool training)
{
    int64_t decoded = queries < TUNE_CUDA_DECODE_QUERIES ? queries : TUNE_CUDA_DECODE_QUERIES;
    int64_t found = tune_cuda_found_floats(B, decoded, T, H, D);
    return tune_cuda_most(found, training ? B * H * TUNE_CUDA_SUMS_STRIDE(T) * 2 : 0);
}

static inline int64_t tune_cuda_column_most(int64_t columns)
{
    return 32 * TUNE_CUDA_COLUMN_BLOCKS + columns;
}

/* tune_cuda_logits_bytes - the logits that a GPU of so much memory holds at a time: 1/32 of it,
 * rounded down to a power of two. So GPUs of nearly one size hold as many. At most 1 GiB: then a
 * product has enough rows for any GPU. That is also the answer for an unknown memory, 0. Not
 * measured yet. */
static inline int64_t tune_cuda_logits_bytes(int64_t memory)
{
    int64_t bytes = (int64_t)64 << 20, most = (int64_t)1 << 30;
    while (bytes < most && (2 * bytes <= memory / 32 || memory == 0))
        bytes *= 2;
    return bytes;
}

/* tune_cuda_scratch_floats - the working memory that all operations up to these sizes share. */
static inline int64_t tune_cuda_scratch_floats(const struct tune_max_sizes *l)
{
    int64_t most = tune_cuda_attention_floats(l->B, l->T, l->T, l->H, l->D, l->training);
    most = tune_cuda_most(most, tune_cuda_column_most(l->width));
    most = tune_cuda_most(most, 2 * (int64_t)l->B * l->T); /* of the loss: float64 */
    most = tune_cuda_most(most, 2 * (TUNE_CUDA_PARTS + 1));
    return tune_cuda_most(most, l->copies / 4);
}

/* tune_cuda_reserve_bytes - all that tune_device_reserve takes. */
static inline int64_t tune_cuda_reserve_bytes(const struct tune_max_sizes *l)
{
    return tune_cuda_scratch_floats(l) * 4 + TUNE_CUDA_WORKSPACE;
}

#endif
