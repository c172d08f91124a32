/* model.c - make, load and size a model. transformer.c has forward and backward. */
#include "models/model.h"

#include <stdlib.h>

#include "core/arena.h"
#include "comm/comm.h"
#include "core/array.h"
#include "core/clock.h"
#include "files/file.h"
#include "core/nf4.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"
#include "models/weights.h"

/* Index the table's rows by unit, role and bias. */
static int find_rows(struct tune_model *m)
{
    size_t n = ((size_t)m->config.layers + 2) * TUNE_ROLES * 2;
    m->row = tune_zeroed(n, sizeof *m->row, "a model");
    for (size_t i = 0; m->row && i < n; i++)
        m->row[i] = -1;
    for (int i = 0; m->row && i < m->parameters.base; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        m->row[(p->unit * TUNE_ROLES + (int)p->role) * 2 + p->bias] = i;
    }
    return m->row ? 0 : -1;
}

/* Set each row's NF4 parts. A second copy links a row with the rows fused to it. */
static void set_nf4_addresses(struct tune_model *m)
{
    int base = m->parameters.base;
    for (int i = base - 1; i >= 0 && m->nf4; i--) {
        const struct tune_parameter *p = &m->parameters.at[i];
        m->nf4[i] = (struct tune_nf4_part){tune_model_weight_at(m, p), 0, p->count, NULL};
        m->nf4[base + i] = m->nf4[i];
        m->nf4[base + i].below = i + 1 < base && p[1].fused ? &m->nf4[base + i + 1] : NULL;
    }
}

/* The ranks that a model is made among. */
struct among {
    struct tune_comm *comm; /* NULL: alone */
    enum tune_shard shard;
};

/* Memory of the weights: of all, or of this rank's share. */
static int allocate_weights(struct tune_model *m)
{
    if (tune_model_gathers(m))
        return tune_slots_new(m, TUNE_PART_BASE);
    m->weights = tune_device_alloc(m->dev, m->parameters.weights, "the weights");
    return m->weights.at ? 0 : -1;
}

/* Make a model without values for its weights. It takes over table. storage TUNE_TRAINED: everything is trained. */
static struct tune_model *make(const struct tune_model_config *config, struct tune_device *dev, enum tune_dtype dtype,
                               enum tune_dtype storage, struct tune_parameters *table, struct among among)
{
    if (storage != TUNE_TRAINED && tune_parameters_freeze(table, storage) < 0)
        return NULL;
    struct tune_model *m = tune_zeroed(1, sizeof *m, "a model");
    if (!m)
        return NULL;
    m->parameters = *table;
    *table = (struct tune_parameters){0};
    m->config = *config;
    m->dev = dev;
    m->dtype = dtype;
    tune_model_ranks(m, among.comm);
    m->shard = m->comm && among.shard == TUNE_FSDP ? TUNE_FSDP : TUNE_DDP;
    if (dtype != TUNE_F32 && dtype != TUNE_BF16) {
        tune_error_set("activations in %s: supported are F32 and BF16", tune_dtype_name(dtype));
        goto fail;
    }
    if (find_rows(m) < 0 || tune_unit_find(m) < 0)
        goto fail;
    for (int i = 0; i < m->parameters.base && !m->nf4; i++)
        if (m->parameters.at[i].storage == TUNE_NF4 &&
            !(m->nf4 = tune_zeroed(2 * (size_t)m->parameters.base, sizeof *m->nf4, "a model")))
            goto fail;
    if (allocate_weights(m) < 0 || tune_model_shard(m, among.shard) < 0)
        goto fail;
    set_nf4_addresses(m);
    return m;
fail:
    tune_model_free(m);
    return NULL;
}

/* The weights of norms that change nothing. */
static int read_ones(void *config, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    (void)p, (void)at;
    for (int64_t i = 0; i < count; i++)
        out[i] = 1 - ((const struct tune_model_config *)config)->norm_plus;
    return 0;
}

