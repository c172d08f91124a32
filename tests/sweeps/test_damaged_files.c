/* test_damaged_files.c - sample files that were damaged after they were written: whatever happens to one, its rows are the same as
 * before or its file is refused by name. And sample files of before there were checksums: they are read, and merged into
 * files that have them. */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "test.h"

#include "core/random.h"
#include "reference/store_without_checksums.h"
#include "sweeps/stores/sample_file.h"

/* Under a sanitizer: the HDF5 library loses some bytes of its own whenever it refuses a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

enum { SEED = 1, CORRUPTIONS = 1000, PART = 200000 };

static const struct tune_column columns[] = {
    {"model_name", "", TUNE_CELL_TEXT, TUNE_COLUMN_INPUT, false},
    {"batch_size", "", TUNE_CELL_WHOLE, TUNE_COLUMN_INPUT, false},
    {"train_runtime", "s", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false},
};
enum { MORE = 3, ALL = TUNE_KEYS + MORE };

/* Rows from .. to - 1 of two experiments. The texts fill several pieces of a table. */
static void fill(const char *folder, int from, int to)
{
    struct tune_store *s = tune_store_open(folder, true);
    char uid[40], reason[32], model[400];
    assert_got(s);
    assert_ok(tune_store_table(s, "one", columns, MORE));
    assert_ok(tune_store_table(s, "two", columns, MORE));
    tune_store_begin(s);
    for (int n = from; n < to; n++) {
        struct tune_cell cells[ALL];
        for (int i = 0; i < ALL; i++)
            cells[i] = (struct tune_cell){.whole = n - i, .number = n + i / 8.0,
                                          .text = i < TUNE_KEYS ? tune_key_column((enum tune_key)i)->name : model};
        snprintf(uid, sizeof uid, "%032d", n);
        snprintf(reason, sizeof reason, "out of memory, kind %d", n % 5);
        snprintf(model, sizeof model, "model %d, %0300d", n, n);
        cells[TUNE_KEY_UID].text = uid;
        cells[TUNE_KEY_STATUS].text = n % 3 ? "valid" : "failed";
        cells[TUNE_KEY_REASON] = (struct tune_cell){.absent = n % 3, .text = reason};
        const struct tune_cell request[TUNE_REQUEST_KEYS] = {{.text = "op"},       {.whole = n},  {.text = "e"},     {.text = "x.1"},
                                                             {.text = "measured"}, {.text = uid}, {.text = "valid"}, {.number = n}};
        assert_ok(tune_store_append(s, n % 4 ? "one" : "two", cells, request));
    }
    assert_ok(tune_store_commit(s));
    tune_store_free(s);
}

/* A store whose only sample file has these bytes. */
static void put_store(const char *folder, const char *data, size_t size)
{
    static const char json[] = "{\"id\":\"0a1b2c\",\"schema_version\":1}";
    assert_ok(tune_file_make_folder(folder));
    test_write(folder, "store.json", json, sizeof json - 1);
    test_write(folder, "x.h5", data, size);
}

static void put_cell(FILE *out, const struct tune_cell *c)
{
    if (c->absent)
        fputs("-|", out);
    else if (c->text)
        fprintf(out, "%s|", c->text);
    else
        fprintf(out, "%lld %.17g|", (long long)c->whole, c->number);
}

static int dump_table(struct tune_store *s, const char *table, FILE *out)
{
    int count, more = -1;
    const struct tune_cell *cells;
    const struct tune_column *c = tune_store_columns(s, table, &count);
    const char *names[64];
    for (int i = 0; c && i < count; i++) {
        names[i] = c[i].name;
        fprintf(out, "%s %s %d %d %d|", c[i].name, c[i].unit, c[i].type, c[i].role, c[i].whole);
    }
    struct tune_scan *scan = c ? tune_scan_open(s, table, names, count) : NULL;
    while (scan && (more = tune_scan_next(scan, &cells)) == 1) {
        for (int i = 0; i < count; i++)
            put_cell(out, &cells[i]);
        fputc('\n', out);
    }
    tune_scan_free(scan);
    return more;
}

/* Everything that the store says, which the caller frees; NULL: it refuses a file. */
static char *dump(const char *folder)
{
    char *text;
    size_t size;
    int count, status = 0;
    FILE *out = open_memstream(&text, &size);
    struct tune_store *s = tune_store_open(folder, false);
    assert_true(out && s);
    const char *const *tables = tune_store_tables(s, &count);
    for (int i = 0; tables && i <= count && status == 0; i++) {
        fprintf(out, "table %s\n", i < count ? tables[i] : TUNE_STORE_REQUESTS);
        status = dump_table(s, i < count ? tables[i] : TUNE_STORE_REQUESTS, out);
    }
    tune_store_free(s);
    fclose(out);
    if (tables && status == 0)
        return text;
    free(text);
    return NULL;
}

