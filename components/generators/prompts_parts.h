/* prompts_parts.h - struct tune_prompts, shared by prompts.c and chat.c. Private to this folder. */
#ifndef TUNE_PROMPTS_PARTS_H
#define TUNE_PROMPTS_PARTS_H

#include "datasets/dataset.h"
#include "generators/prompts.h"

struct tune_chat_session; /* a chat, chat.c */

struct tune_prompts {
    struct tune_dataset *data; /* NULL: a chat */
    struct tune_chat_session *session; /* NULL: rows */
    struct tune_example row;
    int64_t at, rows;          /* the next answer; number of rows that are taken */
    int64_t *kept;             /* [rows] their numbers in data; NULL: the first ones */
    int each;                  /* answers to each row */
    int batch_size, context, answer, longest;
    int32_t *ids;              /* [room] the batch */
    int64_t room;
    int32_t *pads;             /* [batch_size] */
    int64_t *numbers;          /* [batch_size] */
    int *answers;              /* [batch_size] */
    struct tune_answer_lines lines; /* write NULL: none */
    int texts, each_text;      /* tokens of the longest text that models must take at once, and
                                  texts of a row; 0 */
    bool unanswered;           /* rows get no answer */
    char about[1200];
};

/* tune_prompts_new - prompts without a source. NULL with an error.
 * tune_prompts_room - make room for count tokens in ids. */
struct tune_prompts *tune_prompts_new(int batch_size, int context);
int tune_prompts_room(struct tune_prompts *p, int64_t count);

/* tune_chat_session_next - tune_prompts_next of a chat.
 * tune_chat_session_answered - its tune_prompts_answered. */
int tune_chat_session_next(struct tune_prompts *p, struct tune_prompt_batch *batch);
int tune_chat_session_answered(struct tune_chat_session *t, const char *text, size_t size);
void tune_chat_session_free(struct tune_chat_session *t);

#endif
