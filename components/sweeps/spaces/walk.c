/* walk.c - turn the wheels of a walk, and remember which constraints hold. */
#include "sweeps/spaces/walk.h"

#include <stdlib.h>

static void show(struct tune_walk *w, const struct wheel *wheel)
{
    tune_domain_value(&w->space->dimensions[wheel->dimension].domain, wheel->at, &w->values[wheel->dimension]);
}

/* Wheel k moved: forget the results of constraints that use it. */
static void forget(struct tune_walk *w, int k)
{
    while (w->held > 0 && w->level[w->held - 1] >= k)
        w->held--;
}

static void set_levels(struct tune_walk *w)
{
    int before = -1;
    for (int c = 0; c < w->space->constraint_count; c++) {
        for (int k = w->count - 1; k > before; k--)
            if (tune_expression_uses(w->space->constraints[c], w->wheels[k].dimension))
                before = k;
        w->level[c] = before;
    }
}

struct tune_walk *tune_walk_new(const struct tune_space *s, const int *wheels, int count)
{
    struct tune_walk *w = calloc(1, sizeof *w);
    if (w) {
        *w = (struct tune_walk){.space = s, .count = count};
        w->wheels = calloc((size_t)count + 1, sizeof *w->wheels);
        w->level = calloc((size_t)s->constraint_count + 1, sizeof *w->level);
        w->values = calloc((size_t)s->count + 1, sizeof *w->values);
    }
    if (!w || !w->wheels || !w->level || !w->values) {
        tune_walk_free(w);
        tune_error_cannot("out of memory for a space of %d dimensions", s->count);
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        w->wheels[k] = (struct wheel){wheels[k], 0, tune_domain_size(&s->dimensions[wheels[k]].domain)};
        show(w, &w->wheels[k]);
    }
    set_levels(w);
    return w;
}

void tune_walk_free(struct tune_walk *w)
{
    if (!w)
        return;
    free(w->wheels);
    free(w->level);
    free(w->values);
    free(w);
}

void tune_walk_set(struct tune_walk *w, int k, tune_index at)
{
    w->wheels[k].at = at;
    show(w, &w->wheels[k]);
    forget(w, k);
}

int tune_walk_turn(struct tune_walk *w, int k)
{
    int moved = k;
    while (moved >= 0 && w->wheels[moved].at + 1 == w->wheels[moved].size)
        moved--;
    if (moved < 0)
        return -1;
    tune_walk_set(w, moved, w->wheels[moved].at + 1);
    for (int i = moved + 1; i < w->count; i++)
        if (w->wheels[i].at) {
            w->wheels[i].at = 0;
            show(w, &w->wheels[i]);
        }
    return moved;
}

int tune_walk_allowed(struct tune_walk *w, int *failed)
{
    for (; w->held < w->space->constraint_count; w->held++) {
        int holds = tune_expression_true(w->space->constraints[w->held], w->values);
        if (holds <= 0) {
            *failed = w->level[w->held];
            return holds;
        }
    }
    return 1;
}