struct tune_model *tune_model_new_frozen(const struct tune_model_config *config, struct tune_device *dev, enum tune_dtype dtype,
                                         enum tune_dtype storage)
{
    struct tune_parameters table;
    if (tune_parameters_new(&table, config) < 0)
        return NULL;
    struct tune_model *m = make(config, dev, dtype, storage, &table, (struct among){0});
    tune_parameters_free(&table);
    struct tune_weights_source ones = {read_ones, m ? &m->config : NULL};
    for (int i = 0; m && i < m->parameters.count; i++)
        if (tune_parameter_is_norm(&m->parameters.at[i]) && tune_model_fill(m, &m->parameters.at[i], &ones) < 0) {
            tune_model_free(m);
            return NULL;
        }
    return m;
}

struct tune_model *tune_model_new(const struct tune_model_config *config, struct tune_device *dev, enum tune_dtype dtype)
{
    return tune_model_new_frozen(config, dev, dtype, TUNE_TRAINED);
}

/* rows: of the vocabulary in the files. */
static int load_all(struct tune_model *m, const struct tune_weights *w, int rows)
{
    float *mean = tune_zeroed((size_t)m->config.hidden, sizeof *mean, "reading weights");
    struct tune_weights_grown grown = {tune_weights_files(w), rows, m->config.hidden, mean, NULL};
    struct tune_weights_source all = tune_weights_grown(&grown);
    m->buffer = tune_zeroed(TUNE_PIECE, sizeof *m->buffer, "reading weights");
    int status = mean && m->buffer ? 0 : -1;
    for (int i = 0; i < m->parameters.count && status == 0; i++) {
        const struct tune_array *t = tune_weights_find(w, m->parameters.at[i].name);
        status = tune_model_fill(m, &m->parameters.at[i], &all);
        /* otherwise the whole file would stay in memory */
        tune_file_release(t->data, (const char *)t->data + tune_array_bytes(t));
    }
    free(m->buffer);
    free(mean);
    m->buffer = NULL;
    return status;
}

/* The table of the folder's tensors, checked; then with more rows of the vocabulary. */
static int make_table(struct tune_parameters *table, struct tune_model_config *config, struct tune_weights *w, int vocabulary)
{
    TRY(tune_parameters_new(table, config));
    TRY(tune_weights_check(w, table, config->tied));
    tune_weights_remark(w, config);
    if (vocabulary <= config->vocabulary)
        return 0;
    struct tune_parameters read = *table;
    config->vocabulary = vocabulary;
    int status = tune_parameters_new(table, config);
    for (int i = 0; i < table->count && status == 0; i++)
        table->at[i].read_dtype = read.at[i].read_dtype;
    tune_parameters_free(&read);
    return status;
}

struct tune_model *tune_model_load_shared(const char *folder, struct tune_device *dev, enum tune_dtype activations,
                                          enum tune_dtype storage, int vocabulary, struct tune_comm *comm, enum tune_shard shard)
{
    double begin = tune_moment_now().wall_s;
    struct tune_model_config config;
    if (tune_model_config_read(&config, folder) < 0)
        return NULL;
    struct tune_weights *w = tune_weights_open(folder);
    if (!w)
        return NULL;
    struct tune_parameters table = {0}; /* check the table before allocating the weights */
    struct tune_model *m = NULL;
    int rows = config.vocabulary;
    if (make_table(&table, &config, w, vocabulary) == 0)
        m = make(&config, dev, activations, storage, &table, (struct among){comm, shard});
    if (m && load_all(m, w, rows) < 0) {
        tune_model_free(m);
        m = NULL;
    }
    if (m)
        m->load_seconds = tune_moment_now().wall_s - begin;
    tune_parameters_free(&table);
    tune_weights_close(w);
    return m;
}

