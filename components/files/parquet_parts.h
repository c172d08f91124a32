/* parquet_parts.h - declarations shared by the files of the Parquet reader.
 *
 *     parquet.c         the footer: schema and row groups
 *     parquet_pages.c   a column's pages: levels and values, one after the other
 *     parquet_codec.c   snappy and zstd
 *     parquet_json.c    rows from the values of all columns
 *
 * Numbers of types, encodings and codecs are those of parquet.thrift. */
#ifndef TUNE_FILES_PARQUET_PARTS_H
#define TUNE_FILES_PARQUET_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/file.h"
#include "files/library.h"
#include "files/parquet.h"

#define TUNE_PARQUET_PAGE_LIMIT ((int64_t)1 << 30) /* bytes of a page */

enum tune_parquet_type {
    BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, GROUP
};
enum tune_parquet_repetition { REQUIRED, OPTIONAL, REPEATED };
enum tune_parquet_codec { UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW };

/* How a node of the schema becomes JSON. */
enum tune_parquet_form {
    AS_BOOLEAN, AS_INTEGER, AS_UNSIGNED, AS_HALF, AS_FLOAT, AS_DOUBLE, AS_DECIMAL, AS_TEXT,
    AS_BYTES, AS_UUID, AS_DATE, AS_TIME, AS_TIMESTAMP, AS_INT96, AS_STRUCT, AS_LIST, AS_MAP
};

struct tune_parquet_node {
    char *name;   /* as the file has it */
    char *key;    /* as JSON: "name": */
    enum tune_parquet_type type;
    enum tune_parquet_repetition repetition;
    enum tune_parquet_form form;
    int size;     /* bytes of a FIXED_LEN_BYTE_ARRAY */
    int scale;    /* of a DECIMAL */
    int digits;   /* of a second's fraction: 3, 6, 9 */
    bool utc;     /* of a TIMESTAMP */
    int max_definition, max_repetition;
    int children; /* fields of a group; they follow it, each with all that is below it */
    int end;      /* index of the node after them */
    int leaf, leaves; /* its columns are columns[leaf] .. columns[leaf + leaves - 1] */
};

/* Numbers of some bits each: runs of one number, and numbers packed one behind the other. */
struct tune_parquet_runs {
    const uint8_t *at, *end;
    int width; /* bits of a number, at most 32 */
    uint64_t run, packed;        /* numbers left of a run, or of a packed group */
    uint32_t value;              /* of the run */
    const uint8_t *bits, *after; /* bytes of the group */
    uint64_t store;              /* bits taken from it */
    int stored;
};

/* A value's bytes, in the page or in the dictionary. For a boolean: size 0 or 1. */
struct tune_parquet_value {
    const uint8_t *data;
    size_t size;
};

/* The codecs' libraries, opened when a page needs one. */
struct tune_parquet_codecs {
    struct tune_library snappy, zstd;
    int (*snappy_length)(const char *data, size_t size, size_t *length);
    int (*snappy_uncompress)(const char *data, size_t size, char *to, size_t *length);
    size_t (*zstd_decompress)(void *to, size_t capacity, const void *data, size_t size);
};

/* Memory of the pages of all columns. */
struct tune_parquet_memory {
    size_t used, most; /* bytes */
};

/* The reading of one column in one row group. */
struct tune_parquet_column {
    const struct tune_parquet_node *node;
    const char *path;       /* of the file */
    int fd;
    struct tune_parquet_codecs *codecs; /* of the file */
    struct tune_parquet_memory *memory; /* of the file */
    char name[256];         /* "messages.content" */
    enum tune_parquet_codec codec;
    uint64_t offset, end;   /* the next page begins at offset; pages end before end */
    int64_t left;           /* entries of the column chunk that are not in an earlier page */
    int64_t page_left;      /* entries of the page, without the current one */
    bool have;              /* there is a current entry */
    int repetition, definition; /* of the current entry */
    struct tune_parquet_runs repetitions, definitions, indices;
    int encoding;           /* of the page: PLAIN, dictionary or RLE */
    struct tune_parquet_value plain; /* what is left of the page's values */
    int bit;                /* of the first byte of plain, for booleans */
    uint8_t *page, *raw, *dictionary;
    size_t page_capacity, raw_capacity, dictionary_capacity;
    int64_t entries;        /* of the dictionary; -1: none */
    uint32_t *offsets;       /* [entries] of texts: where they begin in the dictionary */
    size_t offsets_capacity;
};

struct tune_parquet_chunk {
    enum tune_parquet_codec codec;
    int64_t offset, values;
};

struct tune_parquet {
    char path[TUNE_PATH_MAX];
    int fd;
    uint64_t end;   /* where the footer begins */
    struct tune_parquet_codecs codecs;
    struct tune_parquet_memory memory;
    int64_t rows;
    struct tune_parquet_node *nodes; /* nodes[0] is the root */
    int node_count;
    struct tune_parquet_column *columns;
    int column_count;
    int64_t *group_rows; /* [group_count] */
    int group_count;
    struct tune_parquet_chunk *chunks; /* [group_count][column_count] */
    int group;      /* the one being read */
    int64_t row, group_row; /* rows that were given, of the file and of the group */
    bool broken;    /* a call failed */
    char *line;
    size_t size, capacity;
};

/* tune_parquet_damaged - -1 with an error: the column's data cannot be right.
 * tune_parquet_unread - -1 with an error: the column has what is not read, and how to go on.
 * tune_parquet_codecs_close - close the libraries that were opened.
 * tune_parquet_uncompress - size bytes at data into exactly want bytes of to. -1 with an error: not
 * of that size, or the codec's library is not on this machine (kind CANNOT). */
int tune_parquet_damaged(const struct tune_parquet_column *c, const char *what);
int tune_parquet_unread(const char *path, const char *column, const char *what);
void tune_parquet_codecs_close(struct tune_parquet_codecs *codecs);
int tune_parquet_uncompress(const struct tune_parquet_column *c, const void *data, size_t size,
                            void *to, size_t want);

/* tune_parquet_begin - go to the beginning of a column chunk.
 * tune_parquet_step - go to the next entry: c->have, its levels.
 * tune_parquet_take - the value of the current entry, which must be defined. Call it once.
 * tune_parquet_column_free - free its memory. */
int tune_parquet_begin(struct tune_parquet_column *c, const struct tune_parquet_chunk *chunk);
int tune_parquet_step(struct tune_parquet_column *c);
int tune_parquet_take(struct tune_parquet_column *c, struct tune_parquet_value *value);
void tune_parquet_column_free(struct tune_parquet_column *c);

#endif
