/* store.c - a sample file among the files of a store: its tables and columns, every row of them, rows read again, the check. */

#include "files/file.h"
#include "fuzz.h"
#include "sweeps/stores/store.h"

/* The library loses some bytes of its own whenever it refuses a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static struct fuzz_file file;

static void make_folder(void)
{
    static const char json[] = "{\"id\": \"0a1b2c\", \"schema_version\": 1}";
    char path[TUNE_PATH_MAX];
    HOLDS(tune_path(path, "%s/store.json", fuzz_folder()) == 0 && tune_file_write(path, json, sizeof json - 1) == 0);
    file = fuzz_file_in_folder("1.h5");
}

static void read_rows(struct tune_store *s, const char *table)
{
    int count, more;
    const struct tune_cell *cells;
    const struct tune_column *columns = tune_store_columns(s, table, &count);
    HOLDS(columns && count > 0);
    const char **names = calloc((size_t)count, sizeof *names);
    HOLDS(names);
    for (int i = 0; i < count; i++) {
        HOLDS(columns[i].name && columns[i].name[0] && columns[i].unit && columns[i].role <= TUNE_COLUMN_TARGET);
        names[i] = columns[i].name;
    }
    struct tune_scan *scan = tune_scan_open(s, table, names, count);
    HOLDS(scan);
    for (int row = 0; (more = tune_scan_next(scan, &cells)) == 1; row++) {
        struct tune_row_position position = tune_scan_position(scan);
        HOLDS(position.file == 0 && position.row == row);
        for (int i = 0; i < count; i++)
            HOLDS(columns[i].type != TUNE_CELL_TEXT || strlen(cells[i].text) <= TUNE_STORE_TEXT_MAX + 8);
        if (row % 16 == 0)
            HOLDS(tune_scan_at(scan, position, &cells) == 0);
    }
    if (more < 0)
        fuzz_refused();
    tune_scan_free(scan);
    free(names);
}

static void count_problem(void *context, const char *name, const char *what)
{
    HOLDS(name[0] && what[0]);
    ++*(int *)context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int count, problems = 0;
    if (file.fd == 0)
        make_folder();
    fuzz_set(&file, data, size);
    struct tune_store *s = tune_store_open(fuzz_folder(), false);
    HOLDS(s);
    const char *const *tables = tune_store_tables(s, &count);
    if (!tables)
        fuzz_refused();
    for (int i = 0; tables && i < count; i++)
        read_rows(s, tables[i]);
    if (tables)
        read_rows(s, TUNE_STORE_REQUESTS);
    HOLDS(tune_store_check(s, NULL, count_problem, &problems) == problems && (tables || problems > 0));
    tune_error_clear();
    tune_store_free(s);
    return 0;
}
