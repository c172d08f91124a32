/* error.h - error messages of the library.
 *
 * A function that fails sets the thread's error text and returns -1 or NULL. The library never
 * prints an error and never ends the program. The owner of main() decides what to do:
 *
 *     struct tune_model *m = tune_model_load("models/x", dev, TUNE_F32);
 *     if (!m)
 *         fprintf(stderr, "%s\n", tune_error_message());
 *
 * A message says what failed, where (file, line, tensor), what was expected, and what to do. */
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

/* The kind of an error. Programs exit with this number. */
enum tune_error_kind {
    TUNE_ERROR_NONE = 0,
    TUNE_ERROR_FAILED = 1, /* bad files or data, or an error of the system */
    TUNE_ERROR_USAGE = 2,  /* wrong flags or arguments */
    TUNE_ERROR_CANNOT = 3, /* this machine cannot run this configuration: memory, divisibility */
};

/* tune_error_set - set this thread's error text, with kind FAILED. It is cut to 2047 bytes and then
 * ends in "...". The arguments may point into the old text. */
void tune_error_set(const char *format, ...) TUNE_PRINTF(1, 2);

/* tune_error_set_kind - tune_error_set with another kind. */
void tune_error_set_kind(enum tune_error_kind kind, const char *format, ...) TUNE_PRINTF(2, 3);

/* tune_error_prefix - insert text before the current message. The kind stays. */
void tune_error_prefix(const char *format, ...) TUNE_PRINTF(1, 2);

/* tune_error_message - this thread's last error text, or "". Valid until the thread's next
 * error. */
const char *tune_error_message(void);

enum tune_error_kind tune_error_kind(void);

/* tune_error_clear - clear this thread's error. */
void tune_error_clear(void);

/* tune_error_save, tune_error_restore - carry an error from one thread to another.
 * tune_error_restore sets the calling thread's error. */
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
