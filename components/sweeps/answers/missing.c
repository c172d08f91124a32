/* missing.c - list the entities of a space that have no valid result, and why. They were not
 * measured, they failed, or they are invalid. Results of any space count. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweeps/answers/subject.h"
#include "sweeps/discovery/where.h"
#include "sweeps/spaces/order.h"

enum { UNMEASURED, FAILED, INVALID, STATUSES, MOST_LEVELS = 64, SHOWN_LEVELS = 4 };
/* Entities of a space that are looked at if the question is confined. */
#define MOST_CONFINED ((tune_index)1000000)
static const char *const names[STATUSES] = {"unmeasured", "failed", "invalid"};

/* The rows of one entity under one experiment. */
struct tried {
    tune_index index;
    int binding, results;
    bool valid;
    const char *status, *reason; /* from the last row */
};

/* Different values of a dimension in a group. */
struct levels {
    struct tune_value at[MOST_LEVELS];
    int count; /* MOST_LEVELS means that many or more */
};

/* Entities with the same experiment, status and reason. */
struct group {
    int binding;
    const char *status, *reason; /* reason: of the group's first entity */
    int64_t entities;
    bool varies;           /* the reasons differ in their numbers */
    struct levels *levels; /* [space->count] */
};

struct missing {
    struct tune_subject *s;
    struct tried *all;     /* [count] */
    int64_t count;
    struct tune_where *where;
    int64_t sums[STATUSES]; /* numbers of entities by status */
    bool grouped;
    struct group *groups;  /* [group_count] */
    int group_count;
};

/* ---- rows ---- */

static void add_columns(struct missing *m)
{
    static const char *const figures[] = {"status", "tries", "reason"};
    struct tune_answer_table *a = m->s->a;
    if (!m->grouped)
        tune_answer_column(a, "identifier")->hidden = true;
    for (int i = 0; i < 2 && m->grouped; i++)
        tune_answer_column(a, i == 1 ? "entities" : figures[i]);
    if (m->s->space->reference_count > 1)
        tune_answer_column(a, "experiment");
    for (int d = 0; d < m->s->space->count; d++)
        tune_answer_column(a, m->s->space->names[d])->dimension = !m->grouped;
    for (int i = m->grouped ? 2 : 0; i < 3; i++)
        tune_answer_column(a, figures[i])->measured = i == 1;
}

static int add_row(struct missing *m, const struct tune_value *entity, int binding, const struct tried *t)
{
    struct tune_answer_table *a = m->s->a;
    TRY(tune_answer_identifier(a, m->s->space, entity));
    if (m->s->space->reference_count > 1)
        tune_answer_text(a, m->s->bindings[binding].identifier);
    for (int d = 0; d < m->s->space->count; d++)
        tune_answer_space_value(a, &entity[d]);
    tune_answer_text(a, t ? t->status : names[UNMEASURED]);
    tune_answer_whole(a, t ? t->results : 0);
    tune_answer_text(a, t ? t->reason : NULL);
    return tune_answer_end_row(a);
}

/* ---- groups ---- */

/* True if two reasons differ only in longer numbers, as in "16586 MB needed". NULL: no reason. */
static bool is_like(const char *a, const char *b)
{
    static const char digits[] = "0123456789.,";
    a = a ? a : "";
    b = b ? b : "";
    while (*a && *b) {
        size_t n = strspn(a, digits), m = strspn(b, digits);
        if (n > 2 && m > 2) {
            a += n;
            b += m;
        } else if (*a++ != *b++)
            return false;
    }
    return *a == *b;
}

static struct group *find_group(struct missing *m, int binding, const char *status, const char *reason)
{
    for (int i = m->group_count - 1; i >= 0; i--) {
        struct group *g = &m->groups[i];
        if (g->binding == binding && !strcmp(g->status, status) && is_like(g->reason, reason))
            return g;
    }
    struct levels *levels = tune_answer_take(m->s->a, m->s->space->count, sizeof *levels);
    if (!levels || !tune_array_fit(&m->groups, (size_t)m->group_count, sizeof *m->groups))
        return NULL;
    m->groups[m->group_count] = (struct group){.binding = binding, .status = status, .reason = reason, .levels = levels};
    return &m->groups[m->group_count++];
}

static int add_level(struct missing *m, struct levels *l, const struct tune_value *v)
{
    for (int i = 0; i < l->count; i++)
        if (tune_value_equal(&l->at[i], v))
            return 0;
    if (l->count == MOST_LEVELS)
        return 0;
    void *copy = tune_answer_take(m->s->a, 1, tune_values_size(v, 1));
    TRY(copy ? 0 : -1);
    l->at[l->count++] = *tune_values_copy(copy, v, 1);
    return 0;
}

