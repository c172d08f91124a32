/* describe.c - print the pages of spaces and experiments. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"
#include "views/table.h"

enum { SHOWN_ITEMS = 100 };

/* Print before, text and after, with control characters in text escaped. */
static void print_text(const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    tune_print_line_of(out, text);
    fputs(after, out);
}

/* Print the table indented, and free it. -1: no memory, or t is NULL. */
static int print_table(struct tune_table *t, int indent, FILE *out)
{
    char *text = NULL;
    size_t size;
    FILE *whole = t ? open_memstream(&text, &size) : NULL;
    int code = whole ? tune_table_print(t, "table", 0, "...", whole) : -1;
    if (whole && fclose(whole) != 0)
        code = tune_error_no_memory("a table");
    for (char *line = code == 0 ? text : NULL, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        fprintf(out, "%*s%.*s\n", indent, "", (int)(end - line), line);
    }
    free(text);
    tune_table_free(t);
    return code;
}

/* ---- the dimensions of a space ---- */

/* Write a value for people. Texts have no quotes unless they are empty. Lists are cut after
 * SHOWN_ITEMS. */
static void put_value(FILE *out, const struct tune_value *v)
{
    char text[64];
    if (v->type == TUNE_VALUE_TEXT) {
        tune_print_line_of(out, *v->text ? v->text : "''");
    } else if (v->type != TUNE_VALUE_LIST) {
        tune_value_str(v, text, sizeof text);
        fputs(text, out);
    } else {
        fputc('[', out);
        for (int i = 0; i < v->list.count && i < SHOWN_ITEMS; i++) {
            fputs(i ? ", " : "", out);
            put_value(out, &v->list.items[i]);
        }
        fputs(v->list.count > SHOWN_ITEMS ? ", ...]" : "]", out);
    }
}

enum column { NAME, TYPE, RANGE, INTERVAL, VALUES, PROBABILITY, DESCRIPTION, COLUMNS };
static const char *const column_names[COLUMNS] = {"name", "type", "range", "interval", "values", "probability", "description"};

static void put_cell(FILE *out, const struct tune_dimension *dimension, enum column column)
{
    static const char *const types[] = {"unknown", "continuous", "discrete", "categorical", "binary", "open"};
    const struct tune_domain *d = &dimension->domain;
    const struct tune_value ends[] = {d->low, d->high}, range = {.type = TUNE_VALUE_LIST, .list = {ends, 2}};
    const struct tune_value values = {.type = TUNE_VALUE_LIST, .list = {d->values, d->count}};
    switch (column) {
    case NAME: fputs(dimension->name, out); break;
    case TYPE: fputs(d->identifier ? "identifier" : types[d->type], out); break;
    case RANGE:
        if (d->low.type != TUNE_VALUE_NONE)
            put_value(out, &range);
        break;
    case INTERVAL:
        if (d->has_interval)
            put_value(out, &d->interval);
        break;
    case VALUES:
        if (d->count)
            put_value(out, &values);
        break;
    case PROBABILITY:
        if (d->probability == TUNE_NORMAL)
            fprintf(out, "normal(%g, %g)%s", d->mean, d->deviation, d->type == TUNE_CONTINUOUS ? "" : ", unused");
        break;
    default: fputs(dimension->description ? dimension->description : "", out);
    }
}

/* Make the text of a cell, which the caller frees. NULL: no memory. */
static char *cell(const struct tune_dimension *dimension, enum column column)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    put_cell(out, dimension, column);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Print the table of dimensions, without columns that are empty in every row. */
static int print_dimensions(const struct tune_space *s, int indent, FILE *out)
{
    const char *headings[COLUMNS];
    enum column shown[COLUMNS];
    int count = 0;
    for (int c = 0; c < COLUMNS; c++) {
        bool any = false;
        for (int i = 0; i < s->count && !any; i++) {
            char *text = cell(&s->dimensions[i], (enum column)c);
            any = text && *text;
            free(text);
        }
        if (any) {
            headings[count] = column_names[c];
            shown[count++] = (enum column)c;
        }
    }
    struct tune_table *t = tune_table_new(headings, count);
    for (int i = 0; t && i < s->count * count; i++) {
        char *text = cell(&s->dimensions[i / count], shown[i % count]);
        tune_table_text(t, text);
        free(text);
    }
    return print_table(t, indent, out);
}

/* Print "Number entities: 80 (allowed by the constraints: 64)". */
static int describe_size(const struct tune_space *s, int indent, FILE *out)
{
    double allowed, error;
    char text[48], words[160];
    if (s->size == 0) {
        fprintf(out, "%*sSpace with non-discrete dimensions. Cannot count entities\n", indent, "");
        return 0;
    }
    if (s->points_path) {
        fprintf(out, "%*sNumber entities: %lld, listed in ", indent, "", (long long)s->listed);
        print_text("", s->points_path, "\n", out);
        return 0;
    }
    fprintf(out, "%*sNumber entities: %s%s", indent, "", s->size == TUNE_INDEX_MAX ? "at least " : "",
            tune_index_text(s->size, text));
    if (s->constraint_count) {
        if (tune_space_count_allowed(s, &allowed, &error) < 0) {
            fputc('\n', out);
            return -1;
        }
        fprintf(out, " (allowed by the constraints: %s)", tune_space_allowed_text(allowed, error, words));
    }
    fputc('\n', out);
    return 0;
}

