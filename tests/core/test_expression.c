/* test_expression.c - what expressions give, as Python 3.11 does, what they refuse, and in which words. */
#include "test.h"

#include "core/expression.h"

static const char *const names[] = {"batch_size", "number_gpus", "model_name", "x", "flag", "none", "list", "an odd name", "e",
 "big"};
enum { NAMES = sizeof names / sizeof *names };
static const struct tune_value items[] = {{.type = TUNE_VALUE_INT, {.integer = 1}}, {.type = TUNE_VALUE_TEXT, {.text = "a"}}};
static struct tune_value values[NAMES];

static int prepare(void **state)
{
    (void)state;
    const struct tune_value all[NAMES] = {
        tune_value_int(4), tune_value_int(0), tune_value_text("smollm2-135m"), tune_value_float(2.5), tune_value_bool(true),
        tune_value_none(), {.type = TUNE_VALUE_LIST, .list = {items, 2}}, tune_value_int(7), tune_value_text("h\u00e9\n"),
        tune_value_int(INT64_MAX),
    };
    memcpy(values, all, sizeof values);
    return 0;
}

/* repr() of the value, or the message. */
static const char *result(const char *text)
{
    static char shown[4096];
    struct tune_value v;
    struct tune_expression *e = tune_expression_new(text, names, NAMES, "w");
    if (e && tune_expression_value(e, values, &v) == 0)
        tune_value_repr(&v, shown, sizeof shown);
    else
        snprintf(shown, sizeof shown, "%s", tune_error_message());
    tune_expression_free(e);
    return shown;
}

struct row {
    const char *text, *result;
};

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tune_error_clear();
        const char *got = result(rows[i].text);
        if (strcmp(got, rows[i].result) != 0)
            fail_msg("%s\ngives %s\nnot   %s", rows[i].text, got, rows[i].result);
        assert_int_equal(tune_error_kind(), strncmp(got, "w: ", 3) == 0 ? TUNE_ERROR_USAGE : TUNE_ERROR_NONE);
    }
}
#define CHECK(rows) check(rows, sizeof rows / sizeof *rows)

static void precedence(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1 + 2 * 3", "7"}, {"(1 + 2) * 3", "9"}, {"10 - 4 - 3", "3"}, {"2 ** 3 ** 2", "512"}, {"(2 ** 3) ** 2", "64"},
        {"-2 ** 2", "-4"},
        {"2 ** -1", "0.5"}, {"-2 ** -2", "-0.25"}, {"2 * -3", "-6"}, {"- - 5", "5"}, {"100 / 10 / 5", "2.0"},
        {"7 // 2 * 2", "6"},
        {"7 % 4 * 2", "6"}, {"1 + 1 == 2", "True"}, {"not 1 == 2", "True"}, {"not True and False", "False"},
        {"not not 3", "True"},
        {"True or False and False", "True"}, {"(True or False) and False", "False"}, {"1 < 2 and 2 < 1 or 3", "3"},
        {"not False == True", "True"}, {"1 in [1] == True", "False"}, {"2 in [1, 2] and 3 not in [1, 2]", "True"},
        {"\t1\n +\r 1 ", "2"}, {"(((((1)))))", "1"},
        {"1if", "w: 1i is no number; whole numbers are decimal, without '_'\n  1if\n   ^"},
    };
    CHECK(rows);
}

static void chains(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1 < 2 < 3", "True"}, {"1 < 3 < 2", "False"}, {"3 < 1 < 'a'", "False"}, /* the rest is not looked at */
        {"1 < 2 == 2 != 3 >= 3 > 0 <= 0", "True"}, {"1 == 1 == True", "True"}, {"(1 == 1) == True", "True"},
        {"1 < 2 < 3 or 1 // 0", "True"},
        {"4 > 3 > 2 > 2 or 'no'", "'no'"}, {"1 in [1, 2] in [[1, 2]]", "True"}, {"'a' not in 'bcd' != 'e'", "True"},
        {"0 and 1 // 0", "0"}, {"1 or 1 // 0", "1"}, {"0 or 'x' and []", "[]"}, {"'' or 0 or None or 5", "5"},
        {"1 and 2 and 3", "3"},
        {"1 and '' and 1 // 0", "''"}, {"None and 1", "None"}, {"0.0 or -0.0", "-0.0"}, {"flag and batch_size", "4"},
    };
    CHECK(rows);
}

