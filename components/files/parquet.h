/* parquet.h - the rows of a Parquet file as lines of JSON, one after the other.
 *
 *     struct tune_parquet *p = tune_parquet_open("train-00000-of-00001.parquet", 0);
 *     while ((more = tune_parquet_next(p, &line)) == 1)
 *         fwrite(line.data, 1, line.size, stdout);     {"instruction":"Say hi.","output":"Hi."}
 *     tune_parquet_free(p);
 *
 * It reads columns of texts, numbers, booleans, times, lists, structs and maps. Pages are PLAIN or
 * by dictionary, of version 1 or 2, uncompressed, snappy or zstd. Any other kind, encoding or codec
 * is an error that names it and the column. Memory holds one page of each column.
 *
 *     UTF8, ENUM, JSON, UUID             text
 *     bytes without a type               text; an error if they are not UTF-8
 *     integers, DECIMAL                  number with all digits
 *     FLOAT, DOUBLE, FLOAT16             shortest number; NaN and infinities: null
 *     DATE, TIME, TIMESTAMP, INT96       text, "2025-01-31T09:30:00.5Z"
 *     LIST, repeated fields              array
 *     struct, MAP                        object
 *
 * Source: the Apache Parquet format, parquet.thrift, Encodings.md, LogicalTypes.md. Private to the
 * library. */
#ifndef TUNE_FILES_PARQUET_H
#define TUNE_FILES_PARQUET_H

#include <stdint.h>

#include "files/json.h"

#define TUNE_PARQUET_ROW_LIMIT ((size_t)64 << 20) /* bytes of a line; a longer row is an error */

struct tune_parquet;

/* A small file can hold pages of many GiB. What comes out of one may take TUNE_EXPANSION times its
 * bytes, or TUNE_EXPANSION_FREE bytes if that is more. */
#define TUNE_EXPANSION 100
#define TUNE_EXPANSION_FREE ((int64_t)256 << 20)

/* tune_parquet_most - the bytes that may come out of so many; expansion 0: TUNE_EXPANSION.
 *
 * tune_parquet_open - read the footer and check the schema. The pages in memory may take
 * tune_parquet_most(bytes of the file, expansion); more is an error of the row. NULL with an error:
 * no Parquet file, it is damaged, or it has a column that is not read.
 * tune_parquet_free - close it; NULL is fine.
 * tune_parquet_rows - number of rows, as the footer says.
 * tune_parquet_next - the next row, without a line end, valid until the next call. 1; 0: the end;
 * -1 with an error, and then on every later call. */
int64_t tune_parquet_most(int64_t bytes, double expansion);
struct tune_parquet *tune_parquet_open(const char *path, double expansion);
void tune_parquet_free(struct tune_parquet *p);
int64_t tune_parquet_rows(const struct tune_parquet *p);
int tune_parquet_next(struct tune_parquet *p, struct tune_text *line);

#endif
