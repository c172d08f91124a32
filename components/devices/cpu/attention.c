/* attention.c - causal attention, for NR queries of one head at a time, on the panels of panel.h.
 *
 * Scores are stored transposed: a row for each key, a lane for each query. The softmax then runs
 * down the rows in whole vectors, and the block is already the packed left side of the next
 * product. Only bfloat16 tiles need it packed again, in pairs.
 *
 *   forward, for each (row, head) and block of NR queries; keys up to the block's last query:
 *     S' = scale K Q'        [keys, NR]   in the thread's working memory
 *     P' = exp(S' - max)                  masked entries are 0
 *     O  = P V / sum
 *   backward, same blocks; P' is recomputed from lse; delta_j = sum_d dO_jd O_jd:
 *     dV += P' dO      dP' = V dO'      dS' = P' (dP' - delta) scale
 *     dQ  = dS K       dK += dS' Q
 *
 * A task is a piece of a row's queries, for all query heads that share a key/value head: its keys
 * and values are packed once. The pieces of a row cost about the same. Their number follows from
 * the shape alone. In backward each piece sums its dK and dV in its own buffer, and the buffers are
 * added in order. So the bits do not depend on the number of threads. */
#include <math.h>

#include "devices/cpu/attention.h"

/* Pack rows of one head, [count, D]. pack_left: as a left side. pack_right_rows: as a right side of NR
 * columns, with depth D. pack_right_columns: as a right side of D columns, with depth count. */
static void pack_left(const struct tiles *t, const struct operand *rows, int64_t count, int64_t D, float *out)
{
    for (int64_t i = 0; i < count; i += t->rows, out += t->rows * words(t, D))
        t->pack(rows, true, i, count - i < t->rows ? count - i : t->rows, t->rows, 0, D, out);
}

/* N columns, of which `count` exist. */
static void pack_right(const struct tiles *t, const struct operand *from, int64_t N, int64_t count, int64_t depth, float *out)
{
    for (int64_t n = 0; n < N; n += t->columns) {
        int64_t width = panel_width(t, N - n), left = count > n ? count - n : 0;
        t->pack(from, false, n, left < width ? left : width, width, 0, depth, out + n * words(t, depth));
    }
}

static void pack_right_rows(const struct tiles *t, const struct operand *rows, int64_t count, int64_t D, float *out)
{
    pack_right(t, rows, NR, count, D, out);
}

static void pack_right_columns(const struct tiles *t, const struct operand *rows, int64_t count, int64_t D, float *out)
{
    struct operand turned = *rows;
    turned.by_depth = true;
    pack_right(t, &turned, D, D, count, out);
}

/* A left side of float32 tiles: element (i,k) is at a[i*row + k*step]. A packed one: row 1, step MR.
 * Panels of rows are `panel` apart. */
struct left {
    const float *a;
    int64_t row, step, panel;
};

static struct left packed(const struct tiles *t, const float *a, int64_t depth)
{
    return (struct left){a, 1, MR, words(t, depth) * t->rows};
}

/* c [M,N] = beta c + alpha left right. right: panels packed to depth `full`, of which [k0, k0+K) is
 * used. k0 is a multiple of the tiles' grain. A packed left side is zero from K to the next
 * multiple. */
static void multiply(const struct tiles *t, const struct left *l, int64_t M, const float *right, int64_t full, int64_t k0, int64_t K,
                     int64_t N, float alpha, float beta, float *c, int64_t ldc)
{
    for (int64_t n = 0; n < N; n += t->columns) {
        int64_t width = panel_width(t, N - n), columns = N - n < t->columns ? N - n : t->columns;
        const float *b = right + n * words(t, full) + words(t, k0) * width;
        for (int64_t i = 0; i < M; i += t->rows) {
            const float *a = l->a + i / t->rows * l->panel;
            float *to = c + i * ldc + n;
            int64_t rows = M - i < t->rows ? M - i : t->rows;
            if (t == &tune_cpu_f32_tiles)
                tune_cpu_tile(width, K, a, l->row, l->step, b, alpha, beta, to, ldc, rows, columns);
            else
                t->multiply(width, up(K, t->grain), a, b, alpha, beta, to, ldc, rows, columns);
        }
    }
}

