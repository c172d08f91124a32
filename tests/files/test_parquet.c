/* test_parquet.c - Parquet files made byte by byte: every kind that is read, what is refused, what is damaged. (Files of a
 * real writer: tests/peers/parquet_peer.py.) */
#include "test.h"

#include "files/parquet.h"
#include "files/thrift.h"
#include "hidden_library.h"
#include "parquet_writer.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a node names what it has */

static struct parquet f;
static char text[1 << 20]; /* all rows, a line each */

static struct tune_parquet *open_bytes(const void *data, size_t size)
{
    test_write(test_home, "x.parquet", data, size);
    tune_error_clear();
    return tune_parquet_open("x.parquet", 0);
}

/* Rows into text. -1 with an error. */
static int read_bytes(const void *data, size_t size)
{
    struct tune_parquet *p = open_bytes(data, size);
    struct tune_text line;
    size_t used = 0;
    int more = p ? 0 : -1;
    *text = 0;
    while (p && (more = tune_parquet_next(p, &line)) == 1) {
        assert_int_equal(strlen(line.data), line.size);
        assert_true(used + line.size + 2 < sizeof text);
        used += (size_t)sprintf(text + used, "%s\n", line.data);
    }
    if (p && more < 0) { /* nothing comes after an error */
        struct tune_error before;
        tune_error_save(&before);
        assert_int_equal(tune_parquet_next(p, &line), -1);
        assert_error_has("could not be read before this row");
        tune_error_restore(&before);
    }
    tune_parquet_free(p);
    return more;
}

#define assert_rows(rows)                        \
    do {                                         \
        assert_ok(read_bytes(f.data, f.size));   \
        assert_string_equal(text, rows);         \
    } while (0)
#define assert_refused(what)                                   \
    do {                                                       \
        assert_int_equal(read_bytes(f.data, f.size), -1);      \
        assert_error_has(what);                                \
        assert_error_has("x.parquet");                         \
    } while (0)
#define PAGE(kind, encoding, count, body) parquet_page(&f, kind, encoding, count, body, sizeof(body) - 1)
#define END(rows, fields, ...)                                                      \
    do {                                                                            \
        const struct parquet_node nodes[] = {__VA_ARGS__};                          \
        parquet_end(&f, nodes, (int)(sizeof nodes / sizeof *nodes), fields, rows);  \
    } while (0)

enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { UTF8 = 1, MAP = 2, LIST = 4, DECIMAL = 6 };

/* One column of one page of PLAIN values, without levels. */
static void one(struct parquet_node node, int64_t count, const void *body, size_t size)
{
    parquet_begin(&f);
    parquet_chunk(&f, node.type, count);
    parquet_page(&f, PAGE_1, 0, count, body, size);
    parquet_end(&f, &node, 1, 1, count);
}
#define ONE(count, body, ...) one((struct parquet_node){__VA_ARGS__}, count, body, sizeof(body) - 1)

static void numbers(void **state)
{
    (void)state;
    ONE(3, "\1\0\0\0\xff\xff\xff\xff\0\0\0\x80", "n", INT32_TYPE);
    assert_rows("{\"n\":1}\n{\"n\":-1}\n{\"n\":-2147483648}\n");
    ONE(1, "\xff\xff\xff\xff", "n", INT32_TYPE, .converted = 16); /* INT_8 */
    assert_rows("{\"n\":-1}\n");
    ONE(2, "\xff\xff\xff\xff\0\0\0\x80", "n", INT32_TYPE, .logical = 10, .bits = -32);
    assert_rows("{\"n\":4294967295}\n{\"n\":2147483648}\n");
    ONE(2, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "n", INT64_TYPE);
    assert_rows("{\"n\":-1}\n{\"n\":9223372036854775807}\n");
    ONE(1, "\xff\xff\xff\xff\xff\xff\xff\xff", "n", INT64_TYPE, .converted = 15);
    assert_rows("{\"n\":18446744073709551615}\n");
    ONE(3, "\0\0\x80\x3f\0\0\x80\x7f\xcd\xcc\xcc\x3d", "n", FLOAT_TYPE);
    assert_rows("{\"n\":1}\n{\"n\":null}\n{\"n\":0.10000000149011612}\n");
    ONE(2, "\x9a\x99\x99\x99\x99\x99\xb9\x3f\0\0\0\0\0\0\xf8\x7f", "n", DOUBLE_TYPE);
    assert_rows("{\"n\":0.1}\n{\"n\":null}\n");
    ONE(6, "\x00\x3c\x01\x00\xff\x7b\x00\xc0\x00\x7c\x00\x7e", "n", FIXED_TYPE, .logical = 15, .size = 2);
    assert_rows("{\"n\":1}\n{\"n\":5.960464477539063e-08}\n{\"n\":65504}\n{\"n\":-2}\n{\"n\":null}\n{\"n\":null}\n");
    ONE(10, "\x05\x02", "b", BOOL_TYPE);
    assert_rows("{\"b\":true}\n{\"b\":false}\n{\"b\":true}\n{\"b\":false}\n{\"b\":false}\n{\"b\":false}\n{\"b\":false}\n{\"b\":false}\n"
                "{\"b\":false}\n{\"b\":true}\n");
}

