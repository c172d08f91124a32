/* print.c - text in a buffer, added to piece by piece. */
#include "core/print.h"

#include <stdarg.h>

static void append(char *text, size_t size, const char *format, va_list args)
{
    static const char dots[] = "...";
    size_t used = strlen(text);
    int added = vsnprintf(text + used, size - used, format, args);
    if (added < 0 || used + (size_t)added < size || size < sizeof dots)
        return;
    char *end = text + size - sizeof dots;
    while (end > text && (*end & 0xC0) == 0x80)
        end--; /* not within a character of UTF-8 */
    memcpy(end, dots, sizeof dots);
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

bool tune_steers(const char *text, size_t size, size_t *bytes, unsigned *code)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0xC0 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    unsigned c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (i >= size || (s[i] & 0xC0) != 0x80) {
            n = 1;
            c = s[0];
            break;
        }
        c = c << 6 | (s[i] & 0x3F);
    }
    *bytes = n;
    *code = c;
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (n == 3 && ((c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)));
}

void tune_print_plain(FILE *stream, const char *text, const char *keep)
{
    size_t left = strlen(text), n;
    unsigned c;
    for (; left > 0; text += n, left -= n)
        if (!tune_steers(text, left, &n, &c) || (c < 0x80 && strchr(keep, (int)c)))
            fwrite(text, 1, n, stream);
        else if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", stream);
        else
            fprintf(stream, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
}

void tune_print_line_of(FILE *stream, const char *text)
{
    tune_print_plain(stream, text, "");
}

void tune_blank_controls(char *text)
{
    size_t left = strlen(text), n;
    unsigned c;
    for (; left > 0; text += n, left -= n)
        if (tune_steers(text, left, &n, &c))
            memset(text, '?', n);
}
