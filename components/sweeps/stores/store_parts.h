/* store_parts.h - shared by the files of this folder. */
#ifndef TUNE_STORES_STORE_PARTS_H
#define TUNE_STORES_STORE_PARTS_H

#include <sys/stat.h>

#include "sweeps/stores/sample_file.h"

/* A sample file, and its structure when it was last read. Its owner may have replaced it since. */
struct tune_store_file {
    char *name;
    struct tune_sample_file *content; /* NULL: not read yet */
    struct stat seen;                 /* size and time of the content read */
    bool gone;                        /* true: the file was removed */
    bool broken;                      /* true: the file is left out, and the check has reported
                                       * it */
};

/* The columns of a table in all files. */
struct tune_store_union {
    char *name; /* name of the experiment; NULL: the requests */
    struct tune_column *columns;
    int *files; /* [count] first file with the column; -1: every table has it */
    int count;
};

struct tune_store_writer;

struct tune_store {
    char folder[TUNE_PATH_MAX], id[8];
    /* sorted by name, then those found later, so that numbers do not change */
    struct tune_store_file *files;
    int file_count;
    struct tune_store_union *unions; /* unions by name, the requests first; NULL: not made yet */
    int union_count;
    const char **names; /* number of unions without the requests */
    struct tune_store_writer *writer; /* NULL: nothing written yet */
    int points;                       /* descriptor of points.lock, -1: not open yet */
    int64_t loads;                    /* reads of the structure of other processes' files */
};

typedef void tune_store_problem(void *context, const char *file, const char *what);

/* tune_store_columns_free - free columns with their names and units. The first `keys` columns
 * borrow theirs. */
void tune_store_columns_free(struct tune_column *columns, int keys, int count);

/* tune_store_path - make a path in the store.
 * tune_store_add_file - add a file to the list, unless it is there.
 * tune_store_open_file - open file i: a descriptor to read rows from, and its current structure,
 * which the caller frees (tune_sample_free). -1: it is broken. */
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

/* tune_store_own_file - the name of the file that this process writes; "": none yet. */
const char *tune_store_own_file(const struct tune_store *s);
void tune_store_writer_free(struct tune_store_writer *w);

/* tune_store_host - this machine's name as used in file names.
 * tune_store_no_memory - set the error; returns -1.
 * tune_store_merge_records - copy the records that `into` lacks.
 * tune_store_check_name - check that a text can be a name in a path: not empty, not too long,
 * without '/', and without '.' at its start. */
void tune_store_host(char host[65]);
int tune_store_no_memory(const char *what);
int tune_store_merge_records(struct tune_store *into, struct tune_store *from,
                             const struct tune_merge *how);
int tune_store_check_name(const char *what, const char *name);

#endif
