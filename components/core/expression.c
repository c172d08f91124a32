/* expression.c - compile the text of an expression to steps.
 *
 * It uses precedence climbing with Python's grammar: or, and, not, comparisons, + -, * / // %,
 * unary -, **. Steps are written in the order in which they run, so there is no tree. The number of
 * steps, parentheses and signs is limited, which also limits recursion. */
#include "core/expression.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/try.h"
#include "core/expression_steps.h"

enum token {
    END, VALUE, NAME, /* operands, with a value */
    OR, AND, NOT, IN, IF, ELSE, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COMMA,
    OPERATOR, /* a function: this + its number */
};

static const char *const functions[TUNE_CALLS] = {"abs", "len", "log", "max", "min", "round", "sqrt"};

struct parser {
    struct tune_expression_parser core; /* must be the first member: core/operators.h passes
                                         * this pointer back */
    struct tune_expression *e;
    const char *const *names;
    int count;
    const char *at;          /* text after the token */
    char *pool;              /* next free byte */
    enum token token;
    const char *begin;       /* start of the token */
    enum tune_operator which;
    struct tune_value value;
    bool quoted;             /* the NAME is in back quotes */
    int parts;
};

/* ---- complaints ---- */

/* Set the error, with the text below it and the place marked. Long texts are cut around the
 * place. */
static int fail_at(const struct parser *p, const char *at, const char *format, ...) TUNE_PRINTF(3, 4);
static int fail_at(const struct parser *p, const char *at, const char *format, ...)
{
    enum { BEFORE = 90, WIDTH = 120 };
    char what[512], line[WIDTH + 1], spaces[WIDTH + 1];
    FORMAT(what, format);
    const char *from = at - p->e->text > BEFORE ? at - BEFORE : p->e->text;
    while (from < at && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    snprintf(line, sizeof line, "%s", from);
    for (size_t end = strlen(line); end > 0 && ((unsigned char)from[end] & 0xC0) == 0x80;)
        line[--end] = 0; /* do not cut inside a character */
    int n = 0;
    for (char *c = line; *c; c++) {
        if (c < line + (at - from) && ((unsigned char)*c & 0xC0) != 0x80)
            spaces[n++] = ' ';
        if ((unsigned char)*c < ' ')
            *c = ' ';
    }
    spaces[n] = 0;
    return tune_error_usage("%s%s%s\n  %s\n  %s^", p->e->where, *p->e->where ? ": " : "", what,
                            line, spaces);
}

static int unexpected(const struct parser *p, const char *wanted)
{
    if (p->token == END)
        return fail_at(p, p->begin, "the expression ends here, expected %s", wanted);
    return fail_at(p, p->begin, "expected %s, found %.*s", wanted, (int)(p->at - p->begin > 40 ? 40 : p->at - p->begin), p->begin);
}

/* ---- tokens ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int number(struct parser *p)
{
    char digits[64];
    bool whole;
    size_t size = tune_number_length(p->begin, strlen(p->begin), true, &whole);
    const char *s = p->at = p->begin + size;
    if (is_letter(*s) || *s == '.')
        return fail_at(p, s, "%.*s is no number; whole numbers are decimal, without '_'", (int)(size > 40 ? 40 : size) + 1,
                       p->begin);
    if (size >= sizeof digits)
        return fail_at(p, p->begin, "a number of more than %zu characters", sizeof digits - 1);
    snprintf(digits, sizeof digits, "%.*s", (int)size, p->begin);
    p->token = VALUE;
    p->value = tune_value_float(strtod(digits, NULL));
    if (!whole)
        return 0;
    if (size > 1 && *digits == '0')
        return fail_at(p, p->begin, "a whole number does not begin with 0");
    errno = 0;
    p->value = tune_value_int(strtoll(digits, NULL, 10));
    return errno ? fail_at(p, p->begin, "a whole number beyond 64 bits") : 0;
}

/* Read the text between the quotes at p->begin: a string with Python's escapes, or, between
 * backquotes, a name without escapes. */
static int quoted(struct parser *p)
{
    static const char from[] = "\\'\"ntr", to[] = "\\'\"\n\t\r";
    char quote = *p->begin, *start = p->pool;
    const char *s = p->begin + 1;
    for (; *s && *s != quote; s++) {
        char c = *s;
        if (c == '\\' && quote != '`') {
            const char *known = s[1] ? strchr(from, s[1]) : NULL;
            if (!known)
                return fail_at(p, s, "a backslash takes one of \\ ' \" n t r");
            c = to[known - from];
            s++;
        }
        *p->pool++ = c;
    }
    if (!*s)
        return fail_at(p, p->begin, "the closing %c is missing", quote);
    *p->pool++ = 0;
    p->at = s + 1;
    p->token = quote == '`' ? NAME : VALUE;
    p->quoted = quote == '`';
    p->value = tune_value_text(start);
    return 0;
}

static int word(struct parser *p)
{
    static const struct {
        const char *word;
        enum token token;
        struct tune_value value;
    } words[] = {
        {"or", OR, {TUNE_VALUE_NONE, {0}}}, {"and", AND, {TUNE_VALUE_NONE, {0}}}, {"not", NOT, {TUNE_VALUE_NONE, {0}}},
        {"in", IN, {TUNE_VALUE_NONE, {0}}}, {"if", IF, {TUNE_VALUE_NONE, {0}}}, {"else", ELSE, {TUNE_VALUE_NONE, {0}}}, {"None", VALUE, {TUNE_VALUE_NONE, {0}}}, {"null", VALUE, {TUNE_VALUE_NONE, {0}}},
        {"True", VALUE, {TUNE_VALUE_BOOL, {true}}}, {"true", VALUE, {TUNE_VALUE_BOOL, {true}}},
        {"False", VALUE, {TUNE_VALUE_BOOL, {false}}}, {"false", VALUE, {TUNE_VALUE_BOOL, {false}}},
    };
    const char *s = p->begin;
    while (is_letter(*s) || is_digit(*s))
        s++;
    size_t size = (size_t)(s - p->begin);
    p->at = s;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == size && memcmp(words[i].word, p->begin, size) == 0) {
            p->token = words[i].token;
            p->value = words[i].value;
            return 0;
        }
    p->token = NAME;
    p->quoted = false;
    p->value = tune_value_text(p->pool);
    memcpy(p->pool, p->begin, size);
    p->pool[size] = 0;
    p->pool += size + 1;
    return 0;
}

