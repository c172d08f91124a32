/* test_loader.c - the plan, the order, the batches, and what the helper thread may and may not do. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/packs.h"
#include "flags/flags.h"
#include "test.h"

enum { NO = TUNE_NO_LABEL };

/* A set of our own. Token t of row i has the id 100 * i + t. */
struct own {
    int64_t bad_from, bad_to;  /* rows that are bad */
    int64_t fails, unlabelled; /* a row that fails, one without labels; -1: none */
    int length;                /* of every row; 0: 2 + i % 7 */
    int64_t empty;             /* every so many-th row has no token; 0: none */
    int64_t prompt;            /* tokens at the begin of each row that are not trained */
    int64_t mute;              /* the row before it, at this period, has tokens and no label; 0: none */
    _Atomic int64_t calls;
    volatile int *catch;       /* NULL, or where reading row 1000 notes SIGTERM */
    atomic_bool signals_open;  /* the calling thread takes signals */
    pthread_t main;
};

static int64_t length_of(const struct own *own, int64_t row)
{
    if (own->empty > 0 && row % own->empty == 0)
        return 0;
    return own->length ? own->length : 2 + row % 7;
}

/* True if that row, of two tokens or more, has labels. */
static bool labelled(const struct own *own, int64_t row)
{
    return row != own->unlabelled && !(own->mute > 0 && row % own->mute == own->mute - 1);
}

/* Whether a loader keeps the row. */
static bool kept(const struct own *own, int64_t row)
{
    return !(row >= own->bad_from && row < own->bad_to) && length_of(own, row) > 1 && labelled(own, row);
}

static int own_row(void *context, int64_t row, struct tune_example *x)
{
    struct own *own = context;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (!pthread_equal(own->main, pthread_self()) && !(sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM)))
        atomic_store(&own->signals_open, true);
    atomic_fetch_add(&own->calls, 1);
    if (own->catch && row == 1000)
        __atomic_store_n(own->catch, SIGTERM, __ATOMIC_RELAXED);
    if (row == own->fails) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "row %lld broke", (long long)row);
        return -1;
    }
    x->bad = row >= own->bad_from && row < own->bad_to;
    if (x->bad)
        return 0;
    int64_t n = length_of(own, row);
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int64_t t = 0; t < n; t++) {
        x->ids[t] = (int32_t)(100 * (row % 1000000) + t); /* whatever the row, an id */
        x->trained[t] = t >= own->prompt && labelled(own, row);
    }
    x->count = n;
    return 0;
}

static struct own own_new(void)
{
    return (struct own){.fails = -1, .unlabelled = -1, .main = pthread_self()};
}

static struct tune_loader_options options(void)
{
    return (struct tune_loader_options){.part = TUNE_ALL, .batch_size = 2, .accumulate = 2, .max_length = 16, .epochs = 1,
                                        .max_steps = -1, .stop_after_seconds = -1, .prefetch = true};
}

static struct tune_loader *loader_of(struct own *own, int64_t rows, struct tune_loader_options o, struct tune_dataset **d)
{
    *d = tune_dataset_from(rows, own_row, own, o.max_length);
    assert_got(*d);
    return tune_loader_new(*d, &o);
}

static void done(struct tune_loader *load, struct tune_dataset *d)
{
    tune_loader_free(load);
    tune_dataset_free(d);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static double process_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One whole run: the rows in their order into rows (room for most of them); returns how many. */
static int64_t run(struct tune_loader *load, struct tune_progress *at, int64_t *rows, int64_t most)
{
    struct tune_batch batch;
    int64_t n = 0;
    int micros;
    while ((micros = tune_loader_more(load, at)) > 0) {
        while (micros-- > 0) {
            assert_ok(tune_loader_next(load, &batch));
            for (int b = 0; b < batch.B; b++, n++)
                if (n < most)
                    rows[n] = tune_batch_row(&batch, b, 0);
        }
        assert_int_equal(tune_loader_next(load, &batch), -1); /* the step gave what it had */
        tune_progress_step(at, load);
    }
    assert_ok(micros);
    return n;
}

/* Rows, batches, accumulation and epochs in many combinations, against the plan spelt out in a loop. */
static void plans(void **state)
{
    (void)state;
    static const double epochs[] = {0.1, 0.5, 1, 1.4, 2, 3.01};
    struct own own = own_new();
    for (int rows = 1; rows <= 13; rows += 3)
        for (int B = 1; B <= 5; B += 2)
            for (int accumulate = 1; accumulate <= 4; accumulate++)
                for (size_t e = 0; e < sizeof epochs / sizeof *epochs; e++) {
                    struct tune_dataset *d;
                    struct tune_loader_options o = options();
                    struct tune_progress at = {0};
                    int64_t total = (int64_t)ceil(rows * epochs[e] - 1e-9), steps = 0, seen[64];
                    o.batch_size = B;
                    o.accumulate = accumulate;
                    o.epochs = epochs[e];
                    o.shuffle = true;
                    o.prefetch = (rows + B) % 2;
                    struct tune_loader *load = loader_of(&own, rows, o, &d);
                    assert_got(load);
                    for (int64_t used = 0; used < total; steps++) {
                        int64_t left = rows - used % rows, full = (int64_t)B * accumulate;
                        int64_t step = left < full ? left : full;
                        used += step < total - used ? step : total - used;
                    }
                    assert_int_equal(tune_loader_planned_steps(load), steps);
                    assert_int_equal(run(load, &at, seen, 64), total);
                    assert_true(at.finished);
                    assert_int_equal(at.step, steps);
                    assert_int_equal(at.planned_steps, steps);
                    assert_int_equal(at.rows, total);
                    assert_true(at.fraction == 1 && fabs(at.epoch - (double)total / rows) < 1e-12);
                    for (int64_t first = 0; first + rows <= total; first += rows) { /* each row once per epoch */
                        int count[16] = {0};
                        for (int64_t i = first; i < first + rows; i++)
                            count[seen[i]]++;
                        for (int i = 0; i < rows; i++)
                            assert_int_equal(count[i], 1);
                    }
                    done(load, d);
                }
}

static void partial_steps(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_loader_options o = options(); /* 7 rows, 4 a step: 2+2, then 2+1 */
    struct tune_loader *load = loader_of(&own, 7, o, &d);
    struct tune_progress at = {0};
    struct tune_batch batch;
    static const int B[] = {2, 2, 2, 1};
    assert_got(load);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(tune_loader_more(load, &at), 2);
        for (int m = 0; m < 2; m++) {
            assert_ok(tune_loader_next(load, &batch));
            assert_int_equal(batch.B, B[2 * step + m]);
            assert_int_equal(tune_batch_row(&batch, 0, 0), 4 * step + 2 * m); /* not shuffled: the file's order */
        }
    }
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_true(at.finished);
    assert_int_equal(tune_loader_more(load, &at), 0);
    done(load, d);
    o.accumulate = 3; /* 7 rows, 6 a step: 3 micro-batches, then one of one row */
    load = loader_of(&own, 7, o, &d);
    assert_int_equal(tune_loader_more(load, &at), 3);
    assert_int_equal(tune_loader_more(load, &at), 1);
    assert_ok(tune_loader_next(load, &batch));
    assert_int_equal(batch.B, 1);
    done(load, d);
}

