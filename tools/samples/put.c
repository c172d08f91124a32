/* put.c - print rows as CSV, JSON or a table. CSV and JSON are printed cell by cell, so a million
 * rows need no memory. */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "../drawing.h"
#include "files/csv.h"
#include "core/decimal.h"
#include "samples.h"
#include "sweeps/spaces/frame.h"
#include "views/table.h"

static struct {
    enum { CSV, JSON, PEOPLE } format;
    bool index;
    struct tune_frame *frame;
    struct tune_table *table;
    char **keys;         /* [columns] headings quoted for JSON */
    int columns, at;     /* at: number of cells in the current row */
    int64_t rows;
    char *text;          /* scratch */
    size_t size;
    bool lost;           /* true: no memory for a cell */
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
        char *grown = realloc(put.text, size);
        if (!grown) {
            put.lost = true;
            return NULL;
        }
        put.text = grown;
        put.size = size;
    }
    return put.text;
}

/* Write the value with `spell` into scratch memory; "" if there is no memory. */
static const char *spelled(int (*spell)(const struct tune_value *v, char *text, size_t size), const struct tune_value *v)
{
    size_t length = (size_t)spell(v, put.text, put.size);
    if (length >= put.size) {
        if (!scratch(length + 1))
            return "";
        spell(v, put.text, put.size);
    }
    return put.text;
}

int samples_begin(enum samples_look look, const char *const *headings, int count)
{
    put.format = samples_people() ? PEOPLE : !strcmp(my.output_format, "csv") ? CSV : JSON;
    put.index = look == SAMPLES_FRAME && put.format == CSV;
    put.columns = count;
    if (!scratch(1024) || !(put.keys = calloc((size_t)count + 1, sizeof *put.keys)))
        return samples_no_memory();
    for (int i = 0; i < count; i++) {
        struct tune_value heading = tune_value_text(headings[i]);
        if (!(put.keys[i] = strdup(spelled(tune_value_json, &heading))))
            return samples_no_memory();
    }
    if (put.format == PEOPLE && look == SAMPLES_FRAME)
        return (put.frame = tune_frame_new(headings, count)) ? 0 : -1;
    if (put.format == PEOPLE)
        return (put.table = tune_table_new(headings, count)) ? 0 : -1;
    for (int i = 0; i < count && put.format == CSV; i++) {
        if (i > 0 || put.index)
            putc_unlocked(',', samples.out);
        tune_csv_put(samples.out, headings[i]);
    }
    put_text(put.format == CSV ? "\n" : "[");
    return 0;
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
    put.at++;
}

void samples_text(const char *text)
{
    bool none = !text || !*text;
    if (put.format == PEOPLE) {
        put.at++;
        if (put.frame)
            tune_frame_cell(put.frame, none ? "None" : text);
        else
            tune_table_text(put.table, text);
        return;
    }
    put_lead();
    if (put.format == CSV)
        tune_csv_put(samples.out, none ? "" : text);
    else if (none)
        put_text("null");
    else
        put_text(spelled(tune_value_json, &(struct tune_value){.type = TUNE_VALUE_TEXT, .text = text}));
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

void samples_number(double v, bool whole, int digits)
{
    char text[TUNE_DECIMAL_SIZE], format[16];
    int length = isnan(v) ? 0 : spell_number(text, v, whole);
    if (put.table) {
        snprintf(format, sizeof format, whole && v == floor(v) && fabs(v) < 1e15 ? "%%.0f" : "%%.%dg", digits);
        tune_table_number(put.table, v, format);
        put.at++;
    } else if (put.frame) {
        tune_frame_cell(put.frame, isnan(v) ? "NaN" : text);
        put.at++;
    } else {
        put_lead();
        if (put.format == JSON && !isfinite(v)) /* JSON has no infinity */
            put_text(isnan(v) ? "null" : v > 0 ? "\"inf\"" : "\"-inf\"");
        else
            put_bytes(text, (size_t)length);
    }
}

void samples_numbers(const double *v, int count, bool whole, bool list)
{
    if (count < 1 || (count < 2 && !list)) {
        samples_number(count > 0 ? v[0] : NAN, whole, 6);
        return;
    }
    char *text = scratch((size_t)count * (TUNE_DECIMAL_SIZE + 2) + 8), *at = text;
    if (!text)
        return;
    *at++ = '[';
    for (int i = 0; i < count; i++) {
        if (i > 0)
            at = stpcpy(at, ", ");
        if (put.format == JSON && !isfinite(v[i]))
            at = stpcpy(at, isnan(v[i]) ? "null" : v[i] > 0 ? "\"inf\"" : "\"-inf\"");
        else
            at += spell_number(at, v[i], whole);
    }
    strcpy(at, "]");
    if (put.format != JSON) {
        samples_text(text);
        return;
    }
    put_lead();
    put_text(text);
}

void samples_value(const struct tune_value *v)
{
    double number;
    if (v->type == TUNE_VALUE_INT && v->integer > -1000000000000 && v->integer < 1000000000000)
        samples_number((double)v->integer, true, 15);
    else if (v->type == TUNE_VALUE_TEXT)
        samples_text(v->text);
    else if (v->type == TUNE_VALUE_NONE)
        samples_text(NULL);
    else if (put.table && tune_value_number(v, &number))
        samples_number(number, v->type != TUNE_VALUE_FLOAT, 15);
    else if (put.format != JSON)
        samples_text(spelled(tune_value_id, v));
    else {
        const char *text = spelled(v->type == TUNE_VALUE_BOOL ? tune_value_id : tune_value_json, v);
        put_lead();
        put_text(text);
    }
}

void samples_time(double seconds)
{
    char text[48];
    struct tm utc;
    time_t whole = (time_t)floor(seconds);
    if (!(fabs(seconds) < 1e11) || !gmtime_r(&whole, &utc)) {
        samples_text(NULL);
        return;
    }
    size_t n = strftime(text, sizeof text, samples_people() ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &utc);
    if (!samples_people())
        snprintf(text + n, sizeof text - n, ".%03dZ", (int)((seconds - (double)whole) * 1000));
    samples_text(text);
}

int samples_end_row(void)
{
    if (put.format != PEOPLE)
        put_text(put.format == CSV ? "\n" : "}");
    put.at = 0;
    put.rows++;
    if (put.lost)
        return samples_no_memory();
    return ferror(samples.out) ? tune_error_set("the rows cannot be written: %s", strerror(errno)) : 0;
}

int samples_end(void)
{
    int code = 0;
    if (put.format == JSON)
        put_text(put.rows > 0 ? "\n]\n" : "]\n");
    else if (put.format == PEOPLE && put.rows == 0)
        put_text("# no rows: the store has none that fit the space and these options; `samples stats` shows what it has\n");
    else if (put.frame) {
        code = tune_frame_print(put.frame, 0, samples.out);
        put.frame = NULL;
    }
    else if (put.table)
        code = tune_table_print(put.table, "table", samples.out == stdout ? drawing_columns(my.width, 0) : my.width,
                                drawing_unicode(my.ascii) ? "\u2026" : "...", samples.out);
    tune_frame_free(put.frame);
    tune_table_free(put.table);
    for (int i = 0; i < put.columns; i++)
        free(put.keys[i]);
    free(put.keys);
    free(put.text);
    int64_t rows = put.rows;
    memset(&put, 0, sizeof put);
    put.rows = rows;
    if (code == 0 && ferror(samples.out))
        return tune_error_set("the rows cannot be written: %s", strerror(errno));
    return code;
}
