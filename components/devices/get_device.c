/* get_device.c - the device that --device names. */
#include "devices/device.h"
#include "flags/flags.h"

struct tune_device *tune_get_device(const struct tune_flags *flags)
{
    struct tune_device *dev = tune_device_open_place(flags->device, flags->threads > 0 ? flags->threads : flags->rank_threads, flags->place);
    if (dev && flags->share_device && flags->share_device(flags->comm, dev) < 0) {
        tune_device_close(dev);
        return NULL;
    }
    if (dev)
        tune_get_logits_bytes(dev, flags);
    return dev;
}

void tune_get_logits_bytes(struct tune_device *dev, const struct tune_flags *flags)
{
    if (flags->logits_chunk > 0)
        dev->logits_bytes = (int64_t)flags->logits_chunk << 20;
}
