/* matching.c - find the entities of a space that the rows of a store belong to. */
#include "core/array.h"
#include "core/map.h"
#include "core/pool.h"
#include "sweeps/discovery/matching.h"

#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "sweeps/discovery/dimensions.h"
#include "sweeps/discovery/uids.h"

/* Key columns that are read before the inputs. */
enum { STATUS, EXPERIMENT, UID, HOST_CLASS, BUILD, WEIGHTS, DATA, STARTED, KEYS };
static const enum tune_key keys[KEYS] = {TUNE_KEY_STATUS, TUNE_KEY_EXPERIMENT, TUNE_KEY_UID,  TUNE_KEY_HOST_CLASS,
                                         TUNE_KEY_BUILD,  TUNE_KEY_WEIGHTS,    TUNE_KEY_DATA, TUNE_KEY_STARTED};

/* The fixed inputs of a binding, which are not dimensions. */
struct fixed {
    struct tune_cell *cells; /* [input_count] */
    char *texts;
};

struct reading {
    struct tune_matching *m;
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_binding *bindings;
    int count;
    bool counted;                /* true: entities are indexes */
    struct tune_map by_key;      /* from an index, or a hash of the values, to an entity + 1 */
    int64_t *next;               /* [m->count] another entity with the same hash + 1 */
    struct fixed *fixed;         /* [count] */
};

/* State of one experiment while its rows are read. */
struct table {
    struct reading *r;
    const struct tune_experiment *e;
    struct tune_column *columns;
    struct tune_dimensions d;
    /* from a hash of the values in this experiment's dimensions to an entity + 1 */
    struct tune_map entities;
    int64_t *next; /* another entity with the same hash + 1 */
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while the store's entities of the space are read");
}

/* ---- entities ---- */

/* Hash a value. Equal values have equal hashes, such as 4 and 4.0. */
static uint64_t mix_value(uint64_t hash, const struct tune_value *v)
{
    double number;
    if (tune_value_number(v, &number)) {
        number = number == 0 ? 0 : number;
        return tune_hash64(&number, sizeof number, hash);
    }
    if (v->type == TUNE_VALUE_TEXT)
        return tune_hash64(v->text, strlen(v->text), hash);
    for (int i = 0; v->type == TUNE_VALUE_LIST && i < v->list.count; i++)
        hash = mix_value(hash, &v->list.items[i]);
    return tune_hash64("", 1, hash);
}

static bool same_values(const struct tune_value *a, const struct tune_value *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!tune_value_equal(&a[i], &b[i]))
            return false;
    return true;
}

/* Find an entity, or add it. Returns its index; -1: no memory. */
static int find_or_add(struct reading *r, tune_index index, const struct tune_value *values)
{
    struct tune_matching *m = r->m;
    uint64_t key[2] = {7, 0};
    int count = m->space->count;
    for (int d = 0; d < count && !r->counted; d++)
        key[0] = mix_value(key[0], &values[d]);
    if (r->counted)
        memcpy(key, &index, sizeof index);
    int64_t *first = tune_map_add(&r->by_key, key);
    if (!first || !tune_array_fit(&m->entities, (size_t)m->count, sizeof *m->entities) ||
        !tune_array_fit(&r->next, (size_t)m->count, sizeof *r->next))
        return no_memory();
    for (int64_t i = *first; i > 0; i = r->next[i - 1])
        if (r->counted || same_values(m->entities[i - 1].values, values, count))
            return (int)i - 1;
    struct tune_matching_entity *e = &m->entities[m->count];
    *e = (struct tune_matching_entity){.index = r->counted ? index : 0};
    if (!r->counted &&
        !(e->values = tune_values_copy(tune_pool_take(&m->memory, tune_values_size(values, count)), values, count)))
        return no_memory();
    r->next[m->count] = *first;
    *first = ++m->count;
    return m->count - 1;
}

/* ---- rows ---- */

static int fix(struct reading *r, int p)
{
    const struct tune_binding *binding = &r->bindings[p];
    const struct tune_experiment *e = binding->experiment;
    struct tune_column *columns;
    struct fixed *f = &r->fixed[p];
    TRY(tune_rows_columns(e, &columns));
    int code = 0;
    f->cells = calloc((size_t)e->input_count + 1, sizeof *f->cells);
    f->texts = malloc((size_t)(e->input_count + 1) * (TUNE_STORE_TEXT_MAX + 1));
    if (!f->cells || !f->texts)
        code = no_memory();
    for (int i = 0; i < e->input_count && code == 0; i++)
        if (binding->dimension[i] < 0)
            code = tune_rows_cell(&columns[i], &binding->fixed[i], &f->cells[i], f->texts + (size_t)i * (TUNE_STORE_TEXT_MAX + 1),
                                  TUNE_STORE_TEXT_MAX + 1);
    free(columns);
    return code;
}

/* True if the text is the fixed value. Imported rows have 1 and 0 for booleans, as identifiers
 * do. */
