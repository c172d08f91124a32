/* halving.c - the budgets of the rungs, and which points go on. */
#include "sweeps/discovery/halving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Read all of text[length] as a number. NAN: it is none. */
static double number(const char *text, size_t length)
{
    char part[64], *end;
    if (length == 0 || length >= sizeof part || *text == ' ')
        return NAN;
    memcpy(part, text, length);
    part[length] = 0;
    double value = strtod(part, &end);
    return *end ? NAN : value;
}

int tune_halving_read(struct tune_halving *h, const char *text)
{
    const char *value = strchr(text, '='), *dots = value ? strstr(value, "..") : NULL;
    size_t length = value ? (size_t)(value - text) : 0;
    if (!dots || length == 0 || length >= sizeof h->input)
        return tune_error_usage("`budget` %s: expected an input and two numbers, such as max_steps=1..16", text);
    memcpy(h->input, text, length);
    h->input[length] = 0;
    h->least = number(value + 1, (size_t)(dots - value - 1));
    h->most = number(dots + 2, strlen(dots + 2));
    if (h->least > 0 && h->most >= h->least && h->most < INFINITY)
        return 0;
    return tune_error_usage("`budget` %s: expected two numbers above 0 with two dots between them, the lower one first", text);
}

static bool is_whole(double x)
{
    return x == floor(x) && x < 0x1p53;
}

int tune_halving_rungs(const struct tune_halving *h, double budgets[TUNE_HALVING_RUNGS])
{
    bool whole = is_whole(h->least) && is_whole(h->most);
    double enough = 1 + 1e-9; /* products of fractions are not exact */
    int count = 0;
    for (double b = h->least; b * h->factor <= h->most * enough; b *= h->factor) {
        double budget = whole ? floor(b + .5) : b;
        if (budget == h->most || (count > 0 && budget == budgets[count - 1]))
            continue;
        if (count == TUNE_HALVING_RUNGS - 1)
            return tune_error_usage("`budget` %s: more than %d rungs from %g to %g by factors of %g; give a larger `factor`", h->input,
                                    TUNE_HALVING_RUNGS, h->least, h->most, h->factor);
        budgets[count++] = budget;
    }
    budgets[count++] = h->most;
    return count;
}

static int64_t share(const struct tune_halving *h, int64_t count)
{
    double part = ceil((double)count / h->factor - 1e-9);
    return part < 1 && count > 0 ? 1 : (int64_t)part;
}

struct ranked {
    double value;
    int place;
};

static int better(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

int tune_halving_keep(const struct tune_halving *h, const double *values, int count, int *kept)
{
    struct ranked *all = malloc(((size_t)count + 1) * sizeof *all);
    int n = 0;
    if (!all)
        return tune_error_no_memory("choosing the better points");
    for (int i = 0; i < count; i++)
        if (!isnan(values[i]))
            all[n++] = (struct ranked){h->maximize ? -values[i] : values[i], i};
    qsort(all, (size_t)n, sizeof *all, better);
    n = (int)share(h, n);
    for (int i = 0; i < n; i++)
        kept[i] = all[i].place;
    qsort(kept, (size_t)n, sizeof *kept, ascending);
    free(all);
    return n;
}

int tune_halving_next(int rung, int rungs, int64_t left)
{
    if (left == 0 || rung == rungs - 1)
        return rungs;
    return left == 1 ? rungs - 1 : rung + 1;
}

double tune_halving_plan(const struct tune_halving *h, const double *budgets, int rungs, int rung, int64_t count, int64_t *counts)
{
    double cost = 0;
    for (int k = 0; k < rungs; k++)
        counts[k] = 0;
    for (; rung < rungs; rung = tune_halving_next(rung, rungs, count)) {
        counts[rung] = count;
        cost += (double)count * budgets[rung];
        count = share(h, count);
    }
    return cost;
}
