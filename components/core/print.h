/* print.h - print numbers and text, and add to text in a buffer. */
#ifndef TUNE_CORE_PRINT_H
#define TUNE_CORE_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/decimal.h"
#include "core/error.h"

/* tune_append - add to the string in text, a buffer of size bytes. The result is cut to fit.
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

/* tune_print_plain - print text with control characters escaped (\n, \x1b, and \x9b for U+009B,
 * which terminals also obey). Characters in keep are not escaped.
 *
 * tune_print_line_of - escape all of them, so that text from users and files stays on its line and
 * moves no cursor. */
static inline void tune_print_plain(FILE *stream, const char *text, const char *keep)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == 0xc2 && ((unsigned char)text[1] & 0xe0) == 0x80)
            fprintf(stream, "\\x%02x", (unsigned char)*++text);
        else if ((c >= 32 && c != 127) || strchr(keep, c))
            fputc(c, stream);
        else if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", stream);
        else
            fprintf(stream, "\\x%02x", c);
    }
}

static inline void tune_print_line_of(FILE *stream, const char *text)
{
    tune_print_plain(stream, text, "");
}

/* tune_print_word - print one word of a command for a POSIX shell, in quotes if it needs them. */
void tune_print_word(FILE *stream, const char *word);

/* tune_blank_controls - replace each byte of a control character by '?', in place, for a
 * message. */
static inline void tune_blank_controls(char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool c1 = c == 0xc2 && ((unsigned char)text[1] & 0xe0) == 0x80;
        if (c1)
            *text++ = '?';
        if (c1 || c < 32 || c == 127)
            *text = '?';
    }
}

#endif
