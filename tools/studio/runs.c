/* runs.c - the list of runs, one run, and what changed. */
#include "runs.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "../run_unit.h"
#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/csv.h"
#include "jobs.h"
#include "runs/query.h"
#include "runs/run_folder.h"
#include "secrets.h"
#include "views/table.h"

enum { LISTED = 100000, COMPARED = 64 };

static void put_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        tune_cjson_put_number(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static void put_value(cJSON *object, const char *name, const struct tune_value *value)
{
    double number;
    if (value->type == TUNE_VALUE_TEXT)
        tune_cjson_put_text(object, name, value->text);
    else if (value->type == TUNE_VALUE_BOOL)
        cJSON_AddBoolToObject(object, name, value->boolean);
    else if (tune_value_number(value, &number))
        put_number(object, name, number);
    else
        cJSON_AddNullToObject(object, name);
}

int studio_color(const struct tune_run *r)
{
    uint32_t hash = 2166136261u; /* FNV-1a: the colour is the same in every list and after a restart */
    for (const char *c = r->folder; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (int)(hash % 8);
}

/* The seconds that are left at the mean pace so far; NAN: unknown, or the run has ended. */
static double left_s(const struct tune_run *r)
{
    bool known = r->state == TUNE_RUN_RUNNING && r->step > 0 && r->planned_steps > r->step;
    return known ? r->seconds / (double)r->step * (double)(r->planned_steps - r->step) : NAN;
}

/* The job that started the run, or wrote it last: {id, state, reason}; null: it was started in a shell. */
static cJSON *job_row(const struct studio_job_run *j)
{
    cJSON *job = j ? cJSON_CreateObject() : cJSON_CreateNull();
    if (!j)
        return job;
    tune_cjson_put_text(job, "id", j->id);
    tune_cjson_put_text(job, "state", j->state);
    tune_cjson_put_text(job, "reason", j->reason);
    return job;
}

cJSON *studio_row(const struct tune_run *r, const struct studio_job_runs *jobs)
{
    cJSON *row = cJSON_CreateObject();
    tune_cjson_put_text(row, "id", r->folder);
    tune_cjson_put_text(row, "name", r->name);
    tune_cjson_put_text(row, "folder", r->folder);
    tune_cjson_put_text(row, "program", tune_run_member(r, "program"));
    tune_cjson_put_text(row, "state", tune_run_state_name(r->state));
    tune_cjson_put_text(row, "reason", r->reason);
    put_number(row, "started", r->started_s > 0 ? r->started_s : NAN);
    put_number(row, "ended", r->ended_s > 0 ? r->ended_s : NAN);
    for (int i = 0; i < TUNE_RUN_FIGURES; i++)
        put_number(row, tune_run_figures[i], tune_run_figure(r, i));
    put_number(row, "eta_s", left_s(r));
    cJSON_AddNumberToObject(row, "color", studio_color(r));
    cJSON_AddItemToObject(row, "job", job_row(studio_job_of_run(jobs, r->folder)));
    return row;
}

struct tune_run *studio_run_id(struct studio *s, const struct studio_request *q, struct studio_reply *r, struct tune_run ***runs)
{
    const char *id = studio_value(q, "id");
    if (studio_index_lock(s, runs) < 0)
        return NULL;
    struct tune_run *run = studio_index_find(s, id);
    if (!run) {
        studio_index_unlock(s, *runs);
        studio_fail(r, 404, "%s: no such run below %s; GET /api/runs lists them", id, s->root);
    }
    return run;
}

int studio_run_list(struct studio *s, struct studio_reply *r, const char *ids, struct tune_run **chosen, int most)
{
    int n = 0;
    for (const char *at = ids; *at; at += *at == ',') {
        char folder[TUNE_PATH_MAX];
        size_t size = strcspn(at, ",");
        /* A comma in a folder's name is written %2C. */
        size_t k = 0;
        for (size_t i = 0; i < size && k + 1 < sizeof folder; i++) {
            bool comma = at[i] == '%' && i + 2 < size && at[i + 1] == '2' && (at[i + 2] == 'C' || at[i + 2] == 'c');
            folder[k++] = comma ? ',' : at[i];
            i += comma ? 2 : 0;
        }
        folder[k] = 0;
        at += size;
        if (size == 0)
            continue;
        struct tune_run *run = studio_index_find(s, folder);
        bool twice = false;
        for (int i = 0; i < n; i++)
            twice = twice || chosen[i] == run;
        if (run && twice)
            continue;
        if (n == most)
            return studio_fail(r, 400, "ids: more than %d runs; choose fewer at a time", most);
        if (!(chosen[n++] = run))
            return studio_fail(r, 404, "%s: no such run below %s; GET /api/runs lists them", folder, s->root);
    }
    return n > 0 ? n : studio_fail(r, 400, "ids: expected the ids of runs, with commas");
}

/* ---- the list ---- */

/* Refuse what takes regcomp gigabytes or regexec years: nested repetitions, backward references. */
static int check_regex(const char *text, struct studio_reply *r)
{
    enum { LONGEST = 250, REPEATED = 100 };
    int repetitions = 0;
    bool bad = strlen(text) > LONGEST;
    for (const char *at = text; *at && !bad; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            bad = *at >= '1' && *at <= '9';
        } else if (*at == '{') {
            const char *comma = strpbrk(at, ",}");
            bad = ++repetitions > 1 || strtol(at + 1, NULL, 10) > REPEATED || (comma && strtol(comma + 1, NULL, 10) > REPEATED);
        }
    }
    return !bad ? 0 : studio_fail(r, 400, "search: expected an expression of at most %d bytes with at most one {n,m}, up to %d, and without \\1 to \\9", LONGEST, REPEATED);
}

/* Choose the runs whose name, folder, program or an option holds the text or meets the expression. */
static int search(struct tune_run **runs, int count, const char *text, bool regular, struct studio_reply *r)
{
    regex_t regex;
    int kept = 0;
    if (regular)
        TRY(check_regex(text, r));
    if (regular && regcomp(&regex, text, REG_EXTENDED | REG_ICASE | REG_NOSUB))
        return studio_fail(r, 400, "search: \"%.250s\" is no regular expression (POSIX extended)", text);
    for (int i = 0; i < count; i++) {
        struct tune_run *run = runs[i];
        const char *const places[] = {run->folder, tune_run_member(run, "program"), tune_run_state_name(run->state), run->reason};
        bool met = false;
        for (size_t k = 0; k < sizeof places / sizeof *places && !met; k++)
            met = regular ? regexec(&regex, places[k], 0, NULL, 0) == 0 : strcasestr(places[k], text) != NULL;
        const cJSON *option;
        cJSON_ArrayForEach(option, cJSON_GetObjectItemCaseSensitive(run->run, "options"))
            if (!met && cJSON_IsString(option))
                met = regular ? regexec(&regex, option->valuestring, 0, NULL, 0) == 0 : strcasestr(option->valuestring, text) != NULL;
        if (!met)
            continue;
        runs[i] = runs[kept];
        runs[kept++] = run;
    }
    if (regular)
        regfree(&regex);
    return kept;
}

static cJSON *list_of(const char *const *names, int count)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
    return list;
}

