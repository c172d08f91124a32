/* columns.c - names and values of columns, in JSON objects and CSV records. */
#include "datasets/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/csv.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/reasons.h"

enum { FIRST_ROWS = 100 };

static struct tune_csv *open_record(const struct tune_rows *rows, const struct tune_file_row *row)
{
    return tune_csv_from_text(row->text, row->size, rows->path, row->line, rows->separator);
}

/* ---- names ---- */

static int add_name(struct tune_columns *c, const char *name, size_t size)
{
    if (!tune_array_fit(&c->names, (size_t)c->count, sizeof *c->names) || !(c->names[c->count] = strndup(name, size)))
        return tune_error_no_memory("the names of columns");
    c->count++;
    return 0;
}

static int find_header(struct tune_columns *c, const struct tune_rows *rows)
{
    const char *const *fields;
    int count;
    struct tune_csv *csv = open_record(rows, &rows->header);
    int status = csv && tune_csv_row(csv, &fields, &count) == 1 ? 0 : -1;
    if (status == 0 && (*fields[0] == '{' || *fields[0] == '['))
        status = tune_error_usage("%s: the first line is JSON, and the name says CSV; name the file "
                                  ".jsonl (an object a line) or .json (an array)", rows->path);
    for (int i = 0; status == 0 && i < count; i++) {
        if (*fields[i] && tune_columns_has(c, fields[i])) {
            status = tune_error_set("%s:%lld: the column \"%.200s\" stands twice in the first line", rows->path,
                                    (long long)rows->header.line, fields[i]);
        } else {
            status = add_name(c, fields[i], strlen(fields[i]));
        }
    }
    tune_csv_free(csv);
    return status;
}

/* Add the keys of one row. Keys of a row that turns out bad stay; they do no harm. */
static int add_keys(struct tune_columns *c, struct tune_json *j)
{
    struct tune_text key;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (strlen(key.data) == key.size && !tune_columns_has(c, key.data) && c->count < TUNE_CSV_FIELDS)
            TRY(add_name(c, key.data, key.size));
        TRY(tune_json_skip(j));
    }
    TRY(more);
    return tune_json_end(j);
}

int tune_columns_find(struct tune_columns *c, const struct tune_rows *rows, bool skip_bad)
{
    struct tune_reasons why = {0};
    int good = 0;
    memset(c, 0, sizeof *c);
    if (tune_rows_are_csv(rows))
        return find_header(c, rows);
    for (int64_t i = 0; i < rows->count && i < FIRST_ROWS; i++) {
        struct tune_file_row row = tune_rows_get(rows, i);
        struct tune_json j;
        int status = row.size > TUNE_ROW_LIMIT ? tune_rows_too_long(rows, &row) : 0;
        if (status == 0) {
            tune_json_start(&j, rows->path, row.text, row.size, row.line);
            j.python = true;
            status = add_keys(c, &j);
            tune_json_free(&j);
        }
        if (status < 0 && (tune_error_kind() == TUNE_ERROR_CANNOT || (!good && !skip_bad)))
            return -1;
        if (status < 0)
            tune_reasons_add(&why);
        good += status == 0;
    }
    return good ? 0 : tune_reasons_refuse(&why, rows->path, rows->count);
}

bool tune_columns_has(const struct tune_columns *c, const char *name)
{
    size_t first = strcspn(name, ".");
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->names[i], name))
            return true;
    for (int i = 0; name[first] && i < c->count; i++)
        if (strlen(c->names[i]) == first && memcmp(c->names[i], name, first) == 0)
            return true;
    return false;
}

const char *tune_columns_list(const struct tune_columns *c, char *text, size_t size)
{
    snprintf(text, size, c->count ? "" : "none");
    for (int i = 0; i < c->count; i++)
        tune_append_item(text, size, "%.100s", c->names[i]);
    tune_blank_controls(text); /* no escape sequences from a file may reach the terminal */
    return text;
}

void tune_columns_free(struct tune_columns *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->names[i]);
    free(c->names);
    memset(c, 0, sizeof *c);
}

/* ---- values ---- */

static int keep(struct tune_row_values *v, struct tune_text text, size_t *offset)
{
    TRY(tune_array_reserve(&v->bytes, &v->room, v->used + text.size + 1, 1, "the columns of a row"));
    *offset = v->used;
    memcpy(v->bytes + v->used, text.data, text.size);
    v->bytes[v->used + text.size] = 0;
    v->used += text.size + 1;
    return 0;
}

/* The path behind the key, if name is a path into it: "instances.0.output". NULL: it is none. */
static const char *path_behind(struct tune_text key, const char *name)
{
    size_t n = strcspn(name, ".");
    return name[n] == '.' && n == key.size && memcmp(name, key.data, n) == 0 ? name + n + 1 : NULL;
}

/* Step to the value at the next part of the path: the i-th item, or a member. 1; 0: there is none. */
static int step_into(struct tune_json *j, const char *path, size_t size)
{
    struct tune_text key;
    int more, item = 0, type = tune_json_peek(j), wanted = atoi(path);
    TRY(type);
    if (type != TUNE_JSON_ARRAY && type != TUNE_JSON_OBJECT)
        return 0;
    TRY(type == TUNE_JSON_ARRAY ? tune_json_array(j) : tune_json_object(j));
    while ((more = type == TUNE_JSON_ARRAY ? tune_json_item(j) : tune_json_key(j, &key)) == 1) {
        if (type == TUNE_JSON_ARRAY ? item++ == wanted : key.size == size && memcmp(key.data, path, size) == 0)
            return 1;
        TRY(tune_json_skip(j));
    }
    return more;
}