static void batches(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_loader_options o = options();
    struct tune_progress at = {0};
    struct tune_batch batch;
    o.batch_size = 3;
    o.accumulate = 1;
    o.max_length = 4;
    struct tune_loader *load = loader_of(&own, 3, o, &d); /* rows of 2, 3, 4 tokens */
    assert_got(load);
    assert_int_equal(tune_loader_more(load, &at), 1);
    assert_ok(tune_loader_next(load, &batch));
    static const int32_t ids[] = {0, 1, 0, 0, 100, 101, 102, 0, 200, 201, 202, 203};
    static const int32_t labels[] = {1, NO, NO, NO, 101, 102, NO, NO, 201, 202, 203, NO};
    assert_int_equal(batch.B, 3);
    assert_int_equal(batch.T, 4);
    assert_memory_equal(batch.ids, ids, sizeof ids);
    assert_memory_equal(batch.labels, labels, sizeof labels);
    assert_int_equal(batch.lengths[0], 2);
    assert_int_equal(batch.lengths[2], 4);
    assert_int_equal(batch.tokens, 9);
    assert_int_equal(batch.label_count, 6);
    tune_progress_step(&at, load);
    assert_int_equal(at.step, 1);
    assert_int_equal(at.rows, 3);
    assert_int_equal(at.tokens, 9);
    assert_int_equal(at.labels, 6);
    assert_int_equal(at.padded_tokens, 12);
    done(load, d);

    o.batch_size = 1; /* the same buffers hold a short row after a long one */
    o.shuffle = false;
    load = loader_of(&own, 3, o, &d);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tune_loader_more(load, &at), 1);
        assert_ok(tune_loader_next(load, &batch));
        assert_int_equal(batch.T, 2 + i); /* padded to the longest of the batch, not to max_length */
        assert_int_equal(batch.labels[1 + i], NO);
    }
    done(load, d);

    static const int rounded[] = {3, 3, 4}; /* to a multiple of 3, but at most to max_length */
    o.pad_to_multiple_of = 3;
    load = loader_of(&own, 3, o, &d);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tune_loader_more(load, &at), 1);
        assert_ok(tune_loader_next(load, &batch));
        assert_int_equal(batch.T, rounded[i]);
        assert_int_equal(batch.lengths[0], 2 + i);
        assert_int_equal(batch.label_count, 1 + i);
        for (int t = 1 + i; t < batch.T; t++)
            assert_int_equal(batch.labels[t], NO);
    }
    done(load, d);
}

static void orders(void **state)
{
    (void)state;
    enum { N = 50 };
    int64_t rows[4][2 * N];
    struct own own = own_new();
    for (int k = 0; k < 4; k++) {
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_loader_options o = options();
        o.shuffle = true;
        o.seed = k == 2 ? 6 : 5;
        o.epochs = 2;
        o.prefetch = k != 1;
        o.batch_size = k == 3 ? 7 : 2; /* the order does not know of batches */
        struct tune_loader *load = loader_of(&own, N, o, &d);
        assert_got(load);
        assert_int_equal(run(load, &at, rows[k], 2 * N), 2 * N);
        done(load, d);
    }
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    assert_memory_equal(rows[0], rows[3], sizeof rows[0]);
    assert_memory_not_equal(rows[0], rows[2], sizeof rows[0]);
    assert_memory_not_equal(rows[0], rows[0] + N, sizeof rows[0] / 2); /* another order in the second epoch */
}

static void max_steps(void **state)
{
    (void)state;
    static const int64_t wanted[] = {0, 1, 2, 3, 11};
    struct own own = own_new();
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_loader_options o = options(); /* 6 rows, 4 a step: 4, 2, 4, 2, .. */
        o.max_steps = wanted[i];
        struct tune_loader *load = loader_of(&own, 6, o, &d);
        assert_got(load);
        assert_int_equal(tune_loader_planned_steps(load), wanted[i]);
        own.calls = 0;
        int64_t rows = run(load, &at, NULL, 0);
        assert_int_equal(at.step, wanted[i]);
        assert_int_equal(rows, wanted[i] / 2 * 6 + wanted[i] % 2 * 4);
        assert_true(at.finished);
        done(load, d);
        assert_int_equal(own.calls, rows); /* nothing is tokenised that no step wants */
    }
}

static void stops(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_progress at = {0};
    struct tune_batch batch;
    volatile int caught = 0;
    struct tune_loader_options o = options();
    o.stop_signal = &caught;
    struct tune_loader *load = loader_of(&own, 100, o, &d);
    assert_int_equal(tune_loader_more(load, &at), 2);
    __atomic_store_n(&caught, SIGTERM, __ATOMIC_RELAXED); /* as the handler does: the helper may be reading it */
    assert_ok(tune_loader_next(load, &batch));            /* the step may end */
    assert_ok(tune_loader_next(load, &batch));
    tune_progress_step(&at, load);
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_int_equal(at.signal, SIGTERM);
    assert_string_equal(at.stopped, "SIGTERM");
    assert_false(at.finished);
    assert_int_equal(at.planned_steps, 25);
    done(load, d);

    o.stop_signal = NULL;
    o.stop_at_step = 3;
    int64_t rows[100];
    at = (struct tune_progress){0};
    load = loader_of(&own, 100, o, &d);
    assert_int_equal(run(load, &at, rows, 100), 12);
    assert_true(at.step == 3 && !at.finished && at.signal == 0 && at.planned_steps == 25);
    assert_string_equal(at.stopped, "`stop_at_step`");
    done(load, d);
    o.stop_at_step = 25; /* the planned end: that is not stopping */
    at = (struct tune_progress){0};
    load = loader_of(&own, 100, o, &d);
    assert_int_equal(run(load, &at, rows, 100), 100);
    assert_true(at.finished && !at.stopped);
    done(load, d);
    o.stop_at_step = 0;

    bool stable = false;
    o.stable = &stable;
    at = (struct tune_progress){0};
    load = loader_of(&own, 100, o, &d);
    assert_int_equal(tune_loader_more(load, &at), 2);
    stable = true; /* by the logger, that saw the step */
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_true(!at.finished && at.signal == 0 && at.planned_steps == 25);
    assert_string_equal(at.stopped, "`until_stable`");
    done(load, d);
    o.stable = NULL;

    o.stop_signal = NULL;
    o.stop_after_seconds = 0; /* one step at least */
    at = (struct tune_progress){0};
    load = loader_of(&own, 100, o, &d);
    assert_int_equal(tune_loader_more(load, &at), 2);
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_false(at.finished);
    assert_int_equal(at.signal, 0);
    assert_string_equal(at.stopped, "`stop_after_seconds`");
    assert_int_equal(at.planned_steps, 25); /* the schedule is untouched */
    done(load, d);

    at = (struct tune_progress){0}; /* a phase before the first step */
    load = loader_of(&own, 100, o, &d);
    assert_false(tune_loader_time_is_up(load)); /* nothing began */
    tune_loader_begin(load);
    assert_int_equal(tune_loader_more(load, &at), 2); /* the phase was over in time: a step at least */
    assert_int_equal(tune_loader_more(load, &at), 0);
    done(load, d);
    at = (struct tune_progress){0};
    load = loader_of(&own, 100, o, &d);
    tune_loader_begin(load);
    assert_true(tune_loader_time_is_up(load)); /* the phase is not over */
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_true(!at.finished && at.signal == 0 && at.step == 0);
    assert_string_equal(at.stopped, "`stop_after_seconds`");
    done(load, d);

    int second = 0; /* a limit that a busy machine does not reach before the second step */
    for (int ms = 100; second == 0 && ms < 60000; ms *= 4) {
        o.stop_after_seconds = ms * 1e-3;
        at = (struct tune_progress){0};
        load = loader_of(&own, 100, o, &d);
        pause_ms(ms); /* counted from the first step, not from here */
        assert_int_equal(tune_loader_more(load, &at), 2);
        second = tune_loader_more(load, &at);
        pause_ms(ms);
        assert_int_equal(tune_loader_more(load, &at), 0);
        done(load, d);
    }
    assert_int_equal(second, 2);
}

