/* jinja_parser.c - parse statements into a tree. After the first error the parser is at the
 * template's end and every function returns a spare node. Callers need not check each step. */
#include <stdarg.h>
#include <stdio.h>

#include "templates/jinja_parser.h"

enum { MACROS = 200 };

node *tune_jinja_stop(struct tune_jinja_parser *p, int line, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!p->failed)
        tune_jinja_refuse(p->t, line, "%s", what);
    p->failed = true;
    p->at = p->t->tokens + p->t->count - 1;
    return &p->spare;
}

node *tune_jinja_expected(struct tune_jinja_parser *p, const char *what)
{
    static const char *const kinds[] = {"text", "a tag", "%}", "{{", "}}", "", "a string", "a number", "a number", "",
                                        "the template's end"};
    const struct tune_jinja_token *k = p->at;
    if (k->kind == JINJA_NAME || k->kind == JINJA_OPERATOR)
        return tune_jinja_stop(p, k->line, "found %.*s; expected %s", JINJA_SHOWN(k->text), what);
    return tune_jinja_stop(p, k->line, "found %s; expected %s", kinds[k->kind], what);
}

node *tune_jinja_unknown(struct tune_jinja_parser *p, int line, const char *kind, struct tune_text name)
{
    return tune_jinja_stop(p, line, "the %s %.*s is not supported", kind, JINJA_SHOWN(name));
}

node *tune_jinja_make(struct tune_jinja_parser *p, int kind, int line)
{
    node *n = p->failed ? NULL : tune_jinja_take(&p->t->memory, sizeof *n);
    if (!n) {
        p->failed = true; /* memory ran out; the error is set */
        p->at = p->t->tokens + p->t->count - 1;
        n = &p->spare;
    }
    n->kind = kind;
    n->line = line;
    return n;
}

bool tune_jinja_deeper(struct tune_jinja_parser *p)
{
    if (p->depth++ < TUNE_JINJA_DEPTH)
        return true;
    tune_jinja_stop(p, p->at->line, "expressions or blocks nested more than %d deep", TUNE_JINJA_DEPTH);
    return false;
}

static struct tune_text take_name(struct tune_jinja_parser *p, const char *what)
{
    if (p->at->kind == JINJA_NAME)
        return p->at++->text;
    tune_jinja_expected(p, what);
    return (struct tune_text){"", 0};
}

/* Parse the targets of a for or a set: one name, or several for the items of each value. */
static void targets(struct tune_jinja_parser *p, node *n)
{
    bool parenthesis = tune_jinja_skip_op(p, '(');
    for (node **tail = &n->args; !p->failed; tail = &(*tail)->next) {
        if (tune_jinja_constant(p->at->text, NULL))
            tune_jinja_expected(p, "a name that can be given a value");
        *tail = tune_jinja_make(p, JINJA_N_NAME, p->at->line);
        (*tail)->name = take_name(p, "a name");
        if (!tune_jinja_skip_op(p, ','))
            break;
        n->tuple = true;
        if (tune_jinja_at_name(p, "in") || tune_jinja_at_op(p, ')') || tune_jinja_at_op(p, '='))
            break;
    }
    if (parenthesis)
        tune_jinja_need_op(p, ')', ")");
}

static node *statements(struct tune_jinja_parser *p, const char *const *ends);

static void expect_end(struct tune_jinja_parser *p)
{
    if (p->at->kind != JINJA_BLOCK_END)
        tune_jinja_expected(p, "%}");
    else
        p->at++;
}

/* Parse a block up to one of the tags in ends, and stop at its name. The last tag is skipped. */
static node *block(struct tune_jinja_parser *p, const char *const *ends)
{
    expect_end(p);
    node *first = !p->failed && tune_jinja_deeper(p) ? statements(p, ends) : NULL;
    p->depth--;
    return first;
}

static node *block_to(struct tune_jinja_parser *p, const char *end)
{
    node *first = block(p, (const char *const[]){end, NULL});
    tune_jinja_skip_name(p, end);
    return first;
}

static node *for_(struct tune_jinja_parser *p, node *n)
{
    targets(p, n);
    for (node *name = n->args; name && !p->failed; name = name->next)
        if (tune_text_equal(name->name, "loop"))
            return tune_jinja_unknown(p, name->line, "loop variable", name->name);
    if (!tune_jinja_skip_name(p, "in"))
        return tune_jinja_expected(p, "in");
    n->a = tune_jinja_tuple(p, false, false);
    if (tune_jinja_skip_name(p, "if"))
        n->filter = tune_jinja_expression(p);
    if (tune_jinja_at_name(p, "recursive"))
        return tune_jinja_unknown(p, p->at->line, "loop modifier", p->at->text);
    p->loops++;
    n->b = block(p, (const char *const[]){"endfor", "else", NULL});
    p->loops--;
    if (tune_jinja_skip_name(p, "else"))
        n->c = block_to(p, "endfor");
    else
        tune_jinja_skip_name(p, "endfor");
    return n;
}

static node *if_(struct tune_jinja_parser *p, node *first)
{
    node *n = first;
    for (;;) {
        n->a = tune_jinja_tuple(p, false, false);
        n->b = block(p, (const char *const[]){"endif", "else", "elif", NULL});
        if (!tune_jinja_at_name(p, "elif"))
            break;
        n->c = tune_jinja_make(p, JINJA_N_IF, p->at++->line);
        n = n->c;
        n->tuple = true; /* an elif: evaluated in the same place, whatever their number */
    }
    if (tune_jinja_skip_name(p, "else"))
        n->c = block_to(p, "endif");
    else
        tune_jinja_skip_name(p, "endif");
    return first;
}

