/* put.c - print rows as CSV, JSON or for people. CSV and JSON are printed cell by cell, so a million
 * rows need no memory, unless rows are grouped or sorted, or columns chosen (kept.c). */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "../drawing.h"
#include "files/csv.h"
#include "core/decimal.h"
#include "core/print.h"
#include "kept.h"
#include "views/sheet.h"

static struct {
    enum { CSV, JSON, PEOPLE } format;
    bool index;          /* CSV has row numbers */
    bool keeps;          /* rows are kept until the end */
    struct kept kept;    /* has the columns in any case */
    char **keys;         /* [columns] headings quoted for JSON */
    int at;              /* number of cells in the current row */
    int64_t rows;
    char *text;          /* scratch */
    size_t size;
} put;

bool samples_people(void)
{
    return strcmp(my.output_format, "csv") && strcmp(my.output_format, "json");
}

int64_t samples_rows(void)
{
    return put.rows;
}

static void put_bytes(const char *bytes, size_t n)
{
    fwrite_unlocked(bytes, 1, n, samples.out);
}

static void put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

static char *scratch(size_t size)
{
    if (size > put.size) {
        put.size = 2 * size;
        put.text = samples_take(1, put.size);
    }
    return put.text;
}

/* Write the value with `spell` into scratch memory. */
static const char *spelled(int (*spell)(const struct tune_value *v, char *text, size_t size), const struct tune_value *v)
{
    size_t length = (size_t)spell(v, put.text, put.size);
    if (length >= put.size)
        spell(v, scratch(length + 1), length + 1);
    return put.text;
}

