/* far.h - a device for tests that behaves like a GPU far away: the host cannot touch its memory, and its queue runs late.
 *
 * It computes with the CPU's kernels, so the numbers are the same bits. What a component must not rely on fails here:
 *   - device memory is PROT_NONE except while the queue runs: a read or write by the host is a segmentation fault;
 *   - operations run at the next sync, uploads and frees among them in order; an upload has copied its source;
 *   - a download's target is filled with 0xff bytes at the call. At the sync they must still be there, or the program aborts:
 *     somebody freed or used the target too early;
 *   - outputs that an operation sets whole, and all working memory, hold NaN before the operation;
 *   - memory that tune_device_release was told of holds 0xff bytes until tune_device_acquire gives its contents back. If it was
 *     written to in between, the program aborts;
 *   - between a step's end (end_step) and the next begin_step no operation may touch the step's
 *     scalars, for their copy would lack it: the program aborts.
 * It has memory of its own (tune_device_memory): as much as the CPU had when it was opened, or what
 * tune_far_limit says.
 *
 *     struct tune_device *dev = test_device(2);      the far one if TUNE_TEST_DEVICE=far, else the CPU, which
 *                                                splits small operations over threads, too */
#ifndef TUNE_TEST_FAR_H
#define TUNE_TEST_FAR_H

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/cpu.h"
#include "devices/device.h"

/* tune_far_open - threads as for tune_device_open. */
struct tune_device *tune_far_open(int threads);

/* tune_far_limit - from here on the device has that many bytes in all, and gives no more. */
void tune_far_limit(struct tune_device *dev, int64_t bytes);

static inline struct tune_device *test_device(int threads)
{
    const char *which = getenv("TUNE_TEST_DEVICE");
    struct tune_device *dev = which && !strcmp(which, "far") ? tune_far_open(threads) : tune_device_open("cpu", threads);
    if (dev && !strcmp(dev->name, "cpu"))
        ((struct tune_cpu *)dev->state)->small = 0;
    return dev;
}

#endif
