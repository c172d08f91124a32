/* test_safetensors.c - a header that lies is refused, the format's oddities are not, and what we write we read.
 * Cases named in [brackets] in the comments are those of the reference implementation's own suite. */
#include "test.h"

#include <sys/stat.h>
#include <time.h>

#include "files/safetensors.h"

static const char *folder;
static char path[TUNE_PATH_MAX];

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    snprintf(path, sizeof path, "%s/t.safetensors", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tune_file_remove_folder(folder);
}

/* A file of a length field, a header and bytes of data, each what the case wants. */
static void put(uint64_t length, const char *header, size_t size, size_t data)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 8; i++)
        putc((int)(length >> (8 * i) & 255), f);
    fwrite(header, 1, size, f);
    for (size_t i = 0; i < data; i++)
        putc((int)(i & 255), f);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *message)
{
    tune_error_clear();
    struct tune_safetensors *f = tune_safetensors_open(path);
    if (f)
        fail_msg("accepted, but \"%s\" was expected", message);
    assert_error_has(message);
    assert_error_has("t.safetensors");
}

static void refuse(const char *header, size_t data, const char *message)
{
    put(strlen(header), header, strlen(header), data);
    refused(message);
}

static struct tune_safetensors *accept(const char *header, size_t data)
{
    put(strlen(header), header, strlen(header), data);
    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    return f;
}

#define ENTRY(name, dtype, shape, range) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" range "]}"
#define GOOD ENTRY("a", "F32", "2", "0,8")

/* --- the length field --- */

static void header_too_large(void **s)
{
    (void)s;
    put(100000001, "{}", 2, 0); /* [header_too_large] */
    refused("more than the format's");
}

static void header_too_small(void **s)
{
    (void)s;
    test_write(folder, "t.safetensors", "", 0); /* [header_too_small] */
    refused("too short");
    test_write(folder, "t.safetensors", "1234567", 7);
    refused("too short");
}

static void invalid_header_length(void **s)
{
    (void)s;
    put(60, "{}", 2, 0); /* [invalid_header_length] */
    refused("cut short");
    put(UINT64_MAX, "{}", 2, 0); /* 8 + N wraps */
    refused("more than the format's");
    put(3, "{}", 2, 0); /* one byte past the end */
    refused("cut short");
}

static void header_of_nothing(void **s)
{
    (void)s;
    put(0, "", 0, 0);
    refused("1:1");
    put(0, "", 0, 16);
    refused("1:1");
}

/* --- the JSON --- */

static void invalid_header_non_utf8(void **s)
{
    (void)s;
    put(1, "\xff", 1, 0); /* [invalid_header_non_utf8] */
    refused("1:1");
    refuse("{" ENTRY("a\xc0\x80", "F32", "2", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("\xed\xa0\x80", "F32", "2", "0,8") "}", 8, "1:");
}

static void not_json(void **s)
{
    (void)s;
    refuse("{", 0, "1:"); /* [invalid_header_not_json] */
    refuse("{ \"a\"", 0, "1:");
    refuse("hello", 0, "1:");
    refuse("{" GOOD "} {}", 8, "1:");
    refuse("{" GOOD "}x", 8, "1:");
    refuse("{'a':1}", 0, "1:");
}

static void byte_order_mark(void **s)
{
    (void)s;
    refuse("\xef\xbb\xbf{" GOOD "}", 8, "1:1");
}

static void nul_padding(void **s)
{
    (void)s;
    put(8, "{}\0\0\0\0\0\0", 8, 0);
    refused("1:3");
}

static void array_at_top(void **s)
{
    (void)s;
    refuse("[]", 0, "1:1");
    refuse("[{" GOOD "}]", 8, "1:1");
    refuse("null", 0, "1:1");
    refuse("\"a\"", 0, "1:1");
}

static void lone_surrogate(void **s)
{
    (void)s;
    refuse("{" ENTRY("\\ud800", "F32", "2", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("\\udc00\\ud800", "F32", "2", "0,8") "}", 8, "1:");
}

static void trailing_comma(void **s)
{
    (void)s;
    refuse("{" GOOD ",}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2,", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "0,8,") "}", 8, "1:");
}

static void depth_bomb(void **s)
{
    (void)s;
    enum { N = 1000000 };
    char *text = malloc(N + 16);
    strcpy(text, "{\"a\":{\"x\":");
    memset(text + 10, '[', N);
    put(10 + N, text, 10 + N, 0);
    free(text);
    refused("1:");
}

/* --- ranges --- */

static void many_names_on_one_range(void **s)
{
    (void)s;
    enum { N = 100000 };
    char *text = malloc(N * 80);
    size_t at = (size_t)sprintf(text, "{");
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, "%s\"n%d\":{\"dtype\":\"F32\",\"shape\":[40000],\"data_offsets\":[0,160000]}", i ? "," : "", i);
    at += (size_t)sprintf(text + at, "}");
    put(at, text, at, 160000); /* [json_attack] */
    free(text);
    clock_t begin = clock();
    refused("tensors overlap");
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 5); /* 0.03 s seen; a quadratic check takes minutes */
}

