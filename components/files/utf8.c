/* utf8.c - whether bytes are UTF-8, and what they may be if not. */
#include "files/json.h"

#include <string.h>

bool tune_utf8_valid(const char *text, size_t size, size_t *bad)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0;
    while (i < size) {
        uint64_t eight;
        while (size - i >= 8 && (memcpy(&eight, s + i, 8), !(eight & 0x8080808080808080u)))
            i += 8;
        if (i >= size)
            break;
        unsigned c = s[i], n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
        bool good = n > 0 && n <= size - i;
        for (unsigned k = 1; good && k < n; k++)
            good = (s[i + k] & 0xC0) == 0x80;
        if (good && n == 3) /* no overlong forms, no surrogates */
            good = !(c == 0xE0 && s[i + 1] < 0xA0) && !(c == 0xED && s[i + 1] > 0x9F);
        if (good && n == 4) /* no overlong forms, nothing above U+10FFFF */
            good = !(c == 0xF0 && s[i + 1] < 0x90) && !(c == 0xF4 && s[i + 1] > 0x8F);
        if (!good) {
            if (bad)
                *bad = i;
            return false;
        }
        i += n;
    }
    return true;
}

void tune_utf8_mend(char *text, size_t size)
{
    size_t bad;
    for (size_t at = 0; !tune_utf8_valid(text + at, size - at, &bad); at += bad + 1)
        text[at + bad] = '?';
}

const char *tune_utf8_advice(const char *text, size_t size)
{
    size_t run = 0, longest = 0, valid = 0, letters = 0, bad;
    for (size_t i = 0; i < size; i++) {
        letters += (text[i] | 32) >= 'a' && (text[i] | 32) <= 'z';
        run = (unsigned char)text[i] < 0x80 ? 0 : run + 1;
        longest = run > longest ? run : longest;
        for (size_t n = 2; n <= 4 && i + n <= size && (unsigned char)text[i] >= 0x80; n++)
            valid += tune_utf8_valid(text + i, n, &bad);
    }
    if (longest == 0 || letters == 0 || valid > 0 || memchr(text, 0, size))
        return ""; /* UTF-8 with a damaged byte, or no text */
    if (longest <= 2) /* letters such as e with an accent stand alone, or in twos */
        return "; it looks like Latin-1: save it as UTF-8 (iconv -f WINDOWS-1252 -t UTF-8)";
    return "; it is of another encoding: save it as UTF-8 (iconv -f ENCODING -t UTF-8)";
}
