/* mix.h - the order of rows from several sets in given shares. Private to datasets.
 *
 * An epoch has the most rows that keep the shares while no row comes twice. One set is then read to
 * its end; the next epoch goes on where the others stopped. */
#ifndef TUNE_DATASETS_MIX_H
#define TUNE_DATASETS_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "datasets/dataset.h"

struct tune_mix {
    int count;         /* sets; 0: no mix */
    int64_t rows;      /* rows of an epoch */
    struct {
        int64_t first; /* its first row among the rows of all sets */
        int64_t rows;
        int64_t each;  /* rows in an epoch */
        int64_t begin; /* sum of `each` of the sets before it */
    } set[TUNE_DATASET_SETS];
};

/* tune_mix_plan - plan epochs of count sets with rows[count] rows. shares: "0.7,0.3", or any
 * numbers above 0; only their ratio counts. -1 with kind USAGE: another number of shares, or a
 * share of less than a row.
 * tune_mix_row - the row at this place of this epoch. Without shuffle, the rows of each set keep
 * their order, and sets take turns as evenly as their shares allow. */
int tune_mix_plan(struct tune_mix *mix, const char *shares, const int64_t *rows, int count);
int64_t tune_mix_row(const struct tune_mix *mix, uint64_t seed, bool shuffle, int64_t epoch,
                     int64_t place);

#endif