static void literals(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"0", "0"}, {"007.5", "7.5"}, {"1.", "1.0"}, {".5", "0.5"}, {"1e3", "1000.0"}, {"1E-2", "0.01"}, {"1.5e+3", "1500.0"},
        {"1e999", "inf"},
        {"9223372036854775807", "9223372036854775807"}, {"-9223372036854775807 - 1", "-9223372036854775808"},
        {"True", "True"}, {"true", "True"}, {"False", "False"}, {"false", "False"}, {"None", "None"}, {"null", "None"},
        {"'a'", "'a'"}, {"\"a\"", "'a'"}, {"'it\\'s \"\\\\ \\n\\t\\r'", "'it\\'s \"\\\\ \\n\\t\\r'"}, {"\"\"", "''"},
        {"'\u00e9'", "'\u00e9'"},
        {"[]", "[]"}, {"[1, -2, 'a', [3.5, []], None,]", "[1, -2, 'a', [3.5, []], None]"}, {"list", "[1, 'a']"},
        {"`an odd name` + 1", "8"},
        {"`x`", "2.5"}, {"model_name", "'smollm2-135m'"}, {"none", "None"},
        {"9223372036854775808", "w: a whole number beyond 64 bits\n  9223372036854775808\n  ^"},
        {"007", "w: a whole number does not begin with 0\n  007\n  ^"},
        {"1_000", "w: 1_ is no number; whole numbers are decimal, without '_'\n  1_000\n   ^"},
        {"1.2.3", "w: 1.2. is no number; whole numbers are decimal, without '_'\n  1.2.3\n     ^"},
        {"'a\\q'", "w: a backslash takes one of \\ ' \" n t r\n  'a\\q'\n    ^"},
        {"'a\\", "w: a backslash takes one of \\ ' \" n t r\n  'a\\\n    ^"},
        {"'\u00e9' == 'a", "w: the closing ' is missing\n  '\u00e9' == 'a\n         ^"},
        {"`a", "w: the closing ` is missing\n  `a\n  ^"},
    };
    CHECK(rows);
    char digits[80], message[256];
    memset(digits, '1', 70);
    digits[70] = 0;
    snprintf(message, sizeof message, "w: a number of more than 63 characters\n  %s\n  ^", digits);
    assert_string_equal(result(digits), message);
}

