/* loader.c - the plan (which rows make which step), the helper that tokenises ahead, and padding or packing.
 *
 *     steps     0        1        2        3      ..     each: up to batch_size * accumulate rows, or packs, of one epoch
 *               [======] [======] [===...] [      ]      examples, or packs, in three segments used in turn (step % 3)
 *               ^ the caller's    ^ the helper's: at most 2 steps further
 *
 * With packing a step's rows are known when its packs are full, so steps are made and handed over whole.
 * Two walks go over the same plan, the caller's and the helper's; all they share is a count of rows made, the caller's
 * step, and an error. */
#include "datasets/loader.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/packs.h"

#define SENSIBLE ((size_t)1 << 40) /* tokens of a batch, rows of a step: no machine holds more */
enum { SEGMENTS = 3, COUNTED = 256 }; /* rows between two remembered counts of the part's rows */

/* Where one stands in the plan: at the begin of a step. */
struct walk {
    int64_t step, epoch, offset, used; /* offset: rows of this epoch before it; used: of all epochs */
};

struct tune_loader {
    struct tune_dataset *data;
    struct tune_loader_options o;
    int64_t rows;         /* of the part */
    int64_t step_rows;    /* of a full step */
    int64_t total;        /* rows over all epochs; INT64_MAX where steps decide */
    int64_t planned;      /* steps */
    int64_t *before;      /* [k]: rows of the part below row k * COUNTED; NULL: the part is everything */
    int64_t counted;      /* entries of before */
    int32_t *ids, *labels, *lengths; /* the batch */
    int64_t *batch_rows;
    struct tune_example *examples;   /* [SEGMENTS][step_rows]; with packing one, of the row that is to be packed */
    int32_t *positions, *starts;     /* of the batch, with packing; else NULL */
    struct tune_packs packs[SEGMENTS];
    bool held;            /* the helper's side: the example is the next step's first row */
    /* the caller's side */
    struct walk at;       /* its step */
    bool in_step;
    int64_t now, given;   /* rows of this step; of them given out */
    int64_t put;          /* packs of this step given out */
    int64_t skipped;      /* steps left out: all their rows were bad */
    int64_t skipped_in_a_row; /* rows of the latest of them */
    int64_t first, done;  /* steps behind which this loader began; steps begun since the run began */
    int64_t tokens, label_count, padded; /* of this step */
    double waited_s;      /* see tune_loader_waited_s */
    double began_s;       /* monotonic clock at the first tune_loader_more; < 0: not yet */
    /* the helper's side */
    struct walk ahead;
    pthread_t thread;
    bool running;
    /* shared */
    pthread_mutex_t lock;
    pthread_cond_t wake_caller, wake_helper;
    int64_t made;         /* rows (with packing: steps) made since the first */
    int64_t wanted;       /* the caller sleeps until so many are */
    int64_t may;          /* the last step the helper may make */
    bool quit, failed;    /* failed: error holds what row number made met */
    struct tune_error error;
};

/* ---- the plan ---- */

static bool in_part(const struct tune_loader_options *o, int64_t row)
{
    return tune_dataset_held_out(o->seed, row, o->train_split) == (o->part == TUNE_HELD_OUT);
}

/* How many rows the part has, and what finds its i-th again: a count each 256 rows. */
static int count_part(struct tune_loader *load)
{
    int64_t all = tune_dataset_rows(load->data);
    load->rows = all;
    if (load->o.part == TUNE_ALL || (load->o.part == TUNE_TRAIN && load->o.train_split >= 1))
        return 0;
    load->counted = (all + COUNTED - 1) / COUNTED;
    load->before = malloc((size_t)load->counted * sizeof *load->before);
    if (!load->before) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory to count %lld rows", (long long)all);
        return -1;
    }
    load->rows = 0;
    for (int64_t row = 0; row < all; row++) {
        if (row % COUNTED == 0)
            load->before[row / COUNTED] = load->rows;
        load->rows += in_part(&load->o, row);
    }
    return 0;
}

