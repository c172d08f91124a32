/* pool.h - memory in pieces that are freed all at once. */
#ifndef TUNE_CORE_POOL_H
#define TUNE_CORE_POOL_H

#include <stddef.h>

struct tune_pool;

/* tune_pool_take - size zeroed bytes, aligned for anything, until the pool is freed. *pool: NULL at
 * first. NULL: no memory; no error is set.
 * tune_pool_text - a copy of length bytes of a text, with a NUL behind.
 * tune_pool_free - free all pieces; NULL is fine. */
void *tune_pool_take(struct tune_pool **pool, size_t size);
char *tune_pool_text(struct tune_pool **pool, const char *text, size_t length);
void tune_pool_free(struct tune_pool *pool);

#endif
