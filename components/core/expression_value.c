/* expression_value.c - run the steps of an expression. Numbers are those of Python if 64 bits can
 * hold them; else it is an error. Integers never wrap around and never become floats by
 * themselves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "core/expression_steps.h"

struct run {
    const struct tune_expression *e;
    const struct tune_value *values;                /* of the names */
    struct tune_value stack[TUNE_EXPRESSION_NODES]; /* [used] */
    int used;
    struct tune_value items[TUNE_EXPRESSION_NODES]; /* items of lists that are made here */
    int items_used;
};

/* ---- complaints ---- */

/* "<where>: <expression>: <what>, where batch_size is 4, number_gpus is 0" */
static int fail(const struct run *r, const char *format, ...) TUNE_PRINTF(2, 3);
static int fail(const struct run *r, const char *format, ...)
{
    char what[256], used[512] = "", one[64];
    const struct tune_expression *e = r->e;
    FORMAT(what, format);
    for (int i = 0; i < e->count; i++) {
        const struct tune_step *s = e->steps + i;
        bool first = s->kind == TUNE_STEP_NAME;
        for (int k = 0; k < i && first; k++)
            first = e->steps[k].kind != TUNE_STEP_NAME || e->steps[k].n != s->n;
        size_t end = strlen(used);
        if (!first || end > sizeof used - 160)
            continue;
        if (tune_value_repr(r->values + s->n, one, sizeof one) >= (int)sizeof one)
            memcpy(one + sizeof one - 4, "...", 4);
        snprintf(used + end, sizeof used - end, "%s%.60s is %s", end ? ", " : ", where ", s->value.text, one);
    }
    return tune_error_usage("%s%s%.300s%s: %s%s", e->where, *e->where ? ": " : "", e->text,
                            strlen(e->text) > 300 ? "..." : "", what, used);
}

static const char *kind(const struct tune_value *v)
{
    static const char *const names[] = {
        [TUNE_VALUE_NONE] = "None",    [TUNE_VALUE_BOOL] = "a boolean", [TUNE_VALUE_INT] = "a whole number",
        [TUNE_VALUE_FLOAT] = "a number", [TUNE_VALUE_TEXT] = "a text",  [TUNE_VALUE_LIST] = "a list",
    };
    return names[v->type];
}

static int mismatch(const struct run *r, enum tune_operator which, const struct tune_value *a, const struct tune_value *b)
{
    return fail(r, "%s does not go with %s and %s", tune_operator_sign(which), kind(a), kind(b));
}

static int too_large(const struct run *r)
{
    return fail(r, "a whole number beyond 64 bits");
}

/* True for None in a query: what is not known there. */
static bool nothing(const struct run *r, const struct tune_value *v)
{
    return r->e->query && v->type == TUNE_VALUE_NONE;
}

/* ---- numbers ---- */

static bool whole(const struct tune_value *v, int64_t *i)
{
    *i = v->type == TUNE_VALUE_BOOL ? v->boolean : v->type == TUNE_VALUE_INT ? v->integer : 0;
    return v->type == TUNE_VALUE_BOOL || v->type == TUNE_VALUE_INT;
}

static int arithmetic(const struct run *r, enum tune_operator which, const struct tune_value *a,
                      const struct tune_value *b, struct tune_value *v)
{
    struct tune_number x, y, result;
    if (nothing(r, a) || nothing(r, b)) {
        *v = tune_value_none();
        return 0;
    }
    if (!tune_value_as_number(a, &x) || !tune_value_as_number(b, &y))
        return mismatch(r, which, a, b);
    switch (tune_number_arithmetic(which, &x, &y, &result)) {
    case TUNE_ARITHMETIC_BY_ZERO: return fail(r, "division by zero");
    case TUNE_ARITHMETIC_BEYOND_64_BITS: return too_large(r);
    case TUNE_ARITHMETIC_BEYOND_FLOATS: return fail(r, "a number beyond what a float holds");
    default: break;
    }
    if (isnan(result.number))
        return fail(r, "the result of %s is no number", tune_operator_sign(which));
    *v = result.whole ? tune_value_int(result.integer) : tune_value_float(result.number);
    return 0;
}

/* ---- comparisons ---- */

/* Compare by <, <=, > or >=. For lists the first different items decide, else their lengths. */
static int ordered(const struct run *r, enum tune_operator which, const struct tune_value *a, const struct tune_value *b,
                   bool *holds)
{
    struct tune_number x, y;
    int order;
    if (nothing(r, a) || nothing(r, b)) {
        order = 2; /* as NaN: no comparison holds */
    } else if (a->type == TUNE_VALUE_LIST && b->type == TUNE_VALUE_LIST) {
        int i = 0;
        while (i < a->list.count && i < b->list.count && tune_value_equal(a->list.items + i, b->list.items + i))
            i++;
        if (i < a->list.count && i < b->list.count)
            return ordered(r, which, a->list.items + i, b->list.items + i, holds);
        order = (a->list.count > b->list.count) - (a->list.count < b->list.count);
    } else if (a->type == TUNE_VALUE_TEXT && b->type == TUNE_VALUE_TEXT) {
        order = tune_value_compare(a, b);
    } else if (tune_value_as_number(a, &x) && tune_value_as_number(b, &y)) {
        order = tune_number_compare(&x, &y);
    } else {
        return mismatch(r, which, a, b);
    }
    *holds = tune_operator_holds(which, order);
    return 0;
}

