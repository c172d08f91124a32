/* missing.c - the entities of a space that have no valid result, and why: nobody measured them, they
 * failed, or they are invalid. Whoever measured it counts, also for other spaces. */
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "sweeps/discovery/where.h"

/* The rows of one entity under one experiment. */
struct tried {
    tune_index index;
    int protocol, results;
    bool valid;
    char *status, *reason; /* of the last row */
};

static struct {
    struct tried *all;
    int64_t count;
    struct tune_where *where;
    int64_t puts[3];       /* numbers of rows: unmeasured, failed, invalid */
} missing;

static const char *const headings[] = {"status", "tries", "reason"};
static const char *const names[] = {"unmeasured", "failed", "invalid"};

static int put_row(const struct tune_value *entity, int protocol, const struct tried *t)
{
    TRY(samples_identifier(entity));
    if (samples.space->reference_count > 1)
        samples_text(samples.protocols[protocol].identifier);
    for (int d = 0; d < samples.space->count; d++)
        samples_value(&entity[d]);
    samples_text(t ? t->status : names[0]);
    samples_number(t ? t->results : 0, true, 6);
    samples_text(t ? t->reason : "");
    for (int i = 0; i < 3; i++)
        missing.puts[i] += !strcmp(t ? t->status : names[0], names[i]);
    return samples_end_row();
}

static void begin(void)
{
    samples_column("identifier")->hidden = samples_people();
    if (samples.space->reference_count > 1)
        samples_column("experiment");
    samples_columns(samples.space->names, samples.space->count);
    for (int i = 0; i < 3; i++)
        samples_column(headings[i])->measured = i == 1;
    samples_begin(false);
}

/* ---- what was tried ---- */

/* Read the group's rows. The last one says why there is no result. */
static int read_group(struct tune_view *v, const struct tune_view_group *g, struct tried *t)
{
    *t = (struct tried){.protocol = g->protocol, .results = g->results};
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        t->valid = t->valid || !strcmp(cells[0].text, "valid");
        if (k < g->results - 1)
            continue;
        t->status = samples_copy(cells[0].text);
        t->reason = samples_copy(cells[1].text ? cells[1].text : "");
    }
    return 0;
}

/* Keep what was tried, or if the space cannot be counted, print it now. */
static int read_tried(struct tune_view *v, bool countable)
{
    struct tune_view_group g;
    int more;
    while ((more = tune_view_next(v, &g)) == 1) {
        samples_fit(&missing.all, missing.count, sizeof *missing.all);
        struct tried *t = &missing.all[missing.count++];
        TRY(read_group(v, &g, t));
        int meets = tune_where_meets(missing.where, g.protocol, g.entity);
        TRY(meets);
        if (t->valid && meets)
            TRY(samples_note_unused(g.protocol, g.entity));
        if (countable)
            tune_space_find(samples.space, g.entity, &t->index);
        else if (!t->valid && meets && !samples_full())
            TRY(put_row(g.entity, g.protocol, t));
    }
    return more;
}

static int by_index(const void *a, const void *b)
{
    const struct tried *x = a, *y = b;
    return x->index != y->index ? (x->index > y->index) - (x->index < y->index) : x->protocol - y->protocol;
}

/* ---- the grid ---- */

/* Print what is missing of entity i. *at: the first of what was tried that is not before it. */
static int put_entity(tune_index i, const struct tune_value *entity, int64_t *at)
{
    for (int p = 0; p < samples.space->reference_count; p++) {
        while (*at < missing.count && (missing.all[*at].index < i || (missing.all[*at].index == i && missing.all[*at].protocol < p)))
            ++*at;
        bool tried = *at < missing.count && missing.all[*at].index == i && missing.all[*at].protocol == p;
        int meets = tried && missing.all[*at].valid ? 0 : tune_where_meets(missing.where, p, entity);
        TRY(meets);
        if (meets && !samples_full())
            TRY(put_row(entity, p, tried ? &missing.all[*at] : NULL));
    }
    return 0;
}

static int put_grid(void)
{
    const struct tune_space *s = samples.space;
    struct tune_value *entity = samples_take(s->count, sizeof *entity);
    int64_t at = 0;
    if (missing.count > 0)
        qsort(missing.all, (size_t)missing.count, sizeof *missing.all, by_index);
    for (tune_index i = 0; i < s->size && !samples_full(); i++) {
        tune_space_entity(s, i, entity);
        int allowed = tune_space_allowed(s, entity);
        TRY(allowed > 0 ? put_entity(i, entity, &at) : allowed);
    }
    return 0;
}

static int put_all(struct tune_view *v, bool countable)
{
    begin();
    TRY(read_tried(v, countable));
    if (countable)
        TRY(put_grid());
    int64_t total = missing.puts[0] + missing.puts[1] + missing.puts[2];
    samples_say_unused();
    if (total > 0)
        TRY(samples_say_other_inputs());
    if (total == 0 && samples_people()) {
        fprintf(samples.out, "# nothing is missing: each entity%s has a valid result\n", missing.where ? " that fits" : "");
        return 0;
    }
    TRY(samples_end());
    if (samples_people())
        fprintf(samples.out, "# %lld unmeasured, %lld failed, %lld invalid\n", (long long)missing.puts[0],
                (long long)missing.puts[1], (long long)missing.puts[2]);
    if (!countable)
        fprintf(stderr, "samples: the space cannot be counted, so what nobody measured is not listed\n");
    return 0;
}

int samples_missing(void)
{
    static const char *const columns[] = {"status", "reason"};
    TRY(samples_open_space(samples_word(0)));
    bool countable = samples.space->size > 0 && samples.space->size < TUNE_INDEX_MAX;
    if (my.where && !(missing.where = tune_where_new(my.where, samples.space, samples.protocols)))
        return -1;
    my.include = "matching";
    my.where = NULL; /* it may hold only for some rows of an entity */
    struct tune_view *v = samples_open_view(columns, 2, SAMPLES_ALL);
    int code = v ? put_all(v, countable) : -1;
    tune_where_free(missing.where);
    tune_view_free(v);
    return code;
}
