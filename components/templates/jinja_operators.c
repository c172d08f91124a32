/* jinja_operators.c - parse expressions by Jinja's precedence. Names of filters, tests, methods and
 * functions are looked up here, so a render never meets an unknown one. */
#include "templates/jinja_parser.h"

typedef struct tune_jinja_parser parser;

bool tune_jinja_at_name(const parser *p, const char *name)
{
    return p->at->kind == JINJA_NAME && tune_text_equal(p->at->text, name);
}

bool tune_jinja_at_op(const parser *p, int64_t op)
{
    return p->at->kind == JINJA_OPERATOR && !p->at->op && p->at->whole == op;
}

bool tune_jinja_skip_name(parser *p, const char *name)
{
    bool is = tune_jinja_at_name(p, name);
    p->at += is;
    return is;
}

bool tune_jinja_skip_op(parser *p, int64_t op)
{
    bool is = tune_jinja_at_op(p, op);
    p->at += is;
    return is;
}

void tune_jinja_need_op(parser *p, int64_t op, const char *what)
{
    if (!tune_jinja_skip_op(p, op))
        tune_jinja_expected(p, what);
}

bool tune_jinja_constant(struct tune_text name, jval *v)
{
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    for (int i = 0; i < 6; i++)
        if (tune_text_equal(name, words[i])) {
            if (v)
                *v = i > 3 ? (jval){.type = JINJA_NONE} : tune_jinja_bool(i < 2);
            return true;
        }
    return false;
}

/* Skip the comma before the next item of a list. False at `end`, which is skipped too. */
static bool more(parser *p, bool first, int end, const char *what)
{
    if (tune_jinja_skip_op(p, end))
        return false;
    if (!first) {
        tune_jinja_need_op(p, ',', what);
        if (tune_jinja_skip_op(p, end))
            return false;
    }
    return !p->failed;
}

/* Parse arguments after an open parenthesis, to the closing one. */
static node *arguments(parser *p)
{
    node *first = NULL;
    bool named = false;
    for (node **tail = &first; more(p, !first, ')', ", or )"); tail = &(*tail)->next) {
        struct tune_text key = {0};
        if (p->at->op == TUNE_MULTIPLY || p->at->op == TUNE_POWER)
            tune_jinja_stop(p, p->at->line, "arguments by * or ** are not supported");
        if (p->at->kind == JINJA_NAME && p->at[1].kind == JINJA_OPERATOR && p->at[1].whole == '=') {
            key = p->at->text;
            p->at += 2;
            named = true;
        } else if (named) {
            tune_jinja_expected(p, "an argument with a name, as the ones before");
        }
        *tail = tune_jinja_expression(p);
        (*tail)->key = key;
    }
    return first;
}

static node *literal(parser *p)
{
    const struct tune_jinja_token *k = p->at++;
    node *n = tune_jinja_make(p, JINJA_N_CONST, k->line);
    if (k->kind == JINJA_WHOLE) {
        n->value = tune_jinja_int(k->whole);
    } else if (k->kind == JINJA_NUMBER) {
        n->value = (jval){.type = JINJA_FLOAT, .number = k->number};
    } else {
        size_t size = 0;
        for (p->at = k; p->at->kind == JINJA_STRING; p->at++) /* adjacent strings are joined */
            size += p->at->text.size;
        char *text = p->at == k + 1 ? (char *)k->text.data : tune_jinja_take(&p->t->memory, size + 1), *to = text;
        if (!text)
            return p->failed = true, &p->spare; /* memory ran out; the error is set */
        uint8_t *marks = tune_jinja_take(&p->t->memory, size + 1);
        if (!marks)
            return p->failed = true, &p->spare;
        marks[0] = TUNE_JINJA_PIECE;
        n->value = (jval){.type = JINJA_TEXT, .text = text, .size = size, .marks = marks};
        for (; to < text + size && text != k->text.data; k++) {
            memcpy(to, k->text.data, k->text.size);
            to += k->text.size;
        }
    }
    return n;
}

