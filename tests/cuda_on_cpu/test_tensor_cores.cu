/* test_tensor_cores.cu - mma.sync and ldmatrix of the emulator against plain loops. One-hot
 * matrices prove each index of the fragments. The maps here are written from the PTX ISA, apart
 * from the emulator's. */
#include "prove.h"

#include <cuda_bf16.h>

#include "devices/cuda/ptx.h"

/* The element of A, B and D that a lane's register holds: row * columns + column. */
static int a_bf16(int lane, int reg, int half)
{
    return (lane / 4 + (reg & 1) * 8) * 16 + (reg >> 1) * 8 + lane % 4 * 2 + half;
}
static int b_bf16(int lane, int reg, int half)
{
    return (reg * 8 + lane % 4 * 2 + half) * 8 + lane / 4;
}
static int a_tf32(int lane, int reg)
{
    return (lane / 4 + (reg & 1) * 8) * 8 + (reg >> 1) * 4 + lane % 4;
}
static int b_tf32(int lane, int reg) { return (reg * 4 + lane % 4) * 8 + lane / 4; }
static int d_of(int lane, int i) { return (lane / 4 + (i >> 1) * 8) * 8 + lane % 4 * 2 + (i & 1); }

__global__ void multiply(const unsigned *a, const unsigned *b, const float *c, float *d, bool tf32)
{
    unsigned lane = threadIdx.x, ra[4], rb[2];
    float rd[4];
    for (unsigned i = 0; i < 4; i++) {
        ra[i] = a[lane * 4 + i];
        rd[i] = c[lane * 4 + i];
    }
    for (unsigned i = 0; i < 2; i++)
        rb[i] = b[lane * 2 + i];
    if (tf32)
        ptx_mma_tf32(rd, ra, rb);
    else
        ptx_mma_bf16(rd, ra, rb);
    for (unsigned i = 0; i < 4; i++)
        d[lane * 4 + i] = rd[i];
}

/* D of A [16,K], B [K,8] and C, through fragments and back. */
static std::vector<float> product(const std::vector<float> &a, const std::vector<float> &b,
                                  const std::vector<float> &c, bool tf32)
{
    std::vector<unsigned> fa(128), fb(64);
    std::vector<float> fc(128), d(128);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            size_t at = (size_t)(lane * 4 + i), bt = (size_t)(lane * 2 + i);
            fc[at] = c[(size_t)d_of(lane, i)];
            if (tf32) {
                fa[at] = __float_as_uint(a[(size_t)a_tf32(lane, i)]);
                if (i < 2)
                    fb[bt] = __float_as_uint(b[(size_t)b_tf32(lane, i)]);
                continue;
            }
            for (int half = 0; half < 2; half++) {
                fa[at] |= (unsigned)__float2bfloat16(a[(size_t)a_bf16(lane, i, half)]).bits
                          << 16 * half;
                if (i < 2)
                    fb[bt] |= (unsigned)__float2bfloat16(b[(size_t)b_bf16(lane, i, half)]).bits
                              << 16 * half;
            }
        }
    unsigned *pa = upload(fa), *pb = upload(fb);
    float *pc = upload(fc), *pd = device<float>(128);
    LAUNCH(multiply, 1, 32, 0, nullptr, (const unsigned *)pa, (const unsigned *)pb,
           (const float *)pc, pd, tf32);
    std::vector<float> got = download(pd, 128);
    for (void *p : {(void *)pa, (void *)pb, (void *)pc, (void *)pd})
        must(cudaFree(p));
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++)
            d[(size_t)d_of(lane, i)] = got[(size_t)(lane * 4 + i)];
    return d;
}

static std::vector<float> plain(const std::vector<float> &a, const std::vector<float> &b,
                                std::vector<float> d, int K)
{
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < K; k++)
                d[(size_t)(m * 8 + n)] += a[(size_t)(m * K + k)] * b[(size_t)(k * 8 + n)];
    return d;
}

/* Each one-hot A against a B whose elements all differ, and the reverse. */
static bool one_hot(bool tf32)
{
    size_t K = tf32 ? 8 : 16;
    std::vector<float> zero(128, 0), many_a(16 * K), many_b(K * 8);
    bool right = true;
    for (size_t i = 0; i < many_a.size(); i++)
        many_a[i] = (float)(i + 1);
    for (size_t i = 0; i < many_b.size(); i++)
        many_b[i] = (float)(i + 1);
    for (size_t i = 0; i < many_a.size(); i++) {
        std::vector<float> a(16 * K, 0);
        a[i] = 1;
        right = right && product(a, many_b, zero, tf32) == plain(a, many_b, zero, (int)K);
    }
    for (size_t i = 0; i < many_b.size(); i++) {
        std::vector<float> b(K * 8, 0);
        b[i] = 1;
        right = right && product(many_a, b, zero, tf32) == plain(many_a, b, zero, (int)K);
    }
    return right;
}

static std::vector<float> small_numbers(size_t n, unsigned seed)
{
    std::vector<float> v(n);
    for (float &x : v) {
        seed = seed * 1664525 + 1013904223;
        x = (float)(int)(seed >> 24) / 16 - 8; /* exact in bfloat16 and in sums */
    }
    return v;
}

/* A [16,16] and B^T [8,16] in shared memory, by ldmatrix into a product. B lies as [8,16] or
 * [16,8]. */
