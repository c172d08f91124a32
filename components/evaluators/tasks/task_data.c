/* task_data.c - local files in place of the Hub's data sets, and their rows. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "datasets/shards.h"
#include "evaluators/tasks/parts.h"
#include "metrics/texts.h"

static const char *const endings[] = {"jsonl", "json", "parquet"};

/* ---- files ---- */
/* True if folder has a file of the split, or files in the Hub's layout. Sets the path. */
static bool find_in(const char *folder, const char *split, char *path)
{
    struct tune_shards shards = {0};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tune_path(path, "%s/%s.%s", folder, split, endings[i]) == 0 && tune_file_exists(path))
            return true;
    if (!tune_file_is_folder(folder) || tune_path(path, "%s/%s", folder, split) < 0)
        return false;
    bool found = tune_shards_find(&shards, path) == 0 && shards.count > 0 && tune_file_exists(shards.paths[0]);
    tune_shards_free(&shards);
    tune_error_clear();
    return found;
}

/* dataset_kwargs: data_files names files itself. 1: *path is one; 0: there is none. */
static int find_named(const struct task *t, const char *folder, const char *split, char *path)
{
    const struct tune_node *node = t->data_files;
    if (node && node->type == TUNE_NODE_MAP)
        node = tune_node_get(node, split);
    if (tune_node_none(node))
        return 0;
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_TEXT || node->function)
        return tune_document_fail(t->document, node, "data_files: expected the name of one file for each split");
    TRY(tune_path(path, "%s/%s", folder, node->value.text));
    if (*node->value.text == '/' || !tune_file_exists(path))
        TRY(tune_path(path, "%s", node->value.text));
    if (!tune_file_exists(path))
        return tune_document_fail(t->document, node, "data_files: there is no file %s, neither in %s nor as it stands", node->value.text, folder);
    return 1;
}

static int find_split(const struct task *t, const char *folder, const char *split, char *path)
{
    const char *whole = t->dataset_path ? t->dataset_path : t->name, *slash = strrchr(whole, '/'), *last = slash ? slash + 1 : whole;
    char tried[6][TUNE_PATH_MAX], told[2048] = "";
    int named, count = 0;
    TRY(named = find_named(t, folder, split, path));
    if (named)
        return 0;
    if (t->dataset_name) {
        TRY(tune_path(tried[count++], "%s/%s/%s", folder, whole, t->dataset_name));
        TRY(tune_path(tried[count++], "%s/%s/%s", folder, last, t->dataset_name));
    } else {
        TRY(tune_path(tried[count++], "%s/%s", folder, whole));
        TRY(tune_path(tried[count++], "%s/%s", folder, last));
    }
    TRY(tune_path(tried[count++], "%s/%s", folder, t->name));
    for (int i = 0; i < count; i++) {
        if (find_in(tried[i], split, path))
            return 0;
        tune_append(told, sizeof told, "%s%s/%s.jsonl", i ? ", " : "", tried[i], split);
    }
    return tune_error_usage("%s: the split %s of %s%s%s is not there. Looked for %s; also .json, .parquet and the Hub's layout. `tasks_data` "
                            "is the folder of data sets", t->path, split, whole, t->dataset_name ? "/" : "",
                            t->dataset_name ? t->dataset_name : "", told);
}

static int open_split(struct task *t, const char *folder, const char *split, struct tune_rows *rows, const char **path)
{
    char found[TUNE_PATH_MAX];
    const struct tune_dataset_options options = {0};
    TRY(find_split(t, folder, split, found));
    TRY(tune_rows_open(rows, found, &options));
    *path = tune_pool_text(&t->pool, found, strlen(found));
    if (!*path)
        return tune_error_no_memory("a path");
    if (tune_rows_are_csv(rows) || rows->format == TUNE_DATASET_TEXT)
        return tune_error_usage("%s: expected JSON lines, JSON or Parquet", found);
    return 0;
}

int tune_task_data_open(struct task *t, const char *folder)
{
    const char *split = t->splits[2] ? t->splits[2] : t->splits[1], *path;
    TRY(open_split(t, folder, split, &t->rows, &t->rows_path));
    t->in_file = t->rows.count;
    if (t->shots == 0)
        return 0;
    const char *from = t->fewshot_split ? t->fewshot_split : t->splits[0] ? t->splits[0] : t->splits[1] ? t->splits[1] : t->splits[2];
    TRY(open_split(t, folder, from, &t->examples, &path));
    t->examples_path = path;
    t->example_count = t->examples.count;
    if (t->example_count < t->shots)
        return tune_error_usage("%s: %" PRId64 " rows for %" PRId64 " examples in a prompt", path, t->example_count, t->shots);
    return 0;
}

