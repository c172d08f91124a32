/* jinja_expression.c - the value of an expression. */
#include "templates/jinja_parts.h"

typedef struct tune_jinja_node node;

static const jval *lookup(jrun *run, struct tune_text name)
{
    const jval *v = NULL;
    for (const struct tune_jinja_scope *s = run->scope; s && !v; s = s->above)
        v = tune_jinja_dict_find(run, &s->names, name);
    return v;
}

static bool one_of(struct tune_text name, const char *const *names)
{
    for (; *names; names++)
        if (tune_text_equal(name, *names))
            return true;
    return false;
}

static int loop_attribute(const struct tune_jinja_loop *loop, struct tune_text name, jval *v)
{
    int64_t at = (int64_t)loop->index, count = (int64_t)loop->list->count;
    const jval *items = loop->list->items;
    const struct { const char *name; jval value; } known[] = {
        {"index", tune_jinja_int(at + 1)}, {"index0", tune_jinja_int(at)}, {"revindex", tune_jinja_int(count - at)},
        {"revindex0", tune_jinja_int(count - at - 1)}, {"first", tune_jinja_bool(at == 0)},
        {"last", tune_jinja_bool(at == count - 1)}, {"length", tune_jinja_int(count)},
        {"previtem", at > 0 ? items[at - 1] : tune_jinja_undefined("loop.previtem", 13)},
        {"nextitem", at < count - 1 ? items[at + 1] : tune_jinja_undefined("loop.nextitem", 13)},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tune_text_equal(name, known[i].name)) {
            *v = known[i].value;
            return 0;
        }
    return -1;
}

bool tune_jinja_changes(struct tune_text name)
{
    return one_of(name, (const char *const[]){"append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse",
                                              "setdefault", "sort", "update", NULL});
}

/* Methods of a mapping come before its keys. Methods that would change it are undefined, as in the
 * sandbox. */
static int attribute(jrun *run, const jval *of, struct tune_text name, jval *v)
{
    const jval *there = NULL;
    bool method = (of->type == JINJA_TEXT && tune_jinja_known(JINJA_TEXT_METHOD, name)) ||
                  (of->type == JINJA_LIST && !of->view && tune_jinja_known(JINJA_LIST_METHOD, name));
    *v = tune_jinja_undefined(name.data, name.size);
    if (of->type == JINJA_UNDEFINED)
        return tune_jinja_fail(run, "%.*s is undefined, and %.*s of it is asked for", (int)(of->size > 60 ? 60 : of->size),
                               of->text,
                               JINJA_SHOWN(name));
    if (of->type == JINJA_LOOP && loop_attribute(of->loop, name, v) < 0)
        return tune_jinja_fail(run, "loop.%.*s is not supported", JINJA_SHOWN(name));
    if (of->type == JINJA_DICT) {
        method = tune_jinja_known(JINJA_DICT_METHOD, name) || one_of(name, (const char *const[]){"copy", "fromkeys", NULL});
        if (one_of(name, (const char *const[]){"pop", "popitem", "update", "clear", "setdefault", NULL}))
            return 0;
    }
    if (of->type == JINJA_DICT || of->type == JINJA_NAMESPACE)
        there = tune_jinja_dict_find(run, of->dict, name);
    if (method)
        *v = (jval){.type = JINJA_METHOD};
    else if (there)
        *v = *there;
    return 0;
}

static bool as_whole(const jval *v, int64_t *whole)
{
    *whole = v->type == JINJA_BOOL ? v->truth : v->whole;
    return v->type == JINJA_BOOL || v->type == JINJA_INT;
}

