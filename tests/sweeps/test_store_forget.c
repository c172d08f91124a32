/* test_store_forget.c - forgotten rows: left out by every reader, brought back, carried by a merge; and merges of some rows
 * only. tests/sweeps/test_store_forget.sh kills those who forget. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "test.h"

#include "sweeps/stores/store.h"

static const struct tune_column columns[] = {{"name", "", TUNE_CELL_TEXT, TUNE_COLUMN_INPUT, false},
                                             {"size", "B", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, true}};
enum { MORE = 2, ALL = TUNE_KEYS + MORE };

static struct tune_store *open_store(const char *folder)
{
    assert_ok(tune_file_remove_folder(folder));
    struct tune_store *s = tune_store_open(folder, true);
    assert_got(s);
    return s;
}

static const char *uid_of(int n)
{
    static char uids[16][33];
    snprintf(uids[n % 16], sizeof uids[0], "%032d", n);
    return uids[n % 16];
}

static void append(struct tune_store *s, const char *experiment, int n, const char *operation)
{
    struct tune_cell cells[ALL], request[TUNE_REQUEST_KEYS];
    char full[100], space[100];
    snprintf(full, sizeof full, "actor.%s-x.1", experiment);
    snprintf(space, sizeof space, "space-%s", operation);
    for (int i = 0; i < ALL; i++)
        cells[i] = (struct tune_cell){.whole = n, .number = n, .text = "x"};
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        request[i] = (struct tune_cell){.number = n, .whole = n, .text = "measured"};
    cells[TUNE_KEY_UID].text = request[TUNE_REQUEST_UID].text = uid_of(n);
    cells[TUNE_KEY_STATUS].text = request[TUNE_REQUEST_STATUS].text = "valid";
    cells[TUNE_KEY_OPERATION].text = request[TUNE_REQUEST_OPERATION].text = operation;
    cells[TUNE_KEY_EXPERIMENT].text = full;
    cells[TUNE_KEY_SPACE].text = space;
    cells[TUNE_KEY_DATA].text = operation;
    assert_ok(tune_store_table(s, experiment, columns, MORE));
    assert_ok(tune_store_append(s, experiment, cells, request));
}

static void forget(struct tune_store *s, int a, int b, const char *note, char id[TUNE_TOMBSTONE_ID])
{
    char other[TUNE_TOMBSTONE_ID];
    const char *const uids[] = {uid_of(a), uid_of(b), uid_of(a)};
    assert_ok(tune_store_forget(s, uids, 3, note, id ? id : other));
}

/* The numbers of the rows and then of the requests, as "0 2 / 0 2 "; "error": the message has it. */
static const char *numbers(struct tune_store *s)
{
    static char text[400];
    const struct tune_cell *c;
    text[0] = 0;
    assert_true(tune_store_refresh(s) >= 0);
    for (int requests = 0; requests < 2; requests++) {
        struct tune_scan *scan = requests ? TUNE_SCAN(s, TUNE_STORE_REQUESTS, TUNE_REQUEST_INDEX) : TUNE_SCAN(s, "exp", TUNE_KEY_REQUEST);
        int more;
        if (!scan)
            return "error";
        while ((more = tune_scan_next(scan, &c)) == 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", (int)c[0].whole);
        assert_ok(more);
        tune_scan_free(scan);
        strcat(text, requests ? "" : "/ ");
    }
    return text;
}

static int entries(const char *folder, const char *part)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += *e->d_name != '.' && strstr(e->d_name, part) != NULL;
    if (d)
        closedir(d);
    return n;
}

static void ignore(void *context, const char *file, const char *what)
{
    (void)file;
    snprintf(context, 1024, "%s", what);
}

/* ---- one store ---- */

