/* frame.h - a table of texts laid out as pandas prints a data frame, because ado does. */
#ifndef TUNE_SPACES_FRAME_H
#define TUNE_SPACES_FRAME_H

#include <stdbool.h>
#include <stdio.h>

struct tune_frame;

/* tune_frame_new - begin a table with these headings.
 * tune_frame_cell - add the next cell, row by row. Texts are copied, with control characters
 * escaped. tune_frame_print reports missing memory.
 * tune_frame_numbers - say that this column has numbers; pandas puts one more blank before its
 * heading.
 * tune_frame_print - print it with row numbers, indented by `indent` columns. 0, or -1 with an
 * error: no memory. */
struct tune_frame *tune_frame_new(const char *const *headings, int columns);
void tune_frame_cell(struct tune_frame *f, const char *text);
void tune_frame_numbers(struct tune_frame *f, int column);
int tune_frame_print(struct tune_frame *f, int indent, FILE *out);
void tune_frame_free(struct tune_frame *f);

#endif
