/* test_search.c - the search by a model: how soon it finds the best, resume, pending points, constraints, large and continuous spaces, two
 * targets, and bad input. */
#include "test.h"

#include "core/random.h"
#include "files/document.h"
#include "sweeps/spaces/order.h"
#include "sweeps/surrogate/acquisition.h"
#include "sweeps/surrogate/axes.h"
#include "sweeps/surrogate/search.h"

enum { MOST = 200 };

static struct tune_space *space_of(const char *yaml)
{
    char path[128];
    snprintf(path, sizeof path, "%s/space.yaml", test_home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(yaml, file);
    fclose(file);
    struct tune_space *s = tune_space_read(path);
    assert_got(s);
    return s;
}

static const char grid[] = "entitySpace:\n"
    "  - {identifier: a, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128]}}\n"
    "  - {identifier: b, propertyDomain: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}\n"
    "  - {identifier: one, propertyDomain: {values: [7]}}\n"
    "  - {identifier: kind, propertyDomain: {values: [x, y, z]}}\n"
    "  - {identifier: c, propertyDomain: {domainRange: [0, 20], interval: 1}}\n";

/* The best of the grid is 100, at a 16, b 3, y, c 12. */
static double peak(const struct tune_value *v)
{
    double a, b, c;
    tune_value_number(&v[0], &a);
    tune_value_number(&v[1], &b);
    tune_value_number(&v[4], &c);
    return 100 * exp(-pow(log2(a) - 4, 2) / 9 - pow(b - 3, 2) / 20 - pow(c - 12, 2) / 90) * (*v[3].text == 'y' ? 1 : *v[3].text == 'x' ? .8 : .5);
}

/* Not enough memory for the product of a and c. */
static bool fits(const struct tune_value *v)
{
    double a, c;
    tune_value_number(&v[0], &a);
    tune_value_number(&v[4], &c);
    return a * c <= 400;
}

static struct tune_search *search_of(const struct tune_space *space, uint64_t seed)
{
    struct tune_search_options o = {.space = space, .seed = seed, .targets = 1, .maximize = {true}};
    struct tune_search *s = tune_search_new(&o);
    assert_got(s);
    return s;
}

static const struct tune_value *next_of(struct tune_search *s)
{
    const struct tune_value *entity;
    int more = tune_search_next(s, &entity);
    if (more != 1)
        fail_msg("tune_search_next: %d %s", more, tune_error_message());
    return entity;
}

static void name_of(const struct tune_space *space, const struct tune_value *entity, char text[256])
{
    tune_entity_identifier(space->names, entity, space->count, text, 256);
}

static void measure(struct tune_search *s, const struct tune_value *entity)
{
    double value = peak(entity);
    assert_ok(tune_search_add(s, entity, fits(entity) ? TUNE_SEARCH_VALID : TUNE_SEARCH_INVALID, &value));
}

static void finds_the_best(void **state)
{
    struct tune_space *space = space_of(grid);
    (void)state;
    if (emulated()) /* it would take minutes */
        skip();
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct tune_search *s = search_of(space, seed);
        double best = 0;
        int n = 0, invalid = 0;
        for (; best < 97 && n < 60; n++) {
            const struct tune_value *entity = next_of(s);
            invalid += !fits(entity);
            if (fits(entity))
                best = fmax(best, peak(entity));
            measure(s, entity);
        }
        if (n == 60 || invalid > n / 2) /* random needs 1000 of the 4800 points */
            fail_msg("seed %d: best %g after %d points, %d of them invalid", (int)seed, best, n, invalid);
        tune_search_free(s);
    }
    tune_space_free(space);
}

