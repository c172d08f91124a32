/* test_tokenizer.c - ids and text as the reference library has them, files that lie, threads, training.
 *
 * tests/reference/tokenizers.jsonl holds a small tokenizer of each shape and what the tokenizers package made of some
 * texts (make_tokenizers.py); tests/peers/tokenizers_peer.py compares with the live package at length. */
#include "test.h"

#include <pthread.h>

#include "files/json.h"
#include "flags/flags.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

static struct tune_tokenizer *open_text(const char *folder, const char *text, size_t size)
{
    test_write(folder, "tokenizer.json", text, size);
    return tune_tokenizer_open(folder);
}

/* ---- recorded cases ---- */

struct ids {
    int32_t id[8192];
    int64_t count;
};

static void read_ids(struct tune_json *j, struct ids *ids)
{
    ids->count = 0;
    assert_ok(tune_json_array(j));
    while (tune_json_item(j) == 1) {
        uint64_t id;
        assert_ok(tune_json_u64(j, &id));
        assert_true(ids->count < 8192);
        ids->id[ids->count++] = (int32_t)id;
    }
}

static char *copy_text(struct tune_json *j, size_t *size)
{
    struct tune_text s;
    assert_ok(tune_json_string(j, &s));
    char *copy = malloc(s.size + 1);
    memcpy(copy, s.data, s.size + 1);
    *size = s.size;
    return copy;
}

static void same_ids(const char *name, const char *text, const struct tune_encoding *e, const struct ids *ids)
{
    bool same = e->count == ids->count && (e->count == 0 || 0 == memcmp(e->ids, ids->id, (size_t)ids->count * sizeof *ids->id));
    if (!same) {
        for (int64_t i = 0; i < e->count || i < ids->count; i++)
            print_error("%lld: ours %d, reference %d\n", (long long)i, i < e->count ? (int)e->ids[i] : -1,
                        i < ids->count ? (int)ids->id[i] : -1);
        fail_msg("%s: ids differ for \"%.200s\"", name, text);
    }
}

/* One {"text", "ids", ..} object. */
static void check_case(struct tune_json *j, struct tune_tokenizer *t, const char *name)
{
    static struct ids plain, special;
    struct tune_text key;
    size_t size = 0, decoded_size = 0, back_size;
    char *text = NULL, *decoded = NULL, *back;
    special.count = -1;
    assert_ok(tune_json_object(j));
    while (tune_json_key(j, &key) == 1)
        if (tune_text_equal(key, "text"))
            text = copy_text(j, &size);
        else if (tune_text_equal(key, "decoded"))
            decoded = copy_text(j, &decoded_size);
        else if (tune_text_equal(key, "ids"))
            read_ids(j, &plain);
        else if (tune_text_equal(key, "special_ids"))
            read_ids(j, &special);
        else
            assert_ok(tune_json_skip(j));
    struct tune_encoding e = {0};
    for (int again = 0; again < 2; again++) { /* the second time from the cache */
        assert_ok(tune_tokenizer_encode(t, text, size, 0, &e));
        same_ids(name, text, &e, &plain);
    }
    if (special.count >= 0) {
        assert_ok(tune_tokenizer_encode(t, text, size, TUNE_ADD_SPECIAL, &e));
        same_ids(name, text, &e, &special);
    }
    if (decoded) {
        assert_ok(tune_tokenizer_decode(t, plain.id, plain.count, false, &back, &back_size));
        if (back_size != decoded_size || memcmp(back, decoded, back_size) != 0)
            fail_msg("%s: decoded \"%s\", reference \"%s\"", name, back, decoded);
        free(back);
    }
    tune_encoding_free(&e);
    free(text);
    free(decoded);
}

static void recorded_cases(void **state)
{
    (void)state;
    char *file, name[64] = "";
    size_t size;
    const char *folder = test_folder();
    assert_ok(tune_file_read("tests/reference/tokenizers.jsonl", 1 << 26, &file, &size));
    int shapes = 0, cases = 0;
    int64_t line = 1;
    for (char *p = file, *next; p < file + size; p = next, line++, shapes++) {
        next = memchr(p, '\n', (size_t)(file + size - p));
        next = next ? next + 1 : file + size;
        struct tune_json j;
        struct tune_text key, s;
        struct tune_tokenizer *t = NULL;
        tune_json_start(&j, "tokenizers.jsonl", p, (size_t)(next - p), line);
        assert_ok(tune_json_object(&j));
        while (tune_json_key(&j, &key) == 1)
            if (tune_text_equal(key, "name")) {
                assert_ok(tune_json_string(&j, &s));
                snprintf(name, sizeof name, "%s", s.data);
            } else if (tune_text_equal(key, "tokenizer")) {
                assert_ok(tune_json_string(&j, &s));
                assert_got(t = open_text(folder, s.data, s.size));
                assert_int_equal(strncmp(tune_tokenizer_pipeline(t), name, strlen(tune_tokenizer_pipeline(t))), 0);
            } else {
                assert_ok(tune_json_array(&j));
                for (; tune_json_item(&j) == 1; cases++)
                    check_case(&j, t, name);
            }
        tune_json_free(&j);
        tune_tokenizer_free(t);
    }
    assert_true(shapes >= 7 && cases >= 7 * 30);
    free(file);
    tune_file_remove_folder(folder);
}

