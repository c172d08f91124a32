/* where.c - compile an expression for each experiment of a space, and evaluate it. */
#include "sweeps/discovery/where.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"

struct tune_where {
    const struct tune_space *space;
    const struct tune_binding *bindings;
    struct tune_expression **compiled; /* [reference_count] NULL: the experiment lacks a name */
    struct tune_value *inputs;         /* scratch */
};

static int compile(struct tune_where *w, const char *text, const char **names)
{
    bool any = w->space->reference_count == 0;
    for (int p = w->space->reference_count - 1; p >= 0; p--) {
        int count = tune_binding_names(&w->bindings[p], w->space, names);
        w->compiled[p] = tune_expression_query(text, names, count, "`where`");
        any = any || w->compiled[p];
        if (!w->compiled[p] && tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
    }
    return any ? 0 : -1;
}

/* A property is known only after a measurement. The error says so, if the text names one. */
static void explain(const char *text, const struct tune_space *space, const struct tune_binding *bindings)
{
    bool unknown = strstr(tune_error_message(), "unknown name");
    for (int p = 0; p < space->reference_count && unknown; p++)
        for (int i = 0; i < bindings[p].experiment->target_count; i++)
            if (tune_name_used(text, bindings[p].experiment->targets[i].name))
                tune_error_usage("`where`: %s is measured, and this `where` is asked before a measurement; a sweep with `order` model and "
                                 "`where_target` looks for entities by measured properties", bindings[p].experiment->targets[i].name);
}

struct tune_where *tune_where_new(const char *text, const struct tune_space *space, const struct tune_binding *bindings)
{
    size_t most = 1;
    for (int p = 0; p < space->reference_count; p++)
        if ((size_t)(bindings[p].experiment->input_count + space->count) > most)
            most = (size_t)(bindings[p].experiment->input_count + space->count);
    struct tune_where *w = calloc(1, sizeof *w);
    const char **names = calloc(most, sizeof *names);
    if (w) {
        *w = (struct tune_where){.space = space, .bindings = bindings};
        w->compiled = calloc((size_t)space->reference_count + 1, sizeof *w->compiled);
        w->inputs = calloc(most, sizeof *w->inputs);
    }
    bool memory = w && names && w->compiled && w->inputs;
    if (!memory)
        tune_error_cannot("out of memory for an expression");
    int code = memory ? compile(w, text, names) : -1;
    if (memory && code < 0)
        explain(text, space, bindings);
    if (code < 0) {
        tune_where_free(w);
        w = NULL;
    }
    free(names);
    return w;
}

int tune_where_meets(const struct tune_where *w, int p, const struct tune_value *entity)
{
    if (!w || !w->compiled[p])
        return !w;
    tune_binding_values(&w->bindings[p], w->space, entity, w->inputs);
    return tune_expression_true(w->compiled[p], w->inputs);
}

void tune_where_free(struct tune_where *w)
{
    if (!w)
        return;
    for (int p = 0; w->compiled && p < w->space->reference_count; p++)
        tune_expression_free(w->compiled[p]);
    free(w->compiled);
    free(w->inputs);
    free(w);
}
