/* test_answers.c - printers of answers: text, CSV, JSON and Parquet of tables made by hand. Parquet is read back by our reader. */
#include <sys/stat.h>

#include "test.h"

#include "files/file.h"
#include "files/parquet.h"
#include "sweeps/answers/answer_parts.h"
#include "sweeps/answers/print.h"

static const char *const names[] = {"text", "whole", "number", "time", "bool", "value", "list", "counts", "mixed", "odd, \"name\""};
enum { COLUMNS = 10 };

static const char hard[] = "a \"b\", c\nd\t\xc3\xa9";

static struct tune_answer_table *begin(const char *const *columns, int count)
{
    struct tune_answer_table *a = tune_answer_new();
    assert_got(a);
    tune_answer_columns(a, columns, count);
    return a;
}

static struct tune_answer_table *finished(struct tune_answer_table *a)
{
    assert_got(a = tune_answer_finish(a));
    return a;
}

/* Three rows: values, hard values, and none at all. The last column has no value. */
static struct tune_answer_table *all_types(void)
{
    static const double pair[] = {1.5, -2}, infinite[] = {INFINITY, 0.1}, counts[] = {3, 4, 5};
    const struct tune_value items[] = {tune_value_int(1), tune_value_text("x")};
    const struct tune_value list = {.type = TUNE_VALUE_LIST, .list = {items, 2}}, yes = tune_value_bool(true), no = tune_value_bool(false);
    struct tune_answer_table *a = begin(names, COLUMNS);
    a->columns[2].unit = "s";
    a->columns[3].unit = "s since 1970";
    a->columns[9].unit = "\"/s";
    tune_answer_text(a, "plain");
    tune_answer_whole(a, INT64_MAX);
    tune_answer_figure(a, 0.1, false);
    tune_answer_time(a, 1700000000.25);
    tune_answer_space_value(a, &yes);
    tune_answer_space_value(a, &list);
    tune_answer_figures(a, pair, 2, false);
    tune_answer_figures(a, counts, 3, true);
    tune_answer_whole(a, 7);
    tune_answer_text(a, NULL);
    assert_ok(tune_answer_end_row(a));
    tune_answer_text(a, hard);
    tune_answer_whole(a, INT64_MIN);
    tune_answer_figure(a, -INFINITY, false);
    tune_answer_time(a, -0.5);
    tune_answer_space_value(a, &no);
    tune_answer_space_value(a, &list);
    tune_answer_figures(a, infinite, 2, false);
    tune_answer_whole(a, 6);
    tune_answer_text(a, "");
    tune_answer_text(a, NULL);
    assert_ok(tune_answer_end_row(a));
    for (int i = 0; i < COLUMNS; i++)
        tune_answer_text(a, i ? NULL : "");
    assert_ok(tune_answer_end_row(a));
    return finished(a);
}

enum form { CSV, JSON, LINES, PARQUET, TEXT };
static int print(const struct tune_answer_table *a, enum form form, FILE *out)
{
    switch (form) {
    case CSV: return tune_answer_csv(a, out);
    case PARQUET: return tune_answer_parquet(a, out);
    case TEXT: return tune_answer_print(a, 0, false, out);
    default: return tune_answer_json(a, form == LINES, out);
    }
}

static void assert_printed(const struct tune_answer_table *a, enum form form, const char *want)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_ok(print(a, form, out));
    fclose(out);
    assert_string_equal(text, want);
    free(text);
}

static void write_parquet(const struct tune_answer_table *a)
{
    FILE *out = fopen("x.parquet", "wb");
    assert_ok(tune_answer_parquet(a, out));
    assert_int_equal(fclose(out), 0);
}

/* Its rows as our reader has them. The caller frees them. */
static char *read_back(const struct tune_answer_table *a)
{
    char *text;
    size_t size;
    struct tune_text line;
    int more;
    write_parquet(a);
    FILE *out = open_memstream(&text, &size);
    struct tune_parquet *p = tune_parquet_open("x.parquet", 0);
    assert_got(p);
    assert_int_equal(tune_parquet_rows(p), a->rows);
    while ((more = tune_parquet_next(p, &line)) == 1)
        fprintf(out, "%.*s\n", (int)line.size, line.data);
    assert_ok(more);
    tune_parquet_free(p);
    fclose(out);
    return text;
}

