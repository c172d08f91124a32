/* task_report.c - the table of tasks and groups, the report, and a line for each question. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/version.h"
#include "evaluators/tasks/parts.h"
#include "files/cjson.h"
#include "runs/run_folder.h"
#include "views/table.h"

/* ---- the table ---- */
struct line {
    const char *name, *version, *filter, *metric;
    char shots[24];
    double value, error;
    int depth;
};

static int depth_of(const struct tune_tasks *all, int group)
{
    int depth = 0;
    for (; group >= 0; group = all->groups[group].parent)
        depth++;
    return depth;
}

static void add_line(struct tune_table *t, const struct line *l, bool first)
{
    char name[200] = "";
    if (first)
        snprintf(name, sizeof name, "%*s%s%s", l->depth, "", l->depth ? "- " : "", l->name);
    tune_table_text(t, name);
    tune_table_text(t, first ? l->version : "");
    tune_table_text(t, l->filter);
    tune_table_text(t, l->shots);
    tune_table_text(t, l->metric);
    tune_table_number(t, l->value, "%.4f");
    tune_table_text(t, l->metric[0] ? "\xC2\xB1" : "");
    if (isnan(l->error))
        tune_table_text(t, l->metric[0] ? "N/A" : "");
    else
        tune_table_number(t, l->error, "%.4f");
}

static void add_task(struct tune_table *table, const struct tune_tasks *all, const struct task *t)
{
    struct line l = {.name = t->alias, .version = t->version, .depth = depth_of(all, t->group)};
    snprintf(l.shots, sizeof l.shots, "%" PRId64, t->shots);
    for (int m = 0; m < t->metric_count; m++)
        for (int f = 0; f < t->filter_count; f++) {
            l.metric = tune_task_metrics[t->metrics[m].kind].name;
            l.filter = t->filters[f].name;
            l.value = t->values[f][m];
            l.error = t->errors[f][m];
            add_line(table, &l, m == 0 && f == 0);
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
            if (!tune_task_group_mean(all, group, m, names[f], &l.value, &l.error, &rows))
                continue;
            if (!call(to, &l, rows, count++ == 0))
                return -1;
        }
    }
    return count;
}

static bool add_mean(void *table, struct line *l, int64_t rows, bool first)
{
    (void)rows;
    add_line(table, l, first);
    return true;
}

static int print_table(const struct tune_tasks *all, FILE *out)
{
    static const char *const columns[] = {"task", "version", "filter", "n-shot", "metric", "value", "", "error"};
    struct tune_table *t = tune_table_new(columns, 8);
    if (!t)
        return -1;
    for (int i = 0; i < all->order_count; i++) {
        int place = all->order[i].place;
        if (all->order[i].task)
            add_task(t, all, &all->tasks[place]);
        else if (each_mean(all, place, add_mean, t) == 0) {
            struct line l = {.name = all->groups[place].alias, .version = all->groups[place].version, .filter = "", .metric = "", .value = NAN,
                             .error = NAN, .depth = depth_of(all, all->groups[place].parent)};
            add_line(t, &l, true);
        }
    }
    int status = tune_table_print(t, "table", 0, "", out);
    tune_table_free(t);
    return status;
}

/* ---- the report ---- */
static bool put_value(cJSON *to, const char *name, const char *metric, const char *filter, double value, double error)
{
    char key[400];
    bool plain = !strcmp(filter, "none");
    snprintf(key, sizeof key, "%s_%s%s%s", name, metric, plain ? "" : "_", plain ? "" : filter);
    bool good = !isfinite(value) || tune_cjson_put_number(to, key, value);
    tune_append(key, sizeof key, "_error");
    return good && (!isfinite(error) || tune_cjson_put_number(to, key, error));
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
};

static bool put_mean(void *to, struct line *l, int64_t rows, bool first)
{
    struct group_report *r = to;
    return (!first || put_rows(r->json, r->name, rows)) && put_value(r->json, r->name, l->metric, l->filter, l->value, l->error);
}

static bool put_task(cJSON *to, const struct task *t)
{
    bool good = put_rows(to, t->name, t->count);
    for (int f = 0; f < t->filter_count; f++)
        for (int m = 0; m < t->metric_count && good; m++)
            good = put_value(to, t->name, tune_task_metrics[t->metrics[m].kind].name, t->filters[f].name, t->values[f][m], t->errors[f][m]);
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
                tune_cjson_put(json, "apply_chat_template", cJSON_CreateBool(all->chat));
    for (int i = 0; i < all->order_count && good; i++) {
        int place = all->order[i].place;
        struct group_report group = {json, all->order[i].task ? NULL : all->groups[place].name};
        good = all->order[i].task ? put_task(json, &all->tasks[place]) : each_mean(all, place, put_mean, &group) >= 0;
    }
    good = good && (list = cJSON_AddArrayToObject(json, "tasks"));
    for (int i = 0; i < all->count && good; i++)
        good = describe(list, &all->tasks[i]);
    int status = tune_cjson_write(all->folder, TUNE_RUN_REPORT, json, good);
    cJSON_Delete(json);
    return status;
}