static void decimals(void **state)
{
    (void)state;
    ONE(4, "\x7b\0\0\0\xff\xff\xff\xff\0\0\0\0\x05\0\0\0", "d", INT32_TYPE, .converted = DECIMAL, .scale = 2, .precision = 9);
    assert_rows("{\"d\":1.23}\n{\"d\":-0.01}\n{\"d\":0.00}\n{\"d\":0.05}\n");
    ONE(1, "\0\0\x64\xa7\xb3\xb6\xe0\x0d", "d", INT64_TYPE, .logical = 5, .precision = 18);
    assert_rows("{\"d\":1000000000000000000}\n");
    ONE(2, "\1\0\0\0\x85\2\0\0\0\1\0", "d", TEXT_TYPE, .logical = 5, .precision = 4, .scale = 1);
    assert_rows("{\"d\":-12.3}\n{\"d\":25.6}\n");
    ONE(2, "\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "d", FIXED_TYPE,
        .size = 16, .logical = 5, .precision = 38, .scale = 38);
    assert_rows("{\"d\":-1.70141183460469231731687303715884105728}\n{\"d\":1.70141183460469231731687303715884105727}\n");
    ONE(1, "\x21\0\0\0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "d", TEXT_TYPE, .logical = 5, .precision = 38);
    assert_refused("more than 16");
    ONE(1, "\0\0\0\0", "d", INT32_TYPE, .logical = 5, .precision = 10);
    assert_refused("\"d\" has decimals of digits that cannot be");
    ONE(1, "\0\0\0\0", "d", INT32_TYPE, .logical = 5, .precision = 9, .scale = 10);
    assert_refused("\"d\" has decimals of digits that cannot be");
    ONE(1, "\0", "d", FIXED_TYPE, .size = 17, .logical = 5, .precision = 38);
    assert_refused("\"d\" has decimals of more than 38 digits");
    ONE(1, "\0", "d", TEXT_TYPE, .logical = 5, .precision = 39);
    assert_refused("\"d\" has decimals of more than 38 digits");
}

static void times(void **state)
{
    (void)state;
    ONE(6, "\xb5\xb9\0\0\0\0\0\0\xff\xff\xff\xff\x57\x4e\0\0\x3b\x2b\0\0\x94\x3a\0\0", "d", INT32_TYPE, .converted = 7);
    assert_rows("{\"d\":\"2100-03-01\"}\n{\"d\":\"1970-01-01\"}\n{\"d\":\"1969-12-31\"}\n{\"d\":\"2024-11-28\"}\n{\"d\":\"2000-04-20\"}\n{\"d\":\"2011-01-22\"}\n");
    ONE(2, "\xe8\x03\0\0\xff\x5b\x26\x05", "t", INT32_TYPE, .converted = 8);
    assert_rows("{\"t\":\"00:00:01\"}\n{\"t\":\"23:59:59.999\"}\n");
    ONE(1, "\1\0\0\0\0\0\0\0", "t", INT64_TYPE, .logical = 7, .unit = 3);
    assert_rows("{\"t\":\"00:00:00.000000001\"}\n");
    ONE(1, "\x00\x5c\x26\x05", "t", INT32_TYPE, .converted = 8);
    assert_refused("not within a day");
    ONE(2, "\xff\xff\xff\xff\xff\xff\xff\xff\x20\xa1\x07\0\0\0\0\0", "t", INT64_TYPE, .logical = 8, .unit = 2, .utc = true);
    assert_rows("{\"t\":\"1969-12-31T23:59:59.999999Z\"}\n{\"t\":\"1970-01-01T00:00:00.5Z\"}\n");
    ONE(1, "\xe8\x03\0\0\0\0\0\0", "t", INT64_TYPE, .logical = 8, .unit = 1);
    assert_rows("{\"t\":\"1970-01-01T00:00:01\"}\n");
    ONE(1, "\xe8\x03\0\0\0\0\0\0", "t", INT64_TYPE, .converted = 10);
    assert_rows("{\"t\":\"1970-01-01T00:00:01Z\"}\n");
    ONE(1, "\0\0\0\0\0\0\0\x80", "t", INT64_TYPE, .logical = 8, .unit = 1);
    assert_rows("{\"t\":\"-292275055-05-16T16:47:04.192\"}\n");
    ONE(1, "\0\xca\x9a\x3b\0\0\0\0\x8d\x3d\x25\0", "t", INT96_TYPE);
    assert_rows("{\"t\":\"1970-01-02T00:00:01\"}\n");
    ONE(1, "\xff\xff\xff\xff\xff\xff\xff\xff\x8d\x3d\x25\0", "t", INT96_TYPE);
    assert_refused("not within a day");
    ONE(1, "\0\0\0\0\0\0\0\0", "t", INT64_TYPE, .logical = 8, .unit = 4);
    assert_refused("a unit unknown here");
}

static void texts(void **state)
{
    (void)state;
    ONE(3, "\0\0\0\0\x08\0\0\0\"\\\n\t\r\1\xc3\xa9\3\0\0\0a/b", "a \"name\"\1", TEXT_TYPE, .converted = UTF8);
    assert_rows("{\"a \\\"name\\\"\\u0001\":\"\"}\n{\"a \\\"name\\\"\\u0001\":\"\\\"\\\\\\n\\t\\r\\u0001\xc3\xa9\"}\n{\"a \\\"name\\\"\\u0001\":\"a/b\"}\n");
    ONE(1, "\2\0\0\0ok", "b", TEXT_TYPE);
    assert_rows("{\"b\":\"ok\"}\n");
    ONE(1, "\2\0\0\0o\xff", "b", TEXT_TYPE);
    assert_refused("column \"b\" holds bytes that are no UTF-8 text");
    ONE(1, "\2\0\0\0o\xff", "t", TEXT_TYPE, .logical = 1); /* the row's reader says that it is bad */
    assert_rows("{\"t\":\"o\xff\"}\n");
    ONE(1, "\x12\x34\x56\x78\x9a\xbc\xde\xf0\1\2\3\4\5\6\7\x08", "u", FIXED_TYPE, .logical = 14, .size = 16);
    assert_rows("{\"u\":\"12345678-9abc-def0-0102-030405060708\"}\n");
}

static void levels(void **state)
{
    (void)state;
    parquet_begin(&f); /* a run of 1, a run of 0, then packed 1 0 1 */
    parquet_chunk(&f, INT32_TYPE, 6);
    PAGE(PAGE_1, 0, 6, "\x06\0\0\0\4\1\2\0\3\5\7\0\0\0\x08\0\0\0\x09\0\0\0\x0a\0\0\0");
    END(6, 1, {"n", INT32_TYPE, OPTIONAL});
    assert_rows("{\"n\":7}\n{\"n\":8}\n{\"n\":null}\n{\"n\":9}\n{\"n\":null}\n{\"n\":10}\n");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 2, "\2\0\0\0\4\2\7\0\0\0\7\0\0\0");
    END(2, 1, {"n", INT32_TYPE, OPTIONAL});
    assert_refused("levels are cut short, or too high");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 2, "\2\0\0\0\2\1\7\0\0\0\7\0\0\0");
    END(2, 1, {"n", INT32_TYPE, OPTIONAL});
    assert_refused("levels are cut short, or too high");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 2, "\xff\0\0\0\4\1\7\0\0\0\7\0\0\0");
    END(2, 1, {"n", INT32_TYPE, OPTIONAL});
    assert_refused("levels are longer than the page");
    parquet_begin(&f);
    f.definition_encoding = 4;
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_1, 0, 1, "\x80\7\0\0\0");
    END(1, 1, {"n", INT32_TYPE, OPTIONAL});
    assert_refused("levels in the old encoding BIT_PACKED");
}

