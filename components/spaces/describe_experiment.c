/* describe_experiment.c - the pages of experiments and of whole discovery spaces, as ado prints them. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "spaces/experiment.h"
#include "spaces/frame.h"

static char *spell(const struct tune_value *v)
{
    int length = tune_value_str(v, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (text)
        tune_value_str(v, text, (size_t)length + 1);
    return text;
}

static void cell(struct tune_frame *f, const struct tune_value *v)
{
    char *text = spell(v);
    tune_frame_cell(f, text ? text : "");
    free(text);
}

/* ---- a space ---- */

static int print_inputs(const struct tune_protocol *p, int indent, FILE *out)
{
    static const char *const headings[] = {"parameter", "type", "value", "parameterized"};
    const struct tune_experiment *e = p->experiment;
    struct tune_frame *f = tune_frame_new(headings, 4);
    if (!f)
        return -1;
    for (int pass = 0; pass < 2; pass++) /* required ones first */
        for (int i = 0; i < e->input_count; i++) {
            if (e->inputs[i].required != (pass == 0))
                continue;
            tune_frame_cell(f, e->names[i]);
            tune_frame_cell(f, pass == 0 ? "required" : "optional");
            if (pass == 0 || p->dimension[i] >= 0)
                tune_frame_cell(f, "None");
            else
                cell(f, &p->fixed[i]);
            tune_frame_cell(f, pass == 0 ? "na" : p->parameterized[i] ? "True" : "False");
        }
    int code = tune_frame_print(f, indent, out);
    tune_frame_free(f);
    return code;
}

static int print_outputs(const struct tune_protocol *p, int indent, FILE *out)
{
    static const char *const headings[] = {"target property"};
    struct tune_frame *f = tune_frame_new(headings, 1);
    if (!f)
        return -1;
    for (int i = 0; i < p->experiment->target_count; i++)
        if (tune_protocol_shows(p, &p->experiment->targets[i]))
            tune_frame_cell(f, p->experiment->targets[i].name);
    int code = tune_frame_print(f, indent, out);
    tune_frame_free(f);
    return code;
}

static int print_measurement_space(const struct tune_space *s, const struct tune_protocol *protocols, FILE *out)
{
    static const char *const headings[] = {"experiment", "supported"};
    struct tune_frame *f = tune_frame_new(headings, 2);
    if (!f)
        return -1;
    for (int i = 0; i < s->reference_count; i++) {
        tune_frame_cell(f, protocols[i].full_identifier);
        tune_frame_cell(f, protocols[i].supported ? "True" : "False");
    }
    int code = tune_frame_print(f, 2, out);
    tune_frame_free(f);
    TRY(code);
    for (int i = 0; i < s->reference_count; i++) {
        fprintf(out, "\n  %s\n\n  Inputs:\n", protocols[i].full_identifier);
        TRY(print_inputs(&protocols[i], 4, out));
        fprintf(out, "\n  Outputs:\n");
        TRY(print_outputs(&protocols[i], 4, out));
    }
    return 0;
}

int tune_space_describe(const struct tune_space *s, const struct tune_protocol *protocols, const char *store_id, FILE *out)
{
    fprintf(out, "Identifier: space-%s-%s\n\nEntity Space:\n\n", s->id, store_id);
    TRY(tune_space_describe_entities(s, 2, out));
    if (s->reference_count > 0) {
        fprintf(out, "\nMeasurement Space:\n\n");
        TRY(print_measurement_space(s, protocols, out));
    } else {
        fprintf(out, "\nMeasurement Space: none, nothing can be measured\n");
    }
    fprintf(out, "\nSample Store identifier: '%s'\n", store_id);
    return 0;
}

/* ---- an experiment ---- */

static void print_list(const char *title, const struct tune_value *values, int count, FILE *out)
{
    fprintf(out, "      %s [", title);
    for (int i = 0; i < count; i++) {
        char text[256];
        tune_value_repr(&values[i], text, sizeof text);
        fputs(i ? ", " : "", out);
        tune_print_line_of(out, text);
    }
    fputs("]\n", out);
}

