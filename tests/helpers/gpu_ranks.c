/* gpu_ranks.c [exact | WHAT RANK] - a rank that mpirun started, or one alone, with a GPU of its own: collectives on the GPU's arrays.
 * exact: our own sums, equal to plain loops to the bit. WHAT happens to that RANK before one of them: killed, stopped, differs.
 * The last line of rank 0 says how many ranks there are, how their bytes travel, and a hash of the sums. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../comm/comm_checks.h"
#include "core/hash.h"
#include "devices/device.h"
#include "machine/ranks.h"

enum { MOST = 3000017 };
static float values[MOST], sums[MOST];

static void *at(tune_address a, size_t element)
{
    return (void *)(uintptr_t)(a.at + element * sizeof(float));
}

/* The sum that a plain loop has, and how far another order may be from it. */
static double expected(int size, size_t i, double *room)
{
    float sum = element(0, i);
    *room = 1e-12;
    for (int r = 1; r < size; r++)
        sum += element(r, i);
    for (int r = 0; r < size; r++)
        *room += 2e-7 * (element(r, i) < 0 ? -element(r, i) : element(r, i)) * size;
    return sum;
}

/* Each rank's numbers to the GPU, added up there, back from each rank, and one rank's to all. */
static int try_device(struct tune_comm *c, struct tune_device *dev, size_t count, bool in_place, bool exact, uint64_t *hash)
{
    static const uint8_t key[16] = {7};
    int rank = tune_comm_rank(c), size = tune_comm_size(c);
    int64_t bytes = (int64_t)((count + 1) * sizeof(float));
    size_t first = tune_comm_share(count, rank, size);
    tune_address from = tune_device_alloc(dev, bytes, "values"), sum = tune_device_alloc(dev, bytes, "sums");
    int status = from.at && sum.at ? 0 : -1;
    for (size_t i = 0; i < count; i++)
        values[i] = element(rank, i);
    if (status == 0)
        status = tune_device_upload(dev, from, values, (int64_t)(count * sizeof *values));
    struct tune_collective o = {.kind = TUNE_REDUCE_SCATTER, .what = "sums", .from = at(from, 0), .to = in_place ? at(from, first) : at(sum, 0),
                                .count = count, .element = sizeof(float), .on_device = true};
    if (status == 0)
        status = tune_comm_do(c, &o);
    o = (struct tune_collective){.kind = TUNE_ALL_GATHER, .what = "all", .from = in_place ? NULL : at(sum, 0), .to = at(from, 0), .count = count,
                                 .element = sizeof(float), .on_device = true};
    if (status == 0)
        status = tune_comm_do(c, &o);
    if (status == 0)
        status = tune_device_download(dev, sums, from, (int64_t)(count * sizeof *sums));
    if (status == 0)
        status = tune_device_sync(dev);
    for (size_t i = 0; status == 0 && i < count; i++) {
        double room, want = expected(size, i, &room), far = sums[i] < want ? want - sums[i] : sums[i] - want;
        if (exact ? sums[i] != (float)want : !(far <= room))
            status = differs("a sum of GPUs", i, sums[i], want);
    }
    *hash += tune_siphash((const char *)sums, count * sizeof *sums, key);
    o = (struct tune_collective){.kind = TUNE_BROADCAST, .what = "one", .to = at(sum, 0), .count = count, .element = sizeof(float),
                                 .root = (int)(count % (size_t)size), .on_device = true};
    if (status == 0)
        status = tune_device_upload(dev, sum, values, (int64_t)(count * sizeof *values));
    if (status == 0)
        status = tune_comm_do(c, &o);
    if (status == 0)
        status = tune_device_download(dev, sums, sum, (int64_t)(count * sizeof *sums));
    if (status == 0)
        status = tune_device_sync(dev);
    for (size_t i = 0; status == 0 && i < count; i++)
        if (sums[i] != element(o.root, i))
            status = differs("a broadcast of GPUs", i, sums[i], element(o.root, i));
    tune_device_free(dev, from, bytes);
    tune_device_free(dev, sum, bytes);
    return status;
}

static int try_all(struct tune_comm *c, struct tune_device *dev, bool exact, uint64_t *hash)
{
    static const size_t counts[] = {0, 1, 2, 3, 5, 8, 1000, 4099, MOST - 1};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int in_place = 0; in_place < 2; in_place++)
            if (try_device(c, dev, counts[k], in_place, exact, hash) < 0)
                return -1;
    return 0;
}

/* A rank is lost, or does something else. */
static int trouble(struct tune_comm *c, struct tune_device *dev, const char *what, int chosen)
{
    uint64_t hash = 0;
    tune_address a = tune_device_alloc(dev, 4096, "values");
    struct tune_collective o = {.kind = TUNE_BROADCAST, .what = "some", .to = at(a, 0), .count = 1000, .element = 4, .on_device = true};
    if (try_device(c, dev, 1000, true, false, &hash) < 0)
        return -1;
    if (tune_comm_rank(c) == chosen) {
        if (!strcmp(what, "differs"))
            o.count = 999;
        else if (!strcmp(what, "host"))
            o = (struct tune_collective){.kind = TUNE_BROADCAST, .what = "some", .to = values, .count = 1000, .element = 4};
        else
            raise(!strcmp(what, "stopped") ? SIGSTOP : SIGKILL);
    }
    int status = tune_comm_do(c, &o);
    tune_device_free(dev, a, 4096);
    return status;
}

int main(int argc, char **argv)
{
    bool exact = argc > 1 && !strcmp(argv[1], "exact");
    const char *timeout = getenv("GPU_RANKS_TIMEOUT");
    struct tune_comm *c = tune_ranks_launched().size > 0 ? tune_comm_open_mpi(120) : tune_comm_open_self();
    struct tune_device *dev = NULL;
    uint64_t hash = 0;
    int place = 0, status = c ? 0 : -1;
    signal(SIGTERM, SIG_IGN); /* mpirun ends those that are left */
    if (status == 0) {
        tune_comm_local(c, &place);
        dev = tune_device_open_place("cuda", 1, place);
        tune_comm_exact(c, exact);
        status = dev ? tune_comm_use_device(c, dev) : -1;
    }
    if (status == 0 && timeout)
        tune_comm_timeout(c, strtod(timeout, NULL));
    if (status == 0 && !tune_comm_has_device(c))
        status = tune_error_set("gradients go %s", tune_comm_about_device(c));
    if (status == 0)
        status = argc > 2 ? trouble(c, dev, argv[1], atoi(argv[2])) : try_all(c, dev, exact, &hash);
    if (status < 0 && tune_comm_speaks(c, false))
        fprintf(stderr, "gpu_ranks: %s\n", tune_error_message());
    else if (status == 0 && tune_comm_rank(c) == 0)
        printf("%d ranks, gradients %s, %016llx\n", tune_comm_size(c), tune_comm_about_device(c), (unsigned long long)hash);
    tune_device_close(dev);
    tune_comm_close(c);
    return status < 0;
}
