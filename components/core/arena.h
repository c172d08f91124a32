/* arena.h - one block of device memory in pieces: the same code runs twice, first with base 0 to
 * add up how large the block has to be, then with the block to find the places in it. */
#ifndef TUNE_CORE_ARENA_H
#define TUNE_CORE_ARENA_H

#include "core/tensor.h"

struct tune_arena {
    tune_address base; /* 0: only add up */
    /* bytes; INT64_MAX, which no allocation grants, where they do not fit 64 bits */
    int64_t used;
};

/* tune_arena_take - count elements of size bytes, on 64 bytes as base is; address 0 while adding
 * up. */
static inline tune_address tune_arena_take(struct tune_arena *a, int64_t count, int64_t size)
{
    int64_t bytes, end;
    tune_address piece = tune_address_plus(a->base, a->used);
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(a->used, bytes,
                                                                              &end) || end > INT64_MAX - 63)
        a->used = INT64_MAX;
    else
        a->used = (end + 63) / 64 * 64;
    return piece;
}

#endif