static bool same_text(const struct tune_value *value, const char *fixed, const char *text)
{
    return !strcmp(fixed, text) || (value->type == TUNE_VALUE_BOOL && !strcmp(text, value->boolean ? "1" : "0"));
}

static bool same_number(const struct tune_cell *a, const struct tune_cell *b)
{
    int64_t x, y;
    return a->number == b->number && (!tune_rows_whole(a, &x) || (tune_rows_whole(b, &y) && x == y));
}

static bool fits(const struct tune_binding *p, const struct fixed *f, const struct tune_cell *inputs)
{
    for (int i = 0; i < p->experiment->input_count; i++) {
        const struct tune_cell *cell = &f->cells[i], *in = &inputs[i];
        if (p->dimension[i] >= 0)
            continue;
        if (cell->absent != in->absent || (cell->text != NULL) != (in->text != NULL) ||
            (cell->text ? !same_text(&p->fixed[i], cell->text, in->text) : !cell->absent && !same_number(cell, in)))
            return false;
    }
    return true;
}

/* Add the row to its entity. */
static int add_row(struct reading *r, const struct tune_matching_row *row)
{
    struct tune_matching *m = r->m;
    if (!tune_array_fit(&m->rows, (size_t)m->row_count, sizeof *m->rows))
        return no_memory();
    if (row->binding >= 0 && row->status != TUNE_FAILED)
        m->entities[row->entity].measured |= UINT64_C(1) << row->binding;
    m->rows[m->row_count++] = *row;
    return 0;
}

static int add_entity(struct table *t, tune_index index, struct tune_matching_row *row)
{
    if (t->r->space->constraint_count > 0 && tune_space_allowed(t->r->space, t->d.values) != 1) {
        tune_error_clear(); /* if constraints cannot be evaluated, the row is not in the space */
        return 0;
    }
    TRY(row->entity = find_or_add(t->r, index, t->d.values));
    return add_row(t->r, row);
}

/* ---- rows of several entities ---- */

static uint64_t hash_shared(const struct table *t, const struct tune_value *values)
{
    uint64_t hash = 9;
    for (int i = 0; i < t->d.count; i++)
        if (t->d.axes[i].input >= 0)
            hash = mix_value(hash, &values[i]);
    return hash;
}

/* The number of entities that share one row, over all open dimensions. 0: there are too many, or
 * they cannot be counted. */
static tune_index shared_by(const struct table *t)
{
    tune_index count = t->r->counted;
    for (int i = 0; i < t->d.count; i++)
        if (t->d.axes[i].input < 0)
            count = t->d.axes[i].size <= TUNE_MATCHING_SHARED && count * t->d.axes[i].size <= TUNE_MATCHING_SHARED
                        ? count * t->d.axes[i].size
                        : 0;
    return count;
}

/* Index the entities by their values in this experiment's dimensions. */
static int index_entities(struct table *t)
{
    const struct tune_matching *m = t->r->m;
    struct tune_value *values = calloc((size_t)t->d.count + 1, sizeof *values);
    t->next = calloc((size_t)m->count + 1, sizeof *t->next);
    bool good = values && t->next;
    for (int i = m->count - 1; i >= 0 && good; i--) {
        tune_matching_values(m, i, values);
        int64_t *first = tune_map_add(&t->entities, (const uint64_t[]){hash_shared(t, values), 0});
        if ((good = first != NULL)) {
            t->next[i] = *first;
            *first = i + 1;
        }
    }
    free(values);
    return good ? 0 : no_memory();
}

static int add_to_indexed(struct table *t, struct tune_matching_row *row)
{
    for (int64_t i = tune_map_get(&t->entities, (const uint64_t[]){hash_shared(t, t->d.values), 0}); i > 0; i = t->next[i - 1]) {
        row->entity = (int)i - 1;
        TRY(add_row(t->r, row));
    }
    return 0;
}

/* Add the row to every entity with these values, going through the open dimensions. */
static int add_to_all(struct table *t, tune_index count, struct tune_matching_row *row)
{
    for (tune_index n = 0; n < count; n++) {
        tune_index left = n, index = t->d.index;
        for (int i = t->d.count - 1; i >= 0; i--) {
            struct tune_axis_of_rows *a = &t->d.axes[i];
            if (a->input >= 0)
                continue;
            tune_domain_value(a->wanted, left % a->size, &t->d.values[i]);
            index += left % a->size * a->weight;
            left /= a->size;
        }
        TRY(add_entity(t, index, row));
    }
    return 0;
}

/* ---- tables ---- */

/* True if the cell is "actuator.name", with or without parameters. */
static bool is_named(const struct tune_cell *cell, const char *name)
{
    const char *dot = cell->absent ? NULL : strchr(cell->text, '.');
    size_t length = strlen(name);
    return dot && !strncmp(dot + 1, name, length) && (!dot[1 + length] || dot[1 + length] == '-');
}

