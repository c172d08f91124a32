/* test_query.c - values of runs by name, which runs a query chooses, their order. Plots of their curves. */
#include <math.h>
#include <time.h>

#include "test.h"

#include "runs/query.h"
#include "views/run_plots.h"

enum { RUNS = 4 };
static struct tune_run **runs;

/* Four runs: lr 0.1, 0.01, 0.001 and one of pairs without lr, with losses of 4, 3, 2 and 1. */
static void make(int i, const char *program, const char *status, const char *started, const char *lr)
{
    char folder[16], text[512];
    snprintf(folder, sizeof folder, "q/%c", 'a' + i);
    assert_ok(tune_file_make_folder(folder));
    snprintf(text, sizeof text, "{\"program\":\"%s\",\"status\":\"%s\",\"started\":\"%s\",\"device\":\"%s\",\"planned_steps\":%d,\"options\":{%s\"shuffle\":true,"
             "\"name\":\"x\"}}", program, status, started, i == 1 ? "cuda" : "cpu", i == 3 ? 0 : 9, lr);
    test_write(folder, "run.json", text, strlen(text));
    snprintf(text, sizeof text, "{\"step\":1,\"loss\":9,\"elapsed_s\":1,\"tokens\":5}\n{\"step\":2,\"loss\":%d,\"mine\":%d,\"elapsed_s\":2,\"tokens\":5}\n%s",
             4 - i, i * 10, i == 0 ? "{\"step\":2,\"eval_loss\":6}\n" : "");
    test_write(folder, "metrics.jsonl", text, strlen(text));
    test_write(folder, "report.json", "{\"peak_gpu_bytes\":7,\"accuracy\":0.5}", 35);
}

static const char *unit(const struct tune_run *r, const char *name)
{
    return strcmp(name, "loss") != 0 && strcmp(name, "eval_loss") != 0 ? "" : !strcmp(tune_run_member(r, "program"), "pairs") ? "nats/pair" : "nats/token";
}

static int begin(void **state)
{
    if (test_home_begin(state) < 0)
        return -1;
    make(0, "full", "finished", "2026-01-02T03:04:05Z", "\"lr\":0.1,");
    make(1, "full", "failed", "2026-01-03T03:04:05Z", "\"lr\":0.01,");
    make(2, "lora", "finished", "2026-01-04T03:04:05Z", "\"lr\":0.001,");
    make(3, "pairs", "stopped", "2026-01-05T03:04:05Z", "");
    return tune_runs_open(&runs, (const char *const[]){"q"}, 1) == RUNS ? 0 : -1;
}

static int end(void **state)
{
    tune_runs_free(runs, RUNS);
    return test_home_end(state);
}

/* The names of the first n runs: "abc". */
static void is_order(struct tune_run **some, int n, const char *expected)
{
    char got[RUNS + 1] = "";
    for (int i = 0; i < n; i++)
        got[i] = *some[i]->name;
    assert_string_equal(got, expected);
}

static void in_order(struct tune_run **some)
{
    for (int i = 0; i < RUNS; i++)
        some[i] = runs[i];
    assert_int_equal(tune_runs_sort(some, RUNS, "name", false, unit, (char[256]){0}), 0);
    is_order(some, RUNS, "abcd");
}

static void chosen(struct tune_run_query q, const char *expected)
{
    struct tune_run *some[RUNS];
    in_order(some);
    int n = tune_runs_select(some, RUNS, &q);
    if (n < 0)
        fail_msg("%s", tune_error_message());
    is_order(some, n, expected);
    for (int i = 0; i < RUNS; i++) /* the others stand behind: none is lost */
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(some[i], some[k]);
}

/* The value of a name in a run, as a number; NAN: none. */
static double number(const struct tune_run *r, const char *name)
{
    char time[32];
    double x = NAN;
    struct tune_value v = tune_run_value(r, name, time);
    return tune_value_number(&v, &x) ? x : NAN;
}

