/* format.h - the formats of rows: a row's columns become one text in pieces, and some pieces are
 * trained.
 *
 *    columns --> format --> text    "### Instruction:\nName a colour.\n\n### Response:\n" "Red"
 *                           pieces   |________________ masked ________________________|  |_ trained
 *                           data     00000000000000000011111111111111100000000000000  111
 *
 * data is 1 for bytes from the row and 0 for bytes from the template. Where data is 1, the spelling
 * of a special token is plain text. The whole text is tokenized at once. A token belongs to the
 * piece in which it begins. Private to datasets. */
#ifndef TUNE_DATASETS_FORMAT_H
#define TUNE_DATASETS_FORMAT_H

#include "datasets/columns.h"
#include "datasets/conversation.h"
#include "datasets/dataset.h"
#include "templates/prompt_template.h"

/* In the order of the names that --format accepts. */
enum tune_format_kind {
    TUNE_FORMAT_TEXT, /* rows of one text, which are not read here */
    TUNE_FORMAT_ALPACA,
    TUNE_FORMAT_INSTRUCT,
    TUNE_FORMAT_ALPACA_CHAT, /* the columns of alpaca, as a conversation */
    TUNE_FORMAT_PROMPT_COMPLETION,
    TUNE_FORMAT_MESSAGES,
    TUNE_FORMAT_SHAREGPT,
    TUNE_FORMAT_TEMPLATE,     /* --prompt-template */
    TUNE_FORMAT_MESSAGE_LISTS, /* prompt-completion with lists of messages */
    /* pairs (pairs.c) */
    TUNE_FORMAT_PREFERENCE,
    TUNE_FORMAT_SHAREGPT_PREFERENCE,
    TUNE_FORMAT_ALPACA_PREFERENCE,
    TUNE_FORMAT_INSTRUCT_PREFERENCE, /* texts as a conversation */
    TUNE_FORMAT_PREFERENCE_LISTS, /* preference with lists of messages */
    /* single answers with a label (pairs.c, too) */
    TUNE_FORMAT_UNPAIRED,
    TUNE_FORMAT_UNPAIRED_TURNS, /* texts as a conversation */
    TUNE_FORMAT_UNPAIRED_LISTS  /* with lists of messages */
};

enum tune_train_on { TUNE_TRAIN_ON_COMPLETION, TUNE_TRAIN_ON_ASSISTANT, TUNE_TRAIN_ON_LAST,
    TUNE_TRAIN_ON_ALL };

/* A format and its columns. A zeroed one may be freed. */
struct tune_format {
    enum tune_format_kind kind;
    enum tune_train_on train_on;
    bool recognised; /* true: recognised from the columns; false: chosen by the caller */
    /* for formats that are templates; alpaca's second is for rows without input */
    struct tune_prompt_template templates[2];
    /* the format's names of the columns; borrowed from the format */
    const char *names[TUNE_PROMPT_SLOTS];
    /* the file's names of the columns; borrowed from names and map */
    const char *columns[TUNE_PROMPT_SLOTS];
    int count;
    int optional; /* this many last columns may be absent, null or empty */
    /* an optional column that is something else than its name says */
    bool left_out[TUNE_PROMPT_SLOTS];
    /* of preferences: the column that is the prompt under another name; NULL: none */
    const char *stand_in;
    char *end;            /* spelling of the token that ends answers; NULL: none */
    char *map;                                /* --columns, split into strings */
    struct tune_chat_template *chat;          /* for conversations */
    int sequences;   /* of preferences: answers of a row of the file, 2 are a pair; else 0 */
    bool strict;     /* conversations that break a rule are errors */
    bool prompts;    /* only what comes before the answer is read */
    bool references; /* an answer may be empty or a list */
};

/* tune_format_settle - choose the format from options (row_format, columns, prompt_template,
 * train_on), the columns and the first rows. It opens templates and checks every slot and name. -1
 * with an error, usually of kind USAGE.
 *
 * tune_format_kind_of - what rows with these columns are, by the same options.
 * tune_format_name, tune_format_train_on - the values for --format and --train-on.
 * tune_format_reads - whether a column of the file, or a part of it, is read. */
int tune_format_settle(struct tune_format *f, const struct tune_columns *have,
                       const struct tune_dataset_options *options, const struct tune_rows *rows);
