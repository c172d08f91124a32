/* print_csv.c - an answer as CSV or JSON. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "files/csv.h"
#include "sweeps/answers/print.h"

/* Growing memory for the text of one cell. */
struct scratch {
    char *text;
    size_t size;
};

static int finish(struct scratch *s, int code, FILE *out)
{
    free(s->text);
    return code < 0 ? -1 : ferror(out) ? tune_error_set("the answer cannot be written: %s", strerror(errno)) : 0;
}

static int reserve(struct scratch *s, size_t size)
{
    if (size <= s->size)
        return 0;
    char *text = realloc(s->text, 2 * size);
    if (!text)
        return tune_error_cannot("out of memory to write an answer");
    s->text = text;
    s->size = 2 * size;
    return 0;
}

static int cell_to_string(struct scratch *s, const struct tune_answer_cell *cell)
{
    int length = tune_answer_to_string(cell, s->text, s->size);
    if ((size_t)length < s->size)
        return 0;
    TRY(reserve(s, (size_t)length + 1));
    tune_answer_to_string(cell, s->text, s->size);
    return 0;
}

static int value_to_json(struct scratch *s, const struct tune_value *v)
{
    int length = tune_value_json(v, s->text, s->size);
    if ((size_t)length < s->size)
        return 0;
    TRY(reserve(s, (size_t)length + 1));
    tune_value_json(v, s->text, s->size);
    return 0;
}

/* ---- CSV ---- */

static int put_csv(const struct tune_answer_table *a, struct scratch *s, FILE *out)
{
    TRY(reserve(s, 256));
    for (int c = 0; c < a->count; c++) {
        fputs(c > 0 || a->numbered ? "," : "", out);
        tune_csv_put(out, a->columns[c].name);
    }
    fputc('\n', out);
    for (int64_t row = 0; row < a->rows && !ferror(out); row++) {
        if (a->numbered)
            fprintf(out, "%lld", (long long)row);
        for (int c = 0; c < a->count; c++) {
            const struct tune_answer_cell *cell = tune_answer_at(a, row, c);
            if (c > 0 || a->numbered)
                putc_unlocked(',', out);
            if (cell->type == TUNE_ANSWER_NONE)
                continue;
            if (cell->type != TUNE_ANSWER_TEXT)
                TRY(cell_to_string(s, cell));
            if (cell->type == TUNE_ANSWER_TEXT && !*cell->text)
                fputs("\"\"", out);
            else
                tune_csv_put(out, cell->type == TUNE_ANSWER_TEXT ? cell->text : s->text);
        }
        putc_unlocked('\n', out);
    }
    return 0;
}

int tune_answer_csv(const struct tune_answer_table *a, FILE *out)
{
    struct scratch s = {0};
    return finish(&s, put_csv(a, &s, out), out);
}

/* ---- JSON ---- */

static void put_number(double number, bool whole, FILE *out)
{
    char text[64];
    const struct tune_answer_cell cell = whole && number == floor(number) && fabs(number) < 1e15
                                             ? (struct tune_answer_cell){.type = TUNE_ANSWER_WHOLE, .whole = (int64_t)number}
                                             : (struct tune_answer_cell){.type = TUNE_ANSWER_NUMBER, .number = number};
    tune_answer_to_string(&cell, text, sizeof text);
    fprintf(out, isfinite(number) ? "%s" : "\"%s\"", text);
}

static int put_json_cell(const struct tune_answer_cell *cell, struct scratch *s, FILE *out)
{
    struct tune_value text;
    switch (cell->type) {
    case TUNE_ANSWER_NONE: fputs("null", out); return 0;
    case TUNE_ANSWER_NUMBER: put_number(cell->number, false, out); return 0;
    case TUNE_ANSWER_BOOL: fputs(cell->whole ? "true" : "false", out); return 0;
    case TUNE_ANSWER_LIST:
        for (int i = 0; i < cell->numbers->count; i++) {
            fputs(i == 0 ? "[" : ", ", out);
            put_number(cell->numbers->at[i], cell->numbers->whole, out);
        }
        fputc(']', out);
        return 0;
    case TUNE_ANSWER_VALUE: TRY(value_to_json(s, cell->value)); break;
    case TUNE_ANSWER_TEXT:
        text = tune_value_text(cell->text);
        TRY(value_to_json(s, &text));
        break;
    default: TRY(cell_to_string(s, cell)); break;
    }
    fprintf(out, cell->type == TUNE_ANSWER_TIME ? "\"%s\"" : "%s", s->text);
    return 0;
}