static void syntax(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "w: the expression ends here, expected a value\n  \n  ^"},
        {"1 +", "w: the expression ends here, expected a value\n  1 +\n     ^"},
        {"batch_size % % 2", "w: expected a value, found %\n  batch_size % % 2\n               ^"},
        {"1 == not 2", "w: expected a value, found not\n  1 == not 2\n       ^"},
        {"1 not 2", "w: expected \"in\" after \"not\", found 2\n  1 not 2\n        ^"},
        {"1 2", "w: expected an operator, found 2\n  1 2\n    ^"},
        {"(1", "w: the expression ends here, expected an operator or ')'\n  (1\n    ^"},
        {"(1, 2)", "w: expected an operator or ')', found ,\n  (1, 2)\n    ^"},
        {"[1 2]", "w: expected ',' or ']', found 2\n  [1 2]\n     ^"},
        {"[,]", "w: expected a value, found ,\n  [,]\n   ^"},
        {"max(1, 2]", "w: expected ',' or ')', found ]\n  max(1, 2]\n          ^"},
        {"()", "w: expected a value, found )\n  ()\n   ^"},
        {"x = 1", "w: nothing is assigned here; equality is ==\n  x = 1\n    ^"},
        {"x ! 1", "w: nothing begins with this character\n  x ! 1\n    ^"},
        {"x\n&& x", "w: nothing begins with this character\n  x && x\n    ^"},
        {"+1", "w: expected a value, found +\n  +1\n  ^"},
        {"batchsize",
         "w: unknown name \"batchsize\"; the nearest is \"batch_size\"; a text stands in quotes\n  batchsize\n  ^"},
        {"1 + number-gpus",
         "w: unknown name \"number\"; the nearest is \"number_gpus\"; a text stands in quotes\n  1 + number-gpus\n      ^"},
        {"open('x')", "w: unknown function \"open\"; there are abs, len, log, max, min, round and sqrt\n  open('x')\n  ^"},
        {"1 if 2", "w: the expression ends here, expected an operator or \"else\"\n  1 if 2\n        ^"},
        {"1 if 2 if 3 else 4 else 5", "w: expected an operator or \"else\", found if\n  1 if 2 if 3 else 4 else 5\n         ^"},
        {"1 else 2", "w: expected an operator, found else\n  1 else 2\n    ^"},
        {"if 1 else 2", "w: expected a value, found if\n  if 1 else 2\n  ^"},
        {"log()", "w: log takes one or two values\n  log()\n  ^"},
        {"`max`(1)", "w: unknown name \"max\"; the nearest is \"x\"; a text stands in quotes\n  `max`(1)\n  ^"},
        {"len()", "w: len takes one value\n  len()\n  ^"},
        {"abs(1, 2)", "w: abs takes one value\n  abs(1, 2)\n  ^"},
        {"round(1, 2, 3)", "w: round takes one or two values\n  round(1, 2, 3)\n  ^"},
        {"min()", "w: min takes one value or more\n  min()\n  ^"},
    };
    CHECK(rows);
    struct tune_expression *e = tune_expression_new("y", NULL, 0, "");
    assert_null(e);
    assert_string_equal(tune_error_message(), "unknown name \"y\"; there are no names here\n  y\n  ^");

    /* a long text is cut around the place, at whole characters */
    char text[2048] = "";
    for (int i = 0; i < 200; i++)
        strcat(text, "'\u00e9'+");
    strcat(text, "? ");
    for (int i = 0; i < 100; i++)
        strcat(text, "\u00e9\u00e9");
    result(text);
    assert_error_has("w: nothing begins with this character\n  '\u00e9'+");
    const char *line = strchr(tune_error_message(), '\n') + 3, *marked = strchr(line, '\n') + 3;
    const char *place = strchr(line, '?');
    int before = 0;
    for (const char *c = line; c < place; c++)
        before += ((unsigned char)*c & 0xC0) != 0x80;
    assert_int_equal(strlen(marked), before + 1);
    assert_int_equal(marked[before], '^');
    assert_true(marked - line < 130);
    assert_int_equal((unsigned char)marked[-4], 0xA9); /* the end of an e with its accent */
}

static void conditions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1 if 2 > 1 else 3", "1"}, {"1 if 2 < 1 else 3", "3"}, {"'a' if 0 else 'b' if '' else 'c'", "'c'"},
        {"(1 if 0 else 2) if 1 else 3", "2"}, {"1 if (0 if 1 else 1) else 3", "3"}, {"1 + 1 if 1 else 1 + 2", "2"},
        {"1 + (1 if 0 else 5)", "6"}, {"[1 if 0 else 2, 3][1 if 1 else 0] == 3", "w: expected an operator, found [\n"
                                       "  [1 if 0 else 2, 3][1 if 1 else 0] == 3\n                    ^"},
        {"2 in [1, 2 if 1 else 3]", "True"}, {"max(1 if 0 else 7, 3)", "7"}, {"1 if 1 else 1 // 0", "1"}, {"1 // 0 if 0 else 2", "2"},
        {"1 < 2 < 3 if 3 > 2 > 1 else 0", "True"}, {"0 or 5 if 1 and 2 else 7 or 8", "5"}, {"0 or 5 if 1 and 0 else 7 or 8", "7"},
        {"(3 < 2 < 1 or 4) and (5 if not (1 and 0 or 0) else 6) and (7 if none else 8)", "8"},
        {"x if x > 2 else -x", "2.5"}, {"not 1 if 0 else not 0", "True"}, {"-(1 if 1 else 2) ** 2", "-1"},
        {"none if none else flag", "True"}, {"1 if batch_size // number_gpus else 2",
         "w: 1 if batch_size // number_gpus else 2: division by zero, where batch_size is 4, number_gpus is 0"},
    };
    CHECK(rows);
}

