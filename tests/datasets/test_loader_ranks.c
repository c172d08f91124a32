/* test_loader_ranks.c - a loader on several ranks: the micro-batches and the counts of one rank, dealt out, and one end for all. */
#include <signal.h>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "test.h"

#include "../comm/crew.h"

enum { BATCHES = 400, STEPS = 100 };

/* Row i has 2 + i % 7 tokens; every fifth row has no label. */
static int own_row(void *context, int64_t row, struct tune_example *x)
{
    (void)context;
    int64_t n = 2 + row % 7;
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int64_t t = 0; t < n; t++) {
        x->ids[t] = (int32_t)(100 * row + t);
        x->trained[t] = row % 5 != 4;
    }
    x->count = n;
    return 0;
}

struct batch {
    uint64_t hash;
    int64_t labels;
    bool empty;
};

/* What a loader handed out. */
struct seen {
    struct batch batch[BATCHES];
    struct tune_progress at[STEPS]; /* behind each step */
    int begin[STEPS + 1];           /* the step's first batch */
    int steps;
};

static struct batch batch_of(const struct tune_batch *b)
{
    size_t n = (size_t)b->B * (size_t)b->T;
    uint64_t hash = tune_hash64(b->ids, n * sizeof *b->ids, (uint64_t)b->T);
    return (struct batch){tune_hash64(b->labels, n * sizeof *b->labels, hash), b->label_count, b->empty};
}

static int see(struct tune_comm *c, const struct tune_loader_options *asked, int64_t rows, struct seen *seen)
{
    struct tune_loader_options o = *asked;
    struct tune_progress at = {0};
    struct tune_batch batch;
    int micros, n = 0;
    o.comm = c;
    seen->steps = 0;
    struct tune_dataset *d = tune_dataset_from(rows, own_row, NULL, o.max_length);
    struct tune_loader *load = d ? tune_loader_new(d, &o) : NULL;
    if (!load)
        return -1;
    while ((micros = tune_loader_more(load, &at)) > 0) {
        seen->begin[seen->steps] = n;
        for (; micros > 0; micros--) {
            if (tune_loader_next(load, &batch) < 0 || n == BATCHES)
                return -1;
            seen->batch[n++] = batch_of(&batch);
        }
        tune_progress_step(&at, load);
        seen->at[seen->steps++] = at;
        seen->begin[seen->steps] = n;
    }
    seen->at[seen->steps] = at;
    tune_loader_free(load);
    tune_dataset_free(d);
    return micros;
}

struct deal {
    struct tune_loader_options o;
    int64_t rows;
    struct seen *seen; /* [ranks] */
    volatile int *signal; /* [ranks] */
};

static int see_rank(struct tune_comm *c, int rank, void *context)
{
    struct deal *deal = context;
    struct tune_loader_options o = deal->o;
    o.stop_signal = &deal->signal[rank];
    return see(c, &o, deal->rows, &deal->seen[rank]);
}

static void run_ranks(struct deal *deal, int ranks)
{
    struct crew crew = run(ranks, NULL, 60, see_rank, deal);
    for (int r = 0; r < ranks; r++)
        if (crew.status[r] < 0)
            fail_msg("rank %d of %d: %s", r, ranks, crew.error[r]);
    tune_threads_free(crew.world);
}

static void check(const struct seen *one, const struct seen *rank, int r, int ranks)
{
    assert_int_equal(rank->steps, one->steps);
    for (int s = 0; s < one->steps; s++) {
        int all = one->begin[s + 1] - one->begin[s], own = rank->begin[s + 1] - rank->begin[s];
        assert_int_equal(own, (all + ranks - 1) / ranks);
        for (int j = 0; j < own; j++) {
            const struct batch *b = &rank->batch[rank->begin[s] + j];
            int k = j * ranks + r;
            assert_int_equal(b->empty, k >= all);
            if (b->empty)
                assert_int_equal(b->labels, 0);
            else
                assert_true(b->hash == one->batch[one->begin[s] + k].hash && b->labels == one->batch[one->begin[s] + k].labels);
        }
        const struct tune_progress *a = &one->at[s], *b = &rank->at[s];
        assert_true(a->step == b->step && a->rows == b->rows && a->tokens == b->tokens && a->labels == b->labels &&
                    a->padded_tokens == b->padded_tokens && a->rows_hash == b->rows_hash && a->epoch == b->epoch &&
                    a->planned_steps == b->planned_steps && a->fraction == b->fraction);
    }
    assert_true(rank->at[rank->steps].finished);
}

static struct tune_loader_options options(int batch_size, int accumulate, bool packing)
{
    return (struct tune_loader_options){.part = TUNE_ALL, .batch_size = batch_size, .accumulate = accumulate, .max_length = 16, .epochs = 2,
                                        .max_steps = -1, .stop_after_seconds = -1, .prefetch = true, .shuffle = true, .seed = 5,
                                        .packing = packing};
}

static void dealt(void **state)
{
    static const int64_t rows[] = {1, 2, 7, 13, 29};
    static struct seen one, seen[MOST];
    volatile int signals[MOST] = {0};
    int empties = 0;
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int shape = 0; shape < 8; shape++) {
                int batch_size = 1 + shape % 2 * 2, accumulate = 1 + shape / 2 % 2;
                bool packing = shape / 4;
                struct tune_loader_options o = options(batch_size, accumulate * ranks, packing);
                assert_ok(see(NULL, &o, rows[k], &one));
                struct deal deal = {options(batch_size, accumulate, packing), rows[k], seen, signals};
                run_ranks(&deal, ranks);
                for (int r = 0; r < ranks; r++) {
                    check(&one, &seen[r], r, ranks);
                    for (int i = 0; i < seen[r].begin[seen[r].steps]; i++)
                        empties += seen[r].batch[i].empty;
                }
            }
    assert_true(empties > 100);
}

/* A signal that came to one rank ends all of them at the same step, and each knows which signal. */
static void one_signal(void **state)
{
    static struct seen seen[MOST];
    volatile int signals[MOST] = {0, 0, SIGTERM};
    struct deal deal = {options(2, 1, false), 29, seen, signals};
    (void)state;
    run_ranks(&deal, 4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(seen[r].steps, 0);
        assert_int_equal(seen[r].at[0].signal, SIGTERM);
        assert_string_equal(seen[r].at[0].stopped, "SIGTERM");
    }
}

/* Rank 0 decides for all ranks whether the run has diverged. What another rank found does not count. */
static bool judged[MOST];

static int see_judged(struct tune_comm *c, int rank, void *context)
{
    struct deal *deal = context;
    struct tune_loader_options o = deal->o;
    o.diverged = &judged[rank];
    return see(c, &o, deal->rows, &deal->seen[rank]);
}

static void judges(void **state)
{
    static struct seen seen[MOST];
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct deal deal = {options(2, 1, false), 29, seen, NULL};
        judged[0] = which == 0;
        judged[1] = which == 1;
        struct crew crew = run(2, NULL, 60, see_judged, &deal);
        tune_threads_free(crew.world);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(crew.status[r], 0);
            assert_int_equal(seen[r].steps == 0, which == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dealt), cmocka_unit_test(one_signal), cmocka_unit_test(judges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
