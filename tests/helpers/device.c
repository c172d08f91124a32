/* device.c - device NAME: open a device and print its description, and its warning if it has one. An error goes to stderr,
 * with the exit code of its kind. */
#include <stdio.h>

#include "core/error.h"
#include "devices/device.h"

int main(int argc, char **argv)
{
    struct tune_device *dev = argc == 2 ? tune_device_open(argv[1], 0) : NULL;
    if (!dev) {
        fprintf(stderr, "%s\n", argc == 2 ? tune_error_message() : "device NAME");
        return argc == 2 ? (int)tune_error_kind() : 2;
    }
    puts(dev->description);
    if (*dev->warning)
        puts(dev->warning);
    tune_device_close(dev);
    return 0;
}
