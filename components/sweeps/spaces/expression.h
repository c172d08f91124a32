/* expression.h - the small language of constraints, rules of experiments, values of flags, and
 * --where.
 *
 *     batch_size % max(1, number_gpus) == 0 and model_name in ["a", "b"]
 *
 * Python's operators with Python's meaning and precedence:
 *
 *     or, and, not, in, not in, == != < <= > >= (chained too), + - * / // % **, unary -
 *     parentheses, lists, numbers, 'texts', "texts", True False None (true false null too)
 *     min max abs len round
 *     names of properties, or `any text` in back quotes if it has more than letters, digits and _
 *
 * // and % round down. Nothing is assigned, and nothing else is called. An expression is compiled
 * once and evaluated without allocation. It has at most TUNE_EXPRESSION_NODES nodes (parentheses
 * and signs count too), which bounds time and depth.
 *
 * Where it gives a value, Python gives the same one, of the same type. It refuses some that Python
 * has: whole numbers beyond 64 bits, NaN and complex results, texts and lists joined by + or *. It
 * also refuses a list made of names as the result, numbers not in decimal, and round() to tens. So
 * it does with min() and max() of a text's letters, and backslashes other than \\ \' \" \n \t
 * \r. */
#ifndef TUNE_SPACES_EXPRESSION_H
#define TUNE_SPACES_EXPRESSION_H

#include "sweeps/spaces/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_EXPRESSION_NODES 512

struct tune_expression;

/* tune_expression_new - compile; names[count]: what may occur, by position. NULL with an error of
 * kind USAGE that shows the text with the place marked: syntax, an unknown name (the nearest is
 * named), too long. where: before the message ("space.yaml:12:5", "--where").
 * tune_expression_free - free it; NULL is fine. */
struct tune_expression *tune_expression_new(const char *text, const char *const *names, int count,
                                            const char *where);
void tune_expression_free(struct tune_expression *e);

/* tune_expression_value - for values[count] of the names. Texts in *value are borrowed from values
 * or the expression. -1: types that do not go together ('a' < 1), division by zero, or a result
 * that is no number or no 64-bit integer. The message shows the expression and the values used.
 * tune_expression_true - 1 or 0 as Python's bool() of it, or -1.
 * tune_expression_uses - the expression has the name at that position.
 * tune_expression_text - the text it was compiled from; borrowed. */
int tune_expression_value(const struct tune_expression *e, const struct tune_value *values,
                          struct tune_value *value);
int tune_expression_true(const struct tune_expression *e, const struct tune_value *values);
bool tune_expression_uses(const struct tune_expression *e, int name);
const char *tune_expression_text(const struct tune_expression *e);

#ifdef __cplusplus
}
#endif
#endif
