/* store.h - a sample store: a folder of HDF5 sample files that many processes write and anybody
 * reads.
 *
 *     samples/store.json            id and schema version
 *     samples/<stamp>-<host>-<pid>.h5   rows of one process; at about a thousand rows it begins the next file
 *     samples/spaces/ operations/   what was measured for whom, as JSON beside the rows
 *     samples/experiments/          files of experiments that only imported rows are of
 *     samples/claims/               who measures what right now (claim.h)
 *     samples/points.lock           the same for all operations; empty, others lock bytes of it
 *
 * A process writes only its own files, and replaces them whole: a new file beside the old one,
 * fsync, rename. So readers, and whoever looks after a kill -9 or a full disk, meet whole files
 * only, and a row that was acknowledged is there. Readers see the union of all files. In a file:
 * /measurements/<experiment>, one table (an HDF5 compound dataset with the attributes of H5TB
 * tables) per experiment; /requests, what each operation asked for and got, replays too; /reasons,
 * the texts the rows' `reason` column numbers; attributes schema_version and creator at the root.
 * h5py, pandas, h5dump open it without flags. The store knows columns, not spaces: what a row means
 * is its writer's.
 *
 * The HDF5 library keeps its state for the whole process and knows no threads: of two threads only
 * one at a time may be in here. A program that uses HDF5 itself closes its own files: the library's
 * clean-up at exit may be off. */
#ifndef TUNE_STORES_STORE_H
#define TUNE_STORES_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_STORE_SCHEMA 1
#define TUNE_STORE_TEXT_MAX 4096 /* bytes of one text; a longer one is an error, never cut */
#define TUNE_STORE_NAME_MAX 200  /* of an experiment, a column, a unit, a record */
#define TUNE_STORE_FILE_ROWS 1024
/* the table of requests, where an experiment's is named to be read */
#define TUNE_STORE_REQUESTS "requests"

enum tune_cell_type { TUNE_CELL_TEXT, TUNE_CELL_WHOLE, TUNE_CELL_NUMBER };
enum tune_column_role { TUNE_COLUMN_KEY, TUNE_COLUMN_INPUT, TUNE_COLUMN_TARGET };

struct tune_column {
    const char *name, *unit;    /* unit "": none */
    /* on disk: fixed UTF-8 string as wide as the longest, int64, float64 */
    enum tune_cell_type type;
    enum tune_column_role role;
    /* a NUMBER that counts something: shown without decimals; NaN, its absence, needs a float */
    bool whole;
};

struct tune_cell {
    bool absent;                /* NUMBER: NaN; TEXT: ""; WHOLE: never */
    int64_t whole;
    double number;              /* of a WHOLE one too */
    const char *text;           /* NULL unless TEXT */
};

/* The columns every measurement has, before its inputs and targets; `reason` is the text itself
 * here, in a file a number. */
enum tune_key {
    TUNE_KEY_UID,           /* 32 hexadecimal digits */
    TUNE_KEY_OPERATION,     /* its id */
    TUNE_KEY_SPACE,         /* "space-xxxxxx" it was asked for */
    TUNE_KEY_REQUEST,       /* whole: index of the entity in the operation */
    TUNE_KEY_REPEAT,        /* whole: 0.. of --repeat */
    /* "SFTTrainer.finetune_full_...": actuator and parameterized identifier, as its user spelled
     * it */
    TUNE_KEY_EXPERIMENT,
    TUNE_KEY_ENTITY,        /* identifier of the entity, as its space spells it */
    TUNE_KEY_GENERATOR,     /* "explicit_grid_sample_generator" */
    TUNE_KEY_STARTED,       /* number: seconds since 1970 */
    TUNE_KEY_SECONDS,       /* number: of the whole measurement */
    TUNE_KEY_STATUS,        /* "valid", "invalid" (is_valid 0), "failed" */
    /* why it is not valid, or runs that were counted were not; absent: nothing to say */
    TUNE_KEY_REASON,
    TUNE_KEY_HOST,          /* the machine's name */
    TUNE_KEY_HOST_CLASS,    /* what its figures may be compared with */
    TUNE_KEY_BUILD,         /* of the measured program */
    TUNE_KEY_WEIGHTS,       /* hash; absent: it has none */
    TUNE_KEY_DATA,
    TUNE_KEYS,
};
const struct tune_column *tune_key_column(enum tune_key key);

/* The table of what operations asked for: operation, request index, experiment, entity, "measured"
 * or "replayed", the result's uid, its status, when. */
enum tune_request_key {
    TUNE_REQUEST_OPERATION,
    TUNE_REQUEST_INDEX,     /* whole */
    TUNE_REQUEST_EXPERIMENT,
    TUNE_REQUEST_ENTITY,
    TUNE_REQUEST_TYPE,
    TUNE_REQUEST_UID,
    TUNE_REQUEST_STATUS,
    TUNE_REQUEST_TIME,      /* number: seconds since 1970 */
    TUNE_REQUEST_KEYS,
};
const struct tune_column *tune_request_column(enum tune_request_key key);

struct tune_store;

/* tune_store_open - the folder. create: make it, with an id of its own, where it is not there or
 * empty (two processes at once: one id). Files are looked up, not read. NULL with an error: not
 * there, no store ("store.json"), a newer schema, no permission.
 * tune_store_id - 6 characters, of which one is a letter that makes no number ("310e50" would be
 * one to YAML). Drawn once, by the folder's first user.
 * tune_store_refresh - look for files that came, or were replaced by others, meanwhile: how many,
 * or -1. Rows appended by others, or by oneself, are sure to be seen after it only. */