static void real_tokenizers(void **state)
{
    (void)state;
    if (!test_shared()) {
        print_message("no ../shared/data: real vocabularies not compared\n");
        skip();
    }
    static const char *const names[] = {"gpt2", "smollm"};
    for (int i = 0; i < 2; i++) {
        char path[TUNE_PATH_MAX], *file;
        size_t size;
        snprintf(path, sizeof path, "%s/tokenizers/%s", test_shared(), names[i]);
        struct tune_tokenizer *t = tune_tokenizer_open(path);
        assert_got(t);
        strcat(path, "/expected.jsonl");
        assert_ok(tune_file_read(path, 1 << 26, &file, &size));
        int cases = 0;
        for (char *p = file, *next; p < file + size; p = next, cases++) {
            next = memchr(p, '\n', (size_t)(file + size - p));
            next = next ? next + 1 : file + size;
            struct tune_json j;
            tune_json_start(&j, path, p, (size_t)(next - p), cases + 1);
            check_case(&j, t, names[i]);
            tune_json_free(&j);
        }
        assert_int_equal(cases, 699);
        free(file);
        tune_tokenizer_free(t);
    }
}

/* ---- Unicode facts ---- */

static void each_range(struct tune_json *j, uint8_t *expected, uint8_t bit)
{
    uint64_t a, b;
    assert_ok(tune_json_array(j));
    while (tune_json_item(j) == 1) {
        assert_ok(tune_json_array(j));
        assert_true(tune_json_item(j) == 1 && tune_json_u64(j, &a) == 0 && tune_json_item(j) == 1 &&
                    tune_json_u64(j, &b) == 0 && tune_json_item(j) == 0 && b < TUNE_POINTS);
        for (; a <= b; a++)
            expected[a] |= bit;
    }
}

/* Rows of numbers, nested arrays laid flat; *n of them in row. */
static int next_row(struct tune_json *j, uint32_t *row, int *n)
{
    *n = 0;
    int got = tune_json_item(j), depth = 1;
    if (got != 1)
        return got;
    assert_ok(tune_json_array(j));
    while (depth > 0) {
        uint64_t v;
        if (tune_json_item(j) != 1) {
            depth--;
        } else if (tune_json_peek(j) == TUNE_JSON_ARRAY) {
            assert_ok(tune_json_array(j));
            depth++;
        } else {
            assert_ok(tune_json_u64(j, &v));
            assert_true(*n < 8);
            row[(*n)++] = (uint32_t)v;
        }
    }
    return 1;
}

static void unicode_facts(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX], *file;
    size_t size;
    snprintf(path, sizeof path, "%s/unicode_hf_0.23.2.json", test_shared() ? test_shared() : "");
    if (!test_shared() || !tune_file_exists(path)) {
        print_message("no ../shared/data: Unicode facts not compared\n");
        skip();
    }
    assert_ok(tune_file_read(path, 1 << 26, &file, &size));
    uint8_t *expected = calloc(TUNE_POINTS, 1), *class = tune_unicode_classes();
    struct tune_json j;
    struct tune_text key;
    uint32_t row[8], d[4];
    int n, ranks = 0, decompositions = 0, compositions = 0;
    tune_json_start(&j, path, file, size, 1);
    assert_ok(tune_json_object(&j));
    while (tune_json_key(&j, &key) == 1) {
        uint8_t bit = tune_text_equal(key, "L") ? TUNE_LETTER : tune_text_equal(key, "N") ? TUNE_NUMBER
                    : tune_text_equal(key, "White_Space") ? TUNE_SPACE
                    : tune_text_equal(key, "rust_is_numeric_for_Digits") ? TUNE_NUMERIC : 0;
        int kind = tune_text_equal(key, "nfc_ccc") ? 1 : tune_text_equal(key, "nfc_full_decomposition") ? 2
                 : tune_text_equal(key, "nfc_pair_compositions") ? 3 : 0;
        if (bit) {
            each_range(&j, expected, bit);
        } else if (kind) {
            assert_ok(tune_json_array(&j));
            while (next_row(&j, row, &n) == 1) {
                if (kind == 1) {
                    assert_int_equal(tune_unicode_rank(row[0]), row[1]);
                    ranks++;
                } else if (kind == 2) {
                    assert_int_equal(tune_unicode_decompose(row[0], d), n - 1);
                    assert_memory_equal(d, row + 1, (size_t)(n - 1) * sizeof *d);
                    decompositions++;
                } else {
                    assert_int_equal(tune_unicode_compose(row[0], row[1]), row[2]);
                    compositions++;
                }
            }
        } else {
            assert_ok(tune_json_skip(&j));
        }
    }
    for (uint32_t c = 0; c < TUNE_POINTS; c++) {
        assert_int_equal(class[c] & (TUNE_LETTER | TUNE_NUMBER | TUNE_SPACE | TUNE_NUMERIC), expected[c]);
        ranks -= tune_unicode_rank(c) != 0;
        decompositions -= tune_unicode_decompose(c, d) != 1 || d[0] != c;
    }
    assert_int_equal(ranks, 0);
    assert_int_equal(decompositions, -11172); /* Hangul, by rule */
    assert_int_equal(compositions, 940);
    tune_json_free(&j);
    free(expected);
    free(class);
    free(file);
}

/* ---- rules, checked by hand ---- */

