/* scorecard_parts.h - struct tune_scorecard. Private to this folder. */
#ifndef TUNE_SCORECARD_PARTS_H
#define TUNE_SCORECARD_PARTS_H

#include "datasets/dataset.h"
#include "evaluators/metric_program.h"
#include "evaluators/scorecard.h"
#include "metrics/estimates.h"
#include "metrics/scores.h"

enum { TUNE_CARD_METRICS = 48, TUNE_CARD_SIDES = 2, TUNE_CARD_PARTS = 2 };

/* The loss of a row's reference, or of an answer of a pair. */
struct tune_card_loss {
    double sum, text;      /* -log p of its tokens; of those that are no special tokens */
    int64_t tokens, bytes; /* special tokens have no byte */
};

struct cJSON;

struct tune_scorecard {
    struct tune_prompts *prompts;
    struct tune_dataset *data; /* the same rows, with their answers */
    bool unanswered;           /* rows get no answer, and data is that of prompts */
    int parts;                 /* texts of a row: 2 are a pair, the chosen answer first */
    struct tune_tokenizer *tok;
    const struct tune_score *metric[TUNE_CARD_METRICS];
    int metrics, sides, label_count;
    struct tune_score_labels *labels;
    const char *names[TUNE_CARD_SIDES]; /* of the models, in tables */
    const char *model, *other;          /* the models; other NULL: none, or the base. Borrowed */
    struct cJSON *about;                /* what is judged, and how, for the report */
    const char *folder, *path;          /* for the report; of the rows. Borrowed */
    uint64_t seed;
    int64_t rows, done;        /* below, a row is its turn; tune_prompts_row has its number */
    double *sums[TUNE_CARD_SIDES][TUNE_CARD_METRICS]; /* [rows][width] */
    struct tune_metric_program *program;  /* NULL: none */
    struct tune_program_metrics own;      /* what it said; the last metrics are these */
    /* [rows] places of labels; NULL: no labels. Of several true ones, the answer is the truth */
    int *answered[TUNE_CARD_SIDES], *truth[TUNE_CARD_SIDES];
    const volatile int *stop_signal;
    int64_t cut;               /* rows whose references were cut to the context */
    int64_t empty, several;    /* rows whose reference is empty; that have several */
    int64_t unlabelled;        /* rows with a text that has no token to predict */
    int references;            /* of each row; 0: rows differ */
    int64_t trained;           /* rows left out that the model was trained on; -1: unknown */
    /* the batch at hand */
    struct tune_example row;
    int32_t *ids, *labels_of, *lengths; /* [room], [room], [batch,parts] */
    int64_t *numbers;          /* [batch,parts] of rows */
    int64_t room;
    struct tune_card_loss *loss[TUNE_CARD_SIDES]; /* [batch,parts] */
    int texts, T;              /* rows * parts; tokens of the longest */
};

/* A metric over all rows. */
struct tune_verdict {
    const struct tune_score *metric;
    struct tune_estimate side[TUNE_CARD_SIDES];
    struct tune_comparison compared;
};

/* tune_scorecard_new - memory for the card's rows, and for batches of so many. -1 with an error.
 * tune_scorecard_write - write of struct tune_answer_lines.
 * tune_scorecard_read - read of struct tune_answer_lines.
 * tune_scorecard_add_own - add the program's metrics to the folder's lines of rows, in place of
 * earlier ones.
 * tune_scorecard_svg - draw verdicts [metrics] into the folder.
 * tune_scorecard_confusion - counts [labels][labels + 1] of a side; the caller frees them. NULL
 * with an error: no memory.
 * tune_scorecard_confusions - draw them into the folder, and write them as CSV. */
int tune_scorecard_new(struct tune_scorecard *card, int batch);
int tune_scorecard_write(void *card, const struct tune_answers *answers, int batch_row, int64_t row,
                         struct cJSON *line);
int tune_scorecard_read(void *card, int64_t row, const struct cJSON *line);
int tune_scorecard_add_own(const struct tune_scorecard *card);
int tune_scorecard_svg(const struct tune_scorecard *card, const struct tune_verdict *v);
int64_t *tune_scorecard_confusion(const struct tune_scorecard *card, int side);
int tune_scorecard_confusions(const struct tune_scorecard *card);

#endif
