/* print_parquet_parts.h - types shared by the pages and the footer of a Parquet file. Private. */
#ifndef TUNE_ANSWERS_PRINT_PARQUET_PARTS_H
#define TUNE_ANSWERS_PRINT_PARQUET_PARTS_H

#include "files/thrift_writer.h"
#include "sweeps/answers/answer.h"

enum { TUNE_PARQUET_GROUP_ROWS = 100000 };

/* Codes from parquet.thrift. */
enum { BOOLEAN = 0, INT64 = 2, DOUBLE = 5, BYTE_ARRAY = 6, GROUP };
enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8 };

struct tune_answer_parquet_column {
    const char *name;
    int type;
    bool time, list;
};

/* A column of a row group. begin and data are offsets in the file; data is that of the first data
 * page. */
struct tune_answer_parquet_chunk {
    int64_t begin, data, size, values;
};

/* tune_answer_parquet_footer - write the file's metadata, its length and the closing magic bytes.
 * columns: [a->count]; chunks: [groups][a->count]. -1 with an error: no memory. */
int tune_answer_parquet_footer(struct tune_thrift_writer *w, const struct tune_answer_table *a,
                               const struct tune_answer_parquet_column *columns,
                               const struct tune_answer_parquet_chunk *chunks, int64_t groups);

#endif
