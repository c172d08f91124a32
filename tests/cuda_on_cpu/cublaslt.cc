/* cublaslt.cc - cuBLASLt's products as plain loops. What the library would refuse is refused. */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "parts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

/* Begins a call of cuBLASLt. */
#define EMU_LT_CALLED(name)                                                                        \
    emu::my_turn turn_;                                                                            \
    if (cudaError_t error_ = emu::called(name))                                                    \
    return error_ == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED                        \
                                               : CUBLAS_STATUS_EXECUTION_FAILED

struct emu_blas {
    bool open;
};
struct emu_layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t leading, batch_stride;
    int32_t order, batches;
};
struct emu_product {
    cublasComputeType_t compute;
    int32_t transposed[2]; /* A, B */
};
struct emu_preference {
    uint64_t workspace;
    uint32_t aligned[4]; /* of A, B, C, D, in bytes */
    uint32_t reductions; /* a mask of cublasLtReductionScheme_t */
};

enum : size_t { WORKSPACE = 4096 };

/* The algorithms, in the order in which the heuristic offers them. */
enum { FORWARD, BACKWARD, HALVES, IN_PLACE, ALGORITHMS };
static const struct {
    uint32_t parts, reduction;
    size_t workspace;
} algorithms[ALGORITHMS] = {{1, CUBLASLT_REDUCTION_SCHEME_NONE, 0},
                            {1, CUBLASLT_REDUCTION_SCHEME_NONE, 0},
                            {2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, WORKSPACE},
                            {2, CUBLASLT_REDUCTION_SCHEME_INPLACE, WORKSPACE}};

/* The time that events see an algorithm take. */
static double pretended_ms(uint64_t algorithm)
{
    const char *text = getenv("CUDA_ON_CPU_PRODUCT_MS");
    double ms[ALGORITHMS] = {400, 200, 100, 50};
    for (int i = 0; text && i < ALGORITHMS; i++) {
        ms[i] = atof(text);
        text = strchr(text, ',');
        text = text ? text + 1 : nullptr;
    }
    return ms[algorithm];
}

/* ---- what is refused ---- */

/* The product that is asked for. */
struct question {
    bool offer;          /* the heuristic is asked */
    uint64_t number;     /* of the call, since the variable has this value */
    uint64_t algorithm;  /* of a call */
    bool even;           /* rows and matrices begin at multiples of 16 bytes, no gaps of more */
};

/* Whether a word of CUDA_ON_CPU_REFUSE fits. */
static bool word_fits(const std::string &word, const question &q)
{
    size_t is = word.find('=');
    std::string name = word.substr(0, is);
    uint64_t value = is == std::string::npos ? 0 : strtoull(word.c_str() + is + 1, nullptr, 10);
    if (name == "offer" || name == "uneven-offer")
        return q.offer && (name == "offer" || !q.even);
    if (q.offer)
        return false;
    if (name == "call")
        return q.number == value;
    if (name == "algorithm")
        return q.algorithm == value;
    if (name == "uneven")
        return !q.even;
    if (name != "all")
        emu::fail("CUDA_ON_CPU_REFUSE: no word %s", word.c_str());
    return true;
}

/* The status with which the variable says to refuse. */
static cublasStatus_t refused(question q)
{
    static std::string last;
    static uint64_t calls;
    const char *text = getenv("CUDA_ON_CPU_REFUSE");
    std::string all = text ? text : "";
    if (all != last)
        calls = 0;
    last = all;
    cublasStatus_t with = CUBLAS_STATUS_NOT_SUPPORTED;
    bool fits = false;
    q.number = q.offer ? 0 : ++calls;
    for (size_t at = 0, end; at < all.size(); at = end + 1) {
        end = std::min(all.find(',', at), all.size());
        std::string word = all.substr(at, end - at);
        if (word.compare(0, 7, "status=") == 0)
            with = (cublasStatus_t)atoi(word.c_str() + 7);
        else
            fits = word_fits(word, q) || fits;
    }
    return fits ? with : CUBLAS_STATUS_SUCCESS;
}

