/* tensor.h - tensors in device memory, and arrays in host memory.
 *
 * Device memory is an address, not a pointer, because the host cannot read it. A tensor is a view
 * of device memory. An array is a view of host memory, usually of a mapped file. Neither owns its
 * data. Both are row-major. */
#ifndef TUNE_CORE_TENSOR_H
#define TUNE_CORE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Kernels compute with F32 and BF16. NF4 (nf4.h) stores frozen weights on the device
 * and does not occur in files. The others occur in files only. */
enum tune_dtype {
    TUNE_F32,
    TUNE_BF16,
    TUNE_F16,
    TUNE_F64,
    TUNE_I64,
    TUNE_I32,
    TUNE_I16,
    TUNE_I8,
    TUNE_U64,
    TUNE_U32,
    TUNE_U16,
    TUNE_U8,
    TUNE_BOOL8,
    TUNE_F8_E4M3,
    TUNE_F8_E5M2,
    TUNE_F8_E8M0,
    TUNE_F8_E4M3FNUZ,
    TUNE_F8_E5M2FNUZ,
    TUNE_C64,
    TUNE_F6_E2M3,
    TUNE_F6_E3M2,
    TUNE_F4,
    TUNE_NF4,
    TUNE_DTYPES /* the number of dtypes */
};

#define TUNE_MAX_DIMS 8

/* Memory on a device. 0: none. Only devices/ converts it to a pointer. */
typedef struct tune_address {
    uint64_t at;
} tune_address;

/* tune_address_plus - the address `bytes` further on. Address 0 stays 0. */
static inline tune_address tune_address_plus(tune_address a, int64_t bytes)
{
    tune_address there = {a.at ? a.at + (uint64_t)bytes : 0};
    return there;
}

struct tune_nf4_part;

/* A tensor on a device. Rows of a matrix may have a stride, if the operation's description allows
 * it. They are then columns of a wider matrix. */
struct tune_tensor {
    tune_address data;
    enum tune_dtype dtype;
    int ndim;                        /* number of dimensions; 0: a scalar */
    int64_t shape[TUNE_MAX_DIMS];    /* the first ndim are used */
    int64_t stride; /* elements between rows of a matrix or positions of [B,T,H,D]; 0: contiguous */
    int64_t outer; /* [B,T,H,D] only: elements between batch rows; 0: contiguous */
    const struct tune_nf4_part *nf4; /* the parts of an NF4 tensor (nf4.h); else NULL */
};

/* An array on the host. data may be unaligned: copy from it, never cast it. */
struct tune_array {
    const void *data;
    enum tune_dtype dtype;
    int ndim;
    int64_t shape[TUNE_MAX_DIMS];
};

/* tune_dtype_name - its name in safetensors: "F32", "BF16", ...
 * tune_dtype_bits - bits of an element: 32, 16, ...; F4 and NF4 have 4, F6_* have 6.
 * tune_dtype_from - the dtype of a name, "BF16" or "bfloat16". -1 without an error text if files
 * have no such dtype; that includes NF4. */
const char *tune_dtype_name(enum tune_dtype dtype);
int tune_dtype_bits(enum tune_dtype dtype);
int tune_dtype_from(const char *name);

/* tune_tensor_1d, tune_tensor_2d - a view of data with this shape.
 *
 * tune_tensor_heads - a view [B,T,heads,D] of columns of rows [B T,Q], beginning at column
 * `first`. */
struct tune_tensor tune_tensor_1d(tune_address data, enum tune_dtype dtype, int64_t n);
struct tune_tensor tune_tensor_2d(tune_address data, enum tune_dtype dtype, int64_t rows,
                                  int64_t columns);
struct tune_tensor tune_tensor_heads(const struct tune_tensor *rows, int64_t B, int64_t first,
                                     int64_t heads, int64_t D);

/* tune_tensor_columns - a view of columns [first, first + count) of a matrix. Not for NF4.
 *
 * tune_tensor_part - a view of elements [first, first + count) of a vector. */
struct tune_tensor tune_tensor_columns(const struct tune_tensor *t, int64_t first, int64_t count);
struct tune_tensor tune_tensor_part(const struct tune_tensor *t, int64_t first, int64_t count);

/* tune_tensor_stride - elements from one row of a matrix to the next.
 * tune_tensor_elements, tune_array_elements - product of the shape; 1 for a scalar.
 * tune_tensor_bytes, tune_array_bytes - elements * bits / 8, rounded up; strides are not
 * counted. */
int64_t tune_tensor_stride(const struct tune_tensor *t);
int64_t tune_tensor_elements(const struct tune_tensor *t);
int64_t tune_tensor_bytes(const struct tune_tensor *t);
int64_t tune_array_elements(const struct tune_array *a);
int64_t tune_array_bytes(const struct tune_array *a);

/* tune_shape_text - write "[49152, 576]" to text, cut to size, for messages. Returns text. */
const char *tune_shape_text(int ndim, const int64_t *shape, char *text, size_t size);

/* tune_convert - convert n elements between F32, BF16, F16 and F64 on the CPU, rounding to nearest,
 * ties to even. F64 to 16 bits goes through F32. NaN stays NaN. to and from may be the same array
 * if the dtypes are equal; otherwise they must not overlap. 0, or -1 with an error: another
 * dtype. */
int tune_convert(void *to, enum tune_dtype to_dtype, const void *from, enum tune_dtype from_dtype,
                 int64_t n);

#ifdef __cplusplus
}
#endif
#endif
