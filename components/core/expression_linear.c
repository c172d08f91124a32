/* expression_linear.c - find a linear comparison that an expression needs. The steps are run with
 * terms a*x + b in place of values. */
#include "core/expression_steps.h"

/* a*x + b in whole numbers. */
struct term {
    bool known;              /* false: it is not of this form */
    bool varies;             /* a depends on other names */
    bool named;              /* b depends on other names */
    int64_t a, b;
};

static struct term constant(const struct tune_value *v, bool named)
{
    struct term t = {.known = true, .named = named};
    if (v->type == TUNE_VALUE_INT)
        t.b = v->integer;
    else if (v->type == TUNE_VALUE_BOOL)
        t.b = v->boolean;
    else
        t.known = false;
    return t;
}

static struct term sum(const struct term *x, const struct term *y, bool minus)
{
    struct term t = {x->known && y->known, x->varies || y->varies, x->named || y->named, 0, 0};
    bool over = minus ? __builtin_sub_overflow(x->a, y->a, &t.a) || __builtin_sub_overflow(x->b, y->b, &t.b)
                      : __builtin_add_overflow(x->a, y->a, &t.a) || __builtin_add_overflow(x->b, y->b, &t.b);
    t.known = t.known && !over;
    return t;
}

static bool is_constant(const struct term *t)
{
    return t->known && t->a == 0 && !t->varies;
}

static struct term combine(enum tune_operator op, const struct term *x, const struct term *y)
{
    struct term t = {.named = x->named || y->named};
    struct tune_number result;
    if (op == TUNE_ADD || op == TUNE_SUBTRACT)
        return sum(x, y, op == TUNE_SUBTRACT);
    if (is_constant(x) && is_constant(y)) {
        struct tune_number a = tune_number_whole(x->b), b = tune_number_whole(y->b);
        t.known = tune_number_arithmetic(op, &a, &b, &result) == TUNE_ARITHMETIC_GOOD && result.whole;
        t.b = t.known ? result.integer : 0;
    } else if (op == TUNE_MULTIPLY && x->known && y->known && (is_constant(x) || is_constant(y))) {
        const struct term *factor = is_constant(x) ? x : y, *of = factor == x ? y : x;
        t.varies = of->varies || factor->named;
        t.known = !__builtin_mul_overflow(of->a, factor->b, &t.a) && !__builtin_mul_overflow(of->b, factor->b, &t.b);
    }
    return t;
}

/* True if the step is the end of the expression, or an `and` that decides the whole of it. */
static bool needs_all(const struct tune_expression *e, int at)
{
    while (at < e->count && e->steps[at].kind == TUNE_STEP_AND)
        at = e->steps[at].n;
    return at == e->count;
}

/* True if b does not compare so with 0. */
static bool never(int op, int64_t b)
{
    return !tune_operator_holds((enum tune_operator)op, (b > 0) - (b < 0));
}

bool tune_expression_linear(const struct tune_expression *e, int name, const struct tune_value *values, struct tune_linear *found)
{
    struct term stack[TUNE_EXPRESSION_NODES];
    const struct tune_value minus_one = tune_value_int(-1);
    struct term negative = constant(&minus_one, false);
    bool any = false;
    int used = 0;
    for (int at = 0; at < e->count; at++) {
        const struct tune_step *s = &e->steps[at];
        struct term *top = stack + used - 1, difference;
        switch (s->kind) {
        case TUNE_STEP_CONSTANT: stack[used++] = constant(&s->value, false); break;
        case TUNE_STEP_NAME:
            stack[used++] = s->n == name ? (struct term){.known = true, .a = 1} : constant(&values[s->n], true);
            break;
        case TUNE_STEP_NEGATE: *top = combine(TUNE_MULTIPLY, top, &negative); break;
        case TUNE_STEP_NOT: top->known = false; break;
        case TUNE_STEP_LIST: case TUNE_STEP_CALL:
            used -= s->n;
            stack[used++] = (struct term){.known = false};
            break;
        case TUNE_STEP_ARITHMETIC:
            top[-1] = combine((enum tune_operator)s->which, top - 1, top);
            used--;
            break;
        case TUNE_STEP_COMPARE:
            difference = sum(top - 1, top, true);
            if (--used == 1 && difference.known && s->which != TUNE_UNEQUAL && s->which < TUNE_IN && needs_all(e, at + 1) &&
                (difference.a != 0 || never(s->which, difference.b)) && (!any || s->which == TUNE_EQUAL)) {
                *found = (struct tune_linear){(enum tune_operator)s->which, difference.a, difference.b, !difference.varies};
                any = true;
            }
            stack[used - 1].known = false;
            break;
        case TUNE_STEP_AND:
            if (used == 1 && needs_all(e, at)) {
                used = 0;
                break;
            }
            return any;
        default: return any;
        }
    }
    return any;
}