static void assert_read_back(const struct tune_answer_table *a, const char *want)
{
    char *got = read_back(a);
    assert_string_equal(got, want);
    free(got);
}

static void test_csv(void **state)
{
    (void)state;
    struct tune_answer_table *a = all_types();
    assert_printed(a, CSV,
                   "text,whole,number,time,bool,value,list,counts,mixed,\"odd, \"\"name\"\"\"\n"
                   "plain,9223372036854775807,0.1,2023-11-14T22:13:20.250Z,1,\"[1, 'x']\",\"[1.5, -2.0]\",\"[3, 4, 5]\",7,\n"
                   "\"a \"\"b\"\", c\nd\t\xc3\xa9\",-9223372036854775808,-inf,1969-12-31T23:59:59.500Z,0,\"[1, 'x']\",\"[inf, 0.1]\",6,\"\",\n"
                   "\"\",,,,,,,,,\n");
    a->numbered = true;
    a->rows = 1;
    a->count = 1; /* the first cell alone */
    assert_printed(a, CSV, ",text\n0,plain\n");
    a->count = COLUMNS;
    tune_answer_free(a);
}

static void test_json(void **state)
{
    (void)state;
    struct tune_answer_table *a = all_types();
    static const char *const want[] = {
        "{\"text\": \"plain\", \"whole\": 9223372036854775807, \"number\": 0.1, \"time\": \"2023-11-14T22:13:20.250Z\", \"bool\": true, "
        "\"value\": [1, \"x\"], \"list\": [1.5, -2.0], \"counts\": [3, 4, 5], \"mixed\": 7, \"odd, \\\"name\\\"\": null}",
        "{\"text\": \"a \\\"b\\\", c\\nd\\t\xc3\xa9\", \"whole\": -9223372036854775808, \"number\": \"-inf\", \"time\": \"1969-12-31T23:59:59.500Z\", "
        "\"bool\": false, \"value\": [1, \"x\"], \"list\": [\"inf\", 0.1], \"counts\": 6, \"mixed\": \"\", \"odd, \\\"name\\\"\": null}",
        "{\"text\": \"\", \"whole\": null, \"number\": null, \"time\": null, \"bool\": null, \"value\": null, \"list\": null, \"counts\": null, "
        "\"mixed\": null, \"odd, \\\"name\\\"\": null}"};
    char text[4096];
    snprintf(text, sizeof text, "[\n  %s,\n  %s,\n  %s\n]\n", want[0], want[1], want[2]);
    assert_printed(a, JSON, text);
    snprintf(text, sizeof text, "%s\n%s\n%s\n", want[0], want[1], want[2]);
    assert_printed(a, LINES, text);
    tune_answer_free(a);
}

static void test_text(void **state)
{
    (void)state;
    static const char *const few[] = {"name", "figure"};
    static const double pair[] = {12, 13};
    struct tune_answer_table *a = begin(few, 2);
    a->none = "nothing was found";
    tune_answer_add_note(a, TUNE_NOTE_ABOVE, "above\x1b[31m");
    tune_answer_add_note(a, TUNE_NOTE_BELOW, "below");
    tune_answer_add_note(a, TUNE_NOTE_WARNING, "a warning");
    assert_printed(a, TEXT, "# above?[31m\n# nothing was found\n# below\n");
    tune_answer_text(a, "");
    tune_answer_figures(a, pair, 2, false);
    assert_ok(tune_answer_end_row(a));
    tune_answer_text(a, "x");
    tune_answer_figure(a, 1.23456789, false);
    assert_ok(tune_answer_end_row(a));
    assert_printed(finished(a), TEXT, "# above?[31m\nname           figure\n\"\"    12.5 +-0.71 (2)\nx              1.2346\n# below\n");
    tune_answer_free(a);
}

