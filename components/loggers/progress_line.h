/* progress_line.h - the output of a run: lines in a file or a pipe, a bar drawn in place in a
 * terminal. */
#ifndef TUNE_LOGGERS_PROGRESS_LINE_H
#define TUNE_LOGGERS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"

/* The bar has a line of its own, and the cursor is below it. So any other message starts on a clean
 * line. */
struct tune_flags;

struct tune_line {
    FILE *out;
    bool terminal; /* a terminal that can move its cursor (TERM is not "dumb") */
    bool drawn;    /* the bar is on the line above */
    double drawn_s;
    volatile int *stop; /* see tune_line_step; NULL: none */
    /* as in options.h; for tune_line_print */
    void (*spell)(const struct tune_flags *flags, char *text);
    const struct tune_flags *flags;
};

struct tune_line_step {
    int64_t step, planned; /* 0: unknown */
    double loss, norm, lr, step_s, tokens_per_s;
    double eta_s;          /* negative: unknown */
    const char *own;       /* a recipe's own numbers, such as "reward 0.5 | kl 0.1"; NULL: none */
    bool diverged;         /* the line ends with that word */
};

void tune_line_start(struct tune_line *line, FILE *out);

/* tune_line_step - print "step 120/1170 | loss 1.8432 | ... | ETA 0:12:31", or draw the bar, at
 * most ten times a second and at the last step.
 * tune_line_print - print a line; the bar moves down. In a terminal, or where COLUMNS is set, a
 * line "# key  text" is folded between words. -1 with an error: out cannot be written. If
 * line->stop is set, SIGPIPE is stored there instead (unless a signal was), and the line is
 * lost. */
int tune_line_step(struct tune_line *line, const struct tune_line_step *s, double now_s);
int tune_line_print(struct tune_line *line, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_line_bar - the bar for a terminal of width columns, in at most width - 1 ASCII
 * characters. */
void tune_line_bar(char *text, size_t size, const struct tune_line_step *s, int width);

#endif
