/* search.h - choose the next point to measure, by a model of the measurements so far.
 *
 * The first points are those of a Sobol sequence, and so is every tenth point after them. The
 * others have the highest expected improvement of the best value, times the probability that the
 * point is valid and meets the condition. Two targets: the expected growth of the area that the
 * Pareto front dominates. A point that is being measured is imagined to have the value that the
 * model expects. Example:
 *
 *     struct tune_search *s = tune_search_new(&options);
 *     while ((more = tune_search_next(s, &entity)) == 1) {
 *         ... measure entity[space->count]
 *         tune_search_add(s, entity, TUNE_SEARCH_VALID, &value);
 *     }
 *     tune_search_free(s);
 *
 * The choice is a function of the options and of the rows, in the order in which they were added.
 * So a search whose rows are added again goes on with the same points.
 *
 * In a large space only candidates are compared. They are a random sample, and points that differ
 * from good ones in one dimension. The latter go on while they get better. Constraints hold for all
 * of them.
 *
 * Expected improvement: Jones, Schonlau and Welch 1998. Times the probability: Gelbart et al. 2014.
 * Imagined values: Ginsbourger, Le Riche and Carraro 2010. */
#ifndef TUNE_SURROGATE_SEARCH_H
#define TUNE_SURROGATE_SEARCH_H

#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_SEARCH_TARGETS = 2, TUNE_SEARCH_VALUES = 8 };

enum tune_search_state {
    TUNE_SEARCH_VALID,   /* it has its targets */
    TUNE_SEARCH_OUTSIDE, /* it has its targets, but breaks another condition: it is not wanted */
    TUNE_SEARCH_INVALID, /* it has no targets: it cannot be measured */
    TUNE_SEARCH_PENDING, /* it is being measured */
};

struct tune_search_options {
    const struct tune_space *space;
    uint64_t seed;
    int start;      /* points before the first of the model; 0: 5, and one for each dimension */
    int targets;    /* 1 or 2 */
    bool maximize[TUNE_SEARCH_TARGETS];
    /* 1: the entity may be measured; 0: it may not; -1 with an error. NULL: all may */
    int (*allowed)(void *context, const struct tune_value *entity);
    /* A condition of measured values: the targets, then `others` more. 1: it holds for
     * values[targets + others]; 0: it does not; -1 with an error. NULL: none, and no others. */
    int (*within)(void *context, const double *values);
    int others;
    void *context;
};

struct tune_search;

/* tune_search_new - begin a search of a borrowed space. NULL with an error: a dimension that has no
 * model (axes.h), or an error of tune_order_new.
 * tune_search_free - free it; NULL is fine.
 * tune_search_add - add a row, which is copied. values[targets + others]: of a row that has them;
 * one that is not finite makes the row invalid. A pending row is replaced by the entity's next row.
 * Other rows of an entity are repeats. -1 with an error: the entity is not of the space.
 * tune_search_next - choose an entity that has no row yet; it is valid until the next call. 1; 0:
 * all have rows; -1 with an error.
 * tune_search_chance - the chance that an entity without a result is better than the best one by
 * more than a share, such as 0.01. Points close to each other are better together, so that a sum
 * of single chances would be too high. So values at the best candidates and rows are drawn from the
 * models together, 1,000 times. Pending entities have no result. One target only. 1
 * before the end of the start; 0 if all entities have results. -1 with an error.
 * tune_search_lacks_values - true if the start is over, but fewer than two rows are valid. Until
 * then, the points are those of the Sobol sequence. */
struct tune_search *tune_search_new(const struct tune_search_options *options);
void tune_search_free(struct tune_search *s);
int tune_search_add(struct tune_search *s, const struct tune_value *entity,
                    enum tune_search_state state, const double *values);
int tune_search_next(struct tune_search *s, const struct tune_value **entity);
int tune_search_chance(struct tune_search *s, double share, double *chance);
bool tune_search_lacks_values(const struct tune_search *s);

#ifdef __cplusplus
}
#endif
#endif
