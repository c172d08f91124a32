/* writers.h - a run's metrics in formats of other programs. The metrics of the run folder
 * (runs/run_folder.h) are the truth; these files are made from their lines.
 *
 *   <run>/metrics.csv                                     a row per line
 *   <run>/events.out.tfevents.<time>.<host>.<pid>.<n>     TensorBoard
 *
 * A name without a column makes metrics.csv again, with one more column. A resumed run opens these
 * files after it has cut the metrics. metrics.csv is then made again, or removed if it is not
 * wanted. TensorBoard gets another file, which says from which step on the earlier ones are
 * void. */
#ifndef TUNE_LOGGERS_WRITERS_H
#define TUNE_LOGGERS_WRITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tune_writers;

/* tune_writers_open - open the files. what: a sum of TUNE_WRITE_CSV and TUNE_WRITE_TENSORBOARD; 0
 * is fine. last_step: the last one in the metrics; 0 for a new run. NULL with an error: a file
 * cannot be written, or a line is bad. */
struct tune_writers *tune_writers_open(const char *folder, unsigned what, int64_t last_step);
void tune_writers_free(struct tune_writers *w);

/* tune_writers_column - whether the logger itself writes a number with that name. */
bool tune_writers_column(const char *name);

/* tune_writers_line - write one line of the metrics, without its newline, to every file. NULL is
 * fine. */
int tune_writers_line(struct tune_writers *w, const char *text, size_t size);

#endif
