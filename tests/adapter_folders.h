/* adapter_folders.h - what the tests of adapters share: a device, and a folder to write adapters to. */
#ifndef TUNE_ADAPTER_FOLDERS_H
#define TUNE_ADAPTER_FOLDERS_H

#include "devices/device.h"
#include "far/far.h"
#include "test.h"

static const char *home; /* a folder of this program's */
static struct tune_device *device;

static int begin(void **state)
{
    (void)state;
    home = test_folder();
    device = test_device(2);
    return device ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tune_device_close(device);
    return tune_file_remove_folder(home);
}

#endif