static void refused(struct tune_run_query q, const char *message)
{
    struct tune_run *some[RUNS];
    in_order(some);
    assert_int_equal(tune_runs_select(some, RUNS, &q), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has(message);
}

static void values(void **state)
{
    (void)state;
    char time[32];
    struct tune_run *some[RUNS];
    in_order(some);
    assert_true(number(some[0], "loss") == 4 && number(some[0], "lr") == 0.1 && number(some[0], "accuracy") == 0.5);
    assert_true(number(some[2], "mine") == 20); /* the last of a metric */
    assert_int_equal(tune_run_value(some[0], "shuffle", time).type, TUNE_VALUE_BOOL);
    assert_string_equal(tune_run_value(some[0], "name", time).text, "a"); /* the run's own name, not that of an option */
    static const char *const none[] = {"nothing", "peak_gpu_bytes", "best_eval_loss.x", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(tune_run_value(some[0], none[i], time).type, TUNE_VALUE_NONE);
    assert_true(number(some[1], "peak_gpu_bytes") == 7); /* it ran on a GPU */
    assert_int_equal(tune_run_value(some[3], "planned_steps", time).type, TUNE_VALUE_NONE);
    const char **names;
    int n = tune_runs_names(some, RUNS, &names), seen = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    for (int i = 0; i < n; i++)
        seen += !strcmp(names[i], "lr") || !strcmp(names[i], "mine") || !strcmp(names[i], "accuracy") || !strcmp(names[i], "state");
    assert_int_equal(seen, 4);
    free(names);
}

static void selects(void **state)
{
    (void)state;
    chosen((struct tune_run_query){0}, "abcd");
    chosen((struct tune_run_query){.where = "lr < 0.05"}, "bc");
    chosen((struct tune_run_query){.where = "loss < 3 and state != \"stopped\""}, "c");
    chosen((struct tune_run_query){.where = "mine > 100"}, "");
    chosen((struct tune_run_query){.program = "full,pairs"}, "abd");
    chosen((struct tune_run_query){.program = "ful"}, "");
    chosen((struct tune_run_query){.state = "finished,failed"}, "abc");
    chosen((struct tune_run_query){.state = "finished", .program = "full", .where = "lr > 0"}, "a");
    chosen((struct tune_run_query){.since = "2026-01-03"}, "bcd");
    chosen((struct tune_run_query){.since = "1m"}, "");
    refused((struct tune_run_query){.where = "lrr < 1"}, "lr");
    refused((struct tune_run_query){.where = "lr <"}, "`where`");
    refused((struct tune_run_query){.state = "finished,ended"}, "\"ended\" is no state");
    refused((struct tune_run_query){.since = "2026-02-31"}, "is no time");
    refused((struct tune_run_query){.since = "-1d"}, "is no time");
    assert_int_equal(tune_runs_select(runs, 0, &(struct tune_run_query){.where = "lr < 1"}), 0);
}

static void sorted(const char *name, bool reverse, const char *expected, const char *units_expected)
{
    struct tune_run *some[RUNS];
    char units[256] = "old";
    in_order(some);
    assert_ok(tune_runs_sort(some, RUNS, name, reverse, unit, units));
    is_order(some, RUNS, expected);
    assert_string_equal(units, units_expected);
}

static void sorts(void **state)
{
    (void)state;
    sorted("lr", false, "cbad", ""); /* d has none and comes last, in both directions */
    sorted("lr", true, "abcd", "");
    sorted("started", true, "dcba", "");
    sorted("mine", false, "abcd", "");
    struct tune_run *some[RUNS];
    char units[256];
    in_order(some);
    assert_ok(tune_runs_sort(some, RUNS, "loss", false, unit, units)); /* nats/pair stand apart, though 1 is the least */
    is_order(some, RUNS, "cbad");
    assert_non_null(strstr(units, "nats/pair"));
    assert_non_null(strstr(units, "nats/token"));
    assert_int_equal(tune_runs_sort(some, RUNS, "los", false, unit, units), -1);
    assert_error_has("loss");
}

static const char *apart(const struct tune_run *r, const char *name)
{
    (void)r;
    return name;
}

static void plots(void **state)
{
    (void)state;
    struct tune_run *some[RUNS];
    in_order(some);
    struct tune_run_drawing d = {.metrics = "loss,eval_loss", .x = "step", .unit = unit, .colors = (const int[]){5, 6, 7, 8}};
    struct tune_run_plots *p = tune_run_plots_new(some, RUNS, &d);
    assert_got(p);
    assert_int_equal(p->count, 2); /* losses per token with the eval_loss, and per pair */
    assert_int_equal(p->curve_count, 5);
    assert_string_equal(p->plot[0].y_title, "nats/token");
    assert_string_equal(p->plot[1].y_title, "nats/pair");
    assert_int_equal(p->plot[0].count, 4);
    const struct tune_curve *c = p->plot[0].curves;
    assert_true(c->count == 2 && c->x[1] == 2 && c->y[1] == 4 && c->color == 5 && p->plot[1].curves->color == 8);
    int dotted = 0;
    for (int i = 0; i < p->plot[0].count; i++)
        dotted += c[i].dotted;
    assert_int_equal(dotted, 1);
    tune_run_plots_free(p);
    d = (struct tune_run_drawing){.metrics = "loss", .x = "tokens", .unit = unit, .range = (const double[]){6, 20}};
    p = tune_run_plots_new(some, 1, &d);
    assert_got(p);
    assert_true(p->curve_count == 1 && p->curves->count == 1 && p->curves->x[0] == 10 && p->curves->y[0] == 4);
    tune_run_plots_free(p);
    d = (struct tune_run_drawing){.metrics = "loss,mine,loss", .x = "step", .unit = unit};
    p = tune_run_plots_new(some, 3, &d); /* a metric that is named twice is drawn once */
    assert_got(p);
    assert_int_equal(p->count, 2);
    tune_run_plots_free(p);
    d = (struct tune_run_drawing){.metrics = "eval_loss,loss", .x = "step", .unit = apart};
    p = tune_run_plots_new(some, 1, &d); /* X and eval_X of other units have plots of their own */
    assert_got(p);
    assert_true(p->count == 2 && p->plot[0].count == 1 && p->plot[1].count == 1);
    tune_run_plots_free(p);
    static const struct {
        const char *metrics, *x, *message;
        bool asked;
    } bad[] = {{"lss", "step", "there are: loss, elapsed_s, tokens, mine", false}, {"", "step", "name of a metric", false},
               {"loss,,mine", "step", "separated by commas", false}, {"loss", "labels", "no run has the metric \"labels\"", false},
               {"eval_mine", "step", "no run has the metric", true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d = (struct tune_run_drawing){.metrics = bad[i].metrics, .x = bad[i].x, .unit = unit, .asked = bad[i].asked};
        assert_null(tune_run_plots_new(some + 1, 2, &d));
        assert_error_has(bad[i].message);
    }
    tune_run_plots_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(selects), cmocka_unit_test(sorts), cmocka_unit_test(plots)};
    return cmocka_run_group_tests(tests, begin, end);
}
