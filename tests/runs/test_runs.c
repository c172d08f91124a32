/* test_runs.c - run folders read: states told apart, curves, what is broken and where, in what runs differ. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#include "core/clock.h"

#include "runs/metrics.h"
#include "runs/run.h"

static const char metrics[] = "{\"step\":1,\"loss\":4,\"elapsed_s\":0.5,\"tokens\":10,\"epoch\":0.25}\n"
                              "{\"step\":2,\"loss\":3,\"elapsed_s\":1,\"tokens\":30,\"epoch\":0.5}\n"
                              "{\"step\":2,\"eval_loss\":3.5,\"eval_perplexity\":33.1}\n"
                              "{\"step\":3,\"loss\":2,\"elapsed_s\":2,\"tokens\":20,\"epoch\":0.75}\n"
                              "{\"step\":3,\"eval_loss\":3.75}\n";

static void make(const char *folder, const char *status, const char *lines)
{
    char json[512];
    snprintf(json, sizeof json, "{\"status\":\"%s\",\"started\":\"2026-01-02T03:04:05Z\",\"ended\":\"2026-01-02T03:05:05Z\",\"planned_steps\":9,"
             "\"options\":{\"lr\":0.1,\"shuffle\":true,\"output\":\"%s\",\"model\":\"m\",\"text_field\":null}}", status, folder);
    assert_ok(tune_file_make_folder(folder));
    test_write(folder, "run.json", json, strlen(json));
    if (lines)
        test_write(folder, "metrics.jsonl", lines, strlen(lines));
}

static struct tune_run *opened(const char *folder, enum tune_run_state state, const char *reason)
{
    struct tune_run *r = tune_run_open(folder);
    assert_got(r);
    if (r->state != state || !strstr(r->reason, reason) || (!*reason && *r->reason))
        fail_msg("%s: %s, \"%s\"; expected %s, \"%s\"", folder, tune_run_state_name(r->state), r->reason, tune_run_state_name(state),
                 reason);
    return r;
}

static void a_run(void **state)
{
    (void)state;
    make("runs/a", "finished", metrics);
    struct tune_run *r = opened("runs/a/", TUNE_RUN_FINISHED, "");
    assert_string_equal(r->folder, "runs/a");
    assert_string_equal(r->name, "a");
    assert_true(r->step == 3 && r->planned_steps == 9 && r->loss == 2 && r->eval_loss == 3.75);
    assert_true(r->best_eval_loss == 3.5 && r->best_eval_step == 2 && r->seconds == 2 && r->tokens_per_s == 30);
    assert_true(r->started_s == 1767323045 && r->ended_s == r->started_s + 60);
    const struct tune_run_series *loss = tune_run_series(r, "loss"), *eval = tune_run_series(r, "eval_loss");
    assert_true(loss->count == 3 && loss->step[1] == 2 && loss->value[1] == 3 && eval->count == 2);
    assert_null(tune_run_series(r, "accuracy"));
    static const struct {
        const char *what;
        double loss[3], eval[2];
    } axes[] = {{"step", {1, 2, 3}, {2, 3}}, {"time", {0.5, 1, 2}, {1, 2}}, {"tokens", {10, 40, 60}, {40, 60}}, {"epoch", {0.25, 0.5, 0.75}, {0.5, 0.75}}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        double *x = tune_run_axis(r, loss, axes[i].what), *y = tune_run_axis(r, eval, axes[i].what);
        assert_got(x);
        assert_memory_equal(x, axes[i].loss, sizeof axes[i].loss);
        assert_memory_equal(y, axes[i].eval, sizeof axes[i].eval);
        free(x);
        free(y);
    }
    assert_null(tune_run_axis(r, loss, "labels"));
    assert_error_has("no \"labels\"");
    char text[64];
    assert_string_equal(tune_run_option(r, "lr", text, sizeof text), "0.1");
    assert_string_equal(tune_run_option(r, "shuffle", text, sizeof text), "true");
    assert_string_equal(tune_run_option(r, "text_field", text, sizeof text), "none");
    assert_null(tune_run_option(r, "momentum", text, sizeof text));
    tune_run_free(r);
}

static void states(void **state)
{
    (void)state;
    static const char *const ended[] = {"finished", "stopped", "failed", "unfinished", "diverged"};
    for (int i = 0; i < 5; i++) {
        make("runs/e", ended[i], metrics);
        tune_run_free(opened("runs/e", (enum tune_run_state)(TUNE_RUN_FINISHED + i), ""));
    }
    make("runs/e", "running", metrics);
    tune_run_free(opened("runs/e", TUNE_RUN_DEAD, "no process holds the folder"));
    FILE *held = fopen("runs/e/metrics.jsonl", "a"); /* as a running program has it */
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    tune_run_free(opened("runs/e", TUNE_RUN_RUNNING, ""));
    fputs("{\"step\":4,\"lo", held); /* just being written */
    fflush(held);
    struct tune_run *r = opened("runs/e", TUNE_RUN_RUNNING, "");
    assert_true(r->step == 3);
    tune_run_free(r);
    fclose(held); /* killed while it wrote */
    r = opened("runs/e", TUNE_RUN_DEAD, "last line is torn, 13 bytes");
    assert_true(r->step == 3 && r->loss == 2);
    tune_run_free(r);
    for (int s = 0; s < TUNE_RUN_STATES; s++)
        assert_int_equal(tune_run_state_from(tune_run_state_name((enum tune_run_state)s), strlen(tune_run_state_name((enum tune_run_state)s))), s);
    assert_int_equal(tune_run_state_from("run", 3), -1);
}

