/* operators.c - operators by precedence, and Python's numbers. Integers never wrap around, and
 * never become floats by themselves. */
#include "core/operators.h"

#include <math.h>
#include <string.h>

#include "core/try.h"

/* ---- operators ---- */

static const struct {
    const char *sign;
    enum tune_level level;
} operators[] = { /* longer operators before their prefixes */
    [TUNE_NO_OPERATOR] = {"", 0},
    [TUNE_OR] = {"or", TUNE_LEVEL_OR},
    [TUNE_AND] = {"and", TUNE_LEVEL_AND},
    [TUNE_EQUAL] = {"==", TUNE_LEVEL_COMPARE},
    [TUNE_UNEQUAL] = {"!=", TUNE_LEVEL_COMPARE},
    [TUNE_LESS_EQUAL] = {"<=", TUNE_LEVEL_COMPARE},
    [TUNE_GREATER_EQUAL] = {">=", TUNE_LEVEL_COMPARE},
    [TUNE_LESS] = {"<", TUNE_LEVEL_COMPARE},
    [TUNE_GREATER] = {">", TUNE_LEVEL_COMPARE},
    [TUNE_IN] = {"in", TUNE_LEVEL_COMPARE},
    [TUNE_NOT_IN] = {"not in", TUNE_LEVEL_COMPARE},
    [TUNE_ADD] = {"+", TUNE_LEVEL_ADD},
    [TUNE_SUBTRACT] = {"-", TUNE_LEVEL_ADD},
    [TUNE_CONCATENATE] = {"~", TUNE_LEVEL_CONCATENATE},
    [TUNE_FLOOR] = {"//", TUNE_LEVEL_MULTIPLY},
    [TUNE_POWER] = {"**", 0},
    [TUNE_MULTIPLY] = {"*", TUNE_LEVEL_MULTIPLY},
    [TUNE_DIVIDE] = {"/", TUNE_LEVEL_MULTIPLY},
    [TUNE_MODULO] = {"%", TUNE_LEVEL_MULTIPLY},
};

enum tune_level tune_operator_level(enum tune_operator op)
{
    return operators[op].level;
}

const char *tune_operator_sign(enum tune_operator op)
{
    return operators[op].sign;
}

enum tune_operator tune_operator_read(const char *text, size_t size, size_t *length)
{
    for (int op = TUNE_EQUAL; op <= TUNE_MODULO; op++) {
        *length = strlen(operators[op].sign);
        if (op != TUNE_IN && op != TUNE_NOT_IN && *length <= size &&
            memcmp(text, operators[op].sign, *length) == 0)
            return (enum tune_operator)op;
    }
    return TUNE_NO_OPERATOR;
}

