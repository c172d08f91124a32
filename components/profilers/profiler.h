/* profiler.h - where the time of some steps goes: every operation of the device, by phase and by the matrix it works on.
 *
 * While it measures, the device's table is another one. Each of its entries waits for the device, calls the real one,
 * waits again and notes the time. Nothing is computed differently; when it is over, or was never asked for, nothing is
 * slower. Model, loss and optimizer say which phase, layer and weight an operation belongs to (tune_device_does). The time
 * between operations is shown as what it is: waiting for rows, logging, the rest.
 *
 *     struct tune_profiler *prof = tune_profiler_new(dev, model, load, 3);       3 steps, after 2 that warm up
 *     while (...) {
 *         ... one step ...
 *         if (tune_profiler_step(prof, &at) == 1)
 *             tune_profiler_write(prof, "runs/a");
 *     }
 *
 * FLOPs: 2 MNK of a matrix product; of attention 4 D for each visible pair forward and 10 D backward (scores are made
 * again); elementwise operations by a count per element. Bytes: each operand once, read or written, 4 or 2 an element.
 * A rate near a ceiling says that no better code would be much faster; neither near, that something waits. */
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

/* tune_profiler_new - for that many steps after one or two that warm up (one where two leave too few); steps 0: an object
 * that does nothing. Measures the device's ceilings (under a second) before the first step; all memory is taken here. model and
 * load may be NULL: then matrices have no names, waiting for rows is not told apart. Borrowed until free, as dev, which it
 * must not outlive.
 * tune_profiler_free - the device's own table is put back. */
struct tune_profiler *tune_profiler_new(struct tune_device *dev, struct tune_model *model, const struct tune_loader *load,
                                        int steps);
void tune_profiler_free(struct tune_profiler *p);

/* tune_profiler_bytes - what tune_profiler_new takes for so many steps, of the device and of the heap. */
struct tune_profiler_bytes {
    int64_t device, heap;
};
struct tune_profiler_bytes tune_profiler_bytes(int steps);

/* tune_profiler_step - a step of the loop has ended. 1: it was the last one to be measured, the result can be had; else 0.
 * tune_profiler_settle - what was done since then (logging, an evaluation, a save) belongs to that step as well.
 * tune_profiler_end - the loop has ended. 1: fewer steps than asked for were measured, but some; else 0. */
int tune_profiler_step(struct tune_profiler *p, const struct tune_progress *at);
void tune_profiler_settle(struct tune_profiler *p);
int tune_profiler_end(struct tune_profiler *p);

/* One line of the result: an operation in a phase, over all steps measured. */
struct tune_profile_row {
    const char *phase; /* "data", "forward", "loss", "backward", "clip", "update", "log, save", "evaluation" */
    char name[48];     /* "gemm qkv dW", "attention", "waiting for rows" */
    bool outside;      /* not an operation of the device */
    int64_t calls;
    double seconds, flops, bytes;
};

struct tune_profile {
    int asked;                /* steps to be measured */
    int64_t first, last;      /* steps measured, as the run counts them; 0: none was */
    double seconds;           /* they took; the rows' seconds add up to it */
    double model_flops;       /* 6N + attention, of their tokens; 0: unknown */
    int threads;
    struct tune_ceilings ceilings; /* 0: unknown */
    const struct tune_profile_row *rows;
    int count;
    int64_t events, dropped;  /* operations in the trace, and beyond its room */
};

/* tune_profiler_result - borrowed until free; empty before tune_profiler_step or _end gave 1. */
const struct tune_profile *tune_profiler_result(const struct tune_profiler *p);

/* tune_profiler_write - profile.txt (the table), profile.json (the same for programs) and profile.trace.json (Chrome's trace
 * format: chrome://tracing, ui.perfetto.dev) in folder, each replaced whole.
 * tune_profiler_table - the table alone; the caller frees it. NULL with an error: out of memory. */
int tune_profiler_write(const struct tune_profiler *p, const char *folder);
char *tune_profiler_table(const struct tune_profiler *p);

/* tune_get_profiler - by --profile. */
struct tune_profiler *tune_get_profiler(const struct tune_flags *flags, struct tune_device *dev, struct tune_model *model,
                                        const struct tune_loader *load);

#ifdef __cplusplus
}
#endif
#endif