static int add_to_group(struct missing *m, const struct tune_value *entity, int binding, const struct tried *t)
{
    struct group *g = find_group(m, binding, t ? t->status : names[UNMEASURED], t ? t->reason : NULL);
    if (!g)
        return tune_answer_no_memory();
    g->entities++;
    g->varies = g->varies || (t && t->reason && strcmp(t->reason, g->reason));
    for (int d = 0; d < m->s->space->count; d++)
        TRY(add_level(m, &g->levels[d], &entity[d]));
    return 0;
}

/* Write the values of a dimension in a group: "all 4", "1, 2", "1, 2, 3, 4, ... (9)". */
static void levels_to_string(const struct levels *l, tune_index size, char *text, size_t capacity)
{
    *text = 0;
    if (size > 1 && (tune_index)l->count == size && l->count < MOST_LEVELS) {
        tune_append(text, capacity, "all %d", l->count);
        return;
    }
    for (int i = 0; i < l->count && i < SHOWN_LEVELS; i++) {
        char value[200];
        tune_value_id(&l->at[i], value, sizeof value);
        tune_append_item(text, capacity, "%s", value);
    }
    if (l->count > SHOWN_LEVELS)
        tune_append_item(text, capacity, "... (%s%d)", l->count == MOST_LEVELS ? "at least " : "", l->count);
}

static int add_groups(struct missing *m)
{
    struct tune_answer_table *a = m->s->a;
    char text[1024];
    for (int i = 0; i < m->group_count; i++) {
        const struct group *g = &m->groups[i];
        tune_answer_text(a, g->status);
        tune_answer_whole(a, g->entities);
        if (m->s->space->reference_count > 1)
            tune_answer_text(a, m->s->bindings[g->binding].identifier);
        for (int d = 0; d < m->s->space->count; d++) {
            levels_to_string(&g->levels[d], tune_domain_size(&m->s->space->dimensions[d].domain), text, sizeof text);
            tune_answer_text(a, text);
        }
        if (g->varies)
            snprintf(text, sizeof text, "for example: %.900s", g->reason);
        tune_answer_text(a, g->varies ? text : g->reason);
        TRY(tune_answer_end_row(a));
    }
    return 0;
}

/* ---- tries ---- */

static bool is_full(const struct missing *m)
{
    const struct tune_arrangement *arrange = &m->s->q->arrange;
    return !m->grouped && tune_answer_full(m->s->a, arrange->sort || arrange->group_by ? 0 : arrange->limit);
}

static int add_missing(struct missing *m, const struct tune_value *entity, int binding, const struct tried *t)
{
    for (int i = 0; i < STATUSES; i++)
        m->sums[i] += !strcmp(t ? t->status : names[UNMEASURED], names[i]);
    return m->grouped ? add_to_group(m, entity, binding, t) : add_row(m, entity, binding, t);
}

/* Read the group's rows. The last one gives the reason. */
static int read_group(struct missing *m, struct tune_view *v, const struct tune_view_group *g, struct tried *t)
{
    *t = (struct tried){.binding = g->binding, .results = g->results};
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        t->valid = t->valid || !strcmp(cells[0].text, "valid");
        if (k < g->results - 1)
            continue;
        t->status = tune_answer_copy(m->s->a, cells[0].text);
        t->reason = cells[1].absent ? NULL : tune_answer_copy(m->s->a, cells[1].text);
        TRY(t->status && (t->reason || cells[1].absent) ? 0 : -1);
    }
    return 0;
}

/* Read what was tried. If the space cannot be counted, add rows for tries without a valid result at
 * once. */
static int read_tried(struct missing *m, struct tune_view *v, bool countable)
{
    struct tune_view_group g;
    int more;
    while ((more = tune_view_next(v, &g)) == 1) {
        FIT(m->all, m->count);
        struct tried *t = &m->all[m->count++];
        TRY(read_group(m, v, &g, t));
        int meets = tune_where_meets(m->where, g.binding, g.entity);
        TRY(meets);
        if (t->valid && meets && !m->s->q->confined)
            TRY(tune_unused_count(m->s, g.binding, g.entity));
        if (countable)
            tune_space_find(m->s->space, g.entity, &t->index);
        else if (!t->valid && meets && !is_full(m))
            TRY(add_missing(m, g.entity, g.binding, t));
    }
    return more;
}

static int by_index(const void *a, const void *b)
{
    const struct tried *x = a, *y = b;
    return x->index != y->index ? (x->index > y->index) - (x->index < y->index) : x->binding - y->binding;
}

