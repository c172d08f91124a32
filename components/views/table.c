/* table.c - cells in rows, printed three ways. */
#include "core/array.h"
#include "views/table.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "files/csv.h"
#include "core/error.h"
#include "files/json.h"
#include "core/print.h"
#include "views/text.h"

struct cell {
    char *text;    /* text for people; NULL: empty */
    double number; /* NAN: the cell is a text */
};

struct tune_table {
    char **columns;
    int count; /* number of columns */
    struct cell *cells;
    size_t used;
    bool lost; /* true: no memory for one of the cells */
    int keys;  /* first columns, which each block of a wide table repeats */
    int whole; /* first columns that are not shortened while a block has room */
    int below[8], below_count; /* columns that may stand below their row */
};

struct tune_table *tune_table_new(const char *const *columns, int count)
{
    struct tune_table *t = calloc(1, sizeof *t);
    if (t && (t->columns = calloc((size_t)count + 1, sizeof *t->columns))) {
        t->count = count;
        t->keys = count > 1;
        for (int i = 0; i < count; i++)
            t->lost |= !(t->columns[i] = strdup(columns[i]));
        return t;
    }
    free(t);
    tune_error_cannot("out of memory for a table");
    return NULL;
}

void tune_table_free(struct tune_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->used; i++)
        free(t->cells[i].text);
    for (int i = 0; i < t->count; i++)
        free(t->columns[i]);
    free(t->cells);
    free(t->columns);
    free(t);
}

void tune_table_keys(struct tune_table *t, int count)
{
    t->keys = count < t->count ? count : 0;
    t->whole = t->keys;
}

void tune_table_below(struct tune_table *t, int column)
{
    if (column >= 0 && column < t->count && t->below_count < (int)(sizeof t->below / sizeof *t->below))
        t->below[t->below_count++] = column;
}

static void add(struct tune_table *t, const char *text, double number)
{
    if (!tune_array_fit(&t->cells, t->used, sizeof *t->cells)) {
        t->lost = true;
        return;
    }
    char *copy = text ? strdup(text) : NULL;
    t->lost |= text && !copy;
    t->cells[t->used++] = (struct cell){copy, number};
}

void tune_table_text(struct tune_table *t, const char *text)
{
    add(t, text && *text ? text : NULL, NAN);
}

void tune_table_shown(struct tune_table *t, double value, const char *shown)
{
    add(t, isfinite(value) ? shown : NULL, isfinite(value) ? value : NAN);
}

void tune_table_number(struct tune_table *t, double value, const char *format)
{
    char text[64];
    snprintf(text, sizeof text, format, value);
    tune_table_shown(t, value, text);
}

int tune_table_rows(const struct tune_table *t)
{
    return t->count > 0 ? (int)(t->used / (size_t)t->count) : 0;
}

static const struct cell *cell(const struct tune_table *t, int row, int column)
{
    return &t->cells[(size_t)row * (size_t)t->count + (size_t)column];
}

const char *tune_table_cell(const struct tune_table *t, int row, int column)
{
    const char *text = cell(t, row, column)->text;
    return text ? text : "";
}

/* ---- for people ---- */

enum {
    GAP = 2,     /* spaces between two columns */
    INDENT = 4,  /* of what stands below a row */
    SHORT = 8,   /* columns that a shortened text keeps */
    HEADING = 12 /* columns that a shortened heading keeps */
};

/* How a table is laid out in the width that there is. */
struct layout {
    int width;        /* 0: any */
    const char *mark; /* in the place of what is left out of a text */
    struct fit {
        int all, width, least; /* columns that its texts have, that it gets, and the fewest that it can get */
        bool right, below;
    } *column; /* [count] */
};

/* Print the first and last part of a plain text, with the mark between, if it is wider than that. */
static void put_short(FILE *out, const char *text, int width, const char *mark)
{
    int all = tune_width(text), kept = width - tune_width(mark);
    if (all <= width || kept < 1) {
        fprintf(out, "%.*s", all <= width ? (int)strlen(text) : (int)tune_bytes_of(text, width), text);
        return;
    }
    size_t first = tune_bytes_of(text, kept / 2), rest = tune_bytes_of(text, all - (kept - kept / 2));
    if (tune_width(text + rest) > kept - kept / 2)
        rest += tune_bytes_of(text + rest, 2); /* half of a wide character */
    fprintf(out, "%.*s%s%s", (int)first, text, mark, text + rest);
}