static void dictionaries(void **state)
{
    (void)state;
    for (int encoding = 2; encoding <= 8; encoding += 6) { /* PLAIN_DICTIONARY, RLE_DICTIONARY */
        parquet_begin(&f);
        parquet_chunk(&f, TEXT_TYPE, 6);
        PAGE(PAGE_DICTIONARY, encoding == 2 ? 2 : 0, 3, "\1\0\0\0a\0\0\0\0\2\0\0\0cc");
        PAGE(PAGE_1, encoding, 5, "\2\6\2\3\x24\0");
        PAGE(PAGE_1, 0, 1, "\1\0\0\0z"); /* the dictionary was outgrown */
        END(6, 1, {"t", TEXT_TYPE, REQUIRED, .converted = UTF8});
        assert_rows("{\"t\":\"cc\"}\n{\"t\":\"cc\"}\n{\"t\":\"cc\"}\n{\"t\":\"a\"}\n{\"t\":\"\"}\n{\"t\":\"z\"}\n");
    }
    parquet_begin(&f);
    parquet_chunk(&f, INT64_TYPE, 3);
    PAGE(PAGE_DICTIONARY, 0, 2, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0");
    PAGE(PAGE_1, 8, 3, "\1\3\2");
    END(3, 1, {"n", INT64_TYPE});
    assert_rows("{\"n\":5}\n{\"n\":6}\n{\"n\":5}\n");
    parquet_begin(&f); /* a whole group of packed numbers, and a run behind it */
    parquet_chunk(&f, INT64_TYPE, 10);
    PAGE(PAGE_DICTIONARY, 0, 2, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0");
    PAGE(PAGE_1, 8, 10, "\1\3\2\4\1");
    END(10, 1, {"n", INT64_TYPE});
    assert_rows("{\"n\":5}\n{\"n\":6}\n{\"n\":5}\n{\"n\":5}\n{\"n\":5}\n{\"n\":5}\n{\"n\":5}\n{\"n\":5}\n{\"n\":6}\n{\"n\":6}\n");
    parquet_begin(&f); /* the length of a run in five bytes, which 2^28 numbers need */
    parquet_chunk(&f, INT64_TYPE, 2);
    PAGE(PAGE_DICTIONARY, 0, 2, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0");
    PAGE(PAGE_1, 8, 2, "\1\x84\x80\x80\x80\0\1");
    END(2, 1, {"n", INT64_TYPE});
    assert_rows("{\"n\":6}\n{\"n\":6}\n");
    parquet_begin(&f); /* ... and in six */
    parquet_chunk(&f, INT64_TYPE, 2);
    PAGE(PAGE_DICTIONARY, 0, 2, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0");
    PAGE(PAGE_1, 8, 2, "\1\x84\x80\x80\x80\x80\0\1");
    END(2, 1, {"n", INT64_TYPE});
    assert_refused("missing or beyond");
    static const struct { const char *what; int count; const char *page; int size; bool none; } wrong[] = {
        {"beyond its end", 2, "\2\2\2", 3}, {"missing or beyond", 2, "\2", 1}, {"no dictionary", 2, "\0\2", 2, true},
        {"more than 32 bits", 2, "\x21\2\2", 3}, {"fewer values than it counts", 3, "\0\2", 2}, {"missing or beyond", 2, "", 0},
        {"missing or beyond", 2, "\1\3", 2}, /* packed numbers, and none there */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 1);
        if (!wrong[i].none)
            parquet_page(&f, PAGE_DICTIONARY, 0, wrong[i].count, "\5\0\0\0\6\0\0\0", 8);
        parquet_page(&f, PAGE_1, 8, 1, wrong[i].page, (size_t)wrong[i].size);
        END(1, 1, {"n", INT32_TYPE});
        assert_refused(wrong[i].what);
    }
    parquet_begin(&f); /* 16 packed numbers, and bytes for 8 */
    parquet_chunk(&f, INT32_TYPE, 9);
    PAGE(PAGE_DICTIONARY, 0, 1, "\5\0\0\0");
    PAGE(PAGE_1, 8, 9, "\1\5\0");
    END(9, 1, {"n", INT32_TYPE});
    assert_refused("missing or beyond");
    parquet_begin(&f); /* a dictionary is of its row group only */
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_DICTIONARY, 0, 1, "\5\0\0\0");
    PAGE(PAGE_1, 8, 1, "\0\2");
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_1, 8, 1, "\0\2");
    f.groups = 2;
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("no dictionary");
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 1);
    PAGE(PAGE_DICTIONARY, 0, 2, "\1\0\0\0a\x09\0\0\0");
    PAGE(PAGE_1, 8, 1, "\0\2");
    END(1, 1, {"t", TEXT_TYPE});
    assert_refused("dictionary is cut short");
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 1);
    PAGE(PAGE_DICTIONARY, 7, 2, "\1\0\0\0a\1\0\0\0b");
    PAGE(PAGE_1, 8, 1, "\0\2");
    END(1, 1, {"t", TEXT_TYPE});
    assert_refused("dictionary in an encoding");
}

