/* from_program.h - make an experiment file from a program's --describe. Every option becomes an
 * input, and every reported property a target. It is a start for your own experiment: delete what
 * you do not need. */
#ifndef TUNE_ACTUATORS_FROM_PROGRAM_H
#define TUNE_ACTUATORS_FROM_PROGRAM_H

/* tune_experiment_from_program - run "program --describe" and make the text of the file from its
 * output. The caller frees it. NULL with an error: no such program, or its output is not a
 * description. */
char *tune_experiment_from_program(const char *program);

#endif
