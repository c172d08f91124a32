/* bench_rows.c - what rows of large files cost: how long a set takes to open, rows tokenised a second in a shuffled epoch with and
 * without packing, and the memory of it all, which must not grow with the file. Then one long row alone: what reading it takes.
 * Usage: bench_rows [MiB [SECONDS]], 200 and 8 without: the file's size, how long each epoch is followed at most. Files are made
 * in $TMPDIR (or /tmp) and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "files/file.h"
#include "machine/memory.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "tokenizers/tokenizer.h"

#define MB 1e6

/* The kernel's peak of resident memory begins anew. */
static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

/* Words by chance; each seventh text has quotes and a line end, as the kind of file spells them. */
static void put_text(FILE *f, uint64_t text, int words, bool csv)
{
    static const char *const some[] = {"river", "the", "mountain", "of", "seven", "birds", "and", "stone", "walked", "quietly",
                                       "to", "a", "house", "where", "lanterns", "were", "lit", "before", "evening", "fell"};
    for (int i = 0; i < words; i++)
        fprintf(f, "%s%s%s", i ? " " : "", some[(int)(tune_random_uniform(1, text, (uint64_t)i) * 19.99)], i % 11 == 10 ? "," : "");
    if (text % 7 == 0)
        fputs(csv ? " \"\"so\"\"\nit goes" : " \\\"so\\\"\\nit goes", f);
}

enum kind { CSV, JSON, JSONL, CHAT };
static const struct {
    const char *name, *ending, *first, *before, *between, *after;
} kinds[] = {
    {"csv", "csv", "id,prompt,completion\n", "%ld,\"", "\",\"", "\"\n"},
    {"json", "json", "[", "{\"id\": %ld, \"prompt\": \"", "\", \"completion\": \"", "\"}"},
    {"jsonl", "jsonl", "", "{\"id\": %ld, \"prompt\": \"", "\", \"completion\": \"", "\"}"},
    {"chat", "jsonl", "", "{\"id\": %ld, \"messages\": [{\"role\": \"user\", \"content\": \"",
     "\"}, {\"role\": \"assistant\", \"content\": \"", "\"}]}"},
};

static void put_row(FILE *f, long row, int words, enum kind kind)
{
    fprintf(f, kinds[kind].before, row);
    put_text(f, 2 * (uint64_t)row, words / 4 + 1, kind == CSV);
    fputs(kinds[kind].between, f);
    put_text(f, 2 * (uint64_t)row + 1, words + (int)(row % 50), kind == CSV);
    fputs(kinds[kind].after, f);
}

static int write_rows(const char *path, enum kind kind, size_t bytes, int words)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        tune_error_set("cannot write %s", path);
        return -1;
    }
    fputs(kinds[kind].first, f);
    long row = 0;
    do {
        put_row(f, row++, words, kind);
        fputs(kind == CSV ? "" : kind == JSON ? ",\n" : "\n", f);
    } while ((size_t)ftell(f) < bytes);
    if (kind == JSON) {
        put_row(f, row, words, kind);
        fputs("]\n", f);
    }
    return fclose(f);
}

/* One epoch, or its first seconds, as a run reads it. */
static int follow(struct tune_dataset *d, bool packing, double seconds)
{
    struct tune_loader_options o = {.part = TUNE_ALL, .seed = 1, .shuffle = true, .batch_size = 8, .accumulate = 1,
                                    .max_length = 1024, .epochs = 1, .max_steps = -1, .stop_after_seconds = seconds,
                                    .packing = packing, .prefetch = true};
    struct tune_progress at = {0};
    struct tune_batch batch;
    int64_t tokens = 0, held = 0;
    int micros;
    forget_peak();
    double begin = tune_moment_now().wall_s;
    struct tune_loader *load = tune_loader_new(d, &o);
    if (!load)
        return -1;
    while ((micros = tune_loader_more(load, &at)) > 0) {
        while (micros-- > 0) {
            TRY(tune_loader_next(load, &batch));
            tokens += batch.tokens;
        }
        tune_progress_step(&at, load);
        int64_t now = at.step % 64 ? 0 : tune_memory_anonymous();
        held = now > held ? now : held;
    }
    double s = tune_moment_now().wall_s - begin;
    printf("  %-8s %9.0f rows/s %6.2f M tokens/s   %5.1f %% of the file   %5.1f MB own, %5.1f MB resident at most\n",
           packing ? "packed" : "padded", (double)at.rows / s, (double)tokens / s / MB,
           100.0 * (double)at.rows / (double)tune_dataset_rows(d), (double)held / MB, (double)tune_memory_peak() / MB);
    tune_loader_free(load);
    return micros;
}

