/* get_previews.c - answers to the prompts that the flags name, while a recipe trains. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/previews.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation_config.h"
#include "generators/generator.h"
#include "generators/prompts.h"
#include "generators/token_sampler.h"
#include "loggers/logger.h"
#include "models/cache.h"
#include "tokenizers/tokenizer.h"

#define SAID_EVERY_S 10 /* seconds without a line */

struct tune_previews {
    int every;
    struct tune_model *model;
    struct tune_tokenizer *tok;
    struct tune_prompts *prompts;
    struct tune_generator *generator;
    const volatile int *stop_signal;
    const char *path; /* of the prompts, borrowed */
    int tokens;
    char left_out[512]; /* keys of generation_config.json that are not obeyed */
    bool noted;
    int64_t answered; /* prompts of the step at hand */
    double said_s;    /* when its last line was printed */
};

void tune_previews_free(struct tune_previews *s)
{
    if (!s)
        return;
    tune_generator_free(s->generator);
    tune_prompts_free(s->prompts);
    free(s);
}

/* Read the model's folder. Answers are greedy, and as long as the options say. */
static int read_config(const struct tune_flags *flags, struct tune_dataset *data, struct tune_tokenizer *tok, int32_t vocabulary,
                       struct tune_generation_config *c)
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
    c->rules.max_new_tokens = flags->preview.tokens;
    c->rules.max_length = 0;
    return 0;
}

static int open_all(struct tune_previews *s, const struct tune_flags *flags, struct tune_dataset *data)
{
    struct tune_generation_config c = {0};
    int context = tune_model_config(s->model)->max_positions;
    s->prompts = tune_get_preview_prompts(flags, s->tok);
    int status = s->prompts ? read_config(flags, data, s->tok, (int32_t)tune_model_vocabulary(s->model), &c) : -1;
    if (status == 0) {
        snprintf(s->left_out, sizeof s->left_out, "%s", c.left_out);
        int64_t capacity = (int64_t)tune_prompts_longest(s->prompts) + flags->preview.tokens;
        struct tune_answers_options o = {.stops = (const char *const *)c.stops, .stop_count = c.stop_count, .ends = c.ends,
                                         .end_count = c.end_count, .max_new_tokens = flags->preview.tokens,
                                         .context = context, .sides = 1, .stop_signal = flags->stop_signal};
        struct tune_generator *g = s->generator = tune_zeroed(1, sizeof *g, "previews");
        if (g) {
            g->model = s->model;
            g->sides = 1;
            g->cache = tune_cache_new(s->model, tune_prompts_batch(s->prompts), capacity < context ? (int)capacity : context);
            g->sampler = tune_token_sampler_new(&c.sampling, 0, (int)tune_model_vocabulary(s->model), tune_prompts_batch(s->prompts));
            g->answers = tune_answers_new(s->tok, s->prompts, &o);
        }
        status = g && g->cache && g->sampler && g->answers ? tune_token_sampler_obey(g->sampler, &c.rules) : -1;
    }
    tune_generation_config_free(&c);
    return status;
}

struct tune_previews *tune_get_previews(const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *data,
                                      struct tune_tokenizer *tok)
{
    if (flags->preview.prompts && flags->preview.every == 0) {
        tune_error_usage("--preview-prompts without --preview-every: give the steps between answers");
        return NULL;
    }
    struct tune_previews *s = tune_zeroed(1, sizeof *s, "previews");
    if (!s)
        return NULL;
    *s = (struct tune_previews){.every = flags->preview.every, .model = m, .tok = tok, .stop_signal = flags->stop_signal,
                                .path = flags->preview.prompts, .tokens = flags->preview.tokens};
    if (s->every == 0 || open_all(s, flags, data) == 0)
        return s;
    tune_previews_free(s);
    return NULL;
}

