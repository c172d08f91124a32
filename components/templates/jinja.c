/* jinja.c - open a template and execute its statements. */
#include "templates/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "templates/jinja_parts.h"

typedef struct tune_jinja_node node;
enum { DONE, BREAK, CONTINUE };

int tune_jinja_refuse(const struct tune_jinja *t, int line, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tune_error_set("%s:%d: %s", t->name, line, what);
}

static struct tune_jinja *open_template(const char *name, const char *text, size_t size, bool plain)
{
    struct tune_jinja *t = calloc(1, sizeof *t);
    size_t bad;
    if (!t) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a chat template");
        return NULL;
    }
    t->memory.limit = TUNE_JINJA_PARSE_BYTES;
    t->plain = plain;
    char *copy = tune_jinja_take(&t->memory, strlen(name) + 1);
    if (!copy)
        goto fail;
    strcpy(copy, name);
    t->name = copy;
    if (size > TUNE_JINJA_TEMPLATE_BYTES) {
        tune_error_set("%s: a template of %zu bytes; expected at most %d", name, size, TUNE_JINJA_TEMPLATE_BYTES);
        goto fail;
    }
    if (!tune_utf8_valid(text, size, &bad)) {
        tune_error_set("%s: the template is not UTF-8: byte 0x%02x at offset %zu", name, (unsigned char)text[bad], bad);
        goto fail;
    }
    if (tune_jinja_lex(t, text, size) == 0 && tune_jinja_parse(t) == 0)
        return t;
fail:
    tune_jinja_free(t);
    return NULL;
}

struct tune_jinja *tune_jinja_open(const char *name, const char *text, size_t size)
{
    return open_template(name, text, size, false);
}

struct tune_jinja *tune_jinja_open_plain(const char *name, const char *text, size_t size)
{
    return open_template(name, text, size, true);
}

void tune_jinja_free(struct tune_jinja *t)
{
    if (!t)
        return;
    tune_jinja_release(&t->memory);
    free(t);
}

struct tune_jinja_run *tune_jinja_begin(const struct tune_jinja *t, int64_t seconds)
{
    jrun *run = calloc(1, sizeof *run);
    if (!run) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a chat template");
        return NULL;
    }
    run->t = t;
    run->memory.limit = TUNE_JINJA_MEMORY;
    run->seconds = seconds < 0 ? (int64_t)time(NULL) : seconds;
    run->scope = &run->globals;
    run->line = 1;
    run->mark = TUNE_JINJA_DATA;
    return run;
}

void tune_jinja_end(struct tune_jinja_run *run)
{
    if (!run)
        return;
    tune_jinja_release(&run->memory);
    free(run);
}

static int set_global(jrun *run, const char *variable, jval value)
{
    jval key;
    TRY(tune_jinja_copy_text(run, variable, strlen(variable), 0, &key));
    return tune_jinja_dict_put(run, &run->globals.names, key, value);
}

int tune_jinja_set_text(jrun *run, const char *variable, const char *text, size_t size)
{
    jval v;
    TRY(tune_jinja_copy_text(run, text, size, 0, &v));
    return set_global(run, variable, v);
}

int tune_jinja_set_bool(jrun *run, const char *variable, bool value)
{
    return set_global(run, variable, tune_jinja_bool(value));
}

int tune_jinja_set_none(jrun *run, const char *variable)
{
    return set_global(run, variable, (jval){.type = JINJA_NONE});
}

int tune_jinja_set_json(jrun *run, const char *variable, const char *json, size_t size, const char *name, int64_t line)
{
    struct tune_json j;
    jval v;
    tune_json_start(&j, name, json, size, line);
    int failed = tune_jinja_read_json(run, &j, 0, &v) < 0 || tune_json_end(&j) < 0;
    tune_json_free(&j);
    return failed ? -1 : set_global(run, variable, v);
}

/* ---- statements ---- */
static int body(jrun *run, const node *n);

static int assign(jrun *run, struct tune_text name, jval value)
{
    jval key = {.type = JINJA_TEXT, .text = name.data, .size = name.size};
    return tune_jinja_dict_put(run, &run->scope->names, key, value);
}

/* Assign a value to one name, or its items to several. */
static int assign_all(jrun *run, const node *n, const jval *value)
{
    jval list;
    size_t i = 0, count = 0;
    if (!n->tuple)
        return assign(run, n->args->name, *value);
    TRY(tune_jinja_iterate(run, value, &list));
    for (const node *name = n->args; name; name = name->next)
        count++;
    if (list.list->count != count)
        return tune_jinja_fail(run, "%zu names for a value of %zu parts", count, list.list->count);
    for (const node *name = n->args; name; name = name->next)
        TRY(assign(run, name->name, list.list->items[i++]));
    return 0;
}