static size_t digits(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

size_t tune_number_length(const char *text, size_t size, bool point_alone, bool *whole)
{
    size_t n = digits(text, size, 0), end;
    *whole = true;
    if (n < size && text[n] == '.' && ((end = digits(text, size, n + 1)) > n + 1 || point_alone)) {
        *whole = false;
        n = end;
    }
    if (n < size && (text[n] | 32) == 'e') {
        size_t sign = n + 1 < size && (text[n + 1] == '+' || text[n + 1] == '-');
        if ((end = digits(text, size, n + 1 + sign)) > n + 1 + sign) {
            *whole = false;
            n = end;
        }
    }
    return n;
}

int tune_expression_parse(struct tune_expression_parser *p, enum tune_level least, void **value)
{
    struct tune_operator_row row = {.index = -1, .mark = -1};
    enum tune_level level, before = 0;
    TRY(p->operand(p, least, &row.left));
    while ((level = tune_operator_level(row.op = p->operator_at(p))) > 0 && level >= least) {
        row.index = level == before ? row.index + 1 : 0;
        before = level;
        TRY(p->before(p, &row));
        TRY(tune_expression_parse(p, level + 1, &row.right));
        row.last = tune_operator_level(p->operator_at(p)) != level;
        TRY(p->after(p, &row));
    }
    *value = row.left;
    return 0;
}

/* ---- numbers ---- */

static uint64_t size_of(int64_t i)
{
    return i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
}

/* a / b as a float, rounded once: at least 64 bits of the quotient, the last of them set where more
 * follow. */
static double quotient(int64_t a, int64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    const int64_t exact = (int64_t)1 << 53;
    if (a >= -exact && a <= exact && b >= -exact && b <= exact)
        return (double)a / (double)b;
    if (a == 0)
        return b < 0 ? -0.0 : 0.0;
    int shift = 64 + __builtin_clzll(size_of(a));
    wide numerator = (wide)size_of(a) << shift, q = numerator / size_of(b);
    q |= q * size_of(b) != numerator;
    return ldexp((double)q, -shift) * ((a < 0) != (b < 0) ? -1 : 1);
}

/* True if a ** b needs more than 64 bits; b >= 0. */
static bool power(int64_t a, int64_t b, int64_t *result)
{
    *result = 1;
    if (a == 0 || a == 1 || a == -1) {
        *result = b == 0 ? 1 : a < 0 && b % 2 == 0 ? 1 : a;
        return false;
    }
    for (int64_t i = 0; i < b; i++) /* at most 63 times: |a| > 1 */
        if (__builtin_mul_overflow(*result, a, result))
            return true;
    return false;
}

static enum tune_arithmetic of_whole(enum tune_operator op, int64_t a, int64_t b,
                                     struct tune_number *result)
{
    int64_t i = 0;
    bool over = false;
    switch (op) {
    case TUNE_ADD: over = __builtin_add_overflow(a, b, &i); break;
    case TUNE_SUBTRACT: over = __builtin_sub_overflow(a, b, &i); break;
    case TUNE_MULTIPLY: over = __builtin_mul_overflow(a, b, &i); break;
    case TUNE_DIVIDE: *result = tune_number_float(quotient(a, b)); return TUNE_ARITHMETIC_GOOD;
    case TUNE_FLOOR:
        over = a == INT64_MIN && b == -1;
        i = over ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    case TUNE_MODULO:
        i = b == -1 ? 0 : a % b;
        i += i != 0 && (i < 0) != (b < 0) ? b : 0;
        break;
    default: over = power(a, b, &i);
    }
    *result = tune_number_whole(i);
    return over ? TUNE_ARITHMETIC_BEYOND_64_BITS : TUNE_ARITHMETIC_GOOD;
}

/* Python's remainder, which has b's sign, and the floored quotient that belongs to it. */
static double modulo(double a, double b, double *floored)
{
    double rest = fmod(a, b), q = (a - rest) / b;
    if (rest == 0) {
        rest = copysign(0, b);
    } else if ((b < 0) != (rest < 0)) {
        rest += b;
        q -= 1;
    }
    /* q was rounded: take the nearest integer */
    *floored = q == 0 ? copysign(0, a / b) : floor(q) + (q - floor(q) > 0.5);
    return rest;
}

enum tune_arithmetic tune_number_arithmetic(enum tune_operator op, const struct tune_number *a,
                                            const struct tune_number *b,
                                            struct tune_number *result)
{
    double x = a->number, y = b->number, d, floored;
    if ((op == TUNE_DIVIDE || op == TUNE_FLOOR || op == TUNE_MODULO) && y == 0)
        return TUNE_ARITHMETIC_BY_ZERO;
    if (a->whole && b->whole && !(op == TUNE_POWER && b->integer < 0))
        return of_whole(op, a->integer, b->integer, result);
    switch (op) {
    case TUNE_ADD: d = x + y; break;
    case TUNE_SUBTRACT: d = x - y; break;
    case TUNE_MULTIPLY: d = x * y; break;
    case TUNE_DIVIDE: d = x / y; break;
    case TUNE_FLOOR: modulo(x, y, &d); break;
    case TUNE_MODULO: d = modulo(x, y, &floored); break;
    default:
        d = pow(x, y);
        if (isinf(d) && isfinite(x) && isfinite(y))
            return x == 0 ? TUNE_ARITHMETIC_BY_ZERO : TUNE_ARITHMETIC_BEYOND_FLOATS;
    }
    *result = tune_number_float(d);
    return TUNE_ARITHMETIC_GOOD;
}

/* An integer against a float that is a number, without rounding either. */
static int compare_mixed(int64_t i, double d)
{
    if (d >= 0x1p63 || d < -0x1p63)
        return d > 0 ? -1 : 1;
    int64_t towards_zero = (int64_t)d;
    double rest = d - (double)towards_zero; /* exact, because floats above 2^53 have no fraction */
    if (i != towards_zero)
        return i < towards_zero ? -1 : 1;
    return rest > 0 ? -1 : rest < 0;
}

int tune_number_compare(const struct tune_number *a, const struct tune_number *b)
{
    if (a->whole && b->whole)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (isnan(a->number) || isnan(b->number))
        return 2;
    if (a->whole)
        return compare_mixed(a->integer, b->number);
    if (b->whole)
        return -compare_mixed(b->integer, a->number);
    return (a->number > b->number) - (a->number < b->number);
}

bool tune_operator_holds(enum tune_operator op, int order)
{
    switch (op) {
    case TUNE_EQUAL: return order == 0;
    case TUNE_UNEQUAL: return order != 0;
    case TUNE_LESS_EQUAL: return order == 0 || order == -1;
    case TUNE_GREATER_EQUAL: return order == 0 || order == 1;
    case TUNE_LESS: return order == -1;
    default: return order == 1;
    }
}
