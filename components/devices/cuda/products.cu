/* products.cu - matrix products by cuBLASLt: an algorithm is chosen once for each kind of product,
 * by timing those that cuBLASLt offers (algorithms.h). Those that add parts in no fixed order are
 * excluded. cuBLASLt may refuse what it offered; then the next one computes, from then on.
 *
 * cuBLASLt is column-major. A row-major matrix is its transpose there, so c' = op(b)' op(a)' is
 * what it computes. */
#include "devices/cuda/products.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "devices/cuda/algorithms.h"

enum { CANDIDATES = 8, ROUNDS = 3, TOKENS = 64 };

struct algorithm {
    cublasLtMatmulAlgo_t algo;
    size_t workspace; /* bytes */
};

/* A product that is ready to run. */
struct product {
    struct tune_cuda_kind kind;
    cublasLtMatmulDesc_t descriptor;
    cublasLtMatrixLayout_t a, b, c;
    struct algorithm offered[CANDIDATES]; /* the first one computes; refused ones are gone */
    int count;
    bool kept;              /* the file names the first one */
    cublasStatus_t refused; /* the last refusal */
};

/* One call of it. */
struct operands {
    const void *a, *b, *c; /* as cuBLASLt names them: d = alpha a b + beta c */
    void *d;
    float alpha, beta;
};

struct tune_cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    struct product *ready;
    int count, capacity;
    int refusals;
    char first[200]; /* the first one */
};

constexpr size_t WORKSPACE = TUNE_CUDA_WORKSPACE;

/* An error of cuBLASLt. The runtime may know its cause. */
static int refuse(const char *what, cublasStatus_t status)
{
    cudaError_t error =
        status == CUBLAS_STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaPeekAtLastError();
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "%s: %s", what, cublasLtGetStatusString(status));
    return tune_error_set("%s: %s", what, cublasLtGetStatusString(status));
}

/* "[3,5] = [3,4] [4,5] in float32" */
static const char *text_of(const struct product *p, char *text, size_t size)
{
    const struct tune_cuda_kind *k = &p->kind;
    long long M = k->rows, N = k->columns, K = k->depth;
    snprintf(text, size, "[%lld,%lld] = [%lld,%lld] [%lld,%lld] in %s", M, N, M, K, K, N,
             k->a_dtype == TUNE_BF16 ? "bfloat16" : "float32");
    return text;
}

static int refuse_product(const struct product *p, const char *what, cublasStatus_t status)
{
    char text[256], product[128];
    snprintf(text, sizeof text, "%s %s", what, text_of(p, product, sizeof product));
    return refuse(text, status);
}

static struct tune_cuda_products *products_of(struct tune_device *dev)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    if (cuda->products)
        return cuda->products;
    struct tune_cuda_products *p = static_cast<struct tune_cuda_products *>(calloc(1, sizeof *p));
    cuda->products = p;
    if (!p) {
        tune_error_no_memory("the kinds of products");
        return nullptr;
    }
    cublasStatus_t status = cublasLtCreate(&p->handle);
    cudaError_t error = cudaSuccess;
    if (status != CUBLAS_STATUS_SUCCESS)
        refuse("cuBLASLt does not start", status);
    else
        error = cudaMalloc(&p->workspace, WORKSPACE);
    if (error != cudaSuccess)
        tune_cuda_failed(error, "%d MiB for cuBLASLt to work in", int(WORKSPACE >> 20));
    if (status == CUBLAS_STATUS_SUCCESS && error == cudaSuccess) {
        tune_cuda_count(dev, TUNE_CUDA_WORKSPACE);
        return p;
    }
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
    if (p->descriptor)
        cublasLtMatmulDescDestroy(p->descriptor);
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

int tune_cuda_refusals(const struct tune_cuda *cuda)
{
    return cuda->products ? cuda->products->refusals : 0;
}

static cudaDataType cuda_type(int32_t dtype)
{
    return dtype == TUNE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Describe the product to cuBLASLt. */
static cublasStatus_t describe(struct product *p)
{
    const struct tune_cuda_kind *k = &p->kind;
    cublasOperation_t first = k->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = k->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t M = static_cast<uint64_t>(k->rows), N = static_cast<uint64_t>(k->columns);
    uint64_t K = static_cast<uint64_t>(k->depth);
    cublasStatus_t s = cublasLtMatmulDescCreate(&p->descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->descriptor, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                           sizeof first);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->descriptor, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                           sizeof second);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->a, cuda_type(k->a_dtype), k->trans_b ? K : N,
                                       k->trans_b ? N : K, k->b_step);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->b, cuda_type(k->a_dtype), k->trans_a ? M : K,
                                       k->trans_a ? K : M, k->a_step);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(&p->c, cuda_type(k->c_dtype), N, M, k->c_step);
    return s;
}

