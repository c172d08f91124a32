/* export_gguf.c - write a model, or an adapter, as a .gguf file for llama.cpp, Ollama or LM Studio.
 *
 *     build/export_gguf --model runs/first/checkpoint-final first-q8_0.gguf --type q8_0
 *     build/export_gguf --model smollm2-135m --adapter runs/lora/checkpoint-final lora.gguf
 *     build/export_gguf --model smollm2-135m --adapter runs/lora/checkpoint-final --merge w.gguf
 *
 * The file has the weights, the tokenizer, the chat template and the end tokens. It works on one
 * piece of one tensor at a time. The file appears under its name when it is complete. --show FILE
 * prints what a file has. Names and types follow llama.cpp. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "export_gguf/export.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/program.h"

static struct {
    struct tune_flags tune;
    const char *out, *adapter, *pre, *modelfile, *name;
    enum export_type type;
    enum tune_merged_base base_dtype;
    bool merge, show;
} my;

static const struct tune_option my_options[] = {
    {"<file>", TUNE_STRING, &my.out, NULL, "", "", "the .gguf file to make"},
    {"model", TUNE_STRING, &my.tune.model, NULL, "", "", "model: folder, known name or Hub id"},
    {"type", TUNE_ENUM, &my.type, "as-read",
     "as-read|f32|f16|bf16|q8_0|q4_0|q5_0|q5_1|q6_k|q4_k|q4_k_m|q5_k_m", "",
     "format of the matrices. Vectors are float32. as-read: each as in the model. q4_k_m: q4_k, "
     "and q6_k for what suffers most; q5_k_m: the same with q5_k. All of fewer bits than q8_0, but "
     "q4_k, give the output projection q6_k, as llama.cpp does"},
    {"adapter", TUNE_STRING, &my.adapter, NULL, "", "",
     "folder with adapter_config.json: the file has the adapter alone, for this base"},
    {"merge", TUNE_BOOL, &my.merge, "false", "", "",
     "write the base with the adapter merged into it"},
    {"base-dtype", TUNE_ENUM, &my.base_dtype, "as-trained", "as-trained|as-read|bfloat16|nf4", "",
     "base weights to merge onto, as in merge_adapter"},
    {"pre", TUNE_STRING, &my.pre, NULL, "", "",
     "llama.cpp's name for how the tokenizer splits words, such as smollm. Default: found by the "
     "tokenizer's results"},
    {"name", TUNE_STRING, &my.name, NULL, "", "",
     "name of the model in the file. Default: that of its folder"},
    {"modelfile", TUNE_STRING, &my.modelfile, NULL, "", "",
     "also write this Modelfile for Ollama, in the folder of the .gguf file"},
    {"show", TUNE_BOOL, &my.show, "false", "", "",
     "print keys and tensors of the file, and write nothing"},
    {0},
};

static const struct tune_property my_properties[] = {{0}};

static int check_space(struct export *e)
{
    char folder[TUNE_PATH_MAX];
    int64_t size = tune_gguf_size(e->out);
    TRY(size);
    TRY(tune_file_parent(folder, my.out));
    int64_t space = tune_file_free_space(folder);
    if (size <= space)
        return 0;
    return tune_error_cannot("%s takes %.1f MB, and %s has %.1f MB left; make room, or take a "
                             "smaller --type",
                             my.out, (double)size / 1e6, folder, (double)space / 1e6);
}

static int export_model(struct export *e)
{
    TRY(export_check(e));
    TRY(export_plan(e));
    TRY(export_vocabulary(e));
    TRY(export_declare(e));
    TRY(check_space(e));
    return export_write(e);
}

/* The last part of the model's name. */
static void name_model(char *name, size_t size)
{
    size_t n = strlen(my.tune.model);
    while (n > 1 && my.tune.model[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && my.tune.model[begin - 1] != '/')
        begin--;
    snprintf(name, size, "%.*s", (int)(n - begin), my.tune.model + begin);
    if (my.name)
        snprintf(name, size, "%s", my.name);
    tune_blank_controls(name);
}

static int open_all(struct export *e)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_model_find(my.tune.model, folder));
    if (my.adapter && !tune_file_is_folder(my.adapter))
        return tune_error_usage(
            "--adapter %s: no such folder; give a folder with adapter_config.json", my.adapter);
    if (tune_merged_open(&e->m, folder, my.adapter, my.base_dtype) < 0)
        return my.adapter && tune_error_kind() == TUNE_ERROR_USAGE
                   ? tune_error_prefix("--adapter: ")
                   : -1;
    e->family = export_family(&e->m.config);
    e->notes = open_memstream(&e->notes_text, &e->notes_size);
    e->out = e->family && e->notes ? tune_gguf_writer_new(my.out) : NULL;
    if (e->family && !e->notes)
        tune_error_no_memory("notes");
    return e->out ? 0 : -1;
}

