/* get_dataset.c - the data set that the flags name. */
#include "core/try.h"
#include "datasets/dataset.h"
#include "flags/flags.h"

struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    if (!flags->dataset || !*flags->dataset) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "no --dataset; give a file of rows to train on: --dataset my.jsonl (one "
                            "object a line), .json (an array of objects) or .txt (paragraphs)");
        return NULL;
    }
    struct tune_dataset_options options = {
        .text_field = flags->text_field,
        .response_template = flags->response_template,
        .append_token = flags->append_token,
        .max_length = flags->max_length,
        .skip_bad_rows = flags->skip_bad_rows,
    };
    return tune_dataset_open(flags->dataset, &options, tok);
}
