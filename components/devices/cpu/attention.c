/* attention.c - causal attention, for NR queries of one head at a time, on the panels of panel.h.
 *
 * Scores are stored transposed: a row for each key, a lane for each query. The softmax then runs
 * down the rows in whole vectors, and the block is already the packed left side of the next
 * product.
 *
 *   forward, for each (row, head) and block of NR queries; keys up to the block's last query:
 *     S' = scale K Q'        [keys, NR]   in the thread's working memory
 *     P' = exp(S' - max)                  masked entries are 0
 *     O  = P V / sum
 *   backward, same blocks; P' is recomputed from lse; delta_j = sum_d dO_jd O_jd:
 *     dV += P' dO      dP' = V dO'      dS' = P' (dP' - delta) scale
 *     dQ  = dS K       dK += dS' Q
 *
 * Each query head sums its dK and dV in its own buffer. The heads of a group are then added in
 * order, so the bits do not depend on which thread did which work. */
#include <math.h>

#include "devices/cpu/attention.h"

/* Pack rows of one head, [count, D]. pack_left: as a left side, in panels of MR rows. pack_rows: as
 * a right side, in panels of NR rows with depth D. pack_columns: panels of D's columns with depth
 * count. */
static void pack_left(const struct operand *rows, int64_t count, int64_t D, float *out)
{
    for (int64_t i = 0; i < count; i += MR)
        pack_panel(rows, i, count - i < MR ? count - i : MR, MR, 0, D, out + i * D);
}

static void pack_right_rows(const struct operand *rows, int64_t count, int64_t D, float *out)
{
    pack_panel(rows, 0, count, NR, 0, D, out);
}

static void pack_right_columns(const struct operand *rows, int64_t count, int64_t D, float *out)
{
    struct operand turned = *rows;
    turned.by_depth = true;
    for (int64_t d = 0; d < D; d += NR)
        pack_panel(&turned, d, D - d < NR ? D - d : NR, panel_width(D - d), 0, count, out + d * count);
}

/* A left side: element (i,k) is at a[i*row + k*step]; groups of MR rows are `panel` apart. */
struct left {
    const float *a;
    int64_t row, step, panel;
};

/* c [M,N] = beta c + alpha left right. right: panels packed to depth `full`, of which [k0, k0+K) is
 * used. */
static void multiply(const struct left *l, int64_t M, const float *right, int64_t full, int64_t k0, int64_t K, int64_t N,
                     float alpha, float beta, float *c, int64_t ldc)
{
    for (int64_t n = 0; n < N; n += NR) {
        int64_t width = panel_width(N - n), columns = N - n < NR ? N - n : NR;
        for (int64_t i = 0; i < M; i += MR)
            tune_cpu_tile(width, K, l->a + i / MR * l->panel, l->row, l->step, right + n * full + k0 * width, alpha, beta,
                          c + i * ldc + n, ldc, M - i < MR ? M - i : MR, columns);
    }
}

/* Buffers in a thread's working memory. Forward uses the first five only. */
struct room {
    /* S' [keys, NR]; K as a left side; V as a right side, in backward as a left side */
    float *scores, *kept, *value;
    float *query, *out; /* [D, NR]; output of a block [NR, D] before rounding */
    float *dscores, *key, *query_columns, *dout, *dout_columns;
};

/* Total size of the buffers in floats. work NULL: compute the size only. */
static int64_t rooms(int64_t T, int64_t width, float *work, bool backward, struct room *r)
{
    int64_t keys = up(T, MR), D = up(width, VL), at = 0;
    float **places[] = {&r->scores, &r->kept, &r->value, &r->query, &r->out,
                        &r->dscores, &r->key, &r->query_columns, &r->dout, &r->dout_columns};
    int64_t sizes[] = {keys * NR, keys * D, keys * D, NR * D, NR * D, keys * NR, keys * D, NR * D, NR * D, NR * D};
    for (int i = 0; i < (backward ? 10 : 5); i++) {
        *places[i] = work ? work + at : NULL;
        at += up(sizes[i], 16);
    }
    return at;
}

