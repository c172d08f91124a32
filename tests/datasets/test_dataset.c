/* test_dataset.c - rows, fields, masks, cuts, and files that mean harm. */
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>

#include "byte_tokenizer.h"

#include "core/random.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/survey.h"
#include "files/json.h"
#include "flags/flags.h"

static const char *path_of(const char *name)
{
    static char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct tune_dataset *open_with(const char *name, const void *data, size_t size, struct tune_dataset_options o)
{
    test_write(folder, name, data, size);
    if (o.max_length == 0)
        o.max_length = 4096;
    return tune_dataset_open(path_of(name), &o, bytes);
}

#define OPEN(name, text) open_with(name, text, sizeof(text) - 1, (struct tune_dataset_options){0})
#define OPEN_AS(name, text, ...) open_with(name, text, sizeof(text) - 1, (struct tune_dataset_options){__VA_ARGS__})

/* The row's text, from its tokens; the caller frees nothing. */
static const char *text_of(struct tune_dataset *d, int64_t row)
{
    static char out[4][65536];
    static int turn;
    struct tune_example x = {0};
    char *text, *to = out[turn++ % 4];
    size_t size;
    assert_ok(tune_dataset_get(d, row, &x));
    assert_ok(tune_tokenizer_decode(bytes, x.ids, x.count, false, &text, &size));
    snprintf(to, sizeof out[0], "%s", text);
    free(text);
    tune_example_free(&x);
    return to;
}

/* "..TT": masked and trained tokens of a row. */
static const char *mask_of(struct tune_dataset *d, int64_t row)
{
    static char out[2][8192];
    static int turn;
    struct tune_example x = {0};
    char *to = out[turn++ % 2];
    assert_ok(tune_dataset_get(d, row, &x));
    for (int64_t i = 0; i < x.count; i++)
        to[i] = x.trained[i] ? 'T' : '.';
    to[x.count] = 0;
    tune_example_free(&x);
    return to;
}

static void assert_row_fails(struct tune_dataset *d, int64_t row, const char *with)
{
    struct tune_example x = {0};
    assert_got(d);
    assert_int_equal(tune_dataset_get(d, row, &x), -1);
    assert_error_has(with);
    assert_int_equal(x.count, 0);
    tune_example_free(&x);
}

static void assert_source(struct tune_dataset *d, int64_t row, const char *name, int line)
{
    char got[TUNE_DATASET_SOURCE_SIZE], expected[TUNE_DATASET_SOURCE_SIZE];
    snprintf(expected, sizeof expected, "%s:%d", path_of(name), line);
    assert_string_equal(tune_dataset_source(d, row, got, sizeof got), expected);
}

static void jsonl_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("a.jsonl", "\xef\xbb\xbf\r\n{\"text\": \"one\"}\r\n\r\n  \t\n{\"text\":\"two\",\"id\":2}\n"
                                             "\n\n{\"id\": [\"x\", {\"text\": \"no\"}], \"text\": \"th\\u00e9\\nee\"}");
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_string_equal(tune_dataset_text_field(d), "text");
    assert_string_equal(text_of(d, 0), "one");
    assert_string_equal(text_of(d, 1), "two");
    assert_string_equal(text_of(d, 2), "th\xc3\xa9\nee");
    assert_source(d, 0, "a.jsonl", 2);
    assert_source(d, 1, "a.jsonl", 5);
    assert_source(d, 2, "a.jsonl", 8);
    assert_string_equal(mask_of(d, 0), ".TT"); /* nothing predicts the first token */
    tune_dataset_free(d);
}

static void json_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("a.json", "\xef\xbb\xbf [\n  {\n    \"text\": \"a ] \\\" , [ {\"\n  }\n  ,\n"
                                            "  {\"text\": \"back\\\\\"}, {\"more\": [[1, 2], {\"x\": \"]\"}],\n"
                                            "  \"text\": \"c\"} ]\n\n");
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_string_equal(text_of(d, 0), "a ] \" , [ {");
    assert_string_equal(text_of(d, 1), "back\\");
    assert_string_equal(text_of(d, 2), "c");
    assert_source(d, 0, "a.json", 2);
    assert_source(d, 1, "a.json", 6);
    assert_source(d, 2, "a.json", 6);
    tune_dataset_free(d);
    d = OPEN("lines.json", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n"); /* JSONL by another name is common */
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 2);
    tune_dataset_free(d);
}

static void text_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("a.txt", "\n \r\n  first\r\nsecond \r\n\t\r\n\nthird\n\n\n\nlast line  \n\xc3\xa9");
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_null(tune_dataset_text_field(d));
    assert_string_equal(text_of(d, 0), "  first\nsecond");
    assert_string_equal(text_of(d, 1), "third");
    assert_string_equal(text_of(d, 2), "last line  \n\xc3\xa9");
    assert_source(d, 0, "a.txt", 3);
    assert_source(d, 1, "a.txt", 7);
    assert_source(d, 2, "a.txt", 11);
    tune_dataset_free(d);
}

/* Every row of a file of many is found again, in any order, with its line. */
static void many_rows(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const char *const names[] = {"many.jsonl", "many.json", "many.txt"};
    for (int format = 0; format < 3; format++) {
        char *data = malloc(N * 64), expected[64];
        size_t n = 0;
        int line[N], at = 1 + (format == 1);
        n += (size_t)sprintf(data, "%s", format == 1 ? "[\n" : "");
        for (int i = 0; i < N; i++) {
            int gaps = (int)(tune_random_u64(7, 0, (uint64_t)i) % 3) + (format == 2 && i > 0);
            for (int g = 0; g < gaps; g++, at++)
                data[n++] = '\n';
            line[i] = at++;
            n += (size_t)sprintf(data + n, format == 2 ? "row %d\n" : "{\"text\": \"row %d\"}%s\n", i,
                                 format == 1 && i < N - 1 ? "," : "");
        }
        n += (size_t)sprintf(data + n, "%s", format == 1 ? "]" : "");
        struct tune_dataset *d = open_with(names[format], data, n, (struct tune_dataset_options){0});
        assert_got(d);
        assert_int_equal(tune_dataset_rows(d), N);
        for (int k = 0; k < N; k++) {
            int i = (int)tune_random_permute(1, 2, N, (uint64_t)k);
            snprintf(expected, sizeof expected, "row %d", i);
            assert_string_equal(text_of(d, i), expected);
            assert_source(d, i, names[format], line[i]);
        }
        assert_row_fails(d, N, "row 3000 of a set of 3000 rows");
        assert_row_fails(d, -1, "row -1");
        tune_dataset_free(d);
        free(data);
    }
}

