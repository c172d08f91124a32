/* frame.c - all cells to the right, as wide as the widest with two blanks before it; headings with one, or two over numbers. */
#include "spaces/frame.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"

enum { MOST_COLUMNS = 16 };

struct tune_frame {
    const char *const *headings;
    int columns, count, room;
    bool numbers[MOST_COLUMNS];
    char **cells;
    bool short_of_memory;
};

struct tune_frame *tune_frame_new(const char *const *headings, int columns)
{
    struct tune_frame *f = calloc(1, sizeof *f);
    if (!f || columns > MOST_COLUMNS) {
        free(f);
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a table");
        return NULL;
    }
    f->headings = headings;
    f->columns = columns;
    return f;
}

void tune_frame_free(struct tune_frame *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->count; i++)
        free(f->cells[i]);
    free(f->cells);
    free(f);
}

void tune_frame_numbers(struct tune_frame *f, int column)
{
    f->numbers[column] = true;
}

void tune_frame_cell(struct tune_frame *f, const char *text)
{
    char *plain = NULL;
    size_t size;
    if (f->count == f->room) {
        int room = f->room ? 2 * f->room : 64;
        void *grown = realloc(f->cells, (size_t)room * sizeof *f->cells);
        if (!grown) {
            f->short_of_memory = true;
            return;
        }
        f->cells = grown;
        f->room = room;
    }
    FILE *out = text ? open_memstream(&plain, &size) : NULL;
    if (out) {
        tune_print_line_of(out, text);
        if (fclose(out) != 0) {
            free(plain);
            plain = NULL;
        }
    }
    f->short_of_memory = f->short_of_memory || !plain;
    f->cells[f->count++] = plain;
}

static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

int tune_frame_print(struct tune_frame *f, int indent, FILE *out)
{
    int widths[MOST_COLUMNS], rows = f->count / f->columns, index = snprintf(NULL, 0, "%d", rows > 0 ? rows - 1 : 0);
    if (f->short_of_memory) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a table");
        return -1;
    }
    for (int c = 0; c < f->columns; c++) {
        widths[c] = width(f->headings[c]) + f->numbers[c];
        for (int r = 0; r < rows; r++) {
            int w = width(f->cells[r * f->columns + c]) + 1;
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    for (int r = -1; r < rows; r++) {
        fprintf(out, "%*s", indent, "");
        if (r < 0)
            fprintf(out, "%*s", index, "");
        else
            fprintf(out, "%-*d", index, r);
        for (int c = 0; c < f->columns; c++) {
            const char *text = r < 0 ? f->headings[c] : f->cells[r * f->columns + c];
            fprintf(out, " %*s%s", widths[c] - width(text), "", text);
        }
        fputc('\n', out);
    }
    return 0;
}
