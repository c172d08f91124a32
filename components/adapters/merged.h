/* merged.h - a model folder, with or without an adapter merged into it, as one table and a source
 * of numbers. It needs no device and keeps one piece of one tensor.
 *
 *     struct tune_merged_model m;
 *     tune_merged_open(&m, "models/SmolLM2-135M", "runs/a/checkpoint-final",
 *                      TUNE_MERGED_AS_TRAINED);
 *     struct tune_weights_source numbers = tune_merged_source(&m);
 *     ... numbers.read(numbers.context, &m.table.at[i], 0, n, out) ...
 *     tune_merged_close(&m); */
#ifndef TUNE_ADAPTERS_MERGED_H
#define TUNE_ADAPTERS_MERGED_H

#include "adapters/adapter_file.h"
#include "files/file.h"
#include "models/weights.h"

/* How the base's numbers are rounded before the adapter is merged. AS_TRAINED: as the adapter's
 * file says, else as they are read. BF16: all matrices. NF4: the matrices of linear layers, others
 * as BF16. */
enum tune_merged_base {
    TUNE_MERGED_AS_TRAINED, TUNE_MERGED_AS_READ, TUNE_MERGED_BF16, TUNE_MERGED_NF4
};

struct tune_merged_model {
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config; /* of the merged model */
    struct tune_parameters table;    /* of the merged model */
    struct tune_weights *base;
    struct tune_adapter_file *adapter; /* NULL: none */
    enum tune_merged_base rounding;  /* never AS_TRAINED after open */
    bool base_tied;
    bool untied; /* the base's weights are tied, the merged ones are not */
    bool grown;  /* the adapter's modules have more rows of the vocabulary than the base */
    int modules; /* modules with an adapter */
    struct tune_nf4 nf4; /* a matrix of the base, in its own memory */
    void *nf4_memory;
    const struct tune_parameter *nf4_of; /* NULL: none yet */
};

/* tune_merged_open - open a model's folder, and an adapter's unless NULL, and check that they
 * belong together. -1 with an error; close m then, too. Its kind is USAGE if the adapter is the
 * fault.
 * tune_merged_close - close them.
 * tune_merged_base_source - the base's numbers, rounded.
 * tune_merged_source - the merged ones. */
int tune_merged_open(struct tune_merged_model *m, const char *folder, const char *adapter,
                     enum tune_merged_base rounding);
void tune_merged_close(struct tune_merged_model *m);
struct tune_weights_source tune_merged_base_source(struct tune_merged_model *m);
struct tune_weights_source tune_merged_source(struct tune_merged_model *m);

#endif