/* The bytes of the folder's only sample file; the caller frees them. */
static char *only_file(const char *folder, size_t *size)
{
    char path[TUNE_PATH_MAX] = "", *data;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".h5")) {
            assert_true(!path[0]);
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        }
    closedir(d);
    assert_ok(tune_file_read(path, 1 << 24, &data, size));
    return data;
}

/* ---- corruptions ---- */

static uint64_t drawn(int n, uint64_t at, uint64_t below)
{
    return tune_random_u64(SEED, (uint64_t)n, at) % below;
}

/* Corruption number n of data[*size], which has room for twice as many bytes: what was done. */
static const char *corrupt(int n, char *data, size_t *size)
{
    size_t at = drawn(n, 0, *size), length = (size_t)1 << drawn(n, 1, 14), other = drawn(n, 2, *size);
    length = length < *size - at ? length : *size - at;
    switch (drawn(n, 3, 9)) {
    case 0: data[at] ^= (char)(1 << drawn(n, 4, 8)); return "a bit flipped";
    case 1: data[at] = (char)drawn(n, 4, 256); return "a byte replaced";
    case 2: memset(data + at, 0, length); return "a block of zeros";
    case 3: at &= ~(size_t)511; length = *size - at < 4096 ? *size - at : 4096; memset(data + at, 0, length); return "a page of zeros";
    case 4: memset(data + at, 255, length); return "a block of ones";
    case 5: *size = at; return "cut";
    case 6: for (size_t i = 0; i < length; i++) data[(*size)++] = (char)drawn(n, 5 + i, 256); return "bytes appended";
    case 7: length = length < *size - other ? length : *size - other; memmove(data + at, data + other, length); return "a block copied";
    default: memmove(data + at, data + at + 1, *size - at - 1); return "a byte left out";
    }
}

/* A corrupted store shows the same rows as the whole one, or is refused with the file's name. */
static void corrupted(void **state)
{
    (void)state;
    size_t whole_size;
    fill("whole", 0, 300);
    char *whole = only_file("whole", &whole_size), *hurt = malloc(3 * whole_size), *before = dump("whole");
    int refused = 0, harmless = 0;
    assert_true(whole_size > 150000 && hurt && before);
    for (int n = 0; n < CORRUPTIONS; n++) {
        size_t size = whole_size;
        memcpy(hurt, whole, size);
        const char *what = corrupt(n, hurt, &size);
        put_store("hurt", hurt, size);
        tune_error_clear();
        char *after = dump("hurt");
        if (after && strcmp(after, before))
            fail_msg("corruption %d (%s) is read, and other rows come of it", n, what);
        if (!after)
            assert_error_has("hurt/x.h5: ");
        refused += !after;
        harmless += after != NULL;
        free(after);
    }
    print_message("# %d corruptions: %d refused, %d harmless\n", CORRUPTIONS, refused, harmless);
    assert_true(refused > CORRUPTIONS / 2 && harmless > CORRUPTIONS / 20); /* appended bytes are harmless */
    free(before);
    free(hurt);
    free(whole);
}

/* Every byte of a small file changed, one after the other; and the file cut at every length. */
static void every_byte(void **state)
{
    (void)state;
    size_t size;
    fill("small", 0, 3);
    char *data = only_file("small", &size), *before = dump("small");
    assert_non_null(before);
    const size_t step = getenv("TUNE_TEST_EVERY_BYTE") ? 1 : 7; /* all of them: minutes under a sanitizer */
    for (size_t at = 0; at < size; at += step) {
        data[at] ^= (char)(at % 255 + 1);
        put_store("hurt", data, size);
        data[at] ^= (char)(at % 255 + 1);
        char *after = dump("hurt");
        if (after)
            assert_string_equal(after, before);
        else
            assert_error_has("hurt/x.h5: ");
        free(after);
    }
    for (char version = 0; version < 5; version++) {
        char was = data[8]; /* of the superblock: 3 has checksums, those before have none */
        data[8] = version;
        put_store("hurt", data, size);
        data[8] = was;
        char *after = dump("hurt");
        if (!after)
            assert_error_has("the HDF5 file has superblock version ");
        assert_int_equal(after != NULL, version == 3);
        free(after);
    }
    for (size_t n = 0; n < size; n += n < 64 ? 1 : 97) {
        put_store("hurt", data, n);
        assert_null(dump("hurt"));
        assert_error_has("hurt/x.h5");
    }
    free(before);
    free(data);
}

