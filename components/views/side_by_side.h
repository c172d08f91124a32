/* side_by_side.h - two texts in two columns, with the words marked in which they differ.
 *
 *     base                         | tuned
 *     The sky is blue because of   | The sky is blue because
 *     *the sea*.                   | *air scatters light*. */
#ifndef TUNE_SIDE_BY_SIDE_H
#define TUNE_SIDE_BY_SIDE_H

#include <stddef.h>
#include <stdio.h>

struct tune_side_text {
    const char *name; /* the heading */
    const char *text; /* [size] UTF-8 */
    size_t size;
};

/* tune_side_by_side - print both. width: columns of the terminal, where marked words are bold; 0:
 * it is none, columns are those of 100, and marked words stand between asterisks. Below 40 columns
 * one text stands below the other. Words that both have, in the same order, are not marked (the
 * longest common subsequence). In texts of thousands of words none are. None are
 * either if the texts share less than a third of the longer one's words. -1 with an error: no
 * memory, or out cannot be written. */
int tune_side_by_side(FILE *out, const struct tune_side_text *a, const struct tune_side_text *b,
                      int width);

#endif
