/* thrift.c - values of Thrift's compact protocol. */
#include "files/thrift.h"

#include <stddef.h>

enum { TRUE_FIELD = 1, FALSE_FIELD, BYTE, I16, I32, I64, DOUBLE, SET = 10, MAP, UUID = 13 };
enum { DEEPEST = 32 }; /* structs and lists within each other that are skipped */

static void set_bad(struct tune_thrift *t)
{
    t->bad = true;
    t->at = t->end;
}

static uint8_t byte(struct tune_thrift *t)
{
    if (t->at < t->end)
        return *t->at++;
    set_bad(t);
    return 0;
}

static uint64_t varint(struct tune_thrift *t)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte(t);
        value |= (uint64_t)(b & 127) << shift;
        if (!(b & 128))
            return value;
    }
    set_bad(t);
    return 0;
}

static int64_t zigzag(struct tune_thrift *t)
{
    uint64_t value = varint(t);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void skip_bytes(struct tune_thrift *t, uint64_t size)
{
    if (size > (uint64_t)(t->end - t->at))
        set_bad(t);
    else
        t->at += size;
}

void tune_thrift_start(struct tune_thrift *t, const void *data, size_t size)
{
    *t = (struct tune_thrift){.at = data, .end = (const uint8_t *)data + size, .type = TUNE_THRIFT_STRUCT};
}

bool tune_thrift_field(struct tune_thrift *t, int *id)
{
    uint8_t head = byte(t);
    t->type = head & 15;
    if (t->bad || t->type == 0)
        return false;
    int64_t next = head >> 4 ? *id + (head >> 4) : zigzag(t);
    if (next <= 0 || next > INT16_MAX)
        set_bad(t);
    *id = (int)next;
    return !t->bad;
}

void tune_thrift_struct(struct tune_thrift *t)
{
    if (t->type != TUNE_THRIFT_STRUCT)
        set_bad(t);
}

int64_t tune_thrift_int(struct tune_thrift *t)
{
    if (t->type == BYTE)
        return (int8_t)byte(t);
    if (t->type >= I16 && t->type <= I64)
        return zigzag(t);
    set_bad(t);
    return 0;
}

bool tune_thrift_bool(struct tune_thrift *t)
{
    if (t->type != TRUE_FIELD && t->type != FALSE_FIELD)
        set_bad(t);
    return t->type == TRUE_FIELD;
}

const char *tune_thrift_bytes(struct tune_thrift *t, size_t *size)
{
    uint64_t n = t->type == TUNE_THRIFT_BINARY ? varint(t) : UINT64_MAX;
    const char *data = (const char *)t->at;
    skip_bytes(t, n);
    *size = t->bad ? 0 : (size_t)n;
    return t->bad ? "" : data;
}

/* Head of a list or set: number and type of its elements. Each takes a byte at least. */
static uint64_t list_head(struct tune_thrift *t, int *type)
{
    uint8_t head = byte(t);
    uint64_t count = head >> 4 < 15 ? (uint64_t)(head >> 4) : varint(t);
    *type = head & 15;
    if (count > (uint64_t)(t->end - t->at))
        set_bad(t);
    return t->bad ? 0 : count;
}

int64_t tune_thrift_list(struct tune_thrift *t, int type)
{
    int found = 0;
    uint64_t count = t->type == TUNE_THRIFT_LIST ? list_head(t, &found) : UINT64_MAX;
    if (count == UINT64_MAX || (count > 0 && found != type))
        set_bad(t);
    t->type = type;
    return t->bad ? 0 : (int64_t)count;
}

static void skip(struct tune_thrift *t, int type, bool element, int depth)
{
    size_t size;
    uint64_t count;
    int inner[2];
    if (depth > DEEPEST)
        set_bad(t);
    if (t->bad)
        return;
    switch (type) {
    case TRUE_FIELD: case FALSE_FIELD: /* a field's value is in its head; an element has a byte */
        skip_bytes(t, element);
        break;
    case BYTE:
        skip_bytes(t, 1);
        break;
    case I16: case I32: case I64:
        varint(t);
        break;
    case DOUBLE: case UUID:
        skip_bytes(t, type == UUID ? 16 : 8);
        break;
    case TUNE_THRIFT_BINARY:
        t->type = type;
        tune_thrift_bytes(t, &size);
        break;
    case TUNE_THRIFT_LIST: case SET:
        for (count = list_head(t, &inner[0]); count > 0 && !t->bad; count--)
            skip(t, inner[0], true, depth + 1);
        break;
    case MAP:
        count = varint(t);
        inner[0] = inner[1] = count > 0 ? byte(t) : 0;
        for (; count > 0 && !t->bad; count--) {
            skip(t, inner[0] >> 4, true, depth + 1);
            skip(t, inner[1] & 15, true, depth + 1);
        }
        break;
    case TUNE_THRIFT_STRUCT:
        for (int id = 0; tune_thrift_field(t, &id);)
            skip(t, t->type, false, depth + 1);
        break;
    default:
        set_bad(t);
    }
}

void tune_thrift_skip(struct tune_thrift *t)
{
    skip(t, t->type, false, 0);
}
