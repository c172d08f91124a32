/* gpus.h - what GPUs do while they compute, by NVIDIA's management library: utilization, memory,
 * power.
 *
 * The library (libnvidia-ml.so.1) comes with the driver and is opened here at run time; nothing is
 * linked to it. GPUs are named by their PCI bus ids, which every layer above the driver agrees on,
 * whatever CUDA_VISIBLE_DEVICES numbers them.
 *
 *     struct tune_gpus *g = tune_gpus_open("0000:65:00.0,0000:ca:00.0");
 *     for (int i = 0; i < tune_gpus_count(g); i++)
 *         tune_gpus_read(g, i, &now); */
#ifndef TUNE_PROFILERS_GPUS_H
#define TUNE_PROFILERS_GPUS_H

#ifdef __cplusplus
extern "C" {
#endif

struct tune_gpus;

/* NaN: the driver does not say (as of a part of a GPU). */
struct tune_gpu_reading {
    double compute;    /* % of the last moment (1/6 to 1 s) in which some kernel ran */
    double memory;     /* % of the GPU's memory that is taken, by whomever */
    double watts;
    double power;      /* % of the limit that is enforced */
};

/* tune_gpus_open - ids separated by commas. NULL with an error: no such library, none of these
 * GPUs.
 * tune_gpus_read - never fails: what cannot be read is NaN. Any thread, one at a time. */
struct tune_gpus *tune_gpus_open(const char *ids);
void tune_gpus_close(struct tune_gpus *g);
int tune_gpus_count(const struct tune_gpus *g);
void tune_gpus_read(struct tune_gpus *g, int i, struct tune_gpu_reading *now);

/* tune_gpus_listed - how many ids such a list has; NULL or "": 0. */
int tune_gpus_listed(const char *ids);

#ifdef __cplusplus
}
#endif
#endif
