/* shard.c - what a rank owns of the trained numbers, and work of rank 0 that needs what the others own. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/try.h"
#include "devices/ops.h"
#include "devices/record.h"
#include "models/activations.h"
#include "models/weights.h"

enum { ELEMENTS = 16 }; /* each owned part begins on 64 bytes */

/* ---- spans ---- */

/* Find the rank's share of each span, and the size of its buffers. */
static void share_spans(struct tune_model *m, int rank, int ranks)
{
    m->owned = 0;
    for (struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        size_t count = (size_t)s->count;
        s->first = (int64_t)tune_comm_share(count, rank, ranks);
        s->own = (int64_t)tune_comm_share(count, rank + 1, ranks) - s->first;
        s->at = m->owned;
        m->owned += (s->own + ELEMENTS - 1) / ELEMENTS * ELEMENTS;
    }
    m->owned = m->owned > 0 ? m->owned : ELEMENTS; /* a rank that owns nothing has a buffer, too */
}

static int find(struct tune_model *m, int rank, int ranks)
{
    const struct tune_parameters *p = &m->parameters;
    free(m->spans);
    m->span_count = 0;
    m->spans = tune_zeroed((size_t)p->count, sizeof *m->spans, "a model");
    for (int i = 0, next; m->spans && i < p->count; i = next) {
        const struct tune_parameter *first = &p->at[i];
        int64_t end = first->gradient + first->count;
        next = i + 1;
        if (first->gradient < 0)
            continue;
        for (; next < p->count && p->at[next].unit == first->unit && p->at[next].gradient >= 0 && p->at[next].adapter == first->adapter; next++)
            end = p->at[next].gradient + p->at[next].count;
        m->spans[m->span_count++] = (struct span){.unit = first->unit, .row = i, .gradient = first->gradient, .count = end - first->gradient};
    }
    TRY(m->spans ? 0 : -1);
    share_spans(m, rank, ranks);
    return 0;
}

int tune_spans_find(struct tune_model *m)
{
    bool shared = m->shard != TUNE_DDP;
    return find(m, shared ? tune_comm_rank(m->comm) : 0, shared ? tune_comm_size(m->comm) : 1);
}

/* The span with that element of the gradient buffer. */
static const struct span *span_at(const struct tune_model *m, int64_t gradient)
{
    const struct span *s = m->spans;
    while (s + 1 < m->spans + m->span_count && s[1].gradient <= gradient)
        s++;
    return s;
}

void tune_model_own(const struct tune_model *m, int64_t *first, int64_t *count)
{
    const struct span *s = span_at(m, *first);
    int64_t begin = s->gradient + s->first, end = begin + s->own, last = *first + *count;
    *first = *first > begin ? *first : begin;
    *count = (last < end ? last : end) - *first;
    *count = *count > 0 ? *count : 0;
}

/* The weight of a span's element. */
static tune_address weight_at(const struct tune_model *m, const struct span *s, int64_t gradient)
{
    const struct tune_parameter *p = &m->parameters.at[s->row];
    return tune_address_plus(p->adapter ? m->adapters : m->weights, p->offset + (gradient - s->gradient) * 4);
}

struct tune_tensor tune_model_owned(struct tune_model *m, int kind, int64_t first, int64_t count)
{
    const struct span *s = span_at(m, first);
    tune_address data = {0};
    if (kind == TUNE_WEIGHT)
        data = tune_unit_taken(m, s->unit) ? weight_at(m, s, first) : data;
    else if (m->state[kind].at)
        data = tune_address_plus(m->state[kind], 4 * (m->sharded[kind] ? s->at + first - s->gradient - s->first : first));
    return tune_tensor_1d(data, TUNE_F32, count);
}

int64_t tune_model_owned_bytes(const struct tune_model_config *config, const struct tune_model_adapted *adapted, enum tune_shard shard,
                               int rank, int ranks)
{
    struct tune_model m = {.config = *config};
    int status = tune_parameters_new(&m.parameters, config);
    if (status == 0 && adapted)
        status = tune_parameters_freeze(&m.parameters, adapted->storage);
    if (status == 0 && adapted)
        status = tune_lora_plan(&m.lora, &m.parameters, adapted->lora, 0, config->layers);
    if (status == 0)
        status = find(&m, rank, ranks);
    int64_t bytes = 4 * (shard == TUNE_DDP || ranks == 1 ? m.parameters.gradients : m.owned);
    tune_lora_free(m.lora, NULL);
    tune_parameters_free(&m.parameters);
    free(m.spans);
    return status < 0 ? -1 : bytes;
}

/* ---- what is shared out ---- */

int tune_model_shard(struct tune_model *m, enum tune_shard shard)
{
    void *host;
    if (shard == TUNE_FSDP)
        return tune_error_usage("`shard` fsdp is not built yet: weights and gradients are whole on each rank. `shard` optimizer shares out "
                                "moments and averages");
    if (shard == TUNE_DDP || !m->comm)
        return 0;
    if (m->state[TUNE_GRADIENT].at)
        return tune_error_set("tune_model_shard: call it before there are gradients");
    TRY(tune_device_in_place(m->dev, m->weights, &host));
    if (!host)
        return tune_error_usage("`shard` is built for the CPU, and this model is on %s; take `shard` ddp", m->dev->name);
    m->shard = shard;
    return 0;
}

bool tune_model_is_sharded(const struct tune_model *m)
{
    return m->shard != TUNE_DDP;
}

