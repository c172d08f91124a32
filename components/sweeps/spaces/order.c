/* order.c - take entities in order. Grids are walked (walk.h), in groups or by a permutation of
 * their index. Other orders draw one fraction for each axis, and leave out repeated entities.
 *
 * The four orders of a grid work the same way. Some dimensions make the groups, which are taken in
 * order or in a permutation. Within a group the other dimensions turn, the last the fastest.
 * Sequential has one group; random has a group for each entity. */
#include "sweeps/spaces/order.h"

#include <stdlib.h>

#include "core/map.h"
#include "core/nearest.h"
#include "core/random.h"
#include "core/try.h"
#include "sweeps/spaces/sobol.h"
#include "sweeps/spaces/walk.h"

/* Streams of random numbers, one for each purpose. */
#define STREAM_PERMUTATION ((uint64_t)1 << 48)
#define STREAM_DRAW        ((uint64_t)2 << 48)
#define STREAM_PLACE       ((uint64_t)3 << 48)

/* A dimension that takes one random fraction. */
struct axis {
    struct tune_domain domain; /* the domain to draw from */
    struct tune_value *value;
};

struct tune_order {
    const struct tune_space *space;
    enum tune_order_mode mode;
    uint64_t seed;
    int64_t left; /* entities still to come; -1: until the grid ends */
    /* a grid */
    struct tune_walk *walk; /* one walk over the dimensions of groups, one over the others */
    int group_wheels;
    tune_index groups, group; /* number of groups, and the next one */
    bool permuted;
    int turn; /* the wheel to turn next; a wheel of the groups means the next group */
    /* draws */
    struct axis *axes; /* [axis_count] */
    int axis_count;
    struct tune_value *values;
    uint64_t drawn;
    int64_t points; /* points points of one round of lhs */
    struct tune_sobol *sobol;
    struct tune_map seen; /* the entities drawn so far, by index */
};

static const char *const names[] = {
    [TUNE_ORDER_SEQUENTIAL] = "sequential",
    [TUNE_ORDER_RANDOM] = "random",
    [TUNE_ORDER_SEQUENTIAL_GROUPED] = "sequential-grouped",
    [TUNE_ORDER_RANDOM_GROUPED] = "random-grouped",
    [TUNE_ORDER_WEIGHTED] = "weighted",
    [TUNE_ORDER_SOBOL] = "sobol",
    [TUNE_ORDER_LHS] = "lhs",
    [TUNE_ORDER_HALVING] = "halving",
};

const char *tune_order_name(enum tune_order_mode mode)
{
    return names[mode];
}

/* True if equal apart from '-', which ado's names do not have. */
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
    return tune_error_usage("no order \"%s\"; there are sequential, random, sequential-grouped, "
                            "random-grouped, weighted, sobol, lhs, halving", name);
}

static int refuse(const char *format, const char *what)
{
    tune_error_usage(format, what); /* the format is a constant of this file */
    return -1;
}

static int no_memory(void)
{
    return tune_error_cannot("out of memory for the order of a space's entities");
}

/* ---- grids ---- */

int tune_order_groups(const struct tune_space *s, const struct tune_order_options *o, bool *grouped)
{
    bool wanted = o->mode == TUNE_ORDER_SEQUENTIAL_GROUPED || o->mode == TUNE_ORDER_RANDOM_GROUPED;
    if (wanted && o->group_count == 0)
        return refuse("the order %s wants the names of the dimensions to group by", names[o->mode]);
    if (!wanted && o->group_count > 0)
        return refuse("the order %s makes no groups; take sequential-grouped or random-grouped, or no grouping", names[o->mode]);
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
                return refuse("the order %s: more than 2^128 entities, or groups, are too many to permute", names[o->mode]);
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

/* The most draws in a row without a new entity. A grid ends by itself, but a search in a large one
 * must not take hours. */
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
    return tune_error_usage("the constraints refused %d entities in a row; nothing that they "
                            "allow was found", TUNE_ORDER_REDRAWS);
}

/* ---- draws ---- */

static void add_axis(struct tune_order *o, const struct tune_domain *domain, struct tune_value *value)
{
    struct axis *axis = &o->axes[o->axis_count];
    *axis = (struct axis){*domain, value};
    if (o->mode == TUNE_ORDER_RANDOM && domain->type != TUNE_CONTINUOUS)
        axis->domain.probability = TUNE_UNIFORM; /* the values of a grid have equal probability */
    if (tune_domain_size(domain) == 1)
        tune_domain_value(domain, 0, value); /* nothing to draw */
    else
        o->axis_count++;
}

