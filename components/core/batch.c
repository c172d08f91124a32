/* batch.c - make a batch from token ids. */
#include "core/batch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* As tune_batch_new, with at least T positions. */
static struct tune_batch *make(int B, int64_t T, const int32_t *lengths, const int32_t *ids, const int32_t *prompts)
{
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
    struct tune_batch *batch = B > 0 ? malloc(sizeof *batch + (size_t)(2 * N + 2 * B) * sizeof *ids) : NULL;
    if (!batch) {
        tune_error_set_kind(B > 0 ? TUNE_ERROR_CANNOT : TUNE_ERROR_FAILED, B > 0 ? "no memory for a batch" : "a batch of no rows");
        return NULL;
    }
    int32_t *row = (int32_t *)(batch + 1), *label = row + N, *length = label + N, *prompt = length + B;
    *batch = (struct tune_batch){.B = B, .T = (int)T, .ids = row, .labels = label, .lengths = length, .prompts = prompt};
    memcpy(length, lengths, (size_t)B * sizeof *length);
    for (int b = 0; b < B; b++)
        prompt[b] = prompts ? prompts[b] : 0;
    for (int b = 0; b < B; ids += length[b++], row += T, label += T)
        for (int64_t t = 0; t < T; t++) {
            bool labelled = t + 1 < length[b] && t + 1 >= prompt[b];
            row[t] = t < length[b] ? ids[t] : 0;
            label[t] = labelled ? ids[t + 1] : TUNE_NO_LABEL;
            batch->tokens += t < length[b];
            batch->label_count += labelled;
        }
    return batch;
}

struct tune_batch *tune_batch_new(int B, const int32_t *lengths, const int32_t *ids, const int32_t *prompts)
{
    return make(B, 0, lengths, ids, prompts);
}

/* Number of ids before the answer. */
static int32_t prompt_of(const struct tune_batch *batch, int b)
{
    int32_t t = 0;
    if (batch->prompts)
        return batch->prompts[b];
    while (t < batch->lengths[b] - 1 && batch->labels[(int64_t)b * batch->T + t] == TUNE_NO_LABEL)
        t++;
    return t + 1;
}

struct tune_batch *tune_batch_mismatched(const struct tune_batch *batch, int most, int multiple)
{
    int B = batch->B, T = batch->T;
    int32_t *lengths = malloc((size_t)B * (2 + 2 * (size_t)T) * sizeof *lengths), *prompts = lengths + B, *ids = prompts + B, *at = ids;
    int64_t longest = 0;
    if (!lengths) {
        tune_error_no_memory("a batch of mismatched answers");
        return NULL;
    }
    for (int b = 0; b < B; b++) {
        int other = (b + B - 1) % B, begin = prompt_of(batch, other);
        int64_t room = most - (prompts[b] = prompt_of(batch, b)), answer = batch->lengths[other] - begin;
        answer = answer < room ? answer : room;
        memcpy(at, batch->ids + (int64_t)b * T, (size_t)prompts[b] * sizeof *at);
        memcpy(at + prompts[b], batch->ids + (int64_t)other * T + begin, (size_t)answer * sizeof *at);
        lengths[b] = prompts[b] + (int32_t)answer;
        longest = lengths[b] > longest ? lengths[b] : longest;
        at += lengths[b];
    }
    if (multiple > 0)
        longest = (longest + multiple - 1) / multiple * multiple;
    struct tune_batch *made = make(B, longest < most ? longest : most, lengths, ids, prompts);
    free(lengths);
    return made;
}

void tune_batch_free(struct tune_batch *batch)
{
    free(batch);
}
