/* tensor.h - numbers with a shape: on a device, which kernels take, or on the host, which files hold.
 *
 * Device memory is an address, not a pointer: the host cannot read it. A tensor is a view of device memory, an array is
 * one of host memory (a mapped file, mostly); neither owns it. Both are row-major. */
#ifndef TUNE_CORE_TENSOR_H
#define TUNE_CORE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. F32 and BF16 are what kernels compute with; NF4 (nf4.h) is what frozen weights are kept in, and no file
 * holds it; the rest are met in files. */
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
    TUNE_DTYPES /* how many there are */
};

#define TUNE_MAX_DIMS 8

/* Memory on a device. 0: none. Only devices/ turns it into a pointer. */
typedef struct tune_address {
    uint64_t at;
} tune_address;

/* tune_address_plus - the address that many bytes further on; none stays none. */
static inline tune_address tune_address_plus(tune_address a, int64_t bytes)
{
    tune_address there = {a.at ? a.at + (uint64_t)bytes : 0};
    return there;
}

struct tune_nf4_part;

/* Numbers on a device. The rows of a matrix may lie further apart than they are long (some columns of a wider one), where
 * an operation says that it takes that. */
struct tune_tensor {
    tune_address data;
    enum tune_dtype dtype;
    int ndim;                        /* 0: a scalar */
    int64_t shape[TUNE_MAX_DIMS];    /* the first ndim hold */
    int64_t stride;                  /* elements from one row of a matrix, or one position of [B,T,H,D], to the next; 0: they touch */
    int64_t outer;                   /* of [B,T,H,D]: elements from one b to the next; 0: they touch */
    const struct tune_nf4_part *nf4; /* NF4: the parts it is made of (nf4.h); else NULL */
};

/* Numbers on the host, of any alignment: copy, never cast. */
struct tune_array {
    const void *data;
    enum tune_dtype dtype;
    int ndim;
    int64_t shape[TUNE_MAX_DIMS];
};

/* tune_dtype_name - the safetensors spelling: "F32", "BF16", ...
 * tune_dtype_bits - 32, 16, ...; F4 and NF4 are 4 and F6_* are 6, so bytes are bits * elements / 8.
 * tune_dtype_from - by either spelling, "BF16" or "bfloat16"; -1 and no error text if it is none of a file's: NF4 is not. */
const char *tune_dtype_name(enum tune_dtype dtype);
int tune_dtype_bits(enum tune_dtype dtype);
int tune_dtype_from(const char *name);

/* tune_tensor_1d, _2d - a view of data with that shape.
 * tune_tensor_heads - of rows [B T,Q] the view [B,T,heads,D] of the columns that begin at first. */
struct tune_tensor tune_tensor_1d(tune_address data, enum tune_dtype dtype, int64_t n);
struct tune_tensor tune_tensor_2d(tune_address data, enum tune_dtype dtype, int64_t rows, int64_t columns);
struct tune_tensor tune_tensor_heads(const struct tune_tensor *rows, int64_t B, int64_t first, int64_t heads, int64_t D);

/* tune_tensor_columns - the columns [first, first + count) of a matrix, in place. Not of NF4.
 * tune_tensor_part - the elements [first, first + count) of a vector, in place. */
struct tune_tensor tune_tensor_columns(const struct tune_tensor *t, int64_t first, int64_t count);
struct tune_tensor tune_tensor_part(const struct tune_tensor *t, int64_t first, int64_t count);

/* tune_tensor_stride - of a matrix: from one row to the next, in elements.
 * tune_tensor_elements - product of the shape (1 for a scalar).
 * tune_tensor_bytes - elements * bits / 8, rounded up: what they take where nothing lies between rows. */
int64_t tune_tensor_stride(const struct tune_tensor *t);
int64_t tune_tensor_elements(const struct tune_tensor *t);
int64_t tune_tensor_bytes(const struct tune_tensor *t);
int64_t tune_array_elements(const struct tune_array *a);
int64_t tune_array_bytes(const struct tune_array *a);

/* tune_shape_text - "[49152, 576]" into text (cut to size); returns text. For messages. */
const char *tune_shape_text(int ndim, const int64_t *shape, char *text, size_t size);

/* tune_convert - n elements from one float type to another on the CPU; F32, BF16, F16 and F64 in any pair (F64 to 16 bits goes through F32).
 * Rounds to nearest, ties to even; NaN stays NaN. to and from must not overlap unless equal in type and place.
 * 0, or -1 with an error: not a float type. */
int tune_convert(void *to, enum tune_dtype to_dtype, const void *from, enum tune_dtype from_dtype, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