static char *plain_cell(const struct tune_table *t, int row, int c)
{
    return tune_plain(row < 0 ? t->columns[c] : tune_table_cell(t, row, c));
}

static bool measure(const struct tune_table *t, struct layout *l)
{
    for (int row = -1; row < tune_table_rows(t); row++)
        for (int c = 0; c < t->count; c++) {
            struct fit *f = &l->column[c];
            char *text = plain_cell(t, row, c);
            if (!text)
                return false;
            bool number = row >= 0 && isfinite(cell(t, row, c)->number);
            int w = tune_width(text), most = row < 0 ? HEADING : SHORT, least = number || c < t->whole || w < most ? w : most;
            f->all = f->width = w > f->width ? w : f->width;
            f->least = least > f->least ? least : f->least;
            f->right |= number;
            free(text);
        }
    return true;
}

/* The width of columns from to to-1 beside each other. */
static int line_width(const struct layout *l, int from, int to)
{
    int width = 0;
    for (int c = from; c < to; c++)
        width += l->column[c].below ? 0 : l->column[c].width + (width > 0 ? GAP : 0);
    return width;
}

/* The widest of columns from to to-1 that can be shortened; NULL: none. */
static struct fit *widest(struct layout *l, int from, int to)
{
    struct fit *found = NULL;
    for (int c = from; c < to; c++) {
        struct fit *f = &l->column[c];
        if (!f->below && f->width > f->least && (!found || f->width > found->width))
            found = f;
    }
    return found;
}

/* The widths of a table that is printed in blocks, so that a block has its keys and one column. */
static void fit_blocks(const struct tune_table *t, struct layout *l)
{
    int most = 0;
    for (int c = 0; c < t->count; c++) {
        struct fit *f = &l->column[c];
        int enough = f->least > HEADING ? f->least : HEADING;
        f->width = f->all < enough ? f->all : enough;
        most = c >= t->keys && !f->below && f->width > most ? f->width : most;
        if (c < t->keys && !f->right)
            f->least = f->least < SHORT ? f->least : SHORT;
    }
    for (struct fit *f; line_width(l, 0, t->keys) + GAP + most > l->width && (f = widest(l, 0, t->keys));)
        f->width--;
}

/* Move columns below, the last one that may first; then shorten the widest texts; then make
 * blocks. */
static void fit(const struct tune_table *t, struct layout *l)
{
    for (int i = t->below_count; i-- > 0 && line_width(l, 0, t->count) > l->width;)
        l->column[t->below[i]].below = true;
    for (struct fit *f; line_width(l, 0, t->count) > l->width; f->width--)
        if (!(f = widest(l, 0, t->count))) {
            fit_blocks(t, l);
            break;
        }
}

static bool put_row(const struct tune_table *t, const struct layout *l, int row, int from, int to, FILE *out)
{
    char *line = NULL;
    size_t size;
    FILE *words = open_memstream(&line, &size);
    bool any = false;
    for (int c = 0; c < to && words; c++) {
        const struct fit *f = &l->column[c];
        if (f->below || (c >= t->keys && c < from))
            continue;
        char *text = plain_cell(t, row, c);
        int space = text ? f->width - tune_width(text) : 0;
        fprintf(words, "%s%*s", any ? "  " : "", f->right && space > 0 ? space : 0, "");
        put_short(words, text ? text : "", f->width, l->mark);
        fprintf(words, "%*s", f->right || space < 0 ? 0 : space, "");
        any = true;
        free(text);
    }
    if (!words || fclose(words) != 0) {
        free(line);
        return false;
    }
    while (size > 0 && line[size - 1] == ' ')
        size--;
    fprintf(out, "%.*s\n", (int)size, line);
    free(line);
    return true;
}

