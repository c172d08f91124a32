/* report.c - the measured properties that the logger knows, the report, and the closing lines. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "machine/memory.h"
#include "comm/comm.h"
#include "core/print.h"
#include "core/try.h"
#include "devices/device.h"
#include "flags/property.h"
#include "loggers/state.h"
#include "profilers/sampler.h"

int tune_logger_declared(const struct tune_logger *log, const char *name)
{
    const struct tune_property *p = log->options.properties;
    for (int i = 0; p && p[i].name; i++)
        if (!strcmp(p[i].name, name))
            return i;
    return -1;
}

void tune_logger_know(struct tune_logger *log, const char *name, double value)
{
    int i = tune_logger_declared(log, name);
    if (i >= 0 && isnan(log->values[i]) && isfinite(value))
        log->values[i] = value;
}

double tune_logger_elapsed(const struct tune_logger *log)
{
    return log->past_s + (log->end.wall_s - log->begin.wall_s);
}

void tune_logger_see_memory(struct tune_logger *log)
{
    int64_t bytes = tune_memory_anonymous();
    log->anonymous = bytes > log->anonymous ? bytes : log->anonymous;
}

void tune_logger_flops(struct tune_logger *log, double per_token, double per_length)
{
    log->flops_token = per_token;
    log->flops_length = per_length;
}

int tune_logger_property(struct tune_logger *log, const char *name, double value)
{
    int i = tune_logger_declared(log, name);
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

static void know_spread(struct tune_logger *log, const char *what, const struct tune_sampler_spread *s)
{
    static const char *const ends[] = {"min", "avg", "max"};
    const double values[] = {s->min, s->avg, s->max};
    char name[64];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s_%s", what, ends[i]);
        tune_logger_know(log, name, log->gpus > 0 ? values[i] : 0);
    }
}

/* Clock and energy, absent without a GPU. Power is that of this session, as above. */
static void know_energy(struct tune_logger *log, const struct tune_sampler_seen *seen)
{
    double s = tune_logger_elapsed(log), joules = seen->gpu_watts.avg * log->gpus * s;
    if (log->gpus == 0)
        return;
    know_spread(log, "gpu_sm_clock", &seen->gpu_clock);
    tune_logger_know(log, "gpu_energy", joules);
    if (log->tokens > 0)
        tune_logger_know(log, "gpu_energy_per_token", joules / (double)log->tokens);
}

/* Times of this session, from the start of its first step to the end of its last. */
static void know_machine(struct tune_logger *log)
{
    double own_s = log->end.wall_s - log->begin.wall_s;
    double used = tune_memory_used();
    struct tune_sampler_seen seen = {.memory = used < 0 ? NAN : used, .gpu_memory_peak = NAN};
    seen.gpu_compute = seen.gpu_memory = seen.gpu_watts = seen.gpu_power = seen.gpu_clock = (struct tune_sampler_spread){NAN, NAN, NAN};
    if (log->sampler)
        tune_sampler_read(log->sampler, log->begin.wall_s, log->end.wall_s, &seen);
    know_spread(log, "gpu_compute_utilization", &seen.gpu_compute);
    know_spread(log, "gpu_memory_utilization", &seen.gpu_memory);
    tune_logger_know(log, "gpu_memory_utilization_peak", seen.gpu_memory_peak);
    know_spread(log, "gpu_power_watts", &seen.gpu_watts);
    know_spread(log, "gpu_power_percent", &seen.gpu_power);
    know_energy(log, &seen);
    if (log->own_steps > 0 && own_s > 0)
        tune_logger_know(log, "cpu_compute_utilization", 100 * (log->end.cpu_s - log->begin.cpu_s) / own_s);
    tune_logger_know(log, "cpu_memory_utilization", seen.memory);
}

static void know_stable(struct tune_logger *log)
{
    struct tune_stable_speed v = tune_stable_speed(&log->stable);
    if (v.steps == 0)
        return;
    tune_logger_know(log, "tokens_per_second_stable", v.mean);
    tune_logger_know(log, "tokens_per_second_stable_half_width", v.half_width);
}

/* Averages over the finished steps of all sessions; planned steps do not count. */
static void know_speed(struct tune_logger *log, double s)
{
    double rows = (double)log->rows, tokens = (double)log->tokens, padded = (double)log->padded_tokens;
    int gpus = log->gpus > 1 ? log->gpus : 1;
    tune_logger_know(log, "train_runtime", s);
    tune_logger_know(log, "train_samples_per_second", rows / s);
    tune_logger_know(log, "train_steps_per_second", (double)log->steps / s);
    tune_logger_know(log, "train_tokens_per_second", padded / s);
    tune_logger_know(log, "train_tokens_per_gpu_per_second", padded / s / gpus);
    tune_logger_know(log, "padding_share", 100 * (1 - tokens / padded));
    tune_logger_know(log, "packing_efficiency", 100 * tokens / padded);
    tune_logger_know(log, "dataset_tokens_per_second", tokens / s);
    tune_logger_know(log, "dataset_tokens_per_second_per_gpu", tokens / s / gpus);
    if (log->flops_token > 0 && log->rows > 0)
        tune_logger_know(log, "model_flops_per_second", tokens * (log->flops_token + log->flops_length * tokens / rows) / s);
}

