/* order.h - the order in which the entities of a space are visited.
 *
 *     sequential           the grid's own: the last dimension is the fastest
 *     random               a permutation of the grid by the seed, computed index by index. If
 *                          entities cannot be counted, each is drawn
 *     sequential-grouped   entities that agree in the grouping dimensions follow each other; groups
 *                          in first-seen order
 *     random-grouped       the same, groups in random order
 *     sobol                points that fill the space evenly, even a few; each dimension's fraction
 *                          picks its value. A repeat is drawn again, up to TUNE_ORDER_REDRAWS times
 *
 * Finite dimensions are drawn evenly, continuous ones by their probability.
 * Only the current position is stored, so 10^12 entities cost no memory. Entities that violate a
 * constraint are left out. If very few of a large space remain, they are stored in a list: at most
 * 10^6, with 16 bytes each. */
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
    TUNE_ORDER_SOBOL,
    /* These depend on results, so only sweep has them (discovery/halving.h, surrogate/search.h). */
    TUNE_ORDER_HALVING,
    TUNE_ORDER_MODEL,
    TUNE_ORDER_UNKNOWN, /* an operation's record names an order that is not there (any more) */
};

struct tune_order_options {
    enum tune_order_mode mode;
    uint64_t seed;
    const char *const *grouping; /* [group_count] names of grouping dimensions */
    int group_count;
    int64_t limit;               /* maximum number of entities; -1: all */
};

struct tune_order;

/* tune_order_mode - find the order with that name, also in ado's spelling ("randomgrouped"). -1
 * with an error that lists the names.
 * tune_order_name - the name of an order. */
int tune_order_mode(const char *name, enum tune_order_mode *mode);
const char *tune_order_name(enum tune_order_mode mode);

/* tune_order_groups - mark the grouping dimensions in grouped[s->count], which must be all false.
 * -1 with kind USAGE: a grouped order without one, another order with one, or an unknown name. */
int tune_order_groups(const struct tune_space *s, const struct tune_order_options *options,
                      bool *grouped);

/* tune_order_new - begin an order over a borrowed space. It yields fewer entities than the limit if
 * constraints leave fewer. NULL with kind USAGE:
 * - no limit for a space that cannot be counted, or more entities than it has
 * - a bad grouping (tune_order_groups)
 * - a dimension that cannot be drawn from (open, unknown, no range)
 * - sobol with more than 21 varying dimensions
 * - random over more than 2^128 entities
 * - halving or model, which need results
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
