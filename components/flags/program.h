/* program.h - what only programs may do: print help, end with an exit code, catch signals.
 *
 * It is not part of libtune.a. Recipes and tools link it; foreign programs do not. It is the one
 * place that prints errors and exits. The exit code follows the kind of the error: 2 usage, 3 this
 * configuration cannot run here, else 1. */
#ifndef TUNE_PROGRAM_H
#define TUNE_PROGRAM_H

#include "core/error.h"
#include "core/progress.h"
#include "flags/flags.h"

/* MUST - the value of a call that returns a number >= 0. On -1 it prints "<program>: <message>" and
 * exits.
 * GET - the value of a call that returns a pointer. On NULL it does the same. Both are expressions
 * (GNU C). */
#define MUST(call)                         \
    __extension__({                        \
        __typeof__(call) must_ = (call);   \
        if (must_ < 0)                     \
            tune_program_fail();           \
        must_;                             \
    })
#define GET(call)                          \
    __extension__({                        \
        __typeof__(call) get_ = (call);    \
        if (!get_)                         \
            tune_program_fail();           \
        get_;                              \
    })

/* tune_program_start - parse the flags and note the start time. It serves --help, --describe (JSON:
 * options and properties), --list-models and --version, and exits 0. It also serves an option such
 * as --show-tokens. It ends with 0 if --resume names a run that is finished, or has reached
 * --stop-at-step. A usage error prints the message and how to get help, and exits 2. what: one line
 * at the top of --help. From here on, a mapped file that is cut short ends the program with its
 * name and exit code 1, not with "Bus error" (files/file.h). */
void tune_program_start(int argc, char **argv, struct tune_flags *flags,
                        const struct tune_option *options,
                        const struct tune_property *properties, const char *what);

/* tune_program_fail - print "<program>: <tune_error_message()>" on stderr, then do what
 * flags->failure says: save the finished steps, and write the reason into the run folder. Exit with
 * the code of the error. */
__attribute__((noreturn)) void tune_program_fail(void);

/* tune_program_catch_signals - store SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) in
 * flags->stop_signal. The run then finishes the step, saves and exits. A second signal ends the
 * program at once, except a second SIGTERM in a job of Slurm with --requeue. So does the first one
 * between tune_get_dataset and tune_get_logger, when there is nothing to save. A closed pipe on
 * stdout, and a file above `ulimit -f`, become errors. After the first step the logger stores
 * SIGPIPE there. */
void tune_program_catch_signals(struct tune_flags *flags);

/* tune_program_exit - the exit code of a run that got this far. 0, or 128 + the signal that ended
 * it. 1 if standard output was lost or the run diverged; it prints that. With --requeue it puts a
 * job of Slurm that got a signal back into the queue, and prints that; 1 if that failed. */
int tune_program_exit(const struct tune_progress *at);

#endif
