/* points.c - the points of a space with their states: each entity under each experiment, whether it
 * is measured, failed, invalid or missing, and its figures. It joins the answers of tune_ask_show
 * and tune_ask_missing. */
#include <string.h>

#include "core/map.h"
#include "core/print.h"
#include "files/file.h"
#include "sweeps/answers/subject.h"

enum { MOST_LEVELS = 1000, FIRST = 5 }; /* values of a dimension that are listed; columns before the dimensions */

struct join {
    struct tune_subject *s;
    struct tune_answer_table *shown, *missing;
    int *shown_at, *missing_at;  /* [space->count] columns of the dimensions */
    int *figures, figure_count;  /* columns of `shown` with figures */
    struct tune_map states;      /* of identifiers and bindings that `missing` lists */
};

/* ---- columns ---- */

static int add_dimension(struct tune_subject *s, int d)
{
    const struct tune_domain *domain = &s->space->dimensions[d].domain;
    tune_index size = tune_domain_size(domain);
    struct tune_answer_column *column = tune_answer_column(s->a, s->space->names[d]);
    struct tune_value *values;
    column->dimension = true;
    if (size == 0 || size > MOST_LEVELS)
        return 0;
    TAKE(values, s->a, size);
    for (tune_index i = 0; i < size; i++)
        tune_domain_value(domain, i, &values[i]);
    return tune_answer_levels(s->a, column, values, (int)size);
}

static bool is_figure(const struct join *j, int column)
{
    static const char *const others[] = {"identifier", "generatorid", "experiment_id"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(j->shown->columns[column].name, others[i]))
            return false;
    return !j->shown->columns[column].dimension;
}

static int add_columns(struct join *j)
{
    static const char *const names[FIRST] = {"identifier", "experiment", "state", "tries", "reason"};
    struct tune_subject *s = j->s;
    tune_answer_columns(s->a, names, FIRST);
    for (int d = 0; d < s->space->count; d++) {
        TRY(add_dimension(s, d));
        j->shown_at[d] = tune_answer_find(j->shown, s->space->names[d]);
        j->missing_at[d] = tune_answer_find(j->missing, s->space->names[d]);
    }
    for (int c = 0; c < j->shown->count; c++) {
        if (!is_figure(j, c))
            continue;
        const struct tune_answer_column *from = &j->shown->columns[c];
        const char *name = tune_answer_copy(s->a, from->name), *unit = tune_answer_copy(s->a, from->unit);
        struct tune_answer_column *to = name && unit ? tune_answer_column(s->a, name) : NULL;
        TRY(to ? 0 : -1);
        to->unit = unit;
        to->measured = from->measured;
        to->digits = from->digits;
        j->figures[j->figure_count++] = c;
    }
    return 0;
}

/* ---- rows ---- */

/* The binding with that identifier, with or without its actuator; -1: none. */
static int find_binding(const struct join *j, const char *name)
{
    for (int p = 0; p < j->s->space->reference_count; p++)
        if (!strcmp(name, j->s->bindings[p].identifier) || !strcmp(name, j->s->bindings[p].full_identifier))
            return p;
    return -1;
}

static const char *text_at(const struct tune_answer_table *a, int64_t row, const char *column)
{
    const struct tune_answer_cell *cell = tune_answer_at(a, row, tune_answer_find(a, column));
    return cell->type == TUNE_ANSWER_TEXT ? cell->text : NULL;
}

static void make_key(const char *identifier, int binding, uint64_t key[2])
{
    for (uint64_t i = 0; i < 2; i++)
        key[i] = tune_hash64(identifier, strlen(identifier), 2 * (uint64_t)binding + i);
}

static void add_start(struct join *j, const char *identifier, int binding, const char *state)
{
    tune_answer_text(j->s->a, identifier);
    tune_answer_text(j->s->a, j->s->bindings[binding].identifier);
    tune_answer_text(j->s->a, state);
}

static int add_missing(struct join *j)
{
    struct tune_answer_table *a = j->s->a, *from = j->missing;
    int tries = tune_answer_find(from, "tries"), reason = tune_answer_find(from, "reason");
    uint64_t key[2];
    for (int64_t row = 0; row < from->rows; row++) {
        const char *identifier = text_at(from, row, "identifier"), *name = text_at(from, row, "experiment"), *status = text_at(from, row, "status");
        int binding = name ? find_binding(j, name) : 0;
        if (!identifier || !status || binding < 0)
            continue;
        make_key(identifier, binding, key);
        int64_t *state = tune_map_add(&j->states, key);
        if (!state)
            return tune_answer_no_memory();
        *state = 1;
        add_start(j, identifier, binding, strcmp(status, "unmeasured") ? status : "missing");
        tune_answer_cell(a, tune_answer_at(from, row, tries));
        tune_answer_cell(a, tune_answer_at(from, row, reason));
        for (int d = 0; d < j->s->space->count; d++)
            tune_answer_cell(a, tune_answer_at(from, row, j->missing_at[d]));
        for (int i = 0; i < j->figure_count; i++)
            tune_answer_text(a, NULL);
        TRY(tune_answer_end_row(a));
    }
    return 0;
}

