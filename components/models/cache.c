/* cache.c - keys and values of the tokens so far, on the device.
 *
 *     kv       [layers] [B * capacity, 2 K D]      keys, then values, of each position
 *     index    positions, first visible keys and rows of kv: [N] each; then [B] each: number of
 *              keys, position of the first query, and the last position of each row */
#include "models/cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"

struct tune_cache {
    struct tune_cached cached; /* first: what the model's layers use */
    struct tune_model *model;
    int B, capacity;
    int rows, length;          /* rows in use; positions filled in the longest */
    int *lengths;              /* [B] positions filled in each */
    bool base;
    int32_t *pads;             /* [B] */
    int32_t *staging, *ids;    /* [index]; [tokens] a piece of the prompt */
    int32_t *tokens;           /* [B,capacity] the tokens of each row */
    tune_address memory, index, hidden, logits;
    int64_t bytes;
    float *host;               /* [B,V]; NULL: the host reads the device's memory */
    struct tune_tensor last;   /* [rows] the last positions, in index */
    struct tune_tensor *output; /* hidden states of the last piece; NULL: none */
};

static int64_t index_count(int B, int64_t tokens)
{
    return 3 * tokens + 3 * (int64_t)B;
}

static int64_t width(const struct tune_model_config *g)
{
    return 2 * (int64_t)g->kv_heads * g->head_dim;
}

static void set_addresses(struct tune_cache *c, const struct tune_model_config *g, enum tune_dtype dtype,
                          int64_t tokens, struct tune_arena *a)
{
    int64_t size = tune_dtype_bits(dtype) / 8;
    c->cached.rope = tune_arena_take(a, tune_rope_count(g, c->capacity), 4);
    c->cached.kv = tune_arena_take(a, (int64_t)g->layers * c->B * c->capacity, width(g) * size);
    c->index = tune_arena_take(a, index_count(c->B, tokens), 4);
    c->hidden = tune_arena_take(a, c->B, g->hidden * size);
    c->logits = tune_arena_take(a, c->B, (int64_t)g->vocabulary * 4);
}

int64_t tune_cache_bytes(const struct tune_model_config *config, enum tune_dtype activations, int B,
                         int capacity, int64_t tokens)
{
    struct tune_cache c = {.B = B, .capacity = capacity};
    struct tune_arena count = {0};
    set_addresses(&c, config, activations, tokens, &count);
    return count.used;
}

static int allocate(struct tune_cache *c)
{
    struct tune_model *m = c->model;
    const struct tune_model_config *g = &m->config;
    int64_t tokens = tune_model_max_tokens(m);
    float *table = tune_zeroed((size_t)tune_rope_count(g, c->capacity), sizeof *table, "a cache");
    c->pads = tune_zeroed((size_t)c->B, sizeof *c->pads, "a cache");
    c->lengths = tune_zeroed((size_t)c->B, sizeof *c->lengths, "a cache");
    c->ids = tune_zeroed((size_t)tokens, sizeof *c->ids, "a cache");
    c->staging = tune_zeroed((size_t)index_count(c->B, tokens), sizeof *c->staging, "a cache");
    c->tokens = tune_zeroed((size_t)c->B * (size_t)c->capacity, sizeof *c->tokens, "a cache");
    c->bytes = tune_cache_bytes(g, m->dtype, c->B, c->capacity, tokens);
    int status = table && c->pads && c->lengths && c->ids && c->tokens && c->staging ? 0 : -1;
    if (status == 0) {
        c->memory = tune_device_alloc(m->dev, c->bytes, "the keys and values of a cache");
        status = c->memory.at ? 0 : -1;
    }
    if (status == 0) {
        set_addresses(c, g, m->dtype, tokens, &(struct tune_arena){c->memory, 0});
        tune_rope_table(g, c->capacity, table);
        status = tune_device_upload(m->dev, c->cached.rope, table,
                                    tune_rope_count(g, c->capacity) * 4);
    }
    free(table);
    TRY(status);
    return tune_model_reserve_keys(m, c->B, c->capacity);
}

