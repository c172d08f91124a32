/* pool.c - pieces of chunks; a large one has a chunk of its own. */
#include "core/pool.h"

#include <stdlib.h>
#include <string.h>

struct tune_pool {
    struct tune_pool *before;
    size_t used, size;
    _Alignas(max_align_t) char data[];
};

void *tune_pool_take(struct tune_pool **pool, size_t size)
{
    enum { LEAST = 1 << 16 };
    const size_t align = _Alignof(max_align_t), limit = (size_t)1 << 40;
    size_t rounded = size < limit ? (size + align - 1) / align * align : limit;
    struct tune_pool *p = *pool;
    if (!p || p->size - p->used < rounded) {
        size_t capacity = rounded < LEAST ? LEAST : rounded;
        if (rounded == limit || !(p = calloc(1, sizeof *p + capacity)))
            return NULL;
        p->size = capacity;
        p->before = *pool;
        *pool = p;
    }
    p->used += rounded;
    return p->data + p->used - rounded;
}

char *tune_pool_text(struct tune_pool **pool, const char *text, size_t length)
{
    char *copy = tune_pool_take(pool, length + 1);
    return copy ? memcpy(copy, text, length) : NULL;
}

void tune_pool_free(struct tune_pool *pool)
{
    for (struct tune_pool *before; pool; pool = before) {
        before = pool->before;
        free(pool);
    }
}
