/* run.c - read run.json, report.json and metrics.jsonl of one folder. None of them is trusted. */
#include "runs/run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/nearest.h"
#include "core/try.h"
#include "runs/metrics.h"
#include "runs/run_folder.h"

enum { AT_LEAST_S = 60, BEFORE_STEPS_S = 600 }; /* seconds without a write after which a run counts
                                                 * as stalled */

bool tune_run_is(const char *folder)
{
    return tune_run_folder_has(folder, TUNE_RUN_JSON) ||
           tune_run_folder_has(folder, TUNE_RUN_METRICS);
}

/* 1: a process holds metrics.jsonl. 0: none does. -1: the file system has no locks. */
static int lock_of(const char *folder, const char *root)
{
    char path[TUNE_PATH_MAX];
    size_t size;
    int n = snprintf(path, sizeof path, "%s/" TUNE_RUN_METRICS, folder);
    int fd = n >= (int)sizeof path ? -1 : root ? tune_file_open_within(path, root, &size) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && root)
        tune_error_clear();
    int held = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1;
    if (fd >= 0)
        close(fd);
    return held;
}

bool tune_run_held(const char *folder)
{
    return lock_of(folder, NULL) > 0;
}

static const char *const state_names[] = {"running", "finished", "stopped", "failed", "unfinished",
                                          "diverged", "stalled", "dead", "absent", "broken"};

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

/* Mark the run as broken, unless it is already. The reason is text, or the thread's error if text
 * is NULL. */
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

double tune_run_time(const cJSON *json, const char *key)
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
    cJSON *json = NULL;
    errno = 0;
    if (tune_path(path, "%s/%s", r->folder, name) == 0)
        json = tune_cjson_read_within(path, r->root, TUNE_RUN_JSON_MOST);
    r->leads_out = r->leads_out || (!json && r->root && errno == EXDEV);
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
    r->run = read_json(r, TUNE_RUN_JSON);
    const char *status = text_of(r->run, "status"), *reason = text_of(r->run, "reason");
    if (!r->run)
        return;
    int state = status ? tune_run_state_from(status, strlen(status)) : -1;
    if (state < 0 || state > TUNE_RUN_DIVERGED) {
        char text[160];
        snprintf(text, sizeof text, TUNE_RUN_JSON ": the status is %s%.60s%s", status ? "\"" : "", status ? status : "missing",
                 status ? "\", which no run has" : "");
        broken(r, text);
        return;
    }
    r->state = (enum tune_run_state)state;
    snprintf(r->reason, sizeof r->reason, "%s", reason ? reason : "");
    r->started_s = tune_run_time(r->run, "started");
    r->ended_s = tune_run_time(r->run, "ended");
    r->planned_steps = whole_of(r->run, "planned_steps");
}

/* Seconds since the last write to metrics.jsonl; 0: unknown. */
static double silence(const struct tune_run *r)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (tune_path(path, "%s/" TUNE_RUN_METRICS, r->folder) < 0 || stat(path, &st) < 0)
        return 0;
    return difftime(now.tv_sec, st.st_mtim.tv_sec);
}

/* The longest time without a write that is normal for this run: ten times its longest interval so
 * far. */
static double patience(const struct tune_run *r)
{
    double every = 1;
    char text[32];
    if (!tune_run_series(r, "elapsed_s"))
        return BEFORE_STEPS_S;
    if (tune_run_option(r, "log_every", text, sizeof text) && atof(text) > 1)
        every = atof(text);
    double s10 = 10 * every * r->sums.longest_s;
    return s10 > AT_LEAST_S ? s10 : AT_LEAST_S;
}

enum life { GONE, ALIVE, OUT_OF_SIGHT };

/* Find out whether the run's last process is alive: by the lock, or by its id where the file system
 * has no locks. Neither works for a process on another machine. If the lock is not held, the reason
 * says how we know. */
