/* runs.c - what runs there are, what each did, how they differ, and their curves; from the run folders alone.
 *
 *     build/runs list                                     the folders in runs/
 *     build/runs show first                               everything about runs/first
 *     build/runs compare first second                     figures and differing options side by side
 *     build/runs plot first second --svg loss.svg         curves: in the terminal, and as a picture
 *
 * A run is a folder, a name in runs/, or a folder of run folders. Nothing is written to them. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/print.h"
#include "drawing.h"
#include "flags/program.h"
#include "runs/run.h"
#include "views/plot.h"
#include "views/table.h"

static struct {
    struct tune_flags tune;
    const char *command, *run, *format, *sort, *state, *metric, *x, *svg, *color;
    bool reverse, logarithmic, ascii;
    double smooth;
    int width, height;
} my;

static const struct tune_option my_options[] = {
    {"<command>", TUNE_CHOICE, &my.command, NULL, "list|show|compare|plot", "", "what to do"},
    {"<run...>", TUNE_STRING, &my.run, "", "", "",
     "run folders, names in runs/, or folders of run folders; default: all in runs/"},
    {"output-format", TUNE_CHOICE, &my.format, "table", "table|csv|json", "",
     "output of list, show and compare"},
    TUNE_OPTION_GROUP("list"),
    {"sort", TUNE_CHOICE, &my.sort, "started",
     "started|name|state|step|loss|eval_loss|best_eval_loss|tokens_per_s|seconds", "",
     "what to sort by, lowest first"},
    {"reverse", TUNE_BOOL, &my.reverse, "false", "", "", "highest first"},
    {"state", TUNE_STRING, &my.state, NULL, "", "",
     "states of the runs to list, with commas: running, finished, stopped, failed, diverged, "
     "unfinished, dead, broken"},
    TUNE_OPTION_GROUP("plot"),
    {"metric", TUNE_STRING, &my.metric, "loss,eval_loss", "", "",
     "metrics to plot, with commas. loss and eval_loss share one plot"},
    {"x", TUNE_CHOICE, &my.x, "step", "step|epoch|tokens|time", "",
     "x axis. time is since the first step, with all sessions added up"},
    {"svg", TUNE_STRING, &my.svg, NULL, "", "",
     "SVG file to write as well. /dev/stdout: print the SVG in place of the drawing"},
    {"smooth", TUNE_DOUBLE, &my.smooth, "-1", "[-1,inf)", "points",
     "points on either side to smooth over, twice; -1: by the curve; 0: none"},
    {"log", TUNE_BOOL, &my.logarithmic, "false", "", "", "logarithmic y axis"},
    {"ascii", TUNE_BOOL, &my.ascii, "false", "", "", "draw with ASCII characters only"},
    {"color", TUNE_CHOICE, &my.color, "auto", "auto|always|never", "",
     "when to use colours. auto: in a terminal, unless NO_COLOR is set"},
    {"width", TUNE_INT, &my.width, "0", "[0,4096]", "columns",
     "width of the output; 0: the terminal's"},
    {"height", TUNE_INT, &my.height, "16", "[3,400]", "rows", "height of a plot"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

static bool is_people(void)
{
    return !strcmp(my.format, "table");
}

static void print(struct tune_table *t)
{
    MUST(tune_table_print(t, my.format, is_people() ? drawing_columns(my.width, 0) : 0, drawing_unicode(my.ascii) ? "\u2026" : "...", stdout));
    tune_table_free(t);
}

/* The last part of the folder, or all of it where another run of this list is called the same. */
static const char *label(struct tune_run *const *runs, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (k != i && !strcmp(runs[k]->name, runs[i]->name))
            return runs[i]->folder;
    return runs[i]->name;
}

/* Why the run is as it is. */
static void put_reason(FILE *out, struct tune_run *const *runs, int count, int i)
{
    fputs("# ", out);
    tune_print_line_of(out, label(runs, count, i));
    fputs(": ", out);
    tune_print_line_of(out, runs[i]->reason);
    fputc('\n', out);
}

/* Figures of any run, from its metrics alone. */
static const char *const figures[] = {"step", "planned_steps", "loss", "eval_loss", "best_eval_loss", "best_eval_step",
                                      "tokens_per_s", "seconds"};
