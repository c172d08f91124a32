/* survey.h - look at the rows before training on them. */
#ifndef TUNE_DATASETS_SURVEY_H
#define TUNE_DATASETS_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_loader;

/* A summary of the rows. The counts are of the rows looked at. */
struct tune_survey {
    int64_t rows, of;      /* rows looked at, and rows of the set */
    int64_t bad;           /* cannot be read */
    int64_t cut, cut_away; /* longer than max_length; those of them that lost all labels */
    int64_t empty;         /* nothing to train on, cut or not */
    int64_t unanswered;    /* train on an end token alone: an empty answer */
    int64_t unprompted;    /* preferences without a prompt */
    int64_t labelled[2];   /* single answers by their label: 0 and below, above 0 */
    int64_t joined[2];     /* a token joins the prompt and the answer; a header and the answer */
    int64_t left_out;      /* the template leaves out a part of the assistant's text */
    double left_out_share; /* of that text in these rows */
    int64_t adapted[8];    /* rows by enum tune_adapted (dataset.h) */
    int64_t doubled;       /* a copy of an earlier row, by tune_dataset_row_hash; 0 for callbacks */
    int64_t unfilled;      /* hold a placeholder, such as {{name}} */
    int64_t longest;       /* tokens of the longest sequence before the cut */
    double tokens;         /* mean tokens of a row that is trained on */
    int32_t *lengths;      /* [trained] tokens of these rows, ascending; free: tune_survey_free */
    int64_t trained;
    int32_t *uncut;        /* [rows - bad] tokens of the longest sequence of a row, before the cut,
                            * ascending; free: tune_survey_free */
    bool plain;            /* rows are plain text, which `chunk` parts */
    char joined_token[64]; /* the first one; NULs and such are blanks */
    char placeholder[64];  /* the first one */
    char why[256];         /* why the first bad row cannot be read */
};

/* tune_survey - look at all rows of a set of at most 20,000, else at 1,000: one drawn from each
 * thousandth. With mix, a loader's shares of the joined sets, rows are those of the first epoch;
 * mix NULL: all rows. The set's counts stay as they are. A bad row is no error. -1 with an error:
 * no memory, or the file was cut short.
 * tune_survey_free - free its arrays.
 * tune_survey_length - the least length that takes this share of the rows whole; 0: no rows.
 * tune_survey_whole - the share of the rows that this length takes whole.
 * tune_survey_padded - mean tokens of a row when rows are padded to the longest of `rows` random
 * ones. */
int tune_survey(struct tune_survey *s, struct tune_dataset *d,
                const struct tune_loader *mix);
void tune_survey_free(struct tune_survey *s);
int64_t tune_survey_length(const struct tune_survey *s, double share);
double tune_survey_whole(const struct tune_survey *s, int64_t length);
double tune_survey_padded(const struct tune_survey *s, int rows);

#ifdef __cplusplus
}
#endif
#endif