struct tune_model *tune_model_load_grown(const char *folder, struct tune_device *dev, enum tune_dtype activations,
                                         enum tune_dtype storage, int vocabulary)
{
    return tune_model_load_shared(folder, dev, activations, storage, vocabulary, NULL, TUNE_DDP);
}

struct tune_model *tune_model_load(const char *folder, struct tune_device *dev, enum tune_dtype activations)
{
    return tune_model_load_grown(folder, dev, activations, TUNE_TRAINED, 0);
}

struct tune_model *tune_model_load_frozen(const char *folder, struct tune_device *dev, enum tune_dtype activations,
                                          enum tune_dtype storage)
{
    return tune_model_load_grown(folder, dev, activations, storage, 0);
}

void tune_model_free(struct tune_model *m)
{
    struct tune_error before;
    if (!m)
        return;
    tune_error_save(&before); /* a collective may still use the memory; after an error none does */
    if (m->reducing > 0)
        tune_comm_wait(m->comm, m->reducing);
    if (m->sharing > 0)
        tune_comm_wait(m->comm, m->sharing);
    tune_slots_free(m);
    tune_error_restore(&before);
    tune_device_free(m->dev, m->weights, m->parameters.weights);
    tune_device_free(m->dev, m->adapters, m->parameters.adapters);
    for (int i = 0; i < TUNE_TENSOR_KINDS; i++)
        tune_model_release_state(m, i);
    tune_device_free(m->dev, m->memory, m->memory_bytes);
    tune_lora_free(m->lora, m->dev);
    tune_parameters_free(&m->parameters);
    free(m->nf4);
    free(m->row);
    free(m->units);
    free(m->spans);
    free(m->x);
    free(m->layer);
    free(m->staging);
    free(m);
}

/* Give the state of layer i its addresses, for rows of these widths. A buffer that it lacks takes no memory. */
static void set_layer_addresses(const struct tune_model *m, int i, struct tune_widths w, bool shared, struct tune_arena *a, int64_t N)
{
    struct layer_state *s = &m->layer[i];
    const struct tune_model_config *g = &m->config;
    int64_t e = tune_dtype_bits(m->dtype) / 8;
    s->qkv = tune_arena_take(a, N, w.qkv * e);
    s->raw = tune_arena_take(a, w.q_norms > 0 ? N : 0, w.qkv * e);
    s->att = tune_arena_take(a, N, w.att * e);
    s->mid = tune_arena_take(a, N, (int64_t)g->hidden * 4);
    s->gate_up = tune_arena_take(a, N, w.gate_up * e);
    s->rstd1 = tune_arena_take(a, N, 4);
    s->rstd2 = tune_arena_take(a, N, 4);
    s->rstd_q = tune_arena_take(a, N, w.q_norms * 4);
    s->rstd_k = tune_arena_take(a, N, w.k_norms * 4);
    s->lse = tune_arena_take(a, N, (int64_t)g->heads * 4);
    s->post1 = tune_arena_take(a, N, w.post1 * e);
    s->post2 = tune_arena_take(a, N, w.post2 * e);
    s->rstd_post1 = tune_arena_take(a, w.post1 > 0 ? N : 0, 4);
    s->rstd_post2 = tune_arena_take(a, w.post2 > 0 ? N : 0, 4);
    if (m->lora)
        tune_lora_set_addresses(m->lora, g->layers, i, shared, s->lora, a, N, e);
}

