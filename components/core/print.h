/* print.h - numbers and texts as this library writes them. */
#ifndef TUNE_CORE_PRINT_H
#define TUNE_CORE_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/decimal.h"

/* tune_number_text - the shortest decimal text that reads back as the same double, into text, which
 * is returned. cJSON_CreateNumber may be one unit in the last place off: where a figure must
 * survive being written and read, this goes in with cJSON_CreateRaw; value is finite then. */
static inline const char *tune_number_text(char text[TUNE_DECIMAL_SIZE], double value)
{
    tune_decimal_json(text, value);
    return text;
}

/* tune_print_plain - text onto stream with its control characters, but those in keep, spelled out
 * (\n, \x1b, and \x9b for U+009B, which terminals obey too). tune_print_line_of - all of them: what
 * people and files put into a setting stays on its line and moves no cursor. */
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

/* tune_blank_controls - the same for a text that goes into a message, in place: each byte of a
 * control character is '?'. */
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
