/* adapter.c - the adapter alone: A and B of each module. llama.cpp computes W + alpha / rank B A.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "export.h"

/* A half of a module's adapter: a row of the base, and the ending of its tensor. */
struct half {
    const struct tune_parameter *p;
    const struct tune_array *array;
    char name[TUNE_GGUF_NAME];
    double times; /* its numbers are multiplied by it */
};

/* Refuse what llama.cpp cannot apply. The command to type instead merges it. */
static int refuse(const struct export *e, const char *what)
{
    return tune_error_usage("%s: llama.cpp applies no %s; merge the adapter into the file: add "
                            "--merge to the command",
                            e->adapter, what);
}

static int check(const struct export *e)
{
    const struct tune_lora_options *o = &tune_adapter_file_config(e->m.adapter)->lora;
    if (o->dora)
        return refuse(e, "DoRA");
    if (e->m.grown)
        return refuse(e, "added tokens");
    if (tune_lora_saved(o, 0))
        return refuse(e, "modules_to_save (a whole embedding or output projection)");
    return tune_lora_low_rank(o, 0) ? refuse(e, "adapter of the embedding or the output projection")
                                    : 0;
}

/* The alpha of the file. rsLoRA scales by alpha / sqrt(rank). */
static double file_alpha(const struct tune_lora_options *o)
{
    return o->rslora ? o->alpha * sqrt((double)o->r) : o->alpha;
}

static int list_halves(struct export *e, struct half **halves, int *count)
{
    static const char *const ends[] = {".lora_A.weight", ".lora_B.weight"}, *const names[] = {
                                                                                "lora_a", "lora_b"};
    const struct tune_lora_options *o = &tune_adapter_file_config(e->m.adapter)->lora;
    int scaled = 0;
    *count = 0;
    *halves = tune_zeroed((size_t)e->m.table.base * 2 + 1, sizeof **halves, "the adapter");
    for (int i = 0; *halves && i < e->m.table.base; i++) {
        const struct tune_parameter *p = &e->m.table.at[i];
        char module[sizeof p->name], name[TUNE_GGUF_NAME];
        int rank = tune_lora_module(p, module) ? tune_lora_rank(o, module) : 0;
        double times = rank > 0 ? tune_lora_scale(o, module) / (file_alpha(o) / rank) : 1;
        for (int k = 0; k < 2 && rank > 0; k++) {
            struct half *h = &(*halves)[(*count)++];
            TRY(export_name(p, name));
            if (snprintf(h->name, sizeof h->name, "%s.%s", name, names[k]) >= (int)sizeof h->name)
                return tune_error_set("the name of \"%s\" in GGUF is too long", p->name);
            h->p = p;
            h->array = tune_adapter_file_find(e->m.adapter, module, ends[k]);
            h->times = k && fabs(times - 1) > 1e-9 ? times : 1;
        }
        scaled += rank > 0 && fabs(times - 1) > 1e-9;
    }
    if (scaled)
        fprintf(e->notes,
                "%d modules have a scale of their own, and a file has one alpha: their B is "
                "multiplied by what is missing\n",
                scaled);
    return *halves ? 0 : -1;
}

static enum tune_gguf_block block_of(const struct export *e, const struct half *h)
{
    static const enum tune_gguf_block blocks[] = {[EXPORT_F32] = TUNE_GGUF_F32,
                                                  [EXPORT_F16] = TUNE_GGUF_F16,
                                                  [EXPORT_BF16] = TUNE_GGUF_BF16,
                                                  [EXPORT_Q8_0] = TUNE_GGUF_Q8_0};
    if (e->type == EXPORT_AS_READ)
        return h->array->dtype == TUNE_BF16  ? TUNE_GGUF_BF16
               : h->array->dtype == TUNE_F16 ? TUNE_GGUF_F16
                                             : TUNE_GGUF_F32;
    return tune_gguf_row_bytes(blocks[e->type], h->array->shape[1]) < 0 ? TUNE_GGUF_F32
                                                                        : blocks[e->type];
}

static int write_half(struct export *e, const struct half *h)
{
    int64_t rows = h->array->shape[0], columns = h->array->shape[1], n = rows * columns,
            dim = e->m.config.head_dim;
    float *x = tune_zeroed((size_t)n, sizeof *x, "the adapter"),
          *ordered = tune_zeroed((size_t)n, sizeof *x, "the adapter");
    void *room = tune_zeroed((size_t)n, sizeof *x, "the adapter");
    bool is_b = h->name[strlen(h->name) - 1] == 'b';
    int status =
        x && ordered && room ? tune_convert(x, TUNE_F32, h->array->data, h->array->dtype, n) : -1;
    for (int64_t i = 0; i < n && status == 0; i++)
        x[i] = (float)((double)x[i] * h->times);
    if (status == 0 && is_b && export_is_ordered(e, h->p))
        export_order(x, rows / dim, dim, columns, ordered);
    else if (status == 0)
        memcpy(ordered, x, sizeof *x * (size_t)n);
    if (status == 0)
        status = export_blocks(e, h->name, block_of(e, h), ordered, rows, columns, room);
    free(room);
    free(ordered);
    free(x);
    return status;
}

static int write_all(struct export *e, const struct half *halves, int count)
{
    const struct tune_lora_options *o = &tune_adapter_file_config(e->m.adapter)->lora;
    TRY(export_general(e, "adapter", export_file_type(e)));
    TRY(tune_gguf_put_text(e->out, "adapter.type", "lora"));
    TRY(tune_gguf_put_float(e->out, "adapter.lora.alpha", file_alpha(o)));
    for (int i = 0; i < count; i++)
        TRY(tune_gguf_declare(e->out, halves[i].name, block_of(e, &halves[i]), 2,
                              halves[i].array->shape));
    for (int i = 0; i < count; i++)
        TRY(write_half(e, &halves[i]));
    return 0;
}

int export_adapter(struct export *e)
{
    struct half *halves = NULL;
    int count = 0, status = check(e);
    if (status == 0 && e->type > EXPORT_Q8_0)
        status = tune_error_usage("--type: an adapter alone is written as f32, f16, bf16 or q8_0");
    if (status == 0)
        status = list_halves(e, &halves, &count);
    if (status == 0)
        status = write_all(e, halves, count);
    free(halves);
    return status;
}
