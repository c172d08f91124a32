/* metrics.c - lines of metrics.jsonl, read strictly: a killed run may have left half a line. */
#include "runs/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "files/file.h"
#include "runs/run_folder.h"

static const size_t MOST_BYTES = (size_t)1 << 31;

/* Readers add these numbers up as int64, or print them as hours. With this bound, the sum over a
 * file of MOST_BYTES (at most 2^27 lines) stays below 2^63. */
static bool is_beyond(const struct tune_metric *m)
{
    static const char *const names[] = {"rows", "tokens", "padded_tokens", "elapsed_s"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*m->name == *names[i] && !strcmp(m->name, names[i]))
            return !(m->value >= 0 && m->value < TUNE_METRICS_BEYOND);
    return false;
}

static bool is_whole(double value)
{
    return value >= 0 && value < 0x1p53 && value == floor(value);
}

/* Read the next number and its spelling. */
static int take_number(struct tune_json *j, struct tune_metric *m)
{
    const char *from = j->at;
    TRY(tune_json_double(j, &m->value));
    while (from < j->at && strchr(" \t\r\n", *from))
        from++;
    m->text = (struct tune_text){from, (size_t)(j->at - from)};
    if (!isfinite(m->value))
        return tune_json_fail(j, "%.40s is no finite number", m->name);
    if (is_beyond(m))
        return tune_json_fail(j, "\"%s\" is %.*s, expected 0 to %.0f; correct the line or remove the run", m->name,
                              m->text.size < 40 ? (int)m->text.size : 40, m->text.data, TUNE_METRICS_BEYOND - 1);
    return 0;
}

static int take_members(struct tune_json *j, struct tune_metric *metrics, int64_t *step, int *others)
{
    struct tune_text key;
    int more, n = 0;
    bool found = false;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        enum tune_json_type type = tune_json_peek(j);
        if (type == TUNE_JSON_ERROR)
            return -1;
        if (type != TUNE_JSON_NUMBER) {
            TRY(tune_json_skip(j));
            ++*others;
            continue;
        }
        if (n == TUNE_METRICS_MOST || key.size >= sizeof metrics->name || strlen(key.data) != key.size)
            return tune_json_fail(j, n == TUNE_METRICS_MOST ? "more than %d numbers in one line"
                                                            : "a name of more than %d bytes, or with a NUL",
                                  n == TUNE_METRICS_MOST ? TUNE_METRICS_MOST : (int)sizeof metrics->name - 1);
        struct tune_metric *m = &metrics[n];
        memcpy(m->name, key.data, key.size + 1);
        for (int i = 0; i < n; i++)
            if (*metrics[i].name == *m->name && !strcmp(metrics[i].name, m->name))
                return tune_json_fail(j, "\"%s\" stands there twice", m->name);
        TRY(take_number(j, m));
        n++;
        if (strcmp(m->name, "step"))
            continue;
        if (!is_whole(m->value))
            return tune_json_fail(j, "\"step\" is no whole number");
        *step = (int64_t)m->value;
        found = true;
    }
    TRY(more);
    TRY(tune_json_end(j));
    return found ? n : tune_json_fail(j, "no \"step\" in this line");
}

/* Read a line that has the names of the line before, in their order, and only numbers, spelled as a
 * logger does. False: it is another line, or a bad one; nothing of row is valid but the names. */
static bool take_same_names(struct tune_metrics_row *row)
{
    const char *at = row->text, *end = at + row->size;
    for (int i = 0; i < row->count; i++) {
        struct tune_metric *m = &row->metrics[i];
        size_t n = strlen(m->name);
        if ((size_t)(end - at) < n + 4 || at[0] != (i > 0 ? ',' : '{') || at[1] != '"' || memcmp(at + 2, m->name, n) != 0 ||
            at[n + 2] != '"' || at[n + 3] != ':')
            return false;
        at += n + 4;
        m->text = (struct tune_text){at, tune_json_number(at, end, &m->value)};
        if (m->text.size == 0 || is_beyond(m))
            return false;
        at += m->text.size;
        if (*m->name != 's' || strcmp(m->name, "step"))
            continue;
        if (!is_whole(m->value))
            return false;
        row->step = (int64_t)m->value;
    }
    return end - at == 1 && *at == '}';
}

