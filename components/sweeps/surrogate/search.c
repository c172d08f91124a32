/* search.c - candidates, and the best of them by the models. */
#include "sweeps/surrogate/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/random.h"
#include "core/try.h"
#include "files/file.h"
#include "sweeps/spaces/order.h"
#include "sweeps/spaces/sobol.h"
#include "sweeps/surrogate/acquisition.h"
#include "sweeps/surrogate/axes.h"

enum {
    POOL = 20000,  /* candidates drawn at the start */
    SAMPLE = 2000, /* of them compared for a point */
    ROUNDS = 20,   /* of steps to better neighbours */
    EVERY = 10,    /* each such point is of the Sobol sequence */
    GOOD = 5,      /* rows whose neighbours are candidates */
    LADDER = 24,   /* of a dimension with more values, only some are neighbours */
};

struct tune_search {
    struct tune_search_options o;
    struct tune_axes axes;
    struct tune_order *even;        /* the Sobol sequence */
    struct tune_value *entity;      /* [space->count] the answer */
    /* rows: [row_count] */
    double *coordinates, *points;   /* [row_count][axes.count] */
    double *values;                 /* [row_count][TUNE_SEARCH_VALUES] */
    enum tune_search_state *states;
    int row_count, row_capacity;
    int entity_count;               /* without repeats */
    struct tune_map seen;           /* from an entity to its row + 1 */
    /* candidates: [pool_count][axes.count] */
    double *pool;
    int pool_count;
};

/* Candidates for a choice. */
struct candidates {
    double *coordinates, *points; /* [capacity][axes.count] */
    double *scores;               /* [capacity] */
    int count, capacity;
    struct tune_map listed;
};

static int no_memory(void)
{
    return tune_error_no_memory("a search");
}

/* ---- rows ---- */

static void key_of(const struct tune_search *s, const double *coordinates, uint64_t key[2])
{
    double rounded[TUNE_SURROGATE_DIMENSIONS]; /* a place is computed from a value with an error */
    size_t size = (size_t)s->axes.count * sizeof *rounded;
    for (int k = 0; k < s->axes.count; k++)
        rounded[k] = s->axes.axes[k].size > 0 ? coordinates[k] : rint(coordinates[k] * 1e9);
    key[0] = tune_hash64(rounded, size, 1);
    key[1] = tune_hash64(rounded, size, 2);
}

static bool is_seen(const struct tune_search *s, const double *coordinates)
{
    uint64_t key[2];
    key_of(s, coordinates, key);
    return tune_map_get(&s->seen, key) > 0;
}

/* Make an array hold count elements. The pointer stays valid if there is no memory. */
static bool grow(void *array, int count, size_t size)
{
    void *before, *after;
    memcpy(&before, array, sizeof before);
    after = realloc(before, (size_t)count * size);
    if (after)
        memcpy(array, &after, sizeof after);
    return after;
}

static int reserve_row(struct tune_search *s)
{
    int capacity = s->row_capacity ? 2 * s->row_capacity : 64;
    size_t wide = (size_t)s->axes.count * sizeof *s->points;
    if (s->row_count < s->row_capacity)
        return 0;
    if (!grow(&s->coordinates, capacity, wide) || !grow(&s->points, capacity, wide) ||
        !grow(&s->values, capacity, TUNE_SEARCH_VALUES * sizeof *s->values) || !grow(&s->states, capacity, sizeof *s->states))
        return no_memory();
    s->row_capacity = capacity;
    return 0;
}

int tune_search_add(struct tune_search *s, const struct tune_value *entity, enum tune_search_state state, const double *values)
{
    bool has_values = state == TUNE_SEARCH_VALID || state == TUNE_SEARCH_OUTSIDE;
    uint64_t key[2];
    TRY(reserve_row(s));
    double *to = s->coordinates + (long)s->row_count * s->axes.count;
    TRY(tune_axes_find(&s->axes, entity, to));
    key_of(s, to, key);
    int64_t *row = tune_map_add(&s->seen, key);
    if (!row)
        return no_memory();
    s->entity_count += *row == 0;
    int at = *row > 0 && s->states[*row - 1] == TUNE_SEARCH_PENDING ? (int)*row - 1 : s->row_count++;
    if (*row == 0)
        *row = at + 1;
    tune_axes_point(&s->axes, to, s->points + (long)at * s->axes.count);
    for (int t = 0; t < s->o.targets + s->o.others; t++) {
        double value = has_values ? values[t] : 0;
        s->values[at * TUNE_SEARCH_VALUES + t] = value;
        if (!isfinite(value))
            state = TUNE_SEARCH_INVALID;
    }
    s->states[at] = state;
    return 0;
}