static int make_axes(struct tune_order *o)
{
    const struct tune_space *s = o->space;
    o->axes = calloc((size_t)s->count + 1, sizeof *o->axes);
    o->values = calloc((size_t)s->count, sizeof *o->values);
    if (!o->axes || !o->values)
        return no_memory();
    for (int k = 0; k < s->count; k++) {
        const struct tune_domain *domain = &s->dimensions[k].domain;
        int first = o->axis_count;
        add_axis(o, domain, &o->values[k]);
        for (; first < o->axis_count; first++) /* report now a domain that cannot be drawn from */
            if (tune_domain_draw(&o->axes[first].domain, 0.5, o->axes[first].value) < 0) {
                tune_error_prefix("%s: ", s->names[k]);
                return -1;
            }
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
    if (limit < 0 && (o->mode != TUNE_ORDER_SOBOL || o->space->size == 0))
        return refuse("the order %s has no end of its own: say how many are wanted", names[o->mode]);
    TRY(make_axes(o));
    TRY(count_draws(o->space, &count));
    if (limit < 0 && count < 0)
        return refuse("how many entities the order %s comes to cannot be told: say how many are wanted", names[o->mode]);
    if (count >= 0 && (limit < 0 || limit > count))
        o->left = count;
    o->points = o->left;
    if (o->mode != TUNE_ORDER_SOBOL)
        return 0;
    if (o->axis_count > TUNE_SOBOL_AXES)
        return tune_error_usage("the order sobol is for at most %d dimensions of more than one "
                                "value, and there are %d; take lhs", TUNE_SOBOL_AXES,
                                o->axis_count);
    if (!(o->sobol = malloc(sizeof *o->sobol)))
        return no_memory();
    tune_sobol_start(o->sobol, o->seed);
    return 0;
}

/* The fraction in (0,1) for an axis at this draw. Latin hypercube (McKay, Beckman & Conover 1979):
 * each axis has as many parts as there are points, and each part gets one point. If points were
 * left out, another round follows. */
static double fraction(const struct tune_order *o, int axis)
{
    double u = tune_random_uniform(o->seed, STREAM_DRAW + (uint64_t)axis, o->drawn) + 0x1p-54;
    if (o->mode == TUNE_ORDER_SOBOL)
        return tune_sobol_at(o->sobol, o->drawn, axis);
    if (o->mode != TUNE_ORDER_LHS)
        return u;
    uint64_t points = (uint64_t)o->points, round = o->drawn / points;
    tune_wide place = tune_random_permute_wide(o->seed, STREAM_PLACE + (round << 20) + (uint64_t)axis, points, o->drawn % points);
    return ((double)place + u) / (double)points;
}

/* Note an entity. 1: it is new; 0: it was drawn before. If entities cannot be counted, all are
 * new. */
static int is_new(struct tune_order *o)
{
    tune_index index;
    if (o->space->size == 0 || o->space->size == TUNE_INDEX_MAX || !tune_space_find(o->space, o->values, &index))
        return 1;
    int64_t *times = tune_map_add(&o->seen, (const uint64_t[]){(uint64_t)index, (uint64_t)(index >> 64)});
    return times ? (*times)++ == 0 : no_memory();
}

static int next_draw(struct tune_order *o, const struct tune_value **values)
{
    for (int misses = 0, good; misses < TUNE_ORDER_REDRAWS; misses++) {
        for (int i = 0; i < o->axis_count; i++)
            TRY(tune_domain_draw(&o->axes[i].domain, fraction(o, i), o->axes[i].value));
        o->drawn++;
        TRY(good = tune_space_allowed(o->space, o->values));
        if (good)
            TRY(good = is_new(o));
        *values = o->values;
        if (good)
            return 1;
    }
    return tune_error_usage("in %d draws in a row the order %s found nothing new%s; ask for "
                            "fewer, or take the order random", TUNE_ORDER_REDRAWS, names[o->mode],
                            o->space->constraint_count ? " that the constraints allow" : "");
}

/* ---- all of them ---- */

static int start(struct tune_order *o, const struct tune_order_options *options)
{
    const struct tune_space *s = o->space;
    char size[48];
    bool grid = o->mode <= TUNE_ORDER_RANDOM_GROUPED;
    if (o->mode == TUNE_ORDER_HALVING)
        return refuse("the order %s goes by results: only a sweep can take it", names[o->mode]);
    if (s->size && options->limit >= 0 && (tune_index)options->limit > s->size)
        return tune_error_usage("the space has %s entities, not %lld",
                                tune_index_text(s->size, size), (long long)options->limit);
    if (grid && s->size)
        return make_grid(o, options);
    if (grid && o->mode != TUNE_ORDER_RANDOM) {
        TRY(make_axes(o)); /* what cannot be drawn from either is refused with its name */
        return refuse("the order %s is for spaces whose entities can be counted; take random, sobol or lhs, and say how many "
                      "are wanted", names[o->mode]);
    }
    TRY(tune_order_groups(s, options, NULL));
    return make_draws(o, options->limit);
}

struct tune_order *tune_order_new(const struct tune_space *s, const struct tune_order_options *options)
{
    struct tune_order *o = calloc(1, sizeof *o);
    if (!o) {
        no_memory();
        return NULL;
    }
    *o = (struct tune_order){.space = s, .mode = options->mode, .seed = options->seed, .left = options->limit, .turn = -1};
    if (start(o, options) == 0)
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
    tune_map_free(&o->seen);
    free(o);
}

int tune_order_next(struct tune_order *o, const struct tune_value **values)
{
    int more;
    if (o->left == 0)
        return 0;
    TRY(more = o->walk ? next_of_grid(o, values) : next_draw(o, values));
    if (!more)
        o->left = 0;
    else if (o->left > 0)
        o->left--;
    return more;
}
