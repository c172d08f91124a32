/* compare.c - `runs compare`: figures and differing options side by side. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../drawing.h"
#include "core/nearest.h"
#include "runs.h"
#include "views/text.h"

/* The rows that people see: those in which the runs differ. The names of the others, with their
 * values, stand below. */
struct compared {
    struct tune_table *table;
    struct tune_run *const *runs;
    int count;
    FILE *equal;
};

/* Begin a row with its first columns; the runs' columns follow. */
static void add_row(struct compared *c, const char *what, const char *name)
{
    char units[256] = "";
    for (int i = 0; i < c->count && (!strcmp(what, "figure") || !strcmp(what, "report")); i++) {
        const char *unit = runs_unit(c->runs[i], name);
        size_t n = strlen(units);
        if (!strstr(units, unit))
            snprintf(units + n, sizeof units - n, "%s%s", n ? ", " : "", unit);
    }
    if (!runs_for_people()) /* they see it by the order */
        tune_table_text(c->table, what);
    tune_table_text(c->table, name);
    tune_table_text(c->table, units);
}

/* Add a row of numbers. For people: if all are equal, it is noted instead. */
static void add_numbers(struct compared *c, const char *what, const char *name, const double *values)
{
    bool equal = runs_for_people() && c->count > 1;
    for (int i = 0; i < c->count; i++)
        equal = equal && (values[i] == values[0] || (isnan(values[i]) && isnan(values[0])));
    if (!equal) {
        add_row(c, what, name);
        for (int i = 0; i < c->count; i++)
            runs_add_number(c->table, values[i]);
    } else if (!isnan(values[0])) {
        fprintf(c->equal, "%s%s %.6g", ftell(c->equal) ? ", " : "", name, values[0]);
    }
}

static void compare_settings(struct compared *c)
{
    struct tune_run *const *runs = c->runs;
    int count = c->count;
    static const char *const paths[] = {"program", "version", "build.id", "host.name", "host.class", "weights", "weights_hash",
                                        "data.path", "data.fingerprint", "eval_data.path", "eval_data.fingerprint"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        bool same = true;
        for (int i = 1; i < count; i++)
            same = same && !strcmp(tune_run_member(runs[i], paths[p]), tune_run_member(runs[0], paths[p]));
        if (same)
            continue;
        add_row(c, "setting", paths[p]);
        for (int i = 0; i < count; i++)
            tune_table_text(c->table, tune_run_member(runs[i], paths[p]));
    }
}

static void compare_options(struct compared *c)
{
    const char **names;
    char value[1024];
    int n = MUST(tune_runs_differing(c->runs, c->count, &names));
    for (int k = 0; k < n; k++) {
        add_row(c, "option", names[k]);
        for (int i = 0; i < c->count; i++)
            tune_table_text(c->table, tune_run_option(c->runs[i], names[k], value, sizeof value));
    }
    free(names);
}

/* True if the run's report has that number, and the run had the device that it is about. */
static bool has(const struct tune_run *r, const char *property)
{
    return tune_run_has(r, property) &&
           cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(r->report, property));
}

/* Add the numbers of all reports, in order of first appearance. People see a figure once. */
static void compare_reports(struct compared *c)
{
    struct tune_run *const *runs = c->runs;
    double *values = GET(calloc((size_t)c->count + 1, sizeof *values));
    for (int i = 0; i < c->count; i++) {
        const cJSON *item;
        cJSON_ArrayForEach(item, runs[i]->report) {
            bool seen = !item->string || !has(runs[i], item->string) ||
                        (runs_for_people() && tune_name_find(tune_run_figures, TUNE_RUN_FIGURES, item->string) >= 0);
            for (int k = 0; k < i && !seen; k++)
                seen = has(runs[k], item->string);
            if (seen)
                continue;
            for (int k = 0; k < c->count; k++)
                values[k] = has(runs[k], item->string) ? cJSON_GetObjectItemCaseSensitive(runs[k]->report, item->string)->valuedouble : NAN;
            add_numbers(c, "report", item->string, values);
        }
    }
    free(values);
}

/* Choose the columns' names. A name that is taken is replaced by the folder's path, or that with a
 * number, because JSON members need different names. */
static char **name_columns(struct tune_run *const *runs, int count, int *first)
{
    static const char *const leading[] = {"what", "name", "unit"};
    char text[TUNE_PATH_MAX + 16], **names = GET(calloc((size_t)count + 3, sizeof *names));
    int n = 0;
    for (int i = runs_for_people(); i < 3; i++)
        names[n++] = GET(strdup(leading[i]));
    *first = n;
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s", runs_label(runs, count, i));
        for (int k = 0, tries = 1; k < n; k++)
            if (!strcmp(names[k], text)) {
                snprintf(text, sizeof text, tries > 1 ? "%s (%d)" : "%s", runs[i]->folder, tries);
                tries++;
                k = -1; /* start again with the first name */
            }
        names[n++] = GET(strdup(text));
    }
    return names;
}

void runs_compare(struct tune_run *const *runs, int count)
{
    int first;
    char **names = name_columns(runs, count, &first), *equal = NULL;
    size_t size;
    struct compared c = {.table = GET(tune_table_new((const char *const *)names, count + first)), .runs = runs, .count = count,
                         .equal = GET(open_memstream(&equal, &size))};
    double *values = GET(calloc((size_t)count + 1, sizeof *values));
    tune_table_keys(c.table, first);
    add_row(&c, "state", "state");
    for (int i = 0; i < count; i++)
        tune_table_text(c.table, tune_run_state_name(runs[i]->state));
    compare_options(&c);
    compare_settings(&c);
    for (int f = 0; f < TUNE_RUN_FIGURES; f++) {
        for (int i = 0; i < count; i++)
            values[i] = tune_run_figure(runs[i], f);
        add_numbers(&c, "figure", tune_run_figures[f], values);
    }
    compare_reports(&c);
    runs_print(c.table);
    MUST(fclose(c.equal) == 0 ? 0 : -1);
    if (*equal)
        tune_put_folded(stdout, "# equal in all: ", equal, drawing_columns(my.width, 0));
    free(equal);
    free(values);
    for (int i = 0; i < count + first; i++)
        free(names[i]);
    free(names);
}
