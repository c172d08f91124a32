/* scores.c - the table of metrics, and those that need no text: losses, labels, lengths. */
#include "metrics/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "metrics/texts.h"

/* ---- losses: sums are nats; tokens or bytes ---- */
static int put_loss(double nats, int64_t count, double *sums)
{
    if (!isfinite(nats))
        return tune_error_set("a reference's loss is %g: the model has numbers that are not finite", nats);
    sums[0] = nats;
    sums[1] = (double)count;
    return 0;
}

static int loss(const struct tune_score_row *row, double *sums) { return put_loss(row->loss, row->loss_tokens, sums); }
static int bytes(const struct tune_score_row *row, double *sums) { return put_loss(row->text_loss, row->loss_bytes, sums); }

static double per_token(const double *sums, int labels)
{
    (void)labels;
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

static double perplexity(const double *sums, int labels)
{
    return exp(per_token(sums, labels));
}

static double per_byte(const double *sums, int labels)
{
    (void)labels;
    return sums[1] > 0 ? sums[0] / (sums[1] * log(2)) : NAN;
}

/* ---- means: sums are the row's value, 1 ---- */
static double mean(const double *sums, int labels)
{
    (void)labels;
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

static int one(double value, double *sums)
{
    sums[0] = value;
    sums[1] = 1;
    return 0;
}

static int ended(const struct tune_score_row *row, double *sums) { return one(row->ended, sums); }
static int tokens(const struct tune_score_row *row, double *sums) { return one((double)row->answer_tokens, sums); }

static int pair(const struct tune_score_row *row, double *sums)
{
    if (!isfinite(row->chosen) || !isfinite(row->rejected))
        return tune_error_set("log p of the answers is %g and %g: the model has numbers that are not finite", row->chosen, row->rejected);
    return one(row->chosen > row->rejected, sums);
}

static int pair_norm(const struct tune_score_row *row, double *sums)
{
    struct tune_score_row by_token = *row;
    by_token.chosen /= row->chosen_tokens > 0 ? (double)row->chosen_tokens : 1;
    by_token.rejected /= row->rejected_tokens > 0 ? (double)row->rejected_tokens : 1;
    return pair(&by_token, sums);
}

static int characters(const struct tune_score_row *row, double *sums)
{
    size_t size, count = 0;
    char *text = tune_text_mended(row->answer, &size);
    for (size_t i = 0; text && i < size; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    free(text);
    return text ? one((double)count, sums) : -1;
}

static int json_valid(const struct tune_score_row *row, double *sums)
{
    struct tune_json j;
    size_t size; /* the reader wants a NUL behind the text */
    char *text = row->answer.size ? malloc(row->answer.size + 1) : calloc(1, 1);
    if (!text)
        return tune_error_no_memory("a text");
    size = row->answer.size;
    if (size)
        memcpy(text, row->answer.data, size);
    text[size] = 0;
    tune_json_start(&j, "answer", text, size, 1);
    bool valid = tune_json_skip(&j) == 0 && tune_json_end(&j) == 0;
    tune_json_free(&j);
    free(text);
    if (!valid)
        tune_error_clear();
    return one(valid, sums);
}

/* ---- labels ---- */
struct tune_score_labels {
    int count;
    char *given[TUNE_SCORE_LABELS], *compared[TUNE_SCORE_LABELS];
};

void tune_score_labels_free(struct tune_score_labels *labels)
{
    for (int i = 0; labels && i < TUNE_SCORE_LABELS; i++) {
        free(labels->given[i]);
        free(labels->compared[i]);
    }
    free(labels);
}

int tune_score_labels_add(struct tune_score_labels *labels, struct tune_text text)
{
    size_t size;
    char *compared = tune_text_label(text, &size), *given = tune_text_mended(text, &(size_t){0});
    int status = compared && given ? 1 : -1;
    if (status > 0 && size == 0)
        status = tune_error_usage("the label \"%.100s\" has no letter or digit", given);
    for (int k = 0; k < labels->count && status > 0; k++)
        if (!strcmp(labels->compared[k], compared))
            status = 0;
    if (status > 0 && labels->count == TUNE_SCORE_LABELS)
        status = tune_error_usage("more than %d labels; accuracy and macro_f1 are of a closed set", TUNE_SCORE_LABELS);
    if (status > 0) {
        labels->given[labels->count] = given;
        labels->compared[labels->count++] = compared;
    } else {
        free(given);
        free(compared);
    }
    return status;
}

struct tune_score_labels *tune_score_labels_new(void)
{
    return tune_zeroed(1, sizeof(struct tune_score_labels), "labels");
}

int tune_score_labels_count(const struct tune_score_labels *labels) { return labels ? labels->count : 0; }
const char *tune_score_label(const struct tune_score_labels *labels, int at) { return labels->given[at]; }

int tune_score_label_of(const struct tune_score_labels *labels, struct tune_text text)
{
    size_t size;
    char *compared = tune_text_label(text, &size);
    int at = -1;
    for (int i = 0; compared && i < labels->count && at < 0; i++)
        if (strlen(labels->compared[i]) == size && !memcmp(labels->compared[i], compared, size))
            at = i;
    free(compared);
    return compared ? at : -2;
}

/* The places of the answer and of the first reference. *right: the answer is one of the references. */
static int compare_labels(const struct tune_score_row *row, int *answer, int *truth, bool *right)
{
    *answer = tune_score_label_of(row->labels, row->answer);
    *right = false;
    for (int i = row->reference_count - 1; i >= 0 && *answer != -2; i--) {
        *truth = tune_score_label_of(row->labels, row->references[i]);
        if (*truth == -1)
            return tune_error_set("the reference \"%.*s\" is none of the labels",
                                  row->references[i].size < 100 ? (int)row->references[i].size : 100, row->references[i].data);
        *right = *right || *truth == *answer;
    }
    return *answer == -2 || *truth == -2 ? -1 : 0;
}

static int accuracy(const struct tune_score_row *row, double *sums)
{
    int answer, truth;
    bool right;
    TRY(compare_labels(row, &answer, &truth, &right));
    return one(right, sums);
}

/* Sums for each label: right, answered, true. With several references, a right answer is the truth. */
static int label_counts(const struct tune_score_row *row, double *sums)
{
    int answer, truth;
    bool right;
    TRY(compare_labels(row, &answer, &truth, &right));
    memset(sums, 0, 3 * (size_t)row->labels->count * sizeof *sums);
    if (answer >= 0)
        sums[3 * answer + 1] = 1;
    sums[3 * (right ? answer : truth) + 2] = 1;
    if (right)
        sums[3 * answer] = 1;
    return 0;
}

static double macro_f1(const double *sums, int labels)
{
    double f = 0, rows = 0;
    int met = 0; /* labels that some answer or reference is */
    for (int i = 0; i < labels; i++) {
        const double *s = sums + 3 * i;
        if (s[1] + s[2] == 0)
            continue;
        f += 2 * s[0] / (s[1] + s[2]);
        rows += s[2];
        met++;
    }
    return rows > 0 ? f / met : NAN;
}

/* ---- the table ---- */
enum {
    ANSWER = TUNE_NEEDS_ANSWER,
    TEXTS = TUNE_NEEDS_ANSWER | TUNE_NEEDS_REFERENCE,
    LABELS = TEXTS | TUNE_NEEDS_LABELS,
};

static const struct tune_score table[] = {
    {"loss", "nats", TUNE_SCORE_CORPUS, TUNE_NEEDS_LOSS, -1, false, 2, loss, per_token,
     "-log p of a token of the references"},
    {"perplexity", "", TUNE_SCORE_CORPUS, TUNE_NEEDS_LOSS, -1, false, 2, loss, perplexity,
     "exp of that"},
    {"bits_per_byte", "bits", TUNE_SCORE_CORPUS, TUNE_NEEDS_LOSS, -1, false, 2, bytes, per_byte,
     "-log2 p of a byte of the references"},
    {"exact_match_raw", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, true, 2, tune_exact_match_raw, mean,
     "the answer's bytes are a reference's"},
    {"exact_match_squad", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, true, 2, tune_exact_match_squad, mean,
     "the same, as SQuAD normalises texts"},
    {"token_f1", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, false, 2, tune_token_f1, mean,
     "F1 of words, as SQuAD normalises texts"},
    {"rouge_1", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, false, 2, tune_rouge_1, mean,
     "F1 of words (rouge-score)"},
    {"rouge_2", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, false, 2, tune_rouge_2, mean,
     "F1 of pairs of words"},
    {"rouge_l", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, false, 2, tune_rouge_l, mean,
     "F1 of the longest common subsequence"},
    {"rouge_lsum", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, false, 2, tune_rouge_lsum, mean,
     "the same by lines"},
    {"bleu", "0-100", TUNE_SCORE_CORPUS, TEXTS, 1, false, 11, tune_bleu, tune_bleu_value,
     "n-grams of words (sacreBLEU)"},
    {"chrf", "0-100", TUNE_SCORE_CORPUS, TEXTS, 1, false, 19, tune_chrf, tune_chrf_value,
     "n-grams of characters (sacreBLEU)"},
    {"accuracy", "0-1", TUNE_SCORE_MEAN, LABELS, 1, true, 2, accuracy, mean,
     "the answer is the reference's label"},
    {"macro_f1", "0-1", TUNE_SCORE_CORPUS, LABELS, 1, false, 0, label_counts, macro_f1,
     "F1 of a label, as a mean over labels"},
    {"last_number", "0-1", TUNE_SCORE_MEAN, TEXTS, 1, true, 2, tune_last_number, mean,
     "the answer's last number is the reference's"},
    {"json_valid", "0-1", TUNE_SCORE_MEAN, ANSWER, 1, true, 2, json_valid, mean,
     "the answer is one JSON value"},
    {"ended", "0-1", TUNE_SCORE_MEAN, ANSWER, 1, true, 2, ended, mean,
     "the answer ended by itself"},
    {"answer_tokens", "tokens", TUNE_SCORE_MEAN, ANSWER, 0, false, 2, tokens, mean,
     "length of the answer"},
    {"answer_characters", "characters", TUNE_SCORE_MEAN, ANSWER, 0, false, 2, characters, mean,
     "length of the answer"},
    {"pair_accuracy", "0-1", TUNE_SCORE_PAIR, TUNE_NEEDS_PAIR, 1, true, 2, pair, mean,
     "the chosen answer is likelier than the rejected"},
    {"pair_accuracy_norm", "0-1", TUNE_SCORE_PAIR, TUNE_NEEDS_PAIR, 1, true, 2, pair_norm, mean,
     "the same by token"},
};

static const struct { const char *name, *members; } groups[] = {
    {"exact_match", "exact_match_raw,exact_match_squad"},
    {"rouge", "rouge_1,rouge_2,rouge_l,rouge_lsum"},
    {"losses", "loss,perplexity,bits_per_byte"},
    {"pairs", "pair_accuracy,pair_accuracy_norm"},
    {"usual", "loss,perplexity,bits_per_byte,exact_match_raw,exact_match_squad,token_f1,ended,answer_tokens"},
};

enum { METRICS = sizeof table / sizeof *table, GROUPS = sizeof groups / sizeof *groups };

const struct tune_score *tune_scores(int *count)
{
    *count = METRICS;
    return table;
}

/* Set the error about a name that is neither a metric nor, if groups are asked for, a group. */
static void unknown(const char *name, bool with_groups)
{
    const char *names[METRICS + GROUPS];
    char hint[TUNE_HINT], all[1024] = "";
    int count = METRICS + (with_groups ? GROUPS : 0);
    for (int i = 0; i < count; i++) {
        names[i] = i < METRICS ? table[i].name : groups[i - METRICS].name;
        tune_append_item(all, sizeof all, "%s", names[i]);
    }
    tune_error_usage("no metric is called \"%.100s\"%s; there are %s", name, tune_nearest_hint(name, names, count, hint), all);
}

static const struct tune_score *look_up(const char *name)
{
    for (int i = 0; i < METRICS; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

const struct tune_score *tune_score_find(const char *name)
{
    const struct tune_score *m = look_up(name);
    if (!m)
        unknown(name, false);
    return m;
}

static int add_metric(const struct tune_score **found, int *count, int most, const struct tune_score *m)
{
    for (int i = 0; i < *count; i++)
        if (found[i] == m)
            return 0;
    if (*count == most)
        return tune_error_usage("more than %d metrics", most);
    found[(*count)++] = m;
    return 0;
}

/* Add the metrics of a name: one, or those of a group. 0: no such name. */
static int add_named(const struct tune_score **found, int *count, int most, const char *name)
{
    const struct tune_score *m = look_up(name);
    if (m)
        return add_metric(found, count, most, m) < 0 ? -1 : 1;
    for (int g = 0; g < GROUPS; g++)
        for (const char *at = groups[g].members; *at && !strcmp(groups[g].name, name); at += *at == ',') {
            char member[64];
            int size = (int)strcspn(at, ",");
            snprintf(member, sizeof member, "%.*s", size, at);
            TRY(add_metric(found, count, most, look_up(member)));
            at += size;
            if (!*at)
                return 1;
        }
    return 0;
}

int tune_score_list(const char *names, const struct tune_score **found, int most)
{
    const char *name[METRICS + GROUPS];
    int count = 0;
    char *copy = strdup(names);
    if (!copy)
        return tune_error_no_memory("names of metrics");
    int listed = tune_name_split(copy, name, METRICS + GROUPS);
    for (int i = 0; i < listed; i++) {
        int known = add_named(found, &count, most, name[i]);
        if (known == 0)
            unknown(name[i], true);
        if (known <= 0)
            listed = -1;
    }
    free(copy);
    if (listed == 0)
        return tune_error_usage("no metric is named");
    return listed < 0 ? -1 : count;
}

void tune_score_own(struct tune_score *m, const char *name, bool right_or_wrong)
{
    *m = (struct tune_score){.name = name, .unit = "", .kind = TUNE_SCORE_MEAN, .better = 1, .right_or_wrong = right_or_wrong, .sums = 2,
                             .value = mean, .what = "a number for each row"};
}

int tune_score_width(const struct tune_score *m, int labels)
{
    return m->sums ? m->sums : 3 * labels;
}

int tune_score_of(const struct tune_score *m, const struct tune_score_row *row, double *sums)
{
    if ((m->needs & TUNE_NEEDS_REFERENCE) && row->reference_count < 1)
        return tune_error_set("%s compares an answer with a reference, and the row has none", m->name);
    if ((m->needs & TUNE_NEEDS_LABELS) && !row->labels)
        return tune_error_set("%s needs a closed set of labels, and there is none", m->name);
    return m->row(row, sums);
}

double tune_score_value(const struct tune_score *m, const double *sums, int labels)
{
    return m->value(sums, labels);
}

double tune_score_row_value(const struct tune_score *m, const double *sums, int labels)
{
    return m->row == tune_bleu ? tune_bleu_row_value(sums) : m->value(sums, labels);
}
