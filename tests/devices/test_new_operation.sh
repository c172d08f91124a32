#!/bin/sh
# test_new_operation.sh - a new operation is an entry of ops.h, a kernel of the CPU and a test: three files. A
# copy of the tree gets one. The checks, the far device and the profiler know it from the list.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
if sanitized; then
    skip "a new operation" "the copy is built without sanitizers, as by make test"
    finish
fi
copy=$tmp/copy
mkdir -p "$copy/build"
cp -r Makefile components tools tests "$copy" || exit 1
cp "$BUILD/config.mk" "$BUILD/config.mk.found" "$copy/build" || exit 1

# ---- the three files ----
# The entry, and its name in the list.
ops=components/devices/ops.h
awk '
/^\/\* The list\. \*\/$/ {
    print "/* tune_axpy(dev, y, x, a) - y += a x.   y, x [N,C] */"
    print "#define TUNE_ARGS_axpy(V) V(EDIT, y, true) V(GET, x) V(VALUE, a, float)"
    print "#define TUNE_FIT_axpy \\"
    print "    (x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && is_float(x) && is_float(y))"
    print "#define TUNE_COST_axpy COST(2 * count(y), all, \"\")"
    print ""
}
{ print }
/^#define TUNE_OPS\(OP\) / { print "    OP(axpy) \\" }' $ops >"$copy/$ops"

cat >"$tmp/kernel.c" <<'KERNEL'
/* axpy.c - y += a x. */
#include "devices/cpu/cpu.h"

int tune_cpu_axpy(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                  float a)
{
    int64_t C = x->shape[1];
    if (tune_cpu_reserve(dev, 2 * C) < 0)
        return -1;
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        float *work = tune_cpu_work(dev);
        tune_cpu_piece(x->shape[0], 1, &begin, &end);
        for (int64_t n = begin; n < end; n++) {
            const float *in = tune_cpu_in(x, n * C, C, work);
            const float *old = tune_cpu_in(y, n * C, C, work + C);
            float *out = tune_cpu_target(y, n * C, work + C);
            for (int64_t i = 0; i < C; i++)
                out[i] = old[i] + a * in[i];
            tune_cpu_out(y, n * C, C, out);
        }
    }
    return 0;
}
KERNEL

cat >"$copy/tests/devices/test_axpy.c" <<'TEST'
/* test_axpy.c - y += a x: the numbers, the checks, the profiler's row. */
#include "test.h"
#include "far/far.h"

#include "core/progress.h"
#include "devices/ops.h"
#include "profilers/profiler.h"

enum { N = 5, C = 7 };

static struct tune_device *dev;
static struct tune_tensor x, y;
static float a[N * C], b[N * C];

static void put(void)
{
    for (int i = 0; i < N * C; i++) {
        a[i] = (float)i;
        b[i] = (float)(100 - i);
    }
    assert_ok(tune_device_upload(dev, x.data, a, sizeof a));
    assert_ok(tune_device_upload(dev, y.data, b, sizeof b));
}

/* times: 0 or 1 calls lie behind y's numbers. */
static void holds(int times)
{
    float got[N * C];
    assert_ok(tune_to_host(dev, &y, got));
    for (int i = 0; i < N * C; i++)
        assert_float_equal(got[i], b[i] + 2.5f * (float)times * a[i], 1e-4);
}

static void numbers(void **state)
{
    (void)state;
    put();
    assert_ok(tune_axpy(dev, &y, &x, 2.5f));
    holds(1);
}

static void refused(struct tune_tensor *to, const struct tune_tensor *from, const char *shapes)
{
    assert_int_equal(tune_axpy(dev, to, from, 2.5f), -1);
    assert_error_has("axpy: shapes, dtypes or values do not fit: ");
    assert_error_has(shapes);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    put();
    struct tune_tensor narrow = tune_tensor_2d(x.data, TUNE_F32, N, C - 1);
    struct tune_tensor row = tune_tensor_1d(x.data, TUNE_F32, N * C);
    struct tune_tensor whole = tune_tensor_2d(x.data, TUNE_I32, N, C);
    struct tune_tensor apart = tune_tensor_columns(&x, 1, 2);
    refused(&y, &narrow, "y F32[5, 7], x F32[5, 6]");
    refused(&y, &row, "x F32[35]");
    refused(&y, &whole, "x I32[5, 7]");
    refused(&apart, &apart, "stride 7");
    holds(0);
}

static void in_the_profile(void **state)
{
    (void)state;
    struct tune_progress at = {.planned_steps = 100};
    struct tune_profiler *p = tune_profiler_new(dev, NULL, NULL, 1);
    assert_got(p);
    put();
    for (at.step = 1; at.step <= 2; at.step++)
        assert_int_equal(tune_profiler_step(p, &at), 0);
    assert_ok(tune_axpy(dev, &y, &x, 2.5f));
    assert_int_equal(tune_profiler_step(p, &at), 1);
    const struct tune_profile *r = tune_profiler_result(p);
    int found = 0;
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->rows[i].name, "axpy")) {
            found++;
            assert_true(r->rows[i].calls == 1 && r->rows[i].seconds > 0);
            assert_float_equal(r->rows[i].flops, 2 * N * C, 0);
            assert_float_equal(r->rows[i].bytes, 3 * 4 * N * C, 0);
        }
    assert_int_equal(found, 1);
    tune_profiler_free(p);
    holds(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(in_the_profile),
    };
    if (!(dev = test_device(2)))
        return 1;
    x = tune_tensor_2d(tune_device_alloc(dev, sizeof a, "x"), TUNE_F32, N, C);
    y = tune_tensor_2d(tune_device_alloc(dev, sizeof b, "y"), TUNE_F32, N, C);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tune_device_free(dev, x.data, sizeof a);
    tune_device_free(dev, y.data, sizeof b);
    tune_device_close(dev);
    return failed != 0;
}
TEST

# ---- built and run ----
build() {
    make -C "$copy" --no-print-directory -j2 BUILD=build OPT=-O0 EXTRA_CFLAGS=-g0 build/tests/devices/test_axpy \
        >"$tmp/built" 2>&1 && return
    tail -n 20 "$tmp/built"
    return 1
}
without() { ! build && grep -q "undefined reference to .tune_cpu_axpy" "$tmp/built"; }
is "the list asks every device for its kernel" without
cp "$tmp/kernel.c" "$copy/components/devices/cpu/axpy.c"
is "with the kernel all is there" build
export CMOCKA_MESSAGE_OUTPUT=TAP
for device in cpu far; do
    is "$device: numbers, checks, profile" env TUNE_TEST_DEVICE=$device "$copy/build/tests/devices/test_axpy"
done
touched() {
    diff -rq "$1" "$copy/$1" |
        sed -e "s|^Only in $copy/\([^:]*\): |\1/|" -e 's|^Files \([^ ]*\) and .*|\1|'
}
for f in Makefile components tools tests; do touched $f; done | sort >"$tmp/touched"
printf '%s\n' components/devices/cpu/axpy.c $ops tests/devices/test_axpy.c >"$tmp/expected"
is "three files were touched" diff "$tmp/expected" "$tmp/touched"
finish
