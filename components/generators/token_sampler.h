/* token_sampler.h - choose the next token from a model's logits, on the host.
 *
 * The steps and their order are those of transformers' generate. x is a logit, T the temperature.
 *
 *     repetition_penalty p   x of a token that was seen becomes x / p if x >= 0, else x p
 *     rules                  token_rules.h: x of a token that is ruled out becomes -FLT_MAX
 *     temperature T          T = 0: the largest x wins, at a tie the lowest id. That is all.
 *                            T > 0: a token's weight is exp(x / T)
 *     top_k k                drops tokens whose x is below the k-th largest; ties with it stay
 *     top_p p                keeps the fewest tokens, most likely first, whose share of the weight
 *                            left by top_k is at least p. At a tie the lowest ids stay
 *     min_p p                drops tokens whose weight is below p times the largest weight
 *     draw                   one of the rest, by weight
 *
 * A slot is a place in the batch. It holds one row of the input at a time. The draw is a function
 * of (seed, row, position), so a row draws the same tokens alone and in any batch. Example:
 *
 *     struct tune_sampling_options o = {.temperature = 0.8, .top_k = 50, .top_p = 0.9,
 *                                       .repetition_penalty = 1};
 *     struct tune_token_sampler *s = tune_token_sampler_new(&o, seed, V, B);
 *     for (int b = 0; b < B; b++) {
 *         tune_token_sampler_start(s, b, first_row + b);
 *         tune_token_sampler_accept(s, b, prompt[b], prompt_size[b]);
 *     }
 *     ... for each step t and slot b:
 *         tune_token_sampler_next(s, b, t, logits + b * V, &id, &log_prob);
 *     tune_token_sampler_free(s);
 *
 * A call takes far less time than a decoding step. It allocates nothing, except that the tokens of
 * a row are kept where there are rules. One sampler serves one thread at a time.
 *
 * Sources: Keskar et al. 2019, section 4.1 (penalty; the rule for x < 0 is transformers'). Fan et
 * al. 2018, section 5.2 (top-k). Holtzman et al. 2020, equation 2 (top-p). Nguyen et al. 2024,
 * section 3 (min-p). */
#ifndef TUNE_TOKEN_SAMPLER_H
#define TUNE_TOKEN_SAMPLER_H

#include <stdint.h>

#include "generators/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_token_rules;
struct tune_token_sampler;

/* tune_sampling_check - 0, or -1 with an error of kind USAGE that names the option out of range. */
int tune_sampling_check(const struct tune_sampling_options *o);

/* tune_token_sampler_new - a sampler of V logits for so many slots. It copies the options. Slot i
 * holds row i at first. Memory: 12 bytes for each of V. With a penalty, 5 more for each of V in
 * each slot. NULL with an error: options out of range, no memory.
 * tune_token_sampler_free - free it; NULL is fine. */
struct tune_token_sampler *tune_token_sampler_new(const struct tune_sampling_options *o,
                                                  int64_t seed, int V, int slots);
void tune_token_sampler_free(struct tune_token_sampler *s);

/* tune_token_sampler_obey - obey these rules, which are copied, from now on. -1 with an error: a
 * rule has an id that is not below V, or no memory. */
int tune_token_sampler_obey(struct tune_token_sampler *s, const struct tune_token_rules *rules);

/* tune_token_sampler_start - the slot holds this row of the input from now on, and has seen
 * nothing. -1 with an error: no such slot.
 * tune_token_sampler_answer - of several answers to that row, it holds this one, from 0. Each has
 * draws of its own, whatever their number. -1 with an error: no such slot.
 * tune_token_sampler_accept - mark count ids as seen, for the penalty and the rules. Those before
 * the first tune_token_sampler_next are the prompt. An id may come several times. -1 with an error:
 * no such slot, or an id outside 0..V-1. */
int tune_token_sampler_start(struct tune_token_sampler *s, int slot, int64_t row);
int tune_token_sampler_answer(struct tune_token_sampler *s, int slot, int answer);
int tune_token_sampler_accept(struct tune_token_sampler *s, int slot, const int32_t *ids,
                           int64_t count);

/* tune_token_sampler_next - choose a token for the slot, and mark it as seen. position: number of
 * the token in the row, such as 0 for the first one after the prompt. The same position draws the
 * same random number. logits [V] float32, on the host. *log_prob, unless NULL: log of the token's
 * probability by these logits as they are, in nats: without penalty, temperature and filters.
 * -1 with an error: no such slot, no token is left by the rules, or a logit that is not finite. Its
 * message names row and id. */
int tune_token_sampler_next(struct tune_token_sampler *s, int slot, int64_t position,
                            const float *logits, int32_t *id, double *log_prob);

/* tune_token_sampler_distribution - the probabilities [V] by which tune_token_sampler_next would
 * draw from these logits, for showing and testing. A token that was dropped has 0. It marks
 * nothing. -1 with an error as above. */
int tune_token_sampler_distribution(struct tune_token_sampler *s, int slot, const float *logits,
                                    float *probability);

#ifdef __cplusplus
}
#endif
#endif