/* Print the row's cells that stand below it, folded between words. */
static bool put_below(const struct tune_table *t, const struct layout *l, int row, FILE *out)
{
    int used = 0;
    for (int c = 0; c < t->count; c++) {
        char *text = l->column[c].below ? plain_cell(t, row, c) : NULL;
        if (l->column[c].below && !text)
            return false;
        int space = GAP;
        for (char *word, *rest = text; rest && (word = strsep(&rest, " "));) {
            if (!*word)
                continue;
            int w = tune_width(word), room = l->width - INDENT;
            w = w < room ? w : room > 1 ? room : 1;
            bool fresh = used == 0 || used + space + w > l->width;
            fprintf(out, "%s%*s", used && fresh ? "\n" : "", fresh ? INDENT : space, "");
            put_short(out, word, w, l->mark);
            used = (fresh ? INDENT : used + space) + w;
            space = 1;
        }
        free(text);
    }
    fputs(used ? "\n" : "", out);
    return true;
}

/* Print the table. If it is too wide, print its columns in blocks, each behind the key columns. */
static int put_aligned(const struct tune_table *t, int width, const char *mark, FILE *out)
{
    struct layout l = {width, mark, calloc((size_t)t->count + 1, sizeof *l.column)};
    bool good = l.column && measure(t, &l);
    if (good && width > 0)
        fit(t, &l);
    int keys = good ? line_width(&l, 0, t->keys) : 0;
    for (int from = t->keys < t->count ? t->keys : 0, to; good && from < t->count; from = to) {
        for (to = from; to < t->count && (to == from || width <= 0 || keys + GAP + line_width(&l, from, to + 1) <= width); to++)
            ;
        while (to < t->count && line_width(&l, to, t->count) == 0)
            to++; /* all others stand below */
        fputs(from > t->keys ? "\n" : "", out);
        for (int row = -1; row < tune_table_rows(t) && good; row++)
            good = put_row(t, &l, row, from, to, out) && (row < 0 || to < t->count || put_below(t, &l, row, out));
    }
    free(l.column);
    return good ? 0 : -1;
}

/* ---- for programs ---- */

static void put_csv(const struct tune_table *t, FILE *out)
{
    char number[32];
    for (int row = -1; row < tune_table_rows(t); row++)
        for (int c = 0; c < t->count; c++) {
            if (row >= 0 && isfinite(cell(t, row, c)->number))
                fputs(tune_number_text(number, cell(t, row, c)->number), out);
            else
                tune_csv_put(out, row < 0 ? t->columns[c] : tune_table_cell(t, row, c));
            fputs(c + 1 < t->count ? "," : "\r\n", out);
        }
}

static int put_json(const struct tune_table *t, FILE *out)
{
    cJSON *rows = cJSON_CreateArray();
    bool good = rows != NULL;
    for (int row = 0; row < tune_table_rows(t) && good; row++) {
        cJSON *object = cJSON_CreateObject();
        for (int c = 0; c < t->count && good; c++) {
            const struct cell *at = cell(t, row, c);
            if (isfinite(at->number))
                good = tune_cjson_put_number(object, t->columns[c], at->number);
            else
                good = at->text ? tune_cjson_put_text(object, t->columns[c], at->text)
                                : tune_cjson_put(object, t->columns[c], cJSON_CreateNull());
        }
        good = cJSON_AddItemToArray(rows, object) && good;
    }
    char *text = good ? cJSON_Print(rows) : NULL;
    cJSON_Delete(rows);
    if (!text)
        return -1;
    tune_utf8_mend(text, strlen(text));
    fprintf(out, "%s\n", text);
    cJSON_free(text);
    return 0;
}

int tune_table_print(struct tune_table *t, const char *format, int width, const char *mark, FILE *out)
{
    int status = t->lost ? -1 : 0;
    if (status == 0 && !strcmp(format, "csv"))
        put_csv(t, out);
    else if (status == 0)
        status = !strcmp(format, "json") ? put_json(t, out) : put_aligned(t, width, mark, out);
    if (status < 0)
        tune_error_cannot("out of memory for a table");
    return status;
}
