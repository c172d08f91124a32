/* unicode.c - look-ups in the packed tables. Classes are unpacked once for each tokenizer, for
 * speed. */
#include "tokenizers/unicode.h"

#include <stdlib.h>

#include "tokenizers/lower_table.h"
#include "tokenizers/unicode_tables.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

enum { HANGUL = 0xAC00, HANGUL_END = 0xD7A4, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11A7, VOWELS = 21, TAILS = 28 };

static void mark(uint8_t *class, const uint32_t (*ranges)[2], int count, uint8_t bit)
{
    for (int i = 0; i < count; i++)
        for (uint32_t c = ranges[i][0]; c <= ranges[i][1]; c++)
            class[c] |= bit;
}

/* Mark characters that NFC may change. A character without the mark is unchanged by NFC and never
 * composes with the text before it. */
static void mark_unstable(uint8_t *class)
{
    for (int i = 0; i < COUNT(marks); i++)
        for (uint32_t c = marks[i][0]; c <= marks[i][1]; c++)
            class[c] |= TUNE_UNSTABLE;
    for (int i = 0; i < COUNT(compositions); i++)
        class[compositions[i][1]] |= TUNE_UNSTABLE;
    for (uint32_t c = VOWEL; c < VOWEL + VOWELS; c++)
        class[c] |= TUNE_UNSTABLE;
    for (uint32_t c = TAIL + 1; c < TAIL + TAILS; c++)
        class[c] |= TUNE_UNSTABLE;
    for (int i = 0; i < COUNT(decompositions); i++) {
        uint32_t all[4], whole;
        int n = tune_unicode_decompose(decompositions[i][0], all);
        whole = all[0];
        for (int k = 1; k < n && whole; k++)
            whole = tune_unicode_compose(whole, all[k]);
        if (whole != decompositions[i][0] || (class[all[0]] & TUNE_UNSTABLE))
            class[decompositions[i][0]] |= TUNE_UNSTABLE;
    }
}

uint8_t *tune_unicode_classes(void)
{
    uint8_t *class = calloc(TUNE_POINTS, 1);
    if (!class)
        return NULL;
    mark(class, letters, COUNT(letters), TUNE_LETTER);
    mark(class, numbers, COUNT(numbers), TUNE_NUMBER);
    mark(class, spaces, COUNT(spaces), TUNE_SPACE);
    mark(class, numerics, COUNT(numerics), TUNE_NUMERIC);
    mark(class, words, COUNT(words), TUNE_WORD);
    mark(class, heads, COUNT(heads), TUNE_HEAD);
    mark(class, tails, COUNT(tails), TUNE_TAIL);
    mark_unstable(class);
    return class;
}

/* Orders of the tables' rows, for bsearch: a range of characters, a character, two characters. */
static int by_range(const void *key, const void *row)
{
    const uint32_t *c = key, *r = row;
    return (*c > r[1]) - (*c < r[0]);
}

static int by_first(const void *key, const void *row)
{
    const uint32_t *c = key, *r = row;
    return (*c > *r) - (*c < *r);
}

static int by_pair(const void *key, const void *row)
{
    const uint32_t *c = key, *r = row;
    int order = by_first(c, r);
    return order ? order : by_first(c + 1, r + 1);
}

int tune_unicode_rank(uint32_t c)
{
    const uint32_t *row = bsearch(&c, marks, COUNT(marks), sizeof *marks, by_range);
    return row ? (int)row[2] : 0;
}

int tune_unicode_decompose(uint32_t c, uint32_t d[4])
{
    if (c >= HANGUL && c < HANGUL_END) {
        uint32_t s = c - HANGUL;
        d[0] = LEAD + s / (VOWELS * TAILS);
        d[1] = VOWEL + s / TAILS % VOWELS;
        d[2] = TAIL + s % TAILS;
        return s % TAILS ? 3 : 2;
    }
    const uint32_t *row = bsearch(&c, decompositions, COUNT(decompositions), sizeof *decompositions, by_first);
    int n = 0;
    for (; row && n < 4 && row[n + 1]; n++)
        d[n] = row[n + 1];
    if (!row)
        d[n++] = c;
    return n;
}

uint32_t tune_unicode_compose(uint32_t a, uint32_t b)
{
    if (a >= LEAD && a < LEAD + 19 && b >= VOWEL && b < VOWEL + VOWELS)
        return HANGUL + ((a - LEAD) * VOWELS + (b - VOWEL)) * TAILS;
    if (a >= HANGUL && a < HANGUL_END && (a - HANGUL) % TAILS == 0 && b > TAIL && b < TAIL + TAILS)
        return a + (b - TAIL);
    const uint32_t pair[] = {a, b};
    const uint32_t *row = bsearch(pair, compositions, COUNT(compositions), sizeof *compositions, by_pair);
    return row ? row[2] : 0;
}

uint32_t tune_unicode_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c == 0x130)
        return 'i';
    int low = 0, high = COUNT(lower) - 1;
    while (low < high) { /* the last row that does not begin behind c */
        int middle = (low + high + 1) / 2;
        if (lower[middle][0] <= (int32_t)c)
            low = middle;
        else
            high = middle - 1;
    }
    const int32_t *row = lower[low];
    bool found = (int32_t)c >= row[0] && (int32_t)c <= row[1] && ((int32_t)c - row[0]) % row[2] == 0;
    return found ? (uint32_t)((int32_t)c + row[3]) : c;
}

bool tune_unicode_is_word(uint32_t c)
{
    if (c < 0x80)
        return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    return bsearch(&c, letters, COUNT(letters), sizeof *letters, by_range) ||
           bsearch(&c, numbers, COUNT(numbers), sizeof *numbers, by_range);
}

bool tune_unicode_is_space(uint32_t c)
{
    if (c < 0x80)
        return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}
