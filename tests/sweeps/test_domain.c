/* test_domain.c - domains: reading and its errors, values by index and back, draws, one within another. */
#include "test.h"

#include "sweeps/spaces/domain.h"

/* A domain as it stands in a file; its document lives until the next call. */
static struct tune_document *document;

static int parse(struct tune_domain *d, const char *yaml)
{
    tune_document_free(document);
    document = tune_document_parse("d.yaml", yaml, strlen(yaml), false);
    assert_got(document);
    return tune_domain_read(d, document, document->root, "entitySpace[1] (x)");
}

static struct tune_domain domain(const char *yaml)
{
    struct tune_domain d;
    if (parse(&d, yaml) < 0)
        fail_msg("%s: %s", yaml, tune_error_message());
    return d;
}

static int done(void **state)
{
    (void)state;
    tune_document_free(document);
    document = NULL;
    return 0;
}

/* Its values, as Python's repr() has them, concatenated; "endless" where they cannot be counted. */
static const char *values(const char *yaml)
{
    static char text[4096];
    struct tune_value v;
    struct tune_domain d = domain(yaml);
    size_t used = 0;
    tune_index size = tune_domain_size(&d);
    if (size == 0)
        return "endless";
    for (tune_index i = 0, found; i < size; i++) {
        tune_domain_value(&d, i, &v);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i ? " " : "");
        used += (size_t)tune_value_repr(&v, text + used, sizeof text - used);
        assert_true(tune_domain_has(&d, &v));
        assert_int_equal(tune_domain_find(&d, &v, &found), 1);
        assert_true(found == i);
    }
    return text;
}

static void types(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        enum tune_variable type;
        bool given;
    } cases[] = {
        {"", TUNE_UNKNOWN, false},
        {"{}", TUNE_UNKNOWN, false},
        {"values: [1, 2.5, 1e9]", TUNE_CATEGORICAL, false}, /* 1e9 is a text */
        {"values: [1, 2.5, 1.0e+9]", TUNE_DISCRETE, false},
        {"values: [true, false]", TUNE_DISCRETE, false},
        {"values: [yes, 3]", TUNE_DISCRETE, false},
        {"values: [1, '2']", TUNE_CATEGORICAL, false},
        {"values: [1, null]", TUNE_CATEGORICAL, false},
        {"values: [[1, 2], [3]]", TUNE_CATEGORICAL, false},
        {"domainRange: [0, 1]", TUNE_CONTINUOUS, false},
        {"{domainRange: [0, 1], interval: 0.5}", TUNE_DISCRETE, false},
        {"interval: 3", TUNE_DISCRETE, false},
        {"variableType: BINARY_VARIABLE_TYPE", TUNE_BINARY, true},
        {"{variableType: UNKNOWN_VARIABLE_TYPE, values: [1]}", TUNE_DISCRETE, false},
        {"{variableType: CATEGORICAL_VARIABLE_TYPE, values: [1]}", TUNE_CATEGORICAL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_domain d = domain(cases[i].yaml);
        if (d.type != cases[i].type || d.given != cases[i].given)
            fail_msg("%s: %s", cases[i].yaml, tune_variable_name(&d));
    }
    struct tune_domain d = domain("variableType: IDENTIFIER_VARIABLE_TYPE");
    assert_int_equal(d.type, TUNE_OPEN_CATEGORICAL);
    assert_string_equal(tune_variable_name(&d), "IDENTIFIER_VARIABLE_TYPE");
    d = domain("variableType: OPEN_CATEGORICAL_VARIABLE_TYPE");
    assert_string_equal(tune_variable_name(&d), "OPEN_CATEGORICAL_VARIABLE_TYPE");
}

