/* many.c - a run that several GPUs of one machine share, by arithmetic: what each of them holds, and
 * what they send each other. */
#include "fit.h"

#include <math.h>
#include <string.h>

#include "core/try.h"
#include "profilers/roofline.h"

static int64_t *find_part(struct tune_memory_plan *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->parts[i].name, name))
            return &p->parts[i].bytes;
    return NULL;
}

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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes of a unit: of a layer, and of the embedding or the output projection. */
struct unit_bytes {
    int64_t layer, end;
};

/* less: the bytes of the same model with a layer less; 0: it has only one. */
static struct unit_bytes split(const struct tune_model_config *config, int64_t all, int64_t less)
{
    struct unit_bytes u;
    if (config->layers < 2) /* at most everything */
        return (struct unit_bytes){all, all};
    u.layer = all - less;
    int64_t ends = all - config->layers * u.layer;
    u.end = config->tied ? ends : (ends + 1) / 2;
    return u;
}

/* Room for what is whole at a time: the weights of one unit and of the next one, and the gradients of
 * one. */
static int gathered(const struct fit_run *r, int batch, int length, const struct tune_memory_plan *p, int64_t *bytes)
{
    struct tune_memory_plan less = {0};
    struct tune_model_config config = *r->config;
    struct fit_run shorter = *r;
    if (config.layers > 1) {
        config.layers--;
        shorter.config = &config;
        TRY(fit_plan_whole(&shorter, batch, length, &less));
    }
    int64_t weights = bytes_of(p, "weights"), gradients = bytes_of(p, "gradients");
    struct unit_bytes w = split(r->config, weights, bytes_of(&less, "weights"));
    struct unit_bytes g = split(r->config, gradients, bytes_of(&less, "gradients"));
    int64_t two = w.layer + larger(w.layer, w.end);
    *bytes = (two < weights ? two : weights) + larger(g.layer, g.end);
    return 0;
}

int fit_share(const struct fit_run *r, int batch, int length, struct tune_memory_plan *p)
{
    static const char *const shared[] = {"weights", "gradients", "moments", "averages"};
    int64_t whole, gpus = r->my->gpus;
    if (!is_sharded(r->my))
        return 0;
    TRY(gathered(r, batch, length, p, &whole));
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        int64_t *bytes = find_part(p, shared[i]);
        int64_t rest = bytes ? *bytes - (*bytes + gpus - 1) / gpus : 0;
        if (bytes)
            *bytes -= rest;
        p->device -= rest;
        p->total -= rest;
    }
    if (p->count == TUNE_MEMORY_PARTS)
        return tune_error_set("a memory plan has more than %d parts", TUNE_MEMORY_PARTS);
    p->parts[p->count++] = (struct tune_memory_part){FIT_GATHERED, whole, true};
    p->device += whole;
    p->total += whole;
    return 0;
}

double fit_sent(const struct fit_run *r, const struct tune_memory_plan *whole)
{
    double gpus = r->my->gpus, gradients = (double)bytes_of(whole, "gradients"), weights = (double)bytes_of(whole, "weights");
    return (gpus - 1) / gpus * (is_sharded(r->my) ? 2 * weights + gradients : 2 * gradients);
}

double fit_speed(const struct fit_run *r, int batch, const struct tune_memory_plan *whole)
{
    struct tune_memory_plan moved = *whole; /* each updates its share */
    for (int i = 0; i < moved.count && is_sharded(r->my); i++)
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
        fit_note(width, "A run uses one GPU so far. --gpus N says by arithmetic what N of them would do.");
        return;
    }
    fit_note(width, "%d GPUs of one machine, --shard %s: figures of memory, batch and length are of each GPU; a step has %d times its rows. "
             "This is arithmetic. No such run was done, and recipes train on one GPU so far.", my->gpus, my->shard, my->gpus);
    if (is_sharded(my))
        fit_note(width, "Each GPU has 1/%d of weights, gradients and moments. Besides, it holds the whole weights of two units at a time, "
                 "and the whole gradients of one. A unit is a layer or the embedding. Buffers of NCCL do not count.", my->gpus);
    else
        fit_note(width, "Each GPU has all weights, gradients and moments. Buffers of NCCL do not count.");
    if (speed && my->dtype == TUNE_BF16)
        fit_note(width, "~tokens/s is of all %d together. After the step of one GPU, each sends %s at %g x the link of its data sheet, NVLink or "
                 "PCIe; that share is assumed. Nothing is sent while it computes, and several machines are slower.",
                 my->gpus, is_sharded(my) ? "(N - 1) / N of the weights twice and of the gradients once" : "2 (N - 1) / N of the gradients", FIT_LINK);
}
