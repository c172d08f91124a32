/* gguf_blocks.c - quantisation of rows. The order of each sum is ggml's: its last bits count. */
#include "files/gguf_blocks.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/float16.h"

enum { SMALL = 32, LARGE = 256, PART = 16 }; /* numbers of a block, and of a part of Q6_K */
#define ZERO_BELOW 1e-15f                    /* a part of Q6_K with no larger number is all zeros */

static const struct tune_gguf_format formats[TUNE_GGUF_BLOCKS] = {
    [TUNE_GGUF_F32] = {"F32", 0, 1, 4},          [TUNE_GGUF_F16] = {"F16", 1, 1, 2},
    [TUNE_GGUF_BF16] = {"BF16", 30, 1, 2},       [TUNE_GGUF_Q8_0] = {"Q8_0", 8, SMALL, 34},
    [TUNE_GGUF_Q4_0] = {"Q4_0", 2, SMALL, 18},   [TUNE_GGUF_Q5_0] = {"Q5_0", 6, SMALL, 22},
    [TUNE_GGUF_Q5_1] = {"Q5_1", 7, SMALL, 24},   [TUNE_GGUF_Q6_K] = {"Q6_K", 14, LARGE, 210},
    [TUNE_GGUF_Q5_K] = {"Q5_K", 13, LARGE, 176}, [TUNE_GGUF_Q4_K] = {"Q4_K", 12, LARGE, 144},
};

const struct tune_gguf_format *tune_gguf_format(enum tune_gguf_block block)
{
    return &formats[block];
}

int64_t tune_gguf_row_bytes(enum tune_gguf_block block, int64_t columns)
{
    const struct tune_gguf_format *f = &formats[block];
    return columns >= 0 && columns <= INT64_MAX / LARGE && columns % f->numbers == 0
               ? columns / f->numbers * f->bytes
               : -1;
}

static void put16(uint8_t *to, uint16_t h)
{
    to[0] = (uint8_t)h;
    to[1] = (uint8_t)(h >> 8);
}

static int between(int low, int value, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Round to the nearest integer, ties to even, for |x| below 2^22. */
static int nearest(float x)
{
    return (int)(int32_t)(tune_float_bits(x + 0x1.8p23f) & 0x7fffff) - 0x400000;
}

/* The reciprocal of a scale; 0 if it has none. */
static float reciprocal(float d)
{
    float inverse = d != 0 ? 1.0f / d : 0;
    return isfinite(inverse) ? inverse : 0;
}

/* The number of the largest magnitude, the first of them. */
static float extreme(const float *x, int n)
{
    float most = 0, at = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > most) {
            most = fabsf(x[i]);
            at = x[i];
        }
    return at;
}

