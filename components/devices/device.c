/* device.c - opening devices and counting their memory. */
#include "devices/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/cpus.h"
#include "core/array.h"
#include "core/float16.h"
#include "core/nf4.h"
#include "core/try.h"
#include "devices/cpu/cpu.h"
#include "devices/cuda/device.h"
#include "files/file.h"
#include "files/library.h"
#include "devices/ops.h"

/* The CUDA device is a library of its own, beside the program (`make cuda`), so that programs run
 * where CUDA is not. A test may have it in the program itself. `make CUDA=0` looks for neither
 * library nor environment. */
extern __typeof__(tune_cuda_open) tune_cuda_open __attribute__((weak));

#ifdef TUNE_WITHOUT_CUDA
static __typeof__(tune_cuda_open) *find_cuda(void)
{
    if (!tune_cuda_open)
        tune_error_usage("device cuda: this build is without it (make CUDA=0); `make` and `make cuda` build it");
    return tune_cuda_open;
}
#else

/* The library also calls these functions. So the linker takes them from libtune.a even if
 * the program does not call them. */
static void (*const for_cuda[])(void) __attribute__((used)) = {
    (void (*)(void))tune_file_read, (void (*)(void))tune_file_begin, (void (*)(void))tune_file_commit,
    (void (*)(void))tune_file_cancel, (void (*)(void))tune_file_make_folder};

static __typeof__(tune_cuda_open) *find_cuda(void)
{
    char path[PATH_MAX];
    if (tune_cuda_open)
        return tune_cuda_open;
    const char *set = tune_library_beside("tune_cuda.so", "TUNE_CUDA", path, sizeof path);
    if (!set) {
        tune_error_usage("device cuda: there is no tune_cuda.so beside the program; `make cuda` builds it where "
                         "the CUDA Toolkit is, and TUNE_CUDA may name it");
        return NULL;
    }
    void *library = dlopen(set, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        tune_error_cannot("device cuda: cannot load %s: %s; the CUDA libraries that it was built with must be "
                          "found, as by LD_LIBRARY_PATH", set, why ? why : "no reason given");
        return NULL;
    }
    __typeof__(tune_cuda_open) *open = NULL;
    *(void **)&open = dlsym(library, "tune_cuda_open"); /* POSIX allows this of a function's address */
    if (!open)
        tune_error_cannot("device cuda: %s is no CUDA device of tune.c", set);
    return open;
}
#endif

/* "cuda" or "cuda:N": its number; another name: -1. */
static int cuda_index(const char *name)
{
    char *end;
    if (strncmp(name, "cuda", 4) != 0)
        return -1;
    if (name[4] == 0)
        return 0;
    long n = name[4] == ':' && name[5] >= '0' && name[5] <= '9' ? strtol(name + 5, &end, 10) : -1;
    return n >= 0 && n <= 1023 && *end == 0 ? (int)n : -1;
}

static int open_cuda(struct tune_device *dev, int index, bool round)
{
    __typeof__(tune_cuda_open) *open = find_cuda();
    return open ? open(dev, index, round) : -1;
}

struct tune_device *tune_device_open(const char *name, int threads)
{
    return tune_device_open_place(name, threads, 0);
}

struct tune_device *tune_device_open_place(const char *name, int threads, int place)
{
    bool round = !strcmp(name, "cuda") && place > 0;
    int index = cuda_index(name);
    if (index < 0 && strcmp(name, "cpu") != 0) {
        tune_error_usage("device \"%s\": expected cpu, cuda or cuda:N, a GPU's number from 0 on", name);
        return NULL;
    }
    threads = tune_cpus_threads(threads);
    if (threads < 0)
        return NULL;
    struct tune_device *dev = tune_zeroed(1, sizeof *dev, "a device");
    if (!dev)
        return NULL;
    dev->threads = threads;
    dev->logits_bytes = TUNE_CPU_LOGITS;
    if ((index >= 0 ? open_cuda(dev, round ? place : index, round) : tune_cpu_open(dev)) < 0) {
        free(dev);
        return NULL;
    }
    return dev;
}