static void fields(void **state)
{
    (void)state;
    static const struct {
        const char *row, *field;
    } found[] = {
        {"{\"id\": \"7\", \"content\": \"c\", \"output\": \"o\", \"text\": \"t\"}", "text"},
        {"{\"instruction\": \"i\", \"output\": \"o\", \"content\": \"c\"}", "output"},
        {"{\"id\": \"7\", \"content\": \"c\"}", "content"},
        {"{\"id\": 7, \"body\": \"b\", \"tags\": [\"x\"]}", "body"},
        {"{\"text\": null, \"id\": \"7\"}", "text"}, /* an error of this row, not a reason to train on ids */
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct tune_dataset *d = open_with("f.jsonl", found[i].row, strlen(found[i].row), (struct tune_dataset_options){0});
        assert_got(d);
        assert_string_equal(tune_dataset_text_field(d), found[i].field);
        tune_dataset_free(d);
    }
    assert_null(OPEN("f.jsonl", "\n{\"question\": \"q\", \"answer\": \"a\"}"));
    assert_error_has("f.jsonl:2: cannot tell which field");
    assert_error_has("question, answer");
    assert_error_has("`text_field`");
    assert_null(OPEN("f.jsonl", "{\"a\": 1}"));
    assert_null(OPEN("f.jsonl", "{}"));
    assert_error_has("this row has: none");
    struct tune_dataset *d = OPEN_AS("f.jsonl", "{\"question\": \"q\", \"answer\": \"a\"}", .text_field = "answer");
    assert_got(d);
    assert_string_equal(text_of(d, 0), "a");
    tune_dataset_free(d);
    assert_null(OPEN_AS("f.jsonl", "{\"question\": \"q\", \"answer\": \"a\"}", .text_field = "anwser"));
    assert_error_has("f.jsonl: no field \"anwser\" (the nearest is answer); its rows have: question, answer (choose with `text_field`)");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_null(OPEN_AS("f.txt", "hello", .text_field = "text"));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

/* Each line but the first is bad in its own way. */
static const char bad_lines[] =
    "{\"text\": \"good\"}\n"
    "{\"text\": \"no end}\n"                    /* 1 */
    "{\"txt\": \"x\", \"other\": 1}\n"          /* 2 */
    "{\"text\": 12}\n"                          /* 3 */
    "{\"text\": \"a\", \"text\": \"b\"}\n"      /* 4 */
    "{\"text\": \"\\ud800\"}\n"                 /* 5 */
    "{\"text\": \"\xff\"}\n"                    /* 6 */
    "{\"text\": \"a\0b\"}\n"                    /* 7 */
    "[\"text\"]\n"                              /* 8 */
    "{\"text\": \"a\"} x\n"                     /* 9 */
    "{\"text\": \"a\", \"b\": nul}\n"           /* 10 */
    "{\"text\": null}\n"                        /* 11 */
    "{\"text\": \"last\"}";
static const char *const bad_words[] = {
    NULL, "bad.jsonl:2:", "no field \"text\"; this row has: txt, other", "is a number, expected a string", "a second time",
    "lone surrogate", "invalid UTF-8", "0x00", "an object", "nothing more", "bad.jsonl:11:", "is null, expected a string",
};

static void bad_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("bad.jsonl", bad_lines);
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 13);
    for (int i = 1; i < 12; i++) {
        char where[64];
        snprintf(where, sizeof where, "bad.jsonl:%d:", i + 1);
        assert_row_fails(d, i, where);
        assert_error_has(bad_words[i]);
    }
    assert_string_equal(text_of(d, 12), "last");
    assert_int_equal(tune_dataset_counts(d).bad, 11);
    tune_dataset_free(d);

    struct tune_example x = {0};
    d = OPEN_AS("bad.jsonl", bad_lines, .skip_bad_rows = true);
    assert_got(d);
    for (int i = 0; i < 13; i++) {
        assert_ok(tune_dataset_get(d, i, &x));
        assert_int_equal(x.bad, i > 0 && i < 12);
        assert_true(x.bad == (x.count == 0));
    }
    assert_int_equal(tune_dataset_counts(d).rows, 13);
    assert_int_equal(tune_dataset_counts(d).bad, 11);
    tune_example_free(&x);
    tune_dataset_free(d);

    d = OPEN_AS("bad.jsonl", "{\n{}\n{\"id\": 3}\n{\"text\": \"yes\"}\n", .skip_bad_rows = true, .text_field = "text");
    assert_got(d);
    tune_dataset_free(d);
    assert_null(OPEN_AS("bad.jsonl", "{\n[]\n3\n", .skip_bad_rows = true));
    assert_error_has("bad.jsonl: not one of its 3 rows can be read: ");
    assert_error_has("bad.jsonl:2:1: found '[', expected an object; ");
    assert_error_has("bad.jsonl:3:1: found '3'");
    assert_null(OPEN_AS("bad.jsonl", "{\"a\": 3}\n{\"text\": 4}\n{\"a\": 5}\n{\"a\": 6}\n", .text_field = "text", .skip_bad_rows = true));
    assert_error_has("bad.jsonl: not one of its 4 rows can be read: ");
    assert_error_has("bad.jsonl:2:10: the field \"text\" is a number, expected a string; ");
    assert_error_has("; ...");
    assert_null(OPEN_AS("bad.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n{\"a\": \"x\", \"b\": \"y\"}\n", .skip_bad_rows = true));
    assert_error_has("bad.jsonl:1: cannot tell which field to train on"); /* the rows are good */
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_null(OPEN("bad.jsonl", "{\"text\": 3"));
    assert_error_has("bad.jsonl:1:");
}

static void bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *error;
    } files[] = {
        {"e.jsonl", "", "has no rows"},
        {"e.jsonl", "\n \r\n\n", "has no rows"},
        {"e.jsonl", "\xef\xbb\xbf", "has no rows"},
        {"e.txt", " \n\n\t", "has no rows"},
        {"e.json", "", "has no rows"},
        {"e.json", "[]", "has no rows"},
        {"e.json", "\n[ ", "e.json:2: the file ends inside"},
        {"e.json", "[{\"text\": \"a\"}", "e.json:1: this element of the array never ends"},
        {"e.json", "[{\"text\": \"a\"},\n\n", "e.json:1: the file ends inside its array"},
        {"e.json", "[\n{\"text\": \"a\"},\n,{}]", "e.json:3: an element of the array is missing"},
        {"e.json", "[{\"text\": \"a\"},]", "an element of the array is missing"},
        {"e.json", "[,]", "an element of the array is missing"},
        {"e.json", "[{\"text\": \"a\"}]\n x", "e.json:2: something follows"},
        {"e.json", "[]x", "e.json:1: "},
        {"e.json", "[{\"text\": \"a}]", "never ends"},
        {"e.json", "[{\"text\": \"a\"}}]", "never ends"},
        {"e.json", "\"text\"", "expected '['"},
        {"e.json", "[", "the file ends inside"},
        {"e.json", "\xff\xfe[\0]\0", "UTF-16"},
        {"e.txt", "\xfe\xff\0a", "UTF-16"},
        {"e.jsonl", "{\"text\": \"caf\xe9\"}", "e.jsonl:1:14: invalid UTF-8 (byte 0xe9) in a string; it looks like Latin-1"},
        {"e.csv", "a,b\n", "has no rows"},
        {"e.parquet", "PAR1", "too few for a Parquet file"},
        {"e.gz", "text", ".gz files are not read"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t n = strlen(files[i].text);
        struct tune_dataset *d = open_with(files[i].name, files[i].text, n, (struct tune_dataset_options){0});
        if (d)
            fail_msg("file %zu was opened", i);
        assert_error_has(files[i].error);
        assert_error_has(files[i].name);
    }
    struct tune_dataset_options o = {.max_length = 8};
    assert_null(tune_dataset_open(path_of("absent.jsonl"), &o, bytes));
    assert_error_has("absent.jsonl");
    assert_null(tune_dataset_open(folder, &o, bytes));
    assert_error_has("has several splits");
    assert_null(OPEN_AS("a.jsonl", "{\"text\": \"a\"}", .max_length = -1));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    o.max_length = 0;
    assert_null(tune_dataset_open(path_of("a.jsonl"), &o, bytes));
    assert_error_has("max_length is 0 tokens, expected at least 1");
}

