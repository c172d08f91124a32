/* rows_json.c - the walks over an array of JSON, and over objects that go over several lines. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/rows_walk.h"
#include "files/json.h"

/* p is after an opening quote. Returns the position after the closing one, or NULL. */
static const char *skip_string(const char *p, const char *end)
{
    for (;;) {
        const char *quote = tune_rows_find(p, end, '"'), *slash = quote;
        if (quote == end)
            return NULL;
        while (slash > p && slash[-1] == '\\')
            slash--;
        if ((quote - slash) % 2 == 0)
            return quote + 1;
        p = quote + 1; /* it was an escaped quote */
    }
}

/* The ',', ']' or '}' that ends the value at p, or NULL. */
static const char *value_end(const char *p, const char *end)
{
    int64_t depth = 0;
    while (p && p < end) {
        switch (*p) {
        case '"':
            p = skip_string(p + 1, end);
            continue;
        case '{': case '[':
            depth++;
            break;
        case '}': case ']':
            if (depth == 0)
                return p;
            depth--;
            break;
        case ',':
            if (depth == 0)
                return p;
            break;
        default:
            break;
        }
        p++;
    }
    return NULL;
}

/* *at is at the first byte of an element, or at the end of the file after the array. */
int tune_rows_next_element(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *begin = rows->file.data + at->offset, *end = tune_rows_end(rows);
    if (begin == end)
        return 0;
    const char *stop = value_end(begin, end);
    if (!stop || *stop == '}')
        return tune_rows_fail(rows, at, begin, "this element of the array never ends: a quote or bracket too many or too few; "
                                          "expected [ {...}, {...} ]");
    if (stop == begin)
        return tune_rows_fail(rows, at, begin, "an element of the array is missing here (a comma too many?)");
    const char *last = stop, *next = stop + 1;
    while (last > begin && tune_rows_space(last[-1]))
        last--;
    while (next < end && tune_rows_space(*next))
        next++;
    if (*stop == ']' && next < end)
        return tune_rows_fail(rows, at, next, "something follows the array's closing bracket, expected the end of the file");
    if (*stop == ',' && next == end)
        return tune_rows_fail(rows, at, stop, "the file ends inside its array: no closing bracket");
    *row = (struct tune_file_row){begin, (size_t)(last - begin), at->line};
    *at = tune_rows_place(rows, next, at->line + tune_rows_lines(begin, next));
    return 1;
}

/* ---- objects over several lines ---- */

/* The end of the object at p, behind its bracket. NULL: it has none, or the text before it is no
 * JSON by its brackets and quotes. So a broken line of JSONL never reaches far into the next. */
static const char *object_end(const char *p, const char *end)
{
    int64_t depth = 0;
    char last = 0; /* the last character before p that is no space */
    for (; p < end; p++) {
        if (tune_rows_space(*p))
            continue;
        if (*p == '"') {
            const char *close = skip_string(p + 1, end);
            if (!close || tune_rows_find(p, close, '\n') < close)
                return NULL;
            p = close - 1;
        } else if (*p == '{' || *p == '[') {
            if (depth++ > 0 && last != ':' && last != ',' && last != '[')
                return NULL;
        } else if ((*p == '}' || *p == ']') && --depth == 0) {
            return p + 1;
        }
        last = *p;
    }
    return NULL;
}

int tune_rows_next_object(const struct tune_rows *rows, struct tune_row_place *at, struct tune_file_row *row)
{
    const char *begin = rows->file.data + at->offset, *end = tune_rows_end(rows), *p = tune_rows_skip(begin, end);
    if (p == end)
        return 0;
    const char *stop = *p == '{' ? object_end(p, end) : NULL;
    if (!stop)
        return tune_rows_fail(rows, at, p, *p == '{' ? "this object never ends: a quote or bracket too many or too few"
                              : "expected the next object: the first one goes on over several lines, so rows are objects one "
                                "after the other, without anything between them");
    int64_t line = at->line + tune_rows_lines(begin, p);
    *row = (struct tune_file_row){p, (size_t)(stop - p), line};
    *at = tune_rows_place(rows, stop, line + tune_rows_lines(p, stop));
    return 1;
}

/* ---- rows as a list in an object ---- */

static bool is_one_of(struct tune_text key, const char *const *names)
{
    while (*names && !tune_text_equal(key, *names))
        names++;
    return *names != NULL;
}

/* Names under which files keep their rows, the first of them first. */
static const char *const lists[] = {"train", "data", "rows", "examples", "items", "records", "samples", "dataset", "entries",
                                    NULL};

/* Texts that say something of a file. An object with any other text is a row itself. */
static const char *const facts[] = {"version", "name", "description", "source", "license", "date", "created", "url", "language",
                                    "author", "split", NULL};

/* True for a list of objects that are no messages. list: its opening bracket. */
static bool is_list_of_rows(const char *list, const char *end)
{
    static const char *const message[] = {"role", "from", NULL};
    const char *p = tune_rows_skip(list + 1, end), *stop = p < end && *p == '{' ? object_end(p, end) : NULL;
    struct tune_json j;
    struct tune_text key;
    bool rows = stop != NULL;
    if (!rows)
        return false;
    tune_json_start(&j, "", p, (size_t)(stop - p), 1);
    j.python = true;
    if (tune_json_object(&j) == 0)
        while (tune_json_key(&j, &key) == 1 && (rows = rows && !is_one_of(key, message)) && tune_json_skip(&j) == 0)
            ;
    tune_json_free(&j);
    tune_error_clear(); /* a broken row is met again when it is read */
    return rows;
}

/* Columns of a row that is a conversation. */
static const char *const conversations[] = {"messages", "conversations", "prompt", "chosen", NULL};

/* Find the rows' list in the object from p to stop. NULL: it has none, or is a row itself. */
static const char *find_list(struct tune_rows *rows, const char *p, const char *stop)
{
    struct tune_json j;
    struct tune_text key;
    const char *list = NULL, *next;
    size_t best = sizeof lists / sizeof *lists;
    tune_json_start(&j, "", p, (size_t)(stop - p), 1);
    bool row = tune_json_object(&j) < 0;
    while (!row && tune_json_key(&j, &key) == 1) {
        const char *begin = tune_rows_skip(j.at, stop);
        row = (begin < stop && *begin == '"' && !is_one_of(key, facts)) || is_one_of(key, conversations);
        if (!(next = value_end(begin, stop)))
            break;
        const char *end = next; /* of the value, without space behind it */
        while (end > begin && tune_rows_space(end[-1]))
            end--;
        bool array = end - begin >= 2 && *begin == '[' && end[-1] == ']';
        for (size_t i = 0; i < best && lists[i] && array; i++)
            if (tune_text_equal(key, lists[i]) && is_list_of_rows(begin, end)) {
                best = i;
                list = begin;
                rows->list_end = (size_t)(end - rows->file.data);
            }
        j.at = next;
    }
    tune_json_free(&j);
    tune_error_clear();
    if (row || !list)
        rows->list_end = 0;
    else
        snprintf(rows->list, sizeof rows->list, "%s", lists[best]);
    return row ? NULL : list;
}

const char *tune_rows_settle_object(struct tune_rows *rows, const char *p)
{
    const char *end = tune_rows_end(rows), *stop = object_end(p, end);
    if (!stop)
        return NULL;
    const char *rest = tune_rows_skip(stop, end);
    rows->objects = tune_rows_find(p, stop, '\n') < stop;
    return rest == end ? find_list(rows, p, stop) : NULL;
}
