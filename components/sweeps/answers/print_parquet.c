/* print_parquet.c - write an answer as an Apache Parquet file.
 *
 * Repeated values of a column are written once per row group, in its dictionary. There is no
 * compression. Memory use is one page, plus one number for each value of a column in a row group.
 * Source: Encodings.md and parquet.thrift of the Apache Parquet format. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map.h"
#include "core/try.h"
#include "files/file.h"
#include "files/json.h"
#include "sweeps/answers/answer_parts.h"
#include "sweeps/answers/print.h"
#include "sweeps/answers/print_parquet_parts.h"

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { PAGE_BYTES = 1 << 20, PAGE_VALUES = 1 << 16, DICTIONARY_BYTES = 1 << 20 };
enum { FEW = 1000 }; /* number of distinct values before the dictionary is given up */

struct numbers {
    uint32_t *at;
    size_t count, capacity;
    bool failed; /* out of memory; the error is set */
};

struct parquet {
    const struct tune_answer_table *a;
    FILE *out;
    int64_t written;
    struct tune_answer_parquet_column *columns; /* [a->count] */
    struct tune_answer_parquet_chunk *chunks;   /* [row groups][a->count] */
    struct tune_thrift_writer value, body, head;
    char *text; /* of a cell */
    size_t text_capacity;
    /* the dictionary of a chunk */
    struct tune_thrift_writer dictionary;
    struct tune_map by_hash; /* from a hash to (offset of the value << 32) + index + 1 */
    size_t entries;
    struct numbers indexes; /* dictionary index of each value of the chunk; for booleans, 0 or 1 */
    size_t used;            /* number of indexes in written pages */
    /* a page */
    struct numbers definitions, repetitions;
    struct tune_thrift_writer plain; /* values of the page, if there is no dictionary */
};

static void add_number(struct numbers *n, uint32_t number)
{
    size_t need = n->count + 1;
    if (!n->failed && tune_array_reserve(&n->at, &n->capacity, need, sizeof *n->at, "a file") < 0)
        n->failed = true;
    if (!n->failed)
        n->at[n->count++] = number;
}

static int write_failed(void)
{
    return tune_error_set("the answer cannot be written: %s", strerror(errno));
}

static int write_bytes(struct parquet *p, const void *data, size_t size)
{
    if (fwrite(data, 1, size, p->out) != size)
        return write_failed();
    p->written += (int64_t)size;
    return 0;
}

/* ---- packed numbers ---- */

/* Write `padded` numbers of `width` bits: numbers[count], and then zeros. */
static void put_bits(struct tune_thrift_writer *w, const uint32_t *numbers, size_t count,
                     size_t padded, int width)
{
    uint64_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < padded; i++) {
        bits |= (uint64_t)(i < count ? numbers[i] : 0) << have;
        for (have += width; have >= 8; have -= 8, bits >>= 8)
            tune_thrift_write_little(w, bits, 1);
    }
    if (have > 0)
        tune_thrift_write_little(w, bits, 1);
}

static size_t count_equal(const uint32_t *numbers, size_t most)
{
    size_t equal = 0;
    while (equal < most && numbers[equal] == numbers[0])
        equal++;
    return equal;
}

/* Write numbers in the hybrid encoding. It has runs of 8 or more equal numbers; others are packed,
 * 8 at a time. */
static void put_hybrid(struct tune_thrift_writer *w, const uint32_t *numbers, size_t count,
                       int width)
{
    for (size_t i = 0; i < count;) {
        size_t equal = count_equal(numbers + i, count - i), end = i;
        if (equal >= 8) {
            tune_thrift_write_varint(w, (uint64_t)equal << 1);
            tune_thrift_write_little(w, numbers[i], (width + 7) / 8);
            i += equal;
            continue;
        }
        do
            end += 8;
        while (end + 8 <= count && count_equal(numbers + end, 8) < 8);
        tune_thrift_write_varint(w, (uint64_t)(end - i) / 8 << 1 | 1);
        put_bits(w, numbers + i, (end < count ? end : count) - i, end - i, width);
        i = end;
    }
}

static void put_levels(struct tune_thrift_writer *w, const struct numbers *levels, int width)
{
    size_t at = w->count;
    tune_thrift_write_little(w, 0, 4); /* the length, which is set below */
    put_hybrid(w, levels->at, levels->count, width);
    for (int i = 0; i < 4 && !w->failed; i++)
        w->at[at + (size_t)i] = (uint8_t)((w->count - at - 4) >> 8 * i);
}

