/* task_lines.c - a line of JSON for each question, and a file of them that is continued.
 *
 * A line has what the models said, so its scores can be computed again. Member "of" is a hash of
 * weights, options and the question's tokens: other answers are not taken for these. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/print.h"
#include "evaluators/tasks/parts.h"
#include "files/cjson.h"
#include "files/lines.h"
#include "runs/run_folder.h"

static const char *const before[TASK_SIDES] = {"", "base_"};

/* The name of a member: with "base_" before it for the model to compare with. */
static const char *key_of(char key[200], int side, const char *name, const char *filter)
{
    bool plain = !strcmp(filter, "none");
    snprintf(key, 200, "%s%s%s%s", before[side], name, plain ? "" : "_", plain ? "" : filter);
    return key;
}

/* ---- a line ---- */
static void hash_of(const struct tune_tasks *all, const struct task *t, const struct task_question *q, char of[17])
{
    uint64_t hash = tune_hash64(t->name, strlen(t->name), all->settings);
    hash = tune_hash64(q->context, (size_t)q->context_count * sizeof *q->context, hash);
    for (int i = 0; i < q->choice_count; i++)
        hash = tune_hash64(q->choices[i].ids, (size_t)q->choices[i].count * sizeof *q->choices[i].ids, hash);
    if (t->kind == TASK_GENERATE)
        hash = tune_hash64(&t->max_tokens, sizeof t->max_tokens, hash);
    for (int i = 0; i < t->until_count; i++)
        hash = tune_hash64(t->until[i], strlen(t->until[i]) + 1, hash);
    snprintf(of, 17, "%016" PRIx64, hash);
}

static bool put_side(cJSON *line, const struct task_question *q, int side)
{
    char key[200];
    cJSON *values = cJSON_AddArrayToObject(line, key_of(key, side, "log_probs", "none"));
    cJSON *greedy = cJSON_AddArrayToObject(line, key_of(key, side, "greedy", "none"));
    bool good = values && greedy;
    for (int i = 0; i < q->choice_count && good; i++)
        good = cJSON_AddItemToArray(values, cJSON_CreateNumber(q->choices[i].log_prob[side])) &&
               cJSON_AddItemToArray(greedy, cJSON_CreateBool(q->choices[i].greedy[side]));
    return good;
}

static bool put_choices(cJSON *line, const struct task_question *q, int sides)
{
    cJSON *choices = cJSON_AddArrayToObject(line, "choices"), *gold;
    bool good = choices;
    for (int i = 0; i < q->choice_count && good; i++)
        good = cJSON_AddItemToArray(choices, cJSON_CreateString(q->choices[i].text.data));
    for (int side = 0; side < sides && good; side++)
        good = put_side(line, q, side);
    good = good && (gold = cJSON_AddArrayToObject(line, "gold"));
    for (int i = 0; i < q->gold_count && good; i++)
        good = cJSON_AddItemToArray(gold, cJSON_CreateNumber((double)q->gold[i]));
    return good;
}

/* log p of each window of a text. */
static bool put_text(cJSON *line, const struct task_question *q, int sides)
{
    char key[200];
    bool good = tune_cjson_put_whole(line, "words", q->words) && tune_cjson_put_whole(line, "bytes", q->bytes);
    for (int side = 0; side < sides && good; side++) {
        cJSON *values = cJSON_AddArrayToObject(line, key_of(key, side, "log_probs", "none"));
        good = values;
        for (int i = 0; i < q->choice_count && good; i++)
            good = cJSON_AddItemToArray(values, cJSON_CreateNumber(q->choices[i].log_prob[side]));
    }
    return good;
}

