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

#include "comm/comm.h"
#include "files/cjson.h"
#include "files/json.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/failure.h"
#include "files/file.h"
#include "machine/memory.h"
#include "core/print.h"
#include "core/try.h"
#include "core/version.h"
#include "datasets/dataset.h"
#include "flags/find.h"
#include "flags/property.h"
#include "machine/host.h"
#include "loggers/state.h"
#include "profilers/memory_plan.h"
#include "profilers/profiler.h"
#include "profilers/sampler.h"

int tune_logger_no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
    return -1;
}

int tune_logger_save(struct tune_logger *log)
{
    log->run_changed = false;
    return tune_run_writer_save(&log->run);
}

/* Copy a message and write its options as the program's flags. The caller frees it. NULL: no
 * memory. */
static char *spelled(const struct tune_logger *log, const char *text)
{
    char *copy = strdup(text);
    if (copy && log->options.spell)
        log->options.spell(log->options.flags, copy);
    return copy;
}

int tune_logger_end(struct tune_logger *log, const char *status, const char *reason)
{
    log->ended = true;
    char *text = reason ? spelled(log, reason) : NULL;
    int ended = log->waiting ? 0 : reason && !text ? tune_logger_no_memory()
                                                   : tune_run_writer_end(&log->run, status, text, log->last_step);
    free(text);
    return ended;
}

static bool put_hash(cJSON *object, const char *key, uint64_t hash)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return tune_cjson_put_text(object, key, text);
}

/* Header lines that are printed with `verbose` only: what a reader can do without at the start, since
 * the description has it. Warnings are always printed. */
static bool is_detail(const char *key)
{
    static const char *const details[] = {"program", "weights", "data", "evaluation data", "memory", "evaluation", "disk", "averages"};
    return tune_name_find(details, sizeof details / sizeof *details, key) >= 0;
}

/* Print a `#` line, or note its key for tune_logger_tell_hidden. */
static int put_header(struct tune_logger *log, const char *key, const char *text)
{
    if (log->options.quiet)
        return 0;
    if (log->options.verbose || !is_detail(key))
        return tune_line_print(&log->line, strlen(key) < 12 ? "# %-12s %s" : "# %s  %s", key, text); /* it is folded behind two spaces */
    tune_append_item(log->hidden, sizeof log->hidden, "%s", key);
    return 0;
}

int tune_logger_tell_hidden(struct tune_logger *log)
{
    if (!*log->hidden)
        return 0;
    int status = tune_line_print(&log->line, "# %-12s %s: `verbose`", "more", log->hidden);
    *log->hidden = 0;
    return status;
}

/* Begin the description, and print the first lines. */
static int start(struct tune_logger *log)
{
    struct tune_host host;
    tune_host_read(&host);
    TRY(tune_run_writer_begin(&log->run, log->options.program, log->options.settings, &host));
    if (!log->waiting)
        TRY(tune_logger_save(log));
    char text[512];
    snprintf(text, sizeof text, "%s, tune.c %s, %s, on %s, %d cores, %.1f GiB", log->options.program, TUNE_VERSION, TUNE_COMPILER,
             host.class_name, host.cores, (double)host.memory_bytes / (1 << 30));
    TRY(put_header(log, "program", text));
    return put_header(log, "run folder", log->run.folder);
}

static int copy_properties(struct tune_logger *log, const struct tune_property *properties)
{
    int n = 0;
    while (properties && properties[n].name)
        n++;
    log->values = malloc(((size_t)n + 1) * sizeof *log->values);
    for (int i = 0; i < n && log->values; i++)
        log->values[i] = NAN;
    return log->values ? 0 : tune_logger_no_memory();
}

/* Begin with empty sums. In a resumed run, tune_logger_resume does this. */
static int begin(struct tune_logger *log)
{
    const struct tune_logger_options *o = &log->options;
    if (log->waiting)
        return 0;
    if (!(log->writers = tune_writers_open(log->run.folder, o->writers, 0)))
        return -1;
    return o->source ? tune_run_writer_source(&log->run, o->source, o->source_size, 0) : 0;
}

static int tell_failed(void *log, const char *why)
{
    return tune_logger_failed(log, why);
}

