/* test_comm.c - collectives between ranks that are threads: against plain loops, in each order, with ranks that differ, end or stop. */
#include <semaphore.h>
#include <stdatomic.h>

#include "test.h"

#include "comm_checks.h"
#include "crew.h"

static void all_well(int size, const struct tune_threads_trouble *trouble, int (*work)(struct tune_comm *c, int rank, void *context), void *context)
{
    struct crew crew = run(size, trouble, 60, work, context);
    for (int r = 0; r < size; r++)
        if (crew.status[r] < 0)
            fail_msg("rank %d of %d: %s", r, size, crew.error[r]);
    tune_threads_free(crew.world);
}

static void shares(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++)
        for (size_t count = 0; count < 40; count++) {
            size_t least = count, most = 0;
            assert_int_equal(tune_comm_share(count, 0, size), 0);
            assert_int_equal(tune_comm_share(count, size, size), count);
            for (int r = 0; r < size; r++) {
                size_t n = tune_comm_share(count, r + 1, size) - tune_comm_share(count, r, size);
                least = n < least ? n : least;
                most = n > most ? n : most;
            }
            assert_true(most - least <= 1);
        }
    assert_true(tune_comm_share(SIZE_MAX / 2, 6, 7) < SIZE_MAX / 2 && tune_comm_share(SIZE_MAX / 2, 7, 7) == SIZE_MAX / 2);
}

/* ---- against plain loops ---- */

static int try_large(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    return try_count(c, rank, 2500003, true); /* several rounds for two ranks */
}

static void against_loops(void **state)
{
    (void)state;
    struct tune_comm *self = tune_comm_open_self();
    assert_got(self);
    assert_ok(try_counts(self, 0, NULL));
    tune_comm_close(self);
    for (int size = 1; size <= MOST; size++)
        all_well(size, NULL, try_counts, NULL);
    all_well(2, NULL, try_large, NULL);
}

/* ---- many at once ---- */

static void many(void **state)
{
    (void)state;
    all_well(3, NULL, try_queue, NULL);
}

static void sums(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++)
        all_well(size, NULL, try_sums, NULL);
}

/* ---- errors ---- */

static atomic_int spoke; /* ranks that should print their error */

/* The status; counts ranks that should print. */
static int speaks(struct tune_comm *c, int status)
{
    spoke += tune_comm_speaks(c, false);
    return status;
}

static int try_agree(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    return speaks(c, tune_comm_agree(c, "the options", rank == 2 ? "--lr 1e-4" : "--lr 1e-3"));
}

/* What rank 1 does differently. */
struct other {
    struct tune_collective what;
    int64_t step;
    const char *message;
};

static int try_other(struct tune_comm *c, int rank, void *context)
{
    const struct other *other = context;
    float values[16] = {0}, share[16];
    struct tune_collective o = {.kind = TUNE_REDUCE_SCATTER, .what = "layer 3", .from = values, .to = share, .count = 8, .element = 4};
    tune_comm_step(c, rank == 1 ? other->step : 5);
    if (rank == 1 && other->what.what) {
        o = other->what;
        o.from = values;
        o.to = share;
    }
    return speaks(c, tune_comm_do(c, &o));
}

/* Each has an error of its own. */
static int try_own(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    return speaks(c, tune_error_set("rank %d has no space left", rank));
}

/* Rank 1 waits until rank 0 prints: an error of its own, or the comm's. */
static int try_told(struct tune_comm *c, int rank, void *context)
{
    bool own = *(const bool *)context;
    int status = tune_comm_agree(c, "the options", own || rank == 0 ? "--lr 1e-4" : "--lr 1e-3");
    int told = 0;
    if (rank == 0) {
        usleep(50000);
        return speaks(c, status < 0 ? status : tune_error_set("no space left"));
    }
    while (told == 0) /* after 1 s, if the error is the comm's */
        told = tune_comm_wait_told(c, 600);
    assert_int_equal(told, own ? 1 : -1);
    return -1;
}

