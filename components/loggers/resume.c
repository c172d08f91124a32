/* resume.c - going on with a run: what must agree, the lines of metrics.jsonl that stand, and those that do not. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/error.h"
#include "core/try.h"
#include "loggers/run_folder.h"
#include "loggers/state.h"
#include "runs/metrics.h"

enum { RUN_JSON_MAX = 16 << 20 };

int tune_logger_open_run(struct tune_logger *log)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(log->folder, "%s", log->options.folder));
    TRY(tune_path(path, "%s/metrics.jsonl", log->folder));
    log->metrics = fopen(path, "r+e");
    if (!log->metrics) {
        tune_error_set("`resume`: cannot go on with %s: %s: %s", log->folder, path, strerror(errno));
        return -1;
    }
    TRY(tune_run_folder_hold(log->metrics, log->folder));
    TRY(tune_path(path, "%s/run.json", log->folder));
    log->before = tune_cjson_read(path, RUN_JSON_MAX);
    log->waiting = true;
    return log->before ? 0 : -1;
}

int tune_logger_changed(struct tune_logger *log, const char *what, const char *was, const char *now)
{
    if (!log->before)
        return 0;
    if (!log->options.allow_changed) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "`resume`: %s: was %s in that run, is %s now; resume with what it had, or give "
                            "`allow_changed` to go on with what there is", what, was, now);
        return -1;
    }
    cJSON *session = tune_run_json_session(log), *changed = cJSON_GetObjectItemCaseSensitive(session, "changed");
    if (!changed)
        changed = cJSON_AddObjectToObject(session, "changed");
    cJSON *pair = cJSON_CreateObject();
    char name[256];
    snprintf(name, sizeof name, "%s", what);
    if (log->options.spell)
        log->options.spell(log->options.flags, name);
    bool good = tune_cjson_put_text(pair, "was", was) && tune_cjson_put_text(pair, "now", now);
    return tune_cjson_put(changed, name, pair) && good ? 0 : tune_logger_no_memory();
}

/* run.json's member, or the one in it, as a text; the caller frees it. NULL: not there. */
static char *text_of(const cJSON *run, const char *member, const char *inner)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(run, member);
    value = inner ? cJSON_GetObjectItemCaseSensitive(value, inner) : value;
    return !value ? NULL : cJSON_IsString(value) || cJSON_IsRaw(value) ? strdup(value->valuestring) : cJSON_PrintUnformatted(value);
}

int tune_logger_compare(struct tune_logger *log, const char *member, const char *inner, const char *what)
{
    if (!log->before)
        return 0;
    char *was = text_of(log->before, member, inner), *now = text_of(log->run, member, inner);
    int status = was && (!now || strcmp(was, now)) ? tune_logger_changed(log, what, was, now ? now : "none") : 0;
    free(was);
    free(now);
    return status;
}

static const struct {
    const char *inner, *name;
} of_file[] = {{"fingerprint", "fingerprint"}, {"size", "size in bytes"}, {"modified", "time of last change"}};
enum { OF_FILE = sizeof of_file / sizeof *of_file };

int tune_logger_compare_file(struct tune_logger *log, const char *member, const char *option)
{
    char what[192];
    for (int i = 0; i < OF_FILE; i++) {
        snprintf(what, sizeof what, "the file of %s: its %s", option, of_file[i].name);
        TRY(tune_logger_compare(log, member, of_file[i].inner, what));
    }
    return 0;
}

bool tune_logger_data_differs(const struct tune_logger *log)
{
    bool differs = false;
    for (int i = 0; i < OF_FILE && log->before; i++) {
        char *was = text_of(log->before, "data", of_file[i].inner), *now = text_of(log->run, "data", of_file[i].inner);
        differs = differs || (was && (!now || strcmp(was, now)));
        free(was);
        free(now);
    }
    return differs;
}

int tune_logger_data_agrees(struct tune_logger *log, int64_t rows, int agrees)
{
    char text[128];
    if (agrees <= 0)
        return tune_logger_compare_file(log, "data", agrees < 0 ? "`dataset`" : "`dataset`, in rows that the run has read");
    snprintf(text, sizeof text, "the file was changed, but not in the %" PRId64 " rows that the run has read", rows);
    return tune_logger_note(log, "data", text);
}

int tune_logger_warn_of(struct tune_logger *log, const char *member, const char *inner, const char *what)
{
    char text[1024], key[160];
    snprintf(key, sizeof key, "warning: %s", what);
    char *was = text_of(log->before, member, inner), *now = text_of(log->run, member, inner);
    bool differ = was && now && strcmp(was, now);
    snprintf(text, sizeof text, "was \"%.300s\", is \"%.300s\" now; the last digits may not be what they would have been",
             was ? was : "", now ? now : "");
    free(was);
    free(now);
    return differ ? tune_logger_note(log, key, text) : 0;
}

/* ---- the lines of metrics.jsonl ---- */

struct past {
    struct tune_logger *log;
    const struct tune_progress *at;
    size_t keep;       /* bytes of the lines that stand */
    int64_t cut;       /* lines that do not */
    double loss_first, elapsed_s;
};

static double number(const struct tune_metric *m, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(m[i].name, name))
            return m[i].value;
    return 0;
}

static bool has(const struct tune_metric *m, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(m[i].name, name))
            return true;
    return false;
}

static void add_step(struct past *p, const struct tune_metric *m, int n, int64_t step)
{
    struct tune_logger *log = p->log;
    if (log->steps++ == 0)
        log->loss_first = number(m, n, "loss");
    log->loss_last = number(m, n, "loss");
    tune_trend_add(&log->trend, log->loss_last);
    log->last_step = log->written_step = step;
    log->rows += (int64_t)number(m, n, "rows");
    log->tokens += (int64_t)number(m, n, "tokens");
    log->padded_tokens += (int64_t)number(m, n, "padded_tokens");
    log->past_s = number(m, n, "elapsed_s");
}