/* ---- files of before there were checksums ---- */

static char *old_file(void)
{
    char *data = calloc(1, STORE_WITHOUT_CHECKSUMS);
    assert_non_null(data);
    for (size_t i = 0; i < sizeof store_without_checksums / sizeof *store_without_checksums; i++) {
        const char *hex = store_without_checksums[i].hex;
        for (size_t k = 0; hex[2 * k]; k++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * k, "%2x", &byte), 1);
            data[store_without_checksums[i].at + k] = (char)byte;
        }
    }
    return data;
}

static void print_file(void *output, const char *file, int64_t rows, bool checked)
{
    const char *name = strrchr(file, '.');
    snprintf((char *)output + strlen(output), PART - strlen(output), "%s %lld %d\n", name, (long long)rows, checked);
}

static void print_problem(void *output, const char *file, const char *what)
{
    snprintf((char *)output + strlen(output), PART - strlen(output), "%s: %s\n", file, what);
}

/* The output of the check: a line for each file that opens, then one for each problem. */
static const char *checked(const char *folder)
{
    static char output[PART];
    struct tune_store *s = tune_store_open(folder, false);
    assert_got(s);
    output[0] = 0;
    assert_ok(tune_store_check(s, print_file, print_problem, output));
    tune_store_free(s);
    return output;
}

static void old_files(void **state)
{
    (void)state;
    char *data = old_file(), *rows, *merged;
    put_store("old", data, STORE_WITHOUT_CHECKSUMS);
    test_write("old", "y.h5", "does not write such sample files", 14); /* it does not keep the other from being told */
    const char *output = checked("old");
    if (!strstr(output, "\n.h5 2 0\n") || strncmp(output, "old/y.h5: ", 10) != 0)
        fail_msg("the check says:\n%s", output);
    assert_ok(tune_file_remove_folder("old/y.h5"));
    assert_got(rows = dump("old"));
    static const char *const parts[] = {"table test-experiment-v1.0.0\n", "00000001000000000000000000000002|", "|out of memory, kind 2|",
                                        "00000001000000000000000000000003|", "|out of memory, kind 3|", "|a CPU of 2 cores|"};
    for (int i = 0; i < 6; i++)
        assert_non_null(strstr(rows, parts[i]));
    assert_string_equal(checked("old"), ".h5 2 0\n");
    /* merged, the same rows have checksums */
    struct tune_store *from = tune_store_open("old", false), *into = tune_store_open("new", true);
    assert_int_equal(tune_store_merge(into, from, NULL), 2);
    tune_store_free(from);
    tune_store_free(into);
    assert_string_equal(checked("new"), ".h5 2 1\n");
    assert_got(merged = dump("new"));
    assert_string_equal(merged, rows);
    free(merged);
    free(rows);
    free(data);
}

/* Rows that nothing protects may say anything. */
static void bad_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"entity", "reason"};
    const struct tune_cell *c = NULL;
    char *data = old_file();
    static const char of_row[] = "model_name.m2-batch_size.2\0\0\0\0\0"; /* first of the request, then of its row */
    char *entity = memmem(data, STORE_WITHOUT_CHECKSUMS, of_row, sizeof of_row);
    assert_non_null(entity);
    entity = memmem(entity + 1, STORE_WITHOUT_CHECKSUMS - (size_t)(entity + 1 - data), of_row, sizeof of_row);
    assert_non_null(entity);
    memset(entity + 26, '!', 6); /* a text without a NUL */
    put_store("patched", data, STORE_WITHOUT_CHECKSUMS);
    struct tune_store *s = tune_store_open("patched", false);
    struct tune_scan *scan = tune_scan_open(s, "test-experiment-v1.0.0", names, 2);
    assert_true(scan && tune_scan_next(scan, &c) == 1);
    assert_string_equal(c[0].text, "model_name.m2-batch_size.2!!!!!!");
    assert_string_equal(c[1].text, "out of memory, kind 2");
    tune_scan_free(scan);
    tune_store_free(s);
    char *reason = memmem(data, STORE_WITHOUT_CHECKSUMS, "invalid\0\1\0\0\0\0\0\0\0", 16); /* status, the reason's number */
    assert_non_null(reason);
    static const char *const wrong[] = {"\3\0\0\0\0\0\0\0", "\377\377\377\377\377\377\377\377", "\0\0\0\0\0\0\0\100"};
    for (int i = 0; i < 3; i++) {
        memcpy(reason + 8, wrong[i], 8);
        put_store("patched", data, STORE_WITHOUT_CHECKSUMS);
        assert_got(s = tune_store_open("patched", false));
        assert_got(scan = tune_scan_open(s, "test-experiment-v1.0.0", names, 2));
        assert_int_equal(tune_scan_next(scan, &c), -1);
        assert_error_has("patched/x.h5: table test-experiment-v1.0.0: row 0 has the reason number ");
        assert_int_equal(tune_scan_next(scan, &c), 0); /* on with the next file: there is none */
        tune_scan_free(scan);
        tune_store_free(s);
    }
    free(data);
}

