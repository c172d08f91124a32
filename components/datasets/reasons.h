/* reasons.h - why rows of a file cannot be read. Private to datasets. */
#ifndef TUNE_DATASETS_REASONS_H
#define TUNE_DATASETS_REASONS_H

#include <stdint.h>

/* The first three reasons, with "; " between them, and how many rows there were. Zeroed: none. */
struct tune_reasons {
    char text[720];
    int64_t count;
};

/* tune_reasons_add - count a bad row. Its reason is this thread's error, which is cleared.
 * tune_reasons_refuse - set the error that not one of the counted rows can be read, with the first
 * reasons. of: the rows of the file. Returns -1. */
void tune_reasons_add(struct tune_reasons *r);
int tune_reasons_refuse(const struct tune_reasons *r, const char *path, int64_t of);

#endif
