/* get_tokenizer.c - the tokenizer of --model. */
#include "core/error.h"
#include "files/file.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "tokenizers/tokenizer.h"

struct tune_tokenizer *tune_get_tokenizer(const struct tune_flags *flags)
{
    char folder[TUNE_PATH_MAX], file[TUNE_PATH_MAX];
    const char *path = flags->model;
    if (!path) {
        tune_error_usage("--model is missing: expected a folder with a tokenizer.json, a known "
                         "name or a Hub id");
        return NULL;
    }
    /* A tokenizer.json, or a folder that has only this file, needs no model. */
    bool here = tune_file_exists(path) && !tune_file_is_folder(path);
    if (!here && tune_file_is_folder(path)) {
        if (tune_path(file, "%s/tokenizer.json", path) < 0)
            return NULL;
        here = tune_file_exists(file);
    }
    if (!here) {
        if (tune_model_find(path, folder) < 0)
            return NULL;
        path = folder;
    }
    struct tune_tokenizer *t = tune_tokenizer_open_with(path, flags->add_tokens);
    if (!t || flags->add_tokens || tune_tokenizer_limit_by(t, path) == 0)
        return t; /* tokens that are added get their rows */
    tune_tokenizer_free(t);
    return NULL;
}
