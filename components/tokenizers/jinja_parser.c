/* jinja_parser.c - tokens into a tree: expressions by precedence as Jinja has it, statements by their tags. Every name that a
 * render could stumble over (tags, filters, tests, methods, functions) is checked here. */
#include "tokenizers/jinja_parts.h"

enum { MACROS = 1000 };

struct parser {
    struct tune_jinja *t;
    const struct tune_jinja_token *at;
    int depth, loops, macros;
    bool macro;
};
typedef struct tune_jinja_node node;

static node *tuple(struct parser *p, bool conditional, bool parenthesis);
static node *expression(struct parser *p);
static node *alternative(struct parser *p);
static node *unary(struct parser *p, bool filters);
static node *statements(struct parser *p, const char *const *ends);

static void *refuse(struct parser *p, const char *what)
{
    static const char *const kinds[] = {"text", "a tag", "%}", "{{", "}}", "", "a string", "a number", "a number", "", "the template's end"};
    const struct tune_jinja_token *k = p->at;
    int size = k->text.size > 60 ? 60 : (int)k->text.size;
    if (k->kind == JINJA_NAME || k->kind == JINJA_OPERATOR)
        tune_jinja_refuse(p->t, k->line, "found %.*s; expected %s", size, k->text.data, what);
    else
        tune_jinja_refuse(p->t, k->line, "found %s; expected %s", kinds[k->kind], what);
    return NULL;
}

static void *unknown(struct parser *p, int line, const char *kind, struct tune_text name)
{
    tune_jinja_refuse(p->t, line, "the %s %.*s is not supported", kind, name.size > 60 ? 60 : (int)name.size, name.data);
    return NULL;
}

static node *make(struct parser *p, int kind, int line)
{
    node *n = tune_jinja_take(&p->t->memory, sizeof *n);
    if (n) {
        n->kind = kind;
        n->line = line;
    }
    return n;
}

static bool is_name(const struct parser *p, const char *name)
{
    return p->at->kind == JINJA_NAME && tune_text_equal(p->at->text, name);
}

static bool is_op(const struct parser *p, int64_t op)
{
    return p->at->kind == JINJA_OPERATOR && p->at->whole == op;
}

static bool skip_name(struct parser *p, const char *name)
{
    bool is = is_name(p, name);
    p->at += is;
    return is;
}

static bool skip_op(struct parser *p, int64_t op)
{
    bool is = is_op(p, op);
    p->at += is;
    return is;
}

static bool deeper(struct parser *p)
{
    if (p->depth < TUNE_JINJA_DEPTH) {
        p->depth++;
        return true;
    }
    tune_jinja_refuse(p->t, p->at->line, "expressions or blocks nested more than %d deep", TUNE_JINJA_DEPTH);
    return false;
}

/* Arguments behind an open parenthesis, to the closing one. */
static int arguments(struct parser *p, node **tail)
{
    bool first = true, named = false;
    while (!skip_op(p, ')')) {
        if (!first && !skip_op(p, ','))
            return refuse(p, ", or )"), -1;
        if (!first && skip_op(p, ')'))
            return 0;
        first = false;
        if (is_op(p, '*') || is_op(p, JINJA_OP('*', '*')))
            return tune_jinja_refuse(p->t, p->at->line, "arguments by * or ** are not supported");
        struct tune_text key = {0};
        if (p->at->kind == JINJA_NAME && p->at[1].kind == JINJA_OPERATOR && p->at[1].whole == '=') {
            key = p->at->text;
            p->at += 2;
            named = true;
        } else if (named) {
            return refuse(p, "an argument with a name, as the ones before"), -1;
        }
        node *n = expression(p);
        if (!n)
            return -1;
        /* an argument's own node: next belongs to this list */
        n->key = key;
        *tail = n;
        tail = &n->next;
    }
    return 0;
}

