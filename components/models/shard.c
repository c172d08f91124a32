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

/* How many elements of a span a rank owns; *first: the first of them. With `shard` fsdp these are the gradients of the weights that
 * it keeps. */
static int64_t share_of(const struct tune_model *m, const struct span *s, int rank, int ranks, int64_t *first)
{
    size_t count = (size_t)s->count;
    if (tune_model_gathers(m)) {
        int64_t at = 0, bytes = tune_rank_weight(m, &m->parameters.at[s->row], rank, ranks, &at, s->count * 4);
        *first = bytes > 0 ? at / 4 : 0;
        return bytes / 4;
    }
    *first = (int64_t)tune_comm_share(count, rank, ranks);
    return (int64_t)tune_comm_share(count, rank + 1, ranks) - *first;
}

/* Find the rank's share of each span, and the size of its buffers. */
static void share_spans(struct tune_model *m, int rank, int ranks)
{
    m->owned = 0;
    for (struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        s->own = share_of(m, s, rank, ranks, &s->first);
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
        (first->adapter ? &m->units[first->unit].adapters : &m->units[first->unit].weights)->trained = true;
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
    return tune_address_plus(tune_model_weight_at(m, p), (gradient - s->gradient) * 4);
}

struct tune_tensor tune_model_owned(struct tune_model *m, int kind, int64_t first, int64_t count)
{
    const struct span *s = span_at(m, first);
    tune_address data = {0};
    if (kind == TUNE_WEIGHT && tune_model_gathers(m))
        data = tune_own_weight(m, &m->parameters.at[s->row], (first - s->gradient) * 4);
    else if (kind == TUNE_WEIGHT)
        data = tune_unit_taken(m, s->unit) ? weight_at(m, s, first) : data;
    else if (m->state[kind].at)
        data = tune_address_plus(m->state[kind], 4 * (m->sharded[kind] ? s->at + first - s->gradient - s->first : first));
    return tune_tensor_1d(data, TUNE_F32, count);
}

static int64_t longest_span(const struct tune_model *m)
{
    int64_t most = 0;
    for (int i = 0; i < m->span_count; i++)
        most = m->spans[i].count > most ? m->spans[i].count : most;
    return most;
}

/* Fill in the bytes. m has a table, units and spans, and no memory. */
static void add_bytes(struct tune_model_shares *bytes, struct tune_model *m, bool shared)
{
    const struct tune_parameters *p = &m->parameters;
    *bytes = (struct tune_model_shares){.weights = p->weights + p->adapters, .gradients = p->gradients * 4, .owned = 4 * (shared ? m->owned : p->gradients),
                                        .reduced = shared ? longest_span(m) : p->gradients};
    bytes->copied = 4 * bytes->reduced;
    if (!tune_model_gathers(m))
        return;
    bytes->weights = m->own_bytes[TUNE_PART_BASE] + (m->lora ? m->own_bytes[TUNE_PART_ADAPTERS] : 0);
    bytes->gradients = bytes->owned;
    bytes->gathered = tune_slots_bytes(m, false) + tune_slots_bytes(m, true);
    bytes->reduced = tune_slots_reduced(m, true);
    bytes->copied = 4 * tune_slots_reduced(m, false);
}

int tune_model_shares(struct tune_model_shares *bytes, const struct tune_model_config *config, const struct tune_model_adapted *adapted,
                      enum tune_shard shard, int rank, int ranks)
{
    bool shared = shard != TUNE_DDP && ranks > 1;
    struct tune_model m = {.config = *config, .shard = shared ? shard : TUNE_DDP};
    int status = tune_parameters_new(&m.parameters, config);
    if (status == 0 && adapted)
        status = tune_parameters_freeze(&m.parameters, adapted->storage);
    if (status == 0 && adapted)
        status = tune_lora_plan(&m.lora, &m.parameters, adapted->lora, 0, config->layers);
    if (status == 0)
        status = tune_unit_find(&m);
    if (status == 0 && tune_model_gathers(&m))
        tune_slots_share(&m, rank, ranks);
    if (status == 0)
        status = find(&m, rank, ranks);
    if (status == 0)
        add_bytes(bytes, &m, shared);
    tune_lora_free(m.lora, NULL);
    tune_parameters_free(&m.parameters);
    free(m.units);
    free(m.spans);
    return status;
}

/* ---- what is shared out ---- */

int tune_model_shard(struct tune_model *m, enum tune_shard shard)
{
    if (shard == TUNE_DDP || !m->comm || (shard == TUNE_FSDP && m->shard == TUNE_FSDP))
        return 0;
    if (shard == TUNE_FSDP || m->shard == TUNE_FSDP)
        return tune_error_set("tune_model_shard: with `shard` fsdp weights are shared out as they are read; call tune_model_load_shared");
    if (m->state[TUNE_GRADIENT].at)
        return tune_error_set("tune_model_shard: call it before there are gradients");
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
    if (m->shard == TUNE_DDP)
        return 0;
    if (tune_model_gathers(m))
        return tune_slot_drop(m, unit);
    snprintf(what, sizeof what, "weights of unit %d", unit);
    TRY(tune_unit_take(m, unit));
    int64_t number = 0;
    for (const struct span *s = m->spans; s < m->spans + m->span_count && number >= 0; s++)
        if (s->unit == unit)
            number = m->sharing = tune_model_move(m, TUNE_ALL_GATHER, what, (tune_address){0}, weight_at(m, s, s->gradient), s->count);
    return tune_unit_done(m, unit, number < 0 ? -1 : 0);
}

int tune_model_shared(struct tune_model *m)
{
    int64_t number = m->sharing;
    m->sharing = 0;
    return m->shard == TUNE_DDP ? 0 : tune_comm_wait(m->comm, number);
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

enum request_kind { END, READ, READ_WEIGHT, GATHER, EXCHANGE };
struct request {
    int32_t what, row, kind, spare;
    int64_t at, n;
};

/* Rank 0 tells the others what it needs; they come here, too. */
static int pass_request(struct tune_model *m, struct request *r, const char *what)
{
    struct tune_collective tell = {.kind = TUNE_BROADCAST, .what = what, .to = r, .count = 1, .element = sizeof *r};
    return tune_comm_do(m->comm, &tell);
}

static int ask(struct tune_model *m, struct request r)
{
    return m->alone ? pass_request(m, &r, "what rank 0 needs") : 0;
}

void tune_model_alone(struct tune_model *m)
{
    m->alone = m->shard != TUNE_DDP;
    if (m->comm)
        tune_comm_alone(m->comm, true);
}

/* Do one thing that rank 0 asked for. room: TUNE_PIECE floats. */
static int do_request(struct tune_model *m, const struct request *r, float *room)
{
    switch (r->what) {
    case READ: return tune_shard_read(m, &m->parameters.at[r->row], r->kind, r->at, r->n, room);
    case READ_WEIGHT: return tune_shard_read_weight(m, &m->parameters.at[r->row], r->at, r->n, room);
    case GATHER: return tune_slot_take(m, r->row);
    default: return tune_model_exchange(m);
    }
}

/* Do what rank 0 asks for, until it needs no more. */
static int serve(struct tune_model *m)
{
    struct request r = {0};
    float *room = tune_zeroed(TUNE_PIECE, sizeof *room, "numbers for rank 0");
    int status = room ? pass_request(m, &r, "what rank 0 needs") : -1;
    while (status == 0 && r.what != END) {
        status = do_request(m, &r, room);
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
    if (tune_comm_rank(comm) == 0)
        tune_comm_alone(comm, false);
    if (m->shard == TUNE_DDP)
        return tune_comm_barrier(comm, what);
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

int tune_shard_gather(struct tune_model *m, int unit)
{
    return ask(m, (struct request){.what = GATHER, .row = unit});
}

/* ---- reading and writing ---- */

/* How many of the n numbers from element `at` of p a rank owns. *from: the first of them, counted from `at`. */
static int64_t part_of(const struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t n, int rank, int64_t *from)
{
    const struct span *s = span_at(m, p->gradient);
    int64_t begin = p->gradient + at, first, own = share_of(m, s, rank, tune_comm_size(m->comm), &first);
    first += s->gradient;
    int64_t end = first + own, last = begin + n < end ? begin + n : end;
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

/* At most 4 TUNE_PIECE bytes. */
static int read_weight_piece(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t bytes, char *out)
{
    int size = tune_comm_size(m->comm);
    int64_t number = 0;
    TRY(ask(m, (struct request){.what = READ_WEIGHT, .row = (int32_t)(p - m->parameters.at), .at = at, .n = bytes}));
    for (int r = 0; r < size; r++) {
        int64_t first = at, own = tune_rank_weight(m, p, r, size, &first, bytes);
        struct tune_collective send = {.kind = TUNE_BROADCAST, .what = p->name, .to = out + first - at, .count = (size_t)own, .element = 1, .root = r};
        if (own == 0)
            continue;
        if (r == tune_comm_rank(m->comm)) {
            TRY(tune_device_download(m->dev, send.to, tune_own_weight(m, p, first), own));
            TRY(tune_device_sync(m->dev));
        }
        TRY(number = tune_comm_start(m->comm, &send));
    }
    return tune_comm_wait(m->comm, number);
}

int tune_shard_read_weight(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t bytes, void *out)
{
    int64_t most = TUNE_PIECE * (int64_t)sizeof(float);
    for (int64_t i = 0; i < bytes; i += most)
        TRY(read_weight_piece(m, p, at + i, bytes - i < most ? bytes - i : most, (char *)out + i));
    return 0;
}
