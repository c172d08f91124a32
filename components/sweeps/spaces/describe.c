/* describe.c - print a space's dimensions in tables, in the layout of pandas, as ado does.
 *
 * Row numbers are left-aligned, everything else right-aligned. There is one space between columns,
 * one before each cell, and one before the heading of a column of numbers. So a column as wide as
 * its heading is one space from its neighbour; others are two. */
#include <math.h>
#include <stdlib.h>

#include "core/print.h"
#include "sweeps/spaces/frame.h"
#include "sweeps/spaces/space.h"

enum { SHOWN_ITEMS = 100, MOST_COLUMNS = 5 };

/* Write a value as pandas does: control characters escaped, lists without quotes and cut after
 * SHOWN_ITEMS. */
static void put_value(FILE *out, const struct tune_value *v)
{
    char text[64];
    if (v->type == TUNE_VALUE_TEXT) {
        tune_print_line_of(out, v->text);
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

static void put_values(FILE *out, const struct tune_domain *d)
{
    const struct tune_value all = {.type = TUNE_VALUE_LIST, .list = {d->values, d->count}}, none = tune_value_none();
    put_value(out, d->count ? &all : &none);
}

static void put_range(FILE *out, const struct tune_domain *d)
{
    const struct tune_value ends[] = {d->low, d->high}, none = tune_value_none();
    const struct tune_value range = {.type = TUNE_VALUE_LIST, .list = {ends, 2}};
    put_value(out, d->low.type == TUNE_VALUE_NONE ? &none : &range);
}

static void put_interval(FILE *out, const struct tune_domain *d)
{
    const struct tune_value none = tune_value_none();
    put_value(out, d->has_interval ? &d->interval : &none);
}

struct column {
    const char *heading;
    void (*put)(FILE *out, const struct tune_domain *d); /* NULL: use the dimension's name */
};

/* The tables in ado's order: which dimensions each has, and which columns. */
struct kind {
    enum tune_variable type;
    const char *title;
    struct column columns[MOST_COLUMNS];
};
static const struct kind kinds[] = {
    {TUNE_CATEGORICAL, "Categorical properties:", {{"name", NULL}, {"values", put_values}}},
    {TUNE_DISCRETE,
     "Discrete properties:",
     {{"name", NULL}, {"range", put_range}, {"interval", put_interval}, {"values", put_values}}},
    {TUNE_BINARY, "Binary properties:", {{"name", NULL}}},
    {TUNE_CONTINUOUS, "Continuous properties:", {{"name", NULL}, {"range", put_range}}},
    {TUNE_OPEN_CATEGORICAL, "Identifier properties:", {{"name", NULL}}},
    {TUNE_UNKNOWN, "Properties with unknown type:", {{"name", NULL}}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The text of a cell; the caller frees it. NULL: no memory. */
static char *cell(const struct tune_dimension *dimension, const struct column *column)
{
    const struct tune_domain *domain = &dimension->domain;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (!column->put)
        tune_print_line_of(out, dimension->name);
    else
        column->put(out, domain);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Print the table of one kind, if a dimension has that kind. */
static int describe_kind(const struct tune_space *s, const struct kind *kind, int indent, bool *first, FILE *out)
{
    const char *headings[MOST_COLUMNS];
    int columns = 0, rows = 0;
    while (columns < MOST_COLUMNS && kind->columns[columns].heading) {
        headings[columns] = kind->columns[columns].heading;
        columns++;
    }
    struct tune_frame *f = tune_frame_new(headings, columns);
    for (int i = 0; f && i < s->count; i++) {
        if (s->dimensions[i].domain.type != kind->type)
            continue;
        for (int c = 0; c < columns; c++) {
            char *text = cell(&s->dimensions[i], &kind->columns[c]);
            if (kind->columns[c].put == put_interval && text && strcmp(text, "None"))
                tune_frame_numbers(f, c);
            tune_frame_cell(f, text);
            free(text);
        }
        rows++;
    }
    if (f && rows) {
        fprintf(out, "%s%*s%s\n", *first ? "" : "\n", indent, "", kind->title);
        *first = false;
        return tune_frame_print(f, indent + 2, out);
    }
    tune_frame_free(f);
    return f ? 0 : -1;
}

/* "Number entities: 80 (allowed by the constraints: 64)" */
static int describe_size(const struct tune_space *s, int indent, FILE *out)
{
    double allowed, error;
    char text[48];
    if (s->size == 0) {
        fprintf(out, "%*sSpace with non-discrete dimensions. Cannot count entities\n", indent, "");
        return 0;
    }
    fprintf(out, "%*sNumber entities: %s%s", indent, "", s->size == TUNE_INDEX_MAX ? "at least " : "",
            tune_index_text(s->size, text));
    if (s->constraint_count) {
        if (tune_space_count_allowed(s, &allowed, &error) < 0) {
            fputc('\n', out);
            return -1;
        }
        if (error == 0 && allowed < 0x1p53)
            fprintf(out, " (allowed by the constraints: %.0f)", allowed);
        else if (isinf(allowed))
            fprintf(out, " (allowed by the constraints: over 1e+300)");
        else
            fprintf(out, " (allowed by the constraints: about %.4g, give or take %.2g)", allowed, error);
    }
    fputc('\n', out);
    return 0;
}

int tune_space_describe_entities(const struct tune_space *s, int indent, FILE *out)
{
    bool first = true;
    if (describe_size(s, indent, out) < 0)
        return -1;
    for (int k = 0; k < KINDS; k++)
        if (describe_kind(s, &kinds[k], indent, &first, out) < 0)
            return -1;
    if (s->constraint_count)
        fprintf(out, "\n%*sConstraints:\n", indent, "");
    for (int c = 0; c < s->constraint_count; c++) {
        fprintf(out, "%*s", indent + 2, "");
        tune_print_line_of(out, tune_expression_text(s->constraints[c]));
        fputc('\n', out);
    }
    return 0;
}
