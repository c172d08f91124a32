/* tasks.c - batches of questions, and what becomes of them. */
#include "evaluators/tasks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "evaluators/tasks/parts.h"
#include "generators/answers.h"
#include "generators/generator.h"
#include "generators/prompts_parts.h"
#include "generators/token_sampler.h"
#include "losses/loss.h"
#include "models/cache.h"
#include "templates/chat_template.h"

enum { TELL_S = 10 };

void tune_tasks_free(struct tune_tasks *all)
{
    if (!all)
        return;
    if (all->generator) {
        tune_answers_free(all->generator->answers);
        free(all->generator);
    }
    for (int side = TASK_SIDES - 1; side >= 0; side--) {
        tune_loss_free(all->models[side].loss);
        tune_cache_free(all->models[side].cache);
        tune_model_free(all->models[side].model);
    }
    tune_generation_config_free(&all->config);
    tune_token_sampler_free(all->sampler);
    tune_prompts_free(all->prompts);
    for (int i = 0; i < all->count; i++)
        tune_task_free(&all->tasks[i]);
    for (int i = 0; i < all->group_count; i++)
        tune_task_config_free(&all->groups[i].config);
    if (all->rows_file)
        fclose(all->rows_file);
    tune_chat_template_free(all->writer.chat);
    free(all->tasks);
    free(all->groups);
    free(all->order);
    free(all->questions);
    free(all->ids);
    free(all->pads);
    free(all->numbers);
    free(all->zeros);
    free(all->bos_text);
    free(all);
}

/* Rows of a cache for the questions. */
int tune_tasks_cache_rows(const struct tune_tasks *all)
{
    enum { AT_ONCE = 64 };
    int rows = all->batch_size * all->most_choices;
    rows = rows < AT_ONCE ? rows : AT_ONCE;
    rows = rows > all->batch_size ? rows : all->batch_size;
    return rows > all->most_choices ? rows : all->most_choices;
}

int tune_tasks_windows(const struct tune_tasks *all)
{
    enum { TOKENS_AT_ONCE = 2048 };
    int most = all->window ? TOKENS_AT_ONCE / all->window : 1;
    most = most < all->batch_size ? most : all->batch_size;
    return most < 1 ? 1 : most < TASK_WINDOWS ? most : TASK_WINDOWS;
}

/* ---- batches ---- */
/* Tokens that follow a question's prompt. */
static int tokens_behind(const struct task *t, const struct task_question *q)
{
    int most = 1;
    for (int i = 0; i < q->choice_count; i++)
        most = q->choices[i].count - 1 > most ? q->choices[i].count - 1 : most;
    return t->kind == TASK_GENERATE ? t->max_tokens : most;
}

/* Choose the questions of the next batch: those in order that are not judged yet. Returns the tokens of the longest prompt. */
static int choose_batch(struct tune_tasks *all, struct task *t)
{
    int rows = 0, longest = 0, behind = 0;
    all->batch = 0;
    for (; all->at < t->count && all->batch < all->batch_size; all->at++) {
        struct task_question *q = &t->questions[t->order[all->at]];
        int context = q->context_count > longest ? q->context_count : longest, more = tokens_behind(t, q) > behind ? tokens_behind(t, q) : behind;
        int wanted = rows + (q->choice_count > 1 ? q->choice_count : 1);
        if (q->done)
            continue;
        if (all->batch > 0 && t->kind != TASK_ROLLING && (wanted > tune_tasks_cache_rows(all) || context + more > all->longest))
            break;
        rows = wanted;
        longest = context;
        behind = more;
        all->questions[all->batch++] = q;
    }
    return longest;
}

static int fill_batch(struct tune_tasks *all, int T, struct tune_prompt_batch *prompts)
{
    TRY(tune_array_reserve(&all->ids, &all->id_room, (size_t)all->batch * (size_t)T, sizeof *all->ids, "questions"));
    memset(all->ids, 0, (size_t)all->batch * (size_t)T * sizeof *all->ids);
    for (int b = 0; b < all->batch; b++) {
        const struct task_question *q = all->questions[b];
        all->pads[b] = T - q->context_count;
        all->numbers[b] = q->row;
        memcpy(all->ids + (int64_t)b * T + all->pads[b], q->context, (size_t)q->context_count * sizeof *q->context);
    }
    *prompts = (struct tune_prompt_batch){all->batch, T, all->ids, all->pads, all->numbers, false, all->zeros};
    return 0;
}

/* A sampler for the task. What generation_config.json says beside sampling holds, as in transformers. */
static int make_sampler(struct tune_tasks *all, const struct task *t)
{
    struct tune_token_rules rules = all->config.rules; /* its lists are borrowed */
    rules.max_new_tokens = t->max_tokens;
    tune_token_sampler_free(all->sampler);
    all->sampler = tune_token_sampler_new(&all->config.sampling, 0, (int)tune_model_vocabulary(all->models[0].model), all->batch_size);
    return all->sampler ? tune_token_sampler_obey(all->sampler, &rules) : -1;
}

