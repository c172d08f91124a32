/* alias_slots.c - values for our options from a file of another tool, until all are known. Several
 * settings may give one option; some options have a value for each of several data sets. */
#include "flags/aliases.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "files/file.h"

/* True if an option may differ for each of several files. */
static bool is_by_file(const char *option)
{
    static const char *const names[] = {"dataset", "format", "columns", "text-field", "train-on", "chat-template"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(option, names[i]))
            return true;
    return false;
}

/* Check that the option takes the value; *text may become what we write for it. */
static bool fits_option(struct tune_alias_file *f, int i, const char **text, struct tune_alias_effect *effect)
{
    struct tune_option copy, *row = &f->state->at[i].row;
    union tune_option_value scratch;
    const char *note, *stops, *word = tune_alias_word(f->table, row->name, *text, &note, &stops);
    struct tune_error before;
    tune_error_save(&before);
    bool good = tune_flags_put_elsewhere(&copy, &scratch, row, *text) == 0;
    if (!good && word && (good = tune_flags_put_elsewhere(&copy, &scratch, row, word) == 0)) {
        *text = tune_alias_copy(f, word);
        if (note)
            snprintf(effect->why, sizeof effect->why, "%s", note);
    }
    if (!good)
        snprintf(effect->why, sizeof effect->why, "%.600s", stops ? stops : tune_error_message());
    tune_error_restore(&before);
    return good;
}

void tune_alias_set(struct tune_alias_file *f, const char *option, const char *text, int index, bool optional,
                      struct tune_alias_effect *effect)
{
    char name[64];
    size_t size = strcspn(option, "+?!");
    char mark = option[size];
    snprintf(name, sizeof name, "%.*s", (int)size, option);
    int i = tune_flags_row(f->state, name, size);
    if (i < 0 && mark == '?')
        return;
    if (i < 0) {
        const char *program = tune_alias_elsewhere(f->state, name);
        effect->left = !*effect->to;
        snprintf(effect->why, sizeof effect->why, "%s has --%s", program ? program : "no program of this version", name);
        return;
    }
    if (!is_by_file(name) && mark != '+' && !fits_option(f, i, &text, effect)) {
        effect->left = optional;
        effect->stops = !optional;
        if (optional)
            snprintf(effect->why, sizeof effect->why, "--%s does not take \"%.100s\" in this version", name, text);
        return;
    }
    struct tune_alias_slot *more = tune_alias_grow(f->slots, f->slot_count, sizeof *more);
    if (!more) {
        f->no_memory = true;
        return;
    }
    f->slots = more;
    more[f->slot_count++] = (struct tune_alias_slot){
        .option = f->state->at[i].row.name, .text = tune_alias_copy(f, text), .index = index,
        .rank = mark == '!' ? 2 : mark == '?' ? 0 : 1, .add = mark == '+' || !strcmp(name, "columns"),
    };
    tune_append(effect->to, sizeof effect->to, "%s--%s %s", *effect->to ? " " : "", f->state->at[i].row.name, text);
}

/* The slot that holds for one of several files: the highest rank, then the last. columns: all of
 * them, with commas between. */
static const struct tune_alias_slot *best_slot(const struct tune_alias_file *f, const char *option, int index)
{
    const struct tune_alias_slot *best = NULL;
    for (int i = 0; i < f->slot_count; i++)
        if (!strcmp(f->slots[i].option, option) && f->slots[i].index == index && (!best || f->slots[i].rank >= best->rank))
            best = &f->slots[i];
    return best;
}

