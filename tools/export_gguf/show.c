/* show.c - print what a .gguf file says: its keys, then its tensors. */
#include <inttypes.h>
#include <string.h>

#include "core/print.h"
#include "export.h"

enum { MOST_BYTES = 60, MOST_ELEMENTS = 6 };

static void print_text(struct tune_text text)
{
    char shown[MOST_BYTES + 1];
    size_t n = text.size < MOST_BYTES ? text.size : MOST_BYTES;
    memcpy(shown, text.data, n);
    shown[n] = 0;
    tune_print_line_of(stdout, shown);
    if (text.size > n)
        printf("... (%zu bytes)", text.size);
}

static void print_key(const struct tune_gguf_key *k)
{
    print_text(k->name);
    fputs(" = ", stdout);
    for (uint64_t i = 0; i < k->count && i < MOST_ELEMENTS; i++) {
        fputs(i ? ", " : "", stdout);
        if (k->type == TUNE_GGUF_STRING)
            print_text(tune_gguf_string(k, i));
        else
            printf("%.9g", tune_gguf_number(k, i));
    }
    if (k->count > MOST_ELEMENTS)
        printf(", ... (%" PRIu64 ")", k->count);
    putchar('\n');
}

int export_show(const char *path)
{
    struct tune_gguf *g = tune_gguf_open(path);
    if (!g)
        return -1;
    for (int64_t i = 0; i < tune_gguf_keys(g); i++)
        print_key(tune_gguf_key(g, i));
    for (int64_t i = 0; i < tune_gguf_tensors(g); i++) {
        const struct tune_gguf_tensor *t = tune_gguf_tensor(g, i);
        print_text(t->name);
        printf(t->block < 0 ? " type %" PRIu32 " [" : " ", t->id);
        if (t->block >= 0)
            printf("%s [", tune_gguf_format((enum tune_gguf_block)t->block)->name);
        for (int d = 0; d < t->ndim; d++)
            printf("%s%" PRId64, d ? "," : "", t->shape[d]);
        printf("] at %" PRId64 "\n", t->offset);
    }
    tune_gguf_close(g);
    return 0;
}
