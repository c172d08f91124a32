/* sampler.c - a thread that takes samples, and their integrals over time. */
#include "profilers/sampler.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "machine/memory.h"

enum { SPANS = 256, PERIOD_NS = 250000000 };

/* The sampled values: the machine's memory, then these for each GPU. */
enum { COMPUTE, MEMORY, WATTS, POWER, CLOCK, OF_A_GPU };

/* The sum of value * seconds, and the seconds with a value. */
struct integral {
    double sum, seconds;
};

struct span {
    double begin_s, end_s, memory_peak; /* peak: of all GPUs; NaN: none */
    int looks;
};

struct tune_sampler {
    struct tune_gpus *gpus; /* NULL: none */
    int columns;
    double *now;            /* [columns] */
    int count;
    struct span spans[SPANS];
    struct integral *integrals; /* [SPANS][columns] */
    double last_s;          /* time of the last sample */
    int looks;              /* number of samples in a full span */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs, quit;
};

static struct integral *row(struct tune_sampler *s, int i)
{
    return s->integrals + (size_t)i * (size_t)s->columns;
}

/* Add span k, the next one, to span i. */
static void take_in(struct tune_sampler *s, int i, int k)
{
    s->spans[i].end_s = s->spans[k].end_s;
    s->spans[i].looks += s->spans[k].looks;
    /* fmax ignores NaN */
    s->spans[i].memory_peak = fmax(s->spans[i].memory_peak, s->spans[k].memory_peak);
    for (int c = 0; c < s->columns; c++) {
        row(s, i)[c].sum += row(s, k)[c].sum;
        row(s, i)[c].seconds += row(s, k)[c].seconds;
    }
}

/* Make room by joining spans in pairs. */
static void halve(struct tune_sampler *s)
{
    for (int i = 0; i < SPANS / 2; i++) {
        s->spans[i] = s->spans[2 * i];
        memmove(row(s, i), row(s, 2 * i), (size_t)s->columns * sizeof(struct integral));
        take_in(s, i, 2 * i + 1);
    }
    s->count = SPANS / 2;
    s->looks *= 2;
}

/* Take a sample. Each value stands for the time since the last sample. */
static void look(struct tune_sampler *s)
{
    double now_s = tune_clock_s(), dt = now_s - s->last_s, peak = NAN, used = tune_memory_used();
    struct tune_gpu_reading r;
    s->now[0] = used < 0 ? NAN : used;
    for (int i = 0; s->gpus && i < tune_gpus_count(s->gpus); i++) {
        double *gpu = s->now + 1 + i * OF_A_GPU;
        tune_gpus_read(s->gpus, i, &r);
        gpu[COMPUTE] = r.compute;
        gpu[MEMORY] = r.memory;
        gpu[WATTS] = r.watts;
        gpu[POWER] = r.power;
        gpu[CLOCK] = r.clock;
        peak = fmax(peak, r.memory);
    }
    if (s->count == SPANS)
        halve(s);
    int i = s->count++;
    s->spans[i] = (struct span){s->last_s, now_s, peak, 1};
    for (int c = 0; c < s->columns; c++)
        row(s, i)[c] = isnan(s->now[c]) ? (struct integral){0} : (struct integral){s->now[c] * dt, dt};
    if (i > 0 && s->spans[i - 1].looks < s->looks) {
        take_in(s, i - 1, i);
        s->count--;
    }
    s->last_s = now_s;
}

static void *run(void *context)
{
    struct tune_sampler *s = context;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        next.tv_nsec += PERIOD_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!s->quit && pthread_cond_timedwait(&s->wake, &s->lock, &next) != ETIMEDOUT)
            ;
        if (!s->quit)
            look(s);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        /* the machine slept or the process was stopped: do not catch up */
        if (now.tv_sec > next.tv_sec)
            next = now;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Start the thread. It blocks signals, which are for the program's own threads. Its stack is small,
 * because it counts in ulimit -v and -d. */