/* The data set's index of the part's i-th row. */
static int64_t row_of(const struct tune_loader *load, int64_t i)
{
    if (!load->before)
        return i;
    int64_t low = 0, high = load->counted; /* the last k with before[k] <= i */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (load->before[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    int64_t row = low * COUNTED, left = i - load->before[low];
    for (;; row++)
        if (in_part(&load->o, row) && left-- == 0)
            return row;
}

/* The row that stands at this place of this epoch. */
static int64_t order(const struct tune_loader *load, int64_t epoch, int64_t place)
{
    if (load->o.shuffle)
        place = (int64_t)tune_random_permute(load->o.seed, (uint64_t)epoch, (uint64_t)load->rows, (uint64_t)place);
    return row_of(load, place);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows from w to the end of its epoch, or of all; 0 behind the last. */
static int64_t left_at(const struct tune_loader *load, const struct walk *w)
{
    return smaller(load->rows - w->offset, load->total - w->used);
}

static struct tune_packs *packs_at(struct tune_loader *load, const struct walk *w)
{
    return &load->packs[w->step % SEGMENTS];
}

/* Rows of the step at w, 0 behind the last; with packing of one that is made. */
static int64_t rows_at(const struct tune_loader *load, const struct walk *w)
{
    return load->o.packing ? load->packs[w->step % SEGMENTS].rows : smaller(load->step_rows, left_at(load, w));
}

static void step_on(const struct tune_loader *load, struct walk *w)
{
    int64_t n = rows_at(load, w);
    w->step++;
    w->used += n;
    w->offset += n;
    if (w->offset == load->rows) {
        w->epoch++;
        w->offset = 0;
    }
}

static int64_t steps_of(const struct tune_loader *load, int64_t rows)
{
    return (rows + load->step_rows - 1) / load->step_rows;
}

/* Steps from w to the end of the rows. */
static int64_t steps_left(const struct tune_loader *load, const struct walk *w)
{
    int64_t here = left_at(load, w), rest = load->total - w->used - here;
    return steps_of(load, here) + rest / load->rows * steps_of(load, load->rows) + steps_of(load, rest % load->rows);
}

/* With packing, by epochs: how many steps it comes to when they go on to have as many rows as those so far; before the first,
 * as many as it would have with one row to a pack. Right at the end. */
static int64_t estimate(const struct tune_loader *load, int64_t steps, int64_t rows)
{
    if (rows >= load->total)
        return steps;
    double all = rows > 0 ? ceil((double)steps * ((double)load->total / (double)rows)) : 0;
    int64_t most = steps + steps_left(load, &(struct walk){.epoch = rows / load->rows, .offset = rows % load->rows, .used = rows});
    return steps == 0 || all > (double)most ? most : all > (double)steps ? (int64_t)all : steps + 1;
}

static int plan(struct tune_loader *load)
{
    const struct tune_loader_options *o = &load->o;
    load->planned = o->max_steps;
    load->total = INT64_MAX;
    if (o->max_steps >= 0)
        return 0;
    double rows = (double)load->rows * o->epochs;
    if (!(rows < 0x1p53)) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "epochs %g of %lld rows: too many rows to count", o->epochs,
                            (long long)load->rows);
        return -1;
    }
    /* 1000 rows * 0.1 epochs is 100 rows, though the product is 100.00000000000001 */
    load->total = (int64_t)ceil(rows * (1 - 1e-12));
    if (load->total < 1)
        load->total = 1;
    load->planned = steps_left(load, &(struct walk){0}); /* with packing: at most */
    return 0;
}

/* ---- the helper ---- */

static struct tune_example *example(const struct tune_loader *load, int64_t step, int64_t i)
{
    return &load->examples[step % SEGMENTS * load->step_rows + i];
}

static int make_row(struct tune_loader *load, const struct walk *w, int64_t i)
{
    return tune_dataset_get(load->data, order(load, w->epoch, w->offset + i), example(load, w->step, i));
}

static int too_long(const struct tune_loader *load, int64_t row, int64_t tokens)
{
    tune_error_set("row %lld has %lld tokens, the loader was made for max_length %d; give both the same", (long long)row,
                   (long long)tokens, load->o.max_length);
    return -1;
}

/* Makes row i of the step at w known to the caller; 0, or 1: stop. */
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
static int pack_step(struct tune_loader *load, const struct walk *w)
{
    struct tune_packs *packs = packs_at(load, w);
    struct tune_example *x = load->examples;
    tune_packs_clear(packs);
    for (int64_t left = left_at(load, w); packs->rows < left; load->held = false) {
        int64_t row = order(load, w->epoch, w->offset + packs->rows);
        if (asked_to_quit(load))
            return 1;
        if (!load->held)
            TRY(tune_dataset_get(load->data, row, x));
        if (x->count > packs->capacity)
            return too_long(load, row, x->count);
        load->held = !tune_packs_take(packs, x);
        if (load->held)
            return 0;
    }
    return 0;
}

static void *helper(void *loader)
{
    struct tune_loader *load = loader;
    for (;; step_on(load, &load->ahead)) {
        pthread_mutex_lock(&load->lock);
        while (!load->quit && load->ahead.step > load->may)
            pthread_cond_wait(&load->wake_helper, &load->lock);
        bool quit = load->quit;
        pthread_mutex_unlock(&load->lock);
        if (quit || left_at(load, &load->ahead) == 0)
            return NULL;
        if (load->o.packing) {
            int status = pack_step(load, &load->ahead);
            if (status > 0 || hand_over(load, status))
                return NULL;
            continue;
        }
        int64_t n = rows_at(load, &load->ahead);
        for (int64_t i = 0; i < n; i++)
            if (hand_over(load, make_row(load, &load->ahead, i)))
                return NULL;
    }
}

/* Signals are for the program's own threads: the helper takes none. */
static int start_helper(struct tune_loader *load)
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

static void stop_helper(struct tune_loader *load)
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

/* The first n rows of the caller's step are there; with packing, where n is 1: its packs. -1: what the helper (or we) met before
 * that. */
static int ensure(struct tune_loader *load, int64_t n)
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

/* The helper may work up to two steps beyond the caller's, not beyond the last one wanted. */
static void allow(struct tune_loader *load)
{
    int64_t may = load->at.step + SEGMENTS - 1;
    if (load->o.max_steps >= 0)
        may = smaller(may, load->planned + load->skipped - 1);
    pthread_mutex_lock(&load->lock);
    load->may = may;
    pthread_cond_signal(&load->wake_helper);
    pthread_mutex_unlock(&load->lock);
}

/* ---- new and free ---- */

static int usage(const char *name, double value, const char *expected)
{
    tune_error_set_kind(TUNE_ERROR_USAGE, "%s is %g, expected %s", name, value, expected);
    return -1;
}

static int check(const struct tune_loader_options *o)
{
    if (o->batch_size < 1)
        return usage("batch_size", o->batch_size, "at least 1 row");
    if (o->accumulate < 1)
        return usage("accumulate", o->accumulate, "at least 1 micro-batch");
    if (o->max_length < 1)
        return usage("max_length", o->max_length, "at least 1 token");
    if (o->part != TUNE_ALL && !(o->train_split > 0 && o->train_split <= 1))
        return usage("train_split", o->train_split, "a share above 0 and at most 1");
    if (o->max_steps < -1)
        return usage("max_steps", (double)o->max_steps, "0 or more, or -1 for as many as epochs say");
    if (o->max_steps == -1 && !(o->epochs > 0 && isfinite(o->epochs)))
        return usage("epochs", o->epochs, "a number above 0");
    if (o->stop_at_step < 0)
        return usage("stop_at_step", (double)o->stop_at_step, "a step, or 0 for never");
    if (isnan(o->stop_after_seconds))
        return usage("stop_after_seconds", o->stop_after_seconds, "0 or more, or -1 for never");
    return 0;
}

static int empty_part(const struct tune_loader *load)
{
    long long all = (long long)tune_dataset_rows(load->data);
    tune_error_set_kind(TUNE_ERROR_USAGE, "train_split %g leaves no row %s of %lld; choose %s one, or use more rows",
                        load->o.train_split, load->o.part == TUNE_TRAIN ? "to train on" : "held out", all,
                        load->o.part == TUNE_TRAIN ? "a larger" : "a smaller");
    return -1;
}

int64_t tune_loader_bytes(const struct tune_loader_options *o, int64_t rows)
{
    int64_t B = smaller(o->batch_size, rows), step_rows = smaller((int64_t)o->batch_size * o->accumulate, rows);
    struct tune_loader *load = NULL;
    struct tune_example *x = NULL;
    int64_t token = (int64_t)(sizeof *x->ids + sizeof *x->trained), room = token * o->max_length + (int64_t)sizeof *x;
    int64_t places = o->packing ? (int64_t)(sizeof *load->positions + sizeof *load->starts) : 0;
    int64_t ahead = o->packing ? SEGMENTS * tune_packs_bytes(step_rows, o->max_length) + room : SEGMENTS * step_rows * room;
    return B * o->max_length * ((int64_t)(sizeof *load->ids + sizeof *load->labels) + places) +
           B * (int64_t)(sizeof *load->lengths + sizeof *load->batch_rows) + ahead;
}

/* What packing takes beside the rest, for so many tokens of a batch. */
static bool make_packs(struct tune_loader *load, size_t tokens)
{
    bool good = (size_t)load->step_rows <= SENSIBLE / (size_t)load->o.max_length;
    load->positions = calloc(tokens, sizeof *load->positions);
    load->starts = calloc(tokens, sizeof *load->starts);
    for (int i = 0; i < SEGMENTS && good; i++)
        good = tune_packs_new(&load->packs[i], load->step_rows, load->o.max_length) == 0;
    return good && load->positions && load->starts;
}

static int make_buffers(struct tune_loader *load)
{
    size_t B = (size_t)smaller(load->o.batch_size, load->rows), tokens = B * (size_t)load->o.max_length;
    bool good = true;
    if (tokens <= SENSIBLE && (size_t)load->step_rows <= SENSIBLE) { /* no product below overflows */
        load->ids = calloc(tokens, sizeof *load->ids);
        load->labels = calloc(tokens, sizeof *load->labels);
        load->lengths = calloc(B, sizeof *load->lengths);
        load->batch_rows = calloc(B, sizeof *load->batch_rows);
        load->examples = calloc(load->o.packing ? 1 : (size_t)load->step_rows, SEGMENTS * sizeof *load->examples);
        good = !load->o.packing || make_packs(load, tokens);
    }
    if (good && load->ids && load->labels && load->lengths && load->batch_rows && load->examples)
        return 0;
    tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for batches of %d rows of %d tokens; %d to "
                        "a step; choose a smaller --batch-size, --max-length or --accumulate", load->o.batch_size,
                        load->o.max_length, load->o.accumulate);
    return -1;
}

