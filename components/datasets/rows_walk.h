/* rows_walk.h - what the walks over the rows of a file share. Private to rows.c, rows_csv.c and
 * rows_json.c.
 *
 * A walk finds the row at or after *at and moves *at behind it. It returns 1 with *row, 0 at the
 * end, or -1 with an error. */
#ifndef TUNE_DATASETS_ROWS_WALK_H
#define TUNE_DATASETS_ROWS_WALK_H

#include "datasets/rows.h"

/* tune_rows_end - where the rows of the file end.
 * tune_rows_find - memchr that releases pages during a long search. Returns end if c is not found.
 * tune_rows_lines - the number of line ends.
 * tune_rows_space - true for white space of JSON.
 * tune_rows_skip - the first character that is none, or end.
 * tune_rows_place - the place of p.
 * tune_rows_fail - the error "file:line: what", for the line of p. Returns -1. */
const char *tune_rows_end(const struct tune_rows *rows);
const char *tune_rows_find(const char *p, const char *end, char c);
int64_t tune_rows_lines(const char *p, const char *end);
struct tune_row_place tune_rows_place(const struct tune_rows *rows, const char *p, int64_t line);
int tune_rows_fail(const struct tune_rows *rows, const struct tune_row_place *from, const char *p,
                   const char *what);

static inline bool tune_rows_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static inline const char *tune_rows_skip(const char *p, const char *end)
{
    while (p < end && tune_rows_space(*p))
        p++;
    return p;
}

/* tune_rows_next_record - the walk over CSV and TSV.
 * tune_rows_next_element - the walk over an array of JSON.
 * tune_rows_next_object - the walk over objects of JSON that may go over several lines.
 * tune_rows_settle_separator - choose rows->separator by the first records, from *at on. A first
 * line "sep=;", as Excel writes it, decides; *at moves behind it.
 * tune_rows_settle_object - look at a file that begins with the object at p. It sets rows->objects,
 * or finds that the rows are a list in the object: then it returns the list's opening bracket and
 * sets rows->list_end. NULL: there is no such list. */
int tune_rows_next_record(const struct tune_rows *rows, struct tune_row_place *at,
                          struct tune_file_row *row);
int tune_rows_next_element(const struct tune_rows *rows, struct tune_row_place *at,
                           struct tune_file_row *row);
int tune_rows_next_object(const struct tune_rows *rows, struct tune_row_place *at,
                          struct tune_file_row *row);
void tune_rows_settle_separator(struct tune_rows *rows, struct tune_row_place *at);
const char *tune_rows_settle_object(struct tune_rows *rows, const char *p);

#endif
