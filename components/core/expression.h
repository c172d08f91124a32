/* expression.h - the expression language of constraints, of experiments' rules and flag values, and
 * of --where.
 *
 *     batch_size % max(1, number_gpus) == 0 and model_name in ["a", "b"]
 *
 * It has Python's operators with Python's meaning and precedence: or, and, not, in, not in, == != <
 * <= > >= (also chained), + - * / // % **, unary -, and a if c else b. Values are numbers, 'texts',
 * "texts", lists, True, False and None. These may also be spelled true, false and null. The
 * functions are min max abs len round log sqrt. log(x) is the natural logarithm, and log(x, 2) has
 * base 2.
 * Names of properties stand for their values. A name with other characters than letters, digits and
 * _ is written in back quotes. // and % round down. There are no assignments and no other calls. An
 * expression is compiled once and evaluated without allocation. It has at most
 * TUNE_EXPRESSION_NODES nodes, parentheses and signs included, which limits time and depth.
 *
 * Each value and its type are those of Python. Some things are errors here but not in Python:
 * integers beyond 64 bits, NaN and complex results, texts and lists joined by + or *. Also a result
 * that is a list with names, numbers not in decimal, round() to tens, and min() or max() of a
 * text's letters. Also backslashes other than \\ \' \" \n \t \r. */
#ifndef TUNE_CORE_EXPRESSION_H
#define TUNE_CORE_EXPRESSION_H

#include "core/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_EXPRESSION_NODES 512

struct tune_expression;

/* tune_expression_new - compile an expression. names[count]: the names that may occur. NULL with an
 * error of kind USAGE that marks the place in the text: bad syntax, an unknown name (with the
 * nearest), or too long. where: begins the message ("space.yaml:12:5", "--where").
 * tune_expression_query - the same for a query of rows, where None is a missing value. No
 * comparison with it holds, apart from != and not in. What is computed from it is None. In Python,
 * and in the constraints of a space, both are errors.
 * tune_expression_free - free it; NULL is fine. */
struct tune_expression *tune_expression_new(const char *text, const char *const *names, int count,
                                            const char *where);
struct tune_expression *tune_expression_query(const char *text, const char *const *names, int count,
                                              const char *where);
void tune_expression_free(struct tune_expression *e);

/* tune_expression_value - evaluate for values[count] of the names. Texts in *value are borrowed
 * from values or the expression. -1 with an error: wrong types ('a' < 1), division by zero, or a
 * result that is no number or 64-bit integer. The message shows the expression and the values used.
 * tune_expression_true - 1 or 0, Python's bool() of the value; -1 with an error.
 * tune_expression_uses - whether the expression has the name at that position.
 * tune_expression_text - the text that was compiled; borrowed. */
int tune_expression_value(const struct tune_expression *e, const struct tune_value *values,
                          struct tune_value *value);
int tune_expression_true(const struct tune_expression *e, const struct tune_value *values);
bool tune_expression_uses(const struct tune_expression *e, int name);
const char *tune_expression_text(const struct tune_expression *e);

/* a*x + b compared with 0, in whole numbers. a 0: no x meets it. */
struct tune_linear {
    enum tune_operator op;  /* TUNE_EQUAL, or an order */
    int64_t a, b;
    bool fixed;             /* a does not depend on the values of other names */
};

/* tune_expression_linear - find a comparison of this form that holds wherever the expression is
 * true. x is the name at that position; the others have these values. false: there is none. */
bool tune_expression_linear(const struct tune_expression *e, int name,
                            const struct tune_value *values, struct tune_linear *found);

#ifdef __cplusplus
}
#endif
#endif
