/* dataset.h - rows of text as training examples, tokenized when they are read.
 *
 * A data set counts its rows in one pass, which only finds where they begin. Then it turns row i
 * into tokens and a mask. The file is mapped, never held in memory. A data set of your own is a
 * callback (tune_dataset_from). Example:
 *
 *     struct tune_dataset_options o = {.max_length = 512};
 *     struct tune_dataset *d = tune_dataset_open("my.jsonl", &o, tok);
 *     struct tune_example x = {0};
 *     tune_dataset_get(d, 0, &x);
 *     tune_example_free(&x); */
#ifndef TUNE_DATASET_H
#define TUNE_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "files/file.h"
#include "files/json.h"

#include "datasets/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;
struct tune_tokenizer;

/* A token may be both the end of a prompt and the beginning of its answer. That of a prompt is not
 * trained. That of a header in a conversation is trained, as in transformers. */
enum tune_joined { TUNE_JOINED_NOT, TUNE_JOINED_PROMPT, TUNE_JOINED_HEADER };

/* Ways in which a conversation is read differently. The last two are left to the template. */
enum tune_adapted {
    TUNE_ADAPTED_TURNS,     /* turns of one speaker are joined */
    TUNE_ADAPTED_GREETING,  /* the assistant's first message is left out */
    TUNE_ADAPTED_SYSTEM,    /* a system's text is moved into a user's message */
    TUNE_ADAPTED_DEVELOPER, /* a developer is read as a system */
    TUNE_ADAPTED_KEYS,      /* keys or names of roles are those of another format */
    TUNE_ADAPTED_CALLS,     /* a call's arguments are put into the other form */
    TUNE_ADAPTED_ORDER,     /* an order of turns that breaks a rule, and that the template takes */
    TUNE_ADAPTED_WRITTEN,   /* a developer that the template takes */
    TUNE_ADAPTED_KINDS
};

/* One row as the model sees it. Start with a zeroed one and reuse it from call to call. */
struct tune_example {
    int32_t *ids;       /* [count] */
    /* [count]; 1: this token is trained. 0 for a row's first token, which nothing predicts. */
    uint8_t *trained;
    int64_t count, room;
    /* Labelled sequences of the row, one after the other in ids. 0: it is one, without a label. */
    int sequences, sequence_room;
    int64_t *ends;      /* [sequences]; where each ends in ids: one ends where the next begins */
    double *labels;     /* [sequences]; what each is: 1 chosen or wanted, 0 rejected; or a score */
    int64_t full_count; /* tokens before the cut to max_length */
    int64_t longest;    /* of these, in the longest sequence */
    bool empty_answer;  /* a sequence trains on nothing but its end token */
    enum tune_joined joined;
    char joined_token[32]; /* the text of the first such token */
    /* bytes of the assistant's texts, and those that the chat template leaves out */
    size_t said, left_out;
    unsigned adapted;   /* a bit for each enum tune_adapted */
    bool no_prompt;     /* of preferences: nothing stands before an answer */
    bool answer_first;  /* a sequence's first token would be trained, if something predicted it */
    bool bad;           /* the row cannot be read, and bad rows are skipped; count is 0 */
    bool cut_away;      /* the cut took all trained tokens of the row */
    uint64_t hash;      /* tune_dataset_row_hash of the row */
};

/* tune_example_reserve - make room for count tokens in ids and trained. Their contents may be lost.
 * -1 with an error: no memory.
 * tune_example_end - the tokens up to count that belong to no sequence yet become one with this
 * label. -1 with an error: no memory.
 * tune_example_free - free the arrays of x. */
int tune_example_reserve(struct tune_example *x, int64_t count);
int tune_example_end(struct tune_example *x, double label);
void tune_example_free(struct tune_example *x);

/* tune_example_parts - number of sequences, at least 1.
 * tune_example_part - where the i-th begins in ids and trained, and in *size its tokens.
 * tune_example_has_label - whether a token is trained; with several sequences, whether one is in
 * each. Loaders leave out other rows. */
static inline int tune_example_parts(const struct tune_example *x)
{
    return x->sequences > 0 ? x->sequences : 1;
}
static inline int64_t tune_example_part(const struct tune_example *x, int i, int64_t *size)
{
    int64_t begin = i > 0 ? x->ends[i - 1] : 0;
    *size = (x->sequences > 0 ? x->ends[i] : x->count) - begin;
    return begin;
}
bool tune_example_has_label(const struct tune_example *x);

#define TUNE_ROW_LIMIT ((size_t)16 << 20) /* longest row, in bytes; a longer one is bad */

