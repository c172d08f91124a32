/* print.c - cells and notes that both tables share. */
#include "fit.h"

#include <string.h>

#include "core/print.h"
#include "core/try.h"

void fit_put_bytes(struct tune_table *t, int64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", (double)bytes / GIB);
    tune_table_shown(t, (double)bytes, text);
}

void fit_put_most(struct tune_table *t, int most)
{
    char text[16];
    snprintf(text, sizeof text, "%d", most);
    tune_table_shown(t, most, most ? text : "no");
}

int fit_note_width(int width)
{
    return width == 0 || width > 100 ? 100 : width;
}

void fit_note(int width, const char *format, ...)
{
    char text[1024];
    int column = 0;
    FORMAT(text, format);
    tune_blank_controls(text);
    for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        int n = (int)strlen(word);
        if (column > 0 && column + 1 + n > width) {
            puts("");
            column = 0;
        }
        column += printf("%s%s", column ? " " : "# ", word);
    }
    puts("");
}