/* Place every buffer. Without training, all layers share one state and two residual buffers. */
static void set_addresses(struct tune_model *m, struct tune_arena *a)
{
    const struct tune_model_config *g = &m->config;
    struct tune_widths widest = tune_model_widest(m);
    int64_t N = (int64_t)m->max_B * m->max_T, e = tune_dtype_bits(m->dtype) / 8;
    bool shared = !m->training || m->checkpointing;
    m->rope = tune_arena_take(a, tune_rope_count(g, m->max_T), 4);
    m->batch = tune_arena_take(a, N, 5 * 4);
    m->own_step = tune_arena_take(a, 1, sizeof(struct tune_scalars));
    for (int i = 0; i <= g->layers; i++)
        m->x[i] = m->training || i < 2 ? tune_arena_take(a, N, (int64_t)g->hidden * 4) : m->x[i - 2];
    for (int i = 0; i < g->layers; i++)
        if (i == 0 || !shared)
            set_layer_addresses(m, i, shared ? widest : tune_model_widths(m, i), shared, a, N);
        else
            m->layer[i] = m->layer[0];
    m->rstd = tune_arena_take(a, N, 4);
    m->hidden = tune_arena_take(a, N, g->hidden * e);
    m->norm = tune_arena_take(a, N, g->hidden * e);
    m->h = tune_arena_take(a, N, widest.h * e);
    m->post = tune_arena_take(a, widest.post1 + widest.post2 > 0 ? N : 0, (int64_t)g->hidden * 4);
    if (m->lora)
        tune_lora_set_work_addresses(m->lora, g->layers, &m->lora_work, a, N, e, m->training);
    if (!m->training)
        return;
    m->dnorm = tune_arena_take(a, N, (int64_t)g->hidden * 4);
    m->dqkv = tune_arena_take(a, N, widest.qkv * e);
    m->datt = tune_arena_take(a, N, widest.att * e);
    m->dh = tune_arena_take(a, N, widest.h * e);
}

/* Set the largest batch, and allocate the tables for its buffers. */
static int set_sizes(struct tune_model *m, int B, int T, int what)
{
    m->max_B = B;
    m->max_T = T;
    m->training = what & TUNE_FOR_TRAINING;
    m->checkpointing = what & TUNE_CHECKPOINTING;
    free(m->x); /* left by a call that found no memory */
    free(m->layer);
    m->x = calloc((size_t)m->config.layers + 1, sizeof *m->x);
    m->layer = calloc((size_t)m->config.layers, sizeof *m->layer);
    if (m->x && m->layer)
        return 0;
    return tune_error_no_memory("a batch of %d rows of %d", B, T);
}

int tune_model_bytes(struct tune_model_bytes *bytes, const struct tune_model_config *config, struct tune_device *dev,
                     enum tune_dtype activations, const struct tune_model_adapted *adapted, int B, int T, int what)
{
    struct tune_model m = {.config = *config, .dev = dev, .dtype = activations};
    struct tune_arena count = {0};
    int status = tune_parameters_new(&m.parameters, config);
    int64_t files = tune_parameters_total(&m.parameters) * tune_dtype_bits(config->dtype) / 8;
    if (status == 0 && adapted)
        status = tune_parameters_freeze(&m.parameters, adapted->storage);
    if (status == 0 && adapted)
        status = tune_lora_plan(&m.lora, &m.parameters, adapted->lora, 0, config->layers);
    *bytes = (struct tune_model_bytes){.files = files, .weights = m.parameters.weights + m.parameters.adapters,
                                       .gradients = m.parameters.gradients * 4};
    for (int i = 0; i < m.parameters.count; i++) {
        const struct tune_parameter *p = &m.parameters.at[i];
        int64_t work = p->trainable && tune_parameter_is_hidden(p) ? tune_muon_bytes(p->shape[0], p->shape[1]) : 0;
        bytes->muon = work > bytes->muon ? work : bytes->muon;
    }
    bytes->weights += m.lora ? m.lora->squares_count * 4 : 0;
    if (status == 0 && (status = set_sizes(&m, B, T, what)) == 0) {
        struct tune_max_sizes sizes = tune_model_max_sizes(&m);
        set_addresses(&m, &count);
        bytes->activations = count.used;
        bytes->working = tune_device_reserve_bytes(dev, &sizes, &bytes->library);
        bytes->max_sizes = sizes;
    }
    tune_lora_free(m.lora, dev);
    tune_parameters_free(&m.parameters);
    free(m.x);
    free(m.layer);
    return status;
}

