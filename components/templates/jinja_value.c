/* jinja_value.c - memory and values of the interpreter: marked texts, lists, ordered mappings. They
 * print, compare and iterate as in Python. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/decimal.h"
#include "files/file.h"
#include "templates/jinja_parts.h"
#include "tokenizers/unicode.h"

struct tune_jinja_block {
    struct tune_jinja_block *next;
    _Alignas(16) char bytes[];
};

void *tune_jinja_take(struct tune_jinja_memory *m, size_t size)
{
    if (size > m->limit) {
        tune_error_set("the template wants more than %zu MB of memory", m->limit >> 20);
        return NULL;
    }
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(m->end - m->at) < size) {
        size_t room = m->used < (64 << 10) ? 4 << 10 : 64 << 10;
        room = size > room ? size : room;
        struct tune_jinja_block *block = m->used + room <= m->limit ? calloc(1, sizeof *block + room) : NULL;
        if (!block) {
            if (m->used + room <= m->limit)
                tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for %zu bytes of a chat template", room);
            else
                tune_error_set("the template wants more than %zu MB of memory", m->limit >> 20);
            return NULL;
        }
        block->next = m->blocks;
        m->blocks = block;
        m->used += room;
        m->at = block->bytes;
        m->end = block->bytes + room;
    }
    void *p = m->at;
    m->at += size;
    return p;
}

void tune_jinja_release(struct tune_jinja_memory *m)
{
    while (m->blocks) {
        struct tune_jinja_block *next = m->blocks->next;
        free(m->blocks);
        m->blocks = next;
    }
}

int tune_jinja_fail(jrun *run, const char *format, ...)
{
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tune_error_set("%s:%d: %s", run->t->name, run->line, what);
}

int tune_jinja_step(jrun *run, size_t cost)
{
    run->steps += 1 + (int64_t)cost;
    if (run->steps <= TUNE_JINJA_STEPS)
        return 0;
    return tune_jinja_fail(run, "the template took more than %d steps: it may never end", TUNE_JINJA_STEPS);
}

int tune_jinja_copy_text(jrun *run, const char *text, size_t size, uint8_t mark, jval *v)
{
    char *copy = tune_jinja_take(&run->memory, size + 1);
    if (!copy)
        return -1;
    if (size)
        memcpy(copy, text, size);
    *v = (jval){.type = JINJA_TEXT, .mark = mark, .text = copy, .size = size};
    return tune_jinja_step(run, size / 64);
}

int tune_jinja_list_new(jrun *run, size_t room, bool tuple, jval *v)
{
    struct tune_jinja_list *list = tune_jinja_take(&run->memory, sizeof *list);
    if (!list || (room && !(list->items = tune_jinja_take(&run->memory, room * sizeof *list->items))))
        return -1;
    list->room = room;
    *v = (jval){.type = JINJA_LIST, .tuple = tuple, .list = list};
    return 0;
}

/* Copy an array of count entries to a larger one in the arena. */
static void *grown(jrun *run, const void *old, size_t count, size_t room, size_t size)
{
    void *items = tune_jinja_take(&run->memory, room * size);
    if (items && count)
        memcpy(items, old, count * size);
    return items;
}

int tune_jinja_list_add(jrun *run, jval *v, jval item)
{
    struct tune_jinja_list *list = v->list;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 4;
        jval *items = grown(run, list->items, list->count, room, sizeof *items);
        if (!items)
            return -1;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
    return tune_jinja_step(run, 0);
}

static bool is_number(const jval *v)
{
    return v->type == JINJA_BOOL || v->type == JINJA_INT || v->type == JINJA_FLOAT;
}

bool tune_jinja_as_number(const jval *v, struct tune_number *number)
{
    if (v->type == JINJA_FLOAT)
        *number = tune_number_float(v->number);
    else
        *number = tune_number_whole(v->type == JINJA_BOOL ? v->truth : v->whole);
    return is_number(v);
}

