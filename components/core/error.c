/* error.c - one error per thread: the library's only mutable global state. */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct tune_error last;

static void set_last(enum tune_error_kind kind, const char *before, const char *format, va_list args)
{
    /* a separate buffer, because the arguments may point into the old text */
    char text[sizeof last.text];
    int n = snprintf(text, sizeof text, "%s", before);
    n += vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    if (n >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    memcpy(last.text, text, sizeof text);
    last.kind = kind;
}

/* Set the error from the arguments that follow `format`. */
#define SET(kind, before)                         \
    va_list args;                                 \
    va_start(args, format);                       \
    set_last(kind, before, format, args);         \
    va_end(args);                                 \
    return -1

int tune_error_set(const char *format, ...)
{
    SET(TUNE_ERROR_FAILED, "");
}

int tune_error_usage(const char *format, ...)
{
    SET(TUNE_ERROR_USAGE, "");
}

int tune_error_cannot(const char *format, ...)
{
    SET(TUNE_ERROR_CANNOT, "");
}

int tune_error_no_memory(const char *format, ...)
{
    SET(TUNE_ERROR_CANNOT, "no memory for ");
}

int tune_error_set_kind(enum tune_error_kind kind, const char *format, ...)
{
    SET(kind, "");
}

int tune_error_prefix(const char *format, ...)
{
    char before[512];
    va_list args;
    va_start(args, format);
    vsnprintf(before, sizeof before, format, args);
    va_end(args);
    return tune_error_set_kind(last.kind ? last.kind : TUNE_ERROR_FAILED, "%s%s", before, last.text);
}

const char *tune_error_message(void)
{
    return last.text;
}

enum tune_error_kind tune_error_kind(void)
{
    return last.kind;
}

void tune_error_clear(void)
{
    last.kind = TUNE_ERROR_NONE;
    last.text[0] = 0;
}

void tune_error_save(struct tune_error *to)
{
    *to = last;
}

void tune_error_restore(const struct tune_error *from)
{
    last = *from;
}
