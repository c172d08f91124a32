/* slots.c - `shard` fsdp: each rank keeps its share of each unit's weights and gradients. A unit is whole in a slot while it is used.
 *
 * Weights come into a slot by an all_gather, and stay until the slot is needed for another unit, or until they change. So what a
 * pass leaves there serves the next one. Gradients begin as zeros, and leave by a reduce_scatter. Each rank then adds its share of
 * their sum to what it keeps. All ranks use the slots in the same order. */
#include <stdio.h>

#include "comm/comm.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"

enum { BYTES = 64, WORD = 4 }; /* alignment of each part; shares are counted in words */

static int64_t align(int64_t bytes)
{
    return (bytes + BYTES - 1) / BYTES * BYTES;
}

static struct unit_part *part(const struct tune_model *m, int unit, int k)
{
    return k ? &m->units[unit].adapters : &m->units[unit].weights;
}

static size_t words(const struct unit_part *p)
{
    return (size_t)(p->bytes + WORD - 1) / WORD;
}

/* Two layers that follow each other have two slots. An untied output projection comes when the embedding is not needed any more. */
static int slot_of(const struct tune_model *m, int unit)
{
    if (unit > 0 && unit <= m->config.layers)
        return unit & 1;
    return unit == 0 || !m->config.tied ? 2 : 3;
}

bool tune_model_gathers(const struct tune_model *m)
{
    return m->shard == TUNE_FSDP;
}

/* ---- memory ---- */

void tune_slots_share(struct tune_model *m, int rank, int ranks)
{
    for (int k = 0; k < TUNE_PARTS; k++) {
        m->own_bytes[k] = 0;
        for (int unit = 0; unit < m->config.layers + 2; unit++) {
            struct unit_part *p = part(m, unit, k);
            p->first = (int64_t)tune_comm_share(words(p), rank, ranks);
            p->own = (int64_t)tune_comm_share(words(p), rank + 1, ranks) - p->first;
            p->at = m->own_bytes[k];
            m->own_bytes[k] += align(p->own * WORD);
        }
        m->own_bytes[k] = m->own_bytes[k] > 0 ? m->own_bytes[k] : BYTES; /* a rank that owns nothing has a buffer, too */
    }
}

/* The bytes of each slot, for weights or for gradients. Returns their sum. */
static int64_t slot_bytes(const struct tune_model *m, int k, bool gradients, int64_t bytes[TUNE_SLOTS])
{
    int64_t sum = 0;
    for (int i = 0; i < TUNE_SLOTS; i++)
        bytes[i] = 0;
    for (int unit = 0; unit < m->config.layers + 2; unit++) {
        const struct unit_part *p = part(m, unit, k);
        int64_t need = gradients && !p->trained ? 0 : align((int64_t)words(p) * WORD), *most = &bytes[slot_of(m, unit)];
        *most = need > *most ? need : *most;
    }
    for (int i = 0; i < TUNE_SLOTS; i++)
        sum += bytes[i];
    return sum;
}

int64_t tune_slots_bytes(const struct tune_model *m, bool gradients)
{
    int64_t bytes[TUNE_SLOTS];
    return slot_bytes(m, TUNE_PART_BASE, gradients, bytes) + slot_bytes(m, TUNE_PART_ADAPTERS, gradients, bytes);
}

int64_t tune_slots_reduced(const struct tune_model *m, bool trained)
{
    int64_t most = 0;
    for (int unit = 0; unit < m->config.layers + 2; unit++)
        for (int k = 0; k < TUNE_PARTS; k++)
            if ((part(m, unit, k)->trained || !trained) && (int64_t)words(part(m, unit, k)) > most)
                most = (int64_t)words(part(m, unit, k));
    return most;
}

