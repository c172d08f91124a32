/* test_metaspace.c - Metaspace as pre-tokenizer and decoder: how transformers 5 saves the tokenizers of Llama 2, Mistral, Yi and
 * Phi-3. Ids, texts and offsets were taken from tokenizers 0.23; tests/peers/tokenizers_peer.py compares with it at length. */
#include "test.h"

#include "generators/detokenizer.h"
#include "tokenizers/tokenizer.h"

#define MARK "\xE2\x96\x81"
#define STAGE(kind, fields) "\"" kind "\":{\"type\":\"Metaspace\"," fields "},"
#define REST "\"added_tokens\":[{\"id\":11,\"content\":\"<x>\",\"special\":true,\"normalized\":false}],\"model\":{\"type\":\"BPE\"," \
    "\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"" MARK "\":1,\"a\":2,\"b\":3,\"" MARK "a\":4,\"ab\":5,\"" MARK "ab\":6,\"b" MARK \
    "\":7,\"b" MARK "ab\":8,\"_\":9,\"_a\":10},\"merges\":[\"a b\",\"" MARK " a\",\"" MARK " ab\",\"b " MARK "\",\"b" MARK " ab\",\"_ a\"]}}"

static struct tune_tokenizer *open_fields(const char *fields)
{
    char text[4096];
    const char *folder = test_folder();
    int n = snprintf(text, sizeof text, "{\"version\":\"1.0\",\"normalizer\":null," STAGE("pre_tokenizer", "%s") STAGE("decoder", "%s") REST,
                     fields, fields);
    test_write(folder, "tokenizer.json", text, (size_t)n);
    struct tune_tokenizer *t = tune_tokenizer_open(folder);
    tune_file_remove_folder(folder);
    return t;
}

static void check(struct tune_tokenizer *t, const char *text, const char *ids, const char *decoded)
{
    struct tune_encoding e = {0};
    struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
    char line[512] = "", *back;
    const char *piece;
    size_t n = 0, size;
    assert_got(s);
    assert_ok(tune_tokenizer_encode(t, text, strlen(text), 0, &e));
    for (int64_t i = 0; i < e.count; i++) {
        n += (size_t)snprintf(line + n, sizeof line - n, i ? " %d" : "%d", (int)e.ids[i]);
        assert_ok(tune_detokenizer_add(s, e.ids[i], &piece, &size));
    }
    if (strcmp(line, ids) != 0)
        fail_msg("\"%s\" gives %s, expected %s", text, line, ids);
    assert_ok(tune_tokenizer_decode(t, e.ids, e.count, false, &back, &size));
    assert_string_equal(back, decoded);
    free(back);
    assert_ok(tune_tokenizer_decode(t, e.ids, e.count, true, &back, &n));
    assert_ok(tune_detokenizer_end(s, &piece, &size));
    piece = tune_detokenizer_text(s, &size);
    if (size != n || memcmp(piece, back, n) != 0)
        fail_msg("streamed \"%.*s\", expected \"%s\"", (int)size, piece, back);
    free(back);
    tune_detokenizer_free(s);
    tune_encoding_free(&e);
}

static const char split_words[] = "ab ab<x>ab  b<x> a";

