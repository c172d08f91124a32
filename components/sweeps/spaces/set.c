/* set.c - set an input of a space to one value, before the space is bound. */
#include <string.h>

#include "core/nearest.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/spaces/points.h"

/* Parse the text as in a space file. The caller frees the document. NULL with an error. */
static struct tune_document *parse(const char *input, const char *text)
{
    struct tune_document *d = tune_document_parse("`set`", text, strlen(text), false);
    if (!d || d->root->type == TUNE_NODE_SCALAR)
        return d;
    tune_document_free(d);
    tune_error_usage("`set` %s=%s: the value must be a number, a text or a boolean", input, text);
    return NULL;
}

static int read_value(struct tune_space *s, const char *input, const char *text, struct tune_value *value)
{
    struct tune_document *d = parse(input, text);
    int code = d ? 0 : -1;
    if (code == 0)
        *value = d->root->value;
    if (code == 0 && value->type == TUNE_VALUE_TEXT && !(value->text = tune_document_to_string(s->document, value)))
        code = -1;
    tune_document_free(d);
    return code;
}

/* True if the input can have the value. "None" becomes None if the input can be None but not this
 * text. In the same way, "1e-5", which is a text in YAML, becomes a number. */
static bool takes(const struct tune_input *in, struct tune_value *value)
{
    const struct tune_value none = tune_value_none();
    bool nothing = tune_domain_has(&in->domain, &none) || (!in->required && in->standard.type == TUNE_VALUE_NONE);
    struct tune_value number;
    bool has = tune_domain_has(&in->domain, value);
    if (!has && value->type == TUNE_VALUE_TEXT && tune_value_read_as(value->text, &number) && tune_domain_has(&in->domain, &number)) {
        *value = number;
        return true;
    }
    if (!has && nothing && value->type == TUNE_VALUE_TEXT && !strcmp(value->text, "None"))
        *value = none;
    return has || (nothing && value->type == TUNE_VALUE_NONE);
}

bool tune_space_settable(const struct tune_input *in, const char *text, const struct tune_value *value)
{
    struct tune_document *d = strpbrk(text, ",\n") ? NULL : parse(in->name, text);
    struct tune_value read = d ? d->root->value : tune_value_none();
    bool good = d && takes(in, &read) && tune_value_equal(&read, value);
    tune_document_free(d);
    tune_error_clear();
    return good;
}

/* Set the parameter of one experiment. A parameter equal to the default is left out. */
static int set_parameter(struct tune_space *s, struct tune_experiment_reference *r, const char *input, const struct tune_value *value,
                         bool usual)
{
    struct tune_space_parameter *all = tune_document_take(s->document, ((size_t)r->count + 2) * sizeof *all);
    int at = 0, count = 0;
    TRY(all ? 0 : -1);
    for (; at < r->count; at++)
        if (strcmp(r->parameters[at].name, input))
            all[count++] = r->parameters[at];
        else if (!usual)
            all[count++] = (struct tune_space_parameter){r->parameters[at].name, *value, r->parameters[at].at};
    bool there = false;
    for (int i = 0; i < count; i++)
        there = there || !strcmp(all[i].name, input);
    if (!there && !usual) {
        struct tune_value name = tune_value_text(input);
        all[count] = (struct tune_space_parameter){tune_document_to_string(s->document, &name), *value, r->at};
        TRY(all[count++].name ? 0 : -1);
    }
    r->parameters = all;
    r->count = count;
    return 0;
}

/* Set the dimension's domain to this one value. */
static int set_dimension(struct tune_space *s, int k, const struct tune_value *value)
{
    struct tune_value *one = tune_document_take(s->document, sizeof *one);
    TRY(one ? 0 : -1);
    *one = *value;
    bool number = value->type != TUNE_VALUE_TEXT && value->type != TUNE_VALUE_LIST && value->type != TUNE_VALUE_NONE;
    enum tune_variable type = number ? TUNE_DISCRETE : TUNE_CATEGORICAL;
    s->dimensions[k].domain = (struct tune_domain){.type = type, .values = one, .count = 1};
    for (int64_t i = 0; i < s->point_count; i++)
        s->point_values[i * s->count + k] = *value;
    if (s->points_path)
        return tune_points_index(s);
    tune_space_measure(s);
    return 0;
}

int tune_space_set(struct tune_space *s, const struct tune_catalog *c, const char *input, const char *text)
{
    struct tune_value value;
    int dimension = tune_name_find(s->names, s->count, input);
    const struct tune_experiment *last = NULL;
    bool known = false;
    TRY(read_value(s, input, text, &value));
    for (int i = 0; i < s->reference_count; i++) {
        const struct tune_experiment *e = tune_catalog_find(c, s->references[i].actuator, s->references[i].experiment);
        int at = e ? tune_experiment_input(e, input) : -1;
        TRY(e ? 0 : -1);
        last = e;
        if (at < 0)
            continue;
        known = true;
        if (!takes(&e->inputs[at], &value))
            return tune_error_usage("`set` %s=%s: %s cannot take this value (space experiments %s shows its domain)",
                                    input, text, e->name, e->name);
        if (dimension < 0)
            TRY(set_parameter(s, &s->references[i], input, &value, tune_value_equal(&value, &e->inputs[at].standard)));
    }
    char hint[TUNE_HINT];
    if (!known)
        return tune_error_usage("`set` %s: no experiment of this space has this input%s", input,
                                last ? tune_nearest_hint(input, last->names, last->input_count, hint) : "");
    return dimension < 0 ? 0 : set_dimension(s, dimension, &value);
}