/* Rows that are added again give the same next point; another seed gives others. */
static void goes_on(void **state)
{
    struct tune_space *space = space_of(grid);
    struct tune_search *s = search_of(space, 4), *other = search_of(space, 5);
    char names[40][256], text[256];
    int same = 0;
    (void)state;
    if (emulated()) /* it would take minutes */
        skip();
    for (int i = 0; i < 40; i++) {
        const struct tune_value *entity = next_of(s);
        name_of(space, entity, names[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
        measure(s, entity);
        entity = next_of(other);
        name_of(space, entity, text);
        same += !strcmp(text, names[i]);
        measure(other, entity);
    }
    assert_true(same < 10);
    for (int from = 0; from < 40; from += 13) {
        struct tune_search *again = search_of(space, 4), *first = search_of(space, 4);
        for (int i = 0; i < 40; i++) {
            const struct tune_value *entity = next_of(first);
            if (i >= from) {
                name_of(space, next_of(again), text);
                assert_string_equal(text, names[i]);
            }
            measure(again, entity);
            measure(first, entity);
        }
        tune_search_free(again);
        tune_search_free(first);
    }
    tune_search_free(other);
    tune_search_free(s);
    tune_space_free(space);
}

/* The first points, and each tenth, are the next ones of the Sobol sequence that were not chosen yet. */
static void even_points(void **state)
{
    struct tune_space *space = space_of(grid);
    struct tune_search *s = search_of(space, 6);
    struct tune_order *order = tune_order_new(space, &(struct tune_order_options){.mode = TUNE_ORDER_SOBOL, .seed = 6, .limit = -1});
    char names[40][256], text[256];
    int start = 5 + 4, others = 0; /* one is no dimension of the model */
    (void)state;
    if (emulated())
        skip();
    assert_got(order);
    for (int i = 0; i < 40; i++) {
        const struct tune_value *entity = next_of(s), *even;
        name_of(space, entity, names[i]);
        bool is_even = i < start || i % 10 == 9;
        for (bool seen = is_even; seen;) {
            assert_int_equal(tune_order_next(order, &even), 1);
            name_of(space, even, text);
            seen = false;
            for (int k = 0; k < i && !seen; k++)
                seen = !strcmp(text, names[k]);
        }
        if (is_even)
            assert_string_equal(names[i], text);
        others += !is_even;
        measure(s, entity);
    }
    assert_int_equal(others, 27);
    tune_order_free(order);
    tune_search_free(s);
    tune_space_free(space);
}

/* Points that are being measured are not chosen again, and a batch is spread. */
static void pending(void **state)
{
    struct tune_space *space = space_of(grid);
    struct tune_search *s = search_of(space, 1);
    char names[8][256];
    double value;
    (void)state;
    for (int i = 0; i < 20; i++)
        measure(s, next_of(s));
    for (int i = 0; i < 8; i++) {
        const struct tune_value *entity = next_of(s);
        name_of(space, entity, names[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
        assert_ok(tune_search_add(s, entity, TUNE_SEARCH_PENDING, NULL));
    }
    /* a pending row becomes a row; one more of the same entity is a repeat */
    struct tune_value copy[5];
    const struct tune_value *entity = next_of(s);
    memcpy(copy, entity, sizeof copy);
    value = peak(copy);
    assert_ok(tune_search_add(s, copy, TUNE_SEARCH_PENDING, NULL));
    for (int i = 0; i < 3; i++)
        assert_ok(tune_search_add(s, copy, TUNE_SEARCH_VALID, &value));
    char text[256], was[256];
    name_of(space, copy, was);
    name_of(space, next_of(s), text);
    assert_string_not_equal(text, was);
    tune_search_free(s);
    tune_space_free(space);
}

/* ---- spaces ---- */

static int is_odd(void *context, const struct tune_value *entity)
{
    double b;
    ++*(int *)context;
    tune_value_number(&entity[1], &b);
    return (int)b % 2;
}

static void constraints(void **state)
{
    struct tune_space *space = space_of(
        "entitySpace:\n"
        "  - {identifier: a, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128]}}\n"
        "  - {identifier: b, propertyDomain: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}\n"
        "  - {identifier: c, propertyDomain: {domainRange: [0, 20], interval: 1}}\n"
        "constraints: ['a * b <= 40', 'c % 2 == 0']\n");
    int asked = 0, n = 0, more;
    struct tune_search_options o = {.space = space, .targets = 1, .allowed = is_odd, .context = &asked};
    struct tune_search *s = tune_search_new(&o);
    const struct tune_value *entity;
    (void)state;
    if (emulated()) /* it would take minutes */
        skip();
    assert_got(s);
    while ((more = tune_search_next(s, &entity)) == 1) { /* minimizes, until none is left */
        double a, b, c;
        tune_value_number(&entity[0], &a);
        tune_value_number(&entity[1], &b);
        tune_value_number(&entity[2], &c);
        assert_true(a * b <= 40 && (int)c % 2 == 0 && (int)b % 2 == 1);
        double value = a + b + c;
        assert_ok(tune_search_add(s, entity, TUNE_SEARCH_VALID, &value));
        n++;
    }
    int expected = 0;
    for (int a = 1; a <= 128; a *= 2)
        for (int b = 1; b < 10; b += 2)
            expected += a * b <= 40 ? 10 : 0;
    assert_int_equal(more, 0);
    assert_int_equal(n, expected);
    assert_true(asked > 0);
    tune_search_free(s);
    tune_space_free(space);
}

/* 10^12 entities with a constraint; two dimensions without end. */
static void large_spaces(void **state)
{
    char yaml[1024] = "entitySpace:\n";
    (void)state;
    for (int k = 0; k < 12; k++)
        sprintf(yaml + strlen(yaml), "  - {identifier: d%d, propertyDomain: {domainRange: [0, 10], interval: 1}}\n", k);
    strcat(yaml, "constraints: ['d0 + d1 <= 12']\n");
    struct tune_space *space = space_of(yaml);
    struct tune_search *s = search_of(space, 2);
    double best = 0;
    for (int i = 0; i < 60; i++) {
        const struct tune_value *entity = next_of(s);
        double sum = 0, v;
        for (int k = 0; k < 12; k++) {
            tune_value_number(&entity[k], &v);
            sum += v / (k + 1);
        }
        best = fmax(best, sum);
        assert_ok(tune_search_add(s, entity, TUNE_SEARCH_VALID, &sum));
    }
    assert_true(best > 22); /* the most is 9 * 3.1 - 6 / 2 = 24.9; of random points 1 in 1000 has 20 */
    tune_search_free(s);
    tune_space_free(space);
    space = space_of("entitySpace:\n"
                     "  - {identifier: lr, propertyDomain: {domainRange: [0.00001, 1.0]}}\n"
                     "  - {identifier: decay, propertyDomain: {domainRange: [0.0, 1.0]}}\n");
    struct tune_search_options o = {.space = space, .targets = 1};
    assert_got(s = tune_search_new(&o));
    best = INFINITY;
    for (int i = 0; i < 40; i++) {
        const struct tune_value *entity = next_of(s);
        assert_true(tune_space_has(space, entity));
        double loss = pow(log10(entity[0].number) + 3, 2) + pow(entity[1].number - .3, 2) + 1;
        best = fmin(best, loss);
        assert_ok(tune_search_add(s, entity, TUNE_SEARCH_VALID, &loss));
    }
    assert_true(best < 1.002);
    tune_search_free(s);
    tune_space_free(space);
}

static void scales(void **state)
{
    struct tune_space *space = space_of(
        "entitySpace:\n"
        "  - {identifier: powers, propertyDomain: {values: [1, 10, 100]}}\n"
        "  - {identifier: even, propertyDomain: {values: [-1, 0, 1, 3]}}\n"
        "  - {identifier: uneven, propertyDomain: {values: [0, 1, 100, 10000, 10001]}}\n"
        "  - {identifier: flag, propertyDomain: {values: [false, true]}}\n"
        "  - {identifier: word, propertyDomain: {values: [a, b]}}\n"
        "  - {identifier: named, propertyDomain: {values: [4, 5], variableType: CATEGORICAL_VARIABLE_TYPE}}\n");
    static const enum tune_axis_scale expected[] = {TUNE_AXIS_LOG, TUNE_AXIS_LINEAR, TUNE_AXIS_INDEX, TUNE_AXIS_LINEAR,
                                                    TUNE_AXIS_CATEGORY, TUNE_AXIS_CATEGORY};
    struct tune_axes a;
    double point[6], back[6];
    struct tune_value values[6];
    (void)state;
    assert_ok(tune_axes_read(&a, space));
    assert_int_equal(a.count, 6);
    for (int k = 0; k < 6; k++)
        assert_int_equal(a.axes[k].scale, expected[k]);
    const double at[] = {1, 2, 1, 1, 1, 0};
    tune_axes_point(&a, at, point);
    assert_true(fabs(point[0] - .5) < 1e-12 && point[1] == .5 && point[2] == .25 && point[3] == 1 && point[4] == 1 && point[5] == 0);
    tune_axes_entity(&a, at, values);
    assert_int_equal(values[0].integer, 10);
    assert_string_equal(values[4].text, "b");
    assert_ok(tune_axes_find(&a, values, back));
    assert_memory_equal(at, back, sizeof at);
    tune_axes_free(&a);
    tune_space_free(space);
}

/* ---- two targets ---- */

/* The expected growth of the area, against a mean over many draws. */
static void growth_of_the_area(void **state)
{
    enum { DRAWS = 200000 };
    const int number = 0;
    double points[] = {.1, .3, .5, .7, .9, .2}, at = .6, score, sum = 0;
    double values[6 * TUNE_SEARCH_VALUES] = {0};
    const double pairs[6][2] = {{1, 9}, {3, 7}, {5, 6}, {7, 2}, {8, -1}, {2, 2}}; /* the last is in nobody's way */
    enum tune_search_state states[6] = {TUNE_SEARCH_VALID, TUNE_SEARCH_VALID, TUNE_SEARCH_VALID, TUNE_SEARCH_VALID, TUNE_SEARCH_VALID,
                                        TUNE_SEARCH_VALID};
    struct tune_search_rows rows = {6, 1, &number, points, values, states, false};
    struct tune_search_options o = {.targets = 2, .maximize = {true, true}};
    struct tune_acquisition a;
    struct tune_prediction p[2];
    (void)state;
    for (int i = 0; i < 6; i++)
        memcpy(values + i * TUNE_SEARCH_VALUES, pairs[i], sizeof pairs[i]);
    assert_ok(tune_acquisition_make(&a, &o, &rows));
    assert_ok(tune_acquisition_score(&a, &at, 1, &score));
    for (int t = 0; t < 2; t++)
        assert_ok(tune_surrogate_predict(a.targets[t], &at, 1, &p[t]));
    for (int i = 0; i < DRAWS; i++) {
        double u = (p[0].mean + p[0].deviation * tune_random_normal(1, 0, (uint64_t)i)), before = a.worst[0];
        double v = (p[1].mean + p[1].deviation * tune_random_normal(1, 1, (uint64_t)i));
        for (int k = 0; k <= a.front_count; k++) { /* the first target's values between two points of the front */
            double end = k < a.front_count ? a.front[k * 2] : INFINITY, floor = k < a.front_count ? a.front[k * 2 + 1] : a.worst[1];
            double wide = fmin(u, end) - before;
            if (wide > 0 && v > floor)
                sum += wide * (v - floor) / DRAWS;
            before = end;
        }
    }
    assert_true(a.front_count >= 3 && a.front_count <= 5);
    for (int k = 1; k < a.front_count; k++)
        assert_true(a.front[k * 2] > a.front[k * 2 - 2] && a.front[k * 2 + 1] < a.front[k * 2 - 1]);
    assert_true(fabs(exp(score) / sum - 1) < .03);
    tune_acquisition_free(&a);
}

/* The area above (0,0) that the points dominate; larger is better. */
static double area(const double (*p)[2], int n)
{
    double sum = 0, x = 0;
    for (;;) { /* the next step to the right: the lowest x above the last, and the highest y there */
        double next = INFINITY, high = 0;
        for (int i = 0; i < n; i++)
            if (p[i][0] > x)
                next = fmin(next, p[i][0]);
        if (next == INFINITY)
            return sum;
        for (int i = 0; i < n; i++)
            if (p[i][0] > x)
                high = fmax(high, p[i][1]);
        sum += (next - x) * high;
        x = next;
    }
}

static void two_targets(void **state)
{
    enum { BUDGET = 35 };
    struct tune_space *space = space_of(grid);
    double found = 0, drawn = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct tune_search_options o = {.space = space, .seed = seed, .targets = 2, .maximize = {true, false}};
        struct tune_search *s = tune_search_new(&o);
        double ours[BUDGET][2], theirs[BUDGET][2], a;
        assert_got(s);
        for (int i = 0; i < BUDGET; i++) {
            const struct tune_value *entity = next_of(s);
            tune_value_number(&entity[0], &a);
            double both[2] = {peak(entity), 10 + a}; /* high throughput, little memory */
            ours[i][0] = both[0];
            ours[i][1] = log(200 / both[1]);
            assert_ok(tune_search_add(s, entity, TUNE_SEARCH_VALID, both));
            struct tune_value random[5];
            tune_space_entity(space, (tune_index)(tune_random_uniform(seed, 1, (uint64_t)i) * (double)space->size), random);
            tune_value_number(&random[0], &a);
            theirs[i][0] = peak(random);
            theirs[i][1] = log(200 / (10 + a));
        }
        found += area((const double (*)[2])ours, BUDGET);
        drawn += area((const double (*)[2])theirs, BUDGET);
        tune_search_free(s);
    }
    if (!(found > 1.1 * drawn))
        fail_msg("area %g, at random %g", found, drawn);
    tune_space_free(space);
}

/* Only points whose second value is at most 40 are wanted: of them the best has 89.5, at a 8. */
static int is_small(void *context, const double *values)
{
    (void)context;
    return values[1] <= 40;
}

static void condition(void **state)
{
    struct tune_space *space = space_of(grid);
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct tune_search_options o = {.space = space, .seed = seed, .targets = 1, .maximize = {true}, .others = 1, .within = is_small};
        struct tune_search *s = tune_search_new(&o);
        double best = 0;
        assert_got(s);
        for (int n = 0; n < 40; n++) {
            const struct tune_value *entity = next_of(s);
            double values[2] = {peak(entity), 0}, a, c;
            tune_value_number(&entity[0], &a);
            tune_value_number(&entity[4], &c);
            values[1] = 3 * a + c;
            bool wanted = is_small(NULL, values);
            best = wanted ? fmax(best, values[0]) : best;
            assert_ok(tune_search_add(s, entity, wanted ? TUNE_SEARCH_VALID : TUNE_SEARCH_OUTSIDE, values));
        }
        if (best < 89)
            fail_msg("seed %d: the best that is wanted has %g", (int)seed, best);
        tune_search_free(s);
    }
    tune_space_free(space);
}

/* ---- bad input ---- */

static int is_below(void *context, const double *values)
{
    (void)context;
    return values[0] < 20.5;
}

static double chance_of(struct tune_search *s, double share)
{
    double chance = -1;
    assert_ok(tune_search_chance(s, share, &chance));
    return chance;
}

/* The chance of something better falls, and is small only when the best was found. Twice the same; a pending entity counts as
 * unmeasured. */
static void chance(void **state)
{
    struct tune_space *space = space_of(grid);
    struct tune_search *s = search_of(space, 1), *waits = search_of(space, 1);
    double best = 0;
    int n = 0;
    (void)state;
    assert_float_equal(chance_of(s, .01), 1, 0); /* nothing is known */
    for (; n < 9; n++)
        measure(s, next_of(s));
    assert_true(chance_of(s, .01) > .5);
    assert_true(chance_of(s, .5) <= chance_of(s, .01));
    for (; n < MOST && chance_of(s, .01) >= .05; n++) {
        const struct tune_value *entity = next_of(s);
        best = fmax(best, fits(entity) ? peak(entity) : 0);
        measure(s, entity);
    }
    assert_in_range(n, 10, 80);
    assert_true(best > 99);
    assert_float_equal(chance_of(s, .01), chance_of(s, .01), 0);
    /* all the same, but the best entity is still being measured */
    struct tune_value at[5];
    while (true) {
        const struct tune_value *entity = next_of(waits);
        if (peak(entity) == best) {
            memcpy(at, entity, sizeof at);
            break;
        }
        measure(waits, entity);
    }
    assert_ok(tune_search_add(waits, at, TUNE_SEARCH_PENDING, NULL));
    assert_true(chance_of(waits, .0001) > .1);
    tune_search_free(s);
    tune_search_free(waits);
    tune_space_free(space);
}

/* When all are measured the chance is 0; what breaks the condition or is invalid has none. */
static void no_chance(void **state)
{
    (void)state;
    struct tune_space *space = space_of("entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3, 4, 5, 6, 7, 8]}}\n");
    struct tune_search *s = search_of(space, 0);
    for (int i = 0; i < 8; i++) {
        double value;
        const struct tune_value *entity = next_of(s);
        tune_value_number(entity, &value);
        assert_ok(tune_search_add(s, entity, TUNE_SEARCH_VALID, &value));
    }
    assert_float_equal(chance_of(s, 0), 0, 0);
    tune_search_free(s);
    tune_space_free(space);
    /* 1 to 40 rises without end, but only below 20 it is wanted */
    space = space_of("entitySpace:\n  - {identifier: a, propertyDomain: {domainRange: [1, 41], interval: 1}}\n");
    for (int kind = 0; kind < 2; kind++) {
        struct tune_search_options o = {.space = space, .targets = 1, .maximize = {true}, .within = kind ? is_below : NULL};
        double chances[2];
        assert_non_null(s = tune_search_new(&o));
        for (int i = 0; i < 19; i += 2) {
            double value = i + 1;
            const struct tune_value entity = tune_value_int(i + 1), high = tune_value_int(i + 21), odd = tune_value_int(i + 2);
            double above = i + 21, next = i + 2;
            assert_ok(tune_search_add(s, &entity, TUNE_SEARCH_VALID, &value));
            assert_ok(tune_search_add(s, &odd, TUNE_SEARCH_VALID, &next));
            assert_ok(tune_search_add(s, &high, kind ? TUNE_SEARCH_OUTSIDE : TUNE_SEARCH_INVALID, &above));
        }
        chances[0] = chance_of(s, .01);
        assert_true(chances[0] < .05);
        tune_search_free(s);
        o.within = NULL; /* the same rows, all wanted */
        assert_non_null(s = tune_search_new(&o));
        for (int i = 0; i < 20; i++) {
            double value = i + 1;
            const struct tune_value entity = tune_value_int(i + 1);
            assert_ok(tune_search_add(s, &entity, TUNE_SEARCH_VALID, &value));
        }
        assert_true((chances[1] = chance_of(s, .01)) > .9);
        tune_search_free(s);
    }
    tune_space_free(space);
}

static void refuses(const char *yaml, const char *message)
{
    struct tune_space *space = space_of(yaml);
    struct tune_search_options o = {.space = space, .targets = 1};
    assert_null(tune_search_new(&o));
    assert_error_has(message);
    tune_space_free(space);
}

static void bad_input(void **state)
{
    (void)state;
    refuses("entitySpace:\n  - {identifier: a, propertyDomain: {values: [7]}}\n", "no dimension of this space has more than one value");
    refuses("entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2]}}\n"
            "  - {identifier: b, propertyDomain: {variableType: OPEN_CATEGORICAL_VARIABLE_TYPE}}\n", "b: ");
    struct tune_space *space = space_of("entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3]}}\n");
    struct tune_search *s = search_of(space, 0);
    const struct tune_value *entity;
    double bad = NAN, good = 5;
    const struct tune_value other = tune_value_int(4);
    assert_int_equal(tune_search_add(s, &other, TUNE_SEARCH_VALID, &good), -1);
    assert_error_has("a value of a is not in its domain");
    assert_ok(tune_search_add(s, next_of(s), TUNE_SEARCH_VALID, &bad)); /* counts as invalid */
    for (int i = 0; i < 2; i++) /* constant targets */
        assert_ok(tune_search_add(s, next_of(s), TUNE_SEARCH_VALID, &good));
    assert_int_equal(tune_search_next(s, &entity), 0);
    tune_search_free(s);
    s = search_of(space, 0); /* nothing is valid */
    for (int i = 0; i < 3; i++)
        assert_ok(tune_search_add(s, next_of(s), TUNE_SEARCH_INVALID, NULL));
    assert_int_equal(tune_search_next(s, &entity), 0);
    tune_search_free(s);
    tune_search_free(NULL);
    tune_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_best), cmocka_unit_test(goes_on), cmocka_unit_test(even_points),     cmocka_unit_test(pending),     cmocka_unit_test(constraints),
        cmocka_unit_test(large_spaces),   cmocka_unit_test(scales),      cmocka_unit_test(growth_of_the_area), cmocka_unit_test(two_targets), cmocka_unit_test(condition),
        cmocka_unit_test(chance),         cmocka_unit_test(no_chance),   cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