struct tune_cache *tune_cache_new(struct tune_model *m, int B, int capacity)
{
    if (!m->memory.at || B < 1 || capacity < 1) {
        tune_error_usage("tune_cache_new: %s", m->memory.at ? "rows and capacity must be at least 1"
                                                            : "the model is not reserved");
        return NULL;
    }
    if (capacity > m->config.max_positions) {
        tune_error_usage("a cache of %d tokens is above the model's context of %d "
                         "(max_position_embeddings)", capacity, m->config.max_positions);
        return NULL;
    }
    if ((int64_t)B * capacity > INT32_MAX) { /* rows of kv have 32-bit numbers */
        tune_error_cannot("a cache of %d rows of %d tokens is more than 2^31 - 1", B, capacity);
        return NULL;
    }
    struct tune_cache *c = tune_zeroed(1, sizeof *c, "a cache");
    if (!c)
        return NULL;
    c->model = m;
    c->B = B;
    c->capacity = capacity;
    c->cached.capacity = capacity;
    c->cached.layer_rows = (int64_t)B * capacity;
    if (allocate(c) == 0)
        return c;
    tune_cache_free(c);
    return NULL;
}

void tune_cache_free(struct tune_cache *c)
{
    if (!c)
        return;
    tune_device_free(c->model->dev, c->memory, c->bytes);
    free(c->pads);
    free(c->lengths);
    free(c->ids);
    free(c->tokens);
    free(c->staging);
    free(c->host);
    free(c);
}

/* Add so many positions to each row; take them away below 0. */
static void add_length(struct tune_cache *c, int count)
{
    c->length = 0;
    for (int b = 0; b < c->rows; b++) {
        c->lengths[b] += count;
        c->length = c->lengths[b] > c->length ? c->lengths[b] : c->length;
    }
}

/* Forget what is behind the first `length` positions. */
static void cut_rows(struct tune_cache *c, int length)
{
    for (int b = 0; b < c->rows; b++)
        c->lengths[b] = length < c->lengths[b] ? length : c->lengths[b];
    add_length(c, 0);
}

int tune_cache_begin(struct tune_cache *c, int rows, const int32_t *pads)
{
    if (rows < 1 || rows > c->B)
        return tune_error_set("%d rows for a cache of %d", rows, c->B);
    for (int b = 0; b < rows && pads; b++)
        if (pads[b] < 0)
            return tune_error_set("row %d: %d positions of padding", b, (int)pads[b]);
    for (int b = 0; b < rows; b++)
        c->pads[b] = pads ? pads[b] : 0;
    c->rows = c->cached.rows = rows;
    cut_rows(c, 0);
    c->output = NULL;
    return 0;
}

/* Put the next n values of the staging buffer on the device's side. */
static struct tune_tensor stage(struct tune_cache *c, int64_t *used, int64_t n)
{
    struct tune_tensor t = tune_tensor_1d(tune_address_plus(c->index, *used * 4), TUNE_I32, n);
    *used += n;
    return t;
}

/* Tell the device where a piece of T tokens of each row belongs. */
static int send_index(struct tune_cache *c, int T)
{
    int64_t N = (int64_t)c->rows * T, used = 0;
    int32_t *positions = c->staging, *starts = positions + N, *to = starts + N, *kv_length = to + N;
    int32_t *q_offset = kv_length + c->rows, *last = q_offset + c->rows;
    for (int b = 0; b < c->rows; b++) {
        int pad = c->pads[b];
        for (int t = 0; t < T; t++) {
            int64_t i = (int64_t)b * T + t;
            int at = c->lengths[b] + t;
            positions[i] = at > pad ? at - pad : 0;
            starts[i] = at < pad ? at : pad; /* padding sees itself */
            to[i] = (int32_t)((int64_t)b * c->capacity + at);
        }
        kv_length[b] = c->lengths[b] + T;
        q_offset[b] = c->lengths[b];
        last[b] = b * T + T - 1;
    }
    c->cached.positions = stage(c, &used, N);
    c->cached.starts = stage(c, &used, N);
    c->cached.to = stage(c, &used, N);
    c->cached.kv_length = stage(c, &used, c->rows);
    c->cached.q_offset = stage(c, &used, c->rows);
    c->last = stage(c, &used, c->rows);
    return tune_device_upload(c->model->dev, c->index, c->staging, used * 4);
}

