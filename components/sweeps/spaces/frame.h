/* frame.h - a table of texts laid out as pandas prints a data frame, because ado does. */
#ifndef TUNE_SPACES_FRAME_H
#define TUNE_SPACES_FRAME_H

#include <stdbool.h>
#include <stdio.h>

struct tune_frame;

/* tune_frame_new - columns with these headings. tune_frame_cell - the next cell, row by row. Texts
 * are copied, their control characters spelled out. What cannot be made or added for want of memory
 * is told by tune_frame_print: f may be NULL.
 * tune_frame_numbers - this column's cells are numbers to pandas, which heads them by one blank
 * more.
 * tune_frame_print - with the row index before each row, indent columns to the right; then it is
 * freed. 0, or -1 with an error: no memory. */
struct tune_frame *tune_frame_new(const char *const *headings, int columns);
void tune_frame_cell(struct tune_frame *f, const char *text);
void tune_frame_numbers(struct tune_frame *f, int column);
int tune_frame_print(struct tune_frame *f, int indent, FILE *out);
void tune_frame_free(struct tune_frame *f);

#endif
