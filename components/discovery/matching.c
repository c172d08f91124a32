/* matching.c - rows of a store seen through a space: which of its entities they are. */
#include "discovery/matching.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/try.h"

enum { KEYS = 3 }; /* status, experiment and uid before the inputs */

struct block { /* of memory the entities' values live in */
    struct block *before;
    char bytes[];
};

struct reading {
    struct tune_matching *m;
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    int count;
    int room;
    uint64_t *hashes;             /* [bucket_count]; 0: free */
    int *places, bucket_count;    /* open addressing, a power of two */
    struct tune_value *values, *items;
    int row_room;
};

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while the store's entities of the space are read");
    return -1;
}

static void *take(struct tune_matching *m, size_t size)
{
    struct block *b = malloc(sizeof *b + size);
    if (!b)
        return NULL;
    b->before = m->memory;
    m->memory = b;
    return b->bytes;
}

/* The present values with their texts and items, to stay. */
static struct tune_value *keep(struct reading *r)
{
    int count = r->space->count;
    size_t size = (size_t)count * sizeof *r->values;
    for (int i = 0; i < count; i++)
        size += r->values[i].type == TUNE_VALUE_TEXT ? strlen(r->values[i].text) + 1
                : r->values[i].type == TUNE_VALUE_LIST ? (size_t)r->values[i].list.count * sizeof *r->values : 0;
    struct tune_value *all = take(r->m, size);
    if (!all)
        return NULL;
    memcpy(all, r->values, (size_t)count * sizeof *all);
    struct tune_value *items = all + count;
    for (int i = 0; i < count; i++)
        if (all[i].type == TUNE_VALUE_LIST) {
            memcpy(items, all[i].list.items, (size_t)all[i].list.count * sizeof *items);
            all[i].list.items = items;
            items += all[i].list.count;
        }
    char *text = (char *)items;
    for (int i = 0; i < count; i++)
        if (all[i].type == TUNE_VALUE_TEXT) {
            strcpy(text, all[i].text);
            all[i].text = text;
            text += strlen(text) + 1;
        }
    return all;
}

static int grow(struct reading *r)
{
    struct tune_matching *m = r->m;
    if (m->count < r->room)
        return 0;
    int room = r->room ? 2 * r->room : 128, buckets = 4 * room;
    void *entities = realloc(m->entities, (size_t)room * sizeof *m->entities);
    if (entities)
        m->entities = entities;
    uint64_t *hashes = calloc((size_t)buckets, sizeof *hashes);
    int *places = malloc((size_t)buckets * sizeof *places);
    if (!entities || !hashes || !places) {
        free(hashes);
        free(places);
        return no_memory();
    }
    for (int i = 0; i < r->bucket_count; i++)
        if (r->hashes[i]) {
            int at = (int)(r->hashes[i] & (uint64_t)(buckets - 1));
            while (hashes[at])
                at = (at + 1) & (buckets - 1);
            hashes[at] = r->hashes[i];
            places[at] = r->places[i];
        }
    free(r->hashes);
    free(r->places);
    r->hashes = hashes;
    r->places = places;
    r->bucket_count = buckets;
    r->room = room;
    return 0;
}

static bool same(const struct tune_value *a, const struct tune_value *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!tune_value_equal(&a[i], &b[i]))
            return false;
    return true;
}

/* The place of the present values among the entities, made where it is new; -1: no memory. */
static int place(struct reading *r, bool counted, tune_index index)
{
    char text[4096];
    uint64_t hash;
    TRY(grow(r));
    if (counted) {
        hash = tune_hash64(&index, sizeof index, 7) | 1;
    } else {
        int length = tune_entity_identifier(r->space->names, r->values, r->space->count, text, sizeof text);
        hash = tune_hash64(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1, 7) | 1;
    }
    int at = (int)(hash & (uint64_t)(r->bucket_count - 1));
    for (; r->hashes[at]; at = (at + 1) & (r->bucket_count - 1)) {
        const struct tune_matching_entity *e = &r->m->entities[r->places[at]];
        if (r->hashes[at] == hash && (counted ? e->index == index : same(e->values, r->values, r->space->count)))
            return r->places[at];
    }
    struct tune_matching_entity *e = &r->m->entities[r->m->count];
    *e = (struct tune_matching_entity){.index = index, .values = counted ? NULL : keep(r)};
    if (!counted && !e->values)
        return no_memory();
    r->hashes[at] = hash;
    r->places[at] = r->m->count;
    return r->m->count++;
}

/* The row's values of the space's dimensions: 1, 0: it is no entity of it. */
static int read_entity(struct reading *r, const struct tune_experiment *e, const int *input_of, const struct tune_cell *inputs,
                       bool *counted, tune_index *index)
{
    for (int d = 0; d < r->space->count; d++)
        r->values[d] = tune_rows_value(&e->inputs[input_of[d]], &r->space->dimensions[d].domain, &inputs[input_of[d]]);
    if (!tune_space_has(r->space, r->values))
        return 0;
    *index = 0;
    *counted = tune_space_find(r->space, r->values, index);
    return 1;
}

/* The inputs that are no dimensions are those of the protocol. */
static bool fits(const struct tune_protocol *p, const struct tune_column *columns, const struct tune_cell *inputs)
{
    char text[TUNE_STORE_TEXT_MAX + 1];
    for (int i = 0; i < p->experiment->input_count; i++) {
        struct tune_cell cell;
        if (p->dimension[i] >= 0)
            continue;
        if (tune_rows_cell(&columns[i], &p->fixed[i], &cell, text, sizeof text) < 0 || cell.absent != inputs[i].absent ||
            (cell.text ? !inputs[i].text || strcmp(cell.text, inputs[i].text) : inputs[i].text || cell.number != inputs[i].number))
            return false;
    }
    return true;
}