static void pages_2(void **state)
{
    (void)state;
    parquet_begin(&f);
    parquet_chunk(&f, BOOL_TYPE, 3);
    f.level_bytes[1] = 2;
    PAGE(PAGE_2, 3, 3, "\6\1\2\0\0\0\3\5");
    END(3, 1, {"b", BOOL_TYPE, OPTIONAL});
    assert_rows("{\"b\":true}\n{\"b\":false}\n{\"b\":true}\n");
    parquet_begin(&f);
    parquet_chunk(&f, BOOL_TYPE, 3);
    f.level_bytes[1] = 2;
    PAGE(PAGE_2, 3, 3, "\6\0"); /* nulls only, and no values at all */
    END(3, 1, {"b", BOOL_TYPE, OPTIONAL});
    assert_rows("{\"b\":null}\n{\"b\":null}\n{\"b\":null}\n");
    parquet_begin(&f);
    f.codec = 1;
    parquet_chunk(&f, INT32_TYPE, 1);
    f.plain_2 = true; /* though the column has a codec */
    PAGE(PAGE_2, 0, 1, "\7\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_rows("{\"n\":7}\n");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    f.plain_2 = true;
    f.more = -1;
    PAGE(PAGE_2, 0, 1, "\7\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("two sizes");
    parquet_begin(&f);
    f.codec = 1;
    parquet_chunk(&f, INT32_TYPE, 1);
    f.level_bytes[1] = 12; /* of 8 compressed bytes */
    f.more = 8;
    PAGE(PAGE_2, 0, 1, "\7\0\0\0\7\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("levels are longer than the page");
    for (int k = 0; k < 3; k++) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 1);
        f.level_bytes[k % 2] = k == 0 ? -1 : k == 1 ? 5 : 3;
        f.level_bytes[1] = k == 2 ? 3 : f.level_bytes[1];
        PAGE(PAGE_2, 0, 1, "\7\0\0\0");
        END(1, 1, {"n", INT32_TYPE});
        assert_refused("levels are longer than the page");
    }
}

/* The bodies of two columns in a list: repetition 0 1 0 0, definition 2 2 1 0 of an optional list of required elements. */
#define LISTED "\2\0\0\0\3\2\3\0\0\0\3\x1a\0"

static void lists(void **state)
{
    (void)state;
    static const char values[] = LISTED "\1\0\0\0\2\0\0\0";
    const struct { struct parquet_node nodes[4]; int count; const char *rows; } cases[] = {
        {{{"l", GROUP_TYPE, OPTIONAL, 1, LIST}, {"list", GROUP_TYPE, REPEATED, 1}, {"element", INT32_TYPE}}, 3,
         "{\"l\":[1,2]}\n{\"l\":[]}\n{\"l\":null}\n"},
        {{{"l", GROUP_TYPE, OPTIONAL, 1, .logical = 3}, {"bag", GROUP_TYPE, REPEATED, 1}, {"item", INT32_TYPE}}, 3,
         "{\"l\":[1,2]}\n{\"l\":[]}\n{\"l\":null}\n"},
        {{{"l", GROUP_TYPE, OPTIONAL, 1, LIST}, {"element", INT32_TYPE, REPEATED}}, 2, "{\"l\":[1,2]}\n{\"l\":[]}\n{\"l\":null}\n"},
        {{{"l", GROUP_TYPE, OPTIONAL, 1, LIST}, {"array", GROUP_TYPE, REPEATED, 1}, {"x", INT32_TYPE}}, 3,
         "{\"l\":[{\"x\":1},{\"x\":2}]}\n{\"l\":[]}\n{\"l\":null}\n"},
        {{{"l", GROUP_TYPE, OPTIONAL, 1, LIST}, {"l_tuple", GROUP_TYPE, REPEATED, 1}, {"x", INT32_TYPE}}, 3,
         "{\"l\":[{\"x\":1},{\"x\":2}]}\n{\"l\":[]}\n{\"l\":null}\n"},
        {{{"l", GROUP_TYPE, OPTIONAL, 1}, {"r", INT32_TYPE, REPEATED}}, 2, "{\"l\":{\"r\":[1,2]}}\n{\"l\":{\"r\":[]}}\n{\"l\":null}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 4);
        PAGE(PAGE_1, 0, 4, values);
        parquet_end(&f, cases[i].nodes, cases[i].count, 1, 3);
        assert_rows(cases[i].rows);
    }
    static const struct parquet_node pair[] = {{"m", GROUP_TYPE, OPTIONAL, 1, LIST}, {"list", GROUP_TYPE, REPEATED, 2},
                                               {"a", INT32_TYPE}, {"b", INT32_TYPE}};
    static const char *const others[] = {values, "\2\0\0\0\3\0\3\0\0\0\3\x1a\0\1\0\0\0\2\0\0\0", "\2\0\0\0\3\2\3\0\0\0\3\x0a\0\1\0\0\0\2\0\0\0"};
    for (int i = 0; i < 3; i++) { /* the second column: the same, other rows, other lists */
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 4);
        PAGE(PAGE_1, 0, 4, values);
        parquet_chunk(&f, INT32_TYPE, 4);
        parquet_page(&f, PAGE_1, 0, 4, others[i], sizeof values - 1);
        parquet_end(&f, pair, 4, 1, 3);
        if (i == 0)
            assert_rows("{\"m\":[{\"a\":1,\"b\":1},{\"a\":2,\"b\":2}]}\n{\"m\":[]}\n{\"m\":null}\n");
        else
            assert_refused(i == 1 ? "not as long as those" : "do not fit those");
    }
    parquet_begin(&f); /* the first entry goes on with a list that has not begun */
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_1, 0, 1, "\2\0\0\0\2\1\2\0\0\0\2\1\1\0\0\0");
    END(1, 1, {"r", INT32_TYPE, REPEATED});
    assert_refused("fewer values than its row group has rows, or other rows");
}

