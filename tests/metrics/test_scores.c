/* test_scores.c - metrics on rows whose values are worked out by hand. metrics_peer.py compares hundreds with other libraries. */
#include "test.h"

#include "metrics/scores.h"

static struct tune_text text(const char *s)
{
    return (struct tune_text){s, strlen(s)};
}

/* The value of one row with up to three references; NULL ends them. */
static double value_of(const char *name, const char *answer, const char *first, const char *second)
{
    struct tune_text references[2] = {text(first ? first : ""), text(second ? second : "")};
    struct tune_score_row row = {.answer = text(answer), .references = references, .reference_count = (first != NULL) + (second != NULL)};
    double sums[TUNE_SCORE_SUMS];
    const struct tune_score *m = tune_score_find(name);
    assert_got(m);
    assert_ok(tune_score_of(m, &row, sums));
    return tune_score_value(m, sums, 0);
}

#define EQUAL(name, answer, first, second, want) assert_float_equal(value_of(name, answer, first, second), want, 1e-12)

static void exact(void **state)
{
    (void)state;
    EQUAL("exact_match_raw", "Red.", "Red.", NULL, 1);
    EQUAL("exact_match_raw", "Red. ", "Red.", NULL, 0);
    EQUAL("exact_match_raw", "red", "blue", "red", 1);
    EQUAL("exact_match_raw", "", "", NULL, 1);
    EQUAL("exact_match_squad", " The RED,\tcat!", "red cat", NULL, 1);
    EQUAL("exact_match_squad", "an apple", "Apple.", NULL, 1);
    EQUAL("exact_match_squad", "another apple", "Apple.", NULL, 0);
    EQUAL("exact_match_squad", "a_b", "AB", NULL, 1);        /* "_" is punctuation */
    EQUAL("exact_match_squad", "a1 the2", "1 2", NULL, 0);   /* the article is not a word by itself */
    EQUAL("exact_match_squad", "\xC3\x89" "COLE", "\xC3\xA9" "cole", NULL, 1); /* É, é */
    EQUAL("exact_match_squad", "th\xC3\xA9 a\xC3\xA9", "th\xC3\xA9", NULL, 0);  /* é goes on the word */
    EQUAL("exact_match_squad", "a\xCC\x81", "\xCC\x81", NULL, 1); /* an accent that stands apart does not */
    EQUAL("exact_match_squad", "x\xC2\xA0y", "x y", NULL, 1);     /* a space that does not break */
    EQUAL("exact_match_squad", "\xCE\xA3\xCE\x9F\xCE\xA3", "\xCF\x83\xCE\xBF\xCF\x82", NULL, 1); /* ΣΟΣ, σος */
    EQUAL("exact_match_squad", "\xC4\xB0", "i\xCC\x87", NULL, 1); /* İ */
    EQUAL("exact_match_squad", "the a", "", NULL, 1);
}

static void f1(void **state)
{
    (void)state;
    EQUAL("token_f1", "the cat sat", "cat ran off", NULL, 2. / 5); /* 1 of 2, 1 of 3 */
    EQUAL("token_f1", "cat cat dog", "cat", NULL, 2 * (1. / 3) / (4. / 3));
    EQUAL("token_f1", "cat", "dog", "a cat", 1);
    EQUAL("token_f1", "", "", NULL, 1);
    EQUAL("token_f1", "the", "", NULL, 1);
    EQUAL("token_f1", "", "cat", NULL, 0);
    EQUAL("token_f1", "cat", "", NULL, 0);
}