static enum life life_of(struct tune_run *r)
{
    const cJSON *sessions = cJSON_GetObjectItemCaseSensitive(r->run, "sessions");
    const cJSON *last = cJSON_GetArrayItem(sessions, cJSON_GetArraySize(sessions) - 1);
    const char *host = text_of(last, "host");
    int64_t pid = whole_of(last, "pid");
    struct utsname here;
    int lock = lock_of(r->folder, r->root);
    bool ours = !host || (uname(&here) == 0 && !strcmp(here.nodename, host));
    if (lock > 0)
        return ALIVE;
    if (!ours || (lock < 0 && pid == 0)) {
        snprintf(r->reason, sizeof r->reason, "it runs on %s, whose processes cannot be seen from "
                 "here; it last wrote %.0f s ago", host ? host : "an unknown machine", silence(r));
        return OUT_OF_SIGHT;
    }
    if (lock < 0 && (kill((pid_t)pid, 0) == 0 || errno != ESRCH))
        return ALIVE;
    snprintf(r->reason, sizeof r->reason, TUNE_RUN_JSON " says it runs, but no process %s: it was "
             "killed, or the machine went down", lock < 0 ? "has its id" : "holds the folder");
    return GONE;
}

/* The process is gone, and run.json said "running". Read it again: a run that ended meanwhile says so
 * now. Otherwise the run was killed. */
static enum life read_state(struct tune_run *r)
{
    if (lock_of(r->folder, r->root) > 0 && !tune_run_folder_has(r->folder, TUNE_RUN_JSON)) {
        r->state = TUNE_RUN_RUNNING; /* the run is just starting: metrics.jsonl is the second file
                                      * that it writes */
        return ALIVE;
    }
    read_run_json(r);
    if (r->state != TUNE_RUN_RUNNING)
        return ALIVE;
    enum life life = life_of(r);
    if (life != GONE)
        return life;
    char why[sizeof r->reason];
    memcpy(why, r->reason, sizeof why);
    read_run_json(r);
    if (r->state != TUNE_RUN_RUNNING)
        return ALIVE;
    r->state = TUNE_RUN_DEAD;
    memcpy(r->reason, why, sizeof why);
    return GONE;
}

/* ---- metrics.jsonl ---- */

bool tune_run_keeps(const struct tune_run *r, const char *name)
{
    return !r->only || tune_name_listed(r->only, name);
}

/* The series of this name, a new one if there is none. It is looked for at `next` first: lines have
 * the same names in the same order. */
