/* test_task_values.c - draws of Python's random, and Python literals, as task files need them. Numbers are those of Python 3.11. */
#include "test.h"

#include "evaluators/tasks/parts.h"

static void samples(struct python_random *r, int64_t n, int64_t k, const int64_t *expected)
{
    int64_t chosen[8];
    assert_ok(tune_python_random_sample(r, n, k, chosen));
    for (int64_t i = 0; i < k; i++)
        assert_int_equal(chosen[i], expected[i]);
}

static void draws(void **state)
{
    (void)state;
    struct python_random r;
    tune_python_random_seed(&r, 1234);
    samples(&r, 100, 5, (const int64_t[]){99, 56, 14, 0, 11});
    samples(&r, 10, 3, (const int64_t[]){9, 0, 1}); /* moves a list of all */
    samples(&r, 1000, 8, (const int64_t[]){100, 784, 363, 242, 17, 31, 807, 16});
    assert_float_equal(tune_python_random_uniform(&r), 0.3460889655971231, 0);
    static const int first[] = {33, 30, 16, 10, 20, 16};
    tune_python_random_seed(&r, 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal((int)(tune_python_random_uniform(&r) * 40), first[i]);
    tune_python_random_seed(&r, ((uint64_t)1 << 40) + 7); /* two words */
    assert_float_equal(tune_python_random_uniform(&r), 0.6137037779936511, 0);
    samples(&r, 22, 2, (const int64_t[]){20, 18});
}

static int read_literal(struct tune_pool **pool, const char *text, struct task_value *v)
{
    return tune_task_literal(pool, text, strlen(text), v);
}

static void literals(void **state)
{
    (void)state;
    struct tune_pool *pool = NULL;
    struct task_value v;
    assert_int_equal(read_literal(&pool, "['a', \"it's\", 'x\\n\\u00e4\\\\']", &v), 1);
    assert_true(v.type == TASK_LIST && v.count == 3);
    assert_string_equal(v.items[1].text.data, "it's");
    assert_string_equal(v.items[2].text.data, "x\n\xC3\xA4\\");
    assert_int_equal(read_literal(&pool, "[1, -2, True, None, ('b',), []]", &v), 1);
    assert_true(v.count == 6 && v.items[1].whole == -2 && v.items[2].whole == 1 && v.items[3].type == TASK_NOTHING && v.items[4].count == 1 &&
                v.items[5].count == 0);
    static const char *const none[] = {"", "[", "['a'", "['a' 'b']", "[a]", "['a'] x", "'a", "'\\q'", "[1.5]", "['\\ud800']"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(read_literal(&pool, none[i], &v), 0);
    tune_pool_free(pool);
}

static void replaced(struct tune_pool **pool, const char *expression, const char *text, const char *expected)
{
    struct tune_regular *r = tune_regular_new(expression);
    struct tune_text out;
    assert_got(r);
    assert_ok(tune_task_replace(r, (struct tune_text){text, strlen(text)}, pool, &out));
    assert_int_equal(out.size, strlen(expected));
    assert_memory_equal(out.data, expected, out.size);
    tune_regular_free(r);
}

static void filters(void **state)
{
    (void)state;
    struct tune_pool *pool = NULL;
    struct tune_text out;
    replaced(&pool, ",", "1,234,5", "12345");
    replaced(&pool, "(?s).*#### ", "a\n#### b\n#### 7", "7");
    replaced(&pool, "x*", "axxb", "ab");
    const struct tune_text answer = {"It is 7 of $18, or 3.50.", 24};
    static const struct { const char *expression, *expected; int64_t group; } cases[] = {
        {"(-?[$0-9.,]{2,})|(-?[0-9]+)", "3.50.", -1}, {"(-?[$0-9.,]{2,})|(-?[0-9]+)", "7", 0}, {"#### ([0-9]+)", "[none]", 0},
        {"is (x?)", "", 0}, {" of ", "of", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_filter f = {.count = 1};
        f.steps[0].kind = TASK_REGEX;
        f.steps[0].regex = tune_regular_new(cases[i].expression);
        f.steps[0].group = cases[i].group;
        f.steps[0].fallback = "[none]";
        assert_ok(tune_task_filter_apply(&f, NULL, answer, &pool, &out));
        assert_string_equal(out.data, cases[i].expected);
        tune_regular_free(f.steps[0].regex);
    }
    struct task_filter f = {.count = 2};
    f.steps[0].kind = TASK_STRIP;
    f.steps[1].kind = TASK_LOWER;
    assert_ok(tune_task_filter_apply(&f, NULL, (struct tune_text){" \xC2\xA0\xC3\x84 B\n", 8}, &pool, &out));
    assert_string_equal(out.data, "\xC3\xA4 b");
    tune_pool_free(pool);
}

/* A letter by the regular expression, by the text of a choice, by a letter behind a colon. Expected: lm-eval 0.4.13's. */
static void choices(void **state)
{
    (void)state;
    struct tune_pool *pool = NULL;
    struct tune_text out, options[] = {{"Red cat.", 8}, {"red", 3}, {"Guilty of Romance", 17}, {"Guilty", 6}, {"blue; (sky)", 11}},
                     others[] = {{"red !", 5}, {"say !", 5}};
    struct task_question question = {.options = options, .option_count = 5};
    static const char usual[] = "#### (\\-?[0-9\\.\\,]+)";
    static const struct { const char *answer, *expected, *regex, *ignored; bool letters, punctuation; int64_t group; } cases[] = {
        {"the answer is #### 7", "7", usual, NULL, false, false, 0},
        {"It is Guilty of Romance, I say", "(C)", usual, NULL, false, false, 0},
        {"It is Guilty", "(D)", usual, NULL, false, false, 0},
        {"none: D", "(D)", usual, NULL, false, false, 0},
        {"nothing", "[invalid]", usual, NULL, false, false, 0},
        {"RED CAT. or so", "(A)", usual, NULL, true, false, 0},
        {"a (RED) \xE2\x80\x94 cat!", "(B)", usual, NULL, true, true, 0},
        {"blue sky", "(E)", usual, NULL, false, true, 0},
        {"red and Guilty", "(D)", usual, NULL, false, false, -1},
        {"of Romance", "(C)", usual, "Guilty ", false, false, 0},
        {"q: A", "(A)", "(x)|(y)?", NULL, false, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_filter f = {.count = 1};
        f.steps[0] = (struct task_step){.kind = TASK_MULTI_CHOICE, .regex = tune_regular_new(cases[i].regex), .group = cases[i].group,
                                        .fallback = "[invalid]", .ignored = {.letters = cases[i].letters, .punctuation = cases[i].punctuation}};
        if (cases[i].ignored)
            f.steps[0].ignored.regexes[f.steps[0].ignored.count++] = tune_regular_new(cases[i].ignored);
        assert_ok(tune_task_filter_apply(&f, &question, (struct tune_text){cases[i].answer, strlen(cases[i].answer)}, &pool, &out));
        assert_string_equal(out.data, cases[i].expected);
        tune_regular_free(f.steps[0].regex);
        tune_regular_free(f.steps[0].ignored.regexes[0]);
    }
    /* a text that is no choice any more without its punctuation stays as it is */
    struct task_filter f = {.count = 1};
    f.steps[0] = (struct task_step){.kind = TASK_MULTI_CHOICE, .regex = tune_regular_new(usual), .fallback = "", .ignored = {.punctuation = true}};
    question = (struct task_question){.options = others, .option_count = 2};
    assert_ok(tune_task_filter_apply(&f, &question, (struct tune_text){"red: B", 6}, &pool, &out));
    assert_string_equal(out.data, "red");
    f.steps[0].group = 3;
    assert_int_equal(tune_task_filter_apply(&f, &question, (struct tune_text){"red: B", 6}, &pool, &out), -1);
    assert_error_has("group_select: 3");
    tune_regular_free(f.steps[0].regex);
    tune_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws), cmocka_unit_test(literals), cmocka_unit_test(filters), cmocka_unit_test(choices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
