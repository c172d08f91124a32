/* dataset.h - rows of text as training examples, tokenised when they are read.
 *
 * A dataset knows how many rows it has (one pass that only finds where they begin) and turns row
 * i into tokens and a mask. It never holds the file: rows are read from a mapping. A set of
 * the caller's own is two callbacks (tune_dataset_from). Example:
 *
 *     struct tune_dataset *d = tune_dataset_open("my.jsonl", &(struct tune_dataset_options){.max_length = 512}, tok);
 *     struct tune_example x = {0};
 *     tune_dataset_get(d, 0, &x);
 *     tune_example_free(&x); */
#ifndef TUNE_DATASET_H
#define TUNE_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "files/file.h"

#include "datasets/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;
struct tune_tokenizer;

/* One row as the model sees it; reused from call to call; start with a zeroed one. */
struct tune_example {
    int32_t *ids;       /* [count] */
    uint8_t *trained;   /* [count]; 1: the loss of predicting this token counts. Never 1 for the first token of a row:
                           nothing predicts it. */
    int64_t count, room;
    int64_t full_count; /* before the cut to max_length */
    bool bad;           /* the row could not be read and bad rows are skipped: count is 0 */
    bool cut_away;      /* the row had trained tokens, and the cut took all of them */
    uint64_t hash;      /* tune_dataset_row_hash of the row */
};
void tune_example_free(struct tune_example *x);
/* tune_example_reserve - room for at least count tokens in ids and trained; what was in them may be lost. 0, or -1. */
int tune_example_reserve(struct tune_example *x, int64_t count);
/* tune_example_has_label - one of its tokens is trained. Loaders leave out the rows that have none. */
bool tune_example_has_label(const struct tune_example *x);

#define TUNE_ROW_LIMIT ((size_t)16 << 20) /* bytes; a longer row is a bad row */

/* tune_dataset_open - map the file and index its rows. options and their strings are read, not kept; tok is borrowed
 * until free. NULL with an error: no file, no rows, a JSON file that is no array, no such field, column or append_token, options
 * that do not go together; in formats other than text also a set of at most 1,000 rows without a token to train on in any. In
 * a larger set whose first 1,000 rows have none, tune_dataset_warning says so. */
struct tune_dataset *tune_dataset_open(const char *path, const struct tune_dataset_options *options,
                                       struct tune_tokenizer *tok);

/* tune_dataset_from - a set of the caller's own: count rows (1 to 2^52); get fills x for row i (0 <= i < count) and returns
 * 0, or -1 after tune_error_set. It calls tune_example_reserve, then sets ids, trained and count; or x->bad, to leave the row
 * out. Rows longer than max_length are cut and counted like a file's. get may be called from a helper thread, and from
 * several at once where the caller uses the set from several (a loader makes one call at a time). */
struct tune_dataset *tune_dataset_from(int64_t count, int (*get)(void *context, int64_t row, struct tune_example *x),
                                       void *context, int max_length);
void tune_dataset_free(struct tune_dataset *d);

int64_t tune_dataset_rows(const struct tune_dataset *d);

/* tune_dataset_get - row's tokens into *x (emptied first). Any number of threads. -1: the row is bad (file, line, what):
 * no JSON object or record, a column missing, twice or of another type, invalid UTF-8, a lone surrogate escape, too long, a
 * conversation that breaks the rules (conversation.h) or that its chat template refuses. */
int tune_dataset_get(struct tune_dataset *d, int64_t row, struct tune_example *x);

/* What was met so far, counted once per tune_dataset_get. */
struct tune_dataset_counts {
    int64_t rows, truncated, bad;
    int64_t truncated_away; /* had trained tokens, lost all of them to the cut */
    int64_t unlabelled;     /* had no trained token before any cut */
};
struct tune_dataset_counts tune_dataset_counts(const struct tune_dataset *d);

/* tune_dataset_text_field - the field in use, NULL for text files, callbacks and formats of several columns.
 * tune_dataset_about - the format in words: "alpaca (recognised), columns instruction, output, input; trained on completion; ...";
 * NULL for rows of text.
 * tune_dataset_warning - what the user should know of the template, of special tokens in it that the tokenizer does not have;
 * NULL: nothing.
 * tune_dataset_tokenizer - the one it was opened with; NULL for callbacks.
 * tune_dataset_prompt_hash, tune_dataset_chat_hash - of the content of the prompt template, of the chat template; 0: there is none.
 * tune_dataset_row_bytes - about what reading the longest row takes of memory beside its tokens that are kept; 0 where that is
 * little, and for callbacks.
 * tune_dataset_source - "my.jsonl:17" for messages, into text (cut to size, TUNE_DATASET_SOURCE_SIZE fits any).
 * tune_dataset_fingerprint - hash of the content (tune_file_fingerprint); 0 for callbacks.
 * tune_dataset_hash - the fingerprint, and of a set with templates theirs with it: what rows become by another template is
 * another set.
 * tune_dataset_row_hash - hash of a row's bytes in the file, of its number, and of the first record
 * of CSV; 0 for callbacks.
 * tune_dataset_stamp - the file's size and time of change when it was opened; NULL for callbacks.
 * tune_dataset_unchanged - 0, or -1: the file has another size or time of change now than when it was opened.
 * tune_dataset_whole - 0, or -1: the file was cut short since it was opened. Asked before tune_dataset_row_hash. */
const char *tune_dataset_text_field(const struct tune_dataset *d);
const char *tune_dataset_about(const struct tune_dataset *d);
const char *tune_dataset_warning(const struct tune_dataset *d);
const struct tune_tokenizer *tune_dataset_tokenizer(const struct tune_dataset *d);
int64_t tune_dataset_row_bytes(const struct tune_dataset *d);
uint64_t tune_dataset_prompt_hash(const struct tune_dataset *d);
uint64_t tune_dataset_chat_hash(const struct tune_dataset *d);
#define TUNE_DATASET_SOURCE_SIZE 4160
const char *tune_dataset_source(const struct tune_dataset *d, int64_t row, char *text, int size);
uint64_t tune_dataset_fingerprint(const struct tune_dataset *d);
uint64_t tune_dataset_hash(const struct tune_dataset *d);
uint64_t tune_dataset_row_hash(const struct tune_dataset *d, int64_t row);
const struct tune_file_stamp *tune_dataset_stamp(const struct tune_dataset *d);
int tune_dataset_unchanged(const struct tune_dataset *d);
int tune_dataset_whole(const struct tune_dataset *d);

/* tune_dataset_held_out - whether (seed, row) falls to the held-out part when share of the rows is trained on: a hash of the two,
 * so it does not change when rows are appended. */
bool tune_dataset_held_out(uint64_t seed, int64_t row, double share);

/* tune_get_dataset - by --model, --dataset, --format, --columns, --prompt-template, --chat-template, --train-on, --text-field,
 * --response-template, --append-token, --max-length, --skip-bad-rows. --format auto with --text-field or --response-template is
 * text.
 * No --dataset is an error of kind USAGE. tune_get_eval_dataset - the file of --eval-dataset, by the same options. */
struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok);
struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok);

/* tune_dataset_show - the first n rows as the model sees them onto stream. In formats other than text first the pieces of a
 * row's text, one a line: trained or masked, whether the template or the row says it. Then one token a line: position, id,
 * trained or masked, the text it stands for (control characters escaped; the vocabulary's own spelling where a token is part
 * of a character), and where the cut to max_length fell. These rows are counted like any others. -1: a bad row, or the stream
 * cannot be written. */
int tune_dataset_show(struct tune_dataset *d, struct tune_tokenizer *tok, int n, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