static int set(jrun *run, const node *n, const jval *value)
{
    jval space;
    if (!n->key.data)
        return assign_all(run, n, value);
    TRY(tune_jinja_eval(run, n->args, &space));
    run->line = n->line;
    if (space.type != JINJA_NAMESPACE)
        return tune_jinja_fail(run, "%.*s.%.*s is set, but %.*s is %s; expected a namespace()", (int)n->args->name.size,
                               n->args->name.data, (int)n->key.size, n->key.data, (int)n->args->name.size, n->args->name.data,
                               tune_jinja_type_name(&space));
    jval key = {.type = JINJA_TEXT, .text = n->key.data, .size = n->key.size};
    return tune_jinja_dict_put(run, space.dict, key, *value);
}

static int push(jrun *run, struct tune_jinja_scope *above, struct tune_jinja_scope **scope)
{
    struct tune_jinja_scope *s = tune_jinja_take(&run->memory, sizeof *s);
    if (!s)
        return -1;
    s->above = above;
    *scope = s;
    return 0;
}

/* Run a block in its own scope and return its output as a value. */
static int capture(jrun *run, const node *n, jval *v)
{
    struct tune_jinja_buffer text = {0}, *out = run->out;
    struct tune_jinja_scope *above = run->scope;
    TRY(push(run, above, &run->scope));
    run->out = &text;
    int how = body(run, n);
    run->out = out;
    run->scope = above;
    *v = tune_jinja_take_buffer(&text);
    return how;
}

/* The items that pass the loop's own if. */
static int filtered(jrun *run, const node *n, jval *list)
{
    jval all = *list, holds;
    struct tune_jinja_scope *above = run->scope;
    TRY(tune_jinja_list_new(run, 0, false, list));
    for (size_t i = 0; i < all.list->count; i++) {
        TRY(push(run, above, &run->scope));
        int failed = assign_all(run, n, &all.list->items[i]) < 0 || tune_jinja_eval(run, n->filter, &holds) < 0;
        run->scope = above;
        if (failed)
            return -1;
        if (tune_jinja_truth(&holds))
            TRY(tune_jinja_list_add(run, list, all.list->items[i]));
    }
    return 0;
}

/* Record the loop's output from begin on, if its item's turn is recorded. */
static int note_turn(jrun *run, const jval *item, size_t begin)
{
    struct tune_jinja_turn *turn = item->type == JINJA_DICT ? item->dict->turn : NULL;
    size_t end = run->out->size, at = begin;
    if (!turn || run->out != &run->text)
        return 0;
    TRY(tune_jinja_step(run, (end - begin) / 64));
    while (at < end && tune_jinja_is_space((unsigned char)run->out->text[at]))
        at++;
    if (at < end)
        *turn = (struct tune_jinja_turn){begin, end, turn->times + 1};
    return 0;
}

static int for_(jrun *run, const node *n)
{
    static const struct tune_text word = {"loop", 4};
    struct tune_jinja_scope *above = run->scope;
    jval sequence, list;
    int how = DONE;
    TRY(tune_jinja_eval(run, n->a, &sequence));
    run->line = n->line;
    TRY(tune_jinja_iterate(run, &sequence, &list));
    if (n->filter)
        TRY(filtered(run, n, &list));
    if (list.list->count == 0)
        return n->c ? body(run, n->c) : DONE;
    for (size_t i = 0; i < list.list->count && how != BREAK; i++) {
        struct tune_jinja_loop *loop = tune_jinja_take(&run->memory, sizeof *loop);
        if (!loop || push(run, above, &run->scope) < 0) {
            run->scope = above;
            return -1;
        }
        *loop = (struct tune_jinja_loop){.list = list.list, .index = i};
        size_t begin = run->out->size;
        if (assign(run, word, (jval){.type = JINJA_LOOP, .loop = loop}) < 0 || assign_all(run, n, &list.list->items[i]) < 0)
            how = -1;
        else
            how = body(run, n->b);
        run->scope = above;
        if (how < 0 || note_turn(run, &list.list->items[i], begin) < 0)
            return -1;
    }
    return DONE;
}

/* StrictUndefined: what is undefined may neither be written nor tested. */
static int check_defined(jrun *run, const jval *v)
{
    if (!run->t->plain || v->type != JINJA_UNDEFINED)
        return 0;
    return tune_jinja_fail(run, "%.*s is undefined", (int)(v->size > 60 ? 60 : v->size), v->text);
}

