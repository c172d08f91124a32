/* token_rules.h - tokens that are ruled out or forced, by the fields of generation_config.json.
 *
 * They hold in transformers' order, on the logits after the repetition penalty. A row counts by
 * itself: its prompt without padding, and its answer so far.
 *
 *     no_repeat_ngram_size n   rules out a token that would make n tokens which were there before
 *     bad_words_ids            rules out the last token of a sequence whose other tokens came just
 *                              before. A sequence of one token that ends an answer is left out
 *     min_length, min_new_tokens   rule out tokens that end an answer, while the row or the answer
 *                              is shorter
 *     forced_bos_token_id      the one token that may follow a prompt of one token
 *     forced_eos_token_id      the tokens that may come last, at the limit of max_new_tokens or
 *                              max_length
 *     suppress_tokens          rules out tokens
 *     begin_suppress_tokens    rules out tokens at the beginning of an answer */
#ifndef TUNE_TOKEN_RULES_H
#define TUNE_TOKEN_RULES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of ids; owns them. */
struct tune_ids {
    int32_t *ids;
    int count;
};

/* All 0: no rules. */
struct tune_token_rules {
    int no_repeat_ngram_size;
    int min_length, min_new_tokens;       /* min_new_tokens above 0 takes the place of min_length */
    int max_length, max_new_tokens;       /* for forced_eos; 0: none. The same holds */
    struct tune_ids suppress, begin_suppress, forced_bos, forced_eos;
    struct tune_ids bad_words;            /* of each sequence: its number of ids, then the ids */
    struct tune_ids ends;                 /* tokens that end an answer */
};

/* tune_ids_add - append an id. -1 with an error: no memory.
 * tune_token_rules_any - whether some rule may rule out a token.
 * tune_token_rules_check - check that forced tokens and those of bad words are below V, and that no
 * bad word is empty. 0, or -1 with an error. file: the rules' file; NULL: the error is of kind
 * USAGE.
 * tune_token_rules_trim - take suppressed ids out that are not below V. Returns their number.
 * tune_token_rules_copy - a copy that owns its lists. -1 with an error: no memory.
 * tune_token_rules_hash - continue a hash over the rules.
 * tune_token_rules_free - free the lists, and set all to 0. */
int tune_ids_add(struct tune_ids *list, int32_t id);
bool tune_token_rules_any(const struct tune_token_rules *r);
int tune_token_rules_check(const struct tune_token_rules *r, int V, const char *file);
int tune_token_rules_trim(struct tune_token_rules *r, int V);
int tune_token_rules_copy(struct tune_token_rules *to, const struct tune_token_rules *from);
void tune_token_rules_hash(const struct tune_token_rules *r, uint64_t *hash);
void tune_token_rules_free(struct tune_token_rules *r);

/* tune_token_rules_apply - set the scores [V] of tokens that are ruled out to -FLT_MAX. past
 * [count]: the row's tokens, of which the first `prompt` are the prompt. */
void tune_token_rules_apply(const struct tune_token_rules *r, const int32_t *past, int count,
                            int prompt, float *score, int V);

#ifdef __cplusplus
}
#endif
#endif