static node *literal(struct parser *p)
{
    const struct tune_jinja_token *k = p->at++;
    node *n = make(p, JINJA_N_CONST, k->line);
    if (!n)
        return NULL;
    if (k->kind == JINJA_WHOLE) {
        n->value = tune_jinja_int(k->whole);
    } else if (k->kind == JINJA_NUMBER) {
        n->value = (jval){.type = JINJA_FLOAT, .number = k->number};
    } else {
        size_t size = k->text.size, more = 0;
        for (const struct tune_jinja_token *q = p->at; q->kind == JINJA_STRING; q++)
            more += q->text.size;
        char *text = (char *)k->text.data;
        if (p->at->kind == JINJA_STRING) { /* neighbours are one string */
            if (!(text = tune_jinja_take(&p->t->memory, size + more + 1)))
                return NULL;
            memcpy(text, k->text.data, size);
            for (; p->at->kind == JINJA_STRING; p->at++) {
                memcpy(text + size, p->at->text.data, p->at->text.size);
                size += p->at->text.size;
            }
        }
        n->value = (jval){.type = JINJA_TEXT, .text = text, .size = size};
    }
    return n;
}

static node *list(struct parser *p, bool dict)
{
    node *n = make(p, dict ? JINJA_N_DICT : JINJA_N_LIST, p->at->line), **tail = n ? &n->args : NULL;
    int end = dict ? '}' : ']';
    p->at++;
    for (bool first = true; n && !skip_op(p, end); first = false) {
        if (!first && !skip_op(p, ','))
            return refuse(p, dict ? ", or }" : ", or ]");
        if (!first && skip_op(p, end))
            break;
        for (int k = 0; k < 1 + dict; k++) {
            if (k && !skip_op(p, ':'))
                return refuse(p, ":");
            if (!(*tail = expression(p)))
                return NULL;
            tail = &(*tail)->next;
        }
    }
    return n;
}

static node *primary(struct parser *p)
{
    const struct tune_jinja_token *k = p->at;
    node *n;
    switch (k->kind) {
    case JINJA_STRING: case JINJA_WHOLE: case JINJA_NUMBER: return literal(p);
    case JINJA_NAME:
        if (!(n = make(p, JINJA_N_NAME, k->line)))
            return NULL;
        p->at++;
        n->name = k->text;
        for (const char *const *w = (const char *const[]){"true", "True", "false", "False", "none", "None", NULL}; *w; w++)
            if (tune_text_equal(k->text, *w)) {
                n->kind = JINJA_N_CONST;
                n->value = (**w | 32) == 'n' ? (jval){.type = JINJA_NONE} : tune_jinja_bool((**w | 32) == 't');
            }
        if (p->macro && (tune_text_equal(k->text, "varargs") || tune_text_equal(k->text, "kwargs") || tune_text_equal(k->text, "caller")))
            return unknown(p, k->line, "macro variable", k->text);
        return n;
    case JINJA_OPERATOR:
        if (k->whole == '[' || k->whole == '{')
            return list(p, k->whole == '{');
        if (k->whole == '(') {
            p->at++;
            n = tuple(p, true, true);
            return !n || skip_op(p, ')') ? n : refuse(p, ")");
        }
    }
    return refuse(p, "an expression");
}

static node *subscript(struct parser *p, node *of, int line)
{
    node *part[3] = {NULL, NULL, NULL};
    bool slice = false;
    for (int i = 0; i < 3; i++) {
        if (!is_op(p, ':') && !is_op(p, ']') && !(part[i] = expression(p)))
            return NULL;
        if (i == 2 || !skip_op(p, ':'))
            break;
        slice = true;
    }
    if (!skip_op(p, ']'))
        return refuse(p, "]");
    if (!slice && !part[0])
        return p->at--, refuse(p, "an index");
    node *n = make(p, slice ? JINJA_N_SLICE : JINJA_N_ITEM, line);
    if (n) {
        n->a = of;
        n->b = part[0];
        n->c = part[1];
        n->filter = part[2];
    }
    return n;
}

