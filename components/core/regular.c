/* regular.c - Python's regular expressions: parsed into a tree, matched by trying one way after the other. */
#include "core/regular.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"

enum { LONGEST = 1 << 16, DEEPEST = 200, STEPS = 1000000, DEEP = 10000, BYTES = 256, SEARCH_STEPS = 200000000 };

enum kind {
    EMPTY,
    SET,        /* one character of a set */
    THEN,       /* left, then right */
    EITHER,     /* left or right */
    REPEAT,     /* left, least to most times */
    LOOK,       /* left fits here, or not; nothing is consumed */
    BEHIND,     /* left fits what ends here, or not */
    BEGIN, END, /* of the text, or with lines true of a line */
    LAST,       /* the end of the text, strictly */
    WORD,       /* between a word and what is none */
    MARK,       /* a group begins or ends here: place number `least` of the match's */
};

struct node {
    enum kind kind;
    int left, right;
    int least, most; /* REPEAT */
    bool lazy, not, lines;
    unsigned char set[BYTES / 8];
};

struct parser {
    const char *all, *at;
    struct node *node;
    int count, capacity, depth, groups;
    bool any_case, lines, dot_all;
};

static int refuse(const struct parser *p, const char *why)
{
    return tune_error_usage("the regular expression \"%.200s\": %s", p->all, why);
}

/* Add a node. Returns its number, or -1. */
static int add_node(struct parser *p, struct node n)
{
    size_t capacity = (size_t)p->capacity;
    if (p->count == p->capacity) {
        struct node *more = realloc(p->node, sizeof *more * (capacity = capacity ? 2 * capacity : 32));
        if (!more)
            return tune_error_no_memory("a regular expression");
        p->node = more;
        p->capacity = (int)capacity;
    }
    p->node[p->count] = n;
    return p->count++;
}

static void add_character(unsigned char *set, int c)
{
    set[c / 8] |= (unsigned char)(1 << c % 8);
}

static bool has_character(const unsigned char *set, int c)
{
    return set[c / 8] >> c % 8 & 1;
}

static bool is_word(int c)
{
    return c < 128 && (isalnum(c) || c == '_');
}

/* Add the characters of \d, \w, \s or their opposites; false: the letter is none of these. */
static bool put_class(unsigned char *set, char letter)
{
    int kind = tolower((unsigned char)letter);
    if (kind != 'd' && kind != 'w' && kind != 's')
        return false;
    for (int c = 0; c < BYTES; c++) {
        bool is = kind == 'd' ? c >= '0' && c <= '9' : kind == 'w' ? is_word(c) : c == ' ' || (c >= '\t' && c <= '\r') || (c >= 28 && c <= 31);
        if (is == (letter == kind))
            add_character(set, c);
    }
    return true;
}

/* Read what follows a backslash and means one character. -1 with an error. */
static int escaped(struct parser *p)
{
    static const char letters[] = "abfnrtv", means[] = "\a\b\f\n\r\t\v";
    char c = *p->at++;
    const char *known = c ? strchr(letters, c) : NULL;
    if (c == 'x' && isxdigit((unsigned char)p->at[0]) && isxdigit((unsigned char)p->at[1])) {
        char hex[3] = {p->at[0], p->at[1], 0};
        p->at += 2;
        return (int)strtol(hex, NULL, 16);
    }
    if (known)
        return means[known - letters];
    if (!c || (c & 0x80) || isalnum((unsigned char)c))
        return refuse(p, !c ? "it ends with a backslash" : isdigit((unsigned char)c) ? "references to groups are not known here"
                                                                                     : "a backslash stands before a letter without a meaning here");
    return (unsigned char)c;
}

/* Lower and upper case of what the set has. */
static void both_cases(unsigned char *set)
{
    for (int c = 'a'; c <= 'z'; c++)
        if (has_character(set, c) || has_character(set, c - 32)) {
            add_character(set, c);
            add_character(set, c - 32);
        }
}

static int set_of(struct parser *p, struct node n, bool not)
{
    if (p->any_case)
        both_cases(n.set);
    for (int i = 0; i < BYTES / 8 && not; i++)
        n.set[i] = (unsigned char)~n.set[i];
    n.kind = SET;
    return add_node(p, n);
}

