/* order.h - in which order the entities of a space are taken.
 *
 * sequential            the grid's own: last dimension fastest random                a permutation
 * of the grid by the seed, without replacement, computed index by index; where the
 *     entities cannot be counted each is drawn, finite dimensions evenly, continuous ones by their probability
 * sequential-grouped, random-grouped   all entities that agree in the grouping dimensions after
 * each other; groups in
 *     first-seen or random order
 * weighted              drawn by the domains' probabilities, with replacement; a finite dimension's
 * repeats are drawn
 *     again up to TUNE_ORDER_REDRAWS times
 * sobol, lhs            points that fill the space evenly, also of a small number; each dimension's
 * fraction picks its
 *     value
 *
 * Nothing is held but what names the place: `all` of 10^12 costs no memory. Constraints are met by
 * leaving out what they refuse. */
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
};

struct tune_order_options {
    enum tune_order_mode mode;
    uint64_t seed;
    const char *const *grouping; /* [group_count] names of dimensions, for the grouped ones */
    int group_count;
    int64_t limit;               /* how many are wanted; -1: all. lhs needs it */
};

struct tune_order;

/* tune_order_mode - by name ("randomgrouped", ado's spelling, too). -1 with an error that lists
 * them. */
int tune_order_mode(const char *name, enum tune_order_mode *mode);
const char *tune_order_name(enum tune_order_mode mode);

/* tune_order_groups - mark the dimensions that entities are grouped by, in grouped[s->count] (all
 * false before; the other orders mark none). -1, of kind USAGE: a grouped order without one,
 * another with one, a name that is no dimension. */
int tune_order_groups(const struct tune_space *s, const struct tune_order_options *options,
                      bool *grouped);

/* tune_order_new - NULL with an error of kind USAGE: all of a space that cannot be counted, more
 * than the space has, an unknown grouping dimension or none, a dimension that cannot be drawn from
 * (open, unknown, no range), weighted or lhs of all, sobol in more than 21 dimensions of more than
 * one value, more than 2^128 entities in random order, a constraint that cannot be evaluated. Where
 * constraints leave fewer entities than are asked for, so many come. The space is borrowed. */
struct tune_order *tune_order_new(const struct tune_space *s,
                                  const struct tune_order_options *options);
void tune_order_free(struct tune_order *o);

/* tune_order_next - 1 and the next entity's values [count] (valid until the next call), 0 at the
 * end, -1: a constraint cannot be evaluated, or nothing the constraints allow was found in
 * TUNE_ORDER_REDRAWS draws. */
#define TUNE_ORDER_REDRAWS 1000000
int tune_order_next(struct tune_order *o, const struct tune_value **values);

#ifdef __cplusplus
}
#endif
#endif
