/* answer_parts.h - functions that build an answer. Private to answers/. */
#ifndef TUNE_ANSWERS_ANSWER_PARTS_H
#define TUNE_ANSWERS_ANSWER_PARTS_H

#include "core/array.h"
#include "core/pool.h"
#include "core/try.h"
#include "sweeps/answers/answer.h"
#include "sweeps/spaces/space.h"

/* Memory for an answer.
 * TAKE - point `to` at n zeroed elements that live as long as the answer.
 * FIT - allocate one more element after n, in an array from malloc.
 * If memory runs out, both macros make the calling function return -1.
 * tune_answer_copy - copy a text into the answer's memory. NULL with an error. */
#define TAKE(to, a, n) TRY(((to) = tune_answer_take(a, (int64_t)(n), sizeof *(to))) ? 0 : -1)
#define FIT(array, n)                                                 \
    TRY(tune_array_fit(&(array), (size_t)(n), sizeof *(array)) ? 0 : tune_answer_no_memory())
void *tune_answer_take(struct tune_answer_table *a, int64_t count, size_t size);
char *tune_answer_copy(struct tune_answer_table *a, const char *text);
int tune_answer_no_memory(void);

/* tune_answer_new - create an answer without columns. NULL with an error.
 * tune_answer_column - add a column. Its other fields may be set until the next call. If memory
 * runs out, the next tune_answer_end_row returns the error.
 * tune_answer_columns - add several columns without other fields.
 * tune_answer_levels - set the levels of the column added last, a dimension, to values[count]. The
 * table has no rows yet. -1 with an error: no memory.
 *
 * The next functions add the cells of a row, in the order of the columns.
 * tune_answer_end_row - end the row. -1 with an error: no memory.
 * tune_answer_text - add a text. NULL adds an empty cell.
 * tune_answer_figure - add a number. whole: it is a count. NaN adds an empty cell.
 * tune_answer_figures - add the numbers of several results as a list, or a single one as a number.
 * tune_answer_space_value - add the value of a dimension.
 * tune_answer_identifier - add the identifier of an entity.
 * tune_answer_cell - add a copy of a cell of this or another answer.
 *
 * tune_answer_note - add a note, formatted as by printf. Control characters are replaced.
 * tune_answer_full - true if the answer has `limit` rows (0: no limit); the caller may then stop.
 * tune_answer_finish - set the types of the columns, and return a. If an earlier call failed, free
 * a and return NULL with an error.
 *
 * tune_answer_milliseconds - convert a time to whole milliseconds, rounded down. */
struct tune_answer_table *tune_answer_new(void);
struct tune_answer_column *tune_answer_column(struct tune_answer_table *a, const char *name);
void tune_answer_columns(struct tune_answer_table *a, const char *const *names, int count);
int tune_answer_levels(struct tune_answer_table *a, struct tune_answer_column *column,
                       const struct tune_value *values, int count);
void tune_answer_text(struct tune_answer_table *a, const char *text);
void tune_answer_whole(struct tune_answer_table *a, int64_t whole);
void tune_answer_figure(struct tune_answer_table *a, double number, bool whole);
void tune_answer_figures(struct tune_answer_table *a, const double *numbers, int count, bool whole);
void tune_answer_time(struct tune_answer_table *a, double seconds);
void tune_answer_space_value(struct tune_answer_table *a, const struct tune_value *v);
int tune_answer_identifier(struct tune_answer_table *a, const struct tune_space *s,
                           const struct tune_value *entity);
void tune_answer_cell(struct tune_answer_table *a, const struct tune_answer_cell *cell);
int tune_answer_end_row(struct tune_answer_table *a);
void tune_answer_add_note(struct tune_answer_table *a, enum tune_answer_note_position position,
                          const char *format, ...) TUNE_PRINTF(3, 4);
bool tune_answer_full(const struct tune_answer_table *a, int64_t limit);
struct tune_answer_table *tune_answer_finish(struct tune_answer_table *a);
int64_t tune_answer_milliseconds(double seconds);

#endif
