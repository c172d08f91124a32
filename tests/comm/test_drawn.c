/* test_drawn.c - programs of collectives that a seed draws: kinds, sizes, roots, how many are under way, the order of the waits, delays. Some
 * have a rank that ends, or one that does something else. Each result is that of plain loops to the bit, or each rank that is left names the
 * rank that is to blame.
 * TUNE_COMM_SEED: this seed only. TUNE_COMM_SEEDS: how many (200). */
#include "comm_checks.h"
#include "crew.h"

enum { ACTS = 9, BLOCKING = TUNE_COLLECTIVES, SUM = BLOCKING, SUM_WHOLE, AGREE, HOWS, GUARD = 0x5a };
enum drawn_ending { WELL, DEATH, DIFFERENCE };

/* One act of a program. how: a kind of collective, or a function that waits itself. */
struct act {
    int how, root;
    size_t count, element;
    int64_t step;
    bool in_place;
    char name[24];
};

/* What a rank has for an act. */
struct act_arrays {
    unsigned char *from, *to;
    int64_t number; /* 0: not begun */
};

struct drawn {
    uint64_t seed;
    int size, acts;
    struct act act[ACTS];
    enum drawn_ending ending;
    int culprit, odd_act, odd_way;
    struct tune_threads_trouble trouble;
    struct act_arrays arrays[MOST][ACTS];
    uint64_t bytes[MOST];
    int unlike[MOST]; /* 1 + an act that failed with another error than the first, or without need; 0: none */
};

/* A number below `below`, the next one of that seed and stream. */
static uint64_t below(uint64_t seed, uint64_t stream, uint64_t *counter, uint64_t below)
{
    return tune_random_u64(seed, stream, (*counter)++) % below;
}

static struct drawn draw_plan(uint64_t seed)
{
    struct drawn p = {.seed = seed};
    uint64_t n = 0;
#define DRAW(most) below(seed, 1000, &n, most)
    static const int delays[] = {0, 20, 100, 300};
    static const size_t elements[] = {1, 4, 8, 12};
    p.size = 1 + (int)DRAW(MOST);
    p.acts = 1 + (int)DRAW(ACTS);
    for (int k = 0; k < p.acts; k++) {
        struct act *a = &p.act[k];
        a->how = (int)DRAW(HOWS);
        uint64_t large = DRAW(10);
        a->count = DRAW(large < 7 ? 2 * (uint64_t)p.size + 2 : large < 9 ? 300 : 5000);
        a->element = a->how == TUNE_REDUCE_SCATTER ? 4 : elements[DRAW(4)];
        if (a->how >= BLOCKING)
            a->count = 1 + a->count % 5, a->element = 8;
        if (a->how == TUNE_BARRIER)
            a->count = 0;
        a->root = a->how == TUNE_BROADCAST ? (int)DRAW((uint64_t)p.size) : 0;
        a->step = (k > 0 ? a[-1].step : 0) + (int64_t)DRAW(2);
        a->in_place = DRAW(2);
        snprintf(a->name, sizeof a->name, "act %d", k);
    }
    uint64_t ending = DRAW(4);
    p.ending = p.size == 1 || ending < 1 ? WELL : ending < 3 ? DEATH : DIFFERENCE;
    p.culprit = (int)DRAW((uint64_t)p.size);
    p.odd_act = (int)DRAW((uint64_t)p.acts);
    p.odd_way = (int)DRAW(4);
    p.trouble = (struct tune_threads_trouble){.seed = seed, .delay_us = delays[DRAW(4)], .death_rank = p.culprit};
    if (p.ending == DEATH)
        p.trouble.death_at = 1 + (int64_t)DRAW(4 + 10 * (uint64_t)p.acts);
#undef DRAW
    return p;
}

/* ---- what is in the arrays, and what must come out ---- */

static unsigned char byte_of(int rank, int k, size_t i)
{
    return (unsigned char)(rank * 131 + k * 17 + i * 7 + (i >> 8) * 13 + 1);
}

static float value_of(int rank, int k, size_t i)
{
    return element(rank, (size_t)k * 10000 + i);
}

