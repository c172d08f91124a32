/* gemm.cu - matrix products, by cuBLASLt. Operands of another dtype, and NF4 weights, are first
 * copied into the scratch.
 *
 * cuBLASLt is column-major. A row-major matrix is its transpose there, so c' = op(b)' op(a)' is
 * what it computes. An algorithm is chosen once for each kind of product. Those that add parts in
 * no fixed order are excluded. */
#include <cublasLt.h>

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/nf4.h"

/* What distinguishes products. No padding, since it is compared as bytes. */
struct kind {
    int64_t rows, columns, depth, a_step, b_step, c_step; /* of c; elements between rows */
    int32_t a_dtype, c_dtype, at, bt;                     /* b has a's */
    uint32_t aligned[4]; /* bytes: of cuBLASLt's A, which is b, of its B, which is a, of C, D */
};
static_assert(sizeof(struct kind) == 6 * 8 + 4 * 4 + 4 * 4, "struct kind has padding");

/* A product that is ready to run. */
struct product {
    struct kind kind;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
};

struct tune_cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    struct product *ready;
    int count, room;
};

constexpr size_t WORKSPACE = TUNE_CUDA_WORKSPACE;

static int refuse(const char *what, cublasStatus_t status)
{
    return tune_error_set_kind(TUNE_ERROR_CANNOT, "gemm: %s: %s", what,
                               cublasLtGetStatusString(status));
}

static struct tune_cuda_products *products_of(struct tune_device *dev)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    if (cuda->products)
        return cuda->products;
    struct tune_cuda_products *p = static_cast<struct tune_cuda_products *>(calloc(1, sizeof *p));
    cuda->products = p;
    cublasStatus_t status = p ? cublasLtCreate(&p->handle) : CUBLAS_STATUS_SUCCESS;
    if (p && status == CUBLAS_STATUS_SUCCESS &&
        cudaMalloc(&p->workspace, WORKSPACE) == cudaSuccess) {
        tune_cuda_count(dev, TUNE_CUDA_WORKSPACE);
        return p;
    }
    cudaGetLastError();
    if (status != CUBLAS_STATUS_SUCCESS)
        refuse("cuBLASLt does not start", status);
    else
        tune_error_set_kind(TUNE_ERROR_CANNOT, "gemm: no memory for cuBLASLt's workspace");
    tune_cuda_products_free(cuda);
    return nullptr;
}

int tune_cuda_products_begin(struct tune_device *dev) { return products_of(dev) ? 0 : -1; }

static void free_product(struct product *p)
{
    cublasLtMatrixLayout_t layouts[3] = {p->a, p->b, p->c};
    for (cublasLtMatrixLayout_t l : layouts)
        if (l)
            cublasLtMatrixLayoutDestroy(l);
    if (p->how)
        cublasLtMatmulDescDestroy(p->how);
}

void tune_cuda_products_free(struct tune_cuda *cuda)
{
    struct tune_cuda_products *p = cuda->products;
    if (!p)
        return;
    for (int i = 0; i < p->count; i++)
        free_product(&p->ready[i]);
    if (p->handle)
        cublasLtDestroy(p->handle);
    cudaFree(p->workspace);
    free(p->ready);
    free(p);
    cuda->products = nullptr;
}

static cudaDataType cuda_type(int32_t dtype)
{
    return dtype == TUNE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Describe the product to cuBLASLt. */
static cublasStatus_t describe(struct product *p)
{
    const struct kind *k = &p->kind;
    cublasOperation_t first = k->bt ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = k->at ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t M = static_cast<uint64_t>(k->rows), N = static_cast<uint64_t>(k->columns);
    uint64_t K = static_cast<uint64_t>(k->depth);
    cublasStatus_t s = cublasLtMatmulDescCreate(&p->how, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                           sizeof first);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                           sizeof second);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->a, cuda_type(k->a_dtype), k->bt ? K : N, k->bt ? N : K,
                                       k->b_step);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->b, cuda_type(k->a_dtype), k->at ? M : K, k->at ? K : M,
                                       k->a_step);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->c, cuda_type(k->c_dtype), N, M, k->c_step);
    return s;
}

/* Choose the algorithm that cuBLASLt thinks is fastest. */
static cublasStatus_t choose(struct tune_cuda_products *all, struct product *p)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint64_t workspace = WORKSPACE;
    uint32_t ordered =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    cublasLtMatmulPreference_t wish;
    cublasStatus_t s = cublasLtMatmulPreferenceCreate(&wish);
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    s = cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &ordered, sizeof ordered);
    for (int i = 0; i < 4 && s == CUBLAS_STATUS_SUCCESS; i++)
        s = cublasLtMatmulPreferenceSetAttribute(wish, alignments[i], &p->kind.aligned[i],
                                                 sizeof p->kind.aligned[i]);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulAlgoGetHeuristic(all->handle, p->how, p->a, p->b, p->c, p->c, wish, 1,
                                           &best, &found);
    cublasLtMatmulPreferenceDestroy(wish);
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    p->algorithm = best.algo;
    p->workspace = best.workspaceSize;
    return found > 0 ? best.state : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* The product of this kind, made if it is new. */
