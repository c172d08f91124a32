/* test_logger.c - the run folder, what is in it, and what is on the screen (a pipe, a full disk, a terminal). */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "test.h"
#include "fake_nvml.h"

#include "files/json.h"
#include "datasets/dataset.h"
#include "devices/ops.h"
#include "flags/flags.h"
#include "machine/memory.h"
#include "machine/host.h"
#include "core/random.h"
#include "loggers/logger.h"
#include "loggers/progress_line.h"
#include "loggers/state.h"
#include "runs/run_folder.h"
#include "flags/find.h"

static const struct tune_property properties[] = {TUNE_TRAINING_PROPERTIES, {"sharpness", "1", "of the minimum"}, {0}};

static cJSON *read_json(const char *path)
{
    char *text;
    size_t size;
    assert_ok(tune_file_read(path, 1 << 20, &text, &size));
    struct tune_json j; /* what we write must pass our strict reader */
    tune_json_start(&j, path, text, size, 1);
    assert_ok(tune_json_skip(&j));
    assert_ok(tune_json_end(&j));
    tune_json_free(&j);
    cJSON *json = cJSON_Parse(text);
    free(text);
    assert_non_null(json);
    return json;
}
static const char *text_of(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsString(item) ? item->valuestring : "(none)";
}
static double number_of(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNumber(item) ? item->valuedouble : -12345;
}

static struct tune_step_record step(int64_t i, double begin_s, double end_s)
{
    struct tune_step_record r = {.step = i, .rows = 4, .tokens = 100, .padded_tokens = 120, .labels = 80, .epoch = 0.1 * (double)i,
                                 .loss_sum = 80 * (2 - 0.1 * (double)i), .grad_norm = 0.91, .lr = 1.9e-5};
    r.begin.wall_s = 1000 + begin_s, r.begin.cpu_s = 50 + begin_s * 1.5;
    r.end.wall_s = 1000 + end_s, r.end.cpu_s = 50 + end_s * 1.5;
    return r;
}

/* All that was written to a stream. */
static FILE *screen;
static char *shown(void)
{
    static char text[65536];
    fflush(screen);
    rewind(screen);
    text[fread(text, 1, sizeof text - 1, screen)] = 0;
    return text;
}

