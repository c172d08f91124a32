/* safetensors_peer.c - our reader and writer for safetensors_peer.py, which has the real ones.
 *
 *     safetensors_peer FILE...          a line each: "accepted N" or "refused <message>"
 *     safetensors_peer --copy FROM TO   read FROM, write its tensors in their order to TO
 *
 * The files of the first form may also come on standard input, one name a line. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "files/safetensors.h"

static void judge(const char *path)
{
    struct tune_safetensors *f = tune_safetensors_open(path);
    if (f)
        printf("accepted %lld\n", (long long)tune_safetensors_count(f));
    else
        printf("refused %s\n", tune_error_message());
    tune_safetensors_close(f);
}

static int copy(const char *from, const char *to)
{
    struct tune_safetensors *f = tune_safetensors_open(from);
    struct tune_safetensors_writer *w = f ? tune_safetensors_writer_new(to) : NULL;
    int bad = w ? 0 : -1;
    for (int64_t i = 0; !bad && i < tune_safetensors_count(f); i++) {
        const struct tune_array *t = tune_safetensors_at(f, i);
        bad = tune_safetensors_writer_declare(w, tune_safetensors_name(f, i), t->dtype, t->ndim, t->shape);
    }
    for (int64_t i = 0; !bad && i < tune_safetensors_count(f); i++) {
        const struct tune_array *t = tune_safetensors_at(f, i);
        bad = tune_safetensors_writer_write(w, t->data, tune_array_bytes(t));
    }
    bad = bad || tune_safetensors_writer_finish(w);
    if (bad)
        fprintf(stderr, "%s\n", tune_error_message());
    tune_safetensors_writer_free(w);
    tune_safetensors_close(f);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    char line[4096];
    if (argc == 4 && strcmp(argv[1], "--copy") == 0)
        return copy(argv[2], argv[3]);
    for (int i = 1; i < argc; i++)
        judge(argv[i]);
    while (argc == 1 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        judge(line);
    }
    return 0;
}
