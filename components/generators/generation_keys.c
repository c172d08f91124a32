/* generation_keys.c - the keys of generation_config.json beside sampling: which are obeyed, which change no answer, and
 * which are left out. */
#include "generators/generation_keys.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"

/* Keys that are obeyed and are whole numbers of at least `least`. */
static const struct whole_key {
    const char *name;
    int least;
    size_t at; /* in struct tune_token_rules */
} wholes[] = {
    {"no_repeat_ngram_size", 0, offsetof(struct tune_token_rules, no_repeat_ngram_size)},
    {"min_length", 0, offsetof(struct tune_token_rules, min_length)},
    {"min_new_tokens", 0, offsetof(struct tune_token_rules, min_new_tokens)},
    {"max_length", 1, offsetof(struct tune_token_rules, max_length)},
    {"max_new_tokens", 1, offsetof(struct tune_token_rules, max_new_tokens)},
};

/* Keys that are obeyed and are lists of ids. */
static const struct list_key {
    const char *name;
    size_t at;
    bool single; /* an id alone will do */
} lists[] = {
    {"suppress_tokens", offsetof(struct tune_token_rules, suppress), false},
    {"begin_suppress_tokens", offsetof(struct tune_token_rules, begin_suppress), false},
    {"forced_bos_token_id", offsetof(struct tune_token_rules, forced_bos), true},
    {"forced_eos_token_id", offsetof(struct tune_token_rules, forced_eos), true},
};

