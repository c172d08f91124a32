/* rows.c - convert inputs and targets to columns, and values to cells. */
#include "sweeps/discovery/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"

uint64_t tune_entity_hash(const char *identifier, size_t length)
{
    return tune_hash64(identifier, length, 0);
}

static bool whole(const struct tune_value *v)
{
    return v->type == TUNE_VALUE_INT || v->type == TUNE_VALUE_BOOL;
}

/* The type of column that can hold every value of the domain. */
static enum tune_cell_type type_of(const struct tune_domain *d)
{
    bool all_whole = true, all_numbers = true;
    double number;
    for (int i = 0; i < d->count; i++) {
        all_whole = all_whole && whole(&d->values[i]);
        all_numbers = all_numbers && tune_value_number(&d->values[i], &number);
    }
    if (d->has_range) {
        all_whole = all_whole && whole(&d->low);
    }
    if (d->has_interval)
        all_whole = all_whole && whole(&d->interval);
    switch (d->type) {
    case TUNE_BINARY:
        return TUNE_CELL_WHOLE;
    case TUNE_DISCRETE:
        return all_whole ? TUNE_CELL_WHOLE : TUNE_CELL_NUMBER;
    case TUNE_CONTINUOUS:
        return TUNE_CELL_NUMBER;
    default:
        return d->count > 0 && all_numbers && d->type == TUNE_CATEGORICAL ? (all_whole ? TUNE_CELL_WHOLE : TUNE_CELL_NUMBER)
                                                                         : TUNE_CELL_TEXT;
    }
}

/* The type of an input's column. It is NUMBER if the default is not an integer, such as -1.0 or
 * None. */
static enum tune_cell_type input_type(const struct tune_input *in)
{
    enum tune_cell_type type = type_of(&in->domain);
    if (type == TUNE_CELL_WHOLE && !in->required &&
        (in->standard.type == TUNE_VALUE_FLOAT || in->standard.type == TUNE_VALUE_NONE))
        return TUNE_CELL_NUMBER;
    return type;
}

int tune_rows_columns(const struct tune_experiment *e, struct tune_column **columns)
{
    struct tune_column *c = calloc((size_t)(e->input_count + e->target_count) + 1, sizeof *c);
    if (!(*columns = c))
        return tune_error_cannot("out of memory for the columns of %s", e->name);
    for (int i = 0; i < e->input_count; i++, c++)
        *c = (struct tune_column){.name = e->names[i], .unit = "", .type = input_type(&e->inputs[i]), .role = TUNE_COLUMN_INPUT};
    for (int i = 0; i < e->target_count; i++, c++)
        *c = (struct tune_column){.name = e->targets[i].name, .unit = e->targets[i].unit,
                                  .type = e->targets[i].text ? TUNE_CELL_TEXT : TUNE_CELL_NUMBER, .role = TUNE_COLUMN_TARGET, .whole = e->targets[i].whole};
    return e->input_count + e->target_count;
}

int tune_rows_cell(const struct tune_column *column, const struct tune_value *value, struct tune_cell *cell, char *text, size_t size)
{
    double number;
    *cell = (struct tune_cell){0};
    if (column->type == TUNE_CELL_TEXT) {
        cell->text = text;
        if (tune_value_str(value, text, size) < (int)size) {
            cell->absent = !*text;
            return 0;
        }
        return tune_error_set("input %s: its value has more than %zu bytes, too many for a store",
                              column->name, size - 1);
    }
    if (column->type == TUNE_CELL_NUMBER && value->type == TUNE_VALUE_NONE) {
        *cell = tune_cell_number(NAN);
        return 0;
    }
    if (!tune_value_number(value, &number)) {
        tune_value_repr(value, text, size);
        return tune_error_set("input %s must be a number in its experiment, but its value is %s",
                              column->name,
                              text);
    }
    cell->number = number;
    if (column->type == TUNE_CELL_NUMBER)
        return 0;
    if (value->type == TUNE_VALUE_FLOAT && (number != floor(number) || fabs(number) > 9007199254740992.0)) {
        tune_value_repr(value, text, size);
        return tune_error_set("input %s must be a whole number in its experiment, but its value is "
                              "%s",
                              column->name, text);
    }
    cell->whole = value->type == TUNE_VALUE_INT ? value->integer : (int64_t)number;
    return 0;
}

/* Find the value of the domain whose str() is this text. */
static bool find_spelled(const struct tune_domain *d, const char *text, struct tune_value *value)
{
    char spelled[TUNE_STORE_TEXT_MAX + 1], *end;
    for (int i = 0; i < d->count; i++) {
        const struct tune_value *v = &d->values[i];
        if ((tune_value_str(v, spelled, sizeof spelled) < (int)sizeof spelled && !strcmp(spelled, text)) ||
            /* as in identifiers, and in imported rows */
            (v->type == TUNE_VALUE_BOOL && !strcmp(text, v->boolean ? "1" : "0"))) {
            *value = *v;
            return true;
        }
    }
    if (d->type == TUNE_BINARY && (!strcmp(text, "True") || !strcmp(text, "False"))) {
        *value = tune_value_bool(*text == 'T');
        return true;
    }
    if (d->count > 0 || !*text || (d->type != TUNE_DISCRETE && d->type != TUNE_CONTINUOUS && d->type != TUNE_BINARY))
        return false;
    double number = strtod(text, &end);
    *value = tune_value_float(number);
    return !*end;
}