static int allocate_slots(struct tune_model *m, struct unit_slots *s, int k, bool gradients, const char *what)
{
    int64_t bytes[TUNE_SLOTS], at = 0;
    s->bytes[k] = slot_bytes(m, k, gradients, bytes);
    if (s->bytes[k] == 0)
        return 0;
    s->memory[k] = tune_device_alloc(m->dev, s->bytes[k], what);
    for (int i = 0; i < TUNE_SLOTS; i++) {
        s->slot[i].at[k] = tune_address_plus(s->memory[k], at);
        s->slot[i].unit = -1;
        at += bytes[i];
    }
    return s->memory[k].at ? 0 : -1;
}

int tune_slots_new(struct tune_model *m, int k)
{
    m->own[k] = tune_device_alloc(m->dev, m->own_bytes[k], "this rank's share of the weights");
    if (!m->own[k].at)
        return -1;
    return allocate_slots(m, &m->gathered, k, false, "units that are whole");
}

int tune_slots_new_gradients(struct tune_model *m)
{
    for (int k = 0; k < TUNE_PARTS; k++)
        TRY(allocate_slots(m, &m->summed, k, true, "gradients of units that are whole"));
    return 0;
}

void tune_slots_free(struct tune_model *m)
{
    for (int i = 0; i < TUNE_SLOTS; i++) { /* a collective may still use them; after an error none does */
        if (m->gathered.slot[i].number > 0)
            tune_comm_wait(m->comm, m->gathered.slot[i].number);
        if (m->summed.slot[i].number > 0)
            tune_comm_wait(m->comm, m->summed.slot[i].number);
    }
    for (int k = 0; k < TUNE_PARTS; k++) {
        tune_device_free(m->dev, m->own[k], m->own_bytes[k]);
        tune_device_free(m->dev, m->gathered.memory[k], m->gathered.bytes[k]);
        tune_device_free(m->dev, m->summed.memory[k], m->summed.bytes[k]);
    }
}

/* ---- addresses ---- */

/* A row's place in its unit, in bytes. */
static int64_t place_of(const struct tune_model *m, const struct tune_parameter *p)
{
    return p->offset - part(m, p->unit, p->adapter)->offset;
}

tune_address tune_slot_weight(const struct tune_model *m, const struct tune_parameter *p)
{
    return tune_address_plus(m->gathered.slot[slot_of(m, p->unit)].at[p->adapter], place_of(m, p));
}

tune_address tune_slot_gradient(const struct tune_model *m, const struct tune_parameter *p)
{
    return tune_address_plus(m->summed.slot[slot_of(m, p->unit)].at[p->adapter], place_of(m, p));
}

tune_address tune_own_weight(const struct tune_model *m, const struct tune_parameter *p, int64_t at)
{
    const struct unit_part *u = part(m, p->unit, p->adapter);
    return tune_address_plus(m->own[p->adapter], u->at + place_of(m, p) + at - u->first * WORD);
}

int64_t tune_rank_weight(const struct tune_model *m, const struct tune_parameter *p, int rank, int ranks, int64_t *at, int64_t bytes)
{
    size_t all = words(part(m, p->unit, p->adapter));
    int64_t first = (int64_t)tune_comm_share(all, rank, ranks) * WORD - place_of(m, p), last = *at + bytes;
    int64_t end = (int64_t)tune_comm_share(all, rank + 1, ranks) * WORD - place_of(m, p);
    end = end < last ? end : last;
    *at = first > *at ? first : *at;
    return end > *at ? end - *at : 0;
}

/* ---- weights ---- */

/* Wait for the collective of a slot. */
static int settle(struct tune_model *m, struct unit_slot *s)
{
    int64_t number = s->number;
    s->number = 0;
    return number > 0 ? tune_comm_wait(m->comm, number) : 0;
}

/* Begin to gather a unit's weights. */
static int start_gather(struct tune_model *m, struct unit_slot *s, int unit)
{
    char what[40];
    snprintf(what, sizeof what, "weights of unit %d", unit);
    TRY(tune_shard_gather(m, unit));
    for (int k = 0; k < TUNE_PARTS; k++) {
        const struct unit_part *p = part(m, unit, k);
        if (p->bytes > 0)
            TRY(s->number = tune_model_move(m, TUNE_ALL_GATHER, what, tune_address_plus(m->own[k], p->at), s->at[k], (int64_t)words(p)));
    }
    s->unit = unit;
    return 0;
}

