/* get_config.c - how tokens are chosen and answers end: the folders' words, and the options over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/generation_config.h"
#include "generators/prompt_layout.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

/* The given options of sampling over those of the folders. */
static int read_sampling(const struct tune_flags *flags, struct tune_generation_config *c)
{
    struct tune_sampling_options *s = &c->sampling;
    const struct tune_sampling_options *o = &flags->generate.sampling;
    const struct { const char *name; bool given; } given[] = {
        {"temperature", tune_flags_given(flags, "temperature")}, {"top-k", tune_flags_given(flags, "top-k")},
        {"top-p", tune_flags_given(flags, "top-p")}, {"min-p", tune_flags_given(flags, "min-p")},
        {"repetition-penalty", tune_flags_given(flags, "repetition-penalty")}};
    s->temperature = given[0].given ? o->temperature : s->temperature;
    s->top_k = given[1].given ? o->top_k : s->top_k;
    s->top_p = given[2].given ? o->top_p : s->top_p;
    s->min_p = given[3].given ? o->min_p : s->min_p;
    s->repetition_penalty = given[4].given ? o->repetition_penalty : s->repetition_penalty;
    for (int i = 0; i < 4 && flags->generate.greedy; i++)
        if (given[i].given)
            return tune_error_usage("--%s is for answers that are sampled; give --no-greedy, too", given[i].name);
    if (flags->generate.greedy) { /* the filters of a file wait for a temperature */
        *s = (struct tune_sampling_options){.top_p = 1, .repetition_penalty = s->repetition_penalty};
        c->said = c->said && s->repetition_penalty != 1;
    }
    for (int i = 0; i < 5; i++)
        c->said = c->said && !given[i].given;
    for (int i = 1; i < 4; i++)
        if (s->temperature == 0 && given[i].given)
            return tune_error_usage("--%s has no meaning for greedy answers; give --temperature above 0, such as 0.8", given[i].name);
    return 0;
}

/* Read the ids of an option: commas part them. In a list of words, spaces part the ids of a word. */
static int read_ids(const char *option, const char *text, bool words, struct tune_ids *list)
{
    const char *at = text;
    int word = 0; /* place of the word's number of ids */
    free(list->ids);
    *list = (struct tune_ids){0};
    if (strcmp(text, "none") == 0)
        return 0;
    for (bool more = true, begins = true; more;) {
        char *end;
        errno = 0;
        long id = strtol(at, &end, 10);
        if (end == at || errno != 0 || id < 0 || id > INT32_MAX || (*end && *end != ',' && !(words && *end == ' ')))
            return tune_error_usage("--%s \"%.60s\": expected ids with commas between%s, or none", option, text,
                                    words ? " and spaces within a word, such as \"5,17 8\"" : ", such as 5,17");
        if (words && begins) {
            word = list->count;
            TRY(tune_ids_add(list, 0));
        }
        TRY(tune_ids_add(list, (int32_t)id));
        if (words)
            list->ids[word]++;
        more = *end != 0;
        begins = *end == ',';
        at = end + more;
    }
    return 0;
}

/* Take what options replace out of the file's rules. */
static int drop_replaced(const struct tune_flags *flags, struct tune_token_rules *r)
{
    static const char *const pairs[][2] = {{"max-new-tokens", "max-length"}, {"min-new-tokens", "min-length"}};
    int *limits[][2] = {{&r->max_new_tokens, &r->max_length}, {&r->min_new_tokens, &r->min_length}};
    for (int i = 0; i < 2; i++) {
        bool first = tune_flags_given(flags, pairs[i][0]), second = tune_flags_given(flags, pairs[i][1]);
        if (first && second)
            return tune_error_usage("--%s and --%s exclude each other; give one of them", pairs[i][0], pairs[i][1]);
        if (first || second)
            *limits[i][0] = *limits[i][1] = 0;
    }
    if (tune_flags_given(flags, "no-repeat-ngram-size"))
        r->no_repeat_ngram_size = 0;
    return 0;
}

/* Set what options say. */
static void set_numbers(const struct tune_flags *flags, struct tune_token_rules *r)
{
    const struct tune_generation_options *g = &flags->generate;
    r->max_length = tune_flags_given(flags, "max-length") ? g->max_length : r->max_length;
    r->min_new_tokens = tune_flags_given(flags, "min-new-tokens") ? g->min_new_tokens : r->min_new_tokens;
    r->min_length = tune_flags_given(flags, "min-length") ? g->min_length : r->min_length;
    r->no_repeat_ngram_size = tune_flags_given(flags, "no-repeat-ngram-size") ? g->no_repeat_ngram_size : r->no_repeat_ngram_size;
    if (r->max_new_tokens == 0 && r->max_length == 0)
        r->max_new_tokens = g->max_new_tokens;
}

/* Check that the model has the ids of the rules in this folder's file. Suppressed ones may be any. */
static int check_ids(const struct tune_flags *flags, const char *from, struct tune_generation_config *c)
{
    char folder[TUNE_PATH_MAX], file[TUNE_PATH_MAX];
    struct tune_model_config model;
    TRY(tune_get_model_config(flags, folder, &model));
    TRY(tune_path(file, "%s/generation_config.json", from));
    TRY(tune_token_rules_check(&c->rules, model.vocabulary, file));
    int dropped = tune_token_rules_trim(&c->rules, model.vocabulary);
    if (dropped > 0)
        tune_append_item(c->left_out, sizeof c->left_out, "%d suppressed ids that the model lacks", dropped);
    return 0;
}

