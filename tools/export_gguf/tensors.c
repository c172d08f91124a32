/* tensors.c - which tensors a file has, their types, and their data, a piece of one at a time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/float16.h"
#include "core/print.h"
#include "core/try.h"
#include "export.h"

/* ---- types ---- */

static const enum tune_gguf_block blocks[] = {
    [EXPORT_AS_READ] = TUNE_GGUF_F32, [EXPORT_F32] = TUNE_GGUF_F32,
    [EXPORT_F16] = TUNE_GGUF_F16,     [EXPORT_BF16] = TUNE_GGUF_BF16,
    [EXPORT_Q8_0] = TUNE_GGUF_Q8_0,   [EXPORT_Q4_0] = TUNE_GGUF_Q4_0,
    [EXPORT_Q5_0] = TUNE_GGUF_Q5_0,   [EXPORT_Q5_1] = TUNE_GGUF_Q5_1,
    [EXPORT_Q6_K] = TUNE_GGUF_Q6_K,   [EXPORT_Q4_K] = TUNE_GGUF_Q4_K,
    [EXPORT_Q4_K_M] = TUNE_GGUF_Q4_K, [EXPORT_Q5_K_M] = TUNE_GGUF_Q5_K};

static enum tune_gguf_block of_dtype(enum tune_dtype dtype)
{
    return dtype == TUNE_BF16 ? TUNE_GGUF_BF16 : dtype == TUNE_F16 ? TUNE_GGUF_F16 : TUNE_GGUF_F32;
}

/* general.file_type: the type that most tensors have, by llama.cpp's numbers. */
int export_file_type(const struct export *e)
{
    static const int numbers[] = {[EXPORT_F32] = 0,   [EXPORT_F16] = 1,   [EXPORT_BF16] = 32,
                                  [EXPORT_Q8_0] = 7,  [EXPORT_Q4_0] = 2,  [EXPORT_Q5_0] = 8,
                                  [EXPORT_Q5_1] = 9,  [EXPORT_Q6_K] = 18, [EXPORT_Q4_K] = 14,
                                  [EXPORT_Q4_K_M] = 15, [EXPORT_Q5_K_M] = 17};
    enum tune_gguf_block read = of_dtype(e->m.table.at[0].read_dtype);
    return e->type != EXPORT_AS_READ ? numbers[e->type]
           : read == TUNE_GGUF_BF16  ? 32
           : read == TUNE_GGUF_F16   ? 1
                                     : 0;
}

/* true if layer i of n gets more bits in a mixture: the first and the last eighth, and each third
 * between them. */
