/* result_files.h - what an evaluation writes beside its lines of rows: the same as CSV, and a
 * figure of its values. Private to this folder and tasks/. */
#ifndef TUNE_RESULT_FILES_H
#define TUNE_RESULT_FILES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "metrics/estimates.h"

/* A value of one model, or of two. */
struct tune_figure_value {
    const char *name, *unit;
    const struct tune_estimate *side[2]; /* [1] NULL: there is one model */
};

/* The last line of the figures, by which they are known again. */
#define TUNE_RESULT_MARK "<!-- evaluate, tune.c -->\n"

/* Rows of a data set are judged, or task files. */
enum tune_result_kind { TUNE_RESULT_ROWS, TUNE_RESULT_TASKS };

/* tune_result_check_folder - refuse a folder in which a file would be replaced that no evaluation
 * of this kind wrote. dataset: the rows that are judged, which may not be such a file; NULL: none.
 * tune_result_csv - copy the folder's lines of rows as CSV. The first line has the columns: the
 * members of all lines, in the order in which they first come.
 * tune_result_svg - draw values with their intervals into the folder, a plot for each unit. names:
 * of the sides. These three: -1 with an error.
 * tune_result_put - put a number into a report, under before, name and behind as one text; one that
 * is not finite is left out. False: no memory. */
int tune_result_check_folder(const char *folder, enum tune_result_kind kind,
                             const char *dataset);
int tune_result_csv(const char *folder);
int tune_result_svg(const char *folder, const char *title, const struct tune_figure_value *results,
                    int count, const char *const names[2]);
bool tune_result_put(cJSON *to, const char *before, const char *name, const char *behind,
                     double value);

#endif
