/* parquet.c - open a Parquet file: from its footer to a checked schema and the places of columns. */
#include "files/parquet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/parquet_parts.h"
#include "files/thrift.h"

enum { FOOTER_LIMIT = 256 << 20, NODES = 20000, DEEPEST = 24 };
enum { NO_TYPE = -1 }; /* no converted type, no logical type */

/* Converted types that are read, by parquet.thrift. */
enum {
    UTF8 = 0, OLD_MAP, OLD_MAP_ENTRIES, OLD_LIST, OLD_ENUM, OLD_DECIMAL, OLD_DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS,
    TIMESTAMP_MICROS, UINT_8, UINT_64 = 14, INT_8, INT_64 = 18, OLD_JSON
};

/* Logical types that are read: fields of a union. */
enum {
    STRING = 1, MAP, LIST, ENUM, DECIMAL, DATE, TIME, TIMESTAMP, INTEGER = 10, NULLS, JSON, UUID = 14, FLOAT16, LOGICALS = 32
};

/* The footer's words on a node, besides what the node keeps. */
struct element {
    int converted, logical, precision, bits, unit;
    bool is_signed, utc;
};

int tune_parquet_damaged(const struct tune_parquet_column *c, const char *what)
{
    return tune_error_set("%s: damaged in column \"%s\": %s", c->path, c->name, what);
}

int tune_parquet_unread(const char *path, const char *column, const char *what)
{
    return tune_error_set("%s: column \"%s\" %s, which is not read; leave the column out, or write the rows as .jsonl (pandas: "
                          "read_parquet(...).to_json(\"rows.jsonl\", orient=\"records\", lines=True))", path, column, what);
}

static int damaged(const struct tune_parquet *p, const char *what)
{
    return tune_error_set("%s: damaged Parquet file: %s", p->path, what);
}

/* ---- the footer's structs ---- */

static int read_unit(struct tune_thrift *t)
{
    int unit = 0;
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id); tune_thrift_skip(t))
        unit = id; /* 1, 2, 3: milli-, micro-, nanoseconds */
    return unit;
}

/* The fields of a logical type's own struct. */
static void read_logical_fields(struct tune_thrift *t, struct tune_parquet_node *n, struct element *e)
{
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);)
        if (e->logical == DECIMAL && id == 1)
            n->scale = (int)tune_thrift_int(t);
        else if (e->logical == DECIMAL && id == 2)
            e->precision = (int)tune_thrift_int(t);
        else if ((e->logical == TIME || e->logical == TIMESTAMP) && id == 1)
            e->utc = tune_thrift_bool(t);
        else if ((e->logical == TIME || e->logical == TIMESTAMP) && id == 2)
            e->unit = read_unit(t);
        else if (e->logical == INTEGER && id == 1)
            e->bits = (int)tune_thrift_int(t);
        else if (e->logical == INTEGER && id == 2)
            e->is_signed = tune_thrift_bool(t);
        else
            tune_thrift_skip(t);
}

static void read_logical(struct tune_thrift *t, struct tune_parquet_node *n, struct element *e)
{
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);) {
        e->logical = id;
        read_logical_fields(t, n, e);
    }
}

/* Whole numbers that name one of some values. */
static int choice(struct tune_thrift *t, int count)
{
    int64_t value = tune_thrift_int(t);
    if (value < 0 || value >= count)
        t->bad = true;
    return t->bad ? 0 : (int)value;
}

static int read_element(struct tune_parquet *p, struct tune_thrift *t, struct tune_parquet_node *n, struct element *e)
{
    size_t size = 0;
    const char *name = "";
    *n = (struct tune_parquet_node){.type = GROUP};
    *e = (struct element){.converted = NO_TYPE, .logical = NO_TYPE, .is_signed = true};
    for (int id = 0; tune_thrift_field(t, &id);)
        switch (id) {
        case 1: n->type = (enum tune_parquet_type)choice(t, GROUP); break;
        case 2: n->size = (int)tune_thrift_int(t); break;
        case 3: n->repetition = (enum tune_parquet_repetition)choice(t, 3); break;
        case 4: name = tune_thrift_bytes(t, &size); break;
        case 5: n->children = choice(t, NODES); break;
        case 6: e->converted = (int)tune_thrift_int(t); break;
        case 7: n->scale = (int)tune_thrift_int(t); break;
        case 8: e->precision = (int)tune_thrift_int(t); break;
        case 10: read_logical(t, n, e); break;
        default: tune_thrift_skip(t);
        }
    if (n->children > 0)
        n->type = GROUP; /* some writers give groups a type */
    if (t->bad || memchr(name, 0, size) || !tune_utf8_valid(name, size, NULL))
        return damaged(p, "its schema cannot be read");
    return (n->name = strndup(name, size)) ? 0 : tune_error_no_memory("the columns' names");
}

