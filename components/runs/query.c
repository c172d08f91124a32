/* query.c - figures and values of runs by name, and which runs a query chooses. */
#include "runs/query.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/expression.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"

const char *const tune_run_figures[TUNE_RUN_FIGURES] = {
    "step", "planned_steps", "loss", "eval_loss", "best_eval_loss", "best_eval_step", "tokens_per_s", "seconds",
};

double tune_run_figure(const struct tune_run *r, int i)
{
    const double values[TUNE_RUN_FIGURES] = {(double)r->step,   r->planned_steps ? (double)r->planned_steps : NAN,
                                    r->loss,           r->eval_loss,
                                    r->best_eval_loss, r->best_eval_step >= 0 ? (double)r->best_eval_step : NAN,
                                    r->tokens_per_s,   r->step ? r->seconds : NAN};
    return values[i];
}

const char *tune_run_member(const struct tune_run *r, const char *path)
{
    char outer[64];
    const char *dot = strchr(path, '.');
    snprintf(outer, sizeof outer, "%.*s", dot ? (int)(dot - path) : (int)strlen(path), path);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->run, outer);
    if (dot)
        item = cJSON_GetObjectItemCaseSensitive(item, dot + 1);
    const char *text = cJSON_GetStringValue(item);
    return text ? text : "";
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

bool tune_run_has(const struct tune_run *r, const char *property)
{
    bool of_gpu = strstr(property, "gpu_") || ends_in(property, "_per_gpu");
    return !of_gpu || strcmp(tune_run_member(r, "device"), "cpu") != 0;
}

/* Names that every run has, beside its figures. */
static const char *const texts[] = {"name", "folder", "program", "state", "reason", "started"};
enum { TEXTS = sizeof texts / sizeof *texts };

/* "2026-11-26T12:53:12", local time. In this form, texts sort as times do. */
static const char *time_text(double seconds, char text[32])
{
    time_t when = (time_t)seconds;
    struct tm local;
    *text = 0;
    if (seconds > 0)
        strftime(text, 32, "%Y-%m-%dT%H:%M:%S", localtime_r(&when, &local));
    return text;
}

static struct tune_value number_value(double value)
{
    return !isfinite(value)                                ? tune_value_none()
           : value == floor(value) && fabs(value) < 0x1p53 ? tune_value_int((int64_t)value)
                                                           : tune_value_float(value);
}

/* JSON has no infinity; run folders write "inf". */
static struct tune_value json_value(const cJSON *item)
{
    const char *text = cJSON_GetStringValue(item);
    if (text && (!strcmp(text, "inf") || !strcmp(text, "-inf")))
        return tune_value_float(*text == '-' ? -INFINITY : INFINITY);
    return text                   ? tune_value_text(text)
           : cJSON_IsNumber(item) ? number_value(item->valuedouble)
           : cJSON_IsBool(item)   ? tune_value_bool(cJSON_IsTrue(item))
                                  : tune_value_none();
}

struct tune_value tune_run_value(const struct tune_run *r, const char *name, char text[32])
{
    const char *const values[TEXTS] = {r->name, r->folder, tune_run_member(r, "program"), tune_run_state_name(r->state), r->reason,
                                       time_text(r->started_s, text)};
    int t = tune_name_find(texts, TEXTS, name), f = tune_name_find(tune_run_figures, TUNE_RUN_FIGURES, name);
    if (t >= 0)
        return *values[t] ? tune_value_text(values[t]) : tune_value_none();
    if (f >= 0)
        return number_value(tune_run_figure(r, f));
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(r->run, "options"), name);
    if (!item && tune_run_has(r, name))
        item = cJSON_GetObjectItemCaseSensitive(r->report, name);
    const struct tune_run_series *s = item ? NULL : tune_run_series(r, name);
    return item ? json_value(item) : s && s->count > 0 ? number_value(s->value[s->count - 1]) : tune_value_none();
}

/* ---- all names ---- */

struct names {
    const char **at;
    size_t count, room;
};

/* Add a name. Runs of one program have the same names in the same order, so *next is where to look
 * first. */
static int add_name(struct names *n, const char *name, size_t *next)
{
    for (size_t i = 0; i < n->count; i++) {
        size_t at = (*next + i) % n->count;
        if (!strcmp(n->at[at], name)) {
            *next = at + 1;
            return 0;
        }
    }
    TRY(tune_array_reserve(&n->at, &n->room, n->count + 1, sizeof *n->at, "the names of runs"));
    n->at[n->count++] = name;
    *next = n->count;
    return 0;
}

