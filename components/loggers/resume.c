/* resume.c - resume a run: what must agree, and which metrics are kept. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "core/error.h"
#include "core/try.h"
#include "loggers/state.h"
#include "runs/metrics.h"

int tune_logger_changed(struct tune_logger *log, const char *what, const char *was, const char *now)
{
    if (!log->run.before)
        return 0;
    if (!log->options.allow_changed) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "`resume`: %s: was %s in that run, is %s now; resume with what it had, or give "
                            "`allow_changed` to go on with what there is", what, was, now);
        return -1;
    }
    cJSON *session = tune_run_writer_session(&log->run), *changed = cJSON_GetObjectItemCaseSensitive(session, "changed");
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

/* A member of the description, or a member inside that member, as text. The caller frees it. NULL:
 * there is none. */
static char *text_of(const cJSON *run, const char *member, const char *inner)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(run, member);
    value = inner ? cJSON_GetObjectItemCaseSensitive(value, inner) : value;
    return !value ? NULL : cJSON_IsString(value) || cJSON_IsRaw(value) ? strdup(value->valuestring) : cJSON_PrintUnformatted(value);
}

int tune_logger_compare(struct tune_logger *log, const char *member, const char *inner, const char *what)
{
    if (!log->run.before)
        return 0;
    char *was = text_of(log->run.before, member, inner), *now = text_of(log->run.now, member, inner);
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
    for (int i = 0; i < OF_FILE && log->run.before; i++) {
        char *was = text_of(log->run.before, "data", of_file[i].inner), *now = text_of(log->run.now, "data", of_file[i].inner);
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
    return tune_logger_note(log, "data file", text);
}

int tune_logger_warn_of(struct tune_logger *log, const char *member, const char *inner, const char *what)
{
    char text[1024], key[160];
    snprintf(key, sizeof key, "warning: %s", what);
    char *was = text_of(log->run.before, member, inner), *now = text_of(log->run.now, member, inner);
    bool differ = was && now && strcmp(was, now);
    snprintf(text, sizeof text, "was \"%.300s\", is \"%.300s\" now; the last digits may not be what they would have been",
             was ? was : "", now ? now : "");
    free(was);
    free(now);
    return differ ? tune_logger_note(log, key, text) : 0;
}

/* ---- the metrics that are kept ---- */

struct past {
    struct tune_logger *log;
    const struct tune_progress *at;
};

static double number(const struct tune_metrics_row *row, const char *name)
{
    const struct tune_metric *m = tune_metrics_find(row, name);
    return m ? m->value : 0;
}

static void add_step(struct tune_logger *log, const struct tune_metrics_row *row)
{
    log->loss_last = number(row, "loss");
    if (log->steps++ == 0)
        log->loss_first = log->loss_last;
    log->lr_last = number(row, "lr");
    tune_trend_add(&log->trend, log->loss_last);
    log->last_step = log->written_step = row->step;
    log->rows += (int64_t)number(row, "rows");
    log->tokens += (int64_t)number(row, "tokens");
    log->padded_tokens += (int64_t)number(row, "padded_tokens");
    log->past_s = number(row, "elapsed_s");
}

/* A line is kept if the checkpoint includes its step or evaluation. After the first line that is
 * not kept, none is: the rest may be incomplete on disk. */
static int take(void *context, const struct tune_metrics_row *row)
{
    const struct past *p = context;
    const struct tune_progress *at = p->at;
    struct tune_logger *log = p->log;
    int64_t step = row->step;
    bool evaluation = tune_metrics_find(row, "eval_loss") != NULL;
    if (step > at->step || (evaluation && step > at->eval_step))
        return TUNE_METRICS_BEFORE;
    bool evaluated = log->evaluated && log->eval_step == log->last_step;
    bool follows = evaluation ? step == log->last_step && !evaluated : step == log->last_step + 1;
    if (!follows && !log->options.allow_changed) {
        tune_error_set("%s:%" PRId64 ": %sstep %" PRId64 " follows %sstep %" PRId64 "; lines are missing or there twice, and a "
                       "resumed run's figures would be wrong: `allow_changed` goes on all the same", row->path, row->line,
                       evaluation ? "the evaluation of " : "", step, evaluated ? "the evaluation of " : "", log->last_step);
        return -1;
    }
    if (evaluation) {
        cJSON *json = cJSON_ParseWithLength(row->text, row->size);
        bool kept = json && tune_logger_keep_evaluation(log, json, step);
        cJSON_Delete(json);
        if (!kept)
            return tune_logger_no_memory();
    } else
        add_step(log, row);
    bool complete = log->last_step >= at->step && log->eval_step >= at->eval_step;
    return complete ? TUNE_METRICS_LAST : TUNE_METRICS_ON;
}

/* Add the kept lines to the logger's sums. */
static int read_past(struct tune_logger *log, const struct tune_progress *at,
                     struct tune_metrics_position *end)
{
    char was[64], now[64];
    struct past p = {log, at};
    TRY(tune_metrics_read(end, log->run.folder, take, &p));
    bool evaluation = log->last_step >= at->step; /* then the evaluation may be missing */
    if (!evaluation || log->eval_step < at->eval_step) {
        const char *what = evaluation ? "the evaluation of " : "";
        snprintf(was, sizeof was, "at %sstep %" PRId64 " or later", what,
                 evaluation ? at->eval_step : at->step);
        snprintf(now, sizeof now, "at %sstep %" PRId64, what,
                 evaluation ? log->eval_step : log->last_step);
        what = "the end of " TUNE_RUN_METRICS ", which the checkpoint is ahead of";
        TRY(tune_logger_changed(log, what, was, now));
    }
    return 0;
}

int tune_logger_resume(struct tune_logger *log, const struct tune_progress *at)
{
    char text[160];
    const struct tune_logger_options *o = &log->options;
    struct tune_metrics_position end = {0};
    if (!log->waiting)
        return 0;
    if (log->run.follows) {
        log->waiting = false;
        log->last_step = log->written_step = at->step;
        return 0;
    }
    TRY(read_past(log, at, &end));
    TRY(tune_run_writer_cut(&log->run, end.bytes));
    TRY(tune_run_writer_cut_previews(&log->run, at->step));
    log->waiting = false;
    TRY(tune_run_writer_again(&log->run));
    int other = 0;
    if (o->source)
        other = tune_run_writer_source(&log->run, o->source, o->source_size, at->step);
    TRY(other);
    if (other)
        TRY(tune_logger_note(log, "warning: recipe", "the program's source is not the one that began "
                             "the run; it is kept beside recipe.c"));
    if (!tune_cjson_put_whole(tune_run_writer_session(&log->run), "from_step", at->step))
        return tune_logger_no_memory();
    int64_t cut = end.left + (end.torn > 0);
    int n = snprintf(text, sizeof text, "behind step %" PRId64, at->step);
    if (cut > 0)
        snprintf(text + n, sizeof text - (size_t)n,
                 "; %" PRId64 " later lines of " TUNE_RUN_METRICS " are cut off", cut);
    TRY(tune_logger_header(log, "resumed", text));
    TRY(tune_logger_rose(log, log->trend.rose));
    TRY(tune_logger_save(log));
    log->writers = tune_writers_open(log->run.folder, o->writers, log->last_step);
    return log->writers ? 0 : -1;
}

int tune_logger_sync(struct tune_logger *log)
{
    return tune_run_writer_sync(&log->run);
}
