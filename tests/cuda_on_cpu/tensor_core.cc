/* tensor_core.cc - one multiplication of a warp: gather the fragments, multiply, scatter. Sums are
 * float32, in the order of k. A tensor core rounds otherwise (docs/cuda-on-cpu.md). */
#include "tensor_core.h"
#include "parts.h"

#include <cstring>

namespace emu
{

struct mma_in {
    uint32_t a[4], b[2];
    float c[4];
};

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* The bfloat16 in the low or high half of a register. */
static float half_of(uint32_t bits, int high)
{
    return from_bits(high ? bits & 0xffff0000 : bits << 16);
}

static float tf32(uint32_t bits) { return from_bits(bits & 0xffffe000); }

/* D = A B + C, where depth is 16 or 8, and back to the lanes. */
static void multiply(const float (*a)[16], const float (*b)[8], int depth, slot *const *slots)
{
    for (int lane = 0; lane < WARP; lane++) {
        mma_in in;
        float d[4];
        memcpy(&in, slots[lane]->in, sizeof in);
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            d[i] = in.c[i];
            for (int k = 0; k < depth; k++)
                d[i] += a[row][k] * b[k][column];
        }
        memcpy(slots[lane]->out, d, sizeof d);
    }
}

static void finish_bf16(unsigned, slot *const *slots)
{
    float a[16][16], b[16][8];
    for (int lane = 0; lane < WARP; lane++) {
        mma_in in;
        int group = lane / 4, t = lane % 4;
        memcpy(&in, slots[lane]->in, sizeof in);
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 4; i++)
                a[group + 8 * (i % 2)][2 * t + half + 8 * (i / 2)] = half_of(in.a[i], half);
            for (int i = 0; i < 2; i++)
                b[2 * t + half + 8 * i][group] = half_of(in.b[i], half);
        }
    }
    multiply(a, b, 16, slots);
}

static void finish_tf32(unsigned, slot *const *slots)
{
    float a[16][16], b[16][8];
    for (int lane = 0; lane < WARP; lane++) {
        mma_in in;
        int group = lane / 4, t = lane % 4;
        memcpy(&in, slots[lane]->in, sizeof in);
        for (int i = 0; i < 4; i++)
            a[group + 8 * (i % 2)][t + 4 * (i / 2)] = tf32(in.a[i]);
        for (int i = 0; i < 2; i++)
            b[t + 4 * i][group] = tf32(in.b[i]);
    }
    multiply(a, b, 8, slots);
}

static void mma(const char *what, finish_meeting *finish, float d[4], const uint32_t a[4],
                const uint32_t b[2], const float c[4], const char *file, int line)
{
    mma_in in;
    memcpy(in.a, a, sizeof in.a);
    memcpy(in.b, b, sizeof in.b);
    memcpy(in.c, c, sizeof in.c);
    meet(what, 0xffffffff, finish, &in, sizeof in, d, 4 * sizeof *d, file, line);
}

void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
              const char *file, int line)
{
    mma("mma.m16n8k16.bf16", finish_bf16, d, a, b, c, file, line);
}

void mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
              const char *file, int line)
{
    mma("mma.m16n8k8.tf32", finish_tf32, d, a, b, c, file, line);
}

/* ---- ldmatrix ---- */

struct ldmatrix_in {
    const unsigned char *row;
    int matrices;
    bool transposed;
};

static void finish_ldmatrix(unsigned, slot *const *slots)
{
    ldmatrix_in of[WARP];
    for (int lane = 0; lane < WARP; lane++)
        memcpy(&of[lane], slots[lane]->in, sizeof of[lane]);
    for (int lane = 0; lane < WARP; lane++)
        for (int m = 0; m < of[0].matrices; m++)
            for (int half = 0; half < 2; half++) {
                int row = lane / 4, column = 2 * (lane % 4) + half;
                if (of[0].transposed)
                    memcpy(slots[lane]->out + 4 * m + 2 * half, of[8 * m + column].row + 2 * row,
                           2);
                else
                    memcpy(slots[lane]->out + 4 * m + 2 * half, of[8 * m + row].row + 2 * column,
                           2);
            }
}

void ldmatrix(uint32_t *d, int matrices, bool transposed, const void *row, const char *file,
              int line)
{
    ldmatrix_in in = {(const unsigned char *)row, matrices, transposed};
    if (lane_number() % WARP < 8 * matrices) { /* the other lanes' addresses are not read */
        if ((uintptr_t)row % 16)
            fail("ldmatrix at %s:%d: the row at %p is not aligned to 16 bytes", file, line, row);
        if (!is_shared(row, 16))
            fail("ldmatrix at %s:%d: the row at %p is not in shared memory", file, line, row);
    }
    meet("ldmatrix", 0xffffffff, finish_ldmatrix, &in, sizeof in, d, 4 * (size_t)matrices, file,
         line);
}

} // namespace emu