struct tune_loader *tune_loader_new(struct tune_dataset *d, const struct tune_loader_options *options)
{
    if (check(options) < 0)
        return NULL;
    struct tune_loader *load = calloc(1, sizeof *load);
    if (!load) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a loader");
        return NULL;
    }
    load->data = d;
    load->o = *options;
    pthread_mutex_init(&load->lock, NULL);
    pthread_cond_init(&load->wake_caller, NULL);
    pthread_cond_init(&load->wake_helper, NULL);
    load->began_s = -1;
    int status = count_part(load);
    if (status == 0 && load->rows == 0)
        status = empty_part(load);
    if (status == 0) {
        load->step_rows = smaller((int64_t)options->batch_size * options->accumulate, load->rows);
        if (plan(load) == 0 && make_buffers(load) == 0)
            return load;
    }
    tune_loader_free(load);
    return NULL;
}

void tune_loader_free(struct tune_loader *load)
{
    if (!load)
        return;
    stop_helper(load);
    for (int64_t i = 0; load->examples && i < (load->o.packing ? 1 : SEGMENTS * load->step_rows); i++)
        tune_example_free(&load->examples[i]);
    for (int i = 0; i < SEGMENTS; i++)
        tune_packs_free(&load->packs[i]);
    free(load->positions);
    free(load->starts);
    free(load->examples);
    free(load->before);
    free(load->ids);
    free(load->labels);
    free(load->lengths);
    free(load->batch_rows);
    pthread_cond_destroy(&load->wake_helper);
    pthread_cond_destroy(&load->wake_caller);
    pthread_mutex_destroy(&load->lock);
    free(load);
}