static int sign(struct parser *p)
{
    static const char brackets[] = "()[],";
    const char *bracket = strchr(brackets, *p->begin);
    size_t length = 1;
    p->token = bracket ? OPEN + (enum token)(bracket - brackets) : OPERATOR;
    p->which = bracket ? TUNE_NO_OPERATOR : tune_operator_read(p->begin, strlen(p->begin), &length);
    p->at = p->begin + length;
    if (bracket || (p->which && p->which != TUNE_CONCATENATE))
        return 0;
    if (*p->begin == '=')
        return fail_at(p, p->begin, "nothing is assigned here; equality is ==");
    return fail_at(p, p->begin, "nothing begins with this character");
}

static int advance(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
    p->begin = p->at;
    char c = *p->begin;
    if (!c) {
        p->token = END;
        return 0;
    }
    if (is_digit(c) || (c == '.' && is_digit(p->begin[1])))
        return number(p);
    if (c == '\'' || c == '"' || c == '`')
        return quoted(p);
    return is_letter(c) ? word(p) : sign(p);
}

/* ---- steps ---- */

/* Count one more node, within the limit. */
static int count_part(struct parser *p)
{
    if (p->parts++ < TUNE_EXPRESSION_NODES)
        return 0;
    return fail_at(p, p->begin, "too long: more than %d parts", TUNE_EXPRESSION_NODES);
}

static int emit(struct parser *p, enum tune_step_kind kind, int which, int n, struct tune_value value)
{
    TRY(count_part(p));
    p->e->steps[p->e->count++] = (struct tune_step){kind, which, n, value};
    return 0;
}

static int binary(struct parser *p, enum tune_level least)
{
    void *none;
    return tune_expression_parse(&p->core, least, &none);
}

static int expect(struct parser *p, enum token token, const char *wanted)
{
    return p->token == token ? advance(p) : unexpected(p, wanted);
}

static void reverse(struct tune_step *steps, int count)
{
    for (int i = 0; i < count / 2; i++) {
        struct tune_step step = steps[i];
        steps[i] = steps[count - 1 - i];
        steps[count - 1 - i] = step;
    }
}

/* Move the steps from `middle` on before those from `begin` on. */
static void swap(struct tune_expression *e, int begin, int middle)
{
    for (int i = begin; i < e->count; i++)
        if (tune_step_jumps(e->steps[i].kind))
            e->steps[i].n += i < middle ? e->count - middle : begin - middle;
    reverse(e->steps + begin, middle - begin);
    reverse(e->steps + middle, e->count - middle);
    reverse(e->steps + begin, e->count - begin);
}

