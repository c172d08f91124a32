/* plain_sum.h - the bandwidth of memory, as a plain sum reaches it; benches hold their figures against
 * it. */
#ifndef TUNE_PLAIN_SUM_H
#define TUNE_PLAIN_SUM_H

#include "core/clock.h"
#include "devices/device.h"

/* Seconds of a plain sum over n floats: pieces that threads take in turn. */
static inline double plain_sum(const struct tune_device *dev, const float *x, int64_t n)
{
    enum { PIECE = 1 << 16 };
    double begin = tune_clock_s();
    float all = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(dev->threads) reduction(+ : all)
    for (int64_t p = 0; p < n; p += PIECE) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = p; i < p + PIECE; i++)
            sum += x[i];
        all += sum;
    }
    volatile float kept = all;
    (void)kept;
    return tune_clock_s() - begin;
}

#endif
