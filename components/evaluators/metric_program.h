/* metric_program.h - metrics by a program of the user's, which reads answers and writes numbers.
 *
 *     struct tune_metric_program *p = tune_metric_program_new("python3 score.py", 600, 2);
 *     tune_metric_program_row(p, 0, row, &asked, answer);           ... for each row and side ...
 *     struct tune_program_metrics m;
 *     tune_metric_program_run(p, stop_signal, &m);
 *     tune_metric_program_free(p);
 *
 * The program is a command of the shell. It runs once for each model, when all rows are answered.
 * Its standard input has a line of JSON for each row:
 *
 *     {"row": 0, "prompt": "2 + 2 =", "answer": "4", "expected": "4", "references": ["4"]}
 *
 * It writes a line for each, in their order: an object of numbers, {"length": 3, "right": true}, or
 * one number, whose name is then "score". true is 1, false 0. Every line has the same names. A name
 * that a row or the report has is an error. So is one that begins with base_, difference_, wins_,
 * losses_, ties_, p_ or rows_, and one that ends in _low, _high, _error or _signature.
 *
 * It runs under guard (machine/child.h). The guard ends it, and all that it started, when it takes
 * longer than its limit, when a signal comes, and when this process ends. Its output may take 1 MiB
 * and 4 KiB a row, its standard error 64 MiB. Both are files, whose size is looked at every 20 ms:
 * a program that writes more is ended, and its output is not read. The last line of its standard
 * error is kept for messages. Other files that it writes have no limit.
 *
 * Errors say the line and what was expected there. They are: the program did not start, ended with
 * another code than 0, took too long, or wrote too much. It wrote fewer or more lines, a line that
 * is no such JSON, or a number that is not finite. Names that differ from those of line 1 are an
 * error, too. */
#ifndef TUNE_METRIC_PROGRAM_H
#define TUNE_METRIC_PROGRAM_H

#include <stdint.h>

#include "datasets/dataset.h"
#include "metrics/scores.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_PROGRAM_METRICS = 16, TUNE_PROGRAM_SIDES = 2 };

struct tune_metric_program;

/* The program's numbers. */
struct tune_program_metrics {
    struct tune_score score[TUNE_PROGRAM_METRICS]; /* their names; means of the rows' numbers */
    char name[TUNE_PROGRAM_METRICS][64];
    int count;
    double *sums[TUNE_PROGRAM_SIDES][TUNE_PROGRAM_METRICS]; /* [rows][2]: the number, 1 */
};

/* tune_metric_program_new - a program for so many models (sides). limit_s: seconds that a run may
 * take. NULL with an error: no temporary file, no memory.
 * tune_metric_program_free - free it; NULL is fine.
 * tune_metric_program_row - the next row's answer on a side. -1 with an error: the disk is full. */
struct tune_metric_program *tune_metric_program_new(const char *command, double limit_s,
                                                    int sides);
void tune_metric_program_free(struct tune_metric_program *p);
int tune_metric_program_row(struct tune_metric_program *p, int side, int64_t row,
                            const struct tune_asked *asked, struct tune_text answer);

/* tune_metric_program_run - run it on all rows, and fill m, which may not be moved. 1: it ran; 0: a
 * signal ended it; -1 with an error. stop_signal: where a program's handler stores one; NULL.
 * tune_program_metrics_free - free the sums. */
int tune_metric_program_run(struct tune_metric_program *p, const volatile int *stop_signal,
                            struct tune_program_metrics *m);
void tune_program_metrics_free(struct tune_program_metrics *m);

#ifdef __cplusplus
}
#endif
#endif
