/* parquet_pages.c - a column of a row group, entry after entry: from pages to levels and values. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "files/parquet_parts.h"
#include "files/thrift.h"

enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };
enum { DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 };
enum { HEADER_FIRST = 4096, HEADER_LIMIT = 16 << 20 }; /* bytes; statistics may make a header long */

/* The header of a page. */
struct header {
    int type, encoding, definition_encoding, repetition_encoding;
    int64_t size, compressed; /* bytes of the page's body */
    int64_t count;            /* entries */
    int64_t definition_bytes, repetition_bytes; /* of version 2 */
    bool plain_values;        /* of version 2: they are not compressed */
    bool has_crc;
    uint32_t crc;
};

/* ---- runs ---- */

static void start_runs(struct tune_parquet_runs *r, const uint8_t *data, size_t size, int width)
{
    *r = (struct tune_parquet_runs){.at = data, .end = size > 0 ? data + size : data, .width = width};
}

static int next_run(struct tune_parquet_runs *r)
{
    uint64_t head = 0;
    int bytes = (r->width + 7) / 8, shift = 0;
    for (uint8_t b = 128; b & 128; shift += 7) {
        if (r->at == r->end || shift > 28)
            return -1;
        b = *r->at++;
        head |= (uint64_t)(b & 127) << shift;
    }
    size_t left = (size_t)(r->end - r->at);
    if (head & 1) {
        uint64_t size = (head >> 1) * (uint64_t)r->width; /* groups of 8: a byte for each bit of width */
        r->packed = (head >> 1) * 8;
        r->bits = r->at;
        r->at += size < left ? size : left; /* the last group may be cut short */
        r->after = r->at;
        r->store = 0;
        r->stored = 0;
        return 0;
    }
    if (left < (size_t)bytes)
        return -1;
    r->run = head >> 1;
    r->value = 0;
    for (int i = 0; i < bytes; i++)
        r->value |= (uint32_t)*r->at++ << 8 * i;
    return 0;
}

/* The next number, or -1: there is none. */
static int64_t next_number(struct tune_parquet_runs *r)
{
    while (r->run == 0 && r->packed == 0)
        TRY(next_run(r));
    if (r->run > 0) {
        r->run--;
        return r->value;
    }
    for (; r->stored < r->width; r->stored += 8) {
        if (r->bits == r->after)
            return -1;
        r->store |= (uint64_t)*r->bits++ << r->stored;
    }
    uint64_t value = r->store & (((uint64_t)1 << r->width) - 1);
    r->store >>= r->width;
    r->stored -= r->width;
    r->packed--;
    return (int64_t)value;
}

static int bits_of(int most)
{
    int bits = 0;
    for (; most > 0; most >>= 1)
        bits++;
    return bits;
}

/* ---- pages ---- */

static int reserve_bytes(uint8_t **array, size_t *have, size_t need, const struct tune_parquet_column *c)
{
    if (need <= *have && *array)
        return 0;
    c->memory->used -= *have;
    free(*array);
    *array = NULL;
    *have = 0;
    if (need > c->memory->most - c->memory->used)
        return tune_error_cannot("%s: its pages would take more than %zu MiB of memory, many times the file; if you trust it, raise "
                                 "`expansion_limit`", c->path, c->memory->most >> 20);
    *array = malloc(need + 1);
    *have = *array ? need : 0;
    c->memory->used += *have;
    return *array ? 0 : tune_error_no_memory("a page of column \"%s\" of %s (%zu bytes)", c->name, c->path, need);
}

static void read_data_header(struct tune_thrift *t, struct header *h)
{
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);)
        switch (id) {
        case 1: h->count = tune_thrift_int(t); break;
        case 2: h->encoding = (int)tune_thrift_int(t); break;
        case 3: h->definition_encoding = (int)tune_thrift_int(t); break;
        case 4: h->repetition_encoding = (int)tune_thrift_int(t); break;
        default: tune_thrift_skip(t);
        }
}

static void read_dictionary_header(struct tune_thrift *t, struct header *h)
{
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);)
        switch (id) {
        case 1: h->count = tune_thrift_int(t); break;
        case 2: h->encoding = (int)tune_thrift_int(t); break;
        default: tune_thrift_skip(t);
        }
}