static bool more_bits(int i, int n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/* true for the models that llama.cpp calls 70B: some heads share a small attn_v. */
static bool is_70b(const struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    return c->layers == 80 && (!strcmp(e->family->arch, "qwen2") ||
                               (!strcmp(e->family->arch, "llama") && c->heads != c->kv_heads));
}

/* The type that llama.cpp's quantiser chooses for a matrix. projects: it is the output projection.
 */
static enum tune_gguf_block choose(const struct export *e, const struct tune_parameter *p,
                                   bool projects)
{
    enum tune_gguf_block block = blocks[e->type];
    bool sensitive =
        p->role == TUNE_VALUE || p->role == TUNE_QUERY_KEY_VALUE || p->role == TUNE_DOWN;
    if (e->type == EXPORT_AS_READ)
        return of_dtype(p->read_dtype);
    if (block <= TUNE_GGUF_Q8_0 || e->type == EXPORT_Q4_K)
        return block;
    if (projects)
        return p->shape[1] % tune_gguf_format(block)->numbers ? TUNE_GGUF_Q8_0 : TUNE_GGUF_Q6_K;
    bool mixture = e->type == EXPORT_Q4_K_M || e->type == EXPORT_Q5_K_M;
    if (mixture && sensitive && more_bits(p->unit - 1, e->m.config.layers))
        return TUNE_GGUF_Q6_K;
    return e->type == EXPORT_Q4_K_M && p->role == TUNE_VALUE && is_70b(e) ? TUNE_GGUF_Q5_K : block;
}

/* The type in its place if its blocks do not divide a row. */
static enum tune_gguf_block fall_back(enum tune_gguf_block block, int64_t columns)
{
    if (tune_gguf_row_bytes(block, columns) < 0)
        block = block == TUNE_GGUF_Q4_K   ? TUNE_GGUF_Q5_0
                : block == TUNE_GGUF_Q5_K ? TUNE_GGUF_Q5_1
                : block == TUNE_GGUF_Q6_K ? TUNE_GGUF_Q8_0
                                          : block;
    return tune_gguf_row_bytes(block, columns) < 0 ? TUNE_GGUF_F16 : block;
}

/* ---- the list ---- */

static struct export_tensor *add(struct export *e)
{
    return &e->tensors[e->count++];
}

static int add_row(struct export *e, const struct tune_parameter *p, bool projects)
{
    struct export_tensor *t = add(e);
    t->p = p;
    TRY(export_name(p, t->name));
    if (projects)
        snprintf(t->name, sizeof t->name, "output.weight");
    bool tied = p->role == TUNE_EMBEDDING && e->m.config.tied && !(e->family->can & EXPORT_OUTPUT);
    t->asked =
        p->ndim == 1 ? TUNE_GGUF_F32 : choose(e, p, projects || tied || p->role == TUNE_OUTPUT);
    t->block = p->ndim == 1 ? TUNE_GGUF_F32 : fall_back(t->asked, p->shape[1]);
    return 0;
}

/* Add a vector of divisors of the rotary frequencies. */
static void add_divisors(struct export *e, const char *name, float *values, int64_t count)
{
    struct export_tensor *t = add(e);
    snprintf(t->name, sizeof t->name, "%s.weight", name);
    t->values = values;
    t->count = count;
    t->block = t->asked = TUNE_GGUF_F32;
}

/* The divisor of pair i that Llama 3's scaling means: 1, the factor, or a blend. */
static float llama3_divisor(const struct tune_rotary *r, int i)
{
    double frequency = pow(r->theta, -2.0 * i / r->dims), wave = 2 * acos(-1) / frequency;
    if (wave < r->original / r->high)
        return 1;
    if (wave > r->original / r->low)
        return (float)r->factor;
    double s = (r->original / wave - r->low) / (r->high - r->low);
    return (float)(1 / ((1 - s) / r->factor + s));
}

static void add_rotary(struct export *e)
{
    const struct tune_rotary *r = e->m.config.rotary;
    int half = r[0].dims / 2;
    if (r[0].kind == TUNE_ROPE_LLAMA3) {
        for (int i = 0; i < half; i++)
            e->freqs[0][i] = llama3_divisor(&r[0], i);
        add_divisors(e, "rope_freqs", e->freqs[0], half);
    }
    if (r[0].kind != TUNE_ROPE_LONG)
        return;
    memcpy(e->freqs[1], r[1].divisor, sizeof e->freqs[1]);
    memcpy(e->freqs[2], r[0].divisor, sizeof e->freqs[2]);
    add_divisors(e, "rope_factors_long", e->freqs[1], half);
    add_divisors(e, "rope_factors_short", e->freqs[2], half);
}

/* One line on types, and one on those that stand in for others. */
static void note_types(const struct export *e)
{
    char text[512] = "", instead[512] = "";
    int stands_in = 0;
    for (int b = 0; b < TUNE_GGUF_BLOCKS; b++) {
        int count = 0;
        for (int i = 0; i < e->count; i++)
            count += (int)e->tensors[i].block == b;
        if (count)
            tune_append_item(text, sizeof text, "%d %s", count,
                             tune_gguf_format((enum tune_gguf_block)b)->name);
        for (int a = 0; a < TUNE_GGUF_BLOCKS; a++) {
            count = 0;
            for (int i = 0; i < e->count; i++)
                count += (int)e->tensors[i].block == b && (int)e->tensors[i].asked == a && a != b;
            if (count)
                tune_append_item(instead, sizeof instead, "%s in place of %s (%d)",
                                 tune_gguf_format((enum tune_gguf_block)b)->name,
                                 tune_gguf_format((enum tune_gguf_block)a)->name, count);
            stands_in += count;
        }
    }
    fprintf(e->notes, "tensors: %s%s\n", text,
            e->type == EXPORT_Q4_K_M || e->type == EXPORT_Q5_K_M
                ? "; more bits for attn_v and ffn_down of the first and last eighth of the "
                  "layers and each third between, as llama.cpp chooses"
                : "");
    if (stands_in)
        fprintf(e->notes, "blocks do not divide the rows of %d tensors: %s, as in llama.cpp\n",
                stands_in, instead);
}

int export_plan(struct export *e)
{
    const struct tune_parameters *table = &e->m.table;
    e->tensors = tune_zeroed((size_t)table->base + 4, sizeof *e->tensors, "the list of tensors");
    if (!e->tensors)
        return -1;
    add_rotary(e);
    for (int i = 0; i < table->base; i++)
        TRY(add_row(e, &table->at[i], false));
    if (e->m.config.tied && e->family->can & EXPORT_OUTPUT)
        TRY(add_row(e, &table->at[0], true));
    note_types(e);
    return 0;
}

int export_declare(struct export *e)
{
    for (int i = 0; i < e->count; i++) {
        const struct export_tensor *t = &e->tensors[i];
        TRY(t->p ? tune_gguf_declare(e->out, t->name, t->block, t->p->ndim, t->p->shape)
                 : tune_gguf_declare(e->out, t->name, t->block, 1, &t->count));
    }
    return 0;
}

/* ---- data ---- */

void export_order(const float *x, int64_t heads, int64_t dim, int64_t columns, float *to)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < dim; i++) {
            int64_t from = h * dim + i % 2 * (dim / 2) + i / 2;
            memcpy(to + (h * dim + i) * columns, x + from * columns, sizeof *x * (size_t)columns);
        }
}

