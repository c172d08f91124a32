/* task_score.c - the scores of a question: numbers whose sums over all questions make a value.
 *
 *     means               the score, 1
 *     perplexity          the log-likelihood, 1
 *     those of texts      the log-likelihood, and the words or bytes
 *     f1                  true positives, false positives, false negatives of the label 1
 *     bleu, chrf          the sums of metrics/scores.h */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "evaluators/tasks/parts.h"
#include "metrics/scores.h"

/* ---- metrics ---- */
static double mean_of(const double *sums, int labels)
{
    (void)labels;
    return sums[0] / sums[1];
}

static double perplexity_of(const double *sums, int labels)
{
    (void)labels;
    return exp(-(sums[0] / sums[1]));
}

static double bits_of(const double *sums, int labels)
{
    (void)labels;
    return -(sums[0] / sums[1]) / log(2);
}

static double f1_of(const double *sums, int labels)
{
    (void)labels;
    return sums[0] > 0 ? 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]) : 0;
}

#define MEAN(name) {name, "0-1", TUNE_SCORE_MEAN, 0, 1, true, 2, NULL, mean_of, ""}
#define PERPLEXITY(name, unit, value) {name, unit, TUNE_SCORE_CORPUS, 0, -1, false, 2, NULL, value, ""}
const struct tune_score *tune_task_score_of(enum task_metric_kind kind)
{
    static const struct tune_score scores[TASK_METRIC_KINDS] = {
        [TASK_ACC] = MEAN("acc"), [TASK_ACC_NORM] = MEAN("acc_norm"), [TASK_ACC_BYTES] = MEAN("acc_bytes"),
        [TASK_EXACT_MATCH] = MEAN("exact_match"),
        [TASK_PERPLEXITY] = PERPLEXITY("perplexity", "perplexity", perplexity_of),
        [TASK_WORD_PERPLEXITY] = PERPLEXITY("word_perplexity", "perplexity", perplexity_of),
        [TASK_BYTE_PERPLEXITY] = PERPLEXITY("byte_perplexity", "perplexity", perplexity_of),
        [TASK_BITS_PER_BYTE] = PERPLEXITY("bits_per_byte", "bits", bits_of),
        [TASK_F1] = {"f1", "0-1", TUNE_SCORE_CORPUS, 0, 0, false, 3, NULL, f1_of, ""}};
    return scores[kind].name ? &scores[kind] : tune_score_find(tune_task_metrics[kind].name);
}

