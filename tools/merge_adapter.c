/* merge_adapter.c - merge an adapter into its base: any program loads the resulting model folder.
 *
 *     build/merge_adapter --model models/SmolLM2-135M --adapter runs/a/checkpoint-final --output merged
 *
 * W + s B A is computed in float32 and rounded once; DoRA scales it to its magnitude. It works on
 * one piece of one tensor at a time, so a model may be larger than memory. Config and tokenizer
 * files are the model's; an adapter with an embedding of its own brings its tokenizer. If the adapter was trained on a rounded base (--base-dtype of
 * finetune_lora), it is merged into the base rounded the same way. The adapter's file names that
 * type. --check computes each weight of the folder again and compares it (merge_adapter/check.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/file.h"
#include "core/print.h"
#include "core/try.h"
#include "flags/find.h"
#include "flags/program.h"
#include "adapters/merged.h"
#include "merge_adapter/check.h"
#include "tokenizers/auxiliary_files.h"
#include "models/weights.h"

static struct {
    struct tune_flags tune;
    const char *adapter, *output, *dtype;
    enum tune_merged_base base_dtype;
    double shard_size;
    bool check;
} my;

static const struct tune_option my_options[] = {
    {"model", TUNE_STRING, &my.tune.model, NULL, "", "",
     "base model: folder, known name or Hub id"},
    {"adapter", TUNE_STRING, &my.adapter, NULL, "", "",
     "folder with adapter_config.json and adapter_model.safetensors"},
    {"output", TUNE_STRING, &my.output, NULL, "", "", "the folder to make"},
    {"dtype", TUNE_CHOICE, &my.dtype, "as-read", "as-read|float32|bfloat16|float16", "",
     "format of the merged weights; as-read: each as in the base"},
    {"base-dtype", TUNE_ENUM, &my.base_dtype, "as-trained", "as-trained|as-read|bfloat16|nf4", "",
     "base weights to merge onto. as-read: as they are in the folder. bfloat16: matrices rounded "
     "to it. nf4: linear layers as NF4, other matrices as bfloat16. as-trained: the one that the "
     "adapter's file names, else as-read"},
    {"shard-size", TUNE_DOUBLE, &my.shard_size, "5", "[0.000001,1000000]", "GB",
     "largest weight file; a larger tensor has a file of its own"},
    {"check", TUNE_BOOL, &my.check, "false", "", "",
     "read the folder again and compare each weight with base and adapter. A folder that is there "
     "already is only checked"},
    {0},
};

static const struct tune_property my_properties[] = {{0}};

/* The base model with the adapter, and how far the merge is. */
struct merging {
    struct tune_merged_model of;
    int64_t done, total; /* elements */
    int percent;
};

static void show_progress(struct merging *m)
{
    int now = (int)(100 * m->done / m->total);
    if (!isatty(2) || now == m->percent)
        return;
    m->percent = now;
    fprintf(stderr, "\r%3d %% of %.1fM weights%s", now, (double)m->total / 1e6, m->done == m->total ? "\n" : "");
}

static int read_merged(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    struct merging *m = context;
    struct tune_weights_source merged = tune_merged_source(&m->of);
    TRY(merged.read(merged.context, p, at, count, out));
    m->done += count;
    show_progress(m);
    return 0;
}

static int open_all(struct merging *m)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_model_find(my.tune.model, folder));
    if (!tune_file_is_folder(my.adapter))
        return tune_error_usage("--adapter %s: no such folder; give a folder with adapter_config.json", my.adapter);
    if (tune_merged_open(&m->of, folder, my.adapter, my.base_dtype) < 0)
        return tune_error_kind() == TUNE_ERROR_USAGE ? tune_error_prefix("--adapter: ") : -1;
    m->total = tune_parameters_total(&m->of.table);
    return 0;
}

static int write_all(struct merging *m, const char *folder)
{
    enum tune_dtype dtype = strcmp(my.dtype, "as-read") == 0 ? TUNE_AS_READ : (enum tune_dtype)tune_dtype_from(my.dtype);
    struct tune_weights_source merged = {read_merged, m};
    struct tune_auxiliary *auxiliary = tune_auxiliary_read(m->of.folder);
    int status = auxiliary ? tune_auxiliary_take_chat(auxiliary, my.adapter) : -1;
    if (status == 0 && tune_adapter_file_vocabulary(m->of.adapter) > 0)
        status = tune_auxiliary_take_tokenizer(auxiliary, my.adapter);
    if (status == 0 && m->of.grown)
        status = tune_auxiliary_vocabulary(auxiliary, m->of.config.vocabulary);
    if (status == 0 && (m->of.untied || tune_weights_own_head(m->of.folder)))
        status = tune_auxiliary_untie(auxiliary);
    if (status == 0)
        status = tune_auxiliary_write(auxiliary, folder, dtype);
    tune_auxiliary_free(auxiliary);
    TRY(status);
    return tune_weights_write(folder, &m->of.table, dtype, (int64_t)(my.shard_size * 1e9), &merged);
}