static void enumerated(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *values;
    } cases[] = {
        {"values: [3, 1, 2.0]", "3 1 2.0"},
        {"values: [b, 'yes', yes, null, [1, a]]", "'b' 'yes' True None [1, 'a']"},
        {"values: [1, \"true\", \"x\"]", "1 'true' 'x'"}, /* no program reads 1 from true */
        {"variableType: BINARY_VARIABLE_TYPE", "False True"},
        {"{variableType: BINARY_VARIABLE_TYPE, values: [true, false]}", "False True"},
        {"{domainRange: [0, 10], interval: 3}", "0 3 6 9"},
        {"{domainRange: [0, 9], interval: 3}", "0 3 6"},
        {"{domainRange: [-4, 0], interval: 1}", "-4 -3 -2 -1"},
        {"{domainRange: [1, 2], interval: 100}", "1"},
        {"{domainRange: [0, 1], interval: 0.25}", "0.0 0.25 0.5 0.75"},
        {"{domainRange: [0.1, 0.4], interval: 0.1}", "0.1 0.2 0.3"},
        {"{domainRange: [-2.0, -0.2], interval: 0.3}", "-2.0 -1.7 -1.4 -1.1 -0.8 -0.5"}, /* -2 + 6*0.3 falls short of -0.2 */
        {"{domainRange: [0, 3.5], interval: 1}", "0 1 2 3"},                             /* only the end is a float */
        {"{domainRange: [0, 3.0], interval: 1}", "0 1 2"},
        {"{domainRange: [0.0, 3], interval: 1}", "0.0 1.0 2.0"},
        {"{domainRange: [0, 1], interval: 0.3333333333333333}", "0.0 0.3333333333 0.6666666667"},
        {"{domainRange: [0, 5.0e-10], interval: 1.0e-10}", "0.0 1e-10 2e-10 3e-10 4e-10"},
        {"{domainRange: [0.5, 0.5000000004], interval: 0.0000000001}", "0.5 0.5000000001 0.5000000002 0.5000000003"},
        {"{domainRange: [0, 1.0e-9], interval: 1.5e-10}", "0.0 2e-10 3e-10 4e-10 6e-10 8e-10 9e-10"},
        {"{domainRange: [0, 1.1111111111111], interval: 0.3703703703703667}", "0.0 0.3703703704 0.7407407407"}, /* no 1.1111111111 */
        {"{domainRange: [0, 1]}", "endless"},
        {"interval: 2", "endless"},
        {"{}", "endless"},
        {"variableType: OPEN_CATEGORICAL_VARIABLE_TYPE", "endless"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(values(cases[i].yaml), cases[i].values))
            fail_msg("%s: %s", cases[i].yaml, values(cases[i].yaml));
}

static bool has(const char *yaml, struct tune_value v)
{
    struct tune_domain d = domain(yaml);
    tune_index i;
    if (tune_domain_size(&d))
        assert_int_equal(tune_domain_has(&d, &v), tune_domain_find(&d, &v, &i));
    else
        assert_int_equal(tune_domain_find(&d, &v, &i), 0);
    return tune_domain_has(&d, &v);
}

