/* jinja_lexer.c - split a template into tokens, and apply the rules for white space:
 *
 * "-" at a tag removes all white space on that side. A block tag removes one newline after it
 * (trim_blocks). It also removes the blanks before it if nothing else is before it on its line
 * (lstrip_blocks). "+" keeps them. All line ends become \n, and one at the end of the template is
 * dropped. A plain template (tune_jinja_open_plain) keeps all but what "-" removes. */
#include <errno.h>
#include <stdlib.h>

#include "templates/jinja_parts.h"
#include "tokenizers/unicode.h"

struct lexer {
    struct tune_jinja *t;
    const char *text;
    size_t size, at, counted;
    int line;
    size_t room;
    char open[128]; /* open brackets in an expression */
    int depth;
};

static int line_at(struct lexer *l, size_t at)
{
    for (; l->counted < at; l->counted++)
        l->line += l->text[l->counted] == '\n';
    return l->line;
}

static int put(struct lexer *l, struct tune_jinja_token token)
{
    struct tune_jinja *t = l->t;
    if (t->count == l->room) {
        size_t room = l->room ? l->room * 2 : 256;
        struct tune_jinja_token *tokens = tune_jinja_take(&t->memory, room * sizeof *tokens);
        if (!tokens)
            return -1;
        if (t->count)
            memcpy(tokens, t->tokens, t->count * sizeof *tokens);
        t->tokens = tokens;
        l->room = room;
    }
    t->tokens[t->count++] = token;
    return 0;
}

static size_t over_space(const struct lexer *l, size_t at)
{
    const char *p = l->text + at;
    while (p < l->text + l->size) {
        const char *next = p;
        if (!tune_jinja_is_space(tune_utf8_next(&next)))
            break;
        p = next;
    }
    return (size_t)(p - l->text);
}

static size_t space_before(const struct lexer *l, size_t begin, size_t end)
{
    while (end > begin && tune_jinja_is_space(tune_utf8_before(l->text + end)))
        do
            end--;
        while (((unsigned char)l->text[end] & 0xC0) == 0x80);
    return end;
}

static bool here(const struct lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return l->size - at >= n && memcmp(l->text + at, what, n) == 0;
}

/* Add text up to a tag at end. sign: the character after the tag's first two. */
static int data(struct lexer *l, size_t begin, size_t end, char sign, bool block)
{
    size_t keep = end;
    if (sign == '-') {
        keep = space_before(l, begin, end);
    } else if (sign != '+' && block && !l->t->plain) {
        size_t line = end;
        while (line > begin && l->text[line - 1] != '\n')
            line--;
        bool starting = line > begin || begin == 0 || l->text[begin - 1] == '\n';
        if (starting && space_before(l, line, end) == line)
            keep = line;
    }
    if (keep == begin)
        return 0;
    return put(l, (struct tune_jinja_token){.kind = JINJA_DATA, .line = line_at(l, begin),
                                            .text = {l->text + begin, keep - begin}});
}

/* If a tag ends here: the position after its end, its sign and the white space it removes. 0: it
 * does not. */
static size_t tag_end(const struct lexer *l, size_t at, const char *end, bool block)
{
    if (here(l, at, "-") && here(l, at + 1, end))
        return over_space(l, at + 3);
    if (block && here(l, at, "+") && here(l, at + 1, end))
        return at + 3;
    if (!here(l, at, end))
        return 0;
    return at + 2 + (block && !l->t->plain && here(l, at + 2, "\n"));
}

static int hex(const char *p, const char *end, int digits, uint32_t *c)
{
    *c = 0;
    for (int i = 0; i < digits; i++, p++) {
        if (p >= end)
            return -1;
        int d = *p >= '0' && *p <= '9' ? *p - '0' : (*p | 32) >= 'a' && (*p | 32) <= 'f' ? (*p | 32) - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        *c = *c << 4 | (uint32_t)d;
    }
    return 0;
}

