/* arrange.h - group, sort and choose among the rows and columns of an answer. */
#ifndef TUNE_ANSWERS_ARRANGE_H
#define TUNE_ANSWERS_ARRANGE_H

#include "sweeps/answers/answer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lists hold names of columns, separated by commas. A name also selects columns that end with
 * "-name". */
struct tune_arrangement {
    /* Rows that are equal in these columns become one row. It has their number, and a statistic of
     * each measured column */
    const char *group_by;
    const char *aggregate; /* the statistic, see tune_statistic; NULL: the mean */
    const char *sort;      /* "-name": the highest first. Rows without a value come last */
    const char *columns;   /* the columns to keep, in this order */
    int64_t limit;         /* maximum number of rows; 0: all */
};

/* tune_answer_arrange - group, sort, choose columns and limit, in this order. A note warns if the
 * groups differ in other dimensions, too, because their statistics are then not comparable. -1 with
 * an error: no such column (kind USAGE), or no memory. */
int tune_answer_arrange(struct tune_answer_table *a, const struct tune_arrangement *how);

/* tune_arrangement_mentions - true if columns, sort or group_by contains this name, or a longer one
 * that ends with it. */
bool tune_arrangement_mentions(const struct tune_arrangement *how, const char *name);

/* tune_answer_no_such - set the error that `name` is not in names[count], and return -1. The error
 * suggests the nearest name and lists all. what: the kind of name, such as "property". */
int tune_answer_no_such(const char *what, const char *name, const char *const *names, int count);

#ifdef __cplusplus
}
#endif
#endif