/* Parse a, or a if c else b: the steps of c, IF, a, JUMP, b. */
static int whole_value(struct parser *p)
{
    struct tune_expression *e = p->e;
    int begin = e->count, middle, otherwise;
    TRY(binary(p, TUNE_LEVEL_OR));
    if (p->token != IF)
        return 0;
    TRY(advance(p));
    middle = e->count;
    TRY(binary(p, TUNE_LEVEL_OR));
    TRY(expect(p, ELSE, "an operator or \"else\""));
    otherwise = begin + e->count - middle; /* where IF is going to be */
    TRY(emit(p, TUNE_STEP_IF, 0, 0, tune_value_none()));
    swap(e, begin, middle);
    TRY(emit(p, TUNE_STEP_JUMP, 0, 0, tune_value_none()));
    e->steps[otherwise].n = e->count;
    int jump = e->count - 1;
    TRY(whole_value(p));
    e->steps[jump].n = e->count;
    return 0;
}

/* Parse values between commas up to `close`; a last comma is allowed. *n: their number. */
static int values(struct parser *p, enum token close, const char *wanted, int *n)
{
    *n = 0;
    TRY(count_part(p));
    TRY(advance(p));
    while (p->token != close) {
        TRY(whole_value(p));
        ++*n;
        if (p->token != COMMA)
            break;
        TRY(advance(p));
    }
    return expect(p, close, wanted);
}

/* Make a list of constants a constant. */
static int list(struct parser *p)
{
    struct tune_expression *e = p->e;
    int begin = e->count, n;
    TRY(values(p, CLOSE_LIST, "',' or ']'", &n));
    bool constant = e->count - begin == n;
    for (int i = 0; i < n && constant; i++)
        constant = e->steps[begin + i].kind == TUNE_STEP_CONSTANT;
    if (!constant)
        return emit(p, TUNE_STEP_LIST, 0, n, tune_value_none());
    struct tune_value v = {.type = TUNE_VALUE_LIST, .list = {e->items + e->items_used, n}};
    for (int i = 0; i < n; i++)
        e->items[e->items_used++] = e->steps[begin + i].value;
    e->count = begin;
    return emit(p, TUNE_STEP_CONSTANT, 0, 0, v);
}

static int call(struct parser *p, const char *name, const char *at)
{
    int f = tune_name_find(functions, TUNE_CALLS, name), n;
    if (f < 0)
        return fail_at(p, at, "unknown function \"%.60s\"; there are abs, len, log, max, min, round and sqrt", name);
    TRY(values(p, CLOSE, "',' or ')'", &n));
    int most = f == TUNE_CALL_ROUND || f == TUNE_CALL_LOG         ? 2
               : f == TUNE_CALL_MAX || f == TUNE_CALL_MIN         ? TUNE_EXPRESSION_NODES
                                                                  : 1;
    if (n < 1 || n > most)
        return fail_at(p, at, "%s takes %s", name, most == 1 ? "one value" : most == 2 ? "one or two values" : "one value or more");
    return emit(p, TUNE_STEP_CALL, f, n, tune_value_none());
}

static int name(struct parser *p)
{
    struct tune_value value = p->value;
    const char *at = p->begin;
    bool in_quotes = p->quoted;
    TRY(advance(p));
    if (p->token == OPEN && !in_quotes)
        return call(p, value.text, at);
    int index = tune_name_find(p->names, p->count, value.text);
    if (index >= 0)
        return emit(p, TUNE_STEP_NAME, 0, index, value);
    const char *nearest = tune_nearest(value.text, p->names, p->count, NULL);
    return fail_at(p, at, "unknown name \"%.60s\"; %s%s%s%s", value.text, nearest ? "the nearest is \"" : "",
                   nearest ? nearest : "", nearest ? "\"; " : "",
                   p->count > 0 ? "a text stands in quotes" : "there are no names here");
}

static int primary(struct parser *p)
{
    switch (p->token) {
    case VALUE:
        TRY(emit(p, TUNE_STEP_CONSTANT, 0, 0, p->value));
        return advance(p);
    case NAME: return name(p);
    case OPEN_LIST: return list(p);
    case OPEN:
        TRY(count_part(p));
        TRY(advance(p));
        TRY(whole_value(p));
        return expect(p, CLOSE, "an operator or ')'");
    default: return unexpected(p, "a value");
    }
}

/* Parse -x, x ** y or x. -x ** y means -(x ** y), and y may have a sign. */
static int unary(struct parser *p)
{
    struct tune_expression *e = p->e;
    int begin = e->count;
    if (p->token != OPERATOR || p->which != TUNE_SUBTRACT) {
        TRY(primary(p));
        if (p->token != OPERATOR || p->which != TUNE_POWER)
            return 0;
        TRY(advance(p));
        TRY(unary(p));
        return emit(p, TUNE_STEP_ARITHMETIC, TUNE_POWER, 0, tune_value_none());
    }
    TRY(count_part(p));
    TRY(advance(p));
    TRY(unary(p));
    struct tune_value *v = &e->steps[begin].value;
    bool constant = e->count == begin + 1 && e->steps[begin].kind == TUNE_STEP_CONSTANT;
    if (constant && v->type == TUNE_VALUE_INT) /* never the smallest integer, because literals have
                                                * no sign */
        v->integer = -v->integer;
    else if (constant && v->type == TUNE_VALUE_FLOAT)
        v->number = -v->number;
    else
        return emit(p, TUNE_STEP_NEGATE, 0, 0, tune_value_none());
    return 0;
}

