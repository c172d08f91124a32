/* state.h - what is behind struct tune_logger; for the files of this folder only.
 *
 * A logger that goes on with a run first only reads. It changes nothing in the folder until
 * tune_logger_resume. So a refusal before that leaves the run as it was. */
#ifndef TUNE_LOGGERS_STATE_H
#define TUNE_LOGGERS_STATE_H

#include <stdio.h>

#include "loggers/logger.h"
#include "loggers/progress_line.h"
#include "loggers/stable.h"
#include "loggers/trend.h"
#include "loggers/writers.h"
#include "runs/run_writer.h"

/* One number of tune_logger_metric. */
struct tune_own_metric {
    char name[48];
    double value;
    int64_t step; /* 0: of the step at hand */
};

struct tune_logger {
    /* of its strings only source is used after tune_logger_new, by tune_logger_resume */
    struct tune_logger_options options;
    struct tune_run_writer run; /* its before: NULL in a new run */
    bool waiting;         /* resumed, and tune_logger_resume not called yet */
    bool run_changed;     /* the description is not what was written; the next step writes it */
    bool ended;           /* reported or failed */
    struct tune_writers *writers;
    struct tune_line line;
    struct tune_sampler *sampler; /* see tune_logger_watch; NULL: none */
    struct tune_profiler *profiler;   /* of tune_logger_run; NULL: none */
    bool profiled;                    /* its table was printed */
    const struct tune_dataset *data;  /* of tune_logger_run, borrowed; NULL: none */
    struct tune_record *record;       /* of the last tune_logger_step, borrowed; NULL: none yet */
    struct tune_own_metric *metrics_held; /* of steps that are not logged yet */
    int held_count, held_room;
    int gpus;             /* that the run computes on */
    double *values;       /* per declared property; NaN: never set */

    /* finished steps of all sessions */
    int64_t steps, rows, tokens, padded_tokens, last_step;
    int64_t written_step; /* the last one whose line is written */
    /* of the sessions before, from their first steps' begins to their last ones' ends */
    double past_s;
    double loss_first, loss_last;
    struct tune_trend trend;
    /* of this session */
    int64_t own_steps;
    struct tune_stable stable;
    struct tune_moment begin, end; /* of its first step, of its last */
    double first_end_s;
    int64_t anonymous;    /* most anonymous memory seen: at steps, evaluations and the end */
    int64_t eval_step;    /* of the last evaluation that was logged, where evaluated */
    bool evaluated;
    double flops_token, flops_length; /* see tune_logger_flops; 0: unknown */
    /* since the last line */
    int64_t line_steps, line_tokens;
    double line_s;
};

/* tune_logger_no_memory - sets the error, returns -1. */
int tune_logger_no_memory(void);

/* tune_logger_save - write what the run folder says about the run.
 * tune_logger_end - the same with how the run ended; reason NULL: none. A run that was refused
 * before it went on stays what it was. */
int tune_logger_save(struct tune_logger *log);
int tune_logger_end(struct tune_logger *log, const char *status, const char *reason);

/* tune_logger_put_message - put text into object, with options as the program's flags. */
bool tune_logger_put_message(struct tune_logger *log, struct cJSON *object, const char *key,
                             const char *text);

/* tune_logger_header - a `#` line; the description changed. */
int tune_logger_header(struct tune_logger *log, const char *key, const char *text);

/* tune_logger_declared - the row of the program's table, or -1. tune_logger_know - a property this
 * logger knows: if the program declares it and has not set it itself, and it is finite.
 * tune_logger_elapsed - seconds of the steps of all sessions, what lies between them in each
 * included.
 * tune_logger_see_memory - for peak_anonymous_bytes. */
int tune_logger_declared(const struct tune_logger *log, const char *name);
void tune_logger_know(struct tune_logger *log, const char *name, double value);
double tune_logger_elapsed(const struct tune_logger *log);
void tune_logger_see_memory(struct tune_logger *log);

/* tune_logger_put_metrics - the held numbers of that step into its line, and no longer held.
 * tune_logger_stamp_metrics - those of the step at hand are of this one. */
bool tune_logger_put_metrics(struct tune_logger *log, struct cJSON *line, int64_t step);
void tune_logger_stamp_metrics(struct tune_logger *log, int64_t step);

/* tune_logger_counts - a note: what log->data met in this process. -1 also where its file was
 * changed meanwhile.
 * tune_logger_profile - a step has ended, or with at NULL the last one: when the profiler is done,
 * its table and files. */
int tune_logger_counts(struct tune_logger *log);
int tune_logger_profile(struct tune_logger *log, const struct tune_progress *at);

/* tune_logger_compare - compare a member of the description, as a text, with the resumed run's
 * (inner: a member of the object `member`). 0: equal, or nothing to compare with; else as
 * tune_logger_changed. what: how messages name it.
 * tune_logger_warn_of - a note where they differ. */
int tune_logger_compare(struct tune_logger *log, const char *member, const char *inner,
                        const char *what);
int tune_logger_warn_of(struct tune_logger *log, const char *member, const char *inner,
                        const char *what);

/* tune_logger_compare_file - the same of a data file's fingerprint, size and time of change.
 * option: what messages call it. */
int tune_logger_compare_file(struct tune_logger *log, const char *member, const char *option);

#endif
