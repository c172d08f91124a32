/* spaces.h - the routes of spaces and stores share this. The current folder is the root, so a path
 * relative to the root is a path. Stores and space files are data. No program that they name is
 * run, and no file that they name outside the root is read. */
#ifndef TUNE_STUDIO_SPACES_H
#define TUNE_STUDIO_SPACES_H

#include "studio.h"
#include "sweeps/answers/question.h"
#include "sweeps/spaces/project.h"

/* spaces_lock, spaces_unlock - HDF5 is not thread-safe, so one thread at a time reads stores. A
 * thread may lock several times. */
void spaces_lock(void);
void spaces_unlock(void);

/* spaces_inside - whether the path, which must exist, lies in the root with all links resolved; or,
 * if `defaults`, in the folder of defaults.
 * spaces_confine - the same for a path of a request: 0, or -1 with a problem (404: it is absent,
 * 403: it leads out). what: the parameter's name.
 * spaces_check_file - refuse a space file whose list of points leads out of the root, or that is no
 * regular file of at most 4 MiB. */
bool spaces_inside(const struct studio *s, const char *path, bool defaults);
int spaces_confine(const struct studio *s, struct studio_reply *r, const char *what,
                   const char *path);
int spaces_check_file(const struct studio *s, struct studio_reply *r, const char *path);

/* spaces_hash - a hash that continues `hash`.
 * spaces_stamp - add to *hash what tells that the file or store at path changed: names, sizes and
 * times. For a store that are its sample files and records. -1 with a problem: a link in the store
 * leads out of the root, or a recorded space does. */
uint64_t spaces_hash(const void *bytes, size_t size, uint64_t hash);
int spaces_stamp(const struct studio *s, struct studio_reply *r, const char *path,
                 uint64_t *hash);

/* A question of a request. Its texts are those of the request and of the project. */
struct spaces_question {
    struct tune_question q;
    const struct tune_question_kind *kind;
    const char *store;          /* the folder */
    bool new_store;             /* set by the caller: the store may be absent, but its parent not */
    struct tune_project project;
};

/* spaces_read_question - read store, about and the options of the question from the parameters,
 * check all paths, and set the reply's tag. All of *a but new_store is set. 1: the browser has
 * this answer already; 0: it has not; -1 with a problem. Free it in each case.
 * spaces_ask - open the store and answer, under the lock. NULL with an error. */
int spaces_read_question(const struct studio *s, const struct studio_request *q,
                         struct studio_reply *r, const char *name, struct spaces_question *a);
void spaces_free_question(struct spaces_question *a);
struct tune_answer_table *spaces_ask(struct spaces_question *a);

/* spaces_put_command - write the command that prints this answer, such as "samples best ...", as a
 * line for a shell. */
void spaces_put_command(const struct studio_request *q, const struct spaces_question *a,
                        FILE *out);

/* The parameters of routes about a store. */
#define SPACES_STORE                                                                            \
    {"store", STUDIO_IN_QUERY,                                                                  \
     .help = "folder of the sample store, in the root; default: that of tune.json, else samples"}
#define SPACES_ABOUT                                                                            \
    {"about", STUDIO_IN_QUERY,                                                                  \
     .help = "a space file, a recorded space (space-1a2b3c), an experiment, an operation, or "  \
             "an entity; default: the store's only space"}
#define SPACES_EXPERIMENTS                                                                      \
    {"experiments", STUDIO_IN_QUERY,                                                            \
     .help = "further files and folders of experiments in the root, with commas"}

#endif