/* Buffers in a thread's working memory. Forward uses the first six only. */
struct buffers {
    /* S' [keys, NR]; K as a left side; V as a right side, in backward as a left side */
    float *scores, *kept, *value;
    float *left; /* one panel of P' or dS', packed as a left side for bfloat16 tiles */
    float *query, *out; /* [D, NR]; output of a block [NR, D] before rounding */
    float *dscores, *key, *query_columns, *dout, *dout_columns;
};

/* Total size of the buffers in floats. work NULL: compute the size only. */
static int64_t set_buffers(int64_t T, int64_t width, float *work, bool backward, struct buffers *r)
{
    int64_t keys = up(T, TALL), D = up(width, VL), at = 0;
    float **members[] = {&r->scores, &r->kept, &r->value, &r->left, &r->query, &r->out,
                        &r->dscores, &r->key, &r->query_columns, &r->dout, &r->dout_columns};
    int64_t sizes[] = {keys * NR, keys * D, keys * D, keys * TALL, NR * D, NR * D, keys * NR, keys * D, NR * D, NR * D, NR * D};
    for (int i = 0; i < (backward ? 11 : 6); i++) {
        *members[i] = work ? work + at : NULL;
        at += up(sizes[i], 16);
    }
    return at;
}

int64_t tune_cpu_attention_floats(int64_t keys, int64_t D)
{
    struct buffers r;
    return set_buffers(keys, D, NULL, true, &r);
}

/* Pieces of a row. There are at most TASKS tasks, unless there are more heads. A piece has
 * QUERIES queries or more, those of all heads of a group counted. So packing its keys and values
 * costs little. */
enum { TASKS = 32, QUERIES = 384 };

static int64_t piece_count(int64_t B, int64_t T, int64_t H, int64_t K)
{
    int64_t most = T * (H / K) / QUERIES, wanted = TASKS / (B * K);
    int64_t pieces = wanted < most ? wanted : most;
    return pieces > 1 ? pieces : 1;
}

/* Sums of all pieces: dK and dV, [T,D] each, and the keys [from,to) that they are of. It never
 * decreases with B or T, so a buffer for the largest batch is one for all. */
int64_t tune_cpu_attention_sums(int64_t B, int64_t T, int64_t H, int64_t K, int64_t D)
{
    int64_t tasks, each, n, heads, most = T * (H / K) / QUERIES;
    if (__builtin_mul_overflow(B, K, &heads) || __builtin_mul_overflow(heads, most > 1 ? most : 1, &tasks) ||
        __builtin_mul_overflow(2 * T, D, &each))
        return INT64_MAX;
    if (tasks > TASKS)
        tasks = heads > TASKS ? heads : TASKS;
    return __builtin_mul_overflow(tasks, each + 2, &n) ? INT64_MAX : n;
}

/* Queries and keys that are computed together, independently of others: T queries of row b from
 * position q, and `keys` keys from k. A part is a whole row, one text of a packed row, or several
 * short texts that fit in one block of queries. Packed texts then cost no more than separate
 * ones. */
struct part {
    int64_t b, q, T;
    int64_t k, keys; /* the first key, and the number of keys */
    int64_t ahead;   /* index of the first query's position among these keys */
};

static int64_t start_of(const struct attention *s, int64_t b, int64_t q)
{
    return s->starts ? s->starts[b * s->T + q] : 0;
}

/* Advance p to the next part; false: there is none. Before the first call p has its b, and
 * zeros. */
static bool next_part(const struct attention *s, struct part *p)
{
    p->q += p->T;
    if (p->q == s->T)
        return false;
    /* every query may see all keys, up to the mask */
    if (is_cache(s)) {
        p->T = s->T;
        p->keys = s->kv_length ? s->kv_length[p->b] : s->k->shape[1];
        p->ahead = s->q_offset ? s->q_offset[p->b] : 0;
        return true;
    }
    p->T = s->starts ? 0 : s->T;
    while (p->q + p->T < s->T && p->T < NR) {
        int64_t end = p->T + 1;
        while (p->q + end < s->T && start_of(s, p->b, p->q + end) != p->q + end)
            end++;
        if (p->T > 0 && end > NR)
            break;
        p->T = end;
    }
    p->k = p->q;
    p->keys = p->T;
    p->ahead = 0;
    return true;
}