int tune_space_describe_entities(const struct tune_space *s, int indent, FILE *out)
{
    TRY(describe_size(s, indent, out));
    TRY(print_dimensions(s, indent, out));
    int constraints = s->constraint_count - (s->points_path != NULL);
    if (constraints)
        fprintf(out, "\n%*sConstraints:\n", indent, "");
    for (int c = 0; c < constraints; c++) {
        fprintf(out, "%*s", indent + 2, "");
        print_text("", tune_expression_text(s->constraints[c]), "\n", out);
    }
    return 0;
}

/* ---- a space ---- */

static void value_cell(struct tune_table *t, const struct tune_value *v)
{
    char *text = tune_value_to_string(v);
    tune_table_text(t, text && !*text ? "''" : text);
    free(text);
}

static int print_inputs(const struct tune_binding *p, int indent, FILE *out)
{
    static const char *const headings[] = {"parameter", "type", "value", "parameterized"};
    const struct tune_experiment *e = p->experiment;
    struct tune_table *t = tune_table_new(headings, 4);
    for (int k = 0; t && k < 2 * e->input_count; k++) { /* required ones first */
        int i = k % e->input_count;
        bool required = e->inputs[i].required;
        if (required != (k < e->input_count))
            continue;
        tune_table_text(t, e->names[i]);
        tune_table_text(t, required ? "required" : "optional");
        if (p->dimension[i] >= 0)
            tune_table_text(t, "a dimension");
        else
            value_cell(t, &p->fixed[i]);
        tune_table_text(t, required ? "" : p->parameterized[i] ? "yes" : "no");
    }
    return print_table(t, indent, out);
}

static int print_measurement_space(const struct tune_space *s, const struct tune_binding *bindings, FILE *out)
{
    static const char *const headings[] = {"experiment", "supported"};
    struct tune_table *t = tune_table_new(headings, 2);
    for (int i = 0; t && i < s->reference_count; i++) {
        tune_table_text(t, bindings[i].full_identifier);
        tune_table_text(t, bindings[i].supported ? "yes" : "no");
    }
    TRY(print_table(t, 2, out));
    for (int i = 0; i < s->reference_count; i++) {
        const struct tune_experiment *e = bindings[i].experiment;
        print_text("\n  ", bindings[i].full_identifier, "\n\n  Inputs:\n", out);
        TRY(print_inputs(&bindings[i], 4, out));
        fprintf(out, "\n  Outputs:\n");
        for (int k = 0; k < e->target_count; k++)
            if (tune_binding_shows(&bindings[i], &e->targets[k]))
                print_text("    ", e->targets[k].name, "\n", out);
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

int tune_space_describe(const struct tune_space *s, const struct tune_binding *bindings, const char *store_id, FILE *out)
{
    fprintf(out, "Identifier: space-%s", s->id);
    print_text("-", store_id, "\n\nEntity Space:\n\n", out);
    TRY(tune_space_describe_entities(s, 2, out));
    if (s->reference_count > 0) {
        fprintf(out, "\nMeasurement Space:\n\n");
        TRY(print_measurement_space(s, bindings, out));
    } else {
        fprintf(out, "\nMeasurement Space: none, so nothing can be measured\n");
    }
    print_metadata(s, out);
    print_text("\nSample Store identifier: '", store_id, "'\n", out);
    return 0;
}

/* ---- an experiment ---- */

static void print_domain(const struct tune_input *in, FILE *out)
{
    const struct tune_dimension dimension = {.name = in->name, .domain = in->domain};
    for (enum column c = TYPE; c <= PROBABILITY; c++) {
        char *text = cell(&dimension, c);
        if (text && *text)
            fprintf(out, "      %s: %s\n", column_names[c], text);
        free(text);
    }
}

static void print_input(const struct tune_input *in, FILE *out)
{
    print_text("  ", in->name, "", out);
    if (in->description)
        print_text(": ", in->description, "", out);
    fputs("\n    Domain:\n", out);
    print_domain(in, out);
    if (!in->required) {
        fputs("    Default value: ", out);
        put_value(out, &in->standard);
        fputc('\n', out);
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

static void print_rules(const struct tune_experiment *e, bool here, const char *heading, FILE *out)
{
    int n = 0;
    for (int i = 0; i < e->rule_count; i++)
        if (e->rules[i].here == here) {
            fputs(n++ ? "" : heading, out);
            print_text("  ", tune_expression_text(e->rules[i].require), ": ", out);
            print_text("", e->rules[i].reason, "\n", out);
        }
    if (n > 0)
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
    print_rules(e, false, "Rules (if one is not met: is_valid 0, nothing is run):\n\n", out);
    print_rules(e, true, "Rules of this build (if one is not met: nothing is run, and there is no row):\n\n", out);
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
    struct tune_table *t = tune_table_new(headings, 3);
    for (int i = 0; t && i < c->count; i++) {
        tune_table_text(t, c->experiments[i]->actuator);
        tune_table_text(t, c->experiments[i]->name);
        tune_table_text(t, c->experiments[i]->program ? c->experiments[i]->program : "none");
    }
    return print_table(t, 0, out);
}