int64_t tune_loader_rows(const struct tune_loader *load)
{
    return load->rows;
}

int64_t tune_loader_planned_rows(const struct tune_loader *load)
{
    return load->total;
}

int64_t tune_loader_planned_steps(const struct tune_loader *load)
{
    return load->planned;
}

/* ---- steps ---- */

static bool time_is_up(struct tune_loader *load)
{
    if (load->began_s < 0)
        load->began_s = tune_moment_now().wall_s;
    return load->done > load->first && load->o.stop_after_seconds >= 0 &&
           tune_moment_now().wall_s - load->began_s >= load->o.stop_after_seconds;
}

/* Why to stop before the planned end; NULL: go on. */
static const char *stop(struct tune_loader *load, struct tune_progress *at, bool up)
{
    if (load->o.stop_signal && *load->o.stop_signal)
        at->signal = *load->o.stop_signal;
    if (at->signal)
        return at->signal == SIGINT ? "SIGINT" : at->signal == SIGTERM ? "SIGTERM" : at->signal == SIGHUP ? "SIGHUP"
               : at->signal == SIGPIPE ? "lost standard output" : "a signal";
    if (load->o.stop_at_step > 0 && load->done >= load->o.stop_at_step)
        return "--stop-at-step";
    if (load->o.stable && *load->o.stable)
        return "--until-stable";
    return up ? "--stop-after-seconds" : NULL;
}

