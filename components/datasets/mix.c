/* mix.c - the order of rows from several sets in given shares. */
#include "datasets/mix.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/random.h"
#include "core/try.h"

/* Read count numbers above 0, parted by commas; then divide them by their sum. */
static int read_shares(const char *text, double *shares, int count)
{
    const char *at = text;
    double sum = 0;
    for (int k = 0; k < count; k++) {
        char *end;
        shares[k] = strtod(at, &end);
        if (end == at || !(shares[k] > 0 && shares[k] < 1e15) || *end != (k + 1 < count ? ',' : 0))
            return tune_error_usage("`mix` %s: expected %d numbers above 0 with commas between them, a share for each data set", text,
                                    count);
        sum += shares[k];
        at = end + 1;
    }
    for (int k = 0; k < count; k++)
        shares[k] /= sum;
    return 0;
}

int tune_mix_plan(struct tune_mix *mix, const char *text, const int64_t *rows, int count)
{
    double shares[TUNE_DATASET_SETS], all = INFINITY, rest[TUNE_DATASET_SETS];
    int64_t first = 0;
    *mix = (struct tune_mix){.count = count};
    if (count < 2)
        return tune_error_usage("`mix` %s: there is one data set; name several in `dataset`, with commas between them", text);
    TRY(read_shares(text, shares, count));
    for (int k = 0; k < count; k++)
        all = fmin(all, (double)rows[k] / shares[k]);
    all = floor(all * (1 + 1e-12)); /* 700 rows / 0.7 are 1000, though the quotient may be less */
    int64_t left = (int64_t)all;
    for (int k = 0; k < count; k++) {
        double each = floor(all * shares[k] * (1 + 1e-12));
        mix->set[k].first = first;
        mix->set[k].rows = rows[k];
        mix->set[k].each = (int64_t)each < rows[k] ? (int64_t)each : rows[k];
        rest[k] = all * shares[k] - each;
        left -= mix->set[k].each;
        first += rows[k];
    }
    for (; left > 0; left--) { /* the rows that rounding left go to the largest remainders */
        int best = 0;
        for (int k = 1; k < count; k++)
            if (rest[k] > rest[best])
                best = k;
        mix->set[best].each++;
        rest[best] = -1;
    }
    for (int k = 0; k < count; k++) {
        mix->set[k].begin = mix->rows;
        mix->rows += mix->set[k].each;
        if (mix->set[k].each < 1)
            return tune_error_usage("`mix` %s: the share of data set %d is less than a row of an epoch of %.0f; give it a larger one",
                                    text, k + 1, all);
    }
    return 0;
}

/* The place of row i of set k in an epoch that is not shuffled. Row i stands at (i + 1/2) / each of
 * the epoch, and the earlier set goes first where two stand at the same point. */
static int64_t place_of(const struct tune_mix *mix, int k, int64_t i)
{
    int64_t place = i;
    for (int l = 0; l < mix->count; l++) {
        if (l == k)
            continue;
        __extension__ unsigned __int128 point = (unsigned __int128)(uint64_t)(2 * i + 1) * (uint64_t)mix->set[l].each;
        place += (int64_t)(((point - (l > k)) / (uint64_t)mix->set[k].each + 1) / 2);
    }
    return place;
}

/* The set and its row at a place of an epoch that is not shuffled. */
static int unshuffled(const struct tune_mix *mix, int64_t place, int64_t *row)
{
    for (int k = 0; k < mix->count; k++) {
        int64_t low = 0, high = mix->set[k].each;
        while (high - low > 1) { /* the last row whose place is not behind this one */
            int64_t middle = low + (high - low) / 2;
            if (place_of(mix, k, middle) <= place)
                low = middle;
            else
                high = middle;
        }
        *row = low;
        if (place_of(mix, k, low) == place)
            return k;
    }
    return 0;
}

int64_t tune_mix_row(const struct tune_mix *mix, uint64_t seed, bool shuffle, int64_t epoch, int64_t place)
{
    int64_t row = 0;
    int k = 0;
    if (shuffle) {
        place = (int64_t)tune_random_permute(seed, (uint64_t)epoch, (uint64_t)mix->rows, (uint64_t)place);
        while (k + 1 < mix->count && place >= mix->set[k + 1].begin)
            k++;
        row = place - mix->set[k].begin;
    } else {
        k = unshuffled(mix, place, &row);
    }
    int64_t rows = mix->set[k].rows, drawn = epoch * mix->set[k].each + row; /* the set's rows drawn so far */
    row = drawn % rows;
    if (shuffle) /* a stream of its own for each set and each pass over it */
        row = (int64_t)tune_random_permute(seed + 0x9e3779b97f4a7c15u * (uint64_t)(k + 1), (uint64_t)(drawn / rows), (uint64_t)rows,
                                           (uint64_t)row);
    return mix->set[k].first + row;
}
