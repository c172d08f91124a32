/* expression_steps.h - a compiled expression. Private to expression.c, which makes it, and
 * expression_value.c, which runs it.
 *
 * Steps work on a stack of values. `a < b < c or d` is
 *
 *     0 NAME a   1 NAME b   2 CHAIN < 5   3 NAME c   4 COMPARE <   5 OR 7   6 NAME d
 *
 * CHAIN compares the two top values. If the comparison is true, the right one stays for the next
 * comparison. Otherwise False replaces both, and it jumps to the end. OR and AND jump and keep
 * their operand if it decides the result; otherwise they drop it. `a if c else b` is c, IF, a,
 * JUMP, b. IF drops the condition, and jumps to b if it is false. */
#ifndef TUNE_CORE_EXPRESSION_STEPS_H
#define TUNE_CORE_EXPRESSION_STEPS_H

#include "core/expression.h"
#include "core/operators.h"

enum tune_step_kind {
    TUNE_STEP_CONSTANT, TUNE_STEP_NAME, TUNE_STEP_LIST, TUNE_STEP_CALL, TUNE_STEP_NEGATE,
    TUNE_STEP_NOT, TUNE_STEP_ARITHMETIC, TUNE_STEP_COMPARE, TUNE_STEP_CHAIN, TUNE_STEP_OR,
    TUNE_STEP_AND, TUNE_STEP_IF, TUNE_STEP_JUMP,
};

/* tune_step_jumps - whether n is the target of a jump. */
static inline bool tune_step_jumps(enum tune_step_kind kind)
{
    return kind >= TUNE_STEP_CHAIN;
}

enum tune_function {
    TUNE_CALL_ABS, TUNE_CALL_LEN, TUNE_CALL_LOG, TUNE_CALL_MAX, TUNE_CALL_MIN, TUNE_CALL_ROUND,
    TUNE_CALL_SQRT, TUNE_CALLS
};

struct tune_step {
    enum tune_step_kind kind;
    int which;               /* operator or function */
    int n;                   /* position of a name, number of items or arguments, or target of a
                              * jump */
    struct tune_value value; /* a constant, or a name as text */
};

struct tune_expression {
    struct tune_step steps[TUNE_EXPRESSION_NODES];
    int count;
    bool query; /* nothing compares with None */
    struct tune_value items[TUNE_EXPRESSION_NODES]; /* items of constant lists */
    int items_used;
    const char *text, *where;
    char pool[]; /* memory of memory of text, where, names and texts */
};

#endif
