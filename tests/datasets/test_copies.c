/* test_copies.c - the hash of a row's content, the split that goes by it, and copies that are counted. */
#include "datasets/copies.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "files/file.h"
#include "test.h"
#include "tokenizers/tokenizer.h"

enum { MOST = 4096 };
static struct tune_tokenizer *tok;

static struct tune_dataset *open_rows(const char *name, const char *rows)
{
    struct tune_dataset_options o = {.max_length = 8, .append_token = "none"};
    test_write(".", name, rows, strlen(rows));
    struct tune_dataset *d = tune_dataset_open(name, &o, tok);
    assert_got(d);
    return d;
}

static struct tune_loader *loader(struct tune_dataset *d, enum tune_part part, int split_by, int only_set)
{
    struct tune_loader_options o = {.part = part, .train_split = 0.8, .split_by = split_by, .seed = 9, .only_set = only_set,
                                    .batch_size = 1, .accumulate = 1, .max_length = 8, .epochs = 1, .max_steps = -1,
                                    .stop_after_seconds = -1};
    return tune_loader_new(d, &o);
}

/* Which rows of d a part has: as many as the loader says. */
static int64_t marks(struct tune_dataset *d, enum tune_part part, int split_by, bool *has)
{
    struct tune_loader *load = loader(d, part, split_by, 0);
    int64_t n = 0;
    assert_got(load);
    assert_in_range(tune_dataset_rows(d), 1, MOST);
    for (int64_t row = 0; row < tune_dataset_rows(d); row++)
        n += has[row] = tune_loader_has(load, row);
    assert_int_equal(n, tune_loader_rows(load));
    tune_loader_free(load);
    return n;
}

/* What a row is known by, whatever stands around it. The formula is the one that dataset.h states. */
static void content(void **state)
{
    (void)state;
    static const struct { const char *name, *rows; int row; const char *line[2]; const char *header; } files[] = {
        {"a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\"}\n", 1, {"{\"text\": \"y\"}"}, NULL},
        {"a.jsonl", "\n{\"text\": \"y\"}\r\n{\"text\": \"x\"}\r\n", 0, {"{\"text\": \"y\"}"}, NULL},
        {"a.jsonl", "\xef\xbb\xbf{\"text\": \"y\"}\r", 0, {"{\"text\": \"y\"}"}, NULL},
        {"a.json", "[{\"text\": \"x\"}, {\"text\": \"y\"}]", 1, {"{\"text\": \"y\"}"}, NULL},
        {"a.json", "[{\"text\":\r\n\"y\"}]", 0, {"{\"text\":", "\"y\"}"}, NULL},
        {"a.txt", "x\n\none\ntwo\n\n\nz", 1, {"one", "two"}, NULL},
        {"a.txt", "x\r\n\r\ny\r\n\r\none\r\ntwo\r\n", 2, {"one", "two"}, NULL},
        {"a.csv", "text,mark\na,b\n\"y\nz\",c\n", 1, {"\"y", "z\",c"}, "text,mark"},
        {"a.csv", "text,mark\r\n\"y\r\nz\",c\r\n", 0, {"\"y", "z\",c"}, "text,mark"},
        {"a.tsv", "text\tmark\ny\tc\n", 0, {"y\tc"}, "text\tmark"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct tune_dataset *d = open_rows(files[i].name, files[i].rows);
        uint64_t hash = files[i].header ? tune_hash64(files[i].header, strlen(files[i].header), 0) : 0;
        for (int k = 0; k < 2 && files[i].line[k]; k++)
            hash = tune_hash64(files[i].line[k], strlen(files[i].line[k]), hash);
        assert_true(tune_dataset_row_hash(d, files[i].row) == hash);
        struct tune_example x = {0};
        assert_ok(tune_dataset_get(d, files[i].row, &x));
        assert_true(x.hash == hash);
        tune_example_free(&x);
        tune_dataset_free(d);
    }
    assert_true(tune_hash64("fox", 3, 7) == 0x3932e8a2d8f4f742u); /* by Python's whole numbers */
}

/* Each byte of a row counts, and each of the header. */
static void every_byte(void **state)
{
    (void)state;
    static const char *const files[] = {"text,note\na long row,x\nb,y\n", "text,note\na long row,z\nb,y\n", "text,mark\na long row,x\nb,y\n",
                                        "text,note\nA long row,x\nb,y\n", "text,note\n a long row,x\nb,y\n"};
    uint64_t hash[5][2];
    for (int i = 0; i < 5; i++) {
        struct tune_dataset *d = open_rows("row.csv", files[i]);
        assert_ok(tune_dataset_row_hashes(d, 0, 2, hash[i]));
        tune_dataset_free(d);
        for (int k = 0; k < i; k++)
            assert_true(hash[k][0] != hash[i][0]);
        assert_true((hash[0][1] == hash[i][1]) == (i != 2));
    }
}

/* Any stretch of rows in one walk, over the sets of a joined one too. */
static void stretches(void **state)
{
    (void)state;
    struct tune_dataset *sets[3];
    char rows[3][2000] = {""};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 40 + k; i++)
            sprintf(rows[k] + strlen(rows[k]), "{\"text\": \"%d\"}\n", i);
        sets[k] = open_rows((const char *const[]){"1.jsonl", "2.jsonl", "3.jsonl"}[k], rows[k]);
    }
    struct tune_dataset *d = tune_dataset_join(sets, 3);
    assert_got(d);
    uint64_t hash[123];
    for (int64_t first = 0; first < 123; first += 7)
        for (int64_t count = 0; first + count <= 123; count += 5) {
            assert_ok(tune_dataset_row_hashes(d, first, count, hash));
            for (int64_t i = 0; i < count; i++)
                assert_true(hash[i] == tune_dataset_row_hash(d, first + i));
        }
    assert_true(tune_dataset_row_hash(d, 3) == tune_dataset_row_hash(d, 43)); /* the same row of another set */
    tune_dataset_free(d);
    d = open_rows("cut.jsonl", rows[0]);
    test_write(".", "cut.jsonl", rows[0], 100);
    assert_int_equal(tune_dataset_row_hashes(d, 0, 40, hash), -1);
    assert_error_has("cut.jsonl was cut");
    tune_dataset_free(d);
}

