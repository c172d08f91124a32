/* parquet_json.c - rows of JSON from the entries of all columns.
 *
 * A row's columns have one entry each, or several where a list is in the way. An entry's repetition
 * level says which list it goes on; 0 begins a row. Its definition level says how far down the path
 * to the value is there. The columns of one list must agree; if they do not, the file is damaged. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "core/decimal.h"
#include "core/error.h"
#include "core/try.h"
#include "files/parquet_parts.h"

__extension__ typedef __int128 wide;

/* ---- the line ---- */

static int put_bytes(struct tune_parquet *p, const void *text, size_t size)
{
    if (size > TUNE_PARQUET_ROW_LIMIT - p->size)
        return tune_error_set("%s: row %lld is longer than %zu MiB as JSON", p->path, (long long)p->row + 1, TUNE_PARQUET_ROW_LIMIT >> 20);
    TRY(tune_array_reserve(&p->line, &p->capacity, p->size + size + 1, 1, "a row of a Parquet file"));
    if (size > 0)
        memcpy(p->line + p->size, text, size);
    p->size += size;
    return 0;
}

static int put_word(struct tune_parquet *p, const char *word)
{
    return put_bytes(p, word, strlen(word));
}

static int put_text(struct tune_parquet *p, const uint8_t *text, size_t size)
{
    TRY(put_word(p, "\""));
    for (size_t i = 0; i < size;) {
        size_t from = i;
        char escaped[8];
        while (i < size && text[i] >= 0x20 && text[i] != '"' && text[i] != '\\')
            i++;
        TRY(put_bytes(p, text + from, i - from));
        if (i == size)
            break;
        uint8_t c = text[i++];
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            snprintf(escaped, sizeof escaped, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        TRY(put_word(p, escaped));
    }
    return put_word(p, "\"");
}

/* ---- numbers and times ---- */

static int64_t little(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return bytes == 4 ? (int32_t)value : (int64_t)value;
}

static int put_double(struct tune_parquet *p, double value)
{
    char text[TUNE_DECIMAL_SIZE];
    if (!isfinite(value))
        return put_word(p, "null");
    tune_decimal_json(text, value);
    return put_word(p, text);
}

static double half(const uint8_t *data)
{
    int bits = data[0] | data[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* A whole number with a point before its last `scale` digits. */
static int put_decimal(struct tune_parquet *p, wide value, int scale)
{
    char text[64], *at = text + sizeof text - 1;
    bool negative = value < 0;
    *at = 0;
    for (int digits = 0; value != 0 || digits <= scale; digits++, value /= 10) {
        if (digits == scale && scale > 0)
            *--at = '.';
        int digit = (int)(value % 10);
        *--at = (char)('0' + (digit < 0 ? -digit : digit));
    }
    if (negative)
        *--at = '-';
    return put_word(p, at);
}

/* The day `days` after 1970-01-01 in the Gregorian calendar. The year begins in March, so that the
 * leap day is its last. */
static int put_day(struct tune_parquet *p, int64_t days)
{
    char text[72];
    int64_t since = days + 719468; /* days from 0000-03-01 */
    int64_t era = (since >= 0 ? since : since - 146096) / 146097, day = since - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    int64_t of_month = of_year - (153 * month + 2) / 5 + 1;
    year += era * 400 + (month >= 10);
    month += month < 10 ? 3 : -9;
    snprintf(text, sizeof text, "%s%04" PRId64 "-%02" PRId64 "-%02" PRId64, year < 0 ? "-" : "", year < 0 ? -year : year, month, of_month);
    return put_word(p, text);
}

/* A time of day, in parts of a second; its fraction without trailing zeros. */
static int put_clock(struct tune_parquet *p, int64_t parts, int digits)
{
    static const int64_t of_second[] = {1, 1000, 1000000, 1000000000};
    int seconds = (int)(parts / of_second[digits / 3]), rest = (int)(parts % of_second[digits / 3]);
    char text[64];
    int size = snprintf(text, sizeof text, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if (rest > 0) {
        size += snprintf(text + size, sizeof text - (size_t)size, ".%0*d", digits, rest);
        while (text[size - 1] == '0')
            text[--size] = 0;
    }
    return put_word(p, text);
}

static int put_time(struct tune_parquet *p, const struct tune_parquet_column *c, int64_t parts)
{
    int64_t day = 86400;
    for (int k = 0; k < c->node->digits; k++)
        day *= 10;
    if (parts < 0 || parts >= day)
        return tune_parquet_damaged(c, "a time of day is not within a day");
    TRY(put_word(p, "\""));
    TRY(put_clock(p, parts, c->node->digits));
    return put_word(p, "\"");
}

static int put_moment(struct tune_parquet *p, const struct tune_parquet_column *c, int64_t days, int64_t parts)
{
    TRY(put_word(p, "\""));
    TRY(put_day(p, days));
    TRY(put_word(p, "T"));
    TRY(put_clock(p, parts, c->node->digits));
    return put_word(p, c->node->utc ? "Z\"" : "\"");
}

static int put_timestamp(struct tune_parquet *p, const struct tune_parquet_column *c, int64_t parts)
{
    int64_t day = 86400;
    for (int k = 0; k < c->node->digits; k++)
        day *= 10;
    int64_t rest = parts % day;
    rest += rest < 0 ? day : 0;
    return put_moment(p, c, parts / day - (parts % day < 0), rest);
}

/* Nanoseconds of a day, and the day's Julian number. */
static int put_int96(struct tune_parquet *p, const struct tune_parquet_column *c, const uint8_t *data)
{
    int64_t parts = little(data, 8), day = little(data + 8, 4);
    if (parts < 0 || parts >= 86400 * (int64_t)1000000000)
        return tune_parquet_damaged(c, "a time of day is not within a day");
    return put_moment(p, c, day - 2440588, parts);
}

static int put_big_endian(struct tune_parquet *p, const struct tune_parquet_column *c, struct tune_parquet_value v)
{
    if (v.size < 1 || v.size > 16)
        return tune_parquet_damaged(c, "a decimal has no bytes, or more than 16");
    __extension__ unsigned __int128 value = v.data[0] & 128 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < v.size; i++)
        value = value << 8 | v.data[i];
    return put_decimal(p, (wide)value, c->node->scale);
}

static int put_uuid(struct tune_parquet *p, const uint8_t *data)
{
    char text[40], *to = text;
    for (int i = 0; i < 16; i++)
        to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", data[i]);
    return put_text(p, (const uint8_t *)text, 36);
}

static int put_integer(struct tune_parquet *p, int64_t value, bool is_signed, int bytes)
{
    char text[24];
    if (is_signed)
        snprintf(text, sizeof text, "%" PRId64, value);
    else
        snprintf(text, sizeof text, "%" PRIu64, bytes == 4 ? (uint64_t)(uint32_t)value : (uint64_t)value);
    return put_word(p, text);
}

static int put_value(struct tune_parquet *p, struct tune_parquet_column *c)
{
    const struct tune_parquet_node *n = c->node;
    struct tune_parquet_value v;
    float single;
    double number;
    TRY(tune_parquet_take(c, &v));
    int64_t whole = n->type == INT32 ? little(v.data, 4) : n->type == INT64 ? little(v.data, 8) : 0;
    switch (n->form) {
    case AS_BOOLEAN: return put_word(p, v.size ? "true" : "false");
    case AS_INTEGER: return put_integer(p, whole, true, (int)v.size);
    case AS_UNSIGNED: return put_integer(p, whole, false, (int)v.size);
    case AS_HALF: return put_double(p, half(v.data));
    case AS_FLOAT: memcpy(&single, v.data, sizeof single); return put_double(p, single);
    case AS_DOUBLE: memcpy(&number, v.data, sizeof number); return put_double(p, number);
    case AS_DECIMAL: return n->type == INT32 || n->type == INT64 ? put_decimal(p, whole, n->scale) : put_big_endian(p, c, v);
    case AS_UUID: return put_uuid(p, v.data);
    case AS_DATE: TRY(put_word(p, "\"")); TRY(put_day(p, whole)); return put_word(p, "\"");
    case AS_TIME: return put_time(p, c, whole);
    case AS_TIMESTAMP: return put_timestamp(p, c, whole);
    case AS_INT96: return put_int96(p, c, v.data);
    case AS_BYTES:
        if (!tune_utf8_valid((const char *)v.data, v.size, NULL))
            return tune_parquet_unread(p->path, c->name, "holds bytes that are no UTF-8 text");
        return put_text(p, v.data, v.size);
    default: return put_text(p, v.data, v.size);
    }
}

/* ---- lists and structs ---- */

static struct tune_parquet_column *first_column(struct tune_parquet *p, const struct tune_parquet_node *n)
{
    return &p->columns[n->leaf];
}

/* 1: what is `definition` levels deep is there. 0: it is not. -1 with an error: the columns below n
 * do not agree. */
static int is_there(struct tune_parquet *p, const struct tune_parquet_node *n, int definition)
{
    bool there = first_column(p, n)->definition >= definition;
    for (int k = 0; k < n->leaves; k++) {
        const struct tune_parquet_column *c = &p->columns[n->leaf + k];
        if (!c->have || (c->definition >= definition) != there)
            return tune_parquet_damaged(c, "its levels do not fit those of the column before it");
    }
    return there;
}

/* 1: the list of this repetition level goes on. 0: it ends. -1 with an error: see is_there. */
static int goes_on(struct tune_parquet *p, const struct tune_parquet_node *n)
{
    const struct tune_parquet_column *first = first_column(p, n);
    bool on = first->have && first->repetition == n->max_repetition;
    for (int k = 0; k < n->leaves; k++) {
        const struct tune_parquet_column *c = &p->columns[n->leaf + k];
        int repetition = c->have ? c->repetition : 0;
        if (repetition > n->max_repetition || (repetition == n->max_repetition) != on)
            return tune_parquet_damaged(c, "its lists are not as long as those of the column before it");
    }
    return on;
}

/* One entry in each column below n stands for what is not there. */
static int pass_over(struct tune_parquet *p, const struct tune_parquet_node *n, const char *word)
{
    for (int k = 0; k < n->leaves; k++)
        TRY(tune_parquet_step(&p->columns[n->leaf + k]));
    return put_word(p, word);
}

static int put_inner(struct tune_parquet *p, const struct tune_parquet_node *n);

/* The elements of a repeated node, each by `element`. */
static int put_list(struct tune_parquet *p, const struct tune_parquet_node *n, const struct tune_parquet_node *element, const char *brackets,
                    int (*put_element)(struct tune_parquet *p, const struct tune_parquet_node *n))
{
    const char open[] = {brackets[0], 0}, close[] = {brackets[1], 0};
    int there, more;
    TRY(there = is_there(p, n, n->max_definition));
    if (!there)
        return pass_over(p, n, brackets);
    TRY(put_word(p, open));
    do {
        TRY(put_element(p, element));
        TRY(more = goes_on(p, n));
        if (more)
            TRY(put_word(p, ","));
    } while (more);
    return put_word(p, close);
}

static int put_node(struct tune_parquet *p, const struct tune_parquet_node *n)
{
    return n->repetition == REPEATED ? put_list(p, n, n, "[]", put_inner) : put_inner(p, n);
}

static int put_pair(struct tune_parquet *p, const struct tune_parquet_node *key)
{
    struct tune_parquet_column *c = first_column(p, key);
    if (c->definition < key->max_definition)
        return tune_parquet_damaged(c, "a map has a key that is null");
    TRY(put_inner(p, key));
    TRY(put_word(p, ":"));
    return put_inner(p, &p->nodes[key->end]);
}

/* The element of a list: the field of the repeated group, or that group itself, as old writers have
 * it. Source: LogicalTypes.md, "Backward-compatibility rules". */
static const struct tune_parquet_node *element_of(const struct tune_parquet_node *list)
{
    const struct tune_parquet_node *repeated = list + 1;
    size_t size = strlen(list->name);
    bool tuple = !strncmp(repeated->name, list->name, size) && !strcmp(repeated->name + size, "_tuple");
    if (repeated->type != GROUP || repeated->children != 1 || repeated[1].repetition == REPEATED || !strcmp(repeated->name, "array") || tuple)
        return repeated;
    return repeated + 1;
}

/* One value of n: what is left of a repeated node is an element of its list. */
static int put_inner(struct tune_parquet *p, const struct tune_parquet_node *n)
{
    int there;
    TRY(there = is_there(p, n, n->max_definition));
    if (!there)
        return pass_over(p, n, "null");
    if (n->type != GROUP) {
        TRY(put_value(p, first_column(p, n)));
        return tune_parquet_step(first_column(p, n));
    }
    if (n->form == AS_LIST)
        return put_list(p, n + 1, element_of(n), "[]", put_inner);
    if (n->form == AS_MAP)
        return put_list(p, n + 1, n + 2, "{}", put_pair);
    TRY(put_word(p, "{"));
    const struct tune_parquet_node *field = n + 1;
    for (int k = 0; k < n->children; k++, field = &p->nodes[field->end]) {
        TRY(put_word(p, k ? "," : ""));
        TRY(put_word(p, field->key));
        TRY(put_node(p, field));
    }
    return put_word(p, "}");
}

/* ---- rows ---- */

/* Go to the next row group that has rows. 1; 0: there is none. */
static int next_group(struct tune_parquet *p)
{
    do {
        if (p->group >= 0)
            for (int k = 0; k < p->column_count; k++)
                if (p->columns[k].have)
                    return tune_parquet_damaged(&p->columns[k], "it has more values than its row group has rows");
        if (++p->group == p->group_count)
            return 0;
        const struct tune_parquet_chunk *chunks = p->chunks + (size_t)p->group * (size_t)p->column_count;
        for (int k = 0; k < p->column_count; k++) {
            p->columns[k].end = p->end;
            TRY(tune_parquet_begin(&p->columns[k], &chunks[k]));
        }
    } while (p->group_rows[p->group] == 0);
    p->group_row = 0;
    return 1;
}

static int next_row(struct tune_parquet *p)
{
    int more;
    if (p->group < 0 || p->group_row == p->group_rows[p->group]) {
        TRY(more = p->group < p->group_count ? next_group(p) : 0);
        if (!more)
            return 0;
    }
    for (int k = 0; k < p->column_count; k++) {
        const struct tune_parquet_column *c = &p->columns[k];
        if (!c->have || c->repetition != 0)
            return tune_parquet_damaged(c, "it has fewer values than its row group has rows, or other rows than the columns before it");
    }
    p->size = 0;
    TRY(put_inner(p, &p->nodes[0]));
    p->row++;
    p->group_row++;
    return 1;
}

int tune_parquet_next(struct tune_parquet *p, struct tune_text *line)
{
    int more = p->broken ? tune_error_set("%s: could not be read before this row", p->path) : next_row(p);
    p->broken = more < 0;
    if (more != 1)
        return more;
    p->line[p->size] = 0;
    *line = (struct tune_text){p->line, p->size};
    return 1;
}
