/* test_store.c - sample stores: what is written is read, by whoever, from any number of files; what cannot be written leaves
 * them as they were; what is no sample file is refused by name. tests/sweeps/test_damaged_files.c damages files, tests/sweeps/test_store.sh kills
 * writers, tests/peers has h5py and pandas read the files. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

#include "sweeps/stores/sample_file.h"

/* Under a sanitizer: the HDF5 library loses some bytes of its own whenever it refuses a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static const struct tune_column columns[] = {
    {"model_name", "", TUNE_CELL_TEXT, TUNE_COLUMN_INPUT, false},
    {"train_runtime", "s", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false},
    {"batch_size", "", TUNE_CELL_WHOLE, TUNE_COLUMN_INPUT, false},
    {"is_valid", "", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, true},
};
enum { MORE = 4, ALL = TUNE_KEYS + MORE };

static struct tune_cell cells[ALL], request[TUNE_REQUEST_KEYS];
static char uid[40], model[TUNE_STORE_TEXT_MAX + 100];

/* Row number n, into cells and request. */
static void make_row(int n)
{
    for (int i = 0; i < ALL; i++)
        cells[i] = (struct tune_cell){.whole = n + i, .number = n + i / 100.0,
                                      .text = i < TUNE_KEYS ? tune_key_column((enum tune_key)i)->name : model};
    snprintf(uid, sizeof uid, "%032d", n);
    snprintf(model, sizeof model, "model %d", n);
    cells[TUNE_KEY_UID].text = uid;
    cells[TUNE_KEY_STATUS].text = "valid";
    cells[TUNE_KEY_REASON] = (struct tune_cell){.absent = true};
    cells[TUNE_KEYS + 3].absent = n % 2;
    const struct tune_cell r[TUNE_REQUEST_KEYS] = {{.text = "op"},       {.whole = n},  {.text = "e"},     {.text = "x.1"},
                                                   {.text = "measured"}, {.text = uid}, {.text = "valid"}, {.number = n}};
    memcpy(request, r, sizeof r);
}

static struct tune_store *open_store(const char *folder)
{
    struct tune_store *s = tune_store_open(folder, true);
    assert_got(s);
    assert_ok(tune_store_table(s, "exp", columns, MORE));
    return s;
}

static void append(struct tune_store *s, int from, int to)
{
    for (int n = from; n < to; n++) {
        make_row(n);
        assert_ok(tune_store_append(s, "exp", cells, request));
    }
}

static bool same_column(const struct tune_column *a, const struct tune_column *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit) && a->type == b->type && a->role == b->role &&
           a->whole == b->whole;
}

/* The rows of "exp" as "12 13 14 ", by their request_index. */
static const char *numbers(struct tune_store *s)
{
    static const char *const names[] = {"request_index"};
    static char text[8192];
    const struct tune_cell *c;
    int more;
    text[0] = 0;
    assert_true(tune_store_refresh(s) >= 0);
    struct tune_scan *scan = tune_scan_open(s, "exp", names, 1);
    assert_got(scan);
    while ((more = tune_scan_next(scan, &c)) == 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", (int)c[0].whole - TUNE_KEY_REQUEST);
    assert_ok(more);
    tune_scan_free(scan);
    return text;
}

static int file_count(const char *folder, const char *part)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += strstr(e->d_name, part) != NULL;
    closedir(d);
    return n;
}

/* The path of the only sample file. */
static const char *only_file(const char *folder)
{
    static char path[TUNE_PATH_MAX];
    DIR *d = opendir(folder);
    path[0] = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".h5")) {
            assert_true(!path[0]);
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        }
    closedir(d);
    assert_true(path[0]);
    return path;
}

static void refused(const char *folder, bool create, const char *text)
{
    assert_null(tune_store_open(folder, create));
    assert_error_has(text);
}

static void put_json(const char *folder, const char *text)
{
    assert_ok(tune_file_make_folder(folder));
    test_write(folder, "store.json", text, strlen(text));
}

