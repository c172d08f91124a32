/* arena.h - divide one block of device memory into pieces. The same code runs twice: first with
 * base 0 to compute the size of the block, then with the block to get the addresses. */
#ifndef TUNE_CORE_ARENA_H
#define TUNE_CORE_ARENA_H

#include "core/tensor.h"

struct tune_arena {
    tune_address base; /* 0: compute the size only */
    int64_t used;      /* bytes; INT64_MAX if they exceed 64 bits, which no allocation grants */
};

/* tune_arena_take - the next piece: count elements of size bytes, aligned to 64 bytes. Address 0
 * while computing the size, and for a piece of 0 bytes. */
static inline tune_address tune_arena_take(struct tune_arena *a, int64_t count, int64_t size)
{
    int64_t bytes, end;
    if (count == 0 || size == 0)
        return (tune_address){0};
    tune_address piece = tune_address_plus(a->base, a->used);
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(a->used, bytes, &end) || end > INT64_MAX - 63)
        a->used = INT64_MAX;
    else
        a->used = (end + 63) / 64 * 64;
    return piece;
}

#endif