static int start(struct tune_sampler *s)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    sigfillset(&all);
    pthread_attr_setstacksize(&attributes, TUNE_SAMPLER_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&s->thread, &attributes, run, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    s->runs = error == 0;
    return error;
}

struct tune_sampler *tune_sampler_new(struct tune_gpus *g)
{
    struct tune_sampler *s = tune_zeroed(1, sizeof *s, "watching the machine");
    pthread_condattr_t clock;
    if (!s) {
        tune_gpus_close(g);
        return NULL;
    }
    s->gpus = g;
    s->looks = 1;
    s->columns = 1 + (g ? tune_gpus_count(g) * OF_A_GPU : 0);
    s->now = calloc((size_t)s->columns, sizeof *s->now);
    s->integrals = calloc((size_t)s->columns * SPANS, sizeof *s->integrals);
    s->last_s = tune_clock_s();
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    int error = s->now && s->integrals ? start(s) : ENOMEM;
    if (!error)
        return s;
    tune_error_cannot("cannot start the thread that watches the machine: %s", strerror(error));
    tune_sampler_free(s);
    return NULL;
}

void tune_sampler_free(struct tune_sampler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->runs)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    tune_gpus_close(s->gpus);
    free(s->now);
    free(s->integrals);
    free(s);
}

/* ---- averages ---- */

/* The share of the span that is between from and to. */
static double part(const struct span *p, double from_s, double to_s)
{
    double begin = fmax(p->begin_s, from_s), end = fmin(p->end_s, to_s);
    return end > begin ? (end - begin) / (p->end_s - p->begin_s) : 0;
}

static double average(struct tune_sampler *s, int column, double from_s, double to_s)
{
    struct integral all = {0, 0};
    for (int i = 0; i < s->count; i++) {
        double share = part(&s->spans[i], from_s, to_s);
        all.sum += share * row(s, i)[column].sum;
        all.seconds += share * row(s, i)[column].seconds;
    }
    return all.seconds > 0 ? all.sum / all.seconds : s->now[column];
}

static struct tune_sampler_spread spread(struct tune_sampler *s, int what, double from_s, double to_s)
{
    struct tune_sampler_spread all = {NAN, NAN, NAN};
    double sum = 0;
    int n = 0;
    for (int i = 0; s->gpus && i < tune_gpus_count(s->gpus); i++) {
        double x = average(s, 1 + i * OF_A_GPU + what, from_s, to_s);
        all.min = fmin(all.min, x);
        all.max = fmax(all.max, x);
        sum += isnan(x) ? 0 : x;
        n += !isnan(x);
    }
    if (n > 0)
        all.avg = sum / n;
    return all;
}

void tune_sampler_read(struct tune_sampler *s, double from_s, double to_s, struct tune_sampler_seen *seen)
{
    pthread_mutex_lock(&s->lock);
    look(s); /* up to now */
    seen->memory = average(s, 0, from_s, to_s);
    seen->gpus = s->gpus ? tune_gpus_count(s->gpus) : 0;
    seen->gpu_compute = spread(s, COMPUTE, from_s, to_s);
    seen->gpu_memory = spread(s, MEMORY, from_s, to_s);
    seen->gpu_watts = spread(s, WATTS, from_s, to_s);
    seen->gpu_power = spread(s, POWER, from_s, to_s);
    seen->gpu_clock = spread(s, CLOCK, from_s, to_s);
    seen->gpu_memory_peak = NAN;
    bool some = false; /* false: use the current values */
    for (int i = 0; i < s->count; i++)
        some = some || part(&s->spans[i], from_s, to_s) > 0;
    for (int i = some ? 0 : s->count - 1; i < s->count; i++)
        if (!some || part(&s->spans[i], from_s, to_s) > 0)
            seen->gpu_memory_peak = fmax(seen->gpu_memory_peak, s->spans[i].memory_peak);
    pthread_mutex_unlock(&s->lock);
}