static void many_duplicates(void **s)
{
    (void)s;
    enum { N = 300000 };
    char *text = malloc(N * 64);
    size_t at = (size_t)sprintf(text, "{");
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, "%s\"n\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "");
    at += (size_t)sprintf(text + at, "}");
    put(at, text, at, 0);
    free(text);
    clock_t begin = clock();
    refused("tensor n twice");
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 5);
}

static void many_tensors(void **s)
{
    (void)s;
    enum { N = 300000 };
    char *text = malloc(N * 80), name[16];
    size_t at = (size_t)sprintf(text, "{");
    for (int i = 0; i < N; i++) /* the last one first: sorted by nothing */
        at += (size_t)sprintf(text + at, "%s\"n%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "",
                              (int)(i * 7919LL % N), N - 1 - i, N - i);
    at += (size_t)sprintf(text + at, "}");
    put(at, text, at, N);
    free(text);
    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    assert_int_equal(tune_safetensors_count(f), N);
    for (int i = 0; i < N; i += 997) {
        sprintf(name, "n%d", (int)(i * 7919LL % N));
        const struct tune_array *t = tune_safetensors_find(f, name);
        assert_non_null(t);
        assert_int_equal(*(unsigned char *)t->data, (N - 1 - i) & 255);
    }
    tune_safetensors_close(f);
}

static void partial_overlap(void **s)
{
    (void)s;
    refuse("{" GOOD "," ENTRY("b", "F32", "2", "4,12") "}", 12, "tensor b begins at byte 4 of the data, where 8");
    refuse("{" GOOD "," ENTRY("b", "F32", "2", "0,8") "}", 8, "tensors overlap");
    refuse("{" GOOD "," ENTRY("b", "F32", "1", "0,4") "}", 8, "tensors overlap");
}

static void hole_at_start(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "2", "4,12") "}", 12, "belong to no tensor");
}

static void hole_in_middle(void **s)
{
    (void)s;
    refuse("{" GOOD "," ENTRY("b", "F32", "2", "12,20") "}", 20, "tensor b begins at byte 12 of the data, where 8");
}

static void end_before_begin(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "2", "8,0") "}", 8, "before they begin");
    refuse("{" GOOD "," ENTRY("b", "F32", "0", "8,4") "}", 8, "before they begin");
}

static void zero_tensor_inside_another(void **s)
{
    (void)s;
    refuse("{" GOOD "," ENTRY("b", "F32", "0", "4,4") "}", 8, "tensors overlap");
}

static void bytes_after_data(void **s)
{
    (void)s;
    refuse("{" GOOD "}", 9, "unknown bytes follow"); /* [metadata_incomplete_buffer, polyglot] */
    refuse("{}", 1, "unknown bytes follow");
}

static void data_cut_short(void **s)
{
    (void)s;
    refuse("{" GOOD "}", 7, "cut short");
    refuse("{" GOOD "}", 0, "cut short");
    refuse("{" GOOD "," ENTRY("b", "U8", "9223372036854775800", "8,9223372036854775808") "}", 8, "overflows");
    refuse("{" GOOD "," ENTRY("b", "U8", "1000000000000000000", "8,1000000000000000008") "}", 8, "cut short");
}

