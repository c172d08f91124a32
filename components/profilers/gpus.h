/* gpus.h - utilization, memory, power and clock of GPUs, from NVIDIA's management library.
 *
 * The library (libnvidia-ml.so.1) comes with the driver and is opened at run time; nothing links to
 * it. GPUs are named by PCI bus id, which does not depend on CUDA_VISIBLE_DEVICES.
 *
 *     struct tune_gpus *g = tune_gpus_open("0000:65:00.0,0000:ca:00.0");
 *     for (int i = 0; i < tune_gpus_count(g); i++)
 *         tune_gpus_read(g, i, &now); */
#ifndef TUNE_PROFILERS_GPUS_H
#define TUNE_PROFILERS_GPUS_H

struct tune_gpus;

/* One reading. NaN: the driver gives no value, as for a part of a GPU. */
struct tune_gpu_reading {
    double compute;    /* % of the last moment (1/6 to 1 s) in which a kernel ran */
    double memory;     /* % of the GPU's memory in use, by all processes */
    double watts;
    double power;      /* % of the enforced power limit */
    double clock;      /* MHz of the multiprocessors */
};

/* tune_gpus_open - open the GPUs in ids, separated by commas. NULL with an error: no library, or
 * none of these GPUs.
 *
 * tune_gpus_read - read GPU i. It never fails; unreadable values are NaN. One thread at a time. */
struct tune_gpus *tune_gpus_open(const char *ids);
void tune_gpus_close(struct tune_gpus *g);
int tune_gpus_count(const struct tune_gpus *g);
void tune_gpus_read(struct tune_gpus *g, int i, struct tune_gpu_reading *now);

enum { TUNE_GPU_NAME = 96, TUNE_GPUS = 64 };
struct tune_gpu {
    char name[TUNE_GPU_NAME]; /* "GPU-6fa7ee6c-..." (UUID), as CUDA_VISIBLE_DEVICES takes it */
    int index;                /* among all of the machine, from 0 */
};

/* tune_gpus_find - the GPUs that a list names: indexes in the order of PCI bus ids, bus ids or
 * UUIDs, with commas. NULL: all of the machine. Into gpus[TUNE_GPUS]; *machine: how many there are
 * in all. Returns their number. Without the library, the words of the list are taken as they are,
 * and no list means none. -1 with kind USAGE: no such GPU, one named twice, or too many. */
int tune_gpus_find(const char *list, struct tune_gpu *gpus, int *machine);

/* tune_gpus_listed - the number of ids in the list; NULL or "": 0. */
int tune_gpus_listed(const char *ids);

#endif
