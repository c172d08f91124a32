/* svg.h - style, escaped text and fitting labels of SVG documents. For the files of this folder.
 *
 * Classes:
 *     paper, ink (text), note (lesser text), title, grid, frame (axes)
 *     c0..c7, f0..f7: stroke and fill of the curves' colours
 *     bar, band: a spread
 *     s0.., q0.., t0..: a shade as stroke, as fill, and the text on it, from the paper on
 *     mark: a frame that stands out; halo: a rim of paper around a text */
#ifndef TUNE_VIEWS_SVG_H
#define TUNE_VIEWS_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* Pixels, of the document, of a label that stands turned below an axis. */
enum { TUNE_SVG_WIDTH = 960, TUNE_SVG_BELOW = 180, TUNE_SVG_COLORS = 8 };

/* tune_svg_begin - the document's head with its style; shades: also those. tune_svg_end - what
 * closes it. */
void tune_svg_begin(FILE *out, double width, double height, bool shades);
void tune_svg_end(FILE *out);

/* tune_svg_text - text between tags; what XML does not allow becomes a question mark.
 * tune_svg_width - pixels that it takes in letters of 13 pixels, near enough.
 * tune_svg_label - a text element, turned by degrees about its anchor: "start", "middle" or "end".
 * It is cut to width pixels (0: any) with an ellipsis; the whole text shows on hover. */
void tune_svg_text(FILE *out, const char *text);
double tune_svg_width(const char *text);
void tune_svg_label(FILE *out, const char *class_name, double x, double y, const char *anchor,
                    double degrees, double width,
                    const char *text);

/* tune_svg_heading - a title with its unit ("" none) and two lines of notes below (NULL, "": none),
 * in as many pixels as tune_svg_heading_height says.
 * tune_svg_below - a label below x, in width pixels. Wider labels are turned.
 * tune_svg_below_height - pixels that turned labels take more than a line of text. width: that of
 * the widest label. */
void tune_svg_heading(FILE *out, double x, double top, const char *title, const char *unit,
                      const char *note, const char *more);
double tune_svg_heading_height(const char *note, const char *more);
void tune_svg_below(FILE *out, double x, double y, bool turned, double width, const char *text);
double tune_svg_below_height(double width);

#endif