/* A block of queries of a part, and the keys [k0,k1) they see, in whole panels. first[lane]: first
 * key of that query. Lanes after the last query repeat it. at: index of the first query among the
 * keys. */
struct block {
    int64_t q0, rows, k0, k1, at;
    int32_t first[NR];
};

static void open_block(struct block *block, const struct attention *s, const struct part *p, int64_t q0)
{
    block->q0 = q0;
    block->rows = p->T - q0 < NR ? p->T - q0 : NR;
    block->at = p->ahead + q0;
    for (int64_t j = 0; j < NR; j++) {
        int64_t query = q0 + (j < block->rows ? j : block->rows - 1), start = start_of(s, p->b, p->q + query) - p->k;
        int64_t window = s->window > 0 ? p->ahead + query - s->window + 1 : 0;
        start = start > 0 ? start : 0;
        block->first[j] = (int32_t)(window > start ? window : start);
    }
    block->k0 = block->first[0] / s->tiles->rows * s->tiles->rows; /* first never decreases along a row */
    block->k1 = block->at + block->rows < p->keys ? block->at + block->rows : p->keys;
}

/* The lanes [from,to) of a block whose queries see the key. `to` never decreases from key to key.
 * Pass the result of the previous key, or 0 at first. */
static void lanes(const struct block *block, int64_t key, int *from, int *to)
{
    *from = key < block->at ? 0 : (int)(key - block->at);
    while (*to < NR && block->first[*to] <= key)
        ++*to;
}

/* Set the lanes outside [from,to) to value. */
static void blank(float *x, int from, int to, float value)
{
    if (from == 0 && to == NR)
        return;
    for (int j = 0; j < NR; j++)
        x[j] = j >= from && j < to ? x[j] : value;
}

/* The keys [from,to) that every query of the block sees. */
static void seen_by_all(const struct block *block, int64_t *from, int64_t *to)
{
    *to = block->at < block->k1 ? block->at + 1 : block->k1;
    *from = block->first[NR - 1] < *to ? block->first[NR - 1] : *to;
}

/* Replace the scores of keys [k0,k1) by exp(score - largest). Also gives sum and largest by
 * query. */
static void softmax(const struct block *block, float *scores, float *largest, float *sum)
{
    int from, to = 0;
    int64_t all, part, k0 = block->k0, k1 = block->k1;
    vec total[WIDE] = {{0}}, top[WIDE];
    seen_by_all(block, &all, &part);
    for (int j = 0; j < NR; j++)
        largest[j] = -INFINITY;
    for (int64_t key = k0; key < k1; key++) {
        float *x = scores + (key - k0) * NR;
        if (key < all || key >= part) {
            lanes(block, key, &from, &to);
            blank(x, from, to, -INFINITY);
        }
        for (int j = 0; j < NR; j++)
            largest[j] = x[j] > largest[j] ? x[j] : largest[j];
    }
    memcpy(top, largest, sizeof top);
    to = 0;
    for (int64_t key = k0; key < k1; key++) {
        loose_vec *x = (loose_vec *)(scores + (key - k0) * NR);
        vec e[WIDE];
        for (int j = 0; j < WIDE; j++)
            e[j] = exponential(x[j] - top[j]);
        if (key < all || key >= part) {
            lanes(block, key, &from, &to);
            blank((float *)e, from, to, 0);
        }
        for (int j = 0; j < WIDE; j++) {
            x[j] = e[j];
            total[j] += e[j];
        }
    }
    memcpy(sum, total, sizeof total);
}

/* ---- pieces ---- */

/* Consecutive blocks of a part: queries [q0,q1) and the keys [k0,k1) they see, in whole panels. */
struct run {
    struct part part;
    int64_t q0, q1, k0, k1;
};

/* One of the `of` pieces of a row. A block costs as many keys as it sees. Costs are added up along the
 * row; a block belongs to the piece in whose share the sum before it lies. */
