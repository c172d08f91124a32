/* bench_store.c - a sample store of realistic rows (17 keys, 30 inputs, 25 targets: some 2 kB): appends one by one, passes
 * over all columns and over a few, rows here and there, a store of many files.
 * Usage: bench_store [ROWS], 100000 without; 1000000 takes 2 GB. The store is made in $TMPDIR (or /tmp) and removed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "machine/memory.h"
#include "core/random.h"
#include "sweeps/stores/store.h"

#define TABLE "finetune_full_benchmark-v1.0.0"

enum { INPUTS = 30, TARGETS = 25, COLUMNS = TUNE_KEYS + INPUTS + TARGETS };

static char names[INPUTS + TARGETS][48], texts[COLUMNS][160];
static struct tune_column columns[INPUTS + TARGETS];

static int fail(void)
{
    fprintf(stderr, "bench_store: %s\n", tune_error_message());
    return 1;
}

static void make_columns(void)
{
    for (int i = 0; i < INPUTS + TARGETS; i++) {
        bool input = i < INPUTS;
        snprintf(names[i], sizeof names[i], input ? "configuration_parameter_%d" : "gpu_utilization_measured_%d", i);
        columns[i] = (struct tune_column){.name = names[i],
                                          .unit = input ? "" : "percent",
                                          .role = input ? TUNE_COLUMN_INPUT : TUNE_COLUMN_TARGET,
                                          .type = !input ? TUNE_CELL_NUMBER : i % 2 ? TUNE_CELL_TEXT : TUNE_CELL_WHOLE};
    }
}

/* Row number n: texts as long as those of real ones. */
static void make_row(int64_t n, struct tune_cell *cells, struct tune_cell *request)
{
    static const char *const keys[TUNE_KEYS] = {
        [TUNE_KEY_OPERATION] = "randomwalk-0.3.0-%06llx",
        [TUNE_KEY_SPACE] = "space-%06llx-a1b2c3",
        [TUNE_KEY_EXPERIMENT] = "SFTTrainer." TABLE "-fms_hf_tuning_version.2.8.2-stop_after_seconds.30-flash_attn.0",
        [TUNE_KEY_ENTITY] = "model_name.smollm2-135m-number_gpus.1-model_max_length.512-batch_size.%lld",
        [TUNE_KEY_GENERATOR] = "explicit_grid_sample_generator",
        [TUNE_KEY_STATUS] = "valid",
        [TUNE_KEY_HOST] = "measuring-host",
        [TUNE_KEY_HOST_CLASS] = "Intel(R) Xeon(R) Platinum 8568Y+, 16 cores, 128 GiB, NVIDIA H100 80GB HBM3, driver 550.90",
        [TUNE_KEY_BUILD] = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
        [TUNE_KEY_WEIGHTS] = "0123456789abcdef",
        [TUNE_KEY_DATA] = "fedcba9876543210"};
    for (int i = 0; i < COLUMNS; i++) {
        const struct tune_column *c = i < TUNE_KEYS ? tune_key_column((enum tune_key)i) : &columns[i - TUNE_KEYS];
        cells[i] = (struct tune_cell){.whole = n + i, .number = sqrt((double)(n * COLUMNS + i)), .text = texts[i]};
        if (i >= TUNE_KEYS && c->type == TUNE_CELL_TEXT)
            snprintf(texts[i], sizeof texts[i], "choice_%lld_of_a_longer_list", (long long)(n % 7));
        else if (i < TUNE_KEYS && keys[i])
            snprintf(texts[i], sizeof texts[i], keys[i], (long long)(i == TUNE_KEY_ENTITY ? n : n / 1000));
    }
    snprintf(texts[TUNE_KEY_UID], sizeof texts[0], "%032llx", (unsigned long long)n);
    cells[TUNE_KEY_REASON].absent = true;
    const struct tune_cell all[TUNE_REQUEST_KEYS] = {
        cells[TUNE_KEY_OPERATION], cells[TUNE_KEY_REQUEST], cells[TUNE_KEY_EXPERIMENT], cells[TUNE_KEY_ENTITY],
        {.text = "measured"},      cells[TUNE_KEY_UID],     cells[TUNE_KEY_STATUS],     cells[TUNE_KEY_STARTED]};
    memcpy(request, all, sizeof all);
}

static int append(struct tune_store *s, int64_t from, int64_t to, double *worst)
{
    struct tune_cell cells[COLUMNS], request[TUNE_REQUEST_KEYS];
    for (int64_t n = from; n < to; n++) {
        make_row(n, cells, request);
        double begin = tune_clock_s();
        if (tune_store_append(s, TABLE, cells, request) < 0)
            return -1;
        double took = tune_clock_s() - begin;
        *worst = took > *worst ? took : *worst;
    }
    return 0;
}

