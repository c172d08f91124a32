/* dataset.h - rows of text as training examples. Rows are tokenized when they are read.
 *
 * Opening a dataset finds where its rows begin. tune_dataset_get turns row i into tokens and a
 * mask. The file is mapped and never held in memory as a whole. A dataset of your own is a callback
 * (tune_dataset_from).
 *
 *     struct tune_dataset_options options = {.max_length = 512};
 *     struct tune_dataset *d = tune_dataset_open("my.jsonl", &options, tok);
 *     struct tune_example x = {0};
 *     tune_dataset_get(d, 0, &x);
 *     tune_example_free(&x); */
#ifndef TUNE_DATASET_H
#define TUNE_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;
struct tune_tokenizer;

/* The tokens of one row. Start with a zeroed one; each call reuses its buffers. */
struct tune_example {
    int32_t *ids;       /* [count] token ids */
    /* [count]; 1: the loss counts this token. The first token of a row is never 1, since nothing
     * predicts it. */
    uint8_t *trained;
    int64_t count, room;
    int64_t full_count; /* tokens before the cut to max_length */
    bool bad;           /* the row is unreadable and bad rows are skipped: count is 0 */
    bool cut_away;      /* the cut to max_length removed all trained tokens of the row */
    uint64_t hash;      /* tune_dataset_row_hash of the row */
};
void tune_example_free(struct tune_example *x);
/* tune_example_reserve - make room for count tokens in ids and trained. Their contents may be lost.
 * 0, or -1 with an error: no memory. */
int tune_example_reserve(struct tune_example *x, int64_t count);
/* tune_example_has_label - true if a token is trained. Loaders leave out rows without any. */
bool tune_example_has_label(const struct tune_example *x);

enum tune_dataset_format {
    TUNE_DATASET_BY_NAME,
    TUNE_DATASET_JSONL,
    TUNE_DATASET_JSON,
    TUNE_DATASET_TEXT,
    TUNE_DATASET_CSV,
    TUNE_DATASET_TSV
};

/* Special tokens. A row gets those that the tokenizer's template adds, such as beginning of
 * sequence. A row whose text already begins with that token does not get it twice.
 *
 * In rows of plain text, the spelling of a special token becomes that token, as in Hugging Face.
 * Only append_token adds a token at the end. In the other formats the columns are plain text, even
 * if they spell a special token, and end_token ends an answer. A conversation has only the special
 * tokens that its chat template writes, as in transformers.
 *
 * Formats of rows and their columns (docs/data-formats.md):
 *     text               text, or another field
 *     alpaca             instruction, output, and input, which may be empty
 *     instruct           input, output
 *     prompt-completion  prompt, completion: strings or lists of messages
 *     messages           messages
 *     sharegpt           conversations
 *
 * A prompt template (prompt_template.h) reads any columns. */
struct tune_dataset_options {
    /* BY_NAME: .jsonl, .json, .csv, .tsv, .txt; other names: JSONL if '{' is first, else text */
    enum tune_dataset_format format;
    const char *text_field;          /* NULL: found from the first row: "text", else "output", "content", else the only
                                        string field; otherwise an error that lists the fields */
    /* NULL: train on all. Else train on tokens at or after its first occurrence; without it a row
     * is bad */
    const char *response_template;
    const char *append_token;        /* NULL: none, or end_token. Spelling of a token put after the text (not after an empty one)
                                        and trained, "<|endoftext|>" for one: the model learns where texts end. "none": none */
    const char *end_token;           /* NULL: unknown. Spelling of the model's own, which stands for append_token NULL behind
                                        answers: of alpaca, prompt and completion as strings, prompt templates that end in one */
    const char *row_format;          /* NULL: text. "auto": recognised from the columns of the first rows; or a name
                                        of those above */
    const char *columns;             /* NULL, or "prompt=question,completion=answer": the file's names for the format's columns */
    const char *prompt_template;     /* NULL, or a file or name as tune_prompt_template_open takes it, instead of a format */
    const char *train_on;            /* NULL: completion, of messages and sharegpt assistant, of text all (completion with a
                                        response_template). completion, assistant, last (of the assistant's messages), all */
    const char *chat_template;       /* NULL: the model's own; else a file or name as tune_chat_template_open takes it. Opened
                                        only for rows that are conversations, an error with others */
    const char *model_folder;        /* NULL, or where the model's chat template and the special tokens it names lie */
    int max_length;                  /* tokens, at least 1; longer rows are cut on the right and counted */
    bool skip_bad_rows;              /* a row that cannot be read is given out as bad and counted, not an error */
};

#define TUNE_ROW_LIMIT ((size_t)16 << 20) /* bytes; a longer row is a bad row */