static void membership(void **state)
{
    (void)state;
    const char *tenths = "{domainRange: [0, 1], interval: 0.1}", *wholes = "{domainRange: [-3, 1000000000], interval: 3}";
    const char *half_open = "domainRange: [0, 2]", *binary = "variableType: BINARY_VARIABLE_TYPE", *any = "{}";
    assert_true(has("values: [1, a]", tune_value_float(1)) && has("values: [1, a]", tune_value_bool(true)));
    assert_false(has("values: [1, a]", tune_value_text("1")));
    assert_true(has(tenths, tune_value_float(0.3)) && has(tenths, tune_value_int(0)) && has(tenths, tune_value_bool(false)));
    assert_false(has(tenths, tune_value_float(0.1 + 0.2)));
    assert_false(has(tenths, tune_value_int(1)));
    assert_true(has(wholes, tune_value_int(999999999)) && has(wholes, tune_value_float(6)) && has(wholes, tune_value_bool(false)));
    assert_false(has(wholes, tune_value_int(1000000000)) || has(wholes, tune_value_float(6.5)) || has(wholes, tune_value_int(-6)) ||
                 has(wholes, tune_value_int(7)) || has(wholes, tune_value_float(1e300)) || has(wholes, tune_value_float(-1e300)) ||
                 has(wholes, tune_value_float(NAN)) || has(wholes, tune_value_text("0")));
    assert_true(has(half_open, tune_value_int(0)) && has(half_open, tune_value_float(1.999)) &&
                has(half_open, tune_value_bool(true)));
    assert_false(has(half_open, tune_value_int(2)) || has(half_open, tune_value_float(-1e-300)) ||
                 has(half_open, tune_value_text("1")) || has(half_open, tune_value_float(NAN)));
    assert_true(has("variableType: CONTINUOUS_VARIABLE_TYPE", tune_value_int(5)));
    assert_false(has("variableType: CONTINUOUS_VARIABLE_TYPE", tune_value_text("a")));
    assert_true(has("interval: 2", tune_value_int(7)) && !has("interval: 2", tune_value_text("7")));
    assert_true(has(binary, tune_value_bool(false)) && has(binary, tune_value_int(1)) && has(binary, tune_value_float(0)));
    assert_false(has(binary, tune_value_int(2)) || has(binary, tune_value_text("True")));
    assert_true(has(any, tune_value_none()) && has("variableType: IDENTIFIER_VARIABLE_TYPE", tune_value_text("CO2")));
}

static void large(void **state)
{
    (void)state;
    struct tune_domain d = domain("{domainRange: [-9223372036854775808, 9223372036854775807], interval: 1}");
    struct tune_value v;
    tune_index i;
    char text[48];
    assert_string_equal(tune_index_text(tune_domain_size(&d), text), "18446744073709551615");
    tune_domain_value(&d, tune_domain_size(&d) - 1, &v);
    assert_true(v.type == TUNE_VALUE_INT && v.integer == INT64_MAX - 1);
    assert_true(tune_domain_find(&d, &v, &i) && i == tune_domain_size(&d) - 1);
    v = tune_value_int(INT64_MAX);
    assert_false(tune_domain_has(&d, &v));
    v = tune_value_int(INT64_MIN);
    assert_true(tune_domain_find(&d, &v, &i) && i == 0);
    v = tune_value_float(-0x1p63);
    assert_true(tune_domain_find(&d, &v, &i) && i == 0);
    v = tune_value_float(0x1p63);
    assert_false(tune_domain_has(&d, &v));
    assert_string_equal(tune_index_text(TUNE_INDEX_MAX, text), "340282366920938463463374607431768211455");
    assert_string_equal(tune_index_text(0, text), "0");
}

/* Every float range: distinct values, below its end, each found at its own index. */
static void float_ranges(void **state)
{
    (void)state;
    char yaml[160];
    unsigned random = 1;
    for (int n = 0; n < 3000; n++) {
        double r[3];
        for (int i = 0; i < 3; i++)
            r[i] = (double)((random = random * 1664525 + 1013904223) >> 8) / (1 << 24);
        double low = (r[0] - 0.5) * pow(10, n % 7), step = (r[1] + 0.001) * pow(10, n % 5 - 3), high = low + step * (1 + r[2] * 50);
        snprintf(yaml, sizeof yaml, "{domainRange: [%.*f, %.*f], interval: %.*f}", n % 4 + 7, low, n % 4 + 7, high, n % 3 + 7,
                 step);
        struct tune_domain d = domain(yaml);
        struct tune_value v, before = tune_value_float(-INFINITY);
        for (tune_index i = 0, found, size = tune_domain_size(&d); i < size; i++) {
            tune_domain_value(&d, i, &v);
            if (tune_value_compare(&before, &v) >= 0 || tune_value_compare(&v, &d.high) >= 0 || !tune_domain_find(&d, &v, &found) ||
                found != i)
                fail_msg("%s: value %d, %.17g", yaml, (int)i, v.number);
            before = v;
        }
    }
}

