/* from_program.c - make an experiment file from the output of --describe. */
#include "sweeps/actuators/from_program.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/child.h"
#include "files/cjson.h"
#include "core/decimal.h"
#include "core/error.h"

enum { LIMIT = 4 << 20, SECONDS = 30 };

/* Options that are not inputs: they control files, resuming and output. Options that change the
 * computation or its length are inputs, including the device and all ways to stop early. */
static const char *const skipped[] = {"output",     "overwrite", "resume",    "allow_changed", "config", "save",
                                      "save_every", "save_dtype", "keep_last", "logger",        "log_every", "profile",
                                      "show_tokens", "plan_memory", "requeue"};

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void put_text(FILE *out, const char *text)
{
    cJSON *item = cJSON_CreateString(text);
    char *quoted = item ? cJSON_PrintUnformatted(item) : NULL;
    fputs(quoted ? quoted : "\"\"", out);
    cJSON_free(quoted);
    cJSON_Delete(item);
}

static void put_number(FILE *out, double value)
{
    char text[TUNE_DECIMAL_SIZE];
    tune_decimal_json(text, value);
    fputs(text, out);
}

/* Read the ends of "[1,4096]", "(0,1]" or "[0,inf)". */
static bool read_range(const char *range, double *low, double *high)
{
    char *end;
    if (*range != '[' && *range != '(')
        return false;
    *low = strtod(range + 1, &end);
    if (*end != ',')
        return false;
    *high = strtod(end + 1, &end);
    return *end == ']' || *end == ')';
}

/* Write the domain. Our ranges are half-open, so the end of an integer range is one higher. */
static void put_domain(FILE *out, const cJSON *option, const char *type)
{
    double low = 0, high = 0;
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(option, "choices"), *choice;
    bool whole = !strncmp(type, "int", 3), ranged = read_range(text_of(option, "range"), &low, &high);
    if (!strcmp(type, "bool")) {
        fputs("{\"variableType\": \"BINARY_VARIABLE_TYPE\"}", out);
    } else if (!strcmp(type, "choice")) {
        fputs("{\"values\": [", out);
        cJSON_ArrayForEach(choice, choices) {
            if (choice != choices->child)
                fputs(", ", out);
            put_text(out, cJSON_IsString(choice) ? choice->valuestring : "");
        }
        fputs("]}", out);
    } else if (!strcmp(type, "string")) {
        fputs("{\"variableType\": \"OPEN_CATEGORICAL_VARIABLE_TYPE\"}", out);
    } else if (ranged && isfinite(low) && isfinite(high)) {
        fputs("{\"domainRange\": [", out);
        put_number(out, low);
        fputs(", ", out);
        put_number(out, whole ? high + 1 : nextafter(high, INFINITY));
        fputs(whole ? "], \"interval\": 1}" : "]}", out);
    } else {
        fputs(whole ? "{\"variableType\": \"DISCRETE_VARIABLE_TYPE\", \"interval\": 1}" : "{\"variableType\": \"CONTINUOUS_VARIABLE_TYPE\"}",
              out);
    }
}

static void put_default(FILE *out, const cJSON *option)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(option, "default");
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    if (cJSON_IsNumber(value))
        put_number(out, value->valuedouble);
    else
        fputs(text ? text : "null", out);
    cJSON_free(text);
}

static bool wanted(const cJSON *option)
{
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++)
        if (!strcmp(text_of(option, "name"), skipped[i]))
            return false;
    return !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(option, "positional"));
}

/* Write the input for an option. An option without a default is required if no run works without
 * it, else optional. */
static void put_input(FILE *out, const cJSON *option)
{
    const char *name = text_of(option, "name"), *type = text_of(option, "type");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(option, "default");
    bool required = !strcmp(name, "model") || !strcmp(name, "dataset"), none = !required && (!value || cJSON_IsNull(value));
    fputs("    {\"identifier\": ", out);
    put_text(out, name);
    fputs(", \"description\": ", out);
    put_text(out, text_of(option, "help"));
    if (required) {
        fputs(", \"required\": true", out);
    } else {
        fputs(", \"default\": ", out);
        put_default(out, option);
    }
    fputs(", \"domain\": ", out);
    if (none)
        fputs("{}", out);
    else
        put_domain(out, option, type);
    fputs(", \"flag\": ", out);
    put_text(out, text_of(option, "flag"));
    if (!strcmp(name, "model"))
        fputs(", \"role\": \"weights\"", out);
    if (!strcmp(name, "dataset"))
        fputs(", \"role\": \"data\"", out);
    fputc('}', out);
}

