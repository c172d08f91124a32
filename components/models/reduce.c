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

/* Arrays that only the device can read, and that no link between devices carries: by a copy on the host. */
static int64_t move_copy(struct tune_model *m, struct tune_collective o, tune_address from, tune_address to)
{
    size_t first = tune_comm_share(o.count, tune_comm_rank(m->comm), tune_comm_size(m->comm)) * o.element;
    int64_t all = (int64_t)(o.count * o.element), own = (int64_t)(tune_comm_share_count(m->comm, o.count) * o.element), number = -1;
    bool adds = o.kind == TUNE_REDUCE_SCATTER;
    char *copy = tune_zeroed(o.count, o.element, "a copy of weights or gradients");
    if (!copy)
        return -1;
    o.from = adds ? copy : NULL;
    o.to = adds ? copy + first : copy;
    tune_address mine = from.at ? from : tune_address_plus(to, (int64_t)first);
    if ((adds ? tune_device_download(m->dev, copy, from, all) : own > 0 ? tune_device_download(m->dev, copy + first, mine, own) : 0) == 0 &&
        tune_device_sync(m->dev) == 0)
        number = tune_comm_start(m->comm, &o);
    if (number >= 0 && tune_comm_wait(m->comm, number) < 0)
        number = -1;
    if (number >= 0 && (!adds || own > 0) && tune_device_upload(m->dev, to, o.to, adds ? own : all) < 0)
        number = -1;
    free(copy);
    return number;
}

int64_t tune_model_move(struct tune_model *m, enum tune_collective_kind kind, const char *what, tune_address from, tune_address to, int64_t words)
{
    struct tune_collective o = {.kind = kind, .what = what, .count = (size_t)words, .element = 4};
    void *there;
    TRY(tune_device_in_place(m->dev, to, &there));
    if (!there && !tune_comm_has_device(m->comm))
        return move_copy(m, o, from, to);
    o.on_device = !there;
    o.to = there ? there : (void *)(uintptr_t)to.at;
    if (from.at && there)
        TRY(tune_device_in_place(m->dev, from, &there));
    o.from = !from.at ? NULL : there ? there : (void *)(uintptr_t)from.at;
    return tune_comm_start(m->comm, &o);
}

/* Each rank adds up its share of values[count], and gets the others' if it wants all. Returns the number of the last collective. */
static int64_t add_up(struct tune_model *m, tune_address values, int64_t count, const char *what, bool all)
{
    int64_t first = (int64_t)tune_comm_share((size_t)count, tune_comm_rank(m->comm), tune_comm_size(m->comm));
    int64_t number = tune_model_move(m, TUNE_REDUCE_SCATTER, what, values, tune_address_plus(values, first * 4), count);
    return number < 0 || !all ? number : tune_model_move(m, TUNE_ALL_GATHER, what, (tune_address){0}, values, count);
}

/* Start the gradients of a unit. */
static int start_unit(struct tune_model *m, int unit)
{
    char what[40];
    snprintf(what, sizeof what, "gradients of unit %d", unit);
    for (const struct span *s = m->spans; s < m->spans + m->span_count; s++)
        if (s->unit == unit)
            TRY(m->reducing = add_up(m, tune_address_plus(m->state[TUNE_GRADIENT], s->gradient * 4), s->count, what, m->shard == TUNE_DDP));
    return 0;
}

/* Say if collectives on the gradients run beside the operations. */
static int run_beside(struct tune_model *m, bool *beside)
{
    void *host;
    *beside = tune_comm_beside_device(m->comm);
    TRY(*beside ? 0 : tune_device_in_place(m->dev, m->state[TUNE_GRADIENT], &host));
    *beside = *beside || host;
    return 0;
}

int tune_model_reduce_unit(struct tune_model *m, int unit, bool last)
{
    bool beside;
    if (tune_model_gathers(m))
        return tune_gradients_send(m, unit);
    if (!m->comm || !last)
        return 0;
    TRY(run_beside(m, &beside));
    if (!beside)
        return 0;
    m->reduced_from = unit;
    return start_unit(m, unit);
}

/* Backward has started the units from the last one down to reduced_from. */
static int add_up_gradients(struct tune_model *m)
{
    bool beside;
    struct tune_tensor g = tune_model_state(m, TUNE_GRADIENT);
    TRY(run_beside(m, &beside));
    if (!beside && m->shard == TUNE_DDP) /* all at once */
        return add_up(m, g.data, g.shape[0], "gradients", true) < 0 ? -1 : 0;
    for (int unit = m->reduced_from - 1; unit >= 0; unit--)
        TRY(start_unit(m, unit));
    m->reduced_from = m->config.layers + 2;
    int64_t number = m->reducing;
    m->reducing = 0;
    return tune_comm_wait(m->comm, number);
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
