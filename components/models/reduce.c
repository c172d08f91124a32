/* reduce.c - the gradients and the sums of a step, added up over the ranks. */
#include <stdlib.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/try.h"
#include "devices/record.h"
#include "models/activations.h"

void tune_model_ranks(struct tune_model *m, struct tune_comm *comm)
{
    m->comm = comm && tune_comm_size(comm) > 1 ? comm : NULL;
}

/* Each rank adds up its share, and gets the others'. */
static int add_up(struct tune_comm *c, float *values, size_t count)
{
    float *share = values + tune_comm_share(count, tune_comm_rank(c), tune_comm_size(c));
    struct tune_collective add = {.kind = TUNE_REDUCE_SCATTER, .what = "gradients", .from = values, .to = share, .count = count,
                                  .element = sizeof *values};
    struct tune_collective get = {.kind = TUNE_ALL_GATHER, .what = "gradients", .to = values, .count = count, .element = sizeof *values};
    TRY(tune_comm_do(c, &add));
    return tune_comm_do(c, &get);
}

/* The same for numbers that only the device can read: by a copy. */
static int add_up_copy(struct tune_model *m, const struct tune_tensor *g)
{
    int64_t bytes = g->shape[0] * (int64_t)sizeof(float);
    float *copy = tune_zeroed((size_t)g->shape[0], sizeof *copy, "a copy of the gradients");
    int status = copy ? tune_device_download(m->dev, copy, g->data, bytes) : -1;
    if (status == 0)
        status = tune_device_sync(m->dev);
    if (status == 0)
        status = add_up(m->comm, copy, (size_t)g->shape[0]);
    if (status == 0)
        status = tune_device_upload(m->dev, g->data, copy, bytes);
    free(copy);
    return status;
}

static int add_up_gradients(struct tune_model *m)
{
    void *host;
    struct tune_tensor g = tune_model_state(m, TUNE_GRADIENT);
    TRY(tune_device_in_place(m->dev, g.data, &host));
    return host ? add_up(m->comm, host, (size_t)g.shape[0]) : add_up_copy(m, &g);
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
    TRY(add_up_gradients(m));
    return record ? add_up_sums(m, record) : 0;
}