/* A piece of the next tokens: T of each row, from column `from` of ids [rows,all]. */
static int forward_piece(struct tune_cache *c, const int32_t *ids, int all, int from, int T)
{
    for (int b = 0; b < c->rows; b++)
        memcpy(c->ids + (int64_t)b * T, ids + (int64_t)b * all + from, (size_t)T * sizeof *ids);
    struct tune_batch batch = {.B = c->rows, .T = T, .ids = c->ids};
    TRY(send_index(c, T));
    struct tune_model_pass pass = {.base = c->base, .cache = &c->cached};
    int status = tune_model_run(c->model, &pass, &batch, &c->output);
    if (status != 0)
        return status;
    for (int b = 0; b < c->rows; b++)
        memcpy(c->tokens + (int64_t)b * c->capacity + c->lengths[b], c->ids + (int64_t)b * T, (size_t)T * sizeof *c->ids);
    add_length(c, T);
    return 0;
}

void tune_cache_stop(struct tune_cache *c, const volatile int *signal)
{
    c->cached.stop = signal;
}

/* Tokens of each row in the next piece: what the model was reserved for. If a signal may end it, a
 * layer on the CPU gets at most LAYER_FLOPS, about half a second of two cores, or 32 tokens. */
static int piece_of(const struct tune_cache *c)
{
    const double LAYER_FLOPS = 5e10;
    const struct tune_model_config *g = &c->model->config;
    double piece = (double)(tune_model_max_tokens(c->model) / c->rows);
    void *host;
    if (!c->cached.stop || piece < 1 || tune_device_in_place(c->model->dev, c->logits, &host) < 0 || !host)
        return (int)piece;
    double layer = tune_model_config_flops(g, 2.0 * c->length) / 3 / g->layers;
    double most = LAYER_FLOPS / (layer * c->rows);
    return (int)fmin(piece, fmax(most, 32));
}

