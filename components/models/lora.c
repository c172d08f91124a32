/* lora.c - add adapters to a model: their rows, buffers and initial values. */
#include "models/lora.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "files/file.h"
#include "core/array.h"
#include "core/random.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"
#include "models/lora_parts.h"
#include "models/weights.h"

enum { TEXTS = sizeof ((struct tune_lora *)0)->text / sizeof *((struct tune_lora *)0)->text };

void tune_lora_free(struct tune_lora *l, struct tune_device *dev)
{
    if (!l)
        return;
    tune_device_free(dev, l->squares, l->squares_count * 4);
    for (int i = 0; i < TEXTS; i++)
        free(l->text[i]);
    free(l->group);
    free(l);
}

/* Copy the options with their strings. */
static struct tune_lora *make(const struct tune_lora_options *o, uint64_t seed, int layers)
{
    struct tune_lora *l = calloc(1, sizeof *l);
    bool good = l && (l->group = calloc((size_t)layers * TUNE_LINEARS, sizeof *l->group));
    if (good) {
        l->options = *o;
        l->seed = seed;
        const char **to[TEXTS] = {&l->options.targets, &l->options.rank_pattern, &l->options.alpha_pattern, &l->options.layers,
                                  &l->options.modules_to_save};
        for (int i = 0; i < TEXTS && good; i++)
            if (*to[i])
                good = (*to[i] = l->text[i] = strdup(*to[i])) != NULL;
    }
    if (good)
        return l;
    tune_error_no_memory("adapters");
    tune_lora_free(l, NULL);
    return NULL;
}

/* ---- the plan: which linear layers have which adapters ---- */

/* Add row i of the base to its linear layer, with an adapter if the options say so. */
static void join(struct tune_lora *l, const struct tune_parameters *t, int i)
{
    char module[sizeof t->at->name];
    const struct tune_parameter *p = &t->at[i];
    if (!tune_lora_module(p, module))
        return;
    struct lora_group *g = &l->group[(p->unit - 1) * TUNE_LINEARS + (int)p->linear];
    int r = tune_lora_rank(&l->options, module);
    if (r > 0) {
        g->target[g->count++] = (struct lora_target){.base = i, .magnitude = -1, .at = g->out, .out = p->shape[0], .first = g->rank,
                                                     .squares = l->squares_count, .r = r,
                                                     .scale = (float)tune_lora_scale(&l->options, module)};
        l->squares_count += l->options.dora ? p->shape[0] : 0;
        l->widest_r = r > l->widest_r ? r : l->widest_r;
    }
    g->in = p->shape[1];
    g->out += p->shape[0];
    g->rank += r;
}

/* Append a row to the table. Returns its index, or -1. */
static int append(struct tune_parameters *t, int base, enum tune_role role, bool fused, int64_t rows, int64_t columns)
{
    const char *tail = role == TUNE_LORA_A ? "lora_A.weight" : role == TUNE_LORA_B ? "lora_B.weight" : "lora_magnitude_vector";
    char module[sizeof t->at->name], name[128];
    tune_lora_module(&t->at[base], module);
    snprintf(name, sizeof name, "%s.%s", module, tail);
    return tune_parameters_append(t, name, role, t->at[base].unit, fused, rows, columns) ? t->count - 1 : -1;
}

/* Append a group's rows. The A matrices are adjacent, so that one product computes all of h. */
static int append_group(struct tune_parameters *t, struct lora_group *g, bool dora)
{
    for (int i = 0; i < g->count; i++)
        TRY(g->target[i].a = append(t, g->target[i].base, TUNE_LORA_A, i > 0, g->target[i].r, g->in));
    for (int i = 0; i < g->count; i++)
        TRY(g->target[i].b = append(t, g->target[i].base, TUNE_LORA_B, false, g->target[i].out, g->target[i].r));
    for (int i = 0; i < g->count && dora; i++)
        TRY(g->target[i].magnitude = append(t, g->target[i].base, TUNE_LORA_MAGNITUDE, false, g->target[i].out, 0));
    return 0;
}

