/* known_gpus.c - the table.
 *
 * Memory is what PyTorch prints as "total capacity" in public reports of "out of memory". Bandwidth
 * and FLOP/s are NVIDIA's: data sheets, and for GeForce the papers on Ampere, Ada and Blackwell,
 * which give bfloat16 with float32 sums apart. Data sheets that count structured sparsity are
 * halved. The link is NVLink where all GPUs of a machine have it, else PCIe with 16 lanes. It is
 * that of one direction, half of what a data sheet says for both. Boards that come with either, such
 * as the A100 40 GB, have PCIe's here. */
#include "devices/known_gpus.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct tune_known_gpu gpus[] = {
    {"rtx-3080-10gb", "GeForce RTX 3080 10 GB", "rtx3080", 9.7, 760e9, 59.5e12, 8, 6, 32e9},
    {"rtx-3060-12gb", "GeForce RTX 3060 12 GB", "rtx3060", 11.7, 360e9, 25.5e12, 8, 6, 32e9},
    {"t4", "T4 16 GB", "", 14.6, 320e9, 0, 7, 5, 16e9},
    {"rtx-5080", "GeForce RTX 5080 16 GB", "rtx508016gb", 15.4, 960e9, 112.6e12, 12, 0, 64e9},
    {"rtx-4080", "GeForce RTX 4080 16 GB", "rtx408016gb", 15.6, 716.8e9, 97.5e12, 8, 9, 32e9},
    {"v100-16gb", "V100 16 GB", "v100pcie16gb v100sxm216gb", 15.7, 900e9, 0, 7, 0, 16e9},
    {"a10g", "A10G 24 GB", "a10g24gb", 21.9, 600e9, 70e12, 8, 6, 32e9},
    {"l4", "L4 24 GB", "l424gb", 22.0, 300e9, 121e12, 8, 9, 32e9},
    {"a10", "A10 24 GB", "a1024gb", 22.0, 600e9, 125e12, 8, 6, 32e9},
    {"rtx-3090", "GeForce RTX 3090 24 GB", "rtx309024gb", 23.6, 936e9, 71e12, 8, 6, 32e9},
    {"rtx-4090", "GeForce RTX 4090 24 GB", "rtx409024gb", 23.6, 1008e9, 165.2e12, 8, 9, 32e9},
    {"rtx-5090", "GeForce RTX 5090 32 GB", "rtx509032gb", 31.3, 1792e9, 209.5e12, 12, 0, 64e9},
    {"v100-32gb", "V100 32 GB", "v100pcie32gb v100sxm232gb", 31.7, 900e9, 0, 7, 0, 16e9},
    {"a100-40gb", "A100 40 GB", "a100pcie40gb a100sxm440gb", 39.3, 1555e9, 312e12, 8, 0, 32e9},
    {"l40", "L40 48 GB", "l4048gb", 44.3, 864e9, 181e12, 8, 9, 32e9},
    {"l40s", "L40S 48 GB", "l40s48gb", 44.3, 864e9, 362e12, 8, 9, 32e9},
    {"rtx-a6000", "RTX A6000 48 GB", "a6000 rtxa600048gb", 47.5, 768e9, 154.8e12, 8, 6, 32e9},
    {"a100-80gb-pcie", "A100 PCIe 80 GB", "a100pcie80gb", 79.1, 1935e9, 312e12, 8, 0, 32e9},
    {"a100-80gb", "A100 SXM 80 GB", "a100sxm480gb a10080gbsxm", 79.1, 2039e9, 312e12, 8, 0, 300e9},
    {"h100-pcie", "H100 PCIe 80 GB", "h100pcie80gb h10080gbpcie", 79.1, 2000e9, 756e12, 9, 0, 64e9},
    {"h100-80gb", "H100 SXM 80 GB", "h100 h100sxm h10080gbsxm h10080gbhbm3", 79.1, 3350e9, 989e12, 9, 0, 450e9},
    {"h100-nvl", "H100 NVL 94 GB", "h100nvl94gb", 93.0, 3900e9, 835e12, 9, 0, 64e9},
    {"h20", "H20 96 GB", "h2096gb", 95.0, 4000e9, 148e12, 9, 0, 450e9},
    {"h200", "H200 SXM 141 GB", "h200sxm h200141gb", 139.7, 4800e9, 989e12, 9, 0, 450e9},
    {"b200", "B200 180 GB", "b200180gb", 178.3, 8000e9, 2250e12, 10, 0, 900e9},
};
enum { GPUS = sizeof gpus / sizeof *gpus, NAME = 96 };

const struct tune_known_gpu *tune_known_gpus(int *count)
{
    *count = GPUS;
    return gpus;
}

/* The letters and digits of a name, in lower case, without its maker's words. */
static void plain_name(const char *name, char plain[NAME])
{
    static const char *const makers[] = {"nvidia", "geforce", "tesla"};
    size_t n = 0;
    for (; *name && n < NAME - 1; name++)
        if (isalnum((unsigned char)*name))
            plain[n++] = (char)tolower((unsigned char)*name);
    plain[n] = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        size_t length = strlen(makers[i]);
        if (!strncmp(plain, makers[i], length))
            memmove(plain, plain + length, strlen(plain + length) + 1);
    }
}

/* True if the word is one of those between the spaces of a list. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == length && !strncmp(list, word, length))
            return true;
    return false;
}

const struct tune_known_gpu *tune_known_gpu(const char *name)
{
    char asked[NAME], known[NAME];
    plain_name(name, asked);
    for (int i = 0; i < GPUS && *asked; i++) {
        plain_name(gpus[i].name, known);
        if (!strcmp(known, asked) || has_word(gpus[i].others, asked))
            return &gpus[i];
    }
    return NULL;
}

int64_t tune_known_gpu_bytes(const struct tune_known_gpu *g)
{
    return (int64_t)(g->gib * (1 << 30));
}

const char *tune_known_gpu_old(const struct tune_known_gpu *g, char *text, size_t size)
{
    *text = 0;
    if (g->major < TUNE_GPU_LEAST_MAJOR)
        snprintf(text, size, "compute capability %d.%d; the kernels need %d.0, for bfloat16", g->major,
                 g->minor, TUNE_GPU_LEAST_MAJOR);
    return text;
}