bool export_is_ordered(const struct export *e, const struct tune_parameter *p)
{
    return e->family->can & EXPORT_PAIRS && (p->role == TUNE_QUERY || p->role == TUNE_KEY);
}

int export_blocks(struct export *e, const char *name, enum tune_gguf_block block, const float *x,
                  int64_t rows, int64_t columns, void *room)
{
    bool over = tune_gguf_rows(block, x, rows, columns, room) < 0;
    for (int64_t i = 0; i < rows * columns && block == TUNE_GGUF_F16 && !over; i++)
        over = isfinite(x[i]) && fabsf(x[i]) >= 65520;
    if (over)
        return tune_error_set("tensor %s has a number that no %s holds: it is infinite, not a "
                              "number, or too large; export as bf16 or f32",
                              name, tune_gguf_format(block)->name);
    return tune_gguf_write(e->out, room, rows * tune_gguf_row_bytes(block, columns));
}

/* Room for a piece of a tensor: its numbers, the same in another order, and its blocks. */
struct piece {
    float *x, *ordered;
    void *blocks;
};

static int write_row(struct export *e, const struct export_tensor *t, struct piece *room)
{
    const struct tune_parameter *p = t->p;
    struct tune_weights_source source = tune_merged_source(&e->m);
    int64_t columns = p->ndim == 2 ? p->shape[1] : 1, all = p->shape[0], dim = e->m.config.head_dim;
    int64_t step = TUNE_PIECE / columns > 0 ? TUNE_PIECE / columns : 1;
    if (export_is_ordered(e, p))
        step = step > dim ? step / dim * dim : dim;
    float plus = tune_parameter_is_norm(p) ? e->m.config.norm_plus : 0;
    for (int64_t row = 0; row < all; row += step) {
        int64_t rows = all - row < step ? all - row : step, n = rows * columns;
        const float *x = room->x;
        if (e->stop && *e->stop)
            return tune_error_set("stopped by a signal; no file was written");
        TRY(source.read(source.context, p, row * columns, n, room->x));
        for (int64_t i = 0; i < n && plus != 0; i++)
            room->x[i] += plus;
        if (export_is_ordered(e, p)) {
            export_order(room->x, rows / dim, dim, columns, room->ordered);
            x = room->ordered;
        }
        TRY(p->ndim == 2 ? export_blocks(e, t->name, t->block, x, rows, columns, room->blocks)
                         : export_blocks(e, t->name, t->block, x, 1, n, room->blocks));
    }
    return 0;
}

/* Drop a tensor's pages from memory: the file is mapped, and is read once. */
static void release(const struct export *e, const struct tune_parameter *p)
{
    const struct tune_array *t = tune_weights_find(e->m.base, p->name);
    if (t)
        tune_file_release(t->data, (const char *)t->data + tune_array_bytes(t));
}

/* The most numbers of a piece. */
static int64_t piece_size(const struct export *e)
{
    int64_t most = TUNE_PIECE;
    for (int i = 0; i < e->count; i++) {
        const struct tune_parameter *p = e->tensors[i].p;
        int64_t columns = p && p->ndim == 2 ? p->shape[1] : 1,
                rows = p && export_is_ordered(e, p) ? e->m.config.head_dim : 1;
        most = rows * columns > most ? rows * columns : most;
    }
    return most;
}

int export_write(struct export *e)
{
    int64_t n = piece_size(e);
    int percent = -1, now, status = 0;
    struct piece room = {tune_zeroed((size_t)n, sizeof(float), "a tensor"),
                         tune_zeroed((size_t)n, sizeof(float), "a tensor"),
                         tune_zeroed((size_t)n, sizeof(float), "a tensor")};
    status = room.x && room.ordered && room.blocks ? 0 : -1;
    for (int i = 0; i < e->count && status == 0; i++) {
        const struct export_tensor *t = &e->tensors[i];
        status = t->p ? write_row(e, t, &room)
                      : export_blocks(e, t->name, t->block, t->values, 1, t->count, room.blocks);
        if (t->p)
            release(e, t->p);
        now = 100 * (i + 1) / e->count;
        if (status == 0 && now != percent && isatty(2))
            fprintf(stderr, "\r%3d %% of %d tensors%s", percent = now, e->count,
                    i + 1 == e->count ? "\n" : "");
    }
    free(room.x);
    free(room.ordered);
    free(room.blocks);
    return status;
}
