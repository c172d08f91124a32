/* test_detokenizer.c - text piece by piece against decode of all ids, on every tokenizer; stop texts across tokens. */
#include "test.h"

#include "core/random.h"
#include "files/json.h"
#include "generators/detokenizer.h"
#include "tokenizers/parts.h"

static uint64_t drawn;

static int64_t draw(int64_t below)
{
    return (int64_t)(tune_random_uniform(17, 3, drawn++) * (double)below);
}

/* ---- every tokenizer: those of tokenizers.jsonl, a decoder of an unusual kind, none, and the real ones ---- */

typedef void check_tokenizer(const char *name, struct tune_tokenizer *t);

static void each_tokenizer(check_tokenizer *check)
{
    char *file, name[64] = "";
    size_t size;
    assert_ok(tune_file_read("tests/reference/tokenizers.jsonl", 1 << 26, &file, &size));
    for (char *p = file, *next; p < file + size; p = next) {
        struct tune_json j;
        struct tune_text key, s;
        next = memchr(p, '\n', (size_t)(file + size - p)) + 1;
        tune_json_start(&j, "tokenizers.jsonl", p, (size_t)(next - p), 1);
        assert_ok(tune_json_object(&j));
        while (tune_json_key(&j, &key) == 1) {
            if (!tune_text_equal(key, "name") && !tune_text_equal(key, "tokenizer")) {
                assert_ok(tune_json_skip(&j));
                continue;
            }
            bool is_name = tune_text_equal(key, "name");
            assert_ok(tune_json_string(&j, &s));
            if (is_name) {
                snprintf(name, sizeof name, "%s", s.data);
                continue;
            }
            struct tune_tokenizer *t = tune_tokenizer_parse(name, s.data, s.size);
            assert_got(t);
            check(name, t);
            /* decoders that the loader accepts and no known model has */
            struct tune_decode *last = &t->decode[t->decode_steps - 1];
            if (last->kind == TUNE_DECODE_STRIP) {
                last->start = 3;
                check("a Strip of three", t);
                last->stop = 2;
                check("a Strip at both ends", t);
            } else {
                last[1] = (struct tune_decode){.kind = TUNE_DECODE_REPLACE, .from = "e ", .to = "-"};
                t->decode_steps++;
                check("a Replace across tokens", t);
            }
            t->decode_steps = 0;
            check("no decoder", t);
            tune_tokenizer_free(t);
        }
        tune_json_free(&j);
    }
    free(file);
    static const char *const real[] = {"tokenizers/gpt2", "tokenizers/smollm", "stories260K-hf"};
    for (int i = 0; i < 3; i++) {
        char path[TUNE_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", test_shared() ? test_shared() : "", real[i]);
        struct tune_tokenizer *t = test_shared() ? tune_tokenizer_open(path) : NULL;
        if (!t) {
            print_message("no ../shared/data/%s: not checked\n", real[i]);
            continue;
        }
        check(real[i], t);
        tune_tokenizer_free(t);
    }
}

/* ---- pieces ---- */

static char *decode(struct tune_tokenizer *t, const int32_t *ids, int64_t count, size_t *size)
{
    char *text;
    assert_ok(tune_tokenizer_decode(t, ids, count, true, &text, size));
    return text;
}

/* The pieces are UTF-8, and together the text of all ids. Returns their number but for the last. */
static int stream(const char *name, struct tune_detokenizer *s, struct tune_tokenizer *t, const int32_t *ids, int64_t count)
{
    size_t size, expected_size, at = 0, bad, text_size;
    const char *piece, *text;
    char *expected = decode(t, ids, count, &expected_size);
    int pieces = 0;
    tune_detokenizer_reset(s);
    for (int64_t i = 0; i <= count; i++) {
        if (i < count)
            assert_int_equal(tune_detokenizer_add(s, ids[i], &piece, &size), 0);
        else
            assert_int_equal(tune_detokenizer_end(s, &piece, &size), 0);
        if (at + size > expected_size || memcmp(piece, expected + at, size) != 0)
            fail_msg("%s, id %lld of %lld: \"%.*s\" does not go on \"%.*s\" in \"%s\"", name, (long long)i, (long long)count,
                     (int)size, piece, (int)at, expected, expected);
        assert_true(tune_utf8_valid(piece, size, &bad));
        at += size;
        pieces += i < count && size > 0;
        text = tune_detokenizer_text(s, &text_size);
        assert_true(text_size == at && memcmp(text, expected, at) == 0);
    }
    assert_int_equal(at, expected_size);
    assert_int_equal(tune_detokenizer_end(s, &piece, &size), 0); /* nothing comes twice */
    assert_int_equal(size, 0);
    free(expected);
    return pieces;
}

static void check_random(const char *name, struct tune_tokenizer *t)
{
    struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
    int32_t ids[300], few[8];
    int32_t V = tune_tokenizer_size(t);
    assert_got(s);
    for (int turn = 0; turn < 400; turn++) {
        int64_t count = draw(turn % 50 == 0 ? 300 : 20), kinds = 1 + draw(8);
        for (int i = 0; i < 8; i++)
            few[i] = (int32_t)draw(i % 2 ? V : V < 300 ? V : 300); /* bytes and special ids are the low ones */
        for (int64_t i = 0; i < count; i++)
            do
                ids[i] = turn % 2 ? few[draw(kinds)] : (int32_t)draw(V);
            while (!tune_tokenizer_token(t, ids[i]) && (few[0] = few[1] = ids[i] = 0, !tune_tokenizer_token(t, 0)));
        stream(name, s, t, ids, count);
    }
    tune_detokenizer_free(s);
}

static void random_ids(void **state)
{
    (void)state;
    each_tokenizer(check_random);
}

static const char *const texts[] = {
    "Hello, world. It's 2024.\n\n  Two  spaces and\ttabs ",
    " leading space",
    "na\xC3\xAFve caf\xC3\xA9 e\xCC\x81\xCC\xA7 a\xCC\x8A",                                /* combining */
    "\xF0\x9F\x98\x80\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xF0\x9F\x87\xA9\xF0\x9F\x87\xAA!", /* emoji */
    "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xD8\xB3\xD9\x84\xD8\xA7\xD9\x85 \xE2\x80\x8F.",     /* right to left */
    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE3\x80\x82\xED\x95\x9C\xEA\xB5\xAD",
    "\xEF\xBF\xBD is U+FFFD itself\xEF\xBF\xBD",
    "   ",
    "",
};

static void check_texts(const char *name, struct tune_tokenizer *t)
{
    struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
    struct tune_encoding e = {0};
    assert_got(s);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int options = 0; options <= TUNE_ADD_SPECIAL; options += TUNE_ADD_SPECIAL) {
            if (tune_tokenizer_encode(t, texts[i], strlen(texts[i]), options, &e) < 0)
                continue; /* a vocabulary without some bytes */
            for (int64_t cut = e.count; cut >= 0 && cut > e.count - 6; cut--) /* an end within a character */
                stream(name, s, t, e.ids, cut);
        }
    tune_encoding_free(&e);
    tune_detokenizer_free(s);
}