static void numbers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"7 // 2", "3"}, {"-7 // 2", "-4"}, {"7 // -2", "-4"}, {"-7 // -2", "3"}, {"7 % 3", "1"}, {"-7 % 3", "2"},
        {"7 % -3", "-2"}, {"-7 % -3", "-1"},
        {"6 % -3", "0"}, {"7.5 // 2", "3.0"}, {"-7.5 // 2", "-4.0"}, {"7.5 % -2", "-0.5"}, {"-7.5 % 2", "0.5"},
        {"-0.0 // 1", "-0.0"}, {"5 % -5.0", "-0.0"},
        {"1 // 0.1", "9.0"}, {"1 % 0.1", "0.09999999999999995"}, {"-1e-20 % 1", "1.0"}, {"1e300 // 1e-10", "inf"},
        {"1 // 1e999", "0.0"}, {"-1 // 1e999", "-1.0"},
        {"1 / 3", "0.3333333333333333"}, {"4 / 2", "2.0"}, {"0 / -5", "-0.0"}, {"9007199254740993 / 3", "3002399751580331.0"},
        {"9223372036854775807 / 9223372036854775806", "1.0"}, {"9223372036854775807 / 3", "3.0744573456182584e+18"},
        {"-1 / 9223372036854775807", "-1.0842021724855044e-19"},
        {"8384562101643328284 / 260028220799160475", "32.24481587373304"},
        {"0 / -9223372036854775807", "-0.0"}, {"True + True", "2"}, {"True * 2.5", "2.5"}, {"-True", "-1"},
        {"True / 2", "0.5"}, {"2 ** True", "2"},
        {"2 ** 62", "4611686018427387904"}, {"(-2) ** 63", "-9223372036854775808"}, {"0 ** 0", "1"},
        {"1 ** 9223372036854775807", "1"},
        {"(-1) ** 9223372036854775807", "-1"}, {"(-1) ** 4", "1"}, {"0 ** 5", "0"}, {"2 ** -2", "0.25"}, {"2.0 ** 3", "8.0"},
        {"(-2.0) ** 3", "-8.0"}, {"2 ** 0.5", "1.4142135623730951"},
        {"1e308 * 10", "inf"}, {"0.1 + 0.2", "0.30000000000000004"}, {"x * 2", "5.0"}, {"1 + 1.0", "2.0"}, {"-x", "-2.5"},
        {"-(1 - 1.0)", "-0.0"},
        {"(-9223372036854775807 - 1) % -1", "0"},
        {"big + 1", "w: big + 1: a whole number beyond 64 bits, where big is 9223372036854775807"},
        {"-big - 2", "w: -big - 2: a whole number beyond 64 bits, where big is 9223372036854775807"},
        {"big * 2", "w: big * 2: a whole number beyond 64 bits, where big is 9223372036854775807"},
        {"(-9223372036854775807 - 1) // -1", "w: (-9223372036854775807 - 1) // -1: a whole number beyond 64 bits"},
        {"-(-big - 1)", "w: -(-big - 1): a whole number beyond 64 bits, where big is 9223372036854775807"},
        {"abs(-big - 1)", "w: abs(-big - 1): a whole number beyond 64 bits, where big is 9223372036854775807"},
        {"2 ** 63", "w: 2 ** 63: a whole number beyond 64 bits"},
        {"3 ** 9223372036854775807", "w: 3 ** 9223372036854775807: a whole number beyond 64 bits"},
        {"batch_size % number_gpus", "w: batch_size % number_gpus: division by zero, where batch_size is 4, number_gpus is 0"},
        {"1 // 0", "w: 1 // 0: division by zero"}, {"1 / False", "w: 1 / False: division by zero"},
        {"1.0 / 0", "w: 1.0 / 0: division by zero"},
        {"1 % 0.0", "w: 1 % 0.0: division by zero"}, {"0 ** -1", "w: 0 ** -1: division by zero"},
        {"0.0 ** -0.5", "w: 0.0 ** -0.5: division by zero"},
        {"1e300 ** 2", "w: 1e300 ** 2: a number beyond what a float holds"},
        {"(-8) ** 0.5", "w: (-8) ** 0.5: the result of ** is no number"},
        {"1e999 - 1e999", "w: 1e999 - 1e999: the result of - is no number"},
        {"1e999 // 1", "w: 1e999 // 1: the result of // is no number"},
    };
    CHECK(rows);
}

