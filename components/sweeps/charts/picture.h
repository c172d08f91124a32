/* picture.h - the picture of a plot's points: an answer of tune_ask_plot, in a terminal or as SVG.
 *
 *     struct tune_question q = {.store = store, .about = "space.yaml", .properties = "speed"};
 *     struct tune_answer_table *a = tune_ask_plot(&q);
 *     struct tune_picture *p = a ? tune_picture_new(a, &q, false) : NULL;
 *     if (!p || tune_picture_svg(p, file) < 0)
 *         ... tune_error_message() ...
 *     tune_picture_free(p);
 *     tune_answer_free(a);
 *
 * One dimension that varies is drawn as curves, two as a heat map, more as parallel coordinates. A
 * property on the x axis is drawn as points, with the Pareto front if q maximizes one axis and
 * minimizes the other. There is a drawing for each property under each experiment.
 *
 * In SVG, each point, cell or line has data-row="N": its row in the table, from 0. */
#ifndef TUNE_PICTURE_H
#define TUNE_PICTURE_H

#include "sweeps/answers/question.h"
#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_picture;

/* tune_picture_new - make the picture of a. q is the question that a answers: its x, series, facet,
 * maximize, minimize and aggregate say what is drawn. Both are borrowed until tune_picture_free.
 * logarithmic: the values are on a logarithmic scale. NULL with an error; kind USAGE: these axes do
 * not go together, or there are too many curves or drawings.
 * tune_picture_free - free it; NULL is fine. */
struct tune_picture *tune_picture_new(const struct tune_answer_table *a,
                                      const struct tune_question *q, bool logarithmic);
void tune_picture_free(struct tune_picture *p);

/* tune_picture_fits_terminal - false for parallel coordinates, which are only drawn as SVG.
 * tune_picture_terminal - draw it in a terminal; nothing if it does not fit one.
 * tune_picture_svg - write it as an SVG document. Both: 0, or -1 with an error. */
bool tune_picture_fits_terminal(const struct tune_picture *p);
int tune_picture_terminal(const struct tune_picture *p, const struct tune_terminal *how, FILE *out);
int tune_picture_svg(const struct tune_picture *p, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
