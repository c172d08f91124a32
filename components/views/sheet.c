/* sheet.c - the layout of a wide table for people. */
#include "views/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "views/text.h"

enum { GAP = 2, SHORT_TEXT = 12, HEADING_LINES = 16 };

enum place { IN_TABLE, EMPTY, EQUAL, LEFT_OUT };

/* One column: where it goes, and how wide it is. */
struct column {
    char *name;
    enum place place;
    int cells, width;                 /* widest cell; width in the table */
    int line_count;                   /* lines of the heading */
    size_t lines[HEADING_LINES + 1];  /* [line_count + 1] where they begin in name */
};

struct layout {
    const struct tune_sheet *s;
    struct column *columns;
    char **cells;                     /* [rows][column_count] plain; NULL: empty */
    const char *mark;                 /* at the end of a cut text */
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory for a table");
}

static const char *cell(const struct layout *l, int64_t row, int c)
{
    return l->cells[(size_t)row * (size_t)l->s->column_count + (size_t)c];
}

static int read_texts(struct layout *l)
{
    const struct tune_sheet *s = l->s;
    for (int c = 0; c < s->column_count; c++)
        if (!(l->columns[c].name = tune_plain(s->columns[c].heading)))
            return no_memory();
    for (int64_t i = 0; i < s->rows * s->column_count; i++)
        if (s->cells[i] && *s->cells[i] && !(l->cells[i] = tune_plain(s->cells[i])))
            return no_memory();
    return 0;
}

/* ---- places ---- */

static enum place place_of(const struct layout *l, int c)
{
    bool empty = true, equal = l->s->rows > 1 && !l->s->columns[c].stays;
    for (int64_t row = 0; row < l->s->rows && (empty || equal); row++) {
        empty = empty && !cell(l, row, c);
        equal = equal && cell(l, row, c) && !strcmp(cell(l, row, c), cell(l, 0, c) ? cell(l, 0, c) : "");
    }
    return empty && !l->s->columns[c].stays ? EMPTY : equal ? EQUAL : IN_TABLE;
}

static int widest(const struct layout *l, int c)
{
    int width = 1;
    for (int64_t row = 0; row < l->s->rows; row++) {
        int w = cell(l, row, c) ? tune_width(cell(l, row, c)) : 0;
        width = w > width ? w : width;
    }
    return width;
}

/* Bytes of the next piece of a name, which ends after '_', '-' or '.'. */
static size_t piece(const char *name)
{
    size_t n = strcspn(name, "_-.");
    while (name[n] && strchr("_-.", name[n]))
        n++;
    return n;
}

/* Break the heading into lines of at most `width` columns; 0: the widest cell. */
static void break_heading(struct column *c, int width)
{
    int longest = width > 0 ? width : c->cells, at = 0;
    char part[64];
    for (const char *p = c->name; width <= 0 && *p; p += piece(p)) {
        snprintf(part, sizeof part, "%.*s", (int)piece(p), p);
        longest = tune_width(part) > longest ? tune_width(part) : longest;
    }
    c->line_count = 0;
    c->lines[0] = 0;
    for (const char *p = c->name; *p; p += piece(p)) {
        snprintf(part, sizeof part, "%.*s", (int)piece(p), p);
        if (at > 0 && at + tune_width(part) > longest && c->line_count + 1 < HEADING_LINES) {
            c->lines[++c->line_count] = (size_t)(p - c->name);
            at = 0;
        }
        at += tune_width(part);
        c->width = at > c->width ? at : c->width;
    }
    c->lines[++c->line_count] = strlen(c->name);
}

static int total(const struct layout *l)
{
    int width = -GAP;
    for (int c = 0; c < l->s->column_count; c++)
        if (l->columns[c].place == IN_TABLE)
            width += l->columns[c].width + GAP;
    return width;
}

/* Narrow the widest column of texts by one. False: none is wider than it must be. */
static bool narrow(struct layout *l)
{
    struct column *best = NULL;
    for (int i = 0; i < l->s->column_count; i++) {
        struct column *c = &l->columns[i];
        if (c->place == IN_TABLE && !l->s->columns[i].right && c->width == c->cells && c->width > SHORT_TEXT &&
            (!best || c->width > best->width))
            best = c;
    }
    if (best)
        best->cells = --best->width;
    return best != NULL;
}