static void a_run(void **state)
{
    (void)state;
    screen = tmpfile();
    setenv("TUNE_NONCE", "n-123", 1);
    struct tune_logger_options o = {.program = "prog", .folder = "runs/a/", .log_every = 2, .properties = properties,
                                    .source = "int main;\n", .source_size = 10, .started_s = 990, .stream = screen};
    struct tune_logger *log = tune_logger_new(&o);
    assert_got(log);
    assert_string_equal(tune_logger_folder(log), "runs/a");
    assert_ok(tune_logger_note(log, "kernel", "SkylakeX"));
    assert_ok(tune_logger_note(log, "template", "a\n\033[2Jb"));
    struct tune_model_identity id = {.random = true, .seed = 7, .fingerprint = 0xabc};
    assert_ok(tune_logger_weights(log, "models/x", &id));
    assert_ok(tune_logger_note(log, "latin", "caf\xe9 \xc3\xa9 \xe9")); /* bytes of a path that are no UTF-8 */
    static const char rows[] = "one\n\ntwo\n\nthree\n";
    char fingerprint[32];
    test_write(test_home, "my \"rows\".txt", rows, sizeof rows - 1);
    struct tune_dataset *data = tune_dataset_open("my \"rows\".txt", &(struct tune_dataset_options){.max_length = 8}, NULL);
    assert_got(data);
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)tune_dataset_fingerprint(data));
    assert_ok(tune_logger_data(log, "my \"rows\".txt", data));
    tune_dataset_free(data);
    cJSON *json = read_json("runs/a/run.json");
    assert_string_equal(text_of(json, "status"), "running");
    cJSON_Delete(json);
    struct tune_progress at = {.planned_steps = 10};
    for (int i = 0; i < 4; i += 2) { /* two steps per line; half a second each, one second between */
        struct tune_step_record r = step(i + 1, i, i + 0.5), s = step(i + 2, i + 1, i + 1.5);
        s.divisor = 2 * s.labels, s.loss_sum *= 2; /* a divisor of the recipe's own: the same loss */
        at.step = i + 2;
        assert_ok(tune_logger_record(log, &at, &r));
        assert_ok(tune_logger_record(log, &at, &s));
    }
    at.evaluated = true, at.eval_step = 4, at.eval_loss = 1.5, at.best = true;
    const struct tune_eval_metric perplexity = {"perplexity", exp(1.5), true};
    assert_ok(tune_logger_evaluation(log, &at, &perplexity, 1));
    assert_ok(tune_logger_evaluation(log, &at, &perplexity, 1)); /* the same one again: nothing */
    assert_ok(tune_logger_property(log, "sharpness", 0.1f));
    assert_ok(tune_logger_property(log, "model_load_time", 0.25));
    assert_int_equal(tune_logger_property(log, "sharpnes", 1), -1);
    assert_error_has("\"sharpnes\" is not declared");
    assert_int_equal(tune_logger_property(log, "sharpness", NAN), -1);
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);

    json = read_json("runs/a/report.json");
    assert_true(number_of(json, "train_runtime") == 3.5 && number_of(json, "training_steps") == 4);
    assert_true(number_of(json, "train_samples_per_second") == 16 / 3.5);
    assert_true(number_of(json, "train_steps_per_second") == 4 / 3.5);
    assert_true(number_of(json, "train_tokens_per_second") == 480 / 3.5);
    assert_true(number_of(json, "dataset_tokens_per_second") == 400 / 3.5);
    assert_true(fabs(number_of(json, "cpu_compute_utilization") - 150) < 1e-9);
    assert_true(number_of(json, "cpu_memory_utilization") > 0 && number_of(json, "cpu_memory_utilization") < 100);
    assert_true(number_of(json, "is_valid") == 1 && number_of(json, "time_to_first_step_s") == 10.5);
    assert_true(number_of(json, "peak_memory_bytes") > 1e6);
    assert_true(fabs(number_of(json, "loss_first") - 1.9) < 1e-12 && fabs(number_of(json, "loss_last") - 1.6) < 1e-12);
    assert_true(number_of(json, "eval_loss") == 1.5 && number_of(json, "sharpness") == (double)0.1f);
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "model_flops_per_second")); /* never set: left out */
    static const char *const targets[] = { /* of ado's experiments, in their order */
        "gpu_compute_utilization_min", "gpu_compute_utilization_avg", "gpu_compute_utilization_max", "gpu_memory_utilization_min",
        "gpu_memory_utilization_avg", "gpu_memory_utilization_max", "gpu_memory_utilization_peak", "gpu_power_watts_min",
        "gpu_power_watts_avg", "gpu_power_watts_max", "gpu_power_percent_min", "gpu_power_percent_avg", "gpu_power_percent_max",
        "cpu_compute_utilization", "cpu_memory_utilization", "train_runtime", "train_samples_per_second", "train_steps_per_second",
        "train_tokens_per_second", "train_tokens_per_gpu_per_second", "dataset_tokens_per_second",
        "dataset_tokens_per_second_per_gpu", "is_valid"};
    const cJSON *next = json->child;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        assert_string_equal(properties[i].name, targets[i]);
        if (i == 6) /* that one without a GPU is not there, the others are 0 */
            continue;
        assert_string_equal(next->string, targets[i]);
        assert_true(next->valuedouble == 0 || i >= 13);
        next = next->next;
    }
    assert_string_equal(text_of(json, "nonce"), "n-123");
    assert_string_equal(text_of(json, "weights_hash"), "0000000000000abc");
    assert_string_equal(text_of(json, "data_hash"), fingerprint);
    assert_string_equal(text_of(json, "eval_data_hash"), "(none)");
    cJSON_Delete(json);
    json = read_json("runs/a/run.json");
    assert_string_equal(text_of(json, "nonce"), "n-123");
    assert_string_equal(text_of(json, "status"), "finished");
    const cJSON *of_data = cJSON_GetObjectItemCaseSensitive(json, "data");
    assert_string_equal(text_of(of_data, "fingerprint"), fingerprint);
    assert_string_equal(text_of(of_data, "path"), "my \"rows\".txt");
    assert_true(number_of(of_data, "rows") == 3 && number_of(of_data, "size") == sizeof rows - 1);
    assert_int_equal(strlen(text_of(of_data, "modified")), 30);
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(json, "notes"), "kernel"), "SkylakeX");
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(json, "notes"), "latin"), "caf? \xc3\xa9 ?");
    assert_true(number_of(cJSON_GetObjectItemCaseSensitive(json, "host"), "cpus") >= 1);
    assert_int_equal(strlen(text_of(json, "started")), 20);
    cJSON_Delete(json);

    char *text;
    size_t size;
    assert_ok(tune_file_read("runs/a/recipe.c", 100, &text, &size));
    assert_string_equal(text, "int main;\n");
    free(text);
    assert_ok(tune_file_read("runs/a/metrics.jsonl", 1 << 20, &text, &size));
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        json = cJSON_Parse(line);
        assert_non_null(json);
        assert_true(number_of(json, "step") == (lines < 4 ? lines + 1 : 4));
        if (lines < 4)
            assert_true(number_of(json, "step_s") == 0.5 && number_of(json, "tokens_per_s") == 200 &&
                        number_of(json, "lr") == 1.9e-5 && number_of(json, "labels") == 80);
        else
            assert_true(number_of(json, "eval_loss") == 1.5 && fabs(number_of(json, "eval_perplexity") - exp(1.5)) < 1e-12);
        cJSON_Delete(json);
    }
    free(text);
    assert_int_equal(lines, 5); /* every step, though a line was printed every second one */

    text = shown();
    assert_non_null(strstr(text, "\nstep  2/10 | loss  1.8000 | norm   0.91 | lr 1.9e-05 |    500 ms |     200 tok/s | ETA 0:00:06\n"));
    assert_non_null(strstr(text, "\nstep  4/10 | loss  1.6000 |"));
    assert_null(strstr(text, "step  1/10"));
    assert_non_null(strstr(text, "\neval 4 | loss  1.5000 | perplexity 4.482 | best\n"));
    assert_non_null(strstr(text, "RANDOM"));
    assert_non_null(strstr(text, "a\\n\\x1b[2Jb\n"));
    assert_null(strchr(text, '\033'));
    fclose(screen);
    unsetenv("TUNE_NONCE");
}

/* Makes it, and lets it go at once, as a run that ended. */
static int make_folder(char path[TUNE_PATH_MAX], const char *folder, bool overwrite)
{
    FILE *metrics = NULL;
    int status = tune_run_folder_make(path, &metrics, folder, "prog", overwrite);
    assert_true((status == 0) == (metrics != NULL));
    if (metrics)
        fclose(metrics);
    return status;
}