/* A GPU of that much memory, which can only be planned for. */
static struct tune_device *plan_cuda(int64_t memory)
{
    struct tune_device *dev = tune_zeroed(1, sizeof *dev, "a device");
    if (dev && tune_cuda_plan(dev, memory) == 0)
        return dev;
    free(dev);
    return NULL;
}

struct tune_device *tune_device_plan(const char *name, int threads, int64_t memory)
{
    if (cuda_index(name) < 0)
        return tune_device_open(name, threads);
    if (memory > 0)
        return plan_cuda(memory);
    struct tune_device *dev = tune_device_open(name, threads);
    if (dev)
        return dev;
    tune_error_clear();
    return plan_cuda(0);
}

void tune_device_close(struct tune_device *dev)
{
    if (!dev)
        return;
    if (dev->closing)
        dev->closing(dev->closing_with);
    dev->ops->close(dev);
    free(dev);
}

tune_address tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what)
{
    tune_error_clear();
    tune_address memory = dev->ops->alloc(dev, bytes);
    if (!memory.at && tune_error_kind() != TUNE_ERROR_NONE) { /* another reason than a lack of it */
        tune_error_prefix("memory for %s: ", what);
        return memory;
    }
    if (!memory.at) {
        tune_error_cannot("no memory on %s for %s: %.1f MiB asked, %.1f MiB held already; lower `batch_size` or "
                            "`max_length`, or use `activation_checkpointing` full",
                            dev->name, what, (double)bytes / 1048576, (double)dev->bytes / 1048576);
        return memory;
    }
    dev->allocations++;
    dev->bytes += bytes;
    if (dev->bytes > dev->bytes_peak)
        dev->bytes_peak = dev->bytes;
    return memory;
}

void tune_device_free(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    if (!memory.at)
        return;
    dev->ops->free(dev, memory, bytes);
    dev->bytes -= bytes;
}

/* A size is not negative, and a size above 0 has an address. */
static int check(const char *what, tune_address memory, int64_t bytes)
{
    if (bytes >= 0 && (memory.at || bytes == 0))
        return 0;
    return tune_error_set("%s: %lld bytes %s", what, (long long)bytes, memory.at ? "" : "at no address");
}

int tune_device_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes)
{
    TRY(check("upload", to, bytes));
    return dev->ops->upload(dev, to, from, bytes);
}

int tune_device_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes)
{
    TRY(check("download", from, bytes));
    return dev->ops->download(dev, to, from, bytes);
}

int tune_device_sync(struct tune_device *dev)
{
    return dev->ops->sync(dev);
}

int tune_device_group_begin(struct tune_device *dev)
{
    return dev->ops->group_begin ? dev->ops->group_begin(dev) : 0;
}

int tune_device_group_end(struct tune_device *dev)
{
    return dev->ops->group_end ? dev->ops->group_end(dev) : 0;
}

int tune_device_acquire(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    return dev->ops->acquire ? dev->ops->acquire(dev, memory, bytes) : 0;
}

int tune_device_release(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    return dev->ops->release ? dev->ops->release(dev, memory, bytes) : 0;
}

int tune_device_in_place(struct tune_device *dev, tune_address memory, void **host)
{
    *host = NULL;
    TRY(check("in place", memory, 1));
    if (!dev->ops->in_place)
        return 0;
    TRY(dev->ops->sync(dev));
    *host = dev->ops->in_place(dev, memory);
    return 0;
}

void *tune_device_beside(struct tune_device *dev)
{
    return dev->ops->beside ? dev->ops->beside(dev) : NULL;
}

int tune_device_done(struct tune_device *dev)
{
    return dev->ops->done ? dev->ops->done(dev) : tune_error_set("%s has no stream", dev->name);
}

void *tune_device_mark(struct tune_device *dev)
{
    if (dev->ops->mark)
        return dev->ops->mark(dev);
    tune_error_set("%s has no marks", dev->name);
    return NULL;
}

int tune_device_reached(struct tune_device *dev, void *mark)
{
    return dev->ops->reached ? dev->ops->reached(dev, mark) : tune_error_set("%s has no marks", dev->name);
}

void tune_device_unmark(struct tune_device *dev, void *mark)
{
    if (mark && dev->ops->unmark)
        dev->ops->unmark(dev, mark);
}