static void maps(void **state)
{
    (void)state;
    const struct parquet_node nodes[] = {{"m", GROUP_TYPE, REQUIRED, 1, MAP}, {"key_value", GROUP_TYPE, REPEATED, 2},
                                         {"key", TEXT_TYPE, REQUIRED, .converted = UTF8}, {"value", INT32_TYPE, OPTIONAL}};
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 3);
    PAGE(PAGE_1, 0, 3, "\2\0\0\0\3\2\2\0\0\0\3\3\1\0\0\0a\1\0\0\0b");
    parquet_chunk(&f, INT32_TYPE, 3);
    PAGE(PAGE_1, 0, 3, "\2\0\0\0\3\2\3\0\0\0\3\6\0\7\0\0\0");
    parquet_end(&f, nodes, 4, 1, 2);
    assert_rows("{\"m\":{\"a\":7,\"b\":null}}\n{\"m\":{}}\n");
    struct parquet_node other[4];
    memcpy(other, nodes, sizeof other);
    other[2] = (struct parquet_node){"key", INT32_TYPE};
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 0);
    parquet_chunk(&f, INT32_TYPE, 0);
    parquet_end(&f, other, 4, 1, 0);
    assert_refused("\"m\" is a map whose keys are no texts");
}

/* Snappy and zstd that only store: the formats allow it, so no compressor is needed here. */
static void codecs(void **state)
{
    (void)state;
    static const char snappy[] = "\x08\x1c\1\0\0\0\2\0\0\0", zstd[] = "\x28\xb5\x2f\xfd\x20\x08\x41\0\0\1\0\0\0\2\0\0\0";
    for (int codec = 1; codec <= 6; codec += 5) {
        const char *body = codec == 1 ? snappy : zstd;
        size_t size = (codec == 1 ? sizeof snappy : sizeof zstd) - 1;
        for (int more = 0; more <= 1; more++) {
            parquet_begin(&f);
            f.codec = codec;
            parquet_chunk(&f, INT32_TYPE, 2);
            f.more = 8 + more - (int64_t)size;
            parquet_page(&f, PAGE_1, 0, 2, body, size);
            END(2, 1, {"n", INT32_TYPE});
            hidden_library = codec == 1 ? "libsnappy.so.1" : "libzstd.so.1";
            assert_int_equal(read_bytes(f.data, f.size), -1);
            assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
            assert_error_has(codec == 1 ? "x.parquet: column \"n\" is compressed, and libsnappy.so.1, which reads it, is not on this "
                                          "machine (Debian: apt-get install libsnappy1v5)"
                                        : "is compressed, and libzstd.so.1, which reads it, is not on this machine (Debian: "
                                          "apt-get install libzstd1)");
            hidden_library = NULL;
            int got = read_bytes(f.data, f.size);
            if (got < 0 && tune_error_kind() == TUNE_ERROR_CANNOT) {
                print_message("# %s\n", tune_error_message());
                assert_error_has("apt-get install");
                continue;
            }
            if (more)
                assert_refused(codec == 1 ? "after snappy" : "after zstd");
            else
                assert_rows("{\"n\":1}\n{\"n\":2}\n");
        }
    }
    static const char *const names[] = {[2] = "gzip", [3] = "LZO", [4] = "Brotli", [5] = "LZ4", [7] = "LZ4"};
    for (int codec = 2; codec <= 7; codec += codec == 5 ? 2 : 1) {
        parquet_begin(&f);
        f.codec = codec;
        parquet_chunk(&f, INT32_TYPE, 1);
        PAGE(PAGE_1, 0, 1, "\1\0\0\0");
        END(1, 1, {"n", INT32_TYPE});
        assert_refused(names[codec]);
        assert_error_has("\"n\"");
    }
}

