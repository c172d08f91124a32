/* test_trend.c - real learning curves, replayed: no ordinary one is called a rise, and those of far
 * too large learning rates are. tests/loggers/curves.txt holds them. */
#include "loggers/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "test.h"

enum { MOST = 1024 };

/* A curve of the file: its kind, name and losses. */
struct curve {
    char kind[16], name[64], exact[8];
    double loss[MOST];
    int count;
};

/* Read the next curve. A line begins with a letter if it is a heading, and holds losses otherwise. */
static bool next(FILE *f, struct curve *c)
{
    char line[256];
    long here;
    c->count = 0;
    do
        if (!fgets(line, sizeof line, f))
            return false;
    while (*line == '#');
    assert_int_equal(sscanf(line, "%15s %63s %7s", c->kind, c->name, c->exact), 3);
    while ((here = ftell(f)) >= 0 && fgets(line, sizeof line, f)) {
        if (*line >= 'a' && *line <= 'z') {
            assert_int_equal(fseek(f, here, SEEK_SET), 0);
            break;
        }
        for (char *at = line, *end; c->loss[c->count] = strtod(at, &end), end > at; at = end)
            assert_true(++c->count < MOST);
    }
    return c->count > 0;
}

/* Replay losses times by. Returns the step of the first rise, 0: none. *now: whether it stands at
 * the end. */
static int rises(const double *loss, int count, double by, bool exact, bool *now)
{
    struct tune_trend t = {.exact = exact};
    int first = 0;
    for (int i = 0; i < count; i++)
        if (tune_trend_add(&t, loss[i] * by) == 1 && first == 0)
            first = i + 1;
    *now = t.rose;
    return first;
}

static void replayed(void **state)
{
    static struct curve c;
    FILE *f = fopen("tests/loggers/curves.txt", "r");
    int ordinary = 0, rising = 0, back = 0;
    bool now;
    (void)state;
    assert_non_null(f);
    while (next(f, &c)) {
        int at = rises(c.loss, c.count, 1, *c.exact == 'e', &now);
        bool calm = !strcmp(c.kind, "ordinary");
        if (calm ? at != 0 : at == 0 || at > 40)
            fail_msg("%s, %d losses: %s at step %d", c.name, c.count, at ? "called a rise" : "no rise", at);
        if (!calm && now == !strcmp(c.kind, "back"))
            fail_msg("%s: %s at the end", c.name, now ? "still a rise" : "no rise");
        ordinary += calm;
        rising += !strcmp(c.kind, "rising");
        back += !strcmp(c.kind, "back");
    }
    fclose(f);
    print_message("%d ordinary curves, %d that rise, %d that come back\n", ordinary, rising, back);
    assert_true(ordinary >= 20 && rising >= 20 && back >= 1);
}

/* Losses around a level, as uneven as batches of one row are, of a run that learns nothing: no rise.
 * Four times as much from some step on: a rise. */
static void noise(void **state)
{
    static double loss[3000];
    bool now;
    (void)state;
    for (int run = 0; run < 20; run++) {
        for (int i = 0; i < 3000; i++) {
            double sum = 0; /* of four numbers between 0 and 1: variance 1/3 */
            for (int k = 0; k < 4; k++)
                sum += (double)(tune_random_u64(1, (uint64_t)run, (uint64_t)(4 * i + k)) >> 11) * 0x1p-53;
            loss[i] = 2 * exp(.4 * (sum - 2) * sqrt(3));
        }
        assert_int_equal(rises(loss, 3000, 1, false, &now), 0);
        int from = 20 + 100 * run;
        for (int i = from; i < 3000; i++)
            loss[i] *= 4;
        int at = rises(loss, 3000, 1, false, &now);
        assert_true(now && at > from && at <= from + 40);
    }
}

static void shapes(void **state)
{
    double loss[100];
    bool now;
    (void)state;
    for (int i = 0; i < 100; i++)
        loss[i] = i < 50 ? 4 - .05 * i : 1.5 + .04 * (i - 50); /* 1.5 times the lowest, but not above the first ones */
    assert_int_equal(rises(loss, 100, 1, false, &now), 0);
    for (int i = 50; i < 100; i++)
        loss[i] = 1.5 + .2 * (i - 50);
    int at = rises(loss, 100, 1, false, &now);
    assert_true(now && at > 60 && at < 90);
    assert_int_equal(rises(loss, 100, -1, false, &now), 0); /* a loss of one's own: ratios say nothing */
    for (int i = 0; i < 100; i++)
        loss[i] = i == 30 ? 400 : 2; /* one batch that is far off */
    assert_int_equal(rises(loss, 100, 1, false, &now), 0);
    for (int i = 0; i < 100; i++)
        loss[i] = i == 0 ? .6 : 700 - 4 * i; /* at once, and it falls from there */
    assert_int_equal(rises(loss, 100, 1, false, &now), 6);
    assert_true(now);
    assert_int_equal(rises(loss, 5, 1, false, &now), 0); /* too few to say */
}

/* The steps from before the rise. */
static void good(void **state)
{
    struct tune_trend t = {0};
    (void)state;
    for (int i = 0; i < 200; i++)
        tune_trend_add(&t, 3 - .01 * i);
    assert_int_equal(tune_trend_good(&t), 200);
    for (int i = 0; i < 40 && !t.rose; i++)
        tune_trend_add(&t, 6 + .01 * i);
    assert_true(t.rose);
    assert_int_equal(tune_trend_good(&t), 200);
    struct tune_trend s = {0};
    for (int i = 0; i < 10; i++)
        tune_trend_add(&s, i == 0 ? 1 : 90);
    assert_true(s.rose);
    assert_int_equal(tune_trend_good(&s), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed),
        cmocka_unit_test(noise),
        cmocka_unit_test(shapes),
        cmocka_unit_test(good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
