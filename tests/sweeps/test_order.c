/* test_order.c - orders of entities: complete, even, the same for the same seed; permutations and Sobol points by themselves. */
#include "test.h"

#include "core/random.h"
#include "sweeps/spaces/order.h"
#include "sweeps/spaces/sobol.h"

static struct tune_space *space(const char *yaml)
{
    struct tune_document *d = tune_document_parse("s.yaml", yaml, strlen(yaml), false);
    struct tune_space *s = d ? tune_space_parse(d) : NULL;
    if (!s)
        fail_msg("%s: %s", yaml, tune_error_message());
    return s;
}

#define RANGE(name, count) "- {identifier: " name ", propertyDomain: {domainRange: [0, " #count "], interval: 1}}\n"
#define NORMAL(name, count, mean, std)                                   \
    "- {identifier: " name ", propertyDomain: {domainRange: [0, " #count \
    "], interval: 1, probabilityFunction: {identifier: normal, parameters: {mean: " #mean ", std: " #std "}}}}\n"

/* The indexes of the first entities in an order, -1 behind the last; how many came. */
enum { MOST = 70000 };
static int64_t taken[MOST];

static int take(const struct tune_space *s, enum tune_order_mode mode, uint64_t seed, int64_t limit, const char *by)
{
    const char *const grouping[] = {by};
    struct tune_order_options o = {.mode = mode, .seed = seed, .limit = limit, .grouping = grouping, .group_count = by != NULL};
    struct tune_order *order = tune_order_new(s, &o);
    const struct tune_value *v;
    int n = 0, more;
    assert_got(order);
    while ((more = tune_order_next(order, &v)) > 0) {
        tune_index at = 0;
        assert_true(n < MOST);
        assert_true(tune_space_has(s, v));
        if (s->size)
            assert_true(tune_space_find(s, v, &at));
        taken[n++] = (int64_t)at;
    }
    assert_ok(more);
    assert_int_equal(tune_order_next(order, &v), 0); /* the end is the end */
    tune_order_free(order);
    return n;
}

/* Every entity of the grid (of those marked, where marks are given) once. */
static void complete(int count, int64_t size, const bool *marked)
{
    char *seen = calloc((size_t)size, 1);
    int64_t wanted = 0;
    for (int i = 0; i < count; i++) {
        assert_true(!seen[taken[i]] && (!marked || marked[taken[i]]));
        seen[taken[i]] = 1;
    }
    for (int64_t i = 0; i < size; i++)
        wanted += !marked || marked[i];
    assert_int_equal(count, wanted);
    free(seen);
}

static void permutations(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3000; n += 1 + n / 20) {
        char *seen = calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            tune_wide to = tune_random_permute_wide(n, 5, n, i);
            assert_true(to < n && !seen[to]);
            seen[to] = 1;
        }
        free(seen);
    }
    /* beyond 64 bits: no two of these meet, and none stays near where it was */
    static const int bits[] = {64, 65, 66, 90, 127, 128};
    for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
        tune_wide n = bits[b] == 128 ? ~(tune_wide)0 : ((tune_wide)1 << bits[b]) + 7, to[500];
        int high = 0;
        for (int i = 0; i < 500; i++) {
            to[i] = tune_random_permute_wide(3, 5, n, (tune_wide)i);
            assert_true(to[i] < n);
            high += to[i] > n / 2;
            for (int k = 0; k < i; k++)
                assert_true(to[k] != to[i]);
        }
        assert_in_range(high, 200, 300); /* 250 +- 4.5 deviations */
    }
}

/* All orders of 5 things are about as likely: 120 of them, 24,000 seeds. The 99.9 % point of chi^2 with 119 degrees is 173; the
 * walk in 4 bits leaves a little more (observed: 161 to 260), six rounds instead of twelve give 923. */
static void permutations_are_even(void **state)
{
    (void)state;
    enum { N = 5, SEEDS = 24000 };
    static int count[3125];
    double chi = 0, where[N][N] = {{0}}, chi_where = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int code = 0;
        for (uint64_t i = 0; i < N; i++) {
            int to = (int)tune_random_permute_wide(seed, 77, N, i);
            code = code * N + to;
            where[i][to]++;
        }
        count[code]++;
    }
    for (int i = 0; i < 3125; i++)
        chi += count[i] ? (count[i] - 200.0) * (count[i] - 200.0) / 200 : 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            chi_where += (where[i][k] - SEEDS / 5.0) * (where[i][k] - SEEDS / 5.0) / (SEEDS / 5.0);
    assert_true(chi < 350);
    assert_true(chi_where < 40); /* 16 degrees */
}