/* Texts that another program may leave: half a status, bytes that are no UTF-8. */
static void bad_texts(void **state)
{
    (void)state;
    char *data = old_file();
    char *status = memmem(data, STORE_WITHOUT_CHECKSUMS, "invalid\0\1\0\0\0\0\0\0\0", 16);
    char *class = memmem(data, STORE_WITHOUT_CHECKSUMS, "a CPU of 2 cores", 16);
    assert_true(status && class);
    memset(status + 3, 0, 4); /* "inv" */
    class[3] = '\xff';
    put_store("texts", data, STORE_WITHOUT_CHECKSUMS);
    const char *output = checked("texts");
    assert_non_null(strstr(output, "the status is \"inv\""));
    assert_non_null(strstr(output, "is not UTF-8"));
    free(data);
}

/* ---- pieces ---- */

/* HDF5's Fletcher-32 word by word, as its specification has it. */
static uint32_t plain_fletcher(const unsigned char *data, size_t size)
{
    uint32_t one = 0, two = 0;
    for (size_t i = 0; i < size; i += 2) {
        one += (uint32_t)data[i] << 8 | (i + 1 < size ? data[i + 1] : 0u);
        one = (one & 0xffff) + (one >> 16);
        two += one;
        two = (two & 0xffff) + (two >> 16);
    }
    return two << 16 | one;
}

enum { NO_SUMS, FLETCHER, HASHES, BOTH };

/* Rows in pieces that lie apart, last piece first: each is found, whatever is read at once; a changed byte is not. */
static void read_pieces(int kind, int64_t rows, int64_t row_bytes, int64_t piece_rows, bool ones)
{
    enum { APART = 3 };
    int64_t count = (rows + piece_rows - 1) / piece_rows, bytes = piece_rows * row_bytes, gap = bytes + 4 + APART;
    size_t size = (size_t)(count * gap);
    unsigned char *data = malloc(size);
    uint64_t *at = calloc((size_t)count, sizeof *at), *hashes = calloc((size_t)count, sizeof *hashes);
    assert_true(data && at && hashes);
    for (size_t i = 0; i < size; i++)
        data[i] = ones ? 255 : (unsigned char)drawn(kind, i, 256);
    for (int64_t i = 0; i < count; i++) {
        int64_t here = rows - i * piece_rows < piece_rows ? rows - i * piece_rows : piece_rows;
        at[i] = (uint64_t)((count - 1 - i) * gap + APART);
        uint32_t sum = plain_fletcher(data + at[i], (size_t)bytes);
        for (int k = 0; k < 4 && (kind & FLETCHER); k++)
            data[at[i] + (uint64_t)(bytes + k)] = (unsigned char)(sum >> 8 * k);
        hashes[i] = tune_hash64(data + at[i], (size_t)(here * row_bytes), 0);
    }
    struct tune_sample_extent x = {rows, row_bytes, piece_rows, at, kind & FLETCHER, kind & HASHES ? hashes : NULL};
    struct tune_sample_block block = {0};
    test_write(".", "pieces", data, size);
    int fd = open("pieces", O_RDWR | O_CLOEXEC);
    for (int64_t most = 1; most <= 2 * rows * row_bytes; most *= 3)
        for (int64_t k = 0; k < rows; k++) {
            int64_t row = k * 7 % rows; /* here and there */
            assert_ok(tune_sample_load(fd, "pieces", "exp", &x, row, most, &block));
            assert_true(row >= block.first && row < block.first + block.rows && block.first + block.rows <= rows);
            for (int64_t r = block.first; r < block.first + block.rows; r++)
                assert_memory_equal(block.data + (r - block.first) * row_bytes,
                                    data + at[r / piece_rows] + r % piece_rows * row_bytes, (size_t)row_bytes);
        }
    unsigned char wrong = (unsigned char)~data[at[count - 1]];
    wrong ^= 1; /* not one of ones for one of zeros, which are the same to Fletcher-32 */
    assert_int_equal(pwrite(fd, &wrong, 1, (off_t)at[count - 1]), 1);
    block.rows = 0;
    int status = tune_sample_load(fd, "pieces", "exp", &x, rows - 1, 1, &block);
    assert_int_equal(status, kind == NO_SUMS ? 0 : -1);
    if (kind != NO_SUMS) {
        assert_error_has("pieces: the file is damaged: table exp: its rows ");
        assert_int_equal(tune_sample_load(fd, "pieces", "exp", &x, rows - 1, 1, &block), -1); /* no row is there */
        assert_int_equal(tune_sample_load(fd, "pieces", "exp", &x, 0, 1, &block), count > 1 ? 0 : -1);
        assert_int_equal(tune_sample_load(fd, "pieces", "exp", &x, rows - 1, 1, &block), -1); /* and what was there is gone */
        assert_int_equal(tune_sample_load(fd, "pieces", "exp", &x, 0, 1, &block), count > 1 ? 0 : -1);
        if (count > 1)
            assert_memory_equal(block.data, data + at[0], (size_t)row_bytes);
        unsigned char *zeros = calloc(1, (size_t)bytes + 4); /* a wiped part of the file: its sum is 0 too */
        assert_non_null(zeros);
        assert_int_equal(pwrite(fd, zeros, (size_t)bytes + 4, (off_t)at[count - 1]), bytes + 4);
        assert_int_equal(tune_sample_load(fd, "pieces", "exp", &x, rows - 1, 1, &block), -1);
        free(zeros);
    }
    close(fd);
    free(block.data);
    free(hashes);
    free(at);
    free(data);
}

