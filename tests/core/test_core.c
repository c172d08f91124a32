/* test_core.c - error, file, json, random, tensor. */
#include <signal.h>
#include <sys/resource.h>

#include "test.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/batch.h"
#include "runs/checkpoint_names.h"
#include "machine/cpus.h"
#include "files/cjson.h"
#include "files/csv.h"
#include "core/float16.h"
#include "files/folder.h"
#include "core/hash.h"
#include "core/map.h"
#include "machine/host.h"
#include "files/json.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/print.h"
#include "core/random.h"
#include "core/tensor.h"

static int whole(const char *text, size_t size)
{
    struct tune_json j;
    tune_json_start(&j, "t", text, size, 1);
    int status = tune_json_skip(&j) < 0 || tune_json_end(&j) < 0 ? -1 : 0;
    tune_json_free(&j);
    return status;
}

static void json_accepts_and_refuses(void **state)
{
    (void)state;
    static const char *const good[] = {"{}", "[]", " [1, -2.5e+3, 0, 0.1, true, false, null, \"\\u00e9\\ud83d\\ude00\\n\"] ",
                                       "{\"a\":{\"b\":[[],{}]},\"\":1}", "\"\xc3\xa9\"", "0", "-0.0"};
    static const char *const bad[] = {"", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "-", "1e", "NaN", "nul",
                                      "\"\\x\"", "\"\n\"", "\"\\ud800\"", "\"\\ud800x\"", "\"\\u12g4\"", "[1 2]", "{\"a\" 1}",
                                      "1 2", "\xef\xbb\xbf{}", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\"", "\"abc", "]", "[}",
                                      "{\"a\":1]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_ok(whole(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (whole(bad[i], strlen(bad[i])) == 0)
            fail_msg("accepted %s", bad[i]);
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    assert_int_equal(whole(deep + 100, 200), 0);
    assert_int_equal(whole(deep + 50, 300), -1);
    assert_error_has("deeper than 128");
}

static void json_values_and_places(void **state)
{
    (void)state;
    const char *text = "{\"n\": 18446744073709551615,\n \"x\": 1.5, \"s\": \"a\\u0000b\", \"k\": 18446744073709551616}";
    struct tune_json j;
    struct tune_text key, s;
    uint64_t n;
    double x;
    tune_json_start(&j, "f.json", text, strlen(text), 7);
    assert_ok(tune_json_object(&j));
    assert_int_equal(tune_json_key(&j, &key), 1);
    assert_true(tune_text_equal(key, "n"));
    assert_ok(tune_json_u64(&j, &n));
    assert_true(n == UINT64_MAX);
    assert_int_equal(tune_json_key(&j, &key), 1);
    assert_ok(tune_json_double(&j, &x));
    assert_true(x == 1.5);
    assert_int_equal(tune_json_key(&j, &key), 1);
    assert_ok(tune_json_string(&j, &s));
    assert_int_equal(s.size, 3);
    assert_memory_equal(s.data, "a\0b", 4);
    assert_int_equal(tune_json_key(&j, &key), 1);
    assert_int_equal(tune_json_u64(&j, &n), -1);
    assert_error_has("f.json:8:");
    tune_json_free(&j);
}

/* The same double as strtod, whether the number is short or not. */
static void json_numbers(void **state)
{
    (void)state;
    static const char *const edges[] = {"0", "-0", "-0.0", "9007199254740993", "999999999999999", "0.1e23", "1e22", "1e23", "123e-22", "4.9e-324",
                                        "1.7976931348623157e308", "1e-400", "0.000000000000000000000000000001", "5E+00000003", "-1e-00"};
    char text[64];
    int read = 0, numbers = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t r = tune_random_u64(5, 1, i);
        int digits = (int)(r % 18), power = (int)(r >> 8) % 30;
        size_t edge = sizeof edges / sizeof *edges;
        if (i < edge)
            snprintf(text, sizeof text, "%s", edges[i]);
        else
            snprintf(text, sizeof text, r & 1 << 20 ? "%s%.*g" : "%s%.*fe-7", r & 1 << 21 ? "-" : "", digits,
                     (double)(r >> 11) * 0x1p-53 * pow(10, power - 15));
        struct tune_json j;
        double got, want = strtod(text, NULL);
        tune_json_start(&j, "t", text, strlen(text), 1);
        assert_ok(tune_json_double(&j, &got));
        assert_ok(tune_json_end(&j));
        tune_json_free(&j);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s is %.17g, not %.17g", text, got, want);
        /* numbers and others: as long as the grammar says, or not read */
        text[tune_random_u64(5, 2, 3 * i) % strlen(text)] = "0123456789.eE+-,} x"[tune_random_u64(5, 2, 3 * i + 1) % 19];
        size_t cut = tune_random_u64(5, 2, 3 * i + 2) % (strlen(text) + 1), n = tune_json_number(text, text + cut, &got);
        tune_json_start(&j, "t", text, cut, 1);
        bool good = cut > 0 && *text != ' ' && tune_json_peek(&j) == TUNE_JSON_NUMBER && tune_json_skip(&j) == 0;
        text[cut] = 0;
        want = strtod(text, NULL);
        if (n > 0 && (!good || n != (size_t)(j.at - text) || (text[n] != 'x' && memcmp(&got, &want, sizeof got) != 0)))
            fail_msg("%s: %zu characters, %.17g", text, n, got);
        read += n > 0;
        numbers += good;
        tune_json_free(&j);
    }
    assert_in_range(read, numbers * 9 / 10, numbers);
}