struct piece {
    int64_t number, of;
    int64_t total, sum; /* cost of the row; of the blocks before the run's end */
    struct run run;
};

static void open_piece(struct piece *piece, const struct attention *s, int64_t b, int64_t number, int64_t of)
{
    struct part part = {.b = b};
    struct block block;
    *piece = (struct piece){.number = number, .of = of, .run.part.b = b};
    while (next_part(s, &part))
        for (int64_t q0 = 0; q0 < part.T; q0 += NR) {
            open_block(&block, s, &part, q0);
            piece->total += block.k1 - block.k0;
        }
}

/* Advance to the piece's next run; false: there is none. */
static bool next_run(struct piece *piece, const struct attention *s)
{
    struct run *run = &piece->run;
    struct block block;
    bool any = false;
    while (!any) {
        if (run->q1 >= run->part.T) {
            if (!next_part(s, &run->part))
                return false;
            run->q1 = 0;
        }
        for (; run->q1 < run->part.T; run->q1 += NR) {
            open_block(&block, s, &run->part, run->q1);
            bool ours = piece->sum * piece->of / piece->total == piece->number;
            if (any && !ours)
                break;
            piece->sum += block.k1 - block.k0;
            if (!ours)
                continue;
            if (!any) {
                run->q0 = run->q1;
                run->k0 = block.k0;
            }
            any = true;
            run->k1 = block.k1;
        }
    }
    return true;
}

/* o [rows,D] = p V, for the queries of a block. Each panel of queries stops at the last key that it
 * sees. p: a row for each key from k0 on, a lane for each query. v: panels packed to depth `full`; the
 * block's first key is at depth `skip`. */
static void weigh(const struct attention *s, const struct block *block, const float *p, float *buffer, const float *v, int64_t full,
                  int64_t skip, float *o, int64_t ldo)
{
    const struct tiles *t = s->tiles;
    for (int64_t i = 0; i < block->rows; i += t->rows) {
        int64_t lanes = NR - i < t->rows ? NR - i : t->rows, rows = block->rows - i < lanes ? block->rows - i : lanes;
        int64_t last = block->at + i + rows, K = (last < block->k1 ? last : block->k1) - block->k0;
        struct left l = {p + i, 1, NR, 0};
        if (t != &tune_cpu_f32_tiles) {
            struct operand from = {p + i, TUNE_F32, NR, true};
            t->pack(&from, true, 0, lanes, t->rows, 0, K, buffer);
            l = packed(t, buffer, K);
        }
        multiply(t, &l, rows, v, full, skip, K, s->D, 1, 0, o + i * ldo, ldo);
    }
}

static void forward_run(const struct attention *s, struct tune_tensor *out, float *lse, const struct run *run, int64_t kv, float *work)
{
    const struct part *part = &run->part;
    int64_t n = run->k1 - run->k0, D = s->D, width = s->H * D, group = s->H / s->K;
    const struct tiles *t = s->tiles;
    /* operands of products are rounded, sums are not: here, or while they are packed */
    bool round = s->q->dtype == TUNE_BF16 && t == &tune_cpu_f32_tiles;
    struct buffers r;
    struct operand k = head(s->k, part->b, part->k + run->k0, kv), v = head(s->v, part->b, part->k + run->k0, kv);
    set_buffers(n, D, work, false, &r); /* buffers sized for this run, so that they stay in cache */
    pack_left(t, &k, n, D, r.kept);
    pack_right_columns(t, &v, n, D, r.value);
    for (int64_t q0 = run->q0; q0 < run->q1; q0 += NR) {
        struct block block;
        open_block(&block, s, part, q0);
        int64_t rows = block.rows, k0 = block.k0, k1 = block.k1, skip = k0 - run->k0;
        struct left keys = packed(t, r.kept + skip * words(t, D), D);
        for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
            struct operand q = head(s->q, part->b, part->q + q0, h);
            float largest[NR], sum[NR];
            pack_right_rows(t, &q, rows, D, r.query);
            multiply(t, &keys, k1 - k0, r.query, D, 0, D, NR, s->scale, 0, r.scores, NR);
            softmax(&block, r.scores, largest, sum);
            if (round)
                tune_cpu_round(r.scores, (k1 - k0) * NR);
            weigh(s, &block, r.scores, r.left, r.value, n, skip, r.out, D);
            for (int64_t j = 0; j < rows; j++) {
                int64_t row = part->b * s->T + part->q + q0 + j, at = row * width + h * D;
                float *o = tune_cpu_target(out, at, r.out + j * D), inverse = 1 / sum[j];
                for (int64_t i = 0; i < D; i++)
                    o[i] = r.out[j * D + i] * inverse;
                tune_cpu_out(out, at, D, o);
                lse[row * s->H + h] = largest[j] + logf(sum[j]);
            }
        }
    }
}