static int compare(const struct run *r, enum tune_operator which, const struct tune_value *a, const struct tune_value *b,
                   bool *holds)
{
    switch (which) {
    case TUNE_EQUAL: case TUNE_UNEQUAL:
        *holds = tune_value_equal(a, b) == (which == TUNE_EQUAL);
        return 0;
    case TUNE_IN: case TUNE_NOT_IN:
        *holds = false;
        if (b->type == TUNE_VALUE_TEXT && a->type == TUNE_VALUE_TEXT)
            *holds = strstr(b->text, a->text) != NULL;
        else if (b->type != TUNE_VALUE_LIST && !nothing(r, b) && !(b->type == TUNE_VALUE_TEXT && nothing(r, a)))
            return mismatch(r, which, a, b);
        for (int i = 0; b->type == TUNE_VALUE_LIST && i < b->list.count && !*holds; i++)
            *holds = tune_value_equal(a, b->list.items + i);
        *holds = *holds == (which == TUNE_IN);
        return 0;
    default: return ordered(r, which, a, b, holds);
    }
}

static bool truth(const struct tune_value *v)
{
    switch (v->type) {
    case TUNE_VALUE_BOOL: return v->boolean;
    case TUNE_VALUE_INT: return v->integer != 0;
    case TUNE_VALUE_FLOAT: return v->number != 0;
    case TUNE_VALUE_TEXT: return *v->text != 0;
    case TUNE_VALUE_LIST: return v->list.count > 0;
    default: return false;
    }
}

/* ---- functions ---- */

/* Round to the nearest integer, halves to even; with digits, to that many decimals of the exact
 * value. */
static int rounded(const struct run *r, const struct tune_value *a, const struct tune_value *digits, struct tune_value *v)
{
    enum { MOST = 323 }; /* more decimals make no difference for a double */
    char text[700];
    int64_t n = -1, i;
    if (digits && !whole(digits, &n))
        return fail(r, "the digits of round are a whole number, not %s", kind(digits));
    if (digits && n < 0)
        return fail(r, "the digits of round are 0 or more");
    if (whole(a, &i)) {
        *v = tune_value_int(i);
        return 0;
    }
    if (a->type != TUNE_VALUE_FLOAT)
        return fail(r, "round takes a number, not %s", kind(a));
    *v = *a;
    if (digits) {
        if (!isfinite(a->number) || n > MOST)
            return 0;
        snprintf(text, sizeof text, "%.*f", (int)n, a->number);
        v->number = strtod(text, NULL);
        return 0;
    }
    double down = floor(a->number), rest = a->number - down, d = down + (rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0));
    if (!(d >= -0x1p63 && d < 0x1p63))
        return isfinite(d) ? too_large(r) : fail(r, "round of what is no number");
    *v = tune_value_int((int64_t)d);
    return 0;
}

/* min and max: the first of equal items. */
static int extreme(const struct run *r, enum tune_function f, const struct tune_value *a, int n, struct tune_value *v)
{
    const char *name = f == TUNE_CALL_MIN ? "min" : "max";
    if (n == 1) {
        if (a->type != TUNE_VALUE_LIST)
            return fail(r, "%s takes a list, or more than one value, not %s", name, kind(a));
        n = a->list.count;
        a = a->list.items;
    }
    if (n == 0)
        return fail(r, "%s of an empty list", name);
    const struct tune_value *best = a;
    for (int i = 1; i < n && !nothing(r, best); i++) {
        bool better = nothing(r, a + i);
        if (!better)
            TRY(ordered(r, f == TUNE_CALL_MIN ? TUNE_LESS : TUNE_GREATER, a + i, best, &better));
        best = better ? a + i : best;
    }
    *v = *best;
    return 0;
}

/* log and sqrt, as Python's math has them. base NULL: the natural logarithm. */
static int root_or_log(const struct run *r, enum tune_function f, const struct tune_value *a, const struct tune_value *base,
                       struct tune_value *v)
{
    char text[64];
    double x, result;
    bool root = f == TUNE_CALL_SQRT;
    for (int k = 0; k < (base ? 2 : 1); k++) {
        const struct tune_value *one = k ? base : a;
        if (!tune_value_number(one, &x))
            return fail(r, "%s takes a number, not %s", root ? "sqrt" : "log", kind(one));
        tune_value_repr(one, text, sizeof text);
        if (root ? !(x >= 0) : !(x > 0))
            return fail(r, "%s takes a number %s, not %s", root ? "sqrt" : "log", root ? "of 0 or more" : "above 0", text);
        result = root ? sqrt(x) : k ? result / log(x) : log(x);
        if (k && x == 1)
            return fail(r, "division by zero: the logarithm has base 1");
    }
    if (isnan(result))
        return fail(r, "the result of log is no number");
    *v = tune_value_float(result);
    return 0;
}