static int one_of(struct parser *p, int c)
{
    struct node n = {0};
    add_character(n.set, c);
    return set_of(p, n, false);
}

/* A character of a class. Returns it, -1 with an error, or 256 for a class such as \d, which is added. */
static int class_item(struct parser *p, unsigned char *set)
{
    if (!*p->at || (*p->at & 0x80))
        return refuse(p, *p->at ? "letters outside ASCII are not known here" : "a '[' is not closed");
    if (*p->at != '\\')
        return (unsigned char)*p->at++;
    p->at++;
    if (*p->at && put_class(set, *p->at))
        return p->at++, BYTES;
    if (*p->at == 'b')
        return p->at++, '\b';
    return escaped(p);
}

/* Parse behind '['. */
static int class_of(struct parser *p)
{
    struct node n = {0};
    bool not = *p->at == '^';
    p->at += not;
    for (const char *first = p->at; *p->at != ']' || p->at == first;) {
        int low = class_item(p, n.set), high = low;
        TRY(low);
        if (*p->at == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            TRY(high = class_item(p, n.set));
            if (low == BYTES || high == BYTES || high < low)
                return refuse(p, "a range in brackets is the wrong way round");
        }
        for (int c = low; c <= high && c < BYTES; c++)
            add_character(n.set, c);
    }
    p->at++;
    return set_of(p, n, not);
}

static int either(struct parser *p);

/* Read flags such as "i" or "i-s" up to ':' or ')'. */
static int read_flags(struct parser *p)
{
    bool on = true;
    for (; *p->at && *p->at != ':' && *p->at != ')'; p->at++) {
        bool *flag = *p->at == 'i' ? &p->any_case : *p->at == 's' ? &p->dot_all : *p->at == 'm' ? &p->lines : NULL;
        if (*p->at == '-' && on)
            on = false;
        else if (flag)
            *flag = on;
        else if (*p->at != 'a' && *p->at != 'u') /* names are ASCII */
            return refuse(p, "of flags, (?i), (?s) and (?m) are known here");
    }
    return 0;
}

/* Skip "P<name>" of a group. */
static int skip_name(struct parser *p)
{
    const char *end = strchr(p->at, '>');
    if (p->at[1] != '<' || !end || end == p->at + 2)
        return refuse(p, "references to groups are not known here");
    p->at = end + 1;
    return 0;
}

/* The node with its places as group of that number. */
static int marked(struct parser *p, int node, int number)
{
    int begin, end;
    TRY(begin = add_node(p, (struct node){.kind = MARK, .least = 2 * number}));
    TRY(end = add_node(p, (struct node){.kind = MARK, .least = 2 * number + 1}));
    TRY(node = add_node(p, (struct node){.kind = THEN, .left = node, .right = end}));
    return add_node(p, (struct node){.kind = THEN, .left = begin, .right = node});
}

/* Parse behind '('. */
static int group(struct parser *p)
{
    struct node n = {0};
    bool any_case = p->any_case, lines = p->lines, dot_all = p->dot_all, first = p->at == p->all + 1;
    int number = 0;
    if (*p->at != '?' || p->at[1] == 'P')
        number = ++p->groups;
    if (*p->at == '?') {
        char c = *++p->at;
        bool behind = c == '<' && (p->at[1] == '=' || p->at[1] == '!');
        p->at += behind;
        if (c == ':') {
            p->at++;
        } else if (c == '=' || c == '!' || behind) {
            n.kind = behind ? BEHIND : LOOK;
            n.not = *p->at++ == '!';
        } else if (c == 'P') {
            TRY(skip_name(p));
        } else if (c == '#' || c == '>' || c == '(' || c == '<' || !c) {
            return refuse(p, "a group begins with (? and something that is not known here");
        } else {
            TRY(read_flags(p));
            if (!*p->at)
                return refuse(p, "a '(' is not closed");
            if (*p->at++ == ')') /* for the whole expression */
                return first ? add_node(p, n) : refuse(p, "flags stand elsewhere than at the beginning");
        }
    }
    TRY(n.left = either(p));
    if (*p->at != ')')
        return refuse(p, "a '(' is not closed");
    p->at++;
    p->any_case = any_case;
    p->lines = lines;
    p->dot_all = dot_all;
    return number > 0 ? marked(p, n.left, number) : n.kind == EMPTY ? n.left : add_node(p, n);
}