static void parts(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct own own = own_new();
    int count[N + 500] = {0};
    int64_t held[N], later[N + 500], n_held = 0;
    for (int pass = 0; pass < 3; pass++) { /* train, held out, held out after rows were appended */
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_loader_options o = options();
        int64_t rows[N + 500], all = pass == 2 ? N + 500 : N;
        o.part = pass == 0 ? TUNE_TRAIN : TUNE_HELD_OUT;
        o.train_split = 0.8;
        o.seed = 9;
        o.shuffle = pass == 0;
        struct tune_loader *load = loader_of(&own, all, o, &d);
        assert_got(load);
        int64_t n = run(load, &at, rows, N + 500);
        assert_int_equal(tune_loader_rows(load), n);
        for (int64_t i = 0; i < n; i++) {
            assert_true(tune_dataset_held_out(9, rows[i], 0.8) == (pass > 0));
            count[rows[i]] += pass < 2;
            if (pass > 0 && i > 0)
                assert_true(rows[i] > rows[i - 1]);
        }
        if (pass == 1) {
            n_held = n;
            memcpy(held, rows, sizeof held);
            assert_in_range(n, 150, 250);
        }
        memcpy(later, rows, sizeof later);
        done(load, d);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(count[i], 1); /* disjoint and complete */
    assert_memory_equal(held, later, (size_t)n_held * sizeof *held);

    struct tune_dataset *d;
    struct tune_loader_options o = options();
    o.part = TUNE_HELD_OUT;
    o.train_split = 1;
    assert_null(loader_of(&own, 10, o, &d));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("no row held out of 10");
    tune_dataset_free(d);
    o.part = TUNE_TRAIN;
    o.train_split = 1e-9;
    assert_null(loader_of(&own, 10, o, &d));
    assert_error_has("no row to train on of 10");
    tune_dataset_free(d);
}

/* The share that is trained on is the one asked for: of 200,000 rows within four standard deviations, at most 0.5 %. */
static void exact_share(void **state)
{
    (void)state;
    enum { N = 200000 };
    static const double shares[] = {0.001, 0.1, 0.5, 0.8, 0.99};
    for (int s = 0; s < 5; s++) {
        double p = shares[s], limit = 4 * sqrt(p * (1 - p) / N);
        int64_t train = 0;
        for (int64_t row = 0; row < N; row++)
            train += !tune_dataset_held_out(3, row, p);
        print_message("# share %g: %g of %d rows, limit %g\n", p, (double)train / N, N, limit);
        assert_true(fabs((double)train / N - p) <= limit);
    }
    for (int64_t row = 0; row < 1000; row++)
        assert_false(tune_dataset_held_out(3, row, 1));
}

/* The helper makes the step at hand and two more, then sleeps; every row is asked for once. */
static void two_ahead(void **state)
{
    (void)state;
    enum { N = 42, PER_STEP = 4, STEPS = 11 };
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_progress at = {0};
    struct tune_batch batch;
    struct tune_loader *load = loader_of(&own, N, options(), &d);
    assert_got(load);
    pause_ms(20);
    assert_int_equal(own.calls, 0); /* before the first step nothing is read */
    for (int step = 0; step < STEPS; step++) {
        int64_t most = (step + 3) * PER_STEP < N ? (step + 3) * PER_STEP : N;
        assert_true(tune_loader_more(load, &at) > 0);
        for (int wait = 0; own.calls < most && wait < 300000; wait++)
            pause_ms(1);
        assert_int_equal(own.calls, most);
        pause_ms(5);
        assert_int_equal(own.calls, most);
        while (tune_loader_next(load, &batch) == 0)
            ;
        assert_int_equal(own.calls, most);
        if (step == 3) { /* a spinning helper would use 0.3 s here */
            double before_s = process_s();
            pause_ms(300);
            assert_true(process_s() - before_s < 0.1);
        }
    }
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_false(own.signals_open);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGINT)); /* the caller's own are as they were */
    done(load, d);
}

static void hand_over(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++)
        for (int64_t fails = 0; fails < 9; fails++) {
            struct own own = own_new();
            struct tune_dataset *d;
            struct tune_progress at = {0};
            struct tune_batch batch;
            struct tune_loader_options o = options();
            int64_t given = 0;
            int micros;
            own.fails = fails;
            o.prefetch = ahead;
            struct tune_loader *load = loader_of(&own, 9, o, &d);
            while ((micros = tune_loader_more(load, &at)) > 0)
                while (micros-- > 0) {
                    assert_ok(tune_loader_next(load, &batch));
                    given += batch.B;
                }
            assert_int_equal(micros, -1);
            assert_int_equal(given, fails / 4 * 4); /* every step before the one that needs the row */
            assert_error_has("broke");
            assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
            tune_error_clear();
            assert_int_equal(tune_loader_more(load, &at), -1); /* and it stays so */
            assert_error_has("broke");
            done(load, d);
        }
}

static void frees(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_batch batch;
        own.fails = k % 3 == 2 ? 5 : -1;
        struct tune_loader *load = loader_of(&own, 1000000, options(), &d);
        assert_got(load);
        for (int step = 0; step < k / 3; step++) {
            assert_int_equal(tune_loader_more(load, &at), own.fails >= 0 && step > 0 ? -1 : 2);
            if (step < k / 3 - 1 || k % 3 == 1)
                while (tune_loader_next(load, &batch) == 0)
                    ;
        }
        if (k % 2)
            pause_ms(3);
        done(load, d);
    }
    tune_loader_free(NULL);
}

/* Rows that are bad, empty or without labels, at every size of a step: each batch is of the next rows that are kept, and the plan
 * gets shorter as rows are left out. The rule is spelt out here, over the order of a set that has no such row. */
static void left_out(void **state)
{
    (void)state;
    enum { N = 23 };
    static const double epochs[] = {.8, 1, 2.6};
    static const int sizes[] = {1, 2, 7};
    for (int k = 0; k < 3 * 3 * 8 * 2; k++) {
        struct own plain = own_new(), own = own_new();
        struct tune_loader_options o = options();
        struct tune_dataset *d;
        struct tune_batch batch;
        int64_t order[3 * N], total = (int64_t)ceil(N * epochs[k % 3] - 1e-9), place = 0, steps = 0;
        o.epochs = epochs[k % 3];
        o.batch_size = sizes[k / 3 % 3];
        o.accumulate = 1 + (k / 9 & 1);
        o.shuffle = k / 9 & 2;
        o.prefetch = k / 9 & 4;
        own.bad_from = 4, own.bad_to = k < 72 ? 6 : 20; /* few rows left out, or most of them */
        own.empty = 5, own.mute = 4;
        struct tune_loader *load = loader_of(&plain, N, o, &d);
        struct tune_progress at = {0};
        assert_int_equal(run(load, &at, order, 3 * N), total);
        done(load, d);
        at = (struct tune_progress){0};
        load = loader_of(&own, N, o, &d);
        for (int micros; (micros = tune_loader_more(load, &at)) > 0; steps++) {
            int64_t most = o.batch_size * o.accumulate, want[14], n = 0, given = 0;
            int64_t end = tune_dataset_rows(d) * (int64_t)(at.epoch + 1e-9) + N;
            place = at.rows;
            for (end = end < total ? end : total; place < end && n < most; place++)
                if (kept(&own, order[place]))
                    want[n++] = order[place];
            assert_int_equal(micros, (n + o.batch_size - 1) / o.batch_size);
            assert_true(at.planned_steps > steps);
            while (micros-- > 0) {
                assert_ok(tune_loader_next(load, &batch));
                assert_int_equal(batch.B, n - given < o.batch_size ? n - given : o.batch_size);
                assert_int_equal(batch.row_count, batch.B);
                for (int b = 0; b < batch.B; b++) {
                    assert_int_equal(tune_batch_row(&batch, b, 0), want[given + b]);
                    assert_int_equal(batch.ids[b * batch.T], 100 * want[given + b]);
                    assert_int_equal(batch.labels[b * batch.T], 100 * want[given + b] + 1);
                }
                given += batch.B;
                assert_true(batch.label_count >= batch.B);
            }
            assert_true(fabs(batch.epoch * N - (double)place) < 1e-9);
            tune_progress_step(&at, load);
            assert_int_equal(at.rows, place);
        }
        for (; place < total; place++) /* the rest has no label */
            assert_false(kept(&own, order[place]));
        assert_true(at.finished && at.rows == total && at.step == steps && at.planned_steps == steps && at.fraction == 1);
        struct tune_dataset_counts c = tune_dataset_counts(d);
        assert_true(c.rows == total && c.bad > 0 && c.unlabelled > 0);
        done(load, d);
    }
}