/* ---- HellaSwag ---- */
/* Change a text as process_docs of the task does: it loses "[...]", and so on. */
static int plain_ending(struct tune_pool **pool, struct tune_text text, struct tune_text *out)
{
    const char *begin = text.data, *end = text.data + text.size;
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    char *to = tune_pool_take(pool, (size_t)(end - begin) + 1), *at = to;
    if (!to)
        return tune_error_no_memory("a row");
    for (const char *p = begin; p < end;) { /* " [title]" becomes ". " */
        bool title = end - p >= 8 && !memcmp(p, " [title]", 8);
        memcpy(at, title ? ". " : p, title ? 2 : 1);
        at += title ? 2 : 1;
        p += title ? 8 : 1;
    }
    end = at;
    at = to;
    for (const char *p = to; p < end;) { /* "[...]" of one line goes */
        const char *close = *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
        if (close && !memchr(p, '\n', (size_t)(close - p)))
            p = close + 1;
        else
            *at++ = *p++;
    }
    end = at;
    at = to;
    for (const char *p = to; p < end; p++) { /* two spaces become one */
        *at++ = *p;
        p += *p == ' ' && p + 1 < end && p[1] == ' ';
    }
    *at = 0;
    *out = (struct tune_text){to, (size_t)(at - to)};
    return 0;
}

static bool put_plain(struct tune_pool **pool, cJSON *to, const char *key, const char *text)
{
    struct tune_text plain;
    if (plain_ending(pool, (struct tune_text){text, strlen(text)}, &plain) < 0)
        return false;
    cJSON *item = cJSON_CreateString(plain.data);
    return key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item);
}

/* The row with query, choices and gold. */
static int hellaswag(struct task_row *row, const char *where)
{
    cJSON *json = cJSON_ParseWithLength(row->json, row->size);
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(json, "ctx_a"), *b = cJSON_GetObjectItemCaseSensitive(json, "ctx_b");
    const cJSON *label = cJSON_GetObjectItemCaseSensitive(json, "activity_label"), *endings_ = cJSON_GetObjectItemCaseSensitive(json, "endings"), *e;
    bool good = cJSON_IsString(a) && cJSON_IsString(b) && cJSON_IsString(label) && cJSON_IsArray(endings_);
    size_t size = 0;
    char *low = good ? tune_text_lower((struct tune_text){b->valuestring, strlen(b->valuestring)}, &size) : NULL;
    char *query = low ? tune_pool_take(&row->pool, strlen(a->valuestring) + size + strlen(label->valuestring) + 8) : NULL;
    if (query) {
        low[0] = (char)toupper((unsigned char)low[0]);
        sprintf(query, "%s: %s %s", label->valuestring, a->valuestring, low);
    }
    free(low);
    bool done = query && put_plain(&row->pool, json, "query", query);
    cJSON *choices = done ? cJSON_AddArrayToObject(json, "choices") : NULL;
    cJSON_ArrayForEach(e, endings_) done = done && choices && cJSON_IsString(e) && put_plain(&row->pool, choices, NULL, e->valuestring);
    char *text = done ? cJSON_PrintUnformatted(json) : NULL;
    row->size = text ? strlen(text) : 0;
    row->json = text ? tune_pool_text(&row->pool, text, row->size) : NULL;
    free(text);
    cJSON_Delete(json);
    return row->json ? 0 : good ? tune_error_no_memory("a row") : tune_error_usage("%s: expected the columns ctx_a, ctx_b, activity_label and endings of HellaSwag", where);
}

/* ---- rows ---- */
static int read_columns(struct task_row *row, const char *path)
{
    struct tune_json j;
    struct tune_text key;
    int more, room = 0;
    tune_json_start(&j, path, row->json, row->size, row->line);
    j.lone_surrogates = true;
    j.python = true;
    more = tune_json_object(&j) < 0 ? -1 : 1;
    while (more == 1 && (more = tune_json_key(&j, &key)) == 1) {
        if (row->count == room) {
            struct task_column *wider = tune_pool_take(&row->pool, (size_t)(room = room ? 2 * room : 16) * sizeof *wider);
            if (!wider) {
                more = tune_error_no_memory("a row");
                break;
            }
            if (row->count)
                memcpy(wider, row->columns, (size_t)row->count * sizeof *wider);
            row->columns = wider;
        }
        struct task_column *c = &row->columns[row->count];
        c->name = tune_pool_text(&row->pool, key.data, key.size);
        more = !c->name ? tune_error_no_memory("a row") : tune_json_peek(&j) < 0 ? -1 : 1;
        c->json = j.at;
        if (more == 1 && tune_json_skip(&j) < 0)
            more = -1;
        c->size = (size_t)(j.at - c->json);
        row->count += more == 1;
    }
    tune_json_free(&j);
    return more;
}

int tune_task_row_get(struct task *t, bool examples, int64_t i, struct task_row *row)
{
    const struct tune_rows *rows = examples ? &t->examples : &t->rows;
    const char *path = examples ? t->examples_path : t->rows_path;
    char where[TUNE_PATH_MAX + 32];
    TRY(tune_rows_uncut(rows));
    struct tune_file_row r = tune_rows_get(rows, i);
    *row = (struct task_row){.json = r.text, .size = r.size, .number = i, .line = r.line};
    snprintf(where, sizeof where, "%s:%" PRId64, path, r.line);
    if (t->hellaswag && hellaswag(row, where) < 0)
        return -1;
    return read_columns(row, path);
}

void tune_task_row_free(struct task_row *row)
{
    tune_pool_free(row->pool);
    *row = (struct task_row){0};
}
