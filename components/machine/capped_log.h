/* capped_log.h - a file of bounded size for output of any length: its first half, how much was left
 * out, its last half.
 *
 * Up to the limit everything goes to the file as it comes. The last half is kept in memory besides,
 * and takes the place of what came behind the first one when the log ends, so a log that was never
 * ended holds the first `limit` bytes. A file that cannot be written takes no more: whoever writes
 * the output is not to suffer from it. */
#ifndef TUNE_ACTUATORS_CAPPED_LOG_H
#define TUNE_ACTUATORS_CAPPED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_capped_log {
    int fd; /* borrowed */
    bool failed;
    int64_t limit, total;
    char *last; /* [room], a ring: byte i of the output at i % room */
    size_t room;
};

/* tune_capped_log_begin - into fd, which is empty. Without memory for the last half the first
 * `limit` bytes are all that is kept.
 * tune_capped_log_add - more output. tune_capped_log_end - puts the file in order; frees what begin
 * took. */
void tune_capped_log_begin(struct tune_capped_log *log, int fd, int64_t limit);
void tune_capped_log_add(struct tune_capped_log *log, const char *data, size_t size);
void tune_capped_log_end(struct tune_capped_log *log);

#ifdef __cplusplus
}
#endif
#endif
