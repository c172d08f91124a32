/* failure.h - what a program still does when a call has failed: save the work, then say in the run folder why the run ended.
 *
 * A program owns one (flags/program.h). tune_logger_new and tune_checkpoint_resume fill it. A program of your own may
 * leave it out. */
#ifndef TUNE_FAILURE_H
#define TUNE_FAILURE_H

#include <stddef.h>

/* Called in this order, each if it is not NULL.
 * save - text: what was saved and how to go on; "": nothing to say. -1 with an error: that failed, too.
 * tell - why: the message of the call that failed. -1 with an error. */
struct tune_failure {
    int (*save)(void *work, char *text, size_t size);
    void *work;
    int (*tell)(void *log, const char *why);
    void *log;
};

#endif