static int if_(jrun *run, const node *n)
{
    jval condition;
    for (;; n = n->c) {
        TRY(tune_jinja_eval(run, n->a, &condition));
        TRY(check_defined(run, &condition));
        if (tune_jinja_truth(&condition))
            return body(run, n->b);
        if (!n->c)
            return DONE;
        if (n->c->kind != JINJA_N_IF || !n->c->tuple)
            return body(run, n->c);
    }
}

static int make_macro(jrun *run, const node *n)
{
    struct tune_jinja_macro *macro = tune_jinja_take(&run->memory, sizeof *macro);
    if (!macro)
        return -1;
    *macro = (struct tune_jinja_macro){.node = n, .scope = run->scope};
    return assign(run, n->name, (jval){.type = JINJA_MACRO, .macro = macro});
}

static bool names(const struct tune_text *a, struct tune_text b)
{
    return a->data && a->size == b.size && memcmp(a->data, b.data, b.size) == 0;
}

static int bind(jrun *run, const struct tune_jinja_macro *macro, const struct tune_jinja_args *args)
{
    int place = 0, used = 0;
    const node *n = macro->node;
    for (const node *p = n->args; p; p = p->next, place++) {
        jval value = tune_jinja_undefined(p->name.data, p->name.size);
        bool given = place < args->count && !args->names[place].data;
        if (given)
            value = args->values[place];
        used += given;
        for (int i = 0; i < args->count; i++)
            if (names(&args->names[i], p->name)) {
                if (given)
                    return tune_jinja_fail(run, "macro %.*s has two values for %.*s", (int)n->name.size, n->name.data,
                                           (int)p->name.size, p->name.data);
                given = true;
                value = args->values[i];
                used++;
            }
        if (!given && p->a)
            TRY(tune_jinja_eval(run, p->a, &value));
        TRY(assign(run, p->name, value));
    }
    if (used == args->count)
        return 0;
    return tune_jinja_fail(run, "macro %.*s is called with arguments that it does not have", (int)n->name.size, n->name.data);
}

int tune_jinja_call_macro(jrun *run, const struct tune_jinja_macro *macro, const struct tune_jinja_args *args, jval *v)
{
    struct tune_jinja_scope *scope = run->scope;
    int line = run->line;
    TRY(push(run, macro->scope, &run->scope));
    int failed = bind(run, macro, args) < 0 || capture(run, macro->node->b, v) < 0;
    run->scope = scope;
    run->line = failed ? run->line : line;
    return failed ? -1 : 0;
}

/* A block with its own scope that adds nothing to the output. */
static int generation(jrun *run, const node *n)
{
    jval text;
    TRY(capture(run, n->b, &text));
    return tune_jinja_put_value(run, run->out, &text);
}

static int print(jrun *run, const jval *v)
{
    size_t begin = run->out->size;
    TRY(check_defined(run, v));
    TRY(tune_jinja_put_value(run, run->out, v));
    if (run->out->size > begin)
        run->out->marks[begin] |= TUNE_JINJA_PIECE;
    return DONE;
}

static int statement(jrun *run, const node *n)
{
    jval v;
    switch (n->kind) {
    case JINJA_N_DATA: return print(run, &n->value);
    case JINJA_N_PRINT: TRY(tune_jinja_eval(run, n->a, &v)); run->line = n->line; return print(run, &v);
    case JINJA_N_FOR: return for_(run, n);
    case JINJA_N_IF: return if_(run, n);
    case JINJA_N_SET: TRY(tune_jinja_eval(run, n->a, &v)); run->line = n->line; return set(run, n, &v);
    case JINJA_N_SET_BLOCK: {
        int how = capture(run, n->b, &v);
        return how == DONE ? set(run, n, &v) : how;
    }
    case JINJA_N_MACRO: return make_macro(run, n);
    case JINJA_N_GENERATION: return generation(run, n);
    case JINJA_N_BREAK: return BREAK;
    default: return CONTINUE;
    }
}

static int body(jrun *run, const node *n)
{
    int how = DONE;
    if (run->depth >= TUNE_JINJA_DEPTH * 2)
        return tune_jinja_fail(run, "more than %d expressions, blocks and macros inside one another", TUNE_JINJA_DEPTH * 2);
    run->depth++;
    for (; n && how == DONE; n = n->next) {
        run->line = n->line;
        how = tune_jinja_step(run, 0) < 0 ? -1 : statement(run, n);
    }
    run->depth--;
    return how;
}

int tune_jinja_render(jrun *run, struct tune_jinja_output *out)
{
    const struct tune_jinja_buffer *text = &run->text;
    struct tune_jinja_scope *scope;
    run->out = &run->text;
    TRY(push(run, &run->globals, &scope));
    run->scope = scope;
    TRY(body(run, run->t->body));
    *out = (struct tune_jinja_output){.text = text->text ? text->text : "", .marks = text->marks, .size = text->size};
    return 0;
}
