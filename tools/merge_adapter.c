/* merge_adapter.c - merge an adapter into its base: any program loads the resulting model folder.
 *
 *     build/merge_adapter --model models/SmolLM2-135M --adapter runs/a/checkpoint-final --output merged
 *
 * W + s B A is computed in float32 and rounded once; DoRA scales it to its magnitude. It works on
 * one piece of one tensor at a time, so a model may be larger than memory. Config and tokenizer
 * files are the model's; an adapter with an embedding of its own brings its tokenizer. If the adapter was trained on a rounded base (--base-dtype of
 * finetune_lora), it is merged into the base rounded the same way. The adapter's file names that
 * type. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/file.h"
#include "core/float16.h"
#include "core/nf4.h"
#include "core/print.h"
#include "core/try.h"
#include "flags/find.h"
#include "flags/program.h"
#include "adapters/adapter_file.h"
#include "models/companions.h"
#include "models/weights.h"

static struct {
    struct tune_flags tune;
    const char *adapter, *output, *dtype;
    enum { AS_TRAINED, AS_READ, BFLOAT16, NF4 } base_dtype;
    double shard_size;
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
    {0},
};

static const struct tune_property my_properties[] = {{0}};

/* The base model and the adapter on it. */
struct merging {
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_parameters table;
    bool untied; /* the base's weights are tied, the merged ones are not */
    bool grown;  /* the adapter's modules have more rows of the vocabulary than the base */
    struct tune_weights *base;
    struct tune_adapter_file *adapter;
    struct tune_nf4 nf4; /* a matrix of the base, in its own memory */
    void *nf4_memory;
    const struct tune_parameter *nf4_of; /* NULL: none yet */
    int modules;
    int64_t done, total; /* elements */
    int percent;
};

/* The whole row as NF4: half a byte a number. */
static int quantise(struct merging *m, const struct tune_parameter *p)
{
    struct tune_weights_source files = tune_weights_files(m->base);
    int64_t bytes = tune_nf4_bytes(p->count);
    float *room = malloc(sizeof *room * (size_t)(p->count < TUNE_PIECE ? p->count : TUNE_PIECE));
    free(m->nf4_memory);
    m->nf4_of = NULL;
    m->nf4_memory = bytes > 0 ? aligned_alloc(64, (size_t)bytes) : NULL;
    int status = m->nf4_memory && room ? tune_weights_nf4(&files, p, room, m->nf4_memory, &m->nf4) : -1;
    if (bytes > 0 && !(m->nf4_memory && room))
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for %s in NF4", p->name);
    free(room);
    m->nf4_of = status == 0 ? p : NULL;
    return status;
}

/* Read the base's numbers and round them to the format in which the adapter's training kept
 * them. */
static int read_base(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    struct merging *m = context;
    if (m->untied && p->role == TUNE_OUTPUT)
        p = &m->table.at[0];
    bool matrix = p->ndim == 2 && my.base_dtype != AS_READ;
    if (matrix && my.base_dtype == NF4 && tune_parameter_is_linear(p)) {
        TRY(m->nf4_of == p ? 0 : quantise(m, p));
        return tune_nf4_read(&m->nf4, at, count, out);
    }
    struct tune_weights_source files = tune_weights_files(m->base);
    TRY(files.read(files.context, p, at, count, out));
    for (int64_t i = 0; i < count && matrix; i++)
        out[i] = tune_bf16_to_float(tune_float_to_bf16(out[i]));
    return 0;
}

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
    struct tune_weights_source base = {read_base, m};
    TRY(tune_adapter_file_merge(m->adapter, &base, p, at, count, out));
    m->done += count;
    show_progress(m);
    return 0;
}

/* as-trained means the format that the adapter's file names. */
static int settle_base_dtype(const struct merging *m)
{
    static const char *const known[] = {[AS_READ] = "float32", [BFLOAT16] = "bfloat16",
                                        [NF4] = "nf4"};
    const char *said = tune_adapter_file_base_dtype(m->adapter);
    if (my.base_dtype != AS_TRAINED)
        return 0;
    for (int i = AS_READ; i <= NF4; i++)
        if (!said || strcmp(said, known[i]) == 0) {
            my.base_dtype = i;
            return 0;
        }
    return tune_error_usage("--adapter: %s/adapter_model.safetensors says that its base was kept "
                            "in \"%.100s\", which is not known here; say with --base-dtype what "
                            "to merge onto", my.adapter, said);
}

/* Settle the merged model. If the adapter has a module of its own in place of a tied one, it has
 * both. If the adapter has embedding and output projection, it has their rows. */
static int settle_model(struct merging *m)
{
    enum tune_dtype read = m->table.at[0].read_dtype;
    struct tune_weights *w = m->base;
    const struct tune_lora_options *o = &tune_adapter_file_config(m->adapter)->lora;
    int64_t rows = tune_lora_saved(o, 0) && tune_lora_saved(o, 1) ? tune_adapter_file_vocabulary(m->adapter) : 0;
    tune_adapter_file_tie(m->adapter, m->config.tied);
    m->untied = m->config.tied && tune_adapter_file_whole(m->adapter);
    m->grown = rows > m->config.vocabulary && rows <= INT32_MAX;
    if (!m->untied && !m->grown)
        return 0;
    m->config.tied = m->config.tied && !m->untied;
    m->config.vocabulary = m->grown ? (int)rows : m->config.vocabulary;
    tune_parameters_free(&m->table);
    TRY(tune_parameters_new(&m->table, &m->config));
    for (int i = 0; i < m->table.count; i++) {
        const struct tune_array *t = tune_weights_find(w, m->table.at[i].name);
        m->table.at[i].read_dtype = t && t->dtype != TUNE_F64 && m->table.at[i].role != TUNE_OUTPUT ? t->dtype : read;
    }
    m->total = tune_parameters_total(&m->table);
    return 0;
}

