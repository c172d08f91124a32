/* programs.h - the programs that can be started, and how values become their command lines.
 *
 * A program is an executable beside the studio, or in a folder of --programs, that answers
 * `--describe` with its options. So a new recipe, or a new option of one, needs no edit here. */
#ifndef TUNE_STUDIO_PROGRAMS_H
#define TUNE_STUDIO_PROGRAMS_H

#include "routes.h"

struct cJSON;

/* studio_program - what the program says of itself, with "path" and "kind" added. The caller
 * deletes it. NULL with an error: there is none of that name, or it does not answer.
 *
 * studio_option - the description of an option of that name (_ and - are equal); NULL: none.
 *
 * studio_argv - the command line of a program with these values, an object: an array of texts,
 * never for a shell. Each option's type, range and choices are checked. A value that is null is not
 * given. NULL with a problem that names the option.
 *
 * studio_line - the array as a line for a shell, which gives the same words byte for byte. The
 * caller frees it. NULL: no memory.
 *
 * studio_output - run a program of this array under guard, in the root, for at most limit_s
 * seconds. Returns what it printed, stderr too; the caller frees it. *code: its exit code,
 * 128 + the signal, or -1 if it took too long. NULL with an error. */
struct cJSON *studio_program(struct studio *s, struct studio_reply *r, const char *name);
const struct cJSON *studio_option(const struct cJSON *program, const char *name);
struct cJSON *studio_argv(struct studio_reply *r, const struct cJSON *program,
                          const struct cJSON *values);
char *studio_line(const struct cJSON *argv);
char *studio_output(const struct cJSON *argv, double limit_s, int *code);

#endif