/* ---- from an element to a form ---- */

static enum tune_parquet_form seconds(struct tune_parquet_node *n, const struct element *e, enum tune_parquet_form form)
{
    int unit = e->unit ? e->unit : e->converted == TIME_MILLIS || e->converted == TIMESTAMP_MILLIS ? 1 : 2;
    n->digits = 3 * unit;
    n->utc = e->logical == NO_TYPE || e->utc;
    return form;
}

/* The name of what a column holds, if it is none of what is read; else NULL and n->form. */
static const char *settle_number(struct tune_parquet_node *n, const struct element *e)
{
    int l = e->logical, c = e->converted;
    bool plain = l == NO_TYPE && c == NO_TYPE;
    if (l == DECIMAL || c == OLD_DECIMAL)
        return n->form = AS_DECIMAL, NULL;
    if (l == INTEGER || (c >= UINT_8 && c <= INT_64))
        return n->form = (l == INTEGER ? e->is_signed : c >= INT_8) ? AS_INTEGER : AS_UNSIGNED, NULL;
    if (n->type == INT32 && (l == DATE || c == OLD_DATE))
        return n->form = AS_DATE, NULL;
    if (l == TIME || c == TIME_MILLIS || c == TIME_MICROS)
        return n->form = seconds(n, e, AS_TIME), NULL;
    if (n->type == INT64 && (l == TIMESTAMP || c == TIMESTAMP_MILLIS || c == TIMESTAMP_MICROS))
        return n->form = seconds(n, e, AS_TIMESTAMP), NULL;
    n->form = AS_INTEGER;
    return plain || l == NULLS ? NULL : "has numbers of a type unknown here";
}

static const char *settle_bytes(struct tune_parquet_node *n, const struct element *e)
{
    int l = e->logical, c = e->converted;
    bool plain = l == NO_TYPE && c == NO_TYPE;
    if (l == DECIMAL || c == OLD_DECIMAL) {
        n->form = AS_DECIMAL;
        return n->type == BYTE_ARRAY || (n->size >= 1 && n->size <= 16) ? NULL : "has decimals of more than 38 digits";
    }
    if (n->type == FIXED_LEN_BYTE_ARRAY) {
        n->form = l == FLOAT16 ? AS_HALF : AS_UUID;
        if ((l == UUID && n->size == 16) || (l == FLOAT16 && n->size == 2))
            return NULL;
        return plain ? "holds bytes of a fixed length" : "holds a type unknown here, in bytes of a fixed length";
    }
    n->form = plain || l == NULLS ? AS_BYTES : AS_TEXT;
    bool text = l == STRING || l == ENUM || l == JSON || c == UTF8 || c == OLD_ENUM || c == OLD_JSON;
    return plain || text || l == NULLS ? NULL : "holds a type unknown here (BSON, VARIANT, GEOMETRY or a newer one)";
}

static const char *settle_leaf(struct tune_parquet_node *n, const struct element *e)
{
    const char *what = NULL;
    switch (n->type) {
    case BOOLEAN: n->form = AS_BOOLEAN; break;
    case INT96: n->form = AS_INT96, n->digits = 9; break;
    case FLOAT: n->form = AS_FLOAT; break;
    case DOUBLE: n->form = AS_DOUBLE; break;
    case INT32:
    case INT64: what = settle_number(n, e); break;
    default: what = settle_bytes(n, e); break;
    }
    int digits = n->type == INT32 ? 9 : n->type == INT64 ? 18 : 38;
    if (!what && n->form == AS_DECIMAL && (e->precision < 1 || e->precision > digits || n->scale < 0 || n->scale > e->precision))
        what = e->precision > 38 ? "has decimals of more than 38 digits" : "has decimals of digits that cannot be";
    if (!what && n->digits > 9)
        what = "has times of a unit unknown here";
    return what;
}

