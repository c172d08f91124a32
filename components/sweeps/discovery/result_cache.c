/* result_cache.c - find rows of a store by input vector, with a hash table.
 *
 * The key is a 128-bit hash of the experiment's name and all inputs. Numbers are hashed by value,
 * so 4 and 4.0 are equal. An input that a file lacks has its default. Rows with the same key form a
 * chain, oldest first. Provenances, of which there are few, are in a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map.h"
#include "core/try.h"
#include "sweeps/discovery/rows.h"
#include "sweeps/discovery/uids.h"

struct entry {
    int64_t next; /* entry with the same key + 1; 0: none */
    int provenance;
    int binding;
    struct tune_cached_row row;
};

struct tune_result_cache {
    struct tune_store *store;
    int64_t version; /* tune_store_version at the last reading */
    const struct tune_binding *bindings;
    int binding_count;
    char operation[256], before[512]; /* before: the earlier name of our host class */
    struct tune_column **columns; /* [binding_count] columns of inputs and targets */
    struct entry *entries;        /* rows in the order of reading */
    int count;
    struct tune_map firsts;       /* from a key to its first entry + 1 */
    struct tune_provenance *provenances;
    int provenance_count;
    struct tune_map answered;     /* counts for the operation's requests, by entity, replay_key and
                                   * result_key */
    struct tune_uids finished;    /* uids in the operation's requests */
    struct tune_cached_row *found;
    struct { int of; double seconds; } *medians; /* [binding_count] medians, and their numbers of entries */
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while the rows of the store are indexed");
}

/* ---- keys ---- */

static void mix(uint64_t key[2], const void *data, size_t size)
{
    key[0] = tune_hash64(data, size, key[0]);
    key[1] = tune_hash64(data, size, key[1] ^ 0x9e3779b97f4a7c15u);
}

static void mix_cell(uint64_t key[2], const struct tune_cell *cell)
{
    int64_t whole = 0;
    char kind = cell->absent ? 'a' : cell->text ? 't' : tune_rows_whole(cell, &whole) ? 'w' : 'n';
    mix(key, &kind, 1);
    if (cell->absent)
        return;
    if (cell->text) {
        mix(key, cell->text, strlen(cell->text) + 1);
        return;
    }
    mix(key, kind == 'w' ? (const void *)&whole : &cell->number, 8);
}

static void begin_key(uint64_t key[2], const struct tune_experiment *e)
{
    key[0] = 1;
    key[1] = 2;
    mix(key, e->actuator, strlen(e->actuator) + 1);
    mix(key, e->name, strlen(e->name) + 1);
}

static int key_of_values(struct tune_result_cache *c, int binding, const struct tune_value *inputs, uint64_t key[2])
{
    const struct tune_experiment *e = c->bindings[binding].experiment;
    char text[TUNE_STORE_TEXT_MAX + 1];
    begin_key(key, e);
    for (int i = 0; i < e->input_count; i++) {
        struct tune_cell cell;
        TRY(tune_rows_cell(&c->columns[binding][i], &inputs[i], &cell, text, sizeof text));
        mix_cell(key, &cell);
    }
    return 0;
}

/* ---- the table ---- */

static int add_entry(struct tune_result_cache *c, const uint64_t key[2], int binding, int provenance, const struct tune_cached_row *row)
{
    int64_t *first = tune_map_add(&c->firsts, key);
    if (!first || !tune_array_fit(&c->entries, (size_t)c->count, sizeof *c->entries))
        return no_memory();
    c->entries[c->count++] = (struct entry){0, provenance, binding, *row};
    while (*first) /* to the end of its chain */
        first = &c->entries[*first - 1].next;
    *first = c->count;
    return 0;
}

static bool agrees(const struct tune_result_cache *c, const struct tune_provenance *a, const struct tune_provenance *b, int accept)
{
    return ((accept & TUNE_ACCEPT_HOST) || !strcmp(a->host_class, b->host_class) ||
            (*c->before && !strcmp(a->host_class, c->before))) &&
           ((accept & TUNE_ACCEPT_BUILD) || !strcmp(a->build, b->build)) &&
           ((accept & TUNE_ACCEPT_WEIGHTS) || !strcmp(a->weights, b->weights)) &&
           ((accept & TUNE_ACCEPT_DATA) || !strcmp(a->data, b->data));
}

