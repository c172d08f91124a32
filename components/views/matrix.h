/* matrix.h - counts in rows and columns as SVG, such as a confusion matrix.
 *
 *     static const char *const rows[] = {"cat", "dog"};
 *     static const char *const columns[] = {"cat", "dog", "(other)"};
 *     static const double counts[] = {8, 1, 1, 2, 8, 0};
 *     struct tune_matrix m = {.title = "confusion matrix", .row_title = "label",
 *                             .column_title = "answer", .row_names = rows, .column_names = columns,
 *                             .rows = 2, .columns = 3, .counts = counts};
 *     tune_matrix_svg(&m, 1, file); */
#ifndef TUNE_MATRIX_H
#define TUNE_MATRIX_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_matrix {
    const char *title, *note;         /* note: below the title; NULL: none */
    const char *row_title, *column_title;
    const char *const *row_names;     /* [rows] */
    const char *const *column_names;  /* [columns] */
    int rows, columns;
    const double *counts;             /* [rows][columns], at least 0. A cell's colour is its share
                                         of its row */
};

/* tune_matrix_svg - write an SVG document with count matrices one below the other. Each cell shows
 * its count where there is room, and count, names and share on hover. Of many rows, some are named.
 * Its colours follow the viewer's light or dark theme. The caller checks ferror(out). */
void tune_matrix_svg(const struct tune_matrix *m, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