int64_t tune_cpu_attention_floats(int64_t keys, int64_t D)
{
    struct room r;
    return rooms(keys, D, NULL, true, &r);
}

int64_t tune_cpu_attention_sums(int64_t B, int64_t T, int64_t H, int64_t D)
{
    int64_t n;
    return __builtin_mul_overflow(2 * B, T, &n) || __builtin_mul_overflow(n, H, &n) || __builtin_mul_overflow(n, D, &n) ? INT64_MAX : n;
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
    return s->first ? s->first[b * s->T + q] : 0;
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
        p->keys = s->keys ? s->keys[p->b] : s->k->shape[1];
        p->ahead = s->begin ? s->begin[p->b] : 0;
        return true;
    }
    p->T = s->first ? 0 : s->T;
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
    block->k0 = block->first[0] / MR * MR; /* first never decreases along a row */
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

/* Replace the scores of keys [k0,k1) by exp(score - largest). Also gives sum and largest by
 * query. */
static void softmax(const struct block *block, float *scores, float *largest, float *sum)
{
    int from, to = 0;
    int64_t k0 = block->k0, k1 = block->k1;
    for (int j = 0; j < NR; j++) {
        largest[j] = -INFINITY;
        sum[j] = 0;
    }
    for (int64_t key = k0; key < k1; key++) {
        float *x = scores + (key - k0) * NR;
        lanes(block, key, &from, &to);
        blank(x, from, to, -INFINITY);
        for (int j = 0; j < NR; j++)
            largest[j] = x[j] > largest[j] ? x[j] : largest[j];
    }
    to = 0;
    for (int64_t key = k0; key < k1; key++) {
        float *x = scores + (key - k0) * NR;
#pragma omp simd
        for (int j = 0; j < NR; j++)
            x[j] = tune_cpu_exp(x[j] - largest[j]);
        lanes(block, key, &from, &to);
        blank(x, from, to, 0);
        for (int j = 0; j < NR; j++)
            sum[j] += x[j];
    }
}

static void forward_part(const struct attention *s, struct tune_tensor *out, float *lse, const struct part *part, int64_t h,
                         float *work)
{
    int64_t n = part->keys, D = s->D, width = s->H * D, kv = h / (s->H / s->K);
    bool narrow = s->q->dtype == TUNE_BF16; /* operands of products are rounded, sums are not */
    struct room r;
    struct operand k = head(s->k, part->b, part->k, kv), v = head(s->v, part->b, part->k, kv);
    rooms(n, D, work, false, &r); /* buffers sized for this part, so that they stay in cache */
    pack_left(&k, n, D, r.kept);
    pack_right_columns(&v, n, D, r.value);
    for (int64_t q0 = 0; q0 < part->T; q0 += NR) {
        struct block block;
        open_block(&block, s, part, q0);
        int64_t rows = block.rows, k0 = block.k0, k1 = block.k1;
        struct operand q = head(s->q, part->b, part->q + q0, h);
        float largest[NR], sum[NR];
        pack_right_rows(&q, rows, D, r.query);
        struct left keys = {r.kept + k0 * D, 1, MR, MR * D}, p = {r.scores, 1, NR, MR};
        multiply(&keys, k1 - k0, r.query, D, 0, D, NR, s->scale, 0, r.scores, NR);
        softmax(&block, r.scores, largest, sum);
        if (narrow)
            tune_cpu_round(r.scores, (k1 - k0) * NR);
        multiply(&p, rows, r.value, n, k0, k1 - k0, D, 1, 0, r.out, D);
        for (int64_t j = 0; j < rows; j++) {
            int64_t row = part->b * s->T + part->q + q0 + j, at = row * width + h * D;
            float *o = tune_cpu_place(out, at, r.out + j * D), inverse = 1 / sum[j];
            for (int64_t i = 0; i < D; i++)
                o[i] = r.out[j * D + i] * inverse;
            tune_cpu_out(out, at, D, o);
            lse[row * s->H + h] = largest[j] + logf(sum[j]);
        }
    }
}

