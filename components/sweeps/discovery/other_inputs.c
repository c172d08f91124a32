/* other_inputs.c - find results of a space's entities under other parameters. */
#include "sweeps/discovery/other_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "sweeps/discovery/dimensions.h"

enum { MOST = 16, TEXT = 512 };

/* A pass over the rows of an experiment. */
struct pass {
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    const struct tune_experiment *e;
    struct tune_column *columns;
    struct tune_dimensions dimensions;
    struct { char inputs[TEXT]; int64_t rows; } found[MOST];
    int count;
};

static bool same_cell(const struct tune_cell *a, const struct tune_cell *b)
{
    int64_t x, y;
    if (a->absent || b->absent)
        return a->absent == b->absent;
    if (a->text || b->text)
        return a->text && b->text && !strcmp(a->text, b->text);
    if (tune_rows_whole(a, &x) && tune_rows_whole(b, &y))
        return x == y;
    return a->number == b->number;
}

/* Write the inputs that differ from the protocol's own. Returns their number; -1 with an error. */
static int differing(const struct pass *p, const struct tune_protocol *protocol, const struct tune_cell *inputs,
                     char text[TEXT])
{
    char own_text[TUNE_STORE_TEXT_MAX + 1], spelled[256];
    size_t n = 0;
    int count = 0;
    text[0] = 0;
    for (int i = 0; i < p->e->input_count; i++) {
        struct tune_cell own;
        if (protocol->dimension[i] >= 0)
            continue;
        TRY(tune_rows_cell(&p->columns[i], &protocol->fixed[i], &own, own_text, sizeof own_text));
        if (same_cell(&own, &inputs[i]))
            continue;
        struct tune_value v = tune_rows_value(&p->columns[i], &p->e->inputs[i].domain, NULL, &inputs[i]);
        tune_value_id(&v, spelled, sizeof spelled);
        if (n < TEXT)
            n += (size_t)snprintf(text + n, TEXT - n, "%s%s=%s", n ? "," : "", p->e->names[i], spelled);
        count++;
    }
    return count;
}

/* The row is of an entity of the space. Count it, unless a protocol has its parameters. */
static int take(struct pass *p, const struct tune_cell *inputs)
{
    char best[TEXT] = "", text[TEXT];
    int least = -1, i = 0;
    for (int k = 0; k < p->space->reference_count; k++) {
        if (p->protocols[k].experiment != p->e)
            continue;
        int count = differing(p, &p->protocols[k], inputs, text);
        TRY(count);
        if (count == 0)
            return 0;
        if (least < 0 || count < least)
            memcpy(best, text, sizeof best);
        least = least < 0 || count < least ? count : least;
    }
    while (i < p->count && strcmp(p->found[i].inputs, best))
        i++;
    if (i == MOST)
        return 0;
    if (i == p->count)
        memcpy(p->found[p->count++].inputs, best, sizeof best);
    p->found[i].rows++;
    return 0;
}

static int read_rows(struct pass *p, struct tune_store *s)
{
    static const enum tune_key keys[] = {TUNE_KEY_STATUS, TUNE_KEY_EXPERIMENT};
    const struct tune_cell *cells;
    struct tune_scan *scan = tune_rows_scan(s, p->e, keys, 2);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        if (tune_rows_status(&cells[0]) == TUNE_FAILED || !tune_rows_of(&cells[1], p->e))
            continue;
        int inside = tune_dimensions_read(&p->dimensions, cells + 2);
        if (inside < 0 || (inside && take(p, cells + 2) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

static int look(struct tune_store *s, struct pass *p, tune_other_tell *tell)
{
    if (!tune_store_has(s, p->e->name))
        return 0;
    TRY(tune_rows_columns(p->e, &p->columns));
    int code = tune_dimensions_new(&p->dimensions, p->space, p->e, p->columns);
    if (code == 0)
        code = read_rows(p, s);
    tune_dimensions_free(&p->dimensions);
    free(p->columns);
    for (int i = 0; i < p->count && code == 0; i++)
        tell(p->e, p->found[i].rows, p->found[i].inputs);
    return code;
}

int tune_other_inputs(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                      tune_other_tell *tell)
{
    for (int k = 0; k < space->reference_count; k++) {
        struct pass *p = tune_zeroed(1, sizeof *p, "rows with other inputs");
        if (!p)
            return -1;
        p->space = space;
        p->protocols = protocols;
        p->e = protocols[k].experiment;
        int code = tune_protocol_is_first(protocols, k) ? look(s, p, tell) : 0;
        free(p);
        TRY(code);
    }
    return 0;
}