int tune_cpu_attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse, const struct tune_tensor *q,
                               const struct tune_tensor *k, const struct tune_tensor *v, const struct tune_tensor *starts,
                               const struct tune_tensor *kv_length, const struct tune_tensor *q_offset, struct tune_attention params)
{
    struct attention s = attention(q, k, v, starts, &params);
    s.kv_length = tune_cpu_data(kv_length);
    s.q_offset = tune_cpu_data(q_offset);
    if (is_cache(&s) && s.T <= DECODE_QUERIES)
        return tune_cpu_decode_attention(dev, &s, out, tune_cpu_data(lse));
    if (tune_cpu_reserve(dev, tune_cpu_attention_floats(k->shape[1], s.D)) < 0)
        return -1;
    int64_t pieces = piece_count(s.B, s.T, s.H, s.K);
#pragma omp parallel num_threads(tune_cpu_threads(dev, s.B * s.H * s.T * s.T * s.D / 16))
    {
        if (s.tiles->begin)
            s.tiles->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < s.B * s.K * pieces; task++) {
            struct piece piece;
            open_piece(&piece, &s, task / pieces / s.K, task % pieces, pieces);
            while (next_run(&piece, &s))
                forward_run(&s, out, tune_cpu_data(lse), &piece.run, task / pieces % s.K, tune_cpu_work(dev));
        }
        if (s.tiles->end)
            s.tiles->end();
    }
    return 0;
}

struct backward {
    struct attention s;
    struct tune_tensor *dq, *dk, *dv;
    int64_t pieces;
    float *sums;   /* [B, K, pieces, 2, T, D]: dK and dV */
    int32_t *keys; /* [B, pieces, 2]: the keys [from,to) of a row that they are of */
    const struct tune_tensor *dout, *out;
    const float *lse;
};

/* Replace S' in p by P', and dP' in ds by dS'. */
static void score_gradient(const struct block *block, float scale, float *p, float *ds, const float *lse, const float *delta)
{
    int from, to = 0;
    int64_t all, part;
    seen_by_all(block, &all, &part);
    for (int64_t key = block->k0; key < block->k1; key++, p += NR, ds += NR) {
        for (int j = 0; j < NR; j += VL) {
            loose_vec *e = (loose_vec *)(p + j), *d = (loose_vec *)(ds + j);
            *e = exponential(*e - *(const loose_vec *)(lse + j));
            *d = *e * (*d - *(const loose_vec *)(delta + j)) * scale;
        }
        if (key >= all && key < part)
            continue;
        lanes(block, key, &from, &to);
        blank(p, from, to, 0);
        blank(ds, from, to, 0);
    }
}

/* lse and delta of a block's queries, from `row` on. Lanes after the last query are unused. */
static void query_sums(const struct backward *w, int64_t row, int64_t rows, int64_t h, const struct buffers *r, float *lse,
                       float *delta)
{
    int64_t D = w->s.D, width = w->s.H * D;
    for (int64_t j = 0; j < NR; j++) {
        lse[j] = INFINITY;
        delta[j] = 0;
    }
    for (int64_t j = 0; j < rows; j++) {
        int64_t at = (row + j) * width + h * D;
        const float *g = tune_cpu_in(w->dout, at, D, r->out), *o = tune_cpu_in(w->out, at, D, r->out + D);
        float sum = 0;
        for (int64_t i = 0; i < D; i++)
            sum += g[i] * o[i];
        delta[j] = sum;
        lse[j] = w->lse[(row + j) * w->s.H + h];
    }
}

