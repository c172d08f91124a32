/* shades.h - the colours values are shown in. For the files of this folder. */
#ifndef TUNE_VIEWS_SHADES_H
#define TUNE_VIEWS_SHADES_H

#include <stdbool.h>

#include "views/plot.h"

enum { TUNE_SHADES = 32 };

struct tune_shade {
    unsigned char red, green, blue;
};

/* tune_shade - one of TUNE_SHADES, from next to white (0) to next to black, each as far from the
 * next as the eye sees it. A dark page takes them from the other end.
 * tune_shade_at - the index for a place on an axis, 0..1.
 * tune_shade_takes_black - what is written on it is read better in black than in white. */
struct tune_shade tune_shade(int i);
int tune_shade_at(double place);
bool tune_shade_takes_black(int i);

/* tune_shade_terminal - the escape sequence of a background in this shade, with a text to be read
 * on it; as a foreground, where text is false. tune_shade_end - what ends it. Both empty without
 * colour. */
void tune_shade_terminal(const struct tune_terminal *how, int i, bool text, FILE *out);
void tune_shade_end(const struct tune_terminal *how, FILE *out);

#endif