/* Find or add the row's provenance, and set *provenance to its index. */
static int add_provenance(struct tune_matching *m, const struct tune_cell *cells, int *provenance)
{
    int before = m->provenance_count;
    TRY(*provenance = tune_provenances_add(&m->provenances, &m->provenance_count, cells[HOST_CLASS].text,
                                           cells[BUILD].text, cells[WEIGHTS].text, cells[DATA].text));
    if (m->provenance_count > before) {
        if (!tune_array_fit(&m->provenance_started, (size_t)before, sizeof *m->provenance_started))
            return no_memory();
        m->provenance_started[before] = 0;
    }
    if (cells[STARTED].number > m->provenance_started[*provenance])
        m->provenance_started[*provenance] = cells[STARTED].number;
    return 0;
}

static int take_row(struct table *t, const struct tune_cell *cells, struct tune_row_position at)
{
    struct reading *r = t->r;
    const struct tune_cell *inputs = cells + KEYS;
    struct tune_matching_row row = {.binding = -1, .status = (uint8_t)tune_rows_status(&cells[STATUS]), .shared = t->d.open > 0,
                                    .position = at};
    if (cells[UID].absent || !is_named(&cells[EXPERIMENT], t->e->name)) {
        r->m->strays++;
        return 0;
    }
    if (!tune_rows_of(&cells[EXPERIMENT], t->e) || !tune_dimensions_read(&t->d, inputs))
        return 0;
    tune_uid_read(row.uid, cells[UID].text);
    TRY(add_provenance(r->m, cells, &row.provenance));
    for (int p = 0; p < r->count && row.binding < 0; p++)
        if (r->bindings[p].experiment == t->e && fits(&r->bindings[p], &r->fixed[p], inputs))
            row.binding = (int16_t)p;
    if (t->d.open == 0)
        return add_entity(t, t->d.index, &row);
    tune_index count = shared_by(t);
    return count > 0 ? add_to_all(t, count, &row) : add_to_indexed(t, &row);
}

static int scan_rows(struct table *t)
{
    const struct tune_cell *cells;
    struct tune_scan *scan = tune_rows_scan(t->r->store, t->e, keys, KEYS);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if ((more = take_row(t, cells, tune_scan_position(scan))) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

/* Read the rows of one experiment. open: it may lack some of the space's dimensions. */
static int read_experiment(struct reading *r, const struct tune_experiment *e, bool open)
{
    struct table t = {.r = r, .e = e};
    TRY(tune_rows_columns(e, &t.columns));
    int code = tune_dimensions_new(&t.d, r->space, e, t.columns);
    if (code == 0 && (t.d.open > 0) == open) {
        if (open && shared_by(&t) == 0)
            code = index_entities(&t);
        if (code == 0)
            code = scan_rows(&t);
    }
    tune_dimensions_free(&t.d);
    free(t.columns);
    free(t.next);
    tune_map_free(&t.entities);
    return code;
}

static int read_all(struct reading *r)
{
    int tables;
    TRY(tune_store_tables(r->store, &tables) ? 0 : -1);
    for (int pass = 0; pass < 2; pass++) /* first the experiments that have all dimensions */
        for (int p = 0; p < r->count; p++) {
            const struct tune_experiment *e = r->bindings[p].experiment;
            if (tune_binding_is_first(r->bindings, p) && tune_store_has(r->store, e->name))
                TRY(read_experiment(r, e, pass == 1));
        }
    return 0;
}

int tune_matching_read(struct tune_matching *m, struct tune_store *s, const struct tune_space *space,
                       const struct tune_binding *bindings, int count)
{
    struct reading r = {.m = m, .store = s, .space = space, .bindings = bindings, .count = count,
                        .counted = space->size > 0 && space->size != TUNE_INDEX_MAX};
    *m = (struct tune_matching){.space = space};
    if (count > 64)
        return tune_error_usage("a space can have at most 64 experiments when a store is searched");
    int code = (r.fixed = calloc((size_t)count + 1, sizeof *r.fixed)) ? 0 : no_memory();
    for (int p = 0; p < count && code == 0; p++)
        code = fix(&r, p);
    if (code == 0)
        code = read_all(&r);
    for (int p = 0; r.fixed && p < count; p++) {
        free(r.fixed[p].cells);
        free(r.fixed[p].texts);
    }
    free(r.fixed);
    free(r.next);
    tune_map_free(&r.by_key);
    if (code < 0)
        tune_matching_free(m);
    return code;
}

void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values)
{
    if (m->entities[i].values)
        memcpy(values, m->entities[i].values, (size_t)m->space->count * sizeof *values);
    else
        tune_space_entity(m->space, m->entities[i].index, values);
}

void tune_matching_free(struct tune_matching *m)
{
    tune_pool_free(m->memory);
    free(m->entities);
    free(m->rows);
    free(m->provenances);
    free(m->provenance_started);
    *m = (struct tune_matching){0};
}