/* Rank 0 fails and saves; rank 1 has the same error, and waits until it has saved. */
static int try_saved(struct tune_comm *c, int rank, void *context)
{
    atomic_int *saved = context;
    int status = tune_comm_agree(c, "the options", rank == 0 ? "--lr 1e-4" : "--lr 1e-3");
    if (rank == 0) {
        tune_comm_speaks(c, false);
        usleep(100000);
        atomic_store(saved, 1);
    } else {
        while (tune_comm_wait_told(c, 600) == 0)
            continue;
    }
    tune_comm_wait_saved(c, 600);
    if (atomic_load(saved) == 0)
        fail_msg("rank %d ends before rank 0 has saved", rank);
    return status;
}

static void differing(void **state)
{
    (void)state;
    static const struct other others[] = {
        {{.kind = TUNE_ALL_GATHER, .what = "layer 3", .count = 8, .element = 4}, 5, "all_gather of \"layer 3\""},
        {{.kind = TUNE_REDUCE_SCATTER, .what = "layer 4", .count = 8, .element = 4}, 5, "\"layer 4\""},
        {{.kind = TUNE_REDUCE_SCATTER, .what = "layer 3", .count = 9, .element = 4}, 5, "9 elements"},
        {{.kind = TUNE_BROADCAST, .what = "layer 3", .count = 8, .element = 4, .root = 1}, 5, "from rank 1"},
        {{0}, 6, "step 6"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        spoke = 0;
        struct crew crew = run(3, NULL, 60, try_other, (void *)(uintptr_t)&others[i]);
        assert_int_equal(spoke, 1);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(crew.status[r], -1);
            if (!strstr(crew.error[r], "rank 0 on ") || !strstr(crew.error[r], "rank 1 on ") || !strstr(crew.error[r], others[i].message) ||
                !strstr(crew.error[r], "reduce_scatter of \"layer 3\", 8 elements of 4 bytes, step 5"))
                fail_msg("rank %d: \"%s\" lacks \"%s\"", r, crew.error[r], others[i].message);
        }
        tune_threads_free(crew.world);
    }
    spoke = 0;
    struct crew crew = run(4, NULL, 60, try_agree, NULL);
    assert_int_equal(spoke, 1);
    for (int r = 0; r < 4; r++)
        assert_non_null(strstr(crew.error[r], "ranks differ in the options: rank 2 on "));
    tune_threads_free(crew.world);
    spoke = 0;
    crew = run(3, NULL, 60, try_own, NULL);
    assert_int_equal(spoke, 3);
    assert_true(tune_comm_speaks(NULL, false));
    tune_threads_free(crew.world);
    atomic_int saved = 0;
    crew = run(2, NULL, 60, try_saved, &saved);
    tune_threads_free(crew.world);
    for (int own = 0; own < 2; own++) {
        bool context = own;
        spoke = 0;
        crew = run(2, NULL, 60, try_told, &context);
        assert_int_equal(spoke, 1);
        tune_threads_free(crew.world);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    float v[4] = {0};
    struct tune_comm *c = tune_comm_open_self();
    const struct tune_collective bad[] = {
        {.kind = TUNE_COLLECTIVES, .what = "x"},
        {.kind = TUNE_BARRIER},
        {.kind = TUNE_REDUCE_SCATTER, .what = "x", .from = v, .to = v, .count = 2, .element = 8},
        {.kind = TUNE_REDUCE_SCATTER, .what = "x", .to = v, .count = 2, .element = 4},
        {.kind = TUNE_ALL_GATHER, .what = "x", .count = 2, .element = 4},
        {.kind = TUNE_ALL_GATHER, .what = "x", .to = v, .count = SIZE_MAX / 2, .element = 8},
        {.kind = TUNE_BROADCAST, .what = "x", .to = v, .count = 2, .element = 4, .root = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tune_comm_start(c, &bad[i]), -1);
    assert_ok(tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BARRIER, .what = "after bad ones"})); /* they broke nothing */
    tune_comm_close(c);
    tune_comm_close(NULL);
}

/* ---- a rank that ends ---- */