int tune_device_memory(const struct tune_device *dev, struct tune_device_memory *memory)
{
    *memory = (struct tune_device_memory){0};
    TRY(dev->ops->memory(dev, memory));
    if (memory->free >= 0 && memory->free <= memory->total)
        return 0;
    return tune_error_set("%s reports %lld of %lld bytes of memory as free; expected 0 to the total",
                          dev->name, (long long)memory->free, (long long)memory->total);
}

int tune_device_reserve(struct tune_device *dev, const struct tune_max_sizes *sizes)
{
    return dev->ops->reserve(dev, sizes);
}

int64_t tune_device_reserve_bytes(const struct tune_device *dev, const struct tune_max_sizes *sizes, int64_t *library)
{
    return dev->ops->reserve_bytes(dev, sizes, library);
}

void tune_max_sizes_add_product(struct tune_max_sizes *l, struct tune_operand c, struct tune_operand a, struct tune_operand b,
                                enum tune_dtype operands)
{
    /* products of F32 operands are F32: a BF16 result is rounded from a copy */
    int64_t result = c.dtype == TUNE_BF16 && operands == TUNE_F32 ? tune_copy_bytes(c, TUNE_F32) : 0;
    int64_t bytes = tune_copy_bytes(a, operands) + tune_copy_bytes(b, operands) + result;
    l->copies = bytes > l->copies ? bytes : l->copies;
}

int tune_device_peak_rates(struct tune_device *dev, struct tune_peak_rates *peak_rates, tune_address memory, int64_t n)
{
    *peak_rates = (struct tune_peak_rates){0};
    return dev->ops->peak_rates ? dev->ops->peak_rates(dev, peak_rates, memory, n) : 0;
}

/* ---- reading tensors on the host ---- */

/* Dequantize an NF4 tensor, part by part. */
static int nf4_to_host(struct tune_device *dev, const struct tune_tensor *t, float *out)
{
    int status = 0;
    for (const struct tune_nf4_part *p = t->nf4; p && status == 0; out += p->count, p = p->below) {
        char *host = tune_zeroed(1, (size_t)tune_nf4_bytes(p->count), "a copy of %lld numbers", (long long)p->count);
        if (!host)
            return -1;
        struct tune_nf4 q = tune_nf4_at(host, p->count, p->offset);
        status = tune_device_download(dev, host, p->memory, tune_nf4_bytes(p->count));
        if (status == 0)
            status = tune_device_sync(dev);
        if (status == 0)
            status = tune_nf4_read(&q, 0, p->count, out);
        free(host);
    }
    return status;
}

int tune_to_host(struct tune_device *dev, const struct tune_tensor *t, float *out)
{
    if (t->dtype == TUNE_NF4)
        return nf4_to_host(dev, t, out);
    if (t->dtype != TUNE_F32 && t->dtype != TUNE_BF16)
        return tune_error_set("a tensor of %s cannot be read: only F32, BF16 and NF4 are supported",
                              tune_dtype_name(t->dtype));
    int64_t last = t->ndim > 0 ? t->shape[t->ndim - 1] : 1, size = tune_dtype_bits(t->dtype) / 8;
    int64_t row = t->ndim == 4 ? t->shape[2] * last : last, rows = row > 0 ? tune_tensor_elements(t) / row : 0;
    int64_t stride = t->stride ? t->stride : row, outer = t->ndim == 4 && t->outer ? t->outer : stride * (t->ndim == 4 ? t->shape[1] : 1);
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = t->ndim == 4 ? r / t->shape[1] * outer + r % t->shape[1] * stride : r * stride;
        TRY(tune_device_download(dev, out + r * row, tune_address_plus(t->data, at * size), row * size));
    }
    TRY(tune_device_sync(dev));
    /* in place: the bfloat16 data is at the start of the row */
    for (int64_t r = 0; r < rows && t->dtype == TUNE_BF16; r++)
        for (int64_t i = row - 1; i >= 0; i--) {
            uint16_t h;
            memcpy(&h, (char *)(out + r * row) + 2 * i, sizeof h);
            out[r * row + i] = tune_bf16_to_float(h);
        }
    return 0;
}
