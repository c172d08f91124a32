/* options.h - the run folder, its files and the lines that are printed. */
#ifndef TUNE_LOGGERS_OPTIONS_H
#define TUNE_LOGGERS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cJSON;
struct tune_failure;
struct tune_flags;
struct tune_property;

/* Files of metrics besides the run folder's own: metrics.csv, a TensorBoard event file. */
enum { TUNE_WRITE_CSV = 1, TUNE_WRITE_TENSORBOARD = 2 };

struct tune_logger_options {
    const char *program;       /* "finetune_full" */
    const char *folder;        /* the run folder to make; NULL: runs/<program>-<date>-<time> */
    /* first remove folder, if it is a run folder or empty */
    bool overwrite;
    int log_every;             /* steps between lines; 0: 1. the metrics have every step anyway */
    /* declared ones, up to a row without a name; NULL: none. Borrowed */
    const struct tune_property *properties;
    const struct cJSON *settings; /* members for the top of the description, copied; NULL: none */
    bool resume;               /* folder is a run's, to go on with: see tune_logger_resume */
    bool allow_changed;        /* go on though things have changed: see tune_logger_changed */
    const char *source;        /* for recipe.c; NULL: no such file. Borrowed */
    size_t source_size;
    double started_s;          /* monotonic clock at program start; 0: now */
    double stop_after_seconds; /* for the ETA; <= 0: none */
    double until_stable;       /* percent, see stable; <= 0: none */
    bool *stable;              /* NULL, or set to true when the speed of steps is known that well */
    /* the run's end is not saved: the last lines do not say how to go on */
    bool unsaved;
    FILE *stream;              /* for lines; NULL: stdout */
    /* NULL: a stream that cannot be written is an error. Else, after the first step, SIGPIPE is
     * noted here and the run stops as by a signal */
    volatile int *stop_signal;
    /* told of the logger, so that the run folder says why a program failed; NULL: not */
    struct tune_failure *failure;
    bool quiet;                /* no lines at all */
    /* NULL, or writes the options that a message names as flags, in place */
    void (*spell)(const struct tune_flags *flags, char *text);
    const struct tune_flags *flags; /* for spell; borrowed */
    unsigned writers;          /* a sum of TUNE_WRITE_CSV, TUNE_WRITE_TENSORBOARD */
};

#endif