/* ---- a run that goes on while it is read ---- */

static void put(FILE *f, const char *text)
{
    assert_true(fputs(text, f) >= 0 && fflush(f) == 0);
}

static void follow(void **state)
{
    (void)state;
    struct tune_run *r = tune_run_follow("live/f/");
    assert_got(r);
    assert_true(r->state == TUNE_RUN_ABSENT && !tune_run_ended(r) && r->best_eval_step == -1);
    assert_string_equal(r->name, "f");
    assert_int_equal(tune_run_update(r), 0);
    assert_ok(tune_file_make_folder("live/f"));
    FILE *f = fopen("live/f/metrics.jsonl", "a"); /* the first file of a run */
    assert_int_equal(flock(fileno(f), LOCK_EX), 0);
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->state == TUNE_RUN_RUNNING && !*r->reason);
    make("live/f", "running", NULL);
    assert_int_equal(tune_run_update(r), 0);
    assert_true(r->state == TUNE_RUN_RUNNING && r->step == 0 && !tune_run_series(r, "loss"));
    put(f, "{\"step\":1,\"loss\":4,\"elapsed_s\":1,\"tok"); /* half a line does not count */
    assert_int_equal(tune_run_update(r), 0);
    assert_true(r->step == 0);
    put(f, "ens\":10}\n{\"step\":2,\"loss\":3,\"elapsed_s\":2,\"tokens\":10}");
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->step == 1 && r->loss == 4 && r->tokens_per_s == 10);
    put(f, "\n{\"step\":2,\"eval_loss\":5}\n{");
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->step == 2 && r->loss == 3 && r->eval_loss == 5 && tune_run_series(r, "loss")->count == 2);
    assert_int_equal(tune_run_update(r), 0);
    make("live/f", "finished", NULL);
    put(f, "\"step\":3,\"loss\":2}\n");
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->state == TUNE_RUN_FINISHED && r->loss == 2 && tune_run_ended(r) && !*r->reason);
    fclose(f);
    make("live/f", "running", NULL);
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->state == TUNE_RUN_DEAD && tune_run_ended(r));
    tune_file_remove_folder("live/f");
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->state == TUNE_RUN_ABSENT);
    make("live/f", "finished", "{\"step\":1,\"loss\":7}\n"); /* another run, in the same place */
    assert_int_equal(tune_run_update(r), 1);
    assert_true(r->step == 1 && r->loss == 7 && tune_run_series(r, "loss")->count == 1 && !tune_run_series(r, "tokens"));
    tune_run_free(r);
}

