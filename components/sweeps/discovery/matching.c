/* matching.c - find the entities of a space that the rows of a store belong to. */
#include "core/array.h"
#include "core/pool.h"
#include "sweeps/discovery/matching.h"

#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "sweeps/discovery/dimensions.h"
#include "sweeps/discovery/uids.h"

/* Key columns that are read before inputs and requested columns. */
enum { STATUS, EXPERIMENT, UID, HOST_CLASS, BUILD, WEIGHTS, DATA, KEYS };
static const enum tune_key keys[KEYS] = {TUNE_KEY_STATUS, TUNE_KEY_EXPERIMENT, TUNE_KEY_UID, TUNE_KEY_HOST_CLASS,
                                         TUNE_KEY_BUILD,  TUNE_KEY_WEIGHTS,    TUNE_KEY_DATA};

/* The fixed inputs of a protocol, which are not dimensions. */
struct fixed {
    struct tune_cell *cells; /* [input_count] */
    char *texts;
};

struct reading {
    struct tune_matching *m;
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    int count;
    const char *const *columns;
    int column_count;
    bool counted;                /* true: entities are indexes */
    uint32_t *hashes;            /* [m->count] */
    int *places, bucket_count;   /* hash table with open addressing, size a power of two; -1:
                                  * free */
    struct fixed *fixed;         /* [count] */
};

/* State of one experiment while its rows are read. */
struct table {
    struct reading *r;
    const struct tune_experiment *e;
    struct tune_column *columns;
    struct tune_dimensions d;
    /* [known_count] entities, sorted by their values in this experiment's dimensions */
    struct { uint64_t hash; int entity; } *known;
    int known_count;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while the store's entities of the space are read");
}

/* ---- entities ---- */

/* Equal values have equal hashes: 4 and 4.0 are one. */
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

static uint32_t hash_of(const struct reading *r, tune_index index, const struct tune_value *values)
{
    uint64_t hash = 7;
    if (r->counted)
        return (uint32_t)tune_hash64(&index, sizeof index, hash);
    for (int d = 0; d < r->space->count; d++)
        hash = mix_value(hash, &values[d]);
    return (uint32_t)hash;
}

static int grow(struct reading *r)
{
    struct tune_matching *m = r->m;
    if (!tune_array_fit(&m->entities, (size_t)m->count, sizeof *m->entities) ||
        !tune_array_fit(&r->hashes, (size_t)m->count, sizeof *r->hashes))
        return no_memory();
    if (2 * m->count < r->bucket_count)
        return 0;
    int buckets = r->bucket_count ? 2 * r->bucket_count : 256;
    int *places = malloc((size_t)buckets * sizeof *places);
    if (!places)
        return no_memory();
    memset(places, 0xff, (size_t)buckets * sizeof *places);
    for (int i = 0; i < m->count; i++) {
        int at = (int)(r->hashes[i] & (uint32_t)(buckets - 1));
        while (places[at] >= 0)
            at = (at + 1) & (buckets - 1);
        places[at] = i;
    }
    free(r->places);
    r->places = places;
    r->bucket_count = buckets;
    return 0;
}

static bool same(const struct tune_value *a, const struct tune_value *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!tune_value_equal(&a[i], &b[i]))
            return false;
    return true;
}

/* The index of an entity, which is added if it is new; -1: no memory. */
static int place(struct reading *r, tune_index index, const struct tune_value *values)
{
    struct tune_matching *m = r->m;
    TRY(grow(r));
    uint32_t hash = hash_of(r, index, values);
    int at = (int)(hash & (uint32_t)(r->bucket_count - 1));
    for (; r->places[at] >= 0; at = (at + 1) & (r->bucket_count - 1)) {
        int i = r->places[at];
        if (r->hashes[i] == hash &&
            (r->counted ? m->entities[i].index == index : same(m->entities[i].values, values, r->space->count)))
            return i;
    }
    struct tune_matching_entity *e = &m->entities[m->count];
    int count = m->space->count;
    *e = (struct tune_matching_entity){.index = r->counted ? index : 0};
    if (!r->counted)
        e->values = tune_values_copy(tune_pool_take(&m->memory, tune_values_size(values, count)), values, count);
    if (!r->counted && !e->values)
        return no_memory();
    r->hashes[m->count] = hash;
    r->places[at] = m->count;
    return m->count++;
}

/* ---- rows ---- */