/* Print one text member of a file, if there is one. */
static void tell_text(const char *what, const char *text)
{
    if (!text)
        return;
    fputs(what, stdout);
    tune_print_line_of(stdout, text);
    putchar('\n');
}

/* Print the inputs and the result. */
static void tell(const struct merging *m, const char *folder)
{
    const struct tune_adapter_config *c = tune_adapter_file_config(m->of.adapter);
    bool as_read = strcmp(my.dtype, "as-read") == 0;
    const char *onto = m->of.rounding == TUNE_MERGED_NF4    ? "the dequantised NF4 values of the weights of"
                       : m->of.rounding == TUNE_MERGED_BF16 ? "the weights, rounded to bfloat16, of"
                                                   : "the weights of";
    printf("%s: %s of rank %d on %d modules (%s)\n", folder, c->lora.dora ? "DoRA" : "LoRA", c->lora.r, m->of.modules, my.adapter);
    for (int i = 0; tune_lora_saved(&c->lora, i); i++)
        printf("%s is the adapter's, whole\n", tune_lora_saved(&c->lora, i));
    for (int i = 0; tune_lora_low_rank(&c->lora, i); i++)
        printf("%s has a low-rank adapter, too\n", tune_lora_low_rank(&c->lora, i));
    if (m->of.grown)
        printf("the vocabulary has %d rows now: tokens were added\n", m->of.config.vocabulary);
    if (m->of.untied)
        printf("embedding and output projection were tied, and are two matrices now\n");
    printf("merged in float32 onto %s %s%s, saved %s%s\n", onto, m->of.folder,
           m->of.rounding == TUNE_MERGED_AS_READ ? " as they are there" : "",
           as_read ? "in the dtype each has there" : "as ", as_read ? "" : my.dtype);
    for (const char *line = m->of.config.remarks; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        printf("warning: %.*s\n", (int)strcspn(line, "\n"), line);
    tell_text("the adapter's config says that it was made on ", c->base);
    tell_text("its file says that this was kept in ", tune_adapter_file_base_dtype(m->of.adapter));
    tell_text("warning: ", c->remark);
    tell_text("keys of adapter_config.json that are not known here, and were not looked at: ", c->unknown);
}

/* Check the merged weights in folder. */
static int check(struct merging *m, const char *folder, const char *name)
{
    struct merge_check c = {&m->of.table, m->of.adapter, m->of.base_tied, tune_merged_base_source(&m->of), name};
    return my.check ? merge_check(&c, folder) : 0;
}

static int make(struct merging *m, const char *folder)
{
    char parent[TUNE_PATH_MAX];
    struct tune_folder_writer w = {0};
    if (tune_file_parent(parent, folder) == 0 && tune_file_make_folder(parent) == 0 && tune_file_begin_folder(&w, folder) == 0 &&
        write_all(m, w.temporary) == 0 && check(m, w.temporary, folder) == 0 && tune_file_commit_folder(&w) == 0) {
        tell(m, folder);
        return 0;
    }
    tune_file_cancel_folder(&w);
    return -1;
}

int main(int argc, char **argv)
{
    static struct merging m = {.percent = -1};
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "Merge a PEFT adapter into its model.");
    if (!my.tune.model || !my.adapter || !my.output) {
        tune_error_usage("--%s is missing",
                         !my.tune.model ? "model" : !my.adapter ? "adapter" : "output");
        tune_program_fail();
    }
    size_t n = strlen(my.output);
    while (n > 1 && my.output[n - 1] == '/')
        n--;
    char *folder = strndup(my.output, n);
    bool there = tune_file_exists(folder);
    if (there && !my.check) {
        tune_error_set("%s is there already; nothing is replaced, remove it or give another folder; --check compares it with base "
                       "and adapter", folder);
        tune_program_fail();
    }
    if (open_all(&m) < 0 || (there ? check(&m, folder, folder) : make(&m, folder)) < 0)
        tune_program_fail();
    tune_merged_close(&m.of);
    free(folder);
    tune_flags_free(&my.tune);
    return 0;
}