static void read_data_header_2(struct tune_thrift *t, struct header *h)
{
    tune_thrift_struct(t);
    for (int id = 0; tune_thrift_field(t, &id);)
        switch (id) {
        case 1: h->count = tune_thrift_int(t); break;
        case 4: h->encoding = (int)tune_thrift_int(t); break;
        case 5: h->definition_bytes = tune_thrift_int(t); break;
        case 6: h->repetition_bytes = tune_thrift_int(t); break;
        case 7: h->plain_values = !tune_thrift_bool(t); break;
        default: tune_thrift_skip(t);
        }
}

/* Parse a header. false: it is not all there, or it is no header. */
static bool parse_header(const uint8_t *data, size_t size, struct header *h, size_t *used)
{
    struct tune_thrift t;
    int bodies = 0;
    *h = (struct header){.type = -1, .definition_encoding = RLE, .repetition_encoding = RLE};
    tune_thrift_start(&t, data, size);
    for (int id = 0; tune_thrift_field(&t, &id);)
        switch (id) {
        case 1: h->type = (int)tune_thrift_int(&t); break;
        case 2: h->size = tune_thrift_int(&t); break;
        case 3: h->compressed = tune_thrift_int(&t); break;
        case 4: h->has_crc = true, h->crc = (uint32_t)tune_thrift_int(&t); break;
        case 5: read_data_header(&t, h), bodies++; break;
        case 7: read_dictionary_header(&t, h), bodies++; break;
        case 8: read_data_header_2(&t, h), bodies++; break;
        default: tune_thrift_skip(&t);
        }
    *used = (size_t)(t.at - data);
    return !t.bad && bodies <= 1;
}

static int read_header(struct tune_parquet_column *c, struct header *h)
{
    size_t used = 0, left = (size_t)(c->end - c->offset);
    for (size_t take = HEADER_FIRST;; take *= 16) {
        bool all = take >= left || take >= HEADER_LIMIT;
        size_t size = take < left ? take : left;
        TRY(reserve_bytes(&c->raw, &c->raw_capacity, size, c));
        TRY(tune_file_read_at(c->fd, c->path, c->offset, c->raw, size));
        if (parse_header(c->raw, size, h, &used))
            break;
        if (all)
            return tune_parquet_damaged(c, "a page's header cannot be read");
    }
    c->offset += used;
    if (h->size < 0 || h->compressed < 0 || (uint64_t)h->compressed > c->end - c->offset || h->count < 0)
        return tune_parquet_damaged(c, "a page does not fit into the file");
    if (h->size > TUNE_PARQUET_PAGE_LIMIT)
        return tune_parquet_damaged(c, "a page would have more than 1 GiB");
    return 0;
}

/* The checksum of gzip. */
static uint32_t crc32_of(const uint8_t *data, size_t size)
{
    uint32_t table[256], crc = ~0u;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x = i;
        for (int k = 0; k < 8; k++)
            x = x >> 1 ^ (0xedb88320u & (0 - (x & 1)));
        table[i] = x;
    }
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
    return ~crc;
}

/* Read a page's body into c->page, uncompressed. `open` bytes at its beginning are as they are. */
static int read_body(struct tune_parquet_column *c, const struct header *h, size_t open, bool compressed)
{
    size_t size = (size_t)h->compressed, want = (size_t)h->size;
    if (open > size || open > want)
        return tune_parquet_damaged(c, "a page's levels are longer than the page");
    TRY(reserve_bytes(&c->raw, &c->raw_capacity, size, c));
    TRY(tune_file_read_at(c->fd, c->path, c->offset, c->raw, size));
    c->offset += size;
    if (h->has_crc && crc32_of(c->raw, size) != h->crc)
        return tune_parquet_damaged(c, "a page's checksum differs from its content");
    TRY(reserve_bytes(&c->page, &c->page_capacity, want, c));
    memcpy(c->page, c->raw, open);
    if (compressed)
        return tune_parquet_uncompress(c, c->raw + open, size - open, c->page + open, want - open);
    if (size != want)
        return tune_parquet_damaged(c, "a page without compression has two sizes");
    memcpy(c->page + open, c->raw + open, want - open);
    return 0;
}

/* Bytes of a value of fixed size; 0: of a text. */
static size_t fixed_size(const struct tune_parquet_node *n)
{
    static const uint8_t sizes[] = {[INT32] = 4, [INT64] = 8, [INT96] = 12, [FLOAT] = 4, [DOUBLE] = 8, [BYTE_ARRAY] = 0};
    return n->type == FIXED_LEN_BYTE_ARRAY ? (size_t)n->size : sizes[n->type];
}