static void bad_rows(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_loader_options o = options();
        int64_t rows[40];
        o.prefetch = ahead;
        own.bad_from = 3;
        own.bad_to = 13; /* 8 rows of 18 are left */
        struct tune_loader *load = loader_of(&own, 18, o, &d);
        assert_int_equal(tune_loader_planned_steps(load), 5);
        assert_int_equal(run(load, &at, rows, 40), 8);
        assert_true(at.step == 2 && at.rows == 18 && at.planned_steps == 2 && rows[3] == 13);
        done(load, d);

        at = (struct tune_progress){0};
        o.max_steps = 7; /* steps do not cross epochs, whatever was left out */
        load = loader_of(&own, 18, o, &d);
        assert_int_equal(run(load, &at, NULL, 0), 7 * 4);
        assert_int_equal(at.step, 7);
        done(load, d);

        own.bad_from = 1; /* one good row of three: last of one epoch and first of another, it is four bad ones away */
        own.bad_to = 3;
        o.batch_size = o.accumulate = 1;
        o.max_steps = 40;
        o.shuffle = true;
        load = loader_of(&own, 3, o, &d);
        at = (struct tune_progress){0};
        assert_int_equal(run(load, &at, NULL, 0), 40);
        done(load, d);

        o = options();
        o.prefetch = ahead;
        own.bad_from = 0;
        own.bad_to = 18;
        for (o.max_steps = -1; o.max_steps < 5; o.max_steps += 5) {
            load = loader_of(&own, 18, o, &d);
            assert_int_equal(tune_loader_more(load, &at), -1);
            assert_error_has("not one of 18 rows has a token to train on: 18 cannot be read");
            done(load, d);
        }
    }
}

/* Nothing to train on in a whole epoch, or in the part of one that the run takes. */
static void no_labels(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_loader_options o = options();
        o.packing = kind & 1;
        o.prefetch = kind & 2;
        o.epochs = kind & 4 ? .5 : 3;
        own.length = 1; /* a single token predicts nothing */
        struct tune_loader *load = loader_of(&own, 20, o, &d);
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has(kind & 4 ? "not one of 10 rows" : "not one of 20 rows");
        assert_error_has("have no text or answer to train on, 0 lost theirs to max_length 16; the first is row 0");
        assert_true(own.calls >= (kind & 4 ? 10 : 20) && (o.prefetch || own.calls <= 20));
        done(load, d);

        own = own_new();
        own.length = 3;
        o.max_length = 1; /* cut away */
        load = loader_of(&own, 8, o, &d);
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has(kind & 4 ? "4 rows has a token" : "8 rows has a token");
        assert_error_has(kind & 4 ? "on, 4 lost theirs to max_length 1" : "on, 8 lost theirs to max_length 1");
        assert_error_has("0 cannot be read, 0 have no text");
        done(load, d);
    }
}

/* A signal is heeded though a million rows without labels are still to be passed. */
static void interrupted(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_batch batch;
        struct tune_loader_options o = options();
        volatile int signal_number = 0;
        own.catch = &signal_number; /* SIGTERM comes while row 1000 is read */
        own.bad_from = 4;
        own.bad_to = 1000000;
        o.packing = kind & 1;
        o.prefetch = kind & 2;
        o.max_length = 4;
        o.stop_signal = &signal_number;
        own.length = 4;
        struct tune_loader *load = loader_of(&own, 1000004, o, &d);
        for (int k = 0; k < 2; k++) {
            int micros = tune_loader_more(load, &at);
            if (micros == 0)
                break;
            assert_int_equal(micros, 2);
            assert_int_equal(k, 0);
            assert_ok(tune_loader_next(load, &batch));
            assert_ok(tune_loader_next(load, &batch));
            tune_progress_step(&at, load);
        }
        assert_true(at.signal == SIGTERM && !at.finished);
        if (!o.prefetch) /* the helper may be that far before the first step is asked for */
            assert_true(at.step == (o.packing ? 0 : 1) && at.rows == 4 * at.step);
        assert_true(own.calls <= 1001);
        signal_number = at.signal = 0; /* and it can go on */
        own.catch = NULL;
        assert_int_equal(tune_loader_more(load, &at), 2);
        done(load, d);
    }
}

static void rewinds(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_batch batch;
    struct tune_loader_options o = options();
    int64_t first[40], again[40];
    o.shuffle = true;
    own.bad_from = 0;
    own.bad_to = 1;
    o.batch_size = o.accumulate = 1;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct tune_progress at = {0};
        o.prefetch = ahead;
        struct tune_loader *load = loader_of(&own, 40, o, &d);
        assert_int_equal(run(load, &at, first, 40), 39);
        assert_int_equal(tune_loader_planned_steps(load), 39);
        for (int turn = 0; turn < 3; turn++) {
            assert_ok(tune_loader_rewind(load));
            assert_int_equal(tune_loader_planned_steps(load), 40);
            if (turn == 1) { /* from amidst a step too */
                assert_int_equal(tune_loader_more(load, &at), 1);
                assert_ok(tune_loader_next(load, &batch));
                assert_int_equal(tune_loader_more(load, &at), 1);
                continue;
            }
            at = (struct tune_progress){0};
            assert_int_equal(run(load, &at, again, 40), 39);
            assert_memory_equal(first, again, 39 * sizeof *first);
        }
        done(load, d);
    }
}

/* From behind every step: the rows, the counts and the plan of the run that was not interrupted. Bad rows (among them whole
 * steps of them), epochs that end within a step, and a number of steps instead of epochs. */
static void seeks(void **state)
{
    (void)state;
    enum { MOST = 200 };
    struct own own = own_new();
    own.bad_from = 8;
    own.bad_to = 15;
    own.mute = 6;
    for (int kind = 0; kind < 8; kind++) {
        struct tune_loader_options o = options();
        struct tune_dataset *d;
        o.shuffle = kind & 1;
        o.prefetch = kind & 2;
        o.epochs = 2.6;
        o.max_steps = kind & 4 ? 13 : -1;
        int64_t whole[MOST], part[MOST], n;
        struct tune_progress at = {0}, end = {0};
        struct tune_loader *load = loader_of(&own, 22, o, &d);
        n = run(load, &end, whole, MOST);
        assert_true(end.finished && n < MOST && n > 25);
        for (int64_t k = 0; k <= end.step; k++) {
            at = (struct tune_progress){0};
            done(load, d);
            o.stop_at_step = k;
            load = loader_of(&own, 22, o, &d);
            int64_t before = k > 0 ? run(load, &at, part, MOST) : 0;
            done(load, d);
            o.stop_at_step = 0;
            load = loader_of(&own, 22, o, &d);
            at.finished = false;
            at.stopped = NULL;
            assert_ok(tune_loader_seek(load, &at));
            assert_int_equal(run(load, &at, part + before, MOST - before), n - before);
            assert_memory_equal(part, whole, (size_t)n * sizeof *part);
            assert_memory_equal(&at, &end, sizeof at); /* steps, rows, tokens, the plan: to the bit */
        }
        at = end;
        at.rows = kind & 4 ? -1 : at.rows + 1;
        assert_int_equal(tune_loader_seek(load, &at), -1);
        assert_error_has("cannot go on behind step");
        done(load, d);
    }
    struct tune_loader_options o = options(); /* with another size of a step: from that row on, to the same end */
    struct tune_dataset *d;
    int64_t rows[40];
    struct tune_progress at = {.step = 3, .rows = 12};
    own.bad_from = own.bad_to = own.mute = 0;
    o.batch_size = 5;
    o.accumulate = 1;
    o.stop_after_seconds = 0; /* a step at least, of this process */
    struct tune_loader *load = loader_of(&own, 20, o, &d);
    assert_ok(tune_loader_seek(load, &at));
    assert_int_equal(run(load, &at, rows, 40), 5);
    assert_true(at.step == 4 && at.rows == 17 && at.planned_steps == 5 && !at.finished);
    done(load, d);
}