static void forward_head(const struct attention *s, struct tune_tensor *out, float *lse, int64_t b, int64_t h, float *work)
{
    struct part part = {.b = b};
    while (next_part(s, &part))
        forward_part(s, out, lse, &part, h, work);
}

int tune_cpu_attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse, const struct tune_tensor *q,
                               const struct tune_tensor *k, const struct tune_tensor *v, const struct tune_tensor *first,
                               const struct tune_tensor *keys, const struct tune_tensor *begin, struct tune_attention how)
{
    struct attention s = attention(q, k, v, first, &how);
    s.keys = tune_cpu_data(keys);
    s.begin = tune_cpu_data(begin);
    if (is_cache(&s) && s.T <= FEW_QUERIES)
        return tune_cpu_few_queries(dev, &s, out, tune_cpu_data(lse));
    if (tune_cpu_reserve(dev, tune_cpu_attention_floats(k->shape[1], s.D)) < 0)
        return -1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(dev->threads)
    for (int64_t task = 0; task < s.B * s.H; task++)
        forward_head(&s, out, tune_cpu_data(lse), task / s.H, task % s.H, tune_cpu_work(dev));
    return 0;
}

struct backward {
    struct attention s;
    struct tune_tensor *dq, *dk, *dv;
    float *sums; /* [B, H, 2, T, D]: dK and dV of each query head */
    const struct tune_tensor *dout, *out;
    const float *lse;
};

/* Replace S' in p by P', and dP' in ds by dS'. */
static void score_gradient(const struct block *block, float scale, float *p, float *ds, const float *lse, const float *delta)
{
    int from, to = 0;
    for (int64_t key = block->k0; key < block->k1; key++, p += NR, ds += NR) {
#pragma omp simd
        for (int j = 0; j < NR; j++) {
            p[j] = tune_cpu_exp(p[j] - lse[j]);
            ds[j] = p[j] * (ds[j] - delta[j]) * scale;
        }
        lanes(block, key, &from, &to);
        blank(p, from, to, 0);
        blank(ds, from, to, 0);
    }
}