static void float16_round_trips(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t f = (uint16_t)h;
        bool f16_nan = (h & 0x7c00) == 0x7c00 && (h & 1023), bf16_nan = (h & 0x7f80) == 0x7f80 && (h & 127);
        if (f16_nan)
            assert_true(isnan(tune_f16_to_float(f)) && isnan(tune_f16_to_float(tune_float_to_f16(tune_f16_to_float(f)))));
        else
            assert_int_equal(tune_float_to_f16(tune_f16_to_float(f)), h);
        if (bf16_nan)
            assert_true(isnan(tune_bf16_to_float(tune_float_to_bf16(tune_bf16_to_float(f)))));
        else
            assert_int_equal(tune_float_to_bf16(tune_bf16_to_float(f)), h);
    }
    assert_int_equal(tune_float_to_bf16(1.00390625f), 0x3f80);  /* halfway, even below */
    assert_int_equal(tune_float_to_bf16(1.01171875f), 0x3f82);  /* halfway, even above */
    assert_int_equal(tune_float_to_f16(1 + 0x1p-11f), 0x3c00);  /* the same of float16 */
    assert_int_equal(tune_float_to_f16(1 + 0x1.8p-10f), 0x3c02);
    assert_true(isnan(tune_bf16_to_float(tune_float_to_bf16(tune_float_from_bits(0x7f800001))))); /* its low half alone says NaN */
    assert_true(isnan(tune_f16_to_float(tune_float_to_f16(tune_float_from_bits(0x7f800001)))));
    assert_int_equal(tune_float_to_f16(65519.f), 0x7bff);
    assert_int_equal(tune_float_to_f16(65520.f), 0x7c00);
    assert_int_equal(tune_float_to_f16(0x1p-25f), 0);           /* halfway to the least subnormal, even below */
    assert_int_equal(tune_float_to_f16(0x1.8p-25f), 1);
}

static void random_is_a_function(void **state)
{
    (void)state;
    /* Known answers of Philox 2x64-10: the paper's own test vectors. */
    assert_true(tune_random_u64(0, 0, 0) == 0xca00a0459843d731u);
    assert_true(tune_random_u64(UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0x65b021d60cd8310fu);
    double sum = 0, square = 0;
    for (int i = 0; i < 20000; i++) {
        double x = tune_random_normal(3, 1, (uint64_t)i);
        sum += x;
        square += x * x;
    }
    assert_true(fabs(sum / 20000) < 0.03 && fabs(square / 20000 - 1) < 0.05);
    static const uint64_t sizes[] = {1, 2, 3, 5, 64, 100, 1000, 65537};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        char *seen = calloc(sizes[s], 1);
        uint64_t moved = 0;
        for (uint64_t i = 0; i < sizes[s]; i++) {
            uint64_t to = tune_random_permute(7, 1, sizes[s], i);
            assert_true(to < sizes[s] && !seen[to]);
            seen[to] = 1;
            moved += to != i;
        }
        assert_true(sizes[s] < 64 || moved > sizes[s] * 9 / 10);
        free(seen);
    }
    assert_true(tune_random_permute(1, 1, (uint64_t)1 << 63, 5) < (uint64_t)1 << 63);
    /* uniform: the upper 53 bits; normal: Box and Muller's of a pair, whose logarithm is of 1 - u, never of 0 */
    for (uint64_t i = 0; i < 2000; i++) {
        double u = tune_random_uniform(3, 1, i), pair[2] = {tune_random_uniform(3, 1, 2 * i), tune_random_uniform(3, 1, 2 * i + 1)};
        assert_true(u == (double)(tune_random_u64(3, 1, i) >> 11) / 0x1p53 && u < 1);
        assert_true(fabs(tune_random_normal(3, 1, i) - sqrt(-2 * log(1 - pair[0])) * cos(2 * 3.14159265358979324 * pair[1])) < 1e-12);
    }
    /* of nearly 2^128: indices that differ in one bit go to different places, and back inside */
    const tune_wide most = ~(tune_wide)0;
    for (int bit = 0; bit < 127; bit++) {
        tune_wide a = tune_random_permute_wide(5, 1, most, 99), b = tune_random_permute_wide(5, 1, most, 99 ^ (tune_wide)1 << bit);
        assert_true(a != b && a < most && b < most);
    }
}

static void files_are_replaced_whole(void **state)
{
    (void)state;
    const char *folder = test_folder();
    char path[TUNE_PATH_MAX], link[TUNE_PATH_MAX], target[8], *text;
    size_t size;
    assert_ok(tune_path(path, "%s/a/b", folder));
    assert_ok(tune_file_make_folder(path));
    assert_ok(tune_path(path, "%s/a/b/f", folder));
    assert_ok(tune_file_write(path, "one", 3));
    struct tune_file_writer w;
    assert_ok(tune_file_begin(&w, path));
    fputs("two", w.file);
    assert_ok(tune_file_read(path, 100, &text, &size));
    assert_string_equal(text, "one"); /* until commit the old one is there */
    free(text);
    tune_file_cancel(&w);
    assert_ok(tune_file_write(path, "three", 5));
    assert_int_equal(tune_file_read(path, 4, &text, &size), -1);
    assert_error_has("more than the 4");
    assert_ok(tune_path(link, "%s/a/l", folder));
    assert_ok(tune_file_link(link, "b/f"));
    assert_ok(tune_file_link(link, "b/f"));
    assert_ok(tune_file_read(link, 100, &text, &size));
    assert_string_equal(text, "three");
    free(text);
    assert_ok(tune_file_begin_output(&w, link)); /* follows it; tune_file_begin would replace it */
    fputs("four", w.file);
    assert_ok(tune_file_commit(&w));
    assert_int_equal(readlink(link, target, sizeof target), 3);
    assert_ok(tune_file_read(path, 100, &text, &size));
    assert_string_equal(text, "four");
    free(text);
    assert_int_equal(tune_file_write("/proc/no/such", "x", 1), -1);
    assert_error_has("/proc/no/such");
    struct tune_mapping m;
    assert_int_equal(tune_file_map(&m, folder), -1);
    assert_error_has("a folder");
    assert_ok(tune_file_remove_folder(folder));
    assert_false(tune_file_exists(folder));
}

