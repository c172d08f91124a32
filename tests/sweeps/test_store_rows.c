/* test_store_rows.c - sample stores where files, tables and columns change: between two rows, two files, two processes. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "test.h"

#include "sweeps/stores/sample_file.h"
#include "sweeps/stores/store_parts.h"

static const struct tune_column columns[] = {{"name", "", TUNE_CELL_TEXT, TUNE_COLUMN_INPUT, false},
                                             {"size", "B", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, true}};
enum { MORE = 2, ALL = TUNE_KEYS + MORE };

/* A row whose uid ends in n, with its request or alone; texts of that many bytes in it where long_text is not 0. */
static int add(struct tune_store *s, const char *experiment, int n, int long_text, bool requested)
{
    static char text[TUNE_STORE_TEXT_MAX + 1];
    char uid[33];
    struct tune_cell cells[ALL], request[TUNE_REQUEST_KEYS];
    memset(text, 'x', sizeof text);
    text[long_text ? long_text : 1] = 0;
    for (int i = 0; i < ALL; i++)
        cells[i] = (struct tune_cell){.whole = n, .number = n, .text = text};
    snprintf(uid, sizeof uid, "%032d", n);
    cells[TUNE_KEY_UID].text = uid;
    cells[TUNE_KEY_STATUS].text = "valid";
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        request[i] = (struct tune_cell){.number = 1, .whole = 1, .text = "measured"};
    request[TUNE_REQUEST_UID].text = uid;
    request[TUNE_REQUEST_STATUS].text = "valid";
    return tune_store_append(s, experiment, cells, requested ? request : NULL);
}

static void append(struct tune_store *s, const char *experiment, int n, int long_text)
{
    assert_ok(add(s, experiment, n, long_text, true));
}

static struct tune_store *open_store(const char *folder)
{
    struct tune_store *s = tune_store_open(folder, true);
    assert_got(s);
    assert_ok(tune_store_table(s, "exp", columns, MORE));
    return s;
}

static int rows_of(struct tune_store *s, const char *table)
{
    static const char *const names[] = {"uid"};
    const struct tune_cell *c;
    int n = 0, more;
    struct tune_scan *scan = tune_scan_open(s, table, names, 1);
    assert_got(scan);
    while ((more = tune_scan_next(scan, &c)) == 1)
        n++;
    assert_ok(more);
    tune_scan_free(scan);
    return n;
}

