/* from_program.h - an experiment file out of what a program says of itself (--describe): every
 * option an input, every reported property a target. A start for an experiment of one's own; what
 * is not wanted is deleted from it. */
#ifndef TUNE_ACTUATORS_FROM_PROGRAM_H
#define TUNE_ACTUATORS_FROM_PROGRAM_H

/* tune_experiment_from_program - run "program --describe" and make the file's text of it, the
 * caller's to free. NULL with an error: no such program, it says nothing sensible. */
char *tune_experiment_from_program(const char *program);

#endif
