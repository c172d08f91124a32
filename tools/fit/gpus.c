/* gpus.c - the GPUs that --gpu and --gpu-memory name, and all that are known. */
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/print.h"
#include "core/try.h"

int fit_gpus_list(void)
{
    int count;
    const struct tune_known_gpu *gpus = tune_known_gpus(&count);
    char old[128];
    for (int i = 0; i < count; i++)
        printf("%-16s%6.1f GiB  %s%s\n", gpus[i].name, gpus[i].gib, gpus[i].title,
               *tune_known_gpu_old(&gpus[i], old, sizeof old) ? " (too old)" : "");
    return ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

static int unknown_gpu(const char *name)
{
    int count;
    const struct tune_known_gpu *gpus = tune_known_gpus(&count);
    char all[512] = "";
    for (int i = 0; i < count; i++)
        tune_append(all, sizeof all, "%s%s", i ? ", " : "", gpus[i].name);
    return tune_error_usage("--gpu %s: known are %s. For another: --gpu-memory 24GiB", name, all);
}

static void set_known(struct fit_gpu *gpu, const struct tune_known_gpu *known)
{
    snprintf(gpu->name, sizeof gpu->name, "%s", known->name);
    gpu->bytes = tune_known_gpu_bytes(known);
    gpu->known = known;
}

static int named_gpu(const char *name, struct fit_gpu *gpu)
{
    const struct tune_known_gpu *known = tune_known_gpu(name);
    if (!known)
        return unknown_gpu(name);
    set_known(gpu, known);
    return 0;
}

/* "24GiB", "24 GB", "24564MiB" */
static int sized_gpu(const char *text, struct fit_gpu *gpu)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"GB", 1e9}, {"MB", 1e6}, {"TiB", 0x1p40}};
    char *end;
    double n = strtod(text, &end);
    bool number = end > text && isfinite(n) && n > 0;
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (number && !strcasecmp(end, units[i].unit) && n * units[i].bytes < 0x1p60) {
            snprintf(gpu->name, sizeof gpu->name, "%.40s", text);
            gpu->bytes = (int64_t)(n * units[i].bytes);
            gpu->known = NULL;
            return 0;
        }
    return tune_error_usage("--gpu-memory %s: expected a number and GiB, MiB, GB or MB, such as 24GiB", text);
}

/* Read a list of --gpu or --gpu-memory. */
static int read_list(const char *list, int (*read)(const char *, struct fit_gpu *), struct fit_gpu *gpus, int *count)
{
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (*count == MOST_GPUS)
            return tune_error_usage("at most %d GPUs", MOST_GPUS);
        TRY(read(word, &gpus[*count]));
        for (int i = 0; i < *count; i++)
            if (!strcmp(gpus[i].name, gpus[*count].name))
                return tune_error_usage("the GPU %s is named twice: as %s, too", gpus[i].name, word);
        ++*count;
    }
    return 0;
}

int fit_gpus_read(const struct fit_flags *my, struct fit_gpu *gpus)
{
    int count = 0;
    TRY(read_list(my->gpu, named_gpu, gpus, &count));
    TRY(read_list(my->memory, sized_gpu, gpus, &count));
    return count;
}

static int by_memory(const void *a, const void *b)
{
    const struct fit_gpu *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->known->tensor_flops != y->known->tensor_flops)
        return x->known->tensor_flops < y->known->tensor_flops ? -1 : 1;
    return x->known->bandwidth < y->known->bandwidth ? -1 : x->known->bandwidth > y->known->bandwidth;
}

int fit_gpus_all(struct fit_gpu *gpus)
{
    int count;
    const struct tune_known_gpu *known = tune_known_gpus(&count);
    for (int i = 0; i < count; i++)
        set_known(&gpus[i], &known[i]);
    qsort(gpus, (size_t)count, sizeof *gpus, by_memory);
    return count;
}