static void too_long(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_progress at = {0};
    struct tune_loader_options o = options();
    struct tune_dataset *d = tune_dataset_from(4, own_row, &own, 100);
    o.max_length = 3;
    struct tune_loader *load = tune_loader_new(d, &o);
    assert_got(load);
    assert_int_equal(tune_loader_more(load, &at), -1);
    assert_error_has("row 2 has 4 tokens, the loader was made for max_length 3");
    done(load, d);
}

/* A pair of 4 + row and 9 tokens; row 2's rejected answer has no label. */
static int own_pair(void *context, int64_t row, struct tune_example *x)
{
    (void)context;
    int64_t first = 4 + row;
    if (tune_example_reserve(x, first + 9) < 0)
        return -1;
    for (int64_t t = 0; t < first + 9; t++) {
        x->ids[t] = (int32_t)(100 * row + t);
        x->trained[t] = (t < first && t >= 2) || (t >= first + 3 && row != 2);
    }
    x->count = first;
    if (tune_example_end(x, 1) < 0)
        return -1;
    x->count = first + 9;
    return tune_example_end(x, 0);
}

static void pairs(void **state)
{
    (void)state;
    struct tune_loader_options o = options();
    struct tune_dataset *d = tune_dataset_from(5, own_pair, NULL, 6);
    struct tune_progress at = {0};
    struct tune_batch batch;
    o.sequences = 2, o.max_length = 6, o.accumulate = 1;
    assert_int_equal(tune_loader_sequences(&o), 4);
    struct tune_loader *load = tune_loader_new(d, &o);
    assert_got(load);
    assert_int_equal(tune_loader_more(load, &at), 1);
    assert_ok(tune_loader_next(load, &batch));
    assert_true(batch.sequences == 2 && batch.B == 4 && batch.T == 6 && batch.row_count == 2 && tune_batch_row(&batch, 0, 0) == 0 && tune_batch_row(&batch, 1, 0) == 0 &&
                tune_batch_row(&batch, 2, 0) == 1 && tune_batch_row(&batch, 3, 0) == 1);
    assert_true(batch.lengths[0] == 4 && batch.lengths[1] == 6 && batch.lengths[2] == 5 && batch.lengths[3] == 6 && batch.tokens == 21);
    for (int b = 0; b < 4; b++)
        assert_true(batch.label_of[b] == (b % 2 == 0));
    for (int t = 0; t < 6; t++) { /* row 0: 4 tokens, 2 of them trained; then its rejected answer, cut from 9 to 6 */
        assert_int_equal(batch.ids[t], t < 4 ? t : 0);
        assert_int_equal(batch.labels[t], t == 1 || t == 2 ? t + 1 : TUNE_NO_LABEL);
        assert_int_equal(batch.ids[6 + t], 4 + t);
        assert_int_equal(batch.labels[6 + t], t >= 2 && t < 5 ? 4 + t + 1 : TUNE_NO_LABEL);
    }
    tune_progress_step(&at, load);
    assert_int_equal(tune_loader_more(load, &at), 1);
    assert_ok(tune_loader_next(load, &batch));
    assert_true(batch.B == 4 && tune_batch_row(&batch, 0, 0) == 3 && tune_batch_row(&batch, 2, 0) == 4); /* row 2 is left out */
    tune_progress_step(&at, load);
    assert_true(at.rows == 5 && tune_loader_more(load, &at) == 0);
    tune_loader_free(load);
    o.sequences = 0;
    assert_got(load = tune_loader_new(d, &o));
    at = (struct tune_progress){0};
    assert_int_equal(tune_loader_more(load, &at), -1);
    assert_error_has("row 0 has 2 labelled sequences, and the loader was made for 0; give both the same `sequences`");
    done(load, d);
    o.sequences = 2, o.packing = true;
    d = tune_dataset_from(5, own_pair, NULL, 6);
    assert_null(tune_loader_new(d, &o));
    assert_error_has("`packing`");
    tune_dataset_free(d);
}

/* A row of *context sequences. Sequence i has 2 + i tokens, its last ones 1000 row + i, and the label row + i / 8. */
static int own_group(void *context, int64_t row, struct tune_example *x)
{
    int n = *(const int *)context;
    if (tune_example_reserve(x, n * (n + 3)) < 0)
        return -1;
    x->count = 0;
    for (int i = 0; i < n; i++) {
        for (int t = 0; t < 2 + i; t++, x->count++) {
            x->ids[x->count] = (int32_t)(t ? 1000 * row + i : 7);
            x->trained[x->count] = 1;
        }
        if (tune_example_end(x, (double)row + i / 8.) < 0)
            return -1;
    }
    return 0;
}

/* The next batch holds whole rows, each with its n sequences and their labels. */
static void is_of_groups(const struct tune_batch *batch, int n, int64_t first, int64_t last)
{
    assert_true(batch->sequences == n && batch->B % n == 0 && batch->row_count * n == batch->B);
    for (int b = 0; b < batch->B; b++) {
        int64_t row = tune_batch_row(batch, b, 0);
        assert_true(row >= first && row <= last && row == tune_batch_row(batch, b - b % n, 0));
        assert_int_equal(batch->lengths[b], 2 + b % n);
        assert_int_equal(batch->ids[b * batch->T + 1], 1000 * row + b % n);
        assert_int_equal(batch->labels[b * batch->T], 1000 * row + b % n);
        assert_true(batch->label_of[b] == (double)row + b % n / 8.);
    }
}

/* One labelled sequence, two, and many: shuffled, over steps and epochs, and gone on with. */
static void groups(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n += 1 + (n > 1)) {
        struct tune_loader_options o = options();
        struct tune_dataset *d = tune_dataset_from(7, own_group, &n, 16);
        struct tune_progress at = {0}, half = {0};
        struct tune_batch batch;
        int64_t order[14] = {0}, rows = 0, met = 0;
        int more;
        o.sequences = n, o.shuffle = true, o.epochs = 2, o.max_length = 16;
        for (int again = 0; again < 2; again++) {
            struct tune_loader *load = tune_loader_new(d, &o);
            assert_got(load);
            at = half;
            assert_ok(again ? tune_loader_seek(load, &at) : 0);
            rows = at.rows;
            while ((more = tune_loader_more(load, &at)) > 0) {
                for (; more > 0; more--) {
                    assert_ok(tune_loader_next(load, &batch));
                    is_of_groups(&batch, n, 0, 6);
                    for (int b = 0; b < batch.B; b += n, rows++) {
                        assert_true(!again || order[rows] == tune_batch_row(&batch, b, 0));
                        order[rows] = tune_batch_row(&batch, b, 0);
                        met += again == 0;
                    }
                }
                tune_progress_step(&at, load);
                half = !again && half.step == 0 ? at : half;
            }
            assert_ok(more);
            tune_loader_free(load);
        }
        assert_true(rows == 14 && met == 14 && half.step == 1);
        int64_t sum = 0;
        for (int i = 0; i < 7; i++)
            sum += order[i] + order[7 + i];
        assert_int_equal(sum, 2 * 21); /* each row once an epoch */
        tune_dataset_free(d);
    }
}

static int own_odd_group(void *context, int64_t row, struct tune_example *x)
{
    int n = 2;
    int status = own_group(&n, row, x);
    int odd = *(const int *)context;
    if (odd == 1)
        x->ends[0] = 0; /* the first sequence has no token */
    else if (odd > 1)
        x->labels[1] = odd == 2 ? (double)NAN : (double)-INFINITY;
    else
        x->count--; /* the last sequence ends beyond them */
    return status;
}

static void odd_groups(void **state)
{
    (void)state;
    static const char *const errors[] = {
        "the callback's sequence 2 has the tokens from 2 up to 5 of 4", "the callback's sequence 1 has the tokens from 0 up to 0 of 5",
        "row 1: the callback's sequence 2 has the label nan; expected a finite number",
        "row 1: the callback's sequence 2 has the label -inf; expected a finite number"};
    for (int k = 0; k < 4; k++) {
        struct tune_dataset *d = tune_dataset_from(2, own_odd_group, &k, 16);
        struct tune_example x = {0};
        assert_int_equal(tune_dataset_get(d, 1, &x), -1);
        assert_error_has(errors[k]);
        tune_example_free(&x);
        tune_dataset_free(d);
    }
}