/* tune_dataset_open - map a file and index its rows. A folder means its split train, and
 * FOLDER/test the split test (docs/data-formats.md). options and strings are read now; tok must
 * outlive it. NULL with an error: no file, several splits, a damaged file, no rows, or a JSON file
 * without an array. Also an error: an unknown column or append_token, or options that exclude each
 * other. In formats other than text also: at most 1,000 rows, none of which has a token to train
 * on. For a larger set tune_dataset_warning says so.
 * tune_dataset_open_text - the same for rows in memory, one JSON object a line. name: for messages.
 * tune_dataset_free - free it; NULL is fine. */
struct tune_dataset *tune_dataset_open(const char *path, const struct tune_dataset_options *options,
                                       struct tune_tokenizer *tok);
struct tune_dataset *tune_dataset_open_text(const char *name, const char *rows, size_t size,
                                            const struct tune_dataset_options *options,
                                            struct tune_tokenizer *tok);

/* tune_dataset_from - a data set of count rows (1 to 2^52) that get makes. get fills x for row i
 * and returns 0, or -1 after tune_error_set. It calls tune_example_reserve and sets ids, trained
 * and count; or it sets x->bad to leave the row out. For a row of labelled sequences it writes one
 * after the other, and calls tune_example_end after each. Longer sequences are cut and counted like
 * a file's.
 * A helper thread may call get. Several threads call it only if you use the set from several; a
 * loader makes one call at a time. */
struct tune_dataset *tune_dataset_from(int64_t count, int (*get)(void *context, int64_t row,
                                                                 struct tune_example *x),
                                       void *context, int max_length);
void tune_dataset_free(struct tune_dataset *d);

/* tune_dataset_rows - number of rows.
 * tune_dataset_get - row's tokens into *x, which is emptied first. Any number of threads may call
 * it. -1 with an error (file, line, reason): the row is bad. It is no JSON object or record, or too
 * long, or no valid UTF-8. Or a column is missing, double or of another type. Or its conversation
 * breaks the rules (conversation.h), or its template refuses it. */
int64_t tune_dataset_rows(const struct tune_dataset *d);
int tune_dataset_get(struct tune_dataset *d, int64_t row, struct tune_example *x);

/* The row's other columns, such as a weight, a source or the expected answer. column: a key of its
 * JSON object, a path into it ("meta.score"), or a column of CSV or Parquet. Any number of threads
 * may call these. Pieces of a text have the columns of their row.
 * tune_dataset_number - a number, true or false (1, 0), or a text that is a number.
 * tune_dataset_text - a text; any other value as the file spells it. The caller frees it.
 * 1. 0: this row lacks the column, or has null or an empty cell; *value stays, *text is NULL. -1
 * with an error: none of the first 100 rows has such a column, or it holds something else, or rows
 * have no columns.
 * Example:
 *     double weight = 1;
 *     MUST(tune_dataset_number(data, tune_batch_row(&batch, b, t), "weight", &weight));
 * tune_dataset_lengths - the tokens of each row, after the cut, into lengths [rows]; 0: a bad row.
 * They are not counted as met. */
int tune_dataset_number(const struct tune_dataset *d, int64_t row, const char *column,
                        double *value);
int tune_dataset_text(const struct tune_dataset *d, int64_t row, const char *column, char **text);
int tune_dataset_lengths(struct tune_dataset *d, int32_t *lengths);

/* A row's question and answers, as texts. */
struct tune_asked {
    struct tune_text prompt;   /* as the model reads it, template and all; data NULL: not known */
    struct tune_text expected; /* the row's own answer; data NULL: it has none */
    struct tune_text *more;    /* [more_count] other answers that are as good */
    int more_count;
    struct tune_text rejected; /* of a pair, whose chosen answer is expected; data NULL: no pair */
};

/* tune_dataset_asked - the text of a row's prompt, and the answer that the row expects, in a set
 * that is opened for its prompts (options.h). The answer is its completion or output; in a
 * conversation, the text of the assistant's message at its end. An empty answer is none, unless
 * options.references is set; a list of answers is none then, either. In a set of pairs: the prompt
 * and both answers, special tokens and all. In a set of plain texts that is not opened for prompts,
 * expected is the text; pieces of long texts have none. -1 with an error: a bad row.
 * tune_asked_free - free the texts. */
int tune_dataset_asked(const struct tune_dataset *d, int64_t row, struct tune_asked *asked);
void tune_asked_free(struct tune_asked *asked);

/* Kinds of rows. They are known by options.row_format, else by the columns of the first rows. */
enum tune_dataset_kind {
    TUNE_ROWS_ANSWERS, /* prompts, mostly with an answer */
    TUNE_ROWS_PAIRS,   /* a chosen and a rejected answer each: options.sequences is 2 for these */
    TUNE_ROWS_TEXTS,   /* plain texts */
    TUNE_ROWS_CHOICES  /* questions with a list of choices and no written answer: not opened */
};