/* Not inlined: else the caller might multiply and add without rounding between. */
__attribute__((noinline)) static double number_of(int rank, int k, size_t i)
{
    return (double)value_of(rank, k, i) * 1.1;
}

static void fill(struct drawn *p, int rank)
{
    for (int k = 0; k < p->acts; k++) {
        struct act *a = &p->act[k];
        struct act_arrays *m = &p->arrays[rank][k];
        size_t bytes = a->count * a->element, first = tune_comm_share(a->count, rank, p->size), last = tune_comm_share(a->count, rank + 1, p->size);
        m->from = malloc(bytes + 1);
        m->to = malloc(bytes + 1);
        memset(m->from, GUARD, bytes + 1);
        memset(m->to, GUARD, bytes + 1);
        if (a->how == TUNE_REDUCE_SCATTER)
            for (size_t i = 0; i < a->count; i++)
                ((float *)m->from)[i] = value_of(rank, k, i);
        if (a->how == TUNE_BROADCAST && rank == a->root)
            for (size_t i = 0; i < bytes; i++)
                m->to[i] = byte_of(rank, k, i);
        if (a->how == TUNE_ALL_GATHER)
            for (size_t i = first * a->element; i < last * a->element; i++)
                *(a->in_place ? &m->to[i] : &m->from[i - first * a->element]) = byte_of(rank, k, i);
    }
}

static int same_bytes(const struct act *a, const unsigned char *got, const unsigned char *expected, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != expected[i])
            return tune_error_set("%s (%s, %zu elements of %zu bytes): byte %zu is %u, expected %u", a->name,
                                  tune_collective_name((enum tune_collective_kind)a->how), a->count, a->element, i, got[i], expected[i]);
    return 0;
}

/* The collective is over: its arrays against plain loops. */
static int check_act(struct drawn *p, int rank, int k)
{
    const struct act *a = &p->act[k];
    const struct act_arrays *m = &p->arrays[rank][k];
    size_t bytes = a->count * a->element, first = tune_comm_share(a->count, rank, p->size), last = tune_comm_share(a->count, rank + 1, p->size);
    unsigned char *expected = malloc(bytes + 1);
    memset(expected, GUARD, bytes + 1);
    int status = 0;
    if (a->how == TUNE_REDUCE_SCATTER) {
        float *sums = (float *)expected;
        for (size_t i = 0; i < a->count; i++)
            sums[i] = value_of(rank, k, i);
        if (!a->in_place) /* what was given is as it was */
            status = same_bytes(a, m->from, expected, bytes + 1);
        for (size_t i = first; i < last; i++) {
            sums[i] = value_of(0, k, i);
            for (int r = 1; r < p->size; r++)
                sums[i] += value_of(r, k, i);
        }
        if (status == 0 && a->in_place)
            status = same_bytes(a, m->from, expected, bytes + 1);
        if (status == 0 && !a->in_place)
            status = same_bytes(a, m->to, expected + first * 4, (last - first) * 4);
        if (status == 0 && !a->in_place && m->to[(last - first) * 4] != GUARD)
            status = tune_error_set("%s: wrote behind its share", a->name);
    } else if (a->how == TUNE_BROADCAST || a->how == TUNE_ALL_GATHER) {
        for (int r = 0; r < p->size; r++) {
            size_t from = tune_comm_share(a->count, r, p->size) * a->element, to = tune_comm_share(a->count, r + 1, p->size) * a->element;
            for (size_t i = from; i < to; i++)
                expected[i] = byte_of(a->how == TUNE_BROADCAST ? a->root : r, k, i);
        }
        status = same_bytes(a, m->to, expected, bytes + 1);
    }
    free(expected);
    return status;
}

/* Bytes that a rank sends in an act. */
static uint64_t sends(const struct drawn *p, int rank, int k)
{
    const struct act *a = &p->act[k];
    uint64_t own = (tune_comm_share(a->count, rank + 1, p->size) - tune_comm_share(a->count, rank, p->size)) * a->element;
    uint64_t whole = a->count * a->element, others = (uint64_t)p->size - 1;
    switch (a->how) {
    case TUNE_REDUCE_SCATTER: return whole - own;
    case TUNE_ALL_GATHER: return own * others;
    case TUNE_BROADCAST: return rank == a->root ? whole * others : 0;
    case TUNE_BARRIER: return 0;
    default: return (a->how == AGREE ? 16 : whole) * others;
    }
}

