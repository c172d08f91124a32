/* decode_attention.c - attention of a few queries over a long cache, as when a model writes token
 * by token. The time is that of reading keys and values, so they are not packed. The query heads of
 * a key/value head are computed together, so the cache is read once.
 *
 *     for each query of a row; tasks: (row, piece of the keys)
 *       for each block of keys, for each head:   s = scale q k'   p = exp(s - largest so far)
 *                                                o = o exp(largest before - largest) + p v
 *     then the pieces are added in their order
 *
 * Pieces and blocks are counted from the first key that the query sees. So its bits depend on the
 * query and on the keys in sight. Padding before them, other queries and the threads do not
 * matter. */
#include <math.h>

#include "devices/cpu/attention.h"
#include "devices/cpu/gemv.h"

#define ALWAYS static inline __attribute__((always_inline))

enum {
    BLOCK = 48,        /* keys whose scores exist at once, whole strips */
    PIECES = 16,       /* most pieces of a row's keys; */
    PIECE = 2 * BLOCK, /* ... fewest keys of a piece that is not the last */
    WIDE_TILE = 8,     /* columns of the values that are summed at once, in vectors */
};
_Static_assert(BLOCK % STRIP == 0, "a block of keys is whole strips");

/* Result of a query head for a piece of the keys: sum [width] of p v, then these two. */
enum { LARGEST, SUM, MORE = 16 };

struct decode {
    const struct attention *s;
    struct tune_tensor *out;
    float *lse;
    int64_t group, width; /* query heads of a key/value head; D in whole vectors */
    int64_t most_pieces;       /* for pieces of a row */
    float *q;             /* [B,H,width]: float32, zeros after D */
    float *found;         /* [B,H,most_pieces,width + MORE] */
};

/* The keys [from,to) that query j of row b sees. */
static void sight(const struct attention *s, int64_t b, int64_t j, int64_t *from, int64_t *to)
{
    int64_t at = (s->q_offset ? s->q_offset[b] : 0) + j, keys = s->kv_length ? s->kv_length[b] : s->k->shape[1];
    int64_t first = s->starts ? s->starts[b * s->T + j] : 0;
    int64_t window = s->window > 0 ? at - s->window + 1 : 0;
    *from = first > window ? first : window;
    *to = at + 1 < keys ? at + 1 : keys;
    *from = *from < *to ? *from : *to;
}

/* Like sight(). Returns the number of keys in a piece. */
static int64_t piece_length(const struct attention *s, int64_t b, int64_t j, int64_t *from,
                            int64_t *to)
{
    sight(s, b, j, from, to);
    int64_t each = up((*to - *from + PIECES - 1) / PIECES, BLOCK);
    return each > PIECE ? each : PIECE;
}

static int64_t most_pieces(int64_t capacity)
{
    int64_t pieces = (capacity + PIECE - 1) / PIECE;
    return pieces < 1 ? 1 : pieces < PIECES ? pieces : PIECES;
}

int64_t tune_cpu_decode_attention_floats(int64_t B, int64_t capacity, int64_t H, int64_t D)
{
    int64_t heads, n, each = most_pieces(capacity) * (up(D, VL) + MORE) + up(D, VL);
    return __builtin_mul_overflow(B, H, &heads) || __builtin_mul_overflow(heads, each, &n)
               ? INT64_MAX : n;
}

static float *found_at(const struct decode *f, int64_t b, int64_t h, int64_t piece)
{
    return f->found + ((b * f->s->H + h) * f->most_pieces + piece) * (f->width + MORE);
}