/* Resident pages of files, from /proc. */
static long file_pages(void)
{
    long pages[3] = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld %ld", &pages[0], &pages[1], &pages[2]), 3);
    fclose(f);
    return pages[2];
}

static void released_pages_are_not_resident(void **state)
{
    (void)state;
    enum { SIZE = 16 << 20 };
    char *text = calloc(1, SIZE), path[TUNE_PATH_MAX];
    const char *folder = test_folder();
    struct tune_mapping m;
    long page = sysconf(_SC_PAGESIZE), sum = 0;
    assert_non_null(text);
    memset(text, 1, SIZE);
    assert_ok(tune_path(path, "%s/f", folder));
    test_write(folder, "f", text, SIZE);
    assert_ok(tune_file_map(&m, path));
    long before = file_pages();
    for (size_t i = 0; i < SIZE; i += (size_t)page)
        sum += m.data[i];
    long touched = file_pages();
    tune_file_release(m.data + 1, m.data + SIZE);
    assert_int_equal(sum, SIZE / page);
    assert_true(touched - before > SIZE / page / 2);
    assert_true(file_pages() - before < SIZE / page / 8);
    assert_int_equal(memcmp(m.data, text, SIZE), 0);
    tune_file_unmap(&m);
    free(text);
    assert_ok(tune_file_remove_folder(folder));
}

/* Somebody cuts the file between its opening and the reading: an error that says so. */
static void cut_files_are_errors(void **state)
{
    (void)state;
    const char *folder = test_folder();
    char path[TUNE_PATH_MAX], data[6];
    size_t size;
    assert_ok(tune_path(path, "%s/f", folder));
    test_write(folder, "f", "abcdef", 6);
    int fd = tune_file_open(path, &size);
    assert_true(fd >= 0 && size == 6);
    assert_ok(tune_file_read_at(fd, path, 2, data, 4));
    assert_memory_equal(data, "cdef", 4);
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(tune_file_read_at(fd, path, 2, data, 4), -1);
    assert_error_has("was cut to 4 bytes");
    close(fd);
    assert_ok(tune_file_remove_folder(folder));
}

static void full_disk_is_an_error(void **state)
{
    (void)state;
    /* /dev/full takes nothing: the failure shows at flush, as on a full disk. */
    struct tune_file_writer w = {.file = fopen("/dev/full", "w")};
    if (!w.file)
        skip();
    snprintf(w.path, sizeof w.path, "/tmp/x");
    fputs("some bytes", w.file);
    assert_int_equal(tune_file_commit(&w), -1);
    assert_error_has("No space left");
    tune_file_cancel(&w);
}

static void fingerprint_sees_changes(void **state)
{
    (void)state;
    const char *folder = test_folder();
    char path[TUNE_PATH_MAX];
    size_t size = 5 << 20;
    char *data = calloc(size, 1);
    uint64_t a = 0, b = 0, c = 0;
    assert_ok(tune_path(path, "%s/f", folder));
    test_write(folder, "f", data, size);
    assert_ok(tune_file_fingerprint(path, &a));
    assert_ok(tune_file_fingerprint(path, &b));
    assert_true(a == b);
    data[size - 1] = 1; /* the last byte is looked at */
    test_write(folder, "f", data, size);
    assert_ok(tune_file_fingerprint(path, &c));
    assert_true(a != c);
    free(data);
    assert_ok(tune_file_remove_folder(folder));
    assert_true(tune_hash64("", 0, 0) != tune_hash64("\0", 1, 0));
}

static void arena_counts(void **state)
{
    (void)state;
    struct tune_arena count = {0}, a = {{64}, 0};
    assert_int_equal(tune_arena_take(&count, 3, 5).at, 0);
    assert_int_equal(tune_arena_take(&count, 1, 64).at, 0);
    assert_int_equal(count.used, 128);
    assert_int_equal(tune_arena_take(&a, 3, 5).at, 64);
    assert_int_equal(tune_arena_take(&a, 0, 64).at, 0);
    assert_int_equal(tune_arena_take(&a, 3, 0).at, 0);
    assert_int_equal(tune_arena_take(&a, 1, 64).at, 128);
    tune_arena_take(&count, (int64_t)1 << 31, (int64_t)1 << 32); /* more than 64 bits: never wraps to something small */
    assert_true(count.used == INT64_MAX);
    tune_arena_take(&count, 1, 1);
    assert_true(count.used == INT64_MAX);
}

static void *other_thread(void *text)
{
    tune_error_set("%s", (char *)text);
    return NULL;
}

static void errors_are_the_threads_own(void **state)
{
    (void)state;
    pthread_t t;
    tune_error_set_kind(TUNE_ERROR_USAGE, "mine");
    pthread_create(&t, NULL, other_thread, "theirs");
    pthread_join(t, NULL);
    assert_string_equal(tune_error_message(), "mine");
    tune_error_prefix("here: ");
    assert_string_equal(tune_error_message(), "here: mine");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    tune_error_set("%s", long_text);
    assert_int_equal(strlen(tune_error_message()), 2047);
    assert_string_equal(tune_error_message() + 2044, "...");
}