static enum tune_status status_of(const struct tune_cell *cell)
{
    for (int s = TUNE_VALID; s <= TUNE_FAILED; s++)
        if (!cell->absent && !strcmp(cell->text, tune_status_name((enum tune_status)s)))
            return (enum tune_status)s;
    return TUNE_FAILED;
}

static int add_row(struct reading *r, const struct tune_matching_row *row)
{
    struct tune_matching *m = r->m;
    if (m->row_count == r->row_room) {
        int room = r->row_room ? 2 * r->row_room : 256;
        void *grown = realloc(m->rows, (size_t)room * sizeof *m->rows);
        if (!grown)
            return no_memory();
        m->rows = grown;
        r->row_room = room;
    }
    m->rows[m->row_count++] = *row;
    return 0;
}

static int take_row(struct reading *r, const struct tune_experiment *e, const int *input_of, const struct tune_column *columns,
                    const struct tune_cell *cells, struct tune_place at)
{
    size_t actuator = strlen(e->actuator);
    struct tune_matching_row row = {.protocol = -1, .status = status_of(&cells[0]), .place = at};
    tune_index index;
    bool counted;
    if (cells[1].absent || strncmp(cells[1].text, e->actuator, actuator) || cells[1].text[actuator] != '.' ||
        !read_entity(r, e, input_of, cells + KEYS, &counted, &index))
        return 0;
    TRY(row.entity = place(r, counted, index));
    tune_uid_read(row.uid, cells[2].text);
    for (int p = 0; p < r->count && row.protocol < 0; p++)
        if (r->protocols[p].experiment == e && fits(&r->protocols[p], columns, cells + KEYS))
            row.protocol = p;
    if (row.protocol >= 0 && row.status != TUNE_FAILED)
        r->m->entities[row.entity].measured |= UINT64_C(1) << row.protocol;
    return add_row(r, &row);
}

static int read_experiment(struct reading *r, const struct tune_experiment *e, const int *input_of)
{
    const struct tune_cell *cells;
    struct tune_column *columns = NULL;
    int more = -1;
    const char **names = calloc((size_t)(KEYS + e->input_count), sizeof *names);
    if (!names)
        return no_memory();
    names[0] = tune_key_column(TUNE_KEY_STATUS)->name;
    names[1] = tune_key_column(TUNE_KEY_EXPERIMENT)->name;
    names[2] = tune_key_column(TUNE_KEY_UID)->name;
    for (int i = 0; i < e->input_count; i++)
        names[KEYS + i] = e->names[i];
    struct tune_scan *scan = tune_rows_columns(e, &columns) < 0 ? NULL : tune_scan_open(r->store, e->name, names, KEYS + e->input_count);
    while (scan && (more = tune_scan_next(scan, &cells)) == 1)
        if ((more = take_row(r, e, input_of, columns, cells, tune_scan_place(scan))) < 0)
            break;
    tune_scan_free(scan);
    free(columns);
    free(names);
    return more;
}

/* Which input each dimension is: 0: one is none of this experiment's, so its rows cannot name an entity. */
static int dimensions(const struct tune_space *s, const struct tune_experiment *e, int *input_of)
{
    for (int d = 0; d < s->count; d++) {
        for (input_of[d] = 0; input_of[d] < e->input_count; input_of[d]++)
            if (!strcmp(e->names[input_of[d]], s->names[d]))
                break;
        if (input_of[d] == e->input_count)
            return 0;
    }
    return 1;
}

static int read_all(struct reading *r)
{
    int input_of[TUNE_SPACE_DIMENSIONS], tables;
    const char *const *names = tune_store_tables(r->store, &tables);
    if (!names)
        return -1;
    for (int p = 0; p < r->count; p++) {
        const struct tune_experiment *e = r->protocols[p].experiment;
        bool again = false, there = false;
        for (int i = 0; i < p; i++)
            again = again || r->protocols[i].experiment == e;
        for (int i = 0; i < tables; i++)
            there = there || !strcmp(names[i], e->name);
        if (!again && there && dimensions(r->space, e, input_of))
            TRY(read_experiment(r, e, input_of));
    }
    return 0;
}

int tune_matching_read(struct tune_matching *m, struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                       int count)
{
    struct reading r = {.m = m, .store = s, .space = space, .protocols = protocols, .count = count};
    int code = -1;
    *m = (struct tune_matching){.space = space};
    if (count > 64) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "a space of more than 64 experiments cannot be looked up in a store");
        return -1;
    }
    r.values = calloc((size_t)space->count + 1, sizeof *r.values);
    r.items = calloc((size_t)space->items + 1, sizeof *r.items);
    code = r.values && r.items ? read_all(&r) : no_memory();
    free(r.values);
    free(r.items);
    free(r.hashes);
    free(r.places);
    if (code < 0)
        tune_matching_free(m);
    return code;
}

void tune_matching_values(const struct tune_matching *m, int i, struct tune_value *values, struct tune_value *items)
{
    if (m->entities[i].values)
        memcpy(values, m->entities[i].values, (size_t)m->space->count * sizeof *values);
    else
        tune_space_entity(m->space, m->entities[i].index, values, items);
}

void tune_matching_free(struct tune_matching *m)
{
    while (m->memory) {
        struct block *b = m->memory;
        m->memory = b->before;
        free(b);
    }
    free(m->entities);
    free(m->rows);
    *m = (struct tune_matching){0};
}
