/* costs.h - what TUNE_COST_x of ops.h is written in: FLOPs and bytes of an operation. For files
 * that make a table of operations from the list. Each of them defines COST and pairs(). Private. */
#ifndef TUNE_PROFILERS_COSTS_H
#define TUNE_PROFILERS_COSTS_H

#include "devices/ops.h"

static inline double count(const struct tune_tensor *t)
{
    return (double)tune_tensor_elements(t);
}

static inline double bytes(const struct tune_tensor *t)
{
    return t ? (double)tune_tensor_bytes(t) : 0;
}

/* Bytes of some columns of a matrix. */
static inline double part(const struct tune_tensor *t, int64_t columns)
{
    return (double)t->shape[0] * (double)columns * tune_dtype_bits(t->dtype) / 8;
}

/* Bytes of each argument: once, or twice if it is read and written. */
#define TOUCHED(kind, ...) TOUCHED_##kind(__VA_ARGS__)
#define TOUCHED_SET(x) +bytes(x)
#define TOUCHED_EDIT(x, old) +((old) ? 2 : 1) * bytes(x)
#define TOUCHED_GET(x) +bytes(x)
#define TOUCHED_STEP(x)
#define TOUCHED_VALUE(x, T)

/* Sets `shaped` to the first output: its shape is the operation's. */
#define SHAPED(kind, ...) SHAPED_##kind(__VA_ARGS__)
#define SHAPED_SET(x) shaped = shaped ? shaped : x;
#define SHAPED_EDIT(x, old) shaped = shaped ? shaped : x;
#define SHAPED_GET(x)
#define SHAPED_STEP(x)
#define SHAPED_VALUE(x, T)

#endif
