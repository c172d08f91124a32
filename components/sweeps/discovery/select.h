/* select.h - select rows by an expression, and compute new columns. It works for views, tables of a
 * store and any other rows with named columns.
 *
 *     tune_derived_read("usd = 3.2 * seconds / 3600; cheap = usd < 1", &derived, &count);
 *     s = tune_select_new(names, 5, 3, "cheap", derived, count);    names[3] and [4] are measured
 *     more = tune_select_row(s, values);        fills values[0..4] in, 1: the row is wanted
 *
 * If a measured value that `where` needs is absent, the row is not wanted. In the same way, a new
 * column is absent if a value that it needs is absent. */
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

/* tune_derived_read - read new columns from "name = expression; name = expression". NULL or "":
 * none. Returns 0, or -1 with kind USAGE.
 * tune_derived_free - free them. */
int tune_derived_read(const char *text, struct tune_derived **derived, int *count);
void tune_derived_free(struct tune_derived *derived, int count);

struct tune_select;

/* tune_select_new - compile `where` (NULL: every row) and the new columns over names[count]. Names
 * from index `measured` on are measured. A new column may use earlier ones. An expression that does
 * not compile is left out, and the error is set. NULL: no memory.
 * tune_select_free - free it; NULL is fine.
 * tune_select_compiled - true if new column d was compiled. d -1: `where`.
 * tune_select_uses - true if an expression uses the name at this index. */
struct tune_select *tune_select_new(const char *const *names, int count, int measured,
                                    const char *where, const struct tune_derived *derived,
                                    int derived_count);
void tune_select_free(struct tune_select *s);
bool tune_select_compiled(const struct tune_select *s, int d);
bool tune_select_uses(const struct tune_select *s, int name);

/* tune_select_by_inputs - true if `where` uses no measured value, not even through a new column.
 * tune_select_row - 1: the row with values[count] is wanted; 0: it is not; -1 with an error. If
 * `where` was not compiled, no row is wanted.
 * tune_select_value - the value of new column d in the row with values[count]. None: absent. -1
 * with an error. Both functions use values[count] to values[count + derived_count - 1] as
 * scratch. */
bool tune_select_by_inputs(const struct tune_select *s);
int tune_select_row(const struct tune_select *s, struct tune_value *values);
int tune_select_value(const struct tune_select *s, int d, struct tune_value *values,
                      struct tune_value *value);

#ifdef __cplusplus
}
#endif
#endif
