/* print.h - numbers and texts as this library writes them. */
#ifndef TUNE_CORE_PRINT_H
#define TUNE_CORE_PRINT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tune_number_text - the shortest decimal text that reads back as the same double, into text, which is returned; value is
 * finite. cJSON_CreateNumber may be one unit in the last place off: where a figure must survive being written and read,
 * this goes in with cJSON_CreateRaw. A decimal comma of the locale becomes a point. */
static inline const char *tune_number_text(char text[32], double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    return text;
}

/* tune_print_line_of - text onto stream with its control characters spelled out (\n, \x1b): what people and files put
 * into a setting stays on its line and moves no cursor. */
static inline void tune_print_line_of(FILE *stream, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", stream);
        else if (c < 32 || c == 127)
            fprintf(stream, "\\x%02x", c);
        else
            fputc(c, stream);
    }
}

#endif
