/* test_gguf.c - what is written is read back, to the byte where the format says it; what breaks its rules is refused. */
#include "test.h"

#include <math.h>

#include "files/file.h"
#include "files/gguf.h"

static const char *folder;
static char path[TUNE_PATH_MAX];

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    snprintf(path, sizeof path, "%s/t.gguf", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tune_file_remove_folder(folder);
}

static void assert_refused(int status, const char *text)
{
    assert_int_equal(status, -1);
    assert_error_has(text);
}

static struct tune_gguf_writer *begin(void)
{
    struct tune_gguf_writer *w = tune_gguf_writer_new(path);
    assert_got(w);
    return w;
}

static void finish(struct tune_gguf_writer *w)
{
    assert_ok(tune_gguf_finish(w));
    tune_gguf_writer_free(w);
}

/* The bytes of a small file, from the format's description. */
static void bytes(void **state)
{
    (void)state;
    static const unsigned char want[] =
        "GGUF" "\3\0\0\0" "\2\0\0\0\0\0\0\0" "\2\0\0\0\0\0\0\0"             /* version, tensors, keys */
        "\1\0\0\0\0\0\0\0" "a" "\10\0\0\0" "\2\0\0\0\0\0\0\0" "hi"          /* a string */
        "\1\0\0\0\0\0\0\0" "n" "\11\0\0\0" "\5\0\0\0" "\2\0\0\0\0\0\0\0" "\1\0\0\0" "\376\377\377\377"
        "\1\0\0\0\0\0\0\0" "t" "\2\0\0\0" "\3\0\0\0\0\0\0\0" "\2\0\0\0\0\0\0\0" "\1\0\0\0" "\0\0\0\0\0\0\0\0"
        "\1\0\0\0\0\0\0\0" "u" "\1\0\0\0" "\1\0\0\0\0\0\0\0" "\0\0\0\0" "\40\0\0\0\0\0\0\0";
    int32_t list[2] = {1, -2};
    int64_t matrix[2] = {2, 3}, vector = 1;
    uint16_t halves[6] = {1, 2, 3, 4, 5, 6};
    struct tune_gguf_writer *w = begin();
    assert_ok(tune_gguf_put_text(w, "a", "hi"));
    assert_ok(tune_gguf_put_array(w, "n", TUNE_GGUF_I32, 2, list));
    assert_ok(tune_gguf_declare(w, "t", TUNE_GGUF_F16, 2, matrix));
    assert_ok(tune_gguf_declare(w, "u", TUNE_GGUF_F32, 1, &vector));
    int64_t size = tune_gguf_size(w);
    assert_ok(tune_gguf_write(w, halves, 5)); /* pieces end anywhere */
    assert_ok(tune_gguf_write(w, (char *)halves + 5, 7));
    assert_ok(tune_gguf_write(w, &(float){1}, 4));
    finish(w);
    char *text;
    size_t got;
    assert_ok(tune_file_read(path, 1 << 20, &text, &got));
    assert_int_equal(got, size);
    assert_memory_equal(text, want, sizeof want - 1);
    size_t data = (sizeof want - 1 + 31) / 32 * 32;
    assert_int_equal(got, data + 64);
    for (size_t i = sizeof want - 1; i < data; i++)
        assert_int_equal(text[i], 0);
    assert_memory_equal(text + data, halves, 12);
    assert_memory_equal(text + data + 32, "\0\0\x80\x3f", 5);
    free(text);
}

static void every_type(void **state)
{
    (void)state;
    static const char *const names[TUNE_GGUF_TYPES] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "s", "", "u64", "i64", "f64"};
    union {
        uint8_t u8; int8_t i8; uint16_t u16; int16_t i16; uint32_t u32; int32_t i32; float f; uint64_t u64; int64_t i64; double d;
    } values[TUNE_GGUF_TYPES] = {{.u8 = 200}, {.i8 = -3}, {.u16 = 60000}, {.i16 = -300}, {.u32 = 4000000000u}, {.i32 = -5}, {.f = 0.25f},
                                 {.u8 = 1}, {0}, {0}, {.u64 = 1ull << 52}, {.i64 = -7}, {.d = -0.5}};
    double want[TUNE_GGUF_TYPES] = {200, -3, 60000, -300, 4e9, -5, 0.25, 1, 0, 0, 4503599627370496.0, -7, -0.5};
    struct tune_text texts[3] = {{"", 0}, {"a\0b", 3}, {"\xc3\xa4", 2}};
    struct tune_gguf_writer *w = begin();
    for (int t = 0; t < TUNE_GGUF_TYPES; t++)
        if (names[t][0])
            assert_ok(tune_gguf_put(w, names[t], (enum tune_gguf_type)t, t == TUNE_GGUF_STRING ? (void *)&texts[2] : (void *)&values[t]));
    assert_ok(tune_gguf_put_array(w, "texts", TUNE_GGUF_STRING, 3, texts));
    finish(w);
    struct tune_gguf *g = tune_gguf_open(path);
    assert_got(g);
    assert_int_equal(tune_gguf_keys(g), TUNE_GGUF_TYPES);
    for (int t = 0; t < TUNE_GGUF_TYPES; t++) {
        const struct tune_gguf_key *k = names[t][0] ? tune_gguf_find_key(g, names[t]) : NULL;
        if (!names[t][0] || t == TUNE_GGUF_STRING)
            continue;
        assert_non_null(k);
        assert_int_equal(k->type, t);
        assert_true(tune_gguf_number(k, 0) == want[t]);
    }
    const struct tune_gguf_key *k = tune_gguf_find_key(g, "texts");
    assert_true(k->array && k->count == 3);
    for (uint64_t i = 0; i < 3; i++) {
        struct tune_text t = tune_gguf_string(k, i);
        assert_int_equal(t.size, texts[i].size);
        assert_memory_equal(t.data, texts[i].data, t.size);
    }
    assert_true(isnan(tune_gguf_number(k, 0)));
    assert_null(tune_gguf_string(k, 3).data);
    tune_gguf_close(g);
}

