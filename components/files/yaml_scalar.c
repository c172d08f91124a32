/* yaml_scalar.c - find the meaning of a plain scalar of YAML 1.1, as PyYAML's safe loader does. The
 * form of a text decides whether it is a number, a boolean, null or a time. The forms as regular
 * expressions:
 *
 *     null   ~ | null | Null | NULL | (empty)
 *     bool   yes | no | true | false | on | off, each also Capitalized or in CAPITALS
 *     int    [-+]?0b[01_]+   [-+]?0[0-7_]+   [-+]?(0|[1-9][0-9_]*)   [-+]?0x[0-9a-fA-F_]+   [-+]?[1-9][0-9_]*(:[0-5]?[0-9])+
 *     float  [-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?   \.[0-9][0-9_]*([eE][-+][0-9]+)?
 *            [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*     [-+]?\.(inf|Inf|INF)     \.(nan|NaN|NAN)
 *     time   YYYY-MM-DD, or a date and a time of day
 *
 * So 1e5, 0o17, 08 and -.5 are texts. In numbers with ':' each part counts sixty of the next: 1:30
 * is 90. A date stays a text. A date with a time of day is refused, because it has no use here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "files/document_tree.h"

#define DIGITS "0123456789"

/* True if True if text is one of count words. */
static bool among(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}
#define AMONG(text, ...) \
    among(text, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char *after_sign(const char *s)
{
    return s + (*s == '-' || *s == '+');
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Skip (:[0-5]?[0-9])+. Returns its end, or NULL. */
static const char *after_sixties(const char *s)
{
    if (*s != ':')
        return NULL;
    while (*s == ':') {
        int two = s[1] >= '0' && s[1] <= '5' && digit(s[2]);
        if (!digit(s[1]))
            return NULL;
        s += 2 + two;
    }
    return s;
}

static bool is_int(const char *s)
{
    s = after_sign(s);
    if (*s == '0') {
        bool prefixed = s[1] == 'b' || s[1] == 'x';
        const char *of = s[1] == 'b' ? "01_" : s[1] == 'x' ? DIGITS "abcdefABCDEF_" : "01234567_", *rest = s + 1 + prefixed;
        size_t n = strspn(rest, of);
        return !rest[n] && (n > 0 || !prefixed);
    }
    if (!digit(*s))
        return false;
    s += strspn(s, DIGITS "_");
    if (!*s)
        return true;
    s = after_sixties(s);
    return s && !*s;
}

/* True if ([eE][-+][0-9]+)? and then the end follow. */
static bool exponent_and_end(const char *s)
{
    if (*s == 'e' || *s == 'E')
        return (s[1] == '-' || s[1] == '+') && digit(s[2]) && !s[2 + strspn(s + 2, DIGITS)];
    return !*s;
}

static bool is_float(const char *text)
{
    const char *s = after_sign(text);
    if (AMONG(s, ".inf", ".Inf", ".INF") || AMONG(text, ".nan", ".NaN", ".NAN"))
        return true;
    if (*text == '.')
        return digit(text[1]) && exponent_and_end(text + 1 + strspn(text + 1, DIGITS "_"));
    if (!digit(*s))
        return false;
    s += strspn(s, DIGITS "_");
    if (*s == '.')
        return exponent_and_end(s + 1 + strspn(s + 1, DIGITS "_"));
    s = after_sixties(s);
    return s && *s == '.' && !s[1 + strspn(s + 1, DIGITS "_")];
}

/* Skip `least` to `most` digits. Returns their end, or NULL; NULL stays NULL. */
static const char *after_digits(const char *s, size_t least, size_t most)
{
    size_t n = s ? strspn(s, DIGITS) : 0;
    return n >= least && n <= most && s ? s + n : NULL;
}

static const char *after_mark(const char *s, char mark)
{
    return s && *s == mark ? s + 1 : NULL;
}

/* A date and a time of day: 2001-12-14 21:59:43.10 -5, 2001-12-14T21:59:43Z. */
static bool is_moment(const char *s)
{
    s = after_digits(s, 4, 4);
    for (int i = 0; i < 2; i++)
        s = after_digits(after_mark(s, '-'), 1, 2);
    if (!s || !*s)
        return false;
    s = *s == 'T' || *s == 't' ? s + 1 : *s == ' ' || *s == '\t' ? s + strspn(s, " \t") : NULL;
    s = after_digits(s, 1, 2);
    for (int i = 0; i < 2; i++)
        s = after_digits(after_mark(s, ':'), 2, 2);
    if (!s)
        return false;
    s += *s == '.' ? 1 + strspn(s + 1, DIGITS) : 0;
    s += strspn(s, " \t");
    if (*s == 'Z')
        return !s[1];
    if (*s == '-' || *s == '+') {
        s = after_digits(s + 1, 1, 2);
        return s && (!*s || ((s = after_digits(after_mark(s, ':'), 2, 2)) && !*s));
    }
    return !*s;
}

/* ---- values ---- */

static int fail(const struct tune_tree *t, const struct tune_node *node, const char *text, const char *what)
{
    return tune_tree_fail(t, node->line, node->column, "\"%.60s\" %s", text, what);
}

/* Convert an integer that is_int accepted. */
static int whole(struct tune_tree *t, struct tune_node *node, const char *text)
{
    const char *s = after_sign(text);
    bool negative = *text == '-';
    if (!strchr(s, ':')) {
        int base = *s != '0' || !s[1] ? 10 : s[1] == 'b' ? 2 : s[1] == 'x' ? 16 : 8;
        s += base == 2 || base == 16 ? 2 : 0;
        size_t size = strlen(s);
        if (strspn(s, "_") == size)
            return fail(t, node, text, "looks like a number without digits; put it in quotes");
        return tune_tree_whole(t, s, size, base, negative, node, text);
    }
    int64_t sum = 0, part;
    for (bool more = true; more; s++) {
        size_t n = strcspn(s, ":");
        if (tune_tree_whole(t, s, n, 10, negative, node, text) < 0)
            return -1;
        part = node->value.integer;
        if (__builtin_mul_overflow(sum, 60, &sum) || __builtin_add_overflow(sum, part, &sum))
            return fail(t, node, text, "is a whole number beyond 64 bits; if it is a text, put it in quotes");
        s += n;
        more = *s == ':';
    }
    node->value = tune_value_int(sum);
    return 0;
}

/* Convert a number that is_float accepted, or decimal digits with an optional point and
 * exponent. */
static int real(struct tune_tree *t, struct tune_node *node, const char *text)
{
    const char *s = after_sign(text);
    double sign = *text == '-' ? -1 : 1, sum = 0, base = 1;
    if (strcasecmp(s, ".inf") == 0 || strcasecmp(s, ".nan") == 0) {
        node->value = tune_value_float(s[1] == 'n' || s[1] == 'N' ? (double)NAN : sign * (double)INFINITY);
        return 0;
    }
    char *plain = tune_document_take(t->document, strlen(s) + 1), *to = plain;
    if (!plain)
        return -1;
    for (; *s; s++)
        if (*s != '_')
            *to++ = *s;
    for (; to > plain; to--) /* add the parts between ':' from the last one, like PyYAML */
        if (to[-1] == ':') {
            sum += strtod(to, NULL) * base;
            base *= 60;
            to[-1] = 0;
            if (isinf(base))
                return fail(t, node, text, "has too many parts for a number; put it in quotes");
        }
    node->value = tune_value_float(sign * (sum + strtod(plain, NULL) * base));
    return 0;
}

/* Further spellings for !!float: [-+]?[0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?, with a digit before the
 * exponent. */
static bool is_decimal(const char *text)
{
    const char *s = after_sign(text), *first = s + (*s == '.');
    if (!digit(*first))
        return false;
    s += strspn(s, DIGITS "_");
    s += *s == '.' ? 1 + strspn(s + 1, DIGITS "_") : 0;
    if (*s == 'e' || *s == 'E') {
        s = after_sign(s + 1);
        return digit(*s) && !s[strspn(s, DIGITS)];
    }
    return !*s;
}

static bool boolean(const char *text, bool *yes)
{
    *yes = AMONG(text, "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON");
    return *yes || AMONG(text, "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF");
}

int tune_yaml_scalar(struct tune_tree *t, struct tune_node *node, const char *text, size_t size, const char *tag, bool plain)
{
    bool yes;
    if (strlen(text) != size || (tag ? strcmp(tag, "str") == 0 : !plain))
        return tune_tree_text(t, text, size, node->line, node->column, &node->value);
    if (tag && strcmp(tag, "null") == 0)
        return 0;
    if (!tag && AMONG(text, "", "~", "null", "Null", "NULL"))
        return 0;
    if (!tag || strcmp(tag, "bool") == 0) {
        if (boolean(text, &yes)) {
            node->value = tune_value_bool(yes);
            return 0;
        }
        if (tag)
            return fail(t, node, text, "is no boolean, as its tag !!bool says");
    }
    if (!tag || strcmp(tag, "int") == 0) {
        if (is_int(text))
            return whole(t, node, text);
        if (tag)
            return fail(t, node, text, "is no whole number, as its tag !!int says");
    }
    if (is_float(text) || (tag && is_decimal(text)))
        return real(t, node, text);
    if (tag)
        return fail(t, node, text, "is no number, as its tag !!float says");
    if (is_moment(text))
        return fail(t, node, text, "would be a moment in time; put it in quotes");
    return tune_tree_text(t, text, size, node->line, node->column, &node->value);
}