/* Equal pieces of long texts are copies, whichever texts they are of. */
static void pieces(void **state)
{
    (void)state;
    static const char rows[] = "{\"text\": \"abababab\"}\n{\"text\": \"cabab\"}\n{\"text\": \"abab\"}\n";
    struct tune_dataset_options o = {.max_length = 3, .append_token = "none", .chunk = TUNE_CHUNK_ON};
    struct tune_dataset *d = tune_dataset_open_text("rows", rows, strlen(rows), &o, tok);
    assert_got(d);
    uint64_t hash[64];
    int64_t n = tune_dataset_rows(d), equal = 0;
    assert_in_range(n, 8, 64);
    assert_ok(tune_dataset_row_hashes(d, 0, n, hash));
    struct tune_example x = {0}, y = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++) {
            assert_ok(tune_dataset_get(d, i, &x));
            assert_ok(tune_dataset_get(d, k, &y));
            bool same = x.count == y.count && !memcmp(x.ids, y.ids, (size_t)x.count * sizeof *x.ids);
            assert_true((hash[i] == hash[k]) == same && x.hash == hash[i] && tune_dataset_row_hash(d, i) == hash[i]);
            equal += same;
        }
    assert_true(equal > 0);
    tune_example_free(&x);
    tune_example_free(&y);
    tune_dataset_free(d);
}

/* n rows of n / each texts: row i is "row I" with I = 7 i modulo n / each. */
static char *repeated(int n, int each)
{
    static char rows[MOST * 24];
    *rows = 0;
    for (int i = 0, size = 0; i < n; i++)
        size += sprintf(rows + size, "{\"text\": \"row %d\"}\n", i * 7 % (n / each));
    return rows;
}