/* ---- the tree ---- */

static char *json_key(const char *name)
{
    char *key = malloc(6 * strlen(name) + 4), *to = key;
    if (!key)
        return NULL;
    *to++ = '"';
    for (; *name; name++)
        if ((unsigned char)*name < 0x20)
            to += sprintf(to, "\\u%04x", *name);
        else if (*name == '"' || *name == '\\')
            *to++ = '\\', *to++ = *name;
        else
            *to++ = *name;
    memcpy(to, "\":", 3);
    return key;
}

/* A group's form, when the nodes below it are known. */
static const char *settle_group(struct tune_parquet_node *n, const struct element *e)
{
    const struct tune_parquet_node *child = n + 1;
    bool list = e->logical == LIST || e->converted == OLD_LIST;
    bool map = e->logical == MAP || e->converted == OLD_MAP || e->converted == OLD_MAP_ENTRIES;
    n->form = AS_STRUCT;
    if (e->logical != NO_TYPE && !list && !map)
        return "holds a type unknown here, made of several columns";
    if ((!list && !map) || n->children != 1 || child->repetition != REPEATED)
        return NULL;
    n->form = list ? AS_LIST : AS_MAP;
    if (list)
        return NULL;
    if (child->type != GROUP || child->children != 2 || child[1].repetition == REPEATED)
        return "is a map without keys and values";
    return child[1].form == AS_TEXT || child[1].form == AS_BYTES ? NULL : "is a map whose keys are no texts";
}

/* Read the node at p->nodes[p->node_count] and all below it. name: its full name's beginning. */
static int read_node(struct tune_parquet *p, struct tune_thrift *t, int64_t count, const struct tune_parquet_node *parent, int depth,
                     const char *above)
{
    struct element e;
    char name[200];
    if (p->node_count >= count || depth > DEEPEST)
        return damaged(p, depth > DEEPEST ? "its columns are nested too deep" : "its schema has groups without their columns");
    struct tune_parquet_node *n = &p->nodes[p->node_count++];
    TRY(read_element(p, t, n, &e));
    if (!(n->key = json_key(n->name)))
        return tune_error_no_memory("the columns' names");
    if (parent) {
        n->max_definition = parent->max_definition + (n->repetition != REQUIRED);
        n->max_repetition = parent->max_repetition + (n->repetition == REPEATED);
    }
    snprintf(name, sizeof name, "%s", above);
    if (parent)
        tune_append(name, sizeof name, "%s%s", *above ? "." : "", n->name);
    tune_blank_controls(name);
    n->leaf = p->column_count;
    if (n->type != GROUP) {
        struct tune_parquet_column *c = &p->columns[p->column_count++];
        *c = (struct tune_parquet_column){.path = p->path, .fd = p->fd, .codecs = &p->codecs, .memory = &p->memory, .entries = -1, .node = n};
        snprintf(c->name, sizeof c->name, "%s", name);
    } else if (n->children == 0) {
        return damaged(p, parent ? "its schema has a group without columns" : "it has no columns");
    }
    for (int k = 0; k < n->children; k++)
        TRY(read_node(p, t, count, n, depth + 1, name));
    n->end = p->node_count;
    n->leaves = p->column_count - n->leaf;
    const char *unread = n->type == GROUP ? settle_group(n, &e) : settle_leaf(n, &e);
    return unread ? tune_parquet_unread(p->path, name, unread) : 0;
}

static int read_schema(struct tune_parquet *p, struct tune_thrift *t)
{
    int64_t count = tune_thrift_list(t, TUNE_THRIFT_STRUCT);
    if (t->bad || p->nodes || count < 2 || count > NODES)
        return damaged(p, count > NODES ? "it has more than 20,000 columns" : "its schema cannot be read");
    p->nodes = tune_zeroed((size_t)count, sizeof *p->nodes, "the columns of %s", p->path);
    p->columns = p->nodes ? tune_zeroed((size_t)count, sizeof *p->columns, "the columns of %s", p->path) : NULL;
    if (!p->columns)
        return -1;
    TRY(read_node(p, t, count, NULL, 0, ""));
    return p->node_count == count ? 0 : damaged(p, "its schema has columns that belong to no group");
}

