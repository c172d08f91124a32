/* steps.h - a compiled expression, for the two files that make and run it (expression.c,
 * expression_value.c).
 *
 * Steps work on a stack of values. `a < b < c or d` is
 *
 *     0 NAME a   1 NAME b   2 CHAIN < 5   3 NAME c   4 COMPARE <   5 OR 7   6 NAME d
 *
 * CHAIN compares the two on top. If that holds, the right one stays for the next comparison. Else
 * False takes their place, and the rest is jumped over. OR and AND leave their operand and jump if
 * it decides, else they drop it. */
#ifndef TUNE_SPACES_STEPS_H
#define TUNE_SPACES_STEPS_H

#include "sweeps/spaces/expression.h"
#include "templates/expression.h"

enum tune_step_kind {
    TUNE_STEP_CONSTANT, TUNE_STEP_NAME, TUNE_STEP_LIST, TUNE_STEP_CALL, TUNE_STEP_NEGATE,
    TUNE_STEP_NOT, TUNE_STEP_ARITHMETIC, TUNE_STEP_COMPARE, TUNE_STEP_CHAIN, TUNE_STEP_OR,
    TUNE_STEP_AND,
};

enum tune_function {
    TUNE_CALL_ABS, TUNE_CALL_LEN, TUNE_CALL_MAX, TUNE_CALL_MIN, TUNE_CALL_ROUND, TUNE_CALLS
};

struct tune_step {
    enum tune_step_kind kind;
    int which;               /* operator or function */
    int n;                   /* a name's position, the count of items or arguments, where to jump */
    struct tune_value value; /* a constant; a name, as a text */
};

struct tune_expression {
    struct tune_step steps[TUNE_EXPRESSION_NODES];
    int count;
    struct tune_value items[TUNE_EXPRESSION_NODES]; /* of the lists that are constant */
    int items_used;
    const char *text, *where;
    char pool[]; /* text, where, names and texts */
};

#endif