struct tune_logger *tune_logger_new(const struct tune_logger_options *options)
{
    struct tune_logger *log = calloc(1, sizeof *log);
    if (!log) {
        tune_logger_no_memory();
        return NULL;
    }
    log->options = *options;
    if (log->options.log_every <= 0)
        log->options.log_every = 1;
    if (log->options.started_s <= 0)
        log->options.started_s = tune_moment_now().wall_s;
    tune_line_start(&log->line, options->stream ? options->stream : stdout);
    log->line.spell = options->spell;
    log->line.flags = options->flags;
    int status = copy_properties(log, options->properties);
    if (status == 0 && options->follows)
        status = tune_run_writer_follow(&log->run, options->folder, options->resume);
    else if (status == 0)
        status = options->resume
                     ? tune_run_writer_reopen(&log->run, options->folder)
                     : tune_run_writer_create(&log->run, options->folder, options->program, options->overwrite);
    log->waiting = options->resume;
    if (status == 0 && start(log) == 0 && begin(log) == 0) {
        if (options->failure) {
            options->failure->tell = tell_failed;
            options->failure->log = log;
        }
        return log;
    }
    struct tune_error why;
    tune_error_save(&why);
    if (status == 0 && log->run.now) /* the folder may exist already and say "running" */
        tune_logger_failed(log, why.text);
    log->ended = true; /* nothing more will be written */
    tune_logger_free(log);
    tune_error_restore(&why); /* the caller shows the error */
    return NULL;
}

void tune_logger_free(struct tune_logger *log)
{
    if (!log)
        return;
    if (!log->ended) {
        struct tune_error before; /* keep the error that ended the run: the caller shows it */
        tune_error_save(&before);
        tune_logger_end(log, "unfinished", NULL);
        tune_error_restore(&before);
    }
    if (log->options.failure)
        log->options.failure->tell = NULL;
    tune_profiler_free(log->profiler);
    free(log->metrics_held);
    cJSON_Delete(log->evaluation);
    cJSON_Delete(log->before);
    tune_writers_free(log->writers);
    tune_sampler_free(log->sampler);
    tune_run_writer_close(&log->run);
    free(log->values);
    free(log);
}

/* The last collectives, as this rank saw them. */
static int put_collectives(struct tune_comm *c, cJSON *object)
{
    struct tune_collective_record records[64];
    int count = tune_comm_history(c, records, sizeof records / sizeof *records);
    cJSON_DeleteItemFromObjectCaseSensitive(object, "collectives");
    cJSON *all = cJSON_AddArrayToObject(object, "collectives");
    for (int i = 0; all && i < count; i++) {
        const struct tune_collective_record *r = &records[i];
        cJSON *one = cJSON_CreateObject();
        if (!cJSON_AddItemToArray(all, one) || !tune_cjson_put_whole(one, "number", r->number) || !tune_cjson_put_whole(one, "step", r->step) ||
            !tune_cjson_put_text(one, "operation", tune_collective_name(r->kind)) || !tune_cjson_put_text(one, "what", r->what) ||
            !tune_cjson_put_whole(one, "count", (int64_t)r->count) || !tune_cjson_put_number(one, "at_s", r->at_s) ||
            !tune_cjson_put_number(one, "waited_s", r->waited_s) || !tune_cjson_put_number(one, "moved_s", r->moved_s) ||
            !cJSON_AddBoolToObject(one, "completed", r->over))
            return tune_logger_no_memory();
    }
    return all ? 0 : tune_logger_no_memory();
}

/* True if the run folder says that the run goes on. */
static bool says_running(const char *folder)
{
    cJSON *run = tune_cjson_read_in(folder, TUNE_RUN_JSON, TUNE_RUN_JSON_MOST);
    const char *status = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "status"));
    bool running = status && !strcmp(status, "running");
    cJSON_Delete(run);
    return running;
}

/* Rank 0 ended or did not come, and the run folder does not say so: another rank writes a file of its own. */
static int write_for_rank_0(struct tune_logger *log, const char *why)
{
    struct tune_comm *c = log->options.comm;
    if (tune_comm_lost(c) != 0 || !says_running(log->run.folder))
        return 0;
    cJSON *json = cJSON_CreateObject();
    bool good = json && tune_cjson_put_whole(json, "rank", tune_comm_rank(c)) && tune_cjson_put_text(json, "reason", why) && put_collectives(c, json) == 0;
    int status = good ? tune_cjson_write(log->run.folder, TUNE_RUN_COLLECTIVES, json, true) : tune_logger_no_memory();
    cJSON_Delete(json);
    return status;
}

