/* parquet_writer.h - Parquet files for tests, byte by byte, so that each part of one can be wrong.
 *
 *     struct parquet f = {0};                        a file of two rows
 *     parquet_begin(&f);
 *     parquet_chunk(&f, INT32_TYPE, 2);              its first column: two entries
 *     parquet_page(&f, PAGE_1, 0, 2, "\1\0\0\0\2\0\0\0", 8);
 *     const struct parquet_node nodes[] = {{"n", INT32_TYPE}};
 *     parquet_end(&f, nodes, 1, 1, 2);               schema: one node, one field; two rows
 *
 * Types, encodings and codecs are the numbers of parquet.thrift. */
#ifndef TUNE_PARQUET_WRITER_H
#define TUNE_PARQUET_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BOOL_TYPE, INT32_TYPE, INT64_TYPE, INT96_TYPE, FLOAT_TYPE, DOUBLE_TYPE, TEXT_TYPE, FIXED_TYPE, GROUP_TYPE };
enum { PAGE_1, PAGE_INDEX, PAGE_DICTIONARY, PAGE_2 };
enum { C_TRUE = 1, C_FALSE, C_BYTE, C_I32 = 5, C_I64, C_BINARY = 8, C_LIST, C_STRUCT = 12 };

/* A field of a group, or a group whose children follow. Converted and logical types count from 1 here: 0 is none. */
struct parquet_node {
    const char *name;
    int type, repetition, children, converted, logical;
    int scale, precision, size, unit;
    bool utc;
    int bits; /* of a logical INTEGER; negative: without sign */
};

struct parquet_chunk {
    int type, codec;
    int64_t values, offset, dictionary;
};

struct parquet {
    uint8_t *data;
    size_t size, room;
    int last[16], depth; /* of the struct being written: its last field */
    struct parquet_chunk chunks[16];
    int count;
    /* what a test wants otherwise */
    int codec;           /* of the chunks that follow */
    int64_t more;        /* added to the next page's uncompressed size */
    int64_t more_packed; /* added to its compressed size */
    int definition_encoding;
    int64_t crc;         /* of the next page; 0: none */
    int level_bytes[2];  /* of the next page of version 2: repetition, definition */
    bool plain_2;        /* its values are not compressed */
    bool encrypted, elsewhere, twice;
    int64_t groups;      /* row groups; 0: one, with all chunks */
    int64_t more_rows;   /* added to the footer's number of rows */
};

static inline void parquet_put(struct parquet *f, const void *data, size_t size)
{
    if (f->size + size > f->room) {
        f->room = 2 * (f->size + size) + 256;
        f->data = realloc(f->data, f->room);
        if (!f->data)
            abort();
    }
    if (size > 0)
        memcpy(f->data + f->size, data, size);
    f->size += size;
}

static inline void parquet_byte(struct parquet *f, int byte)
{
    uint8_t b = (uint8_t)byte;
    parquet_put(f, &b, 1);
}

static inline void parquet_varint(struct parquet *f, uint64_t value)
{
    for (; value > 127; value >>= 7)
        parquet_byte(f, (int)(value & 127) | 128);
    parquet_byte(f, (int)value);
}

static inline void parquet_field(struct parquet *f, int id, int type)
{
    int *last = &f->last[f->depth];
    if (id > *last && id - *last < 16) {
        parquet_byte(f, (id - *last) << 4 | type);
    } else {
        parquet_byte(f, type);
        parquet_varint(f, (uint64_t)id << 1);
    }
    *last = id;
}