/* tune_dataset_open - map the file and index its rows. options and their strings are read, not
 * kept. tok must outlive the dataset.
 *
 * NULL with an error: no file, no rows, a JSON file that is no array, an unknown field or column.
 * NULL also if append_token is unknown or options contradict each other. Formats other than text
 * need a row with a token to train on: a set of at most 1,000 rows without any is an error. In a
 * larger set whose first 1,000 rows have none, tune_dataset_warning says so. */
struct tune_dataset *tune_dataset_open(const char *path, const struct tune_dataset_options *options,
                                       struct tune_tokenizer *tok);

/* tune_dataset_from - a dataset of the caller's own, with count rows (1 to 2^52).
 *
 * get fills x for row i (0 <= i < count) and returns 0, or -1 after tune_error_set. It calls
 * tune_example_reserve, then sets ids, trained and count. To leave the row out, it sets x->bad.
 * Rows longer than max_length are cut and counted as in a file.
 *
 * A helper thread may call get. A loader makes one call at a time; several threads that use the
 * dataset call it at the same time. */
struct tune_dataset *tune_dataset_from(int64_t count,
                                       int (*get)(void *context, int64_t row,
                                                  struct tune_example *x),
                                       void *context, int max_length);
void tune_dataset_free(struct tune_dataset *d);

int64_t tune_dataset_rows(const struct tune_dataset *d);

/* tune_dataset_get - read a row's tokens into *x, which is emptied first. Any number of threads may
 * call it.
 *
 * -1 with file, line and reason: the row is bad. It is no JSON object or record, or it is too long.
 * A column is missing, double or of the wrong type. UTF-8 is invalid, or a surrogate escape stands
 * alone. A conversation breaks the rules (conversation.h), or its chat template refuses it. */
int tune_dataset_get(struct tune_dataset *d, int64_t row, struct tune_example *x);

/* Counts of rows so far, one for each tune_dataset_get. */
struct tune_dataset_counts {
    int64_t rows, truncated, bad;
    int64_t truncated_away; /* rows whose trained tokens were all cut away */
    int64_t unlabelled;     /* rows without a trained token before any cut */
};
struct tune_dataset_counts tune_dataset_counts(const struct tune_dataset *d);

/* tune_dataset_text_field - the field in use; NULL for text files, callbacks and formats of several
 * columns.
 * tune_dataset_about - the format in words, such as "alpaca (recognised), columns instruction,
 * output, input; trained on completion; ..."; NULL for rows of text.
 * tune_dataset_warning - a warning about the template, such as special tokens that the tokenizer
 * lacks; NULL: none.
 * tune_dataset_tokenizer - the tokenizer it was opened with; NULL for callbacks.
 * tune_dataset_prompt_hash, tune_dataset_chat_hash - hash of the prompt or chat template; 0: none.
 * tune_dataset_row_bytes - estimated memory to read the longest row, in bytes, without its tokens;
 * 0 if small, and for callbacks.
 * tune_dataset_source - write "my.jsonl:17" to text, for messages. TUNE_DATASET_SOURCE_SIZE bytes
 * are always enough; less cuts the text.
 * tune_dataset_fingerprint - hash of the file's content (tune_file_fingerprint); 0 for callbacks.
 * tune_dataset_hash - the fingerprint combined with the hashes of the templates.
 * tune_dataset_row_hash - hash of a row's bytes, its number, and the header of CSV; 0 for
 * callbacks.
 * tune_dataset_stamp - the file's size and modification time when opened; NULL for callbacks.
 * tune_dataset_unchanged - 0, or -1 with an error: size or modification time changed since opening.
 * tune_dataset_whole - 0, or -1 with an error: the file was truncated since opening. Call it before
 * tune_dataset_row_hash. */
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

/* tune_dataset_held_out - true if the row is held out when `share` of the rows is trained on. It is
 * a hash of (seed, row), so appending rows does not change it. */
bool tune_dataset_held_out(uint64_t seed, int64_t row, double share);

/* tune_get_dataset - open the dataset of --dataset. It reads --model, --format, --columns,
 * --prompt-template, --chat-template, --train-on, --text-field, --response-template,
 * --append-token, --max-length and --skip-bad-rows. --format auto with --text-field or
 * --response-template means text. NULL with kind USAGE: no --dataset.
 *
 * tune_get_eval_dataset - open the file of --eval-dataset, with the same options. */
struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok);
struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags,
                                           struct tune_tokenizer *tok);

/* tune_dataset_show - print the first n rows to stream, as the model sees them. They are counted
 * like other rows. -1: a bad row, or a write error.
 *
 * In formats other than text, the pieces of a row's text come first, one a line. Each is trained or
 * masked, from the template or from the row. Then it prints one token a line: position, id, trained
 * or masked, and its text. Control characters are escaped. A token that is part of a character is
 * shown as the vocabulary spells it. A mark shows the cut to max_length. */
int tune_dataset_show(struct tune_dataset *d, struct tune_tokenizer *tok, int n, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