/* One of each kind. */
static int try_each(struct tune_comm *c, int rank, void *context)
{
    int none[3], *reached = context ? context : none;
    float values[24] = {0}, all[24];
    for (int kind = 0; kind < TUNE_COLLECTIVES; kind++, reached[rank] = kind)
        if (tune_comm_do(c, &(struct tune_collective){.kind = (enum tune_collective_kind)kind, .what = "each", .from = kind == TUNE_REDUCE_SCATTER ? values : NULL,
                                                      .to = all, .count = kind == TUNE_BARRIER ? 0 : 24, .element = 4, .root = rank * 0}) < 0) {
            struct tune_collective_record records[64];
            int n = tune_comm_history(c, records, 64);
            if (n != kind + 1 || records[n - 1].kind != (enum tune_collective_kind)kind || records[n - 1].over ||
                (n > 1 && !records[n - 2].over) || records[n - 1].count != (kind == TUNE_BARRIER ? 0 : 24) || records[n - 1].at_s < records[0].at_s)
                fail_msg("the history has %d collectives", n);
            return -1;
        }
    return 0;
}

static void a_rank_ends(void **state)
{
    (void)state;
    struct crew well = run(3, NULL, 60, try_each, NULL);
    int64_t calls = tune_threads_calls(well.world, 1);
    tune_threads_free(well.world);
    assert_true(calls >= 20);
    int ends[TUNE_COLLECTIVES + 1] = {0};
    for (int64_t at = 1; at <= calls; at++) { /* at each place of each collective */
        struct tune_threads_trouble trouble = {.seed = (uint64_t)at, .delay_us = 50, .death_rank = 1, .death_at = at};
        int reached[3] = {0};
        struct crew crew = run(3, &trouble, 60, try_each, reached);
        ends[reached[0]]++;
        int told = 0;
        for (int r = 0; r < 3; r++)
            told += r != 1 && crew.status[r] < 0 && strstr(crew.error[r], "rank 1 of 3") && strstr(crew.error[r], "has ended");
        if (crew.status[1] == 0 || (at < calls && told != 2)) /* behind the last place, the others need it no more */
            fail_msg("call %lld: rank 1 %d; told: \"%s\" \"%s\"", (long long)at, crew.status[1], crew.error[0], crew.error[2]);
        for (int r = 0; r < 3; r++)
            assert_true(crew.seconds[r] < 50); /* not the timeout */
        tune_threads_free(crew.world);
    }
    for (int kind = 0; kind < TUNE_COLLECTIVES; kind++)
        assert_true(ends[kind] >= 3); /* before, in and after each kind */
}

/* Rank 0 does not come before the other one has given up. */
static int try_late(struct tune_comm *c, int rank, void *context)
{
    sem_t *given_up = context;
    if (rank == 0) {
        while (sem_wait(given_up) < 0)
            continue;
        return 0;
    }
    tune_comm_timeout(c, 0.1);
    int status = tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BARRIER, .what = "the end of the step"});
    sem_post(given_up);
    return status;
}

/* One comes to a collective more than the other. */
static int try_more(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    struct tune_collective o = {.kind = TUNE_BARRIER, .what = "one more"};
    return rank == 0 ? 0 : tune_comm_do(c, &o);
}

static void a_rank_is_late(void **state)
{
    (void)state;
    sem_t given_up;
    assert_int_equal(sem_init(&given_up, 0, 0), 0);
    struct crew crew = run(2, NULL, 60, try_late, &given_up);
    sem_destroy(&given_up);
    assert_int_equal(crew.status[0], 0);
    if (!strstr(crew.error[1], "rank 0 of 2 (process ") || !strstr(crew.error[1], "did not come within 0.1 s; rank 1 waited for it in barrier of \"the end of the step\""))
        fail_msg("%s", crew.error[1]);
    tune_threads_free(crew.world);
    crew = run(2, NULL, 60, try_more, NULL);
    assert_int_equal(crew.status[0], 0);
    assert_non_null(strstr(crew.error[1], "has ended; rank 1 waited for it in barrier of \"one more\""));
    tune_threads_free(crew.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),    cmocka_unit_test(against_loops), cmocka_unit_test(many), cmocka_unit_test(sums),
        cmocka_unit_test(differing), cmocka_unit_test(bad_arguments), cmocka_unit_test(a_rank_ends),  cmocka_unit_test(a_rank_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
