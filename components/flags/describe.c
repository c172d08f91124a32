/* describe.c - write the resolved options as JSON, and the command line that repeats the run. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/progress.h"
#include "core/print.h"
#include "flags/state.h"

/* A number in JSON. Integers are written digit by digit, because cJSON keeps doubles. Infinities
 * become strings. */
static cJSON *number(const struct tune_option *row, const void *at)
{
    char text[32];
    switch (row->type) {
    case TUNE_INT:
        return cJSON_CreateNumber(*(const int *)at);
    case TUNE_INT64:
        snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
        return cJSON_CreateRaw(text);
    default: {
        double value = *(const double *)at;
        if (row->type == TUNE_INTERVAL && value == TUNE_EACH_EPOCH)
            return cJSON_CreateString("epoch");
        return isfinite(value) ? cJSON_CreateRaw(tune_number_text(text, value)) : cJSON_CreateString(value > 0 ? "inf" : "-inf");
    }
    }
}

/* The value at `at`, which has the row's type, as JSON. text: the value as written; NULL: none. */
static cJSON *value_json(const struct tune_option *row, const void *at, const char *text)
{
    if (row->type == TUNE_BOOL)
        return cJSON_CreateBool(*(const bool *)at);
    if (!tune_option_is_text(row))
        return number(row, at);
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

/* The table's default, read through a copy of the row with another place. */
static cJSON *default_json(const struct tune_option *row)
{
    union tune_option_value scratch;
    struct tune_option copy;
    if (!row->value || tune_flags_put_elsewhere(&copy, &scratch, row, row->value) < 0)
        return cJSON_CreateNull();
    return value_json(&copy, &scratch, row->value);
}

static cJSON *checked(cJSON *json, bool good)
{
    if (good)
        return json;
    cJSON_Delete(json);
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while writing the options as JSON");
    return NULL;
}

struct cJSON *tune_flags_json(const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    cJSON *json = cJSON_CreateObject();
    bool good = json != NULL;
    for (int i = 0; state && i < state->count && good; i++) {
        char key[128];
        tune_flags_key(&state->at[i].row, key, sizeof key);
        good = cJSON_AddItemToObject(json, key, value_json(&state->at[i].row, state->at[i].row.at, state->at[i].text));
    }
    return checked(json, good);
}

struct cJSON *tune_flags_sources_json(const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    cJSON *json = cJSON_CreateObject();
    bool good = json != NULL;
    for (int i = 0; state && i < state->count && good; i++) {
        char key[128];
        tune_flags_key(&state->at[i].row, key, sizeof key);
        good = cJSON_AddStringToObject(json, key, tune_source_name(state->at[i].source));
    }
    return checked(json, good);
}

struct cJSON *tune_flags_units_json(const struct tune_flags *flags)
{
    cJSON *json = cJSON_CreateObject();
    bool good = json != NULL;
    for (const struct tune_property *p = flags->properties; p && p->name && good; p++)
        good = !*p->unit || cJSON_AddStringToObject(json, p->name, p->unit);
    return checked(json, good);
}

static bool add_text(cJSON *json, const char *key, const char *text)
{
    return cJSON_AddStringToObject(json, key, text ? text : "");
}

static bool add_choices(cJSON *json, const struct tune_option *row)
{
    cJSON *choices = cJSON_AddArrayToObject(json, "choices");
    bool good = choices != NULL;
    for (const char *at = tune_option_is_choice(row) ? row->range : NULL; at && *at && good;) {
        char text[128];
        size_t n = strcspn(at, "|");
        snprintf(text, sizeof text, "%.*s", (int)n, at);
        good = cJSON_AddItemToArray(choices, cJSON_CreateString(text));
        at += n + (at[n] == '|');
    }
    return good;
}

static cJSON *option_json(const struct tune_flags_state *state, int i)
{
    static const char *const types[] = {"int", "int64", "double", "bool", "interval", "string", "choice", "choice", "choice", "choice"};
    const struct tune_option *row = &state->at[i].row;
    bool positional = *row->name == '<';
    char key[128], flag[160];
    tune_flags_key(row, key, sizeof key);
    snprintf(flag, sizeof flag, "%s%s", positional ? "" : "--", row->name);
    cJSON *json = cJSON_CreateObject();
    bool good = json && add_text(json, "name", key) && add_text(json, "flag", flag) &&
                add_text(json, "type", types[row->type]) &&
                cJSON_AddItemToObject(json, "default", default_json(row)) &&
                cJSON_AddItemToObject(json, "value", value_json(row, row->at, state->at[i].text)) &&
                add_text(json, "source", tune_source_name(state->at[i].source)) &&
                add_text(json, "range", tune_option_is_choice(row) ? "" : row->range) && add_choices(json, row) &&
                add_text(json, "unit", row->unit) && add_text(json, "help", row->help) &&
                add_text(json, "group", state->at[i].group) && cJSON_AddBoolToObject(json, "positional", positional);
    return checked(json, good);
}

struct cJSON *tune_flags_describe(const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    cJSON *json = cJSON_CreateObject();
    bool good = json && add_text(json, "program", flags->program);
    cJSON *options = good ? cJSON_AddArrayToObject(json, "options") : NULL;
    good = options != NULL;
    for (int i = 0; state && i < state->count && good; i++)
        good = cJSON_AddItemToArray(options, option_json(state, i));
    cJSON *properties = good ? cJSON_AddArrayToObject(json, "properties") : NULL;
    good = good && properties;
    for (const struct tune_property *p = flags->properties; p && p->name && good; p++) {
        cJSON *one = cJSON_CreateObject();
        good = one && add_text(one, "name", p->name) && add_text(one, "unit", p->unit) && add_text(one, "help", p->help);
        good = cJSON_AddItemToArray(properties, one) && good;
    }
    return checked(json, good);
}

const char *tune_flags_command(const struct tune_flags *flags, char *text, size_t size)
{
    FILE *out = size ? fmemopen(text, size, "w") : NULL;
    if (size)
        *text = 0;
    for (int i = 0; out && i < flags->argc; i++) {
        if (i)
            fputc(' ', out);
        tune_print_word(out, flags->argv[i]);
    }
    if (out)
        fclose(out);
    if (size)
        text[size - 1] = 0;
    return text;
}