static void comparisons(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1 == 1.0 == True", "True"}, {"9007199254740993 == 9007199254740992.0", "False"},
        {"9007199254740993 > 9007199254740992.0", "True"},
        {"big < 9223372036854775808.0", "True"}, {"'a' < 'b'", "True"}, {"'Z' < 'a'", "True"}, {"'' < 'a'", "True"},
        {"'1' == 1", "False"}, {"None == False", "False"},
        {"None == None", "True"}, {"none != 1", "True"}, {"[1, 2] < [1, 3]", "True"}, {"[1, 'a'] < [2, 5]", "True"},
        {"[1] < [1, 0]", "True"}, {"[] >= []", "True"},
        {"[1, 2.0] == [True, 2]", "True"}, {"x in [2.5]", "True"}, {"1 in [True]", "True"}, {"'a' in list", "True"},
        {"'b' not in list", "True"}, {"[1] in [[1]]", "True"},
        {"'135' in model_name", "True"}, {"'' in ''", "True"}, {"'ab' in 'ba'", "False"},
        {"[x, batch_size] == [2.5, 4]", "True"}, {"[[x]] == [[2.5]]", "True"},
        {"'a' < 1", "w: 'a' < 1: < does not go with a text and a whole number"},
        {"None < 1", "w: None < 1: < does not go with None and a whole number"},
        {"[1] >= 2.5", "w: [1] >= 2.5: >= does not go with a list and a number"},
        {"[1, 'a'] < [1, True]", "w: [1, 'a'] < [1, True]: < does not go with a text and a boolean"},
        {"1 in 5", "w: 1 in 5: in does not go with a whole number and a whole number"},
        {"1 not in 'a'", "w: 1 not in 'a': not in does not go with a whole number and a text"},
        {"'a' + 'b'", "w: 'a' + 'b': + does not go with a text and a text"},
        {"2 * [1]", "w: 2 * [1]: * does not go with a whole number and a list"},
        {"-model_name", "w: -model_name: - does not go with a text, where model_name is 'smollm2-135m'"},
        {"[x]", "w: [x]: the result is a list made of what names stand for, where x is 2.5"},
        {"max([[x, 1], [1, 1]])",
         "w: max([[x, 1], [1, 1]]): the result is a list made of what names stand for, where x is 2.5"},
        {"[1, 2] or x", "[1, 2]"},
        {"max([x, 3], [1, 9])[0]", "w: expected an operator, found [\n  max([x, 3], [1, 9])[0]\n                     ^"},
    };
    CHECK(rows);
    struct tune_value nan[NAMES];
    memcpy(nan, values, sizeof nan);
    nan[3] = tune_value_float((double)NAN);
    static const char *const nothing[] = {"x == x", "x < 1", "x >= x", "1 > x", "not x != x"};
    for (int i = 0; i < 5; i++) {
        struct tune_expression *e = tune_expression_new(nothing[i], names, NAMES, "w");
        assert_got(e);
        assert_int_equal(tune_expression_true(e, nan), 0);
        tune_expression_free(e);
    }
}

/* In a query None is what is missing; elsewhere it is Python's. */
static void queries(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"x < 1", "False"}, {"x > 1", "False"}, {"1 >= x", "False"}, {"not x < 1", "True"}, {"0 < x < 1", "False"}, {"x < 'a'", "False"},
        {"x < 1 or batch_size == 4", "True"}, {"x in [1, 2]", "False"}, {"x not in [1, 2]", "True"}, {"x in [None]", "True"},
        {"x == None", "True"}, {"x != 3", "True"}, {"1 in x", "False"}, {"1 not in x", "True"}, {"x in 'abc'", "False"}, {"x not in 'abc'", "True"},
        {"x + 1", "None"}, {"2 ** x", "None"}, {"1 / x", "None"}, {"-x", "None"}, {"abs(x)", "None"}, {"log(x)", "None"}, {"log(2, x)", "None"}, {"sqrt(x)", "None"}, {"1 if x else 2", "2"}, {"x if 1 else 2", "None"}, {"round(x, 1)", "None"}, {"len(x)", "None"},
        {"min(1, x, 2)", "None"}, {"max(x, 1)", "None"}, {"max([1, x])", "None"}, {"(x + 1) * 2 > 0", "False"}, {"[1, x] < [1, 2]", "False"},
        {"batch_size < 'a'", "w: batch_size < 'a': < does not go with a whole number and a text, where batch_size is 4"},
        {"1 in 2", "w: 1 in 2: in does not go with a whole number and a whole number"},
    };
    struct tune_value with_none[NAMES], v;
    memcpy(with_none, values, sizeof with_none);
    with_none[3] = tune_value_none();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[512];
        struct tune_expression *e = tune_expression_query(rows[i].text, names, NAMES, "w");
        assert_got(e);
        if (tune_expression_value(e, with_none, &v) == 0)
            tune_value_repr(&v, got, sizeof got);
        else
            snprintf(got, sizeof got, "%s", tune_error_message());
        if (strcmp(got, rows[i].result))
            fail_msg("%s: \"%s\", expected \"%s\"", rows[i].text, got, rows[i].result);
        tune_expression_free(e);
    }
    struct tune_expression *e = tune_expression_new("x < 1", names, NAMES, "w");
    assert_got(e);
    assert_int_equal(tune_expression_value(e, with_none, &v), -1);
    assert_error_has("< does not go with None and a whole number");
    tune_expression_free(e);
}

