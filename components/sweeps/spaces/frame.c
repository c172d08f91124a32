/* frame.c - right-aligned cells, as wide as the widest, with two blanks before them; headings have
 * one blank, or two over numbers. */
#include "core/array.h"
#include "sweeps/spaces/frame.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/print.h"

struct tune_frame {
    char **headings;
    int columns;
    int64_t count;
    bool *numbers; /* [columns] */
    char **cells;
    bool short_of_memory;
};

/* A copy of text with control characters escaped, or NULL. */
static char *plain_copy(const char *text)
{
    char *plain = NULL;
    size_t size;
    FILE *out = text ? open_memstream(&plain, &size) : NULL;
    if (!out)
        return NULL;
    tune_print_line_of(out, text);
    if (fclose(out) == 0)
        return plain;
    free(plain);
    return NULL;
}

struct tune_frame *tune_frame_new(const char *const *headings, int columns)
{
    struct tune_frame *f = calloc(1, sizeof *f);
    bool good = f && (f->numbers = calloc((size_t)columns + 1, sizeof *f->numbers)) &&
                (f->headings = calloc((size_t)columns + 1, sizeof *f->headings));
    for (; good && f->columns < columns; f->columns++)
        good = (f->headings[f->columns] = plain_copy(headings[f->columns])) != NULL;
    if (good)
        return f;
    tune_frame_free(f);
    tune_error_cannot("out of memory for a table");
    return NULL;
}

void tune_frame_free(struct tune_frame *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->columns; i++)
        free(f->headings[i]);
    for (int64_t i = 0; i < f->count; i++)
        free(f->cells[i]);
    free(f->headings);
    free(f->numbers);
    free(f->cells);
    free(f);
}

void tune_frame_numbers(struct tune_frame *f, int column)
{
    f->numbers[column] = true;
}

void tune_frame_cell(struct tune_frame *f, const char *text)
{
    if (!f)
        return;
    if (!tune_array_fit(&f->cells, (size_t)f->count, sizeof *f->cells)) {
        f->short_of_memory = true;
        return;
    }
    char *plain = plain_copy(text);
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

static int print(const struct tune_frame *f, int indent, FILE *out)
{
    int64_t rows = f->count / f->columns;
    int index = snprintf(NULL, 0, "%lld", (long long)(rows > 0 ? rows - 1 : 0));
    int *widths = calloc((size_t)f->columns + 1, sizeof *widths);
    if (f->short_of_memory || !widths) {
        free(widths);
        return tune_error_cannot("out of memory for a table");
    }
    for (int c = 0; c < f->columns; c++) {
        widths[c] = width(f->headings[c]) + f->numbers[c];
        for (int64_t r = 0; r < rows; r++) {
            int w = width(f->cells[r * f->columns + c]) + 1;
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    for (int64_t r = -1; r < rows; r++) {
        fprintf(out, "%*s", indent, "");
        if (r < 0)
            fprintf(out, "%*s", index, "");
        else
            fprintf(out, "%-*lld", index, (long long)r);
        for (int c = 0; c < f->columns; c++) {
            const char *text = r < 0 ? f->headings[c] : f->cells[r * f->columns + c];
            fprintf(out, " %*s%s", widths[c] - width(text), "", text);
        }
        fputc('\n', out);
    }
    free(widths);
    return 0;
}

int tune_frame_print(struct tune_frame *f, int indent, FILE *out)
{
    int code = f ? print(f, indent, out) : -1;
    tune_frame_free(f);
    return code;
}