static void folders(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX], other[TUNE_PATH_MAX];
    assert_ok(make_folder(path, "deep/down/b", false));
    assert_int_equal(make_folder(path, "deep/down/b", false), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("`overwrite`");
    assert_ok(make_folder(path, "deep/down/b", true)); /* empty: nothing is lost */
    test_write(test_home, "deep/down/b/precious.txt", "x", 1);
    assert_int_equal(make_folder(path, "deep/down/b", true), -1);
    assert_error_has("no run.json");
    assert_true(tune_file_exists("deep/down/b/precious.txt"));
    assert_ok(tune_file_make_folder("early"));
    test_write(test_home, "early/metrics.jsonl", "", 0); /* killed before it had a run.json */
    test_write(test_home, "early/run.json.tmp-77", "{", 1);
    assert_ok(make_folder(path, "early", true));
    test_write(test_home, "early/metrics.jsonl", "x", 1);
    assert_int_equal(make_folder(path, "early", true), -1);
    assert_int_equal(symlink("deep/down/b", "link"), 0);
    test_write(test_home, "deep/down/b/run.json", "{}", 2);
    assert_ok(make_folder(path, "link/", true)); /* the link goes, not what it points at */
    assert_true(tune_file_exists("deep/down/b/precious.txt"));
    assert_ok(make_folder(path, "deep/down/b", true));
    assert_false(tune_file_exists("deep/down/b/precious.txt"));
    assert_int_equal(make_folder(path, "", false), -1);
    assert_int_equal(make_folder(path, "/proc/x/y", false), -1);
    assert_ok(make_folder(path, NULL, false));
    assert_ok(make_folder(other, NULL, false)); /* in the same second */
    assert_string_not_equal(path, other);
    assert_int_equal(strncmp(path, "runs/prog-20", 12), 0);
    FILE *metrics = fopen("link/metrics.jsonl", "w");
    assert_non_null(metrics);
    test_write(test_home, "link/run.json", "{}", 2);
    assert_ok(tune_run_folder_hold(metrics, "link"));
    FILE *second = fopen("link/metrics.jsonl", "r+");
    assert_int_equal(tune_run_folder_hold(second, "link"), -1); /* one run at a time goes on in a folder */
    assert_error_has("link: a run is still writing there");
    fclose(second);
    assert_int_equal(make_folder(path, "link", true), -1);
    assert_error_has("still writing to link");
    fclose(metrics);
    assert_ok(make_folder(path, "link", true));
    test_write(test_home, "deep/m.txt", "x", 1);
    assert_true(tune_run_folder_holds("deep", "deep/m.txt") && tune_run_folder_holds("deep", "deep/"));
    assert_false(tune_run_folder_holds("deep/down", "deep/m.txt") || tune_run_folder_holds("dee", "deep/m.txt"));
}

/* ---- going on ---- */

static struct tune_logger *resumed(const char *folder, bool allow_changed)
{
    struct tune_logger_options o = {.program = "prog", .folder = folder, .properties = properties, .quiet = true, .resume = true,
                                    .allow_changed = allow_changed, .source = "int other;\n", .source_size = 11};
    return tune_logger_new(&o);
}

/* A run of five steps, with evaluations at 3 and 5, that ended without a word. */
static void killed_run(const char *folder)
{
    struct tune_logger_options o = {.program = "prog", .folder = folder, .properties = properties, .quiet = true, .overwrite = true,
                                    .source = "int main;\n", .source_size = 10};
    struct tune_logger *log = tune_logger_new(&o);
    assert_got(log);
    struct tune_progress at = {.planned_steps = 10};
    for (int i = 1; i <= 5; i++) {
        struct tune_step_record r = step(i, 10 * i, 10 * i + 2);
        at.step = i;
        assert_ok(tune_logger_record(log, &at, &r));
        at.evaluated = true, at.eval_step = i, at.eval_loss = 1. / i;
        if (i == 3 || i == 5)
            assert_ok(tune_logger_evaluation(log, &at, NULL, 0));
    }
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);
    cJSON *run = read_json("runs/r/run.json");
    cJSON_ReplaceItemInObject(run, "status", cJSON_CreateString("running"));
    cJSON_ReplaceItemInObject(cJSON_GetArrayItem(cJSON_GetObjectItem(run, "sessions"), 0), "status", cJSON_CreateString("running"));
    char *text = cJSON_Print(run);
    test_write(folder, "run.json", text, strlen(text));
    free(text);
    cJSON_Delete(run);
    FILE *metrics = fopen("runs/r/metrics.jsonl", "a");
    fputs("{\"step\":6,\"lo", metrics);
    fclose(metrics);
    test_write(folder, "run.json.tmp-4194303", "{", 1);
}

static void contents(const char *path, char **text)
{
    size_t size;
    assert_ok(tune_file_read(path, 1 << 20, text, &size));
}

/* Lines up to a step, and of evaluations up to one. */
static void assert_cut(int64_t at_step, int64_t eval_step, int lines, const char *last)
{
    struct tune_progress at = {.step = at_step, .planned_steps = 10, .eval_step = eval_step};
    killed_run("runs/r");
    char *before, *after;
    contents("runs/r/metrics.jsonl", &before);
    struct tune_logger *log = resumed("runs/r", false);
    assert_got(log);
    assert_ok(tune_logger_resume(log, &at));
    contents("runs/r/metrics.jsonl", &after);
    char *end = after;
    size_t n = strlen(after);
    assert_int_equal(strncmp(before, after, n), 0);
    assert_true(n > 0 && after[n - 1] == '\n');
    for (int i = 0; (end = strchr(end, '\n')); end++, i++)
        if (!end[1])
            assert_int_equal(i + 1, lines);
    assert_non_null(strstr(after, last));
    struct tune_step_record r = step(at_step + 1, 500, 501); /* another process, another clock */
    at.step++;
    assert_ok(tune_logger_record(log, &at, &r));
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);
    free(before), free(after);
}

