/* shades.c - one scale of colours for both ways of drawing.
 *
 * The scale was made in OKLab (Ottosson 2020). Lightness falls from 0.955 to 0.29, and the hue
 * turns from yellow over green to violet. Each step has the same distance, 0.0245. So equal
 * differences look equal. A grey print keeps the order, and so do eyes that cannot tell red from
 * green. */
#include "views/shades.h"

#include <math.h>
#include <stdint.h>

static const uint32_t shades[TUNE_SHADES] = {
    0xf4f5ba, 0xe8efb3, 0xdce8ab, 0xcfe2a4, 0xc2dc9e, 0xb5d799, 0xa7d194, 0x99cb91, 0x89c68e, 0x79c08d, 0x69ba8d,
    0x57b58e, 0x46ae90, 0x38a792, 0x2ca093, 0x239894, 0x1c9193, 0x178993, 0x138192, 0x117990, 0x0f718f, 0x0e698e,
    0x0d618e, 0x0e598e, 0x11508f, 0x164890, 0x1e3f8d, 0x253688, 0x2a2c81, 0x2e237a, 0x301a72, 0x311069,
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

/* Colours of the 6 x 6 x 6 cube for terminals with 256 colours. They approximate the shades'
 * lightness and hue; the nearest colours alone would jump. Each serves two shades. */
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
