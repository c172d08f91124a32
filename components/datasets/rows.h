/* rows.h - the positions of rows in a data file. Opening scans the file once. Then row i is a short
 * walk away.
 *
 *     row      0 1 2 .. 15 | 16 17 .. 31 | 32 ..
 *     places   ^             ^             ^        {offset, line} of every 16th row: 1 byte a row
 *
 * The file is mapped and never read as a whole. Pages behind the scan are given back, so resident
 * memory stays small even for huge files or lines. For datasets and task files. It does not look
 * inside rows.
 *
 * A row is:
 *     JSONL     a line that is not blank. If the first object goes on over several lines, a row is
 *               an object
 *     JSON      an element of the array. {"data": [...]} and its like is such an array, too
 *     text      a paragraph: lines up to a blank one. If a line of the file is the end token, or
 *               <|endoftext|>, a row is a document: all lines up to the next such line
 *     CSV, TSV  a record after the first, which names the columns; quoted fields may hold line
 *               ends. Fields are parted by a comma (in TSV by a tab), or by another of
 *               TUNE_SEPARATORS where the first records are
 *     Parquet   a row. The file is copied first: as JSONL, into a file without a name in $TMPDIR
 *
 * Lines end in LF or CRLF. A UTF-8 byte order mark is skipped. */
#ifndef TUNE_DATASETS_ROWS_H
#define TUNE_DATASETS_ROWS_H

#include <stdint.h>

#include "files/file.h"
#include "datasets/dataset.h"
#include "datasets/shards.h"

#define TUNE_SEPARATORS ",;\t|"

struct tune_file_row {
    const char *text; /* points into the mapping; a paragraph keeps the file's line ends */
    size_t size;
    int64_t line;     /* line of its first byte */
};

struct tune_row_place {
    uint64_t offset; /* from the start of the file */
    int64_t line;    /* starts at 1 */
};

struct tune_rows {
    struct tune_mapping file;
    struct tune_shards files;     /* what path means: one file, or several of Parquet */
    struct tune_file_stamp stamp; /* of them, before they were opened */
    bool copied;                  /* file is a copy of them */
    char name[TUNE_PATH_MAX];     /* as it was given */
    char path[TUNE_PATH_MAX];     /* of the file; of several, the name */
    enum tune_dataset_format format; /* never BY_NAME */
    struct tune_row_place *places;
    int64_t count; /* number of rows */
    int64_t in_file; /* rows that the file has; more than count if they were limited */
    size_t longest; /* bytes of the longest row, at most TUNE_ROW_LIMIT */
    struct tune_file_row header; /* first record of a CSV or TSV file */
    char separator;         /* of the fields of CSV and TSV */
    bool objects;           /* JSONL: the first object goes on over several lines */
    char list[16];          /* JSON: the rows are this list of an object; "": they are the file's */
    size_t list_end;        /* where that list ends in the file; 0: there is none */
    char mark[64];          /* the line between documents of a text file; "": none */
};

/* tune_rows_open - map the file, or those that path means (shards.h), and find its rows. JSON's
 * brackets, quotes and commas are checked here, its elements when read. Returns 0, or -1 with an
 * error. Errors: the file cannot be mapped, has no rows, is of an unsupported kind, is JSON but no
 * array, or is a damaged Parquet file. Of the options are read: format; end_token, a line that may
 * part documents; expansion.
 *
 * tune_rows_open_text - the same for JSONL in memory, which is copied. name: for messages.
 * tune_rows_close - unmap it. A zeroed one is allowed. */
int tune_rows_open(struct tune_rows *rows, const char *path,
                   const struct tune_dataset_options *options);
int tune_rows_open_text(struct tune_rows *rows, const char *name, const char *text, size_t size);
void tune_rows_close(struct tune_rows *rows);

/* tune_rows_get - row i (0 <= i < count), valid until close. Any number of threads may call it.
 * tune_rows_seek - set *at to the beginning of row i, to read the rows from there in turn.
 * tune_rows_next - the row at *at, which moves on behind it. There must be one. */
struct tune_file_row tune_rows_get(const struct tune_rows *rows, int64_t i);
void tune_rows_seek(const struct tune_rows *rows, int64_t i, struct tune_row_place *at);
void tune_rows_next(const struct tune_rows *rows, struct tune_row_place *at,
                    struct tune_file_row *row);

/* tune_rows_uncut - 0, or -1 with an error: the file was truncated since opening. Reading the
 * mapping could then end the program with SIGBUS, so call this before reading a row. */
int tune_rows_uncut(const struct tune_rows *rows);

/* tune_rows_are_csv - true for records of CSV or TSV. */
bool tune_rows_are_csv(const struct tune_rows *rows);

/* tune_rows_too_long - set the error that the row is longer than TUNE_ROW_LIMIT. Returns -1. */
int tune_rows_too_long(const struct tune_rows *rows, const struct tune_file_row *row);

/* tune_rows_release - tell the system that the mapping's pages are not needed now. They return when
 * touched. */
void tune_rows_release(const struct tune_rows *rows);

/* tune_rows_are_parquet - whether the file's name or first bytes say so.
 * tune_rows_copy_parquet - map a copy of Parquet files as JSONL. bytes: of the files. -1 with an
 * error: of the files; or the copy would take more than expansion allows (options.h), or than the
 * disk has (kind CANNOT). */
bool tune_rows_are_parquet(const char *path);
int tune_rows_copy_parquet(const struct tune_shards *files, int64_t bytes, double expansion,
                           struct tune_mapping *copy);

#endif
