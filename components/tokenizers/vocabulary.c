/* vocabulary.c - tables from spelling to id and from pair of ids to merge, and tables derived from
 * them. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "files/file.h"
#include "tokenizers/parts.h"

uint32_t tune_byte_char(int byte)
{
    /* GPT-2's map: printable bytes are themselves, the other 68 are U+0100 and on, in ascending
     * order. */
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174)
        return (uint32_t)byte;
    if (byte <= 32)
        return 0x100 + (uint32_t)byte;
    return byte <= 160 ? 0x121 + (uint32_t)(byte - 127) : 0x143;
}

int tune_char_byte(uint32_t c)
{
    if (c < 0x100)
        return tune_byte_char((int)c) == c ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121) + 127;
    return c == 0x143 ? 173 : -1;
}

static uint64_t power_above(uint64_t n)
{
    uint64_t p = 16;
    while (p < n)
        p *= 2;
    return p;
}

int32_t tune_vocab_find(const struct tune_tokenizer *t, const char *text, size_t size)
{
    if (size > t->longest)
        return -1;
    for (uint64_t i = tune_hash64(text, size, t->seed);; i++) {
        int32_t id = t->slots[i & t->slot_mask];
        if (id < 0)
            return -1;
        if (t->vocab[id].size == size && memcmp(t->vocab[id].data, text, size) == 0)
            return id;
    }
}

int tune_vocab_index(struct tune_tokenizer *t)
{
    uint64_t room = power_above((uint64_t)t->vocab_count * 2 + 1);
    t->slots = tune_zeroed(room, sizeof *t->slots, "the vocabulary's index");
    if (!t->slots)
        return -1;
    memset(t->slots, 0xFF, room * sizeof *t->slots);
    t->slot_mask = room - 1;
    for (int32_t id = 0; id < t->size; id++) {
        struct tune_text s = t->vocab[id];
        if (!s.data)
            continue;
        if (s.size > t->longest)
            t->longest = s.size;
        int32_t twin = tune_vocab_find(t, s.data, s.size);
        if (twin >= 0)
            return tune_error_set("%s: the vocabulary lists \"%.60s\" twice, with ids %d and %d", t->path, s.data, (int)twin,
                                  (int)id);
        uint64_t i = tune_hash64(s.data, s.size, t->seed) & t->slot_mask;
        while (t->slots[i] >= 0)
            i = (i + 1) & t->slot_mask;
        t->slots[i] = id;
    }
    return 0;
}

static struct tune_merge_pair *pair_slot(struct tune_tokenizer *t, uint64_t key)
{
    uint64_t i = tune_mix(key, t->seed) & t->pair_mask;
    while (t->pairs[i].key != UINT64_MAX && t->pairs[i].key != key)
        i = (i + 1) & t->pair_mask;
    return &t->pairs[i];
}

/* Double the table, to at least FEW. */
static int grow_pairs(struct tune_tokenizer *t)
{
    enum { FEW = 4096 };
    struct tune_merge_pair *old = t->pairs;
    uint64_t held = old ? t->pair_mask + 1 : 0, room = old ? held * 2 : FEW;
    struct tune_merge_pair *pairs = tune_zeroed(room, sizeof *pairs, "the merges");
    if (!pairs)
        return -1;
    t->pairs = pairs;
    t->pair_mask = room - 1;
    for (uint64_t i = 0; i < room; i++)
        t->pairs[i] = (struct tune_merge_pair){UINT64_MAX, 0, -1};
    for (uint64_t i = 0; i < held; i++)
        if (old[i].key != UINT64_MAX)
            *pair_slot(t, old[i].key) = old[i];
    free(old);
    return 0;
}

int tune_pairs_set(struct tune_tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    if (!t->pairs || (uint64_t)t->pair_count * 2 > t->pair_mask)
        TRY(grow_pairs(t));
    struct tune_merge_pair *slot = pair_slot(t, key);
    t->pair_count += slot->key != key;
    /* for a repeated pair the last rank counts, as in the reference */
    *slot = (struct tune_merge_pair){key, rank, id};
    return 0;
}

static void symbols(struct tune_tokenizer *t)
{
    bool all = true, bytes = true;
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        t->fallback[b] = t->byte_fallback ? tune_vocab_find(t, text, 6) : -1;
        bytes &= t->fallback[b] >= 0;
        t->symbols[b] = -1;
        if (t->pre != TUNE_PRE_NONE)
            t->symbols[b] = tune_vocab_find(t, text, (size_t)tune_utf8_put(text, tune_byte_char(b)));
        else if (b < 128)
            t->symbols[b] = tune_vocab_find(t, &(char){(char)b}, 1);
        all &= t->symbols[b] >= 0;
    }
    t->complete = t->pre != TUNE_PRE_NONE ? all : bytes;
}

static int small(uint32_t c)
{
    return c < 128 ? (int)c : c == 0x2581 ? 128 : -1;
}

/* True if a merge can join text that ends in a with text that begins with b. */
static bool joins(const struct tune_tokenizer *t, uint32_t a, uint32_t b)
{
    uint64_t key = (uint64_t)a << 32 | b;
    for (uint64_t i = tune_mix(key, t->seed);; i++) {
        if (t->joins[i & t->join_mask] == key)
            return true;
        if (t->joins[i & t->join_mask] == UINT64_MAX)
            return false;
    }
}

/* Without a pre-tokenizer a document is one word. Consider a point in it. Suppose no merge has a
 * left part that ends, and a right part that begins, with the characters on its two sides. Then no
 * merge crosses the point, and both sides merge the same way apart or together. So the text may be
 * cut there, and the short pieces cached. This fails if symbols are not made of the text's
 * characters: bytes, and unknown tokens in merges. */
static int cuts(struct tune_tokenizer *t)
{
    if (t->pre != TUNE_PRE_NONE || !t->complete)
        return 0;
    uint64_t room = power_above((uint64_t)t->pair_count * 2 + 1);
    t->joins = tune_zeroed(room, sizeof *t->joins, "the merges' edges");
    if (!t->joins)
        return -1;
    memset(t->joins, 0xFF, room * sizeof *t->joins);
    t->join_mask = room - 1;
    t->cuts = true;
    for (uint64_t i = 0; i <= t->pair_mask; i++) {
        if (t->pairs[i].key == UINT64_MAX)
            continue;
        int32_t left = (int32_t)(t->pairs[i].key >> 32), right = (int32_t)(uint32_t)t->pairs[i].key;
        for (int b = 0; b < 256; b++)
            if (left == t->fallback[b] || right == t->fallback[b])
                t->cuts = false;
        if (t->vocab[left].size == 0 || t->vocab[right].size == 0) {
            t->cuts = false;
            break;
        }
        uint32_t a = tune_utf8_before(t->vocab[left].data + t->vocab[left].size);
        uint32_t b = tune_utf8_next(&(const char *){t->vocab[right].data});
        if (joins(t, a, b))
            continue;
        uint64_t key = (uint64_t)a << 32 | b, k = tune_mix(key, t->seed) & t->join_mask;
        while (t->joins[k] != UINT64_MAX)
            k = (k + 1) & t->join_mask;
        t->joins[k] = key;
        if (small(a) >= 0 && small(b) >= 0)
            t->joins_small[small(a)][small(b) / 64] |= (uint64_t)1 << small(b) % 64;
    }
    return 0;
}

int tune_pairs_ready(struct tune_tokenizer *t)
{
    if (!t->pairs) /* no merges */
        TRY(grow_pairs(t));
    symbols(t);
    return cuts(t);
}
