/* template.c - print a space file for an experiment. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"

/* Print a value as YAML: texts in double quotes, numbers as Python prints them. */
static int put_value(const struct tune_value *v, FILE *out)
{
    int (*to_string)(const struct tune_value *v, char *text, size_t size) =
        v->type == TUNE_VALUE_TEXT || v->type == TUNE_VALUE_NONE ? tune_value_json : tune_value_repr;
    if (v->type == TUNE_VALUE_LIST) {
        fputc('[', out);
        for (int i = 0; i < v->list.count; i++) {
            fputs(i ? ", " : "", out);
            TRY(put_value(&v->list.items[i], out));
        }
        fputc(']', out);
        return 0;
    }
    size_t size = (size_t)to_string(v, NULL, 0) + 1;
    char *text = malloc(size);
    if (!text)
        return tune_error_cannot("out of memory for a template");
    to_string(v, text, size);
    const char *e = v->type == TUNE_VALUE_FLOAT && !strchr(text, '.') ? strchr(text, 'e') : NULL;
    if (e) /* 1e+16 is a text in YAML */
        fprintf(out, "%.*s.0%s", (int)(e - text), text, e);
    else
        fputs(text, out);
    free(text);
    return 0;
}

static int put_name(const char *name, FILE *out)
{
    const struct tune_value v = tune_value_text(name);
    return put_value(&v, out);
}

static int put_domain(const struct tune_domain *d, FILE *out)
{
    const struct tune_value values = {.type = TUNE_VALUE_LIST, .list = {d->values, d->count}}, ends[] = {d->low, d->high};
    const struct tune_value range = {.type = TUNE_VALUE_LIST, .list = {ends, 2}};
    const struct { const char *key; const struct tune_value *value; bool there; } parts[] = {
        {"values", &values, d->count > 0}, {"domainRange", &range, d->has_range}, {"interval", &d->interval, d->has_interval}};
    const char *before = "";
    if (d->type == TUNE_UNKNOWN)
        return 0;
    fputs("    propertyDomain: {", out);
    if (d->given) {
        fprintf(out, "variableType: %s", tune_variable_name(d));
        before = ", ";
    }
    for (int i = 0; i < 3; i++)
        if (parts[i].there) {
            fprintf(out, "%s%s: ", before, parts[i].key);
            TRY(put_value(parts[i].value, out));
            before = ", ";
        }
    fputs("}\n", out);
    return 0;
}

static void put_description(const char *before, const struct tune_input *in, FILE *out)
{
    if (!in->description || !*in->description)
        return;
    fputs(before, out);
    tune_print_line_of(out, in->description);
    fputc('\n', out);
}

static int put_dimension(const struct tune_input *in, FILE *out)
{
    put_description("  # ", in, out);
    fputs("  - identifier: ", out);
    TRY(put_name(in->name, out));
    fputc('\n', out);
    return put_domain(&in->domain, out);
}

static int put_optional(const struct tune_input *in, FILE *out)
{
    put_description("    #   # ", in, out);
    fputs("    #   - {property: {identifier: ", out);
    TRY(put_name(in->name, out));
    fputs("}, value: ", out);
    TRY(put_value(&in->standard, out));
    fputs("}\n", out);
    return 0;
}

int tune_experiment_template(const struct tune_experiment *e, FILE *out)
{
    int required = 0, put = 0;
    if (e->input_count == 0)
        return tune_error_usage("experiment %s.%s has no inputs, but a space needs at least one",
                                e->actuator, e->name);
    for (int i = 0; i < e->input_count; i++)
        required += e->inputs[i].required;
    fputs("# Choose the values to measure; each is a dimension of the grid.\nentitySpace:\n", out);
    for (int i = 0; i < e->input_count; i++)
        if (e->inputs[i].required || (required == 0 && i == 0))
            TRY(put_dimension(&e->inputs[i], out));
    fputs("experiments:\n  - actuatorIdentifier: ", out);
    TRY(put_name(e->actuator, out));
    fputs("\n    experimentIdentifier: ", out);
    TRY(put_name(e->name, out));
    fputc('\n', out);
    for (int i = 0; i < e->input_count; i++)
        if (!e->inputs[i].required && (required > 0 || i > 0)) {
            if (put++ == 0)
                fputs("    # Optional inputs and their defaults. Keep those that get another value here.\n"
                      "    # parameterization:\n", out);
            TRY(put_optional(&e->inputs[i], out));
        }
    return 0;
}