/* A line stands if it is of a step the checkpoint has done, or of an evaluation it knows. Behind the first that does not,
 * none does: half of what was there may never have reached the disk. */
static int take(void *context, const char *text, size_t size, int64_t line)
{
    struct past *p = context;
    struct tune_metric m[TUNE_METRICS_MOST];
    const struct tune_progress *at = p->at;
    char name[TUNE_PATH_MAX];
    int64_t step = 0;
    bool complete = p->log->last_step >= at->step && p->log->eval_step >= at->eval_step;
    if (p->cut > 0 || complete) {
        p->cut++;
        return 0;
    }
    TRY(tune_path(name, "%s/metrics.jsonl", p->log->folder));
    int n = tune_metrics_line(m, &step, text, size, name, line);
    TRY(n);
    bool evaluation = has(m, n, "eval_loss");
    if (step > at->step || (evaluation && step > at->eval_step)) {
        p->cut++;
        return 0;
    }
    bool evaluated = p->log->evaluated && p->log->eval_step == p->log->last_step;
    bool follows = evaluation ? step == p->log->last_step && !evaluated : step == p->log->last_step + 1;
    if (!follows && !p->log->options.allow_changed) {
        tune_error_set("%s:%" PRId64 ": %sstep %" PRId64 " follows %sstep %" PRId64 "; lines are missing or there twice, and a "
                       "resumed run's figures would be wrong: `allow_changed` goes on all the same", name, line,
                       evaluation ? "the evaluation of " : "", step, evaluated ? "the evaluation of " : "", p->log->last_step);
        return -1;
    }
    if (evaluation) {
        p->log->eval_step = step;
        p->log->evaluated = true;
    } else
        add_step(p, m, n, step);
    p->keep += size + 1;
    return 0;
}

/* Reads what stands into the logger's sums. */
static int read_past(struct past *p)
{
    char was[64], now[64];
    struct tune_logger *log = p->log;
    size_t torn;
    TRY(tune_metrics_each(log->folder, take, p, &torn));
    p->cut += torn > 0;
    bool evaluation = log->last_step >= p->at->step; /* then it is that one that may be missing */
    if (!evaluation || log->eval_step < p->at->eval_step) {
        const char *what = evaluation ? "the evaluation of " : "";
        snprintf(was, sizeof was, "at %sstep %" PRId64 " or later", what, evaluation ? p->at->eval_step : p->at->step);
        snprintf(now, sizeof now, "at %sstep %" PRId64, what, evaluation ? log->eval_step : log->last_step);
        TRY(tune_logger_changed(log, "the end of metrics.jsonl, which the checkpoint is ahead of", was, now));
    }
    return 0;
}

static int cut(struct tune_logger *log, const struct past *p)
{
    if (ftruncate(fileno(log->metrics), (off_t)p->keep) < 0 || fseeko(log->metrics, 0, SEEK_END) < 0) {
        tune_error_set("cannot cut %s/metrics.jsonl to %zu bytes: %s", log->folder, p->keep, strerror(errno));
        return -1;
    }
    return 0;
}

/* recipe.c stays what began the run; another source goes beside it, under the step it begins at. */
static int keep_source(struct tune_logger *log, int64_t step)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    size_t size = 0, limit = (size_t)64 << 20;
    if (!log->options.source)
        return 0;
    TRY(tune_path(path, "%s/recipe.c", log->folder));
    if (tune_file_exists(path))
        TRY(tune_file_read(path, limit, &text, &size));
    bool same = text && size == log->options.source_size && !memcmp(text, log->options.source, size);
    free(text);
    if (same)
        return 0;
    TRY(tune_path(path, "%s/recipe-from-%" PRId64 ".c", log->folder, step));
    TRY(tune_file_write(path, log->options.source, log->options.source_size));
    return tune_logger_note(log, "warning: recipe", "the program's source is not the one that began the run; it is kept beside recipe.c");
}

int tune_logger_resume(struct tune_logger *log, const struct tune_progress *at)
{
    char text[160], path[TUNE_PATH_MAX];
    struct past p = {.log = log, .at = at};
    if (!log->waiting)
        return 0;
    TRY(read_past(&p));
    TRY(tune_path(path, "%s/report.json", log->folder));
    TRY(cut(log, &p));
    log->waiting = false;
    TRY(tune_file_remove_leftovers(log->folder));
    TRY(tune_file_remove_folder(path)); /* of a state of the run that is no more */
    TRY(keep_source(log, at->step));
    if (!tune_cjson_put_whole(tune_run_json_session(log), "from_step", at->step))
        return tune_logger_no_memory();
    int n = snprintf(text, sizeof text, "behind step %" PRId64, at->step);
    if (p.cut > 0)
        snprintf(text + n, sizeof text - (size_t)n, "; %" PRId64 " later lines of metrics.jsonl are cut off", p.cut);
    TRY(tune_logger_header(log, "resumed", text));
    TRY(tune_run_json_write(log));
    log->writers = tune_writers_open(log->folder, log->options.writers, log->last_step);
    return log->writers ? 0 : -1;
}

int tune_logger_sync(struct tune_logger *log)
{
    TRY(tune_logger_held(log));
    if (fdatasync(fileno(log->metrics)) == 0 || errno == EINVAL) /* EINVAL: the file system has none */
        return 0;
    tune_error_set("cannot write %s/metrics.jsonl: %s", log->folder, strerror(errno));
    return -1;
}