/* The next T tokens of each row, from ids [rows,T], in pieces. */
static int forward_pieces(struct tune_cache *c, const int32_t *ids, int T)
{
    for (int at = 0, piece; at < T; at += piece) {
        piece = piece_of(c);
        piece = piece < T - at ? piece : T - at;
        int status = forward_piece(c, ids, T, at, piece);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Choose the rotary table for so many positions (longrope). If it is another one, compute the keys that are there again, as
 * transformers does. */
static int choose_table(struct tune_cache *c, int positions)
{
    int from = c->model->config.long_from, length = c->length;
    bool longer = from > 0 && positions > from;
    if (longer == c->cached.longer || length == 0) {
        c->cached.longer = longer;
        return 0;
    }
    int32_t *all = tune_zeroed((size_t)c->rows * (size_t)length, sizeof *all, "a cache");
    int lengths[c->rows];
    memcpy(lengths, c->lengths, sizeof lengths);
    for (int b = 0; all && b < c->rows; b++)
        memcpy(all + (int64_t)b * length, c->tokens + (int64_t)b * c->capacity, (size_t)lengths[b] * sizeof *all);
    cut_rows(c, 0);
    c->cached.longer = longer;
    int status = all ? forward_pieces(c, all, length) : -1;
    free(all);
    return status == 0 ? tune_cache_trim(c, lengths) : status;
}

int tune_cache_forward(struct tune_cache *c, const int32_t *ids, int T)
{
    int before = c->length;
    if (c->rows < 1 || T < 1)
        return tune_error_set("tune_cache_forward: %s",
                              c->rows < 1 ? "call tune_cache_begin first" : "no tokens");
    if (T > c->capacity - c->length)
        return tune_error_set("%d more tokens behind %d: the cache has room for %d", T, c->length,
                              c->capacity);
    if (piece_of(c) < 1)
        return tune_error_set("a token of each of %d rows: the model is reserved for %lld tokens",
                              c->rows, (long long)tune_model_max_tokens(c->model));
    int status = choose_table(c, c->length + T);
    if (status != 0) {
        cut_rows(c, 0); /* the keys are gone */
        c->output = NULL;
        return status;
    }
    status = forward_pieces(c, ids, T);
    if (status != 0) {
        add_length(c, before - c->length);
        c->output = NULL;
    }
    return status;
}

/* The hidden states of each row's last position, as a matrix [rows,C]. */
static int last_hidden(struct tune_cache *c, struct tune_tensor *hidden)
{
    struct tune_model *m = c->model;
    *hidden = *c->output;
    if (m->T == 1)
        return 0;
    *hidden = tune_tensor_2d(c->hidden, m->dtype, c->rows, m->config.hidden);
    return tune_gather(m->dev, hidden, c->output, &c->last);
}

/* Hidden states [rows,C] become logits, on the host. */
static int project(struct tune_cache *c, const struct tune_tensor *hidden, int rows, float **logits)
{
    struct tune_model *m = c->model;
    const struct tune_model_config *g = &m->config;
    struct tune_tensor w, dw;
    struct tune_tensor out = tune_tensor_2d(c->logits, TUNE_F32, rows, g->vocabulary);
    void *host;
    int unit = tune_model_output_unit(m);
    TRY(tune_unit_take(m, unit));
    tune_model_output_weight(m, &w, &dw);
    m->dev->doing.what = "logits";
    TRY(tune_unit_done(m, unit, tune_gemm(m->dev, &out, hidden, false, &w, true, 1 / g->logits_scaling, 0, m->dtype)));
    TRY(tune_device_in_place(m->dev, c->logits, &host));
    if (host) {
        *logits = host;
        return 0;
    }
    if (!c->host && !(c->host = tune_zeroed((size_t)c->B * (size_t)g->vocabulary, sizeof *c->host,
                                            "logits")))
        return -1;
    *logits = c->host;
    TRY(tune_device_download(m->dev, c->host, c->logits, tune_tensor_bytes(&out)));
    return tune_device_sync(m->dev);
}

int tune_cache_logits(struct tune_cache *c, float **logits)
{
    struct tune_tensor hidden;
    if (!c->output)
        return tune_error_set("tune_cache_logits: call tune_cache_forward first");
    TRY(last_hidden(c, &hidden));
    return project(c, &hidden, c->rows, logits);
}

int tune_cache_logits_of(struct tune_cache *c, const int32_t *at, int count, float **logits)
{
    struct tune_model *m = c->model;
    if (!c->output || count < 1 || count > c->B)
        return tune_error_set("tune_cache_logits_of: %s", c->output ? "no positions, or more than the cache has rows"
                                                                     : "call tune_cache_forward first");
    for (int i = 0; i < count; i++)
        if (at[i] < 0 || at[i] >= c->rows * m->T)
            return tune_error_set("tune_cache_logits_of: position %d of %d", (int)at[i], c->rows * m->T);
    memcpy(c->staging, at, (size_t)count * sizeof *at);
    TRY(tune_device_upload(m->dev, c->index, c->staging, (int64_t)count * 4));
    struct tune_tensor places = tune_tensor_1d(c->index, TUNE_I32, count);
    struct tune_tensor hidden = tune_tensor_2d(c->hidden, m->dtype, count, m->config.hidden);
    TRY(tune_gather(m->dev, &hidden, c->output, &places));
    return project(c, &hidden, count, logits);
}

void tune_cache_base(struct tune_cache *c, bool base)
{
    c->base = base;
}

void tune_cache_cut(struct tune_cache *c, int length)
{
    cut_rows(c, length);
    c->output = NULL;
}

int tune_cache_trim(struct tune_cache *c, const int *lengths)
{
    for (int b = 0; b < c->rows; b++)
        if (lengths[b] < 0 || lengths[b] > c->lengths[b])
            return tune_error_set("tune_cache_trim: %d positions of row %d, which has %d", lengths[b], b, c->lengths[b]);
    memcpy(c->lengths, lengths, (size_t)c->rows * sizeof *lengths);
    add_length(c, 0);
    c->output = NULL;
    return 0;
}

/* Move row `from` to row `to` in every layer. */
static int move_row(struct tune_cache *c, int to, int from)
{
    int64_t row = (int64_t)c->capacity * width(&c->model->config);
    int64_t n = c->lengths[from] * width(&c->model->config), size = tune_dtype_bits(c->model->dtype) / 8;
    for (int i = 0; i < c->model->config.layers; i++) {
        int64_t layer = i * c->cached.layer_rows * width(&c->model->config);
        tune_address a = tune_address_plus(c->cached.kv, (layer + to * row) * size);
        tune_address b = tune_address_plus(c->cached.kv, (layer + from * row) * size);
        struct tune_tensor there = tune_tensor_1d(a, c->model->dtype, n);
        struct tune_tensor here = tune_tensor_1d(b, c->model->dtype, n);
        TRY(tune_copy(c->model->dev, &there, &here));
    }
    memcpy(c->tokens + (int64_t)to * c->capacity, c->tokens + (int64_t)from * c->capacity, (size_t)c->lengths[from] * sizeof *c->tokens);
    c->pads[to] = c->pads[from];
    c->lengths[to] = c->lengths[from];
    return 0;
}

int tune_cache_keep(struct tune_cache *c, const int *which, int count)
{
    for (int i = 0; i < count; i++)
        if (which[i] < (i ? which[i - 1] + 1 : 0) || which[i] >= c->rows)
            return tune_error_set("tune_cache_keep: row %d as number %d of %d rows; expected "
                                  "ascending rows", which[i], i, c->rows);
    if (count < 1)
        return tune_error_set("tune_cache_keep: no row is kept");
    for (int i = 0; i < count; i++)
        if (which[i] != i)
            TRY(move_row(c, i, which[i]));
    c->rows = c->cached.rows = count;
    add_length(c, 0);
    c->output = NULL;
    return 0;
}

int tune_cache_spread(struct tune_cache *c, const int *which, int count)
{
    if (count < 1 || count > c->B)
        return tune_error_set("tune_cache_spread: %d rows for a cache of %d", count, c->B);
    for (int i = 0; i < count; i++)
        if (which[i] < (i ? which[i - 1] : 0) || which[i] > i || which[i] >= c->rows)
            return tune_error_set("tune_cache_spread: row %d as number %d; expected ascending rows", which[i], i);
    for (int i = count - 1; i > 0; i--) /* from the last: a row is read before it is written */
        if (which[i] != i)
            TRY(move_row(c, i, which[i]));
    c->rows = c->cached.rows = count;
    add_length(c, 0);
    c->output = NULL;
    return 0;
}

int tune_cache_share(struct tune_cache *c, const int32_t *ids, int n)
{
    int shared = 0;
    while (c->rows == 1 && c->pads[0] == 0 && shared < c->length && shared < n - 1 &&
           c->tokens[shared] == ids[shared])
        shared++;
    if (shared == 0)
        return tune_cache_begin(c, 1, NULL);
    tune_cache_cut(c, shared);
    return shared;
}

struct tune_model *tune_cache_model(const struct tune_cache *c)
{
    return c->model;
}

int tune_cache_length(const struct tune_cache *c)
{
    return c->length;
}
