/* unit.c - take and release the weights of a unit. The device is told which one operations belong to. */
#include <stdlib.h>

#include "core/array.h"
#include "core/try.h"
#include "models/activations.h"

/* Widen *part to hold the weight of p. Rows of a unit are adjacent. */
static void include_row(struct unit_part *part, const struct tune_parameter *p)
{
    int64_t bytes = tune_parameter_bytes(p);
    if (part->bytes == 0)
        part->offset = p->offset;
    part->bytes = p->offset + bytes - part->offset;
}

int tune_unit_find(struct tune_model *m)
{
    free(m->units);
    m->units = tune_zeroed((size_t)m->config.layers + 2, sizeof *m->units, "a model");
    for (int i = 0; m->units && i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        include_row(p->adapter ? &m->units[p->unit].adapters : &m->units[p->unit].weights, p);
    }
    if (m->units && tune_model_gathers(m) && m->comm)
        tune_slots_share(m, tune_comm_rank(m->comm), tune_comm_size(m->comm));
    return m->units ? 0 : -1;
}

static struct unit *unit_of(const struct tune_model *m, int unit)
{
    if (unit >= 0 && unit < m->config.layers + 2)
        return &m->units[unit];
    tune_error_set("unit %d of a model with units 0 to %d", unit, m->config.layers + 1);
    return NULL;
}

/* Tell the device about both parts of a unit's weights. Slots are in use by one unit or another. */
static int tell_device(struct tune_model *m, int unit, int (*what)(struct tune_device *dev, tune_address memory, int64_t bytes))
{
    const struct unit *u = &m->units[unit];
    if (tune_model_gathers(m))
        return 0;
    if (u->weights.bytes > 0)
        TRY(what(m->dev, tune_address_plus(m->weights, u->weights.offset), u->weights.bytes));
    if (u->adapters.bytes > 0)
        TRY(what(m->dev, tune_address_plus(m->adapters, u->adapters.offset), u->adapters.bytes));
    return 0;
}

/* With `shard` fsdp its weights come first. */
static int make_ready(struct tune_model *m, int unit)
{
    TRY(tune_model_gathers(m) ? tune_slot_take(m, unit) : 0);
    return tell_device(m, unit, tune_device_acquire);
}

int tune_unit_take(struct tune_model *m, int unit)
{
    struct unit *u = unit_of(m, unit);
    if (!u || (u->taken == 0 && make_ready(m, unit) < 0))
        return -1;
    u->taken++;
    m->dev->doing.unit = unit;
    return 0;
}

int tune_unit_release(struct tune_model *m, int unit)
{
    struct unit *u = unit_of(m, unit);
    if (!u)
        return -1;
    if (u->taken == 0)
        return tune_error_set("unit %d is released and was not taken", unit);
    u->taken--;
    m->dev->doing.unit = -1;
    return u->taken == 0 ? tell_device(m, unit, tune_device_release) : 0;
}

int tune_unit_done(struct tune_model *m, int unit, int status)
{
    int released = tune_unit_release(m, unit);
    return status < 0 || released == 0 ? status : released;
}

int tune_unit_take_own(struct tune_model *m, int unit)
{
    if (!tune_model_gathers(m))
        return tune_unit_take(m, unit);
    m->dev->doing.unit = unit;
    return unit_of(m, unit) ? tune_slot_settle(m, unit) : -1;
}

int tune_unit_done_own(struct tune_model *m, int unit, int status)
{
    if (!tune_model_gathers(m))
        return tune_unit_done(m, unit, status);
    m->dev->doing.unit = -1;
    return status;
}

bool tune_unit_taken(const struct tune_model *m, int unit)
{
    return unit >= 0 && unit < m->config.layers + 2 && m->units[unit].taken > 0;
}

int tune_unit_check(const struct tune_model *m)
{
    for (int i = 0; i < m->config.layers + 2; i++)
        if (m->units[i].taken > 0)
            return tune_error_set("a pass begins while unit %d of the model is taken; call tune_unit_release when its weights "
                                  "were used", i);
    return 0;
}
