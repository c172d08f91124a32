/* options.h - how a data set reads its rows, and how a loader makes batches of them. */
#ifndef TUNE_DATASETS_OPTIONS_H
#define TUNE_DATASETS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct tune_comm;

enum tune_dataset_format {
    TUNE_DATASET_BY_NAME,
    TUNE_DATASET_JSONL,
    TUNE_DATASET_JSON,
    TUNE_DATASET_TEXT,
    TUNE_DATASET_CSV,
    TUNE_DATASET_TSV
};

enum tune_chunking { TUNE_CHUNK_AUTO, TUNE_CHUNK_OFF, TUNE_CHUNK_ON };

/* Special tokens. A row gets the tokens that the tokenizer's template adds, such as the beginning
 * of the sequence. A token that begins the row's text already is not added again. In rows of plain
 * text, the spelling of a special token is that token, as in Hugging Face. The end token follows a
 * text or an answer that does not end with it. In the other formats, columns hold plain text. In a
 * conversation, only the chat template writes special tokens, as in transformers.
 *
 * Formats of rows are text, alpaca, alpaca-chat, instruct, prompt-completion, messages, sharegpt.
 * docs/data-formats.md has their columns. A prompt template reads any columns
 * (templates/prompt_template.h). */
struct tune_dataset_options {
    enum tune_dataset_format format; /* BY_NAME: .jsonl, .json, .csv, .tsv, .txt. Any other name:
                                        JSONL if the file begins with '{', else text */
    const char *text_field;          /* NULL: "text" in the first row, else "output", "content",
                                        else its only string field; if none fits, an error lists the
                                        fields */
    const char *response_template;   /* NULL: train on the whole row. Else train only on tokens that
                                        begin after its first occurrence. A row without it is bad */
    const char *append_token;        /* spelling of a token that is put after each text and trained,
                                        such as "<|endoftext|>"; "none": no token. NULL: end_token.
                                        Nothing is put after an empty text */
    const char *end_token;           /* spelling of the model's own end token; NULL: unknown. Where
                                        append_token is NULL it ends texts, and answers: of alpaca,
                                        of prompts and completions that are strings, and of
                                        templates that end in one */
    const char *row_format;          /* a format named above; NULL: text; "auto": recognised from
                                        the columns of the first rows */
    const char *columns;             /* NULL, or the file's names of the format's columns:
                                        "prompt=question,completion=answer" */
    const char *prompt_template;     /* NULL, or a file or name for tune_prompt_template_open. It
                                        takes the place of a format */
    /* completion, assistant, last (the assistant's last message), all. NULL or "default":
     * completion; of messages and sharegpt assistant; of text all, or completion by
     * response_template */
    const char *train_on;
    const char *chat_template;       /* NULL: the model's own; else a file or name for
                                        tune_chat_template_open. An error if rows are no
                                        conversations */
    const char *model_folder;        /* NULL, or the folder with the model's chat template and the
                                        special tokens that it names */
    int max_length;                  /* tokens, at least 1; longer rows are cut on the right and
                                        counted */
    int chunk;                       /* enum tune_chunking: part texts into pieces of max_length
                                        tokens, each a row (docs/data-formats.md). AUTO: if a text
                                        file is one paragraph */
    int64_t limit;                   /* at most so many rows, the first ones of the file; 0: all.
                                        The others are as if the file had none: they are not read,
                                        split off or parted into pieces */
    int sequences;                   /* labelled sequences of a row (struct tune_example). 2: a
                                        chosen and a rejected answer. 1: an answer with a label,
                                        true or false; of rows with a chosen and a rejected answer,
                                        each gives two such rows. 0: one, without a label */
    bool prompts;                    /* read only what comes before the answer, for generation:
                                        columns of answers may be absent, a conversation ends where
                                        the assistant speaks next, and nothing is appended */
    bool references;                 /* for evaluation: an answer may be empty, or a list of texts
                                        that are equally good. The first one is the row's text */
    bool strict;                     /* conversations that break a rule of conversation.h are bad
                                        rows; else they are taken, and changed where the chat
                                        template does not take them */
    bool skip_bad_rows;              /* count rows that cannot be read, and mark them bad; else an
                                        error */
    double expansion;                /* a copy of Parquet files as JSON, and their pages in memory,
                                        may take so many times the bytes of the files, and 256 MiB
                                        in any case; 0: 100 times */
};

enum tune_part { TUNE_TRAIN, TUNE_HELD_OUT, TUNE_ALL };

/* tune_dataset_held_out goes by one of these. */
enum tune_split { TUNE_SPLIT_BY_CONTENT, TUNE_SPLIT_BY_NUMBER };

/* Nothing here has a default: a zeroed max_steps is no step at all. */
struct tune_loader_options {
    struct tune_comm *comm; /* the ranks that share each step; NULL: there is one */
    enum tune_part part;
    const char *mix;      /* shares of the joined sets, "0.7,0.3": an epoch then has the most rows
                             that keep these shares while no row comes twice. NULL: every row
                             once */
    int only_set;         /* only the rows of this one of the joined sets, from 1; 0: of all */
    double train_split;   /* share trained on, (0,1]; see tune_dataset_held_out. ALL: not read */
    int split_by;         /* enum tune_split */
    uint64_t seed;
    bool shuffle;         /* a new order each epoch */
    int batch_size;       /* rows of a micro-batch; each is one sequence or several */
    int accumulate;       /* micro-batches of a step, of each rank */
    int pad_to_multiple_of; /* a batch's length is rounded up to a multiple of it, and is at most
                               max_length; 0: not */
    int max_length;       /* tokens of the longest row, for the buffers: the data set's */
    double epochs;        /* above 0; planned rows = ceil(rows * epochs) */
    int64_t max_steps;    /* -1: by epochs; else exactly that many, over as many epochs as it takes
                             */
    double stop_after_seconds; /* stop at the first step boundary this long after the first call of
                                  tune_loader_more (or tune_loader_begin), and after one step at
                                  least; -1: never */
    const bool *stable;   /* NULL, or where the logger notes that its until_stable is reached: stop
                             there */
    const bool *diverged; /* NULL, or where the logger notes that the loss rose: stop there */
    int64_t stop_at_step; /* stop when at->step is there, as if by a signal; 0: never */
    volatile int *starting; /* NULL, or the first tune_loader_more sets it to 0: now there is work
                               to save */
    const volatile int *stop_signal; /* NULL, or where the program's handler notes the signal that
                                        it caught. Store it atomically: another thread reads it */
    int sequences;        /* labelled sequences of a row, as in the data set; 0: one, without */
    bool packing;         /* several rows to a row of the batch (loader.h) */
    bool prefetch;        /* tokenise in a helper thread; else in the calls themselves */
};

#endif
