/* bench_index.c - how fast the rows of a file are found: GB/s from the page cache, for each format. The figure that the
 * first step waits for. Usage: bench_index [MiB], 1024 without. The file is made in $TMPDIR (or /tmp) and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "files/file.h"
#include "datasets/rows.h"

static int fail(void)
{
    fprintf(stderr, "bench_index: %s\n", tune_error_message());
    return 1;
}

/* The rows of datasets/stories.jsonl over and over, as JSONL, as one JSON array, or as paragraphs. */
static int write_file(const char *path, enum tune_dataset_format format, size_t bytes)
{
    struct tune_mapping m;
    FILE *f = fopen(path, "w");
    if (!f || tune_file_map(&m, "datasets/stories.jsonl") < 0)
        return -1;
    size_t written = 0;
    if (format == TUNE_DATASET_JSON)
        fputc('[', f);
    while (written < bytes)
        for (const char *p = m.data, *end = m.data + m.size, *stop; p < end; p = stop + 1) {
            stop = memchr(p, '\n', (size_t)(end - p));
            stop = stop ? stop : end;
            if (format == TUNE_DATASET_JSON && written > 0)
                fputs(",\n", f);
            fwrite(p, 1, (size_t)(stop - p), f);
            fputs(format == TUNE_DATASET_TEXT ? "\n\n" : format == TUNE_DATASET_JSONL ? "\n" : "", f);
            written += (size_t)(stop - p) + 2;
        }
    if (format == TUNE_DATASET_JSON)
        fputc(']', f);
    tune_file_unmap(&m);
    return fclose(f);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum tune_dataset_format format;
    } kinds[] = {{"JSONL", TUNE_DATASET_JSONL}, {"JSON array", TUNE_DATASET_JSON}, {"paragraphs", TUNE_DATASET_TEXT}};
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 1024) << 20;
    char path[TUNE_PATH_MAX];
    const char *folder = getenv("TMPDIR");
    if (tune_path(path, "%s/tune-bench-%ld", folder ? folder : "/tmp", (long)getpid()) < 0)
        return fail();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double best = 0;
        int64_t count = 0;
        if (write_file(path, kinds[i].format, bytes) < 0) {
            unlink(path);
            return fail();
        }
        for (int pass = 0; pass < 3; pass++) {
            struct tune_rows rows;
            double begin = tune_moment_now().wall_s;
            if (tune_rows_open(&rows, path, &(struct tune_dataset_options){.format = kinds[i].format}) < 0) {
                unlink(path);
                return fail();
            }
            double rate = (double)rows.file.size / (tune_moment_now().wall_s - begin) / 1e9;
            count = rows.count;
            best = rate > best ? rate : best;
            tune_rows_close(&rows);
        }
        printf("index %-10s %9lld rows %6.1f GB/s (best of 3)\n", kinds[i].name, (long long)count, best);
    }
    unlink(path);
    return 0;
}
