/* print_text.c - print an answer as text for people. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/pool.h"
#include "core/try.h"
#include "sweeps/answers/print.h"
#include "views/sheet.h"
#include "views/text.h"

static int no_memory(void)
{
    return tune_error_cannot("out of memory to print an answer; choose fewer rows (`where`, `limit`) or columns");
}

static int time_to_string(double seconds, char *text, size_t size)
{
    struct tm utc;
    time_t whole = (time_t)floor(seconds);
    return gmtime_r(&whole, &utc) ? (int)strftime(text, size, "%Y-%m-%d %H:%M:%S", &utc) : snprintf(text, size, "%s", "");
}

/* Format a cell with `digits` significant digits. Returns the full length, as snprintf does. */
static int cell_to_string(const struct tune_answer_cell *cell, int digits, bool unicode, char *text, size_t size)
{
    int most = digits == 0 ? 5 : digits < 17 ? digits : 17;
    switch (cell->type) {
    case TUNE_ANSWER_TEXT: return snprintf(text, size, "%s", *cell->text ? cell->text : "\"\"");
    case TUNE_ANSWER_NUMBER: return snprintf(text, size, "%.*g", most, cell->number);
    case TUNE_ANSWER_TIME: return time_to_string(cell->number, text, size);
    case TUNE_ANSWER_LIST:
        return snprintf(text, size, "%.*g %s%.2g (%d)", most, cell->numbers->mean, unicode ? "±" : "+-", cell->numbers->deviation, cell->numbers->count);
    default: return tune_answer_to_string(cell, text, size);
    }
}

static const char *cell_text(struct tune_pool **memory, const struct tune_answer_cell *cell, int digits, bool unicode)
{
    char text[256];
    int length = cell_to_string(cell, digits, unicode, text, sizeof text);
    if (length < (int)sizeof text)
        return tune_pool_text(memory, text, (size_t)length);
    char *longer = tune_pool_take(memory, (size_t)length + 1);
    if (longer)
        cell_to_string(cell, digits, unicode, longer, (size_t)length + 1);
    return longer;
}

static void put_notes(const struct tune_answer_table *a, enum tune_answer_note_position position, int width, FILE *out)
{
    for (int i = 0; i < a->note_count; i++)
        if (a->notes[i].position == position)
            tune_put_folded(out, "# ", a->notes[i].text, width);
}

static bool is_right(enum tune_answer_type type)
{
    return type != TUNE_ANSWER_TEXT && type != TUNE_ANSWER_NONE;
}

/* Fill the sheet with the visible columns and their cells. */
static int fill_sheet(const struct tune_answer_table *a, struct tune_sheet *s, struct tune_pool **memory)
{
    struct tune_sheet_column *columns = tune_pool_take(memory, ((size_t)a->count + 1) * sizeof *columns);
    const char **cells = tune_pool_take(memory, ((size_t)(a->rows * a->count) + 1) * sizeof *cells);
    int *shown = tune_pool_take(memory, ((size_t)a->count + 1) * sizeof *shown);
    if (!columns || !cells || !shown)
        return no_memory();
    for (int c = 0; c < a->count; c++)
        if (!a->columns[c].hidden)
            shown[s->column_count++] = c;
    for (int i = 0; i < s->column_count; i++) {
        const struct tune_answer_column *c = &a->columns[shown[i]];
        columns[i] = (struct tune_sheet_column){c->name, true, c->stays};
        for (int64_t row = 0; row < a->rows; row++) {
            const struct tune_answer_cell *cell = tune_answer_at(a, row, shown[i]);
            if (cell->type != TUNE_ANSWER_NONE && !(cells[row * s->column_count + i] = cell_text(memory, cell, c->digits, s->unicode)))
                return no_memory();
            columns[i].right = columns[i].right && (is_right(cell->type) || cell->type == TUNE_ANSWER_NONE);
        }
    }
    s->columns = columns;
    s->cells = cells;
    s->rows = a->rows;
    return 0;
}

int tune_answer_print(const struct tune_answer_table *a, int width, bool unicode, FILE *out)
{
    struct tune_pool *memory = NULL;
    struct tune_sheet s = {.width = width, .unicode = unicode, .advice = a->advice ? a->advice : ""};
    int code = a->rows > 0 ? fill_sheet(a, &s, &memory) : 0;
    if (code == 0)
        put_notes(a, TUNE_NOTE_ABOVE, width, out);
    if (code == 0 && a->rows == 0)
        tune_put_folded(out, "# ", a->none, width);
    if (code == 0 && a->rows > 0)
        code = tune_sheet_print(&s, out);
    tune_pool_free(memory);
    if (code == 0)
        put_notes(a, TUNE_NOTE_BELOW, width, out);
    return code < 0 ? -1 : ferror(out) ? tune_error_set("the answer cannot be written: %s", strerror(errno)) : 0;
}
