/* print_parquet_footer.c - write the schema, row groups and metadata of a Parquet file.
 *
 * Source: parquet.thrift and LogicalTypes.md of the Apache Parquet format. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "core/version.h"
#include "sweeps/answers/print_parquet_parts.h"

enum { OPTIONAL = 1, REPEATED };
enum { I32 = TUNE_THRIFT_I32, I64, BINARY = TUNE_THRIFT_BINARY, STRUCT = TUNE_THRIFT_STRUCT };

/* Converted types, for older readers, and logical types. */
enum { OLD_UTF8 = 0, OLD_LIST = 3, OLD_TIMESTAMP_MILLIS = 9 };
enum { STRING = 1, LIST = 3, TIMESTAMP = 8, MILLIS = 1 };

/* ---- schema ---- */

static void put_logical(struct tune_thrift_writer *w, int converted, int logical)
{
    tune_thrift_write_int_field(w, 6, I32, converted);
    tune_thrift_write_field(w, 10, STRUCT);
    tune_thrift_write_field(w, logical, STRUCT);
    if (logical == TIMESTAMP) {
        tune_thrift_write_field(w, 1, TUNE_THRIFT_TRUE); /* in UTC */
        tune_thrift_write_field(w, 2, STRUCT);
        tune_thrift_write_field(w, MILLIS, STRUCT);
        tune_thrift_write_end(w);
        tune_thrift_write_end(w);
    }
    tune_thrift_write_end(w);
    tune_thrift_write_end(w);
}

/* Write the schema of a plain column, or of a list's element. */
static void put_leaf(struct tune_thrift_writer *w, const struct tune_answer_parquet_column *c,
                     const char *name)
{
    tune_thrift_write_int_field(w, 1, I32, c->type);
    tune_thrift_write_int_field(w, 3, I32, OPTIONAL);
    tune_thrift_write_text_field(w, 4, name);
    if (c->type == BYTE_ARRAY)
        put_logical(w, OLD_UTF8, STRING);
    else if (c->time)
        put_logical(w, OLD_TIMESTAMP_MILLIS, TIMESTAMP);
    tune_thrift_write_end(w);
}

/* Write a group of the schema. Its children follow. */
static void put_group(struct tune_thrift_writer *w, const char *name, int repetition, int children)
{
    if (repetition)
        tune_thrift_write_int_field(w, 3, I32, repetition);
    tune_thrift_write_text_field(w, 4, name);
    tune_thrift_write_int_field(w, 5, I32, children);
    if (repetition == OPTIONAL)
        put_logical(w, OLD_LIST, LIST);
    tune_thrift_write_end(w);
}

static void put_schema(struct tune_thrift_writer *w,
                       const struct tune_answer_parquet_column *columns, int count)
{
    int nodes = 1;
    for (int i = 0; i < count; i++)
        nodes += columns[i].list ? 3 : 1;
    tune_thrift_write_list(w, 2, STRUCT, (size_t)nodes);
    put_group(w, "schema", 0, count);
    for (int i = 0; i < count; i++) {
        if (columns[i].list) {
            put_group(w, columns[i].name, OPTIONAL, 1);
            put_group(w, "list", REPEATED, 1);
        }
        put_leaf(w, &columns[i], columns[i].list ? "element" : columns[i].name);
    }
}

/* ---- row groups ---- */

static void put_chunk(struct tune_thrift_writer *w, const struct tune_answer_parquet_column *c,
                      const struct tune_answer_parquet_chunk *chunk)
{
    bool indexed = chunk->data > chunk->begin;
    tune_thrift_write_int_field(w, 2, I64, 0);
    tune_thrift_write_field(w, 3, STRUCT);
    tune_thrift_write_int_field(w, 1, I32, c->type);
    tune_thrift_write_list(w, 2, I32, indexed ? 3 : 2);
    tune_thrift_write_int(w, PLAIN);
    tune_thrift_write_int(w, RLE);
    if (indexed)
        tune_thrift_write_int(w, RLE_DICTIONARY);
    tune_thrift_write_list(w, 3, BINARY, c->list ? 3 : 1);
    tune_thrift_write_text(w, c->name);
    if (c->list) {
        tune_thrift_write_text(w, "list");
        tune_thrift_write_text(w, "element");
    }
    tune_thrift_write_int_field(w, 4, I32, 0); /* uncompressed */
    tune_thrift_write_int_field(w, 5, I64, chunk->values);
    tune_thrift_write_int_field(w, 6, I64, chunk->size);
    tune_thrift_write_int_field(w, 7, I64, chunk->size);
    tune_thrift_write_int_field(w, 9, I64, chunk->data);
    if (indexed)
        tune_thrift_write_int_field(w, 11, I64, chunk->begin);
    tune_thrift_write_end(w);
    tune_thrift_write_end(w);
}