/* To the last bit of the sum that Python makes; multiplied and added at once it would be 11426431.97. */
static void last_bits(void **state)
{
    (void)state;
    struct tune_domain d = domain("{domainRange: [174630.998, 12000000], interval: 937650.081}");
    struct tune_value v;
    char text[40];
    assert_true(tune_domain_size(&d) == 13);
    tune_domain_value(&d, 12, &v);
    tune_value_repr(&v, text, sizeof text);
    assert_string_equal(text, "11426431.969999999");
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"[1]", "d.yaml:1:1: the domain of entitySpace[1] (x) must be a map"},
        {"value: [1]", "values"}, /* the nearest key */
        {"values: 3", "d.yaml:1:9: entitySpace[1] (x): values must be a list"},
        {"values: []", "at least one value"},
        {"values:\n- 1\n- 2\n- 1.0", "d.yaml:4:3: entitySpace[1] (x): 1.0 is in values twice"},
        {"values: [true, 1]", "1 is in values twice"},
        {"values: [\"1\", 1]", "d.yaml:1:10: entitySpace[1] (x): the text '1' and the value 1 are the same for a program"},
        {"values: [7, 1.0, \"1\"]", "d.yaml:1:18: entitySpace[1] (x): the text '1' and the value 1.0 are the same"},
        {"values: [1000.0, \"1e3\"]", "the text '1e3' and the value 1000.0 are the same"},
        {"values: [\"9007199254740993\", 9007199254740993]", "the text '9007199254740993' and the value 9007199254740993 are the same"},
        {"values: [\"true\", true]", "the text 'true' and the value True are the same"},
        {"values: [b, true, \"True\"]", "the text 'True' and the value True are the same"},
        {"values: [true, \"1\"]", "the text '1' and the value True are the same"},
        {"values: [null, \"None\"]", "the text 'None' and the value None are the same"},
        {"values: [a, b, a]", "d.yaml:1:16: entitySpace[1] (x): 'a' is in values twice"},
        {"values: [.nan]", "NaN cannot be a value"},
        {"values: [{a: 1}]", "d.yaml:1"},
        {"domainRange: [1]", "two numbers"},
        {"domainRange: 5", "two numbers"},
        {"domainRange: [1, 2, 3]", "two numbers"},
        {"domainRange: [a, b]", "two numbers"},
        {"domainRange: [false, true]", "two numbers"},
        {"domainRange: [3, 3]", "d.yaml:1:14: entitySpace[1] (x): the end of domainRange must be above its start"},
        {"domainRange: [3, 2]", "must be above its start"},
        {"{domainRange: [0, 1], interval: 0}", "d.yaml:1:33: entitySpace[1] (x): interval must be a number above 0"},
        {"{domainRange: [0, 1], interval: -1}", "above 0"},
        {"{domainRange: [0, 1], interval: a}", "above 0"},
        {"{domainRange: [0, 1], interval: .inf}", "above 0"},
        {"{domainRange: [0, 1], interval: 0.00000000009}", "are too small"},
        {"{domainRange: [0.00000000005, 1], interval: 0.0000000001}", "are too small"}, /* halves go to the even one */
        {"{domainRange: [0, .inf], interval: 1}", "d.yaml:1:15: entitySpace[1] (x): with an interval, both ends of domainRange"},
        {"{domainRange: [-.inf, 0], interval: 0.5}", "must be finite"},
        {"{domainRange: [0, 1.0e+18], interval: 0.5}", "are too small"},
        {"{values: [1, 2], interval: 1}", "d.yaml:1:28: entitySpace[1] (x): interval and values exclude each other"},
        {"{values: [1, 5], domainRange: [1, 5]}", "d.yaml:1:14: entitySpace[1] (x): 5 is not in domainRange"},
        {"{values: [0, 4], domainRange: [1, 5]}", "0 is not in domainRange"},
        {"{values: [a], domainRange: [1, 5]}", "only for values that are numbers"},
        {"variableType: DISCRETE", "no variableType \"DISCRETE\""},
        {"variableType: DISCRETE_VARIABLE_TYPE", "needs values or an interval"},
        {"{variableType: DISCRETE_VARIABLE_TYPE, domainRange: [0, 1]}", "needs values or an interval"},
        {"variableType: CATEGORICAL_VARIABLE_TYPE", "needs values"},
        {"{variableType: CATEGORICAL_VARIABLE_TYPE, interval: 1}", "interval and "},
        {"{variableType: CONTINUOUS_VARIABLE_TYPE, values: [1]}", "values and CONTINUOUS_VARIABLE_TYPE exclude each other"},
        {"{variableType: CONTINUOUS_VARIABLE_TYPE, interval: 1}", "interval and "},
        {"{variableType: BINARY_VARIABLE_TYPE, values: [true]}", "always has both"},
        {"{variableType: BINARY_VARIABLE_TYPE, values: [a, b]}", "always has both"},
        {"{variableType: BINARY_VARIABLE_TYPE, domainRange: [0, 2]}", "domainRange and "},
        {"{variableType: OPEN_CATEGORICAL_VARIABLE_TYPE, interval: 2}", "interval and "},
        {"{variableType: IDENTIFIER_VARIABLE_TYPE, domainRange: [0, 2]}", "and IDENTIFIER_VARIABLE_TYPE exclude each other"},
        {"variableType: VECTOR_VARIABLE_TYPE", "no variableType \"VECTOR_VARIABLE_TYPE\"; expected CONTINUOUS"},
        {"{element_domain: {values: [1]}, number_elements: 2}", "element_domain"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_domain d;
        if (parse(&d, cases[i].yaml) == 0)
            fail_msg("%s is accepted", cases[i].yaml);
        if (!strstr(tune_error_message(), cases[i].message) || strncmp(tune_error_message(), "d.yaml:", 7))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].yaml, tune_error_message(), cases[i].message);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
}

