/* print.h - print numbers and text, and add to text in a buffer. */
#ifndef TUNE_CORE_PRINT_H
#define TUNE_CORE_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/decimal.h"
#include "core/error.h"

/* tune_append - add to the string in text, a buffer of size bytes. A result that does not
 * fit is cut, and ends in "...".
 * tune_append_item - the same, with ", " between items. */
void tune_append(char *text, size_t size, const char *format, ...) TUNE_PRINTF(3, 4);
void tune_append_item(char *text, size_t size, const char *format, ...) TUNE_PRINTF(3, 4);

/* tune_number_text - write the shortest decimal that reads back as value, which must be finite.
 * Returns text. Use it with cJSON_CreateRaw for exact figures: cJSON_CreateNumber may be off by one
 * unit in the last place. */
static inline const char *tune_number_text(char text[TUNE_DECIMAL_SIZE], double value)
{
    tune_decimal_json(text, value);
    return text;
}

/* tune_steers - true if the character at text, of size bytes, steers a terminal. *bytes: its bytes.
 * *code: its code point. These do:
 *
 *     control characters       U+0000 to U+001F, U+007F to U+009F
 *     ends of lines            U+2028, U+2029
 *     overrides of direction   U+202A to U+202E, U+2066 to U+2069
 *     0x80 to 0x9F             a byte that belongs to no character; *code is the byte
 *
 * tune_print_plain - print text with such characters escaped: \n, \t, \x1b, \x9b (U+009B), \u202e.
 * Those in keep, which are ASCII, are not escaped. Text from users and files then moves no cursor.
 *
 * tune_print_line_of - escape all of them, so that the text also stays on its line. */
bool tune_steers(const char *text, size_t size, size_t *bytes, unsigned *code);
void tune_print_plain(FILE *stream, const char *text, const char *keep);
void tune_print_line_of(FILE *stream, const char *text);

/* tune_print_word - print one word of a command for a POSIX shell, in quotes if it needs them. */
void tune_print_word(FILE *stream, const char *word);

/* tune_blank_controls - replace each byte of a character that steers a terminal by '?', in place,
 * for a message. */
void tune_blank_controls(char *text);

#endif