/* ---- candidates ---- */

/* 1: the entity of these coordinates may be measured; 0; -1 with an error. */
static int is_allowed(struct tune_search *s, const double *coordinates)
{
    if (s->o.space->constraint_count == 0 && !s->o.allowed)
        return 1;
    tune_axes_entity(&s->axes, coordinates, s->entity);
    if (!tune_space_has(s->o.space, s->entity))
        return 0;
    return s->o.allowed ? s->o.allowed(s->o.context, s->entity) : 1;
}

/* Add a candidate to the list. */
static int push_candidate(const struct tune_search *s, struct candidates *c, const double *coordinates)
{
    size_t wide = (size_t)s->axes.count * sizeof *coordinates;
    if (c->count == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 4096;
        if (!grow(&c->coordinates, capacity, wide) || !grow(&c->points, capacity, wide) ||
            !grow(&c->scores, capacity, sizeof *c->scores))
            return no_memory();
        c->capacity = capacity;
    }
    memcpy(c->coordinates + (long)c->count * s->axes.count, coordinates, wide);
    tune_axes_point(&s->axes, coordinates, c->points + (long)c->count * s->axes.count);
    c->count++;
    return 0;
}

/* Add a candidate, unless it has a row, is listed already, or is not allowed. */
static int add_candidate(struct tune_search *s, struct candidates *c, const double *coordinates)
{
    uint64_t key[2];
    key_of(s, coordinates, key);
    if (tune_map_get(&s->seen, key) > 0 || tune_map_get(&c->listed, key) > 0)
        return 0;
    int64_t *listed = tune_map_add(&c->listed, key);
    if (!listed)
        return no_memory();
    *listed = 1;
    int allowed = is_allowed(s, coordinates);
    return allowed <= 0 ? allowed : push_candidate(s, c, coordinates);
}

/* The k-th value to try on an axis near a coordinate; false: there are no more. Of a short list, each
 * value. Else steps in both directions, each twice as long as the one before. */
static bool near(const struct tune_surrogate_axis *axis, double from, int k, double *to)
{
    bool listed = axis->size > 0 && axis->size <= LADDER;
    double most = axis->size > 0 ? axis->size - 1 : 1;
    double step = (axis->size > 0 ? 1 : 1.0 / 256) * exp2(k / 2);
    *to = listed ? k : fmin(fmax(from + (k % 2 ? -step : step), 0), most);
    return listed ? k <= most : step <= most;
}

/* Add what differs from an entity in one dimension. */
static int add_neighbours(struct tune_search *s, struct candidates *c, const double *from)
{
    double at[TUNE_SURROGATE_DIMENSIONS];
    memcpy(at, from, (size_t)s->axes.count * sizeof *at);
    for (int d = 0; d < s->axes.count; d++) {
        for (int k = 0; near(&s->axes.axes[d], from[d], k, &at[d]); k++)
            TRY(add_candidate(s, c, at));
        at[d] = from[d];
    }
    return 0;
}

/* Add the neighbours of the valid rows with the highest values of a target. */
static int add_good(struct tune_search *s, struct candidates *c, int target)
{
    int good[GOOD], count = 0;
    double sign = s->o.maximize[target] ? 1 : -1;
    const double *values = s->values + target;
    for (int i = 0; i < s->row_count; i++) {
        if (s->states[i] != TUNE_SEARCH_VALID)
            continue;
        int at = count < GOOD ? count++ : GOOD;
        for (; at > 0 && sign * values[good[at - 1] * TUNE_SEARCH_VALUES] < sign * values[i * TUNE_SEARCH_VALUES]; at--)
            if (at < GOOD)
                good[at] = good[at - 1];
        if (at < GOOD)
            good[at] = i;
    }
    for (int i = 0; i < count; i++)
        TRY(add_neighbours(s, c, s->coordinates + (long)good[i] * s->axes.count));
    return 0;
}

