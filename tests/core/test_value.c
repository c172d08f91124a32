/* test_value.c - Python's == and its spellings, row by row as Python 3.11 gives them. */
#include "test.h"

#include "core/value.h"

#define INT(i) tune_value_int(i)
#define FLOAT(d) tune_value_float(d)
#define TEXT(t) tune_value_text(t)
#define TEXT_OF(t) ((struct tune_value){.type = TUNE_VALUE_TEXT, .text = (t)})
#define BOOL(b) tune_value_bool(b)
#define NONE tune_value_none()
#define LIST(...)                                                                                            \
    ((struct tune_value){.type = TUNE_VALUE_LIST,                                                            \
                         .list = {(const struct tune_value[]){__VA_ARGS__},                                  \
                                  (int)(sizeof(struct tune_value[]){__VA_ARGS__} / sizeof(struct tune_value))}})
static const struct tune_value empty = {.type = TUNE_VALUE_LIST, .list = {NULL, 0}};

static void spelled(void **state)
{
    (void)state;
    const struct {
        struct tune_value value;
        const char *str, *repr, *id, *json;
    } rows[] = {
        {NONE, "None", "None", "None", "null"},
        {BOOL(true), "True", "True", "1", "true"},
        {BOOL(false), "False", "False", "0", "false"},
        {INT(0), "0", "0", "0", "0"},
        {INT(INT64_MIN), "-9223372036854775808", "-9223372036854775808", "-9223372036854775808", "-9223372036854775808"},
        {FLOAT(1), "1.0", "1.0", "1.0", "1.0"},
        {FLOAT(1e16), "1e+16", "1e+16", "1e+16", "1e+16"},
        {FLOAT(1e-5), "1e-05", "1e-05", "1e-05", "1e-05"},
        {FLOAT(-0.0), "-0.0", "-0.0", "-0.0", "-0.0"},
        {FLOAT((double)INFINITY), "inf", "inf", "inf", "\"inf\""},
        {FLOAT(-(double)INFINITY), "-inf", "-inf", "-inf", "\"-inf\""},
        {FLOAT((double)NAN), "nan", "nan", "nan", "\"nan\""},
        {TEXT(""), "", "''", "", "\"\""},
        {TEXT("smollm2-135m"), "smollm2-135m", "'smollm2-135m'", "smollm2-135m", "\"smollm2-135m\""},
        {TEXT("it's"), "it's", "\"it's\"", "it's", "\"it's\""},
        {TEXT("\"a\""), "\"a\"", "'\"a\"'", "\"a\"", "\"\\\"a\\\"\""},
        {TEXT("'\""), "'\"", "'\\'\"'", "'\"", "\"'\\\"\""},
        {TEXT("a\\b\n\r\t\x01\x7f"), "a\\b\n\r\t\x01\x7f", "'a\\\\b\\n\\r\\t\\x01\\x7f'", "a\\b\n\r\t\x01\x7f",
         "\"a\\\\b\\n\\u000d\\t\\u0001\x7f\""},
        {TEXT("Gr\u00fc\u00dfe \u20ac \U0001f600"), "Gr\u00fc\u00dfe \u20ac \U0001f600", "'Gr\u00fc\u00dfe \u20ac \U0001f600'",
         "Gr\u00fc\u00dfe \u20ac \U0001f600", "\"Gr\u00fc\u00dfe \u20ac \U0001f600\""},
        {TEXT("\xc2\x80\xc2\x9f\xc2\xa0\xc2\xa1\xc2\xad"), "\xc2\x80\xc2\x9f\xc2\xa0\xc2\xa1\xc2\xad",
         "'\\x80\\x9f\\xa0\xc2\xa1\\xad'",
         "\xc2\x80\xc2\x9f\xc2\xa0\xc2\xa1\xc2\xad", "\"\xc2\x80\xc2\x9f\xc2\xa0\xc2\xa1\xc2\xad\""},
        {TEXT("\u200b\u2028\ufeff\U000e0001\U0001fffe"), "\u200b\u2028\ufeff\U000e0001\U0001fffe",
         "'\\u200b\\u2028\\ufeff\\U000e0001\\U0001fffe'", "\u200b\u2028\ufeff\U000e0001\U0001fffe",
         "\"\u200b\u2028\ufeff\U000e0001\U0001fffe\""},
        {empty, "[]", "[]", "[]", "[]"},
        {LIST(TEXT("True"), TEXT("it's"), BOOL(true), INT(1), FLOAT(2), NONE), "['True', \"it's\", True, 1, 2.0, None]",
         "['True', \"it's\", True, 1, 2.0, None]", "['True', \"it's\", True, 1, 2.0, None]",
         "[\"True\", \"it's\", true, 1, 2.0, null]"},
        {LIST(LIST(INT(1)), empty), "[[1], []]", "[[1], []]", "[[1], []]", "[[1], []]"},
    };
    char text[128];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tune_value_str(&rows[i].value, text, sizeof text), strlen(rows[i].str));
        assert_string_equal(text, rows[i].str);
        assert_int_equal(tune_value_repr(&rows[i].value, text, sizeof text), strlen(rows[i].repr));
        assert_string_equal(text, rows[i].repr);
        assert_int_equal(tune_value_id(&rows[i].value, text, sizeof text), strlen(rows[i].id));
        assert_string_equal(text, rows[i].id);
        assert_int_equal(tune_value_json(&rows[i].value, text, sizeof text), strlen(rows[i].json));
        assert_string_equal(text, rows[i].json);
    }
}

