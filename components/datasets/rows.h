/* rows.h - where the rows of a data file lie: one pass at open, then row i by a short walk.
 *
 *     row      0 1 2 .. 15 | 16 17 .. 31 | 32 ..
 *     places   ^             ^             ^        {offset, line} of every 16th row: one byte of memory a row
 *
 * The file is mapped, never read whole, and pages that were passed are given back, so resident
 * memory stays small whatever the size of the file or of one line. Internal to datasets: it knows
 * rows, not what is in them.
 *
 * A row is: of a JSONL file a line that is not blank; of a JSON file an element of its array; of a
 * text file a paragraph, that is lines up to a blank one; of a CSV or TSV file a record, whose
 * fields in quotes may hold line ends, after the first, which names the columns. Lines end in LF or
 * CRLF; a UTF-8 byte order mark is skipped. */
#ifndef TUNE_DATASETS_ROWS_H
#define TUNE_DATASETS_ROWS_H

#include <stdint.h>

#include "files/file.h"
#include "datasets/dataset.h"

struct tune_row {
    /* into the mapping; a paragraph holds its line ends as they are in the file */
    const char *text;
    size_t size;
    int64_t line;     /* of its first byte */
};

struct tune_row_place {
    uint64_t offset; /* from the file's begin */
    int64_t line;    /* counted from 1 */
};

struct tune_rows {
    struct tune_mapping file;
    char path[TUNE_PATH_MAX];
    enum tune_dataset_format format; /* never BY_NAME */
    struct tune_row_place *places;
    int64_t count; /* rows */
    size_t longest; /* bytes of the longest row that is read: none above TUNE_ROW_LIMIT */
    struct tune_row header; /* of a CSV or TSV file: its first record */
};

/* tune_rows_open - map the file and find its rows. -1: cannot be mapped, no rows, a kind of file
 * that is not read, or a JSON file that is no array (its brackets, quotes and commas are checked
 * here, elements when they are read).
 * tune_rows_close - a zeroed one is fine. */
int tune_rows_open(struct tune_rows *rows, const char *path, enum tune_dataset_format format);
void tune_rows_close(struct tune_rows *rows);

/* tune_rows_get - row i (0 <= i < count), borrowed until close. Any number of threads. */
struct tune_row tune_rows_get(const struct tune_rows *rows, int64_t i);

/* tune_rows_uncut - 0, or -1: the file has been cut short since it was opened, and reading the
 * mapping could end the program (SIGBUS). Asked before a row is read. */
int tune_rows_uncut(const struct tune_rows *rows);

/* tune_rows_release - tell the system that no page of the mapping is needed now; they come back
 * when touched. */
void tune_rows_release(const struct tune_rows *rows);

#endif
