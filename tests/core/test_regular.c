/* test_regular.c - regular expressions as Python's re has them: what fits, what is refused. The answers are those of Python 3.11. */
#include "core/regular.h"
#include "test.h"

static void what_fits(void **state)
{
    (void)state;
    static const char name[] = "model.layers.12.self_attn.q_proj";
    static const struct {
        const char *expression, *text;
        bool whole, beginning;
    } cases[] = {
        {".*", name, true, true},
        {"", name, false, true},
        {"model", name, false, true},
        {"layers", name, false, false},
        {"model\\.layers\\.(\\d+)\\.self_attn\\.(?:q|k)_proj", name, true, true},
        {"model\\.layers\\.\\d{2}\\..*", name, true, true},
        {"model\\.layers\\.\\d{3,}\\..*", name, false, false},
        {"model\\.layers\\.\\d{,2}?\\..*?", name, true, true},
        {"model.layers.[2-90-1]+.*", name, true, true},
        {"[^.]*\\.[^.]*\\.[^.]*\\.[^.]*\\.[^.]*", name, true, true},
        {"[^.]*\\.[^.]*", name, false, true},
        {".*\\bself_attn\\b.*", name, true, true},
        {".*\\Bself_attn.*", name, false, false},
        {".*self\\B_attn.*", name, true, true},
        {"(?!.*\\.mlp\\.).*_proj", name, true, true},
        {"(?=.*\\.mlp\\.).*_proj", name, false, false},
        {".*(?<=self_attn\\.)q_proj", name, true, true},
        {".*(?<!self_attn\\.)q_proj", name, false, false},
        {"(?i)MODEL.*[P-Q]_PROJ", name, true, true},
        {"(?i:MODEL).*Q_proj", name, false, false},
        {"(?-i:model).*(?P<kind>q|k)_proj$", name, true, true},
        {"^model.*\\Z", name, true, true},
        {"\\Amodel.*$", name, true, true},
        {"model$", name, false, false},
        {"a|b|model.*|c", name, true, true},
        {"(model|model.layers).*q_proj", name, true, true},
        {"(?:a*)*b", "aaaaaac", false, false}, /* ends */
        {"(a|aa)+$", "aaaaaaaaaaaaaaaa", true, true},
        {"a{2}b{,1}c{0,}", "aacc", true, true},
        {"a{x", "a{x", true, true},
        {"x{}", "x{}", true, true},
        {"x{}*", "x{}}", true, true},
        {"[]a]+", "]a]", true, true},
        {"[^]a]+", "bc", true, true},
        {"[a\\-z]+", "a-z", true, true},
        {"[a-]+", "a-", true, true},
        {"[\\w.]+", name, true, true},
        {"\\W", ".", true, true},
        {"\\S+\\s\\S+", "a b", true, true},
        {"\\x41\\t\\\\", "A\t\\", true, true},
        {".", "\n", false, false},
        {"(?s).", "\n", true, true},
        {"a$", "a\n", false, true},
        {"a\\Z", "a\n", false, false},
        {"(?m)a$\n^b", "a\nb", true, true},
        {"a??b", "ab", true, true},
        {"(?:)", "", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(tune_regular_check(cases[i].expression));
        if (tune_regular_matches(cases[i].expression, cases[i].text, true) != cases[i].whole ||
            tune_regular_matches(cases[i].expression, cases[i].text, false) != cases[i].beginning)
            fail_msg("%s and %s", cases[i].expression, cases[i].text);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *message;
    } cases[] = {
        {"(a", "a '(' is not closed"}, {"a)", "a ')' closes nothing"}, {"[a", "a '[' is not closed"}, {"*a", "nothing to repeat"},
        {"a**", "doubled repetition"}, {"a{2}{3}", "doubled repetition"}, {"a++", "possessive"}, {"a{3,2}", "bounds that no text has"},
        {"[b-a]", "the wrong way round"}, {"[a-\\d]", "the wrong way round"}, {"\\q", "a backslash stands before a letter"},
        {"a\\", "ends with a backslash"}, {"(a)\\1", "references to groups"}, {"(?P=a)", "references to groups"},
        {"(?>a)", "not known here"}, {"(?(1)a)", "not known here"}, {"(?x)a", "of flags"}, {"(?i", "a '(' is not closed"}, {"a(?i)", "elsewhere than at the beginning"},
        {"\xc3\xa9", "outside ASCII"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tune_regular_check(cases[i].expression), -1);
        assert_error_has(cases[i].message);
        assert_int_equal(tune_regular_matches(cases[i].expression, "a", true), -1);
    }
    char deep[1000];
    memset(deep, '(', sizeof deep);
    deep[999] = 0;
    assert_int_equal(tune_regular_check(deep), -1);
    assert_error_has("too deep");
}

/* Expressions that would take for ever do not. */
static void what_takes_too_long(void **state)
{
    (void)state;
    assert_int_equal(tune_regular_matches("(a|a)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true), -1);
    assert_int_equal(tune_regular_matches("(?!(a|a)*b).*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true), -1);
    char *many = malloc(60001);
    memset(many, 'a', 60000);
    many[60000] = 0;
    assert_int_equal(tune_regular_matches("(?:a)*", many, true), -1);
    free(many);
}

/* What re.finditer finds first: the match and its groups as "begin-end", "." for a group that takes no part. */
static void what_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *text, *spans;
        size_t from;
    } cases[] = {
        {"#### (\\-?[0-9\\.\\,]+)", "so 3\n#### -1,234.", "5-17 10-17", 0},
        {"(-?[$0-9.,]{2,})|(-?[0-9]+)", "it is 7 of $18", "6-7 . 6-7", 0},
        {"(-?[$0-9.,]{2,})|(-?[0-9]+)", "it is 7 of $18", "11-14 11-14 .", 7},
        {"(?s).*#### ", "a\nb #### c #### 5", "0-16", 0},
        {"(?s).*?#### ", "a\nb #### c #### 5", "0-9", 0},
        {"b*", "aab", "0-0", 0},
        {"(a)|b", "cb", "1-2 .", 0},
        {"((a)|b)+", "abc", "0-2 1-2 0-1", 0},
        {"(?P<x>[^,])x", "\xc3\xa4x", "0-3 0-2", 0},
        {".", "\xe2\x82\xac!", "0-3", 0},
        {"(?i)answer is \\(?([A-J])\\)?", "The ANSWER is (c).", "4-17 15-16", 0},
        {"\\.$", "18.", "2-3", 0},
        {"(?!(a))b", "b", "0-1 .", 0},
        {"(?=(b))", "ab", "1-1 1-2", 0},
        {"x", "abc", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_regular *r = tune_regular_new(cases[i].expression);
        struct tune_regular_span spans[8];
        char text[200] = "";
        assert_non_null(r);
        int found = tune_regular_search(r, cases[i].text, strlen(cases[i].text), cases[i].from, spans);
        for (int g = 0; found == 1 && g <= tune_regular_groups(r); g++) {
            size_t used = strlen(text);
            if (!spans[g].found)
                snprintf(text + used, sizeof text - used, "%s.", g ? " " : "");
            else
                snprintf(text + used, sizeof text - used, "%s%zu-%zu", g ? " " : "", spans[g].begin, spans[g].end);
        }
        assert_string_equal(text, cases[i].spans);
        tune_regular_free(r);
    }
    assert_null(tune_regular_new("(a"));
    /* Long texts are searched in one go: no call for each character. */
    size_t size = 200000;
    char *text = malloc(size);
    memset(text, 'a', size);
    text[size - 1] = '!';
    struct tune_regular *r = tune_regular_new("(a+)!");
    struct tune_regular_span spans[2];
    assert_int_equal(tune_regular_search(r, text, size, 0, spans), 1);
    assert_int_equal(spans[1].end, size - 1);
    tune_regular_free(r);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_fits), cmocka_unit_test(what_is_refused), cmocka_unit_test(what_takes_too_long),
                                       cmocka_unit_test(what_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