static void whole_texts(void **state)
{
    (void)state;
    each_tokenizer(check_texts);
}

/* A byte's token: "<0x41>" in a Llama 2 vocabulary, the printable character in a byte-level one. */
static int32_t byte_id(struct tune_tokenizer *t, int byte)
{
    char name[8] = "";
    snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
    int32_t id = tune_tokenizer_id(t, name);
    if (id < 0) {
        memset(name, 0, sizeof name);
        tune_utf8_put(name, tune_byte_char(byte));
        id = tune_tokenizer_id(t, name);
    }
    return id;
}

static void check_bytes(const char *name, struct tune_tokenizer *t)
{
    static const unsigned char rare[] = {'a', ' ', 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xE2, 0x82, 0xAC, 0xED, 0xA0, 0xF0, 0x9F, 0x98, 0xF4, 0x90, 0xFF};
    struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
    int32_t ids[64];
    assert_got(s);
    for (int turn = 0; turn < 600; turn++) {
        int64_t count = 0, most = draw(40);
        while (count < most) {
            int32_t id = byte_id(t, rare[draw((int64_t)sizeof rare)]);
            if (id < 0 || draw(5) == 0)
                id = (int32_t)draw(tune_tokenizer_size(t));
            if (tune_tokenizer_token(t, id))
                ids[count++] = id;
        }
        stream(name, s, t, ids, count);
    }
    tune_detokenizer_free(s);
}

static void bytes(void **state)
{
    (void)state;
    each_tokenizer(check_bytes);
}

/* ---- pieces come as early as they can, in linear time ---- */