/* JSON that other programs write: objects over several lines, rows in an object's list, Python's NaN. */
static void other_json(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *said, *rows[2], *source;
    } files[] = {
        {"o.json", "\n{\n  \"text\": \"a b\",\n  \"id\": {\"n\": [1, 2]}\n}\n{\n  \"text\": \"{\\\"c\"\n}\n", "; objects over several lines",
         {"a b", "{\"c"}, "o.json:6"},
        {"o.jsonl", "{ \"text\":\r\n\"a\"}{\"text\": \"b\"} ", "; objects over several lines", {"a", "b"}, "o.jsonl:2"},
        {"o.json", "{\"data\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}\n", "; rows are the list \"data\"", {"a", "b"}, "o.json:1"},
        {"o.json", "{\n \"version\": \"1\", \"licenses\": [{\"id\": 1}],\n \"rows\": [\n{\"text\": \"a\"},\n{\"text\": \"b\"}\n], \"n\": 2\n}",
         "; rows are the list \"rows\"", {"a", "b"}, "o.json:5"},
        {"o.json", "{\"data\": [{\"text\": \"x\"}], \"train\": [{\"text\": \"a\"}, {\"text\": \"b\"} ] }", "; rows are the list \"train\"",
         {"a", "b"}, "o.json:1"},
        {"o.jsonl", "{\"text\": \"a\", \"score\": NaN, \"to\": [-Infinity, Infinity]}\n{\"text\": \"b\"}", "", {"a", "b"}, "o.jsonl:2"},
        {"o.jsonl", "{\"text\": \"a\", \"n\": 123456789012345678901234567890, \"m\": -1e400}\n{\"text\": \"b\"}", "", {"a", "b"}, "o.jsonl:2"},
    };
    char source[TUNE_DATASET_SOURCE_SIZE];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct tune_dataset *d = open_with(files[i].name, files[i].text, strlen(files[i].text), (struct tune_dataset_options){0});
        assert_got(d);
        assert_int_equal(tune_dataset_rows(d), 2);
        for (int row = 0; row < 2; row++)
            assert_string_equal(text_of(d, row), files[i].rows[row]);
        assert_non_null(strstr(tune_dataset_source(d, 1, source, sizeof source), files[i].source));
        assert_non_null(strstr(tune_dataset_about(d), files[i].said));
        assert_true(*files[i].said || !strstr(tune_dataset_about(d), "lines"));
        tune_dataset_free(d);
    }
}

/* What stays a row: an object of its own, and lines that are broken. */
static void still_lines(void **state)
{
    (void)state;
    static const char one[] = "{\"prompt\": \"q\", \"completion\": \"a\", \"data\": [{\"text\": \"x\"}]}\n";
    struct tune_dataset *d = OPEN_AS("o.jsonl", one, .row_format = "auto", .append_token = "none");
    assert_got(d);
    assert_string_equal(tune_dataset_format(d), "prompt-completion");
    tune_dataset_free(d);
    d = OPEN("o.jsonl", "{\"text\": \"a\", \"data\": [{\"role\": \"user\"}]}");
    assert_string_equal(text_of(d, 0), "a");
    tune_dataset_free(d);
    static const char *const broken[] = {"{\"a\": {\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}}\n", "{\"text\": \"a}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n",
                                         "{\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        d = open_with("o.jsonl", broken[i], strlen(broken[i]),
                      (struct tune_dataset_options){.skip_bad_rows = true, .text_field = "text"});
        assert_got(d);
        assert_int_equal(tune_dataset_rows(d), 3);
        assert_string_equal(text_of(d, 1), "b");
        tune_dataset_free(d);
    }
    static const struct {
        const char *text, *error;
    } refused[] = {
        {"{\n\"text\": \"a\"\n},\n{\"text\": \"b\"}", "o.json:3: expected the next object"},
        {"{\n\"text\": \"a\"\n}\n{\"text\": \"b\"", "o.json:4: this object never ends"},
        {"{\"text\": NaN}", "o.json:1:10: the field \"text\" is null, expected a string"},
        {"{\"questions\": [{\"q\": \"a\", \"b\": \"c\"}]}", "if its list \"questions\" holds the rows, let the file be that list alone"},
        {"{\"data\": [{\"text\": 3}]}", "o.json:1:10: the field \"text\" is a number"},
        {"{\"data\": [{\"text\": \"a\"} {\"text\": \"b\"}]}", "o.json:1:25: found '{', expected ',' or ']'"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tune_example x = {0};
        d = open_with("o.json", refused[i].text, strlen(refused[i].text), (struct tune_dataset_options){0});
        if (d)
            assert_int_equal(tune_dataset_get(d, 0, &x), -1);
        assert_error_has(refused[i].error);
        tune_dataset_free(d);
        tune_example_free(&x);
    }
    struct tune_json j;
    tune_json_start(&j, "f", "[-Infinity]", 11, 1);
    assert_int_equal(tune_json_skip(&j), -1);
    assert_error_has("f:1:3: found Infinity, which Python writes and JSON has not; expected a number");
    tune_json_free(&j);
}

static void odd_text(void **state)
{
    (void)state;
    struct tune_example x = {0};
    struct tune_dataset *d = OPEN("odd.jsonl", "{\"text\": \"a\\u0000b\"}\n{\"text\": \"\"}\n{\"text\": \"\\ud83d\\ude00\"}");
    assert_got(d);
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.count, 3); /* NUL is a byte of text like any other */
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_int_equal(x.count, 0);
    assert_false(x.bad);
    assert_string_equal(text_of(d, 2), "\xf0\x9f\x98\x80");
    tune_dataset_free(d);
    static const char raw[] = "a\0b\n\nok\nb\xc3(\n\nfine";
    d = open_with("odd.txt", raw, sizeof raw - 1, (struct tune_dataset_options){0});
    assert_got(d);
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.count, 3);
    assert_row_fails(d, 1, "odd.txt:4:2: invalid UTF-8 (byte 0xc3)");
    assert_string_equal(text_of(d, 2), "fine");
    tune_dataset_free(d);
    d = OPEN("latin.txt", "ok\n\ncaf\xe9");
    assert_got(d);
    assert_row_fails(d, 1, "latin.txt:3:4: invalid UTF-8 (byte 0xe9); it looks like Latin-1: save it as UTF-8 (iconv -f WINDOWS-1252");
    tune_dataset_free(d);
    tune_example_free(&x);
}

