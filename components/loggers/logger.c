/* logger.c - the run folder's files and the lines on the screen. */
#include "loggers/logger.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cjson.h"
#include "core/error.h"
#include "core/file.h"
#include "core/memory.h"
#include "core/print.h"
#include "core/try.h"
#include "core/version.h"
#include "flags/property.h"
#include "loggers/host.h"
#include "loggers/progress_line.h"
#include "loggers/run_folder.h"
#include "loggers/writers.h"
#include "flags/find.h"
#include "profilers/memory_plan.h"
#include "profilers/profiler.h"

struct tune_logger {
    struct tune_logger_options options; /* its strings are not used after tune_logger_new */
    char folder[TUNE_PATH_MAX];
    cJSON *run;           /* what run.json holds */
    bool run_changed;     /* since it was written; written again at the next step */
    bool ended;           /* reported or failed */
    FILE *metrics;
    struct tune_writers *writers;
    struct tune_line line;
    double *values;       /* per declared property; NaN: never set */

    /* finished steps */
    int64_t steps, rows, tokens, padded_tokens;
    struct tune_moment begin, end; /* of the first, of the last */
    double first_end_s, loss_first, loss_last;
    int64_t anonymous;    /* most anonymous memory seen: at steps, evaluations and the end */
    double memory_sum, memory_s, memory_at_s; /* percent * seconds */
    int64_t eval_step;    /* of the last evaluation; 0: none */
    double flops_token, flops_length; /* see tune_logger_flops; 0: unknown */
    /* since the last line */
    int64_t line_steps, line_tokens;
    double line_s;
};

/* ---- run.json ---- */

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
    return -1;
}

static int write_run(struct tune_logger *log)
{
    log->run_changed = false;
    return tune_cjson_write(log->folder, "run.json", log->run, true);
}

static bool put_hash(cJSON *object, const char *key, uint64_t hash)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return tune_cjson_put_text(object, key, text);
}

static bool put_now(cJSON *object, const char *key)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return tune_cjson_put_text(object, key, text);
}

static int put_status(struct tune_logger *log, const char *status, const char *reason)
{
    log->ended = true;
    if (!tune_cjson_put_text(log->run, "status", status) || !put_now(log->run, "ended") ||
        (reason && !tune_cjson_put_text(log->run, "reason", reason)))
        return no_memory();
    return write_run(log);
}

static bool put_host(cJSON *run, const struct tune_host *host)
{
    cJSON *h = cJSON_AddObjectToObject(run, "host"), *build = cJSON_AddObjectToObject(run, "build");
    return tune_cjson_put_text(h, "class", host->class_name) && tune_cjson_put_text(h, "name", host->name) &&
           tune_cjson_put_text(h, "system", host->system) && tune_cjson_put_text(h, "machine", host->machine) &&
           tune_cjson_put_text(h, "cpu", host->cpu) &&
           tune_cjson_put_whole(h, "cores", host->cores) && tune_cjson_put_whole(h, "cpus", host->cpus) &&
           tune_cjson_put_whole(h, "memory_bytes", host->memory_bytes) &&
           tune_cjson_put_text(build, "compiler", TUNE_COMPILER) &&
           tune_cjson_put_text(build, "id", host->build_id);
}

static int start_run(struct tune_logger *log, const struct tune_logger_options *o)
{
    struct tune_host host;
    tune_host_read(&host);
    log->run = cJSON_CreateObject();
    bool good = tune_cjson_put_text(log->run, "program", o->program) && tune_cjson_put_text(log->run, "version", TUNE_VERSION) &&
                tune_cjson_put_text(log->run, "status", "running") && put_now(log->run, "started") &&
                tune_cjson_put_whole(log->run, "pid", getpid());
    const cJSON *item;
    cJSON_ArrayForEach(item, o->settings)
        good = good && tune_cjson_put(log->run, item->string, cJSON_Duplicate(item, true));
    good = good && put_host(log->run, &host);
    if (!good)
        return no_memory();
    TRY(write_run(log));
    if (o->quiet)
        return 0;
    TRY(tune_line_print(&log->line, "# %-26s %s, tune.c %s, %s", "program", o->program, TUNE_VERSION, TUNE_COMPILER));
    TRY(tune_line_print(&log->line, "# %-26s %s", "run folder", log->folder));
    return tune_line_print(&log->line, "# %-26s %s, %d cores, %.1f GiB", "host", host.class_name, host.cores,
                           (double)host.memory_bytes / (1 << 30));
}

