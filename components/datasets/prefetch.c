/* prefetch.c - make steps before they are needed: read, tokenize and pack their rows. */
#include <signal.h>
#include <string.h>

#include "core/clock.h"
#include "core/try.h"
#include "datasets/loading.h"

/* Record the result of making a step. 0, or 1: stop. */
static int hand_over(struct tune_loader *load, int status)
{
    pthread_mutex_lock(&load->lock);
    if (status < 0) {
        tune_error_save(&load->error);
        load->failed = true;
    } else if (status > 0) {
        load->interrupted = true;
    } else {
        load->made++;
    }
    if (status != 0 || load->made >= load->wanted)
        pthread_cond_signal(&load->wake_caller);
    int stop = status != 0 || load->quit;
    pthread_mutex_unlock(&load->lock);
    return stop;
}

/* True if the helper must stop. A step may have to skip a million rows, and the end of the run must
 * not wait for that. */
static bool interrupted(struct tune_loader *load)
{
    pthread_mutex_lock(&load->lock);
    bool quit = load->quit;
    pthread_mutex_unlock(&load->lock);
    return quit || (load->o.stop_signal && __atomic_load_n(load->o.stop_signal, __ATOMIC_RELAXED));
}

static void leave_out(struct tune_made *s, const struct tune_example *x)
{
    s->bad += x->bad;
    s->cut += x->cut_away;
    s->unlabelled += !x->bad && !x->cut_away;
}

/* Make the step at w: take rows of the epoch until it has all the labelled rows that fit. 1:
 * interrupted. */
static int make_step(struct tune_loader *load, const struct tune_plan_at *w)
{
    struct tune_made *s = tune_made_at(load, w);
    struct tune_packs *packs = load->o.packing ? tune_packs_at(load, w) : NULL;
    int64_t left = tune_left_at(load, w);
    *s = (struct tune_made){0};
    if (packs)
        tune_packs_clear(packs);
    for (; s->rows < left && (packs || s->kept < load->step_rows); s->rows++, load->held = false) {
        struct tune_example *x = packs ? load->examples : tune_loader_example(load, w->step, s->kept);
        int64_t row = tune_loader_row(load, w->epoch, w->offset + s->rows);
        if (interrupted(load))
            return 1;
        if (!load->held)
            TRY(tune_dataset_get(load->data, row, x));
        TRY(tune_loader_fits(load, row, x));
        if (!tune_example_has_label(x)) {
            leave_out(s, x);
            s->hash += tune_hash_in_place(x->hash, row);
            continue;
        }
        int taken = packs ? tune_packs_take(packs, row, x) : 1;
        TRY(taken);
        load->held = !taken;
        if (load->held)
            break;
        if (!packs)
            *tune_loader_place(load, w->step, s->kept) = s->rows;
        s->hash += tune_hash_in_place(x->hash, row);
        s->kept++;
    }
    if (packs)
        tune_packs_close(packs);
    return 0;
}

static void *helper(void *loader)
{
    struct tune_loader *load = loader;
    for (;; tune_loader_step_on(load, &load->prefetch)) {
        pthread_mutex_lock(&load->lock);
        while (!load->quit && load->prefetch.step > load->may)
            pthread_cond_wait(&load->wake_helper, &load->lock);
        bool quit = load->quit;
        pthread_mutex_unlock(&load->lock);
        if (quit || tune_left_at(load, &load->prefetch) == 0)
            return NULL;
        if (hand_over(load, make_step(load, &load->prefetch)))
            return NULL;
    }
}

/* The helper blocks all signals; they are for the program's own threads. */
int tune_prefetch_start(struct tune_loader *load)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&load->thread, NULL, helper, load);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0)
        return tune_error_cannot("cannot start the thread that reads the data: %s", strerror(code));
    load->running = true;
    return 0;
}

void tune_prefetch_stop(struct tune_loader *load)
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

void tune_prefetch_again(struct tune_loader *load)
{
    pthread_mutex_lock(&load->lock);
    bool ended = load->interrupted;
    pthread_mutex_unlock(&load->lock);
    if (!ended)
        return; /* tune_prefetch_ensure notices a helper that ends after this check */
    tune_prefetch_stop(load);
    load->interrupted = load->quit = false;
}

int tune_prefetch_ensure(struct tune_loader *load)
{
    int64_t need = load->at.step + 1;
    double begin = tune_clock_s();
    while (!load->o.prefetch && !load->failed && !load->interrupted && load->made < need)
        hand_over(load, make_step(load, &load->at));
    pthread_mutex_lock(&load->lock);
    load->wanted = need;
    while (load->made < need && !load->failed && !load->interrupted)
        pthread_cond_wait(&load->wake_caller, &load->lock);
    bool there = load->made >= need, stopped = load->interrupted;
    pthread_mutex_unlock(&load->lock);
    load->waited_s += tune_clock_s() - begin;
    if (there || stopped)
        return !there;
    tune_error_restore(&load->error); /* written once, before failed was set */
    return -1;
}

void tune_prefetch_allow(struct tune_loader *load)
{
    int64_t may = load->at.step + TUNE_SEGMENTS - 1;
    if (load->o.max_steps >= 0)
        may = tune_smaller(may, load->planned + load->skipped - 1);
    pthread_mutex_lock(&load->lock);
    load->may = may;
    pthread_cond_signal(&load->wake_helper);
    pthread_mutex_unlock(&load->lock);
}
