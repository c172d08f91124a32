/* json.c - the strict pull parser. Its state is a position and one bit for each open bracket. */
#include "files/json.h"
#include "core/array.h"
#include "core/decimal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"

enum { MOST_CHARACTERS = 512 }; /* of a number, with its NUL */

void tune_json_start(struct tune_json *j, const char *name, const char *text, size_t size, int64_t first_line)
{
    *j = (struct tune_json){.name = name, .text = text, .end = text + size, .at = text, .first_line = first_line};
}

void tune_json_free(struct tune_json *j)
{
    free(j->buffer[0]);
    free(j->buffer[1]);
    j->buffer[0] = j->buffer[1] = NULL;
    j->capacity[0] = j->capacity[1] = 0;
}

int64_t tune_json_line(const struct tune_json *j)
{
    int64_t line = j->first_line;
    for (const char *p = j->text; p < j->at && (p = memchr(p, '\n', (size_t)(j->at - p))); p++)
        line++;
    return line;
}

int tune_json_fail(struct tune_json *j, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *line = j->at;
    while (line > j->text && line[-1] != '\n')
        line--;
    return tune_error_set("%s:%lld:%lld: %s", j->name, (long long)tune_json_line(j), (long long)(j->at - line) + 1, what);
}

static void space(struct tune_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

/* The word at this position that Python's json writes and JSON lacks. NULL: there is none. */
static const char *python_word(const struct tune_json *j)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0, n; i < sizeof words / sizeof *words; i++)
        if ((size_t)(j->end - j->at) >= (n = strlen(words[i])) && memcmp(j->at, words[i], n) == 0)
            return words[i];
    return NULL;
}

/* Report what is at this position instead of what was expected. */
static int unexpected(struct tune_json *j, const char *expected)
{
    const char *word = j->at < j->end ? python_word(j) : NULL;
    if (word)
        return tune_json_fail(j, "found %s, which Python writes and JSON has not; expected %s", word, expected);
    if (j->at >= j->end)
        return tune_json_fail(j, "the JSON ends here, expected %s", expected);
    unsigned char c = (unsigned char)*j->at;
    if (c > 32 && c < 127)
        return tune_json_fail(j, "found '%c', expected %s", c, expected);
    return tune_json_fail(j, "found byte 0x%02x, expected %s", c, expected);
}

enum tune_json_type tune_json_peek(struct tune_json *j)
{
    space(j);
    if (j->python && python_word(j))
        return TUNE_JSON_NULL;
    switch (j->at < j->end ? *j->at : 0) {
    case '{': return TUNE_JSON_OBJECT;
    case '[': return TUNE_JSON_ARRAY;
    case '"': return TUNE_JSON_STRING;
    case 't': case 'f': return TUNE_JSON_BOOL;
    case 'n': return TUNE_JSON_NULL;
    case '-': case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9': return TUNE_JSON_NUMBER;
    default: unexpected(j, "a value"); return TUNE_JSON_ERROR;
    }
}

static bool in_object(const struct tune_json *j)
{
    int d = j->depth - 1;
    return j->kind[d / 64] >> (d % 64) & 1;
}

static int enter(struct tune_json *j, char bracket, const char *expected)
{
    space(j);
    if (j->at >= j->end || *j->at != bracket)
        return unexpected(j, expected);
    if (j->depth == TUNE_JSON_DEPTH)
        return tune_json_fail(j, "nested deeper than %d", TUNE_JSON_DEPTH);
    uint64_t bit = (uint64_t)1 << (j->depth % 64);
    if (bracket == '{')
        j->kind[j->depth / 64] |= bit;
    else
        j->kind[j->depth / 64] &= ~bit;
    j->depth++;
    j->first = true;
    j->at++;
    return 0;
}

int tune_json_object(struct tune_json *j)
{
    return enter(j, '{', "an object");
}

int tune_json_array(struct tune_json *j)
{
    return enter(j, '[', "an array");
}

/* Skip a comma or the closing bracket. 1: more follows; 0: closed; -1: error. */
static int more(struct tune_json *j, char close)
{
    space(j);
    if (j->at < j->end && *j->at == close) {
        j->at++;
        j->depth--;
        j->first = false;
        return 0;
    }
    if (!j->first) {
        if (j->at >= j->end || *j->at != ',')
            return unexpected(j, close == '}' ? "',' or '}'" : "',' or ']'");
        j->at++;
        space(j);
    }
    j->first = false;
    return 1;
}

static int hex4(struct tune_json *j, unsigned *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int c = j->at < j->end ? *j->at : 0;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return unexpected(j, "four hexadecimal digits after \\u");
        *unit = *unit * 16 + (unsigned)digit;
    }
    return 0;
}

