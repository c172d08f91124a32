/* run.c - run.json, report.json and metrics.jsonl of one folder, each distrusted. */
#include "runs/run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/try.h"
#include "runs/metrics.h"

static bool has(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tune_file_exists(path);
}

bool tune_run_is(const char *folder)
{
    return has(folder, "run.json") || has(folder, "metrics.jsonl");
}

bool tune_run_held(const char *folder)
{
    char path[TUNE_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    int fd = n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

static const char *const state_names[] = {"running", "finished", "stopped", "failed", "unfinished", "diverged", "dead", "broken"};

const char *tune_run_state_name(enum tune_run_state state)
{
    return state_names[state];
}

int tune_run_state_from(const char *name, size_t size)
{
    for (int i = 0; i < TUNE_RUN_STATES; i++)
        if (strlen(state_names[i]) == size && !memcmp(state_names[i], name, size))
            return i;
    return -1;
}

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while reading a run");
    return -1;
}

/* The first thing that is wrong stands; the thread's error text says what, unless text does. */
static void broken(struct tune_run *r, const char *text)
{
    if (r->state != TUNE_RUN_BROKEN)
        snprintf(r->reason, sizeof r->reason, "%s", text ? text : tune_error_message());
    r->state = TUNE_RUN_BROKEN;
    tune_error_clear();
}

/* ---- run.json and report.json ---- */

static const char *text_of(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static double time_of(const cJSON *json, const char *key)
{
    struct tm utc = {0};
    const char *text = text_of(json, key);
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) : NULL;
    return end ? (double)timegm(&utc) : 0;
}

static int64_t whole_of(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    double v = cJSON_IsNumber(item) ? item->valuedouble : 0;
    return v > 0 && v < 0x1p53 ? (int64_t)v : 0;
}

static cJSON *read_json(struct tune_run *r, const char *name)
{
    char path[TUNE_PATH_MAX];
    cJSON *json = tune_path(path, "%s/%s", r->folder, name) < 0 ? NULL : tune_cjson_read(path, (size_t)16 << 20);
    if (json && cJSON_IsObject(json))
        return json;
    if (json)
        tune_error_set("%s: expected an object", path);
    cJSON_Delete(json);
    broken(r, NULL);
    return NULL;
}

static void read_run_json(struct tune_run *r)
{
    cJSON_Delete(r->run);
    r->run = read_json(r, "run.json");
    const char *status = text_of(r->run, "status"), *reason = text_of(r->run, "reason");
    if (!r->run)
        return;
    int state = status ? tune_run_state_from(status, strlen(status)) : -1;
    if (state < 0 || state >= TUNE_RUN_DEAD) {
        char text[160];
        snprintf(text, sizeof text, "run.json: the status is %s%.60s%s", status ? "\"" : "", status ? status : "missing",
                 status ? "\", which no run has" : "");
        broken(r, text);
        return;
    }
    r->state = (enum tune_run_state)state;
    snprintf(r->reason, sizeof r->reason, "%s", reason ? reason : "");
    r->started_s = time_of(r->run, "started");
    r->ended_s = time_of(r->run, "ended");
    r->planned_steps = whole_of(r->run, "planned_steps");
}

/* "running" is what a killed run says too. One that ended while we looked says so when it is asked again. */
static void read_state(struct tune_run *r)
{
    read_run_json(r);
    if (r->state != TUNE_RUN_RUNNING || tune_run_held(r->folder))
        return;
    read_run_json(r);
    if (r->state != TUNE_RUN_RUNNING)
        return;
    r->state = TUNE_RUN_DEAD;
    snprintf(r->reason, sizeof r->reason, "run.json says it runs, but no process holds the folder: it was killed, or the machine "
             "went down");
}

/* ---- metrics.jsonl ---- */

static struct tune_run_series *series_of(struct tune_run *r, const char name[48])
{
    for (int i = 0; i < r->series_count; i++)
        if (!strcmp(r->series[i].name, name))
            return &r->series[i];
    struct tune_run_series *more = realloc(r->series, ((size_t)r->series_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->series = more;
    more += r->series_count++;
    *more = (struct tune_run_series){.count = 0};
    memcpy(more->name, name, sizeof more->name);
    return more;
}

static int append(struct tune_run_series *s, double step, double value)
{
    if (s->count == s->room) {
        int64_t room = s->room * 2 + 64;
        double *steps = realloc(s->step, (size_t)room * sizeof *steps);
        s->step = steps ? steps : s->step;
        double *values = steps ? realloc(s->value, (size_t)room * sizeof *values) : NULL;
        s->value = values ? values : s->value;
        if (!values)
            return no_memory();
        s->room = room;
    }
    s->step[s->count] = step;
    s->value[s->count++] = value;
    return 0;
}

/* One line into the series. -1 ends the reading: what is wrong, in the error text. */
static int take_line(void *run, const char *text, size_t size, int64_t line_number)
{
    struct tune_run *r = run;
    struct tune_metric metrics[TUNE_METRICS_MOST];
    int64_t step;
    int n = tune_metrics_line(metrics, &step, text, size, "metrics.jsonl", line_number);
    TRY(n);
    for (int i = 0; i < n; i++) {
        if (!strcmp(metrics[i].name, "step"))
            continue;
        struct tune_run_series *s = series_of(r, metrics[i].name);
        if (!s)
            return no_memory();
        if (s->count > 0 && s->step[s->count - 1] >= (double)step) {
            tune_error_set("metrics.jsonl:%" PRId64 ": \"%s\" of step %" PRId64 " stands behind that of step %.0f", line_number,
                           s->name, step, s->step[s->count - 1]);
            return -1;
        }
        TRY(append(s, (double)step, metrics[i].value));
    }
    r->step = step > r->step ? step : r->step;
    return 0;
}

/* Half a line at the end is what a run writes just now, or was writing when it was killed or the disk was full. */
static void read_metrics(struct tune_run *r)
{
    size_t torn, n = strlen(r->reason);
    if (tune_metrics_each(r->folder, take_line, r, &torn) < 0) {
        broken(r, NULL);
        return;
    }
    if (torn == 0 || r->state == TUNE_RUN_RUNNING || r->state == TUNE_RUN_BROKEN)
        return;
    char text[128];
    snprintf(text, sizeof text, "metrics.jsonl: its last line is torn, %zu bytes of it are there", torn);
    if (r->state == TUNE_RUN_DEAD || r->state == TUNE_RUN_FAILED)
        snprintf(r->reason + n, sizeof r->reason - n, "%s%s", n ? "; " : "", text);
    else
        broken(r, text);
}

const struct tune_run_series *tune_run_series(const struct tune_run *r, const char *name)
{
    for (int i = 0; i < r->series_count; i++)
        if (!strcmp(r->series[i].name, name))
            return &r->series[i];
    return NULL;
}

static double last(const struct tune_run *r, const char *name)
{
    const struct tune_run_series *s = tune_run_series(r, name);
    return s && s->count > 0 ? s->value[s->count - 1] : NAN;
}

static void summarize(struct tune_run *r)
{
    const struct tune_run_series *eval = tune_run_series(r, "eval_loss"), *per_step = tune_run_series(r, "tokens");
    r->loss = last(r, "loss");
    r->eval_loss = last(r, "eval_loss");
    r->best_eval_loss = NAN;
    for (int64_t i = 0; eval && i < eval->count; i++)
        if (!(eval->value[i] >= r->best_eval_loss)) {
            r->best_eval_loss = eval->value[i];
            r->best_eval_step = (int64_t)eval->step[i];
        }
    double elapsed = last(r, "elapsed_s"), tokens = 0;
    for (int64_t i = 0; per_step && i < per_step->count; i++)
        tokens += per_step->value[i];
    r->seconds = elapsed > 0 ? elapsed : 0;
    r->tokens_per_s = elapsed > 0 ? tokens / elapsed : NAN;
}

/* ---- the whole ---- */

struct tune_run *tune_run_open(const char *folder)
{
    struct tune_run *r = calloc(1, sizeof *r);
    if (!r) {
        no_memory();
        return NULL;
    }
    if (tune_path(r->folder, "%s", folder) < 0) {
        free(r);
        return NULL;
    }
    for (size_t n = strlen(r->folder); n > 1 && r->folder[n - 1] == '/'; n--)
        r->folder[n - 1] = 0;
    if (!tune_run_is(r->folder)) {
        tune_error_set("%s: %s", folder, tune_file_is_folder(r->folder) ? "no run in this folder; expected run.json and metrics.jsonl"
                                                                        : "no such run folder");
        free(r);
        return NULL;
    }
    const char *slash = strrchr(r->folder, '/');
    snprintf(r->name, sizeof r->name, "%.255s", slash && slash[1] ? slash + 1 : r->folder);
    read_state(r);
    read_metrics(r);
    if (has(r->folder, "report.json"))
        r->report = read_json(r, "report.json");
    summarize(r);
    return r;
}

void tune_run_free(struct tune_run *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->series_count; i++) {
        free(r->series[i].step);
        free(r->series[i].value);
    }
    free(r->series);
    cJSON_Delete(r->run);
    cJSON_Delete(r->report);
    free(r);
}

double *tune_run_axis(const struct tune_run *r, const struct tune_run_series *series, const char *what)
{
    bool step = !strcmp(what, "step"), sums = !strcmp(what, "tokens"); /* the others say where a step stands */
    what = !strcmp(what, "time") ? "elapsed_s" : what;
    const struct tune_run_series *per_step = step ? series : tune_run_series(r, what);
    if (!per_step) {
        tune_error_set("%s: its metrics.jsonl has no \"%s\" to draw over", r->folder, what);
        return NULL;
    }
    double *x = malloc((size_t)(series->count + 1) * sizeof *x), at = 0;
    if (!x) {
        no_memory();
        return NULL;
    }
    for (int64_t i = 0, k = 0; i < series->count; i++) {
        for (; k < per_step->count && per_step->step[k] <= series->step[i]; k++)
            at = sums ? at + per_step->value[k] : per_step->value[k];
        x[i] = step ? series->step[i] : at;
    }
    return x;
}
