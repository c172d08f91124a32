/* walk.c - turn the wheels of a walk, and remember which constraints hold. */
#include "sweeps/spaces/walk.h"

#include <stdlib.h>

static void set_value(struct tune_walk *w, const struct wheel *wheel)
{
    tune_domain_value(&w->space->dimensions[wheel->dimension].domain, wheel->at, &w->values[wheel->dimension]);
}

/* Forget the results of constraints that use wheel k, because it moved. */
static void forget_checks(struct tune_walk *w, int k)
{
    while (w->held > 0 && w->level[w->held - 1] >= k)
        w->held--;
}

static void set_levels(struct tune_walk *w)
{
    int before = -1;
    for (int c = 0; c < w->space->constraint_count; c++) {
        w->last[c] = w->count - 1;
        while (w->last[c] >= 0 && !tune_expression_uses(w->space->constraints[c], w->wheels[w->last[c]].dimension))
            w->last[c]--;
        w->level[c] = before = w->last[c] > before ? w->last[c] : before;
    }
}

struct tune_walk *tune_walk_new(const struct tune_space *s, const int *wheels, int count)
{
    struct tune_walk *w = calloc(1, sizeof *w);
    if (w) {
        *w = (struct tune_walk){.space = s, .count = count};
        w->wheels = calloc((size_t)count + 1, sizeof *w->wheels);
        w->level = calloc((size_t)s->constraint_count + 1, sizeof *w->level);
        w->last = calloc((size_t)s->constraint_count + 1, sizeof *w->last);
        w->unsolved = calloc((size_t)s->constraint_count + 1, sizeof *w->unsolved);
        w->values = calloc((size_t)s->count + 1, sizeof *w->values);
    }
    if (!w || !w->wheels || !w->level || !w->last || !w->unsolved || !w->values) {
        tune_walk_free(w);
        tune_error_cannot("out of memory for a space of %d dimensions", s->count);
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        w->wheels[k] = (struct wheel){wheels[k], 0, tune_domain_size(&s->dimensions[wheels[k]].domain)};
        set_value(w, &w->wheels[k]);
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
    free(w->last);
    free(w->unsolved);
    free(w->values);
    free(w);
}

void tune_walk_set(struct tune_walk *w, int k, tune_index at)
{
    w->wheels[k].at = at;
    set_value(w, &w->wheels[k]);
    forget_checks(w, k);
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
            set_value(w, &w->wheels[i]);
        }
    return moved;
}

/* ---- linear comparisons ---- */

typedef tune_signed_index wide;

/* True if all values of the domain are whole numbers. */
static bool is_whole(const struct tune_domain *d)
{
    for (int i = 0; i < d->count; i++)
        if (d->values[i].type != TUNE_VALUE_INT && d->values[i].type != TUNE_VALUE_BOOL)
            return false;
    return d->type == TUNE_BINARY || d->count > 0 || (d->low.type == TUNE_VALUE_INT && d->interval.type == TUNE_VALUE_INT);
}

static wide divide_down(wide a, wide b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Find the next index after `after` for which the comparison of a*x + b with 0 holds. x is low +
 * index * interval. */
static wide next_in_range(const struct tune_domain *d, const struct tune_linear *l, wide after, wide size)
{
    bool flip = l->op == TUNE_GREATER || l->op == TUNE_GREATER_EQUAL, strict = l->op == TUNE_GREATER || l->op == TUNE_LESS;
    wide a = flip ? -(wide)l->a : l->a, b = flip ? -(wide)l->b : l->b; /* a*x + b < 0, or <= 0 */
    wide limit = divide_down(strict ? -b - 1 : -b, a < 0 ? -a : a), step = d->interval.integer;
    if (a > 0) /* x <= limit */
        return d->low.integer + (after + 1) * step <= limit ? after + 1 : size;
    wide least = -limit, first = least <= d->low.integer ? 0 : (least - d->low.integer + step - 1) / step;
    return first > after ? (first < size ? first : size) : after + 1;
}

bool tune_walk_solve(const struct tune_walk *w, int c, int k, wide after, tune_index *next)
{
    const struct tune_domain *d = &w->space->dimensions[w->wheels[k].dimension].domain;
    tune_index size = w->wheels[k].size, at;
    struct tune_linear l;
    if (size > (tune_index)INT64_MAX || !is_whole(d) ||
        !tune_expression_linear(w->space->constraints[c], w->wheels[k].dimension, w->values, &l))
        return false;
    *next = size;
    if (l.a == 0)
        return true;
    if (l.op == TUNE_EQUAL) {
        struct tune_value x = tune_value_int(l.b == INT64_MIN || l.a == -1 ? l.b : -l.b / l.a);
        if (l.b != INT64_MIN && (wide)x.integer * l.a == -(wide)l.b && tune_domain_find(d, &x, &at) && (wide)at > after)
            *next = at;
        return true;
    }
    if (d->count || d->type == TUNE_BINARY)
        return false;
    *next = (tune_index)next_in_range(d, &l, after, (wide)size);
    return true;
}

bool tune_walk_solved(const struct tune_walk *w, int k, int *constraint)
{
    struct tune_linear l;
    for (int c = 0; c < w->space->constraint_count; c++)
        if (w->last[c] == k && is_whole(&w->space->dimensions[w->wheels[k].dimension].domain) &&
            tune_expression_linear(w->space->constraints[c], w->wheels[k].dimension, w->values, &l) && l.op == TUNE_EQUAL && l.a != 0 && l.fixed) {
            *constraint = c;
            return true;
        }
    return false;
}

int tune_walk_allowed(struct tune_walk *w, int *failed)
{
    enum { TRIED = 8 };
    for (; w->held < w->space->constraint_count; w->held++) {
        int c = w->held, holds = tune_expression_true(w->space->constraints[c], w->values), k = w->last[c];
        tune_index next;
        if (holds > 0)
            continue;
        *failed = k;
        if (holds < 0 || k < 0 || w->unsolved[c] >= TRIED)
            return holds;
        bool solved = tune_walk_solve(w, c, k, (wide)w->wheels[k].at, &next);
        w->unsolved[c] = solved ? 0 : w->unsolved[c] + 1;
        if (solved)
            w->wheels[k].at = next - 1; /* the next turn moves it to `next` */
        return 0;
    }
    return 1;
}
