/* byte_tokenizer.h - a tokenizer of single bytes in a folder of the test's own: what a mask shall be can be counted by hand. */
#ifndef TUNE_TEST_BYTE_TOKENIZER_H
#define TUNE_TEST_BYTE_TOKENIZER_H

#include "files/file.h"
#include "test.h"
#include "tokenizers/tokenizer.h"

static const char *folder;
static struct tune_tokenizer *bytes;

static int setup(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    folder = test_folder();
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_ok(tune_tokenizer_train(path, "ab", 2, 257, (const char *const[]){"<|endoftext|>"}, 1));
    bytes = tune_tokenizer_open(path);
    assert_got(bytes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tune_tokenizer_free(bytes);
    return tune_file_remove_folder(folder);
}

#endif
