/* scorecard.c - rows with their references, and what metrics say of each answer. */
#include "evaluators/scorecard.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "evaluators/scorecard_parts.h"
#include "files/cjson.h"
#include "generators/answers.h"
#include "generators/prompts.h"
#include "tokenizers/tokenizer.h"

static const char *const prefix[TUNE_CARD_SIDES] = {"", "base_"};

int tune_scorecard_new(struct tune_scorecard *card, int batch)
{
    bool good = true;
    card->lengths = tune_zeroed((size_t)batch, sizeof *card->lengths, "a batch");
    for (int s = 0; s < card->sides; s++) {
        card->loss[s] = tune_zeroed((size_t)batch, sizeof **card->loss, "a batch");
        good = good && card->lengths && card->loss[s];
        for (int m = 0; m < card->metrics && good; m++) {
            int width = tune_score_width(card->metric[m], card->label_count);
            card->sums[s][m] = tune_zeroed((size_t)card->rows * (size_t)width, sizeof(double), "metrics of %" PRId64 " rows", card->rows);
            good = card->sums[s][m];
        }
        if (card->labels && good)
            card->answered[s] = tune_zeroed((size_t)card->rows, sizeof(int), "labels of %" PRId64 " rows", card->rows);
        good = good && (!card->labels || card->answered[s]);
    }
    if (card->labels && good)
        card->truth = tune_zeroed((size_t)card->rows, sizeof(int), "labels of %" PRId64 " rows", card->rows);
    return good && (!card->labels || card->truth) ? 0 : -1;
}

void tune_scorecard_free(struct tune_scorecard *card)
{
    if (!card)
        return;
    for (int s = 0; s < TUNE_CARD_SIDES; s++) {
        for (int m = 0; m < TUNE_CARD_METRICS; m++)
            free(card->sums[s][m]);
        free(card->answered[s]);
        free(card->loss[s]);
    }
    tune_score_labels_free(card->labels);
    tune_dataset_free(card->data);
    tune_example_free(&card->row);
    cJSON_Delete(card->about);
    free(card->truth);
    free(card->ids);
    free(card->labels_of);
    free(card->lengths);
    free(card);
}

/* ---- the rows with their references ---- */
static int text_size(struct tune_scorecard *card, const int32_t *ids, int64_t count, int64_t *size)
{
    char *text;
    size_t bytes;
    TRY(tune_tokenizer_decode(card->tok, ids, count, true, &text, &bytes));
    free(text);
    *size = (int64_t)bytes;
    return 0;
}

/* Bytes of the row at hand that its trained tokens spell: those of the whole row less those of the
 * others. Decoded alone, an answer could lose the space that it begins with. */
static int count_bytes(struct tune_scorecard *card, int64_t *bytes)
{
    struct tune_example *x = &card->row;
    int64_t all, others, count = 0;
    TRY(text_size(card, x->ids, x->count, &all));
    for (int64_t i = 0; i < x->count; i++)
        if (!x->trained[i])
            x->ids[count++] = x->ids[i]; /* the batch has a copy of them all */
    TRY(text_size(card, x->ids, count, &others));
    *bytes = all > others ? all - others : 0;
    return 0;
}

/* Make room for B rows of T positions; what is there is lost. */
static int make_room(struct tune_scorecard *card, int64_t N)
{
    if (N <= card->room)
        return 0;
    free(card->ids);
    free(card->labels_of);
    card->room = 0;
    card->ids = tune_zeroed((size_t)N, sizeof *card->ids, "a batch");
    card->labels_of = tune_zeroed((size_t)N, sizeof *card->labels_of, "a batch");
    card->room = card->ids && card->labels_of ? N : 0;
    return card->room ? 0 : -1;
}

/* Copy the row at hand to row b of the batch. Labels are shifted, as in core/batch.h. */
static void copy_row(struct tune_scorecard *card, int b, struct tune_batch *texts)
{
    const struct tune_example *x = &card->row;
    int32_t *ids = card->ids + (int64_t)b * texts->T, *labels = card->labels_of + (int64_t)b * texts->T;
    for (int t = 0; t < texts->T; t++) {
        bool labelled = t + 1 < x->count && x->trained[t + 1];
        ids[t] = t < x->count ? x->ids[t] : 0;
        labels[t] = labelled ? x->ids[t + 1] : TUNE_NO_LABEL;
        card->loss[0][b].tokens += labelled;
    }
    texts->tokens += x->count;
    texts->label_count += card->loss[0][b].tokens;
}

int tune_scorecard_texts(struct tune_scorecard *card, const struct tune_prompt_batch *batch, struct tune_batch *texts)
{
    card->texts = batch->rows;
    *texts = (struct tune_batch){.B = batch->rows, .lengths = card->lengths, .row_of = batch->numbers};
    for (int b = 0; b < batch->rows; b++) {
        TRY(tune_dataset_get(card->data, batch->numbers[b], &card->row));
        card->lengths[b] = (int32_t)card->row.count;
        texts->T = card->lengths[b] > texts->T ? card->lengths[b] : texts->T;
    }
    TRY(make_room(card, (int64_t)texts->B * texts->T));
    texts->ids = card->ids;
    texts->labels = card->labels_of;
    for (int b = 0; b < batch->rows; b++) {
        TRY(tune_dataset_get(card->data, batch->numbers[b], &card->row));
        card->loss[0][b] = (struct tune_card_loss){0};
        copy_row(card, b, texts);
        TRY(count_bytes(card, &card->loss[0][b].bytes));
        if (card->sides > 1)
            card->loss[1][b] = card->loss[0][b];
    }
    return 0;
}