/* lse and delta of a block's queries, from `row` on. Lanes after the last query are unused. */
static void query_sums(const struct backward *w, int64_t row, int64_t rows, int64_t h, const struct room *r, float *lse,
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

/* Backward of one part. dk, dv: those of the head, from the part's first row on. */
static void backward_part(const struct backward *w, const struct part *part, int64_t h, float *dk, float *dv, float *work)
{
    const struct attention *s = &w->s;
    int64_t T = part->T, D = s->D, kv = h / (s->H / s->K), width = s->H * D, apart = position_stride(w->dq);
    bool f32 = w->dq->dtype == TUNE_F32;
    struct room r;
    struct operand k = head(s->k, part->b, part->k, kv), v = head(s->v, part->b, part->k, kv);
    rooms(T, D, work, true, &r);
    memset(dk, 0, (size_t)(T * D) * 4);
    memset(dv, 0, (size_t)(T * D) * 4);
    pack_left(&k, T, D, r.kept);
    pack_left(&v, T, D, r.value);
    pack_right_columns(&k, T, D, r.key);
    for (int64_t q0 = 0; q0 < T; q0 += NR) {
        struct block block;
        open_block(&block, s, part, q0);
        int64_t rows = block.rows, k0 = block.k0, n = block.k1 - k0, row = part->b * s->T + part->q + q0;
        int64_t from = row * width + h * D, at = head_at(w->dq, part->b, part->q + q0, h);
        struct operand q = head(s->q, part->b, part->q + q0, h);
        struct operand g = {(const char *)tune_cpu_data(w->dout) + from * (f32 ? 4 : 2), w->dout->dtype, width, false};
        float lse[NR], delta[NR];
        query_sums(w, row, rows, h, &r, lse, delta);
        pack_right_rows(&q, rows, D, r.query);
        pack_right_rows(&g, rows, D, r.dout);
        pack_right_columns(&q, rows, D, r.query_columns);
        pack_right_columns(&g, rows, D, r.dout_columns);
        struct left keys = {r.kept + k0 * D, 1, MR, MR * D}, values = {r.value + k0 * D, 1, MR, MR * D};
        struct left p = {r.scores, NR, 1, MR * NR}, ds = {r.dscores, NR, 1, MR * NR}, turned = {r.dscores, 1, NR, MR};
        multiply(&keys, n, r.query, D, 0, D, NR, s->scale, 0, r.scores, NR);
        multiply(&values, n, r.dout, D, 0, D, NR, 1, 0, r.dscores, NR);
        score_gradient(&block, s->scale, r.scores, r.dscores, lse, delta);
        if (!f32) {
            tune_cpu_round(r.scores, n * NR);
            tune_cpu_round(r.dscores, n * NR);
        }
        multiply(&p, n, r.dout_columns, rows, 0, rows, D, 1, 1, dv + k0 * D, D);
        multiply(&ds, n, r.query_columns, rows, 0, rows, D, 1, 1, dk + k0 * D, D);
        multiply(&turned, rows, r.key, T, k0, n, D, 1, 0, f32 ? (float *)tune_cpu_data(w->dq) + at : r.out, f32 ? apart : D);
        for (int64_t j = 0; j < rows && !f32; j++)
            tune_cpu_out(w->dq, at + j * apart, D, r.out + j * D);
    }
}

static void backward_head(const struct backward *w, int64_t b, int64_t h, float *work)
{
    const struct attention *s = &w->s;
    int64_t size = s->T * s->D;
    float *dk = w->sums + (b * s->H + h) * 2 * size;
    struct part part = {.b = b};
    while (next_part(s, &part))
        backward_part(w, &part, h, dk + part.q * s->D, dk + size + part.q * s->D, work);
}

/* dK (t even) or dV of a key/value head: the sums of its query heads, added in order. */
static void add_group(const struct backward *w, int64_t b, int64_t kv, int64_t t, float *work)
{
    const struct attention *s = &w->s;
    int64_t D = s->D, T = s->T, group = s->H / s->K;
    for (int64_t which = 0; which < 2; which++) {
        struct tune_tensor *to = which ? w->dv : w->dk;
        int64_t at = head_at(to, b, t, kv);
        float *sum = tune_cpu_place(to, at, work);
        for (int64_t g = 0; g < group; g++) {
            const float *part = w->sums + (((b * s->H + kv * group + g) * 2 + which) * T + t) * D;
            for (int64_t i = 0; i < D; i++)
                sum[i] = g == 0 ? part[i] : sum[i] + part[i];
        }
        tune_cpu_out(to, at, D, sum);
    }
}

int tune_cpu_attention_backward(struct tune_device *dev, struct tune_tensor *dq, struct tune_tensor *dk, struct tune_tensor *dv,
                                const struct tune_tensor *dout, const struct tune_tensor *q, const struct tune_tensor *k,
                                const struct tune_tensor *v, const struct tune_tensor *out, const struct tune_tensor *lse,
                                const struct tune_tensor *first, struct tune_attention how)
{
    struct attention s = attention(q, k, v, first, &how);
    struct backward w = {s, dq, dk, dv, tune_cpu_sums(dev, tune_cpu_attention_sums(s.B, s.T, s.H, s.D)), dout, out, tune_cpu_data(lse)};
    if (!w.sums || tune_cpu_reserve(dev, tune_cpu_attention_floats(s.T, s.D)) < 0)
        return -1;
#pragma omp parallel num_threads(dev->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < s.B * s.H; task++)
            backward_head(&w, task / s.H, task % s.H, tune_cpu_work(dev));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < s.B * s.T; row++)
            for (int64_t kv = 0; kv < s.K; kv++)
                add_group(&w, row / s.T, kv, row % s.T, tune_cpu_work(dev));
    }
    return 0;
}
