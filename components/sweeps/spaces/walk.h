/* walk.h - entities of a grid one after another, like the wheels of a counter, constraints asked as
 * early as their dimensions stand.
 *
 * A walk turns some of a space's dimensions, in an order of its own, the last one fastest; the
 * others stay where they were set. A constraint is known to fail at the last wheel that it, or one
 * before it, uses. All entities that agree up to there are refused at once. Constraints are asked
 * in the order of the file, so that one may guard the next ("n > 0", "m % n == 0"). For space.c and
 * order.c only.
 *
 *     struct tune_walk *w = tune_walk_new(s, wheels, count);
 *     for (int turned = 0; turned >= 0;) {
 *         int failed, allowed = tune_walk_allowed(w, &failed);
 *         turned = tune_walk_turn(w, allowed ? count - 1 : failed);    w->values: the entity
 *     } */
#ifndef TUNE_SPACES_WALK_H
#define TUNE_SPACES_WALK_H

#include "sweeps/spaces/space.h"

struct tune_walk {
    const struct tune_space *space;
    int count;
    struct wheel {
        int dimension;       /* where its value goes in values */
        tune_index at, size;
    } *wheels;               /* [count] */
    /* [constraints] the wheel at which each can be told; -1: before any turns */
    int *level;
    /* so many of the constraints are known to hold where the walk stands */
    int held;
    struct tune_value *values; /* [space->count] */
};

/* tune_walk_new - over wheels[count], dimensions of a finite size; all start at their first value.
 * NULL: no memory. */
struct tune_walk *tune_walk_new(const struct tune_space *s, const int *wheels, int count);
void tune_walk_free(struct tune_walk *w);

/* tune_walk_set - set wheel k; those behind it stay.
 * tune_walk_turn - turn wheel k by one and those behind it to their start. Returns the wheel that
 * moved: if k came round, one before it. -1: the walk is at its end.
 * tune_walk_allowed - 1; 0 and in *failed the wheel to turn next; -1: a constraint cannot be
 * evaluated. */
void tune_walk_set(struct tune_walk *w, int k, tune_index at);
int tune_walk_turn(struct tune_walk *w, int k);
int tune_walk_allowed(struct tune_walk *w, int *failed);

#endif