static bool put_answer(cJSON *line, const struct task *t, const struct task_question *q, int sides)
{
    char key[200];
    cJSON *references = cJSON_AddArrayToObject(line, "expected");
    bool good = references;
    for (int i = 0; i < q->reference_count && good; i++)
        good = cJSON_AddItemToArray(references, cJSON_CreateString(q->references[i].data));
    for (int side = 0; side < sides && good; side++) {
        good = tune_cjson_put_bytes(line, key_of(key, side, "answer", "none"), q->answer[side].data, q->answer[side].size);
        cJSON *filtered = t->filters[0].count ? cJSON_AddObjectToObject(line, key_of(key, side, "filtered", "none")) : NULL;
        for (int f = 0; f < t->filter_count && good && filtered; f++)
            good = tune_cjson_put_bytes(filtered, t->filters[f].name, q->filtered[side][f].data, q->filtered[side][f].size);
    }
    return good;
}

/* Scores of the row. Those of bleu, chrf and f1 are of all rows together. */
static bool put_scores(cJSON *line, const struct task *t, const struct task_question *q, int sides)
{
    char key[200];
    bool good = true;
    for (int side = 0; side < sides; side++)
        for (int f = 0; f < t->filter_count; f++)
            for (int m = 0; m < t->metric_count && good; m++) {
                const struct task_metric_info *info = &tune_task_metrics[t->metrics[m].kind];
                double score = q->scores[side][(f * t->metric_count + m) * TASK_SUMS];
                good = !info->plain || tune_cjson_put_number(line, key_of(key, side, info->name, t->filters[f].name), score);
            }
    return good;
}

static int put_line(const struct tune_tasks *all, const struct task *t, const struct task_question *q, FILE *to)
{
    char of[17];
    cJSON *line = cJSON_CreateObject();
    hash_of(all, t, q, of);
    bool good = tune_cjson_put_text(line, "task", t->name) && tune_cjson_put_whole(line, "row", q->row) &&
                tune_cjson_put_bytes(line, "prompt", q->prompt.data, q->prompt.size);
    if (good && t->kind == TASK_GENERATE)
        good = put_answer(line, t, q, all->sides);
    else if (good)
        good = t->kind == TASK_ROLLING ? put_text(line, q, all->sides) : put_choices(line, q, all->sides);
    good = good && put_scores(line, t, q, all->sides) && tune_cjson_put_text(line, "of", of);
    char *text = good ? cJSON_PrintUnformatted(line) : NULL;
    int status = !text ? tune_error_no_memory("a line of rows")
                       : tune_lines_put(to, text) ? 0 : tune_error_set("%s: cannot write the rows: %s", all->folder, strerror(errno));
    free(text);
    cJSON_Delete(line);
    return status;
}

int tune_tasks_write_line(struct tune_tasks *all, const struct task *t, const struct task_question *q)
{
    return all->rows_file ? put_line(all, t, q, all->rows_file) : 0;
}

int tune_tasks_sort_lines(struct tune_tasks *all)
{
    char path[TUNE_PATH_MAX];
    struct tune_file_writer w;
    TRY(tune_path(path, "%s/" TUNE_RUN_ROWS, all->folder));
    TRY(tune_file_begin(&w, path));
    int status = 0;
    for (int i = 0; i < all->count; i++)
        for (int64_t k = 0; k < all->tasks[i].count && status == 0; k++)
            status = put_line(all, &all->tasks[i], &all->tasks[i].questions[k], w.file);
    status = status == 0 ? tune_file_commit(&w) : -1;
    if (status < 0)
        tune_file_cancel(&w);
    return status;
}

/* ---- lines that are there ---- */
static const cJSON *member(const cJSON *line, int side, const char *name)
{
    char key[200];
    return cJSON_GetObjectItemCaseSensitive(line, key_of(key, side, name, "none"));
}