static void names(void **state)
{
    (void)state;
    enum tune_order_mode mode;
    for (int i = TUNE_ORDER_SEQUENTIAL; i <= TUNE_ORDER_HALVING; i++) {
        assert_ok(tune_order_mode(tune_order_name((enum tune_order_mode)i), &mode));
        assert_int_equal(mode, i);
    }
    assert_ok(tune_order_mode("randomgrouped", &mode));
    assert_int_equal(mode, TUNE_ORDER_RANDOM_GROUPED);
    assert_ok(tune_order_mode("sequentialgrouped", &mode));
    assert_int_equal(mode, TUNE_ORDER_SEQUENTIAL_GROUPED);
    static const char *const none[] = {"", "rand", "weighted", "lhs", "randomly", "random-", "RANDOM", "sequential-"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(tune_order_mode(none[i], &mode), -1);
        assert_error_has("expected sequential, random");
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
}

/* Each order of a whole grid, of one entity to some thousands; with and without constraints. */
static void grids(void **state)
{
    (void)state;
    static const char *const spaces[] = {
        "entitySpace:\n" RANGE("a", 1),
        "entitySpace:\n" RANGE("a", 2) RANGE("g", 1),
        "entitySpace:\n" RANGE("a", 3) RANGE("g", 5) RANGE("b", 2),
        "entitySpace:\n" RANGE("a", 7) RANGE("b", 1) RANGE("g", 11) RANGE("c", 31),
        "entitySpace:\n" RANGE("g", 64) RANGE("b", 64) "constraints: ['g * b % 3 != 1', 'b < 60']\n",
        "entitySpace:\n" RANGE("a", 9) RANGE("g", 9) RANGE("c", 9) "constraints: ['g > 8']\n",
        "entitySpace:\n" RANGE("a", 9) RANGE("g", 9) RANGE("c", 9) "constraints: ['1 > 2']\n",
        "entitySpace:\n" RANGE("a", 9) RANGE("g", 9) RANGE("c", 9) "constraints: ['a > 7 or c == 0', 'g % 2 == 0']\n",
        "entitySpace:\n" RANGE(
            "a", 4) "- {identifier: v, propertyDomain: {values: [[x, x], [x, y], [y, x], [y, y]]}}\n" RANGE("g", 3),
    };
    static const enum tune_order_mode modes[] = {TUNE_ORDER_SEQUENTIAL, TUNE_ORDER_RANDOM, TUNE_ORDER_SEQUENTIAL_GROUPED,
                                                 TUNE_ORDER_RANDOM_GROUPED, TUNE_ORDER_SOBOL};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        struct tune_space *s = space(spaces[i]);
        bool *marked = calloc((size_t)s->size, 1);
        struct tune_value v[4];
        int allowed = 0;
        for (tune_index k = 0; k < s->size; k++) {
            tune_space_entity(s, k, v);
            allowed += marked[k] = tune_space_allowed(s, v);
        }
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            bool grouped = modes[m] == TUNE_ORDER_SEQUENTIAL_GROUPED || modes[m] == TUNE_ORDER_RANDOM_GROUPED;
            complete(take(s, modes[m], 3, -1, grouped && i ? "g" : grouped ? "a" : NULL), (int64_t)s->size, marked);
            if (modes[m] == TUNE_ORDER_SEQUENTIAL)
                for (int k = 1; k < allowed; k++)
                    assert_true(taken[k] > taken[k - 1]);
        }
        free(marked);
        tune_space_free(s);
    }
}

/* Groups come one after another, each in the grid's order; first those seen first, or in any order. */
static void groups(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 5) RANGE("b", 8) RANGE("c", 3) RANGE("d", 4));
    const char *const by[] = {"d", "b"};
    int first[2][32];
    for (int random = 0; random < 2; random++) {
        struct tune_order_options o = {.mode = random ? TUNE_ORDER_RANDOM_GROUPED : TUNE_ORDER_SEQUENTIAL_GROUPED,
                                       .seed = 5,
                                       .limit = -1,
                                       .grouping = by,
                                       .group_count = 2};
        struct tune_order *order = tune_order_new(s, &o);
        const struct tune_value *v;
        assert_got(order);
        for (int g = 0; g < 32; g++)
            for (int i = 0; i < 15; i++) {
                assert_int_equal(tune_order_next(order, &v), 1);
                int group = (int)(v[1].integer * 4 + v[3].integer);
                if (i == 0)
                    first[random][g] = group;
                assert_int_equal(group, first[random][g]);
                assert_true(v[0].integer * 3 + v[2].integer == i);
            }
        assert_int_equal(tune_order_next(order, &v), 0);
        tune_order_free(order);
    }
    int moved = 0;
    for (int g = 0; g < 32; g++) {
        assert_int_equal(first[0][g], g);
        moved += first[1][g] != g;
    }
    assert_true(moved > 20);
    tune_space_free(s);
}

