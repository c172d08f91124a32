/* test_curves.c - what the studio keeps of metrics: those asked for, up to a limit, the last looked at. No server. */
#include "../../tools/studio/curves.h"

#include <sys/file.h>

#include "test.h"

enum { STEPS = 1000, BYTES = STEPS * 16 }; /* of a metric */

static void make(const char *folder, const char *status, int steps)
{
    char path[64], json[64];
    snprintf(json, sizeof json, "{\"status\":\"%s\"}", status);
    assert_ok(tune_file_make_folder(folder));
    test_write(folder, "run.json", json, strlen(json));
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 1; i <= steps; i++)
        fprintf(f, "{\"step\":%d,\"loss\":%d.5,\"lr\":%d,\"elapsed_s\":%d}\n", i, i, 2 * i, 3 * i);
    fclose(f);
}

static struct tune_run *look(const char *folder, const char *metrics)
{
    struct studio_curve_run asked = {.folder = folder, .version = 1};
    struct tune_run *r;
    assert_ok(studio_curves_lock(&asked, 1, metrics, &r));
    studio_curves_unlock();
    return r;
}

static int64_t points(const struct tune_run *r, const char *metric)
{
    const struct tune_run_series *s = tune_run_series(r, metric);
    return s ? s->count : 0;
}

/* A run that is still kept has its old points. */
static bool is_kept(const char *folder)
{
    make(folder, "finished", 5);
    bool is = points(look(folder, "loss"), "loss") == STEPS;
    make(folder, "finished", STEPS);
    return is;
}

static void those_asked_for(void **state)
{
    (void)state;
    make("a", "finished", STEPS);
    struct tune_run *r = look("a", "loss");
    assert_int_equal(points(r, "loss"), STEPS);
    assert_int_equal(tune_run_series(r, "loss")->capacity, STEPS);
    assert_int_equal(points(r, "lr"), 1);
    assert_true(tune_run_series(r, "lr")->value[0] == 2 * STEPS && r->seconds == 3 * STEPS);
    make("a", "finished", 5); /* all of it is read again, or nothing */
    assert_int_equal(points(look("a", "loss"), "loss"), STEPS);
    assert_int_equal(points(look("a", "none"), "loss"), STEPS);
    r = look("a", "lr");
    assert_true(points(r, "lr") == 5 && points(r, "loss") == 5); /* both, for who looks at them in turn */
    make("a", "finished", STEPS);
    assert_true(points(look("a", "loss"), "loss") == 5 && points(look("a", "lr,loss"), "lr") == 5);
    studio_curves_forget(0);
    assert_int_equal(points(look("a", "loss,elapsed_s"), "elapsed_s"), STEPS);
    studio_curves_forget(0);
}

static void one_that_goes_on(void **state)
{
    (void)state;
    make("live", "running", 3); /* by nobody here: a dead one */
    FILE *held = fopen("live/metrics.jsonl", "a");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    assert_int_equal(points(look("live", "loss"), "loss"), 3);
    fputs("{\"step\":4,\"loss\":1,\"eval_loss\":1}\n{\"step\":5,\"loss\":1,\"eval_loss\":1}\n", held);
    fflush(held);
    struct tune_run *r = look("live", "loss,eval_loss");
    assert_true(points(r, "loss") == 5 && points(r, "eval_loss") == 2 && points(r, "lr") == 1);
    fputs("{\"step\":6,\"loss\":1,\"eval_loss\":1}\n", held);
    fflush(held);
    r = look("live", "eval_loss");
    assert_true(points(r, "loss") == 6 && points(r, "eval_loss") == 3);
    fclose(held);
    studio_curves_forget(0);
}

static void a_limit(void **state)
{
    (void)state;
    static const char *const folders[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        make(folders[i], "finished", STEPS);
    studio_curves_limit(2 * BYTES + BYTES / 2);
    look("a", "loss");
    look("b", "loss");
    look("a", "loss");
    look("c", "loss"); /* b is the one looked at longest ago */
    assert_true(is_kept("a"));
    assert_true(is_kept("c"));
    assert_false(is_kept("b"));
    look("d", "lr");
    assert_true(is_kept("c"));
    assert_false(is_kept("a"));
    studio_curves_limit(1); /* one run stays, whatever it takes */
    look("d", "loss");
    assert_true(is_kept("d"));
    struct studio_curve_run both[] = {{.folder = "a", .version = 1}, {.folder = "b", .version = 1}};
    struct tune_run *r[2];
    assert_ok(studio_curves_lock(both, 2, "loss", r)); /* more than the limit while they are looked at */
    assert_true(points(r[0], "loss") == STEPS && points(r[1], "loss") == STEPS);
    studio_curves_unlock();
    studio_curves_forget(0);
    studio_curves_limit(256 << 20);
    look("a", "loss");
    studio_curves_forget(1000);
    assert_true(is_kept("a"));
    studio_curves_forget(0);
    assert_false(is_kept("a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(those_asked_for), cmocka_unit_test(one_that_goes_on), cmocka_unit_test(a_limit)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
