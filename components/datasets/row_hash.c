/* row_hash.c - what a row is known by: the hash of its content. */
#include <string.h>

#include "core/try.h"
#include "datasets/dataset_state.h"

#define WALKED ((size_t)16 << 20) /* bytes read before their pages are given back */

/* Hash one line after the other, without line ends. */
static uint64_t hash_lines(const char *p, size_t size, uint64_t hash)
{
    for (const char *end = p + size;;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *last = stop ? stop : end;
        hash = tune_hash64(p, (size_t)(last - p) - (last > p && last[-1] == '\r'), hash);
        if (!stop)
            return hash;
        p = stop + 1;
    }
}

uint64_t tune_rows_hash(const struct tune_rows *rows, const struct tune_file_row *row)
{
    uint64_t seed = rows->header.text ? hash_lines(rows->header.text, rows->header.size, 0) : 0;
    if (row->size > TUNE_ROW_LIMIT)
        return tune_hash64(&row->size, sizeof row->size, seed);
    return hash_lines(row->text, row->size, seed);
}

uint64_t tune_dataset_row_hash(const struct tune_dataset *d, int64_t row)
{
    int64_t own;
    if (d->sets) {
        int k = tune_dataset_set_of(d, row, &own);
        return tune_dataset_row_hash(d->sets[k], own);
    }
    if (d->get)
        return 0;
    if (d->chunks.count > 0)
        return d->chunks.hashes[row];
    int side;
    struct tune_file_row at = tune_rows_get(&d->rows, tune_dataset_file_row(d, row, &side));
    return tune_side_hash(tune_rows_hash(&d->rows, &at), side);
}

/* Rows of a file, in turn. */
static int hash_rows(const struct tune_rows *rows, int64_t first, int64_t count, uint64_t *hash)
{
    struct tune_row_place at;
    struct tune_file_row row;
    TRY(tune_rows_uncut(rows));
    tune_rows_seek(rows, first, &at);
    uint64_t released = at.offset;
    for (int64_t i = 0; i < count; i++) {
        tune_rows_next(rows, &at, &row);
        hash[i] = tune_rows_hash(rows, &row);
        if (at.offset - released > WALKED || i + 1 == count) {
            tune_file_release(rows->file.data + released, rows->file.data + at.offset);
            released = at.offset;
            TRY(tune_rows_uncut(rows));
        }
    }
    return 0;
}

/* Answers of parted pairs. */
static int hash_parts(const struct tune_dataset *d, int64_t first, int64_t count, uint64_t *hash)
{
    TRY(tune_rows_uncut(&d->rows));
    for (int64_t i = 0; i < count; i++)
        hash[i] = tune_dataset_row_hash(d, first + i);
    return tune_rows_uncut(&d->rows);
}

int tune_dataset_row_hashes(const struct tune_dataset *d, int64_t first, int64_t count, uint64_t *hash)
{
    while (d->sets && count > 0) {
        int64_t own;
        const struct tune_dataset *set = d->sets[tune_dataset_set_of(d, first, &own)];
        int64_t here = set->count - own < count ? set->count - own : count;
        TRY(tune_dataset_row_hashes(set, own, here, hash));
        first += here;
        count -= here;
        hash += here;
    }
    if (d->get)
        memset(hash, 0, (size_t)count * sizeof *hash);
    else if (d->chunks.count > 0)
        memcpy(hash, d->chunks.hashes + first, (size_t)count * sizeof *hash);
    else if (d->parted)
        return hash_parts(d, first, count, hash);
    else if (count > 0)
        return hash_rows(&d->rows, first, count, hash);
    return 0;
}