int tune_tasks_report(struct tune_tasks *all, FILE *out)
{
    TRY(print_table(all, out));
    fprintf(out, "\n# %s; prompts %s\n", all->model, all->chat ? "by the model's chat template" : "without a chat template");
    for (int i = 0; i < all->count; i++) {
        const struct task *t = &all->tasks[i];
        if (t->count < t->in_file)
            fprintf(out, "# %s: the first %" PRId64 " of %" PRId64 " rows\n", t->name, t->count, t->in_file);
        if (t->cut)
            fprintf(out, "# warning: %s: %" PRId64 " prompts are longer than the context and lost their beginning\n", t->name, t->cut);
    }
    if (fflush(out) != 0 || ferror(out))
        return tune_error_set("cannot write the table: the output is closed or full");
    return all->folder ? write_report(all) : 0;
}

/* ---- rows ---- */
static bool put_choices(cJSON *line, const struct task_question *q)
{
    cJSON *choices = cJSON_AddArrayToObject(line, "choices"), *values = cJSON_AddArrayToObject(line, "log_probs"),
          *greedy = cJSON_AddArrayToObject(line, "greedy"), *gold = cJSON_AddArrayToObject(line, "gold");
    bool good = choices && values && greedy && gold;
    for (int i = 0; i < q->choice_count && good; i++)
        good = cJSON_AddItemToArray(choices, cJSON_CreateString(q->choices[i].text.data)) &&
               cJSON_AddItemToArray(values, cJSON_CreateNumber(q->choices[i].log_prob)) &&
               cJSON_AddItemToArray(greedy, cJSON_CreateBool(q->choices[i].greedy));
    for (int i = 0; i < q->gold_count && good; i++)
        good = cJSON_AddItemToArray(gold, cJSON_CreateNumber((double)q->gold[i]));
    return good;
}

static bool put_answer(cJSON *line, const struct task *t, const struct task_question *q)
{
    cJSON *references;
    bool good = tune_cjson_put_bytes(line, "answer", q->answer.data, q->answer.size) && (references = cJSON_AddArrayToObject(line, "expected"));
    for (int i = 0; i < q->reference_count && good; i++)
        good = cJSON_AddItemToArray(references, cJSON_CreateString(q->references[i].data));
    cJSON *filtered = t->filters[0].count ? cJSON_AddObjectToObject(line, "filtered") : NULL;
    for (int f = 0; f < t->filter_count && good && filtered; f++)
        good = tune_cjson_put_bytes(filtered, t->filters[f].name, q->filtered[f].data, q->filtered[f].size);
    return good;
}

static bool put_scores(cJSON *line, const struct task *t, const struct task_question *q)
{
    for (int f = 0; f < t->filter_count; f++)
        for (int m = 0; m < t->metric_count; m++) {
            const struct task_metric_info *info = &tune_task_metrics[t->metrics[m].kind];
            char key[200];
            if (info->drawn && t->metrics[m].kind != TASK_PERPLEXITY)
                continue; /* these are of all rows together */
            bool plain = !strcmp(t->filters[f].name, "none");
            snprintf(key, sizeof key, "%s%s%s", info->name, plain ? "" : "_", plain ? "" : t->filters[f].name);
            if (t->metrics[m].kind != TASK_PERPLEXITY && !tune_cjson_put_number(line, key, q->scores[(f * t->metric_count + m) * TASK_SUMS]))
                return false;
        }
    return true;
}

int tune_tasks_write_row(struct tune_tasks *all, const struct task *t, const struct task_question *q)
{
    if (!all->rows_file)
        return 0;
    cJSON *line = cJSON_CreateObject();
    bool good = tune_cjson_put_text(line, "task", t->name) && tune_cjson_put_whole(line, "row", q->row) &&
                tune_cjson_put_bytes(line, "prompt", q->prompt.data, q->prompt.size) &&
                (t->kind == TASK_GENERATE ? put_answer(line, t, q) : put_choices(line, q)) && put_scores(line, t, q);
    char *text = good ? cJSON_PrintUnformatted(line) : NULL;
    int status = !text ? tune_error_no_memory("a line of rows") : fprintf(all->rows_file, "%s\n", text) < 0 ? tune_error_set("%s: cannot write the rows", all->folder) : 0;
    free(text);
    cJSON_Delete(line);
    return status;
}