int tune_jinja_item(jrun *run, const jval *of, const jval *key, jval *v)
{
    int64_t at;
    *v = tune_jinja_undefined("an item", 7);
    if (of->type == JINJA_UNDEFINED)
        return tune_jinja_fail(run, "%.*s is undefined, and an item of it is asked for", (int)(of->size > 99 ? 99 : of->size),
                               of->text);
    if (key->type == JINJA_TEXT) {
        const struct tune_text name = {key->text, key->size};
        const jval *named = of->type == JINJA_DICT ? tune_jinja_dict_find(run, of->dict, name) : NULL;
        if (named) {
            *v = *named;
            return 0;
        }
        return attribute(run, of, name, v);
    }
    const jval *there = of->type == JINJA_DICT ? tune_jinja_dict_at(run, of->dict, key) : NULL;
    if (there)
        *v = *there;
    if (there || !as_whole(key, &at))
        return 0;
    if (of->type == JINJA_LIST && (!of->view || of->view == JINJA_RANGE)) {
        at += at < 0 ? (int64_t)of->list->count : 0;
        if (at >= 0 && at < (int64_t)of->list->count)
            *v = of->list->items[at];
    } else if (of->type == JINJA_TEXT) {
        int64_t count = (int64_t)tune_jinja_length(of);
        at += at < 0 ? count : 0;
        TRY(tune_jinja_step(run, of->size / 16));
        if (at >= 0 && at < count) {
            TRY(tune_jinja_step(run, (size_t)at));
            *v = tune_jinja_part(of, tune_jinja_offset(of, (size_t)at), tune_jinja_offset(of, (size_t)at + 1));
        }
        v->safe = of->safe;
    }
    return 0;
}

/* Bounds of a Python slice, for a sequence of count items. */
static int bounds(jrun *run, const jval part[3], int64_t count, int64_t *begin, int64_t *end, int64_t *step)
{
    int64_t at[3];
    for (int i = 0; i < 3; i++)
        if (part[i].type != JINJA_NONE && !as_whole(&part[i], &at[i]))
            return tune_jinja_fail(run, "a slice by %s; expected integers", tune_jinja_type_name(&part[i]));
    *step = part[2].type == JINJA_NONE ? 1 : at[2];
    if (*step == 0)
        return tune_jinja_fail(run, "a slice with step 0");
    if (*step < -count - 1 || *step > count + 1)
        *step = *step < 0 ? -count - 1 : count + 1;
    int64_t least = *step < 0 ? -1 : 0, most = *step < 0 ? count - 1 : count;
    *begin = *step < 0 ? most : 0;
    *end = *step < 0 ? -1 : count;
    for (int i = 0; i < 2; i++)
        if (part[i].type != JINJA_NONE) {
            int64_t x = at[i] < 0 ? (at[i] < -count ? least : at[i] + count) : at[i];
            *(i ? end : begin) = x < least ? least : x > most ? most : x;
        }
    return 0;
}

static int slice(jrun *run, const node *n, const jval *of, jval *v)
{
    const node *parts[3] = {n->b, n->c, n->filter};
    jval part[3], whole;
    int64_t begin = 0, end = 0, step = 1;
    for (int i = 0; i < 3; i++) {
        part[i] = (jval){.type = JINJA_NONE};
        TRY(parts[i] ? tune_jinja_eval(run, parts[i], &part[i]) : 0);
    }
    run->line = n->line;
    if ((of->type != JINJA_LIST || of->view) && of->type != JINJA_TEXT)
        return tune_jinja_fail(run, "a slice of %s", tune_jinja_type_name(of));
    int64_t count = of->type == JINJA_LIST ? (int64_t)of->list->count : (int64_t)tune_jinja_length(of);
    TRY(bounds(run, part, count, &begin, &end, &step));
    if (of->type == JINJA_TEXT && step == 1) {
        size_t a = tune_jinja_offset(of, (size_t)begin), b = tune_jinja_offset(of, (size_t)(end > begin ? end : begin));
        *v = tune_jinja_part(of, a, b);
        v->safe = of->safe;
        return tune_jinja_step(run, of->size / 16 + b);
    }
    TRY(tune_jinja_iterate(run, of, &whole));
    jval list;
    struct tune_jinja_buffer text = {0};
    TRY(tune_jinja_list_new(run, 0, of->tuple, &list));
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
        if (of->type == JINJA_LIST)
            TRY(tune_jinja_list_add(run, &list, whole.list->items[i]));
        else
            TRY(tune_jinja_put_value(run, &text, &whole.list->items[i]));
    }
    *v = of->type == JINJA_LIST ? list : tune_jinja_take_buffer(&text);
    v->safe = of->safe;
    return 0;
}

