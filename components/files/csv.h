/* csv.h - a strict reader for CSV that somebody else wrote, RFC 4180, one row at a time; and fields
 * of ours.
 *
 * Lines end with LF or CR LF; fields in quotes may hold commas, line ends and doubled quotes. A
 * byte order mark at the begin and empty lines are skipped. UTF-8 is checked, NUL is an error, and
 * so are quotes that do not close, or close before a field's end. Example:
 *
 *     struct tune_csv *csv = tune_csv_open("rows.csv");
 *     while ((more = tune_csv_row(csv, &fields, &count)) == 1)
 *         ... fields[0] .. fields[count - 1]; tune_csv_line(csv) is where the row begins
 *     tune_csv_free(csv); */
#ifndef TUNE_CORE_CSV_H
#define TUNE_CORE_CSV_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_CSV_ROW_BYTES (64 << 20)
#define TUNE_CSV_FIELDS 65536

struct tune_csv;

/* tune_csv_open - NULL with an error: not there, a folder. tune_csv_from - read from an open
 * stream, which stays the caller's; name is for messages, copied.
 * tune_csv_from_text - one row that somebody else found, size bytes (at least 1) of a file's line
 * first_line on, borrowed until free; separator: ',' or '\t'.
 * tune_csv_row - 1 and fields[count], texts valid until the next call; 0: the end; -1 with
 * "name:line: ...": no CSV, or more than the limits above in one row. tune_csv_line - the line on
 * which that row begins.
 * tune_csv_rewind - from the begin again. The stream must be one that can be read twice. */
struct tune_csv *tune_csv_open(const char *path);
struct tune_csv *tune_csv_from(FILE *stream, const char *name);
struct tune_csv *tune_csv_from_text(const char *text, size_t size, const char *name,
                                    int64_t first_line, char separator);
int tune_csv_row(struct tune_csv *csv, const char *const **fields, int *count);
int64_t tune_csv_line(const struct tune_csv *csv);
int tune_csv_rewind(struct tune_csv *csv);
void tune_csv_free(struct tune_csv *csv);

/* tune_csv_put - a field, in quotes where it needs them. */
void tune_csv_put(FILE *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
