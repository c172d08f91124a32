/* sampler.h - what the machine does while a run trains, looked at four times a second by a thread
 * that sleeps in between.
 *
 * Nobody tells it when the first step begins: whoever wants an average asks for it over a span of
 * time, when that is known. So it keeps what it saw as integrals over spans that grow longer as the
 * run does (at least 128 of them, at most 256), in memory that it takes at the start. A look costs
 * some 20 microseconds, a GPU more.
 *
 *     struct tune_sampler *s = tune_sampler_new(NULL);
 *     ... the run ...
 *     tune_sampler_read(s, begin_s, end_s, &seen);
 *     tune_sampler_free(s); */
#ifndef TUNE_PROFILERS_SAMPLER_H
#define TUNE_PROFILERS_SAMPLER_H

#include "profilers/gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_sampler;

/* Of the GPUs' averages over time. NaN: unknown. */
struct tune_sampler_spread {
    double min, avg, max;
};

struct tune_sampler_seen {
    double memory;                 /* % of the machine's that is not available, average over time */
    int gpus;                      /* looked at; the rest is of them */
    struct tune_sampler_spread gpu_compute, gpu_memory, gpu_watts, gpu_power; /* see gpus.h */
    double gpu_memory_peak;        /* highest of any GPU at any time */
};

enum { TUNE_SAMPLER_STACK = 512 << 10 }; /* bytes of its thread */

/* tune_sampler_new - begins to look: at the machine and, through g (now its own; NULL: none), at
 * GPUs. NULL with an error, g closed: no thread, no memory.
 * tune_sampler_read - averages from from_s to to_s (tune_clock_s) of what was seen since new; of no
 * time at all (to_s not above from_s, or a span before it began), what is seen now. */
struct tune_sampler *tune_sampler_new(struct tune_gpus *g);
void tune_sampler_free(struct tune_sampler *s);
void tune_sampler_read(struct tune_sampler *s, double from_s, double to_s,
                       struct tune_sampler_seen *seen);

#ifdef __cplusplus
}
#endif
#endif
