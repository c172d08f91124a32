/* describe_experiment.c - print the pages of experiments and of whole discovery spaces, as ado
 * does. */
#include <stdlib.h>

#include "core/print.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/spaces/frame.h"

/* Print `before`, the text with escaped control characters, and `after`. */
static void print_text(const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    tune_print_line_of(out, text);
    fputs(after, out);
}

/* ---- a space ---- */

static void value_cell(struct tune_frame *f, const struct tune_value *v)
{
    char *text = tune_value_spell(v);
    tune_frame_cell(f, text ? text : "");
    free(text);
}

static int print_inputs(const struct tune_protocol *p, int indent, FILE *out)
{
    static const char *const headings[] = {"parameter", "type", "value", "parameterized"};
    const struct tune_experiment *e = p->experiment;
    struct tune_frame *f = tune_frame_new(headings, 4);
    for (int pass = 0; pass < 2; pass++) /* required properties first */
        for (int i = 0; i < e->input_count; i++) {
            if (e->inputs[i].required != (pass == 0))
                continue;
            tune_frame_cell(f, e->names[i]);
            tune_frame_cell(f, pass == 0 ? "required" : "optional");
            if (pass == 0 || p->dimension[i] >= 0)
                tune_frame_cell(f, "None");
            else
                value_cell(f, &p->fixed[i]);
            tune_frame_cell(f, pass == 0 ? "na" : p->parameterized[i] ? "True" : "False");
        }
    return tune_frame_print(f, indent, out);
}

static int print_outputs(const struct tune_protocol *p, int indent, FILE *out)
{
    static const char *const headings[] = {"target property"};
    struct tune_frame *f = tune_frame_new(headings, 1);
    for (int i = 0; i < p->experiment->target_count; i++)
        if (tune_protocol_shows(p, &p->experiment->targets[i]))
            tune_frame_cell(f, p->experiment->targets[i].name);
    return tune_frame_print(f, indent, out);
}

static int print_measurement_space(const struct tune_space *s, const struct tune_protocol *protocols, FILE *out)
{
    static const char *const headings[] = {"experiment", "supported"};
    struct tune_frame *f = tune_frame_new(headings, 2);
    for (int i = 0; i < s->reference_count; i++) {
        tune_frame_cell(f, protocols[i].full_identifier);
        tune_frame_cell(f, protocols[i].supported ? "True" : "False");
    }
    TRY(tune_frame_print(f, 2, out));
    for (int i = 0; i < s->reference_count; i++) {
        print_text("\n  ", protocols[i].full_identifier, "\n\n  Inputs:\n", out);
        TRY(print_inputs(&protocols[i], 4, out));
        fprintf(out, "\n  Outputs:\n");
        TRY(print_outputs(&protocols[i], 4, out));
    }
    return 0;
}

static void print_metadata(const struct tune_space *s, FILE *out)
{
    if (!s->name && !s->description && s->label_count == 0)
        return;
    fputs("\nMetadata:\n\n", out);
    if (s->name)
        print_text("  Name: ", s->name, "\n", out);
    if (s->description)
        print_text("  Description: ", s->description, "\n", out);
    for (int i = 0; i < s->label_count; i++)
        print_text(i ? ", " : "  Labels: ", s->labels[i], i + 1 == s->label_count ? "\n" : "", out);
}

int tune_space_describe(const struct tune_space *s, const struct tune_protocol *protocols, const char *store_id, FILE *out)
{
    fprintf(out, "Identifier: space-%s", s->id);
    print_text("-", store_id, "\n\nEntity Space:\n\n", out);
    TRY(tune_space_describe_entities(s, 2, out));
    if (s->reference_count > 0) {
        fprintf(out, "\nMeasurement Space:\n\n");
        TRY(print_measurement_space(s, protocols, out));
    } else {
        fprintf(out, "\nMeasurement Space: none, nothing can be measured\n");
    }
    print_metadata(s, out);
    print_text("\nSample Store identifier: '", store_id, "'\n", out);
    return 0;
}

/* ---- an experiment ---- */