static int fix(struct reading *r, int p)
{
    const struct tune_protocol *protocol = &r->protocols[p];
    const struct tune_experiment *e = protocol->experiment;
    struct tune_column *columns;
    struct fixed *f = &r->fixed[p];
    TRY(tune_rows_columns(e, &columns));
    int code = 0;
    f->cells = calloc((size_t)e->input_count + 1, sizeof *f->cells);
    f->texts = malloc((size_t)(e->input_count + 1) * (TUNE_STORE_TEXT_MAX + 1));
    if (!f->cells || !f->texts)
        code = no_memory();
    for (int i = 0; i < e->input_count && code == 0; i++)
        if (protocol->dimension[i] < 0)
            code = tune_rows_cell(&columns[i], &protocol->fixed[i], &f->cells[i], f->texts + (size_t)i * (TUNE_STORE_TEXT_MAX + 1),
                                  TUNE_STORE_TEXT_MAX + 1);
    free(columns);
    return code;
}

/* True if a text is the fixed value. Imported rows spell booleans as 1 and 0, like ids. */
static bool same_text(const struct tune_value *value, const char *fixed, const char *text)
{
    return !strcmp(fixed, text) || (value->type == TUNE_VALUE_BOOL && !strcmp(text, value->boolean ? "1" : "0"));
}

static bool same_number(const struct tune_cell *a, const struct tune_cell *b)
{
    int64_t x, y;
    return a->number == b->number && (!tune_rows_whole(a, &x) || (tune_rows_whole(b, &y) && x == y));
}

static bool fits(const struct tune_protocol *p, const struct fixed *f, const struct tune_cell *inputs)
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

/* Add the row to that entity; asked: the cells of the requested columns. */
static int add_row(struct reading *r, const struct tune_matching_row *row, const struct tune_cell *asked)
{
    struct tune_matching *m = r->m;
    if (!tune_array_fit(&m->rows, (size_t)m->row_count, sizeof *m->rows) ||
        !tune_array_fit(&m->present, (size_t)m->row_count, ((size_t)m->words + 1) * sizeof *m->present))
        return no_memory();
    uint64_t *present = m->present + (size_t)m->row_count * (size_t)m->words;
    for (int w = 0; w < m->words; w++)
        present[w] = 0;
    for (int c = 0; c < r->column_count; c++)
        present[c / 64] |= (uint64_t)!asked[c].absent << (c % 64);
    if (row->protocol >= 0 && row->status != TUNE_FAILED)
        m->entities[row->entity].measured |= UINT64_C(1) << row->protocol;
    m->rows[m->row_count++] = *row;
    return 0;
}

static int add_entity(struct table *t, tune_index index, struct tune_matching_row *row, const struct tune_cell *asked)
{
    if (t->r->space->constraint_count > 0 && tune_space_allowed(t->r->space, t->d.values) != 1) {
        tune_error_clear(); /* if constraints cannot be evaluated, it is not in the space */
        return 0;
    }
    TRY(row->entity = place(t->r, index, t->d.values));
    return add_row(t->r, row, asked);
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

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The number of entities of one row, over all open dimensions; 0: too many, or they cannot be
 * counted. */
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

/* Sort the entities of other rows by their values in this experiment's dimensions. */
static int index_known(struct table *t)
{
    const struct tune_matching *m = t->r->m;
    struct tune_value *values = calloc((size_t)t->d.count + 1, sizeof *values);
    t->known = calloc((size_t)m->count + 1, sizeof *t->known);
    bool good = values && t->known;
    for (int i = 0; i < m->count && good; i++) {
        tune_matching_values(m, i, values);
        t->known[i].hash = hash_shared(t, values);
        t->known[i].entity = i;
    }
    t->known_count = m->count;
    if (good)
        qsort(t->known, (size_t)m->count, sizeof *t->known, by_hash);
    free(values);
    return good ? 0 : no_memory();
}

static int add_to_known(struct table *t, struct tune_matching_row *row, const struct tune_cell *asked)
{
    uint64_t hash = hash_shared(t, t->d.values);
    int low = 0, high = t->known_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (t->known[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < t->known_count && t->known[low].hash == hash; low++) {
        row->entity = t->known[low].entity;
        TRY(add_row(t->r, row, asked));
    }
    return 0;
}

/* Add the row to every entity with these values, going through the open dimensions. */
static int add_to_all(struct table *t, tune_index count, struct tune_matching_row *row, const struct tune_cell *asked)
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
        TRY(add_entity(t, index, row, asked));
    }
    return 0;
}

/* ---- tables ---- */