/* Copies fall on one side, and appended rows change nothing. */
static void split(void **state)
{
    (void)state;
    static bool train[MOST], out[MOST], later[MOST], mixed[MOST];
    enum { N = 3000, EACH = 3 };
    struct tune_dataset *d = open_rows("s.jsonl", repeated(N, EACH));
    int64_t n = marks(d, TUNE_TRAIN, TUNE_SPLIT_BY_CONTENT, train);
    int64_t held = marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, out);
    assert_int_equal(n + held, N);
    assert_in_range(held, 480, 720); /* 600 expected, standard deviation 38: 1,000 texts, three times each */
    uint64_t hash[N];
    assert_ok(tune_dataset_row_hashes(d, 0, N, hash));
    for (int i = 0; i < N; i++) {
        assert_true(train[i] != out[i] && out[i] == tune_dataset_held_out(9, hash[i], 0.8));
        for (int k = 0; k < i; k++)
            assert_true(hash[i] != hash[k] || out[i] == out[k]);
    }
    tune_dataset_free(d);
    char more[MOST * 24];
    sprintf(more, "%s{\"text\": \"more\"}\n{\"text\": \"row 5\"}\n", repeated(N, EACH));
    d = open_rows("s.jsonl", more);
    marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, later);
    assert_memory_equal(out, later, N);
    struct tune_dataset *sets[2] = {open_rows("first.jsonl", "{\"text\": \"row 5\"}\n{\"text\": \"of another set\"}\n{\"text\": \"row 6\"}\n"), d};
    d = tune_dataset_join(sets, 2);
    assert_got(d);
    marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, mixed);
    assert_memory_equal(out, mixed + 3, N);
    assert_true(mixed[0] == mixed[3 + N + 1]); /* "row 5" of both sets */
    tune_dataset_free(d);
}

/* The split of runs that have no `split_by`: the numbers are those that such a version held out. */
static void by_number(void **state)
{
    (void)state;
    static const int held[2][7] = {{0, 13, 19, 20, 21, 31, 34}, {9, 27, 29, 32, 33, 37, 38}};
    static bool out[MOST];
    struct tune_dataset *sets[2] = {open_rows("1.jsonl", repeated(40, 4)), open_rows("2.jsonl", repeated(40, 1))};
    struct tune_dataset *d = tune_dataset_join(sets, 2);
    assert_got(d);
    assert_int_equal(marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_NUMBER, out), 14);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 7; i++)
            assert_true(out[40 * k + held[k][i]]);
    assert_int_equal(marks(d, TUNE_TRAIN, TUNE_SPLIT_BY_NUMBER, out), 66);
    tune_dataset_free(d);
}

/* The loader finds the rows of its part, in order, wherever they lie. */
static void finding(void **state)
{
    (void)state;
    static bool out[MOST];
    struct tune_dataset *d = open_rows("f.jsonl", repeated(2000, 2));
    marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, out);
    struct tune_loader *load = loader(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, 0);
    struct tune_progress at = {0};
    int64_t next = -1, met = 0;
    assert_got(load);
    while (tune_loader_more(load, &at) > 0) {
        struct tune_batch b;
        assert_ok(tune_loader_next(load, &b));
        do
            next++;
        while (!out[next]);
        assert_int_equal(tune_batch_row(&b, 0, 0), next);
        met++;
        tune_progress_step(&at, load);
    }
    assert_int_equal(met, tune_loader_rows(load));
    tune_loader_free(load);
    tune_dataset_free(d);
}

/* Copies alone cannot be parted: an error that says why, and what does. */
static void nothing_but_copies(void **state)
{
    (void)state;
    struct tune_dataset *d = open_rows("c.jsonl", repeated(60, 60));
    struct tune_loader *train = loader(d, TUNE_TRAIN, TUNE_SPLIT_BY_CONTENT, 0);
    struct tune_loader *out = loader(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT, 0);
    assert_true(!train != !out);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("of 60; only 1 of them differ, and copies of a row stay on one side (`split_by` number parts them)");
    tune_loader_free(train ? train : out);
    assert_got(train = loader(d, TUNE_TRAIN, TUNE_SPLIT_BY_NUMBER, 0));
    assert_got(out = loader(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_NUMBER, 0));
    tune_loader_free(train);
    tune_loader_free(out);
    tune_dataset_free(d);
}