/* Follow a path within the value at text, which was checked. */
static int follow(const struct tune_json *row, struct tune_text text, const char *path, struct tune_field *value)
{
    struct tune_json j;
    int found = 1;
    tune_json_start(&j, row->name, text.data, text.size, tune_json_line(row));
    j.python = true;
    for (; found == 1 && *path; path += strcspn(path, ".") + (path[strcspn(path, ".")] == '.'))
        found = step_into(&j, path, strcspn(path, "."));
    if (found == 1) {
        int type = tune_json_peek(&j);
        const char *begin = j.at;
        found = type < 0 || tune_json_skip(&j) < 0 ? -1 : 1;
        *value = (struct tune_field){type, {begin, (size_t)(j.at - begin)}, 0};
    }
    tune_json_free(&j);
    return found < 0 ? -1 : 0;
}

/* Find the values first and decode strings afterwards, because skipping values uses the reader's
 * buffer. */
static int find_values(struct tune_row_values *v, const char *const *names, int count)
{
    struct tune_json *j = &v->json;
    struct tune_text key;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        bool wanted[TUNE_PROMPT_SLOTS] = {false};
        const char *path[TUNE_PROMPT_SLOTS];
        int type = tune_json_peek(j);
        TRY(type);
        for (int i = 0; i < count; i++) {
            wanted[i] = tune_text_equal(key, names[i]);
            path[i] = path_behind(key, names[i]); /* before the value, which overwrites the key */
            if (wanted[i] && v->at[i].type >= 0)
                return tune_json_fail(j, "the column \"%s\" stands here a second time", names[i]);
        }
        const char *begin = j->at;
        TRY(tune_json_skip(j));
        struct tune_text value = {begin, (size_t)(j->at - begin)};
        for (int i = 0; i < count; i++) {
            if (wanted[i])
                v->at[i] = (struct tune_field){type, value, 0};
            else if (path[i] && v->at[i].type < 0)
                TRY(follow(j, value, path[i], &v->at[i]));
        }
    }
    TRY(more);
    return tune_json_end(j);
}

static int read_object(struct tune_row_values *v, const struct tune_rows *rows, const struct tune_file_row *row,
                       const char *const *names, int count)
{
    tune_json_free(&v->json);
    tune_json_start(&v->json, rows->path, row->text, row->size, row->line);
    v->json.python = true;
    TRY(find_values(v, names, count));
    for (int i = 0; i < count; i++) {
        if (v->at[i].type != TUNE_JSON_STRING)
            continue;
        v->json.at = v->at[i].text.data;
        TRY(tune_json_string(&v->json, &v->at[i].text));
        TRY(keep(v, v->at[i].text, &v->at[i].offset));
    }
    for (int i = 0; i < count; i++)
        if (v->at[i].type == TUNE_JSON_STRING)
            v->at[i].text.data = v->bytes + v->at[i].offset;
    return 0;
}

static int read_record(struct tune_row_values *v, const struct tune_rows *rows, const struct tune_columns *columns,
                       const struct tune_file_row *row, const char *const *names, int count)
{
    const char *const *fields;
    int have;
    tune_csv_free(v->csv);
    if (!(v->csv = open_record(rows, row)))
        return -1;
    TRY(tune_csv_row(v->csv, &fields, &have));
    if (have != columns->count)
        return tune_error_set("%s:%lld: a record of %d fields, the first line names %d columns (%s "
                              "too many or too few, or a quote?)", rows->path, (long long)row->line,
                              have, columns->count, tune_csv_separator_name(rows->separator));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < have; k++)
            if (!strcmp(columns->names[k], names[i]))
                v->at[i] = (struct tune_field){TUNE_JSON_STRING, {fields[k], strlen(fields[k])}, 0};
    return 0;
}

int tune_row_values_read(struct tune_row_values *v, const struct tune_rows *rows, const struct tune_columns *columns,
                     const struct tune_file_row *row, const char *const *names, int count)
{
    v->used = 0;
    for (int i = 0; i < count; i++)
        v->at[i] = (struct tune_field){.type = -1};
    return tune_rows_are_csv(rows) ? read_record(v, rows, columns, row, names, count)
                                   : read_object(v, rows, row, names, count);
}

bool tune_field_number(const struct tune_field *f, double *value)
{
    char text[64], *end;
    if (f->type == TUNE_JSON_BOOL) {
        *value = *f->text.data == 't';
        return true;
    }
    if ((f->type != TUNE_JSON_NUMBER && f->type != TUNE_JSON_STRING) || f->text.size == 0 || f->text.size >= sizeof text)
        return false;
    memcpy(text, f->text.data, f->text.size);
    text[f->text.size] = 0;
    *value = strtod(text, &end);
    return strlen(text) == f->text.size && strcspn(text, "xXnN \t\r\n") == f->text.size && !*end && isfinite(*value);
}

void tune_row_values_free(struct tune_row_values *v)
{
    tune_json_free(&v->json);
    tune_csv_free(v->csv);
    free(v->bytes);
    memset(v, 0, sizeof *v);
}
