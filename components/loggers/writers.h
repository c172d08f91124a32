/* writers.h - a run's metrics in the formats that other programs read. The metrics of the run folder
 * (runs/run_folder.h) are the truth; these files are made from their lines.
 *
 *     <run>/metrics.csv                        one row for each line; the logger's columns, then the recipe's
 *     <run>/events.out.tfevents.<time>.<host>.<pid>.<n>     TensorBoard
 *
 * At a name that has no column yet, metrics.csv is made again with one more. A run that goes
 * on opens them after it has cut the metrics to the step it begins with: metrics.csv is made
 * again from it (or removed, if nobody goes on with it), and TensorBoard gets one more file that says from which step on the earlier
 * ones do not hold. */
#ifndef TUNE_LOGGERS_WRITERS_H
#define TUNE_LOGGERS_WRITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tune_writers;

/* tune_writers_open - what: a sum of TUNE_WRITE_CSV, TUNE_WRITE_TENSORBOARD (logger.h); 0 is fine. last_step: of the metrics
 * as they lie in folder; 0 for a new run. NULL with an error: a file that cannot be written, a line that is none. */
struct tune_writers *tune_writers_open(const char *folder, unsigned what, int64_t last_step);
void tune_writers_free(struct tune_writers *w);

/* tune_writers_column - whether the logger itself writes a number of that name. */
bool tune_writers_column(const char *name);

/* tune_writers_line - one more line of the metrics (without the newline), to every file at once. NULL is fine. */
int tune_writers_line(struct tune_writers *w, const char *text, size_t size);

#endif