static int add_names(struct names *n, const struct tune_run *r)
{
    const cJSON *item;
    size_t next = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(r->run, "options"))
        if (item->string)
            TRY(add_name(n, item->string, &next));
    cJSON_ArrayForEach(item, r->report)
        if (item->string && cJSON_IsNumber(item))
            TRY(add_name(n, item->string, &next));
    for (int s = 0; s < r->series_count; s++)
        TRY(add_name(n, r->series[s].name, &next));
    return 0;
}

static int all_names(struct names *n, struct tune_run *const *runs, int count)
{
    size_t next = 0;
    for (int i = 0; i < TEXTS; i++)
        TRY(add_name(n, texts[i], &next));
    for (int i = 0; i < TUNE_RUN_FIGURES; i++)
        TRY(add_name(n, tune_run_figures[i], &next));
    for (int i = 0; i < count; i++)
        TRY(add_names(n, runs[i]));
    return 0;
}

int tune_runs_names(struct tune_run *const *runs, int count, const char ***names)
{
    struct names n = {0};
    if (all_names(&n, runs, count) < 0) {
        free(n.at);
        return -1;
    }
    *names = n.at;
    return (int)n.count;
}

/* -1 with an error if no run has the name. */
static int check_name(struct tune_run *const *runs, int count, const char *name)
{
    char hint[TUNE_HINT];
    struct names n = {0};
    int status = 0;
    if (count == 0 || tune_name_find(texts, TEXTS, name) >= 0 || tune_name_find(tune_run_figures, TUNE_RUN_FIGURES, name) >= 0)
        return 0;
    status = all_names(&n, runs, count);
    if (status == 0 && tune_name_find(n.at, (int)n.count, name) < 0)
        status = tune_error_usage("`sort`: no run has \"%s\"%s; expected a figure such as loss, an option such as lr, a metric or "
                                  "a number of the reports (runs show RUN lists them)", name,
                                  tune_nearest_hint(name, n.at, (int)n.count, hint));
    free(n.at);
    return status;
}

/* ---- which ---- */

static int read_states(const char *list, unsigned *wanted)
{
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        int state = tune_run_state_from(at, n);
        if (state < 0)
            return tune_error_usage("`state`: \"%.*s\" is no state; expected running, finished, stopped, failed, "
                                    "diverged, unfinished, stalled, dead or broken", (int)n, at);
        *wanted |= 1u << state;
        at += n;
    }
    return 0;
}

/* Read a time into *from, in seconds since 1970. */
static int read_since(const char *text, double *from)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    char *end, *rest;
    double number = strtod(text, &end), now = (double)time(NULL);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > text && *end == units[i].unit && !end[1] && number >= 0)
            return *from = now - number * units[i].seconds, 0;
    time_t today = time(NULL);
    struct tm t = {.tm_isdst = -1}, day;
    localtime_r(&today, &day);
    if (!strcmp(text, "today") || !strcmp(text, "yesterday")) {
        day.tm_mday -= *text == 'y';
        day.tm_hour = day.tm_min = day.tm_sec = 0;
        day.tm_isdst = -1;
        return *from = (double)mktime(&day), 0;
    }
    rest = strptime(text, "%Y-%m-%d", &t);
    if (rest && (*rest == ' ' || *rest == 'T')) {
        char *minutes = strptime(rest + 1, "%H:%M", &t), *seconds = minutes ? strptime(minutes, ":%S", &t) : NULL;
        rest = seconds ? seconds : minutes;
    }
    int day_asked = t.tm_mday;
    double when = rest && !*rest ? (double)mktime(&t) : 0;
    if (rest && !*rest && t.tm_mday == day_asked) /* else there is no such day: 2026-02-31 */
        return *from = when, 0;
    return tune_error_usage("`since`: \"%s\" is no time; expected 30m, 12h, 3d, 2w, today, yesterday, 2026-11-26 or "
                            "\"2026-11-26 14:30\"", text);
}

static bool of_program(const struct tune_run *r, const char *list)
{
    return !list || !*list || tune_name_listed(list, tune_run_member(r, "program"));
}

