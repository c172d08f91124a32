/* list.c - `runs list`: one line for each run. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../drawing.h"
#include "core/array.h"
#include "core/print.h"
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

/* The default values of one option, as "program=value", each once; and the folder that all its
 * values begin with, which people need not read. */
struct defaults {
    char **texts;
    size_t count, room, folder;
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
    snprintf(text, 640, "%s=%s", tune_run_member(r, "program"), value);
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

/* The length of the folder, with its '/', that all values of the option begin with. */
static size_t common_folder(struct tune_run *const *runs, int count, const char *name)
{
    char first[512] = "", value[512];
    size_t same = 0;
    for (int i = 0; i < count; i++) {
        if (!tune_run_option(runs[i], name, value, sizeof value) || !strcmp(value, "none"))
            continue;
        if (!*first) {
            snprintf(first, sizeof first, "%s", value);
            same = strlen(first);
        }
        size_t n = 0;
        while (n < same && first[n] == value[n])
            n++;
        same = n;
    }
    while (same > 0 && first[same - 1] != '/')
        same--;
    return same;
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
    char value[512], *text = NULL;
    size_t size;
    bool first = true;
    FILE *words = GET(open_memstream(&text, &size));
    for (int i = 0; i < count; i++) {
        if (is_default(r, names[i], &defaults[i]) || !tune_run_option(r, names[i], value, sizeof value))
            continue;
        bool cut = runs_for_people() && defaults[i].folder > 8 && strlen(value) > defaults[i].folder;
        fprintf(words, "%s%s=%s%s", first ? "" : " ", names[i], !cut ? "" : drawing_unicode(my.ascii) ? "…/" : ".../",
                value + (cut ? defaults[i].folder : 0));
        first = false;
    }
    MUST(fclose(words) == 0 ? 0 : -1);
    tune_table_text(t, text);
    free(text);
}

static const char *const brief[] = {"name", "program", "state", "step", "loss", "eval_loss", "best",
                                    "tokens/s", "started", "took", "options"};
static const char *const whole[] = {"name", "folder", "program", "state", "reason", "step", "planned_steps", "loss", "eval_loss", "best_eval_loss",
                                    "best_eval_step", "tokens_per_s", "seconds", "started", "ended", "options"};
enum { PROGRAM = 1, STARTED = 8, BRIEF = sizeof brief / sizeof *brief, WHOLE = sizeof whole / sizeof *whole };

static void list_brief(struct tune_table *t, const struct tune_run *r)
{
    char step[48];
    tune_table_text(t, tune_run_member(r, "program"));
    tune_table_text(t, tune_run_state_name(r->state));
    snprintf(step, sizeof step, r->planned_steps ? "%" PRId64 "/%" PRId64 : "%" PRId64, r->step, r->planned_steps);
    tune_table_shown(t, (double)r->step, step);
    for (int i = 2; i < TUNE_RUN_FIGURES - 1; i++) /* the columns from loss to tokens_per_s */
        if (strcmp(tune_run_figures[i], "best_eval_step"))
            tune_table_number(t, tune_run_figure(r, i), i < 5 ? runs_loss_format(tune_run_figure(r, i)) : "%.0f");
    add_time(t, r->started_s);
    add_seconds(t, r->step ? r->seconds : NAN);
}

static void list_whole(struct tune_table *t, const struct tune_run *r)
{
    tune_table_text(t, r->folder);
    tune_table_text(t, tune_run_member(r, "program"));
    tune_table_text(t, tune_run_state_name(r->state));
    tune_table_text(t, r->reason);
    for (int i = 0; i < TUNE_RUN_FIGURES; i++)
        runs_add_number(t, tune_run_figure(r, i));
    add_time(t, r->started_s);
    add_time(t, r->ended_s);
}

/* The column of what the runs are sorted by, if the list has it not anyway. */
static bool sort_column(void)
{
    static const char *const shown[] = {"name", "program", "state", "step", "planned_steps", "loss", "eval_loss", "best_eval_loss", "tokens_per_s",
                                        "started", "seconds"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strcmp(my.sort, shown[i]))
            return false;
    return runs_for_people();
}

static void add_sorted(struct tune_table *t, const struct tune_run *r)
{
    char text[32];
    double number = NAN;
    struct tune_value value = tune_run_value(r, my.sort, text);
    if (value.type == TUNE_VALUE_TEXT)
        tune_table_text(t, value.text);
    else if (tune_value_number(&value, &number) && isinf(number))
        tune_table_text(t, number > 0 ? "inf" : "-inf");
    else
        runs_add_number(t, number);
}

static struct tune_table *list_table(bool sorted)
{
    const char *names[BRIEF + 1];
    if (!runs_for_people())
        return GET(tune_table_new(whole, WHOLE));
    memcpy(names, brief, sizeof brief);
    if (sorted)
        names[BRIEF - 1] = my.sort, names[BRIEF] = brief[BRIEF - 1];
    struct tune_table *t = GET(tune_table_new(names, BRIEF + sorted));
    tune_table_below(t, PROGRAM);
    tune_table_below(t, STARTED);
    tune_table_below(t, BRIEF - 1 + sorted); /* the options */
    return t;
}

void runs_list(struct tune_run **runs, int count, int all)
{
    const char **differing;
    char units[256];
    int n = MUST(tune_runs_differing(runs, count, &differing));
    bool sorted = sort_column();
    struct tune_table *t = list_table(sorted);
    struct defaults *defaults = GET(tune_zeroed((size_t)n + 1, sizeof *defaults, "the defaults of runs"));
    for (int i = 0; i < n; i++)
        defaults[i] = find_defaults(runs, count, differing[i]), defaults[i].folder = common_folder(runs, count, differing[i]);
    MUST(tune_runs_sort(runs, count, my.sort, my.reverse, runs_unit, units));
    for (int i = 0; i < count; i++) {
        tune_table_text(t, runs_label(runs, count, i));
        (runs_for_people() ? list_brief : list_whole)(t, runs[i]);
        if (sorted)
            add_sorted(t, runs[i]);
        add_options(t, runs[i], differing, defaults, n);
    }
    runs_print(t);
    for (int i = 0; i < count && runs_for_people(); i++)
        if (*runs[i]->reason)
            runs_put_reason(stdout, runs, count, i);
    if (*units && runs_for_people())
        printf("# %s has several units here, which are sorted apart: %s\n", my.sort, units);
    if (all == 0 && runs_for_people())
        puts("# no runs in runs/; a recipe makes them there, or where its --output says");
    else if (count < all && runs_for_people())
        printf("# %d of %d runs\n", count, all);
    for (int i = 0; i < n; i++)
        free_defaults(&defaults[i]);
    free(defaults);
    free(differing);
}