/* ---- the folder ---- */

static void identity(void **state)
{
    (void)state;
    char id[8];
    for (int i = 0; i < 200; i++) {
        assert_ok(tune_file_remove_folder("new"));
        struct tune_store *s = tune_store_open("new/below", true);
        assert_got(s);
        snprintf(id, sizeof id, "%s", tune_store_id(s));
        assert_int_equal(strspn(id, "0123456789abcdef"), 6);
        assert_non_null(strpbrk(id, "acdf"));
        tune_store_free(s);
    }
    struct tune_store *s = tune_store_open("new/below", false);
    assert_got(s);
    assert_string_equal(tune_store_id(s), id);
    int count = -1;
    assert_true(tune_store_tables(s, &count) && count == 0);
    assert_null(tune_store_columns(s, "exp", &count));
    assert_error_has("no measurements of experiment \"exp\"");
    assert_true(tune_store_columns(s, TUNE_STORE_REQUESTS, &count) && count == TUNE_REQUEST_KEYS);
    tune_store_free(s);

    refused("gone", false, "gone is not a sample store");
    assert_ok(tune_file_make_folder("files"));
    test_write("files", "a.txt", "x", 1);
    refused("files", true, "neither a sample store (it has no store.json) nor empty");
    refused("files", false, "is not a sample store");
    test_write(".", "plain", "x", 1);
    refused("plain", true, "cannot make folder plain");
    put_json("newer", "{\"id\":\"0a1b2c\",\"schema_version\":2}");
    refused("newer", true, "newer/store.json has schema version 2, but this program reads only versions up to 1");
    put_json("odd", "{\"id\":\"0a1b2c\"}");
    refused("odd", true, "\"schema_version\" is missing or below 1");
    put_json("odd", "{\"id\":\"0a/../\",\"schema_version\":1}");
    refused("odd", true, "\"id\" must be six digits");
    put_json("odd", "{\"id\":7,\"schema_version\":1}");
    refused("odd", true, "\"id\" must be six digits");
    put_json("odd", "nonsense");
    refused("odd", true, "odd/store.json:1:1");
    put_json("killed", "");
    assert_int_equal(rename("killed/store.json", "killed/store.json.tmp-99"), 0); /* by kill -9, before it had a name */
    assert_got(s = tune_store_open("killed", true));
    tune_store_free(s);
}

static void drawn_once(void **state)
{
    (void)state;
    enum { PROCESSES = 8 };
    for (int round = 0; round < 20; round++) {
        int ends[2];
        char ids[PROCESSES][6];
        assert_int_equal(pipe(ends), 0);
        assert_ok(tune_file_remove_folder("race"));
        for (int i = 0; i < PROCESSES; i++)
            if (fork() == 0) {
                struct tune_store *s = tune_store_open("race", true);
                _exit(!s || write(ends[1], tune_store_id(s), 6) != 6);
            }
        for (int i = 0, status; i < PROCESSES; i++)
            assert_true(wait(&status) > 0 && status == 0);
        assert_int_equal(read(ends[0], ids, sizeof ids), sizeof ids);
        for (int i = 1; i < PROCESSES; i++)
            assert_memory_equal(ids[0], ids[i], 6);
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(file_count("race", "store.json"), 1); /* and nothing beside it */
    }
}

