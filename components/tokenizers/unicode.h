/* unicode.h - character classes and NFC. The tables come from tests of the reference library. */
#ifndef TUNE_TOKENIZERS_UNICODE_H
#define TUNE_TOKENIZERS_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of a character's class. */
enum {
    TUNE_LETTER = 1,   /* \p{L} */
    TUNE_NUMBER = 2,   /* \p{N} */
    TUNE_SPACE = 4,    /* \s */
    TUNE_NUMERIC = 8,  /* split by Digits; from a newer Unicode version than \p{N} */
    TUNE_WORD = 16,    /* \w, for single_word */
    TUNE_UNSTABLE = 32, /* NFC may change it, or compose it with the character before */
    TUNE_HEAD = 64,    /* \p{Lu}, \p{Lt}, \p{Lm}, \p{Lo} or \p{M} */
    TUNE_TAIL = 128    /* \p{Ll}, \p{Lm}, \p{Lo} or \p{M}. A mark (\p{M}) is no letter, and both */
};

#define TUNE_POINTS 0x110000

/* tune_unicode_classes - a table of TUNE_POINTS classes, which the caller frees; NULL: no memory
 * (no error text). */
uint8_t *tune_unicode_classes(void);

/* tune_unicode_rank - canonical combining class; 0: a starter.
 * tune_unicode_decompose - full canonical decomposition into d. Returns its length; 1: the
 * character itself.
 * tune_unicode_compose - the composition of a and b; 0: none. */
int tune_unicode_rank(uint32_t c);
int tune_unicode_decompose(uint32_t c, uint32_t d[4]);
uint32_t tune_unicode_compose(uint32_t a, uint32_t b);

/* tune_unicode_lower - the lower case of one character, as Python's str.lower() has it. Two need
 * more than that, and the caller decides: U+0130 (here "i") and a capital sigma at a word's end.
 * tune_unicode_is_word - whether Python's \w takes c: a letter, a number or "_".
 * tune_unicode_is_space - whether Python's str.split() splits at c. */
uint32_t tune_unicode_lower(uint32_t c);
bool tune_unicode_is_word(uint32_t c);
bool tune_unicode_is_space(uint32_t c);

/* tune_utf8_next - decode the character at *p and move *p behind it. Valid UTF-8 only.
 * tune_utf8_before - decode the character that ends at p.
 * tune_utf8_put - encode c into to[4]. Returns the number of bytes. */
static inline uint32_t tune_utf8_next(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    if (s[0] < 0x80) {
        *p += 1;
        return s[0];
    }
    if (s[0] < 0xE0) {
        *p += 2;
        return (uint32_t)(s[0] & 31) << 6 | (s[1] & 63);
    }
    if (s[0] < 0xF0) {
        *p += 3;
        return (uint32_t)(s[0] & 15) << 12 | (uint32_t)(s[1] & 63) << 6 | (s[2] & 63);
    }
    *p += 4;
    return (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 63) << 12 | (uint32_t)(s[2] & 63) << 6 |
           (s[3] & 63);
}

static inline uint32_t tune_utf8_before(const char *p)
{
    do
        p--;
    while (((unsigned char)*p & 0xC0) == 0x80);
    return tune_utf8_next(&p);
}

static inline int tune_utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 63));
    to[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

#endif