static void goes_on(void **state)
{
    (void)state;
    tune_file_remove_folder("runs/r");
    assert_cut(5, 5, 7, "\"step\":5,\"eval_loss\"");
    assert_cut(5, 3, 6, "\"step\":5,\"loss\""); /* saved before that evaluation: it is made again */
    assert_cut(3, 3, 4, "\"step\":3,\"eval_loss\"");
    assert_cut(2, 0, 2, "\"step\":2");
    cJSON *report = read_json("runs/r/report.json");
    /* two steps, 10..22 s, and one of 1 s: the time between the processes does not count */
    assert_true(number_of(report, "training_steps") == 3 && fabs(number_of(report, "train_runtime") - 13) < 1e-9);
    assert_true(fabs(number_of(report, "train_tokens_per_second") - 360 / 13.) < 1e-9);
    assert_true(fabs(number_of(report, "train_samples_per_second") - 12 / 13.) < 1e-9);
    assert_true(fabs(number_of(report, "loss_first") - 1.9) < 1e-12 && fabs(number_of(report, "loss_last") - 1.7) < 1e-12);
    assert_true(fabs(number_of(report, "cpu_compute_utilization") - 150) < 1e-9);
    cJSON_Delete(report);
    cJSON *run = read_json("runs/r/run.json"), *sessions = cJSON_GetObjectItem(run, "sessions");
    assert_int_equal(cJSON_GetArraySize(sessions), 2);
    assert_string_equal(text_of(cJSON_GetArrayItem(sessions, 0), "status"), "killed");
    assert_string_equal(text_of(cJSON_GetArrayItem(sessions, 1), "status"), "finished");
    assert_true(number_of(cJSON_GetArrayItem(sessions, 1), "from_step") == 2 && number_of(cJSON_GetArrayItem(sessions, 1), "last_step") == 3);
    cJSON_Delete(run);
    assert_false(tune_file_exists("runs/r/run.json.tmp-4194303"));
    char *source, *other;
    contents("runs/r/recipe.c", &source);
    contents("runs/r/recipe-from-2.c", &other);
    assert_string_equal(source, "int main;\n");
    assert_string_equal(other, "int other;\n");
    free(source), free(other);
}

/* Until it is certain that the run can go on, its folder stays as it is. */
static void refused_and_unchanged(void **state)
{
    (void)state;
    tune_file_remove_folder("runs/r");
    killed_run("runs/r");
    char *run, *metrics, *after, *lines;
    contents("runs/r/run.json", &run);
    contents("runs/r/metrics.jsonl", &metrics);
    struct tune_progress far = {.step = 9, .planned_steps = 10}, near = {.step = 4, .planned_steps = 10, .eval_step = 3};
    struct tune_logger *log = resumed("runs/r", false);
    assert_got(log);
    assert_null(resumed("runs/r", false)); /* one at a time */
    assert_error_has("still writing");
    assert_int_equal(tune_logger_changed(log, "the weather", "dry", "wet"), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("the weather: was dry in that run, is wet now");
    struct tune_step_record r = step(1, 0, 1);
    assert_int_equal(tune_logger_record(log, &near, &r), -1); /* a recipe that never heard of going on */
    assert_error_has("call tune_checkpoint_resume");
    assert_int_equal(tune_logger_resume(log, &far), -1);
    assert_error_has("metrics.jsonl");
    assert_ok(tune_logger_failed(log, "whatever"));
    tune_logger_free(log);
    contents("runs/r/run.json", &after);
    contents("runs/r/metrics.jsonl", &lines);
    assert_string_equal(run, after);
    assert_string_equal(metrics, lines);
    assert_true(tune_file_exists("runs/r/report.json"));
    free(after), free(lines);
    char *hole = strstr(metrics, "{\"step\":2,"), *next = strchr(hole, '\n') + 1;
    memmove(hole, next, strlen(next) + 1);
    test_write("runs/r", "metrics.jsonl", metrics, strlen(metrics));
    assert_got(log = resumed("runs/r", false));
    assert_int_equal(tune_logger_resume(log, &near), -1);
    assert_error_has("runs/r/metrics.jsonl:2: step 3 follows step 1");
    tune_logger_free(log);
    char *tokens = strstr(metrics, "\"tokens\":100") + 9;
    memcpy(tokens, "-10", 3);
    test_write("runs/r", "metrics.jsonl", metrics, strlen(metrics));
    assert_got(log = resumed("runs/r", false));
    assert_int_equal(tune_logger_resume(log, &near), -1);
    assert_error_has("runs/r/metrics.jsonl:1:");
    assert_error_has("\"tokens\" is -10");
    tune_logger_free(log);
    memcpy(tokens, "100", 3);
    *hole = '?';
    test_write("runs/r", "metrics.jsonl", metrics, strlen(metrics));
    assert_got(log = resumed("runs/r", false));
    assert_int_equal(tune_logger_resume(log, &near), -1);
    assert_error_has("runs/r/metrics.jsonl:2");
    tune_logger_free(log);
    free(run), free(metrics);
    killed_run("runs/r");
    assert_got(log = resumed("runs/r", true));
    assert_ok(tune_logger_changed(log, "the weather", "dry", "wet"));
    assert_ok(tune_logger_resume(log, &far)); /* with what there is */
    tune_logger_free(log);
    cJSON *json = read_json("runs/r/run.json"), *session = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "sessions"), 1);
    const cJSON *changed = cJSON_GetObjectItem(session, "changed");
    assert_string_equal(text_of(cJSON_GetObjectItem(changed, "the weather"), "now"), "wet");
    assert_int_equal(cJSON_GetArraySize(changed), 2);
    cJSON_Delete(json);
    unlink("runs/r/metrics.jsonl");
    assert_null(resumed("runs/r", false));
    assert_error_has("runs/r/metrics.jsonl: No such file");
}

