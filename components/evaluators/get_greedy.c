/* get_greedy.c - greedy answers to prompts, while a recipe trains. */
#include <inttypes.h>
#include <stdio.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/greedy.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation_config.h"
#include "generators/generator.h"
#include "generators/prompts.h"
#include "generators/token_sampler.h"
#include "loggers/logger.h"
#include "models/cache.h"

#define SAID_EVERY_S 10 /* seconds without a line */

void tune_greedy_free(struct tune_greedy *g)
{
    tune_generator_free(g->generator);
    tune_prompts_free(g->prompts);
    *g = (struct tune_greedy){0};
}

/* Read the model's folder. Answers are greedy, and as long as the options say. */
static int read_config(const struct tune_flags *flags, struct tune_dataset *data, struct tune_tokenizer *tok, int32_t vocabulary,
                       int tokens, struct tune_generation_config *c)
{
    char folder[TUNE_PATH_MAX], file[TUNE_PATH_MAX];
    TRY(tune_get_model_folder(flags, tok, folder));
    TRY(tune_generation_config_read(c, folder, tok));
    TRY(tune_path(file, "%s/generation_config.json", folder));
    TRY(tune_token_rules_check(&c->rules, vocabulary, file));
    int32_t id = tune_dataset_end_id(data);
    TRY(id < 0 ? 0 : tune_generation_config_end(c, id));
    for (int i = 0; i < c->end_count; i++)
        TRY(tune_ids_add(&c->rules.ends, c->ends[i]));
    c->sampling = (struct tune_sampling_options){.top_p = 1, .repetition_penalty = c->sampling.repetition_penalty};
    c->rules.max_new_tokens = tokens;
    c->rules.max_length = 0;
    return 0;
}

static int make_generator(struct tune_greedy *g, const struct tune_flags *flags, struct tune_model *m, struct tune_tokenizer *tok,
                          const struct tune_generation_config *c)
{
    int context = tune_model_config(m)->max_positions, rows = tune_prompts_batch(g->prompts);
    int64_t capacity = (int64_t)tune_prompts_longest(g->prompts) + g->tokens;
    struct tune_answers_options o = {.stops = (const char *const *)c->stops, .stop_count = c->stop_count, .ends = c->ends,
                                     .end_count = c->end_count, .max_new_tokens = g->tokens,
                                     .context = context, .sides = 1, .stop_signal = flags->stop_signal};
    struct tune_generator *all = g->generator = tune_zeroed(1, sizeof *all, "answers");
    if (!all)
        return -1;
    all->model = m;
    all->sides = 1;
    all->stop_signal = flags->stop_signal;
    all->cache = tune_cache_new(m, rows, capacity < context ? (int)capacity : context);
    all->sampler = tune_token_sampler_new(&c->sampling, 0, (int)tune_model_vocabulary(m), rows);
    all->answers = tune_answers_new(tok, g->prompts, &o);
    return all->cache && all->sampler && all->answers ? tune_token_sampler_obey(all->sampler, &c->rules) : -1;
}

int tune_get_greedy(struct tune_greedy *g, const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *data,
                    struct tune_tokenizer *tok, struct tune_prompts *prompts, int tokens, const char *what)
{
    struct tune_generation_config c = {0};
    *g = (struct tune_greedy){.prompts = prompts, .what = what, .tokens = tokens};
    int status = read_config(flags, data, tok, (int32_t)tune_model_vocabulary(m), tokens, &c);
    if (status == 0)
        status = make_generator(g, flags, m, tok, &c);
    snprintf(g->left_out, sizeof g->left_out, "%s", c.left_out);
    tune_generation_config_free(&c);
    return status;
}

/* Say how far the answers are, if no line said so for some time. */
static int say_progress(struct tune_greedy *g, int token)
{
    double now = tune_clock_s();
    if (!g->log || now - g->said_s < SAID_EVERY_S)
        return 0;
    g->said_s = now;
    return tune_logger_say(g->log, "%s %" PRId64 " | %" PRId64 " of %" PRId64 " prompts answered, token %d of at most %d", g->what, g->step,
                           g->answered, tune_prompts_rows(g->prompts), token, g->tokens);
}

static int choose(void *context, struct tune_choice *choice)
{
    TRY(say_progress(context, choice->position + 1));
    return tune_choose_token(NULL, choice);
}

int tune_greedy_answer(struct tune_greedy *g, struct tune_logger *log, int64_t step, tune_greedy_row *each, void *context)
{
    const volatile int *signal = g->generator->stop_signal;
    struct tune_prompt_batch batch;
    int more = 1;
    g->log = log;
    g->step = step;
    g->answered = 0;
    g->said_s = tune_clock_s();
    TRY(tune_prompts_skip(g->prompts, 0));
    while (!(signal && *signal) && (more = tune_prompts_next(g->prompts, &batch)) > 0) {
        TRY(tune_generate(g->generator, &batch, choose, g));
        for (int b = 0; b < batch.rows && !(signal && *signal); b++)
            TRY(each(context, g, &batch, b));
        g->answered += batch.rows;
    }
    return more < 0 ? -1 : signal && *signal;
}