static void seeds(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 50) RANGE("b", 50) RANGE("c", 50));
    static int64_t before[1000];
    for (int m = TUNE_ORDER_RANDOM; m <= TUNE_ORDER_SOBOL; m++) {
        enum tune_order_mode mode = (enum tune_order_mode)m;
        int same = 0;
        const char *by = mode == TUNE_ORDER_RANDOM_GROUPED ? "c" : NULL;
        if (mode == TUNE_ORDER_SEQUENTIAL_GROUPED)
            continue;
        assert_int_equal(take(s, mode, 1, 1000, by), 1000);
        memcpy(before, taken, sizeof before);
        take(s, mode, 1, 1000, by);
        assert_memory_equal(before, taken, sizeof before);
        take(s, mode, 1, 400, by); /* the first of more are the same */
        assert_memory_equal(before, taken, 400 * sizeof *taken);
        take(s, mode, 2, 1000, by);
        for (int i = 0; i < 1000; i++)
            same += before[i] == taken[i];
        assert_true(same < 50);
    }
    tune_space_free(s);
}

/* 10^12 entities: every value of every dimension about as often, whatever its probability says. */
static void even(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 100) RANGE("b", 100) RANGE("c", 100) RANGE("d", 100) RANGE("e", 100)
                                     NORMAL("f", 100, 50, 3));
    static const enum tune_order_mode modes[] = {TUNE_ORDER_RANDOM, TUNE_ORDER_SOBOL};
    assert_true(s->size == 1000000000000);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        int count[6][100] = {{0}};
        assert_int_equal(take(s, modes[m], 9, 20000, NULL), 20000);
        for (int i = 0; i < 20000; i++)
            for (int k = 5, at = 0; k >= 0; k--, taken[i] /= 100, at++)
                count[k][taken[i] % 100]++;
        for (int k = 0; k < 6; k++) {
            double chi = 0;
            for (int i = 0; i < 100; i++)
                chi += (count[k][i] - 200.0) * (count[k][i] - 200.0) / 200;
            assert_true(chi < (modes[m] == TUNE_ORDER_SOBOL ? 2 : 160)); /* 99 degrees: 149 at 99.9 % */
        }
    }
    tune_space_free(s);
}

/* ---- points ---- */

/* L2-star discrepancy (Warnock 1972) of n points in two dimensions of a million steps. */
static double discrepancy(const struct tune_space *s, enum tune_order_mode mode, uint64_t seed, int n)
{
    double sum = 0, pairs = 0;
    assert_int_equal(take(s, mode, seed, n, NULL), n);
    for (int i = 0; i < n; i++) {
        double x = ((double)(taken[i] / 1000000) + 0.5) / 1e6, y = ((double)(taken[i] % 1000000) + 0.5) / 1e6;
        sum += (1 - x * x) * (1 - y * y);
        for (int k = 0; k < n; k++) {
            double u = ((double)(taken[k] / 1000000) + 0.5) / 1e6, v = ((double)(taken[k] % 1000000) + 0.5) / 1e6;
            pairs += (1 - fmax(x, u)) * (1 - fmax(y, v));
        }
    }
    return sqrt(1.0 / 9 - sum / (2.0 * n) + pairs / ((double)n * n));
}

static void discrepancies(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 1000000) RANGE("b", 1000000));
    double random = 0, sobol = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        random += discrepancy(s, TUNE_ORDER_RANDOM, seed, 200);
        sobol += discrepancy(s, TUNE_ORDER_SOBOL, seed, 200);
    }
    assert_true(sobol < random / 5); /* observed: a ninth */
    tune_space_free(s);
}

/* Of 2^k points one lies in each of 2^k parts of an axis; of two axes, in any boxes of area 2^(t-k) lie 2^t. The first two
 * have t = 0. Scrambled or not; and another seed gives others. */