static void fields_of_all_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *ids, *decoded, *spaces, *spaces_decoded;
    } of[] = {
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"first\",\"split\":false", "6 6 11 5 1 1 3 11 4", "ab ab<x>ab  b<x> a", "4 1 7", "a b "},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"always\",\"split\":false", "6 6 11 6 1 1 3 11 4", "ab ab<x> ab  b<x> a", "4 1 7", "a b "},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"never\",\"split\":false", "5 6 11 5 1 1 3 11 4", "ab ab<x>ab  b<x> a", "4 1 7", " a b "},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"first\"", "6 6 11 5 1 1 3 11 4", "ab ab<x>ab  b<x> a", "4 1 3 1", "a b "},
        {"\"replacement\":\"" MARK "\"", "6 6 11 6 1 1 3 11 4", "ab ab<x> ab  b<x> a", "4 1 3 1", "a b "},
        {"\"replacement\":\"" MARK "\",\"add_prefix_space\":true,\"str_rep\":\"x\"", "6 6 11 6 1 1 3 11 4", "ab ab<x> ab  b<x> a", "4 1 3 1", "a b "},
        {"\"replacement\":\"" MARK "\",\"add_prefix_space\":null,\"split\":null", "6 6 11 6 1 1 3 11 4", "ab ab<x> ab  b<x> a", "4 1 3 1", "a b "},
        {"\"replacement\":\"" MARK "\",\"add_prefix_space\":true,\"prepend_scheme\":\"never\"", "5 6 11 5 1 1 3 11 4", "ab ab<x>ab  b<x> a", "4 1 3 1", " a b "},
        /* tokenizers 0.23 refuses the old field without a prepend_scheme; before, it meant never */
        {"\"replacement\":\"" MARK "\",\"add_prefix_space\":false", "5 6 11 5 1 1 3 11 4", "ab ab<x>ab  b<x> a", "4 1 3 1", " a b "},
        {"\"replacement\":\"_\",\"prepend_scheme\":\"first\",\"split\":false", "9 5 9 5 11 5 9 9 3 11 10", "ab ab<x>ab  b<x> a", "9 4 9 3 9", MARK "a b "},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct tune_tokenizer *t = open_fields(of[i].fields);
        assert_got(t);
        assert_string_equal(tune_tokenizer_pipeline(t), "metaspace");
        check(t, split_words, of[i].ids, of[i].decoded);
        check(t, MARK "a b ", of[i].spaces, of[i].spaces_decoded);
        check(t, "", "", "");
        tune_tokenizer_free(t);
    }
}

/* A mark in front has the range of the first character, so that a mask by characters takes both. */
static void offsets(void **state)
{
    (void)state;
    static const int64_t of[][2] = {{0, 1}, {0, 2}, {2, 3}, {3, 5}, {5, 8}, {8, 10}, {10, 11}, {11, 12}, {12, 13}, {13, 16}, {16, 18}};
    struct tune_tokenizer *t = open_fields("\"replacement\":\"_\",\"prepend_scheme\":\"first\",\"split\":false");
    struct tune_encoding e = {0};
    assert_got(t);
    assert_ok(tune_tokenizer_encode(t, split_words, strlen(split_words), 0, &e));
    assert_int_equal(e.count, sizeof of / sizeof *of);
    for (int i = 0; i < e.count; i++)
        if (e.starts[i] != of[i][0] || e.ends[i] != of[i][1])
            fail_msg("token %d: %lld to %lld", i, (long long)e.starts[i], (long long)e.ends[i]);
    tune_encoding_free(&e);
    tune_tokenizer_free(t);
}

/* A normalizer that changes other text leaves a special token special. */
static void special_after_a_normalizer(void **state)
{
    (void)state;
    char *back;
    size_t size;
    const char *folder = test_folder(), *text = "{\"version\":\"1.0\",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
        "\"content\":\"" MARK "\"},\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Fuse\"},\"added_tokens\":[{\"id\":1,\"content\":\"<y>\",\"special\":true,"
        "\"normalized\":true},{\"id\":2,\"content\":\"<y y>\",\"special\":true,\"normalized\":true}],\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}";
    test_write(folder, "tokenizer.json", text, strlen(text));
    struct tune_tokenizer *t = tune_tokenizer_open(folder);
    assert_got(t);
    assert_ok(tune_tokenizer_decode(t, (int32_t[]){0, 1, 0, 2}, 4, true, &back, &size));
    assert_string_equal(back, "aa<y" MARK "y>");
    free(back);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

static void refused(void **state)
{
    (void)state;
    static const char *const of[][2] = {
        {"\"prepend_scheme\":\"first\"", "the replacement \"\"; expected one character"},
        {"\"replacement\":\"ab\"", "the replacement \"ab\"; expected one character"},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"First\"", "prepend_scheme \"First\"; expected first, always or never"},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":null", "expected a string"},
        {"\"replacement\":\"" MARK "\",\"prepend_scheme\":\"first\",\"add_prefix_space\":false", "expected them to agree"},
        {"\"replacement\":\"" MARK "\",\"split\":1", "expected"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_null(open_fields(of[i][0]));
        assert_error_has(of[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_all_kinds),
        cmocka_unit_test(offsets),
        cmocka_unit_test(special_after_a_normalizer),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