/* The differences between two provenances that accept does not allow. */
static int differences(const struct tune_result_cache *c, const struct tune_provenance *a, const struct tune_provenance *b,
                       int accept)
{
    int bits = 0;
    for (int bit = TUNE_ACCEPT_HOST; bit <= TUNE_ACCEPT_DATA; bit *= 2)
        bits |= agrees(c, a, b, ~bit) ? 0 : bit;
    return bits & ~accept;
}

/* ---- requests of the operation ---- */

/* c->answered has three kinds of keys. The first is the hash of an entity, for any request of it.
 * replay_key is for its replays under an experiment. result_key is for its results, by inputs and
 * repeat. */
static uint64_t replay_key(uint64_t entity, const char *experiment)
{
    return tune_hash64(experiment, strlen(experiment), entity);
}

static uint64_t result_key(uint64_t entity, const uint64_t key[2], int repeat)
{
    const uint64_t parts[] = {entity, key[0], key[1], (uint64_t)repeat};
    return tune_hash64(parts, sizeof parts, 0);
}

static int count_answer(struct tune_result_cache *c, uint64_t key)
{
    int64_t *count = tune_map_add(&c->answered, (const uint64_t[]){key, 0});
    if (!count)
        return no_memory();
    ++*count;
    return 0;
}

static int64_t answer_count(const struct tune_result_cache *c, uint64_t key)
{
    return tune_map_get(&c->answered, (const uint64_t[]){key, 0});
}

/* ---- reading the store ---- */

enum { STATUS, REPEAT, SECONDS, HOST_CLASS, BUILD, WEIGHTS, DATA, EXPERIMENT, UID, OPERATION, ENTITY, SCANNED_KEYS };
static const enum tune_key scanned[SCANNED_KEYS] = {TUNE_KEY_STATUS, TUNE_KEY_REPEAT, TUNE_KEY_SECONDS, TUNE_KEY_HOST_CLASS,
                                                    TUNE_KEY_BUILD, TUNE_KEY_WEIGHTS, TUNE_KEY_DATA, TUNE_KEY_EXPERIMENT,
                                                    TUNE_KEY_UID, TUNE_KEY_OPERATION, TUNE_KEY_ENTITY};

/* The value of the binding's budget in a row; NAN: it has no value. */
static float weight_of(const struct tune_binding *p, const struct tune_cell *inputs)
{
    return p->budget < 0 ? 1 : inputs[p->budget].absent ? NAN : (float)inputs[p->budget].number;
}

static int put_answer(struct tune_result_cache *c, const uint64_t key[2], int binding, int provenance,
                      const struct tune_cached_row *row)
{
    TRY(provenance);
    TRY(add_entry(c, key, binding, provenance, row));
    if (!row->entity)
        return 0;
    TRY(count_answer(c, row->entity));
    return count_answer(c, result_key(row->entity, key, row->repeat));
}

/* Note that a row of this operation answers its request. Failed rows that will be tried again are
 * left out. */
static uint64_t entity_of(struct tune_result_cache *c, const struct tune_cached_row *row, const struct tune_cell *cells)
{
    if (!*c->operation || cells[OPERATION].absent || strcmp(cells[OPERATION].text, c->operation) ||
        (row->status == TUNE_FAILED && !tune_uids_has(&c->finished, row->uid)))
        return 0;
    return tune_entity_hash(cells[ENTITY].text, strlen(cells[ENTITY].text));
}

static int take_row(struct tune_result_cache *c, int binding, const struct tune_cell *cells)
{
    const struct tune_experiment *e = c->bindings[binding].experiment;
    struct tune_cached_row row = {.status = tune_rows_status(&cells[STATUS]), .repeat = (int)cells[REPEAT].whole,
                                 .seconds = (float)cells[SECONDS].number,
                                 .weight = weight_of(&c->bindings[binding], cells + SCANNED_KEYS)};
    uint64_t key[2];
    if (!tune_rows_of(&cells[EXPERIMENT], e))
        return 0;
    tune_uid_read(row.uid, cells[UID].text);
    row.entity = entity_of(c, &row, cells);
    begin_key(key, e);
    for (int i = 0; i < e->input_count; i++)
        mix_cell(key, &cells[SCANNED_KEYS + i]);
    int provenance = tune_provenances_add(&c->provenances, &c->provenance_count, cells[HOST_CLASS].text, cells[BUILD].text,
                                          cells[WEIGHTS].text, cells[DATA].text);
    return put_answer(c, key, binding, provenance, &row);
}