static void records(void **state)
{
    (void)state;
    int count = -1;
    struct tune_store *s = tune_store_open("records", true);
    assert_got(s);
    char **names = tune_store_records(s, "spaces", &count);
    assert_true(names && count == 0);
    tune_store_records_free(names, count);
    assert_ok(tune_store_record(s, "spaces", "space-2.yaml", "b", 1));
    assert_ok(tune_store_record(s, "spaces", "space-1.yaml", "a", 1));
    assert_ok(tune_store_record(s, "spaces", "space-1.yaml", "c: d\n", 5));
    test_write("records/spaces", "space-3.yaml.tmp-12", "x", 1);
    assert_got(names = tune_store_records(s, "spaces", &count));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "space-1.yaml");
    tune_store_records_free(names, count);
    char *text;
    size_t size;
    assert_ok(tune_file_read("records/spaces/space-1.yaml", 100, &text, &size));
    assert_string_equal(text, "c: d\n");
    free(text);
    static const char *const bad[] = {"", "../x", "a/b", ".hidden"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tune_store_record(s, "spaces", bad[i], "", 0), -1);
        assert_int_equal(tune_store_record(s, bad[i], "x", "", 0), -1);
        assert_null(tune_store_records(s, bad[i], &count));
    }
    tune_store_free(s);
}

/* ---- rows ---- */

static void round_trip(void **state)
{
    (void)state;
    struct tune_store *s = open_store("trip");
    make_row(3);
    char longest[TUNE_STORE_TEXT_MAX + 1] = "";
    memset(longest, 'l', TUNE_STORE_TEXT_MAX);
    cells[TUNE_KEYS].text = longest;
    cells[TUNE_KEYS + 2].whole = INT64_MIN;
    cells[TUNE_KEYS + 1].number = -1e-310;
    cells[TUNE_KEY_REASON] = (struct tune_cell){.text = "wegen €\n\"und\""};
    assert_ok(tune_store_append(s, "exp", cells, request));
    make_row(4);
    cells[TUNE_KEYS].text = "";
    cells[TUNE_KEYS + 1].number = INFINITY;
    cells[TUNE_KEYS + 3].number = NAN;
    cells[TUNE_KEY_HOST] = (struct tune_cell){.absent = true};
    assert_ok(tune_store_append(s, "exp", cells, NULL));
    make_row(5);
    assert_ok(tune_store_request(s, request));
    tune_store_free(s);

    assert_got(s = tune_store_open("trip", false));
    int count;
    const char *const *tables = tune_store_tables(s, &count);
    assert_true(tables && count == 1);
    assert_string_equal(tables[0], "exp");
    const struct tune_column *c = tune_store_columns(s, "exp", &count);
    assert_true(c && count == ALL);
    for (int i = 0; i < TUNE_KEYS; i++)
        assert_true(same_column(&c[i], tune_key_column((enum tune_key)i)));
    static const int order[MORE] = {0, 2, 1, 3}; /* inputs, then targets */
    const char *names[ALL];
    for (int i = 0; i < MORE; i++)
        assert_true(same_column(&c[TUNE_KEYS + i], &columns[order[i]]));
    for (int i = 0; i < ALL; i++)
        names[i] = c[ALL - 1 - i].name; /* any order */
    struct tune_scan *scan = tune_scan_open(s, "exp", names, ALL);
    assert_got(scan);
    const struct tune_cell *r;
    assert_int_equal(tune_scan_next(scan, &r), 1);
    assert_true(r[0].absent && isnan(r[0].number));                    /* is_valid of an odd row */
    assert_true(r[1].number == -1e-310 && r[2].whole == INT64_MIN && !r[2].absent);
    assert_string_equal(r[3].text, longest);
    assert_string_equal(r[ALL - 1 - TUNE_KEY_REASON].text, "wegen €\n\"und\"");
    assert_string_equal(r[ALL - 1 - TUNE_KEY_HOST].text, "host");
    assert_int_equal(r[ALL - 1 - TUNE_KEY_REPEAT].whole, 3 + TUNE_KEY_REPEAT);
    assert_int_equal(tune_scan_next(scan, &r), 1);
    assert_true(r[0].absent && r[1].number == INFINITY && r[3].absent && !*r[3].text && r[ALL - 1 - TUNE_KEY_HOST].absent);
    assert_true(r[ALL - 1 - TUNE_KEY_REASON].absent);
    assert_int_equal(tune_scan_next(scan, &r), 0);
    assert_int_equal(tune_scan_next(scan, &r), 0);
    tune_scan_free(scan);
    static const char *const asked[] = {"request_index", "time", "uid"};
    assert_got(scan = tune_scan_open(s, TUNE_STORE_REQUESTS, asked, 3));
    assert_true(tune_scan_next(scan, &r) == 1 && r[0].whole == 3 && r[1].number == 3);
    assert_true(tune_scan_next(scan, &r) == 1 && r[0].whole == 5);
    assert_int_equal(strlen(r[2].text), 32);
    assert_int_equal(tune_scan_next(scan, &r), 0);
    tune_scan_free(scan);
    static const char *const unknown[] = {"uid", "nothing"};
    assert_got(scan = tune_scan_open(s, "exp", unknown, 2)); /* a column that no file has yet */
    assert_int_equal(tune_scan_next(scan, &r), 1);
    assert_true(!r[0].absent && r[1].absent && !r[1].text);
    tune_scan_free(scan);
    assert_null(tune_scan_open(s, "other", unknown, 1));
    assert_error_has("no measurements of experiment \"other\"; it has measurements of: exp");
    tune_store_free(s);
}

