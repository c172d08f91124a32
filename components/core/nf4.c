/* nf4.c - 4-bit NormalFloat. The Makefile compiles it without fused multiply-adds, so that products
 * are rounded before sums. */
#include "core/nf4.h"

#include <stdlib.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/error.h"
#include "core/float16.h"
#include "core/nf4_levels.h"

enum { BLOCK = TUNE_NF4_BLOCK, BLOCKS = TUNE_NF4_BLOCKS };
#define SMALLEST 1e-38f /* smallest divisor of a block, so that its reciprocal is finite */

static int64_t blocks_of(int64_t count, int64_t block)
{
    return count / block + (count % block != 0);
}

static int64_t lines(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

int64_t tune_nf4_bytes(int64_t count)
{
    if (count < 0 || count > INT64_MAX / 4)
        return tune_error_set("NF4: no memory holds %lld numbers", (long long)count);
    int64_t blocks = blocks_of(count, BLOCK);
    return lines(count / 2 + count % 2) + lines(blocks) + lines(4 * blocks_of(blocks, BLOCKS));
}

struct tune_nf4_layout tune_nf4_layout(int64_t count)
{
    int64_t absmax = lines(count / 2 + count % 2);
    return (struct tune_nf4_layout){0, absmax, absmax + lines(blocks_of(count, BLOCK))};
}

struct tune_nf4 tune_nf4_at(const void *memory, int64_t count, float offset)
{
    const uint8_t *at = memory;
    struct tune_nf4_layout l = tune_nf4_layout(count);
    return (struct tune_nf4){at, at + l.absmax, (const float *)(const void *)(at + l.absmax2), offset, count, NULL};
}

/* ---- writing ---- */

int tune_nf4_begin(struct tune_nf4_writer *w, const char *name, void *memory, int64_t count)
{
    int64_t blocks = blocks_of(count, BLOCK);
    struct tune_nf4_layout l = tune_nf4_layout(count);
    memset(w, 0, sizeof *w);
    if (tune_nf4_bytes(count) < 0)
        return -1;
    w->name = name;
    w->codes = memory;
    w->absmax = w->codes + l.absmax;
    w->absmax2 = (float *)(void *)(w->codes + l.absmax2);
    w->count = count;
    w->magnitudes = calloc((size_t)blocks + 1, sizeof *w->magnitudes);
    if (w->magnitudes)
        return 0;
    return tune_error_no_memory("quantising %s: %lld numbers", name, (long long)count);
}

void tune_nf4_abandon(struct tune_nf4_writer *w)
{
    free(w->magnitudes);
    memset(w, 0, sizeof *w);
}

/* The largest magnitude of n values; infinity if a value is not finite. */
static float largest(const float *x, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t magnitude = tune_float_bits(x[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    return tune_float_from_bits(most < 0x7f800000 ? most : 0x7f800000);
}

/* Scale n values by their absmax. A full block multiplies by the reciprocal; a last block that is
 * not full divides. This follows the published code. *magnitude is then at least SMALLEST. */
static void scale(const float *x, int64_t n, int64_t whole, float *magnitude, float *scaled)
{
    float divisor = *magnitude > SMALLEST ? *magnitude : SMALLEST, factor = 1 / divisor;
    if (n < whole)
        *magnitude = divisor;
    for (int64_t i = 0; i < n; i++) {
        float s = n < whole ? x[i] / divisor : x[i] * factor;
        s = s < -1 ? -1 : s;
        scaled[i] = s > 1 ? 1 : s;
    }
}

/* Quantize a block of n values; only the last block has fewer than 64. Ties take the lower
 * level. */
static int quantise(struct tune_nf4_writer *w, const float *x, int64_t n)
{
    float scaled[BLOCK] = {0}, bounds[15], *magnitude = w->magnitudes + w->at / BLOCK;
    int32_t code[BLOCK];
    *magnitude = largest(x, n);
    if (tune_float_bits(*magnitude) >= 0x7f800000)
        return tune_error_set("%s: cannot be quantised to NF4: a number of %lld to %lld is infinite or not a number",
                              w->name, (long long)w->at, (long long)(w->at + n - 1));
    scale(x, n, BLOCK, magnitude, scaled);
    for (int b = 0; b < 15; b++)
        bounds[b] = (levels4[b] + levels4[b + 1]) / 2;
    for (int i = 0; i < BLOCK; i++)
        code[i] = 0;
    for (int b = 0; b < 15; b++)
        for (int i = 0; i < BLOCK; i++)
            code[i] += scaled[i] > bounds[b];
    uint8_t *to = w->codes + w->at / 2;
    for (int64_t i = 0; i < n; i += 2)
        /* the padding after an odd count is the level of zero */
        to[i / 2] = (uint8_t)(code[i] << 4 | code[i + 1]);
    w->at += n;
    return 0;
}

int tune_nf4_write(struct tune_nf4_writer *w, const float *from, int64_t n)
{
    int status = n >= 0 && n <= w->count - w->at - w->held ? 0 : -1;
    if (status < 0)
        tune_error_set("%s: more numbers for NF4 than the %lld announced", w->name ? w->name : "a tensor", (long long)w->count);
    while (status == 0 && n > 0) {
        int64_t left = w->count - w->at, whole = left < BLOCK ? left : BLOCK, take = whole - w->held < n ? whole - w->held : n;
        if (take == whole) {
            status = quantise(w, from, whole);
        } else {
            memcpy(w->block + w->held, from, (size_t)take * sizeof *from);
            w->held += take;
            if (w->held == whole) {
                w->held = 0;
                status = quantise(w, w->block, whole);
            }
        }
        from += take;
        n -= take;
    }
    if (status < 0)
        tune_nf4_abandon(w);
    return status;
}

/* The level nearest to x; ties take the lower one. */
static uint8_t nearest8(float x)
{
    int low = 0, high = 255; /* the result is in low .. high */
    while (low < high) {
        int middle = (low + high) / 2;
        if (x > (level8(middle) + level8(middle + 1)) / 2)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint8_t)low;
}

int tune_nf4_finish(struct tune_nf4_writer *w, struct tune_nf4 *q)
{
    int64_t blocks = blocks_of(w->count, BLOCK);
    double sum = 0;
    if (!w->magnitudes || w->at < w->count) {
        tune_error_set("%s: %lld numbers for NF4, %lld announced", w->name ? w->name : "a tensor", (long long)(w->at + w->held),
                       (long long)w->count);
        tune_nf4_abandon(w);
        return -1;
    }
    for (int64_t b = 0; b < blocks; b++)
        sum += w->magnitudes[b];
    float mean = blocks > 0 ? (float)(sum / (double)blocks) : 0, scaled[BLOCKS];
    for (int64_t b = 0; b < blocks; b += BLOCKS) {
        int64_t n = blocks - b < BLOCKS ? blocks - b : BLOCKS;
        float *m = w->magnitudes + b, *most = w->absmax2 + b / BLOCKS;
        for (int64_t i = 0; i < n; i++)
            m[i] -= mean;
        *most = largest(m, n);
        scale(m, n, BLOCKS, most, scaled);
        for (int64_t i = 0; i < n; i++)
            w->absmax[b + i] = nearest8(scaled[i]);
    }
    *q = (struct tune_nf4){w->codes, w->absmax, w->absmax2, mean, w->count, NULL};
    tune_nf4_abandon(w);
    return 0;
}

/* ---- reading ---- */

static float level_at(const uint8_t *codes, int64_t i)
{
    return levels4[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4];
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/* The bytes of levels4: the lowest of each level, the next, ... */
static const uint8_t levels4_bytes[4][16] = {
    {0x00, 0xb1, 0x30, 0xa0, 0x4d, 0x3f, 0x71, 0x00,
     0xff, 0xe3, 0xdd, 0x3a, 0xb8, 0xab, 0xb3, 0x00},
    {0x00, 0x39, 0x6b, 0x32, 0xa2, 0x35, 0x78, 0x00,
     0xfa, 0xca, 0x04, 0x03, 0xa4, 0x07, 0x13, 0x00},
    {0x80, 0x32, 0x06, 0xca, 0x91, 0x3d, 0xba, 0x00,
     0xa2, 0x24, 0x7c, 0xad, 0xe1, 0x10, 0x39, 0x80},
    {0xbf, 0xbf, 0xbf, 0xbe, 0xbe, 0xbe, 0xbd, 0x00,
     0x3d, 0x3e, 0x3e, 0x3e, 0x3e, 0x3f, 0x3f, 0x3f},
};

/* 32 values at a time: a byte shuffle looks up one byte of 32 levels. The halves of a register get
 * the codes in the order in which unpacking puts the levels in a row. Returns how many were done. */
static int64_t expand_32(const uint8_t *codes, int64_t n, float scale, float *out)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13,
                                            2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15);
    const __m256i even = _mm256_set1_epi16(0x000f), odd = _mm256_set1_epi16(0x0f00);
    __m256 every = _mm256_set1_ps(scale);
    __m256i level[4], byte[4];
    int64_t i = 0;
    for (int p = 0; p < 4; p++)
        level[p] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)levels4_bytes[p]));
    for (; i + 32 <= n; i += 32) {
        __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(codes + i / 2)));
        both = _mm256_shuffle_epi8(both, spread);
        __m256i index = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(both, 4), even),
                                        _mm256_and_si256(both, odd));
        for (int p = 0; p < 4; p++)
            byte[p] = _mm256_shuffle_epi8(level[p], index);
        __m256i low01 = _mm256_unpacklo_epi8(byte[0], byte[1]);
        __m256i low23 = _mm256_unpacklo_epi8(byte[2], byte[3]);
        __m256i high01 = _mm256_unpackhi_epi8(byte[0], byte[1]);
        __m256i high23 = _mm256_unpackhi_epi8(byte[2], byte[3]);
        __m256i four[4] = {_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
                           _mm256_unpacklo_epi16(high01, high23),
                           _mm256_unpackhi_epi16(high01, high23)};
        for (int j = 0; j < 4; j++)
            _mm256_storeu_ps(out + i + 8 * j, _mm256_mul_ps(_mm256_castsi256_ps(four[j]), every));
    }
    return i;
}
#endif

