/* lookup.h - a small table, such as a price list, that adds names to expressions.
 *
 *     gpu_model,usd_per_hour,watts
 *     NVIDIA-A100-80GB-PCIe,1.89,300
 *     NVIDIA-H100-PCIe,3.29,350
 *
 * It is a CSV file. Columns with names of inputs are its keys, here gpu_model. The other columns
 * are new names. An entity gets their values from the row with its keys, or None if there is no
 * such row. Cells are numbers, booleans or texts; an empty cell is None.
 *
 *     struct tune_lookup *prices = tune_lookup_read("prices.csv", names, count, &fits);
 *     ... expressions over names[count] and prices->names[prices->count]
 *     tune_lookup_values(prices, values, values + count);
 *     if (*tune_lookup_missed(prices, text, sizeof text))
 *         ... print text */
#ifndef TUNE_SPACES_LOOKUP_H
#define TUNE_SPACES_LOOKUP_H

#include "core/value.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_lookup {
    const char *const *names;   /* [count] the new names */
    int count;
};

/* tune_lookup_read - read a table for expressions over inputs[input_count]. NULL with an error
 * (file:line). *fits: false if its heading is the reason: no column is an input, or all are.
 * tune_lookup_free - free it; NULL is fine. */
struct tune_lookup *tune_lookup_read(const char *path, const char *const *inputs, int input_count,
                                     bool *fits);
void tune_lookup_free(struct tune_lookup *t);

/* tune_lookup_values - write the values of the new names into to[count]. The inputs are in the
 * order of tune_lookup_read. Returns false if no row has these keys. Texts belong to the table.
 * tune_lookup_missed - describe in text[size] the keys that had no row; "" if all had one. Returns
 * text. Example: "prices.csv has no row for 2 keys (gpu_model 'T4', ...), so usd_per_hour is None
 * there". */
bool tune_lookup_values(struct tune_lookup *t, const struct tune_value *inputs,
                        struct tune_value *to);
const char *tune_lookup_missed(const struct tune_lookup *t, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
