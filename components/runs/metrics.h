/* metrics.h - read the lines of a run's metrics.jsonl: all of them, or those appended since.
 *
 * Each line is a JSON object of numbers by name; "step" is among them. Example:
 *
 *     struct tune_metrics_position at = {0};
 *     tune_metrics_read(&at, "runs/a", take, context);    every whole line so far
 *     tune_metrics_read(&at, "runs/a", take, context);    those appended since */
#ifndef TUNE_RUNS_METRICS_H
#define TUNE_RUNS_METRICS_H

#include <stdint.h>
#include <sys/types.h>

#include "files/json.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_METRICS_MOST = 128 };   /* numbers of one line */
#define TUNE_METRICS_BEYOND 0x1p36 /* upper bound for rows or tokens of a step, and for seconds of a
                                    * run */

struct tune_metric {
    char name[48];
    double value;
    struct tune_text text; /* as written in the line, without a NUL at its end; borrowed from the
                            * line */
};

struct tune_metrics_row {
    const char *path; /* path of the file, for messages */
    int64_t line;     /* line number, from 1 */
    const char *text; /* the line without its newline and without a NUL */
    size_t size;
    int64_t step;
    int count;
    int others;       /* members that are not numbers */
    bool plain;       /* private: the line had only numbers, and names without escapes */
    struct tune_metric metrics[TUNE_METRICS_MOST]; /* [count]; step is one of them */
};

/* tune_metrics_line - read row->text into step, count and metrics. Members that are not numbers are
 * only counted. -1 with an error if the line is not a JSON object, or "step" is missing or not an
 * integer. Other errors: a name twice, a name over 47 bytes, or more than TUNE_METRICS_MOST
 * numbers. The last error: "rows", "tokens", "padded_tokens" or "elapsed_s" outside [0,
 * TUNE_METRICS_BEYOND).
 *
 * In a row that held another line, a line with the same names in the same order is read several
 * times faster. A new row is {0} but for path, line, text and size. */
int tune_metrics_line(struct tune_metrics_row *row);

/* tune_metrics_find - the row's number of that name, or NULL. */
const struct tune_metric *tune_metrics_find(const struct tune_metrics_row *row, const char *name);

/* How much of the file was read. {0}: nothing yet. */
struct tune_metrics_position {
    int64_t bytes, lines; /* taken so far */
    int64_t left;         /* whole lines after the taken ones, not taken */
    int64_t torn;         /* bytes after the last newline: half a line */
    const char *root;     /* set by the caller: the file must lie there (tune_file_open_within).
                           * NULL: anywhere */
    /* private: the file, and the last line taken from it */
    dev_t device;
    ino_t file;
    size_t last_size;
    uint64_t last_hash;
};

/* What take returns; below 0: an error. */
enum {
    TUNE_METRICS_ON,     /* taken; go on */
    TUNE_METRICS_LAST,   /* taken; stop here */
    TUNE_METRICS_BEFORE, /* not taken; stop before this line */
};

/* tune_metrics_read - give each whole line after *at to take, in order, and move *at past the lines
 * taken. Half a line at the end is left for the next call. Returns 0. Returns 1 if the file was
 * replaced, or cut before *at; a resumed run does that. Then *at is at the beginning of the file:
 * forget the rows and call again. -1 with an error: the file cannot be read, a line is bad, or take
 * failed. */
int tune_metrics_read(struct tune_metrics_position *at, const char *folder,
                      int (*take)(void *context, const struct tune_metrics_row *row),
                      void *context);

#ifdef __cplusplus
}
#endif
#endif
