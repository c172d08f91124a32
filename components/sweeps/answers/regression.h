/* regression.h - decide whether side b is worse than side a by more than a share. Private to
 * answers/.
 *
 * The k-th result of an entity on side a and its k-th on side b are a pair. The gain of a pair is
 * the logarithm of how many times better b is. Student's posterior over the gains gives the
 * answer. */
#ifndef TUNE_ANSWERS_REGRESSION_H
#define TUNE_ANSWERS_REGRESSION_H

#include "sweeps/answers/subject.h"

enum { TUNE_REGRESSION_PROPERTIES = 256, TUNE_CANNOT_TELL = 4 };

/* A property to look at, and the answers about it. */
struct tune_judged {
    const char *name;
    bool highest;             /* more of it is better */
    double limit;             /* limit of the mean gain */
    int answers[3];           /* numbers of entities: no, yes, undecided */
    int most_needed;          /* most pairs that an entity still needs; -1: over a million */
    /* The experiment of the current rows, and the gains of all its entities. */
    const char *experiment;
    double *gains;
    int gain_count, entities;
    bool all_worse;           /* all entities together are worse */
};

struct tune_regression {
    struct tune_subject *s;
    bool median;
    double share;
    struct tune_judged all[TUNE_REGRESSION_PROPERTIES];
    int count;
};

/* tune_regression_read - read the question's regression, and the properties to check. These are
 * maximize, minimize, and those of `properties` whose unit says what is better. names, units:
 * [count] all properties. Returns the number of properties to check, with their names in wanted; or
 * -1.
 * tune_regression_columns - add the columns of the answer.
 * tune_regression_add - add a row for an entity and a property. sides: the figures of both sides,
 * in the order of measurement.
 * tune_regression_end - add rows for all entities together and notes, and set the answer's verdict.
 * tune_regression_free - free the memory of r. */
int tune_regression_read(struct tune_regression *r, const char *const *names,
                         const char *const *units, int count, const char **wanted);
void tune_regression_columns(struct tune_regression *r);
int tune_regression_add(struct tune_regression *r, const char *experiment, const char *entity,
                        const char *property, double *const sides[2], const int counts[2]);
int tune_regression_end(struct tune_regression *r);
void tune_regression_free(struct tune_regression *r);

#endif
