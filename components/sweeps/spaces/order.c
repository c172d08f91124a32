/* order.c - visit entities in an order. Grids are walked (walk.h), in groups or by a permutation of
 * indexes. Other orders draw one fraction for each axis, and skip repeated entities.
 *
 * The four orders of a grid work in the same way. Some dimensions define groups, which are visited
 * in order or in a permutation. Within a group the other dimensions vary, the last one fastest.
 * Sequential has one group. Random has a group for each entity.
 *
 * A space with a list of points is handled as a list. If constraints leave very few entities of a
 * large grid, these are listed first, except for sequential order. */
#include "sweeps/spaces/order.h"

#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/nearest.h"
#include "core/random.h"
#include "core/try.h"
#include "sweeps/spaces/sobol.h"
#include "sweeps/spaces/walk.h"

/* Streams of random numbers, one for each purpose. */
#define STREAM_PERMUTATION ((uint64_t)1 << 48)
#define STREAM_DRAW        ((uint64_t)2 << 48)

/* A dimension that needs one random fraction. */
struct axis {
    const struct tune_domain *domain; /* the domain to draw from */
    struct tune_value *value;
};

struct tune_order {
    const struct tune_space *space;
    enum tune_order_mode mode;
    uint64_t seed;
    int64_t left; /* remaining entities; -1: until the grid ends */
    /* a grid */
    struct tune_walk *walk; /* a walk over the dimensions of groups, then over the others */
    int group_wheels;
    tune_index groups, group; /* number of groups, and the next one */
    bool permuted;
    int turn; /* the wheel to turn next; a wheel of the groups begins the next group */
    /* draws */
    struct axis *axes; /* [axis_count] */
    int axis_count;
    struct tune_value *values;
    uint64_t drawn;
    struct tune_sobol *sobol;
    struct tune_map seen; /* the entities drawn so far, by index */
    /* a list of entities, by index; NULL: there is none */
    tune_index *list;
    int64_t listed;
};

static const char *const names[] = {
    [TUNE_ORDER_SEQUENTIAL] = "sequential",
    [TUNE_ORDER_RANDOM] = "random",
    [TUNE_ORDER_SEQUENTIAL_GROUPED] = "sequential-grouped",
    [TUNE_ORDER_RANDOM_GROUPED] = "random-grouped",
    [TUNE_ORDER_SOBOL] = "sobol",
    [TUNE_ORDER_HALVING] = "halving",
    [TUNE_ORDER_MODEL] = "model",
};

const char *tune_order_name(enum tune_order_mode mode)
{
    return names[mode];
}

/* True if the names are equal, ignoring '-', which ado's names lack. */
static bool same_name(const char *a, const char *b)
{
    while (*a == *b && *a)
        a++, b++;
    if (*a == '-')
        return same_name(a + 1, b);
    return !*a && !*b;
}

int tune_order_mode(const char *name, enum tune_order_mode *mode)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (same_name(names[i], name)) {
            *mode = (enum tune_order_mode)i;
            return 0;
        }
    return tune_error_usage("there is no order \"%s\"; expected sequential, random, "
                            "sequential-grouped, random-grouped, sobol, halving or model", name);
}

static int refuse(const char *format, const char *what)
{
    tune_error_usage(format, what); /* the format is a constant of this file */
    return -1;
}

/* ---- grids ---- */

int tune_order_groups(const struct tune_space *s, const struct tune_order_options *o, bool *grouped)
{
    bool wanted = o->mode == TUNE_ORDER_SEQUENTIAL_GROUPED || o->mode == TUNE_ORDER_RANDOM_GROUPED;
    if (wanted && o->group_count == 0)
        return refuse("the order %s needs the names of the dimensions to group by", names[o->mode]);
    if (!wanted && o->group_count > 0)
        return refuse("the order %s makes no groups; take sequential-grouped or random-grouped, or "
                      "leave the grouping out", names[o->mode]);
    for (int g = 0; g < o->group_count; g++) {
        int k = tune_name_find(s->names, s->count, o->grouping[g]);
        if (k < 0)
            return refuse("the space has no dimension \"%s\" to group by", o->grouping[g]);
        grouped[k] = true;
    }
    return 0;
}

