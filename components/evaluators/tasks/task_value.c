/* task_value.c - what doc_to_text and its like make of a row: a column, a template, Python literals. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "evaluators/tasks/parts.h"
#include "tokenizers/unicode.h"

/* ---- Python literals ---- */
struct literal {
    struct tune_pool **pool;
    const char *at, *end;
    bool no_memory;
};

static void space(struct literal *l)
{
    while (l->at < l->end && strchr(" \t\r\n", *l->at))
        l->at++;
}

/* The escape behind a backslash; its character to *to. */
static bool escape(struct literal *l, char **to)
{
    static const char plain[] = "n\nt\tr\rb\bf\fv\va\a\\\\''\"\"";
    char c = l->at < l->end ? *l->at++ : 0;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    for (const char *q = plain; *q; q += 2)
        if (*q == c) {
            *(*to)++ = q[1];
            return true;
        }
    if (digits == 0 || l->end - l->at < digits)
        return false;
    char hex[9] = "", *stop;
    memcpy(hex, l->at, (size_t)digits);
    uint32_t code = (uint32_t)strtoul(hex, &stop, 16);
    l->at += digits;
    if (*stop || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return false;
    *to += tune_utf8_put(*to, code);
    return true;
}

static bool quoted(struct literal *l, struct task_value *v)
{
    char quote = *l->at++, *text = tune_pool_take(l->pool, (size_t)(l->end - l->at) + 1), *to = text;
    l->no_memory = !text;
    while (text && l->at < l->end && *l->at != quote) {
        if (*l->at == '\\') {
            l->at++;
            if (!escape(l, &to))
                return false;
        } else
            *to++ = *l->at++;
    }
    if (!text || l->at == l->end)
        return false;
    l->at++;
    *v = (struct task_value){.type = TASK_TEXT, .text = {text, (size_t)(to - text)}};
    return true;
}

static bool literal(struct literal *l, int depth, struct task_value *v);

static bool listed(struct literal *l, int depth, struct task_value *v)
{
    char close = *l->at++ == '[' ? ']' : ')';
    int room = 0;
    *v = (struct task_value){.type = TASK_LIST};
    for (space(l); l->at < l->end && *l->at != close; space(l)) {
        if (v->count == room) {
            struct task_value *wider = tune_pool_take(l->pool, (size_t)(room = room ? 2 * room : 8) * sizeof *wider);
            l->no_memory = l->no_memory || !wider;
            if (!wider)
                return false;
            if (v->count)
                memcpy(wider, v->items, (size_t)v->count * sizeof *wider);
            v->items = wider;
        }
        if (!literal(l, depth + 1, &v->items[v->count++]))
            return false;
        space(l);
        if (l->at < l->end && *l->at == ',')
            l->at++;
        else if (l->at >= l->end || *l->at != close)
            return false;
    }
    if (l->at == l->end)
        return false;
    l->at++;
    return true;
}

static bool word(struct literal *l, const char *name)
{
    size_t size = strlen(name);
    if ((size_t)(l->end - l->at) < size || memcmp(l->at, name, size) != 0)
        return false;
    l->at += size;
    return true;
}

static bool literal(struct literal *l, int depth, struct task_value *v)
{
    space(l);
    if (l->at == l->end || depth > TASK_DEEP)
        return false;
    if (*l->at == '\'' || *l->at == '"')
        return quoted(l, v);
    if (*l->at == '[' || *l->at == '(')
        return listed(l, depth, v);
    *v = (struct task_value){.type = TASK_WHOLE};
    if (word(l, "None")) {
        v->type = TASK_NOTHING;
        return true;
    }
    if (word(l, "False") || (word(l, "True") && (v->whole = 1)))
        return true;
    char digits[24] = "", *stop;
    size_t size = 0;
    while (l->at + size < l->end && size < sizeof digits - 1 && strchr("+-0123456789", l->at[size]))
        size++;
    memcpy(digits, l->at, size);
    v->whole = strtoll(digits, &stop, 10);
    l->at += size;
    return size > 0 && !*stop;
}

int tune_task_literal(struct tune_pool **pool, const char *text, size_t size, struct task_value *v)
{
    struct literal l = {pool, text, text + size, false};
    bool good = literal(&l, 0, v);
    space(&l);
    return l.no_memory ? tune_error_no_memory("a list") : good && l.at == l.end;
}

/* ---- columns ---- */
static int read_json(struct tune_pool **pool, struct tune_json *j, int depth, struct task_value *v)
{
    struct tune_text text;
    bool truth;
    double number;
    int more, room = 0;
    *v = (struct task_value){.type = TASK_NOTHING};
    switch (tune_json_peek(j)) {
    case TUNE_JSON_STRING:
        TRY(tune_json_string(j, &text));
        const char *copy = tune_pool_text(pool, text.data, text.size);
        *v = (struct task_value){.type = TASK_TEXT, .text = {copy, text.size}};
        return copy ? 0 : tune_error_no_memory("a row");
    case TUNE_JSON_BOOL:
        TRY(tune_json_bool(j, &truth));
        *v = (struct task_value){.type = TASK_WHOLE, .whole = truth};
        return 0;
    case TUNE_JSON_NUMBER:
        TRY(tune_json_double(j, &number));
        if (number == (double)(int64_t)number)
            *v = (struct task_value){.type = TASK_WHOLE, .whole = (int64_t)number};
        return 0;
    case TUNE_JSON_ARRAY:
        if (depth > TASK_DEEP)
            return tune_json_fail(j, "nested too deep");
        v->type = TASK_LIST;
        TRY(tune_json_array(j));
        while ((more = tune_json_item(j)) == 1) {
            if (v->count == room) {
                struct task_value *wider = tune_pool_take(pool, (size_t)(room = room ? 2 * room : 8) * sizeof *wider);
                if (!wider)
                    return tune_error_no_memory("a row");
                if (v->count)
                    memcpy(wider, v->items, (size_t)v->count * sizeof *wider);
                v->items = wider;
            }
            TRY(read_json(pool, j, depth + 1, &v->items[v->count++]));
        }
        return more;
    case TUNE_JSON_ERROR: return -1;
    default: return tune_json_skip(j);
    }
}

static int column_value(const struct task *t, const struct task_column *c, struct task_row *row, struct task_value *v)
{
    struct tune_json j;
    tune_json_start(&j, t->rows_path, c->json, c->size, row->line);
    j.lone_surrogates = j.python = true;
    int status = read_json(&row->pool, &j, 0, v);
    tune_json_free(&j);
    return status;
}

/* ---- templates ---- */
static int render(struct task *t, const struct task_field *f, struct task_row *row, struct tune_text *out)
{
    struct tune_jinja_output o;
    struct tune_jinja_run *run = tune_jinja_begin(f->jinja, 0);
    int status = run ? 0 : -1;
    for (int i = 0; i < row->count && status == 0; i++)
        status = tune_jinja_set_json(run, row->columns[i].name, row->columns[i].json, row->columns[i].size, t->rows_path, row->line);
    if (status == 0 && (status = tune_jinja_render(run, &o)) == 0) {
        out->data = tune_pool_text(&row->pool, o.text, o.size);
        out->size = o.size;
        status = out->data ? 0 : tune_error_no_memory("a prompt");
    }
    tune_jinja_end(run);
    return status;
}

static bool is_digits(struct tune_text text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.size > 0 && text.size < 19;
}

/* Read a rendered text as lm-eval does: digits are a number, brackets a list. */
static int understand(struct task *t, const struct task_field *f, struct task_row *row, enum task_use use, struct task_value *v)
{
    struct tune_text text = v->text;
    bool digits = use != TASK_AS_PLAIN && use != TASK_AS_CHOICES && t->choice.kind != TASK_ABSENT && is_digits(text);
    if (digits) {
        *v = (struct task_value){.type = TASK_WHOLE, .whole = strtoll(text.data, NULL, 10)};
        return 0;
    }
    bool brackets = text.size >= 2 && text.data[0] == '[' && text.data[text.size - 1] == ']';
    if (use == TASK_AS_CHOICES || (use == TASK_AS_TARGET && brackets)) {
        int known;
        struct task_value list;
        TRY(known = tune_task_literal(&row->pool, text.data, text.size, &list));
        if (known == 1)
            *v = list;
        else if (use == TASK_AS_CHOICES)
            return tune_error_usage("row %" PRId64 ": %s gives \"%.100s\"; expected a list of texts, such as ['a', 'b']", row->number, f->name,
                                    text.data);
    }
    return 0;
}

static int value_of(struct task *t, const struct task_field *f, struct task_row *row, enum task_use use, struct task_value *v)
{
    *v = f->value;
    if (f->kind == TASK_FIXED)
        return 0;
    for (int i = 0; i < row->count; i++)
        if (!strcmp(row->columns[i].name, f->text))
            return column_value(t, &row->columns[i], row, v);
    *v = (struct task_value){.type = TASK_TEXT};
    TRY(render(t, f, row, &v->text));
    return understand(t, f, row, use, v);
}

int tune_task_value_of(struct task *t, const struct task_field *f, struct task_row *row, enum task_use use, struct task_value *v)
{
    static const char *const wanted[] = {"a text", "a text, a whole number or a list", "a list of texts", "a text"};
    if (value_of(t, f, row, use, v) < 0)
        return tune_error_prefix("%s: row %" PRId64 ": ", t->path, row->number);
    bool good = use == TASK_AS_TARGET ? v->type != TASK_NOTHING : use == TASK_AS_CHOICES ? v->type == TASK_LIST && v->count > 0 : v->type == TASK_TEXT;
    for (int i = 0; good && use == TASK_AS_CHOICES && i < v->count; i++)
        good = v->items[i].type == TASK_TEXT;
    if (!good)
        return tune_error_usage("%s: row %" PRId64 ": %s gives something else than %s%s", t->path, row->number, f->name, wanted[use],
                                use == TASK_AS_TEXT && v->type == TASK_WHOLE ? "; tasks with a context for each choice are not read here" : "");
    return 0;
}
