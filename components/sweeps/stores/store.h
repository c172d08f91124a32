/* store.h - a sample store: a folder of HDF5 files that many processes write and anybody reads.
 *
 *     samples/store.json                id and schema version
 *     samples/<stamp>-<host>-<pid>.h5   rows of one process, about a thousand per file
 *     samples/spaces/ operations/       records of what was measured for whom
 *     samples/experiments/ data/        the experiments and data files that were measured
 *     samples/claims/                   who measures what right now (claim.h)
 *     samples/points.lock               empty; processes lock bytes of it
 *     samples/hosts/                    hosts on which its file system was tried (shared.h)
 *
 * A process writes only its own files. It replaces a file whole: a new file beside it, synced,
 * renamed. So readers never meet half a file, not even after kill -9 or on a full disk. A row that
 * was acknowledged stays. Readers see the union of all files.
 *
 * A file has one table per experiment, /measurements/<experiment>: an HDF5 compound dataset with
 * the attributes of H5TB tables. /requests holds what each operation asked for, replays included.
 * /reasons holds the texts that the column `reason` numbers. The root has the attributes
 * schema_version and creator. h5py, pandas and h5dump open it without options. The store knows
 * columns, not spaces.
 *
 * The HDF5 library keeps state for the whole process and is not made for threads. Only one thread
 * at a time may call these functions. A program that uses HDF5 itself closes its own files, because
 * the library's clean-up at exit may be off. */
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
/* name of the table of requests, in place of an experiment */
#define TUNE_STORE_REQUESTS "requests"

enum tune_cell_type { TUNE_CELL_TEXT, TUNE_CELL_WHOLE, TUNE_CELL_NUMBER };
enum tune_column_role { TUNE_COLUMN_KEY, TUNE_COLUMN_INPUT, TUNE_COLUMN_TARGET };

struct tune_column {
    const char *name, *unit;    /* unit "": none */
    /* on disk: fixed UTF-8 string, int64, float64 */
    enum tune_cell_type type;
    enum tune_column_role role;
    /* a NUMBER that counts: shown without decimals */
    bool whole;
};

struct tune_cell {
    bool absent;                /* absent: NUMBER NaN, TEXT ""; never for WHOLE */
    int64_t whole;
    double number;              /* also for WHOLE */
    const char *text;           /* NULL unless TEXT */
};

/* tune_cell_text - a cell of a text; absent for NULL or "".
 * tune_cell_whole - of a whole number.
 * tune_cell_number - of a number; absent for NaN. */
struct tune_cell tune_cell_text(const char *text);
struct tune_cell tune_cell_whole(int64_t whole);
struct tune_cell tune_cell_number(double number);

/* Columns of every measurement, before its inputs and targets. In a file, `reason` is a number;
 * here it is the text. */
