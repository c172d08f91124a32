/* bytes.h - host memory to and from a device, for the tests: a download shows what is there. */
#ifndef TUNE_TEST_BYTES_H
#define TUNE_TEST_BYTES_H

#include "test.h"

#include "devices/device.h"

/* put_bytes - a copy on the device; tune_device_free it. get_bytes - back. */
static inline tune_address put_bytes(struct tune_device *dev, const void *from, int64_t bytes)
{
    tune_address to = tune_device_alloc(dev, bytes, "a test's array");
    assert_true(to.at != 0);
    assert_ok(tune_device_upload(dev, to, from, bytes));
    assert_ok(tune_device_sync(dev));
    return to;
}

static inline void get_bytes(struct tune_device *dev, void *to, tune_address from, int64_t bytes)
{
    assert_ok(tune_device_download(dev, to, from, bytes));
    assert_ok(tune_device_sync(dev));
}

/* put_tensor - a tensor on the device with these F32 numbers; rows 0: a vector. drop_tensor - give
 * its memory back. get_tensor - what any tensor holds, in its dtype; malloc'd. */
static inline struct tune_tensor put_tensor(struct tune_device *dev, int64_t rows, int64_t columns,
                                            const float *from)
{
    tune_address data = put_bytes(dev, from, (rows > 0 ? rows : 1) * columns * 4);
    return rows > 0 ? tune_tensor_2d(data, TUNE_F32, rows, columns)
                    : tune_tensor_1d(data, TUNE_F32, columns);
}

/* put_index - n I32 numbers; n 0: nothing is taken. */
static inline struct tune_tensor put_index(struct tune_device *dev, const int32_t *from, int64_t n)
{
    return tune_tensor_1d(n > 0 ? put_bytes(dev, from, n * 4) : (tune_address){0}, TUNE_I32, n);
}

static inline void *get_tensor(struct tune_device *dev, const struct tune_tensor *t)
{
    int64_t bytes = tune_tensor_bytes(t);
    void *copy = malloc((size_t)bytes);
    assert_non_null(copy);
    get_bytes(dev, copy, t->data, bytes);
    return copy;
}

static inline void drop_tensor(struct tune_device *dev, const struct tune_tensor *t)
{
    tune_device_free(dev, t->data, tune_tensor_bytes(t));
}

#endif
