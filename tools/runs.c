/* runs.c - list, show, compare, plot, watch and export runs, from their folders alone.
 *
 *     build/runs list                                     the folders in runs/
 *     build/runs show first                               everything about runs/first
 *     build/runs compare first second                     figures and differing options side by side
 *     build/runs plot first second --svg loss.svg         curves: in the terminal, and as a picture
 *     build/runs list --where 'lr < 1e-4' --sort eval_loss
 *     build/runs watch                                    those that run, live
 *     build/runs export --format trackio --output out     their metrics for other programs
 *
 * A run is a folder, a name in runs/, or a folder of run folders. Nothing is written to them. The
 * commands are in tools/runs/. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "drawing.h"
#include "run_unit.h"
#include "runs/runs.h"

struct runs_flags my;

static const struct tune_option my_options[] = {
    {"<command>", TUNE_CHOICE, &my.command, NULL, "list|show|compare|plot|watch|export", "", "what to do"},
    {"<run...>", TUNE_STRING, &my.run, "", "", "",
     "run folders, names in runs/, or folders of run folders. Default: all in runs/; for watch, the "
     "running ones"},
    {"output-format", TUNE_CHOICE, &my.format, "table", "table|csv|json", "",
     "output of list, show and compare"},
    TUNE_OPTION_GROUP("which runs"),
    {"where", TUNE_STRING, &my.where, NULL, "", "",
     "only runs for which this is true, such as 'lr < 1e-4 and eval_loss < 2'. Names: figures, "
     "options, metrics (their last value) and numbers of the reports; name, program, state, started. "
     "Others than letters, digits and _ stand in back quotes: `rewards/margins`"},
    {"program", TUNE_STRING, &my.program, NULL, "", "", "only runs of these programs, with commas"},
    {"state", TUNE_STRING, &my.state, NULL, "", "",
     "only runs in these states, with commas: running, finished, stopped, failed, diverged, "
     "unfinished, stalled, dead, broken"},
    {"since", TUNE_STRING, &my.since, NULL, "", "",
     "only runs that started since then: 30m, 12h, 3d, 2w (so long ago), today, yesterday, 2026-11-26 "
     "or \"2026-11-26 14:30\""},
    TUNE_OPTION_GROUP("list"),
    {"sort", TUNE_STRING, &my.sort, "started", "", "",
     "what to sort by, lowest first: started, name, state, loss, eval_loss, best_eval_loss, "
     "tokens_per_s, seconds, or any option, metric or number of the reports"},
    {"reverse", TUNE_BOOL, &my.reverse, "false", "", "", "highest first"},
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
    TUNE_OPTION_GROUP("watch"),
    {"once", TUNE_BOOL, &my.once, "false", "", "", "print the runs as they are now, and end"},
    {"interval", TUNE_DOUBLE, &my.interval, "0", "[0,3600]", "seconds",
     "time between two drawings, at least 0.2; 0: 0.5 in a terminal, 10 elsewhere"},
    TUNE_OPTION_GROUP("export"),
    {"format", TUNE_CHOICE, &my.export_format, "csv", "csv|tensorboard|trackio", "",
     "csv: a file for each run. tensorboard: a folder with an event file for each run. trackio: a "
     "file for each run, which trackio.import_csv reads"},
    {"output", TUNE_STRING, &my.output, NULL, "", "", "folder to write to. It is made if needed"},
    {"overwrite", TUNE_BOOL, &my.overwrite, "false", "", "",
     "replace the files of an earlier export"},
    TUNE_OPTION_GROUP(""),
    {"width", TUNE_INT, &my.width, "0", "[0,4096]", "columns",
     "width of the output; 0: the terminal's"},
    {"height", TUNE_INT, &my.height, "16", "[3,400]", "rows", "height of a plot"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

bool runs_for_people(void)
{
    return !strcmp(my.format, "table");
}

void runs_print(struct tune_table *t)
{
    MUST(tune_table_print(t, my.format, runs_for_people() ? drawing_columns(my.width, 0) : 0, drawing_unicode(my.ascii) ? "\u2026" : "...", stdout));
    tune_table_free(t);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The label of a run: the last part of its folder, or the whole path if another run has the
 * same. The names of the runs are sorted once, and again when there are others. */