static node *call(struct parser *p, node *of, int line)
{
    node *n = make(p, JINJA_N_CALL, line);
    if (!n || arguments(p, &n->args) < 0)
        return NULL;
    n->a = of;
    if (of->kind == JINJA_N_ATTRIBUTE && !tune_jinja_knows_method(of->name))
        return unknown(p, line, "method", of->name);
    if (of->kind != JINJA_N_ATTRIBUTE && of->kind != JINJA_N_NAME) {
        tune_jinja_refuse(p->t, line, "a call of something without a name is not supported");
        return NULL;
    }
    return n;
}

static node *postfix(struct parser *p, node *n)
{
    int levels = 0;
    while (n) {
        int line = p->at->line;
        if (++levels > TUNE_JINJA_DEPTH) {
            tune_jinja_refuse(p->t, line, "more than %d attributes, items and calls of one another", TUNE_JINJA_DEPTH);
            return NULL;
        }
        if (skip_op(p, '.')) {
            node *a = make(p, p->at->kind == JINJA_WHOLE ? JINJA_N_ITEM : JINJA_N_ATTRIBUTE, line);
            if (!a)
                return NULL;
            a->a = n;
            a->name = p->at->text;
            if (p->at->kind == JINJA_WHOLE)
                a->b = literal(p);
            else if (p->at->kind == JINJA_NAME)
                p->at++;
            else
                return refuse(p, "the name of an attribute");
            n = a;
        } else if (skip_op(p, '[')) {
            n = subscript(p, n, line);
        } else if (skip_op(p, '(')) {
            n = call(p, n, line);
        } else {
            break;
        }
    }
    return n;
}

static node *filter(struct parser *p, node *of)
{
    int line = p->at->line;
    node *n = make(p, JINJA_N_FILTER, line);
    if (!n)
        return NULL;
    if (p->at->kind != JINJA_NAME)
        return refuse(p, "the name of a filter");
    n->name = p->at++->text;
    n->a = of;
    if (is_op(p, '.') || !tune_jinja_knows_filter(n->name))
        return unknown(p, line, "filter", n->name);
    return skip_op(p, '(') && arguments(p, &n->args) < 0 ? NULL : n;
}

static node *test(struct parser *p, node *of)
{
    int line = p->at->line;
    bool negated = skip_name(p, "not");
    node *n = make(p, JINJA_N_TEST, line);
    if (!n)
        return NULL;
    if (p->at->kind != JINJA_NAME)
        return refuse(p, "the name of a test");
    n->name = p->at++->text;
    n->a = of;
    if (is_op(p, '.') || !tune_jinja_knows_test(n->name))
        return unknown(p, line, "test", n->name);
    if (skip_op(p, '(')) {
        if (arguments(p, &n->args) < 0)
            return NULL;
    } else if ((p->at->kind >= JINJA_NAME && p->at->kind <= JINJA_NUMBER && !is_name(p, "else") && !is_name(p, "or") &&
                !is_name(p, "and")) || is_op(p, '[') || is_op(p, '{')) {
        if (is_name(p, "is"))
            return refuse(p, "no second test: tests with is cannot be chained");
        if (!(n->args = postfix(p, primary(p))))
            return NULL;
    }
    if (!negated)
        return n;
    node *not_ = make(p, JINJA_N_NOT, line);
    if (not_)
        not_->a = n;
    return not_;
}

/* Filters, tests and calls behind an operand. */
static node *filtered(struct parser *p, node *n)
{
    for (int levels = 0; n; levels++) {
        int line = p->at->line;
        if (levels > TUNE_JINJA_DEPTH / 2) {
            tune_jinja_refuse(p->t, line, "more than %d filters of one another", TUNE_JINJA_DEPTH / 2);
            return NULL;
        }
        if (skip_op(p, '|'))
            n = filter(p, n);
        else if (skip_name(p, "is"))
            n = test(p, n);
        else if (skip_op(p, '('))
            n = call(p, n, line);
        else
            break;
    }
    return n;
}