/* Parse what can be repeated. */
static int atom(struct parser *p)
{
    struct node n = {.lines = p->lines};
    char c = *p->at++;
    switch (c) {
    case '(': return group(p);
    case '[': return class_of(p);
    case '^': n.kind = BEGIN; return add_node(p, n);
    case '$': n.kind = END; return add_node(p, n);
    case '*': case '+': case '?': return refuse(p, "there is nothing to repeat");
    case '.':
        if (!p->dot_all)
            add_character(n.set, '\n');
        for (int i = 0; i < BYTES / 8; i++)
            n.set[i] = (unsigned char)~n.set[i];
        n.kind = SET;
        return add_node(p, n);
    case '\\': break;
    default: return c & 0x80 ? refuse(p, "letters outside ASCII are not known here") : one_of(p, (unsigned char)c);
    }
    c = *p->at;
    n.kind = c == 'A' ? BEGIN : c == 'Z' ? LAST : c == 'b' || c == 'B' ? WORD : EMPTY;
    n.lines = false;
    n.not = c == 'B';
    if (n.kind != EMPTY)
        return p->at++, add_node(p, n);
    if (c && put_class(n.set, c))
        return p->at++, set_of(p, n, false);
    int known = escaped(p);
    return known < 0 ? -1 : one_of(p, known);
}

