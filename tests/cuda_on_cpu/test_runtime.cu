/* test_runtime.cu - device memory, streams, events, graphs and products of the emulator. */
#include "prove.h"

#include <cublasLt.h>
#include <cuda_bf16.h>

__global__ void add(float *x, float more, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i] += more;
}

__global__ void set(float *x, int at) { x[at] = 1; }

__global__ void times(float *x, float factor) { x[threadIdx.x] *= factor; }

static float first(const float *x) { return download(x, 1)[0]; }

static void memory()
{
    float *x = device<float>(100);
    std::vector<float> got = download(x, 100);
    bool all_nan = true;
    for (float g : got)
        all_nan = all_nan && std::isnan(g);
    check("device memory is NaN at first", all_nan);
    aborts("a host read of device memory", "which the host may not touch",
           [x] { printf("%f", x[1]); });
    aborts("a host write to device memory", "which the host may not touch", [x] { x[1] = 2; });
    aborts("a kernel that writes behind an allocation", "wrote behind the end of 400 bytes", [x] {
        LAUNCH(set, 1, 1, 0, nullptr, x, 100);
        must(cudaDeviceSynchronize());
    });
    aborts("a kernel that writes before an allocation", "wrote before 400 bytes", [x] {
        LAUNCH(set, 1, 1, 0, nullptr, x, -1);
        must(cudaDeviceSynchronize());
    });
    aborts("a kernel that writes 112 bytes behind it", "device memory that is not allocated", [x] {
        LAUNCH(set, 1, 1, 0, nullptr, x, 128);
        must(cudaDeviceSynchronize());
    });
    float *gone = device<float>(8);
    must(cudaFree(gone));
    aborts("a kernel that writes freed memory", "device memory that is not allocated", [gone] {
        LAUNCH(add, 1, 8, 0, nullptr, gone, 1, 8);
        must(cudaDeviceSynchronize());
    });
    check("freeing twice is refused", cudaFree(gone) == cudaErrorInvalidValue);
    check("a copy past the end is refused",
          cudaMemcpy(got.data(), x, 404, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    check("a copy the wrong way is refused",
          cudaMemcpy(x, got.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    size_t free_before, free_after, total;
    must(cudaMemGetInfo(&free_before, &total));
    void *large = nullptr;
    check("more than there is is refused", cudaMalloc(&large, total) == cudaErrorMemoryAllocation);
    must(cudaMalloc(&large, total / 2));
    must(cudaMemGetInfo(&free_after, &total));
    check("what is taken is not free", free_before - free_after == total / 2);
    must(cudaFree(large));
    must(cudaFree(x));
    cudaGetLastError();
}

static void streams()
{
    cudaStream_t one, two;
    cudaEvent_t copied, begun;
    must(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    must(cudaEventCreate(&begun));
    must(cudaEventCreate(&copied));
    float *x = upload(std::vector<float>(4, 1)), host = 5;
    must(cudaMemcpyAsync(x, &host, 4, cudaMemcpyHostToDevice, one));
    host = 6; /* too early */
    must(cudaStreamSynchronize(one));
    check("a copy reads its source at the wait", first(x) == 6);
    must(cudaMemcpyAsync(&host, x + 1, 4, cudaMemcpyDeviceToHost, one));
    check("a copy fills its target at the wait, and not before", host == 6);
    must(cudaStreamSynchronize(one));
    check("... then it is there", host == 1);
    must(cudaEventRecord(begun, one));
    LAUNCH(add, 1, 1, 0, one, x, 1, 1);
    must(cudaEventRecord(copied, one));
    LAUNCH(times, 1, 1, 0, two, x, 10);
    must(cudaStreamSynchronize(two));
    check("a stream that waits for nobody comes first", first(x) == 60);
    check("an event of the other is not done", cudaEventQuery(copied) == cudaErrorNotReady);
    must(cudaStreamWaitEvent(two, copied));
    LAUNCH(times, 1, 1, 0, two, x, 2);
    must(cudaStreamSynchronize(two));
    check("... one that waits comes second", first(x) == 122);
    float ms = -1;
    check("the time between events",
          cudaEventElapsedTime(&ms, begun, copied) == cudaSuccess && ms >= 0);
    LAUNCH(times, 1, 1, 0, one, x, 0);
    LAUNCH(add, 1, 1, 0, nullptr, x, 3, 1);
    must(cudaStreamSynchronize(nullptr));
    check("the null stream does not wait for these", first(x) == 125);
    must(cudaDeviceSynchronize());
    check("the device waits for all", first(x) == 0);
    must(cudaMemcpy(x, &host, 4, cudaMemcpyHostToDevice)); /* of 1, to a 0 */
    LAUNCH(times, 1, 1, 0, one, x, 10);
    must(cudaStreamSynchronize(one));
    check("a copy from pageable memory may come after a stream that does not wait", first(x) == 1);
    cudaStream_t plain;
    must(cudaStreamCreate(&plain));
    LAUNCH(add, 1, 1, 0, plain, x, 1, 1);
    LAUNCH(times, 1, 1, 0, nullptr, x, 5);
    check("it does wait for plain ones", first(x) == 10);
    for (cudaStream_t s : {one, two, plain})
        must(cudaStreamDestroy(s));
    check("a destroyed stream is refused",
          cudaStreamSynchronize(one) == cudaErrorInvalidResourceHandle);
    must(cudaEventDestroy(begun));
    must(cudaEventDestroy(copied));
    must(cudaFree(x));
    cudaGetLastError();
}

static void graphs()
{
    cudaStream_t s, other;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t event;
    void *memory;
    must(cudaStreamCreate(&s));
    must(cudaStreamCreate(&other));
    must(cudaEventCreate(&event));
    float *x = upload(std::vector<float>(1, 1)), more = 2;
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    LAUNCH(add, 1, 1, 0, s, x, more, 1);
    more = 100;
    LAUNCH(times, 1, 1, 0, s, x, 3);
    must(cudaStreamEndCapture(s, &graph));
    must(cudaGraphInstantiate(&exec, graph));
    must(cudaGraphDestroy(graph));
    must(cudaStreamSynchronize(s));
    check("captured work does not run", first(x) == 1);
    must(cudaGraphLaunch(exec, s));
    must(cudaGraphLaunch(exec, s));
    must(cudaStreamSynchronize(s));
    check("a graph runs as often as it is launched", first(x) == 33);
    must(cudaGraphExecDestroy(exec));
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    must(cudaEventRecord(event, s));
    check("no allocation in a capture",
          cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported);
    check("another stream cannot wait for it",
          cudaStreamWaitEvent(other, event) == cudaErrorStreamCaptureIsolation);
    check("no wait in a capture", cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
    check("... it ends the capture",
          cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
    must(cudaStreamDestroy(s));
    must(cudaStreamDestroy(other));
    must(cudaFree(x));
    cudaGetLastError();
}

/* ---- cuBLASLt ---- */

static cublasLtHandle_t blas;

struct shape {
    int m, n, k;
    bool at, bt, row_major;
    int batches;
    cudaDataType in, out;
    cublasComputeType_t compute;
};

static cublasLtMatrixLayout_t layout(const shape &s, cudaDataType type, int rows, int columns)
{
    cublasLtMatrixLayout_t l;
    int32_t order = s.row_major ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL, batches = s.batches;
    int64_t stride = (int64_t)rows * columns;
    cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)columns,
                               s.row_major ? columns : rows);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                     sizeof batches);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                     sizeof stride);
    return l;
}

/* A product's objects, and the status of its two calls. */
struct product {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[4];
    int count = 0;
    cublasStatus_t status;

    product(const shape &s, uint64_t workspace)
    {
        int32_t at = s.at, bt = s.bt;
        cublasLtMatmulDescCreate(&desc, s.compute, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &at, sizeof at);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &bt, sizeof bt);
        a = s.at ? layout(s, s.in, s.k, s.m) : layout(s, s.in, s.m, s.k);
        b = s.bt ? layout(s, s.in, s.n, s.k) : layout(s, s.in, s.k, s.n);
        d = layout(s, s.out, s.m, s.n);
        cublasLtMatmulPreferenceCreate(&preference);
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace);
        status =
            cublasLtMatmulAlgoGetHeuristic(blas, desc, a, b, d, d, preference, 4, found, &count);
    }
    ~product()
    {
        cublasLtMatmulDescDestroy(desc);
        for (cublasLtMatrixLayout_t l : {a, b, d})
            cublasLtMatrixLayoutDestroy(l);
        cublasLtMatmulPreferenceDestroy(preference);
    }
    cublasStatus_t run(const void *pa, const void *pb, void *pd, float beta,
                       const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes)
    {
        float alpha = 2;
        return cublasLtMatmul(blas, desc, &alpha, pa, a, pb, b, &beta, pd, d, pd, d, algo,
                              workspace, bytes, nullptr);
    }
};

/* Small whole numbers: exact in every type. As the type's bytes. */
static bytes numbers(size_t n, cudaDataType type, std::vector<float> *values)
{
    bytes all(n * (type == CUDA_R_16BF ? 2 : 4));
    for (size_t i = 0; i < n; i++) {
        float x = (float)(int)(i * 7 % 11) - 5;
        values->push_back(x);
        if (type == CUDA_R_16BF)
            ((__nv_bfloat16 *)all.data())[i] = __float2bfloat16(x);
        else
            ((float *)all.data())[i] = x;
    }
    return all;
}

/* D = 2 op(A) op(B) + beta D on D = 3, or on NaN where beta is 0. */
static bool right(const shape &s, float beta)
{
    std::vector<float> a, b;
    size_t m = (size_t)s.m, n = (size_t)s.n, k = (size_t)s.k, all = m * n * (size_t)s.batches;
    unsigned char *pa = upload(numbers(m * k * (size_t)s.batches, s.in, &a));
    unsigned char *pb = upload(numbers(n * k * (size_t)s.batches, s.in, &b));
    bytes start(all * (s.out == CUDA_R_16BF ? 2 : 4), 0xff);
    for (size_t i = 0; i < all && beta != 0; i++)
        if (s.out == CUDA_R_16BF)
            ((__nv_bfloat16 *)start.data())[i] = __float2bfloat16(3);
        else
            ((float *)start.data())[i] = 3;
    unsigned char *pd = upload(start), *workspace = device<unsigned char>(4096);
    product p(s, 4096);
    static int turn; /* each of the algorithms */
    bool ok = p.status == CUBLAS_STATUS_SUCCESS && p.count == 4 &&
              p.run(pa, pb, pd, beta, &p.found[turn++ % 4].algo, workspace, 4096) ==
                  CUBLAS_STATUS_SUCCESS;
    bytes got = download(pd, start.size());
    for (size_t i = 0; i < all; i++) {
        size_t batch = i / (m * n), at = i % (m * n);
        size_t row = s.row_major ? at / n : at % m, column = s.row_major ? at % n : at / m;
        float want = beta == 0 ? 0 : 3 * beta;
        for (size_t j = 0; j < k; j++) /* an operand's number lies by rows if exactly one is so */
            want += 2 * a[batch * m * k + (s.at != s.row_major ? row * k + j : j * m + row)] *
                    b[batch * n * k + (s.bt != s.row_major ? j * n + column : column * k + j)];
        float is = s.out == CUDA_R_16BF ? __bfloat162float(((__nv_bfloat16 *)got.data())[i])
                                        : ((float *)got.data())[i];
        ok = ok && is == (s.out == CUDA_R_16BF ? __bfloat162float(__float2bfloat16(want)) : want);
    }
    for (void *at : {pa, pb, pd, workspace})
        must(cudaFree(at));
    return ok;
}

static void products()
{
    static const cudaDataType types[3][2] = {
        {CUDA_R_32F, CUDA_R_32F}, {CUDA_R_16BF, CUDA_R_32F}, {CUDA_R_16BF, CUDA_R_16BF}};
    cublasLtCreate(&blas);
    for (auto &t : types) {
        bool ok = true;
        for (int i = 0; i < 32; i++) {
            shape s = {5,
                       7,
                       3,
                       (i & 1) != 0,
                       (i & 2) != 0,
                       (i & 4) != 0,
                       i & 8 ? 3 : 1,
                       t[0],
                       t[1],
                       CUBLAS_COMPUTE_32F};
            ok = ok && right(s, i & 16 ? 0.5f : 0);
        }
        check(std::string("products of ") + (t[0] == CUDA_R_16BF ? "bfloat16" : "float32") +
                  " into " + (t[1] == CUDA_R_16BF ? "bfloat16" : "float32") +
                  ": orders, transposes, batches, beta",
              ok);
    }
    shape s = {1,    1, 1,          false,      false,
               true, 1, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    float *x = upload(std::vector<float>(64, 1 + 0x1p-10f + 0x1p-12f)), *y = device<float>(64);
    product p(s, 0);
    check("without a workspace there are two algorithms",
          p.count == 2 && p.found[0].workspaceSize == 0 && p.found[1].workspaceSize == 0);
    check("tf32 rounds its operands",
          p.run(x, x, y, 0, &p.found[0].algo, nullptr, 0) == CUBLAS_STATUS_SUCCESS &&
              first(y) == 2 * (1 + 0x1p-10f) * (1 + 0x1p-10f));
    s.k = 2;
    product other(s, 4096);
    check("another product's algorithm is refused",
          other.run(x, x, y, 0, &p.found[0].algo, nullptr, 0) == CUBLAS_STATUS_INVALID_VALUE);
    check("a workspace too small is refused",
          other.run(x, x, y, 0, &other.found[2].algo, x, 64) == CUBLAS_STATUS_INVALID_VALUE);
    s.in = CUDA_R_32F;
    s.out = CUDA_R_16BF;
    check("float32 into bfloat16 is refused", product(s, 0).status == CUBLAS_STATUS_NOT_SUPPORTED);
    s.out = CUDA_R_32F;
    s.k = 100;
    aborts("a product past its device memory", "beyond its device memory", [&] {
        product large(s, 0);
        large.run(x, x, y, 0, &large.found[0].algo, nullptr, 0);
    });
    must(cudaFree(x));
    must(cudaFree(y));
    cublasLtDestroy(blas);
}

int main()
{
    memory();
    streams();
    graphs();
    products();
    return done();
}
