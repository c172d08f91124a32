/* count.c - count the entities that constraints allow, and list them if there are few.
 *
 * Constraints without a common dimension are counted separately, and the counts are multiplied.
 * Each such part is walked if few combinations remain after linear equations are solved. Otherwise
 * it is sampled. */
#include <math.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/random.h"
#include "core/try.h"
#include "sweeps/spaces/walk.h"

enum { COUNTED = 10000000 }; /* maximum combinations and steps of a walk */
enum { FEW = 10 };           /* minimum sampled entities that pass, for an estimate */

/* Constraints that share dimensions, directly or through other constraints. */
struct part {
    const struct tune_space *space;
    struct tune_space own;     /* the space with the part's constraints only */
    int wheels[TUNE_SPACE_DIMENSIONS], count;
    double low, high;          /* bounds of the number of entities; NAN: unknown */
};

/* Add a wheel. The largest dimension is last: if an equation decides it, it is not walked. */
static void add_wheel(struct part *p, int dimension)
{
    tune_index size = tune_domain_size(&p->space->dimensions[dimension].domain);
    int at = p->count++;
    for (; at > 0 && tune_domain_size(&p->space->dimensions[p->wheels[at - 1]].domain) > size; at--)
        p->wheels[at] = p->wheels[at - 1];
    p->wheels[at] = dimension;
}

/* Take the constraints of one part. left[] is true for constraints that are not in a part yet. */
static bool next_part(const struct tune_space *s, bool *left, struct tune_expression **constraints, struct part *p)
{
    bool used[TUNE_SPACE_DIMENSIONS] = {false}, in[TUNE_SPACE_CONSTRAINTS] = {false}, more = true;
    int first = 0;
    while (first < s->constraint_count && !left[first])
        first++;
    if (first == s->constraint_count)
        return false;
    *p = (struct part){.space = s, .own = *s};
    in[first] = true;
    while (more) {
        more = false;
        for (int c = 0; c < s->constraint_count; c++)
            for (int k = 0; k < s->count && left[c]; k++)
                in[c] = in[c] || (used[k] && tune_expression_uses(s->constraints[c], k));
        for (int c = 0; c < s->constraint_count; c++)
            for (int k = 0; k < s->count && in[c]; k++)
                if (!used[k] && tune_expression_uses(s->constraints[c], k)) {
                    used[k] = more = true;
                    add_wheel(p, k);
                }
    }
    p->own.constraints = constraints;
    p->own.constraint_count = 0;
    for (int c = 0; c < s->constraint_count; c++)
        if (in[c]) {
            constraints[p->own.constraint_count++] = s->constraints[c];
            left[c] = false;
        }
    return true;
}

/* Count by a walk of at most `steps` steps. 1; 0: there were too few steps; -1 with an error. */
static int walk(struct tune_walk *w, int64_t steps, double *allowed)
{
    uint64_t count = 0;
    for (int at = 0, next; at >= 0; at = tune_walk_turn(w, next)) {
        int holds = tune_walk_allowed(w, &next);
        TRY(holds);
        if (steps-- == 0)
            return 0;
        if (holds) {
            count++;
            next = w->count - 1;
        }
    }
    *allowed = (double)count;
    return 1;
}

/* Scale the 64-bit number u to an integer below n. */
static tune_index below(tune_index n, uint64_t u)
{
    return (n >> 64) * u + ((tune_index)(uint64_t)n * u >> 64);
}

/* Draw the wheels, and compute those that an equation decides. 1: the constraints hold; 0: they do
 * not; -1 with an error. */
static int draw(struct tune_walk *w, const int *equation, uint64_t i)
{
    int failed;
    for (int k = 0; k < w->count; k++) {
        tune_index at = w->wheels[k].size;
        if (equation[k] < 0)
            at = below(at, tune_random_u64(0, (uint64_t)k, i));
        else if (!tune_walk_solve(w, equation[k], k, -1, &at) || at == w->wheels[k].size)
            return 0;
        tune_walk_set(w, k, at);
    }
    return tune_walk_allowed(w, &failed);
}

/* Estimate a part by sampling. The 95 % confidence interval is that of Wilson 1927. Returns the
 * number of samples that met the constraints; -1 with an error. */
static int sample(struct tune_walk *w, const int *equation, double combinations, struct part *p)
{
    const double n = TUNE_SPACE_SAMPLED, z = 1.959963984540054;
    int met = 0;
    for (uint64_t i = 0; i < TUNE_SPACE_SAMPLED; i++) {
        int holds = draw(w, equation, i);
        TRY(holds);
        met += holds;
    }
    double share = met / n, shrink = 1 + z * z / n, middle = (share + z * z / (2 * n)) / shrink;
    double half = z / shrink * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    p->low = met ? (middle - half) * combinations : NAN;
    p->high = met ? (middle + half) * combinations : NAN;
    return met;
}

