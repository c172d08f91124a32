/* get_samples.c - answers to the prompts that the flags name, while a recipe trains. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/samples.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation_config.h"
#include "generators/prompts.h"
#include "generators/token_sampler.h"
#include "loggers/logger.h"
#include "models/cache.h"
#include "tokenizers/tokenizer.h"

#define SAID_EVERY_S 10 /* seconds without a line */

struct tune_samples {
    int every;
    struct tune_model *model;
    struct tune_tokenizer *tok;
    struct tune_prompts *prompts;
    struct tune_cache *cache;
    struct tune_token_sampler *sampler;
    struct tune_answers *answers;
    const volatile int *stop_signal;
    const char *path; /* of the prompts, borrowed */
    int tokens;
    char left_out[512]; /* keys of generation_config.json that are not obeyed */
    bool noted;
    int64_t answered; /* prompts of the step at hand */
    double said_s;    /* when its last line was printed */
};

void tune_samples_free(struct tune_samples *s)
{
    if (!s)
        return;
    tune_answers_free(s->answers);
    tune_token_sampler_free(s->sampler);
    tune_cache_free(s->cache);
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
    c->rules.max_new_tokens = flags->sample.tokens;
    c->rules.max_length = 0;
    return 0;
}

static int open_all(struct tune_samples *s, const struct tune_flags *flags, struct tune_dataset *data)
{
    struct tune_generation_config c = {0};
    int context = tune_model_config(s->model)->max_positions;
    s->prompts = tune_get_sample_prompts(flags, s->tok);
    int status = s->prompts ? read_config(flags, data, s->tok, (int32_t)tune_model_vocabulary(s->model), &c) : -1;
    if (status == 0) {
        snprintf(s->left_out, sizeof s->left_out, "%s", c.left_out);
        int64_t capacity = (int64_t)tune_prompts_longest(s->prompts) + flags->sample.tokens;
        struct tune_answers_options o = {.stops = (const char *const *)c.stops, .stop_count = c.stop_count, .ends = c.ends,
                                         .end_count = c.end_count, .max_new_tokens = flags->sample.tokens,
                                         .context = context, .sides = 1, .stop_signal = flags->stop_signal};
        s->cache = tune_cache_new(s->model, tune_prompts_batch(s->prompts), capacity < context ? (int)capacity : context);
        s->sampler = tune_token_sampler_new(&c.sampling, 0, (int)tune_model_vocabulary(s->model), tune_prompts_batch(s->prompts));
        s->answers = tune_answers_new(s->tok, s->prompts, &o);
        status = s->cache && s->sampler && s->answers ? tune_token_sampler_obey(s->sampler, &c.rules) : -1;
    }
    tune_generation_config_free(&c);
    return status;
}

struct tune_samples *tune_get_samples(const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *data,
                                      struct tune_tokenizer *tok)
{
    if (flags->sample.prompts && flags->sample.every == 0) {
        tune_error_usage("--sample-prompts without --sample-every: give the steps between answers");
        return NULL;
    }
    struct tune_samples *s = tune_zeroed(1, sizeof *s, "samples");
    if (!s)
        return NULL;
    *s = (struct tune_samples){.every = flags->sample.every, .model = m, .tok = tok, .stop_signal = flags->stop_signal,
                                .path = flags->sample.prompts, .tokens = flags->sample.tokens};
    if (s->every == 0 || open_all(s, flags, data) == 0)
        return s;
    tune_samples_free(s);
    return NULL;
}

int tune_samples_note(struct tune_samples *s, struct tune_logger *log)
{
    char text[400];
    if (s->every == 0 || s->noted)
        return 0;
    s->noted = true;
    int64_t rows = tune_prompts_rows(s->prompts), left = tune_prompts_left_out(s->prompts);
    snprintf(text, sizeof text, "every %d steps: %" PRId64 " prompt%s of %.200s, at most %d tokens each", s->every, rows,
             rows == 1 ? "" : "s", s->path, s->tokens);
    if (left > 0)
        tune_append(text, sizeof text, "; %" PRId64 " more are left out (`sample_rows`)", left);
    TRY(tune_logger_note(log, "samples", text));
    if (!*s->left_out)
        return 0;
    snprintf(text, sizeof text, "generation_config.json: left out, as not supported here: %.340s", s->left_out);
    return tune_logger_note(log, "warning: samples", text);
}

/* Say how far the answers are, if no line said so for some time. */
static int say_progress(struct tune_samples *s, struct tune_logger *log, const struct tune_progress *at, int token)
{
    double now = tune_clock_s();
    if (now - s->said_s < SAID_EVERY_S)
        return 0;
    s->said_s = now;
    return tune_logger_say(log, "sample %" PRId64 " | %" PRId64 " of %" PRId64 " prompts answered, token %d of at most %d", at->step,
                           s->answered, tune_prompts_rows(s->prompts), token, s->tokens);
}

/* Log the answer to row b of the batch. */
static int log_answer(struct tune_samples *s, struct tune_logger *log, const struct tune_progress *at,
                      const struct tune_prompt_batch *batch, int b)
{
    const int32_t *ids = batch->ids + (int64_t)b * batch->T + batch->pads[b];
    char *prompt = NULL;
    size_t size;
    const char *text = tune_answers_text(s->answers, b, 0, &size);
    char *answer = strndup(text, size);
    int status = answer ? tune_tokenizer_decode(s->tok, ids, batch->T - batch->pads[b], false, &prompt, &size)
                        : tune_error_no_memory("a sample");
    if (status == 0)
        status = tune_logger_sample(log, at, batch->numbers[b], prompt, answer, tune_answers_end_of(s->answers, b, 0));
    free(prompt);
    free(answer);
    return status;
}

static int answer(struct tune_samples *s, struct tune_logger *log, const struct tune_progress *at,
                  const struct tune_prompt_batch *batch)
{
    int64_t V = tune_model_vocabulary(s->model);
    struct tune_going going;
    int32_t next[batch->rows];
    TRY(tune_answers_begin(s->answers, batch, 0, &going));
    for (int b = 0; b < batch->rows; b++) {
        int pad = batch->pads[b];
        TRY(tune_token_sampler_start(s->sampler, b, batch->numbers[b]));
        TRY(tune_token_sampler_see(s->sampler, b, batch->ids + (int64_t)b * batch->T + pad, batch->T - pad));
    }
    TRY(tune_prompt_begin(batch, s->cache));
    TRY(tune_cache_forward(s->cache, batch->ids, batch->T));
    for (int token = 1; going.rows > 0; token++) {
        float *logits;
        TRY(say_progress(s, log, at, token));
        TRY(tune_cache_logits(s->cache, &logits));
        for (int i = 0; i < going.rows; i++)
            TRY(tune_token_sampler_next(s->sampler, going.slot[i], going.tokens, logits + i * V, &next[i], NULL));
        TRY(tune_answers_add(s->answers, next, &going));
        if (going.rows == 0)
            break;
        TRY(tune_cache_keep(s->cache, going.kept, going.rows));
        TRY(tune_cache_forward(s->cache, next, 1));
    }
    TRY(tune_answers_end(s->answers));
    for (int b = 0; b < batch->rows && !(s->stop_signal && *s->stop_signal); b++)
        TRY(log_answer(s, log, at, batch, b));
    s->answered += batch->rows;
    s->said_s = tune_clock_s();
    return 0;
}

int tune_samples_step(struct tune_samples *s, struct tune_logger *log, const struct tune_progress *at)
{
    struct tune_prompt_batch batch;
    int more = 1;
    bool last = at->step == at->planned_steps;
    TRY(tune_samples_note(s, log));
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