static int copy_properties(struct tune_logger *log, const struct tune_property *properties)
{
    int n = 0;
    while (properties && properties[n].name)
        n++;
    log->values = malloc(((size_t)n + 1) * sizeof *log->values);
    for (int i = 0; i < n && log->values; i++)
        log->values[i] = NAN;
    return log->values ? 0 : no_memory();
}

struct tune_logger *tune_logger_new(const struct tune_logger_options *options)
{
    char path[TUNE_PATH_MAX];
    struct tune_error why;
    struct tune_logger *log = calloc(1, sizeof *log);
    if (!log) {
        no_memory();
        return NULL;
    }
    log->options = *options;
    if (log->options.log_every <= 0)
        log->options.log_every = 1;
    if (log->options.started_s <= 0)
        log->options.started_s = tune_moment_now().wall_s;
    tune_line_start(&log->line, options->stream ? options->stream : stdout);
    if (copy_properties(log, options->properties) < 0 ||
        tune_run_folder_make(log->folder, options->folder, options->program, options->overwrite) < 0)
        goto fail;
    if (tune_path(path, "%s/metrics.jsonl", log->folder) < 0)
        goto fail;
    log->metrics = fopen(path, "wxe");
    if (!log->metrics) {
        tune_error_set("cannot write %s: %s", path, strerror(errno));
        goto fail;
    }
    tune_run_folder_hold(log->metrics);
    if (start_run(log, options) < 0 || !(log->writers = tune_writers_open(log->folder, options->writers, 0)))
        goto begun;
    if (options->source && (tune_path(path, "%s/recipe.c", log->folder) < 0 ||
                            tune_file_write(path, options->source, options->source_size) < 0))
        goto begun;
    return log;
begun: /* run.json may be there and say that it runs */
    tune_error_save(&why);
    tune_logger_failed(log, why.text);
    tune_error_restore(&why);
fail:
    log->ended = true; /* its error is the caller's to show; nothing more is written */
    tune_logger_free(log);
    return NULL;
}

void tune_logger_free(struct tune_logger *log)
{
    if (!log)
        return;
    if (!log->ended) {
        struct tune_error before; /* what ended the run is what the caller wants to read */
        tune_error_save(&before);
        put_status(log, "unfinished", NULL);
        tune_error_restore(&before);
    }
    if (log->metrics)
        fclose(log->metrics);
    tune_writers_free(log->writers);
    cJSON_Delete(log->run);
    free(log->values);
    free(log);
}

int tune_logger_failed(struct tune_logger *log, const char *why)
{
    char text[2048]; /* why may be the error text, which writing can change */
    snprintf(text, sizeof text, "%s", why);
    return log->ended ? 0 : put_status(log, "failed", text);
}

const char *tune_logger_folder(const struct tune_logger *log)
{
    return log->folder;
}

static int header(struct tune_logger *log, const char *key, const char *text)
{
    log->run_changed = true;
    return log->options.quiet ? 0 : tune_line_print(&log->line, "# %-26s %s", key, text);
}

int tune_logger_note(struct tune_logger *log, const char *key, const char *text)
{
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(log->run, "notes");
    if (!notes)
        notes = cJSON_AddObjectToObject(log->run, "notes");
    if (!tune_cjson_put_text(notes, key, text))
        return no_memory();
    return header(log, key, text);
}

/* The members that say which weights a figure belongs to, in run.json and in report.json alike. */
static const char *const weight_keys[] = {"weights", "weights_hash", "weights_folder", "weights_seed"};

