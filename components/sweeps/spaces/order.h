/* order.h - the order in which entities of a space are taken.
 *
 *     sequential           the grid's own: the last dimension is the fastest
 *     random               a permutation of the grid by the seed, computed index by index. If
 *                          entities cannot be counted, each is drawn: finite dimensions evenly,
 *                          continuous ones by their probability
 *     sequential-grouped   entities that agree in the grouping dimensions follow each other; groups
 *                          in first-seen order
 *     random-grouped       the same, groups in random order
 *     weighted             drawn by the domains' probabilities, with replacement. In finite spaces
 *                          a repeat is drawn again, up to TUNE_ORDER_REDRAWS times
 *     sobol, lhs           points that fill the space evenly, even a few; each dimension's fraction
 *                          picks its value
 *
 * Only the current place is held, so 10^12 entities cost no memory. Entities that constraints
 * refuse are left out. */
#ifndef TUNE_SPACES_ORDER_H
#define TUNE_SPACES_ORDER_H

#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_order_mode {
    TUNE_ORDER_SEQUENTIAL,
    TUNE_ORDER_RANDOM,
    TUNE_ORDER_SEQUENTIAL_GROUPED,
    TUNE_ORDER_RANDOM_GROUPED,
    TUNE_ORDER_WEIGHTED,
    TUNE_ORDER_SOBOL,
    TUNE_ORDER_LHS,
    TUNE_ORDER_HALVING, /* by results: only sweep knows them (discovery/halving.h) */
};

struct tune_order_options {
    enum tune_order_mode mode;
    uint64_t seed;
    const char *const *grouping; /* [group_count] names of grouping dimensions */
    int group_count;
    int64_t limit;               /* number wanted, needed by lhs; -1: all */
};

struct tune_order;

/* tune_order_mode - the order with that name, also in ado's spelling ("randomgrouped"). -1 with an
 * error that lists them.
 * tune_order_name - the name of an order. */
int tune_order_mode(const char *name, enum tune_order_mode *mode);
const char *tune_order_name(enum tune_order_mode mode);

/* tune_order_groups - mark the grouping dimensions in grouped[s->count], all false before. -1 with
 * kind USAGE: a grouped order without one, another order with one, or an unknown name. */
int tune_order_groups(const struct tune_space *s, const struct tune_order_options *options,
                      bool *grouped);

/* tune_order_new - begin an order over a borrowed space. If constraints leave fewer entities than
 * wanted, fewer come. NULL with kind USAGE:
 * - all of a space that cannot be counted, or more than it has
 * - a bad grouping
 * - a dimension that cannot be drawn from (open, unknown, no range)
 * - weighted or lhs of all
 * - sobol with more than 21 dimensions that vary
 * - random over more than 2^128 entities
 * - halving, which needs results
 * - a constraint that cannot be evaluated
 * tune_order_free - free it; NULL is fine. */
struct tune_order *tune_order_new(const struct tune_space *s,
                                  const struct tune_order_options *options);
void tune_order_free(struct tune_order *o);

/* tune_order_next - 1 and the next entity's values [count], valid until the next call; 0 at the
 * end. -1 with an error: a constraint cannot be evaluated, or no allowed entity was found in
 * TUNE_ORDER_REDRAWS draws. */
#define TUNE_ORDER_REDRAWS 1000000
int tune_order_next(struct tune_order *o, const struct tune_value **values);

#ifdef __cplusplus
}
#endif
#endif
