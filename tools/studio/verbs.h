/* verbs.h - the command line of the studio: `studio run list --where 'lr<1e-3'`. Its verbs, options
 * and help come from the table of routes. No server is needed: the handlers are called here.
 *
 * Parameters in the path and required ones are words, the others are options. A parameter `values`
 * takes the rest of the words, each NAME=VALUE:
 *
 *     studio run start finetune_lora model=models/x dataset=rows.jsonl lr=1e-4
 *
 * The answer is printed as a table, or with --json as it is. */
#ifndef TUNE_STUDIO_VERBS_H
#define TUNE_STUDIO_VERBS_H

#include "studio.h"

/* studio_verb_count - how many words before the first option are a command: 0, `studio` serves.
 * studio_list_verbs - print the commands that begin with this word, and what each does; "": all.
 * Returns how many there are.
 * studio_verb_names - the commands in one line, "run list, run show"; the caller frees it.
 * studio_run_verb - do what the command line says. Prints; ends the program if it fails. The exit
 * code is 0. prepare: called with the options in s, before the handler. */
int studio_verb_count(int argc, char **argv);
int studio_list_verbs(const char *word, FILE *out);
char *studio_verb_names(void);
int studio_run_verb(struct studio *s, int argc, char **argv,
                    void (*prepare)(struct studio *s, const char *root));

/* studio_print_answer - print an answer in JSON for people: an array of objects as a table, the
 * other members as lines. width: of the terminal; 0: any. -1 with an error. */
int studio_print_answer(const struct cJSON *json, int width, FILE *out);

#endif
