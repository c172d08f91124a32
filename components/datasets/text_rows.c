/* text_rows.c - the text of a row: a field of JSON, a column of CSV, a paragraph. */
#include "datasets/text_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/suggest.h"

int tune_text_rows_check(const struct tune_text_rows *t, const struct tune_file_row *row)
{
    if (row->size <= TUNE_ROW_LIMIT)
        return 0;
    return tune_rows_too_long(t->rows, row);
}

struct fields {
    char names[512]; /* "a, b, c", cut if too long */
    char chosen[256];
    char nested[256]; /* path to an answer in the first list of objects: "answers.0.text"; "": none */
    char messages[256]; /* path to the first list of messages: "conversation.messages"; "": none */
    bool from_value;  /* their keys are from and value, not role and content */
    char texts[2][256]; /* the first fields that hold strings, ids and the like only if there are no others */
    int count;        /* number of them */
    char objects[256]; /* path to the first list of objects: "questions"; "": none */
    int strings;      /* number of fields that hold strings */
    int rank;         /* rank of the chosen field: 3 text, 2 output, 1 content, 0 another string */
};

enum { DEEPEST = 8 }; /* objects and lists in each other that are searched */

static int read_list(struct tune_json *j, const char *name, int depth, struct fields *f);
static int read_object(struct tune_json *j, const char *name, int depth, struct fields *f);

/* Read the value of a key in what stands at this path: its lists, at any depth. */
static int read_inside(struct tune_json *j, const char *path, const char *key, int depth, struct fields *f)
{
    char inner[256];
    enum tune_json_type type = tune_json_peek(j);
    if (depth >= DEEPEST || snprintf(inner, sizeof inner, "%s.%.100s", path, key) >= (int)sizeof inner)
        return tune_json_skip(j);
    return type == TUNE_JSON_ARRAY    ? read_list(j, inner, depth + 1, f)
           : type == TUNE_JSON_OBJECT ? read_object(j, inner, depth + 1, f)
                                      : tune_json_skip(j);
}

/* Read the array at j, the value of `name`. The first object of a list of objects says whether they
 * are messages, or which of its strings may be an answer. */
static int read_list(struct tune_json *j, const char *name, int depth, struct fields *f)
{
    static const char *const known[] = {"content", "text", "answer", "output"};
    struct tune_text key;
    char item[256];
    int more, best = 0, role = 0, from = 0;
    TRY(tune_json_array(j));
    for (bool first = true; (more = tune_json_item(j)) == 1; first = false) {
        if (!first || *f->nested || *f->messages || tune_json_peek(j) != TUNE_JSON_OBJECT ||
            snprintf(item, sizeof item, "%s.0", name) >= (int)sizeof item) {
            TRY(tune_json_skip(j));
            continue;
        }
        if (!*f->objects)
            snprintf(f->objects, sizeof f->objects, "%s", name);
        TRY(tune_json_object(j));
        while ((more = tune_json_key(j, &key)) == 1) {
            int rank = 0;
            char inner[101];
            for (int k = 0; k < 4; k++)
                if (tune_text_equal(key, known[k]))
                    rank = k + 1;
            role += tune_text_equal(key, "role") || tune_text_equal(key, "content");
            from += tune_text_equal(key, "from") || tune_text_equal(key, "value");
            if (rank > best && tune_json_peek(j) == TUNE_JSON_STRING) {
                best = rank;
                snprintf(f->nested, sizeof f->nested, "%s.0.%.100s", name, key.data);
            }
            snprintf(inner, sizeof inner, "%s", key.data); /* the key lies in the reader's buffer */
            TRY(read_inside(j, item, inner, depth, f));
        }
        TRY(more);
        if (role == 2 || from == 2) {
            f->from_value = from == 2;
            snprintf(f->messages, sizeof f->messages, "%s", name);
            *f->nested = 0;
        }
    }
    tune_blank_controls(f->nested);
    tune_blank_controls(f->messages);
    return more;
}

/* Read the object at j, the value of `name`, and its lists. */
static int read_object(struct tune_json *j, const char *name, int depth, struct fields *f)
{
    struct tune_text key;
    char inner[101];
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        snprintf(inner, sizeof inner, "%s", key.data);
        TRY(read_inside(j, name, inner, depth, f));
    }
    return more;
}