static size_t element_bytes(cudaDataType type) { return type == CUDA_R_16BF ? 2 : 4; }

static size_t offset_of(const emu_layout &l, uint64_t row, uint64_t column)
{
    return l.order == CUBLASLT_ORDER_ROW ? row * (uint64_t)l.leading + column
                                         : column * (uint64_t)l.leading + row;
}

/* The bytes from a layout's first element to behind its last. */
static size_t span(const emu_layout &l)
{
    size_t last =
        offset_of(l, l.rows - 1, l.columns - 1) + (size_t)(l.batches - 1) * (size_t)l.batch_stride;
    return (last + 1) * element_bytes(l.type);
}

static float element(const void *at, cudaDataType type, size_t i)
{
    return type == CUDA_R_16BF ? __bfloat162float(((const __nv_bfloat16 *)at)[i])
                               : ((const float *)at)[i];
}

static void set_element(void *at, cudaDataType type, size_t i, float x)
{
    if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)at)[i] = __float2bfloat16(x);
    else
        ((float *)at)[i] = x;
}

/* An operand's element of op(X). With FAST_TF32 its low 13 bits do not count. */
static float operand(const void *at, const emu_layout &l, bool transposed, uint64_t row,
                     uint64_t column, size_t batch, cublasComputeType_t compute)
{
    size_t i = transposed ? offset_of(l, column, row) : offset_of(l, row, column);
    float x = element(at, l.type, batch * (size_t)l.batch_stride + i);
    return compute == CUBLAS_COMPUTE_32F_FAST_TF32
               ? __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000)
               : x;
}

static bool layout_fits(const emu_layout &l)
{
    uint64_t least = l.order == CUBLASLT_ORDER_ROW ? l.columns : l.rows;
    return l.rows > 0 && l.columns > 0 && (uint64_t)l.leading >= least && l.batches > 0;
}

/* Whether a matrix begins at a multiple of 16 bytes, and each column too, with less than 16 bytes
 * between two of them. `aligned`: of its address. */
static bool is_even(const emu_layout &l, uint64_t aligned)
{
    uint64_t most = 16 / element_bytes(l.type), length = l.order ? l.columns : l.rows;
    return aligned % 16 == 0 && (uint64_t)l.leading == (length + most - 1) / most * most;
}

