/* get_dataset.c - the datasets that the flags name. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
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

/* Replace each name of a list by the path that it means. */
static int find_files(const char *list, char paths[TUNE_PATH_MAX])
{
    char one[TUNE_PATH_MAX], found[TUNE_PATH_MAX];
    size_t used = 0;
    int more;
    *paths = 0;
    for (int k = 0; (more = tune_path_listed(list, k, one)) == 1; k++) {
        TRY(tune_dataset_find(*one ? one : list, found));
        used += (size_t)snprintf(paths + used, TUNE_PATH_MAX - used, "%s%s", k ? "," : "", found);
        if (used >= TUNE_PATH_MAX)
            return tune_error_usage("the paths %.60s... are longer than %d bytes", list, TUNE_PATH_MAX - 1);
    }
    return more;
}

static struct tune_dataset *open_file(const struct tune_flags *flags, const char *path, int64_t limit, struct tune_tokenizer *tok)
{
    char *end_token = NULL, folder[TUNE_PATH_MAX];
    bool model = flags->model && *flags->model;
    char paths[TUNE_PATH_MAX];
    if (find_files(path, paths) < 0)
        return NULL;
    if (model && (find_folder(flags->model, folder) < 0 || tune_tokenizer_end(tok, folder, &end_token) < 0))
        return NULL;
    struct tune_dataset_options options = flags->data;
    options.model_folder = model ? folder : NULL;
    options.end_token = end_token;
    options.limit = limit;
    options.sequences = tune_get_sequences(flags);
    struct tune_dataset *data = tune_dataset_open_several(paths, &options, tok);
    free(end_token);
    return data;
}

struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    if (!flags->dataset || !*flags->dataset) {
        tune_error_usage("no --dataset; give a file of rows to train on: --dataset my.jsonl (one "
                         "object a line), .json (an array of objects), .csv, .tsv, .txt "
                         "(paragraphs) or .parquet; or a data set of the Hub: --dataset OWNER/NAME");
        return NULL;
    }
    if (flags->starting)
        *flags->starting = 1;
    return open_file(flags, flags->dataset, flags->data.limit, tok);
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
    struct tune_dataset *data = open_file(flags, flags->eval.path, 0, tok);
    if (!data)
        tune_error_prefix("--eval-dataset: ");
    return data;
}