static uint32_t u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The value at the beginning of plain, which moves behind it. false: it is not all there. */
static bool take_plain(struct tune_parquet_value *plain, size_t size, struct tune_parquet_value *value)
{
    if (size == 0) {
        if (plain->size < 4)
            return false;
        size = u32(plain->data);
        plain->data += 4;
        plain->size -= 4;
    }
    if (plain->size < size)
        return false;
    *value = (struct tune_parquet_value){plain->data, size};
    plain->data += size;
    plain->size -= size;
    return true;
}

static int read_dictionary(struct tune_parquet_column *c, const struct header *h)
{
    size_t fixed = fixed_size(c->node);
    if (c->node->type == BOOLEAN || (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY))
        return tune_parquet_unread(c->path, c->name, "has a dictionary in an encoding");
    TRY(read_body(c, h, 0, true));
    if (h->count > h->size / (int64_t)(fixed ? fixed : 4))
        return tune_parquet_damaged(c, "its dictionary has fewer values than it counts");
    uint8_t *page = c->page;
    size_t page_capacity = c->page_capacity;
    c->page = c->dictionary, c->page_capacity = c->dictionary_capacity;
    c->dictionary = page, c->dictionary_capacity = page_capacity;
    c->entries = h->count;
    if (fixed)
        return 0;
    TRY(tune_array_reserve(&c->offsets, &c->offsets_capacity, (size_t)h->count, sizeof *c->offsets, "a column's dictionary"));
    struct tune_parquet_value rest = {c->dictionary, (size_t)h->size}, value;
    for (int64_t i = 0; i < c->entries; i++) {
        c->offsets[i] = (uint32_t)(rest.data - c->dictionary);
        if (!take_plain(&rest, 0, &value))
            return tune_parquet_damaged(c, "its dictionary is cut short");
    }
    return 0;
}

/* Levels with a length before them, as pages of version 1 have them. */
static int start_levels(struct tune_parquet_column *c, struct tune_parquet_runs *runs, int most, int encoding)
{
    struct tune_parquet_value levels;
    start_runs(runs, NULL, 0, 0);
    if (most == 0)
        return 0;
    if (encoding != RLE)
        return tune_parquet_unread(c->path, c->name, "has levels in the old encoding BIT_PACKED");
    if (!take_plain(&c->plain, 0, &levels))
        return tune_parquet_damaged(c, "a page's levels are longer than the page");
    start_runs(runs, levels.data, levels.size, bits_of(most));
    return 0;
}

/* Prepare to read the values, which are c->plain. */
static int start_values(struct tune_parquet_column *c, int encoding)
{
    static const char *const names[] = {
        "PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"
    };
    struct tune_parquet_value runs;
    char what[64];
    c->bit = 0;
    c->encoding = encoding == PLAIN_DICTIONARY ? RLE_DICTIONARY : encoding;
    if (encoding == PLAIN)
        return 0;
    if (c->encoding == RLE_DICTIONARY) {
        int width = c->plain.size > 0 ? c->plain.data[0] : 0;
        if (width > 32)
            return tune_parquet_damaged(c, "a page's places in the dictionary have more than 32 bits");
        start_runs(&c->indices, c->plain.data + (c->plain.size > 0), c->plain.size - (c->plain.size > 0), width);
        return 0;
    }
    if (encoding == RLE && c->node->type == BOOLEAN) {
        if (!take_plain(&c->plain, 0, &runs))
            return c->plain.size == 0 ? start_runs(&c->indices, NULL, 0, 1), 0 : tune_parquet_damaged(c, "a page's values are longer than the page");
        start_runs(&c->indices, runs.data, runs.size, 1);
        return 0;
    }
    if (encoding < 0 || encoding >= (int)(sizeof names / sizeof *names))
        snprintf(what, sizeof what, "has values in encoding %d", encoding);
    else
        snprintf(what, sizeof what, "has values in encoding %s", names[encoding]);
    return tune_parquet_unread(c->path, c->name, what);
}