/* All rows of the caller's step are bad. An error counts as none: tune_loader_next shall hand it over. */
static bool nothing_readable(struct tune_loader *load)
{
    if (load->o.packing)
        return !packs_at(load, &load->at)->readable;
    for (int64_t i = 0; i < load->now; i++)
        if (ensure(load, i + 1) < 0 || !example(load, load->at.step, i)->bad)
            return false;
    return true;
}

static int all_bad(void)
{
    tune_error_set("none of the rows can be read; run without skipping bad rows to see why");
    return -1;
}

static int begin_step(struct tune_loader *load)
{
    load->given = load->put = load->tokens = load->label_count = load->padded = 0;
    allow(load);
    if (load->o.ahead && !load->running)
        TRY(start_helper(load));
    if (load->o.packing)
        TRY(ensure(load, 1));
    load->now = rows_at(load, &load->at);
    return 0;
}

/* With packing, by epochs: the plan after `steps` steps and so many rows, and where the run stands before the step at hand. */
static void plan_by_rows(struct tune_loader *load, struct tune_progress *at, int64_t steps, int64_t rows)
{
    if (!load->o.packing || load->o.max_steps >= 0)
        return;
    load->planned = at->planned_steps = estimate(load, steps, rows);
    at->planned_rows = load->total;
    at->step_rows = load->now;
    at->fraction = (double)load->at.used / (double)load->total;
}

int tune_loader_more(struct tune_loader *load, struct tune_progress *at)
{
    bool up = time_is_up(load);
    at->planned_steps = load->planned;
    if (load->in_step)
        step_on(load, &load->at);
    load->in_step = false;
    for (;;) {
        bool end = load->o.max_steps >= 0 ? load->done >= load->planned : left_at(load, &load->at) == 0;
        if (end && load->done == 0 && load->skipped > 0)
            return all_bad();
        if (end || at->early_stop) {
            at->finished = true;
            if (end)
                plan_by_rows(load, at, load->done, load->total);
            return 0;
        }
        if ((at->stopped = stop(load, at, up)))
            return 0;
        TRY(begin_step(load));
        if (!nothing_readable(load))
            break;
        at->rows += load->now;
        at->epoch = (double)at->rows / (double)load->rows;
        load->skipped++;
        load->skipped_in_a_row += load->now;
        if (load->o.max_steps < 0 && !load->o.packing)
            at->planned_steps = --load->planned;
        else if (load->o.max_steps < 0)
            plan_by_rows(load, at, load->done, at->rows);
        else if (load->skipped_in_a_row >= 2 * load->rows - 1) /* a whole epoch lies among so many, in whatever order */
            return all_bad();
        step_on(load, &load->at);
    }
    load->in_step = true;
    load->skipped_in_a_row = 0;
    load->done++;
    plan_by_rows(load, at, load->done, load->at.used + load->now);
    if (load->o.packing)
        return (int)((packs_at(load, &load->at)->open + load->o.batch_size - 1) / load->o.batch_size) +
               (packs_at(load, &load->at)->open == 0);
    return (int)((load->now + load->o.batch_size - 1) / load->o.batch_size);
}