static void checksums(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        parquet_begin(&f);
        parquet_chunk(&f, TEXT_TYPE, 1);
        f.crc = 0xc1f78f63 ^ (uint32_t)k; /* by zlib */
        PAGE(PAGE_1, 0, 1, "\1\0\0\0a");
        f.crc = 0;
        END(1, 1, {"t", TEXT_TYPE});
        if (k == 0)
            assert_rows("{\"t\":\"a\"}\n");
        else
            assert_refused("checksum");
    }
}

static void groups(void **state)
{
    (void)state;
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    PAGE(PAGE_INDEX, 0, 0, "what an index would hold");
    PAGE(PAGE_1, 0, 0, "");
    PAGE(PAGE_1, 0, 1, "\2\0\0\0");
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 2, "\3\0\0\0\4\0\0\0");
    f.groups = 2;
    END(2, 1, {"n", INT32_TYPE});
    assert_rows("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n");
    struct tune_parquet *p = open_bytes(f.data, f.size);
    assert_int_equal(tune_parquet_rows(p), 4);
    tune_parquet_free(p);
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 0);
    END(0, 1, {"n", INT32_TYPE});
    assert_rows("");
    for (int more = -1; more <= 1; more += 2) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 2);
        PAGE(PAGE_1, 0, 2, "\1\0\0\0\2\0\0\0");
        f.more_rows = more;
        END(2, 1, {"n", INT32_TYPE});
        assert_refused("do not have the rows that it counts");
    }
    for (int rows = 1; rows <= 3; rows += 2) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 2);
        PAGE(PAGE_1, 0, 2, "\1\0\0\0\2\0\0\0");
        END(rows, 1, {"n", INT32_TYPE});
        assert_refused(rows == 1 ? "more values than its row group has rows" : "fewer values than its row group has rows");
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct { struct parquet_node node; const char *what; } kinds[] = {
        {{"x", FIXED_TYPE, .size = 4}, "bytes of a fixed length"}, {{"x", TEXT_TYPE, .logical = 13}, "a type unknown here (BSON"},
        {{"x", FIXED_TYPE, .size = 12, .converted = 22}, "type unknown here"}, {{"x", INT32_TYPE, .logical = 17}, "a type unknown here"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        one(kinds[i].node, 1, "\0\0\0\0", 4);
        assert_refused(kinds[i].what);
        assert_error_has("column \"x\"");
        assert_error_has("to_json");
    }
    static const char *const encodings[] = {[4] = "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
                                            [9] = "BYTE_STREAM_SPLIT", "encoding 10"};
    for (int e = 4; e <= 10; e += e == 7 ? 2 : 1) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 1);
        PAGE(PAGE_1, e, 1, "\1\0\0\0");
        END(1, 1, {"n", INT32_TYPE});
        assert_refused(encodings[e]);
    }
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    f.encrypted = true;
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("\"n\" is encrypted");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    f.elsewhere = true;
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("\"n\" lies in another file");
    ONE(1, "\1\0\0\0", "n", INT32_TYPE);
    memcpy(f.data + f.size - 4, "PARE", 4);
    assert_refused("is encrypted");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 0);
    END(0, 1, {"v", GROUP_TYPE, OPTIONAL, 1, .logical = 16}, {"metadata", INT32_TYPE});
    assert_refused("\"v\" holds a type unknown here, made of several columns");
}

