/* task_report.c - the table of tasks and groups, the report and the figure. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/version.h"
#include "evaluators/result_files.h"
#include "evaluators/tasks/parts.h"
#include "files/cjson.h"
#include "runs/run_folder.h"
#include "views/table.h"

/* ---- the table ---- */
struct line {
    const char *name, *version, *filter, *metric;
    char shots[24];
    struct task_result result;
    int depth;
};

static int depth_of(const struct tune_tasks *all, int group)
{
    int depth = 0;
    for (; group >= 0; group = all->groups[group].parent)
        depth++;
    return depth;
}

static void add_interval(struct tune_table *t, const struct tune_estimate *e)
{
    char text[64] = "";
    if (isfinite(e->low) && isfinite(e->high))
        snprintf(text, sizeof text, "%.4f to %.4f", e->low, e->high);
    tune_table_text(t, text);
}

static void add_comparison(struct tune_table *t, const struct task_result *r, bool wins)
{
    const struct tune_comparison *c = &r->compared;
    char text[96] = "";
    tune_table_number(t, r->side[1].value, "%.4f");
    tune_table_number(t, c->difference.value, "%+.4f");
    add_interval(t, &c->difference);
    if (wins)
        snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 "/%" PRId64, c->wins, c->losses, c->ties);
    tune_table_text(t, text);
    snprintf(text, sizeof text, c->p < 0.001 ? "%.1e" : "%.3f", c->p);
    tune_table_text(t, isnan(c->p) ? "" : text);
}

static void add_line(struct tune_table *t, const struct tune_tasks *all, const struct line *l, bool first)
{
    char name[200] = "";
    const struct task_result *r = &l->result;
    if (first)
        snprintf(name, sizeof name, "%*s%s%s", l->depth, "", l->depth ? "- " : "", l->name);
    tune_table_text(t, name);
    tune_table_text(t, first ? l->version : "");
    tune_table_text(t, l->filter);
    tune_table_text(t, l->shots);
    tune_table_text(t, l->metric);
    tune_table_number(t, r->side[0].value, "%.4f");
    if (all->sides > 1) {
        add_comparison(t, r, r->compared.wins + r->compared.losses + r->compared.ties > 0);
        return;
    }
    tune_table_text(t, l->metric[0] ? "\xC2\xB1" : "");
    if (isnan(r->side[0].error))
        tune_table_text(t, l->metric[0] ? "N/A" : "");
    else
        tune_table_number(t, r->side[0].error, "%.4f");
}

static void add_task(struct tune_table *table, const struct tune_tasks *all, const struct task *t)
{
    struct line l = {.name = t->alias, .version = t->version, .depth = depth_of(all, t->group)};
    snprintf(l.shots, sizeof l.shots, "%" PRId64, t->shots);
    for (int m = 0; m < t->metric_count; m++)
        for (int f = 0; f < t->filter_count; f++) {
            l.metric = tune_task_metrics[t->metrics[m].kind].name;
            l.filter = t->filters[f].name;
            l.result = t->results[f * t->metric_count + m];
            add_line(table, all, &l, m == 0 && f == 0);
        }
}

/* The examples that all tasks of a group have; "": they differ. */
static void common_shots(const struct tune_tasks *all, int group, char *text, size_t size)
{
    int64_t shots = -1;
    for (int i = 0; i < all->count; i++)
        if (tune_task_group_has(all, group, i))
            shots = shots == -1 || shots == all->tasks[i].shots ? all->tasks[i].shots : -2;
    *text = 0;
    if (shots >= 0)
        snprintf(text, size, "%" PRId64, shots);
}

/* Filters of a group's metric: those that it names, or those that its tasks have. */
static int filters_of(const struct tune_tasks *all, int group, int mean, const char *names[TASK_FILTERS])
{
    const struct task_group *g = &all->groups[group];
    int count = 0;
    for (int i = 0; i < g->means[mean].filter_count; i++)
        names[count++] = g->means[mean].filters[i];
    for (int i = 0; i < all->count && g->means[mean].filter_count == 0; i++)
        for (int f = 0; tune_task_group_has(all, group, i) && f < all->tasks[i].filter_count; f++) {
            bool new = count < TASK_FILTERS;
            for (int k = 0; k < count; k++)
                new = new && strcmp(names[k], all->tasks[i].filters[f].name) != 0;
            if (new)
                names[count++] = all->tasks[i].filters[f].name;
        }
    return count;
}