/* Print it like Python's repr(). */
static void print_value(const struct tune_value *v, FILE *out)
{
    size_t size = (size_t)tune_value_repr(v, NULL, 0) + 1;
    char *text = malloc(size);
    if (text) {
        tune_value_repr(v, text, size);
        tune_print_line_of(out, text);
    }
    free(text);
}

static void print_domain(const struct tune_domain *d, int indent, FILE *out)
{
    const struct tune_value values = {.type = TUNE_VALUE_LIST, .list = {d->values, d->count}}, ends[] = {d->low, d->high};
    const struct tune_value range = {.type = TUNE_VALUE_LIST, .list = {ends, 2}};
    const struct {
        const char *title;
        const struct tune_value *value;
        bool there;
    } lines[] = {{"Values", &values, d->count > 0},
                 {"Interval", &d->interval, d->has_interval},
                 {"Range", &range, d->has_range}};
    fprintf(out, "%*sType: %s\n", indent, "", tune_variable_name(d));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].there) {
            fprintf(out, "%*s%s: ", indent, "", lines[i].title);
            print_value(lines[i].value, out);
            fputc('\n', out);
        }
}

static void print_input(const struct tune_input *in, FILE *out)
{
    print_text("  ", in->name, "", out);
    if (in->description)
        print_text(": ", in->description, "", out);
    fputs("\n    Domain:\n", out);
    print_domain(&in->domain, 6, out);
    if (!in->required) {
        char *text = tune_value_spell(&in->standard);
        print_text("    Default value: ", text ? text : "", "\n", out);
        free(text);
    }
    if (in->inert)
        print_text("    Inert: ", in->inert, "\n", out);
    for (int i = 0; i < in->unsupported_count; i++) {
        print_text("    Not supported: ", in->unsupported[i], ", ", out);
        print_text("", in->unsupported_reasons[i], "\n", out);
    }
    fputc('\n', out);
}

static int print_inputs_of(const struct tune_experiment *e, bool required, FILE *out)
{
    int count = 0;
    for (int i = 0; i < e->input_count; i++)
        if (e->inputs[i].required == required) {
            print_input(&e->inputs[i], out);
            count++;
        }
    return count;
}

static void print_target(const struct tune_experiment *e, const struct tune_target *t, FILE *out)
{
    print_text("  ", e->name, "-", out);
    print_text("", t->name, "", out);
    if (*t->unit)
        print_text(" [", t->unit, "]", out);
    if (*t->description)
        print_text(": ", t->description, "", out);
    fputc('\n', out);
}

int tune_experiment_describe(const struct tune_experiment *e, FILE *out)
{
    print_text("Identifier: ", e->actuator, ".", out);
    print_text("", e->name, "\n\n", out);
    print_text("", e->description, *e->description ? "\n\n" : "", out);
    fputs("Required Inputs:\n\nConstitutive Properties:\n\n", out);
    if (print_inputs_of(e, true, out) == 0)
        fputs("  none\n\n", out);
    fputs("Optional Inputs and Default Values:\n\n", out);
    if (print_inputs_of(e, false, out) == 0)
        fputs("  none\n\n", out);
    if (e->rule_count > 0)
        fputs("Rules (not met: is_valid 0, nothing is run):\n\n", out);
    for (int i = 0; i < e->rule_count; i++) {
        print_text("  ", tune_expression_text(e->rules[i].require), ": ", out);
        print_text("", e->rules[i].reason, i + 1 == e->rule_count ? "\n\n" : "\n", out);
    }
    if (e->runs > 1)
        fprintf(out, "Runs of one measurement: %d\n\n", e->runs);
    fputs("Outputs:\n\n", out);
    for (int i = 0; i < e->target_count; i++)
        print_target(e, &e->targets[i], out);
    return 0;
}

int tune_catalog_list(const struct tune_catalog *c, FILE *out)
{
    static const char *const headings[] = {"actuator", "experiment", "program"};
    struct tune_frame *f = tune_frame_new(headings, 3);
    for (int i = 0; i < c->count; i++) {
        tune_frame_cell(f, c->experiments[i]->actuator);
        tune_frame_cell(f, c->experiments[i]->name);
        tune_frame_cell(f, c->experiments[i]->program ? c->experiments[i]->program : "None");
    }
    return tune_frame_print(f, 0, out);
}
