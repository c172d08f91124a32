/* profiler.h - where the time of some steps goes: each operation of the device, by phase and by
 * matrix.
 *
 * While it measures, the device has another table of operations. Each entry waits for the device,
 * calls the real operation, waits again and notes the time. The numbers are the same. When it does
 * not measure, nothing is slower. Model, loss and optimizer say which phase, layer and weight an
 * operation belongs to (tune_device_does). Time between operations is shown as waiting for rows,
 * logging, or the rest.
 *
 *     struct tune_profiler *prof = tune_profiler_new(dev, model, load, 3);   after 2 warm-up steps
 *     while (...) {
 *         ... one step ...
 *         if (tune_profiler_step(prof, &at) == 1)
 *             tune_profiler_write(prof, "runs/a");
 *     }
 *
 * FLOPs: 2 M N K for a matrix product. Attention counts 4 D per visible pair in forward and 10 D in
 * backward, which computes scores again. Elementwise operations count per element. Bytes: each
 * operand once, read or written. A rate near its peak leaves little to gain. Far from both
 * peaks, something waits. */
#ifndef TUNE_PROFILER_H
#define TUNE_PROFILER_H

#include "core/progress.h"
#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_profiler;
struct tune_flags;
struct tune_loader;

/* tune_profiler_new - measure steps steps, after two that warm up (one if there are too few). steps
 * 0: an object that does nothing. It measures the device's peak rates now, in under a second, and
 * takes all its memory. model and load may be NULL: then matrices have no names, and waiting for
 * rows is not shown apart. All are borrowed; dev must outlive it.
 * tune_profiler_free - free it and restore the device's table. */
struct tune_profiler *tune_profiler_new(struct tune_device *dev, struct tune_model *model,
                                        const struct tune_loader *load,
                                        int steps);
void tune_profiler_free(struct tune_profiler *p);

/* tune_profiler_bytes - bytes that tune_profiler_new takes, on the device and on the host. */
struct tune_profiler_bytes {
    int64_t device, heap;
};
struct tune_profiler_bytes tune_profiler_bytes(int steps);

/* tune_profiler_step - a step of the loop has ended. 1: it was the last one to measure, and the
 * result is ready; else 0.
 * tune_profiler_settle - count what was done since then (a log line, evaluation, save) to that
 * step.
 * tune_profiler_end - the loop has ended. 1: fewer steps than asked for were measured, but some;
 * else 0. */
int tune_profiler_step(struct tune_profiler *p, const struct tune_progress *at);
void tune_profiler_settle(struct tune_profiler *p);
int tune_profiler_end(struct tune_profiler *p);

/* One row of the result: an operation in a phase, over all measured steps. */
struct tune_profile_row {
    /* "data", "forward", "loss", "backward", "ranks", "clip", "update", "log, save",
     * "evaluation" */
    const char *phase;
    char name[48];     /* "gemm qkv dW", "attention", "waiting for rows" */
    bool outside;      /* time that no operation of the device took */
    int64_t calls;
    double seconds, flops, bytes;
};

struct tune_profile {
    int asked;                /* steps asked for */
    int64_t first, last;      /* first and last measured step; 0: none */
    double seconds;           /* their time; the rows' seconds add up to it */
    double model_flops;       /* model FLOPs of their tokens; 0: unknown */
    int threads;
    struct tune_peak_rates peak_rates; /* 0: unknown */
    const struct tune_profile_row *rows;
    int count;
    int64_t events, dropped;  /* operations in the trace; operations that found no room */
};

/* tune_profiler_result - the result; borrowed until free; empty before tune_profiler_step or _end
 * returned 1. */
const struct tune_profile *tune_profiler_result(const struct tune_profiler *p);

/* tune_profiler_write - write three files into folder, each replaced whole: profile.txt (the
 * table), profile.json (for programs), and profile.trace.json (Chrome's trace format, for
 * chrome://tracing and ui.perfetto.dev).
 * tune_profiler_table - the table alone; the caller frees it. NULL with an error: no memory. */
int tune_profiler_write(const struct tune_profiler *p, const char *folder);
char *tune_profiler_table(const struct tune_profiler *p);

/* tune_get_profiler - the profiler that the options describe. */
struct tune_profiler *tune_get_profiler(const struct tune_flags *flags, struct tune_device *dev,
                                        struct tune_model *model,
                                        const struct tune_loader *load);

#ifdef __cplusplus
}
#endif
#endif
