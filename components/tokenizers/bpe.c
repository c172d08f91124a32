/* bpe.c - merge symbols: always the pair of lowest rank, the leftmost of equals.
 *
 * A short word scans an array of ranks; an average word has four bytes. A long word uses a heap of
 * rank and position over a linked list, O(n log n). Without a pre-tokenizer a whole document may be
 * one word. Words of up to 28 bytes are cached. The order of merges and missing characters follow
 * the reference exactly. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "tokenizers/parts.h"

enum { SHORT = 64 }; /* symbols; above this the heap is faster */

struct symbols {
    int32_t *ids, *sizes; /* sizes in bytes of the piece */
    size_t count;
};

static int reserve(struct tune_work *w, size_t need)
{
    if (need <= w->symbol_room)
        return 0;
    size_t room = need + need / 8;
    int32_t **all[] = {&w->ids, &w->sizes, &w->next, &w->previous};
    for (int i = 0; i < 4; i++) {
        free(*all[i]);
        *all[i] = malloc(room * sizeof(int32_t));
    }
    free(w->heap);
    w->heap = malloc((2 * room + 2) * sizeof *w->heap);
    w->symbol_room = room;
    if (!w->ids || !w->sizes || !w->next || !w->previous || !w->heap) {
        w->symbol_room = 0;
        return tune_error_no_memory("a word of %zu bytes", need);
    }
    return 0;
}

/* State of unknown characters while symbols are made. An unknown token is held back, and may grow,
 * until the next known character. As in the reference, a character that falls back to bytes does
 * not end it. */
struct unknown {
    bool waits;
    int32_t size;
};

static void flush(const struct tune_tokenizer *t, struct symbols *s, struct unknown *u)
{
    if (u->waits) {
        s->ids[s->count] = t->unk;
        s->sizes[s->count++] = u->size;
        u->waits = false;
    }
}

/* Handle a character (spelled as in the model) that the vocabulary lacks. source: bytes of the
 * piece it stands for. */
static int missing(const struct tune_tokenizer *t, struct symbols *s, struct unknown *u, const char *spelled, int n, int source)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= t->fallback[(unsigned char)spelled[i]] >= 0;
    if (all) {
        for (int i = 0; i < n; i++) {
            s->ids[s->count] = t->fallback[(unsigned char)spelled[i]];
            s->sizes[s->count++] = i < source ? 1 : 0;
        }
        return 0;
    }
    if (!t->unk_text[0])
        return 0; /* left out silently */
    if (t->unk < 0)
        return tune_error_set("%s: the text has the character \"%.*s\", and unk_token \"%s\" is not in the vocabulary",
                              t->path, n, spelled, t->unk_text);
    if (u->waits && t->fuse_unk) {
        u->size += source;
        return 0;
    }
    flush(t, s, u);
    *u = (struct unknown){true, source};
    return 0;
}

/* Make one symbol for each byte (byte level) or character. s has room for 2 * size + 1. */
static int start(const struct tune_tokenizer *t, const char *text, size_t size, struct symbols *s)
{
    struct unknown u = {0};
    const char *p = text, *end = text + size;
    bool bytes = t->pre != TUNE_PRE_NONE;
    s->count = 0;
    while (p < end) {
        const char *from = p;
        int32_t id;
        if (bytes || (unsigned char)*p < 128) {
            id = t->symbols[(unsigned char)*p++];
        } else {
            tune_utf8_next(&p);
            id = tune_vocab_find(t, from, (size_t)(p - from));
        }
        if (id >= 0) {
            flush(t, s, &u);
            s->ids[s->count] = id;
            s->sizes[s->count++] = (int32_t)(p - from);
        } else if (bytes) {
            char spelled[4];
            TRY(missing(t, s, &u, spelled, tune_utf8_put(spelled, tune_byte_char((unsigned char)*from)), 1));
        } else {
            TRY(missing(t, s, &u, from, (int)(p - from), (int)(p - from)));
        }
    }
    flush(t, s, &u);
    return 0;
}

