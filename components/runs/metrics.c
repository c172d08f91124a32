/* metrics.c - lines of metrics.jsonl, read strictly: what a killed run left may be half a line. */
#include "runs/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"

/* True for values too large to sum. Readers add these as integers or print them as hours. Sums over
 * the largest file (2^31 bytes, 2^27 lines) must stay below 2^63. */
static bool is_beyond(const struct tune_metric *m)
{
    static const char *const names[] = {"rows", "tokens", "padded_tokens", "elapsed_s"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(m->name, names[i]))
            return !(m->value >= 0 && m->value < TUNE_METRICS_BEYOND);
    return false;
}

/* The number that comes next, and its spelling. */
static int take_number(struct tune_json *j, struct tune_metric *m, bool *whole)
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
    *whole = m->value >= 0 && m->value < 0x1p53 && m->value == floor(m->value);
    return 0;
}

static int take_members(struct tune_json *j, struct tune_metric *metrics, int64_t *step)
{
    struct tune_text key;
    int more, n = 0;
    bool whole = false, found = false;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        enum tune_json_type type = tune_json_peek(j);
        if (type == TUNE_JSON_ERROR)
            return -1;
        if (type != TUNE_JSON_NUMBER) {
            TRY(tune_json_skip(j));
            continue;
        }
        if (n == TUNE_METRICS_MOST || key.size >= sizeof metrics->name || strlen(key.data) != key.size)
            return tune_json_fail(j, n == TUNE_METRICS_MOST ? "more than %d numbers in one line"
                                                            : "a name of more than %d bytes, or with a NUL",
                                  n == TUNE_METRICS_MOST ? TUNE_METRICS_MOST : (int)sizeof metrics->name - 1);
        struct tune_metric *m = &metrics[n];
        memcpy(m->name, key.data, key.size + 1);
        for (int i = 0; i < n; i++)
            if (!strcmp(metrics[i].name, m->name))
                return tune_json_fail(j, "\"%s\" stands there twice", m->name);
        TRY(take_number(j, m, &whole));
        n++;
        if (strcmp(m->name, "step"))
            continue;
        if (!whole)
            return tune_json_fail(j, "\"step\" is no whole number");
        *step = (int64_t)m->value;
        found = true;
    }
    TRY(more);
    TRY(tune_json_end(j));
    return found ? n : tune_json_fail(j, "no \"step\" in this line");
}

int tune_metrics_line(struct tune_metric metrics[TUNE_METRICS_MOST], int64_t *step, const char *text, size_t size,
                      const char *name, int64_t line_number)
{
    struct tune_json j;
    tune_json_start(&j, name, text, size, line_number);
    int n = take_members(&j, metrics, step);
    tune_json_free(&j);
    return n;
}

int tune_metrics_each(const char *folder, int (*take)(void *context, const char *text, size_t size, int64_t line_number),
                      void *context, size_t *torn)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    TRY(tune_path(path, "%s/metrics.jsonl", folder));
    TRY(tune_file_read(path, (size_t)1 << 31, &text, &size)); /* a copy: reading a mapping of a file that is cut ends the program */
    const char *at = text, *end = text + size, *newline;
    int status = 0;
    for (int64_t number = 1; status >= 0 && (newline = memchr(at, '\n', (size_t)(end - at))); number++, at = newline + 1)
        status = take(context, at, (size_t)(newline - at), number);
    if (torn)
        *torn = (size_t)(end - at);
    free(text);
    return status < 0 ? -1 : 0;
}
