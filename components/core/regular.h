/* regular.h - regular expressions as Python's re reads them, for short ASCII texts such as names.
 *
 * Known are characters, classes, \d \w \s \b and their opposites, anchors, groups and |. Repetition
 * is greedy or lazy. There are lookahead, lookbehind, and the flags (?i), (?s), (?m). Not known are
 * references to groups, possessive repetition, conditions, (?x), and letters outside ASCII. */
#ifndef TUNE_CORE_REGULAR_H
#define TUNE_CORE_REGULAR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_regular_check - 0, or -1 with an error: the expression is not one, or has something that is
 * not known here.
 * tune_regular_matches - 1 if it fits the whole text, as re.fullmatch; with whole false, if it fits
 * its beginning, as re.match. 0: it does not. -1, without an error text: it cannot be read, or
 * takes more than a million steps. */
int tune_regular_check(const char *expression);
int tune_regular_matches(const char *expression, const char *text, bool whole);

#ifdef __cplusplus
}
#endif
#endif
