/* side_by_side.c - two texts in two columns. */
#include "views/side_by_side.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "views/text.h"

enum { NARROW = 40, PLAIN_WIDTH = 100, FEW = 3 };
#define COMPARED ((size_t)1 << 25) /* longer texts are shown without marks */

/* A word, or a line's end (size 0). */
struct word {
    const char *at;
    size_t size;
    bool marked;
};

struct column {
    char *text; /* plain, with line ends */
    struct word *words;
    int count, next;
};

/* The text with control characters spelled out, but for line ends and tabs. */
static char *plain_lines(const struct tune_side_text *t)
{
    char *all = NULL, *copy = strndup(t->text, t->size);
    size_t size;
    FILE *to = copy ? open_memstream(&all, &size) : NULL;
    char *rest = copy;
    for (char *line; to && (line = strsep(&rest, "\n"));) {
        for (char *c = line; *c; c++)
            *c = *c == '\t' || *c == '\r' ? ' ' : *c;
        tune_put_plain(to, line);
        if (rest)
            fputc('\n', to);
    }
    free(copy);
    if (to && fclose(to) == 0)
        return all;
    free(to ? all : NULL);
    return NULL;
}

static int split(struct column *c, const struct tune_side_text *t)
{
    c->text = plain_lines(t);
    if (!c->text)
        return tune_error_no_memory("the words of an answer");
    for (const char *at = c->text; *at;) {
        size_t n = strcspn(at, " \n");
        if (!tune_array_fit(&c->words, (size_t)c->count, sizeof *c->words))
            return tune_error_no_memory("the words of an answer");
        if (n > 0 || *at == '\n')
            c->words[c->count++] = (struct word){at, n, false};
        at += n > 0 ? n : 1;
    }
    return 0;
}

static bool same(const struct word *a, const struct word *b)
{
    return a->size == b->size && memcmp(a->at, b->at, a->size) == 0;
}

/* Mark the words that are in no longest common subsequence. */
static int mark(struct column *a, struct column *b)
{
    int n = a->count, m = b->count;
    if ((size_t)(n + 1) * (size_t)(m + 1) > COMPARED || n > UINT16_MAX || m > UINT16_MAX)
        return 0;
    uint16_t *length = tune_zeroed((size_t)(n + 1) * (size_t)(m + 1), sizeof *length, "a comparison");
    if (!length)
        return -1;
#define LENGTH(i, j) length[(size_t)(i) * (size_t)(m + 1) + (size_t)(j)]
    for (int i = n - 1; i >= 0; i--)
        for (int j = m - 1; j >= 0; j--) {
            uint16_t down = LENGTH(i + 1, j), right = LENGTH(i, j + 1);
            LENGTH(i, j) = same(&a->words[i], &b->words[j]) ? LENGTH(i + 1, j + 1) + 1 : down > right ? down : right;
        }
    int i = 0, j = 0;
    int most = n > m ? n : m, common = LENGTH(0, 0);
    if (FEW * common < most) /* all but everything differs: marks would tell nothing */
        i = n, j = m;
    while (i < n && j < m)
        if (same(&a->words[i], &b->words[j]))
            i++, j++;
        else if (LENGTH(i + 1, j) >= LENGTH(i, j + 1))
            a->words[i++].marked = true;
        else
            b->words[j++].marked = true;
    while (i < n)
        a->words[i++].marked = true;
    while (j < m)
        b->words[j++].marked = true;
#undef LENGTH
    free(length);
    return 0;
}

static int word_width(const struct word *w, bool bold)
{
    char *copy = strndup(w->at, w->size);
    int width = copy ? tune_width(copy) : (int)w->size;
    free(copy);
    return width + (w->marked && w->size > 0 && !bold ? 2 : 0);
}

/* Print a word of at most width columns; the rest stays for the next line. */
static int put_word(FILE *out, struct word *w, int width, bool bold)
{
    size_t size = w->size;
    int all = word_width(w, bold), stars = all - word_width(&(struct word){w->at, w->size, false}, bold);
    if (all > width)
        size = tune_bytes_of(w->at, width - stars > 0 ? width - stars : 1);
    for (int more = 2; size == 0; more++)
        size = more < 4 ? tune_bytes_of(w->at, more) : w->size; /* at least one character */
    size = size < w->size ? size : w->size;
    fprintf(out, "%s%.*s%s", !w->marked ? "" : bold ? "\033[1m" : "*", (int)size, w->at, !w->marked ? "" : bold ? "\033[0m" : "*");
    int used = word_width(&(struct word){w->at, size, w->marked}, bold);
    w->at += size;
    w->size -= size;
    return used;
}

/* Print a line of the column, and fill it up with spaces. */
static void put_line(FILE *out, struct column *c, int width, bool bold, bool fill)
{
    int used = 0;
    while (c->next < c->count) {
        struct word *w = &c->words[c->next];
        if (w->size == 0) {
            c->next++;
            break;
        }
        int wide = word_width(w, bold);
        if (used > 0 && used + 1 + wide > width)
            break;
        if (used > 0)
            fputc(' ', out);
        used += (used > 0) + put_word(out, w, width, bold);
        if (w->size > 0)
            break; /* a word that is longer than the column */
        c->next++;
        if (c->next < c->count && c->words[c->next].size == 0) {
            c->next++;
            break;
        }
    }
    if (fill)
        fprintf(out, "%*s", width > used ? width - used : 0, "");
}

static void put_below(FILE *out, struct column *c, const char *name, int width, bool bold)
{
    fprintf(out, "%s:\n", name);
    while (c->next < c->count) {
        put_line(out, c, width, bold, false);
        fputc('\n', out);
    }
}

int tune_side_by_side(FILE *out, const struct tune_side_text *a, const struct tune_side_text *b, int width)
{
    struct column left = {0}, right = {0};
    bool bold = width > 0;
    int all = width > 0 ? width - 1 : PLAIN_WIDTH, half = (all - 3) / 2;
    int status = split(&left, a) == 0 && split(&right, b) == 0 && mark(&left, &right) == 0 ? 0 : -1;
    if (status == 0 && all < NARROW) {
        put_below(out, &left, a->name, all > 0 ? all : 1, bold);
        put_below(out, &right, b->name, all > 0 ? all : 1, bold);
    } else if (status == 0) {
        fprintf(out, "%-*s | %s\n", half, a->name, b->name);
        while (left.next < left.count || right.next < right.count) {
            put_line(out, &left, half, bold, true);
            fputs(" | ", out);
            put_line(out, &right, half, bold, false);
            fputc('\n', out);
        }
    }
    if (status == 0 && (fflush(out) != 0 || ferror(out)))
        status = tune_error_set("cannot write the answers: %s", strerror(errno));
    free(left.text);
    free(left.words);
    free(right.text);
    free(right.words);
    return status;
}