static int repeat(jrun *run, const jval *of, int64_t times, jval *v)
{
    struct tune_jinja_buffer text = {0};
    bool list = of->type == JINJA_LIST;
    if (list)
        TRY(tune_jinja_list_new(run, 0, of->tuple, v));
    for (int64_t i = 0; i < times && (list ? of->list->count : of->size); i++) {
        TRY(list ? 0 : tune_jinja_put_value(run, &text, of));
        for (size_t k = 0; list && k < of->list->count; k++)
            TRY(tune_jinja_list_add(run, v, of->list->items[k]));
    }
    if (!list)
        *v = tune_jinja_take_buffer(&text);
    v->safe = of->safe;
    return 0;
}

static int join_lists(jrun *run, const jval *a, const jval *b, jval *v)
{
    TRY(tune_jinja_list_new(run, a->list->count + b->list->count, a->tuple, v));
    for (size_t i = 0; i < a->list->count; i++)
        TRY(tune_jinja_list_add(run, v, a->list->items[i]));
    for (size_t i = 0; i < b->list->count; i++)
        TRY(tune_jinja_list_add(run, v, b->list->items[i]));
    return 0;
}

/* Append an operand of +. If the other operand went through safe and this one did not, it is
 * escaped for HTML. */
static int put_operand(jrun *run, struct tune_jinja_buffer *b, const jval *v, bool escape)
{
    static const char *const written[] = {"&&amp;", "<&lt;", ">&gt;", "'&#39;", "\"&#34;"};
    if (!escape || v->safe)
        return tune_jinja_put_value(run, b, v);
    for (size_t i = 0; i < v->size; i++) {
        const char *text = v->text + i;
        size_t size = 1;
        for (size_t k = 0; k < sizeof written / sizeof *written; k++)
            if (v->text[i] == *written[k])
                size = strlen(text = written[k] + 1);
        TRY(tune_jinja_put(run, b, text, NULL, v->marks ? v->marks[i] : v->mark, size));
    }
    return tune_jinja_step(run, v->size / 16);
}

static int join_texts(jrun *run, enum tune_operator op, const jval *a, const jval *b, jval *v)
{
    const bool safe = op == TUNE_ADD && (a->safe || b->safe);
    struct tune_jinja_buffer text = {0};
    TRY(put_operand(run, &text, a, safe));
    TRY(put_operand(run, &text, b, safe));
    *v = tune_jinja_take_buffer(&text);
    v->safe = safe;
    return 0;
}

static bool is_repeatable(const jval *v)
{
    return v->type == JINJA_TEXT || (v->type == JINJA_LIST && !v->view);
}

int tune_jinja_binary(jrun *run, enum tune_operator op, const jval *a, const jval *b, jval *v)
{
    struct tune_number x, y, result;
    bool texts = a->type == JINJA_TEXT && b->type == JINJA_TEXT;
    if (op == TUNE_CONCATENATE || (op == TUNE_ADD && texts))
        return join_texts(run, op, a, b, v);
    bool lists = a->type == JINJA_LIST && b->type == JINJA_LIST;
    if (op == TUNE_ADD && lists && a->tuple == b->tuple && !a->view && !b->view)
        return join_lists(run, a, b, v);
    bool na = tune_jinja_as_number(a, &x), nb = tune_jinja_as_number(b, &y);
    if (op == TUNE_MULTIPLY && is_repeatable(a) && nb && y.whole)
        return repeat(run, a, y.integer, v);
    if (op == TUNE_MULTIPLY && is_repeatable(b) && na && x.whole)
        return repeat(run, b, x.integer, v);
    if (na && nb) {
        switch (tune_number_arithmetic(op, &x, &y, &result)) {
        case TUNE_ARITHMETIC_BY_ZERO: return tune_jinja_fail(run, "division by zero");
        case TUNE_ARITHMETIC_GOOD: break;
        default: return tune_jinja_fail(run, "a whole number outside 64 bits");
        }
        *v = (jval){.type = JINJA_FLOAT, .number = result.number};
        if (result.whole)
            *v = tune_jinja_int(result.integer);
        return 0;
    }
    const jval *missing = a->type == JINJA_UNDEFINED ? a : b;
    const char sign = *tune_operator_sign(op);
    if (missing->type == JINJA_UNDEFINED)
        return tune_jinja_fail(run, "%.*s is undefined, and is an operand of %c",
                               (int)(missing->size > 99 ? 99 : missing->size), missing->text, sign);
    return tune_jinja_fail(run, "%s %c %s is not possible", tune_jinja_type_name(a), sign,
                           tune_jinja_type_name(b));
}

