/* test_shards.c - which files a data set's path means, and rows of Parquet files. */
#include "test.h"

#include <sys/stat.h>

#include "datasets/rows.h"
#include "datasets/shards.h"
#include "flags/find.h"
#include "parquet_writer.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a node names what it has */

static struct parquet f;

/* A file of rows {"n":first}, {"n":first + 1}, ... */
static void put(const char *path, int first, int count)
{
    char folder[TUNE_PATH_MAX];
    const struct parquet_node node = {"n", INT32_TYPE};
    assert_ok(tune_file_parent(folder, path));
    assert_ok(tune_file_make_folder(folder));
    parquet_begin(&f);
    parquet_chunk(&f, INT32_TYPE, count);
    uint8_t values[4 * 8] = {0};
    for (int i = 0; i < count; i++)
        values[4 * i] = (uint8_t)(first + i);
    parquet_page(&f, PAGE_1, 0, count, values, 4 * (size_t)count);
    parquet_end(&f, &node, 1, 1, count);
    test_write(".", path, f.data, f.size);
}

static void put_text(const char *path)
{
    char folder[TUNE_PATH_MAX];
    assert_ok(tune_file_parent(folder, path));
    assert_ok(tune_file_make_folder(folder));
    test_write(".", path, "{\"n\":0}\n", 8);
}

/* The files of a path, in one text. */
static const char *files(const char *path)
{
    static char list[4096];
    struct tune_shards s;
    if (tune_shards_find(&s, path) < 0)
        return NULL;
    *list = 0;
    for (int i = 0; i < s.count; i++)
        sprintf(list + strlen(list), "%s%s", i ? " " : "", s.paths[i]);
    tune_shards_free(&s);
    return list;
}

#define assert_files(path, names)                  \
    do {                                           \
        const char *found = files(path);           \
        assert_got(found);                         \
        assert_string_equal(found, names);         \
    } while (0)
#define assert_none(path, what)                    \
    do {                                           \
        assert_null(files(path));                  \
        assert_error_has(what);                    \
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE); \
    } while (0)

static void splits(void **state)
{
    (void)state;
    put("a/data/train-00001-of-00002.parquet", 3, 2);
    put("a/data/train-00000-of-00002-ab12.parquet", 1, 2);
    put("a/data/test-00000-of-00001.parquet", 9, 1);
    put_text("a/README.md.jsonl"), put_text("a/dataset_infos.json"), put_text("a/.cache/huggingface/x.parquet"), put_text("a/notes.pdf");
    assert_files("a", "a/data/train-00000-of-00002-ab12.parquet a/data/train-00001-of-00002.parquet");
    assert_files("a/", "a/data/train-00000-of-00002-ab12.parquet a/data/train-00001-of-00002.parquet");
    assert_files("a/data", "a/data/train-00000-of-00002-ab12.parquet a/data/train-00001-of-00002.parquet");
    assert_files("a/test", "a/data/test-00000-of-00001.parquet");
    assert_files("a/data/test-00000-of-00001.parquet", "a/data/test-00000-of-00001.parquet");
    assert_none("a/validation", "no split of that folder, which has a/test, a/train");
    put("one/rows.parquet", 1, 1);
    assert_files("one", "one/rows.parquet");
    put("g/main/train-00000-of-00001.parquet", 1, 1), put("g/main/test-00000-of-00001.parquet", 1, 1);
    assert_files("g", "g/main/train-00000-of-00001.parquet");
    put("g/socratic/train-00000-of-00001.parquet", 1, 1);
    assert_none("g", "give one of g/main/test, g/main/train, g/socratic/train");
    assert_none("g/train", "g/train: no such file, and no split of that folder");
    assert_files("g/main", "g/main/train-00000-of-00001.parquet");
    assert_files("g/main/test", "g/main/test-00000-of-00001.parquet");
    put("c/default/train/0000.parquet", 1, 1), put("c/default/train/0001.parquet", 1, 1), put("c/default/test/0000.parquet", 1, 1);
    assert_files("c", "c/default/train/0000.parquet c/default/train/0001.parquet");
    assert_files("c/test", "c/default/test/0000.parquet");
    put("v/validation.parquet", 1, 1), put("v/test.parquet", 1, 1);
    assert_none("v", "not one that is called train; give one of v/test, v/validation");
    put_text("j/data.jsonl"), put_text("j/dataset_infos.json");
    assert_files("j", "j/data.jsonl");
    put_text("j2/train-00000-of-00002.jsonl"), put_text("j2/train-00001-of-00002.jsonl");
    assert_none("j2", "name the files with commas between them");
    assert_ok(tune_file_make_folder("empty/below"));
    assert_none("empty", "no file of rows lies in this folder");
    put_text("model/config.json"), put_text("model/tokenizer.json");
    assert_none("model", "is a folder with a model");
    assert_files("absent.jsonl", "absent.jsonl"); /* opening it says that it is not there */
}

