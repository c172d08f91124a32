/* where.h - the expression of a `where` option, over the inputs of a space's experiments. */
#ifndef TUNE_DISCOVERY_WHERE_H
#define TUNE_DISCOVERY_WHERE_H

#include "sweeps/spaces/experiment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_where;

/* tune_where_new - compile the expression for each experiment of the space. It may use the
 * experiment's inputs, and all dimensions. If an experiment lacks a name, no entity meets the
 * expression under it. NULL with an error: all lack it, or the syntax is bad.
 * tune_where_meets - 1 if an entity meets the expression under binding p, else 0. -1 with an
 * error. where NULL: 1.
 * tune_where_free - free it; NULL is fine. */
struct tune_where *tune_where_new(const char *text, const struct tune_space *space,
                                  const struct tune_binding *bindings);
int tune_where_meets(const struct tune_where *w, int p, const struct tune_value *entity);
void tune_where_free(struct tune_where *w);

#ifdef __cplusplus
}
#endif
#endif
