/* scores.h - how good answers are: one table of metrics over texts and numbers, without a model.
 *
 * A metric here is a `struct tune_score`; runs/metrics.h has the numbers that a run logs. Each
 * turns a row into a few sums, and a value is made of the sums of all rows added up. So a mean, a
 * corpus score such as BLEU and perplexity are all computed, resampled and compared in one way
 * (estimates.h). Example:
 *
 *     const struct tune_score *m = tune_score_find("rouge_l");
 *     double sums[TUNE_SCORE_SUMS];
 *     struct tune_text gold = {"The cat sat.", 12};
 *     struct tune_score_row row = {.answer = {"A cat sat.", 10}, .references = &gold,
 *                                   .reference_count = 1};
 *     tune_score_of(m, &row, sums);
 *     printf("%g\n", tune_score_value(m, sums, 0));            0.666667
 *
 * Texts are UTF-8. A byte that is none counts as "?", except in exact_match_raw.
 *
 * Rules, and where they come from:
 *
 *     loss, perplexity    sum of -log p of the reference's tokens / their number; exp of it
 *     bits_per_byte       sum of -log p / (bytes of the references * ln 2), over tokens that spell
 *                         text: special tokens, such as the end token, count in neither
 *     exact_match_raw     1 if the answer's bytes are a reference's
 *     exact_match_squad   the same after SQuAD's normalisation: lower case, without ASCII
 *                         punctuation and the words a, an, the; white space becomes one space
 *     token_f1            F1 of the words left by that normalisation (SQuAD 1.1). An empty text
 *                         matches an empty one only (SQuAD 2.0). The best reference counts
 *     rouge_1, _2, _l, _lsum   F1 by rouge-score 0.1.2, without stemming: words of a-z and 0-9 in
 *                         lower case; lsum takes lines as sentences. The best reference counts
 *     bleu                sacreBLEU 2.6.0: tokenizer 13a, 4-grams, exp smoothing, of the corpus.
 *                         Of one row: with effective order
 *     chrf                sacreBLEU 2.6.0: 6-grams of characters without spaces, beta 2
 *     accuracy, macro_f1  of a closed set of labels. Label and answer are compared in lower case,
 *                         without white space and ASCII punctuation at their ends. macro_f1 is
 *                         the mean over the labels that some answer or reference is (scikit-learn)
 *     last_number         1 if the last number of the answer is that of a reference (GSM8K). "$",
 *                         commas and a full stop at its end do not count; 18 equals 18.00
 *     json_valid          1 if the answer is one JSON value by RFC 8259
 *     ended               1 if the answer ended by itself, 0 if a limit cut it
 *     answer_tokens, answer_characters   length of the answer
 *     pair_accuracy       1 if the chosen answer is more likely than the rejected one: the sum of
 *                         log p over its tokens is greater, end tokens too
 *     pair_accuracy_norm  the same by log p / tokens, as SimPO and TRL's average_log_prob have it
 *
 * Lower case is Python's, with Unicode 14. Of its rule for a final sigma, only letters count. */
#ifndef TUNE_SCORES_H
#define TUNE_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/json.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_SCORE_LABELS = 100, TUNE_SCORE_SUMS = 3 * TUNE_SCORE_LABELS };

enum tune_score_kind {
    TUNE_SCORE_MEAN,   /* a number for each row; the value is their mean */
    TUNE_SCORE_CORPUS, /* the value is a function of sums over all rows */
    TUNE_SCORE_PAIR,   /* a mean over preference pairs */
};

/* Bits: a metric needs this of a row. */
enum {
    TUNE_NEEDS_ANSWER = 1,
    TUNE_NEEDS_REFERENCE = 2,
    TUNE_NEEDS_LABELS = 4,
    TUNE_NEEDS_LOSS = 8,  /* loss, text_loss, loss_tokens, loss_bytes */
    TUNE_NEEDS_PAIR = 16, /* chosen, rejected, chosen_tokens, rejected_tokens */
};

struct tune_score_labels;

