/* streams.h - the output of a program on its way to the log. Private to this folder.
 *
 * There is a pipe for stdout and one for stderr, so the first line of stderr is known.
 *
 * The log has both streams in order of arrival. What is found in both pipes at once goes to the log
 * with stdout first. */
#ifndef TUNE_MACHINE_STREAMS_H
#define TUNE_MACHINE_STREAMS_H

#include "machine/capped_log.h"

struct tune_streams {
    int from[2]; /* reading ends of stdout and stderr; -1: closed */
    struct tune_capped_log log;
    char first[256]; /* first line of errors that is not blank, perhaps cut */
    bool whole;      /* it is complete */
    char *chunk;
};

/* tune_streams_begin - start with a log in fd, limited as capped_log.h says. false: no memory.
 * tune_streams_open - make the pipes; `to` are the writing ends of stdout and stderr, for the
 * program. false with errno: they could not be made; `to` that are not -1 are open.
 * tune_streams_read - read some of stream 0 or 1 without waiting, and log it.
 * tune_streams_end - read what is left in the pipes, end the log, and free. */
bool tune_streams_begin(struct tune_streams *s, int fd, int64_t limit);
bool tune_streams_open(struct tune_streams *s, int to[2]);
void tune_streams_read(struct tune_streams *s, int which);
void tune_streams_end(struct tune_streams *s);

#endif
