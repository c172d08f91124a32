/* facts.c - provide keys of a row as values for expressions. */
#include "sweeps/discovery/facts.h"

#include <math.h>
#include <time.h>

static const enum tune_key facts[TUNE_FACTS] = {
    TUNE_KEY_BUILD,   TUNE_KEY_BUILD,  TUNE_KEY_HOST,    TUNE_KEY_HOST_CLASS, TUNE_KEY_OPERATION, TUNE_KEY_SPACE,      TUNE_KEY_STATUS,
    TUNE_KEY_REASON,  TUNE_KEY_STARTED, TUNE_KEY_SECONDS, TUNE_KEY_REPEAT,    TUNE_KEY_GENERATOR, TUNE_KEY_CORE_SHARE, TUNE_KEY_STABLE,
};

const char *tune_fact_name(int i)
{
    return i == 0 ? "build" : tune_key_column(facts[i])->name;
}

enum tune_key tune_fact_key(int i)
{
    return facts[i];
}

const char *tune_time_text(double seconds, char text[TUNE_FACT_TIME])
{
    struct tm utc;
    time_t whole = (time_t)seconds;
    if (!(fabs(seconds) < 1e11) || !gmtime_r(&whole, &utc))
        text[0] = 0;
    else
        strftime(text, TUNE_FACT_TIME, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

struct tune_value tune_fact_value(int i, const struct tune_cell *cell, char time[TUNE_FACT_TIME])
{
    if (cell->absent)
        return tune_value_none();
    if (facts[i] == TUNE_KEY_STARTED)
        return tune_value_text(tune_time_text(cell->number, time));
    return cell->text ? tune_value_text(cell->text)
           : tune_key_column(facts[i])->type == TUNE_CELL_WHOLE ? tune_value_int(cell->whole)
                                                                : tune_value_float(cell->number);
}
