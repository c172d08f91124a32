/* sums.c - a small buffer of per-step scalars on the device, with what the host knows beside it. */
#include "devices/sums.h"

#include <stdlib.h>

#include "core/try.h"
#include "devices/ops.h"

struct tune_sums {
    struct tune_device *dev;
    int room, steps; /* steps begun since the last read */
    bool open;       /* the last of them has not ended */
    bool scaled;     /* its gradient_scale is computed */
    tune_address device;       /* [room] */
    struct tune_scalars *copy; /* [room], where downloads land */
    struct tune_step_sums *host;
};

int64_t tune_sums_bytes(int room)
{
    return (room < 1 ? 1 : room) * (int64_t)sizeof(struct tune_scalars);
}

struct tune_sums *tune_sums_new(struct tune_device *dev, int room)
{
    struct tune_sums *s = calloc(1, sizeof *s);
    if (s) {
        s->dev = dev;
        s->room = room < 1 ? 1 : room;
        s->copy = calloc((size_t)s->room, sizeof *s->copy);
        s->host = calloc((size_t)s->room, sizeof *s->host);
        s->device = tune_device_alloc(dev, tune_sums_bytes(room), "the steps' scalars");
    }
    if (!s || !s->copy || !s->host || !s->device.at) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the scalars of %d steps", room);
        tune_sums_free(s);
        return NULL;
    }
    return s;
}

void tune_sums_free(struct tune_sums *s)
{
    if (!s)
        return;
    tune_device_free(s->dev, s->device, tune_sums_bytes(s->room));
    free(s->copy);
    free(s->host);
    free(s);
}

int tune_sums_begin(struct tune_sums *s)
{
    if (!s->open) {
        if (s->steps == s->room) {
            tune_error_set("%d steps were not read; tune_sums_new makes room for that many between two tune_sums_read",
                           s->room);
            return -1;
        }
        s->steps++;
    }
    s->open = true;
    s->scaled = false;
    s->host[s->steps - 1] = (struct tune_step_sums){.begin = tune_moment_now()};
    struct tune_tensor record = tune_tensor_1d(tune_sums_device(s), TUNE_U8, sizeof *s->copy);
    return tune_zero(s->dev, &record);
}

tune_address tune_sums_device(struct tune_sums *s)
{
    if (s->open)
        return tune_address_plus(s->device, (s->steps - 1) * (int64_t)sizeof *s->copy);
    tune_error_set("no step has begun, or tune_sums_read ended it; call tune_model_zero_grad first");
    return (tune_address){0};
}

void tune_sums_scale(struct tune_sums *s)
{
    s->scaled = true;
}

tune_address tune_sums_scaled(struct tune_sums *s)
{
    tune_address device = tune_sums_device(s);
    if (!device.at || s->scaled)
        return device;
    tune_error_set("the step's gradient was not measured; call tune_optimizer_clip before tune_optimizer_step (clip_norm 0: without "
                   "clipping)");
    return (tune_address){0};
}

int tune_sums_count(struct tune_sums *s, const struct tune_batch *batch)
{
    if (!tune_sums_device(s).at)
        return -1;
    struct tune_step_sums *h = &s->host[s->steps - 1];
    h->rows += batch->row_count > 0 ? batch->row_count : batch->B;
    h->tokens += batch->tokens;
    h->padded_tokens += (int64_t)batch->B * batch->T;
    h->labels += batch->label_count;
    h->epoch = batch->epoch;
    return 0;
}

void tune_sums_end(struct tune_sums *s, double lr)
{
    struct tune_step_sums *h = &s->host[s->steps - 1];
    h->lr = lr;
    h->end = tune_moment_now();
    s->open = false;
}

int tune_sums_read(struct tune_sums *s, const struct tune_step_sums **steps)
{
    int n = s->steps - (s->open ? 1 : 0);
    if (n > 0)
        TRY(tune_device_download(s->dev, s->copy, s->device, n * (int64_t)sizeof *s->copy));
    TRY(tune_device_sync(s->dev));
    for (int i = 0; i < n; i++)
        s->host[i].scalars = s->copy[i];
    *steps = s->host;
    s->steps = 0;
    s->open = false;
    return n;
}
