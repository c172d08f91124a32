/* dataset_state.h - the members of a data set. Private to this folder.
 *
 *     dataset.c        open a file; from a row to tokens
 *     joined.c         several sets as one
 *     dataset_facts.c  what is known of a set
 *     dataset_columns.c  columns that are not trained on
 *     dataset_asked.c  prompts as text, and expected answers
 *     dataset_about.c  a set in words
 *     row_hash.c       what a row is known by
 *     dataset_show.c   rows as the model sees them */
#ifndef TUNE_DATASETS_DATASET_STATE_H
#define TUNE_DATASETS_DATASET_STATE_H

#include <pthread.h>

#include "datasets/chunks.h"
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "datasets/reasons.h"
#include "datasets/rows.h"
#include "datasets/text_rows.h"

struct tune_dataset {
    struct tune_rows rows; /* of a file; else zeroed */
    struct tune_dataset **sets; /* [set_count] of a joined set; else NULL */
    int64_t *begins;            /* [set_count] the first row of each */
    int set_count;
    int (*get)(void *context, int64_t row, struct tune_example *x);
    void *context;
    int64_t count;
    struct tune_tokenizer *tok;
    struct tune_columns columns; /* if the rows have columns */
    struct tune_format format;
    bool formatted;              /* true: rows have a format; false: a row is one text */
    bool text_named;             /* the caller said which column is the text */
    char about[1024], warning[512], rows_are[160];
    struct tune_text_rows text;
    struct tune_chunks chunks; /* count 0: a row of the file is a row of the set */
    char *response;
    size_t response_size;
    bool parted;       /* each of a row's sequences in the file is a row of the set */
    int32_t append_id; /* -1: none */
    bool append_always; /* also without an open answer */
    int max_length;
    bool skip_bad_rows;
    uint64_t fingerprint;
    struct tune_file_stamp stamp; /* when the file was opened */
    pthread_mutex_t lock; /* protects the members below */
    struct tune_dataset_counts counts;
    size_t touched;
    struct tune_reasons reasons; /* bad rows that were skipped */
};

/* tune_dataset_make - a set without rows. NULL with an error.
 * tune_dataset_describe - set about and rows_are of an opened set. limit: as in the options.
 * tune_joined_get - tune_dataset_get for a joined set. *lost: the cut took all trained tokens.
 * tune_rows_hash - tune_dataset_row_hash for a row of a file.
 * tune_dataset_file_row - the row of the file that holds a row of the set. *side says which of its
 * sequences that is; 0 where the row is all of it.
 * tune_side_hash - the hash of such a row by that of the file's row. */
struct tune_dataset *tune_dataset_make(int max_length);
void tune_dataset_describe(struct tune_dataset *d, int64_t limit);
int tune_joined_get(struct tune_dataset *d, int64_t row, struct tune_example *x, bool *lost);
uint64_t tune_rows_hash(const struct tune_rows *rows, const struct tune_file_row *row);
int64_t tune_dataset_file_row(const struct tune_dataset *d, int64_t row, int *side);
static inline uint64_t tune_side_hash(uint64_t hash, int side)
{
    return side > 0 ? tune_hash64(&side, sizeof side, hash) : hash;
}

#endif