/* Print what was written, and what is to be known of it, a line each. */
static void tell(struct export *e)
{
    fclose(e->notes);
    printf("%s: %s of %s%s%s\n", my.out, my.adapter && !my.merge ? "the adapter" : "the model",
           my.tune.model, my.adapter ? " and " : "", my.adapter ? my.adapter : "");
    for (const char *line = e->m.config.remarks; *line;
         line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        printf("warning: %.*s\n", (int)strcspn(line, "\n"), line);
    tune_print_plain(stdout, e->notes_text, "\n");
    const char *base = e->m.adapter ? tune_adapter_file_config(e->m.adapter)->base : NULL;
    if (base) {
        fputs("the adapter's config says that it was made on ", stdout);
        tune_print_line_of(stdout, base);
        putchar('\n');
    }
}

/* The Modelfile names the file without its folder. */
static bool lie_together(void)
{
    char one[TUNE_PATH_MAX], two[TUNE_PATH_MAX];
    return tune_file_parent(one, my.out) == 0 && tune_file_parent(two, my.modelfile) == 0 &&
           strcmp(one, two) == 0;
}

static void check_usage(void)
{
    const char *missing = !my.tune.model            ? "--model is missing"
                          : my.merge && !my.adapter ? "--merge needs --adapter"
                                                    : NULL;
    if (!missing && my.modelfile && my.adapter && !my.merge)
        missing = "--modelfile is for a whole model: with --adapter give --merge";
    if (!missing && my.modelfile && !lie_together())
        missing = "--modelfile: it names the .gguf file without its folder; give it a name in the "
                  "same folder";
    if (missing) {
        tune_error_usage("%s", missing);
        tune_program_fail();
    }
    const char *there = tune_file_exists(my.out)                         ? my.out
                        : my.modelfile && tune_file_exists(my.modelfile) ? my.modelfile
                                                                         : NULL;
    if (!there)
        return;
    tune_error_set("%s is there already; nothing is replaced, remove it or give another name",
                   there);
    tune_program_fail();
}

int main(int argc, char **argv)
{
    static struct export e;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Write a model or an adapter as a .gguf file.");
    if (my.show) {
        MUST(export_show(my.out));
        return 0;
    }
    check_usage();
    tune_program_catch_signals(&my.tune);
    name_model(e.name, sizeof e.name);
    e.stop = my.tune.stop_signal;
    e.adapter = my.adapter;
    e.pre = my.pre;
    e.type = my.type;
    if (open_all(&e) < 0 || (my.adapter && !my.merge ? export_adapter(&e) : export_model(&e)) < 0 ||
        tune_gguf_finish(e.out) < 0) {
        tune_gguf_writer_free(e.out);
        tune_program_fail();
    }
    tune_gguf_writer_free(e.out);
    if (my.modelfile)
        MUST(export_modelfile(&e, my.out, my.modelfile));
    tell(&e);
    for (int i = 0; i < e.stop_count; i++)
        free(e.stops[i]);
    free(e.stops);
    free(e.notes_text);
    free(e.tensors);
    tune_merged_close(&e.m);
    tune_flags_free(&my.tune);
    return 0;
}