/* A folder is there whole or not, and what a process of the same number left behind is not taken for its own. */
static void folders_appear_whole(void **state)
{
    (void)state;
    struct tune_folder_writer w, other;
    char path[TUNE_PATH_MAX], inner[TUNE_PATH_MAX];
    char home[64];
    snprintf(home, sizeof home, "%s", test_folder());
    assert_ok(tune_path(path, "%s/new", home));
    assert_ok(tune_file_begin_folder(&w, path));
    assert_ok(tune_path(inner, "%s/left", w.temporary));
    assert_ok(tune_file_write(inner, "x", 1)); /* killed here */
    assert_ok(tune_file_begin_folder(&w, path));
    assert_false(tune_file_exists(inner));
    assert_ok(tune_path(inner, "%s/file", w.temporary));
    assert_ok(tune_file_write(inner, "x", 1));
    assert_false(tune_file_exists(path));
    assert_ok(tune_file_commit_folder(&w));
    tune_file_cancel_folder(&w); /* nothing any more */
    assert_ok(tune_path(inner, "%s/new/file", home));
    assert_true(tune_file_exists(inner));
    assert_ok(tune_file_begin_folder(&other, path));
    assert_int_equal(tune_file_commit_folder(&other), -1); /* a folder with something in it is not replaced */
    assert_error_has("new");
    tune_file_cancel_folder(&other);
    assert_error_has("new"); /* still the reason */
    assert_true(tune_file_exists(inner));

    /* Beginning a file removes the temporary files of killed processes beside it. Those of living processes stay, and locked ones. */
    static const char *const beside[] = {"out.tmp-4194303", "out.tmp-4194302", "out.tmp-1", "out.tmp-x", "outer.tmp-4194303"};
    struct tune_file_writer file;
    for (int i = 0; i < 5; i++)
        test_write(home, beside[i], "x", 1);
    assert_ok(tune_path(path, "%s/%s", home, beside[1]));
    int locked = open(path, O_RDONLY);
    assert_true(locked >= 0 && flock(locked, LOCK_EX | LOCK_NB) == 0);
    assert_ok(tune_path(path, "%s/out", home));
    assert_ok(tune_file_begin(&file, path));
    tune_file_cancel(&file);
    for (int i = 0; i < 5; i++) {
        assert_ok(tune_path(path, "%s/%s", home, beside[i]));
        assert_int_equal(tune_file_exists(path), i != 0);
        unlink(path);
    }
    close(locked);

    static const char *const left[] = {"a.tmp-1", "b.json.tmp-4194303", "new/x.tmp-12"};
    static const char *const kept[] = {".tmp-1", "a.tmp-", "a.tmp-1x", "a.tmp-1.json", "tmp-1"};
    test_write(home, "new/x.tmp-12", "x", 1);
    assert_ok(tune_path(path, "%s/deep.tmp-3/in", home));
    assert_ok(tune_file_make_folder(path));
    for (int i = 0; i < 2; i++)
        test_write(home, left[i], "x", 1);
    for (int i = 0; i < 5; i++)
        test_write(home, kept[i], "x", 1);
    assert_ok(tune_file_remove_leftovers(home));
    for (int i = 0; i < 3; i++) {
        assert_ok(tune_path(path, "%s/%s", home, left[i]));
        assert_int_equal(tune_file_exists(path), i == 2); /* not in folders below */
    }
    for (int i = 0; i < 5; i++) {
        assert_ok(tune_path(path, "%s/%s", home, kept[i]));
        assert_true(tune_file_exists(path));
    }
    assert_ok(tune_path(path, "%s/deep.tmp-3", home));
    assert_false(tune_file_exists(path));
    assert_ok(tune_path(path, "%s/new", home));
    assert_ok(tune_file_discard_folder(path));
    assert_false(tune_file_exists(path));
    assert_ok(tune_file_discard_folder(path));
    assert_ok(tune_file_remove_folder(home));
}

static void checkpoints_by_name(void **state)
{
    (void)state;
    static const char *const others[] = {"checkpoint-", "checkpoint-0", "checkpoint-07", "checkpoint-5.tmp-9", "checkpoint-best",
                                         "checkpoint--3", "checkpoint-99999999999999999999", "checkpoint-8x"};
    char home[64], path[TUNE_PATH_MAX];
    int64_t *steps;
    snprintf(home, sizeof home, "%s", test_folder());
    assert_int_equal(tune_checkpoint_steps(home, &steps), 0);
    free(steps);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(tune_checkpoint_named(others[i]), 0);
        assert_ok(tune_path(path, "%s/%s", home, others[i]));
        assert_ok(tune_file_make_folder(path));
    }
    static const int order[] = {100, 9, 20, 3, 1000};
    for (int i = 0; i < 5; i++) {
        assert_ok(tune_path(path, "%s/checkpoint-%d", home, order[i]));
        assert_ok(tune_file_make_folder(path));
    }
    assert_ok(tune_path(path, "%s/checkpoint-77", home));
    assert_ok(tune_file_link(path, "checkpoint-9"));
    test_write(home, "checkpoint-78", "a file", 6);
    assert_int_equal(tune_checkpoint_steps(home, &steps), 5);
    static const int64_t want[] = {3, 9, 20, 100, 1000};
    assert_memory_equal(steps, want, sizeof want);
    free(steps);
    assert_ok(tune_file_remove_folder(home));
    assert_int_equal(tune_checkpoint_steps(home, &steps), -1);
}

/* By edits; a name that holds the other, or begins with it, whatever its dashes are, is one edit away. */
static void the_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"lr", "model_max_length", "batch-size"};
    static const char *const cases[][2] = {{"rl", "lr"}, {"model_", "model_max_length"}, {"model-max", "model_max_length"},
                                           {"batch_", "batch-size"}, {"my_model-max_length_in_all", "model_max_length"}};
    int distance;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(tune_nearest(cases[i][0], names, 3, &distance), cases[i][1]);
        assert_int_equal(distance, 1);
    }
    assert_null(tune_nearest("lr", names, 0, NULL));
}

