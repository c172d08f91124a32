/* generator.c - the loop that chooses one token after the other. */
#include "generators/generator.h"

#include <stdlib.h>

#include "core/try.h"
#include "generators/answers.h"
#include "generators/prompts.h"
#include "generators/token_sampler.h"
#include "models/cache.h"

int tune_choose_token(void *context, struct tune_choice *choice)
{
    (void)context;
    return tune_token_sampler_next(choice->sampler, choice->slot, choice->position, choice->logits, &choice->id, NULL);
}

static bool is_stopped(const struct tune_generator *g)
{
    return g->stop_signal && *g->stop_signal;
}

/* Begin with the prompts, which go through the model at once. Returns 1 if a signal stopped it. */
static int read_prompts(struct tune_generator *g, const struct tune_prompt_batch *batch, struct tune_cache *c)
{
    int have;
    for (int b = 0; b < batch->rows; b++) {
        int pad = batch->pads[b];
        TRY(tune_token_sampler_start(g->sampler, b, batch->numbers[b]));
        TRY(tune_token_sampler_answer(g->sampler, b, batch->answers[b]));
        TRY(tune_token_sampler_accept(g->sampler, b, batch->ids + (int64_t)b * batch->T + pad, batch->T - pad));
    }
    TRY(have = tune_prompt_begin(batch, c)); /* a chat's beginning is in the cache */
    return tune_cache_forward(c, batch->ids + have, batch->T - have);
}

/* Choose the next token of each row that goes on. */
static int choose_tokens(struct tune_generator *g, struct tune_cache *c, const struct tune_active_rows *active, int side, int32_t *next,
                         tune_choose *choose, void *context)
{
    float *logits; /* [rows,V] of each row's last position */
    int64_t V = tune_model_vocabulary(g->model);
    TRY(tune_cache_logits(c, &logits));
    for (int i = 0; i < active->count; i++) {
        struct tune_choice choice = {g->sampler, active->row[i], active->tokens, side, logits + i * V, V, 0};
        TRY(choose(context, &choice));
        next[i] = choice.id;
    }
    return 0;
}

static int answer_side(struct tune_generator *g, const struct tune_prompt_batch *batch, int side, tune_choose *choose, void *context)
{
    struct tune_active_rows active;
    struct tune_cache *c = side == 1 && g->other ? g->other : g->cache;
    int32_t next[batch->rows];
    int stopped = 0;
    TRY(tune_answers_begin(g->answers, batch, side, &active));
    tune_cache_base(c, side == 1); /* the second time without the adapter */
    if (active.count > 0)
        TRY(stopped = read_prompts(g, batch, c));
    while (active.count > 0 && !stopped) {
        TRY(choose_tokens(g, c, &active, side, next, choose, context));
        TRY(tune_answers_add(g->answers, next, &active)); /* shows text; ends rows */
        if (active.count == 0)
            break;
        TRY(tune_cache_keep(c, active.previous, active.count)); /* rows that ended drop out */
        TRY(stopped = tune_cache_forward(c, next, 1));
    }
    return tune_answers_end(g->answers);
}

int tune_generate(struct tune_generator *g, const struct tune_prompt_batch *batch, tune_choose *choose, void *context)
{
    for (int side = 0; side < g->sides && !is_stopped(g); side++)
        TRY(answer_side(g, batch, side, choose, context));
    return 0;
}

void tune_generator_free(struct tune_generator *g)
{
    if (!g)
        return;
    tune_answers_free(g->answers);
    tune_token_sampler_free(g->sampler);
    tune_cache_free(g->cache);
    tune_cache_free(g->other);
    tune_model_free(g->compared);
    free(g);
}
