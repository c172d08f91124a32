/* facts.h - names in expressions for facts about a result, besides its inputs and targets.
 *
 *     build  build_id  host  host_class  operation  space  status  reason  started
 *     measurement_s  repeat  generator  core_share  stable
 *
 * They are keys of the store. build is an alias of build_id. started is a text in UTC, such as
 * "2026-11-18T09:30:00Z", so started > "2026-11-18" works. An input, dimension or target of the
 * same name has precedence. */
#ifndef TUNE_DISCOVERY_FACTS_H
#define TUNE_DISCOVERY_FACTS_H

#include "core/value.h"
#include "sweeps/stores/store.h"

enum { TUNE_FACTS = 14, TUNE_FACT_TIME = 32 };

/* tune_fact_name - the name of fact i in expressions.
 * tune_fact_key - the store's key of fact i.
 * tune_fact_value - the value of fact i, from the key's cell. time: memory for the text of a time.
 * The value borrows it, and the cell's text. */
const char *tune_fact_name(int i);
enum tune_key tune_fact_key(int i);
struct tune_value tune_fact_value(int i, const struct tune_cell *cell, char time[TUNE_FACT_TIME]);

/* tune_time_text - format seconds since 1970 as "2026-11-18T09:30:00Z", or "" if they are out of
 * range. Returns text. */
const char *tune_time_text(double seconds, char text[TUNE_FACT_TIME]);

#endif
