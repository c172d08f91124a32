/* test_gguf_blocks.c - blocks of hand-made rows are the bytes that the formats ask for. Blocks of any row mean numbers near it:
 * they are read by plain loops below. tests/peers/gguf_llama_peer.py compares the bits with ggml's. */
#include "test.h"

#include <math.h>

#include "core/float16.h"
#include "files/gguf_blocks.h"

enum { ROW = 1024, ROWS = 8 };

static uint32_t state = 1;

/* A number in (-1, 1) with more small ones than large ones. */
static float draw(void)
{
    state = state * 1664525u + 1013904223u;
    float u = (float)(state >> 8) / 8388608.0f - 1;
    return u * u * u;
}

static float half_at(const uint8_t *b)
{
    return tune_f16_to_float((uint16_t)(b[0] | b[1] << 8));
}

/* ---- plain readers of one block ---- */

static void read_q8_0(const uint8_t *b, float *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(b) * (float)(int8_t)b[2 + i];
}

static void read_q4_0(const uint8_t *b, float *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(b) * (float)((i < 16 ? b[2 + i] & 15 : b[2 + i - 16] >> 4) - 8);
}

static void read_q5_0(const uint8_t *b, float *y)
{
    uint32_t high = (uint32_t)b[2] | (uint32_t)b[3] << 8 | (uint32_t)b[4] << 16 | (uint32_t)b[5] << 24;
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? b[6 + i] & 15 : b[6 + i - 16] >> 4;
        y[i] = half_at(b) * (float)((low | (int)(high >> i & 1) << 4) - 16);
    }
}

static void read_q5_1(const uint8_t *b, float *y)
{
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? b[8 + i] & 15 : b[8 + i - 16] >> 4, high = b[4 + i / 8] >> (i % 8) & 1;
        y[i] = half_at(b) * (float)(low | high << 4) + half_at(b + 2);
    }
}

static void read_q6_k(const uint8_t *b, float *y)
{
    for (int i = 0; i < 256; i++) {
        int half = i / 128, in = i % 128, group = in / 32, at = in % 32;
        int low = b[64 * half + (group % 2) * 32 + at] >> (group / 2 * 4) & 15;
        int high = b[128 + 32 * half + at] >> (2 * group) & 3;
        y[i] = half_at(b + 208) * (float)(int8_t)b[192 + i / 16] * (float)((low | high << 4) - 32);
    }
}

/* Parts of 32 numbers have a scale and a minimum of 6 bits each. high: a fifth bit of each code; NULL: there is none. */
static void read_parts(const uint8_t *b, const uint8_t *high, const uint8_t *codes, float *y)
{
    const uint8_t *s = b + 4;
    for (int i = 0; i < 256; i++) {
        int p = i / 32, scale = p < 4 ? s[p] & 63 : (s[p + 4] & 15) | s[p - 4] >> 6 << 4;
        int low = p < 4 ? s[p + 4] & 63 : s[p + 4] >> 4 | s[p] >> 6 << 4;
        int code = (codes[p / 2 * 32 + i % 32] >> (p % 2 * 4) & 15) | (high ? (high[i % 32] >> p & 1) << 4 : 0);
        y[i] = half_at(b) * (float)scale * (float)code - half_at(b + 2) * (float)low;
    }
}

static void read_q4_k(const uint8_t *b, float *y)
{
    read_parts(b, NULL, b + 16, y);
}

static void read_q5_k(const uint8_t *b, float *y)
{
    read_parts(b, b + 16, b + 48, y);
}

