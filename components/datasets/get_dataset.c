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

/* The path of a kind of rows. */
static const char *path_of(const struct tune_flags *flags, enum tune_rows_of which)
{
    return which == TUNE_ROWS_TRAINING ? flags->dataset : which == TUNE_ROWS_GENERAL ? flags->eval.general : flags->eval.path;
}

/* General rows are recognised by their columns: what the options say is of the others. */
static void forget_layout(struct tune_dataset_options *o)
{
    o->row_format = "auto";
    o->columns = o->prompt_template = o->response_template = o->text_field = NULL;
    o->train_on = NULL;
}

/* context > 0: read the rows' prompts, of at most that many tokens. */
static struct tune_dataset *open_file(const struct tune_flags *flags, enum tune_rows_of which, int context, struct tune_tokenizer *tok)
{
    const char *path = path_of(flags, which);
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
    options.limit = which == TUNE_ROWS_TRAINING ? flags->data.limit : 0;
    options.sequences = context ? 0 : tune_get_sequences(flags);
    if (which == TUNE_ROWS_GENERAL)
        forget_layout(&options);
    if (context) {
        options.prompts = true;
        options.chunk = TUNE_CHUNK_OFF;
        options.max_length = context;
    }
    struct tune_dataset *data = tune_dataset_open_several(paths, &options, tok);
    if (!data && which == TUNE_ROWS_GENERAL && options.chat_template) { /* it is for the others, if these are no conversations */
        tune_error_clear();
        options.chat_template = NULL;
        data = tune_dataset_open_several(paths, &options, tok);
    }
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
    return open_file(flags, TUNE_ROWS_TRAINING, 0, tok);
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

/* Open rows other than those to train on; errors name the option. */
static struct tune_dataset *open_named(const struct tune_flags *flags, enum tune_rows_of which, int context, struct tune_tokenizer *tok)
{
    struct tune_dataset *data = open_file(flags, which, context, tok);
    if (!data)
        tune_error_prefix(which == TUNE_ROWS_TRAINING ? "--dataset: " : which == TUNE_ROWS_GENERAL ? "--general-dataset: "
                                                                                                  : "--eval-dataset: ");
    return data;
}

struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    return open_named(flags, TUNE_ROWS_EVALUATION, 0, tok);
}

struct tune_dataset *tune_get_general_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    return open_named(flags, TUNE_ROWS_GENERAL, 0, tok);
}

struct tune_dataset *tune_get_asked_dataset(const struct tune_flags *flags, enum tune_rows_of which, int context,
                                            struct tune_tokenizer *tok)
{
    return open_named(flags, which, context, tok);
}
