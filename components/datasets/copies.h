/* copies.h - rows that are copies of other rows, by the hash of their content
 * (tune_dataset_row_hash). */
#ifndef TUNE_DATASETS_COPIES_H
#define TUNE_DATASETS_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_loader;

#define TUNE_COPIES_ROWS ((int64_t)4 << 20) /* most rows whose hashes are kept, 17 bytes each */

/* Rows to evaluate on that are copies of rows to train on. */
struct tune_copies {
    int64_t rows, copies; /* rows to evaluate on; the copies among them */
    int64_t first;        /* the first copy, a row of the set to evaluate on; -1: none */
    /* rows of sets that are written unlike all sets to train on, so that no copy would be seen */
    int64_t unlike;
    bool uncounted;       /* there are more than TUNE_COPIES_ROWS rows to evaluate on */
};

/* tune_copies_count - compare what count loaders of one set evaluate on with the rows of train. A
 * loader reads one of joined sets, or the whole set. If train is the set itself, its rows outside
 * the loaders' parts are trained on. Two sets are written alike if both are JSON, both text, or
 * both parted into pieces. CSV and TSV must have the same header. Parquet counts as JSON. -1 with
 * an error.
 * tune_copies_distinct - sort count hashes; the number of different ones. */
int tune_copies_count(struct tune_copies *c, struct tune_dataset *train,
                      const struct tune_loader *const *held_out, int count);
int64_t tune_copies_distinct(uint64_t *hashes, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