static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* Call the function on a[n]; *v may be part of a. */
static int call(const struct run *r, enum tune_function f, const struct tune_value *a, int n, struct tune_value *v)
{
    int64_t i;
    for (int k = 0; k < n; k++)
        if (nothing(r, &a[k])) {
            *v = tune_value_none();
            return 0;
        }
    switch (f) {
    case TUNE_CALL_MIN: case TUNE_CALL_MAX: return extreme(r, f, a, n, v);
    case TUNE_CALL_ROUND: return rounded(r, a, n > 1 ? a + 1 : NULL, v);
    case TUNE_CALL_LOG: case TUNE_CALL_SQRT: return root_or_log(r, f, a, n > 1 ? a + 1 : NULL, v);
    case TUNE_CALL_LEN:
        if (a->type != TUNE_VALUE_TEXT && a->type != TUNE_VALUE_LIST)
            return fail(r, "len takes a text or a list, not %s", kind(a));
        *v = tune_value_int(a->type == TUNE_VALUE_TEXT ? characters(a->text) : a->list.count);
        return 0;
    default:
        if (a->type == TUNE_VALUE_FLOAT) {
            *v = tune_value_float(fabs(a->number));
            return 0;
        }
        if (!whole(a, &i))
            return fail(r, "abs takes a number, not %s", kind(a));
        if (i == INT64_MIN)
            return too_large(r);
        *v = tune_value_int(i < 0 ? -i : i);
        return 0;
    }
}

/* ---- steps ---- */

static int negate(const struct run *r, struct tune_value *v)
{
    int64_t i;
    if (nothing(r, v))
        return 0;
    if (v->type == TUNE_VALUE_FLOAT) {
        v->number = -v->number;
        return 0;
    }
    if (!whole(v, &i))
        return fail(r, "- does not go with %s", kind(v));
    if (i == INT64_MIN)
        return too_large(r);
    *v = tune_value_int(-i);
    return 0;
}

/* Make a list of the top n values. */
static void list(struct run *r, int n)
{
    struct tune_value *items = r->items + r->items_used;
    r->used -= n;
    memcpy(items, r->stack + r->used, (size_t)n * sizeof *items);
    r->items_used += n;
    r->stack[r->used++] = (struct tune_value){.type = TUNE_VALUE_LIST, .list = {items, n}};
}

/* Run the step at *at, and move *at to the next one. */
static int step(struct run *r, int *at)
{
    const struct tune_step *s = r->e->steps + (*at)++;
    struct tune_value *top = r->stack + r->used - 1, *below = top - 1;
    bool holds;
    switch (s->kind) {
    case TUNE_STEP_CONSTANT: r->stack[r->used++] = s->value; return 0;
    case TUNE_STEP_NAME: r->stack[r->used++] = r->values[s->n]; return 0;
    case TUNE_STEP_LIST: list(r, s->n); return 0;
    case TUNE_STEP_CALL:
        r->used -= s->n - 1;
        return call(r, s->which, top - (s->n - 1), s->n, top - (s->n - 1));
    case TUNE_STEP_NEGATE: return negate(r, top);
    case TUNE_STEP_NOT: *top = tune_value_bool(!truth(top)); return 0;
    case TUNE_STEP_ARITHMETIC:
        r->used--;
        return arithmetic(r, s->which, below, top, below);
    case TUNE_STEP_COMPARE: case TUNE_STEP_CHAIN:
        TRY(compare(r, s->which, below, top, &holds));
        r->used--;
        *below = s->kind == TUNE_STEP_CHAIN && holds ? *top : tune_value_bool(holds);
        *at = s->kind == TUNE_STEP_CHAIN && !holds ? s->n : *at;
        return 0;
    case TUNE_STEP_JUMP: *at = s->n; return 0;
    case TUNE_STEP_IF:
        r->used--;
        *at = truth(top) ? *at : s->n;
        return 0;
    default: /* or, and */
        if (truth(top) == (s->kind == TUNE_STEP_OR))
            *at = s->n;
        else
            r->used--;
        return 0;
    }
}

static int run(struct run *r)
{
    for (int at = 0; at < r->e->count;)
        TRY(step(r, &at));
    return 0;
}

int tune_expression_value(const struct tune_expression *e, const struct tune_value *values, struct tune_value *value)
{
    struct run r;
    r.e = e;
    r.values = values;
    r.used = r.items_used = 0;
    TRY(run(&r));
    *value = r.stack[0];
    uintptr_t items = (uintptr_t)value->list.items;
    if (value->type == TUNE_VALUE_LIST && items >= (uintptr_t)r.items && items < (uintptr_t)(r.items + r.items_used))
        return fail(&r, "the result is a list made of what names stand for");
    return 0;
}

int tune_expression_true(const struct tune_expression *e, const struct tune_value *values)
{
    struct run r;
    r.e = e;
    r.values = values;
    r.used = r.items_used = 0;
    TRY(run(&r));
    return truth(r.stack);
}