/* A file of 1 MiB with 300 rows of 1 MiB each. */
static void bomb(void **state)
{
    (void)state;
    static char text[(1 << 20) + 4];
    const struct parquet_node node = {"t", TEXT_TYPE, .converted = 1};
    struct tune_rows r;
    memset(text, 'x', sizeof text);
    memcpy(text, "\0\0\x10\0", 4);
    parquet_begin(&f);
    parquet_chunk(&f, TEXT_TYPE, 300);
    parquet_page(&f, PAGE_DICTIONARY, 0, 1, text, sizeof text);
    parquet_page(&f, PAGE_1, 8, 300, "\1\xd8\4\0", 4);
    parquet_end(&f, &node, 1, 1, 300);
    test_write(".", "bomb.parquet", f.data, f.size);
    assert_int_equal(tune_rows_open(&r, "bomb.parquet", &(struct tune_dataset_options){0}), -1);
    assert_error_has("bomb.parquet: its rows would take more than 256 MiB as JSON");
    assert_error_has("raise `expansion_limit`");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_ok(tune_rows_open(&r, "bomb.parquet", &(struct tune_dataset_options){.expansion = 400}));
    assert_int_equal(r.count, 300);
    tune_rows_close(&r);
}

static void rows(void **state)
{
    (void)state;
    struct tune_rows r;
    assert_ok(tune_rows_open(&r, "a", &(struct tune_dataset_options){0}));
    assert_int_equal(r.count, 4);
    assert_true(r.copied && r.format == TUNE_DATASET_JSONL);
    for (int i = 0; i < 4; i++) {
        char want[16];
        struct tune_file_row row = tune_rows_get(&r, i);
        int size = snprintf(want, sizeof want, "{\"n\":%d}", i + 1);
        assert_int_equal(row.size, size);
        assert_memory_equal(row.text, want, row.size);
        assert_int_equal(row.line, i + 1);
    }
    assert_ok(tune_file_remove_folder("a/data/train-00000-of-00002-ab12.parquet")); /* the copy stays whole */
    assert_ok(tune_rows_uncut(&r));
    assert_int_equal(tune_rows_get(&r, 3).size, 7);
    tune_rows_close(&r);
    assert_ok(rename("one/rows.parquet", "one/rows")); /* known by its first bytes */
    assert_ok(tune_rows_open(&r, "one/rows", &(struct tune_dataset_options){0}));
    assert_true(r.copied && r.count == 1);
    tune_rows_close(&r);
    put("none.parquet", 0, 0);
    assert_int_equal(tune_rows_open(&r, "none.parquet", &(struct tune_dataset_options){0}), -1);
    assert_error_has("none.parquet: has no rows");
    test_write(".", "wrong.parquet", "{\"n\":0}\n{\"n\":0}\n", 16);
    assert_int_equal(tune_rows_open(&r, "wrong.parquet", &(struct tune_dataset_options){0}), -1);
    assert_error_has("wrong.parquet: does not end as a Parquet file does");
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(tune_rows_open(&r, "g/main", &(struct tune_dataset_options){0}), -1);
    assert_error_has("set TMPDIR");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    unsetenv("TMPDIR");
}

static void facts(void **state)
{
    (void)state;
    struct tune_file_stamp stamp, one;
    uint64_t all = 0, single = 0, again = 0;
    put("a/data/train-00000-of-00002-ab12.parquet", 1, 2);
    assert_ok(tune_dataset_file("a", &stamp, &all));
    assert_ok(tune_file_stamp("a/data/train-00001-of-00002.parquet", &one));
    assert_true(stamp.size == 2 * one.size); /* two files of the same size */
    assert_ok(tune_dataset_file("g/main", &stamp, &single));
    assert_ok(tune_file_fingerprint("g/main/train-00000-of-00001.parquet", &again));
    assert_true(single == again && all != single);
    put("a/data/train-00001-of-00002.parquet", 4, 2);
    again = 0;
    assert_ok(tune_dataset_file("a", &stamp, &again));
    assert_true(again != all);
}

static void names(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    static const char commit[] = "hub/datasets--me--cached/snapshots/0123456789abcdef0123456789abcdef01234567/data/train.parquet";
    setenv("HF_HUB_CACHE", "hub", 1);
    put("data/alpaca/train.parquet", 1, 1);
    put(commit, 1, 1);
    const char *found[][2] = {
        {"a", "a"}, {"one/rows", "one/rows"}, {"a/test", "a/test"}, {"tatsu-lab/alpaca", "data/alpaca"},
        {"tatsu-lab/alpaca/train", "data/alpaca/train"}, {"data/alpaca", "data/alpaca"},
        {"me/cached", "hub/datasets--me--cached/snapshots/0123456789abcdef0123456789abcdef01234567"},
        {"me/cached/train", "hub/datasets--me--cached/snapshots/0123456789abcdef0123456789abcdef01234567/train"},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        assert_ok(tune_dataset_find(found[i][0], path));
        assert_string_equal(path, found[i][1]);
    }
    const char *absent[][2] = {
        {"me/absent", "tools/download.sh --dataset me/absent data/absent"}, {"x.jsonl", "x.jsonl: no such file"},
        {"me/x.parquet", "me/x.parquet: no such file"}, {"word", "or a Hub id such as"}, {"../me/set/x", "no such file"}, {"", "no such file"},
    };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(tune_dataset_find(absent[i][0], path), -1);
        assert_error_has(absent[i][1]);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(splits), cmocka_unit_test(rows), cmocka_unit_test(bomb), cmocka_unit_test(facts), cmocka_unit_test(names)};
    int status = cmocka_run_group_tests(tests, test_home_begin, test_home_end);
    free(f.data);
    return status;
}
