/* store.h - a sample store: a folder of HDF5 files. Many processes may write and read it at once.
 *
 *     samples/store.json                id and schema version
 *     samples/<stamp>-<host>-<pid>.h5   rows of one process, about a thousand per file
 *     samples/spaces/ operations/       records of what was measured for whom
 *     samples/experiments/ data/        the experiments and data files that were measured
 *     samples/forgotten/                which rows are left out of answers (tune_store_forget)
 *     samples/claims/                   who measures what right now (lease.h)
 *     samples/points.lock               empty; processes lock bytes of it
 *     samples/hosts/                    hosts on which its file system was tried (shared.h)
 *
 * A process writes only its own files. It replaces a file atomically: it writes a new file, syncs
 * it, and renames it. So readers never see an incomplete file, not even after kill -9 or on a full
 * disk. Acknowledged rows are durable. Readers see the union of all files.
 *
 * A file has one table per experiment, /measurements/<experiment>: an HDF5 compound dataset with
 * the attributes of H5TB tables. /requests holds the requests of operations, including replays.
 * /reasons holds texts; the column `reason` has their indexes. The root has the attributes
 * schema_version and creator. h5py, pandas and h5dump open a file without options. The store knows
 * columns, not spaces.
 *
 * The HDF5 library has global state and is not thread-safe. Only one thread at a time may call
 * these functions. A program that uses HDF5 itself must close its own files, because the library's
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
#define TUNE_STORE_TEXT_MAX 4096 /* bytes of a text; a longer one is an error */
#define TUNE_STORE_NAME_MAX 200  /* bytes of a name: experiment, column, unit, record */
#define TUNE_STORE_FILE_ROWS 1024
/* name of the table of requests, used in place of an experiment's name */
#define TUNE_STORE_REQUESTS "requests"

enum tune_cell_type { TUNE_CELL_TEXT, TUNE_CELL_WHOLE, TUNE_CELL_NUMBER };
enum tune_column_role { TUNE_COLUMN_KEY, TUNE_COLUMN_INPUT, TUNE_COLUMN_TARGET };

struct tune_column {
    const char *name, *unit;    /* unit "": none */
    /* on disk: fixed UTF-8 string, int64, float64 */
    enum tune_cell_type type;
    enum tune_column_role role;
    /* a NUMBER that is a count: shown without decimals */
    bool whole;
};

struct tune_cell {
    bool absent;                /* no value: NUMBER is NaN, TEXT is ""; never for WHOLE */
    int64_t whole;
    double number;              /* also for WHOLE */
    const char *text;           /* NULL unless TEXT */
};

/* tune_cell_text - a cell with a text; absent for NULL or "".
 * tune_cell_whole - a cell with a whole number.
 * tune_cell_number - a cell with a number; absent for NaN. */
struct tune_cell tune_cell_text(const char *text);
struct tune_cell tune_cell_whole(int64_t whole);
struct tune_cell tune_cell_number(double number);

/* Columns of every measurement, before its inputs and targets. In a file, `reason` is a number;
 * here it is the text. */
enum tune_key {
    TUNE_KEY_UID,           /* 32 hexadecimal digits */
    TUNE_KEY_OPERATION,     /* id of the operation */
    TUNE_KEY_SPACE,         /* space of the request, "space-xxxxxx" */
    TUNE_KEY_REQUEST,       /* whole: index of the entity in the operation */
    TUNE_KEY_REPEAT,        /* whole: 0, 1, ... of --repeat */
    /* actuator and parameterized identifier, as spelled by the user */
    TUNE_KEY_EXPERIMENT,
    TUNE_KEY_ENTITY,        /* identifier of the entity, as its space spells it */
    TUNE_KEY_GENERATOR,     /* "explicit_grid_sample_generator" */
    TUNE_KEY_STARTED,       /* number: seconds since 1970 */
    TUNE_KEY_SECONDS,       /* number: seconds of the whole measurement */
    TUNE_KEY_STATUS,        /* "valid", "invalid" or "failed" */
    /* why the row or some of its runs are not valid, or a remark; absent: none */
    TUNE_KEY_REASON,
    TUNE_KEY_HOST,          /* name of the machine */
    TUNE_KEY_HOST_CLASS,    /* host class; figures of one class are comparable */
    TUNE_KEY_BUILD,         /* build of the measured program */
    TUNE_KEY_WEIGHTS,       /* hash; absent: there is none */
    TUNE_KEY_DATA,
    TUNE_KEY_CORE_SHARE,    /* number: share of its processors that it got, 0 to 1 */
    TUNE_KEY_STABLE,        /* number: 1: its speed became stable; 0: it did not */
    TUNE_KEYS,
};
/* tune_key_column - name, type and unit of such a column. */
const struct tune_column *tune_key_column(enum tune_key key);

/* Columns of the table of requests. */
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
/* tune_request_column - name, type and unit of such a column. */
const struct tune_column *tune_request_column(enum tune_request_key key);

struct tune_store;