/* Take what a model said from the line. false: the line lacks it. */
static bool take_side(struct task *t, struct task_question *q, int side, const cJSON *line)
{
    const cJSON *answer = member(line, side, "answer"), *values = member(line, side, "log_probs"), *greedy = member(line, side, "greedy");
    if (t->kind == TASK_GENERATE) {
        if (!cJSON_IsString(answer))
            return false;
        struct tune_text text = tune_cjson_text(answer);
        q->answer[side] = (struct tune_text){tune_pool_text(&t->pool, text.data, text.size), text.size};
        return q->answer[side].data;
    }
    if (cJSON_GetArraySize(values) != q->choice_count || (t->kind != TASK_ROLLING && cJSON_GetArraySize(greedy) != q->choice_count))
        return false;
    for (int i = 0; i < q->choice_count; i++) {
        const cJSON *value = cJSON_GetArrayItem(values, i);
        if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble))
            return false;
        q->choices[i].log_prob[side] = value->valuedouble;
        q->choices[i].greedy[side] = cJSON_IsTrue(cJSON_GetArrayItem(greedy, i));
    }
    return true;
}

static struct task_question *question_of(const struct tune_tasks *all, const cJSON *line, struct task **task)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(line, "task"), *row = cJSON_GetObjectItemCaseSensitive(line, "row");
    for (int i = 0; i < all->count && cJSON_IsString(name) && cJSON_IsNumber(row); i++)
        if (!strcmp(all->tasks[i].name, name->valuestring) && row->valuedouble >= 0 && row->valuedouble < (double)all->tasks[i].count) {
            *task = &all->tasks[i];
            return &all->tasks[i].questions[(int64_t)row->valuedouble];
        }
    return NULL;
}

static int read_line(void *tasks, const char *text, int64_t at)
{
    struct tune_tasks *all = tasks;
    struct task *t = NULL;
    char of[17] = "";
    cJSON *line = tune_cjson_line(text);
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(line, "of");
    struct task_question *q = question_of(all, line, &t);
    int status = 0;
    if (q)
        hash_of(all, t, q, of);
    if (!q || !cJSON_IsString(said) || q->done)
        status = tune_error_usage("%s/" TUNE_RUN_ROWS ":%" PRId64 ": expected a question of these tasks, each once; the file is of other tasks or "
                                  "rows, or was changed. Give another `output`, or `overwrite`", all->folder, at + 1);
    else if (strcmp(said->valuestring, of) != 0)
        status = tune_error_usage("%s/" TUNE_RUN_ROWS ":%" PRId64 ": the line belongs to another prompt, to other weights or to other options; "
                                  "give another `output`, or `overwrite`", all->folder, at + 1);
    for (int side = 0; side < all->sides && status == 0; side++)
        if (!take_side(t, q, side, line))
            status = tune_error_usage("%s/" TUNE_RUN_ROWS ":%" PRId64 ": the line was changed; give another `output`, or `overwrite`", all->folder,
                                      at + 1);
    if (status == 0)
        status = tune_task_judge(t, q, all->sides);
    cJSON_Delete(line);
    return status;
}

static bool begins_line(void *tasks, const char *cut, size_t size, int64_t at)
{
    static const char begin[] = "{\"task\":\"";
    (void)tasks, (void)at;
    return strncmp(cut, begin, size < sizeof begin - 1 ? size : sizeof begin - 1) == 0;
}

int tune_tasks_open_lines(struct tune_tasks *all, bool overwrite)
{
    char path[TUNE_PATH_MAX];
    int64_t there, count = 0;
    if (!all->folder)
        return 0;
    TRY(tune_file_make_folder(all->folder));
    TRY(tune_path(path, "%s/" TUNE_RUN_ROWS, all->folder));
    const struct tune_lines lines = {path, overwrite, read_line, begins_line, all};
    all->rows_file = tune_lines_open(&lines, &there);
    TRY(all->rows_file ? 0 : -1);
    for (int i = 0; i < all->count; i++)
        count += all->tasks[i].count;
    if (there > 0)
        fprintf(all->notes, "# resumed      %" PRId64 " of %" PRId64 " questions are in %s\n", there, count, path);
    return tune_run_folder_forget(all->folder);
}
