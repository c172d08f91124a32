/* plot.c - draw the points of tune_ask_plot in the terminal and as SVG. */
#include "../drawing.h"
#include "samples.h"
#include "sweeps/answers/print.h"
#include "sweeps/charts/picture.h"
#include "views/text.h"

static int draw_svg(const void *what, FILE *out)
{
    return tune_picture_svg(what, out);
}

/* In a terminal, print the effect of each of many dimensions, all else equal. Plain means would be
 * misleading, because the points may differ in other dimensions, too. */
static int print_effects(const struct samples_flags *my, const struct tune_question *q, const struct tune_terminal *how, FILE *out)
{
    struct tune_question question = *q;
    question.x = NULL;
    question.maximize = q->properties ? NULL : q->maximize; /* for plot, they also mark the best */
    question.minimize = q->properties || q->maximize ? NULL : q->minimize;
    struct tune_answer_table *a = samples_write_flags(my, tune_ask_effect(&question));
    if (!a)
        return -1;
    int code = tune_answer_print(a, how->width, how->unicode, out);
    for (int i = 0; i < a->note_count; i++)
        if (a->notes[i].position == TUNE_NOTE_WARNING)
            tune_put_folded(out, "# ", a->notes[i].text, how->width);
    tune_answer_free(a);
    return code;
}

static int draw(const struct samples_flags *my, const struct tune_picture *p, const struct tune_question *q, FILE *out)
{
    struct tune_terminal how = drawing_terminal(my->width, 16, false, my->color);
    how.color = how.color && (out == stdout || !strcmp(my->color, "always"));
    if (!drawing_is_stdout(my->svg))
        TRY(tune_picture_fits_terminal(p) ? tune_picture_terminal(p, &how, out) : print_effects(my, q, &how, out));
    return my->svg ? drawing_write(my->svg, draw_svg, p) : 0;
}

int samples_draw(const struct samples_flags *my, const struct tune_question *q, FILE *out)
{
    struct tune_answer_table *a = samples_write_flags(my, tune_ask_plot(q));
    struct tune_picture *p = a ? tune_picture_new(a, q, my->logarithmic) : NULL;
    int code = p ? draw(my, p, q, out) : -1;
    for (int i = 0; a && i < a->note_count && code == 0; i++)
        if (a->notes[i].position == TUNE_NOTE_WARNING)
            fprintf(stderr, "samples: %s\n", a->notes[i].text);
    tune_picture_free(p);
    tune_answer_free(a);
    return code;
}