static void diverges(void **state)
{
    (void)state;
    screen = tmpfile();
    struct tune_logger_options o = {.program = "prog", .folder = "runs/d", .properties = properties, .stream = screen};
    struct tune_progress at = {.step = 1, .planned_steps = 10};
    struct tune_logger *log = tune_logger_new(&o);
    struct tune_step_record r = step(1, 0, 1);
    assert_got(log);
    assert_ok(tune_logger_record(log, &at, &r));
    r = step(2, 1, 2);
    r.loss_sum = NAN;
    at.step = 2;
    assert_int_equal(tune_logger_record(log, &at, &r), -1);
    assert_error_has("diverged at step 2: the loss is not finite");
    assert_error_has("lower `lr` (it was 1.9e-05)");
    at.evaluated = true, at.eval_step = 2, at.eval_loss = INFINITY;
    assert_int_equal(tune_logger_evaluation(log, &at, NULL, 0), -1);
    tune_logger_free(log);
    cJSON *json = read_json("runs/d/run.json");
    assert_string_equal(text_of(json, "status"), "diverged");
    assert_non_null(strstr(text_of(json, "reason"), "diverged at step 2"));
    cJSON_Delete(json);
    assert_false(tune_file_exists("runs/d/report.json"));
    char *text;
    size_t size;
    assert_ok(tune_file_read("runs/d/metrics.jsonl", 1 << 20, &text, &size));
    assert_null(strstr(text, "nan"));
    free(text);
    o.folder = "runs/n"; /* the first step: the weights as they were read */
    log = tune_logger_new(&o);
    assert_got(log);
    r = step(1, 0, 1);
    r.loss_sum = NAN;
    at = (struct tune_progress){.step = 1, .planned_steps = 10};
    assert_int_equal(tune_logger_record(log, &at, &r), -1);
    assert_error_has("diverged at step 1: the loss is not finite before any weight was changed");
    tune_logger_free(log);
    json = read_json("runs/n/run.json");
    assert_string_equal(text_of(json, "status"), "failed"); /* the weights were bad, training did nothing */
    cJSON_Delete(json);
    o.folder = "runs/s"; /* a signal: measured, but not valid */
    log = tune_logger_new(&o);
    assert_got(log);
    r = step(1, 0, 1);
    at = (struct tune_progress){.step = 1, .planned_steps = 10, .eval_step = 0, .signal = 15};
    assert_ok(tune_logger_record(log, &at, &r));
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);
    json = read_json("runs/s/report.json");
    assert_true(number_of(json, "is_valid") == 0 && number_of(json, "training_steps") == 1);
    cJSON_Delete(json);
    o.folder = "runs/u";
    tune_error_set("what ended it");
    log = tune_logger_new(&o);
    assert_got(log);
    tune_logger_free(log);
    assert_string_equal(tune_error_message(), "what ended it");
    json = read_json("runs/u/run.json");
    assert_string_equal(text_of(json, "status"), "unfinished");
    cJSON_Delete(json);
    fclose(screen);
}

static void full_disk(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    struct tune_logger_options o = {.program = "prog", .folder = "runs/f", .stream = full};
    assert_null(tune_logger_new(&o));
    assert_error_has("No space left");
    fclose(full);
    cJSON *json = read_json("runs/f/run.json");
    assert_string_equal(text_of(json, "status"), "failed");
    assert_non_null(strstr(text_of(json, "reason"), "No space left"));
    cJSON_Delete(json);
}

/* Behind the first step there is work to save: a screen that is gone stops the run, and what it says is lost. */
static void lost_screen(void **state)
{
    (void)state;
    int ends[2];
    volatile int caught = 0;
    signal(SIGPIPE, SIG_IGN);
    assert_ok(pipe(ends));
    FILE *screen = fdopen(ends[1], "w");
    struct tune_logger_options o = {.program = "prog", .folder = "runs/p", .stream = screen, .stop_signal = &caught};
    struct tune_logger *log = tune_logger_new(&o);
    assert_got(log);
    struct tune_step_record r = step(1, 0, 1);
    struct tune_progress at = {.step = 1, .planned_steps = 10};
    assert_ok(tune_logger_record(log, &at, &r));
    assert_int_equal(caught, 0);
    close(ends[0]);
    r = step(2, 1, 2);
    at.step = 2;
    assert_ok(tune_logger_record(log, &at, &r));
    assert_int_equal(caught, SIGPIPE);
    caught = SIGINT;
    assert_ok(tune_logger_note(log, "key", "text"));
    assert_int_equal(caught, SIGINT); /* a signal stays what it was */
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);
    fclose(screen);

    o.folder = "runs/q"; /* nobody to tell: an error */
    o.stop_signal = NULL;
    assert_ok(pipe(ends));
    o.stream = screen = fdopen(ends[1], "w");
    log = tune_logger_new(&o);
    assert_got(log);
    close(ends[0]);
    r = step(1, 0, 1);
    at.step = 1;
    assert_int_equal(tune_logger_record(log, &at, &r), -1);
    assert_error_has("Broken pipe");
    tune_logger_free(log);
    fclose(screen);
}

static struct {
    struct tune_flags tune;
} my;
static const struct tune_option options[] = {TUNE_TRAINING_OPTIONS(my.tune), {0}};