static void left_out(void **state)
{
    (void)state;
    struct tune_store *s = open_store("plain"), *other;
    char id[TUNE_TOMBSTONE_ID];
    int count = -1;
    for (int n = 0; n < 5; n++)
        append(s, "exp", n, "op");
    append(s, "second", 5, "op");
    assert_got(other = tune_store_open("plain", false));
    assert_string_equal(numbers(other), "0 1 2 3 4 / 0 1 2 3 4 5 ");
    int64_t version = tune_store_version(other);
    assert_true(tune_store_forgotten(s, &count) && count == 0);
    assert_int_equal(tune_store_forgotten_rows(s, NULL), 0);

    forget(s, 3, 1, "a bad \"evening\"\n€", id);
    assert_string_equal(numbers(s), "0 2 4 / 0 2 4 5 ");
    assert_int_equal(tune_store_refresh(other), 1);
    assert_int_equal(tune_store_refresh(other), 0);
    assert_true(tune_store_version(other) != version); /* whoever keeps results in memory reads again */
    assert_string_equal(numbers(other), "0 2 4 / 0 2 4 5 ");
    const struct tune_tombstone *t = tune_store_forgotten(other, &count);
    assert_true(t && count == 1 && t[0].rows == 2 && t[0].when_s > 1.7e9);
    assert_string_equal(t[0].id, id);
    assert_string_equal(t[0].note, "a bad \"evening\"\n€");
    assert_string_equal(t[0].uids[0], uid_of(3));
    assert_non_null(strstr(t[0].who, " on "));
    assert_int_equal(tune_store_forgotten_rows(other, NULL), 2);
    assert_int_equal(tune_store_forgotten_rows(other, "exp"), 2);
    assert_int_equal(tune_store_forgotten_rows(other, "second"), 0);

    const struct tune_cell *c;
    struct tune_scan *scan = TUNE_SCAN(other, "exp", TUNE_KEY_REQUEST);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tune_scan_next(scan, &c), 1);
    assert_int_equal(tune_scan_next(scan, &c), 0);
    assert_int_equal(tune_scan_forgotten(scan), 2);
    tune_scan_free(scan);
    scan = TUNE_SCAN(other, "exp", TUNE_KEY_REQUEST);
    tune_scan_everything(scan);
    for (int i = 0; i < 5; i++)
        assert_true(tune_scan_next(scan, &c) == 1 && c[0].whole == i);
    assert_true(tune_scan_next(scan, &c) == 0 && tune_scan_forgotten(scan) == 0);
    tune_scan_free(scan);

    scan = TUNE_SCAN(other, "exp", TUNE_KEY_REQUEST); /* rows are forgotten while it reads */
    assert_true(tune_scan_next(scan, &c) == 1 && c[0].whole == 0);
    forget(s, 4, 4, NULL, NULL);
    assert_int_equal(tune_store_refresh(other), 1);
    assert_true(tune_scan_next(scan, &c) == 1 && c[0].whole == 2);
    assert_int_equal(tune_scan_next(scan, &c), 0);
    tune_scan_free(scan);
    assert_int_equal(tune_store_check(s, NULL, ignore, (char[1024]){0}), 0);
    tune_store_free(other);
    tune_store_free(s);
}

static void brought_back(void **state)
{
    (void)state;
    struct tune_store *s = open_store("back");
    char first[TUNE_TOMBSTONE_ID];
    for (int n = 0; n < 4; n++)
        append(s, "exp", n, "op");
    assert_int_equal(tune_store_remember(s, "last"), -1);
    assert_error_has("there is no tombstone last that can be undone; there are: none");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    forget(s, 0, 1, "one", first);
    forget(s, 1, 2, "two", NULL);
    assert_string_equal(numbers(s), "3 / 3 ");
    assert_int_equal(tune_store_remember(s, "2026"), -1);
    assert_error_has(first);
    assert_int_equal(tune_store_remember(s, first), 1); /* 1 is named by both */
    assert_string_equal(numbers(s), "0 3 / 0 3 ");
    assert_int_equal(tune_store_remember(s, first), -1);
    assert_int_equal(tune_store_remember(s, "last"), 2);
    assert_string_equal(numbers(s), "0 1 2 3 / 0 1 2 3 ");
    forget(s, 0, 1, "", NULL);
    forget(s, 2, 3, "", NULL);
    assert_string_equal(numbers(s), "/ ");
    assert_int_equal(tune_store_remember(s, "all"), 4);
    assert_string_equal(numbers(s), "0 1 2 3 / 0 1 2 3 ");
    int count;
    assert_true(tune_store_forgotten(s, &count) && count == 0);
    tune_store_free(s);
}