int tune_logger_weights(struct tune_logger *log, const char *folder, const struct tune_model_identity *identity)
{
    char text[TUNE_PATH_MAX + 256];
    const char *what = identity->random ? "random" : *identity->revision ? identity->revision : "unknown revision";
    bool good = tune_cjson_put_text(log->run, "weights", what) && put_hash(log->run, "weights_hash", identity->fingerprint) &&
                tune_cjson_put_text(log->run, "weights_folder", folder);
    if (good && identity->random)
        good = tune_cjson_put_whole(log->run, "weights_seed", identity->seed);
    if (!good)
        return no_memory();
    snprintf(text, sizeof text, "%s, %s, hash %016" PRIx64, folder, identity->random ? "RANDOM" : what, identity->fingerprint);
    return header(log, "weights", text);
}

static int put_data(struct tune_logger *log, const char *member, const char *path, int64_t rows, uint64_t fingerprint)
{
    char text[TUNE_PATH_MAX + 128];
    cJSON *d = cJSON_CreateObject();
    bool good = tune_cjson_put_text(d, "path", path) && tune_cjson_put_whole(d, "rows", rows) &&
                (fingerprint ? put_hash(d, "fingerprint", fingerprint) : tune_cjson_put_text(d, "fingerprint", ""));
    if (!tune_cjson_put(log->run, member, d) || !good)
        return no_memory();
    int n = snprintf(text, sizeof text, "%s, %" PRId64 " rows", path, rows);
    if (fingerprint && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", fingerprint %016" PRIx64, fingerprint);
    return header(log, strcmp(member, "data") ? "evaluation data" : "data", text);
}

int tune_logger_data(struct tune_logger *log, const char *path, int64_t rows, uint64_t fingerprint)
{
    return put_data(log, "data", path, rows, fingerprint);
}

int tune_logger_eval_data(struct tune_logger *log, const char *path, int64_t rows, uint64_t fingerprint)
{
    return put_data(log, "eval_data", path, rows, fingerprint);
}

int tune_logger_planned(struct tune_logger *log, int64_t steps)
{
    log->run_changed = true;
    return tune_cjson_put_whole(log->run, "planned_steps", steps) ? 0 : no_memory();
}

static int declared(const struct tune_logger *log, const char *name)
{
    const struct tune_property *p = log->options.properties;
    for (int i = 0; p && p[i].name; i++)
        if (!strcmp(p[i].name, name))
            return i;
    return -1;
}

/* A property this logger knows: if the program declares it and has not set it itself. */
static void know(struct tune_logger *log, const char *name, double value)
{
    int i = declared(log, name);
    if (i >= 0 && isnan(log->values[i]) && isfinite(value))
        log->values[i] = value;
}

int tune_logger_memory(struct tune_logger *log, const struct tune_memory_plan *plan)
{
    char text[512];
    cJSON *parts = cJSON_CreateObject();
    bool good = parts != NULL;
    for (int i = 0; i < plan->count; i++)
        good = good && tune_cjson_put_whole(parts, plan->parts[i].name, plan->parts[i].bytes);
    if (!tune_cjson_put(log->run, "memory", parts) || !good)
        return no_memory();
    know(log, "estimated_memory_bytes", (double)plan->total);
    return header(log, "memory", tune_memory_plan_text(plan, text, sizeof text));
}

/* ---- steps ---- */

/* Writes the object and frees it. good: nothing failed while it was built. */
static int write_metrics(struct tune_logger *log, cJSON *json, bool good)
{
    char *text = good ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return no_memory();
    errno = 0;
    fprintf(log->metrics, "%s\n", text);
    /* each line at once: a run that is killed leaves every step it finished */
    bool written = fflush(log->metrics) == 0 && !ferror(log->metrics);
    if (!written)
        tune_error_set("cannot write %s/metrics.jsonl: %s", log->folder, errno ? strerror(errno) : "write error");
    int status = written ? tune_writers_line(log->writers, text, strlen(text)) : -1;
    cJSON_free(text);
    return status;
}