/* ---- types ---- */

static bool is_whole(const struct tune_answer_numbers *list)
{
    bool whole = list->whole;
    for (int i = 0; i < list->count && whole; i++)
        whole = list->at[i] == floor(list->at[i]) && fabs(list->at[i]) < 1e15;
    return whole;
}

static struct tune_answer_parquet_column column_of(const struct tune_answer_table *a, int c)
{
    struct tune_answer_parquet_column column = {a->columns[c].name, BYTE_ARRAY, false, false};
    int64_t seen[TUNE_ANSWER_MIXED] = {0};
    bool whole = true, exact = true; /* exact: a double can represent all whole numbers */
    for (int64_t row = 0; row < a->rows; row++) {
        const struct tune_answer_cell *cell = tune_answer_at(a, row, c);
        seen[cell->type]++;
        if (cell->type == TUNE_ANSWER_WHOLE)
            exact = exact && cell->whole <= (int64_t)1 << 53 && cell->whole >= -((int64_t)1 << 53);
        else if (cell->type == TUNE_ANSWER_LIST)
            whole = whole && is_whole(cell->numbers);
    }
    int64_t lists = seen[TUNE_ANSWER_LIST], all = a->rows - seen[TUNE_ANSWER_NONE];
    int64_t numbers = seen[TUNE_ANSWER_WHOLE] + seen[TUNE_ANSWER_NUMBER] + lists;
    whole = whole && seen[TUNE_ANSWER_NUMBER] == 0;
    if (all == 0)
        return column;
    if (numbers == all && (whole || exact)) {
        column.type = whole ? INT64 : DOUBLE;
        column.list = lists > 0;
    } else if (seen[TUNE_ANSWER_BOOL] == all) {
        column.type = BOOLEAN;
    } else if (seen[TUNE_ANSWER_TIME] == all) {
        column.type = INT64;
        column.time = true;
    }
    return column;
}

/* ---- values ---- */

static int count_values(const struct tune_answer_parquet_column *c,
                        const struct tune_answer_cell *cell)
{
    if (cell->type == TUNE_ANSWER_NONE)
        return 0;
    return c->list && cell->type == TUNE_ANSWER_LIST ? cell->numbers->count : 1;
}

static int cell_to_string(struct parquet *p, const struct tune_answer_cell *cell)
{
    int length = tune_answer_to_string(cell, p->text, p->text_capacity);
    if ((size_t)length < p->text_capacity)
        return 0;
    TRY(tune_array_reserve(&p->text, &p->text_capacity, (size_t)length + 1, 1, "a cell's text"));
    tune_answer_to_string(cell, p->text, p->text_capacity);
    return 0;
}

static int encode_text(struct parquet *p, const char *column, const struct tune_answer_cell *cell)
{
    bool is_text = cell->type == TUNE_ANSWER_TEXT;
    TRY(is_text ? 0 : cell_to_string(p, cell));
    const char *text = is_text ? cell->text : p->text;
    size_t length = strlen(text);
    if (!tune_utf8_valid(text, length, NULL))
        return tune_error_set("column \"%s\" has a text that is not UTF-8, which Parquet does not "
                              "allow; write CSV, or leave the column out", column);
    tune_thrift_write_little(&p->value, length, 4);
    tune_thrift_write(&p->value, text, length);
    return 0;
}

/* Encode value i of a cell in PLAIN encoding into p->value. */
static int encode(struct parquet *p, const struct tune_answer_parquet_column *c,
                  const struct tune_answer_cell *cell, int i)
{
    bool list = cell->type == TUNE_ANSWER_LIST;
    uint64_t bits;
    p->value.count = 0;
    if (c->type == BYTE_ARRAY) {
        TRY(encode_text(p, c->name, cell));
    } else if (c->type == DOUBLE) {
        double number = list ? cell->numbers->at[i] : tune_answer_number(cell);
        memcpy(&bits, &number, sizeof bits);
        tune_thrift_write_little(&p->value, bits, 8);
    } else {
        int64_t whole = c->time ? tune_answer_milliseconds(cell->number)
                        : list  ? (int64_t)cell->numbers->at[i] : cell->whole;
        tune_thrift_write_little(&p->value, (uint64_t)whole, 8);
    }
    return p->value.failed ? -1 : 0;
}

/* ---- dictionary ---- */

/* Add p->value to the dictionary, unless it is there, and store its index. 1; 0: a dictionary is
 * not worthwhile, or two values have the same hash. -1 with an error: no memory. */
