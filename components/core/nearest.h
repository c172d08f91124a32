/* nearest.h - which name was meant: for the messages about names that nobody knows. */
#ifndef TUNE_CORE_NEAREST_H
#define TUNE_CORE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_nearest - the one of count names that is most like name, by edits ('-' and '_' equal); NULL if there are none.
 * A name that holds the other counts as one edit. *distance, where not NULL: the edits. */
const char *tune_nearest(const char *name, const char *const *names, int count, int *distance);

#ifdef __cplusplus
}
#endif
#endif