/* The run ends here; run.json says why, then the error is the caller's. */
static int diverged(struct tune_logger *log, const struct tune_step_record *r)
{
    struct tune_error why;
    if (r->step == 1 && !isfinite(r->loss_sum)) /* nothing was trained yet: --lr cannot be it */
        tune_error_set("diverged at step 1: the loss is not finite before any weight was changed; look for NaN, infinite or "
                       "very large values in the model's weights, and at its config.json");
    else
        tune_error_set("diverged at step %" PRId64 ": the %s is not finite (that step left the weights as they were); lower "
                       "--lr (it was %g), or raise --warmup-steps or lower --clip-norm", r->step,
                       isfinite(r->loss_sum) ? "gradient" : "loss", r->lr);
    tune_error_save(&why);
    put_status(log, "failed", why.text);
    tune_error_restore(&why);
    return -1;
}

/* System memory in use, weighed by the time each sample stands for; at most one sample a second. */
static void sample_memory(struct tune_logger *log, const struct tune_step_record *r)
{
    double from = log->steps == 1 ? r->begin.wall_s : log->memory_at_s, s = r->end.wall_s - from;
    if (log->steps > 1 && s < 1)
        return;
    double percent = tune_memory_used();
    log->memory_at_s = r->end.wall_s;
    if (percent < 0 || s <= 0)
        return;
    log->memory_sum += percent * s;
    log->memory_s += s;
}

static void count(struct tune_logger *log, const struct tune_step_record *r, double loss)
{
    if (log->steps++ == 0) {
        log->begin = r->begin;
        log->first_end_s = r->end.wall_s;
        log->loss_first = loss;
    }
    log->end = r->end;
    log->loss_last = loss;
    log->rows += r->rows;
    log->tokens += r->tokens;
    log->padded_tokens += r->padded_tokens;
    log->line_steps++;
    log->line_tokens += r->tokens;
    log->line_s += r->end.wall_s - r->begin.wall_s;
    sample_memory(log, r);
}

/* Remaining steps at the pace so far (evaluations and saves included), or to the time limit if that is sooner. */
static double eta(const struct tune_logger *log, const struct tune_progress *at)
{
    double gone = log->end.wall_s - log->begin.wall_s, left = -1;
    if (at->planned_steps > 0 && log->steps > 0)
        left = gone / (double)log->steps * (double)(at->planned_steps - at->step);
    double limit = log->options.stop_after_seconds;
    if (limit > 0 && (left < 0 || limit - gone < left))
        left = limit > gone ? limit - gone : 0;
    return left;
}

static void see_memory(struct tune_logger *log)
{
    int64_t bytes = tune_memory_anonymous();
    log->anonymous = bytes > log->anonymous ? bytes : log->anonymous;
}

static int show(struct tune_logger *log, const struct tune_progress *at, const struct tune_step_record *r, double loss)
{
    struct tune_line_step s = {.step = r->step, .planned = at->planned_steps, .loss = loss, .norm = r->grad_norm,
                               .lr = r->lr, .eta_s = eta(log, at)};
    s.step_s = log->line_steps ? log->line_s / (double)log->line_steps : 0;
    s.tokens_per_s = log->line_s > 0 ? (double)log->line_tokens / log->line_s : 0;
    log->line_steps = log->line_tokens = 0;
    log->line_s = 0;
    see_memory(log);
    return log->options.quiet ? 0 : tune_line_step(&log->line, &s, r->end.wall_s);
}