/* Write all digits. Returns the length. */
static int spell_number(char *text, double v, bool whole)
{
    if (!whole || v != floor(v) || fabs(v) >= 1e15)
        return tune_decimal_python(text, v);
    char digits[24];
    int n = 0, length = 0;
    uint64_t left = (uint64_t)fabs(v);
    do
        digits[n++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (v < 0)
        text[length++] = '-';
    while (n > 0)
        text[length++] = digits[--n];
    text[length] = 0;
    return length;
}

/* A number as the format has it: JSON has no infinity, and people see a few digits. */
static int spell_cell(char *text, const struct kept_cell *cell)
{
    double v = cell->number;
    if (put.format == JSON && !isfinite(v))
        return sprintf(text, "%s", isnan(v) ? "null" : v > 0 ? "\"inf\"" : "\"-inf\"");
    if (put.format != PEOPLE)
        return spell_number(text, v, cell->whole);
    if (cell->whole && v == floor(v) && fabs(v) < 1e15)
        return sprintf(text, "%.0f", v);
    return snprintf(text, TUNE_DECIMAL_SIZE, "%.*g", cell->digits < 17 ? cell->digits : 17, v);
}

/* Print the headings of CSV, or begin JSON. shown: the columns; NULL: all. */
static void put_headings(const int *shown, int count)
{
    put.keys = samples_take(count, sizeof *put.keys);
    for (int i = 0; i < count; i++) {
        struct tune_value heading = tune_value_text(put.kept.columns[shown ? shown[i] : i].heading);
        put.keys[i] = samples_copy(spelled(tune_value_json, &heading));
        if (put.format == CSV && (i > 0 || put.index))
            putc_unlocked(',', samples.out);
        if (put.format == CSV)
            tune_csv_put(samples.out, heading.text);
    }
    put_text(put.format == CSV ? "\n" : "[");
}

struct samples_column *samples_column(const char *heading)
{
    return kept_column(&put.kept, heading);
}

void samples_columns(const char *const *headings, int count)
{
    for (int i = 0; i < count; i++)
        samples_column(headings[i]);
}

void samples_begin(bool numbered)
{
    put.format = samples_people() ? PEOPLE : !strcmp(my.output_format, "csv") ? CSV : JSON;
    put.index = numbered && put.format == CSV && !my.group_by && !my.columns;
    put.keeps = put.format == PEOPLE || my.group_by || my.sort || my.columns;
    put.kept.spell = spell_cell;
    for (int i = 0; i < put.kept.count; i++)
        put.keeps = put.keeps || put.kept.columns[i].hidden;
    scratch(1024);
    if (!put.keeps)
        put_headings(NULL, put.kept.count);
}

/* Print the separator before a cell of CSV or JSON. */
static void put_lead(void)
{
    char number[24];
    if (put.format == CSV) {
        if (put.at == 0 && put.index)
            put_bytes(number, (size_t)sprintf(number, "%lld,", (long long)put.rows));
        else if (put.at > 0)
            putc_unlocked(',', samples.out);
    } else {
        put_text(put.at > 0 ? ", " : put.rows > 0 ? ",\n  {" : "\n  {");
        put_text(put.keys[put.at]);
        put_bytes(": ", 2);
    }
}

/* Print or keep a cell, spelled as the format has it. */
static void put_cell(const struct kept_cell *cell)
{
    if (put.keeps) {
        kept_add(&put.kept, cell);
        return;
    }
    put_lead();
    if (put.format == CSV)
        tune_csv_put(samples.out, cell->text ? cell->text : "");
    else
        put_text(cell->text ? cell->text : "null");
    put.at++;
}

void samples_text(const char *text)
{
    bool none = !text || !*text;
    struct kept_cell cell = {.text = none ? NULL : text, .number = NAN};
    if (!none && put.format == JSON)
        cell.text = spelled(tune_value_json, &(struct tune_value){.type = TUNE_VALUE_TEXT, .text = text});
    put_cell(&cell);
}

void samples_number(double v, bool whole, int digits)
{
    char text[TUNE_DECIMAL_SIZE];
    struct kept_cell cell = {.number = v, .values = &v, .count = !isnan(v), .whole = whole, .right = true,
                             .digits = (unsigned char)digits};
    if (!isnan(v)) {
        spell_cell(text, &cell);
        cell.text = text;
    }
    put_cell(&cell);
}

void samples_numbers(const double *v, int count, bool whole, bool list, int digits)
{
    struct kept_cell cell = {.number = 0, .values = v, .count = count, .whole = whole, .right = true,
                             .digits = (unsigned char)digits};
    if (count < 1 || (count < 2 && !list)) {
        samples_number(count > 0 ? v[0] : NAN, whole, digits);
        return;
    }
    char *text = scratch((size_t)count * (TUNE_DECIMAL_SIZE + 2) + 8), *at = text;
    double sum = 0;
    *at++ = '[';
    for (int i = 0; i < count; i++) {
        at = stpcpy(at, i > 0 ? ", " : "");
        cell.number = v[i];
        at += spell_cell(at, &cell);
        sum += v[i];
    }
    strcpy(at, "]");
    cell.number = sum / count;
    cell.text = text;
    put_cell(&cell);
}

void samples_value(const struct tune_value *v)
{
    double number = NAN;
    if (v->type == TUNE_VALUE_INT && v->integer > -1000000000000 && v->integer < 1000000000000)
        samples_number((double)v->integer, true, 15);
    else if (v->type == TUNE_VALUE_TEXT || v->type == TUNE_VALUE_NONE)
        samples_text(v->type == TUNE_VALUE_TEXT ? v->text : NULL);
    else if (put.format == PEOPLE && tune_value_number(v, &number))
        samples_number(number, v->type != TUNE_VALUE_FLOAT, 15);
    else {
        bool json = put.format == JSON && v->type != TUNE_VALUE_BOOL;
        struct kept_cell cell = {.number = tune_value_number(v, &number) ? number : NAN, .right = true};
        cell.text = spelled(json ? tune_value_json : tune_value_id, v);
        put_cell(&cell);
    }
}

int samples_identifier(const struct tune_value *entity)
{
    static char *text;
    static size_t size;
    TRY(tune_entity_spell(samples.space->names, entity, samples.space->count, &text, &size));
    samples_text(text);
    return 0;
}

void samples_time(double seconds)
{
    char text[64];
    struct tm utc;
    time_t whole = (time_t)floor(seconds);
    if (!(fabs(seconds) < 1e11) || !gmtime_r(&whole, &utc)) {
        samples_text(NULL);
        return;
    }
    size_t n = strftime(text, sizeof text, put.format == PEOPLE ? "%Y-%m-%d %H:%M:%S" : put.format == JSON ? "\"%Y-%m-%dT%H:%M:%S" :
                        "%Y-%m-%dT%H:%M:%S", &utc);
    if (put.format != PEOPLE)
        snprintf(text + n, sizeof text - n, ".%03dZ%s", (int)((seconds - (double)whole) * 1000), put.format == JSON ? "\"" : "");
    put_cell(&(struct kept_cell){.text = text, .number = seconds});
}

int samples_end_row(void)
{
    if (!put.keeps)
        put_text(put.format == CSV ? "\n" : "}");
    put.at = 0;
    put.rows++;
    return ferror(samples.out) ? tune_error_set("the rows cannot be written: %s", strerror(errno)) : 0;
}

bool samples_full(void)
{
    return my.limit > 0 && put.rows >= my.limit && !my.sort && !my.group_by;
}

/* ---- kept rows ---- */

static const struct kept_cell *kept_at(int64_t row, int i)
{
    return &put.kept.cells[put.kept.order[row] * put.kept.count + put.kept.shown[i]];
}

static int put_kept(void)
{
    const struct kept *k = &put.kept;
    put.keeps = false;
    put.rows = 0;
    put_headings(k->shown, k->shown_count);
    for (int64_t row = 0; row < k->rows; row++) {
        for (int i = 0; i < k->shown_count; i++)
            put_cell(kept_at(row, i));
        TRY(samples_end_row());
    }
    return 0;
}

static int put_sheet(int width)
{
    const struct kept *k = &put.kept;
    struct tune_sheet_column *columns = samples_take(k->shown_count, sizeof *columns);
    const char **cells = samples_take(k->rows * k->shown_count, sizeof *cells);
    struct tune_sheet s = {columns, k->shown_count, cells, k->rows, width, drawing_unicode(my.ascii),
                           "--columns chooses"};
    for (int i = 0; i < k->shown_count; i++) {
        const struct samples_column *c = &k->columns[k->shown[i]];
        columns[i] = (struct tune_sheet_column){c->heading, c->prefix, true, my.columns || (my.group_by && !c->measured)};
        for (int64_t row = 0; row < k->rows; row++) {
            const struct kept_cell *cell = kept_at(row, i);
            cells[row * k->shown_count + i] = cell->text;
            columns[i].right = columns[i].right && (cell->right || !cell->text);
        }
    }
    return tune_sheet_print(&s, samples.out);
}

static int put_all_kept(void)
{
    TRY(kept_arrange(&put.kept));
    if (put.format != PEOPLE)
        return put_kept();
    put.rows = put.kept.rows;
    if (put.rows == 0) {
        fputs("# no rows: the store has none that fit the space and these options; what it has: samples stats --store ", samples.out);
        tune_print_word(samples.out, my.store);
        put_text("\n");
        return 0;
    }
    int width = samples.out != stdout || (my.width == 0 && !isatty(STDOUT_FILENO)) ? my.width : drawing_columns(my.width, 0);
    return put_sheet(width);
}

int samples_end(void)
{
    TRY(put.keeps ? put_all_kept() : 0);
    if (put.format == JSON)
        put_text(put.rows > 0 ? "\n]\n" : "]\n");
    return ferror(samples.out) ? tune_error_set("the rows cannot be written: %s", strerror(errno)) : 0;
}
