/* store_parts.h - types and functions shared by the files of this folder. */
#ifndef TUNE_STORES_STORE_PARTS_H
#define TUNE_STORES_STORE_PARTS_H

#include <sys/stat.h>

#include "core/map.h"
#include "sweeps/stores/sample_file.h"

/* A sample file, and its structure at the last reading. Its owner may have replaced it since. */
struct tune_store_file {
    char *name;
    struct tune_sample_file *content; /* NULL: not read yet */
    struct stat seen;                 /* size and time of the content read */
    bool gone;                        /* true: the file was removed */
    bool broken;                      /* true: tune_store_check has reported the file, and it is
                                       * left out */
};

/* The columns of a table in all files. */
struct tune_store_union {
    char *name; /* name of the experiment; NULL: the requests */
    struct tune_column *columns;
    int *files; /* [count] first file with the column; -1: every table has it */
    int count;
};

struct tune_store_writer;

/* The tombstones of a store, which list forgotten rows (tombstones.c). */
struct tune_tombstones {
    char **names;             /* [name_count] sorted names of files in forgotten/ */
    int name_count;
    bool read;                /* true: `at` and `rows` have been read */
    struct tune_tombstone *at; /* [count] tombstones in effect, oldest first */
    int count;
    struct tune_map rows;     /* uids by tune_store_mark */
};

struct tune_store {
    char folder[TUNE_PATH_MAX], id[8];
    /* sorted by name, then files found later, so that indexes do not change */
    struct tune_store_file *files;
    int file_count;
    struct tune_store_union *unions; /* unions by name, the requests first; NULL: not made yet */
    int union_count;
    const char **names; /* number of unions without the requests */
    struct tune_store_writer *writer; /* NULL: nothing written yet */
    int points;                       /* descriptor of points.lock, -1: not open yet */
    int64_t loads;                    /* reads of the structure of other processes' files, and
                                       * changes of tombstones */
    struct tune_tombstones tombstones;
};

typedef void tune_store_problem(void *context, const char *file, const char *what);

/* tune_store_columns_free - free columns with their names and units. The first `keys` columns
 * borrow theirs. */
void tune_store_columns_free(struct tune_column *columns, int keys, int count);

/* tune_store_path - make the path of a file in the store.
 * tune_store_add_file - add a file to the list, unless it is there.
 * tune_store_open_file - open file i, with a descriptor to read rows from. The caller frees its
 * structure (tune_sample_free). -1: the file is broken. */
int tune_store_path(const struct tune_store *s, char path[TUNE_PATH_MAX], const char *name);
int tune_store_add_file(struct tune_store *s, const char *name);
int tune_store_open_file(struct tune_store *s, int i, struct tune_sample_file **content);

/* tune_store_catalogue - read the structure of every file and make the unions, unless they exist.
 * problem, unless NULL, is called for broken files, which are left out until the catalogue is
 * forgotten.
 * tune_store_find_union - find a union by name (NULL: the requests). NULL: no file has such a
 * table.
 * tune_store_agrees - check that these columns of the experiment agree with those in files. 0, or
 * -1: one is a text in one place and a number in another, or the store cannot be read. */
int tune_store_catalogue(struct tune_store *s, tune_store_problem *problem, void *context);
void tune_store_forget_catalogue(struct tune_store *s);
const struct tune_store_union *tune_store_find_union(const struct tune_store *s, const char *name);
int tune_store_agrees(struct tune_store *s, const char *experiment,
                      const struct tune_column *columns, int count);

/* tune_store_mark - a 128-bit hash of a text. 10^6 of them take 48 MB in a tune_map. */
struct tune_store_mark { uint64_t key[2]; };
struct tune_store_mark tune_store_mark(const char *text, size_t size);

/* tune_tombstones_list - list the tombstones. 1: they changed; 0: they are the same; -1 with an
 * error.
 * tune_tombstones_read - read the tombstones, unless they have been read. -1 with an error: one is
 * damaged. problem, unless NULL, is called for damaged ones, which are left out until
 * tune_tombstones_unread.
 * tune_tombstones_has - true if the row with this uid is forgotten. Tombstones must have been read.
 * tune_tombstones_merge - copy the tombstones that `into` lacks, and the files that undo them.
 * Returns the number of copied tombstones in effect. */
int tune_tombstones_list(struct tune_store *s);
int tune_tombstones_read(struct tune_store *s, tune_store_problem *problem, void *context);
void tune_tombstones_unread(struct tune_store *s);
bool tune_tombstones_has(const struct tune_store *s, const char *uid, size_t size);
int tune_tombstones_merge(struct tune_store *into, struct tune_store *from);
void tune_tombstones_free(struct tune_store *s);

/* tune_store_own_file - the name of the file that this process writes; "": none yet. */
const char *tune_store_own_file(const struct tune_store *s);
void tune_store_writer_free(struct tune_store_writer *w);

/* tune_store_host - this machine's name as used in file names.
 * tune_store_no_memory - set the error; returns -1.
 * tune_store_merge_records - copy the records that `into` lacks. belong, unless NULL: copy only
 * records whose "kind/name" it contains, without endings (for data: "data/hash").
 * tune_store_check_name - check that a text can be a name in a path: not empty, not too long,
 * without '/', and without '.' at its start. */
void tune_store_host(char host[65]);
int tune_store_no_memory(const char *what);
int tune_store_merge_records(struct tune_store *into, struct tune_store *from,
                             const struct tune_merge *how, struct tune_map *belong);
int tune_store_check_name(const char *what, const char *name);

#endif