/* Byte-level, vocabulary a b c A-ring ... : ids a 0, b 1, c 2, Ġ 3, ab 4, abc 5. */
#define HEAD "{\"version\":\"1.0\",\"truncation\":{\"max_length\":1},\"padding\":{\"x\":[1]},"
#define GPT2_STAGES "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true," \
    "\"use_regex\":true},\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"abc\":5}," \
    "\"merges\":[\"a b\",[\"ab\",\"c\"]]}}"

static void expect(struct tune_tokenizer *t, const char *text, int options, const char *ids)
{
    struct tune_encoding e = {0};
    char line[512] = "";
    size_t n = 0;
    assert_ok(tune_tokenizer_encode(t, text, strlen(text), options, &e));
    for (int64_t i = 0; i < e.count; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, i ? " %d" : "%d", (int)e.ids[i]);
    if (strcmp(line, ids) != 0)
        fail_msg("\"%s\" gives %s, expected %s", text, line, ids);
    tune_encoding_free(&e);
}

static void merging(void **state)
{
    (void)state;
    const char *folder = test_folder(), *text = HEAD GPT2_STAGES MODEL;
    struct tune_tokenizer *t = open_text(folder, text, strlen(text));
    assert_got(t);
    assert_int_equal(tune_tokenizer_size(t), 6);
    assert_int_equal(tune_tokenizer_id(t, "ab"), 4);
    assert_int_equal(tune_tokenizer_id(t, "zz"), -1);
    assert_string_equal(tune_tokenizer_token(t, 5), "abc");
    assert_null(tune_tokenizer_token(t, 6));
    assert_null(tune_tokenizer_token(t, -1));
    expect(t, "abc", 0, "5");
    expect(t, "abcab a", 0, "5 4 3 0");
    expect(t, "bca", 0, "1 2 0");
    expect(t, "axb", 0, "4"); /* a missing character is left out before merging, as in the reference */
    expect(t, "", 0, "");
    struct tune_encoding e = {0};
    assert_int_equal(tune_tokenizer_encode(t, "ab\xff", 3, 0, &e), -1);
    assert_error_has("offset 2");
    char *back;
    size_t size;
    int32_t bad[] = {0, 6};
    assert_int_equal(tune_tokenizer_decode(t, bad, 2, false, &back, &size), -1);
    assert_error_has("id 6");
    tune_encoding_free(&e);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

/* Vocabularies in which a word cut one character too late or too early gives another id. */
static void patterns(void **state)
{
    (void)state;
    const char *folder = test_folder();
#define SPLIT(numbers) "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":" \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" numbers "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|" \
    "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false}," \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
    /* 0 newline, 1 a, 2 newline+a, 3 digit 1, 4 "11", 5 space, 6 space+a, 7 "!", 8 "!"+newline, 9 "'", 10 s, 11 "'s", 12 "'sa", 13 "sa" */
#define EDGES "\"model\":{\"vocab\":{\"\\u010a\":0,\"a\":1,\"\\u010aa\":2,\"1\":3,\"11\":4,\"\\u0120\":5,\"\\u0120a\":6,\"!\":7," \
    "\"!\\u010a\":8,\"'\":9,\"s\":10,\"'s\":11,\"'sa\":12,\"sa\":13},\"merges\":[\"\\u010a a\",\"1 1\",\"\\u0120 a\",\"! \\u010a\"," \
    "\"' s\",\"'s a\",\"s a\"]}}"
    const char *texts[] = {HEAD SPLIT("\\\\p{N}{1,3}") EDGES, HEAD SPLIT("\\\\p{N}") EDGES, HEAD GPT2_STAGES EDGES};
    static const char *const names[] = {"llama3", "qwen2", "gpt2"};
    for (int i = 0; i < 3; i++) {
        struct tune_tokenizer *t = open_text(folder, texts[i], strlen(texts[i]));
        assert_got(t);
        assert_string_equal(tune_tokenizer_pipeline(t), names[i]);
        expect(t, "\na", 0, "0 1");                    /* a line end is never glued to letters */
        expect(t, "11111", 0, i == 0 ? "4 3 4" : i == 1 ? "3 3 3 3 3" : "4 4 3");
        expect(t, "a  a", 0, "1 5 6");
        expect(t, "a  ", 0, "1 5 5");
        expect(t, "!\n\na", 0, i == 2 ? "7 0 0 1" : "8 0 1"); /* punctuation takes its line ends */
        expect(t, "a'sa", 0, "1 11 1");
        expect(t, "!a", 0, "7 1");
        tune_tokenizer_free(t);
    }
    tune_file_remove_folder(folder);
}

/* Ids of added tokens: what Hugging Face's reader refuses is refused, what it numbers anew is numbered so and said. The ids were
 * taken from tokenizers 0.23. */
static void added_ids(void **state)
{
    (void)state;
    static const struct {
        const char *added;
        int32_t x, y;
        const char *warning; /* NULL: none */
    } taken[] = {
        {"{\"id\":6,\"content\":\"<x>\"},{\"id\":7,\"content\":\"<y>\"}", 6, 7, NULL},
        {"{\"content\":\"<x>\"}", 6, -1, NULL},
        {"{\"id\":1,\"content\":\"b\"},{\"id\":6,\"content\":\"<x>\"}", 6, -1, NULL},
        {"{\"id\":6,\"content\":\"<x>\"},{\"id\":99999999,\"content\":\"<y>\"}", 6, 7, "\"<y>\" the id 99999999, but its id is 7"},
        {"{\"id\":7,\"content\":\"<x>\"},{\"id\":6,\"content\":\"<y>\"}", 6, 7, "\"<x>\" the id 7, but its id is 6"},
        {"{\"id\":6,\"content\":\"<x>\"},{\"id\":6,\"content\":\"<y>\"}", 6, 7, "\"<y>\" the id 6, but its id is 7"},
        {"{\"id\":0,\"content\":\"<x>\"}", 6, -1, "\"<x>\" the id 0, but its id is 6"},
        {"{\"id\":4294967295,\"content\":\"b\"}", -1, -1, "\"b\" the id 4294967295, but its id is 1"},
    };
    static const char *const refused[] = {"-7", "4294967296", "6.0", "\"6\"", "null", "1e1"};
    const char *folder = test_folder();
    char text[4096];
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        snprintf(text, sizeof text, HEAD "\"added_tokens\":[%s]," GPT2_STAGES MODEL, taken[i].added);
        struct tune_tokenizer *t = open_text(folder, text, strlen(text));
        assert_got(t);
        assert_int_equal(tune_tokenizer_id(t, "<x>"), taken[i].x);
        assert_int_equal(tune_tokenizer_id(t, "<y>"), taken[i].y);
        const char *warning = tune_tokenizer_warning(t);
        assert_true(taken[i].warning ? warning && strstr(warning, taken[i].warning) : !warning);
        tune_tokenizer_free(t);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(text, sizeof text, HEAD "\"added_tokens\":[{\"id\":%s,\"content\":\"<x>\"}]," GPT2_STAGES MODEL, refused[i]);
        assert_null(open_text(folder, text, strlen(text)));
    }
    tune_file_remove_folder(folder);
}

