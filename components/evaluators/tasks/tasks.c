/* tasks.c - batches of questions: choices are weighed with a shared prompt, answers generated. */
#include "evaluators/tasks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "generators/answers.h"
#include "generators/generator.h"
#include "generators/prompts_parts.h"
#include "generators/token_sampler.h"
#include "models/cache.h"
#include "templates/chat_template.h"

void tune_tasks_free(struct tune_tasks *all)
{
    if (!all)
        return;
    if (all->generator) {
        tune_answers_free(all->generator->answers);
        free(all->generator);
    }
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

struct tune_cache *tune_tasks_cache(const struct tune_tasks *all, struct tune_model *m)
{
    return tune_cache_new(m, tune_tasks_cache_rows(all), all->longest);
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

/* Choose the questions of the next batch. Returns the tokens of the longest prompt. */
static int choose_batch(struct tune_tasks *all, const struct task *t)
{
    int rows = 0, longest = 0, behind = 0;
    all->batch = 0;
    while (all->at + all->batch < t->count && all->batch < all->batch_size) {
        const struct task_question *q = &t->questions[all->at + all->batch];
        int context = q->context_count > longest ? q->context_count : longest, more = tokens_behind(t, q) > behind ? tokens_behind(t, q) : behind;
        int wanted = rows + (q->choice_count > 1 ? q->choice_count : 1);
        if (all->batch > 0 && (wanted > tune_tasks_cache_rows(all) || context + more > all->longest))
            break;
        rows = wanted;
        longest = context;
        behind = more;
        all->batch++;
    }
    return longest;
}

static int fill_batch(struct tune_tasks *all, const struct task *t, int T, struct tune_prompt_batch *prompts)
{
    TRY(tune_array_reserve(&all->ids, &all->id_room, (size_t)all->batch * (size_t)T, sizeof *all->ids, "questions"));
    memset(all->ids, 0, (size_t)all->batch * (size_t)T * sizeof *all->ids);
    for (int b = 0; b < all->batch; b++) {
        const struct task_question *q = &t->questions[all->at + b];
        all->pads[b] = T - q->context_count;
        all->numbers[b] = q->row;
        memcpy(all->ids + (int64_t)b * T + all->pads[b], q->context, (size_t)q->context_count * sizeof *q->context);
    }
    *prompts = (struct tune_prompt_batch){all->batch, T, all->ids, all->pads, all->numbers, false, all->zeros};
    return 0;
}

/* A generator for the task: its texts end an answer. */
static int make_generator(struct tune_tasks *all, const struct task *t, struct tune_cache *cache, struct tune_model *m)
{
    struct tune_generator *g = all->generator;
    const struct tune_answers_options o = {.stops = t->until, .stop_count = t->until_count, .ends = all->ends, .end_count = all->end_count,
                                           .max_new_tokens = t->max_tokens, .context = all->longest + 1, .sides = 1, .stop_signal = all->stop_signal};
    const struct tune_sampling_options greedy = {.top_p = 1, .repetition_penalty = 1};
    if (!g) {
        g = all->generator = tune_zeroed(1, sizeof *g, "a generator");
        TRY(g ? 0 : -1);
    }
    if (!all->sampler)
        all->sampler = tune_token_sampler_new(&greedy, 0, (int)tune_model_vocabulary(m), all->batch_size);
    if (!all->prompts)
        all->prompts = tune_prompts_new(all->batch_size, all->longest);
    TRY(all->sampler && all->prompts ? 0 : -1);
    tune_answers_free(g->answers);
    *g = (struct tune_generator){.model = m, .cache = cache, .sampler = all->sampler, .sides = 1, .stop_signal = all->stop_signal};
    g->answers = tune_answers_new(all->writer.tok, all->prompts, &o);
    return g->answers ? 0 : -1;
}

int tune_tasks_next(struct tune_tasks *all, struct tune_cache *cache, struct tune_task_batch *batch)
{
    while (all->task < all->count && all->at == all->tasks[all->task].count) {
        TRY(tune_task_sum_up(&all->tasks[all->task]));
        all->task++;
        all->at = 0;
    }
    if (all->task == all->count)
        return 0;
    const struct task *t = &all->tasks[all->task];
    if (t->kind == TASK_GENERATE && all->at == 0)
        TRY(make_generator(all, t, cache, tune_cache_model(cache)));
    *batch = (struct tune_task_batch){.generator = t->kind == TASK_GENERATE ? all->generator : NULL};
    TRY(fill_batch(all, t, choose_batch(all, t), &batch->prompts));
    return 1;
}

/* ---- choices ---- */
/* log p of an id, and whether it is the most likely one. */
static double log_prob(const float *logits, int64_t V, int32_t id, bool *greedy)
{
    double sum = 0;
    int64_t best = 0;
    for (int64_t i = 1; i < V; i++)
        best = logits[i] > logits[best] ? i : best;
    for (int64_t i = 0; i < V; i++)
        sum += exp((double)logits[i] - logits[best]);
    *greedy = best == id;
    return (double)logits[id] - logits[best] - log(sum);
}

/* The first token of each choice, by the logits behind the prompts. */
static int weigh_first(struct tune_tasks *all, struct task *t, struct tune_cache *cache)
{
    int64_t V = tune_model_vocabulary(tune_cache_model(cache));
    float *logits;
    TRY(tune_cache_logits(cache, &logits));
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < t->questions[all->at + b].choice_count; i++) {
            struct task_choice *c = &t->questions[all->at + b].choices[i];
            if (c->ids[0] < 0 || c->ids[0] >= V)
                return tune_error_usage("%s: the token %d is above the model's vocabulary of %" PRId64, t->path, (int)c->ids[0], V);
            c->log_prob = log_prob(logits + b * V, V, c->ids[0], &c->greedy);
        }
    return 0;
}

/* The choices of more than one token: each goes on in a row of its own. */
struct longer {
    struct task_choice **choices;
    int *rows;                 /* of the prompt */
    int32_t *ids, *at;         /* [count,T]; positions whose logits are wanted */
    int count, T, positions;
};

static int weigh_rest(struct longer *l, struct tune_cache *cache, int most)
{
    int64_t V = tune_model_vocabulary(tune_cache_model(cache));
    TRY(tune_cache_spread(cache, l->rows, l->count));
    TRY(tune_cache_forward(cache, l->ids, l->T));
    for (int from = 0; from < l->positions; from += most) {
        int n = l->positions - from < most ? l->positions - from : most;
        float *logits;
        TRY(tune_cache_logits_of(cache, l->at + from, n, &logits));
        for (int i = 0; i < n; i++) {
            int row = l->at[from + i] / l->T, place = l->at[from + i] % l->T;
            struct task_choice *c = l->choices[row];
            bool greedy;
            c->log_prob += log_prob(logits + i * V, V, c->ids[place + 1], &greedy);
            c->greedy = c->greedy && greedy;
        }
    }
    return 0;
}

static void collect(const struct tune_tasks *all, const struct task *t, struct longer *l)
{
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < t->questions[all->at + b].choice_count; i++) {
            struct task_choice *c = &t->questions[all->at + b].choices[i];
            if (c->count < 2)
                continue;
            l->rows[l->count] = b;
            l->choices[l->count++] = c;
            l->T = c->count - 1 > l->T ? c->count - 1 : l->T;
        }
}

