/* unicode.c - look-ups in the packed tables. Classes are unpacked once for each tokenizer, for
 * speed. */
#include "tokenizers/unicode.h"

#include <stdlib.h>

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
    mark_unstable(class);
    return class;
}

int tune_unicode_rank(uint32_t c)
{
    int low = 0, high = COUNT(marks) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (c < marks[middle][0])
            high = middle - 1;
        else if (c > marks[middle][1])
            low = middle + 1;
        else
            return (int)marks[middle][2];
    }
    return 0;
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
    int low = 0, high = COUNT(decompositions) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        const uint32_t *row = decompositions[middle];
        if (c < row[0]) {
            high = middle - 1;
        } else if (c > row[0]) {
            low = middle + 1;
        } else {
            int n = 0;
            while (n < 4 && row[n + 1]) {
                d[n] = row[n + 1];
                n++;
            }
            return n;
        }
    }
    d[0] = c;
    return 1;
}

uint32_t tune_unicode_compose(uint32_t a, uint32_t b)
{
    if (a >= LEAD && a < LEAD + 19 && b >= VOWEL && b < VOWEL + VOWELS)
        return HANGUL + ((a - LEAD) * VOWELS + (b - VOWEL)) * TAILS;
    if (a >= HANGUL && a < HANGUL_END && (a - HANGUL) % TAILS == 0 && b > TAIL && b < TAIL + TAILS)
        return a + (b - TAIL);
    int low = 0, high = COUNT(compositions) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        const uint32_t *row = compositions[middle];
        if (a < row[0] || (a == row[0] && b < row[1]))
            high = middle - 1;
        else if (a > row[0] || b > row[1])
            low = middle + 1;
        else
            return row[2];
    }
    return 0;
}
