/* regression.h - compare --regression: whether b is worse than a by more than a share. */
#ifndef TUNE_TOOLS_REGRESSION_H
#define TUNE_TOOLS_REGRESSION_H

#include "samples.h"

enum { REGRESSION_PROPERTIES = 256, CANNOT_TELL = 4 };

/* regression_read - read --regression, and the properties to look at: --maximize, --minimize, and
 * those of --property, whose unit says what is better. names, units: [count] all properties there
 * are. Returns how many are looked at, their names in wanted; or -1.
 * regression_columns - the columns.
 * regression_put - a row: an entity's figures of a property, in the order of measurement. sides:
 * arrays of counts[2] values.
 * regression_end - rows for all entities together, before the table ends.
 * regression_tell - the answer for people.
 * regression_code - 0: no regression; 1: a regression; CANNOT_TELL. */
int regression_read(const char *const *names, const char *const *units, int count,
                    const char **wanted);
void regression_columns(void);
int regression_put(const char *experiment, const char *entity, const char *property,
                   double *const sides[2], const int counts[2]);
int regression_end(void);
void regression_tell(void);
int regression_code(void);

#endif