static int order_numbers(const jval *a, const jval *b)
{
    struct tune_number x, y;
    tune_jinja_as_number(a, &x);
    tune_jinja_as_number(b, &y);
    return tune_number_compare(&x, &y);
}

int tune_jinja_dict_new(jrun *run, jval *v)
{
    struct tune_jinja_dict *dict = tune_jinja_take(&run->memory, sizeof *dict);
    *v = (jval){.type = JINJA_DICT, .dict = dict};
    return dict ? 0 : -1;
}

static bool same_text(const jval *v, const char *text, size_t size)
{
    return v->size == size && (size == 0 || memcmp(v->text, text, size) == 0);
}

/* Linear search: mappings here have a few dozen keys. For larger ones, the limit on steps of a run holds. */
const jval *tune_jinja_dict_find(jrun *run, const struct tune_jinja_dict *d, struct tune_text key)
{
    size_t i = 0;
    while (i < d->count && !(d->keys[i].type == JINJA_TEXT && same_text(&d->keys[i], key.data, key.size))) {
        run->steps += d->keys[i].size == key.size ? (int64_t)key.size / 64 : 0;
        i++;
    }
    run->steps += (int64_t)(i / 16 + key.size / 64);
    return i < d->count ? &d->values[i] : NULL;
}

const jval *tune_jinja_dict_at(jrun *run, const struct tune_jinja_dict *d, const jval *key)
{
    size_t i = 0;
    if (key->type == JINJA_TEXT)
        return tune_jinja_dict_find(run, d, (struct tune_text){key->text, key->size});
    while (i < d->count && !(is_number(key) && is_number(&d->keys[i]) && order_numbers(&d->keys[i], key) == 0))
        i++;
    run->steps += (int64_t)i / 16;
    return i < d->count ? &d->values[i] : NULL;
}

int tune_jinja_dict_put(jrun *run, struct tune_jinja_dict *d, jval key, jval value)
{
    jval *there = (jval *)tune_jinja_dict_at(run, d, &key);
    TRY(tune_jinja_step(run, 0));
    if (there) {
        *there = value;
        return 0;
    }
    if (d->count == d->room) {
        size_t room = d->room ? d->room * 2 : 8;
        jval *keys = grown(run, d->keys, d->count, room, sizeof *keys);
        jval *values = grown(run, d->values, d->count, room, sizeof *values);
        if (!keys || !values)
            return -1;
        *d = (struct tune_jinja_dict){.count = d->count, .room = room, .keys = keys, .values = values};
    }
    d->keys[d->count] = key;
    d->values[d->count++] = value;
    return 0;
}

/* ---- text ---- */
int tune_jinja_put(jrun *run, struct tune_jinja_buffer *b, const char *text, const uint8_t *marks, uint8_t mark, size_t size)
{
    if (size == 0)
        return 0;
    if (b->size + size > TUNE_JINJA_OUTPUT)
        return tune_jinja_fail(run, "a text of more than %d MB", TUNE_JINJA_OUTPUT >> 20);
    if (b->room - b->size <= size) {
        size_t room = (b->size + size) * 2 + 64;
        char *more = grown(run, b->text, b->size, room, 1);
        uint8_t *more_marks = grown(run, b->marks, b->size, room, 1);
        if (!more || !more_marks)
            return -1;
        b->text = more;
        b->marks = more_marks;
        b->room = room;
    }
    memcpy(b->text + b->size, text, size);
    if (marks)
        memcpy(b->marks + b->size, marks, size);
    else
        memset(b->marks + b->size, mark, size);
    b->size += size;
    b->text[b->size] = 0;
    return tune_jinja_step(run, size / 64);
}

static int put_word(jrun *run, struct tune_jinja_buffer *b, const char *word)
{
    return tune_jinja_put(run, b, word, NULL, 0, strlen(word));
}

jval tune_jinja_take_buffer(const struct tune_jinja_buffer *b)
{
    return (jval){.type = JINJA_TEXT, .text = b->text ? b->text : "", .size = b->size, .marks = b->marks};
}