/* Decode the escape after a backslash at p to *to. Returns its end; NULL: not supported. */
static const char *escape(const char *p, const char *end, char **to)
{
    static const char plain[] = "n\nt\tr\rb\bf\fv\va\a\\\\''\"\"";
    uint32_t c;
    if (*p == '\n')
        return p + 1;
    for (const char *q = plain; *q; q += 2)
        if (*q == *p) {
            *(*to)++ = q[1];
            return p + 1;
        }
    if (*p == 'x' || *p == 'u' || *p == 'U') {
        int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : 8;
        if (hex(p + 1, end, digits, &c) < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return NULL;
        *to += tune_utf8_put(*to, c);
        return p + 1 + digits;
    }
    if (*p >= '0' && *p <= '7') {
        int n = 0;
        for (c = 0; n < 3 && p < end && *p >= '0' && *p <= '7'; n++)
            c = c * 8 + (uint32_t)(*p++ - '0');
        *to += tune_utf8_put(*to, c);
        return p;
    }
    if (*p == 'N')
        return NULL;
    *(*to)++ = '\\'; /* an unknown escape stands for itself */
    return p;
}

static int string(struct lexer *l)
{
    size_t begin = l->at + 1, at = begin;
    char quote = l->text[l->at];
    int line = line_at(l, l->at);
    while (at < l->size && l->text[at] != quote)
        at += l->text[at] == '\\' && at + 1 < l->size ? 2 : 1;
    if (at >= l->size)
        return tune_jinja_refuse(l->t, line, "a string that does not end");
    char *text = tune_jinja_take(&l->t->memory, at - begin + 1), *to = text;
    if (!text)
        return -1;
    for (const char *p = l->text + begin, *end = l->text + at; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        const char *next = escape(p + 1, end, &to);
        if (!next)
            return tune_jinja_refuse(l->t, line, "an escape in a string, \\%c..., that is not supported or stands for no character",
                                     p[1]);
        p = next;
    }
    l->at = at + 1;
    return put(l, (struct tune_jinja_token){.kind = JINJA_STRING, .line = line, .text = {text, (size_t)(to - text)}});
}

static bool digit(const struct lexer *l, size_t at)
{
    return at < l->size && l->text[at] >= '0' && l->text[at] <= '9';
}

static bool letter(const struct lexer *l, size_t at)
{
    return at < l->size && ((l->text[at] | 32) >= 'a' && (l->text[at] | 32) <= 'z');
}

static int number(struct lexer *l)
{
    struct tune_jinja_token token = {.line = line_at(l, l->at)};
    char digits[64];
    size_t begin = l->at, at = begin;
    bool whole;
    at += tune_number_length(l->text + begin, l->size - begin, false, &whole);
    token.kind = whole ? JINJA_WHOLE : JINJA_NUMBER;
    bool zeros = whole && l->text[begin] == '0' && at - begin > 1;
    if (at - begin >= sizeof digits || letter(l, at) || here(l, at, "_") || zeros)
        return tune_jinja_refuse(l->t, token.line, "a number spelled in a way that is not supported");
    memcpy(digits, l->text + begin, at - begin);
    digits[at - begin] = 0;
    errno = 0;
    if (token.kind == JINJA_WHOLE)
        token.whole = strtoll(digits, NULL, 10);
    else
        token.number = strtod(digits, NULL);
    if (errno == ERANGE && (token.kind == JINJA_WHOLE || token.number > 1))
        return tune_jinja_refuse(l->t, token.line, "the number %s is too large", digits);
    l->at = at;
    return put(l, token);
}

static int operator_(struct lexer *l)
{
    struct tune_jinja_token token = {.kind = JINJA_OPERATOR, .line = line_at(l, l->at)};
    unsigned char c = (unsigned char)l->text[l->at];
    size_t length;
    token.op = tune_operator_read(l->text + l->at, l->size - l->at, &length);
    length = token.op ? length : 1;
    if (!token.op && (!c || !strchr("[](){}=.:|,;", c)))
        return tune_jinja_refuse(l->t, token.line, c > 32 && c < 127 ? "a character that does not belong there: '%c'"
                                                                     : "a byte that does not belong there: 0x%02x", c);
    if (strchr("([{", c)) {
        if (l->depth == sizeof l->open)
            return tune_jinja_refuse(l->t, token.line, "more than %zu open brackets", sizeof l->open);
        l->open[l->depth++] = c == '(' ? ')' : (char)(c + 2);
    } else if (strchr(")]}", c) && (l->depth == 0 || l->open[--l->depth] != c)) {
        return tune_jinja_refuse(l->t, token.line, "a '%c' that closes nothing", c);
    }
    token.whole = token.op ? 0 : c;
    token.text = (struct tune_text){l->text + l->at, length};
    l->at += length;
    return put(l, token);
}

/* Read the tokens of a tag. */
static int tag(struct lexer *l, bool block)
{
    const char *end = block ? "%}" : "}}";
    l->depth = 0;
    for (;;) {
        l->at = over_space(l, l->at);
        if (l->at >= l->size)
            return tune_jinja_refuse(l->t, line_at(l, l->size), "the template ends inside a tag; expected %s", end);
        size_t next = l->depth ? 0 : tag_end(l, l->at, end, block);
        if (next) {
            int line = line_at(l, l->at);
            l->at = next;
            return put(l, (struct tune_jinja_token){.kind = block ? JINJA_BLOCK_END : JINJA_PRINT_END, .line = line});
        }
        if (letter(l, l->at) || here(l, l->at, "_")) {
            size_t begin = l->at;
            while (letter(l, l->at) || digit(l, l->at) || here(l, l->at, "_"))
                l->at++;
            TRY(put(l, (struct tune_jinja_token){.kind = JINJA_NAME, .line = line_at(l, begin),
                                                 .text = {l->text + begin, l->at - begin}}));
        } else if (digit(l, l->at)) {
            TRY(number(l));
        } else if (l->text[l->at] == '"' || l->text[l->at] == '\'') {
            TRY(string(l));
        } else {
            TRY(operator_(l));
        }
    }
}

/* The end of {% word %} at `at`; 0: it is not there. */
static size_t lone_tag(const struct lexer *l, size_t at, const char *word, bool trim)
{
    at += 2;
    if (here(l, at, "-") || here(l, at, "+"))
        at++;
    at = over_space(l, at);
    if (!here(l, at, word))
        return 0;
    at = over_space(l, at + strlen(word));
    return trim || !here(l, at, "+") ? tag_end(l, at, "%}", trim) : 0;
}

static int raw(struct lexer *l, size_t begin)
{
    for (size_t at = begin; at + 1 < l->size; at++) {
        size_t end = here(l, at, "{%") ? lone_tag(l, at, "endraw", true) : 0;
        if (end) {
            TRY(data(l, begin, at, l->text[at + 2], true));
            l->at = end;
            return 0;
        }
    }
    return tune_jinja_refuse(l->t, line_at(l, begin), "a {%% raw %%} without its {%% endraw %%}");
}

static int comment(struct lexer *l, size_t begin)
{
    for (size_t at = begin; at < l->size; at++) {
        size_t end = tag_end(l, at, "#}", true);
        if (end) {
            l->at = end;
            return 0;
        }
    }
    return tune_jinja_refuse(l->t, line_at(l, begin), "a comment that does not end; expected #}");
}

static int lex(struct lexer *l)
{
    while (l->at < l->size) {
        size_t begin = l->at, at = begin;
        while (at < l->size && !(l->text[at] == '{' && at + 1 < l->size && strchr("%{#", l->text[at + 1]) && l->text[at + 1]))
            at++;
        if (at == l->size)
            return put(l, (struct tune_jinja_token){.kind = JINJA_DATA, .line = line_at(l, begin),
                                                    .text = {l->text + begin, at - begin}});
        char kind = l->text[at + 1], sign = at + 2 < l->size ? l->text[at + 2] : 0;
        TRY(data(l, begin, at, sign, kind != '{'));
        size_t inner = kind == '%' ? lone_tag(l, at, "raw", false) : 0;
        if (inner) {
            TRY(raw(l, inner));
        } else if (kind == '#') {
            TRY(comment(l, at + 2 + (sign == '-' || sign == '+')));
        } else {
            TRY(put(l, (struct tune_jinja_token){.kind = kind == '%' ? JINJA_BLOCK : JINJA_PRINT, .line = line_at(l, at)}));
            l->at = at + 2 + (sign == '-' || sign == '+');
            TRY(tag(l, kind == '%'));
        }
    }
    return 0;
}

int tune_jinja_lex(struct tune_jinja *t, const char *text, size_t size)
{
    char *lines = tune_jinja_take(&t->memory, size + 1);
    size_t n = 0;
    if (!lines)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n')
            continue;
        lines[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n > 0 && lines[n - 1] == '\n' && !t->plain)
        n--;
    lines[n] = 0;
    struct lexer l = {.t = t, .text = lines, .size = n, .line = 1};
    TRY(lex(&l));
    return put(&l, (struct tune_jinja_token){.kind = JINJA_EOF, .line = line_at(&l, n)});
}
