/* cache.h - keys and values of the tokens so far, so that each new token costs one position.
 *
 *     struct tune_cache *c = tune_cache_new(model, 1, 512);
 *     tune_cache_begin(c, 1, NULL);
 *     tune_cache_forward(c, prompt, n);                 the prompt, all at once
 *     for (int i = 0; i < 100; i++) {
 *         float *logits;
 *         int32_t next;
 *         tune_cache_logits(c, &logits);                [1,V] of the last position
 *         ... next = the token to go on with ...
 *         tune_cache_forward(c, &next, 1);
 *     }
 *     tune_cache_free(c);
 *
 * Several caches may stand on one model. A batch of rows is padded on the left, so that all rows
 * end at the same place:
 *
 *     pad 2    . . a b c      each row sees only its own tokens; its first one has position 0
 *     pad 0    d e f g h
 *
 * Below: V vocabulary, K key/value heads, D head width. */
#ifndef TUNE_CACHE_H
#define TUNE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_cache;

/* tune_cache_new - a cache of up to B rows of up to capacity tokens on m, which must be reserved.
 * Keys and values have the dtype of m's activations. It allocates everything now:
 * tune_cache_bytes. NULL with an error: capacity above the model's context, or no memory.
 * tune_cache_free - free it before its model; NULL is fine.
 * tune_cache_bytes - the bytes that it takes of the device, for a model with activations of that
 * dtype and room for `tokens` tokens in a batch. */
struct tune_cache *tune_cache_new(struct tune_model *m, int B, int capacity);
void tune_cache_free(struct tune_cache *c);
int64_t tune_cache_bytes(const struct tune_model_config *config, enum tune_dtype activations, int B,
                         int capacity, int64_t tokens);

/* tune_cache_begin - empty it, for so many rows. pads [rows]: positions of padding at the start of
 * each row; NULL: none. -1 with an error: more rows than it has, or a negative pad.
 * tune_cache_forward - the next T tokens of each row: ids [rows,T]; those at padding are not read
 * by others. Long prompts go through the model in pieces of what it was reserved for. It runs
 * without dropout and noise, and no backward may follow. -1 with an error: an id outside the
 * vocabulary, or more tokens than the capacity; the cache is then as before.
 * tune_cache_stop - while *signal is not 0, tune_cache_forward stops before its next layer and
 * returns 1; the cache is then as before. NULL: nothing stops it, which is the default.
 * tune_cache_logits - logits [rows,V] F32 of each row's last position, scaled and ready for a
 * softmax. Waits for the device. *host_logits is memory of the cache on the host, which the caller
 * may change. It is valid until the next call. Call it after tune_cache_forward, with nothing in
 * between that runs the model.
 * tune_cache_logits_of - the same at other positions of the last tune_cache_forward: at [count],
 * each row * T + t, at most as many as the cache has rows. The T tokens must have gone through the
 * model in one piece. logits [count,V]. */
int tune_cache_begin(struct tune_cache *c, int rows, const int32_t *pads);
int tune_cache_forward(struct tune_cache *c, const int32_t *ids, int T);
void tune_cache_stop(struct tune_cache *c, const volatile int *signal);
int tune_cache_logits(struct tune_cache *c, float **host_logits);
int tune_cache_logits_of(struct tune_cache *c, const int32_t *at, int count, float **host_logits);

/* tune_cache_base - from the next token on, compute with the base alone, without adapters.
 * tune_cache_cut - forget all but the first `length` positions. More than it has: nothing changes.
 * tune_cache_trim - row b keeps its first lengths[b] positions, for texts that were padded on the
 * right. Rows then have different lengths, and each goes on behind its own. -1 with an error: more
 * than a row has.
 * tune_cache_keep - keep only these rows, in this order: which [count], ascending. The others make
 * room.
 * tune_cache_spread - row i becomes a copy of row which[i], for i below count: one text goes on in
 * several ways. which is ascending, with repeats, and which[i] is at most i.
 * tune_cache_share - go on with a text that begins like the one row in it. The cache is cut to what
 * both begin with. Returns that length. It is below n, so that there is a token to go on with.
 * 0: nothing is shared; the cache is then empty, for one row. The model's weights must be as they
 * were.
 * tune_cache_model - the model that it stands on.
 * tune_cache_length - positions in its longest row, padding included.
 * tune_cache_capacity - positions that it has room for. */
void tune_cache_base(struct tune_cache *c, bool base);
void tune_cache_cut(struct tune_cache *c, int length);
int tune_cache_trim(struct tune_cache *c, const int *lengths);
int tune_cache_keep(struct tune_cache *c, const int *which, int count);
int tune_cache_spread(struct tune_cache *c, const int *which, int count);
int tune_cache_share(struct tune_cache *c, const int32_t *ids, int n);
struct tune_model *tune_cache_model(const struct tune_cache *c);
int tune_cache_length(const struct tune_cache *c);

#ifdef __cplusplus
}
#endif
#endif
