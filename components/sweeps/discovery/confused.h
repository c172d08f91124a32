/* confused.h - find inputs where one space has a text, and another space of the store has the
 * number that it spells.
 *
 * An input that takes any text has a column of texts, and a program gets both in the same form. So
 * rows of one space count for the other. That is right, but the user should know. */
#ifndef TUNE_DISCOVERY_CONFUSED_H
#define TUNE_DISCOVERY_CONFUSED_H

#include "sweeps/discovery/rows.h"

/* A function that gets a sentence: the input of another space, and the first pair of values that
 * may be confused. */
typedef void tune_confused_tell(const char *sentence);

/* tune_confused_find - call tell for each such input of each other space in the store. A record
 * that makes no sense, or is of unknown experiments, is passed over. -1: no memory, or the records
 * cannot be listed. */
int tune_confused_find(struct tune_store *s, const struct tune_space *space,
                       const struct tune_protocol *protocols,
                       const struct tune_catalog *catalog, tune_confused_tell *tell);

#endif