static void by_flags(void **state)
{
    (void)state;
    char out[128], *text, *argv[] = {"build/prog", "--lr", "3e-4", "--output", "runs/g", "--seed", "9007199254740993", "--overwrite",
                                     "--dataset", "it's.jsonl"};
    size_t size;
    memset(&my, 0, sizeof my);
    assert_ok(tune_flags_parse(&my.tune, 10, argv, options, properties));
    snprintf(out, sizeof out, "%s/out.txt", test_home);
    fflush(stdout);
    int kept = dup(1), to = open(out, O_RDWR | O_CREAT, 0600);
    dup2(to, 1);
    struct tune_logger *log = tune_get_logger(&my.tune);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    close(to);
    assert_got(log);
    tune_logger_free(log);
    assert_ok(tune_file_read(out, 1 << 20, &text, &size));
    assert_non_null(strstr(text, " --lr 3e-4"));
    assert_null(strstr(text, "--beta1"));
    free(text);
    cJSON *json = read_json("runs/g/run.json");
    assert_string_equal(text_of(json, "command"), "build/prog --lr 3e-4 --output runs/g --seed 9007199254740993 --overwrite "
                                                  "--dataset 'it'\\''s.jsonl'");
    assert_true(number_of(cJSON_GetObjectItemCaseSensitive(json, "options"), "lr") == 3e-4);
    assert_string_equal(text_of(cJSON_GetObjectItemCaseSensitive(json, "sources"), "lr"), "flag");
    assert_true(number_of(json, "threads") >= 1);
    assert_string_equal(text_of(json, "device"), "cpu");
    cJSON_Delete(json);
    assert_ok(tune_file_read("runs/g/run.json", 1 << 20, &text, &size));
    assert_non_null(strstr(text, "9007199254740993")); /* exact, though no double holds it */
    free(text);
    test_write(test_home, "runs/g/rows.jsonl", "x", 1);
    my.tune.dataset = "runs/g/rows.jsonl";
    assert_null(tune_get_logger(&my.tune));
    assert_error_has("would remove");
    assert_true(tune_file_exists("runs/g/rows.jsonl"));
    tune_flags_free(&my.tune);
}

static void bar(void **state)
{
    (void)state;
    char text[512];
    struct tune_line_step s = {.step = 12, .planned = 1170, .loss = 1.8432, .norm = 1, .lr = 1, .step_s = 1,
                               .tokens_per_s = 9943, .eta_s = 751};
    for (int width = 0; width < 300; width++) {
        tune_line_bar(text, sizeof text, &s, width);
        if ((int)strlen(text) >= (width ? width : 1))
            fail_msg("%d columns: \"%s\"", width, text);
    }
    tune_line_bar(text, sizeof text, &s, 80);
    assert_string_equal(text, "  1% [...................] step   12/1170  loss 1.8432  9943 tok/s  ETA 0:12:31");
    s.own = "reward 0.5"; /* where there is room */
    tune_line_bar(text, sizeof text, &s, 110);
    assert_non_null(strstr(text, "  reward 0.5"));
    assert_true(strlen(text) < 110);
    tune_line_bar(text, sizeof text, &s, 60);
    assert_null(strstr(text, "reward"));
    s.own = NULL;
    tune_line_bar(text, sizeof text, &s, 40);
    assert_string_equal(text, "  12/1170 1.8432 9943/s 0:12:31");
    tune_line_bar(text, sizeof text, &s, 20);
    assert_string_equal(text, "  12/1170 1.8432");
    s.planned = 0, s.eta_s = -1;
    tune_line_bar(text, sizeof text, &s, 80);
    assert_string_equal(text, "step 12  loss 1.8432  9943 tok/s  ETA -:--:--");
}