/* The sample files of a store: how many, the size of the largest; path: of the last by name. */
static int files(const char *folder, int64_t *largest, char path[TUNE_PATH_MAX])
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort), count = 0;
    *largest = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        size_t length = strlen(entries[i]->d_name);
        if (length > 3 && !strcmp(entries[i]->d_name + length - 3, ".h5")) {
            assert_ok(tune_path(path, "%s/%s", folder, entries[i]->d_name));
            assert_int_equal(stat(path, &st), 0);
            *largest = st.st_size > *largest ? st.st_size : *largest;
            count++;
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

/* Long rows: a file ends by its bytes, long before it has as many rows as it may. */
static void large_files(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    int64_t largest;
    struct tune_store *s = open_store("large");
    for (int batch = 0; batch < 6; batch++) {
        tune_store_begin(s);
        for (int i = 0; i < 50; i++)
            append(s, "exp", batch * 50 + i, TUNE_STORE_TEXT_MAX);
        assert_ok(tune_store_commit(s));
    }
    assert_true(files("large", &largest, path) > 1);
    assert_true(largest < 10 << 20);
    assert_true(tune_store_refresh(s) >= 0);
    assert_int_equal(rows_of(s, "exp"), 300);
    tune_store_free(s);
}

/* A file holds so many rows and no more, with requests and without. */
static void full_files(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    int64_t largest;
    struct tune_store *s = open_store("full");
    tune_store_begin(s);
    for (int n = 0; n < TUNE_STORE_FILE_ROWS + 1; n++)
        assert_ok(add(s, "exp", n, 0, false));
    assert_int_equal(files("full", &largest, path), 1); /* the full one; the other waits */
    assert_ok(tune_store_commit(s));
    assert_int_equal(files("full", &largest, path), 2);
    assert_true(tune_store_refresh(s) >= 0);
    assert_int_equal(rows_of(s, "exp"), TUNE_STORE_FILE_ROWS + 1);
    tune_store_free(s);
}

/* A batch whose first file cannot be written is over: the next row is on the disk at once. */
static void batch_that_failed(void **state)
{
    (void)state;
    struct rlimit limit, before;
    struct tune_store *s = open_store("batch"), *reader = tune_store_open("batch", false);
    assert_got(reader);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    tune_store_begin(s);
    for (int n = 0; n < TUNE_STORE_FILE_ROWS; n++)
        append(s, "exp", n, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(add(s, "exp", 5000, 0, true), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    append(s, "exp", 5001, 0);
    assert_int_equal(tune_store_refresh(reader), 1);
    assert_int_equal(rows_of(reader, "exp"), 1);
    tune_store_free(reader);
    tune_store_free(s);
}

/* A request that is refused takes its row with it. */
static void refused_request(void **state)
{
    (void)state;
    struct tune_cell cells[ALL], request[TUNE_REQUEST_KEYS];
    struct tune_store *s = open_store("request");
    for (int i = 0; i < ALL; i++)
        cells[i] = (struct tune_cell){.text = "x"};
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        request[i] = (struct tune_cell){.text = "\xff"};
    assert_int_equal(tune_store_append(s, "exp", cells, request), -1);
    append(s, "exp", 1, 0);
    assert_true(tune_store_refresh(s) >= 0);
    assert_int_equal(rows_of(s, "exp"), 1);
    tune_store_free(s);
}

/* A text fills its column, and a NUL follows it, as other readers of HDF5 expect. */
static void ended_texts(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    int64_t largest;
    struct tune_store *s = open_store("ended");
    append(s, "exp", 1, 64);
    tune_store_free(s);
    int fd, n = 0;
    assert_int_equal(files("ended", &largest, path), 1);
    struct tune_sample_file *f = tune_sample_open(path, &fd);
    assert_got(f);
    const struct tune_sample_table *t = tune_sample_table(f, "exp");
    for (int i = 0; i < t->column_count; i++)
        if (!strcmp(t->columns[i].column.name, "name")) {
            assert_int_equal(t->columns[i].size, 72);
            n++;
        }
    assert_int_equal(n, 1);
    tune_sample_free(f);
    close(fd);
}

/* The same rows make the same bytes, a second later too; PyTables finds what it looks for. */
static void same_bytes(void **state)
{
    (void)state;
    struct tune_cell cells[1][MORE] = {{{.text = "a"}, {.number = 1}}}, *rows[] = {cells[0]};
    struct tune_sample_rows table = {.name = "exp", .columns = columns, .column_count = MORE, .rows = rows, .row_count = 1};
    char *first, *second;
    size_t size, again;
    assert_ok(tune_sample_image(&table, 1, &first, &size));
    sleep(1);
    assert_ok(tune_sample_image(&table, 1, &second, &again));
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    static const char *const marks[] = {"CLASS", "TABLE", "VERSION", "FIELD_0_NAME", "FIELD_1_NAME"};
    for (int i = 0; i < 5; i++)
        assert_non_null(memmem(first, size, marks[i], strlen(marks[i])));
    free(first);
    free(second);
}

/* A first row that could not be written leaves no name behind: the next one begins a file, which the store then knows. */
static void after_a_failure(void **state)
{
    (void)state;
    struct rlimit limit, before;
    struct tune_cell row[ALL];
    struct tune_store *s = open_store("failure");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    for (int i = 0; i < ALL; i++)
        row[i] = (struct tune_cell){.text = "x"};
    tune_store_begin(s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_ok(tune_store_append(s, "exp", row, NULL));
    assert_int_equal(tune_store_commit(s), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    append(s, "exp", 2, 0);
    assert_int_equal(tune_store_refresh(s), 0); /* it knows its own file */
    assert_int_equal(rows_of(s, "exp"), 1);
    append(s, "exp", 3, 0);
    assert_int_equal(tune_store_refresh(s), 0); /* and that itself replaced it */
    assert_int_equal(rows_of(s, "exp"), 2);
    tune_store_free(s);
}

/* Unfinished files: an old one of a process of this host that is no more is removed. One of another host stays for a day. */
static void unfinished(void **state)
{
    (void)state;
    char host[65], path[4][TUNE_PATH_MAX];
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    struct tune_store *s = open_store("unfinished");
    tune_store_host(host);
    const long pids[] = {gone, gone, getppid(), gone};
    for (int i = 0; i < 4; i++) {
        const struct timespec hour_ago[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
        assert_ok(tune_path(path[i], "unfinished/%d-%s-%ld.h5.tmp-%ld", i, i == 3 ? "elsewhere" : host, pids[i], pids[i]));
        assert_ok(tune_file_write(path[i], "x", 1));
        if (i != 1)
            assert_int_equal(utimensat(AT_FDCWD, path[i], hour_ago, 0), 0);
    }
    append(s, "exp", 1, 0);
    assert_false(tune_file_exists(path[0]));
    assert_true(tune_file_exists(path[1])); /* a minute has not passed */
    assert_true(tune_file_exists(path[2]) && tune_file_exists(path[3]));
    tune_store_free(s);
}

/* Columns that change: units too; rows of an unfinished batch are kept. */
static void other_columns(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    int64_t largest;
    int count;
    struct tune_column c[MORE] = {columns[0], columns[1]};
    struct tune_store *s = open_store("columns");
    append(s, "exp", 1, 0);
    c[1].unit = "kB";
    assert_ok(tune_store_table(s, "exp", c, MORE));
    append(s, "exp", 2, 0);
    assert_int_equal(files("columns", &largest, path), 2);
    tune_store_begin(s);
    append(s, "exp", 3, 0);
    assert_ok(tune_store_table(s, "exp", columns, MORE));
    append(s, "exp", 4, 0);
    assert_ok(tune_store_commit(s));
    assert_true(tune_store_refresh(s) >= 0);
    assert_int_equal(rows_of(s, "exp"), 4);
    c[1].role = TUNE_COLUMN_KEY;
    assert_int_equal(tune_store_table(s, "exp", c, MORE), -1);
    assert_error_has("another column \"size\"");
    /* whole numbers everywhere, then not in one file: before the others, and behind them */
    c[1] = columns[1];
    c[1].whole = false;
    assert_true(tune_store_columns(s, "exp", &count)[TUNE_KEYS + 1].whole);
    assert_ok(tune_store_table(s, "exp", c, MORE));
    append(s, "exp", 5, 0);
    assert_ok(tune_store_table(s, "exp", columns, MORE));
    append(s, "exp", 6, 0);
    assert_true(tune_store_refresh(s) >= 0);
    assert_false(tune_store_columns(s, "exp", &count)[TUNE_KEYS + 1].whole);
    /* an int64 beside whole numbers, and beside others */
    c[1].type = TUNE_CELL_WHOLE;
    assert_ok(tune_store_table(s, "of-64", &c[1], 1));
    assert_ok(tune_store_table(s, "any", &c[1], 1));
    append(s, "of-64", 7, 0);
    append(s, "any", 8, 0);
    assert_ok(tune_store_table(s, "of-64", &columns[1], 1));
    c[1].type = TUNE_CELL_NUMBER;
    assert_ok(tune_store_table(s, "any", &c[1], 1));
    append(s, "of-64", 9, 0);
    append(s, "any", 10, 0);
    assert_true(tune_store_refresh(s) >= 0);
    assert_true(tune_store_columns(s, "of-64", &count)[TUNE_KEYS].whole);
    assert_false(tune_store_columns(s, "any", &count)[TUNE_KEYS].whole);
    tune_store_free(s);
}

/* A file that is replaced by another is read anew, even one of the same size and time. */
static void replaced(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX], other[TUNE_PATH_MAX];
    int64_t largest;
    struct stat st;
    struct tune_store *s = open_store("old"), *t = open_store("new"), *reader;
    append(s, "exp", 1, 0);
    append(t, "exp", 2, 0);
    tune_store_free(s);
    tune_store_free(t);
    assert_got(reader = tune_store_open("old", false));
    assert_int_equal(rows_of(reader, "exp"), 1);
    assert_int_equal(tune_store_refresh(reader), 0);
    assert_int_equal(files("old", &largest, path), 1);
    assert_int_equal(files("new", &largest, other), 1);
    assert_int_equal(stat(path, &st), 0);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(tune_store_refresh(reader), 1);
    times[1].tv_nsec = (times[1].tv_nsec + 1) % 1000000000; /* written again in its place, in the same second */
    assert_int_equal(rows_of(reader, "exp"), 1);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_int_equal(tune_store_refresh(reader), 1);
    tune_store_free(reader);

    /* a column that has become a number since the columns were looked up */
    struct tune_column c[MORE] = {columns[0], columns[1]};
    c[0].type = TUNE_CELL_NUMBER;
    assert_got(t = tune_store_open("numbers", true));
    assert_ok(tune_store_table(t, "exp", c, MORE));
    append(t, "exp", 3, 0);
    tune_store_free(t);
    static const char *const names[] = {"name"};
    const struct tune_cell *cells;
    assert_got(reader = tune_store_open("old", false));
    struct tune_scan *scan = tune_scan_open(reader, "exp", names, 1);
    assert_got(scan);
    assert_int_equal(files("numbers", &largest, other), 1);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(tune_scan_next(scan, &cells), -1);
    assert_error_has("the column \"name\" is a number");
    tune_scan_free(scan);
    tune_store_free(reader);
}

/* ---- whole stores ---- */

static void request(struct tune_store *s, int index, double time)
{
    struct tune_cell cells[TUNE_REQUEST_KEYS];
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        cells[i] = (struct tune_cell){.number = 1, .whole = 1, .text = "same"};
    cells[TUNE_REQUEST_INDEX] = (struct tune_cell){.whole = index, .number = index};
    cells[TUNE_REQUEST_TIME] = (struct tune_cell){.number = time};
    assert_ok(tune_store_request(s, cells));
}

/* Thousands of rows; requests that differ in a number; records of all kinds, none written over. */
static void merged(void **state)
{
    (void)state;
    static const char *const kinds[] = {"spaces", "operations", "experiments"};
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    struct tune_store *from = open_store("from"), *into = tune_store_open("into", true);
    tune_store_begin(from);
    for (int n = 0; n < 5000; n++)
        append(from, "exp", n, 0);
    request(from, 1, 1);
    request(from, 1, 2);
    request(from, 2, 1);
    assert_ok(tune_store_commit(from));
    for (int i = 0; i < 3; i++) {
        assert_ok(tune_store_record(from, kinds[i], "x", "theirs", 6));
        assert_ok(tune_store_record(from, kinds[i], "y", "theirs", 6));
        assert_ok(tune_store_record(into, kinds[i], "y", "ours", 4));
    }
    assert_true(tune_store_refresh(from) >= 0);
    assert_int_equal(tune_store_merge(into, from, NULL), 5000);
    assert_true(tune_store_refresh(into) >= 0);
    assert_int_equal(rows_of(into, "exp"), 5000);
    assert_int_equal(rows_of(into, "requests"), 5003);
    assert_int_equal(tune_store_merge(into, from, NULL), 0);
    assert_true(tune_store_refresh(into) >= 0);
    assert_int_equal(rows_of(into, "requests"), 5003);
    for (int i = 0; i < 6; i++) {
        assert_ok(tune_path(path, "into/%s/%s", kinds[i % 3], i < 3 ? "x" : "y"));
        assert_ok(tune_file_read(path, 100, &text, &size));
        assert_string_equal(text, i < 3 ? "theirs" : "ours");
        free(text);
    }
    tune_store_free(from);
    tune_store_free(into);
}

/* If one table cannot be merged, the rows of the tables before it are there. */
static void merged_in_part(void **state)
{
    (void)state;
    struct tune_column c = columns[1];
    struct tune_store *from = open_store("part"), *into = tune_store_open("whole", true);
    assert_ok(tune_store_table(from, "zzz", columns, MORE));
    append(from, "exp", 1, 0);
    append(from, "zzz", 2, 0);
    c.name = "name";
    assert_ok(tune_store_table(into, "zzz", &c, 1)); /* a number there */
    append(into, "zzz", 3, 0);
    assert_true(tune_store_refresh(from) >= 0 && tune_store_refresh(into) >= 0);
    assert_int_equal(tune_store_merge(into, from, NULL), -1);
    assert_error_has("the column \"name\" of experiment zzz");
    assert_true(tune_store_refresh(into) >= 0);
    assert_int_equal(rows_of(into, "exp"), 1);
    tune_store_free(from);
    tune_store_free(into);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_files),     cmocka_unit_test(ended_texts),   cmocka_unit_test(same_bytes),
        cmocka_unit_test(after_a_failure), cmocka_unit_test(other_columns), cmocka_unit_test(replaced),
        cmocka_unit_test(merged),          cmocka_unit_test(merged_in_part),
        cmocka_unit_test(unfinished),      cmocka_unit_test(full_files),    cmocka_unit_test(batch_that_failed),
        cmocka_unit_test(refused_request)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
