/* text.c - texts cut, aligned and made plain. */
#include "views/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/json.h"
#include "core/print.h"

/* The first and last code points of ranges that take no column, and two columns. Source: Unicode
 * 15, general categories Mn, Me and Cf of the scripts in wide use; EastAsianWidth.txt, W and F. */
static const uint32_t none[][2] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x5BF, 0x5BF},   {0x5C1, 0x5C2},   {0x5C4, 0x5C5},
    {0x610, 0x61A},   {0x64B, 0x65F},   {0x670, 0x670},   {0x6D6, 0x6DC},   {0x6DF, 0x6E4},   {0x6E7, 0x6E8},
    {0x6EA, 0x6ED},   {0x900, 0x902},   {0x93A, 0x93A},   {0x93C, 0x93C},   {0x941, 0x948},   {0x94D, 0x94D},
    {0x981, 0x981},   {0x9BC, 0x9BC},   {0x9C1, 0x9C4},   {0x9CD, 0x9CD},   {0xE31, 0xE31},   {0xE34, 0xE3A},
    {0xE47, 0xE4E},   {0x1AB0, 0x1ACE}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
    {0x20D0, 0x20F0}, {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
    {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};
static const uint32_t wide[][2] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4C6},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FC}, {0x1F7E0, 0x1F7EB},
    {0x1F90C, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};

static bool is_in(const uint32_t ranges[][2], size_t count, uint32_t c)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (c > ranges[middle][1])
            low = middle + 1;
        else
            count = middle;
        if (c >= ranges[middle][0] && c <= ranges[middle][1])
            return true;
    }
    return false;
}

/* Columns of the character at text, and its bytes. */
static int character(const char *text, size_t *bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0xC0 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    uint32_t c = n == 1 ? s[0] : s[0] & (0xFFu >> (n + 1));
    *bytes = 1;
    for (; *bytes < n && (s[*bytes] & 0xC0) == 0x80; ++*bytes)
        c = c << 6 | (s[*bytes] & 0x3F);
    if (c < 0x300)
        return n > 1 || (s[0] & 0xC0) != 0x80;
    return is_in(none, sizeof none / sizeof *none, c) ? 0 : 1 + is_in(wide, sizeof wide / sizeof *wide, c);
}

int tune_width(const char *text)
{
    int width = 0;
    for (size_t n; *text; text += n)
        width += character(text, &n);
    return width;
}

size_t tune_bytes_of(const char *text, int columns)
{
    size_t n = 0, bytes;
    for (; text[n]; n += bytes) {
        columns -= character(text + n, &bytes);
        if (columns < 0)
            break;
    }
    return n;
}

char *tune_plain(const char *text)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return NULL;
    tune_print_line_of(out, text);
    if (fclose(out) != 0) {
        free(line);
        return NULL;
    }
    tune_utf8_mend(line, size);
    return line;
}

int tune_plain_width(const char *text)
{
    char *plain = tune_plain(text);
    int width = plain ? tune_width(plain) : 0;
    free(plain);
    return width;
}

int tune_plain_widest(const char *const *texts, int count)
{
    int most = 0;
    for (int i = 0; i < count; i++) {
        int n = tune_plain_width(texts[i]);
        most = n > most ? n : most;
    }
    return most;
}

void tune_put_plain(FILE *out, const char *text)
{
    char *plain = tune_plain(text);
    fputs(plain ? plain : "", out);
    free(plain);
}

void tune_put_in(FILE *out, const char *text, int width, char side, bool unicode)
{
    char *plain = tune_plain(text);
    int space = width - (plain ? tune_width(plain) : 0);
    if (space >= 0) {
        int before = side == '<' ? 0 : side == '>' ? space : space / 2;
        fprintf(out, "%*s%s%*s", before, "", plain ? plain : "", space - before, "");
    } else if (width > 0) {
        fprintf(out, "%.*s%s", (int)tune_bytes_of(plain, width - 1), plain, unicode ? "\u2026" : "~");
    }
    free(plain);
}

void tune_put_folded(FILE *out, const char *lead, const char *text, int width)
{
    char *plain = tune_plain(text), *rest = plain;
    int indent = tune_width(lead), used = indent;
    fputs(lead, out);
    for (char *word; rest && (word = strsep(&rest, " "));) {
        int w = tune_width(word), space = used > indent;
        if (width > 0 && used > indent && used + 1 + w > width) {
            fprintf(out, "\n%*s", indent, "");
            used = indent;
            space = 0;
        }
        fprintf(out, "%s%s", space ? " " : "", word);
        used += space + w;
    }
    fputc('\n', out);
    free(plain);
}

void tune_put_note(FILE *out, int indent, const char *note, const char *more, int width)
{
    char *text = NULL, *lead = NULL;
    note = note ? note : "";
    more = more ? more : "";
    if (!*note && !*more)
        return;
    if (asprintf(&text, "%s%s%s", note, *note && *more ? "; " : "", more) < 0)
        text = NULL;
    if (asprintf(&lead, "%*s", indent, "") < 0)
        lead = NULL;
    if (text && lead)
        tune_put_folded(out, lead, text, width);
    free(text);
    free(lead);
}

char tune_key_letter(int i)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return i >= 0 && i < (int)sizeof letters - 1 ? letters[i] : ' ';
}

void tune_put_key(FILE *out, const char *const *names, int count, int indent, int width, bool unicode)
{
    int column = 0;
    for (int i = 0; i < count && tune_key_letter(i) != ' '; i++) {
        int size = tune_plain_width(names[i]), most = width - indent - 2;
        size = size < most ? size : most < 1 ? 1 : most;
        if (column > 0 && column + 3 + 2 + size > width) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s%c ", column ? 3 : indent, "", tune_key_letter(i));
        tune_put_in(out, names[i], size, '<', unicode);
        column += (column ? 3 : indent) + 2 + size;
    }
    if (column > 0)
        fputc('\n', out);
}