static void sobol_points(void **state)
{
    (void)state;
    struct tune_sobol s, other;
    enum { K = 10, N = 1 << K };
    tune_sobol_start(&s, 7);
    tune_sobol_start(&other, 8);
    for (int axis = 0; axis < TUNE_SOBOL_AXES; axis++)
        for (uint64_t from = 0; from < 4 * N; from += N) {
            bool seen[N] = {false};
            double sum = 0;
            for (uint64_t n = from; n < from + N; n++) {
                double x = tune_sobol_at(&s, n, axis);
                assert_true(x > 0 && x < 1 && !seen[(int)(x * N)]);
                seen[(int)(x * N)] = true;
                sum += x;
            }
            assert_true(fabs(sum / N - 0.5) < 0.5 / N);
            assert_true(tune_sobol_at(&s, from, axis) != tune_sobol_at(&other, from, axis));
        }
    for (int bits = 0; bits <= K; bits++) {
        bool seen[N] = {false};
        for (uint64_t n = 0; n < N; n++) {
            int box =
                (int)(tune_sobol_at(&s, n, 0) * (1 << bits)) << (K - bits) | (int)(tune_sobol_at(&s, n, 1) * (1 << (K - bits)));
            assert_false(seen[box]);
            seen[box] = true;
        }
    }
    /* the table, pinned: these points were compared with PyTorch's SobolEngine when it was typed in, 2048 on 21 axes */
    uint64_t hash = 0;
    for (int axis = 0; axis < TUNE_SOBOL_AXES; axis++)
        for (uint64_t n = 0; n < 300; n++) {
            double x = tune_sobol_at(&s, n, axis);
            hash = tune_hash64(&x, sizeof x, hash);
        }
    assert_true(hash == 0x5ae2b7e0f1011957);
}

/* ---- what cannot be counted ---- */

static void continuous(void **state)
{
    (void)state;
    struct tune_space *s =
        space("entitySpace:\n"
              "- {identifier: x, propertyDomain: {domainRange: [-1, 3]}}\n"
              "- {identifier: n, propertyDomain: {domainRange: [0, 10], probabilityFunction: {identifier: normal, parameters: "
              "{mean: 4, std: 1}}}}\n" NORMAL(
                  "g", 10, 4, 1) "- {identifier: v, propertyDomain: {domainRange: [0, 1]}}\n"
                                 "- {identifier: one, propertyDomain: {values: [a]}}\n"
                                 "constraints: ['x < 2']\n");
    static const enum tune_order_mode modes[] = {TUNE_ORDER_RANDOM, TUNE_ORDER_SOBOL};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct tune_order_options o = {.mode = modes[m], .seed = 1, .limit = 4000};
        struct tune_order *order = tune_order_new(s, &o);
        const struct tune_value *v;
        double x = 0, n = 0, near = 0, near_g = 0, element = 0;
        int count = 0;
        assert_got(order);
        while (tune_order_next(order, &v) == 1) {
            double g, number;
            assert_true(tune_space_has(s, v));
            assert_true(v[0].type == TUNE_VALUE_FLOAT && v[3].type == TUNE_VALUE_FLOAT);
            assert_string_equal(v[4].text, "a");
            x += v[0].number;
            n += v[1].number;
            near += fabs(v[1].number - 4) < 1;
            tune_value_number(&v[2], &g);
            near_g += fabs(g - 4) < 1.5;
            tune_value_number(&v[3], &number);
            element += number;
            count++;
        }
        assert_int_equal(count, 4000);
        assert_true(fabs(x / 4000 - 0.5) < 0.07 && fabs(n / 4000 - 4) < 0.07 && fabs(element / 4000 - 0.5) < 0.03);
        assert_true(fabs(near / 4000 - 0.6827) < 0.035);
        assert_true(fabs(near_g / 4000 - 0.3) < 0.035); /* a grid's probability is left out */
        tune_order_free(order);
    }
    tune_space_free(s);
}