static inline void parquet_number(struct parquet *f, int64_t value)
{
    parquet_varint(f, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void parquet_int(struct parquet *f, int id, int type, int64_t value)
{
    parquet_field(f, id, type);
    parquet_number(f, value);
}

static inline void parquet_text(struct parquet *f, const char *text)
{
    parquet_varint(f, strlen(text));
    parquet_put(f, text, strlen(text));
}

static inline void parquet_open_struct(struct parquet *f)
{
    f->last[++f->depth] = 0;
}

static inline void parquet_close_struct(struct parquet *f)
{
    parquet_byte(f, 0);
    f->depth--;
}

static inline void parquet_list(struct parquet *f, int id, int type, size_t count)
{
    parquet_field(f, id, C_LIST);
    if (count < 15)
        parquet_byte(f, (int)count << 4 | type);
    else
        parquet_byte(f, 15 << 4 | type), parquet_varint(f, count);
}

static inline void parquet_begin(struct parquet *f)
{
    uint8_t *data = f->data;
    size_t room = f->room;
    *f = (struct parquet){.data = data, .room = room, .definition_encoding = 3};
    parquet_put(f, "PAR1", 4);
}

/* A column chunk begins here. */
static inline void parquet_chunk(struct parquet *f, int type, int64_t values)
{
    f->chunks[f->count++] = (struct parquet_chunk){type, f->codec, values, 0, 0};
}

static inline void parquet_page(struct parquet *f, int kind, int encoding, int64_t count, const void *body, size_t size)
{
    struct parquet_chunk *c = &f->chunks[f->count - 1];
    int64_t at = (int64_t)f->size;
    if (kind == PAGE_DICTIONARY)
        c->dictionary = at;
    else if (c->offset == 0)
        c->offset = at;
    parquet_open_struct(f);
    parquet_int(f, 1, C_I32, kind);
    parquet_int(f, 2, C_I32, (int64_t)size + f->more);
    parquet_int(f, 3, C_I32, (int64_t)size + f->more_packed);
    if (f->crc)
        parquet_int(f, 4, C_I32, (int32_t)(uint32_t)f->crc);
    parquet_field(f, kind == PAGE_1 ? 5 : kind == PAGE_INDEX ? 6 : kind == PAGE_DICTIONARY ? 7 : 8, C_STRUCT);
    parquet_open_struct(f);
    if (kind != PAGE_INDEX)
        parquet_int(f, 1, C_I32, count);
    if (kind == PAGE_1) {
        parquet_int(f, 2, C_I32, encoding);
        parquet_int(f, 3, C_I32, f->definition_encoding);
        parquet_int(f, 4, C_I32, 3);
    } else if (kind == PAGE_DICTIONARY) {
        parquet_int(f, 2, C_I32, encoding);
        parquet_field(f, 3, C_TRUE);
    } else if (kind == PAGE_2) {
        parquet_int(f, 2, C_I32, 0);
        parquet_int(f, 3, C_I32, count);
        parquet_int(f, 4, C_I32, encoding);
        parquet_int(f, 5, C_I32, f->level_bytes[1]);
        parquet_int(f, 6, C_I32, f->level_bytes[0]);
        if (f->plain_2)
            parquet_field(f, 7, C_FALSE);
    }
    parquet_close_struct(f);
    parquet_close_struct(f);
    parquet_put(f, body, size);
    f->more = f->more_packed = f->crc = 0;
}

static inline void parquet_logical(struct parquet *f, const struct parquet_node *n)
{
    parquet_field(f, 10, C_STRUCT);
    parquet_open_struct(f);
    parquet_field(f, n->logical, C_STRUCT);
    parquet_open_struct(f);
    if (n->logical == 5) {
        parquet_int(f, 1, C_I32, n->scale);
        parquet_int(f, 2, C_I32, n->precision);
    } else if (n->logical == 7 || n->logical == 8) {
        parquet_field(f, 1, n->utc ? C_TRUE : C_FALSE);
        parquet_field(f, 2, C_STRUCT);
        parquet_open_struct(f);
        parquet_field(f, n->unit, C_STRUCT);
        parquet_byte(f, 0);
        parquet_close_struct(f);
    } else if (n->logical == 10) {
        parquet_field(f, 1, C_BYTE);
        parquet_byte(f, n->bits < 0 ? -n->bits : n->bits);
        parquet_field(f, 2, n->bits > 0 ? C_TRUE : C_FALSE);
    }
    parquet_close_struct(f);
    parquet_close_struct(f);
}

static inline void parquet_element(struct parquet *f, const struct parquet_node *n, bool root)
{
    parquet_open_struct(f);
    if (n->type != GROUP_TYPE)
        parquet_int(f, 1, C_I32, n->type);
    if (n->size)
        parquet_int(f, 2, C_I32, n->size);
    if (!root)
        parquet_int(f, 3, C_I32, n->repetition);
    parquet_field(f, 4, C_BINARY);
    parquet_text(f, n->name);
    if (n->type == GROUP_TYPE)
        parquet_int(f, 5, C_I32, n->children);
    if (n->converted)
        parquet_int(f, 6, C_I32, n->converted - 1);
    if (n->converted == 6 && !n->logical) {
        parquet_int(f, 7, C_I32, n->scale);
        parquet_int(f, 8, C_I32, n->precision);
    }
    if (n->logical)
        parquet_logical(f, n);
    parquet_close_struct(f);
}

static inline void parquet_group(struct parquet *f, int first, int count, int64_t rows)
{
    parquet_open_struct(f);
    parquet_list(f, 1, C_STRUCT, (size_t)count);
    for (int i = first; i < first + count; i++) {
        const struct parquet_chunk *c = &f->chunks[i];
        parquet_open_struct(f);
        if (f->elsewhere)
            parquet_field(f, 1, C_BINARY), parquet_text(f, "other.parquet");
        parquet_int(f, 2, C_I64, 0);
        parquet_field(f, 3, C_STRUCT);
        parquet_open_struct(f);
        parquet_int(f, 1, C_I32, c->type);
        parquet_list(f, 2, C_I32, 1);
        parquet_number(f, 0);
        parquet_list(f, 3, C_BINARY, 1);
        parquet_text(f, "x");
        parquet_int(f, 4, C_I32, c->codec);
        parquet_int(f, 5, C_I64, c->values);
        parquet_int(f, 6, C_I64, 0);
        parquet_int(f, 7, C_I64, 0);
        parquet_int(f, 9, C_I64, c->offset);
        if (c->dictionary)
            parquet_int(f, 11, C_I64, c->dictionary);
        parquet_close_struct(f);
        if (f->encrypted) {
            parquet_field(f, 8, C_STRUCT);
            parquet_byte(f, 0);
        }
        parquet_close_struct(f);
    }
    parquet_int(f, 2, C_I64, 0);
    parquet_int(f, 3, C_I64, rows);
    parquet_close_struct(f);
}

/* The footer. nodes: what is below the root, which has `fields` fields; rows of each row group. */
static inline void parquet_end(struct parquet *f, const struct parquet_node *nodes, int node_count, int fields, int64_t rows)
{
    const struct parquet_node root = {.name = "schema", .type = GROUP_TYPE, .children = fields};
    size_t begin = f->size;
    int groups = f->groups ? (int)f->groups : 1;
    f->depth = 0;
    f->last[0] = 0;
    parquet_int(f, 1, C_I32, 1);
    parquet_list(f, 2, C_STRUCT, (size_t)node_count + 1);
    parquet_element(f, &root, true);
    for (int i = 0; i < node_count; i++)
        parquet_element(f, &nodes[i], false);
    parquet_int(f, 3, C_I64, rows * groups + f->more_rows);
    parquet_list(f, 4, C_STRUCT, (size_t)groups);
    for (int g = 0; g < groups; g++)
        parquet_group(f, g * (f->count / groups), f->count / groups, rows);
    parquet_field(f, 6, C_BINARY);
    parquet_text(f, "a test");
    parquet_byte(f, 0);
    uint32_t size = (uint32_t)(f->size - begin);
    const uint8_t tail[8] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(size >> 24), 'P', 'A', 'R', '1'};
    parquet_put(f, tail, 8);
}

#endif