/* A line of a gigabyte is a bad row, and costs neither its memory nor its pages. */
static void giant_line(void **state)
{
    (void)state;
    struct rusage before, after;
    static const char head[] = "{\"text\": \"a\"}\n{\"text\": \"", tail[] = "\"}\n{\"text\": \"b\"}\n";
    FILE *f = fopen(path_of("giant.jsonl"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, sizeof head - 1, f), sizeof head - 1);
    assert_int_equal(fseeko(f, (off_t)1 << 28, SEEK_SET), 0); /* a hole: no disk is used */
    assert_int_equal(fwrite(tail, 1, sizeof tail - 1, f), sizeof tail - 1);
    assert_int_equal(fclose(f), 0);
    getrusage(RUSAGE_SELF, &before);
    struct tune_dataset *d = tune_dataset_open(path_of("giant.jsonl"), &(struct tune_dataset_options){.max_length = 8}, bytes);
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_row_fails(d, 1, "giant.jsonl:2: the row has 268435444 bytes, at most 16777216 are read");
    assert_string_equal(text_of(d, 2), "b");
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 128 * 1024); /* KiB; 18 MiB seen */
    tune_dataset_free(d);
    unlink(path_of("giant.jsonl"));
}

static void cuts(void **state)
{
    (void)state;
    struct tune_example x = {0};
    struct tune_dataset *d = OPEN_AS("cut.jsonl", "{\"text\": \"abcdef\"}\n{\"text\": \"abcd\"}\n{\"text\": \"ab=>xyz\"}",
                                     .max_length = 4);
    assert_got(d);
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.count, 4);
    assert_int_equal(x.full_count, 6);
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_int_equal(x.full_count, 4);
    assert_int_equal(tune_dataset_counts(d).truncated, 1);
    assert_int_equal(tune_dataset_counts(d).truncated_away, 0);
    tune_dataset_free(d);
    for (int max_length = 3; max_length <= 8; max_length++) {
        d = OPEN_AS("cut.jsonl", "{\"text\": \"ab=>xyz\"}", .max_length = max_length, .response_template = "=>");
        assert_got(d);
        assert_ok(tune_dataset_get(d, 0, &x));
        assert_int_equal(tune_dataset_counts(d).truncated, max_length < 7);
        assert_int_equal(tune_dataset_counts(d).truncated_away, max_length < 5); /* x, the first trained, is the fifth */
        tune_dataset_free(d);
    }
    d = OPEN_AS("cut.jsonl", "{\"text\": \"ab\"}", .max_length = 1);
    assert_got(d);
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.count, 1);
    assert_int_equal(tune_dataset_counts(d).truncated_away, 1);
    tune_dataset_free(d);
    tune_example_free(&x);
}

static void response_template(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN_AS("r.jsonl", "{\"text\": \"Q: hi A: yo A: z\"}\n{\"text\": \"no answer\"}\n{\"text\": \"A:\"}",
                                     .response_template = "A:");
    assert_got(d);
    /*                                   Q: hi A: yo A: z */
    assert_string_equal(mask_of(d, 0), "........TTTTTTTT");
    assert_row_fails(d, 1, "r.jsonl:2: the response template \"A:\" does not occur");
    assert_string_equal(mask_of(d, 2), "..");
    tune_dataset_free(d);
    d = OPEN_AS("r.jsonl", "{\"text\": \"a A: b\"}\n{\"text\": \"none\"}", .response_template = "A:", .skip_bad_rows = true);
    assert_got(d);
    struct tune_example x = {0};
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_true(x.bad);
    assert_int_equal(tune_dataset_counts(d).bad, 1);
    tune_example_free(&x);
    tune_dataset_free(d);
    assert_null(OPEN_AS("r.jsonl", "{\"text\": \"a\"}", .response_template = ""));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    d = OPEN_AS("r.txt", "ask\r\nSay:\r\nyes", .response_template = "Say:\n"); /* places are those of the text as read */
    assert_got(d);
    assert_string_equal(mask_of(d, 0), ".........TTT");
    tune_dataset_free(d);
}

static void append_token(void **state)
{
    (void)state;
    struct tune_example x = {0};
    int32_t end = tune_tokenizer_id(bytes, "<|endoftext|>");
    struct tune_dataset *d = OPEN_AS("end.jsonl", "{\"text\": \"ab=>c\"}\n{\"text\": \"\"}\n{\"text\": \"ab=>cd\"}",
                                     .response_template = NULL, .append_token = "<|endoftext|>", .max_length = 6);
    assert_got(d);
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.count, 6);
    assert_int_equal(x.ids[5], end);
    assert_true(x.trained[5]);
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_int_equal(x.count, 0);
    assert_ok(tune_dataset_get(d, 2, &x)); /* a text that was cut has not ended */
    assert_int_equal(x.full_count, 7);
    assert_true(x.ids[5] != end);
    tune_dataset_free(d);
    d = OPEN_AS("end.jsonl", "{\"text\": \"ab=>\"}", .response_template = "=>", .append_token = "<|endoftext|>");
    assert_got(d);
    assert_string_equal(mask_of(d, 0), "....T");
    tune_dataset_free(d);
    d = OPEN_AS("end.jsonl", "{\"text\": \"ab<|endoftext|>\"}", .response_template = "a"); /* spelt in the text: that token */
    assert_got(d);
    assert_string_equal(mask_of(d, 0), ".TT");
    tune_dataset_free(d);
    assert_null(OPEN_AS("end.jsonl", "{\"text\": \"a\"}", .append_token = "<|nothing|>"));
    assert_error_has("<|nothing|>");
    tune_example_free(&x);
}

static int own_row(void *context, int64_t row, struct tune_example *x)
{
    int64_t mistake = *(int64_t *)context, n = 3 + row;
    if (row == 1 && mistake == 1) {
        tune_error_set("my own trouble");
        return -1;
    }
    if (row == 1 && mistake == 2) {
        x->bad = true;
        return 0;
    }
    if (mistake == 5)
        n = 5;
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        x->ids[i] = (int32_t)(10 * row + i);
        x->trained[i] = i == n - 1 ? 7 : 0;
    }
    x->count = n;
    if (row == 1 && mistake == 3)
        x->count = x->room + 1;
    if (row == 1 && mistake == 5)
        x->bad = true; /* and what it holds would lose its label */
    if (row == 1 && mistake == 4)
        x->ids[1] = -1;
    return 0;
}