static node *set(struct tune_jinja_parser *p, node *n)
{
    if (p->at->kind == JINJA_NAME && p->at[1].kind == JINJA_OPERATOR && p->at[1].whole == '.') {
        n->args = tune_jinja_make(p, JINJA_N_NAME, p->at->line);
        n->args->name = p->at->text;
        p->at += 2;
        n->key = take_name(p, "the name of an attribute");
    } else {
        targets(p, n);
    }
    if (tune_jinja_skip_op(p, '=')) {
        n->a = tune_jinja_tuple(p, true, false);
        return n;
    }
    if (tune_jinja_at_op(p, '|'))
        return tune_jinja_unknown(p, p->at->line, "filter behind a block", (struct tune_text){"set", 3});
    if (n->tuple)
        return tune_jinja_expected(p, "=");
    n->kind = JINJA_N_SET_BLOCK;
    n->b = block_to(p, "endset");
    return n;
}

/* Parse a block that break and continue cannot leave. */
static node *closed(struct tune_jinja_parser *p, const char *end)
{
    int loops = p->loops;
    p->loops = 0;
    node *first = block_to(p, end);
    p->loops = loops;
    return first;
}

static node *macro(struct tune_jinja_parser *p, node *n)
{
    bool inside = p->macro, defaults = false;
    n->name = take_name(p, "the macro's name");
    n->filter = p->t->macros;
    p->t->macros = n;
    if (++p->macros > MACROS)
        return tune_jinja_stop(p, n->line, "more than %d macros", MACROS);
    tune_jinja_need_op(p, '(', "(");
    for (node **tail = &n->args; !p->failed && !tune_jinja_skip_op(p, ')'); tail = &(*tail)->next) {
        if (n->args)
            tune_jinja_need_op(p, ',', ", or )");
        *tail = tune_jinja_make(p, JINJA_N_NAME, p->at->line);
        (*tail)->name = take_name(p, "a parameter");
        if (tune_jinja_skip_op(p, '=')) {
            defaults = true;
            (*tail)->a = tune_jinja_expression(p);
        } else if (defaults) {
            return tune_jinja_expected(p, "a default, as the parameters before have");
        }
    }
    p->macro = true;
    n->b = closed(p, "endmacro");
    p->macro = inside;
    return n;
}

static node *generation(struct tune_jinja_parser *p, node *n)
{
    n->b = closed(p, "endgeneration");
    return n;
}

static node *leave(struct tune_jinja_parser *p, node *n)
{
    if (!p->loops)
        return tune_jinja_stop(p, n->line, "%s outside a loop", n->kind == JINJA_N_BREAK ? "break" : "continue");
    return n;
}

static node *statement(struct tune_jinja_parser *p)
{
    static const struct {
        const char *name;
        int kind;
        node *(*parse)(struct tune_jinja_parser *p, node *n);
    } tags[] = {{"for", JINJA_N_FOR, for_}, {"if", JINJA_N_IF, if_}, {"set", JINJA_N_SET, set}, {"macro", JINJA_N_MACRO, macro},
                {"break", JINJA_N_BREAK, leave}, {"continue", JINJA_N_CONTINUE, leave},
                {"generation", JINJA_N_GENERATION, generation}};
    int line = p->at->line;
    struct tune_text name = take_name(p, "the name of a tag");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (tune_text_equal(name, tags[i].name))
            return tags[i].parse(p, tune_jinja_make(p, tags[i].kind, line));
    return tune_jinja_unknown(p, line, "tag", name);
}

/* Parse statements up to one of the tags in ends, or to the template's end (ends NULL). */
static node *statements(struct tune_jinja_parser *p, const char *const *ends)
{
    node *first = NULL;
    for (node **tail = &first; !p->failed; tail = &(*tail)->next) {
        const struct tune_jinja_token *k = p->at;
        if (k->kind == JINJA_EOF) {
            if (ends)
                tune_jinja_stop(p, k->line, "the template ends before {%% %s %%}", ends[0]);
            break;
        }
        p->at++;
        for (int i = 0; k->kind == JINJA_BLOCK && ends && ends[i]; i++)
            if (tune_jinja_at_name(p, ends[i]))
                return first;
        if (k->kind == JINJA_DATA) {
            *tail = tune_jinja_make(p, JINJA_N_DATA, k->line);
            (*tail)->value = (jval){.type = JINJA_TEXT, .text = k->text.data, .size = k->text.size};
        } else if (k->kind == JINJA_PRINT) {
            *tail = tune_jinja_make(p, JINJA_N_PRINT, k->line);
            (*tail)->a = tune_jinja_tuple(p, true, false);
            if (p->at->kind != JINJA_PRINT_END)
                tune_jinja_expected(p, "}}");
            else
                p->at++;
        } else {
            *tail = statement(p);
            expect_end(p);
        }
    }
    return first;
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
    struct tune_jinja_parser p = {.t = t, .at = t->tokens};
    tune_jinja_operators(&p);
    t->body = statements(&p, NULL);
    /* a call by name needs a known function, or a macro anywhere in the template */
    for (node *n = p.failed ? NULL : p.calls; n && !p.failed; n = n->c)
        if (!n->known && !is_macro(t, n->a->name))
            tune_jinja_unknown(&p, n->line, "function", n->a->name);
    return p.failed ? -1 : 0;
}