/* Cut where there is no room; the length is the whole one's. */
static void cut(void **state)
{
    (void)state;
    char text[8] = "unset";
    struct tune_value v = LIST(TEXT("abc"), INT(12));
    assert_int_equal(tune_value_str(&v, NULL, 0), 11);
    assert_int_equal(tune_value_str(&v, text, 0), 11);
    assert_string_equal(text, "unset");
    assert_int_equal(tune_value_str(&v, text, 1), 11);
    assert_string_equal(text, "");
    assert_int_equal(tune_value_str(&v, text, 4), 11);
    assert_string_equal(text, "['a");
    assert_int_equal(tune_value_id(&v, text, sizeof text), 11);
    assert_string_equal(text, "['abc',");
    v = TEXT("1234567");
    assert_int_equal(tune_value_str(&v, text, sizeof text), 7);
    assert_string_equal(text, "1234567");
}

static void equality(void **state)
{
    (void)state;
    const struct {
        struct tune_value a, b;
        int order; /* of a and b; equal where 0 */
    } rows[] = {
        {BOOL(true), INT(1), 0}, {BOOL(true), FLOAT(1), 0}, {INT(1), FLOAT(1), 0}, {BOOL(false), INT(0), 0},
        {BOOL(false), FLOAT(-0.0), 0},
        {INT(2), BOOL(true), 1}, {FLOAT(0.5), BOOL(true), -1}, {FLOAT(0.5), BOOL(false), 1},
        {INT(9007199254740993), FLOAT(9007199254740992.0), 1}, {INT(9007199254740992), FLOAT(9007199254740992.0), 0},
        {INT(-9007199254740993), FLOAT(-9007199254740992.0), -1}, {INT(INT64_MAX), FLOAT(0x1p63), -1},
        {INT(INT64_MIN), FLOAT(-0x1p63), 0},
        {INT(INT64_MIN), FLOAT(-1e300), 1}, {INT(INT64_MAX), FLOAT((double)INFINITY), -1}, {INT(2), FLOAT(2.5), -1},
        {INT(3), FLOAT(2.5), 1},
        {INT(-2), FLOAT(-2.5), 1}, {INT(-3), FLOAT(-2.5), -1}, {INT(0), FLOAT(-0.5), 1}, {INT(0), FLOAT(5e-324), -1},
        {FLOAT(1.5), FLOAT(1.5), 0}, {FLOAT(1.5), FLOAT(2), -1}, {INT(INT64_MIN), INT(INT64_MAX), -1},
        {NONE, NONE, 0}, {NONE, BOOL(false), -1}, {NONE, INT(0), -1}, {TEXT("0"), INT(0), 1}, {TEXT(""), BOOL(false), 1},
        {TEXT("a"), TEXT("a"), 0},
        {TEXT("a"), TEXT("b"), -1}, {TEXT("Z"), TEXT("a"), -1}, {TEXT("a"), TEXT("ab"), -1}, {TEXT("\u00e9"), TEXT("z"), 1},
        {LIST(INT(1), TEXT("a")), LIST(FLOAT(1), TEXT("a")), 0}, {LIST(INT(1)), LIST(INT(1), INT(2)), -1},
        {LIST(INT(2)), LIST(INT(1), INT(2)), 1},
        {empty, empty, 0}, {empty, LIST(NONE), -1}, {empty, TEXT("zzz"), 1}, {LIST(INT(1)), INT(1), 1},
        {LIST(LIST(INT(1))), LIST(LIST(BOOL(true))), 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tune_value_compare(&rows[i].a, &rows[i].b), rows[i].order);
        assert_int_equal(tune_value_compare(&rows[i].b, &rows[i].a), -rows[i].order);
        assert_int_equal(tune_value_equal(&rows[i].a, &rows[i].b), rows[i].order == 0);
        assert_int_equal(tune_value_equal(&rows[i].b, &rows[i].a), rows[i].order == 0);
    }
    struct tune_value nan = FLOAT((double)NAN), inf = FLOAT((double)INFINITY), one = INT(1);
    assert_false(tune_value_equal(&nan, &nan));
    assert_false(tune_value_equal(&nan, &one) || tune_value_equal(&one, &nan));
    assert_int_equal(tune_value_compare(&nan, &nan), 0); /* an order for sorting all the same */
    assert_int_equal(tune_value_compare(&nan, &inf), 1);
    assert_int_equal(tune_value_compare(&one, &nan), -1);
}

