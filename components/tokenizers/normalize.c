/* normalize.c - NFC (Qwen), or spaces to U+2581 with one in front (Llama 2). It records the source
 * position of each byte. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "tokenizers/parts.h"

static int reserve(struct tune_buffer *b, size_t need)
{
    static const char what[] = "text being normalized";
    size_t for_text = b->room, for_low = b->room;
    TRY(tune_array_reserve(&b->text, &for_text, need, 1, what));
    TRY(tune_array_reserve(&b->low, &for_low, need, sizeof *b->low, what));
    return tune_array_reserve(&b->high, &b->room, need, sizeof *b->high, what);
}

void tune_buffer_free(struct tune_buffer *b)
{
    free(b->text);
    free(b->low);
    free(b->high);
}

static void put(struct tune_buffer *b, size_t *n, const char *bytes, size_t size, size_t low, size_t high)
{
    for (size_t i = 0; i < size; i++, ++*n) {
        b->text[*n] = bytes[i];
        b->low[*n] = (uint32_t)low;
        b->high[*n] = (uint32_t)high;
    }
}

static void give(const struct tune_buffer *b, size_t size, int64_t base, struct tune_piece *piece)
{
    *piece = (struct tune_piece){.text = b->text, .size = size, .base = base, .low = b->low, .high = b->high};
}

int tune_marks(struct tune_buffer *to, const struct tune_piece *piece, size_t a, size_t b, struct tune_marking how,
               struct tune_piece *marked)
{
    const char *text = piece->text, *second = text + a;
    const uint32_t *low = piece->low, *high = piece->high;
    size_t width = strlen(how.mark), spaces = 0, n = 0;
    for (size_t i = a; i < b && how.replace; i++)
        spaces += text[i] == ' ';
    TRY(reserve(to, b - a + (width - 1) * spaces + width));
    if (how.prepend && a < b) {
        tune_utf8_next(&second);
        size_t last = (size_t)(second - text) - 1;
        put(to, &n, how.mark, width, low ? low[a] : a, high ? high[last] : last + 1);
    }
    for (size_t i = a; i < b; i++) {
        bool space = text[i] == ' ' && how.replace;
        put(to, &n, space ? how.mark : text + i, space ? width : 1, low ? low[i] : i, high ? high[i] : i + 1);
    }
    give(to, n, piece->base, marked);
    return 0;
}

struct mark {
    uint32_t c;
    int rank;
    uint32_t at; /* makes qsort stable */
};

static int by_rank(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->at > y->at) - (x->at < y->at);
}

/* Sort into canonical order, then compose (Unicode Standard Annex 15). A character composes with
 * the last starter unless one of the same or a higher class is between them. Returns the new
 * length. */
static size_t compose(struct mark *m, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t j = i;
        while (j < n && m[j].rank > 0)
            j++;
        if (j - i > 1)
            qsort(m + i, j - i, sizeof *m, by_rank);
        i = j + 1;
    }
    size_t out = 0, starter = SIZE_MAX;
    int last = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t joined = 0;
        if (starter != SIZE_MAX && (last == 0 || last < m[i].rank))
            joined = tune_unicode_compose(m[starter].c, m[i].c);
        if (joined) {
            m[starter].c = joined;
            continue;
        }
        if (m[i].rank == 0)
            starter = out;
        last = m[i].rank;
        m[out++] = m[i];
    }
    return out;
}

/* Convert the characters in [from, to) to NFC: a stable one and those that may compose with it. */
static int cluster(struct tune_work *w, const char *text, size_t from, size_t to, size_t *n)
{
    size_t count = 0;
    struct mark few[64], *m = few;
    size_t most = (to - from) * 2 + 4; /* two bytes decompose to at most four characters */
    if (most > sizeof few / sizeof *few && !(m = tune_zeroed(most, sizeof *m, "NFC")))
        return -1;
    for (const char *p = text + from; p < text + to;) {
        uint32_t d[4];
        int parts = tune_unicode_decompose(tune_utf8_next(&p), d);
        for (int i = 0; i < parts; i++, count++)
            m[count] = (struct mark){d[i], tune_unicode_rank(d[i]), (uint32_t)count};
    }
    count = compose(m, count);
    int failed = reserve(&w->normal, *n + count * 4);
    for (size_t i = 0; i < count && !failed; i++) {
        char bytes[4];
        put(&w->normal, n, bytes, (size_t)tune_utf8_put(bytes, m[i].c), from, to);
    }
    if (m != few)
        free(m);
    return failed;
}

static int nfc(struct tune_work *w, const char *text, size_t size, struct tune_piece *piece)
{
    const uint8_t *class = w->t->class;
    const char *p = text, *end = text + size;
    while (p < end && ((unsigned char)*p < 0xCC || !(class[tune_utf8_next(&(const char *){p})] & TUNE_UNSTABLE)))
        tune_utf8_next(&p);
    if (p == end)
        return 0; /* NFC changes nothing, as for most text */
    TRY(reserve(&w->normal, size + 64));
    size_t n = 0;
    for (p = text; p < end;) {
        size_t from = (size_t)(p - text);
        const char *after = p;
        tune_utf8_next(&after);
        const char *next = after;
        while (next < end) {
            const char *peek = next;
            if (!(class[tune_utf8_next(&peek)] & TUNE_UNSTABLE))
                break;
            next = peek;
        }
        if (next == after && !(class[tune_utf8_next(&p)] & TUNE_UNSTABLE)) {
            TRY(reserve(&w->normal, n + (size_t)(after - text) - from));
            for (size_t i = from; i < (size_t)(after - text); i++)
                put(&w->normal, &n, text + i, 1, i, i + 1);
        } else {
            TRY(cluster(w, text, from, (size_t)(next - text), &n));
        }
        p = next;
    }
    give(&w->normal, n, piece->base, piece);
    return 0;
}

int tune_normalize(struct tune_work *w, const char *text, size_t size, int64_t base, struct tune_piece *piece)
{
    *piece = (struct tune_piece){.text = text, .size = size, .base = base};
    if (w->t->nfc)
        return nfc(w, text, size, piece);
    struct tune_piece plain = *piece;
    if (w->t->prepend || w->t->replace)
        return tune_marks(&w->normal, &plain, 0, size, (struct tune_marking){TUNE_SPACE_MARK, w->t->prepend, w->t->replace}, piece);
    return 0;
}
