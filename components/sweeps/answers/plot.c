/* plot.c - the points of a plot, as a table: property, experiment, dimensions, x, value, and the
 * spread of several results. Rows with `line_over` are points of a line by a model (margins.h). */
#include <math.h>

#include "sweeps/answers/margins.h"

static int add_columns(struct points *p, bool lines)
{
    static const char *const figures[] = {"x", "value", "lowest", "highest", "results"}, *const of_lines[] = {"line_over", "line_by"};
    struct tune_subject *s = p->s;
    struct tune_answer_table *a = s->a;
    tune_answer_column(a, "property");
    tune_answer_column(a, "unit");
    tune_answer_column(a, "experiment");
    for (int d = 0; d < s->space->count; d++) {
        struct tune_answer_column *c = tune_answer_column(a, s->space->names[d]);
        c->dimension = true;
        TRY(tune_answer_levels(a, c, p->levels[d].values, p->levels[d].count));
    }
    for (int i = p->x < 0; i < 5; i++) {
        struct tune_answer_column *c = tune_answer_column(a, figures[i]);
        c->measured = true;
        const struct tune_target *t = i == 0 ? tune_subject_target(s, -1, p->properties[p->x]) : NULL;
        c->unit = t ? t->unit : "";
    }
    tune_answer_columns(s->a, of_lines, lines ? 2 : 0);
    return 0;
}

static int add_point(struct points *p, const struct point *at, bool lines)
{
    struct tune_subject *s = p->s;
    struct tune_answer_table *a = s->a;
    const struct tune_target *t = tune_subject_target(s, at->binding, p->properties[at->property]);
    tune_answer_text(a, p->properties[at->property]);
    tune_answer_text(a, t ? t->unit : "");
    tune_answer_text(a, s->bindings[at->binding].identifier);
    for (int d = 0; d < s->space->count; d++)
        tune_answer_space_value(a, &p->levels[d].values[at->at[d]]);
    if (p->x >= 0)
        tune_answer_figure(a, at->x, false);
    tune_answer_figure(a, at->value, false);
    tune_answer_figure(a, at->spread.low, false);
    tune_answer_figure(a, at->spread.high, false);
    tune_answer_whole(a, at->spread.count);
    for (int i = 0; i < 2 && lines; i++)
        tune_answer_text(a, NULL);
    return tune_answer_end_row(a);
}

static int add_points(struct points *p)
{
    bool lines = tune_margins_wanted(p);
    TRY(add_columns(p, lines));
    for (int64_t i = 0; i < p->count; i++)
        TRY(add_point(p, &p->all[i], lines));
    if (p->without_x > 0)
        tune_answer_add_note(p->s->a, TUNE_NOTE_WARNING, "%lld points have no %s",
                             (long long)p->without_x, p->properties[p->x]);
    return lines ? tune_margins_add(p) : 0;
}

static int plot(struct tune_subject *s)
{
    struct points p = {0};
    int code = tune_entity_figures_read(&p, s, true);
    if (code == 0)
        code = add_points(&p);
    tune_entity_figures_free(&p);
    return code;
}

struct tune_answer_table *tune_ask_plot(const struct tune_question *q)
{
    return tune_subject_answer(q, "plot", plot);
}