static void invalid_info(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "2", "0,4") "}", 4, "hold 4 bytes, but F32[2] needs 8"); /* [invalid_info] */
    refuse("{" ENTRY("a", "F32", "2,2", "0,8") "}", 8, "F32[2, 2] needs 16");
    refuse("{" ENTRY("a", "F32", "0", "0,8") "}", 8, "needs 0");
    refuse("{" ENTRY("a", "F32", "", "0,8") "}", 8, "F32[] needs 4");
}

static void validation_overflow(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "2,18446744073709551614", "0,16") "}", 16, "too large"); /* [validation_overflow] */
    refuse("{" ENTRY("a", "F32", "2,9223372036854775807", "0,16") "}", 16, "overflows");
    refuse("{" ENTRY("a", "F32", "4611686018427387904", "0,0") "}", 0, "overflows"); /* in bytes */
    refuse("{" ENTRY("a", "F32", "9223372036854775807,4,0", "0,0") "}", 0, "overflows"); /* in order, so not saved by the 0 */
}

static void dimension_above_u64(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "18446744073709551616", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "0,18446744073709551624") "}", 8, "1:");
}

static void numbers_that_are_no_integers(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "-2", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2.0", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2e0", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "02", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "\"2\"", "0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "-0,8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "0,8.0") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "0,\"8\"") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "2", "0,-8") "}", 8, "1:");
    refuse("{" ENTRY("a", "F32", "true", "0,8") "}", 8, "1:");
}

static void offsets_that_are_not_two(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F32", "2", "8") "}", 8, "has 1 numbers");
    refuse("{" ENTRY("a", "F32", "2", "") "}", 8, "has 0 numbers");
    refuse("{" ENTRY("a", "F32", "2", "0,8,8") "}", 8, "more than two");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8}}", 8, "1:");
}

static void unknown_dtype(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F31", "2", "0,8") "}", 8, "unknown dtype \"F31\"");
    refuse("{" ENTRY("a", "f32", "2", "0,8") "}", 8, "unknown dtype");
    refuse("{" ENTRY("a", "float32", "2", "0,8") "}", 8, "unknown dtype"); /* PyTorch's spelling is not the format's */
    refuse("{" ENTRY("a", "F32\\u0000", "2", "0,8") "}", 8, "unknown dtype");
    refuse("{" ENTRY("a", "", "2", "0,8") "}", 8, "unknown dtype");
    refuse("{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "1:");
}

static void fp4_misaligned(void **s)
{
    (void)s;
    refuse("{" ENTRY("a", "F4", "3", "0,1") "}", 1, "whole bytes"); /* [fp4_misaligned] */
    refuse("{" ENTRY("a", "F6_E2M3", "3", "0,2") "}", 2, "whole bytes");
    tune_safetensors_close(accept("{" ENTRY("a", "F4", "4", "0,2") "," ENTRY("b", "F6_E3M2", "4", "2,5") "}", 5));
}

static void missing_field(void **s)
{
    (void)s;
    refuse("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a: no \"dtype\"");
    refuse("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "no \"shape\"");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "no \"data_offsets\"");
    refuse("{\"a\":{}}", 0, "no \"dtype\"");
}

static void entry_that_is_no_object(void **s)
{
    (void)s;
    refuse("{\"a\":null}", 0, "1:");
    refuse("{\"a\":[\"F32\",[2],[0,8]]}", 8, "1:"); /* the reference reader takes this one; the text does not */
    refuse("{\"a\":\"F32\"}", 0, "1:");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":null,\"data_offsets\":[0,8]}}", 8, "1:");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "1:");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[[2]],\"data_offsets\":[0,8]}}", 8, "1:");
}

static void metadata_that_is_no_text(void **s)
{
    (void)s;
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "1:");
    refuse("{\"__metadata__\":{\"a\":null}}", 0, "1:");
    refuse("{\"__metadata__\":{\"a\":{}}}", 0, "1:");
    refuse("{\"__metadata__\":[]}", 0, "1:");
    refuse("{\"__metadata__\":\"pt\"}", 0, "1:");
}

