/* regular.h - regular expressions as Python's re reads them.
 *
 *     struct tune_regular *r = tune_regular_new("#### (-?[0-9.,]+)");
 *     struct tune_regular_span span[2];
 *     if (tune_regular_search(r, text, size, 0, span) == 1)
 *         fwrite(text + span[1].begin, 1, span[1].end - span[1].begin, stdout);
 *     tune_regular_free(r);
 *
 * Known are characters, classes, \d \w \s \b and their opposites, anchors, groups and |. Repetition
 * is greedy or lazy. There are lookahead, lookbehind, and the flags (?i), (?s), (?m). Not known are
 * references to groups, possessive repetition, conditions, (?x), and letters outside ASCII. Texts
 * are UTF-8: a dot and [^x] take a whole character. Characters outside ASCII are no \w, \d and
 * \s. */
#ifndef TUNE_CORE_REGULAR_H
#define TUNE_CORE_REGULAR_H

#include <stdbool.h>
#include <stddef.h>

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

struct tune_regular;

/* A part of a text. found: false for a group that takes no part in the match. */
struct tune_regular_span {
    size_t begin, end;
    bool found;
};

/* tune_regular_new - an expression to search for. NULL with an error, as tune_regular_check.
 * tune_regular_free - free it; NULL is fine.
 * tune_regular_groups - how many groups it has.
 * tune_regular_search - the first match at `from` or behind it, as re.search: 1, with spans
 * [groups + 1] of the match and of each group. 0: there is none. -1 with an error: it takes too
 * many steps. One thread at a time uses an expression. */
struct tune_regular *tune_regular_new(const char *expression);
void tune_regular_free(struct tune_regular *r);
int tune_regular_groups(const struct tune_regular *r);
int tune_regular_search(struct tune_regular *r, const char *text, size_t size, size_t from,
                        struct tune_regular_span *spans);

#ifdef __cplusplus
}
#endif
#endif
