/* logger.h - print the lines of a run, and write its run folder while it goes on.
 *
 * runs/run_folder.h documents the folder: the description of the run, its metrics, its report.
 *
 * This is the one component that may print: `#` lines, then one line per logged step. In a terminal
 * it draws a bar in place. It never overwrites: the folder is new, or was removed first on request.
 * Figures count finished steps, never planned ones. Example (a foreign loop):
 *
 *     struct tune_logger_options o = {.program = "mine", .folder = "runs/a"};
 *     struct tune_logger *log = tune_logger_new(&o);
 *     ... one step, with a record (devices/record.h) ...
 *     tune_logger_metric(log, "accuracy", right / all);      beside the step's loss
 *     tune_logger_step(log, &at, record);
 *     tune_logger_report(log, &at);
 *     tune_logger_free(log); */
#ifndef TUNE_LOGGER_H
#define TUNE_LOGGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/progress.h"
#include "loggers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_failure;
struct tune_flags;
struct tune_loader;
struct tune_memory_plan;
struct tune_model;
struct tune_record;
struct tune_model_identity;
struct tune_property;
struct tune_logger;
struct cJSON;

/* tune_logger_new - make the run folder, describe the run in it (status "running"), and print the
 * first `#` lines. NULL with an error: the folder exists, or is no run folder to overwrite, or
 * cannot be written.
 * tune_logger_free - a run that was not reported is marked "unfinished". */
struct tune_logger *tune_logger_new(const struct tune_logger_options *options);
void tune_logger_free(struct tune_logger *log);

/* tune_logger_failed - mark the run failed, with the reason; one that ended is left as it is. Of
 * several ranks, the description gets "collectives": the last ones of rank 0, the newest last. If
 * rank 0 says nothing any more, another rank writes its own into collectives.json. */
int tune_logger_failed(struct tune_logger *log, const char *why);

/* tune_logger_held - 0, or -1 with an error: the run folder was moved or removed meanwhile, so
 * nothing should be written there. The logger asks this itself before it writes. */
int tune_logger_held(const struct tune_logger *log);

/* tune_logger_folder - the run folder; borrowed until free. */
const char *tune_logger_folder(const struct tune_logger *log);

/* tune_logger_description - the description of the run so far (runs/run_folder.h); borrowed until
 * the next call.
 * tune_logger_loss - the loss of the last step in the metrics. */
const struct cJSON *tune_logger_description(const struct tune_logger *log);
double tune_logger_loss(const struct tune_logger *log);

/* tune_logger_note, _device, _weights, _data, _eval_data, _general_data - record what the run
 * depends on. Each prints a `#` line and writes a member of the description: "notes" {key: text},
 * "weights", "data", "eval_data", "general_data". Call them before the first step, with the folder
 * and path that were opened. In a resumed run, _weights and those of data compare with the earlier
 * values (hash, rows, fingerprint, size, modification time), like tune_logger_changed. The training
 * file may differ in all but its rows until tune_logger_data_agrees. _device compares the number of
 * threads, on which the order of sums depends, if there are as many ranks as before. Another
 * processor or build of the program gives a warning. */
int tune_logger_note(struct tune_logger *log, const char *key, const char *text);
int tune_logger_device(struct tune_logger *log, int threads, const char *description);
int tune_logger_weights(struct tune_logger *log, const char *folder,
                        const struct tune_model_identity *identity);
int tune_logger_data(struct tune_logger *log, const char *path, struct tune_dataset *data);
int tune_logger_eval_data(struct tune_logger *log, const char *path,
                          struct tune_dataset *data);
int tune_logger_general_data(struct tune_logger *log, const char *path,
                             struct tune_dataset *data);

