/* pass.h - a pass over all rows of one experiment, or over the requests, for any space. Private to
 * answers/.
 *
 *     struct tune_pass t;
 *     int more = tune_pass_open(&t, s, store, "work", true);
 *     while (more >= 0 && (more = tune_pass_next(&t, &cells)) == 1)
 *         ... cells[i] is of t.columns[i]
 *     tune_pass_free(&t); */
#ifndef TUNE_ANSWERS_PASS_H
#define TUNE_ANSWERS_PASS_H

#include "sweeps/answers/subject.h"
#include "sweeps/spaces/lookup.h"

struct tune_pass {
    struct tune_subject *s;
    const char *name;
    struct tune_column *columns; /* [count] keys, inputs, targets, then new columns */
    const char **names;          /* [count] and then "build", an alias of build_id */
    int stored, count;
    struct tune_scan *scan;
    struct tune_lookup *lookup;  /* the question's table; NULL: none */
    int looked_up;               /* index in names of the first name of lookup */
    struct tune_select *select;  /* NULL: all rows, no new columns */
    const struct tune_experiment *experiment; /* NULL: unknown */
    struct tune_value *values;
    struct tune_cell *cells;     /* [count] */
    char time[TUNE_FACT_TIME];
};

/* tune_pass_open - begin a pass over all columns. asked: add the question's new columns, and select
 * rows by its `where`. -1 with an error. Call tune_pass_free in both cases.
 * tune_pass_next - 1 and the next row, valid until the next call; 0 at the end; -1 with an error.
 * tune_pass_at - read the row at a position, even if it does not meet `where`. It is valid until
 * the next call.
 * tune_pass_value - column i of a row as a value. If an input takes any type, it is stored as text;
 * a number is restored from it. */
int tune_pass_open(struct tune_pass *t, struct tune_subject *s, struct tune_store *store,
                   const char *name, bool asked);
int tune_pass_next(struct tune_pass *t, const struct tune_cell **cells);
int tune_pass_at(struct tune_pass *t, struct tune_row_position position,
                 const struct tune_cell **cells);
struct tune_value tune_pass_value(const struct tune_pass *t, int i, const struct tune_cell *cell);
void tune_pass_free(struct tune_pass *t);

/* tune_pass_cell - add a cell of a column to the answer. times: write start times as times; else as
 * exact numbers, which can be imported again.
 * tune_pass_meets - 1 if the row cells[count] meets the expression, else 0. -1 with an error. */
void tune_pass_cell(struct tune_answer_table *a, const struct tune_column *column,
                    const struct tune_cell *cell, bool times);
enum { TUNE_PASS_CELLS = 16 };
int tune_pass_meets(struct tune_select *select, const struct tune_cell *cells, int count);

/* tune_experiment_space - make a space from an experiment's rows, so that questions about spaces
 * work for experiments. Its dimensions are the inputs that vary. NULL with an error.
 * tune_entity_known - 1 if a row or request of the store has that identifier, else 0. -1 with an
 * error.
 * tune_entity_nearest - find a similar identifier among the first rows. false: there is none. */
struct tune_space *tune_experiment_space(struct tune_subject *s, const char *name);
int tune_entity_known(struct tune_subject *s, const char *identifier);
bool tune_entity_nearest(struct tune_subject *s, const char *identifier,
                         char nearest[TUNE_STORE_TEXT_MAX + 1]);

/* The answers of show, one function for each kind of subject. */
int tune_show_rows(struct tune_subject *s);
int tune_show_requests(struct tune_subject *s);
int tune_show_entity(struct tune_subject *s);
int tune_show_point(struct tune_subject *s);

#endif