static struct tune_tokenizer *open_shape(const char *shape)
{
    char *file;
    size_t size;
    struct tune_tokenizer *t = NULL;
    assert_ok(tune_file_read("tests/reference/tokenizers.jsonl", 1 << 26, &file, &size));
    for (char *p = file, *next; p < file + size && !t; p = next) {
        struct tune_json j;
        struct tune_text key, s;
        bool found = false;
        next = memchr(p, '\n', (size_t)(file + size - p)) + 1;
        tune_json_start(&j, "tokenizers.jsonl", p, (size_t)(next - p), 1);
        assert_ok(tune_json_object(&j));
        while (tune_json_key(&j, &key) == 1)
            if (tune_text_equal(key, "name")) {
                assert_ok(tune_json_string(&j, &s));
                found = tune_text_equal(s, shape);
            } else if (found && tune_text_equal(key, "tokenizer")) {
                assert_ok(tune_json_string(&j, &s));
                assert_got(t = tune_tokenizer_parse(shape, s.data, s.size));
            } else {
                assert_ok(tune_json_skip(&j));
            }
        tune_json_free(&j);
    }
    free(file);
    assert_non_null(t);
    return t;
}

/* Bytes one by one; each must give this piece: pieces has a '|' between them. */
static void give_bytes(struct tune_detokenizer *s, struct tune_tokenizer *t, const char *bytes, const char *pieces)
{
    const char *piece;
    size_t size;
    tune_detokenizer_reset(s);
    for (; *bytes; bytes++) {
        assert_int_equal(tune_detokenizer_add(s, byte_id(t, (unsigned char)*bytes), &piece, &size), 0);
        if (size != strcspn(pieces, "|") || memcmp(piece, pieces, size) != 0)
            fail_msg("\"%.*s\" came, expected \"%s\"", (int)size, piece, pieces);
        pieces += size + (pieces[size] == '|');
    }
    assert_int_equal(tune_detokenizer_end(s, &piece, &size), 0);
    assert_true(size == strlen(pieces) && memcmp(piece, pieces, size) == 0);
}

static void early(void **state)
{
    (void)state;
    struct tune_tokenizer *t = open_shape("gpt2");
    struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
    assert_got(s);
    give_bytes(s, t, "ab", "a|b|");
    give_bytes(s, t, "\xE2\x82\xAC!", "||\xE2\x82\xAC|!|");                /* the euro sign with its last byte */
    give_bytes(s, t, "\xE2\x82", "||\xEF\xBF\xBD");                        /* cut: at the end */
    give_bytes(s, t, "\xFF" "a\xE2" "b", "\xEF\xBF\xBD|a||\xEF\xBF\xBD" "b|"); /* never a character: at once */
    tune_detokenizer_free(s);
    tune_tokenizer_free(t);
    t = open_shape("llama2");
    s = tune_detokenizer_new(t, NULL, 0);
    assert_got(s);
    const char *piece;
    size_t size;
    int32_t a = tune_tokenizer_id(t, "a"), mark = tune_tokenizer_id(t, TUNE_SPACE_MARK), bos = tune_tokenizer_id(t, "<s>");
    assert_true(a >= 0 && mark >= 0 && bos >= 0);
    const int32_t ids[] = {bos, mark, a, bos, mark, a, byte_id(t, 0xE2), byte_id(t, 0x82), byte_id(t, 0xAC), a, a};
    const char *const expected[] = {"", "", "a", "", "", " a", "", "", "", "\xE2\x82\xAC\x61", "a"};
    for (int i = 0; i < 11; i++) {
        assert_int_equal(tune_detokenizer_add(s, ids[i], &piece, &size), 0);
        if (size != strlen(expected[i]) || memcmp(piece, expected[i], size) != 0)
            fail_msg("id %d: \"%.*s\" came, expected \"%s\"", i, (int)size, piece, expected[i]);
    }
    tune_detokenizer_free(s);
    tune_tokenizer_free(t);
}

/* 200,000 ids of kinds that keep something open: minutes if each id decoded all that waits. */
static void linear(void **state)
{
    (void)state;
    const char *const shapes[] = {"gpt2", "llama2"};
    for (int k = 0; k < 2; k++) {
        struct tune_tokenizer *t = open_shape(shapes[k]);
        struct tune_detokenizer *s = tune_detokenizer_new(t, NULL, 0);
        assert_got(s);
        int32_t begins = 0; /* whole characters, then the first bytes of one */
        const char *piece;
        size_t size, total = 0, open = 0;
        for (; k == 0 && (open == 0 || open == size); begins++) {
            char *text;
            assert_ok(tune_tokenizer_decode_open(t, &begins, 1, true, &text, &size, &open));
            free(text);
        }
        const int32_t kinds[] = {byte_id(t, 0xE2), byte_id(t, 0x82), k == 0 ? begins - 1 : byte_id(t, 'a'),
                                 tune_tokenizer_id(t, "<|a|>")};
        for (int kind = 0; kind < 4; kind++) {
            assert_true(kinds[kind] >= 0);
            for (int i = 0; i < 50000; i++, total += size)
                assert_int_equal(tune_detokenizer_add(s, kinds[kind], &piece, &size), 0);
        }
        assert_int_equal(tune_detokenizer_end(s, &piece, &size), 0);
        assert_true(total + size >= 50000 + 2 * 3 * 49990);
        tune_detokenizer_free(s);
        tune_tokenizer_free(t);
    }
}