struct tune_store *tune_store_open(const char *folder, bool create);
void tune_store_free(struct tune_store *s);
const char *tune_store_id(const struct tune_store *s);
const char *tune_store_folder(const struct tune_store *s);
int tune_store_refresh(struct tune_store *s);

/* ---- writing ---- */

/* tune_store_table - announce a table of an experiment: its inputs and targets (roles say which).
 * Texts are copied. Before its rows; again is fine, with other columns too. -1: a column that a
 * store has already, or has as a text where this is a number.
 * tune_store_fits - 0: tune_store_append would take these cells; -1 with its error: a text too
 * long, no UTF-8. To be asked before an hour is spent on the others.
 * tune_store_append - one row, cells in the order keys[TUNE_KEYS], then those columns; and a row of
 * requests (NULL: none). When it returns 0 the row is on the disk and stays. -1: nothing was added,
 * the files are as they were: disk full, file size limit, a text that is longer than
 * TUNE_STORE_TEXT_MAX or no UTF-8 (named), no permission.
 * tune_store_request - a row of requests alone (a replay).
 * tune_store_begin, tune_store_commit - for many rows at once: what is appended between the two is
 * written a file at a time, and on the disk when commit returns 0. Where one of these calls returns
 * -1, the rows that were not yet written are given up, and the next begin starts anew.
 * tune_store_record - <folder>/<kind>/<name>: text replaced whole ("spaces",
 * "space-1a2b3c.yaml"). */
int tune_store_table(struct tune_store *s, const char *experiment,
                     const struct tune_column *columns, int count);
int tune_store_fits(const struct tune_store *s, const char *experiment,
                    const struct tune_cell *cells);
int tune_store_append(struct tune_store *s, const char *experiment, const struct tune_cell *cells,
                      const struct tune_cell *request);
int tune_store_request(struct tune_store *s, const struct tune_cell *request);
void tune_store_begin(struct tune_store *s);
int tune_store_commit(struct tune_store *s);
int tune_store_record(struct tune_store *s, const char *kind, const char *name, const char *text,
                      size_t size);

/* ---- what is being measured ---- */

/* tune_store_hold - the point (any number that names what is measured, and where) is ours until
 * tune_store_release, or our end: 1; 0: it is another process's, which measures it now. Where the
 * file system has no locks it is ours. -1: an error. A process may hold a point several times; the
 * first release ends it. */
int tune_store_hold(struct tune_store *s, uint64_t point);
void tune_store_release(struct tune_store *s, uint64_t point);

/* ---- reading ---- */

/* tune_store_tables - names of the experiments in any file, sorted; *count. tune_store_columns -
 * the columns of one, union over the files, keys first, then inputs, then targets, in first-seen
 * order; *count. Borrowed until the next refresh. What is a whole number in one file and any in
 * another is any. NULL with an error: no such table, a broken file (named), a column that is a text
 * here and a number there. TUNE_STORE_REQUESTS may stand for an experiment. */
const char *const *tune_store_tables(struct tune_store *s, int *count);
const struct tune_column *tune_store_columns(struct tune_store *s, const char *experiment,
                                             int *count);

/* A pass over one table (or "requests"): only the columns asked for are read, block by block, files
 * in order of their begin: 10^6 rows need no more memory than 10^3. tune_scan_open - names[count];
 * a column that a file lacks is absent in its rows.
 *     tune_scan_next - 1, cells[count] valid until the next; 0: end; -1: a broken file (named); calling on then goes on
 *     with the next file.
 * tune_scan_place - of the row just read, for tune_scan_at, which reads that row again (a cache of
 * a file's blocks
 *     makes neighbours cheap). */
struct tune_scan;
struct tune_place { int file, row; };
struct tune_scan *tune_scan_open(struct tune_store *s, const char *experiment,
                                 const char *const *names, int count);
int tune_scan_next(struct tune_scan *scan, const struct tune_cell **cells);
struct tune_place tune_scan_place(const struct tune_scan *scan);
int tune_scan_at(struct tune_scan *scan, struct tune_place place, const struct tune_cell **cells);
void tune_scan_free(struct tune_scan *scan);

/* tune_store_records - names in <folder>/<kind>, sorted, *count; freed by
 * tune_store_records_free. */
char **tune_store_records(struct tune_store *s, const char *kind, int *count);
void tune_store_records_free(char **names, int count);

/* ---- whole stores ---- */

/* tune_store_merge - what `from` has and `into` lacks: rows whose uid is not there, with their
 * requests, and records. How many rows came, or -1. progress (NULL: nobody) is told after each row
 * of `from`, requests too, how many are done, of all.
 * tune_store_check - read every file through. problem is told each problem (file, what): damaged
 * files, uids twice, unknown statuses, schemas, rows without experiment, requests without result.
 * file (NULL: nobody) is told each file that opens: its rows, requests not among them, and whether
 * all of it is under checksums. Returns how many problems, or -1: the folder cannot be read.
 * Refreshes s. */
typedef void tune_store_progress(void *context, int64_t done, int64_t all);
int64_t tune_store_merge(struct tune_store *into, struct tune_store *from,
                         tune_store_progress *progress, void *context);
int64_t tune_store_check(struct tune_store *s, void (*file)(void *context, const char *file,
                                                            int64_t rows, bool checked),
                         void (*problem)(void *context, const char *file, const char *what),
                             void *context);

#ifdef __cplusplus
}
#endif
#endif
