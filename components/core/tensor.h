/* tensor.h - a named piece of memory with a shape: what kernels take and files hold.
 *
 * A tensor does not own its memory; it is a view into a device buffer, a mapped
 * file or an array of the caller's. Row-major; the rows of a matrix may lie further apart
 * than they are long (some columns of a wider one), where an operation says that it takes that. */
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

struct tune_nf4;

struct tune_tensor {
    void *data;
    enum tune_dtype dtype;
    int ndim;                     /* 0: a scalar */
    int64_t shape[TUNE_MAX_DIMS]; /* the first ndim hold */
    int64_t stride;               /* elements from the begin of a row of a matrix to the next one's; 0: they touch */
    const struct tune_nf4 *nf4;   /* NF4: the scales of the numbers in data; else NULL */
};

/* tune_dtype_name - the safetensors spelling: "F32", "BF16", ...
 * tune_dtype_bits - 32, 16, ...; F4 and NF4 are 4 and F6_* are 6, so bytes are bits * elements / 8.
 * tune_dtype_from - by either spelling, "BF16" or "bfloat16"; -1 and no error text if it is none of a file's: NF4 is not. */
const char *tune_dtype_name(enum tune_dtype dtype);
int tune_dtype_bits(enum tune_dtype dtype);
int tune_dtype_from(const char *name);

/* tune_tensor_1d, _2d - a view of data with that shape. */
struct tune_tensor tune_tensor_1d(void *data, enum tune_dtype dtype, int64_t n);
struct tune_tensor tune_tensor_2d(void *data, enum tune_dtype dtype, int64_t rows, int64_t columns);

/* tune_tensor_columns - the columns [first, first + count) of a matrix, in place. Not of NF4. */
struct tune_tensor tune_tensor_columns(const struct tune_tensor *t, int64_t first, int64_t count);

/* tune_tensor_stride - of a matrix: from one row to the next, in elements.
 * tune_tensor_elements - product of the shape (1 for a scalar).
 * tune_tensor_bytes - elements * bits / 8, rounded up: what they take where nothing lies between rows. */
int64_t tune_tensor_stride(const struct tune_tensor *t);
int64_t tune_tensor_elements(const struct tune_tensor *t);
int64_t tune_tensor_bytes(const struct tune_tensor *t);

/* tune_tensor_shape_text - "[49152, 576]" into text (cut to size); returns text. For messages. */
const char *tune_tensor_shape_text(const struct tune_tensor *t, char *text, size_t size);

/* tune_convert - n elements from one float type to another on the CPU; F32, BF16, F16 and F64 in any pair (F64 to 16 bits goes through F32).
 * Rounds to nearest, ties to even; NaN stays NaN. to and from must not overlap unless equal in type and place.
 * 0, or -1 with an error: not a float type. */
int tune_convert(void *to, enum tune_dtype to_dtype, const void *from, enum tune_dtype from_dtype, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
