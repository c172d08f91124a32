/* nf4_peer.c - our NF4 for nf4_peer.py, which has the real one.
 *
 *     nf4_peer COUNT PIECE < float32 numbers > codes, magnitudes' codes, their scales, offset, values
 *
 * The numbers are handed over PIECE at a time. What is refused is said on standard error, exit 1. */
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/nf4.h"

static int quantise(struct tune_nf4 *q, void *memory, const float *x, int64_t n, int64_t piece)
{
    struct tune_nf4_writer w;
    if (tune_nf4_begin(&w, "a tensor", memory, n) < 0)
        return -1;
    for (int64_t at = 0; at < n; at += piece)
        if (tune_nf4_write(&w, x + at, piece < n - at ? piece : n - at) < 0)
            return -1;
    return tune_nf4_finish(&w, q);
}

int main(int argc, char **argv)
{
    int64_t n = argc == 3 ? atoll(argv[1]) : 0, piece = argc == 3 ? atoll(argv[2]) : 0, blocks = (n + 63) / 64;
    struct tune_nf4 q;
    if (n <= 0 || piece <= 0 || n > 1 << 28)
        return 2;
    float *x = malloc((size_t)n * sizeof *x);
    void *memory = aligned_alloc(64, (size_t)tune_nf4_bytes(n));
    if (!x || !memory || fread(x, sizeof *x, (size_t)n, stdin) != (size_t)n)
        return 2;
    if (quantise(&q, memory, x, n, piece) < 0) {
        fprintf(stderr, "%s\n", tune_error_message());
        return 1;
    }
    tune_nf4_read(&q, 0, n, x);
    fwrite(q.codes, 1, (size_t)(n + 1) / 2, stdout);
    fwrite(q.absmax, 1, (size_t)blocks, stdout);
    fwrite(q.absmax2, 4, (size_t)(blocks + 255) / 256, stdout);
    fwrite(&q.offset, 4, 1, stdout);
    fwrite(x, 4, (size_t)n, stdout);
    free(memory);
    free(x);
    return 0;
}
