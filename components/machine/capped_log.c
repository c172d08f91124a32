/* capped_log.c - write the first half, a line about the rest, and the last half. */
#include "machine/capped_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tune_capped_log_begin(struct tune_capped_log *log, int fd, int64_t limit)
{
    *log = (struct tune_capped_log){.fd = fd, .limit = limit > 0 ? limit : 0};
    log->last = malloc((size_t)(log->limit / 2) + 1);
    log->capacity = log->last ? (size_t)(log->limit / 2) : 0;
}

static void write_bytes(struct tune_capped_log *log, const char *data, size_t size)
{
    while (size > 0 && !log->failed) {
        ssize_t n = write(log->fd, data, size);
        log->failed = n < 0 && errno != EINTR;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
}

void tune_capped_log_add(struct tune_capped_log *log, const char *data, size_t size)
{
    int64_t left = log->limit - log->total;
    if (left > 0)
        write_bytes(log, data, left < (int64_t)size ? (size_t)left : size);
    /* skip what the ring buffer would overwrite anyway */
    size_t passed = size > log->capacity ? size - log->capacity : 0;
    log->total += (int64_t)passed;
    for (size_t at = passed; at < size;) {
        size_t to = (size_t)(log->total % (int64_t)log->capacity), n = log->capacity - to;
        n = n < size - at ? n : size - at;
        memcpy(log->last + to, data + at, n);
        at += n;
        log->total += (int64_t)n;
    }
}

void tune_capped_log_end(struct tune_capped_log *log)
{
    char line[64];
    int64_t first = log->limit - (int64_t)log->capacity;
    if (log->total > log->limit && !log->failed) {
        /* fails if fd is no regular file, such as /dev/null */
        if (ftruncate(log->fd, (off_t)first) == 0)
            lseek(log->fd, (off_t)first, SEEK_SET);
        int n = snprintf(line, sizeof line, "\n[... %" PRId64 " bytes left out ...]\n", log->total - log->limit);
        write_bytes(log, line, (size_t)n);
        size_t oldest = log->capacity > 0 ? (size_t)(log->total % (int64_t)log->capacity) : 0;
        write_bytes(log, log->last + oldest, log->capacity - oldest);
        write_bytes(log, log->last, oldest);
    }
    free(log->last);
    log->last = NULL;
}
