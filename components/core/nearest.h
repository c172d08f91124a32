/* nearest.h - find the known name closest to an unknown one, for error messages. */
#ifndef TUNE_CORE_NEAREST_H
#define TUNE_CORE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_nearest - the name, among count names, with the fewest edits from name; NULL if count is 0.
 * '-' and '_' are equal. A name that contains the other counts as one edit. *distance, unless NULL:
 * the number of edits. */
const char *tune_nearest(const char *name, const char *const *names, int count, int *distance);

#ifdef __cplusplus
}
#endif
#endif
