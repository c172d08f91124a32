/* record.c - the scalars of the current step, and a ring buffer of finished steps. */
#include "devices/record.h"

#include <stdlib.h>

#include "core/try.h"
#include "devices/ops.h"

struct tune_record {
    struct tune_device *dev;
    int capacity, steps;  /* steps begun since the last read */
    bool open;        /* the last step begun has not ended */
    bool scaled;      /* its gradient_scale is computed */
    tune_address device; /* the current step's scalars, then the ring [capacity] */
    struct tune_scalars *copy; /* [capacity] target of downloads */
    struct tune_done_step *host;
    struct tune_done_step last; /* the last step that was read; begin.wall_s 0: none */
};

int64_t tune_record_bytes(int capacity)
{
    return ((capacity < 1 ? 1 : capacity) + 1) * (int64_t)sizeof(struct tune_scalars);
}

struct tune_record *tune_record_new(struct tune_device *dev, int capacity)
{
    struct tune_record *r = calloc(1, sizeof *r);
    if (r) {
        r->dev = dev;
        r->capacity = capacity < 1 ? 1 : capacity;
        r->copy = calloc((size_t)r->capacity, sizeof *r->copy);
        r->host = calloc((size_t)r->capacity, sizeof *r->host);
        r->device = tune_device_alloc(dev, tune_record_bytes(capacity), "the steps' scalars");
    }
    if (!r || !r->copy || !r->host || !r->device.at) {
        tune_error_no_memory("the scalars of %d steps", capacity);
        tune_record_free(r);
        return NULL;
    }
    return r;
}

void tune_record_free(struct tune_record *r)
{
    if (!r)
        return;
    tune_device_free(r->dev, r->device, tune_record_bytes(r->capacity));
    free(r->copy);
    free(r->host);
    free(r);
}

int tune_record_begin(struct tune_record *r)
{
    if (!r->open) {
        if (r->steps == r->capacity)
            return tune_error_set("%d steps were not read, and the record has room for no more; call tune_record_read",
                                  r->capacity);
        r->steps++;
    }
    r->open = true;
    r->scaled = false;
    r->host[r->steps - 1] = (struct tune_done_step){.begin = tune_moment_now()};
    return tune_begin_step(r->dev, r->device);
}

tune_address tune_record_step(struct tune_record *r)
{
    if (r->open)
        return r->device;
    tune_error_set("no step has begun, or tune_record_read ended it; call tune_model_zero_grad first");
    return (tune_address){0};
}

void tune_record_scaled(struct tune_record *r)
{
    r->scaled = true;
}

tune_address tune_record_update(struct tune_record *r)
{
    tune_address step = tune_record_step(r);
    if (!step.at || r->scaled)
        return step;
    tune_error_set("the step's gradient was not measured; call tune_optimizer_scale before tune_optimizer_step (clip_norm 0: without "
                   "clipping)");
    return (tune_address){0};
}

struct tune_done_step *tune_record_counts(struct tune_record *r)
{
    return tune_record_step(r).at ? &r->host[r->steps - 1] : NULL;
}

int tune_record_count(struct tune_record *r, const struct tune_batch *batch)
{
    struct tune_done_step *h = tune_record_counts(r);
    if (!h)
        return -1;
    h->epoch = batch->epoch;
    if (batch->empty)
        return 0;
    h->rows += batch->row_count > 0 ? batch->row_count : batch->B;
    h->tokens += batch->tokens;
    h->padded_tokens += (int64_t)batch->B * batch->T;
    h->labels += batch->label_count;
    return 0;
}

int tune_record_divisor(struct tune_record *r, double more)
{
    tune_address step = tune_record_step(r);
    return step.at ? tune_add_divisor(r->dev, step, more) : -1;
}

int tune_record_loss(struct tune_record *r, double more)
{
    tune_address step = tune_record_step(r);
    return step.at ? tune_add_loss(r->dev, step, more) : -1;
}

int tune_record_end(struct tune_record *r)
{
    tune_address slot = tune_address_plus(r->device, r->steps * (int64_t)sizeof *r->copy);
    struct tune_tensor to = tune_tensor_1d(slot, TUNE_U8, sizeof *r->copy);
    r->host[r->steps - 1].end = tune_moment_now();
    r->open = false;
    return tune_end_step(r->dev, &to, r->device);
}

/* Steps that ended and are not yet read. */
static int finished(const struct tune_record *r)
{
    return r->steps - (r->open ? 1 : 0);
}

/* Copy the device's scalars of a step and derive the host's numbers from them. */
static void fill(struct tune_done_step *step, const struct tune_scalars *s)
{
    step->scalars = *s;
    step->loss = s->loss_sum / (s->divisor != 0 ? s->divisor : s->labels);
    step->begin.wall_s = s->begin_s;
    step->end.wall_s = s->end_s;
}

int tune_record_last(struct tune_record *r, struct tune_done_step *step)
{
    int n = finished(r);
    if (n > 0) {
        struct tune_scalars *to = &r->copy[n - 1];
        TRY(tune_device_download(r->dev, to, tune_address_plus(r->device, n * (int64_t)sizeof *to), sizeof *to));
        TRY(tune_device_sync(r->dev));
        r->last = r->host[n - 1];
        fill(&r->last, to);
    }
    if (r->last.begin.wall_s == 0)
        return tune_error_set("no step was finished yet; tune_optimizer_step ends one");
    *step = r->last;
    return 0;
}

int tune_record_read(struct tune_record *r, const struct tune_done_step **steps)
{
    int n = finished(r);
    tune_address ring = tune_address_plus(r->device, sizeof *r->copy);
    if (n > 0)
        TRY(tune_device_download(r->dev, r->copy, ring, n * (int64_t)sizeof *r->copy));
    TRY(tune_device_sync(r->dev));
    for (int i = 0; i < n; i++)
        fill(&r->host[i], &r->copy[i]);
    if (n > 0)
        r->last = r->host[n - 1];
    *steps = r->host;
    r->steps = 0;
    r->open = false;
    return n;
}
