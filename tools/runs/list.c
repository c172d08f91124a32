/* list.c - `runs list`: one line for each run. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "runs.h"

static void add_time(struct tune_table *t, double seconds)
{
    char text[32] = "";
    time_t when = (time_t)seconds;
    struct tm local;
    if (seconds > 0)
        strftime(text, sizeof text, runs_for_people() ? "%Y-%m-%d %H:%M" : "%Y-%m-%dT%H:%M:%S%z", localtime_r(&when, &local));
    tune_table_text(t, text);
}

static void add_seconds(struct tune_table *t, double seconds)
{
    char text[32];
    long long s = (long long)(seconds + 0.5);
    snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    tune_table_shown(t, seconds, text);
}

static const char *source_of(const struct tune_run *r, const char *name)
{
    const cJSON *sources = cJSON_GetObjectItemCaseSensitive(r->run, "sources");
    const char *source = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(sources, name));
    return source ? source : "";
}

/* The default values of one option, as "program=value", each once. */
struct defaults {
    char **texts;
    size_t count, room;
};

static bool has(const struct defaults *d, const char *text)
{
    for (size_t i = 0; i < d->count; i++)
        if (!strcmp(d->texts[i], text))
            return true;
    return false;
}

static bool program_and_value(const struct tune_run *r, const char *name, char text[640])
{
    char value[512];
    if (!tune_run_option(r, name, value, sizeof value))
        return false;
    snprintf(text, 640, "%s=%s", runs_member(r, "program"), value);
    return true;
}

static struct defaults find_defaults(struct tune_run *const *runs, int count, const char *name)
{
    struct defaults d = {0};
    char text[640];
    for (int i = 0; i < count; i++)
        if (strstr(source_of(runs[i], name), "default") && program_and_value(runs[i], name, text) && !has(&d, text)) {
            MUST(tune_array_reserve(&d.texts, &d.room, d.count + 1, sizeof *d.texts, "the defaults of runs"));
            d.texts[d.count++] = GET(strdup(text));
        }
    return d;
}

static void free_defaults(struct defaults *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->texts[i]);
    free(d->texts);
}

/* True if the user did not choose this value: it is the program's or the model's default. A resumed
 * run takes all options from itself; then another run of the program may tell. */
static bool is_default(const struct tune_run *r, const char *name, const struct defaults *d)
{
    char text[640];
    const char *source = source_of(r, name);
    if (strcmp(source, "run") != 0)
        return strstr(source, "default") != NULL;
    return program_and_value(r, name, text) && has(d, text);
}

/* "lr=2e-05 batch_size=8": the options of run r in which the rows differ, without defaults. */
static void add_options(struct tune_table *t, const struct tune_run *r, const char *const *names, const struct defaults *defaults,
                        int count)
{
    char value[512], text[2048] = "";
    for (int i = 0; i < count; i++) {
        size_t n = strlen(text);
        if (!is_default(r, names[i], &defaults[i]) &&
            tune_run_option(r, names[i], value, sizeof value))
            snprintf(text + n, sizeof text - n, "%s%s=%s", n ? " " : "", names[i], value);
    }
    tune_table_text(t, text);
}

static const char *const brief[] = {"name", "program", "state", "step", "loss", "eval_loss", "best",
                                    "tokens/s", "started", "took", "options"};
static const char *const whole[] = {"name", "folder", "program", "state", "reason", "step", "planned_steps", "loss", "eval_loss", "best_eval_loss",
                                    "best_eval_step", "tokens_per_s", "seconds", "started", "ended", "options"};
enum { BRIEF = sizeof brief / sizeof *brief, WHOLE = sizeof whole / sizeof *whole };

static void list_brief(struct tune_table *t, const struct tune_run *r)
{
    char step[48];
    tune_table_text(t, runs_member(r, "program"));
    tune_table_text(t, tune_run_state_name(r->state));
    snprintf(step, sizeof step, r->planned_steps ? "%" PRId64 "/%" PRId64 : "%" PRId64, r->step, r->planned_steps);
    tune_table_shown(t, (double)r->step, step);
    for (int i = 2; i < RUNS_FIGURES - 1; i++) /* the columns from loss to tokens_per_s */
        if (strcmp(runs_figures[i], "best_eval_step"))
            tune_table_number(t, runs_figure(r, i), i < 5 ? runs_loss_format(runs_figure(r, i)) : "%.0f");
    add_time(t, r->started_s);
    add_seconds(t, r->step ? r->seconds : NAN);
}

static void list_whole(struct tune_table *t, const struct tune_run *r)
{
    tune_table_text(t, r->folder);
    tune_table_text(t, runs_member(r, "program"));
    tune_table_text(t, tune_run_state_name(r->state));
    tune_table_text(t, r->reason);
    for (int i = 0; i < RUNS_FIGURES; i++)
        runs_add_number(t, runs_figure(r, i));
    add_time(t, r->started_s);
    add_time(t, r->ended_s);
}

static double sort_key(const struct tune_run *r)
{
    for (int i = 0; i < RUNS_FIGURES; i++)
        if (!strcmp(my.sort, runs_figures[i]))
            return runs_figure(r, i);
    return !strcmp(my.sort, "started") ? r->started_s : !strcmp(my.sort, "state") ? (double)r->state : 0;
}

/* Runs without the number come last in both directions. */
static int in_order(const void *a, const void *b)
{
    const struct tune_run *r = *(struct tune_run *const *)a, *s = *(struct tune_run *const *)b;
    double x = sort_key(r), y = sort_key(s);
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    int order = x < y ? -1 : x > y ? 1 : strcmp(r->name, s->name);
    return my.reverse ? -order : order;
}

/* Move runs in other states to the end. Returns the number of runs that stay. */
static int by_state(struct tune_run **runs, int count)
{
    unsigned wanted = 0;
    int kept = 0;
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
    for (int i = 0; i < count; i++)
        if (!wanted || wanted >> runs[i]->state & 1) {
            struct tune_run *r = runs[i];
            runs[i] = runs[kept];
            runs[kept++] = r;
        }
    return kept;
}

void runs_list(struct tune_run **runs, int all)
{
    const char **differing;
    int count = by_state(runs, all), n = MUST(tune_runs_differing(runs, count, &differing));
    struct tune_table *t = GET(tune_table_new(runs_for_people() ? brief : whole, runs_for_people() ? BRIEF : WHOLE));
    struct defaults *defaults = GET(tune_zeroed((size_t)n + 1, sizeof *defaults, "the defaults of runs"));
    for (int i = 0; i < n; i++)
        defaults[i] = find_defaults(runs, count, differing[i]);
    if (count > 0)
        qsort(runs, (size_t)count, sizeof *runs, in_order);
    for (int i = 0; i < count; i++) {
        tune_table_text(t, runs_label(runs, count, i));
        (runs_for_people() ? list_brief : list_whole)(t, runs[i]);
        add_options(t, runs[i], differing, defaults, n);
    }
    runs_print(t);
    for (int i = 0; i < count && runs_for_people(); i++)
        if (*runs[i]->reason)
            runs_put_reason(stdout, runs, count, i);
    if (all == 0 && runs_for_people())
        puts("# no runs in runs/; a recipe makes them there, or where its --output says");
    for (int i = 0; i < n; i++)
        free_defaults(&defaults[i]);
    free(defaults);
    free(differing);
}
