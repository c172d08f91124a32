/* lines.h - a file of lines that a later process goes on with.
 *
 *     const struct tune_lines lines = {"rows.jsonl", false, read_line, begins_line, context};
 *     int64_t there;
 *     FILE *file = tune_lines_open(&lines, &there);
 *     ... append lines, each batch with fflush ...
 *     fclose(file);
 *
 * A killed process leaves whole lines, and at most one that is cut short. The latter is cut off
 * when the file is opened again. */
#ifndef TUNE_LINES_H
#define TUNE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tune_lines {
    const char *path;
    bool overwrite;  /* begin anew */
    /* read - look at line number at, from 0, which is there already. -1 with an error refuses it.
     * begins - whether so many bytes are the beginning of the line that would stand there. If not,
     * read gets "" to say so. */
    int (*read)(void *context, const char *line, int64_t at);
    bool (*begins)(void *context, const char *cut, size_t size, int64_t at);
    void *context;
};

/* tune_lines_open - open the file to append. *there: its whole lines, all of which were read. It is
 * locked until it is closed. NULL with an error: it is no regular file, it cannot be opened,
 * another process writes it, or read refused a line. */
FILE *tune_lines_open(const struct tune_lines *lines, int64_t *there);

/* tune_lines_put - write a line of JSON. Characters that steer a terminal become \uXXXX. false: it
 * cannot be written. */
bool tune_lines_put(FILE *to, const char *line);

#endif