/* ---- batches ---- */

static int no_label(const struct tune_loader *load)
{
    char text[1024], where[TUNE_DATASET_SOURCE_SIZE];
    size_t used = 0;
    int64_t named = smaller(load->now, TUNE_PACKS_NAMED);
    text[0] = 0;
    for (int64_t i = 0; i < named && used < sizeof text; i++) {
        struct tune_example packed = {0};
        if (load->o.packing) {
            const struct tune_packs *p = &load->packs[load->at.step % SEGMENTS];
            packed.count = p->met[i].count;
            packed.full_count = p->met[i].full_count;
            packed.bad = p->met[i].bad;
        }
        const struct tune_example *x = load->o.packing ? &packed : example(load, load->at.step, i);
        tune_dataset_source(load->data, order(load, load->at.epoch, load->at.offset + i), where, sizeof where);
        const char *note = x->bad ? ", bad" : x->count < x->full_count ? ", cut" : "";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.200s (%lld tokens%s)", i ? ", " : "", where,
                                 (long long)x->full_count, note);
    }
    if (named < load->now && used < sizeof text)
        snprintf(text + used, sizeof text - used, " and %lld more", (long long)(load->now - named));
    tune_error_set("a whole step without a token to train on: %s; within max_length %d their texts or answers are empty "
                   "or cut off: raise --max-length, use more rows a step, or remove these rows", text, load->o.max_length);
    return -1;
}

/* Row b of the batch: ids, labels one to the left of the tokens they name, the rest padding. */
static void put_row(struct tune_loader *load, const struct tune_example *x, int b, int T)
{
    int32_t *ids = load->ids + (int64_t)b * T, *labels = load->labels + (int64_t)b * T;
    int n = (int)x->count;
    if (n > 0)
        memcpy(ids, x->ids, (size_t)n * sizeof *ids);
    memset(ids + n, 0, (size_t)(T - n) * sizeof *ids);
    for (int t = 0; t < T; t++) {
        bool trained = t + 1 < n && x->trained[t + 1];
        labels[t] = trained ? x->ids[t + 1] : TUNE_NO_LABEL;
        load->label_count += trained;
    }
    load->tokens += n;
}

/* T, the longest of n rows from the step's row first on; at least 1. -1: longer than the buffers. */
static int longest(const struct tune_loader *load, int64_t first, int n)
{
    int64_t T = 1;
    for (int b = 0; b < n; b++) {
        const struct tune_example *x = example(load, load->at.step, first + b);
        if (x->count > load->o.max_length)
            return too_long(load, order(load, load->at.epoch, load->at.offset + first + b), x->count);
        T = x->count > T ? x->count : T;
    }
    return (int)T;
}

/* The next packs of the step; rows without a token are with the first ones. */
static void next_packs(struct tune_loader *load, struct tune_batch *batch)
{
    const struct tune_packs *p = packs_at(load, &load->at);
    int64_t first = load->put;
    int B = (int)smaller(load->o.batch_size, p->open > first ? p->open - first : 1), T = 1;
    *batch = (struct tune_batch){.row_count = first == 0 ? p->empty : 0};
    for (int b = 0; b < B; b++) {
        load->lengths[b] = first + b < p->open ? p->pack[first + b].used : 0;
        T = load->lengths[b] > T ? load->lengths[b] : T;
        batch->tokens += load->lengths[b];
        batch->row_count += first + b < p->open ? p->pack[first + b].rows : 0;
    }
    for (int64_t b = 0; b < B; b++)
        batch->label_count += tune_packs_put(p, first + b, T, load->ids + b * T, load->labels + b * T, load->positions + b * T,
                                             load->starts + b * T);
    batch->B = B;
    batch->T = T;
    batch->positions = load->positions;
    batch->starts = load->starts;
    load->put += B;
    load->given += batch->row_count;
    load->tokens += batch->tokens;
    load->label_count += batch->label_count;
}

