/* logger.h - the lines on the screen, and what the run folder says about the run and when.
 *
 * runs/run_folder.h documents the folder: the description of the run, its metrics, its report.
 *
 * The one component that may print: `#` lines, then one line per logged step; in a terminal a
 * bar drawn in place. Nothing is ever written over: the folder is new, or removed first when
 * that was asked for. Figures count finished steps, never planned ones. Example (a foreign loop):
 *
 *     struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "mine", .folder = "runs/a"});
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

/* tune_logger_failed - mark the run failed, with the reason; one that ended is left as it is. */
int tune_logger_failed(struct tune_logger *log, const char *why);

/* tune_logger_held - 0, or -1: the run folder was moved or removed meanwhile, and nothing shall be written under its name. What
 * the logger writes it asks for itself. */
int tune_logger_held(const struct tune_logger *log);

/* tune_logger_folder - the run folder; borrowed until free. */
const char *tune_logger_folder(const struct tune_logger *log);

/* Record what the run depends on: a `#` line each, and a member of the description ("notes" {key:
 * text}, "weights", "data", "eval_data"). Call them before the first step, with folder and path as
 * they were opened. In a resumed run, _weights, _data and _eval_data compare with the earlier
 * values (hash, rows, fingerprint, size, modification time), like tune_logger_changed. The training
 * file may differ in all but its rows until tune_logger_data_agrees. _device compares the number of
 * threads, on which the order of sums depends. Another processor or build of the program gives a
 * warning. */
int tune_logger_note(struct tune_logger *log, const char *key, const char *text);
int tune_logger_device(struct tune_logger *log, int threads, const char *description);
int tune_logger_weights(struct tune_logger *log, const char *folder, const struct tune_model_identity *identity);
int tune_logger_data(struct tune_logger *log, const char *path, const struct tune_dataset *data);
int tune_logger_eval_data(struct tune_logger *log, const char *path, const struct tune_dataset *data);

/* Going on with a run (options.resume). tune_logger_new takes hold of its folder (an error: another process has it) and reads
 * the description; until tune_logger_resume nothing there is changed.
 * tune_logger_changed - something is not what it was in the run: 0 and noted in the session where allow_changed, else -1
 *   with kind USAGE, naming what, was and now. In a new run nothing: 0.
 * tune_logger_resume - the metrics are cut back to at->step (with the evaluation at->eval_step, if it was of that step), what
 *   stands is added to the logger's sums, the report and what a killed process left half-written are removed, the description
 *   says that it runs again. -1: the metrics cannot be read that far (nothing was changed then), the files cannot be written. In
 *   a new run there is nothing to do. */
