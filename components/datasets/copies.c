/* copies.c - count rows that are copies of other rows. */
#include "datasets/copies.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "datasets/dataset_state.h"
#include "datasets/loading.h"

enum { BLOCK = 256 }; /* rows that are hashed at a time */

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int64_t tune_copies_distinct(uint64_t *hashes, int64_t count)
{
    int64_t distinct = count > 0;
    qsort(hashes, (size_t)count, sizeof *hashes, compare_hashes);
    for (int64_t i = 1; i < count; i++)
        distinct += hashes[i] != hashes[i - 1];
    return distinct;
}

/* How the rows of a set are written. Rows of two sets can be copies if this is equal. 0: as
 * callbacks make them. */
static uint64_t writing_of(const struct tune_dataset *set)
{
    const struct tune_file_row *header = &set->rows.header;
    if (set->get)
        return 0;
    if (set->chunks.count > 0)
        return 1;
    if (header->text)
        return tune_rows_hash(&set->rows, header);
    return set->rows.format == TUNE_DATASET_TEXT ? 2 : 3;
}

static bool written_alike(struct tune_dataset *train, const struct tune_dataset *set)
{
    bool alike = false;
    for (int k = 0; k < tune_dataset_sets(train); k++)
        alike = alike || (writing_of(set) && writing_of(tune_dataset_set(train, k)) == writing_of(set));
    return alike;
}

/* The rows to evaluate on, in the order of the loaders. */
struct sought {
    uint64_t *hash;   /* [count] */
    uint64_t *sorted; /* [count] the same, ascending */
    bool *found;      /* [count] which of sorted is trained on; of equal ones the first */
    int64_t count;
};

/* The first place of a hash among the sorted; -1: it is not sought. */
static int64_t place_of(const struct sought *s, uint64_t hash)
{
    int64_t low = 0, high = s->count; /* find the first that is not less */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->sorted[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->sorted[low] == hash ? low : -1;
}

static int64_t row_at(const struct tune_loader *load, int64_t place)
{
    return tune_loader_row(load, place / load->rows, place % load->rows);
}

/* Hash what a loader evaluates on. In order, rows are read by blocks. */
static int gather(const struct tune_loader *load, uint64_t *hash)
{
    uint64_t block[BLOCK];
    int64_t begin = -1;
    for (int64_t i = 0; i < load->total; i++) {
        int64_t row = row_at(load, i);
        if (load->o.shuffle) {
            hash[i] = tune_dataset_row_hash(load->data, row);
            continue;
        }
        if (begin != row / BLOCK * BLOCK) {
            begin = row / BLOCK * BLOCK;
            TRY(tune_dataset_row_hashes(load->data, begin, tune_smaller(BLOCK, load->data->count - begin), block));
        }
        hash[i] = block[row - begin];
    }
    return 0;
}

/* Mark those of the sought rows that train has. */
static int find(struct sought *s, const struct tune_dataset *train, const struct tune_loader *const *held_out, int count)
{
    uint64_t hash[BLOCK];
    bool one_set = held_out[0]->data == train;
    for (int64_t first = 0; first < train->count; first += BLOCK) {
        int64_t rows = tune_smaller(BLOCK, train->count - first);
        TRY(tune_dataset_row_hashes(train, first, rows, hash));
        for (int64_t i = 0; i < rows; i++) {
            bool held = false;
            for (int k = 0; one_set && k < count; k++)
                held = held || tune_loader_has(held_out[k], first + i);
            int64_t at = held || !hash[i] ? -1 : place_of(s, hash[i]);
            if (at >= 0)
                s->found[at] = true;
        }
    }
    return 0;
}

/* Gather what the loaders evaluate on, find it, and count. */
static int count_found(struct tune_copies *c, struct sought *s, const struct tune_dataset *train,
                       const struct tune_loader *const *held_out, int count)
{
    int64_t n = 0;
    TRY(tune_dataset_whole(held_out[0]->data));
    for (int k = 0; k < count; n += held_out[k++]->total)
        TRY(gather(held_out[k], s->hash + n));
    memcpy(s->sorted, s->hash, (size_t)n * sizeof *s->hash);
    tune_copies_distinct(s->sorted, n);
    TRY(find(s, train, held_out, count));
    n = 0;
    for (int k = 0; k < count; k++)
        for (int64_t i = 0; i < held_out[k]->total; i++) {
            int64_t at = place_of(s, s->hash[n++]);
            if (!s->found[at])
                continue;
            c->first = c->copies == 0 ? row_at(held_out[k], i) : c->first;
            c->copies++;
        }
    return 0;
}

int tune_copies_count(struct tune_copies *c, struct tune_dataset *train, const struct tune_loader *const *held_out, int count)
{
    int64_t own;
    *c = (struct tune_copies){.first = -1};
    for (int k = 0; k < count; k++) {
        struct tune_dataset *data = held_out[k]->data;
        int set = tune_dataset_set_of(data, tune_loader_row(held_out[k], 0, 0), &own);
        c->rows += held_out[k]->total;
        c->unlike += written_alike(train, tune_dataset_set(data, set)) ? 0 : held_out[k]->total;
    }
    c->uncounted = c->rows > TUNE_COPIES_ROWS;
    if (c->rows == c->unlike || c->uncounted)
        return 0;
    size_t n = (size_t)c->rows;
    struct sought s = {malloc(n * sizeof *s.hash), malloc(n * sizeof *s.sorted), calloc(n, sizeof *s.found), c->rows};
    int status = s.hash && s.sorted && s.found ? count_found(c, &s, train, held_out, count)
                                               : tune_error_no_memory("the hashes of %lld rows", (long long)c->rows);
    free(s.hash);
    free(s.sorted);
    free(s.found);
    return status;
}
