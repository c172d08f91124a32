/* gguf.c - .gguf files: the bytes are a file as it stands. */
#include "files/gguf.h"
#include "fuzz.h"

static volatile unsigned seen; /* so that the bytes are read */

static unsigned ask_key(const struct tune_gguf_key *k, size_t file_size)
{
    unsigned sum = 0;
    HOLDS(k->name.size > 0 && k->name.size <= file_size);
    HOLDS(k->array || k->count == 1);
    for (uint64_t i = 0; i < k->count && i < 64; i++) { /* walking to a string takes as many steps as its place */
        struct tune_text text = tune_gguf_string(k, i);
        for (size_t n = 0; text.data && n < text.size; n++)
            sum += (unsigned char)text.data[n];
        sum += tune_gguf_number(k, i) > 0;
    }
    HOLDS(!tune_gguf_string(k, k->count).data);
    return sum;
}

static void ask(const struct tune_gguf *g, size_t file_size)
{
    unsigned sum = 0;
    for (int64_t i = 0; i < tune_gguf_keys(g); i++)
        sum += ask_key(tune_gguf_key(g, i), file_size);
    for (int64_t i = 0; i < tune_gguf_tensors(g); i++) {
        const struct tune_gguf_tensor *t = tune_gguf_tensor(g, i);
        HOLDS(t->ndim >= 1 && t->ndim <= TUNE_GGUF_DIMS && t->bytes >= 0 && t->offset >= 0);
        HOLDS((uint64_t)t->offset + (uint64_t)t->bytes <= file_size || t->bytes == 0);
        for (int64_t k = 0; k < t->bytes; k++) /* every byte can be read */
            sum += ((const unsigned char *)t->data)[k];
    }
    seen = sum;
    HOLDS(!tune_gguf_find_tensor(g, "") && !tune_gguf_find_key(g, ""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file;
    if (!file.path[0])
        file = fuzz_file();
    fuzz_set(&file, data, size);
    struct tune_gguf *g = tune_gguf_open(file.path);
    if (g)
        ask(g, size);
    else
        fuzz_refused();
    tune_gguf_close(g);
    return 0;
}