static int read_data(struct tune_parquet_column *c, const struct header *h)
{
    const struct tune_parquet_node *n = c->node;
    if (h->count > c->left)
        return tune_parquet_damaged(c, "its pages have more entries than it counts");
    if (h->type == DATA_PAGE) {
        TRY(read_body(c, h, 0, true));
        c->plain = (struct tune_parquet_value){c->page, (size_t)h->size};
        TRY(start_levels(c, &c->repetitions, n->max_repetition, h->repetition_encoding));
        TRY(start_levels(c, &c->definitions, n->max_definition, h->definition_encoding));
    } else {
        int64_t r = h->repetition_bytes, d = h->definition_bytes;
        if (r < 0 || d < 0 || r > h->size || d > h->size - r)
            return tune_parquet_damaged(c, "a page's levels are longer than the page");
        TRY(read_body(c, h, (size_t)(r + d), !h->plain_values));
        start_runs(&c->repetitions, c->page, (size_t)r, bits_of(n->max_repetition));
        start_runs(&c->definitions, c->page + r, (size_t)d, bits_of(n->max_definition));
        c->plain = (struct tune_parquet_value){c->page + r + d, (size_t)(h->size - r - d)};
    }
    c->left -= h->count;
    c->page_left = h->count;
    return start_values(c, h->encoding);
}

static int read_page(struct tune_parquet_column *c)
{
    struct header h;
    if (c->offset >= c->end)
        return tune_parquet_damaged(c, "its pages have fewer entries than it counts");
    TRY(read_header(c, &h));
    switch (h.type) {
    case DATA_PAGE:
    case DATA_PAGE_V2:
        return read_data(c, &h);
    case DICTIONARY_PAGE:
        return read_dictionary(c, &h);
    case INDEX_PAGE:
        c->offset += (uint64_t)h.compressed;
        return 0;
    default:
        return tune_parquet_damaged(c, "a page is of a kind unknown here");
    }
}

/* ---- entries ---- */

int tune_parquet_begin(struct tune_parquet_column *c, const struct tune_parquet_chunk *chunk)
{
    c->codec = chunk->codec;
    c->offset = (uint64_t)chunk->offset;
    c->left = chunk->values;
    c->page_left = 0;
    c->entries = -1;
    return tune_parquet_step(c);
}

/* The next of some levels, whose largest is most. -1 with an error. */
static int next_level(const struct tune_parquet_column *c, struct tune_parquet_runs *runs, int most)
{
    int64_t level = most > 0 ? next_number(runs) : 0;
    return level < 0 || level > most ? tune_parquet_damaged(c, "a page's levels are cut short, or too high") : (int)level;
}

int tune_parquet_step(struct tune_parquet_column *c)
{
    c->have = false;
    while (c->page_left == 0) {
        if (c->left == 0)
            return 0;
        TRY(read_page(c));
    }
    c->page_left--;
    TRY(c->repetition = next_level(c, &c->repetitions, c->node->max_repetition));
    TRY(c->definition = next_level(c, &c->definitions, c->node->max_definition));
    c->have = true;
    return 0;
}

static int from_dictionary(struct tune_parquet_column *c, struct tune_parquet_value *value)
{
    int64_t i = next_number(&c->indices);
    size_t fixed = fixed_size(c->node);
    if (c->entries < 0)
        return tune_parquet_damaged(c, "it has places in a dictionary, and no dictionary");
    if (i < 0 || i >= c->entries)
        return tune_parquet_damaged(c, "a place in the dictionary is missing or beyond its end");
    if (fixed)
        *value = (struct tune_parquet_value){c->dictionary + (size_t)i * fixed, fixed};
    else
        *value = (struct tune_parquet_value){c->dictionary + c->offsets[i] + 4, u32(c->dictionary + c->offsets[i])};
    return 0;
}

int tune_parquet_take(struct tune_parquet_column *c, struct tune_parquet_value *value)
{
    if (c->encoding == RLE_DICTIONARY)
        return from_dictionary(c, value);
    if (c->node->type != BOOLEAN)
        return take_plain(&c->plain, fixed_size(c->node), value) ? 0 : tune_parquet_damaged(c, "a page's values are cut short");
    int64_t bit = -1;
    if (c->encoding == RLE) {
        bit = next_number(&c->indices);
    } else if (c->plain.size > 0) {
        bit = *c->plain.data >> c->bit & 1;
        c->bit = (c->bit + 1) % 8;
        c->plain.data += c->bit == 0;
        c->plain.size -= c->bit == 0;
    }
    *value = (struct tune_parquet_value){NULL, (size_t)(bit > 0)};
    return bit < 0 ? tune_parquet_damaged(c, "a page's values are cut short") : 0;
}

void tune_parquet_column_free(struct tune_parquet_column *c)
{
    free(c->page);
    free(c->raw);
    free(c->dictionary);
    free(c->offsets);
}