int tune_logger_record(struct tune_logger *log, const struct tune_progress *at, const struct tune_step_record *r)
{
    double seconds = r->end.wall_s - r->begin.wall_s, loss = r->labels > 0 ? r->loss_sum / r->labels : NAN;
    if (r->not_finite || !isfinite(r->loss_sum) || !isfinite(r->grad_norm))
        return diverged(log, r);
    if (!isfinite(loss)) {
        tune_error_set("step %" PRId64 " has no label to train on, so no loss", r->step);
        return -1;
    }
    if (log->run_changed)
        TRY(write_run(log));
    count(log, r, loss);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", r->step) && tune_cjson_put_number(json, "loss", loss) &&
                tune_cjson_put_number(json, "grad_norm", r->grad_norm) && tune_cjson_put_number(json, "lr", r->lr) &&
                tune_cjson_put_number(json, "step_s", seconds) && tune_cjson_put_whole(json, "tokens", r->tokens) &&
                tune_cjson_put_whole(json, "labels", (int64_t)r->labels) &&
                tune_cjson_put_number(json, "tokens_per_s", seconds > 0 ? (double)r->tokens / seconds : 0) &&
                tune_cjson_put_number(json, "epoch", r->epoch);
    TRY(write_metrics(log, json, good));
    return at->step == r->step ? show(log, at, r, loss) : 0;
}

int tune_logger_evaluation(struct tune_logger *log, const struct tune_progress *at)
{
    if (at->eval_step == log->eval_step)
        return 0;
    if (!isfinite(at->eval_loss)) {
        tune_error_set("the evaluation at step %" PRId64 " gave a loss that is not finite; lower --lr", at->eval_step);
        return -1;
    }
    double perplexity = exp(at->eval_loss);
    log->eval_step = at->eval_step;
    see_memory(log);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", at->eval_step) && tune_cjson_put_number(json, "eval_loss", at->eval_loss);
    if (isfinite(perplexity))
        good = good && tune_cjson_put_number(json, "eval_perplexity", perplexity);
    TRY(write_metrics(log, json, good));
    char best[64] = " | best";
    if (!at->best)
        snprintf(best, sizeof best, " | best %.4f at step %" PRId64, at->best_loss, at->best_step);
    return log->options.quiet ? 0 : tune_line_print(&log->line, "eval %" PRId64 " | loss %7.4f | perplexity %.4g%s",
                                                     at->eval_step, at->eval_loss, perplexity, best);
}

/* Where the time before the first step's end went. */
static int show_start(struct tune_logger *log)
{
    double started = log->options.started_s, setup = log->begin.wall_s - started;
    int i = declared(log, "model_load_time");
    double load = i >= 0 && isfinite(log->values[i]) ? log->values[i] : 0;
    return tune_line_print(&log->line, "# %-26s %.2f s after the start: model %.2f, other set-up %.2f, the step %.2f", "first step",
                           log->first_end_s - started, load, setup - load, log->first_end_s - log->begin.wall_s);
}

/* The table as `#` lines. */
static int print_table(struct tune_logger *log, char *table)
{
    for (char *line = table, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        if (!*end)
            break;
        *end = 0;
        TRY(tune_line_print(&log->line, "# %s", line));
    }
    return 0;
}

int tune_logger_profile(struct tune_logger *log, struct tune_profiler *prof, const struct tune_progress *at)
{
    int done = at ? tune_profiler_step(prof, at) : tune_profiler_end(prof);
    if (done <= 0)
        return done;
    TRY(tune_profiler_write(prof, log->folder));
    if (log->options.quiet)
        return 0;
    char *table = tune_profiler_table(prof);
    int status = table ? print_table(log, table) : -1;
    free(table);
    TRY(status);
    return tune_line_print(&log->line, "# %-26s %s/profile.txt, profile.json, profile.trace.json", "profile", log->folder);
}

/* ---- the report ---- */

void tune_logger_flops(struct tune_logger *log, double per_token, double per_length)
{
    log->flops_token = per_token;
    log->flops_length = per_length;
}

int tune_logger_property(struct tune_logger *log, const char *name, double value)
{
    int i = declared(log, name);
    if (i < 0) {
        tune_error_set("property \"%s\" is not declared; add {\"%s\", \"unit\", \"help\"} to the program's table of "
                       "properties", name, name);
        return -1;
    }
    if (!isfinite(value)) {
        tune_error_set("property \"%s\": expected a finite number, got %f", name, value);
        return -1;
    }
    log->values[i] = value;
    return 0;
}