static int weigh_longer(struct tune_tasks *all, struct task *t, struct tune_cache *cache)
{
    int rows = 0, status = 0;
    for (int b = 0; b < all->batch; b++)
        rows += t->questions[all->at + b].choice_count;
    struct longer l = {.choices = tune_zeroed((size_t)rows, sizeof *l.choices, "choices"), .rows = tune_zeroed((size_t)rows, sizeof *l.rows, "choices")};
    if (l.choices && l.rows)
        collect(all, t, &l);
    else
        status = -1;
    if (l.count > 0) {
        size_t places = (size_t)l.count * (size_t)l.T;
        l.ids = tune_zeroed(places, sizeof *l.ids, "choices");
        l.at = tune_zeroed(places, sizeof *l.at, "choices");
        status = l.ids && l.at ? 0 : -1;
        for (int i = 0; i < l.count && status == 0; i++)
            for (int k = 0; k + 1 < l.choices[i]->count; k++) {
                l.ids[i * l.T + k] = l.choices[i]->ids[k];
                l.at[l.positions++] = i * l.T + k;
            }
        status = status == 0 ? weigh_rest(&l, cache, tune_tasks_cache_rows(all)) : -1;
    }
    free(l.choices);
    free(l.rows);
    free(l.ids);
    free(l.at);
    return status;
}

int tune_tasks_weigh(struct tune_tasks *all, struct tune_cache *cache)
{
    struct task *t = &all->tasks[all->task];
    int T = all->pads[0] + t->questions[all->at].context_count;
    TRY(tune_cache_begin(cache, all->batch, all->pads));
    TRY(tune_cache_forward(cache, all->ids, T));
    TRY(weigh_first(all, t, cache));
    return weigh_longer(all, t, cache);
}

/* ---- scores ---- */
/* The answer, and what the texts of `until` leave of it. */
static int take_answer(struct tune_tasks *all, struct task *t, int b, struct task_question *q)
{
    size_t size;
    const char *text = tune_answers_text(all->generator->answers, b, 0, &size);
    char *copy = tune_task_take(t, size + 1);
    TRY(copy ? 0 : -1);
    memcpy(copy, text, size);
    q->answer = (struct tune_text){copy, size};
    return 0;
}

int tune_tasks_judge(struct tune_tasks *all)
{
    struct task *t = &all->tasks[all->task];
    if (all->stop_signal && *all->stop_signal) /* an answer may be cut */
        return 0;
    for (int b = 0; b < all->batch; b++) {
        struct task_question *q = &t->questions[all->at + b];
        if (t->kind == TASK_GENERATE)
            TRY(take_answer(all, t, b, q));
        TRY(tune_task_judge(t, q));
        TRY(tune_tasks_write_row(all, t, q));
    }
    if (all->rows_file && fflush(all->rows_file) != 0)
        return tune_error_set("%s: cannot write the rows", all->folder);
    all->at += all->batch;
    return 0;
}

int tune_tasks_finish(struct tune_tasks *all, FILE *out)
{
    if (all->task < all->count) {
        fprintf(out, "# stopped in %s, after %" PRId64 " of %" PRId64 " questions, so nothing is said of them\n", all->tasks[all->task].name, all->at,
                all->tasks[all->task].count);
        return 0;
    }
    return tune_tasks_report(all, out);
}
