/* answer.c - build a table of cells with notes. */
#include "sweeps/answers/answer_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/decimal.h"
#include "core/print.h"
#include "core/statistics.h"
#include "files/file.h"

/* ---- memory ---- */

int tune_answer_no_memory(void)
{
    return tune_error_cannot("out of memory for an answer; choose fewer rows (`where`, `limit`) or columns");
}

void *tune_answer_take(struct tune_answer_table *a, int64_t count, size_t size)
{
    void *memory = tune_pool_take(&a->memory, (size_t)(count > 0 ? count : 1) * size);
    if (!memory)
        tune_answer_no_memory();
    return memory;
}

char *tune_answer_copy(struct tune_answer_table *a, const char *text)
{
    char *copy = tune_pool_text(&a->memory, text, strlen(text));
    if (!copy)
        tune_answer_no_memory();
    return copy;
}

struct tune_answer_table *tune_answer_new(void)
{
    return tune_zeroed(1, sizeof(struct tune_answer_table), "an answer");
}

void tune_answer_free(struct tune_answer_table *a)
{
    if (!a)
        return;
    free(a->columns);
    free(a->cells);
    free(a->notes);
    tune_pool_free(a->memory);
    free(a);
}

/* ---- columns ---- */

struct tune_answer_column *tune_answer_column(struct tune_answer_table *a, const char *name)
{
    const char *copy = tune_answer_copy(a, name);
    if (!copy || !tune_array_fit(&a->columns, (size_t)a->count, sizeof *a->columns)) {
        a->broken = true;
        return &a->spare;
    }
    a->columns[a->count] = (struct tune_answer_column){.name = copy, .unit = ""};
    return &a->columns[a->count++];
}

void tune_answer_columns(struct tune_answer_table *a, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        tune_answer_column(a, names[i]);
}

int tune_answer_find(const struct tune_answer_table *a, const char *name)
{
    int i = a->count - 1;
    while (i >= 0 && strcmp(a->columns[i].name, name))
        i--;
    return i;
}

/* ---- cells ---- */

static void add_cell(struct tune_answer_table *a, struct tune_answer_cell cell)
{
    if (!tune_array_fit(&a->cells, (size_t)a->filled, sizeof *a->cells))
        a->broken = true;
    else if (!a->broken)
        a->cells[a->filled++] = cell;
}

/* Copy a cell's text. Texts often repeat, so a text that equals the one above shares its memory. */
static const char *share_text(struct tune_answer_table *a, const char *text)
{
    const struct tune_answer_cell *above = a->filled >= a->count ? &a->cells[a->filled - a->count] : NULL;
    return above && above->type == TUNE_ANSWER_TEXT && !strcmp(above->text, text) ? above->text : tune_answer_copy(a, text);
}

void tune_answer_text(struct tune_answer_table *a, const char *text)
{
    const char *copy = text ? share_text(a, text) : NULL;
    a->broken = a->broken || (text && !copy);
    add_cell(a, (struct tune_answer_cell){.type = copy ? TUNE_ANSWER_TEXT : TUNE_ANSWER_NONE, .text = copy});
}

void tune_answer_whole(struct tune_answer_table *a, int64_t whole)
{
    add_cell(a, (struct tune_answer_cell){.type = TUNE_ANSWER_WHOLE, .whole = whole});
}

void tune_answer_figure(struct tune_answer_table *a, double number, bool whole)
{
    if (whole && number == floor(number) && fabs(number) < 1e15)
        tune_answer_whole(a, (int64_t)number);
    else
        add_cell(a, (struct tune_answer_cell){.type = isnan(number) ? TUNE_ANSWER_NONE : TUNE_ANSWER_NUMBER, .number = number});
}

void tune_answer_figures(struct tune_answer_table *a, const double *numbers, int count, bool whole)
{
    if (count < 2) {
        tune_answer_figure(a, count > 0 ? numbers[0] : NAN, whole);
        return;
    }
    struct tune_answer_numbers *list = tune_answer_take(a, 1, sizeof *list);
    double *at = list ? tune_answer_take(a, count, sizeof *at) : NULL;
    if (!at) {
        a->broken = true;
        return;
    }
    memcpy(at, numbers, (size_t)count * sizeof *numbers);
    struct tune_spread spread = tune_spread_of(at, count); /* this sorts `at` */
    memcpy(at, numbers, (size_t)count * sizeof *numbers);
    list->at = at;
    list->count = count;
    list->whole = whole;
    list->mean = spread.mean;
    list->deviation = spread.deviation;
    add_cell(a, (struct tune_answer_cell){.type = TUNE_ANSWER_LIST, .numbers = list});
}