static void callbacks(void **state)
{
    (void)state;
    struct tune_example x = {0};
    int64_t mistake = 0;
    char where[64];
    struct tune_dataset *d = tune_dataset_from(3, own_row, &mistake, 4);
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_int_equal(tune_dataset_fingerprint(d), 0);
    assert_null(tune_dataset_text_field(d));
    assert_string_equal(tune_dataset_source(d, 2, where, sizeof where), "row 2");
    assert_string_equal(mask_of(d, 1), "...T");
    assert_string_equal(mask_of(d, 2), "...."); /* cut from 5 to 4: its one label is gone */
    assert_int_equal(tune_dataset_counts(d).truncated, 1);
    assert_int_equal(tune_dataset_counts(d).truncated_away, 1);
    mistake = 1;
    assert_row_fails(d, 1, "my own trouble");
    mistake = 2;
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_true(x.bad);
    assert_int_equal(x.count, 0);
    mistake = 5;
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_true(x.bad && x.count == 0 && !x.cut_away);
    assert_true(tune_dataset_counts(d).truncated_away == 1 && tune_dataset_counts(d).unlabelled == 0);
    mistake = 3;
    assert_row_fails(d, 1, "made room for");
    mistake = 4;
    assert_row_fails(d, 1, "has the id -1");
    mistake = 0;
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_false(x.bad);
    assert_row_fails(d, 3, "row 3 of a set of 3");
    tune_example_free(&x);
    tune_dataset_free(d);
    assert_null(tune_dataset_from(0, own_row, &mistake, 4));
    assert_null(tune_dataset_from(INT64_MAX, own_row, &mistake, 4));
    assert_null(tune_dataset_from(1, own_row, &mistake, 0));
}

static void held_out(void **state)
{
    (void)state;
    int held = 0, other = 0;
    for (int64_t row = 0; row < 20000; row++) {
        bool out = tune_dataset_held_out(3, row, 0.9);
        held += out;
        other += out != tune_dataset_held_out(4, row, 0.9);
        assert_false(tune_dataset_held_out(3, row, 1));
        if (out)
            assert_true(tune_dataset_held_out(3, row, 0.8)); /* a smaller share holds out these and more */
    }
    assert_in_range(held, 1800, 2200); /* 2000 expected, standard deviation 42 */
    assert_true(other > 2000);         /* another seed, other rows */
}

static char *shown(struct tune_dataset *d, struct tune_tokenizer *tok, int n)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_ok(tune_dataset_show(d, tok, n, f));
    fclose(f);
    return text;
}

static void show(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN_AS("show.jsonl", "{\"text\": \"Q\\nA:\\\"\\u001b\\u00e9xy\"}\n{\"text\": \"none\"}\n{\"text\": \"\"}",
                                     .response_template = "A:", .max_length = 9, .skip_bad_rows = true);
    assert_got(d);
    char *text = shown(d, bytes, 2), line[TUNE_PATH_MAX + 64];
    snprintf(line, sizeof line, "row 0, %s:1: 9 tokens, 5 trained, cut from 10\n", path_of("show.jsonl"));
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "position       id  loss     token\n"));
    assert_non_null(strstr(text, "  masked   \"Q\"\n"));
    assert_non_null(strstr(text, "  masked   \"\\n\"\n"));
    assert_non_null(strstr(text, "  trained  \"\\\"\"\n"));
    assert_non_null(strstr(text, "  trained  \"\\x1b\"\n"));
    assert_non_null(strstr(text, "  trained  \"x\"\n-------- cut here: the model does not see the row's other 1 tokens\n"));
    assert_non_null(strstr(text, "a bad row, left out\n"));
    assert_null(strstr(text, "\x1b"));
    assert_null(strstr(text, "row 2"));
    free(text);
    text = shown(d, bytes, 100);
    assert_non_null(strstr(text, "row 2"));
    free(text);
    tune_dataset_free(d);
}

/* GPT-2's tokens of a real row, checked by hand: How| many|?| #|###| 12| eggs. */
static void real_mask(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    if (!test_shared())
        skip();
    snprintf(path, sizeof path, "%s/tokenizers/gpt2", test_shared());
    struct tune_tokenizer *tok = tune_tokenizer_open(path);
    assert_got(tok);
    test_write(folder, "q.jsonl", "{\"text\": \"How many? #### 12 eggs\"}\n", 35);
    struct tune_dataset_options o = {.max_length = 64, .response_template = "####"};
    struct tune_dataset *d = tune_dataset_open(path_of("q.jsonl"), &o, tok);
    assert_got(d);
    assert_string_equal(mask_of(d, 0), ".....TT"); /* How| many|?| |####| 12| eggs, the space before #### may join it */
    tune_dataset_free(d);
    o.response_template = "#### 1";
    d = tune_dataset_open(path_of("q.jsonl"), &o, tok);
    assert_got(d);
    assert_string_equal(mask_of(d, 0), "......T"); /* " 12" begins inside the template: prompt */
    tune_dataset_free(d);
    tune_tokenizer_free(tok);
}

/* Llama's template adds <s>; a text that spells it already does not get two. */
static void real_begin(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    static const char rows[] = "{\"text\": \"Once upon\"}\n{\"text\": \"<s>Once upon\"}\n{\"text\": \"\"}\n";
    if (!test_shared())
        skip();
    snprintf(path, sizeof path, "%s/stories260K-hf", test_shared());
    struct tune_tokenizer *tok = tune_tokenizer_open(path);
    assert_got(tok);
    int32_t begin = tune_tokenizer_id(tok, "<s>");
    test_write(folder, "bos.jsonl", rows, sizeof rows - 1);
    struct tune_dataset_options o = {.max_length = 64};
    struct tune_dataset *d = tune_dataset_open(path_of("bos.jsonl"), &o, tok);
    struct tune_example x = {0};
    assert_got(d);
    for (int row = 0; row < 2; row++) {
        assert_ok(tune_dataset_get(d, row, &x));
        assert_int_equal(x.ids[0], begin);
        assert_true(x.ids[1] != begin);
        assert_int_equal(x.full_count, x.count);
        assert_true(x.trained[1]);
    }
    assert_ok(tune_dataset_get(d, 2, &x));
    assert_int_equal(x.count, 1);
    tune_dataset_free(d);
    o.response_template = "Once";
    d = tune_dataset_open(path_of("bos.jsonl"), &o, tok);
    assert_got(d);
    assert_int_equal(mask_of(d, 0)[1], '.');
    tune_dataset_free(d);
    tune_example_free(&x);
    tune_tokenizer_free(tok);
}

static void *read_all(void *dataset)
{
    struct tune_example x = {0};
    intptr_t wrong = 0;
    for (int64_t i = 0; i < tune_dataset_rows(dataset); i++)
        wrong += tune_dataset_get(dataset, i, &x) < 0 || x.count != 1 + i % 50;
    tune_example_free(&x);
    return (void *)wrong;
}

