/* prompts.h - the prompts that come next, as tokens: one text, the rows of a file, or the turns of
 * a chat.
 *
 *     struct tune_prompts *p = tune_prompts_open_rows(data, 0, 8, context, 64);
 *     struct tune_prompt_batch batch;
 *     while (tune_prompts_next(p, &batch) > 0) {
 *         int have = tune_prompt_begin(&batch, cache);
 *         tune_cache_forward(cache, batch.ids + have, batch.T - have);
 *         ... generate, then tune_prompts_answered(p, text, size) ...
 *     }
 *     tune_prompts_free(p);
 *
 * Rows are those of a data set that reads prompts (datasets/options.h). A chat reads lines from the
 * standard input, and writes every turn by the model's chat template. */
#ifndef TUNE_PROMPTS_H
#define TUNE_PROMPTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "generators/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;
struct tune_answers;
struct tune_asked;
struct tune_cache;
struct tune_chat_template;
struct tune_dataset;
struct tune_flags;
struct tune_prompts;
struct tune_tokenizer;

/* Prompts of one pass through the model. */
struct tune_prompt_batch {
    int rows, T;
    const int32_t *ids;      /* [rows,T], padded on the left with id 0; valid until the next one */
    const int32_t *pads;     /* [rows] positions of padding */
    const int64_t *numbers;  /* [rows] number of each row in its set, or of the turn in a chat */
    bool chat;               /* it goes on with the text before */
    const int *answers;      /* [rows] which of the answers to its row each is, from 0 */
};

/* tune_prompts_open_rows - the rows of data, batch_size at a time, of at most context - 1 tokens.
 * most: only so many of the first rows, the others are not read; 0: all. answer: most tokens of an
 * answer. A batch ends before a row whose padding would take a shorter
 * row's room for it.
 * It frees data. NULL with an error: a row that is bad, empty or too long, by name.
 * tune_prompts_open_some - the same for these rows alone, ascending; the others are not read.
 * tune_prompts_open_texts - rows that get no answer, such as plain texts and pairs: tune_generate
 * only writes their lines (tune_prompts_lines). Such a row may be empty, or longer than a context.
 * tune_prompts_repeat - answer each row that many times, one after the other, at most batch_size
 * answers at a time. Call it before the first batch.
 * tune_prompts_open_chat - a chat. It frees layout. system: the first system message; NULL: none.
 * in: file descriptor to read lines from. notes: what is no answer goes there.
 * stop_signal: NULL, or where the program's handler stores a signal, which ends the wait for a
 * line.
 * tune_prompts_free - free them; NULL is fine. */
struct tune_prompts *tune_prompts_open_rows(struct tune_dataset *data, int64_t most, int batch_size,
                                            int context, int answer);
struct tune_prompts *tune_prompts_open_some(struct tune_dataset *data, const int64_t *rows,
                                            int64_t count, int batch_size, int context,
                                            int answer);
struct tune_prompts *tune_prompts_open_texts(struct tune_dataset *data, int batch_size);
void tune_prompts_repeat(struct tune_prompts *p, int answers, int batch_size);
struct tune_prompts *tune_prompts_open_chat(struct tune_chat_template *layout,
                                            struct tune_tokenizer *tok, const char *system,
                                            int context, int in, FILE *notes,
                                            volatile int *stop_signal);
void tune_prompts_free(struct tune_prompts *p);

/* tune_prompts_next - the next batch: 1; 0: there are no more. In a chat it reads a line, and
 * serves its commands. -1 with an error: the rows changed, no memory.
 * tune_prompts_answered - the answer to the last turn of a chat; elsewhere it does nothing.
 * tune_prompts_skip - leave out the first answers to rows; they are there already. */
int tune_prompts_next(struct tune_prompts *p, struct tune_prompt_batch *batch);
int tune_prompts_answered(struct tune_prompts *p, const char *text, size_t size);
int tune_prompts_skip(struct tune_prompts *p, int64_t answers);

