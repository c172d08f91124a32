/* shades.h - the colours that show values. Private to this folder. */
#ifndef TUNE_VIEWS_SHADES_H
#define TUNE_VIEWS_SHADES_H

#include <stdbool.h>

#include "views/plot.h"

enum { TUNE_SHADES = 32 };

struct tune_shade {
    unsigned char red, green, blue;
};

/* tune_shade - one of TUNE_SHADES colours, from nearly white (0) to nearly black, in steps that
 * look equal. A dark page uses them in reverse.
 * tune_shade_at - the index for a position 0..1 on an axis.
 * tune_shade_takes_black - whether black text is easier to read on it than white text. */
struct tune_shade tune_shade(int i);
int tune_shade_at(double place);
bool tune_shade_takes_black(int i);

/* tune_shade_terminal - the escape sequence for a background in this shade with readable text; text
 * false: for a foreground.
 * tune_shade_end - the sequence that ends it. Both are empty without colours. */
void tune_shade_terminal(const struct tune_terminal *how, int i, bool text, FILE *out);
void tune_shade_end(const struct tune_terminal *how, FILE *out);

#endif