const char *runs_label(struct tune_run *const *runs, int count, int i)
{
    static const char **sorted;
    static struct tune_run *const *sorted_runs;
    static int sorted_count;
    if (sorted_runs != runs || sorted_count != count) {
        free(sorted);
        sorted = GET(tune_zeroed((size_t)count, sizeof *sorted, "the names of runs"));
        for (int k = 0; k < count; k++)
            sorted[k] = runs[k]->name;
        qsort(sorted, (size_t)count, sizeof *sorted, by_text);
        sorted_runs = runs, sorted_count = count;
    }
    const char *name = runs[i]->name, *const *at = bsearch(&name, sorted, (size_t)count, sizeof *sorted, by_text);
    bool shared = at && ((at > sorted && !strcmp(at[-1], *at)) || (at + 1 < sorted + count && !strcmp(at[1], *at)));
    return shared ? runs[i]->folder : runs[i]->name;
}

/* Print the reason for the run's state. */
void runs_put_reason(FILE *out, struct tune_run *const *runs, int count, int i)
{
    fputs("# ", out);
    tune_print_line_of(out, runs_label(runs, count, i));
    fputs(": ", out);
    tune_print_line_of(out, runs[i]->reason);
    fputc('\n', out);
}

void runs_add_number(struct tune_table *t, double value)
{
    tune_table_number(t, value, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.6g");
}

const char *runs_unit(const struct tune_run *r, const char *name)
{
    return run_unit(r, name);
}

/* Options that only some commands have. An option for another command is an error. */
static void check_options(void)
{
    static const char *const of[][2] = {
        {"where", "list show compare plot export"}, {"program", "list show compare plot export"}, {"state", "list show compare plot export"},
        {"since", "list show compare plot export"}, {"sort", "list"}, {"reverse", "list"}, {"output-format", "list show compare"},
        {"metric", "plot"}, {"x", "plot"}, {"svg", "plot"}, {"smooth", "plot"}, {"log", "plot"}, {"height", "plot"},
        {"color", "plot"}, {"once", "watch"}, {"interval", "watch"}, {"format", "export"}, {"output", "export"}, {"overwrite", "export"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (tune_flags_given(&my.tune, of[i][0]) && !strstr(of[i][1], my.command)) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "--%s does not go with %s; it is for: %s", of[i][0], my.command, of[i][1]);
            tune_program_fail();
        }
}

int main(int argc, char **argv)
{
    struct tune_run **runs = NULL;
    int given, code = 0;
    setlocale(LC_CTYPE, ""); /* whether the terminal shows UTF-8 */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "list, show, compare, plot, watch and export runs, from their folders");
    const char *const *words = tune_flags_words(&my.tune, &given);
    check_options();
    if (!strcmp(my.command, "show") && given == 0) {
        tune_error_usage("show: which run? Give its folder, or its name in runs/");
        tune_program_fail();
    }
    bool watch = !strcmp(my.command, "watch");
    int count = watch ? 0 : MUST(tune_runs_open(&runs, words, given));
    struct tune_run_query query = {.where = my.where, .program = my.program, .state = my.state, .since = my.since};
    int chosen = MUST(tune_runs_select(runs, count, &query));
    if (count > 0 && chosen == 0 && strcmp(my.command, "list")) {
        tune_error_set("none of %d runs meets --where, --program, --state and --since; runs list shows all", count);
        tune_program_fail();
    }
    if (watch)
        code = runs_watch(words, given);
    else if (!strcmp(my.command, "list"))
        runs_list(runs, chosen, count);
    else if (!strcmp(my.command, "compare"))
        runs_compare(runs, chosen);
    else if (!strcmp(my.command, "plot"))
        runs_plot(runs, chosen);
    else if (!strcmp(my.command, "export"))
        runs_export(runs, chosen);
    else
        runs_show(runs, chosen);
    tune_runs_free(runs, count);
    tune_flags_free(&my.tune);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tune_error_set("cannot write to standard output: %s", strerror(errno));
        tune_program_fail();
    }
    return code;
}
