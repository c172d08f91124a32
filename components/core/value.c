/* value.c - values with Python's equality and Python's spelling. */
#include "core/value.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/decimal.h"

struct tune_value tune_value_none(void)
{
    return (struct tune_value){.type = TUNE_VALUE_NONE};
}

struct tune_value tune_value_bool(bool boolean)
{
    return (struct tune_value){.type = TUNE_VALUE_BOOL, .boolean = boolean};
}

struct tune_value tune_value_int(int64_t integer)
{
    return (struct tune_value){.type = TUNE_VALUE_INT, .integer = integer};
}

struct tune_value tune_value_float(double number)
{
    return (struct tune_value){.type = TUNE_VALUE_FLOAT, .number = number};
}

struct tune_value tune_value_text(const char *text)
{
    return (struct tune_value){.type = TUNE_VALUE_TEXT, .text = text};
}

/* ---- order ---- */

static bool is_number(const struct tune_value *v)
{
    return v->type == TUNE_VALUE_BOOL || v->type == TUNE_VALUE_INT || v->type == TUNE_VALUE_FLOAT;
}

static bool is_nan(const struct tune_value *v)
{
    return v->type == TUNE_VALUE_FLOAT && isnan(v->number);
}

/* NaN comes after all others. */
static int compare_numbers(const struct tune_value *a, const struct tune_value *b)
{
    struct tune_number x = {0}, y = {0};
    tune_value_as_number(a, &x);
    tune_value_as_number(b, &y);
    int order = tune_number_compare(&x, &y);
    return order == 2 ? is_nan(a) - is_nan(b) : order;
}

bool tune_value_equal(const struct tune_value *a, const struct tune_value *b)
{
    if (is_number(a) && is_number(b))
        return !is_nan(a) && compare_numbers(a, b) == 0;
    if (a->type != b->type)
        return false;
    if (a->type == TUNE_VALUE_TEXT)
        return strcmp(a->text, b->text) == 0;
    if (a->type == TUNE_VALUE_LIST) {
        if (a->list.count != b->list.count)
            return false;
        for (int i = 0; i < a->list.count; i++)
            if (!tune_value_equal(a->list.items + i, b->list.items + i))
                return false;
    }
    return true;
}

static int rank(const struct tune_value *v)
{
    return is_number(v) ? 1 : v->type == TUNE_VALUE_NONE ? 0 : v->type == TUNE_VALUE_TEXT ? 2 : 3;
}

int tune_value_compare(const struct tune_value *a, const struct tune_value *b)
{
    if (rank(a) != rank(b))
        return rank(a) < rank(b) ? -1 : 1;
    if (is_number(a))
        return compare_numbers(a, b);
    if (a->type == TUNE_VALUE_TEXT) {
        int order = strcmp(a->text, b->text);
        return (order > 0) - (order < 0);
    }
    if (a->type == TUNE_VALUE_NONE)
        return 0;
    for (int i = 0; i < a->list.count && i < b->list.count; i++) {
        int order = tune_value_compare(a->list.items + i, b->list.items + i);
        if (order != 0)
            return order;
    }
    return (a->list.count > b->list.count) - (a->list.count < b->list.count);
}

bool tune_value_number(const struct tune_value *v, double *number)
{
    struct tune_number n;
    if (!tune_value_as_number(v, &n))
        return false;
    *number = n.number;
    return true;
}

/* ---- texts that look like other values ---- */

bool tune_value_read_as(const char *text, struct tune_value *value)
{
    char *end;
    if (!strcasecmp(text, "true") || !strcasecmp(text, "false")) {
        *value = tune_value_bool(text[0] == 't' || text[0] == 'T');
        return true;
    }
    if (!strcmp(text, "None")) {
        *value = tune_value_none();
        return true;
    }
    if (!*text || strspn(text, " \t\r\n\f\v"))
        return false;
    errno = 0;
    *value = tune_value_int(strtoll(text, &end, 10));
    if (!*end && errno == 0)
        return true;
    *value = tune_value_float(strtod(text, &end));
    return !*end && !isnan(value->number);
}

bool tune_value_conflicts(const struct tune_value *a, const struct tune_value *b)
{
    const struct tune_value *text = a->type == TUNE_VALUE_TEXT ? a : b, *other = text == a ? b : a;
    struct tune_value as;
    if (text->type != TUNE_VALUE_TEXT || other->type == TUNE_VALUE_TEXT || !tune_value_read_as(text->text, &as))
        return false;
    return tune_value_equal(&as, other) && (as.type != TUNE_VALUE_BOOL || other->type == TUNE_VALUE_BOOL);
}

/* ---- copies ---- */

size_t tune_values_size(const struct tune_value *values, int count)
{
    size_t size = (size_t)count * sizeof *values;
    for (int i = 0; i < count; i++)
        size += values[i].type == TUNE_VALUE_TEXT   ? strlen(values[i].text) + 1
                : values[i].type == TUNE_VALUE_LIST ? (size_t)values[i].list.count * sizeof *values
                                                    : 0;
    return size;
}

struct tune_value *tune_values_copy(void *to, const struct tune_value *values, int count)
{
    struct tune_value *all = to, *items = all + count;
    for (int i = 0; all && i < count; i++) {
        all[i] = values[i];
        if (all[i].type == TUNE_VALUE_LIST) {
            size_t size = (size_t)all[i].list.count * sizeof *items;
            all[i].list.items = memcpy(items, all[i].list.items, size);
            items += all[i].list.count;
        }
    }
    char *text = (char *)items; /* texts last, because items need alignment */
    for (int i = 0; all && i < count; i++)
        if (all[i].type == TUNE_VALUE_TEXT) {
            all[i].text = strcpy(text, all[i].text);
            text += strlen(text) + 1;
        }
    return all;
}