/* The value of an option for file `index`. In columns, "@=" stands for the name of conversations. */
static void value_for(const struct tune_alias_file *f, const char *option, int index, char *text, size_t size)
{
    const struct tune_alias_slot *best = best_slot(f, option, index);
    *text = 0;
    if (!best && index >= 0)
        best = best_slot(f, option, index = -1);
    if (!best)
        return;
    if (!best->add) {
        snprintf(text, size, "%s", best->text);
        return;
    }
    for (int i = 0; i < f->slot_count; i++) {
        const struct tune_alias_slot *s = &f->slots[i];
        if (strcmp(s->option, option) || s->index != index || s->rank != best->rank)
            continue;
        const struct tune_alias_slot *format = best_slot(f, "format", index);
        bool sharegpt = format && !strncmp(format->text, "sharegpt", 8), names = s->text[0] == '@';
        tune_append(text, size, "%s%s%s", *text ? "," : "", !names ? "" : sharegpt ? "conversations" : "messages", s->text + names);
    }
}

/* Put the values of all files of an option into text. */
static void join_files(const struct tune_alias_file *f, const char *option, int files, char *text, size_t size)
{
    char one[1024], first[1024];
    bool equal = true;
    value_for(f, option, files > 0 ? 0 : -1, first, sizeof first);
    snprintf(text, size, "%s", first);
    for (int i = 1; i < files; i++) {
        value_for(f, option, i, one, sizeof one);
        equal = equal && !strcmp(one, first);
        tune_append(text, size, "%s%s", !strcmp(option, "columns") ? ";" : ",", one);
    }
    if (equal && strcmp(option, "dataset"))
        snprintf(text, size, "%s", first);
}

static bool is_first_slot(const struct tune_alias_file *f, int at)
{
    for (int i = 0; i < at; i++)
        if (!strcmp(f->slots[i].option, f->slots[at].option))
            return false;
    return true;
}

/* The tool's own default for what the file leaves out. 2*lora-r is twice that option's value. */
void tune_alias_assume(struct tune_alias_file *f, const cJSON *values)
{
    const cJSON *value;
    cJSON_ArrayForEach(value, values) {
        struct tune_alias_effect effect = {0};
        char text[64], rank[64];
        value_for(f, "lora-r", -1, rank, sizeof rank);
        snprintf(text, sizeof text, "%s", cJSON_IsString(value) ? value->valuestring : "");
        if (!strcmp(text, "2*lora-r"))
            snprintf(text, sizeof text, "%d", 2 * atoi(rank));
        bool given = false;
        for (int i = 0; i < f->slot_count; i++)
            given = given || !strcmp(f->slots[i].option, value->string);
        if (given || tune_flags_row(f->state, value->string, strlen(value->string)) < 0)
            continue;
        tune_alias_set(f, value->string, text, -1, true, &effect);
        if (!effect.left)
            tune_alias_find(f, TUNE_ASSUMED, NULL, "", effect.to, "");
    }
}

void tune_alias_finish(struct tune_alias_file *f)
{
    int files = 0, dataset = tune_flags_row(f->state, "dataset", 7);
    char text[4096], where[TUNE_PATH_MAX + 64];
    for (int i = 0; i < f->slot_count; i++)
        if (!strcmp(f->slots[i].option, "dataset") && f->slots[i].index >= files)
            files = f->slots[i].index + 1;
    if (dataset >= 0 && f->state->at[dataset].typed)
        files = files > 1 ? 1 : files;
    for (int i = 0; i < f->slot_count; i++) {
        const char *option = f->slots[i].option;
        if (!is_first_slot(f, i))
            continue;
        if (is_by_file(option))
            join_files(f, option, files > 0 || f->slots[i].index < 0 ? files : 1, text, sizeof text);
        else {
            const struct tune_alias_slot *best = &f->slots[i];
            for (int k = i; k < f->slot_count; k++)
                best = !strcmp(f->slots[k].option, option) && f->slots[k].rank >= best->rank ? &f->slots[k] : best;
            value_for(f, option, best->index, text, sizeof text);
        }
        snprintf(where, sizeof where, "%s: %s", f->path, option);
        int row = tune_flags_row(f->state, option, strlen(option));
        if (*text && tune_flags_set(f->state, row, text, TUNE_FROM_CONFIG, where) < 0) {
            if (!f->state->fits) /* another program may take it */
                tune_alias_find(f, TUNE_STOPS, NULL, option, "", tune_error_message());
            tune_error_clear();
        }
    }
}
