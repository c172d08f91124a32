/* rows.h - connect spaces and stores: measurements become rows, and a space finds its rows.
 *
 * Spaces and stores are independent: a space says what may be measured, a store what was measured.
 * A row has all inputs of its experiment. So it belongs to every space with an entity that has
 * these inputs. */
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
 * with other numbers NUMBER, any other TEXT. A target is NUMBER or TEXT. Returns their number, or
 * -1 with an error: no memory. */
int tune_rows_columns(const struct tune_experiment *e, struct tune_column **columns);

/* tune_rows_cell - convert an input's value to a cell of its column. A TEXT cell is str() of the
 * value in text[size], which the cell borrows. None becomes an absent NUMBER. -1: the value does
 * not fit the column, such as a fraction in a WHOLE one, or is too long.
 * tune_rows_value - convert a cell to a value. A TEXT cell is looked up by str() in the wanted
 * domain, that of a space's dimension, and then in the input's own. If neither has it, the value is
 * the text itself. Either domain may be NULL.
 * tune_rows_read - the same for a column of a store's table. The domain is that of e, which may be
 * NULL. An input of any type is stored as text; the text of a number becomes a number. "None"
 * becomes None if the input is optional. */
int tune_rows_cell(const struct tune_column *column, const struct tune_value *value,
                   struct tune_cell *cell, char *text, size_t size);
struct tune_value tune_rows_value(const struct tune_column *column, const struct tune_domain *own,
                                  const struct tune_domain *wanted,
                                  const struct tune_cell *cell);
struct tune_value tune_rows_read(const struct tune_experiment *e, const struct tune_column *column,
                                 const struct tune_cell *cell);

/* tune_rows_scan - begin a pass over an experiment's rows, with these keys and then its inputs.
 * In files from before an input was added, it has its default. NULL with an error. */
struct tune_scan *tune_rows_scan(struct tune_store *s, const struct tune_experiment *e,
                                 const enum tune_key *keys, int count);

/* tune_rows_whole - the cell as an exact int64 (a double loses digits above 2^53). false: it has a
 * fraction or does not fit. */
bool tune_rows_whole(const struct tune_cell *cell, int64_t *whole);

/* tune_rows_status - the status in a cell of TUNE_KEY_STATUS; an unknown text counts as failed.
 * tune_rows_of - true if a row belongs to e, by its cell of TUNE_KEY_EXPERIMENT. Another actuator
 * may have an experiment with the same name. */
enum tune_status tune_rows_status(const struct tune_cell *cell);
bool tune_rows_of(const struct tune_cell *experiment, const struct tune_experiment *e);

/* The provenance of a figure. Figures are replayed and compared only if their provenances agree. */
struct tune_provenance {
    /* weights, data: "" if the experiment has none */
    char host_class[512], build[TUNE_BUILD_ID_SIZE], weights[33], data[33];
};
/* tune_provenances_add - find a provenance in a list, or append it. Returns its index, or -1 with
 * an error: no memory. */
int tune_provenances_add(struct tune_provenance **provenances, int *count, const char *host_class,
                         const char *build, const char *weights, const char *data);

enum tune_accept {
    TUNE_ACCEPT_HOST = 1, TUNE_ACCEPT_BUILD = 2, TUNE_ACCEPT_WEIGHTS = 4, TUNE_ACCEPT_DATA = 8
};

/* tune_accept_read - parse "any-host,any-build,any-weights,any-data" into a sum of TUNE_ACCEPT_
 * values. -1 with kind USAGE: another word.
 * tune_accept_words - the reverse. Returns text.
 * tune_accept_things - describe the sum in words, "the host and the build". Returns text. */
int tune_accept_read(const char *text, int *accept);
const char *tune_accept_words(int accept, char text[64]);
const char *tune_accept_things(int accept, char text[64]);

/* A cached result of an entity under an experiment: its row, and a summary. */
struct tune_cached_row {
    uint8_t uid[16];
    enum tune_status status;
    int repeat;
    float seconds;
    float weight; /* value of the binding's budget, 1 without one; set by tune_result_cache_add */
    /* tune_entity_hash of the request that the row answers in this operation; 0: none */
    uint64_t entity;
};

