/* rows.h - a discovery space over a store: measurements become rows, and a space finds its rows.
 *
 * Spaces say what may be measured, stores what was; neither knows the other. A row holds the whole
 * input vector of its experiment. So any space whose entities have those inputs sees it, whichever
 * space asked for it. */
#ifndef TUNE_DISCOVERY_ROWS_H
#define TUNE_DISCOVERY_ROWS_H

#include "sweeps/actuators/measure.h"
#include "machine/build_id.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_rows_columns - the columns of an experiment's table: inputs, then targets. The caller frees
 * *columns; names belong to the experiment. An input with whole numbers or booleans is WHOLE, one
 * with other numbers NUMBER, any other TEXT. Returns their number, or -1 with an error: no
 * memory. */
int tune_rows_columns(const struct tune_experiment *e, struct tune_column **columns);

/* tune_rows_cell - an input's value as a cell of its column. TEXT is str() of the value, into
 * text[size], which the cell borrows. None is an absent NUMBER. -1: the value does not fit the
 * column (a fraction in a WHOLE one), or is too long.
 * tune_rows_value - a cell as a value. A TEXT is the value of the wanted domain (a space's
 * dimension) that str() spells so. Without one it is such a value of the input's own domain, else
 * the text itself. Either domain may be NULL. */
int tune_rows_cell(const struct tune_column *column, const struct tune_value *value,
                   struct tune_cell *cell, char *text, size_t size);
struct tune_value tune_rows_value(const struct tune_column *column, const struct tune_domain *own,
                                  const struct tune_domain *wanted,
                                  const struct tune_cell *cell);

/* tune_rows_scan - a pass over an experiment's rows: these keys, then its inputs. NULL with an
 * error. */
struct tune_scan *tune_rows_scan(struct tune_store *s, const struct tune_experiment *e,
                                 const enum tune_key *keys, int count);

/* tune_rows_whole - the cell as an exact int64 (a double loses digits above 2^53). false: it has a
 * fraction or does not fit. */
bool tune_rows_whole(const struct tune_cell *cell, int64_t *whole);

/* tune_rows_status - the status in a cell of TUNE_KEY_STATUS; an unknown text counts as failed.
 * tune_rows_of - whether a row belongs to e, by its cell of TUNE_KEY_EXPERIMENT. Another actuator
 * may have an experiment of the same name. */
enum tune_status tune_rows_status(const struct tune_cell *cell);
bool tune_rows_of(const struct tune_cell *experiment, const struct tune_experiment *e);

/* The origin of a figure. Figures are replayed and compared only if their origins agree. */
struct tune_origin {
    /* weights, data: "" if the experiment has none */
    char host_class[512], build[TUNE_BUILD_ID_SIZE], weights[33], data[33];
};
/* tune_origins_add - the number of an origin in a list that grows by it; -1 with an error: no
 * memory. */
int tune_origins_add(struct tune_origin **origins, int *count, const char *host_class,
                     const char *build, const char *weights, const char *data);

enum tune_accept {
    TUNE_ACCEPT_HOST = 1, TUNE_ACCEPT_BUILD = 2, TUNE_ACCEPT_WEIGHTS = 4, TUNE_ACCEPT_DATA = 8
};

/* tune_accept_read - parse "any-host,any-build,any-weights,any-data" into a sum of those. -1 with
 * kind USAGE: another word.
 * tune_accept_words - the reverse, into text; returns text.
 * tune_accept_things - what it is about, "the host and the build", into text; returns text. */
int tune_accept_read(const char *text, int *accept);
const char *tune_accept_words(int accept, char text[64]);
const char *tune_accept_things(int accept, char text[64]);

/* The known result of an entity under an experiment: its row, and a summary. */
struct tune_known_row {
    uint8_t uid[16];
    enum tune_status status;
    int repeat;
    float seconds;
    float weight; /* value of the protocol's budget, 1 without one; set by tune_known_add */
    /* tune_entity_hash of the request that it answers in this operation; 0: none */
    uint64_t entity;
};

/* tune_entity_hash - hash of an entity's identifier, by which requests are told apart. The place in
 * an operation is no name, because measurements of others may move it. */
uint64_t tune_entity_hash(const char *identifier, size_t length);

/* The rows of a store by experiment and input vector, whatever space they were measured for, and
 * the requests of one operation. */
struct tune_known;

/* tune_known_read - index the rows of the protocols' experiments (store NULL: none) and the
 * requests of operation (NULL: none). NULL with an error.
 * tune_known_free - free it; NULL is fine.
 * tune_known_store - its store.
 * tune_known_refresh - index again if files came or changed: 1; 0: none did; -1 with an error.
 * tune_known_before - rows of this host class count like those of the current one, which had that
 * name before ("": none). Copied.
 * tune_known_add - add a row just appended. The request that it answers is known from then on. */
struct tune_known *tune_known_read(struct tune_store *s, const struct tune_protocol *protocols,
                                   int count, const char *operation);
void tune_known_free(struct tune_known *k);
struct tune_store *tune_known_store(const struct tune_known *k);
int tune_known_refresh(struct tune_known *k);
void tune_known_before(struct tune_known *k, const char *host_class);
int tune_known_add(struct tune_known *k, int protocol, const struct tune_value *inputs,
                   const struct tune_origin *origin,
                   const struct tune_known_row *row);

/* tune_known_find - rows of this input vector whose origin agrees, apart from what accept allows,
 * in the order of measurement. *rows is valid until the next call. Returns their number, or -1 with
 * an error.
 * tune_known_differs - what keeps the nearest result of a point from counting, as a sum of enum
 * tune_accept. 0: there is no result, or it counts. -1 with an error. A repeat above 0 wants that
 * many more results. Those of the operation for this entity do not count.
 * tune_known_seconds - expected time of a measurement: the mean of this entity's, else the median
 * of the experiment's, in proportion to the budget; NAN: unknown.
 * tune_known_weight - the value of the protocol's budget in these inputs; 1 if it has none.
 * tune_known_asked - whether the operation has an answer about that entity.
 * tune_known_answered - whether it has one under this experiment, for that repeat: 1, 0, or -1 with
 * an error. A failed attempt that will be tried again does not count.
 * tune_known_name - 32 hexadecimal digits that name what is measured: experiment and inputs, by
 * value. */
int tune_known_find(struct tune_known *k, int protocol, const struct tune_value *inputs,
                    const struct tune_origin *origin, int accept,
                    const struct tune_known_row **rows);
struct tune_known_point {
    int protocol, repeat;
    const struct tune_value *inputs;
    const struct tune_origin *origin;
    uint64_t entity; /* tune_entity_hash; 0: no operation asks */
};
int tune_known_differs(struct tune_known *k, const struct tune_known_point *p, int accept);
double tune_known_seconds(struct tune_known *k, int protocol, const struct tune_value *inputs);
double tune_known_weight(const struct tune_protocol *p, const struct tune_value *inputs);
bool tune_known_asked(const struct tune_known *k, uint64_t entity);
int tune_known_answered(struct tune_known *k, int protocol, const struct tune_value *inputs,
                        uint64_t entity, int repeat);
int tune_known_name(struct tune_known *k, int protocol, const struct tune_value *inputs,
                    char name[33]);

#ifdef __cplusplus
}
#endif
#endif
