/* gemm.cu - matrix products. Operands of another dtype, and NF4 weights, are first copied into the
 * scratch. So are operands that lie in a way in which cuBLASLt does not take them. */
#include "core/error.h"
#include "devices/cuda/nf4.h"
#include "devices/cuda/products.h"

/* c = alpha op(a) op(b) + beta r, of operands of any kind; r is c, or it has c's layout. */
struct gemm {
    struct tune_tensor *c;
    const struct tune_tensor *r, *a, *b;
    bool trans_a, trans_b;
    float alpha, beta;
    enum tune_dtype operands;
};

/* Make *t a dense matrix of dtype in scratch. Returns 0. */
static int dense_of(struct tune_device *, struct tune_tensor *t, enum tune_dtype dtype,
                    float *scratch)
{
    t->dtype = dtype;
    t->stride = 0;
    t->data.at = reinterpret_cast<uint64_t>(scratch);
    return 0;
}

/* The same, with a copy of its numbers. */
static int copy_of(struct tune_device *dev, struct tune_tensor *t, enum tune_dtype dtype,
                   float *scratch)
{
    const struct tune_tensor from = *t;
    if (t->dtype == TUNE_NF4)
        return tune_cuda_dequantize(dev, t, dtype, scratch);
    dense_of(dev, t, dtype, scratch);
    return tune_cuda_cast(dev, t, &from);
}

static struct tune_operand operand_of(const struct tune_tensor *t)
{
    return {tune_cuda_elements(t), t->dtype};
}

/* The elements between the rows of a copy whose rows begin at multiples of 16 bytes, and the floats
 * of scratch that it takes. */
static int64_t even_step(const struct tune_tensor *t, enum tune_dtype dtype)
{
    int64_t most = dtype == TUNE_BF16 ? 8 : 4;
    return (t->shape[1] + most - 1) / most * most;
}

static int64_t even_floats(const struct tune_tensor *t, enum tune_dtype dtype)
{
    int64_t bytes = t->shape[0] * even_step(t, dtype) * (dtype == TUNE_BF16 ? 2 : 4);
    return (bytes + 255) / 256 * 64;
}

/* Make *t such a copy, in scratch; `filled`: of its numbers. */
static int even_of(struct tune_device *dev, struct tune_tensor *t, bool filled, float *scratch)
{
    const struct tune_tensor from = *t;
    t->stride = even_step(t, t->dtype);
    t->data.at = reinterpret_cast<uint64_t>(scratch);
    return filled ? tune_cuda_cast(dev, t, &from) : 0;
}

/* Queue the product of copies whose rows lie evenly. scratch: even_floats of a, b and c. */
static int multiply_evenly(struct tune_device *dev, const struct gemm *g, struct tune_tensor *c,
                           const struct tune_tensor *r, const struct tune_tensor *a,
                           const struct tune_tensor *b, float *scratch)
{
    struct tune_tensor x = *a, y = *b, z = *r;
    if (even_of(dev, &x, true, scratch) < 0)
        return -1;
    scratch += even_floats(a, a->dtype);
    if (even_of(dev, &y, true, scratch) < 0 ||
        even_of(dev, &z, g->beta != 0, scratch + even_floats(b, b->dtype)) < 0)
        return -1;
    int status = tune_cuda_multiply(dev, &z, &z, &x, g->trans_a, &y, g->trans_b, g->alpha, g->beta);
    return status != 0 ? status : tune_cuda_cast(dev, c, &z);
}

/* Queue the product. evenly: with copies of all operands that cuBLASLt can take. */
static int compute(struct tune_device *dev, const struct gemm *g, bool evenly)
{
    struct tune_tensor x = *g->a, y = *g->b, z = *g->c;
    /* cuBLASLt has no such product */
    bool wide = g->c->dtype == TUNE_BF16 && g->operands == TUNE_F32;
    enum tune_dtype result = wide ? TUNE_F32 : z.dtype;
    int64_t a_floats = tune_copy_bytes(operand_of(&x), g->operands) / 4;
    int64_t b_floats = tune_copy_bytes(operand_of(&y), g->operands) / 4;
    int64_t c_floats = wide ? tune_copy_bytes(operand_of(&z), TUNE_F32) / 4 : 0;
    int64_t more = !evenly ? 0 : even_floats(&x, g->operands) + even_floats(&y, g->operands) +
                                     even_floats(&z, result);
    float *scratch = nullptr;
    if (a_floats + b_floats + c_floats + more > 0) {
        scratch = tune_cuda_scratch(dev, a_floats + b_floats + c_floats + more);
        if (!scratch)
            return -1;
    }
    if (a_floats && copy_of(dev, &x, g->operands, scratch) < 0)
        return -1;
    if (b_floats && copy_of(dev, &y, g->operands, scratch + a_floats) < 0)
        return -1;
    if (wide && (g->beta != 0 ? copy_of : dense_of)(dev, &z, TUNE_F32,
                                                    scratch + a_floats + b_floats) < 0)
        return -1;
    const struct tune_tensor *r = wide ? &z : g->r;
    int status =
        evenly ? multiply_evenly(dev, g, &z, r, &x, &y, scratch + a_floats + b_floats + c_floats)
               : tune_cuda_multiply(dev, &z, r, &x, g->trans_a, &y, g->trans_b, g->alpha, g->beta);
    return status != 0 || !wide ? status : tune_cuda_cast(dev, g->c, &z);
}

/* A product that cuBLASLt refuses as its operands lie is computed with copies of them. */
static int run(struct tune_device *dev, const struct gemm *g)
{
    struct tune_error before;
    if (g->c->shape[0] == 0 || g->c->shape[1] == 0)
        return 0;
    tune_error_save(&before);
    int status = compute(dev, g, false);
    if (status == TUNE_CUDA_REFUSED) {
        tune_error_restore(&before);
        status = compute(dev, g, true);
    }
    if (status == TUNE_CUDA_REFUSED)
        tune_error_set_kind(tune_error_kind(),
                            "%s. It refuses copies of the operands, too, whose rows begin at "
                            "multiples of 16 bytes. Another version of cuBLASLt may compute it",
                            tune_error_message());
    return status == 0 ? 0 : -1;
}

extern "C" int tune_cuda_gemm(struct tune_device *dev, struct tune_tensor *c,
                              const struct tune_tensor *a, bool trans_a,
                              const struct tune_tensor *b, bool trans_b, float alpha, float beta,
                              enum tune_dtype operands)
{
    const struct gemm g = {c, c, a, b, trans_a, trans_b, alpha, beta, operands};
    return run(dev, &g);
}

extern "C" int tune_cuda_gemm_add(struct tune_device *dev, struct tune_tensor *y,
                                  const struct tune_tensor *r, const struct tune_tensor *x,
                                  const struct tune_tensor *w, float scale,
                                  enum tune_dtype operands)
{
    const struct gemm g = {y, r, x, w, false, true, scale, 1, operands};
    return run(dev, &g);
}