static int make_grid(struct tune_order *o, const struct tune_order_options *options)
{
    const struct tune_space *s = o->space;
    bool grouped[TUNE_SPACE_DIMENSIONS] = {false};
    int wheels[TUNE_SPACE_DIMENSIONS], count = 0;
    TRY(tune_order_groups(s, options, grouped));
    o->permuted = o->mode == TUNE_ORDER_RANDOM || o->mode == TUNE_ORDER_RANDOM_GROUPED;
    o->groups = 1;
    for (int k = 0; k < s->count; k++)
        if (grouped[k] || o->mode == TUNE_ORDER_RANDOM) {
            tune_index size = tune_domain_size(&s->dimensions[k].domain);
            if (o->groups > TUNE_INDEX_MAX / size)
                return refuse("the order %s cannot permute more than 2^128 entities or groups",
                              names[o->mode]);
            o->groups *= size;
            wheels[count++] = k;
        }
    o->group_wheels = count;
    for (int k = 0; k < s->count; k++)
        if (!grouped[k] && o->mode != TUNE_ORDER_RANDOM)
            wheels[count++] = k;
    return (o->walk = tune_walk_new(s, wheels, count)) ? 0 : -1;
}

static void enter_group(struct tune_order *o)
{
    tune_index i = o->permuted ? tune_random_permute_wide(o->seed, STREAM_PERMUTATION, o->groups, o->group) : o->group;
    for (int k = o->walk->count - 1; k >= 0; k--) {
        tune_index size = o->walk->wheels[k].size;
        tune_walk_set(o->walk, k, k < o->group_wheels ? i % size : 0);
        if (k < o->group_wheels)
            i /= size;
    }
    o->group++;
}

/* Find the next entity of a grid. The search is limited, because it could take hours in a large
 * grid. */
static int next_of_grid(struct tune_order *o, const struct tune_value **values)
{
    bool endless = o->permuted && o->space->size > 10000000;
    for (int misses = 0, allowed; misses < TUNE_ORDER_REDRAWS; misses += endless) {
        if (o->turn < o->group_wheels || tune_walk_turn(o->walk, o->turn) < o->group_wheels) {
            if (o->group == o->groups)
                return 0;
            enter_group(o);
        }
        o->turn = o->walk->count - 1;
        TRY(allowed = tune_walk_allowed(o->walk, &o->turn));
        *values = o->walk->values;
        if (allowed)
            return 1;
    }
    return tune_error_usage("no entity that the constraints allow was found: %d in a row were "
                            "refused. The order sequential tries all entities; an equation over "
                            "whole numbers, such as \"a + b == 100\", is solved",
                            TUNE_ORDER_REDRAWS);
}

/* ---- a list ---- */

/* An index in the list, with the rank of its group. */
struct member {
    tune_index group;
    int64_t index;
    tune_index entity;
};

static int by_group(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : (x->index > y->index) - (x->index < y->index);
}

/* Sort the list by groups, for a grouped order. */
static int group_list(struct tune_order *o, const bool *grouped)
{
    const struct tune_space *s = o->space;
    struct member *members = calloc((size_t)o->listed + 1, sizeof *members);
    if (!members)
        return tune_error_no_memory("an order of entities");
    for (int64_t i = 0; i < o->listed; i++) {
        tune_index group = 0, groups = 1, at;
        tune_space_entity(s, o->list[i], o->values);
        for (int k = 0; k < s->count; k++)
            if (grouped[k] && tune_domain_find(&s->dimensions[k].domain, &o->values[k], &at)) {
                tune_index size = tune_domain_size(&s->dimensions[k].domain);
                group = group * size + at;
                groups *= size;
            }
        if (o->mode == TUNE_ORDER_RANDOM_GROUPED)
            group = tune_random_permute_wide(o->seed, STREAM_PERMUTATION, groups, group);
        members[i] = (struct member){group, i, o->list[i]};
    }
    qsort(members, (size_t)o->listed, sizeof *members, by_group);
    for (int64_t i = 0; i < o->listed; i++)
        o->list[i] = members[i].entity;
    free(members);
    return 0;
}

static int make_list(struct tune_order *o, const struct tune_order_options *options)
{
    bool grouped[TUNE_SPACE_DIMENSIONS] = {false};
    TRY(tune_order_groups(o->space, options, grouped));
    if (!(o->values = calloc((size_t)o->space->count + 1, sizeof *o->values)))
        return tune_error_no_memory("an order of entities");
    if (o->left < 0 || o->left > o->listed)
        o->left = o->listed;
    if (o->mode == TUNE_ORDER_SOBOL && !(o->sobol = malloc(sizeof *o->sobol)))
        return tune_error_no_memory("an order of entities");
    if (o->sobol)
        tune_sobol_start(o->sobol, o->seed);
    return options->group_count > 0 ? group_list(o, grouped) : 0;
}

