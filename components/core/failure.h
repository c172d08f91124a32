/* failure.h - callbacks for a program after a failed call: save the work, then write the reason to
 * run.json.
 *
 * A program has one struct (flags/program.h). tune_logger_new and tune_checkpoint_resume fill it. A
 * program of your own may leave it out. */
#ifndef TUNE_FAILURE_H
#define TUNE_FAILURE_H

#include <stddef.h>

/* The callbacks run in this order. Each may be NULL.
 * save - save the work. text: what was saved and how to resume, or "". -1 with an error.
 * tell - record the reason. why: the message of the failed call. -1 with an error. */
struct tune_failure {
    int (*save)(void *work, char *text, size_t size);
    void *work;
    int (*tell)(void *log, const char *why);
    void *log;
};

#endif