/* Append the trained copies of one unit: the embedding's before the layers, the output's after them. */
static int append_saved(struct tune_lora *l, struct tune_parameters *t, int unit)
{
    const char *module;
    char name[sizeof t->at->name];
    for (int i = 0; (module = tune_lora_saved(&l->options, i)); i++) {
        bool output = strcmp(module, "lm_head") == 0;
        if (output != (unit > 0))
            continue;
        snprintf(name, sizeof name, "%s.weight", module);
        *(output ? &l->output : &l->embedding) = t->count;
        if (!tune_parameters_append(t, name, output ? TUNE_OUTPUT : TUNE_EMBEDDING, unit, false, t->at[0].shape[0], t->at[0].shape[1]))
            return -1;
    }
    return 0;
}

/* ---- initial values ---- */

static int draw(void *seed, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    double bound = 1 / sqrt((double)p->shape[1]);
    uint64_t stream = tune_hash64(p->name, strlen(p->name), 0);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(bound * (2 * tune_random_uniform(*(uint64_t *)seed, stream, (uint64_t)(at + i)) - 1));
    return 0;
}

/* Store the squared row norms of W, and set the magnitude to the norms. */
static int measure(struct tune_model *m, const struct lora_target *t)
{
    const struct tune_parameter *base = &m->parameters.at[t->base];
    TRY(tune_unit_take(m, base->unit));
    struct tune_tensor w = tune_model_tensor(m, base, TUNE_WEIGHT);
    struct tune_tensor squares = tune_tensor_1d(tune_address_plus(m->lora->squares, t->squares * 4), TUNE_F32, t->out);
    float *lengths = tune_zeroed((size_t)t->out, sizeof *lengths, "adapters");
    int status = tune_unit_done(m, base->unit, lengths ? tune_row_squares(m->dev, &squares, &w) : -1);
    if (status == 0)
        status = tune_to_host(m->dev, &squares, lengths);
    for (int64_t i = 0; i < t->out && status == 0; i++)
        lengths[i] = sqrtf(lengths[i]);
    if (status == 0)
        status = tune_model_write(m, &m->parameters.at[t->magnitude], TUNE_WEIGHT, 0, t->out, lengths);
    free(lengths);
    return status;
}

struct original {
    struct tune_model *m;
    const struct tune_parameter *p;
};

static int read_original(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    const struct original *o = context;
    (void)p;
    return tune_model_read(o->m, o->p, TUNE_WEIGHT, at, count, out);
}

/* Set a trained copy to what the base has. from: the base's matrix. */
static int copy(struct tune_model *m, int row, const struct tune_parameter *from)
{
    struct original original = {m, from};
    struct tune_weights_source source = {read_original, &original};
    return row ? tune_model_fill(m, &m->parameters.at[row], &source) : 0;
}

static int fill(struct tune_model *m)
{
    struct tune_lora *l = m->lora;
    TRY(copy(m, l->embedding, tune_model_base_embedding(m)));
    TRY(copy(m, l->output, tune_model_base_output(m)));
    struct tune_weights_source drawn = {draw, &l->seed};
    for (int i = 0; i < m->config.layers * TUNE_LINEARS; i++)
        for (int k = 0; k < l->group[i].count; k++) {
            TRY(tune_model_fill(m, &m->parameters.at[l->group[i].target[k].a], &drawn));
            if (l->options.dora)
                TRY(measure(m, &l->group[i].target[k]));
        }
    return 0;
}

/* ---- buffers ---- */

/* The largest value of one member of struct lora_group, over all layers. */
#define WIDEST(l, layers, linear, member) widest(l, layers, linear, offsetof(struct lora_group, member))
static int64_t widest(const struct tune_lora *l, int layers, enum tune_layer_linear linear, size_t member)
{
    int64_t most = 0;
    for (int i = 0; i < layers; i++) {
        const struct lora_group *g = &l->group[i * TUNE_LINEARS + linear];
        int64_t wide = *(const int64_t *)(const void *)((const char *)g + member);
        most = g->count > 0 && wide > most ? wide : most;
    }
    return most;
}