enum { NAMES = 512 }; /* most columns */

/* Add the names in a list with commas that are not yet in names[NAMES]. Those beyond are counted in *left_out. */
static int more_names(char *list, const char **names, int count, int *left_out)
{
    char *rest = NULL;
    for (char *name = list ? strtok_r(list, ",", &rest) : NULL; name; name = strtok_r(NULL, ",", &rest)) {
        bool seen = false;
        for (int i = 0; i < count; i++)
            seen = seen || !strcmp(names[i], name);
        if (!seen && count < NAMES)
            names[count++] = name;
        else
            *left_out += !seen;
    }
    return count;
}

static cJSON *rows_of(struct tune_run *const *runs, int first, int end, const char *const *names, int count, const struct studio_job_runs *jobs)
{
    cJSON *rows = cJSON_CreateArray();
    for (int i = first; i < end; i++) {
        cJSON *row = studio_row(runs[i], jobs), *values = cJSON_AddObjectToObject(row, "values");
        for (int k = 0; k < count; k++) {
            char time[32];
            struct tune_value value = tune_run_value(runs[i], names[k], time);
            put_value(values, names[k], &value);
        }
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

/* Everything but the rows: what could be shown, and its units. */
static int put_names(cJSON *json, struct tune_run *const *runs, int count)
{
    const char **names = NULL;
    int n = tune_runs_names(runs, count, &names);
    TRY(n);
    cJSON_AddItemToObject(json, "columns", list_of(names, n));
    cJSON *units = cJSON_AddObjectToObject(json, "units");
    for (int k = 0; k < n; k++)
        for (int i = 0; i < count; i++) {
            const char *unit = run_unit(runs[i], names[k]);
            if (!*unit)
                continue;
            tune_cjson_put_text(units, names[k], unit);
            break;
        }
    free(names);
    return 0;
}

/* Choose and sort. Returns how many are chosen, or -1. */
static int choose(const struct studio_request *q, struct studio_reply *r, struct tune_run **runs, int all, char units[256])
{
    struct tune_run_query query = {studio_value(q, "where"), studio_value(q, "program"), studio_value(q, "state"), studio_value(q, "since")};
    const char *text = studio_value(q, "search"), *sort = studio_value(q, "sort");
    int count = tune_runs_select(runs, all, &query);
    if (count >= 0 && text && *text)
        count = search(runs, count, text, studio_bool(q, "regex", false), r);
    if (count >= 0 && tune_runs_sort(runs, count, sort ? sort : "started", studio_bool(q, "reverse", !sort), run_unit, units) < 0)
        count = -1;
    return count;
}

static int list_runs(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct tune_run **runs;
    const char **differing = NULL, *names[NAMES];
    struct studio_job_runs jobs;
    char units[256] = "", *columns = NULL;
    TRY(studio_job_runs(&jobs));
    int all = studio_index_lock(s, &runs), status = -1;
    if (all < 0) {
        studio_job_runs_free(&jobs);
        return -1;
    }
    struct studio_index_state state = studio_index_state(s);
    int count = choose(q, r, runs, all, units);
    int leading_out = 0; /* runs with a file that is a link out of the root */
    for (int i = 0; i < all; i++)
        leading_out += runs[i]->leads_out;
    int first = (int)studio_number(q, "offset", 0), limit = (int)studio_number(q, "limit", LISTED);
    int n = count < 0 ? -1 : tune_runs_differing(runs, count, &differing);
    if (n >= 0) {
        cJSON *json = cJSON_CreateObject();
        int shown = 0, left_out = n > NAMES ? n - NAMES : 0, end = count - first < limit ? count : first + limit;
        for (; shown < n && shown < NAMES; shown++)
            names[shown] = differing[shown];
        columns = studio_value(q, "columns") ? strdup(studio_value(q, "columns")) : NULL;
        shown = more_names(columns, names, shown, &left_out);
        cJSON_AddNumberToObject(json, "columns_left_out", left_out);
        cJSON_AddItemToObject(json, "runs", rows_of(runs, first, end, names, shown, &jobs));
        cJSON_AddNumberToObject(json, "total", all);
        cJSON_AddNumberToObject(json, "selected", count);
        cJSON_AddBoolToObject(json, "indexed", state.complete);
        cJSON_AddNumberToObject(json, "folders", state.folders);
        cJSON_AddNumberToObject(json, "folders_too_deep", state.too_deep);
        cJSON_AddNumberToObject(json, "folders_linked", state.links);
        cJSON_AddNumberToObject(json, "folders_not_utf8", state.odd_names);
        cJSON_AddNumberToObject(json, "leading_out", leading_out);
        tune_cjson_put_whole(json, "token", (int64_t)state.version);
        tune_cjson_put_text(json, "sort_units", units);
        cJSON_AddItemToObject(json, "differing", list_of(differing, n < NAMES ? n : NAMES));
        status = put_names(json, runs, all);
        studio_hide(json);
        if (status == 0)
            status = studio_put_json(r, json);
        else
            cJSON_Delete(json);
    }
    free(differing);
    free(columns);
    studio_index_unlock(s, runs);
    studio_job_runs_free(&jobs);
    return status;
}

static void put_cell(FILE *out, bool first, const struct tune_run *r, const char *name)
{
    char time[32], text[TUNE_DECIMAL_SIZE];
    struct tune_value value = tune_run_value(r, name, time);
    double number;
    if (!first)
        fputc(',', out);
    if (value.type == TUNE_VALUE_TEXT)
        tune_csv_put(out, studio_shown(name, value.text));
    else if (value.type == TUNE_VALUE_BOOL)
        fputs(value.boolean ? "true" : "false", out);
    else if (tune_value_number(&value, &number) && isfinite(number))
        fputs(tune_number_text(text, number), out);
}

static int list_csv(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    static const char *const always[] = {"name", "folder", "program", "state", "reason", "started"};
    struct tune_run **runs;
    const char **differing = NULL, *names[NAMES];
    char units[256] = "";
    int n = 0, all = studio_index_lock(s, &runs);
    TRY(all);
    int count = choose(q, r, runs, all, units), more = count < 0 ? -1 : tune_runs_differing(runs, count, &differing);
    char *columns = studio_value(q, "columns") ? strdup(studio_value(q, "columns")) : NULL;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        names[n++] = always[i];
    for (int i = 0; i < TUNE_RUN_FIGURES; i++)
        names[n++] = tune_run_figures[i];
    int left_out = n + more > NAMES ? n + more - NAMES : 0;
    for (int i = 0; i < more && n < NAMES; i++)
        names[n++] = differing[i];
    n = more_names(columns, names, n, &left_out);
    if (left_out > 0)
        more = studio_fail(r, 413, "%d columns; at most %d can be given. Choose fewer runs or columns", NAMES + left_out, NAMES);
    for (int k = 0; more >= 0 && k < n; k++) {
        fputs(k ? "," : "", r->out);
        tune_csv_put(r->out, names[k]);
    }
    for (int i = 0; more >= 0 && i < count; i++)
        for (int k = 0; k < n; k++) {
            if (k == 0)
                fputc('\n', r->out);
            put_cell(r->out, k == 0, runs[i], names[k]);
        }
    if (more >= 0)
        fputc('\n', r->out);
    free(differing);
    free(columns);
    studio_index_unlock(s, runs);
    snprintf(r->name, sizeof r->name, "runs.csv");
    return more < 0 ? -1 : 0;
}

/* ---- what changed ---- */

static void add_removed(void *list, const char *folder)
{
    cJSON_AddItemToArray(list, cJSON_CreateString(folder));
}

static int list_changes(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct tune_run **runs;
    struct studio_job_runs jobs;
    uint64_t since = (uint64_t)studio_number(q, "since", 0);
    TRY(studio_job_runs(&jobs));
    uint32_t version = studio_job_runs_version(&jobs);
    studio_job_runs_free(&jobs);
    int count = studio_index_lock_fresh(s, &runs);
    TRY(count);
    struct studio_index_state state = studio_index_state(s);
    cJSON *json = cJSON_CreateObject();
    tune_cjson_put_whole(json, "token", (int64_t)state.version);
    tune_cjson_put_whole(json, "jobs", version); /* of the rows' jobs */
    cJSON_AddBoolToObject(json, "indexed", state.complete);
    cJSON *changed = cJSON_AddArrayToObject(json, "changed"), *removed = cJSON_AddArrayToObject(json, "removed");
    bool known = since <= state.version && studio_index_removed(s, since, add_removed, removed);
    for (int i = 0; i < count; i++)
        if (studio_index_version(s, runs[i]) > since || !known)
            cJSON_AddItemToArray(changed, cJSON_CreateString(runs[i]->folder));
    cJSON_AddBoolToObject(json, "all", !known); /* the token is of another server, or too old */
    studio_index_unlock(s, runs);
    return studio_put_json(r, json);
}

/* ---- one run ---- */

static void put_metrics(cJSON *json, const struct tune_run *r)
{
    cJSON *list = cJSON_AddArrayToObject(json, "metrics");
    for (int i = 0; i < r->series_count; i++) {
        const struct tune_run_series *s = &r->series[i];
        cJSON *one = cJSON_CreateObject();
        tune_cjson_put_text(one, "name", s->name);
        tune_cjson_put_text(one, "unit", run_unit(r, s->name));
        put_number(one, "last", s->count ? s->value[s->count - 1] : NAN);
        put_number(one, "step", s->count ? s->step[s->count - 1] : NAN);
        cJSON_AddItemToArray(list, one);
    }
}

static int put_checkpoints(cJSON *json, const struct tune_run *r)
{
    struct tune_run_checkpoint *c;
    int n = tune_run_checkpoints(r, &c);
    TRY(n);
    cJSON *list = cJSON_AddArrayToObject(json, "checkpoints");
    for (int i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();
        tune_cjson_put_whole(one, "step", c[i].step);
        tune_cjson_put_whole(one, "bytes", c[i].bytes);
        cJSON_AddBoolToObject(one, "best", c[i].best);
        cJSON_AddBoolToObject(one, "final", c[i].final);
        cJSON_AddItemToArray(list, one);
    }
    free(c);
    return 0;
}

/* The run's row. The reason of its job is whole there, with the last lines of its log. */
static cJSON *whole_row(const struct tune_run *run, const struct studio_job_runs *jobs)
{
    cJSON *json = studio_row(run, jobs), *row = cJSON_GetObjectItemCaseSensitive(json, "job");
    cJSON *job = cJSON_IsObject(row) ? studio_job_read(job_text(row, "id")) : NULL;
    if (job)
        tune_cjson_put_text(row, "reason", job_text(job, "reason"));
    else
        tune_error_clear(); /* none, or it was just deleted */
    cJSON_Delete(job);
    return json;
}

static int get_run(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct studio_job_runs jobs;
    TRY(studio_job_runs(&jobs));
    struct tune_run **runs, *run = studio_run_id(s, q, r, &runs);
    cJSON *json = run ? whole_row(run, &jobs) : NULL;
    studio_job_runs_free(&jobs);
    if (!run)
        return -1;
    tune_cjson_put_whole(json, "version", (int64_t)studio_index_version(s, run));
    put_metrics(json, run);
    char path[TUNE_PATH_MAX];
    cJSON *whole = tune_path(path, "%s/" TUNE_RUN_JSON, run->folder) == 0 ? tune_cjson_read_within(path, s->root, TUNE_RUN_JSON_MOST) : NULL;
    if (!whole)
        tune_error_clear(); /* the row has the state and the reason */
    cJSON_AddItemToObject(json, "run", whole ? whole : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "report", run->report ? cJSON_Duplicate(run->report, true) : cJSON_CreateNull());
    int status = put_checkpoints(json, run);
    if (status < 0 && !tune_file_is_folder(run->folder))
        studio_fail(r, 404, "%s: this run was removed just now", run->folder);
    studio_index_unlock(s, runs);
    studio_hide(json);
    if (status == 0)
        return studio_put_json(r, json);
    cJSON_Delete(json);
    return -1;
}

/* ---- several runs ---- */

static void put_row(cJSON *list, const char *name, const char *unit, cJSON *values)
{
    cJSON *row = cJSON_CreateObject();
    tune_cjson_put_text(row, "name", name);
    tune_cjson_put_text(row, "unit", unit);
    cJSON_AddItemToObject(row, "values", values);
    cJSON_AddItemToArray(list, row);
}

static void put_figures(cJSON *list, struct tune_run *const *runs, int count)
{
    for (int f = 0; f < TUNE_RUN_FIGURES; f++) {
        cJSON *values = cJSON_CreateArray();
        bool any = false;
        for (int i = 0; i < count; i++) {
            double value = tune_run_figure(runs[i], f);
            any = any || isfinite(value);
            cJSON_AddItemToArray(values, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
        }
        if (any)
            put_row(list, tune_run_figures[f], run_unit(runs[0], tune_run_figures[f]), values);
        else
            cJSON_Delete(values);
    }
}

/* The numbers of all reports, in order of first appearance. */
static void put_reports(cJSON *list, struct tune_run *const *runs, int count)
{
    for (int i = 0; i < count; i++) {
        const cJSON *item;
        cJSON_ArrayForEach(item, runs[i]->report) {
            bool seen = !item->string || !cJSON_IsNumber(item) || !tune_run_has(runs[i], item->string);
            for (int k = 0; k < i && !seen; k++)
                seen = cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(runs[k]->report, item->string));
            if (seen)
                continue;
            cJSON *values = cJSON_CreateArray();
            for (int k = 0; k < count; k++) {
                const cJSON *other = cJSON_GetObjectItemCaseSensitive(runs[k]->report, item->string);
                cJSON_AddItemToArray(values, cJSON_IsNumber(other) ? cJSON_CreateNumber(other->valuedouble) : cJSON_CreateNull());
            }
            put_row(list, item->string, run_unit(runs[i], item->string), values);
        }
    }
}

/* The names of all their metrics, in order of first appearance. */
static void put_names_of(cJSON *list, struct tune_run *const *runs, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < runs[i]->series_count; k++) {
            bool seen = false;
            for (int j = 0; j < i && !seen; j++)
                seen = tune_run_series(runs[j], runs[i]->series[k].name) != NULL;
            if (!seen)
                cJSON_AddItemToArray(list, cJSON_CreateString(runs[i]->series[k].name));
        }
}

static int compare_runs(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct tune_run **runs, *chosen[COMPARED];
    const char **names = NULL;
    struct studio_job_runs jobs;
    char text[1024];
    TRY(studio_job_runs(&jobs));
    if (studio_index_lock(s, &runs) < 0) {
        studio_job_runs_free(&jobs);
        return -1;
    }
    int count = studio_run_list(s, r, studio_value(q, "ids"), chosen, COMPARED);
    int n = count < 0 ? -1 : tune_runs_differing(chosen, count, &names);
    if (n < 0) {
        studio_index_unlock(s, runs);
        studio_job_runs_free(&jobs);
        return -1;
    }
    cJSON *json = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(json, "runs"), *options = cJSON_AddArrayToObject(json, "options");
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(rows, studio_row(chosen[i], &jobs));
    for (int k = 0; k < n; k++) {
        cJSON *values = cJSON_CreateArray();
        for (int i = 0; i < count; i++) {
            const char *value = tune_run_option(chosen[i], names[k], text, sizeof text);
            cJSON_AddItemToArray(values, value ? cJSON_CreateString(studio_shown(names[k], value)) : cJSON_CreateNull());
        }
        put_row(options, names[k], run_unit(chosen[0], names[k]), values);
    }
    put_figures(cJSON_AddArrayToObject(json, "figures"), chosen, count);
    put_reports(cJSON_AddArrayToObject(json, "report"), chosen, count);
    put_names_of(cJSON_AddArrayToObject(json, "metrics"), chosen, count);
    free(names);
    studio_index_unlock(s, runs);
    studio_job_runs_free(&jobs);
    return studio_put_json(r, json);
}

#define WHICH \
    {"where", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only runs for which this is true, such as lr < 1e-4 and eval_loss < 2"}, \
    {"program", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only runs of these programs, with commas"}, \
    {"state", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only runs in these states, with commas"}, \
    {"since", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only runs that started since then: 30m, 12h, 3d, 2w, today, 2026-11-26"}, \
    {"search", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only runs with this text in their folder, program, state or options"}, \
    {"regex", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "search is a regular expression (POSIX extended), with at most one {n,m} and no \\1"}, \
    {"sort", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "figure, option or metric to sort by, lowest first. Default: the newest first"}, \
    {"reverse", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "highest first"}
#define ID {"id", STUDIO_IN_PATH, STUDIO_TEXT, true, .help = "the run's folder, relative to the root"}

const struct studio_route studio_run_routes[] = {
    {"GET", "/api/runs", "listRuns", "run list", "The runs below the root.", "application/json", list_runs,
     {WHICH,
      {"columns", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "options, metrics or report numbers to add to each run's values, with commas"},
      {"offset", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = 1e9, .help = "rows to leave out at the beginning"},
      {"limit", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = LISTED, .help = "most rows"}}},
    {"GET", "/api/runs/table.csv", "listRunsCsv", NULL, "The runs below the root as CSV.", "text/csv; charset=utf-8", list_csv,
     {WHICH, {"columns", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "more options, metrics or report numbers, with commas"}}},
    {"GET", "/api/runs/changes", "listChanges", NULL, "The runs that changed since a token of an earlier answer.", "application/json", list_changes,
     {{"since", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = 9e15, .help = "the token; 0: all"}}},
    {"GET", "/api/runs/compare", "compareRuns", "run compare", "Options that differ between runs, and their figures.", "application/json", compare_runs,
     {{"ids", STUDIO_IN_QUERY, STUDIO_TEXT, true, .help = "ids of runs, with commas"}}},
    {"GET", "/api/runs/{id}", "getRun", "run show", "One run: figures, description, report, checkpoints.", "application/json", get_run, {ID}},
    {0},
};
