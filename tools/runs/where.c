/* where.c - which runs are wanted (--program, --state, --since, --where), and the values of a run by
 * name, which --where and --sort use. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/expression.h"
#include "core/nearest.h"
#include "runs.h"

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

struct tune_value runs_value(const struct tune_run *r, const char *name, char text[32])
{
    const char *const values[TEXTS] = {r->name, r->folder, runs_member(r, "program"), tune_run_state_name(r->state), r->reason,
                                       time_text(r->started_s, text)};
    int t = tune_name_find(texts, TEXTS, name), f = tune_name_find(runs_figures, RUNS_FIGURES, name);
    if (t >= 0)
        return *values[t] ? tune_value_text(values[t]) : tune_value_none();
    if (f >= 0)
        return number_value(runs_figure(r, f));
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(r->run, "options"), name);
    if (!item && runs_has(r, name))
        item = cJSON_GetObjectItemCaseSensitive(r->report, name);
    const struct tune_run_series *s = item ? NULL : tune_run_series(r, name);
    return item ? json_value(item) : s && s->count > 0 ? number_value(s->value[s->count - 1]) : tune_value_none();
}

/* ---- all names ---- */

struct names {
    const char **at;
    size_t count, room;
};

/* Runs of one program have the same names in the same order, so `next` is where to look first. */
static size_t add_name(struct names *n, const char *name, size_t next)
{
    for (size_t i = 0; i < n->count; i++) {
        size_t at = (next + i) % n->count;
        if (!strcmp(n->at[at], name))
            return at + 1;
    }
    MUST(tune_array_reserve(&n->at, &n->room, n->count + 1, sizeof *n->at, "the names of runs"));
    n->at[n->count++] = name;
    return n->count;
}

static struct names all_names(struct tune_run *const *runs, int count)
{
    struct names n = {0};
    for (int i = 0; i < TEXTS; i++)
        add_name(&n, texts[i], 0);
    for (int i = 0; i < RUNS_FIGURES; i++)
        add_name(&n, runs_figures[i], 0);
    for (int i = 0; i < count; i++) {
        const cJSON *item;
        size_t next = 0;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(runs[i]->run, "options"))
            next = item->string ? add_name(&n, item->string, next) : next;
        cJSON_ArrayForEach(item, runs[i]->report)
            next = item->string && cJSON_IsNumber(item) ? add_name(&n, item->string, next) : next;
        for (int s = 0; s < runs[i]->series_count; s++)
            next = add_name(&n, runs[i]->series[s].name, next);
    }
    return n;
}

void runs_check_name(struct tune_run *const *runs, int count, const char *option, const char *name)
{
    char hint[TUNE_HINT];
    if (tune_name_find(texts, TEXTS, name) >= 0 || tune_name_find(runs_figures, RUNS_FIGURES, name) >= 0)
        return;
    struct names n = all_names(runs, count);
    if (count > 0 && tune_name_find(n.at, (int)n.count, name) < 0) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "%s: no run has \"%s\"%s; expected a figure such as loss, an option such as lr, a metric or "
                            "a number of the reports (runs show RUN lists them)", option, name,
                            tune_nearest_hint(name, n.at, (int)n.count, hint));
        tune_program_fail();
    }
    free(n.at);
}

/* ---- which ---- */

static unsigned states_asked(void)
{
    unsigned wanted = 0;
    for (const char *at = my.state; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        int state = tune_run_state_from(at, n);
        if (state < 0) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "--state: \"%.*s\" is no state; expected running, finished, stopped, failed, "
                                "diverged, unfinished, stalled, dead or broken", (int)n, at);
            tune_program_fail();
        }
        wanted |= 1u << state;
        at += n;
    }
    return wanted;
}

/* The time that --since means, in seconds since 1970. */
static double since(const char *text)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    char *end, *rest;
    double number = strtod(text, &end), now = (double)time(NULL);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > text && *end == units[i].unit && !end[1] && number >= 0)
            return now - number * units[i].seconds;
    time_t today = time(NULL);
    struct tm t = {.tm_isdst = -1}, day;
    localtime_r(&today, &day);
    if (!strcmp(text, "today") || !strcmp(text, "yesterday")) {
        day.tm_mday -= *text == 'y';
        day.tm_hour = day.tm_min = day.tm_sec = 0;
        day.tm_isdst = -1;
        return (double)mktime(&day);
    }
    rest = strptime(text, "%Y-%m-%d", &t);
    if (rest && (*rest == ' ' || *rest == 'T')) {
        char *minutes = strptime(rest + 1, "%H:%M", &t), *seconds = minutes ? strptime(minutes, ":%S", &t) : NULL;
        rest = seconds ? seconds : minutes;
    }
    int day_asked = t.tm_mday;
    double when = rest && !*rest ? (double)mktime(&t) : 0;
    if (rest && !*rest && t.tm_mday == day_asked) /* else there is no such day: 2026-02-31 */
        return when;
    tune_error_set_kind(TUNE_ERROR_USAGE, "--since: \"%s\" is no time; expected 30m, 12h, 3d, 2w, today, yesterday, 2026-11-26 or "
                        "\"2026-11-26 14:30\"", text);
    tune_program_fail();
}

static bool of_program(const struct tune_run *r)
{
    const char *program = runs_member(r, "program");
    for (const char *at = my.program; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == strlen(program) && !strncmp(at, program, n))
            return true;
        at += n;
    }
    return !my.program || !*my.program;
}

static bool meets(const struct tune_expression *e, const struct names *n, const struct tune_run *r, struct tune_value *values, char (*times)[32])
{
    for (size_t i = 0; i < n->count; i++)
        if (tune_expression_uses(e, (int)i))
            values[i] = runs_value(r, n->at[i], *times);
    return MUST(tune_expression_true(e, values)) != 0;
}

int runs_select(struct tune_run **runs, int count)
{
    unsigned states = states_asked();
    double from = my.since ? since(my.since) : -INFINITY;
    struct names n = {0};
    struct tune_expression *e = NULL;
    struct tune_value *values = NULL;
    char times[32];
    int kept = 0;
    if (my.where && count > 0) {
        n = all_names(runs, count);
        e = GET(tune_expression_query(my.where, n.at, (int)n.count, "--where"));
        values = GET(tune_zeroed(n.count, sizeof *values, "the values of a run"));
    }
    for (int i = 0; i < count; i++) {
        struct tune_run *r = runs[i];
        if ((states && !(states >> r->state & 1)) || r->started_s < from || !of_program(r) || (e && !meets(e, &n, r, values, &times)))
            continue;
        runs[i] = runs[kept];
        runs[kept++] = r; /* the others move behind */
    }
    tune_expression_free(e);
    free(values);
    free(n.at);
    return kept;
}