static int add_measured(struct join *j)
{
    struct tune_answer_table *a = j->s->a, *from = j->shown;
    uint64_t key[2];
    for (int64_t row = 0; row < from->rows; row++) {
        const char *identifier = text_at(from, row, "identifier"), *name = text_at(from, row, "experiment_id");
        int binding = name ? find_binding(j, name) : -1;
        if (!identifier || binding < 0)
            continue;
        make_key(identifier, binding, key);
        if (tune_map_get(&j->states, key))
            continue; /* no result is valid */
        add_start(j, identifier, binding, "measured");
        tune_answer_text(a, NULL);
        tune_answer_text(a, NULL);
        for (int d = 0; d < j->s->space->count; d++)
            tune_answer_cell(a, tune_answer_at(from, row, j->shown_at[d]));
        for (int i = 0; i < j->figure_count; i++)
            tune_answer_cell(a, tune_answer_at(from, row, j->figures[i]));
        TRY(tune_answer_end_row(a));
    }
    return 0;
}

static void add_notes(struct tune_subject *s, const struct tune_answer_table *from)
{
    for (int i = 0; i < from->note_count; i++) {
        bool known = false;
        for (int k = 0; k < s->a->note_count; k++)
            known = known || !strcmp(s->a->notes[k].text, from->notes[i].text);
        if (!known)
            tune_answer_add_note(s->a, from->notes[i].position, "%s", from->notes[i].text);
    }
}

static int join(struct join *j)
{
    TAKE(j->shown_at, j->s->a, j->s->space->count);
    TAKE(j->missing_at, j->s->a, j->s->space->count);
    TAKE(j->figures, j->s->a, j->shown->count);
    TRY(add_columns(j));
    TRY(add_missing(j));
    TRY(add_measured(j));
    add_notes(j->s, j->shown);
    add_notes(j->s, j->missing);
    return 0;
}

/* Add the entity of the question to its condition. 0: there is no such entity. */
static int add_condition(struct tune_subject *s, struct tune_question *q)
{
    struct tune_value *values;
    char *where, text[2 * TUNE_STORE_TEXT_MAX];
    size_t size = q->where ? strlen(q->where) + 8 : 8;
    TAKE(values, s->a, s->space->count);
    int found = tune_subject_entity(s, values);
    if (found <= 0)
        return found;
    for (int d = 0; d < s->space->count; d++)
        size += strlen(s->space->names[d]) + (size_t)tune_value_repr(&values[d], text, sizeof text) + 16;
    TAKE(where, s->a, size);
    if (q->where)
        tune_append(where, size, "(%s)", q->where);
    for (int d = 0; d < s->space->count; d++) {
        if (tune_value_repr(&values[d], text, sizeof text) >= (int)sizeof text)
            return tune_error_usage("%s: a value is too long", s->q->entity);
        tune_append(where, size, "%s`%s` == %s", *where ? " and " : "", s->space->names[d], text);
    }
    q->where = where;
    return 1;
}

static int points(struct tune_subject *s)
{
    char about[16];
    struct join j = {.s = s};
    struct tune_question q = *s->q;
    if (s->kind != TUNE_ABOUT_SPACE && s->kind != TUNE_ABOUT_OPERATION)
        return tune_error_usage("points takes a space or an operation, not %s, because only a space says what is missing", s->name);
    TRY(tune_subject_space(s));
    snprintf(about, sizeof about, "space-%s", s->space->id);
    if (s->kind == TUNE_ABOUT_OPERATION)
        q.about = about;
    q.operation = s->operation;
    q.arrange = (struct tune_arrangement){.limit = s->q->arrange.sort || s->q->arrange.group_by ? 0 : s->q->arrange.limit};
    q.brief = false;
    if (q.entity) {
        int found = add_condition(s, &q);
        if (found <= 0)
            return found < 0 ? -1 : tune_error_usage("%s is no entity of this space", q.entity);
    }
    struct tune_question shown = q;
    shown.matching = shown.matching || !s->operation;
    shown.build = shown.build ? shown.build : "all";
    j.missing = tune_ask_missing(&q);
    j.shown = j.missing ? tune_ask_show(&shown) : NULL;
    int code = j.shown ? join(&j) : -1;
    tune_map_free(&j.states);
    tune_answer_free(j.shown);
    tune_answer_free(j.missing);
    return code;
}

struct tune_answer_table *tune_ask_points(const struct tune_question *q)
{
    return tune_subject_answer(q, "points", points);
}
