/* text.h - foreign texts on a line: their width, cut, aligned, with control characters spelled out.
 * For the files of this folder. */
#ifndef TUNE_VIEWS_TEXT_H
#define TUNE_VIEWS_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* tune_width - columns that UTF-8 text takes on a terminal. A combining character takes none, a
 * wide one of East Asia or an emoji takes two, any other one.
 * tune_bytes_of - bytes of its characters that fit `columns` columns. */
int tune_width(const char *text);
size_t tune_bytes_of(const char *text, int columns);

/* tune_plain - text that is safe on a terminal's line. Control characters are spelled out, and
 * bytes that are no UTF-8 become a question mark. The caller frees it; NULL: no memory.
 * tune_plain_width - the columns of that text.
 * tune_plain_widest - the most columns of several.
 * tune_put_plain - print that text. */
char *tune_plain(const char *text);
int tune_plain_width(const char *text);
int tune_plain_widest(const char *const *texts, int count);
void tune_put_plain(FILE *out, const char *text);

/* tune_put_in - print plain text in exactly width columns, on the left '<', the right '>' or in the
 * middle '^'. A wider text is cut with an ellipsis ("~" if unicode is false). */
void tune_put_in(FILE *out, const char *text, int width, char side, bool unicode);

/* tune_put_folded - print lead and a plain text, folded between words into lines of at most width
 * columns (0: one line). Further lines begin with spaces below the text. A word that is wider than
 * a line stands on one of its own. */
void tune_put_folded(FILE *out, const char *lead, const char *text, int width);

/* tune_put_note - print both notes, "; " between them, after indent spaces, folded between words
 * into lines of at most width columns. Nothing if both are NULL or "". */
void tune_put_note(FILE *out, int indent, const char *note, const char *more, int width);

/* If names do not fit under their columns, letters stand there, and a key below lists the names.
 * tune_key_letter - the letter of name i; ' ' if letters run out.
 * tune_put_key - print "a first   b second", indented, on lines of at most width columns. */
char tune_key_letter(int i);
void tune_put_key(FILE *out, const char *const *names, int count, int indent, int width,
                  bool unicode);

#endif