static void block_q8_0(const float *x, uint8_t *to)
{
    float d = fabsf(extreme(x, SMALL)) / 127, inverse = reciprocal(d);
    put16(to, tune_float_to_f16(d));
    for (int i = 0; i < SMALL; i++)
        to[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
}

/* Codes 0..2*half-1 of a symmetric block: the extreme number becomes -half. */
static void symmetric(const float *x, int half, uint8_t *to, int *code)
{
    float d = extreme(x, SMALL) / (float)-half, inverse = reciprocal(d);
    put16(to, tune_float_to_f16(d));
    for (int i = 0; i < SMALL; i++) {
        int c = (int)(x[i] * inverse + ((float)half + 0.5f));
        code[i] = c < 2 * half ? c : 2 * half - 1;
    }
}

static void block_q4_0(const float *x, uint8_t *to)
{
    int code[SMALL];
    symmetric(x, 8, to, code);
    for (int i = 0; i < SMALL / 2; i++)
        to[2 + i] = (uint8_t)(code[i] | code[i + SMALL / 2] << 4);
}

/* 32 codes of 5 bits: the fifth bits, then the low 4. */
static void pack_q5(const int *code, uint8_t *to)
{
    uint32_t high = 0;
    for (int i = 0; i < SMALL; i++)
        high |= (uint32_t)(code[i] >> 4) << i;
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(high >> 8 * i);
    for (int i = 0; i < SMALL / 2; i++)
        to[4 + i] = (uint8_t)((code[i] & 15) | (code[i + SMALL / 2] & 15) << 4);
}

static void block_q5_0(const float *x, uint8_t *to)
{
    int code[SMALL];
    symmetric(x, 16, to, code);
    pack_q5(code, to + 2);
}

static void block_q5_1(const float *x, uint8_t *to)
{
    int code[SMALL];
    float low = x[0], high = x[0];
    for (int i = 1; i < SMALL; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    float d = (high - low) / 31, inverse = reciprocal(d);
    put16(to, tune_float_to_f16(d));
    put16(to + 2, tune_float_to_f16(low));
    for (int i = 0; i < SMALL; i++)
        code[i] = (int)((x[i] - low) * inverse + 0.5f);
    pack_q5(code, to + 4);
}

/* ---- Q6_K ---- */

/* Integers -32..31 for the numbers of a part, at a reciprocal scale. Sets the sums of the
 * least-squares scale with weights x^2. */
static void fit_part(const float *x, float inverse, float *sum_xl, float *sum_ll)
{
    *sum_xl = *sum_ll = 0;
    for (int i = 0; i < PART; i++) {
        float l = (float)between(-32, nearest(inverse * x[i]), 31), w = x[i] * x[i];
        *sum_xl += w * x[i] * l;
        *sum_ll += w * l * l;
    }
}

/* The best scale of a part among 19 reciprocal ones around that which makes the extreme number -32.
 * codes: from 0 to 63. */
static float part_scale(const float *x, int8_t *codes)
{
    float most = extreme(x, PART), xl, ll;
    memset(codes, 0, PART);
    if (fabsf(most) < ZERO_BELOW)
        return 0;
    float chosen = -32 / most;
    fit_part(x, chosen, &xl, &ll);
    float scale = ll != 0 ? xl / ll : 0, best = scale * xl;
    for (int step = -9; step <= 9; step++) {
        float inverse = -(32 + 0.1f * (float)step) / most;
        if (step == 0)
            continue;
        fit_part(x, inverse, &xl, &ll);
        if (ll > 0 && xl * xl > best * ll) {
            scale = xl / ll;
            best = scale * xl;
            chosen = inverse;
        }
    }
    for (int i = 0; i < PART; i++)
        codes[i] = (int8_t)(32 + between(-32, nearest(chosen * x[i]), 31));
    return scale;
}

/* 256 codes of 6 bits: the low 4 bits, then the high 2. */
static void pack_q6(const int8_t *codes, uint8_t *low, uint8_t *high)
{
    for (int half = 0; half < 2; half++, codes += 128, low += 64, high += 32)
        for (int i = 0; i < 32; i++) {
            int a = codes[i], b = codes[i + 32], c = codes[i + 64], d = codes[i + 96];
            low[i] = (uint8_t)((a & 15) | (c & 15) << 4);
            low[i + 32] = (uint8_t)((b & 15) | (d & 15) << 4);
            high[i] = (uint8_t)(a >> 4 | b >> 4 << 2 | c >> 4 << 4 | d >> 4 << 6);
        }
}

static void block_q6_k(const float *x, uint8_t *to)
{
    enum { PARTS = LARGE / PART, SCALES = 192, D = 208 };
    int8_t codes[LARGE];
    float scales[PARTS], most = 0;
    for (int p = 0; p < PARTS; p++)
        scales[p] = part_scale(x + PART * p, codes + PART * p);
    most = extreme(scales, PARTS);
    if (fabsf(most) < ZERO_BELOW) {
        memset(to, 0, (size_t)formats[TUNE_GGUF_Q6_K].bytes);
        return;
    }
    float inverse = -128.f / most;
    uint16_t d = tune_float_to_f16(1 / inverse);
    for (int p = 0; p < PARTS; p++) {
        int s = nearest(inverse * scales[p]);
        to[SCALES + p] = (uint8_t)(int8_t)(s < 127 ? s : 127);
        float step = tune_f16_to_float(d) * (float)(int8_t)to[SCALES + p];
        for (int i = PART * p; i < PART * (p + 1) && step != 0; i++)
            codes[i] = (int8_t)(32 + between(-32, nearest(x[i] / step), 31));
    }
    pack_q6(codes, to, to + 128);
    put16(to + D, d);
}

/* ---- Q4_K, Q5_K ---- */

/* A part: x is about scale * code + low, codes from 0 to 15 or 31. low is at most 0. */
struct line {
    float scale, low, error;
    uint8_t codes[SMALL];
};

static float line_error(const float *x, const float *w, const struct line *l)
{
    float error = 0;
    for (int i = 0; i < SMALL; i++) {
        float miss = l->scale * (float)l->codes[i] + l->low - x[i];
        error += w[i] * (miss * miss);
    }
    return error;
}

/* The reciprocal scales that are tried make the largest code `first` more than most, and each a
 * tenth more than the one before. */
struct search {
    int most, steps;
    float first;
};

/* The line through the codes of a reciprocal scale that has the least weighted squared error.
 * false: there is none. sum_w, sum_x: of the weights, and of weights times numbers. */
static bool fit_line(const float *x, const float *w, int most, float inverse, float low,
                     float sum_w, float sum_x, struct line *l)
{
    float sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (int i = 0; i < SMALL; i++) {
        int c = between(0, nearest(inverse * (x[i] - low)), most);
        float code = (float)c;
        l->codes[i] = (uint8_t)c;
        sum_l += w[i] * code;
        sum_ll += w[i] * code * code;
        sum_xl += w[i] * code * x[i];
    }
    float det = sum_w * sum_ll - sum_l * sum_l;
    if (!(det > 0))
        return false;
    l->scale = (sum_w * sum_xl - sum_x * sum_l) / det;
    l->low = (sum_ll * sum_x - sum_l * sum_xl) / det;
    if (l->low > 0) {
        l->low = 0;
        l->scale = sum_xl / sum_ll;
    }
    l->error = line_error(x, w, l);
    return true;
}

/* The best line for 32 numbers. Each number weighs as much as its magnitude and the root
 * of the mean square. */
static void best_line(const float *x, const struct search *try, struct line *best)
{
    float w[SMALL], square = 0, low = x[0], high = x[0], sum_w, sum_x;
    for (int i = 0; i < SMALL; i++)
        square += x[i] * x[i];
    float root = sqrtf(square / SMALL);
    for (int i = 0; i < SMALL; i++)
        w[i] = root + fabsf(x[i]);
    sum_w = w[0];
    sum_x = sum_w * x[0];
    for (int i = 1; i < SMALL; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    low = low > 0 ? 0 : low;
    *best = (struct line){.low = low};
    float most = (float)try->most, inverse = most / (high - low);
    if (high == low || !isfinite(inverse))
        return;
    best->scale = 1 / inverse;
    for (int i = 0; i < SMALL; i++)
        best->codes[i] = (uint8_t)between(0, nearest(inverse * (x[i] - low)), try->most);
    best->error = line_error(x, w, best);
    for (int step = 0; step <= try->steps; step++) {
        struct line l;
        inverse = (try->first + 0.1f * (float)step + most) / (high - best->low);
        if (fit_line(x, w, try->most, inverse, best->low, sum_w, sum_x, &l) && l.error < best->error)
            *best = l;
    }
}

enum { PARTS = LARGE / SMALL };

/* The lines of all parts, and the first 16 bytes of the block. */
static void fit_lines(const float *x, const struct search *try, uint8_t *to, struct line *lines)
{
    float scale = 0, depth = 0; /* the largest of the scales, and of the negated lows */
    uint8_t *packed = to + 4, s[PARTS], t[PARTS];
    for (int p = 0; p < PARTS; p++) {
        best_line(x + SMALL * p, try, &lines[p]);
        scale = lines[p].scale > scale ? lines[p].scale : scale;
        depth = -lines[p].low > depth ? -lines[p].low : depth;
    }
    float inverse_scale = scale > 0 ? 63.f / scale : 0,
          inverse_depth = depth > 0 ? 63.f / depth : 0;
    uint16_t d = tune_float_to_f16(scale / 63.f), m = tune_float_to_f16(depth / 63.f);
    put16(to, d);
    put16(to + 2, m);
    memset(packed, 0, 12);
    for (int p = 0; p < PARTS; p++) {
        uint8_t a = (uint8_t)nearest(inverse_scale * lines[p].scale),
                b = (uint8_t)nearest(inverse_depth * -lines[p].low);
        s[p] = a < 63 ? a : 63;
        t[p] = b < 63 ? b : 63;
    }
    for (int p = 0; p < 4; p++) { /* the last four have their high bits above the first four */
        packed[p] = (uint8_t)(s[p] | s[p + 4] >> 4 << 6);
        packed[p + 4] = (uint8_t)(t[p] | t[p + 4] >> 4 << 6);
        packed[p + 8] = (uint8_t)((s[p + 4] & 15) | (t[p + 4] & 15) << 4);
    }
    for (int p = 0; p < PARTS; p++) {
        float step = tune_f16_to_float(d) * (float)s[p], low = tune_f16_to_float(m) * (float)t[p];
        for (int i = 0; i < SMALL && step != 0; i++)
            lines[p].codes[i] = (uint8_t)between(0, nearest((x[SMALL * p + i] + low) / step), try->most);
    }
}

static void block_q4_k(const float *x, uint8_t *to)
{
    static const struct search try = {15, 20, -1.f};
    struct line lines[PARTS];
    uint8_t *codes = to + 16;
    fit_lines(x, &try, to, lines);
    for (int p = 0; p < PARTS; p += 2)
        for (int i = 0; i < SMALL; i++)
            *codes++ = (uint8_t)(lines[p].codes[i] | lines[p + 1].codes[i] << 4);
}

static void block_q5_k(const float *x, uint8_t *to)
{
    static const struct search try = {31, 15, -0.5f};
    struct line lines[PARTS];
    uint8_t *high = to + 16, *low = to + 48;
    fit_lines(x, &try, to, lines);
    for (int i = 0; i < SMALL; i++) {
        high[i] = 0;
        for (int p = 0; p < PARTS; p++)
            high[i] |= (uint8_t)(lines[p].codes[i] >> 4 << p);
    }
    for (int p = 0; p < PARTS; p += 2)
        for (int i = 0; i < SMALL; i++)
            *low++ = (uint8_t)((lines[p].codes[i] & 15) | (lines[p + 1].codes[i] & 15) << 4);
}

/* ---- rows ---- */

static void float_row(enum tune_gguf_block block, const float *x, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        if (block == TUNE_GGUF_F32) {
            uint32_t bits = tune_float_bits(x[i]);
            put16(to + 4 * i, (uint16_t)bits);
            put16(to + 4 * i + 2, (uint16_t)(bits >> 16));
        } else {
            put16(to + 2 * i,
                  block == TUNE_GGUF_F16 ? tune_float_to_f16(x[i]) : tune_float_to_bf16(x[i]));
        }
}

/* True if all numbers are below 1e9, which is beyond what any of the blocks can hold. */
static bool all_small(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) < 1e9f))
            return false;
    return true;
}