static void refused(void **state)
{
    (void)state;
    struct tune_space *grid = space("entitySpace:\n" RANGE("a", 3) RANGE("b", 2));
    struct tune_space *line = space("entitySpace: [{identifier: x, propertyDomain: {domainRange: [0, 1]}}]");
    struct tune_space *open = space("entitySpace:\n" RANGE("a", 3) "- {identifier: smiles}\n");
    struct tune_space *far = space("entitySpace: [{identifier: a, propertyDomain: {domainRange: [0, 3], probabilityFunction: "
                                   "{identifier: normal, parameters: {mean: 1000, std: 1}}}}]");
    struct tune_space *empty = space("entitySpace:\n" RANGE("a", 99999) RANGE("b", 99999) "constraints: ['a + b > 1000000']\n");
    struct tune_space *unsolved = space("entitySpace:\n" RANGE("a", 99999) RANGE("b", 99999) "constraints: ['a // 7 + b // 7 > 100000']\n");
    char many[4096] = "entitySpace:\n", huge[4096] = "entitySpace:\n";
    for (int i = 0; i < 22; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "- {identifier: d%d, propertyDomain: {values: [1, 2]}}\n", i);
        snprintf(huge + strlen(huge), sizeof huge - strlen(huge),
                 "- {identifier: d%d, propertyDomain: {domainRange: [0, 1000000], interval: 1}}\n", i);
    }
    struct tune_space *wide = space(many), *endless = space(huge);
    static const char *const a[] = {"a"}, *const z[] = {"z"};
    const struct {
        const struct tune_space *space;
        struct tune_order_options options;
        const char *message;
    } cases[] = {
        {grid, {TUNE_ORDER_RANDOM, 0, NULL, 0, 7}, "the space has 6 entities, not 7"},
        {grid, {TUNE_ORDER_RANDOM_GROUPED, 0, NULL, 0, -1}, "needs the names of the dimensions to group by"},
        {grid, {TUNE_ORDER_SEQUENTIAL_GROUPED, 0, z, 1, -1}, "no dimension \"z\""},
        {grid, {TUNE_ORDER_RANDOM, 0, a, 1, -1}, "makes no groups"},
        {line, {TUNE_ORDER_SEQUENTIAL, 0, NULL, 0, 5}, "works only with spaces whose entities can be counted"},
        {line, {TUNE_ORDER_RANDOM_GROUPED, 0, a, 1, 5}, "works only with spaces whose entities can be counted"},
        {line, {TUNE_ORDER_RANDOM, 0, NULL, 0, -1}, "give the number of entities"},
        {line, {TUNE_ORDER_SOBOL, 0, NULL, 0, -1}, "give the number of entities"},
        {open, {TUNE_ORDER_RANDOM, 0, NULL, 0, 5}, "smiles: "},
        {far, {TUNE_ORDER_RANDOM, 0, NULL, 0, 5}, "a: a normal distribution of mean 1000"},
        {wide, {TUNE_ORDER_SOBOL, 0, NULL, 0, 5}, "at most 21 dimensions"},
        {endless, {TUNE_ORDER_RANDOM, 0, NULL, 0, 5}, "cannot permute more than 2^128 entities"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (tune_order_new(cases[i].space, &cases[i].options))
            fail_msg("not refused: %s", cases[i].message);
        assert_error_has(cases[i].message);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
    /* a draw that finds nothing says so, and a grid in order comes to its end */
    const struct tune_value *v;
    struct tune_order *o = tune_order_new(empty, &(struct tune_order_options){.mode = TUNE_ORDER_RANDOM, .limit = 1});
    assert_got(o);
    assert_int_equal(tune_order_next(o, &v), 0);
    tune_order_free(o);
    o = tune_order_new(unsolved, &(struct tune_order_options){.mode = TUNE_ORDER_RANDOM, .limit = 1});
    assert_got(o);
    assert_int_equal(tune_order_next(o, &v), -1);
    assert_error_has("no entity that the constraints allow was found: 1000000 in a row were refused");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    tune_order_free(o);
    o = tune_order_new(endless, &(struct tune_order_options){.mode = TUNE_ORDER_SEQUENTIAL, .limit = 3});
    assert_got(o);
    assert_int_equal(tune_order_next(o, &v), 1);
    tune_order_free(o);
    tune_order_free(NULL);
    struct tune_space *all[] = {grid, line, open, far, empty, unsolved, wide, endless};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tune_space_free(all[i]);
}

/* A constraint that cannot be evaluated ends the order with its message; one that is asked for first may guard it. */
static void failing(void **state)
{
    (void)state;
    const struct tune_value *v;
    for (int m = TUNE_ORDER_SEQUENTIAL; m <= TUNE_ORDER_SOBOL; m++) {
        if (m == TUNE_ORDER_SEQUENTIAL_GROUPED || m == TUNE_ORDER_RANDOM_GROUPED)
            continue;
        struct tune_space *s = space("entitySpace:\n" RANGE("a", 5) RANGE("b", 4000000) "constraints: ['b % a == 0']\n");
        struct tune_order *o = tune_order_new(s, &(struct tune_order_options){.mode = (enum tune_order_mode)m, .limit = 100});
        int more = o ? 1 : -1; /* draws count what is allowed before they begin */
        while (more == 1)
            more = tune_order_next(o, &v);
        assert_int_equal(more, -1);
        assert_error_has("b % a == 0");
        tune_order_free(o);
        tune_space_free(s);
    }
    struct tune_space *s =
        space("entitySpace:\n" RANGE("b", 50) RANGE("a", 5) "constraints: ['a > 0 and b > 0', '12 % a == 0', 'b % a == 0']\n");
    for (int m = TUNE_ORDER_SEQUENTIAL; m <= TUNE_ORDER_SOBOL; m++)
        if (m != TUNE_ORDER_SEQUENTIAL_GROUPED && m != TUNE_ORDER_RANDOM_GROUPED)
            assert_int_equal(take(s, (enum tune_order_mode)m, 1, 90, NULL), 90);
    tune_space_free(s);
}

/* A grid has an end: however many entities the constraints refuse in a row, what they allow is found, be it nothing. */
static void rare(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 1200) RANGE("b", 1000) "constraints: ['a == 7 and b == 13']\n");
    assert_int_equal(take(s, TUNE_ORDER_RANDOM, 1, -1, NULL), 1);
    assert_int_equal(taken[0], 7 * 1000 + 13);
    tune_space_free(s);
    s = space("entitySpace:\n" RANGE("a", 1200) RANGE("b", 1000) "constraints: ['a == 7 and b == 2000']\n");
    assert_int_equal(take(s, TUNE_ORDER_RANDOM, 1, -1, NULL), 0);
    tune_space_free(s);
}