/* An infinity is no JSON, so our reader shows null; its bytes are looked for. */
static void test_parquet_types(void **state)
{
    (void)state;
    struct tune_answer_table *a = all_types();
    const double infinity = -INFINITY;
    size_t size;
    assert_read_back(a,
                     "{\"text\":\"plain\",\"whole\":9223372036854775807,\"number\":0.1,\"time\":\"2023-11-14T22:13:20.25Z\",\"bool\":true,"
                     "\"value\":\"[1, 'x']\",\"list\":[1.5,-2],\"counts\":[3,4,5],\"mixed\":\"7\",\"odd, \\\"name\\\"\":null}\n"
                     "{\"text\":\"a \\\"b\\\", c\\nd\\t\xc3\xa9\",\"whole\":-9223372036854775808,\"number\":null,\"time\":\"1969-12-31T23:59:59.5Z\","
                     "\"bool\":false,\"value\":\"[1, 'x']\",\"list\":[null,0.1],\"counts\":[6],\"mixed\":\"\",\"odd, \\\"name\\\"\":null}\n"
                     "{\"text\":\"\",\"whole\":null,\"number\":null,\"time\":null,\"bool\":null,\"value\":null,\"list\":null,\"counts\":null,"
                     "\"mixed\":null,\"odd, \\\"name\\\"\":null}\n");
    char *file;
    assert_ok(tune_file_read("x.parquet", 1 << 20, &file, &size));
    assert_non_null(memmem(file, size, &infinity, sizeof infinity));
    assert_non_null(memmem(file, size, "{\"units\": {\"number\": \"s\", \"odd, \\\"name\\\"\": \"\\\"/s\"}}", 48));
    free(file);
    tune_answer_free(a);
}

/* Which numbers make which type. */
static void test_parquet_numbers(void **state)
{
    (void)state;
    static const char *const columns[] = {"doubles", "texts", "lists", "fractions"};
    static const double counts[] = {1, 2}, fractions[] = {1, 2.5};
    struct tune_answer_table *a = begin(columns, 4);
    tune_answer_whole(a, (int64_t)1 << 53);
    tune_answer_whole(a, ((int64_t)1 << 53) + 1);
    tune_answer_figures(a, counts, 2, true);
    tune_answer_figures(a, fractions, 2, true);
    assert_ok(tune_answer_end_row(a));
    tune_answer_figure(a, 0.5, false);
    tune_answer_figure(a, 0.5, false);
    tune_answer_figure(a, 0.5, false);
    tune_answer_whole(a, -3);
    assert_ok(tune_answer_end_row(a));
    assert_read_back(finished(a), "{\"doubles\":9007199254740992,\"texts\":\"9007199254740993\",\"lists\":[1,2],\"fractions\":[1,2.5]}\n"
                                  "{\"doubles\":0.5,\"texts\":\"0.5\",\"lists\":[0.5],\"fractions\":[-3]}\n");
    tune_answer_free(a);
}

/* Rows enough for three row groups: columns with a dictionary and without, pages that end between rows. */
static const char *text_of_row(int64_t i, char text[64])
{
    snprintf(text, 64, "experiment-%d", (int)(i / 7 % 600));
    return i % 5 == 3 ? NULL : i % 11 == 0 ? "" : text;
}

static void test_parquet_many(void **state)
{
    (void)state;
    static const char *const columns[] = {"i", "text", "bool", "list", "same", "few"};
    enum { ROWS = 230001 };
    struct tune_answer_table *a = begin(columns, 6);
    const struct tune_value yes = tune_value_bool(true), no = tune_value_bool(false);
    char text[64], *got, *at;
    for (int64_t i = 0; i < ROWS; i++) {
        const double list[] = {(double)i + 0.5, (double)i, 3}, few[] = {(double)(i % 9), (double)(i % 10), -1};
        tune_answer_whole(a, i);
        tune_answer_text(a, text_of_row(i, text));
        tune_answer_space_value(a, i / 13 % 2 || i % 3 == 0 ? &yes : &no);
        tune_answer_figures(a, list, (int)(i % 4), false);
        tune_answer_whole(a, 1);
        tune_answer_figures(a, few, 3, true);
        assert_ok(tune_answer_end_row(a));
    }
    got = at = read_back(finished(a));
    for (int64_t i = 0; i < ROWS; i++) {
        char want[256], list[3][64];
        const char *word = text_of_row(i, text);
        snprintf(list[0], 64, "%lld.5", (long long)i);
        snprintf(list[1], 64, ",%lld", (long long)i);
        int size = snprintf(want, sizeof want, "{\"i\":%lld,\"text\":%s%s%s,\"bool\":%s,\"list\":%s%s%s%s%s,\"same\":1,\"few\":[%d,%d,-1]}\n", (long long)i, word ? "\"" : "",
                            word ? word : "null", word ? "\"" : "", i / 13 % 2 || i % 3 == 0 ? "true" : "false", i % 4 > 0 ? "[" : "null",
                            i % 4 > 0 ? list[0] : "", i % 4 > 1 ? list[1] : "", i % 4 > 2 ? ",3" : "", i % 4 > 0 ? "]" : "",
                            (int)(i % 9), (int)(i % 10));
        if (strncmp(at, want, (size_t)size))
            fail_msg("row %lld: wanted %s, got %.200s", (long long)i, want, at);
        at += size;
    }
    assert_int_equal(*at, 0);
    free(got);
    tune_answer_free(a);
}