static void nonsense(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d = tune_dataset_from(4, own_row, &own, 16);
#define REFUSED(field, number, words)                              \
    do {                                                           \
        struct tune_loader_options o = options();                  \
        o.part = TUNE_TRAIN;                                       \
        o.train_split = 1;                                         \
        o.field = number;                                          \
        assert_null(tune_loader_new(d, &o));                       \
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);     \
        assert_error_has(words);                                   \
    } while (0)
    REFUSED(batch_size, 0, "batch_size is 0");
    REFUSED(sequences, -1, "sequences is -1");
    REFUSED(batch_size, -3, "batch_size is -3");
    REFUSED(accumulate, 0, "accumulate is 0");
    REFUSED(max_length, 0, "max_length is 0");
    REFUSED(max_length, -1, "max_length is -1");
    REFUSED(train_split, 0, "train_split is 0");
    REFUSED(train_split, 1.5, "train_split is 1.5");
    REFUSED(train_split, NAN, "train_split is");
    REFUSED(max_steps, -2, "max_steps is -2");
    REFUSED(epochs, 0, "epochs is 0");
    REFUSED(epochs, -1, "epochs is -1");
    REFUSED(epochs, INFINITY, "epochs is inf");
    REFUSED(epochs, NAN, "epochs is");
    REFUSED(epochs, 1e300, "too many rows");
    REFUSED(stop_after_seconds, NAN, "stop_after_seconds");
    REFUSED(stop_at_step, -1, "stop_at_step");
    tune_dataset_free(d);
    struct tune_loader_options o = options();
    o.batch_size = o.max_length = o.accumulate = 0x7fffffff;
    assert_null(loader_of(&own, (int64_t)1 << 52, o, &d)); /* 2^52 rows a step, 2^62 tokens a batch: no product may overflow */
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_error_has("no memory for batches");
    tune_dataset_free(d);
}

/* A set far larger than memory: nothing is stored per row. */
static void huge(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_progress at = {0};
    struct tune_batch batch;
    struct tune_loader_options o = options();
    own.length = 4;
    o.shuffle = true;
    struct tune_loader *load = loader_of(&own, (int64_t)1 << 40, o, &d);
    assert_got(load);
    assert_int_equal(tune_loader_planned_steps(load), (int64_t)1 << 38);
    assert_int_equal(tune_loader_more(load, &at), 2);
    assert_ok(tune_loader_next(load, &batch));
    assert_true(tune_batch_row(&batch, 0, 0) != tune_batch_row(&batch, 1, 0) && tune_batch_row(&batch, 0, 0) >= 0);
    assert_true(tune_batch_row(&batch, 1, 0) < (int64_t)1 << 40);
    done(load, d);
}

static void by_flags(void **state)
{
    (void)state;
    struct own own = own_new();
    volatile int caught = 0;
    struct tune_flags flags = {
        .seed = 4, .stop_signal = &caught, .data.max_length = 16,
        .loader = {.train_split = 0.5, .batch_size = 3, .accumulate = 2, .epochs = 2, .max_steps = -1,
                   .stop_after_seconds = -1}};
    struct tune_dataset *d = tune_dataset_from(100, own_row, &own, 16);
    struct tune_loader *load = tune_get_loader(&flags, d);
    struct tune_progress at = {0};
    int64_t rows[200];
    assert_got(load);
    int64_t n = run(load, &at, rows, 200);
    assert_int_equal(n, 2 * tune_loader_rows(load));
    for (int64_t i = 0; i < n; i++)
        assert_false(tune_dataset_held_out(4, rows[i], 0.5));
    tune_loader_free(load);
    caught = SIGINT;
    load = tune_get_loader(&flags, d);
    at = (struct tune_progress){0};
    assert_int_equal(tune_loader_more(load, &at), 0);
    assert_int_equal(at.signal, SIGINT);
    done(load, d);
}

/* ---- packing ---- */

enum { MOST = 64 };

/* A row of so many tokens into the fullest pack that has room; whether there is one. */
static bool best_fit(int64_t *used, int packs, int64_t capacity, int64_t length)
{
    int best = -1;
    for (int p = 0; p < packs; p++)
        if (used[p] + length <= capacity && (best < 0 || used[p] > used[best]))
            best = p;
    if (best >= 0)
        used[best] += length;
    return best >= 0;
}

/* The same for n rows, the longest first, into empty packs. */
static bool longest_first(int64_t *used, int packs, int64_t capacity, const int64_t *lengths, int n)
{
    memset(used, 0, (size_t)packs * sizeof *used);
    for (int64_t length = capacity; length > 0; length--)
        for (int row = 0; row < n; row++)
            if (lengths[row] == length && !best_fit(used, packs, capacity, length))
                return false;
    return true;
}

/* How many of the next rows (their lengths) go into `packs` packs of `capacity`, by the rule of packs.h written down. */
static int rows_that_fit(const int64_t *lengths, int n, int packs, int64_t capacity, int *again)
{
    int64_t used[MOST] = {0};
    int row = 0;
    for (; row < n; row++)
        if (lengths[row] > 0 && !best_fit(used, packs, capacity, lengths[row])) {
            if (!longest_first(used, packs, capacity, lengths, row + 1))
                break;
            ++*again;
        }
    return row;
}

/* The batch is what core/batch.h says of packs of whole rows; counts the rows in it (seen). */
static void check_packs(const struct own *own, const struct tune_batch *b, int *seen)
{
    int64_t tokens = 0, labels = 0, longest = 1;
    assert_null(b->row_of);
    for (int p = 0; p < b->B; p++) {
        const int32_t *ids = b->ids + (int64_t)p * b->T, *wanted = b->labels + (int64_t)p * b->T;
        const int32_t *positions = b->positions + (int64_t)p * b->T, *starts = b->starts + (int64_t)p * b->T;
        int t = 0;
        while (t < b->lengths[p]) {
            int64_t row = ids[t] / 100, n = length_of(own, row);
            int start = t;
            seen[row]++;
            assert_true(t + n <= b->lengths[p]);
            for (; t < start + n; t++) {
                bool label = t + 1 < start + n && labelled(own, row);
                assert_int_equal(ids[t], 100 * row + t - start);
                assert_int_equal(positions[t], t - start);
                assert_int_equal(starts[t], start);
                assert_true(tune_batch_row(b, p, t) == row && tune_batch_position(b, p, t) == t - start &&
                            tune_batch_start(b, p, t) == start);
                assert_int_equal(wanted[t], label ? ids[t] + 1 : NO);
                labels += label;
            }
        }
        for (; t < b->T; t++)
            assert_true(ids[t] == 0 && positions[t] == 0 && starts[t] == t && wanted[t] == NO && tune_batch_row(b, p, t) == -1);
        tokens += b->lengths[p];
        longest = b->lengths[p] > longest ? b->lengths[p] : longest;
    }
    assert_int_equal(b->T, longest);
    assert_int_equal(b->tokens, tokens);
    assert_int_equal(b->label_count, labels);
}

/* One packed run against the plan: the rows' order (that of the same loader without packing) cut where a row fits nowhere. Returns
 * how often rows were packed once more. */
