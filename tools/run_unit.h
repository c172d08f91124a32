/* run_unit.h - units of what runs have, for the tools that show runs. */
#ifndef TUNE_TOOLS_RUN_UNIT_H
#define TUNE_TOOLS_RUN_UNIT_H

#include <cjson/cJSON.h>
#include <string.h>

#include "flags/flags.h"
#include "runs/run.h"

static inline bool run_name_ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* The unit of losses in the runs of earlier versions, which do not say it. */
static inline const char *run_loss_unit(const struct tune_run *r)
{
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(r->run, "options");
    return cJSON_GetObjectItemCaseSensitive(options, "beta") ? "nats/pair" : "nats/token";
}

static inline const char *run_unit(const struct tune_run *r, const char *name)
{
    static const struct tune_property known[] = {
        {"step", "steps", ""}, {"planned_steps", "steps", ""},
        {"tokens", "tokens", ""}, {"padded_tokens", "tokens", ""}, {"labels", "tokens", ""},
        {"rows", "rows", ""}, {"tokens_per_s", "tokens/s", ""}, {"seconds", "s", ""},
        TUNE_TRAINING_PROPERTIES, TUNE_LORA_PROPERTIES,
    };
    bool loss = !strcmp(name, "loss") || run_name_ends_in(name, "eval_loss") ||
                !strncmp(name, "loss_", 5);
    const cJSON *units = cJSON_GetObjectItemCaseSensitive(r->run, "units");
    const char *key = !strcmp(name, "loss") ? "loss_last" : name;
    const char *unit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(units, key));
    if (unit || (loss && !units))
        return unit ? unit : run_loss_unit(r);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return known[i].unit;
    /* a recipe's own metric */
    return run_name_ends_in(name, "_s") ? "s" : run_name_ends_in(name, "_bytes") ? "bytes" : "";
}

#endif
