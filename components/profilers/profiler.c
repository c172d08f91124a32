/* profiler.c - choose the steps to measure, name the operations, and add up. */
#include "profilers/profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/try.h"
#include "datasets/loader.h"
#include "profilers/timing.h"

const char *const tune_phase_names[TUNE_PHASES] = {"data", "forward", "loss",      "backward", "ranks",
                                                   "clip", "update",  "log, save", "evaluation"};

/* Size of the memory test: more than the last cache. A virtual machine may report its host's
 * cache. */
static int64_t peak_test_bytes(void)
{
    int64_t bytes = 0, least = 64 << 20, most = 256 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE /* some C libraries lack it */
    bytes = 2 * (int64_t)sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes < least ? least : bytes > most ? most : bytes;
}

struct tune_profiler_bytes tune_profiler_bytes(int steps)
{
    return (struct tune_profiler_bytes){
        .device = steps > 0 ? peak_test_bytes() : 0,
        .heap = steps > 0 ? (int64_t)sizeof(struct tune_profiler) + TUNE_PROFILE_EVENTS * (int64_t)sizeof(struct tune_event) : 0,
    };
}

/* Keep the better of this measurement and earlier ones; a busy machine only makes them lower. */
static int measure_peak_rates(struct tune_profiler *p)
{
    struct tune_peak_rates *c = &p->result.peak_rates, now = {0};
    TRY(tune_device_peak_rates(p->dev, &now, p->memory, p->memory_bytes / 4));
    c->flops_one = now.flops_one > c->flops_one ? now.flops_one : c->flops_one;
    c->flops_all = now.flops_all > c->flops_all ? now.flops_all : c->flops_all;
    c->bytes_one = now.bytes_one > c->bytes_one ? now.bytes_one : c->bytes_one;
    c->bytes_all = now.bytes_all > c->bytes_all ? now.bytes_all : c->bytes_all;
    return 0;
}

struct tune_profiler *tune_profiler_new(struct tune_device *dev, struct tune_model *model, const struct tune_loader *load,
                                        int steps)
{
    struct tune_profiler *p = calloc(1, sizeof *p);
    if (p && steps > 0)
        p->events = calloc(TUNE_PROFILE_EVENTS, sizeof *p->events);
    if (!p || (steps > 0 && !p->events)) {
        tune_error_no_memory("the profiler");
        free(p);
        return NULL;
    }
    p->dev = dev;
    p->model = model;
    p->load = load;
    p->steps = p->result.asked = steps;
    p->result.threads = dev->threads;
    p->result.rows = p->rows;
    if (steps <= 0)
        return p;
    p->memory_bytes = tune_profiler_bytes(steps).device;
    p->memory = tune_device_alloc(dev, p->memory_bytes, "the profiler");
    if (!p->memory.at || measure_peak_rates(p) < 0) {
        tune_profiler_free(p);
        return NULL;
    }
    return p;
}

static void stop_measuring(struct tune_profiler *p)
{
    if (p->measures)
        p->dev->ops = p->real;
    p->measures = false;
    tune_device_free(p->dev, p->memory, p->memory_bytes);
    p->memory.at = 0;
}

void tune_profiler_free(struct tune_profiler *p)
{
    if (!p)
        return;
    stop_measuring(p);
    free(p->events);
    free(p);
}

/* ---- adding up ---- */