static void refused(void **state)
{
    (void)state;
    struct tune_store *s = open_store("refused");
    char id[TUNE_TOMBSTONE_ID], note[TUNE_STORE_TEXT_MAX + 2];
    const char *uids[1000];
    append(s, "exp", 0, "op");
    assert_int_equal(tune_store_forget(s, uids, 0, NULL, id), -1);
    assert_error_has("cannot forget 0 rows");
    uids[0] = "";
    assert_int_equal(tune_store_forget(s, uids, 1, NULL, id), -1);
    assert_error_has("\"\" is not a uid");
    uids[0] = uid_of(0);
    memset(note, 'n', sizeof note);
    note[sizeof note - 1] = 0;
    assert_int_equal(tune_store_forget(s, uids, 1, note, id), -1);
    assert_error_has("a note on forgotten rows must be UTF-8 of at most 4096 bytes");
    assert_int_equal(tune_store_forget(s, uids, 1, "\xff", id), -1);
    assert_int_equal(entries("refused/forgotten", ""), 0);

    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){200, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(tune_store_forget(s, uids, 1, NULL, id), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_error_has("refused/forgotten/");
    assert_error_has("File too large");
    assert_int_equal(entries("refused/forgotten", ""), 0);
    assert_string_equal(numbers(s), "0 / 0 ");
    tune_store_free(s);
}

/* Whatever byte of it changes, either the tombstone says the same as before, or no row is read. */
static void damaged(void **state)
{
    (void)state;
    struct tune_store *s = open_store("damaged"), *into = open_store("into");
    char path[200], id[TUNE_TOMBSTONE_ID], what[1024], *data;
    size_t size, seen = 0;
    for (int n = 0; n < 3; n++)
        append(s, "exp", n, "op");
    forget(s, 1, 1, "why", id);
    tune_store_free(s);
    snprintf(path, sizeof path, "damaged/forgotten/%s.json", id);
    assert_ok(tune_file_read(path, 1 << 16, &data, &size));
    for (size_t i = 0; i <= size; i++) {
        if (i < size)
            data[i] ^= 1;
        test_write(".", path, data, i < size ? size : size / 2); /* the last time it is cut */
        assert_got(s = tune_store_open("damaged", false));
        const char *text = numbers(s);
        if (!strcmp(text, "error")) {
            seen++;
            assert_error_has(path);
            assert_error_has("this tombstone is damaged");
            assert_error_has("which are still in the sample files");
            assert_int_equal(tune_store_forgotten_rows(s, NULL), -1);
            assert_int_equal(tune_store_merge(into, s, NULL), -1);
            what[0] = 0;
            assert_int_equal(tune_store_check(s, NULL, ignore, what), 1);
            assert_non_null(strstr(what, "tombstone is damaged"));
            assert_string_equal(numbers(s), "error"); /* check has not hidden it */
        } else if (strcmp(text, "0 2 / 0 2 ")) {
            fail_msg("byte %zu of the tombstone: the rows are %s", i, text);
        }
        tune_store_free(s);
        if (i < size)
            data[i] ^= 1;
    }
    assert_true(seen > size / 2);
    test_write(".", path, data, size);
    assert_got(s = tune_store_open("damaged", false));
    assert_string_equal(numbers(s), "0 2 / 0 2 ");
    test_write(".", path, data, size - 4); /* after it was read: check reads it again */
    assert_int_equal(tune_store_check(s, NULL, ignore, what), 1);
    tune_store_free(s);
    assert_got(s = tune_store_open("damaged", false));
    assert_int_equal(tune_store_remember(s, id), 0); /* nobody knows how many rows it named */
    assert_string_equal(numbers(s), "0 1 2 / 0 1 2 ");
    assert_int_equal(tune_store_check(s, NULL, ignore, what), 0);
    tune_store_free(s);
    tune_store_free(into);
    free(data);
}

/* What a stranger's store says in its tombstones is checked. */
static void strange(void **state)
{
    (void)state;
    struct tune_store *s = open_store("strange");
    append(s, "exp", 0, "op");
    static const char *const texts[] = {
        "{}", "[]", "{\"id\": \"x\", \"who\": \"\", \"note\": \"\", \"when_s\": 1e300, \"rows\": 1, \"hash\": \"0\", \"uids\": [\"a\"]}",
        "{\"id\": \"x\", \"who\": \"\", \"note\": \"\", \"when_s\": 1, \"rows\": 1, \"hash\": \"0\", \"uids\": [7]}",
        "{\"id\": \"../x\", \"who\": \"\", \"note\": \"\", \"when_s\": 1, \"rows\": 1, \"hash\": \"0\", \"uids\": [\"a\"]}",
        "{\"id\": \"x\", \"who\": \"\", \"note\": \"\", \"when_s\": 1, \"rows\": 2, \"hash\": \"0\", \"uids\": [\"a\"]}"};
    static const char *const wrong[] = {"expected an id", "expected an id", "its time is missing or wrong", "expected an id", "its id differs from the name of the file",
                                        "the number of its uids differs from"};
    assert_ok(tune_file_make_folder("strange/forgotten"));
    for (int i = 0; i < 6; i++) {
        test_write("strange/forgotten", "x.json", texts[i], strlen(texts[i]));
        struct tune_store *other = tune_store_open("strange", false);
        assert_got(other);
        assert_string_equal(numbers(other), "error");
        assert_error_has(wrong[i]);
        tune_store_free(other);
    }
    assert_int_equal(unlink("strange/forgotten/x.json"), 0);
    test_write("strange/forgotten", "a b.json", "{}", 2); /* names of nothing here */
    test_write("strange/forgotten", "notes.txt", "{}", 2);
    test_write("strange/forgotten", ".json", "{}", 2);
    assert_string_equal(numbers(s), "0 / 0 ");
    tune_store_free(s);
}

/* ---- two stores ---- */

static void carried(void **state)
{
    (void)state;
    struct tune_store *a = open_store("a"), *b = open_store("b"), *fresh = open_store("fresh");
    struct tune_merged m;
    const struct tune_merge how = {.merged = &m};
    char id[TUNE_TOMBSTONE_ID];
    for (int n = 0; n < 3; n++)
        append(a, "exp", n, "op");
    assert_true(tune_store_refresh(a) >= 0);
    assert_int_equal(tune_store_merge(b, a, NULL), 3);
    forget(a, 1, 1, "why", id);
    append(a, "exp", 3, "op");
    assert_true(tune_store_refresh(a) >= 0);
    assert_int_equal(tune_store_merge(b, a, &how), 1); /* b had the row, and forgets it */
    assert_true(m.came == 1 && m.there == 2 && m.forgotten == 1 && m.unwanted == 0 && m.tombstones == 1);
    assert_string_equal(numbers(b), "0 2 3 / 0 2 3 ");
    assert_int_equal(tune_store_merge(b, a, &how), 0);
    assert_true(m.there == 3 && m.forgotten == 1 && m.tombstones == 0);

    assert_int_equal(tune_store_merge(fresh, a, NULL), 3); /* the row is not copied at all */
    assert_string_equal(numbers(fresh), "0 2 3 / 0 2 3 ");
    const struct tune_cell *c;
    struct tune_scan *scan = TUNE_SCAN(fresh, "exp", TUNE_KEY_REQUEST);
    tune_scan_everything(scan);
    int rows = 0;
    while (tune_scan_next(scan, &c) == 1)
        rows++;
    tune_scan_free(scan);
    assert_int_equal(rows, 3);

    assert_int_equal(tune_store_remember(b, id), 1); /* b's word holds, although a forgets the row still */
    assert_int_equal(tune_store_merge(b, a, &how), 0);
    assert_true(m.tombstones == 0 && m.forgotten == 0 && m.there == 4);
    assert_string_equal(numbers(b), "0 1 2 3 / 0 1 2 3 ");
    assert_true(tune_store_refresh(b) >= 0);
    assert_int_equal(tune_store_merge(fresh, b, NULL), 1); /* and is carried on */
    assert_int_equal(entries("fresh/forgotten", ".undone"), 1);
    assert_int_equal(strlen(numbers(fresh)), strlen("0 2 3 1 / 0 2 3 1 "));
    assert_int_equal(tune_store_check(fresh, NULL, ignore, (char[1024]){0}), 0);
    tune_store_free(a);
    tune_store_free(b);
    tune_store_free(fresh);
}

static int even(void *context, const char *experiment, const struct tune_column *c, int count, const struct tune_cell *cells)
{
    (void)context;
    assert_true(count == ALL && !strcmp(c[TUNE_KEYS].name, "name"));
    return !strcmp(experiment, "exp") && cells[TUNE_KEY_REQUEST].whole % 2 == 0;
}

static int fails(void *context, const char *experiment, const struct tune_column *c, int count, const struct tune_cell *cells)
{
    (void)context, (void)experiment, (void)c, (void)count, (void)cells;
    return tune_error_set("no verdict");
}

static void put(struct tune_store *s, const char *kind, const char *name, const char *text)
{
    assert_ok(tune_store_record(s, kind, name, text, strlen(text)));
}

static void some_rows(void **state)
{
    (void)state;
    struct tune_store *a = open_store("all"), *b = open_store("some");
    struct tune_merged m;
    const struct tune_merge how = {.wanted = even, .merged = &m};
    for (int n = 0; n < 4; n++)
        append(a, "exp", n, n % 2 ? "odd" : "even");
    append(a, "second", 4, "other");
    struct tune_cell request[TUNE_REQUEST_KEYS]; /* an operation that found a wanted row, on a space of its own */
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        request[i] = (struct tune_cell){.number = 9, .whole = 9, .text = "replayed"};
    request[TUNE_REQUEST_OPERATION].text = "later";
    request[TUNE_REQUEST_UID].text = uid_of(2);
    request[TUNE_REQUEST_STATUS].text = "valid";
    assert_ok(tune_store_request(a, request));
    static const char *const operations[] = {"even", "odd", "other", "later", "idle"};
    for (int i = 0; i < 5; i++) {
        char name[40], text[100];
        snprintf(name, sizeof name, "%s.json", operations[i]);
        snprintf(text, sizeof text, "{\"space\": \"space-%s\"}", operations[i]);
        put(a, "operations", name, text);
        snprintf(name, sizeof name, "space-%s.yaml", operations[i]);
        put(a, "spaces", name, "a: 1\n");
        snprintf(name, sizeof name, "%016d.json", i);
        snprintf(text, sizeof text, "{\"path\": \"/x\", \"hash\": \"%s\"}", operations[i]);
        put(a, "data", name, text);
    }
    put(a, "experiments", "actor.exp.yaml", "identifier: exp\n");
    put(a, "experiments", "actor.second.json", "{}");
    forget(a, 0, 0, "", NULL);
    assert_true(tune_store_refresh(a) >= 0);
    assert_int_equal(tune_store_merge(b, a, &how), 1);
    assert_true(m.came == 1 && m.there == 0 && m.forgotten == 1 && m.unwanted == 3 && m.tombstones == 1);
    assert_string_equal(numbers(b), "2 / 2 9 ");
    int count;
    assert_true(tune_store_tables(b, &count) && count == 1);
    static const char *const came[] = {"operations/even.json", "operations/later.json", "spaces/space-even.yaml",
                                       "spaces/space-later.yaml", "experiments/actor.exp.yaml", "data/0000000000000000.json"};
    for (int i = 0; i < 6; i++) {
        char path[100];
        snprintf(path, sizeof path, "some/%s", came[i]);
        if (!tune_file_exists(path))
            fail_msg("%s did not come", path);
    }
    assert_int_equal(entries("some/operations", "") + entries("some/spaces", "") + entries("some/experiments", "") + entries("some/data", ""), 6);
    assert_int_equal(tune_store_merge(b, a, &how), 0);
    assert_true(m.there == 1 && m.unwanted == 3);
    assert_int_equal(tune_store_merge(b, a, &(const struct tune_merge){.wanted = fails}), -1);
    assert_error_has("no verdict");
    assert_int_equal(tune_store_check(b, NULL, ignore, (char[1024]){0}), 0);
    tune_store_free(a);
    tune_store_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(left_out), cmocka_unit_test(brought_back), cmocka_unit_test(refused),
                                       cmocka_unit_test(damaged),  cmocka_unit_test(strange), cmocka_unit_test(carried),      cmocka_unit_test(some_rows)};
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