/* Call back for each value of a group. Returns how many there are. */
static int each_mean(const struct tune_tasks *all, int group, bool (*call)(void *to, struct line *l, int64_t rows, bool first), void *to)
{
    const struct task_group *g = &all->groups[group];
    struct line l = {.name = g->alias, .version = g->version, .depth = depth_of(all, g->parent)};
    int count = 0;
    common_shots(all, group, l.shots, sizeof l.shots);
    for (int m = 0; m < g->mean_count; m++) {
        const char *names[TASK_FILTERS];
        int filters = filters_of(all, group, m, names);
        for (int f = 0; f < filters; f++) {
            int64_t rows;
            l.metric = tune_task_metrics[g->means[m].kind].name;
            l.filter = names[f];
            if (!tune_task_group_mean(all, group, m, names[f], &l.result, &rows))
                continue;
            if (!call(to, &l, rows, count++ == 0))
                return -1;
        }
    }
    return count;
}

struct table_of {
    struct tune_table *table;
    const struct tune_tasks *all;
};

static bool add_mean(void *to, struct line *l, int64_t rows, bool first)
{
    struct table_of *t = to;
    (void)rows;
    add_line(t->table, t->all, l, first);
    return true;
}

static int print_table(const struct tune_tasks *all, FILE *out)
{
    static const char *const alone[] = {"task", "version", "filter", "n-shot", "metric", "value", "", "error"};
    const char *const both[] = {"task", "version", "filter", "n-shot", "metric", all->names[0], all->names[1], "difference",
                                "its 95 % interval", "better/worse/same", "p"};
    struct tune_table *t = all->sides > 1 ? tune_table_new(both, 11) : tune_table_new(alone, 8);
    struct table_of to = {t, all};
    if (!t)
        return -1;
    for (int i = 0; i < all->order_count; i++) {
        int place = all->order[i].place;
        if (all->order[i].task)
            add_task(t, all, &all->tasks[place]);
        else if (each_mean(all, place, add_mean, &to) == 0) {
            struct line l = {.name = all->groups[place].alias, .version = all->groups[place].version, .filter = "", .metric = "",
                             .result = {.side = {{.value = NAN, .error = NAN}, {.value = NAN}},
                                        .compared = {.difference = {.value = NAN, .low = NAN}, .p = NAN}},
                             .depth = depth_of(all, all->groups[place].parent)};
            add_line(t, all, &l, true);
        }
    }
    int status = tune_table_print(t, "table", 0, "", out);
    tune_table_free(t);
    return status;
}

/* ---- the report ---- */
static bool put_estimate(cJSON *to, const char *before, const char *key, const struct tune_estimate *e)
{
    return tune_result_put(to, before, key, "", e->value) && tune_result_put(to, before, key, "_error", e->error) &&
           tune_result_put(to, before, key, "_low", e->low) && tune_result_put(to, before, key, "_high", e->high);
}

/* TASK_METRIC, or TASK_METRIC_FILTER where there are filters. */
static void name_of(char *key, size_t size, const char *name, const char *metric, const char *filter)
{
    bool plain = !strcmp(filter, "none");
    snprintf(key, size, "%s_%s%s%s", name, metric, plain ? "" : "_", plain ? "" : filter);
}

static bool put_result(cJSON *to, const char *name, const char *metric, const char *filter, int sides, const struct task_result *r)
{
    char key[300];
    const struct tune_comparison *c = &r->compared;
    name_of(key, sizeof key, name, metric, filter);
    bool good = put_estimate(to, "", key, &r->side[0]);
    if (sides == 1 || !good)
        return good;
    return put_estimate(to, "base_", key, &r->side[1]) && put_estimate(to, "difference_", key, &c->difference) &&
           tune_result_put(to, "wins_", key, "", (double)c->wins) && tune_result_put(to, "losses_", key, "", (double)c->losses) &&
           tune_result_put(to, "ties_", key, "", (double)c->ties) && tune_result_put(to, "p_", key, "", c->p);
}

static bool put_rows(cJSON *to, const char *name, int64_t rows)
{
    char key[300];
    snprintf(key, sizeof key, "%s_rows", name);
    return tune_cjson_put_whole(to, key, rows);
}

struct group_report {
    cJSON *json;
    const char *name;
    int sides;
};

static bool put_mean(void *to, struct line *l, int64_t rows, bool first)
{
    struct group_report *r = to;
    return (!first || put_rows(r->json, r->name, rows)) && put_result(r->json, r->name, l->metric, l->filter, r->sides, &l->result);
}

static bool put_task(cJSON *to, const struct task *t, int sides)
{
    bool good = put_rows(to, t->name, t->count);
    for (int f = 0; f < t->filter_count; f++)
        for (int m = 0; m < t->metric_count && good; m++)
            good = put_result(to, t->name, tune_task_metrics[t->metrics[m].kind].name, t->filters[f].name, sides,
                              &t->results[f * t->metric_count + m]);
    return good;
}

