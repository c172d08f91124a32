/* get_device.c - the device that --device names. */
#include "devices/device.h"
#include "flags/flags.h"

struct tune_device *tune_get_device(const struct tune_flags *flags)
{
    return tune_device_open(flags->device, flags->threads);
}
