/* results.c - the results of one entity, each with who measured it, and the commands that measure
 * it. */
#include <stdlib.h>
#include <string.h>

#include "sweeps/answers/subject.h"

enum { KEYS = 14, MOST_TARGETS = 512, MOST_ENTITIES = 1000000 };

struct results {
    struct tune_subject *s;
    const char *columns[KEYS + MOST_TARGETS]; /* [count] */
    bool whole[KEYS + MOST_TARGETS];
    int count;
};

/* Columns of the store that say who measured, when and where. */
static const enum tune_key keys[KEYS] = {
    TUNE_KEY_STATUS, TUNE_KEY_REASON, TUNE_KEY_OPERATION, TUNE_KEY_SPACE, TUNE_KEY_REQUEST, TUNE_KEY_REPEAT, TUNE_KEY_STARTED,
    TUNE_KEY_SECONDS, TUNE_KEY_HOST, TUNE_KEY_HOST_CLASS, TUNE_KEY_BUILD, TUNE_KEY_CORE_SHARE, TUNE_KEY_STABLE, TUNE_KEY_UID,
};

/* ---- one entity ---- */

int tune_subject_entity(struct tune_subject *s, struct tune_value *values)
{
    const struct tune_order_options all = {.mode = TUNE_ORDER_SEQUENTIAL, .limit = -1};
    const struct tune_value *entity;
    char *text = NULL;
    size_t size = 0;
    int more = 1, looked = 0, found = 0;
    if (s->space->size == 0)
        return 0;
    struct tune_order *order = tune_order_new(s->space, &all);
    while (order && !found && looked++ < MOST_ENTITIES && (more = tune_order_next(order, &entity)) == 1) {
        if (tune_entity_to_string(s->space->names, entity, s->space->count, &text, &size) < 0) {
            more = -1;
            break;
        }
        found = !strcmp(text, s->q->entity);
        if (found)
            memcpy(values, entity, (size_t)s->space->count * sizeof *values);
    }
    if (found) { /* the values may be borrowed from the order */
        void *copy = tune_answer_take(s->a, 1, tune_values_size(values, s->space->count));
        const struct tune_value *own = copy ? tune_values_copy(copy, values, s->space->count) : NULL;
        if (own)
            memcpy(values, own, (size_t)s->space->count * sizeof *values);
        more = own ? 1 : -1;
    }
    free(text);
    tune_order_free(order);
    return !order || more < 0 ? -1 : found;
}

static int check_question(struct tune_subject *s)
{
    if (!s->q->entity)
        return tune_error_usage("%s needs the identifier of an entity: `entity`", s->question);
    return tune_subject_space(s);
}

/* ---- results ---- */

static void add_target(struct results *r, const struct tune_target *t)
{
    for (int i = KEYS; i < r->count; i++)
        if (!strcmp(r->columns[i], t->name))
            return;
    if (r->count == KEYS + MOST_TARGETS)
        return;
    r->whole[r->count] = t->whole;
    r->columns[r->count++] = t->name;
    struct tune_answer_column *c = tune_answer_column(r->s->a, t->name);
    c->unit = t->unit;
    c->measured = true;
}

static void add_columns(struct results *r)
{
    struct tune_subject *s = r->s;
    tune_answer_column(s->a, "experiment");
    for (int i = 0; i < KEYS; i++) {
        const struct tune_column *key = tune_key_column(keys[i]);
        r->whole[r->count] = key->type == TUNE_CELL_WHOLE || key->whole;
        r->columns[r->count++] = key->name;
        tune_answer_column(s->a, key->name)->unit = key->unit;
    }
    for (int p = 0; p < s->space->reference_count; p++)
        for (int i = 0; i < s->bindings[p].experiment->target_count; i++)
            add_target(r, &s->bindings[p].experiment->targets[i]);
}

static void add_cell(struct tune_answer_table *a, const struct tune_cell *cell, bool time, bool whole)
{
    if (cell->absent)
        tune_answer_text(a, NULL);
    else if (cell->text)
        tune_answer_text(a, cell->text);
    else if (time)
        tune_answer_time(a, cell->number);
    else
        tune_answer_figure(a, cell->number, whole);
}

static int add_results(struct results *r, struct tune_view *v)
{
    struct tune_subject *s = r->s;
    struct tune_view_group g;
    char *text = NULL;
    size_t size = 0;
    int more, code = 0;
    while (code == 0 && (more = tune_view_next(v, &g)) != 0) {
        code = more < 0 ? -1 : tune_entity_to_string(s->space->names, g.entity, s->space->count, &text, &size) < 0 ? -1 : 0;
        if (code < 0 || strcmp(text, s->q->entity))
            continue;
        for (int k = 0; k < g.results && code == 0; k++) {
            const struct tune_cell *cells = tune_view_cells(v, k);
            if (!cells) {
                code = -1;
                break;
            }
            tune_answer_text(s->a, s->bindings[g.binding].identifier);
            for (int i = 0; i < r->count; i++)
                add_cell(s->a, &cells[i], i < KEYS && keys[i] == TUNE_KEY_STARTED, r->whole[i]);
            code = tune_answer_end_row(s->a);
        }
    }
    free(text);
    return code;
}

static int results(struct tune_subject *s)
{
    struct results *r;
    const struct tune_question *asked = s->q;
    struct tune_question question = *asked;
    TAKE(r, s->a, 1);
    r->s = s;
    TRY(check_question(s));
    add_columns(r);
    question.matching = true;
    s->q = &question;
    struct tune_view *v = tune_subject_view(s, r->columns, r->count, TUNE_ALL_RESULTS);
    int code = v ? add_results(r, v) : -1;
    s->q = asked;
    tune_view_free(v);
    return code;
}

struct tune_answer_table *tune_ask_results(const struct tune_question *q)
{
    return tune_subject_answer(q, "results", results);
}

/* ---- commands ---- */

static int commands(struct tune_subject *s)
{
    struct tune_value *values;
    TRY(check_question(s));
    TAKE(values, s->a, s->space->count);
    int found = tune_subject_entity(s, values);
    TRY(found);
    tune_answer_column(s->a, "command");
    if (!found)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s is not among the first %d entities of the space", s->q->entity, MOST_ENTITIES);
    for (int p = 0; p < s->space->reference_count && found; p++)
        if (s->bindings[p].supported)
            TRY(tune_subject_command(s, p, values));
    return 0;
}

struct tune_answer_table *tune_ask_entity_command(const struct tune_question *q)
{
    return tune_subject_answer(q, "command", commands);
}