void tune_answer_time(struct tune_answer_table *a, double seconds)
{
    bool known = fabs(seconds) < 1e11; /* false for NaN */
    add_cell(a, (struct tune_answer_cell){.type = known ? TUNE_ANSWER_TIME : TUNE_ANSWER_NONE, .number = seconds});
}

void tune_answer_space_value(struct tune_answer_table *a, const struct tune_value *v)
{
    struct tune_value *copy;
    switch (v->type) {
    case TUNE_VALUE_NONE: tune_answer_text(a, NULL); break;
    case TUNE_VALUE_TEXT: tune_answer_text(a, v->text); break;
    case TUNE_VALUE_INT: tune_answer_whole(a, v->integer); break;
    case TUNE_VALUE_FLOAT: tune_answer_figure(a, v->number, false); break;
    case TUNE_VALUE_BOOL: add_cell(a, (struct tune_answer_cell){.type = TUNE_ANSWER_BOOL, .whole = v->boolean}); break;
    default:
        if (!(copy = tune_answer_take(a, 1, tune_values_size(v, 1))))
            a->broken = true;
        else
            add_cell(a, (struct tune_answer_cell){.type = TUNE_ANSWER_VALUE, .value = tune_values_copy(copy, v, 1)});
    }
}

int tune_answer_identifier(struct tune_answer_table *a, const struct tune_space *s, const struct tune_value *entity)
{
    char *text = NULL;
    size_t size = 0;
    int length = tune_entity_to_string(s->names, entity, s->count, &text, &size);
    if (length >= 0)
        tune_answer_text(a, text);
    free(text);
    return length < 0 ? -1 : 0;
}

void tune_answer_cell(struct tune_answer_table *a, const struct tune_answer_cell *cell)
{
    if (cell->type == TUNE_ANSWER_TEXT)
        tune_answer_text(a, cell->text);
    else if (cell->type == TUNE_ANSWER_LIST)
        tune_answer_figures(a, cell->numbers->at, cell->numbers->count, cell->numbers->whole);
    else if (cell->type == TUNE_ANSWER_VALUE)
        tune_answer_space_value(a, cell->value);
    else
        add_cell(a, *cell);
}

int tune_answer_levels(struct tune_answer_table *a, struct tune_answer_column *column, const struct tune_value *values, int count)
{
    struct tune_answer_cell *cells;
    TAKE(cells, a, count);
    for (int i = 0; i < count; i++)
        tune_answer_space_value(a, &values[i]);
    if (a->broken)
        return tune_answer_no_memory();
    a->filled -= count; /* move them out of the table's cells */
    for (int i = 0; i < count; i++)
        cells[i] = a->cells[a->filled + i];
    column->levels = cells;
    column->level_count = count;
    return 0;
}

int tune_answer_end_row(struct tune_answer_table *a)
{
    if (a->broken)
        return tune_answer_no_memory();
    a->rows++;
    return 0;
}

bool tune_answer_full(const struct tune_answer_table *a, int64_t limit)
{
    return limit > 0 && a->rows >= limit;
}

void tune_answer_add_note(struct tune_answer_table *a, enum tune_answer_note_position position, const char *format, ...)
{
    char text[4096];
    FORMAT(text, format);
    tune_blank_controls(text);
    for (int i = 0; i < a->note_count; i++)
        if (a->notes[i].position == position && !strcmp(a->notes[i].text, text))
            return;
    char *copy = tune_answer_copy(a, text);
    if (!copy || !tune_array_fit(&a->notes, (size_t)a->note_count, sizeof *a->notes))
        a->broken = true;
    else
        a->notes[a->note_count++] = (struct tune_answer_note){position, copy};
}

