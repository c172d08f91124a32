/* test_decimal.c - shortest decimals: the table by exact integers, what reads back, what is shorter or nearer, spellings; and digits
 * as the nearest double. */
#include "test.h"

#include <float.h>
#include <inttypes.h>

#include "core/decimal.h"
#include "core/hash.h"
#include "core/powers_of_ten.h"
#include "core/print.h"
#include "core/random.h"

/* ---- the table ---- */

/* Whole numbers of up to 64 LIMBS bits, lowest first. */
enum { LIMBS = 24 };
struct whole {
    uint64_t limb[LIMBS];
};

static void times(struct whole *x, uint64_t factor)
{
    uint64_t carry = 0, high;
    for (int i = 0; i < LIMBS; i++) {
        uint64_t low = tune_multiply(x->limb[i], factor, &high);
        x->limb[i] = low + carry;
        carry = high + (x->limb[i] < low);
    }
    assert_int_equal(carry, 0);
}

static struct whole ten_to(int e)
{
    struct whole x = {{1}};
    for (int i = 0; i < e; i++)
        times(&x, 10);
    return x;
}

static int bits(const struct whole *x)
{
    for (int i = LIMBS * 64 - 1; i >= 0; i--)
        if (x->limb[i / 64] >> (i % 64) & 1)
            return i + 1;
    return 0;
}

static int compare(const struct whole *x, const struct whole *y)
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (x->limb[i] != y->limb[i])
            return x->limb[i] < y->limb[i] ? -1 : 1;
    return 0;
}

static void subtract(struct whole *x, const struct whole *y)
{
    unsigned borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        uint64_t less = y->limb[i] + borrow, left = x->limb[i] - less;
        borrow = (borrow && less == 0) || x->limb[i] < less;
        x->limb[i] = left;
    }
    assert_int_equal(borrow, 0);
}

static struct whole shifted(const struct whole *x, int by)
{
    struct whole y = {{0}};
    for (int i = 0; i < LIMBS * 64; i++)
        if (x->limb[i / 64] >> (i % 64) & 1) {
            assert_true(i + by < LIMBS * 64);
            if (i + by >= 0)
                y.limb[(i + by) / 64] |= (uint64_t)1 << ((i + by) % 64);
        }
    return y;
}

/* A power g of 10^e, p = floor(log2(10^e)): g is at or next above 10^e 2^(127-p). */
static void table_is_exact(void **state)
{
    (void)state;
    for (int e = TUNE_TEN_FIRST; e <= TUNE_TEN_LAST; e++) {
        uint64_t row[2];
        tune_power_of_ten(e, row);
        struct whole g = {{row[1], row[0]}}, ten = ten_to(e < 0 ? -e : e), one = {{1}}, product, exact;
        int p = e < 0 ? -bits(&ten) : bits(&ten) - 1; /* 2^p <= 10^e < 2^(p+1) */
        assert_int_equal(bits(&g), 128);
        assert_int_equal((e * 1741647) >> 19, p);
        if (e >= 0) { /* 0 <= g 2^s - 10^e 2^t < 2^s, where s - t = p - 127 */
            product = p > 127 ? shifted(&g, p - 127) : g;
            exact = p < 127 ? shifted(&ten, 127 - p) : ten;
            one = p > 127 ? shifted(&one, p - 127) : one;
        } else { /* 0 <= g 10^-e - 2^(127-p) < 10^-e */
            product = (struct whole){{0}};
            struct whole high = ten, low = ten;
            times(&high, row[0]);
            times(&low, row[1]);
            product = shifted(&high, 64);
            for (int i = 0, carry = 0; i < LIMBS; i++) {
                uint64_t sum = product.limb[i] + low.limb[i];
                int over = sum < low.limb[i];
                product.limb[i] = sum + (uint64_t)carry;
                carry = over || product.limb[i] < sum;
            }
            exact = shifted(&one, 127 - p);
            one = ten;
        }
        assert_true(compare(&product, &exact) >= 0);
        subtract(&product, &exact);
        assert_true(compare(&product, &one) < 0);
    }
    for (int q = -1074; q <= 971; q++) { /* 10^k <= 2^q < 10^(k+1), and of 3/4 2^q */
        for (int three = 0; three < 2; three++) {
            int k = (q * 1262611 - (three ? 524031 : 0)) >> 22, up = q < 0 ? 0 : q;
            struct whole v = {{three ? 3 : 4}}, ten = ten_to(k < 0 ? -k : k), unit = {{4}};
            for (int i = k; i < 0; i++)
                times(&v, 10); /* v 10^-k against 4 2^-q */
            v = shifted(&v, up);
            unit = k < 0 ? unit : shifted(&ten, 2);
            unit = shifted(&unit, up - q);
            assert_true(compare(&unit, &v) <= 0);
            times(&unit, 10);
            assert_true(compare(&v, &unit) < 0);
        }
    }
}