/* Add a part of the pool, another one for each choice, and neighbours of good rows. */
static int add_candidates(struct tune_search *s, struct candidates *c)
{
    int from = s->pool_count ? (int)((long)s->entity_count * SAMPLE % s->pool_count) : 0;
    for (int i = 0; i < s->pool_count && (i < SAMPLE || c->count == 0); i++)
        TRY(add_candidate(s, c, s->pool + (long)((from + i) % s->pool_count) * s->axes.count));
    for (int t = 0; t < s->o.targets; t++)
        TRY(add_good(s, c, t));
    return 0;
}

/* ---- the choice ---- */

static int score_from(const struct tune_search *s, const struct tune_acquisition *a, struct candidates *c, int first, int *best)
{
    TRY(tune_acquisition_score(a, c->points + (long)first * s->axes.count, c->count - first, c->scores + first));
    *best = first;
    for (int i = first + 1; i < c->count; i++)
        if (c->scores[i] > c->scores[*best])
            *best = i;
    return 0;
}

/* Find candidates, then go from the best one to better neighbours while there are any. 1 and *best; 0:
 * there is no candidate; -1. */
static int find_candidates(struct tune_search *s, const struct tune_acquisition *a, struct candidates *c, int *best)
{
    double at[TUNE_SURROGATE_DIMENSIONS];
    int next;
    TRY(add_candidates(s, c));
    if (c->count == 0)
        return 0;
    TRY(score_from(s, a, c, 0, best));
    for (int round = 0; round < ROUNDS; round++, *best = next) {
        int first = c->count;
        memcpy(at, c->coordinates + (long)*best * s->axes.count, (size_t)s->axes.count * sizeof *at);
        TRY(add_neighbours(s, c, at));
        if (c->count == first)
            break;
        TRY(score_from(s, a, c, first, &next));
        if (!(c->scores[next] > c->scores[*best]))
            break;
    }
    return 1;
}

static void free_candidates(struct candidates *c)
{
    free(c->coordinates);
    free(c->points);
    free(c->scores);
    tune_map_free(&c->listed);
}

static struct tune_search_rows rows_of(const struct tune_search *s)
{
    return (struct tune_search_rows){s->row_count, s->axes.count, s->axes.categories, s->points, s->values, s->states, false};
}

static int next_by_model(struct tune_search *s)
{
    struct tune_search_rows rows = rows_of(s);
    struct tune_acquisition a;
    struct candidates c = {0};
    int best = 0, found = tune_acquisition_make(&a, &s->o, &rows);
    if (found == 0)
        found = find_candidates(s, &a, &c, &best);
    if (found == 1)
        tune_axes_entity(&s->axes, c.coordinates + (long)best * s->axes.count, s->entity);
    tune_acquisition_free(&a);
    free_candidates(&c);
    return found;
}

/* The next entity of the Sobol sequence that has no row. 1; 0: its end; -1. */
static int next_even(struct tune_search *s)
{
    double coordinates[TUNE_SURROGATE_DIMENSIONS];
    const struct tune_value *values;
    int more, allowed;
    while ((more = tune_order_next(s->even, &values)) == 1) {
        TRY(tune_axes_find(&s->axes, values, coordinates));
        if (is_seen(s, coordinates))
            continue;
        TRY(allowed = is_allowed(s, coordinates));
        if (allowed)
            break;
    }
    if (more == 1)
        memcpy(s->entity, values, (size_t)s->o.space->count * sizeof *values);
    return more;
}

static bool has_values(const struct tune_search *s)
{
    int valid = 0;
    for (int i = 0; i < s->row_count; i++)
        valid += s->states[i] == TUNE_SEARCH_VALID;
    return valid >= 2;
}

bool tune_search_lacks_values(const struct tune_search *s)
{
    return s->entity_count >= s->o.start && !has_values(s);
}

