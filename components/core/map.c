/* map.c - open addressing, at most half full. */
#include "core/map.h"

#include <stdlib.h>

/* The key's entry, or the free one it belongs into. */
static struct tune_map_entry *find(const struct tune_map *m, const uint64_t key[2])
{
    uint64_t hash = (key[0] ^ (key[1] << 32 | key[1] >> 32)) * 0x9e3779b97f4a7c15u;
    size_t i = (hash >> 32) & (m->capacity - 1);
    while (m->at[i].value && (m->at[i].key[0] != key[0] || m->at[i].key[1] != key[1]))
        i = (i + 1) & (m->capacity - 1);
    return &m->at[i];
}

int64_t *tune_map_add(struct tune_map *m, const uint64_t key[2])
{
    if (m->count * 2 >= m->capacity) {
        struct tune_map larger = {.count = m->count, .capacity = m->capacity ? m->capacity * 2 : 256};
        if (!(larger.at = calloc(larger.capacity, sizeof *larger.at)))
            return NULL;
        for (size_t i = 0; i < m->capacity; i++)
            if (m->at[i].value)
                *find(&larger, m->at[i].key) = m->at[i];
        free(m->at);
        *m = larger;
    }
    struct tune_map_entry *e = find(m, key);
    if (!e->value) {
        *e = (struct tune_map_entry){{key[0], key[1]}, 0};
        m->count++;
    }
    return &e->value;
}

int64_t tune_map_get(const struct tune_map *m, const uint64_t key[2])
{
    return m->capacity ? find(m, key)->value : 0;
}

void tune_map_free(struct tune_map *m)
{
    free(m->at);
    *m = (struct tune_map){0};
}
