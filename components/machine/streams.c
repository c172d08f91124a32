/* streams.c - read both streams of a program, and log them. */
#include "machine/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

bool tune_streams_begin(struct tune_streams *s, int fd, int64_t limit)
{
    *s = (struct tune_streams){.from = {-1, -1}, .chunk = malloc(CHUNK)};
    if (s->chunk)
        tune_capped_log_begin(&s->log, fd, limit);
    return s->chunk;
}

bool tune_streams_open(struct tune_streams *s, int to[2])
{
    to[0] = to[1] = -1;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return false;
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        s->from[i] = ends[0];
        to[i] = ends[1];
    }
    return true;
}

static void keep_first_line(struct tune_streams *s, const char *data, size_t size)
{
    size_t length = strlen(s->first);
    for (size_t i = 0; i < size && !s->whole; i++) {
        bool ends = data[i] == '\n' || data[i] == '\r' || data[i] == 0;
        if (!ends && (length > 0 || data[i] != ' '))
            s->first[length++] = data[i];
        s->whole = (ends && length > 0) || length + 1 == sizeof s->first;
    }
}

void tune_streams_read(struct tune_streams *s, int which)
{
    for (int i = 0; i < 16 && s->from[which] >= 0; i++) { /* not endless: the guard has other events */
        ssize_t n = read(s->from[which], s->chunk, CHUNK);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0) {
            tune_capped_log_add(&s->log, s->chunk, (size_t)n);
            if (which == 1)
                keep_first_line(s, s->chunk, (size_t)n);
        } else {
            close(s->from[which]);
            s->from[which] = -1;
        }
    }
}

void tune_streams_end(struct tune_streams *s)
{
    for (int i = 0; i < 2; i++)
        tune_streams_read(s, i);
    tune_capped_log_end(&s->log);
    free(s->chunk);
    s->chunk = NULL;
}
