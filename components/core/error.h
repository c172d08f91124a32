/* error.h - error messages of the library.
 *
 * A function of this library that fails sets the thread's error text and returns -1 or NULL. It
 * never prints and never ends the program: the owner of main() decides what to do. Example:
 *
 *     struct tune_model *m = tune_model_load("models/x", dev, TUNE_F32);
 *     if (!m)
 *         fprintf(stderr, "%s\n", tune_error_message());
 *
 * A text says what failed, where (file, line, tensor), what was expected, and what to do. */
#ifndef TUNE_CORE_ERROR_H
#define TUNE_CORE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TUNE_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define TUNE_PRINTF(string, first)
#endif

/* The kind of an error. Its number is the exit code that programs use. */
enum tune_error_kind {
    TUNE_ERROR_NONE = 0,
    TUNE_ERROR_FAILED = 1, /* a file, data or the system failed */
    TUNE_ERROR_USAGE = 2,  /* the caller asked for something wrong: an option, an argument */
    TUNE_ERROR_CANNOT = 3, /* this configuration cannot run here: memory, disk, divisibility */
};

/* tune_error_set - set this thread's error text, with kind FAILED. Returns -1, for the caller to
 * return. A text over 2047 bytes is cut and ends in "...". The arguments may point into the old
 * text.
 * tune_error_usage - the same with kind USAGE.
 * tune_error_cannot - the same with kind CANNOT.
 * tune_error_no_memory - the same; the text is "no memory for " and what the format says.
 * tune_error_set_kind - the same with any kind. */
int tune_error_set(const char *format, ...) TUNE_PRINTF(1, 2);
int tune_error_usage(const char *format, ...) TUNE_PRINTF(1, 2);
int tune_error_cannot(const char *format, ...) TUNE_PRINTF(1, 2);
int tune_error_no_memory(const char *format, ...) TUNE_PRINTF(1, 2);
int tune_error_set_kind(enum tune_error_kind kind, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_error_prefix - insert text before the current message. The kind stays. Returns -1. */
int tune_error_prefix(const char *format, ...) TUNE_PRINTF(1, 2);

/* tune_error_message - this thread's last error text; "" if there is none. Valid until its next
 * error.
 * tune_error_kind - the kind of that error. */
const char *tune_error_message(void);
enum tune_error_kind tune_error_kind(void);

/* tune_error_clear - forget the error. */
void tune_error_clear(void);

/* tune_error_save - copy this thread's error, to carry it to another thread.
 * tune_error_restore - set this thread's error to a copy. */
struct tune_error {
    enum tune_error_kind kind;
    char text[2048];
};
void tune_error_save(struct tune_error *to);
void tune_error_restore(const struct tune_error *from);

#ifdef __cplusplus
}
#endif
#endif
