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