static cublasStatus_t check(const emu_product &p, const emu_layout &a, const emu_layout &b,
                            const emu_layout &c, const emu_layout &d)
{
    uint64_t m = p.transposed[0] ? a.columns : a.rows, k = p.transposed[0] ? a.rows : a.columns;
    uint64_t n = p.transposed[1] ? b.rows : b.columns, k2 = p.transposed[1] ? b.columns : b.rows;
    if (!layout_fits(a) || !layout_fits(b) || !layout_fits(c) || !layout_fits(d) || k != k2 ||
        d.rows != m || d.columns != n || c.rows != m || c.columns != n || a.batches != d.batches ||
        b.batches != d.batches || c.batches != d.batches)
        return CUBLAS_STATUS_INVALID_VALUE;
    bool known = a.type == b.type && c.type == d.type &&
                 (a.type == CUDA_R_16BF || d.type == CUDA_R_32F) && c.order == d.order;
    return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* A number that differs between products. */
static uint64_t product_key(const emu_product &p, const emu_layout *const layouts[4])
{
    uint64_t key = 14695981039346656037u ^ (uint64_t)p.compute;
    uint64_t more[2] = {(uint64_t)p.transposed[0], (uint64_t)p.transposed[1]};
    for (uint64_t x : more)
        key = (key ^ x) * 1099511628211u;
    for (int i = 0; i < 4; i++) {
        const emu_layout &l = *layouts[i];
        uint64_t parts[] = {(uint64_t)l.type,  l.rows,
                            l.columns,         (uint64_t)l.leading,
                            (uint64_t)l.order, (uint64_t)l.batches};
        for (uint64_t x : parts)
            key = (key ^ x) * 1099511628211u;
    }
    return key;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    default: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
}

size_t cublasLtGetVersion() { return 130000; }

/* ---- objects ---- */

template <class T> static cublasStatus_t create(T **object, const char *name, T first)
{
    EMU_LT_CALLED(name);
    *object = new T(first);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t destroy(T *object, const char *name)
{
    EMU_LT_CALLED(name);
    delete object;
    return CUBLAS_STATUS_SUCCESS;
}

/* Sets a member if the value has its size. */
template <class T>
static cublasStatus_t set(T *member, const char *name, const void *value, size_t bytes)
{
    EMU_LT_CALLED(name);
    if (bytes != sizeof *member)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    return create(handle, "cublasLtCreate", {true});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy(handle, "cublasLtDestroy");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    return scale == CUDA_R_32F ? create(desc, "cublasLtMatmulDescCreate", {compute, {0, 0}})
                               : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    return set(&desc->transposed[attribute == CUBLASLT_MATMUL_DESC_TRANSB],
               "cublasLtMatmulDescSetAttribute", value, bytes);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(desc, "cublasLtMatmulDescDestroy");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    return create(layout, "cublasLtMatrixLayoutCreate",
                  {type, rows, columns, leading, 0, CUBLASLT_ORDER_COL, 1});
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    static const char name[] = "cublasLtMatrixLayoutSetAttribute";
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return set(&layout->order, name, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(&layout->batches, name, value, bytes);
    default: return set(&layout->batch_stride, name, value, bytes);
    }
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout, "cublasLtMatrixLayoutDestroy");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return create(preference, "cublasLtMatmulPreferenceCreate",
                  {0, {256, 256, 256, 256}, CUBLASLT_REDUCTION_SCHEME_MASK});
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    static const char name[] = "cublasLtMatmulPreferenceSetAttribute";
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&preference->workspace, name, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&preference->reductions, name, value, bytes);
    default:
        return set(&preference->aligned[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                   name, value, bytes);
    }
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference, "cublasLtMatmulPreferenceDestroy");
}