static int number(const char *text, char **end)
{
    long n = strtol(text, end, 10);
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* Read "{2}", "{2,}", "{,3}" or "{2,3}"; false: it is none, and '{' means itself. */
static bool read_bounds(const char **at, struct node *n)
{
    char *end;
    const char *s = *at + 1;
    bool low = isdigit((unsigned char)*s), comma;
    n->least = low ? number(s, &end) : 0;
    s = low ? end : s;
    comma = *s == ',';
    s += comma;
    n->most = comma ? INT_MAX : n->least;
    if (comma && isdigit((unsigned char)*s)) {
        n->most = number(s, &end);
        s = end;
    }
    if (*s != '}' || (!low && !comma))
        return false;
    *at = s + 1;
    return true;
}

/* Parse an atom and its repetition. */
static int repeated(struct parser *p)
{
    int left = atom(p);
    struct node n = {.kind = REPEAT, .left = left, .most = INT_MAX};
    TRY(left);
    bool bounds = *p->at == '{' && read_bounds(&p->at, &n);
    if (!bounds && (!*p->at || !strchr("*+?", *p->at)))
        return left;
    if (!bounds) {
        n.least = *p->at == '+';
        n.most = *p->at++ == '?' ? 1 : INT_MAX;
    }
    n.lazy = *p->at == '?';
    p->at += n.lazy;
    const char *next = p->at;
    if ((*next && strchr("*+?", *next)) || (*next == '{' && read_bounds(&next, &(struct node){0})))
        return refuse(p, "possessive or doubled repetition is not known here");
    if (n.least > n.most || n.least > LONGEST)
        return refuse(p, "a repetition has bounds that no text has");
    return add_node(p, n);
}

static int sequence(struct parser *p)
{
    int all = add_node(p, (struct node){0});
    while (all >= 0 && *p->at && *p->at != '|' && *p->at != ')') {
        int next = repeated(p);
        all = next < 0 ? -1 : add_node(p, (struct node){.kind = THEN, .left = all, .right = next});
    }
    return all;
}

static int either(struct parser *p)
{
    int all;
    if (++p->depth > DEEPEST)
        return refuse(p, "its groups are too deep");
    TRY(all = sequence(p));
    while (*p->at == '|') {
        p->at++;
        int next = sequence(p);
        TRY(next);
        TRY(all = add_node(p, (struct node){.kind = EITHER, .left = all, .right = next}));
    }
    p->depth--;
    return all;
}

/* Parse it all. The caller frees p->node, also after -1. Returns the root, or -1. */
static int parse(struct parser *p, const char *expression)
{
    *p = (struct parser){.all = expression, .at = expression};
    if (strlen(expression) > LONGEST)
        return refuse(p, "it is too long");
    int root = either(p);
    return root >= 0 && *p->at ? refuse(p, "a ')' closes nothing") : root;
}

/* ---- matching ---- */

struct matcher {
    const struct node *node;
    const char *text, *end;
    int steps, most, depth;
    const char **marks;    /* [2 (groups + 1)] where groups begin and end; NULL: nobody asks */
};

/* The rest of the expression behind a node: another node, then what comes after that. */
struct after {
    int node;              /* -1: the match ends here; -2: the same, and its place is noted */
    int count;             /* of a REPEAT, the rounds done; else -1 */
    const char *from;      /* where its last round began; or, at the end, where it must be; NULL: anywhere */
    const struct after *then;
};

static bool fits(struct matcher *m, int node, const char *at, const struct after *then);

static bool go_on(struct matcher *m, const char *at, const struct after *then);

/* Go on with round number `count` of a repetition, or with what follows it. */
static bool repeat(struct matcher *m, const struct after *self, const char *at)
{
    const struct node *n = &m->node[self->node];
    bool more = self->count < n->most && !(self->count > n->least && at == self->from); /* no endless empty rounds */
    struct after again = {self->node, self->count + 1, at, self->then};
    if (self->count < n->least)
        return fits(m, n->left, at, &again);
    if (n->lazy)
        return go_on(m, at, self->then) || (more && fits(m, n->left, at, &again));
    return (more && fits(m, n->left, at, &again)) || go_on(m, at, self->then);
}

static bool go_on(struct matcher *m, const char *at, const struct after *then)
{
    if (then->node == -2) /* the match ends; note where */
        m->marks[1] = at;
    if (then->node < 0)
        return !then->from || at == then->from;
    return then->count < 0 ? fits(m, then->node, at, then->then) : repeat(m, then, at);
}

/* True if a node fits by itself: from some place up to `at`, or from `at` to anywhere. */
static bool looks(struct matcher *m, const struct node *n, const char *at)
{
    struct after anywhere = {-1, -1, NULL, NULL}, here = {-1, -1, at, NULL};
    if (n->kind == LOOK)
        return fits(m, n->left, at, &anywhere);
    for (const char *from = at; from >= m->text; from--)
        if (fits(m, n->left, from, &here))
            return true;
    return false;
}

/* True if a node that consumes nothing fits. */
static bool stands(struct matcher *m, const struct node *n, const char *at)
{
    bool before = at > m->text && is_word((unsigned char)at[-1]), behind = at < m->end && is_word((unsigned char)*at);
    switch (n->kind) {
    case BEGIN: return at == m->text || (n->lines && at[-1] == '\n');
    case END: return at == m->end || (*at == '\n' && (n->lines || at + 1 == m->end));
    case LAST: return at == m->end;
    case WORD: return (before != behind) != n->not;
    case LOOK: case BEHIND: return looks(m, n, at) != n->not;
    default: return true;
    }
}

/* True if a set has the character at `at`. Sets know bytes; a letter outside ASCII is in all of them or in none. */
static bool takes(const struct matcher *m, const struct node *set, const char *at)
{
    return at < m->end && has_character(set->set, (unsigned char)*at);
}

/* The place behind the character at `at`. */
static const char *behind(const struct matcher *m, const char *at)
{
    for (at++; at < m->end && ((unsigned char)*at & 0xC0) == 0x80;)
        at++;
    return at;
}

/* A repetition of one set, without a call for each character. */
static bool run_of(struct matcher *m, const struct node *n, const char *at, const struct after *then)
{
    const struct node *set = &m->node[n->left];
    const char *first = at;
    int count = 0;
    for (; count < (n->lazy ? n->least : n->most) && takes(m, set, at); count++)
        at = behind(m, at);
    while (count >= n->least && m->steps <= m->most) {
        if (go_on(m, at, then))
            return true;
        if (n->lazy ? count == n->most || !takes(m, set, at) : at == first)
            return false;
        count += n->lazy ? 1 : -1;
        m->steps++;
        if (n->lazy)
            at = behind(m, at);
        else
            do
                at--;
            while (at > first && ((unsigned char)*at & 0xC0) == 0x80);
    }
    return false;
}

/* Note a place of a group. If the rest does not fit, the place is as it was. */
static bool mark(struct matcher *m, const struct node *n, const char *at, const struct after *then)
{
    if (!m->marks)
        return go_on(m, at, then);
    const char *was = m->marks[n->least];
    m->marks[n->least] = at;
    if (go_on(m, at, then))
        return true;
    m->marks[n->least] = was;
    return false;
}

static bool fits(struct matcher *m, int node, const char *at, const struct after *then)
{
    const struct node *n = &m->node[node];
    bool good;
    if (++m->steps > m->most || ++m->depth > DEEP)
        return m->steps = m->most + 1, false;
    if (n->kind == SET) {
        good = takes(m, n, at) && go_on(m, behind(m, at), then);
    } else if (n->kind == THEN) {
        struct after right = {n->right, -1, NULL, then};
        good = fits(m, n->left, at, &right);
    } else if (n->kind == EITHER) {
        good = fits(m, n->left, at, then) || fits(m, n->right, at, then);
    } else if (n->kind == REPEAT && m->node[n->left].kind == SET) {
        good = run_of(m, n, at, then);
    } else if (n->kind == MARK) {
        good = mark(m, n, at, then);
    } else if (n->kind == REPEAT) {
        struct after rounds = {node, 0, NULL, then};
        good = repeat(m, &rounds, at);
    } else {
        good = stands(m, n, at) && go_on(m, at, then);
    }
    m->depth--;
    return good;
}

int tune_regular_check(const char *expression)
{
    struct parser p;
    int root = parse(&p, expression);
    free(p.node);
    return root < 0 ? -1 : 0;
}

int tune_regular_matches(const char *expression, const char *text, bool whole)
{
    struct parser p;
    struct tune_error why;
    tune_error_save(&why);
    int root = parse(&p, expression);
    tune_error_restore(&why); /* tune_regular_check tells of it */
    struct matcher m = {.node = p.node, .text = text, .end = text + strlen(text), .most = STEPS};
    struct after end = {-1, -1, whole ? m.end : NULL, NULL};
    bool fit = root >= 0 && fits(&m, root, text, &end);
    free(p.node);
    return root < 0 || m.steps > STEPS ? -1 : fit;
}

/* ---- searching ---- */

struct tune_regular {
    struct node *node;
    int root, groups;
    const char **marks; /* [2 (groups + 1)] */
};

struct tune_regular *tune_regular_new(const char *expression)
{
    struct parser p;
    struct tune_regular *r = tune_zeroed(1, sizeof *r, "a regular expression");
    if (!r)
        return NULL;
    r->root = parse(&p, expression);
    r->node = p.node;
    r->groups = p.groups;
    r->marks = r->root < 0 ? NULL : tune_zeroed(2 * (size_t)(r->groups + 1), sizeof *r->marks, "a regular expression");
    if (r->marks)
        return r;
    tune_regular_free(r);
    return NULL;
}

void tune_regular_free(struct tune_regular *r)
{
    if (!r)
        return;
    free(r->node);
    free(r->marks);
    free(r);
}

int tune_regular_groups(const struct tune_regular *r)
{
    return r->groups;
}

int tune_regular_search(struct tune_regular *r, const char *text, size_t size, size_t from, struct tune_regular_span *spans)
{
    struct matcher m = {.node = r->node, .text = text, .end = text + size, .most = SEARCH_STEPS, .marks = r->marks};
    const struct after end = {-2, -1, NULL, NULL};
    for (const char *at = text + from; at <= m.end && m.steps <= m.most; at = at < m.end ? behind(&m, at) : at + 1) {
        m.depth = 0;
        memset(r->marks, 0, 2 * (size_t)(r->groups + 1) * sizeof *r->marks);
        if (!fits(&m, r->root, at, &end))
            continue;
        r->marks[0] = at;
        for (int g = 0; g <= r->groups; g++) {
            spans[g].found = r->marks[2 * g] && r->marks[2 * g + 1];
            spans[g].begin = spans[g].found ? (size_t)(r->marks[2 * g] - text) : 0;
            spans[g].end = spans[g].found ? (size_t)(r->marks[2 * g + 1] - text) : 0;
        }
        return 1;
    }
    return m.steps > m.most ? tune_error_set("a regular expression takes more than %d steps on a text of %zu bytes", SEARCH_STEPS, size) : 0;
}