static int fill(const char *folder, int64_t rows)
{
    struct tune_store *s = tune_store_open(folder, true);
    double begin = tune_clock_s(), worst = 0;
    int alone = 1100; /* a file and what the next begins with */
    if (!s || tune_store_table(s, TABLE, columns, INPUTS + TARGETS) < 0 || append(s, 0, alone, &worst) < 0)
        return -1;
    printf("append: %.2f ms mean, %.2f ms worst of %d, each with its fsyncs\n", (tune_clock_s() - begin) / alone * 1e3, worst * 1e3,
           alone);
    begin = tune_clock_s();
    tune_store_begin(s);
    if (append(s, alone, rows, &worst) < 0 || tune_store_commit(s) < 0)
        return -1;
    printf("append of %lld rows at once: %.2f s\n", (long long)rows - alone, tune_clock_s() - begin);
    tune_store_free(s);
    return 0;
}

/* A pass over count columns from the first; what it read is added up, so that nothing is left out. */
static int64_t pass(struct tune_store *s, int count, double *sum)
{
    int all, more;
    const struct tune_column *c = tune_store_columns(s, TABLE, &all);
    const struct tune_cell *cells;
    const char *wanted[COLUMNS];
    for (int i = 0; c && i < count; i++)
        wanted[i] = c[all - 1 - i].name; /* targets first */
    struct tune_scan *scan = c ? tune_scan_open(s, TABLE, wanted, count) : NULL;
    int64_t rows = 0;
    while (scan && (more = tune_scan_next(scan, &cells)) == 1)
        for (int i = rows++ < 0; i < count; i++)
            *sum += cells[i].absent ? 0 : isnan(cells[i].number) ? cells[i].text[0] : cells[i].number;
    tune_scan_free(scan);
    return scan && more == 0 ? rows : -1;
}

static int read_here_and_there(struct tune_store *s, int64_t rows, double *sum)
{
    const char *const wanted[] = {"entity", "gpu_utilization_measured_40"};
    struct tune_row_position *positions = calloc((size_t)rows, sizeof *positions);
    struct tune_scan *scan = tune_scan_open(s, TABLE, wanted, 2);
    const struct tune_cell *cells;
    if (!positions || !scan)
        return -1;
    for (int64_t i = 0; i < rows; i++) {
        if (tune_scan_next(scan, &cells) != 1)
            return -1;
        positions[i] = tune_scan_position(scan);
    }
    double begin = tune_clock_s();
    for (int64_t i = 0; i < rows; i++) {
        if (tune_scan_at(scan, positions[tune_random_permute(1, 0, (uint64_t)rows, (uint64_t)i)], &cells) < 0)
            return -1;
        *sum += cells[1].number;
    }
    printf("%lld rows in random order: %.2f s\n", (long long)rows, tune_clock_s() - begin);
    tune_scan_free(scan);
    free(positions);
    return 0;
}

static int read_all(const char *folder, int64_t rows)
{
    double begin = tune_clock_s(), sum = 0;
    struct tune_store *s = tune_store_open(folder, false);
    int count;
    if (!s || !tune_store_tables(s, &count))
        return -1;
    printf("open, and the columns of all files: %.3f s\n", tune_clock_s() - begin);
    static const int counts[] = {COLUMNS, COLUMNS, 5};
    for (int i = 0; i < 3; i++) {
        begin = tune_clock_s();
        if (pass(s, counts[i], &sum) != rows)
            return -1;
        printf("pass over %d columns of %lld rows: %.2f s\n", counts[i], (long long)rows, tune_clock_s() - begin);
    }
    if (read_here_and_there(s, rows, &sum) < 0)
        return -1;
    tune_store_free(s);
    printf("peak memory of the reader: %.0f MB (checksum %g)\n", (double)tune_memory_peak() / 1e6, sum);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t rows = argc > 1 ? atoll(argv[1]) : 100000;
    char folder[TUNE_PATH_MAX];
    const char *tmp = getenv("TMPDIR");
    if (rows < 2000 || tune_path(folder, "%s/tune-bench-%ld", tmp ? tmp : "/tmp", (long)getpid()) < 0)
        return fail();
    make_columns();
    fflush(stdout);
    pid_t child = fork(); /* the reader's peak is its own */
    if (child == 0) {
        int status = fill(folder, rows) < 0 ? fail() : 0;
        fflush(stdout);
        _exit(status);
    }
    int status = 1;
    waitpid(child, &status, 0);
    status = status || read_all(folder, rows) < 0 ? fail() : 0;
    tune_file_remove_folder(folder);
    return status;
}
