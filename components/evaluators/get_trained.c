/* get_trained.c - the rows that a model was trained on. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/trained.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/prompt_layout.h"
#include "runs/run.h"

enum { BLOCK = 256 }; /* rows that are hashed at a time */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const char *text_of(const cJSON *options, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(options, name);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

static double number_of(const cJSON *options, const char *name, double otherwise)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(options, name);
    return cJSON_IsNumber(value) ? value->valuedouble : otherwise;
}

/* The run's file, as seen from here. */
static int path_of(const cJSON *run, const char *name, char path[TUNE_PATH_MAX])
{
    const char *folder = text_of(run, "working_folder");
    if (*name == '/' || !folder)
        return tune_path(path, "%s", name);
    TRY(tune_path(path, "%s/%s", folder, name));
    return tune_file_exists(path) ? 0 : tune_path(path, "%s", name);
}

/* The rows of the run, read as it read them. NULL with an error. */
static struct tune_dataset *open_rows(const struct tune_flags *flags, struct tune_tokenizer *tok, const cJSON *run)
{
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(run, "options");
    const char *name = text_of(options, "dataset");
    char path[TUNE_PATH_MAX], found[TUNE_PATH_MAX];
    struct tune_prompt_layout *l = tune_zeroed(1, sizeof *l, "rows");
    struct tune_dataset *d = NULL;
    if (l && !name)
        tune_error_set("its description names no data set");
    else if (l && path_of(run, name, path) == 0 && tune_prompt_layout_settle(flags, tok, l, 1 << 20) == 0) {
        l->options.prompts = false;
        l->options.row_format = text_of(options, "format");
        l->options.columns = text_of(options, "columns");
        l->options.text_field = text_of(options, "text_field");
        l->options.limit = (int64_t)number_of(options, "limit", 0);
        l->options.skip_bad_rows = true;
        if (tune_dataset_find(path, found) == 0)
            d = tune_dataset_open_several(found, &l->options, tok);
    }
    tune_prompt_layout_free(l);
    return d;
}

/* Keep the hashes of rows that were not held out. */
static int hash_rows(struct tune_trained *t, const struct tune_dataset *d, const cJSON *options)
{
    const char *by = text_of(options, "split_by");
    double share = number_of(options, "train_split", 1);
    uint64_t seed = (uint64_t)number_of(options, "seed", 0);
    int64_t rows = tune_dataset_rows(d);
    t->hashes = tune_zeroed((size_t)rows, sizeof *t->hashes, "hashes of rows that were trained on");
    if (!t->hashes)
        return -1;
    for (int64_t first = 0; first < rows; first += BLOCK) {
        uint64_t hashes[BLOCK];
        int64_t count = rows - first < BLOCK ? rows - first : BLOCK;
        TRY(tune_dataset_row_hashes(d, first, count, hashes));
        for (int64_t i = 0; i < count; i++) {
            uint64_t key = by && !strcmp(by, "number") ? (uint64_t)(first + i) : hashes[i];
            if (share >= 1 || !tune_dataset_held_out(seed, key, share))
                t->hashes[t->count++] = hashes[i];
        }
    }
    qsort(t->hashes, (size_t)t->count, sizeof *t->hashes, by_value);
    return 0;
}

int tune_get_run_of(const char *made, char run[TUNE_PATH_MAX])
{
    char folder[TUNE_PATH_MAX];
    *run = 0;
    if (!made || tune_model_find(made, folder) < 0)
        TRY(made && tune_file_is_folder(made) ? tune_path(folder, "%s", made) : 0);
    if (!made || !tune_file_is_folder(folder))
        return 0;
    TRY(tune_path(run, "%s", folder));
    char *slash = strrchr(run, '/');
    bool plain = slash && slash > run && slash[1] && slash[1] != '.';
    if (plain)
        *slash = 0;
    else
        TRY(tune_path(run, "%s/..", folder));
    if (tune_run_is(run))
        return 1;
    *run = 0;
    return 0;
}

int tune_get_trained(const struct tune_flags *flags, struct tune_tokenizer *tok, const char *made, struct tune_trained *t)
{
    *t = (struct tune_trained){0};
    TRY(tune_get_run_of(made, t->run));
    struct tune_run *r = *t->run ? tune_run_open(t->run) : NULL;
    if (!r || !r->run) {
        *t->run = 0;
        tune_run_free(r);
        return 0;
    }
    const char *model = text_of(cJSON_GetObjectItemCaseSensitive(r->run, "options"), "model");
    char path[TUNE_PATH_MAX];
    int status = model && path_of(r->run, model, path) == 0 ? tune_get_run_of(path, t->before) : 0;
    struct tune_dataset *d = open_rows(flags, tok, r->run);
    if (!d)
        snprintf(t->unknown, sizeof t->unknown, "%s", tune_error_message());
    else if (status >= 0)
        status = hash_rows(t, d, cJSON_GetObjectItemCaseSensitive(r->run, "options"));
    tune_dataset_free(d);
    tune_run_free(r);
    return status < 0 ? -1 : 0;
}

bool tune_trained_has(const struct tune_trained *t, const struct tune_dataset *d, int64_t row)
{
    uint64_t hash = tune_dataset_row_hash(d, row);
    return t->count > 0 && bsearch(&hash, t->hashes, (size_t)t->count, sizeof hash, by_value);
}

void tune_trained_free(struct tune_trained *t)
{
    free(t->hashes);
    *t = (struct tune_trained){0};
}
