/* store_parts.h - what the files of this folder share of a store. */
#ifndef TUNE_STORES_STORE_PARTS_H
#define TUNE_STORES_STORE_PARTS_H

#include <sys/stat.h>

#include "sweeps/stores/sample_file.h"

/* A sample file, and its structure as it was when it was last looked at: its owner may have
 * replaced it meanwhile. */
struct tune_store_file {
    char *name;
    struct tune_sample_file *content; /* NULL: not read yet */
    struct stat seen;                 /* of content */
    bool gone;                        /* somebody removed it */
    bool broken;                      /* left out: whoever checks the store has been told */
};

/* A table's columns in all files. */
struct tune_store_union {
    char *name; /* of the experiment; NULL: the requests */
    struct tune_column *columns;
    int *files; /* [count] the first file that has it; -1: every table has it */
    int count;
};

struct tune_store_writer;

struct tune_store {
    char folder[TUNE_PATH_MAX], id[8];
    /* in the order of their names; those found later behind them, so that a number stays */
    struct tune_store_file *files;
    int file_count;
    struct tune_store_union *unions; /* by name, the requests first; NULL: not made yet */
    int union_count;
    const char **names; /* of unions, without the requests */
    struct tune_store_writer *writer; /* NULL: nothing written yet */
    int points;                       /* descriptor of points.lock, -1: not open yet */
};

typedef void tune_store_problem(void *context, const char *file, const char *what);

/* tune_store_columns_free - free columns with their names and units. The first `keys` columns
 * borrow theirs. */
void tune_store_columns_free(struct tune_column *columns, int keys, int count);

/* tune_store_path - of something in the store.
 * tune_store_add_file - name it among the files, if it is not there.
 * tune_store_open_file - a descriptor of file i to read rows from, and its structure as it is now,
 * which is the caller's to give back (tune_sample_free). -1: it is broken. */
int tune_store_path(const struct tune_store *s, char path[TUNE_PATH_MAX], const char *name);
int tune_store_add_file(struct tune_store *s, const char *name);
int tune_store_open_file(struct tune_store *s, int i, struct tune_sample_file **content);

/* tune_store_catalogue - make the unions, if they are not made: reads the structure of every file.
 * With problem, broken files are told and left out, until the catalogue is forgotten.
 * tune_store_find_union - by name (NULL: the requests); NULL: no file has such a table.
 * tune_store_agrees - 0: these columns of the experiment can stand beside those of the files. -1:
 * one is a text here and a number there, or the store cannot be read. */
int tune_store_catalogue(struct tune_store *s, tune_store_problem *problem, void *context);
void tune_store_forget_catalogue(struct tune_store *s);
const struct tune_store_union *tune_store_find_union(const struct tune_store *s, const char *name);
int tune_store_agrees(struct tune_store *s, const char *experiment,
                      const struct tune_column *columns, int count);

/* tune_store_own_file - the name of the file this process writes; "": none yet. */
const char *tune_store_own_file(const struct tune_store *s);
void tune_store_writer_free(struct tune_store_writer *w);

/* tune_store_host - this machine's name as it stands in file names.
 * tune_store_no_memory - the error; returns -1.
 * tune_store_check_name - whether a text may be a name in a path: not empty, not too long, no '/',
 * no '.' at its begin. */
void tune_store_host(char host[65]);
int tune_store_no_memory(const char *what);
int tune_store_check_name(const char *what, const char *name);

#endif
