/* joined.c - several data sets as one: the rows of the first, then those of the second. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/dataset_state.h"
#include "files/file.h"

struct tune_dataset *tune_dataset_join(struct tune_dataset *const *sets, int count)
{
    if (count < 1 || count > TUNE_DATASET_SETS) {
        tune_error_usage("%d data sets, expected from 1 to %d", count, TUNE_DATASET_SETS);
        return NULL;
    }
    struct tune_dataset *d = tune_dataset_make(sets[0]->max_length);
    if (!d)
        return NULL;
    struct tune_dataset **copy = tune_zeroed((size_t)count, sizeof(struct tune_dataset *), "%d data sets", count);
    d->begins = copy ? tune_zeroed((size_t)count, sizeof *d->begins, "%d data sets", count) : NULL;
    if (!d->begins) {
        free(copy);
        tune_dataset_free(d);
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        const struct tune_file_stamp *stamp = tune_dataset_stamp(sets[k]);
        copy[k] = sets[k];
        d->begins[k] = d->count;
        d->count += sets[k]->count;
        d->stamp.size += stamp ? stamp->size : 0;
        if (stamp && strcmp(stamp->modified, d->stamp.modified) > 0)
            d->stamp = (struct tune_file_stamp){.size = d->stamp.size}, strcpy(d->stamp.modified, stamp->modified);
        d->max_length = sets[k]->max_length > d->max_length ? sets[k]->max_length : d->max_length;
    }
    d->sets = copy;
    d->set_count = count;
    d->tok = sets[0]->tok;
    snprintf(d->rows_are, sizeof d->rows_are, "of %d sets", count);
    return d;
}

int tune_dataset_sets(const struct tune_dataset *d)
{
    return d->sets ? d->set_count : 1;
}

struct tune_dataset *tune_dataset_set(struct tune_dataset *d, int k)
{
    return d->sets ? d->sets[k] : d;
}

int tune_dataset_set_of(const struct tune_dataset *d, int64_t row, int64_t *own)
{
    int k = d->sets ? d->set_count - 1 : 0;
    while (k > 0 && d->begins[k] > row)
        k--;
    *own = d->sets ? row - d->begins[k] : row;
    return k;
}

int tune_joined_get(struct tune_dataset *d, int64_t row, struct tune_example *x, bool *lost)
{
    int64_t own;
    int k = tune_dataset_set_of(d, row, &own);
    int status = tune_dataset_get(d->sets[k], own, x);
    *lost = x->cut_away;
    return status;
}

/* ---- files ---- */

/* Value k of an option that has one value for all count sets, or one for each. NULL: none. */
static int value_of(char **value, const char *name, const char *list, char mark, int k, int count)
{
    int values = 1;
    const char *at = list;
    *value = NULL;
    for (const char *p = list; p && (p = strchr(p, mark)); p++)
        if (values++ <= k)
            at = p + 1;
    if (!list || count == 1 || values == 1)
        return !list || (*value = strdup(list)) ? 0 : tune_error_no_memory("an option");
    if (values != count)
        return tune_error_usage("`%s` %s has %d values for %d data sets; give one for all, or one for each", name, list, values, count);
    size_t size = (size_t)(strchrnul(at, mark) - at);
    return !size || (*value = strndup(at, size)) ? 0 : tune_error_no_memory("an option");
}

static struct tune_dataset *open_one(const char *path, int k, int count, const struct tune_dataset_options *options,
                                     struct tune_tokenizer *tok)
{
    struct tune_dataset_options o = *options;
    struct tune_dataset *d = NULL;
    char *format, *field = NULL, *prompt = NULL, *chat = NULL, *train = NULL, *columns = NULL;
    if (value_of(&format, "format", options->row_format, ',', k, count) == 0 &&
        value_of(&field, "text_field", options->text_field, ',', k, count) == 0 &&
        value_of(&prompt, "prompt_template", options->prompt_template, ',', k, count) == 0 &&
        value_of(&chat, "chat_template", options->chat_template, ',', k, count) == 0 &&
        value_of(&train, "train_on", options->train_on, ',', k, count) == 0 &&
        value_of(&columns, "columns", options->columns, ';', k, count) == 0) {
        o.row_format = options->row_format && !format ? "auto" : format;
        o.text_field = field;
        o.prompt_template = prompt;
        o.chat_template = chat;
        o.train_on = train;
        o.columns = columns;
        d = tune_dataset_open(path, &o, tok);
    }
    free(format);
    free(field);
    free(prompt);
    free(chat);
    free(train);
    free(columns);
    return d;
}

struct tune_dataset *tune_dataset_open_several(const char *paths, const struct tune_dataset_options *options,
                                               struct tune_tokenizer *tok)
{
    struct tune_dataset *sets[TUNE_DATASET_SETS], *joined = NULL;
    char path[TUNE_PATH_MAX];
    int count = 0, opened = 0, more;
    while ((more = tune_path_listed(paths, count, path)) == 1)
        count++;
    if (more < 0)
        return NULL;
    if (count > TUNE_DATASET_SETS)
        tune_error_usage("%d data sets, expected at most %d", count, TUNE_DATASET_SETS);
    while (count <= TUNE_DATASET_SETS && opened < count && tune_path_listed(paths, opened, path) == 1 &&
           (sets[opened] = open_one(path, opened, count, options, tok)))
        opened++;
    if (opened == count)
        joined = count == 1 ? sets[0] : tune_dataset_join(sets, count);
    for (int k = 0; !joined && k < opened; k++)
        tune_dataset_free(sets[k]);
    return joined;
}