static void duplicates(void **s)
{
    (void)s;
    refuse("{" GOOD "," GOOD "}", 8, "t.safetensors"); /* the same range twice */
    refuse("{" GOOD "," ENTRY("a", "F32", "1", "8,12") "}", 12, "tensor a twice");
    refuse("{" GOOD "," ENTRY("\\u0061", "F32", "1", "8,12") "}", 12, "tensor a twice"); /* spelt otherwise */
    refuse("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "\"dtype\" twice");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "\"shape\" twice");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8, "twice");
    refuse("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ twice");
    refuse("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "key k of __metadata__ twice");
}

/* Ours alone: what a C string or our tensor cannot carry. */
static void stricter_than_the_reference(void **s)
{
    (void)s;
    refuse("{" ENTRY("a\\u0000b", "F32", "2", "0,8") "}", 8, "NUL");
    refuse("{\"__metadata__\":{\"k\":\"\\u0000\"}}", 0, "NUL");
    refuse("{" ENTRY("a", "F32", "1,1,1,1,1,1,1,1,1", "0,4") "}", 4, "more than 8 dimensions");
    refuse("{" ENTRY("a", "F32", "0,9223372036854775808,4", "0,0") "}", 0, "too large");
    refuse("{" ENTRY("a", "F32", "4611686018427387904,2,0", "0,0") "}", 0, "overflows");
}

static void names_do_not_reach_the_terminal(void **s)
{
    (void)s;
    refuse("{" ENTRY("\\u001b[2J", "F32", "2", "0,4") "}", 4, "tensor ?[2J:");
    char header[4000] = "{\"";
    for (int i = 0; i < 1000; i++)
        strcat(header, "\xc3\xa9");
    strcat(header, "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}");
    refuse(header, 4, "\xc3\xa9...:");
    assert_true(strlen(tune_error_message()) < 600);
}

static void no_such_file(void **s)
{
    (void)s;
    unlink(path);
    refused("t.safetensors");
    assert_null(tune_safetensors_open(folder)); /* a folder */
}

/* --- accepted oddities --- */

static void white_space(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" GOOD "}       ", 8);
    assert_int_equal(tune_safetensors_count(f), 1);
    tune_safetensors_close(f);
    f = accept(" \n\t\r{" GOOD "\n}\t", 8);
    assert_int_equal(tune_safetensors_count(f), 1);
    tune_safetensors_close(f);
}

static void nothing_in_it(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{}", 0);
    assert_int_equal(tune_safetensors_count(f), 0);
    assert_null(tune_safetensors_find(f, "a"));
    assert_null(tune_safetensors_metadata(f, "format"));
    assert_null(tune_safetensors_at(f, 0));
    assert_null(tune_safetensors_name(f, -1));
    tune_safetensors_close(f);
    tune_safetensors_close(NULL);
}

static void scalar(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" ENTRY("a", "F32", "", "0,4") "}", 4);
    assert_int_equal(tune_safetensors_find(f, "a")->ndim, 0);
    assert_int_equal(tune_array_elements(tune_safetensors_find(f, "a")), 1);
    tune_safetensors_close(f);
}

static void zero_tensors(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" ENTRY("z", "F32", "0", "8,8") "," GOOD "," ENTRY("y", "F64", "3,0", "0,0") ","
                                        ENTRY("x", "U8", "0,9223372036854775807", "8,8") "}", 8);
    assert_int_equal(tune_safetensors_count(f), 4);
    assert_string_equal(tune_safetensors_name(f, 0), "y");
    assert_string_equal(tune_safetensors_name(f, 1), "a");
    assert_string_equal(tune_safetensors_name(f, 2), "x");
    assert_int_equal(tune_array_bytes(tune_safetensors_find(f, "x")), 0);
    tune_safetensors_close(f);
}

