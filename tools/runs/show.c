/* show.c - `runs show`: everything about a run. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "runs.h"

/* Begin a row of the table; value and unit follow. */
static void add_row(struct tune_table *t, const char *run, const char *section, const char *name)
{
    tune_table_text(t, run);
    tune_table_text(t, section);
    tune_table_text(t, name);
}

static void add_text(struct tune_table *t, const cJSON *value, const char *source)
{
    bool plain = cJSON_IsString(value) || cJSON_IsNull(value);
    char sourced[4608], *text = plain ? NULL : cJSON_PrintUnformatted(value);
    const char *shown = text ? text : cJSON_IsString(value) ? value->valuestring : "none";
    snprintf(sourced, sizeof sourced, source ? "%s  (%s)" : "%s", shown, source);
    tune_table_text(t, runs_for_people() ? sourced : shown);
    cJSON_free(text);
}

static void add_value(struct tune_table *t, const char *run, const struct tune_run *r, const char *section, const cJSON *value,
                      const char *name, const char *source)
{
    bool number = cJSON_IsNumber(value), sized = !strcmp(section, "memory");
    add_row(t, run, section, name);
    if (number && (!source || !runs_for_people()))
        runs_add_number(t, value->valuedouble);
    else
        add_text(t, value, source);
    tune_table_text(t, !number || source ? NULL : sized ? "bytes" : runs_unit(r, name));
}

/* Every member of the description. Scalars and lists of them are under "run"; the members of objects
 * and the objects of lists are under the member's name. */
static void add_members(struct tune_table *t, const char *name, const struct tune_run *r)
{
    const cJSON *run = r->run, *sources = cJSON_GetObjectItemCaseSensitive(run, "sources"), *member, *inner;
    for (int sections = 0; sections < 2; sections++)
        cJSON_ArrayForEach(member, run) {
            bool section = cJSON_IsObject(member) || cJSON_IsObject(member->child);
            int number = 0;
            if (member == sources || !strcmp(member->string, "units") || section != sections)
                continue;
            if (!section)
                add_value(t, name, r, "run", member, member->string, NULL);
            else
                cJSON_ArrayForEach(inner, member) {
                    bool option = !strcmp(member->string, "options");
                    char text[16];
                    snprintf(text, sizeof text, "%d", ++number);
                    const cJSON *source = option ? cJSON_GetObjectItemCaseSensitive(sources, inner->string) : NULL;
                    add_value(t, name, r, member->string, inner, inner->string ? inner->string : text,
                              cJSON_GetStringValue(source));
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
        tune_table_text(t, runs_for_people() ? NULL : "bytes"); /* the text has its own unit */
    }
    free(c);
}

static void put_line(const char *lead, const char *text)
{
    fputs(lead, stdout);
    tune_print_line_of(stdout, text);
    putchar('\n');
}

static void put_pair(const char *name, const char *value, const char *unit)
{
    fputs("  ", stdout);
    tune_print_line_of(stdout, name);
    printf("%*s", strlen(name) < 28 ? 28 - (int)strlen(name) : 0, "");
    putchar(' ');
    tune_print_line_of(stdout, value);
    put_line(*unit ? " " : "", unit);
}

static void add_run(struct tune_table *t, const char *run, const struct tune_run *r)
{
    const struct {
        const char *name, *text;
    } state[] = {{"name", r->name}, {"folder", r->folder}, {"state", tune_run_state_name(r->state)}, {"reason", r->reason}};
    for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
        add_row(t, run, "state", state[i].name);
        tune_table_text(t, state[i].text);
        tune_table_text(t, NULL);
    }
    for (int i = 0; i < TUNE_RUN_FIGURES; i++) {
        add_row(t, run, "figures", tune_run_figures[i]);
        runs_add_number(t, tune_run_figure(r, i));
        tune_table_text(t, runs_unit(r, tune_run_figures[i]));
    }
    const cJSON *property;
    cJSON_ArrayForEach(property, r->report)
        if (property->string && tune_run_has(r, property->string))
            add_value(t, run, r, "report", property, property->string, NULL);
    add_checkpoints(t, run, r);
    add_members(t, run, r);
}

/* One table for all runs, so that programs get one document. */
void runs_show(struct tune_run *const *runs, int count)
{
    static const char *const names[] = {"run", "section", "name", "value", "unit"};
    struct tune_table *t = GET(tune_table_new(names, 5));
    for (int i = 0, row = 0; i < count; i++) {
        add_run(t, runs_label(runs, count, i), runs[i]);
        for (int first = row; row < tune_table_rows(t) && runs_for_people(); row++) {
            const char *section = tune_table_cell(t, row, 1), *value = tune_table_cell(t, row, 3);
            if (row == first || strcmp(section, tune_table_cell(t, row - 1, 1)))
                put_line(row ? "\n" : "", section);
            if (*value)
                put_pair(tune_table_cell(t, row, 2), value, tune_table_cell(t, row, 4));
        }
    }
    if (!runs_for_people())
        runs_print(t);
    else
        tune_table_free(t);
}