/* ---- products ---- */

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *returned)
{
    EMU_LT_CALLED("cublasLtMatmulAlgoGetHeuristic");
    const emu_layout *layouts[4] = {a, b, c, d};
    cublasStatus_t status = check(*desc, *a, *b, *c, *d);
    *returned = 0;
    if (!handle || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    question q = {true, 0, 0, true};
    for (int m = 0; m < 4; m++)
        q.even = q.even && is_even(*layouts[m], preference->aligned[m]);
    if ((status = refused(q)) != CUBLAS_STATUS_SUCCESS)
        return status;
    for (int i = 0; i < ALGORITHMS && *returned < wanted; i++) {
        if (preference->workspace < algorithms[i].workspace ||
            (algorithms[i].reduction & preference->reductions) != algorithms[i].reduction)
            continue;
        cublasLtMatmulHeuristicResult_t *r = &results[(*returned)++];
        *r = cublasLtMatmulHeuristicResult_t();
        r->workspaceSize = algorithms[i].workspace;
        r->algo.data[0] = product_key(*desc, layouts);
        r->algo.data[1] = (uint64_t)i;
        for (int m = 0; m < 4; m++)
            r->algo.data[2 + m] = preference->aligned[m];
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written)
{
    bool narrow = attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                  attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    uint32_t is = 0, which = (uint32_t)algo->data[1];
    EMU_LT_CALLED("cublasLtMatmulAlgoConfigGetAttribute");
    if (bytes != (narrow ? 2 : 4) || which >= ALGORITHMS)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute == CUBLASLT_ALGO_CONFIG_ID)
        is = which;
    if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
        is = algorithms[which].parts;
    if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
        is = algorithms[which].reduction;
    memcpy(value, &is, bytes); /* little-endian */
    *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* One product, with everything by value: the objects may be gone when it runs. */
struct job {
    emu_product p;
    uint64_t algorithm;
    float alpha, beta;
    const void *a, *b, *c;
    void *d;
    emu_layout la, lb, lc, ld;
};

/* The sum over [from, to), first to last or last to first. */
static float dot(const job &j, size_t batch, uint64_t m, uint64_t n, uint64_t from, uint64_t to,
                 bool backward)
{
    float sum = 0;
    for (uint64_t i = from; i < to; i++) {
        uint64_t k = backward ? to - 1 - (i - from) : i;
        sum += operand(j.a, j.la, j.p.transposed[0], m, k, batch, j.p.compute) *
               operand(j.b, j.lb, j.p.transposed[1], k, n, batch, j.p.compute);
    }
    return sum;
}

static void multiply(const job &j)
{
    static bool turned; /* IN_PLACE: the order of the halves */
    emu::open_memory open;
    uint64_t depth = j.p.transposed[0] ? j.la.rows : j.la.columns;
    uint64_t half = j.algorithm < HALVES ? depth : depth / 2;
    emu::pretend(pretended_ms(j.algorithm));
    turned = !turned;
    for (size_t batch = 0; batch < (size_t)j.ld.batches; batch++)
        for (uint64_t m = 0; m < j.ld.rows; m++)
            for (uint64_t n = 0; n < j.ld.columns; n++) {
                float sum = dot(j, batch, m, n, 0, half, j.algorithm == BACKWARD);
                float rest = dot(j, batch, m, n, half, depth, j.algorithm == BACKWARD);
                float c =
                    j.beta == 0
                        ? 0
                        : j.beta * element(j.c, j.lc.type,
                                           batch * (size_t)j.lc.batch_stride +
                                               offset_of(j.lc, m, n));
                sum = j.algorithm != IN_PLACE ? j.alpha * (sum + rest) + c
                      : turned                ? (c + j.alpha * sum) + j.alpha * rest
                                              : (c + j.alpha * rest) + j.alpha * sum;
                set_element(j.d, j.ld.type,
                            batch * (size_t)j.ld.batch_stride + offset_of(j.ld, m, n), sum);
            }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    EMU_LT_CALLED("cublasLtMatmul");
    const emu_layout *layouts[4] = {a_layout, b_layout, c_layout, d_layout};
    cublasStatus_t status = check(*desc, *a_layout, *b_layout, *c_layout, *d_layout);
    if (!handle || !algo)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (algo->data[0] != product_key(*desc, layouts) || algo->data[1] >= ALGORITHMS)
        return CUBLAS_STATUS_INVALID_VALUE;
    size_t needed = algorithms[algo->data[1]].workspace;
    if (workspace_bytes < needed || (needed && !emu::memory_holds(workspace, needed)))
        return CUBLAS_STATUS_INVALID_VALUE;
    const void *matrices[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if ((uint64_t)matrices[i] % algo->data[2 + i])
            return CUBLAS_STATUS_INVALID_VALUE;
    question q = {false, 0, algo->data[1], true};
    for (int i = 0; i < 4; i++)
        q.even = q.even && is_even(*layouts[i], (uint64_t)matrices[i]);
    if ((status = refused(q)) != CUBLAS_STATUS_SUCCESS) {
        emu::break_capture(stream);
        return status;
    }
    job j = {*desc,
             algo->data[1],
             *(const float *)alpha,
             *(const float *)beta,
             a,
             b,
             c,
             d,
             *a_layout,
             *b_layout,
             *c_layout,
             *d_layout};
    if (!emu::memory_holds(a, span(j.la)) || !emu::memory_holds(b, span(j.lb)) ||
        !emu::memory_holds(d, span(j.ld)) || (j.beta != 0 && !emu::memory_holds(c, span(j.lc))))
        emu::fail("cublasLtMatmul: a matrix reaches beyond its device memory");
    if (!emu::memory_load(&algorithms[j.algorithm]))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (emu::queue(stream, "cublasLtMatmul", [j] { multiply(j); }) != cudaSuccess)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}