static void many_rows(void **state)
{
    (void)state;
    struct tune_store *s = open_store("many"), *other = tune_store_open("many", false);
    assert_got(other);
    tune_store_begin(s);
    append(s, 0, 2500);
    assert_int_equal(file_count("many", ".h5"), 2); /* full ones are written, the third waits */
    assert_ok(tune_store_commit(s));
    assert_int_equal(file_count("many", ".h5"), 3);
    append(s, 2500, 2502); /* goes on in the third */
    assert_int_equal(file_count("many", ".h5"), 3);
    assert_int_equal(tune_store_refresh(other), 3);
    assert_int_equal(tune_store_refresh(other), 0);
    static const char *const names[] = {"model_name", "request_index"};
    struct tune_scan *scan = tune_scan_open(other, "exp", names, 2);
    assert_got(scan);
    static struct tune_row_position positions[2502];
    const struct tune_cell *c;
    char text[32];
    for (int n = 0; n < 2502; n++) {
        assert_int_equal(tune_scan_next(scan, &c), 1);
        snprintf(text, sizeof text, "model %d", n);
        assert_string_equal(c[0].text, text);
        assert_int_equal(c[1].whole, n + TUNE_KEY_REQUEST);
        positions[n] = tune_scan_position(scan);
        if (n % 700 == 13) { /* reading again does not disturb the pass */
            assert_ok(tune_scan_at(scan, positions[n / 2], &c));
            assert_int_equal(c[1].whole, n / 2 + TUNE_KEY_REQUEST);
        }
    }
    append(s, 2502, 2503); /* the file is replaced: a row stays where it was */
    for (int n = 2501; n >= 0; n -= 3) {
        assert_ok(tune_scan_at(scan, positions[n * 7 % 2502], &c));
        assert_int_equal(c[1].whole, n * 7 % 2502 + TUNE_KEY_REQUEST);
    }
    assert_int_equal(tune_scan_at(scan, (struct tune_row_position){0, 1024}, &c), -1);
    assert_int_equal(tune_scan_at(scan, (struct tune_row_position){3, 0}, &c), -1);
    assert_int_equal(tune_scan_at(scan, (struct tune_row_position){-1, -1}, &c), -1);
    tune_scan_free(scan);
    tune_store_free(other);
    tune_store_free(s);
}

static void copy(const char *from, const char *to)
{
    char *data;
    size_t size;
    assert_ok(tune_file_read(from, 1 << 24, &data, &size));
    assert_ok(tune_file_write(to, data, size));
    free(data);
}

