/* csv.c - a file of comma-separated values, and its text as the cell of an import. */
#include "files/csv.h"
#include "files/json.h"
#include "sweeps/discovery/import_parts.h"
#include "fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double values[8];
    struct fuzz_file file = fuzz_file();
    fuzz_set(&file, data, size);
    read_rows(file.path);
    close(file.fd);
    char *text = calloc(1, size + 1);
    HOLDS(text);
    memcpy(text, data, size);
    int count = tune_import_values(text, values, 8);
    HOLDS(count <= 8);
    free(text);
    return 0;
}
