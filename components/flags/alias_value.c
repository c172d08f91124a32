/* alias_value.c - values of other tools that are computed: shares, fractions of an epoch, splits of
 * data sets, and LLaMA-Factory's dataset_info.json. */
#include "flags/aliases.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "files/cjson.h"
#include "files/file.h"

/* The number that a text is; false: none. */
static bool read_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end > text && !*end;
}

/* The number of a setting; 1 if the file has none. */
static double number_of(const struct tune_alias_file *f, const char *name)
{
    const struct tune_alias_leaf *leaf = tune_alias_leaf_of(f, name);
    double number;
    return leaf && read_number(leaf->text, &number) && number > 0 ? number : 1;
}

static void set_number(struct tune_alias_file *f, const char *option, double number, struct tune_alias_effect *effect)
{
    char text[64];
    snprintf(text, sizeof text, "%.6g", number);
    tune_alias_set(f, option, text, -1, false, effect);
}

/* Split a text at the comma into two numbers for two options. */
static void set_betas(struct tune_alias_file *f, const char *text, struct tune_alias_effect *effect)
{
    char first[64];
    const char *comma = strchr(text, ',');
    if (!comma) {
        tune_alias_stop(effect, "expected two numbers");
        return;
    }
    snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
    tune_alias_set(f, "beta1", first, -1, false, effect);
    tune_alias_set(f, "beta2", comma + 1, -1, false, effect);
}

/* A split as the library datasets writes it: train, train[:95%], train[:500]. */
static void set_split(struct tune_alias_file *f, const char *text, struct tune_alias_effect *effect)
{
    char *end = NULL;
    long n = strncmp(text, "train[:", 7) ? 0 : strtol(text + 7, &end, 10);
    if (!strcmp(text, "train"))
        snprintf(effect->why, sizeof effect->why, "it is so anyway");
    else if (n >= 50 && n <= 100 && !strcmp(end, "%]")) {
        set_number(f, "train-split", (double)n / 100, effect);
        snprintf(effect->why, sizeof effect->why, "that share of the rows, by their content; the others are held out");
    } else if (n > 0 && !strcmp(end, "]"))
        set_number(f, "limit", (double)n, effect);
    else
        tune_alias_stop(effect, "give a file with the rows that are meant, or --limit N for the first N");
}

/* val_set_size and others: a share to hold out, or a number of rows. */
static void set_one_minus(struct tune_alias_file *f, double number, const char *option, struct tune_alias_effect *effect)
{
    if (number < 1)
        set_number(f, option, 1 - number, effect);
    else
        tune_alias_stop(effect, "it is a number of rows; --train-split takes the share that is trained");
}

static void set_warm_up(struct tune_alias_file *f, double number, struct tune_alias_effect *effect)
{
    if (number < 1)
        set_number(f, number > 0 ? "warmup-ratio" : "warmup-ratio?", number, effect);
    else
        set_number(f, "warmup-steps", number, effect);
}

/* Rules about numbers. false: `rule` is none of them. */
static bool set_by_number(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, const char *rule, const char *option,
                          struct tune_alias_effect *effect)
{
    double number = 0;
    bool good = read_number(leaf->text, &number);
    if (!strcmp(rule, "one minus") && good)
        set_one_minus(f, number, option, effect);
    else if (!strcmp(rule, "warm-up") && good)
        set_warm_up(f, number, effect);
    else if (!strcmp(rule, "times epochs") && good)
        set_number(f, option, number * number_of(f, "epochs"), effect);
    else if (!strncmp(rule, "over ", 5) && good)
        set_number(f, option, number / number_of(f, rule + 5), effect);
    else if (!strcmp(rule, "per epoch") && good && number == 1)
        tune_alias_set(f, option, "epoch", -1, false, effect);
    else if (!strcmp(rule, "per epoch") && good)
        set_number(f, option, number > 0 ? 1 / (number * number_of(f, "num_epochs")) : 0, effect);
    else
        return false;
    return true;
}

void tune_alias_as(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, const char *rule, const char *option,
                     struct tune_alias_effect *effect)
{
    char text[512];
    const char *last = strrchr(leaf->name, '.');
    if (!strcmp(rule, "info")) {
        tune_alias_info(f, leaf, effect);
    } else if (!strcmp(rule, "split")) {
        set_split(f, leaf->text, effect);
    } else if (!strcmp(rule, "betas")) {
        set_betas(f, leaf->text, effect);
    } else if (!strcmp(rule, "conversation")) {
        snprintf(text, sizeof text, "@=%s", leaf->text);
        tune_alias_set(f, "columns", text, leaf->index, false, effect);
    } else if (!strncmp(rule, "column", 6)) {
        snprintf(text, sizeof text, "%s=%s", rule[6] ? rule + 7 : last ? last + 1 : leaf->name, leaf->text);
        tune_alias_set(f, "columns", text, leaf->index, false, effect);
    } else if (!set_by_number(f, leaf, rule, option, effect)) {
        tune_alias_stop(effect, "expected a number");
    }
}

/* ---- LLaMA-Factory's dataset_info.json ---- */

