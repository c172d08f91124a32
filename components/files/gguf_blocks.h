/* gguf_blocks.h - rows of float32 as the blocks that a .gguf file holds.
 *
 * Each block stands for some adjacent numbers of a row: one or two scales, and small integers. With
 * d, m for scales as F16, s, t for small integer scales and q for the integers:
 *
 *     Q8_0   32 numbers, 34 bytes: d q                      q of 8 bits
 *     Q4_0   32 numbers, 18 bytes: d (q - 8)                q of 4 bits
 *     Q5_0   32 numbers, 22 bytes: d (q - 16)               q of 5 bits
 *     Q5_1   32 numbers, 24 bytes: d q + m                  q of 5 bits
 *     Q4_K   256 numbers, 144 bytes: d s q - m t            s, t of 6 bits for each 32 numbers
 *     Q5_K   256 numbers, 176 bytes: d s q - m t            the same with q of 5 bits
 *     Q6_K   256 numbers, 210 bytes: d s (q - 32)           s of 8 bits for each 16 numbers
 *
 * The bits are those of ggml's quantisation without an importance matrix. So the Makefile compiles
 * gguf_blocks.c without fused multiply-adds. Source: ggml-quants.c of ggml. */
#ifndef TUNE_FILES_GGUF_BLOCKS_H
#define TUNE_FILES_GGUF_BLOCKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tune_gguf_block {
    TUNE_GGUF_F32, TUNE_GGUF_F16, TUNE_GGUF_BF16, TUNE_GGUF_Q8_0, TUNE_GGUF_Q4_0, TUNE_GGUF_Q5_0,
    TUNE_GGUF_Q5_1, TUNE_GGUF_Q6_K, TUNE_GGUF_Q5_K, TUNE_GGUF_Q4_K,
    TUNE_GGUF_BLOCKS /* the number of kinds */
};

/* A kind of block: ggml's name and number of it, the numbers that it stands for, and its bytes. */
struct tune_gguf_format {
    const char *name;
    uint32_t id;
    int numbers, bytes;
};

/* tune_gguf_format - the facts of a kind.
 * tune_gguf_row_bytes - bytes of a row of so many numbers; -1: the blocks do not divide it,
 * or no file could hold it.
 * tune_gguf_rows - write rows of columns numbers to out, as blocks. Several threads share the rows.
 * 0; -1, without an error text: a number is not finite, or too large for a scale in F16. F32, F16
 * and BF16 take any number. */
const struct tune_gguf_format *tune_gguf_format(enum tune_gguf_block block);
int64_t tune_gguf_row_bytes(enum tune_gguf_block block, int64_t columns);
int tune_gguf_rows(enum tune_gguf_block block, const float *x, int64_t rows, int64_t columns,
                   void *out);

#ifdef __cplusplus
}
#endif
#endif