static void unsorted_header(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" ENTRY("b", "U8", "2", "8,10") "," ENTRY("c", "U8", "1", "10,11") "," GOOD "}", 11);
    assert_string_equal(tune_safetensors_name(f, 0), "a");
    assert_string_equal(tune_safetensors_name(f, 2), "c");
    assert_int_equal(*(unsigned char *)tune_safetensors_at(f, 2)->data, 10);
    assert_ptr_equal(tune_safetensors_at(f, 1), tune_safetensors_find(f, "b"));
    tune_safetensors_close(f);
}

static void null_metadata(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{\"__metadata__\":null," GOOD "}", 8);
    assert_null(tune_safetensors_metadata(f, "format"));
    tune_safetensors_close(f);
    f = accept("{" GOOD ",\"__metadata__\":{\"z\":\"\",\"format\":\"pt\",\"a\":\"\\u00e9\"}}", 8);
    assert_string_equal(tune_safetensors_metadata(f, "format"), "pt");
    assert_string_equal(tune_safetensors_metadata(f, "a"), "\xc3\xa9");
    assert_string_equal(tune_safetensors_metadata(f, "z"), "");
    assert_null(tune_safetensors_metadata(f, "b"));
    tune_safetensors_close(f);
}

static void escaped_names(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" ENTRY("a\\n\\\"\\/\\u20ac\\ud83d\\ude00", "U8", "1", "0,1") ","
                                        ENTRY("", "U8", "1", "1,2") "," ENTRY("\xc3\xa9", "U8", "1", "2,3") "}", 3);
    assert_non_null(tune_safetensors_find(f, "a\n\"/\xe2\x82\xac\xf0\x9f\x98\x80"));
    assert_non_null(tune_safetensors_find(f, ""));
    assert_non_null(tune_safetensors_find(f, "\xc3\xa9"));
    tune_safetensors_close(f);
}

static void unaligned_data(void **s)
{
    (void)s;
    struct tune_safetensors *f = accept("{" ENTRY("a", "U8", "1", "0,1") "," ENTRY("b", "F32", "1", "1,5") "}", 5);
    unsigned char bytes[4];
    memcpy(bytes, tune_safetensors_find(f, "b")->data, 4);
    assert_memory_equal(bytes, "\1\2\3\4", 4);
    tune_safetensors_close(f);
}

static void unknown_keys(void **s)
{
    (void)s;
    tune_safetensors_close(accept("{\"a\":{\"x\":[1,{\"y\":null}],\"dtype\":\"U8\",\"x\":1.5,\"shape\":[1],\"data_offsets\":[0,1]}}", 1));
}

static void every_dtype(void **s)
{
    (void)s;
    for (int d = 0; d < TUNE_NF4; d++) {
        char header[200];
        int bytes = tune_dtype_bits(d); /* 8 elements */
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%d]}}", tune_dtype_name(d), bytes);
        struct tune_safetensors *f = accept(header, (size_t)bytes);
        assert_int_equal(tune_safetensors_at(f, 0)->dtype, d);
        tune_safetensors_close(f);
    }
}

/* --- writing --- */