static int index_value(struct parquet *p)
{
    const uint8_t *value = p->value.at;
    size_t size = p->value.count, begin = p->dictionary.count;
    const uint64_t key[2] = {tune_hash64(value, size, 1), tune_hash64(value, size, 2)};
    int64_t *entry = tune_map_add(&p->by_hash, key);
    if (!entry)
        return tune_error_no_memory("the dictionary of a Parquet file");
    if (*entry) {
        begin = (size_t)(*entry >> 32);
        add_number(&p->indexes, (uint32_t)*entry - 1);
        return begin + size <= p->dictionary.count &&
               !memcmp(p->dictionary.at + begin, value, size);
    }
    add_number(&p->indexes, (uint32_t)p->entries++);
    *entry = (int64_t)begin << 32 | (int64_t)p->entries;
    tune_thrift_write(&p->dictionary, value, size);
    return p->dictionary.count <= DICTIONARY_BYTES &&
           (p->entries < FEW || p->entries <= p->indexes.count / 2);
}

/* Make the dictionary of some rows, and the index of each value. 1; 0: no dictionary is used; -1
 * with an error. */
static int index_rows(struct parquet *p, int column, int64_t from, int64_t to)
{
    const struct tune_answer_parquet_column *c = &p->columns[column];
    int more = 1;
    tune_map_free(&p->by_hash);
    p->dictionary.count = p->entries = p->indexes.count = p->used = 0;
    for (int64_t row = from; row < to && more; row++) {
        const struct tune_answer_cell *cell = tune_answer_at(p->a, row, column);
        int count = count_values(c, cell);
        for (int i = 0; i < count && more; i++) {
            if (c->type == BOOLEAN) {
                add_number(&p->indexes, (uint32_t)cell->whole);
                continue;
            }
            TRY(encode(p, c, cell, i));
            TRY(more = index_value(p));
        }
    }
    if (p->indexes.failed || p->dictionary.failed)
        return -1;
    return more && p->entries > 0 && p->entries <= p->indexes.count / 2;
}

/* ---- pages ---- */

/* Write p->body as a page with this number of entries. */
static int write_page(struct parquet *p, int kind, int encoding, size_t entries)
{
    struct tune_thrift_writer *h = &p->head;
    h->count = 0;
    tune_thrift_write_int_field(h, 1, TUNE_THRIFT_I32, kind);
    tune_thrift_write_int_field(h, 2, TUNE_THRIFT_I32, (int64_t)p->body.count);
    tune_thrift_write_int_field(h, 3, TUNE_THRIFT_I32, (int64_t)p->body.count);
    tune_thrift_write_field(h, kind == DATA_PAGE ? 5 : 7, TUNE_THRIFT_STRUCT);
    tune_thrift_write_int_field(h, 1, TUNE_THRIFT_I32, (int64_t)entries);
    tune_thrift_write_int_field(h, 2, TUNE_THRIFT_I32, encoding);
    if (kind == DATA_PAGE) {
        tune_thrift_write_int_field(h, 3, TUNE_THRIFT_I32, RLE); /* definition levels */
        tune_thrift_write_int_field(h, 4, TUNE_THRIFT_I32, RLE); /* repetition levels */
    }
    tune_thrift_write_end(h);
    tune_thrift_write_end(h);
    if (h->failed || p->body.failed)
        return -1;
    TRY(write_bytes(p, h->at, h->count));
    return write_bytes(p, p->body.at, p->body.count);
}

static int bits_of(size_t number)
{
    int bits = 1;
    while (number >> bits)
        bits++;
    return bits;
}

/* Write the current page. values: number of values that are not null. */
static int end_page(struct parquet *p, const struct tune_answer_parquet_column *c, bool indexed,
                    size_t values)
{
    size_t entries = p->definitions.count;
    const uint32_t *indexes = p->indexes.at + p->used;
    int width = indexed ? bits_of(p->entries - 1) : 1;
    if (p->definitions.failed || p->repetitions.failed || p->plain.failed)
        return -1;
    p->body.count = 0;
    if (c->list)
        put_levels(&p->body, &p->repetitions, 1);
    put_levels(&p->body, &p->definitions, c->list ? 2 : 1);
    if (indexed) {
        tune_thrift_write_little(&p->body, (uint64_t)width, 1);
        put_hybrid(&p->body, indexes, values, width);
    } else if (c->type == BOOLEAN) {
        put_bits(&p->body, indexes, values, values, 1);
    } else {
        tune_thrift_write(&p->body, p->plain.at, p->plain.count);
    }
    p->used += values;
    p->definitions.count = p->repetitions.count = p->plain.count = 0;
    return write_page(p, DATA_PAGE, indexed ? RLE_DICTIONARY : PLAIN, entries);
}

