/* answering.c - answer rows while a model trains, and add up what metrics say. */
#include "evaluators/answering.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/evaluator.h"
#include "generators/answers.h"
#include "generators/generator.h"
#include "generators/prompts.h"
#include "loggers/logger.h"

void tune_answering_free(struct tune_answering *a)
{
    if (!a)
        return;
    for (int k = 0; k < a->set_count; k++)
        free(a->sets[k].sums);
    free(a->sets);
    tune_score_labels_free(a->labels);
    tune_greedy_free(&a->greedy);
    free(a);
}

static bool is_ended(const char *end)
{
    return !strcmp(end, "token") || !strcmp(end, "stop");
}

/* Add what the metrics say of an answer to the sums of its file, and of all. */
static int judge(struct tune_answering *a, int64_t row, struct tune_score_row *r)
{
    int labels = tune_score_labels_count(a->labels);
    double one[TUNE_SCORE_SUMS];
    int64_t own;
    int file = a->set_count > 1 ? 1 + tune_dataset_set_of(a->data, row, &own) : 0;
    for (int m = 0; m < a->metrics; m++) {
        TRY(tune_score_of(a->metric[m], r, one));
        for (int i = 0; i < tune_score_width(a->metric[m], labels); i++) {
            a->sets[0].sums[m * TUNE_SCORE_SUMS + i] += one[i];
            if (file > 0)
                a->sets[file].sums[m * TUNE_SCORE_SUMS + i] += one[i];
        }
    }
    return 0;
}

/* A row was answered: compare it with the row's own answer. White space at their ends does not count. */
static int take_answer(void *answering, struct tune_greedy *g, const struct tune_prompt_batch *batch, int b)
{
    struct tune_answering *a = answering;
    const struct tune_answers *answers = g->generator->answers;
    struct tune_asked asked;
    int64_t row = batch->numbers[b];
    TRY(tune_prompts_asked(g->prompts, row, &asked));
    struct tune_text expected = tune_text_trim(asked.expected);
    struct tune_score_row r = {.references = &expected, .reference_count = 1, .labels = a->labels,
                               .answer_tokens = tune_answers_tokens(answers, b, 0), .ended = is_ended(tune_answers_end_of(answers, b, 0))};
    r.answer.data = tune_answers_text(answers, b, 0, &r.answer.size);
    r.answer = tune_text_trim(r.answer);
    int status = judge(a, row, &r);
    tune_asked_free(&asked);
    return status;
}

int tune_answering_add(struct tune_answering *a, struct tune_logger *log, int64_t step, struct tune_evaluation *sums)
{
    char name[128];
    if (a->sets[0].rows == 0)
        return 0;
    for (int k = 0; k < a->set_count; k++)
        memset(a->sets[k].sums, 0, (size_t)a->metrics * TUNE_SCORE_SUMS * sizeof(double));
    int stopped = tune_greedy_answer(&a->greedy, log, step, take_answer, a);
    if (stopped != 0)
        return stopped;
    for (int k = 0; k < a->set_count; k++)
        for (int m = 0; m < a->metrics && a->sets[k].rows > 0; m++) {
            const struct tune_answered *s = &a->sets[k];
            snprintf(name, sizeof name, "%s%s%s", s->name, *s->name ? "_" : "", a->metric[m]->name);
            TRY(tune_evaluation_value(sums, name, tune_score_value(a->metric[m], s->sums + m * TUNE_SCORE_SUMS,
                                                                   tune_score_labels_count(a->labels))));
        }
    return 0;
}

/* Files, or all rows, that are not answered. */
static int note_unanswered(const struct tune_answering *a, struct tune_logger *log, const char *key)
{
    char text[512] = "";
    for (int k = 0; k < a->set_count; k++)
        if (a->sets[k].rows == 0 && (k > 0 || a->set_count == 1))
            tune_append_item(text, sizeof text, "%s", *a->sets[k].name ? a->sets[k].name : "the rows");
    if (!*text)
        return 0;
    tune_append(text, sizeof text, ": not answered, since rows have no answer to compare with; only the loss is measured");
    return tune_logger_note(log, key, text);
}

int tune_answering_note(const struct tune_answering *a, struct tune_logger *log)
{
    char text[1024] = "";
    const struct tune_answered *all = &a->sets[0];
    int64_t looked = all->rows + all->unanswered;
    const char *key = *all->name ? "general answers" : "answers";
    TRY(note_unanswered(a, log, key));
    if (all->rows == 0)
        return 0;
    for (int m = 0; m < a->metrics; m++)
        tune_append_item(text, sizeof text, "%s", a->metric[m]->name);
    tune_append(text, sizeof text, " of %" PRId64 " of %" PRId64 " rows%s, at most %d tokens each (`eval_tokens`)", all->rows, all->evaluated,
                looked < all->evaluated ? ", drawn by the seed (`eval_answers`)" : "", a->greedy.tokens);
    if (all->unanswered > 0)
        tune_append(text, sizeof text, "; %" PRId64 " of the %" PRId64 " rows looked at have no answer to compare with", all->unanswered, looked);
    if (a->without_bytes)
        tune_append(text, sizeof text, "; bits_per_byte is left out, evaluate has it");
    TRY(tune_logger_note(log, key, text));
    if (!*a->greedy.left_out)
        return 0;
    snprintf(text, sizeof text, "generation_config.json: left out, as not supported here: %.340s", a->greedy.left_out);
    return tune_logger_note(log, "warning: answers", text);
}
