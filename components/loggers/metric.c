/* metric.c - numbers and lines that a recipe adds to those of the logger. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "core/print.h"
#include "core/try.h"
#include "loggers/state.h"

enum { MOST = 48 }; /* the most per step; together with the logger's own numbers they stay below
                     * TUNE_METRICS_MOST */

static const char allowed[] = "letters, digits and _ - . /";

static int check(const char *name, double value)
{
    size_t n = strlen(name), i = 0;
    while (i < n && (isalnum((unsigned char)name[i]) || strchr("_-./", name[i])))
        i++;
    if (n == 0 || n >= sizeof ((struct tune_own_metric *)0)->name || i < n) {
        tune_error_set("metric \"%.60s\": expected a name of 1 to 47 characters, %s", name, allowed);
        return -1;
    }
    if (tune_writers_column(name)) {
        tune_error_set("metric \"%s\": the logger writes a number of that name itself; take another name", name);
        return -1;
    }
    if (isfinite(value))
        return 0;
    tune_error_set("metric \"%s\": expected a finite number, got %f; leave it out in this step", name, value);
    return -1;
}

/* Find the number of that name for the current step; NULL: none yet. *count: the numbers of this
 * step. */
static struct tune_own_metric *find(struct tune_logger *log, const char *name, int *count)
{
    *count = 0;
    for (int i = 0; i < log->held_count; i++) {
        struct tune_own_metric *m = &log->metrics_held[i];
        *count += m->step == 0;
        if (m->step == 0 && !strcmp(m->name, name))
            return m;
    }
    return NULL;
}

static int make_room(struct tune_logger *log)
{
    if (log->held_count < log->held_room)
        return 0;
    int room = log->held_room ? 2 * log->held_room : 16;
    struct tune_own_metric *more = realloc(log->metrics_held, (size_t)room * sizeof *more);
    if (!more)
        return tune_logger_no_memory();
    log->metrics_held = more;
    log->held_room = room;
    return 0;
}

int tune_logger_metric(struct tune_logger *log, const char *name, double value)
{
    int count;
    TRY(check(name, value));
    struct tune_own_metric *m = find(log, name, &count);
    if (!m) {
        if (count == MOST) {
            tune_error_set("metric \"%s\": a step has room for %d of them", name, MOST);
            return -1;
        }
        TRY(make_room(log));
        m = &log->metrics_held[log->held_count++];
        *m = (struct tune_own_metric){.step = 0};
        memcpy(m->name, name, strlen(name) + 1);
    }
    m->value = value;
    return 0;
}

void tune_logger_stamp_metrics(struct tune_logger *log, int64_t step)
{
    for (int i = 0; i < log->held_count; i++)
        if (log->metrics_held[i].step == 0)
            log->metrics_held[i].step = step;
}

bool tune_logger_put_metrics(struct tune_logger *log, struct cJSON *line, int64_t step)
{
    int kept = 0, shown = 0;
    bool good = true;
    *log->own = 0;
    for (int i = 0; i < log->held_count; i++) {
        const struct tune_own_metric *m = &log->metrics_held[i];
        if (m->step == step) {
            if (shown++ < 4) /* the metrics have all */
                tune_append(log->own, sizeof log->own, "%s%s %.4g", *log->own ? " | " : "", m->name, m->value);
            good = good && tune_cjson_put_number(line, m->name, m->value);
        } else if (m->step == 0 || m->step > step)
            log->metrics_held[kept++] = *m;
    }
    log->held_count = kept;
    return good;
}

int tune_logger_say(struct tune_logger *log, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return tune_logger_no_memory();
    int status = log->options.quiet ? 0 : tune_line_print(&log->line, "%s", text);
    free(text);
    return status;
}