static void functions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"min(3, 1, 2)", "1"}, {"max(3, 1, 2)", "3"}, {"min([3, x])", "2.5"},
        {"max(list[1:])", "w: expected ',' or ')', found [\n  max(list[1:])\n          ^"},
        {"max(1, True, 1.0)", "1"}, {"min(1.0, 1)", "1.0"}, {"max('a', 'b')", "'b'"}, {"max(1, number_gpus)", "1"},
        {"min([1, 2], [1])", "[1]"},
        {"batch_size // max(1, number_gpus)", "4"}, {"abs(-3)", "3"}, {"abs(-2.5)", "2.5"}, {"abs(True)", "1"},
        {"len('abc')", "3"}, {"len(e)", "3"}, {"len([1, x])", "2"},
        {"len('')", "0"}, {"round(2.5)", "2"}, {"round(3.5)", "4"}, {"round(-2.5)", "-2"}, {"round(-2.6)", "-3"},
        {"round(0.49999999999999994)", "0"},
        {"round(7)", "7"}, {"round(True)", "1"}, {"round(2.675, 2)", "2.67"}, {"round(0.125, 2)", "0.12"},
        {"round(1234.5, 0)", "1234.0"}, {"round(-0.001, 2)", "-0.0"},
        {"round(5, 2)", "5"}, {"round(1e300, 5)", "1e+300"}, {"round(1.5, 999)", "1.5"}, {"round(1e999, 2)", "inf"},
        {"round(9007199254740993.0)", "9007199254740992"},
        {"round(1e19)", "w: round(1e19): a whole number beyond 64 bits"},
        {"round(1e999)", "w: round(1e999): round of what is no number"},
        {"sqrt(2)", "1.4142135623730951"}, {"sqrt(0)", "0.0"}, {"sqrt(True)", "1.0"}, {"sqrt(-0.0)", "-0.0"}, {"sqrt(1e999)", "inf"},
        {"log(8, 2)", "3.0"}, {"log(10)", "2.302585092994046"}, {"log(1)", "0.0"}, {"log(100, 10)", "2.0"}, {"log(1e999)", "inf"},
        {"log(9223372036854775807)", "43.66827237527655"}, {"log(2, 0.5)", "-1.0"},
        {"sqrt(-1)", "w: sqrt(-1): sqrt takes a number of 0 or more, not -1"},
        {"log(0)", "w: log(0): log takes a number above 0, not 0"}, {"log(-2.5)", "w: log(-2.5): log takes a number above 0, not -2.5"},
        {"log(2, 0)", "w: log(2, 0): log takes a number above 0, not 0"},
        {"log(2, 1)", "w: log(2, 1): division by zero: the logarithm has base 1"},
        {"log(1e999, 1e999)", "w: log(1e999, 1e999): the result of log is no number"},
        {"sqrt('a')", "w: sqrt('a'): sqrt takes a number, not a text"}, {"log(none)", "w: log(none): log takes a number, not None, where none is None"},
        {"round('a')", "w: round('a'): round takes a number, not a text"},
        {"round(1.5, -1)", "w: round(1.5, -1): the digits of round are 0 or more"},
        {"round(1.5, 1.0)", "w: round(1.5, 1.0): the digits of round are a whole number, not a number"},
        {"abs('a')", "w: abs('a'): abs takes a number, not a text"},
        {"len(5)", "w: len(5): len takes a text or a list, not a whole number"},
        {"min([])", "w: min([]): min of an empty list"},
        {"max(5)", "w: max(5): max takes a list, or more than one value, not a whole number"},
        {"max('ab')", "w: max('ab'): max takes a list, or more than one value, not a text"},
        {"max(1, 'a')", "w: max(1, 'a'): > does not go with a text and a whole number"},
    };
    CHECK(rows);
}