/* One more than there are: they come, and that is the end. */
static void one_too_many(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n" RANGE("a", 2) RANGE("b", 2) "constraints: ['a + b < 2']\n");
    assert_int_equal(take(s, TUNE_ORDER_SOBOL, 1, 4, NULL), 3);
    tune_space_free(s);
}

/* Constraints that leave 778 of 10^12 entities: every order finds them, each once. */
static void sparse(void **state)
{
    (void)state;
    struct tune_space *s = space("entitySpace:\n"
                                 "- {identifier: a, propertyDomain: {domainRange: [0, 1000000], interval: 1}}\n"
                                 "- {identifier: b, propertyDomain: {domainRange: [0, 1000000], interval: 1}}\n"
                                 "constraints: ['a % 1000 == 5', 'a + b == 777777']\n");
    static const char *const b = "b";
    for (int mode = TUNE_ORDER_SEQUENTIAL; mode < TUNE_ORDER_HALVING; mode++) {
        bool grouped = mode == TUNE_ORDER_SEQUENTIAL_GROUPED || mode == TUNE_ORDER_RANDOM_GROUPED;
        struct tune_order_options options = {.mode = (enum tune_order_mode)mode, .seed = 3, .grouping = &b, .group_count = grouped,
                                             .limit = mode < TUNE_ORDER_SOBOL ? -1 : 100};
        struct tune_order *o = tune_order_new(s, &options);
        const struct tune_value *v;
        bool seen[778] = {false}, ascending = true;
        int count = 0, more;
        int64_t before = -1;
        assert_got(o);
        while ((more = tune_order_next(o, &v)) == 1) {
            int64_t a = v[0].integer;
            assert_true(a % 1000 == 5 && a + v[1].integer == 777777 && a / 1000 < 778 && !seen[a / 1000]);
            seen[a / 1000] = true;
            ascending = ascending && a > before;
            before = a;
            count++;
        }
        assert_int_equal(more, 0);
        assert_int_equal(count, mode < TUNE_ORDER_SOBOL ? 778 : 100);
        assert_int_equal(ascending, mode == TUNE_ORDER_SEQUENTIAL);
        tune_order_free(o);
    }
    tune_space_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse),
        cmocka_unit_test(permutations), cmocka_unit_test(permutations_are_even),
        cmocka_unit_test(names),        cmocka_unit_test(grids),
        cmocka_unit_test(groups),       cmocka_unit_test(seeds),
        cmocka_unit_test(even),         cmocka_unit_test(discrepancies),
        cmocka_unit_test(sobol_points), cmocka_unit_test(continuous),
        cmocka_unit_test(refused),      cmocka_unit_test(failing),
        cmocka_unit_test(rare),         cmocka_unit_test(one_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