static int packed_run(struct own *own, int rows, struct tune_loader_options o)
{
    struct tune_dataset *d;
    struct tune_progress at = {0};
    int64_t order[MOST], lengths[MOST], total = (int64_t)ceil(rows * o.epochs - 1e-9);
    struct own plain = own_new();
    o.packing = false;
    struct tune_loader *load = loader_of(&plain, rows, o, &d);
    assert_got(load);
    assert_int_equal(run(load, &at, order, MOST), total);
    done(load, d);
    for (int64_t i = 0; i < total; i++)
        lengths[i] = kept(own, order[i]) ? length_of(own, order[i]) : 0;
    o.packing = true;
    load = loader_of(own, rows, o, &d);
    assert_got(load);
    own->calls = 0;
    at = (struct tune_progress){0};
    assert_true(tune_loader_planned_steps(load) > 0);
    int micros, padded = 0, again = 0;
    bool any = false;
    for (int64_t i = 0; i < total; i++)
        any = any || lengths[i] > 0;
    while ((micros = tune_loader_more(load, &at)) > 0) {
        int left = (int)(rows - at.rows % rows < total - at.rows ? rows - at.rows % rows : total - at.rows), seen[MOST] = {0};
        int n = rows_that_fit(lengths + at.rows, left, o.batch_size * o.accumulate, o.max_length, &again), counted = 0;
        assert_true(at.planned_rows == total && at.step_rows == n && at.planned_steps > at.step);
        assert_true(micros <= o.accumulate);
        for (int m = 0; m < micros; m++) {
            struct tune_batch batch;
            assert_ok(tune_loader_next(load, &batch));
            assert_true(batch.B <= o.batch_size && batch.T <= o.max_length);
            check_packs(own, &batch, seen);
            counted += (int)batch.row_count;
            padded += batch.B * batch.T;
        }
        int full = 0;
        for (int i = 0; i < n; i++) {
            full += lengths[at.rows + i] > 0;
            assert_int_equal(seen[order[at.rows + i]], lengths[at.rows + i] > 0);
            seen[order[at.rows + i]] = 0;
        }
        assert_int_equal(counted, full);
        for (int i = 0; i < MOST; i++)
            assert_int_equal(seen[i], 0); /* and no other row */
        assert_int_equal(tune_loader_next(load, &(struct tune_batch){0}), -1);
        double before = at.fraction;
        tune_progress_step(&at, load);
        assert_true(at.fraction > before && at.planned_steps >= at.step);
    }
    assert_int_equal(micros, any ? 0 : -1);
    if (any) {
        assert_true(at.finished && at.rows == total && at.fraction == 1 && at.padded_tokens == padded);
        assert_int_equal(at.planned_steps, at.step);
    }
    done(load, d);
    if (any)
        assert_int_equal(own->calls, total); /* the row that did not fit was read once */
    return again;
}

static void packed(void **state)
{
    (void)state;
    struct own own = own_new();
    int again = 0;
    for (int k = 0; k < 400; k++) {
        struct tune_loader_options o = options();
        o.batch_size = 1 + k % 3;
        o.accumulate = 1 + k / 3 % 3;
        o.max_length = 8 + k % 19;
        o.shuffle = k % 4 != 0;
        o.epochs = k % 5 == 0 ? 2 : k % 5 == 1 ? .4 : 1;
        o.prefetch = k % 2;
        o.seed = (uint64_t)k;
        own.empty = k % 7 == 0 ? 3 : 0;
        own.mute = k % 6 == 5 ? 4 : 0;
        own.unlabelled = k % 11;
        again += packed_run(&own, 1 + k % 29, o);
    }
    assert_true(again > 20);
}

/* All that a step hands out, as one number. */
static uint64_t step_hash(struct tune_loader *load, int micros, struct tune_progress *at)
{
    uint64_t hash = 1469598103934665603u;
    struct tune_batch b;
    while (micros-- > 0) {
        assert_ok(tune_loader_next(load, &b));
        const int32_t *all[] = {b.ids, b.labels, b.positions, b.starts};
        for (int k = 0; k < 4; k++)
            for (int64_t i = 0; i < (int64_t)b.B * b.T; i++)
                hash = (hash ^ (uint32_t)all[k][i]) * 1099511628211u;
        hash = (hash ^ (uint64_t)b.T) * 1099511628211u + (uint64_t)b.row_count;
    }
    hash = (hash ^ (uint64_t)at->planned_steps) * 1099511628211u + (uint64_t)at->step_rows;
    tune_progress_step(at, load);
    return hash ^ (uint64_t)at->planned_steps ^ (uint64_t)(at->fraction * 1e9);
}

/* From the state of any step on, and by a limit of steps: the same batches and the same plan. */
static void packed_resume(void **state)
{
    (void)state;
    struct own own = own_new();
    for (int by_steps = 0; by_steps < 2; by_steps++) {
        struct tune_loader_options o = options();
        struct tune_progress at = {0}, states[100];
        uint64_t hashes[100];
        struct tune_dataset *d;
        int micros, steps = 0;
        o.packing = o.shuffle = true;
        o.epochs = 2.5;
        o.max_steps = by_steps ? 31 : -1;
        own.empty = 5;
        struct tune_loader *load = loader_of(&own, 90, o, &d);
        while ((micros = tune_loader_more(load, &at)) > 0) {
            hashes[steps] = step_hash(load, micros, &at);
            states[steps++] = at;
        }
        assert_true(at.finished && steps > 12 && (!by_steps || steps == 31));
        assert_true(by_steps ? at.planned_rows == 0 && at.planned_steps == 31 : at.rows == 225);
        done(load, d);
        o.prefetch = false;
        load = loader_of(&own, 90, o, &d);
        for (int from = 0; from < steps; from++) {
            at = states[from];
            assert_ok(tune_loader_seek(load, &at));
            assert_int_equal(tune_loader_planned_steps(load), at.planned_steps);
            for (int step = from + 1; step < steps; step++) {
                assert_true((micros = tune_loader_more(load, &at)) > 0);
                assert_true(step_hash(load, micros, &at) == hashes[step]);
            }
            assert_int_equal(tune_loader_more(load, &at), 0);
            assert_true(at.finished);
        }
        done(load, d);
    }
}

static void packed_bad_rows(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_batch batch;
        struct tune_loader_options o = options();
        o.prefetch = ahead;
        o.packing = true;
        own.length = 8; /* 2 to a pack, 8 to a step */
        own.bad_from = 6;
        own.bad_to = 30;
        struct tune_loader *load = loader_of(&own, 40, o, &d); /* 0-5, bad ones, 30, 31; 32-39 */
        for (int step = 0; step < 2; step++) {
            assert_int_equal(tune_loader_more(load, &at), 2);
            assert_ok(tune_loader_next(load, &batch));
            assert_int_equal(batch.row_count, 4);
            assert_ok(tune_loader_next(load, &batch));
            assert_true(batch.B == 2 && batch.T == 16 && batch.row_count == 4);
            tune_progress_step(&at, load);
        }
        assert_int_equal(tune_loader_more(load, &at), 0);
        assert_true(at.finished && at.rows == 40 && at.step == 2 && at.planned_steps == 2);
        done(load, d);

        own.bad_from = 8; /* nothing readable to the end of the epoch: left out */
        own.bad_to = 40;
        load = loader_of(&own, 40, o, &d);
        at = (struct tune_progress){0};
        assert_int_equal(tune_loader_more(load, &at), 2);
        assert_ok(tune_loader_next(load, &batch));
        assert_ok(tune_loader_next(load, &batch));
        tune_progress_step(&at, load);
        assert_int_equal(at.rows, 40); /* they cost no pack, so the step that is full of others has them */
        done(load, d);
        own.bad_from = 0;
        load = loader_of(&own, 40, o, &d);
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has("40 cannot be read");
        done(load, d);

        own.bad_to = 0;
        own.fails = 9; /* in the second step */
        at = (struct tune_progress){0};
        load = loader_of(&own, 40, o, &d);
        assert_int_equal(tune_loader_more(load, &at), 2);
        assert_ok(tune_loader_next(load, &batch));
        assert_ok(tune_loader_next(load, &batch));
        tune_progress_step(&at, load);
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has("row 9 broke");
        done(load, d);

        own.fails = -1; /* no label at all */
        own.unlabelled = 0;
        own.length = 16;
        load = loader_of(&own, 1, o, &d);
        at = (struct tune_progress){0};
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has("not one of 1 rows");
        done(load, d);
    }
}

