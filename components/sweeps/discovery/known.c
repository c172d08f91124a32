/* known.c - find rows of a store by input vector, with a hash table over what identifies a
 * measurement.
 *
 * The key is a 128-bit hash of the experiment's name and of every input's cell. Numbers go in by
 * value, so 4 and 4.0 are one. An input that a file lacks counts as absent. Rows of one key stand
 * in a chain, oldest first; origins, which are few, in a table. */
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
    int origin;
    int protocol;
    struct tune_known_row row;
};

struct tune_known {
    struct tune_store *store;
    int64_t version; /* tune_store_version of what was read */
    const struct tune_protocol *protocols;
    int protocol_count;
    char operation[256], before[512]; /* before: an earlier name of our host class */
    struct tune_column **columns; /* [protocol_count] columns of inputs and targets */
    struct entry *entries;        /* rows in the order of reading */
    int count;
    struct tune_map firsts;       /* the first entry with a key + 1 */
    struct tune_origin *origins;
    int origin_count;
    struct tune_map answered;     /* of the operation, how often: entities, replay_key, result_key */
    struct tune_uids finished;    /* uids in its requests */
    struct tune_known_row *found;
    struct { int of; double seconds; } *medians; /* [protocol_count] medians, and over how many
                                                  * entries */
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while the known rows of the store are indexed");
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

static int key_of_values(struct tune_known *k, int protocol, const struct tune_value *inputs, uint64_t key[2])
{
    const struct tune_experiment *e = k->protocols[protocol].experiment;
    char text[TUNE_STORE_TEXT_MAX + 1];
    begin_key(key, e);
    for (int i = 0; i < e->input_count; i++) {
        struct tune_cell cell;
        TRY(tune_rows_cell(&k->columns[protocol][i], &inputs[i], &cell, text, sizeof text));
        mix_cell(key, &cell);
    }
    return 0;
}

/* ---- the table ---- */

static int put(struct tune_known *k, const uint64_t key[2], int protocol, int origin, const struct tune_known_row *row)
{
    int64_t *first = tune_map_add(&k->firsts, key);
    if (!first || !tune_array_fit(&k->entries, (size_t)k->count, sizeof *k->entries))
        return no_memory();
    k->entries[k->count++] = (struct entry){0, origin, protocol, *row};
    while (*first) /* to the end of its chain */
        first = &k->entries[*first - 1].next;
    *first = k->count;
    return 0;
}

static bool agrees(const struct tune_known *k, const struct tune_origin *a, const struct tune_origin *b, int accept)
{
    return ((accept & TUNE_ACCEPT_HOST) || !strcmp(a->host_class, b->host_class) ||
            (*k->before && !strcmp(a->host_class, k->before))) &&
           ((accept & TUNE_ACCEPT_BUILD) || !strcmp(a->build, b->build)) &&
           ((accept & TUNE_ACCEPT_WEIGHTS) || !strcmp(a->weights, b->weights)) &&
           ((accept & TUNE_ACCEPT_DATA) || !strcmp(a->data, b->data));
}

/* The differences that accept does not allow. */
static int differences(const struct tune_known *k, const struct tune_origin *a, const struct tune_origin *b, int accept)
{
    int bits = 0;
    for (int bit = TUNE_ACCEPT_HOST; bit <= TUNE_ACCEPT_DATA; bit *= 2)
        bits |= agrees(k, a, b, ~bit) ? 0 : bit;
    return bits & ~accept;
}

/* ---- requests of the operation ---- */

/* There are three kinds of keys. The hash of an entity stands for anything about it. The others are of a replay of it under an
 * experiment, as that is spelled, and of a result of it, by inputs and repeat. */
static uint64_t replay_key(uint64_t entity, const char *experiment)
{
    return tune_hash64(experiment, strlen(experiment), entity);
}

static uint64_t result_key(uint64_t entity, const uint64_t key[2], int repeat)
{
    const uint64_t parts[] = {entity, key[0], key[1], (uint64_t)repeat};
    return tune_hash64(parts, sizeof parts, 0);
}

static int answer(struct tune_known *k, uint64_t key)
{
    int64_t *count = tune_map_add(&k->answered, (const uint64_t[]){key, 0});
    if (!count)
        return no_memory();
    ++*count;
    return 0;
}

static int64_t answers(const struct tune_known *k, uint64_t key)
{
    return tune_map_get(&k->answered, (const uint64_t[]){key, 0});
}

/* ---- reading the store ---- */

enum { STATUS, REPEAT, SECONDS, HOST_CLASS, BUILD, WEIGHTS, DATA, EXPERIMENT, UID, OPERATION, ENTITY, SCANNED_KEYS };
static const enum tune_key scanned[SCANNED_KEYS] = {TUNE_KEY_STATUS, TUNE_KEY_REPEAT, TUNE_KEY_SECONDS, TUNE_KEY_HOST_CLASS,
                                                    TUNE_KEY_BUILD, TUNE_KEY_WEIGHTS, TUNE_KEY_DATA, TUNE_KEY_EXPERIMENT,
                                                    TUNE_KEY_UID, TUNE_KEY_OPERATION, TUNE_KEY_ENTITY};

/* The value of the protocol's budget in a row; NAN: it has none. */
static float weight_of(const struct tune_protocol *p, const struct tune_cell *inputs)
{
    return p->budget < 0 ? 1 : inputs[p->budget].absent ? NAN : (float)inputs[p->budget].number;
}

static int put_answer(struct tune_known *k, const uint64_t key[2], int protocol, int origin, const struct tune_known_row *row)
{
    TRY(origin);
    TRY(put(k, key, protocol, origin, row));
    if (!row->entity)
        return 0;
    TRY(answer(k, row->entity));
    return answer(k, result_key(row->entity, key, row->repeat));
}

/* Note that a row of this operation answers its request, unless it failed and will be tried
 * again. */
static uint64_t entity_of(struct tune_known *k, const struct tune_known_row *row, const struct tune_cell *cells)
{
    if (!*k->operation || cells[OPERATION].absent || strcmp(cells[OPERATION].text, k->operation) ||
        (row->status == TUNE_FAILED && !tune_uids_has(&k->finished, row->uid)))
        return 0;
    return tune_entity_hash(cells[ENTITY].text, strlen(cells[ENTITY].text));
}

static int take_row(struct tune_known *k, int protocol, const struct tune_cell *cells)
{
    const struct tune_experiment *e = k->protocols[protocol].experiment;
    struct tune_known_row row = {.status = tune_rows_status(&cells[STATUS]), .repeat = (int)cells[REPEAT].whole,
                                 .seconds = (float)cells[SECONDS].number,
                                 .weight = weight_of(&k->protocols[protocol], cells + SCANNED_KEYS)};
    uint64_t key[2];
    if (!tune_rows_of(&cells[EXPERIMENT], e))
        return 0;
    tune_uid_read(row.uid, cells[UID].text);
    row.entity = entity_of(k, &row, cells);
    begin_key(key, e);
    for (int i = 0; i < e->input_count; i++)
        mix_cell(key, &cells[SCANNED_KEYS + i]);
    return put_answer(k, key, protocol, tune_origins_add(&k->origins, &k->origin_count, cells[HOST_CLASS].text, cells[BUILD].text,
                                                         cells[WEIGHTS].text, cells[DATA].text), &row);
}

/* Read the rows of an experiment, once even if several protocols use it. */
static int read_rows(struct tune_known *k, int protocol)
{
    const struct tune_experiment *e = k->protocols[protocol].experiment;
    const struct tune_cell *cells;
    int more = 0;
    if (!tune_protocol_is_first(k->protocols, protocol) || !tune_store_has(k->store, e->name))
        return 0;
    struct tune_scan *scan = tune_rows_scan(k->store, e, scanned, SCANNED_KEYS);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if ((more = take_row(k, protocol, cells)) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

/* Read the requests before the rows, which look up finished requests. */
static int read_requests(struct tune_known *k)
{
    const struct tune_cell *cells;
    int more;
    k->finished.count = 0;
    if (!*k->operation)
        return 0;
    struct tune_scan *scan = TUNE_SCAN(k->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_TYPE, TUNE_REQUEST_UID,
                                       TUNE_REQUEST_EXPERIMENT, TUNE_REQUEST_ENTITY);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint64_t entity = tune_entity_hash(cells[4].text, strlen(cells[4].text));
        if (strcmp(cells[0].text, k->operation))
            continue;
        if (answer(k, entity) < 0 ||
            (!strcmp(cells[1].text, "replayed") && answer(k, replay_key(entity, cells[3].text)) < 0) ||
            (!strcmp(cells[1].text, "measured") && tune_uids_add_text(&k->finished, cells[2].text) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    tune_uids_sort(&k->finished);
    return more;
}

static int read_all(struct tune_known *k)
{
    k->count = 0;
    tune_map_free(&k->firsts);
    tune_map_free(&k->answered);
    if (!k->store)
        return 0;
    k->version = tune_store_version(k->store); /* what changes from here on is read at the next refresh */
    TRY(read_requests(k));
    for (int i = 0; i < k->protocol_count; i++)
        TRY(read_rows(k, i));
    return 0;
}

struct tune_known *tune_known_read(struct tune_store *s, const struct tune_protocol *protocols, int count, const char *operation)
{
    struct tune_known *k = calloc(1, sizeof *k);
    bool good = k && (k->columns = calloc((size_t)count + 1, sizeof *k->columns)) &&
                (k->medians = calloc((size_t)count + 1, sizeof *k->medians));
    if (good) {
        k->store = s;
        k->protocols = protocols;
        k->protocol_count = count;
        snprintf(k->operation, sizeof k->operation, "%s", operation ? operation : "");
        for (int i = 0; i < count && good; i++) {
            k->medians[i].of = -1;
            good = tune_rows_columns(protocols[i].experiment, &k->columns[i]) >= 0;
        }
    } else {
        no_memory();
    }
    if (good && read_all(k) == 0)
        return k;
    tune_known_free(k);
    return NULL;
}

void tune_known_free(struct tune_known *k)
{
    if (!k)
        return;
    for (int i = 0; k->columns && i < k->protocol_count; i++)
        free(k->columns[i]);
    free(k->columns);
    free(k->entries);
    tune_map_free(&k->firsts);
    free(k->origins);
    tune_map_free(&k->answered);
    tune_uids_free(&k->finished);
    free(k->found);
    free(k->medians);
    free(k);
}

int tune_known_refresh(struct tune_known *k)
{
    int changed = k->store ? tune_store_refresh(k->store) : 0;
    /* Another reader of the store, such as a view, may have met the change first. */
    if (changed < 0 || !k->store || (changed == 0 && tune_store_version(k->store) == k->version))
        return changed;
    return read_all(k) < 0 ? -1 : 1;
}

void tune_known_before(struct tune_known *k, const char *host_class)
{
    snprintf(k->before, sizeof k->before, "%s", host_class);
}

int tune_known_add(struct tune_known *k, int protocol, const struct tune_value *inputs, const struct tune_origin *origin,
                   const struct tune_known_row *row)
{
    uint64_t key[2];
    struct tune_known_row weighed = *row;
    weighed.weight = (float)tune_known_weight(&k->protocols[protocol], inputs);
    TRY(key_of_values(k, protocol, inputs, key));
    return put_answer(k, key, protocol, tune_origins_add(&k->origins, &k->origin_count, origin->host_class, origin->build,
                                                         origin->weights, origin->data), &weighed);
}

/* ---- queries ---- */

static int find(struct tune_known *k, int protocol, const struct tune_value *inputs, const struct tune_origin *origin, int accept)
{
    uint64_t key[2];
    int count = 0;
    TRY(key_of_values(k, protocol, inputs, key));
    for (int64_t i = tune_map_get(&k->firsts, key); i > 0; i = k->entries[i - 1].next) {
        const struct entry *e = &k->entries[i - 1];
        if (origin && !agrees(k, &k->origins[e->origin], origin, accept))
            continue;
        if (!tune_array_fit(&k->found, (size_t)count, sizeof *k->found))
            return no_memory();
        k->found[count++] = e->row;
    }
    return count;
}

int tune_known_find(struct tune_known *k, int protocol, const struct tune_value *inputs, const struct tune_origin *origin, int accept,
                    const struct tune_known_row **rows)
{
    int count = find(k, protocol, inputs, origin, accept);
    *rows = k->found;
    return count;
}

int tune_known_differs(struct tune_known *k, const struct tune_known_point *p, int accept)
{
    uint64_t key[2];
    int least = 0, rows = 0;
    TRY(key_of_values(k, p->protocol, p->inputs, key));
    for (int64_t i = tune_map_get(&k->firsts, key); i > 0; i = k->entries[i - 1].next) {
        const struct entry *e = &k->entries[i - 1];
        if (e->row.status == TUNE_FAILED || (p->entity && e->row.entity == p->entity))
            continue;
        int bits = differences(k, &k->origins[e->origin], p->origin, accept);
        rows++;
        if (bits && (!least || __builtin_popcount((unsigned)bits) < __builtin_popcount((unsigned)least)))
            least = bits;
    }
    return rows > p->repeat ? least : 0;
}

bool tune_known_asked(const struct tune_known *k, uint64_t entity)
{
    return answers(k, entity) > 0;
}

int tune_known_answered(struct tune_known *k, int protocol, const struct tune_value *inputs, uint64_t entity, int repeat)
{
    uint64_t key[2];
    TRY(key_of_values(k, protocol, inputs, key));
    if (answers(k, result_key(entity, key, repeat)) > 0)
        return 1;
    int64_t done = answers(k, replay_key(entity, k->protocols[protocol].full_identifier));
    for (int i = 0; done > 0 && done <= repeat && i < repeat; i++)
        done += answers(k, result_key(entity, key, i)) > 0;
    return done > repeat;
}

int tune_known_name(struct tune_known *k, int protocol, const struct tune_value *inputs, char name[33])
{
    uint64_t key[2];
    TRY(key_of_values(k, protocol, inputs, key));
    snprintf(name, 33, "%016llx%016llx", (unsigned long long)key[0], (unsigned long long)key[1]);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of the experiment's valid rows for a budget of 1, recomputed when there are more rows. */
static double median(struct tune_known *k, int protocol)
{
    const struct tune_experiment *e = k->protocols[protocol].experiment;
    int n = 0;
    if (k->medians[protocol].of == k->count)
        return k->medians[protocol].seconds;
    float *seconds = malloc((size_t)(k->count + 1) * sizeof *seconds);
    if (!seconds)
        return NAN;
    for (int i = 0; i < k->count; i++) {
        const struct tune_known_row *row = &k->entries[i].row;
        if (k->protocols[k->entries[i].protocol].experiment == e && row->status == TUNE_VALID && row->weight > 0)
            seconds[n++] = row->seconds / row->weight;
    }
    qsort(seconds, (size_t)n, sizeof *seconds, ascending);
    k->medians[protocol].of = k->count;
    k->medians[protocol].seconds = n > 0 ? seconds[n / 2] : NAN;
    free(seconds);
    return k->medians[protocol].seconds;
}

double tune_known_seconds(struct tune_known *k, int protocol, const struct tune_value *inputs)
{
    int count = find(k, protocol, inputs, NULL, 0), n = 0;
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (k->found[i].status != TUNE_FAILED) {
            sum += k->found[i].seconds;
            n++;
        }
    if (n > 0)
        return sum / n;
    return median(k, protocol) * tune_known_weight(&k->protocols[protocol], inputs);
}

double tune_known_weight(const struct tune_protocol *p, const struct tune_value *inputs)
{
    double weight = 1;
    return p->budget >= 0 && tune_value_number(&inputs[p->budget], &weight) ? weight : 1;
}

struct tune_store *tune_known_store(const struct tune_known *k)
{
    return k->store;
}