/* Rows of a time before an input was added to the experiment had its default. */
static int set_defaults(struct tune_scan *scan, const struct tune_experiment *e, int first)
{
    char text[TUNE_STORE_TEXT_MAX];
    struct tune_cell cell;
    for (int i = 0; i < e->input_count; i++) {
        const struct tune_input *in = &e->inputs[i];
        const struct tune_column column = {.name = in->name, .type = input_type(in)};
        if (in->required || in->standard.type == TUNE_VALUE_NONE)
            continue;
        TRY(tune_rows_cell(&column, &in->standard, &cell, text, sizeof text));
        TRY(cell.absent ? 0 : tune_scan_default(scan, first + i, &cell));
    }
    return 0;
}

struct tune_scan *tune_rows_scan(struct tune_store *s, const struct tune_experiment *e, const enum tune_key *keys, int count)
{
    const char **names = tune_zeroed((size_t)(count + e->input_count), sizeof *names, "the names of columns");
    if (!names)
        return NULL;
    for (int i = 0; i < count; i++)
        names[i] = tune_key_column(keys[i])->name;
    for (int i = 0; i < e->input_count; i++)
        names[count + i] = e->names[i];
    struct tune_scan *scan = tune_scan_open(s, e->name, names, count + e->input_count);
    free(names);
    if (!scan || set_defaults(scan, e, count) == 0)
        return scan;
    tune_scan_free(scan);
    return NULL;
}

bool tune_rows_whole(const struct tune_cell *cell, int64_t *whole)
{
    *whole = cell->whole; /* 0 if the file has floats */
    if ((double)cell->whole == cell->number)
        return true;
    if (cell->number != floor(cell->number) || !(fabs(cell->number) < 0x1p63))
        return false;
    *whole = (int64_t)cell->number;
    return true;
}

enum tune_status tune_rows_status(const struct tune_cell *cell)
{
    for (int s = TUNE_VALID; s <= TUNE_FAILED; s++)
        if (!cell->absent && cell->text && !strcmp(cell->text, tune_status_name((enum tune_status)s)))
            return (enum tune_status)s;
    return TUNE_FAILED;
}

bool tune_rows_of(const struct tune_cell *experiment, const struct tune_experiment *e)
{
    size_t length = strlen(e->actuator);
    return !experiment->absent && !strncmp(experiment->text, e->actuator, length) && experiment->text[length] == '.';
}

struct tune_value tune_rows_value(const struct tune_column *column, const struct tune_domain *own, const struct tune_domain *wanted,
                                  const struct tune_cell *cell)
{
    struct tune_value value;
    int64_t whole;
    if (cell->text)
        return (wanted && find_spelled(wanted, cell->text, &value)) || (own && find_spelled(own, cell->text, &value))
                   ? value
                   : tune_value_text(cell->text);
    if (cell->absent)
        return tune_value_none();
    return column->type == TUNE_CELL_WHOLE && tune_rows_whole(cell, &whole) ? tune_value_int(whole) : tune_value_float(cell->number);
}

struct tune_value tune_rows_read(const struct tune_experiment *e, const struct tune_column *column, const struct tune_cell *cell)
{
    int i = e ? tune_experiment_input(e, column->name) : -1;
    const struct tune_input *in = i < 0 ? NULL : &e->inputs[i];
    bool optional = in && !in->required && in->standard.type == TUNE_VALUE_NONE;
    char *end;
    if (cell->absent || (optional && cell->text && !strcmp(cell->text, "None")))
        return tune_value_none();
    if (in && in->domain.type == TUNE_UNKNOWN && cell->text && strspn(cell->text, "+-.0123456789eE") == strlen(cell->text)) {
        double number = strtod(cell->text, &end);
        if (!*end)
            return tune_value_float(number);
    }
    return tune_rows_value(column, in ? &in->domain : NULL, NULL, cell);
}

static const char *const names[] = {"any-host", "any-build", "any-weights", "any-data"};

/* Join the words of the set bits. */
static const char *concatenate(const char *const *words, int bits, const char *between, char text[64])
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < 4; i++)
        if (bits & (1 << i))
            n += (size_t)snprintf(text + n, 64 - n, "%s%s", n ? between : "", words[i]);
    return text;
}

const char *tune_accept_words(int accept, char text[64])
{
    return concatenate(names, accept, ",", text);
}

const char *tune_accept_things(int accept, char text[64])
{
    static const char *const things[] = {"the host", "the build", "the model", "the data"};
    return concatenate(things, accept, " and ", text);
}

int tune_accept_read(const char *text, int *accept)
{
    *accept = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        int i = 0;
        while (i < 4 && (strlen(names[i]) != length || strncmp(names[i], text, length)))
            i++;
        if (i == 4)
            return tune_error_usage("`accept` takes any-host, any-build, any-weights and any-data, "
                                    "separated by commas, not %.*s",
                                    (int)length, text);
        *accept |= 1 << i;
        text += length + (text[length] == ',');
    }
    return 0;
}

int tune_provenances_add(struct tune_provenance **provenances, int *count, const char *host_class, const char *build, const char *weights,
                         const char *data)
{
    for (int i = *count - 1; i >= 0; i--) {
        const struct tune_provenance *o = &(*provenances)[i];
        if (!strcmp(o->host_class, host_class) && !strcmp(o->build, build) && !strcmp(o->weights, weights) && !strcmp(o->data, data))
            return i;
    }
    if (!tune_array_fit(provenances, (size_t)*count, sizeof **provenances))
        return tune_error_cannot("out of memory for the provenances of a store's rows");
    struct tune_provenance *o = &(*provenances)[*count];
    snprintf(o->host_class, sizeof o->host_class, "%s", host_class);
    snprintf(o->build, sizeof o->build, "%s", build);
    snprintf(o->weights, sizeof o->weights, "%s", weights);
    snprintf(o->data, sizeof o->data, "%s", data);
    return (*count)++;
}