/* sum [n,D] += x right, for the keys of a block. x: a row for each key, a lane for each query. right:
 * panels packed to depth rows. Queries before a panel's first key are left out. */
static void gather(const struct attention *s, const struct block *block, const float *x, float *buffer, const float *right, float *sum)
{
    const struct tiles *t = s->tiles;
    int64_t n = block->k1 - block->k0, seen = block->at + 1 - block->k0, D = s->D; /* seen: keys that the first query sees */
    for (int64_t i = 0; i < n; i += t->rows) {
        int64_t rows = n - i < t->rows ? n - i : t->rows, skip = i < seen ? 0 : (i - seen + 1) / t->grain * t->grain;
        struct left l = {x + i * NR + skip, NR, 1, 0};
        if (t != &tune_cpu_f32_tiles) {
            struct operand from = {x + i * NR + skip, TUNE_F32, NR, false};
            t->pack(&from, true, 0, rows, t->rows, 0, block->rows - skip, buffer);
            l = packed(t, buffer, 0);
        }
        multiply(t, &l, rows, right, block->rows, skip, block->rows - skip, D, 1, 1, sum + i * D, D);
    }
}

/* Backward of one run. dk, dv: sums of its piece, from the part's first key on. */
static void backward_run(const struct backward *w, const struct run *run, int64_t kv, float *dk, float *dv, float *work)
{
    const struct attention *s = &w->s;
    const struct part *part = &run->part;
    int64_t n = run->k1 - run->k0, D = s->D, group = s->H / s->K, width = s->H * D, apart = position_stride(w->dq);
    const struct tiles *t = s->tiles;
    bool f32 = w->dq->dtype == TUNE_F32;
    struct buffers r;
    struct operand k = head(s->k, part->b, part->k + run->k0, kv), v = head(s->v, part->b, part->k + run->k0, kv);
    set_buffers(n, D, work, true, &r);
    memset(dk + run->k0 * D, 0, (size_t)(n * D) * 4);
    memset(dv + run->k0 * D, 0, (size_t)(n * D) * 4);
    pack_left(t, &k, n, D, r.kept);
    pack_left(t, &v, n, D, r.value);
    pack_right_columns(t, &k, n, D, r.key);
    for (int64_t q0 = run->q0; q0 < run->q1; q0 += NR) {
        struct block block;
        open_block(&block, s, part, q0);
        int64_t rows = block.rows, k0 = block.k0, count = block.k1 - k0, skip = k0 - run->k0, row = part->b * s->T + part->q + q0;
        struct left keys = packed(t, r.kept + skip * words(t, D), D), values = packed(t, r.value + skip * words(t, D), D);
        for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
            int64_t from = row * width + h * D, at = head_at(w->dq, part->b, part->q + q0, h);
            struct operand q = head(s->q, part->b, part->q + q0, h);
            struct operand g = {(const char *)tune_cpu_data(w->dout) + from * (f32 ? 4 : 2), w->dout->dtype, width, false};
            float lse[NR], delta[NR];
            query_sums(w, row, rows, h, &r, lse, delta);
            pack_right_rows(t, &q, rows, D, r.query);
            pack_right_rows(t, &g, rows, D, r.dout);
            pack_right_columns(t, &q, rows, D, r.query_columns);
            pack_right_columns(t, &g, rows, D, r.dout_columns);
            multiply(t, &keys, count, r.query, D, 0, D, NR, s->scale, 0, r.scores, NR);
            multiply(t, &values, count, r.dout, D, 0, D, NR, 1, 0, r.dscores, NR);
            score_gradient(&block, s->scale, r.scores, r.dscores, lse, delta);
            if (!f32 && t == &tune_cpu_f32_tiles) {
                tune_cpu_round(r.scores, count * NR);
                tune_cpu_round(r.dscores, count * NR);
            }
            gather(s, &block, r.scores, r.left, r.dout_columns, dv + k0 * D);
            gather(s, &block, r.dscores, r.left, r.query_columns, dk + k0 * D);
            weigh(s, &block, r.dscores, r.left, r.key, n, skip, f32 ? (float *)tune_cpu_data(w->dq) + at : r.out, f32 ? apart : D);
            for (int64_t j = 0; j < rows && !f32; j++)
                tune_cpu_out(w->dq, at + j * apart, D, r.out + j * D);
        }
    }
}