static const char *text_or(const cJSON *object, const char *key, const char *otherwise)
{
    const char *text = tune_alias_text(object, key);
    return text ? text : otherwise;
}

/* Add "name=column" for the columns of an entry that are not called as here. */
static void set_columns(struct tune_alias_file *f, const cJSON *columns, bool alpaca, int index, const char *messages,
                        struct tune_alias_effect *effect)
{
    static const struct { const char *theirs, *ours; } names[] = {
        {"prompt", "instruction"}, {"query", "input"}, {"response", "output"}, {"history", "history"},
        {"system", "system"}, {"tools", "tools"}, {"chosen", "chosen"}, {"rejected", "rejected"},
    };
    char text[512];
    const char *list = text_or(columns, "messages", "conversations");
    if (!alpaca && strcmp(list, messages)) {
        snprintf(text, sizeof text, "%s=%s", messages, list);
        tune_alias_set(f, "columns", text, index, false, effect);
    }
    for (size_t i = alpaca ? 0 : 4; i < sizeof names / sizeof *names; i++) {
        const char *column = tune_alias_text(columns, names[i].theirs);
        if (!column || !*column || !strcmp(column, names[i].ours))
            continue;
        snprintf(text, sizeof text, "%s=%s", names[i].ours, column);
        tune_alias_set(f, "columns", text, index, false, effect);
    }
}

/* Set what an entry says of a data set: its place, its format, its columns. */
static void set_entry(struct tune_alias_file *f, const cJSON *entry, const char *folder, int index, struct tune_alias_effect *effect)
{
    const cJSON *columns = cJSON_GetObjectItemCaseSensitive(entry, "columns"), *tags = cJSON_GetObjectItemCaseSensitive(entry, "tags");
    const char *file = tune_alias_text(entry, "file_name"), *hub = tune_alias_text(entry, "hf_hub_url");
    const char *formatting = text_or(entry, "formatting", "alpaca");
    bool alpaca = !strcmp(formatting, "alpaca"), ranking = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "ranking"));
    bool roles = !strcmp(formatting, "openai") || !strcmp(text_or(tags, "role_tag", "from"), "role");
    char path[TUNE_PATH_MAX];
    if (text_or(columns, "images", NULL) || text_or(columns, "videos", NULL) || text_or(columns, "audios", NULL)) {
        tune_alias_stop(effect, "there are no images here");
        return;
    }
    snprintf(path, sizeof path, "%s%s%s", file ? folder : "", file ? "/" : "", file ? file : hub ? hub : "");
    if (!*path) {
        tune_alias_stop(effect, "dataset_info.json gives no file_name and no hf_hub_url for it");
        return;
    }
    tune_alias_set(f, "dataset", path, index, false, effect);
    const struct tune_alias_leaf *stage = tune_alias_leaf_of(f, "stage");
    if (stage && !strcmp(stage->text, "pt")) { /* the column of prompts is the text */
        tune_alias_set(f, "text-field", text_or(columns, "prompt", "instruction"), index, false, effect);
        return;
    }
    const char *format = ranking ? (alpaca ? "alpaca-preference" : "sharegpt-preference") : alpaca ? "alpaca-chat" : roles ? "messages" : "sharegpt";
    tune_alias_set(f, "format", format, index, false, effect);
    set_columns(f, columns, alpaca, index, roles && !ranking ? "messages" : "conversations", effect);
}

void tune_alias_info(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, struct tune_alias_effect *effect)
{
    const struct tune_alias_leaf *dir = tune_alias_leaf_of(f, "dataset_dir");
    const char *folder = dir ? dir->text : "data";
    bool eval = !strcmp(leaf->name, "eval_dataset");
    int row = tune_flags_row(f->state, eval ? "eval-dataset" : "dataset", eval ? 12 : 7), index = 0;
    char path[TUNE_PATH_MAX], name[256];
    struct tune_error before;
    tune_error_save(&before);
    cJSON *info = tune_path(path, "%s/dataset_info.json", folder) == 0 ? tune_cjson_read(path, 1 << 24) : NULL;
    tune_error_restore(&before);
    if (row >= 0 && f->state->at[row].typed) {
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "--%s on the command line replaces it", f->state->at[row].row.name);
    } else if (!info) {
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "%.300s/dataset_info.json, which says where it is, is not here; give --%sdataset FILE and --format",
                 folder, eval ? "eval-" : "");
    }
    for (const char *at = leaf->text; !effect->left && *at; at += *at == ',') {
        at += strspn(at, " ");
        size_t n = strcspn(at, ","), size = n;
        while (size > 0 && isspace((unsigned char)at[size - 1]))
            size--;
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        const cJSON *entry = cJSON_GetObjectItemCaseSensitive(info, name);
        if (!entry)
            tune_alias_stop(effect, "%.200s has no entry \"%.100s\"", path, name);
        else if (eval)
            tune_alias_stop(effect, "--eval-dataset FILE says what to evaluate on");
        else
            set_entry(f, entry, folder, index++, effect);
        at += n;
    }
    cJSON_Delete(info);
}