int tune_jinja_compare(jrun *run, enum tune_operator op, const jval *a, const jval *b, bool *holds)
{
    int order;
    if (op == TUNE_EQUAL || op == TUNE_UNEQUAL) {
        TRY(tune_jinja_equal(run, a, b, 0, holds));
        *holds = *holds == (op == TUNE_EQUAL);
    } else if (op == TUNE_IN || op == TUNE_NOT_IN) {
        TRY(tune_jinja_contains(run, b, a, holds));
        *holds = *holds == (op == TUNE_IN);
    } else {
        TRY(tune_jinja_order(run, a, b, 0, &order));
        *holds = tune_operator_holds(op, order);
    }
    return 0;
}

static int compare_chain(jrun *run, const node *n, jval *v)
{
    jval left, right;
    bool holds = true;
    TRY(tune_jinja_eval(run, n->a, &left));
    for (const node *more = n->args; more && holds; more = more->next) {
        TRY(tune_jinja_eval(run, more->a, &right));
        run->line = more->line;
        TRY(tune_jinja_compare(run, more->op, &left, &right, &holds));
        left = right;
    }
    *v = tune_jinja_bool(holds);
    return 0;
}

static int collect(jrun *run, const node *n, jval *v)
{
    jval item, value;
    if (n->kind == JINJA_N_LIST) {
        TRY(tune_jinja_list_new(run, 0, n->tuple, v));
        for (const node *m = n->args; m; m = m->next) {
            TRY(tune_jinja_eval(run, m, &item));
            TRY(tune_jinja_list_add(run, v, item));
        }
        return 0;
    }
    TRY(tune_jinja_dict_new(run, v));
    for (const node *m = n->args; m; m = m->next->next) {
        TRY(tune_jinja_eval(run, m, &item));
        TRY(tune_jinja_eval(run, m->next, &value));
        if (item.type != JINJA_TEXT && item.type != JINJA_INT)
            return tune_jinja_fail(run, "%s as a key of a mapping is not supported; expected a string or an integer",
                                   tune_jinja_type_name(&item));
        TRY(tune_jinja_dict_put(run, v->dict, item, value));
    }
    return 0;
}

static int arguments(jrun *run, const node *n, struct tune_jinja_args *args)
{
    int count = 0;
    for (const node *m = n->args; m; m = m->next)
        count++;
    *args = (struct tune_jinja_args){0};
    if (count == 0)
        return 0;
    args->values = tune_jinja_take(&run->memory, (size_t)count * sizeof *args->values);
    args->names = tune_jinja_take(&run->memory, (size_t)count * sizeof *args->names);
    if (!args->values || !args->names)
        return -1;
    for (const node *m = n->args; m; m = m->next) {
        TRY(tune_jinja_eval(run, m, &args->values[args->count]));
        args->names[args->count++] = m->key;
    }
    return 0;
}

static int call(jrun *run, const node *n, jval *v)
{
    struct tune_jinja_args args;
    const struct tune_jinja_name *what = NULL;
    const jval *there = NULL;
    jval of = {0}, callee = {0};
    if (n->a->kind == JINJA_N_ATTRIBUTE)
        TRY(tune_jinja_eval(run, n->a->a, &of));
    TRY(arguments(run, n, &args));
    run->line = n->line;
    if (n->a->kind != JINJA_N_ATTRIBUTE) {
        there = lookup(run, n->a->name);
        what = there ? NULL : n->known;
        callee = there ? *there : callee;
    } else if (of.type == JINJA_TEXT || of.type == JINJA_DICT) {
        what = tune_jinja_known(of.type == JINJA_TEXT ? JINJA_TEXT_METHOD : JINJA_DICT_METHOD, n->a->name);
    } else if (of.type == JINJA_LIST && !of.view) {
        what = tune_jinja_known(JINJA_LIST_METHOD, n->a->name);
    }
    if (of.safe)
        return tune_jinja_fail(run, "a method of what the filter safe gives is not supported");
    if (what)
        return tune_jinja_apply(run, what, &of, &args, v);
    if (n->a->kind == JINJA_N_ATTRIBUTE)
        TRY(attribute(run, &of, n->a->name, &callee));
    if ((of.type == JINJA_LIST || of.type == JINJA_DICT) && callee.type == JINJA_UNDEFINED && tune_jinja_changes(n->a->name))
        return tune_jinja_fail(run, "%.*s() would change %s, which the sandbox of chat templates forbids",
                               JINJA_SHOWN(n->a->name), tune_jinja_type_name(&of));
    if (callee.type == JINJA_MACRO)
        return tune_jinja_call_macro(run, callee.macro, &args, v);
    return tune_jinja_fail(run, "%.*s is called, but is %s", JINJA_SHOWN(n->a->name), tune_jinja_type_name(&callee));
}