/* Rows that fill a pack each, packs of one token, one pack a step, rows without a token, one that is too long. */
static void packed_edges(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) {
        struct own own = own_new();
        struct tune_loader_options o = options();
        struct tune_progress at = {0};
        o.prefetch = k % 2;
        o.batch_size = k & 2 ? 1 : 3;
        o.accumulate = k & 4 ? 1 : 2;
        o.max_length = k & 8 ? 2 : 5;
        o.shuffle = true;
        own.length = o.max_length; /* no room beside any */
        packed_run(&own, 13, o);
        own.empty = 2;
        packed_run(&own, 13, o);
        own.empty = 0;
        own.length = o.max_length + 1;
        o.packing = true;
        struct tune_dataset *d = tune_dataset_from(3, own_row, &own, own.length); /* one that does not cut its rows */
        assert_got(d);
        struct tune_loader *load = tune_loader_new(d, &o);
        assert_got(load);
        assert_int_equal(tune_loader_more(load, &at), -1);
        assert_error_has("the loader was made for max_length");
        done(load, d);
    }
}

/* The same seed packs the same rows, epoch by epoch others; another seed others too. */
static void packed_orders(void **state)
{
    (void)state;
    struct own own = own_new();
    uint64_t hashes[3][64];
    int steps[3];
    for (int i = 0; i < 3; i++) {
        struct tune_loader_options o = options();
        struct tune_progress at = {0};
        struct tune_dataset *d;
        int micros;
        o.packing = o.shuffle = true;
        o.epochs = 3;
        o.seed = i == 2 ? 8 : 7;
        o.prefetch = i == 0;
        struct tune_loader *load = loader_of(&own, 60, o, &d);
        for (steps[i] = 0; (micros = tune_loader_more(load, &at)) > 0; steps[i]++) {
            assert_in_range(steps[i], 0, 63);
            at.planned_steps = 0; /* of the batches alone */
            hashes[i][steps[i]] = step_hash(load, micros, &at);
        }
        assert_int_equal(at.rows, 180);
        done(load, d);
    }
    assert_int_equal(steps[0], steps[1]);
    assert_memory_equal(hashes[0], hashes[1], (size_t)steps[0] * sizeof *hashes[0]);
    assert_true(hashes[0][0] != hashes[2][0]);
    for (int i = 0; i < steps[0]; i++)
        for (int k = 0; k < i; k++)
            assert_true(hashes[0][i] != hashes[0][k]);
}

/* A million rows: the first step reads those it is made of, and one more. */
static void packed_stream(void **state)
{
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct own own = own_new();
        struct tune_loader_options o = options();
        struct tune_progress at = {0};
        struct tune_dataset *d;
        o.packing = true;
        o.shuffle = shuffle;
        o.prefetch = false;
        struct tune_loader *load = loader_of(&own, 1000000, o, &d);
        assert_got(load);
        assert_int_equal(own.calls, 0);
        assert_int_equal(tune_loader_more(load, &at), 2);
        assert_true(at.step_rows >= 8 && at.step_rows <= 32 && own.calls == at.step_rows + 1);
        done(load, d);
    }
}

/* A batch's own sizes after a longer batch; a plan whose product rounds up to too many rows. */
static void sizes(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_loader_options o = options();
    struct tune_progress at = {.best = true};
    struct tune_batch batch;
    o.batch_size = 1; /* rows 0, 1, ... of 2, 3, ... 8, then 2 and 3 tokens: two to a step */
    o.prefetch = false;
    struct tune_loader *load = loader_of(&own, 9, o, &d);
    for (int64_t row = 0, micros = 0; row < 9; row++, micros--) {
        if (micros == 0) {
            assert_true((micros = tune_loader_more(load, &at)) > 0);
        }
        assert_ok(tune_loader_next(load, &batch));
        assert_true(batch.B == 1 && batch.T == length_of(&own, row) && batch.tokens == batch.T);
        assert_int_equal(batch.label_count, batch.T - 1);
        assert_true(batch.epoch == (double)(row + 1) / 9);
        if (micros == 1) {
            tune_progress_step(&at, load);
            assert_false(at.best); /* it was of the step before */
            at.best = true;
        }
    }
    done(load, d);
    o.batch_size = 2;
    load = loader_of(&own, 9, o, &d);
    for (int64_t row = 0; row < 8; row += 4) {
        assert_int_equal(tune_loader_more(load, &at), 2);
        for (int micro = 0; micro < 2; micro++) {
            assert_ok(tune_loader_next(load, &batch));
            for (int b = 0; b < 2; b++)
                for (int64_t t = length_of(&own, row + 2 * micro + b); t < batch.T; t++)
                    assert_true(batch.ids[b * batch.T + t] == 0 && batch.labels[b * batch.T + t] == NO);
        }
    }
    done(load, d);
    o.epochs = 2.2; /* 25 * 2.2 is 55.00000000000001 */
    load = loader_of(&own, 25, o, &d);
    assert_int_equal(tune_loader_planned_rows(load), 55);
    done(load, d);
}

/* Packed anew, rows of one token find their place too. */
static void packed_ones(void **state)
{
    (void)state;
    struct tune_packs p;
    int32_t ids[3] = {1, 2, 3};
    uint8_t trained[3] = {1, 1, 1};
    static const int lengths[] = {1, 1, 3, 3}; /* the last one fits only where each 3 has a 1 beside it */
    assert_ok(tune_packs_new(&p, 2, 4));
    tune_packs_clear(&p);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tune_packs_take(&p, i, &(struct tune_example){.ids = ids, .trained = trained, .count = lengths[i]}), 1);
    tune_packs_close(&p);
    assert_true(p.open == 2 && p.pack[0].used == 4 && p.pack[1].used == 4 && p.pack[0].rows == 2 && p.pack[1].rows == 2);
    tune_packs_free(&p);
}

/* Labels begin where the answer does. */
static void prompts(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct own own = own_new();
        struct tune_dataset *d;
        struct tune_progress at = {0};
        struct tune_batch batch;
        struct tune_loader_options o = options();
        own.length = 5, own.prompt = 3;
        o.packing = kind;
        struct tune_loader *load = loader_of(&own, 4, o, &d);
        assert_true(tune_loader_more(load, &at) > 0);
        assert_ok(tune_loader_next(load, &batch));
        for (int t = 0; t < 5; t++)
            assert_int_equal(batch.labels[t], t == 2 || t == 3 ? batch.ids[t + 1] : NO);
        assert_int_equal(batch.label_count, 2 * batch.row_count);
        done(load, d);
    }
}

/* Half an epoch whose rows have no label, behind a whole one: left out, no error. */
static void no_labels_at_the_end(void **state)
{
    (void)state;
    struct own own = own_new();
    struct tune_dataset *d;
    struct tune_progress at = {0};
    struct tune_loader_options o = options();
    int64_t rows[20];
    own.bad_to = 10;
    o.epochs = 1.5;
    struct tune_loader *load = loader_of(&own, 20, o, &d);
    assert_int_equal(run(load, &at, rows, 20), 10);
    assert_true(rows[0] == 10 && at.finished && at.rows == 30 && at.planned_steps == at.step && at.fraction == 1);
    done(load, d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans), cmocka_unit_test(packed), cmocka_unit_test(packed_resume),
        cmocka_unit_test(packed_bad_rows), cmocka_unit_test(packed_edges), cmocka_unit_test(packed_orders),
        cmocka_unit_test(packed_stream), cmocka_unit_test(partial_steps), cmocka_unit_test(batches), cmocka_unit_test(orders),
        cmocka_unit_test(max_steps), cmocka_unit_test(stops), cmocka_unit_test(parts),
        cmocka_unit_test(exact_share), cmocka_unit_test(two_ahead),
        cmocka_unit_test(hand_over), cmocka_unit_test(frees), cmocka_unit_test(left_out), cmocka_unit_test(interrupted),
        cmocka_unit_test(bad_rows), cmocka_unit_test(no_labels), cmocka_unit_test(prompts), cmocka_unit_test(no_labels_at_the_end),
        cmocka_unit_test(rewinds), cmocka_unit_test(seeks), cmocka_unit_test(too_long), cmocka_unit_test(pairs), cmocka_unit_test(groups), cmocka_unit_test(odd_groups), cmocka_unit_test(nonsense),
        cmocka_unit_test(huge), cmocka_unit_test(by_flags),  cmocka_unit_test(sizes), cmocka_unit_test(packed_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