static int put_json(const struct tune_answer_table *a, bool lines, struct scratch *s, FILE *out)
{
    TRY(reserve(s, 256));
    fputs(lines ? "" : "[", out);
    for (int64_t row = 0; row < a->rows && !ferror(out); row++) {
        fputs(lines ? "{" : row > 0 ? ",\n  {" : "\n  {", out);
        for (int c = 0; c < a->count; c++) {
            const struct tune_value name = tune_value_text(a->columns[c].name);
            TRY(value_to_json(s, &name));
            fprintf(out, "%s%s: ", c > 0 ? ", " : "", s->text);
            TRY(put_json_cell(tune_answer_at(a, row, c), s, out));
        }
        fputs(lines ? "}\n" : "}", out);
    }
    fputs(lines ? "" : a->rows > 0 ? "\n]\n" : "]\n", out);
    return 0;
}

int tune_answer_json(const struct tune_answer_table *a, bool lines, FILE *out)
{
    struct scratch s = {0};
    return finish(&s, put_json(a, lines, &s, out), out);
}

/* ---- the whole answer ---- */

static int put_text(const char *text, struct scratch *s, FILE *out)
{
    const struct tune_answer_cell cell = {.type = text ? TUNE_ANSWER_TEXT : TUNE_ANSWER_NONE, .text = text};
    return put_json_cell(&cell, s, out);
}

/* In a column of times alone, they are numbers. */
static int put_object_cell(const struct tune_answer_column *c, const struct tune_answer_cell *cell, struct scratch *s, FILE *out)
{
    const struct tune_answer_cell number = {.type = TUNE_ANSWER_NUMBER, .number = cell->number};
    return put_json_cell(cell->type == TUNE_ANSWER_TIME && c->type == TUNE_ANSWER_TIME ? &number : cell, s, out);
}

static int put_column(const struct tune_answer_column *c, struct scratch *s, FILE *out)
{
    static const char *const types[] = {"none", "text", "whole", "number", "time", "bool", "value", "list", "mixed"};
    static const char *const names[] = {"false", "true"};
    fputs("{\"name\": ", out);
    TRY(put_text(c->name, s, out));
    fputs(", \"unit\": ", out);
    TRY(put_text(c->unit ? c->unit : "", s, out));
    fprintf(out, ", \"type\": \"%s\", \"dimension\": %s, \"measured\": %s, \"hidden\": %s, \"digits\": %d", types[c->type],
            names[c->dimension], names[c->measured], names[c->hidden], c->digits ? c->digits : 5);
    for (int i = 0; i < c->level_count; i++) {
        fputs(i > 0 ? ", " : ", \"levels\": [", out);
        TRY(put_object_cell(c, &c->levels[i], s, out));
    }
    fputs(c->level_count > 0 ? "]}" : "}", out);
    return 0;
}

static int put_object(const struct tune_answer_table *a, const char *command, struct scratch *s, FILE *out)
{
    static const char *const positions[] = {"above", "below", "warning"};
    TRY(reserve(s, 256));
    fputs("{\"columns\": [", out);
    for (int c = 0; c < a->count; c++) {
        fputs(c > 0 ? ",\n  " : "", out);
        TRY(put_column(&a->columns[c], s, out));
    }
    fputs("],\n\"rows\": [", out);
    for (int64_t row = 0; row < a->rows && !ferror(out); row++) {
        fputs(row > 0 ? ",\n  [" : "[", out);
        for (int c = 0; c < a->count; c++) {
            fputs(c > 0 ? ", " : "", out);
            TRY(put_object_cell(&a->columns[c], tune_answer_at(a, row, c), s, out));
        }
        fputc(']', out);
    }
    fputs("],\n\"notes\": [", out);
    for (int i = 0; i < a->note_count; i++) {
        fprintf(out, "%s{\"position\": \"%s\", \"text\": ", i > 0 ? ",\n  " : "", positions[a->notes[i].position]);
        TRY(put_text(a->notes[i].text, s, out));
        fputc('}', out);
    }
    fputs("],\n\"none\": ", out);
    TRY(put_text(a->rows > 0 ? NULL : a->none, s, out));
    fprintf(out, ", \"verdict\": %d, \"command\": ", a->verdict);
    TRY(put_text(command, s, out));
    fputs("}\n", out);
    return 0;
}

int tune_answer_object(const struct tune_answer_table *a, const char *command, FILE *out)
{
    struct scratch s = {0};
    return finish(&s, put_object(a, command, &s, out), out);
}