/* Read the rows of an experiment, once even if several bindings use it. */
static int read_rows(struct tune_result_cache *c, int binding)
{
    const struct tune_experiment *e = c->bindings[binding].experiment;
    const struct tune_cell *cells;
    int more = 0;
    if (!tune_binding_is_first(c->bindings, binding) || !tune_store_has(c->store, e->name))
        return 0;
    struct tune_scan *scan = tune_rows_scan(c->store, e, scanned, SCANNED_KEYS);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if ((more = take_row(c, binding, cells)) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

/* Read the requests before the rows, which look up finished requests. */
static int read_requests(struct tune_result_cache *c)
{
    const struct tune_cell *cells;
    int more;
    c->finished.count = 0;
    if (!*c->operation)
        return 0;
    struct tune_scan *scan = TUNE_SCAN(c->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_TYPE, TUNE_REQUEST_UID,
                                       TUNE_REQUEST_EXPERIMENT, TUNE_REQUEST_ENTITY);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint64_t entity = tune_entity_hash(cells[4].text, strlen(cells[4].text));
        if (strcmp(cells[0].text, c->operation))
            continue;
        if (count_answer(c, entity) < 0 ||
            (!strcmp(cells[1].text, "replayed") && count_answer(c, replay_key(entity, cells[3].text)) < 0) ||
            (!strcmp(cells[1].text, "measured") && tune_uids_add_text(&c->finished, cells[2].text) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    tune_uids_sort(&c->finished);
    return more;
}

static int read_all(struct tune_result_cache *c)
{
    c->count = 0;
    tune_map_free(&c->firsts);
    tune_map_free(&c->answered);
    if (!c->store)
        return 0;
    c->version = tune_store_version(c->store); /* later changes are read at the next refresh */
    TRY(read_requests(c));
    for (int i = 0; i < c->binding_count; i++)
        TRY(read_rows(c, i));
    return 0;
}

struct tune_result_cache *tune_result_cache_read(struct tune_store *s, const struct tune_binding *bindings, int count,
                                                 const char *operation)
{
    struct tune_result_cache *c = calloc(1, sizeof *c);
    bool good = c && (c->columns = calloc((size_t)count + 1, sizeof *c->columns)) &&
                (c->medians = calloc((size_t)count + 1, sizeof *c->medians));
    if (good) {
        c->store = s;
        c->bindings = bindings;
        c->binding_count = count;
        snprintf(c->operation, sizeof c->operation, "%s", operation ? operation : "");
        for (int i = 0; i < count && good; i++) {
            c->medians[i].of = -1;
            good = tune_rows_columns(bindings[i].experiment, &c->columns[i]) >= 0;
        }
    } else {
        no_memory();
    }
    if (good && read_all(c) == 0)
        return c;
    tune_result_cache_free(c);
    return NULL;
}

void tune_result_cache_free(struct tune_result_cache *c)
{
    if (!c)
        return;
    for (int i = 0; c->columns && i < c->binding_count; i++)
        free(c->columns[i]);
    free(c->columns);
    free(c->entries);
    tune_map_free(&c->firsts);
    free(c->provenances);
    tune_map_free(&c->answered);
    tune_uids_free(&c->finished);
    free(c->found);
    free(c->medians);
    free(c);
}

int tune_result_cache_refresh(struct tune_result_cache *c)
{
    int changed = c->store ? tune_store_refresh(c->store) : 0;
    /* Another reader of the store, such as a view, may have read the changes first. */
    if (changed < 0 || !c->store || (changed == 0 && tune_store_version(c->store) == c->version))
        return changed;
    return read_all(c) < 0 ? -1 : 1;
}

void tune_result_cache_before(struct tune_result_cache *c, const char *host_class)
{
    snprintf(c->before, sizeof c->before, "%s", host_class);
}

int tune_result_cache_add(struct tune_result_cache *c, int binding, const struct tune_value *inputs,
                          const struct tune_provenance *p, const struct tune_cached_row *row)
{
    uint64_t key[2];
    struct tune_cached_row weighed = *row;
    weighed.weight = (float)tune_binding_weight(&c->bindings[binding], inputs);
    TRY(key_of_values(c, binding, inputs, key));
    int provenance = tune_provenances_add(&c->provenances, &c->provenance_count, p->host_class, p->build, p->weights, p->data);
    return put_answer(c, key, binding, provenance, &weighed);
}

/* ---- queries ---- */

static int find_rows(struct tune_result_cache *c, int binding, const struct tune_value *inputs, const struct tune_provenance *provenance,
                     int accept)
{
    uint64_t key[2];
    int count = 0;
    TRY(key_of_values(c, binding, inputs, key));
    for (int64_t i = tune_map_get(&c->firsts, key); i > 0; i = c->entries[i - 1].next) {
        const struct entry *e = &c->entries[i - 1];
        if (provenance && !agrees(c, &c->provenances[e->provenance], provenance, accept))
            continue;
        if (!tune_array_fit(&c->found, (size_t)count, sizeof *c->found))
            return no_memory();
        c->found[count++] = e->row;
    }
    return count;
}

int tune_result_cache_find(struct tune_result_cache *c, int binding, const struct tune_value *inputs,
                           const struct tune_provenance *provenance, int accept, const struct tune_cached_row **rows)
{
    int count = find_rows(c, binding, inputs, provenance, accept);
    *rows = c->found;
    return count;
}

int tune_result_cache_differs(struct tune_result_cache *c, const struct tune_cache_query *q, int accept)
{
    uint64_t key[2];
    int least = 0, rows = 0;
    TRY(key_of_values(c, q->binding, q->inputs, key));
    for (int64_t i = tune_map_get(&c->firsts, key); i > 0; i = c->entries[i - 1].next) {
        const struct entry *e = &c->entries[i - 1];
        if (e->row.status == TUNE_FAILED || (q->entity && e->row.entity == q->entity))
            continue;
        int bits = differences(c, &c->provenances[e->provenance], q->provenance, accept);
        rows++;
        if (bits && (!least || __builtin_popcount((unsigned)bits) < __builtin_popcount((unsigned)least)))
            least = bits;
    }
    return rows > q->repeat ? least : 0;
}

bool tune_result_cache_asked(const struct tune_result_cache *c, uint64_t entity)
{
    return answer_count(c, entity) > 0;
}

int tune_result_cache_answered(struct tune_result_cache *c, int binding, const struct tune_value *inputs, uint64_t entity, int repeat)
{
    uint64_t key[2];
    TRY(key_of_values(c, binding, inputs, key));
    if (answer_count(c, result_key(entity, key, repeat)) > 0)
        return 1;
    int64_t done = answer_count(c, replay_key(entity, c->bindings[binding].full_identifier));
    for (int i = 0; done > 0 && done <= repeat && i < repeat; i++)
        done += answer_count(c, result_key(entity, key, i)) > 0;
    return done > repeat;
}

int tune_result_cache_name(struct tune_result_cache *c, int binding, const struct tune_value *inputs, char name[33])
{
    uint64_t key[2];
    TRY(key_of_values(c, binding, inputs, key));
    snprintf(name, 33, "%016llx%016llx", (unsigned long long)key[0], (unsigned long long)key[1]);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median duration of the experiment's valid rows for a budget of 1. It is recomputed when rows are
 * added. */
static double median(struct tune_result_cache *c, int binding)
{
    const struct tune_experiment *e = c->bindings[binding].experiment;
    int n = 0;
    if (c->medians[binding].of == c->count)
        return c->medians[binding].seconds;
    float *seconds = malloc((size_t)(c->count + 1) * sizeof *seconds);
    if (!seconds)
        return NAN;
    for (int i = 0; i < c->count; i++) {
        const struct tune_cached_row *row = &c->entries[i].row;
        if (c->bindings[c->entries[i].binding].experiment == e && row->status == TUNE_VALID && row->weight > 0)
            seconds[n++] = row->seconds / row->weight;
    }
    qsort(seconds, (size_t)n, sizeof *seconds, ascending);
    c->medians[binding].of = c->count;
    c->medians[binding].seconds = n > 0 ? seconds[n / 2] : NAN;
    free(seconds);
    return c->medians[binding].seconds;
}

bool tune_result_cache_has(struct tune_result_cache *c, int binding, const struct tune_value *inputs)
{
    int count = find_rows(c, binding, inputs, NULL, 0), i = 0;
    while (i < count && c->found[i].status == TUNE_FAILED)
        i++;
    return i < count;
}

double tune_result_cache_seconds(struct tune_result_cache *c, int binding, const struct tune_value *inputs)
{
    int count = find_rows(c, binding, inputs, NULL, 0), n = 0;
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (c->found[i].status != TUNE_FAILED) {
            sum += c->found[i].seconds;
            n++;
        }
    if (n > 0)
        return sum / n;
    return median(c, binding) * tune_binding_weight(&c->bindings[binding], inputs);
}

double tune_binding_weight(const struct tune_binding *p, const struct tune_value *inputs)
{
    double weight = 1;
    return p->budget >= 0 && tune_value_number(&inputs[p->budget], &weight) ? weight : 1;
}

struct tune_store *tune_result_cache_store(const struct tune_result_cache *c)
{
    return c->store;
}