static void round_trip(void **s)
{
    (void)s;
    float w[6] = {1, -2, 3.5f, NAN, INFINITY, -0.0f};
    uint16_t h[3] = {0x3f80, 0, 0xffff};
    struct tune_safetensors_writer *to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_metadata(to, "made \"by\"", "tune.c\n"));
    assert_ok(tune_safetensors_writer_declare(to, "z.weight", TUNE_F32, 2, (int64_t[]){2, 3}));
    assert_ok(tune_safetensors_writer_declare(to, "a\t\"\\\xc3\xa9", TUNE_BF16, 1, (int64_t[]){3}));
    assert_ok(tune_safetensors_writer_declare(to, "nothing", TUNE_F32, 2, (int64_t[]){0, 3}));
    assert_ok(tune_safetensors_writer_declare(to, "one", TUNE_U8, 0, NULL));
    assert_ok(tune_safetensors_writer_write(to, w, 5)); /* pieces of any size */
    assert_ok(tune_safetensors_writer_write(to, (char *)w + 5, 19));
    assert_ok(tune_safetensors_writer_write(to, h, 6));
    assert_false(tune_file_exists(path)); /* not before finish */
    assert_ok(tune_safetensors_writer_write(to, "\x2a", 1));
    assert_ok(tune_safetensors_writer_finish(to));
    tune_safetensors_writer_free(to);

    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    assert_int_equal(tune_safetensors_count(f), 4);
    assert_string_equal(tune_safetensors_name(f, 0), "z.weight");
    assert_memory_equal(tune_safetensors_at(f, 0)->data, w, sizeof w);
    assert_int_equal(tune_safetensors_at(f, 0)->shape[1], 3);
    assert_memory_equal(tune_safetensors_find(f, "a\t\"\\\xc3\xa9")->data, h, sizeof h);
    assert_int_equal(tune_safetensors_find(f, "nothing")->shape[0], 0);
    assert_int_equal(*(char *)tune_safetensors_find(f, "one")->data, 0x2a);
    assert_string_equal(tune_safetensors_metadata(f, "format"), "pt");
    assert_string_equal(tune_safetensors_metadata(f, "made \"by\""), "tune.c\n");
    assert_int_equal((uintptr_t)tune_safetensors_at(f, 0)->data % 8, 0); /* the mapping is page-aligned */
    tune_safetensors_close(f);
}

static void same_bytes_as_the_reference(void **s)
{
    (void)s;
    /* safetensors.torch.save_file({"b": zeros(2), "a": zeros(1, dtype=uint8)}, metadata={"format": "pt"}), version 0.8.0 */
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                 "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}}";
    struct tune_safetensors_writer *to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_declare(to, "b", TUNE_F32, 1, (int64_t[]){2}));
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 1, (int64_t[]){1}));
    assert_ok(tune_safetensors_writer_write(to, "\0\0\0\0\0\0\0\0\0", 9));
    assert_ok(tune_safetensors_writer_finish(to));
    tune_safetensors_writer_free(to);
    char *text;
    size_t size;
    assert_ok(tune_file_read(path, 4096, &text, &size));
    size_t n = strlen(header), padded = (n + 7) / 8 * 8;
    assert_int_equal(size, 8 + padded + 9);
    assert_int_equal((unsigned char)text[0], padded);
    assert_memory_equal(text + 8, header, n);
    for (size_t i = n; i < padded; i++)
        assert_int_equal(text[8 + i], ' ');
    free(text);
}

static void writer_of_nothing(void **s)
{
    (void)s;
    struct tune_safetensors_writer *to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_finish(to));
    tune_safetensors_writer_free(to);
    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    assert_int_equal(tune_safetensors_count(f), 0);
    tune_safetensors_close(f);
}

/* After a failure there is the old file, or none, and no other. */
static void writer_failures(void **s)
{
    (void)s;
    unlink(path);
    struct tune_safetensors_writer *to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 1, (int64_t[]){2}));
    assert_ok(tune_safetensors_writer_write(to, "1", 1));
    assert_int_equal(tune_safetensors_writer_finish(to), -1);
    assert_error_has("1 of 2 declared bytes");
    tune_safetensors_writer_free(to);
    assert_false(tune_file_exists(path));

    to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 1, (int64_t[]){2}));
    assert_int_equal(tune_safetensors_writer_write(to, "123", 3), -1);
    assert_error_has("more bytes than the 2");
    assert_int_equal(tune_safetensors_writer_write(to, "12", 2), -1); /* stays failed */
    assert_int_equal(tune_safetensors_writer_finish(to), -1);
    tune_safetensors_writer_free(to);

    to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_int_equal(tune_safetensors_writer_declare(to, "a", TUNE_F4, 1, (int64_t[]){3}), -1);
    assert_int_equal(tune_safetensors_writer_declare(to, "a", TUNE_NF4, 1, (int64_t[]){8}), -1); /* no file holds it */
    assert_int_equal(tune_safetensors_writer_declare(to, "a", TUNE_F32, 2, (int64_t[]){INT64_MAX, 2}), -1);
    assert_int_equal(tune_safetensors_writer_declare(to, "a", TUNE_F32, 1, (int64_t[]){-1}), -1);
    assert_int_equal(tune_safetensors_writer_declare(to, "__metadata__", TUNE_U8, 0, NULL), -1);
    assert_int_equal(tune_safetensors_writer_declare(to, "\xff", TUNE_U8, 0, NULL), -1);
    assert_int_equal(tune_safetensors_writer_metadata(to, "k", "\xff"), -1);
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 0, NULL));
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 0, NULL));
    assert_int_equal(tune_safetensors_writer_write(to, "1", 1), -1);
    assert_error_has("a was declared twice");
    tune_safetensors_writer_free(to);
    tune_safetensors_writer_free(NULL);
    assert_false(tune_file_exists(path));
    assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_null(tune_safetensors_writer_new("/nowhere/at/all.safetensors"));
}

