/* timing.h - declarations shared by the files of the profiler. Private to this folder.
 *
 *     ops.c -> dev->ops -> timed.c (FLOPs, bytes) -> profiler.c (adds up, records the event)
 *                             `-> the device's own kernel */
#ifndef TUNE_PROFILERS_TIMING_H
#define TUNE_PROFILERS_TIMING_H

#include "devices/ops.h"
#include "profilers/profiler.h"

/* An operation, as its wrapper describes it. */
struct tune_timed_op {
    const char *name;            /* name in ops.h; a string literal */
    const char *way;             /* "dx", "dW", ""; a string literal */
    int64_t shape[3];            /* for the trace; 0: unused */
    double flops, bytes;
};

struct tune_event {
    double begin_s, seconds, flops, bytes;
    int row;                     /* row of the result; -1: a step ends here */
    int phase, unit;             /* unit -1: none */
    int64_t shape[3];
};

enum { TUNE_PROFILE_ROWS = 192, TUNE_PROFILE_EVENTS = 1 << 16 };

struct tune_profiler {
    struct tune_ops table;       /* must be first: the device's table during the measurement */
    const struct tune_ops *real;
    struct tune_device *dev;
    struct tune_model *model;
    const struct tune_loader *load;
    int steps, calls;            /* steps to measure; calls of tune_profiler_step so far */
    int warm_up;                 /* steps before; set at the first call */
    bool measures, done;
    tune_address memory;         /* buffer used to measure the device's peak rates */
    int64_t memory_bytes;
    double step_begin_s, free_s; /* start of the first measured step; end of the last operation */
    double waited_s;             /* the loader's waiting time at the start, seconds */
    int64_t tokens, rows_used;   /* tokens and rows of the run at the start */
    enum tune_phase phase;
    struct tune_profile result;
    struct {
        const char *name, *way, *what;
        enum tune_phase phase;
    } keys[TUNE_PROFILE_ROWS];   /* keys of the rows, compared as pointers to literals */
    struct tune_profile_row rows[TUNE_PROFILE_ROWS];
    struct tune_event *events;   /* [TUNE_PROFILE_EVENTS] */
};

/* tune_timed_ops - fill p->table with p->real's entries, wrapped if there is something to time. */
void tune_timed_ops(struct tune_profiler *p);

/* tune_timed_begin - start to time an operation. The device is idle. Time since the last operation
 * counts as between operations. Returns the time, seconds.
 *
 * tune_timed_end - record the operation that began then. Returns its status, or an error of waiting
 * for it. */
double tune_timed_begin(struct tune_profiler *p);
int tune_timed_end(struct tune_profiler *p, double begin_s, int status,
                   const struct tune_timed_op *op);

extern const char *const tune_phase_names[TUNE_PHASES];

#endif
