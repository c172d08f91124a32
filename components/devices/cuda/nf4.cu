/* nf4.cu - NF4 weights become float32 or bfloat16. */
#include "devices/cuda/nf4.h"

#include "core/nf4.h"
#include "core/nf4_levels.h"

constexpr int THREADS = TUNE_CUDA_THREADS, EACH = 8;

/* A thread expands EACH numbers, 4 bytes of codes. Each lane keeps one level; a shuffle looks it
 * up. PACKED: out is aligned to EACH numbers. */
template <class T, bool PACKED>
__global__ void __launch_bounds__(THREADS)
    expand(T *out, const unsigned char *codes, const unsigned char *absmax, const float *absmax2,
           float offset, int64_t count)
{
    int64_t i = tune_cuda_first() * EACH, block = i / TUNE_NF4_BLOCK;
    float level = levels4[threadIdx.x % 16], magnitude = 0;
    unsigned bits = 0;
    tune_cuda_pack<T, EACH> p;
    if (i < count) {
        magnitude =
            __fadd_rn(__fmul_rn(level8(absmax[block]), absmax2[block / TUNE_NF4_BLOCKS]), offset);
        bits =
            reinterpret_cast<const unsigned *>(codes)[i / EACH]; /* rows of codes end in a line */
    }
    for (int j = 0; j < EACH; j++) { /* the first of a byte is in its high half */
        unsigned code = bits >> (j / 2 * 8 + (j % 2 ? 0 : 4)) & 15;
        tune_cuda_store(&p.v[j],
                        __shfl_sync(0xffffffff, level, static_cast<int>(code)) * magnitude);
    }
    if (PACKED && i + EACH <= count)
        reinterpret_cast<tune_cuda_pack<T, EACH> *>(out)[i / EACH] = p;
    else
        for (int j = 0; j < EACH && i + j < count; j++)
            out[i + j] = p.v[j];
}

template <class T>
static void expand_part(struct tune_device *dev, T *out, const struct tune_nf4_part *part)
{
    struct tune_nf4_layout l = tune_nf4_layout(part->count);
    const unsigned char *memory = reinterpret_cast<const unsigned char *>(part->memory.at);
    int64_t threads = (part->count + EACH - 1) / EACH;
    unsigned blocks = static_cast<unsigned>((threads + THREADS - 1) / THREADS);
    const float *absmax2 = reinterpret_cast<const float *>(memory + l.absmax2);
    if (reinterpret_cast<uint64_t>(out) % (EACH * sizeof(T)) == 0)
        LAUNCH((expand<T, true>), blocks, THREADS, 0, tune_cuda_of(dev)->stream, out,
               memory + l.codes, memory + l.absmax, absmax2, part->offset, part->count);
    else
        LAUNCH((expand<T, false>), blocks, THREADS, 0, tune_cuda_of(dev)->stream, out,
               memory + l.codes, memory + l.absmax, absmax2, part->offset, part->count);
}

int tune_cuda_dequantize(struct tune_device *dev, struct tune_tensor *w, enum tune_dtype dtype,
                         float *scratch)
{
    const struct tune_nf4_part *part = w->nf4;
    w->dtype = dtype;
    w->nf4 = nullptr;
    w->data.at = reinterpret_cast<uint64_t>(scratch);
    tune_cuda_typed(w, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        T *out = tune_cuda_data<T>(w);
        for (; part; out += part->count, part = part->below)
            if (part->count > 0)
                expand_part<T>(dev, out, part);
    });
    return tune_cuda_queued(dev);
}
