/* state.h - the contents of struct tune_logger. Private to this folder.
 *
 * A logger that resumes a run changes nothing in the folder until tune_logger_resume. So an error
 * before that leaves the run as it was. */
#ifndef TUNE_LOGGERS_STATE_H
#define TUNE_LOGGERS_STATE_H

#include <stdio.h>

#include "loggers/logger.h"
#include "loggers/progress_line.h"
#include "loggers/stable.h"
#include "loggers/trend.h"
#include "loggers/writers.h"
#include "runs/run_writer.h"

/* A number given to tune_logger_metric. */
struct tune_own_metric {
    char name[48];
    double value;
    int64_t step; /* step of the number; 0: the current step */
};

struct tune_logger {
    /* after tune_logger_new, source is the only string of it that is used */
    struct tune_logger_options options;
    struct tune_run_writer run; /* run.before is NULL in a new run */
    bool waiting;         /* the run is resumed, and tune_logger_resume was not called yet */
    bool run_changed;     /* the description changed; the next step writes it */
    bool ended;           /* the run was reported, or it failed */
    struct tune_writers *writers;
    struct tune_line line;
    struct tune_sampler *sampler; /* see tune_logger_watch; NULL: none */
    struct tune_profiler *profiler;   /* the profiler of tune_logger_run; NULL: none */
    bool profiled;                    /* its table was printed */
    const struct tune_dataset *data;  /* the data set of tune_logger_run, borrowed; NULL: none */
    const struct tune_device *device; /* its device, borrowed; NULL: none */
    char device_met[384];             /* the last that was said of device->met */
    struct tune_record *record;       /* the record of the last tune_logger_step, borrowed; NULL:
                                       * none yet */
    struct tune_own_metric *metrics_held; /* numbers of steps that are not logged yet */
    int held_count, held_room;
    char own[256]; /* the first four of the step at hand, as its line shows them: "reward 0.5" */
    int gpus;             /* GPUs that the run computes on */
    double *values;       /* value of each declared property; NaN: not set */

    /* finished steps of all sessions */
    int64_t steps, rows, tokens, padded_tokens, last_step;
    int64_t written_step; /* last step whose line is written */
    /* seconds of earlier sessions, each from the start of its first step to the end of its last */
    double past_s;
    double loss_first, loss_last, lr_last;
    struct tune_trend trend;
    /* steps of this session */
    int64_t own_steps;
    struct tune_stable stable;
    struct tune_moment begin, end; /* its first step's start and end, its last step's end */
    double first_end_s;
    int64_t anonymous;    /* highest anonymous memory seen at steps, evaluations and the end */
    int64_t eval_step;    /* step of the last evaluation that was logged, if `evaluated` */
    bool evaluated;
    /* the numbers of that one, and those of step 0; NULL: none */
    struct cJSON *evaluation, *before;
    char hidden[256]; /* keys of header lines that were not printed */
    double flops_token, flops_length; /* see tune_logger_flops; 0: unknown */
    /* since the last line */
    int64_t line_steps, line_tokens;
    double line_s;
};

/* tune_logger_no_memory - set the error; returns -1. */
int tune_logger_no_memory(void);

/* tune_logger_save - write the description.
 * tune_logger_end - the same, with the status and reason (NULL: none) of the end. A resumed run
 * that was refused before tune_logger_resume stays as it was. */
int tune_logger_save(struct tune_logger *log);
int tune_logger_end(struct tune_logger *log, const char *status, const char *reason);

/* tune_logger_rose - say what the losses of the last step changed: tune_trend_add returned change.
 * tune_logger_diverged - whether the run has diverged: its loss rose, and that counts. Runs that
 * are not saved measure speed; theirs counts only with stop_on_divergence.
 * tune_logger_why_diverged - why, as a text of this size. */
int tune_logger_rose(struct tune_logger *log, int change);
bool tune_logger_diverged(const struct tune_logger *log);
void tune_logger_why_diverged(const struct tune_logger *log, char *text, size_t size);

/* tune_logger_put_message - put text into object, with options as the program's flags. */
bool tune_logger_put_message(struct tune_logger *log, struct cJSON *object, const char *key,
                             const char *text);

/* tune_logger_header - print a `#` line, or leave it to --verbose. The description has changed.
 * tune_logger_tell_hidden - say which lines were left out, once, before the first step's line. */
int tune_logger_tell_hidden(struct tune_logger *log);
int tune_logger_header(struct tune_logger *log, const char *key, const char *text);

/* tune_logger_declared - the property's row in the program's table, or -1.
 * tune_logger_know - set a property, if the program declares it and has not set it, and the value
 * is finite.
 * tune_logger_elapsed - seconds of all sessions, each from the start of its first step to the end
 * of its last.
 * tune_logger_see_memory - update the value of peak_anonymous_bytes. */
int tune_logger_declared(const struct tune_logger *log, const char *name);
void tune_logger_know(struct tune_logger *log, const char *name, double value);
double tune_logger_elapsed(const struct tune_logger *log);
void tune_logger_see_memory(struct tune_logger *log);

/* tune_logger_keep_evaluation - this evaluation was logged: keep its numbers for the report. False:
 * no memory.
 * tune_logger_put_metrics - move the numbers of that step into its line. tune_logger_stamp_metrics
 * - give the numbers of the current step this step number. */
bool tune_logger_keep_evaluation(struct tune_logger *log, const struct cJSON *json, int64_t step);
bool tune_logger_put_metrics(struct tune_logger *log, struct cJSON *line, int64_t step);
void tune_logger_stamp_metrics(struct tune_logger *log, int64_t step);

/* tune_logger_counts - note the counts of log->data in this process. -1 with an error also if its
 * file was changed meanwhile.
 * tune_logger_profile - a step has ended; at NULL: the loop has ended. When the profiler is done,
 * print its table and write its files. */
int tune_logger_counts(struct tune_logger *log);
int tune_logger_profile(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_compare - compare a member of the description, as text, with that of the resumed run.
 * inner: a member of the object `member`. 0 if they are equal, or if there is nothing to compare
 * with; else the result of tune_logger_changed. what: its name in messages.
 * tune_logger_warn_of - write a note if they differ. */
int tune_logger_compare(struct tune_logger *log, const char *member, const char *inner,
                        const char *what);
int tune_logger_warn_of(struct tune_logger *log, const char *member, const char *inner,
                        const char *what);

/* tune_ranks_agree - 0 if all ranks have the same build, device, model, adapter, rows and files of
 * options. -1 with an error of kind USAGE that names two ranks and what differs. folder: the
 * model's. All ranks call it. */
struct tune_model_identity;
int tune_ranks_agree(const struct tune_flags *flags, const struct tune_device *dev,
                     const char *folder, const struct tune_model_identity *weights,
                     struct tune_dataset *data);

/* tune_logger_compare_file - the same for a data file's fingerprint, size and time of change.
 * option: its name in messages. */
int tune_logger_compare_file(struct tune_logger *log, const char *member, const char *option);

#endif