static void put_row_group(struct tune_thrift_writer *w,
                          const struct tune_answer_parquet_column *columns,
                          const struct tune_answer_parquet_chunk *chunks, int count, int64_t rows)
{
    int64_t size = 0;
    tune_thrift_write_list(w, 1, STRUCT, (size_t)count);
    for (int c = 0; c < count; c++) {
        put_chunk(w, &columns[c], &chunks[c]);
        size += chunks[c].size;
    }
    tune_thrift_write_int_field(w, 2, I64, size);
    tune_thrift_write_int_field(w, 3, I64, rows);
    tune_thrift_write_end(w);
}

/* ---- metadata ---- */

static int put_json(struct tune_thrift_writer *json, const char *text)
{
    const struct tune_value value = tune_value_text(text);
    int length = tune_value_json(&value, NULL, 0);
    size_t need = json->count + (size_t)length + 1;
    if (json->failed)
        return -1;
    TRY(tune_array_reserve(&json->at, &json->room, need, 1, "the units of columns"));
    tune_value_json(&value, (char *)json->at + json->count, (size_t)length + 1);
    json->count += (size_t)length;
    return 0;
}

/* Write the units of columns as JSON. Times are left out, because their type has the unit. pandas
 * reads this key into the attrs of its frame. */
static int put_units(struct tune_thrift_writer *w, const struct tune_answer_table *a,
                     const struct tune_answer_parquet_column *columns)
{
    struct tune_thrift_writer json = {0};
    int code = 0;
    tune_thrift_write(&json, "{\"units\": {", 11);
    for (int i = 0, units = 0; i < a->count && code == 0; i++)
        if (*a->columns[i].unit && !columns[i].time) {
            tune_thrift_write(&json, ", ", units++ ? 2 : 0);
            code = put_json(&json, a->columns[i].name);
            tune_thrift_write(&json, ": ", 2);
            code = code < 0 ? -1 : put_json(&json, a->columns[i].unit);
        }
    tune_thrift_write(&json, "}}", sizeof "}}");
    code = json.failed ? -1 : code;
    if (code == 0) {
        tune_thrift_write_list(w, 5, STRUCT, 1);
        tune_thrift_write_text_field(w, 1, "PANDAS_ATTRS");
        tune_thrift_write_text_field(w, 2, (const char *)json.at);
        tune_thrift_write_end(w);
    }
    free(json.at);
    return code;
}

int tune_answer_parquet_footer(struct tune_thrift_writer *w, const struct tune_answer_table *a,
                               const struct tune_answer_parquet_column *columns,
                               const struct tune_answer_parquet_chunk *chunks, int64_t groups)
{
    w->count = 0;
    tune_thrift_write_int_field(w, 1, I32, 1);
    put_schema(w, columns, a->count);
    tune_thrift_write_int_field(w, 3, I64, a->rows);
    tune_thrift_write_list(w, 4, STRUCT, (size_t)groups);
    for (int64_t g = 0; g < groups; g++) {
        int64_t left = a->rows - g * TUNE_PARQUET_GROUP_ROWS;
        int64_t rows = left < TUNE_PARQUET_GROUP_ROWS ? left : TUNE_PARQUET_GROUP_ROWS;
        put_row_group(w, columns, chunks + g * a->count, a->count, rows);
    }
    TRY(put_units(w, a, columns));
    tune_thrift_write_text_field(w, 6, "tune.c version " TUNE_VERSION);
    tune_thrift_write_end(w);
    tune_thrift_write_little(w, w->count, 4);
    tune_thrift_write(w, "PAR1", 4);
    return w->failed ? -1 : 0;
}