/* A number of a line: as it was written, or as it was read. */
static double number_of(const cJSON *n)
{
    return cJSON_IsRaw(n) ? strtod(n->valuestring, NULL) : n->valuedouble;
}

static void know_standard(struct tune_logger *log, const struct tune_progress *at)
{
    double s = tune_logger_elapsed(log);
    tune_logger_know(log, "is_valid", (log->steps > 0 || at->evaluated) && at->signal == 0);
    tune_logger_know(log, "training_steps", (double)log->steps);
    if (log->device)
        tune_logger_know(log, "peak_device_bytes", (double)log->device->bytes_peak);
    tune_logger_know(log, "peak_memory_bytes", (double)tune_memory_peak());
    tune_logger_see_memory(log);
    tune_logger_know(log, "peak_anonymous_bytes", (double)log->anonymous);
    if (at->evaluated) {
        tune_logger_know(log, "eval_loss", at->eval_loss);
        tune_logger_know(log, "eval_perplexity", exp(at->eval_loss));
        tune_logger_know(log, "best_eval_loss", at->best_loss);
        tune_logger_know(log, "best_eval_step", (double)at->best_step);
    }
    for (const cJSON *n = log->evaluation ? log->evaluation->child : NULL; n; n = n->next)
        tune_logger_know(log, n->string, number_of(n));
    if (log->steps == 0 || !(s > 0))
        return;
    know_machine(log);
    know_speed(log, s);
    know_stable(log);
    if (log->own_steps > 0) { /* a process that only evaluated has none of these */
        tune_logger_know(log, "time_to_first_step_s", log->first_end_s - log->options.started_s);
        tune_logger_know(log, "setup_s", log->begin.wall_s - log->options.started_s);
    }
    tune_logger_know(log, "loss_first", log->loss_first);
    tune_logger_know(log, "loss_last", log->loss_last);
}

/* Copy a member of run, or a member inside that member, under the given name. A missing or empty
 * member is no error. */
static bool copy(cJSON *report, const char *name, const cJSON *run, const char *member, const char *inner)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(run, member);
    value = inner ? cJSON_GetObjectItemCaseSensitive(value, inner) : value;
    bool empty = !value || (cJSON_IsString(value) && !*value->valuestring);
    return empty || tune_cjson_put(report, name, cJSON_Duplicate(value, true));
}

/* Numbers of evaluations that the program does not declare: which there are depends on options. */
static bool put_evaluations(const struct tune_logger *log, const struct tune_progress *at, cJSON *report)
{
    char name[96];
    bool good = true;
    const cJSON *n;
    cJSON_ArrayForEach(n, log->evaluation)
        if (good && strcmp(n->string, "step") != 0 && tune_logger_declared(log, n->string) < 0)
            good = tune_cjson_put_number(report, n->string, number_of(n));
    cJSON_ArrayForEach(n, log->before) {
        snprintf(name, sizeof name, "before_%s", n->string);
        if (good && strcmp(n->string, "step") != 0)
            good = tune_cjson_put_number(report, name, number_of(n));
    }
    snprintf(name, sizeof name, "best_eval_%s", at->best_by);
    bool other = at->evaluated && *at->best_by && strcmp(at->best_by, "loss") != 0;
    return good && (!other || tune_cjson_put_number(report, name, at->best_value));
}

/* Besides the figures, the report has the status, and names weights and data, as in the description. With the
 * nonce, a parent process knows that its own run wrote the report. */
static int write_report(struct tune_logger *log, const struct tune_progress *at, const char *status)
{
    static const char *const same[] = {"weights", "weights_hash", "weights_folder", "weights_seed"};
    const struct tune_property *p = log->options.properties;
    cJSON *report = cJSON_CreateObject();
    bool good = report != NULL;
    for (int i = 0; p && p[i].name && good; i++)
        if (!isnan(log->values[i]))
            good = tune_cjson_put_number(report, p[i].name, log->values[i]);
    if (log->options.comm && tune_comm_size(log->options.comm) > 1)
        good = good && tune_cjson_put_whole(report, "ranks", tune_comm_size(log->options.comm)) &&
               tune_cjson_put_whole(report, "rank_sent_bytes", (int64_t)tune_comm_bytes(log->options.comm));
    good = good && put_evaluations(log, at, report) && tune_cjson_put_text(report, "status", status);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        good = good && copy(report, same[i], log->run.now, same[i], NULL);
    good = good && copy(report, "data_hash", log->run.now, "data", "hash") &&
           copy(report, "eval_data_hash", log->run.now, "eval_data", "hash") &&
           copy(report, "general_data_hash", log->run.now, "general_data", "hash") && copy(report, "nonce", log->run.now, "nonce", NULL);
    int result = tune_run_writer_report(&log->run, report, good);
    cJSON_Delete(report);
    return result;
}