/* ---- spelling ---- */

struct writer {
    char *text;
    size_t size, length; /* length: of everything written, at most INT_MAX */
};

static void put_bytes(struct writer *w, const char *bytes, size_t n)
{
    if (w->length < w->size) {
        size_t left = w->size - w->length;
        memcpy(w->text + w->length, bytes, n < left ? n : left);
    }
    w->length = n < INT_MAX - w->length ? w->length + n : INT_MAX;
}

static void put_text(struct writer *w, const char *text)
{
    put_bytes(w, text, strlen(text));
}

static int end_text(struct writer *w)
{
    if (w->size > 0)
        w->text[w->length < w->size ? w->length : w->size - 1] = 0;
    return (int)w->length;
}

/* Decode one UTF-8 character and its length. An invalid byte counts as one character. */
static unsigned character(const char *text, int *length)
{
    const unsigned char *s = (const unsigned char *)text;
    int n = s[0] < 0xC2 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    unsigned c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            n = 1;
            c = s[0];
            break;
        }
        c = c << 6 | (s[i] & 0x3F);
    }
    *length = n;
    return c;
}

/* False for code points that Python's repr() escapes: control, format, separators except the space,
 * private and non-characters. Unassigned code points are not included. */
static bool printable(unsigned c)
{
    static const unsigned not[][2] = {
        {0, 0x1F}, {0x7F, 0xA0}, {0xAD, 0xAD}, {0x600, 0x605}, {0x61C, 0x61C}, {0x6DD, 0x6DD}, {0x70F, 0x70F}, {0x890, 0x891},
        {0x8E2, 0x8E2}, {0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F}, {0x3000, 0x3000},
        {0xD800, 0xF8FF}, {0xFDD0, 0xFDEF}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
        {0x13430, 0x13438}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F}, {0xF0000, 0x10FFFF},
    };
    for (size_t i = 0; i < sizeof not / sizeof *not && c >= not[i][0]; i++)
        if (c <= not[i][1])
            return false;
    return (c & 0xFFFE) != 0xFFFE;
}

static void put_quoted(struct writer *w, const char *text)
{
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'', escape[16];
    int length;
    put_bytes(w, &quote, 1);
    for (; *text; text += length) {
        unsigned c = character(text, &length);
        *escape = 0;
        if (c == (unsigned char)quote || c == '\\' || c == '\n' || c == '\r' || c == '\t')
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (int)c);
        else if (printable(c))
            put_bytes(w, text, (size_t)length);
        else
            snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        put_text(w, escape);
    }
    put_bytes(w, &quote, 1);
}

static void put_json_text(struct writer *w, const char *text)
{
    put_text(w, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[8] = {(char)c};
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c < 0x20)
            snprintf(escape, sizeof escape, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\u%04x", c);
        put_text(w, escape);
    }
    put_text(w, "\"");
}

static void put_value(struct writer *w, const struct tune_value *v, bool json)
{
    char text[TUNE_DECIMAL_SIZE];
    switch (v->type) {
    case TUNE_VALUE_NONE: put_text(w, json ? "null" : "None"); break;
    case TUNE_VALUE_BOOL: put_text(w, json ? v->boolean ? "true" : "false" : v->boolean ? "True" : "False"); break;
    case TUNE_VALUE_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->integer);
        put_text(w, text);
        break;
    case TUNE_VALUE_FLOAT:
        tune_decimal_python(text, v->number);
        if (json && !isfinite(v->number))
            put_json_text(w, text);
        else
            put_text(w, text);
        break;
    case TUNE_VALUE_TEXT:
        if (json)
            put_json_text(w, v->text);
        else
            put_quoted(w, v->text);
        break;
    case TUNE_VALUE_LIST:
        put_text(w, "[");
        for (int i = 0; i < v->list.count && w->length < INT_MAX; i++) {
            if (i > 0)
                put_text(w, ", ");
            put_value(w, v->list.items + i, json);
        }
        put_text(w, "]");
        break;
    }
}

int tune_value_repr(const struct tune_value *v, char *text, size_t size)
{
    struct writer w = {text, size, 0};
    put_value(&w, v, false);
    return end_text(&w);
}

int tune_value_str(const struct tune_value *v, char *text, size_t size)
{
    struct writer w = {text, size, 0};
    if (v->type == TUNE_VALUE_TEXT)
        put_text(&w, v->text);
    else
        put_value(&w, v, false);
    return end_text(&w);
}

char *tune_value_to_string(const struct tune_value *v)
{
    size_t size = (size_t)tune_value_str(v, NULL, 0) + 1;
    char *text = malloc(size);
    if (text)
        tune_value_str(v, text, size);
    return text;
}

int tune_value_id(const struct tune_value *v, char *text, size_t size)
{
    struct tune_value number = tune_value_int(v->type == TUNE_VALUE_BOOL ? v->boolean : 0);
    return tune_value_str(v->type == TUNE_VALUE_BOOL ? &number : v, text, size);
}

int tune_value_json(const struct tune_value *v, char *text, size_t size)
{
    struct writer w = {text, size, 0};
    put_value(&w, v, true);
    return end_text(&w);
}
