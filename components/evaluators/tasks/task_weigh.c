/* task_weigh.c - log p of choices, which share the keys and values of their prompt, and of texts. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "losses/loss.h"
#include "models/cache.h"

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
static int weigh_first(struct tune_tasks *all, const struct task *t, int side, struct tune_cache *cache, const float *logits)
{
    int64_t V = tune_model_vocabulary(tune_cache_model(cache));
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < all->questions[b]->choice_count; i++) {
            struct task_choice *c = &all->questions[b]->choices[i];
            if (c->ids[0] < 0 || c->ids[0] >= V)
                return tune_error_usage("%s: the token %d is above the model's vocabulary of %" PRId64, t->path, (int)c->ids[0], V);
            c->log_prob[side] = log_prob(logits + b * V, V, c->ids[0], &c->greedy[side]);
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

static int weigh_rest(struct longer *l, int side, struct tune_cache *cache, int most)
{
    int64_t V = tune_model_vocabulary(tune_cache_model(cache));
    int rows = 0, kept[l->count]; /* prompts without such choices make room */
    for (int i = 0; i < l->count; i++) {
        if (i == 0 || l->rows[i] != kept[rows - 1])
            kept[rows++] = l->rows[i];
        l->rows[i] = rows - 1;
    }
    TRY(tune_cache_keep(cache, kept, rows));
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
            c->log_prob[side] += log_prob(logits + i * V, V, c->ids[place + 1], &greedy);
            c->greedy[side] = c->greedy[side] && greedy;
        }
    }
    return 0;
}

static void collect(const struct tune_tasks *all, struct longer *l)
{
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < all->questions[b]->choice_count; i++) {
            struct task_choice *c = &all->questions[b]->choices[i];
            if (c->count < 2)
                continue;
            l->rows[l->count] = b;
            l->choices[l->count++] = c;
            l->T = c->count - 1 > l->T ? c->count - 1 : l->T;
        }
}

static int weigh_longer(struct tune_tasks *all, int side, struct tune_cache *cache)
{
    int rows = 0, status = 0;
    for (int b = 0; b < all->batch; b++)
        rows += all->questions[b]->choice_count;
    struct longer l = {.choices = tune_zeroed((size_t)rows, sizeof *l.choices, "choices"), .rows = tune_zeroed((size_t)rows, sizeof *l.rows, "choices")};
    if (l.choices && l.rows)
        collect(all, &l);
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
        status = status == 0 ? weigh_rest(&l, side, cache, tune_tasks_cache_rows(all)) : -1;
    }
    free(l.choices);
    free(l.rows);
    free(l.ids);
    free(l.at);
    return status;
}

/* ---- prompts ---- */
/* The tokens with which all prompts of the batch begin. Each has one behind them. *rest: the most that one has. */
static int common_tokens(const struct tune_tasks *all, int *rest)
{
    const struct task_question *first = all->questions[0];
    int common = first->context_count - 1;
    *rest = 0;
    for (int b = 1; b < all->batch; b++) {
        const struct task_question *q = all->questions[b];
        int same = 0;
        while (same < common && same < q->context_count - 1 && q->context[same] == first->context[same])
            same++;
        common = same;
    }
    for (int b = 0; b < all->batch; b++)
        *rest = all->questions[b]->context_count - common > *rest ? all->questions[b]->context_count - common : *rest;
    return common;
}

/* Have one row with the beginning that the batch shares. *common: its tokens; of a single prompt, as many as are there already. kept:
 * the cache may hold them from the batch before. */
static int begin_shared(const struct tune_tasks *all, struct tune_cache *cache, int *common, bool kept)
{
    const struct task_question *q = all->questions[0];
    int have = 0;
    if (kept && tune_cache_length(cache) > 0) {
        TRY(tune_cache_keep(cache, (int[]){0}, 1));
        have = tune_cache_share(cache, q->context, *common + 1);
    } else
        TRY(tune_cache_begin(cache, 1, NULL));
    if (all->batch == 1) { /* the rest is one piece */
        int least = q->context_count - (int)tune_model_max_tokens(tune_cache_model(cache));
        *common = have > least ? have : least;
    }
    return have < *common ? tune_cache_forward(cache, q->context + have, *common - have) : 0;
}

/* Each prompt goes on behind the beginning, in a row of its own, padded on the right. logits: behind the prompts. */
static int forward_rest(const struct tune_tasks *all, struct tune_cache *cache, int common, float **logits)
{
    int rest = 1, rows[all->batch], lengths[all->batch];
    int32_t at[all->batch];
    memset(rows, 0, sizeof rows);
    for (int b = 0; b < all->batch; b++) {
        lengths[b] = all->questions[b]->context_count;
        rest = lengths[b] - common > rest ? lengths[b] - common : rest;
    }
    int32_t *ids = tune_zeroed((size_t)all->batch * (size_t)rest, sizeof *ids, "questions");
    TRY(ids ? 0 : -1);
    for (int b = 0; b < all->batch; b++) {
        at[b] = b * rest + lengths[b] - common - 1;
        memcpy(ids + (int64_t)b * rest, all->questions[b]->context + common, (size_t)(lengths[b] - common) * sizeof *ids);
    }
    int status = tune_cache_spread(cache, rows, all->batch);
    status = status == 0 ? tune_cache_forward(cache, ids, rest) : -1;
    free(ids);
    TRY(status);
    TRY(tune_cache_logits_of(cache, at, all->batch, logits));
    return tune_cache_trim(cache, lengths);
}