static void damaged(void **state)
{
    (void)state;
    assert_null(open_bytes("PAR1", 4));
    assert_error_has("too few for a Parquet file");
    assert_null(open_bytes("version https://git-lfs.github.com/spec/v1", 42));
    assert_error_has("does not end as a Parquet file does");
    assert_null(open_bytes("PAR1\x10\0\0\0PAR1", 12));
    assert_error_has("footer would be longer");
    assert_null(open_bytes("PAR1\0\0\0\0PAR1", 12));
    assert_error_has("its footer cannot be read");
    assert_null(tune_parquet_open("absent.parquet", 0));
    assert_error_has("absent.parquet");

    static const struct { const char *what; struct parquet_node nodes[3]; int count, fields; } schemas[] = {
        {"it has no columns", {{0}}, 0, 0}, {"groups without their columns", {{"a", INT32_TYPE}}, 1, 2},
        {"belong to no group", {{"a", INT32_TYPE}, {"b", INT32_TYPE}}, 2, 1},
        {"a group without columns", {{"g", GROUP_TYPE, OPTIONAL, 0}, {"a", INT32_TYPE}}, 2, 2},
        {"schema cannot be read", {{"a\xff", INT32_TYPE}}, 1, 1}, {"schema cannot be read", {{"a", INT32_TYPE, 3}}, 1, 1},
        {"does not have the schema's columns", {{"a", INT32_TYPE}, {"b", INT32_TYPE}}, 2, 2},
        {"its type is another", {{"a", INT64_TYPE}}, 1, 1},
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, 1);
        PAGE(PAGE_1, 0, 1, "\1\0\0\0");
        parquet_end(&f, schemas[i].nodes, schemas[i].count, schemas[i].fields, 1);
        assert_refused(schemas[i].count ? schemas[i].what : "its");
    }
    struct parquet_node deep[40];
    for (int i = 0; i < 40; i++)
        deep[i] = (struct parquet_node){"g", i < 39 ? GROUP_TYPE : INT32_TYPE, OPTIONAL, 1};
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 0);
    parquet_end(&f, deep, 40, 1, 0);
    assert_refused("nested too deep");

    for (int k = 0; k < 6; k++) {
        static const char *const what[] = {"outside of the file", "outside of the file", "outside of the file",
                                           "fewer entries than it counts", "more entries than it counts", "two sizes"};
        parquet_begin(&f);
        parquet_chunk(&f, INT32_TYPE, k == 3 ? 3 : k == 4 ? 1 : 2);
        f.more = k == 5 ? -1 : 0;
        PAGE(PAGE_1, 0, 2, "\1\0\0\0\2\0\0\0");
        if (k < 3)
            f.chunks[0].offset = k == 0 ? 3 : k == 1 ? 1 << 20 : -5;
        END(k == 3 ? 3 : k == 4 ? 1 : 2, 1, {"n", INT32_TYPE});
        assert_refused(what[k]);
    }
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    f.more_packed = 1 << 20;
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("does not fit into the file");
    ONE(2, "\1\0\0\0\2\0\0", "n", INT32_TYPE);
    assert_refused("values are cut short");
    ONE(1, "\2\0\0\0a", "t", TEXT_TYPE);
    assert_refused("values are cut short");
    ONE(9, "\1", "b", BOOL_TYPE);
    assert_refused("values are cut short");
}

static void thrift(void **state)
{
    (void)state;
    struct tune_thrift t;
    size_t size;
    int id = 0;
    tune_thrift_start(&t, "\x18\3abc\x16\x03\x00", 8);
    assert_true(tune_thrift_field(&t, &id) && id == 1);
    assert_memory_equal(tune_thrift_bytes(&t, &size), "abc", 3);
    assert_true(size == 3 && tune_thrift_field(&t, &id) && id == 2 && tune_thrift_int(&t) == -2);
    assert_false(tune_thrift_field(&t, &id) || t.bad);
    tune_thrift_start(&t, "\x18\4abc", 5); /* a text of 4 bytes, and 3 are there */
    id = 0;
    assert_true(tune_thrift_field(&t, &id));
    tune_thrift_bytes(&t, &size);
    assert_true(t.bad && size == 0);
    tune_thrift_start(&t, "\x19\x65\1\2\3\4\5", 7); /* a list of 6 numbers, and 5 are there */
    id = 0;
    assert_true(tune_thrift_field(&t, &id));
    assert_int_equal(tune_thrift_list(&t, TUNE_THRIFT_I32), 0);
    assert_true(t.bad);
    static const char deep[] = "\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c"
                               "\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    tune_thrift_start(&t, deep, sizeof deep);
    id = 0;
    assert_true(tune_thrift_field(&t, &id));
    tune_thrift_skip(&t);
    assert_true(t.bad);
}