/* ---- choices ---- */
static int64_t characters(struct tune_text text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

/* The first choice with the largest log-likelihood, divided by its length as the metric says. */
static int best(const struct task_question *q, int side, enum task_metric_kind kind)
{
    int at = 0;
    double most = -INFINITY;
    for (int i = 0; i < q->choice_count; i++) {
        double length = kind == TASK_ACC_NORM ? (double)characters(q->choices[i].text)
                        : kind == TASK_ACC_BYTES ? (double)q->choices[i].text.size : 1;
        double value = q->choices[i].log_prob[side] / length;
        if (i == 0 || value > most) {
            at = i;
            most = value;
        }
    }
    return at;
}

static bool is_gold(const struct task_question *q, int64_t choice)
{
    for (int i = 0; i < q->gold_count; i++)
        if (q->gold[i] == choice)
            return true;
    return false;
}

/* True if a right choice is the one that the model would say. */
static bool says_gold(const struct task_question *q, int side)
{
    for (int i = 0; i < q->gold_count; i++) {
        int64_t at = q->gold[i] < 0 && q->gold[i] != TASK_NO_GOLD ? q->gold[i] + q->choice_count : q->gold[i];
        if (at >= 0 && at < q->choice_count && q->choices[at].greedy[side])
            return true;
    }
    return false;
}

static int judge_choices(const struct task *t, const struct task_question *q, int side, const struct task_metric *m, double *sums)
{
    int chosen = best(q, side, m->kind);
    if (m->kind == TASK_EXACT_MATCH)
        sums[0] = says_gold(q, side);
    else if (m->kind == TASK_F1) {
        if (q->several || q->choice_count != 2 || q->gold[0] < 0 || q->gold[0] > 1)
            return tune_error_usage("%s: row %" PRId64 ": f1 is of two choices, of which one is right", t->path, q->row);
        sums[0] = chosen == 1 && q->gold[0] == 1;
        sums[1] = chosen == 1 && q->gold[0] == 0;
        sums[2] = chosen == 0 && q->gold[0] == 1;
    } else
        sums[0] = is_gold(q, chosen);
    return 0;
}

/* ---- answers ---- */
static int match(const struct task_question *q, const struct task_metric *m, struct tune_text answer, struct tune_pool **pool, double *sums)
{
    struct tune_text a, b;
    TRY(tune_task_ignore(&m->ignored, true, answer, pool, &a));
    for (int i = 0; i < q->reference_count; i++) {
        TRY(tune_task_ignore(&m->ignored, true, q->references[i], pool, &b));
        if (a.size == b.size && !memcmp(a.data, b.data, a.size))
            sums[0] = 1;
    }
    return 0;
}

static int judge_answer(const struct task_question *q, const struct task_metric *m, struct tune_text answer, struct tune_pool **pool, double *sums)
{
    if (m->kind == TASK_EXACT_MATCH)
        return match(q, m, answer, pool, sums);
    const struct tune_score *score = tune_task_score_of(m->kind);
    const struct tune_score_row row = {.answer = answer, .references = q->references, .reference_count = q->reference_count};
    TRY(score ? 0 : -1);
    if (q->several)
        return tune_error_usage("%s: row %" PRId64 ": a list of targets is not read for this metric, only for exact_match", score->name, q->row);
    if (tune_score_width(score, 0) > TASK_SUMS)
        return tune_error_set("%s has %d sums", score->name, tune_score_width(score, 0));
    return tune_score_of(score, &row, sums);
}

/* ---- log-likelihoods ---- */
static void judge_likely(const struct task *t, const struct task_question *q, int side, const struct task_metric *m, double *sums)
{
    if (m->kind == TASK_ACC)
        sums[0] = q->choices[0].greedy[side];
    else
        for (int i = 0; i < q->choice_count; i++)
            sums[0] += q->choices[i].log_prob[side];
    sums[1] = t->kind != TASK_ROLLING ? 1 : (double)(m->kind == TASK_WORD_PERPLEXITY ? q->words : q->bytes);
}

/* ---- a question ---- */
static int judge(struct task *t, struct task_question *q, int side, int f, struct tune_pool **pool)
{
    if (t->kind == TASK_GENERATE)
        TRY(tune_task_filter_apply(&t->filters[f], q, q->answer[side], &t->pool, &q->filtered[side][f]));
    for (int i = 0; i < t->metric_count; i++) {
        const struct task_metric *m = &t->metrics[i];
        double *sums = q->scores[side] + (f * t->metric_count + i) * TASK_SUMS;
        if (tune_task_metrics[m->kind].plain)
            sums[1] = 1;
        if (t->kind == TASK_LOGLIKELIHOOD || t->kind == TASK_ROLLING)
            judge_likely(t, q, side, m, sums);
        else
            TRY(t->kind == TASK_MULTIPLE_CHOICE ? judge_choices(t, q, side, m, sums) : judge_answer(q, m, q->filtered[side][f], pool, sums));
    }
    return 0;
}

int tune_task_judge(struct task *t, struct task_question *q, int sides)
{
    struct tune_pool *pool = NULL;
    int status = 0;
    for (int side = 0; side < sides && status == 0; side++) {
        q->scores[side] = tune_task_take(t, (size_t)t->filter_count * (size_t)t->metric_count * TASK_SUMS * sizeof **q->scores);
        q->filtered[side] = tune_task_take(t, (size_t)t->filter_count * sizeof **q->filtered);
        status = q->scores[side] && q->filtered[side] ? 0 : -1;
        for (int f = 0; f < t->filter_count && status == 0; f++)
            status = judge(t, q, side, f, &pool);
    }
    tune_pool_free(pool);
    t->done += status == 0;
    q->done = status == 0;
    return status;
}