static int weigh_choices(struct tune_tasks *all, const struct task *t, int side, struct tune_cache *cache)
{
    enum { WORTH = 8 }; /* tokens for which a copy of their keys pays */
    int rest, common = common_tokens(all, &rest);
    float *logits;
    if (common >= WORTH && (int64_t)rest * all->batch <= tune_model_max_tokens(tune_cache_model(cache))) {
        TRY(begin_shared(all, cache, &common, all->sides == 1 || all->models[1].model));
        TRY(forward_rest(all, cache, common, &logits));
    } else {
        TRY(tune_cache_begin(cache, all->batch, all->pads));
        TRY(tune_cache_forward(cache, all->ids, all->pads[0] + all->questions[0]->context_count));
        TRY(tune_cache_logits(cache, &logits));
    }
    TRY(weigh_first(all, t, side, cache, logits));
    return weigh_longer(all, side, cache);
}

/* ---- texts ---- */
/* Some windows of texts as a batch: a token's label is the one behind it, but not of the first ones. */
static int weigh_windows(struct task_choice *const *windows, int count, int side, const struct task_model *with, bool base)
{
    int T = 1;
    double log_probs[count];
    for (int b = 0; b < count; b++)
        T = windows[b]->count - 1 > T ? windows[b]->count - 1 : T;
    int32_t lengths[count], *ids = tune_zeroed((size_t)count * (size_t)T * 2, sizeof *ids, "a batch"), *labels = ids + (int64_t)count * T;
    TRY(ids ? 0 : -1);
    struct tune_batch batch = {.B = count, .T = T, .ids = ids, .labels = labels, .lengths = lengths};
    for (int b = 0; b < count; b++) {
        lengths[b] = windows[b]->count - 1;
        batch.tokens += lengths[b];
        for (int i = 0; i < T; i++) {
            bool labelled = i < lengths[b] && i + 1 >= windows[b]->skip;
            ids[(int64_t)b * T + i] = i < lengths[b] ? windows[b]->ids[i] : 0;
            labels[(int64_t)b * T + i] = labelled ? windows[b]->ids[i + 1] : TUNE_NO_LABEL;
            batch.label_count += labelled;
        }
    }
    struct tune_tensor *hidden;
    int status = base ? tune_model_infer_base(with->model, &batch, &hidden) : tune_model_infer(with->model, &batch, &hidden);
    status = status == 0 ? tune_loss_row_log_probs(with->loss, hidden, &batch, log_probs) : -1;
    for (int b = 0; b < count && status == 0; b++)
        windows[b]->log_prob[side] = log_probs[b];
    free(ids);
    return status;
}

static int weigh_texts(struct tune_tasks *all, int side, const struct task_model *with, bool base)
{
    struct task_choice *windows[TASK_WINDOWS];
    int count = 0, most = tune_tasks_windows(all);
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < all->questions[b]->choice_count; i++) {
            windows[count++] = &all->questions[b]->choices[i];
            if (count < most && (b + 1 < all->batch || i + 1 < all->questions[b]->choice_count))
                continue;
            TRY(weigh_windows(windows, count, side, with, base));
            count = 0;
        }
    return 0;
}

/* No score is made of a number that is not finite. */
static int check_finite(const struct tune_tasks *all, const struct task *t, int side)
{
    for (int b = 0; b < all->batch; b++)
        for (int i = 0; i < all->questions[b]->choice_count; i++) {
            double p = all->questions[b]->choices[i].log_prob[side];
            if (!isfinite(p))
                return tune_error_set("%s: row %" PRId64 ": the log-likelihood of text %d is %g; expected a finite number. The model's "
                                      "weights may hold numbers that are not finite, or numbers too large for its format", t->path,
                                      all->questions[b]->row, i, p);
        }
    return 0;
}

int tune_tasks_weigh(struct tune_tasks *all, int side)
{
    const struct task *t = &all->tasks[all->task];
    bool base = side == 1 && !all->models[1].model;
    const struct task_model *with = &all->models[base ? 0 : side];
    if (t->kind == TASK_ROLLING)
        TRY(weigh_texts(all, side, with, base));
    else {
        tune_cache_base(with->cache, base);
        TRY(weigh_choices(all, t, side, with->cache));
    }
    return check_finite(all, t, side);
}
