/* adapter.c - adapters between the parameter table and a file. */
#include "adapters/adapter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "models/lora.h"
#include "models/weights.h"

/* ---- writing ---- */

static int by_name(const void *a, const void *b)
{
    const struct tune_parameter *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Write a row's values in dtype; finite ones must stay finite. room: 2 * count floats. */
static int write_row(struct tune_model *m, const struct tune_parameter *p, enum tune_dtype dtype, float *room,
                     struct tune_safetensors_writer *w)
{
    float *rounded = room + p->count, *back = dtype == TUNE_F32 ? room : rounded;
    TRY(tune_model_read(m, p, TUNE_WEIGHT, 0, p->count, room));
    if (dtype != TUNE_F32)
        TRY(tune_convert(rounded, dtype, room, TUNE_F32, p->count));
    for (int64_t i = 0; i < p->count && dtype != TUNE_F32; i++) {
        float x;
        TRY(tune_convert(&x, TUNE_F32, (char *)rounded + 2 * i, dtype, 1));
        if (isfinite(room[i]) && !isfinite(x))
            return tune_error_set("tensor \"%s\" holds %g, which does not fit %s; save with "
                                  "`save_dtype` float32", p->name, (double)room[i],
                                  tune_dtype_name(dtype));
    }
    return tune_safetensors_writer_write(w, back, p->count * tune_dtype_bits(dtype) / 8);
}

/* The storage of the base's linear layers, as --base-dtype spells it. */
static const char *base_dtype(const struct tune_parameters *t)
{
    for (int i = 0; i < t->base; i++)
        if (tune_parameter_is_linear(&t->at[i]))
            return t->at[i].storage == TUNE_NF4 ? "nf4" : t->at[i].storage == TUNE_BF16 ? "bfloat16" : "float32";
    return "float32";
}

static int write_rows(struct tune_model *m, const char *path, const struct tune_parameter **row, int count, enum tune_dtype dtype)
{
    char name[sizeof row[0]->name + sizeof TUNE_ADAPTER_PREFIX];
    int64_t largest = 0;
    for (int i = 0; i < count; i++)
        largest = row[i]->count > largest ? row[i]->count : largest;
    float *room = tune_zeroed(2 * (size_t)largest, sizeof *room, "writing %s", path);
    struct tune_safetensors_writer *w = room ? tune_safetensors_writer_new(path) : NULL;
    int status = w ? 0 : -1;
    if (status == 0)
        status = tune_safetensors_writer_metadata(w, TUNE_ADAPTER_BASE_DTYPE, base_dtype(tune_model_parameters(m)));
    for (int i = 0; i < count && status == 0; i++) {
        snprintf(name, sizeof name, TUNE_ADAPTER_PREFIX "%s", row[i]->name);
        status = tune_safetensors_writer_declare(w, name, dtype, row[i]->ndim, row[i]->shape);
    }
    for (int i = 0; i < count && status == 0; i++)
        status = write_row(m, row[i], dtype, room, w);
    if (status == 0)
        status = tune_safetensors_writer_finish(w);
    tune_safetensors_writer_free(w);
    free(room);
    return status;
}

static int no_adapters(void)
{
    return tune_error_set("the model has no adapters (tune_lora_add)");
}

/* Write the names of the modules that "all-linear" stands for in this model: "down_proj,gate_proj,..." */
static void linear_names(const struct tune_parameters *t, char *names, size_t size)
{
    const char *last = "", *next;
    for (*names = 0; ; last = next) { /* in the order of letters */
        next = NULL;
        for (int i = 0; i < t->base; i++) {
            const char *name = tune_parameter_is_linear(&t->at[i]) ? t->at[i].module : NULL;
            if (name && strcmp(name, last) > 0 && (!next || strcmp(name, next) < 0))
                next = name;
        }
        if (!next)
            return;
        tune_append(names, size, "%s%s", *names ? "," : "", next);
    }
}

int tune_adapter_write(struct tune_model *m, const char *folder, const char *base, enum tune_dtype save_dtype)
{
    char path[TUNE_PATH_MAX];
    const struct tune_parameters *t = tune_model_parameters(m);
    const struct tune_lora_options *o = tune_model_lora(m);
    int count = t->count - t->base;
    if (!o || count <= 0)
        return no_adapters();
    TRY(tune_path(path, "%s/adapter_model.safetensors", folder));
    const struct tune_parameter **row = tune_zeroed((size_t)count, sizeof *row, "writing %s", path);
    if (!row)
        return -1;
    for (int i = 0; i < count; i++)
        row[i] = &t->at[t->base + i];
    /* the order of PEFT's writer for tensors of one dtype */
    qsort(row, (size_t)count, sizeof *row, by_name);
    int status = write_rows(m, path, row, count, save_dtype);
    free(row);
    char names[512];
    struct tune_lora_options written = *o;
    linear_names(t, names, sizeof names);
    written.targets = strcmp(o->targets, "all-linear") == 0 ? names : o->targets;
    return status < 0 ? -1 : tune_adapter_config_write(folder, &written, base);
}

/* ---- reading ---- */

/* Check that config and model have the same modules, ranks and scales, and both DoRA or not. */
static int same_options(const struct tune_parameters *t, const char *folder, const struct tune_adapter_file *f,
                        const struct tune_lora_options *have)
{
    const struct tune_lora_options *asked = &tune_adapter_file_config(f)->lora;
    struct tune_lora_options whole = *asked;
    whole.modules_to_save = tune_adapter_file_whole(f);
    if (asked->dora != have->dora)
        return tune_error_set("%s: the adapter is %s, the model's is %s", folder,
                              asked->dora ? "DoRA" : "LoRA", have->dora ? "DoRA" : "LoRA");
    for (int i = 0; tune_lora_saved(&whole, i) || tune_lora_saved(have, i); i++) {
        const char *ask = tune_lora_saved(&whole, i), *is = tune_lora_saved(have, i);
        if (!ask || !is || strcmp(ask, is))
            return tune_error_set("%s: its adapter_config.json and the model train other modules whole (\"modules_to_save\"): "
                                  "%s there, %s here", folder, ask ? ask : "no more", is ? is : "no more");
    }
    for (int i = 0; i < t->base; i++) {
        char module[sizeof t->at->name];
        if (!tune_lora_module(&t->at[i], module))
            continue;
        int ask = tune_lora_rank(asked, module), is = tune_lora_rank(have, module);
        double scale = ask ? tune_lora_scale(asked, module) : 0;
        if (ask != is || (is && fabs(scale - tune_lora_scale(have, module)) > 1e-9 * scale))
            return tune_error_set("%s: its adapter_config.json asks for rank %d and scale %g in "
                                  "%s, the model has rank %d and scale %g; make the model's "
                                  "adapters by that config", folder, ask, scale, module, is,
                                  is ? tune_lora_scale(have, module) : 0);
    }
    return 0;
}

/* Open the folder's file and check it against the model's adapters. NULL with an error. */
static struct tune_adapter_file *open_for(struct tune_model *m, const char *folder)
{
    const struct tune_parameters *t = tune_model_parameters(m);
    if (!tune_model_lora(m)) {
        no_adapters();
        return NULL;
    }
    struct tune_adapter_file *f = tune_adapter_file_open(folder);
    if (f)
        tune_adapter_file_tie(f, tune_model_config(m)->tied);
    if (f && tune_adapter_file_check(f, t, NULL) == 0 &&
        same_options(t, folder, f, tune_model_lora(m)) == 0)
        return f;
    tune_adapter_file_close(f);
    return NULL;
}

/* The file's tensor for an adapter row. */
static const struct tune_array *tensor_of(const struct tune_adapter_file *f, const struct tune_parameter *p)
{
    return tune_adapter_file_find(f, p->name, "");
}

/* Read the numbers of an adapter's row. A copy of the embedding or the output projection has the adapter's, merged. */
static int read_row(struct tune_model *m, struct tune_adapter_file *f, const struct tune_parameter *p, float *out)
{
    struct tune_weights_source base = tune_model_source(m);
    const struct tune_array *x = tensor_of(f, p);
    if (p->role == TUNE_EMBEDDING || p->role == TUNE_OUTPUT)
        return tune_adapter_file_merge(f, &base, p, 0, p->count, out);
    return tune_convert(out, TUNE_F32, x->data, x->dtype, p->count);
}

static int read_rows(struct tune_model *m, struct tune_adapter_file *f, const char *folder)
{
    const struct tune_parameters *t = tune_model_parameters(m);
    int64_t total = 0, at = 0;
    for (int i = t->base; i < t->count; i++)
        total += t->at[i].count;
    float *all = tune_zeroed((size_t)total, sizeof *all, "reading %s", folder); /* read everything before changing anything */
    if (!all)
        return -1;
    int status = 0;
    for (int i = t->base; i < t->count && status == 0; at += t->at[i++].count) {
        status = read_row(m, f, &t->at[i], all + at);
        for (int64_t k = 0; k < t->at[i].count && status == 0; k++)
            if (!isfinite(all[at + k]))
                status =
                    tune_error_set("%s/adapter_model.safetensors: %s holds %g", folder, t->at[i].name, (double)all[at + k]);
    }
    at = 0;
    for (int i = t->base; i < t->count && status == 0; at += t->at[i++].count)
        status = tune_model_write(m, &t->at[i], TUNE_WEIGHT, 0, t->at[i].count, all + at);
    free(all);
    return status;
}

int tune_adapter_read(struct tune_model *m, const char *folder)
{
    struct tune_adapter_file *f = open_for(m, folder);
    int status = f ? read_rows(m, f, folder) : -1;
    tune_adapter_file_close(f);
    return status;
}

/* ---- comparing ---- */

/* Check the base's dtype. Files of PEFT do not state it. */
static int same_base(struct tune_model *m, const struct tune_adapter_file *f, const char *folder)
{
    const char *said = tune_adapter_file_base_dtype(f), *is = base_dtype(tune_model_parameters(m));
    if (!said || strcmp(said, is) == 0)
        return 0;
    return tune_error_set("%s/adapter_model.safetensors, read again, says of its base \"%.100s\", "
                          "not \"%s\"", folder, said, is);
}

int tune_adapter_compare(struct tune_model *m, const char *folder)
{
    const struct tune_parameters *t = tune_model_parameters(m);
    struct tune_adapter_file *f = open_for(m, folder);
    int status = f ? same_base(m, f, folder) : -1;
    for (int i = t->base; i < t->count && status == 0; i++)
        if ((status = tune_model_compare(m, &t->at[i], tensor_of(f, &t->at[i]))) < 0)
            tune_error_prefix("%s/adapter_model.safetensors: ", folder);
    tune_adapter_file_close(f);
    return status;
}
