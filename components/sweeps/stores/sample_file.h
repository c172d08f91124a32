/* sample_file.h - one HDF5 file of a store: build it in memory, and read its structure. Only these
 * files use HDF5.
 *
 * A file is small and is replaced as a whole. HDF5's core driver builds it in memory, and it is
 * written like any other file. So a full disk is an error of write(); the library would not recover
 * from it. For reading, the library finds the tables, their columns, and the offsets of their rows.
 * Complete rows are then read from these offsets, and columns are extracted here. This is faster
 * than the library's conversion. It also does not fill the library's table of conversions, which
 * grows with each new pair of types.
 *
 *     /measurements/<experiment>   chunked compound datasets: TEXT fixed UTF-8 strings, a NUL
 *                                  behind, WHOLE int64, NUMBER float64, little-endian; `reason`
 *                                  int64. Attributes: H5TB's (CLASS, VERSION, TITLE, FIELD_n_NAME)
 *                                  and units, roles, whole, one element per column
 *     /requests                    the same
 *     /reasons                     fixed strings, the first one empty; `reason` is an index
 *
 * Each chunk of rows has two checksums. HDF5's Fletcher-32 (the filter fletcher32) is for other
 * readers. It does not detect a word 0x0000 that becomes 0xffff, and rows have many zeros. So the
 * attribute row_hashes has a 64-bit hash for each chunk. HDF5 protects the attribute by its own
 * checksum. The hashes are checked whenever rows are read. Files without them are checked by
 * Fletcher-32, if they have it. Older files have neither, and are read unchecked. A program that
 * edits rows in a file must delete row_hashes. */
#ifndef TUNE_STORES_SAMPLE_FILE_H
#define TUNE_STORES_SAMPLE_FILE_H

#include "sweeps/stores/store.h"

#define TUNE_SAMPLE_PIECE_BYTES (32 << 10) /* bytes of rows under one checksum */
/* uint64 [pieces]: tune_hash64, seed 0, of a piece's rows */
#define TUNE_SAMPLE_HASHES "row_hashes"

/* The name of a table in messages; NULL: the requests. */
static inline const char *tune_sample_title(const char *experiment)
{
    return experiment ? experiment : TUNE_STORE_REQUESTS;
}

/* A table to be written. */
struct tune_sample_rows {
    const char *name;               /* name of its experiment; NULL: the requests */
    const struct tune_column *columns;
    int column_count;
    struct tune_cell *const *rows;  /* [row_count][column_count] */
    int row_count;
};

/* tune_sample_image - build a file with these tables; the caller frees *image. -1 with an error: no
 * memory, or too many columns for HDF5 (64 KiB for all descriptions). */
int tune_sample_image(const struct tune_sample_rows *tables, int count, char **image, size_t *size);

/* Location of rows in a file: pieces of piece_rows, one after another. */
struct tune_sample_extent {
    int64_t rows, row_bytes, piece_rows;
    uint64_t *pieces; /* offsets; the last piece has space for piece_rows too */
    bool fletcher;    /* each piece has its Fletcher-32 behind it */
    uint64_t *hashes; /* hashes of the pieces' rows, or NULL */
};

struct tune_sample_column {
    struct tune_column column; /* as the store shows it; name and unit belong to the file */
    bool reason;               /* shown as text, stored as int64 */
    int64_t offset;            /* offset in the row */
    int size;                  /* bytes */
};

struct tune_sample_table {
    char *name; /* name of its experiment; NULL: the requests */
    struct tune_sample_extent at;
    struct tune_sample_column *columns;
    int column_count;
};

struct tune_sample_file {
    struct tune_sample_table *tables;
    int table_count;
    struct tune_sample_extent reasons; /* rows 0: none */
    int users;                         /* number of users that share the structure */
};

/* tune_sample_open - read the structure of a file. *fd: a descriptor to read rows from; the caller
 * closes it. Everything in the file's headers is checked, so every row is inside the file. NULL
 * with an error: not an HDF5 file, a newer schema, or a table with another layout. */
struct tune_sample_file *tune_sample_open(const char *path, int *fd);
void tune_sample_free(struct tune_sample_file *f);

/* Consecutive rows in memory. */
struct tune_sample_block {
    int64_t first, rows;
    char *data; /* [rows][row_bytes] */
    size_t capacity;
};

/* tune_sample_load - load `row` into the block, with about `bytes` of rows around it, unless it is
 * loaded. table: for messages. -1 with an error, and an empty block: wrong checksum ("damaged"), a
 * file that became shorter, or no memory.
 * tune_sample_checked - true if checksums cover every row of the file. */
int tune_sample_load(int fd, const char *path, const char *table,
                     const struct tune_sample_extent *at, int64_t row, int64_t bytes,
                     struct tune_sample_block *block);
bool tune_sample_checked(const struct tune_sample_file *f);

/* tune_sample_table - find the table with this name (NULL: the requests), or NULL. */
const struct tune_sample_table *tune_sample_table(const struct tune_sample_file *f,
                                                  const char *name);

#endif
