/* ahead.c - rows, or whole steps of packs, made before they are asked for. */
#include <signal.h>
#include <string.h>

#include "core/clock.h"
#include "core/try.h"
#include "datasets/loading.h"

static int make_row(struct tune_loader *load, const struct tune_walk *w, int64_t i)
{
    return tune_dataset_get(load->data, tune_loader_order(load, w->epoch, w->offset + i), tune_loader_example(load, w->step, i));
}

/* Makes one more row, or with packing step, known to the caller; 0, or 1: stop. */
static int hand_over(struct tune_loader *load, int status)
{
    pthread_mutex_lock(&load->lock);
    if (status < 0) {
        tune_error_save(&load->error);
        load->failed = true;
    } else {
        load->made++;
    }
    if (load->failed || load->made >= load->wanted)
        pthread_cond_signal(&load->wake_caller);
    int stop = load->failed || load->quit;
    pthread_mutex_unlock(&load->lock);
    return stop;
}

static bool asked_to_quit(struct tune_loader *load)
{
    pthread_mutex_lock(&load->lock);
    bool quit = load->quit;
    pthread_mutex_unlock(&load->lock);
    return quit;
}

/* The rows of the step at w into its packs. 1: asked to quit meanwhile. */
static int pack_step(struct tune_loader *load, const struct tune_walk *w)
{
    struct tune_packs *packs = tune_packs_at(load, w);
    struct tune_example *x = load->examples;
    tune_packs_clear(packs);
    for (int64_t left = tune_left_at(load, w); packs->rows < left; load->held = false) {
        int64_t row = tune_loader_order(load, w->epoch, w->offset + packs->rows);
        if (asked_to_quit(load))
            return 1;
        if (!load->held)
            TRY(tune_dataset_get(load->data, row, x));
        if (x->count > packs->capacity)
            return tune_loader_too_long(load, row, x->count);
        int taken = tune_packs_take(packs, x);
        TRY(taken);
        load->held = !taken;
        if (load->held)
            break;
    }
    tune_packs_close(packs);
    return 0;
}

static void *helper(void *loader)
{
    struct tune_loader *load = loader;
    for (;; tune_loader_step_on(load, &load->ahead)) {
        pthread_mutex_lock(&load->lock);
        while (!load->quit && load->ahead.step > load->may)
            pthread_cond_wait(&load->wake_helper, &load->lock);
        bool quit = load->quit;
        pthread_mutex_unlock(&load->lock);
        if (quit || tune_left_at(load, &load->ahead) == 0)
            return NULL;
        if (load->o.packing) {
            int status = pack_step(load, &load->ahead);
            if (status > 0 || hand_over(load, status))
                return NULL;
            continue;
        }
        int64_t n = tune_rows_at(load, &load->ahead);
        for (int64_t i = 0; i < n; i++)
            if (hand_over(load, make_row(load, &load->ahead, i)))
                return NULL;
    }
}

/* Signals are for the program's own threads: the helper takes none. */
int tune_ahead_start(struct tune_loader *load)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&load->thread, NULL, helper, load);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "cannot start the thread that reads the data: %s", strerror(code));
        return -1;
    }
    load->running = true;
    return 0;
}

void tune_ahead_stop(struct tune_loader *load)
{
    if (!load->running)
        return;
    pthread_mutex_lock(&load->lock);
    load->quit = true;
    pthread_cond_signal(&load->wake_helper);
    pthread_mutex_unlock(&load->lock);
    pthread_join(load->thread, NULL);
    load->running = false;
}

int tune_ahead_ensure(struct tune_loader *load, int64_t n)
{
    bool packing = load->o.packing;
    int64_t need = (packing ? load->at.step : load->at.used) + n;
    double begin = tune_clock_s();
    while (!load->o.ahead && !load->failed && load->made < need)
        hand_over(load, packing ? pack_step(load, &load->at) : make_row(load, &load->at, load->made - load->at.used));
    pthread_mutex_lock(&load->lock);
    load->wanted = need;
    while (load->made < need && !load->failed)
        pthread_cond_wait(&load->wake_caller, &load->lock);
    bool there = load->made >= need;
    pthread_mutex_unlock(&load->lock);
    load->waited_s += tune_clock_s() - begin;
    if (!there)
        tune_error_restore(&load->error); /* written once, before failed was set */
    return there ? 0 : -1;
}

void tune_ahead_allow(struct tune_loader *load)
{
    int64_t may = load->at.step + TUNE_SEGMENTS - 1;
    if (load->o.max_steps >= 0)
        may = tune_smaller(may, load->planned + load->skipped - 1);
    pthread_mutex_lock(&load->lock);
    load->may = may;
    pthread_cond_signal(&load->wake_helper);
    pthread_mutex_unlock(&load->lock);
}
