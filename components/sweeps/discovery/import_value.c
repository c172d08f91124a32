/* import_value.c - read a cell of CSV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "sweeps/discovery/import_parts.h"

bool tune_import_number(const char *text, double *number)
{
    char *end;
    size_t sign = *text == '-' || *text == '+';
    bool named = !strcasecmp(text + sign, "nan") || !strcasecmp(text + sign, "inf") || !strcasecmp(text + sign, "infinity");
    if (!*text || (!named && strspn(text, "+-.0123456789eE") != strlen(text)))
        return false;
    *number = strtod(text, &end);
    return !*end;
}

bool tune_import_is_none(const char *text)
{
    return !*text || !strcmp(text, "None");
}

bool tune_import_is_missing(const char *text)
{
    static const char *const words[] = {"NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#N/A",
                                        "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"};
    return !*text || tune_name_find(words, (int)(sizeof words / sizeof *words), text) >= 0;
}

int tune_import_values(const char *text, double *values, int most)
{
    int n = 0;
    char item[64];
    if (tune_import_is_missing(text))
        return 0;
    if (*text != '[')
        return most > 0 && tune_import_number(text, &values[0]) ? 1 : -1;
    for (const char *at = text + 1; *at != ']' || at[1];) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",]");
        while (length > 0 && at[length - 1] == ' ')
            length--;
        if (length >= sizeof item || n == most)
            return -1;
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        if (length > 0 && tune_import_is_missing(item))
            values[n++] = NAN;
        else if (!tune_import_number(item, &values[n++]))
            return -1;
        at += length;
        at += strspn(at, " ");
        if (*at == ',')
            at++;
        else if (*at != ']')
            return -1;
    }
    return n;
}

/* Find the value of the domain that the text means: in the spelling of Python's str() or of ids, or
 * an equal number. */
static bool find_value(const struct tune_domain *d, const char *text, struct tune_value *value)
{
    const struct tune_column column = {.type = TUNE_CELL_TEXT};
    const struct tune_cell cell = {.text = text};
    double number;
    *value = tune_rows_value(&column, d, NULL, &cell);
    if (value->type == TUNE_VALUE_TEXT && tune_import_number(text, &number) && d->type != TUNE_UNKNOWN &&
        d->type != TUNE_OPEN_CATEGORICAL)
        *value = tune_value_float(number);
    if (tune_domain_has(d, value))
        return true;
    if (!strcmp(text, "True") || !strcmp(text, "False")) {
        *value = tune_value_bool(*text == 'T');
        return tune_domain_has(d, value);
    }
    if (!tune_import_is_none(text))
        return false;
    *value = tune_value_none();
    return tune_domain_has(d, value);
}

bool tune_import_input(const struct tune_input *in, const struct tune_column *column, const char *spelled, struct tune_cell *cell,
                       char *text, size_t size)
{
    struct tune_value value;
    bool missing = column->type == TUNE_CELL_NUMBER && tune_import_is_missing(spelled);
    if (missing && !in->required && in->standard.type == TUNE_VALUE_NONE) {
        *cell = tune_cell_number(NAN);
        return true;
    }
    if (find_value(&in->domain, spelled, &value) && tune_rows_cell(column, &value, cell, text, size) == 0)
        return true;
    tune_error_clear();
    return false;
}