void tune_scorecard_log_probs(struct tune_scorecard *card, int side, const double *log_probs)
{
    for (int b = 0; b < card->texts; b++)
        card->loss[side][b].sum = -log_probs[b];
}

/* ---- metrics of a row ---- */

/* The row is the one whose turn it is. */
static int score(struct tune_scorecard *card, int side, int64_t row, struct tune_score_row *r)
{
    int64_t turn = card->done;
    struct tune_asked asked;
    TRY(tune_prompts_asked(card->prompts, row, &asked));
    struct tune_text expected = asked.expected.data ? tune_text_trim(asked.expected) : asked.expected;
    r->answer = tune_text_trim(r->answer);
    r->references = &expected;
    r->reference_count = asked.expected.data != NULL;
    r->labels = card->labels;
    int status = 0;
    for (int m = 0; m < card->metrics && status == 0; m++) {
        int width = tune_score_width(card->metric[m], card->label_count);
        status = tune_score_of(card->metric[m], r, card->sums[side][m] + turn * width);
    }
    if (card->labels && status == 0) {
        card->answered[side][turn] = tune_score_label_of(card->labels, r->answer);
        card->truth[turn] = tune_score_label_of(card->labels, expected);
        status = card->answered[side][turn] == -2 || card->truth[turn] < 0 ? -1 : 0;
    }
    tune_asked_free(&asked);
    if (status < 0)
        tune_error_prefix("row %" PRId64 ": ", row);
    return status;
}

static bool put(cJSON *line, int side, const char *name, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", prefix[side], name);
    return isfinite(value) ? tune_cjson_put_number(line, text, value) : tune_cjson_put(line, text, cJSON_CreateNull());
}

/* Write what is known of a row on one side. */
static bool put_row(const struct tune_scorecard *card, cJSON *line, int side, const struct tune_card_loss *loss)
{
    bool good = put(line, side, "loss_sum", loss->sum) &&
                (side > 0 || (put(line, 0, "loss_tokens", (double)loss->tokens) && put(line, 0, "loss_bytes", (double)loss->bytes)));
    for (int m = 0; m < card->metrics && good; m++) {
        const struct tune_score *s = card->metric[m];
        int width = tune_score_width(s, card->label_count);
        if (s->row != tune_score_find("answer_tokens")->row) /* "tokens" stands there */
            good = put(line, side, s->name, tune_score_row_value(s, card->sums[side][m] + card->done * width, card->label_count));
    }
    return good;
}

static bool is_ended(const char *end)
{
    return !strcmp(end, "token") || !strcmp(end, "stop");
}

int tune_scorecard_write(void *context, const struct tune_answers *answers, int batch_row, int64_t row, cJSON *line)
{
    struct tune_scorecard *card = context;
    for (int side = 0; side < card->sides; side++) {
        const struct tune_card_loss *loss = &card->loss[side][batch_row];
        struct tune_score_row r = {.loss = loss->sum, .loss_tokens = loss->tokens, .loss_bytes = loss->bytes,
                                   .answer_tokens = tune_answers_tokens(answers, batch_row, side),
                                   .ended = is_ended(tune_answers_end_of(answers, batch_row, side))};
        r.answer.data = tune_answers_text(answers, batch_row, side, &r.answer.size);
        TRY(score(card, side, row, &r));
        if (!put_row(card, line, side, loss))
            return tune_error_no_memory("a line of rows");
    }
    card->done++;
    return 0;
}

/* A loss that is not finite is written as null. */
static bool is_number(const cJSON *value)
{
    return cJSON_IsNumber(value) || cJSON_IsNull(value);
}

static const cJSON *member(const cJSON *line, int side, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", prefix[side], name);
    return cJSON_GetObjectItemCaseSensitive(line, text);
}

int tune_scorecard_read(void *context, int64_t row, const cJSON *line)
{
    struct tune_scorecard *card = context;
    for (int side = 0; side < card->sides; side++) {
        const cJSON *answer = member(line, side, "answer"), *end = member(line, side, "end"), *tokens = member(line, side, "tokens");
        const cJSON *sum = member(line, side, "loss_sum"), *labels = member(line, 0, "loss_tokens"), *bytes = member(line, 0, "loss_bytes");
        if (!cJSON_IsString(answer) || !cJSON_IsString(end) || !cJSON_IsNumber(tokens) || !is_number(sum) ||
            !cJSON_IsNumber(labels) || !cJSON_IsNumber(bytes))
            return tune_error_usage("row %" PRId64 " of rows.jsonl was not written by an evaluation; give another `output`, or "
                                    "`overwrite`", row);
        struct tune_score_row r = {.answer = {answer->valuestring, strlen(answer->valuestring)}, .loss = cJSON_IsNull(sum) ? NAN : sum->valuedouble,
                                   .loss_tokens = (int64_t)labels->valuedouble, .loss_bytes = (int64_t)bytes->valuedouble,
                                   .answer_tokens = (int64_t)tokens->valuedouble, .ended = is_ended(end->valuestring)};
        TRY(score(card, side, row, &r));
    }
    card->done++;
    return 0;
}