/* True if the cell is "actuator.name", perhaps with parameters. */
static bool is_named(const struct tune_cell *cell, const char *name)
{
    const char *dot = cell->absent ? NULL : strchr(cell->text, '.');
    size_t length = strlen(name);
    return dot && !strncmp(dot + 1, name, length) && (!dot[1 + length] || dot[1 + length] == '-');
}

static int take_row(struct table *t, const struct tune_cell *cells, struct tune_place at)
{
    struct reading *r = t->r;
    const struct tune_cell *inputs = cells + KEYS, *asked = inputs + t->e->input_count;
    struct tune_matching_row row = {.protocol = -1, .status = (uint8_t)tune_rows_status(&cells[STATUS]), .shared = t->d.open > 0,
                                    .place = at};
    if (cells[UID].absent || !is_named(&cells[EXPERIMENT], t->e->name)) {
        r->m->strays++;
        return 0;
    }
    if (!tune_rows_of(&cells[EXPERIMENT], t->e) || !tune_dimensions_read(&t->d, inputs))
        return 0;
    tune_uid_read(row.uid, cells[UID].text);
    TRY(row.origin = tune_origins_add(&r->m->origins, &r->m->origin_count, cells[HOST_CLASS].text, cells[BUILD].text,
                                      cells[WEIGHTS].text, cells[DATA].text));
    for (int p = 0; p < r->count && row.protocol < 0; p++)
        if (r->protocols[p].experiment == t->e && fits(&r->protocols[p], &r->fixed[p], inputs))
            row.protocol = (int16_t)p;
    if (t->d.open == 0)
        return add_entity(t, t->d.index, &row, asked);
    tune_index count = shared_by(t);
    return count > 0 ? add_to_all(t, count, &row, asked) : add_to_known(t, &row, asked);
}

static int scan_rows(struct table *t)
{
    const struct tune_experiment *e = t->e;
    const struct tune_cell *cells;
    int all = KEYS + e->input_count + t->r->column_count, more;
    const char **names = calloc((size_t)all, sizeof *names);
    if (!names)
        return no_memory();
    for (int i = 0; i < KEYS; i++)
        names[i] = tune_key_column(keys[i])->name;
    for (int i = 0; i < e->input_count; i++)
        names[KEYS + i] = e->names[i];
    for (int i = 0; i < t->r->column_count; i++)
        names[KEYS + e->input_count + i] = t->r->columns[i];
    struct tune_scan *scan = tune_scan_open(t->r->store, e->name, names, all);
    free(names);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if ((more = take_row(t, cells, tune_scan_place(scan))) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

/* Read the rows of one experiment. It has all dimensions; with `open` it may be one that lacks
 * some. */
static int read_experiment(struct reading *r, const struct tune_experiment *e, bool open)
{
    struct table t = {.r = r, .e = e};
    TRY(tune_rows_columns(e, &t.columns));
    int code = tune_dimensions_new(&t.d, r->space, e, t.columns);
    if (code == 0 && (t.d.open > 0) == open) {
        if (open && shared_by(&t) == 0)
            code = index_known(&t);
        if (code == 0)
            code = scan_rows(&t);
    }
    tune_dimensions_free(&t.d);
    free(t.columns);
    free(t.known);
    return code;
}

static int read_all(struct reading *r)
{
    int tables;
    TRY(tune_store_tables(r->store, &tables) ? 0 : -1);
    for (int pass = 0; pass < 2; pass++) /* rows that have all dimensions come first */
        for (int p = 0; p < r->count; p++) {
            const struct tune_experiment *e = r->protocols[p].experiment;
            if (tune_protocol_is_first(r->protocols, p) && tune_store_has(r->store, e->name))
                TRY(read_experiment(r, e, pass == 1));
        }
    return 0;
}

int tune_matching_read(struct tune_matching *m, struct tune_store *s, const struct tune_space *space,
                       const struct tune_protocol *protocols, int count, const char *const *columns, int column_count)
{
    struct reading r = {.m = m, .store = s, .space = space, .protocols = protocols, .count = count, .columns = columns,
                        .column_count = column_count, .counted = space->size > 0 && space->size != TUNE_INDEX_MAX};
    *m = (struct tune_matching){.space = space, .words = (column_count + 63) / 64};
    if (count > 64)
        return tune_error_usage("a space of more than 64 experiments cannot be looked up in a "
                                "store");
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
    free(r.hashes);
    free(r.places);
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
    free(m->origins);
    free(m->present);
    *m = (struct tune_matching){0};
}
