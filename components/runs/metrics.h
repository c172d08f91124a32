/* metrics.h - one line of a run's metrics.jsonl: an object of numbers by name. */
#ifndef TUNE_RUNS_METRICS_H
#define TUNE_RUNS_METRICS_H

#include <stdint.h>

#include "files/file.h"
#include "files/json.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_METRICS_MOST = 64 };    /* numbers of one line */
#define TUNE_METRICS_BEYOND 0x1p36 /* no rows or tokens of a step, and no seconds of a run, are so many */

struct tune_metric {
    char name[48];
    double value;
    struct tune_text text; /* as the line spells it; no NUL behind it; borrowed from the line */
};

/* tune_metrics_line - the numbers of one line (without its newline) into metrics, "step" among them, and *step; members that
 * are no numbers are left out. name and line_number go into messages. Returns how many, or -1: no JSON object, no "step" that
 * is a whole number, a name twice or longer than 47 bytes, more than TUNE_METRICS_MOST of them, "rows", "tokens",
 * "padded_tokens" or "elapsed_s" below 0 or not below TUNE_METRICS_BEYOND. */
int tune_metrics_line(struct tune_metric metrics[TUNE_METRICS_MOST], int64_t *step, const char *text, size_t size,
                      const char *name, int64_t line_number);

/* tune_metrics_each - every whole line of the folder's metrics.jsonl, in order, to take; *torn (NULL: not asked): the bytes
 * behind the last newline, half a line that a killed run left; they are not given out. 0, or -1 with an error: the file cannot be read, or what
 * take returned was below 0. */
int tune_metrics_each(const char *folder, int (*take)(void *context, const char *text, size_t size, int64_t line_number),
                      void *context, size_t *torn);

#ifdef __cplusplus
}
#endif
#endif