/* ---- row groups ---- */

static int read_chunk_facts(struct tune_parquet *p, struct tune_thrift *t, struct tune_parquet_chunk *chunk, const struct tune_parquet_column *c)
{
    static const char *const codecs[] = {"", "", "gzip", "LZO", "Brotli", "LZ4", "", "LZ4"};
    int64_t dictionary = 0;
    int type = GROUP;
    char what[64];
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);)
        switch (id) {
        case 1: type = choice(t, GROUP); break;
        case 4: chunk->codec = (enum tune_parquet_codec)choice(t, LZ4_RAW + 1); break;
        case 5: chunk->values = tune_thrift_int(t); break;
        case 9: chunk->offset = tune_thrift_int(t); break;
        case 11: dictionary = tune_thrift_int(t); break;
        default: tune_thrift_skip(t);
        }
    if (t->bad)
        return damaged(p, "its row groups cannot be read");
    if (type != (int)c->node->type)
        return tune_parquet_damaged(c, "its type is another in a row group");
    if (dictionary > 0 && dictionary < chunk->offset)
        chunk->offset = dictionary;
    if (chunk->values < 0 || (chunk->values > 0 && (chunk->offset < 4 || (uint64_t)chunk->offset > p->end)))
        return tune_parquet_damaged(c, "it lies outside of the file");
    if (chunk->codec == UNCOMPRESSED || chunk->codec == SNAPPY || chunk->codec == ZSTD)
        return 0;
    snprintf(what, sizeof what, "is compressed with %s", codecs[chunk->codec]);
    return tune_parquet_unread(p->path, c->name, what);
}

static int read_chunk(struct tune_parquet *p, struct tune_thrift *t, struct tune_parquet_chunk *chunk, const struct tune_parquet_column *c)
{
    size_t size;
    bool facts = false;
    for (int id = 0; tune_thrift_field(t, &id);) {
        if (id == 1 && (tune_thrift_bytes(t, &size), size > 0))
            return tune_parquet_unread(p->path, c->name, "lies in another file");
        if (id == 3) {
            TRY(read_chunk_facts(p, t, chunk, c));
            facts = true;
        } else if (id == 8 || id == 9) {
            return tune_parquet_unread(p->path, c->name, "is encrypted");
        } else if (id != 1) {
            tune_thrift_skip(t);
        }
    }
    return facts ? 0 : damaged(p, "its row groups cannot be read");
}

static int read_group(struct tune_parquet *p, struct tune_thrift *t, int64_t *rows, struct tune_parquet_chunk *chunks)
{
    int64_t columns = 0;
    for (int id = 0; tune_thrift_field(t, &id);) {
        if (id == 3) {
            *rows = tune_thrift_int(t);
        } else if (id == 1) {
            columns = tune_thrift_list(t, TUNE_THRIFT_STRUCT);
            if (columns != p->column_count)
                return damaged(p, "a row group does not have the schema's columns");
            for (int k = 0; k < columns; k++)
                TRY(read_chunk(p, t, &chunks[k], &p->columns[k]));
        } else {
            tune_thrift_skip(t);
        }
    }
    if (t->bad || columns != p->column_count || *rows < 0)
        return damaged(p, "its row groups cannot be read");
    return 0;
}