static struct tune_dataset *open_set(const char *path, enum kind kind, struct tune_tokenizer *tok, int max_length)
{
    struct tune_dataset_options o = {.row_format = "auto", .end_token = "<|end|>", .max_length = max_length,
                                     .chat_template = kind == CHAT ? "chatml" : NULL};
    return tune_dataset_open(path, &o, tok);
}

static int measure(const char *path, enum kind kind, struct tune_tokenizer *tok, size_t bytes, double seconds)
{
    TRY(write_rows(path, kind, bytes, 60));
    forget_peak();
    int64_t before = tune_memory_anonymous();
    double begin = tune_moment_now().wall_s;
    struct tune_dataset *d = open_set(path, kind, tok, 1024);
    if (!d)
        return -1;
    double s = tune_moment_now().wall_s - begin;
    printf("%-5s %6.1f MB, %lld rows: opened in %.2f s (%.2f GB/s), %.2f MB more held, %.1f MB resident at most\n",
           kinds[kind].name, (double)bytes / MB, (long long)tune_dataset_rows(d), s, (double)bytes / s / 1e9,
           (double)(tune_memory_anonymous() - before) / MB, (double)tune_memory_peak() / MB);
    int status = follow(d, false, seconds) < 0 || follow(d, true, seconds) < 0 ? -1 : 0;
    tune_dataset_free(d);
    return status;
}

/* One row of about so many bytes: what reading it takes beside the tokens that are kept. */
static int measure_row(const char *path, enum kind kind, struct tune_tokenizer *tok, size_t bytes)
{
    struct tune_example x = {0};
    TRY(write_rows(path, kind, 1, (int)(bytes / 7)));
    struct tune_dataset *d = open_set(path, kind, tok, 1 << 24);
    if (!d)
        return -1;
    int64_t before = tune_memory_anonymous();
    forget_peak();
    int64_t resident = tune_memory_peak();
    double begin = tune_moment_now().wall_s;
    TRY(tune_dataset_get(d, 0, &x));
    double s = tune_moment_now().wall_s - begin;
    struct tune_file_stamp stamp = *tune_dataset_stamp(d);
    printf("%-5s one row of %.1f MB, %.2f M tokens: read in %.2f s, %.1f MB more resident at most (%.1f bytes a byte), %.1f MB "
           "kept\n", kinds[kind].name, (double)stamp.size / MB, (double)x.full_count / MB, s,
           (double)(tune_memory_peak() - resident) / MB, (double)(tune_memory_peak() - resident) / (double)stamp.size,
           (double)(tune_memory_anonymous() - before) / MB);
    tune_example_free(&x);
    tune_dataset_free(d);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const special[] = {"<|end|>", "<|im_start|>", "<|im_end|>"};
    static const enum kind large[] = {CSV, JSON, JSONL, CHAT}, long_rows[] = {CSV, JSONL, CHAT};
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 200) << 20;
    double seconds = argc > 2 ? atof(argv[2]) : 8;
    const char *folder = getenv("TMPDIR");
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    struct tune_tokenizer *tok = NULL;
    int status = tune_path(path, "%s/tune-bench-%ld.json", folder ? folder : "/tmp", (long)getpid());
    if (status == 0 && (status = tune_file_read("datasets/stories.jsonl", 64 << 20, &text, &size)) == 0) {
        status = tune_tokenizer_train(path, text, size, 2000, special, 3);
        free(text);
    }
    if (status == 0)
        status = (tok = tune_tokenizer_open(path)) ? 0 : -1;
    unlink(path);
    for (int i = 0; status == 0 && i < 7; i++) {
        enum kind kind = i < 4 ? large[i] : long_rows[i - 4];
        status = tune_path(path, "%s/tune-bench-%ld.%s", folder ? folder : "/tmp", (long)getpid(), kinds[kind].ending);
        if (status == 0)
            status = i < 4 ? measure(path, kind, tok, bytes, seconds) : measure_row(path, kind, tok, (size_t)8 << 20);
        unlink(path);
    }
    if (status < 0)
        fprintf(stderr, "bench_rows: %s\n", tune_error_message());
    tune_tokenizer_free(tok);
    return status < 0;
}