/* A run that goes on cuts its metrics in the file itself, and appends. */
static void cut_and_appended(void **state)
{
    (void)state;
    static const struct {
        int keep;
        const char *more;
        int64_t step;
        double loss;
    } cases[] = {
        {1, "", 1, 4}, /* only cut yet */
        {2, "", 2, 3},
        {2, "{\"step\":3,\"loss\":9}\n", 3, 9}, /* as long as before */
        {2, "{\"step\":3,\"loss\":9}\n{\"step\":4,\"loss\":8}\n", 4, 8}, /* longer */
        {0, "{\"step\":1,\"loss\":1234567890123}\n{\"step\":2,\"loss\":1}\n", 2, 1}, /* lines end elsewhere */
        {3, "{\"step\":4,\"loss\":8}\n", 4, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make("live/c", "running", "{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n{\"step\":3,\"loss\":5}\n");
        struct tune_run *r = tune_run_open("live/c");
        assert_true(r && r->step == 3 && r->loss == 5);
        FILE *f = fopen("live/c/metrics.jsonl", "r+");
        assert_int_equal(ftruncate(fileno(f), cases[i].keep * 20), 0);
        fseek(f, 0, SEEK_END);
        put(f, cases[i].more);
        assert_int_equal(tune_run_update(r), 1);
        const struct tune_run_series *loss = tune_run_series(r, "loss");
        assert_true(r->step == cases[i].step && r->loss == cases[i].loss && loss->count == cases[i].step);
        assert_int_equal(tune_run_update(r), 0);
        fclose(f);
        tune_run_free(r);
    }
    make("live/c", "finished", "{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n");
    struct tune_run *r = opened("live/c", TUNE_RUN_FINISHED, "");
    test_write("live", "other", "{\"step\":1,\"loss\":6}\n{\"step\":2,\"loss\":3}\n", 40); /* as long, with the same end */
    assert_int_equal(rename("live/other", "live/c/metrics.jsonl"), 0);
    assert_int_equal(tune_run_update(r), 1);
    assert_true(tune_run_series(r, "loss")->value[0] == 6);
    tune_run_free(r);
}

static int until(void *last, const struct tune_metrics_row *row)
{
    int64_t step = *(int64_t *)last;
    return row->step == step ? TUNE_METRICS_LAST : step < 0 && row->step == -step ? TUNE_METRICS_BEFORE : TUNE_METRICS_ON;
}

static void places(void **state)
{
    (void)state;
    struct tune_metrics_position at = {0};
    make("p", "finished", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\nno row\n{\"st");
    int64_t last = 2; /* lines behind the last one that is wanted are not read */
    assert_ok(tune_metrics_read(&at, "p", until, &last));
    assert_true(at.lines == 2 && at.bytes == 22 && at.left == 2 && at.torn == 4);
    at = (struct tune_metrics_position){0};
    last = -2;
    assert_ok(tune_metrics_read(&at, "p", until, &last));
    assert_true(at.lines == 1 && at.bytes == 11 && at.left == 3 && at.torn == 4);
    last = 3;
    assert_ok(tune_metrics_read(&at, "p", until, &last)); /* from there on */
    assert_true(at.lines == 3 && at.bytes == 33 && at.left == 1);
    assert_int_equal(tune_metrics_read(&at, "p", until, &last), -1);
    assert_error_has("p/metrics.jsonl:4:1: ");
}

/* As opened, of a run whose last line was written so many seconds ago: its reason, unless that is "", ends with them, and with those
 * that this takes. */
static void written_ago(int seconds, enum tune_run_state state, const char *reason)
{
    struct timespec t[2];
    double begin = tune_clock_s(), said = seconds;
    clock_gettime(CLOCK_REALTIME, &t[0]);
    t[0].tv_sec -= seconds;
    t[1] = t[0];
    assert_int_equal(utimensat(AT_FDCWD, "live/s/metrics.jsonl", t, 0), 0);
    struct tune_run *r = opened("live/s", state, reason);
    if (*reason)
        assert_int_equal(sscanf(strstr(r->reason, reason) + strlen(reason), "%lf s", &said), 1);
    assert_true(said >= seconds && said <= seconds + 1 + tune_clock_s() - begin);
    tune_run_free(r);
}

static void silent(void **state)
{
    (void)state;
    static const char there[] = "{\"status\":\"running\",\"sessions\":[{\"pid\":1,\"host\":\"no such host\"}],\"options\":{\"log_every\":3}}";
    make("live/s", "running", metrics); /* the longest step takes 1 s */
    FILE *held = fopen("live/s/metrics.jsonl", "a");
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    written_ago(50, TUNE_RUN_RUNNING, "");
    written_ago(70, TUNE_RUN_STALLED, "wrote nothing for ");
    put(held, "{\"step\":4,\"loss\":2,\"elapsed_s\":6}\n{\"step\":5,\"loss\":2,\"elapsed_s\":6.5}\n"); /* 4 s, and less */
    test_write("live/s", "run.json", there, strlen(there));
    written_ago(110, TUNE_RUN_RUNNING, ""); /* 10 x 4 s, and it writes each 3 steps */
    fclose(held); /* its machine is another one: its age decides */
    written_ago(110, TUNE_RUN_RUNNING, "it runs on no such host, whose processes cannot be seen from here; it last wrote ");
    written_ago(130, TUNE_RUN_DEAD, "wrote ");
    make("live/s", "running", ""); /* no step yet: the model is being read, perhaps */
    assert_got(held = fopen("live/s/metrics.jsonl", "a"));
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    written_ago(500, TUNE_RUN_RUNNING, "");
    written_ago(700, TUNE_RUN_STALLED, "wrote nothing for ");
    fclose(held);
}

static void before_the_first_step(void **state)
{
    (void)state;
    make("runs/z", "finished", "{\"step\":0,\"eval_loss\":2.5}\n{\"step\":1,\"loss\":4}\n{\"step\":1,\"eval_loss\":3}\n");
    struct tune_run *r = opened("runs/z", TUNE_RUN_FINISHED, "");
    assert_true(r->best_eval_step == 0 && r->best_eval_loss == 2.5);
    tune_run_free(r);
}

static void broken(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *reason;
    } bad[] = {
        {"{\"step\":1}\n{\"step\":2,\n{\"step\":3}\n", "metrics.jsonl:2:"},
        {"{\"step\":1}\n\n", "metrics.jsonl:2:"},
        {"{\"step\":1,\"loss\":1}\n{\"step\":1,\"loss\":1}\n", "metrics.jsonl:2: \"loss\" of step 1 stands behind that of step 1"},
        {"{\"step\":5,\"loss\":1}\n{\"step\":2,\"loss\":1}\n", "metrics.jsonl:2: \"loss\" of step 2 stands behind that of step 5"},
        {"{\"step\":1}\n{\"step\":2,\"tokens\":1e300}\n", "metrics.jsonl:2:25: \"tokens\" is 1e300, expected 0 to 68719476735"},
        {"{\"step\":1}\n{\"step\":2,\"tokens\":68719476736}\n", "metrics.jsonl:2:"},
        {"{\"step\":1}\n{\"step\":2,\"rows\":-1}\n", "metrics.jsonl:2:"},
        {"{\"step\":1}\n{\"step\":2,\"padded_tokens\":1e19}\n", "metrics.jsonl:2:"},
        {"{\"step\":1}\n{\"step\":2,\"elapsed_s\":1e300}\n", "metrics.jsonl:2:"}, /* shown as hours */
        {"{\"step\":1}\n{\"st", "last line is torn, 4 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make("runs/b", "finished", bad[i].lines);
        struct tune_run *r = opened("runs/b", TUNE_RUN_BROKEN, bad[i].reason);
        assert_true(r->step >= 1); /* what came before it is there */
        tune_run_free(r);
    }
    make("runs/n", "finished", NULL);
    tune_run_free(opened("runs/n", TUNE_RUN_BROKEN, "cannot open runs/n/metrics.jsonl"));
    make("runs/b", "happy", metrics);
    tune_run_free(opened("runs/b", TUNE_RUN_BROKEN, "the status is \"happy\", which no run has"));
    make("runs/b", "dead", metrics); /* nobody writes that */
    tune_run_free(opened("runs/b", TUNE_RUN_BROKEN, "the status is \"dead\""));
    static const char *const json[] = {"", "[1]", "{\"status\":", "{\"status\":7}", "\x01\xff"};
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        test_write("runs/b", "run.json", json[i], strlen(json[i]));
        struct tune_run *r = opened("runs/b", TUNE_RUN_BROKEN, "run.json");
        assert_true(r->loss == 2); /* its curves can be seen all the same */
        tune_run_free(r);
    }
    make("runs/b", "finished", metrics);
    test_write("runs/b", "report.json", "{", 1);
    tune_run_free(opened("runs/b", TUNE_RUN_BROKEN, "runs/b/report.json:1:2: the JSON ends here"));
    assert_null(tune_run_open("runs"));
    assert_error_has("no run in this folder");
    assert_null(tune_run_open("runs/zzz"));
    assert_error_has("no such run folder");
}

static void lists(void **state)
{
    (void)state;
    struct tune_run **runs;
    make("many/y", "finished", metrics);
    make("many/x", "failed", metrics);
    assert_ok(tune_file_make_folder("many/no-run/inside"));
    make("runs/x", "stopped", metrics);
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"many"}, 1), 2);
    assert_string_equal(runs[0]->folder, "many/x");
    assert_string_equal(runs[1]->folder, "many/y");
    tune_runs_free(runs, 2);
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"x", "many/x"}, 2), 2); /* a name in runs/ */
    assert_string_equal(runs[0]->folder, "runs/x");
    assert_string_equal(runs[1]->folder, "many/x");
    tune_runs_free(runs, 2);
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"x", "nowhere"}, 2), -1);
    assert_error_has("nowhere: no such run, neither here nor in runs/");
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"many/no-run"}, 1), -1);
    assert_error_has("neither a run folder");
    int n = tune_runs_open(&runs, NULL, 0);
    assert_true(n >= 1 && !strncmp(runs[0]->folder, "runs/", 5));
    tune_runs_free(runs, n);
}