static struct tune_run_series *series_of(struct tune_run *r, const char name[48], int next)
{
    if (next < r->series_count && !strcmp(r->series[next].name, name))
        return &r->series[next];
    for (int i = 0; i < r->series_count; i++)
        if (!strcmp(r->series[i].name, name))
            return &r->series[i];
    struct tune_run_series *more = realloc(r->series, ((size_t)r->series_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->series = more;
    more += r->series_count++;
    *more = (struct tune_run_series){.last_only = !tune_run_keeps(r, name)};
    memcpy(more->name, name, sizeof more->name);
    return more;
}

static bool make_room(struct tune_run_series *s, int64_t capacity)
{
    double *steps = realloc(s->step, (size_t)capacity * sizeof *steps);
    s->step = steps ? steps : s->step;
    double *values = steps ? realloc(s->value, (size_t)capacity * sizeof *values) : NULL;
    s->value = values ? values : s->value;
    s->capacity = values ? capacity : s->capacity;
    return values != NULL;
}

static int append(struct tune_run_series *s, double step, double value)
{
    s->count -= s->last_only && s->count == 1;
    if (s->count == s->capacity && !make_room(s, s->last_only ? 1 : s->capacity * 2 + 64))
        return no_memory();
    s->step[s->count] = step;
    s->value[s->count++] = value;
    return 0;
}

/* Add a value to what is known of all rows; s has those before it. */
static void add_to_sums(struct tune_run *r, const struct tune_run_series *s, double step, double value)
{
    if (*s->name != 't' && *s->name != 'e')
        return;
    if (!strcmp(s->name, "tokens")) {
        r->sums.tokens += value;
    } else if (!strcmp(s->name, "elapsed_s")) {
        double gap = value - (s->count > 0 ? s->value[s->count - 1] : 0);
        r->sums.longest_s = gap > r->sums.longest_s ? gap : r->sums.longest_s;
    } else if (!strcmp(s->name, "eval_loss") && !(value >= r->best_eval_loss)) {
        r->best_eval_loss = value;
        r->best_eval_step = (int64_t)step;
    }
}

/* Add one row to the series. -1 with an error ends the reading. */
static int take_row(void *run, const struct tune_metrics_row *row)
{
    struct tune_run *r = run;
    int next = 0;
    for (int i = 0; i < row->count; i++) {
        const struct tune_metric *m = &row->metrics[i];
        if (*m->name == 's' && !strcmp(m->name, "step"))
            continue;
        struct tune_run_series *s = series_of(r, m->name, next);
        if (!s)
            return no_memory();
        next = (int)(s - r->series) + 1;
        if (s->count > 0 && s->step[s->count - 1] >= (double)row->step) {
            tune_error_set("%s:%" PRId64 ": \"%s\" of step %" PRId64 " stands behind that of step "
                           "%.0f", row->path, row->line, s->name, row->step, s->step[s->count - 1]);
            return -1;
        }
        add_to_sums(r, s, (double)row->step, m->value);
        TRY(append(s, (double)row->step, m->value));
    }
    r->step = row->step > r->step ? row->step : r->step;
    return TUNE_METRICS_ON;
}

static void forget_rows(struct tune_run *r)
{
    for (int i = 0; i < r->series_count; i++) {
        free(r->series[i].step);
        free(r->series[i].value);
    }
    free(r->series);
    r->series = NULL;
    r->series_count = 0;
    r->step = 0;
    r->sums = (struct tune_run_sums){0};
    r->best_eval_loss = NAN;
    r->best_eval_step = -1;
}

/* Returns true if the rows were replaced. Half a line at the end is normal: a run is writing it,
 * was killed, or had no disk space. */
static bool read_metrics(struct tune_run *r)
{
    size_t n = strlen(r->reason);
    int64_t lines = r->position->lines;
    int status;
    errno = 0;
    while ((status = tune_metrics_read(r->position, r->folder, take_row, r)) == 1) {
        forget_rows(r);
        lines = -1;
    }
    r->leads_out = r->leads_out || (status < 0 && r->root && errno == EXDEV);
    if (status < 0)
        broken(r, NULL);
    for (int i = 0; i < r->series_count && tune_run_ended(r); i++) /* no more values will come */
        if (r->series[i].count > 0)
            make_room(&r->series[i], r->series[i].count);
    bool changed = lines != r->position->lines;
    if (r->position->torn == 0 || r->state == TUNE_RUN_RUNNING || r->state == TUNE_RUN_BROKEN)
        return changed;
    char text[128];
    snprintf(text, sizeof text, TUNE_RUN_METRICS ": its last line is torn, %" PRId64 " bytes of it "
             "are there", r->position->torn);
    if (r->state == TUNE_RUN_DEAD || r->state == TUNE_RUN_FAILED)
        snprintf(r->reason + n, sizeof r->reason - n, "%s%s", n ? "; " : "", text);
    else
        broken(r, text);
    return changed;
}

/* Mark a run as stalled if it says that it runs but has written nothing for long. */
static void see_silence(struct tune_run *r, enum life life)
{
    double s = silence(r);
    if (r->state != TUNE_RUN_RUNNING || s < patience(r))
        return;
    r->state = life == OUT_OF_SIGHT ? TUNE_RUN_DEAD : TUNE_RUN_STALLED;
    if (life != OUT_OF_SIGHT)
        snprintf(r->reason, sizeof r->reason, "its process is there, but wrote nothing for %.0f s",
                 s);
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
    double elapsed = last(r, "elapsed_s");
    r->loss = last(r, "loss");
    r->eval_loss = last(r, "eval_loss");
    r->seconds = elapsed > 0 ? elapsed : 0;
    r->tokens_per_s = elapsed > 0 ? r->sums.tokens / elapsed : NAN;
}

/* ---- the whole ---- */

int tune_run_update(struct tune_run *r)
{
    enum tune_run_state state = r->state;
    r->state = TUNE_RUN_ABSENT;
    *r->reason = 0;
    r->leads_out = false;
    cJSON_Delete(r->report);
    r->report = NULL;
    if (!tune_run_is(r->folder)) {
        snprintf(r->reason, sizeof r->reason, "no run there yet");
        return state != r->state;
    }
    enum life life = read_state(r);
    bool more = read_metrics(r);
    see_silence(r, life);
    if (tune_run_folder_has(r->folder, TUNE_RUN_REPORT))
        r->report = read_json(r, TUNE_RUN_REPORT);
    summarize(r);
    return more || state != r->state;
}

bool tune_run_ended(const struct tune_run *r)
{
    return r->state != TUNE_RUN_RUNNING && r->state != TUNE_RUN_STALLED &&
           r->state != TUNE_RUN_ABSENT;
}

static struct tune_run *follow(const char *folder, const char *root, const char *only)
{
    struct tune_run *r = calloc(1, sizeof *r);
    if (!r || !(r->position = calloc(1, sizeof *r->position)) || (only && !(r->only = strdup(only)))) {
        no_memory();
        tune_run_free(r);
        return NULL;
    }
    if (tune_path(r->folder, "%s", folder) < 0) {
        tune_run_free(r);
        return NULL;
    }
    for (size_t n = strlen(r->folder); n > 1 && r->folder[n - 1] == '/'; n--)
        r->folder[n - 1] = 0;
    const char *slash = strrchr(r->folder, '/');
    snprintf(r->name, sizeof r->name, "%.255s", slash && slash[1] ? slash + 1 : r->folder);
    r->state = TUNE_RUN_ABSENT;
    r->root = r->position->root = root;
    forget_rows(r);
    summarize(r);
    tune_run_update(r);
    return r;
}

struct tune_run *tune_run_follow(const char *folder)
{
    return follow(folder, NULL, NULL);
}

struct tune_run *tune_run_follow_last(const char *folder, const char *root)
{
    return follow(folder, root, "");
}

struct tune_run *tune_run_open(const char *folder)
{
    return tune_run_open_within(folder, NULL, NULL);
}

struct tune_run *tune_run_open_within(const char *folder, const char *root, const char *names)
{
    struct tune_run *r = follow(folder, root, names);
    if (!r || r->state != TUNE_RUN_ABSENT)
        return r;
    if (tune_file_is_folder(r->folder))
        tune_error_set("%s: no run in this folder; expected " TUNE_RUN_JSON " and " TUNE_RUN_METRICS, folder);
    else
        tune_error_usage("%s: no such run folder", folder);
    tune_run_free(r);
    return NULL;
}

void tune_run_free(struct tune_run *r)
{
    if (!r)
        return;
    forget_rows(r);
    free(r->position);
    free(r->only);
    cJSON_Delete(r->run);
    cJSON_Delete(r->report);
    free(r);
}

double *tune_run_axis(const struct tune_run *r, const struct tune_run_series *series, const char *what)
{
    bool step = !strcmp(what, "step"), sums = !strcmp(what, "tokens"); /* the other metrics give a
                                                                        * step's position */
    what = !strcmp(what, "time") ? "elapsed_s" : what;
    const struct tune_run_series *per_step = step ? series : tune_run_series(r, what);
    if (!per_step) {
        tune_error_set("%s: its " TUNE_RUN_METRICS " has no \"%s\" to draw over", r->folder, what);
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

bool tune_run_is_axis(const char *what)
{
    return !strcmp(what, "step") || !strcmp(what, "time") || !strcmp(what, "tokens") || !strcmp(what, "epoch");
}

struct point {
    double x, step, value;
};

static int by_x(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->step > q->step) - (p->step < q->step);
}

int tune_run_over(const struct tune_run *r, const struct tune_run_series *series, const char *metric, struct tune_run_series *over, double **x)
{
    const struct tune_run_series *other = tune_run_series(r, metric);
    size_t most = (size_t)series->count + 1;
    struct point *points = malloc(most * sizeof *points);
    int64_t n = 0;
    *over = *series;
    over->count = over->capacity = 0;
    over->step = malloc(most * sizeof *over->step);
    over->value = malloc(most * sizeof *over->value);
    *x = malloc(most * sizeof **x);
    if (!points || !over->step || !over->value || !*x) {
        free(points);
        tune_run_over_free(over, *x);
        return no_memory();
    }
    for (int64_t i = 0, k = 0; other && i < series->count; i++) {
        while (k < other->count && other->step[k] < series->step[i])
            k++;
        if (k < other->count && other->step[k] == series->step[i])
            points[n++] = (struct point){other->value[k], series->step[i], series->value[i]};
    }
    if (n > 0)
        qsort(points, (size_t)n, sizeof *points, by_x);
    for (int64_t i = 0; i < n; i++) {
        (*x)[i] = points[i].x;
        over->step[i] = points[i].step;
        over->value[i] = points[i].value;
    }
    over->count = n;
    free(points);
    return 0;
}

void tune_run_over_free(struct tune_run_series *over, double *x)
{
    free(over->step);
    free(over->value);
    free(x);
}