static void threads(void **state)
{
    (void)state;
    enum { N = 2000 };
    char *data = malloc(N * 80);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(data + n, "{\"text\": \"%.*s\"}\n", 1 + i % 50,
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct tune_dataset *d = open_with("t.jsonl", data, n, (struct tune_dataset_options){0});
    pthread_t thread[4];
    void *wrong;
    assert_got(d);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_all, d), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(tune_dataset_counts(d).rows, 4 * N);
    tune_dataset_free(d);
    free(data);
}

/* Files with bytes changed, left out and cut off: an error or rows, never a crash (the sanitizers look on). */
static void damaged(void **state)
{
    (void)state;
    static const char good[] = "[{\"text\": \"a\\u00e9\\\"b\", \"n\": [1, {\"x\": null}]},\n {\"text\": \"c\\n\\ud83d\\ude00\"}\n]\n";
    static const char *const names[] = {"d.json", "d.jsonl", "d.txt"};
    static const char bytes_in[] = "[]{}\",\\\n\r :\xff\xc3\0ua1";
    struct tune_example x = {0};
    for (uint64_t k = 0; k < 1500; k++) {
        char data[sizeof good];
        size_t n = sizeof good - 1;
        memcpy(data, good, n);
        for (uint64_t m = 0; m < 1 + k % 3; m++) {
            uint64_t r = tune_random_u64(11, k, m);
            data[r % n] = bytes_in[(r >> 32) % (sizeof bytes_in - 1)];
        }
        if (k % 5 == 0)
            n = (size_t)(tune_random_u64(12, k, 0) % n);
        struct tune_dataset *d = open_with(names[k % 3], data, n, (struct tune_dataset_options){.skip_bad_rows = k % 2});
        assert_true(d != NULL || tune_error_message()[0] != 0);
        for (int64_t i = 0; d && i < tune_dataset_rows(d); i++)
            assert_true(tune_dataset_get(d, i, &x) == 0 || (k % 2 == 0 && tune_error_message()[0] != 0));
        tune_dataset_free(d);
        tune_error_clear();
    }
    tune_example_free(&x);
}

/* Somebody cuts the file while it is mapped: an error, not SIGBUS; and no bad row to be skipped. */
static void cut_short(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *data = malloc(N);
    memset(data, 'a', N);
    for (int i = 99; i < N; i += 100)
        data[i] = data[i - 1] = '\n';
    struct tune_dataset *d = open_with("short.txt", data, N, (struct tune_dataset_options){.skip_bad_rows = true});
    struct tune_example x = {0};
    assert_got(d);
    assert_ok(tune_dataset_get(d, 999, &x));
    assert_int_equal(truncate(path_of("short.txt"), 10), 0);
    assert_row_fails(d, 999, "was cut from 100000 to 10 bytes");
    tune_example_free(&x);
    tune_dataset_free(d);
    free(data);
}

static void fingerprint(void **state)
{
    (void)state;
    uint64_t seen[3];
    static const char *const names[] = {"p.jsonl", "moved.jsonl", "p.jsonl"}; /* the content counts, not the name */
    static const char *const texts[] = {"{\"text\": \"a\"}", "{\"text\": \"a\"}", "{\"text\": \"b\"}"};
    for (int i = 0; i < 3; i++) {
        struct tune_dataset *d = open_with(names[i], texts[i], strlen(texts[i]), (struct tune_dataset_options){0});
        assert_got(d);
        seen[i] = tune_dataset_fingerprint(d);
        tune_dataset_free(d);
    }
    assert_true(seen[0] == seen[1] && seen[0] != seen[2] && seen[0] != 0);
}

static void by_flags(void **state)
{
    (void)state;
    struct tune_flags flags = {.data = {.max_length = 5, .text_field = "body", .response_template = "b",
                                        .skip_bad_rows = true, .append_token = "<|endoftext|>"}};
    assert_null(tune_get_dataset(&flags, bytes));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("--dataset");
    test_write(folder, "g.jsonl", "{\"text\": 1, \"body\": \"abcd\"}\n{}\n", 31);
    flags.dataset = path_of("g.jsonl");
    struct tune_dataset *d = tune_get_dataset(&flags, bytes);
    assert_got(d);
    assert_string_equal(mask_of(d, 0), "..TTT");
    tune_dataset_free(d);
}

/* The hash that progress keeps is the one that the file has, step for step; of left-out rows too. */
static void rows_hash(void **state)
{
    (void)state;
    static const char text[] = "{\"text\": \"one\"}\n{\"text\": \"\"}\nbroken\n{\"text\": \"one\"}\n"
                               "{\"text\": \"\"}\n{\"text\": \"two\"}\n{\"text\": \"three\"}\n";
    static const char turned[] = "{\"text\": \"two\"}\n{\"text\": \"\"}\nbroken\n{\"text\": \"one\"}\n"
                                 "{\"text\": \"\"}\n{\"text\": \"one\"}\n{\"text\": \"three\"}\n";
    for (int k = 0; k < 12; k++) {
        struct tune_loader_options o = {.part = TUNE_ALL, .batch_size = 1 + k % 3, .accumulate = 1, .max_length = 16,
                                        .epochs = 2.5, .max_steps = -1, .stop_after_seconds = -1, .shuffle = k / 3 & 1,
                                        .packing = k / 6 & 1};
        struct tune_dataset *d = OPEN_AS("hash.jsonl", text, .max_length = 16, .skip_bad_rows = true);
        assert_got(d);
        struct tune_loader *load = tune_loader_new(d, &o);
        assert_got(load);
        struct tune_progress at = {0};
        struct tune_batch batch;
        uint64_t hash, before = 0;
        for (int micros; (micros = tune_loader_more(load, &at)) > 0;) {
            while (micros-- > 0)
                assert_ok(tune_loader_next(load, &batch));
            tune_progress_step(&at, load);
            assert_ok(tune_loader_rows_hash(load, at.rows, &hash));
            assert_true(at.rows_hash == hash && hash != before);
            before = hash;
        }
        assert_true(at.finished && at.rows == 18);
        assert_ok(tune_loader_rows_hash(load, 18, &hash));
        assert_true(at.rows_hash == hash);
        assert_true(tune_dataset_row_hash(d, 0) == tune_dataset_row_hash(d, 3)); /* the same text, elsewhere */
        struct tune_dataset *moved = OPEN_AS("moved.jsonl", turned, .max_length = 16, .skip_bad_rows = true);
        assert_got(moved); /* the same rows in another order */
        struct tune_loader *other = tune_loader_new(moved, &o);
        assert_got(other);
        assert_ok(tune_loader_rows_hash(load, 14, &hash)); /* each row twice */
        assert_ok(tune_loader_rows_hash(other, 14, &before));
        assert_true(before != hash);
        tune_loader_free(other);
        tune_dataset_free(moved);
        tune_loader_free(load);
        load = tune_loader_new(d, &o); /* goes on from where no hash was kept: it stays unknown */
        assert_got(load);
        at = (struct tune_progress){.step = 1, .rows = 7};
        assert_ok(tune_loader_seek(load, &at));
        for (int steps = 0; tune_loader_more(load, &at) > 0; steps++) {
            assert_true(steps < 18);
            tune_progress_step(&at, load);
            assert_true(at.rows > 7 && at.rows_hash == 0);
        }
        tune_loader_free(load);
        tune_dataset_free(d);
    }
}