static node *unary(struct parser *p, bool filters)
{
    node *n;
    if (!deeper(p))
        return NULL;
    int line = p->at->line, kind = is_op(p, '-') ? JINJA_N_NEGATE : JINJA_N_PLUS;
    if (is_op(p, '-') || is_op(p, '+')) {
        p->at++;
        if ((n = make(p, kind, line)) && !(n->a = unary(p, false)))
            n = NULL;
    } else {
        n = primary(p);
    }
    n = postfix(p, n);
    n = filters ? filtered(p, n) : n;
    p->depth--;
    return n;
}

/* Operators of two operands by levels, the loosest first. */
static node *binary(struct parser *p, int level)
{
    static const char *const levels[] = {"+-", "~", "*/%"};
    node *left = level == 2 ? unary(p, true) : binary(p, level + 1);
    for (int chain = 0; left && p->at->kind == JINJA_OPERATOR; chain++) {
        int64_t op = p->at->whole;
        bool floor = level == 2 && op == JINJA_OP('/', '/');
        if (op == JINJA_OP('*', '*')) {
            tune_jinja_refuse(p->t, p->at->line, "the operator ** is not supported");
            return NULL;
        }
        if (!floor && (op > 127 || !strchr(levels[level], (int)op)))
            break;
        node *n = make(p, JINJA_N_BINARY, p->at->line);
        if (!n)
            return NULL;
        p->at++;
        n->op = (int)op;
        n->a = left;
        if (!(n->b = level == 2 ? unary(p, true) : binary(p, level + 1)))
            return NULL;
        left = n;
        if (chain >= TUNE_JINJA_DEPTH / 2) {
            tune_jinja_refuse(p->t, n->line, "more than %d operators in a row", TUNE_JINJA_DEPTH / 2);
            return NULL;
        }
    }
    return left;
}

static int comparison(struct parser *p)
{
    static const int ops[] = {'<', '>', JINJA_OP('=', '='), JINJA_OP('!', '='), JINJA_OP('<', '='), JINJA_OP('>', '=')};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (skip_op(p, ops[i]))
            return ops[i];
    if (skip_name(p, "in"))
        return JINJA_OP_IN;
    if (is_name(p, "not") && p->at[1].kind == JINJA_NAME && tune_text_equal(p->at[1].text, "in"))
        return p->at += 2, JINJA_OP_NOT_IN;
    return 0;
}

static node *compare(struct parser *p)
{
    node *first = binary(p, 0), *n = NULL, **tail = NULL;
    for (int op, line = p->at->line; first && (op = comparison(p)); line = p->at->line) {
        if (!n) {
            if (!(n = make(p, JINJA_N_COMPARE, line)))
                return NULL;
            n->a = first;
            tail = &n->args;
        }
        node *more = make(p, JINJA_N_COMPARE, line);
        if (!more || !(more->a = binary(p, 0)))
            return NULL;
        more->op = op;
        *tail = more;
        tail = &more->next;
    }
    return n ? n : first;
}

static node *inverse(struct parser *p)
{
    int line = p->at->line;
    if (!skip_name(p, "not"))
        return compare(p);
    node *n = make(p, JINJA_N_NOT, line);
    if (!n || !deeper(p) || !(n->a = inverse(p)))
        return NULL;
    p->depth--;
    return n;
}

/* and, or: kept as lists, so that long ones are not deep. */
static node *logic(struct parser *p, bool or_)
{
    node *first = or_ ? logic(p, false) : inverse(p), *n = NULL, **tail = NULL;
    for (int line = p->at->line; first && skip_name(p, or_ ? "or" : "and"); line = p->at->line) {
        if (!n) {
            if (!(n = make(p, or_ ? JINJA_N_OR : JINJA_N_AND, line)))
                return NULL;
            n->args = first;
            tail = &first->next;
        }
        if (!(*tail = or_ ? logic(p, false) : inverse(p)))
            return NULL;
        tail = &(*tail)->next;
    }
    return n ? n : first;
}

static node *alternative(struct parser *p)
{
    return logic(p, true);
}