static bool has_option(const cJSON *options, const char *name)
{
    const cJSON *option;
    cJSON_ArrayForEach(option, options) {
        if (!strcmp(text_of(option, "name"), name))
            return true;
    }
    return false;
}

static void put_experiment(FILE *out, const cJSON *json, const char *path)
{
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(json, "options"), *item;
    const char *program = text_of(json, "program"), *lead = "";
    fputs("{\n  \"identifier\": ", out);
    put_text(out, program);
    fputs(",\n  \"actuator\": \"custom_experiments\",\n  \"description\": \"\",\n  \"program\": ", out);
    put_text(out, path);
    fputs(",\n  \"arguments\": [", out);
    if (has_option(options, "save"))
        fputs("\"--no-save\"", out);
    fprintf(out, "],\n  \"output\": %s,\n  \"inputs\": [\n", has_option(options, "output") ? "\"--output\"" : "null");
    cJSON_ArrayForEach(item, options) {
        if (!wanted(item))
            continue;
        fputs(lead, out);
        put_input(out, item);
        lead = ",\n";
    }
    fputs("\n  ],\n  \"targets\": [\n", out);
    lead = "";
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "properties")) {
        fprintf(out, "%s    {\"identifier\": ", lead);
        put_text(out, text_of(item, "name"));
        fputs(", \"unit\": ", out);
        put_text(out, text_of(item, "unit"));
        fputs(", \"description\": ", out);
        put_text(out, text_of(item, "help"));
        fputs(", \"optional\": true}", out);
        lead = ",\n";
    }
    fputs("\n  ]\n}\n", out);
}

/* True if the value is a list of objects that all have names. */
static bool all_named(const cJSON *json, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, key), *item;
    cJSON_ArrayForEach(item, list) {
        if (!*text_of(item, "name"))
            return false;
    }
    return cJSON_IsArray(list);
}

/* Parse the program's output for --describe as JSON. */
static cJSON *ask(const char *program)
{
    char log[] = "/tmp/tune-describe-XXXXXX", path[TUNE_PATH_MAX];
    const char *const argv[] = {path, "--describe", NULL};
    struct tune_child_end end;
    cJSON *json = NULL;
    int fd = mkstemp(log);
    if (fd < 0 || tune_path(path, "%s", program) < 0) {
        tune_error_set("cannot make a temporary file: %s", strerror(errno));
        return NULL;
    }
    close(fd);
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)environ, .log = log, .log_limit = LIMIT,
                                         .limit_s = SECONDS, .grace_s = 2};
    struct tune_child *child = tune_child_start(&o);
    if (child && tune_child_end(child, &end) == 0) {
        if (end.how == TUNE_CHILD_NOT_STARTED)
            tune_error_usage("%s does not start: %s", program, end.reason);
        else if (end.how == TUNE_CHILD_TIMED_OUT)
            tune_error_usage("%s --describe has not ended after %d seconds; an experiment file "
                             "for it must be written by hand", program, SECONDS);
        else if (end.how != TUNE_CHILD_EXITED || end.code != 0)
            tune_error_usage("%s --describe ends with %s %d; an experiment file for it must be "
                             "written by hand", program,
                             end.how == TUNE_CHILD_EXITED ? "exit code" : "signal", end.code);
        else if (!(json = tune_cjson_read(log, LIMIT)))
            tune_error_usage("%s --describe does not print a description in JSON; an experiment "
                             "file for it must be written by hand", program);
    }
    bool reports = json && cJSON_GetObjectItemCaseSensitive(json, "properties");
    if (json && (!all_named(json, "options") || (reports && !all_named(json, "properties")))) {
        cJSON_Delete(json);
        json = NULL;
        tune_error_usage("%s --describe prints JSON without \"options\", or an option or a "
                         "property without a \"name\"; an experiment file for it must be written "
                         "by hand", program);
    }
    unlink(log);
    return json;
}

char *tune_experiment_from_program(const char *program)
{
    char *text = NULL, path[TUNE_PATH_MAX];
    size_t size;
    cJSON *json = ask(program);
    if (!json)
        return NULL;
    /* a program beside the tools needs only its name; others need the absolute path */
    const char *slash = strrchr(program, '/');
    if (!slash || !realpath(program, path))
        snprintf(path, sizeof path, "%s", program);
    FILE *out = open_memstream(&text, &size);
    if (out) {
        put_experiment(out, json, path);
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    cJSON_Delete(json);
    if (!text)
        tune_error_cannot("out of memory while the experiment of %s is written", program);
    return text;
}
