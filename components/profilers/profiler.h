/* profiler.h - the time of each operation of the device in some steps, by phase and by matrix.
 *
 * While it measures, it replaces the device's table of operations. Each entry waits for the device,
 * calls the real operation, waits again and records the time. Results do not change. Before and
 * after the measurement there is no cost. Model, loss and optimizer tell the phase, layer and
 * weight of an operation (tune_device_does). Time between operations is listed as waiting for rows,
 * logging, and the rest.
 *
 *     struct tune_profiler *prof = tune_profiler_new(dev, model, load, 3);     3 steps
 *     while (...) {
 *         ... one step ...
 *         if (tune_profiler_step(prof, &at) == 1)
 *             tune_profiler_write(prof, "runs/a");
 *     }
 *
 * FLOPs: 2 MNK for a matrix product. Attention counts 4 D forward and 10 D backward for each
 * visible pair, as backward recomputes the scores. Elementwise operations count a fixed number for
 * each element. Bytes: each operand once, read or written, 4 or 2 bytes an element.
 *
 * A rate near a ceiling cannot be improved much. A rate far from both ceilings means that something
 * waits. */
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

/* tune_profiler_new - profile `steps` steps after two warm-up steps (one if two would leave too
 * few). steps 0: an object that does nothing. It measures the device's ceilings (under a second)
 * and allocates all its memory. dev, model and load must outlive it. model NULL: matrices have no
 * names. load NULL: the time waiting for rows is unknown. NULL with an error: no memory.
 *
 * tune_profiler_free - restore the device's table and free the profiler. */
struct tune_profiler *tune_profiler_new(struct tune_device *dev, struct tune_model *model,
                                        const struct tune_loader *load, int steps);
void tune_profiler_free(struct tune_profiler *p);

/* tune_profiler_bytes - memory that tune_profiler_new allocates for `steps`: on the device and on
 * the heap. */
struct tune_profiler_bytes {
    int64_t device, heap;
};
struct tune_profiler_bytes tune_profiler_bytes(int steps);

/* tune_profiler_step - call it at the end of each step. 1: this was the last step to measure, and
 * the result is ready. Otherwise 0.
 *
 * tune_profiler_settle - count the work since then (logging, an evaluation, a save) to that step as
 * well.
 *
 * tune_profiler_end - call it after the loop. 1: some steps were measured, but fewer than asked
 * for. Otherwise 0. */
int tune_profiler_step(struct tune_profiler *p, const struct tune_progress *at);
void tune_profiler_settle(struct tune_profiler *p);
int tune_profiler_end(struct tune_profiler *p);

/* One line of the result: an operation in a phase, summed over all measured steps. */
struct tune_profile_row {
    /* "data", "forward", "loss", "backward", "clip", "update", "log, save", "evaluation" */
    const char *phase;
    char name[48];     /* "gemm qkv dW", "attention", "waiting for rows" */
    bool outside;      /* not an operation of the device */
    int64_t calls;
    double seconds, flops, bytes;
};

struct tune_profile {
    int asked;                /* steps to measure */
    int64_t first, last;      /* measured steps, as the run counts them; 0: none */
    double seconds;           /* time of these steps; equals the sum over all rows */
    double model_flops;       /* 6N + attention for their tokens; 0: unknown */
    int threads;
    struct tune_ceilings ceilings; /* 0: unknown */
    const struct tune_profile_row *rows;
    int count;
    int64_t events, dropped;  /* operations in the trace; operations it had no room for */
};

/* tune_profiler_result - the result, valid until free. It is empty until tune_profiler_step or _end
 * returned 1. */
const struct tune_profile *tune_profiler_result(const struct tune_profiler *p);

/* tune_profiler_write - write three files to folder: profile.txt (the table), profile.json (for
 * programs) and profile.trace.json (Chrome's trace format, for ui.perfetto.dev). Each replaces an
 * old one. 0, or -1 with an error.
 *
 * tune_profiler_table - the table as text, which the caller frees. NULL with an error: no
 * memory. */
int tune_profiler_write(const struct tune_profiler *p, const char *folder);
char *tune_profiler_table(const struct tune_profiler *p);

/* tune_get_profiler - the profiler of --profile. */
struct tune_profiler *tune_get_profiler(const struct tune_flags *flags, struct tune_device *dev,
                                        struct tune_model *model, const struct tune_loader *load);

#ifdef __cplusplus
}
#endif
#endif