static node *expression(struct parser *p)
{
    if (!deeper(p))
        return NULL;
    node *n = alternative(p);
    for (int chain = 0; n && is_name(p, "if"); chain++) {
        node *whole = make(p, JINJA_N_IF_ELSE, p->at++->line);
        if (!whole || !(whole->a = alternative(p)))
            return NULL;
        whole->b = n;
        if (skip_name(p, "else") && !(whole->c = expression(p)))
            return NULL;
        n = whole;
        if (chain >= TUNE_JINJA_DEPTH / 2) {
            tune_jinja_refuse(p->t, n->line, "more than %d conditions in a row", TUNE_JINJA_DEPTH / 2);
            return NULL;
        }
    }
    p->depth--;
    return n;
}

/* One expression, or several between commas, which are a tuple. */
static node *tuple(struct parser *p, bool conditional, bool parenthesis)
{
    node *items = NULL, **tail = &items;
    int line = p->at->line;
    bool comma = false;
    for (;;) {
        if (is_op(p, ')') || p->at->kind == JINJA_BLOCK_END || p->at->kind == JINJA_PRINT_END)
            break;
        if (!(*tail = conditional ? expression(p) : alternative(p)))
            return NULL;
        tail = &(*tail)->next;
        if (!skip_op(p, ','))
            break;
        comma = true;
    }
    if (!comma && items)
        return items;
    if (!comma && !parenthesis)
        return refuse(p, "an expression");
    node *n = make(p, JINJA_N_LIST, line);
    if (n) {
        n->tuple = true;
        n->args = items;
    }
    return n;
}

/* Names that a for or a set gives values to: one, or several (also in parentheses) for the parts of each item. */
static int targets(struct parser *p, node *n)
{
    bool parenthesis = skip_op(p, '(');
    for (node **tail = &n->args;; tail = &(*tail)->next) {
        if (p->at->kind != JINJA_NAME)
            return refuse(p, "a name"), -1;
        for (const char *const *w = (const char *const[]){"true", "True", "false", "False", "none", "None", NULL}; *w; w++)
            if (is_name(p, *w))
                return refuse(p, "a name that can be given a value"), -1;
        if (!(*tail = make(p, JINJA_N_NAME, p->at->line)))
            return -1;
        (*tail)->name = p->at++->text;
        if (!skip_op(p, ','))
            break;
        n->tuple = true;
        if (is_name(p, "in") || is_op(p, ')') || is_op(p, '='))
            break;
    }
    if (parenthesis && !skip_op(p, ')'))
        return refuse(p, ")"), -1;
    return 0;
}

static int expect_end(struct parser *p)
{
    if (p->at->kind != JINJA_BLOCK_END)
        return refuse(p, "%}"), -1;
    p->at++;
    return 0;
}

/* A block up to one of the tags that end it: its name is left at p->at. */
static int block(struct parser *p, node **body, const char *const *ends)
{
    TRY(expect_end(p));
    if (!deeper(p))
        return -1;
    node *marker = statements(p, ends);
    if (!marker)
        return -1;
    p->depth--;
    *body = marker->next;
    return 0;
}

static node *for_(struct parser *p, node *n)
{
    if (targets(p, n) < 0)
        return NULL;
    for (node *name = n->args; name; name = name->next)
        if (tune_text_equal(name->name, "loop"))
            return unknown(p, name->line, "loop variable", name->name);
    if (!skip_name(p, "in"))
        return refuse(p, "in");
    if (!(n->a = tuple(p, false, false)) || (skip_name(p, "if") && !(n->filter = expression(p))))
        return NULL;
    if (is_name(p, "recursive"))
        return unknown(p, p->at->line, "loop modifier", p->at->text);
    p->loops++;
    if (block(p, &n->b, (const char *const[]){"endfor", "else", NULL}) < 0)
        return NULL;
    p->loops--;
    if (skip_name(p, "else") && block(p, &n->c, (const char *const[]){"endfor", NULL}) < 0)
        return NULL;
    p->at++;
    return n;
}