static void backward_piece(const struct backward *w, int64_t b, int64_t kv, int64_t number, float *work)
{
    const struct attention *s = &w->s;
    int64_t size = s->T * s->D, from = -1, to = 0;
    float *dk = w->sums + ((b * s->K + kv) * w->pieces + number) * 2 * size;
    struct piece piece;
    open_piece(&piece, s, b, number, w->pieces);
    while (next_run(&piece, s)) {
        const struct run *run = &piece.run;
        from = from < 0 ? run->part.k + run->k0 : from;
        to = run->part.k + run->k1;
        backward_run(w, run, kv, dk + run->part.k * s->D, dk + size + run->part.k * s->D, work);
    }
    if (kv == 0) { /* the same for all heads */
        w->keys[(b * w->pieces + number) * 2] = (int32_t)from;
        w->keys[(b * w->pieces + number) * 2 + 1] = (int32_t)to;
    }
}

/* dK and dV of position t of a key/value head: the sums of the pieces that see it, added in
 * order. */
static void add_pieces(const struct backward *w, int64_t b, int64_t kv, int64_t t, float *work)
{
    const struct attention *s = &w->s;
    int64_t D = s->D, T = s->T;
    for (int64_t which = 0; which < 2; which++) {
        struct tune_tensor *to = which ? w->dv : w->dk;
        int64_t at = head_at(to, b, t, kv);
        float *sum = tune_cpu_target(to, at, work);
        bool any = false;
        for (int64_t p = 0; p < w->pieces; p++) {
            const int32_t *keys = w->keys + (b * w->pieces + p) * 2;
            const float *part = w->sums + ((((b * s->K + kv) * w->pieces + p) * 2 + which) * T + t) * D;
            if (t < keys[0] || t >= keys[1])
                continue;
            for (int64_t i = 0; i < D; i++)
                sum[i] = any ? sum[i] + part[i] : part[i];
            any = true;
        }
        tune_cpu_out(to, at, D, sum);
    }
}

int tune_cpu_attention_backward(struct tune_device *dev, struct tune_tensor *dq, struct tune_tensor *dk, struct tune_tensor *dv,
                                const struct tune_tensor *dout, const struct tune_tensor *q, const struct tune_tensor *k,
                                const struct tune_tensor *v, const struct tune_tensor *out, const struct tune_tensor *lse,
                                const struct tune_tensor *starts, struct tune_attention params)
{
    struct attention s = attention(q, k, v, starts, &params);
    int64_t pieces = piece_count(s.B, s.T, s.H, s.K), heads = s.B * s.K;
    float *sums = tune_cpu_sums(dev, tune_cpu_attention_sums(s.B, s.T, s.H, s.K, s.D));
    if (!sums || tune_cpu_reserve(dev, tune_cpu_attention_floats(s.T, s.D)) < 0)
        return -1;
    void *keys = sums + heads * pieces * 2 * s.T * s.D;
    struct backward w = {s, dq, dk, dv, pieces, sums, keys, dout, out, tune_cpu_data(lse)};
#pragma omp parallel num_threads(tune_cpu_threads(dev, s.B * s.H * s.T * s.T * s.D / 16))
    {
        if (s.tiles->begin)
            s.tiles->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < heads * pieces; task++)
            backward_piece(&w, task / pieces / s.K, task / pieces % s.K, task % pieces, tune_cpu_work(dev));
        if (s.tiles->end)
            s.tiles->end();
#pragma omp for schedule(static)
        for (int64_t row = 0; row < s.B * s.T; row++)
            for (int64_t kv = 0; kv < s.K; kv++)
                add_pieces(&w, row / s.T, kv, row % s.T, tune_cpu_work(dev));
    }
    return 0;
}