/* True for names of columns that are no text to train on. */
static bool is_label(const char *name)
{
    static const char *const labels[] = {"id", "_id", "uuid", "uid", "guid", "sha", "sha1", "sha256", "md5", "hash", "name", "version", "type",
                                         "category", "source", "url", "lang", "language", "date", "split", "timestamp"};
    size_t n = strlen(name);
    return tune_name_find(labels, (int)(sizeof labels / sizeof *labels), name) >= 0 || (n > 3 && !strcmp(name + n - 3, "_id"));
}

/* Keep the name of a field that holds a string. */
static void note_string(struct fields *f, const char *name)
{
    bool label = is_label(name);
    f->strings++;
    if (label && f->count > 0)
        return;
    if (!label && f->count == 1 && is_label(f->texts[0]))
        f->count = 0;
    if (f->count < 2)
        snprintf(f->texts[f->count++], sizeof f->texts[0], "%s", name);
}

/* Read the fields of the object at j; values are skipped. */
static int read_fields(struct tune_json *j, struct fields *f)
{
    static const char *const known[] = {"content", "output", "text"};
    struct tune_text key;
    int more;
    *f = (struct fields){.rank = -1};
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        int rank = -1;
        tune_append_item(f->names, sizeof f->names, "%.100s", key.data);
        if (tune_json_peek(j) == TUNE_JSON_STRING) {
            note_string(f, key.data);
            rank = 0;
        }
        for (int k = 0; k < 3; k++)
            if (tune_text_equal(key, known[k]))
                rank = k + 1; /* whatever its type: a null "text" is an error of its row */
        if (rank > f->rank && key.size < sizeof f->chosen && strlen(key.data) == key.size) {
            f->rank = rank;
            memcpy(f->chosen, key.data, key.size + 1);
        }
        char name[101];
        snprintf(name, sizeof name, "%s", key.data);
        enum tune_json_type type = tune_json_peek(j);
        TRY(type == TUNE_JSON_ARRAY    ? read_list(j, name, 0, f)
            : type == TUNE_JSON_OBJECT ? read_object(j, name, 0, f)
                                       : tune_json_skip(j));
    }
    TRY(more);
    tune_blank_controls(f->names); /* no escape sequences from a file may reach the terminal */
    return tune_json_end(j);
}

/* Read the dataset's field into *text, valid until the reader is freed. The whole row is
 * checked. */
static int read_field(const struct tune_text_rows *t, const struct tune_file_row *row, struct tune_json *j,
                      struct tune_text *text)
{
    static const char *const types[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
    struct tune_text key;
    const char *value = NULL;
    int more;
    tune_json_start(j, t->rows->path, row->text, row->size, row->line);
    j->python = true;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, t->field)) {
            int type = tune_json_peek(j);
            TRY(type);
            if (value)
                return tune_json_fail(j, "the field \"%s\" stands here a second time", t->field);
            if (type != TUNE_JSON_STRING)
                return tune_json_fail(j, "the field \"%s\" is %s, expected a string", t->field, types[type]);
            value = j->at;
        }
        TRY(tune_json_skip(j));
    }
    TRY(more);
    TRY(tune_json_end(j));
    if (value) {
        j->at = value; /* read it now, because skipping the rest used the reader's buffer */
        return tune_json_string(j, text);
    }
    struct fields f;
    tune_json_free(j);
    tune_json_start(j, t->rows->path, row->text, row->size, row->line);
    j->python = true;
    TRY(read_fields(j, &f));
    j->at = row->text;
    return tune_json_fail(j, "no field \"%s\"; this row has: %s (choose with `text_field`)", t->field,
                          f.names[0] ? f.names : "none");
}