static double fraction(const struct tune_order *o, int axis);
static int is_new(struct tune_order *o);

/* The next entity of the list: in its order, permuted, or drawn. */
static int next_of_list(struct tune_order *o, const struct tune_value **values)
{
    bool drawn = o->mode == TUNE_ORDER_SOBOL;
    bool permuted = o->mode == TUNE_ORDER_RANDOM;
    tune_index length = (tune_index)o->listed;
    *values = o->values;
    for (int misses = 0, good; misses < TUNE_ORDER_REDRAWS; misses++) {
        tune_index index = drawn ? (tune_index)(fraction(o, 0) * (double)o->listed) : o->drawn;
        o->drawn++;
        if (permuted)
            index = tune_random_permute_wide(o->seed, STREAM_PERMUTATION, length, index);
        tune_space_entity(o->space, o->list[index < length ? index : length - 1], o->values);
        TRY(good = drawn ? is_new(o) : 1);
        if (good)
            return 1;
    }
    return tune_error_usage("%d draws in a row of the order %s gave no new entity; ask for fewer "
                            "entities, or take the order random",
                            TUNE_ORDER_REDRAWS, names[o->mode]);
}

/* List the space's points, or its entities if constraints leave too few for random draws. 1: they
 * are listed; 0: they are not; -1 with an error. */
static int list_few(struct tune_order *o)
{
    enum { LARGE = 10000000, MOST = 1000000, DRAWS = 100000 };
    const struct tune_space *s = o->space;
    double allowed, error;
    if (s->points_path) {
        o->listed = s->listed;
        if (!(o->list = malloc(((size_t)s->listed + 1) * sizeof *o->list)))
            return tune_error_no_memory("an order of entities");
        memcpy(o->list, s->points, (size_t)s->listed * sizeof *o->list);
        return 1;
    }
    if (o->mode == TUNE_ORDER_SEQUENTIAL || s->size <= LARGE || s->constraint_count == 0)
        return 0;
    TRY(tune_space_count_allowed(s, &allowed, &error));
    if (!(error == 0 && allowed <= MOST && allowed * DRAWS < (double)s->size))
        return 0;
    return tune_space_list(s, MOST, &o->list, &o->listed);
}

/* ---- draws ---- */

static int make_axes(struct tune_order *o)
{
    const struct tune_space *s = o->space;
    o->axes = calloc((size_t)s->count + 1, sizeof *o->axes);
    o->values = calloc((size_t)s->count, sizeof *o->values);
    if (!o->axes || !o->values)
        return tune_error_no_memory("an order of entities");
    for (int k = 0; k < s->count; k++) {
        const struct tune_domain *domain = &s->dimensions[k].domain;
        if (tune_domain_draw(domain, 0.5, &o->values[k]) < 0) { /* report now that it cannot be drawn from */
            tune_error_prefix("%s: ", s->names[k]);
            return -1;
        }
        if (tune_domain_size(domain) != 1) /* else the value drawn is the only one */
            o->axes[o->axis_count++] = (struct axis){domain, &o->values[k]};
    }
    return 0;
}

/* The number of entities to draw; -1: unknown. */
static int count_draws(const struct tune_space *s, int64_t *count)
{
    double allowed, error;
    *count = -1;
    if (s->size == 0)
        return 0;
    TRY(tune_space_count_allowed(s, &allowed, &error));
    if (error == 0 && allowed < 0x1p53)
        *count = (int64_t)allowed;
    return 0;
}

static int make_draws(struct tune_order *o, int64_t limit)
{
    int64_t count;
    if (limit < 0 && o->space->size == 0)
        return refuse("the order %s has no end: give the number of entities", names[o->mode]);
    TRY(make_axes(o));
    TRY(count_draws(o->space, &count));
    if (limit < 0 && count < 0)
        return refuse("the number of entities of the order %s is unknown: give the number of "
                      "entities", names[o->mode]);
    if (count >= 0 && (limit < 0 || limit > count))
        o->left = count;
    if (o->mode != TUNE_ORDER_SOBOL)
        return 0;
    if (o->axis_count > TUNE_SOBOL_AXES)
        return tune_error_usage("the order sobol works with at most %d dimensions of more than one "
                                "value, but there are %d; take random", TUNE_SOBOL_AXES,
                                o->axis_count);
    if (!(o->sobol = malloc(sizeof *o->sobol)))
        return tune_error_no_memory("an order of entities");
    tune_sobol_start(o->sobol, o->seed);
    return 0;
}