static node *list(parser *p, bool dict)
{
    node *n = tune_jinja_make(p, dict ? JINJA_N_DICT : JINJA_N_LIST, p->at++->line);
    for (node **tail = &n->args; more(p, !n->args, dict ? '}' : ']', dict ? ", or }" : ", or ]"); tail = &(*tail)->next) {
        *tail = tune_jinja_expression(p);
        if (!dict)
            continue;
        tune_jinja_need_op(p, ':', ":");
        tail = &(*tail)->next;
        *tail = tune_jinja_expression(p);
    }
    return n;
}

static node *primary(parser *p)
{
    const struct tune_jinja_token *k = p->at;
    node *n;
    if (k->kind == JINJA_STRING || k->kind == JINJA_WHOLE || k->kind == JINJA_NUMBER)
        return literal(p);
    if (tune_jinja_at_op(p, '[') || tune_jinja_at_op(p, '{'))
        return list(p, k->whole == '{');
    if (tune_jinja_skip_op(p, '(')) {
        n = tune_jinja_tuple(p, true, true);
        tune_jinja_need_op(p, ')', ")");
        return n;
    }
    if (k->kind != JINJA_NAME)
        return tune_jinja_expected(p, "an expression");
    p->at++;
    if (p->macro && (tune_text_equal(k->text, "varargs") || tune_text_equal(k->text, "kwargs") ||
                     tune_text_equal(k->text, "caller")))
        return tune_jinja_unknown(p, k->line, "macro variable", k->text);
    n = tune_jinja_make(p, JINJA_N_NAME, k->line);
    n->name = k->text;
    if (tune_jinja_constant(k->text, &n->value))
        n->kind = JINJA_N_CONST;
    return n;
}

static node *subscript(parser *p, node *of, int line)
{
    node *part[3] = {NULL, NULL, NULL};
    bool slice = false;
    for (int i = 0; i < 3; i++) {
        if (!tune_jinja_at_op(p, ':') && !tune_jinja_at_op(p, ']'))
            part[i] = tune_jinja_expression(p);
        if (i == 2 || !tune_jinja_skip_op(p, ':'))
            break;
        slice = true;
    }
    if (!slice && !part[0])
        return tune_jinja_expected(p, "an index");
    tune_jinja_need_op(p, ']', "]");
    node *n = tune_jinja_make(p, slice ? JINJA_N_SLICE : JINJA_N_ITEM, line);
    n->a = of;
    n->b = part[0];
    n->c = part[1];
    n->filter = part[2];
    return n;
}

static node *call(parser *p, node *of, int line)
{
    node *n = tune_jinja_make(p, JINJA_N_CALL, line);
    n->args = arguments(p);
    n->a = of;
    if (of->kind == JINJA_N_NAME) {
        n->known = tune_jinja_known(JINJA_FUNCTION, of->name);
        n->c = p->calls;
        p->calls = n;
    } else if (of->kind != JINJA_N_ATTRIBUTE) {
        return tune_jinja_stop(p, line, "a call of something without a name is not supported");
    } else if (!tune_jinja_known(JINJA_TEXT_METHOD, of->name) && !tune_jinja_known(JINJA_DICT_METHOD, of->name) &&
               !tune_jinja_known(JINJA_LIST_METHOD, of->name) && !tune_jinja_changes(of->name)) {
        return tune_jinja_unknown(p, line, "method", of->name);
    }
    return n;
}

static node *postfix(parser *p, node *n)
{
    for (int levels = 0; !p->failed; levels++) {
        int line = p->at->line;
        if (levels > TUNE_JINJA_DEPTH)
            return tune_jinja_stop(p, line, "more than %d attributes, items and calls of one another", TUNE_JINJA_DEPTH);
        if (tune_jinja_skip_op(p, '.')) {
            node *a = tune_jinja_make(p, JINJA_N_ATTRIBUTE, line);
            if (p->at->kind != JINJA_NAME)
                return tune_jinja_expected(p, "the name of an attribute");
            a->a = n;
            a->name = p->at++->text;
            n = a;
        } else if (tune_jinja_skip_op(p, '[')) {
            n = subscript(p, n, line);
        } else if (tune_jinja_skip_op(p, '(')) {
            n = call(p, n, line);
        } else {
            break;
        }
    }
    return n;
}