/* A generator for the task: its texts end an answer. */
static int make_generator(struct tune_tasks *all, const struct task *t)
{
    struct tune_generator *g = all->generator;
    const struct tune_answers_options o = {.stops = t->until, .stop_count = t->until_count, .ends = all->config.ends, .end_count = all->config.end_count,
                                           .max_new_tokens = t->max_tokens, .context = all->longest + 1, .sides = all->sides,
                                           .names = {all->names[1], all->names[0]}, .stop_signal = all->stop_signal};
    if (!g) {
        g = all->generator = tune_zeroed(1, sizeof *g, "a generator");
        TRY(g ? 0 : -1);
    }
    if (!all->prompts)
        all->prompts = tune_prompts_new(all->batch_size, all->longest);
    TRY(all->prompts ? make_sampler(all, t) : -1);
    tune_answers_free(g->answers);
    *g = (struct tune_generator){.model = all->models[0].model, .cache = all->models[0].cache, .sampler = all->sampler, .sides = all->sides,
                                 .compared = all->models[1].model, .other = all->models[1].cache, .stop_signal = all->stop_signal};
    g->answers = tune_answers_new(all->writer.tok, all->prompts, &o);
    return g->answers ? 0 : -1;
}

int tune_tasks_next(struct tune_tasks *all, struct tune_task_batch *batch)
{
    while (all->task < all->count && all->tasks[all->task].done == all->tasks[all->task].count) {
        TRY(tune_task_sum_up(&all->tasks[all->task], all->sides, all->seed));
        all->task++;
        all->at = 0;
    }
    if (all->task == all->count)
        return 0;
    struct task *t = &all->tasks[all->task];
    if (t->kind == TASK_GENERATE && all->at == 0)
        TRY(make_generator(all, t));
    *batch = (struct tune_task_batch){.generator = t->kind == TASK_GENERATE ? all->generator : NULL, .sides = all->sides};
    int T = choose_batch(all, t);
    return t->kind == TASK_ROLLING || fill_batch(all, T, &batch->prompts) == 0 ? 1 : -1;
}

/* ---- scores ---- */
/* The answer, and what the texts of `until` leave of it. */
static int take_answer(struct tune_tasks *all, struct task *t, int b, int side, struct task_question *q)
{
    size_t size;
    const char *text = tune_answers_text(all->generator->answers, b, side, &size);
    char *copy = tune_task_take(t, size + 1);
    TRY(copy ? 0 : -1);
    memcpy(copy, text, size);
    q->answer[side] = (struct tune_text){copy, size};
    return 0;
}

/* A line of progress, now and then. */
static void tell_progress(struct tune_tasks *all, const struct task *t)
{
    double now = tune_clock_s();
    int64_t left = 0;
    if (now - all->told_s < TELL_S)
        return;
    for (int i = 0; i < all->count; i++)
        left += all->tasks[i].count - all->tasks[i].done;
    int64_t eta = (int64_t)((double)left * (now - all->began_s) / (double)all->done);
    fprintf(all->notes, "%s %" PRId64 "/%" PRId64 " | %.3g questions/s | ETA %" PRId64 ":%02d:%02d\n", t->name, t->done, t->count,
            (double)all->done / (now - all->began_s), eta / 3600, (int)(eta / 60 % 60), (int)(eta % 60));
    fflush(all->notes);
    all->told_s = now;
}

int tune_tasks_judge(struct tune_tasks *all)
{
    struct task *t = &all->tasks[all->task];
    if (all->stop_signal && *all->stop_signal) /* an answer may be cut */
        return 0;
    for (int b = 0; b < all->batch; b++) {
        struct task_question *q = all->questions[b];
        for (int side = 0; side < all->sides && t->kind == TASK_GENERATE; side++)
            TRY(take_answer(all, t, b, side, q));
        TRY(tune_task_judge(t, q, all->sides));
        TRY(tune_tasks_write_line(all, t, q));
    }
    if (all->rows_file && fflush(all->rows_file) != 0)
        return tune_error_set("%s: cannot write the rows", all->folder);
    all->done += all->batch;
    tell_progress(all, t);
    return 0;
}

int tune_tasks_finish(struct tune_tasks *all, FILE *out)
{
    if (all->task == all->count)
        return tune_tasks_report(all, out);
    const struct task *t = &all->tasks[all->task];
    fprintf(out, "# stopped in %s, after %" PRId64 " of %" PRId64 " questions, so nothing is said of them%s\n", t->name, t->done, t->count,
            all->folder ? "; the same command goes on" : "");
    return 0;
}