/* ---- a rank ---- */

static struct act odd(const struct drawn *p, int rank, int k)
{
    struct act a = p->act[k];
    if (p->ending != DIFFERENCE || rank != p->culprit || k != p->odd_act)
        return a;
    if (a.how >= BLOCKING || p->odd_way == 0)
        snprintf(a.name, sizeof a.name, "odd %d", k);
    else if (p->odd_way == 1)
        a.step += 10;
    else if (p->odd_way == 2)
        a.how = a.how == TUNE_BARRIER ? TUNE_BROADCAST : TUNE_BARRIER;
    else if (a.how == TUNE_BROADCAST)
        a.root = (a.root + 1) % p->size;
    else
        a.step -= 1;
    return a;
}

static int begin_act(struct tune_comm *c, struct drawn *p, int rank, int k)
{
    struct act a = odd(p, rank, k);
    struct act_arrays *m = &p->arrays[rank][k];
    double sums[8];
    int64_t whole[8];
    tune_comm_step(c, a.step);
    if (a.how == AGREE)
        return tune_comm_agree(c, a.name, "the same");
    for (size_t i = 0; a.how >= BLOCKING && i < a.count; i++) {
        sums[i] = number_of(rank, k, i);
        whole[i] = (int64_t)(sums[i] * 1e9);
    }
    if (a.how >= BLOCKING && (a.how == SUM ? tune_comm_sum(c, a.name, sums, (int)a.count) : tune_comm_sum_whole(c, a.name, whole, (int)a.count)) < 0)
        return -1;
    for (size_t i = 0; a.how >= BLOCKING && i < a.count; i++) {
        double expected = number_of(0, k, i);
        int64_t expected_whole = (int64_t)(expected * 1e9);
        for (int r = 1; r < p->size; r++) {
            expected += number_of(r, k, i);
            expected_whole += (int64_t)(number_of(r, k, i) * 1e9);
        }
        if (a.how == SUM ? sums[i] != expected : whole[i] != expected_whole)
            return tune_error_set("%s: sum %zu is wrong", a.name, i);
    }
    if (a.how >= BLOCKING)
        return 0;
    size_t first = tune_comm_share(a.count, rank, p->size) * a.element;
    m->number = tune_comm_start(c, &(struct tune_collective){
        .kind = (enum tune_collective_kind)a.how, .what = a.name, .count = a.count, .element = a.element, .root = a.root,
        .from = a.how == TUNE_REDUCE_SCATTER || (a.how == TUNE_ALL_GATHER && !a.in_place) ? m->from : NULL,
        .to = a.how == TUNE_REDUCE_SCATTER && a.in_place ? m->from + first : m->to});
    return m->number < 0 ? -1 : 0;
}

/* Wait for an act that has begun, and check it. */
static int end_act(struct tune_comm *c, struct drawn *p, int rank, int k)
{
    int64_t number = p->arrays[rank][k].number;
    p->arrays[rank][k].number = 0;
    return number <= 0 ? 0 : tune_comm_wait(c, number) < 0 ? -1 : check_act(p, rank, k);
}

static int act_out(struct tune_comm *c, int rank, void *context)
{
    struct drawn *p = context;
    uint64_t n = 0, stream = 2000 + (uint64_t)rank;
    int status = 0, begun = 0;
    while (status == 0 && begun < p->acts) {
        status = begin_act(c, p, rank, begun++);
        while (status == 0 && below(p->seed, stream, &n, 3) == 0) /* wait for some of them, in whatever order */
            status = end_act(c, p, rank, (int)below(p->seed, stream, &n, (uint64_t)begun));
    }
    for (int k = 0; status == 0 && k < begun; k++)
        status = end_act(c, p, rank, (int)tune_random_permute(p->seed, stream, (uint64_t)begun, (uint64_t)k));
    if (status == 0)
        p->bytes[rank] = tune_comm_bytes(c);
    if (status == 0)
        return 0;
    /* Collectives that ended before the error have the right result. All others fail with that error. */
    char first[2048];
    struct tune_collective_record last = {0};
    snprintf(first, sizeof first, "%s", tune_error_message());
    tune_comm_history(c, &last, 1);
    for (int k = 0; k < begun; k++)
        if (end_act(c, p, rank, k) < 0 && (k + 1 < last.number || strcmp(first, tune_error_message())))
            p->unlike[rank] = k + 1;
    return tune_error_set("%s", first);
}

