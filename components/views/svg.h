/* svg.h - style, escaped text and fitting labels of SVG documents. Private to this folder.
 *
 * Classes:
 *     paper, ink (text), note (lesser text), title, grid, frame (axes)
 *     c0..c7, f0..f7: stroke and fill of the curves' colours
 *     bar, band: a spread
 *     s0.., q0.., t0..: a shade as stroke, as fill, and the text on it, from the paper on
 *     mark: a frame that stands out; halo: a rim of paper, drawn below a text or a frame */
#ifndef TUNE_VIEWS_SVG_H
#define TUNE_VIEWS_SVG_H

#include <stdbool.h>
#include <stdio.h>

#include "views/scale.h"

/* Sizes in pixels: of the document, and of a turned label below an axis. */
enum { TUNE_SVG_WIDTH = 960, TUNE_SVG_BELOW = 180, TUNE_SVG_COLORS = 8 };

/* tune_svg_begin - write the document's head with its style; shades: with the styles of shades.
 * tune_svg_end - write its end.
 * tune_svg_style - write the rules of that style alone, for pages that show documents inline. */
void tune_svg_begin(FILE *out, double width, double height, bool shades);
void tune_svg_style(FILE *out, bool shades);
void tune_svg_end(FILE *out);

/* tune_svg_text - write text between tags. Characters that XML does not allow become question
 * marks.
 * tune_svg_width - about the width in pixels, for letters of 13 pixels.
 * tune_svg_widest - the most of several texts.
 * tune_svg_label - write a text element, turned by degrees about its anchor: "start", "middle" or
 * "end". It is cut to width pixels (0: not cut) with an ellipsis; the whole text shows on hover. */
void tune_svg_text(FILE *out, const char *text);
double tune_svg_width(const char *text);
double tune_svg_widest(const char *const *texts, int count);
void tune_svg_label(FILE *out, const char *class_name, double x, double y, const char *anchor,
                    double degrees, double width,
                    const char *text);

/* tune_svg_heading - write a title with its unit, and two notes below it. Each but the title may be
 * NULL or "". Notes are folded between words into lines of at most width pixels. Returns the
 * heading's height. out NULL: only measure it.
 * tune_svg_across - how many of count panels stand side by side, each at least `least` pixels wide.
 * The rows are about equally long.
 * tune_svg_below - write a label below x, in width pixels. turned: slanting, and width is the space
 * on its left.
 * tune_svg_below_height - extra height of turned labels, compared with a line of text. width: the
 * widest label. */
double tune_svg_heading(FILE *out, double x, double top, double width, const char *title,
                        const char *unit, const char *note, const char *more);
int tune_svg_across(int count, double width, double least);
void tune_svg_below(FILE *out, double x, double y, bool turned, double width, const char *text);
double tune_svg_below_height(double width);

/* tune_svg_key - draw the colours of a scale, from shade `first` on, with ticks and labels on their
 * right. falling: the lowest value has the strongest colour. */
void tune_svg_key(FILE *out, double x, double top, double height, const struct tune_scale *scale,
                  int first, bool falling);

#endif
