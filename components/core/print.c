/* print.c - text in a buffer, added to piece by piece. */
#include "core/print.h"

#include <stdarg.h>

static void append(char *text, size_t size, const char *format, va_list args)
{
    size_t used = strlen(text);
    vsnprintf(text + used, size - used, format, args);
}

void tune_append(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(text, size, format, args);
    va_end(args);
}

void tune_append_item(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tune_append(text, size, *text ? ", " : "");
    append(text, size, format, args);
    va_end(args);
}

void tune_print_word(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, stream);
        return;
    }
    fputc('\'', stream);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stream);
        else
            fputc(*word, stream);
    fputc('\'', stream);
}