/* A page that reaches into the footer; a column of type Null; the longest number of Thrift. */
static void ends_and_types(void **state)
{
    (void)state;
    struct tune_thrift t;
    int id = 0;
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    f.more = f.more_packed = 5;
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("a page does not fit into the file");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 2);
    PAGE(PAGE_1, 0, 2, "\2\0\0\0\4\0");
    END(2, 1, {"n", INT32_TYPE, OPTIONAL, .logical = 11});
    assert_rows("{\"n\":null}\n{\"n\":null}\n");
    tune_thrift_start(&t, "\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0", 12);
    assert_true(tune_thrift_field(&t, &id));
    assert_true(tune_thrift_int(&t) == INT64_MIN && !t.bad);
}

/* A few bytes that would become gigabytes. */
static void bombs(void **state)
{
    (void)state;
    static char dictionary[(1 << 20) + 4];
    memset(dictionary, 'x', sizeof dictionary);
    memcpy(dictionary, "\0\0\x10\0", 4);
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 100);
    parquet_page(&f, PAGE_DICTIONARY, 0, 1, dictionary, sizeof dictionary);
    PAGE(PAGE_1, 8, 100, "\6\0\0\0\2\0\xc6\1\1\0\3\0\0\0\xc8\1\1\0\xc8\1");
    END(1, 1, {"r", TEXT_TYPE, REPEATED, .converted = UTF8});
    assert_refused("row 1 is longer than 64 MiB as JSON");
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, 1);
    f.more = (int64_t)1 << 31;
    PAGE(PAGE_1, 0, 1, "\1\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("more than 1 GiB");
    parquet_begin(&f);
    f.codec = 1; /* snappy */
    parquet_chunk(&f, INT32_TYPE, 1);
    f.more = (int64_t)300 << 20;
    PAGE(PAGE_1, 0, 1, "\4\14\1\0\0\0");
    END(1, 1, {"n", INT32_TYPE});
    assert_refused("more than 256 MiB of memory");
    assert_int_equal(tune_parquet_most(1000, 0), TUNE_EXPANSION_FREE);
    assert_int_equal(tune_parquet_most((int64_t)1 << 30, 0), (int64_t)100 << 30);
    assert_int_equal(tune_parquet_most((int64_t)1 << 30, 2.5), (int64_t)5 << 29);
}

/* A file with much in it, for changes of its bytes. */
static void rich_file(void)
{
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 4);
    PAGE(PAGE_DICTIONARY, 0, 2, "\1\0\0\0a\2\0\0\0bb");
    PAGE(PAGE_1, 8, 4, LISTED "\1\3\2");
    parquet_chunk(&f, INT64_TYPE, 3);
    f.level_bytes[1] = 2;
    PAGE(PAGE_2, 0, 3, "\3\5\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0");
    parquet_chunk(&f, BOOL_TYPE, 3);
    PAGE(PAGE_1, 0, 3, "\5");
    END(3, 3, {"l", GROUP_TYPE, OPTIONAL, 1, LIST}, {"list", GROUP_TYPE, REPEATED, 1}, {"element", TEXT_TYPE, .converted = UTF8},
        {"t", INT64_TYPE, OPTIONAL, .logical = 8, .unit = 2, .utc = true}, {"b", BOOL_TYPE});
    assert_rows("{\"l\":[\"a\",\"bb\"],\"t\":\"1970-01-01T00:00:00.000001Z\",\"b\":true}\n{\"l\":[],\"t\":null,\"b\":false}\n"
                "{\"l\":null,\"t\":\"1970-01-01T00:00:00.000002Z\",\"b\":true}\n");
}

static void every_byte(void **state)
{
    (void)state;
    static const uint8_t changes[] = {1, 0x80, 0xff, 0x10};
    int read = 0, tried = 0;
    rich_file();
    for (size_t i = 4; i < f.size; i++)
        for (size_t k = 0; k < sizeof changes; k++, tried++) {
            f.data[i] ^= changes[k];
            int status = read_bytes(f.data, f.size);
            read += status == 0;
            assert_true(status == 0 || *tune_error_message());
            f.data[i] ^= changes[k];
        }
    assert_true(read > 0 && read < tried / 2);
    for (size_t size = 0; size < f.size; size++)
        assert_int_equal(read_bytes(f.data, size), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(decimals), cmocka_unit_test(times), cmocka_unit_test(texts),
        cmocka_unit_test(levels), cmocka_unit_test(dictionaries), cmocka_unit_test(pages_2), cmocka_unit_test(lists),
        cmocka_unit_test(maps), cmocka_unit_test(codecs), cmocka_unit_test(checksums), cmocka_unit_test(groups),
        cmocka_unit_test(refused), cmocka_unit_test(damaged), cmocka_unit_test(thrift), cmocka_unit_test(ends_and_types), cmocka_unit_test(bombs), cmocka_unit_test(every_byte),
    };
    int status = cmocka_run_group_tests(tests, test_home_begin, test_home_end);
    free(f.data);
    return status;
}
