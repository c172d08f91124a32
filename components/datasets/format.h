/* format.h - what the columns of a row mean: its text in pieces, of which some are trained.
 *
 *     columns --> format --> text    "### Instruction:\nName a colour.\n\n### Response:\n" "Red"
 *                            pieces   |________________ masked ________________________|  |_ trained
 *                            data     0000000000000000001111111111111110000000000000000   111      1: the row's, not the template's
 *
 * The tokens are those of the whole text, the mask is by byte offsets: a token belongs to the piece
 * it begins in. Where data is 1, the spelling of a special token is plain text. Internal to
 * datasets. */
#ifndef TUNE_DATASETS_FORMAT_H
#define TUNE_DATASETS_FORMAT_H

#include "datasets/columns.h"
#include "datasets/conversation.h"
#include "datasets/dataset.h"
#include "templates/prompt_template.h"

/* In the order of the names that --format takes. */
enum tune_format_kind {
    TUNE_FORMAT_TEXT, /* a row's text is one column, and not read here */
    TUNE_FORMAT_ALPACA,
    TUNE_FORMAT_INSTRUCT,
    TUNE_FORMAT_PROMPT_COMPLETION,
    TUNE_FORMAT_MESSAGES,
    TUNE_FORMAT_SHAREGPT,
    TUNE_FORMAT_TEMPLATE,     /* --prompt-template */
    TUNE_FORMAT_MESSAGE_LISTS /* prompt-completion, where the first rows have lists of messages */
};

enum tune_train_on { TUNE_TRAIN_ON_COMPLETION, TUNE_TRAIN_ON_ASSISTANT, TUNE_TRAIN_ON_LAST, TUNE_TRAIN_ON_ALL };

/* Zeroed, it may be freed. */
struct tune_format {
    enum tune_format_kind kind;
    enum tune_train_on train_on;
    bool recognised;                          /* from the columns; else the caller's choice */
    /* of kinds that are one; alpaca's second is for rows without an input */
    struct tune_prompt_template templates[2];
    const char *names[TUNE_PROMPT_SLOTS];     /* what the format calls them; borrowed from it */
    /* what the file calls them; borrowed from names and map */
    const char *columns[TUNE_PROMPT_SLOTS];
    int count;
    /* the last so many may be absent, null or empty in a row */
    int optional;
    char *map;                                /* --columns, cut into strings */
    struct tune_chat_template *chat;          /* of conversations */
};

/* tune_format_settle - which format, by options->row_format, columns, prompt_template and train_on,
 * by the columns there are and the first rows; every slot and every name is checked, templates are
 * opened. -1, mostly of kind USAGE.
 * tune_format_name, tune_format_train_on - as --format and --train-on spell them. */
int tune_format_settle(struct tune_format *f, const struct tune_columns *have,
                       const struct tune_dataset_options *options,
                       const struct tune_rows *rows);
void tune_format_free(struct tune_format *f);
const char *tune_format_name(const struct tune_format *f);
const char *tune_format_train_on(const struct tune_format *f);

struct tune_piece {
    size_t end; /* it begins where the one before ends */
    bool trained;
};

/* A row's text; reused from row to row. Zeroed, it may be freed. */
struct tune_pieces {
    char *text; /* NUL after it */
    uint8_t *data;
    size_t size, room;
    struct tune_piece *at;
    int count, at_room;
    /* ends in an answer that nothing ends yet: the end token belongs behind it */
    bool answer;
    /* by a chat template, which has written all special tokens: the tokenizer adds none */
    bool whole;
    struct tune_values values;   /* what reading needs */
    struct tune_conversation chat;
    struct tune_chat_text rendered;
};

/* tune_format_pieces - one row. -1: a bad row, with file and line. */
int tune_format_pieces(const struct tune_format *f, const struct tune_rows *rows,
                       const struct tune_columns *columns,
                       const struct tune_row *row, struct tune_pieces *p);
void tune_pieces_free(struct tune_pieces *p);

/* tune_dataset_pieces - the same of a data set's row, for who shows them; no piece where rows are
 * one text each, or the caller's own. It is dataset.c's, and counts nothing. */
int tune_dataset_pieces(const struct tune_dataset *d, int64_t row, struct tune_pieces *p);

/* tune_dataset_watch - what templates write into the first rows that the user should know, into
 * warning, else "": spellings of special tokens which are none to the tokenizer; conversations in
 * which nothing ends an assistant's turn, where ended is false (--append-token was not given). 0;
 * -1: out of memory. */
int tune_dataset_watch(const struct tune_dataset *d, struct tune_tokenizer *tok, bool ended,
                       char *warning, size_t size);

#endif
