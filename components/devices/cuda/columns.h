/* columns.h - sums over the rows of a matrix, for gradients of parameters. The order of additions
 * depends on the shape alone.
 *
 *     rows  |  slice 0  |  a block has 32 columns of a slice; its 8 rows of threads take every
 *           |  slice 1  |  8th row, then are added in order. A second kernel adds the slices.
 *             columns -> */
#ifndef TUNE_CUDA_COLUMNS_H
#define TUNE_CUDA_COLUMNS_H

#include "devices/cuda/cuda.h"

constexpr int TUNE_CUDA_COLUMNS = 32, TUNE_CUDA_ROWS = 8;

/* sums [slices, columns] of terms.of(row, column). */
template <class F>
__global__ void __launch_bounds__(TUNE_CUDA_COLUMNS *TUNE_CUDA_ROWS)
    tune_cuda_slice_sums(float *sums, F terms, int64_t rows, int64_t columns, int64_t slice)
{
    SHARED(float, parts, [TUNE_CUDA_ROWS][TUNE_CUDA_COLUMNS]);
    int x = static_cast<int>(threadIdx.x) % TUNE_CUDA_COLUMNS;
    int y = static_cast<int>(threadIdx.x) / TUNE_CUDA_COLUMNS;
    int64_t c = static_cast<int64_t>(blockIdx.x) * TUNE_CUDA_COLUMNS + x;
    int64_t begin = blockIdx.y * slice, end = min(begin + slice, rows);
    float sum = 0;
    if (c < columns)
        for (int64_t n = begin + y; n < end; n += TUNE_CUDA_ROWS)
            sum += terms.of(n, c);
    parts[y][x] = sum;
    __syncthreads();
    if (y > 0 || c >= columns)
        return;
    for (int i = 1; i < TUNE_CUDA_ROWS; i++)
        sum += parts[i][x];
    sums[blockIdx.y * columns + c] = sum;
}

/* out[c] += terms.factor(c) * the sum of the slices. */
template <class F>
__global__ void __launch_bounds__(TUNE_CUDA_THREADS)
    tune_cuda_add_slices(float *out, const float *sums, F terms, int64_t slices, int64_t columns)
{
    int64_t c = tune_cuda_first();
    if (c >= columns)
        return;
    float sum = 0;
    for (int64_t s = 0; s < slices; s++)
        sum += sums[s * columns + c];
    out[c] += terms.factor(c) * sum;
}

/* tune_cuda_add_columns - out[c] += factor(c) * (sum over rows of of(n, c)). terms has these two
 * functions; it is copied to the GPU. */
static inline int64_t tune_cuda_slices(int64_t rows, int64_t columns)
{
    int64_t blocks = (columns + TUNE_CUDA_COLUMNS - 1) / TUNE_CUDA_COLUMNS;
    int64_t slices = (TUNE_CUDA_COLUMN_BLOCKS + blocks - 1) / blocks, most = (rows + 63) / 64;
    return slices < most ? slices : most;
}

template <class F>
static int tune_cuda_add_columns(struct tune_device *dev, struct tune_tensor *out, F terms,
                                 int64_t rows, int64_t columns)
{
    if (rows == 0 || columns == 0)
        return 0;
    int64_t slices = tune_cuda_slices(rows, columns), slice = (rows + slices - 1) / slices;
    float *sums = tune_cuda_scratch(dev, slices * columns);
    if (!sums)
        return -1;
    dim3 grid(static_cast<unsigned>((columns + TUNE_CUDA_COLUMNS - 1) / TUNE_CUDA_COLUMNS),
              static_cast<unsigned>(slices));
    LAUNCH(tune_cuda_slice_sums<F>, grid, TUNE_CUDA_COLUMNS * TUNE_CUDA_ROWS, 0,
           tune_cuda_of(dev)->stream, sums, terms, rows, columns, slice);
    LAUNCH(tune_cuda_add_slices<F>,
           static_cast<unsigned>((columns + TUNE_CUDA_THREADS - 1) / TUNE_CUDA_THREADS),
           TUNE_CUDA_THREADS, 0, tune_cuda_of(dev)->stream, tune_cuda_data<float>(out), sums, terms,
           slices, columns);
    return tune_cuda_queued(dev);
}

#endif
