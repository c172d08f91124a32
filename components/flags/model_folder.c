/* model_folder.c - what --model and --adapter may mean beside a folder of a model. That is a run, a
 * name in models/ or runs/, or a file in the folder. An adapter names its base. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/file.h"
#include "files/folder.h"
#include "files/json.h"
#include "flags/known.h"
#include "flags/find.h"
#include "flags/model_hint.h"
#include "flags/state.h"

static bool has_file(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tune_file_exists(path);
}

static bool is_model(const char *folder)
{
    return has_file(folder, "config.json") || has_file(folder, "adapter_config.json") || has_file(folder, "tokenizer.json");
}

/* Add a line to what the program says before it starts. */
static int add_note(struct tune_flags *flags, const char *format, ...) TUNE_PRINTF(2, 3);
static int add_note(struct tune_flags *flags, const char *format, ...)
{
    char text[3 * TUNE_PATH_MAX];
    FORMAT(text, format);
    tune_blank_controls(text); /* a folder's name, or what a file says, stays on its line */
    return tune_flags_add_note(flags->state, text);
}

/* The folder of a file that stands for its model: model.safetensors, config.json. */
static bool is_file_of(const char *name, char folder[TUNE_PATH_MAX])
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", "config.json", "adapter_model.safetensors",
                                        "adapter_config.json"};
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(last, names[i]))
            return tune_file_exists(name) && !tune_file_is_folder(name) && tune_file_parent(folder, name) == 0;
    return false;
}

/* True if the name means a model here already: a folder of one, a known name, a Hub id. */
static bool is_name(const char *name)
{
    struct tune_known_model known;
    char folder[TUNE_PATH_MAX];
    return (tune_file_is_folder(name) && is_model(name)) || tune_known_model(name, &known) == 1 ||
           (strchr(name, '/') && !tune_file_exists(name) && tune_model_locate(name, folder));
}

/* Find what else the name means. 1: found, and why says what it is; 0: nothing; -1 with an error. */
static int find_folder(const char *name, char found[TUNE_PATH_MAX], char *why, size_t size)
{
    static const char *const parents[] = {"models", "runs"};
    char folder[TUNE_PATH_MAX];
    bool best;
    if (is_file_of(name, found)) {
        snprintf(why, size, "the folder of that file");
        return 1;
    }
    if (is_name(name))
        return 0;
    for (int i = -1; i < 2; i++) { /* the folder itself, then models/NAME, then runs/NAME */
        if (i >= 0 && (strchr(name, '/') || tune_path(folder, "%s/%s", parents[i], name) < 0))
            continue;
        const char *at = i < 0 ? name : folder;
        if (!tune_file_is_folder(at))
            continue;
        if (is_model(at) && i >= 0) {
            snprintf(why, size, "that model in %s/", parents[i]);
            return tune_path(found, "%s", at) < 0 ? -1 : 1;
        }
        if (tune_model_in(at, found, &best)) {
            snprintf(why, size, best ? "the best checkpoint of the run %s" : "the newest checkpoint of the run %s; none is its best", at);
            return 1;
        }
    }
    return 0;
}

/* Replace the option's value by what it means. */
static int resolve(struct tune_flags *flags, const char *option)
{
    struct tune_flags_state *state = flags->state;
    char folder[TUNE_PATH_MAX], why[TUNE_PATH_MAX + 64];
    int i = tune_flags_row(state, option, strlen(option));
    if (i < 0 || !state->at[i].text || state->at[i].source < TUNE_FROM_CONFIG)
        return 0;
    struct tune_error before;
    tune_error_save(&before);
    int found = find_folder(state->at[i].text, folder, why, sizeof why);
    tune_error_restore(&before);
    if (found <= 0)
        return 0; /* whoever opens it says what is wrong */
    TRY(add_note(flags, "# %-12s %s: %s, %s", option, state->at[i].text, folder, why));
    return tune_flags_set(state, i, folder, state->at[i].source, option);
}

/* The base that an adapter's file names, or NULL. The caller frees it. */
static char *base_of(const char *adapter)
{
    char path[TUNE_PATH_MAX], *text = NULL, *base = NULL;
    size_t size;
    struct tune_json j;
    struct tune_text key, value;
    int more = -1;
    if (!has_file(adapter, "adapter_config.json") || tune_path(path, "%s/adapter_config.json", adapter) < 0 ||
        tune_folder_read(adapter, "adapter_config.json", 1 << 20, &text, &size) < 0)
        return NULL;
    tune_json_start(&j, path, text, size, 1);
    if (tune_json_object(&j) == 0)
        while ((more = tune_json_key(&j, &key)) == 1 && !base) {
            bool wanted = tune_text_equal(key, "base_model_name_or_path") && tune_json_peek(&j) == TUNE_JSON_STRING;
            if ((wanted ? tune_json_string(&j, &value) : tune_json_skip(&j)) < 0)
                break;
            if (wanted && value.size > 0 && strlen(value.data) == value.size)
                base = strdup(value.data);
        }
    tune_json_free(&j);
    free(text);
    return base;
}

/* A model that is an adapter is that adapter on its base, in programs that take one. */
static int take_adapter(struct tune_flags *flags, int model, int adapter)
{
    struct tune_flags_state *state = flags->state;
    const char *folder = state->at[model].text;
    if (state->at[adapter].text || !folder || state->at[model].source < TUNE_FROM_CONFIG || has_file(folder, "config.json") ||
        !has_file(folder, "adapter_config.json"))
        return 0;
    char *base = base_of(folder);
    int status = 0;
    if (base && add_note(flags, "# %-12s %s: an adapter; taken as --adapter", "model", folder) == 0) {
        status = tune_flags_set(state, adapter, folder, state->at[model].source, "--adapter");
        if (status == 0)
            status = tune_flags_set(state, model, base, state->at[model].source, "--model");
        if (status == 0)
            status = add_note(flags, "# %-12s %s: the base that the adapter names", "model", base);
    }
    free(base);
    return status;
}

/* --adapter without --model: the base that it names. */
static int take_base(struct tune_flags *flags, int model, int adapter)
{
    struct tune_flags_state *state = flags->state;
    if (state->at[model].text || !state->at[adapter].text)
        return 0;
    const char *folder = state->at[adapter].text;
    char *base = base_of(folder);
    if (!base && has_file(folder, "adapter_config.json"))
        return tune_error_usage("--adapter %s: its adapter_config.json names no base (base_model_name_or_path); give --model", folder);
    int status = base ? tune_flags_set(state, model, base, state->at[adapter].source, "--model") : 0;
    if (base && status == 0)
        status = add_note(flags, "# %-12s %s: the base that the adapter names", "model", base);
    free(base);
    return status;
}

int tune_flags_find_folders(struct tune_flags *flags)
{
    int model = tune_flags_row(flags->state, "model", 5), adapter = tune_flags_row(flags->state, "adapter", 7);
    TRY(resolve(flags, "model"));
    TRY(resolve(flags, "adapter"));
    TRY(resolve(flags, "compare-model"));
    if (model < 0 || adapter < 0)
        return 0;
    TRY(take_adapter(flags, model, adapter));
    return take_base(flags, model, adapter);
}