static void merge_short(const struct tune_tokenizer *t, struct symbols *s)
{
    uint32_t rank[2 * SHORT + 1];
    int32_t joined[2 * SHORT + 1];
    size_t n = s->count;
    for (size_t i = 0; i + 1 < n; i++) {
        const struct tune_merge_pair *p = tune_pairs_find(t, s->ids[i], s->ids[i + 1]);
        rank[i] = p ? p->rank : UINT32_MAX;
        joined[i] = p ? p->id : -1;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == UINT32_MAX)
            break;
        s->ids[best] = joined[best];
        s->sizes[best] += s->sizes[best + 1];
        for (size_t i = best + 1; i + 1 < n; i++) {
            s->ids[i] = s->ids[i + 1];
            s->sizes[i] = s->sizes[i + 1];
            rank[i] = rank[i + 1]; /* the last one copies an unused element */
            joined[i] = joined[i + 1];
        }
        n--;
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const struct tune_merge_pair *p = tune_pairs_find(t, s->ids[i], s->ids[i + 1]);
            rank[i] = p ? p->rank : UINT32_MAX;
            joined[i] = p ? p->id : -1;
        }
    }
    s->count = n;
}

static void sink(uint64_t *heap, size_t n, size_t i)
{
    uint64_t x = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= x)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void rise(uint64_t *heap, size_t i)
{
    uint64_t x = heap[i];
    for (; i > 0 && heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

/* Each merge removes one entry from the heap and adds at most two, so 2n are enough. An entry is
 * stale if the pair at its position has another rank now. */
static void merge_long(struct tune_work *w, struct symbols *s)
{
    const struct tune_tokenizer *t = w->t;
    int32_t *next = w->next, *previous = w->previous, n = (int32_t)s->count;
    size_t held = 0;
    const struct tune_merge_pair *p;
    for (int32_t i = 0; i < n; i++) {
        next[i] = i + 1 < n ? i + 1 : -1;
        previous[i] = i - 1;
        if (i + 1 < n && (p = tune_pairs_find(t, s->ids[i], s->ids[i + 1])))
            w->heap[held++] = (uint64_t)p->rank << 32 | (uint32_t)i;
    }
    for (size_t i = held / 2; i-- > 0;)
        sink(w->heap, held, i);
    while (held > 0) {
        uint32_t rank = (uint32_t)(w->heap[0] >> 32);
        int32_t at = (int32_t)(uint32_t)w->heap[0], right = next[at];
        w->heap[0] = w->heap[--held];
        if (held > 0)
            sink(w->heap, held, 0);
        if (s->ids[at] < 0 || right < 0 || !(p = tune_pairs_find(t, s->ids[at], s->ids[right])) || p->rank != rank)
            continue;
        s->ids[at] = p->id;
        s->sizes[at] += s->sizes[right];
        s->ids[right] = -1;
        next[at] = next[right];
        if (next[at] >= 0)
            previous[next[at]] = at;
        int32_t lefts[2] = {previous[at], at};
        for (int k = 0; k < 2; k++) {
            int32_t l = lefts[k];
            if (l >= 0 && next[l] >= 0 && (p = tune_pairs_find(t, s->ids[l], s->ids[next[l]]))) {
                w->heap[held] = (uint64_t)p->rank << 32 | (uint32_t)l;
                rise(w->heap, held++);
            }
        }
    }
    size_t out = 0;
    for (int32_t i = 0; i >= 0 && i < n; i = next[i], out++) {
        s->ids[out] = s->ids[i];
        s->sizes[out] = s->sizes[i];
    }
    s->count = out;
}

/* ignore_merges: a word in the vocabulary is that token, whatever the merges say. */
static int32_t as_spelled(const struct tune_tokenizer *t, const char *text, size_t size)
{
    if (t->pre == TUNE_PRE_NONE)
        return tune_vocab_find(t, text, size);
    char few[512], *spelled = few;
    size_t n = 0;
    if (size > t->longest)
        return -1;
    if (size * 2 > sizeof few && !(spelled = malloc(size * 2)))
        return -2;
    for (size_t i = 0; i < size; i++)
        n += (size_t)tune_utf8_put(spelled + n, tune_byte_char((unsigned char)text[i]));
    int32_t id = tune_vocab_find(t, spelled, n);
    if (spelled != few)
        free(spelled);
    return id;
}

static uint32_t tag_of(const struct tune_tokenizer *t, const char *text, size_t size, struct tune_word **word)
{
    uint64_t h = tune_hash64(text, size, t->seed);
    *word = &t->words[h >> 32 & (TUNE_WORDS - 1)];
    return (uint32_t)h | 2;
}

static bool recall(const struct tune_tokenizer *t, struct tune_encoding *e, const struct tune_piece *piece, size_t a, size_t size)
{
    struct tune_word *word;
    uint32_t tag = tag_of(t, piece->text + a, size, &word);
    for (int i = 0; i < 4; i++) {
        struct tune_word *x = &t->words[(size_t)(word - t->words + i) & (TUNE_WORDS - 1)];
        uint32_t found = atomic_load_explicit(&x->tag, memory_order_acquire);
        if (found == 0)
            return false;
        if (found != tag || x->size != size || memcmp(x->text, piece->text + a, size) != 0)
            continue;
        for (int k = 0; k < x->count; a += x->sizes[k], k++)
            tune_encoding_put(e, x->ids[k], piece, a, a + x->sizes[k]);
        return true;
    }
    return false;
}

/* Cache a word. Two threads may write the same word twice; that does no harm. */
static void remember(const struct tune_tokenizer *t, const char *text, size_t size, const struct symbols *s)
{
    struct tune_word *word;
    uint32_t tag = tag_of(t, text, size, &word);
    if (s->count > TUNE_WORD_IDS)
        return;
    for (int i = 0; i < 4; i++) {
        struct tune_word *x = &t->words[(size_t)(word - t->words + i) & (TUNE_WORDS - 1)];
        uint32_t free_tag = 0;
        if (!atomic_compare_exchange_strong_explicit(&x->tag, &free_tag, 1, memory_order_acquire, memory_order_relaxed))
            continue;
        x->size = (uint8_t)size;
        x->count = (uint8_t)s->count;
        memcpy(x->text, text, size);
        for (size_t k = 0; k < s->count; k++) {
            x->ids[k] = s->ids[k];
            x->sizes[k] = (uint8_t)s->sizes[k];
        }
        atomic_store_explicit(&x->tag, tag, memory_order_release);
        return;
    }
}

int tune_bpe(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b, bool whole)
{
    const struct tune_tokenizer *t = w->t;
    const char *text = piece->text + a;
    size_t size = b - a;
    size_t most = t->complete ? size : 2 * size + 1; /* largest number of symbols */
    /* With ignore_merges, a whole word and a cut piece with the same text may differ. */
    bool brief = size <= TUNE_WORD_BYTES && !(whole && t->ignore_merges && t->pre == TUNE_PRE_NONE);
    if (w->e->room - w->e->count < (int64_t)most)
        TRY(tune_encoding_reserve(w->e, (int64_t)most));
    if (brief && recall(t, w->e, piece, a, size))
        return 0;
    int32_t few_ids[2 * SHORT + 1], few_sizes[2 * SHORT + 1];
    struct symbols s = {few_ids, few_sizes, 0};
    int32_t id = t->ignore_merges && whole ? as_spelled(t, text, size) : -1;
    if (id == -2)
        return tune_error_no_memory("a word of %zu bytes", size);
    if (id >= 0) {
        s.count = 1;
        s.ids[0] = id;
        s.sizes[0] = (int32_t)size;
    } else {
        if (size > SHORT) {
            TRY(reserve(w, most));
            s.ids = w->ids;
            s.sizes = w->sizes;
        }
        TRY(start(t, text, size, &s));
        if (s.count > SHORT && s.ids == w->ids)
            merge_long(w, &s);
        else if (s.count > 1)
            merge_short(t, &s);
    }
    if (brief)
        remember(t, text, size, &s);
    for (size_t i = 0; i < s.count; a += (size_t)s.sizes[i], i++)
        tune_encoding_put(w->e, s.ids[i], piece, a, a + (size_t)s.sizes[i]);
    return 0;
}