static bool describe(cJSON *list, const struct task *t)
{
    cJSON *one = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, one) && tune_cjson_put_text(one, "task", t->name) && tune_cjson_put_text(one, "file", t->path) &&
           tune_cjson_put_text(one, "version", t->version) && tune_cjson_put_text(one, "data", t->rows_path) &&
           tune_cjson_put_whole(one, "rows", t->count) && tune_cjson_put_whole(one, "rows_in_file", t->in_file) &&
           tune_cjson_put_whole(one, "num_fewshot", t->shots) && tune_cjson_put_whole(one, "rows_cut", t->cut);
}

static int write_report(const struct tune_tasks *all)
{
    const char *nonce = getenv("TUNE_NONCE");
    cJSON *json = cJSON_CreateObject(), *list;
    bool good = tune_cjson_put_text(json, "version", TUNE_VERSION) && tune_cjson_put_text(json, "status", "finished") &&
                (!nonce || tune_cjson_put_text(json, "nonce", nonce)) && tune_cjson_put_text(json, "model", all->model) &&
                (all->sides == 1 || tune_cjson_put_text(json, "compared_with", all->other ? all->other : all->names[1])) &&
                tune_cjson_put(json, "apply_chat_template", cJSON_CreateBool(all->chat));
    for (int i = 0; i < all->order_count && good; i++) {
        int place = all->order[i].place;
        struct group_report group = {json, all->order[i].task ? NULL : all->groups[place].name, all->sides};
        good = all->order[i].task ? put_task(json, &all->tasks[place], all->sides) : each_mean(all, place, put_mean, &group) >= 0;
    }
    good = good && (list = cJSON_AddArrayToObject(json, "tasks"));
    for (int i = 0; i < all->count && good; i++)
        good = describe(list, &all->tasks[i]);
    int status = tune_cjson_write(all->folder, TUNE_RUN_REPORT, json, good);
    cJSON_Delete(json);
    return status;
}

/* ---- the figure ---- */
static int draw(const struct tune_tasks *all)
{
    size_t count = 0, most = 0;
    for (int i = 0; i < all->count; i++)
        most += (size_t)all->tasks[i].metric_count * (size_t)all->tasks[i].filter_count;
    struct tune_figure_value *results = tune_zeroed(most, sizeof *results, "a figure");
    char (*names)[200] = tune_zeroed(most, sizeof *names, "a figure");
    int status = results && names ? 0 : -1;
    for (int i = 0; i < all->count && status == 0; i++) {
        const struct task *t = &all->tasks[i];
        for (int m = 0; m < t->metric_count; m++)
            for (int f = 0; f < t->filter_count; f++, count++) {
                const struct task_result *of = &t->results[f * t->metric_count + m];
                const struct tune_score *score = tune_task_score_of(t->metrics[m].kind);
                name_of(names[count], sizeof *names, t->name, score->name, t->filters[f].name);
                results[count] = (struct tune_figure_value){names[count], score->unit, {&of->side[0], all->sides > 1 ? &of->side[1] : NULL}};
            }
    }
    status = status == 0 ? tune_result_svg(all->folder, all->model, results, (int)count, all->names) : -1;
    free(results);
    free(names);
    return status;
}

static void explain(const struct tune_tasks *all, FILE *out)
{
    fprintf(out, "\n# %s; prompts %s\n", all->model, all->chat ? "by the model's chat template" : "without a chat template");
    if (all->sides > 1)
        fprintf(out, "# %s: %s. Intervals of differences are percentiles of %d bootstrap draws of the rows, seed %" PRIu64 ". p: how likely such "
                "a difference is between equal models; McNemar's test where a row is right or wrong, else by the draws\n", all->names[1],
                all->other ? all->other : "the model without its adapter", TUNE_DRAWS, all->seed);
    for (int i = 0; i < all->count; i++) {
        const struct task *t = &all->tasks[i];
        if (t->count < t->in_file)
            fprintf(out, "# %s: the first %" PRId64 " of %" PRId64 " rows\n", t->name, t->count, t->in_file);
        if (t->cut)
            fprintf(out, "# warning: %s: %" PRId64 " prompts are longer than the context and lost their beginning\n", t->name, t->cut);
    }
}

int tune_tasks_report(struct tune_tasks *all, FILE *out)
{
    TRY(print_table(all, out));
    explain(all, out);
    if (fflush(out) != 0 || ferror(out))
        return tune_error_set("cannot write the table: the output is closed or full");
    if (!all->folder)
        return 0;
    TRY(tune_tasks_sort_lines(all));
    TRY(tune_result_csv(all->folder));
    TRY(draw(all));
    return write_report(all);
}