/* A terminal of our own: what the run writes to it comes out at the other end. */
static char *in_terminal(const char *term, int columns_)
{
    static char text[65536];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return NULL;
    FILE *slave = fopen(ptsname(master), "w");
    if (!slave)
        return NULL;
    struct winsize w = {.ws_row = 24, .ws_col = (unsigned short)columns_};
    ioctl(fileno(slave), TIOCSWINSZ, &w);
    setenv("TERM", term, 1);
    unsetenv("COLUMNS");
    tune_file_remove_folder("runs/t");
    struct tune_logger_options o = {.program = "prog", .folder = "runs/t", .stream = slave};
    struct tune_logger *log = tune_logger_new(&o);
    assert_got(log);
    struct tune_progress at = {.planned_steps = 20};
    for (int i = 1; i <= 20; i++) {
        struct tune_step_record r = step(i, 0.06 * (i - 1), 0.06 * i);
        at.step = i;
        assert_ok(tune_logger_record(log, &at, &r));
        if (i == 10) {
            at.evaluated = true, at.eval_step = i, at.eval_loss = 1;
            assert_ok(tune_logger_evaluation(log, &at, NULL, 0));
        }
    }
    assert_ok(tune_logger_report(log, &at));
    tune_logger_free(log);
    fcntl(master, F_SETFL, O_NONBLOCK);
    size_t n = 0;
    for (ssize_t got; n < sizeof text - 1 && (got = read(master, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    fclose(slave);
    close(master);
    return text;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void terminal(void **state)
{
    (void)state;
    char *text = in_terminal("xterm", 100);
    if (!text)
        skip();
    if (getenv("TUNE_SHOW"))
        fputs(text, stderr);
    /* drawn at most ten times a second (every second step here), moved below the evaluation's line, ended by the last step */
    assert_in_range(count_of(text, "tok/s  ETA"), 10, 13);
    assert_int_equal(count_of(text, "\033[1A"), count_of(text, "tok/s  ETA")); /* redraws, and two lines that took its place */
    assert_non_null(strstr(text, "\033[1A\r\033[Keval 10 | loss"));
    assert_null(strstr(text, " | norm"));
    assert_non_null(strstr(text, "step 20/20  loss 0.0000  1667 tok/s  ETA 0:00:00\033[K\r\n"));
    text = in_terminal("xterm", 24);
    assert_non_null(strstr(text, "\r20/20 0.0000 0:00:00\033[K"));
    text = in_terminal("dumb", 100);
    assert_null(strchr(text, '\033'));
    assert_int_equal(count_of(text, " | norm"), 20);
}

static void host(void **state)
{
    (void)state;
    struct tune_host h;
    tune_host_read(&h);
    assert_true(h.cpus >= 1 && h.memory_bytes > 1 << 20 && *h.class_name && *h.machine);
    assert_in_range((int)tune_memory_used(), 0, 100);
}

/* The logger says when it is known, and the report how fast. */
static void until_stable(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        bool stable = false;
        int at_step = 0;
        struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "prog", .folder = on ? "runs/on" : "runs/off",
            .properties = properties, .quiet = true, .until_stable = on ? 5 : 0, .stable = &stable});
        assert_got(log);
        struct tune_progress at = {.planned_steps = 100};
        double now = 0;
        for (int i = 1; i <= 40; i++) {
            double s = (i <= 3 ? 4 : 1) * (1 + .02 * tune_random_normal(3, 0, (uint64_t)i));
            struct tune_step_record r = step(1, now, now + s);
            at.step = r.step = i;
            now += s + 7; /* what lies between steps is not theirs */
            assert_ok(tune_logger_record(log, &at, &r));
            if (stable && !at_step)
                at_step = i;
        }
        assert_ok(tune_logger_report(log, &at));
        tune_logger_free(log);
        if (on)
            assert_in_range(at_step, 14, 25);
        else
            assert_int_equal(at_step, 0);
        cJSON *json = read_json(on ? "runs/on/report.json" : "runs/off/report.json");
        assert_true(fabs(number_of(json, "tokens_per_second_stable") - 100) < 3);
        double half = number_of(json, "tokens_per_second_stable_half_width");
        assert_true(half > .2 && half < 3);
        cJSON_Delete(json);
    }
}

/* A run on two GPUs, for which the figures are real ones, of which there is no library, or one that does not know them. */
static void watched(void **state)
{
    (void)state;
    static const char *const ids[] = {"0000:01:00.0,0000:02:00.0", "0000:07:00.0,0000:08:00.0"};
    for (int i = 0; i < 2; i++) {
        char folder[] = "runs/gpus-0";
        folder[10] = (char)('0' + i);
        struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){
            .program = "prog", .folder = folder, .properties = properties, .quiet = true});
        assert_got(log);
        assert_ok(tune_logger_watch(log, ids[i], NULL, 2));
        struct tune_progress at = {.planned_steps = 1, .step = 1};
        struct tune_step_record r = step(1, 0, 1);
        r.begin = tune_moment_now();
        usleep(20000);
        r.end = tune_moment_now();
        assert_ok(tune_logger_record(log, &at, &r));
        assert_ok(tune_logger_report(log, &at));
        tune_logger_free(log);
        char path[32];
        snprintf(path, sizeof path, "%s/report.json", folder);
        cJSON *json = read_json(path);
        assert_true(number_of(json, "cpu_memory_utilization") > 0);
        assert_true(number_of(json, "train_tokens_per_gpu_per_second") == number_of(json, "train_tokens_per_second") / 2);
        assert_true(number_of(json, "dataset_tokens_per_second_per_gpu") == number_of(json, "dataset_tokens_per_second") / 2);
        bool seen = i == 0 && fake.library;
        assert_true(number_of(json, "gpu_compute_utilization_min") == (seen ? 30 : -12345));
        assert_true(number_of(json, "gpu_memory_utilization_avg") == (seen ? 50 : -12345));
        assert_true(number_of(json, "gpu_memory_utilization_peak") == (seen ? 75 : -12345));
        assert_true(number_of(json, "gpu_power_watts_max") == (seen ? 300 : -12345));
        assert_true(number_of(json, "gpu_power_percent_avg") == (seen ? 50 : -12345));
        assert_true(number_of(json, "gpu_sm_clock_min") == (seen ? 1200 : -12345));
        assert_true(number_of(json, "gpu_sm_clock_max") == (seen ? 1800 : -12345));
        double joules = 400 * number_of(json, "train_runtime"), tokens = number_of(json, "dataset_tokens_per_second");
        assert_true(!seen || fabs(number_of(json, "gpu_energy") / joules - 1) < 1e-9);
        assert_true(!seen || fabs(number_of(json, "gpu_energy_per_token") / (400 / tokens) - 1) < 1e-9);
        assert_true(seen || number_of(json, "gpu_energy_per_token") == -12345);
        cJSON_Delete(json);
        snprintf(path, sizeof path, "%s/run.json", folder);
        json = read_json(path);
        const char *warning = text_of(cJSON_GetObjectItemCaseSensitive(json, "notes"), "warning: no figures of GPUs");
        assert_true(seen == !strcmp(warning, "(none)"));
        cJSON_Delete(json);
    }
}

