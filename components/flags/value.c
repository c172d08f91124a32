/* value.c - check a value given as text against its option's type and range, and store it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/progress.h"
#include "flags/state.h"

/* Read "[1,4096]", "(0,1]" or "[0,inf)". No text, or an empty one, means any value. */
struct range {
    double low, high;
    bool low_open, high_open;
};

static struct range read_range(const char *text)
{
    struct range r = {-INFINITY, INFINITY, false, false};
    if (!text || (*text != '[' && *text != '('))
        return r;
    char *end;
    r.low_open = *text == '(';
    r.low = strtod(text + 1, &end);
    if (*end == ',')
        r.high = strtod(end + 1, &end);
    r.high_open = *end == ')';
    return r;
}

static bool in_range(struct range r, double value)
{
    return (r.low_open ? value > r.low : value >= r.low) && (r.high_open ? value < r.high : value <= r.high);
}

/* Steps, a share of the run, or "epoch". */
static int put_interval(const struct tune_option *row, const char *text, const char *where)
{
    char *end = NULL;
    bool digits = *text && !text[strspn(text, "0123456789")], decimal = *text && !text[strspn(text, ".0123456789eE-+")];
    double value = !strcmp(text, "epoch") ? TUNE_EACH_EPOCH : strtod(text, &end);
    bool share = decimal && end && !*end && value > 0 && value < 1;
    if (end && !share && !(digits && value <= INT32_MAX))
        return tune_error_usage("%s: \"%s\" is no interval; expected a whole number of steps, a share of the run below 1 such as "
                                "0.25, or epoch", where, text);
    *(double *)row->at = value;
    return 0;
}

/* "a whole number of rows in [1,4096]" */
static int refuse(const struct tune_option *row, const char *text, const char *where, const char *why)
{
    bool whole = row->type != TUNE_DOUBLE;
    const char *unit = row->unit && *row->unit ? row->unit : NULL, *range = row->range && *row->range ? row->range : NULL;
    return tune_error_usage("%s: \"%s\" %s; expected a %s%s%s%s%s", where, text, why,
                            whole ? "whole number" : "number", unit ? ", unit " : "",
                            unit ? unit : "", range ? ", in " : "", range ? range : "");
}

static int put_whole(const struct tune_option *row, const char *text, const char *where)
{
    size_t sign = *text == '-' || *text == '+';
    size_t digits = strspn(text + sign, "0123456789");
    if (digits == 0 || text[sign + digits])
        return refuse(row, text, where, "is not a whole number");
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    bool narrow = row->type == TUNE_INT;
    if (errno == ERANGE || (narrow && (value < INT32_MIN || value > INT32_MAX)))
        return refuse(row, text, where, narrow ? "does not fit 32 bits" : "does not fit 64 bits");
    if (!in_range(read_range(row->range), (double)value))
        return refuse(row, text, where, "is outside its range");
    if (narrow)
        *(int *)row->at = (int)value;
    else
        *(int64_t *)row->at = value;
    return 0;
}

static int put_double(const struct tune_option *row, const char *text, const char *where)
{
    size_t sign = *text == '-' || *text == '+';
    bool infinite = !strcmp(text + sign, "inf") || !strcmp(text + sign, "infinity");
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    /* refuse leading space, hexadecimal and nan, which strtod accepts but nobody types on
     * purpose */
    if (!infinite && (!*text || *end || text[strspn(text, "+-.0123456789eE")]))
        return refuse(row, text, where, "is not a number");
    if (errno == ERANGE && (value == 0 || !isfinite(value)))
        return refuse(row, text, where, value == 0 ? "is too small to be told from 0" : "is too large");
    if (!in_range(read_range(row->range), value))
        return refuse(row, text, where, "is outside its range");
    *(double *)row->at = value;
    return 0;
}

/* Store the word at that position of the range, in the row's type. */
static void put_word(const struct tune_option *row, const char *text, int position)
{
    int dtype = tune_dtype_from(text);
    if (row->type == TUNE_CHOICE || row->type == TUNE_CHOICES)
        *(const char **)row->at = text;
    else if (row->type == TUNE_ENUM)
        *(int *)row->at = position;
    else
        *(enum tune_dtype *)row->at = !strcmp(text, "nf4")       ? TUNE_NF4
                                      : !strcmp(text, "as-read") ? TUNE_AS_READ
                                      : dtype < 0                ? TUNE_UNKNOWN_DTYPE
                                                                 : (enum tune_dtype)dtype;
}

/* The position of a word in the range; -1: it is not there. */
static int position_of(const struct tune_option *row, const char *word, size_t size)
{
    int position = 0;
    for (const char *at = row->range; at && *at; position++) {
        size_t n = strcspn(at, "|");
        if (n == size && !memcmp(at, word, n))
            return position;
        at += n + (at[n] == '|');
    }
    return -1;
}

static int put_choice(const struct tune_option *row, const char *text, const char *where)
{
    const char *word = text;
    int position;
    for (;; word++) {
        size_t size = row->type == TUNE_CHOICES ? strcspn(word, ",") : strlen(word);
        bool left_out = size == 0 && strchr(text, ','); /* one of a list: the default */
        position = row->type == TUNE_CHOICES && left_out ? 0 : position_of(row, word, size);
        word += size;
        if (position < 0 || !*word)
            break;
    }
    if (position >= 0) {
        put_word(row, text, position);
        return 0;
    }
    return tune_error_usage("%s: \"%s\" is no choice; expected one of %s", where, text,
                            row->range ? row->range : "");
}

int tune_flags_put(const struct tune_option *row, const char *text, const char *where)
{
    switch (row->type) {
    case TUNE_INT:
    case TUNE_INT64:
        return put_whole(row, text, where);
    case TUNE_DOUBLE:
        return put_double(row, text, where);
    case TUNE_INTERVAL:
        return put_interval(row, text, where);
    case TUNE_CHOICE:
    case TUNE_CHOICES:
    case TUNE_ENUM:
    case TUNE_DTYPE:
        return put_choice(row, text, where);
    case TUNE_STRING:
        *(const char **)row->at = text;
        return 0;
    case TUNE_GROUP:
    case TUNE_SERVE:
        break;
    case TUNE_BOOL:
        if (strcmp(text, "true") && strcmp(text, "false"))
            return tune_error_usage("%s: \"%s\" is neither true nor false", where, text);
        *(bool *)row->at = *text == 't';
        return 0;
    }
    return tune_error_set("%s: the option's row has the unknown type %d", where, row->type);
}

int tune_flags_put_elsewhere(struct tune_option *copy, union tune_option_value *value, const struct tune_option *row, const char *text)
{
    *copy = *row;
    copy->at = value;
    return tune_flags_put(copy, text, row->name);
}