/* tune_dataset_kind - the kind of a file's rows, in *kind. It scans the file as opening does. -1
 * with an error: no file, no rows, or none of the first rows is readable. */
int tune_dataset_kind(const char *path, const struct tune_dataset_options *options,
                      enum tune_dataset_kind *kind);

/* Several sets as one: the rows of the first, then those of the second, and so on.
 * tune_dataset_join - join count sets. The joined set frees them. Facts of it hold for all: its
 * hashes are of all hashes, its stamp has the sum of the sizes and the latest change. NULL with an
 * error: too many, or no memory; the sets are still the caller's.
 * tune_dataset_open_several - tune_dataset_open for files parted by commas: "a.jsonl,b.csv". In
 * options, row_format, text_field, prompt_template, chat_template and train_on are one value for
 * all files, or one for each. Commas part them; semicolons part columns. A path that exists as it
 * is written is one file.
 * tune_dataset_sets - number of joined sets; 1 for any other set.
 * tune_dataset_set - joined set k; of any other set, the set itself.
 * tune_dataset_set_of - the number of the set that has this row, and the row's number in it.
 * tune_dataset_first_part - the first of the rows that a pair was parted into (options.sequences);
 * any other row itself. A loader's part has either all of them or none. */
enum { TUNE_DATASET_SETS = 64 };
struct tune_dataset *tune_dataset_join(struct tune_dataset *const *sets, int count);
struct tune_dataset *tune_dataset_open_several(const char *paths,
                                               const struct tune_dataset_options *options,
                                               struct tune_tokenizer *tok);
int tune_dataset_sets(const struct tune_dataset *d);
struct tune_dataset *tune_dataset_set(struct tune_dataset *d, int k);
int tune_dataset_set_of(const struct tune_dataset *d, int64_t row, int64_t *own);
int64_t tune_dataset_first_part(const struct tune_dataset *d, int64_t row);

/* tune_dataset_counts - what rows were met so far, counted once per tune_dataset_get. */
struct tune_dataset_counts {
    int64_t rows, truncated, bad;
    int64_t truncated_away; /* rows that lost all trained tokens to the cut */
    int64_t unlabelled;     /* rows without a trained token before any cut */
};
struct tune_dataset_counts tune_dataset_counts(const struct tune_dataset *d);

/* tune_dataset_reasons - why the first bad rows that were skipped could not be read: "my.jsonl:1:
 * ...; my.jsonl:4: ...". "" if there are none.
 * tune_dataset_text_field - the column in use; NULL for text files, callbacks and formats of
 * several columns.
 * tune_dataset_about - the format in words: "alpaca (recognised), columns instruction, output,
 * input; trained on completion; ..."; NULL for callbacks.
 * tune_dataset_format - the name of the format, as `format` has it; of joined sets, if all have
 * one. NULL for callbacks and several formats.
 * tune_dataset_rows_are - the kind of its rows: field "text", of columns, paragraphs, documents,
 * pieces, by callbacks.
 * tune_dataset_warning - something the user should know of the template or its special tokens;
 * NULL: nothing.
 * tune_dataset_tokenizer - its tokenizer; NULL for callbacks.
 * tune_dataset_prompt_hash - hash of the prompt template; 0: none.
 * tune_dataset_chat_hash - hash of the chat template; 0: none.
 * tune_dataset_row_bytes - about the memory that reading the longest row takes besides its tokens;
 * 0 if it is little.
 * tune_dataset_path - its file, as it was named; NULL for callbacks and joined sets.
 * tune_dataset_files - the files that a folder's name means, into text: "x/train-0.parquet and 1
 * more". "" for a file, callbacks and joined sets. Returns text.
 * tune_dataset_source - "my.jsonl:17" for messages, into text (cut to size;
 * TUNE_DATASET_SOURCE_SIZE fits any).
 * tune_dataset_fingerprint - hash of the file (tune_file_fingerprint); 0 for callbacks.
 * tune_dataset_file - stamp, and fingerprint if hash is not NULL, of what a path means, without a
 * data set. *hash must begin as 0. -1 with an error.
 * tune_dataset_hash - hash of the file and of the templates, and of the number of rows if they were
 * limited.
 * tune_dataset_stamp - size and time of change of the file when it was opened; NULL for callbacks.
 * tune_dataset_unchanged - 0, or -1 with an error: size or time of change differ now.
 * tune_dataset_whole - 0, or -1 with an error: the file was cut short since. */