/* ---- values ---- */

/* value to n digits, by the C library, as digits x 10^exponent. */
static void rounded(double value, int n, uint64_t *digits, int *exponent)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", n - 1, value);
    char *e = strchr(text, 'e');
    *digits = 0;
    for (char *c = text; c < e; c++)
        *digits = *c >= '0' && *c <= '9' ? *digits * 10 + (uint64_t)(*c - '0') : *digits;
    *exponent = atoi(e + 1) - (n - 1);
}

static bool reads_back(uint64_t digits, int exponent, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64 "e%d", digits, exponent);
    return strtod(text, NULL) == value;
}

/* What is wrong with the decimal of a finite value above 0, NULL: nothing. By the C library: it reads back, nothing with a
 * digit less does, nothing as short is nearer. */
static const char *wrong(double value)
{
    uint64_t digits, other;
    int exponent, place, n = 0, power;
    tune_decimal(value, &digits, &exponent);
    if (digits == 0 || digits % 10 == 0)
        return "zeros at its end";
    if (!reads_back(digits, exponent, value))
        return "it does not read back";
    for (uint64_t d = digits; d > 0; d /= 10)
        n++;
    if (n > 1) {
        rounded(value, n - 1, &other, &place);
        bool shorter = reads_back(other, place, value);
        if (frexp(value, &power) == 0.5) /* a power of two: a farther one above may read back where the nearest, below,
        does not */
            shorter |= reads_back(other + 1, place, value) || reads_back(other - 1, place, value);
        if (shorter)
            return "a digit too many";
    }
    rounded(value, n, &other, &place);
    if ((other != digits || place != exponent) && reads_back(other, place, value))
        return "not the nearest";
    return NULL;
}

static void check(double value)
{
    const char *why = wrong(value);
    if (why)
        fail_msg("%a: %s", value, why);
}

static void edges(void **state)
{
    (void)state;
    static const uint64_t hard[] = {
        8887055249355788, /* x 2^664: 4/10^199 of it is 2^-65 above a whole number */
        5592117679628511, /* x 2^163 */
        6685530990800801, /* x 2^-867 */
    };
    static const int powers[] = {664, 163, -867};
    for (int i = 0; i < 3; i++)
        for (int by = -1; by <= 1; by++)
            check(ldexp((double)hard[i] + by, powers[i]));
    for (int q = -1074; q <= 1023; q++) {
        double v = ldexp(1, q);
        check(v);
        check(nextafter(v, INFINITY));
        if (q > -1074)
            check(nextafter(v, 0));
    }
    for (int e = -323; e <= 308; e++) {
        char text[32];
        for (int d = 1; d < 10; d++) {
            snprintf(text, sizeof text, "%de%d", d, e);
            double v = strtod(text, NULL);
            if (isinf(v))
                continue;
            check(v);
            check(nextafter(v, DBL_MAX));
            check(nextafter(v, DBL_MIN));
        }
    }
    for (int i = 1; i < 10000; i++) {
        check(i * 0x1p-1074); /* subnormal */
        check(DBL_MIN - i * 0x1p-1074);
        check(DBL_MIN + i * 0x1p-1074);
        check(i);
        check(i / 100.0);
        check(9007199254740992.0 + i * 2);
        check(9007199254740992.0 - i);
        check(1125899906842624.25 + i * 0.5); /* half-way between two of as many digits */
    }
    check(DBL_MAX);
    check(DBL_MIN);
    check(5e-324);
}

/* Random bits: every exponent and kind. TUNE_DECIMALS: how many million (1); 10 take half a minute. */
static void random_bits(void **state)
{
    (void)state;
    const char *set = getenv("TUNE_DECIMALS");
    int64_t count = (set ? atoll(set) : 1) * 1000000, bad = 0;
    double first = 0;
#pragma omp parallel for reduction(+ : bad)
    for (int64_t i = 0; i < count; i++) {
        uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u; /* splitmix64 */
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        x ^= x >> 31;
        double value;
        memcpy(&value, &x, sizeof value);
        if (isfinite(value) && value != 0 && wrong(fabs(value))) {
            bad++;
#pragma omp critical
            first = value;
        }
    }
    if (bad)
        fail_msg("%lld wrong, among them %a: %s", (long long)bad, first, wrong(fabs(first)));
}

