/* merged.c - a base and an adapter opened together, and their numbers. */
#include "adapters/merged.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/float16.h"
#include "core/nf4.h"
#include "core/try.h"

/* Hold the whole row as NF4: half a byte a number. */
static int quantise(struct tune_merged_model *m, const struct tune_parameter *p)
{
    struct tune_weights_source files = tune_weights_files(m->base);
    int64_t bytes = tune_nf4_bytes(p->count);
    float *room = malloc(sizeof *room * (size_t)(p->count < TUNE_PIECE ? p->count : TUNE_PIECE));
    free(m->nf4_memory);
    m->nf4_of = NULL;
    m->nf4_memory = bytes > 0 ? aligned_alloc(64, (size_t)bytes) : NULL;
    int status =
        m->nf4_memory && room ? tune_weights_nf4(&files, p, room, m->nf4_memory, &m->nf4) : -1;
    if (bytes > 0 && !(m->nf4_memory && room))
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for %s in NF4", p->name);
    free(room);
    m->nf4_of = status == 0 ? p : NULL;
    return status;
}

/* Read the base's numbers and round them to the format in which the adapter's training kept
 * them. */
static int read_base(void *context, const struct tune_parameter *p, int64_t at, int64_t count,
                     float *out)
{
    struct tune_merged_model *m = context;
    if (m->untied && p->role == TUNE_OUTPUT)
        p = &m->table.at[0];
    bool matrix = p->ndim == 2 && m->rounding != TUNE_MERGED_AS_READ;
    if (matrix && m->rounding == TUNE_MERGED_NF4 && tune_parameter_is_linear(p)) {
        TRY(m->nf4_of == p ? 0 : quantise(m, p));
        return tune_nf4_read(&m->nf4, at, count, out);
    }
    struct tune_weights_source files = tune_weights_files(m->base);
    TRY(files.read(files.context, p, at, count, out));
    for (int64_t i = 0; i < count && matrix; i++)
        out[i] = tune_bf16_to_float(tune_float_to_bf16(out[i]));
    return 0;
}

static int read_merged(void *context, const struct tune_parameter *p, int64_t at, int64_t count,
                       float *out)
{
    struct tune_merged_model *m = context;
    struct tune_weights_source base = {read_base, m};
    return m->adapter ? tune_adapter_file_merge(m->adapter, &base, p, at, count, out)
                      : read_base(m, p, at, count, out);
}

struct tune_weights_source tune_merged_base_source(struct tune_merged_model *m)
{
    return (struct tune_weights_source){read_base, m};
}

struct tune_weights_source tune_merged_source(struct tune_merged_model *m)
{
    return (struct tune_weights_source){read_merged, m};
}

/* Replace AS_TRAINED by the rounding that the adapter's file names. */
static int settle_rounding(struct tune_merged_model *m, const char *adapter)
{
    static const char *const known[] = {[TUNE_MERGED_AS_READ] = "float32",
                                        [TUNE_MERGED_BF16] = "bfloat16",
                                        [TUNE_MERGED_NF4] = "nf4"};
    const char *said = tune_adapter_file_base_dtype(m->adapter);
    if (m->rounding != TUNE_MERGED_AS_TRAINED)
        return 0;
    for (int i = TUNE_MERGED_AS_READ; i <= TUNE_MERGED_NF4; i++)
        if (!said || strcmp(said, known[i]) == 0) {
            m->rounding = (enum tune_merged_base)i;
            return 0;
        }
    return tune_error_usage("%s/adapter_model.safetensors says that its base was kept in "
                            "\"%.100s\", which is not known here; say with "
                            "`base_dtype` what to merge onto",
                            adapter, said);
}

/* Settle the merged model. If the adapter has a module of its own in place of a tied one, it has
 * both. If the adapter has embedding and output projection, it has their rows. */
static int settle_model(struct tune_merged_model *m)
{
    enum tune_dtype read = m->table.at[0].read_dtype;
    struct tune_weights *w = m->base;
    const struct tune_lora_options *o = &tune_adapter_file_config(m->adapter)->lora;
    int64_t rows = tune_lora_saved(o, 0) && tune_lora_saved(o, 1)
                       ? tune_adapter_file_vocabulary(m->adapter)
                       : 0;
    tune_adapter_file_tie(m->adapter, m->base_tied);
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
        m->table.at[i].read_dtype =
            t && t->dtype != TUNE_F64 && m->table.at[i].role != TUNE_OUTPUT ? t->dtype : read;
    }
    return 0;
}

static int open_adapter(struct tune_merged_model *m, const char *adapter)
{
    m->adapter = tune_adapter_file_open(adapter);
    TRY(m->adapter ? settle_rounding(m, adapter) : -1);
    TRY(settle_model(m));
    if (tune_adapter_file_check(m->adapter, &m->table, &m->modules) == 0)
        return 0;
    return tune_error_usage("%s", tune_error_message());
}

int tune_merged_open(struct tune_merged_model *m, const char *folder, const char *adapter,
                     enum tune_merged_base rounding)
{
    *m = (struct tune_merged_model){.rounding = adapter ? rounding : TUNE_MERGED_AS_READ};
    TRY(tune_path(m->folder, "%s", folder));
    TRY(tune_model_config_read(&m->config, m->folder));
    TRY(tune_parameters_new(&m->table, &m->config));
    m->base = tune_weights_open(m->folder);
    TRY(m->base ? tune_weights_check(m->base, &m->table, m->config.tied) : -1);
    tune_weights_remark(m->base, &m->config);
    m->base_tied = m->config.tied;
    return adapter ? open_adapter(m, adapter) : 0;
}

void tune_merged_close(struct tune_merged_model *m)
{
    free(m->nf4_memory);
    tune_adapter_file_close(m->adapter);
    tune_weights_close(m->base);
    tune_parameters_free(&m->table);
    *m = (struct tune_merged_model){0};
}