static void print_domain(const struct tune_domain *d, FILE *out)
{
    char low[64], high[64];
    fprintf(out, "    Domain:\n      Type: %s\n", tune_variable_name(d));
    if (d->count > 0)
        print_list("Values:", d->values, d->count, out);
    if (d->has_interval) {
        tune_value_str(&d->interval, low, sizeof low);
        fprintf(out, "      Interval: %s\n", low);
    }
    if (d->has_range) {
        tune_value_str(&d->low, low, sizeof low);
        tune_value_str(&d->high, high, sizeof high);
        fprintf(out, "      Range: [%s, %s]\n", low, high);
    }
}

static void print_input(const struct tune_input *in, FILE *out)
{
    fprintf(out, "  %s", in->name);
    if (in->description) {
        fputs(": ", out);
        tune_print_line_of(out, in->description);
    }
    fputc('\n', out);
    print_domain(&in->domain, out);
    if (!in->required) {
        char *text = spell(&in->standard);
        fputs("    Default value: ", out);
        tune_print_line_of(out, text ? text : "");
        fputc('\n', out);
        free(text);
    }
    if (in->inert) {
        fputs("    Inert: ", out);
        tune_print_line_of(out, in->inert);
        fputc('\n', out);
    }
    for (int i = 0; i < in->unsupported_count; i++) {
        fprintf(out, "    Not supported: %s, ", in->unsupported[i]);
        tune_print_line_of(out, in->unsupported_reasons[i]);
        fputc('\n', out);
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

int tune_experiment_describe(const struct tune_experiment *e, FILE *out)
{
    fprintf(out, "Identifier: %s.%s\n\n", e->actuator, e->name);
    tune_print_line_of(out, e->description);
    fprintf(out, "%sRequired Inputs:\n\nConstitutive Properties:\n\n", *e->description ? "\n\n" : "");
    if (print_inputs_of(e, true, out) == 0)
        fputs("  none\n\n", out);
    fputs("Optional Inputs and Default Values:\n\n", out);
    if (print_inputs_of(e, false, out) == 0)
        fputs("  none\n\n", out);
    for (int i = 0; i < e->rule_count; i++) {
        fprintf(out, "%s  ", i ? "" : "Rules (not met: is_valid 0, nothing is run):\n\n");
        tune_print_line_of(out, tune_expression_text(e->rules[i].require));
        fputs(": ", out);
        tune_print_line_of(out, e->rules[i].reason);
        fputs(i + 1 == e->rule_count ? "\n\n" : "\n", out);
    }
    if (e->runs > 1)
        fprintf(out, "Runs of one measurement: %d\n\n", e->runs);
    fputs("Outputs:\n\n", out);
    for (int i = 0; i < e->target_count; i++) {
        const struct tune_target *t = &e->targets[i];
        fprintf(out, "  %s-%s%s%s%s", e->name, t->name, *t->unit ? " [" : "", t->unit, *t->unit ? "]" : "");
        if (*t->description) {
            fputs(": ", out);
            tune_print_line_of(out, t->description);
        }
        fputc('\n', out);
    }
    return 0;
}

int tune_catalog_list(const struct tune_catalog *c, FILE *out)
{
    static const char *const headings[] = {"actuator", "experiment", "program"};
    struct tune_frame *f = tune_frame_new(headings, 3);
    if (!f)
        return -1;
    for (int i = 0; i < c->count; i++) {
        tune_frame_cell(f, c->experiments[i]->actuator);
        tune_frame_cell(f, c->experiments[i]->name);
        tune_frame_cell(f, c->experiments[i]->program ? c->experiments[i]->program : "None");
    }
    int code = tune_frame_print(f, 0, out);
    tune_frame_free(f);
    return code;
}
