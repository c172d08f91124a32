/* walk.h - visit the entities of a grid in order, like a mechanical counter. Each dimension is a
 * wheel. A constraint is checked as soon as its dimensions are set.
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

__extension__ typedef __int128 tune_signed_index;

struct tune_walk {
    const struct tune_space *space;
    int count;
    struct wheel {
        int dimension;       /* index of its value in values */
        tune_index at, size;
    } *wheels;               /* [count] */
    /* [constraints] wheel that decides this constraint and all earlier ones; -1: none */
    int *level;
    int *last;                 /* [constraints] last wheel that the constraint uses; -1: none */
    /* number of constraints that hold at the current position */
    int held;
    /* [constraints] consecutive failures to compute the next value; after several, it is not tried
     * again */
    int *unsolved;
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
 * -1: one cannot be evaluated. If a linear comparison in whole numbers fails, the next turn moves
 * the wheel to the next value that may meet it.
 * tune_walk_solve - the next index above `after` of wheel k where a linear comparison of constraint
 * c may hold, or the wheel's size. after -1: the first one. false: there is no such comparison, and
 * *next is not set.
 * tune_walk_solved - whether wheel k follows from the earlier ones by a linear equation. */
void tune_walk_set(struct tune_walk *w, int k, tune_index at);
int tune_walk_turn(struct tune_walk *w, int k);
int tune_walk_allowed(struct tune_walk *w, int *failed);
bool tune_walk_solve(const struct tune_walk *w, int c, int k, tune_signed_index after,
                     tune_index *next);
bool tune_walk_solved(const struct tune_walk *w, int k, int *constraint);

/* tune_space_list - list the indexes of all allowed entities, in ascending order. 1: they are in
 * *list, which the caller frees. 0: they are more than `most`, or take more than a few seconds. -1
 * with an error. */
int tune_space_list(const struct tune_space *s, int64_t most, tune_index **list, int64_t *count);

#endif