static enum tune_answer_type type_of(const struct tune_answer_table *a, int column)
{
    enum tune_answer_type type = TUNE_ANSWER_NONE;
    for (int64_t row = 0; row < a->rows && type != TUNE_ANSWER_MIXED; row++) {
        enum tune_answer_type cell = tune_answer_at(a, row, column)->type;
        bool numbers = (type == TUNE_ANSWER_WHOLE && cell == TUNE_ANSWER_NUMBER) ||
                       (type == TUNE_ANSWER_NUMBER && cell == TUNE_ANSWER_WHOLE);
        type = cell == TUNE_ANSWER_NONE ? type : type == TUNE_ANSWER_NONE || type == cell ? cell : numbers ? TUNE_ANSWER_NUMBER : TUNE_ANSWER_MIXED;
    }
    return type;
}

struct tune_answer_table *tune_answer_finish(struct tune_answer_table *a)
{
    if (a->broken) {
        tune_answer_free(a);
        tune_answer_no_memory();
        return NULL;
    }
    for (int i = 0; i < a->count; i++)
        a->columns[i].type = type_of(a, i);
    return a;
}

/* ---- reading ---- */

const struct tune_answer_cell *tune_answer_at(const struct tune_answer_table *a, int64_t row, int column)
{
    static const struct tune_answer_cell none = {.type = TUNE_ANSWER_NONE};
    return column < 0 ? &none : &a->cells[row * a->count + column];
}

double tune_answer_number(const struct tune_answer_cell *cell)
{
    double number;
    switch (cell->type) {
    case TUNE_ANSWER_WHOLE:
    case TUNE_ANSWER_BOOL: return (double)cell->whole;
    case TUNE_ANSWER_NUMBER:
    case TUNE_ANSWER_TIME: return cell->number;
    case TUNE_ANSWER_LIST: return cell->numbers->mean;
    case TUNE_ANSWER_VALUE: return tune_value_number(cell->value, &number) ? number : NAN;
    default: return NAN;
    }
}

/* Print a number as snprintf does with "%lld", but several times as fast. */
static int whole_to_string(char *text, size_t size, int64_t whole)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;
    *--at = 0;
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (whole < 0)
        *--at = '-';
    size_t n = (size_t)(digits + sizeof digits - 1 - at);
    if (size > n)
        memcpy(text, at, n + 1);
    return (int)n;
}

static int number_to_string(char *text, size_t size, double number, bool whole)
{
    char digits[TUNE_DECIMAL_SIZE];
    if (whole && number == floor(number) && fabs(number) < 1e15)
        return whole_to_string(text, size, (int64_t)number);
    tune_decimal_python(digits, number);
    return snprintf(text, size, "%s", digits);
}

static int numbers_to_string(const struct tune_answer_numbers *numbers, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i <= numbers->count; i++) {
        size_t left = used < size ? size - used : 0;
        char *to = left > 0 ? text + used : NULL;
        used += (size_t)snprintf(to, left, "%s", i == numbers->count ? "]" : i == 0 ? "[" : ", ");
        left = used < size ? size - used : 0;
        if (i < numbers->count)
            used += (size_t)number_to_string(left > 0 ? text + used : NULL, left, numbers->at[i], numbers->whole);
    }
    return (int)used;
}

int64_t tune_answer_milliseconds(double seconds)
{
    double whole = floor(seconds);
    return (int64_t)whole * 1000 + (int64_t)((seconds - whole) * 1000);
}

static int time_to_string(double seconds, char *text, size_t size)
{
    char date[64] = "";
    struct tm utc;
    time_t whole = (time_t)floor(seconds);
    if (gmtime_r(&whole, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    int part = (int)(tune_answer_milliseconds(seconds) - (int64_t)whole * 1000);
    return snprintf(text, size, "%s.%03dZ", date, part);
}

int tune_answer_to_string(const struct tune_answer_cell *cell, char *text, size_t size)
{
    switch (cell->type) {
    case TUNE_ANSWER_TEXT: return snprintf(text, size, "%s", cell->text);
    case TUNE_ANSWER_WHOLE:
    case TUNE_ANSWER_BOOL: return whole_to_string(text, size, cell->whole);
    case TUNE_ANSWER_NUMBER: return number_to_string(text, size, cell->number, false);
    case TUNE_ANSWER_TIME: return time_to_string(cell->number, text, size);
    case TUNE_ANSWER_VALUE: return tune_value_id(cell->value, text, size);
    case TUNE_ANSWER_LIST: return numbers_to_string(cell->numbers, text, size);
    default: return snprintf(text, size, "%s", "");
    }
}