/* How the run ended: its status and reason, and the word for the screen. */
static const char *ended(const struct tune_logger *log, struct tune_progress *at, char *reason, size_t size)
{
    bool by_loss = !*at->best_by || !strcmp(at->best_by, "loss");
    char better[64];
    snprintf(better, sizeof better, "better %s", at->best_by);
    bool there = log->options.diverged && *log->options.diverged && !at->signal; /* it ended the run */
    *reason = 0;
    at->diverged = (!at->stopped || there) && tune_logger_diverged(log);
    if (at->diverged) {
        tune_logger_why_diverged(log, reason, size);
        if (at->stopped)
            tune_append(reason, size, "; %s ended it at step %" PRId64 " of %" PRId64, at->stopped, at->step, at->planned_steps);
        return "diverged";
    }
    if (at->stopped) {
        snprintf(reason, size, "%s at step %" PRId64 " of %" PRId64, at->stopped, at->step, at->planned_steps);
        return "stopped";
    }
    if (at->early_stop)
        snprintf(reason, size, "early stop: %d evaluations in a row without a %s; the best was %.4f at step %" PRId64, at->stale,
                 by_loss ? "lower loss" : better, by_loss ? at->best_loss : at->best_value, at->best_step);
    return "finished";
}

/* Print how the time until the end of the first step was spent. */
static int show_start(struct tune_logger *log)
{
    double started = log->options.started_s, setup = log->begin.wall_s - started;
    int i = tune_logger_declared(log, "model_load_time");
    double load = i >= 0 && isfinite(log->values[i]) ? log->values[i] : 0;
    return tune_line_print(&log->line, "# %-12s %.2f s after the start: model %.2f, other set-up %.2f, the step %.2f", "first step",
                           log->first_end_s - started, load, setup - load, log->first_end_s - log->begin.wall_s);
}

/* Print how to continue a run that stopped. */
static int show_stop(struct tune_logger *log, const struct tune_progress *at, const char *status, const char *why)
{
    const char *next = at->diverged            ? ""
                       : log->options.unsaved ? "; nothing was saved there, as asked"
                       : at->step > 0         ? "; to go on: `resume` "
                                              : "; nothing was trained, so nothing saved: start it again with `overwrite` `output` ";
    return tune_line_print(&log->line, "# %-12s %s%s%s", status, why, at->stopped ? next : "",
                           at->stopped && !at->diverged && !log->options.unsaved ? log->run.folder : "");
}

int tune_logger_report(struct tune_logger *log, struct tune_progress *at)
{
    char why[400];
    TRY(tune_logger_profile(log, NULL));
    TRY(tune_logger_catch_up(log, at));
    TRY(tune_logger_counts(log));
    double s = tune_logger_elapsed(log);
    const char *status = ended(log, at, why, sizeof why);
    know_standard(log, at);
    if (at->planned_rows > 0) /* before this it was an estimate */
        TRY(tune_logger_planned(log, at->planned_steps));
    TRY(write_report(log, at, status));
    TRY(tune_logger_end(log, status, *why ? why : NULL));
    if (log->options.quiet)
        return 0;
    if (*why)
        TRY(show_stop(log, at, status, why));
    if (log->own_steps > 0)
        TRY(show_start(log));
    if (log->steps == 0 && at->evaluated)
        TRY(tune_line_print(&log->line, "# %-12s evaluated, nothing was trained: loss %.4f", status, at->eval_loss));
    if (log->steps > 0)
        TRY(tune_line_print(&log->line, "# %-12s %" PRId64 " steps in %.1f s, %.0f tokens/s, %.1f %% padding, loss %.4f -> %.4f",
                            *why ? "figures" : status, log->steps, s, s > 0 ? (double)log->tokens / s : 0,
                            log->padded_tokens > 0 ? 100 * (1 - (double)log->tokens / (double)log->padded_tokens) : 0,
                            log->loss_first, log->loss_last));
    return tune_line_print(&log->line, "# %-12s %s/" TUNE_RUN_REPORT, "report", log->run.folder);
}