int tune_previews_note(struct tune_previews *s, struct tune_logger *log)
{
    char text[400];
    if (s->every == 0 || s->noted)
        return 0;
    s->noted = true;
    int64_t rows = tune_prompts_rows(s->prompts), left = tune_prompts_left_out(s->prompts);
    snprintf(text, sizeof text, "every %d steps: %" PRId64 " prompt%s of %.200s, at most %d tokens each", s->every, rows,
             rows == 1 ? "" : "s", s->path, s->tokens);
    if (left > 0)
        tune_append(text, sizeof text, "; %" PRId64 " more are left out (`preview_rows`)", left);
    TRY(tune_logger_note(log, "previews", text));
    if (!*s->left_out)
        return 0;
    snprintf(text, sizeof text, "generation_config.json: left out, as not supported here: %.340s", s->left_out);
    return tune_logger_note(log, "warning: previews", text);
}

/* Say how far the answers are, if no line said so for some time. */
static int say_progress(struct tune_previews *s, struct tune_logger *log, const struct tune_progress *at, int token)
{
    double now = tune_clock_s();
    if (now - s->said_s < SAID_EVERY_S)
        return 0;
    s->said_s = now;
    return tune_logger_say(log, "preview %" PRId64 " | %" PRId64 " of %" PRId64 " prompts answered, token %d of at most %d", at->step,
                           s->answered, tune_prompts_rows(s->prompts), token, s->tokens);
}

/* Log the answer to row b of the batch. */
static int log_answer(struct tune_previews *s, struct tune_logger *log, const struct tune_progress *at,
                      const struct tune_prompt_batch *batch, int b)
{
    const int32_t *ids = batch->ids + (int64_t)b * batch->T + batch->pads[b];
    char *prompt = NULL;
    size_t size;
    const char *text = tune_answers_text(s->generator->answers, b, 0, &size);
    char *answer = strndup(text, size);
    int status = answer ? tune_tokenizer_decode(s->tok, ids, batch->T - batch->pads[b], false, &prompt, &size)
                        : tune_error_no_memory("a preview");
    if (status == 0)
        status = tune_logger_preview(log, at, batch->numbers[b], prompt, answer, tune_answers_end_of(s->generator->answers, b, 0));
    free(prompt);
    free(answer);
    return status;
}

/* For a line now and then that says how far the answers are. */
struct saying {
    struct tune_previews *previews;
    struct tune_logger *log;
    const struct tune_progress *at;
};

static int choose(void *context, struct tune_choice *choice)
{
    struct saying *s = context;
    TRY(say_progress(s->previews, s->log, s->at, choice->position + 1));
    return tune_choose_token(NULL, choice);
}

static int answer(struct tune_previews *s, struct tune_logger *log, const struct tune_progress *at,
                  const struct tune_prompt_batch *batch)
{
    TRY(tune_generate(s->generator, batch, choose, &(struct saying){s, log, at}));
    for (int b = 0; b < batch->rows && !(s->stop_signal && *s->stop_signal); b++)
        TRY(log_answer(s, log, at, batch, b));
    s->answered += batch->rows;
    s->said_s = tune_clock_s();
    return 0;
}

int tune_previews_step(struct tune_previews *s, struct tune_logger *log, const struct tune_progress *at)
{
    struct tune_prompt_batch batch;
    int more = 1;
    bool last = at->step == at->planned_steps;
    TRY(tune_previews_note(s, log));
    if (s->every == 0 || (at->step % s->every != 0 && !last) || at->signal)
        return 0;
    TRY(tune_logger_catch_up(log, at));
    TRY(tune_model_exchange(s->model));
    TRY(tune_prompts_skip(s->prompts, 0));
    s->answered = 0;
    s->said_s = tune_clock_s();
    while (!(s->stop_signal && *s->stop_signal) && (more = tune_prompts_next(s->prompts, &batch)) > 0)
        if ((more = answer(s, log, at, &batch)) < 0)
            break;
    int status = tune_model_exchange(s->model);
    tune_logger_settle(log);
    return more < 0 ? -1 : status;
}