/* 1: the expression is true for the run. 0: it is not. -1: an error. */
static int meets(const struct tune_expression *e, const struct names *n, const struct tune_run *r, struct tune_value *values)
{
    char time[32];
    for (size_t i = 0; i < n->count; i++)
        if (tune_expression_uses(e, (int)i))
            values[i] = tune_run_value(r, n->at[i], time);
    return tune_expression_true(e, values);
}

/* Choose by everything but the expression. */
static int select_plainly(struct tune_run **runs, int count, const struct tune_run_query *q)
{
    unsigned states = 0;
    double from = -INFINITY;
    int kept = 0;
    TRY(read_states(q->state, &states));
    if (q->since)
        TRY(read_since(q->since, &from));
    for (int i = 0; i < count; i++) {
        struct tune_run *r = runs[i];
        if ((states && !(states >> r->state & 1)) || r->started_s < from || !of_program(r, q->program))
            continue;
        runs[i] = runs[kept];
        runs[kept++] = r; /* the others move behind */
    }
    return kept;
}

static int select_where(struct tune_run **runs, int count, const struct tune_expression *e, const struct names *n)
{
    struct tune_value *values = tune_zeroed(n->count, sizeof *values, "the values of a run");
    int kept = values ? 0 : -1;
    for (int i = 0; i < count && kept >= 0; i++) {
        struct tune_run *r = runs[i];
        int met = meets(e, n, r, values);
        if (met < 0)
            kept = -1;
        if (met <= 0)
            continue;
        runs[i] = runs[kept];
        runs[kept++] = r;
    }
    free(values);
    return kept;
}

int tune_runs_select(struct tune_run **runs, int count, const struct tune_run_query *q)
{
    struct names n = {0};
    struct tune_expression *e = NULL;
    int kept = q->where && count > 0 ? all_names(&n, runs, count) : 0;
    if (kept == 0 && q->where && count > 0) {
        e = tune_expression_query(q->where, n.at, (int)n.count, "`where`");
        kept = e ? 0 : -1;
    }
    if (kept == 0)
        kept = select_plainly(runs, count, q);
    if (kept >= 0 && e)
        kept = select_where(runs, kept, e, &n);
    tune_expression_free(e);
    free(n.at);
    return kept;
}

/* ---- order ---- */

/* A run, with the value that it is sorted by, and the unit of that. */
struct sorted_run {
    struct tune_run *run;
    struct tune_value value;
    const char *unit;
    bool reverse;
    char time[32]; /* the value's text, if it is a time */
};

/* Numbers of several units are sorted apart. Runs without the value come last in both directions. */
static int in_order(const void *a, const void *b)
{
    const struct sorted_run *s = *(const struct sorted_run *const *)a, *t = *(const struct sorted_run *const *)b;
    bool none = s->value.type == TUNE_VALUE_NONE;
    if (none != (t->value.type == TUNE_VALUE_NONE))
        return none ? 1 : -1;
    int units = strcmp(t->unit, s->unit), order = none ? 0 : tune_value_compare(&s->value, &t->value);
    if (units != 0 && !none)
        return units;
    order = order ? order : strcmp(s->run->name, t->run->name);
    return s->reverse ? -order : order;
}

int tune_runs_sort(struct tune_run **runs, int count, const char *name, bool reverse,
                   const char *(*unit)(const struct tune_run *r, const char *name), char units[256])
{
    *units = 0;
    TRY(check_name(runs, count, name));
    struct sorted_run *all = tune_zeroed((size_t)count + 1, sizeof *all, "the order of runs");
    struct sorted_run **order = all ? tune_zeroed((size_t)count + 1, sizeof *order, "the order of runs") : NULL;
    for (int i = 0; i < count && order; i++) {
        order[i] = &all[i];
        all[i] = (struct sorted_run){.run = runs[i], .unit = unit(runs[i], name), .reverse = reverse};
        all[i].value = tune_run_value(runs[i], name, all[i].time);
    }
    if (order)
        qsort(order, (size_t)count, sizeof *order, in_order);
    for (int i = 1; i < count && order && order[i]->value.type != TUNE_VALUE_NONE; i++)
        if (strcmp(order[i]->unit, order[i - 1]->unit))
            tune_append(units, 256, "%s, then %s", *units ? "" : order[i - 1]->unit, order[i]->unit);
    for (int i = 0; i < count && order; i++)
        runs[i] = order[i]->run;
    free(all);
    free(order);
    return order ? 0 : -1;
}