static size_t put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Decode the code point of one or two \u escapes. j->at is after "\u". */
static int unicode_escape(struct tune_json *j, unsigned *c)
{
    const char *begin = j->at - 2;
    unsigned low;
    TRY(hex4(j, c));
    if (*c < 0xD800 || *c > 0xDFFF)
        return 0;
    if (*c < 0xDC00 && j->end - j->at >= 2 && j->at[0] == '\\' && j->at[1] == 'u') {
        const char *second = j->at;
        j->at += 2;
        TRY(hex4(j, &low));
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *c = 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
            return 0;
        }
        j->at = second;
    }
    if (!j->lone_surrogates) {
        j->at = begin;
        return tune_json_fail(j, "a lone surrogate escape (%.6s) is not text", begin);
    }
    *c = 0xFFFD;
    return 0;
}

/* Decode an escape at j->at to UTF-8 in out. Returns the number of bytes, or -1. */
static int escape(struct tune_json *j, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned c;
    if (++j->at >= j->end)
        return unexpected(j, "an escape");
    if (*j->at == 'u') {
        j->at++;
        TRY(unicode_escape(j, &c));
        return (int)put_utf8(out, c);
    }
    const char *known = *j->at ? strchr(from, *j->at) : NULL;
    if (!known)
        return unexpected(j, "one of \" \\ / b f n r t u after a backslash");
    j->at++;
    out[0] = to[known - from];
    return 1;
}

/* Decode a string to buffer `which` (0 strings, 1 keys). */
static int string(struct tune_json *j, int which, struct tune_text *text)
{
    space(j);
    if (j->at >= j->end || *j->at != '"')
        return unexpected(j, which ? "a key in quotes" : "a string");
    const char *begin = ++j->at, *close = begin;
    while (close < j->end && *close != '"')
        close += *close == '\\' && close + 1 < j->end ? 2 : 1;
    size_t need = (size_t)(close - begin) + 8; /* decoding never makes it longer */
    TRY(tune_array_reserve(&j->buffer[which], &j->capacity[which], need, 1, "a string of JSON"));
    char *out = j->buffer[which];
    while (j->at < j->end && *j->at != '"') {
        const char *run = j->at;
        while (j->at < j->end && *j->at != '"' && *j->at != '\\' && (unsigned char)*j->at >= 0x20)
            j->at++;
        size_t bad, n = (size_t)(j->at - run);
        if (!tune_utf8_valid(run, n, &bad)) {
            j->at = run + bad;
            return tune_json_fail(j, "invalid UTF-8 (byte 0x%02x) in a string%s", (unsigned char)run[bad],
                                  tune_utf8_advice(run, n));
        }
        memcpy(out, run, n);
        out += n;
        if (j->at < j->end && *j->at == '\\') {
            int written = escape(j, out);
            TRY(written);
            out += written;
        } else if (j->at < j->end && (unsigned char)*j->at < 0x20) {
            return unexpected(j, "control characters in a string to be escaped");
        }
    }
    if (j->at >= j->end)
        return unexpected(j, "a closing quote");
    j->at++;
    *out = 0;
    *text = (struct tune_text){j->buffer[which], (size_t)(out - j->buffer[which])};
    return 0;
}

int tune_json_key(struct tune_json *j, struct tune_text *key)
{
    int got = more(j, '}');
    if (got != 1)
        return got;
    TRY(string(j, 1, key));
    space(j);
    if (j->at >= j->end || *j->at != ':')
        return unexpected(j, "':' after a key");
    j->at++;
    return 1;
}

int tune_json_item(struct tune_json *j)
{
    return more(j, ']');
}

int tune_json_string(struct tune_json *j, struct tune_text *text)
{
    return string(j, 0, text);
}

/* Find the extent of a number by RFC 8259's grammar. *whole: it has only digits. */
static int number(struct tune_json *j, const char **begin, bool *whole)
{
    space(j);
    const char *p = j->at;
    *begin = p;
    *whole = true;
    if (p < j->end && *p == '-') {
        p++;
        *whole = false;
    }
    const char *digits = p;
    while (p < j->end && *p >= '0' && *p <= '9')
        p++;
    if (p == digits || (*digits == '0' && p - digits > 1)) {
        j->at = p == digits ? p : digits;
        return unexpected(j, p == digits ? "a number" : "a number without leading zeros");
    }
    for (int part = 0; part < 2; part++) {
        if (p >= j->end || (part == 0 ? *p != '.' : *p != 'e' && *p != 'E'))
            continue;
        *whole = false;
        p++;
        if (part == 1 && p < j->end && (*p == '+' || *p == '-'))
            p++;
        const char *first = p;
        while (p < j->end && *p >= '0' && *p <= '9')
            p++;
        if (p == first) {
            j->at = p;
            return unexpected(j, "digits");
        }
    }
    j->at = p;
    return 0;
}

