/* tensor.c - shapes, dtype names, and conversion between float types. */
#include "core/tensor.h"
#include "core/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/float16.h"

static const struct {
    const char *name, *other;
    int bits;
} dtypes[TUNE_DTYPES] = {
    [TUNE_F32] = {"F32", "float32", 32},
    [TUNE_BF16] = {"BF16", "bfloat16", 16},
    [TUNE_F16] = {"F16", "float16", 16},
    [TUNE_F64] = {"F64", "float64", 64},
    [TUNE_I64] = {"I64", "int64", 64},
    [TUNE_I32] = {"I32", "int32", 32},
    [TUNE_I16] = {"I16", "int16", 16},
    [TUNE_I8] = {"I8", "int8", 8},
    [TUNE_U64] = {"U64", "uint64", 64},
    [TUNE_U32] = {"U32", "uint32", 32},
    [TUNE_U16] = {"U16", "uint16", 16},
    [TUNE_U8] = {"U8", "uint8", 8},
    [TUNE_BOOL8] = {"BOOL", "bool", 8},
    [TUNE_F8_E4M3] = {"F8_E4M3", "float8_e4m3fn", 8},
    [TUNE_F8_E5M2] = {"F8_E5M2", "float8_e5m2", 8},
    [TUNE_F8_E8M0] = {"F8_E8M0", "float8_e8m0fnu", 8},
    [TUNE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    [TUNE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    [TUNE_C64] = {"C64", "complex64", 64},
    [TUNE_F6_E2M3] = {"F6_E2M3", "float6_e2m3fn", 6},
    [TUNE_F6_E3M2] = {"F6_E3M2", "float6_e3m2fn", 6},
    [TUNE_F4] = {"F4", "float4_e2m1fn_x2", 4},
    [TUNE_NF4] = {"NF4", "nf4", 4},
};

const char *tune_dtype_name(enum tune_dtype dtype)
{
    return dtypes[dtype].name;
}

int tune_dtype_bits(enum tune_dtype dtype)
{
    return dtypes[dtype].bits;
}

int tune_dtype_from(const char *name)
{
    for (int i = 0; i < TUNE_NF4; i++)
        if (strcmp(name, dtypes[i].name) == 0 || strcmp(name, dtypes[i].other) == 0)
            return i;
    return -1;
}

struct tune_tensor tune_tensor_1d(tune_address data, enum tune_dtype dtype, int64_t n)
{
    return (struct tune_tensor){.data = data, .dtype = dtype, .ndim = 1, .shape = {n}};
}

struct tune_tensor tune_tensor_2d(tune_address data, enum tune_dtype dtype, int64_t rows, int64_t columns)
{
    return (struct tune_tensor){.data = data, .dtype = dtype, .ndim = 2, .shape = {rows, columns}};
}

static tune_address at_element(const struct tune_tensor *t, int64_t i)
{
    return tune_address_plus(t->data, i * dtypes[t->dtype].bits / 8);
}

struct tune_tensor tune_tensor_heads(const struct tune_tensor *rows, int64_t B, int64_t first, int64_t heads, int64_t D)
{
    int64_t T = B > 0 ? rows->shape[0] / B : 0, stride = tune_tensor_stride(rows);
    return (struct tune_tensor){.data = at_element(rows, first), .dtype = rows->dtype, .ndim = 4, .shape = {B, T, heads, D},
                                .stride = stride, .outer = T * stride};
}

struct tune_tensor tune_tensor_columns(const struct tune_tensor *t, int64_t first, int64_t count)
{
    struct tune_tensor part = tune_tensor_2d(at_element(t, first), t->dtype, t->shape[0], count);
    part.stride = tune_tensor_stride(t);
    return part;
}

struct tune_tensor tune_tensor_part(const struct tune_tensor *t, int64_t first, int64_t count)
{
    return tune_tensor_1d(at_element(t, first), t->dtype, count);
}

int64_t tune_tensor_stride(const struct tune_tensor *t)
{
    return t->stride ? t->stride : t->shape[1];
}

static int64_t product(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

int64_t tune_tensor_elements(const struct tune_tensor *t)
{
    return product(t->ndim, t->shape);
}

int64_t tune_tensor_bytes(const struct tune_tensor *t)
{
    return (tune_tensor_elements(t) * dtypes[t->dtype].bits + 7) / 8;
}

int64_t tune_array_elements(const struct tune_array *a)
{
    return product(a->ndim, a->shape);
}

int64_t tune_array_bytes(const struct tune_array *a)
{
    return (tune_array_elements(a) * dtypes[a->dtype].bits + 7) / 8;
}

const char *tune_shape_text(int ndim, const int64_t *shape, char *text, size_t size)
{
    snprintf(text, size, "[");
    for (int i = 0; i < ndim; i++)
        tune_append(text, size, "%s%lld", i ? ", " : "", (long long)shape[i]);
    tune_append(text, size, "]");
    return text;
}

static float load(const void *from, enum tune_dtype dtype, int64_t i)
{
    uint16_t h;
    float f;
    double d;
    switch (dtype) {
    case TUNE_BF16:
        memcpy(&h, (const char *)from + 2 * i, 2);
        return tune_bf16_to_float(h);
    case TUNE_F16:
        memcpy(&h, (const char *)from + 2 * i, 2);
        return tune_f16_to_float(h);
    case TUNE_F64:
        memcpy(&d, (const char *)from + 8 * i, 8);
        return (float)d;
    default:
        memcpy(&f, (const char *)from + 4 * i, 4);
        return f;
    }
}

static void store(void *to, enum tune_dtype dtype, int64_t i, float f)
{
    uint16_t h;
    double d = f;
    switch (dtype) {
    case TUNE_BF16:
        h = tune_float_to_bf16(f);
        memcpy((char *)to + 2 * i, &h, 2);
        break;
    case TUNE_F16:
        h = tune_float_to_f16(f);
        memcpy((char *)to + 2 * i, &h, 2);
        break;
    case TUNE_F64:
        memcpy((char *)to + 8 * i, &d, 8);
        break;
    default:
        memcpy((char *)to + 4 * i, &f, 4);
    }
}

int tune_convert(void *to, enum tune_dtype to_dtype, const void *from, enum tune_dtype from_dtype, int64_t n)
{
    bool floats = to_dtype <= TUNE_F64 && from_dtype <= TUNE_F64;
    if (!floats)
        return tune_error_set("cannot convert %s to %s: only F32, BF16, F16 and F64 convert", dtypes[from_dtype].name,
                              dtypes[to_dtype].name);
    if (to_dtype == from_dtype) {
        if (n > 0 && to != from)
            memcpy(to, from, n * dtypes[to_dtype].bits / 8);
        return 0;
    }
    /* With constant dtypes the compiler makes simple loops for the common pairs. */
    if (to_dtype == TUNE_F32 && from_dtype == TUNE_BF16)
        for (int64_t i = 0; i < n; i++)
            store(to, TUNE_F32, i, load(from, TUNE_BF16, i));
    else if (to_dtype == TUNE_BF16 && from_dtype == TUNE_F32)
        for (int64_t i = 0; i < n; i++)
            store(to, TUNE_BF16, i, load(from, TUNE_F32, i));
    else if (to_dtype == TUNE_F32 && from_dtype == TUNE_F16)
        for (int64_t i = 0; i < n; i++)
            store(to, TUNE_F32, i, load(from, TUNE_F16, i));
    else
        for (int64_t i = 0; i < n; i++)
            store(to, to_dtype, i, load(from, from_dtype, i));
    return 0;
}
