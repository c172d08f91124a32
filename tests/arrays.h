/* arrays.h - a tensor three ways: the numbers in float64, the same rounded to its dtype, and those on a device.
 *
 *     struct array x = array_random(TUNE_BF16, 17, 65, 1, seed);    x.v[i] is exactly what the device sees
 *     put(dev, &x);                                                 upload (again: back to the first contents)
 *     worst(&e, error(&x, want));                                   download, look behind its end, ||d||/||want||
 *     drop(&x);
 */
#ifndef TUNE_TEST_ARRAYS_H
#define TUNE_TEST_ARRAYS_H

#include "bytes.h"

#include "core/random.h"

enum { GUARD = 256 }; /* bytes behind each array that no kernel may touch */

struct array {
    struct tune_tensor t;    /* data: on dev */
    struct tune_device *dev; /* NULL: not there yet */
    double *v;               /* [n] */
    char *raw;               /* [bytes] in t.dtype, then the guard */
    int64_t n, bytes;
};

/* rows 0: a vector. */
static inline struct array array_from(enum tune_dtype dtype, int64_t rows, int64_t columns, const double *v)
{
    struct array a = {.t = rows > 0 ? tune_tensor_2d((tune_address){0}, dtype, rows, columns) : tune_tensor_1d((tune_address){0}, dtype, columns)};
    a.n = tune_tensor_elements(&a.t);
    a.bytes = tune_tensor_bytes(&a.t);
    a.v = malloc((size_t)a.n * sizeof *a.v);
    a.raw = malloc((size_t)a.bytes + GUARD);
    memset(a.raw + a.bytes, 0x5a, GUARD);
    assert_ok(tune_convert(a.raw, dtype, v, TUNE_F64, a.n));
    assert_ok(tune_convert(a.v, TUNE_F64, a.raw, dtype, a.n));
    return a;
}

/* The first n normal numbers of a seed. Each test asks for the same ones many times. */
static inline const double *normal_numbers(uint64_t seed, int64_t n)
{
    static struct { uint64_t seed; int64_t n; double *v; } known[16];
    enum { SLOTS = sizeof known / sizeof *known };
    int slot = (int)(seed % SLOTS);
    if (known[slot].seed != seed)
        known[slot].seed = seed, known[slot].n = 0;
    if (known[slot].n < n) {
        known[slot].v = realloc(known[slot].v, (size_t)n * sizeof(double));
        for (int64_t i = known[slot].n; i < n; i++)
            known[slot].v[i] = tune_random_normal(seed, 7, (uint64_t)i);
        known[slot].n = n;
    }
    return known[slot].v;
}

/* Normal numbers of that size. */
static inline struct array array_random(enum tune_dtype dtype, int64_t rows, int64_t columns, double size, uint64_t seed)
{
    int64_t n = (rows > 0 ? rows : 1) * columns;
    if (n < 0)
        abort();
    double *v = calloc((size_t)n, sizeof *v);
    const double *numbers = normal_numbers(seed, n);
    for (int64_t i = 0; i < n; i++)
        v[i] = size * numbers[i];
    struct array a = array_from(dtype, rows, columns, v);
    free(v);
    return a;
}

/* What a "set" output starts from: NaN, so that a number left out or added to shows. */
static inline struct array array_nan(enum tune_dtype dtype, int64_t rows, int64_t columns)
{
    return array_random(dtype, rows, columns, NAN, 1);
}

static inline void drop(struct array *a)
{
    if (a->dev)
        tune_device_free(a->dev, a->t.data, a->bytes + GUARD);
    free(a->v);
    free(a->raw);
    memset(a, 0, sizeof *a);
}

static inline void put(struct tune_device *dev, struct array *a)
{
    if (a->dev != dev) {
        if (a->dev)
            tune_device_free(a->dev, a->t.data, a->bytes + GUARD);
        a->dev = dev;
        a->t.data = tune_device_alloc(dev, a->bytes + GUARD, "a test's array");
        assert_true(a->t.data.at != 0);
    }
    assert_ok(tune_device_upload(dev, a->t.data, a->raw, a->bytes + GUARD));
}

/* What is on the device now; malloc'd bytes. Fails if somebody wrote behind the end. */
static inline char *get(const struct array *a)
{
    char *raw = malloc((size_t)a->bytes + GUARD);
    assert_ok(tune_device_download(a->dev, raw, a->t.data, a->bytes + GUARD));
    assert_ok(tune_device_sync(a->dev));
    for (int i = 0; i < GUARD; i++)
        if (raw[a->bytes + i] != 0x5a)
            fail_msg("something wrote behind the end of an array");
    return raw;
}

static inline double error(const struct array *a, const double *want)
{
    char *raw = get(a);
    double *got = malloc((size_t)a->n * sizeof *got), d = 0, s = 0;
    assert_ok(tune_convert(got, TUNE_F64, raw, a->t.dtype, a->n));
    for (int64_t i = 0; i < a->n; i++) {
        d += (got[i] - want[i]) * (got[i] - want[i]);
        s += want[i] * want[i];
    }
    free(got);
    free(raw);
    return s > 0 ? sqrt(d / s) : sqrt(d);
}

/* The bits on the device are those first put there. */
static inline bool unchanged(const struct array *a)
{
    char *raw = get(a);
    bool same = memcmp(raw, a->raw, (size_t)a->bytes) == 0;
    free(raw);
    return same;
}

/* The largest error seen for F32 and for BF16 activations, NaN counting as infinite. */
struct worst {
    double e[2];
};

static inline void worst(struct worst *w, enum tune_dtype dtype, double e)
{
    double *most = &w->e[dtype == TUNE_BF16];
    e = isnan(e) ? INFINITY : e;
    *most = e > *most ? e : *most;
}

/* Half a unit in the last place of 1. */
#define EPS_F32 0x1p-24
#define EPS_BF16 0x1p-8

/* Limits in units of eps; what was observed stands beside each call. */
static inline void assert_worst(const char *what, const struct worst *w, double f32, double bf16)
{
    print_message("# %-22s F32 %.2g eps of %g", what, w->e[0] / EPS_F32, f32);
    if (bf16 > 0)
        print_message(", BF16 %.2g eps of %g", w->e[1] / EPS_BF16, bf16);
    print_message("\n");
    if (!(w->e[0] <= f32 * EPS_F32) || !(w->e[1] <= bf16 * EPS_BF16))
        fail_msg("%s: error %.3g eps in F32, %.3g eps in BF16", what, w->e[0] / EPS_F32, w->e[1] / EPS_BF16);
}

/* More threads than free cores: those that wait must sleep. libgomp reads this when it is loaded, so the program starts anew. */
static inline void sleep_while_waiting(char **argv)
{
    if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv("/proc/self/exe", argv);
}

#endif