/* Write some rows of a column as pages. */
static int put_pages(struct parquet *p, int column, int64_t from, int64_t to, bool indexed,
                     struct tune_answer_parquet_chunk *chunk)
{
    const struct tune_answer_parquet_column *c = &p->columns[column];
    size_t values = 0;
    for (int64_t row = from; row < to; row++) {
        const struct tune_answer_cell *cell = tune_answer_at(p->a, row, column);
        int count = count_values(c, cell);
        for (int i = 0; i < count || i == 0; i++) { /* null needs an entry, too */
            add_number(&p->definitions, count == 0 ? 0 : c->list ? 3 : 1);
            add_number(&p->repetitions, i > 0);
            if (count == 0 || indexed || c->type == BOOLEAN)
                continue;
            TRY(encode(p, c, cell, i));
            tune_thrift_write(&p->plain, p->value.at, p->value.count);
        }
        values += (size_t)count;
        bool full = p->plain.count >= PAGE_BYTES || p->definitions.count >= PAGE_VALUES;
        if (!full && row + 1 < to)
            continue;
        chunk->values += (int64_t)p->definitions.count;
        TRY(end_page(p, c, indexed, values));
        values = 0;
    }
    return 0;
}

static int put_chunk(struct parquet *p, int column, int64_t from, int64_t to,
                     struct tune_answer_parquet_chunk *chunk)
{
    int indexed;
    *chunk = (struct tune_answer_parquet_chunk){.begin = p->written};
    TRY(indexed = index_rows(p, column, from, to));
    if (indexed) {
        p->body.count = 0;
        tune_thrift_write(&p->body, p->dictionary.at, p->dictionary.count);
        TRY(write_page(p, DICTIONARY_PAGE, PLAIN, p->entries));
    }
    chunk->data = p->written;
    TRY(put_pages(p, column, from, to, indexed, chunk));
    chunk->size = p->written - chunk->begin;
    return 0;
}

/* ---- the file ---- */

static int check_columns(const struct tune_answer_table *a)
{
    if (a->count == 0)
        return tune_error_set("there is nothing to write: the answer has no column, and a Parquet "
                              "file needs at least one");
    for (int c = 0; c < a->count; c++)
        if (tune_answer_find(a, a->columns[c].name) != c)
            return tune_error_set("two columns have the name \"%s\", which readers of Parquet do "
                                  "not accept; choose one of them, or write CSV",
                                  a->columns[c].name);
    return 0;
}

static int put_file(struct parquet *p)
{
    const struct tune_answer_table *a = p->a;
    int64_t groups = (a->rows + TUNE_PARQUET_GROUP_ROWS - 1) / TUNE_PARQUET_GROUP_ROWS;
    size_t chunks = (size_t)(groups * a->count);
    TRY(check_columns(a));
    p->columns = tune_zeroed((size_t)a->count, sizeof *p->columns, "the columns of a file");
    p->chunks = tune_zeroed(chunks + 1, sizeof *p->chunks, "the row groups of a file");
    if (!p->columns || !p->chunks)
        return -1;
    for (int c = 0; c < a->count; c++)
        p->columns[c] = column_of(a, c);
    TRY(write_bytes(p, "PAR1", 4));
    for (int64_t g = 0; g < groups; g++) {
        int64_t from = g * TUNE_PARQUET_GROUP_ROWS, to = from + TUNE_PARQUET_GROUP_ROWS;
        for (int c = 0; c < a->count; c++)
            TRY(put_chunk(p, c, from, to < a->rows ? to : a->rows, &p->chunks[g * a->count + c]));
    }
    TRY(tune_answer_parquet_footer(&p->head, a, p->columns, p->chunks, groups));
    TRY(write_bytes(p, p->head.at, p->head.count));
    return fflush(p->out) == 0 ? 0 : write_failed();
}

int tune_answer_parquet(const struct tune_answer_table *a, FILE *out)
{
    struct parquet p = {.a = a, .out = out};
    int code = put_file(&p);
    tune_map_free(&p.by_hash);
    free(p.columns);
    free(p.chunks);
    free(p.text);
    free(p.value.at);
    free(p.body.at);
    free(p.head.at);
    free(p.dictionary.at);
    free(p.indexes.at);
    free(p.definitions.at);
    free(p.repetitions.at);
    free(p.plain.at);
    return code;
}
