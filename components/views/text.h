/* text.h - texts of anybody's on lines of ours: how wide they are, cut, aligned, their control characters spelled out. For the
 * files of this folder. */
#ifndef TUNE_VIEWS_TEXT_H
#define TUNE_VIEWS_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* tune_width - columns that UTF-8 text takes, one each character. tune_bytes_of - bytes of its first `columns` characters. */
int tune_width(const char *text);
size_t tune_bytes_of(const char *text, int columns);

/* tune_plain - text as it may stand on a terminal's line: control characters spelled out, what is no UTF-8 a question mark. The
 * caller frees it; NULL: no memory. tune_plain_width - the columns that takes. tune_put_plain - it onto a stream. */
char *tune_plain(const char *text);
int tune_plain_width(const char *text);
void tune_put_plain(FILE *out, const char *text);

/* tune_put_in - text, made plain, in exactly width columns: to the left '<', the right '>' or in the middle '^', cut with an
 * ellipsis ("~" where unicode is false) where it is wider. */
void tune_put_in(FILE *out, const char *text, int width, char side, bool unicode);

/* tune_put_note - a line of notes, made plain, after so many spaces: both, "; " between them. Nothing where both are NULL or "". */
void tune_put_note(FILE *out, int indent, const char *note, const char *more);

/* If names do not fit under their columns, letters stand there, and a key below lists the names.
 * tune_key_letter - the letter of name i; ' ' if letters run out. tune_put_key - print "a first   b
 * second", indented, on lines of at most width columns. */
char tune_key_letter(int i);
void tune_put_key(FILE *out, const char *const *names, int count, int indent, int width, bool unicode);

#endif