static void read_row(enum tune_gguf_block block, const uint8_t *b, float *y)
{
    static void (*const readers[TUNE_GGUF_BLOCKS])(const uint8_t *, float *) = {
        [TUNE_GGUF_Q8_0] = read_q8_0, [TUNE_GGUF_Q4_0] = read_q4_0, [TUNE_GGUF_Q5_0] = read_q5_0, [TUNE_GGUF_Q5_1] = read_q5_1,
        [TUNE_GGUF_Q6_K] = read_q6_k, [TUNE_GGUF_Q5_K] = read_q5_k, [TUNE_GGUF_Q4_K] = read_q4_k};
    const struct tune_gguf_format *f = tune_gguf_format(block);
    for (int i = 0; i < ROW; i += f->numbers, b += f->bytes)
        if (readers[block])
            readers[block](b, y + i);
        else
            y[i] = block == TUNE_GGUF_F32 ? tune_float_from_bits((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24)
                   : block == TUNE_GGUF_F16 ? half_at(b) : tune_bf16_to_float((uint16_t)(b[0] | b[1] << 8));
}

/* ---- tests ---- */

static void hand_made(void **unused)
{
    (void)unused;
    float x[32] = {0};
    uint8_t b[34];
    x[0] = -127;
    x[1] = 63.5f; /* half a step: roundf goes away from zero */
    x[31] = 1;
    assert_ok(tune_gguf_rows(TUNE_GGUF_Q8_0, x, 1, 32, b));
    assert_memory_equal(b, "\x00\x3c\x81\x40\0", 5);
    assert_int_equal(b[33], 1);

    x[0] = 8; /* the extreme number becomes code 0: the scale is negative */
    x[1] = -7;
    x[16] = 2;
    x[31] = 0;
    assert_ok(tune_gguf_rows(TUNE_GGUF_Q4_0, x, 1, 32, b));
    assert_memory_equal(b, "\x00\xbc\x60\x8f\x88", 5);

    x[0] = -16;
    x[1] = 15;
    x[16] = 3;
    assert_ok(tune_gguf_rows(TUNE_GGUF_Q5_0, x, 1, 32, b));
    assert_memory_equal(b, "\x00\x3c\xfe\xff\xff\xff\x30\x0f\x00", 9);

    float y[2] = {1.00390625f, 65520}; /* a tie in BF16 goes to even; the first number that is infinite in F16 */
    assert_ok(tune_gguf_rows(TUNE_GGUF_BF16, y, 1, 2, b));
    assert_memory_equal(b, "\x80\x3f\x80\x47", 4);
    assert_ok(tune_gguf_rows(TUNE_GGUF_F16, y, 1, 2, b));
    assert_memory_equal(b, "\x04\x3c\x00\x7c", 4);
}

/* A grid that the format holds exactly comes back exactly. */
static void grids(void **unused)
{
    (void)unused;
    static const struct { enum tune_gguf_block block; int low, high; } grid[] = {
        {TUNE_GGUF_Q8_0, -127, 127}, {TUNE_GGUF_Q4_0, -8, 7}, {TUNE_GGUF_Q5_0, -16, 15}, {TUNE_GGUF_Q5_1, -5, 26},
        {TUNE_GGUF_Q6_K, -32, 31}, {TUNE_GGUF_Q5_K, 0, 31}, {TUNE_GGUF_Q4_K, 0, 15}};
    float x[ROW], y[ROW];
    uint8_t out[ROW * 4];
    for (size_t g = 0; g < sizeof grid / sizeof *grid; g++) {
        int step = grid[g].high - grid[g].low + 1;
        for (int i = 0; i < ROW; i++) /* each part of 16 numbers has the lowest one, or the highest for Q4_K */
            x[i] = i % 16 == 0 ? (float)(grid[g].low ? grid[g].low : grid[g].high) : (float)(grid[g].low + (i * 7) % step);
        assert_ok(tune_gguf_rows(grid[g].block, x, 1, ROW, out));
        read_row(grid[g].block, out, y);
        for (int i = 0; i < ROW; i++)
            if (fabsf(x[i] - y[i]) > 1e-3f * (float)step)
                fail_msg("%s: number %d is %g, read back as %g", tune_gguf_format(grid[g].block)->name, i, (double)x[i], (double)y[i]);
    }
}

/* The relative root mean square error of random rows lies between bounds: too small a one would be no quantisation. */
static void errors(void **unused)
{
    (void)unused;
    static const struct { double least, most; } bounds[TUNE_GGUF_BLOCKS] = {
        [TUNE_GGUF_F16] = {1e-4, 4e-4}, [TUNE_GGUF_BF16] = {1e-3, 3e-3}, [TUNE_GGUF_Q8_0] = {3e-3, 8e-3}, [TUNE_GGUF_Q4_0] = {4e-2, 1.2e-1},
        [TUNE_GGUF_Q5_0] = {2e-2, 6e-2}, [TUNE_GGUF_Q5_1] = {2e-2, 5e-2}, [TUNE_GGUF_Q6_K] = {8e-3, 3e-2}, [TUNE_GGUF_Q5_K] = {1.5e-2, 4.5e-2},
        [TUNE_GGUF_Q4_K] = {3e-2, 9e-2}};
    static float x[ROWS * ROW], y[ROW];
    static uint8_t out[ROWS * ROW * 4];
    for (int i = 0; i < ROWS * ROW; i++)
        x[i] = draw();
    for (int block = 0; block < TUNE_GGUF_BLOCKS; block++) {
        int64_t bytes = tune_gguf_row_bytes((enum tune_gguf_block)block, ROW);
        double error = 0, square = 0;
        assert_ok(tune_gguf_rows((enum tune_gguf_block)block, x, ROWS, ROW, out));
        for (int r = 0; r < ROWS; r++) {
            read_row((enum tune_gguf_block)block, out + r * bytes, y);
            for (int i = 0; i < ROW; i++) {
                error += ((double)y[i] - (double)x[r * ROW + i]) * ((double)y[i] - (double)x[r * ROW + i]);
                square += (double)x[r * ROW + i] * (double)x[r * ROW + i];
            }
        }
        error = sqrt(error / square);
        if (!(error >= bounds[block].least && error <= bounds[block].most))
            fail_msg("%s: relative error %.3g; expected %g to %g", tune_gguf_format((enum tune_gguf_block)block)->name, error,
                     bounds[block].least, bounds[block].most);
    }
}

/* Zeros, equal numbers, the smallest numbers; numbers that are not finite, or too large for a scale in F16. */
static void edges(void **unused)
{
    (void)unused;
    static const float values[] = {0, 1, -1, 1e-30f, 1e-44f, 60000, -3e4f};
    static float x[ROW], y[ROW];
    static uint8_t out[ROW * 4];
    for (int block = 0; block < TUNE_GGUF_BLOCKS; block++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            for (int i = 0; i < ROW; i++)
                x[i] = values[v];
            assert_ok(tune_gguf_rows((enum tune_gguf_block)block, x, 1, ROW, out));
            read_row((enum tune_gguf_block)block, out, y);
            for (int i = 0; i < ROW; i++)
                if (!(fabsf(y[i] - x[i]) <= 0.02f * fabsf(x[i]) + 1e-7f))
                    fail_msg("%s: %g, read back as %g", tune_gguf_format((enum tune_gguf_block)block)->name, (double)x[i], (double)y[i]);
        }
    for (int i = 0; i < ROW; i++)
        x[i] = 1e-44f; /* its scale has no reciprocal: all codes mean 0 */
    assert_ok(tune_gguf_rows(TUNE_GGUF_Q4_0, x, 1, ROW, out));
    assert_int_equal(out[2], 0x88);
    static const float large[] = {3e38f, -3e38f, 1e9f};
    for (size_t v = 0; v < sizeof large / sizeof *large; v++) {
        x[700] = large[v];
        x[701] = -large[v];
        for (int block = TUNE_GGUF_Q8_0; block < TUNE_GGUF_BLOCKS; block++)
            assert_int_equal(tune_gguf_rows((enum tune_gguf_block)block, x, 1, ROW, out), -1);
    }
    x[700] = 0;
    x[701] = -1e5f; /* Q5_1 keeps the lowest number in F16 */
    for (int block = TUNE_GGUF_Q8_0; block < TUNE_GGUF_BLOCKS; block++)
        assert_int_equal(tune_gguf_rows((enum tune_gguf_block)block, x, 1, ROW, out), block == TUNE_GGUF_Q5_1 ? -1 : 0);
    x[701] = 5e8f; /* too large for each scale */
    for (int block = TUNE_GGUF_Q8_0; block < TUNE_GGUF_BLOCKS; block++)
        assert_int_equal(tune_gguf_rows((enum tune_gguf_block)block, x, 1, ROW, out), -1);
    x[700] = INFINITY;
    for (int block = 0; block < TUNE_GGUF_BLOCKS; block++)
        assert_int_equal(tune_gguf_rows((enum tune_gguf_block)block, x, 1, ROW, out), block <= TUNE_GGUF_BF16 ? 0 : -1);
    assert_int_equal(tune_gguf_row_bytes(TUNE_GGUF_Q4_K, 576), -1);
    assert_int_equal(tune_gguf_row_bytes(TUNE_GGUF_Q8_0, 576), 576 / 32 * 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hand_made), cmocka_unit_test(grids), cmocka_unit_test(errors), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
