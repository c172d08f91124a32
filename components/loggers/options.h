/* options.h - the run folder, its files and the lines that are printed. */
#ifndef TUNE_LOGGERS_OPTIONS_H
#define TUNE_LOGGERS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cJSON;
struct tune_comm;
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
    /* declared properties, up to a row without a name; NULL: none. Borrowed */
    const struct tune_property *properties;
    const struct cJSON *settings; /* members for the top of the description, copied; NULL: none */
    bool resume;               /* resume the run in folder: see tune_logger_resume */
    bool allow_changed;        /* resume although something has changed: see tune_logger_changed */
    const char *source;        /* the text for recipe.c; NULL: do not write it. Borrowed */
    size_t source_size;
    double started_s;          /* monotonic clock at program start; 0: now */
    double stop_after_seconds; /* for the ETA; <= 0: none */
    double until_stable;       /* percent, for `stable`; <= 0: none */
    bool *stable;              /* NULL, or becomes true when the speed is known within
                                * until_stable */
    /* the run does not save its end, so the last lines do not say how to resume */
    bool unsaved;
    bool stop_on_divergence;   /* end the run where its loss rose, by `diverged` */
    bool *diverged;            /* NULL, or becomes true then: the loader ends the run, and the
                                * checkpoint is not saved */
    FILE *stream;              /* for lines; NULL: stdout */
    /* NULL: an output error is an error. Otherwise, after the first step, an output error stores
     * SIGPIPE here, and the run stops as after a signal */
    volatile int *stop_signal;
    /* NULL, or gets a function that writes into the run folder why the program failed */
    struct tune_failure *failure;
    bool follows;              /* another rank writes the run folder: this one writes nothing */
    bool quiet;                /* print no lines */
    bool verbose;              /* print the whole header; else details are only in the run folder */
    /* NULL, or a function that changes a message in place: `option` becomes --option */
    void (*spell)(const struct tune_flags *flags, char *text);
    const struct tune_flags *flags; /* for spell; borrowed */
    struct tune_comm *comm;    /* NULL: one rank. Borrowed until tune_logger_failed */
    unsigned writers;          /* a sum of TUNE_WRITE_CSV, TUNE_WRITE_TENSORBOARD */
};

#endif
