/* program.h - what only programs may do: print help, end with an exit code, catch signals.
 *
 * Not part of libtune.a: recipes and tools link it, foreign programs do not. It is the one
 * place that prints errors and exits; exit codes follow the error's kind (2 usage, 3 this
 * configuration cannot run here, else 1). */
#ifndef TUNE_PROGRAM_H
#define TUNE_PROGRAM_H

#include "core/error.h"
#include "core/progress.h"
#include "flags/flags.h"

/* MUST - the value of a call that returns a number >= 0, or -1: then print "<program>: <message>" and exit.
 * GET - the value of a call that returns a pointer, or NULL: likewise. Both are expressions (GNU C). */
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

/* tune_program_start - parse the flags, or serve one of these and exit 0: --help, --describe (JSON: flags and reported
 * properties), --list-models, --version; an option that is served in place of the run, as --show-tokens is; also --resume of a
 * run that came to its end, or to --stop-at-step. Notes the start time. A usage
 * error prints the message, how to get help, and exits 2. what: one line for the top of --help. From here on a mapped file that is cut short ends the program with its
 * name and exit code 1, not with "Bus error" (files/file.h). */
void tune_program_start(int argc, char **argv, struct tune_flags *flags, const struct tune_option *options,
                        const struct tune_property *properties, const char *what);

/* tune_program_fail - print "<program>: <tune_error_message()>" on stderr, do what flags->failure says (save the finished steps,
 * write into the run folder why the run ended), and exit with the kind's code. */
__attribute__((noreturn)) void tune_program_fail(void);

/* tune_program_catch_signals - SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) are noted where
 * flags->stop_signal points: finish the step, save, exit; a second one ends the program at once. So does the first one between
 * tune_get_dataset and tune_get_logger, which makes the run folder: there is nothing to save yet. A closed pipe behind stdout
 * becomes an error, as a file above `ulimit -f` is in every program; behind the first step the logger notes it there as SIGPIPE. */
void tune_program_catch_signals(struct tune_flags *flags);

/* tune_program_exit - the exit code of a run that came this far: 0, or 128 + the signal that ended it; 1 where standard output was
 * lost or the run diverged, which it says. */
int tune_program_exit(const struct tune_progress *at);

#endif
