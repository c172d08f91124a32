/* metrics.h - read the lines of a run's metrics.jsonl: all of them, or those appended since.
 *
 * Each line is a JSON object of numbers by name; "step" is among them. Example:
 *
 *     struct tune_metrics_place at = {0};
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

enum { TUNE_METRICS_MOST = 64 };    /* numbers of one line */
#define TUNE_METRICS_BEYOND 0x1p36 /* rows or tokens of a step, seconds of a run: always fewer */

struct tune_metric {
    char name[48];
    double value;
    struct tune_text text; /* as the line spells it; no NUL behind it; borrowed from the line */
};

struct tune_metrics_row {
    const char *path; /* of the file, for messages */
    int64_t line;     /* its number, from 1 */
    const char *text; /* the line without its newline; no NUL behind it */
    size_t size;
    int64_t step;
    int count;
    struct tune_metric metrics[TUNE_METRICS_MOST]; /* [count], step among them */
};

/* tune_metrics_line - read row->text into step, count and metrics. Members that are no numbers are
 * left out. -1 with an error: no JSON object, or no "step" that is a whole number. A name twice, or
 * longer than 47 bytes. More than TUNE_METRICS_MOST numbers. "rows", "tokens", "padded_tokens" or
 * "elapsed_s" below 0 or not below TUNE_METRICS_BEYOND. */
int tune_metrics_line(struct tune_metrics_row *row);

/* tune_metrics_find - the row's number of that name, or NULL. */
const struct tune_metric *tune_metrics_find(const struct tune_metrics_row *row, const char *name);

/* How far a reader came. {0}: nothing is read yet. */
struct tune_metrics_place {
    int64_t bytes, lines; /* taken so far */
    int64_t left;         /* whole lines behind those, which take did not want */
    int64_t torn;         /* bytes behind the last newline: half a line */
    /* the reader's own: which file it was, and its last line taken */
    dev_t device;
    ino_t file;
    size_t last_size;
    uint64_t last_hash;
};

/* The answers of take; below 0: an error. */
enum {
    TUNE_METRICS_ON,     /* taken; go on */
    TUNE_METRICS_LAST,   /* taken; no line behind it */
    TUNE_METRICS_BEFORE, /* not taken, nor any line behind it */
};

/* tune_metrics_read - give each whole line behind *at to take, in order, and move *at behind those
 * taken. Half a line at the end is left for the next call. 0. 1: the file was replaced, or cut
 * before *at; a resumed run does that. *at is then at the file's beginning: forget the rows and
 * call again. -1 with an error: the file cannot be read, a line is none, or take failed. */
int tune_metrics_read(struct tune_metrics_place *at, const char *folder,
                      int (*take)(void *context, const struct tune_metrics_row *row),
                      void *context);

#ifdef __cplusplus
}
#endif
#endif