static node *if_(struct parser *p, node *n)
{
    node *first = n;
    for (int chain = 0;; chain++) {
        if (!(n->a = tuple(p, false, false)) || block(p, &n->b, (const char *const[]){"endif", "else", "elif", NULL}) < 0)
            return NULL;
        if (!is_name(p, "elif"))
            break;
        if (!(n->c = make(p, JINJA_N_IF, p->at++->line)))
            return NULL;
        n = n->c;
        n->tuple = true; /* an elif: evaluated in the same place, however many there are */
    }
    if (skip_name(p, "else") && block(p, &n->c, (const char *const[]){"endif", NULL}) < 0)
        return NULL;
    p->at++;
    return first;
}

static node *set(struct parser *p, node *n)
{
    if (p->at->kind == JINJA_NAME && p->at[1].kind == JINJA_OPERATOR && p->at[1].whole == '.') {
        if (p->at[2].kind != JINJA_NAME)
            return p->at += 2, refuse(p, "the name of an attribute");
        if (!(n->args = make(p, JINJA_N_NAME, p->at->line)))
            return NULL;
        n->args->name = p->at->text;
        n->key = p->at[2].text;
        p->at += 3;
    } else if (targets(p, n) < 0) {
        return NULL;
    }
    if (skip_op(p, '='))
        return (n->a = tuple(p, true, false)) ? n : NULL;
    if (is_op(p, '|'))
        return unknown(p, p->at->line, "filter behind a block", (struct tune_text){"set", 3});
    n->kind = JINJA_N_SET_BLOCK;
    if (n->tuple)
        return refuse(p, "=");
    if (block(p, &n->b, (const char *const[]){"endset", NULL}) < 0)
        return NULL;
    p->at++;
    return n;
}

static node *macro(struct parser *p, node *n)
{
    bool inside = p->macro, defaults = false;
    int loops = p->loops;
    if (p->at->kind != JINJA_NAME)
        return refuse(p, "the macro's name");
    n->name = p->at++->text;
    n->filter = p->t->macros;
    p->t->macros = n;
    if (++p->macros > MACROS) {
        tune_jinja_refuse(p->t, n->line, "more than %d macros", MACROS);
        return NULL;
    }
    if (!skip_op(p, '('))
        return refuse(p, "(");
    for (node **tail = &n->args; !skip_op(p, ')'); tail = &(*tail)->next) {
        if (n->args && !skip_op(p, ','))
            return refuse(p, ", or )");
        if (p->at->kind != JINJA_NAME)
            return refuse(p, "a parameter");
        if (!(*tail = make(p, JINJA_N_NAME, p->at->line)))
            return NULL;
        (*tail)->name = p->at++->text;
        if (skip_op(p, '=')) {
            defaults = true;
            if (!((*tail)->a = expression(p)))
                return NULL;
        } else if (defaults) {
            return refuse(p, "a default, as the parameters before have");
        }
    }
    p->macro = true;
    p->loops = 0;
    if (block(p, &n->b, (const char *const[]){"endmacro", NULL}) < 0)
        return NULL;
    p->macro = inside;
    p->loops = loops;
    p->at++;
    return n;
}