int tune_logger_failed(struct tune_logger *log, const char *why)
{
    char text[2048]; /* copy why: it may be the error text, which writing can change */
    struct tune_comm *c = log->options.comm;
    bool ranks = c && tune_comm_size(c) > 1;
    snprintf(text, sizeof text, "%s", why);
    if (log->ended || tune_logger_held(log) < 0) /* the folder is gone, and why says so */
        return 0;
    if (ranks)
        TRY(log->options.follows ? write_for_rank_0(log, text) : put_collectives(c, log->run.now));
    return tune_logger_end(log, "failed", text);
}

int tune_logger_held(const struct tune_logger *log)
{
    return tune_run_writer_held(&log->run);
}

int64_t tune_logger_last_step(const struct tune_logger *log)
{
    return log->written_step;
}

const cJSON *tune_logger_description(const struct tune_logger *log)
{
    return log->run.now;
}

double tune_logger_loss(const struct tune_logger *log)
{
    return log->loss_last;
}

const char *tune_logger_folder(const struct tune_logger *log)
{
    return log->run.folder;
}

int tune_logger_header(struct tune_logger *log, const char *key, const char *text)
{
    log->run_changed = true;
    return put_header(log, key, text);
}

bool tune_logger_put_message(struct tune_logger *log, cJSON *object, const char *key, const char *text)
{
    char *copy = spelled(log, text);
    bool good = copy && tune_cjson_put_text(object, key, copy);
    free(copy);
    return good;
}

int tune_logger_note(struct tune_logger *log, const char *key, const char *text)
{
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(log->run.now, "notes");
    if (!notes)
        notes = cJSON_AddObjectToObject(log->run.now, "notes");
    if (!tune_logger_put_message(log, notes, key, text))
        return tune_logger_no_memory();
    return tune_logger_header(log, key, text);
}

static int ranks_of(const cJSON *run)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(run, "ranks");
    return cJSON_IsNumber(n) ? n->valueint : 1;
}

int tune_logger_device(struct tune_logger *log, int threads, const char *description)
{
    TRY(tune_cjson_put_whole(log->run.now, "threads", threads) ? 0 : tune_logger_no_memory());
    TRY(tune_logger_note(log, "device", description));
    if (ranks_of(log->run.before) == ranks_of(log->run.now)) {
        TRY(tune_logger_compare(log, "threads", NULL, "the number of threads (`threads`)"));
        TRY(tune_logger_warn_of(log, "notes", "device", "the processor or its matrix kernel"));
    }
    return tune_logger_warn_of(log, "build", "id", "the build of the program");
}

int tune_logger_weights(struct tune_logger *log, const char *folder, const struct tune_model_identity *identity)
{
    char text[TUNE_PATH_MAX + 256];
    const char *what = identity->random ? "random" : *identity->revision ? identity->revision : "unknown revision";
    bool good = tune_cjson_put_text(log->run.now, "weights", what) && put_hash(log->run.now, "weights_hash", identity->fingerprint) &&
                tune_cjson_put_text(log->run.now, "weights_folder", folder);
    if (good && identity->random)
        good = tune_cjson_put_whole(log->run.now, "weights_seed", identity->seed);
    if (!good)
        return tune_logger_no_memory();
    TRY(tune_logger_compare(log, "weights_hash", NULL, "the weights of `model` (their hash)"));
    snprintf(text, sizeof text, "%s, %s, hash %016" PRIx64, folder, identity->random ? "RANDOM" : what, identity->fingerprint);
    return tune_logger_header(log, identity->random ? "random weights" : "weights", text);
}

/* The file must be unchanged, because other rows mean other steps. The rows of the training file
 * are compared later, by tune_logger_data_agrees: rows that were not read yet may differ. */
static int compare_data(struct tune_logger *log, const char *member, const char *option)
{
    char what[128];
    snprintf(what, sizeof what, "the file of %s: its number of rows", option);
    TRY(tune_logger_compare(log, member, "rows", what));
    if (strcmp(member, "data") != 0)
        TRY(tune_logger_compare_file(log, member, option));
    TRY(tune_logger_compare(log, member, "chat_template", "the content of the chat template"));
    return tune_logger_compare(log, member, "prompt_template", "the content of `prompt_template`");
}