static void fit(struct layout *l)
{
    const struct tune_sheet *s = l->s;
    int last = s->column_count;
    for (int c = 0; c < s->column_count; c++) {
        l->columns[c].width = l->columns[c].cells = widest(l, c);
        break_heading(&l->columns[c], 1 << 20);
    }
    if (s->width <= 0 || total(l) <= s->width)
        return;
    for (int c = 0; c < s->column_count; c++) {
        l->columns[c].width = l->columns[c].cells;
        break_heading(&l->columns[c], 0);
    }
    while (total(l) > s->width && narrow(l))
        ;
    while (total(l) > s->width && --last > 0) {
        int first = 0;
        while (l->columns[first].place != IN_TABLE)
            first++;
        if (l->columns[last].place == IN_TABLE && last > first)
            l->columns[last].place = LEFT_OUT;
    }
}

/* ---- output ---- */

/* A line of words, broken at `width`. The next lines are indented. */
struct line {
    FILE *out;
    int width, at;
};

static void put_word(struct line *l, const char *word)
{
    int w = tune_width(word);
    if (l->at > 0 && l->width > 0 && l->at + 1 + w > l->width) {
        fputs("\n#  ", l->out);
        l->at = 3;
    }
    l->at += fprintf(l->out, "%s%s", l->at > 0 ? " " : "", word) > 0 ? w + 1 : 0;
}

/* The number of columns whose names begin like that of column c. 0: they are fewer than three, or
 * not all of them are empty, as those of an absent GPU are. *first: the first of them. */
static int family(const struct layout *l, int c, int *first)
{
    size_t n = piece(l->columns[c].name);
    int count = 0;
    for (int i = l->s->column_count - 1; i >= 0; i--)
        if (!strncmp(l->columns[i].name, l->columns[c].name, n)) {
            if (l->columns[i].place != EMPTY)
                return 0;
            count++;
            if (first)
                *first = i;
        }
    return count >= 3 ? count : 0;
}

/* True if column c is named among those in that place. One stands for its family. */
static bool is_named(const struct layout *l, int c, enum place place)
{
    int first = c;
    return l->columns[c].place == place && (place != EMPTY || !family(l, c, &first) || first == c);
}

/* Print "# intro a 1; b 2": the columns in that place, with their values if they are equal. */
static int put_place(const struct layout *l, enum place place, const char *intro, FILE *out)
{
    struct line line = {out, l->s->width, 0};
    int left = 0, most = l->s->width > 8 ? l->s->width - 4 : 1 << 20;
    for (int c = 0; c < l->s->column_count; c++)
        left += is_named(l, c, place);
    if (left == 0)
        return 0;
    for (const char *at = intro; *at; at += strspn(at, " ")) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        put_word(&line, word);
        at += strlen(word);
    }
    for (int c = 0; c < l->s->column_count; c++) {
        char *word = NULL;
        int like = place == EMPTY ? family(l, c, NULL) : 0;
        if (!is_named(l, c, place))
            continue;
        if ((like ? asprintf(&word, "%.*s* (%d)", (int)piece(l->columns[c].name), l->columns[c].name, like)
                  : asprintf(&word, "%s%s%s", l->columns[c].name, place == EQUAL ? " " : "",
                             place == EQUAL ? cell(l, 0, c) : "")) < 0)
            return no_memory();
        bool cut = tune_width(word) > most;
        char *whole = word;
        if (asprintf(&word, "%.*s%s%s", (int)tune_bytes_of(whole, cut ? most - tune_width(l->mark) : most), whole,
                     cut ? l->mark : "", --left == 0 ? "" : place == EQUAL ? ";" : ",") < 0)
            word = NULL;
        put_word(&line, word ? word : "");
        free(whole);
        free(word);
    }
    fputc('\n', out);
    return 0;
}