int tune_logger_changed(struct tune_logger *log, const char *what, const char *was, const char *now);
int tune_logger_resume(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_data_differs - in a run that is gone on with: the training data's file is not the
 * one it had. tune_logger_data_agrees - then, before tune_logger_resume: the rows consumed are
 * what they were (1), are not (0), or that is not known (-1). 0: noted where they are; else as
 * tune_logger_changed. */
bool tune_logger_data_differs(const struct tune_logger *log);
int tune_logger_data_agrees(struct tune_logger *log, int64_t rows, int agrees);

/* tune_logger_last_step - the last step that the metrics have. */
int64_t tune_logger_last_step(const struct tune_logger *log);

/* tune_logger_sync - the metrics so far are on the disk: before a checkpoint that stands on them gets its name. */
int tune_logger_sync(struct tune_logger *log);

/* tune_logger_watch - from now on, for cpu_memory_utilization and gpu_*: what the machine and the GPUs do (profilers/sampler.h).
 * gpus: their PCI bus ids, separated by commas; NULL: none, and their figures are 0. A loop that does not call it reports
 * the memory in use at its end. -1: no thread. */
int tune_logger_watch(struct tune_logger *log, const char *gpus);

/* tune_logger_planned - the steps planned, into the description. -1: no memory. */
int tune_logger_planned(struct tune_logger *log, int64_t steps);

/* tune_logger_run - all of that for a training run: device, model, weights, data, steps planned, memory. Sets model_load_time
 * and lets the report know the model's FLOPs; makes the profiler of --profile. plan NULL: no line about memory. All are borrowed
 * until tune_logger_report; the device must outlive the logger. */
int tune_logger_run(struct tune_logger *log, const struct tune_flags *flags, struct tune_model *model,
                    const struct tune_dataset *data, const struct tune_loader *load, const struct tune_memory_plan *plan);

/* tune_logger_memory - the memory plan: a line, a member "memory" {part: bytes} of the description, estimated_memory_bytes. */
int tune_logger_memory(struct tune_logger *log, const struct tune_memory_plan *plan);

/* tune_logger_say - a line of your own; in a terminal it stands above the bar. */
int tune_logger_say(struct tune_logger *log, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_logger_metric - a number of your own for the step at hand: into its line of the metrics, so also into metrics.csv,
 * TensorBoard and `runs plot --metric name`. Call it before the step's tune_logger_step (or _record). A second value for the
 * same name in one step replaces the first. -1: the name is empty, longer than 47 bytes, holds anything but letters, digits
 * and _ - . /, or is one of the logger's own; the value is not finite; more than 48 in one step. */
int tune_logger_metric(struct tune_logger *log, const char *name, double value);

/* One finished step. Counts are this step's own. */
struct tune_step_record {
    int64_t step;            /* 1, 2, ... */
    int64_t rows, tokens;    /* rows consumed, their tokens */
    int64_t padded_tokens;   /* positions computed */
    double labels;           /* trained tokens */
    double epoch;            /* after it */
    double loss_sum;         /* before its division: -log p summed over the labels, nats, or a recipe's own */
    double divisor;          /* what loss_sum is divided by for "loss"; 0: labels */
    double grad_norm, lr;
    bool not_finite;         /* the loss or the gradient was; the step left the weights alone */
    struct tune_moment begin, end;
};

/* tune_logger_record - one object into the metrics; a line, or the bar, if at->step is this step. at: for planned_steps.
 * -1: the step was not finite (the run diverged: says at which step, and what to do), or a file cannot be written. */
int tune_logger_record(struct tune_logger *log, const struct tune_progress *at, const struct tune_step_record *r);

/* tune_logger_step - the step at->step was handed to the device. Each options.log_every steps (--log-every) the finished ones
 * are logged; the others wait in the record, which is borrowed until free. Tells the profiler of --profile, too.
 * tune_logger_catch_up - log every finished step now, through tune_logger_record; waits for the device. Evaluations and
 * checkpoints call it, so their lines follow their step's. At the run's end (at->finished, at->stopped) the profile as well. */
int tune_logger_step(struct tune_logger *log, const struct tune_progress *at, struct tune_record *record);
int tune_logger_catch_up(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_settle - in a profile, what was done since tune_logger_step belongs to that step: behind an evaluation or a save. */
void tune_logger_settle(struct tune_logger *log);

/* tune_logger_evaluation - at->eval_loss of at->eval_step: an object {step, eval_loss, eval_perplexity} and a line. */
int tune_logger_evaluation(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_proof - what was saved at that step computes, merged into its base, what base and adapter do but for difference: a
 * line, and merge_difference where that is declared. -1: it is not finite. */
int tune_logger_proof(struct tune_logger *log, int64_t step, double difference);

/* tune_logger_flops - model FLOPs of training on one token in rows of T tokens are per_token + per_length * T, for
 * model_flops_per_second. */
void tune_logger_flops(struct tune_logger *log, double per_token, double per_length);

/* tune_logger_property - a measured property for the report; setting it again replaces the value.
 * -1: not declared in the program's table, or not finite. */
int tune_logger_property(struct tune_logger *log, const char *name, double value);

/* tune_logger_report - logs what is left (tune_logger_catch_up) and what the data set met: rows read, cut to max_length, left out
 * for one of three reasons (no trained token, all of them cut away, bad). Then the standard training properties this logger
 * knows (those the program declares), the report, the closing lines, and the status: "finished" (with a reason
 * where it was an early stop), "stopped", why and where, or "diverged": the run came to its end,
 * and the losses of its steps rose (trend.h). Then at->diverged is set. Runs whose end is not
 * saved (options.unsaved) are measurements of speed and never that. Figures of a resumed run are
 * of all its steps, those of earlier processes as the metrics have them; the time between
 * processes does not count, and what is measured of a process (its memory, its processor time) is
 * this one's. Properties set through tune_logger_property stand as they were set; declared ones
 * without a value are left out. -1 also where the data file was changed meanwhile. */
int tune_logger_report(struct tune_logger *log, struct tune_progress *at);

/* tune_get_logger - by --output, --overwrite, --log-every, --logger, --stop-after-seconds, --until-stable, --save, --resume,
 * --allow-changed; the description
 * gets argv, the command line and every option with its source. Refuses to remove a folder that holds --model, --dataset,
 * --eval-dataset or --config. */
struct tune_logger *tune_get_logger(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
