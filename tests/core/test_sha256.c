/* test_sha256.c - SHA-256 of the texts in FIPS 180-4's examples, and of each length around a block as sha256sum has it. */
#include "test.h"

#include "core/sha256.h"

static void examples(void **state)
{
    (void)state;
    char text[TUNE_SHA256_TEXT];
    assert_string_equal(tune_sha256("", 0, text), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(tune_sha256("abc", 3, text), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *longer = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_string_equal(tune_sha256(longer, 56, text), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void lengths(void **state)
{
    (void)state;
    char data[200], text[TUNE_SHA256_TEXT], command[256], path[TUNE_PATH_MAX], want[80];
    const char *folder = test_folder();
    memset(data, 'a', sizeof data);
    snprintf(path, sizeof path, "%s/data", folder);
    snprintf(command, sizeof command, "sha256sum <%.200s", path);
    for (size_t n = 54; n < 131; n += n == 65 ? 52 : 1) {
        assert_ok(tune_file_write(path, data, n));
        FILE *sum = popen(command, "r");
        assert_non_null(sum);
        assert_int_equal(fscanf(sum, "%79s", want), 1);
        pclose(sum);
        assert_string_equal(tune_sha256(data, n, text), want);
    }
    tune_file_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples), cmocka_unit_test(lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