int tune_format_kind_of(const struct tune_columns *have, const struct tune_dataset_options *options,
                        const struct tune_rows *rows, enum tune_dataset_kind *kind);
void tune_format_free(struct tune_format *f);
const char *tune_format_name(const struct tune_format *f);
const char *tune_format_train_on(const struct tune_format *f);
bool tune_format_reads(const struct tune_format *f, const char *column);

struct tune_text_piece {
    size_t end; /* a piece begins at the end of the one before */
    bool trained;
};

/* The text of a row. Reused from row to row. A zeroed one may be freed. */
struct tune_pieces {
    char *text; /* followed by a NUL */
    uint8_t *data;
    size_t size, room;
    struct tune_text_piece *at;
    int count;
    int side;                    /* of a pair: 0 the chosen answer, 1 the rejected one; set by the
                                    caller */
    double label;                /* of preferences: 1 for an answer that people want, else 0 */
    bool answer;                 /* the text ends in an answer that still needs the end token */
    bool whole; /* a chat template wrote all special tokens; the tokenizer adds none */
    struct tune_row_values values;   /* buffers for reading */
    struct tune_conversation chat;
    struct tune_chat_text rendered;
    char *first; /* [first_room] the first of several answers */
    size_t first_room;
};

/* tune_format_pieces - make the text of a row. -1 with file and line: a bad row. */
int tune_format_pieces(const struct tune_format *f, const struct tune_rows *rows,
                       const struct tune_columns *columns, const struct tune_file_row *row,
                       struct tune_pieces *p);
void tune_pieces_free(struct tune_pieces *p);

/* Parts of tune_format_pieces, for pairs.c:
 * tune_pieces_put - append text; trained and data are for all of it.
 * tune_pieces_need_text - -1 with an error: column i is no text in this row.
 * tune_pieces_alpaca - Alpaca's prompt and an answer; NULL: that of the column output.
 * tune_pieces_chat - apply the chat template to p->chat, with the columns tools and system.
 * tune_pieces_system - the text of the column system. NULL: there is none.
 * tune_pieces_history - append the turns of the column history to p->chat.
 * tune_pieces_beginning - bytes that both texts begin with: whole characters, without a space at
 * their end. Defined in pairs.c.
 * tune_pieces_pair - the text of one side of a pair, p->side. Defined in pairs.c.
 * tune_pieces_bad_row - the error "file:line: the column ... what". */
int tune_pieces_put(struct tune_pieces *p, const char *text, size_t size, bool trained, bool data);
int tune_pieces_need_text(const struct tune_format *f, const struct tune_rows *rows,
                          const struct tune_file_row *row, const struct tune_pieces *p, int i);
int tune_pieces_alpaca(const struct tune_format *f, const struct tune_rows *rows,
                       const struct tune_file_row *row, struct tune_pieces *p,
                       const struct tune_text *answer);
int tune_pieces_chat(const struct tune_format *f, const struct tune_rows *rows,
                     const struct tune_file_row *row, struct tune_pieces *p);
const struct tune_field *tune_pieces_system(const struct tune_format *f,
                                            const struct tune_pieces *p);
int tune_pieces_history(const struct tune_format *f, const struct tune_rows *rows,
                        const struct tune_file_row *row, struct tune_pieces *p);
size_t tune_pieces_beginning(struct tune_text a, struct tune_text b);
int tune_pieces_pair(const struct tune_format *f, const struct tune_rows *rows,
                     const struct tune_file_row *row, struct tune_pieces *p);
int tune_pieces_bad_row(const struct tune_rows *rows, const struct tune_file_row *row,
                        const char *column, const char *what);
bool tune_pieces_no_value(const struct tune_field *v);

/* tune_dataset_pieces - the pieces of a dataset's row, to show them. There are none if rows are
 * plain texts or come from a callback. Defined in dataset.c; does not count the row. */
int tune_dataset_pieces(const struct tune_dataset *d, int64_t row, struct tune_pieces *p);

/* tune_dataset_watch - look for problems in the templates' text of the first rows and write a
 * warning, or "". Problems: special tokens that the tokenizer does not know; with ended false,
 * conversations whose assistant turns have no end token. ended: --append-token was given. 0, or -1
 * with an error: no memory. */
int tune_dataset_watch(const struct tune_dataset *d, struct tune_tokenizer *tok, bool ended,
                       char *warning, size_t size);

#endif
