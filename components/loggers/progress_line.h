/* progress_line.h - what a run prints: lines where output is a file or a pipe, a bar drawn in place in a terminal. */
#ifndef TUNE_LOGGERS_PROGRESS_LINE_H
#define TUNE_LOGGERS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"

/* The bar stands on a line of its own and the cursor below it, so a message of anyone's starts on a clean line. */
struct tune_flags;

struct tune_line {
    FILE *out;
    bool terminal; /* a terminal that moves its cursor (TERM is not "dumb") */
    bool drawn;    /* the bar stands on the line above */
    double drawn_s;
    volatile int *stop; /* see tune_line_step; NULL: none */
    void (*spell)(const struct tune_flags *flags, char *text); /* as in options.h; of tune_line_print */
    const struct tune_flags *flags;
};

struct tune_line_step {
    int64_t step, planned; /* planned 0: unknown */
    double loss, norm, lr, step_s, tokens_per_s;
    double eta_s;          /* negative: unknown */
};

void tune_line_start(struct tune_line *line, FILE *out);

/* tune_line_step - a line "step 120/1170 | loss 1.8432 | ... | ETA 0:12:31", or the bar, redrawn at most ten times a
 * second unless it is the last step. tune_line_print - a line of its own, the bar moves down. -1: out cannot be written; but
 * where line->stop points somewhere, SIGPIPE is noted there (unless a signal was), and the line is lost. */
int tune_line_step(struct tune_line *line, const struct tune_line_step *s, double now_s);
int tune_line_print(struct tune_line *line, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_line_bar - the bar for a terminal `width` columns wide, in at most width - 1 columns of ASCII. */
void tune_line_bar(char *text, size_t size, const struct tune_line_step *s, int width);

#endif
