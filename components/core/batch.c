/* batch.c - make a batch from token ids. */
#include "core/batch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

struct tune_batch *tune_batch_new(int B, const int32_t *lengths, const int32_t *ids, const int32_t *prompts)
{
    int64_t T = 0;
    for (int b = 0; b < B; b++) {
        T = lengths[b] > T ? lengths[b] : T;
        if (lengths[b] < 1 || (prompts && prompts[b] < 0)) {
            tune_error_set("row %d of a batch: it has %d ids and a prompt of %d; expected at least 1 and 0", b, lengths[b],
                           prompts ? prompts[b] : 0);
            return NULL;
        }
    }
    int64_t N = B * T;
    if (N > INT32_MAX) {
        tune_error_set("a batch of %d rows of %lld positions: more than 2^31 - 1", B, (long long)T);
        return NULL;
    }
    struct tune_batch *batch = B > 0 ? malloc(sizeof *batch + (size_t)(2 * N + B) * sizeof *ids) : NULL;
    if (!batch) {
        tune_error_set_kind(B > 0 ? TUNE_ERROR_CANNOT : TUNE_ERROR_FAILED, B > 0 ? "no memory for a batch" : "a batch of no rows");
        return NULL;
    }
    int32_t *row = (int32_t *)(batch + 1), *label = row + N, *length = label + N;
    *batch = (struct tune_batch){.B = B, .T = (int)T, .ids = row, .labels = label, .lengths = length};
    memcpy(length, lengths, (size_t)B * sizeof *length);
    for (int b = 0; b < B; ids += length[b++], row += T, label += T)
        for (int64_t t = 0; t < T; t++) {
            bool labelled = t + 1 < length[b] && t + 1 >= (prompts ? prompts[b] : 0);
            row[t] = t < length[b] ? ids[t] : 0;
            label[t] = labelled ? ids[t + 1] : TUNE_NO_LABEL;
            batch->tokens += t < length[b];
            batch->label_count += labelled;
        }
    return batch;
}

void tune_batch_free(struct tune_batch *batch)
{
    free(batch);
}
