/* studio.h - what the files of the studio share. */
#ifndef TUNE_STUDIO_STUDIO_H
#define TUNE_STUDIO_STUDIO_H

#include <malloc.h>

#include "files/file.h"
#include "flags/program.h"
#include "route.h"

/* The options, and what became of them. The root is the current folder. */
struct studio {
    const char *root;      /* absolute, links resolved; every path of an answer lies in it */
    const char *ui, *programs;
    char build[TUNE_PATH_MAX]; /* folder of this program, where the others lie */
    /* One command of the command line, without a server: nothing runs behind. A handler reads what
     * it needs before it answers. */
    bool once;
    char host[64];         /* the address that is served, such as "127.0.0.1" or "::1" */
    int port;
    char token[65];        /* what requests must know; "": nothing, the address is a loopback's */
    struct studio_index *index;    /* the runs (index.h) */
    char **secrets;        /* values that no answer may show (secrets.h), up to NULL. NULL: none */
};

/* studio_open - open a file or a folder of the root, for files of strangers: nothing out of the
 * root is opened, by .. or by a link, not even while others exchange links. path is relative to
 * the root; "" and ".": the root. flags: those of open(2), with O_CREAT too. It never waits, and
 * opens no pipe or device. The descriptor, or -1 with an error. Its kind is USAGE if the path
 * leads out, else FAILED; errno is then ENOENT if there is nothing.
 * studio_open_by_steps - the same without openat2(2), for old kernels and for links whose targets
 * are absolute paths in the root. */
int studio_open(const struct studio *s, const char *path, int flags);
int studio_open_by_steps(const struct studio *s, const char *path, int flags);

/* studio_read_line - read a line, or the next part of a long one: at most size - 1 bytes, with a
 * NUL after them. Returns how many bytes, its newline among them; 0: the end. *whole: it ends with
 * its newline. */
size_t studio_read_line(FILE *in, char *line, size_t size, bool *whole);

/* studio_keep_little - for the start: free memory of at least 4 MB goes back to the system at once.
 * studio_give_back - give free memory back to the system. Only glibc keeps it. */
static inline void studio_keep_little(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

static inline void studio_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

#endif
