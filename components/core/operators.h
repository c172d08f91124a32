/* operators.h - the operators of all our expressions, their precedence, and Python's arithmetic on
 * 64-bit integers and doubles. Templates (jinja_*) and the constraints of spaces
 * (core/expression.h) are built on it; each has its own operands, values and messages.
 *
 * Source: the Python language reference, sections 6.5 to 6.16; CPython's float_divmod. */
#ifndef TUNE_CORE_OPERATORS_H
#define TUNE_CORE_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operators ---- */

enum tune_operator {
    TUNE_NO_OPERATOR, TUNE_OR, TUNE_AND,
    TUNE_EQUAL, TUNE_UNEQUAL, TUNE_LESS_EQUAL, TUNE_GREATER_EQUAL, TUNE_LESS, TUNE_GREATER,
    TUNE_IN, TUNE_NOT_IN,
    TUNE_ADD, TUNE_SUBTRACT, TUNE_CONCATENATE, TUNE_FLOOR, TUNE_POWER, TUNE_MULTIPLY, TUNE_DIVIDE,
    TUNE_MODULO,
};

/* How tightly operators bind, the loosest first. An operand with a not before it is at
 * LEVEL_NOT. */
enum tune_level {
    TUNE_LEVEL_OR = 1, TUNE_LEVEL_AND, TUNE_LEVEL_NOT, TUNE_LEVEL_COMPARE, TUNE_LEVEL_ADD,
    TUNE_LEVEL_CONCATENATE, TUNE_LEVEL_MULTIPLY,
};

/* tune_operator_level - the level of op; 0: none. ** has no level, because it belongs to an
 * operand. */
enum tune_level tune_operator_level(enum tune_operator op);

/* tune_operator_sign - "+", "not in". */
const char *tune_operator_sign(enum tune_operator op);

/* tune_operator_read - the operator that text[size] begins with, and its length in bytes. Words
 * (or, and, in, not in) are not read. TUNE_NO_OPERATOR: there is none. */
enum tune_operator tune_operator_read(const char *text, size_t size, size_t *length);

/* tune_number_length - bytes of the unsigned decimal number that text[size] begins with.
 * *whole: it has no point and no exponent. point_alone: "1." and ".5" are numbers, too. */
size_t tune_number_length(const char *text, size_t size, bool point_alone, bool *whole);

/* ---- parsing ---- */

/* A row of operators of one level, as in a < b <= c. */
struct tune_operator_row {
    enum tune_operator op;  /* the current operator */
    int index;              /* its index in the row, from 0 */
    bool last;              /* in `after`: no operator of this level follows */
    void *left, *right;     /* operands; `after` sets left to the result */
    int mark;               /* for use by `before` and `after`; -1 until one of them sets it */
};

/* The functions that a language gives to the parser. The language's own parser struct begins with
 * this one. They return 0, or -1 with an error. */
struct tune_expression_parser {
    /* the operator at the current token; TUNE_NO_OPERATOR: none. It does not move to the next
     * token. */
    enum tune_operator (*operator_at)(struct tune_expression_parser *p);
    /* reads an operand, with any `not` before it at level NOT or looser */
    int (*operand)(struct tune_expression_parser *p, enum tune_level least, void **value);
    /* moves past the operator; its left operand was read */
    int (*before)(struct tune_expression_parser *p, struct tune_operator_row *row);
    /* joins the operands */
    int (*after)(struct tune_expression_parser *p, struct tune_operator_row *row);
};

/* tune_expression_parse - read an expression whose operators have at least this level, by
 * precedence climbing. *value: the result of `operand` and `after`. */
int tune_expression_parse(struct tune_expression_parser *p, enum tune_level least, void **value);

/* ---- numbers ---- */

struct tune_number {
    bool whole;
    int64_t integer; /* if whole */
    double number;   /* the value as a double; for an integer the nearest one */
};

/* tune_number_whole, tune_number_float - the number as an integer, as a float. */
static inline struct tune_number tune_number_whole(int64_t integer)
{
    struct tune_number number = {true, integer, (double)integer};
    return number;
}
static inline struct tune_number tune_number_float(double value)
{
    struct tune_number number = {false, 0, value};
    return number;
}

enum tune_arithmetic {
    TUNE_ARITHMETIC_GOOD,
    TUNE_ARITHMETIC_BY_ZERO,
    TUNE_ARITHMETIC_BEYOND_64_BITS, /* Python's integers have no limit */
    TUNE_ARITHMETIC_BEYOND_FLOATS,  /* for ** only */
};

/* tune_number_arithmetic - a op b as Python has it, for + - * / // % **. A float result may be
 * infinite or NaN.
 * tune_number_compare - -1, 0 or 1, exact for every pair; 2: one is NaN.
 * tune_operator_holds - whether a comparison with this order is true. op: TUNE_EQUAL to
 * TUNE_GREATER. */
enum tune_arithmetic tune_number_arithmetic(enum tune_operator op, const struct tune_number *a,
                                            const struct tune_number *b,
                                            struct tune_number *result);
int tune_number_compare(const struct tune_number *a, const struct tune_number *b);
bool tune_operator_holds(enum tune_operator op, int order);

#ifdef __cplusplus
}
#endif
#endif
