/* select.c - evaluate expressions over the columns of a row: select rows, and compute new
 * columns. */
#include "sweeps/discovery/select.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"

struct tune_select {
    int count, measured, derived_count;
    const char *where_text;
    struct tune_expression *where;
    struct tune_expression **derived; /* [derived_count] NULL: not compiled */
    int *name_index;                  /* [derived_count] index of its name in names */
    const char **names;               /* [count + derived_count] */
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory for expressions");
}

/* ---- "name = expression; ..." ---- */

/* The length up to the next semicolon outside texts and back-quoted names. */
static size_t length_of(const char *text)
{
    char quote = 0;
    size_t n = 0;
    for (; text[n] && (quote || text[n] != ';'); n++) {
        if (quote && quote != '`' && text[n] == '\\' && text[n + 1])
            n++;
        else if (quote)
            quote = text[n] == quote ? 0 : quote;
        else if (strchr("'\"`", text[n]))
            quote = text[n];
    }
    return n;
}

static char *trimmed(const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)*text))
        text++, length--;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return strndup(text, length);
}

static int add_derived(struct tune_derived **derived, int *count, const char *text, size_t length)
{
    size_t name = strspn(text, " \t\n"), end = name;
    while (isalnum((unsigned char)text[end]) || text[end] == '_')
        end++;
    size_t equals = end + strspn(text + end, " \t\n");
    if (end == name || isdigit((unsigned char)text[name]) || text[equals] != '=' || text[equals + 1] == '=' || equals >= length)
        return tune_error_usage("`derive` \"%.*s\": expected NAME = EXPRESSION, with letters, digits and _ in the name",
                                (int)length, text);
    if (!tune_array_fit(derived, (size_t)*count, sizeof **derived))
        return no_memory();
    struct tune_derived *d = &(*derived)[(*count)++];
    *d = (struct tune_derived){trimmed(text + name, end - name), trimmed(text + equals + 1, length - equals - 1)};
    for (int i = 0; d->name && i < *count - 1; i++)
        if (!strcmp((*derived)[i].name, d->name))
            return tune_error_usage("`derive` defines %s twice; give each new column its own name",
                                    d->name);
    return d->name && d->text ? 0 : no_memory();
}

int tune_derived_read(const char *text, struct tune_derived **derived, int *count)
{
    *derived = NULL;
    *count = 0;
    while (text && *text) {
        size_t length = length_of(text);
        if (strspn(text, " \t\n") < length && add_derived(derived, count, text, length) < 0) {
            tune_derived_free(*derived, *count);
            *derived = NULL;
            *count = 0;
            return -1;
        }
        text += length + (text[length] == ';');
    }
    return 0;
}

void tune_derived_free(struct tune_derived *derived, int count)
{
    for (int i = 0; i < count; i++) {
        free(derived[i].name);
        free(derived[i].text);
    }
    free(derived);
}

/* ---- rows ---- */

static int compile(struct tune_select *s, const struct tune_derived *derived)
{
    int names = s->count;
    char where[320];
    for (int d = 0; d < s->derived_count; d++) {
        if (tune_name_find(s->names, s->count, derived[d].name) >= 0)
            return tune_error_usage("`derive` %s: a column %s exists already; choose another name",
                                    derived[d].name,
                                    derived[d].name);
        snprintf(where, sizeof where, "`derive` %s", derived[d].name);
        s->derived[d] = tune_expression_query(derived[d].text, s->names, names, where);
        s->name_index[d] = names;
        if (s->derived[d])
            s->names[names++] = derived[d].name;
        else if (tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
    }
    if (s->where_text && !(s->where = tune_expression_query(s->where_text, s->names, names, "`where`")))
        return tune_error_kind() == TUNE_ERROR_CANNOT ? -1 : 0;
    return 0;
}

struct tune_select *tune_select_new(const char *const *names, int count, int measured, const char *where,
                                    const struct tune_derived *derived, int derived_count)
{
    struct tune_select *s = calloc(1, sizeof *s);
    if (s) {
        *s = (struct tune_select){.count = count, .measured = measured, .derived_count = derived_count, .where_text = where};
        s->derived = calloc((size_t)derived_count + 1, sizeof *s->derived);
        s->name_index = calloc((size_t)derived_count + 1, sizeof *s->name_index);
        s->names = calloc((size_t)(count + derived_count) + 1, sizeof *s->names);
    }
    if (!s || !s->derived || !s->name_index || !s->names) {
        tune_select_free(s);
        no_memory();
        return NULL;
    }
    memcpy(s->names, names, (size_t)count * sizeof *names);
    if (compile(s, derived) == 0)
        return s;
    tune_select_free(s);
    return NULL;
}

void tune_select_free(struct tune_select *s)
{
    if (!s)
        return;
    for (int d = 0; s->derived && d < s->derived_count; d++)
        tune_expression_free(s->derived[d]);
    tune_expression_free(s->where);
    free(s->derived);
    free(s->name_index);
    free(s->names);
    free(s);
}

bool tune_select_compiled(const struct tune_select *s, int d)
{
    return d >= 0 ? s->derived[d] != NULL : !s->where_text || s->where;
}

bool tune_select_uses(const struct tune_select *s, int name)
{
    bool used = s->where && tune_expression_uses(s->where, name);
    for (int d = 0; d < s->derived_count && !used; d++)
        used = s->derived[d] && tune_expression_uses(s->derived[d], name);
    return used;
}

bool tune_select_by_inputs(const struct tune_select *s)
{
    for (int i = s->measured; s->where && i < s->count + s->derived_count; i++)
        if (tune_expression_uses(s->where, i))
            return false;
    return true;
}

/* Compute the new columns that the expression uses. Returns whether a measured value is absent. */
static int prepare(const struct tune_select *s, const struct tune_expression *e, struct tune_value *values)
{
    bool lacks = false;
    for (int d = 0; d < s->derived_count; d++)
        if (s->derived[d] && tune_expression_uses(e, s->name_index[d])) {
            TRY(tune_select_value(s, d, values, &values[s->name_index[d]]));
            lacks = lacks || values[s->name_index[d]].type == TUNE_VALUE_NONE;
        }
    for (int i = s->measured; i < s->count && !lacks; i++)
        lacks = tune_expression_uses(e, i) && values[i].type == TUNE_VALUE_NONE;
    return lacks;
}

int tune_select_value(const struct tune_select *s, int d, struct tune_value *values, struct tune_value *value)
{
    *value = tune_value_none();
    int lacks = s->derived[d] ? prepare(s, s->derived[d], values) : 1;
    TRY(lacks);
    return lacks ? 0 : tune_expression_value(s->derived[d], values, value);
}

int tune_select_row(const struct tune_select *s, struct tune_value *values)
{
    if (!s->where)
        return !s->where_text;
    int lacks = prepare(s, s->where, values);
    TRY(lacks);
    int wanted = tune_expression_true(s->where, values);
    if (wanted >= 0 || !lacks)
        return wanted;
    tune_error_clear();
    return 0;
}