const char *tune_dataset_reasons(const struct tune_dataset *d);
const char *tune_dataset_text_field(const struct tune_dataset *d);
const char *tune_dataset_path(const struct tune_dataset *d);
const char *tune_dataset_files(const struct tune_dataset *d, char *text, int size);
const char *tune_dataset_about(const struct tune_dataset *d);
const char *tune_dataset_format(const struct tune_dataset *d);
const char *tune_dataset_rows_are(const struct tune_dataset *d);
const char *tune_dataset_warning(const struct tune_dataset *d);
const struct tune_tokenizer *tune_dataset_tokenizer(const struct tune_dataset *d);
int64_t tune_dataset_row_bytes(const struct tune_dataset *d);
uint64_t tune_dataset_prompt_hash(const struct tune_dataset *d);

/* tune_dataset_chat_template - the Jinja text of the chat template that was chosen for the rows;
 * NULL: none was, or rows are no conversations. Borrowed.
 * tune_dataset_eos_token - the end token that a chat template uses, and that options, not
 * tokenizer_config.json, told it; NULL: none. Borrowed.
 * tune_dataset_end_id - the special token that the rows' answers end with, by the first rows; -1:
 * none. */
const char *tune_dataset_chat_template(const struct tune_dataset *d);
const char *tune_dataset_eos_token(const struct tune_dataset *d);
int32_t tune_dataset_end_id(struct tune_dataset *d);
uint64_t tune_dataset_chat_hash(const struct tune_dataset *d);
#define TUNE_DATASET_SOURCE_SIZE 4160
const char *tune_dataset_source(const struct tune_dataset *d, int64_t row, char *text, int size);
uint64_t tune_dataset_fingerprint(const struct tune_dataset *d);
int tune_dataset_file(const char *path, struct tune_file_stamp *stamp, uint64_t *hash);
uint64_t tune_dataset_hash(const struct tune_dataset *d);
const struct tune_file_stamp *tune_dataset_stamp(const struct tune_dataset *d);
int tune_dataset_unchanged(const struct tune_dataset *d);
int tune_dataset_whole(const struct tune_dataset *d);

/* tune_dataset_row_hash - the hash of a row's content, by which copies of a row are known. It is
 * tune_hash64 (files/file.h) of one line of the row after the other, each continued from the hash
 * before, beginning at 0. The bytes are those of the file, without line ends, so CRLF is LF. Of
 * Parquet they are the row as JSON. A CSV or TSV row begins at the hash of the file's first record,
 * since that says what its fields mean. A row beyond TUNE_ROW_LIMIT is known by its size alone. A
 * piece of a long text is known by its tokens: tune_hash64 of its ids. Where the answers of a row
 * are rows of the set, the second has its number (an int, 1) hashed, too. Neither the row's number
 * nor its set is in the hash. 0 for callbacks. Call tune_dataset_whole before.
 * tune_dataset_row_hashes - the same of count rows from first on, in one walk. -1 with an error:
 * the file was cut short. */
uint64_t tune_dataset_row_hash(const struct tune_dataset *d, int64_t row);
int tune_dataset_row_hashes(const struct tune_dataset *d, int64_t first, int64_t count,
                            uint64_t *hash);

/* tune_dataset_held_out - whether a row is held out when share of the rows is trained on: each with
 * that probability. It is a function of (seed, key), so appended rows do not change it. key: the
 * hash of the row's content, so copies fall on one side. Rows of callbacks have no hash; their key
 * is the row's number, as it is by TUNE_SPLIT_BY_NUMBER. Set k of joined ones adds k 2^52 to it. */
bool tune_dataset_held_out(uint64_t seed, uint64_t key, double share);

/* tune_get_dataset - the data set that the options describe. NULL with kind USAGE: none is named.
 * tune_get_eval_dataset - the data set to evaluate on, with the same options.
 * tune_get_general_dataset - the general rows to evaluate on. Their format is recognised.
 * tune_get_asked_dataset - the same rows as one of these has, opened for their prompts of at most
 * context tokens (options.prompts). */
enum tune_rows_of { TUNE_ROWS_TRAINING, TUNE_ROWS_EVALUATION, TUNE_ROWS_GENERAL };
struct tune_dataset *tune_get_dataset(const struct tune_flags *flags, struct tune_tokenizer *tok);
struct tune_dataset *tune_get_eval_dataset(const struct tune_flags *flags,
                                           struct tune_tokenizer *tok);
struct tune_dataset *tune_get_general_dataset(const struct tune_flags *flags,
                                              struct tune_tokenizer *tok);
struct tune_dataset *tune_get_asked_dataset(const struct tune_flags *flags,
                                            enum tune_rows_of which, int context,
                                            struct tune_tokenizer *tok);

/* tune_dataset_show - print the first n rows as the model sees them. In formats other than text,
 * the pieces of the text come first: trained or masked, from the template or from the row. Then one
 * token a line: position, id, trained or masked, its text, and where the cut fell. Control
 * characters are escaped. These rows are counted like others. -1 with an error: a bad row, or
 * stream cannot be written. */
int tune_dataset_show(struct tune_dataset *d, struct tune_tokenizer *tok, int n, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