static node *statement(struct parser *p)
{
    static const struct {
        const char *name;
        int kind;
        node *(*parse)(struct parser *p, node *n);
    } tags[] = {{"for", JINJA_N_FOR, for_}, {"if", JINJA_N_IF, if_}, {"set", JINJA_N_SET, set}, {"macro", JINJA_N_MACRO, macro}};
    const struct tune_jinja_token *k = p->at;
    if (k->kind != JINJA_NAME)
        return refuse(p, "the name of a tag");
    p->at++;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (tune_text_equal(k->text, tags[i].name)) {
            node *n = make(p, tags[i].kind, k->line);
            return n ? tags[i].parse(p, n) : NULL;
        }
    if (tune_text_equal(k->text, "break") || tune_text_equal(k->text, "continue")) {
        if (p->loops)
            return make(p, *k->text.data == 'b' ? JINJA_N_BREAK : JINJA_N_CONTINUE, k->line);
        tune_jinja_refuse(p->t, k->line, "%s outside a loop", *k->text.data == 'b' ? "break" : "continue");
        return NULL;
    }
    if (tune_text_equal(k->text, "generation")) {
        node *n = make(p, JINJA_N_GENERATION, k->line);
        int loops = p->loops;
        p->loops = 0; /* a scope of its own: no break leaves it */
        if (!n || block(p, &n->b, (const char *const[]){"endgeneration", NULL}) < 0)
            return NULL;
        p->loops = loops;
        p->at++;
        p->t->generation = true;
        return n;
    }
    return unknown(p, k->line, "tag", k->text);
}

/* Statements to one of the tags in ends, at whose name it stops, or to the template's end (ends NULL). What is returned is a
 * marker before the first. */
static node *statements(struct parser *p, const char *const *ends)
{
    node *marker = make(p, JINJA_N_DATA, p->at->line), *n;
    for (node **tail = marker ? &marker->next : NULL; marker; tail = &n->next) {
        const struct tune_jinja_token *k = p->at;
        if (k->kind == JINJA_EOF) {
            if (!ends)
                return marker;
            tune_jinja_refuse(p->t, k->line, "the template ends before {%% %s %%}", ends[0]);
            return NULL;
        }
        p->at++;
        if (k->kind == JINJA_DATA) {
            if ((n = make(p, JINJA_N_DATA, k->line)))
                n->value = (jval){.type = JINJA_TEXT, .text = k->text.data, .size = k->text.size};
        } else if (k->kind == JINJA_PRINT) {
            if ((n = make(p, JINJA_N_PRINT, k->line)) && !(n->a = tuple(p, true, false)))
                return NULL;
            if (n && p->at->kind != JINJA_PRINT_END)
                return refuse(p, "}}");
            p->at++;
        } else {
            for (int i = 0; ends && ends[i]; i++)
                if (is_name(p, ends[i]))
                    return marker;
            if (!(n = statement(p)) || expect_end(p) < 0)
                return NULL;
        }
        if (!n)
            return NULL;
        *tail = n;
    }
    return marker;
}

static bool is_macro(const struct tune_jinja *t, struct tune_text name)
{
    for (const node *m = t->macros; m; m = m->filter)
        if (m->name.size == name.size && memcmp(m->name.data, name.data, name.size) == 0)
            return true;
    return false;
}

int tune_jinja_parse(struct tune_jinja *t)
{
    struct parser p = {.t = t, .at = t->tokens};
    node *marker = statements(&p, NULL);
    if (!marker)
        return -1;
    t->body = marker->next;
    /* Calls by name: of a function known here, or of a macro of the template. */
    for (size_t i = 0; i + 1 < t->count; i++) {
        const struct tune_jinja_token *k = &t->tokens[i];
        bool called = k->kind == JINJA_NAME && k[1].kind == JINJA_OPERATOR && k[1].whole == '(';
        const struct tune_jinja_token *before = i > 0 ? k - 1 : k;
        if (i > 1 && before->kind == JINJA_NAME && tune_text_equal(before->text, "not"))
            before--;
        bool other = (before->kind == JINJA_OPERATOR && (before->whole == '.' || before->whole == '|')) ||
                     (before->kind == JINJA_NAME && (tune_text_equal(before->text, "is") || tune_text_equal(before->text, "macro")));
        static const char *const words[] = {"in", "if", "elif", "else", "and", "or", "not", "is", "set", "for"};
        for (size_t w = 0; called && w < sizeof words / sizeof *words; w++)
            other |= tune_text_equal(k->text, words[w]);
        if (called && !other && !tune_jinja_knows_function(k->text) && !is_macro(t, k->text)) {
            unknown(&p, k->line, "function", k->text);
            return -1;
        }
    }
    return 0;
}