/* Duplicates among many values: sorted, not compared each with each. */
static void many_values(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    char *text = malloc(MANY * 12 + 32), *at = text;
    at += sprintf(at, "values: [");
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "%d,", i);
    sprintf(at, "%d]", MANY);
    struct tune_domain d = domain(text);
    assert_int_equal(d.count, MANY + 1);
    sprintf(at, "%d]", 7);
    assert_int_equal(parse(&d, text), -1);
    assert_error_has("7 is in values twice");
    free(text);
}

/* ---- draws ---- */

static double draw(const struct tune_domain *d, double u)
{
    struct tune_value v;
    double n;
    assert_ok(tune_domain_draw(d, u, &v));
    assert_true(tune_domain_has(d, &v));
    return tune_value_number(&v, &n) ? n : NAN;
}

static void uniform_draws(void **state)
{
    (void)state;
    struct tune_domain d = domain("domainRange: [-1, 3]");
    assert_true(draw(&d, 0.25) == 0 && draw(&d, 1e-17) >= -1 && draw(&d, 1 - 0x1p-53) < 3 && draw(&d, 1) < 3);
    d = domain("domainRange: [-1.7e+308, 1.7e+308]");
    assert_true(draw(&d, 0.5) == 0 && draw(&d, 1) < 1.7e308);
    d = domain("{domainRange: [10, 20], interval: 2}");
    int counts[5] = {0};
    for (int i = 0; i < 1000; i++)
        counts[(int)(draw(&d, (i + 0.5) / 1000) - 10) / 2]++;
    for (int i = 0; i < 5; i++)
        assert_int_equal(counts[i], 200);
    struct tune_value v;
    d = domain("values: [a, b]");
    assert_ok(tune_domain_draw(&d, 0.51, &v));
    assert_string_equal(v.text, "b");
    d = domain("variableType: BINARY_VARIABLE_TYPE");
    assert_true(draw(&d, 0.49) == 0 && draw(&d, 0.51) == 1);
    static const char *const none[] = {"{}",
                                       "interval: 2",
                                       "variableType: CONTINUOUS_VARIABLE_TYPE",
                                       "domainRange: [0, .inf]",
                                       "variableType: OPEN_CATEGORICAL_VARIABLE_TYPE"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        d = domain(none[i]);
        assert_int_equal(tune_domain_draw(&d, 0.5, &v), -1);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
}

/* The share of draws below x, from 20,000 even fractions. */
static double share_below(const struct tune_domain *d, double x)
{
    int below = 0;
    for (int i = 0; i < 20000; i++)
        below += draw(d, (i + 0.5) / 20000) < x;
    return below / 20000.0;
}

static double phi(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

static void normal_draws(void **state)
{
    (void)state;
    struct tune_domain d = domain(
        "{variableType: CONTINUOUS_VARIABLE_TYPE, probabilityFunction: {identifier: normal, parameters: {mean: 5, std: 2}}}");
    for (double z = -3; z <= 3; z += 0.5)
        assert_true(fabs(share_below(&d, 5 + 2 * z) - phi(z)) < 1e-4);
    d = domain(
        "{domainRange: [6, 100], probabilityFunction: {identifier: normal, parameters: {mean: 5, std: 2}}}"); /* a cut tail */
    for (double z = 0.5; z <= 4; z += 0.5)
        assert_true(fabs(share_below(&d, 5 + 2 * z) - (phi(z) - phi(0.5)) / (1 - phi(0.5))) < 1e-4);
    d = domain("{domainRange: [-12, -9], probabilityFunction: {identifier: normal, parameters: {mean: 0, std: 1}}}"); /* far out */
    assert_true(fabs(share_below(&d, -9.1) - phi(-9.1) / phi(-9)) < 1e-3);
    d = domain("{values: [4, 5, 9], probabilityFunction: {identifier: normal, parameters: {mean: 5, std: 2}}}");
    assert_true(fabs(share_below(&d, 4.5) - 1.0 / 3) < 1e-4 && fabs(share_below(&d, 6) - 2.0 / 3) < 1e-4); /* no use of it */
    struct tune_value v;
    static const char *const far[] = {
        "{domainRange: [0, 1], probabilityFunction: {identifier: normal, parameters: {mean: 99, std: 1}}}",
        "{domainRange: [0, 1], probabilityFunction: {identifier: normal, parameters: {mean: -99, std: 1}}}"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        d = domain(far[i]);
        assert_int_equal(tune_domain_draw(&d, 0.5, &v), -1);
        assert_error_has("has no weight in this domain");
    }
}

/* ---- one within another ---- */

static int within(const char *child, const char *parent)
{
    char both[1024], why[200] = "";
    struct tune_domain c, p;
    snprintf(both, sizeof both, "child: {%s}\nparent: {%s}", child, parent);
    tune_document_free(document);
    document = tune_document_parse("d.yaml", both, strlen(both), false);
    assert_got(document);
    assert_ok(tune_domain_read(&c, document, tune_node_get(document->root, "child"), "child"));
    assert_ok(tune_domain_read(&p, document, tune_node_get(document->root, "parent"), "parent"));
    int yes = tune_domain_within(&c, &p, why, sizeof why);
    if (!yes && !*why)
        fail_msg("%s within %s: no reason", child, parent);
    return yes;
}

static void sub_domains(void **state)
{
    (void)state;
    const char *range = "domainRange: [0, 10]", *steps = "domainRange: [0, 10], interval: 2",
               *binary = "variableType: BINARY_VARIABLE_TYPE";
    const char *numbers = "variableType: CONTINUOUS_VARIABLE_TYPE", *open = "variableType: OPEN_CATEGORICAL_VARIABLE_TYPE";
    const char *all[] = {"",   range,         steps,         binary,        numbers,
                         open, "values: [1]", "values: [a]", "interval: 1"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(within(all[i], ""));
        assert_true(within(all[i], all[i]));
        assert_int_equal(within(all[i], open), i != 0 && i != 1 && i != 4 && i != 8); /* what names its values, and open ones */
    }
    /* continuous */
    assert_true(within(range, numbers) && within("domainRange: [1, 10.0]", range) && within(steps, range) &&
                within("values: [0, 9.99]", range));
    assert_true(within(binary, range) && within("interval: 1", numbers));
    assert_false(within(numbers, range) || within("domainRange: [0, 11]", range) || within("values: [10]", range) ||
                 within("values: [a]", range) || within("interval: 1", range) || within(open, range) || within("", range) ||
                 within(binary, "domainRange: [0, 1]") || within("values: [1], variableType: CATEGORICAL_VARIABLE_TYPE", range));
    /* discrete */
    assert_true(within("domainRange: [2, 10], interval: 4", steps) && within("values: [0, 8.0]", steps) &&
                within("domainRange: [2, 3], interval: 3", steps));
    assert_true(
        within("domainRange: [0, 0.9], interval: 0.3", "domainRange: [0, 1], interval: 0.1")); /* 0.3 % 0.1 is not 0 in floats */
    assert_true(within("interval: 4", "interval: 2") && within("interval: 0.3", "interval: 0.1") &&
                within("values: [1, 2]", "interval: 2"));
    assert_false(within("interval: 3", "interval: 2") || within("domainRange: [0, 9], interval: 3", "interval: 2") ||
                 within("interval: 2", steps));
    assert_false(within("domainRange: [0, 10], interval: 1", steps) || within("domainRange: [1, 10], interval: 2", steps) ||
                 within("domainRange: [0, 12], interval: 2", steps) || within(range, steps) || within(binary, steps) ||
                 within("values: [a]", steps));
    assert_true(within(binary, "values: [0, 1, 2]") && within("domainRange: [1, 3], interval: 1", "values: [2, 1]"));
    assert_true(within("domainRange: [0, 90000000000], interval: 3", "domainRange: [0, 90000000000], interval: 1"));
    assert_false(within("domainRange: [0, 90000000003], interval: 3", "domainRange: [0, 90000000000], interval: 1"));
    /* categorical, binary */
    assert_true(within("values: [a]", "values: [b, a]") && within("values: [1]", "values: [a, 1.0]") &&
                within(binary, "values: [a, 0, 1]"));
    assert_false(within("values: [a, c]", "values: [a, b, d]") || within("interval: 1", "values: [a, 1]") ||
                 within(open, "values: [a]"));
    assert_true(within("values: [true]", binary) && within("values: [0, 1]", binary) && within("values: [0.0]", binary));
    assert_false(within("values: [0, 1, 2]", binary) || within("values: [2]", binary) || within("values: [a]", binary) ||
                 within(range, binary));
}

/* Fractions of what a normal distribution has between two ends. */
static void normal_fractions(void **state)
{
    (void)state;
    struct tune_domain d = domain("{domainRange: [-0.5, 2], probabilityFunction: {identifier: normal, parameters: {mean: 0, std: 1}}}");
    struct tune_value v;
    const double low = erf(-0.5 / sqrt(2)), high = erf(2 / sqrt(2));
    for (double u = 0.05; u < 1; u += 0.1) {
        assert_ok(tune_domain_draw(&d, u, &v));
        assert_true(fabs((erf(v.number / sqrt(2)) - low) / (high - low) - u) < 1e-9);
    }
    d = domain("{domainRange: [35, 36], probabilityFunction: {identifier: normal, parameters: {mean: 0, std: 1}}}");
    assert_int_equal(tune_domain_draw(&d, 0.5, &v), -1);
    assert_error_has("has no weight in this domain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),       cmocka_unit_test(enumerated),    cmocka_unit_test(membership),
        cmocka_unit_test(large),       cmocka_unit_test(float_ranges),  cmocka_unit_test(last_bits), cmocka_unit_test(refused),
        cmocka_unit_test(many_values), cmocka_unit_test(uniform_draws), cmocka_unit_test(normal_draws),
        cmocka_unit_test(sub_domains), cmocka_unit_test(normal_fractions),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