/* tune_entity_hash - hash of an entity's identifier, which identifies its requests. Its index in an
 * operation cannot, because it may change when others measure. */
uint64_t tune_entity_hash(const char *identifier, size_t length);

/* A cache of a store's results, by experiment and input vector, for all spaces. It also has the
 * requests of one operation. */
struct tune_result_cache;

/* tune_result_cache_read - read the rows of the bindings' experiments (store NULL: none) and the
 * requests of operation (NULL: none). NULL with an error.
 * tune_result_cache_free - free it; NULL is fine.
 * tune_result_cache_store - the store.
 * tune_result_cache_refresh - read again if files are new or changed. 1; 0: none are; -1 with an
 * error.
 * tune_result_cache_before - set the earlier name of the current host class ("": none), which is
 * copied. Rows with that name are also used.
 * tune_result_cache_add - add a row that was just appended. From then on, its request counts as
 * answered. */
struct tune_result_cache *tune_result_cache_read(struct tune_store *s,
                                                 const struct tune_binding *bindings, int count,
                                                 const char *operation);
void tune_result_cache_free(struct tune_result_cache *c);
struct tune_store *tune_result_cache_store(const struct tune_result_cache *c);
int tune_result_cache_refresh(struct tune_result_cache *c);
void tune_result_cache_before(struct tune_result_cache *c, const char *host_class);
int tune_result_cache_add(struct tune_result_cache *c, int binding,
                          const struct tune_value *inputs, const struct tune_provenance *provenance,
                          const struct tune_cached_row *row);

/* tune_result_cache_find - find rows by input vector and provenance, in the order of measurement.
 * accept: provenances may differ in these ways. *rows is valid until the next call. Returns their
 * number, or -1 with an error.
 * tune_result_cache_differs - the smallest difference in provenance between a query and a stored
 * result, as a sum of TUNE_ACCEPT_ values. 0: there is no result, or it can be used. -1 with an
 * error. A repeat above 0 needs that many more results. The operation's own results for this entity
 * are left out.
 * tune_result_cache_has - whether a measurement of this entity has a duration of its own.
 * tune_result_cache_seconds - expected duration of a measurement: the mean for this entity, else
 * the median for the experiment. It is proportional to the budget. NAN: unknown.
 * tune_binding_weight - the value of the binding's budget in these inputs, or 1 if it has no
 * budget.
 * tune_result_cache_asked - true if the operation has an answer for this entity.
 * tune_result_cache_answered - 1 if it has one under this experiment for this repeat, else 0. -1
 * with an error. A failed attempt that will be tried again does not count.
 * tune_result_cache_name - make the name of a measurement: 32 hexadecimal digits, a hash of
 * experiment and inputs, by value. */
int tune_result_cache_find(struct tune_result_cache *c, int binding,
                           const struct tune_value *inputs,
                           const struct tune_provenance *provenance, int accept,
                           const struct tune_cached_row **rows);
struct tune_cache_query {
    int binding, repeat;
    const struct tune_value *inputs;
    const struct tune_provenance *provenance;
    uint64_t entity; /* tune_entity_hash; 0: outside an operation */
};
int tune_result_cache_differs(struct tune_result_cache *c, const struct tune_cache_query *q,
                              int accept);
bool tune_result_cache_has(struct tune_result_cache *c, int binding,
                           const struct tune_value *inputs);
double tune_result_cache_seconds(struct tune_result_cache *c, int binding,
                                 const struct tune_value *inputs);
double tune_binding_weight(const struct tune_binding *p, const struct tune_value *inputs);
bool tune_result_cache_asked(const struct tune_result_cache *c, uint64_t entity);
int tune_result_cache_answered(struct tune_result_cache *c, int binding,
                               const struct tune_value *inputs, uint64_t entity, int repeat);
int tune_result_cache_name(struct tune_result_cache *c, int binding,
                           const struct tune_value *inputs, char name[33]);

#ifdef __cplusplus
}
#endif
#endif
