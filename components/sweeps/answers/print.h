/* print.h - write an answer, for people or for programs.
 *
 * Text for people is rounded. All other formats have every digit. */
#ifndef TUNE_ANSWERS_PRINT_H
#define TUNE_ANSWERS_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "sweeps/answers/answer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All return 0, or -1 with an error: no memory, or the file cannot be written.
 *
 * tune_answer_print - print a table for people, in lines of at most width columns (0: any). Notes
 * are printed above and below it, after "# "; the caller prints warnings. Several results appear as
 * mean, deviation and number: "12.5 ±0.3 (8)". An empty text is "".
 * tune_answer_csv - write CSV (RFC 4180) with a heading. A missing value is an empty field, an
 * empty text "".
 * tune_answer_json - write an array of objects; with lines, write one object per line. A missing
 * value is null. Infinities are texts.
 * tune_answer_parquet - write an Apache Parquet file. A missing value is null. Further errors: no
 * column, two columns with one name, or a text that is not UTF-8. The types of columns:
 *
 *     TEXT, VALUE, MIXED, NONE   String, as CSV has the cells
 *     WHOLE                      INT64
 *     NUMBER                     DOUBLE
 *     TIME                       TIMESTAMP in milliseconds, in UTC
 *     BOOL                       BOOLEAN
 *     LIST, LIST and numbers     LIST of INT64 if all are whole, else of DOUBLE; a number is a list
 *                                of one
 *
 * A column with both fractions and whole numbers beyond 2^53 is a String. The file's metadata holds
 * the units of columns as JSON under the key PANDAS_ATTRS: {"units": {"seconds": "s"}}. pandas
 * shows it as frame.attrs, pyarrow as schema.metadata, DuckDB as parquet_kv_metadata(FILE). */
int tune_answer_print(const struct tune_answer_table *a, int width, bool unicode, FILE *out);
int tune_answer_csv(const struct tune_answer_table *a, FILE *out);
int tune_answer_json(const struct tune_answer_table *a, bool lines, FILE *out);
int tune_answer_parquet(const struct tune_answer_table *a, FILE *out);

/* tune_answer_object - write the whole answer as one JSON object, for programs that show it:
 *
 *     {"columns": [{"name": "speed", "unit": "1/s", "type": "number", "dimension": false,
 *                   "measured": true, "hidden": false, "digits": 5}],
 *      "rows": [[141.5], [null]], "notes": [{"position": "below", "text": "..."}],
 *      "none": null, "verdict": 0, "command": "samples ..."}
 *
 * type: none, text, whole, number, time, bool, value, list or mixed. A dimension of a plot or of
 * points also has "levels", its values. A column of times has seconds since 1970. Other cells are
 * as tune_answer_json writes them. Options in notes stay in backquotes. none: the text to show if
 * there are no rows; else null. command: the line that prints this answer; NULL: none. */
int tune_answer_object(const struct tune_answer_table *a, const char *command, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