/* The rules of the file in folder `from`, and the options over them. */
static int settle_rules(const struct tune_flags *flags, const char *from, struct tune_generation_config *c, char *told)
{
    const struct tune_generation_options *g = &flags->generate;
    struct tune_token_rules *r = &c->rules;
    const struct {
        const char *option, *text;
        struct tune_ids *list;
    } lists[] = {{"suppress-tokens", g->suppress_tokens, &r->suppress},
                 {"begin-suppress-tokens", g->begin_suppress_tokens, &r->begin_suppress},
                 {"bad-words-ids", g->bad_words_ids, &r->bad_words},
                 {"forced-bos-token-id", g->forced_bos_token_id, &r->forced_bos},
                 {"forced-eos-token-id", g->forced_eos_token_id, &r->forced_eos}};
    enum { LISTS = sizeof lists / sizeof *lists };
    TRY(drop_replaced(flags, r));
    for (int i = 0; i < LISTS; i++)
        if (lists[i].text)
            lists[i].list->count = 0;
    for (int i = 0; i < c->stop_count && g->stop; i++)
        free(c->stops[i]);
    c->stop_count = g->stop ? 0 : c->stop_count;
    TRY(check_ids(flags, from, c));
    if (told)
        tune_generation_config_told(c, told, TUNE_CONFIG_TOLD);
    set_numbers(flags, r);
    for (int i = 0; i < LISTS; i++)
        if (lists[i].text)
            TRY(read_ids(lists[i].option, lists[i].text, i == 2, lists[i].list));
    return 0;
}

/* All but the end of a chat's turn. */
static int read_config(const struct tune_flags *flags, const struct tune_tokenizer *tok, struct tune_generation_config *c, char *told)
{
    char folder[TUNE_PATH_MAX];
    const char *from = folder; /* the folder whose rules hold */
    struct tune_generation_config adapter = {0};
    *c = (struct tune_generation_config){0};
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_generation_config_read(c, folder, tok));
    int status = flags->adapter ? tune_generation_config_read(&adapter, flags->adapter, tok) : 0;
    for (int i = 0; i < adapter.end_count && status == 0; i++)
        status = tune_generation_config_end(c, adapter.ends[i]);
    if (adapter.said) {
        c->sampling = adapter.sampling;
        c->said = true;
    }
    char words[TUNE_CONFIG_TOLD];
    tune_generation_config_told(&adapter, words, sizeof words);
    if (*words || *adapter.left_out) { /* the adapter's file takes the place of the model's */
        struct tune_generation_config old = *c;
        from = flags->adapter;
        c->rules = adapter.rules;
        memcpy(c->stops, adapter.stops, sizeof c->stops);
        c->stop_count = adapter.stop_count;
        memcpy(c->left_out, adapter.left_out, sizeof c->left_out);
        adapter = old;
    }
    tune_generation_config_free(&adapter);
    TRY(status);
    TRY(read_sampling(flags, c));
    return settle_rules(flags, from, c, told);
}

/* The token that ends the assistant's turn, by the chat template. */
static int add_turn_end(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_generation_config *c)
{
    static const char row[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                              "\"content\": \"b\"}]}";
    struct tune_prompt_layout *l = tune_zeroed(1, sizeof *l, "prompts");
    int status = l ? tune_prompt_layout_settle(flags, tok, l, 1 << 20) : -1;
    if (status == 0 && (flags->generate.chat || (!strcmp(tune_prompt_layout_format(l), "messages") && !flags->generate.input) ||
                        tune_prompt_layout_has_chat(l) || l->options.chat_template)) {
        l->options.prompts = false;
        l->options.row_format = "messages";
        l->options.prompt_template = l->options.columns = NULL;
        struct tune_dataset *d = tune_dataset_open_text("the chat template", row, sizeof row - 1, &l->options, tok);
        int32_t id = d ? tune_dataset_end_id(d) : -1;
        tune_dataset_free(d);
        tune_error_clear(); /* a template that refuses this row ends turns by the model's own tokens */
        status = id < 0 ? 0 : tune_generation_config_end(c, id);
    }
    tune_prompt_layout_free(l);
    return status;
}

int tune_get_generation_config(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_generation_config *c,
                               char *told)
{
    TRY(read_config(flags, tok, c, told));
    TRY(add_turn_end(flags, tok, c));
    for (int i = 0; i < c->end_count; i++)
        TRY(tune_ids_add(&c->rules.ends, c->ends[i]));
    return 0;
}

int tune_get_answer_limits(const struct tune_flags *flags, struct tune_tokenizer *tok, int *answer, int *most)
{
    struct tune_generation_config c;
    int status = read_config(flags, tok, &c, NULL);
    *most = c.rules.max_length;
    *answer = *most ? *most : c.rules.max_new_tokens;
    tune_generation_config_free(&c);
    return status;
}