static void rouge(void **state)
{
    (void)state;
    /* police killed the gunman / police kill the gunman: 3 of 4 words, 1 of 3 pairs, 3 in order */
    EQUAL("rouge_1", "police kill the gunman", "police killed the gunman", NULL, 0.75);
    EQUAL("rouge_2", "police kill the gunman", "police killed the gunman", NULL, 1. / 3);
    EQUAL("rouge_l", "police kill the gunman", "police killed the gunman", NULL, 0.75);
    EQUAL("rouge_l", "the gunman kill police", "police killed the gunman", NULL, 0.5);
    EQUAL("rouge_1", "The-Cat!", "the cat", NULL, 1);
    EQUAL("rouge_1", "\xD0\xBF\xD1\x80", "\xD0\xBF\xD1\x80", NULL, 0); /* no letter a to z */
    EQUAL("rouge_1", "\xE2\x84\xAA", "k", NULL, 1);                     /* the sign for kelvin */
    EQUAL("rouge_2", "one", "one", NULL, 0);
    EQUAL("rouge_l", "", "one", NULL, 0);
    EQUAL("rouge_1", "x y", "z", "x", 2 * 0.5 / 1.5);
    /* w1 w2 w3 w4 w5 against the lines w1 w2 w6 w7 w8 / w1 w3 w8 w9 w5: the union is w1 w2 w3 w5 (Lin 2004, 3.2) */
    EQUAL("rouge_lsum", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", NULL, 2 * 0.4 * 0.8 / 1.2);
    EQUAL("rouge_lsum", "b\na", "a\nb", NULL, 1);
    EQUAL("rouge_l", "b\na", "a\nb", NULL, 0.5);
    EQUAL("rouge_lsum", "a a", "a\na\na", NULL, 0.8); /* a counts as often as both have it */
    EQUAL("rouge_lsum", "a c\na", "c a", NULL, 0.8);  /* of "c a" and "a c" the path takes c: 2 of 3 words */
}

static void corpus(void **state)
{
    (void)state;
    EQUAL("bleu", "the cat sat on a mat", "the cat sat on a mat", NULL, 100);
    /* 5 of 6 words, 3 of 5 pairs, 2 of 4 threes, 1 of 3 fours */
    EQUAL("bleu", "the cat sat on the mat", "the cat sat on a mat", NULL, 100 * pow(5. / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25));
    /* 4 of 5, 2 of 4, 0 of 3: a half, 0 of 2: a quarter */
    EQUAL("bleu", "one two x four five", "one two three four five", NULL, 100 * pow(4. / 5 * 2 / 4 * 0.5 / 3 * 0.25 / 2, 0.25));
    EQUAL("bleu", "the cat sat on a", "the cat sat on a mat", NULL, 100 * exp(1 - 6. / 5));
    /* A longer answer has no bonus. Of references one word longer and shorter, the shorter counts. */
    EQUAL("bleu", "a b c d e f", "a b c d e", NULL, 100 * pow(5. / 6 * 4 / 5 * 3 / 4 * 2 / 3, 0.25));
    EQUAL("bleu", "a b c d e", "a b c d x y", "a b c d", 100 * pow(4. / 5 * 3 / 4 * 2 / 3 * 1 / 2, 0.25));
    EQUAL("bleu", "Hello, world!", "Hello , world !", NULL, 100); /* 13a takes marks apart */
    EQUAL("bleu", "3.14 x-y 5-6", "3.14 x-y 5 - 6", NULL, 100);   /* but no number at its point */
    EQUAL("bleu", "", "cat", NULL, 0);
    /* The value of one row counts only n-grams that the answer has: 2 of 2 words, 1 of 1 pair. */
    double row[TUNE_SCORE_SUMS];
    struct tune_text two = text("yes sir");
    assert_ok(tune_score_of(tune_score_find("bleu"), &(struct tune_score_row){.answer = two, .references = &two, .reference_count = 1}, row));
    assert_float_equal(tune_score_row_value(tune_score_find("bleu"), row, 0), 100, 1e-12);
    assert_true(tune_score_value(tune_score_find("bleu"), row, 0) < 1e-12);
    EQUAL("chrf", "abcdefg h", "abcdefgh", NULL, 100);
    EQUAL("chrf", "ab", "abc", NULL, 100 * 5 * 1 * ((2. / 3 + 1. / 2) / 2) / (4 * 1 + (2. / 3 + 1. / 2) / 2));
    EQUAL("chrf", "", "abc", NULL, 0);
    /* Sums over rows are not a mean over rows: 2 of 2 and 0 of 1 bigrams. */
    const struct tune_score *m = tune_score_find("chrf");
    double a[TUNE_SCORE_SUMS], b[TUNE_SCORE_SUMS];
    struct tune_text r[2] = {text("abcabc"), text("xyz")};
    assert_ok(tune_score_of(m, &(struct tune_score_row){.answer = text("abcabc"), .references = &r[0], .reference_count = 1}, a));
    assert_ok(tune_score_of(m, &(struct tune_score_row){.answer = text("abc"), .references = &r[1], .reference_count = 1}, b));
    for (int i = 0; i < tune_score_width(m, 0); i++)
        a[i] += b[i];
    double p = (6. / 9 + 5. / 7 + 4. / 5 + 1 + 1 + 1) / 6;
    assert_float_equal(tune_score_value(m, a, 0), 100 * p, 1e-12); /* recall is the same */
    /* n-grams longer than the reference do not count against the answer. */
    r[1] = text("x");
    assert_ok(tune_score_of(m, &(struct tune_score_row){.answer = text("abc"), .references = &r[1], .reference_count = 1}, b));
    assert_true(b[0] == 3 && b[1] == 1 && b[3] == 0 && b[4] == 0);
    assert_true(isnan(tune_score_value(m, (double[TUNE_SCORE_SUMS]){0}, 0)));
    char signature[200];
    assert_string_equal(strstr(tune_score_signature(m, 1, signature, sizeof signature), "nrefs"),
                        signature);
    assert_memory_equal(signature, "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:tune.c-", 61);
    tune_score_signature(tune_score_find("bleu"), 0, signature, sizeof signature);
    assert_memory_equal(signature, "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:tune.c-", 62);
    assert_string_equal(tune_score_signature(tune_score_find("loss"), 1, signature, sizeof signature), "");
}

static void others(void **state)
{
    (void)state;
    EQUAL("last_number", "so 6 * 7 = 42.", "#### 42", NULL, 1);
    EQUAL("last_number", "$1,234.50 in all.", "#### 1234.5", NULL, 1);
    EQUAL("last_number", "it is -3", "3", NULL, 0);
    EQUAL("last_number", "10-3", "3", NULL, 1); /* no sign */
    EQUAL("last_number", "42, then 7", "42", NULL, 0);
    EQUAL("last_number", "none", "none", NULL, 0);
    EQUAL("last_number", "", "1", "2", 0);
    EQUAL("last_number", "18", "17", "18.00", 1);
    EQUAL("last_number", ".5", "0.5", NULL, 1);
    EQUAL("last_number", "1.2.3", "1.2.3", NULL, 0);
    EQUAL("json_valid", " {\"a\": [1, 2.5e3, null]}\n", NULL, NULL, 1);
    EQUAL("json_valid", "{\"a\": 1} x", NULL, NULL, 0);
    EQUAL("json_valid", "{'a': 1}", NULL, NULL, 0);
    EQUAL("json_valid", "", NULL, NULL, 0);
    EQUAL("json_valid", "\xFF", NULL, NULL, 0);
    assert_string_equal(tune_error_message(), "");
    EQUAL("answer_characters", "\xC3\xA9\xF0\x9F\x99\x82\xFFx", NULL, NULL, 4);
    double sums[TUNE_SCORE_SUMS];
    struct tune_score_row row = {.loss = 6 * log(2), .text_loss = 4 * log(2), .loss_tokens = 3, .loss_bytes = 8, .answer_tokens = 7, .ended = true,
                                 .chosen = -2, .rejected = -3, .chosen_tokens = 2, .rejected_tokens = 4};
    static const struct { const char *name; double want; } numbers[] = {
        {"perplexity", 4}, {"bits_per_byte", 0.5}, {"answer_tokens", 7}, {"ended", 1}, {"pair_accuracy", 1}, {"pair_accuracy_norm", 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct tune_score *m = tune_score_find(numbers[i].name);
        assert_ok(tune_score_of(m, &row, sums));
        assert_float_equal(tune_score_value(m, sums, 0), numbers[i].want, 1e-12);
    }
    row.chosen = row.rejected;
    assert_ok(tune_score_of(tune_score_find("pair_accuracy"), &row, sums));
    assert_true(sums[0] == 0);
    assert_ok(tune_score_of(tune_score_find("pair_accuracy_norm"), &row, sums)); /* -3 / 2 and -3 / 4 */
    assert_true(sums[0] == 0);
    row.chosen = -1;
    assert_ok(tune_score_of(tune_score_find("pair_accuracy_norm"), &row, sums));
    assert_true(sums[0] == 1);
    row.rejected = -INFINITY;
    assert_int_equal(tune_score_of(tune_score_find("pair_accuracy"), &row, sums), -1);
    assert_error_has("not finite");
    row.text_loss = NAN;
    assert_int_equal(tune_score_of(tune_score_find("bits_per_byte"), &row, sums), -1);
    assert_ok(tune_score_of(tune_score_find("loss"), &row, sums));
    row.loss = NAN;
    assert_int_equal(tune_score_of(tune_score_find("loss"), &row, sums), -1);
    assert_error_has("nan");
}

static void labels(void **state)
{
    (void)state;
    struct tune_score_labels *set = tune_score_labels_new();
    assert_got(set);
    assert_int_equal(tune_score_labels_add(set, text("yes")), 1);
    assert_int_equal(tune_score_labels_add(set, text("no")), 1);
    assert_int_equal(tune_score_labels_add(set, text(" Yes!")), 0);
    assert_int_equal(tune_score_labels_add(set, text("maybe")), 1);
    assert_int_equal(tune_score_labels_add(set, text("?!")), -1);
    assert_error_has("\"?!\" has no letter or digit");
    assert_int_equal(tune_score_labels_count(set), 3);
    assert_string_equal(tune_score_label(set, 2), "maybe");
    assert_int_equal(tune_score_label_of(set, text(" Yes.\n")), 0);
    assert_int_equal(tune_score_label_of(set, text("yes, sir")), -1);
    /* answer, truth: yes/yes yes/no no/no other/maybe */
    static const char *const rows[][2] = {{"Yes", "yes"}, {"yes.", "no"}, {"NO", "no"}, {"what", "maybe"}};
    const struct tune_score *m = tune_score_find("macro_f1"), *accuracy = tune_score_find("accuracy");
    double sums[TUNE_SCORE_SUMS], total[TUNE_SCORE_SUMS] = {0}, right[TUNE_SCORE_SUMS], all = 0;
    assert_int_equal(tune_score_width(m, 3), 9);
    for (int i = 0; i < 4; i++) {
        struct tune_text truth = text(rows[i][1]);
        struct tune_score_row row = {.answer = text(rows[i][0]), .references = &truth, .reference_count = 1, .labels = set};
        assert_ok(tune_score_of(m, &row, sums));
        assert_ok(tune_score_of(accuracy, &row, right));
        all += right[0];
        for (int k = 0; k < 9; k++)
            total[k] += sums[k];
    }
    assert_true(all == 2);
    assert_float_equal(tune_score_value(m, total, 3), (2. / 3 + 2. / 3 + 0) / 3, 1e-12);
    /* A label that nobody gave or expected does not count. */
    assert_float_equal(tune_score_value(m, (double[9]){1, 1, 2, 1, 2, 1}, 3), 2. / 3, 1e-12);
    struct tune_text wrong = text("perhaps");
    struct tune_score_row row = {.answer = text("yes"), .references = &wrong, .reference_count = 1, .labels = set};
    assert_int_equal(tune_score_of(accuracy, &row, sums), -1);
    assert_error_has("\"perhaps\" is none of the labels");
    row.labels = NULL;
    assert_int_equal(tune_score_of(accuracy, &row, sums), -1);
    for (char name[8] = "x00"; tune_score_labels_count(set) < TUNE_SCORE_LABELS; name[2] == '9' ? name[1]++, name[2] = '0' : name[2]++)
        assert_int_equal(tune_score_labels_add(set, text(name)), 1);
    assert_int_equal(tune_score_labels_add(set, text("y")), -1);
    assert_error_has("more than 100 labels");
    tune_score_labels_free(set);
}

static void names(void **state)
{
    (void)state;
    const struct tune_score *found[8];
    assert_int_equal(tune_score_list("bleu,exact_match,bleu", found, 8), 3);
    assert_string_equal(found[0]->name, "bleu");
    assert_string_equal(found[1]->name, "exact_match_raw");
    assert_string_equal(found[2]->name, "exact_match_squad");
    assert_int_equal(tune_score_list("rouge", found, 8), 4);
    assert_string_equal(found[3]->name, "rouge_lsum");
    assert_int_equal(tune_score_list("usual,exact_match", found, 8), 8);
    assert_int_equal(tune_score_list("rouge", found, 3), -1);
    assert_int_equal(tune_score_list(",", found, 3), -1);
    assert_int_equal(tune_score_list("bleu,rogue_l", found, 8), -1);
    assert_error_has("no metric is called \"rogue_l\" (the nearest is rouge_l); there are loss, ");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_null(tune_score_find("rouge"));
    double sums[TUNE_SCORE_SUMS];
    assert_int_equal(tune_score_of(tune_score_find("bleu"), &(struct tune_score_row){.answer = text("x")}, sums), -1);
    assert_error_has("the row has none");
    int count;
    const struct tune_score *all = tune_scores(&count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(all[i].name, all[k].name);
}

/* Bytes of any kind, as answer and reference, in memory of exactly their size: values stay in range. */
static void bytes(void **state)
{
    (void)state;
    int count;
    const struct tune_score *all = tune_scores(&count);
    uint32_t seed = 7;
    for (int turn = 0; turn < 300; turn++) {
        struct tune_text both[2];
        for (int i = 0; i < 2; i++) {
            both[i].size = (seed = seed * 1664525 + 1013904223) >> 27;
            char *data = malloc(both[i].size + 1);
            for (size_t k = 0; k <= both[i].size; k++)
                data[k] = k == both[i].size ? 0 : (char)((seed = seed * 1664525 + 1013904223) >> 24);
            both[i].data = data;
        }
        struct tune_score_row row = {.answer = both[0], .references = &both[1], .reference_count = 1};
        for (int i = 0; i < count; i++) {
            double sums[TUNE_SCORE_SUMS];
            if (all[i].needs & ~(TUNE_NEEDS_ANSWER | TUNE_NEEDS_REFERENCE))
                continue;
            assert_ok(tune_score_of(&all[i], &row, sums));
            double v = tune_score_value(&all[i], sums, 0);
            assert_true(v >= 0 && v <= 100 + 1e-9);
        }
        free((char *)both[0].data);
        free((char *)both[1].data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact), cmocka_unit_test(f1), cmocka_unit_test(rouge), cmocka_unit_test(corpus),
        cmocka_unit_test(others), cmocka_unit_test(labels), cmocka_unit_test(names), cmocka_unit_test(bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
