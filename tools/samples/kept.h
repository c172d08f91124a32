/* kept.h - rows that are kept before they are printed: grouped, sorted, with chosen columns. */
#ifndef TUNE_TOOLS_KEPT_H
#define TUNE_TOOLS_KEPT_H

#include "samples.h"

/* A cell as it will be printed, with its numbers. */
struct kept_cell {
    const char *text;        /* NULL: empty */
    double number;           /* NAN: none; of several numbers their mean; of a time its seconds */
    const double *values;    /* [count] the numbers */
    int count;
    bool whole, right;       /* right: people see it aligned on the right */
    unsigned char digits;    /* that people see of the numbers */
};

struct kept {
    struct samples_column *columns; /* [count] */
    int count;
    struct kept_cell *cells;        /* [rows][count] */
    int64_t used;
    int64_t *order;                 /* [rows] as they are to be printed */
    int64_t rows;
    int *shown, shown_count;        /* columns to print */
    int (*spell)(char *text, const struct kept_cell *cell); /* a number as the format has it */
};

/* kept_column - one more column. kept_add - the next cell, which is copied.
 * kept_arrange - group, sort and choose columns by the flags, when all cells are there. -1 with an
 * error: no such column. */
struct samples_column *kept_column(struct kept *k, const char *heading);
void kept_add(struct kept *k, const struct kept_cell *cell);
int kept_arrange(struct kept *k);

#endif