static void added_tokens(void **state)
{
    (void)state;
    const char *folder = test_folder();
    const char *text = HEAD "\"added_tokens\":["
        "{\"id\":77,\"content\":\"<x>\",\"special\":true,\"normalized\":false},"                  /* 6 */
        "{\"id\":78,\"content\":\"<x><y>\",\"special\":false,\"normalized\":false},"              /* 7 */
        "{\"id\":0,\"content\":\"b\",\"special\":false,\"normalized\":true,\"single_word\":true}," /* 1: the vocabulary's */
        "{\"id\":79,\"content\":\"<l>\",\"special\":true,\"normalized\":false,\"lstrip\":true},"  /* 8 */
        "{\"id\":80,\"content\":\"<r>\",\"special\":true,\"normalized\":false,\"rstrip\":true},"  /* 9 */
        "{\"id\":81,\"content\":\"<x>\",\"special\":true,\"normalized\":false}"                   /* again: nothing new */
        "]," GPT2_STAGES MODEL;
    struct tune_tokenizer *t = open_text(folder, text, strlen(text));
    assert_got(t);
    assert_int_equal(tune_tokenizer_size(t), 10);
    assert_int_equal(tune_tokenizer_id(t, "<x><y>"), 7);
    assert_non_null(tune_tokenizer_warning(t)); /* the first of those whose id is another: its name, both ids */
    assert_non_null(strstr(tune_tokenizer_warning(t), "\"<x>\" the id 77, but its id is 6"));
    expect(t, "a<x>b", 0, "0 6 1");
    expect(t, "<x><y><x><x>", 0, "7 6 6");         /* leftmost, then longest */
    expect(t, "ab b ab", 0, "4 3 1 3 4");          /* single_word */
    expect(t, "a  <l>  a", 0, "0 8 3 3 0");
    expect(t, "a  <r>  a", 0, "0 3 3 9 0");
    expect(t, " <r> <l> a", 0, "3 9 8 3 0");
    expect(t, "a<x>b", TUNE_SPECIAL_AS_TEXT, "0 1"); /* < x > are not in the vocabulary; b touches > only */
    char *back;
    size_t size;
    int32_t ids[] = {6, 5, 3, 7, 8};
    assert_ok(tune_tokenizer_decode(t, ids, 5, true, &back, &size));
    assert_string_equal(back, "abc <x><y>");
    free(back);
    assert_ok(tune_tokenizer_decode(t, ids, 5, false, &back, &size));
    assert_string_equal(back, "<x>abc <x><y><l>");
    free(back);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

static void check_offsets(struct tune_tokenizer *t, const char *text, bool whole)
{
    struct tune_encoding e = {0};
    int64_t at = 0;
    assert_ok(tune_tokenizer_encode(t, text, strlen(text), TUNE_ADD_SPECIAL, &e));
    for (int64_t i = 0; i < e.count; i++) {
        if (e.starts[i] < 0) {
            assert_int_equal(e.ends[i], -1);
            continue;
        }
        assert_true(e.starts[i] <= e.ends[i] && e.ends[i] <= (int64_t)strlen(text));
        if (whole)
            assert_int_equal(e.starts[i], at);
        at = e.ends[i];
    }
    assert_int_equal(at, strlen(text));
    tune_encoding_free(&e);
}

#define LLAMA2_STAGES "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}," \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]},\"pre_tokenizer\":null,"
#define LLAMA2_MODEL "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"vocab\":{\"<unk>\":0,\"\xE2\x96\x81\":1,\"a\":2,\"b\":3," \
    "\"\xE2\x96\x81""a\":4,\"<s>\":5},\"merges\":[\"\xE2\x96\x81 a\"]}}"
#define LLAMA2_POST "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}," \
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[5],\"tokens\":[\"<s>\"]}}},"

static void offsets(void **state)
{
    (void)state;
    const char *folder = test_folder(), *text = HEAD GPT2_STAGES MODEL;
    struct tune_tokenizer *t = open_text(folder, text, strlen(text));
    assert_got(t);
    check_offsets(t, "abc ab  a bca", true);
    tune_tokenizer_free(t);
    text = HEAD LLAMA2_STAGES LLAMA2_POST LLAMA2_MODEL;
    assert_got(t = open_text(folder, text, strlen(text)));
    check_offsets(t, "a b  abxya", true);
    expect(t, "a bxy a", TUNE_ADD_SPECIAL, "5 4 1 3 0 4");
    struct tune_encoding e = {0};
    assert_ok(tune_tokenizer_encode(t, "a a", 3, TUNE_ADD_SPECIAL, &e));
    int64_t expected[][2] = {{-1, -1}, {0, 1}, {1, 3}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e.starts[i], expected[i][0]);
        assert_int_equal(e.ends[i], expected[i][1]);
    }
    tune_encoding_free(&e);
    tune_tokenizer_free(t);
    /* A special token that the normalizer respells is decoded so, and not known as special: measured. */
    char *back;
    size_t size;
    text = HEAD "\"added_tokens\":[{\"id\":6,\"content\":\"<q>\",\"special\":true,\"normalized\":true},"
           "{\"id\":7,\"content\":\"<p>\",\"special\":true,\"normalized\":false}]," LLAMA2_STAGES LLAMA2_POST
           "\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\"_\"}," LLAMA2_MODEL;
    assert_got(t = open_text(folder, text, strlen(text)));
    expect(t, "<q>a<p><q>", 0, "6 2 7 6");
    assert_ok(tune_tokenizer_decode(t, (int32_t[]){6, 7, 4}, 3, true, &back, &size));
    assert_string_equal(back, "_<q>_a");
    free(back);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

/* ---- files that are refused ---- */

static void refuses(const char *folder, const char *text, const char *message)
{
    struct tune_tokenizer *t = open_text(folder, text, strlen(text));
    if (t)
        fail_msg("opened, expected a refusal with \"%s\"", message);
    assert_error_has(message);
}

/* Of 1024 bytes one is taken, of one byte more refused. */
static void long_added(const char *folder)
{
    char text[8192], word[1100];
    for (int size = 1024; size <= 1025; size++) {
        memset(word, 'x', sizeof word);
        word[size] = 0;
        snprintf(text, sizeof text, HEAD "\"added_tokens\":[{\"content\":\"%s\"}]," GPT2_STAGES MODEL, word);
        if (size == 1025) {
            refuses(folder, text, "an added token of 1025 bytes");
            return;
        }
        struct tune_tokenizer *t = open_text(folder, text, strlen(text));
        assert_got(t);
        expect(t, word, 0, "6");
        tune_tokenizer_free(t);
    }
}

#define TWO_TOKENS "{\"SpecialToken\":{\"id\":\"<s>\"}},{\"SpecialToken\":{\"id\":\"<s>\"}}"

/* Replacements that lengthen each other's: 60 to the power of 7 times the text. */
static void decoders_that_grow(void **state)
{
    (void)state;
    const char *folder = test_folder();
    char text[8192], sixty[61], *back;
    size_t n = (size_t)snprintf(text, sizeof text, "%s", HEAD LLAMA2_STAGES "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[");
    memset(sixty, 'a', 60);
    sixty[60] = 0;
    for (int i = 0; i < 7; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"%s\"}",
                              i ? "," : "", sixty);
    n += (size_t)snprintf(text + n, sizeof text - n, "]}," LLAMA2_MODEL);
    struct tune_tokenizer *t = open_text(folder, text, n);
    assert_got(t);
    assert_int_equal(tune_tokenizer_decode(t, (int32_t[]){2}, 1, false, &back, &n), -1);
    assert_error_has("the decoded text would have more than 4160 bytes");
    assert_ok(tune_tokenizer_decode(t, (int32_t[]){3}, 1, false, &back, &n));
    assert_string_equal(back, "b");
    free(back);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

static void refused_files(void **state)
{
    (void)state;
    const char *f = test_folder();
    static char big[400];
    refuses(f, HEAD "\"normalizer\":{\"type\":\"Lowercase\"}," MODEL, "Lowercase");
    assert_error_has("NFC (Qwen)");
    refuses(f, HEAD "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Whitespace\"}," MODEL, "Whitespace");
    assert_error_has("SmolLM");
    refuses(f, HEAD "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
               "\"\\\\d+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"use_regex\":false,"
               "\"add_prefix_space\":false}]}," MODEL, "\\d+");
    refuses(f, HEAD "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}," MODEL, "no prefix space");
    refuses(f, HEAD "\"pre_tokenizer\":null," MODEL, "pre_tokenizer null");
    refuses(f, HEAD "\"post_processor\":{\"type\":\"BertProcessing\"}," GPT2_STAGES MODEL, "twice");
    refuses(f, HEAD "\"post_processor\":{\"type\":\"BertProcessing\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
               MODEL, "BertProcessing");
    refuses(f, HEAD "\"decoder\":{\"type\":\"WordPiece\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}," MODEL, "WordPiece");
    refuses(f, "{\"version\":\"2.0\"," GPT2_STAGES MODEL, "2.0");
    refuses(f, HEAD GPT2_STAGES "\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "Unigram");
    refuses(f, HEAD "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}}", "no \"model\"");
    refuses(f, HEAD GPT2_STAGES "\"model\":{\"vocab\":{}}}", "merges");
#define BAD(vocab, merges) HEAD GPT2_STAGES "\"model\":{\"vocab\":" vocab ",\"merges\":" merges "}}"
    refuses(f, BAD("{\"a\":0,\"b\":1}", "[\"a b\"]"), "\"ab\"");
    refuses(f, BAD("{\"a\":0,\"ab\":1}", "[\"a b\"]"), "\"b\"");
    refuses(f, BAD("{\"a\":0,\"b\":1,\"ab\":2}", "[\"a  b\"]"), "one space");
    refuses(f, BAD("{\"a\":0,\"b\":1,\"ab\":2}", "[[\"a\"]]"), "expected two");
    refuses(f, BAD("{\"a\":0,\"b\":1,\"ab\":2}", "[[\"a\",\"b\",\"c\"]]"), "more than two");
    refuses(f, BAD("{\"a\":0,\"b\":0}", "[]"), "belongs to");
    refuses(f, BAD("{\"a\":0,\"a\":1}", "[]"), "twice");
    refuses(f, BAD("{\"a\":4294967295}", "[]"), "too large");
    refuses(f, BAD("{\"a\":-1}", "[]"), "not a whole number");
    refuses(f, BAD("{\"a\":0}", "[1]"), "expected");
    refuses(f, HEAD "\"added_tokens\":[{\"id\":1}]," GPT2_STAGES MODEL, "without content");
    refuses(f, HEAD LLAMA2_STAGES "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<q>\"}},"
               "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{}}," LLAMA2_MODEL, "<q>");
    refuses(f, HEAD LLAMA2_STAGES "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<q>\"}},"
               "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<q>\":{\"ids\":[6]}}}," LLAMA2_MODEL, "id 6 is no token");
    refuses(f, HEAD LLAMA2_STAGES "\"model\":{\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]},\"post_processor\":{\"type\":\"TemplateProcessing\","
               "\"single\":[{\"SpecialToken\":{\"id\":\"<q>\"}},{\"Sequence\":{\"id\":\"A\"}}],"
               "\"special_tokens\":{\"<q>\":{\"ids\":[1]}}}}", "id 1 is no token");
    refuses(f, HEAD LLAMA2_STAGES "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\"}}]},"
               LLAMA2_MODEL, "\"B\"");
    refuses(f, HEAD LLAMA2_STAGES "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" TWO_TOKENS "," TWO_TOKENS "," TWO_TOKENS "," TWO_TOKENS "," TWO_TOKENS "],"
               "\"special_tokens\":{\"<s>\":{\"ids\":[]}}}," LLAMA2_MODEL, "more than 8 items");
    refuses(f, HEAD "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[],\"pretokenizers\":[]}," MODEL, "stands there twice");
    long_added(f);
    memset(big, '[', sizeof big - 1);
    refuses(f, big, "object");
    memcpy(big, "{\"normalizer\":", 14);
    refuses(f, big, "nested");
    refuses(f, "", "");
    tune_file_remove_folder(f);
    assert_null(tune_tokenizer_open("/nowhere/at/all"));
}

/* Every beginning of a good file, and every byte of it changed, is refused or read; never a crash. */
static void damaged_files(void **state)
{
    (void)state;
    const char *folder = test_folder(), *text = HEAD "\"added_tokens\":[{\"id\":6,\"content\":\"<x>\",\"special\":true}],"
        LLAMA2_STAGES LLAMA2_POST LLAMA2_MODEL;
    size_t size = strlen(text);
    char *copy = malloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        struct tune_tokenizer *t = open_text(folder, text, i);
        assert_null(t);
        for (int k = 0; k < 3; k++) {
            memcpy(copy, text, size);
            copy[i] = "\"9]"[k];
            t = open_text(folder, copy, size);
            if (t) {
                struct tune_encoding e = {0};
                (void)tune_tokenizer_encode(t, "a <x>b", 6, TUNE_ADD_SPECIAL, &e);
                tune_encoding_free(&e);
            }
            tune_tokenizer_free(t);
        }
    }
    free(copy);
    tune_file_remove_folder(folder);
}

/* ---- training, long words, threads ---- */

static char *sample(size_t *size)
{
    char *text;
    assert_ok(tune_file_read("components/tokenizers/bpe.c", 1 << 24, &text, size));
    return text;
}

static struct tune_tokenizer *train(const char *folder, int32_t vocabulary)
{
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    char path[TUNE_PATH_MAX];
    size_t size;
    char *text = sample(&size);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_ok(tune_tokenizer_train(path, text, size, vocabulary, special, 3));
    free(text);
    struct tune_tokenizer *t = tune_tokenizer_open(folder);
    assert_got(t);
    return t;
}

static void training(void **state)
{
    (void)state;
    const char *folder = test_folder();
    char path[TUNE_PATH_MAX], *first, *second, *text = NULL, *back;
    size_t first_size, second_size, size, back_size;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    static const int32_t sizes[] = {259, 1000, 20000};
    for (int i = 0; i < 3; i++) {
        struct tune_tokenizer *t = train(folder, sizes[i]);
        assert_int_equal(tune_tokenizer_size(t), sizes[i]);
        assert_string_equal(tune_tokenizer_pipeline(t), "smollm");
        assert_string_equal(tune_tokenizer_token(t, 0), "<|endoftext|>");
        assert_ok(tune_file_read(path, 1 << 24, &first, &first_size));
        tune_tokenizer_free(t);
        t = train(folder, sizes[i]);
        assert_ok(tune_file_read(path, 1 << 24, &second, &second_size));
        assert_int_equal(first_size, second_size);
        assert_memory_equal(first, second, first_size);
        struct tune_encoding e = {0};
        text = sample(&size);
        assert_ok(tune_tokenizer_encode(t, text, size, 0, &e));
        assert_true(sizes[i] == 259 ? e.count == (int64_t)size : e.count < (int64_t)size / 2);
        assert_ok(tune_tokenizer_decode(t, e.ids, e.count, false, &back, &back_size));
        assert_int_equal(back_size, size);
        assert_memory_equal(back, text, size);
        tune_encoding_free(&e);
        tune_tokenizer_free(t);
        free(back);
        free(text);
        free(first);
        free(second);
    }
    static const char *const twice[] = {"<a>", "<a>"};
    assert_ok(tune_tokenizer_train(path, "x", 1, 257, twice, 1));
    assert_int_equal(tune_tokenizer_train(path, "x", 1, 256, twice, 1), -1);
    assert_error_has("257");
    assert_int_equal(tune_tokenizer_train(path, "x", 1, 300, twice, 2), -1);
    assert_error_has("twice");
    assert_int_equal(tune_tokenizer_train("/nowhere/tokenizer.json", "x", 1, 300, twice, 1), -1);
    tune_file_remove_folder(folder);
}

/* A document that is one word takes O(n log n), and short and long merging agree. */
static void long_words(void **state)
{
    (void)state;
    const char *folder = test_folder();
    struct tune_tokenizer *t = train(folder, 1000);
    enum { N = 1 << 20 };
    char *text = malloc(N), *back;
    size_t size;
    struct tune_encoding e = {0}, brief = {0};
    for (int i = 0; i < N; i++)
        text[i] = "return static"[i % 6];
    assert_ok(tune_tokenizer_encode(t, text, N, 0, &e));
    assert_ok(tune_tokenizer_decode(t, e.ids, e.count, false, &back, &size));
    assert_int_equal(size, N);
    assert_memory_equal(back, text, N);
    free(back);
    for (int n = 50; n < 90; n++) { /* symbols of the word lie on both sides of the switch */
        assert_ok(tune_tokenizer_encode(t, text, 6000, 0, &e));
        assert_ok(tune_tokenizer_encode(t, text, (size_t)n, 0, &brief));
        for (int64_t i = 0; i + 8 < brief.count; i++)
            assert_int_equal(brief.ids[i], e.ids[i]);
    }
    free(text);
    tune_encoding_free(&e);
    tune_encoding_free(&brief);
    tune_tokenizer_free(t);
    tune_file_remove_folder(folder);
}

struct job {
    struct tune_tokenizer *t;
    const char *text;
    size_t size;
    struct tune_encoding e;
    int failed;
};

static void *encode_often(void *at)
{
    struct job *job = at;
    for (int i = 0; i < 20 && !job->failed; i++)
        job->failed = tune_tokenizer_encode(job->t, job->text, job->size, 0, &job->e);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    const char *folder = test_folder();
    size_t size;
    char *text = sample(&size);
    struct tune_tokenizer *t = train(folder, 1000), *alone = tune_tokenizer_open(folder);
    struct job jobs[4];
    pthread_t threads[4];
    struct tune_encoding e = {0};
    assert_ok(tune_tokenizer_encode(alone, text, size, 0, &e));
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){.t = t, .text = text, .size = size};
        pthread_create(&threads[i], NULL, encode_often, &jobs[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].failed, 0);
        assert_int_equal(jobs[i].e.count, e.count);
        assert_memory_equal(jobs[i].e.ids, e.ids, (size_t)e.count * sizeof *e.ids);
        tune_encoding_free(&jobs[i].e);
    }
    tune_encoding_free(&e);
    tune_tokenizer_free(alone);
    tune_tokenizer_free(t);
    free(text);
    tune_file_remove_folder(folder);
}