int tune_json_u64(struct tune_json *j, uint64_t *value)
{
    const char *begin;
    bool whole;
    TRY(number(j, &begin, &whole));
    uint64_t v = 0;
    for (const char *p = begin; whole && p < j->at; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        whole = v <= (UINT64_MAX - digit) / 10;
        v = v * 10 + digit;
    }
    if (!whole) {
        int n = (int)(j->at - begin);
        j->at = begin;
        return tune_json_fail(j, "%.*s is not a whole number from 0 to 18446744073709551615", n > 40 ? 40 : n, begin);
    }
    *value = v;
    return 0;
}

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

size_t tune_json_number(const char *from, const char *end, double *value)
{
    const char *at = from + (from < end && *from == '-'), *first = at, *point = NULL;
    uint64_t digits = 0;
    int64_t power = 0, written = 0;
    for (; is_digit(at, end); at++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    if (at == first || (*first == '0' && at - first > 1))
        return 0;
    if (at < end && *at == '.') {
        for (point = at++; is_digit(at, end); at++)
            digits = digits * 10 + (uint64_t)(*at - '0');
        power = point + 1 - at;
        if (power == 0)
            return 0;
    }
    if (at - first > 19) { /* more digits might not fit 64 bits; zeros in front do not count */
        while (first < at && (*first == '0' || *first == '.'))
            first++;
        if (at - first - (point && first <= point) > 19)
            return 0;
    }
    if (at < end && (*at | 32) == 'e') {
        bool minus = ++at < end && *at == '-';
        at += minus || (at < end && *at == '+');
        for (first = at; is_digit(at, end); at++)
            written = written < 1000 ? written * 10 + (*at - '0') : written;
        if (at == first)
            return 0;
        power += minus ? -written : written;
    }
    if (at - from >= MOST_CHARACTERS || !tune_decimal_value(digits, (int)power, value))
        return 0;
    *value = *from == '-' ? -*value : *value;
    return (size_t)(at - from);
}

int tune_json_double(struct tune_json *j, double *value)
{
    const char *begin;
    bool whole;
    char digits[MOST_CHARACTERS];
    space(j);
    size_t n = tune_json_number(j->at, j->end, value);
    if (n > 0) {
        j->at += n;
        return 0;
    }
    TRY(number(j, &begin, &whole));
    n = (size_t)(j->at - begin);
    if (n >= sizeof digits) {
        j->at = begin;
        return tune_json_fail(j, "a number of %zu characters", n);
    }
    memcpy(digits, begin, n); /* strtod needs a NUL */
    digits[n] = 0;
    *value = strtod(digits, NULL);
    return 0;
}

static int word(struct tune_json *j, const char *expected)
{
    size_t n = strlen(expected);
    space(j);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, expected, n) != 0)
        return unexpected(j, expected);
    j->at += n;
    return 0;
}

int tune_json_bool(struct tune_json *j, bool *value)
{
    space(j);
    *value = j->at < j->end && *j->at == 't';
    return word(j, *value ? "true" : "false");
}

int tune_json_null(struct tune_json *j)
{
    space(j);
    const char *python = j->python ? python_word(j) : NULL;
    if (python) {
        j->at += strlen(python);
        return 0;
    }
    return word(j, "null");
}

int tune_json_skip(struct tune_json *j)
{
    int outside = j->depth;
    struct tune_text ignored;
    const char *begin;
    bool flag;
    do {
        int got = 1;
        if (j->depth > outside)
            got = in_object(j) ? tune_json_key(j, &ignored) : tune_json_item(j);
        TRY(got);
        if (got == 0)
            continue;
        switch (tune_json_peek(j)) {
        case TUNE_JSON_OBJECT: TRY(tune_json_object(j)); break;
        case TUNE_JSON_ARRAY: TRY(tune_json_array(j)); break;
        case TUNE_JSON_STRING: TRY(tune_json_string(j, &ignored)); break;
        case TUNE_JSON_BOOL: TRY(tune_json_bool(j, &flag)); break;
        case TUNE_JSON_NULL: TRY(tune_json_null(j)); break;
        case TUNE_JSON_NUMBER: TRY(number(j, &begin, &flag)); break;
        default: return -1;
        }
    } while (j->depth > outside);
    return 0;
}

int tune_json_end(struct tune_json *j)
{
    space(j);
    return j->at == j->end ? 0 : unexpected(j, "nothing more");
}

bool tune_text_equal(struct tune_text text, const char *string)
{
    return text.size == strlen(string) && memcmp(text.data, string, text.size) == 0;
}

static bool is_ascii_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct tune_text tune_text_trim(struct tune_text t)
{
    for (; t.size > 0 && is_ascii_white(t.data[0]); t.size--)
        t.data++;
    while (t.size > 0 && is_ascii_white(t.data[t.size - 1]))
        t.size--;
    return t;
}