/* Numbers and lines of the recipe's own. */
static void own_metrics(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a b", "a,b", "a\"b", "\xc3\xa9", "a_name_of_forty_eight_characters_is_one_too_long", "loss",
                                      "step", "tokens_per_s", "eval_loss"};
    screen = tmpfile();
    struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "prog", .folder = "runs/own", .log_every = 1,
                                              .properties = properties, .stream = screen, .writers = TUNE_WRITE_CSV});
    assert_got(log);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_logger_metric(log, bad[i], 1), -1);
        assert_error_has("metric \"");
    }
    assert_int_equal(tune_logger_metric(log, "reward", NAN), -1);
    assert_error_has("finite");
    struct tune_progress at = {.planned_steps = 3};
    for (int i = 1; i <= 3; i++) {
        struct tune_step_record r = step(i, i - 1, i);
        at.step = i;
        if (i == 2) { /* not in every step; the second value of a name is the one */
            assert_ok(tune_logger_metric(log, "reward", 7));
            assert_ok(tune_logger_metric(log, "reward", .5));
            assert_ok(tune_logger_metric(log, "layers.0/norm", -3));
        }
        assert_ok(tune_logger_record(log, &at, &r));
        if (i == 2)
            assert_ok(tune_logger_say(log, "step %d: %s", i, "the\nbest\033[2J"));
    }
    char name[16];
    for (int i = 0; i < 48; i++) {
        snprintf(name, sizeof name, "m%d", i);
        assert_ok(tune_logger_metric(log, name, i));
    }
    assert_int_equal(tune_logger_metric(log, "m48", 1), -1);
    assert_error_has("room for 48");
    assert_ok(tune_logger_metric(log, "m47", 1)); /* there already */
    struct tune_step_record last = step(4, 3, 4);
    at.step = at.planned_steps = 4;
    assert_ok(tune_logger_record(log, &at, &last));
    tune_logger_free(log);
    assert_non_null(strstr(shown(), "\nstep 2: the"));
    const char *own = strstr(shown(), " | reward 0.5 | layers.0/norm -3\n"); /* in the line of their step, and in no other */
    assert_non_null(own);
    assert_null(strstr(own + 10, "reward"));
    assert_null(strstr(shown(), "best\033"));
    fclose(screen);
    char *text;
    size_t size;
    assert_ok(tune_file_read("runs/own/metrics.jsonl", 1 << 20, &text, &size));
    char *lines[4], *save = NULL;
    for (int i = 0; i < 4; i++)
        assert_non_null(lines[i] = strtok_r(i ? NULL : text, "\n", &save));
    assert_null(strstr(lines[0], "reward"));
    assert_non_null(strstr(lines[1], "\"reward\":0.5,\"layers.0/norm\":-3}"));
    assert_null(strstr(lines[2], "reward"));
    assert_non_null(strstr(lines[3], "\"m0\":0,"));
    assert_non_null(strstr(lines[3], "\"m47\":1}"));
    free(text);
    assert_ok(tune_file_read("runs/own/metrics.csv", 1 << 20, &text, &size));
    assert_non_null(strstr(text, "eval_perplexity,reward,layers.0/norm,m0,"));
    free(text);
}

/* A device's warning is logged twice: when it first comes, and at the end with its last count. */
static void device_met(void **state)
{
    (void)state;
    struct tune_device dev = {.met = ""};
    FILE *out = tmpfile();
    char text[1024] = "";
    assert_non_null(out);
    struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "prog", .folder = "runs/met", .stream = out});
    struct tune_progress at = {.planned_steps = 5};
    assert_got(log);
    log->device = &dev;
    for (at.step = 1; at.step <= 5; at.step++) {
        if (at.step > 1)
            snprintf(dev.met, sizeof dev.met, "refused %d times", (int)at.step);
        at.finished = at.step == 5;
        assert_ok(tune_logger_catch_up(log, &at));
    }
    assert_ok(tune_logger_catch_up(log, &at));
    rewind(out);
    assert_true(fread(text, 1, sizeof text - 1, out) > 0);
    const char *first = strstr(text, "refused "), *second = first ? strstr(first + 1, "refused ") : NULL;
    assert_true(first && strncmp(first, "refused 2 times", 15) == 0);
    assert_true(second && strncmp(second, "refused 5 times", 15) == 0 && !strstr(second + 1, "refused"));
    tune_logger_free(log);
    fclose(out);
}

/* Steps wait in the record until a line is due, and their numbers with them. */
static void metrics_wait(void **state)
{
    (void)state;
    struct tune_device *dev = tune_device_open("cpu", 1);
    struct tune_record *record = tune_record_new(dev, 3);
    struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "prog", .folder = "runs/wait", .log_every = 3,
                                              .quiet = true});
    assert_got(log);
    struct tune_progress at = {.planned_steps = 5};
    struct stat before, after;
    for (int i = 1; i <= 5; i++) {
        assert_ok(tune_record_begin(record));
        assert_ok(tune_add_labels(dev, tune_record_step(record), 10, 1));
        assert_ok(tune_add_loss(dev, tune_record_step(record), i));
        assert_ok(tune_record_divisor(record, i == 2 ? 4 : 0));
        assert_ok(tune_record_end(record));
        at.step = i;
        at.finished = i == 5;
        assert_int_equal(stat("runs/wait/metrics.jsonl", &before), 0);
        if (i != 4)
            assert_ok(tune_logger_metric(log, "own", 10 * i));
        assert_ok(tune_logger_step(log, &at, record));
        assert_int_equal(stat("runs/wait/metrics.jsonl", &after), 0);
        assert_true((after.st_size > before.st_size) == (i == 3));
    }
    assert_ok(tune_logger_report(log, &at)); /* writes what is left */
    tune_logger_free(log);
    tune_record_free(record);
    tune_device_close(dev);
    char *text, *line, *save = NULL;
    size_t size;
    assert_ok(tune_file_read("runs/wait/metrics.jsonl", 1 << 20, &text, &size));
    for (int i = 1; i <= 5; i++) {
        char own[32], loss[48];
        assert_non_null(line = strtok_r(i > 1 ? NULL : text, "\n", &save));
        snprintf(own, sizeof own, "\"own\":%d}", 10 * i);
        assert_true(i == 4 ? !strstr(line, "own") : strstr(line, own) != NULL);
        snprintf(loss, sizeof loss, "\"step\":%d,\"loss\":%g,", i, i == 2 ? .5 : i / 10.);
        assert_non_null(strstr(line, loss));
    }
    assert_null(strtok_r(NULL, "\n", &save));
    free(text);
}

int main(void)
{
    fake_nvml_load("tests/fake_nvml.c"); /* before tests change the folder */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run),    cmocka_unit_test(folders), cmocka_unit_test(diverges), cmocka_unit_test(full_disk),
        cmocka_unit_test(lost_screen),
        cmocka_unit_test(goes_on),  cmocka_unit_test(refused_and_unchanged),
        cmocka_unit_test(by_flags), cmocka_unit_test(bar),     cmocka_unit_test(terminal), cmocka_unit_test(host),
        cmocka_unit_test(own_metrics), cmocka_unit_test(metrics_wait), cmocka_unit_test(device_met),
        cmocka_unit_test(watched),  cmocka_unit_test(until_stable),
    };
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
