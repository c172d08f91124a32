/* text.c - texts cut, aligned and made plain. */
#include "views/text.h"

#include <stdlib.h>
#include <string.h>

#include "files/json.h"
#include "core/print.h"

int tune_width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

size_t tune_bytes_of(const char *text, int columns)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (((unsigned char)text[n] & 0xC0) != 0x80 && columns-- <= 0) /* a character begins */
            break;
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

void tune_put_note(FILE *out, int indent, const char *note, const char *more)
{
    note = note ? note : "";
    more = more ? more : "";
    if (!*note && !*more)
        return;
    fprintf(out, "%*s", indent, "");
    tune_put_plain(out, note);
    fputs(*note && *more ? "; " : "", out);
    tune_put_plain(out, more);
    fputc('\n', out);
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