/* Parse the filter or test after | or is, with its arguments. */
static node *named(parser *p, node *of, int kind)
{
    static const char *const kinds[] = {[JINJA_FILTER] = "filter", [JINJA_TEST] = "test"};
    int line = p->at->line;
    bool negated = kind == JINJA_TEST && tune_jinja_skip_name(p, "not");
    node *n = tune_jinja_make(p, kind == JINJA_TEST ? JINJA_N_TEST : JINJA_N_FILTER, line);
    if (p->at->kind != JINJA_NAME)
        return tune_jinja_expected(p, kind == JINJA_TEST ? "the name of a test" : "the name of a filter");
    n->a = of;
    n->known = tune_jinja_known(kind, p->at->text);
    if (!n->known || (p->at[1].kind == JINJA_OPERATOR && p->at[1].whole == '.'))
        return tune_jinja_unknown(p, line, kinds[kind], p->at->text);
    p->at++;
    bool word = p->at->kind >= JINJA_NAME && p->at->kind <= JINJA_NUMBER && !tune_jinja_at_name(p, "else") &&
                !tune_jinja_at_name(p, "or") && !tune_jinja_at_name(p, "and");
    if (tune_jinja_skip_op(p, '(')) {
        n->args = arguments(p);
    } else if (kind == JINJA_TEST && (word || tune_jinja_at_op(p, '[') || tune_jinja_at_op(p, '{'))) {
        if (tune_jinja_at_name(p, "is"))
            return tune_jinja_expected(p, "no second test: tests with is cannot be chained");
        n->args = postfix(p, primary(p));
    }
    if (!negated)
        return n;
    node *not_ = tune_jinja_make(p, JINJA_N_NOT, line);
    not_->a = n;
    return not_;
}

/* Parse filters, tests and calls after an operand. */
static node *filtered(parser *p, node *n)
{
    for (int levels = 0; !p->failed; levels++) {
        int line = p->at->line;
        if (levels > TUNE_JINJA_DEPTH / 2)
            return tune_jinja_stop(p, line, "more than %d filters of one another", TUNE_JINJA_DEPTH / 2);
        if (tune_jinja_skip_op(p, '|'))
            n = named(p, n, JINJA_FILTER);
        else if (tune_jinja_skip_name(p, "is"))
            n = named(p, n, JINJA_TEST);
        else if (tune_jinja_skip_op(p, '('))
            n = call(p, n, line);
        else
            break;
    }
    return n;
}

static node *unary(parser *p, bool filters)
{
    node *n = &p->spare;
    int line = p->at->line;
    if (!tune_jinja_deeper(p))
        return n;
    if (p->at->op == TUNE_SUBTRACT || p->at->op == TUNE_ADD) {
        n = tune_jinja_make(p, p->at++->op == TUNE_SUBTRACT ? JINJA_N_NEGATE : JINJA_N_PLUS, line);
        n->a = unary(p, false);
    } else {
        n = primary(p);
    }
    n = postfix(p, n);
    n = filters ? filtered(p, n) : n;
    p->depth--;
    return n;
}

/* ---- functions for expression.h ---- */

static enum tune_operator operator_at(struct tune_expression_parser *core)
{
    parser *p = (parser *)core;
    if (p->at->op == TUNE_POWER)
        tune_jinja_stop(p, p->at->line, "the operator ** is not supported");
    for (int op = TUNE_OR; op <= TUNE_AND; op++)
        if (tune_jinja_at_name(p, tune_operator_sign((enum tune_operator)op)))
            return (enum tune_operator)op;
    if (tune_jinja_at_name(p, "in"))
        return TUNE_IN;
    if (tune_jinja_at_name(p, "not") && p->at[1].kind == JINJA_NAME &&
        tune_text_equal(p->at[1].text, "in"))
        return TUNE_NOT_IN;
    return p->at->op;
}