/* tune_store_open - open a store. create: make it, with an id, if the folder is absent or empty.
 * Files are listed, not read. NULL with an error: it is absent, it has no store.json, its schema is
 * newer, or permission is missing. With create, also: the file system lacks something that a store
 * relies on (shared.h).
 * tune_store_id - the store's id: 6 random characters. They are never a valid number, as "310e50"
 * would be in YAML.
 * tune_store_refresh - look for new and replaced files and tombstones. Returns their number (one
 * for any tombstones), or -1 with an error. Rows appended by others are only seen for sure after
 * it.
 * tune_store_version - read the structure of new and changed files. Returns a number that changes
 * when rows of other processes may have become visible to a reader of this store. It also changes
 * when other rows are forgotten. Broken files are not reported here, but by readers.
 * tune_store_folder - the store's folder.
 * tune_store_free - close it; NULL is fine. */
struct tune_store *tune_store_open(const char *folder, bool create);
void tune_store_free(struct tune_store *s);
const char *tune_store_id(const struct tune_store *s);
const char *tune_store_folder(const struct tune_store *s);
int tune_store_refresh(struct tune_store *s);
int64_t tune_store_version(struct tune_store *s);

/* ---- writing ---- */

/* tune_store_table - declare the table of an experiment before its rows: inputs and targets with
 * their roles. Texts are copied. It may be called again with other columns. -1 with an error: a
 * column has another type in the store.
 * tune_store_fits - check that tune_store_append would accept these cells, before a long
 * measurement. 0, or -1 with the error.
 * tune_store_append - append a row: the keys [TUNE_KEYS], then the columns of the table. request: a
 * row of requests to append, too, or NULL. 0: the row is on the disk. -1 with an error: nothing
 * changed. Reasons are a full disk, a file size limit, missing permission, or a text that is too
 * long or not UTF-8.
 * tune_store_request - append a row of requests alone, for a replay.
 * tune_store_begin - begin a batch of appended rows.
 * tune_store_commit - end the batch. 0: its rows are on the disk. If a call in the batch returns
 * -1, its unwritten rows are removed, and the next begin starts a new batch.
 * tune_store_record - write or replace <folder>/<kind>/<name>, such as ("spaces",
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

/* ---- forgetting ---- */

/* Rows can be removed from all answers, and restored. A tombstone, forgotten/<id>.json, lists their
 * uids, and says who forgot them, when and why. Sample files are not changed. A tombstone is
 * written atomically and never changed. To undo it, forgotten/<id>.undone is created. So processes
 * of several hosts may forget and undo at the same time, in any order. A row in two tombstones is
 * restored when both are undone. */
struct tune_tombstone {
    const char *id;           /* "20261126T161705Z-1a2b3c" */
    const char *who, *note;   /* "user on host"; "": no note */
    double when_s;            /* since 1970 */
    const char *const *uids;  /* [rows] */
    int64_t rows;
};
enum { TUNE_TOMBSTONE_ID = 48, TUNE_TOMBSTONE_ROWS = 1000000 };

/* tune_store_forget - forget the rows uids[count], at most TUNE_TOMBSTONE_ROWS. note, which may be
 * NULL, says why. id receives the tombstone's id. 0: it is on the disk. -1 with an error: nothing
 * changed.
 * tune_store_remember - undo the tombstone with that id, "last" (the newest one) or "all". Damaged
 * tombstones can be undone, too. Returns the number of restored rows. -1 with an error; kind USAGE:
 * there is no such tombstone.
 * tune_store_forgotten - the tombstones in effect, oldest first, *count of them. Borrowed until the
 * next refresh, forget or remember. NULL with an error: one of them is damaged. Then no rows can be
 * read, because the rows to leave out are unknown.
 * tune_store_forgotten_rows - number of forgotten rows of the experiment (NULL: of all). It reads
 * all uids if there are tombstones, else nothing. -1 with an error. */
int tune_store_forget(struct tune_store *s, const char *const *uids, int64_t count,
                      const char *note, char id[TUNE_TOMBSTONE_ID]);
int64_t tune_store_remember(struct tune_store *s, const char *id);
const struct tune_tombstone *tune_store_forgotten(struct tune_store *s, int *count);
int64_t tune_store_forgotten_rows(struct tune_store *s, const char *experiment);

/* ---- locks on points ---- */

/* tune_store_lock_point - lock a point until tune_store_unlock_point or the end of this process. A
 * point is a number, such as a hash of a measurement and its host. 1: it is locked. 0: another
 * process has locked it. -1 with an error. If the file system has no locks, the result is always 1.
 * A process may lock a point several times; the first unlock ends them all.
 * tune_store_unlock_point - unlock the point. */
int tune_store_lock_point(struct tune_store *s, uint64_t point);
void tune_store_unlock_point(struct tune_store *s, uint64_t point);

/* ---- reading ---- */

/* tune_store_tables - sorted names of the experiments in all files, *count of them. Borrowed until
 * the next refresh.
 * tune_store_has - true if there is a table with that name. false also if the files cannot be read.
 * tune_store_columns - columns of an experiment (or TUNE_STORE_REQUESTS), *count of them. Keys come
 * first, then inputs, then targets, each in first-seen order. A column that is WHOLE in one file
 * and NUMBER in another is NUMBER. NULL with an error: no such table, a broken file, or a column
 * that is TEXT in one file and a number in another. */