/* Make an operation's display name: "rmsnorm_forward" becomes "rmsnorm". */
static void put_name(char *to, size_t size, const char *name, const char *what, const char *way)
{
    size_t n = strlen(name);
    static const char *const ends[] = {"_forward", "_backward"};
    for (int i = 0; i < 2; i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            n -= strlen(ends[i]);
    snprintf(to, size, "%.*s%s%s%s%s", (int)n, name, *what ? " " : "", what, *way ? " " : "", way);
    for (size_t i = 0; i < n && i < size; i++)
        to[i] = (char)(to[i] == '_' ? ' ' : to[i]);
}

/* The row of this operation, added if new. -1: no room; its time then counts as between
 * operations. */
static int row_of(struct tune_profiler *p, enum tune_phase phase, const char *name, const char *what, const char *way)
{
    struct tune_profile *all = &p->result;
    for (int i = 0; i < all->count; i++)
        if (p->keys[i].phase == phase && p->keys[i].name == name && p->keys[i].what == what && p->keys[i].way == way)
            return i;
    if (all->count == TUNE_PROFILE_ROWS)
        return -1;
    int i = all->count++;
    p->keys[i].phase = phase;
    p->keys[i].name = name;
    p->keys[i].what = what;
    p->keys[i].way = way;
    p->rows[i].phase = tune_phase_names[phase];
    put_name(p->rows[i].name, sizeof p->rows[i].name, name, what, way);
    return i;
}

/* The row for time outside operations. */
static int outside_row(struct tune_profiler *p, enum tune_phase phase)
{
    static const char *const making = "making batches", *const writing = "printing, writing",
                             *const between = "between operations";
    int i = row_of(p, phase, phase == TUNE_DATA ? making : phase == TUNE_AFTER ? writing : between, "", "");
    if (i >= 0)
        p->rows[i].outside = true;
    return i;
}

static void add_outside(struct tune_profiler *p, enum tune_phase phase, double seconds)
{
    int i = outside_row(p, phase);
    if (i < 0)
        return;
    p->rows[i].calls++;
    p->rows[i].seconds += seconds;
}

static void note(struct tune_profiler *p, const struct tune_event *event)
{
    if (p->result.events < TUNE_PROFILE_EVENTS)
        p->events[p->result.events++] = *event;
    else
        p->result.dropped++;
}

double tune_timed_begin(struct tune_profiler *p)
{
    enum tune_phase phase = p->dev->doing.phase;
    (void)p->real->sync(p->dev); /* an error persists, so the operation itself will report it */
    double now = tune_clock_s();
    /* the time before the forward pass was spent on making the micro-batch */
    bool fetches = phase == TUNE_FORWARD && p->phase != TUNE_FORWARD;
    add_outside(p, fetches ? TUNE_DATA : phase, now - p->free_s);
    p->phase = phase;
    return now;
}

int tune_timed_end(struct tune_profiler *p, double begin_s, int status, const struct tune_timed_op *op)
{
    if (status == 0)
        status = p->real->sync(p->dev);
    double now = tune_clock_s();
    p->free_s = now;
    int i = row_of(p, p->phase, op->name, p->dev->doing.what, op->way);
    if (i < 0) {
        p->free_s = begin_s;
        return status;
    }
    p->rows[i].calls++;
    p->rows[i].seconds += now - begin_s;
    p->rows[i].flops += op->flops;
    p->rows[i].bytes += op->bytes;
    struct tune_event e = {begin_s, now - begin_s, op->flops, op->bytes, i, (int)p->phase, p->dev->doing.unit, {0}};
    memcpy(e.shape, op->shape, sizeof e.shape);
    note(p, &e);
    return status;
}

/* ---- steps ---- */

static void start(struct tune_profiler *p, const struct tune_progress *at)
{
    p->real = p->dev->ops;
    tune_timed_ops(p);
    p->measures = true;
    p->phase = TUNE_DATA;
    tune_device_does(p->dev, TUNE_DATA, -1, "");
    p->result.first = at->step + 1;
    p->tokens = at->tokens;
    p->rows_used = at->rows;
    p->waited_s = p->load ? tune_loader_waited_s(p->load) : 0;
    p->dev->ops = &p->table;
    p->step_begin_s = p->free_s = tune_clock_s();
}

static void end_step(struct tune_profiler *p, const struct tune_progress *at)
{
    double now = tune_clock_s();
    add_outside(p, p->dev->doing.phase, now - p->free_s);
    p->free_s = now;
    p->phase = TUNE_AFTER;
    tune_device_does(p->dev, TUNE_AFTER, -1, "");
    p->result.last = at->step;
    p->result.seconds = now - p->step_begin_s;
    note(p, &(struct tune_event){.begin_s = now, .row = -1});
    int64_t tokens = at->tokens - p->tokens, rows = at->rows - p->rows_used;
    if (p->model && rows > 0)
        p->result.model_flops =
            (double)tokens * tune_model_config_flops(tune_model_config(p->model), (double)tokens / (double)rows);
}

/* Subtract the time the loader waited for its helper from making batches. */
static void part_waiting(struct tune_profiler *p)
{
    int making = outside_row(p, TUNE_DATA);
    double waited = p->load ? tune_loader_waited_s(p->load) - p->waited_s : 0;
    if (!p->load || making < 0 || waited > p->rows[making].seconds)
        return;
    int i = row_of(p, TUNE_DATA, "waiting for rows", "", "");
    if (i < 0)
        return;
    p->rows[i].outside = true;
    p->rows[i].calls = p->rows[making].calls;
    p->rows[i].seconds = waited;
    p->rows[making].seconds -= waited;
}

static int finish(struct tune_profiler *p)
{
    p->done = true;
    p->dev->ops = p->real;
    part_waiting(p);
    TRY(measure_peak_rates(p)); /* again, because the machine may have been busier before */
    stop_measuring(p);
    return 1;
}

int tune_profiler_step(struct tune_profiler *p, const struct tune_progress *at)
{
    if (p->steps <= 0 || p->done)
        return 0;
    p->calls++;
    if (p->calls == 1) {
        bool few = at->planned_steps > 0 && at->planned_steps - at->step < p->steps + 1;
        p->warm_up = few ? 1 : 2;
    }
    if (p->measures)
        end_step(p, at);
    if (p->calls == p->warm_up)
        start(p, at);
    return p->calls == p->warm_up + p->steps ? finish(p) : 0;
}

void tune_profiler_settle(struct tune_profiler *p)
{
    if (!p->measures)
        return;
    double now = tune_clock_s();
    add_outside(p, p->dev->doing.phase, now - p->free_s);
    p->free_s = now;
    p->phase = TUNE_DATA;
    tune_device_does(p->dev, TUNE_DATA, -1, "");
    if (p->result.last > 0)
        p->result.seconds = now - p->step_begin_s;
}

int tune_profiler_end(struct tune_profiler *p)
{
    if (p->steps <= 0 || p->done || !p->measures || p->result.last == 0)
        return 0;
    return finish(p);
}

const struct tune_profile *tune_profiler_result(const struct tune_profiler *p)
{
    return &p->result;
}