/* Columns of o = o factor + p v, over some keys: W vectors, or `count` columns of one. */
ALWAYS void tile_values(int W, enum tune_dtype dtype, float *o, float factor, const float *p,
                        const struct operand *v, int64_t column, int64_t count, int64_t keys)
{
    vec sum[WIDE_TILE];
    int64_t at = column;
#pragma GCC unroll 8
    for (int j = 0; j < W; j++)
        sum[j] = factor * *(const loose_vec *)(o + column + j * VL);
    for (int64_t key = 0; key < keys; key++, at += v->ld) {
        vec every = p[key] - (vec){0};
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sum[j] = fused(every, count >= VL ? load(v, dtype, at + j * VL)
                                              : load_some(v, dtype, at, count), sum[j]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < W; j++)
        *(loose_vec *)(o + column + j * VL) = sum[j];
}

ALWAYS void all_values(enum tune_dtype dtype, float *o, float factor, const float *p,
                       const struct operand *v, int64_t D, int64_t keys)
{
    int64_t d = 0;
    for (; d + WIDE_TILE * VL <= D; d += WIDE_TILE * VL)
        tile_values(WIDE_TILE, dtype, o, factor, p, v, d, WIDE_TILE * VL, keys);
    for (; d + 2 * VL <= D; d += 2 * VL)
        tile_values(2, dtype, o, factor, p, v, d, 2 * VL, keys);
    for (; d < D; d += VL)
        tile_values(1, dtype, o, factor, p, v, d, D - d, keys);
}

static void add_values(float *o, float factor, const float *p, const struct operand *v, int64_t D,
                       int64_t keys)
{
    if (v->dtype == TUNE_F32)
        all_values(TUNE_F32, o, factor, p, v, D, keys);
    else
        all_values(TUNE_BF16, o, factor, p, v, D, keys);
}

/* Scores of a head of a query with the keys of a block. */
static void all_scores(const struct decode *f, const float *q, const struct operand *k, int64_t keys,
                       float scores[BLOCK])
{
    for (int64_t n = 0; n < keys; n += STRIP) {
        gemv_sums sums = {0};
        int64_t count = keys - n < STRIP ? keys - n : STRIP;
        struct operand strip = *k;
        strip.data = (const char *)k->data + n * k->ld * (k->dtype == TUNE_F32 ? 4 : 2);
        tune_cpu_dots(&sums, 1, count, q, f->width, &strip, f->s->D, 0);
        tune_cpu_add_lanes(sums, count, scores + n);
    }
}

/* Turn the scores of one head into exp(score - largest so far). Returns the factor for what was
 * found before. */
static float softmax(const struct decode *f, float *p, int64_t keys, float *state)
{
    float largest = state[LARGEST], sum = 0, scale = f->s->scale;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < keys; i++) {
        p[i] *= scale;
        largest = p[i] > largest ? p[i] : largest;
    }
    float factor = tune_cpu_exp(state[LARGEST] - largest);
    for (int64_t i = 0; i < keys; i += VL) {
        loose_vec *x = (loose_vec *)(p + i);
        *x = exponential(*x - largest);
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < keys; i++)
        sum += p[i];
    if (f->s->q->dtype == TUNE_BF16) /* operands of products are rounded, sums are not */
        tune_cpu_round(p, keys);
    state[SUM] = state[SUM] * factor + sum;
    state[LARGEST] = largest;
    return factor;
}

/* Heads of row b with keys [from,to), at most a block of them. The second head of a group finds the
 * keys and values in a near cache. */
static void do_block(const struct decode *f, int64_t b, int64_t piece, int64_t from, int64_t to)
{
    const struct attention *s = f->s;
    for (int64_t h = 0; h < s->H; h++) {
        struct operand k = head(s->k, b, from, h / f->group), v = head(s->v, b, from, h / f->group);
        float p[BLOCK], *o = found_at(f, b, h, piece);
        all_scores(f, f->q + (b * s->H + h) * f->width, &k, to - from, p);
        float factor = softmax(f, p, to - from, o + f->width);
        add_values(o, factor, p, &v, s->D, to - from);
    }
}

