/* get_dataset.c - the datasets that the flags name. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/cjson.h"
#include "files/folder.h"
#include "datasets/dataset.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "tokenizers/tokenizer.h"

/* Find the folder of the tokenizer. */
static int find_folder(const char *model, char folder[TUNE_PATH_MAX])
{
    if (!tune_file_is_folder(model) && tune_file_exists(model))
        return tune_file_parent(folder, model); /* --model names a tokenizer.json */
    return tune_file_is_folder(model) ? tune_path(folder, "%s", model) : tune_model_find(model, folder);
}

/* The end token that tokenizer_config.json names, allocated; NULL: none. */
static int find_end_token(const char *folder, char **token)
{
    *token = NULL;
    if (!tune_folder_has(folder, "tokenizer_config.json"))
        return 0;
    cJSON *json = tune_cjson_read_in(folder, "tokenizer_config.json", (size_t)16 << 20);
    if (!json)
        return -1;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "eos_token");
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "content");
    bool found = cJSON_IsString(item) && *item->valuestring;
    if (found)
        *token = strdup(item->valuestring);
    cJSON_Delete(json);
    if (!found || *token)
        return 0;
    return tune_error_no_memory("the name of a token");
}

static struct tune_dataset *open_file(const struct tune_flags *flags, const char *path, struct tune_tokenizer *tok)
{
    char *end_token = NULL, folder[TUNE_PATH_MAX];
    bool model = flags->model && *flags->model;
    if (!tune_file_exists(path)) {
        tune_error_usage("%s: no such file", path);
        return NULL;
    }
    if (model && (find_folder(flags->model, folder) < 0 || find_end_token(folder, &end_token) < 0))
        return NULL;
    struct tune_dataset_options options = flags->data;
    options.model_folder = model ? folder : NULL;
    options.end_token = end_token;
    struct tune_dataset *data = tune_dataset_open(path, &options, tok);
    free(end_token);
    return data;
}

struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    if (!flags->dataset || !*flags->dataset) {
        tune_error_usage("no --dataset; give a file of rows to train on: --dataset my.jsonl (one "
                         "object a line), .json (an array of objects), .csv, .tsv or .txt "
                         "(paragraphs)");
        return NULL;
    }
    if (flags->starting)
        *flags->starting = 1;
    return open_file(flags, flags->dataset, tok);
}

static int show_tokens(const struct tune_flags *flags, FILE *out)
{
    struct tune_tokenizer *tok = tune_get_tokenizer(flags);
    struct tune_dataset *data = tok ? tune_get_dataset(flags, tok) : NULL;
    int status = data ? tune_dataset_show(data, tok, flags->show_tokens, out) : -1;
    tune_dataset_free(data);
    tune_tokenizer_free(tok);
    return status;
}

const struct tune_service tune_show_tokens = {show_tokens};

struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    struct tune_dataset *data = open_file(flags, flags->eval.path, tok);
    if (!data)
        tune_error_prefix("--eval-dataset: ");
    return data;
}
