/* csv.h - a strict reader for CSV (RFC 4180), one row at a time, and a writer of fields.
 *
 * Lines end with LF or CR LF. Quoted fields may hold commas, line ends and doubled quotes. A byte
 * order mark at the start and empty lines are skipped. Errors: invalid UTF-8, a NUL, a quote that
 * is not closed or closes inside a field.
 *
 *     struct tune_csv *csv = tune_csv_open("rows.csv");
 *     while ((more = tune_csv_row(csv, &fields, &count)) == 1)
 *         ... fields[0] .. fields[count - 1]; the row begins on line tune_csv_line(csv)
 *     tune_csv_free(csv); */
#ifndef TUNE_CORE_CSV_H
#define TUNE_CORE_CSV_H

#include <stdint.h>
#include <stdio.h>

#define TUNE_CSV_ROW_BYTES (64 << 20)
#define TUNE_CSV_FIELDS 65536

struct tune_csv;

/* tune_csv_open - open a file. NULL with an error.
 *
 * tune_csv_from - read from an open stream, which the caller closes. name is for messages and
 * copied.
 *
 * tune_csv_from_text - read one row from size bytes (at least 1) that begin on line first_line of a
 * file. text is borrowed until free. separator: ',', ';', '\t' or '|'.
 *
 * tune_csv_row - read the next row into fields[count]; the strings are valid until the next call.
 * 1: a row; 0: the end; -1 with "name:line: ...": invalid CSV, or a row above the limits.
 *
 * tune_csv_line - the line on which that row begins.
 *
 * tune_csv_rewind - start again. The stream must be seekable. */
struct tune_csv *tune_csv_open(const char *path);
struct tune_csv *tune_csv_from(FILE *stream, const char *name);
struct tune_csv *tune_csv_from_text(const char *text, size_t size, const char *name,
                                    int64_t first_line, char separator);
int tune_csv_row(struct tune_csv *csv, const char *const **fields, int *count);
int64_t tune_csv_line(const struct tune_csv *csv);
int tune_csv_rewind(struct tune_csv *csv);
void tune_csv_free(struct tune_csv *csv);

/* tune_csv_separator_name - in words: "a comma". */
const char *tune_csv_separator_name(char separator);

/* tune_csv_put - write a field, quoted if necessary. */
void tune_csv_put(FILE *out, const char *text);

#endif
