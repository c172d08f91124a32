/* error.h - what went wrong, in words, for the caller to show or to handle.
 *
 * A function of this library that fails returns -1 or NULL after it has set the
 * thread's error text. It never prints and never ends the program: what to do
 * with an error belongs to whoever owns main(). Example:
 *
 *     struct tune_model *m = tune_model_load("models/x", dev, TUNE_F32);
 *     if (!m)
 *         fprintf(stderr, "%s\n", tune_error_message());
 *
 * A text says what failed, where (file, line, option, tensor), what was expected,
 * and what to do. It names an option of a component as `max_length`. A program shows that
 * as its own flag (tune_flags_spell in flags/flags.h). */
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

/* The kind of an error; its number is the exit code programs use for it. */
enum tune_error_kind {
    TUNE_ERROR_NONE = 0,
    TUNE_ERROR_FAILED = 1, /* files, data, the system: what the world did */
    TUNE_ERROR_USAGE = 2,  /* flags and arguments: what the user wrote */
    TUNE_ERROR_CANNOT = 3, /* this configuration cannot run here: memory, divisibility */
};

/* tune_error_set - set this thread's error text (kind FAILED), at most 2047 bytes, longer ones end in "...".
 * The arguments may point into the old text. Returns -1, for the caller to return. */
int tune_error_set(const char *format, ...) TUNE_PRINTF(1, 2);

/* tune_error_usage - the same with kind USAGE. tune_error_set_kind - with any kind. */
int tune_error_usage(const char *format, ...) TUNE_PRINTF(1, 2);
int tune_error_set_kind(enum tune_error_kind kind, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_error_prefix - put text before the present message; the kind stays. */
void tune_error_prefix(const char *format, ...) TUNE_PRINTF(1, 2);

/* tune_error_message - this thread's last error text, "" if none. Valid until the thread's next error. */
const char *tune_error_message(void);

enum tune_error_kind tune_error_kind(void);

/* tune_error_clear - forget it. */
void tune_error_clear(void);

/* tune_error_save, tune_error_restore - carry an error from one thread to another.
 * restore sets the calling thread's error to what was saved. */
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
