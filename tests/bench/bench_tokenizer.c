/* bench_tokenizer.c - how fast text becomes ids, on one core: MB/s of the first pass after opening (cold) and of the best
 * later one (warm), and the seconds that opening takes.
 * Usage: bench_tokenizer [TOKENIZER TEXT]...; TEXT holds documents, a NUL after each. Without arguments: a tokenizer
 * trained on datasets/stories.jsonl, over that file. tests/bench/peer_tokenizers.py sets the figures beside those of
 * the tokenizers library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "files/file.h"
#include "tokenizers/tokenizer.h"

static double now(void)
{
    return tune_moment_now().wall_s;
}

/* Every document once; *tokens of all of them. Seconds, or -1. */
static double pass(struct tune_tokenizer *t, const char *text, size_t size, long long *tokens)
{
    struct tune_encoding e = {0};
    double begin = now();
    *tokens = 0;
    for (const char *p = text, *stop; p < text + size; p = stop + 1) {
        stop = memchr(p, 0, (size_t)(text + size - p));
        stop = stop ? stop : text + size;
        if (tune_tokenizer_encode(t, p, (size_t)(stop - p), TUNE_ADD_SPECIAL, &e) < 0)
            return -1;
        *tokens += e.count;
    }
    begin = now() - begin;
    tune_encoding_free(&e);
    return begin;
}

/* Opened anew COLD times; the shortest of each time. */
static int measure(const char *path, const char *text, size_t size)
{
    enum { COLD = 5, WARM = 3 };
    double open_s = 1e9, cold_s = 1e9, warm_s = 1e9, s;
    long long tokens;
    for (int i = 0; i < COLD; i++) {
        s = now();
        struct tune_tokenizer *t = tune_tokenizer_open(path);
        if (!t)
            return -1;
        s = now() - s;
        open_s = s < open_s ? s : open_s;
        for (int k = 0; k <= WARM; k++) {
            double *best = k ? &warm_s : &cold_s;
            if ((s = pass(t, text, size, &tokens)) < 0)
                return -1;
            *best = s < *best ? s : *best;
        }
        if (i + 1 == COLD)
            printf("tokenizer %-7s %7d ids  open %.3f s  cold %6.1f MB/s  warm %6.1f MB/s  (%lld bytes, %lld tokens)\n",
                   tune_tokenizer_pipeline(t), (int)tune_tokenizer_size(t), open_s, (double)size / cold_s / 1e6,
                   (double)size / warm_s / 1e6, (long long)size, tokens);
        tune_tokenizer_free(t);
    }
    return 0;
}

static int own(void)
{
    static const char *const special[] = {"<|endoftext|>"};
    char path[TUNE_PATH_MAX], *text = NULL;
    const char *folder = getenv("TMPDIR");
    size_t size;
    if (tune_path(path, "%s/tune-bench-%ld.json", folder ? folder : "/tmp", (long)getpid()) < 0 ||
        tune_file_read("datasets/stories.jsonl", 1 << 28, &text, &size) < 0)
        return -1;
    int status = tune_tokenizer_train(path, text, size, 32768, special, 1);
    for (char *p = text; (p = memchr(p, '\n', (size_t)(text + size - p))); p++)
        *p = 0;
    if (status == 0)
        status = measure(path, text, size);
    unlink(path);
    free(text);
    return status;
}

int main(int argc, char **argv)
{
    int status = argc < 3 ? own() : 0;
    for (int i = 1; i + 1 < argc && status == 0; i += 2) {
        char *text;
        size_t size;
        status = tune_file_read(argv[i + 1], 1 << 30, &text, &size);
        if (status == 0) {
            status = measure(argv[i], text, size);
            free(text);
        }
    }
    if (status < 0)
        fprintf(stderr, "bench_tokenizer: %s\n", tune_error_message());
    return status < 0;
}