/* The algorithms that cuBLASLt offers, what it thinks is fastest first; at most CANDIDATES. */
static cublasStatus_t offers(struct tune_cuda_products *all, const struct product *p,
                             cublasLtMatmulHeuristicResult_t *offered, int *count)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint64_t workspace = WORKSPACE;
    uint32_t ordered =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    int found = 0;
    cublasLtMatmulPreference_t wish;
    cublasStatus_t s = cublasLtMatmulPreferenceCreate(&wish);
    *count = 0;
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
        s = cublasLtMatmulAlgoGetHeuristic(all->handle, p->descriptor, p->a, p->b, p->c, p->c, wish,
                                           CANDIDATES, offered, &found);
    cublasLtMatmulPreferenceDestroy(wish);
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    for (int i = 0; i < found; i++)
        if (offered[i].state == CUBLAS_STATUS_SUCCESS)
            offered[(*count)++] = offered[i];
    return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t queue(struct tune_device *dev, const struct product *p,
                            const struct operands *x, const struct algorithm *by)
{
    const struct tune_cuda_products *all = tune_cuda_of(dev)->products;
    return cublasLtMatmul(all->handle, p->descriptor, &x->alpha, x->a, p->a, x->b, p->b, &x->beta,
                          x->c, p->c, x->d, p->c, &by->algo, all->workspace, by->workspace,
                          tune_cuda_of(dev)->stream);
}

/* cuBLASLt refused an algorithm of p: say so in dev->met. -1 with an error: it has no memory, or
 * the GPU does nothing any more. Then no other algorithm helps. */
static int note_refusal(struct tune_device *dev, struct product *p, cublasStatus_t status)
{
    struct tune_cuda_products *all = tune_cuda_of(dev)->products;
    cudaStreamCaptureStatus capture;
    char product[128];
    p->refused = status;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return refuse_product(p, "cuBLASLt does not compute", status);
    cudaGetLastError(); /* a refusal may leave one; the next call tells whether the GPU goes on */
    if (cudaStreamIsCapturing(tune_cuda_of(dev)->stream, &capture) != cudaSuccess)
        return refuse_product(p, "cuBLASLt does not compute", status);
    if (all->refusals++ == 0)
        snprintf(all->first, sizeof all->first, "%s (%s)", text_of(p, product, sizeof product),
                 cublasLtGetStatusString(status));
    snprintf(dev->met, sizeof dev->met,
             "cuBLASLt refused products %d times, first %s; another of its algorithms computes "
             "each, or the same with copies of the operands",
             all->refusals, all->first);
    return 0;
}

/* ---- timing ---- */

enum { NO_MEMORY = 1 };

/* What one run takes, in milliseconds; infinite: cuBLASLt refused the algorithm. NO_MEMORY: it has
 * none, and nothing can be timed. */
static int time_one(struct tune_device *dev, struct product *p, const struct operands *x,
                    const struct algorithm *candidate, const cudaEvent_t *events, float *ms)
{
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    *ms = INFINITY;
    cudaError_t error = cudaEventRecord(events[0], stream);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "timing cuBLASLt's algorithms");
    cublasStatus_t status = queue(dev, p, x, candidate);
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        cudaGetLastError();
        return NO_MEMORY;
    }
    if (status != CUBLAS_STATUS_SUCCESS)
        return note_refusal(dev, p, status);
    error = cudaEventRecord(events[1], stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(events[1]);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(ms, events[0], events[1]);
    return error == cudaSuccess ? 0 : tune_cuda_failed(error, "timing cuBLASLt's algorithms");
}

/* The time of each candidate: each runs once a round, and its best time counts. One that was
 * refused is not tried again. */