/* Resuming a run (options.resume). tune_logger_new reserves the folder and reads the description.
 * It is an error if another process has it. Nothing there changes until tune_logger_resume.
 * tune_logger_changed - report that something differs from the run: what, its earlier value and its
 * value now. With allow_changed the session notes it, and the result is 0. Otherwise -1 with an
 * error of kind USAGE. In a new run it does nothing.
 * tune_logger_resume - drop the metrics of steps after at->step, and of evaluations after
 * at->eval_step. Add the remaining ones to the logger's sums. Remove the report and leftovers of a
 * killed process. Mark the run as running. In a new run it does nothing. -1 with an error: the
 * metrics end earlier (nothing was changed then), or files cannot be written. */
int tune_logger_changed(struct tune_logger *log, const char *what, const char *was,
                        const char *now);
int tune_logger_resume(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_data_differs - in a resumed run: whether the data file differs.
 * tune_logger_data_agrees - if it does, call this before tune_logger_resume. It tells whether the
 * rows consumed are unchanged (1), changed (0) or unknown (-1). Unchanged rows are noted, and the
 * result is 0; otherwise the result is that of tune_logger_changed. */
bool tune_logger_data_differs(const struct tune_logger *log);
int tune_logger_data_agrees(struct tune_logger *log, int64_t rows, int agrees);

/* tune_logger_last_step - the last step in the metrics. */
int64_t tune_logger_last_step(const struct tune_logger *log);

/* tune_logger_sync - sync the metrics to the disk, before a checkpoint that belongs to them gets
 * its name. */
int tune_logger_sync(struct tune_logger *log);

/* tune_logger_watch - start to sample machine and GPUs (profilers/sampler.h), for
 * cpu_memory_utilization and gpu_*. gpus: PCI bus ids of this machine, separated by commas;
 * NULL: none, and their figures are 0. own: of this process, if those of others cannot be read;
 * NULL: no such. all: GPUs of the run, on all machines. Rates of one GPU are
 * the run's, divided by that. gpu_energy takes GPUs of other machines to be like the ones here. If
 * this is not called, the memory in use at the end is reported. -1 with an error: no thread. */
int tune_logger_watch(struct tune_logger *log, const char *gpus, const char *own, int all);

/* tune_logger_planned - put the planned steps into the description. -1 with an error: no memory. */
int tune_logger_planned(struct tune_logger *log, int64_t steps);

/* tune_logger_run - all of the above for a training run: device, model, weights, data, planned
 * steps, memory. Of a new run on a file, it reads the rows (datasets/survey.h), warns of surprises,
 * and estimates the time. It sets model_load_time, tells the report the model's FLOPs, and makes
 * the profiler of --profile. plan NULL: no line about memory. All are borrowed until
 * tune_logger_report; the device must outlive the logger. */
int tune_logger_run(struct tune_logger *log, const struct tune_flags *flags,
                    struct tune_model *model, struct tune_dataset *data,
                    const struct tune_loader *load, const struct tune_memory_plan *plan);

/* tune_logger_memory - log the memory plan: a line, "memory" {part: bytes} in the description, and
 * estimated_memory_bytes. */
int tune_logger_memory(struct tune_logger *log, const struct tune_memory_plan *plan);

/* tune_logger_say - print a line of your own; in a terminal it stands above the bar. */
int tune_logger_say(struct tune_logger *log, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_logger_metric - add a number of your own to the current step's line of metrics. So
 * metrics.csv, TensorBoard and `runs plot --metric name` have it. Call it before tune_logger_step
 * or _record. A second value for a name replaces the first. -1 with an error: a bad name (empty,
 * over 47 bytes, other characters than letters, digits and _ - . /, or one of the logger's own), a
 * value that is not finite, or more than 48 in one step. */
int tune_logger_metric(struct tune_logger *log, const char *name, double value);

/* A finished step. Counts are of this step alone. */
struct tune_step_record {
    int64_t step;            /* 1, 2, ... */
    int64_t rows, tokens;    /* rows consumed, and their tokens */
    int64_t padded_tokens;   /* positions computed */
    double labels;           /* trained tokens */
    double epoch;            /* epochs done after it */
    double loss_sum;         /* loss before division: sum of -log p, nats, or a recipe's own */
    double divisor;          /* divisor of loss_sum for "loss"; 0: labels */
    double grad_norm, lr;
    bool not_finite;         /* loss or gradient was not finite; the weights are unchanged */
    struct tune_moment begin, end;
};

/* tune_logger_record - log a finished step: an object in the metrics, and a line or the bar if
 * at->step is this step. at gives planned_steps. A loss that has risen by now, or came back, is
 * noted (trend.h). -1 with an error: a file cannot be written, or the step was not finite. Then the
 * error says what to do, and the status is "diverged". */
int tune_logger_record(struct tune_logger *log, const struct tune_progress *at,
                       const struct tune_step_record *r);

/* tune_logger_step - the step at->step is queued on the device. Every options.log_every steps the
 * finished ones are logged; the others wait in the record. It must outlive the logger. Also tells
 * the profiler of --profile.
 * tune_logger_catch_up - wait for the device and log every finished step now. Evaluations and
 * checkpoints call it, so their lines follow their step's. At the run's end it also finishes the
 * profile. */
int tune_logger_step(struct tune_logger *log, const struct tune_progress *at,
                     struct tune_record *record);
int tune_logger_catch_up(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_settle - in a profile, add the work since tune_logger_step to the step that it ended.
 * Call it after an evaluation or a save. */
void tune_logger_settle(struct tune_logger *log);

/* A number of an evaluation besides its loss. */
struct tune_eval_metric {
    const char *name; /* logged as eval_<name> */
    double value;
    bool shown;       /* in the line, too */
};

/* tune_logger_evaluation - log at->eval_loss of at->eval_step: an object {step, eval_loss,
 * eval_<name>, ...} and a line with the loss and the first eight metrics that are shown. Metrics
 * that are not finite are left out. The report has all numbers of the last evaluation. It has those
 * of step 0 under names that begin with before_. */
int tune_logger_evaluation(struct tune_logger *log, const struct tune_progress *at,
                           const struct tune_eval_metric *metrics, int count);

/* tune_logger_preview - keep the model's answer to prompt number row at at->step, and print a line.
 * The texts are UTF-8; end as in generators/answers.h. */
int tune_logger_preview(struct tune_logger *log, const struct tune_progress *at, int64_t row,
                       const char *prompt, const char *answer, const char *end);

/* tune_logger_good_step - the last step whose new weights had a low loss, before the loss began to
 * rise. 0: there is none. While the loss does not rise, it is one of the last steps, or the one
 * with the lowest smoothed loss. */
int64_t tune_logger_good_step(const struct tune_logger *log);

/* tune_logger_flops - set the model FLOPs per trained token in rows of T tokens: per_token +
 * per_length * T. For model_flops_per_second. */
void tune_logger_flops(struct tune_logger *log, double per_token, double per_length);

/* tune_logger_property - set a measured property for the report, or replace its value. -1 with an
 * error: the program's table does not declare it, or it is not finite. */
int tune_logger_property(struct tune_logger *log, const char *name, double value);

/* tune_logger_report - log the remaining steps (tune_logger_catch_up), and the counts of the data
 * set: rows read, cut, and left out by reason. Then write the properties that the program declares,
 * the report and the closing lines. The status is "finished" (with a reason if it was an early
 * stop), "stopped" (why and where) or "diverged". Diverged means that the loss had risen (trend.h)
 * at the end, or where options.stop_on_divergence ended the run; at->diverged is set. Runs that are
 * not saved (options.unsaved) measure speed, and diverge only with that option. Figures of a
 * resumed run count all its steps. The time between processes does not count. Memory and processor
 * time are those of this process. Properties set by tune_logger_property stay; declared ones
 * without a value are left out. -1 with an error also if the data file changed meanwhile. */
int tune_logger_report(struct tune_logger *log, struct tune_progress *at);

/* tune_get_logger - the logger that the options describe. The description gets argv, the command
 * line and every option with its source. It refuses to remove a folder that holds the model, the
 * data or a config file. */
struct tune_logger *tune_get_logger(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