static int negate(jrun *run, const node *n, jval *v)
{
    TRY(tune_jinja_eval(run, n->a, v));
    run->line = n->line;
    if (v->type == JINJA_FLOAT) {
        v->number = n->kind == JINJA_N_NEGATE ? -v->number : v->number;
        return 0;
    }
    jval zero = tune_jinja_int(0), operand = *v;
    const enum tune_operator op = n->kind == JINJA_N_NEGATE ? TUNE_SUBTRACT : TUNE_ADD;
    return tune_jinja_binary(run, op, &zero, &operand, v);
}

static int eval(jrun *run, const node *n, jval *v)
{
    jval a, b;
    struct tune_jinja_args args;
    switch (n->kind) {
    case JINJA_N_CONST: *v = n->value; return 0;
    case JINJA_N_NAME: {
        const jval *there = lookup(run, n->name);
        *v = there ? *there : tune_jinja_undefined(n->name.data, n->name.size);
        if (!there && tune_jinja_known(JINJA_FUNCTION, n->name))
            v->type = JINJA_METHOD;
        return 0;
    }
    case JINJA_N_LIST: case JINJA_N_DICT: return collect(run, n, v);
    case JINJA_N_COMPARE: return compare_chain(run, n, v);
    case JINJA_N_CALL: return call(run, n, v);
    case JINJA_N_NEGATE: case JINJA_N_PLUS: return negate(run, n, v);
    case JINJA_N_AND: case JINJA_N_OR:
        for (const node *m = n->args; m; m = m->next) {
            TRY(tune_jinja_eval(run, m, v));
            if (tune_jinja_truth(v) == (n->kind == JINJA_N_OR))
                break;
        }
        return 0;
    }
    TRY(tune_jinja_eval(run, n->a, &a));
    run->line = n->line;
    switch (n->kind) {
    case JINJA_N_ATTRIBUTE: return attribute(run, &a, n->name, v);
    case JINJA_N_SLICE: return slice(run, n, &a, v);
    case JINJA_N_NOT: *v = tune_jinja_bool(!tune_jinja_truth(&a)); return 0;
    case JINJA_N_IF_ELSE:
        if (!tune_jinja_truth(&a) && !n->c) {
            *v = tune_jinja_undefined("an if without else", 18);
            return 0;
        }
        return tune_jinja_eval(run, tune_jinja_truth(&a) ? n->b : n->c, v);
    case JINJA_N_FILTER: case JINJA_N_TEST:
        TRY(arguments(run, n, &args));
        run->line = n->line;
        return tune_jinja_apply(run, n->known, &a, &args, v);
    }
    TRY(tune_jinja_eval(run, n->b, &b));
    run->line = n->line;
    return n->kind == JINJA_N_ITEM ? tune_jinja_item(run, &a, &b, v) : tune_jinja_binary(run, n->op, &a, &b, v);
}

int tune_jinja_eval(jrun *run, const node *n, jval *v)
{
    run->line = n->line;
    TRY(tune_jinja_step(run, 0));
    if (run->depth >= TUNE_JINJA_DEPTH * 2)
        return tune_jinja_fail(run, "more than %d expressions, blocks and macros inside one another", TUNE_JINJA_DEPTH * 2);
    run->depth++;
    int failed = eval(run, n, v);
    run->depth--;
    return failed;
}