static void differing(void **state)
{
    (void)state;
    struct tune_run **runs;
    const char **names;
    make("d/1", "finished", metrics);
    make("d/2", "finished", metrics);
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"d"}, 1), 2);
    assert_int_equal(tune_runs_differing(runs, 2, &names), 0); /* they differ in output alone */
    free(names);
    tune_runs_free(runs, 2);
    const char *other = "{\"status\":\"finished\",\"options\":{\"lr\":0.2,\"shuffle\":true,\"model\":\"n\",\"mine\":3}}";
    test_write("d/2", "run.json", other, strlen(other));
    assert_int_equal(tune_runs_open(&runs, (const char *const[]){"d"}, 1), 2);
    assert_int_equal(tune_runs_differing(runs, 2, &names), 2); /* what only one has is no difference */
    assert_string_equal(names[0], "lr");
    assert_string_equal(names[1], "model");
    free(names);
    tune_runs_free(runs, 2);
}

static void checkpoints(void **state)
{
    (void)state;
    struct tune_run_checkpoint *c;
    make("c", "finished", metrics);
    assert_ok(tune_file_make_folder("c/checkpoint-20/state"));
    assert_ok(tune_file_make_folder("c/checkpoint-3"));
    assert_ok(tune_file_make_folder("c/checkpoint-30.tmp-77"));
    test_write("c", "checkpoint-4", "a file", 6);
    test_write("c/checkpoint-20", "model.safetensors", "1234567", 7);
    test_write("c/checkpoint-20/state", "v", "123", 3);
    assert_ok(tune_file_link("c/checkpoint-best", "checkpoint-3"));
    assert_ok(tune_file_link("c/checkpoint-final", "checkpoint-20"));
    struct tune_run *r = opened("c", TUNE_RUN_FINISHED, "");
    assert_int_equal(tune_run_checkpoints(r, &c), 2);
    assert_true(c[0].step == 3 && c[0].bytes == 0 && c[0].best && !c[0].final);
    assert_true(c[1].step == 20 && c[1].bytes == 10 && !c[1].best && c[1].final);
    free(c);
    tune_run_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run),  cmocka_unit_test(states),           cmocka_unit_test(broken),
        cmocka_unit_test(follow), cmocka_unit_test(cut_and_appended), cmocka_unit_test(silent),
        cmocka_unit_test(lists),  cmocka_unit_test(differing),        cmocka_unit_test(checkpoints),
        cmocka_unit_test(before_the_first_step), cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