enum { FIGURES = sizeof figures / sizeof *figures };

static double figure(const struct tune_run *r, int i)
{
    const double values[FIGURES] = {(double)r->step,   r->planned_steps ? (double)r->planned_steps : NAN,
                                    r->loss,           r->eval_loss,
                                    r->best_eval_loss, r->best_eval_step >= 0 ? (double)r->best_eval_step : NAN,
                                    r->tokens_per_s,   r->step ? r->seconds : NAN};
    return values[i];
}

static void add_number(struct tune_table *t, double value)
{
    tune_table_number(t, value, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.6g");
}

/* ---- list ---- */

static void add_time(struct tune_table *t, double seconds)
{
    char text[32] = "";
    time_t when = (time_t)seconds;
    struct tm local;
    if (seconds > 0)
        strftime(text, sizeof text, is_people() ? "%Y-%m-%d %H:%M" : "%Y-%m-%dT%H:%M:%S%z", localtime_r(&when, &local));
    tune_table_text(t, text);
}

static void add_seconds(struct tune_table *t, double seconds)
{
    char text[32];
    long long s = (long long)(seconds + 0.5);
    snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    tune_table_shown(t, seconds, text);
}

/* "lr=2e-05 batch_size=8": what this one has of the options in which they differ. */
static void add_options(struct tune_table *t, const struct tune_run *r, const char *const *names, int count)
{
    char value[512], text[2048] = "";
    for (int i = 0; i < count; i++) {
        size_t n = strlen(text);
        if (tune_run_option(r, names[i], value, sizeof value))
            snprintf(text + n, sizeof text - n, "%s%s=%s", n ? " " : "", names[i], value);
    }
    tune_table_text(t, text);
}

static const char *const brief[] = {"name", "state", "step", "loss", "eval_loss", "best", "tokens/s", "started", "took", "options"};
static const char *const whole[] = {"name", "folder", "state", "reason", "step", "planned_steps", "loss", "eval_loss", "best_eval_loss",
                                    "best_eval_step", "tokens_per_s", "seconds", "started", "ended", "options"};
enum { BRIEF = sizeof brief / sizeof *brief, WHOLE = sizeof whole / sizeof *whole };

static void list_brief(struct tune_table *t, const struct tune_run *r)
{
    char step[48];
    tune_table_text(t, tune_run_state_name(r->state));
    snprintf(step, sizeof step, r->planned_steps ? "%" PRId64 "/%" PRId64 : "%" PRId64, r->step, r->planned_steps);
    tune_table_shown(t, (double)r->step, step);
    for (int i = 2; i < FIGURES - 1; i++) /* loss to tokens_per_s */
        if (strcmp(figures[i], "best_eval_step"))
            tune_table_number(t, figure(r, i), i < 5 ? "%.4f" : "%.0f");
    add_time(t, r->started_s);
    add_seconds(t, r->step ? r->seconds : NAN);
}

static void list_whole(struct tune_table *t, const struct tune_run *r)
{
    tune_table_text(t, r->folder);
    tune_table_text(t, tune_run_state_name(r->state));
    tune_table_text(t, r->reason);
    for (int i = 0; i < FIGURES; i++)
        add_number(t, figure(r, i));
    add_time(t, r->started_s);
    add_time(t, r->ended_s);
}

static double sort_key(const struct tune_run *r)
{
    for (int i = 0; i < FIGURES; i++)
        if (!strcmp(my.sort, figures[i]))
            return figure(r, i);
    return !strcmp(my.sort, "started") ? r->started_s : !strcmp(my.sort, "state") ? (double)r->state : 0;
}

/* Runs without the number come last, whichever way round. */
static int in_order(const void *a, const void *b)
{
    const struct tune_run *r = *(struct tune_run *const *)a, *s = *(struct tune_run *const *)b;
    double x = sort_key(r), y = sort_key(s);
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    int order = x < y ? -1 : x > y ? 1 : strcmp(r->name, s->name);
    return my.reverse ? -order : order;
}

/* Runs in none of the states asked for move behind the others; how many are left. */
static int by_state(struct tune_run **runs, int count)
{
    unsigned wanted = 0;
    int kept = 0;
    for (const char *at = my.state; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        int state = tune_run_state_from(at, n);
        if (state < 0) {
            tune_error_usage("--state: \"%.*s\" is no state; expected running, finished, stopped, "
                             "failed, diverged, unfinished, dead or broken", (int)n, at);
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

static void list(struct tune_run **runs, int all)
{
    const char **differing;
    int count = by_state(runs, all), n = MUST(tune_runs_differing(runs, count, &differing));
    struct tune_table *t = GET(tune_table_new(is_people() ? brief : whole, is_people() ? BRIEF : WHOLE));
    if (count > 0)
        qsort(runs, (size_t)count, sizeof *runs, in_order);
    for (int i = 0; i < count; i++) {
        tune_table_text(t, label(runs, count, i));
        (is_people() ? list_brief : list_whole)(t, runs[i]);
        add_options(t, runs[i], differing, n);
    }
    print(t);
    for (int i = 0; i < count && is_people(); i++)
        if (*runs[i]->reason)
            put_reason(stdout, runs, count, i);
    if (all == 0 && is_people())
        puts("# no runs in runs/; a recipe makes them there, or where its --output says");
    free(differing);
}

/* ---- show ---- */

/* A row of the table, its value to follow. */
static void add_row(struct tune_table *t, const char *run, const char *section, const char *name)
{
    tune_table_text(t, run);
    tune_table_text(t, section);
    tune_table_text(t, name);
}

static void add_value(struct tune_table *t, const char *run, const char *section, const char *name, const cJSON *value,
                      const char *source)
{
    char *text = NULL, sourced[4608];
    add_row(t, run, section, name);
    if (cJSON_IsNumber(value) && (!source || !is_people())) {
        add_number(t, value->valuedouble);
        return;
    }
    if (!cJSON_IsString(value) && !cJSON_IsNull(value))
        text = cJSON_PrintUnformatted(value);
    const char *shown = text ? text : cJSON_IsString(value) ? value->valuestring : "none";
    snprintf(sourced, sizeof sourced, source ? "%s  (%s)" : "%s", shown, source);
    tune_table_text(t, is_people() ? sourced : shown);
    cJSON_free(text);
}

/* Every member of the description: scalars and lists of them under "run", the members of objects, and the objects of lists, under the
 * member's name. */
static void add_members(struct tune_table *t, const char *name, const cJSON *run)
{
    const cJSON *sources = cJSON_GetObjectItemCaseSensitive(run, "sources"), *member, *inner;
    for (int sections = 0; sections < 2; sections++)
        cJSON_ArrayForEach(member, run) {
            bool section = cJSON_IsObject(member) || cJSON_IsObject(member->child);
            int number = 0;
            if (member == sources || section != sections)
                continue;
            if (!section)
                add_value(t, name, "run", member->string, member, NULL);
            else
                cJSON_ArrayForEach(inner, member) {
                    bool option = !strcmp(member->string, "options");
                    char text[16];
                    snprintf(text, sizeof text, "%d", ++number);
                    const cJSON *source = option ? cJSON_GetObjectItemCaseSensitive(sources, inner->string) : NULL;
                    add_value(t, name, member->string, inner->string ? inner->string : text, inner, cJSON_GetStringValue(source));
                }
        }
}

static void add_checkpoints(struct tune_table *t, const char *run, const struct tune_run *r)
{
    struct tune_run_checkpoint *c;
    int n = MUST(tune_run_checkpoints(r, &c));
    for (int i = 0; i < n; i++) {
        char name[48], text[96];
        snprintf(name, sizeof name, "checkpoint-%" PRId64, c[i].step);
        snprintf(text, sizeof text, "%.1f MB%s%s", (double)c[i].bytes / 1e6, c[i].best ? ", best" : "",
                 c[i].final ? ", final" : "");
        add_row(t, run, "checkpoints", name);
        tune_table_shown(t, (double)c[i].bytes, text);
    }
    free(c);
}

static void put_line(const char *lead, const char *text)
{
    fputs(lead, stdout);
    tune_print_line_of(stdout, text);
    putchar('\n');
}

static void put_pair(const char *name, const char *value)
{
    fputs("  ", stdout);
    tune_print_line_of(stdout, name);
    printf("%*s", strlen(name) < 28 ? 28 - (int)strlen(name) : 0, "");
    put_line(" ", value);
}

static void add_run(struct tune_table *t, const char *run, const struct tune_run *r)
{
    const struct {
        const char *name, *text;
    } state[] = {{"name", r->name}, {"folder", r->folder}, {"state", tune_run_state_name(r->state)}, {"reason", r->reason}};
    for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
        add_row(t, run, "state", state[i].name);
        tune_table_text(t, state[i].text);
    }
    for (int i = 0; i < FIGURES; i++) {
        add_row(t, run, "figures", figures[i]);
        add_number(t, figure(r, i));
    }
    const cJSON *property;
    cJSON_ArrayForEach(property, r->report)
        add_value(t, run, "report", property->string, property, NULL);
    add_checkpoints(t, run, r);
    add_members(t, run, r->run);
}

/* One table of all runs, so that what programs get is one document. */
static void show(struct tune_run *const *runs, int count)
{
    static const char *const names[] = {"run", "section", "name", "value"};
    struct tune_table *t = GET(tune_table_new(names, 4));
    for (int i = 0, row = 0; i < count; i++) {
        add_run(t, label(runs, count, i), runs[i]);
        for (int first = row; row < tune_table_rows(t) && is_people(); row++) {
            const char *section = tune_table_cell(t, row, 1), *value = tune_table_cell(t, row, 3);
            if (row == first || strcmp(section, tune_table_cell(t, row - 1, 1)))
                put_line(row ? "\n" : "", section);
            if (*value)
                put_pair(tune_table_cell(t, row, 2), value);
        }
    }
    if (!is_people())
        print(t);
    else
        tune_table_free(t);
}

/* ---- compare ---- */

/* The text of a member of the description, "host.class" of one within; "" without. */
static const char *setting(const struct tune_run *r, const char *path)
{
    char outer[64];
    const char *dot = strchr(path, '.');
    snprintf(outer, sizeof outer, "%.*s", dot ? (int)(dot - path) : (int)strlen(path), path);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->run, outer);
    if (dot)
        item = cJSON_GetObjectItemCaseSensitive(item, dot + 1);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void compare_settings(struct tune_table *t, struct tune_run *const *runs, int count)
{
    static const char *const paths[] = {"program", "version", "build.id", "host.name", "host.class", "weights", "weights_hash",
                                        "data.path", "data.fingerprint", "eval_data.path", "eval_data.fingerprint"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        bool same = true;
        for (int i = 1; i < count; i++)
            same = same && !strcmp(setting(runs[i], paths[p]), setting(runs[0], paths[p]));
        if (same)
            continue;
        tune_table_text(t, "setting");
        tune_table_text(t, paths[p]);
        for (int i = 0; i < count; i++)
            tune_table_text(t, setting(runs[i], paths[p]));
    }
}

static void compare_options(struct tune_table *t, struct tune_run *const *runs, int count)
{
    const char **names;
    char value[1024];
    int n = MUST(tune_runs_differing(runs, count, &names));
    for (int k = 0; k < n; k++) {
        tune_table_text(t, "option");
        tune_table_text(t, names[k]);
        for (int i = 0; i < count; i++)
            tune_table_text(t, tune_run_option(runs[i], names[k], value, sizeof value));
    }
    free(names);
}

/* The numbers of all reports, in the order they are first met. */
static void compare_reports(struct tune_table *t, struct tune_run *const *runs, int count)
{
    for (int i = 0; i < count; i++) {
        const cJSON *item;
        cJSON_ArrayForEach(item, runs[i]->report) {
            bool seen = !cJSON_IsNumber(item) || !item->string;
            for (int k = 0; k < i; k++)
                seen = seen || cJSON_HasObjectItem(runs[k]->report, item->string);
            if (seen)
                continue;
            tune_table_text(t, "report");
            tune_table_text(t, item->string);
            for (int k = 0; k < count; k++) {
                const cJSON *value = cJSON_GetObjectItemCaseSensitive(runs[k]->report, item->string);
                add_number(t, cJSON_IsNumber(value) ? value->valuedouble : NAN);
            }
        }
    }
}

/* The columns' names. A run that is called as a column before it, by chance or because it is there twice, has its folder's
 * name, or that with a number: of two members of one name, programs see one. */
static char **name_columns(struct tune_run *const *runs, int count)
{
    char text[TUNE_PATH_MAX + 16], **names = GET(calloc((size_t)count + 2, sizeof *names));
    names[0] = GET(strdup("what"));
    names[1] = GET(strdup("name"));
    for (int i = 2; i < count + 2; i++) {
        snprintf(text, sizeof text, "%s", label(runs, count, i - 2));
        for (int k = 0, tries = 1; k < i; k++)
            if (!strcmp(names[k], text)) {
                snprintf(text, sizeof text, tries > 1 ? "%s (%d)" : "%s", runs[i - 2]->folder, tries);
                tries++;
                k = -1; /* from the first one again */
            }
        names[i] = GET(strdup(text));
    }
    return names;
}

static void compare(struct tune_run *const *runs, int count)
{
    char **names = name_columns(runs, count);
    struct tune_table *t = GET(tune_table_new((const char *const *)names, count + 2));
    tune_table_text(t, "state");
    tune_table_text(t, "state");
    for (int i = 0; i < count; i++)
        tune_table_text(t, tune_run_state_name(runs[i]->state));
    compare_options(t, runs, count);
    compare_settings(t, runs, count);
    for (int f = 0; f < FIGURES; f++) {
        tune_table_text(t, "figure");
        tune_table_text(t, figures[f]);
        for (int i = 0; i < count; i++)
            add_number(t, figure(runs[i], f));
    }
    compare_reports(t, runs, count);
    print(t);
    for (int i = 0; i < count + 2; i++)
        free(names[i]);
    free(names);
}

/* ---- plot ---- */

enum { MOST = 32 }; /* metrics of one command */

struct drawing {
    struct tune_run **runs;
    int count, plots, curves;
    char metrics[MOST][48];
    int metric_count;
    struct tune_plot plot[MOST];
    struct tune_curve *curve;
};

static void read_metrics(struct drawing *d)
{
    for (const char *at = my.metric; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof *d->metrics || d->metric_count == MOST) {
            tune_error_usage("--metric %s: expected up to %d names separated by commas",
                             my.metric, MOST);
            tune_program_fail();
        }
        char *metric = d->metrics[d->metric_count];
        snprintf(metric, sizeof *d->metrics, "%.*s", (int)n, at);
        bool seen = false; /* named twice, it is drawn once */
        for (int i = 0; i < d->metric_count; i++)
            seen = seen || !strcmp(d->metrics[i], metric);
        d->metric_count += !seen;
        at += n;
    }
}

/* A figure that no run has is an error that lists those they have. With the default figures, only
 * loss must exist. */
static void check_metric(const struct drawing *d, const char *metric)
{
    char names[1024] = "";
    for (int i = 0; i < d->count; i++) {
        if (tune_run_series(d->runs[i], metric))
            return;
        for (int k = 0; k < d->runs[i]->series_count; k++) {
            size_t n = strlen(names);
            if (!strstr(names, d->runs[i]->series[k].name))
                snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", d->runs[i]->series[k].name);
        }
    }
    if (!tune_flags_given(&my.tune, "metric") && !strncmp(metric, "eval_", 5))
        return;
    tune_error_usage("no run has the metric \"%s\"; there are: %s", metric,
                     *names ? names : "none");
    tune_program_fail();
}

static const char *unit_of(const char *metric)
{
    static const char *const units[][2] = {{"loss", "nats/token"}, {"eval_loss", "nats/token"}, {"step_s", "s"},
                                           {"tokens_per_s", "tokens/s"}, {"tokens", "tokens"}, {"labels", "tokens"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(metric, units[i][0]))
            return units[i][1];
    return "";
}

/* All runs' curves of one metric, behind those of the plot that is last. */
static void add_curves(struct drawing *d, const char *metric, bool shared)
{
    struct tune_plot *p = &d->plot[d->plots - 1];
    check_metric(d, metric);
    for (int i = 0; i < d->count; i++) {
        const struct tune_run_series *s = tune_run_series(d->runs[i], metric);
        char text[TUNE_PATH_MAX + 64];
        if (!s)
            continue;
        snprintf(text, sizeof text, "%s%s%s", label(d->runs, d->count, i), shared ? " " : "", shared ? metric : "");
        d->curve[d->curves++] = (struct tune_curve){
            .label = GET(strdup(text)),
            .x = GET(tune_run_axis(d->runs[i], s, my.x)),
            .y = s->value,
            .count = s->count,
            .color = i,
            .dotted = !strncmp(metric, "eval_", 5) && s->count <= 200,
        };
        p->count++;
    }
}

/* Every metric is drawn once: there is room for no more. */
static void make_plots(struct drawing *d)
{
    bool done[MOST] = {false};
    for (int m = 0; m < d->metric_count; m++) {
        char other[64];
        int with = -1; /* eval_loss belongs to loss */
        snprintf(other, sizeof other, "eval_%s", d->metrics[m]);
        for (int k = 0; k < d->metric_count; k++)
            if (!done[k] && (!strcmp(d->metrics[k], other) ||
                             (!strncmp(d->metrics[m], "eval_", 5) && !strcmp(d->metrics[m] + 5, d->metrics[k]))))
                with = k;
        if (done[m])
            continue;
        bool shared = with >= 0;
        char title[128];
        snprintf(title, sizeof title, "%s%s%s", d->metrics[m], shared ? " and " : "", shared ? d->metrics[with] : "");
        d->plot[d->plots++] = (struct tune_plot){
            .title = GET(strdup(title)), .x_title = !strcmp(my.x, "time") ? "seconds" : my.x, .y_title = unit_of(d->metrics[m]),
            .curves = d->curve + d->curves, .smooth = my.smooth, .logarithmic = my.logarithmic,
        };
        add_curves(d, d->metrics[m], shared);
        if (shared)
            add_curves(d, d->metrics[with], shared);
        done[m] = done[shared ? with : m] = true;
    }
}

static int draw_svg(const void *drawing, FILE *out)
{
    const struct drawing *d = drawing;
    return tune_plot_svg(d->plot, d->plots, out);
}

static void plot(struct tune_run **runs, int count)
{
    struct drawing d = {.runs = runs, .count = count};
    struct tune_terminal how = drawing_terminal(my.width, my.height, my.ascii, my.color);
    if (count == 0) {
        tune_error_set("no runs in runs/ to plot; name run folders");
        tune_program_fail();
    }
    read_metrics(&d);
    d.curve = GET(calloc((size_t)count * MOST, sizeof *d.curve));
    make_plots(&d);
    for (int i = 0; i < d.plots && !drawing_is_stdout(my.svg); i++) {
        if (i > 0)
            putchar('\n');
        MUST(tune_plot_terminal(&d.plot[i], &how, stdout));
    }
    if (my.svg)
        MUST(drawing_write(my.svg, draw_svg, &d));
    for (int i = 0; i < count; i++)
        if (runs[i]->state == TUNE_RUN_BROKEN)
            put_reason(stderr, runs, count, i);
    for (int i = 0; i < d.plots; i++)
        free((char *)(uintptr_t)d.plot[i].title);
    for (int i = 0; i < d.curves; i++) {
        free((char *)(uintptr_t)d.curve[i].label);
        free((double *)(uintptr_t)d.curve[i].x);
    }
    free(d.curve);
}

int main(int argc, char **argv)
{
    struct tune_run **runs = NULL;
    int given;
    setlocale(LC_CTYPE, ""); /* whether the terminal shows UTF-8 */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "list, show, compare and plot runs, from their folders");
    const char *const *words = tune_flags_words(&my.tune, &given);
    if (!strcmp(my.command, "show") && given == 0) {
        tune_error_usage("show: which run? Give its folder, or its name in runs/");
        tune_program_fail();
    }
    int count = MUST(tune_runs_open(&runs, words, given));
    if (!strcmp(my.command, "list"))
        list(runs, count);
    else if (!strcmp(my.command, "compare"))
        compare(runs, count);
    else if (!strcmp(my.command, "plot"))
        plot(runs, count);
    else
        show(runs, count);
    tune_runs_free(runs, count);
    tune_flags_free(&my.tune);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tune_error_set("cannot write to standard output: %s", strerror(errno));
        tune_program_fail();
    }
    return 0;
}
