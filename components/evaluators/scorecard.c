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
    size_t texts = (size_t)batch * (size_t)card->parts;
    card->lengths = tune_zeroed(texts, sizeof *card->lengths, "a batch");
    card->numbers = tune_zeroed(texts, sizeof *card->numbers, "a batch");
    good = card->numbers;
    for (int s = 0; s < card->sides; s++) {
        card->loss[s] = tune_zeroed(texts, sizeof **card->loss, "a batch");
        good = good && card->lengths && card->loss[s];
        for (int m = 0; m < card->metrics && good; m++) {
            int width = tune_score_width(card->metric[m], card->label_count);
            card->sums[s][m] = tune_zeroed((size_t)card->rows * (size_t)width, sizeof(double), "metrics of %" PRId64 " rows", card->rows);
            good = card->sums[s][m];
        }
        if (card->labels && good) {
            card->answered[s] = tune_zeroed((size_t)card->rows, sizeof(int), "labels of %" PRId64 " rows", card->rows);
            card->truth[s] = tune_zeroed((size_t)card->rows, sizeof(int), "labels of %" PRId64 " rows", card->rows);
            good = card->answered[s] && card->truth[s];
        }
    }
    return good ? 0 : -1;
}

void tune_scorecard_free(struct tune_scorecard *card)
{
    if (!card)
        return;
    for (int s = 0; s < TUNE_CARD_SIDES; s++) {
        for (int m = 0; m < card->metrics - card->own.count; m++)
            free(card->sums[s][m]); /* the program's are its own */
        free(card->answered[s]);
        free(card->truth[s]);
        free(card->loss[s]);
    }
    tune_metric_program_free(card->program);
    tune_program_metrics_free(&card->own);
    tune_score_labels_free(card->labels);
    if (!card->unanswered)
        tune_dataset_free(card->data);
    tune_example_free(&card->row);
    cJSON_Delete(card->about);
    free(card->ids);
    free(card->labels_of);
    free(card->lengths);
    free(card->numbers);
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

/* Bytes that the trained ones of count tokens spell: those of all less those of the others. Decoded
 * alone, an answer could lose the space that it begins with. It moves the others to the front. */
static int count_bytes(struct tune_scorecard *card, int32_t *ids, const uint8_t *trained, int64_t count, int64_t *bytes)
{
    int64_t all, others, left = 0;
    TRY(text_size(card, ids, count, &all));
    for (int64_t i = 0; i < count; i++)
        if (!trained[i])
            ids[left++] = ids[i]; /* the batch has a copy of them all */
    TRY(text_size(card, ids, left, &others));
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

/* Copy part i of the row at hand to row b of the batch. Labels are shifted, as in core/batch.h. */
static int copy_part(struct tune_scorecard *card, int i, int b, struct tune_batch *texts)
{
    struct tune_example *x = &card->row;
    int64_t count, begin = tune_example_part(x, i, &count);
    int32_t *from = begin > 0 ? x->ids + begin : x->ids, *ids = card->ids + (int64_t)b * texts->T; /* an empty row has none */
    int32_t *labels = card->labels_of + (int64_t)b * texts->T;
    const uint8_t *trained = begin > 0 ? x->trained + begin : x->trained;
    struct tune_card_loss *loss = &card->loss[0][b];
    *loss = (struct tune_card_loss){0};
    for (int t = 0; t < texts->T; t++) {
        bool labelled = t + 1 < count && trained[t + 1];
        ids[t] = t < count ? from[t] : 0;
        labels[t] = labelled ? from[t + 1] : TUNE_NO_LABEL;
        loss->tokens += labelled;
    }
    texts->tokens += count;
    texts->label_count += loss->tokens;
    return count_bytes(card, from, trained, count, &loss->bytes);
}

int tune_scorecard_texts(struct tune_scorecard *card, const struct tune_prompt_batch *batch, struct tune_batch *texts)
{
    int parts = card->parts;
    *texts = (struct tune_batch){.B = batch->rows * parts, .T = 1, .lengths = card->lengths, .row_of = card->numbers};
    for (int b = 0; b < texts->B; b++) {
        int64_t count;
        if (b % parts == 0)
            TRY(tune_dataset_get(card->data, batch->numbers[b / parts], &card->row));
        tune_example_part(&card->row, b % parts, &count);
        card->numbers[b] = batch->numbers[b / parts];
        card->lengths[b] = count > 0 ? (int32_t)count : 1; /* an empty text is a token without a label */
        texts->T = card->lengths[b] > texts->T ? card->lengths[b] : texts->T;
    }
    TRY(make_room(card, (int64_t)texts->B * texts->T));
    texts->ids = card->ids;
    texts->labels = card->labels_of;
    for (int b = 0; b < texts->B; b++) {
        if (b % parts == 0)
            TRY(tune_dataset_get(card->data, batch->numbers[b / parts], &card->row));
        TRY(copy_part(card, b % parts, b, texts));
        if (card->sides > 1)
            card->loss[1][b] = card->loss[0][b];
    }
    card->texts = texts->B;
    card->T = texts->T;
    return 0;
}

void tune_scorecard_log_probs(struct tune_scorecard *card, int side, const float *log_probs)
{
    for (int b = 0; b < card->texts; b++) {
        struct tune_card_loss *loss = &card->loss[side][b];
        const int32_t *labels = card->labels_of + (int64_t)b * card->T;
        loss->sum = loss->text = 0;
        for (int t = 0; t < card->T; t++, log_probs++) {
            if (labels[t] == TUNE_NO_LABEL)
                continue;
            loss->sum -= *log_probs;
            loss->text -= tune_tokenizer_is_special(card->tok, labels[t]) ? 0 : *log_probs;
        }
    }
}

/* ---- metrics of a row ---- */

/* The references of a row, without white space at their ends. asked must outlive them; the caller
 * frees *list. Returns how many; -1 with an error. */
static int references_of(const struct tune_asked *asked, struct tune_text **list)
{
    int count = asked->expected.data ? 1 + asked->more_count : 0;
    *list = tune_zeroed((size_t)count + 1, sizeof **list, "the references of a row");
    for (int i = 0; i < count && *list; i++)
        (*list)[i] = tune_text_trim(i ? asked->more[i - 1] : asked->expected);
    return *list ? count : -1;
}

/* Note the label that the row's answer is, and the true one. With several references, a right answer
 * is the truth. */
static int note_labels(struct tune_scorecard *card, int side, int64_t turn, const struct tune_score_row *r)
{
    int answer = card->answered[side][turn] = tune_score_label_of(card->labels, r->answer), truth = -1;
    for (int i = r->reference_count - 1; i >= 0; i--) {
        int label = tune_score_label_of(card->labels, r->references[i]);
        TRY(label == -2 ? -1 : 0);
        truth = truth >= 0 && truth == answer ? truth : label;
    }
    card->truth[side][turn] = truth;
    return answer == -2 || truth < 0 ? -1 : 0;
}

/* The row is the one whose turn it is. */
static int score(struct tune_scorecard *card, int side, int64_t row, const struct tune_asked *asked, struct tune_score_row *r)
{
    int64_t turn = card->done;
    struct tune_text *references = NULL;
    r->answer = tune_text_trim(r->answer);
    if (!card->unanswered)
        TRY(r->reference_count = references_of(asked, &references));
    r->references = references;
    r->labels = card->labels;
    int status = 0;
    for (int m = 0; m < card->metrics && status == 0; m++) {
        int width = tune_score_width(card->metric[m], card->label_count);
        status = tune_score_of(card->metric[m], r, card->sums[side][m] + turn * width);
    }
    if (card->labels && status == 0)
        status = note_labels(card, side, turn, r);
    if (card->program && status == 0)
        status = tune_metric_program_row(card->program, side, row, asked, r->answer);
    free(references);
    return status < 0 ? tune_error_prefix("row %" PRId64 ": ", row) : 0;
}

static bool put(cJSON *line, int side, const char *name, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", prefix[side], name);
    return isfinite(value) ? tune_cjson_put_number(line, text, value) : tune_cjson_put(line, text, cJSON_CreateNull());
}

/* Write what is known of a row on one side. Lines of one file have the same members in one order, so
 * that they are records of rows.csv. */
static bool put_row(const struct tune_scorecard *card, cJSON *line, int side, const struct tune_card_loss *loss)
{
    bool good = put(line, side, "loss_sum", loss->sum) && put(line, side, "text_loss_sum", loss->text) &&
                (side > 0 || (put(line, 0, "loss_tokens", (double)loss->tokens) && put(line, 0, "loss_bytes", (double)loss->bytes)));
    if (card->parts > 1)
        good = good && put(line, side, "rejected_loss_sum", loss[1].sum) &&
               (side > 0 || put(line, 0, "rejected_loss_tokens", (double)loss[1].tokens));
    for (int m = 0; m < card->metrics && good; m++) {
        const struct tune_score *s = card->metric[m];
        int width = tune_score_width(s, card->label_count);
        if (s->row != tune_score_find("answer_tokens")->row) /* "tokens" stands there */
            good = put(line, side, s->name, tune_score_row_value(s, card->sums[side][m] + card->done * width, card->label_count));
    }
    return good;
}

/* Write the texts of a row that answers.h does not. They are all references, if some row has several,
 * or the texts of a row without an answer. */
static bool put_texts(const struct tune_scorecard *card, cJSON *line, const struct tune_asked *asked)
{
    const struct tune_text *e = &asked->expected, *r = &asked->rejected;
    if (card->unanswered)
        return !e->data || (tune_cjson_put_bytes(line, card->parts > 1 ? "chosen" : "text", e->data, e->size) &&
                            (!r->data || tune_cjson_put_bytes(line, "rejected", r->data, r->size)));
    cJSON *list = card->several > 0 ? cJSON_AddArrayToObject(line, "references") : NULL;
    for (int i = 0; i <= asked->more_count && list; i++) {
        const struct tune_text *one = i ? &asked->more[i - 1] : e;
        if (!tune_cjson_add_bytes(list, one->data, one->size))
            return false;
    }
    return card->several == 0 || list;
}

static bool is_ended(const char *end)
{
    return !strcmp(end, "token") || !strcmp(end, "stop");
}

/* The numbers of a row's texts, for metrics. */
static struct tune_score_row row_of(const struct tune_scorecard *card, const struct tune_card_loss *loss)
{
    struct tune_score_row r = {.loss = loss->sum, .text_loss = loss->text, .loss_tokens = loss->tokens, .loss_bytes = loss->bytes};
    if (card->parts > 1) {
        r.chosen = -loss[0].sum, r.chosen_tokens = loss[0].tokens;
        r.rejected = -loss[1].sum, r.rejected_tokens = loss[1].tokens;
    }
    return r;
}

static int write_row(struct tune_scorecard *card, const struct tune_answers *answers, int batch_row, int64_t row, const struct tune_asked *asked,
                     cJSON *line)
{
    bool good = put_texts(card, line, asked);
    for (int side = 0; side < card->sides && good; side++) {
        const struct tune_card_loss *loss = &card->loss[side][batch_row * card->parts];
        struct tune_score_row r = row_of(card, loss);
        if (!card->unanswered) {
            r.answer_tokens = tune_answers_tokens(answers, batch_row, side);
            r.ended = is_ended(tune_answers_end_of(answers, batch_row, side));
            r.answer.data = tune_answers_text(answers, batch_row, side, &r.answer.size);
        }
        TRY(score(card, side, row, asked, &r));
        good = put_row(card, line, side, loss);
    }
    card->done++;
    return good ? 0 : tune_error_no_memory("a line of rows");
}

int tune_scorecard_write(void *context, const struct tune_answers *answers, int batch_row, int64_t row, cJSON *line)
{
    struct tune_asked asked;
    TRY(tune_prompts_asked(((struct tune_scorecard *)context)->prompts, row, &asked));
    int status = write_row(context, answers, batch_row, row, &asked, line);
    tune_asked_free(&asked);
    return status;
}

/* A loss that is not finite is written as null. */
static bool is_number(const cJSON *value)
{
    return cJSON_IsNumber(value) || cJSON_IsNull(value);
}

static double number_of(const cJSON *value)
{
    return cJSON_IsNull(value) ? NAN : value->valuedouble;
}

static const cJSON *member(const cJSON *line, int side, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", prefix[side], name);
    return cJSON_GetObjectItemCaseSensitive(line, text);
}

/* Read the numbers of a line's texts on one side. false: it has not all. */
static bool read_loss(const struct tune_scorecard *card, int side, const cJSON *line, struct tune_card_loss *loss)
{
    const cJSON *sum = member(line, side, "loss_sum"), *text = member(line, side, "text_loss_sum");
    const cJSON *tokens = member(line, 0, "loss_tokens"), *bytes = member(line, 0, "loss_bytes");
    if (!is_number(sum) || !is_number(text) || !cJSON_IsNumber(tokens) || !cJSON_IsNumber(bytes))
        return false;
    loss[0] = (struct tune_card_loss){number_of(sum), number_of(text), (int64_t)tokens->valuedouble, (int64_t)bytes->valuedouble};
    if (card->parts == 1)
        return true;
    sum = member(line, side, "rejected_loss_sum"), tokens = member(line, 0, "rejected_loss_tokens");
    if (!is_number(sum) || !cJSON_IsNumber(tokens))
        return false;
    loss[1] = (struct tune_card_loss){.sum = number_of(sum), .tokens = (int64_t)tokens->valuedouble};
    return true;
}

static int read_row(struct tune_scorecard *card, int64_t row, const struct tune_asked *asked, const cJSON *line)
{
    for (int side = 0; side < card->sides; side++) {
        struct tune_card_loss loss[TUNE_CARD_PARTS] = {{0}};
        const cJSON *answer = member(line, side, "answer"), *end = member(line, side, "end"), *tokens = member(line, side, "tokens");
        bool answered = cJSON_IsString(answer) && cJSON_IsString(end) && cJSON_IsNumber(tokens);
        if (!read_loss(card, side, line, loss) || answered == card->unanswered)
            return tune_error_usage("row %" PRId64 " of rows.jsonl was not written by such an evaluation; give another `output`, or "
                                    "`overwrite`", row);
        struct tune_score_row r = row_of(card, loss);
        if (answered) {
            r.answer = tune_cjson_text(answer);
            r.answer_tokens = (int64_t)tokens->valuedouble;
            r.ended = is_ended(end->valuestring);
        }
        TRY(score(card, side, row, asked, &r));
    }
    card->done++;
    return 0;
}

int tune_scorecard_read(void *context, int64_t row, const cJSON *line)
{
    struct tune_asked asked;
    TRY(tune_prompts_asked(((struct tune_scorecard *)context)->prompts, row, &asked));
    int status = read_row(context, row, &asked, line);
    tune_asked_free(&asked);
    return status;
}
