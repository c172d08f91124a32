/* parquet.c - Parquet files: every row of what is read is JSON, twice the same. */
#include "files/parquet.h"
#include "files/file.h"
#include "fuzz.h"

enum { ROWS = 2000, BYTES = 4 << 20 }; /* a few bytes of a file can be many of rows */

/* The row is one object, unless a text in it is no UTF-8: whoever reads the row says that. */
static void check_row(struct tune_text line)
{
    struct tune_json j;
    HOLDS(line.size >= 2 && line.data[0] == '{' && line.data[line.size] == 0 && !memchr(line.data, '\n', line.size));
    tune_json_start(&j, "row", line.data, line.size, 1);
    if (tune_utf8_valid(line.data, line.size, NULL) && (tune_json_skip(&j) < 0 || tune_json_end(&j) < 0)) {
        HOLDS(strstr(tune_error_message(), "deep") || strstr(tune_error_message(), "twice"));
        fuzz_refused();
    }
    tune_error_clear();
    tune_json_free(&j);
}

static int64_t read_all(const char *path, uint64_t *hash)
{
    struct tune_parquet *p = tune_parquet_open(path, 0);
    struct tune_text line;
    int64_t rows = 0;
    size_t bytes = 0;
    int more = p ? 0 : -1;
    while (p && rows < ROWS && bytes < BYTES && (more = tune_parquet_next(p, &line)) == 1) {
        check_row(line);
        *hash = tune_hash64(line.data, line.size, *hash);
        bytes += line.size;
        rows++;
    }
    HOLDS(!p || rows <= tune_parquet_rows(p));
    HOLDS(more != 0 || !p || rows == tune_parquet_rows(p));
    if (more < 0)
        fuzz_refused();
    tune_parquet_free(p);
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t hashes[2] = {0, 0};
    struct fuzz_file file = fuzz_file();
    fuzz_set(&file, data, size);
    int64_t rows = read_all(file.path, &hashes[0]);
    HOLDS(rows == read_all(file.path, &hashes[1]) && hashes[0] == hashes[1]);
    close(file.fd);
    return 0;
}