const char *const *tune_store_tables(struct tune_store *s, int *count);
bool tune_store_has(struct tune_store *s, const char *experiment);
const struct tune_column *tune_store_columns(struct tune_store *s, const char *experiment,
                                             int *count);

/* A pass over one table, or over the requests. It reads only the given columns, block by block,
 * with files in the order of their start. So 10^6 rows need no more memory than 10^3. Forgotten
 * rows and their requests are left out.
 * tune_scan_open - begin a pass over the columns names[count]. If a file lacks a column, its cells
 * are absent.
 * tune_scan_default - the cell of column i, once, in files that lack the column. -1: no memory.
 * tune_scan_keys - the same for columns that every row has, by key. Keys are of enum
 * tune_request_key for requests, else of enum tune_key. The macro TUNE_SCAN takes them as
 * arguments.
 * tune_scan_next - read the next row. 1 with cells[count], valid until the next call. 0 at the end.
 * -1 with an error: a broken file, which is named, or scan is NULL. The next call continues with
 * the next file.
 * tune_scan_position - the position of the last row read.
 * tune_scan_at - read the row at a position again. Nearby rows are cheap, because blocks of files
 * are cached.
 * tune_scan_everything - read forgotten rows, too, from here on.
 * tune_scan_forgotten - number of forgotten rows that tune_scan_next left out. */
struct tune_scan;
struct tune_row_position { int file, row; };
struct tune_scan *tune_scan_open(struct tune_store *s, const char *experiment,
                                 const char *const *names, int count);
int tune_scan_default(struct tune_scan *scan, int i, const struct tune_cell *cell);
struct tune_scan *tune_scan_keys(struct tune_store *s, const char *experiment, const int *keys,
                                 int count);
#define TUNE_SCAN(store, experiment, ...)                      \
    tune_scan_keys(store, experiment, (const int[]){__VA_ARGS__}, \
                   (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
int tune_scan_next(struct tune_scan *scan, const struct tune_cell **cells);
struct tune_row_position tune_scan_position(const struct tune_scan *scan);
int tune_scan_at(struct tune_scan *scan, struct tune_row_position position,
                 const struct tune_cell **cells);
void tune_scan_everything(struct tune_scan *scan);
int64_t tune_scan_forgotten(const struct tune_scan *scan);
/* tune_scan_free - end the pass; NULL is fine. */
void tune_scan_free(struct tune_scan *scan);

/* tune_store_records - sorted names in <folder>/<kind>, *count of them.
 * tune_store_records_free - free them. */
char **tune_store_records(struct tune_store *s, const char *kind, int *count);
void tune_store_records_free(char **names, int count);

/* ---- whole stores ---- */

/* tune_store_merge - copy the rows of `from` that `into` lacks, with their requests, records and
 * tombstones. Rows are identified by uid. Rows that are forgotten in either store are not copied. A
 * tombstone that is undone in either store becomes undone in `into`. how: see struct tune_merge;
 * NULL: all zero. Returns the number of copied rows, or -1 with an error. Refreshes `into`.
 * tune_store_check - read all files, including forgotten rows, and call problem for each problem.
 * Problems are a damaged file or tombstone, a duplicate uid, an unknown status or schema, rows
 * without experiment, and requests without result. file, unless NULL, is called for each file that
 * opens, with its number of rows. checked: checksums cover the file. Returns the number of
 * problems, or -1 with an error: the folder cannot be read. Refreshes s. */
struct tune_merged {
    int64_t came, there;    /* rows that were copied; rows that `into` had */
    int64_t forgotten;      /* rows left out because they are forgotten */
    int64_t unwanted;       /* rows left out because they are not wanted */
    int64_t tombstones;     /* copied tombstones */
};
struct tune_merge {
    bool programs; /* copy the programs of experiments, too. Else they become null in the copies, so
                    * that nobody runs a stranger's program */
    void *context; /* argument of the functions below, each of which may be NULL */
    void (*progress)(void *context, int64_t done, int64_t all); /* rows */
    void (*left_out)(void *context, const char *experiment, const char *program);
    /* 1: copy the row cells[count]; 0: do not; -1 with an error. Requests, experiments, operations,
     * spaces and data are only copied for wanted rows. NULL: copy all */
    int (*wanted)(void *context, const char *experiment, const struct tune_column *columns,
                  int count, const struct tune_cell *cells);
    struct tune_merged *merged; /* set, unless NULL */
};
int64_t tune_store_merge(struct tune_store *into, struct tune_store *from,
                         const struct tune_merge *how);
int64_t tune_store_check(struct tune_store *s, void (*file)(void *context, const char *file,
                                                            int64_t rows, bool checked),
                         void (*problem)(void *context, const char *file, const char *what),
                         void *context);

#ifdef __cplusplus
}
#endif
#endif