int tune_metrics_line(struct tune_metrics_row *row)
{
    struct tune_json j;
    if (row->plain && take_same_names(row))
        return 0;
    tune_json_start(&j, row->path, row->text, row->size, row->line);
    row->others = 0;
    row->count = take_members(&j, row->metrics, &row->step, &row->others);
    tune_json_free(&j);
    row->plain = row->count > 0 && row->others == 0 && !memchr(row->text, '\\', row->size);
    return row->count < 0 ? -1 : 0;
}

const struct tune_metric *tune_metrics_find(const struct tune_metrics_row *row, const char *name)
{
    for (int i = 0; i < row->count; i++)
        if (!strcmp(row->metrics[i].name, name))
            return &row->metrics[i];
    return NULL;
}

/* Copy the open file into *text, from the last line taken to the end; *size is its length. It is a
 * copy because reading a mapped file that is cut short ends the program. */
static int load_text(int fd, const struct tune_metrics_position *at, const char *path, char **text,
                size_t *size)
{
    size_t from = (size_t)at->bytes - at->last_size;
    if ((*size -= from) > MOST_BYTES) {
        tune_error_set("%s: %zu bytes to read; expected at most %zu", path, *size, MOST_BYTES);
        return -1;
    }
    *text = malloc(*size + 1);
    if (!*text) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while reading %s", path);
        return -1;
    }
    return tune_file_read_at(fd, path, from, *text, *size);
}

/* True if the open file is the file that `at` points into, and it has not become shorter. */
static bool is_same(int fd, struct tune_metrics_position *at)
{
    struct stat st;
    bool there = fstat(fd, &st) == 0 && st.st_size >= at->bytes;
    bool same = at->bytes == 0 || (st.st_dev == at->device && st.st_ino == at->file);
    at->device = st.st_dev;
    at->file = st.st_ino;
    return there && same;
}

/* Give the whole lines in text to `take`; count the lines and bytes that remain. */
static int give_lines(struct tune_metrics_position *at, const char *path, const char *text, const char *end,
                int (*take)(void *context, const struct tune_metrics_row *row), void *context)
{
    struct tune_metrics_row row = {.path = path};
    const char *newline;
    int answer = TUNE_METRICS_ON;
    at->left = 0;
    for (; (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1) {
        at->left += answer != TUNE_METRICS_ON;
        if (answer != TUNE_METRICS_ON)
            continue;
        row.line = at->lines + 1;
        row.text = text;
        row.size = (size_t)(newline - text);
        TRY(tune_metrics_line(&row));
        answer = take(context, &row);
        TRY(answer);
        at->left += answer == TUNE_METRICS_BEFORE;
        if (answer == TUNE_METRICS_BEFORE)
            continue;
        at->lines++;
        at->last_size = row.size + 1;
        at->bytes += (int64_t)at->last_size;
    }
    at->torn = end - text;
    return 0;
}

int tune_metrics_read(struct tune_metrics_position *at, const char *folder,
                      int (*take)(void *context, const struct tune_metrics_row *row), void *context)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    size_t size, skip = at->last_size, from = (size_t)at->bytes - skip;
    TRY(tune_path(path, "%s/" TUNE_RUN_METRICS, folder));
    int fd = tune_file_open_within(path, at->root, &size);
    TRY(fd);
    bool same = is_same(fd, at);
    int status = same ? load_text(fd, at, path, &text, &size) : 0;
    /* check again, because the file may have been cut while it was read */
    same = same && is_same(fd, at);
    if (same && status == 0 && skip > 0)
        same = tune_hash64(text, skip, 0) == at->last_hash;
    close(fd);
    if (same && status == 0) {
        status = give_lines(at, path, text + skip, text + size, take, context);
        at->last_hash = tune_hash64(text + ((size_t)at->bytes - at->last_size - from), at->last_size, 0);
    }
    free(text);
    if (same)
        return status;
    tune_error_clear();
    *at = (struct tune_metrics_position){.root = at->root};
    return 1;
}