/* ---- the seeds ---- */

static void check_ending(const struct drawn *p, const struct crew *crew)
{
    char blamed[40], other[40];
    bool died = p->ending == DEATH && tune_threads_calls(crew->world, p->culprit) >= p->trouble.death_at;
    int well = 0;
    snprintf(blamed, sizeof blamed, died ? "rank %d of %d" : "rank %d on ", p->ending == DIFFERENCE && p->culprit == 0 ? 1 : p->culprit, p->size);
    snprintf(other, sizeof other, died ? "has ended" : "in collective %d: rank 0 on ", p->odd_act + 1);
    for (int r = 0; r < p->size; r++) {
        const char *error = crew->error[r];
        bool right = crew->status[r] == 0;
        if (died && r == p->culprit)
            right = strstr(error, "ends here, as was asked");
        else if (died)
            right = right || (strstr(error, blamed) && strstr(error, other));
        else if (p->ending == DIFFERENCE)
            right = strstr(error, "ranks do different things") && strstr(error, blamed) && strstr(error, other);
        if (p->unlike[r] > 0)
            fail_msg("TUNE_COMM_SEED=%llu: rank %d of %d: act %d should not fail so", (unsigned long long)p->seed, r, p->size, p->unlike[r] - 1);
        if (!right)
            fail_msg("TUNE_COMM_SEED=%llu: rank %d of %d: \"%s\"", (unsigned long long)p->seed, r, p->size, error);
        well += crew->status[r] == 0;
        uint64_t bytes = 0;
        for (int k = 0; k < p->acts; k++)
            bytes += sends(p, r, k);
        if (crew->status[r] == 0 && p->bytes[r] != bytes)
            fail_msg("TUNE_COMM_SEED=%llu: rank %d sent %llu bytes, expected %llu", (unsigned long long)p->seed, r, (unsigned long long)p->bytes[r],
                     (unsigned long long)bytes);
    }
    if (died && well != 0 && well != p->size - 1) /* behind the last place, the others need it no more */
        fail_msg("TUNE_COMM_SEED=%llu: rank %d ended, and %d of %d others were well", (unsigned long long)p->seed, p->culprit, well, p->size - 1);
}

static void drawn_programs(void **state)
{
    (void)state;
    const char *asked = getenv("TUNE_COMM_SEED"), *many = getenv("TUNE_COMM_SEEDS");
    uint64_t from = asked ? strtoull(asked, NULL, 10) : 1, to = asked ? from : many ? strtoull(many, NULL, 10) : 200;
    int endings[3] = {0}, hows[HOWS] = {0}, told = 0;
    for (uint64_t seed = from; seed <= to; seed++) {
        struct drawn p = draw_plan(seed);
        for (int r = 0; r < p.size; r++)
            fill(&p, r);
        struct crew crew = run(p.size, &p.trouble, 600, act_out, &p);
        check_ending(&p, &crew);
        tune_threads_free(crew.world);
        for (int r = 0; r < p.size; r++)
            for (int k = 0; k < p.acts; k++)
                free(p.arrays[r][k].from), free(p.arrays[r][k].to);
        endings[p.ending]++;
        for (int k = 0; k < p.acts; k++)
            hows[p.act[k].how]++;
        told += p.ending == DEATH && crew.status[(p.culprit + 1) % p.size] < 0;
    }
    print_message("%d programs ended well, %d had a rank that should end (%d did before the end), %d a rank that did something else\n", endings[WELL],
                  endings[DEATH], told, endings[DIFFERENCE]);
    if (asked)
        return;
    assert_true(endings[WELL] >= 40 && endings[DIFFERENCE] >= 30 && told >= 40); /* the draw has all of them */
    for (int how = 0; how < HOWS; how++)
        assert_true(hows[how] >= 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