static int read_groups(struct tune_parquet *p, struct tune_thrift *t)
{
    int64_t count = tune_thrift_list(t, TUNE_THRIFT_STRUCT), rows = 0;
    if (!p->nodes || p->group_rows)
        return damaged(p, "its row groups stand before its schema, or twice");
    if (count > INT32_MAX || (size_t)count * (size_t)p->column_count > (size_t)(t->end - t->at)) /* a byte each, at least */
        return damaged(p, "its row groups cannot be read");
    p->group_rows = tune_zeroed((size_t)count + 1, sizeof *p->group_rows, "the row groups of %s", p->path);
    p->chunks = p->group_rows ? tune_zeroed((size_t)count * (size_t)p->column_count + 1, sizeof *p->chunks, "the row groups of %s", p->path) : NULL;
    if (!p->chunks)
        return -1;
    for (p->group_count = 0; p->group_count < count; p->group_count++) {
        TRY(read_group(p, t, &p->group_rows[p->group_count], p->chunks + (size_t)p->group_count * (size_t)p->column_count));
        rows += p->group_rows[p->group_count];
        if (rows > (int64_t)1 << 52 || p->group_rows[p->group_count] > (int64_t)1 << 52)
            return damaged(p, "it counts more rows than there can be");
    }
    return 0;
}

static int read_footer(struct tune_parquet *p, const char *footer, size_t size)
{
    struct tune_thrift t;
    int64_t rows = 0;
    tune_thrift_start(&t, footer, size);
    for (int id = 0; tune_thrift_field(&t, &id);)
        switch (id) {
        case 2: TRY(read_schema(p, &t)); break;
        case 3: p->rows = tune_thrift_int(&t); break;
        case 4: TRY(read_groups(p, &t)); break;
        case 8: return tune_error_set("%s: is encrypted, which is not read", p->path);
        default: tune_thrift_skip(&t);
        }
    for (int g = 0; g < p->group_count; g++)
        rows += p->group_rows[g];
    if (t.bad || !p->group_rows || rows != p->rows)
        return damaged(p, t.bad || !p->group_rows ? "its footer cannot be read" : "its row groups do not have the rows that it counts");
    return 0;
}

static int open_file(struct tune_parquet *p, double expansion)
{
    unsigned char tail[8];
    size_t size, footer;
    TRY(p->fd = tune_file_open(p->path, &size));
    p->memory.most = (size_t)tune_parquet_most((int64_t)size, expansion);
    if (size < 12)
        return tune_error_set("%s: has %zu bytes, which is too few for a Parquet file; was its download cut short?", p->path, size);
    TRY(tune_file_read_at(p->fd, p->path, size - 8, tail, 8));
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return tune_error_set("%s: is encrypted, which is not read", p->path);
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return tune_error_set("%s: does not end as a Parquet file does (PAR1); was its download cut short, or is it a link of Git LFS?", p->path);
    footer = tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    if (footer > size - 12 || footer > FOOTER_LIMIT)
        return damaged(p, "its footer would be longer than it can be");
    p->end = size - 8 - footer;
    char *data = malloc(footer + 1);
    if (!data)
        return tune_error_no_memory("the footer of %s", p->path);
    int status = tune_file_read_at(p->fd, p->path, p->end, data, footer);
    if (status == 0)
        status = read_footer(p, data, footer);
    free(data);
    return status;
}

int64_t tune_parquet_most(int64_t bytes, double expansion)
{
    double most = (double)bytes * (expansion > 0 ? expansion : TUNE_EXPANSION);
    return most > 0x1p62 ? (int64_t)1 << 62 : most > TUNE_EXPANSION_FREE ? (int64_t)most : TUNE_EXPANSION_FREE;
}

struct tune_parquet *tune_parquet_open(const char *path, double expansion)
{
    struct tune_parquet *p = tune_zeroed(1, sizeof *p, "a Parquet file");
    if (!p)
        return NULL;
    p->fd = -1;
    p->group = -1;
    if (tune_path(p->path, "%s", path) == 0 && open_file(p, expansion) == 0)
        return p;
    tune_parquet_free(p);
    return NULL;
}

void tune_parquet_free(struct tune_parquet *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->node_count; i++) {
        free(p->nodes[i].name);
        free(p->nodes[i].key);
    }
    for (int i = 0; i < p->column_count; i++)
        tune_parquet_column_free(&p->columns[i]);
    free(p->nodes);
    free(p->columns);
    free(p->group_rows);
    free(p->chunks);
    free(p->line);
    if (p->fd >= 0)
        close(p->fd);
    tune_parquet_codecs_close(&p->codecs);
    free(p);
}

int64_t tune_parquet_rows(const struct tune_parquet *p)
{
    return p->rows;
}
