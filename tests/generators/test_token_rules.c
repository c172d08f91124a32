/* test_token_rules.c - tokens that are ruled out or forced: each rule by hand, in transformers' order; errors.
 * tests/peers/generation_config_peer.py compares with transformers' generate. */
#include "test.h"

#include <float.h>

#include "generators/token_rules.h"
#include "generators/token_sampler.h"

enum { V = 8 };

#define IDS(...) {(int32_t[]){__VA_ARGS__}, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))}

/* Which of V tokens are left after these tokens, as "0134"; forced ones in brackets. */
static void left(const struct tune_token_rules *r, const int32_t *past, int count, int prompt, const char *expected)
{
    float score[V];
    char found[V * 3 + 1] = "";
    for (int i = 0; i < V; i++)
        score[i] = (float)i + 1;
    tune_token_rules_apply(r, past, count, prompt, score, V);
    for (int i = 0; i < V; i++)
        if (score[i] > -FLT_MAX)
            snprintf(found + strlen(found), 4, score[i] == 0 ? "[%d]" : "%d", i);
    assert_string_equal(found, expected);
}
#define LEFT(r, prompt, expected, ...) \
    left(r, (int32_t[]){__VA_ARGS__}, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), prompt, expected)

static void ngrams(void **state)
{
    (void)state;
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 2}, 2, "013467", 1, 2, 1, 5, 1);
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 2}, 2, "01234567", 1, 2, 3);
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 2}, 1, "01234567", 1);
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 2}, 1, "0234567", 1, 1);
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 3}, 6, "0123567", 1, 2, 4, 5, 1, 2); /* the prompt counts */
    LEFT(&(struct tune_token_rules){.no_repeat_ngram_size = 1}, 1, "0467", 1, 2, 3, 5);
}

static void lists(void **state)
{
    (void)state;
    struct tune_token_rules r = {.suppress = IDS(0, 7, -1, 99), .begin_suppress = IDS(3)};
    LEFT(&r, 2, "12456", 1, 2);
    LEFT(&r, 2, "123456", 1, 2, 4);
    struct tune_token_rules words = {.bad_words = IDS(1, 4, 2, 1, 5, 3, 2, 1, 6, 1, 0), .ends = IDS(0)};
    LEFT(&words, 2, "0123567", 1, 2);    /* 4; the end of an answer stays */
    LEFT(&words, 2, "012367", 3, 1);     /* 4, and 5 after 1 */
    LEFT(&words, 2, "01237", 2, 1);      /* 4, 5, and 6 after 2 1 */
}

static void lengths(void **state)
{
    (void)state;
    struct tune_token_rules r = {.min_length = 4, .ends = IDS(0, 5)};
    LEFT(&r, 2, "123467", 1, 2, 3);
    LEFT(&r, 2, "01234567", 1, 2, 3, 4);
    r.min_new_tokens = 1; /* it takes the place of min_length */
    LEFT(&r, 2, "123467", 1, 2);
    LEFT(&r, 2, "01234567", 1, 2, 3);
    struct tune_token_rules forced = {.forced_bos = IDS(3), .forced_eos = IDS(0, 5), .max_length = 4, .begin_suppress = IDS(6)};
    LEFT(&forced, 1, "[3]", 1);
    LEFT(&forced, 1, "0123457", 1, 3);       /* begins behind the forced token */
    LEFT(&forced, 1, "[0][5]", 1, 3, 2);
    forced.max_new_tokens = 2;
    LEFT(&forced, 3, "0123457", 1, 3, 2);    /* no prompt of one token: begins at once */
    LEFT(&forced, 3, "[0][5]", 1, 3, 2, 2);
    forced.suppress = (struct tune_ids)IDS(5);
    LEFT(&forced, 3, "[0]", 1, 3, 2, 2);
}

/* The sampler keeps the tokens of each row apart, greedy or not. */
static void in_a_sampler(void **state)
{
    (void)state;
    float logits[V] = {0, 1, 2, 3, 4, 5, 6, 7}, p[V];
    int32_t id;
    struct tune_token_rules r = {.no_repeat_ngram_size = 1};
    for (int k = 0; k < 3; k++) {
        struct tune_sampling_options o = {.temperature = k == 0 ? 0 : 1e-3, .top_p = 1, .repetition_penalty = 1, .top_k = k == 2 ? 2 : 0};
        struct tune_token_sampler *s = tune_token_sampler_new(&o, 1, V, 2);
        assert_got(s);
        assert_ok(tune_token_sampler_obey(s, &r));
        assert_ok(tune_token_sampler_accept(s, 1, (int32_t[]){7, 5}, 2));
        for (int want = 7; want >= 4; want--) {
            assert_ok(tune_token_sampler_next(s, 0, 7 - want, logits, &id, NULL));
            assert_int_equal(id, want);
        }
        assert_ok(tune_token_sampler_distribution(s, 1, logits, p));
        assert_true(p[7] == 0 && p[5] == 0 && p[6] > 0.99f);
        assert_ok(tune_token_sampler_next(s, 1, 0, logits, &id, NULL));
        assert_int_equal(id, 6);
        assert_ok(tune_token_sampler_start(s, 1, 5));
        assert_ok(tune_token_sampler_next(s, 1, 0, logits, &id, NULL));
        assert_int_equal(id, 7);
        for (int i = 0; i < 4; i++)
            assert_ok(tune_token_sampler_next(s, 0, 4 + i, logits, &id, NULL));
        assert_int_equal(tune_token_sampler_next(s, 0, 8, logits, &id, NULL), -1);
        assert_error_has("row 0: no token is left to choose after 8");
        tune_token_sampler_free(s);
    }
}

static void errors(void **state)
{
    (void)state;
    struct tune_token_rules r = {.forced_eos = IDS(8)};
    assert_ok(tune_token_rules_check(&r, 9, NULL));
    assert_int_equal(tune_token_rules_check(&r, V, NULL), -1);
    assert_error_has("`forced_eos_token_id` has the id 8; expected ids from 0 to 7");
    assert_int_equal(tune_token_rules_check(&r, V, "file"), -1);
    assert_error_has("file: \"forced_eos_token_id\" has the id 8");
    assert_int_equal(tune_token_rules_check(&(struct tune_token_rules){.bad_words = IDS(2, 1, 9)}, V, NULL), -1);
    assert_error_has("`bad_words_ids` has the id 9");
    assert_int_equal(tune_token_rules_check(&(struct tune_token_rules){.bad_words = IDS(0)}, V, NULL), -1);
    assert_error_has("empty list");
    int32_t some[] = {1, 8, -1, 2};
    struct tune_token_rules many = {.suppress = {some, 4}};
    assert_int_equal(tune_token_rules_trim(&many, V), 2);
    assert_int_equal(many.suppress.count, 2);
    assert_int_equal(some[1], 2);
    assert_false(tune_token_rules_any(&(struct tune_token_rules){.min_new_tokens = 5, .max_new_tokens = 3}));
    assert_true(tune_token_rules_any(&many));
    struct tune_token_rules copy;
    uint64_t a = 0, b = 0;
    assert_ok(tune_token_rules_copy(&copy, &many));
    assert_true(copy.suppress.ids != some && copy.suppress.ids[1] == 2);
    tune_token_rules_hash(&copy, &a);
    copy.suppress.ids[1] = 3;
    tune_token_rules_hash(&copy, &b);
    assert_true(a != b);
    tune_token_rules_free(&copy);
    assert_null(copy.suppress.ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ngrams),       cmocka_unit_test(lists),  cmocka_unit_test(lengths),
        cmocka_unit_test(in_a_sampler), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