/* Put a text in its column; `pending` blanks are due before it. */
static void put_in(FILE *out, const char *text, size_t bytes, int width, bool right, int *pending)
{
    char *part = strndup(text, bytes);
    int space = part ? width - tune_width(part) : width;
    if (part && *part)
        fprintf(out, "%*s%s", *pending + (right ? space : 0), "", part);
    *pending = part && *part ? (right ? 0 : space) : *pending + width;
    free(part);
}

static void put_headings(const struct layout *l, FILE *out)
{
    int lines = 0;
    for (int c = 0; c < l->s->column_count; c++)
        if (l->columns[c].place == IN_TABLE && l->columns[c].line_count > lines)
            lines = l->columns[c].line_count;
    for (int i = 0; i < lines; i++) {
        int pending = 0;
        for (int k = 0; k < l->s->column_count; k++) {
            const struct column *c = &l->columns[k];
            int n = i - (lines - c->line_count);
            if (c->place != IN_TABLE)
                continue;
            put_in(out, c->name + (n < 0 ? 0 : c->lines[n]), n < 0 ? 0 : c->lines[n + 1] - c->lines[n], c->width,
                   l->s->columns[k].right, &pending);
            pending += GAP;
        }
        fputc('\n', out);
    }
}

static void put_row(const struct layout *l, int64_t row, FILE *out)
{
    int pending = 0;
    for (int k = 0; k < l->s->column_count; k++) {
        const struct column *c = &l->columns[k];
        const char *text = cell(l, row, k) ? cell(l, row, k) : "";
        char *cut = NULL;
        if (c->place != IN_TABLE)
            continue;
        if (tune_width(text) > c->width &&
            asprintf(&cut, "%.*s%s", (int)tune_bytes_of(text, c->width - tune_width(l->mark)), text, l->mark) < 0)
            cut = NULL;
        text = cut ? cut : text;
        put_in(out, text, strlen(text), c->width, l->s->columns[k].right, &pending);
        pending += GAP;
        free(cut);
    }
    fputc('\n', out);
}

/* A single row: a line for each column. */
static void put_page(const struct layout *l, FILE *out)
{
    int width = 0;
    for (int c = 0; c < l->s->column_count; c++)
        if (l->columns[c].place == IN_TABLE && tune_width(l->columns[c].name) > width)
            width = tune_width(l->columns[c].name);
    for (int c = 0; c < l->s->column_count; c++)
        if (l->columns[c].place == IN_TABLE)
            fprintf(out, "%s%*s%s\n", l->columns[c].name, width - tune_width(l->columns[c].name) + GAP, "",
                    cell(l, 0, c) ? cell(l, 0, c) : "");
}

static int put_all(struct layout *l, FILE *out)
{
    char intro[64];
    TRY(read_texts(l));
    for (int c = 0; c < l->s->column_count; c++)
        l->columns[c].place = place_of(l, c);
    if (l->s->rows == 1) {
        put_page(l, out);
        return put_place(l, EMPTY, "# empty, left out:", out);
    }
    fit(l);
    snprintf(intro, sizeof intro, "# in all %lld rows:", (long long)l->s->rows);
    TRY(put_place(l, EQUAL, intro, out));
    TRY(put_place(l, EMPTY, "# empty, left out:", out));
    if (total(l) > 0) {
        put_headings(l, out);
        for (int64_t row = 0; row < l->s->rows; row++)
            put_row(l, row, out);
    }
    snprintf(intro, sizeof intro, "# too wide, left out (%s):", l->s->advice);
    return put_place(l, LEFT_OUT, intro, out);
}

int tune_sheet_print(const struct tune_sheet *s, FILE *out)
{
    struct layout l = {.s = s, .mark = s->unicode ? "\u2026" : "..."};
    size_t cells = (size_t)s->rows * (size_t)s->column_count;
    l.columns = calloc((size_t)s->column_count + 1, sizeof *l.columns);
    l.cells = calloc(cells + 1, sizeof *l.cells);
    int code = l.columns && l.cells ? put_all(&l, out) : no_memory();
    for (int c = 0; l.columns && c < s->column_count; c++)
        free(l.columns[c].name);
    for (size_t i = 0; l.cells && i < cells; i++)
        free(l.cells[i]);
    free(l.columns);
    free(l.cells);
    return code;
}
