/* gguf_llama_peer.c - rows of float32 from the standard input as blocks on the standard output.
 *
 *     gguf_llama_peer Q4_K COLUMNS <rows >blocks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/gguf_blocks.h"

int main(int argc, char **argv)
{
    int kind = 0;
    int64_t columns = argc > 2 ? atoll(argv[2]) : 0;
    while (argc > 2 && kind < TUNE_GGUF_BLOCKS && strcmp(argv[1], tune_gguf_format((enum tune_gguf_block)kind)->name) != 0)
        kind++;
    int64_t bytes = columns > 0 && kind < TUNE_GGUF_BLOCKS ? tune_gguf_row_bytes((enum tune_gguf_block)kind, columns) : -1;
    if (bytes < 0) {
        fprintf(stderr, "gguf_llama_peer: expected a type and a number of columns\n");
        return 2;
    }
    float *row = malloc(sizeof *row * (size_t)columns);
    unsigned char *out = malloc((size_t)bytes);
    while (row && out && fread(row, sizeof *row, (size_t)columns, stdin) == (size_t)columns)
        if (tune_gguf_rows((enum tune_gguf_block)kind, row, 1, columns, out) < 0 || fwrite(out, 1, (size_t)bytes, stdout) != (size_t)bytes)
            return 1;
    free(row);
    free(out);
    return 0;
}
