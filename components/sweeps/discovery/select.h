/* select.h - which rows are wanted, and new columns computed from the others. For views of a space,
 * tables of a store and other lists of rows with named columns.
 *
 *     tune_derived_read("usd = 3.2 * seconds / 3600; cheap = usd < 1", &derived, &count);
 *     s = tune_select_new(names, 5, 3, "cheap", derived, count);    names[3] and [4] are measured
 *     more = tune_select_row(s, values);        fills values[0..4] in, 1: the row is wanted
 *
 * A row that lacks a measured value is not wanted if `where` cannot be evaluated without it. In the
 * same way, a new column is absent where a value it needs is absent. */
#ifndef TUNE_DISCOVERY_SELECT_H
#define TUNE_DISCOVERY_SELECT_H

#include "core/expression.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new column: its name and its expression. */
struct tune_derived {
    char *name, *text;
};

/* tune_derived_read - the columns of "name = expression; name = expression". NULL or "": none.
 * Returns 0, or -1 with kind USAGE.
 * tune_derived_free - free them. */
int tune_derived_read(const char *text, struct tune_derived **derived, int *count);
void tune_derived_free(struct tune_derived *derived, int count);

struct tune_select;

/* tune_select_new - compile `where` (NULL: every row) and the new columns over names[count]. Names
 * from `measured` on are measured. A new column may use those before it. What cannot be compiled
 * is left out, and the error says why. NULL: no memory.
 * tune_select_free - free it; NULL is fine.
 * tune_select_compiled - whether `where` was compiled (d = -1), or new column d.
 * tune_select_uses - whether anything uses the name at that place. */
struct tune_select *tune_select_new(const char *const *names, int count, int measured,
                                    const char *where, const struct tune_derived *derived,
                                    int derived_count);
void tune_select_free(struct tune_select *s);
bool tune_select_compiled(const struct tune_select *s, int d);
bool tune_select_uses(const struct tune_select *s, int name);

/* tune_select_by_inputs - whether `where` uses no measured value, not even by a new column.
 * tune_select_row - 1: the row of these values[count] is wanted; 0: it is not; -1 with an error. No
 * row is wanted if `where` was not compiled.
 * tune_select_value - the value of new column d in the row of values[count]; None: absent. -1 with
 * an error. Both use the values[derived_count] behind the row's own as scratch. */
bool tune_select_by_inputs(const struct tune_select *s);
int tune_select_row(const struct tune_select *s, struct tune_value *values);
int tune_select_value(const struct tune_select *s, int d, struct tune_value *values,
                      struct tune_value *value);

#ifdef __cplusplus
}
#endif
#endif