/* Repeated texts take a number of few bits each. */
static void test_parquet_small(void **state)
{
    (void)state;
    static const char *const columns[] = {"text"};
    struct tune_answer_table *a = begin(columns, 1);
    for (int i = 0; i < 10000; i++) {
        tune_answer_text(a, i % 3 ? "finetune_full_benchmark-v1.0.0" : "finetune_lora_benchmark-v1.0.0");
        assert_ok(tune_answer_end_row(a));
    }
    write_parquet(finished(a));
    struct stat st;
    assert_int_equal(stat("x.parquet", &st), 0);
    assert_in_range(st.st_size, 10000 / 8, 2000);
    tune_answer_free(a);
}

static void test_no_rows(void **state)
{
    (void)state;
    struct tune_answer_table *a = finished(begin(names, 2));
    assert_printed(a, CSV, "text,whole\n");
    assert_printed(a, JSON, "[]\n");
    assert_printed(a, LINES, "");
    assert_read_back(a, "");
    tune_answer_free(a);
}

static void test_parquet_refuses(void **state)
{
    (void)state;
    struct tune_answer_table *a = finished(begin(names, 0));
    FILE *out = fopen("x.parquet", "wb");
    assert_int_equal(tune_answer_parquet(a, out), -1);
    assert_error_has("there is nothing to write: the answer has no column, and a Parquet file needs at least one");
    tune_answer_free(a);
    static const char *const twice[] = {"a", "b", "a"};
    a = finished(begin(twice, 3));
    assert_int_equal(tune_answer_parquet(a, out), -1);
    assert_error_has("two columns have the name \"a\", which readers of Parquet do not accept; choose one of them, or write CSV");
    tune_answer_free(a);
    a = begin(names, 1);
    tune_answer_text(a, "Latin-1: \xe9");
    assert_ok(tune_answer_end_row(a));
    assert_int_equal(tune_answer_parquet(finished(a), out), -1);
    assert_error_has("column \"text\" has a text that is not UTF-8, which Parquet does not allow; write CSV");
    tune_answer_free(a);
    fclose(out);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct tune_answer_table *a = all_types();
    a->none = "";
    for (enum form form = CSV; form <= TEXT; form++) {
        FILE *out = fopen("/dev/full", "wb");
        if (!out)
            skip();
        setvbuf(out, NULL, _IONBF, 0);
        assert_int_equal(print(a, form, out), -1);
        assert_error_has("the answer cannot be written: ");
        fclose(out);
    }
    FILE *buffered = fopen("/dev/full", "wb"); /* the error comes with the last bytes */
    assert_int_equal(tune_answer_parquet(a, buffered), -1);
    assert_error_has("the answer cannot be written: ");
    fclose(buffered);
    tune_answer_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),           cmocka_unit_test(test_json),          cmocka_unit_test(test_text),
        cmocka_unit_test(test_parquet_types), cmocka_unit_test(test_parquet_numbers), cmocka_unit_test(test_parquet_many),
        cmocka_unit_test(test_parquet_small), cmocka_unit_test(test_no_rows),       cmocka_unit_test(test_parquet_refuses),
        cmocka_unit_test(test_full_disk)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
