/* walk.h - take the entities of a grid in order, like the wheels of a counter. A constraint is
 * checked as soon as its dimensions are set.
 *
 * A walk turns some dimensions of a space, in its own order, the last one fastest. The other
 * dimensions stay as they were set. A failed constraint depends on the wheels up to its last one,
 * so all entities with the same values there are skipped at once. Constraints are checked in the
 * order of the file, so one may protect the next ("n > 0", "m % n == 0"). Private to space.c and
 * order.c.
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
        int dimension;       /* index of its value in values */
        tune_index at, size;
    } *wheels;               /* [count] */
    /* [constraints] the wheel that decides each one; -1: none, it is decided at the start */
    int *level;
    /* number of constraints that hold at the current position */
    int held;
    struct tune_value *values; /* [space->count] */
};

/* tune_walk_new - a walk over wheels[count], which are finite dimensions. All start at their first
 * value. NULL: no memory. */
struct tune_walk *tune_walk_new(const struct tune_space *s, const int *wheels, int count);
void tune_walk_free(struct tune_walk *w);

/* tune_walk_set - set wheel k; the later wheels stay.
 * tune_walk_turn - turn wheel k by one, and set the later wheels to their start. Returns the wheel
 * that moved: k, or an earlier one if k was at its end; -1: the walk is over.
 * tune_walk_allowed - 1: all constraints hold; 0: one fails, and *failed is the wheel to turn next;
 * -1: one cannot be evaluated. */
void tune_walk_set(struct tune_walk *w, int k, tune_index at);
int tune_walk_turn(struct tune_walk *w, int k);
int tune_walk_allowed(struct tune_walk *w, int *failed);

#endif