/* ---- texts in pieces ---- */

static void end_of_text(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN_AS("e.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"ab<|endoftext|>\"}\n{\"text\": \"\"}", .end_token = "<|endoftext|>");
    assert_got(d);
    assert_string_equal(text_of(d, 0), "ab<|endoftext|>");
    assert_string_equal(mask_of(d, 0), ".TT");
    assert_string_equal(mask_of(d, 1), ".TT"); /* not a second one */
    assert_string_equal(mask_of(d, 2), "");
    assert_string_equal(tune_dataset_about(d), "text; ended by <|endoftext|>");
    tune_dataset_free(d);
    d = OPEN_AS("e.jsonl", "{\"text\": \"ab\"}", .end_token = "<|endoftext|>", .append_token = "none");
    assert_string_equal(text_of(d, 0), "ab");
    assert_string_equal(tune_dataset_about(d), "text; ended by no token");
    tune_dataset_free(d);
    d = OPEN_AS("e.jsonl", "{\"text\": \"ab\"}", .end_token = "<|unknown|>"); /* the folder's token is not the tokenizer's */
    assert_string_equal(text_of(d, 0), "ab");
    tune_dataset_free(d);
}

static void chunks(void **state)
{
    (void)state;
    static const char text[] = "abcdefghij";
    struct tune_dataset *d = OPEN_AS("c.txt", text, .max_length = 4, .end_token = "<|endoftext|>"); /* one paragraph */
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 4);
    static const char *const expected[] = {"abcd", "defg", "ghij", "j<|endoftext|>"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(text_of(d, i), expected[i]);
    assert_string_equal(mask_of(d, 1), ".TTT");
    assert_string_equal(tune_dataset_about(d), "text, in pieces of at most 4 tokens; ended by <|endoftext|>");
    assert_string_equal(tune_dataset_rows_are(d), "pieces of paragraphs");
    assert_true(tune_dataset_row_hash(d, 0) != tune_dataset_row_hash(d, 1));
    assert_int_equal(tune_dataset_counts(d).truncated, 0);
    tune_dataset_free(d);
    d = OPEN_AS("c.txt", "abcdef\n\nabc\n", .max_length = 4); /* two paragraphs are cut */
    assert_int_equal(tune_dataset_rows(d), 2);
    tune_dataset_free(d);
    d = OPEN_AS("c.txt", text, .max_length = 4, .chunk = TUNE_CHUNK_OFF);
    assert_int_equal(tune_dataset_rows(d), 1);
    tune_dataset_free(d);
    d = OPEN_AS("c.jsonl", "{\"text\": \"abcdef\"}\n{\"text\": \"\"}\n{\"text\": \"xy\"}", .max_length = 4, .chunk = TUNE_CHUNK_ON);
    assert_int_equal(tune_dataset_rows(d), 4);
    static const char *const rows[] = {"abcd", "def", "", "xy"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(text_of(d, i), rows[i]);
    char source[TUNE_DATASET_SOURCE_SIZE];
    assert_non_null(strstr(tune_dataset_source(d, 3, source, sizeof source), "c.jsonl:3"));
    tune_dataset_free(d);
    d = OPEN_AS("c.txt", "abc<|endoftext|>", .end_token = "<|endoftext|>");
    assert_string_equal(text_of(d, 0), "abc<|endoftext|>"); /* not a second one */
    tune_dataset_free(d);
    assert_null(OPEN_AS("c.jsonl", "{\"text\": \"ab\"}", .chunk = TUNE_CHUNK_ON, .response_template = "a"));
    assert_error_has("`chunk` parts rows of plain text");
    assert_null(OPEN_AS("c.jsonl", "{\"text\": \"ab\"}", .chunk = TUNE_CHUNK_ON, .max_length = 1));
    assert_error_has("at least 2; it is 1");
    assert_null(OPEN_AS("c.jsonl", "{\"text\": \"ab\"}\n{\"text\": 3}", .chunk = TUNE_CHUNK_ON));
    assert_error_has("c.jsonl:2");
    d = OPEN_AS("c.jsonl", "{\"text\": \"ab\"}\n{\"text\": 3}\n{\"text\": \"cd\"}", .chunk = TUNE_CHUNK_ON, .skip_bad_rows = true);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_string_equal(text_of(d, 1), "");
    assert_string_equal(text_of(d, 2), "cd");
    assert_int_equal(tune_dataset_counts(d).bad, 1);
    tune_dataset_free(d);
}

/* Texts of several units, with their tokens kept and not. */
static void long_chunks(void **state)
{
    (void)state;
    static const size_t sizes[] = {300000, 17 << 20};
    for (int n = 0; n < (emulated() ? 1 : 2); n++) { /* the second takes minutes there */
        char *text = malloc(sizes[n]);
        assert_non_null(text);
        for (size_t i = 0; i < sizes[n]; i++)
            text[i] = i % 77 == 76 ? '\n' : (char)('a' + i % 26);
        text[sizes[n] - 1] = '.';
        struct tune_dataset *d = open_with("l.txt", text, sizes[n], (struct tune_dataset_options){.max_length = 1000, .end_token = "<|endoftext|>"});
        assert_got(d);
        assert_int_equal(tune_dataset_row_bytes(d) > 0, n == 0);
        struct tune_example x = {0};
        size_t at = 0; /* byte of the text that a piece begins with */
        int64_t rows = tune_dataset_rows(d);
        for (int64_t i = 0; i < rows; i += n == 0 || i + 50 > rows ? 1 : 40) {
            assert_ok(tune_dataset_get(d, i, &x));
            char *got;
            size_t size;
            assert_ok(tune_tokenizer_decode(bytes, x.ids, x.count, true, &got, &size));
            if (n == 0) {
                bool shared = at > 0 && text[at - 1] == got[0] && text[at] != got[0]; /* the token in both pieces */
                assert_true(at == 0 || shared || text[at - 1] == '\n'); /* else a unit begins, behind a line */
                for (int64_t k = 0; k + 1 < x.count; k++)
                    assert_true(x.ids[k] != tune_tokenizer_id(bytes, "<|endoftext|>"));
                assert_true(i + 1 == rows || x.ids[x.count - 1] != tune_tokenizer_id(bytes, "<|endoftext|>"));
                at -= shared;
                assert_memory_equal(text + at, got, size);
                at += size;
            } else {
                assert_non_null(memmem(text, i + 1 < rows ? 8 << 10 : sizes[n], got, size)); /* it repeats each 2,002 bytes */
            }
            free(got);
        }
        assert_true(n == 1 || at == sizes[n]);
        assert_int_equal(x.ids[x.count - 1], tune_tokenizer_id(bytes, "<|endoftext|>"));
        tune_example_free(&x);
        tune_dataset_free(d);
        free(text);
    }
}

/* A tokenizer whose template puts a token before and behind each text: a text of several units has it before the first and behind
 * the last one only. */
static void template_of_units(void **state)
{
    (void)state;
    static const char none[] = "\"post_processor\": null", name[] = "<|endoftext|>";
    enum { SIZE = 300000 };
    struct tune_example x = {0};
    char *text, *with, *long_text = malloc(SIZE);
    size_t size;
    assert_non_null(long_text);
    memset(long_text, 'a', SIZE);
    assert_ok(tune_file_read(path_of("tokenizer.json"), 1 << 20, &text, &size));
    char *at = strstr(text, none);
    assert_non_null(at);
    int id = tune_tokenizer_id(bytes, name);
    assert_true(asprintf(&with, "%.*s\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"%s\"}}, "
                         "{\"Sequence\": {\"id\": \"A\"}}, {\"SpecialToken\": {\"id\": \"%s\"}}], \"special_tokens\": {\"%s\": {\"id\": \"%s\", "
                         "\"ids\": [%d], \"tokens\": [\"%s\"]}}}%s", (int)(at - text), text, name, name, name, name, id, name,
                         at + sizeof none - 1) > 0);
    test_write(folder, "template.json", with, strlen(with));
    struct tune_tokenizer *tok = tune_tokenizer_open(path_of("template.json"));
    assert_got(tok);
    test_write(folder, "u.txt", long_text, SIZE);
    struct tune_dataset *d = tune_dataset_open(path_of("u.txt"), &(struct tune_dataset_options){.max_length = 1000, .end_token = name}, tok);
    assert_got(d);
    int64_t rows = tune_dataset_rows(d), tokens = 0;
    for (int64_t i = 0; i < rows; i++) {
        assert_ok(tune_dataset_get(d, i, &x));
        for (int64_t k = 0; k < x.count; k++)
            assert_int_equal(x.ids[k] == id, (i == 0 && k == 0) || (i == rows - 1 && k == x.count - 1));
        tokens += x.count;
    }
    assert_true(tokens >= SIZE + 2 && tokens < SIZE + 2 + rows); /* a piece begins with the last token of the one before */
    tune_example_free(&x);
    tune_dataset_free(d);
    tune_tokenizer_free(tok);
    free(text);
    free(with);
    free(long_text);
}

/* The survey of a set, and the expected longest of several random rows against all draws. */
static void survey(void **state)
{
    (void)state;
    struct tune_survey s;
    struct tune_dataset *d = OPEN_AS("s.jsonl", "{\"text\": \"a\"}\n{\"text\": \"abc\"}\n{\"text\": \"abcdefgh\"}\n{\"text\": \"abc\"}\n"
                                     "{\"text\": \"x {{first name}} y\"}", .max_length = 6);
    assert_got(d);
    assert_ok(tune_survey(&s, d, NULL));
    assert_true(s.rows == 5 && s.of == 5 && s.bad == 0 && s.cut == 2 && s.cut_away == 0 && s.empty == 1 && s.doubled == 1);
    assert_true(s.unfilled == 1 && s.longest == 18 && s.trained == 4 && s.tokens == (3 + 3 + 6 + 6) / 4.0);
    assert_string_equal(s.placeholder, "{{first name}}");
    assert_int_equal(tune_dataset_counts(d).rows, 0);
    double sum = 0;
    for (int i = 0; i < 64; i++) {
        int a = s.lengths[i % 4], b = s.lengths[i / 4 % 4], c = s.lengths[i / 16];
        sum += a > b ? (a > c ? a : c) : b > c ? b : c;
    }
    assert_true(fabs(tune_survey_padded(&s, 3) - sum / 64) < 1e-12);
    tune_survey_free(&s);
    tune_dataset_free(d);
    d = OPEN_AS("s.jsonl", "{\"text\": \"abcdef:x\"}\n{\"text\": \"{{a}}:\"}\n{\"text\": \"b:{{long name}}\"}", .max_length = 4,
                .response_template = ":");
    assert_ok(tune_survey(&s, d, NULL));
    assert_true(s.cut_away == 1 && s.empty == 1 && s.trained == 1 && s.unfilled == 2 && s.cut == 3);
    assert_string_equal(s.placeholder, "{{a}}");
    tune_survey_free(&s);
    tune_dataset_free(d);
}

static void documents(void **state)
{
    (void)state;
    static const char text[] = "<|endoftext|>\n\nfirst\n\n<|endofText|>\n<|endoftext|>\n<|endoftext|>\n\n second \r\n<|endoftext|>\r\nno mark <|endoftext|>\n";
    struct tune_dataset *d = OPEN_AS("d.txt", text, .end_token = "<|endoftext|>");
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_string_equal(text_of(d, 0), "first\n\n<|endofText|><|endoftext|>");
    assert_string_equal(text_of(d, 1), " second<|endoftext|>");
    assert_string_equal(text_of(d, 2), "no mark <|endoftext|>");
    assert_string_equal(tune_dataset_rows_are(d), "documents");
    assert_string_equal(tune_dataset_about(d), "text, parted by lines of <|endoftext|>; ended by <|endoftext|>");
    char source[TUNE_DATASET_SOURCE_SIZE];
    assert_non_null(strstr(tune_dataset_source(d, 0, source, sizeof source), "d.txt:3"));
    assert_non_null(strstr(tune_dataset_source(d, 2, source, sizeof source), "d.txt:11"));
    tune_dataset_free(d);
    d = OPEN_AS("d.txt", "a\n<|my end|>\nb\n", .end_token = "<|my end|>");
    assert_int_equal(tune_dataset_rows(d), 2);
    tune_dataset_free(d);
    d = OPEN("d.txt", "a\n<|my end|>\nb\n");
    assert_int_equal(tune_dataset_rows(d), 1);
    tune_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jsonl_rows), cmocka_unit_test(json_rows), cmocka_unit_test(text_rows), cmocka_unit_test(many_rows),
        cmocka_unit_test(fields), cmocka_unit_test(bad_rows), cmocka_unit_test(bad_files), cmocka_unit_test(other_json),
        cmocka_unit_test(still_lines), cmocka_unit_test(odd_text),
        cmocka_unit_test(giant_line), cmocka_unit_test(cuts), cmocka_unit_test(response_template),
        cmocka_unit_test(append_token), cmocka_unit_test(callbacks), cmocka_unit_test(held_out), cmocka_unit_test(show),
        cmocka_unit_test(real_mask), cmocka_unit_test(real_begin), cmocka_unit_test(threads), cmocka_unit_test(damaged),
        cmocka_unit_test(cut_short), cmocka_unit_test(fingerprint), cmocka_unit_test(by_flags), cmocka_unit_test(rows_hash),
        cmocka_unit_test(end_of_text), cmocka_unit_test(chunks), cmocka_unit_test(long_chunks),
        cmocka_unit_test(template_of_units), cmocka_unit_test(survey), cmocka_unit_test(documents),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