static struct tune_copies counted(struct tune_dataset *train, struct tune_dataset *held, enum tune_part part, int split_by)
{
    struct tune_copies c;
    struct tune_loader *loads[2];
    int n = tune_dataset_sets(held);
    assert_in_range(n, 1, 2);
    for (int k = 0; k < n; k++)
        assert_got(loads[k] = loader(held, part, split_by, n > 1 ? k + 1 : 0));
    assert_ok(tune_copies_count(&c, train, (const struct tune_loader *const *)loads, n));
    for (int k = 0; k < n; k++)
        tune_loader_free(loads[k]);
    return c;
}

static void count(void **state)
{
    (void)state;
    struct tune_dataset *d = open_rows("n.jsonl", repeated(3000, 3));
    struct tune_copies c = counted(d, d, TUNE_HELD_OUT, TUNE_SPLIT_BY_CONTENT);
    assert_true(c.rows > 400 && c.copies == 0 && c.first == -1 && c.unlike == 0 && !c.uncounted); /* by construction */
    c = counted(d, d, TUNE_HELD_OUT, TUNE_SPLIT_BY_NUMBER);
    static bool out[MOST];
    int64_t copies = 0, first = -1, n = marks(d, TUNE_HELD_OUT, TUNE_SPLIT_BY_NUMBER, out);
    for (int64_t i = 0; i < 3000; i++) {
        bool copy = false; /* rows of one text are 1,000 apart */
        for (int64_t k = i % 1000; k < 3000; k += 1000)
            copy = copy || (out[i] && !out[k]);
        copies += copy;
        first = copy && first < 0 ? i : first;
    }
    assert_true(c.rows == n && c.copies == copies && copies > 400 && c.first == first);

    /* another file: copies among its rows count each, and those of one set of two */
    struct tune_dataset *held = open_rows("held.jsonl", "{\"text\": \"no\"}\n{\"text\": \"row 12\"}\n{\"text\": \"row 12\"}\n{\"text\":  \"row 13\"}\n");
    c = counted(d, held, TUNE_ALL, 0);
    assert_true(c.rows == 4 && c.copies == 2 && c.first == 1 && c.unlike == 0);
    struct tune_dataset *csv = open_rows("held.csv", "text\nrow 12\nrow 13\n");
    c = counted(d, csv, TUNE_ALL, 0);
    assert_true(c.rows == 2 && c.copies == 0 && c.unlike == 2);
    struct tune_dataset *sets[2] = {csv, held}, *both = tune_dataset_join(sets, 2);
    assert_got(both);
    c = counted(d, both, TUNE_ALL, 0);
    assert_true(c.rows == 6 && c.copies == 2 && c.first == 3 && c.unlike == 2);
    c = counted(both, d, TUNE_ALL, 0);
    assert_true(c.rows == 3000 && c.copies == 3 && c.unlike == 0);
    tune_dataset_free(both);
    tune_dataset_free(d);
}

static int begin(void **state)
{
    if (test_home_begin(state) < 0)
        return -1;
    assert_ok(tune_tokenizer_train("t.json", "ab", 2, 257, (const char *const[]){"</s>"}, 1));
    assert_got(tok = tune_tokenizer_open("t.json"));
    return 0;
}

static int end(void **state)
{
    tune_tokenizer_free(tok);
    return test_home_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content), cmocka_unit_test(every_byte), cmocka_unit_test(stretches), cmocka_unit_test(pieces),
        cmocka_unit_test(split), cmocka_unit_test(by_number), cmocka_unit_test(finding), cmocka_unit_test(nothing_but_copies),
        cmocka_unit_test(count),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
