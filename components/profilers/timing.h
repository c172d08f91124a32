/* timing.h - what the files of the profiler share. Inside this folder only.
 *
 *     ops.c -> dev->ops -> timed.c (FLOPs, bytes) -> profiler.c (adds up, notes the event)
 *                             `-> the device's own kernel
 */
#ifndef TUNE_PROFILERS_TIMING_H
#define TUNE_PROFILERS_TIMING_H

#include "devices/ops.h"
#include "profilers/profiler.h"

/* One operation as its wrapper describes it. */
struct tune_timed_op {
    const char *name;            /* as in ops.h; a literal */
    const char *way;             /* "dx", "dW", ""; a literal */
    int64_t shape[3];            /* for the trace; 0: unused */
    double flops, bytes;
};

struct tune_event {
    double begin_s, seconds, flops, bytes;
    int row;                     /* in the result's rows; -1: a step ends here */
    int phase, layer;            /* layer -1: none */
    int64_t shape[3];
};

enum { TUNE_PROFILE_ROWS = 192, TUNE_PROFILE_EVENTS = 1 << 16 };

struct tune_profiler {
    struct tune_ops table;       /* first: the device's table while steps are measured */
    const struct tune_ops *real;
    struct tune_device *dev;
    struct tune_model *model;
    const struct tune_loader *load;
    int steps, calls;            /* to measure; of tune_profiler_step so far */
    int warm_up;                 /* steps before; known at the first call */
    bool measures, done;
    tune_address memory;         /* for the ceilings */
    int64_t memory_bytes;
    double step_begin_s, free_s; /* of the first step measured; the end of the last operation */
    double waited_s;             /* for rows, by the loader's count, at the begin */
    int64_t tokens, rows_used;   /* of the run at the begin */
    enum tune_phase phase;
    struct tune_profile result;
    struct {
        const char *name, *way, *what;
        enum tune_phase phase;
    } keys[TUNE_PROFILE_ROWS];   /* of the rows, by identity of literals */
    struct tune_profile_row rows[TUNE_PROFILE_ROWS];
    struct tune_event *events;   /* [TUNE_PROFILE_EVENTS] */
};

/* tune_timed_ops - fill p->table: p->real's entries, behind wrappers where there is something to
 * time. */
void tune_timed_ops(struct tune_profiler *p);

/* tune_timed_begin - the device is idle; the time since the last operation is nobody's. Returns the
 * time.
 * tune_timed_end - the operation that began then is over; returns its status, or an error of
 * waiting for it. */
double tune_timed_begin(struct tune_profiler *p);
int tune_timed_end(struct tune_profiler *p, double begin_s, int status,
                   const struct tune_timed_op *op);

extern const char *const tune_phase_names[TUNE_PHASES];

#endif
