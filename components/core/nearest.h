/* nearest.h - the most similar known name, for messages about unknown names. */
#ifndef TUNE_CORE_NEAREST_H
#define TUNE_CORE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_nearest - the name most similar to `name`, by number of edits; '-' and '_' are equal. A name
 * that contains the other counts as one edit. *distance (may be NULL): the edits. NULL: count is
 * 0. */
const char *tune_nearest(const char *name, const char *const *names, int count, int *distance);

#ifdef __cplusplus
}
#endif
#endif