/* Choose the field from a row. */
int tune_text_rows_choose(struct tune_text_rows *t, const struct tune_file_row *row)
{
    struct tune_json j;
    struct fields f;
    TRY(tune_text_rows_check(t, row));
    tune_json_start(&j, t->rows->path, row->text, row->size, row->line);
    j.python = true;
    int status = read_fields(&j, &f);
    tune_json_free(&j);
    TRY(status);
    if (f.rank < 0 || (f.rank == 0 && (f.strings > 1 || *f.objects))) {
        char type[1024];
        if (*f.messages)
            tune_columns_suggest_messages(type, sizeof type, f.messages, f.from_value);
        else
            tune_columns_suggest(type, sizeof type, t->columns, (const char *const[]){f.texts[0], f.texts[1]},
                                 f.count > 0 && is_label(f.texts[0]) ? 0 : f.count, f.nested);
        if (t->rows->count == 1 && *f.objects && !*f.messages)
            tune_append(type, sizeof type, "; if its list \"%s\" holds the rows, let the file be that list alone: [ {...}, {...} ]",
                        f.objects);
        tune_blank_controls(type);
        return tune_error_usage("%s:%lld: cannot tell which field to train on; this row has: %s; %s",
                                t->rows->path, (long long)row->line, f.names[0] ? f.names : "none", type);
    }
    t->field = strdup(f.chosen);
    return t->field ? 0 : tune_error_no_memory("a field name");
}

/* Read a paragraph: checked as UTF-8, with lines that end in LF. */
static int read_paragraph(const struct tune_text_rows *t, const struct tune_file_row *row, struct tune_text_row *s,
                          struct tune_text *text)
{
    size_t bad;
    if (!tune_utf8_valid(row->text, row->size, &bad)) {
        int64_t line = row->line;
        const char *begin = row->text;
        for (const char *p = row->text; p < row->text + bad; p++)
            if (*p == '\n') {
                line++;
                begin = p + 1;
            }
        return tune_error_set("%s:%lld:%lld: invalid UTF-8 (byte 0x%02x)%s", t->rows->path,
                              (long long)line, (long long)(row->text + bad - begin) + 1,
                              (unsigned char)row->text[bad], tune_utf8_advice(row->text, row->size));
    }
    *text = (struct tune_text){row->text, row->size};
    if (!memmem(row->text, row->size, "\r\n", 2))
        return 0;
    s->plain = tune_zeroed(row->size, 1, "a paragraph");
    if (!s->plain)
        return -1;
    size_t n = 0;
    for (size_t i = 0; i < row->size; i++)
        if (row->text[i] != '\r' || i + 1 == row->size || row->text[i + 1] != '\n')
            s->plain[n++] = row->text[i];
    *text = (struct tune_text){s->plain, n};
    return 0;
}

/* Read the field of a record. */
static int read_csv_field(const struct tune_text_rows *t, const struct tune_file_row *row, struct tune_text_row *s,
                          struct tune_text *text)
{
    const char *names[] = {t->field};
    TRY(tune_row_values_read(&s->values, t->rows, t->columns, row, names, 1));
    *text = s->values.at[0].text;
    return 0;
}

int tune_text_rows_get(const struct tune_text_rows *t, const struct tune_file_row *row, struct tune_text_row *s,
                     struct tune_text *text)
{
    TRY(tune_text_rows_check(t, row));
    if (t->rows->format == TUNE_DATASET_TEXT)
        return read_paragraph(t, row, s, text);
    if (tune_rows_are_csv(t->rows))
        return read_csv_field(t, row, s, text);
    return read_field(t, row, &s->json, text);
}

/* Choose the column of CSV: the same names as for JSON, else the only one. */
int tune_text_rows_choose_column(struct tune_text_rows *t)
{
    static const char *const known[] = {"text", "output", "content"};
    char list[512];
    const char *found = t->columns->count == 1 ? t->columns->names[0] : NULL;
    for (int k = 2; k >= 0 && !t->field; k--)
        if (tune_columns_has(t->columns, known[k]))
            found = known[k];
    if (t->field && tune_columns_has(t->columns, t->field))
        return 0;
    if (t->field)
        tune_error_usage("%s: no column \"%s\"; it has: %s (choose with `text_field`)",
                         t->rows->path, t->field, tune_columns_list(t->columns, list, sizeof list));
    else if (!found) {
        char type[1024];
        tune_columns_suggest(type, sizeof type, t->columns, (const char *const *)t->columns->names, t->columns->count, "");
        tune_blank_controls(type);
        tune_error_usage("%s: cannot tell which column to train on; it has: %s; %s", t->rows->path,
                         tune_columns_list(t->columns, list, sizeof list), type);
    } else
        return (t->field = strdup(found)) ? 0 : tune_error_no_memory("a field name");
    return -1;
}

void tune_text_row_free(struct tune_text_row *s)
{
    tune_json_free(&s->json);
    tune_row_values_free(&s->values);
    free(s->plain);
    memset(s, 0, sizeof *s);
}
