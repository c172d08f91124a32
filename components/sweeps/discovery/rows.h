/* rows.h - a discovery space over a store: how measurements become rows, and which rows a space can
 * see.
 *
 * Here spaces (what may be measured) and stores (what was) meet; neither knows the other. A row
 * holds the whole input vector of its experiment, whichever space asked for it: so any space whose
 * entities have those inputs sees it. */
#ifndef TUNE_DISCOVERY_ROWS_H
#define TUNE_DISCOVERY_ROWS_H

#include "sweeps/actuators/measure.h"
#include "machine/build_id.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_rows_columns - the columns of an experiment's table: its inputs, then its targets; *columns
 * is the caller's to free, names are the experiment's. An input whose domain has whole numbers only
 * is WHOLE (booleans too), one with other numbers NUMBER, any other TEXT. How many, or -1: no
 * memory. */
int tune_rows_columns(const struct tune_experiment *e, struct tune_column **columns);

/* tune_rows_cell - an input's value as its column holds it; TEXT is str() of it, into text[size],
 * which the cell borrows. -1: it is no value of that column (a fraction in a WHOLE one), or too
 * long.
 * tune_rows_value - and back: a TEXT is the value of the wanted domain (a space's dimension) that
 * str() spells so, else of the input's own, else the text itself, the cell's. Either domain may be
 * NULL. */
int tune_rows_cell(const struct tune_column *column, const struct tune_value *value,
                   struct tune_cell *cell, char *text, size_t size);
struct tune_value tune_rows_value(const struct tune_column *column, const struct tune_domain *own,
                                  const struct tune_domain *wanted,
                                  const struct tune_cell *cell);

/* tune_rows_whole - the whole number that a cell of numbers is, to the last digit, which a double
 * has not above 2^53. */
bool tune_rows_whole(const struct tune_cell *cell, int64_t *whole);

/* tune_rows_status - what a row's cell of TUNE_KEY_STATUS says; one that makes no sense: failed.
 * tune_rows_of - the row, by its cell of TUNE_KEY_EXPERIMENT, is one of e's: not of another
 * actuator's experiment of that name. */
enum tune_status tune_rows_status(const struct tune_cell *cell);
bool tune_rows_of(const struct tune_cell *experiment, const struct tune_experiment *e);

/* Where a figure comes from: figures are replayed, and compared, only among rows that agree in
 * it. */
struct tune_origin {
    /* weights, data "": the experiment has none */
    char host_class[512], build[TUNE_BUILD_ID_SIZE], weights[33], data[33];
};
enum tune_accept { TUNE_ACCEPT_HOST = 1, TUNE_ACCEPT_BUILD = 2, TUNE_ACCEPT_WEIGHTS = 4, TUNE_ACCEPT_DATA = 8 };

/* tune_accept_read - "any-host,any-build,any-weights,any-data" into a sum of those; -1: another
 * word (kind USAGE). */
int tune_accept_read(const char *text, int *accept);

/* The known result of an entity under an experiment: its row, and a summary. */
struct tune_known_row {
    uint8_t uid[16];
    enum tune_status status;
    int repeat;
    float seconds;
    /* whose request of the very operation it answers (tune_entity_hash); 0: of none */
    uint64_t entity;
};

/* tune_entity_hash - of an entity's identifier: by it requests are told apart. Its place in an
 * operation is no name: what others measure meanwhile may move it. */
uint64_t tune_entity_hash(const char *identifier, size_t length);

/* The rows of a store by experiment and input vector, whatever space they were measured for, and
 * what one operation asked for and got. */
struct tune_known;

/* tune_known_read - index the rows of the protocols' experiments (store NULL: nothing is known),
 * and the requests of operation (NULL: none). NULL with an error.
 * tune_known_refresh - the same again, where files came or changed meanwhile: 1, 0: none did, -1.
 * tune_known_before - rows of this host class count as those of the one that is asked for: what it
 * was called before ("": none). Copied.
 * tune_known_add - a row just appended; whose request it answers is known from then on. */
struct tune_known *tune_known_read(struct tune_store *s, const struct tune_protocol *protocols,
                                   int count, const char *operation);
void tune_known_free(struct tune_known *k);
struct tune_store *tune_known_store(const struct tune_known *k);
int tune_known_refresh(struct tune_known *k);
void tune_known_before(struct tune_known *k, const char *host_class);
int tune_known_add(struct tune_known *k, int protocol, const struct tune_value *inputs,
                   const struct tune_origin *origin,
                   const struct tune_known_row *row);

/* tune_known_find - rows of this input vector whose origin agrees but for what accept widens, in
 * the order they were measured; *rows borrowed until the next call. How many, or -1.
 * tune_known_seconds - what a measurement takes: the mean of this very entity's, else the median of
 * the experiment's; NAN: nothing is known.
 * tune_known_asked - the operation has an answer about that entity.
 * tune_known_answered - it has one under this experiment, for that repeat: 1, 0, -1. A failed
 * attempt that is to be tried again is none.
 * tune_known_name - 32 hexadecimal digits that say what is measured: experiment and inputs, by
 * value. */
int tune_known_find(struct tune_known *k, int protocol, const struct tune_value *inputs,
                    const struct tune_origin *origin, int accept,
                    const struct tune_known_row **rows);
double tune_known_seconds(struct tune_known *k, int protocol, const struct tune_value *inputs);
bool tune_known_asked(const struct tune_known *k, uint64_t entity);
int tune_known_answered(struct tune_known *k, int protocol, const struct tune_value *inputs,
                        uint64_t entity, int repeat);
int tune_known_name(struct tune_known *k, int protocol, const struct tune_value *inputs,
                    char name[33]);

#ifdef __cplusplus
}
#endif
#endif