/* ---- stop texts ---- */

/* Where the text is cut, by trying each end in turn. size: nowhere. */
static size_t stop_at(const char *text, size_t size, const char *const *stops, int count)
{
    for (size_t end = 1; end <= size; end++) {
        size_t longest = 0;
        for (int i = 0; i < count; i++) {
            size_t n = strlen(stops[i]);
            if (n <= end && n > longest && memcmp(text + end - n, stops[i], n) == 0)
                longest = n;
        }
        if (longest > 0)
            return end - longest;
    }
    return size;
}

static void check_stops(const char *name, struct tune_tokenizer *t)
{
    int32_t ids[200];
    int met = 0;
    for (int turn = 0; turn < 300; turn++) {
        int64_t count = 1 + draw(120), kinds = 1 + draw(20);
        int32_t some[20];
        for (int i = 0; i < 20; i++)
            some[i] = (int32_t)draw(tune_tokenizer_size(t));
        for (int64_t i = 0; i < count; i++) {
            ids[i] = turn % 2 ? some[draw(kinds)] : (int32_t)draw(tune_tokenizer_size(t));
            if (!tune_tokenizer_token(t, ids[i]))
                ids[i] = tune_tokenizer_id(t, "a") > 0 ? tune_tokenizer_id(t, "a") : 0;
        }
        size_t size, all, end, given = 0;
        char *text = decode(t, ids, count, &all), *copies[TUNE_STOPS];
        int stops = 1 + (int)draw(TUNE_STOPS), met_at = 0;
        for (int i = 0; i < stops; i++) { /* parts of the text; every other one with a wrong end */
            size_t begin = all > 0 ? (size_t)draw((int64_t)all) : 0, n = 1 + (size_t)draw(12), bad;
            if (begin + n > all)
                n = all - begin;
            if (!tune_utf8_valid(text + begin, n, &bad) || n == 0 || memchr(text + begin, 0, n))
                begin = n = 0;
            copies[i] = calloc(1, n + 2);
            memcpy(copies[i], text + begin, n);
            if (n == 0 || i % 2)
                copies[i][n] = (char)('x' + draw(3));
        }
        struct tune_detokenizer *s = tune_detokenizer_new(t, (const char *const *)copies, stops);
        assert_got(s);
        end = stop_at(text, all, (const char *const *)copies, stops);
        const char *piece;
        for (int64_t i = 0; i <= count; i++) {
            int result = i < count ? tune_detokenizer_add(s, ids[i], &piece, &size) : tune_detokenizer_end(s, &piece, &size);
            assert_true(result >= met_at);
            if (given + size > end || memcmp(piece, text + given, size) != 0)
                fail_msg("%s, turn %d: \"%.*s\" after %zu bytes of \"%.*s\"", name, turn, (int)size, piece, given, (int)end, text);
            given += size;
            met_at = result;
        }
        assert_int_equal(given, end);
        assert_int_equal(met_at, end < all);
        met += met_at;
        tune_detokenizer_text(s, &size);
        assert_int_equal(size, end);
        tune_detokenizer_free(s);
        for (int i = 0; i < stops; i++)
            free(copies[i]);
        free(text);
    }
    assert_true(met > 50);
}

static void random_stops(void **state)
{
    (void)state;
    each_tokenizer(check_stops);
}

