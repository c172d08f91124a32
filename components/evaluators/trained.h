/* trained.h - the rows that a model was trained on, by the run that made it. Private to this
 * folder. */
#ifndef TUNE_TRAINED_H
#define TUNE_TRAINED_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

struct tune_dataset;
struct tune_flags;
struct tune_tokenizer;

struct tune_trained {
    uint64_t *hashes;         /* [count] of the rows' content, ascending */
    int64_t count;
    char run[TUNE_PATH_MAX];  /* the run folder; "": none made the model */
    char before[TUNE_PATH_MAX]; /* the run that made its model, which is not looked at; "": none */
    char unknown[512];        /* why its rows are not known; "": they are */
};

/* tune_get_run_of - the folder of the run that made a checkpoint or an adapter: 1; 0: none made it.
 * tune_get_trained - the rows of the run in whose folder `made`, a checkpoint or an adapter, lies.
 * made NULL: none. Rows that the run held out are not among them; those that it had no time for
 * are. A run's file that cannot be read is no error: then `unknown` says why. -1 with an error: no
 * memory.
 * tune_trained_has - whether a row of d is a copy of one of them.
 * tune_trained_free - free the hashes. */
int tune_get_run_of(const char *made, char run[TUNE_PATH_MAX]);
int tune_get_trained(const struct tune_flags *flags, struct tune_tokenizer *tok, const char *made,
                     struct tune_trained *t);
bool tune_trained_has(const struct tune_trained *t, const struct tune_dataset *d, int64_t row);
void tune_trained_free(struct tune_trained *t);

#endif