static int open_all(struct merging *m)
{
    TRY(tune_model_find(my.tune.model, m->folder));
    TRY(tune_model_config_read(&m->config, m->folder));
    TRY(tune_parameters_new(&m->table, &m->config));
    m->total = tune_parameters_total(&m->table);
    m->base = tune_weights_open(m->folder);
    TRY(m->base ? tune_weights_check(m->base, &m->table, m->config.tied) : -1);
    tune_weights_remark(m->base, &m->config);
    if (!tune_file_is_folder(my.adapter))
        return tune_error_usage("--adapter %s: no such folder; give a folder with adapter_config.json", my.adapter);
    m->adapter = tune_adapter_file_open(my.adapter);
    TRY(m->adapter ? settle_base_dtype(m) : -1);
    TRY(settle_model(m));
    if (tune_adapter_file_check(m->adapter, &m->table, &m->modules) == 0)
        return 0;
    return tune_error_usage("--adapter: %s", tune_error_message());
}

static int write_all(struct merging *m, const char *folder)
{
    enum tune_dtype dtype = strcmp(my.dtype, "as-read") == 0 ? TUNE_DTYPES : (enum tune_dtype)tune_dtype_from(my.dtype);
    struct tune_weights_source merged = {read_merged, m};
    struct tune_companions *companions = tune_companions_read(m->folder);
    int status = companions ? tune_companions_take_chat(companions, my.adapter) : -1;
    if (status == 0 && tune_adapter_file_vocabulary(m->adapter) > 0)
        status = tune_companions_take_tokenizer(companions, my.adapter);
    if (status == 0 && m->grown)
        status = tune_companions_vocabulary(companions, m->config.vocabulary);
    if (status == 0 && m->untied)
        status = tune_companions_untie(companions);
    if (status == 0)
        status = tune_companions_write(companions, folder, dtype);
    tune_companions_free(companions);
    TRY(status);
    return tune_weights_write(folder, &m->table, dtype, (int64_t)(my.shard_size * 1e9), &merged);
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
    const struct tune_adapter_config *c = tune_adapter_file_config(m->adapter);
    bool as_read = strcmp(my.dtype, "as-read") == 0;
    const char *onto = my.base_dtype == NF4        ? "the dequantised NF4 values of the weights of"
                       : my.base_dtype == BFLOAT16 ? "the weights, rounded to bfloat16, of"
                                                   : "the weights of";
    printf("%s: %s of rank %d on %d modules (%s)\n", folder, c->lora.dora ? "DoRA" : "LoRA", c->lora.r, m->modules, my.adapter);
    for (int i = 0; tune_lora_saved(&c->lora, i); i++)
        printf("%s is the adapter's, whole\n", tune_lora_saved(&c->lora, i));
    for (int i = 0; tune_lora_low_rank(&c->lora, i); i++)
        printf("%s has a low-rank adapter, too\n", tune_lora_low_rank(&c->lora, i));
    if (m->grown)
        printf("the vocabulary has %d rows now: tokens were added\n", m->config.vocabulary);
    if (m->untied)
        printf("embedding and output projection were tied, and are two matrices now\n");
    printf("merged in float32 onto %s %s%s, saved %s%s\n", onto, m->folder,
           my.base_dtype == AS_READ ? " as they are there" : "",
           as_read ? "in the dtype each has there" : "as ", as_read ? "" : my.dtype);
    for (const char *line = m->config.remarks; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        printf("warning: %.*s\n", (int)strcspn(line, "\n"), line);
    tell_text("the adapter's config says that it was made on ", c->base);
    tell_text("its file says that this was kept in ", tune_adapter_file_base_dtype(m->adapter));
    tell_text("warning: ", c->remark);
    tell_text("keys of adapter_config.json that are not known here, and were not looked at: ", c->unknown);
}

int main(int argc, char **argv)
{
    static struct merging m = {.percent = -1};
    char parent[TUNE_PATH_MAX];
    struct tune_folder_writer w = {0};
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
    if (tune_file_exists(folder)) {
        tune_error_set("%s is there already; nothing is replaced, remove it or give another folder", folder);
        tune_program_fail();
    }
    if (open_all(&m) < 0 || tune_file_parent(parent, folder) < 0 || tune_file_make_folder(parent) < 0 ||
        tune_file_begin_folder(&w, folder) < 0 || write_all(&m, w.temporary) < 0 || tune_file_commit_folder(&w) < 0) {
        tune_file_cancel_folder(&w);
        tune_program_fail();
    }
    tell(&m, folder);
    free(m.nf4_memory);
    tune_adapter_file_close(m.adapter);
    tune_weights_close(m.base);
    tune_parameters_free(&m.table);
    free(folder);
    tune_flags_free(&my.tune);
    return 0;
}
