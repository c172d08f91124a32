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
};

struct tune_table *tune_table_new(const char *const *columns, int count)
{
    struct tune_table *t = calloc(1, sizeof *t);
    if (t && (t->columns = calloc((size_t)count + 1, sizeof *t->columns))) {
        t->count = count;
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

/* Print a line without trailing spaces. If it is wider than width (0: any), cut it and add the
 * mark. */
static void put_cut(FILE *out, char *line, int width, const char *mark)
{
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ')
        n--;
    line[n] = 0;
    if (width <= 0 || tune_width(line) <= width) {
        fprintf(out, "%s\n", line);
        return;
    }
    fprintf(out, "%.*s%s\n", (int)tune_bytes_of(line, width - tune_width(mark)), line, mark);
}

static int put_aligned(const struct tune_table *t, int width, const char *mark, FILE *out)
{
    int *widths = calloc((size_t)t->count, sizeof *widths);
    bool *right = calloc((size_t)t->count, sizeof *right);
    bool good = widths && right;
    for (int row = -1; good && row < tune_table_rows(t); row++)
        for (int c = 0; c < t->count && good; c++) {
            char *text = tune_plain(row < 0 ? t->columns[c] : tune_table_cell(t, row, c));
            int w = text ? tune_width(text) : 0;
            good = text != NULL;
            widths[c] = w > widths[c] ? w : widths[c];
            right[c] |= row >= 0 && isfinite(cell(t, row, c)->number);
            free(text);
        }
    for (int row = -1; good && row < tune_table_rows(t); row++) {
        char *line = NULL;
        size_t size;
        FILE *words = open_memstream(&line, &size);
        for (int c = 0; c < t->count && words; c++) {
            char *text = tune_plain(row < 0 ? t->columns[c] : tune_table_cell(t, row, c));
            int space = text ? widths[c] - tune_width(text) : 0;
            fprintf(words, "%s%*s%s%*s", c ? "  " : "", right[c] ? space : 0, "", text ? text : "", right[c] ? 0 : space, "");
            free(text);
        }
        good = words && fclose(words) == 0;
        if (good)
            put_cut(out, line, width, mark);
        free(line);
    }
    free(widths);
    free(right);
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

int tune_table_print(struct tune_table *t, const char *format, int width, const char *cut_mark, FILE *out)
{
    int status = t->lost ? -1 : 0;
    if (status == 0 && !strcmp(format, "csv"))
        put_csv(t, out);
    else if (status == 0)
        status = !strcmp(format, "json") ? put_json(t, out) : put_aligned(t, width, cut_mark, out);
    if (status < 0)
        tune_error_cannot("out of memory for a table");
    return status;
}