static int count_walk(struct tune_walk *w, struct part *p)
{
    int equation[TUNE_SPACE_DIMENSIONS], done = 0;
    double combinations = 1;
    for (int k = 0; k < w->count; k++) {
        if (!tune_walk_solved(w, k, &equation[k])) {
            equation[k] = -1;
            combinations *= (double)w->wheels[k].size;
        }
    }
    if (combinations > COUNTED) {
        int met = sample(w, equation, combinations, p);
        TRY(met);
        if (met >= FEW)
            return 0;
        for (int k = 0; k < w->count; k++)
            tune_walk_set(w, k, 0);
    }
    TRY(done = walk(w, combinations > COUNTED ? COUNTED : INT64_MAX, &p->low));
    if (done)
        p->high = p->low;
    return 0;
}

static int count_part(struct part *p)
{
    struct tune_walk *w = tune_walk_new(&p->own, p->wheels, p->count);
    int code = w ? count_walk(w, p) : -1;
    tune_walk_free(w);
    return code;
}

int tune_space_count_allowed(const struct tune_space *s, double *allowed, double *error)
{
    bool left[TUNE_SPACE_CONSTRAINTS], used[TUNE_SPACE_DIMENSIONS] = {false};
    struct tune_expression *constraints[TUNE_SPACE_CONSTRAINTS];
    struct part p;
    double low = 1, high = 1;
    *allowed = (double)(s->points_path ? (tune_index)s->listed : s->size);
    *error = 0;
    if (s->points_path || s->size == 0 || s->constraint_count == 0)
        return 0;
    for (int c = 0; c < s->constraint_count; c++)
        left[c] = true;
    while (next_part(s, left, constraints, &p)) {
        TRY(count_part(&p));
        if (p.high == 0) {
            *allowed = 0;
            return 0;
        }
        low *= p.low;
        high *= p.high;
        for (int k = 0; k < p.count; k++)
            used[p.wheels[k]] = true;
    }
    for (int k = 0; k < s->count; k++)
        if (!used[k]) {
            low *= (double)tune_domain_size(&s->dimensions[k].domain);
            high *= (double)tune_domain_size(&s->dimensions[k].domain);
        }
    *allowed = low == high ? low : low / 2 + high / 2;
    *error = low == high && isfinite(low) ? 0 : isfinite(high) ? high - *allowed : INFINITY;
    return 0;
}

const char *tune_space_allowed_text(double allowed, double error, char text[160])
{
    if (isnan(allowed))
        snprintf(text, 160, "unknown: none of %d sampled entities meets them", TUNE_SPACE_SAMPLED);
    else if (isinf(allowed))
        snprintf(text, 160, "over 1e+300");
    else if (error == 0 && allowed < 0x1p53)
        snprintf(text, 160, "%.0f", allowed);
    else if (error > allowed / 4)
        snprintf(text, 160, "between %.2g and %.2g (95 %%)", allowed - error, allowed + error);
    else
        snprintf(text, 160, "about %.4g, plus or minus %.2g", allowed, error);
    return text;
}

/* ---- a list ---- */

static int list_allowed(struct tune_walk *w, int64_t most, tune_index **all, int64_t *count)
{
    int64_t steps = 2 * (int64_t)COUNTED;
    for (int at = 0, next; at >= 0; at = tune_walk_turn(w, next)) {
        int holds = tune_walk_allowed(w, &next);
        TRY(holds);
        if (steps-- == 0 || (holds && *count == most))
            return 0;
        if (!holds)
            continue;
        if (!tune_array_fit(all, (size_t)*count, sizeof **all))
            return tune_error_no_memory("a list of entities");
        tune_space_find(w->space, w->values, &(*all)[(*count)++]);
        next = w->count - 1;
    }
    return 1;
}

int tune_space_list(const struct tune_space *s, int64_t most, tune_index **all, int64_t *count)
{
    struct part p = {.space = s};
    *all = NULL;
    *count = 0;
    for (int pass = 0; pass < 2; pass++) { /* first pass: the dimensions that constraints use */
        struct part some = {.space = s};
        for (int k = 0; k < s->count; k++) {
            bool used = false;
            for (int c = 0; c < s->constraint_count; c++)
                used = used || tune_expression_uses(s->constraints[c], k);
            if (used == (pass == 0))
                add_wheel(&some, k);
        }
        for (int k = 0; k < some.count; k++)
            p.wheels[p.count++] = some.wheels[k];
    }
    struct tune_walk *w = tune_walk_new(s, p.wheels, p.count);
    int code = w ? list_allowed(w, most, all, count) : -1;
    tune_walk_free(w);
    if (code == 1 && *count > 0)
        qsort(*all, (size_t)*count, sizeof **all, tune_index_compare);
    if (code == 1)
        return 1;
    free(*all);
    *all = NULL;
    return code;
}
