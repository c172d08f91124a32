/* many.c - a run that several GPUs of one machine share, by arithmetic: what each of them holds, and
 * what they send each other. */
#include "fit.h"

#include <math.h>
#include <string.h>

#include "profilers/roofline.h"

static int64_t bytes_of(const struct tune_memory_plan *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->parts[i].name, name))
            return p->parts[i].bytes;
    return 0;
}

static bool is_sharded(const struct fit_flags *my)
{
    return my->gpus > 1 && !strcmp(my->shard, "fsdp");
}

enum tune_shard fit_shard_of(const struct fit_flags *my)
{
    return is_sharded(my) ? TUNE_FSDP : my->gpus > 1 && !strcmp(my->shard, "optimizer") ? TUNE_SHARD_OPTIMIZER : TUNE_DDP;
}

double fit_sent(const struct fit_run *r, const struct tune_memory_plan *whole)
{
    double gpus = r->my->gpus, gradients = (double)bytes_of(whole, "gradients"), weights = (double)bytes_of(whole, "weights");
    return (gpus - 1) / gpus * (is_sharded(r->my) ? 2 * weights + gradients : 2 * gradients);
}

double fit_speed(const struct fit_run *r, int batch, const struct tune_memory_plan *whole)
{
    struct tune_memory_plan moved = *whole; /* each updates its share */
    for (int i = 0; i < moved.count && fit_shard_of(r->my) != TUNE_DDP; i++)
        if (!strcmp(moved.parts[i].name, "moments") || !strcmp(moved.parts[i].name, "averages"))
            moved.parts[i].bytes /= r->my->gpus;
    struct tune_roofline_run run = {r->config, &moved, batch, r->length, r->method != FULL, r->method == QLORA,
                                    r->my->tune.activation_checkpointing != 0};
    double one = r->my->dtype == TUNE_BF16 ? tune_roofline_speed(&run, r->gpu->known) : 0, tokens = (double)batch * r->length;
    if (one <= 0 || r->my->gpus == 1)
        return one > 0 ? one : NAN;
    return r->my->gpus * tokens / (tokens / one + fit_sent(r, whole) / (FIT_LINK * r->gpu->known->link));
}

const char *fit_shard(const struct fit_flags *my)
{
    return my->gpus > 1 ? my->shard : "";
}

void fit_note_gpus(const struct fit_flags *my, bool speed, int width)
{
    if (my->gpus == 1) {
        fit_note(width, "These are figures of one GPU. --gpus N says by arithmetic what N of them would do.");
        return;
    }
    fit_note(width, "%d GPUs of one machine, --shard %s: figures of memory, batch and length are of each GPU; a step has %d times its rows. "
             "This is arithmetic for --ranks %d. No such run was done.", my->gpus, my->shard, my->gpus, my->gpus);
    if (is_sharded(my))
        fit_note(width, "Each GPU has 1/%d of weights, gradients and moments. Besides, it has room for two layers, and for the embedding or the "
                 "output projection, each with its gradients. Buffers of NCCL do not count.", my->gpus);
    else
        fit_note(width, "Each GPU has all weights and gradients, and %s moments. Buffers of NCCL do not count.",
                 fit_shard_of(my) == TUNE_DDP ? "all" : "its share of the");
    if (speed && my->dtype == TUNE_BF16)
        fit_note(width, "~tokens/s is of all %d together. After the step of one GPU, each sends %s at %g x the link of its data sheet, NVLink or "
                 "PCIe; that share is assumed. What is sent while it computes is counted, too, so it may be faster; several machines are slower.",
                 my->gpus, is_sharded(my) ? "(N - 1) / N of the weights at most twice, and of the gradients once," : "2 (N - 1) / N of the gradients", FIT_LINK);
}