static int time_all(struct tune_device *dev, struct product *p, const struct operands *x,
                    const struct algorithm *candidates, int count, float *ms)
{
    cudaEvent_t events[2] = {};
    float now;
    int status = 0;
    for (cudaEvent_t &e : events) {
        cudaError_t error = status == 0 ? cudaEventCreate(&e) : cudaSuccess;
        if (error != cudaSuccess)
            status = tune_cuda_failed(error, "timing cuBLASLt's algorithms");
    }
    for (int i = 0; i < ROUNDS * count && status == 0; i++) {
        int k = i % count;
        if (i >= count && std::isinf(ms[k]))
            continue;
        status = time_one(dev, p, x, &candidates[k], events, &now);
        if (status == 0 && (i < count || now < ms[k] || std::isinf(now)))
            ms[k] = now;
    }
    for (cudaEvent_t e : events)
        if (e)
            cudaEventDestroy(e);
    return status;
}

/* Time the candidates on the product's own operands. A product that adds to its result has another
 * one meanwhile; without memory for it, nothing is timed. */
static int time_on_operands(struct tune_device *dev, struct product *p, struct operands x,
                            const struct algorithm *candidates, int count, float *ms, bool *timed)
{
    void *scratch = nullptr;
    size_t element = p->kind.c_dtype == TUNE_BF16 ? 2 : 4;
    *timed = false;
    if (x.beta != 0 && x.c == x.d) {
        size_t bytes = static_cast<size_t>(p->kind.rows * p->kind.c_step) * element;
        cudaError_t error = cudaMalloc(&scratch, bytes);
        if (error == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            return 0;
        }
        if (error == cudaSuccess)
            error = cudaMemsetAsync(scratch, 0, bytes, tune_cuda_of(dev)->stream);
        if (error != cudaSuccess) {
            cudaFree(scratch);
            return tune_cuda_failed(error, "timing cuBLASLt's algorithms");
        }
        x.c = x.d = scratch;
    }
    int status = time_all(dev, p, &x, candidates, count, ms);
    *timed = status == 0;
    cudaFree(scratch);
    return status < 0 ? -1 : 0;
}

/* Whether a choice by timing is worth it. A product's tokens are its rows, or its depth if it is a
 * gradient. What is no multiple of TOKENS hardly comes twice: the loss has such a rest in each
 * batch. */
static bool is_timed(const struct tune_cuda *cuda, const struct tune_cuda_kind *k)
{
    return cuda->algorithms && *cuda->algorithms && (k->trans_a ? k->depth : k->rows) % TOKENS == 0;
}

/* The candidate that the file names, else the fastest; -1: neither. While the stream is captured
 * nothing can be timed. ms: their times; infinite: refused. */
static int best_of(struct tune_device *dev, struct product *p, const struct operands *x,
                   const cublasLtMatmulHeuristicResult_t *offered, int count, float *ms, int *best)
{
    const char *path = tune_cuda_of(dev)->algorithms;
    struct algorithm candidates[CANDIDATES];
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    bool timed = false;
    *best = tune_cuda_algorithms_kept(path, &p->kind, offered, count);
    if (*best >= 0 || count < 2)
        return 0;
    cudaError_t error = cudaStreamIsCapturing(tune_cuda_of(dev)->stream, &capture);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "timing cuBLASLt's algorithms");
    for (int i = 0; i < count; i++)
        candidates[i] = {offered[i].algo, offered[i].workspaceSize};
    if (capture == cudaStreamCaptureStatusNone &&
        time_on_operands(dev, p, *x, candidates, count, ms, &timed) < 0)
        return -1;
    for (int i = 0; i < count && timed; i++)
        if (!std::isinf(ms[i]) && (*best < 0 || ms[i] < ms[*best]))
            *best = i;
    if (*best >= 0)
        *best = tune_cuda_algorithms_keep(path, &p->kind, offered, count, *best,
                                          static_cast<double>(ms[*best]) * 1000);
    return 0;
}

/* Find the product's algorithms: the chosen one, then the others in cuBLASLt's order. Without a
 * choice its first guess counts in this process. */
