/* failure.h - what a program does after a call failed: it saves the work, then records the reason.
 *
 * A program owns one (flags/program.h). tune_logger_new and tune_checkpoint_resume fill it. A
 * program of your own may do without. */
#ifndef TUNE_FAILURE_H
#define TUNE_FAILURE_H

#include <stddef.h>

/* The program calls both, in this order, where they are not NULL.
 * save - save the finished steps. text: what was saved and how to continue, or "". -1 with an
 * error: saving failed too.
 * tell - record why, the message of the failed call. -1 with an error. */
struct tune_failure {
    int (*save)(void *work, char *text, size_t size);
    void *work;
    int (*tell)(void *log, const char *why);
    void *log;
};

#endif