/* Dequantize n values from the start of a byte. A byte gives two indices: 8 bytes are widened to 64
 * bits each, and one half is shifted down, the other up. The permutation ignores the other bits, so
 * no mask is needed. */
static void expand(const uint8_t *codes, int64_t n, float scale, float *out)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    __m512 table = _mm512_loadu_ps(levels4), every = _mm512_set1_ps(scale);
    for (; i + 16 <= n; i += 16) {
        __m512i bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(codes + i / 2)));
        __m512i index = _mm512_or_si512(_mm512_srli_epi64(bytes, 4), _mm512_slli_epi64(bytes, 32));
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_permutexvar_ps(index, table), every));
    }
#elif defined(__AVX2__)
    i = expand_32(codes, n, scale, out);
    __m256 low = _mm256_loadu_ps(levels4), high = _mm256_loadu_ps(levels4 + 8), every = _mm256_set1_ps(scale);
    for (; i + 8 <= n; i += 8) {
        int32_t four;
        memcpy(&four, codes + i / 2, 4);
        __m256i bytes = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
        __m256i index = _mm256_or_si256(_mm256_srli_epi64(bytes, 4), _mm256_slli_epi64(bytes, 32));
        /* the sign selects the upper half of the levels */
        __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
        __m256 level = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index), upper);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(level, every));
    }