static void stops(void **state)
{
    (void)state;
    struct tune_tokenizer *t = open_shape("gpt2");
    const char *two[] = {"\nUser:", "\n\n\n"};
    struct tune_detokenizer *s = tune_detokenizer_new(t, two, 2);
    assert_got(s);
    give_bytes(s, t, "a\nUb\n\nUser", "a|||\nUb|||\n||||\nUser"); /* held back while it may become one */
    const char *text = "ab\n\nUser: c", *piece;
    size_t size;
    tune_detokenizer_reset(s);
    for (int i = 0; text[i]; i++) {
        int result = tune_detokenizer_add(s, byte_id(t, text[i]), &piece, &size);
        assert_int_equal(result, i >= 8);
        const char *expected = i == 0 ? "a" : i == 1 ? "b" : i == 4 ? "\n" : "";
        assert_true(size == strlen(expected) && memcmp(piece, expected, size) == 0);
    }
    assert_int_equal(tune_detokenizer_end(s, &piece, &size), 1);
    assert_int_equal(size, 0);
    assert_memory_equal(tune_detokenizer_text(s, &size), "ab\n", 3);
    assert_int_equal(size, 3);
    tune_detokenizer_reset(s); /* as new */
    assert_int_equal(tune_detokenizer_add(s, byte_id(t, 'c'), &piece, &size), 0);
    assert_true(size == 1 && *piece == 'c');
    tune_detokenizer_free(s);
    /* complete first: "bc" ends before "abcd"; at one end the longer one */
    const char *nested[] = {"abcd", "bc", "xyz", "z", "wxyz"};
    s = tune_detokenizer_new(t, nested, 5);
    assert_got(s);
    const char *const given[][2] = {{"1abcd", "1a"}, {"1wxyz", "1"}, {"1xyz", "1"}, {"1wxz", "1wx"}};
    for (int k = 0; k < 4; k++) {
        tune_detokenizer_reset(s);
        int result = 0;
        for (const char *p = given[k][0]; *p; p++)
            result = tune_detokenizer_add(s, byte_id(t, *p), &piece, &size);
        const char *whole = tune_detokenizer_text(s, &size);
        assert_int_equal(result, 1);
        assert_true(size == strlen(given[k][1]) && memcmp(whole, given[k][1], size) == 0);
    }
    tune_detokenizer_free(s);
    tune_tokenizer_free(t);
}

/* ---- errors ---- */

static void errors(void **state)
{
    (void)state;
    struct tune_tokenizer *t = open_shape("smollm");
    char long_text[TUNE_STOP_SIZE + 2];
    memset(long_text, 'a', sizeof long_text);
    long_text[TUNE_STOP_SIZE + 1] = 0;
    const char *many[9] = {"a", "a", "a", "a", "a", "a", "a", "a", "a"}, *bad[] = {"a", "\xE2\x82"}, *empty[] = {""};
    const char *over[] = {long_text};
    assert_null(tune_detokenizer_new(t, many, 9));
    assert_error_has("9 stop texts; expected at most 8");
    assert_null(tune_detokenizer_new(t, many, -1));
    assert_null(tune_detokenizer_new(t, bad, 2));
    assert_error_has("stop text 2 has 2 bytes and is not UTF-8");
    assert_null(tune_detokenizer_new(t, empty, 1));
    assert_error_has("stop text 1 has 0 bytes");
    assert_null(tune_detokenizer_new(t, over, 1));
    assert_error_has("1025 bytes");
    long_text[TUNE_STOP_SIZE] = 0;
    struct tune_detokenizer *s = tune_detokenizer_new(t, over, 1);
    assert_got(s);
    tune_detokenizer_free(s);
    assert_got(s = tune_detokenizer_new(t, NULL, 0));
    const char *piece;
    size_t size;
    int32_t V = tune_tokenizer_size(t);
    assert_int_equal(tune_detokenizer_end(s, &piece, &size), 0); /* an empty text */
    assert_true(size == 0 && piece[0] == 0);
    assert_non_null(tune_detokenizer_text(s, &size));
    assert_int_equal(size, 0);
    assert_int_equal(tune_detokenizer_add(s, byte_id(t, 'a'), &piece, &size), 0);
    assert_int_equal(tune_detokenizer_add(s, V, &piece, &size), 0); /* a row without a token */
    assert_true(size == 0 && piece[0] == 0);
    assert_int_equal(tune_detokenizer_add(s, -1, &piece, &size), -1);
    assert_error_has("not in the vocabulary");
    assert_true(size == 0 && piece[0] == 0);
    assert_int_equal(tune_detokenizer_add(s, byte_id(t, 'b'), &piece, &size), 0);
    assert_true(size == 1 && *piece == 'b');
    tune_detokenizer_free(s);
    tune_detokenizer_free(NULL);
    tune_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ids), cmocka_unit_test(whole_texts),  cmocka_unit_test(bytes), cmocka_unit_test(early),
        cmocka_unit_test(linear),     cmocka_unit_test(random_stops), cmocka_unit_test(stops), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