/* The next rows, each padded to the longest. */
static int next_rows(struct tune_loader *load, struct tune_batch *batch)
{
    int64_t first = load->given, tokens = load->tokens, label_count = load->label_count;
    int B = (int)smaller(load->o.batch_size, load->now - first);
    TRY(ensure(load, first + B));
    int T = longest(load, first, B);
    TRY(T);
    for (int b = 0; b < B; b++) {
        const struct tune_example *x = example(load, load->at.step, first + b);
        put_row(load, x, b, T);
        load->lengths[b] = (int32_t)x->count;
        load->batch_rows[b] = order(load, load->at.epoch, load->at.offset + first + b);
    }
    load->given += B;
    *batch = (struct tune_batch){.B = B, .T = T, .rows = load->batch_rows, .tokens = load->tokens - tokens,
                                 .label_count = load->label_count - label_count, .row_count = B};
    return 0;
}

int tune_loader_next(struct tune_loader *load, struct tune_batch *batch)
{
    if (!load->in_step || load->given == load->now) {
        tune_error_set("this step has no more micro-batches; call tune_loader_more for the next step");
        return -1;
    }
    struct tune_batch next;
    if (load->o.packing)
        next_packs(load, &next);
    else
        TRY(next_rows(load, &next));
    load->padded += (int64_t)next.B * next.T;
    if (load->given == load->now && load->label_count == 0 && !load->o.unlabelled)
        return no_label(load);
    next.ids = load->ids;
    next.labels = load->labels;
    next.lengths = load->lengths;
    next.epoch = (double)(load->at.epoch * load->rows + load->at.offset + load->given) / (double)load->rows;
    *batch = next;
    return 0;
}

void tune_progress_step(struct tune_progress *at, const struct tune_loader *load)
{
    at->step++;
    at->best = false; /* it was of the step before */
    at->rows += load->given;
    at->tokens += load->tokens;
    at->labels += load->label_count;
    at->padded_tokens += load->padded;
    at->planned_steps = load->planned;
    at->epoch = (double)at->rows / (double)load->rows;
    if (at->planned_rows > 0)
        at->fraction = (double)at->rows / (double)at->planned_rows;
    else
        at->fraction = at->step < load->planned ? (double)at->step / (double)load->planned : 1;
}

double tune_loader_waited_s(const struct tune_loader *load)
{
    return load->waited_s;
}

/* To the begin of a step, before the helper makes its first row. */
static void restart(struct tune_loader *load, int64_t step, const struct walk *w)
{
    stop_helper(load);
    load->at = load->ahead = *w;
    load->first = load->done = step;
    if (load->o.max_steps < 0)
        load->planned = load->o.packing ? estimate(load, step, w->used) : step + steps_left(load, w);
    load->in_step = load->quit = load->failed = load->held = false;
    load->now = load->given = load->put = load->skipped = load->skipped_in_a_row = 0;
    load->tokens = load->label_count = load->padded = 0;
    load->made = load->o.packing ? w->step : w->used;
    load->wanted = 0;
    load->began_s = -1;
}

int tune_loader_seek(struct tune_loader *load, const struct tune_progress *at)
{
    if (at->step < 0 || at->rows < 0 || at->rows > load->total) {
        tune_error_set("cannot go on behind step %lld and row %lld: the plan has %lld rows; rows, --epochs or --train-split are "
                       "not those of the run", (long long)at->step, (long long)at->rows, (long long)load->total);
        return -1;
    }
    restart(load, at->step, &(struct walk){.step = at->step, .epoch = at->rows / load->rows, .offset = at->rows % load->rows,
                                           .used = at->rows});
    return 0;
}

int tune_loader_rewind(struct tune_loader *load)
{
    restart(load, 0, &(struct walk){0});
    return 0;
}
