/* answer.h - the answer to a question about a sample store: a table.
 *
 * Every question of question.h returns such a table, and print.h writes it. An example in C is
 * tests/foreign/questions.c.
 *
 *     struct tune_answer_table *a = tune_ask_best(&question);
 *     for (int64_t row = 0; a && row < a->rows; row++)
 *         ... tune_answer_at(a, row, tune_answer_find(a, "batch_size"))->number
 *     tune_answer_free(a); */
#ifndef TUNE_ANSWERS_ANSWER_H
#define TUNE_ANSWERS_ANSWER_H

#include "core/error.h"
#include "core/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of cells. A column whose cells have several types is MIXED; no cell is. */
enum tune_answer_type {
    TUNE_ANSWER_NONE, TUNE_ANSWER_TEXT, TUNE_ANSWER_WHOLE, TUNE_ANSWER_NUMBER,
    TUNE_ANSWER_TIME,  /* seconds since 1970 */
    TUNE_ANSWER_BOOL,
    TUNE_ANSWER_VALUE, /* any other value of a dimension, such as a list */
    TUNE_ANSWER_LIST,  /* numbers of several results */
    TUNE_ANSWER_MIXED
};

struct tune_answer_numbers {
    int count;
    bool whole;             /* each is a count */
    double mean, deviation; /* deviation: sample standard deviation */
    const double *at;       /* [count] in the order of measurement */
};

struct tune_answer_cell {
    enum tune_answer_type type;
    union {
        const char *text;
        int64_t whole; /* also of a boolean: 0 or 1 */
        double number; /* also of a time */
        const struct tune_value *value;
        const struct tune_answer_numbers *numbers;
    };
};

struct tune_answer_column {
    const char *name, *unit; /* unit "": none */
    enum tune_answer_type type; /* of all cells except NONE; set by tune_answer_finish */
    bool measured;           /* a measured figure; grouped rows show a statistic of it */
    bool hidden;             /* text output omits it unless asked for by name */
    bool dimension;          /* an input that differs between configurations */
    bool stays;              /* text output shows it even if all cells are equal */
    int digits;              /* significant digits in text output; 0: 5 */
    /* [level_count] the dimension's values in domain order: of a plot those that occur, of points
     * at most 1000; else NULL */
    const struct tune_answer_cell *levels;
    int level_count;
};

/* The position of a note. A WARNING concerns programs that read CSV or JSON, too. */
enum tune_answer_note_position { TUNE_NOTE_ABOVE, TUNE_NOTE_BELOW, TUNE_NOTE_WARNING };
struct tune_answer_note {
    enum tune_answer_note_position position;
    /* One line, with control characters replaced. Options are written as `until_stable`;
     * tune_flags_name_options turns them into flags. So do `none` and `advice` below. */
    char *text;
};

struct tune_answer_table {
    struct tune_answer_column *columns; /* [count] */
    int count;
    struct tune_answer_cell *cells;     /* [rows][count] */
    int64_t rows;
    struct tune_answer_note *notes;     /* [note_count] in reading order */
    int note_count;
    char *none;                         /* text to print if there are no rows */
    char *advice;                       /* how to see columns that do not fit */
    bool numbered;                      /* CSV starts with a row index, as ado's does */
    int verdict;                        /* of --regression: 0: no; 1: yes; 4: undecided */
    /* private to the functions below and in answer_parts.h */
    int64_t filled;
    bool broken;
    struct tune_answer_column spare;
    struct tune_pool *memory;
};

/* tune_answer_find - the index of the column with that name, or -1.
 * tune_answer_at - a cell. Column -1 yields a cell of type NONE.
 * tune_answer_number - the cell's number, or NaN if it has none. A list yields its mean.
 * tune_answer_to_string - write the cell into text[size] as in CSV; NONE is "". Returns the full
 * length, as snprintf does.
 * tune_answer_free - free it; NULL is fine. */
int tune_answer_find(const struct tune_answer_table *a, const char *name);
const struct tune_answer_cell *tune_answer_at(const struct tune_answer_table *a, int64_t row,
                                              int column);
double tune_answer_number(const struct tune_answer_cell *cell);
int tune_answer_to_string(const struct tune_answer_cell *cell, char *text, size_t size);
void tune_answer_free(struct tune_answer_table *a);

#ifdef __cplusplus
}
#endif
#endif