static void writer_edges(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/edges", folder);
    /* a control character in a name; more bytes than are left; the same key twice */
    struct tune_safetensors_writer *to = tune_safetensors_writer_new(path);
    assert_got(to);
    assert_ok(tune_safetensors_writer_declare(to, "a\x1f", TUNE_U8, 1, (int64_t[]){4}));
    assert_ok(tune_safetensors_writer_write(to, "1234", 4));
    assert_ok(tune_safetensors_writer_finish(to));
    tune_safetensors_writer_free(to);
    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    assert_string_equal(tune_safetensors_name(f, 0), "a\x1f");
    tune_safetensors_close(f);
    assert_got(to = tune_safetensors_writer_new(path));
    assert_ok(tune_safetensors_writer_declare(to, "a", TUNE_U8, 1, (int64_t[]){4}));
    assert_ok(tune_safetensors_writer_write(to, "12", 2));
    assert_int_equal(tune_safetensors_writer_write(to, "123", 3), -1);
    assert_error_has("more bytes than the 4 that were declared");
    tune_safetensors_writer_free(to);
    assert_got(to = tune_safetensors_writer_new(path));
    assert_ok(tune_safetensors_writer_metadata(to, "by", "a"));
    assert_ok(tune_safetensors_writer_metadata(to, "by", "b"));
    assert_int_equal(tune_safetensors_writer_finish(to), -1);
    assert_error_has("metadata key by was declared twice");
    tune_safetensors_writer_free(to);
    /* each fits, all together do not */
    assert_got(to = tune_safetensors_writer_new(path));
    for (int i = 0; i < 9; i++) {
        const char name[] = {(char)('a' + i), 0};
        int status = tune_safetensors_writer_declare(to, name, TUNE_U8, 1, (int64_t[]){((int64_t)1 << 60) - 1});
        assert_int_equal(status, i < 8 ? 0 : -1);
    }
    assert_error_has("has a shape that no file can hold");
    tune_safetensors_writer_free(to);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(header_too_large), T(header_too_small), T(invalid_header_length), T(header_of_nothing),
        T(invalid_header_non_utf8), T(not_json), T(byte_order_mark), T(nul_padding), T(array_at_top), T(lone_surrogate),
        T(trailing_comma), T(depth_bomb), T(many_names_on_one_range), T(many_duplicates), T(many_tensors),
        T(partial_overlap), T(hole_at_start), T(hole_in_middle), T(end_before_begin), T(zero_tensor_inside_another),
        T(bytes_after_data), T(data_cut_short), T(invalid_info), T(validation_overflow), T(dimension_above_u64),
        T(numbers_that_are_no_integers), T(offsets_that_are_not_two), T(unknown_dtype), T(fp4_misaligned),
        T(missing_field), T(entry_that_is_no_object), T(metadata_that_is_no_text), T(duplicates),
        T(stricter_than_the_reference), T(names_do_not_reach_the_terminal), T(no_such_file),
        T(white_space), T(nothing_in_it), T(scalar), T(zero_tensors), T(unsorted_header), T(null_metadata),
        T(escaped_names), T(unaligned_data), T(unknown_keys), T(every_dtype),
        T(round_trip), T(same_bytes_as_the_reference), T(writer_of_nothing), T(writer_failures), T(writer_edges),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