static void many_files(void **state)
{
    (void)state;
    struct tune_store *s = open_store("files1000");
    char path[TUNE_PATH_MAX], first[TUNE_PATH_MAX];
    append(s, 0, 3);
    snprintf(first, sizeof first, "%s", only_file("files1000"));
    for (int i = 0; i < 999; i++) {
        snprintf(path, sizeof path, "files1000/a%03d.h5", i);
        assert_int_equal(link(first, path), 0);
    }
    static const char *const names[] = {"uid"};
    struct rlimit limit = {40, 40}, before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0); /* a few files open at a time are enough */
    assert_int_equal(tune_store_refresh(s), 999);
    struct tune_scan *scan = tune_scan_open(s, "exp", names, 1);
    assert_got(scan);
    const struct tune_cell *c;
    int n = 0;
    while (tune_scan_next(scan, &c) == 1)
        n++;
    assert_int_equal(n, 3000);
    tune_scan_free(scan);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(unlink("files1000/a500.h5"), 0);
    assert_int_equal(tune_store_refresh(s), 0); /* one that is gone is gone */
    assert_got(scan = tune_scan_open(s, "exp", names, 1));
    for (n = 0; tune_scan_next(scan, &c) == 1;)
        n++;
    assert_int_equal(n, 2997);
    tune_scan_free(scan);
    tune_store_free(s);
}

/* What cannot be appended leaves everything as it was, and what can be comes after it. */
static void not_appended(void **state)
{
    (void)state;
    struct tune_store *s = open_store("refused");
    append(s, 0, 2);
    char longer[TUNE_STORE_TEXT_MAX + 2] = "";
    memset(longer, 'x', TUNE_STORE_TEXT_MAX + 1);
    static const struct {
        int column;
        const char *text, *error;
    } bad[] = {{TUNE_KEYS, NULL, "exp: the text of \"model_name\" has 4097 bytes, but a store takes at most 4096"},
               {TUNE_KEY_REASON, NULL, "the text of \"reason\" has 4097 bytes"},
               {TUNE_KEY_ENTITY, "a\xff", "the text of \"entity\" is not UTF-8 from byte 1 on"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_row(9);
        assert_int_equal(tune_store_fits(s, "exp", cells), 0);
        cells[bad[i].column] = (struct tune_cell){.text = bad[i].text ? bad[i].text : longer};
        assert_int_equal(tune_store_fits(s, "exp", cells), -1);
        assert_error_has(bad[i].error);
        assert_int_equal(tune_store_append(s, "exp", cells, request), -1);
        assert_error_has(bad[i].error);
    }
    make_row(9);
    cells[TUNE_KEYS + 2].absent = true;
    assert_int_equal(tune_store_append(s, "exp", cells, request), -1);
    assert_error_has("the column \"batch_size\" of whole numbers has no value");
    make_row(9);
    request[TUNE_REQUEST_TYPE].text = longer; /* then the row does not come either */
    assert_int_equal(tune_store_append(s, "exp", cells, request), -1);
    assert_error_has("requests: the text of \"type\"");
    assert_int_equal(tune_store_append(s, "other", cells, request), -1);
    assert_error_has("no table \"other\"");
    assert_int_equal(tune_store_fits(s, "other", cells), -1);
    assert_error_has("no table \"other\"");

    struct rlimit limit, before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    make_row(9);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tune_store_append(s, "exp", cells, request), -1);
        assert_error_has(".h5: File too large");
    }
    tune_store_begin(s);
    assert_ok(tune_store_append(s, "exp", cells, request));
    assert_int_equal(tune_store_commit(s), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_string_equal(numbers(s), "0 1 ");
    append(s, 2, 4);
    assert_string_equal(numbers(s), "0 1 2 3 ");
    assert_int_equal(file_count("refused", ".h5"), 1); /* and no temporary beside it */
    tune_store_free(s);
}

