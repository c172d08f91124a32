/* import.c - an import of comma-separated values, and a query of what came. Three bytes say how: of which experiment and with
 * which actuator; which columns are inputs; which are targets. The rest is the file. */
#include <ctype.h>

#include "files/csv.h"
#include "fuzz.h"
#include "sweeps/discovery/import_parts.h"
#include "core/expression.h"

enum { MOST = 16, KNOWN = 1, ACTUATOR = 2, ODD_NAME = 4 };

static const char experiment[] =
    "{\"identifier\": \"work\", \"actuator\": \"mock\", \"description\": \"\", \"program\": \"./work.sh\", \"output\": null,"
    "\"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {\"domainRange\": [0, 9], \"interval\": 1}},"
    "{\"identifier\": \"x\", \"default\": 0.5, \"domain\": {\"domainRange\": [0, 10]}},"
    "{\"identifier\": \"kind\", \"default\": \"plain\", \"domain\": {\"values\": [\"plain\", \"odd\", true, null]}}],"
    "\"targets\": [{\"identifier\": \"t\"}, {\"identifier\": \"count\", \"whole\": true, \"optional\": true}]}";

/* The columns of the heading whose bits are set. */
static int choose(const char *path, int bits, char names[MOST][256], const char *chosen[MOST])
{
    const char *const *fields;
    int count = 0, n = 0;
    struct tune_csv *csv = tune_csv_open(path);
    HOLDS(csv);
    if (tune_csv_row(csv, &fields, &count) != 1)
        count = 0;
    for (int i = 0; i < count && i < MOST; i++)
        if (bits >> (i % 8) & 1) {
            snprintf(names[n], sizeof names[n], "%s", fields[i]);
            chosen[n] = names[n];
            n++;
        }
    tune_error_clear();
    tune_csv_free(csv);
    return n;
}

static int problems;
static void count_bad(void *context, const char *path, int64_t line, const char *what)
{
    HOLDS(context == &problems && *path && line > 0 && *what);
    problems++;
}

static bool is_name(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isalpha((unsigned char)*c))
            return false;
    return *text && strcmp(text, "or") && strcmp(text, "in") && strcmp(text, "and") && strcmp(text, "not");
}

/* A column of numbers can be compared in every row, also where it has none. */
static void query(struct tune_store *store, const char *table)
{
    const struct tune_cell *cells;
    int count, more;
    const struct tune_column *columns = tune_store_columns(store, table, &count);
    HOLDS(columns);
    for (int i = TUNE_KEYS; i < count; i++) {
        const char *name = columns[i].name;
        char text[256];
        if (columns[i].type == TUNE_CELL_TEXT || !is_name(name) ||
            snprintf(text, sizeof text, "%s < 1 or -%s * 2 in [%s] or not 2 > %s", name, name, name, name) >= (int)sizeof text)
            continue;
        struct tune_expression *e = tune_expression_query(text, &name, 1, "");
        struct tune_scan *scan = tune_scan_open(store, table, &name, 1);
        if (!e) { /* a word of the language, such as None */
            fuzz_refused();
            tune_scan_free(scan);
            continue;
        }
        HOLDS(scan);
        while ((more = tune_scan_next(scan, &cells)) == 1) {
            struct tune_value value = tune_rows_value(&columns[i], NULL, NULL, &cells[0]);
            if (cells[0].absent || value.type == TUNE_VALUE_FLOAT)
                HOLDS(tune_expression_true(e, &value) >= 0);
        }
        HOLDS(more == 0);
        tune_scan_free(scan);
        tune_expression_free(e);
    }
}

/* Imported, and once more: nothing comes twice. */
static void import(struct tune_import *i, bool known)
{
    problems = 0;
    if (tune_import_csv(i) < 0) {
        HOLDS(i->added == 0 && i->bad == problems && !i->made);
        fuzz_refused();
        return;
    }
    HOLDS(i->bad == 0 && i->results > 0 && i->added + i->again == i->results && tune_store_refresh(i->store) >= 0);
    int64_t results = i->results, again = i->again;
    int tables;
    const char *const *names = tune_store_tables(i->store, &tables);
    HOLDS(names);
    for (int t = 0; t < tables; t++)
        query(i->store, names[t]);
    if (known) {
        HOLDS(tune_import_csv(i) == 0);
        HOLDS(i->results == results && i->again == again && i->added == 0);
    }
}

/* Read the experiment once. */
static const struct tune_catalog *catalog_in(const char *folder)
{
    static struct tune_catalog catalog;
    char name[64];
    const char *file = name;
    if (catalog.count)
        return &catalog;
    snprintf(name, sizeof name, "%s/work.json", folder);
    FILE *f = fopen(name, "wb");
    HOLDS(f && fputs(experiment, f) >= 0 && fclose(f) == 0);
    HOLDS(tune_catalog_read(&catalog, &file, 1) == 0 && remove(name) == 0);
    return &catalog;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char input_names[MOST][256], target_names[MOST][256], folder[] = "/tmp/tune-fuzz-XXXXXX";
    const char *inputs[MOST], *targets[MOST];
    if (size < 3)
        return 0;
    struct fuzz_file file = fuzz_file();
    fuzz_set(&file, data + 3, size - 3);
    HOLDS(mkdtemp(folder));
    const struct tune_catalog *catalog = catalog_in(folder);
    struct tune_store *store = tune_store_open(folder, true);
    HOLDS(store);
    struct tune_import i = {.store = store, .catalog = catalog, .path = file.path, .problem = count_bad, .context = &problems,
                            .experiment = data[0] & KNOWN ? "work" : data[0] & ODD_NAME ? "a.new" : "new",
                            .actuator = data[0] & ACTUATOR ? "mock" : NULL, .inputs = inputs, .targets = targets,
                            .input_count = choose(file.path, data[1], input_names, inputs),
                            .target_count = choose(file.path, data[2], target_names, targets)};
    import(&i, data[0] & KNOWN);
    tune_store_free(store);
    close(file.fd);
    HOLDS(tune_file_remove_folder(folder) == 0);
    return 0;
}
