/* tensor.h - numbers with a shape. A tensor is a view of device memory, which kernels compute with.
 * An array is a view of host memory, such as a mapped file. Neither owns its memory; both are
 * row-major.
 *
 * Device memory is an address, not a pointer: the host cannot read it. */
#ifndef TUNE_CORE_TENSOR_H
#define TUNE_CORE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Kernels compute with F32 and BF16. NF4 (nf4.h) stores frozen weights; no file
 * holds it. The others only occur in files. */
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
    TUNE_DTYPES,       /* the number of types */
    /* An argument may have one of these instead of a type. No tensor has one. */
    TUNE_AS_READ,      /* for weights that are saved: each keeps the type that its file had */
    TUNE_TRAINED,      /* for the storage of frozen weights: none is frozen, all are trained */
    TUNE_UNKNOWN_DTYPE /* nobody says which type */
};

#define TUNE_MAX_DIMS 8

/* An address in device memory. 0: none. Only devices/ turns it into a pointer. */
typedef struct tune_address {
    uint64_t at;
} tune_address;

/* tune_address_plus - the address bytes further on. 0 stays 0. */
static inline tune_address tune_address_plus(tune_address a, int64_t bytes)
{
    tune_address there = {a.at ? a.at + (uint64_t)bytes : 0};
    return there;
}

struct tune_nf4_part;

/* Numbers on a device. Where an operation allows it, a matrix may be some columns of a wider one:
 * its rows then lie further apart than they are long. */
struct tune_tensor {
    tune_address data;
    enum tune_dtype dtype;
    int ndim;                        /* 0: a scalar */
    int64_t shape[TUNE_MAX_DIMS];    /* the first ndim are valid */
    /* elements between rows, or positions of [B,T,H,D]; 0: dense */
    int64_t stride;
    int64_t outer;                   /* [B,T,H,D]: elements from one b to the next; 0: dense */
    const struct tune_nf4_part *nf4; /* NF4: its parts (nf4.h); else NULL */
};

/* Numbers on the host, with any alignment: copy them, never cast the pointer. */
struct tune_array {
    const void *data;
    enum tune_dtype dtype;
    int ndim;
    int64_t shape[TUNE_MAX_DIMS];
};

/* tune_dtype_name - the safetensors name: "F32", "BF16", ...
 * tune_dtype_bits - bits per element: 32, 16, ...; 4 for F4 and NF4, 6 for F6_*.
 * tune_dtype_from - the type by either name, "BF16" or "bfloat16". -1, without an error text, for a
 * name that no file has; NF4 is one. */
const char *tune_dtype_name(enum tune_dtype dtype);
int tune_dtype_bits(enum tune_dtype dtype);
int tune_dtype_from(const char *name);

/* tune_tensor_1d - a view of data as a vector of n.
 * tune_tensor_2d - a view of data as a matrix.
 * tune_tensor_heads - a view [B,T,heads,D] of columns first, first+1, ... of rows [B*T,Q]. */
struct tune_tensor tune_tensor_1d(tune_address data, enum tune_dtype dtype, int64_t n);
struct tune_tensor tune_tensor_2d(tune_address data, enum tune_dtype dtype, int64_t rows,
                                  int64_t columns);
struct tune_tensor tune_tensor_heads(const struct tune_tensor *rows, int64_t B, int64_t first,
                                     int64_t heads, int64_t D);

/* tune_tensor_columns - a view of the columns [first, first + count) of a matrix; not of NF4.
 * tune_tensor_part - a view of the elements [first, first + count) of a vector. */
struct tune_tensor tune_tensor_columns(const struct tune_tensor *t, int64_t first, int64_t count);
struct tune_tensor tune_tensor_part(const struct tune_tensor *t, int64_t first, int64_t count);

/* tune_tensor_stride - elements from one row of a matrix to the next.
 * tune_tensor_elements - product of the shape; 1 for a scalar.
 * tune_tensor_bytes - elements * bits / 8, rounded up, of a dense tensor.
 * tune_array_elements - product of an array's shape.
 * tune_array_bytes - its elements * bits / 8, rounded up. */
int64_t tune_tensor_stride(const struct tune_tensor *t);
int64_t tune_tensor_elements(const struct tune_tensor *t);
int64_t tune_tensor_bytes(const struct tune_tensor *t);
int64_t tune_array_elements(const struct tune_array *a);
int64_t tune_array_bytes(const struct tune_array *a);

/* tune_shape_text - write "[49152, 576]" into text, cut to size, for messages. Returns text. */
const char *tune_shape_text(int ndim, const int64_t *shape, char *text, size_t size);

/* tune_convert - convert n elements between float types on the CPU: F32, BF16, F16 and F64 in any
 * pair. F64 to 16 bits goes through F32. Rounds to nearest, ties to even; NaN stays NaN. to and
 * from may be equal if the types are, but must not overlap otherwise. -1 with an error: not a float
 * type. */
int tune_convert(void *to, enum tune_dtype to_dtype, const void *from, enum tune_dtype from_dtype,
                 int64_t n);

#ifdef __cplusplus
}
#endif
#endif
