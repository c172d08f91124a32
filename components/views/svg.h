/* svg.h - what every SVG document of this folder is made of: its style, escaped text, labels that
 * fit. For the files of this folder.
 *
 * Classes: paper, ink (text), note (lesser text), title, grid, frame (axes); c0..c7 and f0..f7,
 * stroke and fill of the curves' colours; bar, band: a spread; s0.., q0.., t0..: the shades as
 * strokes, as fills and what is written on them, counted from the paper on, in light and in dark;
 * mark: a frame that stands out; halo: a rim of paper about a text. */
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
 * tune_svg_label - a text element, cut to width pixels (0: any) with an ellipsis and the whole as
 * its hover text; anchor: "start", "middle", "end"; turned by degrees about its anchor. */
void tune_svg_text(FILE *out, const char *text);
double tune_svg_width(const char *text);
void tune_svg_label(FILE *out, const char *class_name, double x, double y, const char *anchor,
                    double degrees, double width,
                    const char *text);

/* tune_svg_heading - a title with its unit ("" none) and two lines of notes below (NULL, "": none),
 * in as many pixels as tune_svg_heading_height says.
 * tune_svg_below - a label below x, in width pixels, or turned, where labels are wider than that:
 * that takes tune_svg_below_height pixels more than a line of text, width being that of the
 * widest. */
void tune_svg_heading(FILE *out, double x, double top, const char *title, const char *unit,
                      const char *note, const char *more);
double tune_svg_heading_height(const char *note, const char *more);
void tune_svg_below(FILE *out, double x, double y, bool turned, double width, const char *text);
double tune_svg_below_height(double width);

#endif