int tune_search_next(struct tune_search *s, const struct tune_value **entity)
{
    bool known = has_values(s);
    int found = 0;
    *entity = s->entity;
    if (!known || s->entity_count < s->o.start || s->entity_count % EVERY == EVERY - 1)
        TRY(found = next_even(s));
    return found || !known ? found : next_by_model(s);
}

/* ---- the chance of something better ---- */

/* Add pending entities to the candidates: nothing is known of them yet. */
static int add_pending(struct tune_search *s, const struct tune_acquisition *a, struct candidates *c)
{
    int first = c->count, best;
    for (int i = 0; i < s->row_count; i++)
        if (s->states[i] == TUNE_SEARCH_PENDING)
            TRY(push_candidate(s, c, s->coordinates + (long)i * s->axes.count));
    return c->count > first ? score_from(s, a, c, first, &best) : 0;
}

int tune_search_chance(struct tune_search *s, double share, double *chance)
{
    struct tune_search_rows rows = rows_of(s);
    struct tune_acquisition a;
    struct candidates c = {0};
    int best;
    *chance = 1;
    if (!has_values(s) || s->entity_count < s->o.start)
        return 0;
    rows.measured_only = true;
    int code = tune_acquisition_make(&a, &s->o, &rows);
    if (code == 0)
        code = find_candidates(s, &a, &c, &best);
    if (code >= 0)
        code = add_pending(s, &a, &c);
    if (code >= 0 && c.count == 0)
        *chance = 0;
    else if (code >= 0)
        code = tune_acquisition_chance(&a, &rows, c.points, c.scores, c.count, share, chance);
    tune_acquisition_free(&a);
    free_candidates(&c);
    return code < 0 ? -1 : 0;
}

/* ---- begin and end ---- */

static int make_pool(struct tune_search *s)
{
    const struct tune_space *space = s->o.space;
    struct tune_order_options o = {.mode = TUNE_ORDER_RANDOM, .seed = s->o.seed, .limit = POOL};
    const struct tune_value *values;
    int more;
    if (space->size > 0 && space->size <= POOL)
        o.limit = -1;
    if (!(s->pool = malloc((size_t)POOL * (size_t)s->axes.count * sizeof *s->pool)))
        return no_memory();
    struct tune_order *order = tune_order_new(space, &o);
    if (!order)
        return -1;
    while ((more = tune_order_next(order, &values)) == 1 && s->pool_count < POOL)
        if ((more = tune_axes_find(&s->axes, values, s->pool + (long)s->pool_count++ * s->axes.count)) < 0)
            break;
    tune_order_free(order);
    if (more < 0 && s->pool_count > 0) { /* constraints leave few: those that were found serve */
        tune_error_clear();
        more = 0;
    }
    return more < 0 ? -1 : 0;
}

static int begin(struct tune_search *s)
{
    const struct tune_space *space = s->o.space;
    TRY(tune_axes_read(&s->axes, space));
    struct tune_order_options o = {.mode = s->axes.count <= TUNE_SOBOL_AXES ? TUNE_ORDER_SOBOL : TUNE_ORDER_RANDOM,
                                   .seed = s->o.seed, .limit = space->size > 0 && space->size <= POOL ? -1 : POOL};
    if (!(s->even = tune_order_new(space, &o)))
        return -1;
    if (!(s->entity = calloc((size_t)space->count + 1, sizeof *s->entity)))
        return no_memory();
    if (s->o.start == 0)
        s->o.start = s->axes.count + 5;
    return make_pool(s);
}

struct tune_search *tune_search_new(const struct tune_search_options *options)
{
    struct tune_search *s = calloc(1, sizeof *s);
    if (!s) {
        no_memory();
        return NULL;
    }
    s->o = *options;
    if (begin(s) == 0)
        return s;
    tune_search_free(s);
    return NULL;
}

void tune_search_free(struct tune_search *s)
{
    if (!s)
        return;
    tune_axes_free(&s->axes);
    tune_order_free(s->even);
    free(s->entity);
    free(s->coordinates);
    free(s->points);
    free(s->values);
    free(s->states);
    free(s->pool);
    tune_map_free(&s->seen);
    free(s);
}