int tune_model_share_unit(struct tune_model *m, int unit)
{
    char what[40];
    void *host;
    if (m->shard == TUNE_DDP)
        return 0;
    snprintf(what, sizeof what, "weights of unit %d", unit);
    for (const struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        if (s->unit != unit)
            continue;
        TRY(tune_device_in_place(m->dev, weight_at(m, s, s->gradient), &host));
        struct tune_collective get = {.kind = TUNE_ALL_GATHER, .what = what, .to = host, .count = (size_t)s->count, .element = sizeof(float)};
        TRY(m->sharing = tune_comm_start(m->comm, &get));
    }
    return 0;
}

int tune_model_shared(struct tune_model *m)
{
    return m->shard == TUNE_DDP ? 0 : tune_comm_wait(m->comm, m->sharing);
}

int tune_model_sum_squares(struct tune_model *m, tune_address step)
{
    struct tune_tensor all = tune_model_state(m, TUNE_GRADIENT), sum = TUNE_SCALAR(step, square_sum);
    double squares;
    if (m->shard == TUNE_DDP)
        return tune_sum_squares(m->dev, step, &all);
    for (const struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        struct tune_tensor own = tune_model_owned(m, TUNE_GRADIENT, s->gradient + s->first, s->own);
        TRY(s->own > 0 ? tune_sum_squares(m->dev, step, &own) : 0);
    }
    TRY(tune_device_download(m->dev, &squares, sum.data, sizeof squares));
    TRY(tune_device_sync(m->dev));
    TRY(tune_comm_sum(m->comm, "squares of the gradients", &squares, 1));
    return tune_device_upload(m->dev, sum.data, &squares, sizeof squares);
}

/* ---- work of rank 0 alone ---- */

enum request_kind { END, READ, EXCHANGE };
struct request {
    int32_t what, row, kind, spare;
    int64_t at, n;
};

/* Rank 0 tells the others what it needs; they come here, too. */
static int pass_request(struct tune_model *m, struct request *r, const char *what)
{
    struct tune_collective tell = {.kind = TUNE_BROADCAST, .what = what, .to = r, .count = 1, .element = sizeof *r};
    TRY(tune_comm_await(m->comm, what));
    return tune_comm_do(m->comm, &tell);
}

static int ask(struct tune_model *m, struct request r)
{
    return m->alone ? pass_request(m, &r, "what rank 0 needs") : 0;
}

void tune_model_alone(struct tune_model *m)
{
    m->alone = m->shard != TUNE_DDP;
}

/* Do what rank 0 asks for, until it needs no more. */
static int serve(struct tune_model *m)
{
    struct request r = {0};
    float *room = tune_zeroed(TUNE_PIECE, sizeof *room, "numbers for rank 0");
    int status = room ? pass_request(m, &r, "what rank 0 needs") : -1;
    while (status == 0 && r.what != END) {
        status = r.what == READ ? tune_shard_read(m, &m->parameters.at[r.row], r.kind, r.at, r.n, room) : tune_model_exchange(m);
        if (status == 0)
            status = pass_request(m, &r, "what rank 0 needs");
    }
    free(room);
    return status;
}

int tune_model_together(struct tune_model *m, struct tune_comm *comm, const char *what)
{
    if (!comm)
        return 0;
    if (m->shard == TUNE_DDP)
        return tune_comm_await(comm, what);
    if (tune_comm_rank(m->comm) > 0)
        return serve(m);
    TRY(ask(m, (struct request){.what = END}));
    m->alone = false;
    return 0;
}

int tune_shard_exchange(struct tune_model *m)
{
    return ask(m, (struct request){.what = EXCHANGE});
}

/* ---- reading and writing ---- */

/* How many of the n numbers from element `at` of p a rank owns. *from: the first of them, counted from `at`. */
static int64_t part_of(const struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t n, int rank, int64_t *from)
{
    const struct span *s = span_at(m, p->gradient);
    size_t count = (size_t)s->count;
    int ranks = tune_comm_size(m->comm);
    int64_t begin = p->gradient + at, first = s->gradient + (int64_t)tune_comm_share(count, rank, ranks);
    int64_t end = s->gradient + (int64_t)tune_comm_share(count, rank + 1, ranks), last = begin + n < end ? begin + n : end;
    first = first > begin ? first : begin;
    *from = first - begin;
    return last > first ? last - first : 0;
}

/* At most TUNE_PIECE numbers. Each rank sends what it owns of them. */
static int read_piece(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, float *out)
{
    int rank = tune_comm_rank(m->comm);
    int64_t from, own = part_of(m, p, at, n, rank, &from), number = 0;
    TRY(ask(m, (struct request){.what = READ, .row = (int32_t)(p - m->parameters.at), .kind = kind, .at = at, .n = n}));
    if (own > 0) {
        struct tune_tensor part = tune_model_owned(m, kind, p->gradient + at + from, own);
        TRY(tune_device_download(m->dev, out + from, part.data, own * 4));
        TRY(tune_device_sync(m->dev));
    }
    for (int r = 0; r < tune_comm_size(m->comm); r++) {
        int64_t count = part_of(m, p, at, n, r, &from);
        struct tune_collective send = {.kind = TUNE_BROADCAST, .what = p->name, .to = out + from, .count = (size_t)count,
                                       .element = sizeof *out, .root = r};
        TRY(count > 0 ? number = tune_comm_start(m->comm, &send) : 0);
    }
    return tune_comm_wait(m->comm, number);
}

int tune_shard_read(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += TUNE_PIECE)
        TRY(read_piece(m, p, kind, at + i, n - i < TUNE_PIECE ? n - i : TUNE_PIECE, out + i));
    return 0;
}

int tune_shard_write(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, const float *in)
{
    int64_t from, own = part_of(m, p, at, n, tune_comm_rank(m->comm), &from);
    struct tune_tensor part = tune_model_owned(m, kind, p->gradient + at + from, own);
    return own > 0 ? tune_device_upload(m->dev, part.data, in + from, own * 4) : 0;
}