void tune_lora_set_addresses(const struct tune_lora *l, int layers, int layer, bool shared, struct lora_state *states, struct tune_arena *a,
                             int64_t N, int64_t bytes)
{
    for (int k = 0; k < TUNE_LINEARS; k++) {
        const struct lora_group *g = &l->group[layer * TUNE_LINEARS + k];
        int64_t rank = shared ? WIDEST(l, layers, k, rank) : g->rank;
        states[k] = (struct lora_state){0};
        if (rank == 0)
            continue;
        states[k].h = tune_arena_take(a, N, rank * bytes);
        states[k].u = l->options.dora ? tune_arena_take(a, N, g->out * bytes) : (tune_address){0};
        states[k].g = l->options.dora ? tune_arena_take(a, 2 * g->out, 4) : (tune_address){0};
    }
}

void tune_lora_set_work_addresses(const struct tune_lora *l, int layers, struct lora_work *work, struct tune_arena *a, int64_t N,
                                  int64_t bytes, bool training)
{
    int64_t in = 0, out = 0, rank = 0;
    for (int k = 0; k < TUNE_LINEARS; k++) {
        int64_t wide[] = {WIDEST(l, layers, k, in), WIDEST(l, layers, k, out), WIDEST(l, layers, k, rank)};
        in = wide[0] > in ? wide[0] : in;
        out = wide[1] > out ? wide[1] : out;
        rank = wide[2] > rank ? wide[2] : rank;
    }
    *work = (struct lora_work){0};
    if (l->options.dora) {
        work->p = tune_arena_take(a, out, l->widest_r * 4);
        work->aa = tune_arena_take(a, l->widest_r, l->widest_r * 4);
    }
    if (!training)
        return;
    work->d = l->options.dropout > 0 ? tune_arena_take(a, N, in * bytes) : (tune_address){0};
    work->dh = tune_arena_take(a, N, rank * bytes);
    work->du = l->options.dora ? tune_arena_take(a, N, out * bytes) : (tune_address){0};
}

/* ---- public functions ---- */

int tune_lora_plan(struct tune_lora **lora, struct tune_parameters *t, const struct tune_lora_options *o, uint64_t seed,
                   int layers)
{
    TRY(tune_lora_check_model(t, o, layers));
    struct tune_lora *l = *lora = make(o, seed, layers);
    if (!l)
        return -1;
    for (int i = 0; i < t->base; i++) {
        t->at[i].trainable = false;
        join(l, t, i);
    }
    TRY(append_saved(l, t, 0));
    for (int i = 0; i < layers * TUNE_LINEARS; i++)
        TRY(append_group(t, &l->group[i], o->dora));
    TRY(append_saved(l, t, layers + 1));
    tune_parameters_set_offsets(t);
    return 0;
}

int tune_lora_add(struct tune_model *m, const struct tune_lora_options *options, uint64_t seed)
{
    if (m->lora || m->memory.at || m->state[TUNE_GRADIENT].at)
        return tune_error_set("tune_lora_add: %s", m->lora
                                                       ? "the model has adapters already"
                                                       : "call it before tune_model_reserve and before there are gradients");
    int status = tune_lora_plan(&m->lora, &m->parameters, options, seed, m->config.layers);
    TRY(status);
    TRY(tune_unit_find(m));
    if (tune_model_gathers(m))
        TRY(tune_slots_new(m, TUNE_PART_ADAPTERS));
    else
        m->adapters = tune_device_alloc(m->dev, m->parameters.adapters, "the adapters");
    if (options->dora)
        m->lora->squares = tune_device_alloc(m->dev, m->lora->squares_count * 4, "the lengths of rows");
    return (m->adapters.at || tune_model_gathers(m)) && (m->lora->squares.at || !options->dora) ? fill(m) : -1;
}

const struct tune_lora_options *tune_model_lora(const struct tune_model *m)
{
    return m->lora ? &m->lora->options : NULL;
}
