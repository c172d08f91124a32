/* get_dataset.c - the data sets that the flags name. */
#include "core/try.h"
#include "datasets/dataset.h"
#include "flags/flags.h"

static struct tune_dataset *open_file(const struct tune_flags *flags, const char *path, struct tune_tokenizer *tok)
{
    struct tune_dataset_options options = {
        .text_field = flags->text_field,
        .response_template = flags->response_template,
        .append_token = flags->append_token,
        .max_length = flags->max_length,
        .skip_bad_rows = flags->skip_bad_rows,
    };
    return tune_dataset_open(path, &options, tok);
}

struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    if (!flags->dataset || !*flags->dataset) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "no --dataset; give a file of rows to train on: --dataset my.jsonl (one "
                            "object a line), .json (an array of objects) or .txt (paragraphs)");
        return NULL;
    }
    return open_file(flags, flags->dataset, tok);
}

struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    struct tune_dataset *data = open_file(flags, flags->eval_dataset, tok);
    if (!data)
        tune_error_prefix("--eval-dataset: ");
    return data;
}