/* Nothing that moves a cursor, C1 in UTF-8 among it; other texts stay as they are. */
static void control_characters_are_blanked(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a\x1b[2Jb\n\x7f", "a?[2Jb??"}, {"\xc2\x9b" "31m", "??31m"},
        {"\xc2\xa0\xc3\x9b\xc2", "\xc2\xa0\xc3\x9b\xc2"},
        {"\xc2\x80\x01", "???"},         {"na\xc3\xafve", "na\xc3\xafve"}, {"", ""},
        {"\xe2\x80\xae" "a\xe2\x81\xa6", "???a???"}, {"\xe2\x80\xa8\xe2\x80\xa7\xe2\x80\x8d", "???\xe2\x80\xa7\xe2\x80\x8d"},
        {"\x9b" "1m\xe2\x80", "?1m\xe2?"}, {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        tune_blank_controls(text);
        assert_string_equal(text, cases[i][1]);
    }
}

/* Whatever a figure depends on is part of the class: another machine must not answer for this one. */
static void host_classes_differ(void **state)
{
    (void)state;
    struct tune_host h = {.machine = "x86_64", .cpu = "EPYC 9", .cpus = 8, .memory_bytes = 16LL << 30};
    char text[2][512];
    assert_string_equal(tune_host_class(&h, 0, text[0], sizeof text[0]), "x86_64 EPYC 9 x8, 16 GiB");
    assert_string_equal(tune_host_class(&h, 2, text[0], sizeof text[0]), "x86_64 EPYC 9 x2, 16 GiB");
    h.memory_bytes = (64LL << 30) - (100 << 20); /* what the kernel leaves of it */
    assert_string_equal(tune_host_class(&h, 0, text[0], sizeof text[0]), "x86_64 EPYC 9 x8, 64 GiB");
    snprintf(h.gpu, sizeof h.gpu, "H100");
    snprintf(h.driver, sizeof h.driver, "550.1");
    h.gpus = 2;
    assert_string_equal(tune_host_class(&h, 0, text[0], sizeof text[0]), "x86_64 EPYC 9 x8, 64 GiB, H100 x2, driver 550.1");
    *h.driver = 0;
    assert_string_equal(tune_host_class(&h, 0, text[0], sizeof text[0]), "x86_64 EPYC 9 x8, 64 GiB, H100 x2, driver unknown");
    tune_host_read(&h);
    assert_true(h.memory_bytes > 0);
    tune_host_class(&h, 1, text[0], sizeof text[0]);
    h.memory_bytes *= 2;
    assert_string_not_equal(tune_host_class(&h, 1, text[1], sizeof text[1]), text[0]);
}

/* A lost write is an error, whenever it is noticed. */
static void lost_writes_are_errors(void **state)
{
    (void)state;
    struct tune_file_writer w;
    struct rlimit limit, before;
    char path[TUNE_PATH_MAX], *text, data[8192] = "";
    size_t size;
    const char *folder = test_folder();
    assert_ok(tune_path(path, "%s/file", folder));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    assert_ok(tune_file_begin(&w, path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(fwrite(data, 1, sizeof data, w.file) < sizeof data || fflush(w.file) != 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(tune_file_commit(&w), -1); /* though there is room again */
    tune_file_cancel(&w);
    assert_false(tune_file_exists(path));
    assert_ok(tune_file_begin_output(&w, "/dev/null"));
    close(fileno(w.file));
    assert_int_equal(tune_file_commit(&w), -1); /* known when it is closed, and only then */
    tune_file_cancel(&w);
    assert_ok(tune_file_write(path, data, 100));
    assert_ok(tune_file_read(path, 100, &text, &size));
    free(text);
    assert_int_equal(tune_file_read(path, 99, &text, &size), -1);
    assert_error_has("has 100 bytes, more than the 99");
    assert_ok(tune_file_remove_folder(folder));
}

/* CSV fields read back as they were written. */
static void csv_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "", "a,b", "say \"no\"", "two\nlines", "a\rb", "\"", "\r\n", " x "};
    enum { COUNT = sizeof texts / sizeof *texts };
    char *text;
    size_t size;
    const char *const *fields;
    int count;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < COUNT; i++) {
        fputs(i ? "," : "", f);
        tune_csv_put(f, texts[i]);
    }
    fputs("\n", f);
    fclose(f);
    struct tune_csv *csv = tune_csv_from_text(text, size, "x.csv", 1, ',');
    assert_got(csv);
    assert_int_equal(tune_csv_row(csv, &fields, &count), 1);
    assert_int_equal(count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(fields[i], texts[i]);
    assert_int_equal(tune_csv_row(csv, &fields, &count), 0);
    tune_csv_free(csv);
    free(text);
}

/* Test vectors of the paper's reference code: key 0 1 2 ... 15, data 0 1 2 ... */
static void a_hash_with_a_key(void **state)
{
    (void)state;
    uint8_t bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)i;
    assert_true(tune_siphash(bytes, 0, bytes) == 0x726fdb47dd0e0e31);
    assert_true(tune_siphash(bytes, 1, bytes) == 0x74f839c593dc67fd);
    assert_true(tune_siphash(bytes, 8, bytes) == 0x93f5f5799a932462);
    assert_true(tune_siphash(bytes, 15, bytes) == 0xa129ca6149be45e5);
    assert_true(tune_siphash(bytes, 63, bytes) == 0x958a324ceb064572);
}

static void threads_by_wish(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        int threads;
    } cases[] = {{"3", 3},        {"4,2", 4},   {"2, 100", 2}, {" 2 , 1 ", 2}, {"1,4097", 1}, {"4096", 4096}, {"0", -1}, {"4097", -1},
                 {"5000,1", -1}, {"4;2", -1}, {"4,", -1},    {"4,0", -1},   {"x", -1},      {"-1", -1},     {",4", -1},
                 {"99999999999999999999", -1}, {"4294967297", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(setenv("OMP_NUM_THREADS", cases[i].set, 1), 0);
        int threads = tune_cpus_threads(0);
        if (threads != cases[i].threads)
            fail_msg("OMP_NUM_THREADS=%s: %d threads, expected %d", cases[i].set, threads, cases[i].threads);
        if (threads < 0) {
            assert_error_has("expected a number of threads in [1,4096]");
            assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        }
        assert_int_equal(tune_cpus_threads(7), 7); /* what is asked for comes first */
    }
    assert_int_equal(setenv("OMP_NUM_THREADS", "", 1), 0);
    assert_int_equal(tune_cpus_threads(0), tune_cpus_cores(""));
    assert_int_equal(unsetenv("OMP_NUM_THREADS"), 0);
    assert_int_equal(tune_cpus_threads(0), tune_cpus_cores(""));
    assert_int_equal(tune_cpus_threads(4096), 4096);
    assert_int_equal(tune_cpus_threads(4097), -1);
    assert_error_has("4097 threads");
}

/* ---- links in folders of others ---- */

static char home[TUNE_PATH_MAX];

static const char *in_home(const char *name)
{
    static char paths[4][TUNE_PATH_MAX];
    static int turn;
    char *path = paths[turn++ % 4];
    assert_ok(tune_path(path, "%.2000s/%s", home, name));
    return path;
}

/* A link, in folders that are made, to target: a path below home, or as it is where it begins with a dot. */
static void link_to(const char *name, const char *target)
{
    char folder[TUNE_PATH_MAX];
    assert_ok(tune_file_parent(folder, in_home(name)));
    assert_ok(tune_file_make_folder(folder));
    assert_int_equal(symlink(*target == '.' ? target : in_home(target), in_home(name)), 0);
}

static void put(const char *name)
{
    char folder[TUNE_PATH_MAX];
    assert_ok(tune_file_parent(folder, in_home(name)));
    assert_ok(tune_file_make_folder(folder));
    assert_ok(tune_file_write(in_home(name), name, strlen(name)));
}

/* The folder's entry "it" is read through its link, or refused with this text. */
static void leads(const char *folder, const char *target, const char *refusal)
{
    char name[TUNE_PATH_MAX], *text = NULL;
    size_t size;
    assert_ok(tune_path(name, "%s/it", folder));
    link_to(name, target);
    int status = tune_folder_read(in_home(folder), "it", 4096, &text, &size);
    if (refusal) {
        assert_int_equal(status, -1);
        assert_error_has(refusal);
    } else {
        assert_ok(status);
        assert_int_equal(text[size], 0);
    }
    if (*target != '.' && !refusal)
        assert_string_equal(text, target);
    free(text);
    assert_int_equal(unlink(in_home(name)), 0);
}

static void links_stay_inside(void **state)
{
    (void)state;
    static const char outside[] = "which is outside its folder", *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"};
    static const char blob[] = "hub/models--a--b/blobs/abc";
    struct tune_folder_file f;
    char cache[TUNE_PATH_MAX];
    assert_true(realpath(test_folder(), home) != NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(setenv(variables[i], "", 1), 0); /* empty is not set */
    assert_int_equal(setenv("HF_HOME", in_home("absent"), 1), 0);
    tune_hub_cache(cache);
    assert_string_equal(cache, in_home("absent/hub"));
    put(blob);
    put("hub/models--a--b/blobs/deep/abc");
    put("hub/models--a--b/other/abc");
    put("hub/datasets--a--b/blobs/abc");
    put("model/sub/x");
    put("model-secret/key");
    /* inside the folder, and beside it */
    leads("model", "model/sub/x", NULL);
    leads("model", "./sub/x", NULL);
    leads("model", "model-secret/key", outside);
    leads("model", "../model-secret/key", outside);
    leads("model", blob, outside); /* no cache is there */
    /* a snapshot and the blobs of its repository */
    leads("hub/models--a--b/snapshots/1", blob, NULL);
    leads("hub/models--a--b/snapshots/1/sub", blob, NULL);
    leads("hub/models--a--b/snapshots/1", "hub/models--a--b/blobs/deep/abc", outside);
    leads("hub/models--a--b/snapshots/1", "hub/models--a--b/other/abc", outside);
    leads("hub/models--c--d/snapshots/1", blob, outside);
    put("snapshots/models--a--b/blobs/abc");
    leads("snapshots/models--a--b/snapshots/1", "snapshots/models--a--b/blobs/abc", NULL); /* the last of these names counts too */
    /* the user's cache */
    assert_int_equal(setenv("HF_HUB_CACHE", in_home("hub"), 1), 0);
    leads("model", blob, NULL);
    leads("model", "hub/models--a--b/blobs/deep/abc", outside);
    leads("model", "hub/models--a--b/other/abc", outside);
    leads("model", "hub/datasets--a--b/blobs/abc", outside);
    leads("model", "model-secret/key", outside);
    /* no files */
    assert_int_equal(mkfifo(in_home("model/pipe"), 0666), 0);
    leads("model", "./pipe", "is not a regular file");
    leads("model", "./sub", "is a folder");
    leads("model", "./nowhere", "a link to ./nowhere");
    link_to("model/loose", "./nowhere");
    assert_true(tune_folder_has(in_home("model"), "loose") && !tune_folder_has(in_home("model"), "nowhere"));
    /* permissions are told, and a copy has no more */
    assert_int_equal(chmod(in_home("model/sub/x"), 0640), 0);
    assert_ok(tune_folder_open(&f, in_home("model"), "sub/x"));
    assert_true(f.mode == 0640 && f.size == 11);
    close(f.fd);
    struct stat st;
    char left[TUNE_PATH_MAX];
    assert_ok(tune_path(left, "%.2000s/copy.tmp-%ld", home, (long)getpid()));
    assert_ok(tune_file_write(left, "", 0)); /* what a dead process of our number left */
    assert_int_equal(chmod(left, 0666), 0);
    assert_ok(tune_file_write_as(in_home("copy"), "x", 1, 0600));
    assert_int_equal(stat(in_home("copy"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(tune_file_remove_folder(home));
}

static void batch_from_ids(void **state)
{
    (void)state;
    const int32_t lengths[] = {3, 1, 4}, ids[] = {5, 6, 7, 8, 9, 10, 11, 12}, prompts[] = {2, 0, 9}, negative[] = {0, 0, -1};
    const int32_t want_ids[] = {5, 6, 7, 0, 8, 0, 0, 0, 9, 10, 11, 12}, N = TUNE_NO_LABEL;
    const int32_t all[] = {6, 7, N, N, N, N, N, N, 10, 11, 12, N}, some[] = {N, 7, N, N, N, N, N, N, N, N, N, N};
    struct tune_batch *b = tune_batch_new(3, lengths, ids, NULL), *c = tune_batch_new(3, lengths, ids, prompts);
    assert_got(b);
    assert_got(c);
    assert_true(b->B == 3 && b->T == 4 && b->tokens == 8 && b->label_count == 5 && c->label_count == 1);
    assert_memory_equal(b->ids, want_ids, sizeof want_ids);
    assert_memory_equal(c->ids, want_ids, sizeof want_ids);
    assert_memory_equal(b->labels, all, sizeof all);
    assert_memory_equal(c->labels, some, sizeof some);
    assert_memory_equal(b->lengths, lengths, sizeof lengths);
    assert_true(tune_batch_row(b, 0, 0) == -1 && !b->positions && !b->starts && b->row_count == 0 && b->epoch == 0);
    tune_batch_free(b);
    tune_batch_free(c);
    tune_batch_free(NULL);
    assert_null(tune_batch_new(0, lengths, ids, NULL));
    assert_error_has("no rows");
    assert_null(tune_batch_new(2, (const int32_t[]){1, 0}, ids, NULL));
    assert_error_has("row 1 of a batch: it has 0 ids");
    assert_null(tune_batch_new(3, lengths, ids, negative));
    assert_error_has("a prompt of -1");
}

/* Each prompt with the answer of the row before, and the first with that of the last; cut, and rounded up. */
static void mismatched_batches(void **state)
{
    (void)state;
    const int32_t lengths[] = {4, 3, 5}, prompts[] = {2, 1, 3}, ids[] = {1, 2, 11, 12, 3, 13, 14, 4, 5, 6, 15, 16}, N = TUNE_NO_LABEL;
    const struct {
        int most, multiple, T;
        int32_t lengths[3], ids[24], labels[24];
    } cases[] = {
        {9, 0, 5, {4, 3, 5}, {1, 2, 15, 16, 0, 3, 11, 12, 0, 0, 4, 5, 6, 13, 14}, {N, 15, 16, N, N, 11, 12, N, N, N, N, N, 13, 14, N}},
        {4, 8, 4, {4, 3, 4}, {1, 2, 15, 16, 3, 11, 12, 0, 4, 5, 6, 13}, {N, 15, 16, N, 11, 12, N, N, N, N, 13, N}},
        {9, 4, 8, {4, 3, 5}, {1, 2, 15, 16, 0, 0, 0, 0, 3, 11, 12, 0, 0, 0, 0, 0, 4, 5, 6, 13, 14, 0, 0, 0},
         {N, 15, 16, N, N, N, N, N, 11, 12, N, N, N, N, N, N, N, N, 13, 14, N, N, N, N}},
    };
    struct tune_batch *b = tune_batch_new(3, lengths, ids, prompts);
    assert_got(b);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct tune_batch *m = tune_batch_mismatched(b, cases[k].most, cases[k].multiple);
        assert_got(m);
        assert_true(m->B == 3 && m->T == cases[k].T);
        assert_memory_equal(m->lengths, cases[k].lengths, sizeof cases->lengths);
        assert_memory_equal(m->ids, cases[k].ids, 3 * (size_t)m->T * sizeof *m->ids);
        assert_memory_equal(m->labels, cases[k].labels, 3 * (size_t)m->T * sizeof *m->labels);
        tune_batch_free(m);
    }
    tune_batch_free(b);
    assert_got(b = tune_batch_new(1, lengths, ids, prompts)); /* alone, it has its own answer */
    struct tune_batch *m = tune_batch_mismatched(b, 9, 0);
    assert_got(m);
    assert_memory_equal(m->ids, ids, 4 * sizeof *ids);
    assert_memory_equal(m->labels, b->labels, 4 * sizeof *ids);
    tune_batch_free(m);
    tune_batch_free(b);
    /* Without a prompt, the first id is of the answer, too. */
    const int32_t bare_lengths[] = {3, 4}, bare_prompts[] = {0, 2}, bare[] = {11, 12, 13, 1, 2, 14, 15};
    const int32_t want[] = {14, 15, 0, 0, 0, 1, 2, 11, 12, 13}, want_labels[] = {15, N, N, N, N, N, 11, 12, 13, N};
    for (int all = 0; all < 2; all++) {
        assert_got(b = tune_batch_new(2, bare_lengths, bare, all ? NULL : bare_prompts));
        assert_got(m = tune_batch_mismatched(b, 9, 0));
        if (all) { /* nothing is a prompt */
            assert_memory_equal(m->lengths, ((int32_t[]){4, 3}), sizeof bare_lengths);
            assert_memory_equal(m->ids, bare + 3, 4 * sizeof *bare);
            assert_memory_equal(m->ids + 4, bare, 3 * sizeof *bare);
        } else {
            assert_memory_equal(m->lengths, ((int32_t[]){2, 5}), sizeof bare_lengths);
            assert_memory_equal(m->ids, want, sizeof want);
            assert_memory_equal(m->labels, want_labels, sizeof want_labels);
        }
        tune_batch_free(m);
        tune_batch_free(b);
    }
}

static void maps_count_keys(void **state)
{
    (void)state;
    struct tune_map m = {0};
    assert_int_equal(tune_map_get(&m, (const uint64_t[]){0, 0}), 0);
    for (int round = 1; round <= 2; round++)
        for (uint64_t i = 0; i < 5000; i++) {
            int64_t *value = tune_map_add(&m, (const uint64_t[]){i % 7, i});
            assert_non_null(value);
            assert_int_equal((*value)++, round - 1);
        }
    assert_int_equal(m.count, 5000);
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(tune_map_get(&m, (const uint64_t[]){i % 7, i}), 2);
    assert_int_equal(tune_map_get(&m, (const uint64_t[]){1, 0}), 0); /* half of each of two keys */
    tune_map_free(&m);
    assert_true(!m.at && m.count == 0 && m.capacity == 0);
}

static void pools_hold_pieces(void **state)
{
    (void)state;
    struct tune_pool *pool = NULL;
    char *large, *text = tune_pool_text(&pool, "abcdef", 3);
    assert_string_equal(text, "abc");
    for (size_t i = 1; i < 3000; i++) {
        unsigned char *piece = tune_pool_take(&pool, i);
        assert_true(piece && (uintptr_t)piece % _Alignof(max_align_t) == 0 && piece[0] == 0 && piece[i - 1] == 0);
        memset(piece, 0xff, i);
    }
    assert_non_null(large = tune_pool_take(&pool, 1 << 20));
    assert_true(large[0] == 0 && large[(1 << 20) - 1] == 0);
    assert_null(tune_pool_take(&pool, SIZE_MAX));
    assert_string_equal(text, "abc");
    tune_pool_free(pool);
    tune_pool_free(NULL);
}

static void names_between_commas(void **state)
{
    (void)state;
    const char *names[3];
    char text[] = ",a,bc,,d", many[] = "a,b,c,d", hint[TUNE_HINT];
    assert_int_equal(tune_name_split(text, names, 3), 3);
    assert_true(!strcmp(names[0], "a") && !strcmp(names[1], "bc") && !strcmp(names[2], "d"));
    assert_int_equal(tune_name_find(names, 3, "bc"), 1);
    assert_int_equal(tune_name_find(names, 3, "b"), -1);
    assert_string_equal(tune_nearest_hint("bd", names, 3, hint), " (the nearest is bc)");
    assert_string_equal(tune_nearest_hint("bd", names, 0, hint), "");
    assert_int_equal(tune_name_split(many, names, 3), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_int_equal(tune_name_split(NULL, names, 3), 0);
}

/* Strings of an object, NULs and quotes among them. */
static void bytes_as_json(void **state)
{
    (void)state;
    static const char nuls[] = "\0a\0\0\"b\n\0";
    cJSON *object = cJSON_CreateObject();
    assert_true(tune_cjson_put_bytes(object, "x", nuls, sizeof nuls - 1) && tune_cjson_put_bytes(object, "y", "", 0) &&
                tune_cjson_put_bytes(object, "z", "plain text", 5));
    char *text = cJSON_PrintUnformatted(object);
    assert_string_equal(text, "{\"x\":\"\\u0000a\\u0000\\u0000\\\"b\\n\\u0000\",\"y\":\"\",\"z\":\"plain\"}");
    cJSON_free(text);
    cJSON_Delete(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_as_json), cmocka_unit_test(json_accepts_and_refuses), cmocka_unit_test(json_values_and_places),
        cmocka_unit_test(json_numbers), cmocka_unit_test(float16_round_trips),      cmocka_unit_test(random_is_a_function),
        cmocka_unit_test(files_are_replaced_whole), cmocka_unit_test(full_disk_is_an_error),
        cmocka_unit_test(released_pages_are_not_resident),
        cmocka_unit_test(cut_files_are_errors),     cmocka_unit_test(fingerprint_sees_changes), cmocka_unit_test(errors_are_the_threads_own),
        cmocka_unit_test(arena_counts),             cmocka_unit_test(folders_appear_whole),
        cmocka_unit_test(checkpoints_by_name),      cmocka_unit_test(the_nearest_name),
        cmocka_unit_test(control_characters_are_blanked), cmocka_unit_test(host_classes_differ),
        cmocka_unit_test(mismatched_batches), cmocka_unit_test(maps_count_keys),          cmocka_unit_test(pools_hold_pieces),
        cmocka_unit_test(names_between_commas),
        cmocka_unit_test(lost_writes_are_errors),   cmocka_unit_test(csv_round_trip),
        cmocka_unit_test(a_hash_with_a_key),        cmocka_unit_test(threads_by_wish),
        cmocka_unit_test(links_stay_inside),        cmocka_unit_test(batch_from_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
