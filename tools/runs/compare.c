/* compare.c - `runs compare`: figures and differing options side by side. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"

enum { FIRST = 3 }; /* columns before the runs' columns */

/* Begin a row with its first columns; the runs' columns follow. */
static void add_row(struct tune_table *t, const char *what, const char *name)
{
    tune_table_text(t, what);
    tune_table_text(t, name);
    tune_table_text(t, !strcmp(what, "figure") || !strcmp(what, "report") ? runs_unit(name) : NULL);
}

static void compare_settings(struct tune_table *t, struct tune_run *const *runs, int count)
{
    static const char *const paths[] = {"program", "version", "build.id", "host.name", "host.class", "weights", "weights_hash",
                                        "data.path", "data.fingerprint", "eval_data.path", "eval_data.fingerprint"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        bool same = true;
        for (int i = 1; i < count; i++)
            same = same && !strcmp(runs_member(runs[i], paths[p]), runs_member(runs[0], paths[p]));
        if (same)
            continue;
        add_row(t, "setting", paths[p]);
        for (int i = 0; i < count; i++)
            tune_table_text(t, runs_member(runs[i], paths[p]));
    }
}

static void compare_options(struct tune_table *t, struct tune_run *const *runs, int count)
{
    const char **names;
    char value[1024];
    int n = MUST(tune_runs_differing(runs, count, &names));
    for (int k = 0; k < n; k++) {
        add_row(t, "option", names[k]);
        for (int i = 0; i < count; i++)
            tune_table_text(t, tune_run_option(runs[i], names[k], value, sizeof value));
    }
    free(names);
}

/* True if the run's report has that number, and the run had the device that it is about. */
static bool has(const struct tune_run *r, const char *property)
{
    return runs_has(r, property) &&
           cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(r->report, property));
}

/* Collect the names of numbers in all reports, in order of first appearance. */
static void compare_reports(struct tune_table *t, struct tune_run *const *runs, int count)
{
    for (int i = 0; i < count; i++) {
        const cJSON *item;
        cJSON_ArrayForEach(item, runs[i]->report) {
            bool seen = !item->string || !has(runs[i], item->string);
            for (int k = 0; k < i && !seen; k++)
                seen = has(runs[k], item->string);
            if (seen)
                continue;
            add_row(t, "report", item->string);
            for (int k = 0; k < count; k++) {
                const cJSON *value = cJSON_GetObjectItemCaseSensitive(runs[k]->report, item->string);
                runs_add_number(t, has(runs[k], item->string) ? value->valuedouble : NAN);
            }
        }
    }
}

/* Choose the columns' names. A name that is taken is replaced by the folder's path, or that with a
 * number, because JSON members need different names. */
static char **name_columns(struct tune_run *const *runs, int count)
{
    char text[TUNE_PATH_MAX + 16], **names = GET(calloc((size_t)count + FIRST, sizeof *names));
    names[0] = GET(strdup("what"));
    names[1] = GET(strdup("name"));
    names[2] = GET(strdup("unit"));
    for (int i = FIRST; i < count + FIRST; i++) {
        snprintf(text, sizeof text, "%s", runs_label(runs, count, i - FIRST));
        for (int k = 0, tries = 1; k < i; k++)
            if (!strcmp(names[k], text)) {
                snprintf(text, sizeof text, tries > 1 ? "%s (%d)" : "%s", runs[i - FIRST]->folder, tries);
                tries++;
                k = -1; /* start again with the first name */
            }
        names[i] = GET(strdup(text));
    }
    return names;
}

void runs_compare(struct tune_run *const *runs, int count)
{
    char **names = name_columns(runs, count);
    struct tune_table *t = GET(tune_table_new((const char *const *)names, count + FIRST));
    add_row(t, "state", "state");
    for (int i = 0; i < count; i++)
        tune_table_text(t, tune_run_state_name(runs[i]->state));
    compare_options(t, runs, count);
    compare_settings(t, runs, count);
    for (int f = 0; f < RUNS_FIGURES; f++) {
        add_row(t, "figure", runs_figures[f]);
        for (int i = 0; i < count; i++)
            runs_add_number(t, runs_figure(runs[i], f));
    }
    compare_reports(t, runs, count);
    runs_print(t);
    for (int i = 0; i < count + FIRST; i++)
        free(names[i]);
    free(names);
}