static int fill_slot(struct tune_model *m, struct unit_slot *s, int unit)
{
    if (s->unit == unit)
        return 0;
    TRY(settle(m, s));
    s->unit = -1;
    return start_gather(m, s, unit);
}

int tune_slot_take(struct tune_model *m, int unit)
{
    struct unit_slot *s = &m->gathered.slot[slot_of(m, unit)];
    if (s->unit >= 0 && s->unit != unit && m->units[s->unit].taken > 0)
        return tune_error_set("units %d and %d are wanted at a time, and with `shard` fsdp they take turns in the same memory; release one "
                              "before you take the other", s->unit, unit);
    TRY(fill_slot(m, s, unit));
    return settle(m, s);
}

int tune_slot_ahead(struct tune_model *m, int unit)
{
    if (!tune_model_gathers(m) || m->alone || unit < 0)
        return 0;
    return fill_slot(m, &m->gathered.slot[slot_of(m, unit)], unit);
}

int tune_slot_settle(struct tune_model *m, int unit)
{
    return settle(m, &m->gathered.slot[slot_of(m, unit)]);
}

int tune_slot_drop(struct tune_model *m, int unit)
{
    struct unit_slot *s = &m->gathered.slot[slot_of(m, unit)];
    if (s->unit != unit)
        return 0;
    s->unit = -1;
    return settle(m, s);
}

/* ---- gradients ---- */

/* Add our share of what was sent. The slot is free then. */
static int collect(struct tune_model *m, struct unit_slot *s)
{
    int unit = s->unit;
    s->unit = -1;
    if (s->number == 0)
        return 0;
    TRY(settle(m, s));
    for (const struct span *p = m->spans; p < m->spans + m->span_count; p++) {
        if (p->unit != unit || p->own == 0)
            continue;
        const struct tune_parameter *row = &m->parameters.at[p->row];
        struct tune_tensor own = tune_model_owned(m, TUNE_GRADIENT, p->gradient + p->first, p->own);
        struct tune_tensor sum = tune_tensor_1d(tune_address_plus(tune_slot_gradient(m, row), p->first * WORD), TUNE_F32, p->own);
        TRY(tune_axpby(m->dev, &own, &sum, 1, 1));
    }
    return 0;
}

int tune_gradients_collect(struct tune_model *m)
{
    for (int i = 0; i < TUNE_SLOTS; i++)
        TRY(collect(m, &m->summed.slot[i]));
    return 0;
}

int tune_gradients_open(struct tune_model *m, int unit)
{
    struct unit_slot *s = &m->summed.slot[slot_of(m, unit)];
    if (!tune_model_gathers(m) || (s->unit == unit && s->number == 0))
        return 0;
    TRY(collect(m, s));
    for (int k = 0; k < TUNE_PARTS; k++) {
        const struct unit_part *p = part(m, unit, k);
        struct tune_tensor all = tune_tensor_1d(s->at[k], TUNE_F32, (int64_t)words(p));
        TRY(p->trained ? tune_zero(m->dev, &all) : 0);
    }
    s->unit = unit;
    return 0;
}

int tune_gradients_send(struct tune_model *m, int unit)
{
    struct unit_slot *s = &m->summed.slot[slot_of(m, unit)];
    char what[40];
    snprintf(what, sizeof what, "gradients of unit %d", unit);
    for (int k = 0; k < TUNE_PARTS && s->unit == unit; k++) {
        const struct unit_part *p = part(m, unit, k);
        if (p->trained)
            TRY(s->number = tune_model_move(m, TUNE_REDUCE_SCATTER, what, s->at[k], tune_address_plus(s->at[k], p->first * WORD),
                                            (int64_t)words(p)));
    }
    return 0;
}