/* Each of several joined sets. */
static bool put_sets(cJSON *d, struct tune_dataset *data)
{
    int count = tune_dataset_sets(data);
    cJSON *list = count > 1 ? cJSON_AddArrayToObject(d, "sets") : NULL;
    bool good = count == 1 || list;
    for (int k = 0; good && list && k < count; k++) {
        const struct tune_dataset *set = tune_dataset_set(data, k);
        const char *path = tune_dataset_path(set), *about = tune_dataset_about(set);
        cJSON *one = cJSON_CreateObject();
        good = one && tune_cjson_put_text(one, "path", path ? path : "the program's own rows") &&
               tune_cjson_put_whole(one, "rows", tune_dataset_rows(set)) && put_hash(one, "fingerprint", tune_dataset_fingerprint(set)) &&
               tune_cjson_put_text(one, "format", about ? about : "");
        good = cJSON_AddItemToArray(list, one) && good;
    }
    return good;
}

static int put_data(struct tune_logger *log, const char *member, const char *path, struct tune_dataset *data)
{
    char text[TUNE_PATH_MAX + 128];
    bool training = !strcmp(member, "data");
    const struct tune_file_stamp *stamp = tune_dataset_stamp(data);
    uint64_t fingerprint = tune_dataset_fingerprint(data);
    int64_t rows = tune_dataset_rows(data);
    cJSON *d = cJSON_CreateObject();
    bool good = tune_cjson_put_text(d, "path", stamp ? path : "the program's own rows") && tune_cjson_put_whole(d, "rows", rows) &&
                (stamp ? put_hash(d, "fingerprint", fingerprint) && tune_cjson_put_whole(d, "size", stamp->size) &&
                         tune_cjson_put_text(d, "modified", stamp->modified)
                       : tune_cjson_put_text(d, "fingerprint", ""));
    const char *format = tune_dataset_format(data);
    good = (!format || tune_cjson_put_text(d, "format", format)) && good;
    uint64_t prompt = tune_dataset_prompt_hash(data), chat = tune_dataset_chat_hash(data);
    good = (prompt ? put_hash(d, "prompt_template", prompt) : tune_cjson_put_text(d, "prompt_template", "none")) && good;
    good = (chat ? put_hash(d, "chat_template", chat) : tune_cjson_put_text(d, "chat_template", "none")) && good;
    good = (stamp ? put_hash(d, "hash", tune_dataset_hash(data)) : tune_cjson_put_text(d, "hash", "")) && good;
    good = put_sets(d, data) && good;
    if (!tune_cjson_put(log->run.now, member, d) || !good)
        return tune_logger_no_memory();
    bool general = !strcmp(member, "general_data");
    TRY(compare_data(log, member, training ? "`dataset`" : general ? "`general_dataset`" : "`eval_dataset`"));
    int n = snprintf(text, sizeof text, "%s, %" PRId64 " rows", stamp ? path : "the program's own", rows);
    if (stamp && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", fingerprint %016" PRIx64, fingerprint);
    return tune_logger_header(log, training ? "data" : general ? "general data" : "evaluation data", text);
}

int tune_logger_data(struct tune_logger *log, const char *path, struct tune_dataset *data)
{
    return put_data(log, "data", path, data);
}

int tune_logger_eval_data(struct tune_logger *log, const char *path, struct tune_dataset *data)
{
    return put_data(log, "eval_data", path, data);
}

int tune_logger_general_data(struct tune_logger *log, const char *path, struct tune_dataset *data)
{
    return put_data(log, "general_data", path, data);
}

int tune_logger_watch(struct tune_logger *log, const char *gpus, const char *own, int all)
{
    struct tune_gpus *g = NULL;
    log->gpus = all;
    if (log->gpus > 0 && !(g = tune_gpus_open(gpus)) && own && strcmp(own, gpus) && (g = tune_gpus_open(own)))
        TRY(tune_logger_note(log, "figures of GPUs", "of this rank's GPU alone, because the GPUs of other ranks cannot be read; gpu_energy assumes "
                                                     "the same power for each"));
    else if (log->gpus > 0 && !g)
        TRY(tune_logger_note(log, "warning: no figures of GPUs", tune_error_message()));
    log->sampler = tune_sampler_new(g);
    return log->sampler ? 0 : -1;
}