static void getter(void **state)
{
    (void)state;
    const char *folder = test_folder(), *text = HEAD GPT2_STAGES MODEL;
    test_write(folder, "tokenizer.json", text, strlen(text));
    struct tune_flags flags = {.model = folder};
    struct tune_tokenizer *t = tune_get_tokenizer(&flags);
    assert_got(t);
    tune_tokenizer_free(t);
    char file[TUNE_PATH_MAX];
    snprintf(file, sizeof file, "%s/tokenizer.json", folder);
    flags.model = file;
    assert_got(t = tune_get_tokenizer(&flags));
    tune_tokenizer_free(t);
    flags.model = "/nowhere/at/all";
    assert_null(tune_get_tokenizer(&flags));
    flags.model = NULL;
    assert_null(tune_get_tokenizer(&flags));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    tune_file_remove_folder(folder);
}

/* Tokens beside the file's: the ids transformers gives them (5.23.0, add_tokens with special_tokens), in a text that is else the same. */
static void more_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *more, *message;
    } bad[] = {
        {"", "it is empty"}, {"<|x|>,", "it is empty"}, {",<|x|>", "it is empty"}, {" <|x|>", "white space"}, {"<|x|> ", "white space"},
        {"<|x|>,<|x|>", "named twice"}, {"a,<|x|>,b,<|x|>", "named twice"}, {"\xff", "not UTF-8"}, {"<plain>", "not special; leave it out"},
    };
    const char *folder = test_folder(), *text = "{\"added_tokens\":[{\"id\":0,\"content\":\"<|end|>\",\"special\":true},"
        "{\"id\":3,\"content\":\"<plain>\",\"special\":false}]," GPT2_STAGES MODEL;
    test_write(folder, "tokenizer.json", text, strlen(text));
    struct tune_tokenizer *plain = tune_tokenizer_open(folder);
    assert_got(plain);
    assert_null(tune_tokenizer_more(plain));
    int32_t first = tune_tokenizer_size(plain);
    struct tune_tokenizer *t = tune_tokenizer_open_with(folder, "<|end|>,<|x|>,a,<|x|>y");
    assert_got(t);
    assert_int_equal(tune_tokenizer_id(t, "<|end|>"), tune_tokenizer_id(plain, "<|end|>"));
    assert_int_equal(tune_tokenizer_id(t, "a"), tune_tokenizer_id(plain, "a")); /* of the vocabulary: it keeps its id */
    assert_int_equal(tune_tokenizer_id(t, "<|x|>"), first);
    assert_int_equal(tune_tokenizer_id(t, "<|x|>y"), first + 1);
    assert_int_equal(tune_tokenizer_size(t), first + 2);
    assert_non_null(strstr(tune_tokenizer_more(t), "<|end|> "));
    assert_non_null(strstr(tune_tokenizer_more(t), "(there already)"));
    struct tune_encoding e = {0};
    assert_ok(tune_tokenizer_encode(t, "a<|x|>a<|x|>y", 13, 0, &e));
    assert_int_equal(e.count, 4);
    assert_int_equal(e.ids[1], first);
    assert_int_equal(e.ids[3], first + 1);
    char *decoded;
    size_t size;
    assert_ok(tune_tokenizer_decode(t, e.ids, e.count, true, &decoded, &size));
    assert_int_equal(size, 0); /* all of them are special */
    free(decoded);
    tune_encoding_free(&e);
    tune_tokenizer_free(t);

    char *changed = strdup(text);
    size = strlen(text);
    assert_got(t = tune_tokenizer_add("a file", &changed, &size, "<|end|>"));
    assert_string_equal(changed, text);
    tune_tokenizer_free(t);
    assert_got(t = tune_tokenizer_add("a file", &changed, &size, "<|x|>"));
    tune_tokenizer_free(t);
    const char *end = strstr(text, "]," ), *tail = strstr(changed, "  ]");
    assert_memory_equal(changed, text, (size_t)(end - text));
    assert_non_null(tail);
    assert_string_equal(tail + 2, end);
    test_write(folder, "tokenizer.json", changed, size);
    char *once = strdup(changed);
    assert_got(t = tune_tokenizer_add("a file", &changed, &size, "<|x|>")); /* once more: nothing */
    assert_int_equal(size, strlen(changed));
    assert_string_equal(changed, once);
    free(once);
    assert_int_equal(tune_tokenizer_size(t), first + 1);
    tune_tokenizer_free(t);
    free(changed);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if ((t = tune_tokenizer_open_with(folder, bad[i].more)))
            fail_msg("\"%s\" was added", bad[i].more);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        assert_error_has(bad[i].message);
    }
    const char *empty = "{\"added_tokens\": [ ]," GPT2_STAGES MODEL;
    test_write(folder, "tokenizer.json", empty, strlen(empty));
    assert_got(t = tune_tokenizer_open_with(folder, "<|x|>,<|y|>"));
    assert_int_equal(tune_tokenizer_id(t, "<|y|>"), 7);
    tune_tokenizer_free(t);
    const char *none = "{" GPT2_STAGES MODEL;
    test_write(folder, "tokenizer.json", none, strlen(none));
    assert_null(tune_tokenizer_open_with(folder, "<|x|>"));
    assert_error_has("no list \"added_tokens\"");
    tune_tokenizer_free(plain);
    tune_file_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_cases), cmocka_unit_test(real_tokenizers), cmocka_unit_test(unicode_facts),
        cmocka_unit_test(merging),        cmocka_unit_test(patterns),
        cmocka_unit_test(added_ids),       cmocka_unit_test(added_tokens),    cmocka_unit_test(offsets),
        cmocka_unit_test(refused_files),  cmocka_unit_test(decoders_that_grow),  cmocka_unit_test(damaged_files),   cmocka_unit_test(training),
        cmocka_unit_test(long_words),     cmocka_unit_test(threads),         cmocka_unit_test(getter),
        cmocka_unit_test(more_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