static void wrong_use(void **state)
{
    (void)state;
    int64_t odd = 33, one = 1, none = 0;
    char name[80];
    remove(path);
    struct tune_gguf_writer *w = begin();
    assert_ok(tune_gguf_put_u32(w, "a", 1));
    assert_refused(tune_gguf_put_bool(w, "a", true), "key a was put twice");
    assert_refused(tune_gguf_put_text(w, "b", "\xff"), "no UTF-8");
    assert_refused(tune_gguf_declare(w, "t", TUNE_GGUF_Q8_0, 1, &odd), "rows of tensor t have 33 numbers, which blocks of 32 (Q8_0) do not divide");
    assert_refused(tune_gguf_declare(w, "t", TUNE_GGUF_F32, 1, &none), "no file can hold");
    memset(name, 'n', sizeof name);
    name[64] = 0;
    assert_refused(tune_gguf_declare(w, name, TUNE_GGUF_F32, 1, &one), "less than 64 bytes");
    name[63] = 0;
    assert_ok(tune_gguf_declare(w, name, TUNE_GGUF_F32, 1, &one));
    assert_refused(tune_gguf_declare(w, name, TUNE_GGUF_F32, 1, &one), "declared twice");
    tune_gguf_writer_free(w);
    assert_false(tune_file_exists(path));

    w = begin();
    assert_ok(tune_gguf_declare(w, "t", TUNE_GGUF_F32, 1, &one));
    assert_ok(tune_gguf_write(w, "abc", 3));
    assert_refused(tune_gguf_finish(w), "bytes of tensor t are missing");
    tune_gguf_writer_free(w);
    assert_false(tune_file_exists(path));

    w = begin();
    assert_ok(tune_gguf_declare(w, "t", TUNE_GGUF_F32, 1, &one));
    assert_refused(tune_gguf_write(w, "abcde", 5), "more bytes");
    assert_refused(tune_gguf_declare(w, "u", TUNE_GGUF_F32, 1, &one), "after data");
    assert_refused(tune_gguf_put_u32(w, "late", 1), "after data");
    tune_gguf_writer_free(w);
}

/* Each prefix of a good file is refused, and so is each byte of its header that is set to 255, or read as another file. */
static void hostile(void **state)
{
    (void)state;
    int64_t shape[2] = {2, 32};
    char *text, zero[68] = {0};
    size_t size;
    struct tune_gguf_writer *w = begin();
    assert_ok(tune_gguf_put_text(w, "general.architecture", "llama"));
    assert_ok(tune_gguf_put_array(w, "list", TUNE_GGUF_U32, 2, zero));
    assert_ok(tune_gguf_declare(w, "t.weight", TUNE_GGUF_Q8_0, 2, shape));
    assert_ok(tune_gguf_write(w, zero, 68));
    finish(w);
    assert_ok(tune_file_read(path, 1 << 20, &text, &size));
    for (size_t n = 0; n + 60 < size; n++) {
        assert_ok(tune_file_write(path, text, n));
        assert_null(tune_gguf_open(path));
        assert_error_has("t.gguf");
    }
    for (size_t n = 0; n < size; n++) {
        char kept = text[n];
        text[n] = (char)255;
        assert_ok(tune_file_write(path, text, size));
        struct tune_gguf *g = tune_gguf_open(path);
        for (int64_t i = 0; g && i < tune_gguf_tensors(g); i++)
            assert_true(tune_gguf_tensor(g, i)->bytes <= (int64_t)size);
        tune_gguf_close(g);
        text[n] = kept;
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes), cmocka_unit_test(every_type), cmocka_unit_test(wrong_use),
                                       cmocka_unit_test(hostile)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