__global__ void by_ldmatrix(const unsigned short *a, const unsigned short *b, float *d,
                            bool b_by_rows)
{
    SHARED(unsigned short, ta, [16][24]);
    SHARED(unsigned short, tb, [16][24]);
    unsigned lane = threadIdx.x, ra[4], rb[4], b2[2];
    float rd[4] = {0, 0, 0, 0};
    for (unsigned i = lane; i < 256; i += 32)
        ta[i / 16][i % 16] = a[i];
    for (unsigned i = lane; i < 128; i += 32)
        if (b_by_rows)
            tb[i / 8][i % 8] = b[i];
        else
            tb[i % 8][i / 8] = b[i];
    __syncwarp();
    ptx_ldmatrix(ra, &ta[lane % 16][lane / 16 * 8]); /* rows 0..7 and 8..15, then the right half */
    if (b_by_rows)
        ptx_ldmatrix_transposed(rb, &tb[lane % 16][0]);
    else
        ptx_ldmatrix(rb, &tb[lane % 8][lane / 8 % 2 * 8]);
    b2[0] = rb[0];
    b2[1] = rb[1];
    ptx_mma_bf16(rd, ra, b2);
    for (unsigned i = 0; i < 4; i++)
        d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rd[i];
}

static bytes run_ldmatrix(bool b_by_rows, bool *right)
{
    std::vector<float> a = small_numbers(256, 1), b = small_numbers(128, 2), zero(128, 0);
    std::vector<unsigned short> ha, hb;
    for (float x : a)
        ha.push_back(__float2bfloat16(x).bits);
    for (float x : b)
        hb.push_back(__float2bfloat16(x).bits);
    unsigned short *pa = upload(ha), *pb = upload(hb);
    float *pd = device<float>(128);
    LAUNCH(by_ldmatrix, 1, 32, 0, nullptr, (const unsigned short *)pa, (const unsigned short *)pb,
           pd, b_by_rows);
    std::vector<float> got = download(pd, 128);
    *right = *right && got == plain(a, b, zero, 16);
    for (void *p : {(void *)pa, (void *)pb, (void *)pd})
        must(cudaFree(p));
    return raw(got);
}

__global__ void half_a_warp(float *d)
{
    float rd[4] = {0, 0, 0, 0};
    unsigned a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
    if (threadIdx.x < 16)
        ptx_mma_bf16(rd, a, b);
    d[threadIdx.x] = rd[0];
}

__global__ void row_outside(float *d, int where)
{
    SHARED(unsigned short, tile, [32][8]);
    unsigned r[4];
    ptx_ldmatrix(r, where == 0 ? (void *)d
                               : (void *)((char *)tile[threadIdx.x] + (where == 1 ? 2 : 16)));
    d[threadIdx.x] = (float)r[0];
}

static void start_row(int where)
{
    float *d = device<float>(64);
    LAUNCH(row_outside, 1, 32, 0, nullptr, d, where);
    must(cudaDeviceSynchronize());
}

static void bf16()
{
    bool right = true;
    for (unsigned u = 0; u < 65536; u++) {
        __nv_bfloat16 h = __ushort_as_bfloat16((unsigned short)u);
        float f = __bfloat162float(h);
        right = right && (std::isnan(f) ? __float2bfloat16(f).bits == 0x7fff
                                        : __float2bfloat16(f).bits == u);
    }
    check("each bfloat16 goes to float32 and back", right);
    check("a tie goes to even, above it goes up",
          __float2bfloat16(1 + 0x1p-8f).bits == 0x3f80 &&
              __float2bfloat16(1 + 0x3p-8f).bits == 0x3f82 &&
              __float2bfloat16(1 + 0x1.01p-8f).bits == 0x3f81 &&
              __float2bfloat16(3.4e38f).bits == 0x7f80);
}

int main()
{
    bf16();
    for (int tf32 = 0; tf32 < 2; tf32++) {
        std::string name = tf32 ? "mma m16n8k8 tf32" : "mma m16n8k16 bf16";
        check(name + ": one-hot A and B prove every index", one_hot(tf32));
        std::vector<float> a = small_numbers(256, 3), b = small_numbers(128, 4),
                           c = small_numbers(128, 5);
        check(name + ": a product and C", product(a, b, c, tf32) == plain(a, b, c, tf32 ? 8 : 16));
        in_every_order(name, [&] { return raw(product(a, b, c, tf32)); });
    }
    std::vector<float> a(128, 0), b(64, 0), c(128, 0);
    a[0] = 1 + 0x1p-10f + 0x1p-11f;
    b[0] = 1;
    check("tf32 reads 10 bits of the fraction", product(a, b, c, true)[0] == 1 + 0x1p-10f);
    for (int rows = 0; rows < 2; rows++) {
        bool right = true;
        in_every_order(rows ? "ldmatrix.trans" : "ldmatrix",
                       [&] { return run_ldmatrix(rows, &right); });
        check("... and a product of what it loads", right);
    }
    aborts("mma by half a warp", "mma.m16n8k16.bf16", [] {
        float *d = device<float>(32);
        LAUNCH(half_a_warp, 1, 32, 0, nullptr, d);
        must(cudaDeviceSynchronize());
    });
    aborts("ldmatrix from device memory", "is not in shared memory", [] { start_row(0); });
    aborts("ldmatrix from a row that is not aligned", "not aligned to 16 bytes",
           [] { start_row(1); });
    aborts("ldmatrix past the array", "is not in shared memory", [] { start_row(2); });
    return done();
}