static int operand(struct tune_expression_parser *core, enum tune_level least, void **value)
{
    parser *p = (parser *)core;
    *value = NULL;
    if (least > TUNE_LEVEL_NOT || !tune_jinja_at_name(p, "not")) {
        *value = unary(p, true);
        return p->failed ? -1 : 0;
    }
    node *n = tune_jinja_make(p, JINJA_N_NOT, p->at++->line);
    if (tune_jinja_deeper(p))
        TRY(tune_expression_parse(core, TUNE_LEVEL_NOT, value));
    n->a = *value;
    *value = n;
    p->depth--;
    return p->failed ? -1 : 0;
}

static int before(struct tune_expression_parser *core, struct tune_operator_row *row)
{
    parser *p = (parser *)core;
    row->mark = p->at->line;
    p->at += row->op == TUNE_NOT_IN ? 2 : 1;
    if (tune_operator_level(row->op) > TUNE_LEVEL_COMPARE && row->index >= TUNE_JINJA_DEPTH / 2)
        tune_jinja_stop(p, row->mark, "more than %d operators in a row", TUNE_JINJA_DEPTH / 2);
    return p->failed ? -1 : 0;
}

/* and, or and comparisons are kept as lists, so that long ones are not deep. */
static int after(struct tune_expression_parser *core, struct tune_operator_row *row)
{
    parser *p = (parser *)core;
    node *n = row->left, *right = row->right;
    if (tune_operator_level(row->op) > TUNE_LEVEL_COMPARE) {
        n = tune_jinja_make(p, JINJA_N_BINARY, row->mark);
        n->op = row->op;
        n->a = row->left;
        n->b = right;
    } else if (row->op > TUNE_AND) {
        right = tune_jinja_make(p, JINJA_N_COMPARE, row->mark);
        right->op = row->op;
        right->a = row->right;
        if (row->index == 0) {
            n = tune_jinja_make(p, JINJA_N_COMPARE, row->mark);
            n->a = row->left;
            n->args = n->c = right;
        } else {
            n->c = n->c->next = right;
        }
    } else {
        if (row->index == 0) {
            n = tune_jinja_make(p, row->op == TUNE_OR ? JINJA_N_OR : JINJA_N_AND, row->mark);
            n->args = n->c = row->left;
        }
        n->c = n->c->next = right;
    }
    row->left = n;
    return p->failed ? -1 : 0;
}

void tune_jinja_operators(parser *p)
{
    p->core = (struct tune_expression_parser){operator_at, operand, before, after};
}

static node *logic(parser *p)
{
    void *value;
    return tune_expression_parse(&p->core, TUNE_LEVEL_OR, &value) < 0 ? &p->spare : value;
}

node *tune_jinja_expression(parser *p)
{
    if (!tune_jinja_deeper(p))
        return &p->spare;
    node *n = logic(p);
    for (int chain = 0; tune_jinja_at_name(p, "if"); chain++) {
        node *whole = tune_jinja_make(p, JINJA_N_IF_ELSE, p->at++->line);
        whole->a = logic(p);
        whole->b = n;
        if (tune_jinja_skip_name(p, "else"))
            whole->c = tune_jinja_expression(p);
        n = whole;
        if (chain >= TUNE_JINJA_DEPTH / 2)
            return tune_jinja_stop(p, n->line, "more than %d conditions in a row", TUNE_JINJA_DEPTH / 2);
    }
    p->depth--;
    return n;
}

node *tune_jinja_tuple(parser *p, bool conditional, bool parenthesis)
{
    node *items = NULL;
    int line = p->at->line;
    bool comma = false;
    for (node **tail = &items; !p->failed; tail = &(*tail)->next) {
        if (tune_jinja_at_op(p, ')') || p->at->kind == JINJA_BLOCK_END || p->at->kind == JINJA_PRINT_END)
            break;
        *tail = conditional ? tune_jinja_expression(p) : logic(p);
        if (!tune_jinja_skip_op(p, ','))
            break;
        comma = true;
    }
    if (!comma && items)
        return items;
    if (!comma && !parenthesis)
        return tune_jinja_expected(p, "an expression");
    node *n = tune_jinja_make(p, JINJA_N_LIST, line);
    n->tuple = true;
    n->args = items;
    return n;
}
