/* alias_setting.c - what one setting of another tool becomes, by its row of the names. */
#include "flags/aliases.h"

#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/pool.h"
#include "core/print.h"

const char *tune_alias_copy(struct tune_alias_file *f, const char *text)
{
    char *copy = tune_pool_text(&f->state->pool, text, strlen(text));
    f->no_memory = f->no_memory || !copy;
    return copy ? copy : "";
}

void tune_alias_stop(struct tune_alias_effect *effect, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(effect->why, sizeof effect->why, format, list);
    va_end(list);
    effect->stops = true;
}

/* Room for one more item of an array that doubles; NULL: no memory. */
void *tune_alias_grow(void *at, int count, size_t size)
{
    bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    return full ? realloc(at, (size_t)(count ? 2 * count : 16) * size) : at;
}

void tune_alias_find(struct tune_alias_file *f, enum tune_finding_kind kind, const struct tune_alias_leaf *leaf,
                        const char *name, const char *to, const char *why)
{
    struct tune_flags_state *state = f->state;
    struct tune_finding *more = tune_alias_grow(state->findings, state->finding_count, sizeof *more);
    if (!more) {
        f->no_memory = true;
        return;
    }
    state->findings = more;
    more[state->finding_count++] = (struct tune_finding){kind, leaf ? leaf->node->line : 0, name, leaf ? tune_alias_copy(f, leaf->text) : "",
                                                         tune_alias_copy(f, to), tune_alias_copy(f, why)};
}

/* True if an option that makes a setting pointless is on the command line. */
static bool is_replaced(const struct tune_alias_file *f, const char *by)
{
    int i = by ? tune_flags_row(f->state, by, strlen(by)) : -1;
    return i >= 0 && f->state->at[i].typed;
}

static void set_options(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, const cJSON *options,
                        struct tune_alias_effect *effect)
{
    const cJSON *option;
    cJSON_ArrayForEach(option, options)
        if (cJSON_IsString(option))
            tune_alias_set(f, option->string, option->valuestring, leaf->index, true, effect);
}

/* Do what a row, or its object for one value, says. row: the whole row. */
static void follow_rule(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, const cJSON *row, const cJSON *rule,
                        struct tune_alias_effect *effect)
{
    const char *option = tune_alias_text(row, "option"), *stops = tune_alias_text(rule, "stops"), *left = tune_alias_text(rule, "left");
    const char *by = tune_alias_text(rule, "by"), *as = tune_alias_text(rule, "as"), *note = tune_alias_text(rule, "note");
    const char *program = tune_alias_text(rule, "program"), *value = tune_alias_text(rule, "value");
    by = by ? by : tune_alias_text(row, "by");
    if (stops && is_replaced(f, by)) {
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "--%s on the command line replaces it", by);
        return;
    }
    if (stops)
        tune_alias_stop(effect, "%s", stops);
    if (left)
        snprintf(effect->why, sizeof effect->why, "%s", left);
    effect->left = left != NULL;
    if (program)
        tune_append(effect->to, sizeof effect->to, !strcmp(program, "sft") ? "a recipe for texts" : "finetune_%s", program);
    set_options(f, leaf, cJSON_GetObjectItemCaseSensitive(rule, "options"), effect);
    if (as)
        tune_alias_as(f, leaf, as, option, effect);
    else if (option && !stops && !left && (rule == row || value))
        tune_alias_set(f, option, value ? value : leaf->text, leaf->index, false, effect);
    if (note)
        snprintf(effect->why, sizeof effect->why, "%s", note);
    if (effect->stops && as && is_replaced(f, by)) {
        effect->stops = false;
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "--%s on the command line replaces it", by);
    }
}

/* The member of a row that says what to do with a value; the row itself if none does. */
const cJSON *tune_alias_rule(const cJSON *row, const char *text)
{
    const cJSON *rule = tune_alias_match(cJSON_GetObjectItemCaseSensitive(row, "values"), text);
    rule = rule ? rule : cJSON_GetObjectItemCaseSensitive(row, "else");
    return rule ? rule : row;
}

/* The items of a list in our words. */
static const char *translate_items(struct tune_alias_file *f, const cJSON *items, const char *text)
{
    char list[2048] = "", item[256];
    for (const char *at = text; items && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        const char *ours = tune_alias_text(items, item);
        tune_append(list, sizeof list, "%s%s", *list ? "," : "", ours ? ours : item);
        at += n;
    }
    return items ? tune_alias_copy(f, list) : text;
}

bool tune_alias_ignored(const struct tune_alias_file *f, const char *name)
{
    char pattern[256];
    for (const char *at = f->state->ignored; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        size_t length = strlen(pattern);
        if (fnmatch(pattern, name, 0) == 0 || (!strncmp(pattern, name, length) && name[length] == '.'))
            return true;
        at += n;
    }
    return false;
}

void tune_alias_follow(struct tune_alias_file *f, const struct tune_alias_leaf *from)
{
    struct tune_alias_effect effect = {0};
    struct tune_alias_leaf leaf = *from;
    const cJSON *row = tune_alias_row(f->table, f->tool, leaf.name, !strcmp(f->stage, "dpo") ? "dpo" : "sft");
    leaf.text = translate_items(f, cJSON_GetObjectItemCaseSensitive(row, "items"), leaf.text);
    if (tune_alias_ignored(f, leaf.name)) {
        tune_alias_find(f, TUNE_LEFT_OUT, from, leaf.name, "", "--ignore-keys says so");
        return;
    }
    if (!row && tune_flags_row(f->state, leaf.name, strlen(leaf.name)) >= 0) {
        tune_alias_set(f, leaf.name, leaf.text, -1, false, &effect);
    } else if (!row) {
        tune_alias_stop(&effect, "this name is not known");
    } else {
        const cJSON *rule = tune_alias_rule(row, leaf.text);
        if (cJSON_IsNull(rule))
            snprintf(effect.why, sizeof effect.why, "it is so anyway");
        else if (cJSON_IsString(rule))
            tune_alias_set(f, tune_alias_text(row, "option") ? tune_alias_text(row, "option") : "", rule->valuestring, leaf.index,
                             false, &effect);
        else
            follow_rule(f, &leaf, row, rule, &effect);
    }
    tune_alias_find(f, effect.stops ? TUNE_STOPS : effect.left ? TUNE_LEFT_OUT : TUNE_TAKEN, from, leaf.name, effect.to, effect.why);
}