/* ---- functions for core/operators.h ---- */

static enum tune_operator operator_at(struct tune_expression_parser *core)
{
    const struct parser *p = (const struct parser *)core;
    switch (p->token) {
    case OR: return TUNE_OR;
    case AND: return TUNE_AND;
    case NOT: return TUNE_NOT_IN;
    case IN: return TUNE_IN;
    default: return p->token == OPERATOR ? p->which : TUNE_NO_OPERATOR;
    }
}

static int operand(struct tune_expression_parser *core, enum tune_level least, void **value)
{
    struct parser *p = (struct parser *)core;
    *value = NULL; /* steps are written in the order of the text */
    if (p->token != NOT || least > TUNE_LEVEL_NOT)
        return unary(p);
    TRY(count_part(p));
    TRY(advance(p));
    TRY(binary(p, TUNE_LEVEL_NOT));
    return emit(p, TUNE_STEP_NOT, 0, 0, tune_value_none());
}

/* mark is the position of the jump of this `and` or `or`. */
static int before(struct tune_expression_parser *core, struct tune_operator_row *row)
{
    struct parser *p = (struct parser *)core;
    if (row->op <= TUNE_AND) {
        row->mark = p->e->count;
        TRY(emit(p, row->op == TUNE_OR ? TUNE_STEP_OR : TUNE_STEP_AND, 0, 0, tune_value_none()));
    }
    if (p->token == NOT) {
        TRY(advance(p));
        if (p->token != IN)
            return unexpected(p, "\"in\" after \"not\"");
    }
    return advance(p);
}

/* The jumps of a < b < c form a list from mark; n of each holds the one before it. Their target is
 * set at the end. */
static int after(struct tune_expression_parser *core, struct tune_operator_row *row)
{
    struct parser *p = (struct parser *)core;
    struct tune_expression *e = p->e;
    if (tune_operator_level(row->op) > TUNE_LEVEL_COMPARE)
        return emit(p, TUNE_STEP_ARITHMETIC, row->op, 0, tune_value_none());
    if (row->op > TUNE_AND) {
        TRY(emit(p, row->last ? TUNE_STEP_COMPARE : TUNE_STEP_CHAIN, row->op, row->mark,
                 tune_value_none()));
        row->mark = row->last ? row->mark : e->count - 1;
    }
    bool ends = row->op <= TUNE_AND || row->last;
    for (int jump = ends ? row->mark : -1, next; jump >= 0; jump = next) {
        next = e->steps[jump].kind == TUNE_STEP_CHAIN ? e->steps[jump].n : -1;
        e->steps[jump].n = e->count;
    }
    return 0;
}

struct tune_expression *tune_expression_new(const char *text, const char *const *names, int count, const char *where)
{
    size_t length = strlen(text), extent = strlen(where);
    /* A name needs at most its own length plus a NUL, a text less than with its quotes. */
    struct tune_expression *e = calloc(1, sizeof *e + length + 1 + extent + 1 + 2 * length);
    if (!e) {
        tune_error_cannot("%s: no memory for an expression", where);
        return NULL;
    }
    e->text = memcpy(e->pool, text, length + 1);
    e->where = memcpy(e->pool + length + 1, where, extent + 1);
    struct parser p = {.core = {operator_at, operand, before, after}, .e = e, .names = names,
                       .count = count, .at = e->text,
                       .pool = e->pool + length + 1 + extent + 1};
    if (advance(&p) == 0 && whole_value(&p) == 0 && expect(&p, END, "an operator") == 0)
        return e;
    tune_expression_free(e);
    return NULL;
}

struct tune_expression *tune_expression_query(const char *text, const char *const *names, int count, const char *where)
{
    struct tune_expression *e = tune_expression_new(text, names, count, where);
    if (e)
        e->query = true;
    return e;
}

void tune_expression_free(struct tune_expression *e)
{
    free(e);
}

bool tune_expression_uses(const struct tune_expression *e, int name)
{
    for (int i = 0; i < e->count; i++)
        if (e->steps[i].kind == TUNE_STEP_NAME && e->steps[i].n == name)
            return true;
    return false;
}

const char *tune_expression_text(const struct tune_expression *e)
{
    return e->text;
}