enum tune_key {
    TUNE_KEY_UID,           /* 32 hexadecimal digits */
    TUNE_KEY_OPERATION,     /* id of the operation */
    TUNE_KEY_SPACE,         /* space that it was asked for, "space-xxxxxx" */
    TUNE_KEY_REQUEST,       /* whole: index of the entity in the operation */
    TUNE_KEY_REPEAT,        /* whole: 0, 1, ... of --repeat */
    /* actuator and parameterized identifier, as spelled by the user */
    TUNE_KEY_EXPERIMENT,
    TUNE_KEY_ENTITY,        /* identifier of the entity, as its space spells it */
    TUNE_KEY_GENERATOR,     /* "explicit_grid_sample_generator" */
    TUNE_KEY_STARTED,       /* number: seconds since 1970 */
    TUNE_KEY_SECONDS,       /* number: seconds of the whole measurement */
    TUNE_KEY_STATUS,        /* "valid", "invalid" or "failed" */
    /* why it is not valid, or why some runs were not, or a mark; absent: nothing to say */
    TUNE_KEY_REASON,
    TUNE_KEY_HOST,          /* name of the machine */
    TUNE_KEY_HOST_CLASS,    /* host class: figures of one class are comparable */
    TUNE_KEY_BUILD,         /* build of the measured program */
    TUNE_KEY_WEIGHTS,       /* hash; absent: there is none */
    TUNE_KEY_DATA,
    TUNE_KEY_CORE_SHARE,    /* number: of its processors, 0 to 1 */
    TUNE_KEY_STABLE,        /* number: 1: its speed became stable, 0: it did not */
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

/* tune_store_open - open a folder. create: make it, with an id, if it is absent or empty. Files are
 * found, not read. NULL with an error: absent, no store ("store.json"), a newer schema, or no
 * permission. With create, also: the file system does not do what a store relies on (shared.h).
 * tune_store_id - 6 characters, drawn once. One of them is a letter that makes no number ("310e50"
 * would be one in YAML).
 * tune_store_refresh - look for new and replaced files; returns their number, or -1 with an error.
 * Only after it are newly appended rows seen for sure.
 * tune_store_version - reads the structure of the files that came or changed. Returns a number that
 * differs if other processes' rows may have been read since the last call, by whatever reader of
 * this store. Broken files are left to readers.
 * tune_store_folder - its folder.
 * tune_store_free - close it; NULL is fine. */
struct tune_store *tune_store_open(const char *folder, bool create);
void tune_store_free(struct tune_store *s);
const char *tune_store_id(const struct tune_store *s);
const char *tune_store_folder(const struct tune_store *s);
int tune_store_refresh(struct tune_store *s);
int64_t tune_store_version(struct tune_store *s);

/* ---- writing ---- */

/* tune_store_table - announce the table of an experiment, before its rows: inputs and targets with
 * their roles. Texts are copied. It may be called again, with other columns. -1 with an error: a
 * column has another type in the store.
 * tune_store_fits - whether tune_store_append would take these cells: 0, or -1 with its error. Ask
 * before an hour is spent on measuring.
 * tune_store_append - append a row, with cells in the order keys[TUNE_KEYS], then the columns of
 * the table; and a row of requests (NULL: none). 0: the row is on the disk. -1 with an error:
 * nothing changed. Reasons are a full disk, a file size limit, a text that is too long or no UTF-8,
 * or no permission.
 * tune_store_request - append a row of requests alone, for a replay.
 * tune_store_begin - begin to append many rows at once.
 * tune_store_commit - end it; when it returns 0 the rows are on the disk. If one of these calls
 * returns -1, rows that are not written yet are dropped, and the next begin starts anew.
 * tune_store_record - write <folder>/<kind>/<name>, such as ("spaces", "space-1a2b3c.yaml"),
 * replacing it. */
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

/* tune_store_hold - reserve a point until tune_store_release or our end. A point is any number that
 * names what is measured, and where. 1: it is ours. 0: another process measures it now. -1 with an
 * error. Without locks in the file system it is always ours. A process may hold a point several
 * times; the first release ends it.
 * tune_store_release - give it back. */
int tune_store_hold(struct tune_store *s, uint64_t point);
void tune_store_release(struct tune_store *s, uint64_t point);

/* ---- reading ---- */

/* tune_store_tables - sorted names of the experiments in all files, *count of them. Borrowed until
 * the next refresh.
 * tune_store_has - whether there is a table of that name. false also if the files cannot be read.
 * tune_store_columns - columns of one experiment (or of TUNE_STORE_REQUESTS), *count of them: keys,
 * inputs, targets, each in first-seen order. If a column is WHOLE in one file and NUMBER in
 * another, it is NUMBER. NULL with an error: no such table, a broken file (named), or a column that
 * is TEXT here and a number there. */
const char *const *tune_store_tables(struct tune_store *s, int *count);
bool tune_store_has(struct tune_store *s, const char *experiment);
const struct tune_column *tune_store_columns(struct tune_store *s, const char *experiment,
                                             int *count);

/* A pass over one table, or over the requests. Only the named columns are read, block by block,
 * files in order of their start. So 10^6 rows need no more memory than 10^3.
 * tune_scan_open - begin a pass over the columns names[count]. A column that a file lacks is absent
 * in its rows.
 * tune_scan_keys - the same over columns that every row has, by their keys: of enum
 * tune_request_key for the requests, else of enum tune_key. TUNE_SCAN lists the keys.
 * tune_scan_next - the next row: 1 with cells[count], valid until the next call. 0 at the end. -1
 * with an error: a broken file (named), or scan is NULL. Calling again goes on with the next file.
 * tune_scan_place - the place of the row just read.
 * tune_scan_at - read the row at a place again. Neighbours are cheap: a file's blocks are
 * cached. */
struct tune_scan;
struct tune_place { int file, row; };
struct tune_scan *tune_scan_open(struct tune_store *s, const char *experiment,
                                 const char *const *names, int count);
struct tune_scan *tune_scan_keys(struct tune_store *s, const char *experiment, const int *keys,
                                 int count);
#define TUNE_SCAN(store, experiment, ...)                      \
    tune_scan_keys(store, experiment, (const int[]){__VA_ARGS__}, \
                   (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
int tune_scan_next(struct tune_scan *scan, const struct tune_cell **cells);
struct tune_place tune_scan_place(const struct tune_scan *scan);
int tune_scan_at(struct tune_scan *scan, struct tune_place place, const struct tune_cell **cells);
/* tune_scan_free - end the pass; NULL is fine. */
void tune_scan_free(struct tune_scan *scan);

/* tune_store_records - sorted names in <folder>/<kind>, *count of them.
 * tune_store_records_free - free them. */
char **tune_store_records(struct tune_store *s, const char *kind, int *count);
void tune_store_records_free(char **names, int count);

/* ---- whole stores ---- */

/* tune_store_merge - copy rows of `from` whose uid `into` lacks, with their requests, and records.
 * Returns the number of rows, or -1 with an error. how: see struct tune_merge; NULL: a zeroed one.
 * tune_store_check - read every file. problem is called for each problem: a damaged file, a uid
 * twice, an unknown status or schema, rows without experiment, requests without result. file,
 * unless NULL, is called for each file that opens, with its rows and whether checksums cover it.
 * Returns the number of problems, or -1 with an error: the folder cannot be read. Refreshes s. */
struct tune_merge {
    bool programs; /* copy the programs of experiments, too. Else copies of their files have null
                      there, and nobody runs a stranger's program */
    void *context; /* for the functions, which may be NULL */
    void (*progress)(void *context, int64_t done, int64_t all); /* rows */
    void (*left_out)(void *context, const char *experiment, const char *program);
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