static int choose(struct tune_device *dev, struct product *p, const struct operands *x)
{
    struct tune_cuda_products *all = tune_cuda_of(dev)->products;
    cublasLtMatmulHeuristicResult_t offered[CANDIDATES];
    float ms[CANDIDATES] = {};
    int count, best = -1;
    cublasStatus_t s = offers(all, p, offered, &count);
    if (s != CUBLAS_STATUS_SUCCESS)
        return note_refusal(dev, p, s);
    if (is_timed(tune_cuda_of(dev), &p->kind)) {
        count = tune_cuda_algorithms_unlike(offered, count);
        if (best_of(dev, p, x, offered, count, ms, &best) < 0)
            return -1;
    }
    p->kept = best >= 0;
    for (int i = -1; i < count; i++) {
        int k = i < 0 ? best : i;
        if (k >= 0 && (i < 0 || k != best) && !std::isinf(ms[k]))
            p->offered[p->count++] = {offered[k].algo, offered[k].workspaceSize};
    }
    return 0;
}

/* The product of this kind, made if it is new. */
static struct product *find(struct tune_device *dev, const struct tune_cuda_kind *kind,
                            const struct operands *x)
{
    struct tune_cuda_products *all = tune_cuda_of(dev)->products;
    for (int i = 0; i < all->count; i++)
        if (memcmp(&all->ready[i].kind, kind, sizeof *kind) == 0)
            return &all->ready[i];
    if (all->count == all->capacity) {
        int capacity = all->capacity ? 2 * all->capacity : 32;
        void *more = realloc(all->ready, static_cast<size_t>(capacity) * sizeof *all->ready);
        if (!more) {
            tune_error_no_memory("%d kinds of products", capacity);
            return nullptr;
        }
        all->ready = static_cast<struct product *>(more);
        all->capacity = capacity;
    }
    struct product p = {};
    p.kind = *kind;
    cublasStatus_t status = describe(&p);
    if (status != CUBLAS_STATUS_SUCCESS)
        refuse_product(&p, "cuBLASLt does not describe", status);
    if (status != CUBLAS_STATUS_SUCCESS || choose(dev, &p, x) < 0) {
        free_product(&p);
        return nullptr;
    }
    all->ready[all->count] = p;
    return &all->ready[all->count++];
}

/* cuBLASLt refused p's first algorithm: the next one computes. If the file names the refused one,
 * it names the next one from now on, so that later processes do not ask for it. */
static void take_next(struct tune_device *dev, struct product *p)
{
    cublasLtMatmulHeuristicResult_t left[CANDIDATES] = {};
    p->count--;
    memmove(p->offered, p->offered + 1, static_cast<size_t>(p->count) * sizeof *p->offered);
    for (int i = 0; i < p->count; i++)
        left[i].algo = p->offered[i].algo;
    if (p->kept && p->count > 0)
        tune_cuda_algorithms_keep(tune_cuda_of(dev)->algorithms, &p->kind, left, p->count, 0, 0);
}

/* The largest power of two up to 256 that divides an address. */
static uint32_t alignment(uint64_t at)
{
    uint64_t low = at & (~at + 1);
    return static_cast<uint32_t>(at == 0 || low > 256 ? 256 : low);
}

static int64_t step_of(const struct tune_tensor *t) { return t->stride ? t->stride : t->shape[1]; }

int tune_cuda_multiply(struct tune_device *dev, const struct tune_tensor *c,
                       const struct tune_tensor *r, const struct tune_tensor *a, bool trans_a,
                       const struct tune_tensor *b, bool trans_b, float alpha, float beta)
{
    if (!products_of(dev))
        return -1;
    struct tune_cuda_kind kind = {c->shape[0],
                                  c->shape[1],
                                  a->shape[!trans_a],
                                  step_of(a),
                                  step_of(b),
                                  step_of(c),
                                  a->dtype,
                                  c->dtype,
                                  trans_a,
                                  trans_b,
                                  {alignment(b->data.at), alignment(a->data.at),
                                   alignment(r->data.at), alignment(c->data.at)}};
    struct operands x = {tune_cuda_data<void>(b),
                         tune_cuda_data<void>(a),
                         tune_cuda_data<void>(r),
                         tune_cuda_data<void>(c),
                         alpha,
                         beta};
    struct product *p = find(dev, &kind, &x);
    if (!p)
        return -1;
    while (p->count > 0) {
        cublasStatus_t status = queue(dev, p, &x, &p->offered[0]);
        if (status == CUBLAS_STATUS_SUCCESS)
            return tune_cuda_queued(dev);
        if (note_refusal(dev, p, status) < 0)
            return -1;
        take_next(dev, p);
    }
    refuse_product(p, "cuBLASLt refuses all of its algorithms for", p->refused);
    return TUNE_CUDA_REFUSED;
}
