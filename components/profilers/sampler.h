/* sampler.h - sample the machine four times a second during a run, in a thread.
 *
 * The sampler does not know when the first step begins; the caller asks for averages over a time
 * span later. So it stores integrals over spans, at least 128 and at most 256. The spans grow
 * longer as the run does. All memory is allocated at the start. A sample takes about 20
 * microseconds, more with GPUs.
 *
 *     struct tune_sampler *s = tune_sampler_new(NULL);
 *     ... the run ...
 *     tune_sampler_read(s, begin_s, end_s, &seen);
 *     tune_sampler_free(s); */
#ifndef TUNE_PROFILERS_SAMPLER_H
#define TUNE_PROFILERS_SAMPLER_H

#include "profilers/gpus.h"

struct tune_sampler;

/* Averages over time, over all GPUs. NaN: unknown. */
struct tune_sampler_spread {
    double min, avg, max;
};

struct tune_sampler_seen {
    double memory; /* % of the machine's memory that is not available, average over time */
    int gpus;                      /* number of GPUs; the members below describe them */
    struct tune_sampler_spread gpu_compute, gpu_memory, gpu_watts, gpu_power,
        gpu_clock; /* see gpus.h */
    double gpu_memory_peak;        /* highest value of any GPU at any time */
};

enum { TUNE_SAMPLER_STACK = 512 << 10 }; /* bytes, stack of its thread */

/* tune_sampler_new - start sampling the machine and, with g, GPUs. The sampler owns g, which may be
 * NULL. NULL with an error, with g closed: no thread, no memory.
 *
 * tune_sampler_read - averages from from_s to to_s (tune_clock_s) of the samples since the start.
 * If to_s is not above from_s, or the span ended before the start, it gives the current values. */
struct tune_sampler *tune_sampler_new(struct tune_gpus *g);
void tune_sampler_free(struct tune_sampler *s);
void tune_sampler_read(struct tune_sampler *s, double from_s, double to_s,
                       struct tune_sampler_seen *seen);

#endif
