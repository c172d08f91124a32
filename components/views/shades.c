/* shades.c - one scale of colours for both ways of drawing.
 *
 * Made in OKLab (Ottosson 2020): lightness falls from 0.955 to 0.29 while the hue turns from yellow over green to violet, in
 * steps of equal distance, 0.026 each. So equal differences look equal, a grey print keeps the order, and so do eyes that tell
 * red from green badly. */
#include "views/shades.h"

#include <math.h>
#include <stdint.h>

static const uint32_t shades[TUNE_SHADES] = {
    0xf4f5ba, 0xe7eeb2, 0xdae8ab, 0xcce2a4, 0xbedb9e, 0xafd599, 0xa0cf94, 0x91c990, 0x81c38e, 0x6fbd8e, 0x5bb78f,
    0x46b191, 0x2daa92, 0x0da494, 0x019d95, 0x0b9695, 0x0c8f94, 0x078894, 0x0a8092, 0x007892, 0x087090, 0x006890,
    0x016090, 0x035990, 0x015293, 0x0a4b94, 0x1a418f, 0x233889, 0x292e83, 0x2d247b, 0x301973, 0x310d6b,
};

struct tune_shade tune_shade(int i)
{
    uint32_t c = shades[i < 0 ? 0 : i >= TUNE_SHADES ? TUNE_SHADES - 1 : i];
    return (struct tune_shade){(unsigned char)(c >> 16), (unsigned char)(c >> 8), (unsigned char)c};
}

int tune_shade_at(double place)
{
    return !(place > 0) ? 0 : place >= 1 ? TUNE_SHADES - 1 : (int)(place * TUNE_SHADES);
}

static double linear(unsigned char c)
{
    return c <= 10 ? c / 255.0 / 12.92 : pow((c / 255.0 + 0.055) / 1.055, 2.4);
}

/* Contrast with black and with white is the same at a luminance of 0.179 (WCAG 2, relative luminance). */
bool tune_shade_takes_black(int i)
{
    struct tune_shade c = tune_shade(i);
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue) > 0.179;
}

/* Of the 6 x 6 x 6 colours that terminals of 256 have, those that come near in lightness and turn the same way; the nearest
 * ones by themselves jump about. Each serves two shades. */
static const unsigned char of_256[TUNE_SHADES / 2] = {229, 193, 150, 114, 78, 36, 36, 30, 30, 30, 24, 24, 24, 19, 19, 18};

void tune_shade_terminal(const struct tune_terminal *how, int i, bool text, FILE *out)
{
    struct tune_shade c = tune_shade(i);
    if (!how->color)
        return;
    fputs(text ? (tune_shade_takes_black(i) ? "\033[38;5;16;48;" : "\033[38;5;231;48;") : "\033[38;", out);
    if (how->truecolor)
        fprintf(out, "2;%d;%d;%dm", c.red, c.green, c.blue);
    else
        fprintf(out, "5;%dm", of_256[(i < 0 ? 0 : i >= TUNE_SHADES ? TUNE_SHADES - 1 : i) / 2]);
}

void tune_shade_end(const struct tune_terminal *how, FILE *out)
{
    if (how->color)
        fputs("\033[0m", out);
}
