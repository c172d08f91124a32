/* halving.c - compute the budgets of the rungs, and choose the points that continue. */
#include "sweeps/discovery/halving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Read text[length] as a number. NAN: it is not a number. */
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
    return tune_error_usage("`budget` %s: expected two numbers above 0, the lower one first, with "
                            "two dots between them, such as max_steps=1..16", text);
}

int tune_halving_rungs(const struct tune_halving *h, double budgets[TUNE_HALVING_RUNGS])
{
    int count = 0;
    for (double b = h->least; b * 2 <= h->most; b *= 2) {
        if (count == TUNE_HALVING_RUNGS - 1)
            return tune_error_usage("`budget` %s: more than %d rungs from %g to %g, each with twice the budget; raise the lower number",
                                    h->input, TUNE_HALVING_RUNGS, h->least, h->most);
        budgets[count++] = b;
    }
    budgets[count++] = h->most;
    return count;
}

struct ranked {
    double value;
    int index;
};

static int better(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

int tune_halving_select(const struct tune_halving *h, const double *values, int count, int *selected)
{
    struct ranked *all = malloc(((size_t)count + 1) * sizeof *all);
    int n = 0;
    if (!all)
        return tune_error_no_memory("choosing the better points");
    for (int i = 0; i < count; i++)
        if (!isnan(values[i]))
            all[n++] = (struct ranked){h->maximize ? -values[i] : values[i], i};
    qsort(all, (size_t)n, sizeof *all, better);
    n = (n + 1) / 2;
    for (int i = 0; i < n; i++)
        selected[i] = all[i].index;
    qsort(selected, (size_t)n, sizeof *selected, ascending);
    free(all);
    return n;
}

int tune_halving_next(int rung, int rungs, int64_t left)
{
    if (left == 0 || rung == rungs - 1)
        return rungs;
    return left == 1 ? rungs - 1 : rung + 1;
}

double tune_halving_plan(const double *budgets, int rungs, int rung, int64_t count, int64_t *counts)
{
    double cost = 0;
    for (int k = 0; k < rungs; k++)
        counts[k] = 0;
    for (; rung < rungs; rung = tune_halving_next(rung, rungs, count)) {
        counts[rung] = count;
        cost += (double)count * budgets[rung];
        count = (count + 1) / 2;
    }
    return cost;
}