static void know_standard(struct tune_logger *log, const struct tune_progress *at)
{
    double s = log->end.wall_s - log->begin.wall_s;
    know(log, "is_valid", log->steps > 0 && at->signal == 0);
    know(log, "training_steps", (double)log->steps);
    know(log, "peak_memory_bytes", (double)tune_memory_peak());
    see_memory(log);
    know(log, "peak_anonymous_bytes", (double)log->anonymous);
    if (at->eval_step > 0) {
        know(log, "eval_loss", at->eval_loss);
        know(log, "eval_perplexity", exp(at->eval_loss));
        know(log, "best_eval_loss", at->best_loss);
        know(log, "best_eval_step", (double)at->best_step);
    }
    if (log->steps == 0 || !(s > 0))
        return;
    know(log, "train_runtime", s);
    know(log, "train_samples_per_second", (double)log->rows / s);
    know(log, "train_steps_per_second", (double)log->steps / s);
    know(log, "train_tokens_per_second", (double)log->padded_tokens / s);
    know(log, "train_tokens_per_gpu_per_second", (double)log->padded_tokens / s);
    know(log, "dataset_tokens_per_second", (double)log->tokens / s);
    know(log, "dataset_tokens_per_second_per_gpu", (double)log->tokens / s);
    know(log, "cpu_compute_utilization", 100 * (log->end.cpu_s - log->begin.cpu_s) / s);
    know(log, "cpu_memory_utilization", log->memory_s > 0 ? log->memory_sum / log->memory_s : tune_memory_used());
    know(log, "time_to_first_step_s", log->first_end_s - log->options.started_s);
    know(log, "setup_s", log->begin.wall_s - log->options.started_s);
    if (log->flops_token > 0 && log->rows > 0)
        know(log, "model_flops_per_second",
             (double)log->tokens * (log->flops_token + log->flops_length * (double)log->tokens / (double)log->rows) / s);
    know(log, "loss_first", log->loss_first);
    know(log, "loss_last", log->loss_last);
}

static int write_report(struct tune_logger *log)
{
    const struct tune_property *p = log->options.properties;
    const char *nonce = getenv("TUNE_NONCE"); /* by it a parent knows that this very run wrote the report */
    cJSON *report = cJSON_CreateObject();
    bool good = report != NULL;
    for (int i = 0; p && p[i].name && good; i++)
        if (!isnan(log->values[i]))
            good = tune_cjson_put_number(report, p[i].name, log->values[i]);
    for (size_t i = 0; i < sizeof weight_keys / sizeof *weight_keys; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(log->run, weight_keys[i]);
        good = good && (!value || tune_cjson_put(report, weight_keys[i], cJSON_Duplicate(value, true)));
    }
    if (nonce && *nonce)
        good = good && tune_cjson_put_text(report, "nonce", nonce);
    int result = tune_cjson_write(log->folder, "report.json", report, good);
    cJSON_Delete(report);
    return result;
}

int tune_logger_report(struct tune_logger *log, const struct tune_progress *at)
{
    double s = log->end.wall_s - log->begin.wall_s;
    know_standard(log, at);
    TRY(write_report(log));
    char why[160];
    snprintf(why, sizeof why, "early stop: %d evaluations in a row without a lower loss; the best was %.4f at step %" PRId64,
             at->stale, at->best_loss, at->best_step);
    TRY(put_status(log, at->signal ? "stopped" : "finished", at->early_stop ? why : NULL));
    if (log->options.quiet)
        return 0;
    if (log->steps > 0)
        TRY(show_start(log));
    if (log->steps > 0)
        TRY(tune_line_print(&log->line, "# %-26s %" PRId64 " steps in %.1f s, %.0f tokens/s, loss %.4f -> %.4f",
                            at->signal ? "stopped by a signal" : at->early_stop ? "stopped early" : "finished", log->steps, s,
                            s > 0 ? (double)log->tokens / s : 0, log->loss_first, log->loss_last));
    return tune_line_print(&log->line, "# %-26s %s/report.json", "report", log->folder);
}
