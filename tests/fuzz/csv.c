/* csv.c - files of comma-separated values: the reader, and an import of them. The first byte says of which experiment. */
#include "files/csv.h"
#include "files/json.h"
#include "sweeps/discovery/import_parts.h"
#include "fuzz.h"

static const char experiment[] =
    "{\"identifier\": \"work\", \"actuator\": \"mock\", \"description\": \"\", \"program\": \"./work.sh\", \"output\": null,"
    "\"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {\"domainRange\": [0, 9], \"interval\": 1}},"
    "{\"identifier\": \"x\", \"default\": 0.5, \"domain\": {\"domainRange\": [0, 10]}},"
    "{\"identifier\": \"kind\", \"default\": \"plain\", \"domain\": {\"values\": [\"plain\", \"odd\", true, null]}}],"
    "\"targets\": [{\"identifier\": \"t\"}, {\"identifier\": \"count\", \"whole\": true, \"optional\": true}]}";

/* Rows come with lines that go up, fields are texts, and a second pass says the same. */
static void read_rows(const char *path)
{
    struct tune_csv *csv = tune_csv_open(path);
    const char *const *fields;
    int64_t rows[2] = {0, 0}, bytes[2] = {0, 0}, line = 0;
    int count, more = 0;
    HOLDS(csv);
    for (int pass = 0; pass < 2; pass++, line = 0) {
        HOLDS(pass == 0 || tune_csv_rewind(csv) == 0);
        while ((more = tune_csv_row(csv, &fields, &count)) == 1) {
            HOLDS(count > 0 && tune_csv_line(csv) > line);
            line = tune_csv_line(csv);
            rows[pass]++;
            for (int i = 0; i < count; i++) {
                bytes[pass] += (int64_t)strlen(fields[i]) + 1;
                HOLDS(tune_utf8_valid(fields[i], strlen(fields[i]), NULL));
            }
        }
        if (more < 0)
            fuzz_refused();
    }
    HOLDS(rows[0] == rows[1] && bytes[0] == bytes[1]);
    tune_csv_free(csv);
}

static int problems;
static void note_bad(void *context, const char *path, int64_t line, const char *what)
{
    HOLDS(context == &problems && *path && line > 0 && *what);
    problems++;
}

/* Imported, and once more: nothing comes twice. */
static void import(const char *path, int how)
{
    static struct tune_catalog catalog;
    static const char *const inputs[] = {"a", "x"};
    char folder[] = "/tmp/tune-fuzz-XXXXXX", name[64];
    HOLDS(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/work.json", folder);
    const char *file = name;
    if (!catalog.count) {
        FILE *f = fopen(name, "wb");
        HOLDS(f && fputs(experiment, f) >= 0 && fclose(f) == 0);
        HOLDS(tune_catalog_read(&catalog, &file, 1) == 0);
        HOLDS(remove(name) == 0);
    }
    struct tune_store *store = tune_store_open(folder, true);
    HOLDS(store);
    struct tune_import i = {.store = store, .catalog = &catalog, .path = path, .experiment = how & 1 ? "work" : "new",
                            .problem = note_bad, .context = &problems, .inputs = inputs, .input_count = how & 2 ? 2 : 0};
    problems = 0;
    if (tune_import_csv(&i) < 0) {
        HOLDS(i.added == 0 && i.bad == problems && !i.made);
        fuzz_refused();
    } else {
        HOLDS(i.bad == 0 && i.results > 0 && i.added + i.again == i.results && tune_store_refresh(store) >= 0);
        int64_t results = i.results, again = i.again;
        if (how & 1) {
            HOLDS(tune_import_csv(&i) == 0);
            HOLDS(i.results == results && i.again == again && i.added == 0);
        }
    }
    tune_store_free(store);
    HOLDS(tune_file_remove_folder(folder) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double values[8];
    if (size == 0)
        return 0;
    struct fuzz_file file = fuzz_file();
    fuzz_set(&file, data + 1, size - 1);
    read_rows(file.path);
    if (data[0] & 4)
        import(file.path, data[0]);
    close(file.fd);
    char *text = calloc(1, size);
    HOLDS(text);
    memcpy(text, data + 1, size - 1);
    int count = tune_import_values(text, values, 8);
    HOLDS(count <= 8);
    free(text);
    return 0;
}
