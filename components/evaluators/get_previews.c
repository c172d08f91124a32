/* get_previews.c - answers to the prompts that the flags name, while a recipe trains. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/try.h"
#include "evaluators/greedy.h"
#include "evaluators/previews.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generator.h"
#include "generators/prompts.h"
#include "loggers/logger.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

struct tune_previews {
    int every;
    struct tune_model *model;
    struct tune_tokenizer *tok;
    struct tune_greedy greedy;
    const char *path; /* of the prompts, borrowed */
    struct tune_comm *comm; /* rank 0 answers; NULL: one rank */
    bool noted;
    struct tune_logger *log; /* of the step at hand, with where it stands */
    const struct tune_progress *at;
};

void tune_previews_free(struct tune_previews *s)
{
    if (!s)
        return;
    tune_greedy_free(&s->greedy);
    free(s);
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
    *s = (struct tune_previews){.every = flags->preview.every, .model = m, .tok = tok, .path = flags->preview.prompts, .comm = flags->comm};
    struct tune_prompts *prompts = s->every ? tune_get_preview_prompts(flags, tok) : NULL;
    if (s->every == 0 || (prompts && tune_get_greedy(&s->greedy, flags, m, data, tok, prompts, flags->preview.tokens, "preview") == 0))
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
    int64_t rows = tune_prompts_rows(s->greedy.prompts), left = tune_prompts_left_out(s->greedy.prompts);
    snprintf(text, sizeof text, "every %d steps: %" PRId64 " prompt%s of %.200s, at most %d tokens each", s->every, rows,
             rows == 1 ? "" : "s", s->path, s->greedy.tokens);
    if (left > 0)
        tune_append(text, sizeof text, "; %" PRId64 " more are left out (`preview_rows`)", left);
    TRY(tune_logger_note(log, "previews", text));
    if (!*s->greedy.left_out)
        return 0;
    snprintf(text, sizeof text, "generation_config.json: left out, as not supported here: %.340s", s->greedy.left_out);
    return tune_logger_note(log, "warning: previews", text);
}

/* Log the answer to row b of the batch. */
static int log_answer(void *previews, struct tune_greedy *g, const struct tune_prompt_batch *batch, int b)
{
    const struct tune_previews *s = previews;
    const int32_t *ids = batch->ids + (int64_t)b * batch->T + batch->pads[b];
    char *prompt = NULL;
    size_t size;
    const char *text = tune_answers_text(g->generator->answers, b, 0, &size);
    char *answer = strndup(text, size);
    int status = answer ? tune_tokenizer_decode(s->tok, ids, batch->T - batch->pads[b], false, &prompt, &size)
                        : tune_error_no_memory("a preview");
    if (status == 0)
        status = tune_logger_preview(s->log, s->at, batch->numbers[b], prompt, answer, tune_answers_end_of(g->generator->answers, b, 0));
    g->said_s = tune_clock_s();
    free(prompt);
    free(answer);
    return status;
}

int tune_previews_step(struct tune_previews *s, struct tune_logger *log, const struct tune_progress *at)
{
    bool last = at->step == at->planned_steps;
    TRY(tune_previews_note(s, log));
    if (s->every == 0 || (at->step % s->every != 0 && !last) || at->signal)
        return 0;
    if (tune_comm_follows(s->comm))
        return tune_model_together(s->model, s->comm, "previews of rank 0");
    tune_model_alone(s->model);
    TRY(tune_logger_catch_up(log, at));
    TRY(tune_model_exchange(s->model));
    s->log = log;
    s->at = at;
    int answered = tune_greedy_answer(&s->greedy, log, at->step, log_answer, s);
    int status = tune_model_exchange(s->model);
    tune_logger_settle(log);
    if (answered < 0 || status < 0)
        return -1;
    return tune_model_together(s->model, s->comm, "previews of rank 0");
}
