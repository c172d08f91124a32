/* generate.c - answers of a language model: to one prompt, to rows of a file, or in a chat.
 *
 *     build/generate --model models/SmolLM2-135M --prompt "Once upon a time"
 *     build/generate --model runs/first/checkpoint-final --chat
 *     build/generate --model models/SmolLM2-135M --adapter runs/lora/checkpoint-final \
 *         --prompt "Write a haiku about rain" --compare-base
 *     build/generate --model runs/first/checkpoint-final --input rows.jsonl --output answers.jsonl
 *
 * The loop that chooses one token after the other is below: copy this file and change any line.
 * finetune_full.c says how to copy and change a recipe. */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; } my;

static const struct tune_option my_options[] = {
    TUNE_GENERATION_OPTIONS(my.tune),
    {0},
};

static const struct tune_property my_properties[] = {{0}};

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Answer prompts with a language model.");
    tune_program_catch_signals(&my.tune); /* SIGINT, SIGTERM, SIGHUP end the answer */

    struct tune_tokenizer *tok = GET(tune_get_prompts_tokenizer(flags));
    struct tune_prompts *prompts = GET(tune_get_prompts(flags, tok, stderr)); /* as tokens */
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_model *model = GET(tune_get_generation_model(flags, dev, prompts));
    struct tune_cache *cache = GET(tune_get_cache(flags, model, prompts)); /* keys and values */
    struct tune_token_sampler *sampler = GET(tune_get_token_sampler(flags, tok, model, prompts));
    const char *name = flags->generate.compare_model; /* answers, too */
    struct tune_model *other = name ? GET(tune_get_compared_model(flags, dev, tok, prompts)) : NULL;
    struct tune_cache *others = other ? GET(tune_get_cache(flags, other, prompts)) : NULL;
    struct tune_answers *answers = GET(tune_get_answers(flags, tok, prompts, stdout, stderr));
    int64_t V = tune_model_vocabulary(model);
    int sides = other || flags->generate.compare_base ? 2 : 1;
    tune_cache_stop(cache, flags->stop_signal); /* a signal ends a long prompt, too */
    if (others)
        tune_cache_stop(others, flags->stop_signal);

    struct tune_prompt_batch batch;
    struct tune_progress at = {0};
    while (!*flags->stop_signal && MUST(tune_prompts_next(prompts, &batch)) > 0) /* 0: the end */
        for (int side = 0; side < sides && !*flags->stop_signal; side++) {
            struct tune_going going; /* rows that have not ended */
            int32_t next[batch.rows];
            MUST(tune_answers_begin(answers, &batch, side, &going));
            for (int b = 0; b < batch.rows; b++) {
                int pad = batch.pads[b], count = batch.T - pad;
                MUST(tune_token_sampler_start(sampler, b, batch.numbers[b]));
                MUST(tune_token_sampler_answer(sampler, b, batch.answers[b])); /* --answers N */
                MUST(tune_token_sampler_see(sampler, b, batch.ids + b * batch.T + pad, count));
            }
            struct tune_cache *c = side == 1 && others ? others : cache;
            tune_cache_base(c, side == 1); /* the second time without the adapter */
            /* The prompts go through the model at once. A chat's beginning is in the cache. */
            int have = MUST(tune_prompt_begin(&batch, c));
            int stopped = MUST(tune_cache_forward(c, batch.ids + have, batch.T - have));
            while (going.rows > 0 && !stopped) { /* a token of each row that goes on */
                float *logits;       /* [rows,V], host memory: change them as you like */
                MUST(tune_cache_logits(c, &logits)); /* of each row's last position */
                for (int i = 0; i < going.rows; i++)
                    MUST(tune_token_sampler_next(sampler, going.slot[i], going.tokens,
                                                 logits + i * V, &next[i], NULL));
                MUST(tune_answers_add(answers, next, &going)); /* shows text; ends rows */
                if (going.rows == 0)
                    break;
                MUST(tune_cache_keep(c, going.kept, going.rows)); /* rows that ended drop out */
                stopped = MUST(tune_cache_forward(c, next, 1)); /* 1: by a signal */
            }
            MUST(tune_answers_end(answers)); /* lines are written; the chat learns its answer */
        }
    at.signal = *flags->stop_signal;
    MUST(tune_answers_finish(answers));
    if (*dev->met)
        fprintf(stderr, "# warning: device: %s\n", dev->met);

    tune_answers_free(answers), tune_token_sampler_free(sampler), tune_cache_free(cache);
    tune_cache_free(others), tune_model_free(other), tune_model_free(model), tune_device_close(dev);
    tune_prompts_free(prompts), tune_tokenizer_free(tok), tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; after a signal 128 + its number */
}