/* ---- the grid ---- */

/* Find what was tried for an entity under a binding; NULL: nothing. */
static const struct tried *find_tried(const struct missing *m, tune_index i, int binding)
{
    const struct tried key = {.index = i, .binding = binding};
    return m->count > 0 ? bsearch(&key, m->all, (size_t)m->count, sizeof *m->all, by_index) : NULL;
}

static int add_entity(struct missing *m, const struct tune_value *entity)
{
    tune_index i = 0;
    tune_space_find(m->s->space, entity, &i);
    for (int p = 0; p < m->s->space->reference_count && !is_full(m); p++) {
        const struct tried *tried = find_tried(m, i, p);
        int meets = tried && tried->valid ? 0 : tune_where_meets(m->where, p, entity);
        TRY(meets);
        TRY(meets ? add_missing(m, entity, p, tried) : 0);
    }
    return 0;
}

static int add_grid(struct missing *m)
{
    const struct tune_order_options all = {.mode = TUNE_ORDER_SEQUENTIAL, .limit = -1};
    const struct tune_value *entity;
    struct tune_order *order = tune_order_new(m->s->space, &all);
    int more = order ? 1 : -1;
    if (m->count > 0)
        qsort(m->all, (size_t)m->count, sizeof *m->all, by_index);
    while (more >= 0 && !is_full(m) && (more = tune_order_next(order, &entity)) == 1)
        more = add_entity(m, entity) < 0 ? -1 : 1;
    tune_order_free(order);
    return more < 0 ? -1 : 0;
}

static int add_all(struct missing *m, struct tune_view *v, bool countable)
{
    struct tune_answer_table *a = m->s->a;
    add_columns(m);
    TRY(read_tried(m, v, countable));
    TRY(countable ? add_grid(m) : 0);
    TRY(m->grouped ? add_groups(m) : 0);
    int64_t total = m->sums[UNMEASURED] + m->sums[FAILED] + m->sums[INVALID];
    tune_unused_report(m->s);
    if (m->s->q->confined && m->count > 0)
        tune_answer_add_note(a, TUNE_NOTE_BELOW, "whether sweep would use the stored results on this machine was not looked up; samples missing says it");
    TRY(total > 0 ? tune_unused_other_inputs(m->s) : 0);
    TRY((a->none = tune_answer_copy(a, !countable ? "no measured entity lacks a valid "
                                                    "result" : m->where
             ? "nothing is missing: each entity that fits `where` has a valid "
               "result" : "nothing is missing: each entity has a valid result")) ? 0 : -1);
    if (total > 0) /* at the limit, entities were not counted to the end */
        tune_answer_add_note(a, TUNE_NOTE_BELOW, "%s%lld unmeasured, %lld failed, %lld invalid%s", is_full(m) ? "at least " : "", (long long)m->sums[UNMEASURED], (long long)m->sums[FAILED],
                             (long long)m->sums[INVALID], m->grouped ? "; to list them one by one, "
                                                                       "give `columns`, `sort` or "
                                                                       "another output format" : "");
    if (!countable)
        tune_answer_add_note(a, TUNE_NOTE_WARNING, "the entities of this space %s, so "
                                                   "those that nobody measured are not listed",
                             m->s->space->size > 0 && m->s->space->size < TUNE_INDEX_MAX ? "are more than a million" : "cannot be counted");
    return 0;
}

static int missing(struct tune_subject *s)
{
    static const char *const columns[] = {"status", "reason"};
    const struct tune_question *asked = s->q;
    const struct tune_arrangement *arrange = &asked->arrange;
    struct missing m = {.s = s, .grouped = asked->brief && !arrange->columns && !arrange->sort && !arrange->group_by};
    struct tune_question question = *asked;
    TRY(tune_subject_space(s));
    bool countable = s->space->size > 0 && s->space->size < (asked->confined ? MOST_CONFINED : TUNE_INDEX_MAX);
    if (asked->where && !(m.where = tune_where_new(asked->where, s->space, s->bindings)))
        return -1;
    question.matching = true;
    question.where = NULL; /* it could select only some rows of an entity */
    s->q = &question;
    struct tune_view *v = tune_subject_view(s, columns, 2, TUNE_ALL_RESULTS);
    int code = v ? add_all(&m, v, countable) : -1;
    s->q = asked;
    tune_where_free(m.where);
    tune_view_free(v);
    free(m.all);
    free(m.groups);
    return code;
}

struct tune_answer_table *tune_ask_missing(const struct tune_question *q)
{
    return tune_subject_answer(q, "missing", missing);
}