static struct product *find(struct tune_cuda_products *all, const struct kind *kind)
{
    for (int i = 0; i < all->count; i++)
        if (memcmp(&all->ready[i].kind, kind, sizeof *kind) == 0)
            return &all->ready[i];
    if (all->count == all->room) {
        int room = all->room ? 2 * all->room : 32;
        void *more = realloc(all->ready, static_cast<size_t>(room) * sizeof *all->ready);
        if (!more) {
            tune_error_set_kind(TUNE_ERROR_CANNOT, "gemm: no memory for %d kinds of products",
                                room);
            return nullptr;
        }
        all->ready = static_cast<struct product *>(more);
        all->room = room;
    }
    struct product p = {};
    p.kind = *kind;
    cublasStatus_t status = describe(&p);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choose(all, &p);
    if (status != CUBLAS_STATUS_SUCCESS) {
        free_product(&p);
        refuse("cuBLASLt has no algorithm for this product", status);
        return nullptr;
    }
    all->ready[all->count] = p;
    return &all->ready[all->count++];
}

/* The largest power of two up to 256 that divides an address. */
static uint32_t alignment(uint64_t at)
{
    uint64_t low = at & (~at + 1);
    return static_cast<uint32_t>(at == 0 || low > 256 ? 256 : low);
}

static int64_t step_of(const struct tune_tensor *t) { return t->stride ? t->stride : t->shape[1]; }

/* c = alpha op(a) op(b) + beta c. a and b have one dtype; c is F32 or has it. */
static int multiply(struct tune_device *dev, const struct tune_tensor *c,
                    const struct tune_tensor *a, bool at, const struct tune_tensor *b, bool bt,
                    float alpha, float beta)
{
    struct tune_cuda_products *all = products_of(dev);
    uint32_t out = alignment(c->data.at);
    struct kind kind = {c->shape[0],
                        c->shape[1],
                        a->shape[!at],
                        step_of(a),
                        step_of(b),
                        step_of(c),
                        a->dtype,
                        c->dtype,
                        at,
                        bt,
                        {alignment(b->data.at), alignment(a->data.at), out, out}};
    struct product *p = all ? find(all, &kind) : nullptr;
    if (!p)
        return -1;
    void *to = tune_cuda_data<void>(c);
    cublasStatus_t status =
        cublasLtMatmul(all->handle, p->how, &alpha, tune_cuda_data<void>(b), p->a,
                       tune_cuda_data<void>(a), p->b, &beta, to, p->c, to, p->c, &p->algorithm,
                       all->workspace, p->workspace, tune_cuda_of(dev)->stream);
    return status == CUBLAS_STATUS_SUCCESS ? tune_cuda_queued(dev) : refuse("cuBLASLt", status);
}

/* Make *t a dense matrix of dtype in room. Returns 0. */
static int dense_of(struct tune_device *, struct tune_tensor *t, enum tune_dtype dtype, float *room)
{
    t->dtype = dtype;
    t->stride = 0;
    t->data.at = reinterpret_cast<uint64_t>(room);
    return 0;
}

/* The same, with a copy of its numbers. */
static int copy_of(struct tune_device *dev, struct tune_tensor *t, enum tune_dtype dtype,
                   float *room)
{
    const struct tune_tensor from = *t;
    if (t->dtype == TUNE_NF4)
        return tune_cuda_dequantize(dev, t, dtype, room);
    dense_of(dev, t, dtype, room);
    return tune_cuda_cast(dev, t, &from);
}

static struct tune_operand operand_of(const struct tune_tensor *t)
{
    return {tune_cuda_elements(t), t->dtype};
}

extern "C" int tune_cuda_gemm(struct tune_device *dev, struct tune_tensor *c,
                              const struct tune_tensor *a, bool at, const struct tune_tensor *b,
                              bool bt, float alpha, float beta, enum tune_dtype operands)
{
    struct tune_tensor x = *a, y = *b, z = *c;
    bool wide = c->dtype == TUNE_BF16 && operands == TUNE_F32; /* cuBLASLt has no such product */
    int64_t a_room = tune_copy_bytes(operand_of(a), operands) / 4;
    int64_t b_room = tune_copy_bytes(operand_of(b), operands) / 4;
    int64_t c_room = wide ? tune_copy_bytes(operand_of(c), TUNE_F32) / 4 : 0;
    if (c->shape[0] == 0 || c->shape[1] == 0)
        return 0;
    float *room = nullptr;
    if (a_room + b_room + c_room > 0) {
        room = tune_cuda_scratch(dev, a_room + b_room + c_room);
        if (!room)
            return -1;
    }
    if (a_room && copy_of(dev, &x, operands, room) < 0)
        return -1;
    if (b_room && copy_of(dev, &y, operands, room + a_room) < 0)
        return -1;
    if (wide && (beta != 0 ? copy_of : dense_of)(dev, &z, TUNE_F32, room + a_room + b_room) < 0)
        return -1;
    if (multiply(dev, &z, &x, at, &y, bt, alpha, beta) < 0)
        return -1;
    return wide ? tune_cuda_cast(dev, c, &z) : 0;
}