/* True if all scales of a block are finite: large numbers have scales beyond F16. */
static bool has_finite_scales(enum tune_gguf_block block, const uint8_t *b)
{
    static const struct { int at, count; } scales[TUNE_GGUF_BLOCKS] = {
        [TUNE_GGUF_Q8_0] = {0, 1}, [TUNE_GGUF_Q4_0] = {0, 1}, [TUNE_GGUF_Q5_0] = {0, 1}, [TUNE_GGUF_Q5_1] = {0, 2},
        [TUNE_GGUF_Q6_K] = {208, 1}, [TUNE_GGUF_Q5_K] = {0, 2}, [TUNE_GGUF_Q4_K] = {0, 2}};
    for (int k = 0; k < scales[block].count; k++)
        if ((b[scales[block].at + 2 * k + 1] & 0x7c) == 0x7c)
            return false;
    return true;
}

int tune_gguf_rows(enum tune_gguf_block block, const float *x, int64_t rows, int64_t columns,
                   void *out)
{
    typedef void quantiser(const float *, uint8_t *);
    static quantiser *const quantise[TUNE_GGUF_BLOCKS] = {[TUNE_GGUF_Q8_0] = block_q8_0,
                                                          [TUNE_GGUF_Q4_0] = block_q4_0,
                                                          [TUNE_GGUF_Q5_0] = block_q5_0,
                                                          [TUNE_GGUF_Q5_1] = block_q5_1,
                                                          [TUNE_GGUF_Q6_K] = block_q6_k,
                                                          [TUNE_GGUF_Q5_K] = block_q5_k,
                                                          [TUNE_GGUF_Q4_K] = block_q4_k};
    const struct tune_gguf_format *f = &formats[block];
    int64_t bytes = tune_gguf_row_bytes(block, columns), bad = 0;
#pragma omp parallel for reduction(+ : bad) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * columns;
        uint8_t *to = (uint8_t *)out + r * bytes;
        if (!quantise[block])
            float_row(block, row, columns, to);
        else if (!all_small(row, columns))
            bad++;
        else
            for (int64_t b = 0; b < columns / f->numbers; b++, to += f->bytes) {
                quantise[block](row + b * f->numbers, to);
                bad += !has_finite_scales(block, to);
            }
    }
    return bad ? -1 : 0;
}
