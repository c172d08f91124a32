/* reduce.c - the gradients and the sums of a step, added up over the ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/try.h"
#include "devices/record.h"
#include "models/activations.h"

void tune_model_ranks(struct tune_model *m, struct tune_comm *comm)
{
    m->comm = comm && tune_comm_size(comm) > 1 ? comm : NULL;
    m->reduced_from = m->config.layers + 2;
}

/* Each rank adds up its share of values[count], and gets the others' if it wants all. Returns the number of the last collective. */
static int64_t start(struct tune_comm *c, float *values, size_t count, const char *what, bool all, bool on_device)
{
    float *share = values + tune_comm_share(count, tune_comm_rank(c), tune_comm_size(c));
    struct tune_collective add = {.kind = TUNE_REDUCE_SCATTER, .what = what, .from = values, .to = share, .count = count,
                                  .element = sizeof *values, .on_device = on_device};
    struct tune_collective get = {.kind = TUNE_ALL_GATHER, .what = what, .to = values, .count = count, .element = sizeof *values,
                                  .on_device = on_device};
    int64_t number = tune_comm_start(c, &add);
    return number < 0 || !all ? number : tune_comm_start(c, &get);
}

/* Start the gradients of a unit. */
static int start_unit(struct tune_model *m, int unit, float *gradients)
{
    char what[40];
    snprintf(what, sizeof what, "gradients of unit %d", unit);
    for (const struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        if (s->unit != unit)
            continue;
        m->reducing = start(m->comm, gradients + s->gradient, (size_t)s->count, what, m->shard == TUNE_DDP, false);
        TRY(m->reducing);
    }
    return 0;
}

/* The gradients in host memory; NULL: they are on a device of its own. */
static int in_place(struct tune_model *m, float **gradients)
{
    void *host;
    TRY(tune_device_in_place(m->dev, tune_model_state(m, TUNE_GRADIENT).data, &host));
    *gradients = host;
    return 0;
}

int tune_model_reduce_unit(struct tune_model *m, int unit, bool last)
{
    float *gradients;
    if (tune_model_gathers(m))
        return tune_gradients_send(m, unit);
    if (!m->comm || !last)
        return 0;
    TRY(in_place(m, &gradients));
    if (!gradients)
        return 0;
    m->reduced_from = unit;
    return start_unit(m, unit, gradients);
}

/* Gradients that only the device can read go by a copy. */
static int add_up_copy(struct tune_model *m)
{
    struct tune_tensor g = tune_model_state(m, TUNE_GRADIENT);
    int64_t bytes = g.shape[0] * (int64_t)sizeof(float);
    float *copy = tune_zeroed((size_t)g.shape[0], sizeof *copy, "a copy of the gradients");
    int status = copy ? tune_device_download(m->dev, copy, g.data, bytes) : -1;
    if (status == 0)
        status = tune_device_sync(m->dev);
    int64_t number = status == 0 ? start(m->comm, copy, (size_t)g.shape[0], "gradients", true, false) : -1;
    status = number < 0 ? -1 : tune_comm_wait(m->comm, number);
    if (status == 0)
        status = tune_device_upload(m->dev, g.data, copy, bytes);
    free(copy);
    return status;
}

/* NCCL adds them where they are. */
static int add_up_on_device(struct tune_model *m)
{
    struct tune_tensor g = tune_model_state(m, TUNE_GRADIENT);
    int64_t number = start(m->comm, (float *)(uintptr_t)g.data.at, (size_t)g.shape[0], "gradients", true, true);
    return number < 0 ? -1 : tune_comm_wait(m->comm, number);
}

/* Backward has started the units from the last one down to reduced_from. */
static int add_up_gradients(struct tune_model *m)
{
    float *gradients;
    TRY(in_place(m, &gradients));
    if (!gradients)
        return tune_comm_has_device(m->comm) ? add_up_on_device(m) : add_up_copy(m);
    for (int unit = m->reduced_from - 1; unit >= 0; unit--)
        TRY(start_unit(m, unit, gradients));
    m->reduced_from = m->config.layers + 2;
    return tune_comm_wait(m->comm, m->reducing);
}

/* The scalars of the step, and its counts on the host. */
static int add_up_sums(struct tune_model *m, struct tune_record *record)
{
    struct tune_scalars s;
    tune_address at = tune_record_step(record);
    struct tune_done_step *counts = tune_record_counts(record);
    TRY(at.at ? tune_device_download(m->dev, &s, at, sizeof s) : -1);
    TRY(tune_device_sync(m->dev));
    double sums[] = {s.loss_sum, s.labels, s.divisor};
    int64_t whole[] = {counts->rows, counts->tokens, counts->padded_tokens, counts->labels};
    TRY(tune_comm_sum(m->comm, "sums of the step", sums, 3));
    TRY(tune_comm_sum_whole(m->comm, "counts of the step", whole, 4));
    s.loss_sum = sums[0];
    s.labels = sums[1];
    s.divisor = sums[2];
    counts->rows = whole[0];
    counts->tokens = whole[1];
    counts->padded_tokens = whole[2];
    counts->labels = whole[3];
    return tune_device_upload(m->dev, at, &s, sizeof s);
}

int tune_model_reduce(struct tune_model *m, struct tune_record *record)
{
    if (!m->comm)
        return 0;
    tune_device_does(m->dev, TUNE_RANKS, -1, "gradients");
    TRY(tune_model_gathers(m) ? tune_gradients_collect(m) : add_up_gradients(m));
    m->apart = false;
    return record ? add_up_sums(m, record) : 0;
}

bool tune_model_is_apart(const struct tune_model *m)
{
    return m->apart;
}