/* A batch whose full file cannot be written is over: what comes after the error is on the disk at once, as without a batch. */
static void batch_ends_with_an_error(void **state)
{
    (void)state;
    struct tune_store *s = open_store("ended"), *other = tune_store_open("ended", false);
    struct rlimit limit, before;
    int rows = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_got(other);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    tune_store_begin(s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int status = 0; status == 0; rows++) {
        make_row(rows);
        status = tune_store_append(s, "exp", cells, request);
        assert_true(rows < 3000);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(rows > 100); /* it was a batch: the first ones waited */
    append(s, 7, 8);
    assert_int_equal(tune_store_refresh(other), 1);
    assert_string_equal(numbers(other), "7 ");
    tune_store_free(other);
    tune_store_free(s);
}

static void announced(void **state)
{
    (void)state;
    struct tune_store *s = open_store("announced");
    assert_ok(tune_store_table(s, "exp", columns, MORE)); /* the same again */
    static const char *const bad_names[] = {"", "a/b", "requests", ".x"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(tune_store_table(s, bad_names[i], columns, MORE), -1);
    struct tune_column c[2] = {columns[0], columns[1]};
    c[1].name = "model_name";
    assert_int_equal(tune_store_table(s, "twice", c, 2), -1);
    assert_error_has("twice: the table of this experiment has another column \"model_name\"");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    c[1].name = "host";
    assert_int_equal(tune_store_table(s, "twice", c, 2), -1);
    c[1].name = "";
    assert_int_equal(tune_store_table(s, "twice", c, 2), -1);
    /* more columns than HDF5 takes */
    static struct tune_column much[3000];
    static char names[3000][TUNE_STORE_NAME_MAX];
    for (int i = 0; i < 3000; i++) {
        memset(names[i], 'n', 150);
        snprintf(names[i] + 150, 20, "%d", i);
        much[i] = (struct tune_column){names[i], "", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false};
    }
    assert_int_equal(tune_store_table(s, "much", much, 3000), -1);
    assert_error_has("much with its 3019 columns: ");
    assert_ok(tune_store_table(s, "much", much, 250));
    append(s, 0, 2);
    tune_store_free(s);
    /* another program of the same experiment: a column more, one fewer, a whole number become any */
    assert_got(s = tune_store_open("announced", true));
    struct tune_column other[] = {columns[0],
                                  {"batch_size", "", TUNE_CELL_NUMBER, TUNE_COLUMN_INPUT, false},
                                  {"late", "W", TUNE_CELL_TEXT, TUNE_COLUMN_TARGET, false}};
    assert_ok(tune_store_table(s, "exp", other, 3));
    make_row(2);
    assert_ok(tune_store_append(s, "exp", cells, NULL));
    assert_true(tune_store_refresh(s) >= 0);
    int count;
    const struct tune_column *all = tune_store_columns(s, "exp", &count);
    assert_true(all && count == ALL + 1);
    assert_string_equal(all[ALL].name, "late");
    assert_int_equal(all[TUNE_KEYS + 1].type, TUNE_CELL_NUMBER);
    static const char *const wanted[] = {"batch_size", "late", "train_runtime"};
    struct tune_scan *scan = tune_scan_open(s, "exp", wanted, 3);
    const struct tune_cell *r;
    assert_true(scan && tune_scan_next(scan, &r) == 1 && r[0].number == TUNE_KEYS + 2 && r[1].absent && !r[2].absent);
    assert_true(tune_scan_next(scan, &r) == 1 && tune_scan_next(scan, &r) == 1);
    assert_true(r[0].number > 2 && r[0].number < 3 && !r[1].absent && r[2].absent);
    tune_scan_free(scan);
    /* a number where there are texts */
    other[0].type = TUNE_CELL_NUMBER;
    assert_int_equal(tune_store_table(s, "exp", other, 3), -1);
    assert_error_has("the column \"model_name\" of experiment exp is a text in ");
    /* other columns in the same process: another file */
    other[0].type = TUNE_CELL_TEXT;
    assert_ok(tune_store_table(s, "exp", other, 2));
    assert_ok(tune_store_append(s, "exp", cells, NULL));
    assert_int_equal(file_count("announced", ".h5"), 3);
    tune_store_free(s);
}

/* ---- files that are not ours ---- */

/* A store of one file with this table; tune_store_tables says what is wrong with it, or nothing. */
static void judge_table(const char *name, const struct tune_column *c, int count, const char *text)
{
    struct tune_sample_rows rows = {.name = name, .columns = c, .column_count = count};
    char *image;
    size_t size;
    int n;
    assert_ok(tune_sample_image(&rows, 1, &image, &size));
    put_json("judged", "{\"id\":\"0a1b2c\",\"schema_version\":1}");
    test_write("judged", "x.h5", image, size);
    free(image);
    struct tune_store *s = tune_store_open("judged", false);
    assert_got(s);
    const char *const *tables = tune_store_tables(s, &n);
    if (text && tables)
        fail_msg("not refused: %s", text);
    if (text) {
        assert_error_has("judged/x.h5");
        assert_error_has(text);
    } else {
        assert_got(tables);
        assert_int_equal(n, 1);
    }
    tune_store_free(s);
}

static void foreign(void **state)
{
    (void)state;
    static const struct tune_column uid_number = {"uid", "", TUNE_CELL_NUMBER, TUNE_COLUMN_KEY, false},
                                    request_text = {"request_index", "", TUNE_CELL_TEXT, TUNE_COLUMN_KEY, false},
                                    reason_text = {"reason", "", TUNE_CELL_TEXT, TUNE_COLUMN_KEY, false},
                                    own = {"mine", "kg", TUNE_CELL_NUMBER, TUNE_COLUMN_KEY, false};
    judge_table("exp", &uid_number, 1, "table exp: its column \"uid\" is a float64, expected a text");
    judge_table("exp", &request_text, 1, "its column \"request_index\" is a text, expected an int64");
    judge_table("exp", &reason_text, 1, "its column \"reason\" is a text, expected an int64");
    judge_table(NULL, &request_text, 1, "table requests: its column \"request_index\"");
    judge_table("requests", &own, 1, "a table of measurements must not have the name \"requests\"");
    judge_table("exp", &own, 1, NULL); /* none of our columns: all absent */
    struct tune_store *s = tune_store_open("judged", false);
    int count;
    const struct tune_column *c = tune_store_columns(s, "exp", &count);
    assert_true(c && count == TUNE_KEYS + 1);
    assert_string_equal(c[TUNE_KEYS].unit, "kg");
    tune_store_free(s);
}

static void not_files(void **state)
{
    (void)state;
    int count;
    put_json("others", "{\"id\":\"0a1b2c\",\"schema_version\":1}");
    test_write("others", "notes.txt", "x", 1); /* nobody's business */
    struct tune_store *s = tune_store_open("others", false);
    assert_true(tune_store_tables(s, &count) && count == 0);
    assert_int_equal(mkfifo("others/p.h5", 0600), 0);
    assert_int_equal(tune_store_refresh(s), 1);
    assert_null(tune_store_tables(s, &count));
    assert_error_has("others/p.h5 is not a regular file");
    assert_int_equal(unlink("others/p.h5"), 0);
    assert_ok(tune_file_make_folder("others/f.h5"));
    assert_true(tune_store_refresh(s) == 1 && !tune_store_tables(s, &count));
    assert_error_has("others/f.h5 is a folder");
    assert_int_equal(rmdir("others/f.h5"), 0);
    static const char text[] = "this is no HDF5 file, and says so in more bytes than a signature has, a superblock too";
    test_write("others", "t.h5", text, sizeof text);
    assert_true(tune_store_refresh(s) == 1 && !tune_store_tables(s, &count));
    assert_error_has("others/t.h5: the file is not an HDF5 file");
    assert_int_equal(symlink("nowhere", "others/l.h5"), 0);
    assert_int_equal(unlink("others/t.h5"), 0);
    assert_true(tune_store_refresh(s) == 1 && !tune_store_tables(s, &count));
    assert_error_has("others/l.h5: No such file");
    tune_store_free(s);
}

/* ---- whole stores ---- */

static void merging(void **state)
{
    (void)state;
    struct tune_store *a = open_store("a"), *b = open_store("b"), *into = tune_store_open("ab", true);
    append(a, 0, 3);
    append(b, 2, 5); /* row 2 is in both */
    assert_ok(tune_store_record(a, "spaces", "one.yaml", "1", 1));
    assert_ok(tune_store_record(b, "operations", "two.yaml", "2", 1));
    assert_true(tune_store_refresh(a) >= 0 && tune_store_refresh(b) >= 0);
    assert_int_equal(tune_store_merge(into, a, NULL), 3);
    assert_string_equal(numbers(into), "0 1 2 ");
    assert_int_equal(tune_store_merge(into, b, NULL), 2);
    assert_string_equal(numbers(into), "0 1 2 3 4 ");
    assert_int_equal(tune_store_merge(into, a, NULL), 0);
    assert_true(tune_file_exists("ab/spaces/one.yaml") && tune_file_exists("ab/operations/two.yaml"));
    static const char *const names[] = {"uid"};
    const struct tune_cell *c;
    struct tune_scan *scan = tune_scan_open(into, TUNE_STORE_REQUESTS, names, 1);
    int n = 0;
    while (scan && tune_scan_next(scan, &c) == 1)
        n++;
    assert_int_equal(n, 5);
    tune_scan_free(scan);
    tune_store_free(a);
    tune_store_free(b);
    tune_store_free(into);
}

static void append_problem(void *text, const char *file, const char *what)
{
    snprintf((char *)text + strlen(text), 8192 - strlen(text), "%s: %s\n", file, what);
}

static void checking(void **state)
{
    (void)state;
    static char said[8192];
    struct tune_store *s = open_store("checked");
    append(s, 0, 3);
    assert_int_equal(tune_store_check(s, NULL, append_problem, said), 0);
    make_row(1); /* again, and other things */
    cells[TUNE_KEY_STATUS].text = "splendid";
    cells[TUNE_KEY_EXPERIMENT].absent = true;
    assert_ok(tune_store_append(s, "exp", cells, NULL));
    make_row(77);
    request[TUNE_REQUEST_TYPE].text = "dreamt";
    assert_ok(tune_store_request(s, request));
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s", only_file("checked"));
    copy(path, "checked/zz.h5");
    char *data;
    size_t size;
    assert_ok(tune_file_read(path, 1 << 20, &data, &size));
    data[200] ^= 1;
    test_write("checked", "broken.h5", data, size);
    free(data);
    static const char *const expected[] = {
        "checked/broken.h5: ", ", row 3: the uid 00000000000000000000000000000001 is in this store twice",
        "row 3: the status is \"splendid\"", "row 3: the row has no experiment",
        "requests, row 3: the type is \"dreamt\"",
        "requests, row 3: the result \"00000000000000000000000000000077\" of this request is not in this store",
        "checked/zz.h5: exp, row 0: the uid"};
    int64_t problems = tune_store_check(s, NULL, append_problem, said);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(said, expected[i]))
            fail_msg("no \"%s\" in\n%s", expected[i], said);
    int lines = 0;
    for (const char *at = said; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(problems, lines);
    assert_int_equal(problems, 1 + 3 + 2 + 4 + 2 + 2);
    int count;
    assert_null(tune_store_tables(s, &count)); /* whoever reads still meets the broken file */
    assert_error_has("broken.h5");
    tune_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity),   cmocka_unit_test(drawn_once), cmocka_unit_test(records),      cmocka_unit_test(round_trip),
        cmocka_unit_test(many_rows),  cmocka_unit_test(many_files), cmocka_unit_test(not_appended), cmocka_unit_test(announced),
        cmocka_unit_test(batch_ends_with_an_error), cmocka_unit_test(foreign), cmocka_unit_test(not_files),
        cmocka_unit_test(merging),    cmocka_unit_test(checking)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