/* The fraction in (0,1) for an axis at this draw. */
static double fraction(const struct tune_order *o, int axis)
{
    if (o->mode == TUNE_ORDER_SOBOL)
        return tune_sobol_at(o->sobol, o->drawn, axis);
    return tune_random_uniform(o->seed, STREAM_DRAW + (uint64_t)axis, o->drawn) + 0x1p-54;
}

/* Note a drawn entity. 1: it is new; 0: it was drawn before. If entities cannot be counted, all are
 * new. */
static int is_new(struct tune_order *o)
{
    tune_index index;
    if (o->space->size == 0 || o->space->size == TUNE_INDEX_MAX || !tune_space_find(o->space, o->values, &index))
        return 1;
    int64_t *times = tune_map_add(&o->seen, (const uint64_t[]){(uint64_t)index, (uint64_t)(index >> 64)});
    return times ? (*times)++ == 0 : tune_error_no_memory("an order of entities");
}

static int next_draw(struct tune_order *o, const struct tune_value **values)
{
    for (int misses = 0, good; misses < TUNE_ORDER_REDRAWS; misses++) {
        for (int i = 0; i < o->axis_count; i++)
            TRY(tune_domain_draw(o->axes[i].domain, fraction(o, i), o->axes[i].value));
        o->drawn++;
        TRY(good = tune_space_allowed(o->space, o->values));
        if (good)
            TRY(good = is_new(o));
        *values = o->values;
        if (good)
            return 1;
    }
    return tune_error_usage("%d draws in a row of the order %s gave no new entity%s; ask for fewer "
                            "entities, or take the order random", TUNE_ORDER_REDRAWS,
                            names[o->mode],
                            o->space->constraint_count ? " that the constraints allow" : "");
}

/* ---- all together ---- */

static int start_order(struct tune_order *o, const struct tune_order_options *options)
{
    const struct tune_space *s = o->space;
    char size[48];
    bool grid = o->mode <= TUNE_ORDER_RANDOM_GROUPED;
    if (o->mode == TUNE_ORDER_HALVING || o->mode == TUNE_ORDER_MODEL)
        return refuse("the order %s depends on results, so only sweep has it", names[o->mode]);
    if (s->size && options->limit >= 0 && (tune_index)options->limit > s->size)
        return tune_error_usage("the space has %s entities, not %lld",
                                tune_index_text(s->size, size), (long long)options->limit);
    int listed = list_few(o);
    TRY(listed);
    if (listed)
        return make_list(o, options);
    if (grid && s->size)
        return make_grid(o, options);
    if (grid && o->mode != TUNE_ORDER_RANDOM) {
        TRY(make_axes(o)); /* a domain that cannot be drawn from is an error with its name */
        return refuse("the order %s works only with spaces whose entities can be counted; take "
                      "random or sobol, and give the number of entities", names[o->mode]);
    }
    TRY(tune_order_groups(s, options, NULL));
    return make_draws(o, options->limit);
}

struct tune_order *tune_order_new(const struct tune_space *s, const struct tune_order_options *options)
{
    struct tune_order *o = calloc(1, sizeof *o);
    if (!o) {
        tune_error_no_memory("an order of entities");
        return NULL;
    }
    *o = (struct tune_order){.space = s, .mode = options->mode, .seed = options->seed, .left = options->limit, .turn = -1};
    if (start_order(o, options) == 0)
        return o;
    tune_order_free(o);
    return NULL;
}

void tune_order_free(struct tune_order *o)
{
    if (!o)
        return;
    tune_walk_free(o->walk);
    free(o->axes);
    free(o->values);
    free(o->sobol);
    free(o->list);
    tune_map_free(&o->seen);
    free(o);
}

int tune_order_next(struct tune_order *o, const struct tune_value **values)
{
    int more;
    if (o->left == 0)
        return 0;
    TRY(more = o->list ? next_of_list(o, values) : o->walk ? next_of_grid(o, values) : next_draw(o, values));
    if (!more)
        o->left = 0;
    else if (o->left > 0)
        o->left--;
    return more;
}
