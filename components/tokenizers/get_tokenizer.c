/* get_tokenizer.c - the tokenizer that --model names. */
#include "core/error.h"
#include "core/file.h"
#include "flags/flags.h"
#include "models/find.h"
#include "tokenizers/tokenizer.h"

struct tune_tokenizer *tune_get_tokenizer(const struct tune_flags *flags, int64_t vocabulary)
{
    char folder[TUNE_PATH_MAX], file[TUNE_PATH_MAX];
    const char *path = flags->model;
    if (!path) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--model is missing: expected a folder with a tokenizer.json, a known name or a Hub id");
        return NULL;
    }
    /* A tokenizer.json, or a folder with nothing else in it, needs no model around it. */
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
    struct tune_tokenizer *t = tune_tokenizer_open(path);
    if (t && tune_tokenizer_size(t) > vocabulary) {
        tune_error_set("%s: the tokenizer has ids up to %d and the model a vocabulary of %lld; they do not belong together",
                       path, (int)tune_tokenizer_size(t) - 1, (long long)vocabulary);
        tune_tokenizer_free(t);
        return NULL;
    }
    return t;
}