#endif
    for (; i < n; i++)
        out[i] = level_at(codes, i) * scale;
}

int tune_nf4_read(const struct tune_nf4 *q, int64_t at, int64_t n, float *out)
{
    while (n > 0) {
        for (; at >= q->count && q->below; q = q->below)
            at -= q->count;
        if (at < 0 || at >= q->count)
            return tune_error_set("NF4: numbers from %lld of %lld are asked for", (long long)at, (long long)q->count);
        int64_t block = at / BLOCK, end = (block + 1) * BLOCK < q->count ? (block + 1) * BLOCK : q->count;
        int64_t take = end - at < n ? end - at : n, odd = at % 2;
        float magnitude = level8(q->absmax[block]) * q->absmax2[block / BLOCKS] + q->offset;
        if (odd)
            out[0] = level_at(q->codes, at) * magnitude;
        expand(q->codes + (at + odd) / 2, take - odd, magnitude, out + odd);
        at += take;
        out += take;
        n -= take;
    }
    return 0;
}

struct tune_tensor tune_nf4_matrix(const struct tune_nf4_part *first, int64_t rows, int64_t columns)
{
    struct tune_tensor t = tune_tensor_2d(first->memory, TUNE_NF4, rows, columns);
    t.nf4 = first;
    return t;
}

bool tune_nf4_is_matrix(const struct tune_tensor *t)
{
    int64_t columns = t->shape[1], count = 0;
    int parts = 0;
    if (t->dtype != TUNE_NF4 || t->ndim != 2 || t->stride != 0 || !t->nf4 || columns <= 0)
        return false;
    for (const struct tune_nf4_part *q = t->nf4; q; q = q->below) {
        if (q->count % columns != 0 || ++parts > TUNE_NF4_PARTS)
            return false;
        count += q->count;
    }
    return count == t->shape[0] * columns;
}
