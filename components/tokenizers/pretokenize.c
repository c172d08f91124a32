/* pretokenize.c - scanners for the known patterns, in one pass. Alternatives are tried in the
 * pattern's order.
 *
 *   GPT-2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   Llama 3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *            |\s*[\r\n]+|\s+(?!\S)|\s+
 *   Qwen 2   Llama 3's with \p{N} in place of \p{N}{1,3}
 *
 * Qwen 3.5 has Qwen 2's pattern with [\p{L}\p{M}] for letters, except in [^\r\n\p{L}\p{N}]?. Mistral's
 * Tekken and Llama 4 have these, where HEAD and TAIL are TUNE_HEAD and TUNE_TAIL:
 *
 *   Tekken   [^\r\n\p{L}\p{N}]?HEAD*TAIL+|[^\r\n\p{L}\p{N}]?HEAD+TAIL*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*
 *            |\s*[\r\n]+|\s+(?!\S)|\s+
 *   Llama 4  Tekken's with (?i:'s|'t|'re|'ve|'m|'ll|'d)? behind both kinds of words, and \p{N}{1,3}
 *
 * Every character belongs to a match, so a scanner only finds the end of the match that begins
 * here. */
#include <string.h>

#include "tokenizers/parts.h"

enum { SOLID = TUNE_LETTER | TUNE_NUMBER | TUNE_SPACE };

static inline int class_at(const uint8_t *class, const char *p)
{
    return class[tune_utf8_next(&p)];
}

/* Skip characters whose class has exactly these bits of letter, number and space. 0: characters
 * that are none of the three. */
static const char *over(const uint8_t *class, const char *p, const char *end, int bits)
{
    while (p < end) {
        const char *next = p;
        if ((class[tune_utf8_next(&next)] & SOLID) != bits)
            break;
        p = next;
    }
    return p;
}

