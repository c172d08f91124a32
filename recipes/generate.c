/* generate.c - answers of a language model: to one prompt, to rows of a file, or in a chat.
 *
 *     build/generate --model models/SmolLM2-135M --prompt "Once upon a time"
 *     build/generate --model runs/first/checkpoint-final --chat
 *     build/generate --model models/SmolLM2-135M --adapter runs/lora/checkpoint-final \
 *         --prompt "Write a haiku about rain" --compare-base
 *     build/generate --model runs/first/checkpoint-final --input rows.jsonl --output answers.jsonl
 *
 * How the next token is chosen stands below: copy this file and change any line.
 * finetune_full.c says how to copy and change a recipe. */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; } my;

static const struct tune_option my_options[] = {
    TUNE_GENERATION_OPTIONS(my.tune),
    {0},
};

static const struct tune_property my_properties[] = {{0}};

/* Called for each token. c->logits are those of the row's next token, on the host: change them. */
static int choose(void *context, struct tune_choice *c)
{
    (void)context;
    return tune_token_sampler_next(c->sampler, c->slot, c->position, c->logits, &c->id, NULL);
}

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
    struct tune_generator *generator =
        GET(tune_get_generator(flags, dev, tok, prompts, model, stdout, stderr));

    struct tune_prompt_batch batch; /* rows that are answered together; in a chat one turn */
    struct tune_progress at = {0};
    while (!*flags->stop_signal && MUST(tune_prompts_next(prompts, &batch)) > 0) /* 0: the end */
        MUST(tune_generate(generator, &batch, choose, NULL)); /* shows or writes the answers */
    at.signal = *flags->stop_signal;
    MUST(tune_answers_finish(generator->answers));
    if (*dev->met)
        fprintf(stderr, "# warning: device: %s\n", dev->met);

    tune_generator_free(generator), tune_model_free(model), tune_device_close(dev);
    tune_prompts_free(prompts), tune_tokenizer_free(tok), tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; after a signal 128 + its number */
}
