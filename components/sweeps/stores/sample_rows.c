/* sample_rows.c - read rows of a sample file, and check their checksums, without the HDF5 library
 * (see sample_file.h). */
#include <stdlib.h>

#include "core/try.h"
#include "sweeps/stores/store_parts.h"

enum { SUM_BYTES = 4 };

static bool is_checked(const struct tune_sample_extent *at)
{
    return at->rows == 0 || at->hashes || at->fletcher;
}

bool tune_sample_checked(const struct tune_sample_file *f)
{
    bool checked = is_checked(&f->reasons);
    for (int i = 0; i < f->table_count; i++)
        checked = checked && is_checked(&f->tables[i].at);
    return checked;
}

/* Fold a sum of 16-bit words, with carries added at the low end. It is 0 only if all words are
 * 0. */
static uint32_t fold(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)sum;
}

/* Fletcher-32 as HDF5 has it: words are big-endian, an odd byte counts as a high one, both sums begin at 0.
 * Source: HDF5 File Format Specification 3.0, H5_checksum_fletcher32. */
static uint32_t fletcher32(const unsigned char *data, size_t size)
{
    enum { STRETCH = 256 }; /* for 256 words the second sum fits 32 bits: 256 * 257 / 2 * 65535 */
    uint64_t one = 0, two = 0;
    size_t words = size / 2;
    while (words > 0) {
        uint32_t n = (uint32_t)(words < STRETCH ? words : STRETCH), a = 0, b = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t word = (uint32_t)data[2 * i] << 8 | data[2 * i + 1];
            a += word;
            b += (n - i) * word;
        }
        two = fold(two + n * one + b);
        one = fold(one + a);
        data += 2 * n;
        words -= n;
    }
    if (size % 2) {
        one = fold(one + ((uint64_t)*data << 8));
        two = fold(two + one);
    }
    return (uint32_t)(two << 16 | one);
}

/* True if a piece matches the Fletcher-32 after it. The sum 0 means that the piece is all zeros.
 * Rows are never all zeros, so this part of the file was wiped. */
static bool matches_fletcher(const char *data, size_t bytes)
{
    const unsigned char *sum = (const unsigned char *)data + bytes;
    uint32_t stored = (uint32_t)sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 | (uint32_t)sum[3] << 24;
    return stored != 0 && stored == fletcher32((const unsigned char *)data, bytes);
}

/* The open file, and its name in messages. */
struct source {
    int fd;
    const char *path, *table;
    const struct tune_sample_extent *at;
};

static int damaged(const struct source *s, int64_t first, int64_t count)
{
    return tune_error_set("%s: the file is damaged: table %s: its rows %lld to %lld do not match "
                          "their checksum; replace the file by a copy, or move it out of the store",
                          s->path, s->table, (long long)first,
                          (long long)(first + count - 1));
}

/* Read rows first to first + count - 1 into data, in whole pieces except perhaps the last one. data
 * has space for the rest of the last piece and a checksum. */
static int read_checked(const struct source *s, int64_t first, int64_t count, char *data)
{
    const struct tune_sample_extent *at = s->at;
    for (int64_t n; count > 0; first += n, count -= n, data += n * at->row_bytes) {
        int64_t i = first / at->piece_rows;
        n = count < at->piece_rows ? count : at->piece_rows;
        size_t rows = (size_t)(n * at->row_bytes), bytes = (size_t)(at->piece_rows * at->row_bytes);
        TRY(tune_file_read_at(s->fd, s->path, at->pieces[i], data, at->hashes ? rows : bytes + SUM_BYTES));
        if (at->hashes ? tune_hash64(data, rows, 0) != at->hashes[i] : !matches_fletcher(data, bytes))
            return damaged(s, first, n);
    }
    return 0;
}

/* Read rows without checksums. */
static int read_plain(const struct source *s, int64_t first, int64_t count, char *data)
{
    const struct tune_sample_extent *at = s->at;
    for (int64_t n; count > 0; first += n, count -= n, data += n * at->row_bytes) {
        int64_t inside = first % at->piece_rows;
        n = count < at->piece_rows - inside ? count : at->piece_rows - inside;
        uint64_t from = at->pieces[first / at->piece_rows] + (uint64_t)(inside * at->row_bytes);
        TRY(tune_file_read_at(s->fd, s->path, from, data, (size_t)(n * at->row_bytes)));
    }
    return 0;
}

int tune_sample_load(int fd, const char *path, const char *table, const struct tune_sample_extent *at, int64_t row, int64_t bytes,
                     struct tune_sample_block *block)
{
    const struct source source = {fd, path, table, at};
    if (row >= block->first && row < block->first + block->rows)
        return 0;
    /* the requested number of rows, in whole pieces */
    int64_t unit = is_checked(at) ? at->piece_rows : 1, most = bytes / at->row_bytes / unit * unit;
    most = most > 0 ? most : unit;
    int64_t first = row - row % most, rows = most < at->rows - first ? most : at->rows - first;
    size_t size = (size_t)((rows + unit - 1) / unit * unit * at->row_bytes) + SUM_BYTES;
    if (size > block->capacity) {
        char *data = realloc(block->data, size);
        if (!data)
            return tune_store_no_memory("a block of rows");
        block->data = data;
        block->capacity = size;
    }
    block->rows = 0;
    TRY(is_checked(at) ? read_checked(&source, first, rows, block->data) : read_plain(&source, first, rows, block->data));
    block->first = first;
    block->rows = rows;
    return 0;
}
