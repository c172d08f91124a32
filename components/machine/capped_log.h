/* capped_log.h - a log file of limited size. It keeps the first and the last half of longer output.
 *
 * Output goes to the file until the limit. The last half is also kept in memory. When the log ends,
 * it replaces what follows the first half, after a line with the number of bytes left out. A log
 * that was never ended holds the first `limit` bytes. Write errors stop the log only, so the
 * program that produces the output does not fail. */
#ifndef TUNE_ACTUATORS_CAPPED_LOG_H
#define TUNE_ACTUATORS_CAPPED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tune_capped_log {
    int fd; /* borrowed */
    bool failed;
    int64_t limit, total;
    char *last; /* [capacity] ring buffer: byte i of the output is at i % capacity */
    size_t capacity;
};

/* tune_capped_log_begin - start a log in fd, an empty file. Without memory for the last half, only
 * the first `limit` bytes are kept.
 *
 * tune_capped_log_add - append output.
 *
 * tune_capped_log_end - write the last half and free the memory. */
void tune_capped_log_begin(struct tune_capped_log *log, int fd, int64_t limit);
void tune_capped_log_add(struct tune_capped_log *log, const char *data, size_t size);
void tune_capped_log_end(struct tune_capped_log *log);

#endif
