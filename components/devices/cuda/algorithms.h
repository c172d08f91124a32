/* algorithms.h - which of cuBLASLt's algorithms computes a product: a choice by timing, kept in the
 * user's cache folder. Private to products.cu.
 *
 * Two algorithms may round differently, so the choice decides bits of results. The file keeps it:
 * the same GPU, driver and cuBLASLt choose the same until somebody deletes the file. A choice that
 * cannot be kept is not made by timing; then cuBLASLt's first guess counts, which is always the
 * same. */
#ifndef TUNE_CUDA_ALGORITHMS_H
#define TUNE_CUDA_ALGORITHMS_H

#include <cublasLt.h>

#include "devices/cuda/cuda.h"
#include "files/file.h"

/* A kind of product has these sizes. No padding, since it is compared as bytes. */
struct tune_cuda_kind {
    int64_t rows, columns, depth, a_step, b_step, c_step; /* of c; elements between rows */
    int32_t a_dtype, c_dtype, trans_a, trans_b;                     /* b has a's */
    uint32_t aligned[4]; /* bytes: of cuBLASLt's A, which is b, of its B, which is a, of C, D */
};
static_assert(sizeof(struct tune_cuda_kind) == 6 * 8 + 4 * 4 + 4 * 4, "tune_cuda_kind has padding");

/* tune_cuda_algorithms_path - the file for this GPU, driver and cuBLASLt. Its folder is
 * $TUNE_CUDA_ALGORITHMS, else tune.c below $XDG_CACHE_HOME or ~/.cache. It is made. path is "" if
 * TUNE_CUDA_ALGORITHMS is "off", or if the folder cannot be used; dev->warning says why. -1 with an
 * error of CUDA.
 * tune_cuda_algorithms_unlike - move the candidates that the file tells apart to the front. Returns
 * their number.
 * tune_cuda_algorithms_kept - the candidate that the file names for this kind; -1: none. Lines that
 * are damaged, or name no candidate, do not count.
 * tune_cuda_algorithms_keep - write a choice to the file, and drop what does not count. Returns the
 * candidate that the file names afterwards: the choice of another process, if it was first. -1: it
 * could not be written. */
int tune_cuda_algorithms_path(struct tune_device *dev, char path[TUNE_PATH_MAX]);
int tune_cuda_algorithms_unlike(cublasLtMatmulHeuristicResult_t *candidates, int count);
int tune_cuda_algorithms_kept(const char *path, const struct tune_cuda_kind *kind,
                              const cublasLtMatmulHeuristicResult_t *candidates, int count);
int tune_cuda_algorithms_keep(const char *path, const struct tune_cuda_kind *kind,
                              const cublasLtMatmulHeuristicResult_t *candidates, int count,
                              int best, double microseconds);

#endif