int tune_model_reserve(struct tune_model *m, int B, int T, int what)
{
    if (B < 1 || T < 1 || m->memory.at)
        return tune_error_usage("tune_model_reserve: %s", m->memory.at ? "called twice for one model"
                                                                             : "batch and length must be at least 1");
    if (T > m->config.max_positions)
        return tune_error_set_kind(
            TUNE_ERROR_USAGE, "length %d is above the model's context of %d (max_position_embeddings); lower `max_length`",
            T, m->config.max_positions);
    if ((int64_t)B * T > INT32_MAX) { /* rows of a batch are counted in 32 bits */
        return tune_error_cannot("%d rows of %d positions are more than a batch can hold; lower `batch_size`", B, T);
    }
    TRY(set_sizes(m, B, T, what));
    float *table = malloc(sizeof *table * (size_t)tune_rope_count(&m->config, T));
    free(m->staging); /* left by a call that found no memory */
    m->staging = malloc(5 * (size_t)B * (size_t)T * sizeof *m->staging);
    int status = table && m->staging ? 0 : -1;
    if (status < 0)
        tune_error_no_memory("a batch of %d rows of %d", B, T);
    struct tune_arena count = {0};
    if (status == 0) {
        set_addresses(m, &count);
        m->memory = tune_device_alloc(m->dev, count.used, "the activations");
        m->memory_bytes = count.used;
        status = m->memory.at ? 0 : -1;
    }
    if (status == 0) {
        set_addresses(m, &(struct tune_arena){m->memory, 0});
        tune_rope_table(&m->config, T, table);
        status = tune_device_upload(m->dev, m->rope, table, tune_rope_count(&m->config, T) * 4);
    }
    free(table);
    if (status < 0)
        return -1;
    struct tune_max_sizes sizes = tune_model_max_sizes(m);
    return tune_device_reserve(m->dev, &sizes);
}

int tune_model_reserve_keys(struct tune_model *m, int B, int keys)
{
    struct tune_max_sizes sizes = tune_model_max_sizes(m);
    sizes.B = B > sizes.B ? B : sizes.B;
    sizes.T = keys > sizes.T ? keys : sizes.T;
    sizes.training = false; /* what backward needs is reserved already */
    return tune_device_reserve(m->dev, &sizes);
}

const struct tune_model_config *tune_model_config(const struct tune_model *m)
{
    return &m->config;
}

double tune_model_flops(const struct tune_model *m, double T)
{
    double flops = tune_model_config_flops(&m->config, T), matrices = tune_model_config_flops(&m->config, 0) / 6, adapters = 0;
    for (int i = m->parameters.base; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        /* a trained copy of the output replaces the base's 4 by 6; an embedding is no product */
        double times = p->role == TUNE_OUTPUT ? 2 : p->role == TUNE_EMBEDDING || p->ndim != 2 ? 0 : 6;
        adapters += times * (double)p->count;
    }
    return m->lora ? flops - 2 * matrices + adapters : flops;
}

struct tune_device *tune_model_device(const struct tune_model *m)
{
    return m->dev;
}

int64_t tune_model_vocabulary(const struct tune_model *m)
{
    return m->config.vocabulary;
}

enum tune_dtype tune_model_dtype(const struct tune_model *m)
{
    return m->dtype;
}

int64_t tune_model_max_tokens(const struct tune_model *m)
{
    return (int64_t)m->max_B * m->max_T;
}

int tune_model_max_length(const struct tune_model *m)
{
    return m->max_T;
}

struct tune_parameters *tune_model_parameters(struct tune_model *m)
{
    return &m->parameters;
}