int tune_logger_planned(struct tune_logger *log, int64_t steps)
{
    log->run_changed = true;
    return tune_cjson_put_whole(log->run.now, "planned_steps", steps) ? 0 : tune_logger_no_memory();
}

int tune_logger_memory(struct tune_logger *log, const struct tune_memory_plan *plan)
{
    char text[512];
    cJSON *parts = cJSON_CreateObject();
    bool good = parts != NULL;
    for (int i = 0; i < plan->count; i++)
        good = good && tune_cjson_put_whole(parts, plan->parts[i].name, plan->parts[i].bytes);
    if (!tune_cjson_put(log->run.now, "memory", parts) || !good)
        return tune_logger_no_memory();
    tune_logger_know(log, "estimated_memory_bytes", (double)plan->total);
    tune_logger_know(log, "estimated_device_bytes", (double)plan->device);
    return tune_logger_header(log, "memory", tune_memory_plan_text(plan, text, sizeof text));
}

/* ---- steps ---- */

/* Write the object and free it. good: nothing failed while it was built. step: the last step in the
 * metrics after this line. */
static int write_metrics(struct tune_logger *log, cJSON *json, bool good, int64_t step)
{
    char *text = good ? tune_run_writer_row(&log->run, json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return good ? -1 : tune_logger_no_memory();
    log->written_step = step; /* even if one of the other files fails */
    int status = tune_writers_line(log->writers, text, strlen(text));
    cJSON_free(text);
    return status;
}

/* Mark the run as diverged, or as failed if its weights were bad before, with the reason. The error text stays for the caller. */
static int diverged(struct tune_logger *log, const struct tune_step_record *r)
{
    struct tune_error why;
    bool before = r->step == 1 && !isfinite(r->loss_sum); /* nothing was trained yet, so --lr cannot
                                                           * be the cause */
    if (before)
        tune_error_set("diverged at step 1: the loss is not finite before any weight was changed; look for NaN, infinite or "
                       "very large values in the model's weights, and at its config.json");
    else
        tune_error_set("diverged at step %" PRId64 ": the %s is not finite (that step left the weights as they were); lower "
                       "`lr` (it was %g), or raise `warmup_steps` or lower `clip_norm`", r->step,
                       isfinite(r->loss_sum) ? "gradient" : "loss", r->lr);
    tune_error_save(&why);
    tune_logger_end(log, before ? "failed" : "diverged", why.text);
    tune_error_restore(&why);
    return -1;
}

/* Called only for logged steps, so it does not slow down a run without until_stable. */
static void look_at_speed(struct tune_logger *log)
{
    if (log->options.until_stable <= 0 || !log->options.stable)
        return;
    struct tune_stable_speed v = tune_stable_speed(&log->stable);
    if (v.steps > 0 && v.half_width <= v.mean * log->options.until_stable / 100)
        *log->options.stable = true;
}

static void count(struct tune_logger *log, const struct tune_step_record *r, double loss)
{
    if (log->steps++ == 0)
        log->loss_first = loss;
    if (log->own_steps++ == 0) {
        log->begin = r->begin;
        log->first_end_s = r->end.wall_s;
        log->line.stop = log->options.stop_signal; /* from here on there is work to save */
    }
    log->end = r->end;
    log->last_step = r->step;
    log->loss_last = loss;
    log->lr_last = r->lr;
    log->rows += r->rows;
    log->tokens += r->tokens;
    log->padded_tokens += r->padded_tokens;
    log->line_steps++;
    log->line_tokens += r->tokens;
    log->line_s += r->end.wall_s - r->begin.wall_s;
    tune_stable_add(&log->stable, (double)r->tokens, r->end.wall_s - r->begin.wall_s);
}

/* Remaining steps at the pace so far (evaluations and saves included), or to the time limit if that is sooner. */
static double eta(const struct tune_logger *log, const struct tune_progress *at)
{
    double gone = log->end.wall_s - log->begin.wall_s, left = -1;
    if (at->planned_steps > 0 && log->own_steps > 0)
        left = gone / (double)log->own_steps * (double)(at->planned_steps - at->step);
    double limit = log->options.stop_after_seconds;
    if (limit > 0 && (left < 0 || limit - gone < left))
        left = limit > gone ? limit - gone : 0;
    return left;
}

static int show(struct tune_logger *log, const struct tune_progress *at, const struct tune_step_record *r, double loss)
{
    struct tune_line_step s = {.step = r->step, .planned = at->planned_steps, .loss = loss, .norm = r->grad_norm,
                               .lr = r->lr, .eta_s = eta(log, at), .own = log->own, .diverged = tune_logger_diverged(log)};
    s.step_s = log->line_steps ? log->line_s / (double)log->line_steps : 0;
    s.tokens_per_s = log->line_s > 0 ? (double)log->line_tokens / log->line_s : 0;
    log->line_steps = log->line_tokens = 0;
    log->line_s = 0;
    tune_logger_see_memory(log);
    TRY(tune_logger_tell_hidden(log));
    return log->options.quiet ? 0 : tune_line_step(&log->line, &s, r->end.wall_s);
}

int tune_logger_record(struct tune_logger *log, const struct tune_progress *at, const struct tune_step_record *r)
{
    double seconds = r->end.wall_s - r->begin.wall_s, by = r->divisor != 0 ? r->divisor : r->labels;
    double loss = by > 0 ? r->loss_sum / by : NAN;
    if (log->waiting) {
        tune_error_set("`resume`: this program trains without going on from a checkpoint: call tune_checkpoint_resume before its "
                       "first step, as recipes/finetune_full.c does");
        return -1;
    }
    if (r->not_finite || !isfinite(r->loss_sum) || !isfinite(r->grad_norm))
        return diverged(log, r);
    if (!isfinite(loss)) {
        tune_error_set("step %" PRId64 " has no label to train on, so no loss", r->step);
        return -1;
    }
    if (log->run_changed)
        TRY(tune_logger_save(log));
    count(log, r, loss);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", r->step) && tune_cjson_put_number(json, "loss", loss) &&
                tune_cjson_put_number(json, "grad_norm", r->grad_norm) && tune_cjson_put_number(json, "lr", r->lr) &&
                tune_cjson_put_number(json, "step_s", seconds) && tune_cjson_put_number(json, "elapsed_s", tune_logger_elapsed(log)) &&
                tune_cjson_put_whole(json, "rows", r->rows) && tune_cjson_put_whole(json, "tokens", r->tokens) &&
                tune_cjson_put_whole(json, "padded_tokens", r->padded_tokens) &&
                tune_cjson_put_whole(json, "labels", (int64_t)r->labels) &&
                tune_cjson_put_number(json, "tokens_per_s", seconds > 0 ? (double)r->tokens / seconds : 0) &&
                tune_cjson_put_number(json, "epoch", r->epoch);
    if (!log->record) /* a loop of a foreign program that calls this itself */
        tune_logger_stamp_metrics(log, r->step);
    good = good && tune_logger_put_metrics(log, json, r->step);
    TRY(write_metrics(log, json, good, r->step));
    look_at_speed(log);
    int change = tune_trend_add(&log->trend, loss);
    TRY(at->step == r->step ? show(log, at, r, loss) : 0);
    return tune_logger_rose(log, change);
}

bool tune_logger_keep_evaluation(struct tune_logger *log, const struct cJSON *json, int64_t step)
{
    cJSON **kept[] = {&log->evaluation, step == 0 ? &log->before : NULL};
    for (size_t i = 0; i < sizeof kept / sizeof *kept && kept[i]; i++) {
        cJSON_Delete(*kept[i]);
        *kept[i] = cJSON_Duplicate(json, true);
    }
    log->eval_step = step;
    log->evaluated = true;
    return log->evaluation && (step != 0 || log->before);
}

/* Tell the line of an evaluation which one is the best. */
static void say_best(const struct tune_progress *at, char *text, size_t size)
{
    bool loss = !*at->best_by || !strcmp(at->best_by, "loss");
    *text = 0;
    if (at->best && at->step > 0)
        snprintf(text, size, " | best");
    else if (!at->best && loss)
        snprintf(text, size, " | best %.4f at step %" PRId64, at->best_loss, at->best_step);
    else if (!at->best)
        snprintf(text, size, " | best %s %.4g at step %" PRId64, at->best_by, at->best_value, at->best_step);
}

int tune_logger_evaluation(struct tune_logger *log, const struct tune_progress *at, const struct tune_eval_metric *metrics,
                           int count)
{
    enum { SHOWN = 8 };
    char best[128], text[SHOWN * 80] = "", name[80];
    int shown = 0;
    if (log->evaluated && at->eval_step == log->eval_step)
        return 0;
    if (!isfinite(at->eval_loss))
        return tune_error_set("the evaluation at step %" PRId64 " gave a loss that is not finite; lower `lr`", at->eval_step);
    tune_logger_see_memory(log);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", at->eval_step) && tune_cjson_put_number(json, "eval_loss", at->eval_loss);
    for (int i = 0; good && i < count; i++) {
        snprintf(name, sizeof name, "eval_%s", metrics[i].name);
        good = !isfinite(metrics[i].value) || tune_cjson_put_number(json, name, metrics[i].value);
        if (metrics[i].shown && shown++ < SHOWN)
            tune_append(text, sizeof text, " | %s %.4g", metrics[i].name, metrics[i].value);
    }
    good = tune_logger_keep_evaluation(log, json, at->eval_step) && good;
    TRY(write_metrics(log, json, good, log->written_step));
    tune_logger_settle(log);
    say_best(at, best, sizeof best);
    TRY(tune_logger_tell_hidden(log));
    return log->options.quiet ? 0 : tune_line_print(&log->line, "eval %" PRId64 " | loss %7.4f%s%s",
                                                     at->eval_step, at->eval_loss, text, best);
}

/* The last characters of a text, at most `most` bytes of it. */
static const char *tail(const char *text, size_t most)
{
    size_t size = strlen(text), at = size > most ? size - most : 0;
    while (at > 0 && at < size && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    return text + at;
}

int tune_logger_preview(struct tune_logger *log, const struct tune_progress *at, int64_t row, const char *prompt,
                       const char *answer, const char *end)
{
    enum { SHOWN = 40 };
    char shown[SHOWN * 2 + 1], said[400];
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", at->step) && tune_cjson_put_whole(json, "row", row) &&
                tune_cjson_put_text(json, "prompt", prompt) && tune_cjson_put_text(json, "answer", answer) &&
                tune_cjson_put_text(json, "end", end);
    int status = good ? tune_run_writer_preview(&log->run, json) : tune_logger_no_memory();
    cJSON_Delete(json);
    TRY(status);
    snprintf(shown, sizeof shown, "%s%s", strlen(prompt) > SHOWN ? "..." : "", tail(prompt, SHOWN));
    snprintf(said, sizeof said, "%s", answer);
    tune_utf8_mend(said, strlen(said)); /* it may be cut inside a character */
    tune_blank_controls(shown);
    tune_blank_controls(said);
    return log->options.quiet ? 0 : tune_line_print(&log->line, "preview %" PRId64 " | %s | %s", at->step, shown, said);
}

/* Print the table as `#` lines. */
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

/* How much of the ranks' exchanges ran beside the step. */
static int print_overlap(struct tune_logger *log)
{
    double took_s = 0, waited_s = 0;
    if (!log->options.comm || tune_comm_size(log->options.comm) == 1)
        return 0;
    tune_comm_overlap(log->options.comm, &took_s, &waited_s);
    if (!(took_s > 0))
        return 0;
    return tune_line_print(&log->line, "# %-12s gradients moved for %.3f s so far; steps waited for %.3f s of it, and %.0f %% ran beside backward",
                           "ranks", took_s, waited_s, waited_s < took_s ? 100 * (1 - waited_s / took_s) : 0);
}

int tune_logger_profile(struct tune_logger *log, const struct tune_progress *at)
{
    struct tune_profiler *prof = log->profiler;
    if (!prof || log->profiled)
        return 0;
    int done = at ? tune_profiler_step(prof, at) : tune_profiler_end(prof);
    log->profiled = !at || done == 1;
    const struct tune_profile *result = tune_profiler_result(prof);
    bool none = !at && result->asked > 0 && result->last == 0; /* the run was too short; the table
                                                                * says that */
    if (done < 0 || (done == 0 && !none))
        return done;
    if (!none) {
        TRY(tune_logger_held(log));
        TRY(log->run.follows ? 0 : tune_profiler_write(prof, log->run.folder));
    }
    if (log->options.quiet)
        return 0;
    char *table = tune_profiler_table(prof);
    int status = table ? print_table(log, table) : -1;
    free(table);
    if (status < 0 || none)
        return status;
    TRY(print_overlap(log));
    return tune_line_print(&log->line, "# %-12s %s/profile.txt, profile.json, profile.trace.json", "profile", log->run.folder);
}