static void pieces(void **state)
{
    (void)state;
    for (int kind = NO_SUMS; kind <= BOTH; kind++) {
        read_pieces(kind, 23, 24, 5, false);
        read_pieces(kind, 20, 3, 5, false); /* pieces of an odd size */
        read_pieces(kind, 7, 600, 2, false);
        read_pieces(kind, 4, 4096, 4, true); /* the largest sums */
        read_pieces(kind, 1, 1, 1, false);
    }
}

/* A file is under checksums when each of its tables is, and its reasons; a table without rows needs none. */
static void all_checked(void **state)
{
    (void)state;
    uint64_t hash = 0;
    const struct tune_sample_extent none = {.rows = 0}, bare = {.rows = 1}, fletcher = {.rows = 1, .fletcher = true},
                                    hashed = {.rows = 1, .hashes = &hash};
    struct tune_sample_table tables[3] = {{.at = none}, {.at = fletcher}, {.at = hashed}};
    struct tune_sample_file f = {.tables = tables, .table_count = 3, .reasons = none};
    assert_true(tune_sample_checked(&f));
    f.reasons = bare;
    assert_false(tune_sample_checked(&f));
    f.reasons = hashed;
    assert_true(tune_sample_checked(&f));
    for (int i = 0; i < 3; i++) {
        struct tune_sample_table kept = tables[i];
        tables[i].at = bare;
        assert_false(tune_sample_checked(&f));
        tables[i] = kept;
    }
}

/* Written pieces have both checksums, and zeros after the last row. */
static void written_sums(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX] = "";
    int fd;
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 0x55); /* new memory is not zero; sanitizers refuse the setting */
#endif
    fill("sums", 0, 400);
    DIR *d = opendir("sums");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".h5"))
            snprintf(path, sizeof path, "sums/%s", e->d_name);
    closedir(d);
    struct tune_sample_file *f = tune_sample_open(path, &fd);
    assert_got(f);
    assert_true(tune_sample_checked(f) && f->table_count == 3);
    for (int i = 0; i < f->table_count; i++) {
        const struct tune_sample_extent *x = &f->tables[i].at;
        int64_t last = (x->rows - 1) / x->piece_rows, rows = x->rows - last * x->piece_rows;
        size_t size = (size_t)((x->piece_rows - rows) * x->row_bytes);
        unsigned char *behind = malloc(size + 1);
        assert_true(x->fletcher && x->hashes && behind);
        assert_ok(tune_file_read_at(fd, path, x->pieces[last] + (uint64_t)(rows * x->row_bytes), behind, size));
        for (size_t k = 0; k < size; k++)
            assert_int_equal(behind[k], 0);
        free(behind);
    }
    tune_sample_free(f);
    close(fd);
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corrupted), cmocka_unit_test(every_byte), cmocka_unit_test(old_files),
                                       cmocka_unit_test(bad_rows),  cmocka_unit_test(bad_texts),  cmocka_unit_test(pieces),
                                       cmocka_unit_test(all_checked), cmocka_unit_test(written_sums)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