/* A row, as metrics see it. Texts are borrowed for the call. */
struct tune_score_row {
    struct tune_text answer;
    const struct tune_text *references; /* [reference_count] */
    int reference_count;
    const struct tune_score_labels *labels; /* NULL: there is no closed set */
    double loss;                        /* sum of -log p of the reference's tokens, in nats */
    double text_loss;                   /* the same of those that are no special tokens */
    int64_t loss_tokens, loss_bytes;    /* tokens and bytes that they are over */
    double chosen, rejected;            /* log p of both answers of a pair */
    int64_t chosen_tokens, rejected_tokens; /* tokens that they are over */
    int64_t answer_tokens;
    bool ended;                         /* by an end token or a stop text */
};

struct tune_score {
    const char *name, *unit; /* unit: "0-1", "0-100", "nats", "bits", "tokens", "characters", "" */
    enum tune_score_kind kind;
    int needs;               /* bits */
    int better;              /* 1: higher values are better; -1: lower ones; 0: neither */
    bool right_or_wrong;     /* a row's value is 1 or 0 */
    int sums;                /* numbers of a row; 0: three for each label */
    int (*row)(const struct tune_score_row *row, double *sums);
    double (*value)(const double *sums, int labels);
    const char *what;        /* what it measures, in a line */
};

/* tune_scores - the table; *count: how many.
 * tune_score_find - the metric of that name. NULL with an error of kind USAGE that names the
 * nearest one.
 * tune_score_list - the metrics that a list with commas names, each once, in its order. Names of
 * groups stand for their metrics: exact_match (both), rouge (all four), losses (all three), pairs
 * (both), usual (losses, exact_match, token_f1, ended, answer_tokens). found [most]. Returns how
 * many; -1 with an error of kind USAGE: an unknown name, none, or more than most. */
const struct tune_score *tune_scores(int *count);
const struct tune_score *tune_score_find(const char *name);
int tune_score_list(const char *names, const struct tune_score **found, int most);

/* tune_score_own - make m a metric of one's own: the mean of a number for each row, of which more
 * is better. Sums of a row are the number and 1; tune_score_of cannot make them. name is
 * borrowed. */
void tune_score_own(struct tune_score *m, const char *name, bool right_or_wrong);

/* tune_score_width - how many sums the metric has, with so many labels.
 * tune_score_of - set a row's sums [width]. -1 with an error: the row lacks what the metric
 * needs, a reference is no label, a loss is not finite, or no memory.
 * tune_score_value - the value of sums [width], of one row or added up over rows. labels: their
 * number; 0: none. NaN: the sums are of no row, or of no token or byte.
 * tune_score_row_value - the same of one row. bleu then has sacreBLEU's effective order: n-grams
 * longer than the answer do not count. Elsewhere an answer of three words has a bleu of 0. */
int tune_score_width(const struct tune_score *m, int labels);
int tune_score_of(const struct tune_score *m, const struct tune_score_row *row, double *sums);
double tune_score_value(const struct tune_score *m, const double *sums, int labels);
double tune_score_row_value(const struct tune_score *m, const double *sums, int labels);

/* tune_score_labels_new - a closed set of labels, empty. NULL with an error: no memory.
 * tune_score_labels_add - add a label: 1. 0: one that compares equal is there. -1 with an error of
 * kind USAGE: more than TUNE_SCORE_LABELS, or one without a letter or digit.
 * tune_score_labels_free - free it; NULL is fine.
 * tune_score_labels_count - how many.
 * tune_score_label - a label's text, as given.
 * tune_score_label_of - the place of the label that this text is; -1: it is none. -2 with an
 * error: no memory. */
struct tune_score_labels *tune_score_labels_new(void);
int tune_score_labels_add(struct tune_score_labels *labels, struct tune_text text);
void tune_score_labels_free(struct tune_score_labels *labels);
int tune_score_labels_count(const struct tune_score_labels *labels);
const char *tune_score_label(const struct tune_score_labels *labels, int at);
int tune_score_label_of(const struct tune_score_labels *labels, struct tune_text text);

/* tune_score_signature - how sacreBLEU would describe bleu or chrf, with tune.c as the version:
 * "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tune.c-0.1". references: how many each row
 * has; 0: rows differ. Other metrics: "". Returns text, of size bytes. */
const char *tune_score_signature(const struct tune_score *m, int references, char *text,
                                  size_t size);

#ifdef __cplusplus
}
#endif
#endif
