/* aliases.c - names of other tools: what their settings and values are called here. */
#include "flags/aliases.h"

#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "files/cjson.h"
#include "files/file.h"

cJSON *tune_aliases_read(void)
{
    char path[TUNE_PATH_MAX];
    struct tune_error before;
    tune_error_save(&before);
    cJSON *json = tune_defaults_path(path, "aliases.json") == 0 ? tune_cjson_read(path, 1 << 22) : NULL;
    tune_error_restore(&before); /* a foreign program may not have our defaults */
    return json;
}

const char *tune_alias_text(const cJSON *row, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, key));
}

/* True if one of the words, with spaces between, fits text: as a pattern, or as it is. */
static bool is_listed(const char *words, const char *text, bool pattern)
{
    char word[128];
    for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (pattern ? fnmatch(word, text, 0) == 0 : !strcmp(word, text))
            return true;
        at += n;
    }
    return false;
}

const cJSON *tune_alias_row(const cJSON *table, const char *tool, const char *name, const char *when)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(table, "settings")) {
        const char *names = tune_alias_text(row, "name"), *in = tune_alias_text(row, "in");
        const char *only = tune_alias_text(row, "when");
        if (names && (!tool || !in || is_listed(in, tool, false)) && (!when || !only || !strcmp(only, when)) &&
            is_listed(names, name, true))
            return row;
    }
    return NULL;
}

const cJSON *tune_alias_match(const cJSON *patterns, const char *text)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, patterns)
        if (fnmatch(member->string, text, FNM_CASEFOLD) == 0)
            return member;
    return NULL;
}

const char *tune_alias_word(const cJSON *table, const char *option, const char *text, const char **note, const char **stops)
{
    const cJSON *words = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(table, "words"), option);
    const cJSON *found = tune_alias_match(words, text);
    *note = tune_alias_text(found, "note");
    *stops = tune_alias_text(found, "stops");
    return cJSON_IsString(found) ? found->valuestring : tune_alias_text(found, "value");
}

/* ---- options of our other programs ---- */

/* True if one of the rows has that name. */
static bool has_row(const struct tune_option *options, const char *name)
{
    struct tune_flags_entry entry = {0};
    struct tune_flags_state one = {.at = &entry, .count = 1};
    for (const struct tune_option *o = options; o->name; o++) {
        entry.row.name = o->name;
        if (o->type != TUNE_GROUP && o->at && tune_flags_row(&one, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

const char *tune_alias_elsewhere(const struct tune_flags_state *state, const char *option)
{
    struct tune_flags nowhere; /* the rows need places; nothing is written there */
    const struct tune_option lora[] = {TUNE_LORA_OPTIONS(nowhere), {0}}, preference[] = {TUNE_PREFERENCE_OPTIONS(nowhere), {0}};
    const struct tune_option training[] = {TUNE_OPTIMIZER_OPTIONS(nowhere), TUNE_RUN_OPTIONS(nowhere),
                                           TUNE_EVALUATION_OPTIONS(nowhere), {0}};
    const struct tune_option generation[] = {TUNE_GENERATION_OPTIONS(nowhere), {0}};
    if (tune_flags_row(state, option, strlen(option)) >= 0)
        return NULL;
    return has_row(lora, option)         ? "finetune_lora"
           : has_row(preference, option) ? "finetune_dpo"
           : has_row(training, option)   ? "finetune_full"
           : has_row(generation, option) ? "generate"
                                         : NULL;
}

/* ---- one name on the command line ---- */

const char *tune_flags_alias(const struct tune_flags_state *state, const char *name, char *text, size_t size)
{
    char plain[128], option[64];
    const char *program = tune_alias_elsewhere(state, name);
    if (program) {
        snprintf(text, size, "; %s has it", program);
        return text;
    }
    snprintf(plain, sizeof plain, "%s", name);
    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '_' : *c;
    cJSON *table = tune_aliases_read();
    const cJSON *row = tune_alias_row(table, NULL, plain, NULL);
    const char *ours = tune_alias_text(row, "option"), *say = tune_alias_text(row, "say");
    const char *why = tune_alias_text(row, "left");
    why = why ? why : tune_alias_text(row, "stops");
    snprintf(option, sizeof option, "%.*s", ours ? (int)strcspn(ours, "+?!") : 0, ours ? ours : "");
    *text = 0;
    if (ours && tune_flags_row(state, option, strlen(option)) >= 0)
        snprintf(text, size, "; here it is --%s%s%s", option, say ? " " : "", say ? say : "");
    else if (ours)
        snprintf(text, size, "; other recipes have it as --%s%s%s", option, say ? " " : "", say ? say : "");
    else if (why)
        snprintf(text, size, "; there is none here: %s", why);
    cJSON_Delete(table);
    return *text ? text : NULL;
}

bool tune_flags_read_word(const struct tune_option *row, const char *text, char ours[64], char *said, size_t size)
{
    const char *note, *stops;
    cJSON *table = tune_aliases_read();
    const char *word = tune_alias_word(table, row->name, text, &note, &stops);
    *said = 0;
    if (word) {
        snprintf(ours, 64, "%s", word);
        snprintf(said, size, "--%s %s is read as %s%s%s", row->name, text, word, note ? ": " : "", note ? note : "");
    } else if (stops) {
        snprintf(said, size, "; %s", stops);
    }
    cJSON_Delete(table);
    return word != NULL;
}