/* \s+(?!\S)|\s+ : a run at the end of text; else all but its last character; else one character. */
static const char *over_space(const uint8_t *class, const char *p, const char *end)
{
    const char *stop = over(class, p, end, TUNE_SPACE), *last = stop;
    if (stop == end)
        return stop;
    do
        last--;
    while (((unsigned char)*last & 0xC0) == 0x80);
    return last > p ? last : stop;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static const char *over_lines(const uint8_t *class, const char *p, const char *end)
{
    for (const char *q = over(class, p, end, TUNE_SPACE); q > p; q--)
        if (q[-1] == '\r' || q[-1] == '\n')
            return q;
    return over_space(class, p, end);
}

/* Match 's 't 'm 'd 're 've 'll at p. Returns its end, or p if there is none. fold: ignore case,
 * and U+017F counts as s. */
static const char *contraction(const char *p, const char *end, bool fold)
{
    int a = p + 1 < end ? (unsigned char)p[1] : 0, b = p + 2 < end ? (unsigned char)p[2] : 0;
    if (fold && a == 0xC5 && b == 0xBF)
        return p + 3;
    if (fold && a >= 'A' && a <= 'Z')
        a += 32;
    if (fold && b >= 'A' && b <= 'Z')
        b += 32;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return p + 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? p + 3 : p;
}

static const char *gpt2(const uint8_t *class, const char *p, const char *end)
{
    if (*p == '\'') {
        const char *q = contraction(p, end, false);
        if (q > p)
            return q;
    }
    const char *from = p;
    int bits = class_at(class, p) & SOLID;
    if (*p == ' ' && p + 1 < end) { /* " ?" */
        from = p + 1;
        bits = class_at(class, from) & SOLID;
    }
    if (bits != TUNE_SPACE)
        return over(class, from, end, bits);
    return over_space(class, p, end);
}

static const char *numbers(const uint8_t *class, const char *p, const char *end, int most)
{
    for (int i = 0; i < most && p < end && (class_at(class, p) & TUNE_NUMBER); i++)
        tune_utf8_next(&p);
    return p;
}

static const char *llama3(const uint8_t *class, const char *p, const char *end, int digits)
{
    if (*p == '\'') {
        const char *q = contraction(p, end, true);
        if (q > p)
            return q;
    }
    int bits = class_at(class, p) & SOLID;
    if (bits == TUNE_LETTER)
        return over(class, p, end, TUNE_LETTER);
    if (bits == TUNE_NUMBER)
        return numbers(class, p, end, digits);
    bool line = *p == '\r' || *p == '\n';
    const char *after = p;
    tune_utf8_next(&after);
    if (!line && after < end && (class_at(class, after) & SOLID) == TUNE_LETTER)
        return over(class, after, end, TUNE_LETTER);
    const char *from = *p == ' ' ? p + 1 : p;
    if (from < end && (class_at(class, from) & SOLID) == 0) {
        const char *q = over(class, from, end, 0);
        while (q < end && (*q == '\r' || *q == '\n'))
            q++;
        return q;
    }
    return over_lines(class, p, end);
}

static bool is_mark(int class)
{
    return !(class & TUNE_LETTER) && (class & TUNE_HEAD);
}

/* Skip characters with one of these bits. */
static const char *over_any(const uint8_t *class, const char *p, const char *end, int bits)
{
    for (const char *next = p; p < end && (class[tune_utf8_next(&next)] & bits); )
        p = next;
    return p;
}

static const char *qwen35(const uint8_t *class, const char *p, const char *end)
{
    enum { PART = TUNE_HEAD | TUNE_TAIL | TUNE_LETTER };
    const char *q = *p == '\'' ? contraction(p, end, true) : p, *after = p;
    if (q > p)
        return q;
    int first = class[tune_utf8_next(&after)];
    if (first & PART)
        return over_any(class, p, end, PART);
    if (first & TUNE_NUMBER)
        return after;
    if (*p != '\r' && *p != '\n' && after < end && (class_at(class, after) & PART))
        return over_any(class, after, end, PART);
    const char *from = *p == ' ' ? p + 1 : p;
    for (q = from; q < end; q = after) {
        after = q;
        int c = class[tune_utf8_next(&after)];
        if ((c & SOLID) || is_mark(c))
            break;
    }
    if (q == from)
        return over_lines(class, p, end);
    while (q < end && (*q == '\r' || *q == '\n'))
        q++;
    return q;
}

/* HEAD*TAIL+ at p. Returns its end, or p if there is none. */
static const char *lower_word(const uint8_t *class, const char *p, const char *end)
{
    const char *stop = over_any(class, p, end, TUNE_HEAD), *tail = over_any(class, stop, end, TUNE_TAIL);
    while (tail == stop && stop > p) { /* HEAD* gives characters back until TAIL takes one */
        const char *last = stop;
        do
            last--;
        while (((unsigned char)*last & 0xC0) == 0x80);
        if (class_at(class, last) & TUNE_TAIL)
            return stop;
        stop = tail = last;
    }
    return tail > stop ? tail : p;
}

/* A word by Tekken's first two alternatives. Returns its end, or p if there is none. */
static const char *cased_word(const uint8_t *class, const char *p, const char *end)
{
    const char *after = p;
    int first = class[tune_utf8_next(&after)];
    bool prefix = *p != '\r' && *p != '\n' && !(first & (TUNE_LETTER | TUNE_NUMBER));
    const char *from[2] = {prefix ? after : p, p};
    for (int i = 0; i < 2; i++) {
        const char *q = from[i] < end ? lower_word(class, from[i], end) : from[i];
        if (q > from[i])
            return q;
    }
    for (int i = 0; i < 2; i++) { /* no TAIL stands behind HEAD+, or the loop above had a match */
        const char *q = over_any(class, from[i], end, TUNE_HEAD);
        if (q > from[i])
            return q;
    }
    return p;
}

/* Tekken, or Llama 4 with three digits. */
static const char *cased(const uint8_t *class, const char *p, const char *end, int digits)
{
    const char *q = cased_word(class, p, end);
    if (q > p)
        return digits > 1 && q < end && *q == '\'' ? contraction(q, end, true) : q;
    if (class_at(class, p) & TUNE_NUMBER)
        return numbers(class, p, end, digits);
    const char *from = *p == ' ' ? p + 1 : p;
    if (from == end || (class_at(class, from) & SOLID) != 0)
        return over_lines(class, p, end);
    q = over(class, from, end, 0);
    while (q < end && (*q == '\r' || *q == '\n' || *q == '/'))
        q++;
    return q;
}

/* Digits(individual): each numeric character is a word; text between them is split separately. */
static int digits_gpt2(struct tune_work *w, const struct tune_piece *piece, const char *p, const char *end)
{
    const uint8_t *class = w->t->class;
    while (p < end) {
        const char *stop = p, *next = p;
        while (next < end && !(class[tune_utf8_next(&next)] & TUNE_NUMERIC))
            stop = next;
        while (p < stop) {
            const char *q = gpt2(class, p, stop);
            TRY(w->word(w, piece, (size_t)(p - piece->text), (size_t)(q - piece->text), true));
            p = q;
        }
        if (stop < end) {
            TRY(w->word(w, piece, (size_t)(stop - piece->text), (size_t)(next - piece->text), true));
            p = next;
        }
    }
    return 0;
}

/* Go to the first point that no merge can cross (vocabulary.c, cuts). */
static const char *uncut(const struct tune_tokenizer *t, const char *p, const char *end)
{
    uint32_t a = tune_utf8_next(&p);
    while (p < end) {
        const char *next = p;
        uint32_t b = tune_utf8_next(&next);
        int i = a < 128 ? (int)a : a == 0x2581 ? 128 : -1, k = b < 128 ? (int)b : b == 0x2581 ? 128 : -1;
        if (i >= 0 && k >= 0) {
            if (!(t->joins_small[i][k / 64] >> k % 64 & 1))
                return p;
        } else {
            uint64_t key = (uint64_t)a << 32 | b, h = tune_mix(key, t->seed);
            while (t->joins[h & t->join_mask] != key && t->joins[h & t->join_mask] != UINT64_MAX)
                h++;
            if (t->joins[h & t->join_mask] != key)
                return p;
        }
        a = b;
        p = next;
    }
    return end;
}

static int whole(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b)
{
    const struct tune_tokenizer *t = w->t;
    if (!t->cuts || (t->ignore_merges && b - a <= t->longest))
        return w->word(w, piece, a, b, true);
    for (const char *p = piece->text + a, *end = piece->text + b; p < end;) {
        const char *q = uncut(t, p, end);
        TRY(w->word(w, piece, (size_t)(p - piece->text), (size_t)(q - piece->text), false));
        p = q;
    }
    return 0;
}

/* Metaspace: spaces become marks. With split, a word begins at each mark. */
static int metaspace(struct tune_work *w, const struct tune_piece *from, size_t a, size_t b)
{
    const struct tune_metaspace *m = &w->t->metaspace;
    struct tune_piece piece;
    size_t width = strlen(m->mark), source = (size_t)from->base + (from->low ? from->low[a] : a);
    bool marked = from->text[a] == ' ' || (b - a >= width && memcmp(from->text + a, m->mark, width) == 0);
    bool prepend = !marked && (m->prepend == TUNE_PREPEND_ALWAYS || (m->prepend == TUNE_PREPEND_FIRST && source == 0));
    TRY(tune_marks(&w->marked, from, a, b, (struct tune_marking){m->mark, prepend, true}, &piece));
    if (!m->split)
        return whole(w, &piece, 0, piece.size);
    for (size_t at = 0, end; at < piece.size; at = end) {
        const char *mark = memmem(piece.text + at + 1, piece.size - at - 1, m->mark, width);
        end = mark ? (size_t)(mark - piece.text) : piece.size;
        TRY(whole(w, &piece, at, end));
    }
    return 0;
}

int tune_pretokenize(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b)
{
    const uint8_t *class = w->t->class;
    enum tune_pretokenizer pre = w->t->pre;
    const char *p = piece->text + a, *end = piece->text + b;
    if (p >= end)
        return 0;
    if (*w->t->metaspace.mark)
        return metaspace(w, piece, a, b);
    if (pre == TUNE_PRE_NONE)
        return whole(w, piece, a, b);
    if (pre == TUNE_PRE_DIGITS_GPT2)
        return digits_gpt2(w, piece, p, end);
    while (p < end) {
        const char *q = pre == TUNE_PRE_GPT2     ? gpt2(class, p, end)
                        : pre == TUNE_PRE_QWEN35 ? qwen35(class, p, end)
                        : pre >= TUNE_PRE_TEKKEN ? cased(class, p, end, pre == TUNE_PRE_LLAMA4 ? 3 : 1)
                                                 : llama3(class, p, end, pre == TUNE_PRE_LLAMA3 ? 3 : 1);
        TRY(w->word(w, piece, (size_t)(p - piece->text), (size_t)(q - piece->text), true));
        p = q;
    }
    return 0;
}