/* tune_prompts_keep - answer only these rows, ascending. Call it before the first batch. -1 with an
 * error: no memory.
 * tune_prompts_row - the number of the i-th row that is answered. */
int tune_prompts_keep(struct tune_prompts *p, const int64_t *rows, int64_t count);
int64_t tune_prompts_row(const struct tune_prompts *p, int64_t i);

/* More members of the lines of JSON that answers.h writes. Both functions: 0, or -1 with an error.
 * write - add them to the line of a row; batch_row: its number in the batch.
 * read - look at a line that is in the file already; answers to later rows follow it. */
struct tune_answer_lines {
    void *context;
    int (*write)(void *context, const struct tune_answers *answers, int batch_row, int64_t row,
                 struct cJSON *line);
    int (*read)(void *context, int64_t row, const struct cJSON *line);
};

/* tune_prompts_lines - give the lines of answers these members, from tune_get_answers on. lines is
 * copied.
 * tune_prompts_texts - make room in models for texts of that many tokens, too, `each` of them at a
 * time for each prompt. Call it before tune_get_generation_model. */
void tune_prompts_lines(struct tune_prompts *p, const struct tune_answer_lines *lines);
void tune_prompts_texts(struct tune_prompts *p, int tokens, int each);

/* tune_prompt_begin - begin the cache for a batch. Returns the number of its tokens that the cache
 * holds already: the beginning of a chat. */
int tune_prompt_begin(const struct tune_prompt_batch *batch, struct tune_cache *cache);

/* tune_prompts_rows - number of rows; 0 in a chat.
 * tune_prompts_each - answers to each row.
 * tune_prompts_left_out - rows of the data that are not answered.
 * tune_prompts_longest - tokens of the longest prompt; 0 in a chat.
 * tune_prompts_answer - most tokens of an answer; 0 in a chat.
 * tune_prompts_batch - rows of the largest batch.
 * tune_prompts_unanswered - whether they are those of tune_prompts_open_texts.
 * tune_prompts_data - the rows that they are of, borrowed; NULL in a chat.
 * tune_prompts_about - how a prompt is written, in words.
 * tune_prompts_hash - hash of a row's prompt, of its tokens.
 * tune_prompts_asked - a row's prompt and expected answer as text (tune_dataset_asked). */
int64_t tune_prompts_rows(const struct tune_prompts *p);
int tune_prompts_each(const struct tune_prompts *p);
int64_t tune_prompts_left_out(const struct tune_prompts *p);
int tune_prompts_longest(const struct tune_prompts *p);
int tune_prompts_answer(const struct tune_prompts *p);
int tune_prompts_batch(const struct tune_prompts *p);
bool tune_prompts_unanswered(const struct tune_prompts *p);
struct tune_dataset *tune_prompts_data(const struct tune_prompts *p);
const char *tune_prompts_about(const struct tune_prompts *p);
int tune_prompts_hash(struct tune_prompts *p, int64_t row, uint64_t *hash);
int tune_prompts_asked(const struct tune_prompts *p, int64_t row, struct tune_asked *asked);

/* tune_get_prompts - the prompts that the options name, written as they say. Else they are written
 * as the rows of the run that made the model or the adapter. Else the model's chat template writes
 * them, if it has one. notes: for a chat. Where a model is judged, pairs and plain texts are rows
 * without an answer. NULL with kind USAGE: none is named, or more than one.
 * tune_get_preview_prompts - the prompts that a recipe answers while it trains. They are written as
 * its rows. NULL with kind USAGE: no file is named, or it cannot be read.
 * tune_get_prompts_tokenizer - the tokenizer in the adapter's folder, if it has one, else the
 * model's. */
struct tune_prompts *tune_get_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok,
                                      FILE *notes);
struct tune_prompts *tune_get_preview_prompts(const struct tune_flags *flags,
                                             struct tune_tokenizer *tok);
struct tune_tokenizer *tune_get_prompts_tokenizer(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