static void rest(void **state)
{
    (void)state;
    char where[16] = "space.yaml:3:1", text[64] = "x > 1 and (batch_size == 4 or `an odd name`)";
    struct tune_expression *e = tune_expression_new(text, names, NAMES, where);
    assert_got(e);
    memset(where, 'z', sizeof where); /* all is copied */
    assert_string_equal(tune_expression_text(e), text);
    memset(text, 'z', sizeof text);
    assert_string_equal(tune_expression_text(e), "x > 1 and (batch_size == 4 or `an odd name`)");
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(tune_expression_uses(e, i), i == 0 || i == 3 || i == 7);
    assert_int_equal(tune_expression_true(e, values), 1);
    struct tune_value other[NAMES];
    memcpy(other, values, sizeof other);
    other[3] = tune_value_text("two");
    assert_int_equal(tune_expression_true(e, other), -1);
    assert_string_equal(tune_error_message(),
     "space.yaml:3:1: x > 1 and (batch_size == 4 or `an odd name`): > does not go with a text and "
                                              "a whole number, where x is 'two', batch_size is 4, an odd name is 7");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    other[3] = tune_value_float(0.5);
    assert_int_equal(tune_expression_true(e, other), 0);
    tune_expression_free(e);
    tune_expression_free(NULL);

    static const struct row truths[] = {{"0", "0"}, {"0.0", "0"}, {"-0.0", "0"}, {"''", "0"}, {"[]", "0"}, {"None", "0"},
     {"False", "0"}, {"5", "1"},
                                        {"0.1", "1"}, {"'0'", "1"}, {"[0]", "1"}, {"True", "1"}, {"[x]", "1"}};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        e = tune_expression_new(truths[i].text, names, NAMES, "w");
        assert_got(e);
        assert_int_equal(tune_expression_true(e, values), *truths[i].result - '0');
        tune_expression_free(e);
    }

    /* a long value and many names stay within the message */
    char *long_text = calloc(1, 5000);
    assert_non_null(long_text);
    memset(long_text, 'x', 4999);
    other[2] = tune_value_text(long_text);
    e = tune_expression_new("model_name < 1 or model_name == batch_size", names, NAMES, "w");
    assert_got(e);
    assert_int_equal(tune_expression_true(e, other), -1);
    assert_error_has("where model_name is 'xxx");
    assert_error_has("xxx..., batch_size is 4");
    tune_expression_free(e);
    free(long_text);
}

/* Whatever is nested, its depth is bounded. */
static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *middle, *after;
    } nested[] = {{"(", "1", ")"}, {"[", "1", "]"}, {"-", "1", ""}, {"not ", "1", ""}, {"2 ** ", "1", ""}, {"1 + ", "1", ""},
    {"1 or ", "1", ""}, {"max(1, ", "1", ")"},
                  {"1 < ", "1", ""}, {"x if ", "1", ""}};
    static char text[1 << 16];
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
        for (int deep = 100; deep <= 1000; deep += 900) {
            *text = 0;
            for (int k = 0; k < deep; k++)
                strcat(text, nested[i].before);
            strcat(text, nested[i].middle);
            for (int k = 0; k < deep; k++)
                strcat(text, nested[i].after);
            tune_error_clear();
            struct tune_expression *e = tune_expression_new(text, names, NAMES, "w");
            assert_int_equal(e != NULL, deep == 100 && i < 9);
            if (i < 9)
                assert_int_equal(strstr(tune_error_message(), "w: too long: more than 512 parts") != NULL, deep == 1000);
            struct tune_value v;
            if (e)
                tune_expression_value(e, values, &v);
            tune_expression_free(e);
        }
    strcpy(text, "x in [0");
    for (int i = 1; i < 500; i++)
        sprintf(text + strlen(text), ",%d", i);
    strcat(text, "]");
    assert_string_equal(result(text), "False");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precedence), cmocka_unit_test(chains), cmocka_unit_test(literals), cmocka_unit_test(syntax),
        cmocka_unit_test(conditions), cmocka_unit_test(numbers),
        cmocka_unit_test(comparisons), cmocka_unit_test(queries), cmocka_unit_test(functions), cmocka_unit_test(rest), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, prepare, NULL) != 0;
}
