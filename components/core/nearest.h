/* nearest.h - find the known name closest to an unknown one, for error messages. */
#ifndef TUNE_CORE_NEAREST_H
#define TUNE_CORE_NEAREST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_nearest - the name, among count names, with the fewest edits from name; NULL if count is 0.
 * '-' and '_' are equal. A name that contains the other counts as one edit. With distance, that is
 * set to the number of edits. With distance NULL, the result is also NULL if the name is more than
 * tune_nearest_limit away: it is then none that was meant.
 * tune_nearest_limit - a third of the name's letters, at least 2. */
const char *tune_nearest(const char *name, const char *const *names, int count, int *distance);
int tune_nearest_limit(const char *name);

/* tune_nearest_hint - " (the nearest is X)" for a message, in hint; "" if none is near.
 * tune_name_split - the names between the commas of a text, which is cut: how many, empty ones left
 * out. -1 with kind USAGE: more than `most`. text NULL: none.
 * tune_name_listed - true if the name is one of those between the commas of list.
 * tune_name_used - true if the name stands in the text, with no letter, digit or _ beside it.
 * tune_name_find - the place of name among count names; -1: it is none of them. */
enum { TUNE_HINT = 320 };
const char *tune_nearest_hint(const char *name, const char *const *names, int count,
                              char hint[TUNE_HINT]);
int tune_name_split(char *text, const char **names, int most);
bool tune_name_listed(const char *list, const char *name);
bool tune_name_used(const char *text, const char *name);
int tune_name_find(const char *const *names, int count, const char *name);

#ifdef __cplusplus
}
#endif
#endif