static void do_piece(const struct decode *f, int64_t b, int64_t j, int64_t piece)
{
    int64_t begin, end, each = piece_length(f->s, b, j, &begin, &end);
    begin += piece * each;
    end = begin + each < end ? begin + each : end;
    for (int64_t h = 0; h < f->s->H && begin < end; h++) {
        float *o = found_at(f, b, h, piece);
        memset(o, 0, (size_t)(f->width + MORE) * 4);
        o[f->width + LARGEST] = -INFINITY;
    }
    for (int64_t k = begin; k < end; k += BLOCK)
        do_block(f, b, piece, k, k + BLOCK < end ? k + BLOCK : end);
}

/* Add the pieces of one head of query j into the output. */
static void add_pieces(const struct decode *f, int64_t b, int64_t j, int64_t h)
{
    const struct attention *s = f->s;
    int64_t begin, end, each = piece_length(s, b, j, &begin, &end), row = b * s->T + j;
    int64_t pieces = (end - begin + each - 1) / each, at = (row * s->H + h) * s->D;
    float largest = -INFINITY, sum = 0, *o = tune_cpu_target(f->out, at, f->q + (b * s->H + h) * f->width);
    for (int64_t p = 0; p < pieces; p++) {
        float one = found_at(f, b, h, p)[f->width + LARGEST];
        largest = one > largest ? one : largest;
    }
    memset(o, 0, (size_t)s->D * 4);
    for (int64_t p = 0; p < pieces; p++) {
        const float *part = found_at(f, b, h, p), *state = part + f->width;
        float factor = tune_cpu_exp(state[LARGEST] - largest);
        sum += state[SUM] * factor;
        for (int64_t d = 0; d < s->D; d++)
            o[d] += part[d] * factor;
    }
    for (int64_t d = 0; d < s->D; d++)
        o[d] *= sum > 0 ? 1 / sum : 0; /* no key is seen: 0 */
    tune_cpu_out(f->out, at, s->D, o);
    f->lse[row * s->H + h] = largest + logf(sum);
}

/* Query j of each row as float32 with zeros after D. Returns the most pieces that a row has. */
static int64_t get_ready(const struct decode *f, int64_t j)
{
    const struct attention *s = f->s;
    int64_t most = 0, from, to;
    for (int64_t b = 0; b < s->B; b++) {
        int64_t each = piece_length(s, b, j, &from, &to), pieces = (to - from + each - 1) / each;
        most = pieces > most ? pieces : most;
        for (int64_t h = 0; h < s->H; h++) {
            float *q = f->q + (b * s->H + h) * f->width;
            const float *x = tune_cpu_in(s->q, head_at(s->q, b, j, h), s->D, q);
            if (x != q)
                memcpy(q, x, (size_t)s->D * 4);
            for (int64_t d = s->D; d < f->width; d++)
                q[d] = 0;
        }
    }
    return most;
}

int tune_cpu_decode_attention(struct tune_device *dev, const struct attention *s,
                              struct tune_tensor *out, float *lse)
{
    struct decode f = {.s = s, .out = out, .lse = lse, .group = s->H / s->K, .width = up(s->D, VL)};
    int64_t capacity = s->k->shape[1];
    f.most_pieces = most_pieces(capacity);
    f.q = tune_cpu_shared(dev, tune_cpu_decode_attention_floats(s->B, capacity, s->H, s->D));
    if (!f.q)
        return -1;
    f.found = f.q + s->B * s->H * f.width;
    for (int64_t j = 0; j < s->T; j++) {
        int64_t pieces = get_ready(&f, j);
#pragma omp parallel num_threads(dev->threads) if (s->B * pieces > 1)
        {
#pragma omp for schedule(dynamic, 1)
            for (int64_t task = 0; task < s->B * pieces; task++)
                do_piece(&f, task / pieces, j, task % pieces);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < s->B * s->H; i++)
                add_pieces(&f, i / s->H, j, i % s->H);
        }
    }
    return 0;
}