/* True for non-ASCII characters that Python prints unescaped, as blocks in which all are: Latin,
 * Greek, Cyrillic, punctuation, currencies, kana, ideographs, Hangul, emoji. */
static bool is_printable(uint32_t c)
{
    static const uint32_t blocks[][2] = {{0xA1, 0xAC}, {0xAE, 0x377}, {0x3A3, 0x52F}, {0x2010, 0x2027}, {0x2030, 0x205E},
                                         {0x20A0, 0x20BF}, {0x2190, 0x21FF}, {0x3041, 0x3096}, {0x3099, 0x30FF}, {0x4E00, 0x9FEF},
                                         {0xAC00, 0xD7A3}, {0x1F600, 0x1F64F}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

/* Append a string like Python's repr(). */
static int put_quoted(jrun *run, struct tune_jinja_buffer *b, const jval *v)
{
    char quote = memchr(v->text, '\'', v->size) && !memchr(v->text, '"', v->size) ? '"' : '\'', code[8];
    TRY(tune_jinja_put(run, b, &quote, NULL, 0, 1));
    for (size_t i = 0, size; i < v->size; i += size) {
        const char *next = v->text + i;
        uint32_t c = tune_utf8_next(&next);
        uint8_t mark = v->marks ? v->marks[i] : v->mark;
        size = (size_t)(next - v->text) - i;
        if (c >= 0x80 && !is_printable(c))
            return tune_jinja_fail(run, "a list or mapping that holds the character U+%04X is printed: write it with tojson", c);
        if (c >= 0x80)
            snprintf(code, sizeof code, "%.*s", (int)size, v->text + i);
        else if (c == '\n' || c == '\r' || c == '\t' || c == '\\' || c == (uint32_t)quote)
            snprintf(code, sizeof code, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (int)c);
        else
            snprintf(code, sizeof code, c < 32 || c == 127 ? "\\x%02x" : "%c", c);
        TRY(tune_jinja_put(run, b, code, NULL, mark, strlen(code)));
    }
    return tune_jinja_put(run, b, &quote, NULL, 0, 1);
}

int tune_jinja_repr(jrun *run, struct tune_jinja_buffer *b, const jval *v, int depth)
{
    char text[TUNE_DECIMAL_SIZE];
    TRY(tune_jinja_step(run, 0));
    if (depth > TUNE_JINJA_DEPTH)
        return tune_jinja_fail(run, "values nested more than %d deep", TUNE_JINJA_DEPTH);
    switch (v->type) {
    case JINJA_UNDEFINED: return depth ? put_word(run, b, "Undefined") : 0;
    case JINJA_NONE: return put_word(run, b, "None");
    case JINJA_BOOL: return put_word(run, b, v->truth ? "True" : "False");
    case JINJA_INT: snprintf(text, sizeof text, "%lld", (long long)v->whole); return put_word(run, b, text);
    case JINJA_FLOAT: tune_decimal_python(text, v->number); return put_word(run, b, text);
    case JINJA_TEXT:
        TRY(v->safe ? put_word(run, b, "Markup(") : 0);
        TRY(put_quoted(run, b, v));
        return v->safe ? put_word(run, b, ")") : 0;
    case JINJA_LIST:
        if (v->view)
            return tune_jinja_fail(run, "%s is printed; make it a list first", tune_jinja_type_name(v));
        TRY(put_word(run, b, v->tuple ? "(" : "["));
        for (size_t i = 0; i < v->list->count; i++) {
            TRY(i ? put_word(run, b, ", ") : 0);
            TRY(tune_jinja_repr(run, b, &v->list->items[i], depth + 1));
        }
        return put_word(run, b, !v->tuple ? "]" : v->list->count == 1 ? ",)" : ")");
    case JINJA_DICT:
        TRY(put_word(run, b, "{"));
        for (size_t i = 0; i < v->dict->count; i++) {
            TRY(i ? put_word(run, b, ", ") : 0);
            TRY(tune_jinja_repr(run, b, &v->dict->keys[i], depth + 1));
            TRY(put_word(run, b, ": "));
            TRY(tune_jinja_repr(run, b, &v->dict->values[i], depth + 1));
        }
        return put_word(run, b, "}");
    default: return tune_jinja_fail(run, "%s cannot be printed", tune_jinja_type_name(v));
    }
}

int tune_jinja_put_value(jrun *run, struct tune_jinja_buffer *b, const jval *v)
{
    if (v->type == JINJA_TEXT)
        return tune_jinja_put(run, b, v->text, v->marks, v->mark, v->size);
    return tune_jinja_repr(run, b, v, 0);
}

int tune_jinja_string(jrun *run, const jval *v, jval *text)
{
    struct tune_jinja_buffer b = {0};
    if (v->type == JINJA_TEXT) {
        *text = *v;
        return 0;
    }
    TRY(tune_jinja_repr(run, &b, v, 0));
    *text = tune_jinja_take_buffer(&b);
    return 0;
}

/* ---- properties ---- */
const char *tune_jinja_type_name(const jval *v)
{
    static const char *const names[] = {"an undefined value", "none", "a boolean", "an integer", "a float", "a string", "a list",
                                        "a mapping", "a namespace", "a macro", "a loop", "a method"};
    static const char *const lists[] = {"a list", "what keys(), values() or items() gives", "what is gone through once", "a range"};
    return v->type != JINJA_LIST ? names[v->type] : v->tuple ? "a tuple" : lists[v->view];
}

bool tune_jinja_truth(const jval *v)
{
    switch (v->type) {
    case JINJA_UNDEFINED: case JINJA_NONE: return false;
    case JINJA_BOOL: return v->truth;
    case JINJA_INT: return v->whole != 0;
    case JINJA_FLOAT: return v->number != 0;
    case JINJA_TEXT: return v->size > 0;
    case JINJA_LIST: return v->list->count > 0 || v->view == JINJA_ONCE;
    case JINJA_DICT: return v->dict->count > 0;
    default: return true;
    }
}

static int order_texts(const jval *a, const jval *b)
{
    size_t n = a->size < b->size ? a->size : b->size;
    int order = n ? memcmp(a->text, b->text, n) : 0; /* the order of UTF-8 bytes is the order of
                                                      * code points */
    return order ? (order < 0 ? -1 : 1) : a->size < b->size ? -1 : a->size > b->size;
}

int tune_jinja_equal(jrun *run, const jval *a, const jval *b, int depth, bool *equal)
{
    TRY(tune_jinja_step(run, 0));
    if (depth > TUNE_JINJA_DEPTH)
        return tune_jinja_fail(run, "values nested more than %d deep", TUNE_JINJA_DEPTH);
    *equal = false;
    if (is_number(a) && is_number(b)) {
        *equal = order_numbers(a, b) == 0;
    } else if (a->type == b->type && a->type == JINJA_TEXT) {
        TRY(tune_jinja_step(run, a->size / 64));
        *equal = same_text(a, b->text, b->size);
    } else if (a->type == b->type && a->type == JINJA_LIST) {
        bool once = a->view == JINJA_ONCE;
        *equal = a->tuple == b->tuple && a->view == b->view && (once ? a->list == b->list : a->list->count == b->list->count);
        for (size_t i = 0; *equal && !once && i < a->list->count; i++)
            TRY(tune_jinja_equal(run, &a->list->items[i], &b->list->items[i], depth + 1, equal));
    } else if (a->type == b->type && a->type == JINJA_DICT) {
        *equal = a->dict->count == b->dict->count;
        for (size_t i = 0; *equal && i < a->dict->count; i++) {
            const jval *other = tune_jinja_dict_at(run, b->dict, &a->dict->keys[i]);
            *equal = other != NULL;
            if (other)
                TRY(tune_jinja_equal(run, &a->dict->values[i], other, depth + 1, equal));
        }
    } else if (a->type == b->type) {
        *equal = a->type <= JINJA_NONE || a->list == b->list;
    }
    return 0;
}

int tune_jinja_order(jrun *run, const jval *a, const jval *b, int depth, int *order)
{
    TRY(tune_jinja_step(run, a->type == JINJA_TEXT ? a->size / 64 : 0));
    if (depth > TUNE_JINJA_DEPTH)
        return tune_jinja_fail(run, "values nested more than %d deep", TUNE_JINJA_DEPTH);
    if (is_number(a) && is_number(b)) {
        *order = order_numbers(a, b);
        return 0;
    }
    if (a->type == JINJA_TEXT && b->type == JINJA_TEXT) {
        *order = order_texts(a, b);
        return 0;
    }
    if (a->type != JINJA_LIST || b->type != JINJA_LIST || a->tuple != b->tuple || a->view || b->view)
        return tune_jinja_fail(run, "%s and %s have no order", tune_jinja_type_name(a), tune_jinja_type_name(b));
    size_t i, n = a->list->count < b->list->count ? a->list->count : b->list->count;
    for (i = 0; i < n; i++) {
        bool equal;
        TRY(tune_jinja_equal(run, &a->list->items[i], &b->list->items[i], depth + 1, &equal));
        if (!equal)
            return tune_jinja_order(run, &a->list->items[i], &b->list->items[i], depth + 1, order);
    }
    *order = a->list->count < b->list->count ? -1 : a->list->count > b->list->count;
    return 0;
}

int tune_jinja_iterate(jrun *run, const jval *v, jval *list)
{
    if (v->type == JINJA_LIST) {
        if (v->view == JINJA_ONCE && v->list->spent)
            return tune_jinja_fail(run, "%s is gone through again; make it a list first", tune_jinja_type_name(v));
        v->list->spent = true;
        *list = *v;
        return 0;
    }
    TRY(tune_jinja_list_new(run, 0, false, list));
    if (v->type == JINJA_DICT) {
        for (size_t i = 0; i < v->dict->count; i++)
            TRY(tune_jinja_list_add(run, list, v->dict->keys[i]));
    } else if (v->type == JINJA_TEXT) {
        for (size_t i = 0, end; i < v->size; i = end) {
            for (end = i + 1; end < v->size && ((unsigned char)v->text[end] & 0xC0) == 0x80;)
                end++;
            TRY(tune_jinja_list_add(run, list, tune_jinja_part(v, i, end)));
        }
    } else if (v->type != JINJA_UNDEFINED) {
        return tune_jinja_fail(run, "%s cannot be gone through item by item", tune_jinja_type_name(v));
    }
    return 0;
}

int tune_jinja_contains(jrun *run, const jval *in, const jval *v, bool *found)
{
    *found = false;
    if (in->type == JINJA_TEXT) {
        if (v->type != JINJA_TEXT)
            return tune_jinja_fail(run, "%s is looked for in a string; expected a string", tune_jinja_type_name(v));
        TRY(tune_jinja_step(run, in->size / 64));
        *found = v->size == 0 || memmem(in->text, in->size, v->text, v->size);
    } else if (in->type == JINJA_DICT) {
        /* a tuple could be a key in Python, but never is one here */
        if (v->type == JINJA_LIST || v->type == JINJA_DICT)
            return tune_jinja_fail(run, "%s is looked for among the keys of a mapping", tune_jinja_type_name(v));
        *found = tune_jinja_dict_at(run, in->dict, v) != NULL;
    } else if (in->type == JINJA_LIST) {
        jval list;
        TRY(tune_jinja_iterate(run, in, &list));
        for (size_t i = 0; !*found && i < list.list->count; i++)
            TRY(tune_jinja_equal(run, &list.list->items[i], v, 0, found));
    } else if (in->type != JINJA_UNDEFINED) {
        return tune_jinja_fail(run, "something is looked for in %s", tune_jinja_type_name(in));
    }
    return 0;
}