static void spelled(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *python, *json;
    } rows[] = {
        {0.0, "0.0", "0"}, {-0.0, "-0.0", "-0"}, {1, "1.0", "1"}, {-1, "-1.0", "-1"}, {2.5, "2.5", "2.5"}, {0.1, "0.1", "0.1"},
        {1e-4, "0.0001", "0.0001"}, {1e-5, "1e-05", "1e-05"}, {1.5e-5, "1.5e-05", "1.5e-05"}, {0.00012, "0.00012", "0.00012"},
        {1e15, "1000000000000000.0", "1000000000000000"}, {1e16, "1e+16", "1e+16"}, {1.5e16, "1.5e+16", "1.5e+16"},
        {9999999999999998.0, "9999999999999998.0", "9999999999999998"},
        {123456789012345680.0, "1.2345678901234568e+17", "1.2345678901234568e+17"},
        {1e22, "1e+22", "1e+22"}, {1e23, "1e+23", "1e+23"}, {1e100, "1e+100", "1e+100"}, {1e-100, "1e-100", "1e-100"},
        {5e-324, "5e-324", "5e-324"}, {DBL_MIN, "2.2250738585072014e-308", "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"}, {1.0 / 3, "0.3333333333333333", "0.3333333333333333"},
        {0x1p-44, "5.684341886080802e-14", "5.684341886080802e-14"}, /* %.17g stops at ...8015e-14 only */
        {1125899906842624.25, "1125899906842624.2", "1125899906842624.2"},
        {1125899906842624.75, "1125899906842624.8", "1125899906842624.8"},
        {0x1p-1073, "1e-323", "1e-323"}, {2.0e-3, "0.002", "0.002"}, {100.25, "100.25", "100.25"},
        {310e50, "3.1e+52", "3.1e+52"},
        {(double)NAN, "nan", "nan"}, {(double)INFINITY, "inf", "inf"}, {-(double)INFINITY, "-inf", "-inf"},
        {-1.2345678901234567e-308, "-1.2345678901234567e-308", "-1.2345678901234567e-308"},
    };
    char text[TUNE_DECIMAL_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tune_decimal_python(text, rows[i].value), strlen(rows[i].python));
        assert_string_equal(text, rows[i].python);
        assert_int_equal(tune_decimal_json(text, rows[i].value), strlen(rows[i].json));
        assert_string_equal(text, rows[i].json);
        assert_string_equal(tune_number_text(text, rows[i].value), rows[i].json);
    }
    uint64_t digits;
    int exponent;
    tune_decimal(-1250, &digits, &exponent);
    assert_int_equal(digits, 125);
    assert_int_equal(exponent, 1);
    tune_decimal(0, &digits, &exponent);
    assert_int_equal(digits, 0);
    assert_int_equal(exponent, 0);
}

/* The double of strtod, or false; and false only where the head of tune_decimal_value says so. */
static void values(void **state)
{
    (void)state;
    static const struct {
        uint64_t digits;
        int exponent;
        bool decided;
    } edges[] = {
        {0, 0, true}, {0, 22, true}, {0, 300, false}, {1, 22, true}, {1, 23, false}, {1, 24, true}, {1, -23, true}, {UINT64_MAX, 0, true},
        {((uint64_t)1 << 53) + 1, 0, false}, {((uint64_t)1 << 53) + 3, 0, false}, /* half way between two doubles, as 1e23 */
        {(uint64_t)1 << 53, 0, true}, {90071992547409931, -1, true}, {90071992547409929, -1, true},
        {9007199254740993001u, -3, true}, {9007199254740992999u, -3, true},
        {UINT64_MAX, 280, true}, {1, 281, false}, {1, -280, true}, {1, -281, false}, {18014398509481985u, 0, true},
        {0xFFFFFFFFFFFFFC00u, 0, false}, {0xFFFFFFFFFFFFFBFFu, 0, true}, {0xFFFFFFFFFFFFFC01u, 0, true}, /* up to 2^64 */
    };
    enum { EDGES = sizeof edges / sizeof *edges };
    char text[64];
    int left = 0;
    for (uint64_t i = 0; i < 500000; i++) {
        uint64_t r = tune_random_u64(9, 1, 2 * i), more = tune_random_u64(9, 1, 2 * i + 1);
        uint64_t digits = i < EDGES ? edges[i].digits : r >> more % 64;
        int exponent = i < EDGES ? edges[i].exponent : (int)(more >> 8 & 1 ? more >> 9 & 15 : (more >> 9) % 561) - (more >> 8 & 1 ? 20 : 280);
        snprintf(text, sizeof text, "%" PRIu64 "e%d", digits, exponent);
        double got, want = strtod(text, NULL);
        bool decided = tune_decimal_value(digits, exponent, &got);
        if (i < EDGES && decided != edges[i].decided)
            fail_msg("%s: expected %s", text, edges[i].decided ? "a value" : "none");
        if (decided && memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s is %a, not %a", text, got, want);
        left += i >= EDGES && digits > 0 && !decided;
    }
    assert_in_range(left, 0, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_exact), cmocka_unit_test(edges), cmocka_unit_test(random_bits), cmocka_unit_test(spelled), cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
