/* model_hint.h - which folder a wrong --model may mean. */
#ifndef TUNE_FLAGS_MODEL_HINT_H
#define TUNE_FLAGS_MODEL_HINT_H

#include <stdbool.h>
#include <stddef.h>

#include "files/file.h"

/* tune_model_hint - look where models lie for what a name or folder may mean: a checkpoint of that
 * run, models/NAME, a folder of a similar name. Write "; give --model FOLDER" into text, or "".
 * Returns text. */
const char *tune_model_hint(const char *name, char *text, size_t size);

/* tune_model_in - the checkpoint that stands for the model of a run's folder: the best one, else
 * the newest. false: the folder has none. */
bool tune_model_in(const char *folder, char path[TUNE_PATH_MAX], bool *best);

#endif
