/* map.h - a hash table from keys of 128 bits to numbers.
 *
 *     int64_t *count = tune_map_add(&map, key);
 *     if (!count)
 *         return no_memory();
 *     ++*count; */
#ifndef TUNE_CORE_MAP_H
#define TUNE_CORE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct tune_map {
    struct tune_map_entry { uint64_t key[2]; int64_t value; } *at; /* [capacity] value 0: free */
    size_t count, capacity;                                        /* capacity: a power of two */
};

/* tune_map_add - the value of key, which is 0 if the key is new: the caller must then set another
 * one. Valid until the next call. NULL: no memory; no error is set.
 * tune_map_get - the value of key; 0: there is none.
 * tune_map_free - free it; it is empty then. */
int64_t *tune_map_add(struct tune_map *m, const uint64_t key[2]);
int64_t tune_map_get(const struct tune_map *m, const uint64_t key[2]);
void tune_map_free(struct tune_map *m);

#endif
