/* added.c - find added tokens in text before it is split: leftmost first, then longest. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "tokenizers/parts.h"

/* The child of node for byte; 0: none. At most half of the slots are used. */
static uint32_t below(const struct tune_trie *trie, uint32_t node, unsigned char byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    for (uint64_t i = tune_mix(key, trie->seed);; i++) {
        if (trie->slots[i & trie->mask].key == key)
            return trie->slots[i & trie->mask].node;
        if (!trie->slots[i & trie->mask].key)
            return 0;
    }
}

static void insert(struct tune_trie *trie, struct tune_text s, int32_t index)
{
    uint32_t node = 0;
    for (size_t i = 0; i < s.size; i++) {
        unsigned char byte = (unsigned char)s.data[i];
        uint32_t next = below(trie, node, byte);
        if (!next) {
            uint64_t key = ((uint64_t)node << 8 | byte) + 1, k = tune_mix(key, trie->seed) & trie->mask;
            while (trie->slots[k].key)
                k = (k + 1) & trie->mask;
            next = trie->nodes++;
            trie->slots[k].key = key;
            trie->slots[k].node = next;
            trie->accepts[next] = -1;
        }
        node = next;
    }
    if (s.size > 0) {
        trie->first[(unsigned char)s.data[0]] = true;
        if (trie->accepts[node] < 0)
            trie->accepts[node] = index;
    }
}

static int build(struct tune_tokenizer *t, struct tune_trie *trie, bool normalized)
{
    uint64_t bytes = 0, room = 16;
    for (int i = 0; i < t->added_count; i++)
        if (t->added[i].normalized == normalized)
            bytes += t->added[i].match.size;
    if (bytes == 0)
        return 0;
    if (bytes > TUNE_MAX_ADDED_BYTES)
        return tune_error_set("%s: the added tokens are %llu bytes long together; expected at most %d", t->path,
                              (unsigned long long)bytes, TUNE_MAX_ADDED_BYTES);
    while (room < bytes * 2 + 2)
        room *= 2;
    trie->seed = t->seed;
    trie->mask = room - 1;
    trie->slots = tune_zeroed(room, sizeof *trie->slots, "the added tokens");
    trie->accepts = tune_zeroed(bytes + 1, sizeof *trie->accepts, "the added tokens");
    if (!trie->slots || !trie->accepts)
        return -1;
    trie->nodes = 1;
    trie->accepts[0] = -1;
    for (int i = 0; i < t->added_count; i++)
        if (t->added[i].normalized == normalized)
            insert(trie, t->added[i].match, i);
    return 0;
}

int tune_added_ready(struct tune_tokenizer *t)
{
    TRY(build(t, &t->raw, false));
    return build(t, &t->normal, true);
}

void tune_added_free(struct tune_tokenizer *t)
{
    for (int i = 0; i < t->added_count; i++) {
        if (t->added[i].match.data != t->added[i].content.data)
            free((char *)t->added[i].match.data);
        free((char *)t->added[i].content.data);
    }
    free(t->added);
    free(t->raw.slots);
    free(t->raw.accepts);
    free(t->normal.slots);
    free(t->normal.accepts);
}

/* The longest token that begins at `at`: its index and *end, or -1. */
static int longest_at(const struct tune_trie *trie, const char *text, size_t size, size_t at, size_t *end)
{
    uint32_t node = 0;
    int found = -1;
    while (at < size && (node = below(trie, node, (unsigned char)text[at])) != 0) {
        at++;
        if (trie->accepts[node] >= 0) {
            found = trie->accepts[node];
            *end = at;
        }
    }
    return found;
}

/* The end of the white space at `at`. It is cached, so many tokens in a long run take linear
 * time. */
static size_t over_space(const struct tune_work *w, struct tune_added_scan *s, size_t at)
{
    if (at >= s->run && at < s->run_end)
        return s->run_end;
    const char *p = s->text + at, *end = s->text + s->size;
    while (p < end) {
        const char *next = p;
        if (!(w->t->class[tune_utf8_next(&next)] & TUNE_SPACE))
            break;
        p = next;
    }
    s->run = at;
    s->run_end = (size_t)(p - s->text);
    return s->run_end;
}

static bool apart(const struct tune_work *w, const struct tune_added_scan *s, size_t begin, size_t end)
{
    const uint8_t *class = w->t->class;
    if (begin > 0 && (class[tune_utf8_before(s->text + begin)] & TUNE_WORD))
        return false;
    return end == s->size || !(class[tune_utf8_next(&(const char *){s->text + end})] & TUNE_WORD);
}

/* Number of bytes in [begin, end) before the first byte of data. Special tokens contain no data. */
static size_t markup(const struct tune_work *w, const struct tune_added_scan *s, size_t begin, size_t end)
{
    const struct tune_piece *p = s->piece;
    for (size_t at = begin; at < end; at++) {
        size_t low = (size_t)p->base + (p->low ? p->low[at] : at), high = (size_t)p->base + (p->low ? p->high[at] : at + 1);
        for (size_t i = low; i < high; i++)
            if (w->data[i])
                return at - begin;
    }
    return end - begin;
}

void tune_added_next(const struct tune_work *w, struct tune_added_scan *s)
{
    s->gap = s->done;
    while (s->trie->nodes && s->at < s->size) {
        size_t begin = s->at, end = 0;
        int token = -1;
        if (s->trie->first[(unsigned char)s->text[begin]])
            token = longest_at(s->trie, s->text, s->size, begin, &end);
        if (token < 0) {
            s->at++;
            continue;
        }
        if (w->data && w->t->added[token].special && markup(w, s, begin, end) < end - begin) {
            /* data after the template's token must not prevent a shorter match of that token */
            token = longest_at(s->trie, s->text, begin + markup(w, s, begin, end), begin, &end);
            if (token < 0) {
                s->at++;
                continue;
            }
        }
        s->at = end; /* a rejected match is not retried with a shorter token */
        const struct tune_added *a = &w->t->added[token];
        if ((w->options & TUNE_SPECIAL_AS_TEXT) && a->special)
            continue;
        if (a->single_word && !apart(w, s, begin, end))
            continue;
        if (a->lstrip && begin >= s->done) {
            while (begin > s->done && (w->t->class[tune_utf8_before(s->text + begin)] & TUNE_SPACE))
                do
                    begin--;
                while (((unsigned char)s->text[begin] & 0xC0) == 0x80);
        } else if (a->lstrip) {
            begin = s->done;
        }
        if (a->rstrip)
            end = over_space(w, s, end);
        if (begin >= end)
            continue; /* the token before took all of this white space */
        s->gap_end = begin > s->done ? begin : s->done;
        s->token = token;
        s->begin = begin;
        s->end = end;
        /* may go back: the reference allows a white space token inside what the one before took */
        s->done = end;
        return;
    }
    s->gap_end = s->size;
    s->token = -1;
    s->done = s->size;
}
