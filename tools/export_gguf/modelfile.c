/* modelfile.c - Ollama's Modelfile: the file, and the texts that end an answer. The template is in
 * the file. */
#include <string.h>

#include "core/try.h"
#include "export.h"

/* Write a text between quotes, as Ollama reads it. */
static void quote(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text, to);
    }
    fputs("\"\n", to);
}

int export_modelfile(const struct export *e, const char *gguf, const char *path)
{
    struct tune_file_writer w;
    const char *name = strrchr(gguf, '/');
    TRY(tune_file_begin(&w, path));
    fprintf(w.file, "FROM ./%s\n", name ? name + 1 : gguf);
    for (int i = 0; i < e->stop_count; i++) {
        fputs("PARAMETER stop ", w.file);
        quote(w.file, e->stops[i]);
    }
    if (tune_file_commit(&w) == 0)
        return 0;
    tune_file_cancel(&w);
    return -1;
}