/* All other keys that transformers 5 knows. */
static const struct other_key {
    const char *name;
    bool changes;   /* the key may change an answer */
    double neutral; /* with this value it does not; nor with null, false and what is empty */
} others[] = {
    /* read elsewhere */
    {"do_sample", false, 0}, {"temperature", false, 0}, {"top_k", false, 0}, {"top_p", false, 0}, {"min_p", false, 0},
    {"repetition_penalty", false, 0}, {"eos_token_id", false, 0}, {"bad_words_ids", false, 0}, {"stop_strings", false, 0},
    /* memory, speed, outputs, bookkeeping; what speculative decoding takes */
    {"bos_token_id", false, 0}, {"pad_token_id", false, 0}, {"use_cache", false, 0}, {"max_cache_len", false, 0},
    {"cache_config", false, 0}, {"renormalize_logits", false, 0}, {"output_attentions", false, 0}, {"output_scores", false, 0},
    {"output_hidden_states", false, 0}, {"output_logits", false, 0}, {"return_dict_in_generate", false, 0},
    {"low_memory", false, 0}, {"compile_config", false, 0}, {"disable_compile", false, 0}, {"use_mtp", false, 0},
    {"continuous_batching_config", false, 0}, {"prefill_chunk_size", false, 0}, {"transformers_version", false, 0},
    {"_from_model_config", false, 0}, {"is_assistant", false, 0}, {"num_assistant_tokens", false, 0},
    {"num_assistant_tokens_schedule", false, 0}, {"assistant_confidence_threshold", false, 0}, {"assistant_lookbehind", false, 0},
    {"prompt_lookup_num_tokens", false, 0}, {"max_matching_ngram_size", false, 0}, {"assistant_early_exit", false, 0},
    {"target_lookbehind", false, 0}, {"assistant_ensemble_weight", false, 0}, {"speculation_type", false, 0},
    {"decoder_start_token_id", false, 0}, {"early_stopping", false, 0}, {"length_penalty", false, 0},
    /* not obeyed. Of caches only quantized ones change answers */
    {"num_beams", true, 1}, {"num_beam_groups", true, 1}, {"diversity_penalty", true, 0}, {"num_return_sequences", true, 1},
    {"max_time", true, 0}, {"top_h", true, 1}, {"typical_p", true, 1}, {"epsilon_cutoff", true, 0}, {"eta_cutoff", true, 0},
    {"encoder_repetition_penalty", true, 1}, {"encoder_no_repeat_ngram_size", true, 0}, {"remove_invalid_values", true, 0},
    {"exponential_decay_length_penalty", true, 0}, {"sequence_bias", true, 0}, {"token_healing", true, 0},
    {"guidance_scale", true, 1}, {"watermarking_config", true, 0}, {"penalty_alpha", true, 0}, {"dola_layers", true, 0},
    {"constraints", true, 0}, {"force_words_ids", true, 0},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int *number_of(struct tune_token_rules *r, size_t at)
{
    return (int *)(void *)((char *)r + at);
}

static struct tune_ids *list_of(struct tune_token_rules *r, size_t at)
{
    return (struct tune_ids *)(void *)((char *)r + at);
}

/* The value as JSON, cut to a few characters. */
static const char *text_of(const cJSON *item, char text[40])
{
    char *all = cJSON_PrintUnformatted(item);
    snprintf(text, 40, strlen(all ? all : "") > 30 ? "%.27s..." : "%s", all ? all : "");
    cJSON_free(all);
    return text;
}

static int wrong(const char *folder, const cJSON *item, const char *expected)
{
    char text[40];
    return tune_error_set("%s/generation_config.json: \"%s\" is %s; expected %s", folder, item->string, text_of(item, text), expected);
}

static bool is_whole(const cJSON *item, int least)
{
    return cJSON_IsNumber(item) && item->valuedouble >= least && item->valuedouble <= INT32_MAX &&
           item->valuedouble == (double)(int32_t)item->valuedouble;
}

static const cJSON *find(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNull(item) ? NULL : item;
}

static int read_wholes(struct tune_token_rules *r, const char *folder, const cJSON *json)
{
    for (size_t i = 0; i < COUNT(wholes); i++) {
        const cJSON *item = find(json, wholes[i].name);
        if (item && !is_whole(item, wholes[i].least))
            return wrong(folder, item, wholes[i].least ? "a whole number of at least 1" : "a whole number of at least 0");
        if (item)
            *number_of(r, wholes[i].at) = item->valueint;
    }
    return 0;
}

/* Suppressed ids may be negative, which means none. */
static int read_lists(struct tune_token_rules *r, const char *folder, const cJSON *json)
{
    for (size_t i = 0; i < COUNT(lists); i++) {
        const cJSON *item = find(json, lists[i].name), *id;
        struct tune_ids *list = list_of(r, lists[i].at);
        int least = lists[i].single ? 0 : INT32_MIN;
        if (!item)
            continue;
        if (lists[i].single && is_whole(item, least)) {
            TRY(tune_ids_add(list, item->valueint));
            continue;
        }
        if (!cJSON_IsArray(item))
            return wrong(folder, item, lists[i].single ? "an id or a list of ids" : "a list of ids");
        cJSON_ArrayForEach(id, item) {
            if (!is_whole(id, least))
                return wrong(folder, item, "a list of ids");
            TRY(tune_ids_add(list, id->valueint));
        }
    }
    return 0;
}

static int read_bad_words(struct tune_token_rules *r, const char *folder, const cJSON *json)
{
    const cJSON *item = find(json, "bad_words_ids"), *word, *id;
    if (item && !cJSON_IsArray(item))
        return wrong(folder, item, "a list of lists of ids");
    cJSON_ArrayForEach(word, item) {
        if (cJSON_GetArraySize(word) < 1 || !cJSON_IsArray(word))
            return wrong(folder, item, "a list of lists of ids");
        TRY(tune_ids_add(&r->bad_words, cJSON_GetArraySize(word)));
        cJSON_ArrayForEach(id, word) {
            if (!is_whole(id, 0))
                return wrong(folder, item, "a list of lists of ids");
            TRY(tune_ids_add(&r->bad_words, id->valueint));
        }
    }
    return 0;
}

static int read_stops(struct tune_generation_config *c, const char *folder, const cJSON *json)
{
    const cJSON *item = find(json, "stop_strings"), *text;
    const cJSON *first = cJSON_IsArray(item) ? item->child : item;
    for (text = first; text; text = cJSON_IsArray(item) ? text->next : NULL) {
        if (!cJSON_IsString(text) || !*text->valuestring)
            return wrong(folder, item, "a text or a list of texts");
        if (c->stop_count == TUNE_CONFIG_STOPS)
            return wrong(folder, item, "at most 8 texts");
        c->stops[c->stop_count] = strdup(text->valuestring);
        if (!c->stops[c->stop_count])
            return tune_error_no_memory("a stop text");
        c->stop_count++;
    }
    return 0;
}

/* True if the value of a key that is not obeyed changes nothing. */
static bool is_neutral(const cJSON *item, double neutral)
{
    return cJSON_IsNull(item) || cJSON_IsFalse(item) || (cJSON_IsNumber(item) && item->valuedouble == neutral) ||
           ((cJSON_IsArray(item) || cJSON_IsObject(item)) && !item->child) || (cJSON_IsString(item) && !*item->valuestring);
}

static void list_left_out(struct tune_generation_config *c, const cJSON *json)
{
    const cJSON *item;
    char text[40];
    cJSON_ArrayForEach(item, json) {
        const struct other_key *key = NULL;
        bool obeyed = false;
        for (size_t i = 0; i < COUNT(wholes); i++)
            obeyed = obeyed || !strcmp(item->string, wholes[i].name);
        for (size_t i = 0; i < COUNT(lists); i++)
            obeyed = obeyed || !strcmp(item->string, lists[i].name);
        for (size_t i = 0; i < COUNT(others); i++)
            key = strcmp(item->string, others[i].name) == 0 ? &others[i] : key;
        bool cache = strcmp(item->string, "cache_implementation") == 0;
        if (obeyed || (key && (!key->changes || is_neutral(item, key->neutral))) ||
            (cache && !(cJSON_IsString(item) && !strcmp(item->valuestring, "quantized"))))
            continue;
        tune_append_item(c->left_out, sizeof c->left_out, "%.60s %s", item->string, text_of(item, text));
    }
    tune_blank_controls(c->left_out); /* a stranger's file moves no cursor */
}

/* The number of new tokens holds where the file has both limits, as in transformers. */
static void settle_limits(struct tune_generation_config *c, const cJSON *json)
{
    static const char *const pairs[][2] = {{"max_new_tokens", "max_length"}, {"min_new_tokens", "min_length"}};
    int *lengths[] = {&c->rules.max_length, &c->rules.min_length};
    for (int i = 0; i < 2; i++) {
        if (!find(json, pairs[i][0]) || *lengths[i] == 0)
            continue;
        tune_append_item(c->left_out, sizeof c->left_out, "%s %d (%s holds)", pairs[i][1], *lengths[i], pairs[i][0]);
        *lengths[i] = 0;
    }
}

int tune_generation_keys_read(struct tune_generation_config *c, const char *folder, const cJSON *json)
{
    TRY(read_wholes(&c->rules, folder, json));
    TRY(read_lists(&c->rules, folder, json));
    TRY(read_bad_words(&c->rules, folder, json));
    TRY(read_stops(c, folder, json));
    settle_limits(c, json);
    list_left_out(c, json);
    return 0;
}

static int words_in(const struct tune_ids *words)
{
    int count = 0;
    for (int i = 0; i < words->count; i += words->ids[i] + 1)
        count++;
    return count;
}

void tune_generation_config_told(const struct tune_generation_config *c, char *text, size_t size)
{
    struct tune_token_rules r = c->rules;
    *text = 0;
    for (size_t i = 0; i < COUNT(wholes); i++)
        if (*number_of(&r, wholes[i].at) > 0)
            tune_append_item(text, size, "%s %d", wholes[i].name, *number_of(&r, wholes[i].at));
    for (size_t i = 0; i < COUNT(lists); i++) {
        const struct tune_ids *list = list_of(&r, lists[i].at);
        if (list->count == 1)
            tune_append_item(text, size, "%s %d", lists[i].name, (int)list->ids[0]);
        else if (list->count > 1)
            tune_append_item(text, size, "%s (%d ids)", lists[i].name, list->count);
    }
    if (r.bad_words.count > 0)
        tune_append_item(text, size, "bad_words_ids (%d)", words_in(&r.bad_words));
    if (c->stop_count > 0)
        tune_append_item(text, size, "stop_strings (%d)", c->stop_count);
}