struct tune_tensor tune_model_tensor(struct tune_model *m, const struct tune_parameter *p, int kind)
{
    bool weight = kind == TUNE_WEIGHT, there = weight && tune_unit_taken(m, p->unit);
    if (there && p->storage == TUNE_NF4)
        return tune_nf4_matrix(&m->nf4[p - m->parameters.at], p->shape[0], p->shape[1]);
    enum tune_dtype dtype = weight ? p->storage : TUNE_F32;
    tune_address data = {0};
    if (there)
        data = tune_model_weight_at(m, p);
    else if (!weight && !m->sharded[kind] && tune_model_has(m, p, kind))
        data = tune_address_plus(m->state[kind], p->gradient * 4);
    return p->ndim == 2 ? tune_tensor_2d(data, dtype, p->shape[0], p->shape[1]) : tune_tensor_1d(data, dtype, p->count);
}

double tune_model_load_seconds(const struct tune_model *m)
{
    return m->load_seconds;
}

void tune_model_output_weight(struct tune_model *m, struct tune_tensor *w, struct tune_tensor *dw)
{
    const struct tune_parameter *p = tune_model_output(m);
    *w = tune_model_tensor(m, p, TUNE_WEIGHT);
    *dw = tune_tensor_2d(tune_model_gradient_at(m, p), TUNE_F32, m->config.vocabulary, m->config.hidden);
}

int tune_model_output_unit(const struct tune_model *m)
{
    return tune_model_output(m)->unit;
}

int tune_model_gradients(struct tune_model *m)
{
    if (m->state[TUNE_GRADIENT].at)
        return 0;
    for (int i = 0; i < m->parameters.base; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        if (p->trainable && p->storage != TUNE_F32)
            return tune_error_set("%s is stored in %s; only F32 parameters can be trained", p->name,
                                  tune_dtype_name(p->storage));
        if (p->fused && p->trainable != p[-1].trainable)
            return tune_error_set("%s is %s and %s is not; they are one matrix: freeze both or none", p->name,
                                  p->trainable ? "trainable" : "frozen", p[-1].name);
    }
    for (int i = 0; m->lora && m->lora->options.dora && i < m->config.layers * TUNE_LINEARS; i++)
        for (int k = 0; k < m->lora->group[i].count; k++)
            if (m->parameters.at[m->lora->group[i].target[k].base].trainable)
                return tune_error_set("%s has a DoRA adapter, which is made for a frozen matrix",
                                      m->parameters.at[m->lora->group[i].target[k].base].name);
    tune_parameters_set_offsets(&m->parameters);
    if (m->parameters.gradients == 0)
        return tune_error_set("no parameter is trainable");
    TRY(tune_spans_find(m));
    TRY(tune_model_gathers(m) ? tune_slots_new_gradients(m) : 0);
    return tune_model_allocate_state(m, TUNE_GRADIENT, "the gradients");
}

int tune_model_zero_grad(struct tune_model *m, struct tune_record *record)
{
    TRY(tune_model_gradients(m));
    struct tune_tensor gradients = tune_model_state(m, TUNE_GRADIENT);
    tune_device_does(m->dev, TUNE_DATA, -1, "gradients");
    TRY(tune_model_gathers(m) ? tune_gradients_collect(m) : 0); /* of a step that was not finished */
    TRY(tune_zero(m->dev, &gradients));
    tune_device_does(m->dev, TUNE_DATA, -1, "");
    m->steps++;
    m->step_at = m->own_step;
    if (record) {
        TRY(tune_record_begin(record));
        m->step_at = tune_record_step(record);
    } else {
        TRY(m->own_step.at ? tune_begin_step(m->dev, m->own_step) : 0);
    }
    m->apart = m->comm;
    if (m->comm)
        tune_comm_step(m->comm, m->past_steps + m->steps);
    /* passes count over all ranks: the first one is that of our first micro-batch */
    return m->comm && m->step_at.at ? tune_begin_pass(m->dev, m->step_at, tune_comm_rank(m->comm) + 1 - tune_comm_size(m->comm)) : 0;
}

void tune_model_set_step(struct tune_model *m, int64_t step)
{
    m->past_steps = step - m->steps;
}