static void numbers(void **state)
{
    (void)state;
    double d = 7;
    struct tune_value v = BOOL(true);
    assert_true(tune_value_number(&v, &d) && d == 1);
    v = INT(-5);
    assert_true(tune_value_number(&v, &d) && d == -5);
    v = FLOAT(2.5);
    assert_true(tune_value_number(&v, &d) && d == 2.5);
    v = TEXT("3");
    assert_false(tune_value_number(&v, &d));
    v = NONE;
    assert_false(tune_value_number(&v, &d));
    v = empty;
    assert_false(tune_value_number(&v, &d));
    assert_true(d == 2.5);
}

/* A text is cut at the end of the buffer, and nothing is written past it. All control characters are escaped. */
static void edges(void **state)
{
    (void)state;
    char text[16];
    struct tune_value v = tune_value_text("abcdefgh");
    memset(text, '#', sizeof text);
    assert_int_equal(tune_value_str(&v, text, 4), 8);
    assert_memory_equal(text, "abc\0####", 8);
    v = tune_value_text("\x1f ");
    assert_int_equal(tune_value_json(&v, text, sizeof text), 9);
    assert_string_equal(text, "\"\\u001f \"");
}

/* The values that a program may read a text as, and so cannot tell from it. */
static void texts_as_values(void **state)
{
    (void)state;
    const struct {
        const char *text;
        struct tune_value as;
    } rows[] = {{"1", INT(1)},          {"-07", INT(-7)},     {"1e3", FLOAT(1000)},
                {"1.0", FLOAT(1)},      {"inf", FLOAT(HUGE_VAL)}, {"99999999999999999999", FLOAT(1e20)},
                {"true", BOOL(true)},   {"TRUE", BOOL(true)}, {"False", BOOL(false)},
                {"None", NONE}};
    struct tune_value as;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(tune_value_read_as(rows[i].text, &as));
        assert_true(as.type == rows[i].as.type && tune_value_equal(&as, &rows[i].as));
        assert_true(tune_value_conflicts(&TEXT_OF(rows[i].text), &rows[i].as));
        assert_true(tune_value_conflicts(&rows[i].as, &TEXT_OF(rows[i].text)));
    }
    static const char *const none[] = {"", " 1", "1 ", "\n1", "nan", "none", "1x", "0x", "truer", "--1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(tune_value_read_as(none[i], &as));
    const struct tune_value one = INT(1), yes = BOOL(true), two = INT(2), text = TEXT("1");
    assert_true(tune_value_conflicts(&TEXT_OF("1"), &yes) && tune_value_conflicts(&TEXT_OF("1.0"), &one));
    assert_false(tune_value_conflicts(&TEXT_OF("true"), &one)); /* no program reads 1 from it */
    assert_false(tune_value_conflicts(&TEXT_OF("1"), &two) || tune_value_conflicts(&one, &one));
    assert_false(tune_value_conflicts(&text, &text) || tune_value_conflicts(&TEXT_OF("1.0"), &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spelled), cmocka_unit_test(cut), cmocka_unit_test(equality), cmocka_unit_test(numbers), cmocka_unit_test(edges),
        cmocka_unit_test(texts_as_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
